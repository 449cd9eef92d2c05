use std::collections::BTreeMap;

use async_trait::async_trait;
use frazil_config::Tables;
use frazil_core::{Error, ErrorKind, Partition, Result, TopicPartition};
use frazil_kafka::{Header, PartitionBatch, Record, SchemaMetadata, TimestampType};
use frazil_table::dead_letters::DeadLetter;
use frazil_table::{LetterReader, LogName, ReadAgain, Reread};

use crate::Ingest;
use crate::claims::{KEY_SCHEMA_HEADER, UNREADABLE, VALUE_SCHEMA_HEADER, reason};
use crate::encoding::{Known, kept, known, prevailing};
use crate::parts::Mappings;
use crate::route::record_names;

#[async_trait]
impl LetterReader for Ingest {
    /// Reads dead letters with today's schemas and settings. The breaker does not count them.
    async fn read_again(&self, log: &LogName, letters: &[DeadLetter]) -> Result<Reread> {
        let settings = self.config.topic(&log.source, &log.topic)?;
        let state = self.warehouse.topic_state(&log.source, &log.topic).await?;
        let (batches, places) = batches(log, letters);
        let batches: Vec<&PartitionBatch<'_>> = batches.iter().collect();
        let encoding = match known(&settings, &state) {
            Known::Settled(encoding) => encoding,
            Known::Open => match prevailing(&batches) {
                Some((format, framing)) => kept(format, Some(framing)),
                None => return Ok(undecided(letters.len())),
            },
        };
        let of = |batch: &&PartitionBatch<'_>| batch.topic_partition.partition;
        let records: Vec<(Partition, &Record<'_>)> = batches
            .iter()
            .flat_map(|batch| batch.records.iter().map(move |record| (of(batch), record)))
            .collect();
        let mappings = Mappings::of(&settings)?;
        let parts = self.parts(&settings, encoding, &mappings, &records).await?;
        let routed = parts.route(&settings, &records)?;
        let of_poison = |error: &Error| {
            let code = error.code().unwrap_or(UNREADABLE);
            (code.to_owned(), reason(error))
        };
        let mut reread = Reread {
            rows: Vec::new(),
            poison: routed.poison.values().map(|error| of_poison(error)).collect(),
        };
        let others = |known: &String| record_names(&routed).iter().any(|name| name != known);
        if settings.tables == Tables::One && state.record_name.as_ref().is_some_and(others) {
            return Err(Error::new(
                ErrorKind::Invalid,
                "retry dead letters",
                "some are records of another type than the topic's table is for",
            )
            .with_context("topic", &settings.topic)
            .with_hint("retry by --code, or set tables = \"merged\""));
        }
        for mut route in routed.prepare(&settings, &mappings, self.warehouse.environment.now())? {
            let poison = route.take_poison();
            reread
                .poison
                .extend(poison.iter().map(|(_, error)| of_poison(error)));
            if route.prepared.rows().len() == 0 {
                continue;
            }
            let ready = self.ready(&settings, &state, &route.table, Some(&route)).await?;
            let rows = ready.rows(&settings, log.epoch, &route.prepared)?;
            let letters = route.prepared.rows().map(|index| places[route.places[index]]);
            reread.rows.push(ReadAgain {
                letters: letters.collect(),
                rows,
                table: route.table,
            });
        }
        Ok(reread)
    }
}

/// No value of the topic has shown yet how its values are read, and these do not either.
fn undecided(letters: usize) -> Reread {
    let reason = "the topic has no value yet that shows how its values are encoded; set `format`";
    let one = ("wire.unrecognised".to_owned(), reason.to_owned());
    Reread {
        rows: Vec::new(),
        poison: vec![one; letters],
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
            .filter(|(name, _)| ![KEY_SCHEMA_HEADER, VALUE_SCHEMA_HEADER].contains(&name.as_str()))
            .map(|(name, value)| Header {
                name: name.as_str().into(),
                value: value.as_deref(),
            })
            .collect(),
        key_schema: schema(letter, KEY_SCHEMA_HEADER),
        value_schema: schema(letter, VALUE_SCHEMA_HEADER),
    }
}

/// What Lambda's registry client said of the record.
fn schema<'a>(letter: &'a DeadLetter, header: &str) -> Option<Box<SchemaMetadata<'a>>> {
    let (_, value) = letter.headers.iter().find(|(name, _)| name == header)?;
    let (data_format, schema_id) = std::str::from_utf8(value.as_deref()?).ok()?.split_once(':')?;
    Some(Box::new(SchemaMetadata {
        data_format: data_format.into(),
        schema_id: schema_id.into(),
    }))
}

#[cfg(test)]
mod tests {
    use frazil_core::{Error, ErrorKind, Offset};

    use super::*;
    use crate::claims::dead_letter;

    /// A record comes back from its dead letter as it was, with what Lambda said of its schema.
    #[test]
    fn a_dead_letter_keeps_the_whole_record() {
        let schema = |format: &'static str, id: &'static str| {
            Some(Box::new(SchemaMetadata {
                data_format: format.into(),
                schema_id: id.into(),
            }))
        };
        let header = |name: &'static str, value| Header {
            name: name.into(),
            value,
        };
        for (key_schema, value_schema) in [
            (None, None),
            (
                schema("AVRO", "7"),
                schema("JSON", "89791c0e-5e8a-4f6b-9b1a-2b3c4d5e6f70"),
            ),
        ] {
            let before = Record {
                offset: Offset(7),
                timestamp_ms: Some(1),
                timestamp_type: TimestampType::Unknown,
                key: Some(b"k"),
                value: Some(b"v"),
                headers: vec![header("a", Some(b"1")), header("a", None)],
                key_schema,
                value_schema,
            };
            let error = Error::new(ErrorKind::Poison, "read it", "it is broken");
            let letter = dead_letter(Partition(0), &before, &error);
            assert_eq!(record(&letter), before);
        }
    }
}
