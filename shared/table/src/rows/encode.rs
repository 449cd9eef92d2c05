use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_ord::partition::partition;
use arrow_ord::sort::sort;
use arrow_schema::{DataType, SchemaRef as ArrowSchemaRef};
use arrow_select::take::take;
use bytes::Bytes;
use frazil_core::{Error, ErrorKind, Result};
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, PartitionSpec, SchemaRef, Struct,
};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::properties::WriterProperties;

use super::columns::{aligned, file_schema, leaf_arrays};
use super::metrics::{ColumnMetrics, count_nans};
use super::settings::{Dictionary, FileSettings};
use super::{caused, defect};

const WRITE: &str = "write a data file";

/// Values looked at to decide whether a column repeats itself. Sorting so few costs microseconds, and the
/// share of repeated values in them is within a few percent of the share in the column.
const DICTIONARY_SAMPLE: usize = 512;

/// One encoded data file, not stored yet.
#[derive(Debug, Clone)]
pub struct EncodedFile {
    /// The whole file.
    pub bytes: Bytes,
    /// Rows in it.
    pub record_count: u64,
    partition: Struct,
    partition_spec_id: i32,
    sort_order_id: Option<i32>,
    split_offsets: Vec<i64>,
    metrics: ColumnMetrics,
    nan_value_counts: HashMap<i32, u64>,
}

impl EncodedFile {
    /// The partition that its rows are in.
    pub fn partition(&self) -> &Struct {
        &self.partition
    }

    /// The manifest entry's view of the file at its final place, with its exact size.
    pub fn data_file(&self, location: &str) -> Result<DataFile> {
        let mut builder = DataFileBuilder::default();
        builder
            .content(DataContentType::Data)
            .file_path(location.to_owned())
            .file_format(DataFileFormat::Parquet)
            .partition(self.partition.clone())
            .partition_spec_id(self.partition_spec_id)
            .record_count(self.record_count)
            .file_size_in_bytes(self.bytes.len() as u64)
            .column_sizes(self.metrics.column_sizes.clone())
            .value_counts(self.metrics.value_counts.clone())
            .null_value_counts(self.metrics.null_value_counts.clone())
            .nan_value_counts(self.nan_value_counts.clone())
            .lower_bounds(self.metrics.lower_bounds.clone())
            .upper_bounds(self.metrics.upper_bounds.clone())
            .split_offsets(Some(self.split_offsets.clone()));
        if let Some(id) = self.sort_order_id {
            builder.sort_order_id(id);
        }
        builder
            .build()
            .map_err(caused(WRITE, "its manifest entry is incomplete"))
    }
}

/// Encodes the rows of one table partition as one Parquet file in memory.
///
/// Batches must carry field ids and hold the same columns. Optional columns of the schema may be missing.
/// Refuses an empty file: there is nothing to stage in it. Holds one encoder and the finished file, so its
/// memory is about that of the rows.
pub fn write_data_file(
    batches: &[RecordBatch],
    schema: &SchemaRef,
    spec: &PartitionSpec,
    partition: &Struct,
    settings: &FileSettings,
) -> Result<EncodedFile> {
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let first = batches
        .first()
        .filter(|_| rows > 0)
        .ok_or_else(|| defect(WRITE, "there are no rows"))?;
    if partition.fields().len() != spec.fields().len() {
        let what = format!(
            "the partition has {} values, the spec {} has {} fields",
            partition.fields().len(),
            spec.spec_id(),
            spec.fields().len(),
        );
        return Err(Error::new(ErrorKind::Internal, WRITE, what));
    }

    let arrow_schema = file_schema(schema, first.schema_ref())?;
    let batches = batches
        .iter()
        .map(|batch| aligned(batch, &arrow_schema))
        .collect::<Result<Vec<_>>>()?;
    let properties = properties(settings, &arrow_schema, &batches)?;
    let (bytes, footer) = encode(&arrow_schema, &batches, properties)?;
    Ok(EncodedFile {
        bytes,
        record_count: rows as u64,
        partition: partition.clone(),
        partition_spec_id: spec.spec_id(),
        sort_order_id: settings.sort_order_id,
        split_offsets: footer.row_groups().iter().filter_map(start_of).collect(),
        metrics: ColumnMetrics::from_footer(&footer, schema)?,
        nan_value_counts: count_nans(&batches)?,
    })
}

fn encode(
    schema: &ArrowSchemaRef,
    batches: &[RecordBatch],
    properties: WriterProperties,
) -> Result<(Bytes, ParquetMetaData)> {
    // Without Arrow's own schema in the footer: readers go by field ids and the table's types, and the
    // layout that the rows happened to have here is nobody's business.
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(schema), options)
        .map_err(caused(WRITE, "the schema cannot be stored as Parquet"))?;
    for batch in batches {
        writer
            .write(batch)
            .map_err(caused(WRITE, "the rows cannot be encoded"))?;
    }
    let footer = writer
        .finish()
        .map_err(caused(WRITE, "the footer cannot be encoded"))?;
    let bytes = std::mem::take(writer.inner_mut());
    Ok((Bytes::from(bytes), footer))
}

/// Where a reader that splits files by row group starts reading this one.
fn start_of(group: &RowGroupMetaData) -> Option<i64> {
    group.columns().first().map(|column| {
        column
            .dictionary_page_offset()
            .unwrap_or(column.data_page_offset())
    })
}

fn properties(
    settings: &FileSettings,
    schema: &ArrowSchemaRef,
    batches: &[RecordBatch],
) -> Result<WriterProperties> {
    let mut properties = settings.properties()?;
    if settings.dictionary == Dictionary::Sampled {
        let layout = ArrowSchemaConverter::new()
            .convert(schema)
            .map_err(caused(WRITE, "the schema cannot be stored as Parquet"))?;
        // The largest batch speaks for all.
        let sample = batches.iter().max_by_key(|batch| batch.num_rows());
        let mut leaves = Vec::with_capacity(layout.num_columns());
        sample
            .iter()
            .flat_map(|batch| batch.columns())
            .for_each(|column| leaf_arrays(column, &mut leaves));
        for (column, leaf) in layout.columns().iter().zip(&leaves) {
            properties = properties.set_column_dictionary_enabled(column.path().clone(), repeats(leaf)?);
        }
    }
    Ok(properties.build())
}

/// Whether at least half of the sampled values occur twice or more in the sample.
fn repeats(leaf: &ArrayRef) -> Result<bool> {
    match leaf.data_type() {
        DataType::Boolean => return Ok(false), // a bit each already
        DataType::Dictionary(_, _) => return Ok(true),
        _ => {}
    }
    let step = leaf.len().div_ceil(DICTIONARY_SAMPLE).max(1);
    let chosen = (0..leaf.len()).step_by(step).filter(|&row| leaf.is_valid(row));
    let chosen = UInt64Array::from_iter_values(chosen.map(|row| row as u64));
    if chosen.is_empty() {
        return Ok(false);
    }
    let sample = take(leaf, &chosen, None).map_err(caused(WRITE, "a column cannot be sampled"))?;
    let sorted = sort(&sample, None).map_err(caused(WRITE, "a column cannot be sampled"))?;
    let distinct = partition(&[sorted])
        .map_err(caused(WRITE, "a column cannot be sampled"))?
        .len();
    Ok(distinct * 2 <= sample.len())
}
