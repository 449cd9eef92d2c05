//! Many processes on one warehouse: nothing is lost and nothing is there twice (I1, I2).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use frazil_local::DATABASE_FILE;
use frazil_tests::{Reader, Scene, compare, footers, frazil, json_record, repository, run_frazil};
use futures::future::join_all;
use serde_json::{Map, Value};

pub(crate) const INGESTS: usize = 8;
const FUNCTIONS: i32 = 100;
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
/// As many functions as Lambda starts at once meet records with a new field: the table's schema changes once, and no
/// record is lost.
#[tokio::test]
async fn a_hundred_functions_meet_a_schema_at_once() -> Result<()> {
    let scene = Scene::in_memory();
    scene.ingest(&[(0, vec![json_record(0, &[("id", "0")])])]).await?;
    scene.commit().await?;
    let event = |partition: i32| vec![(partition, vec![json_record(1, &[("id", "1"), ("note", "new")])])];
    let events: Vec<_> = (0..FUNCTIONS).map(event).collect();
    let ingested = join_all(events.iter().map(|event| scene.ingest(event))).await;
    for report in ingested {
        ensure!(report?.failures().count() == 0);
    }
    let report = scene.commit().await?;
    ensure!(
        report.suspended.is_empty() && report.waiting.is_empty(),
        "{report:?}"
    );
    let table = scene.truth.load_existing(&scene.table()).await?;
    ensure!(
        table.metadata.schemas_iter().count() == 2,
        "{:?}",
        table.metadata.schemas_iter().count()
    );
    let rows = scene.rows().await.map_err(anyhow::Error::msg)?;
    ensure!(rows.len() == FUNCTIONS as usize + 1, "{}", rows.len());
    Ok(())
}

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
