//! Which message of a Protobuf schema a payload is: each serializer has its own way of saying it.

use frazil_core::Result;

use super::fault;

/// The deepest nesting of a message in its file. Compilers refuse less; a path is walked per schema, not per record.
pub const MAX_MESSAGE_DEPTH: usize = 64;

/// The longest name of a message.
pub const MAX_MESSAGE_NAME_BYTES: usize = 1_024;

/// Which message of a Protobuf schema a payload is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MessageRef {
    /// By position: among the file's messages, then among those nested in it, and so on (Confluent).
    Path(Vec<i32>),
    /// By position among all messages of the file, sorted by full name (Glue).
    Sorted(u32),
    /// By name (Apicurio).
    Name(String),
    /// The payload does not say.
    Unstated,
}

/// Where a payload says which message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Indexes<'r> {
    /// Nowhere.
    Absent,
    /// At its beginning: zigzag varints, their count first; a single 0 stands for `[0]`.
    Path,
    /// The same, but in these bytes of a header.
    Beside(&'r [u8]),
    /// At its beginning: one unsigned varint.
    Sorted,
    /// At its beginning: a message with the name in field 1, after its length.
    Name,
    /// The name, in these bytes of a header.
    NameBeside(&'r [u8]),
}

impl Indexes<'_> {
    pub(super) fn read<'b>(&self, body: &'b [u8]) -> Result<(MessageRef, &'b [u8])> {
        match self {
            Self::Absent => Ok((MessageRef::Unstated, body)),
            Self::Path => {
                let (path, rest) = path(body).map_err(fault::message_index)?;
                Ok((MessageRef::Path(path), rest))
            }
            Self::Beside(header) => {
                let (path, rest) = path(header).map_err(fault::message_index)?;
                if !rest.is_empty() {
                    return Err(fault::message_index("bytes follow it in the header"));
                }
                Ok((MessageRef::Path(path), body))
            }
            Self::Sorted => {
                let (index, rest) = varint(body).map_err(fault::message_index)?;
                Ok((MessageRef::Sorted(index), rest))
            }
            Self::Name => {
                let (name, rest) = delimited_name(body).map_err(fault::message_index)?;
                Ok((name, rest))
            }
            Self::NameBeside(header) => Ok((name(header).map_err(fault::message_index)?, body)),
        }
    }
}

fn path(bytes: &[u8]) -> Result<(Vec<i32>, &[u8]), &'static str> {
    let (count, mut rest) = zigzag(bytes)?;
    let count = usize::try_from(count).map_err(|_| "it has a negative count")?;
    if count == 0 {
        return Ok((vec![0], rest));
    }
    if count > MAX_MESSAGE_DEPTH {
        return Err("it is deeper than 64 messages");
    }
    let mut path = Vec::with_capacity(count);
    for _ in 0..count {
        let (index, tail) = zigzag(rest)?;
        if index < 0 {
            return Err("it has a negative index");
        }
        path.push(index);
        rest = tail;
    }
    Ok((path, rest))
}

/// `Ref { string name = 1; }` behind its length.
fn delimited_name(bytes: &[u8]) -> Result<(MessageRef, &[u8]), &'static str> {
    const CUT: &str = "the name of the message is cut off";
    let (length, rest) = varint(bytes)?;
    let length = usize::try_from(length).map_err(|_| CUT)?;
    let (reference, rest) = rest.split_at_checked(length).ok_or(CUT)?;
    let [0x0A, named @ ..] = reference else {
        return Err("the name of the message is not where Apicurio writes it");
    };
    let (length, named) = varint(named)?;
    let length = usize::try_from(length).map_err(|_| CUT)?;
    let (named, _) = named.split_at_checked(length).ok_or(CUT)?;
    Ok((name(named)?, rest))
}

fn name(bytes: &[u8]) -> Result<MessageRef, &'static str> {
    if bytes.len() > MAX_MESSAGE_NAME_BYTES {
        return Err("the name of the message is longer than 1024 bytes");
    }
    match std::str::from_utf8(bytes) {
        Ok(name) if !name.is_empty() => Ok(MessageRef::Name(name.to_owned())),
        _ => Err("the name of the message is not text"),
    }
}

fn zigzag(bytes: &[u8]) -> Result<(i32, &[u8]), &'static str> {
    let (raw, rest) = varint(bytes)?;
    Ok(((raw >> 1).cast_signed() ^ -(raw & 1).cast_signed(), rest))
}

/// An unsigned varint of at most 32 bits.
fn varint(bytes: &[u8]) -> Result<(u32, &[u8]), &'static str> {
    let mut value = 0u32;
    for (place, byte) in bytes.iter().enumerate().take(5) {
        let bits = u32::from(byte & 0x7F);
        if place == 4 && bits > 0x0F {
            break;
        }
        value |= bits << (7 * place);
        if byte & 0x80 == 0 {
            return Ok((value, &bytes[place + 1..]));
        }
    }
    Err(if bytes.len() < 5 {
        "it is cut off"
    } else {
        "a number in it is longer than 32 bits"
    })
}
