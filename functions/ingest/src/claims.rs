use std::collections::BTreeMap;

use frazil_core::{Error, Offset, OffsetRange, Partition, Result, TimestampMs};
use frazil_kafka::{PartitionBatch, Record};
use frazil_table::dead_letters::DeadLetter;
use frazil_table::{Anchor, Claim};

/// What an event claims of each partition: everything before `stop`, the first offset that is not taken.
pub(crate) fn claims(
    batches: &[&PartitionBatch<'_>],
    stops: &BTreeMap<Partition, Offset>,
    dead: &BTreeMap<Partition, u64>,
    skipped: &BTreeMap<Partition, u64>,
) -> Result<Vec<Claim>> {
    let mut claims = Vec::with_capacity(batches.len());
    for batch in batches {
        let partition = batch.topic_partition.partition;
        let stop = stops.get(&partition).copied().unwrap_or(Offset(i64::MAX));
        let records: Vec<&Record<'_>> = batch
            .records
            .iter()
            .take_while(|record| record.offset < stop)
            .collect();
        let (Some(first), Some(last)) = (records.first(), records.last()) else {
            continue;
        };
        claims.push(Claim {
            partition,
            range: OffsetRange::new(first.offset, last.offset)?,
            records: records.len() as u64,
            dead_letters: dead.get(&partition).copied().unwrap_or(0),
            skipped: skipped.get(&partition).copied().unwrap_or(0),
            anchors: anchors(&records),
            oldest: records
                .iter()
                .filter_map(|record| record.timestamp_ms)
                .min()
                .map(TimestampMs),
        });
    }
    Ok(claims)
}

fn anchors(records: &[&Record<'_>]) -> Vec<Anchor> {
    let mut anchors = Vec::new();
    let mut previous = None;
    for (index, record) in records.iter().enumerate() {
        if Anchor::is_due(previous, record.offset) || index + 1 == records.len() {
            let timestamp = record.timestamp_ms.map(TimestampMs);
            anchors.push(Anchor::of(record.offset, timestamp, record.key, record.value));
        }
        previous = Some(record.offset);
    }
    anchors
}

/// The headers in which a dead letter keeps what Lambda's registry client said of key and value: without it the record
/// could not be read again after a fix.
pub(crate) const KEY_SCHEMA_HEADER: &str = "frazil.keySchemaMetadata";
pub(crate) const VALUE_SCHEMA_HEADER: &str = "frazil.valueSchemaMetadata";

fn schema_headers(record: &Record<'_>) -> impl Iterator<Item = (String, Option<Vec<u8>>)> {
    let kept = [
        (KEY_SCHEMA_HEADER, &record.key_schema),
        (VALUE_SCHEMA_HEADER, &record.value_schema),
    ];
    kept.into_iter().filter_map(|(name, schema)| {
        let schema = schema.as_ref()?;
        let text = format!("{}:{}", schema.data_format, schema.schema_id);
        Some((name.to_owned(), Some(text.into_bytes())))
    })
}

/// The code of what has none of its own.
pub(crate) const UNREADABLE: &str = "record.unreadable";

/// Why a record cannot be read, in words.
pub(crate) fn reason(error: &Error) -> String {
    let mut reason = error.message().to_owned();
    for (key, value) in error.context() {
        reason.push_str(&format!("; {key}={value}"));
    }
    reason
}

/// A record that cannot be read, as it came.
pub(crate) fn dead_letter(partition: Partition, record: &Record<'_>, error: &Error) -> DeadLetter {
    DeadLetter {
        partition,
        offset: record.offset,
        timestamp: record.timestamp_ms.map(TimestampMs),
        key: record.key.map(<[u8]>::to_vec),
        value: record.value.map(<[u8]>::to_vec),
        headers: record
            .headers
            .iter()
            .map(|header| (header.name.clone().into_owned(), header.value.map(<[u8]>::to_vec)))
            .chain(schema_headers(record))
            .collect(),
        code: error.code().unwrap_or(UNREADABLE).to_owned(),
        reason: reason(error),
    }
}
