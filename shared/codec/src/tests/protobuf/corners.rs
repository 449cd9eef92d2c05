//! Corners of the wire format, those of Protobuf's conformance suite that concern decoding among them: fields in
//! any order, repeated scalars and messages, packed and not, oneofs that change their mind, maps without keys or
//! values, unknown fields, wrong wire types, overlong numbers, broken ends.

use frazil_schema::Mapping;
use proptest::prelude::*;

use super::*;

const TEXT: &str = "syntax = \"proto3\"; message M { int32 i = 1; string s = 2; N n = 3; repeated int32 r = 4; repeated N all = 5;
    map<string, int32> m = 6; map<int32, N> by = 7; oneof o { string a = 8; N b = 9; int32 c = 10; } bool flag = 11; uint32 u = 12; }
    message N { int32 x = 1; repeated int32 y = 2; N2 deep = 3; } message N2 { int32 p = 1; int32 q = 2; }";

/// The row of `TEXT`'s message without the columns that have their defaults.
fn check_row(body: &[u8], expected: &str) {
    let schema = compile(TEXT, &Mapping::default());
    let records = records([Payload::Encoded {
        schema: &schema,
        body,
    }]);
    let prepared = prepare(&records, DecodeOptions::default()).unwrap();
    let found = match prepared.poison() {
        [] => {
            let row = values(&Table::default().take(&prepared).unwrap()).remove(0);
            let defaults = [
                "i=0",
                "s=",
                "r=[]",
                "all=[]",
                "m=<>",
                "by=<>",
                "flag=false",
                "u=0",
            ];
            let mut found = format!(" {row} ");
            for default in defaults {
                found = found.replace(&format!(" {default} "), " ");
            }
            found.trim().to_owned()
        }
        _ => poison(&prepared).remove(0).1,
    };
    assert_eq!(found, expected, "{}", body.escape_ascii());
    // The other implementation takes and refuses the same.
    let message = pool(TEXT).get_message_by_name("M").unwrap();
    let theirs = DynamicMessage::decode(message, body);
    assert_eq!(
        theirs.is_ok(),
        prepared.poison().is_empty(),
        "{theirs:?} {}",
        body.escape_ascii()
    );
}

#[test]
fn order_does_not_matter_and_the_last_scalar_wins() {
    check_row(&[], "");
    check_row(&[bytes(2, b"x"), number(1, 5)].concat(), "i=5 s=x");
    check_row(
        &[number(1, 5), bytes(2, b"x"), number(1, 6), bytes(2, b"")].concat(),
        "i=6",
    );
    check_row(
        &[
            number(4, 1),
            number(1, 9),
            number(4, 2),
            bytes(5, &[]),
            number(4, 3),
            bytes(5, &number(1, 1)),
        ]
        .concat(),
        "i=9 r=[1, 2, 3] all=[{x: 0, y: [], deep: null}, {x: 1, y: [], deep: null}]",
    );
}

#[test]
fn parts_of_a_message_are_merged() {
    let deep = |inner: &[u8]| bytes(3, inner);
    check_row(
        &[
            bytes(3, &[number(1, 1), number(2, 10), deep(&number(1, 7))].concat()),
            number(1, 5),
            bytes(3, &[number(2, 11), deep(&number(2, 8))].concat()),
            bytes(3, &number(1, 2)),
        ]
        .concat(),
        "i=5 n={x: 2, y: [10, 11], deep: {p: 7, q: 8}}",
    );
    // Elements of a list are not.
    check_row(
        &[bytes(5, &number(1, 1)), bytes(5, &number(2, 2))].concat(),
        "all=[{x: 1, y: [], deep: null}, {x: 0, y: [2], deep: null}]",
    );
}

#[test]
fn the_last_member_of_a_oneof_wins() {
    check_row(&[bytes(8, b"x"), number(10, 0)].concat(), "c=0");
    check_row(&[number(10, 0), bytes(8, b"x")].concat(), "a=x");
    check_row(&[number(10, 1), number(10, 2)].concat(), "c=2");
    let b = |x| bytes(9, &number(1, x));
    let y = |y| bytes(9, &number(2, y));
    check_row(&[b(1), y(2)].concat(), "b={x: 1, y: [2], deep: null}");
    // What came of a member before another one was set is gone.
    check_row(
        &[b(1), bytes(8, b"x"), y(2)].concat(),
        "b={x: 0, y: [2], deep: null}",
    );
    check_row(&[b(1), y(2), bytes(8, b"x")].concat(), "a=x");
    check_row(
        &[b(1), y(2), number(10, 3), y(4), b(5)].concat(),
        "b={x: 5, y: [4], deep: null}",
    );
}

#[test]
fn packed_and_unpacked_are_both_taken() {
    let packed = |values: &[u64]| {
        bytes(
            4,
            &values.iter().flat_map(|value| varint(*value)).collect::<Vec<_>>(),
        )
    };
    check_row(
        &[packed(&[1, 2]), number(4, 3), packed(&[]), packed(&[300])].concat(),
        "r=[1, 2, 3, 300]",
    );
    check_bytes(
        "message M { repeated double d = 1; repeated bool b = 2 [packed = true]; repeated sint32 s = 3; }",
        &[
            bytes(1, &[1.5f64.to_le_bytes(), 2.0f64.to_le_bytes()].concat()),
            number(2, 1),
            bytes(3, &[1, 2]),
        ]
        .concat(),
        "d=[1.5, 2.0] b=[true] s=[-1, 1]",
    );
    check_bytes(
        "message M { repeated double d = 1; }",
        &bytes(1, &[0; 9]),
        "protobuf.truncated field `d`: the value needs 8 more bytes where 1 are left",
    );
}

#[test]
fn numbers_are_cut_to_their_type() {
    check_row(&number(1, u64::MAX), "i=-1");
    check_row(&[tag(1, 0), vec![0x85, 0x80, 0x80, 0x00]].concat(), "i=5");
    check_row(&number(1, 1 << 32 | 7), "i=7");
    check_row(&number(12, 1 << 32 | 7), "u=7");
    check_row(&number(11, 2), "flag=true");
    check_row(&number(11, 1 << 63), "flag=true");
}

#[test]
fn maps_have_each_key_once() {
    let entry = |field, parts: &[Vec<u8>]| bytes(field, &parts.concat());
    check_row(&entry(6, &[]), "m=<: 0>");
    check_row(&entry(6, &[bytes(1, b"k")]), "m=<k: 0>");
    check_row(&entry(6, &[number(2, 5)]), "m=<: 5>");
    check_row(
        &[
            entry(6, &[bytes(1, b"k"), number(2, 5)]),
            entry(6, &[bytes(1, b"l"), number(2, 6)]),
            entry(6, &[number(2, 7), bytes(9, b"unknown"), bytes(1, b"k")]),
        ]
        .concat(),
        "m=<k: 7, l: 6>",
    );
    // Within an entry the last key and value count, and the parts of a message are merged; entries are not.
    check_row(
        &entry(6, &[bytes(1, b"k"), number(2, 5), number(2, 6), bytes(1, b"l")]),
        "m=<l: 6>",
    );
    check_row(&entry(7, &[number(1, 3)]), "by=<3: {x: 0, y: [], deep: null}>");
    check_row(
        &[
            entry(
                7,
                &[number(1, 3), bytes(2, &number(1, 1)), bytes(2, &number(2, 2))],
            ),
            entry(7, &[number(1, 4), bytes(2, &number(1, 1))]),
            entry(7, &[number(1, 1 << 32 | 4), bytes(2, &number(2, 2))]),
        ]
        .concat(),
        "by=<3: {x: 1, y: [2], deep: null}, 4: {x: 0, y: [2], deep: null}>",
    );
    let many: Vec<u8> = (0..100u64)
        .flat_map(|index| {
            entry(
                6,
                &[bytes(1, format!("k{}", index % 10).as_bytes()), number(2, index)],
            )
        })
        .collect();
    let expected: Vec<String> = (0..10).map(|index| format!("k{index}: {}", 90 + index)).collect();
    check_row(&many, &format!("m=<{}>", expected.join(", ")));
}

#[test]
fn unknown_fields_are_skipped_and_counted() {
    let schema = compile(TEXT, &Mapping::default());
    let group = [
        tag(50, 3),
        number(1, 1),
        tag(51, 3),
        bytes(2, b"x"),
        tag(51, 4),
        tag(50, 4),
    ]
    .concat();
    let unknown = [
        number(99, 1),
        [tag(100, 1), vec![0; 8]].concat(),
        [tag(1_000_000, 5), vec![0; 4]].concat(),
        bytes(536_870_911, b"x"),
        group,
        // Wire types that are not the field's.
        bytes(1, b"x"),
        number(2, 7),
        [tag(3, 5), vec![0; 4]].concat(),
        bytes(3, &number(77, 1)),
        [tag(5, 3), tag(5, 4)].concat(),
        bytes(6, &[bytes(1, b"k"), bytes(2, b"no number")].concat()),
        bytes(12, &[1]),
    ];
    let body = [&[number(1, 5)], &unknown[..]].concat().concat();
    let poison_body = [body.clone(), tag(1, 0)].concat();
    let records = records([&body, &poison_body, &body].map(|body| Payload::Encoded {
        schema: &schema,
        body,
    }));
    let prepared = prepare(&records, DecodeOptions::default()).unwrap();
    assert_eq!(prepared.poison().len(), 1);
    // What a record that cannot be read has does not count.
    assert_eq!(prepared.unknown_fields(), 2 * unknown.len() as u64);
    let rows = values(&Table::default().take(&prepared).unwrap());
    assert_eq!(
        rows[0],
        "i=5 s= n={x: 0, y: [], deep: null} r=[] all=[] m=<k: 0> by=<> flag=false u=0"
    );
}

#[test]
fn broken_records_are_poison() {
    let not_protobuf = "the record is not Protobuf";
    for (body, expected) in [
        (
            vec![0x08],
            "protobuf.truncated field `i`: the value needs 1 more bytes where 0 are left",
        ),
        (
            vec![0x80],
            "protobuf.truncated the value needs 2 more bytes where 1 are left",
        ),
        (
            vec![0x12, 5, b'x'],
            "protobuf.truncated field `s`: the value needs 5 more bytes where 1 are left",
        ),
        (
            vec![0x1a, 2, 0x08, 0x80],
            "protobuf.truncated field `n.x`: the value needs 2 more bytes where 1 are left",
        ),
        (
            [tag(1, 0), vec![0xff; 9], vec![2]].concat(),
            "protobuf.invalid field `i`: a number is longer than 64 bits",
        ),
        (
            [tag(1, 0), vec![0xff; 11]].concat(),
            "protobuf.invalid field `i`: a number is longer than 64 bits",
        ),
        (
            vec![0x00, 0x00],
            "protobuf.invalid 0 is not the number of a field",
        ),
        (
            varint(1 << 32),
            "protobuf.invalid 536870912 is not the number of a field",
        ),
        (vec![0x0e, 0], "protobuf.invalid there is no wire type 6"),
        (vec![0x0f, 0], "protobuf.invalid there is no wire type 7"),
        (
            tag(1, 4),
            "protobuf.invalid field 1 ends a group that it did not begin",
        ),
        (
            tag(99, 4),
            "protobuf.invalid field 99 ends a group that it did not begin",
        ),
        (
            [tag(99, 3), tag(98, 4)].concat(),
            "protobuf.invalid field 98 ends a group that it did not begin",
        ),
        (
            tag(99, 3),
            "protobuf.truncated the value needs 1 more bytes where 0 are left",
        ),
        (
            bytes(2, &[0xff]),
            "protobuf.invalid_utf8 field `s`: the string is not UTF-8: invalid utf-8 sequence of 1 bytes from index 0",
        ),
        (
            bytes(6, &bytes(1, &[0xc3])),
            "protobuf.invalid_utf8 field `m`: the string is not UTF-8: incomplete utf-8 byte sequence from index 0",
        ),
        (
            b"{\"json\": true}".to_vec(),
            "protobuf.invalid field 15 ends a group that it did not begin",
        ),
    ] {
        if body.starts_with(b"{") {
            let schema = compile(TEXT, &Mapping::default());
            let records = records([Payload::Encoded {
                schema: &schema,
                body: &body,
            }]);
            let prepared = prepare(&records, DecodeOptions::default()).unwrap();
            let hint = prepared.poison()[0].error.hint().unwrap_or_default();
            assert!(
                hint.starts_with(not_protobuf)
                    || prepared.poison()[0].error.code() == Some("protobuf.truncated"),
                "{hint}"
            );
            continue;
        }
        check_row(&body, expected);
    }
}

#[test]
fn depth_is_bounded() {
    // Unknown groups.
    let groups = |depth| {
        [vec![tag(99, 3); depth], vec![tag(99, 4); depth]]
            .concat()
            .concat()
    };
    let schema = compile(TEXT, &Mapping::default());
    let outcome = |schema: &SourceSchema, body: &[u8]| {
        let records = records([Payload::Encoded { schema, body }]);
        let prepared = prepare(&records, DecodeOptions::default()).unwrap();
        poison(&prepared)
            .pop()
            .map(|(_, reason)| reason.split(' ').next().unwrap_or_default().to_owned())
    };
    assert_eq!(outcome(&schema, &groups(100)), None);
    assert_eq!(
        outcome(&schema, &groups(101)),
        Some("protobuf.too_deep".to_owned())
    );
    assert_eq!(
        outcome(&schema, &groups(100_000)),
        Some("protobuf.too_deep".to_owned())
    );
    // A recursive message.
    let list = compile(&proto3("message M { M next = 1; }"), &Mapping::default());
    let nested = |depth| (0..depth).fold(Vec::new(), |inner: Vec<u8>, _| bytes(1, &inner));
    assert_eq!(outcome(&list, &nested(99)), None);
    assert_eq!(outcome(&list, &nested(100)), Some("protobuf.too_deep".to_owned()));
    assert_eq!(
        outcome(&list, &nested(20_000)),
        Some("protobuf.too_deep".to_owned())
    );
}

#[test]
fn memory_is_bounded() {
    let fields: String = (1..=500)
        .map(|index| format!("int64 f{index} = {index};"))
        .collect();
    let schema = compile(
        &proto3(&format!(
            "message M {{ repeated N all = 1; }} message N {{ {fields} }}"
        )),
        &Mapping::default(),
    );
    // A few empty elements are fine; a megabyte of them would be two gigabytes.
    for (count, code) in [(8, None), (500_000, Some("protobuf.too_many_values"))] {
        let body = bytes(1, &[]).repeat(count);
        let records = records([Payload::Encoded {
            schema: &schema,
            body: &body,
        }]);
        let prepared = prepare(&records, DecodeOptions::default()).unwrap();
        assert_eq!(
            prepared.poison().first().and_then(|poison| poison.error.code()),
            code
        );
    }
}

#[test]
fn the_text_of_a_message_is_bounded() {
    let text = proto3("enum E { A_NAME_OF_SOME_LENGTH = 0; } message M { M f = 1; repeated E e = 2; }");
    for (count, expected) in [
        (1, "f={\"e\":[\"A_NAME_OF_SOME_LENGTH\"]} e=[]"),
        (
            1_000_000,
            "protobuf.text_too_large field `f.e`: its JSON is longer than 16 MiB",
        ),
    ] {
        let outcome = bytes(1, &bytes(2, &vec![0; count]));
        let schema = compile(&text, &Mapping::default());
        let records = records([Payload::Encoded {
            schema: &schema,
            body: &outcome,
        }]);
        let prepared = prepare(&records, DecodeOptions::default()).unwrap();
        let found = match prepared.poison() {
            [] => values(&Table::default().take(&prepared).unwrap()).remove(0),
            _ => poison(&prepared).remove(0).1.replace("f.e[]", "f.e"),
        };
        assert_eq!(found, expected);
    }
}

#[test]
fn unknown_fields_may_be_refused() {
    let schema = compile(TEXT, &Mapping::default());
    let (good, unknown, inside) = (number(1, 5), number(99, 1), bytes(3, &bytes(1, b"x")));
    let records = records([&good, &unknown, &inside].map(|body| Payload::Encoded {
        schema: &schema,
        body,
    }));
    let options = DecodeOptions {
        unknown_fields: crate::UnknownFields::Fail,
        ..DecodeOptions::default()
    };
    assert_eq!(
        poison(&prepare(&records, options).unwrap()),
        [
            (
                1,
                "protobuf.unknown_field the schema has no field 99 of this wire type".to_owned()
            ),
            (
                2,
                "protobuf.unknown_field field `n`: the schema has no field 1 of this wire type".to_owned()
            ),
        ]
    );
}

#[test]
fn poison_leaves_no_trace() {
    let schema = compile(TEXT, &Mapping::default());
    let good = [
        number(1, 1),
        bytes(3, &number(1, 2)),
        number(4, 3),
        bytes(5, &number(2, 4)),
        bytes(6, &[bytes(1, b"k"), number(2, 5)].concat()),
        bytes(9, &number(1, 6)),
    ]
    .concat();
    for cut in 1..good.len() {
        let broken = &good[..cut];
        let bodies = [&good[..], broken, &[good.as_slice(), &[0x80]].concat(), &good].map(<[u8]>::to_vec);
        let payloads = bodies.iter().map(|body| Payload::Encoded {
            schema: &schema,
            body,
        });
        let records = records(payloads);
        let prepared = prepare(&records, DecodeOptions::default()).unwrap();
        let rows = values(&Table::default().take(&prepared).unwrap());
        let whole = "i=1 s= n={x: 2, y: [], deep: null} r=[3] all=[{x: 0, y: [4], deep: null}] m=<k: 5> by=<> b={x: 6, y: [], deep: null} flag=false u=0";
        assert_eq!(rows[0], whole);
        assert_eq!(rows[rows.len() - 1], whole);
        assert!(prepared.poison().iter().any(|poison| poison.index == 2));
    }
}

proptest! {
    #[test]
    fn mutated_records_never_panic(
        at in 0usize..200, replacement in prop::collection::vec(any::<u8>(), 0..6), drop in 0usize..6, twice in any::<bool>()
    ) {
        let text = "syntax = \"proto3\"; import \"google/protobuf/any.proto\"; import \"google/protobuf/struct.proto\";
            import \"google/protobuf/timestamp.proto\"; import \"google/type/date.proto\"; import \"confluent/type/decimal.proto\";
            message M { int32 i = 1; string s = 2; M next = 3; repeated sint64 r = 4; map<uint64, N> m = 5; google.protobuf.Any any = 6;
            google.protobuf.Struct st = 7; google.protobuf.Timestamp t = 8; google.type.Date d = 9; confluent.type.Decimal c = 10;
            oneof o { N n = 11; double f = 12; } repeated N all = 13; } message N { repeated fixed32 x = 1; optional bool b = 2; N inside = 3; }";
        let inner = [number(1, 7), bytes(2, "ö".as_bytes()), bytes(4, &[1, 2, 0x81, 1]), bytes(8, &[number(1, 9), number(2, 1)].concat())].concat();
        let value = bytes(1, &[bytes(1, b"k"), bytes(2, &bytes(3, b"text"))].concat());
        let mut body = [
            inner.clone(), bytes(3, &inner), bytes(5, &[number(1, 3), bytes(2, &number(2, 1))].concat()),
            bytes(6, &[bytes(1, b"x/M"), bytes(2, &inner)].concat()), bytes(7, &value), bytes(9, &[number(1, 2025), number(2, 1), number(3, 2)].concat()),
            bytes(10, &[bytes(1, &[1, 2]), number(3, 2)].concat()), bytes(11, &bytes(1, &[0; 8])), bytes(13, &bytes(3, &number(2, 1))),
        ].concat();
        let at = at % body.len();
        let end = (at + drop).min(body.len());
        body.splice(at..end, replacement);
        if twice {
            body.extend_from_within(..);
        }
        never_panics(text, &body);
    }

    #[test]
    fn arbitrary_records_never_panic(body in prop::collection::vec(any::<u8>(), 0..60)) {
        never_panics(TEXT, &body);
    }
}

/// Decodes good records around the given one; the batch must be whole whatever becomes of it.
fn never_panics(text: &str, body: &[u8]) {
    let schema = compile(text, &Mapping::default());
    let good = number(1, 42);
    let records = records([&good[..], body, &good].map(|body| Payload::Encoded {
        schema: &schema,
        body,
    }));
    let prepared = prepare(&records, DecodeOptions::default()).unwrap();
    let batch = Table::default().take(&prepared).unwrap();
    assert_eq!(batch.num_rows() + prepared.poison().len(), 3);
    let rows = values(&batch);
    assert_eq!(rows[0], rows[rows.len() - 1]);
    assert!(rows[0].starts_with("i=42"));
}
