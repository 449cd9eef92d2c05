//! AWS's services behind our own traits: S3 as storage and state store, Glue as catalog and as schema registry.
//!
//! Errors of the SDK become ours here, by their code, before they are text.
//!
//! ```no_run
//! use frazil_aws::{AwsSettings, open_warehouse};
//! use frazil_table::system_environment;
//!
//! # async fn example() -> frazil_core::Result<()> {
//! let settings = AwsSettings::default();
//! let warehouse = open_warehouse("s3://bucket/warehouse", &settings, &system_environment()).await?;
//! let location = format!("{}/hello.txt", warehouse.layout.warehouse());
//! warehouse.storage.put(&location, "hello".into(), None).await?;
//! # Ok(())
//! # }
//! ```

mod account;
mod failure;
mod glue_catalog;
mod glue_schemas;
mod s3;
mod warehouse;

pub use account::{AccessKeys, Account, AccountSettings, AssumedRole};
pub use glue_catalog::GlueCatalog;
pub use glue_schemas::GlueSchemas;
pub use s3::{IfChanged, S3StateStore, S3Storage};
pub use warehouse::{AwsSettings, open_warehouse};
