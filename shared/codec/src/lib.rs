//! Encoded records to Arrow record batches, one topic of one event at a time.
//!
//! Two steps, because a new field needs a metadata-only commit before its rows can be written: [`prepare`] decodes
//! everything and sets poison records aside; then [`Prepared::columns`] says what the table must have, and
//! [`Prepared::to_batch`] gives the rows the table's columns and field ids.
//!
//! ```
//! use frazil_codec::{DecodeOptions, EncodedRecord, Payload, TargetTable, prepare};
//! use frazil_core::{Epoch, Offset, Partition, TopicName};
//! use frazil_schema::{Evolution, FieldMap, KafkaColumns, evolve};
//!
//! let records = [EncodedRecord {
//!     partition: Partition(3),
//!     offset: Offset(100),
//!     timestamp_ms: Some(1_764_500_000_000),
//!     timestamp_type: Some("CREATE_TIME"),
//!     key: Some(b"order-7"),
//!     headers: vec![],
//!     payload: Payload::Json(br#"{"id": 7, "total": 12.5}"#),
//! }];
//! let prepared = prepare(&records, DecodeOptions::default())?;
//! assert!(prepared.poison().is_empty());
//!
//! let (kafka, topic) = (KafkaColumns::default(), TopicName::new("orders"));
//! let columns = prepared.columns(None);
//! let wanted: Vec<_> = columns.iter().map(AsRef::as_ref).collect();
//! let Evolution::Changed(change) = evolve(None, 0, &FieldMap::default(), &wanted, &kafka)? else {
//!     panic!("a new table");
//! };
//! let batch = prepared.to_batch(&TargetTable {
//!     schema: &change.schema,
//!     fields: &change.fields,
//!     kafka: &kafka,
//!     topic: &topic,
//!     epoch: Epoch(0),
//! })?;
//! assert_eq!((batch.num_rows(), batch.num_columns()), (1, 2 + 7));
//! # Ok::<(), frazil_core::Error>(())
//! ```

mod avro;
mod batch;
mod builder;
mod decimal;
mod decoder;
mod fault;
mod hash;
mod instant;
mod json;
mod partitions;
mod prepared;
mod protobuf;
mod record;
#[cfg(test)]
mod tests;
mod text;

pub use batch::TargetTable;
pub use hash::HashKey;
pub use instant::TimestampRange;
pub use prepared::{DecodeOptions, PoisonRecord, Prepared, RawColumn, UnknownFields, prepare};
pub use record::{EncodedRecord, Payload};
