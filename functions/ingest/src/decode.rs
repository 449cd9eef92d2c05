use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use frazil_codec::{EncodedRecord, Payload};
use frazil_config::{Format, SchemaSource, TopicSettings};
use frazil_core::{Error, ErrorKind, Partition, Result};
use frazil_kafka::wire::{Framed, Framing, SchemaRef, Side, SubjectVersion, Unframed};
use frazil_kafka::{Record, TimestampType};
use frazil_schema::SourceSchema;

use crate::encoding::Encoding;
use crate::schemas::TopicSchemas;

/// The most bytes that inflating may add to one event: with the event itself and its columns it still fits into the
/// memory of a small function.
const MAX_INFLATED_BYTES: usize = 64 << 20;

/// A topic's values in one event, with their framing taken off and their schemas found.
pub(crate) struct Values<'r>(Vec<Result<Value<'r>>>);

enum Value<'r> {
    Tombstone,
    Json(Unframed<'r>),
    Raw(Unframed<'r>),
    Encoded {
        schema: Arc<SourceSchema>,
        value: Unframed<'r>,
        /// Bytes of the body that come before the payload.
        skipped: usize,
    },
}

/// A topic's records in one event, by partition and offset, ready for the codec.
pub(crate) struct Readable<'a> {
    /// What the codec is to decode.
    pub(crate) encoded: Vec<EncodedRecord<'a>>,
    /// For each encoded record, its place among all of the topic's.
    pub(crate) places: Vec<usize>,
    /// Records whose framing or schema is unusable: place and reason.
    pub(crate) poison: Vec<(usize, &'a Error)>,
}

/// The schema that the configuration names for values that name none; `path` is that of a file.
pub(crate) fn named_schema(settings: &TopicSettings, path: impl Fn(&str) -> PathBuf) -> Option<SchemaRef> {
    match &settings.schema {
        SchemaSource::File(written) => Some(SchemaRef::File(path(written))),
        SchemaSource::Subject(subject, version) => Some(SchemaRef::Subject {
            subject: subject.clone(),
            version: version.map_or(SubjectVersion::Latest, SubjectVersion::Number),
        }),
        SchemaSource::Auto | SchemaSource::Registry | SchemaSource::Infer | SchemaSource::Raw => None,
    }
}

impl<'r> Values<'r> {
    /// Takes the framing off every value, then fetches and compiles their schemas.
    ///
    /// # Errors
    /// `Unavailable` when a registry is away, or when the event inflates to more than a function holds. What is wrong
    /// with single records makes only them poison.
    pub(crate) async fn read(
        records: &[(Partition, &'r Record<'r>)],
        side: Side,
        encoding: Encoding,
        named: Option<&SchemaRef>,
        schemas: &mut TopicSchemas<'_>,
    ) -> Result<Self> {
        let mut inflated = 0;
        let mut unframed = Vec::with_capacity(records.len());
        let mut wanted = BTreeSet::new();
        for (_, record) in records {
            let framed = match side {
                Side::Value => Framed::value(record),
                Side::Key => Framed::key(record),
            };
            let value = framed.map(|value| unframe(&value, encoding)).transpose();
            if let Ok(Some(value)) = &value {
                inflated += value.inflated_bytes();
                if inflated > MAX_INFLATED_BYTES {
                    return Err(too_much());
                }
                let reference = value
                    .schema
                    .as_ref()
                    .or(named)
                    .filter(|_| has_schema(encoding.format));
                if let Some(reference) = reference.filter(|reference| !wanted.contains(*reference)) {
                    wanted.insert(reference.clone());
                }
            }
            unframed.push(value);
        }
        for reference in &wanted {
            schemas.fetch(reference).await?;
        }
        let values = unframed.into_iter().map(|value| match value? {
            None => Ok(Value::Tombstone),
            Some(value) => of_format(value, encoding, named, schemas),
        });
        Ok(Self(values.collect()))
    }

    /// The records for the codec. Those with one schema have one and the same reference to it.
    pub(crate) fn readable<'a>(&'a self, records: &[(Partition, &'a Record<'a>)]) -> Readable<'a> {
        let mut readable = Readable {
            encoded: Vec::with_capacity(records.len()),
            places: Vec::with_capacity(records.len()),
            poison: Vec::new(),
        };
        for (place, ((partition, record), value)) in records.iter().zip(&self.0).enumerate() {
            let payload = match value {
                Ok(Value::Tombstone) => Payload::Tombstone,
                Ok(Value::Json(value)) => Payload::Json(value.body()),
                Ok(Value::Raw(value)) => Payload::Raw(value.body()),
                Ok(Value::Encoded {
                    schema,
                    value,
                    skipped,
                }) => Payload::Encoded {
                    schema,
                    body: &value.body()[*skipped..],
                },
                Err(error) => {
                    readable.poison.push((place, error));
                    continue;
                }
            };
            readable.encoded.push(EncodedRecord {
                partition: *partition,
                offset: record.offset,
                timestamp_ms: record.timestamp_ms,
                timestamp_type: timestamp_type(record.timestamp_type),
                key: record.key,
                headers: record
                    .headers
                    .iter()
                    .map(|header| (header.name.as_ref(), header.value))
                    .collect(),
                payload,
            });
            readable.places.push(place);
        }
        readable
    }
}

fn has_schema(format: Format) -> bool {
    match format {
        Format::Auto | Format::Avro | Format::JsonSchema | Format::Protobuf => true,
        Format::Json | Format::Raw | Format::String => false,
    }
}

fn unframe<'r>(value: &Framed<'r>, encoding: Encoding) -> Result<Unframed<'r>> {
    // JSON text shows no framing by chance, and needs none.
    if encoding.format == Format::Json && encoding.framing == Framing::Auto {
        return value.unframe(value.detect().unwrap_or(Framing::None));
    }
    value.unframe(encoding.framing)
}

fn of_format<'r>(
    value: Unframed<'r>,
    encoding: Encoding,
    named: Option<&SchemaRef>,
    schemas: &mut TopicSchemas<'_>,
) -> Result<Value<'r>> {
    match encoding.format {
        Format::Json => Ok(Value::Json(value)),
        Format::Raw | Format::String => Ok(Value::Raw(value)),
        Format::Auto | Format::Avro | Format::JsonSchema | Format::Protobuf => {
            let Some(reference) = value.schema.as_ref().or(named) else {
                return Err(Error::new(
                    ErrorKind::Internal,
                    "use the record's schema",
                    "neither the record nor the configuration names it",
                ));
            };
            let (schema, skipped) = schemas.of_value(reference, &value)?;
            Ok(Value::Encoded {
                schema,
                value,
                skipped,
            })
        }
    }
}

fn too_much() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "inflate the event",
        format!("its values take more than {MAX_INFLATED_BYTES} bytes"),
    )
    .with_code("wire.event_too_large")
    .with_hint("lower the batch size of the event source mapping, or set BisectBatchOnFunctionError")
}

fn timestamp_type(of: TimestampType) -> Option<&'static str> {
    match of {
        TimestampType::CreateTime => Some("CREATE_TIME"),
        TimestampType::LogAppendTime => Some("LOG_APPEND_TIME"),
        TimestampType::Unknown => None,
    }
}

#[cfg(test)]
mod tests;
