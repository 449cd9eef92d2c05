use std::collections::HashMap;

use bytes::Bytes;
use frazil_core::{Error, ErrorKind, Result, TimestampMs};
use iceberg::spec::{TableMetadata, TableMetadataBuilder};

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
    let json = |e: serde_json::Error| {
        Error::new(ErrorKind::Internal, "write the table's metadata", e.to_string()).with_source(e)
    };
    let (metadata, bytes) = if built.last_updated_ms() == now.0 {
        let bytes = serde_json::to_vec(&built).map_err(json)?;
        (built, bytes)
    } else {
        let mut value = serde_json::to_value(&built).map_err(json)?;
        value["last-updated-ms"] = now.0.into();
        // A snapshot that becomes current again is noted with the machine's time too.
        let noted = value["snapshot-log"].as_array_mut().into_iter().flatten();
        for entry in noted.filter(|entry| entry["timestamp-ms"] == built.last_updated_ms()) {
            entry["timestamp-ms"] = now.0.into();
        }
        (
            serde_json::from_value(value.clone()).map_err(json)?,
            serde_json::to_vec(&value).map_err(json)?,
        )
    };
    let version = previous.map_or(0, |table| version_of(&table.pointer.metadata_location) + 1);
    let id = warehouse.environment.new_uuid();
    let location = format!("{}/metadata/{version:05}-{id}.metadata.json", metadata.location());
    warehouse.storage.put(&location, Bytes::from(bytes), None).await?;
    Ok((location, metadata))
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
    use super::*;

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
