use frazil_core::TimestampMs;
use frazil_table::inspection::TopicStatus;
use frazil_telemetry::{Metrics, Unit};

use crate::handler::TableCommit;
use crate::pending::Work;

/// How much waits, and where nobody looks for it.
pub(crate) fn of_work(now: TimestampMs, work: &Work) -> Metrics {
    let mut metrics = Metrics::new(now);
    metrics.dimension("function", "catalog");
    metrics.add("tables_pending", work.tables.len() as f64, Unit::Count);
    metrics.add("tables_unknown", work.unknown.len() as f64, Unit::Count);
    metrics.add("topics_parked", work.parked.len() as f64, Unit::Count);
    metrics
}

/// One line per table, and one for the run.
pub(crate) fn of_commits(now: TimestampMs, commits: &[TableCommit]) -> Vec<Metrics> {
    let mut lines: Vec<Metrics> = commits.iter().map(|commit| of_commit(now, commit)).collect();
    let mut run = Metrics::new(now);
    run.dimension("function", "catalog");
    run.add("tables_committed", commits.len() as f64, Unit::Count);
    let failed = commits.iter().filter(|commit| commit.result.is_err()).count();
    run.add("tables_failed", failed as f64, Unit::Count);
    lines.push(run);
    lines
}

fn of_commit(now: TimestampMs, commit: &TableCommit) -> Metrics {
    let mut metrics = Metrics::new(now);
    metrics.dimension("table", commit.table.to_string());
    metrics.add("commit_ms", commit.took.as_millis() as f64, Unit::Milliseconds);
    let report = match &commit.result {
        Ok(report) => report,
        Err(error) => {
            metrics.add("commit_failed", 1.0, Unit::Count);
            metrics.property("error", error.to_string());
            return metrics;
        }
    };
    let sum = |of: fn(&frazil_table::Committed) -> u64| report.commits.iter().map(of).sum::<u64>() as f64;
    metrics.add("commit_failed", 0.0, Unit::Count);
    metrics.add("commits", report.commits.len() as f64, Unit::Count);
    metrics.add("conflicts", report.conflicts as f64, Unit::Count);
    metrics.add("rows", sum(|commit| commit.rows), Unit::Count);
    metrics.add("files", sum(|commit| commit.files), Unit::Count);
    metrics.add("file_bytes", sum(|commit| commit.bytes), Unit::Bytes);
    metrics.add("descriptors", sum(|commit| commit.descriptors), Unit::Count);
    metrics.add("dead_letters", report.dead_letters as f64, Unit::Count);
    metrics.add("redeliveries", report.dropped.len() as f64, Unit::Count);
    metrics.add("holes", report.holes as f64, Unit::Count);
    metrics.add("quarantined", report.quarantined.len() as f64, Unit::Count);
    metrics.add("unreadable", report.unreadable.len() as f64, Unit::Count);
    metrics.add("waiting", report.waiting.len() as f64, Unit::Count);
    metrics.add("suspended", report.suspended.len() as f64, Unit::Count);
    if let Some(oldest) = report.oldest_taken {
        metrics.add(
            "freshness_ms",
            now.since(oldest).as_millis() as f64,
            Unit::Milliseconds,
        );
    }
    if let Some(staged) = report.oldest_staged {
        metrics.add(
            "pending_age_ms",
            now.since(staged).as_millis() as f64,
            Unit::Milliseconds,
        );
    }
    metrics
}

/// One line per topic.
pub(crate) fn of_statuses(now: TimestampMs, statuses: &[TopicStatus]) -> Vec<Metrics> {
    let of = |status: &TopicStatus| {
        let mut metrics = Metrics::new(now);
        metrics.dimension("source", status.source.to_string());
        metrics.dimension("topic", status.topic.to_string());
        metrics.add("freshness_ms", status.freshness_ms as f64, Unit::Milliseconds);
        metrics.add(
            "topic_suspended",
            f64::from(u8::from(status.suspended.is_some())),
            Unit::Count,
        );
        metrics.add("parked_events", status.parked.objects as f64, Unit::Count);
        metrics.add(
            "quarantined_descriptors",
            status.quarantine.objects as f64,
            Unit::Count,
        );
        let pending: u64 = status.tables.iter().map(|table| table.pending.objects).sum();
        metrics.add("pending_descriptors", pending as f64, Unit::Count);
        metrics
    };
    statuses.iter().map(of).collect()
}
