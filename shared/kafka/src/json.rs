//! The event's JSON, read in one pass. Strings are borrowed unless they hold escapes.
//!
//! Depth is bounded by serde_json (128 levels; what is skipped is not recursed into), size and counts by the
//! constants in `event`.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use frazil_core::{Offset, TopicPartition};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::event::{MAX_HEADERS, MAX_RECORDS, SchemaMetadata};

/// What becomes of the records, array by array.
pub(crate) trait Collector<'de> {
    type Raw: Deserialize<'de>;
    type Batch: Default;

    /// Takes one record. The error is for people; its position is added.
    fn take(&mut self, batch: &mut Self::Batch, slot: &Slot<'_>, raw: Self::Raw) -> Result<(), String>;

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
pub(crate) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawRecord<'a> {
    #[serde(borrow)]
    pub(crate) topic: Text<'a>,
    pub(crate) partition: i32,
    pub(crate) offset: RawOffset,
    pub(crate) timestamp: Option<i64>,
    #[serde(borrow)]
    pub(crate) timestamp_type: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) key: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) value: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(crate) headers: RawHeaders<'a>,
    #[serde(
        borrow,
        default,
        rename = "keySchemaMetadata",
        deserialize_with = "schema_metadata"
    )]
    pub(crate) key_schema: Option<SchemaMetadata<'a>>,
    #[serde(
        borrow,
        default,
        rename = "valueSchemaMetadata",
        deserialize_with = "schema_metadata"
    )]
    pub(crate) value_schema: Option<SchemaMetadata<'a>>,
}

/// A record of which only the position is read.
#[derive(Deserialize)]
pub(crate) struct RawPosition<'a> {
    #[serde(borrow)]
    pub(crate) topic: Text<'a>,
    pub(crate) partition: i32,
    pub(crate) offset: RawOffset,
}

/// A place in the buffer.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    pub(crate) fn shift(self, by: usize) -> Self {
        Self {
            start: self.start + by,
            end: self.end + by,
        }
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

    /// The record's offset, when topic, partition and offset make sense.
    pub(crate) fn check(&self, topic: &str, partition: i32, offset: RawOffset) -> Result<Offset, String> {
        if topic != self.topic || partition != self.partition {
            return Err(format!(
                "`records` has a record of topic {topic:?}, partition {partition}, under the key \"{self}\"",
            ));
        }
        match offset {
            RawOffset::Whole(offset) if (0..=Offset::MAX.0).contains(&offset) => Ok(Offset(offset)),
            other => Err(format!(
                "{self} has offset {other}, but offsets go from 0 to {}",
                Offset::MAX
            )),
        }
    }
}

impl fmt::Display for Slot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
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

fn schema_metadata<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SchemaMetadata<'de>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Raw<'a> {
        #[serde(borrow)]
        data_format: Option<Text<'a>>,
        #[serde(borrow)]
        schema_id: Option<RawSchemaId<'a>>,
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum RawSchemaId<'a> {
        Number(u64),
        #[serde(borrow)]
        Text(Text<'a>),
    }

    let raw = Option::<Raw<'de>>::deserialize(deserializer)?;
    Ok(raw.and_then(|raw| {
        Some(SchemaMetadata {
            data_format: raw.data_format?.0,
            schema_id: match raw.schema_id? {
                RawSchemaId::Number(id) => id.to_string().into(),
                RawSchemaId::Text(id) => id.0,
            },
        })
    }))
}

/// Headers: a list of objects from name to bytes; the bytes of all headers lie in one buffer.
#[derive(Default)]
pub(crate) struct RawHeaders<'a> {
    pub(crate) list: Vec<(Cow<'a, str>, Option<Span>)>,
    pub(crate) bytes: Vec<u8>,
}

impl<'de: 'a, 'a> Deserialize<'de> for RawHeaders<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HeadersVisitor;

        impl<'de> Visitor<'de> for HeadersVisitor {
            type Value = RawHeaders<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("headers: a list of objects from name to bytes, or null")
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(RawHeaders::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut headers = RawHeaders::default();
                while seq.next_element_seed(HeaderSeed(&mut headers))?.is_some() {}
                Ok(headers)
            }
        }

        deserializer.deserialize_any(HeadersVisitor)
    }
}

struct HeaderSeed<'h, 'de>(&'h mut RawHeaders<'de>);

impl<'de> DeserializeSeed<'de> for HeaderSeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for HeaderSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a header: an object from name to bytes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<Text<'de>>()? {
            if self.0.list.len() >= MAX_HEADERS {
                return Err(A::Error::custom(format_args!(
                    "a record has more than {MAX_HEADERS} headers"
                )));
            }
            let value = map.next_value_seed(BytesSeed(&mut self.0.bytes))?;
            self.0.list.push((name.0, value));
        }
        Ok(())
    }
}

/// A header's value: null, or numbers that are Java's signed bytes (−128 … 127) or unsigned ones (0 … 255).
struct BytesSeed<'h>(&'h mut Vec<u8>);

impl<'de> DeserializeSeed<'de> for BytesSeed<'_> {
    type Value = Option<Span>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BytesSeed<'_> {
    type Value = Option<Span>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a header's value: a list of bytes, or null")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let start = self.0.len();
        while let Some(byte) = seq.next_element::<i64>()? {
            if !(-128..=255).contains(&byte) {
                return Err(A::Error::custom(format_args!(
                    "{byte} in a header's value is not a byte"
                )));
            }
            self.0.push((byte & 0xFF) as u8);
        }
        Ok(Some(Span {
            start,
            end: self.0.len(),
        }))
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
        while let Some(raw) = seq.next_element::<C::Raw>()? {
            event.records += 1;
            if event.records > MAX_RECORDS {
                return Err(A::Error::custom(format_args!(
                    "the event has more than {MAX_RECORDS} records"
                )));
            }
            event
                .collector
                .take(&mut batch, &slot, raw)
                .map_err(A::Error::custom)?;
        }
        event.collector.finish(TopicPartition::from(&slot), batch);
        Ok(())
    }
}
