use arrow_array::Array;
use arrow_array::cast::AsArray;
use frazil_core::{Error, ErrorKind, Offset, Partition};
use frazil_schema::{AvroSchema, KafkaColumns, SourceSchema};
use iceberg::arrow::schema_to_arrow_schema;

use super::{Table, poison, records, show, values};
use crate::{DecodeOptions, EncodedRecord, Payload, prepare};

fn schema(fields: &str) -> SourceSchema {
    SourceSchema::Avro(
        AvroSchema::parse(&format!(
            r#"{{"type": "record", "name": "R", "fields": [{fields}]}}"#
        ))
        .unwrap(),
    )
}

#[test]
fn kafkas_own_columns_say_where_a_row_came_from() {
    let mut records = records([
        Payload::Json(br#"{"a": 1}"#),
        Payload::Tombstone,
        Payload::Json(b"{}"),
    ]);
    records[0].key = Some(b"key");
    records[0].headers = vec![("h", Some(b"\xff")), ("h", None), ("", Some(b""))];
    records[1].key = Some(b"\xff\x00");
    records[1].timestamp_ms = Some(-1);
    records[1].timestamp_type = None;
    records[2].partition = Partition(4);
    records[2].timestamp_ms = None;
    let mut table = Table {
        kafka: KafkaColumns {
            topic: true,
            timestamp_type: true,
            ..Default::default()
        },
        ..Default::default()
    };
    let batch = table
        .take(&prepare(&records, DecodeOptions::default()).unwrap())
        .unwrap();
    let rows: Vec<String> = (0..3)
        .map(|row| {
            batch
                .columns()
                .iter()
                .map(|c| show(c.as_ref(), row))
                .collect::<Vec<_>>()
                .join(" | ")
        })
        .collect();
    assert_eq!(
        rows,
        [
            "1 | 3 | 100 | 1764500000000000us+00:00 | 2 | key | [{name: h, value: xff}, {name: h, value: null}, {name: , value: x}] | false | orders | CREATE_TIME",
            "null | 3 | 101 | null | 2 | base64:/wA= | [] | true | orders | null",
            "null | 4 | 102 | null | 2 | null | [] | false | orders | CREATE_TIME",
        ]
    );
    let schema = table.schema.as_ref().unwrap();
    assert_eq!(batch.schema().as_ref(), &schema_to_arrow_schema(schema).unwrap());
    assert_eq!(batch.schema().field(2).metadata()["PARQUET:field_id"], "3");
}

#[test]
fn kafkas_timestamp_is_naive_where_instants_are() {
    let mut table = Table {
        kafka: KafkaColumns {
            utc_naive: true,
            ..Default::default()
        },
        ..Default::default()
    };
    let records = records([Payload::Tombstone]);
    let batch = table
        .take(&prepare(&records, DecodeOptions::default()).unwrap())
        .unwrap();
    let timestamp = batch.column_by_name("_kafka_timestamp").unwrap();
    assert_eq!(show(timestamp.as_ref(), 0), "1764500000000000us");
}

#[test]
fn a_mad_broker_clock_is_poison() {
    let mut records = records([Payload::Tombstone, Payload::Tombstone]);
    records[0].timestamp_ms = Some(1_764_500_000_000_000_000);
    let prepared = prepare(&records, DecodeOptions::default()).unwrap();
    assert_eq!(
        prepared.poison()[0].error.code(),
        Some("value.timestamp_out_of_range")
    );
    assert!(prepared.poison()[0].error.message().contains("_kafka_timestamp"));
    assert_eq!(prepared.rows().collect::<Vec<_>>(), [1]);
}

/// Three writers of one topic, one after the other and in between: `a` is widened, `s` grows, `b` comes and goes.
#[test]
fn writers_interleave_and_rows_stay_in_order() {
    let old = schema(
        r#"{"name": "a", "type": "int"}, {"name": "b", "type": "string"}, {"name": "s", "type": {"type": "record", "name": "S", "fields": [{"name": "x", "type": "float"}]}}"#,
    );
    let new = schema(
        r#"{"name": "s", "type": {"type": "record", "name": "S", "fields": [{"name": "y", "type": "boolean"}, {"name": "x", "type": "double"}]}}, {"name": "a", "type": "long"}"#,
    );
    let half = 0.5f32.to_le_bytes();
    let old_body = [&[14, 2, b'b'], half.as_slice()].concat();
    let new_body = [&[1], 0.25f64.to_le_bytes().as_slice(), &[16]].concat();
    let (old_row, new_row) = ("a=7 b=b s={x: 0.5, y: null}", "a=8 s={x: 0.25, y: true}");
    let avro = |schema, body| Payload::Encoded { schema, body };
    let mut table = Table::default();
    let records = records([
        Payload::Tombstone,
        avro(&old, &old_body),
        avro(&new, &new_body),
        avro(&old, &[1]),
        avro(&old, &old_body),
        Payload::Tombstone,
        Payload::Json(br#"{"a": 9, "c": "json"}"#),
        avro(&new, &new_body),
    ]);
    let prepared = prepare(&records, DecodeOptions::default()).unwrap();
    assert_eq!(poison(&prepared).len(), 1);
    let batch = table.take(&prepared).unwrap();
    assert_eq!(
        values(&batch),
        ["", old_row, new_row, old_row, "", "a=9 c=json", new_row]
    );
    let offsets = batch.column_by_name("_kafka_offset").unwrap();
    let offsets: Vec<i64> = offsets
        .as_primitive::<arrow_array::types::Int64Type>()
        .values()
        .to_vec();
    assert_eq!(offsets, [100, 101, 102, 104, 105, 106, 107]);
    // An older schema after a newer one.
    assert_eq!(
        table.values(&super::records([avro(&old, old_body.as_slice())])),
        [old_row]
    );
}

#[test]
fn a_writer_that_the_table_refuses_can_be_set_aside() {
    let (good, bad) = (
        schema(r#"{"name": "a", "type": "int"}"#),
        schema(r#"{"name": "a", "type": "string"}"#),
    );
    let records = records([
        Payload::Encoded {
            schema: &good,
            body: &[2],
        },
        Payload::Encoded {
            schema: &bad,
            body: &[2, b'x'],
        },
        Payload::Tombstone,
        Payload::Encoded {
            schema: &good,
            body: &[],
        },
    ]);
    let mut prepared = prepare(&records, DecodeOptions::default()).unwrap();
    let mut table = Table::default();
    assert_eq!(
        table.take(&prepared).unwrap_err().code(),
        Some("schema.change_refused")
    );
    prepared.reject(1, || {
        Error::new(ErrorKind::Poison, "use the schema", "refused").with_code("schema.change_refused")
    });
    assert_eq!(
        poison(&prepared)
            .iter()
            .map(|(index, _)| *index)
            .collect::<Vec<_>>(),
        [1, 3]
    );
    assert_eq!(values(&table.take(&prepared).unwrap()), ["a=1", ""]);
}

#[test]
fn a_prefix_can_be_kept() {
    let documents: Vec<String> = (0..5).map(|n| format!(r#"{{"n": {n}}}"#)).collect();
    let records = records(
        documents
            .iter()
            .map(|document| Payload::Json(document.as_bytes())),
    );
    let mut prepared = prepare(&records, DecodeOptions::default()).unwrap();
    prepared.retain(|index| index < 2);
    assert_eq!(values(&Table::default().take(&prepared).unwrap()), ["n=0", "n=1"]);
}

#[test]
fn tombstones_alone_and_nothing_at_all() {
    let tombstones = records([Payload::Tombstone, Payload::Tombstone]);
    let mut table = Table::default();
    assert_eq!(table.values(&tombstones), ["", ""]);
    assert_eq!(table.values(&[]), Vec::<String>::new());
}

#[test]
fn a_table_that_lacks_a_column_is_a_conflict() {
    let mut table = Table::default();
    table.values(&records([Payload::Tombstone]));
    let (records, int) = (
        records([Payload::Json(br#"{"a": 1}"#)]),
        schema(r#"{"name": "a", "type": "int"}"#),
    );
    let missing = table
        .batch(&prepare(&records, DecodeOptions::default()).unwrap())
        .unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::Conflict);
    assert!(missing.message().contains("`/a`"), "{missing}");
    let mut table = Table::default();
    table.values(&[EncodedRecord {
        offset: Offset(1),
        payload: Payload::Encoded {
            schema: &int,
            body: &[2],
        },
        ..records[0].clone()
    }]);
    let long = schema(r#"{"name": "a", "type": "long"}"#);
    let records = super::records([Payload::Encoded {
        schema: &long,
        body: &[2],
    }]);
    let narrow = table
        .batch(&prepare(&records, DecodeOptions::default()).unwrap())
        .unwrap_err();
    assert_eq!(narrow.kind(), ErrorKind::Conflict);
}

#[test]
fn columns_that_others_renamed_or_added_do_not_matter() {
    use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};
    let mut table = Table::default();
    table.values(&records([Payload::Json(br#"{"a": 1}"#)]));
    let mut fields: Vec<NestedField> = table
        .schema
        .as_ref()
        .unwrap()
        .as_struct()
        .fields()
        .iter()
        .map(|field| (**field).clone())
        .collect();
    fields[0].name = "alpha".to_owned();
    fields.insert(
        0,
        NestedField::optional(90, "loaded_by", Type::Primitive(PrimitiveType::String)),
    );
    table.schema = Some(
        Schema::builder()
            .with_fields(fields.into_iter().map(Into::into))
            .build()
            .unwrap(),
    );
    table.last_column_id = 90;
    assert_eq!(
        table.values(&records([Payload::Json(br#"{"a": 2}"#)])),
        ["alpha=2"]
    );
    let batch = table
        .take(&prepare(&records([Payload::Tombstone]), DecodeOptions::default()).unwrap())
        .unwrap();
    assert!(batch.column(0).is_null(0));
}
