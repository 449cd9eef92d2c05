use std::collections::BTreeMap;

use async_trait::async_trait;
use frazil_codec::TargetTable;
use frazil_core::{Partition, Result, TopicPartition};
use frazil_kafka::{Header, PartitionBatch, Record, TimestampType};
use frazil_table::dead_letters::DeadLetter;
use frazil_table::{LetterReader, LogName, ReadAgain};

use crate::Ingest;
use crate::design::{kafka_columns, mapping};
use crate::encoding::{Known, kept, known, prevailing};

#[async_trait]
impl LetterReader for Ingest {
    /// Reads dead letters with today's schemas and settings. The breaker does not count them.
    async fn read_again(&self, log: &LogName, letters: &[DeadLetter]) -> Result<Vec<ReadAgain>> {
        let settings = self.config.topic(&log.source, &log.topic)?;
        let state = self.warehouse.topic_state(&log.source, &log.topic).await?;
        let (batches, places) = batches(log, letters);
        let batches: Vec<&PartitionBatch<'_>> = batches.iter().collect();
        let encoding = match known(&settings, &state) {
            Known::Settled(encoding) => encoding,
            Known::Open => match prevailing(&batches) {
                Some((format, framing)) => kept(format, Some(framing)),
                None => return Ok(Vec::new()),
            },
        };
        let of = |batch: &&PartitionBatch<'_>| batch.topic_partition.partition;
        let records: Vec<(Partition, &Record<'_>)> = batches
            .iter()
            .flat_map(|batch| batch.records.iter().map(move |record| (of(batch), record)))
            .collect();
        let mapping = mapping(&settings)?;
        let parts = self.parts(&settings, encoding, &mapping, &records).await?;
        let routed = parts.route(&settings, &records)?;
        let mut read = Vec::new();
        for mut route in routed.prepare(&settings, &mapping, self.warehouse.environment.now())? {
            drop(route.take_poison());
            if route.prepared.rows().len() == 0 {
                continue;
            }
            let ready = self.ready(&settings, &state, &route.table, Some(&route)).await?;
            let target = TargetTable {
                schema: ready.table.metadata.current_schema(),
                fields: &ready.ledger.fields,
                kafka: &kafka_columns(&settings),
                topic: &settings.topic,
                epoch: log.epoch,
            };
            let rows = route.prepared.to_batch(&target)?;
            let letters = route.prepared.rows().map(|index| places[route.places[index]]);
            read.push(ReadAgain {
                letters: letters.collect(),
                rows,
                table: route.table,
            });
        }
        Ok(read)
    }
}

/// Dead letters as the batches that they came in, by partition and offset, and for each record the index of its letter.
fn batches<'a>(log: &LogName, letters: &'a [DeadLetter]) -> (Vec<PartitionBatch<'a>>, Vec<usize>) {
    let mut sorted: BTreeMap<Partition, Vec<usize>> = BTreeMap::new();
    for (index, letter) in letters.iter().enumerate() {
        sorted.entry(letter.partition).or_default().push(index);
    }
    let mut places = Vec::with_capacity(letters.len());
    let mut batches = Vec::with_capacity(sorted.len());
    for (partition, mut indexes) in sorted {
        indexes.sort_by_key(|index| letters[*index].offset);
        indexes.dedup_by_key(|index| letters[*index].offset);
        let topic_partition = TopicPartition {
            topic: log.topic.clone(),
            partition,
        };
        let records = indexes.iter().map(|index| record(&letters[*index])).collect();
        if let Some(batch) = PartitionBatch::new(topic_partition, records) {
            batches.push(batch);
            places.extend(indexes);
        }
    }
    (batches, places)
}

/// A dead letter as the record that it was. Its type of timestamp is not kept.
fn record(letter: &DeadLetter) -> Record<'_> {
    Record {
        offset: letter.offset,
        timestamp_ms: letter.timestamp.map(|timestamp| timestamp.0),
        timestamp_type: TimestampType::Unknown,
        key: letter.key.as_deref(),
        value: letter.value.as_deref(),
        headers: letter
            .headers
            .iter()
            .map(|(name, value)| Header {
                name: name.as_str().into(),
                value: value.as_deref(),
            })
            .collect(),
        key_schema: None,
        value_schema: None,
    }
}
