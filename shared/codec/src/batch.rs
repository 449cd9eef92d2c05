use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, StringBuilder};
use arrow_array::{
    Array, ArrayRef, Decimal128Array, Float32Array, Int32Array, Int64Array, LargeBinaryArray, ListArray,
    MapArray, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray, new_null_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields};
use arrow_select::interleave::interleave;
use frazil_core::{Epoch, Error, ErrorKind, Result, TopicName};
use frazil_schema::{Column, ColumnType, FieldMap, FieldPath, KafkaColumns, RecordPart};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{NestedFieldRef, Schema, StructType, Type};

use crate::prepared::{Prepared, Writer, fill_json, internal, kafka_timestamp};

/// What a table's batch of rows depends on besides the records. Schema and map must be of one metadata, read after
/// the commit that [`frazil_schema::evolve`] asked for.
#[derive(Debug, Clone, Copy)]
pub struct TargetTable<'a> {
    /// The table's current schema.
    pub schema: &'a Schema,
    /// Source field → field id.
    pub fields: &'a FieldMap,
    /// Which of Kafka's own columns the table has.
    pub kafka: &'a KafkaColumns,
    /// For `_kafka_topic`.
    pub topic: &'a TopicName,
    /// For `_kafka_epoch`.
    pub epoch: Epoch,
}

impl Prepared<'_> {
    /// The rows as a batch of the table: its columns, types and field ids (`PARQUET:field_id`), in the order of the
    /// records. Columns that the records do not have are null.
    ///
    /// # Errors
    /// `Conflict` if the table lacks a column that the records need: another writer was first, evolve again.
    pub fn to_batch(&self, table: &TargetTable<'_>) -> Result<RecordBatch> {
        let arrow_schema = Arc::new(schema_to_arrow_schema(table.schema).map_err(internal)?);
        let target = table.schema.as_struct();
        let values = self.projected(table, arrow_schema.fields(), RecordPart::Value)?;
        let keys = match &self.keys {
            Some(keys) => keys.projected(table, arrow_schema.fields(), RecordPart::Key)?,
            None => Vec::new(),
        };
        let mut kafka = self.kafka_columns(table)?;
        let mut arrays = Vec::with_capacity(target.fields().len());
        for (index, (field, arrow)) in target.fields().iter().zip(arrow_schema.fields()).enumerate() {
            arrays.push(match kafka.remove(&field.id) {
                Some(array) => Projection { fields: table.fields }.cast(array, arrow.data_type())?,
                None => {
                    let is_of_key = keys.iter().any(|columns| columns[index].is_some());
                    let (rows, writers) = match &self.keys {
                        Some(of_keys) if is_of_key => (of_keys.as_ref(), &keys),
                        _ => (self, &values),
                    };
                    rows.in_order(
                        writers.iter().map(|columns| columns[index].as_ref()),
                        arrow.data_type(),
                    )?
                }
            });
        }
        RecordBatch::try_new(arrow_schema, arrays).map_err(internal)
    }

    /// For each writer, one array per column of the table; `None` where it has none.
    fn projected(
        &self,
        table: &TargetTable<'_>,
        arrow: &Fields,
        part: RecordPart,
    ) -> Result<Vec<Vec<Option<ArrayRef>>>> {
        let projection = Projection { fields: table.fields };
        let lists = self.own_columns(Some((table.schema, table.fields)));
        let mut projected = Vec::with_capacity(self.writers.len());
        for (writer, columns) in self.writers.iter().zip(lists) {
            let arrays = match writer {
                Writer::Encoded { arrays, .. } => arrays.clone(),
                Writer::Json { tape, roots, .. } => fill_json(tape, roots, &columns)?,
                Writer::Nothing { .. } => Vec::new(),
            };
            let columns = match part {
                RecordPart::Value => columns,
                RecordPart::Key => Cow::Owned(columns.iter().map(Column::of_key).collect()),
            };
            let (target, root) = (table.schema.as_struct(), FieldPath::value());
            projected.push(projection.columns(target, arrow, &columns, &arrays, &root, writer.len())?);
        }
        Ok(projected)
    }

    /// One column of all writers, in the order of the rows.
    fn in_order<'c>(
        &self,
        columns: impl Iterator<Item = Option<&'c ArrayRef>>,
        data_type: &DataType,
    ) -> Result<ArrayRef> {
        let columns: Vec<Option<&ArrayRef>> = columns.collect();
        if columns.iter().all(Option::is_none) {
            return Ok(new_null_array(data_type, self.rows.len()));
        }
        if let [Some(only)] = columns[..]
            && only.len() == self.rows.len()
        {
            return Ok(only.clone());
        }
        let none = new_null_array(data_type, 1);
        let sources: Vec<&dyn Array> = columns
            .iter()
            .map(|column| column.unwrap_or(&none).as_ref())
            .collect();
        let places: Vec<(usize, usize)> = self
            .rows
            .iter()
            .map(|row| {
                (
                    row.writer,
                    if columns[row.writer].is_some() { row.row } else { 0 },
                )
            })
            .collect();
        interleave(&sources, &places).map_err(internal)
    }

    /// Kafka's own columns by field id.
    fn kafka_columns(&self, table: &TargetTable<'_>) -> Result<HashMap<i32, ArrayRef>> {
        let records = || self.rows.iter().map(|row| &self.records[row.record]);
        let mut columns = HashMap::new();
        for column in table.kafka.columns() {
            let path = column.path(&FieldPath::kafka());
            let id = table
                .fields
                .get(&path)
                .filter(|id| table.schema.field_by_id(*id).is_some());
            let id = id.ok_or_else(|| missing(&path))?;
            let array: ArrayRef = match column.source.as_str() {
                KafkaColumns::PARTITION => {
                    Arc::new(records().map(|record| record.partition.0).collect::<Int32Array>())
                }
                KafkaColumns::OFFSET => {
                    Arc::new(records().map(|record| record.offset.0).collect::<Int64Array>())
                }
                KafkaColumns::TIMESTAMP => {
                    // Out of range is poison, so it is in no row.
                    let micros = records().map(|record| {
                        kafka_timestamp(record, &self.options.timestamp_range).unwrap_or_default()
                    });
                    let array = micros.collect::<TimestampMicrosecondArray>();
                    Arc::new(if table.kafka.utc_naive {
                        array
                    } else {
                        array.with_timezone("+00:00")
                    })
                }
                KafkaColumns::EPOCH => Arc::new(Int32Array::from_value(table.epoch.0, self.rows.len())),
                KafkaColumns::KEY => Arc::new(self.keys()),
                KafkaColumns::HEADERS => {
                    let field = table.schema.field_by_id(id).ok_or_else(|| missing(&path))?;
                    self.headers(table, field, &path)?
                }
                KafkaColumns::TOMBSTONE => {
                    let mut builder = BooleanBuilder::with_capacity(self.rows.len());
                    records()
                        .for_each(|r| builder.append_value(matches!(r.payload, crate::Payload::Tombstone)));
                    Arc::new(builder.finish())
                }
                KafkaColumns::TOPIC => Arc::new(
                    records()
                        .map(|_| Some(table.topic.as_str()))
                        .collect::<StringArray>(),
                ),
                KafkaColumns::TIMESTAMP_TYPE => Arc::new(
                    records()
                        .map(|record| record.timestamp_type)
                        .collect::<StringArray>(),
                ),
                _ => return Err(missing(&path)),
            };
            columns.insert(id, array);
        }
        Ok(columns)
    }

    fn keys(&self) -> StringArray {
        let bytes = self
            .rows
            .iter()
            .map(|row| self.records[row.record].key.map_or(0, <[u8]>::len))
            .sum();
        let mut builder = StringBuilder::with_capacity(self.rows.len(), bytes);
        for row in &self.rows {
            let key = self.records[row.record].key;
            match key.map(std::str::from_utf8) {
                None => builder.append_null(),
                Some(Ok(text)) => builder.append_value(text),
                Some(Err(_)) => builder.append_value(format!(
                    "base64:{}",
                    base64_simd::STANDARD.encode_to_string(key.unwrap_or_default())
                )),
            }
        }
        builder.finish()
    }

    fn headers(&self, table: &TargetTable<'_>, field: &NestedFieldRef, path: &FieldPath) -> Result<ArrayRef> {
        let lists = self.rows.iter().map(|row| &self.records[row.record].headers);
        let names: StringArray = lists.clone().flatten().map(|(name, _)| Some(*name)).collect();
        let values: LargeBinaryArray = lists.clone().flatten().map(|(_, value)| *value).collect();
        let arrays: Vec<ArrayRef> = vec![Arc::new(names), Arc::new(values)];
        let fields: Fields = arrays
            .iter()
            .map(|array| Field::new("", array.data_type().clone(), true))
            .collect();
        let headers: ArrayRef = Arc::new(StructArray::try_new(fields, arrays, None).map_err(internal)?);
        let element = Arc::new(Field::new("", headers.data_type().clone(), true));
        let ends = OffsetBuffer::from_lengths(lists.map(Vec::len));
        let array: ArrayRef = Arc::new(ListArray::try_new(element, ends, headers, None).map_err(internal)?);
        let arrow = iceberg::arrow::type_to_arrow_type(&field.field_type).map_err(internal)?;
        let columns = KafkaColumns {
            headers: true,
            ..*table.kafka
        }
        .columns();
        let column = columns
            .iter()
            .find(|column| column.source == KafkaColumns::HEADERS);
        let column = column.ok_or_else(|| missing(path))?;
        Projection { fields: table.fields }.value(&field.field_type, &arrow, &column.data_type, array, path)
    }
}

fn missing(path: &FieldPath) -> Error {
    Error::new(
        ErrorKind::Conflict,
        "build a record batch",
        format!("the table has no column for `{path}` yet"),
    )
    .with_hint("evolve the table's schema first")
}

/// Puts a writer's columns where the table has them, at every level, and widens them to the table's types. Shares
/// all buffers that need no widening.
struct Projection<'a> {
    fields: &'a FieldMap,
}

impl Projection<'_> {
    /// One array per field of `target`; `None` where the writer has none.
    fn columns(
        &self,
        target: &StructType,
        arrow: &Fields,
        columns: &[Column],
        arrays: &[ArrayRef],
        parent: &FieldPath,
        len: usize,
    ) -> Result<Vec<Option<ArrayRef>>> {
        let positions: HashMap<i32, usize> = target
            .fields()
            .iter()
            .enumerate()
            .map(|(position, field)| (field.id, position))
            .collect();
        let mut projected = vec![None; target.fields().len()];
        for (column, array) in columns.iter().zip(arrays) {
            debug_assert_eq!(array.len(), len, "columns of one writer are equally long");
            let path = column.path(parent);
            let position = self.fields.get(&path).and_then(|id| positions.get(&id).copied());
            let position = position.ok_or_else(|| missing(&path))?;
            let field = &target.fields()[position];
            let data_type = arrow[position].data_type();
            projected[position] = Some(self.value(
                &field.field_type,
                data_type,
                &column.data_type,
                array.clone(),
                &path,
            )?);
        }
        Ok(projected)
    }

    fn value(
        &self,
        target: &Type,
        arrow: &DataType,
        column: &ColumnType,
        array: ArrayRef,
        path: &FieldPath,
    ) -> Result<ArrayRef> {
        match (target, arrow, column) {
            (Type::Struct(inner), DataType::Struct(fields), ColumnType::Struct(columns)) => {
                self.nested(inner, fields, columns, &array, path)
            }
            (Type::List(list), DataType::List(element), ColumnType::List(inner)) => {
                let array: &ListArray = downcast(&array)?;
                let values = self.value(
                    &list.element_field.field_type,
                    element.data_type(),
                    inner,
                    array.values().clone(),
                    &path.element(),
                )?;
                let nulls = array.nulls().cloned();
                Ok(Arc::new(
                    ListArray::try_new(element.clone(), array.offsets().clone(), values, nulls)
                        .map_err(internal)?,
                ))
            }
            (Type::Map(map), DataType::Map(entry, sorted), ColumnType::Map(_, inner)) => {
                let DataType::Struct(fields) = entry.data_type() else {
                    return Err(mismatch(&array, arrow));
                };
                let array: &MapArray = downcast(&array)?;
                let values = self.value(
                    &map.value_field.field_type,
                    fields[1].data_type(),
                    inner,
                    array.values().clone(),
                    &path.map_value(),
                )?;
                let entries = StructArray::try_new(fields.clone(), vec![array.keys().clone(), values], None)
                    .map_err(internal)?;
                let nulls = array.nulls().cloned();
                Ok(Arc::new(
                    MapArray::try_new(entry.clone(), array.offsets().clone(), entries, nulls, *sorted)
                        .map_err(internal)?,
                ))
            }
            _ => self.cast(array, arrow),
        }
    }

    fn nested(
        &self,
        target: &StructType,
        fields: &Fields,
        columns: &[Column],
        array: &ArrayRef,
        path: &FieldPath,
    ) -> Result<ArrayRef> {
        let array: &StructArray = downcast(array)?;
        let len = array.len();
        let children = self
            .columns(target, fields, columns, array.columns(), path, len)?
            .into_iter()
            .zip(fields)
            .map(|(child, field)| child.unwrap_or_else(|| new_null_array(field.data_type(), len)))
            .collect();
        let nulls: Option<NullBuffer> = array.nulls().cloned();
        Ok(Arc::new(
            StructArray::try_new_with_length(fields.clone(), children, nulls, len).map_err(internal)?,
        ))
    }

    /// The promotions of Iceberg v2.
    fn cast(&self, array: ArrayRef, to: &DataType) -> Result<ArrayRef> {
        let from = array.data_type();
        if from == to {
            return Ok(array);
        }
        Ok(match (from, to) {
            (DataType::Int32, DataType::Int64) => {
                Arc::new(downcast::<Int32Array>(&array)?.unary::<_, arrow_array::types::Int64Type>(i64::from))
            }
            (DataType::Float32, DataType::Float64) => Arc::new(
                downcast::<Float32Array>(&array)?.unary::<_, arrow_array::types::Float64Type>(f64::from),
            ),
            (DataType::Decimal128(_, from_scale), DataType::Decimal128(precision, scale))
                if from_scale == scale =>
            {
                let array = downcast::<Decimal128Array>(&array)?.clone();
                Arc::new(
                    array
                        .with_precision_and_scale(*precision, *scale)
                        .map_err(internal)?,
                )
            }
            _ => return Err(mismatch(&array, to)),
        })
    }
}

fn downcast<T: 'static>(array: &ArrayRef) -> Result<&T> {
    array.as_any().downcast_ref().ok_or_else(|| {
        Error::new(
            ErrorKind::Internal,
            "build a record batch",
            format!("a column is {} inside", array.data_type()),
        )
    })
}

fn mismatch(array: &ArrayRef, to: &DataType) -> Error {
    Error::new(
        ErrorKind::Conflict,
        "build a record batch",
        format!("a column of {} does not go into one of {to}", array.data_type()),
    )
    .with_hint("evolve the table's schema first")
}
