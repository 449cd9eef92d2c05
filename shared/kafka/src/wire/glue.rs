//! Glue's wire format: `03`, compression (`00` none, `05` zlib), the schema version's UUID, the payload.

use std::borrow::Cow;

use frazil_core::Result;
use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_zlib_with_limit};
use uuid::Uuid;

use super::message::Indexes;
use super::{Framed, Framing, SchemaRef, Unframed, fault};

/// What starts a prefix.
pub(super) const MAGIC: u8 = 3;
/// The payload is as it is.
pub(super) const PLAIN: u8 = 0;
/// The payload is a zlib stream.
pub(super) const ZLIB: u8 = 5;
/// The bytes before the payload.
pub(super) const PREFIX_BYTES: usize = 18;

/// The longest payload that zlib may make of a record. A record is a megabyte at most unless brokers are told
/// otherwise, and Lambda delivers none above 4.4; a few bytes can ask for gigabytes.
pub const MAX_INFLATED_BYTES: usize = 16 * 1024 * 1024;

pub(super) fn unframe<'r>(framed: &Framed<'r>) -> Result<Unframed<'r>> {
    match framed.bytes {
        [MAGIC, compression, rest @ ..] => {
            let Some((version, payload)) = rest.split_first_chunk::<16>() else {
                return Err(fault::too_short(framed, Framing::Glue, PREFIX_BYTES));
            };
            let body = match *compression {
                PLAIN => Cow::Borrowed(payload),
                ZLIB => Cow::Owned(inflate(payload)?),
                other => return Err(fault::compression(other)),
            };
            Ok(Unframed {
                schema: Some(SchemaRef::GlueVersion(Uuid::from_bytes(*version))),
                body,
                indexes: Indexes::Sorted,
            })
        }
        [] | [MAGIC] => Err(fault::too_short(framed, Framing::Glue, PREFIX_BYTES)),
        _ => Err(fault::not_framed(framed, Framing::Glue)),
    }
}

fn inflate(payload: &[u8]) -> Result<Vec<u8>> {
    decompress_to_vec_zlib_with_limit(payload, MAX_INFLATED_BYTES).map_err(|error| match error.status {
        TINFLStatus::HasMoreOutput => fault::inflated_too_large(MAX_INFLATED_BYTES),
        _ => fault::zlib(),
    })
}
