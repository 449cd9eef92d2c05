use crate::{AvroSchema, Column, JsonSchema, ProtobufSchema};

/// A schema that has written records, ready to decode them: in whatever language, it asks for columns.
#[derive(Debug, Clone, PartialEq)]
pub enum SourceSchema {
    /// Avro.
    Avro(AvroSchema),
    /// JSON Schema.
    Json(JsonSchema),
    /// Protobuf.
    Protobuf(ProtobufSchema),
}

impl SourceSchema {
    /// The columns that the schema asks for.
    pub fn columns(&self) -> &[Column] {
        match self {
            Self::Avro(schema) => schema.columns(),
            Self::Json(schema) => schema.columns(),
            Self::Protobuf(schema) => schema.columns(),
        }
    }

    /// The name of the type that the records are: the full name of an Avro record or a Protobuf message, the title of a
    /// JSON Schema.
    pub fn record_name(&self) -> Option<&str> {
        match self {
            Self::Avro(schema) => schema.name(),
            Self::Json(schema) => schema.title(),
            Self::Protobuf(schema) => Some(schema.name()),
        }
    }
}
