//! `frazil show` reads what the table has become, also from files that were written before.

use std::fs;
use std::path::Path;

use anyhow::Result;
use frazil_tests::run_frazil;
use serde_json::{Value, json};

fn event(offset: i64, value: &Value) -> String {
    let value = base64_simd::STANDARD.encode_to_string(value.to_string());
    json!({
        "eventSource": "SelfManagedKafka", "bootstrapServers": "b:9092",
        "records": {"t-0": [{"topic": "t", "partition": 0, "offset": offset, "timestamp": 1_764_500_000_000_i64,
            "timestampType": "CREATE_TIME", "key": null, "value": value, "headers": []}]},
    })
    .to_string()
}

#[test]
fn lists_and_structs_that_came_later_are_null_in_older_rows() -> Result<()> {
    let home = tempfile::tempdir()?;
    let values = [
        json!({"id": 1, "of": {"a": 1}}),
        json!({"id": 2, "of": {"a": 2, "l": [1, 2]}, "tags": ["x"], "deep": {"s": [{"n": 1}]}}),
        json!({"id": 3, "of": {"a": 3}, "deep": {"s": [{"n": 1, "m": ["y"]}]}}),
    ];
    for (offset, value) in (0..).zip(&values) {
        let file = home.path().join(format!("{offset}.json"));
        fs::write(&file, event(offset, value))?;
        run_frazil(&home.path().join("w"), &[Path::new("run"), &file])?;
    }
    let columns = ["show", "t", "--columns", "id,of,tags,deep"];
    let shown = run_frazil(&home.path().join("w"), &columns)?;
    let expected = json!([
        [1, {"a": 1, "l": null}, null, null],
        [2, {"a": 2, "l": [1, 2]}, ["x"], {"s": [{"n": 1, "m": null}]}],
        [3, {"a": 3, "l": null}, null, {"s": [{"n": 1, "m": ["y"]}]}]
    ]);
    let rows = shown["rows"].as_array().unwrap();
    let found: Vec<Value> = rows
        .iter()
        .map(|row| match row {
            Value::Array(_) => row.clone(),
            row => json!(["id", "of", "tags", "deep"].map(|column| row[column].clone())),
        })
        .collect();
    assert_eq!(json!(found), expected);
    Ok(())
}
