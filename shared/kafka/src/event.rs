use std::borrow::Cow;

use frazil_core::{Error, ErrorKind, Offset, OffsetRange, Result, TopicPartition};

use crate::decode::Decoder;
use crate::json;

/// The largest event that is read, in bytes. Lambda sends 6 MB at most; the rest is room for events in files.
pub const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

/// The most records in one event. Lambda sends 10,000 at most; the rest is room for events in files.
pub const MAX_RECORDS: usize = 250_000;

/// The most headers in one event, over all its records: more than fit into the 6 MB that Lambda can send.
pub const MAX_HEADERS: usize = 1_000_000;

const PARSE: &str = "read the Kafka event";

/// A Kafka event as Lambda delivers it, in order.
#[derive(Debug)]
pub struct Event<'a> {
    /// Where it came from.
    pub origin: Origin,
    /// One batch per topic-partition, sorted by topic, then partition. None is empty.
    pub batches: Vec<PartitionBatch<'a>>,
}

impl Event<'_> {
    /// How many records the event holds, each offset counted once.
    pub fn record_count(&self) -> usize {
        self.batches.iter().map(|batch| batch.records.len()).sum()
    }
}

/// Where an event came from. Only the configuration knows which source that is: neither the ARN nor the list of
/// brokers lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// What sort of event source mapping sent it.
    pub kind: OriginKind,
    /// The cluster's ARN; events from self-managed brokers have none.
    pub source_arn: Option<String>,
    /// The brokers as `host:port`, in the order of the event.
    pub bootstrap_servers: Vec<String>,
}

/// The sort of event source mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OriginKind {
    /// Amazon MSK or MSK Serverless: `aws:kafka`.
    Msk,
    /// Any other broker: `SelfManagedKafka` or `aws:SelfManagedKafka`.
    SelfManaged,
}

/// The records of one topic-partition.
#[derive(Debug)]
pub struct PartitionBatch<'a> {
    /// Topic and partition, from the records' own fields.
    pub topic_partition: TopicPartition,
    /// At least one record, offsets strictly ascending. Gaps are those that Kafka left.
    pub records: Vec<Record<'a>>,
    range: OffsetRange,
}

impl<'a> PartitionBatch<'a> {
    /// The records of a topic-partition, whose offsets must be strictly ascending; `None` without any.
    pub fn new(topic_partition: TopicPartition, records: Vec<Record<'a>>) -> Option<Self> {
        let ascending = records.is_sorted_by(|a, b| a.offset < b.offset);
        let range = OffsetRange::new(records.first()?.offset, records.last()?.offset).ok()?;
        ascending.then_some(Self {
            topic_partition,
            records,
            range,
        })
    }

    /// From the first offset to the last; it bridges the offsets that Kafka skipped.
    pub fn range(&self) -> OffsetRange {
        self.range
    }
}

/// One Kafka record.
#[derive(Debug, Clone, PartialEq)]
pub struct Record<'a> {
    /// Position in the partition.
    pub offset: Offset,
    /// Milliseconds since 1970-01-01 UTC; `None` when missing or −1, Kafka's “no timestamp”.
    pub timestamp_ms: Option<i64>,
    /// Who set the timestamp.
    pub timestamp_type: TimestampType,
    /// The key. Null, missing and empty are all `None`: Lambda does not document how it writes a null key.
    pub key: Option<&'a [u8]>,
    /// The value. Null, missing and empty are all `None`, a tombstone, for the same reason.
    pub value: Option<&'a [u8]>,
    /// The headers in their order; a name may come more than once. Missing and null lists are empty.
    pub headers: Vec<Header<'a>>,
    /// What the mapping's own registry client says about the key, when one is configured.
    pub key_schema: Option<Box<SchemaMetadata<'a>>>,
    /// What the mapping's own registry client says about the value, when one is configured.
    pub value_schema: Option<Box<SchemaMetadata<'a>>>,
}

impl Record<'_> {
    /// Whether the record has no value.
    pub fn is_tombstone(&self) -> bool {
        self.value.is_none()
    }
}

/// Who set a record's timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimestampType {
    /// The producer.
    CreateTime,
    /// The broker.
    LogAppendTime,
    /// Nobody, or the event does not say.
    Unknown,
}

/// A header of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header<'a> {
    /// The name; not unique within a record.
    pub name: Cow<'a, str>,
    /// The value; `None` for null.
    pub value: Option<&'a [u8]>,
}

/// What Lambda's registry client (`SchemaRegistryConfig`) says about a key or value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaMetadata<'a> {
    /// `AVRO`, `JSON` or `PROTOBUF`.
    pub data_format: Cow<'a, str>,
    /// A number (Confluent) or a UUID (Glue), as text.
    pub schema_id: Cow<'a, str>,
}

/// Room for the decoded bytes of one event. An event borrows from it and from the JSON; use it again for the next
/// event to save the allocation.
#[derive(Debug, Default)]
pub struct EventBuffer {
    bytes: Vec<u8>,
}

impl EventBuffer {
    /// Reads an event: O(bytes), one pass, no allocation per record except for its headers.
    ///
    /// Records out of order are sorted, and a record that the event holds twice is kept once. What is refused, as
    /// [`ErrorKind::Invalid`]: JSON that is cut off, wrong or above a bound; an unknown `eventSource`; a key of
    /// `records` that contradicts its records; offsets below 0 or above [`Offset::MAX`]; two different records with
    /// one offset. Unknown fields are ignored.
    pub fn parse<'a>(&'a mut self, event: &'a [u8]) -> Result<Event<'a>> {
        let text = checked_text(PARSE, event)?;
        // Base64 and lists of bytes are longer than what they stand for. Zeroed pages that stay unused cost nothing.
        if self.bytes.len() < text.len() {
            self.bytes = vec![0; text.len()];
        }
        let mut decoder = Decoder::new(&mut self.bytes);
        let head = json::read(text, &mut decoder).map_err(|error| json_error(PARSE, &error))?;
        let origin = origin(PARSE, head)?;
        let batches = decoder
            .into_batches()
            .into_iter()
            .map(|(topic_partition, records)| batch(topic_partition, records))
            .collect::<Result<_>>()?;
        Ok(Event { origin, batches })
    }
}

fn batch<'a>(topic_partition: TopicPartition, mut records: Vec<Record<'a>>) -> Result<PartitionBatch<'a>> {
    if !records.is_sorted_by(|a, b| a.offset < b.offset) {
        records.sort_by_key(|record| record.offset);
        records.dedup();
        if let Some(pair) = records.windows(2).find(|pair| pair[0].offset == pair[1].offset) {
            return Err(Error::new(
                ErrorKind::Invalid,
                PARSE,
                format!(
                    "two different records of {topic_partition} have offset {}",
                    pair[0].offset
                ),
            )
            .with_hint("an event holds records of one log: was it put together from two clusters?"));
        }
    }
    let (first, last) = match records.as_slice() {
        [first, .., last] => (first.offset, last.offset),
        [only] => (only.offset, only.offset),
        [] => {
            return Err(Error::new(
                ErrorKind::Internal,
                PARSE,
                format!("{topic_partition} has no records"),
            ));
        }
    };
    let range = OffsetRange::new(first, last)?;
    Ok(PartitionBatch {
        topic_partition,
        records,
        range,
    })
}

pub(crate) fn origin(operation: &'static str, head: json::Head) -> Result<Origin> {
    let kind = match head.event_source.as_deref() {
        Some("aws:kafka") => OriginKind::Msk,
        Some("SelfManagedKafka" | "aws:SelfManagedKafka") => OriginKind::SelfManaged,
        other => {
            let found = other.map_or("`eventSource` is missing".to_owned(), |other| {
                let shown: String = other.chars().take(100).collect();
                format!("`eventSource` is {shown:?}")
            });
            return Err(Error::new(ErrorKind::Invalid, operation, found)
                .with_hint("a Kafka event says aws:kafka, SelfManagedKafka or aws:SelfManagedKafka"));
        }
    };
    let bootstrap_servers = head.bootstrap_servers.unwrap_or_default();
    Ok(Origin {
        kind,
        source_arn: head.event_source_arn.filter(|arn| !arn.is_empty()),
        bootstrap_servers: bootstrap_servers
            .split(',')
            .map(str::trim)
            .filter(|server| !server.is_empty())
            .map(str::to_owned)
            .collect(),
    })
}

pub(crate) fn checked_text<'a>(operation: &'static str, event: &'a [u8]) -> Result<&'a str> {
    if event.len() > MAX_EVENT_BYTES {
        return Err(Error::new(
            ErrorKind::Invalid,
            operation,
            format!(
                "{} bytes are more than the {MAX_EVENT_BYTES} that are read",
                event.len()
            ),
        )
        .with_hint("Lambda sends 6 MB at most: split the file into several events"));
    }
    std::str::from_utf8(event).map_err(|error| {
        Error::new(
            ErrorKind::Invalid,
            operation,
            format!("it is not JSON: byte {} is not UTF-8", error.valid_up_to()),
        )
        .with_hint("give the event as Lambda delivers it, uncompressed")
        .with_source(error)
    })
}

/// Our own findings arrive as data errors too; serde_json adds line and column to all of them.
pub(crate) fn json_error(operation: &'static str, error: &serde_json::Error) -> Error {
    use serde_json::error::Category;
    let (message, hint) = match error.classify() {
        Category::Eof => (
            format!("the JSON is cut off: {error}"),
            "fetch the whole event again",
        ),
        Category::Syntax => (
            format!("it is not JSON: {error}"),
            "give the event as Lambda delivers it",
        ),
        Category::Data | Category::Io => (error.to_string(), "give the event as Lambda delivers it"),
    };
    Error::new(ErrorKind::Invalid, operation, message).with_hint(hint)
}

#[cfg(test)]
mod tests;
