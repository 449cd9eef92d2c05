use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, PrimitiveArray, RecordBatch, UInt32Array, new_null_array};
use arrow_ord::partition::partition;
use arrow_ord::sort::{SortColumn, lexsort_to_indices};
use arrow_schema::{DataType, SortOptions, TimeUnit};
use arrow_select::take::take_record_batch;
use frazil_core::Result;
use iceberg::arrow::{arrow_primitive_to_literal, type_to_arrow_type};
use iceberg::spec::{PartitionSpec, SchemaRef, Struct, StructType, Transform};
use iceberg::transform::create_transform_function;

use super::columns::{converted, flat_columns};
use super::{caused, defect};

const SPLIT: &str = "split rows by partition";

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Splits rows by the table's partition spec: one entry per partition, in the order of its values with null
/// first. Rows keep their order within a partition.
///
/// Rows of one partition, the usual case, are returned as they are. Otherwise they are sorted by partition
/// once, and each entry is a window of that one copy: memory is bounded by twice the rows, however many
/// partitions they fall into, and a caller that writes entry by entry never has more than one open writer.
pub fn split_by_partition(
    batch: &RecordBatch,
    schema: &SchemaRef,
    spec: &PartitionSpec,
) -> Result<Vec<(Struct, RecordBatch)>> {
    if batch.num_rows() == 0 {
        return Ok(Vec::new());
    }
    if spec.is_unpartitioned() {
        let nothing = Struct::from_iter(spec.fields().iter().map(|_| None));
        return Ok(vec![(nothing, batch.clone())]);
    }
    let partition_type = spec
        .partition_type(schema)
        .map_err(caused(SPLIT, "the spec does not fit the schema"))?;
    let values = partition_values(batch, schema, spec)?;
    let (values, rows) = if is_one_partition(&values)? {
        (values, batch.clone())
    } else {
        sorted_by(&values, batch)?
    };
    partition(&values)
        .map_err(caused(SPLIT, "the partition values cannot be compared"))?
        .ranges()
        .into_iter()
        .map(|range| {
            let tuple = tuple_at(&values, range.start, &partition_type)?;
            Ok((tuple, rows.slice(range.start, range.len())))
        })
        .collect()
}

/// One array per field of the spec.
fn partition_values(batch: &RecordBatch, schema: &SchemaRef, spec: &PartitionSpec) -> Result<Vec<ArrayRef>> {
    let columns = flat_columns(batch)?;
    let mut values = Vec::with_capacity(spec.fields().len());
    for field in spec.fields() {
        let source = schema.field_by_id(field.source_id).ok_or_else(|| {
            defect(
                SPLIT,
                format!("the source of `{}` is not in the schema", field.name),
            )
        })?;
        let wanted = match type_to_arrow_type(&source.field_type).map_err(caused(SPLIT, "no Arrow type"))? {
            DataType::LargeBinary => DataType::Binary, // what every transform takes
            wanted => wanted,
        };
        let column = match columns.iter().find(|(id, _)| *id == field.source_id) {
            Some((_, column)) => converted(column, &wanted, SPLIT)?,
            None => new_null_array(&wanted, batch.num_rows()),
        };
        values.push(transformed(&field.transform, column)?);
    }
    Ok(values)
}

fn transformed(transform: &Transform, column: ArrayRef) -> Result<ArrayRef> {
    // iceberg 0.10 puts fractions of a second before 1970 into the wrong day.
    if let (Transform::Day, DataType::Timestamp(TimeUnit::Microsecond, _)) = (transform, column.data_type()) {
        let instants = column.as_primitive::<TimestampMicrosecondType>();
        let days: PrimitiveArray<Date32Type> = instants
            .try_unary(|micros| i32::try_from(micros.div_euclid(MICROS_PER_DAY)))
            .map_err(caused(SPLIT, "a timestamp has no day"))?;
        return Ok(Arc::new(days));
    }
    create_transform_function(transform)
        .and_then(|function| function.transform(column))
        .map_err(caused(SPLIT, &format!("the transform {transform} failed")))
}

fn is_one_partition(values: &[ArrayRef]) -> Result<bool> {
    let runs = partition(values).map_err(caused(SPLIT, "the partition values cannot be compared"))?;
    Ok(runs.len() == 1)
}

fn sorted_by(values: &[ArrayRef], batch: &RecordBatch) -> Result<(Vec<ArrayRef>, RecordBatch)> {
    let options = Some(SortOptions {
        descending: false,
        nulls_first: true,
    });
    let mut keys: Vec<SortColumn> = values
        .iter()
        .map(|values| SortColumn {
            values: Arc::clone(values),
            options,
        })
        .collect();
    // The row number last makes an unstable sort stable.
    let rows = u32::try_from(batch.num_rows()).map_err(caused(SPLIT, "too many rows in one batch"))?;
    keys.push(SortColumn {
        values: Arc::new(UInt32Array::from_iter_values(0..rows)),
        options,
    });
    let order =
        lexsort_to_indices(&keys, None).map_err(caused(SPLIT, "the partition values cannot be sorted"))?;
    let failed = "the rows cannot be reordered";
    let values = values
        .iter()
        .map(|values| arrow_select::take::take(values, &order, None))
        .collect::<Result<Vec<_>, _>>()
        .map_err(caused(SPLIT, failed))?;
    let rows = take_record_batch(batch, &order).map_err(caused(SPLIT, failed))?;
    Ok((values, rows))
}

fn tuple_at(values: &[ArrayRef], row: usize, partition_type: &StructType) -> Result<Struct> {
    let mut tuple = Vec::with_capacity(values.len());
    for (values, field) in values.iter().zip(partition_type.fields()) {
        let literal = arrow_primitive_to_literal(&values.slice(row, 1), &field.field_type)
            .map_err(caused(SPLIT, "a partition value does not fit its type"))?;
        tuple.push(literal.into_iter().next().flatten());
    }
    Ok(Struct::from_iter(tuple))
}
