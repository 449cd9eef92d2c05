//! Confluent's wire format: a header `__value_schema_id` or `__key_schema_id` that holds `01` and a GUID of 16 bytes,
//! else a prefix `00` and a number of 4 bytes. Protobuf's message indexes follow, wherever the schema is named.

use std::borrow::Cow;

use frazil_core::{Result, SchemaId};
use uuid::Uuid;

use super::message::Indexes;
use super::{Framed, Framing, SchemaRef, Side, Unframed, fault};

/// What starts a prefix with a number.
pub(super) const MAGIC: u8 = 0;
/// What starts a header with a GUID.
const MAGIC_GUID: u8 = 1;

pub(super) fn header_name(side: Side) -> &'static str {
    match side {
        Side::Key => "__key_schema_id",
        Side::Value => "__value_schema_id",
    }
}

/// The bytes of the header that names the schema. Of several the last counts, as Kafka's clients read it.
pub(super) fn header<'r>(framed: &Framed<'r>) -> Option<&'r [u8]> {
    let name = header_name(framed.side);
    let named = framed.headers.iter().rev().find(|header| header.name == name);
    named.and_then(|header| header.value)
}

pub(super) fn unframe<'r>(framed: &Framed<'r>) -> Result<Unframed<'r>> {
    if let Some(header) = header(framed) {
        let (schema, indexes) = match header {
            [MAGIC_GUID, rest @ ..] => match rest.split_first_chunk::<16>() {
                Some((guid, indexes)) => (SchemaRef::Guid(Uuid::from_bytes(*guid)), indexes),
                None => return Err(fault::schema_header(framed.side, header)),
            },
            [MAGIC, a, b, c, d, indexes @ ..] => {
                let id = u32::from_be_bytes([*a, *b, *c, *d]);
                (SchemaRef::Id(SchemaId(id)), indexes)
            }
            _ => return Err(fault::schema_header(framed.side, header)),
        };
        return Ok(Unframed {
            schema: Some(schema),
            body: Cow::Borrowed(framed.bytes),
            indexes: Indexes::Beside(indexes),
        });
    }
    match framed.bytes {
        [MAGIC, a, b, c, d, body @ ..] => Ok(Unframed {
            schema: Some(SchemaRef::Id(SchemaId(u32::from_be_bytes([*a, *b, *c, *d])))),
            body: Cow::Borrowed(body),
            indexes: Indexes::Path,
        }),
        [] | [MAGIC, ..] => Err(fault::too_short(framed, Framing::Confluent, 5)),
        _ => Err(fault::not_framed(framed, Framing::Confluent)),
    }
}
