use std::collections::HashMap;

use apache_avro::types::Value;
use apache_avro::{Decimal, Schema, to_avro_datum};
use arrow_avro::reader::ReaderBuilder;
use arrow_avro::schema::{AvroSchema as ArrowAvroSchema, Fingerprint, FingerprintAlgorithm, SchemaStore};
use frazil_schema::{AvroSchema, SourceSchema};
use proptest::prelude::*;

use super::{Table, poison, records, show, values};
use crate::{DecodeOptions, Payload, prepare};

fn record_of(data_type: &str) -> String {
    format!(r#"{{"type": "record", "name": "R", "fields": [{{"name": "f", "type": {data_type}}}]}}"#)
}

/// Encodes the field `f` with apache-avro; expects it in the table as text, or as the poison's code and reason.
fn check(data_type: &str, value: Value, expected: &str) {
    let text = record_of(data_type);
    let value = Value::Record(vec![("f".to_owned(), value)]);
    let body = to_avro_datum(&Schema::parse_str(&text).unwrap(), value).unwrap();
    check_bytes(data_type, &body, expected);
}

fn check_bytes(data_type: &str, body: &[u8], expected: &str) {
    let schema = SourceSchema::Avro(AvroSchema::parse(&record_of(data_type)).unwrap());
    let records = records([Payload::Encoded {
        schema: &schema,
        body,
    }]);
    let prepared = prepare(&records, DecodeOptions::default()).unwrap();
    let found = match prepared.poison() {
        [] => values(&Table::default().take(&prepared).unwrap()).remove(0),
        _ => poison(&prepared).remove(0).1,
    };
    assert_eq!(found, expected, "{data_type} {}", body.escape_ascii());
}

fn decimal(bytes: &[u8]) -> Value {
    Value::Decimal(Decimal::from(bytes))
}

#[test]
fn every_avro_type_arrives() {
    let uuid = "67E55044-10b1-426f-9247-bb680e5fe0c8";
    let decimal_type = r#"{"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}"#;
    let wide = r#"{"type": "fixed", "name": "D", "size": 17, "logicalType": "decimal", "precision": 38, "scale": 0}"#;
    let record = r#"{"type": "record", "name": "S", "fields": [{"name": "x", "type": "int"}, {"name": "n", "type": "null"}, {"name": "Y", "type": ["null", "string"]}]}"#;
    let s = |y: Value| {
        Value::Record(vec![
            ("x".into(), Value::Int(-7)),
            ("n".into(), Value::Null),
            ("Y".into(), y),
        ])
    };
    let union = |index, value| Value::Union(index, Box::new(value));
    let mut wide_max = [0xff; 17];
    wide_max[1..].copy_from_slice(&(-99_999_999_999_999_999_999_999_999_999_999_999_999i128).to_be_bytes());
    let cases: Vec<(&str, Value, &str)> = vec![
        (r#""boolean""#, Value::Boolean(true), "f=true"),
        (r#""int""#, Value::Int(i32::MIN), "f=-2147483648"),
        (r#""long""#, Value::Long(i64::MIN), "f=-9223372036854775808"),
        (r#""long""#, Value::Long(i64::MAX), "f=9223372036854775807"),
        (r#""float""#, Value::Float(1.5), "f=1.5f"),
        (r#""double""#, Value::Double(-0.1), "f=-0.1"),
        (r#""string""#, Value::String("Grüße".into()), "f=Grüße"),
        (r#""bytes""#, Value::Bytes(vec![0, 255]), "f=x00ff"),
        (
            r#"{"type": "fixed", "name": "F", "size": 2}"#,
            Value::Fixed(2, vec![1, 2]),
            "f=x0102",
        ),
        (
            r#"{"type": "enum", "name": "E", "symbols": ["A", "B"]}"#,
            Value::Enum(1, "B".into()),
            "f=B",
        ),
        (decimal_type, decimal(&[0x30, 0x39]), "f=123.45"),
        (decimal_type, decimal(&[0xff]), "f=-0.01"),
        (decimal_type, decimal(&[0x3b, 0x9a, 0xc9, 0xff]), "f=9999999.99"),
        (
            decimal_type,
            decimal(&[0x3b, 0x9a, 0xca, 0x00]),
            "avro.decimal_overflow field `f`: the decimal has more digits than its precision, 9",
        ),
        (
            wide,
            decimal(&wide_max),
            "f=-99999999999999999999999999999999999999",
        ),
        (
            r#"{"type": "int", "logicalType": "date"}"#,
            Value::Date(-1),
            "f=day -1",
        ),
        (
            r#"{"type": "int", "logicalType": "time-millis"}"#,
            Value::TimeMillis(86_399_999),
            "f=23:59:59.999000",
        ),
        (
            r#"{"type": "long", "logicalType": "time-micros"}"#,
            Value::TimeMicros(1),
            "f=00:00:00.000001",
        ),
        (
            r#"{"type": "long", "logicalType": "time-micros"}"#,
            Value::TimeMicros(86_400_000_000),
            "value.time_out_of_range field `f`: 86400000000 µs is not a time of day",
        ),
        (
            r#"{"type": "long", "logicalType": "timestamp-millis"}"#,
            Value::TimestampMillis(-1),
            "f=-1000us+00:00",
        ),
        (
            r#"{"type": "long", "logicalType": "timestamp-micros"}"#,
            Value::TimestampMicros(1_764_500_000_000_001),
            "f=1764500000000001us+00:00",
        ),
        (
            r#"{"type": "long", "logicalType": "timestamp-nanos"}"#,
            Value::TimestampNanos(-1),
            "f=-1us+00:00",
        ),
        (
            r#"{"type": "long", "logicalType": "timestamp-nanos"}"#,
            Value::TimestampNanos(1_999),
            "f=1us+00:00",
        ),
        (
            r#"{"type": "long", "logicalType": "local-timestamp-millis"}"#,
            Value::LocalTimestampMillis(5),
            "f=5000us",
        ),
        (
            r#"{"type": "long", "logicalType": "local-timestamp-micros"}"#,
            Value::LocalTimestampMicros(5),
            "f=5us",
        ),
        (
            r#"{"type": "string", "logicalType": "uuid"}"#,
            Value::String(uuid.into()),
            "f=67e55044-10b1-426f-9247-bb680e5fe0c8",
        ),
        (record, s(union(1, Value::String("y".into()))), "f={x: -7, y: y}"),
        (record, s(union(0, Value::Null)), "f={x: -7, y: null}"),
        (
            r#"{"type": "record", "name": "S", "fields": []}"#,
            Value::Record(vec![]),
            "f=true",
        ),
        (
            r#"["null", {"type": "record", "name": "S", "fields": []}]"#,
            union(0, Value::Null),
            "",
        ),
        (
            r#"{"type": "array", "items": ["null", "long"]}"#,
            Value::Array(vec![union(1, Value::Long(3)), union(0, Value::Null)]),
            "f=[3, null]",
        ),
        (
            r#"{"type": "array", "items": "string"}"#,
            Value::Array(vec![]),
            "f=[]",
        ),
        (
            r#"{"type": "map", "values": "long"}"#,
            Value::Map(HashMap::from([("k".into(), Value::Long(1))])),
            "f=<k: 1>",
        ),
        (
            r#"["string", "null"]"#,
            union(0, Value::String("s".into())),
            "f=s",
        ),
        (r#"["string", "null"]"#, union(1, Value::Null), ""),
        (r#"["string"]"#, union(0, Value::String("s".into())), "f=s"),
        (
            r#"["null", "string", "long"]"#,
            union(2, Value::Long(5)),
            "f={string: null, long: 5}",
        ),
        (r#"["null", "string", "long"]"#, union(0, Value::Null), ""),
    ];
    for (data_type, value, expected) in cases {
        check(data_type, value, expected);
    }
}

#[test]
fn what_apache_avro_does_not_write_arrives_too() {
    let cases: [(&str, &[u8], &str); 7] = [
        (
            r#"{"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}"#,
            &[0xab; 16],
            "f=abababab-abab-abab-abab-abababababab",
        ),
        (
            r#"{"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"}"#,
            &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0],
            "f=x010000000200000003000000",
        ),
        (
            r#"{"type": "string", "logicalType": "uuid"}"#,
            b"\x06abc",
            "avro.invalid field `f`: the string is not a UUID",
        ),
        // A block with its size in bytes, and two blocks.
        (
            r#"{"type": "array", "items": "int"}"#,
            &[3, 4, 2, 4, 2, 6, 0],
            "f=[1, 2, 3]",
        ),
        (
            r#"{"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}"#,
            &[0],
            "f=0.00",
        ),
        (
            r#"{"type": "array", "items": {"type": "record", "name": "S", "fields": []}}"#,
            &[4, 0],
            "f=[true, true]",
        ),
        (r#"{"type": "array", "items": "null"}"#, &[4, 0], ""),
    ];
    for (data_type, body, expected) in cases {
        check_bytes(data_type, body, expected);
    }
}

#[test]
fn every_fault_has_a_code_and_a_place() {
    let items = r#"{"type": "array", "items": {"type": "record", "name": "I", "fields": [{"name": "sku", "type": "string"}]}}"#;
    let instant = r#"{"type": "long", "logicalType": "timestamp-millis"}"#;
    let cases: [(&str, &[u8], &str); 15] = [
        (
            r#""string""#,
            b"",
            "avro.truncated field `f`: the value needs 1 more bytes where 0 are left",
        ),
        (
            r#""string""#,
            b"\x08abc",
            "avro.truncated field `f`: the value needs 4 more bytes where 3 are left",
        ),
        (
            r#""string""#,
            b"\x02ab",
            "avro.invalid 1 bytes are left after the value",
        ),
        (
            r#""string""#,
            b"\x01",
            "avro.invalid field `f`: -1 is not a length or index",
        ),
        (
            r#""string""#,
            b"\x02\xff",
            "avro.invalid field `f`: the string is not UTF-8: invalid utf-8 sequence of 1 bytes from index 0",
        ),
        (r#""boolean""#, &[2], "avro.invalid field `f`: 2 is not a boolean"),
        (
            r#""int""#,
            &[0xff, 0xff, 0xff, 0xff, 0x1f],
            "avro.invalid field `f`: -4294967296 is not an int of 32 bits",
        ),
        (
            r#""long""#,
            &[0xff; 10],
            "avro.invalid field `f`: a number is longer than 64 bits",
        ),
        (
            r#"{"type": "enum", "name": "E", "symbols": ["A"]}"#,
            &[2],
            "avro.invalid field `f`: enum symbol 1 of 1",
        ),
        (
            r#"["null", "int"]"#,
            &[4, 2],
            "avro.invalid field `f`: the union has no branch 2",
        ),
        (
            r#"["null", "int", "string"]"#,
            &[6],
            "avro.invalid field `f`: the union has no branch 3",
        ),
        (
            items,
            b"\x04\x02a\x08bc",
            "avro.truncated field `f[].sku`: the value needs 4 more bytes where 2 are left",
        ),
        (
            r#"{"type": "array", "items": {"type": "record", "name": "S", "fields": []}}"#,
            &[0xfe, 0xff, 0xff, 0xff, 0x0f, 0],
            "avro.invalid field `f`: 2147483647 items that take no bytes: more than the limit",
        ),
        (
            r#"{"type": "int", "logicalType": "date"}"#,
            &[0xff, 0xff, 0xff, 0xff, 0x0f],
            "value.date_out_of_range field `f`: day -2147483648 after 1970-01-01 is outside the believed range",
        ),
        (
            instant,
            &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            "value.timestamp_out_of_range field `f`: 9223372036854775807 milliseconds after 1970 is outside the topic's timestamp range",
        ),
    ];
    for (data_type, body, expected) in cases {
        check_bytes(data_type, body, expected);
    }
}

#[test]
fn a_likely_unit_is_named() {
    let text = record_of(r#"{"type": "long", "logicalType": "timestamp-millis"}"#);
    let schema = SourceSchema::Avro(AvroSchema::parse(&text).unwrap());
    let encode = |millis| {
        let value = Value::Record(vec![("f".to_owned(), Value::TimestampMillis(millis))]);
        to_avro_datum(&Schema::parse_str(&text).unwrap(), value).unwrap()
    };
    for (millis, hint) in [
        (
            1_764_500_000_000_000,
            "it looks like microseconds in a millisecond field",
        ),
        (
            1_764_500_000_000_000_000,
            "it looks like nanoseconds in a millisecond field",
        ),
        (
            i64::MAX,
            "correct the producer's clock, or widen `timestamp_range`",
        ),
    ] {
        let body = encode(millis);
        let records = records([Payload::Encoded {
            schema: &schema,
            body: &body,
        }]);
        let prepared = prepare(&records, DecodeOptions::default()).unwrap();
        assert_eq!(prepared.poison()[0].error.hint(), Some(hint));
    }
}

const MIXED: &str = r#"{"type": "record", "name": "R", "fields": [
    {"name": "id", "type": "string"},
    {"name": "n", "type": ["null", "long"]},
    {"name": "flag", "type": "boolean"},
    {"name": "list", "type": {"type": "array", "items": {"type": "record", "name": "I", "fields": [
        {"name": "x", "type": "int"}, {"name": "y", "type": ["null", "string"]}]}}},
    {"name": "map", "type": {"type": "map", "values": "double"}},
    {"name": "either", "type": ["null", "int", "string"]}
]}"#;

fn mixed(n: i64) -> Vec<u8> {
    let text = |text: &str| Value::Union(1, Box::new(Value::String(text.into())));
    let item = |x, y| Value::Record(vec![("x".into(), Value::Int(x)), ("y".into(), y)]);
    let value = Value::Record(vec![
        ("id".into(), Value::String(format!("id-{n}"))),
        ("n".into(), Value::Union(1, Box::new(Value::Long(n)))),
        ("flag".into(), Value::Boolean(n % 2 == 0)),
        (
            "list".into(),
            Value::Array(vec![
                item(1, text("a")),
                item(2, Value::Union(0, Box::new(Value::Null))),
            ]),
        ),
        (
            "map".into(),
            Value::Map(HashMap::from([("k".to_owned(), Value::Double(0.5))])),
        ),
        (
            "either".into(),
            Value::Union(2, Box::new(Value::String("s".into()))),
        ),
    ]);
    to_avro_datum(&Schema::parse_str(MIXED).unwrap(), value).unwrap()
}

fn expected_mixed(n: i64) -> String {
    format!(
        "id=id-{n} n={n} flag={} list=[{{x: 1, y: a}}, {{x: 2, y: null}}] map=<k: 0.5> either={{int: null, string: s}}",
        n % 2 == 0
    )
}

/// Whatever a record between two good ones does, they stay as they are.
fn check_neighbours(bytes: &[u8]) {
    let schema = SourceSchema::Avro(AvroSchema::parse(MIXED).unwrap());
    let (first, last) = (mixed(1), mixed(2));
    let bodies = [first.as_slice(), bytes, last.as_slice()];
    let records = records(bodies.map(|body| Payload::Encoded {
        schema: &schema,
        body,
    }));
    let prepared = prepare(&records, DecodeOptions::default()).unwrap();
    let rows = values(&Table::default().take(&prepared).unwrap());
    assert_eq!(rows.first(), Some(&expected_mixed(1)));
    assert_eq!(rows.last(), Some(&expected_mixed(2)));
    assert_eq!(rows.len() + prepared.poison().len(), 3);
}

#[test]
fn a_record_cut_anywhere_leaves_its_neighbours_alone() {
    let whole = mixed(7);
    for cut in 0..whole.len() {
        check_neighbours(&whole[..cut]);
    }
}

proptest! {
    #[test]
    fn mutated_records_leave_their_neighbours_alone(at in 0usize..100, byte in any::<u8>()) {
        let mut body = mixed(7);
        let at = at % body.len();
        body[at] = byte;
        check_neighbours(&body);
    }

    #[test]
    fn arbitrary_bytes_leave_their_neighbours_alone(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        check_neighbours(&bytes);
    }

    /// arrow-avro reads the same from the same bytes.
    #[test]
    fn arrow_avro_reads_the_same(id in ".{0,12}", n in any::<Option<i64>>(), items in proptest::collection::vec((any::<i32>(), any::<Option<bool>>()), 0..5), d in any::<f64>()) {
        let text = r#"{"type": "record", "name": "R", "fields": [
            {"name": "id", "type": "string"}, {"name": "n", "type": ["null", "long"]}, {"name": "d", "type": "double"},
            {"name": "items", "type": {"type": "array", "items": {"type": "record", "name": "I", "fields": [
                {"name": "x", "type": "int"}, {"name": "y", "type": ["boolean", "null"]}]}}}]}"#;
        let optional = |null, index, value: Option<Value>| match value {
            Some(value) => Value::Union(index, Box::new(value)),
            None => Value::Union(null, Box::new(Value::Null)),
        };
        let items = items.into_iter().map(|(x, y)| Value::Record(vec![
            ("x".into(), Value::Int(x)), ("y".into(), optional(1, 0, y.map(Value::Boolean)))])).collect();
        let body = to_avro_datum(&Schema::parse_str(text).unwrap(), Value::Record(vec![
            ("id".into(), Value::String(id)), ("n".into(), optional(0, 1, n.map(Value::Long))),
            ("d".into(), Value::Double(d)), ("items".into(), Value::Array(items))])).unwrap();

        let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id);
        store.set(Fingerprint::Id(1), ArrowAvroSchema::new(text.to_owned())).unwrap();
        let mut decoder = ReaderBuilder::new().with_writer_schema_store(store).build_decoder().unwrap();
        decoder.decode(&[&[0, 0, 0, 0, 1], body.as_slice()].concat()).unwrap();
        let theirs = decoder.flush().unwrap().unwrap();

        let schema = SourceSchema::Avro(AvroSchema::parse(text).unwrap());
        let records = records([Payload::Encoded { schema: &schema, body: &body }]);
        let ours = Table::default().take(&prepare(&records, DecodeOptions::default()).unwrap()).unwrap();
        for column in theirs.schema().fields() {
            let name = column.name();
            let (ours, theirs) = (ours.column_by_name(name).unwrap(), theirs.column_by_name(name).unwrap());
            prop_assert_eq!(show(ours.as_ref(), 0), show(theirs.as_ref(), 0));
        }
    }
}
