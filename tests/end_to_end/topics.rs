//! Settings of topics as users meet them: keys, bounds, several types, and what is said before and after.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use anyhow::Result;
use frazil_tests::{frazil, run_frazil};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with a configuration, schemas, events and a warehouse.
struct Home(TempDir);

impl Home {
    fn new(toml: &str) -> Result<Self> {
        let home = Self(tempfile::tempdir()?);
        fs::create_dir_all(home.path("schemas/ids"))?;
        fs::create_dir_all(home.path("schemas/subjects"))?;
        home.configure(toml)?;
        Ok(home)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn configure(&self, toml: &str) -> Result<()> {
        let common = "[defaults.breaker]\nshare = 1.0\n";
        Ok(fs::write(self.path("frazil.toml"), format!("{common}{toml}"))?)
    }

    /// An event of topic `t`: keys and values, from this offset on.
    fn event(&self, first: i64, records: &[(Option<&[u8]>, &[u8])]) -> Result<PathBuf> {
        let encode = |bytes: &[u8]| base64_simd::STANDARD.encode_to_string(bytes);
        let records: Vec<Value> = (first..)
            .zip(records)
            .map(|(offset, (key, value))| {
                json!({"topic": "t", "partition": 0, "offset": offset, "timestamp": 1_764_500_000_000_i64,
                    "timestampType": "CREATE_TIME", "key": key.map(encode), "value": encode(value), "headers": []})
            })
            .collect();
        let event = json!({"eventSource": "SelfManagedKafka", "bootstrapServers": "b:9092", "records": {"t-0": records}});
        let file = self.path(&format!("{first}.json"));
        fs::write(&file, event.to_string())?;
        Ok(file)
    }

    /// What the command prints as JSON.
    fn run(&self, arguments: &[&str]) -> Result<Value> {
        let (config, schemas) = (self.path("frazil.toml"), self.path("schemas"));
        let common = [
            "--config".as_ref(),
            config.as_path(),
            "--schemas".as_ref(),
            &schemas,
        ];
        let arguments: Vec<&Path> = arguments.iter().map(Path::new).collect();
        run_frazil(&self.path("w"), &[&arguments[..], &common].concat())
    }

    /// What the command prints for people.
    fn text(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = frazil()?;
        command
            .args(arguments)
            .arg("--config")
            .arg(self.path("frazil.toml"));
        command.arg("--warehouse").arg(self.path("w"));
        Ok(command.arg("--schemas").arg(self.path("schemas")).output()?)
    }
}

fn shown(text: &Path) -> &str {
    text.to_str().unwrap_or_default()
}

#[test]
fn keys_of_json_are_columns() -> Result<()> {
    let home = Home::new("[topics.t]\nkey = \"columns\"\nkey_format = \"json\"\n")?;
    let event = home.event(
        0,
        &[
            (Some(br#"{"id": 1, "at": {"x": true}}"#), br#"{"id": "a"}"#),
            (Some(b"\"bare\""), br#"{"id": "b"}"#),
            (None, br#"{"id": "c"}"#),
            (Some(b"no JSON"), br#"{"id": "d"}"#),
        ],
    )?;
    home.run(&["run", shown(&event)])?;
    let rows = home.run(&["show", "t", "--columns", "id,key_id,at,key"])?;
    let expected = [
        json!(["a", 1, {"x": true}, null]),
        json!(["b", null, null, "bare"]),
        json!(["c", null, null, null]),
    ];
    let cells = |row: &Value| match row {
        Value::Array(_) => row.clone(),
        row => json!(["id", "key_id", "at", "key"].map(|column| row[column].clone())),
    };
    let found: Vec<Value> = rows["rows"].as_array().unwrap().iter().map(cells).collect();
    assert_eq!(found, expected);
    let letters = home.run(&["dead-letters", "t"])?;
    assert_eq!(letters["counts"], json!({"json.invalid": 1}));
    Ok(())
}

#[test]
fn a_wrong_clock_makes_dead_letters_and_a_retry_says_why_they_stay() -> Result<()> {
    let narrow = "[topics.t]\npartition_range = [2000-01-01, 2001-01-01]\n";
    let home = Home::new(narrow)?;
    let event = home.event(0, &[(None, br#"{"id": 1}"#), (None, b"{")])?;
    home.run(&["run", shown(&event)])?;
    let listed = home.run(&["dead-letters", "t"])?;
    let counts = json!({"json.invalid": 1, "value.outside_partition_range": 1});
    assert_eq!(listed["counts"], counts);

    let retried = home.run(&["dead-letters", "t", "--retry"])?;
    assert_eq!((&retried["moved"], &retried["left"]), (&json!(0), &json!(2)));
    let because = retried["left_because"].as_array().unwrap();
    assert_eq!(because.len(), 2, "{because:?}");
    assert_eq!(because[1]["code"], "value.outside_partition_range");
    assert_eq!(
        because[1]["reason"],
        "field `_kafka_timestamp`: 2025-11-30T10:53:20.000000+00:00 is outside the topic's partition_range, and the table is \
         partitioned by it; field=_kafka_timestamp"
    );

    home.configure("[topics.t]\n")?;
    let output = home.text(&["dead-letters", "t", "--retry"])?;
    let text = String::from_utf8(output.stdout)?;
    assert!(
        text.starts_with(
            "kafka.t: 2 dead letters read again, 1 row now, 1 dead letter as before\n\nCODE TODAY "
        ),
        "{text}"
    );
    Ok(())
}

#[test]
fn tables_of_several_types_are_judged_together() -> Result<()> {
    let home = Home::new("[topics.t]\ntables = \"by_record_name\"\nformat = \"avro\"\n")?;
    for (id, name) in [(1, "Paid"), (2, "Sent")] {
        let schema =
            format!(r#"{{"type": "record", "name": "{name}", "fields": [{{"name": "n", "type": "int"}}]}}"#);
        fs::write(home.path(&format!("schemas/ids/{id}.avsc")), schema)?;
    }
    let (paid, sent): (&[u8], &[u8]) = (b"\0\0\0\0\x01\x0e", b"\0\0\0\0\x02\x0e");
    let event = home.event(0, &[(None, paid), (None, sent), (None, sent), (None, paid)])?;
    let output = home.text(&["ingest", shown(&event)])?;
    let text = String::from_utf8(output.stdout)?;
    assert!(
        text.contains("t → kafka.t_paid, kafka.t_sent: 4 records"),
        "{text}"
    );
    home.run(&["commit"])?;
    let found = home.run(&["reconcile", "t", "--expect-contiguous"])?;
    assert_eq!((&found["ok"], &found["gaps"]), (&json!(true), &json!(0)));
    assert_eq!(found["together"][0]["rows"], 4);

    // Dead letters have no type: they are with the topic's own table.
    assert_eq!(home.run(&["dead-letters", "t_paid"])?["total"], 0);
    let event = home.event(4, &[(None, b"\0\0\0\0\x01"), (None, paid)])?;
    home.run(&["run", shown(&event)])?;
    assert_eq!(home.run(&["dead-letters", "t"])?["total"], 1);
    let output = home.text(&["dead-letters", "t_paid"])?;
    let text = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("kafka.t_paid is for the type `Paid` of the topic `t`, and what cannot be read has no type: it is with kafka.t"),
        "{text}"
    );
    let found = home.run(&["reconcile", "t", "--expect-contiguous"])?;
    assert_eq!((&found["ok"], &found["gaps"]), (&json!(true), &json!(0)));
    Ok(())
}

#[test]
fn check_looks_at_the_schemas_that_are_there() -> Result<()> {
    let home = Home::new("[topics.t.fields]\nN.exclude = true\n\"n.x\".exclude = true\n")?;
    let record = r#"{"type": "record", "name": "R", "fields": [{"name": "N", "type": "int"}, {"name": "o", "type": "int"}]}"#;
    fs::write(home.path("schemas/ids/7.avsc"), record)?;
    let subject = r#"{"versions": [{"version": 1, "id": 7}]}"#;
    fs::write(home.path("schemas/subjects/t-value.json"), subject)?;
    let config = home.path("frazil.toml");
    let checked = home.run(&["check", shown(&config)])?;
    assert_eq!(checked["schemas"][0]["unused_fields"], json!(["n.x"]));
    assert_eq!(
        (&checked["valid"], &checked["not_asked"]),
        (&json!(true), &json!([]))
    );
    let mapped = home.run(&["schema", "7", "--topic", "t"])?;
    assert_eq!(mapped["unused_fields"], json!(["n.x"]));

    fs::write(home.path("schemas/ids/7.avsc"), "{")?;
    let output = home.text(&["check", shown(&config)])?;
    let text = String::from_utf8(output.stdout)?;
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("\nproblem: t (subject t-value, latest version): "),
        "{text}"
    );
    Ok(())
}
