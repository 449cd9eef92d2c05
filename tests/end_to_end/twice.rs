//! Twice is once: whatever is delivered again, and however it is cut the second time, the table is what one clean run
//! makes of it (I2), and what another engine has erased does not come back.

use std::ffi::OsString;
use std::time::Duration;

use frazil_table::{CommitReport, Judgement, MAX_HOLES};
use frazil_tests::model::{Record, VisibleRow};
use frazil_tests::{Scene, expected_rows, json_record, run_python};

type Event = Vec<(i32, Vec<Record>)>;

const BACKFILL: &str = "[defaults]\nbackfill = true\n";

/// The log's records of one partition. Even ones have one column, odd ones another.
fn records(partition: i32, offsets: impl IntoIterator<Item = i64>) -> (i32, Vec<Record>) {
    let record = |offset: i64| {
        let name = if offset % 2 == 0 { "even" } else { "odd" };
        let text = format!("{partition}/{offset}");
        json_record(offset, &[("id", &offset.to_string()), (name, &text)])
    };
    (partition, offsets.into_iter().map(record).collect())
}

/// An event with these offsets of both partitions.
fn event(first: i64, last: i64) -> Event {
    vec![records(0, first..=last), records(1, first..=last)]
}

/// The rows of both partitions from `first` to `last`.
fn rows(first: i64, last: i64) -> Vec<VisibleRow> {
    expected_rows(&event(first, last))
}

fn quiet(report: &CommitReport) {
    assert_eq!(report.suspended, []);
    assert_eq!(report.waiting, []);
    assert_eq!(report.quarantined, []);
}

async fn deliver(scene: &Scene, event: &Event) -> CommitReport {
    scene.ingest(event).await.unwrap();
    let report = scene.commit().await.unwrap();
    quiet(&report);
    report
}

#[tokio::test]
async fn the_same_event_again() {
    for commit_between in [true, false] {
        let scene = Scene::in_memory();
        scene.ingest(&event(0, 29)).await.unwrap();
        if commit_between {
            scene.commit().await.unwrap();
        }
        let report = deliver(&scene, &event(0, 29)).await;
        let judgements: Vec<Judgement> = report.dropped.iter().map(|(_, why)| *why).collect();
        assert_eq!(
            judgements,
            [Judgement::Proved],
            "commit between: {commit_between}"
        );
        assert_eq!(scene.rows().await.unwrap(), rows(0, 29));
        assert_eq!(scene.listed("_frazil/dropped/").await.unwrap().len(), 1);
        assert_eq!(
            scene.listed("_frazil/pending/").await.unwrap(),
            Vec::<String>::new()
        );
    }
}

/// Delivers `first` with one commit, then `second` with one commit or one each, and expects offsets 0 to 29 of both
/// partitions, whatever was where.
async fn check(first: &[(i64, i64)], second: &[(i64, i64)], dropped: usize) {
    for commit_each in [true, false] {
        let scene = Scene::in_memory();
        for (first, last) in first {
            scene.ingest(&event(*first, *last)).await.unwrap();
        }
        let mut found = 0;
        quiet(&scene.commit().await.unwrap());
        for (first, last) in second {
            scene.ingest(&event(*first, *last)).await.unwrap();
            if commit_each {
                let report = scene.commit().await.unwrap();
                quiet(&report);
                found += report.dropped.len();
            }
        }
        let report = scene.commit().await.unwrap();
        quiet(&report);
        found += report.dropped.len();
        let case = format!("{first:?}, then {second:?}, commit each: {commit_each}");
        assert_eq!(scene.rows().await.unwrap(), rows(0, 29), "{case}");
        assert_eq!(found, dropped, "{case}");
        assert_eq!(
            scene.listed("_frazil/pending/").await.unwrap(),
            Vec::<String>::new(),
            "{case}"
        );
    }
}

#[tokio::test]
async fn cut_differently_the_second_time() {
    check(&[(0, 29)], &[(0, 14), (15, 29)], 2).await;
    check(&[(0, 14), (15, 29)], &[(0, 29)], 1).await;
    check(&[(0, 29)], &[(0, 19), (10, 29)], 2).await;
    // Partly new: the rest is dropped, and the whole is kept.
    check(&[(0, 19)], &[(5, 24), (20, 29)], 2).await;
    check(&[(0, 9)], &[(0, 29)], 1).await;
    let single: Vec<(i64, i64)> = (0..=29).map(|offset| (offset, offset)).collect();
    check(&[(0, 29)], &single, 30).await;
    check(&single, &[(0, 29)], 1).await;
}

#[tokio::test]
async fn in_any_order() {
    check(&[(20, 29), (10, 19), (0, 9)], &[(20, 29), (10, 19), (0, 9)], 3).await;
    check(&[(20, 29)], &[(10, 19), (0, 9)], 0).await;
    check(&[], &[(20, 29), (0, 9), (10, 19)], 0).await;
}

#[tokio::test]
async fn a_backfill_fills_a_hole_once() {
    for pieces in [&[(10, 19)][..], &[(5, 24)], &[(15, 19), (10, 14)], &[(0, 29)]] {
        let mut scene = Scene::in_memory();
        deliver(&scene, &event(0, 9)).await;
        deliver(&scene, &event(20, 29)).await;
        scene.wait(Duration::from_secs(2 * 3_600));
        scene.configure(BACKFILL).unwrap();
        for _ in 0..2 {
            for (first, last) in pieces {
                deliver(&scene, &event(*first, *last)).await;
            }
            assert_eq!(scene.rows().await.unwrap(), rows(0, 29), "{pieces:?}");
        }
        let ledger = scene.ledger().await.unwrap();
        let partitions = ledger.logs.iter().flat_map(|log| log.partitions.values());
        assert!(
            partitions.clone().all(|partition| partition.holes.is_empty()),
            "{pieces:?}"
        );
    }
}

/// Every tenth record up to 10 · `MAX_HOLES` + 40, one event and one commit each: more holes than a ledger keeps.
async fn islands(scene: &Scene) -> i64 {
    let last = 10 * i64::try_from(MAX_HOLES).unwrap() + 40;
    for offset in (0..=last).step_by(10) {
        deliver(scene, &event(offset, offset)).await;
    }
    let ledger = scene.ledger().await.unwrap();
    for partition in ledger.logs.iter().flat_map(|log| log.partitions.values()) {
        assert_eq!(partition.holes.len(), MAX_HOLES);
        assert!(!partition.uncertain.is_empty());
    }
    last
}

#[tokio::test]
async fn a_backfill_fills_what_the_ledger_forgot() {
    for piece in [i64::MAX, 7, 1] {
        let mut scene = Scene::in_memory();
        let last = islands(&scene).await;
        scene.configure(BACKFILL).unwrap();
        for _ in 0..2 {
            let mut first = 0;
            while first <= last {
                let end = first.saturating_add(piece - 1).min(last);
                scene.ingest(&event(first, end)).await.unwrap();
                first = end + 1;
            }
            quiet(&scene.commit().await.unwrap());
            assert_eq!(scene.rows().await.unwrap(), rows(0, last), "pieces of {piece}");
        }
    }
}

fn erase(directory: &std::path::Path, offsets: &[i64]) {
    let mut arguments: Vec<OsString> = vec![directory.into(), "kafka.events".into(), "_kafka_offset".into()];
    arguments.extend(offsets.iter().map(|offset| offset.to_string().into()));
    run_python("readers", "erase.py", &arguments).unwrap();
}

fn without(mut rows: Vec<VisibleRow>, erased: &[i64]) -> Vec<VisibleRow> {
    rows.retain(|row| !erased.contains(&row.offset));
    rows
}

#[tokio::test]
async fn what_another_engine_erased_does_not_come_back() {
    let home = tempfile::tempdir().unwrap();
    let mut scene = Scene::in_directory(home.path()).unwrap();
    deliver(&scene, &event(0, 9)).await;
    deliver(&scene, &event(20, 29)).await;
    erase(home.path(), &[3, 25]);
    assert_eq!(scene.rows().await.unwrap().len(), 36);

    deliver(&scene, &event(0, 9)).await;
    deliver(&scene, &event(20, 29)).await;
    scene.configure(BACKFILL).unwrap();
    // Fills the hole, and reaches into what was erased on both sides.
    deliver(&scene, &event(0, 29)).await;
    deliver(&scene, &event(30, 39)).await;
    assert_eq!(scene.rows().await.unwrap(), without(rows(0, 39), &[3, 25]));
}

#[tokio::test]
async fn what_was_erased_where_the_ledger_forgot_does_not_come_back() {
    let home = tempfile::tempdir().unwrap();
    let mut scene = Scene::in_directory(home.path()).unwrap();
    let last = islands(&scene).await;
    let before = scene.rows().await.unwrap();
    let ledger = scene.ledger().await.unwrap();
    let forgotten = &ledger.logs[0].partitions[&frazil_core::Partition(0)].uncertain;
    let erased = (0..=last)
        .step_by(10)
        .find(|offset| forgotten.contains(frazil_core::Offset(*offset)))
        .unwrap();
    erase(home.path(), &[erased]);

    scene.configure(BACKFILL).unwrap();
    for _ in 0..2 {
        deliver(&scene, &event(0, last)).await;
        let rows_now = scene.rows().await.unwrap();
        let offsets: Vec<(i32, i64)> = rows_now.iter().map(|row| (row.partition, row.offset)).collect();
        assert!(offsets.is_sorted_by(|a, b| a < b), "a row is there twice");
        assert!(
            offsets.iter().all(|(_, offset)| *offset != erased),
            "{erased} came back"
        );
        assert!(
            before
                .iter()
                .all(|row| row.offset == erased || rows_now.contains(row))
        );
        // Forgotten offsets count as committed from the moment that rows were erased; exact holes are filled.
        let filled = |offset: i64| offset % 10 != 0 && !forgotten.contains(frazil_core::Offset(offset));
        assert!(
            (0..=last)
                .filter(|offset| filled(*offset))
                .all(|offset| offsets.contains(&(0, offset)))
        );
    }
}
