//! Whatever comes in: the message names the thing, the reason and the way out; the exit code is right; nothing
//! panics; and nothing is acknowledged that is not stored.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use base64_simd::STANDARD;
use frazil_tests::{frazil, repository};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What a command came to.
struct Done {
    code: i32,
    said: String,
}

impl Done {
    #[track_caller]
    fn says(&self, code: i32, fragments: &[&str]) {
        assert_eq!(self.code, code, "{}", self.said);
        assert!(!self.said.contains("panicked"), "{}", self.said);
        for fragment in fragments {
            assert!(
                self.said.contains(fragment),
                "{fragment:?} is not in:\n{}",
                self.said
            );
        }
    }
}

/// A folder with an event of two partitions of Avro, its schemas beside it, and a warehouse that is not there yet.
struct Bench {
    home: TempDir,
}

impl Bench {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(repository().join("events/schemas"), home.path().join("schemas")).unwrap();
        Self { home }
    }

    fn warehouse(&self) -> PathBuf {
        self.home.path().join("warehouse")
    }

    /// The first records of two partitions.
    fn event(&self) -> Value {
        let whole = fs::read_to_string(repository().join("events/orders-avro.json")).unwrap();
        let mut event: Value = serde_json::from_str(&whole).unwrap();
        let first = |partition: &str| event["records"][partition].as_array().unwrap()[..3].to_vec();
        let records = json!({"orders-0": first("orders-0"), "orders-1": first("orders-1")});
        event["records"] = records;
        event
    }

    fn write(&self, event: &Value) -> PathBuf {
        self.write_text(&event.to_string())
    }

    fn write_text(&self, text: &str) -> PathBuf {
        let path = self.home.path().join("event.json");
        fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, arguments: &[&str]) -> Done {
        let mut command = frazil().unwrap();
        command
            .args(arguments)
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        let done = command.output().unwrap();
        let said = [done.stdout, done.stderr].concat();
        Done {
            code: done.status.code().unwrap_or(-1),
            said: String::from_utf8_lossy(&said).into_owned(),
        }
    }

    /// Every file of a kind, such as `.json`, in a folder of the warehouse.
    fn files(&self, folder: &str, end: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(&self.warehouse().join(folder), end, &mut found);
        found.sort();
        found
    }
}

fn collect(folder: &Path, end: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, end, found);
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
}

/// An event that is refused as a whole: nothing of it is stored, and a good one is taken afterwards.
fn check_refused(text: &str, code: i32, fragments: &[&str]) {
    let bench = Bench::new();
    bench.write_text(text);
    for command in ["ingest", "run"] {
        bench.run(&[command, "event.json"]).says(code, fragments);
    }
    assert_eq!(bench.files("_frazil", ""), Vec::<PathBuf>::new());
    bench.write(&bench.event());
    bench.run(&["run", "event.json"]).says(0, &["6 rows"]);
}

#[test]
fn an_event_that_is_none() {
    let good = Bench::new().event().to_string();
    let way_out = "give the event as Lambda delivers it";
    check_refused(
        &good[..good.len() - 400],
        2,
        &["event.json", "the JSON is cut off", "fetch the whole event again"],
    );
    check_refused("hello", 2, &["event.json", "it is not JSON", way_out]);
    check_refused("[1]", 2, &["event.json", "expected a Kafka event", way_out]);
    check_refused("", 2, &["event.json", "cannot read the Kafka event"]);
    check_refused(
        r#"{"Records":[]}"#,
        2,
        &["event.json", "missing field `records`", way_out],
    );
}

#[test]
fn a_record_that_is_none() {
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut event = Bench::new().event();
        change(&mut event["records"]["orders-1"][1]);
        event.to_string()
    };
    let way_out = "give the event as Lambda delivers it";
    let no_offset = changed(&|record| {
        record.as_object_mut().unwrap().remove("offset");
    });
    check_refused(&no_offset, 2, &["event.json", "missing field `offset`", way_out]);
    let no_base64 = changed(&|record| record["value"] = "***".into());
    check_refused(
        &no_base64,
        2,
        &["orders-1", "at offset 1001", "is not base64", way_out],
    );
    let too_far = changed(&|record| record["offset"] = i64::MAX.into());
    check_refused(
        &too_far,
        2,
        &["orders-1", "9223372036854775807", "offsets go from 0 to"],
    );
    let negative = changed(&|record| record["offset"] = (-1).into());
    check_refused(&negative, 2, &["orders-1", "offset -1", "offsets go from 0 to"]);
}

#[test]
fn an_unknown_schema_is_a_dead_letter() {
    let bench = Bench::new();
    let mut event = bench.event();
    let value = &mut event["records"]["orders-0"][1]["value"];
    let mut bytes = STANDARD.decode_to_vec(value.as_str().unwrap()).unwrap();
    bytes[1..5].copy_from_slice(&999u32.to_be_bytes());
    *value = STANDARD.encode_to_string(bytes).into();
    bench.write(&event);
    bench
        .run(&["run", "event.json"])
        .says(0, &["5 rows", "1 in kafka.orders_dead_letters"]);
    let columns = "--columns=offset,code,reason";
    bench
        .run(&["show", "kafka.orders_dead_letters", columns, "--output=json"])
        .says(0, &["999"]);
}

#[test]
fn a_registry_that_is_away_refuses_the_event() {
    let bench = Bench::new();
    bench.write(&bench.event());
    let away = bench.run(&["run", "event.json", "--schemas", "elsewhere"]);
    away.says(
        1,
        &[
            "event.json",
            "cannot look up the schema",
            "elsewhere",
            "hint: check the schema directory",
        ],
    );
    assert_eq!(bench.files("_frazil", ""), Vec::<PathBuf>::new());
    bench.run(&["run", "event.json"]).says(0, &["6 rows"]);
}

#[test]
fn a_warehouse_that_is_a_file() {
    let bench = Bench::new();
    bench.write(&bench.event());
    fs::write(bench.warehouse(), "mine").unwrap();
    let refused = bench.run(&["run", "event.json"]);
    refused.says(
        2,
        &[
            "a file is where a directory must be",
            "warehouse",
            "choose another warehouse",
        ],
    );
    assert_eq!(fs::read(bench.warehouse()).unwrap(), b"mine");
}

#[test]
fn metadata_that_is_damaged_or_gone() {
    for damage in ["{\"format-version\":2,", "", "gone"] {
        let bench = Bench::new();
        bench.write(&bench.event());
        bench.run(&["run", "event.json"]).says(0, &["6 rows"]);
        let newest = bench.files("kafka", ".metadata.json").pop().unwrap();
        let good = fs::read(&newest).unwrap();
        if damage == "gone" {
            fs::remove_file(&newest).unwrap();
        } else {
            fs::write(&newest, damage).unwrap();
        }
        let name = newest.file_name().unwrap().to_str().unwrap();
        let mut fragments = vec!["kafka.orders", name, "restore that file"];
        if damage == "gone" {
            fragments.push("there is no such file");
        }
        for command in [
            &["run", "event.json"][..],
            &["commit"],
            &["tables"],
            &["show", "orders"],
            &["reconcile", "orders"],
        ] {
            bench.run(command).says(1, &fragments);
        }
        fs::write(&newest, good).unwrap();
        bench.run(&["run", "event.json"]).says(0, &["kafka.orders"]);
        bench
            .run(&["reconcile", "orders", "--expect-contiguous"])
            .says(0, &[]);
    }
}

#[test]
fn a_descriptor_of_a_newer_version_stops_only_its_partitions() {
    let bench = Bench::new();
    let whole = bench.event();
    let only = |partition: &str| {
        let mut event = whole.clone();
        event["records"] = json!({partition: whole["records"][partition]});
        event
    };
    bench.write(&only("orders-0"));
    bench.run(&["ingest", "event.json"]).says(0, &["3 rows"]);
    let [descriptor] = bench.files("_frazil/pending", ".json").try_into().unwrap();
    let newer = fs::read_to_string(&descriptor)
        .unwrap()
        .replacen("\"format\":1", "\"format\":99", 1);
    fs::write(&descriptor, newer).unwrap();
    let id = descriptor.file_stem().unwrap().to_str().unwrap().to_owned();

    bench.write(&only("orders-1"));
    bench
        .run(&["run", "event.json"])
        .says(0, &["3 rows", &id, "format 99"]);
    bench
        .run(&["pending"])
        .says(0, &[&id, "it has format 99", "upgrade this one", "0:[0, 2]"]);
    // The record that it stops is delivered again, and waits behind it.
    bench.write(&whole);
    bench.run(&["ingest", "event.json"]).says(0, &[]);
    bench.run(&["commit"]).says(0, &[&id]);
    assert!(descriptor.exists());

    bench
        .run(&["pending", "quarantine", &id])
        .says(0, &["is in quarantine", "its files are kept"]);
    bench.run(&["commit"]).says(0, &["3 rows"]);
    bench.run(&["pending"]).says(0, &[&id, "quarantine"]);
    bench
        .run(&["reconcile", "orders", "--expect-contiguous"])
        .says(0, &[]);
}

#[test]
fn offsets_at_the_end_of_the_world() {
    const FAR: i64 = 9_000_000_000_000_000_000;
    let bench = Bench::new();
    let mut event = bench.event();
    for partition in ["orders-0", "orders-1"] {
        for (nth, record) in event["records"][partition]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .enumerate()
        {
            record["offset"] = (FAR + i64::try_from(nth).unwrap()).into();
        }
    }
    event["records"]["orders-1"][2]["offset"] = (i64::MAX - 1).into();
    bench.write(&event);
    for _ in 0..2 {
        bench.run(&["run", "event.json"]).says(0, &["kafka.orders"]);
        let shown = bench.run(&["status", "orders"]);
        shown.says(
            0,
            &[
                "9000000000000000003",
                "9223372036854775807",
                "[0, 8999999999999999999]",
            ],
        );
        bench.run(&["reconcile", "orders"]).says(0, &[]);
    }
}

#[test]
fn a_configuration_with_five_faults() {
    let bench = Bench::new();
    bench.write(&bench.event());
    let config = "format = 1\nwarehous = \"x\"\n[topics.orders]\non_error = \"explode\"\nfreshness = \"soon\"\n\
                  max_columns = -1\npartition_by = [\"week(x)\"]\n";
    fs::write(bench.home.path().join("five.toml"), config).unwrap();
    let faults = [
        "five.toml:2:1: warehous: unknown key; did you mean `warehouse`?",
        "five.toml:4:1: topics.orders.on_error: unknown value \"explode\"; write",
        "five.toml:5:1: topics.orders.freshness: \"soon\" is not a duration; write",
        "five.toml:6:1: topics.orders.max_columns: -1 is not between",
        "five.toml:7:17: topics.orders.partition_by[0]: `week` is not a transform",
    ];
    bench.run(&["check", "five.toml"]).says(2, &faults);
    bench
        .run(&["run", "event.json", "--config", "five.toml"])
        .says(2, &faults);
    assert!(!bench.warehouse().exists());
}
