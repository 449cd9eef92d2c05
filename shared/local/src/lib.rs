//! Frazil on one machine: a directory as storage, a SQLite file as catalog and state store.
//!
//! The catalog is the one that PyIceberg's `SqlCatalog` and Iceberg's `JdbcCatalog` open. Any number of processes may
//! use a warehouse at once. Everything blocking runs on tokio's blocking threads, so a tokio runtime is needed.
//!
//! ```
//! use frazil_local::open_warehouse;
//! use frazil_table::system_environment;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> frazil_core::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let directory = directory.path();
//! let warehouse = open_warehouse(directory, &system_environment())?;
//! let location = format!("{}/hello.txt", warehouse.layout.warehouse());
//! warehouse.storage.put(&location, "hello".into(), None).await?;
//! assert_eq!(warehouse.storage.get(&location, 100).await?, Some("hello".into()));
//! # Ok(())
//! # }
//! ```

mod blocking;
mod catalog;
mod database;
mod directory;
mod io_failure;
mod states;
mod warehouse;

pub use catalog::{CATALOG_NAME, SqliteCatalog};
pub use database::Database;
pub use directory::DirectoryStorage;
pub use states::{MAX_DOCUMENT_BYTES, SqliteStateStore};
pub use warehouse::{DATABASE_FILE, open_warehouse};
