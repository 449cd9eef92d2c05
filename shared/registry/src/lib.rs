//! Schemas by id: from a directory, and cached for the life of the process.
//!
//! ```
//! use frazil_core::SchemaId;
//! use frazil_registry::{CachedRegistry, DirectoryRegistry, SchemaKind, SchemaRegistry};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let folder = tempfile::tempdir().unwrap();
//! std::fs::create_dir(folder.path().join("ids")).unwrap();
//! std::fs::write(folder.path().join("ids/7.avsc"), r#"{"type": "string"}"#).unwrap();
//!
//! let registry = CachedRegistry::new(DirectoryRegistry::new(folder.path()));
//! let schema = registry.schema(SchemaId(7)).await.unwrap();
//! assert_eq!((schema.kind, schema.text.as_str()), (SchemaKind::Avro, r#"{"type": "string"}"#));
//! # });
//! ```

mod cached;
mod directory;
mod schema;

pub use cached::CachedRegistry;
pub use directory::{DirectoryRegistry, MAX_SCHEMA_FILE_BYTES};
pub use schema::{RegisteredSchema, SchemaKind, SchemaRegistry};
