//! Apicurio's own wire format: headers with an id of 8 bytes, else a prefix `00` and an id of 8 bytes. Its Protobuf
//! serializer puts a length-delimited message before the payload, whose field 1 is the name of the payload's message.

use std::borrow::Cow;

use frazil_core::Result;

use super::message::Indexes;
use super::{Framed, Framing, SchemaRef, Side, Unframed, fault};

const MAGIC: u8 = 0;

/// The headers that may hold the id, and the one that holds the name of the Protobuf message.
fn header_names(side: Side) -> ([&'static str; 2], &'static str) {
    match side {
        Side::Key => (
            ["apicurio.key.globalId", "apicurio.key.contentId"],
            "apicurio.key.protobuf.type",
        ),
        Side::Value => (
            ["apicurio.value.globalId", "apicurio.value.contentId"],
            "apicurio.value.protobuf.type",
        ),
    }
}

pub(super) fn unframe<'r>(framed: &Framed<'r>) -> Result<Unframed<'r>> {
    let (ids, message) = header_names(framed.side);
    let header = |name: &str| {
        let named = framed.headers.iter().rev().find(|header| header.name == name);
        named.and_then(|header| header.value)
    };
    if let Some(id) = ids.into_iter().find_map(header) {
        let Some(id) = id.first_chunk::<8>().filter(|_| id.len() == 8) else {
            return Err(fault::schema_header(framed.side, id));
        };
        return Ok(Unframed {
            schema: Some(SchemaRef::Apicurio(i64::from_be_bytes(*id))),
            body: Cow::Borrowed(framed.bytes),
            indexes: header(message).map_or(Indexes::Absent, Indexes::NameBeside),
        });
    }
    match framed.bytes {
        [MAGIC, rest @ ..] => match rest.split_first_chunk::<8>() {
            Some((id, body)) => Ok(Unframed {
                schema: Some(SchemaRef::Apicurio(i64::from_be_bytes(*id))),
                body: Cow::Borrowed(body),
                indexes: Indexes::Name,
            }),
            None => Err(fault::too_short(framed, Framing::Apicurio, 9)),
        },
        [] => Err(fault::too_short(framed, Framing::Apicurio, 9)),
        _ => Err(fault::not_framed(framed, Framing::Apicurio)),
    }
}
