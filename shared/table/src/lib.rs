//! Iceberg tables fed from Kafka: data files, descriptors, the ledger, and the commit that moves them together.

mod catalog;
mod environment;
mod file_io;
mod layout;
mod rows;
mod state;
mod storage;

pub use catalog::{Catalog, Pointer};
pub use environment::system_environment;
pub use file_io::{MAX_WHOLE_FILE_BYTES, file_io, storage_error};
pub use layout::{Layout, LogName, Shelf};
pub use rows::{
    Comparison, Dictionary, EncodedFile, FileSettings, MAX_DECODED_BYTES, MAX_DECODED_ROWS, MAX_FILE_BYTES,
    MAX_LEAF_COLUMNS, RowIdentity, compare_rows, data_file_from_json, data_file_to_json, filter_rows,
    offsets_of, read_data_file, split_by_partition, write_data_file,
};
pub use state::{StateEntry, StateStore};
pub use storage::{MAX_ATTRIBUTES_BYTES, ObjectHead, ObjectInfo, ObjectStorage, Page, list_all};

#[cfg(feature = "conformance")]
pub mod conformance;
