//! Records as Lambda's own registry integration hands them on: the prefix is off, and the event says which schema wrote
//! the record: a number of Confluent's registry or a version's UUID of Glue's.

use std::borrow::Cow;

use frazil_core::{Result, SchemaId};
use uuid::Uuid;

use super::message::Indexes;
use super::{Framed, SchemaRef, Unframed, fault};

pub(super) fn unframe<'r>(framed: &Framed<'r>) -> Result<Unframed<'r>> {
    let Some(metadata) = framed.metadata else {
        return Err(fault::no_metadata(framed));
    };
    let id = metadata.schema_id.as_ref();
    let (schema, indexes) = if let Ok(number) = id.parse::<u32>() {
        (SchemaRef::Id(SchemaId(number)), Indexes::Path)
    } else if let Ok(version) = Uuid::try_parse(id) {
        (SchemaRef::GlueVersion(version), Indexes::Sorted)
    } else {
        return Err(fault::metadata(framed.side, id));
    };
    Ok(Unframed {
        schema: Some(schema),
        body: Cow::Borrowed(framed.bytes),
        indexes,
    })
}
