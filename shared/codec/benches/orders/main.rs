//! How fast an event of orders becomes a batch of its table, on one core: `cargo bench -p frazil-codec`.

use arrow_avro::reader::ReaderBuilder;
use arrow_avro::schema::{AvroSchema as ArrowAvroSchema, Fingerprint, FingerprintAlgorithm, SchemaStore};
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use frazil_codec::{DecodeOptions, EncodedRecord, Payload, TargetTable, prepare};
use frazil_core::{Epoch, Offset, Partition, TopicName};
use frazil_schema::{
    AvroSchema, Evolution, FieldMap, JsonSchema, KafkaColumns, Mapping, SchemaChange, SourceSchema, evolve,
};

mod generate;
mod protobuf;

fn main() {
    divan::main();
}

fn records<'a>(payloads: impl Iterator<Item = Payload<'a>>) -> Vec<EncodedRecord<'a>> {
    payloads
        .enumerate()
        .map(|(offset, payload)| EncodedRecord {
            partition: Partition(0),
            offset: Offset(offset as i64),
            timestamp_ms: Some(1_764_500_000_000 + offset as i64),
            timestamp_type: Some("CREATE_TIME"),
            key: Some(b"customer-12345"),
            headers: Vec::new(),
            payload,
        })
        .collect()
}

fn new_table(records: &[EncodedRecord<'_>], kafka: &KafkaColumns) -> Box<SchemaChange> {
    let prepared = prepare(records, DecodeOptions::default()).expect("prepared");
    assert!(prepared.poison().is_empty());
    let columns = prepared.columns(None);
    let wanted: Vec<_> = columns.iter().map(AsRef::as_ref).collect();
    match evolve(None, 0, &FieldMap::default(), &wanted, kafka) {
        Ok(Evolution::Changed(change)) => change,
        other => panic!("not a new table: {other:?}"),
    }
}

fn bench(bencher: Bencher<'_, '_>, records: &[EncodedRecord<'_>], bytes: usize) {
    let (kafka, topic) = (KafkaColumns::default(), TopicName::new("orders"));
    let change = new_table(records, &kafka);
    let table = TargetTable {
        schema: &change.schema,
        fields: &change.fields,
        kafka: &kafka,
        topic: &topic,
        epoch: Epoch(0),
    };
    bencher
        .counter(BytesCount::new(bytes))
        .counter(ItemsCount::new(records.len()))
        .bench_local(|| {
            let prepared = prepare(records, DecodeOptions::default()).expect("prepared");
            prepared.to_batch(&table).expect("a batch")
        });
}

/// Values to the table's batch, Kafka's own columns included.
#[divan::bench]
fn avro_to_table(bencher: Bencher<'_, '_>) {
    let orders = generate::orders(generate::ORDERS);
    let schema = SourceSchema::Avro(AvroSchema::parse(generate::SCHEMA).expect("a schema"));
    let records = records(orders.iter().map(|body| Payload::Encoded {
        schema: &schema,
        body,
    }));
    bench(bencher, &records, orders.iter().map(Vec::len).sum());
}

/// The first of the two steps alone.
#[divan::bench]
fn avro_prepare(bencher: Bencher<'_, '_>) {
    let orders = generate::orders(generate::ORDERS);
    let schema = SourceSchema::Avro(AvroSchema::parse(generate::SCHEMA).expect("a schema"));
    let records = records(orders.iter().map(|body| Payload::Encoded {
        schema: &schema,
        body,
    }));
    bencher
        .counter(BytesCount::new(orders.iter().map(Vec::len).sum::<usize>()))
        .bench_local(|| prepare(&records, DecodeOptions::default()).expect("prepared"));
}

/// arrow-avro on the same orders, framed as it wants them, for comparison: no Kafka columns, and enums and instants
/// not yet as the table wants them.
#[divan::bench]
fn arrow_avro_alone(bencher: Bencher<'_, '_>) {
    let orders = generate::orders(generate::ORDERS);
    let bytes: usize = orders.iter().map(Vec::len).sum();
    let framed: Vec<u8> = orders
        .iter()
        .flat_map(|body| [&[0, 0, 0, 0, 1], body.as_slice()].concat())
        .collect();
    let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id);
    store
        .set(
            Fingerprint::Id(1),
            ArrowAvroSchema::new(generate::SCHEMA.to_owned()),
        )
        .expect("a schema");
    let mut decoder = ReaderBuilder::new()
        .with_batch_size(orders.len())
        .with_writer_schema_store(store)
        .build_decoder()
        .expect("a decoder");
    bencher
        .counter(BytesCount::new(bytes))
        .counter(ItemsCount::new(orders.len()))
        .bench_local(|| {
            decoder.decode(&framed).expect("decoded");
            decoder.flush().expect("flushed").expect("a batch")
        });
}

/// The same orders as JSON, with a schema.
#[divan::bench]
fn json_schema_to_table(bencher: Bencher<'_, '_>) {
    let orders = generate::json_orders(generate::ORDERS);
    let schema = json_schema();
    let records = records(orders.iter().map(|order| Payload::Encoded {
        schema: &schema,
        body: order.as_bytes(),
    }));
    bench(bencher, &records, orders.iter().map(String::len).sum());
}

/// The same, columns inferred.
#[divan::bench]
fn json_inferred_to_table(bencher: Bencher<'_, '_>) {
    let orders = generate::json_orders(generate::ORDERS);
    let records = records(orders.iter().map(|order| Payload::Json(order.as_bytes())));
    bench(bencher, &records, orders.iter().map(String::len).sum());
}

/// The first of the two steps alone.
#[divan::bench]
fn json_schema_prepare(bencher: Bencher<'_, '_>) {
    let orders = generate::json_orders(generate::ORDERS);
    let schema = json_schema();
    let records = records(orders.iter().map(|order| Payload::Encoded {
        schema: &schema,
        body: order.as_bytes(),
    }));
    bencher
        .counter(BytesCount::new(orders.iter().map(String::len).sum::<usize>()))
        .bench_local(|| prepare(&records, DecodeOptions::default()).expect("prepared"));
}

/// The usual way, for comparison: a serde_json tree per record, and that is only half of it.
#[divan::bench]
fn serde_json_trees_alone(bencher: Bencher<'_, '_>) {
    let orders = generate::json_orders(generate::ORDERS);
    bencher
        .counter(BytesCount::new(orders.iter().map(String::len).sum::<usize>()))
        .counter(ItemsCount::new(orders.len()))
        .bench_local(|| {
            for order in &orders {
                divan::black_box(serde_json::from_str::<serde_json::Value>(order).expect("JSON"));
            }
        });
}

/// The floor: every byte is read, and every string, number and bracket told apart, by serde_json; nothing is kept.
#[divan::bench]
fn serde_json_skipping(bencher: Bencher<'_, '_>) {
    let orders = generate::json_orders(generate::ORDERS);
    bencher
        .counter(BytesCount::new(orders.iter().map(String::len).sum::<usize>()))
        .bench_local(|| {
            for order in &orders {
                divan::black_box(serde_json::from_str::<serde::de::IgnoredAny>(order).expect("JSON"));
            }
        });
}

fn json_schema() -> SourceSchema {
    let schema = JsonSchema::compile(generate::JSON_SCHEMA, &[], &Mapping::default());
    SourceSchema::Json(schema.expect("a schema"))
}
