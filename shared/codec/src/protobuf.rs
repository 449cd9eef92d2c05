use std::ops::Range;

use frazil_schema::{ProtobufKind, ProtobufSchema};

use crate::builder::{Builder, Values, mismatch};
use crate::fault::{Decoded, Fault};
use crate::{TimestampRange, UnknownFields, decoder};

mod json;
mod map;
mod plan;
mod values;
mod wire;

use json::FieldIndex;
use plan::{Absent, Field, Node, Occurs, Record, Scalar, Shape};
use wire::{MAX_DEPTH, Reader, Wire};

/// Every element of a list is a row of all the columns inside it, also if it takes two bytes on the wire and
/// declares 500 fields. So many values may come of each byte of a record, lest a few megabytes become gigabytes.
const MAX_CELLS_PER_BYTE: u64 = 32;
/// What a record may have besides, so that short ones are never in doubt.
const FREE_CELLS: u64 = 4_096;

/// Decodes the records of one schema, from the wire into the columns.
///
/// One pass over a message: scalars and elements of lists are appended where they stand. Sub-messages and entries of
/// maps are only remembered, by their place, until the message ends: fields may come in any order, a sub-message in
/// several parts that are to be merged (which is to read them one after the other), and a key of a map twice.
#[derive(Debug)]
pub(crate) struct ProtobufPlan {
    schema: ProtobufSchema,
    root: Root,
    /// For the text of JSON.
    index: FieldIndex,
    scratch: Scratch,
}

#[derive(Debug)]
enum Root {
    Record(Record),
    /// A message that is mapped as a value, in a column of its own; none if that is excluded.
    Value(Node),
    Nothing,
}

/// What is remembered while messages are open: each has its part at the end.
#[derive(Debug, Default)]
struct Scratch {
    pending: Vec<Pending>,
    oneofs: Vec<Member>,
    unknown_fields: u64,
    cells_left: u64,
}

/// A value whose turn comes later.
#[derive(Debug, Clone, Copy)]
struct Pending {
    /// The position of its field among the message's.
    field: usize,
    /// How often the member of its oneof had changed when it came.
    generation: u32,
    /// Where its bytes are.
    place: (usize, usize),
    wire: Wire,
}

/// Which member of a oneof is set: the last that came.
#[derive(Debug, Clone, Copy, Default)]
struct Member {
    field: Option<usize>,
    /// How often it has changed: what came of a member before another did is gone.
    generation: u32,
}

/// What all parts of a record share.
struct Reading<'a> {
    body: &'a [u8],
    schema: &'a ProtobufSchema,
    index: &'a FieldIndex,
    range: &'a TimestampRange,
    refuses_unknown: bool,
    scratch: &'a mut Scratch,
}

impl ProtobufPlan {
    pub(crate) fn new(schema: &ProtobufSchema) -> Self {
        let message = schema.message(schema.root());
        let columns = schema.columns();
        let root = match (message.well_known, columns) {
            (None, _) => Root::Record(Record::new(schema, message, columns)),
            (Some(_), [column, ..]) => Root::Value(Node::new(
                schema,
                ProtobufKind::Message(schema.root()),
                Some(&column.data_type),
            )),
            (Some(_), []) => Root::Nothing,
        };
        let writes_json = match &root {
            Root::Record(record) => record.writes_json(),
            Root::Value(node) => node.writes_json(),
            Root::Nothing => false,
        };
        Self {
            schema: schema.clone(),
            root,
            index: FieldIndex::new(schema, writes_json),
            scratch: Scratch::default(),
        }
    }

    /// Appends one value to each column. On an error they may hold a part: cut them back.
    pub(crate) fn decode(
        &mut self,
        body: &[u8],
        builders: &mut [Builder],
        context: &mut decoder::Context,
    ) -> Decoded<()> {
        let scratch = &mut self.scratch;
        scratch.pending.clear();
        scratch.oneofs.clear();
        scratch.unknown_fields = 0;
        scratch.cells_left = FREE_CELLS + MAX_CELLS_PER_BYTE * body.len() as u64;
        scratch.pending.push(Pending {
            field: 0,
            generation: 0,
            place: (0, body.len()),
            wire: Wire::Bytes,
        });
        let mut reading = Reading {
            body,
            schema: &self.schema,
            index: &self.index,
            range: &context.timestamp_range,
            refuses_unknown: context.policy == UnknownFields::Fail,
            scratch,
        };
        match (&self.root, builders) {
            (Root::Record(record), builders) => reading.record(record, builders, 0..1, 0)?,
            (Root::Value(node), [builder, ..]) => reading.node(node, builder, 0..1, 0)?,
            _ => {}
        }
        context.unknown_fields += self.scratch.unknown_fields;
        Ok(())
    }
}

impl<'a> Reading<'a> {
    fn reader(&self, pending: usize) -> Reader<'a> {
        Reader::new(self.body, self.scratch.pending[pending].place)
    }

    /// Appends one row: the message whose parts are the pending `parts`.
    fn record(
        &mut self,
        record: &Record,
        builders: &mut [Builder],
        parts: Range<usize>,
        depth: usize,
    ) -> Decoded<()> {
        let row = builders.first().map_or(0, Builder::len);
        let (pending, oneofs) = (self.scratch.pending.len(), self.scratch.oneofs.len());
        if depth >= MAX_DEPTH {
            return Err(wire::too_deep());
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
    fn charge(&mut self, node: &Node) -> Decoded<()> {
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

    fn skip_unknown(&mut self, reader: &mut Reader<'_>, number: u32, wire: Wire) -> Decoded<()> {
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

    fn remember(&mut self, field: usize, generation: u32, place: (usize, usize), wire: Wire) {
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

    /// Appends one value, whose parts are pending. A scalar has one part, which is where it stands.
    fn node(&mut self, node: &Node, builder: &mut Builder, parts: Range<usize>, depth: usize) -> Decoded<()> {
        match node {
            Node::Scalar(scalar) => {
                let mut reader = self.reader(parts.start);
                values::scalar(*scalar, self.schema, &mut reader, &mut builder.values)?;
            }
            Node::Message { shape, .. } => {
                if !self.message(shape, &mut builder.values, parts, depth)? {
                    builder.push_null();
                    return Ok(());
                }
            }
        }
        builder.valid();
        Ok(())
    }

    /// Appends one message, or answers `false` if it means null.
    fn message(
        &mut self,
        shape: &Shape,
        values: &mut Values,
        parts: Range<usize>,
        depth: usize,
    ) -> Decoded<bool> {
        match (shape, values) {
            (Shape::Record(record), Values::Struct(children)) => {
                self.record(record, children, parts, depth)?
            }
            (Shape::Present, Values::Boolean(booleans)) => {
                self.fields(parts, |_, _, _| Ok(false))?;
                booleans.append(true);
            }
            (Shape::Json(message), Values::Text(text) | Values::Binary(text)) => {
                self.json_message(*message, parts, depth, &mut text.data)?;
                text.end()?;
            }
            (Shape::Wrapper(scalar), values) => {
                let mut found = None;
                self.fields(parts, |number, wire, reader| {
                    let is_value = number == 1 && wire == scalar.wire();
                    if is_value {
                        found = Some(*reader);
                        reader.skip(number, wire)?;
                    }
                    Ok(is_value)
                })?;
                match found {
                    Some(mut reader) => values::scalar(*scalar, self.schema, &mut reader, values)?,
                    None => values::default(*scalar, self.schema, values)?,
                }
            }
            (Shape::Timestamp, values) => values::timestamp(self.integers(parts)?, self.range, values)?,
            (Shape::Duration, values) => values::duration(self.integers(parts)?, values)?,
            (Shape::Date, values) => return values::date(self.integers(parts)?, self.range, values),
            (Shape::TimeOfDay, values) => values::time_of_day(self.integers(parts)?, values)?,
            (Shape::TextDecimal, values) => {
                let mut text: &[u8] = &[];
                self.fields(parts, |number, wire, reader| {
                    let is_value = (number, wire) == (1, Wire::Bytes);
                    if is_value {
                        text = reader.bytes()?;
                    }
                    Ok(is_value)
                })?;
                values::text_decimal(text, values)?;
            }
            (Shape::ScaledDecimal, values) => {
                let (mut bytes, mut scale): (&[u8], i64) = (&[], 0);
                self.fields(parts, |number, wire, reader| {
                    match (number, wire) {
                        (1, Wire::Bytes) => bytes = reader.bytes()?,
                        (2, Wire::Varint) => reader.skip(number, wire)?,
                        (3, Wire::Varint) => scale = values::signed(Scalar::Int32, reader)?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                values::scaled_decimal(bytes, scale, values)?;
            }
            _ => return Err(mismatch()),
        }
        Ok(true)
    }

    /// Reads a message's fields: `take` reads one and answers `true`, or leaves it to be skipped.
    fn fields(
        &mut self,
        parts: Range<usize>,
        mut take: impl FnMut(u32, Wire, &mut Reader<'a>) -> Decoded<bool>,
    ) -> Decoded<()> {
        for part in parts {
            let mut reader = self.reader(part);
            while !reader.is_done() {
                let (number, wire) = reader.tag()?;
                if !take(number, wire, &mut reader)? {
                    self.skip_unknown(&mut reader, number, wire)?;
                }
            }
        }
        Ok(())
    }

    /// The fields 1 to N of a message, all of them integers without zigzag: seconds and nanoseconds, for example.
    fn integers<const N: usize>(&mut self, parts: Range<usize>) -> Decoded<[i64; N]> {
        let mut integers = [0; N];
        self.fields(parts, |number, wire, reader| {
            match integers.get_mut(number as usize - 1) {
                Some(integer) if wire == Wire::Varint => *integer = values::signed(Scalar::Int64, reader)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(integers)
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
