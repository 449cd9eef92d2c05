use arrow_array::Array;
use arrow_array::cast::AsArray;
use frazil_core::{ErrorKind, Offset, Partition};
use frazil_schema::{AvroSchema, KafkaColumns, RecordPart, SourceSchema};
use iceberg::arrow::schema_to_arrow_schema;

use super::{Table, poison, records, show, values};
use crate::{DecodeOptions, EncodedRecord, Payload, RawColumn, prepare};

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
fn keys_become_columns_beside_the_value() {
    let key = schema(r#"{"name": "id", "type": "int"}, {"name": "region", "type": "string"}"#);
    let value = schema(r#"{"name": "id", "type": "string"}"#);
    let value = |body| Payload::Encoded { schema: &value, body };
    let of_key = |body| Payload::Encoded { schema: &key, body };
    let values_of = records([
        value(&[2, b'a']),
        Payload::Tombstone,
        value(&[9]),
        value(&[2, b'd']),
        value(&[2, b'e']),
    ]);
    let keys_of = records([
        of_key(&[2, 4, b'e', b'u']),
        of_key(&[4, 4, b'u', b's']),
        of_key(&[6, 4, b'u', b's']),
        of_key(&[2]),
        Payload::Tombstone,
    ]);
    let options = DecodeOptions::default();
    let keys = prepare(&keys_of, options).unwrap();
    let prepared = prepare(&values_of, options).unwrap().with_keys(keys);
    let poison = poison(&prepared);
    assert_eq!(poison.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [2, 3]);
    assert!(
        prepared.poison()[1]
            .error
            .context()
            .iter()
            .any(|(key, value)| *key == "of" && value == "key")
    );
    let batch = Table::default().take(&prepared).unwrap();
    assert_eq!(
        values(&batch),
        ["id=a key_id=1 region=eu", "key_id=2 region=us", "id=e"]
    );
}

#[test]
fn a_key_that_is_a_single_value_is_the_column_key() {
    let values_of = records([Payload::Json(br#"{"key": 1}"#)]);
    let keys_of = records([Payload::Raw(b"k1")]);
    let options = DecodeOptions::default();
    let text = DecodeOptions {
        raw: RawColumn::String,
        ..options
    };
    let keys = prepare(&keys_of, text).unwrap();
    let prepared = prepare(&values_of, options).unwrap().with_keys(keys);
    assert_eq!(
        values(&Table::default().take(&prepared).unwrap()),
        ["key=1 key_key=k1"]
    );
}

/// Values and keys of inferred JSON into a table, event by event.
#[test]
fn keys_of_json_are_inferred_beside_the_value() {
    let mut table = Table::default();
    let mut take = |pairs: &[(&str, &str)], max_columns: usize| {
        let value = DecodeOptions {
            max_columns,
            ..DecodeOptions::default()
        };
        let key = DecodeOptions {
            part: RecordPart::Key,
            ..value
        };
        let values_of = records(pairs.iter().map(|(_, value)| Payload::Json(value.as_bytes())));
        let keys_of = records(pairs.iter().map(|(key, _)| match *key {
            "" => Payload::Tombstone,
            key => Payload::Json(key.as_bytes()),
        }));
        let keys = prepare(&keys_of, key).unwrap();
        let prepared = prepare(&values_of, value).unwrap().with_keys(keys);
        let codes: Vec<String> = poison(&prepared).into_iter().map(|(_, of)| of).collect();
        (values(&table.take(&prepared).unwrap()), codes)
    };
    let event = [
        (r#"{"id": 1, "at": {"x": true}}"#, r#"{"id": "a", "n": 1}"#),
        ("", r#"{"id": "b"}"#),
        ("null", r#"{"id": "c"}"#),
        (r#"{"id": 2"#, r#"{"id": "d"}"#),
    ];
    let (rows, codes) = take(&event, 9);
    assert_eq!(rows, ["id=a n=1 key_id=1 at={x: true}", "id=b", "id=c"]);
    assert_eq!(codes.len(), 1);
    assert!(codes[0].starts_with("json.invalid "), "{codes:?}");
    // What does not fit goes into a sibling, called like the key's own column; the value's has one of its own.
    let (rows, _) = take(&[(r#"{"id": "x", "n": 7}"#, r#"{"n": "y"}"#)], 9);
    assert_eq!(rows, ["n__string=y key_id__string=x key_n=7"]);
    // Again, with nothing new: the columns are found.
    let (rows, _) = take(&[(r#"{"id": "z"}"#, "{}"), (r#"{"id": 3}"#, "{}")], 9);
    assert_eq!(rows, ["key_id__string=z", "key_id=3"]);
    // A key that is a single value.
    let (rows, codes) = take(&[("42", "{}"), (r#""k""#, "{}"), ("[1]", "{}"), ("k", "{}")], 9);
    assert_eq!(rows, ["key=42", "key=k", "key=[1]"]);
    assert_eq!(codes.len(), 1);
    // No room: keys have room of their own, and what finds none there is in `_kafka_key`.
    let (rows, _) = take(
        &[(r#"{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}"#, r#"{"v": 1}"#)],
        9,
    );
    assert_eq!(rows, ["v=1 a=1 b=2 c=3 d=4"]);
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
