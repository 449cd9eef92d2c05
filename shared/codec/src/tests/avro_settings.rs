//! What a topic's settings make of Avro, and the types that hold themselves.

use std::collections::HashMap;

use apache_avro::types::Value;
use apache_avro::{Decimal, Schema, to_avro_datum};
use frazil_schema::{AvroSchema, FieldMapping, Mapping, SourceSchema};
use proptest::prelude::*;

use super::{Table, poison, records, values};
use crate::{DecodeOptions, HashKey, Payload, prepare};

const KEY: &[u8] = b"0123456789abcdef";

fn mapping(fields: &[(&str, &str)]) -> Mapping {
    let field = |setting: &str| serde_json::from_str::<FieldMapping>(setting).unwrap();
    Mapping {
        fields: fields
            .iter()
            .map(|(path, setting)| ((*path).to_owned(), field(setting)))
            .collect(),
        ..Mapping::default()
    }
}

fn record_of(data_type: &str) -> String {
    format!(r#"{{"type": "record", "name": "R", "fields": [{{"name": "f", "type": {data_type}}}]}}"#)
}

/// Decodes the record; expects it in the table as text, or as the poison's code and reason.
fn check_bytes(text: &str, mapping: &Mapping, body: &[u8], expected: &str) {
    let schema = SourceSchema::Avro(AvroSchema::compile(text, &[], mapping).unwrap());
    let records = records([Payload::Encoded {
        schema: &schema,
        body,
    }]);
    let options = DecodeOptions {
        hash_key: Some(HashKey::new(KEY).unwrap()),
        ..DecodeOptions::default()
    };
    let prepared = prepare(&records, options).unwrap();
    let found = match prepared.poison() {
        [] => values(&Table::default().take(&prepared).unwrap()).remove(0),
        _ => poison(&prepared).remove(0).1,
    };
    assert_eq!(found, expected, "{text}");
}

/// Encodes the record with apache-avro first.
fn check_record(text: &str, mapping: &Mapping, record: Vec<(&str, Value)>, expected: &str) {
    let record = record
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let body = to_avro_datum(&Schema::parse_str(text).unwrap(), Value::Record(record)).unwrap();
    check_bytes(text, mapping, &body, expected);
}

/// The field `f` of this type under a setting.
fn check(data_type: &str, setting: &str, value: Value, expected: &str) {
    check_record(
        &record_of(data_type),
        &mapping(&[("f", setting)]),
        vec![("f", value)],
        expected,
    );
}

fn union(index: u32, value: Value) -> Value {
    Value::Union(index, Box::new(value))
}

#[test]
fn a_field_takes_the_type_of_its_settings_or_is_poison() {
    let long = r#"{"type": "long"}"#;
    let money = r#"{"type": "decimal(9, 2)"}"#;
    let wide = r#"{"type": "decimal(38, 38)"}"#;
    let decimal = |precision, scale| {
        format!(
            r#"{{"type": "bytes", "logicalType": "decimal", "precision": {precision}, "scale": {scale}}}"#
        )
    };
    let unscaled = |value: i128| Value::Decimal(Decimal::from(value.to_be_bytes()));
    let nanos = r#"{"type": "long", "logicalType": "timestamp-nanos"}"#;
    let millis = r#"{"type": "long", "logicalType": "local-timestamp-millis"}"#;
    let cases: Vec<(&str, &str, Value, &str)> = vec![
        (r#""int""#, long, Value::Int(i32::MIN), "f=-2147483648"),
        (
            r#""float""#,
            r#"{"type": "double"}"#,
            Value::Float(0.1),
            "f=0.10000000149011612",
        ),
        (r#""int""#, money, Value::Int(-7), "f=-7.00"),
        (
            r#""int""#,
            money,
            Value::Int(i32::MAX),
            "value.decimal_overflow field `f`: the number has more digits than decimal(9, 2) can hold",
        ),
        (
            r#""long""#,
            r#"{"type": "decimal(19, 0)"}"#,
            Value::Long(i64::MIN),
            "f=-9223372036854775808",
        ),
        (r#""double""#, money, Value::Double(19.99), "f=19.99"),
        (r#""double""#, money, Value::Double(-0.0), "f=0.00"),
        (r#""float""#, money, Value::Float(0.1), "f=0.10"),
        (
            r#""double""#,
            money,
            Value::Double(0.1 + 0.2),
            "value.decimal_inexact field `f`: the number has more than 2 digits behind the point",
        ),
        (
            r#""double""#,
            money,
            Value::Double(f64::NAN),
            "value.not_a_number field `f`: the value is not a number",
        ),
        (
            r#""double""#,
            money,
            Value::Double(f64::NEG_INFINITY),
            "value.not_a_number field `f`: the value is not a number",
        ),
        (
            r#""double""#,
            money,
            Value::Double(f64::MAX),
            "value.decimal_overflow field `f`: the number has more digits than decimal(9, 2) can hold",
        ),
        (
            r#""double""#,
            wide,
            Value::Double(1e-38),
            "f=0.00000000000000000000000000000000000001",
        ),
        (
            r#""string""#,
            r#"{"type": "binary"}"#,
            Value::String("ü".into()),
            "f=xc3bc",
        ),
        (
            r#"{"type": "enum", "name": "E", "symbols": ["A", "B"]}"#,
            r#"{"type": "binary"}"#,
            Value::Enum(1, "B".into()),
            "f=x42",
        ),
        // As the source counts, whatever the believed range.
        (nanos, long, Value::TimestampNanos(1_999), "f=1999"),
        (
            nanos,
            long,
            Value::TimestampNanos(i64::MAX),
            "f=9223372036854775807",
        ),
        (
            millis,
            long,
            Value::LocalTimestampMillis(i64::MIN),
            "f=-9223372036854775808",
        ),
        (
            r#"["null", {"type": "array", "items": ["null", "int"]}]"#,
            long,
            union(
                1,
                Value::Array(vec![union(1, Value::Int(5)), union(0, Value::Null)]),
            ),
            "f=[5, null]",
        ),
        (
            r#"{"type": "map", "values": "int"}"#,
            money,
            Value::Map(HashMap::from([("k".into(), Value::Int(1))])),
            "f=<k: 1.00>",
        ),
    ];
    for (data_type, setting, value, expected) in cases {
        check(data_type, setting, value, expected);
    }
    let u64_max = i128::from(u64::MAX);
    for (data_type, setting, value, expected) in [
        (
            decimal(20, 0),
            long,
            i128::from(i64::MAX),
            "f=9223372036854775807",
        ),
        (
            decimal(20, 0),
            long,
            u64_max,
            "value.long_overflow field `f`: 18446744073709551615 does not fit into a long of 64 bits",
        ),
        (decimal(9, 2), r#"{"type": "decimal(18, 4)"}"#, -5, "f=-0.0500"),
        (decimal(9, 4), money, 12_300, "f=1.23"),
        (
            decimal(9, 4),
            money,
            12_345,
            "value.decimal_inexact field `f`: the number has more than 2 digits behind the point",
        ),
        (
            decimal(12, 2),
            money,
            1_000_000_000,
            "value.decimal_overflow field `f`: the number has more digits than decimal(9, 2) can hold",
        ),
    ] {
        check(&data_type, setting, unscaled(value), expected);
    }
}

#[test]
fn times_and_instants_as_the_topic_wants_them() {
    let text = r#"{"type": "record", "name": "R", "fields": [
        {"name": "ms", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "us", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-nanos"}}]}"#;
    let record = || {
        vec![
            ("ms", Value::TimeMillis(86_399_999)),
            ("us", Value::TimeMicros(1)),
            ("at", Value::TimestampNanos(-1)),
        ]
    };
    let native = Mapping {
        native_time: true,
        utc_naive: true,
        ..Mapping::default()
    };
    check_record(text, &native, record(), "ms=86399999000us us=1us at=-1us");
    check_record(
        text,
        &Mapping::default(),
        record(),
        "ms=23:59:59.999000 us=00:00:00.000001 at=-1us+00:00",
    );
}

#[test]
fn hashed_fields_hold_the_hash_and_nothing_else() {
    let hash = r#"{"hash": "sha256"}"#;
    let mail = "87c8707b0c61806881347867c370e9f6bba71e47fb7aa89200288026b10d38de";
    check(
        r#""string""#,
        hash,
        Value::String("a@example.com".into()),
        &format!("f={mail}"),
    );
    check(r#"["null", "string"]"#, hash, union(0, Value::Null), "");
    check(
        r#"{"type": "array", "items": ["null", "string"]}"#,
        hash,
        Value::Array(vec![
            union(1, Value::String("a@example.com".into())),
            union(0, Value::Null),
        ]),
        &format!("f=[{mail}, null]"),
    );
    let minus_seven = "dc36c4ce207858e5dbe272dce3ac510520f14d15a76a8d4809cd742adce47bbe";
    check(r#""long""#, hash, Value::Long(-7), &format!("f={minus_seven}"));
    check(r#""int""#, hash, Value::Int(-7), &format!("f={minus_seven}"));
}

#[test]
fn without_a_key_nothing_is_hashed_and_nothing_written() {
    let text = r#"{"type": "record", "name": "R", "fields": [{"name": "c", "type": {"type": "array", "items":
        {"type": "record", "name": "C", "fields": [{"name": "email", "type": "string"}]}}}]}"#;
    let mapping = mapping(&[("c.email", r#"{"hash": "sha256"}"#)]);
    let schema = SourceSchema::Avro(AvroSchema::compile(text, &[], &mapping).unwrap());
    let records = records([Payload::Encoded {
        schema: &schema,
        body: &[0],
    }]);
    let error = prepare(&records, DecodeOptions::default()).unwrap_err();
    assert_eq!(error.code(), Some("settings.hash_key_missing"));
}

/// Should the setting go, plain values do not join the hashed ones.
#[test]
fn plain_values_never_join_hashed_ones() {
    let text = record_of(r#""string""#);
    let mut table = Table::default();
    let mut take = |mapping: &Mapping| {
        let schema = SourceSchema::Avro(AvroSchema::compile(&text, &[], mapping).unwrap());
        let records = records([Payload::Encoded {
            schema: &schema,
            body: b"\x1aa@example.com",
        }]);
        let options = DecodeOptions {
            hash_key: Some(HashKey::new(KEY).unwrap()),
            ..DecodeOptions::default()
        };
        let prepared = prepare(&records, options).unwrap();
        values(&table.take(&prepared).unwrap()).remove(0)
    };
    let hashed = "f=87c8707b0c61806881347867c370e9f6bba71e47fb7aa89200288026b10d38de";
    assert_eq!(take(&mapping(&[("f", r#"{"hash": "sha256"}"#)])), hashed);
    assert_eq!(take(&Mapping::default()), "f_2=a@example.com");
    assert_eq!(take(&mapping(&[("f", r#"{"hash": "sha256"}"#)])), hashed);
}

/// Every type there is, to be read past.
const EVERYTHING: &str = r#"{"type": "record", "name": "X", "fields": [
    {"name": "a", "type": "null"}, {"name": "b", "type": "boolean"}, {"name": "c", "type": "int"},
    {"name": "d", "type": "long"}, {"name": "e", "type": "float"}, {"name": "g", "type": "double"},
    {"name": "h", "type": "bytes"}, {"name": "i", "type": "string"},
    {"name": "j", "type": {"type": "fixed", "name": "F", "size": 3}},
    {"name": "k", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
    {"name": "l", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "m", "type": {"type": "int", "logicalType": "date"}},
    {"name": "n", "type": {"type": "int", "logicalType": "time-millis"}},
    {"name": "o", "type": {"type": "long", "logicalType": "time-micros"}},
    {"name": "p", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "q", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "r", "type": {"type": "array", "items": "int"}},
    {"name": "s", "type": {"type": "map", "values": "boolean"}},
    {"name": "t", "type": ["null", "string", "X"]},
    {"name": "u", "type": ["null", "X"]},
    {"name": "v", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    {"name": "w", "type": {"type": "array", "items": "X"}},
    {"name": "x", "type": {"type": "fixed", "name": "Du", "size": 12, "logicalType": "duration"}},
    {"name": "y", "type": {"type": "fixed", "name": "De", "size": 5, "logicalType": "decimal", "precision": 11, "scale": 11}}
]}"#;

fn everything(inner: bool) -> Value {
    let uuid = apache_avro::Uuid::from_u128(0x67e5_5044_10b1_426f_9247_bb68_0e5f_e0c8);
    let inside = || everything(false);
    let fields = vec![
        ("a", Value::Null),
        ("b", Value::Boolean(true)),
        ("c", Value::Int(-1)),
        ("d", Value::Long(i64::MIN)),
        ("e", Value::Float(f32::NAN)),
        ("g", Value::Double(1e300)),
        ("h", Value::Bytes(vec![0, 255])),
        ("i", Value::String("\"ü\n".into())),
        ("j", Value::Fixed(3, vec![1, 2, 3])),
        ("k", Value::Enum(1, "B".into())),
        ("l", Value::Decimal(Decimal::from([0xfb]))),
        ("m", Value::Date(17_486)),
        ("n", Value::TimeMillis(86_399_999)),
        ("o", Value::TimeMicros(1)),
        ("p", Value::TimestampMillis(1_510_871_468_123)),
        ("q", Value::Uuid(uuid)),
        ("r", Value::Array(vec![Value::Int(1), Value::Int(2)])),
        (
            "s",
            Value::Map(HashMap::from([("k\"".to_owned(), Value::Boolean(false))])),
        ),
        (
            "t",
            if inner {
                union(2, inside())
            } else {
                union(1, Value::String("s".into()))
            },
        ),
        (
            "u",
            if inner {
                union(1, inside())
            } else {
                union(0, Value::Null)
            },
        ),
        ("v", Value::LocalTimestampMicros(-1)),
        (
            "w",
            Value::Array(if inner { vec![inside(), inside()] } else { vec![] }),
        ),
        (
            "x",
            Value::Duration(apache_avro::Duration::new(
                apache_avro::Months::new(1),
                apache_avro::Days::new(2),
                apache_avro::Millis::new(3),
            )),
        ),
        ("y", Value::Decimal(Decimal::from([0xff, 0xff, 0xff, 0xff, 0xff]))),
    ];
    Value::Record(
        fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

/// What `everything(false)` is as JSON.
const EVERYTHING_JSON: &str = concat!(
    r#"{"a":null,"b":true,"c":-1,"d":-9223372036854775808,"e":"NaN","g":1e+300,"h":"AP8=","i":"\"ü\n","j":"AQID","#,
    r#""k":"B","l":-0.05,"m":"2017-11-16","n":"23:59:59.999000","o":"00:00:00.000001","#,
    r#""p":"2017-11-16T22:31:08.123000+00:00","q":"67e55044-10b1-426f-9247-bb680e5fe0c8","r":[1,2],"#,
    r#""s":{"k\"":false},"t":"s","u":null,"v":"1969-12-31T23:59:59.999999","w":[],"x":"AQAAAAIAAAADAAAA","y":-0.00000000001}"#
);

#[test]
fn what_holds_itself_is_json() {
    let text = record_of(EVERYTHING);
    let only = [
        "a", "b", "c", "d", "e", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "v", "x",
        "y",
    ];
    let exclude: Vec<(String, FieldMapping)> = only
        .iter()
        .map(|name| {
            let field = FieldMapping {
                exclude: true,
                ..FieldMapping::default()
            };
            (format!("f.{name}"), field)
        })
        .collect();
    let mapping = Mapping {
        fields: exclude.into_iter().collect(),
        ..Mapping::default()
    };
    let expected = format!(
        "f={{t: {{string: null, x: {EVERYTHING_JSON}}}, u: {EVERYTHING_JSON}, w: [{EVERYTHING_JSON}, {EVERYTHING_JSON}]}}"
    );
    check_record(&text, &mapping, vec![("f", everything(true))], &expected);
}

/// `share/test/schemas/interop.avsc` of Apache Avro, and the record that its implementations exchange.
#[test]
fn the_interop_schema_of_avro_arrives() {
    let text = r#"{"type": "record", "name": "Interop", "namespace": "org.apache.avro", "fields": [
        {"name": "intField", "type": "int"}, {"name": "longField", "type": "long"},
        {"name": "stringField", "type": "string"}, {"name": "boolField", "type": "boolean"},
        {"name": "floatField", "type": "float"}, {"name": "doubleField", "type": "double"},
        {"name": "bytesField", "type": "bytes"}, {"name": "nullField", "type": "null"},
        {"name": "arrayField", "type": {"type": "array", "items": "double"}},
        {"name": "mapField", "type": {"type": "map", "values": {"type": "record", "name": "Foo", "fields": [
            {"name": "label", "type": "string"}]}}},
        {"name": "unionField", "type": ["boolean", "double", {"type": "array", "items": "bytes"}]},
        {"name": "enumField", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B", "C"]}},
        {"name": "fixedField", "type": {"type": "fixed", "name": "MD5", "size": 16}},
        {"name": "recordField", "type": {"type": "record", "name": "Node", "fields": [
            {"name": "label", "type": "string"},
            {"name": "children", "type": {"type": "array", "items": "Node"}}]}}
    ]}"#;
    let node = |label: &str, children| {
        Value::Record(vec![
            ("label".to_owned(), Value::String(label.to_owned())),
            ("children".to_owned(), Value::Array(children)),
        ])
    };
    let foo = Value::Record(vec![("label".to_owned(), Value::String("bar".to_owned()))]);
    check_record(
        text,
        &Mapping::default(),
        vec![
            ("intField", Value::Int(12)),
            ("longField", Value::Long(15_234_324)),
            ("stringField", Value::String("hey".to_owned())),
            ("boolField", Value::Boolean(true)),
            ("floatField", Value::Float(1234.0)),
            ("doubleField", Value::Double(-1234.0)),
            ("bytesField", Value::Bytes(b"12312adf".to_vec())),
            ("nullField", Value::Null),
            (
                "arrayField",
                Value::Array(vec![Value::Double(5.0), Value::Double(0.0)]),
            ),
            ("mapField", Value::Map(HashMap::from([("a".to_owned(), foo)]))),
            ("unionField", union(1, Value::Double(12.0))),
            ("enumField", Value::Enum(2, "C".to_owned())),
            ("fixedField", Value::Fixed(16, b"1019181716151413".to_vec())),
            (
                "recordField",
                node("blah", vec![node("inner", vec![node("leaf", vec![])])]),
            ),
        ],
        "intfield=12 longfield=15234324 stringfield=hey boolfield=true floatfield=1234.0f doublefield=-1234.0 \
         bytesfield=x3132333132616466 arrayfield=[5.0, 0.0] mapfield=<a: {label: bar}> \
         unionfield={boolean: null, double: 12.0, array: null} enumfield=C \
         fixedfield=x31303139313831373136313531343133 \
         recordfield={label: blah, children: [{\"label\":\"inner\",\"children\":[{\"label\":\"leaf\",\"children\":[]}]}]}",
    );
}

#[test]
fn an_excluded_field_is_read_past() {
    let text = format!(
        r#"{{"type": "record", "name": "R", "fields": [{{"name": "f", "type": {EVERYTHING}}}, {{"name": "after", "type": "int"}}]}}"#
    );
    let exclude = mapping(&[("f", r#"{"exclude": true}"#)]);
    check_record(
        &text,
        &exclude,
        vec![("f", everything(true)), ("after", Value::Int(5))],
        "after=5",
    );
    // One branch of a union.
    let either = record_of(r#"["null", "string", "int"]"#);
    let exclude = mapping(&[("f.string", r#"{"exclude": true}"#)]);
    check_record(
        &either,
        &exclude,
        vec![("f", union(1, Value::String("secret".into())))],
        "",
    );
    check_record(
        &either,
        &exclude,
        vec![("f", union(2, Value::Int(3)))],
        "f={int: 3}",
    );
    // All of a record.
    let record = record_of(r#"{"type": "record", "name": "G", "fields": [{"name": "x", "type": "string"}]}"#);
    let exclude = mapping(&[("f.x", r#"{"exclude": true}"#)]);
    let secret = Value::Record(vec![("x".to_owned(), Value::String("secret".into()))]);
    check_record(&record, &exclude, vec![("f", secret)], "f=true");
}

const ENTRIES: &str = r#"{"type": "record", "name": "R", "fields": [
    {"name": "sizes", "type": {"type": "array", "items": {"type": "record", "name": "MapEntry",
        "namespace": "io.confluent.connect.avro", "fields": [
            {"name": "key", "type": "int"}, {"name": "value", "type": ["null", "string"]}]}}},
    {"name": "names", "type": {"type": "array", "items": {"type": "record", "name": "N", "connect.internal.type": "MapEntry",
        "fields": [{"name": "key", "type": ["null", "string"]}, {"name": "value", "type": "long"}]}}},
    {"name": "next", "type": ["null", "R"]}
]}"#;

fn entries(next: Value) -> Value {
    let entry = |key, value| Value::Record(vec![("key".to_owned(), key), ("value".to_owned(), value)]);
    let text = |text: &str| union(1, Value::String(text.to_owned()));
    Value::Record(vec![
        (
            "sizes".to_owned(),
            Value::Array(vec![
                entry(Value::Int(-1), text("s")),
                entry(Value::Int(i32::MAX), union(0, Value::Null)),
            ]),
        ),
        (
            "names".to_owned(),
            Value::Array(vec![entry(text("k"), Value::Long(7))]),
        ),
        ("next".to_owned(), next),
    ])
}

const ENTRIES_SHOWN: &str = "sizes=<-1: s, 2147483647: null> names=<k: 7>";
const ENTRIES_JSON: &str = r#"{"sizes":[{"key":-1,"value":"s"},{"key":2147483647,"value":null}],"names":[{"key":"k","value":7}],"next":null}"#;

fn encode(text: &str, value: Value) -> Vec<u8> {
    to_avro_datum(&Schema::parse_str(text).unwrap(), value).unwrap()
}

#[test]
fn connects_map_entries_are_maps() {
    let inner = entries(union(0, Value::Null));
    let body = encode(ENTRIES, entries(union(1, inner)));
    let expected = format!("{ENTRIES_SHOWN} next={ENTRIES_JSON}");
    check_bytes(ENTRIES, &Mapping::default(), &body, &expected);
    // No sizes; one name, whose key is null.
    check_bytes(
        ENTRIES,
        &Mapping::default(),
        &[0, 2, 0, 14, 0, 0],
        "avro.null_key field `names[]`: the key of a map is null, and a table's map has none",
    );
    check_bytes(
        ENTRIES,
        &Mapping::default(),
        &[0, 2, 4],
        "avro.invalid field `names[]`: the union has no branch 2",
    );
}

#[test]
fn depth_and_length_of_a_subtree_are_bounded() {
    let list = r#"{"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}"#;
    let chain = |links: usize| [vec![2; links], vec![0]].concat();
    // The column takes the first link.
    let deepest = format!("next={}null{}", r#"{"next":"#.repeat(128), "}".repeat(128));
    check_bytes(list, &Mapping::default(), &chain(128), &deepest);
    let path = vec!["next"; 130].join(".");
    let too_deep = format!(
        "avro.too_deep field `{path}`: a record that holds itself is nested more than 128 levels deep"
    );
    check_bytes(list, &Mapping::default(), &chain(129), &too_deep);
    check_bytes(list, &Mapping::default(), &chain(100_000), &too_deep);
    let skipped =
        "avro.too_deep field `next`: a record that holds itself is nested more than 128 levels deep";
    let exclude = mapping(&[("next", r#"{"exclude": true}"#)]);
    check_bytes(list, &exclude, &chain(128), "");
    check_bytes(list, &exclude, &chain(100_000), skipped);
    // A record that is nothing but itself takes no bytes and never ends.
    let endless = r#"{"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}"#;
    let path = vec!["r"; 130].join(".");
    check_bytes(
        endless,
        &Mapping::default(),
        &[],
        &format!(
            "avro.too_deep field `{path}`: a record that holds itself is nested more than 128 levels deep"
        ),
    );
    // Twenty thousand bytes, and a name of a thousand for each of them.
    let name = "n".repeat(1_000);
    let wide = format!(
        r#"{{"type": "record", "name": "R", "fields": [{{"name": "{name}", "type": {{"type": "array", "items": ["null", "R"]}}}}]}}"#
    );
    let mut body = vec![2, 2];
    body.extend([0xc0, 0xb8, 0x02]); // 20,000 items
    body.extend([2, 0].repeat(20_000));
    body.extend([0, 0]);
    let schema = SourceSchema::Avro(AvroSchema::parse(&wide).unwrap());
    let records = records([Payload::Encoded {
        schema: &schema,
        body: &body,
    }]);
    let prepared = prepare(&records, DecodeOptions::default()).unwrap();
    assert_eq!(prepared.poison()[0].error.code(), Some("avro.text_too_large"));
}

/// Whatever a record between two good ones does, they stay as they are.
fn check_neighbours(bytes: &[u8]) {
    let schema = SourceSchema::Avro(AvroSchema::parse(ENTRIES).unwrap());
    let good = encode(ENTRIES, entries(union(1, entries(union(0, Value::Null)))));
    let bodies = [good.as_slice(), bytes, good.as_slice()];
    let records = records(bodies.map(|body| Payload::Encoded {
        schema: &schema,
        body,
    }));
    let prepared = prepare(&records, DecodeOptions::default()).unwrap();
    let rows = values(&Table::default().take(&prepared).unwrap());
    let expected = format!("{ENTRIES_SHOWN} next={ENTRIES_JSON}");
    assert_eq!(rows.first(), Some(&expected));
    assert_eq!(rows.last(), Some(&expected));
    assert_eq!(rows.len() + prepared.poison().len(), 3);
}

proptest! {
    #[test]
    fn mutated_entries_and_subtrees_leave_their_neighbours_alone(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<Option<prop::sample::Index>>()) {
        let mut body = encode(ENTRIES, entries(union(1, entries(union(0, Value::Null)))));
        let at = at.index(body.len());
        body[at] = byte;
        if let Some(cut) = cut {
            body.truncate(cut.index(body.len()));
        }
        check_neighbours(&body);
    }

    #[test]
    fn arbitrary_bytes_are_skipped_or_poison(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = record_of(EVERYTHING);
        for fields in [&[("f", r#"{"exclude": true}"#)][..], &[]] {
            let schema = SourceSchema::Avro(AvroSchema::compile(&text, &[], &mapping(fields)).unwrap());
            let records = records([Payload::Encoded { schema: &schema, body: &bytes }]);
            prop_assert!(prepare(&records, DecodeOptions::default()).is_ok());
        }
    }
}
