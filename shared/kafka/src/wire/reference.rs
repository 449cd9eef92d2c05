use std::fmt;
use std::path::PathBuf;

use frazil_core::SchemaId;
use uuid::Uuid;

/// What is to be looked up in a registry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SchemaRef {
    /// Confluent's number.
    Id(SchemaId),
    /// Confluent's GUID.
    Guid(Uuid),
    /// Glue's schema version id.
    GlueVersion(Uuid),
    /// Apicurio's number of 8 bytes.
    Apicurio(i64),
    /// A version of a subject (in Glue: of a schema, by its name). No record says this: configurations and references
    /// between schemas do.
    Subject {
        /// The subject.
        subject: String,
        /// Its version.
        version: SubjectVersion,
    },
    /// A file of the machine, in the language that its extension says. Only configurations say this.
    File(PathBuf),
}

impl SchemaRef {
    /// A version of a subject by its number.
    pub fn version(subject: impl Into<String>, number: u32) -> Self {
        Self::Subject {
            subject: subject.into(),
            version: SubjectVersion::Number(number),
        }
    }
}

impl fmt::Display for SchemaRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "id {id}"),
            Self::Guid(guid) => write!(f, "guid {guid}"),
            Self::GlueVersion(version) => write!(f, "Glue schema version {version}"),
            Self::Apicurio(id) => write!(f, "Apicurio id {id}"),
            Self::Subject { subject, version } => write!(f, "subject {subject}, {version}"),
            Self::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

/// A version of a subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubjectVersion {
    /// The newest when it is asked for.
    Latest,
    /// This one, for ever.
    Number(u32),
}

impl fmt::Display for SubjectVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => f.write_str("latest version"),
            Self::Number(number) => write!(f, "version {number}"),
        }
    }
}
