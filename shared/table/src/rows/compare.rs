use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeListArray, ListArray, MapArray, RecordBatch, StructArray};
use arrow_ord::ord::{DynComparator, make_comparator};
use arrow_schema::{DataType, Field, FieldRef, Fields, SortOptions};
use arrow_select::interleave::interleave;
use frazil_core::{Offset, OffsetRange, Partition, Result};

use super::columns::{converted, field_id};
use super::read::Positions;
use super::{caused, defect};

const COMPARE: &str = "compare rows of a redelivery";

/// Field ids of the columns that say which record a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowIdentity {
    /// `_kafka_partition`.
    pub partition: i32,
    /// `_kafka_offset`.
    pub offset: i32,
    /// `_kafka_epoch`: not compared, because undrop and adopt rewrite it.
    pub epoch: Option<i32>,
}

/// What a comparison of two sets of rows found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// All rows of the interval that both have are equal, at so many offsets.
    Same(u64),
    /// The first offset at which they differ: another log, or another interpretation of the same record.
    Different {
        /// That offset.
        first_offset: Offset,
    },
    /// No row in both, or no column to compare: proof of nothing.
    NothingInCommon,
}

/// Compares the rows of `partition` in `interval` that both sides have, in all columns that both sides have
/// (by field id, also inside structs, lists and maps), except those of the identity. Values of a column that
/// was widened in between are compared as the wider type. Where a row occurs twice, all
/// must be equal.
pub fn compare_rows(
    left: &[RecordBatch],
    right: &[RecordBatch],
    ids: &RowIdentity,
    partition: Partition,
    interval: OffsetRange,
) -> Result<Comparison> {
    let (left_rows, right_rows) = (
        rows_in(left, ids, partition, interval)?,
        rows_in(right, ids, partition, interval)?,
    );
    let mut shared = Vec::new();
    let mut offsets = 0;
    for (offset, rows) in &left_rows {
        if let Some(others) = right_rows.get(offset) {
            offsets += 1;
            shared.extend(rows.iter().map(|row| (*offset, *row, others[0])));
            shared.extend(others[1..].iter().map(|other| (*offset, rows[0], *other)));
        }
    }
    let columns = shared_columns(left, right, ids);
    if shared.is_empty() || columns.is_empty() {
        return Ok(Comparison::NothingInCommon);
    }
    let mut first_difference: Option<usize> = None;
    for id in columns {
        let left_values = gathered(left, id, shared.iter().map(|(_, row, _)| *row))?;
        let right_values = gathered(right, id, shared.iter().map(|(_, _, row)| *row))?;
        let equal = comparator(&left_values, &right_values)?;
        let end = first_difference.unwrap_or(shared.len());
        if let Some(row) = (0..end).find(|&row| equal(row, row).is_ne()) {
            first_difference = Some(row);
        }
    }
    Ok(match first_difference {
        Some(row) => Comparison::Different {
            first_offset: shared[row].0,
        },
        None => Comparison::Same(offsets),
    })
}

/// Batch and row.
type Place = (usize, usize);

fn rows_in(
    batches: &[RecordBatch],
    ids: &RowIdentity,
    partition: Partition,
    interval: OffsetRange,
) -> Result<BTreeMap<Offset, Vec<Place>>> {
    let mut rows: BTreeMap<Offset, Vec<Place>> = BTreeMap::new();
    for (index, batch) in batches.iter().enumerate() {
        let positions = Positions::of(batch, ids.partition, ids.offset)?;
        for row in 0..batch.num_rows() {
            let (found, offset) = positions.at(row);
            if found == partition && interval.contains(offset) {
                rows.entry(offset).or_default().push((index, row));
            }
        }
    }
    Ok(rows)
}

/// Ids of the top-level columns that every batch of both sides has, without those of the identity.
fn shared_columns(left: &[RecordBatch], right: &[RecordBatch], ids: &RowIdentity) -> Vec<i32> {
    let has = |batch: &RecordBatch, id: i32| {
        batch
            .schema_ref()
            .fields()
            .iter()
            .any(|f| field_id(f) == Some(id))
    };
    let Some(first) = left.first() else {
        return Vec::new();
    };
    let candidates = first
        .schema_ref()
        .fields()
        .iter()
        .filter_map(|field| field_id(field));
    candidates
        .filter(|&id| id != ids.partition && id != ids.offset && Some(id) != ids.epoch)
        .filter(|&id| left.iter().chain(right).all(|batch| has(batch, id)))
        .collect()
}

/// The values of one column at these places, as an array of their own with its field.
fn gathered(
    batches: &[RecordBatch],
    id: i32,
    places: impl Iterator<Item = Place>,
) -> Result<(FieldRef, ArrayRef)> {
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(batches.len());
    let mut field: Option<FieldRef> = None;
    for batch in batches {
        let index = batch
            .schema_ref()
            .fields()
            .iter()
            .position(|f| field_id(f) == Some(id));
        let index = index.ok_or_else(|| defect(COMPARE, format!("field {id} is missing in a batch")))?;
        let of_first = field.get_or_insert_with(|| Arc::clone(&batch.schema_ref().fields()[index]));
        if !of_first
            .data_type()
            .equals_datatype(batch.column(index).data_type())
        {
            return Err(defect(
                COMPARE,
                format!("field {id} changes its type within one file"),
            ));
        }
        columns.push(Arc::clone(batch.column(index)));
    }
    let field = field.ok_or_else(|| defect(COMPARE, "there are no rows"))?;
    let columns: Vec<&dyn Array> = columns.iter().map(|column| column.as_ref()).collect();
    let values = interleave(&columns, &places.collect::<Vec<_>>())
        .map_err(caused(COMPARE, "the rows cannot be brought together"))?;
    Ok((field, values))
}

fn comparator(left: &(FieldRef, ArrayRef), right: &(FieldRef, ArrayRef)) -> Result<DynComparator> {
    let common = common_type(&left.0, &right.0)?;
    let left = projected(&left.0, &left.1, &common)?;
    let right = projected(&right.0, &right.1, &common)?;
    make_comparator(&left, &right, SortOptions::default())
        .map_err(caused(COMPARE, "the values have no order"))
}

/// The type in which both can be compared: the wider primitive, and only what both have inside structs.
fn common_type(left: &Field, right: &Field) -> Result<Field> {
    let data_type = match (left.data_type(), right.data_type()) {
        (DataType::Struct(a), DataType::Struct(b)) => {
            let mut fields = Vec::new();
            for child in a {
                if let Some(other) = b.iter().find(|other| field_id(other) == field_id(child)) {
                    fields.push(common_type(child, other)?);
                }
            }
            DataType::Struct(fields.into())
        }
        (DataType::List(a) | DataType::LargeList(a), DataType::List(b) | DataType::LargeList(b)) => {
            DataType::LargeList(Arc::new(common_type(a, b)?))
        }
        (DataType::Map(a, _), DataType::Map(b, _)) => {
            let pair = |entries: &FieldRef| match entries.data_type() {
                DataType::Struct(pair) => Ok(pair.clone()),
                _ => Err(defect(COMPARE, "a map has no entries")),
            };
            let (a, b) = (pair(a)?, pair(b)?);
            // The key comes first, and Arrow wants it without nulls.
            let pairs = a.iter().zip(&b).enumerate();
            let fields = pairs
                .map(|(index, (a, b))| Ok(common_type(a, b)?.with_nullable(index > 0)))
                .collect::<Result<Vec<_>>>()?;
            let entries = Field::new("key_value", DataType::Struct(fields.into()), false);
            DataType::Map(Arc::new(entries), false)
        }
        (a, b) => wider(a, b).ok_or_else(|| {
            defect(
                COMPARE,
                format!(
                    "the column `{}` is {a} on one side and {b} on the other",
                    left.name()
                ),
            )
        })?,
    };
    // Nullable: the question is whether values are equal, not whether they may be missing.
    Ok(Field::new(left.name(), data_type, true).with_metadata(left.metadata().clone()))
}

fn wider(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType::{
        Binary, BinaryView, Decimal128, Dictionary, Float32, Float64, Int32, Int64, LargeBinary, LargeUtf8,
        Timestamp, Utf8, Utf8View,
    };
    Some(match (a, b) {
        (Dictionary(_, a), Dictionary(_, b)) => wider(a, b)?,
        (Dictionary(_, a), b) => wider(a, b)?,
        (a, Dictionary(_, b)) => wider(a, b)?,
        (Utf8 | LargeUtf8 | Utf8View, Utf8 | LargeUtf8 | Utf8View) => LargeUtf8,
        (Binary | LargeBinary | BinaryView, Binary | LargeBinary | BinaryView) => LargeBinary,
        (Int32 | Int64, Int32 | Int64) if a != b => Int64,
        (Float32 | Float64, Float32 | Float64) if a != b => Float64,
        (Decimal128(p, s), Decimal128(q, t)) if s == t => Decimal128(*p.max(q), *s),
        (Timestamp(a, Some(_)), Timestamp(b, Some(_))) if a == b => Timestamp(*a, Some("+00:00".into())),
        (a, b) if a == b => a.clone(),
        _ => return None,
    })
}

/// The values of `column` in the type of `wanted`, children of structs chosen by field id.
fn projected(field: &Field, column: &ArrayRef, wanted: &Field) -> Result<ArrayRef> {
    let failed = "the rows cannot be brought to one type";
    Ok(match (column.data_type(), wanted.data_type()) {
        (DataType::Struct(_), DataType::Struct(fields)) => {
            Arc::new(projected_struct(column.as_struct(), fields)?)
        }
        (DataType::List(element), DataType::LargeList(to)) => {
            let list: &ListArray = column.as_list();
            let values = projected(element, list.values(), to)?;
            let offsets = list
                .offsets()
                .iter()
                .map(|&offset| i64::from(offset))
                .collect::<Vec<_>>();
            let offsets = arrow_buffer::OffsetBuffer::new(offsets.into());
            let list = LargeListArray::try_new(Arc::clone(to), offsets, values, list.nulls().cloned());
            Arc::new(list.map_err(caused(COMPARE, failed))?)
        }
        (DataType::LargeList(element), DataType::LargeList(to)) => {
            let list: &LargeListArray = column.as_list();
            let values = projected(element, list.values(), to)?;
            let offsets = list.offsets().clone();
            let list = LargeListArray::try_new(Arc::clone(to), offsets, values, list.nulls().cloned());
            Arc::new(list.map_err(caused(COMPARE, failed))?)
        }
        (DataType::Map(_, _), DataType::Map(to, sorted)) => {
            let map = column.as_map();
            let DataType::Struct(pair) = to.data_type() else {
                return Err(defect(COMPARE, failed));
            };
            let (keys, values) = (map.entries().fields(), pair);
            let columns = map.entries().columns().iter().zip(keys).zip(values);
            let columns = columns
                .map(|((column, from), to)| projected(from, column, to))
                .collect::<Result<Vec<_>>>()?;
            let entries =
                StructArray::try_new(pair.clone(), columns, None).map_err(caused(COMPARE, failed))?;
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            let map = MapArray::try_new(Arc::clone(to), offsets, entries, nulls, *sorted);
            Arc::new(map.map_err(caused(COMPARE, failed))?)
        }
        (_, to) if !to.is_nested() => converted(column, to, COMPARE)?,
        _ => {
            return Err(defect(
                COMPARE,
                format!("the column `{}` has two shapes", field.name()),
            ));
        }
    })
}

fn projected_struct(array: &StructArray, wanted: &Fields) -> Result<StructArray> {
    let failed = "the rows cannot be brought to one type";
    let mut columns = Vec::with_capacity(wanted.len());
    for to in wanted {
        let index = array
            .fields()
            .iter()
            .position(|from| field_id(from) == field_id(to));
        let index = index.ok_or_else(|| defect(COMPARE, failed))?;
        columns.push(projected(&array.fields()[index], array.column(index), to)?);
    }
    let nulls = array.nulls().cloned();
    StructArray::try_new_with_length(wanted.clone(), columns, nulls, array.len())
        .map_err(caused(COMPARE, failed))
}
