use std::fmt;

use super::{Framed, confluent, glue};

/// How many bytes an error shows: enough to recognise a format, too few to tell what a record says.
const SHOWN_BYTES: usize = 4;

/// What bytes look like, for people who have to find out which serializer wrote them. Never used to decide how they are
/// read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Nothing there.
    Empty,
    /// Lambda has taken a prefix off.
    LambdaSource,
    /// A record with Confluent's header.
    ConfluentHeader,
    /// `00` and an id.
    ConfluentPrefix,
    /// `03` and a compression.
    Glue,
    /// `C3 01`.
    AvroSingleObject,
    /// `Obj 01`.
    AvroFile,
    /// `{` or `[`.
    Json,
    /// Other printable text.
    Text,
    /// gzip, zstd, Snappy or LZ4 frames.
    Compressed,
    /// None of these: these are the first bytes, and how many.
    Binary([u8; SHOWN_BYTES], usize),
}

impl Shape {
    /// The shape of a key or value.
    pub fn of(framed: &Framed<'_>) -> Self {
        let bytes = framed.bytes;
        if framed.metadata.is_some() {
            return Self::LambdaSource;
        }
        if confluent::header(framed).is_some() {
            return Self::ConfluentHeader;
        }
        let text = bytes.trim_ascii_start();
        match bytes {
            [] => Self::Empty,
            [confluent::MAGIC, _, _, _, _, ..] => Self::ConfluentPrefix,
            [glue::MAGIC, glue::PLAIN | glue::ZLIB, ..] if bytes.len() >= glue::PREFIX_BYTES => Self::Glue,
            [0xC3, 0x01, ..] => Self::AvroSingleObject,
            [b'O', b'b', b'j', 1, ..] => Self::AvroFile,
            [0x1F, 0x8B, ..] | [0x28, 0xB5, 0x2F, 0xFD, ..] | [0x04, 0x22, 0x4D, 0x18, ..] => {
                Self::Compressed
            }
            [0xFF, 0x06, 0x00, 0x00, b's', ..] => Self::Compressed,
            _ if matches!(text, [b'{' | b'[', ..]) => Self::Json,
            _ if is_text(bytes) => Self::Text,
            _ => {
                let mut first = [0; SHOWN_BYTES];
                let shown = bytes.len().min(SHOWN_BYTES);
                first[..shown].copy_from_slice(&bytes[..shown]);
                Self::Binary(first, shown)
            }
        }
    }

    /// The setting to change, if that is what these bytes are.
    pub(super) fn hint(self) -> &'static str {
        match self {
            Self::LambdaSource => {
                "the event source mapping has its own registry client, which takes the prefix off: set framing = \
                 \"lambda\" for this topic, or remove SchemaRegistryConfig from the mapping"
            }
            Self::ConfluentHeader | Self::ConfluentPrefix => {
                "was it written with Confluent's serializer? then set framing = \"confluent\" for this topic"
            }
            Self::Glue => "was it written with Glue's serializer? then set framing = \"glue\" for this topic",
            Self::Json => "it looks like plain JSON: set format = \"json\" for this topic",
            Self::Text => "if the topic holds text, set format = \"string\" for it",
            Self::AvroSingleObject | Self::AvroFile | Self::Compressed => {
                "this encoding is not read: set format = \"raw\" for this topic to keep its bytes"
            }
            Self::Empty | Self::Binary(..) => {
                "if the producer uses no schema registry, set framing = \"none\", the format, and schema = \"file:…\" \
                 or \"subject:…\" for this topic"
            }
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "nothing at all",
            Self::LambdaSource => "a payload whose prefix Lambda has taken off",
            Self::ConfluentHeader => "a payload whose schema a Confluent header names",
            Self::ConfluentPrefix => "Confluent's prefix",
            Self::Glue => "Glue's prefix",
            Self::AvroSingleObject => "Avro's single-object encoding",
            Self::AvroFile => "an Avro file",
            Self::Json => "plain JSON",
            Self::Text => "plain text",
            Self::Compressed => "a compressed frame",
            Self::Binary(first, shown) => {
                f.write_str("bytes without a known framing, which begin with")?;
                return first[..*shown]
                    .iter()
                    .try_for_each(|byte| write!(f, " {byte:02x}"));
            }
        })
    }
}

fn is_text(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(256)];
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        // The cut may fall into a character.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.is_empty()
        && text
            .chars()
            .all(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t'))
}
