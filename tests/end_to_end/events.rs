//! Every event of `events/` becomes the table that its golden result describes, as other engines see it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use frazil_tests::{Reader, compare, footers, repository, run_frazil, run_python};
use serde_json::Value;

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
fn every_event_is_replayed() -> Result<()> {
    let replayed = ["clicks-json", "nasty", "orders-avro", "orders-poison-avro"];
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
    let events = event_names()?;
    run_frazil(
        warehouse.path(),
        &std::iter::once("run".into())
            .chain(events.iter().map(|e| event(e)))
            .collect::<Vec<_>>(),
    )?;
    let goldens: Vec<PathBuf> = events.iter().map(|name| golden(name)).collect();
    println!("{}", compare(Reader::Spark, warehouse.path(), &goldens)?);
    Ok(())
}

/// The event once, then the same event again: the same rows, whoever reads them.
fn check(name: &str) -> Result<()> {
    let warehouse = tempfile::tempdir()?;
    for delivery in ["the first delivery", "the second delivery"] {
        run_frazil(warehouse.path(), &[Path::new("run"), &event(name)]).context(delivery)?;
        judge(warehouse.path(), name).context(delivery)?;
    }
    Ok(())
}

fn judge(warehouse: &Path, name: &str) -> Result<()> {
    let golden = golden(name);
    for reader in [Reader::PyIceberg, Reader::DuckDb] {
        println!("{}", compare(reader, warehouse, &[&golden])?);
    }
    let expected: Value = serde_json::from_str(&fs::read_to_string(&golden)?)?;
    let table = expected["table"]
        .as_str()
        .context("the golden file names no table")?;
    println!("{}", footers(warehouse, table)?);
    if expected["dead_letters"]
        .as_array()
        .is_some_and(|letters| !letters.is_empty())
    {
        println!("{}", footers(warehouse, &format!("{table}_dead_letters"))?);
    }
    Ok(())
}

fn event(name: &str) -> PathBuf {
    repository().join("events").join(name).with_extension("json")
}

fn golden(name: &str) -> PathBuf {
    repository()
        .join("events/golden")
        .join(name)
        .with_extension("json")
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
            ensure!(golden(name).is_file(), "{name} has no golden result");
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}
