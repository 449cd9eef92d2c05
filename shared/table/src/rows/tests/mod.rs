mod damaged;
mod encoding;
mod json;
mod partitions;
mod proof;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema as ArrowSchema};
use iceberg::spec::{
    NestedField, PartitionSpec, PrimitiveType, Schema, SchemaRef, Struct, Transform, Type,
    UnboundPartitionField,
};

use super::*;

const PARTITION: i32 = 1;
const OFFSET: i32 = 2;

/// An Arrow field with its Iceberg id.
fn field(id: i32, name: &str, data_type: DataType) -> Field {
    let id = HashMap::from([("PARQUET:field_id".to_owned(), id.to_string())]);
    Field::new(name, data_type, true).with_metadata(id)
}

fn fields(fields: impl IntoIterator<Item = Field>) -> Fields {
    fields.into_iter().map(FieldRef::from).collect()
}

/// A batch of these columns.
fn batch(columns: impl IntoIterator<Item = (Field, ArrayRef)>) -> RecordBatch {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), arrays).expect("a batch")
}

fn optional(id: i32, name: &str, kind: impl Into<Type>) -> Arc<NestedField> {
    Arc::new(NestedField::optional(id, name, kind.into()))
}

fn schema(fields: impl IntoIterator<Item = Arc<NestedField>>) -> SchemaRef {
    Arc::new(Schema::builder().with_fields(fields).build().expect("a schema"))
}

fn spec(schema: &SchemaRef, parts: &[(i32, &str, Transform)]) -> PartitionSpec {
    let mut builder = PartitionSpec::builder(Arc::clone(schema)).with_spec_id(7);
    for (source_id, name, transform) in parts {
        let part = UnboundPartitionField {
            source_id: *source_id,
            field_id: None,
            name: (*name).to_owned(),
            transform: *transform,
        };
        builder = builder.add_unbound_field(part).expect("a partition field");
    }
    builder.build().expect("a spec")
}

/// Writes an unpartitioned file.
fn write(schema: &SchemaRef, batches: &[RecordBatch], settings: &FileSettings) -> EncodedFile {
    let spec = PartitionSpec::unpartition_spec();
    write_data_file(batches, schema, &spec, &Struct::empty(), settings).expect("a file")
}

fn kafka_fields() -> [Arc<NestedField>; 2] {
    [
        optional(PARTITION, "_kafka_partition", PrimitiveType::Int),
        optional(OFFSET, "_kafka_offset", PrimitiveType::Long),
    ]
}

/// The columns that name records.
fn kafka_columns(partition: i32, offsets: &[i64]) -> [(Field, ArrayRef); 2] {
    let partitions = arrow_array::Int32Array::from(vec![partition; offsets.len()]);
    let offsets = arrow_array::Int64Array::from(offsets.to_vec());
    [
        (
            field(PARTITION, "_kafka_partition", DataType::Int32),
            Arc::new(partitions),
        ),
        (field(OFFSET, "_kafka_offset", DataType::Int64), Arc::new(offsets)),
    ]
}
