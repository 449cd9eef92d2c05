use proptest::prelude::*;
use serde_json::{Value, json};

use frazil_core::{Partition, TopicName};

use super::*;
use crate::outline;

mod golden;

fn topic_partition(topic: &str, partition: i32) -> TopicPartition {
    TopicPartition {
        topic: TopicName::new(topic),
        partition: Partition(partition),
    }
}

/// An event with the given `records`.
fn event(records: &Value) -> String {
    json!({"eventSource": "aws:kafka", "bootstrapServers": "b-1:9098", "records": records}).to_string()
}

/// An event with one record, of `t-0`, made of `fields` over the least that a record needs.
fn record(fields: Value) -> String {
    let mut record = json!({"topic": "t", "partition": 0, "offset": 5});
    let Value::Object(fields) = fields else {
        panic!("fields are an object")
    };
    record.as_object_mut().unwrap().extend(fields);
    event(&json!({"t-0": [record]}))
}

fn refused(event: &str) -> String {
    let error = EventBuffer::default()
        .parse(event.as_bytes())
        .map(|_| ())
        .expect_err(event);
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    error.to_string()
}

#[test]
fn key_and_value() {
    let check = |key: Value, value: Value, expected: (Option<&[u8]>, Option<&[u8]>)| {
        let json = record(json!({"key": key, "value": value}));
        let mut buffer = EventBuffer::default();
        let event = buffer.parse(json.as_bytes()).unwrap();
        let record = &event.batches[0].records[0];
        assert_eq!((record.key, record.value), expected, "{json}");
        assert_eq!(record.is_tombstone(), expected.1.is_none());
    };
    check(json!("azE="), json!("djE="), (Some(b"k1"), Some(b"v1")));
    check(json!("/+8="), json!("AA=="), (Some(&[0xFF, 0xEF]), Some(&[0])));
    check(Value::Null, Value::Null, (None, None));
    check(json!(""), json!(""), (None, None));

    let missing = record(json!({}));
    let mut buffer = EventBuffer::default();
    let event = buffer.parse(missing.as_bytes()).unwrap();
    assert_eq!(
        (event.batches[0].records[0].key, event.batches[0].records[0].value),
        (None, None)
    );

    // Slashes may be escaped; then the string cannot be borrowed.
    let escaped = record(json!({})).replace("\"offset\":5", r#""offset":5,"value":"\/+8\u003d""#);
    assert!(escaped.contains(r"\/"), "{escaped}");
    let event = buffer.parse(escaped.as_bytes()).unwrap();
    assert_eq!(event.batches[0].records[0].value, Some(&[0xFF, 0xEF][..]));
}

#[test]
fn timestamps() {
    let check = |fields: Value, expected: (Option<i64>, TimestampType)| {
        let json = record(fields);
        let mut buffer = EventBuffer::default();
        let event = buffer.parse(json.as_bytes()).unwrap();
        let record = &event.batches[0].records[0];
        assert_eq!((record.timestamp_ms, record.timestamp_type), expected, "{json}");
    };
    // A value that float arithmetic takes for one millisecond less.
    let create = json!({"timestamp": 1_545_084_650_987_i64, "timestampType": "CREATE_TIME"});
    check(create, (Some(1_545_084_650_987), TimestampType::CreateTime));
    check(
        json!({"timestamp": 0, "timestampType": "LOG_APPEND_TIME"}),
        (Some(0), TimestampType::LogAppendTime),
    );
    check(
        json!({"timestamp": -1, "timestampType": "CREATE_TIME"}),
        (None, TimestampType::CreateTime),
    );
    check(
        json!({"timestamp": null, "timestampType": null}),
        (None, TimestampType::Unknown),
    );
    check(
        json!({"timestampType": "NO_TIMESTAMP_TYPE"}),
        (None, TimestampType::Unknown),
    );
    check(
        json!({"timestamp": i64::MAX}),
        (Some(i64::MAX), TimestampType::Unknown),
    );
}

#[test]
fn headers() {
    let check = |fields: Value, expected: &[(&str, Option<&[u8]>)]| {
        let json = record(fields);
        let mut buffer = EventBuffer::default();
        let event = buffer.parse(json.as_bytes()).unwrap();
        let headers = &event.batches[0].records[0].headers;
        let found: Vec<_> = headers
            .iter()
            .map(|header| (&*header.name, header.value))
            .collect();
        assert_eq!(found, expected, "{json}");
    };
    check(json!({}), &[]);
    check(json!({"headers": null}), &[]);
    check(json!({"headers": []}), &[]);
    check(
        json!({"headers": [{"a": [-1, -128, 127, 255, 128, 0]}]}),
        &[("a", Some(&[255, 128, 127, 255, 128, 0]))],
    );
    check(
        json!({"headers": [{"a": null}, {"b": []}]}),
        &[("a", None), ("b", Some(&[]))],
    );
    let repeated = json!({"value": "djE=", "headers": [{"a": [1]}, {"b": [2, 3]}, {"a": [4]}, {}]});
    check(
        repeated,
        &[("a", Some(&[1])), ("b", Some(&[2, 3])), ("a", Some(&[4]))],
    );
    check(json!({"headers": [{"tab\t": [9]}]}), &[("tab\t", Some(&[9]))]);
}

#[test]
fn schema_metadata() {
    let check = |metadata: Value, expected: Option<(&str, &str)>| {
        let json = record(json!({"valueSchemaMetadata": metadata}));
        let mut buffer = EventBuffer::default();
        let event = buffer.parse(json.as_bytes()).unwrap();
        let record = &event.batches[0].records[0];
        let found = record
            .value_schema
            .as_ref()
            .map(|schema| (&*schema.data_format, &*schema.schema_id));
        assert_eq!(found, expected, "{json}");
        assert_eq!(record.key_schema, None);
    };
    check(
        json!({"dataFormat": "AVRO", "schemaId": "1234"}),
        Some(("AVRO", "1234")),
    );
    check(json!({"dataFormat": "JSON", "schemaId": 7}), Some(("JSON", "7")));
    check(json!({"dataFormat": "JSON"}), None);
    check(Value::Null, None);
}

#[test]
fn origins() {
    let check = |head: Value, expected: (OriginKind, Option<&str>, &[&str])| {
        let mut head = head;
        head.as_object_mut().unwrap().insert("records".into(), json!({}));
        let json = head.to_string();
        let mut buffer = EventBuffer::default();
        let event = buffer.parse(json.as_bytes()).unwrap();
        let origin = &event.origin;
        let servers: Vec<&str> = origin.bootstrap_servers.iter().map(String::as_str).collect();
        assert_eq!(
            (origin.kind, origin.source_arn.as_deref(), servers.as_slice()),
            expected,
            "{json}"
        );
        assert!(event.batches.is_empty());
        assert_eq!(outline(json.as_bytes()).unwrap().origin, *origin);
    };
    let arn = "arn:aws:kafka:eu-central-1:123456789012:cluster/shop/abc-1";
    check(
        json!({"eventSource": "aws:kafka", "eventSourceArn": arn, "bootstrapServers": "b-2:9098, b-1:9098"}),
        (OriginKind::Msk, Some(arn), &["b-2:9098", "b-1:9098"]),
    );
    check(
        json!({"eventSource": "SelfManagedKafka", "bootstrapServers": "k:9092", "somethingNew": [{"a": [1]}]}),
        (OriginKind::SelfManaged, None, &["k:9092"]),
    );
    check(
        json!({"eventSource": "aws:SelfManagedKafka"}),
        (OriginKind::SelfManaged, None, &[]),
    );
}

#[test]
fn batches_are_sorted_and_hold_each_offset_once() {
    let at = |topic: &str, partition: i32, offset: i64| json!({"topic": topic, "partition": partition, "offset": offset, "value": "djE=", "later": {"x": [1, {}]}});
    let json = event(&json!({
        "web.clicks-v1-10": [at("web.clicks-v1", 10, 3)],
        "web.clicks-v1-2": [at("web.clicks-v1", 2, 9), at("web.clicks-v1", 2, 4), at("web.clicks-v1", 2, 9),
            at("web.clicks-v1", 2, 6)],
        "a-1-0": [at("a-1", 0, 0)],
        "a-0": [],
    }));
    // A key that comes twice in the JSON: both arrays count.
    let json = json.replace(
        "\"a-0\":[]",
        &format!("\"a-1-0\":[{}]", at("a-1", 0, Offset::MAX.0)),
    );

    let mut buffer = EventBuffer::default();
    let event = buffer.parse(json.as_bytes()).unwrap();
    let found: Vec<(String, i32, Vec<i64>)> = event
        .batches
        .iter()
        .map(|batch| {
            let TopicPartition { topic, partition } = &batch.topic_partition;
            (
                topic.to_string(),
                partition.0,
                batch.records.iter().map(|record| record.offset.0).collect(),
            )
        })
        .collect();
    let expected = [
        ("a-1".to_owned(), 0, vec![0, Offset::MAX.0]),
        ("web.clicks-v1".to_owned(), 2, vec![4, 6, 9]),
        ("web.clicks-v1".to_owned(), 10, vec![3]),
    ];
    assert_eq!(found, expected);
    assert_eq!(event.record_count(), 6);

    let range = |first, last| OffsetRange::new(Offset(first), Offset(last)).unwrap();
    let ranges = [
        (topic_partition("a-1", 0), range(0, Offset::MAX.0)),
        (topic_partition("web.clicks-v1", 2), range(4, 9)),
        (topic_partition("web.clicks-v1", 10), range(3, 3)),
    ];
    let batches: Vec<_> = event
        .batches
        .iter()
        .map(|b| (b.topic_partition.clone(), b.range()))
        .collect();
    assert_eq!(batches, ranges);
    let outline = outline(json.as_bytes()).unwrap();
    assert_eq!((outline.ranges.as_slice(), outline.records), (&ranges[..], 7));
}

#[test]
fn one_offset_with_two_contents_is_refused() {
    let check = |a: Value, b: Value| {
        let full = |fields: Value| {
            let mut record =
                json!({"topic": "t", "partition": 0, "offset": 5, "timestamp": 1, "value": "djE="});
            record
                .as_object_mut()
                .unwrap()
                .extend(fields.as_object().unwrap().clone());
            record
        };
        let message = refused(&event(&json!({"t-0": [full(a), full(b)]})));
        assert!(
            message.contains("two different records of t-0 have offset 5"),
            "{message}"
        );
    };
    check(json!({}), json!({"value": "djI="}));
    check(json!({}), json!({"value": null}));
    check(json!({}), json!({"timestamp": 2}));
    check(json!({}), json!({"key": "azE="}));
    check(json!({"headers": [{"a": [1]}]}), json!({"headers": [{"a": [2]}]}));
}

#[test]
fn what_is_wrong_is_named() {
    let check = |event: &str, parts: &[&str]| {
        let message = refused(event);
        for part in parts {
            assert!(message.contains(part), "{message}\nlacks {part:?}");
        }
    };
    check("", &["cut off", "line 1 column 0"]);
    check("not json", &["not JSON", "line 1 column 2"]);
    check("[1]", &["a Kafka event: an object", "line 1 column 0"]);
    let whole = record(json!({"value": "djE="}));
    check(&whole[..whole.len() - 9], &["cut off", "line 1 column"]);
    check(&format!("{whole}x"), &["not JSON: trailing characters"]);
    check(r#"{"eventSource": "aws:kafka"}"#, &["missing field `records`"]);
    check(
        r#"{"eventSource": "aws:kafka", "records": null}"#,
        &["`records`: an object", "line 1 column 44"],
    );
    check(r#"{"records": {}}"#, &["`eventSource` is missing", "aws:kafka"]);
    check(
        r#"{"eventSource": "aws:sqs", "records": {}}"#,
        &["`eventSource` is \"aws:sqs\"", "SelfManagedKafka"],
    );
    check(
        &record(json!({"offset": -4})),
        &["t-0 has offset -4", "line 1 column"],
    );
    check(
        &record(json!({"offset": i64::MAX})),
        &["t-0 has offset 9223372036854775807"],
    );
    check(
        &record(json!({"offset": u64::MAX})),
        &["t-0 has offset 18446744073709551615"],
    );
    check(&record(json!({"offset": 9e18})), &["t-0 has offset 9e18"]);
    let twice = record(json!({})).replace("\"offset\":5", "\"offset\":5,\"offset\":6");
    check(&twice, &["duplicate field `offset`"]);
    check(&record(json!({"offset": 1.5})), &["t-0 has offset 1.5"]);
    check(
        &record(json!({"offset": "5"})),
        &["invalid type: string \"5\", expected an offset"],
    );
    check(
        &record(json!({"topic": "u"})),
        &["topic \"u\", partition 0, under the key \"t-0\""],
    );
    check(
        &record(json!({"partition": 3})),
        &["topic \"t\", partition 3, under the key \"t-0\""],
    );
    check(
        &event(&json!({"t": []})),
        &["\"t\" in `records` is not written <topic>-<partition>"],
    );
    check(&event(&json!({"t--1": {}})), &["the list of records of t--1"]);
    check(
        &event(&json!({"t-0": [{"partition": 0, "offset": 1}]})),
        &["missing field `topic`", "column"],
    );
    check(
        &record(json!({"value": "djE"})),
        &["the value of t-0 at offset 5 is not base64", "column"],
    );
    check(
        &record(json!({"key": "***="})),
        &["the key of t-0 at offset 5 is not base64"],
    );
    check(
        &record(json!({"headers": [{"a": [256]}]})),
        &["256 in a header's value is not a byte"],
    );
    check(
        &record(json!({"headers": [{"a": "x"}]})),
        &["a header's value: a list of bytes"],
    );
    check(
        &record(json!({"headers": {"a": [1]}})),
        &["headers: a list of objects"],
    );
}

#[test]
fn bounds() {
    let check = |bytes: &[u8], part: &str| {
        let error = EventBuffer::default().parse(bytes).map(|_| ()).expect_err(part);
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(part), "{error}");
    };
    check(
        &vec![b' '; MAX_EVENT_BYTES + 1],
        "33554433 bytes are more than the 33554432",
    );
    check(b"{\"eventSource\": \"\xFF\"}", "byte 17 is not UTF-8");

    let one = r#"{"topic":"t","partition":0,"offset":1},"#;
    let many = one.repeat(MAX_RECORDS) + one.trim_end_matches(',');
    check(
        format!(r#"{{"records":{{"t-0":[{many}]}}}}"#).as_bytes(),
        "more than 250000 records",
    );

    let many = r#"{"a":[]},"#.repeat(MAX_HEADERS) + r#"{"a":[]}"#;
    let record = format!(r#"{{"topic":"t","partition":0,"offset":1,"headers":[{many}]}}"#);
    check(
        format!(r#"{{"records":{{"t-0":[{record}]}}}}"#).as_bytes(),
        "more than 1000000 headers",
    );

    // Deep nesting: skipped without recursion where it is ignored, refused where it is not.
    let deep = "[".repeat(1_000_000);
    check(format!(r#"{{"extra":{deep}"#).as_bytes(), "cut off");
    let closed = deep.clone() + &"]".repeat(1_000_000);
    let ignored = format!(r#"{{"extra":{closed},"eventSource":"aws:kafka","records":{{}}}}"#);
    assert!(EventBuffer::default().parse(ignored.as_bytes()).is_ok());
    check(
        format!(r#"{{"records":{deep}"#).as_bytes(),
        "`records`: an object",
    );
}

/// What a producer wrote, to be written as an event and read back.
#[derive(Debug, Clone)]
struct Written {
    timestamp: Option<i64>,
    key: Vec<u8>,
    value: Vec<u8>,
    headers: Vec<(String, Option<Vec<u8>>)>,
    /// Chooses among the forms in which Lambda may write the same thing.
    form: u8,
}

fn written() -> impl Strategy<Value = Written> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..40);
    let headers = prop::collection::vec((".{0,6}", prop::option::of(bytes())), 0..4);
    (
        prop::option::of(0..i64::MAX),
        bytes(),
        bytes(),
        headers,
        any::<u8>(),
    )
        .prop_map(|(timestamp, key, value, headers, form)| Written {
            timestamp,
            key,
            value,
            headers,
            form,
        })
}

type Log = std::collections::BTreeMap<(String, i32), std::collections::BTreeMap<i64, Written>>;

fn log() -> impl Strategy<Value = Log> {
    let records = prop::collection::btree_map(0..=Offset::MAX.0, written(), 1..12);
    prop::collection::btree_map(("[a-z][a-z0-9._-]{0,8}", 0..2000i32), records, 0..5)
}

fn write_record(topic: &str, partition: i32, offset: i64, written: &Written) -> Value {
    let mut record = json!({"topic": topic, "partition": partition, "offset": offset});
    let fields = record.as_object_mut().unwrap();
    fields.insert("timestamp".into(), json!(written.timestamp.unwrap_or(-1)));
    for (name, bytes) in [("key", &written.key), ("value", &written.value)] {
        match (bytes.as_slice(), written.form % 3) {
            ([], 0) => {}
            ([], 1) => drop(fields.insert(name.into(), Value::Null)),
            (bytes, _) => {
                drop(fields.insert(name.into(), json!(base64_simd::STANDARD.encode_to_string(bytes))))
            }
        }
    }
    let byte = |&byte: &u8| {
        if written.form & 4 == 0 {
            json!(byte as i8)
        } else {
            json!(byte)
        }
    };
    let header = |(name, value): &(String, Option<Vec<u8>>)| json!({name: value.as_ref().map(|value| value.iter().map(byte).collect::<Vec<_>>())});
    if !(written.headers.is_empty() && written.form & 8 == 0) {
        fields.insert("headers".into(), written.headers.iter().map(header).collect());
    }
    record
}

/// The log as an event; `shuffle` decides the order within each array, and some records come twice.
fn write_event(log: &Log, shuffle: u64) -> String {
    let mut records = serde_json::Map::new();
    for ((topic, partition), batch) in log {
        let mut array: Vec<Value> = Vec::new();
        for (at, (offset, written)) in batch.iter().enumerate() {
            let record = write_record(topic, *partition, *offset, written);
            if written.form & 0x30 == 0 {
                array.push(record.clone());
            }
            let place = (shuffle >> (at % 50)) as usize % (array.len() + 1);
            array.insert(place, record);
        }
        records.insert(format!("{topic}-{partition}"), Value::Array(array));
    }
    event(&Value::Object(records))
}

fn some(bytes: &[u8]) -> Option<&[u8]> {
    (!bytes.is_empty()).then_some(bytes)
}

proptest! {
    #[test]
    fn what_was_written_is_read(log in log(), shuffle in any::<u64>()) {
        let json = write_event(&log, shuffle);
        let mut buffer = EventBuffer::default();
        let event = buffer.parse(json.as_bytes()).unwrap();
        prop_assert_eq!(event.batches.len(), log.len());
        for (batch, ((topic, partition), records)) in event.batches.iter().zip(&log) {
            prop_assert_eq!(&batch.topic_partition, &topic_partition(topic, *partition));
            prop_assert_eq!(batch.records.len(), records.len());
            for (record, (offset, written)) in batch.records.iter().zip(records) {
                prop_assert_eq!(record.offset.0, *offset);
                prop_assert_eq!(record.timestamp_ms, written.timestamp);
                prop_assert_eq!(record.key, some(&written.key));
                prop_assert_eq!(record.value, some(&written.value));
                let headers: Vec<_> = record.headers.iter().map(|h| (&*h.name, h.value)).collect();
                let wanted: Vec<_> = written.headers.iter().map(|(n, v)| (n.as_str(), v.as_deref())).collect();
                prop_assert_eq!(headers, wanted);
            }
        }
        let ranges: Vec<_> = event.batches.iter().map(|b| (b.topic_partition.clone(), b.range())).collect();
        prop_assert_eq!(outline(json.as_bytes()).unwrap().ranges, ranges);
    }

    #[test]
    fn arbitrary_bytes_are_refused_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(EventBuffer::default().parse(&bytes).is_err());
        prop_assert!(outline(&bytes).is_err());
    }

    /// Whatever bytes change, nothing panics, and what is accepted still keeps the promises about order.
    #[test]
    fn mutated_events_do_not_panic(
        log in log(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..6),
    ) {
        let mut bytes = write_event(&log, 0).into_bytes();
        for (at, byte, edit) in edits {
            let at = at.index(bytes.len());
            match edit {
                0 => bytes[at] = byte,
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, b"0-9\"[]{},:."[usize::from(byte) % 11]),
            }
        }
        let mut buffer = EventBuffer::default();
        if let Ok(event) = buffer.parse(&bytes) {
            for batch in &event.batches {
                prop_assert!(batch.records.is_sorted_by(|a, b| a.offset < b.offset));
                prop_assert_eq!(batch.range().first(), batch.records[0].offset);
            }
            let ranges: Vec<_> = event.batches.iter().map(|b| (b.topic_partition.clone(), b.range())).collect();
            prop_assert_eq!(outline(&bytes).unwrap().ranges, ranges);
        }
    }
}
