//! What `frazil schema` says before anything is deployed is what the table becomes.

use std::fs;

use anyhow::Result;
use frazil_tests::{frazil, repository, run_frazil};
use serde_json::{Value, json};

fn columns(schema: &Value) -> Vec<(String, Value)> {
    let fields = schema["fields"].as_array().unwrap().iter();
    fields
        .map(|field| (field["name"].as_str().unwrap().to_owned(), field["type"].clone()))
        .collect()
}

/// The golden results were written by somebody else than the command.
#[test]
fn the_schema_of_the_orders_has_the_columns_of_their_table() -> Result<()> {
    let home = tempfile::tempdir()?;
    let schemas = repository().join("events/schemas");
    let by_id = run_frazil(
        home.path(),
        &[
            "schema".as_ref(),
            "8".as_ref(),
            "--schemas".as_ref(),
            schemas.as_os_str(),
        ],
    )?;
    let by_file = run_frazil(
        home.path(),
        &["schema".as_ref(), schemas.join("ids/8.avsc").as_os_str()],
    )?;
    assert_eq!(by_id, by_file);
    assert_eq!(by_id["findings"], json!([]));
    let golden: Value = serde_json::from_str(&fs::read_to_string(
        repository().join("events/golden/orders-avro.json"),
    )?)?;
    let golden = golden["columns"].as_array().unwrap().iter();
    let scalar = |data_type: &Value| data_type.is_string();
    let expected: Vec<(String, Value)> = golden
        .map(|column| {
            (
                column["name"].as_str().unwrap().to_owned(),
                column["type"].clone(),
            )
        })
        .filter(|(_, data_type)| scalar(data_type))
        .map(|(name, data_type)| (name, json!(data_type.as_str().unwrap().replace(", ", ","))))
        .collect();
    let found: Vec<(String, Value)> = columns(&by_id["schema"])
        .into_iter()
        .filter(|(_, data_type)| scalar(data_type))
        .map(|(name, data_type)| (name, json!(data_type.as_str().unwrap().replace(", ", ","))))
        .collect();
    assert_eq!(found, expected);
    Ok(())
}

#[test]
fn a_new_version_is_accepted_or_refused() -> Result<()> {
    let home = tempfile::tempdir()?;
    let ids = repository().join("events/schemas/ids");
    let (old, new) = (ids.join("7.avsc"), ids.join("8.avsc"));
    let accepted = run_frazil(
        home.path(),
        &["schema".as_ref(), old.as_os_str(), new.as_os_str()],
    )?;
    assert_eq!(
        (&accepted["accepted"], &accepted["added"]),
        (&json!(true), &json!(["/channel"]))
    );

    let narrow = home.path().join("narrow.avsc");
    fs::write(
        &narrow,
        fs::read_to_string(&old)?.replace("\"long\"", "\"string\""),
    )?;
    let refused = frazil()?.arg("schema").args([&old, &narrow]).output()?;
    let text = String::from_utf8(refused.stdout)?;
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(
        text.contains("/number: long in the table, string in the schema"),
        "{text}"
    );
    Ok(())
}
