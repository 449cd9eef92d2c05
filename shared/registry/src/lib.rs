//! Schemas by what records call them: from Confluent's registry or a directory, with all that they refer to, and cached
//! for the life of the process. Glue's registry is in `frazil-aws`.
//!
//! ```
//! use frazil_core::SchemaId;
//! use frazil_registry::{CachedRegistry, DirectoryRegistry, SchemaKind, SchemaRef, SchemaRegistry};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let folder = tempfile::tempdir().unwrap();
//! std::fs::create_dir(folder.path().join("ids")).unwrap();
//! std::fs::write(folder.path().join("ids/7.avsc"), r#"{"type": "string"}"#).unwrap();
//!
//! let registry = CachedRegistry::new(DirectoryRegistry::new(folder.path()));
//! let schema = registry.schema(&SchemaRef::Id(SchemaId(7))).await.unwrap();
//! assert_eq!((schema.kind, schema.text.as_str()), (SchemaKind::Avro, r#"{"type": "string"}"#));
//! # });
//! ```

mod cached;
mod confluent;
mod directory;
pub mod fault;
mod files;
mod references;
mod schema;

pub use cached::CachedRegistry;
pub use confluent::{Auth, ConfluentOptions, ConfluentRegistry, MAX_ANSWER_BYTES};
pub use directory::{DirectoryRegistry, FileSchemas};
pub use files::MAX_SCHEMA_FILE_BYTES;
pub use frazil_kafka::wire::{SchemaRef, SubjectVersion};
pub use references::{MAX_REFERENCE_DEPTH, MAX_REFERENCES, MAX_RESOLVED_BYTES};
pub use schema::{Reference, RegisteredSchema, SchemaKind, SchemaRegistry, StoredSchema};
