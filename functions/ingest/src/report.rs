use std::time::Duration;

use frazil_core::{Epoch, Offset, SourceName, TableName, TopicName, TopicPartition};
use frazil_kafka::Record;
use frazil_table::Staged;
use serde::Serialize;

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct IngestReport {
    /// One entry per topic, ascending.
    pub topics: Vec<TopicReport>,
}

/// What became of one topic's records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopicReport {
    /// The cluster.
    pub source: SourceName,
    /// The topic.
    pub topic: TopicName,
    /// Its life.
    pub epoch: Epoch,
    /// The table that the topic feeds; where each type has a table of its own, the one of what has no type.
    pub table: TableName,
    /// Every table that got something of the event.
    pub tables: Vec<TableReport>,
    /// Records of the topic in the event.
    pub records: u64,
    /// Bytes of keys and values as Kafka holds them.
    pub bytes: u64,
    /// Rows staged.
    pub rows: u64,
    /// Dead letters staged.
    pub dead_letters: u64,
    /// Records skipped, because the topic says `on_error = "skip"`.
    pub skipped: u64,
    /// Data files written.
    pub files: u64,
    /// Their size.
    pub file_bytes: u64,
    /// What happened to the records as a whole.
    #[serde(flatten)]
    pub outcome: TopicOutcome,
    /// Where records must be delivered again: they and what follows were not taken.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
    /// How long it took.
    #[serde(skip)]
    pub took: Took,
}

/// How long a topic's records took, to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Took {
    /// To look up schemas and decode.
    pub decode: Duration,
    /// To make tables ready, and to write data files and descriptors.
    pub write: Duration,
}

/// What one table got of one topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableReport {
    /// The table.
    pub table: TableName,
    /// Records of the event that it is the table of.
    pub records: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Rows staged.
    pub rows: u64,
    /// Dead letters staged.
    pub dead_letters: u64,
}

/// What happened to a topic's records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum TopicOutcome {
    /// A descriptor holds them, to be committed.
    Staged {
        /// Whether the table was made or its schema changed for them.
        schema_changed: bool,
    },
    /// The topic is suspended: the event waits as it came.
    Parked {
        /// Why the topic is suspended.
        reason: String,
    },
}

/// The first record of a partition that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The partition.
    pub topic_partition: TopicPartition,
    /// The record.
    pub offset: Offset,
    /// Why.
    pub reason: String,
}

impl TopicReport {
    /// Adds what was staged for one table, of the records that it is the table of.
    pub(crate) fn add<'r>(
        &mut self,
        table: TableName,
        records: impl Iterator<Item = &'r Record<'r>>,
        staged: &Staged,
    ) {
        let mut of_table = TableReport {
            table,
            records: 0,
            bytes: 0,
            rows: staged.rows,
            dead_letters: staged.dead_letters,
        };
        for record in records {
            of_table.records += 1;
            of_table.bytes += size_of(record);
        }
        self.tables.push(of_table);
        self.rows += staged.rows;
        self.files += staged.files;
        self.file_bytes += staged.bytes;
        self.dead_letters += staged.dead_letters;
    }
}

/// Bytes of key and value.
pub(crate) fn size_of(record: &Record<'_>) -> u64 {
    (record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len)) as u64
}

impl IngestReport {
    /// Everything that must be delivered again.
    pub fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.topics.iter().flat_map(|topic| &topic.failures)
    }
}
