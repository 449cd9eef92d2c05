//! Iceberg tables fed from Kafka: data files, descriptors, the ledger, and the commit that moves them together.
mod catalog;
mod environment;
mod file_io;
mod layout;
mod state;
mod storage;

pub use catalog::{Catalog, Pointer};
pub use environment::system_environment;
pub use file_io::{MAX_WHOLE_FILE_BYTES, file_io, storage_error};
pub use layout::{Layout, LogName, Shelf};
pub use state::{StateEntry, StateStore};
pub use storage::{
    MAX_ATTRIBUTES_BYTES, ObjectHead, ObjectInfo, ObjectStorage, Page, check_attributes, list_all,
};

#[cfg(feature = "conformance")]
pub mod conformance;
