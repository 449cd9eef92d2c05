//! What the codec's tests share: a topic of one table, and rows as text.

use crate::{DecodeOptions, EncodedRecord, Payload, Prepared, TargetTable, prepare};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type, Time64MicrosecondType,
    TimestampMicrosecondType,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use frazil_core::{Epoch, Offset, Partition, Result, TopicName};
use frazil_schema::{Evolution, FieldMap, KafkaColumns, evolve};
use iceberg::spec::Schema;

mod avro;
mod avro_pairs;
mod avro_settings;
mod batch;
mod json;
mod json_schema;
mod partitions;
mod protobuf;
mod raw;

pub(crate) fn records<'a>(payloads: impl IntoIterator<Item = Payload<'a>>) -> Vec<EncodedRecord<'a>> {
    payloads
        .into_iter()
        .zip(100..)
        .map(|(payload, offset)| EncodedRecord {
            partition: Partition(3),
            offset: Offset(offset),
            timestamp_ms: Some(1_764_500_000_000),
            timestamp_type: Some("CREATE_TIME"),
            key: None,
            headers: Vec::new(),
            payload,
        })
        .collect()
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) schema: Option<Schema>,
    pub(crate) fields: FieldMap,
    pub(crate) last_column_id: i32,
    pub(crate) kafka: KafkaColumns,
}

impl Table {
    /// Evolves the table for the records, and answers them as its batch.
    pub(crate) fn take(&mut self, prepared: &Prepared<'_>) -> Result<RecordBatch> {
        let columns = prepared.columns(self.schema.as_ref().map(|schema| (schema, &self.fields)));
        let wanted: Vec<_> = columns.iter().map(AsRef::as_ref).collect();
        match evolve(
            self.schema.as_ref(),
            self.last_column_id,
            &self.fields,
            &wanted,
            &self.kafka,
        )? {
            Evolution::Unchanged => {}
            Evolution::Changed(change) => {
                self.schema = Some(change.schema);
                self.fields = change.fields;
                self.last_column_id = change.last_column_id;
            }
            Evolution::Refused(refused) => return Err(refused[0].to_error()),
        }
        self.batch(prepared)
    }

    pub(crate) fn batch(&self, prepared: &Prepared<'_>) -> Result<RecordBatch> {
        prepared.to_batch(&TargetTable {
            schema: self.schema.as_ref().expect("a schema"),
            fields: &self.fields,
            kafka: &self.kafka,
            topic: &TopicName::new("orders"),
            epoch: Epoch(2),
        })
    }

    /// The value's columns of the records, row by row.
    pub(crate) fn values(&mut self, records: &[EncodedRecord<'_>]) -> Vec<String> {
        let prepared = prepare(records, DecodeOptions::default()).expect("prepared");
        assert!(prepared.poison().is_empty(), "{:?}", prepared.poison());
        values(&self.take(&prepared).expect("a batch"))
    }
}

/// Rows as text, Kafka's own columns left out: `name=value …`, nulls left out.
pub(crate) fn values(batch: &RecordBatch) -> Vec<String> {
    (0..batch.num_rows())
        .map(|row| {
            let schema = batch.schema();
            let fields = schema.fields().iter().zip(batch.columns());
            let own = |name: &str| name.starts_with("_kafka_") && name != "_kafka_unknown_fields";
            fields
                .filter(|(field, array)| !own(field.name()) && array.is_valid(row))
                .map(|(field, array)| format!("{}={}", field.name(), show(array.as_ref(), row)))
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect()
}

/// One value as text.
pub(crate) fn show(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "null".to_owned();
    }
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float32 => format!("{:?}f", array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => format!("{:?}", array.as_primitive::<Float64Type>().value(row)),
        DataType::Date32 => format!("day {}", array.as_primitive::<Date32Type>().value(row)),
        DataType::Decimal128(..) => array.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::Timestamp(_, zone) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            format!("{micros}us{}", zone.as_deref().unwrap_or_default())
        }
        DataType::Time64(_) => {
            let micros = array.as_primitive::<Time64MicrosecondType>().value(row);
            format!("{micros}us")
        }
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::LargeBinary => format!("x{}", hex(array.as_binary::<i64>().value(row))),
        DataType::Struct(fields) => {
            let children = fields.iter().zip(array.as_struct().columns());
            let shown: Vec<String> = children
                .map(|(f, child)| format!("{}: {}", f.name(), show(child, row)))
                .collect();
            format!("{{{}}}", shown.join(", "))
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            format!(
                "[{}]",
                (0..items.len())
                    .map(|item| show(items.as_ref(), item))
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            let shown: Vec<String> = (0..entries.len())
                .map(|i| format!("{}: {}", show(keys, i), show(values, i)))
                .collect();
            format!("<{}>", shown.join(", "))
        }
        other => panic!("no text for {other}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The codes and reasons of the records that could not be read.
pub(crate) fn poison(prepared: &Prepared<'_>) -> Vec<(usize, String)> {
    let shown = prepared.poison().iter();
    shown
        .map(|p| {
            (
                p.index,
                format!("{} {}", p.error.code().unwrap_or("?"), p.error.message()),
            )
        })
        .collect()
}
