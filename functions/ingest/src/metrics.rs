use std::time::Duration;

use frazil_core::TimestampMs;
use frazil_telemetry::{Metrics, Unit};

use crate::report::{IngestReport, TopicOutcome, TopicReport};

/// One line per topic, and one for the invocation.
pub(crate) fn of_report(
    now: TimestampMs,
    report: &IngestReport,
    took: Duration,
    is_cold: bool,
) -> Vec<Metrics> {
    let mut lines: Vec<Metrics> = report.topics.iter().map(|topic| of_topic(now, topic)).collect();
    let mut invocation = Metrics::new(now);
    invocation.dimension("function", "ingest");
    invocation.add("event_ms", took.as_millis() as f64, Unit::Milliseconds);
    invocation.add("cold_start", f64::from(u8::from(is_cold)), Unit::Count);
    lines.push(invocation);
    lines
}

fn of_topic(now: TimestampMs, topic: &TopicReport) -> Metrics {
    let mut metrics = Metrics::new(now);
    metrics.dimension("source", topic.source.to_string());
    metrics.dimension("topic", topic.topic.to_string());
    let is_parked = matches!(topic.outcome, TopicOutcome::Parked { .. });
    metrics.add("records", topic.records as f64, Unit::Count);
    metrics.add("bytes", topic.bytes as f64, Unit::Bytes);
    metrics.add("rows_staged", topic.rows as f64, Unit::Count);
    metrics.add("dead_letters", topic.dead_letters as f64, Unit::Count);
    metrics.add("skipped", topic.skipped as f64, Unit::Count);
    metrics.add("files_staged", topic.files as f64, Unit::Count);
    metrics.add("bytes_staged", topic.file_bytes as f64, Unit::Bytes);
    metrics.add("parked", f64::from(u8::from(is_parked)), Unit::Count);
    metrics.add("partitions_refused", topic.failures.len() as f64, Unit::Count);
    metrics.add(
        "decode_ms",
        topic.took.decode.as_millis() as f64,
        Unit::Milliseconds,
    );
    metrics.add(
        "write_ms",
        topic.took.write.as_millis() as f64,
        Unit::Milliseconds,
    );
    metrics
}

/// What a drain did.
pub(crate) fn of_drain(now: TimestampMs, delivered: u64, stopped: usize) -> Metrics {
    let mut metrics = Metrics::new(now);
    metrics.dimension("function", "ingest");
    metrics.add("parked_delivered", delivered as f64, Unit::Count);
    metrics.add("parked_stopped", stopped as f64, Unit::Count);
    metrics
}
