use base64_simd::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::Record;

/// A record as an event carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
    /// The bytes, `None` for a tombstone.
    pub value: Option<Vec<u8>>,
}

/// An event of Lambda's Kafka event source (self-managed form) with these records, per partition in the order given.
pub fn event_json(topic: &str, batches: &[(i32, Vec<Record>)]) -> Bytes {
    let mut records = Map::new();
    for (partition, batch) in batches {
        let batch: Vec<Value> = batch
            .iter()
            .map(|record| record_json(topic, *partition, record))
            .collect();
        records.insert(format!("{topic}-{partition}"), Value::Array(batch));
    }
    let event = json!({
        "eventSource": "SelfManagedKafka",
        "bootstrapServers": "broker-1:9092,broker-2:9092",
        "records": records,
    });
    Bytes::from(event.to_string())
}

fn record_json(topic: &str, partition: i32, record: &Record) -> Value {
    let encode = |bytes: &[u8]| STANDARD.encode_to_string(bytes);
    json!({
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "timestampType": "CREATE_TIME",
        "key": record.key.as_ref().map(|key| encode(key.as_bytes())),
        "value": record.value.as_deref().map(encode),
        "headers": [],
    })
}

/// Reads an event back; `None` when it is none.
pub fn parse_event(bytes: &[u8]) -> Option<Vec<EventRecord>> {
    let event: Value = serde_json::from_slice(bytes).ok()?;
    let batches = event.get("records")?.as_object()?.values();
    let records = batches
        .map(Value::as_array)
        .collect::<Option<Vec<_>>>()?
        .into_iter()
        .flatten();
    records
        .map(|record| {
            let value = match record.get("value").and_then(Value::as_str) {
                Some(text) => Some(STANDARD.decode_to_vec(text).ok()?),
                None => None,
            };
            Some(EventRecord {
                partition: i32::try_from(record.get("partition")?.as_i64()?).ok()?,
                offset: record.get("offset")?.as_i64()?,
                value,
            })
        })
        .collect()
}
