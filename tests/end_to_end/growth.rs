//! A table's age does not make its commits heavier: what each commit has to read and write again is bounded.

use std::time::Duration;

use frazil_table::MANIFESTS_TO_MERGE;
use frazil_tests::{Scene, Weight, json_record};

const PARTITIONS: i32 = 50;
/// Enough for every partition to have as many anchors as a ledger keeps.
const COMMITS: i64 = 200;
/// Snapshots that a table keeps at most; and the metadata log goes back six hours: both are reached when commits come every five minutes.
const SNAPSHOTS: usize = 100;

#[tokio::test]
async fn metadata_stops_growing() {
    let scene = Scene::in_memory();
    let mut weights: Vec<Weight> = Vec::new();
    for commit in 0..COMMITS {
        let event: Vec<_> = (0..PARTITIONS)
            .filter(|partition| commit == 0 || i64::from(*partition) % 10 == commit % 10)
            .map(|partition| {
                let offset = commit / 10 + i64::from(commit > 0 && commit % 10 != 0);
                (
                    partition,
                    vec![json_record(offset, &[("id", &commit.to_string())])],
                )
            })
            .collect();
        scene.ingest(&event).await.unwrap();
        let report = scene.commit().await.unwrap();
        assert_eq!(report.commits.len(), 1, "commit {commit}");
        weights.push(scene.weight().await.unwrap());
        scene.wait(Duration::from_secs(300));
    }
    let last = weights[weights.len() - 1];
    let grown = weights
        .iter()
        .position(|weight| weight.snapshots == SNAPSHOTS)
        .unwrap();
    assert_eq!(grown, SNAPSHOTS - 1);
    for (commit, weight) in weights.iter().enumerate() {
        assert!(weight.snapshots <= SNAPSHOTS, "commit {commit}: {weight:?}");
        assert!(
            weight.manifests <= MANIFESTS_TO_MERGE + 2,
            "commit {commit}: {weight:?}"
        );
    }
    // What is left to grow is digits.
    let settled = weights[weights.len() - 20];
    assert_eq!(settled.snapshots, SNAPSHOTS);
    assert!(
        last.metadata_bytes.abs_diff(settled.metadata_bytes) < 1_000,
        "{settled:?} to {last:?}"
    );
    assert!(
        last.ledger_bytes.abs_diff(settled.ledger_bytes) < 1_000 + settled.ledger_bytes / 20,
        "{settled:?} to {last:?}"
    );
}
