//! Iceberg tables fed from Kafka: data files, descriptors, the ledger, and the commit that moves them together.
mod catalog;
mod environment;
mod layout;
mod state;
mod storage;

pub use catalog::{Catalog, Pointer};
pub use environment::system_environment;
pub use layout::{Layout, LogName, Shelf};
pub use state::{StateEntry, StateStore};
pub use storage::{MAX_ATTRIBUTES_BYTES, ObjectHead, ObjectInfo, ObjectStorage, Page, list_all};

#[cfg(feature = "conformance")]
pub mod conformance;
