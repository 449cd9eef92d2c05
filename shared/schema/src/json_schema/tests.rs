use std::collections::BTreeMap;

use frazil_core::ErrorKind;
use iceberg::spec::PrimitiveType;

use super::*;
use crate::FieldMapping;

mod mutated;

fn compile(text: &str) -> Result<JsonSchema> {
    JsonSchema::compile(text, &[], &Mapping::default())
}

fn shown(schema: &JsonSchema) -> String {
    let columns: Vec<String> = schema
        .columns()
        .iter()
        .map(|column| format!("{}: {}", column.name, column.data_type))
        .collect();
    columns.join(", ")
}

/// The type of the one property `f` with this schema; `none` if it has no column.
fn check(cases: &[(&str, &str)]) {
    for (property, expected) in cases {
        let text = format!(r#"{{"type": "object", "properties": {{"f": {property}}}}}"#);
        let schema = compile(&text).unwrap_or_else(|error| panic!("{property}: {error}"));
        let found = match schema.columns() {
            [] => "none".to_owned(),
            [column] => column.data_type.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(found, *expected, "{property}");
    }
}

#[test]
fn every_row_of_the_contract() {
    check(&[
        (r#"{"type": "integer"}"#, "long"),
        (r#"{"type": "number"}"#, "double"),
        (r#"{"type": "string"}"#, "string"),
        (r#"{"type": "boolean"}"#, "boolean"),
        (r#"{"type": "string", "format": "date-time"}"#, "timestamptz"),
        (r#"{"type": "string", "format": "date"}"#, "date"),
        (r#"{"type": "string", "format": "time"}"#, "string"),
        (r#"{"type": "string", "format": "uuid"}"#, "string"),
        (r#"{"type": "string", "format": "email"}"#, "string"),
        (
            r#"{"type": "object", "properties": {"x": {"type": "integer"}, "Y": {"type": "string"}}}"#,
            "struct<x: long, y: string>",
        ),
        (
            r#"{"type": "object", "additionalProperties": {"type": "number"}}"#,
            "map<string, double>",
        ),
        (r#"{"type": "object"}"#, "string"),
        (r#"{"type": "object", "additionalProperties": false}"#, "string"),
        (r#"{"type": "object", "additionalProperties": {}}"#, "string"),
        (r#"{"type": "object", "properties": {}}"#, "string"),
        (r#"{"type": "array"}"#, "string"),
        (r#"{"type": "array", "items": true}"#, "string"),
        (
            r#"{"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}"#,
            "string",
        ),
        (
            r#"{"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "string"}}"#,
            "string",
        ),
        (
            r#"{"type": "array", "items": {"type": "string"}}"#,
            "list<string>",
        ),
        (
            r#"{"type": "array", "items": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "boolean"}}}}}"#,
            "list<list<struct<x: boolean>>>",
        ),
        (r#"{"enum": ["a", "b"]}"#, "string"),
        (r#"{"enum": [1, 2, null]}"#, "long"),
        (r#"{"enum": [1, 2.5]}"#, "double"),
        (r#"{"enum": [true]}"#, "boolean"),
        (r#"{"enum": [1, "a"]}"#, "string"),
        (r#"{"const": 7}"#, "long"),
        (r#"{"const": "x"}"#, "string"),
        (r#"{"const": {"a": 1}}"#, "string"),
        (r#"{"const": null}"#, "none"),
        (r#"{"enum": [null]}"#, "none"),
        (r#"{"oneOf": [{"type": "null"}, {"type": "integer"}]}"#, "long"),
        (
            r#"{"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}"#,
            "date",
        ),
        (
            r#"{"oneOf": [{"type": "object", "properties": {"a": {"type": "integer"}, "k": {"const": "x"}}}, {"type": "object", "properties": {"b": {"type": "string"}, "k": {"const": "y"}}}]}"#,
            "struct<a: long, k: string, b: string>",
        ),
        (
            r#"{"anyOf": [{"type": "integer"}, {"type": "number"}]}"#,
            "double",
        ),
        (
            r#"{"anyOf": [{"type": "integer", "connect.type": "int32"}, {"type": "integer", "connect.type": "int64"}]}"#,
            "long",
        ),
        (
            r#"{"anyOf": [{"type": "integer"}, {"type": "string"}]}"#,
            "string",
        ),
        (
            r#"{"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}]}"#,
            "string",
        ),
        (
            r#"{"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "array", "items": {"type": "number"}}]}"#,
            "list<double>",
        ),
        (
            r#"{"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "object"}]}"#,
            "string",
        ),
        (
            r#"{"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"properties": {"b": {"type": "string"}, "a": {"minimum": 0}}}]}"#,
            "struct<a: long, b: string>",
        ),
        (
            r#"{"allOf": [{"type": ["integer", "null"]}, {"maximum": 9}]}"#,
            "long",
        ),
        ("true", "string"),
        ("{}", "string"),
        ("false", "none"),
        (r#"{"type": "null"}"#, "none"),
    ]);
}

#[test]
fn type_lists_and_what_schemas_leave_unsaid() {
    check(&[
        (r#"{"type": ["string", "null"]}"#, "string"),
        (r#"{"type": ["null", "integer"], "nullable": true}"#, "long"),
        (r#"{"type": ["integer", "number"]}"#, "double"),
        (r#"{"type": ["number", "integer", "null"]}"#, "double"),
        (r#"{"type": ["integer", "string"]}"#, "string"),
        (
            r#"{"type": ["string", "object"], "properties": {"a": {"type": "integer"}}}"#,
            "string",
        ),
        (r#"{"type": []}"#, "none"),
        (r#"{"properties": {"a": {"type": "integer"}}}"#, "struct<a: long>"),
        (r#"{"items": {"type": "integer"}}"#, "list<long>"),
        (
            r#"{"additionalProperties": {"type": "integer"}}"#,
            "map<string, long>",
        ),
        (
            r#"{"type": "object", "patternProperties": {"^n": {"type": "integer"}, "^d": {"type": "number"}}, "additionalProperties": false}"#,
            "map<string, double>",
        ),
        (
            r#"{"type": "object", "patternProperties": {"^n": {"type": "integer"}}}"#,
            "string",
        ),
        (r#"{"type": "integer", "enum": [1, 2.0]}"#, "long"),
        (r#"{"type": ["string", "null"], "enum": ["a", null]}"#, "string"),
        (
            r#"{"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}"#,
            "struct<a: long>",
        ),
        (
            r#"{"type": "object", "properties": {"n": {"type": "null"}}}"#,
            "boolean",
        ),
        (r#"{"type": "array", "items": {"type": "null"}}"#, "none"),
        (
            r#"{"type": "object", "additionalProperties": {"type": "null"}}"#,
            "none",
        ),
        (r#"{"minimum": 3}"#, "string"),
        (
            r#"{"type": "object", "properties": {"kind": {"type": "string"}}, "if": {"properties": {"kind": {"const": "a"}}}, "then": {"properties": {"a": {"type": "integer"}, "kind": true}, "required": ["a"]}, "else": {"properties": {"b": {"type": "string"}}}, "dependentSchemas": {"a": {"properties": {"c": {"type": "boolean"}}}}}"#,
            "struct<kind: string, a: long, b: string, c: boolean>",
        ),
        (r#"{"type": "string", "allOf": [{"type": "integer"}]}"#, "none"),
        // Of duplicate keys the last.
        (r#"{"type": "string", "type": "integer"}"#, "long"),
    ]);
}

#[test]
fn connects_types() {
    let logical = |name: &str, json: &str, parameters: &str| {
        format!(
            r#"{{"oneOf": [{{"type": "null"}}, {{"type": "{json}", "title": "org.apache.kafka.connect.data.{name}", "connect.version": 1{parameters}}}], "connect.index": 3}}"#
        )
    };
    let decimal = |parameters: &str| {
        logical(
            "Decimal",
            "number",
            &format!(r#", "connect.type": "bytes", "connect.parameters": {{{parameters}}}"#),
        )
    };
    let precise = decimal(r#""scale": "4", "connect.decimal.precision": "14""#);
    let scaled = decimal(r#""scale": "2""#);
    let numbers = decimal(r#""scale": 38, "precision": 38"#);
    let date = logical("Date", "integer", r#", "connect.type": "int32""#);
    let time = logical("Time", "integer", r#", "connect.type": "int32""#);
    let timestamp = logical("Timestamp", "integer", r#", "connect.type": "int64""#);
    check(&[
        (r#"{"type": "integer", "connect.type": "int8"}"#, "int"),
        (r#"{"type": "integer", "connect.type": "int16"}"#, "int"),
        (r#"{"type": "integer", "connect.type": "int32"}"#, "int"),
        (r#"{"type": "integer", "connect.type": "int64"}"#, "long"),
        (r#"{"type": "number", "connect.type": "float32"}"#, "float"),
        (r#"{"type": "number", "connect.type": "float64"}"#, "double"),
        (r#"{"type": "string", "connect.type": "bytes"}"#, "binary"),
        (&precise, "decimal(14, 4)"),
        (&scaled, "decimal(38, 2)"),
        (&numbers, "decimal(38, 38)"),
        (&date, "date"),
        (&time, "string"),
        (&timestamp, "timestamptz"),
        (
            r#"{"type": "object", "connect.type": "map", "additionalProperties": {"type": "integer", "connect.type": "int32"}}"#,
            "map<string, int>",
        ),
        (
            r#"{"type": "array", "connect.type": "map", "items": {"type": "object", "properties": {"key": {"type": "integer", "connect.index": 0}, "value": {"type": "string", "connect.index": 1}}}}"#,
            "list<struct<key: long, value: string>>",
        ),
        // Its own title for something else, and a title that is only one.
        (
            r#"{"type": "string", "title": "org.apache.kafka.connect.data.Timestamp"}"#,
            "string",
        ),
        (r#"{"type": "integer", "title": "Date"}"#, "long"),
    ]);
    // Java's maps have no order, and Connect's objects neither: `connect.index` says it.
    let schema = compile(
        r#"{"type": "object", "title": "shop.Order", "properties": {
            "total": {"type": "number", "connect.index": 2}, "id": {"type": "string", "connect.index": 0},
            "placed": {"type": "integer", "connect.index": 1}, "extra": {"type": "boolean"}}}"#,
    );
    assert_eq!(
        shown(&schema.unwrap()),
        "id: string, placed: long, total: double, extra: boolean"
    );
}

#[test]
fn references_inside_the_schema() {
    let check = |text: &str, expected: &str| assert_eq!(shown(&compile(text).unwrap()), expected, "{text}");
    check(
        r##"{"type": "object", "properties": {"a": {"$ref": "#/definitions/money"}, "b": {"$ref": "#/$defs/a~1b%20c~0"}, "c": {"$ref": "#/properties/a"}},
            "definitions": {"money": {"type": "object", "properties": {"cents": {"type": "integer"}}}}, "$defs": {"a/b c~": {"type": "boolean"}}}"##,
        "a: struct<cents: long>, b: boolean, c: struct<cents: long>",
    );
    // The root itself may be a reference, with what is beside it.
    check(
        r##"{"$ref": "#/$defs/base", "properties": {"b": {"type": "string"}}, "$defs": {"base": {"type": "object", "properties": {"a": {"type": "integer"}}}}}"##,
        "a: long, b: string",
    );
    // Until draft 7 nothing beside a reference counts.
    check(
        r##"{"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/base", "properties": {"b": {"type": "string"}}, "definitions": {"base": {"type": "object", "properties": {"a": {"type": "integer"}}}}}"##,
        "a: long",
    );
    // JSON-Schema-Test-Suite, ref.json and anchor.json: base URIs, embedded schemas, anchors, names with slashes.
    check(
        r##"{"$id": "http://localhost:1234/root.json", "type": "object", "properties": {"a": {"$ref": "nested.json"}, "b": {"$ref": "nested.json#bar"}, "c": {"$ref": "#foo"}, "d": {"$ref": "nested.json#/$defs/B"}},
            "$defs": {"A": {"$id": "nested.json", "type": "integer", "$defs": {"B": {"$anchor": "bar", "type": "string"}}}, "F": {"$anchor": "foo", "type": "boolean"}}}"##,
        "a: long, b: string, c: boolean, d: string",
    );
    check(
        r##"{"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://x.net/", "type": "object", "properties": {"id": {"$ref": "item"}, "x": {"$ref": "#foo"}},
            "definitions": {"i": {"id": "item", "type": "integer"}, "f": {"id": "#foo", "type": "number"}}}"##,
        "id: long, x: double",
    );
    check(
        r##"{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"a": {"$ref": "#foo"}}, "definitions": {"A": {"$id": "#foo", "type": "integer"}}}"##,
        "a: long",
    );
    // Generators write ids like these; they mean nothing.
    check(
        r##"{"$schema": "http://json-schema.org/draft-07/schema#", "$id": "http://example.com/r.json", "type": "object", "properties": {"a": {"$id": "#/properties/a", "type": "string"}, "b": {"$ref": "#/properties/a"}}}"##,
        "a: string, b: string",
    );
    // A property that is called `$ref`, and one called `$id`.
    check(
        r##"{"type": "object", "properties": {"$ref": {"type": "string"}, "$id": {"type": "integer"}}}"##,
        "_ref: string, _id: long",
    );
    check(
        r##"{"type": "object", "properties": {"m": {"$ref": "http://json-schema.org/draft-07/schema#"}, "n": {"$dynamicRef": "#n"}}, "$defs": {"n": {"$dynamicAnchor": "n", "type": "integer"}}}"##,
        "m: string, n: long",
    );
}

#[test]
fn references_of_the_registry() {
    let compile = |text: &str, references: &[(&str, &str)]| {
        let references: Vec<(String, String)> = references
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect();
        JsonSchema::compile(text, &references, &Mapping::default())
    };
    let order = r#"{"type": "object", "properties": {"customer": {"$ref": "customer.json"}}}"#;
    let customer = r##"{"type": "object", "properties": {"home": {"$ref": "address.json#/$defs/a"}, "tag": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"type": "string"}}}"##;
    let address = r#"{"$defs": {"a": {"type": "object", "properties": {"zip": {"type": "string"}}}}}"#;
    let references = [("customer.json", customer), ("address.json", address)];
    assert_eq!(
        shown(&compile(order, &references).unwrap()),
        "customer: struct<home: struct<zip: string>, tag: string>"
    );
    // By their own `$id`, and by a name that the registry has although a base would make it another.
    let order = r#"{"$id": "http://shop/order.json", "type": "object", "properties": {"a": {"$ref": "customer.json"}, "b": {"$ref": "address"}}}"#;
    let customer =
        r#"{"$id": "http://shop/customer.json", "type": "object", "properties": {"n": {"type": "integer"}}}"#;
    let references = [("shop-customer", customer), ("address", r#"{"type": "string"}"#)];
    assert_eq!(
        shown(&compile(order, &references).unwrap()),
        "a: struct<n: long>, b: string"
    );
    // Two documents that need each other.
    let references = [
        (
            "a.json",
            r#"{"type": "object", "properties": {"b": {"$ref": "b.json"}, "x": {"type": "integer"}}}"#,
        ),
        (
            "b.json",
            r#"{"type": "object", "properties": {"a": {"$ref": "a.json"}, "y": {"type": "integer"}}}"#,
        ),
    ];
    assert_eq!(
        shown(&compile(r#"{"$ref": "a.json"}"#, &references).unwrap()),
        "b: struct<a: string, y: long>, x: long"
    );
    let error = compile(order, &[]).unwrap_err();
    assert_eq!(
        (error.kind(), error.code(), error.message()),
        (
            ErrorKind::Invalid,
            Some("json.schema_invalid"),
            "field `a`: `$ref` names `customer.json`, which is not there"
        )
    );
}

#[test]
fn old_drafts_have_schemas_among_their_dependencies() {
    let body = r#""type": "object", "properties": {"a": {"type": "integer"}},
        "dependencies": {"a": {"properties": {"b": {"type": "string"}}}, "b": ["a"]}}"#;
    for (draft, expected) in [
        (
            r#"{"$schema": "http://json-schema.org/draft-07/schema#","#,
            "a: long, b: string",
        ),
        (
            r#"{"$schema": "http://json-schema.org/draft-04/schema#","#,
            "a: long, b: string",
        ),
        ("{", "a: long"),
    ] {
        assert_eq!(
            shown(&compile(&format!("{draft}{body}")).unwrap()),
            expected,
            "{draft}"
        );
    }
}

#[test]
fn recursion_becomes_text() {
    let cases = [
        (
            r##"{"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#"}}}"##,
            "v: long, next: string",
        ),
        (
            r##"{"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}, "parent": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}}}}}"##,
            "v: long, children: string, parent: string",
        ),
        (r##"{"$ref": "#"}"##, "value: string"),
        (
            r##"{"allOf": [{"$ref": "#"}], "type": "object", "properties": {"a": {"type": "integer"}}}"##,
            "a: long",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(&compile(text).unwrap()), expected, "{text}");
    }
}

#[test]
fn a_root_that_has_no_fields_is_one_column() {
    for (text, expected) in [
        (r#"{"type": "string", "description": "a name"}"#, "value: string"),
        (
            r#"{"type": "array", "items": {"type": "integer"}}"#,
            "value: list<long>",
        ),
        (
            r#"{"type": "object", "additionalProperties": {"type": "integer"}}"#,
            "value: map<string, long>",
        ),
        ("true", "value: string"),
        (r#"{"type": "null"}"#, ""),
    ] {
        assert_eq!(shown(&compile(text).unwrap()), expected, "{text}");
    }
    assert_eq!(
        compile(r#"{"type": "string", "description": "a name"}"#)
            .unwrap()
            .columns()[0]
            .doc
            .as_deref(),
        Some("a name")
    );
}

#[test]
fn descriptions_become_docs() {
    let schema = compile(
        r##"{"type": "object", "properties": {"a": {"type": "string", "description": "the a"}, "b": {"oneOf": [{"type": "null"}, {"type": "string", "description": "the b"}]}, "c": {"$ref": "#/$defs/c"}},
            "$defs": {"c": {"type": "integer", "description": "the c"}}}"##,
    );
    let docs: Vec<Option<String>> = schema
        .unwrap()
        .columns()
        .iter()
        .map(|column| column.doc.clone())
        .collect();
    assert_eq!(
        docs,
        [
            Some("the a".to_owned()),
            Some("the b".to_owned()),
            Some("the c".to_owned())
        ]
    );
}

#[test]
fn settings_change_the_columns() {
    let field = |data_type: Option<PrimitiveType>, exclude| FieldMapping {
        data_type,
        exclude,
        ..FieldMapping::default()
    };
    let decimal = PrimitiveType::Decimal {
        precision: 18,
        scale: 4,
    };
    let mapping = Mapping {
        utc_naive: true,
        fields: BTreeMap::from([
            ("price".to_owned(), field(Some(decimal), false)),
            ("customer.email".to_owned(), field(None, true)),
            ("lines.note".to_owned(), field(Some(PrimitiveType::Binary), false)),
        ]),
        ..Mapping::default()
    };
    let text = r#"{"type": "object", "properties": {
        "price": {"type": "number"}, "at": {"type": "string", "format": "date-time"},
        "customer": {"type": "object", "properties": {"email": {"type": "string"}}},
        "lines": {"type": "array", "items": {"type": "object", "properties": {"note": {"type": "string"}}}}}}"#;
    let schema = JsonSchema::compile(text, &[], &mapping).unwrap();
    assert_eq!(
        shown(&schema),
        "price: decimal(18, 4), at: timestamp, customer: boolean, lines: list<struct<note: binary>>"
    );
    let JsonType::Object(fields) = schema.root() else {
        panic!("{:?}", schema.root())
    };
    let JsonType::Object(customer) = &fields[2].data_type else {
        panic!("{fields:?}")
    };
    assert_eq!(customer[0].data_type, JsonType::Excluded);
}

/// As many branches as the bounds allow, each with a field of its own: not so slow that anybody would notice.
#[test]
fn thousands_of_branches_are_one_struct() {
    let branches: Vec<String> = (0..9_000)
        .map(|i| format!(r#"{{"properties": {{"f{i}": {{"type": "integer"}}, "x": {{"type": "number"}}}}}}"#))
        .collect();
    for keyword in ["anyOf", "allOf"] {
        let schema = compile(&format!(r#"{{"{keyword}": [{}]}}"#, branches[..6_000].join(","))).unwrap();
        assert_eq!(schema.columns().len(), 6_001);
    }
    let error = compile(&format!(r#"{{"anyOf": [{}]}}"#, branches.join(","))).unwrap_err();
    assert!(error.message().contains("more than 20000 types"), "{error}");
}

#[test]
fn what_is_no_schema_is_refused() {
    let deep = |levels: usize| {
        format!(
            "{}{{}}{}",
            r#"{"type": "array", "items": "#.repeat(levels),
            "}".repeat(levels)
        )
    };
    let doubling: Vec<String> = (0..40)
        .map(|i| format!(r##""d{i}": {{"type": "object", "properties": {{"a": {{"$ref": "#/$defs/d{0}"}}, "b": {{"$ref": "#/$defs/d{0}"}}}}}}"##, i + 1))
        .collect();
    let doubling = format!(
        r##"{{"$ref": "#/$defs/d0", "$defs": {{{}, "d40": {{"type": "integer"}}}}}}"##,
        doubling.join(",")
    );
    let long = " ".repeat(MAX_SCHEMA_BYTES + 1);
    let chain: Vec<String> = (0..400)
        .map(|i| format!(r##""d{i}": {{"$ref": "#/$defs/d{}"}}"##, i + 1))
        .collect();
    let chain = format!(
        r##"{{"$ref": "#/$defs/d0", "$defs": {{{}, "d400": {{}}}}}}"##,
        chain.join(",")
    );
    for (text, reason) in [
        (
            "{",
            "the schema: it is not JSON: EOF while parsing an object at line 1 column 1",
        ),
        ("7", "the schema: a schema is an object, `true` or `false`"),
        (
            r#"{"properties": {"a": {"type": "int"}}}"#,
            "field `a`: `type` names what is not a JSON type",
        ),
        (
            r#"{"properties": {"a": {"items": {"type": 7}}}}"#,
            "field `a[]`: `type` is neither a name nor a list of names",
        ),
        (
            r#"{"properties": []}"#,
            "the schema: `properties` is not an object",
        ),
        (r#"{"allOf": {}}"#, "the schema: `allOf` is not a list of schemas"),
        (
            r##"{"$ref": "#/nowhere"}"##,
            "the schema: `$ref` names `#/nowhere`, which is not there",
        ),
        (r#"{"$ref": 1}"#, "the schema: a `$ref` is not a string"),
        (
            r#"{"properties": {"d": {"type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.parameters": {"scale": "2", "connect.decimal.precision": "39"}}}}"#,
            "field `d`: no column can hold decimal(39, 2)",
        ),
        (
            r#"{"properties": {"d": {"type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.parameters": {"scale": "-1"}}}}"#,
            "field `d`: no column can hold decimal(38, -1)",
        ),
        (
            r#"{"properties": {"d": {"type": "number", "title": "org.apache.kafka.connect.data.Decimal"}}}"#,
            "field `d`: the decimal has no `scale` in `connect.parameters`",
        ),
        (&deep(70), "nested more than 64 levels deep"),
        (&deep(200), "it is not JSON: recursion limit exceeded"),
        (&doubling, "the schema has more than 20000 types"),
        (&chain, "nested more than 64 levels deep"),
        (&long, "it is 1048577 bytes long; the limit is 1048576"),
    ] {
        let error = compile(text).unwrap_err();
        assert_eq!(error.code(), Some("json.schema_invalid"));
        assert!(
            error.message().contains(reason),
            "{}: {}",
            &text[..text.len().min(200)],
            error.message()
        );
    }
    let many: Vec<(String, String)> = (0..=MAX_REFERENCES)
        .map(|i| (i.to_string(), "{}".to_owned()))
        .collect();
    let error = JsonSchema::compile("{}", &many, &Mapping::default()).unwrap_err();
    assert!(error.message().contains("it has 1001 references"), "{error}");
}
