//! Many processes on one warehouse: nothing is lost and nothing is there twice (I1, I2).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use frazil_local::DATABASE_FILE;
use frazil_tests::{Reader, compare, footers, frazil, repository, run_frazil};
use serde_json::{Map, Value};

pub(crate) const INGESTS: usize = 8;
const COMMITS: usize = 4;

#[test]
fn eight_ingests_and_four_commits_at_once() -> Result<()> {
    let home = tempfile::tempdir()?;
    let warehouse = home.path().join("warehouse");
    let parts = cut(
        &repository().join("events/orders-avro.json"),
        INGESTS,
        home.path(),
    )?;

    let mut processes = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        processes.push(start(
            home.path(),
            &warehouse,
            &["ingest".as_ref(), part.as_path()],
        )?);
        if index % (INGESTS / COMMITS) == 1 {
            // A commit has nothing to say about a warehouse that no ingest has made yet.
            wait_for(&warehouse.join(DATABASE_FILE))?;
            processes.push(start(home.path(), &warehouse, &["commit".as_ref()])?);
        }
    }
    ensure!(
        processes.len() == INGESTS + COMMITS,
        "{} processes were started",
        processes.len()
    );
    for (mut process, log) in processes {
        let status = process.wait()?;
        ensure!(status.success(), "{status}: {}", fs::read_to_string(log)?);
    }

    run_frazil(&warehouse, &["commit"])?;
    run_frazil(&warehouse, &["reconcile", "orders"])?;
    for reader in [Reader::PyIceberg, Reader::DuckDb] {
        compare(
            reader,
            &warehouse,
            &[repository().join("events/golden/orders-avro.json")],
        )?;
    }
    footers(&warehouse, "kafka.orders")?;
    Ok(())
}

fn wait_for(file: &Path) -> Result<()> {
    for _ in 0..10_000 {
        if file.exists() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    bail!("{} is not there after ten seconds", file.display())
}

/// Starts `frazil`, with its output in a file of its own: a full pipe would stop it.
fn start(home: &Path, warehouse: &Path, arguments: &[&Path]) -> Result<(Child, PathBuf)> {
    let (log, path) = tempfile::NamedTempFile::new_in(home)?.keep()?;
    let output: File = log.try_clone()?;
    let mut command = frazil()?;
    command
        .args(arguments)
        .arg("--warehouse")
        .arg(warehouse)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(output);
    Ok((command.spawn()?, path))
}

/// Cuts an event into `count` events: the n-th has the n-th part of each partition. Its schemas go with them.
pub(crate) fn cut(event: &Path, count: usize, home: &Path) -> Result<Vec<PathBuf>> {
    let whole: Value = serde_json::from_str(&fs::read_to_string(event)?)?;
    let partitions = whole["records"].as_object().context("the event has no records")?;
    std::os::unix::fs::symlink(event.with_file_name("schemas"), home.join("schemas"))?;

    let mut parts = Vec::new();
    for part in 0..count {
        let mut records = Map::new();
        for (name, all) in partitions {
            let all = all.as_array().context("records are not an array")?;
            let some = &all[all.len() * part / count..all.len() * (part + 1) / count];
            records.insert(name.clone(), some.to_vec().into());
        }
        let mut event = whole.clone();
        event["records"] = Value::Object(records);
        let path = home.join(format!("part-{part}.json"));
        fs::write(&path, event.to_string())?;
        parts.push(path);
    }
    Ok(parts)
}
