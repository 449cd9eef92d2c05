//! The event's JSON, read in one pass. Strings are borrowed unless they hold escapes.
//!
//! Depth is bounded by serde_json (128 levels; what is skipped is not recursed into), size and counts by the
//! constants in `event`.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use frazil_core::{Offset, Partition, TopicName, TopicPartition};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::event::MAX_RECORDS;

/// What becomes of the records, array by array.
pub(crate) trait Collector<'de> {
    type Batch: Default;

    /// Reads one record, an object.
    fn record<A: MapAccess<'de>>(
        &mut self,
        batch: &mut Self::Batch,
        slot: &Slot<'_>,
        map: A,
    ) -> Result<(), A::Error>;

    /// Takes what the array of one topic-partition gave. One may have several arrays.
    fn finish(&mut self, topic_partition: TopicPartition, batch: Self::Batch);
}

/// Reads an event, giving the records to the collector.
pub(crate) fn read<'de, C: Collector<'de>>(text: &'de str, collector: &mut C) -> serde_json::Result<Head> {
    let mut json = serde_json::Deserializer::from_str(text);
    let head = EventSeed {
        collector,
        records: 0,
    }
    .deserialize(&mut json)?;
    json.end()?;
    Ok(head)
}

/// What an event says beside its records.
#[derive(Default)]
pub(crate) struct Head {
    pub(crate) event_source: Option<String>,
    pub(crate) event_source_arn: Option<String>,
    pub(crate) bootstrap_servers: Option<String>,
}

/// A string, borrowed where it can be, also within `Option` (serde's own `Cow` is not).
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// The fields of a record.
#[derive(Clone, Copy, Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
pub(crate) enum Field {
    Topic,
    Partition,
    Offset,
    Timestamp,
    TimestampType,
    Key,
    Value,
    Headers,
    KeySchemaMetadata,
    ValueSchemaMetadata,
    #[serde(other)]
    Other,
}

/// Where a record says it is.
#[derive(Default)]
pub(crate) struct Position<'de> {
    topic: Option<Text<'de>>,
    partition: Option<i32>,
    offset: Option<RawOffset>,
}

impl<'de> Position<'de> {
    /// Reads the field's value, if it is one of these.
    pub(crate) fn take<A: MapAccess<'de>>(&mut self, field: Field, map: &mut A) -> Result<bool, A::Error> {
        match field {
            Field::Topic => once(&mut self.topic, map.next_value()?, "topic")?,
            Field::Partition => once(&mut self.partition, map.next_value()?, "partition")?,
            Field::Offset => once(&mut self.offset, map.next_value()?, "offset")?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The record's offset, when topic, partition and offset make sense.
    pub(crate) fn offset<E: serde::de::Error>(&self, slot: &Slot<'_>) -> Result<Offset, E> {
        let topic = self.topic.as_deref().ok_or_else(|| E::missing_field("topic"))?;
        let partition = self.partition.ok_or_else(|| E::missing_field("partition"))?;
        let offset = self.offset.ok_or_else(|| E::missing_field("offset"))?;
        if topic != slot.topic || partition != slot.partition {
            return Err(E::custom(format_args!(
                "`records` has a record of topic {topic:?}, partition {partition}, under the key \"{slot}\"",
            )));
        }
        match offset {
            RawOffset::Whole(offset) if (0..=Offset::MAX.0).contains(&offset) => Ok(Offset(offset)),
            other => Err(E::custom(format_args!(
                "{slot} has offset {other}, but offsets go from 0 to {}",
                Offset::MAX
            ))),
        }
    }
}

/// Fills a field; JSON allows a name twice, and we could only guess which one counts.
pub(crate) fn once<T, E: serde::de::Error>(
    place: &mut Option<T>,
    value: T,
    name: &'static str,
) -> Result<(), E> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(name)),
    }
}

/// The topic-partition that a key of `records` names. Topics may contain hyphens: the last one counts, and the
/// records' own fields must agree.
pub(crate) struct Slot<'k> {
    pub(crate) topic: &'k str,
    pub(crate) partition: i32,
}

impl<'k> Slot<'k> {
    fn of_key(key: &'k str) -> Result<Self, String> {
        key.rsplit_once('-')
            .and_then(|(topic, partition)| {
                Some(Self {
                    topic,
                    partition: partition.parse().ok()?,
                })
            })
            .filter(|slot| !slot.topic.is_empty() && slot.partition >= 0)
            .ok_or_else(|| format!("{key:?} in `records` is not written <topic>-<partition>"))
    }
}

impl fmt::Display for Slot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

impl From<&Slot<'_>> for TopicPartition {
    fn from(slot: &Slot<'_>) -> Self {
        TopicPartition {
            topic: TopicName::new(slot.topic),
            partition: Partition(slot.partition),
        }
    }
}

/// An offset as any number, so that a wrong one can be reported together with its topic-partition.
#[derive(Clone, Copy)]
pub(crate) enum RawOffset {
    Whole(i64),
    Large(u64),
    Fraction(f64),
}

impl fmt::Display for RawOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(offset) => offset.fmt(f),
            Self::Large(offset) => offset.fmt(f),
            Self::Fraction(offset) => write!(f, "{offset:?}"),
        }
    }
}

impl<'de> Deserialize<'de> for RawOffset {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OffsetVisitor;

        impl Visitor<'_> for OffsetVisitor {
            type Value = RawOffset;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an offset")
            }

            fn visit_i64<E>(self, offset: i64) -> Result<RawOffset, E> {
                Ok(RawOffset::Whole(offset))
            }

            fn visit_u64<E>(self, offset: u64) -> Result<RawOffset, E> {
                Ok(i64::try_from(offset).map_or(RawOffset::Large(offset), RawOffset::Whole))
            }

            fn visit_f64<E>(self, offset: f64) -> Result<RawOffset, E> {
                Ok(RawOffset::Fraction(offset))
            }
        }

        deserializer.deserialize_i64(OffsetVisitor)
    }
}

struct EventSeed<'c, C> {
    collector: &'c mut C,
    records: usize,
}

impl<'de, C: Collector<'de>> DeserializeSeed<'de> for EventSeed<'_, C> {
    type Value = Head;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Head, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, C: Collector<'de>> Visitor<'de> for EventSeed<'_, C> {
    type Value = Head;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Kafka event: an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Head, A::Error> {
        let (mut head, mut seen) = (Head::default(), false);
        while let Some(key) = map.next_key::<Text<'de>>()? {
            match &*key {
                "eventSource" => head.event_source = map.next_value()?,
                "eventSourceArn" => head.event_source_arn = map.next_value()?,
                "bootstrapServers" => head.bootstrap_servers = map.next_value()?,
                "records" if seen => return Err(A::Error::duplicate_field("records")),
                "records" => {
                    seen = true;
                    map.next_value_seed(RecordsSeed(&mut self))?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if seen {
            Ok(head)
        } else {
            Err(A::Error::missing_field("records"))
        }
    }
}

struct RecordsSeed<'s, 'c, C>(&'s mut EventSeed<'c, C>);

impl<'de, C: Collector<'de>> DeserializeSeed<'de> for RecordsSeed<'_, '_, C> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, C: Collector<'de>> Visitor<'de> for RecordsSeed<'_, '_, C> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`records`: an object from <topic>-<partition> to a list of records")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Text<'de>>()? {
            let slot = Slot::of_key(&key).map_err(A::Error::custom)?;
            map.next_value_seed(BatchSeed { event: self.0, slot })?;
        }
        Ok(())
    }
}

struct BatchSeed<'s, 'c, 'k, C> {
    event: &'s mut EventSeed<'c, C>,
    slot: Slot<'k>,
}

impl<'de, C: Collector<'de>> DeserializeSeed<'de> for BatchSeed<'_, '_, '_, C> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, C: Collector<'de>> Visitor<'de> for BatchSeed<'_, '_, '_, C> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the list of records of {}", self.slot)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { event, slot } = self;
        let mut batch = C::Batch::default();
        loop {
            let record = RecordSeed {
                collector: &mut *event.collector,
                batch: &mut batch,
                slot: &slot,
            };
            if seq.next_element_seed(record)?.is_none() {
                break;
            }
            event.records += 1;
            if event.records > MAX_RECORDS {
                return Err(A::Error::custom(format_args!(
                    "the event has more than {MAX_RECORDS} records"
                )));
            }
        }
        event.collector.finish(TopicPartition::from(&slot), batch);
        Ok(())
    }
}

struct RecordSeed<'c, 'de, 'k, C: Collector<'de>> {
    collector: &'c mut C,
    batch: &'c mut C::Batch,
    slot: &'c Slot<'k>,
}

impl<'de, C: Collector<'de>> DeserializeSeed<'de> for RecordSeed<'_, 'de, '_, C> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, C: Collector<'de>> Visitor<'de> for RecordSeed<'_, 'de, '_, C> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a record of {}: an object", self.slot)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.collector.record(self.batch, self.slot, map)
    }
}
