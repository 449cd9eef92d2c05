use frazil_schema::{AvroSchema, SourceSchema};

use super::{Table, poison, records, values};
use crate::{DecodeOptions, EncodedRecord, Payload, TimestampRange, prepare};

/// 2000-01-01T12:00Z to 2030-01-01T12:00Z.
const RANGE: TimestampRange = TimestampRange {
    first_micros: 946_728_000_000_000,
    last_micros: 1_893_499_200_000_000,
};

fn schema(fields: &str) -> SourceSchema {
    let text = format!(r#"{{"type": "record", "name": "R", "fields": [{fields}]}}"#);
    SourceSchema::Avro(AvroSchema::parse(&text).unwrap())
}

/// Avro's int and long.
fn varint(value: i64) -> Vec<u8> {
    let mut zigzag = ((value << 1) ^ (value >> 63)) as u64;
    let mut bytes = Vec::new();
    while zigzag >= 0x80 {
        bytes.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    bytes.push(zigzag as u8);
    bytes
}

/// The reasons and hints of values of the field `At` of this type, in a table that is partitioned by `at`.
fn check(field_type: &str, at: &[i64]) -> Vec<(usize, String, String)> {
    let schema = schema(&format!(
        r#"{{"name": "N", "type": "int"}}, {{"name": "At", "type": {field_type}}}"#
    ));
    let bodies: Vec<Vec<u8>> = at.iter().map(|at| [varint(7), varint(*at)].concat()).collect();
    let records = records(bodies.iter().map(|body| Payload::Encoded {
        schema: &schema,
        body,
    }));
    let mut prepared = prepare(&records, DecodeOptions::default()).unwrap();
    prepared.bound_partitions(&["n", "at", "missing"], RANGE);
    let poison: Vec<(usize, String, String)> = prepared
        .poison()
        .iter()
        .map(|poison| {
            assert_eq!(poison.error.code(), Some("value.outside_partition_range"));
            (
                poison.index,
                poison.error.message().to_owned(),
                poison.error.hint().unwrap_or_default().to_owned(),
            )
        })
        .collect();
    let rows: Vec<usize> = prepared.rows().collect();
    let expected: Vec<usize> = (0..at.len())
        .filter(|index| poison.iter().all(|(of, _, _)| of != index))
        .collect();
    assert_eq!(rows, expected);
    let batch = Table::default().take(&prepared).unwrap();
    assert_eq!(batch.num_rows(), rows.len());
    poison
}

const CLOCK: &str =
    "correct the producer's clock, or widen `partition_range` and `frazil dead-letters TABLE --retry`";

fn reason(value: &str) -> String {
    format!("field `At`: {value} is outside the topic's partition_range, and the table is partitioned by it")
}

#[test]
fn instants_outside_are_poison_with_the_likely_unit() {
    let millis = r#"{"type": "long", "logicalType": "timestamp-millis"}"#;
    let found = check(
        millis,
        &[
            946_728_000_000,     // the first that is within
            946_727_999_999,     // the last before
            1_893_499_200_000,   // the last that is within
            1_893_499_200_001,   // the first after
            1_764_500_000,       // seconds
            -1,                  // before 1970
            253_402_300_799_999, // the end of year 9999
        ],
    );
    let expected = [
        (1, "2000-01-01T11:59:59.999000+00:00", CLOCK),
        (3, "2030-01-01T12:00:00.001000+00:00", CLOCK),
        (
            4,
            "1970-01-21T10:08:20.000000+00:00",
            "it looks like the producer counts in a unit 1,000 times as long as what the schema says",
        ),
        (5, "1969-12-31T23:59:59.999000+00:00", CLOCK),
        (6, "9999-12-31T23:59:59.999000+00:00", CLOCK),
    ];
    assert_eq!(
        found,
        expected.map(|(at, value, hint)| (at, reason(value), hint.to_owned()))
    );

    let nanos = r#"{"type": "long", "logicalType": "timestamp-nanos"}"#;
    let found = check(nanos, &[1_764_500_000_000_000_000, 1_764_500_000_000_000]);
    let hint = "it looks like the producer counts in a unit 1,000 times as long as what the schema says";
    assert_eq!(
        found,
        [(1, reason("1970-01-21T10:08:20.000000+00:00"), hint.to_owned())]
    );
}

#[test]
fn a_date_is_within_as_a_whole_and_other_types_always_are() {
    let date = r#"{"type": "int", "logicalType": "date"}"#;
    let found = check(date, &[10_957, 10_956, 21_915, 21_916]);
    let expected = [(1, "1999-12-31"), (3, "2030-01-02")];
    assert_eq!(
        found,
        expected.map(|(at, value)| (at, reason(value), CLOCK.to_owned()))
    );
    assert_eq!(check("\"long\"", &[i64::MIN, i64::MAX]), []);
    let nullable = r#"["null", {"type": "int", "logicalType": "date"}]"#;
    assert_eq!(check(nullable, &[0]), []);
}

#[test]
fn kafkas_timestamp_and_keys_count_as_well() {
    let value = schema(r#"{"name": "v", "type": "int"}"#);
    let key = schema(r#"{"name": "v", "type": {"type": "int", "logicalType": "date"}}"#);
    let (inside, outside) = (varint(20_000), varint(40_000));
    let mut values_of: Vec<EncodedRecord<'_>> = records((0..4).map(|_| Payload::Encoded {
        schema: &value,
        body: b"\x0e",
    }));
    values_of[1].timestamp_ms = Some(0);
    values_of[2].timestamp_ms = Some(-1);
    let keys =
        records([&inside, &inside, &inside, &outside].map(|body| Payload::Encoded { schema: &key, body }));
    let prepared = |columns: &[&str]| {
        let options = DecodeOptions::default();
        let mut prepared = prepare(&values_of, options)
            .unwrap()
            .with_keys(prepare(&keys, options).unwrap());
        prepared.bound_partitions(columns, RANGE);
        prepared
    };
    let found = prepared(&["_kafka_timestamp", "key_v"]);
    let outside = "is outside the topic's partition_range, and the table is partitioned by it";
    assert_eq!(
        poison(&found),
        [
            (
                1,
                format!(
                    "value.outside_partition_range field `_kafka_timestamp`: 1970-01-01T00:00:00.000000+00:00 {outside}"
                )
            ),
            (
                3,
                format!("value.outside_partition_range field `v`: 2079-07-08 {outside}")
            ),
        ]
    );
    assert_eq!(
        values(&Table::default().take(&found).unwrap()),
        ["v=7 key_v=day 20000", "v=7 key_v=day 20000"]
    );
    // `v` is the value's.
    assert!(prepared(&["v"]).poison().is_empty());
}
