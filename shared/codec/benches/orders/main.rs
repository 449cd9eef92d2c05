//! How fast an event of orders becomes a batch of its table, on one core: `cargo bench -p frazil-codec`.

use arrow_avro::reader::ReaderBuilder;
use arrow_avro::schema::{AvroSchema as ArrowAvroSchema, Fingerprint, FingerprintAlgorithm, SchemaStore};
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use frazil_codec::{DecodeOptions, EncodedRecord, Payload, TargetTable, prepare};
use frazil_core::{Epoch, Offset, Partition, TopicName};
use frazil_schema::{Evolution, FieldMap, KafkaColumns, SchemaChange, evolve};

use generate::{CASES, Case, ORDERS};
use readers::{Trees, skip, source};

mod generate;
mod readers;

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

fn bench_to_table(bencher: Bencher<'_, '_>, records: &[EncodedRecord<'_>], bytes: usize) {
    let (kafka, topic) = (KafkaColumns::default(), TopicName::new("orders"));
    let change = new_table(records, &kafka);
    let table = TargetTable {
        schema: &change.schema,
        fields: &change.fields,
        kafka: &kafka,
        topic: &topic,
        epoch: Epoch(0),
    };
    counted(bencher, bytes, records.len()).bench_local(|| {
        let prepared = prepare(records, DecodeOptions::default()).expect("prepared");
        prepared.to_batch(&table).expect("a batch")
    });
}

fn counted<'a, 'b>(bencher: Bencher<'a, 'b>, bytes: usize, orders: usize) -> Bencher<'a, 'b> {
    bencher
        .counter(BytesCount::new(bytes))
        .counter(ItemsCount::new(orders))
}

fn bytes_of(values: &[Vec<u8>]) -> usize {
    values.iter().map(Vec::len).sum()
}

/// Values to the table's batch, Kafka's own columns included.
#[divan::bench(args = CASES)]
fn to_table(bencher: Bencher<'_, '_>, case: Case) {
    let (values, schema) = (case.values(ORDERS), source(case));
    let records = records(values.iter().map(|body| Payload::Encoded {
        schema: &schema,
        body,
    }));
    bench_to_table(bencher, &records, bytes_of(&values));
}

/// JSON's columns inferred.
#[divan::bench(args = [CASES[4], CASES[5]])]
fn inferred_to_table(bencher: Bencher<'_, '_>, case: Case) {
    let values = case.values(ORDERS);
    let records = records(values.iter().map(|body| Payload::Json(body)));
    bench_to_table(bencher, &records, bytes_of(&values));
}

/// The first of the two steps alone.
#[divan::bench(args = CASES)]
fn prepare_alone(bencher: Bencher<'_, '_>, case: Case) {
    let (values, schema) = (case.values(ORDERS), source(case));
    let records = records(values.iter().map(|body| Payload::Encoded {
        schema: &schema,
        body,
    }));
    counted(bencher, bytes_of(&values), records.len())
        .bench_local(|| prepare(&records, DecodeOptions::default()).expect("prepared"));
}

/// The usual way, for comparison: a tree of values per record, and that is only half of it.
#[divan::bench(args = CASES)]
fn trees_alone(bencher: Bencher<'_, '_>, case: Case) {
    let (values, trees) = (case.values(ORDERS), Trees::new(case));
    counted(bencher, bytes_of(&values), values.len())
        .bench_local(|| values.iter().for_each(|value| trees.read(black_box(value))));
}

/// The floor: everything is found, and nothing is kept.
#[divan::bench(args = CASES)]
fn skipping_alone(bencher: Bencher<'_, '_>, case: Case) {
    let values = case.values(ORDERS);
    counted(bencher, bytes_of(&values), values.len()).bench_local(|| {
        let skipped = values.iter().map(|value| skip(case, black_box(value)));
        skipped.sum::<usize>()
    });
}

/// arrow-avro on the same orders, framed as it wants them, for comparison: no Kafka columns, and enums and instants
/// not yet as the table wants them.
#[divan::bench(args = [CASES[0], CASES[1]])]
fn arrow_avro_alone(bencher: Bencher<'_, '_>, case: Case) {
    let values = case.values(ORDERS);
    let framed: Vec<u8> = values
        .iter()
        .flat_map(|body| [&[0, 0, 0, 0, 1], body.as_slice()].concat())
        .collect();
    let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id);
    store
        .set(Fingerprint::Id(1), ArrowAvroSchema::new(case.schema()))
        .expect("a schema");
    let mut decoder = ReaderBuilder::new()
        .with_batch_size(values.len())
        .with_writer_schema_store(store)
        .build_decoder()
        .expect("a decoder");
    counted(bencher, bytes_of(&values), values.len()).bench_local(|| {
        decoder.decode(&framed).expect("decoded");
        decoder.flush().expect("flushed").expect("a batch")
    });
}
