use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Field, FieldRef, Schema as ArrowSchema, SchemaRef as ArrowSchemaRef};
use arrow_select::nullif::nullif;
use frazil_core::Result;
use iceberg::arrow::type_to_arrow_type;
use iceberg::spec::{NestedField, Schema, Type};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use super::{caused, defect};

const WRITE: &str = "write a data file";

/// The Iceberg field id that an Arrow field carries.
pub(crate) fn field_id(field: &Field) -> Option<i32> {
    field.metadata().get(PARQUET_FIELD_ID_META_KEY)?.parse().ok()
}

/// The index of the top-level column with this field id.
pub(crate) fn column_index(batch: &RecordBatch, id: i32) -> Option<usize> {
    let fields = batch.schema_ref().fields();
    fields.iter().position(|field| field_id(field) == Some(id))
}

/// The top-level column with this field id.
pub(crate) fn column_by_id(batch: &RecordBatch, id: i32) -> Option<&ArrayRef> {
    Some(batch.column(column_index(batch, id)?))
}

/// Every column with a field id outside lists and maps, also inside structs. A value under a null struct
/// is null, as it is for every reader.
pub(super) fn flat_columns(batch: &RecordBatch) -> Result<Vec<(i32, ArrayRef)>> {
    let mut found = Vec::new();
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        collect_flat(field, column, &mut found)?;
    }
    Ok(found)
}

fn collect_flat(field: &Field, column: &ArrayRef, found: &mut Vec<(i32, ArrayRef)>) -> Result<()> {
    if let Some(parent) = column.as_struct_opt() {
        for (child_field, child) in parent.fields().iter().zip(parent.columns()) {
            collect_flat(child_field, &under(parent, child)?, found)?;
        }
    } else if !column.data_type().is_nested()
        && let Some(id) = field_id(field)
    {
        found.push((id, Arc::clone(column)));
    }
    Ok(())
}

fn under(parent: &StructArray, child: &ArrayRef) -> Result<ArrayRef> {
    match parent.nulls() {
        Some(nulls) if nulls.null_count() > 0 => {
            let hidden = BooleanArray::new(BooleanBuffer::from_iter(nulls.iter().map(|valid| !valid)), None);
            nullif(child, &hidden).map_err(caused("read a column", "a null struct cannot hide its fields"))
        }
        _ => Ok(Arc::clone(child)),
    }
}

/// Leaf columns in the order in which Parquet stores them.
pub(super) fn leaf_arrays(array: &ArrayRef, leaves: &mut Vec<ArrayRef>) {
    match array.data_type() {
        DataType::Struct(_) => array
            .as_struct()
            .columns()
            .iter()
            .for_each(|c| leaf_arrays(c, leaves)),
        DataType::List(_) => leaf_arrays(array.as_list::<i32>().values(), leaves),
        DataType::LargeList(_) => leaf_arrays(array.as_list::<i64>().values(), leaves),
        DataType::Map(_, _) => {
            leaf_arrays(array.as_map().keys(), leaves);
            leaf_arrays(array.as_map().values(), leaves);
        }
        _ => leaves.push(Arc::clone(array)),
    }
}

/// The Arrow schema to write: names, ids and requiredness from the table, physical layout (offset width,
/// dictionary, time zone spelling) from the rows, so that nothing is copied that needs no conversion.
/// Optional columns that the rows do not have are left out: readers return null for them.
pub(super) fn file_schema(schema: &Schema, rows: &ArrowSchema) -> Result<ArrowSchemaRef> {
    let mut fields = Vec::with_capacity(rows.fields().len());
    for wanted in schema.as_struct().fields() {
        let mut same = rows
            .fields()
            .iter()
            .filter(|field| field_id(field) == Some(wanted.id));
        match (same.next(), same.next()) {
            (Some(field), None) => fields.push(file_field(field, wanted, !wanted.required)?),
            (Some(_), Some(_)) => {
                return Err(defect(
                    WRITE,
                    format!("two columns have the field id {}", wanted.id),
                ));
            }
            (None, _) if wanted.required => {
                return Err(defect(
                    WRITE,
                    format!("the required column `{}` is missing", wanted.name),
                ));
            }
            (None, _) => {}
        }
    }
    if fields.len() != rows.fields().len() {
        let stray = rows
            .fields()
            .iter()
            .find(|field| !field_id(field).is_some_and(|id| fields.iter().any(|f| field_id(f) == Some(id))));
        let name = stray.map_or("?", |field| field.name());
        return Err(defect(
            WRITE,
            format!("the column `{name}` has no field id of this schema"),
        ));
    }
    Ok(Arc::new(ArrowSchema::new(fields)))
}

fn file_field(rows: &Field, wanted: &NestedField, nullable: bool) -> Result<Field> {
    let mismatch = || {
        let what = format!(
            "the column `{}` is {}, not {}",
            wanted.name,
            rows.data_type(),
            wanted.field_type
        );
        defect(WRITE, what)
    };
    if field_id(rows) != Some(wanted.id) {
        return Err(defect(
            WRITE,
            format!("the field `{}` does not carry its id {}", wanted.name, wanted.id),
        ));
    }
    let nested = |rows: &FieldRef, wanted: &NestedField| -> Result<Field> {
        file_field(rows, wanted, rows.is_nullable())
    };
    let data_type = match (wanted.field_type.as_ref(), rows.data_type()) {
        (Type::Primitive(_), physical) => {
            let canonical = type_to_arrow_type(&wanted.field_type).map_err(caused(WRITE, "no Arrow type"))?;
            layout(physical, &canonical).ok_or_else(mismatch)?
        }
        (Type::Struct(wanted), DataType::Struct(children)) => {
            let mut fields = Vec::with_capacity(children.len());
            for child in children {
                let known = field_id(child)
                    .and_then(|id| wanted.field_by_id(id))
                    .ok_or_else(mismatch)?;
                fields.push(nested(child, known)?);
            }
            DataType::Struct(fields.into())
        }
        (Type::List(list), DataType::List(element)) => DataType::List(Arc::new(
            nested(element, &list.element_field)?.with_name("element"),
        )),
        (Type::List(list), DataType::LargeList(element)) => DataType::LargeList(Arc::new(
            nested(element, &list.element_field)?.with_name("element"),
        )),
        (Type::Map(map), DataType::Map(entries, sorted)) => {
            let DataType::Struct(pair) = entries.data_type() else {
                return Err(mismatch());
            };
            let [key, value] = pair.as_ref() else {
                return Err(mismatch());
            };
            let pair = vec![
                nested(key, &map.key_field)?.with_name("key"),
                nested(value, &map.value_field)?.with_name("value"),
            ];
            DataType::Map(
                Arc::new(Field::new("key_value", DataType::Struct(pair.into()), false)),
                *sorted,
            )
        }
        _ => return Err(mismatch()),
    };
    let id = (PARQUET_FIELD_ID_META_KEY.to_owned(), wanted.id.to_string());
    Ok(Field::new(&wanted.name, data_type, nullable).with_metadata(HashMap::from([id])))
}

/// The layout in which values of `physical` are written as `canonical`: their own if only the layout
/// differs, `canonical` if Iceberg can promote them, none if they are something else.
fn layout(physical: &DataType, canonical: &DataType) -> Option<DataType> {
    use DataType::{
        Binary, BinaryView, Decimal128, Dictionary, Float32, Float64, Int32, Int64, LargeBinary, LargeUtf8,
        Timestamp, Utf8, Utf8View,
    };
    let keep = match (physical, canonical) {
        (a, b) if a == b => true,
        (Dictionary(_, values), _) => layout(values, canonical).is_some_and(|kept| kept == **values),
        (Utf8 | LargeUtf8 | Utf8View, Utf8) | (Binary | LargeBinary | BinaryView, LargeBinary) => true,
        // Spellings of UTC; another zone or none is another type.
        (Timestamp(a, Some(zone)), Timestamp(b, Some(_))) => a == b && matches!(&**zone, "UTC" | "+00:00"),
        (Int32, Int64) | (Float32, Float64) => return Some(canonical.clone()),
        (Decimal128(p, s), Decimal128(wider, t)) if p <= wider && s == t => return Some(canonical.clone()),
        _ => false,
    };
    keep.then(|| physical.clone())
}

/// The rows in the order and types of `file`.
pub(super) fn aligned(batch: &RecordBatch, file: &ArrowSchemaRef) -> Result<RecordBatch> {
    let mut columns = Vec::with_capacity(file.fields().len());
    for field in file.fields() {
        let found = batch
            .schema_ref()
            .fields()
            .iter()
            .position(|f| field_id(f) == field_id(field));
        let same = found.filter(|&index| same_ids(batch.schema_ref().field(index), field));
        let Some(index) = same else {
            let what = format!("the batches differ in the column `{}`", field.name());
            return Err(defect(WRITE, what));
        };
        let column = batch.column(index);
        if !field.is_nullable() && column.null_count() > 0 {
            return Err(defect(
                WRITE,
                format!("the required column `{}` holds a null", field.name()),
            ));
        }
        columns.push(converted(column, field.data_type(), WRITE)?);
    }
    let options = RecordBatchOptions::new()
        .with_match_field_names(false)
        .with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(file), columns, &options)
        .map_err(caused(WRITE, "the rows do not fit the table's schema"))
}

/// The values as `wanted`; no copy if only names differ.
pub(super) fn converted(column: &ArrayRef, wanted: &DataType, operation: &'static str) -> Result<ArrayRef> {
    if column.data_type().equals_datatype(wanted) {
        return Ok(Arc::clone(column));
    }
    arrow_cast::cast(column, wanted).map_err(caused(operation, "a column cannot be converted"))
}

/// Whether two fields have the same ids all the way down, in the same order.
fn same_ids(a: &Field, b: &Field) -> bool {
    let children = |x: &FieldRef, y: &FieldRef| same_ids(x, y);
    field_id(a) == field_id(b)
        && match (a.data_type(), b.data_type()) {
            (DataType::Struct(x), DataType::Struct(y)) => {
                x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same_ids(x, y))
            }
            (DataType::List(x), DataType::List(y)) | (DataType::LargeList(x), DataType::LargeList(y)) => {
                children(x, y)
            }
            (DataType::Map(x, _), DataType::Map(y, _)) => children(x, y),
            (x, y) => !x.is_nested() && !y.is_nested(),
        }
}
