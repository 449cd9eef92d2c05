//! Framings that put a schema id in front of a record's bytes.
//!
//! Errors are [`ErrorKind::Poison`] and carry a stable code: `wire.too_short`, `wire.not_confluent`.

use frazil_core::{Error, ErrorKind, Result, SchemaId};

/// What starts every record in Confluent's prefix framing.
const CONFLUENT_MAGIC: u8 = 0;

const OPERATION: &str = "read the schema id in front of the record";

/// Splits Confluent's prefix framing: `00`, the schema id as u32 big-endian, then the payload (“Confluent wire
/// format”). For Protobuf the payload still starts with the message indexes.
///
/// ```
/// use frazil_core::SchemaId;
/// use frazil_kafka::wire;
///
/// let (schema, payload) = wire::confluent(&[0, 0, 0, 1, 2, 0xAB])?;
/// assert_eq!((schema, payload), (SchemaId(258), &[0xAB][..]));
/// # Ok::<(), frazil_core::Error>(())
/// ```
pub fn confluent(bytes: &[u8]) -> Result<(SchemaId, &[u8])> {
    match bytes {
        [CONFLUENT_MAGIC, a, b, c, d, payload @ ..] => {
            Ok((SchemaId(u32::from_be_bytes([*a, *b, *c, *d])), payload))
        }
        [] | [CONFLUENT_MAGIC, ..] => Err(too_short(bytes.len())),
        [other, ..] => Err(not_confluent(*other)),
    }
}

#[cold]
fn too_short(length: usize) -> Error {
    Error::new(
        ErrorKind::Poison,
        OPERATION,
        format!("{length} bytes are too few for Confluent's prefix, which takes 5"),
    )
    .with_code("wire.too_short")
}

#[cold]
fn not_confluent(first: u8) -> Error {
    let error = Error::new(
        ErrorKind::Poison,
        OPERATION,
        format!("the first byte is {first:#04x}, but Confluent's prefix starts with 0x00"),
    )
    .with_code("wire.not_confluent");
    match first {
        0x03 => error.with_hint("0x03 starts Glue's framing: was it written with Glue's serializer?"),
        b'{' | b'[' => error.with_hint("it looks like plain JSON: set format = \"json\" for this topic"),
        _ => error.with_hint("check that the producer's serializer uses a schema registry"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: std::result::Result<(u32, &[u8]), &str>) {
        match (confluent(bytes), expected) {
            (Ok((schema, payload)), Ok(wanted)) => assert_eq!((schema.0, payload), wanted, "{bytes:02x?}"),
            (Err(error), Err(code)) => {
                assert_eq!(error.code(), Some(code), "{bytes:02x?}: {error}");
                assert_eq!(error.kind(), ErrorKind::Poison);
            }
            (got, wanted) => panic!("{bytes:02x?}: got {got:?}, wanted {wanted:?}"),
        }
    }

    #[test]
    fn confluent_prefix() {
        check(&[0, 0, 0, 0, 7, 1, 2], Ok((7, &[1, 2])));
        check(&[0, 0xFF, 0xFF, 0xFF, 0xFF], Ok((u32::MAX, &[])));
        check(&[], Err("wire.too_short"));
        check(&[0, 0, 0, 7], Err("wire.too_short"));
        check(&[3, 0, 1], Err("wire.not_confluent"));
        check(b"{\"id\": 1}", Err("wire.not_confluent"));
    }
}
