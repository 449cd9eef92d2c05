use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, BooleanArray, Int32Array, Int64Array, RecordBatch};
use arrow_schema::DataType;
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use frazil_core::{Error, Offset, Partition, Result};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::ParquetMetaData;

use super::columns::{column_by_id, field_id};
use super::footer::check_footer_bytes;
use super::{caused, defect};

/// Largest file that is read whole. Compaction aims at half of it.
pub const MAX_FILE_BYTES: usize = 1024 * 1024 * 1024;

/// Most rows that are read from one file: their offsets alone take a gigabyte.
pub const MAX_DECODED_ROWS: usize = 64 * 1024 * 1024;

/// Most memory for decoded rows: a small file can claim any number of repeated values.
pub const MAX_DECODED_BYTES: usize = 2 * 1024 * 1024 * 1024;

/// Most columns, counted at the leaves: twenty times what inference may create.
pub const MAX_LEAF_COLUMNS: usize = 10_000;

/// Rows decoded at a time. Small, because memory is checked between batches.
const BATCH_ROWS: usize = 4096;

const READ: &str = "read a data file";

/// The rows of a data file, projected to the top-level columns with the given field ids (all without).
/// Columns that the file does not have are missing in the result. Arrow fields carry `PARQUET:field_id`.
///
/// A damaged file, or one above the bounds of this module, is an `Internal` error. Damage inside the values
/// of an uncompressed page goes unnoticed: the encoder writes no page checksums, integrity at rest is the
/// storage's.
pub fn read_data_file(bytes: Bytes, columns: Option<&[i32]>) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    let mut decoded_bytes = 0usize;
    for_each_batch(bytes, columns, |batch| {
        decoded_bytes = decoded_bytes.saturating_add(batch.get_array_memory_size());
        if decoded_bytes > MAX_DECODED_BYTES {
            return Err(too_large("decoded bytes", decoded_bytes, MAX_DECODED_BYTES));
        }
        batches.push(batch);
        Ok(())
    })?;
    Ok(batches)
}

/// Kafka partition and offset of every row, in file order. Decodes only these two columns.
pub fn offsets_of(bytes: Bytes, partition_field: i32, offset_field: i32) -> Result<Vec<(Partition, Offset)>> {
    let mut found = Vec::new();
    for_each_batch(bytes, Some(&[partition_field, offset_field]), |batch| {
        let positions = Positions::of(&batch, partition_field, offset_field)?;
        found.extend((0..batch.num_rows()).map(|row| positions.at(row)));
        Ok(())
    })?;
    Ok(found)
}

/// Kafka partition and offset of every row of a batch.
pub(crate) fn positions(
    batch: &RecordBatch,
    partition_field: i32,
    offset_field: i32,
) -> Result<Vec<(Partition, Offset)>> {
    let positions = Positions::of(batch, partition_field, offset_field)?;
    Ok((0..batch.num_rows()).map(|row| positions.at(row)).collect())
}

/// The rows whose Kafka partition and offset `keep` accepts. Batches without such rows are left out.
pub fn filter_rows(
    batches: &[RecordBatch],
    partition_field: i32,
    offset_field: i32,
    keep: &dyn Fn(Partition, Offset) -> bool,
) -> Result<Vec<RecordBatch>> {
    let mut kept = Vec::with_capacity(batches.len());
    for batch in batches {
        let positions = Positions::of(batch, partition_field, offset_field)?;
        let mask: BooleanArray = (0..batch.num_rows())
            .map(|row| {
                let (partition, offset) = positions.at(row);
                Some(keep(partition, offset))
            })
            .collect();
        match mask.true_count() {
            0 => {}
            all if all == batch.num_rows() => kept.push(batch.clone()),
            _ => kept.push(
                filter_record_batch(batch, &mask).map_err(caused(READ, "the rows cannot be filtered"))?,
            ),
        }
    }
    Ok(kept)
}

/// Where the rows of a batch come from.
pub(super) struct Positions<'a> {
    partitions: &'a Int32Array,
    offsets: &'a Int64Array,
}

impl<'a> Positions<'a> {
    /// Both columns must be there, of Kafka's types, and without nulls: a row that cannot say which record
    /// it is can be neither trimmed nor proved.
    pub(super) fn of(batch: &'a RecordBatch, partition_field: i32, offset_field: i32) -> Result<Self> {
        let column = |id: i32, wanted: DataType| {
            column_by_id(batch, id)
                .filter(|column| *column.data_type() == wanted && column.null_count() == 0)
                .ok_or_else(|| {
                    defect(READ, "the column is missing, holds nulls or is of another type")
                        .with_context("field_id", id)
                        .with_context("wanted", wanted)
                })
        };
        Ok(Self {
            partitions: column(partition_field, DataType::Int32)?.as_primitive::<Int32Type>(),
            offsets: column(offset_field, DataType::Int64)?.as_primitive::<Int64Type>(),
        })
    }

    /// Of the row at this index, which must exist.
    pub(super) fn at(&self, row: usize) -> (Partition, Offset) {
        (
            Partition(self.partitions.value(row)),
            Offset(self.offsets.value(row)),
        )
    }
}

fn for_each_batch(
    bytes: Bytes,
    columns: Option<&[i32]>,
    mut visit: impl FnMut(RecordBatch) -> Result<()>,
) -> Result<()> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(too_large("bytes", bytes.len(), MAX_FILE_BYTES));
    }
    check_footer_bytes(&bytes)?;
    let file_bytes = bytes.len() as u64;
    // Field ids and the types of Parquet decide; a foreign Arrow schema in the footer must not.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = guarded(|| ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options))?
        .map_err(caused(READ, "it is no Parquet file, or damaged"))?;
    check_footer(builder.metadata(), file_bytes)?;
    let mask = match columns {
        None => ProjectionMask::all(),
        Some(ids) => {
            let fields = builder.schema().fields().iter().enumerate();
            let wanted = fields
                .filter(|(_, field)| field_id(field).is_some_and(|id| ids.contains(&id)))
                .map(|(index, _)| index);
            ProjectionMask::roots(builder.parquet_schema(), wanted.collect::<Vec<_>>())
        }
    };
    let mut reader = guarded(|| builder.with_projection(mask).with_batch_size(BATCH_ROWS).build())?
        .map_err(caused(READ, "its rows cannot be decoded"))?;
    let mut rows = 0usize;
    while let Some(batch) = guarded(|| reader.next())? {
        let batch = batch.map_err(caused(READ, "its rows cannot be decoded"))?;
        rows = rows.saturating_add(batch.num_rows());
        if rows > MAX_DECODED_ROWS {
            return Err(too_large("rows", rows, MAX_DECODED_ROWS));
        }
        visit(batch)?;
    }
    Ok(())
}

/// Runs the Parquet reader so that its panic is an error. Version 58 asserts, indexes and shifts by numbers
/// from damaged pages (in six places that mutated files reach), behind what can be checked from outside
/// without decoding the pages ourselves. Nothing that a panic leaves half done is used afterwards.
fn guarded<T>(read: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without a text");
        defect(READ, format!("it is damaged: {text}"))
    })
}

/// Refuses a footer that contradicts the file. Also keeps the Parquet reader away from numbers that it takes
/// on trust: it asserts that offsets and lengths are not negative.
fn check_footer(footer: &ParquetMetaData, file_bytes: u64) -> Result<()> {
    let implausible = |what: &str| defect(READ, format!("its footer contradicts the file: {what}"));
    let leaves = footer.file_metadata().schema_descr().num_columns();
    if leaves > MAX_LEAF_COLUMNS {
        return Err(too_large("columns", leaves, MAX_LEAF_COLUMNS));
    }
    let mut rows = 0i64;
    for group in footer.row_groups() {
        rows = rows
            .checked_add(group.num_rows())
            .filter(|_| group.num_rows() >= 0)
            .ok_or_else(|| implausible("rows"))?;
        for column in group.columns() {
            let start = column
                .dictionary_page_offset()
                .unwrap_or(column.data_page_offset());
            let end = start
                .checked_add(column.compressed_size())
                .and_then(|end| u64::try_from(end).ok());
            let inside =
                start >= 0 && column.compressed_size() >= 0 && end.is_some_and(|end| end <= file_bytes);
            if !inside || column.data_page_offset() < start || column.num_values() < 0 {
                return Err(implausible("a column lies outside the file"));
            }
        }
    }
    if rows != footer.file_metadata().num_rows() {
        return Err(implausible("rows"));
    }
    match usize::try_from(rows) {
        Ok(rows) if rows <= MAX_DECODED_ROWS => Ok(()),
        _ => Err(too_large("rows", rows, MAX_DECODED_ROWS)),
    }
}

fn too_large(what: &str, found: impl std::fmt::Display, limit: usize) -> Error {
    defect(READ, format!("it has {found} {what}, at most {limit} are read"))
        .with_hint("check that the file was written by Frazil and is not damaged")
}
