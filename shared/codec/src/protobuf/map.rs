use std::collections::HashMap;
use std::ops::Range;

use super::plan::{Node, Scalar};
use super::wire::{Reader, Wire};
use super::{Pending, Reading, values};
use crate::builder::{Builder, Values, mismatch};
use crate::fault::Decoded;

/// Fewer entries are compared with each other.
const FEW_ENTRIES: usize = 8;

/// An entry of a map: where its key is, if it has one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) key: Option<(usize, usize)>,
    /// The pending parts of its value: several only of a message.
    pub(super) value: (usize, usize),
}

/// What the values of a map look like on the wire.
#[derive(Debug, Clone, Copy)]
pub(super) struct MapValue {
    pub(super) wire: Wire,
    pub(super) is_message: bool,
}

impl MapValue {
    fn of(node: &Node) -> Self {
        match node {
            Node::Scalar(scalar) => Self {
                wire: scalar.wire(),
                is_message: false,
            },
            Node::Message { wire, .. } => Self {
                wire: *wire,
                is_message: true,
            },
        }
    }
}

impl Reading<'_> {
    /// Appends a map of which each pending part is an entry.
    pub(super) fn map(
        &mut self,
        (key, value): (Scalar, &Node),
        builder: &mut Builder,
        parts: Range<usize>,
        depth: usize,
    ) -> Decoded<()> {
        let Values::Map { items, keys } = &mut builder.values else {
            return Err(mismatch());
        };
        let pending = self.scratch.pending.len();
        for entry in self.entries(key, MapValue::of(value), parts)? {
            self.charge(value)?;
            match entry.key {
                Some(place) => {
                    let mut reader = Reader::new(self.body, place);
                    values::scalar(key, self.schema, &mut reader, &mut keys.values)?;
                }
                None => values::default(key, self.schema, &mut keys.values)?,
            }
            keys.valid();
            let (start, end) = entry.value;
            match value {
                Node::Scalar(scalar) if start == end => {
                    values::default(*scalar, self.schema, &mut items.element.values)?;
                    items.element.valid();
                }
                // A message without parts has its defaults.
                _ => self
                    .node(value, &mut items.element, start..end, depth)
                    .map_err(|fault| fault.inside("[]"))?,
            }
        }
        self.scratch.pending.truncate(pending);
        items.end()?;
        builder.valid();
        Ok(())
    }

    /// The entries of a map, each key once: what came last is what counts. The parts of their values become pending.
    pub(super) fn entries(
        &mut self,
        key: Scalar,
        value: MapValue,
        parts: Range<usize>,
    ) -> Decoded<Vec<Entry>> {
        let many = parts.len() > FEW_ENTRIES;
        let mut unique: Vec<Entry> = Vec::new();
        let mut places = HashMap::new();
        for part in parts {
            let entry = self.entry(key, value, part)?;
            let own = Self::key_of(self.body, key, &entry)?;
            let before = if many {
                let next = unique.len();
                Some(*places.entry(own).or_insert(next)).filter(|place| *place < next)
            } else {
                let mut same = None;
                for (place, other) in unique.iter().enumerate() {
                    if Self::key_of(self.body, key, other)? == own {
                        same = Some(place);
                    }
                }
                same
            };
            match before {
                Some(place) => unique[place] = entry,
                None => unique.push(entry),
            }
        }
        Ok(unique)
    }

    fn entry(&mut self, key: Scalar, value: MapValue, part: usize) -> Decoded<Entry> {
        let start = self.scratch.pending.len();
        let mut key_place = None;
        let mut reader = self.reader(part);
        while !reader.is_done() {
            let (number, wire) = reader.tag()?;
            let at = reader.at();
            match number {
                1 if wire == key.wire() => {
                    reader.skip(number, wire)?;
                    key_place = Some((at, reader.at()));
                }
                2 if wire == value.wire => {
                    let mut place = reader.value(number, wire)?;
                    if !value.is_message {
                        // A scalar is read from its length on, and the last one wins.
                        place = (at, reader.at());
                        self.scratch.pending.truncate(start);
                    }
                    self.scratch.pending.push(Pending::new(0, 0, place, wire));
                }
                _ => self.skip_unknown(&mut reader, number, wire)?,
            }
        }
        Ok(Entry {
            key: key_place,
            value: (start, self.scratch.pending.len()),
        })
    }

    /// What makes a key the same as another, however its number is written.
    fn key_of<'b>(body: &'b [u8], key: Scalar, entry: &Entry) -> Decoded<Key<'b>> {
        let Some(place) = entry.key else {
            return Ok(if key.wire() == Wire::Bytes {
                Key::Text(&[])
            } else {
                Key::Number(0)
            });
        };
        let mut reader = Reader::new(body, place);
        Ok(match key {
            Scalar::String | Scalar::Bytes => Key::Text(reader.bytes()?),
            Scalar::Bool => Key::Number(i64::from(reader.varint()? != 0)),
            Scalar::Uint64 => Key::Number(reader.varint()?.cast_signed()),
            Scalar::Fixed64 => Key::Number(i64::from_le_bytes(reader.fixed()?)),
            _ => Key::Number(values::signed(key, &mut reader)?),
        })
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum Key<'a> {
    Number(i64),
    Text(&'a [u8]),
}
