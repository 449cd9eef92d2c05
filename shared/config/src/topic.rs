use std::collections::BTreeMap;

use frazil_core::{Error, ErrorKind, RegistryName, Result, SourceName, TableName, TopicName};
use serde::{Deserialize, Serialize};

use crate::choice::choice;
use crate::duration::DurationMs;
use crate::encoding::{Format, Framing, SchemaSource};
use crate::fields::FieldSettings;
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
    /// What becomes of records of different types.
    #[serde(default)]
    pub tables: Tables,
    /// Whether keys become columns of their own.
    #[serde(default)]
    pub key: KeyColumns,
    /// How keys that become columns are encoded.
    #[serde(default)]
    pub key_format: Format,
    /// Which of Kafka's own columns the table has.
    pub kafka_columns: KafkaColumns,
    /// How column names are written.
    pub column_case: ColumnCase,
    /// What instants become.
    #[serde(default)]
    pub timestamps: Timestamps,
    /// What times of day become.
    #[serde(default)]
    pub time_type: TimeType,
    /// Whether a Protobuf oneof has a column that names the member that is set.
    #[serde(default)]
    pub oneof_case: bool,
    /// What becomes of fields that the schema does not have.
    #[serde(default)]
    pub unknown_fields: UnknownFields,
    /// Settings of single fields, by path.
    #[serde(default)]
    pub fields: BTreeMap<String, FieldSettings>,
    /// The environment variable that holds the secret of hashed fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash_key_env: Option<String>,
    /// The most leaf columns that inference may make.
    pub max_columns: u32,
    /// The partition spec; empty is an unpartitioned table.
    pub partition_by: Vec<PartitionField>,
    /// The sort order; empty is unsorted.
    pub sort_by: Vec<SortField>,
    /// Instants outside make a record poison.
    pub timestamp_range: InstantRange,
    /// Instants and dates outside make a record poison if its row is partitioned by them.
    #[serde(default)]
    pub partition_range: InstantRange,
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

impl TopicSettings {
    /// The secret of hashed fields, from this process's environment; none if no field is hashed.
    ///
    /// # Errors
    /// `Invalid` if a field is hashed and the variable that the settings name is not set.
    pub fn hash_secret(&self) -> Result<Option<String>> {
        self.hash_secret_from(|name| std::env::var(name).ok())
    }

    fn hash_secret_from(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<Option<String>> {
        let Some((path, _)) = self.fields.iter().find(|(_, field)| field.hash.is_some()) else {
            return Ok(None);
        };
        let name = self.hash_key_env.as_deref().unwrap_or_default();
        match lookup(name).filter(|value| !value.is_empty()) {
            Some(secret) => Ok(Some(secret)),
            None => Err(Error::new(
                ErrorKind::Invalid,
                "hash a field",
                format!("the variable {name} is not set, and field `{path}` is hashed with its value"),
            )
            .with_context("topic", &self.topic)
            .with_code("settings.hash_key_missing")
            .with_hint("set it where Frazil runs, to at least 16 bytes that nobody can guess")),
        }
    }
}

choice! {
    /// What becomes of a topic's records of different types, told apart by the full names of their schemas.
    pub enum Tables {
        /// There is one type only: with a second one the topic suspends.
        #[default]
        One = "one",
        /// All types go into the topic's table, which gets the columns of all.
        Merged = "merged",
        /// Each type has a table of its own, named after topic and type.
        ByRecordName = "by_record_name",
    }
    later {}
}

choice! {
    /// What becomes of a record's key.
    pub enum KeyColumns {
        /// It is the text of `_kafka_key`.
        #[default]
        Kafka = "kafka",
        /// Its fields are columns too.
        Columns = "columns",
    }
    later {}
}

choice! {
    /// How column names are written.
    pub enum ColumnCase {
        /// In lowercase, at every level: what Glue, Athena and Lake Formation agree on.
        #[default]
        Lower = "lower",
        /// As the schema writes them.
        Keep = "keep",
        /// `orderId` as `order_id`.
        Snake = "snake",
    }
    later {}
}

choice! {
    /// What an instant becomes.
    pub enum Timestamps {
        /// `timestamptz`.
        #[default]
        Utc = "utc",
        /// `timestamp` in UTC, for engines that cannot write `timestamptz`.
        UtcNaive = "utc_naive",
    }
    later {}
}

choice! {
    /// What a time of day becomes.
    pub enum TimeType {
        /// A string `HH:MM:SS.ffffff`.
        #[default]
        String = "string",
        /// Iceberg's `time`, which Athena does not have.
        Time = "time",
    }
    later {}
}

choice! {
    /// What becomes of fields that the schema of a record does not have.
    pub enum UnknownFields {
        /// They are counted and left out.
        #[default]
        Count = "count",
        /// They are kept as JSON text in `_kafka_unknown_fields`.
        Collect = "collect",
        /// Their record cannot be read.
        Fail = "fail",
    }
    later {}
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Config;

    #[test]
    fn the_secret_of_hashed_fields_comes_from_the_variable_that_the_file_names() {
        let settings = |keys: &str| {
            let config = Config::parse(&format!("[topics.t]\n{keys}"), Path::new("f")).unwrap();
            config
                .topic(config.sources()[0].name(), &TopicName::new("t"))
                .unwrap()
        };
        let hashing = settings("hash_key_env = \"MY_KEY\"\nfields.a.hash = \"sha256\"");
        let lookup = |name: &str| (name == "MY_KEY").then(|| "secret".to_owned());
        assert_eq!(
            hashing.hash_secret_from(lookup).unwrap().as_deref(),
            Some("secret")
        );
        let error = hashing.hash_secret_from(|_| Some(String::new())).unwrap_err();
        assert_eq!(
            error.message(),
            "the variable MY_KEY is not set, and field `a` is hashed with its value"
        );
        assert_eq!(error.code(), Some("settings.hash_key_missing"));
        let plain = settings("hash_key_env = \"MY_KEY\"");
        assert_eq!(plain.hash_secret_from(lookup).unwrap(), None);
    }
}
