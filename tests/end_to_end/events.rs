//! Every event of `events/` becomes the tables that its golden results describe, as other engines see them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use frazil_tests::{Reader, compare, footers, repository, run_frazil, run_frazil_with, run_python};
use serde_json::Value;

/// The secret of hashed fields that the golden results were made with.
const SECRET: (&str, &str) = ("FRAZIL_SECRET_EVENTS", "sixteen bytes or more");

#[test]
fn orders_in_avro() -> Result<()> {
    check("orders-avro")
}

#[test]
fn orders_with_poison() -> Result<()> {
    check("orders-poison-avro")
}

#[test]
fn clicks_in_json() -> Result<()> {
    check("clicks-json")
}

#[test]
fn nasty_records() -> Result<()> {
    check("nasty")
}

#[test]
fn every_row_of_avro() -> Result<()> {
    check_configured("types-avro")
}

#[test]
fn poison_in_avro() -> Result<()> {
    check_configured("poison-avro")
}

#[test]
fn nothing_but_poison() -> Result<()> {
    check_configured("poison-only")
}

#[test]
fn every_row_of_protobuf() -> Result<()> {
    check_configured("types-protobuf")
}

#[test]
fn what_is_different_in_proto2() -> Result<()> {
    check_configured("types-proto2")
}

#[test]
fn what_is_different_in_editions() -> Result<()> {
    check_configured("types-editions")
}

#[test]
fn poison_in_protobuf() -> Result<()> {
    check_configured("poison-protobuf")
}

#[test]
fn every_row_of_json_schema() -> Result<()> {
    check_configured("types-json-schema")
}

#[test]
fn json_schemas_of_draft_4() -> Result<()> {
    check_configured("types-json-draft4")
}

#[test]
fn json_schemas_that_are_no_object() -> Result<()> {
    check_configured("types-json-root")
}

#[test]
fn every_row_of_connects_json() -> Result<()> {
    check_configured("types-connect-json")
}

#[test]
fn poison_in_json_schema() -> Result<()> {
    check_configured("poison-json-schema")
}

#[test]
fn values_without_a_schema() -> Result<()> {
    check_configured("types-raw")
}

#[test]
fn keys_as_columns() -> Result<()> {
    check_configured("types-keys")
}

#[test]
fn a_table_for_each_type() -> Result<()> {
    check_configured("types-routed")
}

#[test]
fn every_framing() -> Result<()> {
    check_configured("framings")
}

#[test]
fn schemas_that_need_others() -> Result<()> {
    check_configured("references")
}

#[test]
fn kafkas_own_columns() -> Result<()> {
    check_configured("types-kafka")
}

#[test]
fn settings_of_fields() -> Result<()> {
    check_configured("types-settings")
}

#[test]
fn times_of_day() -> Result<()> {
    check_configured("types-times")
}

#[test]
fn fields_without_a_column() -> Result<()> {
    check_configured("types-unknown")
}

/// Strings of a megabyte in each language: the event is made here, it is too large to be kept.
#[test]
fn long_strings() -> Result<()> {
    let home = tempfile::tempdir()?;
    let generator = repository().join("events/generate.py");
    run_python(
        "events",
        generator,
        &[Path::new("--large").as_os_str(), home.path().as_os_str()],
    )?;
    let schemas = repository().join("events/schemas");
    let event = home.path().join("large.json");
    let warehouse = home.path().join("warehouse");
    let arguments = [
        "run".as_ref(),
        event.as_os_str(),
        "--schemas".as_ref(),
        schemas.as_os_str(),
    ];
    run_frazil(&warehouse, &arguments)?;
    judge(&warehouse, &goldens_of(home.path(), "large")?)
}

#[test]
fn every_event_is_replayed() -> Result<()> {
    let replayed = [
        "clicks-json",
        "framings",
        "nasty",
        "orders-avro",
        "orders-poison-avro",
        "poison-avro",
        "poison-json-schema",
        "poison-only",
        "poison-protobuf",
        "references",
        "types-avro",
        "types-connect-json",
        "types-editions",
        "types-json-draft4",
        "types-json-root",
        "types-json-schema",
        "types-kafka",
        "types-keys",
        "types-proto2",
        "types-protobuf",
        "types-raw",
        "types-routed",
        "types-settings",
        "types-times",
        "types-unknown",
    ];
    assert_eq!(
        event_names()?,
        replayed,
        "an event without a test of its own, or a test without an event"
    );
    Ok(())
}

#[test]
fn events_and_golden_results_are_what_the_generator_makes() -> Result<()> {
    run_python("events", repository().join("events/generate.py"), &["--check"])?;
    Ok(())
}

/// All golden events in one warehouse, so that Spark has to start only once.
#[test]
#[ignore = "slow: Spark reads every golden event"]
fn spark_reads_every_event() -> Result<()> {
    let warehouse = tempfile::tempdir()?;
    let mut events = event_names()?;
    events.retain(|name| name != "types-times"); // Spark has no `time`
    let arguments: Vec<OsString> = std::iter::once("run".into())
        .chain(events.iter().map(|name| event(name).into()))
        .chain(configured())
        .collect();
    run_frazil_with(warehouse.path(), &arguments, &[SECRET])?;
    let mut goldens = Vec::new();
    for name in &events {
        goldens.extend(goldens_of(&repository().join("events"), name)?);
    }
    println!("{}", compare(Reader::Spark, warehouse.path(), &goldens)?);
    Ok(())
}

/// The event once, then the same event again: the same rows, whoever reads them.
fn check(name: &str) -> Result<()> {
    check_with(name, Vec::new())
}

/// The same, with `events/frazil.toml`.
fn check_configured(name: &str) -> Result<()> {
    check_with(name, configured())
}

fn configured() -> Vec<OsString> {
    vec!["--config".into(), repository().join("events/frazil.toml").into()]
}

fn check_with(name: &str, options: Vec<OsString>) -> Result<()> {
    let warehouse = tempfile::tempdir()?;
    let arguments: Vec<OsString> = ["run".into(), event(name).into()]
        .into_iter()
        .chain(options)
        .collect();
    let goldens = goldens_of(&repository().join("events"), name)?;
    for delivery in ["the first delivery", "the second delivery"] {
        run_frazil_with(warehouse.path(), &arguments, &[SECRET]).context(delivery)?;
        judge(warehouse.path(), &goldens).context(delivery)?;
    }
    Ok(())
}

fn judge(warehouse: &Path, goldens: &[PathBuf]) -> Result<()> {
    for reader in [Reader::PyIceberg, Reader::DuckDb] {
        println!("{}", compare(reader, warehouse, goldens)?);
    }
    for golden in goldens {
        let expected: Value = serde_json::from_str(&fs::read_to_string(golden)?)?;
        let table = expected["table"]
            .as_str()
            .context("the golden file names no table")?;
        let has = |what: &str| expected[what].as_array().is_some_and(|all| !all.is_empty());
        if has("rows") {
            println!("{}", footers(warehouse, table)?);
        }
        if has("dead_letters") {
            println!("{}", footers(warehouse, &format!("{table}_dead_letters"))?);
        }
    }
    Ok(())
}

fn event(name: &str) -> PathBuf {
    repository().join("events").join(name).with_extension("json")
}

/// The golden result of an event, or those of its tables: `golden/NAME.json`, or `golden/NAME/*.json`.
fn goldens_of(events: &Path, name: &str) -> Result<Vec<PathBuf>> {
    let golden = events.join("golden").join(name);
    if golden.with_extension("json").is_file() {
        return Ok(vec![golden.with_extension("json")]);
    }
    let mut goldens = Vec::new();
    for entry in fs::read_dir(&golden).with_context(|| format!("{name} has no golden result"))? {
        goldens.push(entry?.path());
    }
    goldens.sort();
    ensure!(!goldens.is_empty(), "{name} has no golden result");
    Ok(goldens)
}

fn event_names() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(repository().join("events"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let name = path
                .file_stem()
                .and_then(|stem| stem.to_str())
                .context("an event's name is not UTF-8")?;
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}
