//! A look at a Parquet footer before the Parquet reader sees it.
//!
//! The reader takes counts in the footer on trust and reserves memory for them first: a flipped bit can ask
//! for terabytes, which aborts the process and cannot be caught. This walk reads the same Thrift bytes and
//! asks only that everything announced is there.

use frazil_core::Result;

use super::defect;

/// Largest footer that is read: 10,000 columns in 50 row groups.
const MAX_FOOTER_BYTES: usize = 64 * 1024 * 1024;

/// Deepest nesting of Thrift values; Parquet's own structures need seven.
const MAX_DEPTH: u32 = 24;

/// Refuses a file whose last bytes are no Parquet footer, or whose footer announces more than it holds.
pub(super) fn check_footer_bytes(file: &[u8]) -> Result<()> {
    let fault = |what: &str| {
        defect(
            "read a data file",
            format!("it is no Parquet file, or damaged: {what}"),
        )
    };
    let (rest, trailer) = file
        .len()
        .checked_sub(8)
        .map(|end| file.split_at(end))
        .ok_or_else(|| fault("it is too short"))?;
    let (length, magic) = trailer.split_at(4);
    if magic != b"PAR1" {
        return Err(fault("it does not end with PAR1"));
    }
    let length = length
        .iter()
        .rev()
        .fold(0usize, |sum, &byte| (sum << 8) | usize::from(byte));
    if length > MAX_FOOTER_BYTES || length > rest.len() {
        return Err(fault("its footer is larger than the file or than any footer"));
    }
    let mut walk = Walk {
        bytes: &rest[rest.len() - length..],
    };
    walk.value(Walk::STRUCT, 0)
        .ok_or_else(|| fault("its footer is not intact"))
}

/// Reads Thrift's compact protocol without keeping anything. `None` is a fault.
struct Walk<'a> {
    bytes: &'a [u8],
}

impl Walk<'_> {
    const STRUCT: u8 = 12;

    fn value(&mut self, kind: u8, depth: u32) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match kind {
            3 => self.skip(1),                // i8
            4..=6 => self.varint().map(drop), // i16, i32, i64
            7 => self.skip(8),                // double
            8 => {
                let length = self.varint()?;
                self.skip(usize::try_from(length).ok()?) // binary
            }
            9 | 10 => {
                let header = self.byte()?; // list, set
                let count = match header >> 4 {
                    15 => self.varint()?,
                    short => u64::from(short),
                };
                // Every element takes at least a byte.
                if count > self.bytes.len() as u64 {
                    return None;
                }
                (0..count).try_for_each(|_| self.element(header & 15, depth + 1))
            }
            11 => {
                let count = self.varint()?; // map
                if count == 0 {
                    return Some(());
                }
                if count > self.bytes.len() as u64 {
                    return None;
                }
                let kinds = self.byte()?;
                (0..count).try_for_each(|_| {
                    self.element(kinds >> 4, depth + 1)?;
                    self.element(kinds & 15, depth + 1)
                })
            }
            Self::STRUCT => loop {
                let header = self.byte()?;
                if header == 0 {
                    return Some(());
                }
                if header >> 4 == 0 {
                    self.varint()?; // the field's id
                }
                match header & 15 {
                    1 | 2 => {} // a boolean is in the header
                    kind => self.value(kind, depth + 1)?,
                }
            },
            _ => None,
        }
    }

    /// In a collection a boolean is a byte of its own.
    fn element(&mut self, kind: u8, depth: u32) -> Option<()> {
        match kind {
            1 | 2 => self.skip(1),
            kind => self.value(kind, depth),
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn skip(&mut self, count: usize) -> Option<()> {
        self.bytes = self.bytes.get(count..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}
