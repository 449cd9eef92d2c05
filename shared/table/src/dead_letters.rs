use std::sync::{Arc, LazyLock};

use arrow_array::builder::{
    BinaryBuilder, Int32Builder, Int64Builder, ListBuilder, StringBuilder, StructBuilder,
    TimestampMicrosecondBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use frazil_core::{
    Epoch, Error, ErrorKind, Offset, Partition, Result, SourceName, TableName, TimestampMs, TopicName,
};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{
    ListType, NestedField, PrimitiveType, Schema, SchemaRef, SortOrder, StructType, TableMetadataBuilder,
    Transform, Type, UnboundPartitionSpec,
};

use crate::metadata::{common_properties, write_metadata};
use crate::properties;
use crate::rows::column_by_id;
use crate::warehouse::{LoadedTable, Warehouse, iceberg_error};

/// Field ids of the dead-letter table. Its schema is fixed.
pub mod field_ids {
    /// `partition`.
    pub const PARTITION: i32 = 3;
    /// `offset`.
    pub const OFFSET: i32 = 4;
    /// `epoch`.
    pub const EPOCH: i32 = 5;
    /// The columns that say what the record was, the same however often it is delivered.
    pub const RECORD: [i32; 5] = [PARTITION, OFFSET, 6, 7, 8];
    /// `source`, `topic`, `partition`, `offset`, `epoch`.
    pub const PLACE: [i32; 5] = [1, 2, PARTITION, OFFSET, EPOCH];
}

/// A record that cannot be read, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The partition.
    pub partition: Partition,
    /// The offset.
    pub offset: Offset,
    /// Kafka's timestamp.
    pub timestamp: Option<TimestampMs>,
    /// The key's bytes.
    pub key: Option<Vec<u8>>,
    /// The value's bytes.
    pub value: Option<Vec<u8>>,
    /// The headers, in order.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
    /// A stable code, such as `avro.truncated`.
    pub code: String,
    /// Why, with the path of the field.
    pub reason: String,
}

/// The schema of every dead-letter table.
pub fn schema() -> SchemaRef {
    static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| Arc::new(build_schema()));
    SCHEMA.clone()
}

fn build_schema() -> Schema {
    let field = |id, name: &str, of| Arc::new(NestedField::optional(id, name, Type::Primitive(of)));
    let header = Type::Struct(StructType::new(vec![
        field(14, "name", PrimitiveType::String),
        field(15, "value", PrimitiveType::Binary),
    ]));
    let headers = Type::List(ListType::new(Arc::new(NestedField::list_element(
        13, header, false,
    ))));
    Schema::builder()
        .with_fields(vec![
            field(1, "source", PrimitiveType::String),
            field(2, "topic", PrimitiveType::String),
            field(field_ids::PARTITION, "partition", PrimitiveType::Int),
            field(field_ids::OFFSET, "offset", PrimitiveType::Long),
            field(field_ids::EPOCH, "epoch", PrimitiveType::Int),
            field(6, "timestamp", PrimitiveType::Timestamptz),
            field(7, "key", PrimitiveType::Binary),
            field(8, "value", PrimitiveType::Binary),
            Arc::new(NestedField::optional(9, "headers", headers)),
            field(10, "code", PrimitiveType::String),
            field(11, "reason", PrimitiveType::String),
            field(12, "first_seen", PrimitiveType::Timestamptz),
        ])
        .build()
        .unwrap_or_else(|_| unreachable!("the schema is a constant, and a test builds it"))
}

/// Dead letters as rows of their table.
pub fn to_batch(
    source: &SourceName,
    topic: &TopicName,
    epoch: Epoch,
    letters: &[DeadLetter],
    first_seen: TimestampMs,
) -> Result<RecordBatch> {
    let arrow = schema_to_arrow_schema(&schema()).map_err(|e| iceberg_error("write dead letters", e))?;
    let arrow = Arc::new(arrow);
    let micros = |of: TimestampMs| of.0.checked_mul(1_000);
    let timestamps = || TimestampMicrosecondBuilder::new().with_timezone("+00:00");
    let mut sources = StringBuilder::new();
    let mut topics = StringBuilder::new();
    let mut partitions = Int32Builder::new();
    let mut offsets = Int64Builder::new();
    let mut epochs = Int32Builder::new();
    let mut times = timestamps();
    let mut keys = BinaryBuilder::new();
    let mut values = BinaryBuilder::new();
    let arrow_schema::DataType::List(element) = arrow.field(8).data_type() else {
        return Err(Error::new(
            ErrorKind::Internal,
            "write dead letters",
            "headers are not a list",
        ));
    };
    let arrow_schema::DataType::Struct(header_fields) = element.data_type() else {
        return Err(Error::new(
            ErrorKind::Internal,
            "write dead letters",
            "a header is not a struct",
        ));
    };
    let header = StructBuilder::new(
        header_fields.clone(),
        vec![
            Box::new(StringBuilder::new()),
            Box::new(arrow_array::builder::LargeBinaryBuilder::new()),
        ],
    );
    let mut headers = ListBuilder::new(header).with_field(element.clone());
    let mut codes = StringBuilder::new();
    let mut reasons = StringBuilder::new();
    let mut seen = timestamps();
    for letter in letters {
        sources.append_value(source.as_str());
        topics.append_value(topic.as_str());
        partitions.append_value(letter.partition.0);
        offsets.append_value(letter.offset.0);
        epochs.append_value(epoch.0);
        times.append_option(letter.timestamp.and_then(micros));
        keys.append_option(letter.key.as_deref());
        values.append_option(letter.value.as_deref());
        for (name, value) in &letter.headers {
            let header = headers.values();
            if let Some(names) = header.field_builder::<StringBuilder>(0) {
                names.append_value(name);
            }
            if let Some(bytes) = header.field_builder::<arrow_array::builder::LargeBinaryBuilder>(1) {
                bytes.append_option(value.as_deref());
            }
            header.append(true);
        }
        headers.append(true);
        codes.append_value(&letter.code);
        reasons.append_value(&letter.reason);
        seen.append_option(micros(first_seen));
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(sources.finish()),
        Arc::new(topics.finish()),
        Arc::new(partitions.finish()),
        Arc::new(offsets.finish()),
        Arc::new(epochs.finish()),
        Arc::new(times.finish()),
        Arc::new(keys.finish()),
        Arc::new(values.finish()),
        Arc::new(headers.finish()),
        Arc::new(codes.finish()),
        Arc::new(reasons.finish()),
        Arc::new(seen.finish()),
    ];
    let columns = columns
        .into_iter()
        .zip(arrow.fields())
        .map(|(column, field)| arrow_cast::cast(&column, field.data_type()))
        .collect::<std::result::Result<Vec<_>, _>>();
    columns
        .and_then(|columns| RecordBatch::try_new(arrow.clone(), columns))
        .map_err(|e| Error::new(ErrorKind::Internal, "write dead letters", e.to_string()).with_source(e))
}

/// Dead letters from rows of their table, each with its source, topic and epoch.
pub fn from_batch(batch: &RecordBatch) -> Result<Vec<(SourceName, TopicName, Epoch, DeadLetter)>> {
    let missing = |id: i32| {
        Error::new(ErrorKind::Internal, "read dead letters", "a column is missing")
            .with_context("field_id", id)
    };
    let column = |id: i32, wanted: &DataType| -> Result<ArrayRef> {
        let column = column_by_id(batch, id).ok_or_else(|| missing(id))?;
        arrow_cast::cast(column, wanted)
            .map_err(|e| Error::new(ErrorKind::Internal, "read dead letters", e.to_string()).with_source(e))
    };
    let text = |id| column(id, &DataType::Utf8);
    let bytes = |id| column(id, &DataType::Binary);
    let micros = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
    let (sources, topics, codes, reasons) = (text(1)?, text(2)?, text(10)?, text(11)?);
    let (keys, values, times) = (bytes(7)?, bytes(8)?, column(6, &micros)?);
    let int = |id| column(id, &DataType::Int32);
    let (partitions, epochs) = (int(field_ids::PARTITION)?, int(field_ids::EPOCH)?);
    let offsets = column(field_ids::OFFSET, &DataType::Int64)?;
    let headers = column_by_id(batch, 9).ok_or_else(|| missing(9))?;
    let text_at = |array: &ArrayRef, row| array.as_string::<i32>().value(row).to_owned();
    let bytes_at = |array: &ArrayRef, row| {
        let array = array.as_binary::<i32>();
        array.is_valid(row).then(|| array.value(row).to_vec())
    };
    let mut letters = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let time = times.as_primitive::<TimestampMicrosecondType>();
        let letter = DeadLetter {
            partition: Partition(partitions.as_primitive::<Int32Type>().value(row)),
            offset: Offset(offsets.as_primitive::<Int64Type>().value(row)),
            timestamp: time
                .is_valid(row)
                .then(|| TimestampMs(time.value(row).div_euclid(1_000))),
            key: bytes_at(&keys, row),
            value: bytes_at(&values, row),
            headers: headers_at(headers, row)?,
            code: text_at(&codes, row),
            reason: text_at(&reasons, row),
        };
        letters.push((
            SourceName::new(text_at(&sources, row)),
            TopicName::new(text_at(&topics, row)),
            Epoch(epochs.as_primitive::<Int32Type>().value(row)),
            letter,
        ));
    }
    Ok(letters)
}

fn headers_at(headers: &ArrayRef, row: usize) -> Result<Vec<(String, Option<Vec<u8>>)>> {
    let failed = |message: String| {
        Error::new(
            ErrorKind::Internal,
            "read dead letters",
            format!("headers: {message}"),
        )
    };
    let list = headers
        .as_list_opt::<i32>()
        .ok_or_else(|| failed(format!("a {}", headers.data_type())))?;
    if list.is_null(row) {
        return Ok(Vec::new());
    }
    let of_row = list.value(row);
    let pairs = of_row
        .as_struct_opt()
        .filter(|pairs| pairs.num_columns() == 2)
        .ok_or_else(|| failed(format!("a list of {}", of_row.data_type())))?;
    let cast = |at: usize, to: &DataType| {
        arrow_cast::cast(pairs.column(at), to).map_err(|error| failed(error.to_string()))
    };
    let (names, values) = (cast(0, &DataType::Utf8)?, cast(1, &DataType::Binary)?);
    let (names, values) = (names.as_string::<i32>(), values.as_binary::<i32>());
    Ok((0..pairs.len())
        .map(|at| {
            let value = values.is_valid(at).then(|| values.value(at).to_vec());
            (names.value(at).to_owned(), value)
        })
        .collect())
}

/// Loads the dead-letter table, or makes it when the first letter comes. Partitioned by the day it was first seen.
pub async fn ensure(warehouse: &Warehouse, name: &TableName) -> Result<LoadedTable> {
    for _ in 0..8 {
        if let Some(table) = warehouse.load(name).await? {
            return Ok(table);
        }
        let uuid = warehouse.environment.new_uuid();
        let failed = |error| iceberg_error("make the dead-letter table", error);
        let mut table_properties = common_properties();
        table_properties.insert(properties::KIND.to_owned(), "dead-letters".to_owned());
        let spec = UnboundPartitionSpec::builder()
            .add_partition_field(12, "first_seen_day", Transform::Day)
            .map_err(failed)?
            .build();
        let location = warehouse.layout.table(name, uuid);
        let builder = TableMetadataBuilder::new(
            schema().as_ref().clone(),
            spec,
            SortOrder::unsorted_order(),
            location,
            iceberg::spec::FormatVersion::V2,
            table_properties,
        )
        .map_err(failed)?
        .assign_uuid(uuid);
        let (location, metadata) =
            write_metadata(warehouse, builder, None, warehouse.environment.now()).await?;
        warehouse.catalog.create_namespace(name.namespace()).await?;
        // Whatever the answer, the next turn reads what is there.
        match warehouse.catalog.create(name, &location, &metadata).await {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::Conflict || error.kind() == ErrorKind::CommitUnknown => {
            }
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(
        ErrorKind::Unavailable,
        "make the dead-letter table",
        "it was neither made nor found",
    )
    .with_context("table", name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_table_keeps_the_field_ids() {
        let built = TableMetadataBuilder::new(
            schema().as_ref().clone(),
            UnboundPartitionSpec::builder().build(),
            SortOrder::unsorted_order(),
            "memory://w/t".to_owned(),
            iceberg::spec::FormatVersion::V2,
            common_properties(),
        )
        .unwrap()
        .build()
        .unwrap();
        assert_eq!(built.metadata.current_schema().as_struct(), schema().as_struct());
    }

    #[test]
    fn letters_become_rows() {
        let letter = DeadLetter {
            partition: Partition(3),
            offset: Offset(9),
            timestamp: None,
            key: Some(b"k".to_vec()),
            value: None,
            headers: vec![("h".to_owned(), Some(vec![255])), ("h".to_owned(), None)],
            code: "json.invalid".to_owned(),
            reason: "not JSON".to_owned(),
        };
        let letters = [
            letter.clone(),
            DeadLetter {
                headers: Vec::new(),
                ..letter
            },
        ];
        let batch = to_batch(&"s".into(), &"t".into(), Epoch(1), &letters, TimestampMs(5)).unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (2, 12));
        assert_eq!(batch.column(8).null_count(), 0);
        let read: Vec<DeadLetter> = from_batch(&batch).unwrap().into_iter().map(|(.., l)| l).collect();
        assert_eq!(read, letters);
    }
}
