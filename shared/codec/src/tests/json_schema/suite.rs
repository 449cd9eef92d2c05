//! Cases of the public JSON-Schema-Test-Suite (draft 2020-12, `tests/`) that concern types, transcribed: what is valid
//! is read, and what is invalid because of a type, or of a format that has a column type of its own, is poison.
//!
//! Left out: keywords that say nothing about types (`minimum`, `pattern`, `required`, `uniqueItems` …), invalid cases of
//! `enum`, `const`, `oneOf`, `not` and `if` (values of the right type are taken), meta-schemas by `$ref`, and cases that
//! are only valid because a keyword ignores values of other types: `properties` without `type` means an object here, and
//! `items` an array. boon checks the transcription.

use frazil_schema::{JsonSchema, Mapping, SourceSchema};
use serde_json::Value;

use super::super::{poison, records};
use super::random::valid;
use crate::{DecodeOptions, Payload, prepare};

fn check(cases: &[(&str, &str, &[&str], &[&str])]) {
    for (case, schema, good, bad) in cases {
        let json: Value = serde_json::from_str(schema).unwrap();
        let schema = SourceSchema::Json(
            JsonSchema::compile(schema, &[], &Mapping::default())
                .unwrap_or_else(|error| panic!("{case}: {error}")),
        );
        for (documents, is_valid) in [(good, true), (bad, false)] {
            let records = records(documents.iter().map(|document| Payload::Encoded {
                schema: &schema,
                body: document.as_bytes(),
            }));
            let prepared = prepare(&records, DecodeOptions::default()).unwrap();
            let poison = poison(&prepared);
            for (index, document) in documents.iter().enumerate() {
                let instance: Value = serde_json::from_str(document).unwrap();
                assert_eq!(
                    valid(&json, &instance).is_ok(),
                    is_valid,
                    "{case}: {document}, says boon"
                );
                let reason = poison.iter().find(|(of, _)| *of == index);
                assert_eq!(reason.is_none(), is_valid, "{case}: {document}: {reason:?}");
            }
        }
    }
}

#[test]
fn types_json() {
    let object = r#"{"a": {}}"#;
    check(&[
        (
            "type.json: integer type matches integers",
            r#"{"type": "integer"}"#,
            &["1", "1.0"],
            &["1.1", r#""foo""#, r#""1""#, "{}", "[]", "true"],
        ),
        (
            "type.json: number type matches numbers",
            r#"{"type": "number"}"#,
            &["1", "1.0", "1.1"],
            &[r#""foo""#, r#""1""#, "{}", "[]", "true"],
        ),
        (
            "type.json: string type matches strings",
            r#"{"type": "string"}"#,
            &[r#""foo""#, r#""1""#, r#""""#],
            &["1", "1.1", "{}", "[]", "true"],
        ),
        (
            "type.json: object type matches objects",
            r#"{"type": "object", "properties": {"a": {}}}"#,
            &["{}", object],
            &["1", r#""foo""#, "[]", "true"],
        ),
        (
            "type.json: array type matches arrays",
            r#"{"type": "array", "items": {"type": "integer"}}"#,
            &["[]", "[1]"],
            &["1", r#""foo""#, "{}", "true"],
        ),
        (
            "type.json: boolean type matches booleans",
            r#"{"type": "boolean"}"#,
            &["true", "false"],
            &["1", "0", r#""foo""#, r#""""#, "{}", "[]"],
        ),
        (
            "type.json: multiple types",
            r#"{"type": ["integer", "string"]}"#,
            &["1", r#""foo""#],
            &[],
        ),
        (
            "type.json: type as array with one item",
            r#"{"type": ["string"]}"#,
            &[r#""foo""#],
            &["123"],
        ),
        (
            "type.json: type: array, object or null",
            r#"{"type": ["array", "object", "null"]}"#,
            &["[1, 2, 3]", r#"{"foo": 123}"#, "null"],
            &[],
        ),
    ]);
}

#[test]
fn objects_and_arrays() {
    check(&[
        (
            "properties.json: object properties validation",
            r#"{"properties": {"foo": {"type": "integer"}, "bar": {"type": "string"}}}"#,
            &[r#"{"foo": 1, "bar": "baz"}"#, r#"{"quux": []}"#],
            &[r#"{"foo": 1, "bar": {}}"#, r#"{"foo": [], "bar": {}}"#],
        ),
        (
            "properties.json: properties with boolean schema",
            r#"{"properties": {"foo": true, "bar": false}}"#,
            &["{}", r#"{"foo": 1}"#],
            &[],
        ),
        (
            "properties.json: properties with escaped characters",
            r#"{"properties": {"foo\nbar": {"type": "number"}, "foo\"bar": {"type": "number"}, "foo\\bar": {"type": "number"}, "foo\rbar": {"type": "number"}, "foo\tbar": {"type": "number"}, "foo\fbar": {"type": "number"}}}"#,
            &[
                r#"{"foo\nbar": 1, "foo\"bar": 1, "foo\\bar": 1, "foo\rbar": 1, "foo\tbar": 1, "foo\fbar": 1}"#,
            ],
            &[
                r#"{"foo\nbar": "1", "foo\"bar": "1", "foo\\bar": "1", "foo\rbar": "1", "foo\tbar": "1", "foo\fbar": "1"}"#,
            ],
        ),
        (
            "properties.json: properties with null valued instance properties",
            r#"{"properties": {"foo": {"type": "null"}}}"#,
            &[r#"{"foo": null}"#],
            &[],
        ),
        (
            "properties.json: properties whose names are Javascript object property names",
            r#"{"properties": {"__proto__": {"type": "number"}, "toString": {"properties": {"length": {"type": "string"}}}, "constructor": {"type": "number"}}}"#,
            &[
                "{}",
                r#"{"__proto__": 12, "toString": {"length": "foo"}, "constructor": 37}"#,
            ],
            &[
                r#"{"__proto__": "foo"}"#,
                r#"{"toString": {"length": 37}}"#,
                r#"{"constructor": {"length": 37}}"#,
            ],
        ),
        (
            "additionalProperties.json: additionalProperties with schema",
            r#"{"additionalProperties": {"type": "boolean"}}"#,
            &["{}", r#"{"foo": true}"#],
            &[r#"{"foo": 1}"#],
        ),
        (
            "items.json: a schema given for items",
            r#"{"items": {"type": "integer"}}"#,
            &["[1, 2, 3]"],
            &[r#"[1, "x"]"#],
        ),
        (
            "items.json: nested items",
            r#"{"type": "array", "items": {"type": "array", "items": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}}}"#,
            &["[[[[1]], [[2], [3]]], [[[4], [5], [6]]]]"],
            &[
                r#"[[[["1"]], [[2], [3]]], [[[4], [5], [6]]]]"#,
                "[[[1], [2], [3]], [[4], [5], [6]]]",
            ],
        ),
        (
            "items.json: items with null instance elements",
            r#"{"items": {"type": "null"}}"#,
            &["[null]"],
            &[],
        ),
        (
            "prefixItems.json: a schema given for prefixItems",
            r#"{"prefixItems": [{"type": "integer"}, {"type": "string"}]}"#,
            &[r#"[1, "foo"]"#, "[1]", r#"[1, "foo", true]"#, "[]"],
            &[],
        ),
        (
            "boolean_schema.json: boolean schema 'true'",
            "true",
            &[
                "1",
                r#""foo""#,
                "true",
                "null",
                r#"{"foo": "bar"}"#,
                "{}",
                r#"["foo"]"#,
                "[]",
            ],
            &[],
        ),
        (
            "enum.json: simple enum validation",
            r#"{"enum": [1, 2, 3]}"#,
            &["1"],
            &[],
        ),
        (
            "enum.json: heterogeneous enum-with-null validation",
            r#"{"enum": [6, null]}"#,
            &["null", "6"],
            &[r#""test""#],
        ),
        (
            "const.json: float and integers are equal",
            r#"{"const": 9007199254740992}"#,
            &["9007199254740992", "9007199254740992.0"],
            &[],
        ),
        (
            "const.json: const with 1 does not match true",
            r#"{"const": 1}"#,
            &["1", "1.0"],
            &["true"],
        ),
    ]);
}

#[test]
fn compositions_and_references() {
    check(&[
        (
            "allOf.json: allOf",
            r#"{"allOf": [{"properties": {"bar": {"type": "integer"}}, "required": ["bar"]}, {"properties": {"foo": {"type": "string"}}, "required": ["foo"]}]}"#,
            &[r#"{"foo": "baz", "bar": 2}"#],
            &[r#"{"foo": "baz", "bar": "quux"}"#],
        ),
        (
            "allOf.json: nested allOf, to check validation semantics",
            r#"{"allOf": [{"allOf": [{"type": "null"}]}]}"#,
            &["null"],
            &[],
        ),
        (
            "anyOf.json: anyOf",
            r#"{"anyOf": [{"type": "integer"}, {"minimum": 2}]}"#,
            &["1", "2.5", "3"],
            &[],
        ),
        (
            "anyOf.json: anyOf complex types",
            r#"{"anyOf": [{"properties": {"bar": {"type": "integer"}}, "required": ["bar"]}, {"properties": {"foo": {"type": "string"}}, "required": ["foo"]}]}"#,
            &[
                r#"{"bar": 2}"#,
                r#"{"foo": "baz"}"#,
                r#"{"foo": "baz", "bar": 2}"#,
            ],
            &[r#"{"foo": 2, "bar": "quux"}"#],
        ),
        (
            "oneOf.json: oneOf with base schema",
            r#"{"type": "string", "oneOf": [{"minLength": 2}, {"maxLength": 4}]}"#,
            &[r#""foobar""#],
            &["3"],
        ),
        (
            "infinite-loop-detection.json: evaluating the same schema location against the same data location twice",
            r##"{"$defs": {"int": {"type": "integer"}}, "allOf": [{"properties": {"foo": {"$ref": "#/$defs/int"}}}, {"additionalProperties": {"$ref": "#/$defs/int"}}]}"##,
            &[r#"{"foo": 1}"#],
            &[r#"{"foo": "a string"}"#],
        ),
        (
            "ref.json: root pointer ref",
            r##"{"properties": {"foo": {"$ref": "#"}}, "additionalProperties": false}"##,
            &[r#"{"foo": null}"#, r#"{"foo": {"foo": {}}}"#],
            &[],
        ),
        (
            "ref.json: relative pointer ref to object",
            r##"{"properties": {"foo": {"type": "integer"}, "bar": {"$ref": "#/properties/foo"}}}"##,
            &[r#"{"bar": 3}"#],
            &[r#"{"bar": true}"#],
        ),
        (
            "ref.json: relative pointer ref to array",
            r##"{"type": "array", "prefixItems": [{"type": "integer"}, {"$ref": "#/prefixItems/0"}]}"##,
            &["[1, 2]"],
            &[],
        ),
        (
            "ref.json: escaped pointer ref",
            r##"{"$defs": {"tilde~field": {"type": "integer"}, "slash/field": {"type": "integer"}, "percent%field": {"type": "integer"}}, "properties": {"tilde": {"$ref": "#/$defs/tilde~0field"}, "slash": {"$ref": "#/$defs/slash~1field"}, "percent": {"$ref": "#/$defs/percent%25field"}}}"##,
            &[r#"{"slash": 123}"#, r#"{"tilde": 123}"#, r#"{"percent": 123}"#],
            &[
                r#"{"slash": "aoeu"}"#,
                r#"{"tilde": "aoeu"}"#,
                r#"{"percent": "aoeu"}"#,
            ],
        ),
        (
            "ref.json: nested refs",
            r##"{"$defs": {"a": {"type": "integer"}, "b": {"$ref": "#/$defs/a"}, "c": {"$ref": "#/$defs/b"}}, "$ref": "#/$defs/c"}"##,
            &["5"],
            &[r#""a""#],
        ),
        (
            "ref.json: property named $ref that is not a reference",
            r#"{"properties": {"$ref": {"type": "string"}}}"#,
            &[r#"{"$ref": "a"}"#],
            &[r#"{"$ref": 2}"#],
        ),
        (
            "ref.json: property named $ref, containing an actual $ref",
            r##"{"properties": {"$ref": {"$ref": "#/$defs/is-string"}}, "$defs": {"is-string": {"type": "string"}}}"##,
            &[r#"{"$ref": "a"}"#],
            &[r#"{"$ref": 2}"#],
        ),
        (
            "ref.json: $ref to boolean schema true",
            r##"{"$ref": "#/$defs/bool", "$defs": {"bool": true}}"##,
            &[r#""foo""#],
            &[],
        ),
        (
            "ref.json: Recursive references between schemas",
            r##"{"$id": "http://localhost:1234/draft2020-12/tree", "type": "object", "properties": {"meta": {"type": "string"}, "nodes": {"type": "array", "items": {"$ref": "node"}}}, "required": ["meta", "nodes"],
                "$defs": {"node": {"$id": "http://localhost:1234/draft2020-12/node", "type": "object", "properties": {"value": {"type": "number"}, "subtree": {"$ref": "tree"}}, "required": ["value"]}}}"##,
            &[
                r#"{"meta": "root", "nodes": [{"value": 1, "subtree": {"meta": "child", "nodes": [{"value": 1.1}]}}, {"value": 2}]}"#,
            ],
            &[r#"{"meta": "root", "nodes": [{"value": "string is invalid"}]}"#],
        ),
        (
            "ref.json: refs with quote",
            r##"{"properties": {"foo\"bar": {"$ref": "#/$defs/foo%22bar"}}, "$defs": {"foo\"bar": {"type": "number"}}}"##,
            &[r#"{"foo\"bar": 1}"#],
            &[r#"{"foo\"bar": "1"}"#],
        ),
        (
            "ref.json: refs with relative uris and defs",
            r#"{"$id": "http://example.com/schema-relative-uri-defs1.json", "properties": {"foo": {"$id": "schema-relative-uri-defs2.json", "$defs": {"inner": {"properties": {"bar": {"type": "string"}}}}, "$ref": "schema-relative-uri-defs2.json#/$defs/inner"}}}"#,
            &[r#"{"foo": {"bar": "a"}}"#],
            &[r#"{"foo": {"bar": 1}}"#],
        ),
        (
            "ref.json: $id must be resolved against nearest parent, not just immediate parent",
            r##"{"$id": "http://example.com/a.json", "$defs": {"x": {"$id": "http://example.com/b/c.json", "not": {"$defs": {"y": {"$id": "d.json", "type": "number"}}}}}, "allOf": [{"$ref": "http://example.com/b/d.json"}]}"##,
            &["1"],
            &[r#""a""#],
        ),
        (
            "ref.json: URN base URI with URN and anchor ref",
            r##"{"$id": "urn:uuid:deadbeef-1234-ff00-00ff-4321feebdaed", "properties": {"foo": {"$ref": "urn:uuid:deadbeef-1234-ff00-00ff-4321feebdaed#something"}}, "$defs": {"bar": {"$anchor": "something", "type": "string"}}}"##,
            &[r#"{"foo": "bar"}"#],
            &[r#"{"foo": 12}"#],
        ),
        (
            "anchor.json: Location-independent identifier with base URI change in subschema",
            r##"{"$id": "http://localhost:1234/draft2020-12/root", "$ref": "http://localhost:1234/draft2020-12/nested.json#foo", "$defs": {"A": {"$id": "nested.json", "$defs": {"B": {"$anchor": "foo", "type": "integer"}}}}}"##,
            &["1"],
            &[r#""a""#],
        ),
        (
            "dynamicRef.json: A $dynamicRef to an $anchor in the same schema resource behaves like a normal $ref",
            r##"{"$id": "https://test.json-schema.org/dynamicRef-anchor-same-schema/root", "type": "array", "items": {"$dynamicRef": "#items"}, "$defs": {"foo": {"$anchor": "items", "type": "string"}}}"##,
            &[r#"["foo", "bar"]"#],
            &[r#"["foo", 42]"#],
        ),
    ]);
}

#[test]
fn formats() {
    check(&[
        (
            "optional/format/date-time.json",
            r#"{"type": "string", "format": "date-time"}"#,
            &[
                r#""1963-06-19T08:30:06.283185Z""#,
                r#""1963-06-19T08:30:06Z""#,
                r#""1937-01-01T12:00:27.87+00:20""#,
                r#""1990-12-31T15:59:50.123-08:00""#,
                r#""1998-12-31T23:59:60Z""#,
                r#""1998-12-31T15:59:60.123-08:00""#,
                r#""1963-06-19t08:30:06.283185z""#,
            ],
            &[
                r#""1998-12-31T23:59:61Z""#,
                r#""1998-12-31T23:58:60Z""#,
                r#""1998-12-31T22:59:60Z""#,
                r#""1990-02-31T15:59:59.123-08:00""#,
                r#""1990-12-31T15:59:59-24:00""#,
                r#""1963-06-19T08:30:06.28123+01:00Z""#,
                r#""06/19/1963 08:30:06 PST""#,
                r#""2013-350T01:01:01""#,
                r#""1963-6-19T08:30:06.283185Z""#,
                r#""1963-06-1T00:00:00Z""#,
                r#""1963-06-1৪T00:00:00Z""#,
                r#""1963-06-11T0৪:00:00Z""#,
            ],
        ),
        (
            "optional/format/date.json",
            r#"{"type": "string", "format": "date"}"#,
            &[
                r#""1963-06-19""#,
                r#""2020-01-31""#,
                r#""2021-02-28""#,
                r#""2020-02-29""#,
                r#""2020-12-31""#,
            ],
            &[
                r#""2020-01-32""#,
                r#""2021-02-29""#,
                r#""2020-02-30""#,
                r#""2020-04-31""#,
                r#""2020-13-01""#,
                r#""06/19/1963""#,
                r#""2013-350""#,
                r#""1998-1-20""#,
                r#""1998-01-1""#,
                r#""1963-06-1৪""#,
                r#""20230328""#,
                r#""2023-W01""#,
            ],
        ),
    ]);
}
