use iceberg::spec::PrimitiveType;

use crate::{Column, ColumnType};

/// Which of Kafka's own columns a table has. Partition, offset, timestamp and epoch are always there: the
/// protocol needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KafkaColumns {
    /// `_kafka_key`: string; bytes that are not UTF-8 as `base64:…`.
    pub key: bool,
    /// `_kafka_headers`: list of struct of name (string) and value (binary).
    pub headers: bool,
    /// `_kafka_tombstone`: whether the record's value was null.
    pub tombstone: bool,
    /// `_kafka_topic`: needed when several topics share a table.
    pub topic: bool,
    /// `_kafka_timestamp_type`: `CREATE_TIME` or `LOG_APPEND_TIME`.
    pub timestamp_type: bool,
    /// `timestamps = "utc_naive"`: `_kafka_timestamp` is a `timestamp` in UTC.
    pub utc_naive: bool,
}

impl Default for KafkaColumns {
    fn default() -> Self {
        Self {
            key: true,
            headers: true,
            tombstone: true,
            topic: false,
            timestamp_type: false,
            utc_naive: false,
        }
    }
}

impl KafkaColumns {
    /// `_kafka_partition`, int.
    pub const PARTITION: &'static str = "_kafka_partition";
    /// `_kafka_offset`, long.
    pub const OFFSET: &'static str = "_kafka_offset";
    /// `_kafka_timestamp`, timestamptz (or timestamp); null where Kafka says −1.
    pub const TIMESTAMP: &'static str = "_kafka_timestamp";
    /// `_kafka_epoch`, int.
    pub const EPOCH: &'static str = "_kafka_epoch";
    /// `_kafka_key`, string.
    pub const KEY: &'static str = "_kafka_key";
    /// `_kafka_headers`, list of struct.
    pub const HEADERS: &'static str = "_kafka_headers";
    /// `_kafka_tombstone`, boolean.
    pub const TOMBSTONE: &'static str = "_kafka_tombstone";
    /// `_kafka_topic`, string.
    pub const TOPIC: &'static str = "_kafka_topic";
    /// `_kafka_timestamp_type`, string.
    pub const TIMESTAMP_TYPE: &'static str = "_kafka_timestamp_type";
    /// `_kafka_unknown_fields`, string: JSON text of value fields that have no column of their own.
    pub const UNKNOWN_FIELDS: &'static str = "_kafka_unknown_fields";

    /// The columns, in the order in which a new table gets them.
    pub fn columns(&self) -> Vec<Column> {
        use PrimitiveType::{Binary, Boolean, Int, Long, String, Timestamp, Timestamptz};
        let instant = if self.utc_naive { Timestamp } else { Timestamptz };
        let headers = ColumnType::List(Box::new(ColumnType::Struct(vec![
            Column::new("name", ColumnType::Primitive(String)),
            Column::new("value", ColumnType::Primitive(Binary)),
        ])));
        [
            (true, Self::PARTITION, ColumnType::Primitive(Int)),
            (true, Self::OFFSET, ColumnType::Primitive(Long)),
            (true, Self::TIMESTAMP, ColumnType::Primitive(instant)),
            (true, Self::EPOCH, ColumnType::Primitive(Int)),
            (self.key, Self::KEY, ColumnType::Primitive(String)),
            (self.headers, Self::HEADERS, headers),
            (self.tombstone, Self::TOMBSTONE, ColumnType::Primitive(Boolean)),
            (self.topic, Self::TOPIC, ColumnType::Primitive(String)),
            (
                self.timestamp_type,
                Self::TIMESTAMP_TYPE,
                ColumnType::Primitive(String),
            ),
        ]
        .into_iter()
        .filter(|(wanted, ..)| *wanted)
        .map(|(_, name, data_type)| Column::new(name, data_type))
        .collect()
    }
}
