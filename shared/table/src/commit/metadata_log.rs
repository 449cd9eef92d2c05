//! Earlier metadata files: how many the metadata log names, and which ones have outlived their use.

use std::collections::HashSet;
use std::time::Duration;

use frazil_core::TimestampMs;
use iceberg::spec::{MetadataLog, TableMetadata};

use crate::metadata::METADATA_LOG_LENGTH;

/// The property by which Iceberg bounds the metadata log.
pub(super) const LENGTH_PROPERTY: &str = "write.metadata.previous-versions-max";

/// The most entries of the log, whatever the retention: at 150 bytes each they are 300 kB of every metadata.json.
const MAX_LENGTH: usize = 2_000;

/// How many entries the log needs so that no file younger than `keep_for` leaves it, in steps, so that the property
/// rarely changes.
pub(super) fn length(metadata: &TableMetadata, now: TimestampMs, keep_for: Duration) -> usize {
    let young = metadata
        .metadata_log()
        .iter()
        .filter(|entry| !is_old(entry, now, keep_for))
        .count();
    ((young + 1).div_ceil(METADATA_LOG_LENGTH) * METADATA_LOG_LENGTH).min(MAX_LENGTH)
}

/// Files that left the log with `after` and are old enough to go.
pub(super) fn outlived(
    before: &TableMetadata,
    after: &TableMetadata,
    now: TimestampMs,
    keep_for: Duration,
) -> Vec<String> {
    let kept: HashSet<&str> = after
        .metadata_log()
        .iter()
        .map(|entry| entry.metadata_file.as_str())
        .collect();
    before
        .metadata_log()
        .iter()
        .filter(|entry| !kept.contains(entry.metadata_file.as_str()) && is_old(entry, now, keep_for))
        .map(|entry| entry.metadata_file.clone())
        .collect()
}

fn is_old(entry: &MetadataLog, now: TimestampMs, keep_for: Duration) -> bool {
    now.since(TimestampMs(entry.timestamp_ms)) >= keep_for
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Duration = Duration::from_secs(3_600);

    /// Metadata whose log has one entry a minute, the newest at `newest_minute`.
    fn with_log(entries: i64, newest_minute: i64) -> TableMetadata {
        let log: Vec<serde_json::Value> = (0..entries)
            .map(|age| newest_minute - age)
            .rev()
            .map(|minute| serde_json::json!({"metadata-file": format!("m{minute}"), "timestamp-ms": minute * 60_000}))
            .collect();
        let metadata = serde_json::json!({
            "format-version": 2, "table-uuid": "00000000-0000-0000-0000-000000000001", "location": "memory://t",
            "last-sequence-number": 0, "last-updated-ms": newest_minute * 60_000, "last-column-id": 1,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": [
                {"id": 1, "name": "a", "required": false, "type": "long"}]}],
            "current-schema-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "default-spec-id": 0,
            "last-partition-id": 999, "sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0,
            "metadata-log": log,
        });
        serde_json::from_value(metadata).unwrap()
    }

    #[test]
    fn the_log_is_long_enough_for_the_retention_and_bounded() {
        let now = TimestampMs(10_000 * 60_000);
        assert_eq!(length(&with_log(50, 10_000), now, KEEP), 100);
        assert_eq!(length(&with_log(300, 10_000), now, KEEP), 100); // 60 are younger than an hour
        assert_eq!(
            length(&with_log(300, 10_000), now, Duration::from_secs(5 * 3_600)),
            400
        );
        assert_eq!(
            length(&with_log(5_000, 10_000), now, Duration::from_secs(90 * 86_400)),
            2_000
        );
    }

    #[test]
    fn only_what_left_the_log_and_is_old_goes() {
        let now = TimestampMs(1_000 * 60_000);
        let before = with_log(70, 1_000);
        assert_eq!(outlived(&before, &with_log(69, 1_000), now, KEEP), ["m931"]);
        assert_eq!(outlived(&before, &with_log(30, 1_000), now, KEEP).len(), 10); // m931 … m940, an hour old
        assert!(outlived(&before, &before, now, KEEP).is_empty());
    }
}
