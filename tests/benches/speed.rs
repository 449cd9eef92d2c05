//! Event JSON → Parquet in memory, on one core, in parts and as a whole: `cargo bench -p frazil-tests --bench speed`.
//!
//! 45,072 orders: 3.7 MB of Avro, 12.1 MB of event JSON. Parts and whole take turns within one
//! run, so that ratios hold on a noisy machine; each figure is a median.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock

use std::borrow::Cow;
use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use frazil_codec::{DecodeOptions, EncodedRecord, Payload, TargetTable, prepare};
use frazil_core::{Epoch, TopicName};
use frazil_kafka::wire::{Framed, Framing};
use frazil_kafka::{Event, EventBuffer};
use frazil_schema::{
    AvroSchema, Evolution, FieldMap, FieldPath, KafkaColumns, SchemaChange, SourceSchema, evolve,
};
use frazil_table::{FileSettings, split_by_partition, write_data_file};
use iceberg::spec::{PartitionSpec, SchemaRef, Transform};

#[path = "../../shared/codec/benches/orders/generate.rs"]
mod generate;

const ROUNDS: usize = 21;
const PARTITIONS: usize = 4;

fn main() {
    let orders = generate::orders(generate::ORDERS);
    let raw_bytes: usize = orders.iter().map(Vec::len).sum();
    let json = event_json(&orders);
    let pipeline = Pipeline::new();

    let mut buffer = EventBuffer::default();
    let event = buffer.parse(json.as_bytes()).expect("a valid event");
    let batch = pipeline.decode(&event);
    let encoded: Vec<String> = orders
        .iter()
        .map(|order| base64_simd::STANDARD.encode_to_string(framed(order)))
        .collect();
    let mut scratch = EventBuffer::default();
    let mut whole_buffer = EventBuffer::default();

    let mut times: [Vec<Duration>; 5] = Default::default();
    let mut file_bytes = 0;
    for _ in 0..ROUNDS {
        times[0].push(timed(|| {
            scratch
                .parse(black_box(json.as_bytes()))
                .expect("a valid event")
                .record_count()
        }));
        times[1].push(timed(|| {
            let decode = |text: &String| base64_simd::STANDARD.decode_to_vec(text).expect("base64").len();
            encoded.iter().map(decode).sum::<usize>()
        }));
        times[2].push(timed(|| pipeline.decode(black_box(&event)).num_rows()));
        times[3].push(timed(|| pipeline.write(black_box(&batch))));
        times[4].push(timed(|| {
            let event = whole_buffer
                .parse(black_box(json.as_bytes()))
                .expect("a valid event");
            file_bytes = pipeline.write(&pipeline.decode(&event));
            file_bytes
        }));
    }
    let [parse, base64, decode, write, whole] = times.map(median);
    let sum = parse + decode + write;
    println!(
        "{} orders, {:.1} MB raw, {:.1} MB of event JSON, {:.2} MB of Parquet",
        orders.len(),
        raw_bytes as f64 / 1e6,
        json.len() as f64 / 1e6,
        file_bytes as f64 / 1e6
    );
    let line = |name: &str, time: Duration| {
        let (ms, rate) = (
            time.as_secs_f64() * 1e3,
            raw_bytes as f64 / 1e6 / time.as_secs_f64(),
        );
        println!("{name:<28} {ms:8.2} ms  {rate:8.1} MB/s of raw Kafka bytes");
    };
    line("parse, base64 included", parse);
    line("  base64 alone", base64);
    line("decode Avro to the table", decode);
    line("write Parquet", write);
    line("sum of the parts", sum);
    line("whole", whole);
    println!(
        "whole / sum of the parts: {:.2}",
        whole.as_secs_f64() / sum.as_secs_f64()
    );
}

/// What ingest does between an event and a file, without storage.
struct Pipeline {
    avro: SourceSchema,
    change: SchemaChange,
    schema: SchemaRef,
    spec: PartitionSpec,
    kafka: KafkaColumns,
    topic: TopicName,
}

impl Pipeline {
    fn new() -> Self {
        let avro = SourceSchema::Avro(AvroSchema::parse(generate::SCHEMA).expect("a schema"));
        let kafka = KafkaColumns::default();
        let evolution = evolve(None, 0, &FieldMap::default(), &[avro.columns()], &kafka).expect("columns");
        let Evolution::Changed(change) = evolution else {
            panic!("a new table")
        };
        let schema = SchemaRef::new(change.schema.clone());
        let timestamp = change
            .fields
            .get(&FieldPath::kafka().field("_kafka_timestamp", None))
            .expect("a timestamp");
        let name = schema.name_by_field_id(timestamp).expect("a name").to_owned();
        let spec = PartitionSpec::builder(schema.clone())
            .add_partition_field(name, "day", Transform::Day)
            .and_then(|builder| builder.build())
            .expect("a spec");
        Self {
            avro,
            change: *change,
            schema,
            spec,
            kafka,
            topic: TopicName::new("orders"),
        }
    }

    fn decode(&self, event: &Event<'_>) -> RecordBatch {
        let mut records = Vec::with_capacity(event.record_count());
        for batch in &event.batches {
            for record in &batch.records {
                let value = Framed::value(record).expect("a value");
                let Cow::Borrowed(body) = value.unframe(Framing::Auto).expect("a prefix").into_body() else {
                    panic!("nothing is inflated");
                };
                records.push(EncodedRecord {
                    partition: batch.topic_partition.partition,
                    offset: record.offset,
                    timestamp_ms: record.timestamp_ms,
                    timestamp_type: None,
                    key: record.key,
                    headers: Vec::new(),
                    payload: Payload::Encoded {
                        schema: &self.avro,
                        body,
                    },
                });
            }
        }
        let prepared = prepare(&records, DecodeOptions::default()).expect("decoded");
        let target = TargetTable {
            schema: &self.schema,
            fields: &self.change.fields,
            kafka: &self.kafka,
            topic: &self.topic,
            epoch: Epoch(0),
        };
        prepared.to_batch(&target).expect("a batch")
    }

    fn write(&self, batch: &RecordBatch) -> usize {
        let parts = split_by_partition(batch, &self.schema, &self.spec).expect("partitions");
        let write = |(partition, rows)| {
            let settings = FileSettings::default();
            write_data_file(&[rows], &self.schema, &self.spec, &partition, &settings)
                .expect("a file")
                .bytes
                .len()
        };
        parts.into_iter().map(write).sum()
    }
}

fn framed(order: &[u8]) -> Vec<u8> {
    [&[0, 0, 0, 0, 7][..], order].concat()
}

fn event_json(orders: &[Vec<u8>]) -> String {
    let mut json =
        r#"{"eventSource":"aws:kafka","bootstrapServers":"b-1.shop.example:9098","records":{"#.to_owned();
    for (partition, orders) in orders.chunks(orders.len().div_ceil(PARTITIONS)).enumerate() {
        let comma = if partition > 0 { "," } else { "" };
        let _ = write!(json, r#"{comma}"orders-{partition}":["#);
        for (offset, order) in orders.iter().enumerate() {
            let comma = if offset > 0 { "," } else { "" };
            let key = base64_simd::STANDARD.encode_to_string(format!("order-{offset}"));
            let value = base64_simd::STANDARD.encode_to_string(framed(order));
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

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let started = Instant::now();
    black_box(work());
    started.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
