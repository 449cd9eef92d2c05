//! Source schemas to table columns, and which schema changes a table accepts. Pure: values in, plans out.
//!
//! An [`AvroSchema`], a [`JsonSchema`] or the [`JsonShape`] of an event says which [`Column`]s it wants; [`evolve`] compares them
//! with what the table has and answers what must be committed before rows can be written (promise I8: the schema
//! only grows, and a field id never changes meaning).
//!
//! ```
//! use frazil_schema::{AvroSchema, Evolution, FieldMap, FieldPath, KafkaColumns, evolve};
//!
//! let orders = AvroSchema::parse(
//!     r#"{"type": "record", "name": "Order", "fields": [
//!         {"name": "orderId", "type": "string"},
//!         {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}}
//!     ]}"#,
//! )?;
//! let fields = FieldMap::default();
//! let evolution = evolve(None, 0, &fields, &[orders.columns()], &KafkaColumns::default())?;
//! let Evolution::Changed(change) = evolution else { panic!("a new table") };
//! assert_eq!(change.schema.as_struct().fields()[0].name, "orderid");
//! assert_eq!(change.fields.get(&FieldPath::value().field("total", None)), Some(2));
//! # Ok::<(), frazil_core::Error>(())
//! ```

mod avro;
mod column;
mod evolution;
mod field_map;
mod json_schema;
mod json_shape;
mod kafka_columns;
mod limits;
mod mapping;
mod protobuf;
mod source;

pub use avro::{
    AvroField, AvroSchema, AvroType, MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, MAX_SCHEMA_TYPES, TimestampUnit,
};
pub use column::{Column, ColumnType, RecordPart};
pub use evolution::{Evolution, RefusedChange, SchemaChange, evolve};
pub use field_map::{FieldMap, FieldPath};
pub use json_schema::{JsonField, JsonSchema, JsonType, MAX_REFERENCED_BYTES, MAX_REFERENCES};
pub use json_shape::{JsonScalar, JsonShape, MAX_COLUMN_DEPTH, MAX_COLUMNS};
pub use kafka_columns::KafkaColumns;
pub use limits::{LimitFinding, MAX_COMMENT_CHARS, MAX_NAME_BYTES, MAX_TYPE_BYTES, check_limits};
pub use mapping::{ColumnCase, FieldMapping, HashMethod, Mapping};
pub use protobuf::{
    MAX_PROTOBUF_BYTES, MAX_PROTOBUF_FILES, MessageSelector, ProtobufCardinality, ProtobufEnum,
    ProtobufField, ProtobufFile, ProtobufKind, ProtobufMessage, ProtobufSchema, WellKnown,
};
pub use source::SourceSchema;
