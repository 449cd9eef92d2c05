use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use frazil_codec::{EncodedRecord, Payload};
use frazil_core::{Error, ErrorKind, Partition, Result, SchemaId};
use frazil_kafka::{PartitionBatch, Record, TimestampType, wire};
use frazil_registry::{SchemaKind, SchemaRegistry};
use frazil_schema::{AvroSchema, Mapping, SourceSchema};
use frazil_table::ValueFormat;

/// Compiled schemas kept per process: more than any topic's history of schemas.
const MAX_COMPILED: usize = 4_096;

/// Compiled writer schemas by mapping (as JSON) and id, for the life of the process.
#[derive(Debug)]
pub(crate) struct Schemas {
    registry: Arc<dyn SchemaRegistry>,
    compiled: Mutex<HashMap<(String, SchemaId), Arc<SourceSchema>>>,
}

impl Schemas {
    pub(crate) fn new(registry: Arc<dyn SchemaRegistry>) -> Self {
        Self {
            registry,
            compiled: Mutex::default(),
        }
    }

    /// Resolves every schema id. One that does not exist or cannot be used makes its records poison; a registry that
    /// is away fails the event, so that it is delivered again.
    pub(crate) async fn resolve(
        &self,
        ids: BTreeSet<SchemaId>,
        mapping: &Mapping,
    ) -> Result<HashMap<SchemaId, Resolved>> {
        let frozen = serde_json::to_string(mapping).map_err(|error| {
            Error::new(ErrorKind::Internal, "use the topic's settings", error.to_string()).with_source(error)
        })?;
        let mut resolved = HashMap::with_capacity(ids.len());
        for id in ids {
            let key = (frozen.clone(), id);
            let known = self
                .compiled
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(&key)
                .cloned();
            let found = match known {
                Some(schema) => Ok(schema),
                None => match self.compile(key, mapping).await {
                    Ok(schema) => Ok(schema),
                    Err(error) if matches!(error.kind(), ErrorKind::Poison | ErrorKind::Invalid) => {
                        Err(error)
                    }
                    Err(error) => return Err(error),
                },
            };
            resolved.insert(id, found);
        }
        Ok(resolved)
    }

    async fn compile(&self, key: (String, SchemaId), mapping: &Mapping) -> Result<Arc<SourceSchema>> {
        let (_, id) = key;
        let registered = self.registry.schema(id).await?;
        if registered.kind != SchemaKind::Avro {
            return Err(Error::new(
                ErrorKind::Poison,
                "use the record's schema",
                "it is not an Avro schema, and this version reads Avro and JSON without a schema",
            )
            .with_context("schema_id", id)
            .with_code("registry.unsupported_format"));
        }
        let schema = AvroSchema::compile(&registered.text, &[], mapping)
            .map_err(|error| error.with_context("schema_id", id))?;
        let schema = Arc::new(SourceSchema::Avro(schema));
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.len() < MAX_COMPILED {
            compiled.insert(key, schema.clone());
        }
        Ok(schema)
    }
}

/// A schema that can be used, or why its records cannot be read.
pub(crate) type Resolved = std::result::Result<Arc<SourceSchema>, Error>;

/// A topic's records in one event, by partition and offset, with their framing taken off.
pub(crate) struct Framed<'a> {
    /// What the codec is to decode.
    pub(crate) encoded: Vec<EncodedRecord<'a>>,
    /// For each encoded record, its place among all of the topic's.
    pub(crate) places: Vec<usize>,
    /// Records whose framing or schema is unusable: place and reason.
    pub(crate) poison: Vec<(usize, Error)>,
}

/// The format that most values of an event have, by their first byte: Confluent's prefix starts with 0. `None` when
/// there is no value to judge by.
pub(crate) fn prevailing_format(batches: &[&PartitionBatch<'_>]) -> Option<ValueFormat> {
    let values = batches
        .iter()
        .flat_map(|batch| &batch.records)
        .filter_map(|record| record.value);
    let (framed, others): (Vec<&[u8]>, Vec<&[u8]>) = values.partition(|value| value.first() == Some(&0));
    if framed.is_empty() && others.is_empty() {
        return None;
    }
    Some(if framed.len() > others.len() {
        ValueFormat::Avro
    } else {
        ValueFormat::Json
    })
}

/// The schema ids that a topic's values name.
pub(crate) fn schema_ids(batches: &[&PartitionBatch<'_>], format: ValueFormat) -> BTreeSet<SchemaId> {
    if format == ValueFormat::Json {
        return BTreeSet::new();
    }
    let values = batches
        .iter()
        .flat_map(|batch| &batch.records)
        .filter_map(|record| record.value);
    values
        .filter_map(|value| wire::confluent(value).ok().map(|(id, _)| id))
        .collect()
}

/// Takes the framing off.
pub(crate) fn frame<'a>(
    records: &[(Partition, &'a Record<'a>)],
    format: ValueFormat,
    schemas: &'a HashMap<SchemaId, Resolved>,
) -> Framed<'a> {
    let mut framed = Framed {
        encoded: Vec::with_capacity(records.len()),
        places: Vec::with_capacity(records.len()),
        poison: Vec::new(),
    };
    for (place, (partition, record)) in records.iter().enumerate() {
        match payload(record.value, format, schemas) {
            Ok(payload) => {
                framed.encoded.push(EncodedRecord {
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
                framed.places.push(place);
            }
            Err(error) => framed.poison.push((place, error)),
        }
    }
    framed
}

fn payload<'a>(
    value: Option<&'a [u8]>,
    format: ValueFormat,
    schemas: &'a HashMap<SchemaId, Resolved>,
) -> Result<Payload<'a>> {
    let Some(value) = value else {
        return Ok(Payload::Tombstone);
    };
    if format == ValueFormat::Json {
        return Ok(Payload::Json(value));
    }
    let (id, body) = wire::confluent(value)?;
    match schemas.get(&id) {
        Some(Ok(schema)) => Ok(Payload::Encoded {
            schema: schema.as_ref(),
            body,
        }),
        Some(Err(error)) => Err(again(error)),
        None => Err(Error::new(
            ErrorKind::Internal,
            "use the record's schema",
            "it was not resolved",
        )
        .with_context("schema_id", id)),
    }
}

/// The same reason for the next record of the same schema.
fn again(error: &Error) -> Error {
    let mut copy = Error::new(ErrorKind::Poison, error.operation(), error.message());
    for (key, value) in error.context() {
        copy = copy.with_context(key, value);
    }
    if let Some(hint) = error.hint() {
        copy = copy.with_hint(hint);
    }
    copy.with_code(error.code().unwrap_or("registry.unsupported_schema"))
}

fn timestamp_type(of: TimestampType) -> Option<&'static str> {
    match of {
        TimestampType::CreateTime => Some("CREATE_TIME"),
        TimestampType::LogAppendTime => Some("LOG_APPEND_TIME"),
        TimestampType::Unknown => None,
    }
}
