//! Event JSON → batches, on one core: `cargo bench -p frazil-kafka`.

use std::collections::BTreeMap;
use std::fmt::Write;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use frazil_kafka::EventBuffer;
use serde::Deserialize;
use serde::de::IgnoredAny;

fn main() {
    divan::main();
}

/// 45,072 records of 97 bytes over four partitions: 12.3 MB of JSON, 4.4 MB of raw values.
fn orders() -> String {
    let mut state = 7u64;
    let mut byte = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    let mut json =
        String::from(r#"{"eventSource":"aws:kafka","bootstrapServers":"b-1.shop.example:9098","records":{"#);
    for partition in 0..4 {
        let _ = write!(
            json,
            r#"{}"orders-{partition}":["#,
            if partition > 0 { "," } else { "" }
        );
        for offset in 0..11_268 {
            let value: Vec<u8> = (0..97).map(|_| byte()).collect();
            let key = format!("order-{partition}-{offset:08}");
            let _ = write!(
                json,
                r#"{}{{"topic":"orders","partition":{partition},"offset":{},"timestamp":{},"timestampType":"CREATE_TIME","key":"{}","value":"{}","headers":[]}}"#,
                if offset > 0 { "," } else { "" },
                1_000_000 + offset,
                1_796_040_000_000i64 + offset,
                base64_simd::STANDARD.encode_to_string(key),
                base64_simd::STANDARD.encode_to_string(value),
            );
        }
        json.push(']');
    }
    json.push_str("}}");
    json
}

#[divan::bench]
fn parse(bencher: Bencher<'_, '_>) {
    let json = orders();
    let mut buffer = EventBuffer::default();
    bencher.counter(BytesCount::of_str(&json)).bench_local(|| {
        let event = buffer
            .parse(black_box(json.as_bytes()))
            .expect("the event is valid");
        event.record_count()
    });
}

#[divan::bench]
fn outline(bencher: Bencher<'_, '_>) {
    let json = orders();
    bencher.counter(BytesCount::of_str(&json)).bench_local(|| {
        frazil_kafka::outline(black_box(json.as_bytes()))
            .expect("the event is valid")
            .records
    });
}

/// The part of `parse` that is JSON: the least that serde_json does for these records, borrowed.
#[divan::bench]
fn json_alone(bencher: Bencher<'_, '_>) {
    #[derive(Deserialize)]
    struct Event<'a> {
        #[serde(borrow)]
        records: BTreeMap<&'a str, Vec<Record<'a>>>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "read to be measured")]
    struct Record<'a> {
        topic: &'a str,
        partition: i32,
        offset: i64,
        timestamp: i64,
        timestamp_type: &'a str,
        key: &'a str,
        value: &'a str,
        headers: Vec<IgnoredAny>,
    }

    let json = orders();
    bencher.counter(BytesCount::of_str(&json)).bench_local(|| {
        let event: Event<'_> = serde_json::from_str(black_box(&json)).expect("the event is valid");
        event.records.len()
    });
}

/// The part of `parse` that is base64, to know what the rest costs.
#[divan::bench]
fn base64_alone(bencher: Bencher<'_, '_>) {
    let json = orders();
    let values: Vec<&str> = json
        .split("\"value\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let mut bytes = Vec::with_capacity(json.len());
    bencher.bench_local(|| {
        bytes.clear();
        for value in &values {
            base64_simd::STANDARD
                .decode_append(black_box(value), &mut bytes)
                .expect("base64");
        }
        bytes.len()
    });
}
