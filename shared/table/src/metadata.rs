use std::collections::HashMap;

use bytes::Bytes;
use frazil_core::{Error, ErrorKind, Result, TimestampMs};
use iceberg::spec::{TableMetadata, TableMetadataBuilder};
use serde_json::Value;

use crate::warehouse::{LoadedTable, Warehouse, iceberg_error};

/// How many earlier metadata.json files the metadata log names. The files themselves stay until maintenance removes
/// them by age: a mirror or a reader may hold one.
pub(crate) const METADATA_LOG_LENGTH: usize = 100;

/// A builder on top of what was loaded.
pub(crate) fn rebuild(table: &LoadedTable) -> TableMetadataBuilder {
    let metadata = TableMetadata::clone(&table.metadata);
    metadata.into_builder(Some(table.pointer.metadata_location.clone()))
}

/// A commit's time: never before that of the metadata it replaces, whatever the clocks say.
pub(crate) fn commit_time(now: TimestampMs, metadata: &TableMetadata) -> TimestampMs {
    TimestampMs(now.0.max(metadata.last_updated_ms() + 1))
}

/// Finishes a builder with `now` as the time of the update (the builder asks the machine's clock when no snapshot
/// is added) and writes the file. Its name sorts by version and is this attempt's own.
pub(crate) async fn write_metadata(
    warehouse: &Warehouse,
    builder: TableMetadataBuilder,
    previous: Option<&LoadedTable>,
    now: TimestampMs,
) -> Result<(String, TableMetadata)> {
    let failed = |error| iceberg_error("build the table's metadata", error);
    let built = builder.build().map_err(failed)?.metadata;
    let (metadata, bytes) = dated(built, now)?;
    let version = previous.map_or(0, |table| version_of(&table.pointer.metadata_location) + 1);
    let id = warehouse.environment.new_uuid();
    let location = format!("{}/metadata/{version:05}-{id}.metadata.json", metadata.location());
    warehouse.storage.put(&location, Bytes::from(bytes), None).await?;
    Ok((location, metadata))
}

/// The metadata with `now` as the time of the update, and the text of its file.
fn dated(built: TableMetadata, now: TimestampMs) -> Result<(TableMetadata, Vec<u8>)> {
    let json = |e: serde_json::Error| {
        Error::new(ErrorKind::Internal, "write the table's metadata", e.to_string()).with_source(e)
    };
    if built.last_updated_ms() == now.0 && !built.history().is_empty() {
        let bytes = serde_json::to_vec(&built).map_err(json)?;
        return Ok((built, bytes));
    }
    let mut value = serde_json::to_value(&built).map_err(json)?;
    value["last-updated-ms"] = now.0.into();
    match &mut value["snapshot-log"] {
        // A snapshot that becomes current again is noted with the machine's time too.
        Value::Array(noted) => {
            for entry in noted {
                if entry["timestamp-ms"] == built.last_updated_ms() {
                    entry["timestamp-ms"] = now.0.into();
                }
            }
        }
        // Before the first snapshot the library writes null, which PyIceberg does not take for a list.
        log => *log = Value::Array(Vec::new()),
    }
    let bytes = serde_json::to_vec(&value).map_err(json)?;
    Ok((serde_json::from_value(value).map_err(json)?, bytes))
}

/// Properties that every table of ours has, next to its own.
pub(crate) fn common_properties() -> HashMap<String, String> {
    [
        ("write.format.default", "parquet".to_owned()),
        ("write.parquet.compression-codec", "zstd".to_owned()),
        (
            "write.metadata.previous-versions-max",
            METADATA_LOG_LENGTH.to_string(),
        ),
        (
            crate::properties::FORMAT,
            crate::properties::FORMAT_NUMBER.to_string(),
        ),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect()
}

/// The number that a metadata file's name starts with: `00012-….metadata.json`, or `v12.metadata.json`.
fn version_of(location: &str) -> u64 {
    let name = location.rsplit('/').next().unwrap_or_default();
    let digits: String = name
        .trim_start_matches('v')
        .chars()
        .take_while(char::is_ascii_digit)
        .take(18)
        .collect();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use iceberg::spec::{FormatVersion, Schema, SortOrder, UnboundPartitionSpec};

    use super::*;

    #[test]
    fn a_table_without_snapshots_has_an_empty_log_of_them() {
        let built = TableMetadataBuilder::new(
            Schema::builder().build().unwrap(),
            UnboundPartitionSpec::default(),
            SortOrder::unsorted_order(),
            "s3://b/t".to_owned(),
            FormatVersion::V2,
            HashMap::new(),
        )
        .unwrap()
        .build()
        .unwrap()
        .metadata;
        for now in [TimestampMs(7), TimestampMs(built.last_updated_ms())] {
            let (metadata, bytes) = dated(built.clone(), now).unwrap();
            let text: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(text["snapshot-log"], Value::Array(Vec::new()));
            assert_eq!(text["last-updated-ms"], now.0);
            assert_eq!(metadata.last_updated_ms(), now.0);
        }
    }

    #[test]
    fn reads_the_version_of_any_writer() {
        for (location, version) in [
            ("s3://b/t/metadata/00012-0190.metadata.json", 12),
            ("s3://b/t/metadata/v7.metadata.json", 7),
            ("s3://b/t/metadata/whatever.json", 0),
            (
                "s3://b/t/metadata/99999999999999999999999.json",
                999_999_999_999_999_999,
            ),
            ("", 0),
        ] {
            assert_eq!(version_of(location), version, "{location}");
        }
    }
}
