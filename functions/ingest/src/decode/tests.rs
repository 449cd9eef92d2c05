use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use frazil_config::Config;
use frazil_core::{Offset, TopicName};
use frazil_kafka::wire::Side;
use frazil_kafka::{Header, SchemaMetadata};
use frazil_registry::{CachedRegistry, DirectoryRegistry};
use frazil_schema::Mapping;
use frazil_table::{ValueFormat, ValueFraming};

use super::*;
use crate::Registries;
use crate::encoding::{Known, kept, known};
use crate::schemas::Schemas;

const GUID: &str = "89791c0e-5e8a-4f6b-9b1a-2b3c4d5e6f70";
const GUID_BYTES: [u8; 16] = [
    0x89, 0x79, 0x1C, 0x0E, 0x5E, 0x8A, 0x4F, 0x6B, 0x9B, 0x1A, 0x2B, 0x3C, 0x4D, 0x5E, 0x6F, 0x70,
];

/// A registry in a directory: three Avro schemas by id, GUID and version, which differ in the name of their field.
struct Bench {
    folder: tempfile::TempDir,
    schemas: Schemas,
}

fn avro(field: &str) -> String {
    format!(r#"{{"type": "record", "name": "R", "fields": [{{"name": "{field}", "type": "string"}}]}}"#)
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: String, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("ids/7.avsc".to_owned(), &avro("by_id"));
        write("ids/8.avsc".to_owned(), "{\"type\": \"nonsense\"}");
        write("ids/9.avsc".to_owned(), &avro("by_subject"));
        write(format!("guids/{GUID}.avsc"), &avro("by_guid"));
        write(
            "ids/10.proto".to_owned(),
            "syntax = \"proto3\"; package p; message B { string b = 1; message I { string i = 1; } } message A { \
             string a = 1; }",
        );
        write(
            "ids/11.proto".to_owned(),
            "syntax = \"proto3\"; import \"money.proto\"; message O { Money m = 1; }",
        );
        write(
            "ids/11.references.json".to_owned(),
            r#"[{"name": "money.proto", "id": 12}]"#,
        );
        write(
            "ids/12.proto".to_owned(),
            "syntax = \"proto3\"; message Money { int64 cents = 1; }",
        );
        write(
            "ids/13.json".to_owned(),
            r#"{"type": "object", "properties": {"j": {"$ref": "other.json"}}}"#,
        );
        write(
            "ids/13.references.json".to_owned(),
            r#"[{"name": "other.json", "id": 14}]"#,
        );
        write("ids/14.json".to_owned(), r#"{"type": "integer"}"#);
        write(format!("versions/{GUID}.avsc"), &avro("by_version"));
        write(
            "subjects/t-value.json".to_owned(),
            r#"{"versions": [{"version": 1, "id": 7}, {"version": 2, "id": 9}]}"#,
        );
        write("own/r.avsc".to_owned(), &avro("by_file"));
        let registry = CachedRegistry::new(DirectoryRegistry::new(folder.path()));
        Self {
            schemas: Schemas::new(Registries::from(Arc::new(registry))),
            folder,
        }
    }

    /// The payload of each record in words, or the code of its error.
    async fn read(&self, keys: &str, records: &[Record<'_>]) -> Result<Vec<Result<String, String>>> {
        let path = self.folder.path().join("frazil.toml");
        let config = Config::parse(&format!("[topics.t]\n{keys}"), &path).unwrap();
        let source = config.sources()[0].name();
        let settings = config.topic(source, &TopicName::new("t")).unwrap();
        let state = frazil_table::TopicState::new(source.clone(), TopicName::new("t"));
        let encoding = match known(&settings, &state) {
            Known::Settled(encoding) => encoding,
            // What the first values of Confluent's serializers decide.
            Known::Open => kept(ValueFormat::Registered, Some(ValueFraming::Confluent)),
        };
        let named = named_schema(&settings, |path| config.schema_file(path));
        let mapping = Mapping::default();
        let mut schemas = self.schemas.of_topic(&settings, encoding.format, &mapping)?;
        let records: Vec<_> = records.iter().map(|record| (Partition(0), record)).collect();
        let values = Values::read(&records, Side::Value, encoding, named.as_ref(), &mut schemas).await?;
        let readable = values.readable(&records);
        let mut found: Vec<_> = readable
            .poison
            .iter()
            .map(|(place, error)| (*place, Err(error.code().unwrap_or("none").to_owned())))
            .collect();
        for (record, place) in readable.encoded.iter().zip(&readable.places) {
            let words = match record.payload {
                Payload::Tombstone => "nothing".to_owned(),
                Payload::Raw(body) => format!("raw {}", String::from_utf8_lossy(body)),
                Payload::Json(body) => format!("json {}", String::from_utf8_lossy(body)),
                Payload::Encoded { schema, body } => {
                    format!("{} {}", schema.columns()[0].name, String::from_utf8_lossy(body))
                }
            };
            found.push((*place, Ok(words)));
        }
        found.sort_by_key(|(place, _)| *place);
        Ok(found.into_iter().map(|(_, words)| words).collect())
    }
}

fn record(value: Option<&[u8]>) -> Record<'_> {
    Record {
        offset: Offset(0),
        timestamp_ms: None,
        timestamp_type: TimestampType::Unknown,
        key: None,
        value,
        headers: Vec::new(),
        key_schema: None,
        value_schema: None,
    }
}

fn with_header<'r>(value: &'r [u8], header: &'r [u8]) -> Record<'r> {
    Record {
        headers: vec![Header {
            name: Cow::Borrowed("__value_schema_id"),
            value: Some(header),
        }],
        ..record(Some(value))
    }
}

fn with_metadata<'r>(value: &'r [u8], id: &'r str) -> Record<'r> {
    Record {
        value_schema: Some(Box::new(SchemaMetadata {
            data_format: Cow::Borrowed("AVRO"),
            schema_id: Cow::Borrowed(id),
        })),
        ..record(Some(value))
    }
}

#[tokio::test]
async fn every_way_of_naming_a_schema_leads_to_it() {
    let bench = Bench::new();
    let confluent: &[u8] = &[0, 0, 0, 0, 7, b'x'];
    let glue = [&[3, 0], &GUID_BYTES[..], b"x"].concat();
    // zlib.compress(b"x") of CPython 3.11.
    let zlib = [
        &[3, 5],
        &GUID_BYTES[..],
        &[0x78, 0x9C, 0xAB, 0x00, 0x00, 0x00, 0x79, 0x00, 0x79],
    ]
    .concat();
    let guid = [&[1], &GUID_BYTES[..]].concat();
    let apicurio: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 7, b'x'];
    for (keys, record, expected) in [
        ("format = \"avro\"", record(Some(confluent)), Ok("by_id x")),
        ("format = \"avro\"", with_header(b"x", &guid), Ok("by_guid x")),
        ("format = \"avro\"", record(Some(&glue)), Ok("by_version x")),
        ("format = \"avro\"", record(Some(&zlib)), Ok("by_version x")),
        ("format = \"avro\"", with_metadata(b"x", "7"), Ok("by_id x")),
        (
            "schema = \"registry\"",
            with_metadata(b"x", GUID),
            Ok("by_version x"),
        ),
        ("framing = \"apicurio\"", record(Some(apicurio)), Ok("by_id x")),
        (
            "schema = \"file:own/r.avsc\"",
            record(Some(b"x")),
            Ok("by_file x"),
        ),
        (
            "schema = \"subject:t-value\"",
            record(Some(b"x")),
            Ok("by_subject x"),
        ),
        (
            "schema = \"subject:t-value@1\"",
            record(Some(b"x")),
            Ok("by_id x"),
        ),
        ("format = \"avro\"", record(None), Ok("nothing")),
        // Messages are chosen by Confluent's path, Glue's sorted index, Apicurio's name, or the configuration.
        ("", record(Some(b"\0\0\0\0\x0A\0x")), Ok("b x")),
        ("", record(Some(b"\0\0\0\0\x0A\x02\x02x")), Ok("a x")),
        ("", record(Some(b"\0\0\0\0\x0A\x04\0\0x")), Ok("i x")),
        (
            "framing = \"apicurio\"",
            record(Some(b"\0\0\0\0\0\0\0\0\x0A\x03\x0A\x01Ax")),
            Ok("a x"),
        ),
        (
            "schema = \"file:ids/10.proto\"\nmessage = \"p.A\"",
            record(Some(b"x")),
            Ok("a x"),
        ),
        (
            "schema = \"file:ids/10.proto\"",
            record(Some(b"x")),
            Err("protobuf.message_unstated"),
        ),
        (
            "schema = \"file:ids/12.proto\"",
            record(Some(b"x")),
            Ok("cents x"),
        ),
        ("", record(Some(b"\0\0\0\0\x0B\0x")), Ok("m x")),
        ("", record(Some(b"\0\0\0\0\x0D{}")), Ok("j {}")),
        ("", record(Some(b"\0\0\0\0\x0A")), Err("wire.bad_message_index")),
        // JSON without a schema takes any framing off, and needs none.
        ("format = \"json\"", record(Some(b"{}")), Ok("json {}")),
        (
            "format = \"json\"",
            record(Some(b"\0\0\0\0\x07{}")),
            Ok("json {}"),
        ),
        (
            "format = \"json\"\nframing = \"none\"",
            record(Some(confluent)),
            Ok("json \0\0\0\0\x07x"),
        ),
        ("format = \"json\"", with_metadata(b"{}", "7"), Ok("json {}")),
        // Undecoded values are as they came, unless a framing is configured.
        (
            "format = \"raw\"",
            record(Some(confluent)),
            Ok("raw \0\0\0\0\x07x"),
        ),
        (
            "format = \"string\"\nframing = \"confluent\"",
            record(Some(confluent)),
            Ok("raw x"),
        ),
        // What is not there, is not usable, is not Avro, or is not framed so.
        (
            "format = \"avro\"",
            record(Some(&[0, 0, 0, 0, 6])),
            Err("registry.unknown_schema"),
        ),
        (
            "format = \"avro\"",
            record(Some(&[0, 0, 0, 0, 8])),
            Err("avro.schema_invalid"),
        ),
        (
            "format = \"protobuf\"",
            record(Some(confluent)),
            Err("registry.other_format"),
        ),
        (
            "format = \"json_schema\"",
            record(Some(confluent)),
            Err("registry.other_format"),
        ),
        ("format = \"avro\"", record(Some(b"{}")), Err("wire.unrecognised")),
        (
            "framing = \"confluent\"",
            record(Some(&glue)),
            Err("wire.not_confluent"),
        ),
        (
            "framing = \"lambda\"",
            record(Some(confluent)),
            Err("wire.no_schema_metadata"),
        ),
    ] {
        let shown = format!("{keys} {record:?}");
        let found = bench.read(keys, &[record]).await.unwrap();
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(found, [expected], "{shown}");
    }
}

#[tokio::test]
async fn a_schema_is_compiled_once_and_its_fault_is_told_each_time() {
    let bench = Bench::new();
    let values: [&[u8]; 5] = [
        &[0, 0, 0, 0, 7, b'a'],
        &[0, 0, 0, 0, 6],
        &[0, 0, 0, 0, 7, b'b'],
        &[0, 0, 0, 0, 6],
        &[0, 0],
    ];
    let records = values.map(|value| record(Some(value)));
    for _ in 0..2 {
        let found = bench
            .read("format = \"avro\"\nframing = \"confluent\"", &records)
            .await;
        let unknown = Err("registry.unknown_schema".to_owned());
        assert_eq!(
            found.unwrap(),
            [
                Ok("by_id a".to_owned()),
                unknown.clone(),
                Ok("by_id b".to_owned()),
                unknown,
                Err("wire.too_short".to_owned())
            ]
        );
    }
    assert_eq!(bench.schemas.kept(), (1, 1));
}

#[tokio::test]
async fn a_registry_that_is_away_fails_the_event() {
    let bench = Bench::new();
    let good = [record(Some(&[0, 0, 0, 0, 7, b'a']))];
    std::fs::rename(
        bench.folder.path().join("ids"),
        bench.folder.path().join("elsewhere"),
    )
    .unwrap();
    let error = bench.read("format = \"avro\"", &good).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let absent = [record(Some(b"x"))];
    let error = bench
        .read("schema = \"file:absent.avsc\"", &absent)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    // What needs no registry goes on.
    let json = [record(Some(b"{}"))];
    assert_eq!(
        bench.read("format = \"json\"", &json).await.unwrap(),
        [Ok("json {}".to_owned())]
    );
}

#[tokio::test]
async fn an_event_of_bombs_is_given_back() {
    let bench = Bench::new();
    let zeros = vec![0; frazil_kafka::wire::MAX_INFLATED_BYTES];
    let bomb = [
        &[3, 5],
        &GUID_BYTES[..],
        &miniz_oxide::deflate::compress_to_vec_zlib(&zeros, 6),
    ]
    .concat();
    let records: Vec<_> = (0..5).map(|_| record(Some(&bomb))).collect();
    let error = bench.read("format = \"avro\"", &records).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.code()),
        (ErrorKind::Unavailable, Some("wire.event_too_large"))
    );
    assert!(bench.read("format = \"avro\"", &records[..1]).await.unwrap()[0].is_ok());
}

#[test]
fn files_start_from_the_folder_of_the_configuration() {
    let config = Config::parse(
        "[topics.t]\nschema = \"file:s/r.avsc\"",
        Path::new("/etc/frazil/frazil.toml"),
    )
    .unwrap();
    let settings = config
        .topic(config.sources()[0].name(), &TopicName::new("t"))
        .unwrap();
    assert_eq!(
        named_schema(&settings, |path| config.schema_file(path)),
        Some(SchemaRef::File("/etc/frazil/s/r.avsc".into()))
    );
}
