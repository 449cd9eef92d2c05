use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use frazil_core::Result;
use frazil_kafka::wire::SchemaRef;

use crate::references::resolve;

/// Where schemas are looked up by what a record, a configuration or another schema calls them.
#[async_trait]
pub trait SchemaRegistry: Send + Sync + Debug {
    /// The schema as it is kept: what it refers to is named, not fetched.
    ///
    /// A registry never gives an id, a GUID or a version's number to another schema, so the answer may be kept for
    /// ever. The latest version of a subject is that of the moment.
    ///
    /// # Errors
    /// `Poison`, code `registry.unknown_schema`, if the registry answers that it has no such schema; `Unavailable` if
    /// it cannot answer now; `Invalid` if what it has cannot be used, or if it cannot have what is asked for.
    async fn stored(&self, reference: &SchemaRef) -> Result<Arc<StoredSchema>>;

    /// The schema with everything that it refers to, to any depth within
    /// [`MAX_REFERENCES`](crate::MAX_REFERENCES) and its sisters. What several refer to is fetched once.
    ///
    /// # Errors
    /// As [`stored`](Self::stored); a reference that leads nowhere or in a circle is `Invalid`.
    async fn schema(&self, reference: &SchemaRef) -> Result<RegisteredSchema> {
        resolve(self, reference).await
    }
}

#[async_trait]
impl<R: SchemaRegistry + ?Sized> SchemaRegistry for Arc<R> {
    async fn stored(&self, reference: &SchemaRef) -> Result<Arc<StoredSchema>> {
        (**self).stored(reference).await
    }
}

/// A schema as the registry keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSchema {
    /// The language of its text.
    pub kind: SchemaKind,
    /// The schema itself.
    pub text: String,
    /// Other schemas that the text needs.
    pub references: Vec<Reference>,
}

/// A schema that another one needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// What the text calls it: the full name of an Avro type, the path of a Protobuf import, the URI of a JSON Schema.
    pub name: String,
    /// Where it is.
    pub target: SchemaRef,
}

/// A schema with everything that it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredSchema {
    /// The language of all its texts.
    pub kind: SchemaKind,
    /// The schema itself.
    pub text: String,
    /// Name and text of every schema that it refers to, directly or not: each once, and after those that it needs
    /// itself.
    pub references: Vec<(String, String)>,
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

    /// The name that registries use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Avro => "AVRO",
            Self::Json => "JSON",
            Self::Protobuf => "PROTOBUF",
        }
    }

    /// The kind of a registry's name for it.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str().eq_ignore_ascii_case(name))
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
