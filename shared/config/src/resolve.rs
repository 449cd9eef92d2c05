use std::collections::BTreeMap;

use frazil_core::{Error, ErrorKind, RegistryName, Result, SourceName, TableName, TopicName, safe_name};

use crate::encoding::{self, Encoding, SchemaSource};
use crate::fault::{At, FaultList, Located, Problem};
use crate::fields;
use crate::instant::InstantRange;
use crate::kafka_columns::KafkaColumns;
use crate::layout::{PartitionField, SortField, Transform, check_kafka_column};
use crate::registry::Registry;
use crate::sections::{TopicKeys, TopicSection};
use crate::source::Source;
use crate::topic::{Breaker, OnError, Retention, TopicSettings};

const DEFAULT_NAMESPACE: &str = "kafka";
const DEFAULT_MAX_COLUMNS: u32 = 500;
/// Freshness of a minute: the pace of the catalog function.
const DEFAULT_FRESHNESS_MS: u64 = 60_000;

impl TopicSettings {
    /// Checks that this topic's table, and the table of its dead letters, belong to no other topic. To be asked
    /// when a topic is seen for the first time, with the tables that exist.
    pub fn check_alone<'t>(
        &self,
        others: impl IntoIterator<Item = (&'t SourceName, &'t TopicName, &'t TableName)>,
    ) -> Result<()> {
        let own = [self.table.clone(), self.table.dead_letters()?];
        for (source, topic, table) in others {
            if (source, topic) == (&self.source, &self.topic) {
                continue;
            }
            if own.contains(table) || own.contains(&table.dead_letters()?) {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    "give a topic its table",
                    format!("topic `{topic}` of source `{source}` has the table `{table}`"),
                )
                .with_context("source", &self.source)
                .with_context("topic", &self.topic)
                .with_context("table", &self.table)
                .with_hint(format!(
                    "name another table: [topics.\"{}\"] table = \"…\"",
                    self.topic
                ))
                .with_code("table.taken"));
            }
        }
        Ok(())
    }
}

/// The settings of a topic. What is wrong with keys was reported before; here only names can be.
pub(crate) fn resolve(
    source: &Source,
    topic: &TopicName,
    section: Option<&TopicSection>,
    defaults: &TopicKeys,
    registries: &[Registry],
) -> Result<TopicSettings> {
    let own = section.map(|section| &section.keys);
    let namespace = own
        .and_then(|keys| keys.namespace.as_ref())
        .map(|name| name.value.as_str())
        .or(source.namespace.as_ref().map(|name| name.as_str()))
        .or(defaults.namespace.as_ref().map(|name| name.value.as_str()))
        .unwrap_or(DEFAULT_NAMESPACE);
    let derived = || safe_name(&topic.as_str().to_lowercase());
    let table = section
        .and_then(|section| section.table.as_ref())
        .map_or_else(derived, |name| name.value.clone());
    let table = TableName::new(namespace, &table)?;
    // The dead letters' name is longer, and must be a name too.
    table.dead_letters()?;
    let layers = Layers { own, defaults };
    let encoding = Encoding::of(layers);
    let registry = registry(layers, &encoding, registries)?;
    Ok(TopicSettings {
        source: source.name.clone(),
        topic: topic.clone(),
        table,
        format: encoding.format,
        framing: encoding.framing,
        schema: encoding.schema,
        registry,
        message: layers.get(|keys| &keys.message),
        tables: layers.get(|keys| &keys.tables).unwrap_or_default(),
        key: layers.get(|keys| &keys.key).unwrap_or_default(),
        key_format: layers.get(|keys| &keys.key_format).unwrap_or_default(),
        kafka_columns: layers.kafka_columns(),
        column_case: layers.get(|keys| &keys.column_case).unwrap_or_default(),
        timestamps: layers.get(|keys| &keys.timestamps).unwrap_or_default(),
        time_type: layers.get(|keys| &keys.time_type).unwrap_or_default(),
        oneof_case: layers.get(|keys| &keys.oneof_case).unwrap_or_default(),
        unknown_fields: layers.get(|keys| &keys.unknown_fields).unwrap_or_default(),
        fields: fields::merge([&defaults.fields].into_iter().chain(own.map(|keys| &keys.fields))),
        hash_key_env: layers.get(|keys| &keys.hash_key_env),
        max_columns: layers
            .get(|keys| &keys.max_columns)
            .unwrap_or(DEFAULT_MAX_COLUMNS),
        partition_by: layers
            .partition_by()
            .into_iter()
            .map(|(field, _)| field)
            .collect(),
        sort_by: layers
            .get(|keys| &keys.sort_by)
            .unwrap_or_default()
            .into_iter()
            .map(|field| field.value)
            .collect(),
        timestamp_range: layers
            .get(|keys| &keys.timestamp_range)
            .unwrap_or(InstantRange::YEARS_1_TO_9999),
        partition_range: layers.get(|keys| &keys.partition_range).unwrap_or_default(),
        on_error: layers.get(|keys| &keys.on_error).unwrap_or_default(),
        breaker: layers.breaker(),
        freshness_ms: layers
            .get(|keys| &keys.freshness)
            .unwrap_or(crate::DurationMs(DEFAULT_FRESHNESS_MS)),
        retention: layers.retention(),
        backfill: layers.get(|keys| &keys.backfill).unwrap_or_default(),
    })
}

/// The registry of a topic: the one that it names, or the only one.
fn registry(
    layers: Layers<'_>,
    encoding: &Encoding,
    registries: &[Registry],
) -> Result<Option<RegistryName>> {
    if let Some(name) = layers.get(|keys| &keys.registry) {
        return Ok(Some(RegistryName::new(name)));
    }
    let needs_one = match encoding.schema {
        SchemaSource::Registry | SchemaSource::Subject(..) | SchemaSource::Auto => true,
        SchemaSource::Infer | SchemaSource::Raw | SchemaSource::File(_) => false,
    };
    match registries {
        [] => Ok(None),
        [only] => Ok(Some(only.name.clone())),
        [..] if !needs_one => Ok(None),
        [..] => Err(Error::new(
            ErrorKind::Invalid,
            "configure a topic",
            "no registry is named, and there are several",
        )
        .with_hint("add registry = \"NAME\" to the topic or to [defaults]")),
    }
}

/// A topic's own keys on top of the defaults.
#[derive(Clone, Copy)]
pub(crate) struct Layers<'k> {
    own: Option<&'k TopicKeys>,
    defaults: &'k TopicKeys,
}

impl Layers<'_> {
    pub(crate) fn get<T: Clone>(&self, key: impl Fn(&TopicKeys) -> &Option<Located<T>>) -> Option<T> {
        let own = self.own.and_then(|keys| key(keys).as_ref());
        own.or(key(self.defaults).as_ref()).map(|read| read.value.clone())
    }

    fn kafka_columns(&self) -> KafkaColumns {
        let defaults = KafkaColumns::default();
        KafkaColumns {
            key: self.get(|keys| &keys.kafka_columns.key).unwrap_or(defaults.key),
            headers: self
                .get(|keys| &keys.kafka_columns.headers)
                .unwrap_or(defaults.headers),
            tombstone: self
                .get(|keys| &keys.kafka_columns.tombstone)
                .unwrap_or(defaults.tombstone),
            topic: self
                .get(|keys| &keys.kafka_columns.topic)
                .unwrap_or(defaults.topic),
            timestamp_type: self
                .get(|keys| &keys.kafka_columns.timestamp_type)
                .unwrap_or(defaults.timestamp_type),
        }
    }

    /// The partition spec, each field with its place if it was written.
    fn partition_by(&self) -> Vec<(PartitionField, Option<At>)> {
        for keys in self.own.into_iter().chain([self.defaults]) {
            if let Some(column) = &keys.event_time {
                let field = PartitionField {
                    source: column.value.clone(),
                    transform: Transform::Day,
                };
                return vec![(field, Some(column.at.clone()))];
            }
            if let Some(fields) = &keys.partition_by {
                return fields
                    .value
                    .iter()
                    .map(|field| (field.value.clone(), Some(field.at.clone())))
                    .collect();
            }
        }
        vec![(
            PartitionField {
                source: "_kafka_timestamp".to_owned(),
                transform: Transform::Day,
            },
            None,
        )]
    }

    fn breaker(&self) -> Breaker {
        let defaults = Breaker::default();
        Breaker {
            share: self.get(|keys| &keys.breaker.share).unwrap_or(defaults.share),
            minimum: self.get(|keys| &keys.breaker.minimum).unwrap_or(defaults.minimum),
            window_ms: self
                .get(|keys| &keys.breaker.window)
                .unwrap_or(defaults.window_ms),
        }
    }

    fn retention(&self) -> Retention {
        let defaults = Retention::default();
        Retention {
            snapshots: self
                .get(|keys| &keys.retention.snapshots)
                .unwrap_or(defaults.snapshots),
            snapshot_min_age_ms: self
                .get(|keys| &keys.retention.snapshot_min_age)
                .unwrap_or(defaults.snapshot_min_age_ms),
            metadata_ms: self
                .get(|keys| &keys.retention.metadata)
                .unwrap_or(defaults.metadata_ms),
        }
    }
}

/// Checks the keys of a section against each other: `keys` alone when they are the defaults, else on top of them.
/// Each fault points at a key that the section itself writes.
pub(crate) fn check_keys(keys: &TopicKeys, defaults: Option<&TopicKeys>, faults: &FaultList) {
    let layers = Layers {
        own: Some(keys),
        defaults: defaults.unwrap_or(keys),
    };
    encoding::check(keys, layers, faults);
    let has_hash_key = layers.get(|keys| &keys.hash_key_env).is_some();
    fields::check_fields(&keys.fields, has_hash_key, faults);
    check_layout(keys, layers, faults);
    check_breaker(keys, layers, faults);
    check_retention(keys, layers, faults);
}

fn check_layout(keys: &TopicKeys, layers: Layers<'_>, faults: &FaultList) {
    if let (Some(event_time), Some(_)) = (&keys.event_time, &keys.partition_by) {
        let problem = Problem::new("event_time and partition_by both say how the table is partitioned");
        let hint = format!(
            "write \"day({})\" in partition_by and remove event_time",
            event_time.value
        );
        faults.add(&event_time.at, problem.hint(hint));
    }
    check_fields(
        layers
            .partition_by()
            .into_iter()
            .filter_map(|(field, at)| Some((field, at?))),
        keys.event_time.is_some() || keys.partition_by.is_some(),
        keys,
        layers,
        faults,
    );
    let sort_by = layers.get(|keys| &keys.sort_by).unwrap_or_default();
    let sort_keys = sort_by.into_iter().map(
        |Located {
             value: SortField {
                 source, transform, ..
             },
             at,
         }| { (PartitionField { source, transform }, at) },
    );
    check_fields(sort_keys, keys.sort_by.is_some(), keys, layers, faults);
}

/// Checks the fields of a partition spec or sort order. Inherited fields were checked where they are written; what
/// can be wrong with them here is that this section has taken a column away.
fn check_fields(
    fields: impl Iterator<Item = (PartitionField, At)>,
    are_own: bool,
    keys: &TopicKeys,
    layers: Layers<'_>,
    faults: &FaultList,
) {
    let columns = layers.kafka_columns();
    let mut names = BTreeMap::new();
    for (field, at) in fields {
        let Some(at) = (if are_own {
            Some(&at)
        } else {
            keys.kafka_columns.at()
        }) else {
            return;
        };
        if let Err(problem) = check_kafka_column(&field.source, field.transform, columns) {
            faults.add(at, problem);
        }
        let Some(other) = names.insert(field.name(), field.to_string()).filter(|_| are_own) else {
            continue;
        };
        let problem = Problem::new(format!(
            "`{field}` and `{other}` are one field, `{}`",
            field.name()
        ));
        faults.add(at, problem.hint("keep one"));
    }
}

fn check_breaker(keys: &TopicKeys, layers: Layers<'_>, faults: &FaultList) {
    let breaker = &keys.breaker;
    let written = place(&breaker.share)
        .or(place(&breaker.minimum))
        .or(place(&breaker.window));
    let on_error = layers.get(|keys| &keys.on_error).unwrap_or_default();
    match (on_error, written) {
        (OnError::Suspend | OnError::Skip, Some(at)) => faults.add(
            at,
            Problem::new(format!("the breaker does nothing with on_error = \"{on_error}\""))
                .hint("remove it, or use on_error = \"dead_letter\""),
        ),
        (OnError::DeadLetter, _) | (_, None) => {}
    }
}

fn check_retention(keys: &TopicKeys, layers: Layers<'_>, faults: &FaultList) {
    let Some(at) = place(&keys.retention.metadata).or(place(&keys.retention.snapshot_min_age)) else {
        return;
    };
    let Retention {
        snapshot_min_age_ms,
        metadata_ms,
        ..
    } = layers.retention();
    if metadata_ms < snapshot_min_age_ms {
        let problem = Problem::new(format!(
            "metadata is kept for {metadata_ms}, less than snapshots ({snapshot_min_age_ms})"
        ));
        faults.add(
            at,
            problem.hint("readers need both: keep metadata at least as long"),
        );
    }
}

pub(crate) fn place<T>(read: &Option<Located<T>>) -> Option<&At> {
    read.as_ref().map(|read| &read.at)
}
