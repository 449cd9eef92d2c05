use std::borrow::Cow;

use frazil_core::{ErrorKind, SchemaId};
use proptest::prelude::*;
use uuid::Uuid;

use super::*;

const GUID: [u8; 16] = [
    0x89, 0x79, 0x1C, 0x0E, 0x5E, 0x8A, 0x4F, 0x6B, 0x9B, 0x1A, 0x2B, 0x3C, 0x4D, 0x5E, 0x6F, 0x70,
];

/// A value, what stands beside it, and how it is read.
struct Case<'c> {
    framing: Framing,
    bytes: &'c [u8],
    headers: &'c [(&'c str, &'c [u8])],
    metadata: Option<&'c str>,
}

fn value<'c>(framing: Framing, bytes: &'c [u8]) -> Case<'c> {
    Case {
        framing,
        bytes,
        headers: &[],
        metadata: None,
    }
}

fn with_headers<'c>(case: &Case<'c>) -> Vec<Header<'c>> {
    let header = |&(name, value): &(&'c str, &'c [u8])| Header {
        name: Cow::Borrowed(name),
        value: Some(value),
    };
    case.headers.iter().map(header).collect()
}

/// The schema and the payload (for Protobuf: the message too), or the code of the error.
#[track_caller]
fn check(case: &Case<'_>, expected: Result<(Option<SchemaRef>, &[u8]), &str>) {
    let (headers, metadata) = (with_headers(case), case.metadata.map(metadata));
    let framed = Framed {
        bytes: case.bytes,
        headers: &headers,
        metadata: metadata.as_ref(),
        side: Side::Value,
    };
    match (framed.unframe(case.framing), expected) {
        (Ok(unframed), Ok((schema, body))) => {
            assert_eq!((unframed.schema.clone(), unframed.body()), (schema, body));
        }
        (Err(error), Err(code)) => {
            assert_eq!(
                (error.code(), error.kind()),
                (Some(code), ErrorKind::Poison),
                "{error}"
            );
            assert!(error.hint().is_some(), "{error}");
        }
        (found, expected) => panic!("found {found:?}, expected {expected:?}"),
    }
}

fn metadata(id: &str) -> SchemaMetadata<'_> {
    SchemaMetadata {
        data_format: Cow::Borrowed("AVRO"),
        schema_id: Cow::Borrowed(id),
    }
}

fn id(id: u32) -> Option<SchemaRef> {
    Some(SchemaRef::Id(SchemaId(id)))
}

fn glue(compression: u8, payload: &[u8]) -> Vec<u8> {
    [&[3, compression], &GUID[..], payload].concat()
}

fn guid_header(rest: &[u8]) -> Vec<u8> {
    [&[1], &GUID[..], rest].concat()
}

#[test]
fn confluent_prefix() {
    for framing in [Framing::Confluent, Framing::Auto] {
        check(&value(framing, &[0, 0, 0, 0, 7, 1, 2]), Ok((id(7), &[1, 2])));
        check(
            &value(framing, &[0, 0xFF, 0xFF, 0xFF, 0xFF]),
            Ok((id(u32::MAX), &[])),
        );
    }
    check(&value(Framing::Confluent, &[]), Err("wire.too_short"));
    check(&value(Framing::Confluent, &[0, 0, 0, 7]), Err("wire.too_short"));
    check(&value(Framing::Confluent, &[3, 0, 1]), Err("wire.not_confluent"));
    check(
        &value(Framing::Confluent, b"{\"id\": 1}"),
        Err("wire.not_confluent"),
    );
}

#[test]
fn confluent_header_goes_before_the_prefix() {
    let (guid, bad) = (guid_header(&[]), [1, 2, 3]);
    let schema = Some(SchemaRef::Guid(Uuid::from_bytes(GUID)));
    fn with<'c>(headers: &'c [(&'c str, &'c [u8])]) -> Case<'c> {
        Case {
            headers,
            ..value(Framing::Confluent, &[0, 0, 0, 0, 7, 1])
        }
    }
    let found: &[u8] = &[0, 0, 0, 0, 7, 1];
    check(
        &with(&[("__value_schema_id", &guid)]),
        Ok((schema.clone(), found)),
    );
    // A number in the header; the last header of a name; another name, and the key's.
    check(
        &with(&[("__value_schema_id", &[0, 0, 0, 1, 0])]),
        Ok((id(256), found)),
    );
    check(
        &with(&[("__value_schema_id", &bad), ("__value_schema_id", &guid)]),
        Ok((schema, found)),
    );
    check(
        &with(&[("__key_schema_id", &guid), ("x", &bad)]),
        Ok((id(7), &[1])),
    );
    check(
        &with(&[("__value_schema_id", &bad)]),
        Err("wire.bad_schema_header"),
    );
    check(
        &with(&[("__value_schema_id", &guid[..16])]),
        Err("wire.bad_schema_header"),
    );
    check(
        &with(&[("__value_schema_id", &[])]),
        Err("wire.bad_schema_header"),
    );
}

#[test]
fn a_null_header_is_none() {
    let headers = [Header {
        name: Cow::Borrowed("__value_schema_id"),
        value: None,
    }];
    let framed = Framed {
        bytes: &[0, 0, 0, 0, 7],
        headers: &headers,
        metadata: None,
        side: Side::Value,
    };
    assert_eq!(framed.unframe(Framing::Auto).unwrap().schema, id(7));
}

#[test]
fn glue_prefix() {
    let schema = Some(SchemaRef::GlueVersion(Uuid::from_bytes(GUID)));
    // zlib.compress(b"hello", 9) of CPython 3.11.
    let hello = [
        0x78, 0xDA, 0xCB, 0x48, 0xCD, 0xC9, 0xC9, 0x07, 0x00, 0x06, 0x2C, 0x02, 0x15,
    ];
    for framing in [Framing::Glue, Framing::Auto] {
        check(&value(framing, &glue(0, &[1, 2])), Ok((schema.clone(), &[1, 2])));
        check(&value(framing, &glue(5, &hello)), Ok((schema.clone(), b"hello")));
        check(&value(framing, &glue(5, &hello[..8])), Err("wire.zlib_invalid"));
        check(&value(framing, &glue(5, &[])), Err("wire.zlib_invalid"));
    }
    let mut damaged = hello;
    damaged[12] ^= 1; // the checksum
    check(
        &value(Framing::Glue, &glue(5, &damaged)),
        Err("wire.zlib_invalid"),
    );
    check(
        &value(Framing::Glue, &glue(1, &[1])),
        Err("wire.unknown_compression"),
    );
    check(&value(Framing::Glue, &glue(0, &[])[..17]), Err("wire.too_short"));
    check(&value(Framing::Glue, &[0, 0, 0, 0, 7, 1]), Err("wire.not_glue"));
}

#[test]
fn a_zlib_bomb_is_stopped() {
    let zeros = vec![0; MAX_INFLATED_BYTES + 1];
    let bomb = miniz_oxide::deflate::compress_to_vec_zlib(&zeros, 6);
    assert!(bomb.len() < 50_000, "{}", bomb.len());
    check(&value(Framing::Glue, &glue(5, &bomb)), Err("wire.too_large"));
    let fits = miniz_oxide::deflate::compress_to_vec_zlib(&zeros[1..], 6);
    let schema = Some(SchemaRef::GlueVersion(Uuid::from_bytes(GUID)));
    check(&value(Framing::Glue, &glue(5, &fits)), Ok((schema, &zeros[1..])));
}

#[test]
fn apicurio() {
    let framing = Framing::Apicurio;
    let prefixed = [0, 0, 0, 0, 1, 0, 0, 0, 7, 0xAB];
    let schema = |id| Some(SchemaRef::Apicurio(id));
    check(&value(framing, &prefixed), Ok((schema(0x1_0000_0007), &[0xAB])));
    check(&value(framing, &prefixed[..8]), Err("wire.too_short"));
    check(&value(framing, b"{}"), Err("wire.not_apicurio"));
    for name in ["apicurio.value.globalId", "apicurio.value.contentId"] {
        let with = |id| Case {
            headers: &[],
            ..value(framing, id)
        };
        let (eight, seven): (&[u8], &[u8]) = (&[0, 0, 0, 0, 0, 0, 0, 9], &[0, 0, 0, 0, 0, 0, 9]);
        let case = Case {
            headers: &[(name, eight)],
            ..with(&[0xAB])
        };
        check(&case, Ok((schema(9), &[0xAB])));
        let case = Case {
            headers: &[(name, seven)],
            ..with(&[0xAB])
        };
        check(&case, Err("wire.bad_schema_header"));
    }
}

#[test]
fn lambda_says_the_schema() {
    let with = |metadata| Case {
        metadata,
        ..value(Framing::Lambda, &[0xAB])
    };
    let version = SchemaRef::GlueVersion(Uuid::from_bytes(GUID));
    check(&with(Some("42")), Ok((id(42), &[0xAB])));
    check(
        &with(Some("89791c0e-5e8a-4f6b-9b1a-2b3c4d5e6f70")),
        Ok((Some(version), &[0xAB])),
    );
    for wrong in ["", "-1", "4294967296", "orders-value"] {
        check(&with(Some(wrong)), Err("wire.bad_schema_metadata"));
    }
    check(&with(None), Err("wire.no_schema_metadata"));
}

#[test]
fn auto_takes_what_the_record_shows() {
    let guid = guid_header(&[]);
    let (prefixed, in_glue) = (&[0, 0, 0, 0, 7, 1][..], glue(0, &[]));
    for (bytes, headers, with_metadata, expected) in [
        (prefixed, &[][..], false, Some(Framing::Confluent)),
        (&in_glue, &[], false, Some(Framing::Glue)),
        (
            &in_glue,
            &[("__value_schema_id", &guid[..])],
            false,
            Some(Framing::Confluent),
        ),
        (
            prefixed,
            &[("__value_schema_id", &guid[..])],
            true,
            Some(Framing::Lambda),
        ),
        // Too short, another compression, and what can be anything.
        (&prefixed[..4], &[], false, None),
        (&in_glue[..17], &[], false, None),
        (&glue(1, &[])[..], &[], false, None),
        (b"{\"id\": 1}", &[], false, None),
        (&[2, 4, b'a'], &[], false, None),
        (&[], &[], false, None),
    ] {
        let case = Case {
            headers,
            ..value(Framing::Auto, bytes)
        };
        let (headers, metadata) = (with_headers(&case), metadata("7"));
        let framed = Framed {
            bytes,
            headers: &headers,
            metadata: with_metadata.then_some(&metadata),
            side: Side::Value,
        };
        assert_eq!(framed.detect(), expected, "{bytes:02x?}");
        if expected.is_none() {
            check(&case, Err("wire.unrecognised"));
        }
    }
}

#[test]
fn a_wrong_framing_says_what_it_looks_like_and_what_to_set() {
    let prefixed: &[u8] = &[0, 0, 0, 0, 7, 1];
    for (framing, bytes, metadata, expected) in [
        (
            Framing::Confluent,
            &glue(0, &[])[..],
            None,
            "the value is Glue's prefix, not Confluent's header or prefix, which starts with 00; was it written with \
             Glue's serializer? then set framing = \"glue\" for this topic",
        ),
        (
            Framing::Glue,
            prefixed,
            None,
            "the value is Confluent's prefix, not Glue's prefix, which starts with 03; was it written with Confluent's \
             serializer? then set framing = \"confluent\" for this topic",
        ),
        (
            Framing::Confluent,
            b" {\"id\": 1}",
            None,
            "the value is plain JSON, not Confluent's header or prefix, which starts with 00; it looks like plain JSON: \
             set format = \"json\" for this topic",
        ),
        (
            Framing::Auto,
            &[0x0A, 5, 1, 2, 3],
            None,
            "the value is bytes without a known framing, which begin with 0a 05 01 02, which names no schema; if the \
             producer uses no schema registry, set framing = \"none\", the format, and schema = \"file:…\" or \
             \"subject:…\" for this topic",
        ),
        (
            Framing::Confluent,
            &[2, 4],
            Some("7"),
            "the value is a payload whose prefix Lambda has taken off, not Confluent's header or prefix, which starts \
             with 00; the event source mapping has its own registry client, which takes the prefix off: set framing = \
             \"lambda\" for this topic, or remove SchemaRegistryConfig from the mapping",
        ),
        (
            Framing::Lambda,
            prefixed,
            None,
            "the event has no valueSchemaMetadata for it; the value is Confluent's prefix; framing = \"lambda\" is for \
             event source mappings with a SchemaRegistryConfig; without one, set framing to what the producer's \
             serializer writes",
        ),
        (
            Framing::Auto,
            &[0xC3, 1, 0, 0, 0, 0, 0, 0, 0, 0],
            None,
            "the value is Avro's single-object encoding, which names no schema; this encoding is not read: set format = \
             \"raw\" for this topic to keep its bytes",
        ),
        (
            Framing::Auto,
            "grüße".as_bytes(),
            None,
            "the value is plain text, which names no schema; if the topic holds text, set format = \"string\" for it",
        ),
    ] {
        let metadata = metadata.map(self::metadata);
        let framed = Framed {
            bytes,
            headers: &[],
            metadata: metadata.as_ref(),
            side: Side::Value,
        };
        let error = framed.unframe(framing).unwrap_err();
        let expected = format!("cannot find out which schema wrote the record: {expected}");
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn message_indexes() {
    let path = |path: &[i32]| MessageRef::Path(path.to_vec());
    let name = |name: &str| MessageRef::Name(name.to_owned());
    let confluent = [0, 0, 0, 0, 7];
    let glue_version = glue(0, &[]);
    let apicurio = [0, 0, 0, 0, 0, 0, 0, 0, 7];
    for (framing, prefix, indexes, expected) in [
        (Framing::Confluent, &confluent[..], &[0][..], Ok(path(&[0]))),
        // confluent-kafka for Python writes [1, 0] so, and [200] as count 1, zigzag 400.
        (Framing::Confluent, &confluent, &[4, 2, 0], Ok(path(&[1, 0]))),
        (Framing::Confluent, &confluent, &[2, 0x90, 0x03], Ok(path(&[200]))),
        (
            Framing::Confluent,
            &confluent,
            &[2, 1],
            Err("wire.bad_message_index"),
        ),
        (
            Framing::Confluent,
            &confluent,
            &[1],
            Err("wire.bad_message_index"),
        ),
        (
            Framing::Confluent,
            &confluent,
            &[4, 2],
            Err("wire.bad_message_index"),
        ),
        (Framing::Confluent, &confluent, &[], Err("wire.bad_message_index")),
        (
            Framing::Confluent,
            &confluent,
            &[0x82, 1, 0, 0],
            Err("wire.bad_message_index"),
        ),
        (
            Framing::Confluent,
            &confluent,
            &[2, 0xFF, 0xFF, 0xFF, 0xFF, 0x1F],
            Err("wire.bad_message_index"),
        ),
        (Framing::Glue, &glue_version, &[0], Ok(MessageRef::Sorted(0))),
        (
            Framing::Glue,
            &glue_version,
            &[0xAC, 2],
            Ok(MessageRef::Sorted(300)),
        ),
        (
            Framing::Glue,
            &glue_version,
            &[0x80],
            Err("wire.bad_message_index"),
        ),
        (
            Framing::Apicurio,
            &apicurio,
            b"\x07\x0A\x05Order",
            Ok(name("Order")),
        ),
        (
            Framing::Apicurio,
            &apicurio,
            b"\x07\x0A\x09Order",
            Err("wire.bad_message_index"),
        ),
        (
            Framing::Apicurio,
            &apicurio,
            b"\x07\x12\x05Order",
            Err("wire.bad_message_index"),
        ),
        (
            Framing::Apicurio,
            &apicurio,
            b"\x02\x0A\x00",
            Err("wire.bad_message_index"),
        ),
        (Framing::None, &[], &[], Ok(MessageRef::Unstated)),
    ] {
        let bytes = [prefix, indexes, &[0x08, 0x01]].concat();
        let bytes = if expected.is_err() {
            &bytes[..bytes.len() - 2]
        } else {
            &bytes
        };
        let unframed = value(framing, bytes);
        let framed = Framed {
            bytes: unframed.bytes,
            headers: &[],
            metadata: None,
            side: Side::Value,
        };
        let unframed = framed.unframe(framing).unwrap();
        match (unframed.protobuf(), expected) {
            (Ok((message, body)), Ok(expected)) => {
                assert_eq!((message, body), (expected, &[0x08, 0x01][..]));
            }
            (Err(error), Err(code)) => assert_eq!(error.code(), Some(code), "{error}"),
            (found, expected) => panic!("{framing} {indexes:02x?}: found {found:?}, expected {expected:?}"),
        }
    }
}

#[test]
fn message_indexes_in_headers() {
    let body = [0x08, 0x01];
    let (nested, garbled) = (guid_header(&[4, 2, 0]), guid_header(&[0, 0]));
    let id: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 9];
    let path = MessageRef::Path(vec![1, 0]);
    let name = MessageRef::Name("shop.Order".to_owned());
    type Headers<'h> = &'h [(&'h str, &'h [u8])];
    let cases: [(Framing, Headers<'_>, Option<MessageRef>); 4] = [
        (Framing::Confluent, &[("__value_schema_id", &nested)], Some(path)),
        (Framing::Confluent, &[("__value_schema_id", &garbled)], None),
        (
            Framing::Apicurio,
            &[
                ("apicurio.value.globalId", id),
                ("apicurio.value.protobuf.type", b"shop.Order"),
            ],
            Some(name),
        ),
        (
            Framing::Apicurio,
            &[("apicurio.value.globalId", id)],
            Some(MessageRef::Unstated),
        ),
    ];
    for (framing, headers, expected) in cases {
        let headers = with_headers(&Case {
            headers,
            ..value(framing, &body)
        });
        let framed = Framed {
            bytes: &body,
            headers: &headers,
            metadata: None,
            side: Side::Value,
        };
        let found = framed.unframe(framing).unwrap();
        let found = found.protobuf().ok();
        assert_eq!(found, expected.map(|message| (message, &body[..])));
    }
}

#[test]
fn keys_have_their_own_header_and_metadata() {
    let record = Record {
        offset: frazil_core::Offset(0),
        timestamp_ms: None,
        timestamp_type: crate::TimestampType::Unknown,
        key: Some(&[1]),
        value: Some(&[2]),
        headers: with_headers(&Case {
            headers: &[("__key_schema_id", &[0, 0, 0, 0, 5])],
            ..value(Framing::Auto, &[])
        }),
        key_schema: None,
        value_schema: Some(Box::new(metadata("6"))),
    };
    let key = Framed::key(&record).unwrap().unframe(Framing::Auto).unwrap();
    let value = Framed::value(&record).unwrap().unframe(Framing::Auto).unwrap();
    assert_eq!((key.schema.clone(), key.body()), (id(5), &[1][..]));
    assert_eq!((value.schema.clone(), value.body()), (id(6), &[2][..]));
}

const FRAMINGS: [Framing; 6] = [
    Framing::Auto,
    Framing::Confluent,
    Framing::Glue,
    Framing::Apicurio,
    Framing::Lambda,
    Framing::None,
];

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let any = || prop::collection::vec(any::<u8>(), 0..64);
    let starts = prop::sample::select(vec![
        vec![],
        vec![0, 0, 0, 0, 7],
        vec![0; 9],
        glue(0, &[]),
        glue(5, &[0x78, 0xDA]),
        vec![1],
    ]);
    (starts, any()).prop_map(|(start, rest)| [start, rest].concat())
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        bytes in bytes(),
        header in prop::option::of(bytes()),
        schema_id in prop::option::of("[0-9a-f-]{0,36}"),
        name in prop::sample::select(vec!["__value_schema_id", "apicurio.value.contentId", "apicurio.value.protobuf.type"]),
    ) {
        let headers: Vec<Header<'_>> = header
            .iter()
            .map(|value| Header { name: Cow::Borrowed(name), value: Some(value) })
            .collect();
        let metadata = schema_id.as_deref().map(metadata);
        let framed = Framed { bytes: &bytes, headers: &headers, metadata: metadata.as_ref(), side: Side::Value };
        for framing in FRAMINGS {
            match framed.unframe(framing) {
                Ok(unframed) => {
                    prop_assert!(unframed.body().len() <= MAX_INFLATED_BYTES.max(bytes.len()));
                    prop_assert_eq!(unframed.schema.is_none(), framing == Framing::None);
                    let _ = unframed.protobuf();
                }
                Err(error) => prop_assert!(error.code().is_some_and(|code| code.starts_with("wire."))),
            }
        }
    }

    /// What serializers write, changed and cut off anywhere, in the value and in the header.
    #[test]
    fn mutated_framings_never_panic(
        which in 0..5usize,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::weighted(0.3, any::<prop::sample::Index>()),
        in_header in any::<bool>(),
    ) {
        let deflated = miniz_oxide::deflate::compress_to_vec_zlib(&[7; 300], 6);
        let mut bytes = [
            vec![0, 0, 0, 0, 7, 4, 2, 0, 10, 1],
            glue(0, &[3, 10, 1]),
            glue(5, &deflated),
            [&[0, 0, 0, 0, 0, 0, 0, 0, 7][..], b"\x0a\x0a\x08shop.One\x08\x01"].concat(),
            guid_header(&[4, 2, 0]),
        ][which].clone();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let name = ["__value_schema_id", "apicurio.value.globalId", "apicurio.value.protobuf.type"][which % 3];
        let headers = [Header { name: Cow::Borrowed(name), value: Some(&bytes) }];
        let headers = if in_header { &headers[..] } else { &[] };
        let framed = Framed { bytes: &bytes, headers, metadata: None, side: Side::Value };
        for framing in FRAMINGS {
            match framed.unframe(framing) {
                Ok(unframed) => {
                    prop_assert!(unframed.body().len() <= MAX_INFLATED_BYTES.max(bytes.len()));
                    if let Ok((_, message)) = unframed.protobuf() {
                        prop_assert!(unframed.body().ends_with(message));
                    }
                }
                Err(error) => prop_assert!(error.code().is_some_and(|code| code.starts_with("wire."))),
            }
        }
    }

    /// What a serializer writes is found again, whatever the payload is.
    #[test]
    fn framings_give_back_what_they_hold(payload in prop::collection::vec(any::<u8>(), 0..200), id in any::<u32>()) {
        let confluent = [&[0], &id.to_be_bytes()[..], &payload].concat();
        check(&value(Framing::Auto, &confluent), Ok((Some(SchemaRef::Id(SchemaId(id))), &payload)));
        let schema = Some(SchemaRef::GlueVersion(Uuid::from_bytes(GUID)));
        check(&value(Framing::Auto, &glue(0, &payload)), Ok((schema.clone(), &payload)));
        let deflated = miniz_oxide::deflate::compress_to_vec_zlib(&payload, 6);
        check(&value(Framing::Auto, &glue(5, &deflated)), Ok((schema, &payload)));
    }
}
