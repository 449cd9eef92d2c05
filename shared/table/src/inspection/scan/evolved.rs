//! Rows of a file that was written before the table got all of its columns.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, MapArray, RecordBatch, StructArray, new_null_array};
use arrow_schema::{DataType, Field, FieldRef, Fields, SchemaRef as ArrowSchemaRef};
use frazil_core::Result;

use super::arrow_failed;
use crate::rows::field_id;

/// The rows in another schema: columns are found by field id at every level, what the file does not have is null, and
/// what was widened since is converted.
pub(super) fn in_schema(rows: &RecordBatch, schema: &ArrowSchemaRef) -> Result<RecordBatch> {
    let source = rows.schema();
    let columns = schema.fields().iter().map(|wanted| {
        column(
            wanted,
            find(wanted, source.fields(), rows.columns()),
            rows.num_rows(),
        )
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    RecordBatch::try_new(Arc::clone(schema), columns).map_err(arrow_failed)
}

/// The field with the id of `wanted`, and its values.
fn find<'a>(wanted: &Field, fields: &Fields, columns: &'a [ArrayRef]) -> Option<(FieldRef, &'a ArrayRef)> {
    let wanted = field_id(wanted)?;
    let at = fields.iter().position(|field| field_id(field) == Some(wanted))?;
    Some((Arc::clone(&fields[at]), &columns[at]))
}

fn column(wanted: &Field, found: Option<(FieldRef, &ArrayRef)>, len: usize) -> Result<ArrayRef> {
    let Some((field, array)) = found else {
        return Ok(new_null_array(wanted.data_type(), len));
    };
    Ok(match (wanted.data_type(), field.data_type()) {
        (DataType::Struct(inner), DataType::Struct(fields)) => {
            let array = array.as_struct();
            let children = inner
                .iter()
                .map(|wanted| column(wanted, find(wanted, fields, array.columns()), array.len()));
            let children = children.collect::<Result<Vec<_>>>()?;
            let nulls = array.nulls().cloned();
            let array = StructArray::try_new_with_length(inner.clone(), children, nulls, array.len());
            Arc::new(array.map_err(arrow_failed)?)
        }
        (DataType::List(inner), DataType::List(element)) => {
            let array = array.as_list::<i32>();
            let values = array.values();
            let values = column(inner, Some((Arc::clone(element), values)), values.len())?;
            let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
            Arc::new(ListArray::try_new(Arc::clone(inner), offsets, values, nulls).map_err(arrow_failed)?)
        }
        (DataType::Map(inner, sorted), DataType::Map(entry, _)) => {
            let (DataType::Struct(pair), DataType::Struct(fields)) = (inner.data_type(), entry.data_type())
            else {
                return arrow_cast::cast(array, wanted.data_type()).map_err(arrow_failed);
            };
            let array = array.as_map();
            let entries = pair.iter().zip(fields).zip(array.entries().columns());
            let entries = entries.map(|((wanted, field), values)| {
                column(wanted, Some((Arc::clone(field), values)), values.len())
            });
            let entries = entries.collect::<Result<Vec<_>>>()?;
            let entries = StructArray::try_new(pair.clone(), entries, None).map_err(arrow_failed)?;
            let (offsets, nulls) = (array.offsets().clone(), array.nulls().cloned());
            let array = MapArray::try_new(Arc::clone(inner), offsets, entries, nulls, *sorted);
            Arc::new(array.map_err(arrow_failed)?)
        }
        (wanted, _) => arrow_cast::cast(array, wanted).map_err(arrow_failed)?,
    })
}
