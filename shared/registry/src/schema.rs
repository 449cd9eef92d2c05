use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use frazil_core::{Result, SchemaId};

/// Where schemas are looked up by the id that a record carries.
#[async_trait]
pub trait SchemaRegistry: Send + Sync + Debug {
    /// The schema of this id. A registry never gives an id to another schema, so the answer may be kept for ever.
    ///
    /// # Errors
    /// `Poison`, code `registry.unknown_schema`, if the registry answers that it has no such id; `Unavailable` if
    /// it cannot answer now; `Invalid` if what it has cannot be used.
    async fn schema(&self, id: SchemaId) -> Result<Arc<RegisteredSchema>>;
}

#[async_trait]
impl<R: SchemaRegistry + ?Sized> SchemaRegistry for Arc<R> {
    async fn schema(&self, id: SchemaId) -> Result<Arc<RegisteredSchema>> {
        (**self).schema(id).await
    }
}

/// A schema as the registry keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredSchema {
    /// Its id.
    pub id: SchemaId,
    /// The language of its text.
    pub kind: SchemaKind,
    /// The schema itself.
    pub text: String,
}

/// The language of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SchemaKind {
    /// Avro, as JSON.
    Avro,
    /// JSON Schema.
    Json,
    /// Protobuf, as a `.proto` file.
    Protobuf,
}

impl SchemaKind {
    /// All kinds, in the order in which a directory is asked for them.
    pub const ALL: [Self; 3] = [Self::Avro, Self::Json, Self::Protobuf];

    /// The name that Confluent's registry uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Avro => "AVRO",
            Self::Json => "JSON",
            Self::Protobuf => "PROTOBUF",
        }
    }

    /// What the names of files of this kind end in.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Avro => "avsc",
            Self::Json => "json",
            Self::Protobuf => "proto",
        }
    }
}
