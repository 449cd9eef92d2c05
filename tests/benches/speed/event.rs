//! Lambda's event of a topic of orders.

use std::fmt::Write;

use super::generate::{Case, Language};

const PARTITIONS: usize = 4;

/// A value as Confluent's serializers frame it.
pub(crate) fn framed(case: Case, value: &[u8]) -> Vec<u8> {
    let prefix: &[u8] = match case.language {
        Language::Avro | Language::JsonSchema => &[0, 0, 0, 0, 7],
        // The first message of its file.
        Language::Protobuf => &[0, 0, 0, 0, 7, 0],
    };
    [prefix, value].concat()
}

/// The event that holds these values.
pub(crate) fn event_json(values: &[Vec<u8>]) -> String {
    let mut json =
        r#"{"eventSource":"aws:kafka","bootstrapServers":"b-1.shop.example:9098","records":{"#.to_owned();
    for (partition, values) in values.chunks(values.len().div_ceil(PARTITIONS)).enumerate() {
        let comma = if partition > 0 { "," } else { "" };
        let _ = write!(json, r#"{comma}"orders-{partition}":["#);
        for (offset, value) in values.iter().enumerate() {
            let comma = if offset > 0 { "," } else { "" };
            let key = base64_simd::STANDARD.encode_to_string(format!("order-{offset}"));
            let value = base64_simd::STANDARD.encode_to_string(value);
            let timestamp = 1_796_040_000_000i64 + offset as i64;
            let _ = write!(
                json,
                r#"{comma}{{"topic":"orders","partition":{partition},"offset":{offset},"timestamp":{timestamp},"timestampType":"CREATE_TIME","key":"{key}","value":"{value}","headers":[]}}"#
            );
        }
        json.push(']');
    }
    json.push_str("}}");
    json
}
