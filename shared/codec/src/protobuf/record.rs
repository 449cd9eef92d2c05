use std::ops::Range;

use super::plan::{Absent, Field, Node, Occurs, Record, Shape};
use super::wire::{MAX_DEPTH, Reader, Wire, too_deep};
use super::{Member, Pending, Reading, values};
use crate::builder::{Builder, Values, mismatch};
use crate::fault::{Decoded, Fault};

impl<'a> Reading<'a> {
    /// Appends one row: the message whose parts are the pending `parts`.
    pub(super) fn record(
        &mut self,
        record: &Record,
        builders: &mut [Builder],
        parts: Range<usize>,
        depth: usize,
    ) -> Decoded<()> {
        let row = builders.first().map_or(0, Builder::len);
        let (pending, oneofs) = (self.scratch.pending.len(), self.scratch.oneofs.len());
        if depth >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.scratch
            .oneofs
            .resize(oneofs + record.oneofs, Member::default());

        let mut hint = 0;
        for part in parts {
            let mut reader = self.reader(part);
            while !reader.is_done() {
                let (number, wire) = reader.tag()?;
                let known = record.find(number, hint);
                let Some((position, field)) = known.map(|position| (position, &record.fields[position]))
                else {
                    self.skip_unknown(&mut reader, number, wire)?;
                    continue;
                };
                hint = position;
                let taken = self.occurrence(
                    (position, field),
                    (builders, row),
                    (&mut reader, wire),
                    (record, oneofs),
                    depth,
                );
                if !taken.map_err(|fault| fault.inside(&field.name))? {
                    self.skip_unknown(&mut reader, number, wire)?;
                }
            }
        }

        self.remembered(record, builders, pending, oneofs, depth)?;
        for (oneof, column) in &record.cases {
            let builder = builders.get_mut(*column).ok_or_else(mismatch)?;
            match self.scratch.oneofs[oneofs + oneof].field {
                Some(position) => builder.push_text(&record.fields[position].name)?,
                None => builder.push_null(),
            }
        }
        for (builder, absent) in builders.iter_mut().zip(&record.absent) {
            if builder.len() == row {
                self.absent(*absent, builder)?;
            }
        }
        self.scratch.pending.truncate(pending);
        self.scratch.oneofs.truncate(oneofs);
        Ok(())
    }

    /// Takes what one more element of a list or map costs.
    pub(super) fn charge(&mut self, node: &Node) -> Decoded<()> {
        let Node::Message {
            shape: Shape::Record(record),
            ..
        } = node
        else {
            return Ok(()); // one value, and bytes of its own
        };
        match self.scratch.cells_left.checked_sub(record.cells) {
            Some(left) => {
                self.scratch.cells_left = left;
                Ok(())
            }
            None => Err(Fault::new(
                "protobuf.too_many_values",
                "its lists have so many elements of so many fields that they would fill the memory",
            )),
        }
    }

    pub(super) fn skip_unknown(&mut self, reader: &mut Reader<'_>, number: u32, wire: Wire) -> Decoded<()> {
        if self.refuses_unknown {
            return Err(unknown_field(number));
        }
        self.scratch.unknown_fields += 1;
        reader.skip(number, wire)
    }

    /// Takes one occurrence of a field; `false`, and nothing is read, if its wire type is not the field's.
    #[inline]
    fn occurrence(
        &mut self,
        (position, field): (usize, &Field),
        (builders, row): (&mut [Builder], usize),
        (reader, wire): (&mut Reader<'a>, Wire),
        (record, oneofs): (&Record, usize),
        depth: usize,
    ) -> Decoded<bool> {
        match &field.occurs {
            Occurs::One(Node::Scalar(scalar)) => {
                if wire != scalar.wire() {
                    return Ok(false);
                }
                if field.oneof.is_some() {
                    self.select(record, (position, field), builders, row, oneofs);
                }
                let Some(column) = field.column else {
                    reader.skip(field.number, wire)?;
                    return Ok(true);
                };
                let builder = builders.get_mut(column).ok_or_else(mismatch)?;
                if builder.len() > row {
                    builder.truncate(row); // the last one wins
                }
                values::scalar(*scalar, self.schema, reader, &mut builder.values)?;
                builder.valid();
            }
            Occurs::One(Node::Message { wire: expected, .. }) => {
                if wire != *expected {
                    return Ok(false);
                }
                let generation = match field.oneof {
                    Some(_) => self.select(record, (position, field), builders, row, oneofs),
                    None => 0,
                };
                let place = reader.value(field.number, wire)?;
                if field.column.is_some() {
                    self.remember(position, generation, place, wire);
                }
            }
            Occurs::Many(Node::Scalar(scalar)) => {
                let packed = wire == Wire::Bytes && values::is_packable(*scalar);
                if wire != scalar.wire() && !packed {
                    return Ok(false);
                }
                let Some(column) = field.column else {
                    reader.skip(field.number, wire)?;
                    return Ok(true);
                };
                let builder = builders.get_mut(column).ok_or_else(mismatch)?;
                let Values::List(items) = &mut builder.values else {
                    return Err(mismatch());
                };
                let element = &mut *items.element;
                if !packed {
                    values::scalar(*scalar, self.schema, reader, &mut element.values)?;
                    element.valid();
                    return Ok(true);
                }
                let mut inside = Reader::new(self.body, reader.range()?);
                while !inside.is_done() {
                    values::scalar(*scalar, self.schema, &mut inside, &mut element.values)?;
                    element.valid();
                }
            }
            Occurs::Many(node @ Node::Message { wire: expected, .. }) => {
                if wire != *expected {
                    return Ok(false);
                }
                let place = reader.value(field.number, wire)?;
                let Some(column) = field.column else {
                    return Ok(true);
                };
                let builder = builders.get_mut(column).ok_or_else(mismatch)?;
                let Values::List(items) = &mut builder.values else {
                    return Err(mismatch());
                };
                self.charge(node)?;
                let part = self.scratch.pending.len();
                self.remember(position, 0, place, wire);
                self.node(node, &mut items.element, part..part + 1, depth + 1)
                    .map_err(|fault| fault.inside("[]"))?;
                self.scratch.pending.truncate(part);
            }
            Occurs::Map(..) => {
                if wire != Wire::Bytes {
                    return Ok(false);
                }
                let place = reader.range()?;
                if field.column.is_some() {
                    self.remember(position, 0, place, wire);
                }
            }
        }
        Ok(true)
    }

    pub(super) fn remember(&mut self, field: usize, generation: u32, place: (usize, usize), wire: Wire) {
        self.scratch.pending.push(Pending {
            field,
            generation,
            place,
            wire,
        });
    }

    /// Makes the field the one of its oneof that is set, and takes back another that came before it.
    fn select(
        &mut self,
        record: &Record,
        (position, field): (usize, &Field),
        builders: &mut [Builder],
        row: usize,
        oneofs: usize,
    ) -> u32 {
        let Some(member) = field
            .oneof
            .and_then(|oneof| self.scratch.oneofs.get_mut(oneofs + oneof))
        else {
            return 0;
        };
        let before = member.field.replace(position);
        if let Some(before) = before.filter(|before| *before != position) {
            member.generation += 1;
            let column = record.fields[before].column;
            if let Some(builder) = column.and_then(|column| builders.get_mut(column)) {
                builder.truncate(row);
            }
        }
        member.generation
    }

    /// Fills the columns of sub-messages and maps, from what was remembered since `pending`.
    fn remembered(
        &mut self,
        record: &Record,
        builders: &mut [Builder],
        pending: usize,
        oneofs: usize,
        depth: usize,
    ) -> Decoded<()> {
        let frame = &mut self.scratch.pending[pending..];
        if !frame.is_sorted_by_key(|pending| pending.field) {
            frame.sort_by_key(|pending| pending.field); // stable: parts stay in the order of their coming
        }
        let end = self.scratch.pending.len();
        let mut next = pending;
        while next < end {
            let position = self.scratch.pending[next].field;
            let field = &record.fields[position];
            let rest = &self.scratch.pending[next..end];
            let mut parts = next..next + rest.partition_point(|pending| pending.field == position);
            next = parts.end;
            if let Some(oneof) = field.oneof {
                let member = self.scratch.oneofs[oneofs + oneof];
                if member.field != Some(position) {
                    continue;
                }
                // Parts from before another member was set are gone.
                let of_before = self.scratch.pending[parts.clone()]
                    .partition_point(|pending| pending.generation < member.generation);
                parts.start += of_before;
            }
            let builder = field.column.and_then(|column| builders.get_mut(column));
            let builder = builder.ok_or_else(mismatch)?;
            let filled = match &field.occurs {
                Occurs::One(node) | Occurs::Many(node) => self.node(node, builder, parts, depth + 1),
                Occurs::Map(key, value) => self.map((*key, value), builder, parts, depth + 1),
            };
            filled.map_err(|fault| fault.inside(&field.name))?;
        }
        Ok(())
    }

    fn absent(&mut self, absent: Absent, builder: &mut Builder) -> Decoded<()> {
        match (absent, &mut builder.values) {
            (Absent::Null, _) => {
                builder.push_null();
                return Ok(());
            }
            (Absent::Default(scalar), values) => values::default(scalar, self.schema, values)?,
            (Absent::List, Values::List(items)) | (Absent::Map, Values::Map { items, .. }) => items.end()?,
            _ => return Err(mismatch()),
        }
        builder.valid();
        Ok(())
    }
}

#[cold]
fn unknown_field(number: u32) -> Box<Fault> {
    Fault::new(
        "protobuf.unknown_field",
        format!("the schema has no field {number} of this wire type"),
    )
    .with_hint("register the producer's schema, or set `unknown_fields` to \"count\"")
}
