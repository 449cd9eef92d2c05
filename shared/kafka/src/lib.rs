//! Lambda's Kafka event as batches per topic-partition, in offset order; and the framings that put a schema
//! id in front of a record's bytes.
//!
//! ```
//! use frazil_core::Offset;
//! use frazil_kafka::EventBuffer;
//!
//! let event = br#"{
//!     "eventSource": "aws:kafka",
//!     "bootstrapServers": "b-1.shop.example:9098,b-2.shop.example:9098",
//!     "records": {"web.clicks-v1-0": [
//!         {"topic": "web.clicks-v1", "partition": 0, "offset": 8, "timestamp": -1, "value": ""},
//!         {"topic": "web.clicks-v1", "partition": 0, "offset": 7, "timestamp": 1796040000000,
//!          "key": "dXNlci0x", "value": "eyJwYWdlIjogIi8ifQ==", "headers": [{"trace": [-1, 127]}]}
//!     ]}
//! }"#;
//!
//! let mut buffer = EventBuffer::default();
//! let event = buffer.parse(event)?;
//! let batch = &event.batches[0];
//! assert_eq!(batch.topic_partition.topic.as_str(), "web.clicks-v1");
//! assert_eq!(batch.range().first(), Offset(7));
//! assert_eq!(batch.records[0].value, Some(&br#"{"page": "/"}"#[..]));
//! assert_eq!(batch.records[0].headers[0].value, Some(&[255, 127][..]));
//! assert!(batch.records[1].is_tombstone());
//! # Ok::<(), frazil_core::Error>(())
//! ```

mod decode;
mod event;
mod json;
mod outline;
pub mod wire;

pub use event::{
    Event, EventBuffer, Header, MAX_EVENT_BYTES, MAX_HEADERS, MAX_RECORDS, Origin, OriginKind,
    PartitionBatch, Record, SchemaMetadata, TimestampType,
};
pub use outline::{EventOutline, outline};
