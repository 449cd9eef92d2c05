use frazil_core::{Offset, Partition, TopicPartition};
use frazil_kafka::{EventBuffer, OriginKind, TimestampType as ReadType};
use proptest::prelude::*;

use super::*;

/// A record with bytes of its own, to borrow from.
#[derive(Debug, Clone)]
struct Owned {
    partition: i32,
    timestamp_ms: i64,
    timestamp_type: TimestampType,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(String, Option<Vec<u8>>)>,
}

fn bytes() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop::option::of(prop::collection::vec(any::<u8>(), 0..40))
}

fn record() -> impl Strategy<Value = Owned> {
    let timestamp_type = prop_oneof![
        Just(TimestampType::CreateTime),
        Just(TimestampType::LogAppendTime),
        Just(TimestampType::None)
    ];
    let headers = prop::collection::vec(("\\PC{0,8}|[\"\\\\\u{0}\u{1f}]{0,3}", bytes()), 0..4);
    (
        0..3,
        -1_i64..2_000_000_000_000,
        timestamp_type,
        bytes(),
        bytes(),
        headers,
    )
        .prop_map(
            |(partition, timestamp_ms, timestamp_type, key, value, headers)| Owned {
                partition,
                timestamp_ms,
                timestamp_type,
                key,
                value,
                headers,
            },
        )
}

proptest! {
    /// What ingest reads of the event is what the broker had.
    #[test]
    fn an_event_is_read_back_as_it_was(records in prop::collection::vec(record(), 0..30)) {
        let topic = "web.clicks-v1";
        let form = EventForm::new(topic.into(), "b-1:9092,\"b-2\":9092");
        let mut encoded: Vec<EncodedRecord> = Vec::new();
        for (offset, record) in records.iter().enumerate() {
            let headers = record.headers.iter().map(|(name, value)| (name.as_str(), value.as_deref()));
            let record = KafkaRecord {
                topic,
                partition: record.partition,
                offset: offset as i64,
                timestamp_ms: record.timestamp_ms,
                timestamp_type: record.timestamp_type,
                key: record.key.as_deref(),
                value: record.value.as_deref(),
                headers: headers.collect(),
            };
            encoded.push(record.encode().unwrap());
        }
        encoded.sort_by_key(|record| (record.partition, record.offset));
        let event = form.event(&encoded);

        // The size that the rules reckon with is that of the event, give or take a comma for each list.
        let partitions: std::collections::BTreeSet<i32> = encoded.iter().map(|record| record.partition).collect();
        let reckoned = form.envelope_bytes()
            + partitions.iter().map(|partition| form.partition_bytes(*partition)).sum::<usize>()
            + encoded.iter().map(EventForm::record_bytes).sum::<usize>();
        prop_assert!(event.len() <= reckoned && reckoned <= event.len() + partitions.len() * 2 + 1);

        let mut buffer = EventBuffer::default();
        let read = buffer.parse(&event).unwrap();
        prop_assert_eq!(read.origin.kind, OriginKind::SelfManaged);
        prop_assert_eq!(&read.origin.bootstrap_servers, &["b-1:9092", "\"b-2\":9092"]);
        prop_assert_eq!(read.record_count(), records.len());
        for batch in &read.batches {
            for found in &batch.records {
                let expected = &records[found.offset.0 as usize];
                let partition = TopicPartition { topic: topic.into(), partition: Partition(expected.partition) };
                prop_assert_eq!(&batch.topic_partition, &partition);
                prop_assert_eq!(found.timestamp_ms, Some(expected.timestamp_ms).filter(|at| *at != -1));
                let timestamp_type = match expected.timestamp_type {
                    TimestampType::CreateTime => ReadType::CreateTime,
                    TimestampType::LogAppendTime => ReadType::LogAppendTime,
                    TimestampType::None => ReadType::Unknown,
                };
                prop_assert_eq!(found.timestamp_type, timestamp_type);
                // Lambda does not tell empty from null, and neither does the reader.
                let present = |bytes: &Option<Vec<u8>>| bytes.clone().filter(|bytes| !bytes.is_empty());
                prop_assert_eq!(found.key.map(<[u8]>::to_vec), present(&expected.key));
                prop_assert_eq!(found.value.map(<[u8]>::to_vec), present(&expected.value));
                let headers: Vec<(String, Option<Vec<u8>>)> = found
                    .headers
                    .iter()
                    .map(|header| (header.name.to_string(), header.value.map(<[u8]>::to_vec)))
                    .collect();
                prop_assert_eq!(&headers, &expected.headers);
            }
            prop_assert!(batch.range().first() >= Offset(0));
        }
    }
}

#[test]
fn an_event_looks_like_lambdas() {
    let record = KafkaRecord {
        topic: "orders",
        partition: 3,
        offset: 7,
        timestamp_ms: 1_796_040_000_000,
        timestamp_type: TimestampType::CreateTime,
        key: Some(b"k"),
        value: None,
        headers: vec![("trace", Some(&[0xFF, 0x7F])), ("trace", None)],
    };
    let form = EventForm::new("orders".into(), "localhost:9092");
    let event = form.event(&[record.encode().unwrap()]);
    assert_eq!(
        String::from_utf8(event).unwrap(),
        r#"{"eventSource":"SelfManagedKafka","bootstrapServers":"localhost:9092","records":{"orders-3":[{"topic":"orders","partition":3,"offset":7,"timestamp":1796040000000,"timestampType":"CREATE_TIME","key":"aw==","value":null,"headers":[{"trace":[-1,127]},{"trace":null}]}]}}"#
    );
}
