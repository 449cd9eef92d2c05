//! What can be wrong with a framing: what was expected, what the bytes look like, and which setting to change.

use frazil_core::{Error, ErrorKind};

use super::{Framed, Framing, Shape, Side};

const OPERATION: &str = "find out which schema wrote the record";

#[cold]
fn poison(code: &'static str, message: String) -> Error {
    Error::new(ErrorKind::Poison, OPERATION, message).with_code(code)
}

fn expected(framing: Framing) -> (&'static str, &'static str) {
    match framing {
        Framing::Glue => ("wire.not_glue", "Glue's prefix, which starts with 03"),
        Framing::Apicurio => (
            "wire.not_apicurio",
            "Apicurio's header or prefix, which starts with 00",
        ),
        Framing::Confluent | Framing::Auto | Framing::Lambda | Framing::None => (
            "wire.not_confluent",
            "Confluent's header or prefix, which starts with 00",
        ),
    }
}

#[cold]
pub(super) fn not_framed(framed: &Framed<'_>, framing: Framing) -> Error {
    let (code, wanted) = expected(framing);
    let shape = Shape::of(framed);
    poison(
        code,
        format!("the {} is {shape}, not {wanted}", framed.side.as_str()),
    )
    .with_hint(shape.hint())
}

#[cold]
pub(super) fn too_short(framed: &Framed<'_>, framing: Framing, takes: usize) -> Error {
    let length = framed.bytes.len();
    let message =
        format!("{length} bytes are too few for the prefix of framing = \"{framing}\", which takes {takes}");
    let error = poison("wire.too_short", message);
    match Shape::of(framed) {
        shape @ (Shape::LambdaSource | Shape::ConfluentPrefix | Shape::Glue) => error.with_hint(shape.hint()),
        _ => error.with_hint("check that the producer's serializer uses a schema registry"),
    }
}

#[cold]
pub(super) fn unrecognised(framed: &Framed<'_>) -> Error {
    let shape = Shape::of(framed);
    poison(
        "wire.unrecognised",
        format!("the {} is {shape}, which names no schema", framed.side.as_str()),
    )
    .with_hint(shape.hint())
}

#[cold]
pub(super) fn schema_header(side: Side, header: &[u8]) -> Error {
    let message = format!(
        "the header that names the schema of the {} has {} bytes and is none that a serializer writes",
        side.as_str(),
        header.len()
    );
    poison("wire.bad_schema_header", message)
        .with_hint("check framing for this topic, and the producer's serializer")
}

#[cold]
pub(super) fn no_metadata(framed: &Framed<'_>) -> Error {
    let shape = Shape::of(framed);
    let side = framed.side.as_str();
    poison(
        "wire.no_schema_metadata",
        format!("the event has no {side}SchemaMetadata for it; the {side} is {shape}"),
    )
    .with_hint(
        "framing = \"lambda\" is for event source mappings with a SchemaRegistryConfig; without one, set framing to what \
         the producer's serializer writes",
    )
}

#[cold]
pub(super) fn metadata(side: Side, id: &str) -> Error {
    let shown: String = id.chars().take(64).collect();
    poison(
        "wire.bad_schema_metadata",
        format!(
            "{}SchemaMetadata says schemaId {shown:?}, which is neither a number nor a UUID",
            side.as_str()
        ),
    )
    .with_hint("report it: Lambda gives Confluent's numbers and Glue's version ids")
}

#[cold]
pub(super) fn compression(byte: u8) -> Error {
    poison(
        "wire.unknown_compression",
        format!("Glue's prefix says compression {byte:02x}, and 00 (none) and 05 (zlib) are known"),
    )
    .with_hint("check that the producer uses Glue's serializer")
}

#[cold]
pub(super) fn zlib() -> Error {
    poison(
        "wire.zlib_invalid",
        "Glue's prefix says zlib, and what follows is no whole zlib stream".to_owned(),
    )
    .with_hint("check that the producer uses Glue's serializer")
}

#[cold]
pub(super) fn inflated_too_large(limit: usize) -> Error {
    poison(
        "wire.too_large",
        format!("its zlib stream is longer than {limit} bytes when inflated"),
    )
    .with_hint("write smaller records")
}

#[cold]
pub(super) fn message_index(reason: &'static str) -> Error {
    poison(
        "wire.bad_message_index",
        format!("the index of the Protobuf message is unreadable: {reason}"),
    )
    .with_hint("check framing for this topic, and the producer's serializer")
}
