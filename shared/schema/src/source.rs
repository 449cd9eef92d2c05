use crate::{AvroSchema, Column, JsonSchema};

/// A schema that has written records, ready to decode them: in whatever language, it asks for columns.
#[derive(Debug, Clone, PartialEq)]
pub enum SourceSchema {
    /// Avro.
    Avro(AvroSchema),
    /// JSON Schema.
    Json(JsonSchema),
}

impl SourceSchema {
    /// The columns that the schema asks for.
    pub fn columns(&self) -> &[Column] {
        match self {
            Self::Avro(schema) => schema.columns(),
            Self::Json(schema) => schema.columns(),
        }
    }
}
