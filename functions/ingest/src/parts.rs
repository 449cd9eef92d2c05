//! The parts of a topic's records that become columns, its values and, on request, its keys: from framed bytes to
//! decoded records, table by table.

use std::collections::BTreeMap;

use frazil_codec::{DecodeOptions, Prepared, RawColumn, TimestampRange, UnknownFields, prepare};
use frazil_config::{
    Format, InstantRange, KeyColumns, OnError, PartitionField, TopicSettings, Transform,
    UnknownFields as Configured,
};
use frazil_core::{Error, Partition, Result, TableName, TimestampMs};
use frazil_kafka::Record;
use frazil_kafka::wire::{Framing, Side};
use frazil_schema::{KafkaColumns, Mapping, RecordPart};

use crate::Ingest;
use crate::decode::{Values, named_schema};
use crate::design::{hash_key, mapping};
use crate::encoding::Encoding;
use crate::route::{Routed, route};

/// Values and keys of a topic's records in one event, unframed, with their schemas.
pub(crate) struct Parts<'r> {
    values: Values<'r>,
    keys: Option<Values<'r>>,
}

/// How the topic's settings turn schemas, and what arrives, into columns.
pub(crate) struct Mappings {
    value: Mapping,
    /// The settings of names and types, none of single fields, whose paths are the value's.
    key: Mapping,
}

impl Mappings {
    pub(crate) fn of(settings: &TopicSettings) -> Result<Self> {
        let value = mapping(settings)?;
        let key = Mapping {
            fields: BTreeMap::new(),
            ..value.clone()
        };
        Ok(Self { value, key })
    }
}

/// The decoded records that go into one table.
pub(crate) struct PreparedRoute<'a> {
    pub(crate) table: TableName,
    /// The type that the table is for, where each has its own.
    pub(crate) record_name: Option<&'a str>,
    pub(crate) prepared: Prepared<'a>,
    /// For each record, its place among all of the topic's.
    pub(crate) places: &'a [usize],
}

impl Ingest {
    /// The topic's values, and its keys if they become columns.
    pub(crate) async fn parts<'r>(
        &self,
        settings: &TopicSettings,
        encoding: Encoding,
        mappings: &Mappings,
        records: &[(Partition, &'r Record<'r>)],
    ) -> Result<Parts<'r>> {
        let named = named_schema(settings, |path| self.config.schema_file(path));
        let mut schemas = self
            .schemas
            .of_topic(settings, encoding.format, &mappings.value)?;
        let values = Values::read(records, Side::Value, encoding, named.as_ref(), &mut schemas).await?;
        let keys = match settings.key {
            KeyColumns::Kafka => None,
            KeyColumns::Columns => {
                let encoding = Encoding {
                    format: settings.key_format,
                    framing: match settings.key_format {
                        Format::Raw | Format::String => Framing::None,
                        _ => Framing::Auto,
                    },
                };
                let mut schemas = self.schemas.of_topic(settings, encoding.format, &mappings.key)?;
                Some(Values::read(records, Side::Key, encoding, None, &mut schemas).await?)
            }
        };
        Ok(Parts { values, keys })
    }
}

impl Parts<'_> {
    /// Sorts the records by table.
    pub(crate) fn route<'a>(
        &'a self,
        settings: &TopicSettings,
        records: &[(Partition, &'a Record<'a>)],
    ) -> Result<Routed<'a>> {
        let keys = self.keys.as_ref().map(|keys| keys.readable(records));
        route(settings, self.values.readable(records), keys)
    }
}

impl Routed<'_> {
    /// Decodes the records of every table.
    pub(crate) fn prepare<'a>(
        &'a self,
        settings: &TopicSettings,
        mappings: &'a Mappings,
        now: TimestampMs,
    ) -> Result<Vec<PreparedRoute<'a>>> {
        let options = decode_options(settings, &mappings.value, now)?;
        let of_keys = key_options(settings, &mappings.key, options);
        let partition_range = timestamp_range(settings.partition_range, now);
        let mut routes = Vec::with_capacity(self.routes.len());
        for route in &self.routes {
            let values = prepare(&route.encoded, options)?;
            let mut prepared = match &route.keys {
                None => values,
                Some(keys) => values.with_keys(prepare(keys, of_keys)?),
            };
            prepared.bound_partitions(&bounded_columns(settings), partition_range);
            routes.push(PreparedRoute {
                table: route.table.clone(),
                record_name: route.record_name.as_deref(),
                prepared,
                places: &route.places,
            });
        }
        Ok(routes)
    }
}

impl PreparedRoute<'_> {
    /// Hands the records that cannot be read over, by place.
    pub(crate) fn take_poison(&mut self) -> Vec<(usize, Error)> {
        let poison = self.prepared.take_poison().into_iter();
        poison
            .map(|poison| (self.places[poison.index], poison.error))
            .collect()
    }

    /// Keeps the records at the places that `keep` says yes to.
    pub(crate) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let places = self.places;
        self.prepared.retain(|index| keep(places[index]));
    }
}

/// The columns whose every instant or day may be a partition of its own.
fn bounded_columns(settings: &TopicSettings) -> Vec<&str> {
    let is_bounded = |field: &&PartitionField| match field.transform {
        Transform::Identity | Transform::Year | Transform::Month | Transform::Day | Transform::Hour => {
            // Kafka's timestamp is not the value's fault: where poison is forgotten, the record would be lost for it.
            field.source != KafkaColumns::TIMESTAMP || settings.on_error != OnError::Skip
        }
        Transform::Bucket(_) | Transform::Truncate(_) => false,
    };
    let fields = settings.partition_by.iter().filter(is_bounded);
    fields.map(|field| field.source.as_str()).collect()
}

fn timestamp_range(range: InstantRange, now: TimestampMs) -> TimestampRange {
    let (first_micros, last_micros) = range.micros(now);
    TimestampRange {
        first_micros,
        last_micros,
    }
}

/// How the topic's values are decoded.
fn decode_options<'m>(
    settings: &TopicSettings,
    mapping: &'m Mapping,
    now: TimestampMs,
) -> Result<DecodeOptions<'m>> {
    Ok(DecodeOptions {
        timestamp_range: timestamp_range(settings.timestamp_range, now),
        max_columns: settings.max_columns as usize,
        hash_key: hash_key(settings)?,
        mapping,
        unknown_fields: match settings.unknown_fields {
            Configured::Count => UnknownFields::Count,
            Configured::Collect => UnknownFields::Collect,
            Configured::Fail => UnknownFields::Fail,
        },
        raw: raw_column(settings.format),
        part: RecordPart::Value,
    })
}

/// How its keys are: what they have beside their schema is no business of the value's column for it.
fn key_options<'m>(
    settings: &TopicSettings,
    mapping: &'m Mapping,
    options: DecodeOptions<'m>,
) -> DecodeOptions<'m> {
    DecodeOptions {
        mapping,
        unknown_fields: UnknownFields::Count,
        raw: raw_column(settings.key_format),
        part: RecordPart::Key,
        ..options
    }
}

fn raw_column(format: Format) -> RawColumn {
    match format {
        Format::String => RawColumn::String,
        Format::Auto | Format::Avro | Format::Json | Format::JsonSchema | Format::Protobuf | Format::Raw => {
            RawColumn::Binary
        }
    }
}
