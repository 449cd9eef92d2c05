use frazil_core::ErrorKind;
use frazil_schema::{ColumnCase, FieldMapping, HashMethod, Mapping};
use iceberg::spec::PrimitiveType;
use proptest::prelude::*;

use super::{Table, poison, records, values};
use crate::{DecodeOptions, HashKey, Payload, prepare};

/// One event after the other into one table; each document with its expected row.
fn check(events: &[&[(&str, &str)]]) {
    let mut table = Table::default();
    for event in events {
        let records = records(
            event
                .iter()
                .map(|(document, _)| Payload::Json(document.as_bytes())),
        );
        let expected: Vec<&str> = event.iter().map(|(_, expected)| *expected).collect();
        assert_eq!(table.values(&records), expected);
    }
}

#[test]
fn values_arrive_in_the_columns_chosen_for_them() {
    check(&[&[
        (
            r#"{"id": 1, "Name": "Zoë \"Z\"", "price": 1.10, "ok": true, "tags": ["a", null], "o": {"x": 1, "y": {"z": "q"}}}"#,
            r#"id=1 name=Zoë "Z" price=1.1 ok=true tags=[a, null] o={x: 1, y: {z: q}}"#,
        ),
        (
            r#"{"id": 2, "price": 3, "o": {"y": null}, "tags": []}"#,
            "id=2 price=3.0 tags=[] o={x: null, y: null}",
        ),
        (r#"{"id": null, "extra": null}"#, ""),
        ("null", ""),
        (r#"{"id": 3, "id": 4}"#, "id=4"),
        (
            r#"{"lines": [{"sku": "a"}, {"qty": 2}]}"#,
            "lines=[{sku: a, qty: null}, {sku: null, qty: 2}]",
        ),
    ]]);
    // Mixed types in one event are text, exactly as it came.
    check(&[&[
        (r#"{"v": 1.50}"#, "v=1.50"),
        (r#"{"v": "x"}"#, "v=x"),
        (r#"{"v": {"a":  [1, 2]}}"#, r#"v={"a":  [1, 2]}"#),
        (
            r#"{"v": 123456789012345678901234567890}"#,
            "v=123456789012345678901234567890",
        ),
        (r#"{"v": false}"#, "v=false"),
    ]]);
}

#[test]
fn integers_are_never_rounded() {
    check(&[
        &[(r#"{"n": 9223372036854775807}"#, "n=9223372036854775807")],
        &[(r#"{"n": 9223372036854775808}"#, "n__string=9223372036854775808")],
    ]);
    check(&[&[
        (r#"{"n": 0.5}"#, "n=0.5"),
        (r#"{"n": 9007199254740992}"#, "n=9007199254740992.0"),
        (r#"{"n": 9007199254740993}"#, "n__long=9007199254740993"),
    ]]);
    check(&[&[(r#"{"n": 1e999}"#, "n=1e999")]]);
}

#[test]
fn what_does_not_fit_goes_to_a_sibling() {
    check(&[
        &[(
            r#"{"price": 1, "l": [1], "o": {"x": 1}}"#,
            "price=1 l=[1] o={x: 1}",
        )],
        &[
            (r#"{"price": 2.5}"#, "price__double=2.5"),
            (r#"{"price": "free"}"#, "price__string=free"),
            (r#"{"price": 3}"#, "price=3"),
            (r#"{"price": {"amount": 3}}"#, r#"price__string={"amount": 3}"#),
            (r#"{"l": [1, "a"]}"#, r#"l__string=[1, "a"]"#),
            (r#"{"l": [2]}"#, "l=[2]"),
            (r#"{"o": {"x": true}}"#, "o={x: null, x__boolean: true}"),
            (r#"{"o": 5}"#, "o__long=5"),
        ],
        // A producer's own field of that name is another one.
        &[(r#"{"price__double": "mine"}"#, "price__double_2=mine")],
    ]);
}

#[test]
fn fields_beyond_the_bound_are_kept_as_text() {
    let options = DecodeOptions {
        max_columns: 2,
        ..DecodeOptions::default()
    };
    let mut table = Table::default();
    let mut check = |documents: &[&str], expected: &[&str]| {
        let records = records(
            documents
                .iter()
                .map(|document| Payload::Json(document.as_bytes())),
        );
        let prepared = prepare(&records, options).unwrap();
        assert_eq!(values(&table.take(&prepared).unwrap()), expected);
    };
    check(
        &[
            r#"{"a": 1, "b": {"x": 2}, "c": [3.0], "d\n": "q\""}"#,
            r#"{"a": 2}"#,
        ],
        &[
            r#"a=1 b={x: 2} _kafka_unknown_fields={"c":[3.0],"d\n":"q\""}"#,
            "a=2",
        ],
    );
    // A field of which a part has no column is kept whole.
    check(
        &[r#"{"a": 1, "b": {"x": 2, "y": 3}}"#],
        &[r#"a=1 b={x: 2} _kafka_unknown_fields={"b":{"x": 2, "y": 3}}"#],
    );
    check(&[r#"{"a": "text"}"#], &[r#"_kafka_unknown_fields={"a":"text"}"#]);
}

/// One event after the other into one table of a topic with these settings.
fn check_mapped(mapping: &Mapping, max_columns: usize, events: &[&[(&str, &str)]]) {
    let mut table = Table::default();
    let options = DecodeOptions {
        mapping,
        max_columns,
        hash_key: Some(HashKey::new(b"0123456789abcdef").unwrap()),
        ..DecodeOptions::default()
    };
    for event in events {
        let records = records(
            event
                .iter()
                .map(|(document, _)| Payload::Json(document.as_bytes())),
        );
        let prepared = prepare(&records, options).unwrap();
        let expected: Vec<&str> = event.iter().map(|(_, expected)| *expected).collect();
        assert_eq!(values(&table.take(&prepared).unwrap()), expected);
    }
}

fn settings(fields: &[(&str, FieldMapping)]) -> Mapping {
    Mapping {
        fields: fields
            .iter()
            .map(|(path, field)| ((*path).to_owned(), field.clone()))
            .collect(),
        ..Mapping::default()
    }
}

#[test]
fn what_is_excluded_is_nowhere() {
    let exclude = FieldMapping {
        exclude: true,
        ..FieldMapping::default()
    };
    let mapping = settings(&[
        ("pw", exclude.clone()),
        ("c.email", exclude.clone()),
        ("l.card", exclude),
    ]);
    check_mapped(
        &mapping,
        100,
        &[
            &[
                (
                    r#"{"pw": "x", "id": 1, "c": {"email": "e", "n": 1}}"#,
                    "id=1 c={n: 1}",
                ),
                (
                    r#"{"l": [{"card": [1], "ok": true}, {"card": 2}], "email": "e"}"#,
                    "l=[{ok: true}, {ok: null}] email=e",
                ),
            ],
            // Not in the text of what does not fit either; what has nothing to hide stays as it came.
            &[
                (r#"{"c": [{"email": "e", "n" : 2}]}"#, r#"c__string=[{"n":2}]"#),
                (
                    r#"{"id": {"pw": 1,  "a": [ ]}}"#,
                    r#"id__string={"pw": 1,  "a": [ ]}"#,
                ),
                (
                    r#"{"l": {"card": 1, "x": {"card" : 2}}}"#,
                    r#"l__string={"x":{"card" : 2}}"#,
                ),
                (r#"{"l": {"card": 1}}"#, "l__string={}"),
            ],
        ],
    );
    check_mapped(
        &mapping,
        1,
        &[&[(
            r#"{"id": 1, "pw": "x", "c": {"email": "e", "n": "q\""}, "d": [ 1 ]}"#,
            r#"id=1 _kafka_unknown_fields={"c":{"n":"q\""},"d":[ 1 ]}"#,
        )]],
    );
}

#[test]
fn what_is_hashed_is_hashed_everywhere() {
    let hash = FieldMapping {
        hash: Some(HashMethod::Sha256),
        ..FieldMapping::default()
    };
    // As `openssl dgst -sha256 -hmac` has it.
    let mail = "87c8707b0c61806881347867c370e9f6bba71e47fb7aa89200288026b10d38de";
    let minus_seven = "dc36c4ce207858e5dbe272dce3ac510520f14d15a76a8d4809cd742adce47bbe";
    let mapping = settings(&[("mail", hash.clone()), ("c.mail", hash)]);
    check_mapped(
        &mapping,
        100,
        &[
            &[
                (
                    r#"{"mail": "a@example.com", "c": {"mail": -7}}"#,
                    &format!("mail={mail} c={{mail: {minus_seven}}}"),
                ),
                (r#"{"mail": null, "c": {"mail": null}}"#, "c={mail: null}"),
            ],
            &[
                (
                    r#"{"mail": ["a@example.com", null, -7]}"#,
                    &format!(r#"mail=["{mail}",null,"{minus_seven}"]"#),
                ),
                (r#"{"c": 1}"#, "c__long=1"),
                (
                    r#"{"c": [{"mail": "\u0061@example.com"}]}"#,
                    &format!(r#"c__string=[{{"mail":"{mail}"}}]"#),
                ),
            ],
        ],
    );
    let records = records([Payload::Json(b"{}")]);
    let without_key = DecodeOptions {
        mapping: &mapping,
        ..DecodeOptions::default()
    };
    let error = prepare(&records, without_key).unwrap_err();
    assert_eq!(
        (error.kind(), error.code()),
        (ErrorKind::Invalid, Some("settings.hash_key_missing"))
    );
}

#[test]
fn a_type_may_be_chosen() {
    let of = |data_type| FieldMapping {
        data_type: Some(data_type),
        ..FieldMapping::default()
    };
    let price = PrimitiveType::Decimal {
        precision: 6,
        scale: 2,
    };
    let mapping = Mapping {
        column_case: ColumnCase::Snake,
        ..settings(&[
            ("unitPrice", of(price)),
            ("zip", of(PrimitiveType::String)),
            ("o.n", of(PrimitiveType::Double)),
        ])
    };
    check_mapped(
        &mapping,
        100,
        &[
            &[
                (
                    r#"{"unitPrice": 0.10, "zip": 1234, "o": {"n": 1}}"#,
                    "unit_price=0.10 zip=1234 o={n: 1.0}",
                ),
                (r#"{"unitPrice": 9999, "zip": "01"}"#, "unit_price=9999.00 zip=01"),
                (r#"{"unitPrice": 12.5e1}"#, "unit_price=125.00"),
            ],
            &[
                (r#"{"unitPrice": 10000}"#, "unit_price__long=10000"),
                (r#"{"unitPrice": 0.005}"#, "unit_price__double=0.005"),
                (r#"{"unitPrice": "free"}"#, "unit_price__string=free"),
                (r#"{"unitPrice": 1e99}"#, "unit_price__double=1e99"),
                (r#"{"unitPrice": 1.00}"#, "unit_price=1.00"),
            ],
        ],
    );
    let mapping = settings(&[("at", of(PrimitiveType::Timestamptz))]);
    let records = records([Payload::Json(b"{}")]);
    let options = DecodeOptions {
        mapping: &mapping,
        ..DecodeOptions::default()
    };
    let error = prepare(&records, options).unwrap_err();
    assert_eq!(
        error.message(),
        "field `at` of inferred JSON cannot be given the type timestamptz"
    );
}

#[test]
fn faults_have_codes_and_leave_no_columns() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let documents = [
        r#"{"good": 1}"#,
        r#"{"bad": 1, "worse"}"#,
        "[1]",
        "\u{feff}{}",
        &deep,
    ];
    let records = records(documents.map(|document| Payload::Json(document.as_bytes())));
    let prepared = prepare(&records, DecodeOptions::default()).unwrap();
    let codes: Vec<(usize, String)> = poison(&prepared);
    assert_eq!(
        codes,
        [
            (1, "json.invalid line 1, column 19: expected `:`".to_owned()),
            (2, "json.not_an_object the JSON value is not an object".to_owned()),
            (3, "json.invalid line 1, column 1: expected a value".to_owned()),
            (
                4,
                "json.too_deep the JSON is nested more than 128 levels deep".to_owned()
            ),
        ]
    );
    assert_eq!(values(&Table::default().take(&prepared).unwrap()), ["good=1"]);
}

proptest! {
    #[test]
    fn any_documents_become_rows(documents in proptest::collection::vec(r#"\{("a": (1|"x"|0\.5|null|\[1\]|\{"b": (1|true)\}), )?"c": (true|7|\[("y"|null|\{\})\]|\{\})\}"#, 1..6)) {
        let mut table = Table::default();
        // Twice, so that the second event meets a table; any order of types is taken, and none is refused.
        for documents in [documents.clone(), documents.iter().rev().cloned().collect()] {
            let records = records(documents.iter().map(|document| Payload::Json(document.as_bytes())));
            prop_assert_eq!(table.values(&records).len(), documents.len());
        }
    }

    /// Even the columns come from what arrives: whatever stands between them, the good records keep theirs.
    #[test]
    fn mutated_documents_leave_their_neighbours_alone(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::weighted(0.3, any::<prop::sample::Index>()),
    ) {
        let mut document = br#"{"n": 7, "tags": ["a\u00e9", "b"], "o": {"x": -1.5e3, "y": [true, null, {"z": "q"}]}, "at": "2026-11-30T12:00:00Z"}"#.to_vec();
        for (at, byte) in edits {
            let at = at.index(document.len());
            document[at] = byte;
        }
        if let Some(cut) = cut {
            document.truncate(cut.index(document.len()));
        }
        check_neighbours(&document);
    }

    #[test]
    fn arbitrary_documents_leave_their_neighbours_alone(
        bytes in prop::collection::vec(any::<u8>(), 0..80), json in r#"\{[\[\]{}",:0-9.eE+\-ntrufalse\\ a-c]{0,60}"#
    ) {
        check_neighbours(&bytes);
        check_neighbours(json.as_bytes());
    }
}

/// Takes good records around the given one, twice: the second time the table has a place for all of it.
fn check_neighbours(document: &[u8]) {
    const GOOD: &[u8] = br#"{"good": 42}"#;
    let records = records([GOOD, document, GOOD].map(Payload::Json));
    let prepared = prepare(&records, DecodeOptions::default()).unwrap();
    let mut table = Table::default();
    for _ in 0..2 {
        let rows = values(&table.take(&prepared).unwrap());
        assert_eq!(rows.len() + prepared.poison().len(), 3);
        for row in [&rows[0], &rows[rows.len() - 1]] {
            assert!(row.split(' ').any(|value| value == "good=42"), "{rows:?}");
        }
    }
}

#[test]
fn inferred_columns_are_named_as_the_topic_wants() {
    let document = br#"{"orderId": 1, "Mixed": 2, "lines": [{"unitPrice": 1.5}]}"#;
    let records = records([Payload::Json(document), Payload::Json(br#"{"Mixed": 0.5}"#)]);
    let named = |column_case| {
        let mapping = Mapping {
            column_case,
            ..Mapping::default()
        };
        let options = DecodeOptions {
            mapping: &mapping,
            ..DecodeOptions::default()
        };
        let mut table = Table::default();
        let prepared = prepare(&records[..1], options).unwrap();
        table.take(&prepared).unwrap();
        let prepared = prepare(&records, options).unwrap();
        values(&table.take(&prepared).unwrap()).join(" | ")
    };
    assert_eq!(
        named(ColumnCase::Snake),
        "order_id=1 mixed=2 lines=[{unit_price: 1.5}] | mixed__double=0.5"
    );
    assert_eq!(
        named(ColumnCase::Keep),
        "orderId=1 Mixed=2 lines=[{unitPrice: 1.5}] | Mixed__double=0.5"
    );
}
