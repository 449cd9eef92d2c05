//! Dead letters that can be read after a fix become rows, each once, wherever the retry stops.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use frazil_core::ErrorKind;
use frazil_tests::model::Record;
use frazil_tests::simulation::{FaultPlan, Matrix, Trace, block_on};
use frazil_tests::{
    Reader, Scene, compare, expected_rows, json_record, poison_record, repository, run_frazil,
};
use futures::future::join;

const NARROW: &str = "[topics.events]\ntimestamp_range = [\"2000-01-01\", \"2049-12-31\"]\n";
const WIDE: &str = "[topics.events]\npartition_range = [\"2000-01-01\", \"2099-12-31\"]\n";
const YEAR_2050_MS: i64 = 2_524_608_000_000;

/// A record that only the wide range takes.
fn late_record(offset: i64) -> Record {
    Record {
        timestamp_ms: YEAR_2050_MS + offset,
        ..json_record(offset, &[("id", &offset.to_string()), ("note", "late")])
    }
}

fn batches() -> Vec<(i32, Vec<Record>)> {
    let plain = |offset: i64| json_record(offset, &[("id", &offset.to_string())]);
    vec![
        (0, vec![plain(0), late_record(1), poison_record(2), plain(3)]),
        (1, vec![late_record(0), plain(1)]),
    ]
}

/// A table with three dead letters, two of which could be read by now.
async fn scene(plan: FaultPlan) -> Scene {
    let mut scene = Scene::in_memory_with(plan);
    scene.configure(NARROW).unwrap();
    let plain = scene.without_faults();
    plain.ingest(&batches()).await.unwrap();
    plain.commit().await.unwrap();
    assert_eq!(scene.dead_letters().await.unwrap(), [(0, 1), (0, 2), (1, 0)]);
    scene.configure(WIDE).unwrap();
    scene
}

async fn is_moved(scene: &Scene) -> Result<(), String> {
    let (rows, expected) = (scene.rows().await?, expected_rows(&batches()));
    if rows != expected {
        return Err(format!("rows {rows:?}, expected {expected:?}"));
    }
    let (letters, expected) = (scene.dead_letters().await?, [(0, 2)]);
    if letters != expected {
        return Err(format!("dead letters {letters:?}, expected {expected:?}"));
    }
    let ledger = scene.ledger().await.map_err(|error| error.to_string())?;
    match ledger.retries.as_slice() {
        [] => Ok(()),
        jobs => Err(format!("the ledger still records {jobs:?}")),
    }
}

#[test]
fn what_can_be_read_now_is_moved_and_the_rest_stays() {
    block_on(async {
        let scene = scene(FaultPlan::clean(Trace::default())).await;
        let report = scene.retry().await.unwrap();
        assert_eq!((report.read, report.moved, report.finished), (3, 2, 0));
        is_moved(&scene).await.unwrap();
        let again = scene.retry().await.unwrap();
        assert_eq!((again.read, again.moved, again.snapshots.len()), (1, 0, 0));
        // The event comes again: whatever it holds is there, as rows or as dead letters.
        scene.ingest(&batches()).await.unwrap();
        scene.commit().await.unwrap();
        is_moved(&scene).await.unwrap();
    });
}

#[test]
fn a_retry_can_stop_anywhere() {
    let covered = block_on(Matrix::new("retry").run(
        scene,
        async |scene| {
            scene.retry().await?;
            // Later commits go on as if nothing had been.
            let next = [(0, vec![json_record(4, &[("id", "4")])])];
            scene.ingest(&next).await?;
            scene.commit().await.map(drop)
        },
        async |scene| {
            let rows = scene.rows().await?;
            let mut expected = batches();
            expected[0].1.push(json_record(4, &[("id", "4")]));
            if rows != expected_rows(&expected) {
                return Err(format!("rows {rows:?}"));
            }
            match scene.dead_letters().await?.as_slice() {
                [(0, 2)] => Ok(()),
                letters => Err(format!("dead letters {letters:?}")),
            }
        },
    ));
    let covered = covered.unwrap_or_else(|message| panic!("{message}"));
    println!("{covered}");
    assert!(covered.points > 40, "{covered}");
}

#[test]
fn two_retries_and_a_commit_at_once_move_each_once() {
    block_on(async {
        let scene = scene(FaultPlan::clean(Trace::default())).await;
        let retries = join(scene.retry(), join(scene.retry(), scene.commit()));
        let (one, other) = Box::pin(retries).await;
        for outcome in [one.map(drop), other.0.map(drop), other.1.map(drop)] {
            assert!(outcome.is_ok_and(|()| true));
        }
        is_moved(&scene).await.unwrap();
    });
}

#[test]
fn a_retry_of_a_table_that_is_not_there_names_it() {
    block_on(async {
        let error = Scene::in_memory().retry().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("kafka.events"), "{error}");
    });
}

/// As a user meets it: the schemas were not there, then they are.
#[test]
fn other_engines_read_what_was_moved() -> Result<()> {
    let home = tempfile::tempdir()?;
    let (warehouse, none) = (home.path().join("warehouse"), home.path().join("none"));
    fs::create_dir_all(none.join("ids"))?;
    let config = home.path().join("frazil.toml");
    fs::write(&config, "[defaults.breaker]\nshare = 1.0\n")?;
    let events = repository().join("events");
    let run = |arguments: &[&Path]| {
        let config = [Path::new("--config"), &config];
        run_frazil(&warehouse, &[arguments, &config[..]].concat())
    };
    let p = Path::new;
    run(&[p("run"), &events.join("orders-avro.json"), p("--schemas"), &none])?;
    let listed = run(&[p("dead-letters"), p("orders")])?;
    assert_eq!(listed["counts"]["registry.unknown_schema"], listed["total"]);
    let total = listed["total"].as_u64().unwrap();
    assert!(total > 1_900, "{total}");

    let schemas = events.join("schemas");
    let retried = run(&[
        p("dead-letters"),
        p("orders"),
        p("--retry"),
        p("--schemas"),
        &schemas,
    ])?;
    assert_eq!((&retried["moved"], &retried["left"]), (&total.into(), &0.into()));
    assert_eq!(run(&[p("dead-letters"), p("orders")])?["total"], 0);
    let golden: PathBuf = events.join("golden/orders-avro.json");
    for reader in [Reader::PyIceberg, Reader::DuckDb] {
        println!("{}", compare(reader, &warehouse, &[&golden])?);
    }
    Ok(())
}
