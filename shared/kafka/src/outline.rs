use std::collections::BTreeMap;

use frazil_core::{Offset, OffsetRange, Result, TopicPartition};
use serde::de::{IgnoredAny, MapAccess};

use crate::event::{self, Origin};
use crate::json::{self, Collector, Field, Position, Slot};

const OUTLINE: &str = "list the offsets of the Kafka event";

/// Origin and offsets of an event, without keys, values and headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventOutline {
    /// Where it came from.
    pub origin: Origin,
    /// The range of each topic-partition that has records, sorted by topic, then partition.
    pub ranges: Vec<(TopicPartition, OffsetRange)>,
    /// How many records the event lists.
    pub records: usize,
}

/// Lists the offsets of an event without decoding its records: what is needed to know about a parked event.
///
/// Refuses what [`EventBuffer::parse`](crate::EventBuffer::parse) refuses, except for what it does not look at: the contents of keys, values
/// and headers, and whether an offset that comes twice is the same record.
pub fn outline(event: &[u8]) -> Result<EventOutline> {
    let text = event::checked_text(OUTLINE, event)?;
    let mut outliner = Outliner::default();
    let head = json::read(text, &mut outliner).map_err(|error| event::json_error(OUTLINE, &error))?;
    let ranges = outliner
        .spans
        .into_iter()
        .map(|(topic_partition, (first, last))| Ok((topic_partition, OffsetRange::new(first, last)?)))
        .collect::<Result<_>>()?;
    Ok(EventOutline {
        origin: event::origin(OUTLINE, head)?,
        ranges,
        records: outliner.records,
    })
}

#[derive(Default)]
struct Outliner {
    records: usize,
    spans: BTreeMap<TopicPartition, (Offset, Offset)>,
}

impl<'de> Collector<'de> for Outliner {
    type Batch = Option<(Offset, Offset)>;

    fn record<A: MapAccess<'de>>(
        &mut self,
        batch: &mut Self::Batch,
        slot: &Slot<'_>,
        mut map: A,
    ) -> Result<(), A::Error> {
        let mut position = Position::default();
        while let Some(field) = map.next_key::<Field>()? {
            if !position.take(field, &mut map)? {
                map.next_value::<IgnoredAny>()?;
            }
        }
        let offset = position.offset(slot)?;
        let (first, last) = batch.get_or_insert((offset, offset));
        (*first, *last) = ((*first).min(offset), (*last).max(offset));
        self.records += 1;
        Ok(())
    }

    fn finish(&mut self, topic_partition: TopicPartition, batch: Self::Batch) {
        if let Some((first, last)) = batch {
            let span = self.spans.entry(topic_partition).or_insert((first, last));
            *span = (span.0.min(first), span.1.max(last));
        }
    }
}
