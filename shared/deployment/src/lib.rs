//! Where a deployment's configuration and warehouse are, and how they are opened: in a directory with SQLite, or on S3
//! with Glue. What functions and the command have in common before either does anything.
//!
//! ```
//! use frazil_config::Settings;
//! use frazil_deployment::Deployment;
//! use frazil_table::system_environment;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> frazil_core::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! let settings = Settings::from_env([("FRAZIL_WAREHOUSE", directory.path())])?;
//! let deployment = Deployment::open(&settings, &system_environment()).await?;
//! assert_eq!(deployment.config().await.sources().len(), 1);
//! assert!(deployment.warehouse().layout.warehouse().starts_with("file://"));
//! # Ok(())
//! # }
//! ```

mod answer;
mod configuration;
mod deadline;
mod files;
mod remote;
mod warehouse;

pub use answer::Answer;
pub use configuration::Deployment;
pub use deadline::deadline;
pub use files::FilesOnS3;
pub use remote::{ConfigFiles, Pushed, load_config, push_config};
pub use warehouse::open_warehouse;
