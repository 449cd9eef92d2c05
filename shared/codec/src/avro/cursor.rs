use std::sync::Arc;

use frazil_schema::AvroType;

use crate::builder::mismatch;
use crate::fault::{Decoded, Fault};

/// Items that take no bytes (records without fields) may come this often in one record, more than it has bytes:
/// without a bound, nine bytes could ask for 2⁶³ of them.
const MAX_EMPTY_ITEMS: usize = 1_024;

/// Records, lists and maps inside one another where a schema holds itself: as deep as JSON may be.
pub(super) const MAX_SUBTREE_DEPTH: usize = 128;

/// A type that is read without a column for each of its parts.
#[derive(Debug)]
pub(crate) struct Subtree {
    pub(super) data_type: AvroType,
    /// What recursive references in it refer to.
    pub(super) definitions: Arc<[AvroType]>,
}

/// The bytes of one record, and how far they are read. Avro specification, “Binary Encoding”.
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    empty_items: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            empty_items: MAX_EMPTY_ITEMS + bytes.len(),
        }
    }

    /// Bytes after the record mean that another schema wrote it.
    pub(crate) fn finish(&self) -> Decoded<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(Fault::new(
            "avro.invalid",
            format!("{} bytes are left after the value", self.rest.len()),
        )
        .with_hint("the record was written with another schema than its id says"))
    }

    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Decoded<&'a [u8]> {
        match self.rest.split_at_checked(len) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(truncated(len, self.rest.len())),
        }
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        match self.rest.split_first_chunk() {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(*taken)
            }
            None => Err(truncated(N, self.rest.len())),
        }
    }

    #[inline]
    pub(crate) fn boolean(&mut self) -> Decoded<bool> {
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [byte] => Err(Fault::new("avro.invalid", format!("{byte} is not a boolean"))),
        }
    }

    #[inline]
    pub(crate) fn long(&mut self) -> Decoded<i64> {
        // Most numbers in a record are lengths, indexes and small counts.
        let zigzag = match self.rest {
            [byte, rest @ ..] if *byte < 0x80 => {
                self.rest = rest;
                u64::from(*byte)
            }
            [low, high, rest @ ..] if *high < 0x80 => {
                self.rest = rest;
                u64::from(*low & 0x7f) | (u64::from(*high) << 7)
            }
            _ => self.long_varint()?,
        };
        Ok((zigzag >> 1).cast_signed() ^ -((zigzag & 1).cast_signed()))
    }

    fn long_varint(&mut self) -> Decoded<u64> {
        let mut value = 0u64;
        for (index, byte) in self.rest.iter().enumerate() {
            if index == 9 && *byte > 1 {
                return Err(Fault::new("avro.invalid", "a number is longer than 64 bits"));
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(truncated(self.rest.len() + 1, self.rest.len()))
    }

    #[inline]
    pub(crate) fn int(&mut self) -> Decoded<i32> {
        let value = self.long()?;
        i32::try_from(value)
            .map_err(|_| Fault::new("avro.invalid", format!("{value} is not an int of 32 bits")))
    }

    /// A length, or the index of a branch.
    #[inline]
    pub(crate) fn index(&mut self) -> Decoded<usize> {
        let value = self.long()?;
        usize::try_from(value)
            .map_err(|_| Fault::new("avro.invalid", format!("{value} is not a length or index")))
    }

    #[inline]
    pub(crate) fn bytes(&mut self) -> Decoded<&'a [u8]> {
        let len = self.index()?;
        self.take(len)
    }

    #[inline]
    pub(crate) fn text(&mut self) -> Decoded<&'a str> {
        std::str::from_utf8(self.bytes()?)
            .map_err(|error| Fault::new("avro.invalid", format!("the string is not UTF-8: {error}")))
    }

    /// The number of items in the next block of an array or map; `None` after the last.
    pub(crate) fn block(&mut self, empty_items: bool) -> Decoded<Option<usize>> {
        let count = self.long()?;
        if count == 0 {
            return Ok(None);
        }
        if count < 0 {
            self.index()?; // the block's size, for readers that skip it
        }
        let count = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        if empty_items {
            self.empty_items = self.empty_items.checked_sub(count).ok_or_else(|| {
                Fault::new(
                    "avro.invalid",
                    format!("{count} items that take no bytes: more than the limit"),
                )
            })?;
        } else if count > self.rest.len() {
            return Err(truncated(count, self.rest.len()));
        }
        Ok(Some(count))
    }

    /// A symbol of an enum.
    #[inline]
    pub(super) fn symbol<'s>(&mut self, symbols: &'s [String]) -> Decoded<&'s str> {
        let index = self.long()?;
        usize::try_from(index)
            .ok()
            .and_then(|index| symbols.get(index))
            .map(String::as_str)
            .ok_or_else(|| {
                Fault::new(
                    "avro.invalid",
                    format!("enum symbol {index} of {}", symbols.len()),
                )
            })
    }

    /// Reads past a value.
    pub(crate) fn skip(&mut self, subtree: &Subtree) -> Decoded<()> {
        self.skip_type(&subtree.data_type, &subtree.definitions, 0)
    }

    fn skip_type(&mut self, data_type: &AvroType, definitions: &[AvroType], depth: usize) -> Decoded<()> {
        if depth > MAX_SUBTREE_DEPTH {
            return Err(too_deep());
        }
        match data_type {
            AvroType::Null => {}
            AvroType::Boolean => {
                self.boolean()?;
            }
            AvroType::Int | AvroType::Date | AvroType::TimeMillis => {
                self.int()?;
            }
            AvroType::Long | AvroType::TimeMicros | AvroType::Timestamp { .. } => {
                self.long()?;
            }
            AvroType::Float => {
                self.take(4)?;
            }
            AvroType::Double => {
                self.take(8)?;
            }
            AvroType::Bytes | AvroType::String | AvroType::Uuid | AvroType::Decimal { size: None, .. } => {
                self.bytes()?;
            }
            AvroType::Fixed(size) | AvroType::Decimal { size: Some(size), .. } => {
                self.take(*size)?;
            }
            AvroType::Duration => {
                self.take(12)?;
            }
            AvroType::UuidBytes => {
                self.take(16)?;
            }
            AvroType::Enum(symbols) => {
                self.symbol(symbols)?;
            }
            AvroType::Record(fields) => {
                for field in fields {
                    self.skip_type(&field.data_type, definitions, depth + 1)?;
                }
            }
            AvroType::Array(items) => {
                while let Some(count) = self.block(may_be_empty(items))? {
                    for _ in 0..count {
                        self.skip_type(items, definitions, depth + 1)?;
                    }
                }
            }
            AvroType::Map(values) => {
                while let Some(count) = self.block(false)? {
                    for _ in 0..count {
                        self.bytes()?;
                        self.skip_type(values, definitions, depth + 1)?;
                    }
                }
            }
            AvroType::Entries(entry) => {
                let (key, value) = &**entry;
                while let Some(count) = self.block(may_be_empty(key) && may_be_empty(value))? {
                    for _ in 0..count {
                        self.skip_type(key, definitions, depth + 1)?;
                        self.skip_type(value, definitions, depth + 1)?;
                    }
                }
            }
            AvroType::Union(branches) => {
                let branch = self.index()?;
                match branches.get(branch) {
                    Some(branch) => self.skip_type(&branch.data_type, definitions, depth)?,
                    None => return Err(super::no_branch(branch)),
                }
            }
            AvroType::Recursive(definition) => match definitions.get(*definition) {
                Some(definition) => self.skip_type(definition, definitions, depth)?,
                None => return Err(mismatch()),
            },
        }
        Ok(())
    }
}

/// Whether a value of this type can take no bytes at all.
pub(super) fn may_be_empty(data_type: &AvroType) -> bool {
    match data_type {
        AvroType::Null | AvroType::Fixed(0) | AvroType::Decimal { size: Some(0), .. } => true,
        // Perhaps: the bound for those that are is never too low for those that are not.
        AvroType::Recursive(_) => true,
        AvroType::Record(fields) => fields.iter().all(|field| may_be_empty(&field.data_type)),
        _ => false,
    }
}

#[cold]
pub(super) fn too_deep() -> Box<Fault> {
    Fault::new(
        "avro.too_deep",
        format!("a record that holds itself is nested more than {MAX_SUBTREE_DEPTH} levels deep"),
    )
}

#[cold]
fn truncated(needed: usize, left: usize) -> Box<Fault> {
    Fault::new(
        "avro.truncated",
        format!("the value needs {needed} more bytes where {left} are left"),
    )
}
