//! How a topic's values are read: what the configuration says, and under `auto` what the first ones showed.

use frazil_config::{Format, Framing as Configured, SchemaSource, TopicSettings};
use frazil_kafka::PartitionBatch;
use frazil_kafka::wire::{Framed, Framing, Shape};
use frazil_table::{TopicState, ValueFormat, ValueFraming};
use serde::de::IgnoredAny;

/// How many values are read as JSON to find out whether Lambda has made JSON of them.
const MAX_JUDGED: usize = 100;

/// How a topic's values are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Encoding {
    /// The format; `auto` is the language of the schema that a value names.
    pub(crate) format: Format,
    /// How a value names its schema.
    pub(crate) framing: Framing,
}

/// What is known about a topic's encoding before its values are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// This is how.
    Settled(Encoding),
    /// The first values decide, and the decision is kept.
    Open,
}

/// What configuration and state say. Where a format or a source of schemas is configured, each value is read by what
/// it shows itself: it can be read wrongly only with a schema that it does not name. With neither, a sloppy producer's
/// JSON among Avro would become columns; so what prevails among the first values is kept.
pub(crate) fn known(settings: &TopicSettings, state: &TopicState) -> Known {
    if settings.format != Format::Auto || settings.schema != SchemaSource::Auto {
        return Known::Settled(Encoding {
            format: settings.format,
            framing: framing(settings.framing),
        });
    }
    match state.value_format {
        Some(format) => Known::Settled(kept(format, state.value_framing)),
        None => Known::Open,
    }
}

/// What is kept of a decision, as an encoding.
pub(crate) fn kept(format: ValueFormat, framing: Option<ValueFraming>) -> Encoding {
    let framing = match (format, framing) {
        (_, Some(ValueFraming::Confluent)) => Framing::Confluent,
        (_, Some(ValueFraming::Glue)) => Framing::Glue,
        (_, Some(ValueFraming::Lambda)) => Framing::Lambda,
        (_, Some(ValueFraming::None)) => Framing::None,
        // Before framings were kept there was one.
        (ValueFormat::Registered, None) => Framing::Confluent,
        (ValueFormat::Json, None) => Framing::None,
    };
    let format = match format {
        ValueFormat::Registered => Format::Auto,
        ValueFormat::Json => Format::Json,
    };
    Encoding { format, framing }
}

/// What most values of an event are; `None` when none of them is anything that can be recognised for sure.
pub(crate) fn prevailing(batches: &[&PartitionBatch<'_>]) -> Option<(ValueFormat, ValueFraming)> {
    use ValueFormat::{Json, Registered};
    let values = || {
        batches
            .iter()
            .flat_map(|batch| &batch.records)
            .filter_map(Framed::value)
    };
    let (mut confluent, mut glue, mut lambda, mut json) = (0usize, 0usize, 0usize, 0usize);
    for value in values() {
        match value.detect() {
            Some(Framing::Confluent) => confluent += 1,
            Some(Framing::Glue) => glue += 1,
            Some(Framing::Lambda) => lambda += 1,
            Some(Framing::Auto | Framing::Apicurio | Framing::None) => {}
            None if Shape::of(&value) == Shape::Json => json += 1,
            None => {}
        }
    }
    let found = [
        (confluent, (Registered, ValueFraming::Confluent)),
        (glue, (Registered, ValueFraming::Glue)),
        (lambda, (Registered, ValueFraming::Lambda)),
        (json, (Json, ValueFraming::None)),
    ];
    let (count, decision) = found.into_iter().max_by_key(|(count, _)| *count)?;
    if count == 0 {
        return None;
    }
    if decision.1 == ValueFraming::Lambda && values().take(MAX_JUDGED).all(|value| is_converted(&value)) {
        return Some((Json, ValueFraming::Lambda));
    }
    Some(decision)
}

/// Whether Lambda has made JSON of a value that was written in Avro or Protobuf (`EventRecordFormat: JSON`). The event
/// does not say it, but no record in Avro or Protobuf is a whole JSON object by chance.
fn is_converted(value: &Framed<'_>) -> bool {
    let is_json_schema = value
        .metadata
        .is_some_and(|metadata| metadata.data_format.eq_ignore_ascii_case("json"));
    !is_json_schema
        && Shape::Json
            == Shape::of(&Framed {
                metadata: None,
                ..*value
            })
        && serde_json::from_slice::<IgnoredAny>(value.bytes).is_ok()
}

fn framing(configured: Configured) -> Framing {
    match configured {
        Configured::Auto => Framing::Auto,
        Configured::Confluent => Framing::Confluent,
        Configured::Glue => Framing::Glue,
        Configured::Apicurio => Framing::Apicurio,
        Configured::Lambda => Framing::Lambda,
        Configured::None => Framing::None,
    }
}

#[cfg(test)]
mod tests;
