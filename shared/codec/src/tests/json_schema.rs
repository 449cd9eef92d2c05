use std::collections::BTreeMap;

use frazil_schema::{FieldMapping, HashMethod, JsonSchema, Mapping, SourceSchema};
use iceberg::spec::PrimitiveType;

use super::{Table, poison, records, values};
use crate::{DecodeOptions, HashKey, Payload, UnknownFields, prepare};

mod random;
mod suite;

fn schema(text: &str, mapping: &Mapping) -> SourceSchema {
    SourceSchema::Json(JsonSchema::compile(text, &[], mapping).unwrap())
}

/// Documents under one schema: the row of each, or its code and reason.
fn check_documents(schema: &SourceSchema, options: DecodeOptions, cases: &[(&str, &str)]) {
    let records = records(cases.iter().map(|(document, _)| Payload::Encoded {
        schema,
        body: document.as_bytes(),
    }));
    let prepared = prepare(&records, options).unwrap();
    let rows: Vec<usize> = prepared.rows().collect();
    let mut found: BTreeMap<usize, String> = poison(&prepared).into_iter().collect();
    found.extend(
        rows.into_iter()
            .zip(values(&Table::default().take(&prepared).unwrap())),
    );
    for (index, (document, expected)) in cases.iter().enumerate() {
        assert_eq!(found[&index], *expected, "{document}");
    }
}

/// Values of a property `f` of this schema: its column's value, or code and reason.
fn check(property: &str, cases: &[(&str, &str)]) {
    check_mapped(property, &FieldMapping::default(), cases);
}

fn check_mapped(property: &str, setting: &FieldMapping, cases: &[(&str, &str)]) {
    let mapping = Mapping {
        fields: BTreeMap::from([("f".to_owned(), setting.clone())]),
        ..Mapping::default()
    };
    let schema = schema(
        &format!(r#"{{"type": "object", "properties": {{"f": {property}}}}}"#),
        &mapping,
    );
    for (value, expected) in cases {
        let is_poison = expected.starts_with("json.") || expected.starts_with("value.");
        let expected = match *expected {
            "null" => String::new(),
            expected if is_poison => expected.to_owned(),
            expected => format!("f={expected}"),
        };
        check_documents(
            &schema,
            DecodeOptions::default(),
            &[(&format!(r#"{{"f": {value}}}"#), &expected)],
        );
    }
    check_documents(
        &schema,
        DecodeOptions::default(),
        &[("{}", ""), (r#"{"f": null}"#, "")],
    );
}

fn retyped(data_type: PrimitiveType) -> FieldMapping {
    FieldMapping {
        data_type: Some(data_type),
        ..FieldMapping::default()
    }
}

#[test]
fn integers() {
    check(
        r#"{"type": "integer"}"#,
        &[
            ("0", "0"),
            ("-0", "0"),
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("1.0", "1"),
            ("1.5e1", "15"),
            ("-9.223372036854775808E18", "-9223372036854775808"),
            ("9007199254740993.000", "9007199254740993"),
            (
                "1.5",
                "json.type_mismatch field `f`: the schema wants an integer, and it is the number 1.5",
            ),
            (
                "9223372036854775808",
                "json.number_out_of_range field `f`: 9223372036854775808 is beyond 64 bits",
            ),
            (
                "-9223372036854775809",
                "json.number_out_of_range field `f`: -9223372036854775809 is beyond 64 bits",
            ),
            (
                "1e999999999",
                "json.number_out_of_range field `f`: 1e999999999 is beyond 64 bits",
            ),
            (
                r#""7""#,
                "json.type_mismatch field `f`: the schema wants an integer, and it is a string",
            ),
            (
                "true",
                "json.type_mismatch field `f`: the schema wants an integer, and it is a boolean",
            ),
            (
                "[1]",
                "json.type_mismatch field `f`: the schema wants an integer, and it is an array",
            ),
            (
                "{}",
                "json.type_mismatch field `f`: the schema wants an integer, and it is an object",
            ),
        ],
    );
    check(
        r#"{"type": "integer", "connect.type": "int8"}"#,
        &[
            ("127", "127"),
            ("2147483647", "2147483647"),
            ("-2147483648", "-2147483648"),
            (
                "2147483648",
                "json.number_out_of_range field `f`: 2147483648 is beyond a column of 32 bits",
            ),
        ],
    );
}

#[test]
fn numbers_with_a_fraction() {
    check(
        r#"{"type": "number"}"#,
        &[
            ("1.1", "1.1"),
            ("-0", "-0.0"),
            ("-0.0", "-0.0"),
            ("3", "3.0"),
            ("1e-400", "0.0"),
            ("1.7976931348623157e308", "1.7976931348623157e308"),
            ("5e-324", "5e-324"),
            ("9007199254740993", "9007199254740992.0"),
            ("123456789012345678901234567890", "1.2345678901234568e29"),
            (
                "1e999",
                "json.number_out_of_range field `f`: 1e999 is beyond a double",
            ),
            (
                "-1e999",
                "json.number_out_of_range field `f`: -1e999 is beyond a double",
            ),
            (
                r#""1.5""#,
                "json.type_mismatch field `f`: the schema wants a number, and it is a string",
            ),
            (
                "NaN",
                "json.invalid field `f`: line 1, column 7: expected a value",
            ),
            (
                "Infinity",
                "json.invalid field `f`: line 1, column 7: expected a value",
            ),
            (
                "-Infinity",
                "json.invalid field `f`: line 1, column 8: expected a digit",
            ),
            (
                r#""NaN""#,
                "json.type_mismatch field `f`: the schema wants a number, and it is a string",
            ),
        ],
    );
    check(
        r#"{"type": "number", "connect.type": "float32"}"#,
        &[
            ("1.1", "1.1f"),
            ("16777217", "16777216.0f"),
            ("3.4028235e38", "3.4028235e38f"),
            (
                "3.5e38",
                "json.number_out_of_range field `f`: 3.5e38 is beyond a float",
            ),
        ],
    );
}

#[test]
fn decimals() {
    let decimal = |precision: u32, scale: u32| {
        format!(
            r#"{{"type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.type": "bytes", "connect.parameters": {{"scale": "{scale}", "connect.decimal.precision": "{precision}"}}}}"#
        )
    };
    check(
        &decimal(9, 2),
        &[
            ("12.50", "12.50"),
            ("-0.01", "-0.01"),
            ("1e3", "1000.00"),
            ("9999999.99", "9999999.99"),
            (
                "10000000",
                "value.decimal_overflow field `f`: the number has more digits than decimal(9, 2) can hold",
            ),
            (
                "0.005",
                "value.decimal_inexact field `f`: the number has more than 2 digits behind the point",
            ),
            // Base64 as Java's BigInteger.toByteArray has it: 1250, −1, and ten to the ninth.
            (r#""BOI=""#, "12.50"),
            (r#""/w==""#, "-0.01"),
            (
                r#""O5rKAA==""#,
                "value.decimal_overflow field `f`: the number has more digits than decimal(9, 2) can hold",
            ),
            (r#""""#, "0.00"),
            (
                r#""12.50""#,
                "json.invalid_format field `f`: the string of 5 bytes is not a number, nor a decimal in base64",
            ),
            (
                "true",
                "json.type_mismatch field `f`: the schema wants a number, and it is a boolean",
            ),
        ],
    );
    let nines = "9".repeat(38);
    let fraction = format!("0.{nines}");
    check(
        &decimal(38, 38),
        &[
            (&fraction, &fraction),
            ("-1e-38", "-0.00000000000000000000000000000000000001"),
        ],
    );
    check(
        &decimal(38, 0),
        &[
            (&nines, &nines),
            // 10³⁸ − 1 and −10³⁸, in 16 bytes.
            (r#""SztMqFqGxHoJiiI//////w==""#, &nines),
            (
                r#""tMSzV6V5O4X2dd3AAAAAAA==""#,
                "value.decimal_overflow field `f`: the number has more digits than decimal(38, 0) can hold",
            ),
        ],
    );
    // Settings: another scale, and a number that is money.
    check_mapped(
        &decimal(9, 2),
        &retyped(PrimitiveType::Decimal {
            precision: 18,
            scale: 4,
        }),
        &[("1.2345", "1.2345"), (r#""BOI=""#, "12.5000")],
    );
    check_mapped(
        r#"{"type": "number"}"#,
        &retyped(PrimitiveType::Decimal {
            precision: 18,
            scale: 4,
        }),
        &[
            ("0.1", "0.1000"),
            (
                "9007199254740993.0001",
                "value.decimal_overflow field `f`: the number has more digits than decimal(18, 4) can hold",
            ),
            ("90071992547409.0001", "90071992547409.0001"),
            ("3", "3.0000"),
        ],
    );
    check_mapped(
        &decimal(20, 0),
        &retyped(PrimitiveType::Long),
        &[
            (
                "18446744073709551615",
                "json.number_out_of_range field `f`: 18446744073709551615 is beyond a column of 64 bits",
            ),
            ("7.0", "7"),
            (r#""BOI=""#, "1250"),
        ],
    );
}

#[test]
fn strings_and_booleans() {
    let long = "x".repeat(1 << 20);
    let quoted = format!("\"{long}\"");
    check(
        r#"{"type": "string"}"#,
        &[
            (r#""""#, ""),
            (r#""Zoë \"\\\/\b\f\n\r\t""#, "Zoë \"\\/\u{8}\u{c}\n\r\t"),
            (r#""\u0000\ud83e\uddca""#, "\0🧊"),
            (&quoted, &long),
            (
                r#""\ud800""#,
                "json.invalid field `f`: line 1, column 7: expected no invalid escape in the string",
            ),
            (
                r#""\udc00x""#,
                "json.invalid field `f`: line 1, column 7: expected no invalid escape in the string",
            ),
            (
                "7",
                "json.type_mismatch field `f`: the schema wants a string, and it is a number",
            ),
            (
                "{\"a\": }",
                "json.invalid field `f`: line 1, column 13: expected a value",
            ),
        ],
    );
    check(
        r#"{"type": "boolean"}"#,
        &[
            ("true", "true"),
            ("false", "false"),
            (
                "0",
                "json.type_mismatch field `f`: the schema wants a boolean, and it is a number",
            ),
            (
                "tru",
                "json.invalid field `f`: line 1, column 7: expected a value",
            ),
        ],
    );
    check(
        r#"{"enum": ["NEW", "PAID"]}"#,
        &[(r#""NEW""#, "NEW"), (r#""LOST""#, "LOST")],
    );
    check_mapped(
        r#"{"type": "string"}"#,
        &retyped(PrimitiveType::Binary),
        &[(r#""Zoë""#, "x5a6fc3ab")],
    );
    check(
        r#"{"type": "string", "connect.type": "bytes"}"#,
        &[
            (r#""""#, "x"),
            (r#""/wA=""#, "xff00"),
            (r#""\/wA=""#, "xff00"),
            (
                r#""/wA""#,
                "json.invalid_format field `f`: the string of 3 bytes is not base64",
            ),
            (
                r#""-_-_""#,
                "json.invalid_format field `f`: the string of 4 bytes is not base64",
            ),
        ],
    );
    check(
        r#"{"type": "string", "format": "uuid"}"#,
        &[
            // JSON-Schema-Test-Suite, optional/format/uuid.json.
            (
                r#""2EB8AA08-AA98-11EA-B4AA-73B441D16380""#,
                "2eb8aa08-aa98-11ea-b4aa-73b441d16380",
            ),
            (
                r#""2eb8aa08-AA98-11ea-B4Aa-73B441D16380""#,
                "2eb8aa08-aa98-11ea-b4aa-73b441d16380",
            ),
            (
                r#""00000000-0000-0000-0000-000000000000""#,
                "00000000-0000-0000-0000-000000000000",
            ),
            (
                r#""2eb8aa08-aa98-11ea-b4aa-73b441d1638""#,
                "json.invalid_format field `f`: the string of 35 bytes is not a UUID",
            ),
            (
                r#""2eb8aa08-aa98-11ea-73b441d16380""#,
                "json.invalid_format field `f`: the string of 31 bytes is not a UUID",
            ),
            (
                r#""2eb8aa08-aa98-11ea-b4ga-73b441d16380""#,
                "json.invalid_format field `f`: the string of 36 bytes is not a UUID",
            ),
            (
                r#""2eb8aa08aa9811eab4aa73b441d16380""#,
                "json.invalid_format field `f`: the string of 32 bytes is not a UUID",
            ),
            (
                r#""2eb8aa08aa98-11ea-b4aa73b441d16380""#,
                "json.invalid_format field `f`: the string of 34 bytes is not a UUID",
            ),
            (
                r#""2eb8-aa08-aa98-11ea-b4aa73b44-1d16380""#,
                "json.invalid_format field `f`: the string of 37 bytes is not a UUID",
            ),
        ],
    );
}

#[test]
fn dates_and_times() {
    check(
        r#"{"type": "string", "format": "date-time"}"#,
        &[
            (r#""2025-11-30T10:53:20.123456Z""#, "1764500000123456us+00:00"),
            (r#""2025-11-30t10:53:20z""#, "1764500000000000us+00:00"),
            (r#""2025-11-30T10:53:20""#, "1764500000000000us+00:00"),
            (
                r#""2025-11-30T11:53:20.9999999+01:00""#,
                "1764500000999999us+00:00",
            ),
            (r#""1969-12-31T23:59:59.9999999Z""#, "-1us+00:00"),
            (r#""1998-12-31T23:59:60Z""#, "915148800000000us+00:00"),
            (r#""0001-01-01T00:00:00Z""#, "-62135596800000000us+00:00"),
            (r#""9999-12-31T23:59:59.999999Z""#, "253402300799999999us+00:00"),
            (
                r#""0000-12-31T23:59:59Z""#,
                "value.timestamp_out_of_range field `f`: -62135596801000000 microseconds after 1970 is outside the topic's timestamp range",
            ),
            (
                r#""2025-11-30""#,
                "json.invalid_format field `f`: the string of 10 bytes is not an RFC 3339 date and time",
            ),
            (
                "1764500000",
                "json.type_mismatch field `f`: the schema wants a date and time, and it is a number",
            ),
        ],
    );
    check_mapped(
        r#"{"type": "string", "format": "date-time"}"#,
        &retyped(PrimitiveType::Long),
        &[
            (r#""1970-01-01T00:00:00.123456789Z""#, "123456789"),
            (r#""2262-04-11T23:47:16.854775807Z""#, "9223372036854775807"),
            (
                r#""2262-04-11T23:47:16.854775808Z""#,
                "json.number_out_of_range field `f`: 9223372036854775808 is beyond 64 bits of nanoseconds, which end in the years 1677 and 2262",
            ),
        ],
    );
    check(
        r#"{"type": "string", "format": "date"}"#,
        &[
            (r#""2025-11-30""#, "day 20422"),
            (r#""1969-12-31""#, "day -1"),
            (r#""0001-01-01""#, "day -719162"),
            (r#""9999-12-31""#, "day 2932896"),
            (
                r#""0000-12-31""#,
                "value.date_out_of_range field `f`: day -719163 after 1970-01-01 is outside the believed range",
            ),
            (
                r#""2025-02-29""#,
                "json.invalid_format field `f`: the string of 10 bytes is not a date",
            ),
        ],
    );
    check(
        r#"{"type": "string", "format": "time"}"#,
        &[(r#""08:30:06+02:00""#, "08:30:06+02:00"), (r#""noon""#, "noon")],
    );
    let logical =
        |name: &str| format!(r#"{{"type": "integer", "title": "org.apache.kafka.connect.data.{name}"}}"#);
    check(
        &logical("Date"),
        &[("20422", "day 20422"), ("-1", "day -1"), ("1.0", "day 1")],
    );
    check(
        &logical("Time"),
        &[
            ("0", "00:00:00.000000"),
            ("86399999", "23:59:59.999000"),
            (
                "86400000",
                "value.time_out_of_range field `f`: 86400000 ms is not a time of day",
            ),
            (
                "-1",
                "value.time_out_of_range field `f`: -1 ms is not a time of day",
            ),
        ],
    );
    check(
        &logical("Timestamp"),
        &[
            ("1764500000123", "1764500000123000us+00:00"),
            ("-1", "-1000us+00:00"),
            (
                "1764500000123456",
                "value.timestamp_out_of_range field `f`: 1764500000123456 milliseconds after 1970 is outside the topic's timestamp range",
            ),
        ],
    );
    check_mapped(
        &logical("Timestamp"),
        &retyped(PrimitiveType::Long),
        &[("1764500000123", "1764500000123")],
    );
}

#[test]
fn settings_of_a_topic() {
    let mapping = Mapping {
        utc_naive: true,
        native_time: true,
        fields: BTreeMap::from([(
            "secret".to_owned(),
            FieldMapping {
                exclude: true,
                ..FieldMapping::default()
            },
        )]),
        ..Mapping::default()
    };
    let schema = schema(
        r#"{"type": "object", "properties": {"at": {"type": "string", "format": "date-time"}, "secret": {"type": "string"},
            "t": {"type": "string", "format": "time"}, "c": {"type": "integer", "title": "org.apache.kafka.connect.data.Time"}}}"#,
        &mapping,
    );
    let documents: [(&str, &str); 3] = [
        (
            r#"{"at": "1970-01-01T01:00:00+01:00", "secret": {"any": 1}}"#,
            "at=0us",
        ),
        (r#"{"t": "00:30:00.5+01:00", "c": 1}"#, "t=84600500000us c=1000us"),
        (
            r#"{"t": "noon"}"#,
            "json.invalid_format field `t`: the string of 4 bytes is not an RFC 3339 time",
        ),
    ];
    check_documents(
        &schema,
        DecodeOptions {
            unknown_fields: UnknownFields::Fail,
            ..DecodeOptions::default()
        },
        &documents,
    );
}

#[test]
fn nested_values() {
    check(
        r#"{"type": "object", "properties": {"x": {"type": "integer"}, "Y": {"type": "array", "items": {"type": ["string", "null"]}}}}"#,
        &[
            (r#"{"x": 1, "Y": ["a", null]}"#, "{x: 1, y: [a, null]}"),
            (r#"{"Y": []}"#, "{x: null, y: []}"),
            ("{}", "{x: null, y: null}"),
            (r#"{"x": 1, "x": null, "x": 3}"#, "{x: 3, y: null}"),
            (r#"{"Y": ["a", "b"], "Y": ["c"]}"#, "{x: null, y: [c]}"),
            (
                r#"{"Y": ["a", 1]}"#,
                "json.type_mismatch field `f.Y[]`: the schema wants a string, and it is a number",
            ),
            (
                "[]",
                "json.type_mismatch field `f`: the schema wants an object, and it is an array",
            ),
        ],
    );
    check(
        r#"{"type": "object", "additionalProperties": {"type": "integer"}}"#,
        &[
            ("{}", "<>"),
            (r#"{"a": 1, "b": null, "": 2}"#, "<a: 1, b: null, : 2>"),
            // Of equal keys the last value, in the place of the first.
            (r#"{"a": 1, "b": 2, "a": 3, "\u0061": 4}"#, "<a: 4, b: 2>"),
            (
                r#"{"a": 1, "a": "x"}"#,
                "json.type_mismatch field `f[]`: the schema wants an integer, and it is a string",
            ),
            (
                r#"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11,"l":12,"m":13,"a":14}"#,
                "<a: 14, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8, i: 9, j: 10, k: 11, l: 12, m: 13>",
            ),
        ],
    );
    check(
        r#"{"type": "array", "items": {"type": "object", "properties": {"m": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "boolean"}}}}}}"#,
        &[(
            r#"[{"m": {"k": [true, null]}}, null, {}]"#,
            "[{m: <k: [true, null]>}, null, {m: null}]",
        )],
    );
    check(
        r#"{"type": "object", "properties": {"n": {"type": "null"}}}"#,
        &[("{}", "true"), (r#"{"n": null}"#, "true")],
    );
}

#[test]
fn text_is_kept_byte_for_byte() {
    check(
        "{}",
        &[
            (
                r#"{"b":  1.50, "a" : [ "é\u00e9" ]}"#,
                r#"{"b":  1.50, "a" : [ "é\u00e9" ]}"#,
            ),
            (r#""quoted""#, r#""quoted""#),
            ("1.500", "1.500"),
            ("1e999", "1e999"),
            ("true", "true"),
            ("[1, 2 ]", "[1, 2 ]"),
            (r#"{"a": 1, "a": 2}"#, r#"{"a": 1, "a": 2}"#),
            (
                r#"{"a": 01}"#,
                "json.invalid field `f`: line 1, column 14: expected `,` or `}`",
            ),
        ],
    );
    check(
        r#"{"type": ["integer", "string"]}"#,
        &[("7", "7"), (r#""7""#, r#""7""#)],
    );
    check_mapped("{}", &retyped(PrimitiveType::Binary), &[("[ ]", "x5b205d")]);
}

#[test]
fn whole_documents() {
    let options = DecodeOptions::default();
    let fields = schema(
        r#"{"type": "object", "properties": {"a": {"type": "integer"}}}"#,
        &Mapping::default(),
    );
    let deep = |levels: usize| format!(r#"{{"x": {}{}}}"#, "[".repeat(levels), "]".repeat(levels));
    let (deepest, deeper, far) = (deep(127), deep(128), deep(1_000));
    check_documents(
        &fields,
        options,
        &[
            (" \t\r\n{\"a\": 1}\n", "a=1"),
            ("null", ""),
            (r#"{"\u0061": 1}"#, "a=1"),
            (&deepest, ""),
            (
                &deeper,
                "json.too_deep the JSON is nested more than 128 levels deep",
            ),
            (&far, "json.too_deep the JSON is nested more than 128 levels deep"),
            ("", "json.invalid line 1, column 1: expected a value"),
            ("nul", "json.invalid line 1, column 1: expected a value"),
            ("\u{feff}{}", "json.invalid line 1, column 1: expected a value"),
            (
                "{} {}",
                "json.invalid line 1, column 4: expected the end of the text",
            ),
            (r#"{"a": 1,}"#, "json.invalid line 1, column 9: expected a key"),
            (r#"{"a": 1"#, "json.invalid line 1, column 8: expected `,` or `}`"),
            ("[1]", "json.not_an_object the JSON value is not an object"),
            ("7", "json.not_an_object the JSON value is not an object"),
            (
                r#"{"a": 1, "b": "\x"}"#,
                "json.invalid line 1, column 15: expected no invalid escape in the string",
            ),
        ],
    );
    let records = records([Payload::Encoded {
        schema: &fields,
        body: b"{\"a\": 1, \"b\": \"\xff\"}",
    }]);
    let prepared = prepare(&records, options).unwrap();
    assert_eq!(
        poison(&prepared)[0].1,
        "json.invalid the JSON is not UTF-8: invalid utf-8 sequence of 1 bytes from index 15"
    );
    // One column.
    let one = schema(
        r#"{"type": "array", "items": {"type": "integer"}}"#,
        &Mapping::default(),
    );
    check_documents(
        &one,
        options,
        &[
            ("[1, 2]", "value=[1, 2]"),
            ("null", ""),
            (
                "{}",
                "json.type_mismatch field `value`: the schema wants an array, and it is an object",
            ),
        ],
    );
    let nothing = schema(r#"{"type": "null"}"#, &Mapping::default());
    check_documents(
        &nothing,
        options,
        &[
            ("null", ""),
            ("{\"a\"}", "json.invalid line 1, column 5: expected `:`"),
        ],
    );
}

#[test]
fn unknown_fields_are_counted_kept_or_refused() {
    let schema = schema(
        r#"{"type": "object", "properties": {"a": {"type": "integer"}, "n": {"type": "null"}, "o": {"type": "object", "properties": {"x": {"type": "integer"}}}}}"#,
        &Mapping::default(),
    );
    let documents: [&[u8]; 7] = [
        br#"{"a": 1}"#,
        br#"{"a": 2, "b" : [1,  2], "o": {"x": 1, "y": {"z": 1}, "w": 2}}"#,
        br#"{"n": 7, "c\n": null}"#,
        br#"{"b": 1, "a": "poison"}"#,
        br#"{"n": null, "o": null}"#,
        br#"{"o": {"x": 1, "y": "\ud83e\uddca"}}"#,
        br#"{"a": 3}"#,
    ];
    let check = |unknown_fields, count: u64, codes: &[(usize, &str)], expected: &[&str]| {
        let records = records(documents.map(|body| Payload::Encoded {
            schema: &schema,
            body,
        }));
        let options = DecodeOptions {
            unknown_fields,
            ..DecodeOptions::default()
        };
        let prepared = prepare(&records, options).unwrap();
        let found = poison(&prepared);
        let found: Vec<(usize, &str)> = found
            .iter()
            .map(|(index, text)| (*index, text.as_str()))
            .collect();
        assert_eq!(found, codes);
        assert_eq!(prepared.unknown_fields(), count);
        assert_eq!(values(&Table::default().take(&prepared).unwrap()), expected);
    };
    let mismatch = (
        3,
        "json.type_mismatch field `a`: the schema wants an integer, and it is a string",
    );
    check(
        UnknownFields::Count,
        6,
        &[mismatch],
        &["a=1", "a=2 o={x: 1}", "", "", "o={x: 1}", "a=3"],
    );
    check(
        UnknownFields::Collect,
        6,
        &[mismatch],
        &[
            "a=1",
            r#"a=2 o={x: 1} _kafka_unknown_fields={"b" : [1,  2],"o": {"x": 1, "y": {"z": 1}, "w": 2}}"#,
            r#"_kafka_unknown_fields={"n": 7,"c\n": null}"#,
            "",
            r#"o={x: 1} _kafka_unknown_fields={"o": {"x": 1, "y": "\ud83e\uddca"}}"#,
            "a=3",
        ],
    );
    check(
        UnknownFields::Fail,
        0,
        &[
            (
                1,
                "json.unknown_field field `b`: the schema has no field of this name",
            ),
            (
                2,
                "json.unknown_field field `n`: the schema has no field of this name",
            ),
            (
                3,
                "json.unknown_field field `b`: the schema has no field of this name",
            ),
            (
                5,
                "json.unknown_field field `o.y`: the schema has no field of this name",
            ),
        ],
        &["a=1", "", "a=3"],
    );
}

/// A table has the column for unknown fields once a record needs it, and keeps it.
#[test]
fn the_column_for_unknown_fields_comes_when_it_is_needed() {
    let schema = schema(
        r#"{"type": "object", "properties": {"a": {"type": "integer"}}}"#,
        &Mapping::default(),
    );
    let options = DecodeOptions {
        unknown_fields: UnknownFields::Collect,
        ..DecodeOptions::default()
    };
    let mut table = Table::default();
    for (documents, expected, columns) in [
        ([&br#"{"a": 1}"#[..], b"{}"], ["a=1", ""], 8),
        (
            [br#"{"a": 2}"#, br#"{"b": 1}"#],
            ["a=2", r#"_kafka_unknown_fields={"b": 1}"#],
            9,
        ),
        ([br#"{"a": 3}"#, b"{}"], ["a=3", ""], 9),
    ] {
        let records = records(documents.map(|body| Payload::Encoded {
            schema: &schema,
            body,
        }));
        let batch = table.take(&prepare(&records, options).unwrap()).unwrap();
        assert_eq!(
            (values(&batch), batch.num_columns()),
            (expected.map(str::to_owned).to_vec(), columns)
        );
    }
}

/// Old and new schemas, and tombstones, in one event.
#[test]
fn writers_interleave() {
    let old = schema(
        r#"{"type": "object", "properties": {"id": {"type": "integer", "connect.type": "int32"}, "s": {"type": "object", "properties": {"a": {"type": "string"}}}}}"#,
        &Mapping::default(),
    );
    let new = schema(
        r#"{"type": "object", "properties": {"s": {"type": "object", "properties": {"b": {"type": "number"}, "a": {"type": "string"}}}, "id": {"type": "integer"}}}"#,
        &Mapping::default(),
    );
    let of = |schema, body| Payload::Encoded { schema, body };
    let records = records([
        of(&old, br#"{"id": 1, "s": {"a": "x"}}"#),
        of(&new, br#"{"id": 9223372036854775807, "s": {"b": 0.5}}"#),
        Payload::Tombstone,
        of(&old, br#"{"id": 2}"#),
    ]);
    assert_eq!(
        Table::default().values(&records),
        [
            "id=1 s={a: x, b: null}",
            "id=9223372036854775807 s={a: null, b: 0.5}",
            "",
            "id=2"
        ]
    );
}

/// What settings exclude or hash is not in the text of unknown fields either.
#[test]
fn concealed_fields_are_in_no_text() {
    let setting = |exclude, hash| FieldMapping {
        exclude,
        hash,
        ..FieldMapping::default()
    };
    let mapping = Mapping {
        fields: BTreeMap::from([
            ("c.email".to_owned(), setting(true, None)),
            ("c.name".to_owned(), setting(false, Some(HashMethod::Sha256))),
            ("l.card".to_owned(), setting(true, None)),
            ("m.card".to_owned(), setting(true, None)),
            ("gone".to_owned(), setting(true, None)),
        ]),
        ..Mapping::default()
    };
    let secret =
        r#"{"type": "object", "properties": {"card": {"type": "string"}, "ok": {"type": "integer"}}}"#;
    let schema = schema(
        &format!(
            r#"{{"type": "object", "properties": {{"gone": {{}}, "c": {{"type": "object", "properties": {{"email": {{"type": "string"}}, "name": {{"type": "string"}}}}}},
                "l": {{"type": "array", "items": {secret}}}, "m": {{"type": "object", "additionalProperties": {secret}}}}}}}"#
        ),
        &mapping,
    );
    let options = DecodeOptions {
        unknown_fields: UnknownFields::Collect,
        hash_key: Some(HashKey::new(b"0123456789abcdef").unwrap()),
        ..DecodeOptions::default()
    };
    check_documents(
        &schema,
        options,
        &[
            (
                r#"{ "c" : {"email": "a@example.com", "name": "a@example.com", "x" : 1, "y": [2]}, "gone": 1 }"#,
                r#"c={name: 87c8707b0c61806881347867c370e9f6bba71e47fb7aa89200288026b10d38de} _kafka_unknown_fields={"c" :{"x" :1,"y":[2]}}"#,
            ),
            (
                r#"{"l": [{"card": "4111", "ok": 1}, {"card": "4111", "z": {"card": 1}}, null], "c": {"email": "x"}}"#,
                r#"c={name: null} l=[{ok: 1}, {ok: null}, null] _kafka_unknown_fields={"l":[{"ok":1},{"z":{"card": 1}},null]}"#,
            ),
            (
                r#"{"m": {"k": {"card": "4111"}, "j": {"u": 1}}, "u": []}"#,
                r#"m=<k: {ok: null}, j: {ok: null}> _kafka_unknown_fields={"m":{"k":{},"j":{"u":1}},"u": []}"#,
            ),
        ],
    );
}

/// Nobody could find in a text what the schema does not have: it is counted, and kept nowhere.
#[test]
fn what_settings_conceal_and_no_schema_has_is_not_collected() {
    let hashed = FieldMapping {
        hash: Some(HashMethod::Sha256),
        ..FieldMapping::default()
    };
    let excluded = FieldMapping {
        exclude: true,
        ..FieldMapping::default()
    };
    let fields = [("secret", excluded.clone()), ("hsh", hashed), ("c.ssn", excluded)];
    let mapping = Mapping {
        fields: fields.map(|(path, field)| (path.to_owned(), field)).into(),
        ..Mapping::default()
    };
    let schema = schema(
        r#"{"type": "object", "properties": {"c": {"type": "object", "properties": {"name": {"type": "string"}}}}}"#,
        &mapping,
    );
    let options = DecodeOptions {
        unknown_fields: UnknownFields::Collect,
        hash_key: Some(HashKey::new(b"0123456789abcdef").unwrap()),
        mapping: &mapping,
        ..DecodeOptions::default()
    };
    check_documents(
        &schema,
        options,
        &[(
            r#"{"secret": "top", "hsh": "plain", "c": {"name": "n", "ssn": "1", "x": 2}, "secrets": 1, "ok": [2]}"#,
            r#"c={name: n} _kafka_unknown_fields={"secrets": 1,"ok": [2]}"#,
        )],
    );
}
