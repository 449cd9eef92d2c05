//! What a commit costs as a table grows: 1,000 commits, one a minute, on a table with 1,000 Kafka partitions.
//!
//! The time is that of the whole commit run on back ends in memory: its own work, without any network. A clock jumps
//! from minute to minute, so that snapshots expire as they would.
//!
//! ```text
//! cargo bench -p frazil-tests --bench growth
//! ```

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use frazil_tests::{Scene, json_record};

const COMMITS: i64 = 1_000;
const PARTITIONS: i32 = 1_000;
const PER_LINE: i64 = 100;
/// Kafka partitions with a record in each later commit.
const BUSY: i32 = 5;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let scene = Scene::in_memory();
    let first = (0..PARTITIONS).map(|partition| (partition, vec![json_record(0, &[("id", "0")])]));
    scene.ingest(&first.collect::<Vec<_>>()).await?;
    scene.commit().await?;

    let mut next = vec![1; usize::try_from(PARTITIONS)?];
    let mut times = Vec::new();
    println!("commits  median ms  slowest ms  metadata.json kB  ledger kB  snapshots  manifests");
    for commit in 2..=COMMITS {
        scene.wait(Duration::from_secs(60));
        let busy = (0..BUSY).map(|nth| {
            (
                (i32::try_from(commit).unwrap_or(0) * BUSY + nth) % PARTITIONS,
                nth,
            )
        });
        let event: Vec<_> = busy
            .map(|(partition, nth)| {
                let offset = &mut next[usize::try_from(partition).unwrap_or(0)];
                *offset += 1;
                (
                    partition,
                    vec![json_record(*offset - 1, &[("id", &nth.to_string())])],
                )
            })
            .collect();
        scene.ingest(&event).await?;
        times.push(timed(&scene).await?);
        if commit % PER_LINE == 0 {
            times.sort_unstable();
            let weight = scene.weight().await?;
            println!(
                "{commit:>7}  {:>9.1}  {:>10.1}  {:>16.1}  {:>9.1}  {:>9}  {:>9}",
                millis(times[times.len() / 2]),
                millis(times[times.len() - 1]),
                kilobytes(weight.metadata_bytes),
                kilobytes(weight.ledger_bytes),
                weight.snapshots,
                weight.manifests,
            );
            times.clear();
            scene.sweep().await?;
        }
    }
    Ok(())
}

#[allow(clippy::disallowed_methods)] // what is measured is the machine
async fn timed(scene: &Scene) -> Result<Duration> {
    let start = Instant::now();
    let report = scene.commit().await?;
    let elapsed = start.elapsed();
    ensure!(report.commits.len() == 1, "{report:?}");
    Ok(elapsed)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

fn kilobytes(bytes: u64) -> f64 {
    bytes as f64 / 1_000.0
}
