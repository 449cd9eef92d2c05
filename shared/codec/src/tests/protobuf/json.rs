//! The text of what has no columns of its own, against prost-reflect's JSON.

use prost_reflect::SerializeOptions;

use super::*;

/// Expects field `f` of the message `M`, given as JSON, as this text.
fn check_text(body: &str, json: &str, expected: &str) {
    check(
        &proto3(body),
        &format!("{{\"f\": {json}}}"),
        &format!("f={expected}"),
    );
}

#[test]
fn recursive_messages_are_their_json() {
    let body =
        "message M { N f = 1; } message N { int32 i = 1; N n = 2; repeated N all = 3; int64 big = 4; }";
    check(
        &proto3(body),
        r#"{"f": {"i": 1, "n": {"i": 2, "n": {}, "big": "-5"}, "all": [{}, {"i": 3}]}}"#,
        r#"f={i: 1, n: {"i":2,"n":{},"big":"-5"}, all: [{}, {"i":3}], big: 0}"#,
    );
    // In parts, which are merged; a field with another wire type is unknown.
    let seven = [number(1, 7), bytes(1, b"x")].concat();
    check_bytes(
        &proto3("message M { N f = 1; } message N { int32 i = 1; M m = 2; N n = 3; }"),
        &[
            bytes(1, &bytes(3, &number(1, 1))),
            bytes(1, &bytes(3, &bytes(2, &bytes(1, &seven)))),
        ]
        .concat(),
        r#"f={i: 0, m: null, n: {"i":1,"m":{"f":{"i":7}}}}"#,
    );
}

#[test]
fn json_by_nature_is_json() {
    let import = |file: &str, name: &str| {
        format!("import \"google/protobuf/{file}.proto\"; message M {{ google.protobuf.{name} f = 1; }}")
    };
    let cases = [
        ("struct", "Struct", r#"{"a": null}"#, r#"{"a":null}"#),
        ("struct", "Struct", "{}", "{}"),
        (
            "struct",
            "Value",
            r#"{"x": [1, "two", true, {}, [], 1e300, -0.5]}"#,
            r#"{"x":[1.0,"two",true,{},[],1e+300,-0.5]}"#,
        ),
        ("struct", "Value", "\"a \\\" \\u0000 ü\"", "\"a \\\" \\u0000 ü\""),
        ("struct", "Value", "false", "false"),
        ("struct", "ListValue", "[null, 0]", "[null,0.0]"),
        ("struct", "ListValue", "[]", "[]"),
        (
            "field_mask",
            "FieldMask",
            "\"user.displayName,photo\"",
            "\"user.displayName,photo\"",
        ),
        ("field_mask", "FieldMask", "\"\"", "\"\""),
    ];
    for (file, name, json, expected) in cases {
        check_text(&import(file, name), json, expected);
    }
    check_bytes(&proto3(&import("any", "Any")), &bytes(1, &[]), "f={}");
    // Values that no JSON has.
    let value = import("struct", "Value");
    check_bytes(&proto3(&value), &bytes(1, &[]), "f=null");
    let nan = [tag(2, 1), f64::NAN.to_le_bytes().to_vec()].concat();
    check_bytes(&proto3(&value), &bytes(1, &nan), "f=\"NaN\"");
}

#[test]
fn any_shows_what_it_holds() {
    let body = "import \"google/protobuf/any.proto\"; import \"google/protobuf/duration.proto\";
        message M { google.protobuf.Any f = 1; } message N { string s = 1; repeated M m = 2; }";
    check_text(
        body,
        r#"{"@type": "type.googleapis.com/N", "s": "x", "m": [{}]}"#,
        r#"{"@type":"type.googleapis.com/N","s":"x","m":[{}]}"#,
    );
    check_text(
        body,
        r#"{"@type": "type.googleapis.com/N"}"#,
        r#"{"@type":"type.googleapis.com/N"}"#,
    );
    check_text(
        body,
        r#"{"@type": "type.googleapis.com/google.protobuf.Duration", "value": "-1.5s"}"#,
        r#"{"@type":"type.googleapis.com/google.protobuf.Duration","value":"-1.500s"}"#,
    );
    let unknown = [bytes(1, b"acme.com/Unknown"), bytes(2, &[1, 2, 255])].concat();
    check_bytes(
        &proto3(body),
        &bytes(1, &unknown),
        r#"f={"@type":"acme.com/Unknown","value":"AQL/"}"#,
    );
    let nested = bytes(1, &[bytes(1, b"x/N"), bytes(2, &[0x0a])].concat());
    check_bytes(
        &proto3(body),
        &nested,
        "protobuf.truncated field `f`: the value needs 1 more bytes where 0 are left",
    );
}

/// The message `M` must be the same JSON in its own field `f` as in prost-reflect.
fn check_same(fields: &str, json: &str) {
    let imports = [
        "timestamp",
        "duration",
        "wrappers",
        "struct",
        "any",
        "field_mask",
        "empty",
    ]
    .map(|file| format!("import \"google/protobuf/{file}.proto\";"))
    .concat();
    let text = format!("syntax = \"proto3\"; {imports} message M {{ M f = 1; {fields} }}");
    let message = pool(&text).get_message_by_name("M").unwrap();
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let inner = DynamicMessage::deserialize(message, &mut deserializer).unwrap();
    let mut theirs = serde_json::Serializer::new(Vec::new());
    inner
        .serialize_with_options(&mut theirs, &SerializeOptions::new())
        .unwrap();
    let theirs: serde_json::Value = serde_json::from_slice(&theirs.into_inner()).unwrap();
    let schema = compile(&text, &Mapping::default());
    let body = bytes(1, &inner.encode_to_vec());
    let records = records([Payload::Encoded {
        schema: &schema,
        body: &body,
    }]);
    let batch = Table::default()
        .take(&prepare(&records, DecodeOptions::default()).unwrap())
        .unwrap();
    let ours = super::super::show(batch.column(0).as_ref(), 0);
    let ours: serde_json::Value =
        serde_json::from_str(&ours).unwrap_or_else(|error| panic!("{ours}: {error}"));
    assert_eq!(ours, theirs);
}

#[test]
fn all_types_have_the_json_of_the_other_implementation() {
    check_same("", "{}");
    for (kind, json) in [
        ("double", "1.5"),
        ("double", "\"NaN\""),
        ("double", "-0.0"),
        ("float", "0.1"),
        ("float", "\"-Infinity\""),
        ("bool", "true"),
        ("string", "\"ü\\\"\\n\""),
        ("bytes", "\"AP8=\""),
        ("int32", "-1"),
        ("sint32", "-2147483648"),
        ("sfixed32", "5"),
        ("uint32", "4294967295"),
        ("fixed32", "1"),
        ("int64", "\"-9223372036854775808\""),
        ("sint64", "\"-1\""),
        ("sfixed64", "\"1\""),
        ("uint64", "\"18446744073709551615\""),
        ("fixed64", "\"7\""),
        ("E", "\"B\""),
        ("E", "9"),
        ("N", r#"{"x": 1}"#),
        ("google.protobuf.Timestamp", "\"2025-11-30T12:00:00.120Z\""),
        ("google.protobuf.Timestamp", "\"1969-12-31T23:59:59.999999999Z\""),
        ("google.protobuf.Timestamp", "\"0001-01-01T00:00:00Z\""),
        ("google.protobuf.Duration", "\"-0.000001s\""),
        ("google.protobuf.Duration", "\"3s\""),
        ("google.protobuf.Int64Value", "\"0\""),
        ("google.protobuf.StringValue", "\"\""),
        ("google.protobuf.BoolValue", "false"),
        ("google.protobuf.Struct", r#"{"a": [1, null]}"#),
        ("google.protobuf.Empty", "{}"),
        ("google.protobuf.FieldMask", "\"aB\""),
        ("google.protobuf.Any", r#"{"@type": "x/M.N", "x": 3}"#),
        ("google.protobuf.NullValue", "null"),
    ] {
        let types = "enum E { A = 0; B = 1; } message N { int32 x = 1; }";
        check_same(
            &format!("{types} {kind} some_field = 2;"),
            &format!("{{\"someField\": {json}}}"),
        );
        check_same(
            &format!("{types} repeated {kind} some_field = 2;"),
            &format!("{{\"someField\": [{json}, {json}]}}"),
        );
        check_same(
            &format!("{types} map<int64, {kind}> m = 2;"),
            &format!("{{\"m\": {{\"-5\": {json}}}}}"),
        );
        check_same(
            &format!("{types} oneof o {{ {kind} c = 2; bool d = 3; }}"),
            &format!("{{\"c\": {json}}}"),
        );
        if !kind.contains('.') && kind != "N" {
            check_same(
                &format!("{types} optional {kind} c = 2;"),
                &format!("{{\"c\": {json}}}"),
            );
        }
    }
    for (kind, key) in [
        ("bool", "true"),
        ("string", "a\\\"b"),
        ("uint32", "7"),
        ("fixed64", "18446744073709551615"),
    ] {
        check_same(
            &format!("map<{kind}, string> m = 2;"),
            &format!("{{\"m\": {{\"{key}\": \"v\"}}}}"),
        );
    }
}
