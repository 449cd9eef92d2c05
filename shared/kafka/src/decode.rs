use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::ops::Range;

use base64_simd::{AsOut as _, STANDARD};
use frazil_core::TopicPartition;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::event::{Header, MAX_HEADERS, Record, SchemaMetadata, TimestampType};
use crate::json::{Collector, Field, Position, Slot, Text, once};

/// Decodes records as they are read, while their text is still in the cache. What is decoded is cut off the buffer's
/// front, so that records can borrow it at once.
pub(crate) struct Decoder<'a> {
    room: &'a mut [u8],
    batches: BTreeMap<TopicPartition, Vec<Record<'a>>>,
    headers: usize,
    scratch: RawHeaders<'a>,
}

impl<'a> Decoder<'a> {
    /// `room` must be as long as the event: base64 and lists of bytes are longer than what they stand for.
    pub(crate) fn new(room: &'a mut [u8]) -> Self {
        Self {
            room,
            batches: BTreeMap::new(),
            headers: 0,
            scratch: RawHeaders::default(),
        }
    }

    /// What was read: no batch is empty, and records are in the order of the event.
    pub(crate) fn into_batches(self) -> BTreeMap<TopicPartition, Vec<Record<'a>>> {
        self.batches
    }

    /// `None` when it is not base64.
    fn base64(&mut self, text: Option<&str>) -> Option<Option<&'a [u8]>> {
        let Some(text) = text.map(str::as_bytes).filter(|text| !text.is_empty()) else {
            return Some(None);
        };
        let place = self.reserve(STANDARD.decoded_length(text).ok()?)?;
        STANDARD
            .decode(text, place.as_out())
            .ok()
            .map(|bytes| Some(&*bytes))
    }

    /// Takes the headers out of the scratch space.
    fn headers<E: serde::de::Error>(&mut self) -> Result<Vec<Header<'a>>, E> {
        if self.scratch.list.is_empty() {
            return Ok(Vec::new());
        }
        self.headers += self.scratch.list.len();
        if self.headers > MAX_HEADERS {
            return Err(E::custom(format_args!(
                "the event has more than {MAX_HEADERS} headers"
            )));
        }
        let place = self
            .reserve(self.scratch.bytes.len())
            .ok_or_else(|| E::custom("the headers are longer than the event"))?;
        place.copy_from_slice(&self.scratch.bytes);
        let bytes: &'a [u8] = place;
        self.scratch.bytes.clear();
        let list = self.scratch.list.drain(..);
        Ok(list
            .map(|(name, span)| Header {
                name,
                value: span.map(|span| &bytes[span]),
            })
            .collect())
    }

    fn reserve(&mut self, length: usize) -> Option<&'a mut [u8]> {
        let (place, room) = std::mem::take(&mut self.room).split_at_mut_checked(length)?;
        self.room = room;
        Some(place)
    }
}

impl<'a> Collector<'a> for Decoder<'a> {
    type Batch = Vec<Record<'a>>;

    fn record<A: MapAccess<'a>>(
        &mut self,
        batch: &mut Self::Batch,
        slot: &Slot<'_>,
        mut map: A,
    ) -> Result<(), A::Error> {
        let mut position = Position::default();
        let (mut timestamp, mut timestamp_type) = (None, None);
        let (mut key, mut value) = (None, None);
        let (mut key_schema, mut value_schema) = (None, None);
        let mut headers = None;
        while let Some(field) = map.next_key::<Field>()? {
            match field {
                Field::Topic | Field::Partition | Field::Offset => {
                    position.take(field, &mut map)?;
                }
                Field::Timestamp => once(&mut timestamp, map.next_value::<Option<i64>>()?, "timestamp")?,
                Field::TimestampType => once(&mut timestamp_type, map.next_value()?, "timestampType")?,
                Field::Key => once(&mut key, map.next_value::<Option<Text<'a>>>()?, "key")?,
                Field::Value => once(&mut value, map.next_value::<Option<Text<'a>>>()?, "value")?,
                Field::Headers => {
                    once(
                        &mut headers,
                        map.next_value_seed(HeadersSeed(&mut self.scratch))?,
                        "headers",
                    )?;
                }
                Field::KeySchemaMetadata => {
                    once(
                        &mut key_schema,
                        map.next_value::<RawSchema<'a>>()?,
                        "keySchemaMetadata",
                    )?;
                }
                Field::ValueSchemaMetadata => {
                    once(
                        &mut value_schema,
                        map.next_value::<RawSchema<'a>>()?,
                        "valueSchemaMetadata",
                    )?;
                }
                Field::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let offset = position.offset(slot)?;
        let failed = |what| {
            A::Error::custom(format_args!(
                "the {what} of {slot} at offset {offset} is not base64"
            ))
        };
        let (key, value) = (key.flatten(), value.flatten());
        batch.push(Record {
            offset,
            timestamp_ms: timestamp.flatten().filter(|&millis| millis != -1),
            timestamp_type: timestamp_type
                .unwrap_or(RawTimestampType(TimestampType::Unknown))
                .0,
            key: self.base64(key.as_deref()).ok_or_else(|| failed("key"))?,
            value: self.base64(value.as_deref()).ok_or_else(|| failed("value"))?,
            headers: self.headers()?,
            key_schema: key_schema.and_then(|schema| schema.0),
            value_schema: value_schema.and_then(|schema| schema.0),
        });
        Ok(())
    }

    fn finish(&mut self, topic_partition: TopicPartition, mut batch: Self::Batch) {
        if batch.is_empty() {
            return;
        }
        match self.batches.entry(topic_partition) {
            Entry::Vacant(vacant) => drop(vacant.insert(batch)),
            Entry::Occupied(mut earlier) => earlier.get_mut().append(&mut batch),
        }
    }
}

struct RawTimestampType(TimestampType);

impl<'de> Deserialize<'de> for RawTimestampType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Option::<Text<'de>>::deserialize(deserializer)?;
        Ok(Self(match text.as_deref() {
            Some("CREATE_TIME") => TimestampType::CreateTime,
            Some("LOG_APPEND_TIME") => TimestampType::LogAppendTime,
            _ => TimestampType::Unknown,
        }))
    }
}

struct RawSchema<'a>(Option<Box<SchemaMetadata<'a>>>);

impl<'de: 'a, 'a> Deserialize<'de> for RawSchema<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
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

        let raw = Option::<Raw<'a>>::deserialize(deserializer)?;
        Ok(Self(raw.and_then(|raw| {
            let schema_id = match raw.schema_id? {
                RawSchemaId::Number(id) => id.to_string().into(),
                RawSchemaId::Text(id) => id.0,
            };
            Some(Box::new(SchemaMetadata {
                data_format: raw.data_format?.0,
                schema_id,
            }))
        })))
    }
}

/// The headers of one record; the bytes of all of them lie together.
#[derive(Default)]
struct RawHeaders<'a> {
    list: Vec<(Cow<'a, str>, Option<Range<usize>>)>,
    bytes: Vec<u8>,
}

/// Headers: null, or a list of objects from name to bytes.
struct HeadersSeed<'h, 'de>(&'h mut RawHeaders<'de>);

impl<'de> DeserializeSeed<'de> for HeadersSeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for HeadersSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("headers: a list of objects from name to bytes, or null")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(HeaderSeed(self.0))?.is_some() {}
        Ok(())
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
    type Value = Option<Range<usize>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for BytesSeed<'_> {
    type Value = Option<Range<usize>>;

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
        Ok(Some(start..self.0.len()))
    }
}
