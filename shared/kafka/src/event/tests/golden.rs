//! The events of the repository against what their generator wrote about them.

use std::path::Path;

use serde_json::{Value, json};

use crate::{EventBuffer, OriginKind, Record, outline};

fn read(file: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../events")
        .join(file);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn check(name: &str, kind: OriginKind) {
    let json = read(name);
    let golden: Value = serde_json::from_slice(&read(&format!("golden/{name}"))).unwrap();
    let mut buffer = EventBuffer::default();
    let event = buffer.parse(&json).unwrap();
    assert_eq!(event.origin.kind, kind);
    assert_eq!(json!(event.record_count()), golden["records"]);

    let dead: Vec<(&Value, &Value)> = golden["dead_letters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| (&d["partition"], &d["offset"]))
        .collect();
    let mut rows = golden["rows"].as_array().unwrap().iter();
    for batch in &event.batches {
        assert_eq!(json!(batch.topic_partition.topic), golden["topic"]);
        let partition = json!(batch.topic_partition.partition);
        for record in &batch.records {
            if !dead.contains(&(&partition, &json!(record.offset))) {
                let row = rows.next().unwrap();
                assert_eq!(row["_kafka_partition"], partition);
                check_row(record, row);
            }
        }
    }
    assert_eq!(rows.next(), None);

    let ranges: Vec<_> = event
        .batches
        .iter()
        .map(|batch| (batch.topic_partition.clone(), batch.range()))
        .collect();
    assert_eq!(outline(&json).unwrap().ranges, ranges);
}

fn check_row(record: &Record<'_>, row: &Value) {
    assert_eq!(json!(record.offset), row["_kafka_offset"]);
    assert_eq!(json!(record.is_tombstone()), row["_kafka_tombstone"], "{row}");
    assert_eq!(
        record.timestamp_ms.is_none(),
        row["_kafka_timestamp"].is_null(),
        "{row}"
    );
    if let (Some(millis), Some(text)) = (record.timestamp_ms, row["_kafka_timestamp"].as_str()) {
        let of_second = format!(".{:03}000Z", millis % 1000);
        assert!(text.ends_with(&of_second), "{millis} is not {text}");
    }
    let key = record.key.map(|key| match std::str::from_utf8(key) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("base64:{}", base64_simd::STANDARD.encode_to_string(key)),
    });
    assert_eq!(json!(key), row["_kafka_key"]);
    let headers = record.headers.iter().map(|header| {
        json!({"name": header.name, "value": header.value.map(|value| base64_simd::STANDARD.encode_to_string(value))})
    });
    assert_eq!(headers.collect::<Value>(), row["_kafka_headers"]);
}

#[test]
fn orders() {
    check("orders-avro.json", OriginKind::Msk);
}

#[test]
fn poison() {
    check("orders-poison-avro.json", OriginKind::Msk);
}

#[test]
fn clicks() {
    check("clicks-json.json", OriginKind::Msk);
}

#[test]
fn nasty() {
    check("nasty.json", OriginKind::SelfManaged);
}
