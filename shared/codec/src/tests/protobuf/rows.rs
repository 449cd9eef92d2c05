//! Every row of the table in docs/types.md, with extreme values.

use frazil_schema::{FieldMapping, Mapping};
use iceberg::spec::PrimitiveType;

use super::*;

#[test]
fn scalars_arrive() {
    let cases = [
        ("double", "-0.1", "f=-0.1"),
        ("double", "\"NaN\"", "f=NaN"),
        ("double", "\"-Infinity\"", "f=-inf"),
        ("double", "1.7976931348623157e308", "f=1.7976931348623157e308"),
        ("float", "1.5", "f=1.5f"),
        ("float", "\"Infinity\"", "f=inff"),
        ("bool", "true", "f=true"),
        ("string", "\"Grüße 🧊\"", "f=Grüße 🧊"),
        ("bytes", "\"AP8=\"", "f=x00ff"),
        ("int32", "-2147483648", "f=-2147483648"),
        ("int32", "2147483647", "f=2147483647"),
        ("sint32", "-2147483648", "f=-2147483648"),
        ("sfixed32", "-2147483648", "f=-2147483648"),
        ("uint32", "4294967295", "f=4294967295"),
        ("fixed32", "4294967295", "f=4294967295"),
        ("int64", "\"-9223372036854775808\"", "f=-9223372036854775808"),
        ("int64", "\"9223372036854775807\"", "f=9223372036854775807"),
        ("sint64", "\"-9223372036854775808\"", "f=-9223372036854775808"),
        ("sfixed64", "\"-9223372036854775808\"", "f=-9223372036854775808"),
        ("uint64", "\"18446744073709551615\"", "f=18446744073709551615"),
        ("fixed64", "\"18446744073709551615\"", "f=18446744073709551615"),
    ];
    for (kind, json, expected) in cases {
        let text = proto3(&format!("message M {{ {kind} f = 1; }}"));
        check(&text, &format!("{{\"f\": {json}}}"), expected);
        // The same behind presence, in a list, in a list of one by one, in a map, in a oneof, and in a wrapper.
        let value = expected.strip_prefix("f=").unwrap();
        let text = proto3(&format!("message M {{ optional {kind} f = 77; }}"));
        check(&text, &format!("{{\"f\": {json}}}"), expected);
        for options in ["", " [packed = false]"] {
            let options = if matches!(kind, "string" | "bytes") {
                ""
            } else {
                options
            };
            let text = proto3(&format!("message M {{ repeated {kind} f = 1{options}; }}"));
            check(
                &text,
                &format!("{{\"f\": [{json}, {json}]}}"),
                &format!("f=[{value}, {value}]"),
            );
        }
        let text = proto3(&format!("message M {{ map<int32, {kind}> f = 1; }}"));
        check(
            &text,
            &format!("{{\"f\": {{\"-1\": {json}}}}}"),
            &format!("f=<-1: {value}>"),
        );
        let text = proto3(&format!(
            "message M {{ oneof o {{ {kind} f = 300; bool other = 2; }} }}"
        ));
        check(&text, &format!("{{\"f\": {json}}}"), expected);
    }
}

#[test]
fn negative_zero_arrives() {
    // prost takes it for the default, and does not write it.
    let text = proto3("message M { double d = 1; float f = 2; }");
    let body = [
        tag(1, 1),
        (-0.0f64).to_le_bytes().to_vec(),
        tag(2, 5),
        (-0.0f32).to_le_bytes().to_vec(),
    ];
    check_bytes(&text, &body.concat(), "d=-0.0 f=-0.0f");
}

#[test]
fn keys_of_maps_arrive() {
    let cases = [
        ("string", "", ""),
        ("string", "ä", "ä"),
        ("bool", "true", "true"),
        ("int32", "-2147483648", "-2147483648"),
        ("sint32", "-1", "-1"),
        ("sfixed32", "-1", "-1"),
        ("uint32", "4294967295", "4294967295"),
        ("fixed32", "4294967295", "4294967295"),
        ("int64", "-9223372036854775808", "-9223372036854775808"),
        ("sint64", "-1", "-1"),
        ("sfixed64", "-1", "-1"),
        ("uint64", "18446744073709551615", "18446744073709551615"),
        ("fixed64", "18446744073709551615", "18446744073709551615"),
    ];
    for (kind, key, expected) in cases {
        let text = proto3(&format!("message M {{ map<{kind}, string> f = 1; }}"));
        check(
            &text,
            &format!("{{\"f\": {{\"{key}\": \"v\"}}}}"),
            &format!("f=<{expected}: v>"),
        );
    }
}

#[test]
fn absent_means_default_or_null() {
    let body = "enum E { ZERO = 0; ONE = 1; } message N { int32 i = 1; string s = 2; } message Nothing {}
        message M {{ double a = 1; float b = 2; int32 c = 3; uint64 d = 4; bool e = 5; string f = 6; bytes g = 7; E h = 8;
          optional int32 i = 9; N j = 10; repeated int32 k = 11; map<string, int32> l = 12; oneof o {{ int32 m = 13; }}
          Nothing n = 14; }}";
    let text = proto3(&body.replace("{{", "{").replace("}}", "}"));
    check(
        &text,
        "{}",
        "a=0.0 b=0.0f c=0 d=0 e=false f= g=x h=ZERO k=[] l=<>",
    );
    check(
        &text,
        r#"{"i": 0, "j": {}, "m": 0, "n": {}}"#,
        "a=0.0 b=0.0f c=0 d=0 e=false f= g=x h=ZERO i=0 j={i: 0, s: } k=[] l=<> m=0 n=true",
    );
    // proto2 tells them apart everywhere; a default in the file is no value.
    let text = "enum E { ONE = 1; } message M { optional int32 a = 1 [default = 7]; required string b = 2;
        optional E c = 3; repeated int32 d = 4 [packed = true]; }";
    check_bytes(text, &[], "d=[]");
    check(
        text,
        r#"{"a": 0, "b": "", "c": "ONE", "d": [1, -1]}"#,
        "a=0 b= c=ONE d=[1, -1]",
    );
}

#[test]
fn enums_are_their_names() {
    let text = proto3(
        "enum E { option allow_alias = true; A = 0; B = 1; C = 7; D = 7; MINUS = -5; } message M { E f = 1; repeated E r = 2; map<string, E> m = 3; }",
    );
    for (json, expected) in [
        (r#"{"f": "B"}"#, "f=B r=[] m=<>"),
        (r#"{"f": "D"}"#, "f=C r=[] m=<>"),
        (r#"{"f": -5}"#, "f=MINUS r=[] m=<>"),
        (r#"{"f": 9}"#, "f=9 r=[] m=<>"),
        (
            r#"{"f": -2147483648, "r": ["A", 99, "C"], "m": {"k": -5}}"#,
            "f=-2147483648 r=[A, 99, C] m=<k: MINUS>",
        ),
    ] {
        check(&text, json, expected);
    }
    // A closed enum is no different: the number is kept.
    check_bytes(
        "enum E { A = 1; } message M { optional E f = 1; }",
        &number(1, 3),
        "f=3",
    );
}

#[test]
fn messages_groups_and_oneofs_arrive() {
    let text = proto3(
        "message M { N n = 1; repeated N all = 2; map<string, N> by = 3; oneof pay { string card = 4; N cash = 5; } }
         message N { int64 i = 1; repeated string s = 2; }",
    );
    check(
        &text,
        r#"{"n": {"i": "1", "s": ["a", ""]}, "all": [{}, {"i": "-1"}], "by": {"x": {"i": "5"}}, "cash": {"i": "9"}}"#,
        "n={i: 1, s: [a, ]} all=[{i: 0, s: []}, {i: -1, s: []}] by=<x: {i: 5, s: []}> cash={i: 9, s: []}",
    );
    let groups = "message M { optional group One = 1 { optional int32 a = 1; optional group Two = 2 { optional string b = 1; } }
        repeated group Many = 3 { optional int32 c = 1; } oneof o { group Pick = 5 { optional bool d = 1; } int32 i = 6; } }";
    check(
        groups,
        r#"{"one": {"a": 1, "two": {"b": "x"}}, "many": [{"c": 1}, {}], "pick": {"d": true}}"#,
        "one={a: 1, two: {b: x}} many=[{c: 1}, {c: null}] pick={d: true}",
    );
    let case = Mapping {
        oneof_case: true,
        ..Mapping::default()
    };
    for (json, expected) in [
        (r#"{"card": ""}"#, "all=[] by=<> card= pay_case=card"),
        (r#"{"cash": {}}"#, "all=[] by=<> cash={i: 0, s: []} pay_case=cash"),
        ("{}", "all=[] by=<>"),
    ] {
        check_mapped(&text, &case, &encode(&text, json), expected);
    }
}

#[test]
fn editions_arrive() {
    let text = "edition = \"2023\"; message M { int32 a = 1 [features.field_presence = IMPLICIT]; int32 b = 2 [default = 5];
        N c = 3 [features.message_encoding = DELIMITED]; N d = 4; repeated int32 e = 5; } message N { string s = 1; }";
    check_bytes(text, &[], "a=0 e=[]");
    // The same message in proto2 has a group where the edition has a delimited message.
    let same = "message M { optional int32 a = 1; optional int32 b = 2; optional group C = 3 { optional string s = 1; }
        optional N d = 4; repeated int32 e = 5 [packed = true]; } message N { optional string s = 1; }";
    let body = encode(same, r#"{"a": 1, "b": 0, "c": {"s": "x"}, "d": {}, "e": [1, 2]}"#);
    check_bytes(text, &body, "a=1 b=0 c={s: x} d={s: null} e=[1, 2]");
}

#[test]
fn well_known_messages_arrive() {
    let cases = [
        (
            "Timestamp",
            "\"2025-11-30T12:00:00.123456789Z\"",
            "f=1764504000123456us+00:00",
        ),
        ("Timestamp", "\"1969-12-31T23:59:59.999999999Z\"", "f=-1us+00:00"),
        (
            "Timestamp",
            "\"0001-01-01T00:00:00Z\"",
            "f=-62135596800000000us+00:00",
        ),
        (
            "Timestamp",
            "\"9999-12-31T23:59:59.999999999Z\"",
            "f=253402300799999999us+00:00",
        ),
        ("Duration", "\"1.5s\"", "f=1500000"),
        ("Duration", "\"-0.000000001s\"", "f=-1"),
        ("Duration", "\"-315576000000s\"", "f=-315576000000000000"),
        ("DoubleValue", "0", "f=0.0"),
        ("FloatValue", "1.5", "f=1.5f"),
        ("Int64Value", "\"-9223372036854775808\"", "f=-9223372036854775808"),
        (
            "UInt64Value",
            "\"18446744073709551615\"",
            "f=18446744073709551615",
        ),
        ("Int32Value", "0", "f=0"),
        ("UInt32Value", "4294967295", "f=4294967295"),
        ("BoolValue", "false", "f=false"),
        ("StringValue", "\"\"", "f="),
        ("BytesValue", "\"AQI=\"", "f=x0102"),
        ("Empty", "{}", "f=true"),
    ];
    let imports = ["timestamp", "duration", "wrappers", "empty"]
        .map(|file| format!("import \"google/protobuf/{file}.proto\";"))
        .concat();
    for (name, json, expected) in cases {
        let text = proto3(&format!(
            "{imports} message M {{ google.protobuf.{name} f = 1; }}"
        ));
        check(&text, &format!("{{\"f\": {json}}}"), expected);
        check(&text, "{}", "");
        let value = expected.strip_prefix("f=").unwrap();
        let text = proto3(&format!(
            "{imports} message M {{ repeated google.protobuf.{name} f = 1; }}"
        ));
        check(&text, &format!("{{\"f\": [{json}]}}"), &format!("f=[{value}]"));
        let text = proto3(&format!(
            "{imports} message M {{ map<string, google.protobuf.{name}> f = 1; }}"
        ));
        check(
            &text,
            &format!("{{\"f\": {{\"k\": {json}}}}}"),
            &format!("f=<k: {value}>"),
        );
    }
    let text =
        proto3("import \"google/protobuf/timestamp.proto\"; message M { google.protobuf.Timestamp f = 1; }");
    let seconds = |seconds: u64| bytes(1, &number(1, seconds));
    check_bytes(
        &text,
        &seconds(1_764_500_000_000),
        "value.timestamp_out_of_range field `f`: 1764500000000 seconds after 1970 is outside the topic's timestamp range",
    );
    check_bytes(
        &text,
        &seconds(u64::MAX >> 1),
        "value.timestamp_out_of_range field `f`: 9223372036854775807 seconds after 1970 is outside the topic's timestamp range",
    );
}

#[test]
fn instants_in_the_wrong_unit_get_a_hint() {
    let text =
        proto3("import \"google/protobuf/timestamp.proto\"; message M { google.protobuf.Timestamp f = 1; }");
    let schema = compile(&text, &Mapping::default());
    for (seconds, expected) in [
        (1_764_500_000_000, "it looks like milliseconds in a second field"),
        (
            1_764_500_000_000_000,
            "it looks like microseconds in a second field",
        ),
        (
            1_764_500_000_000_000_000,
            "it looks like nanoseconds in a second field",
        ),
        (
            300_000_000_000,
            "correct the producer's clock, or widen `timestamp_range`",
        ),
    ] {
        let body = bytes(1, &number(1, seconds));
        let records = records([Payload::Encoded {
            schema: &schema,
            body: &body,
        }]);
        let prepared = prepare(&records, DecodeOptions::default()).unwrap();
        assert_eq!(prepared.poison()[0].error.hint(), Some(expected));
    }
}

#[test]
fn types_of_google_and_confluent_arrive() {
    let date = proto3("import \"google/type/date.proto\"; message M { google.type.Date f = 1; }");
    for (year, month, day, expected) in [
        (1970, 1, 1, "f=day 0"),
        (1, 1, 1, "f=day -719162"),
        (9999, 12, 31, "f=day 2932896"),
        (2000, 2, 29, "f=day 11016"),
        (1900, 2, 28, "f=day -25509"),
        (0, 0, 0, ""),
        (
            2025,
            2,
            29,
            "value.date_out_of_range field `f`: year 2025, month 2, day 29 is not a date",
        ),
        (
            2025,
            11,
            0,
            "value.date_out_of_range field `f`: year 2025, month 11, day 0 is not a date",
        ),
        (
            0,
            11,
            3,
            "value.date_out_of_range field `f`: year 0, month 11, day 3 is not a date",
        ),
        (
            2025,
            13,
            1,
            "value.date_out_of_range field `f`: year 2025, month 13, day 1 is not a date",
        ),
        (
            10000,
            1,
            1,
            "value.date_out_of_range field `f`: year 10000, month 1, day 1 is not a date",
        ),
    ] {
        check(
            &date,
            &format!("{{\"f\": {{\"year\": {year}, \"month\": {month}, \"day\": {day}}}}}"),
            expected,
        );
    }
    let time = proto3("import \"google/type/timeofday.proto\"; message M { google.type.TimeOfDay f = 1; }");
    let native = Mapping {
        native_time: true,
        ..Mapping::default()
    };
    for (json, expected, micros) in [
        (
            r#"{"hours": 23, "minutes": 59, "seconds": 59, "nanos": 999999999}"#,
            "f=23:59:59.999999",
            Some(86_399_999_999i64),
        ),
        ("{}", "f=00:00:00.000000", Some(0)),
        (
            r#"{"hours": 24}"#,
            "value.time_out_of_range field `f`: 24:0:0 and 0 ns is not a time of day",
            None,
        ),
        (
            r#"{"seconds": -1}"#,
            "value.time_out_of_range field `f`: 0:0:-1 and 0 ns is not a time of day",
            None,
        ),
    ] {
        let json = format!("{{\"f\": {json}}}");
        check(&time, &json, expected);
        if let Some(micros) = micros {
            let schema = compile(&time, &native);
            let body = encode(&time, &json);
            let records = records([Payload::Encoded {
                schema: &schema,
                body: &body,
            }]);
            let batch = Table::default()
                .take(&prepare(&records, DecodeOptions::default()).unwrap())
                .unwrap();
            let array = arrow_array::cast::as_primitive_array::<arrow_array::types::Time64MicrosecondType>(
                batch.column(0),
            );
            assert_eq!(array.value(0), micros);
        }
    }

    let text_decimal =
        proto3("import \"google/type/decimal.proto\"; message M { google.type.Decimal f = 1; }");
    let as_decimal = Mapping {
        fields: [(
            "f".to_owned(),
            FieldMapping {
                data_type: Some(PrimitiveType::Decimal {
                    precision: 38,
                    scale: 4,
                }),
                ..FieldMapping::default()
            },
        )]
        .into(),
        ..Mapping::default()
    };
    for (value, text, decimal) in [
        ("12.50", "f=12.50", "f=12.5000"),
        ("-1.5e3", "f=-1.5e3", "f=-1500.0000"),
        ("+.5", "f=+.5", "f=0.5000"),
        ("", "f=", "f=0.0000"),
        (
            "0.00001",
            "f=0.00001",
            "value.decimal_inexact field `f`: the number has more than 4 digits behind the point",
        ),
    ] {
        let json = format!("{{\"f\": {{\"value\": \"{value}\"}}}}");
        check(&text_decimal, &json, text);
        check_mapped(&text_decimal, &as_decimal, &encode(&text_decimal, &json), decimal);
    }

    let head = "import \"confluent/type/decimal.proto\";";
    let scaled = proto3(&format!("{head} message M {{ confluent.type.Decimal f = 1; }}"));
    let fixed = proto3(&format!(
        "{head} import \"confluent/meta.proto\"; message M {{ confluent.type.Decimal f = 1 [(confluent.field_meta) = {{
         params: [{{ key: \"precision\", value: \"38\" }}, {{ key: \"scale\", value: \"2\" }}] }}]; }}"
    ));
    let largest = 99_999_999_999_999_999_999_999_999_999_999_999_999i128.to_be_bytes();
    for (value, scale, text, decimal) in [
        (&[0x30, 0x39][..], 2i32, "f=123.45", "f=123.45"),
        (&[0xff], 2, "f=-0.01", "f=-0.01"),
        (&[], 0, "f=0", "f=0.00"),
        (&[0x05], -3, "f=5000", "f=5000.00"),
        (
            &largest,
            2,
            "f=999999999999999999999999999999999999.99",
            "f=999999999999999999999999999999999999.99",
        ),
        (
            &[0x01],
            3,
            "f=0.001",
            "value.decimal_inexact field `f`: the number has more than 2 digits behind the point",
        ),
        (
            &[1; 17],
            0,
            "protobuf.decimal_overflow field `f`: the decimal has more than 38 digits, or a scale beyond 38",
            "protobuf.decimal_overflow field `f`: the decimal has more than 38 digits, or a scale beyond 38",
        ),
        (
            &[1],
            39,
            "protobuf.decimal_overflow field `f`: the decimal has more than 38 digits, or a scale beyond 38",
            "protobuf.decimal_overflow field `f`: the decimal has more than 38 digits, or a scale beyond 38",
        ),
    ] {
        let message = [
            bytes(1, value),
            number(2, 38),
            number(3, i64::from(scale).cast_unsigned()),
        ]
        .concat();
        check_bytes(&scaled, &bytes(1, &message), text);
        check_bytes(&fixed, &bytes(1, &message), decimal);
    }
}

#[test]
fn settings_retype_columns() {
    let text = proto3(
        "import \"google/protobuf/timestamp.proto\"; message M { uint64 a = 1; fixed64 b = 2; google.protobuf.Timestamp c = 3;
         int32 d = 4; float e = 5; double f = 6; string g = 7; repeated uint64 h = 8; int64 i = 9; }",
    );
    use PrimitiveType as P;
    let wanted = [
        ("a", P::Long),
        (
            "b",
            P::Decimal {
                precision: 30,
                scale: 2,
            },
        ),
        ("c", P::Long),
        ("d", P::Long),
        ("e", P::Double),
        (
            "f",
            P::Decimal {
                precision: 9,
                scale: 3,
            },
        ),
        ("g", P::Binary),
        ("h", P::Long),
        (
            "i",
            P::Decimal {
                precision: 19,
                scale: 0,
            },
        ),
    ];
    let mapping = Mapping {
        fields: wanted
            .into_iter()
            .map(|(name, data_type)| {
                let field = FieldMapping {
                    data_type: Some(data_type),
                    ..FieldMapping::default()
                };
                (name.to_owned(), field)
            })
            .collect(),
        ..Mapping::default()
    };
    let body = encode(
        &text,
        r#"{"a": "9223372036854775807", "b": "18446744073709551615", "c": "1970-01-01T00:00:01.000000007Z", "d": -1, "e": 1.5,
            "f": -0.125, "g": "x", "h": ["1"], "i": "-9223372036854775808"}"#,
    );
    check_mapped(
        &text,
        &mapping,
        &[body, bytes(7, &[0xff])].concat(),
        "a=9223372036854775807 b=18446744073709551615.00 c=1000000007 d=-1 e=1.5 f=-0.125 g=xff h=[1] i=-9223372036854775808",
    );
    for (body, expected) in [
        (
            number(1, u64::MAX),
            "value.long_overflow field `a`: 18446744073709551615 does not fit into a long of 64 bits",
        ),
        (
            bytes(3, &number(1, 9_223_372_037)),
            "value.long_overflow field `c`: the instant in nanoseconds does not fit into a long of 64 bits",
        ),
        (
            [
                tag(6, 1),
                0.1f64.to_le_bytes().to_vec(),
                tag(6, 1),
                0.0001f64.to_le_bytes().to_vec(),
            ]
            .concat(),
            "value.decimal_inexact field `f`: the number has more than 3 digits behind the point",
        ),
    ] {
        check_mapped(&text, &mapping, &body, expected);
    }
    let excluded = Mapping {
        fields: ["a", "c", "h"]
            .into_iter()
            .map(|name| {
                (
                    name.to_owned(),
                    FieldMapping {
                        exclude: true,
                        ..FieldMapping::default()
                    },
                )
            })
            .collect(),
        ..Mapping::default()
    };
    // What is excluded is read all the same, so it is not unknown, and may be anything but broken.
    let body = [number(1, 1), bytes(3, b"\x0b"), bytes(8, &[1, 2]), number(9, 7)].concat();
    check_mapped(&text, &excluded, &body, "b=0 d=0 e=0.0f f=0.0 g= i=7");
}
