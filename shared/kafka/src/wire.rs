//! Framings: how a record says which schema wrote it.
//!
//! | framing | where the schema is named |
//! | --- | --- |
//! | Confluent | the header `__value_schema_id` (`__key_schema_id`), else the prefix `00` + id |
//! | Glue | the prefix `03`, compression, version UUID |
//! | Apicurio | the header `apicurio.value.globalId` (or `contentId`), else the prefix `00` + id of 8 bytes |
//! | Lambda | the event's `valueSchemaMetadata`: Lambda has taken the prefix off |
//! | none | nowhere: the configuration names it |
//!
//! Errors are [`ErrorKind::Poison`](frazil_core::ErrorKind::Poison) and carry a stable code that begins with `wire.`.

mod apicurio;
mod confluent;
mod fault;
mod glue;
mod lambda;
mod message;
mod reference;
mod shape;

use std::borrow::Cow;
use std::fmt;

use frazil_core::Result;

pub use glue::MAX_INFLATED_BYTES;
pub use message::{MAX_MESSAGE_DEPTH, MAX_MESSAGE_NAME_BYTES, MessageRef};
pub use reference::{SchemaRef, SubjectVersion};
pub use shape::Shape;

use crate::{Header, Record, SchemaMetadata};
use message::Indexes;

/// How a topic's records name their schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Framing {
    /// By what the record itself shows; see [`Framed::detect`].
    Auto,
    /// Confluent's serializers: a header, else a prefix.
    Confluent,
    /// Glue's serializers.
    Glue,
    /// Apicurio's own serializers: headers, else a prefix with 8 bytes of id.
    Apicurio,
    /// Lambda's own registry integration.
    Lambda,
    /// None: the bytes are the payload.
    None,
}

impl Framing {
    /// The word that the configuration uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Confluent => "confluent",
            Self::Glue => "glue",
            Self::Apicurio => "apicurio",
            Self::Lambda => "lambda",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which part of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The key.
    Key,
    /// The value.
    Value,
}

impl Side {
    /// `key` or `value`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Value => "value",
        }
    }
}

/// A key or value as it came, with everything beside it that may name its schema.
#[derive(Debug, Clone, Copy)]
pub struct Framed<'r> {
    /// Its bytes.
    pub bytes: &'r [u8],
    /// The record's headers.
    pub headers: &'r [Header<'r>],
    /// What Lambda's registry client says.
    pub metadata: Option<&'r SchemaMetadata<'r>>,
    /// Which part of the record it is.
    pub side: Side,
}

impl<'r> Framed<'r> {
    /// The record's value; `None` for a tombstone.
    pub fn value(record: &'r Record<'r>) -> Option<Self> {
        Some(Self {
            bytes: record.value?,
            headers: &record.headers,
            metadata: record.value_schema.as_deref(),
            side: Side::Value,
        })
    }

    /// The record's key, if it has one.
    pub fn key(record: &'r Record<'r>) -> Option<Self> {
        Some(Self {
            bytes: record.key?,
            headers: &record.headers,
            metadata: record.key_schema.as_deref(),
            side: Side::Key,
        })
    }

    /// The framing that the record itself shows, in this order: Lambda's metadata; Confluent's header; a first byte
    /// `00` with an id behind it, which is Confluent's prefix; `03` and a known compression, which is Glue's. `None` if
    /// it shows none of these.
    ///
    /// JSON text, which is what bare values mostly are, can begin with neither byte. What is never guessed: a bare
    /// binary payload, since any bytes are some record in Avro or Protobuf; and Apicurio's prefix, which looks like
    /// Confluent's.
    pub fn detect(&self) -> Option<Framing> {
        if self.metadata.is_some() {
            return Some(Framing::Lambda);
        }
        if confluent::header(self).is_some() {
            return Some(Framing::Confluent);
        }
        match self.bytes {
            [confluent::MAGIC, _, _, _, _, ..] => Some(Framing::Confluent),
            [glue::MAGIC, glue::PLAIN | glue::ZLIB, ..] if self.bytes.len() >= glue::PREFIX_BYTES => {
                Some(Framing::Glue)
            }
            _ => None,
        }
    }

    /// Takes the framing off. What it names is not looked up here, and a Protobuf payload keeps its message index until
    /// it is asked for: only the schema tells whether there is one.
    ///
    /// ```
    /// use frazil_core::SchemaId;
    /// use frazil_kafka::wire::{Framed, Framing, SchemaRef, Side};
    ///
    /// let value = Framed { bytes: &[0, 0, 0, 1, 2, 0xAB], headers: &[], metadata: None, side: Side::Value };
    /// let unframed = value.unframe(Framing::Auto)?;
    /// assert_eq!(unframed.schema, Some(SchemaRef::Id(SchemaId(258))));
    /// assert_eq!(unframed.body(), [0xAB]);
    /// # Ok::<(), frazil_core::Error>(())
    /// ```
    pub fn unframe(&self, framing: Framing) -> Result<Unframed<'r>> {
        match framing {
            Framing::Auto => match self.detect() {
                Some(found) => self.unframe(found),
                None => Err(fault::unrecognised(self)),
            },
            Framing::Confluent => confluent::unframe(self),
            Framing::Glue => glue::unframe(self),
            Framing::Apicurio => apicurio::unframe(self),
            Framing::Lambda => lambda::unframe(self),
            Framing::None => Ok(Unframed {
                schema: None,
                body: Cow::Borrowed(self.bytes),
                indexes: Indexes::Absent,
            }),
        }
    }
}

/// A key or value without its framing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unframed<'r> {
    /// The schema that it names.
    pub schema: Option<SchemaRef>,
    body: Cow<'r, [u8]>,
    indexes: Indexes<'r>,
}

impl<'r> Unframed<'r> {
    /// The payload. In Protobuf it may begin with a message index: then [`protobuf`](Self::protobuf) is the way to it.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The same, for those who keep it.
    pub fn into_body(self) -> Cow<'r, [u8]> {
        self.body
    }

    /// How many bytes the payload takes that the event did not have: those that were inflated.
    pub fn inflated_bytes(&self) -> usize {
        match &self.body {
            Cow::Borrowed(_) => 0,
            Cow::Owned(body) => body.len(),
        }
    }

    /// For a payload whose schema is Protobuf: which of the schema's messages it is, and its bytes.
    pub fn protobuf(&self) -> Result<(MessageRef, &[u8])> {
        self.indexes.read(&self.body)
    }
}

#[cfg(test)]
mod tests;
