//! Records of a broker as Lambda writes them into an event.

use std::time::Duration;

use base64_simd::STANDARD;
use frazil_core::{Error, ErrorKind, Result, TimestampMs, TopicName};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// A record as the broker has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KafkaRecord<'a> {
    pub(crate) topic: &'a str,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    /// Milliseconds since 1970; −1 for none.
    pub(crate) timestamp_ms: i64,
    pub(crate) timestamp_type: TimestampType,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) headers: Vec<(&'a str, Option<&'a [u8]>)>,
}

/// Who set a timestamp, in the words of Kafka's clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum TimestampType {
    #[serde(rename = "CREATE_TIME")]
    CreateTime,
    #[serde(rename = "LOG_APPEND_TIME")]
    LogAppendTime,
    #[serde(rename = "NO_TIMESTAMP_TYPE")]
    None,
}

/// A record's place, and its JSON in the event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EncodedRecord {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) timestamp_ms: Option<i64>,
    pub(crate) json: Vec<u8>,
}

impl EncodedRecord {
    /// One without a timestamp has no age.
    pub(crate) fn is_older_than(&self, limit: Duration, now: TimestampMs) -> bool {
        self.timestamp_ms
            .is_some_and(|at| now.since(TimestampMs(at)) > limit)
    }
}

impl KafkaRecord<'_> {
    pub(crate) fn encode(&self) -> Result<EncodedRecord> {
        let json = serde_json::to_vec(&RecordJson {
            topic: self.topic,
            partition: self.partition,
            offset: self.offset,
            timestamp: self.timestamp_ms,
            timestamp_type: self.timestamp_type,
            key: self.key.map(|key| STANDARD.encode_to_string(key)),
            value: self.value.map(|value| STANDARD.encode_to_string(value)),
            headers: self
                .headers
                .iter()
                .map(|(name, value)| HeaderJson { name, value: *value })
                .collect(),
        });
        Ok(EncodedRecord {
            partition: self.partition,
            offset: self.offset,
            timestamp_ms: (self.timestamp_ms != -1).then_some(self.timestamp_ms),
            json: json.map_err(|error| {
                Error::new(ErrorKind::Internal, "write a record as JSON", error.to_string())
                    .with_source(error)
            })?,
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RecordJson<'a> {
    topic: &'a str,
    partition: i32,
    offset: i64,
    timestamp: i64,
    timestamp_type: TimestampType,
    key: Option<String>,
    value: Option<String>,
    headers: Vec<HeaderJson<'a>>,
}

struct HeaderJson<'a> {
    name: &'a str,
    value: Option<&'a [u8]>,
}

impl Serialize for HeaderJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        // Java's bytes have a sign, and Lambda writes them as they are.
        let signed = |value: &[u8]| value.iter().map(|byte| byte.cast_signed()).collect::<Vec<i8>>();
        map.serialize_entry(self.name, &self.value.map(signed))?;
        map.end()
    }
}

/// What all events of a topic have in common, and how long they become.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EventForm {
    topic: TopicName,
    head: Vec<u8>,
}

/// What closes `records` and the event.
const TAIL: &[u8] = b"}}";

impl EventForm {
    /// Of a self-managed cluster, which is what a broker without an ARN is.
    pub(crate) fn new(topic: TopicName, bootstrap_servers: &str) -> Self {
        let servers = serde_json::Value::from(bootstrap_servers);
        let head = format!(r#"{{"eventSource":"SelfManagedKafka","bootstrapServers":{servers},"records":{{"#);
        Self {
            topic,
            head: head.into_bytes(),
        }
    }

    /// `topic-partition`, as the keys of `records` and the items of an answer name it.
    pub(crate) fn topic_partition(&self, partition: i32) -> String {
        format!("{}-{partition}", self.topic)
    }

    /// The event of these records, which are in order of partition and offset.
    pub(crate) fn event(&self, records: &[EncodedRecord]) -> Vec<u8> {
        let mut event = self.head.clone();
        for (index, of_partition) in records.chunk_by(|a, b| a.partition == b.partition).enumerate() {
            let partition = of_partition.first().map_or(0, |record| record.partition);
            let separator = if index > 0 { "," } else { "" };
            event.extend(format!("{separator}\"{}\":[", self.topic_partition(partition)).into_bytes());
            for (index, record) in of_partition.iter().enumerate() {
                if index > 0 {
                    event.push(b',');
                }
                event.extend_from_slice(&record.json);
            }
            event.push(b']');
        }
        event.extend_from_slice(TAIL);
        event
    }

    /// What every event has beside its partitions.
    pub(crate) fn envelope_bytes(&self) -> usize {
        self.head.len() + TAIL.len()
    }

    /// What a partition adds beside its records: its key, quotes, a colon, brackets and a comma.
    pub(crate) fn partition_bytes(&self, partition: i32) -> usize {
        self.topic_partition(partition).len() + 6
    }

    /// What a record adds, with its comma.
    pub(crate) fn record_bytes(record: &EncodedRecord) -> usize {
        record.json.len() + 1
    }
}

#[cfg(test)]
mod tests;
