use frazil_core::{RegistryName, SourceName, TableName, TopicName};
use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::duration::DurationMs;
use crate::encoding::{Format, Framing, SchemaSource};
use crate::instant::InstantRange;
use crate::kafka_columns::KafkaColumns;
use crate::layout::{PartitionField, SortField};

/// Everything that is configured about one topic, with all defaults filled in. Plain data, so that it can be
/// frozen in the table's properties and compared with what is configured later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TopicSettings {
    /// The cluster.
    pub source: SourceName,
    /// The topic.
    pub topic: TopicName,
    /// The table that takes its records.
    pub table: TableName,
    /// How values are encoded.
    pub format: Format,
    /// How a value names its schema. Never `auto` where it would be a guess.
    #[serde(default)]
    pub framing: Framing,
    /// Where the schema of values comes from. Always fits `format`: never inference for Avro, or a registry for JSON.
    pub schema: SchemaSource,
    /// Where schemas are looked up; `None`: in the directory that stands for a registry when none is configured.
    #[serde(default)]
    pub registry: Option<RegistryName>,
    /// The full name of the Protobuf message that values are, when they do not say.
    #[serde(default)]
    pub message: Option<String>,
    /// Which of Kafka's own columns the table has.
    pub kafka_columns: KafkaColumns,
    /// How column names are written.
    pub column_case: ColumnCase,
    /// The most leaf columns that inference may make.
    pub max_columns: u32,
    /// The partition spec; empty is an unpartitioned table.
    pub partition_by: Vec<PartitionField>,
    /// The sort order; empty is unsorted.
    pub sort_by: Vec<SortField>,
    /// Instants outside make a record poison.
    pub timestamp_range: InstantRange,
    /// What becomes of a record that cannot be read.
    pub on_error: OnError,
    /// When too many of them suspend the topic; used with [`OnError::DeadLetter`].
    pub breaker: Breaker,
    /// How old a record may get before it is visible.
    pub freshness_ms: DurationMs,
    /// How long the table's past is kept.
    pub retention: Retention,
    /// Whether ranges that arrive may fill old holes.
    pub backfill: bool,
}

choice! {
    /// How column names are written.
    pub enum ColumnCase {
        /// In lowercase, at every level: what Glue, Athena and Lake Formation agree on.
        #[default]
        Lower = "lower",
    }
    later {
        "keep": "names as the schema writes them",
        "snake": "names in snake_case",
    }
}

choice! {
    /// What becomes of a record that cannot be read.
    pub enum OnError {
        /// It goes to the table's dead letters.
        #[default]
        DeadLetter = "dead_letter",
        /// The topic suspends, and what follows is parked until somebody decides.
        Suspend = "suspend",
        /// It is counted, logged and gone.
        Skip = "skip",
    }
    later {}
}

/// Suspends a topic when too many of its records cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Breaker {
    /// The share of records, from 0 to 1, above which the topic suspends.
    pub share: f64,
    /// The number of unreadable records below which it does not.
    pub minimum: u32,
    /// The time over which both are counted.
    pub window_ms: DurationMs,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            share: 0.05,
            minimum: 20,
            window_ms: DurationMs(10 * 60_000),
        }
    }
}

/// How long the table's past is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// The most snapshots kept; those that a tag or branch refers to are not counted.
    pub snapshots: u32,
    /// No snapshot younger than this expires, however many there are.
    pub snapshot_min_age_ms: DurationMs,
    /// How long a metadata.json that has been replaced stays readable.
    pub metadata_ms: DurationMs,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            snapshots: 100,
            snapshot_min_age_ms: DurationMs(3_600_000),
            metadata_ms: DurationMs(6 * 3_600_000),
        }
    }
}
