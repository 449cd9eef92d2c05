use proptest::prelude::*;

use std::collections::BTreeMap;

use super::*;
use crate::{ColumnType, FieldMapping, Mapping};

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
        // Connect's maps.
        (
            r#"{"type": "array", "items": {"type": "record", "name": "MapEntry", "namespace": "io.confluent.connect.avro",
                "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": ["null", "string"]}]}}"#,
            "f <int, string>",
        ),
        (
            r#"{"type": "array", "items": {"type": "record", "name": "Sizes", "connect.internal.type": "MapEntry",
                "fields": [{"name": "key", "type": ["null", "string"]}, {"name": "value", "type": "int"}]}}"#,
            "f <string, int>",
        ),
        (
            r#"{"type": "array", "items": {"type": "record", "name": "Other",
                "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "int"}]}}"#,
            "f [{key int, value int}]",
        ),
        (
            r#"{"type": "array", "items": {"type": "record", "name": "E", "connect.internal.type": "MapEntry",
                "fields": [{"name": "key", "type": {"type": "array", "items": "int"}}, {"name": "value", "type": "int"}]}}"#,
            "f [{key [int], value int}]",
        ),
        // What holds itself.
        (r#"["null", "R"]"#, "f string"),
        (r#"{"type": "map", "values": "R"}"#, "f <string, string>"),
        (
            r#"{"type": "record", "name": "Tree", "fields": [{"name": "v", "type": "int"},
                {"name": "next", "type": {"type": "array", "items": "Tree"}}]}"#,
            "f {v int, next [string]}",
        ),
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
fn what_holds_itself_does_not_depend_on_the_order_of_fields() {
    let a = r#"{"type": "record", "name": "A", "fields": [{"name": "b", "type": {"type": "record", "name": "B",
        "fields": [{"name": "a", "type": ["null", "A"]}, {"name": "n", "type": "int"}]}}]}"#;
    let b = r#"{"type": "record", "name": "B", "fields": [{"name": "a", "type": ["null", {"type": "record",
        "name": "A", "fields": [{"name": "b", "type": "B"}]}]}, {"name": "n", "type": "int"}]}"#;
    let schema = |first: (&str, &str), second: (&str, &str)| {
        let text = format!(
            r#"{{"type": "record", "name": "R", "fields": [{{"name": "{}", "type": {}}}, {{"name": "{}", "type": {}}}]}}"#,
            first.0, first.1, second.0, second.1
        );
        AvroSchema::parse(&text).unwrap()
    };
    let (x, y) = ("x {b {a string, n int}}", "y {a {b string}, n int}");
    let schemas = [
        (schema(("x", a), ("y", "\"B\"")), format!("{x}, {y}")),
        (schema(("y", b), ("x", "\"A\"")), format!("{y}, {x}")),
        // A name before its definition.
        (schema(("y", "\"B\""), ("x", a)), format!("{y}, {x}")),
    ];
    for (schema, expected) in schemas {
        assert_eq!(show(schema.columns()), expected);
        assert_eq!(schema.definitions().len(), 2);
    }
    // A record that is nothing but itself has no value at all; the schema is no one's fault.
    let endless =
        AvroSchema::parse(r#"{"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}"#);
    assert_eq!(show(endless.unwrap().columns()), "r string");
}

#[test]
fn types_of_other_subjects_come_with_the_references() {
    let order = r#"{"type": "record", "name": "Order", "namespace": "shop", "fields": [
        {"name": "customer", "type": "people.Customer"}, {"name": "billing", "type": "people.Address"}]}"#;
    let customer = r#"{"type": "record", "name": "Customer", "namespace": "people", "fields": [
        {"name": "address", "type": "Address"}, {"name": "knows", "type": {"type": "array", "items": "Customer"}}]}"#;
    let address = r#"{"type": "record", "name": "Address", "namespace": "people", "fields": [{"name": "zip", "type": "string"}]}"#;
    let compile = |references: &[(&str, &str)]| {
        let references: Vec<(String, String)> = references
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect();
        let compiled = AvroSchema::compile(order, &references, &Mapping::default());
        compiled.map_or_else(
            |error| error.message().to_owned(),
            |schema| show(schema.columns()),
        )
    };
    let columns = "customer {address {zip string}, knows [string]}, billing {zip string}";
    assert_eq!(
        compile(&[("people.Customer", customer), ("people.Address", address)]),
        columns
    );
    assert_eq!(
        compile(&[("people.Address", address), ("people.Customer", customer)]),
        columns
    );
    // Two references bring the same type along.
    assert_eq!(
        compile(&[("a", address), ("people.Customer", customer), ("b", address)]),
        columns
    );
    assert_eq!(
        compile(&[("people.Customer", customer)]),
        "field `customer.address`: type `Address` is not defined"
    );
    assert_eq!(
        compile(&[("a", address), ("b", &address.replace("zip", "plz"))]),
        "the schema: type `people.Address` is defined twice"
    );
    assert!(compile(&[("a", "{")]).starts_with("the schema: the schema `a` that it refers to is not JSON"));
}

#[test]
fn settings_reach_every_field() {
    let text = r#"{"type": "record", "name": "R", "fields": [
        {"name": "Id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-nanos"}},
        {"name": "day", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "opens", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "Customer", "type": ["null", {"type": "record", "name": "C", "fields": [
            {"name": "email", "type": ["null", "string"]}, {"name": "tax_id", "type": "string"}]}]},
        {"name": "items", "type": {"type": "array", "items": {"type": "record", "name": "I", "fields": [
            {"name": "unitPrice", "type": "double"}]}}},
        {"name": "either", "type": ["null", "string", "int"]},
        {"name": "gone", "type": {"type": "record", "name": "G", "fields": [{"name": "x", "type": "int"}]}}
    ]}"#;
    let field = |setting: &str| serde_json::from_str::<FieldMapping>(setting).unwrap();
    let mapping = Mapping {
        column_case: crate::ColumnCase::Snake,
        utc_naive: true,
        native_time: true,
        fields: BTreeMap::from([
            ("Customer.email".to_owned(), field(r#"{"hash": "sha256"}"#)),
            ("Customer.tax_id".to_owned(), field(r#"{"exclude": true}"#)),
            (
                "items.unitPrice".to_owned(),
                field(r#"{"type": "decimal(18,4)"}"#),
            ),
            ("either.int".to_owned(), field(r#"{"exclude": true}"#)),
            ("gone.x".to_owned(), field(r#"{"exclude": true}"#)),
            ("nobody".to_owned(), field(r#"{"exclude": true}"#)),
        ]),
        ..Mapping::default()
    };
    let schema = AvroSchema::compile(text, &[], &mapping).unwrap();
    assert_eq!(
        show(schema.columns()),
        "id long, at timestamp, day timestamp, opens time, customer {email hash of string}, \
         items [{unit_price decimal(18, 4)}], either {string string}, gone boolean"
    );

    let refused = |path: &str, setting: &str| {
        let mapping = Mapping {
            fields: BTreeMap::from([(path.to_owned(), field(setting))]),
            ..Mapping::default()
        };
        let error = AvroSchema::compile(text, &[], &mapping).unwrap_err();
        format!("{} {}", error.code().unwrap_or("?"), error.message())
    };
    assert_eq!(
        refused("items.unitPrice", r#"{"type": "string"}"#),
        "schema.setting_refused field `items.unitPrice` is double and cannot be given the type string"
    );
    let both = Mapping {
        fields: ["either.int", "either.string"]
            .map(|path| (path.to_owned(), field(r#"{"exclude": true}"#)))
            .into(),
        ..Mapping::default()
    };
    assert_eq!(
        AvroSchema::compile(text, &[], &both).unwrap_err().message(),
        "field `either`: the settings exclude every branch of the union"
    );
}

/// The example of the specification, “Names”.
#[test]
fn names_are_those_of_the_specification() {
    let example = |reference: &str| {
        format!(
            r#"{{"type": "record", "name": "Example", "fields": [
                {{"name": "inheritNull", "type": {{"type": "enum", "name": "Simple", "symbols": ["a", "b"]}}}},
                {{"name": "explicitNamespace", "type": {{"type": "fixed", "name": "Simple", "namespace": "explicit", "size": 12}}}},
                {{"name": "fullName", "type": {{"type": "record", "name": "a.full.Name", "namespace": "ignored", "fields": [
                    {{"name": "inheritNamespace", "type": {{"type": "enum", "name": "Understanding", "symbols": ["d", "e"]}}}},
                    {{"name": "again", "type": "Understanding"}}, {{"name": "none", "type": "Simple"}}]}}}},
                {{"name": "reference", "type": "{reference}"}}]}}"#
        )
    };
    let start = "inheritnull string, explicitnamespace binary, \
                 fullname {inheritnamespace string, again string, none string}, reference ";
    for (reference, expected) in [
        ("Simple", "string"),
        ("explicit.Simple", "binary"),
        ("a.full.Understanding", "string"),
        (
            "a.full.Name",
            "{inheritnamespace string, again string, none string}",
        ),
    ] {
        let schema = AvroSchema::parse(&example(reference)).unwrap();
        assert_eq!(show(schema.columns()), format!("{start}{expected}"));
    }
    for unknown in [
        "Understanding",
        "full.Name",
        "ignored.Name",
        "ignored.a.full.Name",
    ] {
        let error = AvroSchema::parse(&example(unknown)).unwrap_err();
        assert_eq!(
            error.message(),
            format!("field `reference`: type `{unknown}` is not defined")
        );
    }
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
    fn mutated_schemas_never_panic(at in 0usize..500, byte in any::<u8>(), cut in 0usize..500) {
        let mut bytes = br#"{"type": "record", "name": "R", "namespace": "shop", "fields": [
            {"name": "a", "type": {"type": "record", "name": "P", "fields": [{"name": "x", "type": ["null", "int"]}]}},
            {"name": "b", "type": ["null", "P", {"type": "map", "values": "P"}]},
            {"name": "c", "type": {"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 5}},
            {"name": "d", "type": ["null", "R"]}
        ]}"#.to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        bytes.truncate(if cut % 2 == 0 { bytes.len() } else { cut });
        if let Ok(text) = std::str::from_utf8(&bytes) {
            let _ = AvroSchema::parse(text);
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in ".{0,200}") {
        let _ = AvroSchema::parse(&text);
    }
}

/// Records, each defined inside the one before it.
#[test]
fn a_text_that_nests_too_deep_has_a_code_of_its_own() {
    let nested = |records: usize| {
        (0..records).fold("\"int\"".to_owned(), |inner, n| {
            format!(r#"{{"type": "record", "name": "R{n}", "doc": "[{{\"", "fields": [{{"name": "f", "type": {inner}}}]}}"#)
        })
    };
    AvroSchema::parse(&nested(42)).unwrap();
    for schema in [nested(43), nested(45), nested(4_000)] {
        let error = AvroSchema::parse(&schema).unwrap_err();
        assert_eq!(error.code(), Some("avro.schema_too_deep"));
        assert!(error.message().contains("and 127 are possible"), "{error}");
    }
}
