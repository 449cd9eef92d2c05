//! Protobuf's wire format: “Encoding” in its documentation.

use crate::fault::{Decoded, Fault};

/// Messages and groups may nest this deep, as in Protobuf's own readers.
pub(super) const MAX_DEPTH: usize = 100;

/// What follows a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Varint,
    Fixed64,
    Bytes,
    Group,
    EndGroup,
    Fixed32,
}

/// A part of a record's bytes, and how far it is read. Places are those in the whole record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// From `start` to `end`, both within the body.
    pub(super) fn new(body: &'a [u8], (start, end): (usize, usize)) -> Self {
        Self {
            body: body.get(..end).unwrap_or(body),
            at: start,
        }
    }

    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.at >= self.body.len()
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    #[inline]
    fn rest(&self) -> &'a [u8] {
        self.body.get(self.at..).unwrap_or_default()
    }

    /// The number and wire type of the next field.
    #[inline]
    pub(super) fn tag(&mut self) -> Decoded<(u32, Wire)> {
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Varint,
            1 => Wire::Fixed64,
            2 => Wire::Bytes,
            3 => Wire::Group,
            4 => Wire::EndGroup,
            5 => Wire::Fixed32,
            wire => return Err(invalid(format!("there is no wire type {wire}"))),
        };
        match u32::try_from(tag >> 3) {
            Ok(number @ 1..=0x1fff_ffff) => Ok((number, wire)),
            _ => Err(invalid(format!("{} is not the number of a field", tag >> 3))),
        }
    }

    #[inline]
    pub(super) fn varint(&mut self) -> Decoded<u64> {
        // Most are tags, lengths and small numbers.
        match self.rest() {
            [byte, ..] if *byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(*byte))
            }
            [low, high, ..] if *high < 0x80 => {
                self.at += 2;
                Ok(u64::from(*low & 0x7f) | (u64::from(*high) << 7))
            }
            rest => self.long_varint(rest),
        }
    }

    fn long_varint(&mut self, rest: &[u8]) -> Decoded<u64> {
        let mut value = 0u64;
        for (index, byte) in rest.iter().enumerate().take(10) {
            if index == 9 && *byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.at += index + 1;
                return Ok(value);
            }
        }
        if rest.len() < 10 {
            return Err(truncated(rest.len() + 1, rest.len()));
        }
        Err(invalid("a number is longer than 64 bits"))
    }

    #[inline]
    pub(super) fn fixed<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let rest = self.rest();
        match rest.first_chunk() {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => Err(truncated(N, rest.len())),
        }
    }

    /// The place of a length and so many bytes: of the bytes.
    #[inline]
    pub(super) fn range(&mut self) -> Decoded<(usize, usize)> {
        let len = self.varint()?;
        let left = self.body.len() - self.at;
        match usize::try_from(len) {
            Ok(len) if len <= left => {
                let start = self.at;
                self.at += len;
                Ok((start, self.at))
            }
            _ => Err(truncated(usize::try_from(len).unwrap_or(usize::MAX), left)),
        }
    }

    #[inline]
    pub(super) fn bytes(&mut self) -> Decoded<&'a [u8]> {
        let (start, end) = self.range()?;
        Ok(&self.body[start..end])
    }

    /// The place of a group's fields, its tag being read; reads its end as well.
    pub(super) fn group(&mut self, number: u32) -> Decoded<(usize, usize)> {
        let start = self.at;
        let mut open = vec![number];
        loop {
            let end = self.at;
            if self.is_done() {
                return Err(truncated(1, 0));
            }
            match self.tag()? {
                (number, Wire::Group) if open.len() < MAX_DEPTH => open.push(number),
                (_, Wire::Group) => return Err(too_deep()),
                (number, Wire::EndGroup) => {
                    if open.pop() != Some(number) {
                        return Err(invalid(format!(
                            "field {number} ends a group that it did not begin"
                        )));
                    }
                    if open.is_empty() {
                        return Ok((start, end));
                    }
                }
                (number, wire) => self.skip(number, wire)?,
            }
        }
    }

    /// The place of a field's value: of its bytes, without tag, length and end.
    pub(super) fn value(&mut self, number: u32, wire: Wire) -> Decoded<(usize, usize)> {
        match wire {
            Wire::Bytes => self.range(),
            Wire::Group => self.group(number),
            _ => {
                let start = self.at;
                self.skip(number, wire)?;
                Ok((start, self.at))
            }
        }
    }

    pub(super) fn skip(&mut self, number: u32, wire: Wire) -> Decoded<()> {
        match wire {
            Wire::Varint => self.varint().map(|_| ()),
            Wire::Fixed64 => self.fixed::<8>().map(|_| ()),
            Wire::Fixed32 => self.fixed::<4>().map(|_| ()),
            Wire::Bytes => self.range().map(|_| ()),
            Wire::Group => self.group(number).map(|_| ()),
            Wire::EndGroup => Err(invalid(format!(
                "field {number} ends a group that it did not begin"
            ))),
        }
    }
}

#[cold]
fn truncated(needed: usize, left: usize) -> Box<Fault> {
    Fault::new(
        "protobuf.truncated",
        format!("the value needs {needed} more bytes where {left} are left"),
    )
}

#[cold]
pub(super) fn invalid(message: impl Into<String>) -> Box<Fault> {
    Fault::new("protobuf.invalid", message)
        .with_hint("the record is not Protobuf, or was written with another schema than its id says")
}

#[cold]
pub(super) fn too_deep() -> Box<Fault> {
    Fault::new(
        "protobuf.too_deep",
        format!("messages nest more than {MAX_DEPTH} levels deep"),
    )
}
