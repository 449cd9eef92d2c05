use serde::{Deserialize, Serialize};

/// Which of Kafka's own columns a table has, beyond `_kafka_partition`, `_kafka_offset`, `_kafka_timestamp` and
/// `_kafka_epoch`, which it always has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KafkaColumns {
    /// `_kafka_key`: the key as a string.
    pub key: bool,
    /// `_kafka_headers`: a list of name and value.
    pub headers: bool,
    /// `_kafka_tombstone`: whether the record had no value.
    pub tombstone: bool,
    /// `_kafka_topic`: the topic's exact name.
    pub topic: bool,
    /// `_kafka_timestamp_type`: who set the timestamp.
    pub timestamp_type: bool,
}

impl Default for KafkaColumns {
    fn default() -> Self {
        Self {
            key: true,
            headers: true,
            tombstone: true,
            topic: false,
            timestamp_type: false,
        }
    }
}

impl KafkaColumns {
    /// Every column that there is.
    pub const ALL: Self = Self {
        key: true,
        headers: true,
        tombstone: true,
        topic: true,
        timestamp_type: true,
    };

    /// The names of the columns, those included that a table always has.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        [
            (true, "_kafka_partition"),
            (true, "_kafka_offset"),
            (true, "_kafka_timestamp"),
            (true, "_kafka_epoch"),
            (self.key, "_kafka_key"),
            (self.headers, "_kafka_headers"),
            (self.tombstone, "_kafka_tombstone"),
            (self.topic, "_kafka_topic"),
            (self.timestamp_type, "_kafka_timestamp_type"),
        ]
        .into_iter()
        .filter_map(|(present, name)| present.then_some(name))
    }
}
