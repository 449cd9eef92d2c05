use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use frazil_config::{Format, Tables, TopicSettings};
use frazil_core::{Error, ErrorKind, RegistryName, Result};
use frazil_kafka::wire::{MessageRef, SchemaRef, Unframed};
use frazil_registry::{RegisteredSchema, SchemaKind};
use frazil_schema::{Mapping, SourceSchema};

use crate::Registries;
use crate::compile::compile;

/// Schemas kept per process, fetched and compiled: more than any topic's history of them.
const MAX_KEPT: usize = 4_096;

/// Writer schemas, fetched and compiled, for the life of the process.
#[derive(Debug)]
pub(crate) struct Schemas {
    registries: Registries,
    fetched: Mutex<HashMap<Place, Arc<RegisteredSchema>>>,
    compiled: Mutex<HashMap<CompiledKey, Arc<SourceSchema>>>,
}

/// A schema, and the registry that has it: ids of two registries are not related.
type Place = (Option<RegistryName>, SchemaRef);

/// What a compiled schema depends on: its text, the message in it, and the settings that make columns of it (as JSON:
/// they have maps in them).
type CompiledKey = (Place, MessageRef, Arc<str>);

/// One topic's schemas in one event: each fetched and compiled once, or the reason why its records cannot be read.
pub(crate) struct TopicSchemas<'s> {
    schemas: &'s Schemas,
    settings: &'s TopicSettings,
    format: Format,
    mapping: &'s Mapping,
    mapping_text: Arc<str>,
    fetched: HashMap<SchemaRef, Found<RegisteredSchema>>,
    compiled: HashMap<(SchemaRef, MessageRef), Found<SourceSchema>>,
    /// The schema of the last value, if its language has no messages to choose from.
    last: Option<(SchemaRef, Arc<SourceSchema>)>,
}

type Found<T> = std::result::Result<Arc<T>, Error>;

impl Schemas {
    pub(crate) fn new(registries: Registries) -> Self {
        Self {
            registries,
            fetched: Mutex::default(),
            compiled: Mutex::default(),
        }
    }

    /// The schemas of one topic in one event. `format` is what the topic's values must be in; `auto` is any language.
    pub(crate) fn of_topic<'s>(
        &'s self,
        settings: &'s TopicSettings,
        format: Format,
        mapping: &'s Mapping,
    ) -> Result<TopicSchemas<'s>> {
        let text = serde_json::to_string(mapping)
            .map_err(|e| Error::new(ErrorKind::Internal, "compare settings", e.to_string()).with_source(e))?;
        Ok(TopicSchemas {
            schemas: self,
            settings,
            format,
            mapping,
            mapping_text: text.into(),
            fetched: HashMap::new(),
            compiled: HashMap::new(),
            last: None,
        })
    }
}

#[cfg(test)]
impl Schemas {
    /// How many are kept, fetched and compiled.
    pub(crate) fn kept(&self) -> (usize, usize) {
        (
            self.fetched.lock().unwrap().len(),
            self.compiled.lock().unwrap().len(),
        )
    }
}

impl TopicSchemas<'_> {
    /// Fetches a schema. One that does not exist or cannot be used makes its records poison, in
    /// [`of_value`](Self::of_value); a registry that is away fails the event, so that it is delivered again.
    pub(crate) async fn fetch(&mut self, reference: &SchemaRef) -> Result<()> {
        if self.fetched.contains_key(reference) {
            return Ok(());
        }
        let registry = self.settings.registry.clone();
        let place = (registry, reference.clone());
        let found = match get(&self.schemas.fetched, &place) {
            Some(schema) => Ok(schema),
            None => {
                let registry = self.schemas.registries.get(place.0.as_ref(), reference)?;
                match registry.schema(reference).await {
                    Ok(schema) => Ok(keep(&self.schemas.fetched, place, schema)),
                    // Which table its records go into is not known, and must not depend on the hour: they come again.
                    Err(error) if error.kind() == ErrorKind::Poison && self.routes_by_schema() => {
                        return Err(Error::new(
                            ErrorKind::Unavailable,
                            error.operation(),
                            error.message().to_owned(),
                        )
                        .with_context("topic", &self.settings.topic)
                        .with_hint("register the schema: it says into which table its records go")
                        .with_source(error));
                    }
                    Err(error) if matches!(error.kind(), ErrorKind::Poison | ErrorKind::Invalid) => {
                        Err(error)
                    }
                    Err(error) => return Err(error.with_context("topic", &self.settings.topic)),
                }
            }
        };
        self.fetched.insert(reference.clone(), found);
        Ok(())
    }

    fn routes_by_schema(&self) -> bool {
        self.settings.tables == Tables::ByRecordName
    }

    /// The compiled schema of a value whose schema was fetched, and how many bytes of its body are not payload.
    pub(crate) fn of_value(
        &mut self,
        reference: &SchemaRef,
        value: &Unframed<'_>,
    ) -> Result<(Arc<SourceSchema>, usize)> {
        // Most values have the schema of the one before them.
        if let Some((last, schema)) = &self.last
            && last == reference
        {
            return Ok((schema.clone(), 0));
        }
        let registered = match self.fetched.get(reference) {
            Some(Ok(schema)) => schema.clone(),
            Some(Err(error)) => return Err(again(error)),
            None => {
                let reason = "it was not fetched";
                return Err(Error::new(ErrorKind::Internal, "use the record's schema", reason)
                    .with_context("schema", reference));
            }
        };
        check_format(self.format, registered.kind, reference)?;
        if registered.kind != SchemaKind::Protobuf {
            let schema = self.compiled(reference, &registered, MessageRef::Unstated)?;
            self.last = Some((reference.clone(), schema.clone()));
            return Ok((schema, 0));
        }
        let (message, payload) = value.protobuf()?;
        let message = match (message, &self.settings.message) {
            (MessageRef::Unstated, Some(name)) => MessageRef::Name(name.clone()),
            (message, _) => message,
        };
        let skipped = value.body().len() - payload.len();
        Ok((self.compiled(reference, &registered, message)?, skipped))
    }

    fn compiled(
        &mut self,
        reference: &SchemaRef,
        registered: &RegisteredSchema,
        message: MessageRef,
    ) -> Result<Arc<SourceSchema>> {
        let found = match self.compiled.entry((reference.clone(), message)) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(vacant) => {
                let place = (self.settings.registry.clone(), reference.clone());
                let key = (place, vacant.key().1.clone(), self.mapping_text.clone());
                let found = match get(&self.schemas.compiled, &key) {
                    Some(schema) => Ok(schema),
                    None => compile(registered, &key.1, self.mapping)
                        .map(|schema| keep(&self.schemas.compiled, key, schema))
                        .map_err(|error| error.with_context("schema", reference)),
                };
                vacant.insert(found)
            }
        };
        match found {
            Ok(schema) => Ok(schema.clone()),
            Err(error) => Err(again(error)),
        }
    }
}

fn get<K: Eq + Hash, V>(kept: &Mutex<HashMap<K, Arc<V>>>, key: &K) -> Option<Arc<V>> {
    kept.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(key)
        .cloned()
}

/// Keeps a schema, unless there are too many: then it lives for one event.
fn keep<K: Eq + Hash, V>(kept: &Mutex<HashMap<K, Arc<V>>>, key: K, schema: V) -> Arc<V> {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let schema = Arc::new(schema);
    if kept.len() < MAX_KEPT {
        return kept.entry(key).or_insert(schema).clone();
    }
    schema
}

/// A topic whose format is configured takes no other: its table would get the columns of two.
fn check_format(format: Format, kind: SchemaKind, reference: &SchemaRef) -> Result<()> {
    let fits = match format {
        Format::Auto => true,
        Format::Avro => kind == SchemaKind::Avro,
        Format::JsonSchema => kind == SchemaKind::Json,
        Format::Protobuf => kind == SchemaKind::Protobuf,
        Format::Json | Format::Raw | Format::String => false,
    };
    if fits {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Poison,
        "use the record's schema",
        format!(
            "it is {}, and the topic's values are said to be {format}",
            kind.as_str()
        ),
    )
    .with_context("schema", reference)
    .with_code("registry.other_format")
    .with_hint("set format = \"auto\" to read each value in the language of its schema"))
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
