//! Rows of a table as Parquet data files: splitting by partition, encoding, reading back, comparing.
//!
//! Everything works on bytes in memory and does no I/O: an event is at most 6 MB, so a data file of ingest
//! is never worth a stream. Columns are found by Iceberg field id (the `PARQUET:field_id` metadata of Arrow
//! fields), never by name or position.

mod columns;
mod compare;
mod encode;
mod footer;
mod json;
mod metrics;
mod read;
mod settings;
mod split;

pub(crate) use columns::{column_by_id, column_index, field_id};
pub use compare::{Comparison, RowIdentity, compare_rows};
pub use encode::{EncodedFile, write_data_file};
pub use json::{data_file_from_json, data_file_to_json};
pub(crate) use read::positions;
pub use read::{
    MAX_DECODED_BYTES, MAX_DECODED_ROWS, MAX_FILE_BYTES, MAX_LEAF_COLUMNS, filter_rows, offsets_of,
    read_data_file,
};
pub use settings::{Dictionary, FileSettings};
pub use split::split_by_partition;

use frazil_core::{Error, ErrorKind};

/// A fault that correct code and undamaged files do not have.
fn defect(operation: &'static str, message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Internal, operation, message)
}

/// The same, with the error of a library as the cause. Its text goes into the message too: these libraries
/// say what they found, and a reason without it helps nobody.
fn caused<E>(operation: &'static str, what: &str) -> impl FnOnce(E) -> Error
where
    E: std::error::Error + Send + Sync + 'static,
{
    move |cause| defect(operation, format!("{what}: {cause}")).with_source(cause)
}

#[cfg(test)]
mod tests;
