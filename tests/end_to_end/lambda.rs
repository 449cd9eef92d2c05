//! The real binaries of the functions, driven by the Lambda Runtime API.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use frazil_tests::{Reader, binary, compare, repository};
use serde_json::{Value, json};

/// Hands payloads to a function's binary and returns its answers.
fn invoke(function: &str, warehouse: &Path, payloads: &[&Path]) -> Result<Vec<Value>> {
    let mut command = Command::new("python3");
    command
        .arg(repository().join("tests/python/runtime_api.py"))
        .arg(binary(function)?)
        .args(payloads)
        .env("FRAZIL_WAREHOUSE", warehouse)
        .env("FRAZIL_SCHEMAS", repository().join("events/schemas"));
    let done = command.output().context("python3 cannot be started")?;
    let stderr = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{function}: {}\n{stderr}", done.status);
    let answers = String::from_utf8(done.stdout)?;
    answers
        .lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect()
}

/// I1, I2: ingest answers success once the records are staged, and catalog makes them a table; twice is once.
#[test]
fn ingest_and_catalog_answer_lambda() -> Result<()> {
    let home = tempfile::tempdir()?;
    let warehouse = home.path().join("warehouse");
    let event = repository().join("events/orders-avro.json");
    let success = json!({"response": {"batchItemFailures": []}});
    let answers = invoke("frazil-ingest", &warehouse, &[&event, &event])?;
    ensure!(answers == [success.clone(), success], "{answers:?}");

    let commit = home.path().join("commit.json");
    fs::write(&commit, r#"{"operation":"commit"}"#)?;
    let answers = invoke("frazil-catalog", &warehouse, &[&commit])?;
    let table = &answers[0]["response"]["tables"][0];
    ensure!(
        table["table"] == "kafka.orders" && table["rows"] == 2_000 && table["dropped"] == 1,
        "{answers:?}"
    );
    ensure!(answers[0]["response"]["failed"] == 0, "{answers:?}");
    compare(
        Reader::PyIceberg,
        &warehouse,
        &[repository().join("events/golden/orders-avro.json")],
    )?;
    Ok(())
}

/// What is wrong with the input is an error with a stable type, and the function lives on.
#[test]
fn a_bad_event_is_an_error_and_not_the_end() -> Result<()> {
    let home = tempfile::tempdir()?;
    let warehouse = home.path().join("warehouse");
    let bad = home.path().join("bad.json");
    fs::write(&bad, r#"{"eventSource":"aws:sqs","Records":[]}"#)?;
    let event = repository().join("events/nasty.json");
    let answers = invoke("frazil-ingest", &warehouse, &[&bad, &event])?;
    ensure!(answers[0]["error"]["errorType"] == "invalid", "{answers:?}");
    ensure!(
        answers[1] == json!({"response": {"batchItemFailures": []}}),
        "{answers:?}"
    );
    Ok(())
}
