//! What every back end says in the same words.

use frazil_core::{Error, ErrorKind};
use frazil_kafka::wire::SchemaRef;

const OPERATION: &str = "look up the schema";

/// The registry answered that it has no such schema.
pub fn unknown(reference: &SchemaRef, registry: &str) -> Error {
    Error::new(
        ErrorKind::Poison,
        OPERATION,
        format!("{registry} has no schema with {reference}"),
    )
    .with_code("registry.unknown_schema")
}

/// A registry of this kind cannot have what is asked for: the record is framed for another one.
pub fn wrong_kind(reference: &SchemaRef, kind: &str) -> Error {
    Error::new(
        ErrorKind::Invalid,
        OPERATION,
        format!("the record names {reference}, and the topic's registry is {kind}"),
    )
    .with_code("registry.wrong_kind")
    .with_hint("set `registry` for this topic to the one that its producer uses, or check `framing`")
}

/// The registry refuses us.
pub fn unauthorized(registry: &str, answer: &str, hint: &str) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        OPERATION,
        format!("{registry} refuses us: {answer}"),
    )
    .with_code("registry.unauthorized")
    .with_hint(hint)
}

/// The registry is away, or answers what it should not.
pub fn unavailable(registry: &str, answer: &str) -> Error {
    Error::new(ErrorKind::Unavailable, OPERATION, format!("{registry}: {answer}"))
        .with_code("registry.unavailable")
}
