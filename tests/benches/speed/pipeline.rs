//! What ingest does between an event and a file, without storage.

use std::borrow::Cow;

use arrow_array::RecordBatch;
use frazil_codec::{DecodeOptions, EncodedRecord, Payload, TargetTable, prepare};
use frazil_core::{Epoch, TopicName};
use frazil_kafka::wire::{Framed, Framing};
use frazil_kafka::{Event, Record};
use frazil_schema::{Evolution, FieldMap, FieldPath, KafkaColumns, SchemaChange, SourceSchema, evolve};
use frazil_table::{FileSettings, split_by_partition, write_data_file};
use iceberg::spec::{PartitionSpec, SchemaRef, Transform};

/// The way of one topic's values.
pub(crate) struct Pipeline {
    source: SourceSchema,
    change: SchemaChange,
    schema: SchemaRef,
    spec: PartitionSpec,
    kafka: KafkaColumns,
    topic: TopicName,
}

impl Pipeline {
    pub(crate) fn new(source: SourceSchema) -> Self {
        let kafka = KafkaColumns::default();
        let evolution = evolve(None, 0, &FieldMap::default(), &[source.columns()], &kafka).expect("columns");
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
            source,
            change: *change,
            schema,
            spec,
            kafka,
            topic: TopicName::new("orders"),
        }
    }

    /// The rows of an event.
    pub(crate) fn decode(&self, event: &Event<'_>) -> RecordBatch {
        self.decode_as(event, |record| Payload::Encoded {
            schema: &self.source,
            body: self.body(record),
        })
    }

    /// As many rows, of which only Kafka's columns hold something.
    pub(crate) fn decode_nothing(&self, event: &Event<'_>) -> RecordBatch {
        self.decode_as(event, |_| Payload::Tombstone)
    }

    /// The Parquet files' bytes together.
    pub(crate) fn write(&self, batch: &RecordBatch, settings: &FileSettings) -> usize {
        let parts = split_by_partition(batch, &self.schema, &self.spec).expect("partitions");
        let write = |(partition, rows)| {
            write_data_file(&[rows], &self.schema, &self.spec, &partition, settings)
                .expect("a file")
                .bytes
                .len()
        };
        parts.into_iter().map(write).sum()
    }

    fn body<'a>(&self, record: &'a Record<'a>) -> &'a [u8] {
        let value = Framed::value(record).expect("a value");
        let unframed = value.unframe(Framing::Auto).expect("a prefix");
        let skipped = match self.source {
            SourceSchema::Protobuf(_) => {
                let (_, message) = unframed.protobuf().expect("a message index");
                unframed.body().len() - message.len()
            }
            _ => 0,
        };
        let Cow::Borrowed(body) = unframed.into_body() else {
            panic!("nothing is inflated");
        };
        &body[skipped..]
    }

    fn decode_as<'a>(
        &'a self,
        event: &'a Event<'a>,
        payload: impl Fn(&'a Record<'a>) -> Payload<'a>,
    ) -> RecordBatch {
        let mut records = Vec::with_capacity(event.record_count());
        for batch in &event.batches {
            for record in &batch.records {
                records.push(EncodedRecord {
                    partition: batch.topic_partition.partition,
                    offset: record.offset,
                    timestamp_ms: record.timestamp_ms,
                    timestamp_type: None,
                    key: record.key,
                    headers: Vec::new(),
                    payload: payload(record),
                });
            }
        }
        let prepared = prepare(&records, DecodeOptions::default()).expect("decoded");
        assert!(prepared.poison().is_empty());
        let target = TargetTable {
            schema: &self.schema,
            fields: &self.change.fields,
            kafka: &self.kafka,
            topic: &self.topic,
            epoch: Epoch(0),
        };
        prepared.to_batch(&target).expect("a batch")
    }
}
