use proptest::prelude::*;

use super::*;
use crate::ColumnType;

/// Columns in short: `name type, …`, with `{}` for structs, `[]` for lists and `<>` for maps.
fn show(columns: &[Column]) -> String {
    let shown: Vec<String> = columns
        .iter()
        .map(|column| format!("{} {}", column.name, show_type(&column.data_type)))
        .collect();
    shown.join(", ")
}

fn show_type(data_type: &ColumnType) -> String {
    match data_type {
        ColumnType::Primitive(primitive) => primitive.to_string(),
        ColumnType::Hashed(of) => format!("hash of {of}"),
        ColumnType::Struct(columns) => format!("{{{}}}", show(columns)),
        ColumnType::List(element) => format!("[{}]", show_type(element)),
        ColumnType::Map(key, value) => format!("<{}, {}>", show_type(key), show_type(value)),
    }
}

/// The column of a field `f` of this type.
fn check(data_type: &str, expected: &str) {
    let text =
        format!(r#"{{"type": "record", "name": "R", "fields": [{{"name": "f", "type": {data_type}}}]}}"#);
    match AvroSchema::parse(&text) {
        Ok(schema) => assert_eq!(show(schema.columns()), expected, "{data_type}"),
        Err(error) => assert_eq!(format!("! {}", error.message()), expected, "{data_type}"),
    }
}

#[test]
fn every_avro_type_has_its_column() {
    let cases = [
        (r#""boolean""#, "f boolean"),
        (r#""int""#, "f int"),
        (r#""long""#, "f long"),
        (r#""float""#, "f float"),
        (r#""double""#, "f double"),
        (r#""string""#, "f string"),
        (r#""bytes""#, "f binary"),
        (r#"{"type": "fixed", "name": "F", "size": 5}"#, "f binary"),
        (
            r#"{"type": "enum", "name": "E", "symbols": ["A", "B"]}"#,
            "f string",
        ),
        (
            r#"{"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}"#,
            "f decimal(9, 2)",
        ),
        (
            r#"{"type": "fixed", "name": "F", "size": 9, "logicalType": "decimal", "precision": 20}"#,
            "f decimal(20, 0)",
        ),
        (r#"{"type": "int", "logicalType": "date"}"#, "f date"),
        (r#"{"type": "int", "logicalType": "time-millis"}"#, "f string"),
        (r#"{"type": "long", "logicalType": "time-micros"}"#, "f string"),
        (
            r#"{"type": "long", "logicalType": "timestamp-millis"}"#,
            "f timestamptz",
        ),
        (
            r#"{"type": "long", "logicalType": "timestamp-micros"}"#,
            "f timestamptz",
        ),
        (
            r#"{"type": "long", "logicalType": "timestamp-nanos"}"#,
            "f timestamptz",
        ),
        (
            r#"{"type": "long", "logicalType": "local-timestamp-millis"}"#,
            "f timestamp",
        ),
        (r#"{"type": "string", "logicalType": "uuid"}"#, "f string"),
        (
            r#"{"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"}"#,
            "f string",
        ),
        (
            r#"{"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}"#,
            "f binary",
        ),
        (
            r#"{"type": "record", "name": "S", "fields": [{"name": "A-b", "type": "int"}]}"#,
            "f {a_b int}",
        ),
        (r#"{"type": "record", "name": "S", "fields": []}"#, "f boolean"),
        (
            r#"{"type": "record", "name": "S", "fields": [{"name": "n", "type": "null"}]}"#,
            "f boolean",
        ),
        (r#"{"type": "array", "items": "long"}"#, "f [long]"),
        (
            r#"{"type": "map", "values": ["null", "string"]}"#,
            "f <string, string>",
        ),
        (r#"["null", "string"]"#, "f string"),
        (r#"["string", "null"]"#, "f string"),
        (r#"["string"]"#, "f string"),
        (r#"["null", "string", "long"]"#, "f {string string, long long}"),
        (r#""null""#, ""),
        (r#"["null"]"#, ""),
        (r#"{"type": "array", "items": "null"}"#, ""),
        (r#"{"type": {"type": "string"}}"#, "f string"),
        // Logical types that are unknown or do not fit are ignored.
        (r#"{"type": "string", "logicalType": "date"}"#, "f string"),
        (
            r#"{"type": "long", "logicalType": "timestamp-centuries"}"#,
            "f long",
        ),
        (
            r#"{"type": "fixed", "name": "F", "size": 11, "logicalType": "duration"}"#,
            "f binary",
        ),
        (
            r#"["null", {"type": "record", "name": "a.X", "fields": [{"name": "i", "type": "int"}]},
                {"type": "record", "name": "b.X", "fields": [{"name": "i", "type": "int"}]}]"#,
            "f {a_x {i int}, b_x {i int}}",
        ),
    ];
    for (data_type, expected) in cases {
        check(data_type, expected);
    }
}

#[test]
fn what_no_column_can_hold_is_refused_by_name() {
    let decimal = |precision: &str, scale: &str| {
        format!(
            r#"{{"type": "bytes", "logicalType": "decimal", "precision": {precision}, "scale": {scale}}}"#
        )
    };
    for (precision, scale) in [("0", "0"), ("39", "2"), ("5", "6"), ("5", "-1"), ("\"9\"", "2")] {
        let expected =
            format!("! field `f`: no column can hold a decimal of precision {precision} and scale {scale}");
        check(&decimal(precision, scale), &expected);
    }
    let cases = [
        (r#""Missing""#, "! field `f`: type `Missing` is not defined"),
        (r#"["null", "R"]"#, "! field `f`: type `R` contains itself"),
        (
            r#"["int", "int"]"#,
            "! field `f`: the union has two branches of type `int`",
        ),
        (
            r#"["int", ["null"]]"#,
            "! field `f`: the union has two branches of type `union`",
        ),
        (r#"{"type": "array"}"#, "! field `f`: `items` is missing"),
        (
            r#"{"type": "fixed", "name": "F", "size": -1}"#,
            "! field `f`: a fixed needs a `size` of 0 to 2147483647",
        ),
        ("7", "! field `f`: `7` is not a type"),
        (
            r#"{"type": "record", "name": "S", "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}]}"#,
            "! field `f.a`: the record has two fields of this name",
        ),
    ];
    for (data_type, expected) in cases {
        check(data_type, expected);
    }
}

#[test]
fn names_follow_namespaces() {
    let schema = AvroSchema::parse(
        r#"{"type": "record", "name": "R", "namespace": "shop", "fields": [
            {"name": "a", "type": {"type": "record", "name": "Price", "fields": [{"name": "amount", "type": "int"}]}},
            {"name": "b", "type": "Price"},
            {"name": "c", "type": ["null", "shop.Price"]},
            {"name": "d", "type": {"type": "record", "name": "tax.Rate", "fields": [
                {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A"]}}]}},
            {"name": "e", "type": "tax.Kind"}
        ]}"#,
    )
    .unwrap();
    assert_eq!(
        show(schema.columns()),
        "a {amount int}, b {amount int}, c {amount int}, d {kind string}, e string"
    );
}

#[test]
fn a_schema_that_is_no_record_is_a_field_called_value() {
    for text in [r#""string""#, "string", r#"{"type": "string"}"#] {
        assert_eq!(
            show(AvroSchema::parse(text).unwrap().columns()),
            "value string",
            "{text}"
        );
    }
    for text in ["", "{", "True", "strings"] {
        assert_eq!(
            AvroSchema::parse(text).unwrap_err().kind(),
            ErrorKind::Invalid,
            "{text}"
        );
    }
}

#[test]
fn size_is_bounded() {
    // Thirty records, each of which names the one before it twice: two to the thirtieth types.
    let mut fields =
        String::from(r#"{"name": "r0", "type": {"type": "record", "name": "R0", "fields": []}}"#);
    for index in 1..30 {
        let before = index - 1;
        fields.push_str(&format!(
            r#", {{"name": "r{index}", "type": {{"type": "record", "name": "R{index}", "fields": [
                {{"name": "a", "type": "R{before}"}}, {{"name": "b", "type": "R{before}"}}]}}}}"#
        ));
    }
    let doubling = format!(r#"{{"type": "record", "name": "Top", "fields": [{fields}]}}"#);
    let deep = format!(
        "{}\"int\"{}",
        r#"{"type": "array", "items": "#.repeat(65),
        "}".repeat(65)
    );
    let long = format!("\"string\"{}", " ".repeat(MAX_SCHEMA_BYTES));
    for (text, reason) in [
        (doubling, "more than 20000 types"),
        (deep, "64 levels deep"),
        (long, "bytes long"),
    ] {
        let error = AvroSchema::parse(&text).unwrap_err();
        assert!(error.message().contains(reason), "{error}");
    }
}

proptest! {
    #[test]
    fn mutated_schemas_never_panic(at in 0usize..400, byte in any::<u8>(), cut in 0usize..400) {
        let mut bytes = br#"{"type": "record", "name": "R", "namespace": "shop", "fields": [
            {"name": "a", "type": {"type": "record", "name": "P", "fields": [{"name": "x", "type": ["null", "int"]}]}},
            {"name": "b", "type": ["null", "P", {"type": "map", "values": "P"}]},
            {"name": "c", "type": {"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 5}}
        ]}"#.to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        bytes.truncate(bytes.len().max(cut));
        if let Ok(text) = std::str::from_utf8(&bytes) {
            let _ = AvroSchema::parse(text);
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in ".{0,200}") {
        let _ = AvroSchema::parse(&text);
    }
}
