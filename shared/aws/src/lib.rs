//! AWS's services behind our own traits: Glue's schema registry.
//!
//! Errors of the SDK become ours here, by their code, before they are text.
//!
//! ```no_run
//! use frazil_aws::GlueSchemas;
//! use frazil_registry::{CachedRegistry, SchemaRef, SchemaRegistry};
//!
//! # async fn example() -> frazil_core::Result<()> {
//! let registry = CachedRegistry::new(GlueSchemas::new(Some("eu-central-1".to_owned()), "default-registry"));
//! let orders = registry.schema(&SchemaRef::version("orders", 1)).await?;
//! # Ok(())
//! # }
//! ```

mod account;
mod glue_schemas;

pub use glue_schemas::GlueSchemas;
