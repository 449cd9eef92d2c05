//! Messages as JSON, for the columns of what has no columns of its own: recursive messages, and those that are JSON
//! by nature. The form is Protobuf's own (“ProtoJSON Format”): `lowerCamelCase` names, integers of 64 bits as
//! strings, bytes as base64, fields without presence left out while they have their default.

use std::io::Write;
use std::ops::Range;

use frazil_schema::{ProtobufCardinality, ProtobufField, ProtobufKind, ProtobufSchema, WellKnown};

use super::map::MapValue;
use super::plan::Scalar;
use super::wire::{MAX_DEPTH, Reader, Wire};
use super::{Member, Reading, values};
use crate::fault::{Decoded, Fault};

mod well_known;

/// Where each number is among the fields of each message.
#[derive(Debug)]
pub(super) struct FieldIndex(Vec<Vec<(u32, usize)>>);

impl FieldIndex {
    /// Empty if nothing is going to be written as JSON.
    pub(super) fn new(schema: &ProtobufSchema, wanted: bool) -> Self {
        let index = |fields: &[ProtobufField]| {
            let mut index: Vec<(u32, usize)> = fields.iter().map(|field| field.number).zip(0..).collect();
            index.sort_unstable();
            index
        };
        let messages = schema.messages().iter().filter(|_| wanted);
        Self(messages.map(|message| index(&message.fields)).collect())
    }

    fn find(&self, message: usize, number: u32) -> Option<usize> {
        let fields = self.0.get(message)?;
        let found = fields.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(fields[found].1)
    }
}

/// The text of one field of one record: more would not fit into a table's file, let alone a screen.
const MAX_TEXT_BYTES: usize = 16 << 20;

impl<'a> Reading<'a> {
    /// Writes the message whose parts are the pending `parts`, as the whole text of a column.
    pub(super) fn json_text(
        &mut self,
        message: usize,
        parts: Range<usize>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Decoded<()> {
        self.scratch.text_end = out.len().saturating_add(MAX_TEXT_BYTES);
        self.json_message(message, parts, depth, out)?;
        self.check_text(out)
    }

    /// Enums have names that are longer than their numbers.
    fn check_text(&self, out: &[u8]) -> Decoded<()> {
        if out.len() <= self.scratch.text_end {
            return Ok(());
        }
        Err(Fault::new(
            "protobuf.text_too_large",
            format!("its JSON is longer than {} MiB", MAX_TEXT_BYTES >> 20),
        )
        .with_hint("exclude the field in the topic's settings"))
    }

    /// Writes the message whose parts are the pending `parts`.
    fn json_message(
        &mut self,
        message: usize,
        parts: Range<usize>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Decoded<()> {
        if depth >= MAX_DEPTH {
            return Err(super::wire::too_deep());
        }
        match self.schema.message(message).well_known {
            Some(WellKnown::Timestamp) => self.json_timestamp(parts, out),
            Some(WellKnown::Duration) => self.json_duration(parts, out),
            Some(WellKnown::Wrapper) => self.json_wrapper(message, parts, out),
            Some(WellKnown::Struct) => self.json_only_field(message, parts, depth, out, b"{}"),
            Some(WellKnown::ListValue) => self.json_only_field(message, parts, depth, out, b"[]"),
            Some(WellKnown::Value) => self.json_value(message, parts, depth, out),
            Some(WellKnown::Any) => self.json_any(parts, depth, out),
            Some(WellKnown::FieldMask) => self.json_field_mask(parts, out),
            // Messages of other packages have no form of their own.
            Some(
                WellKnown::Date | WellKnown::TimeOfDay | WellKnown::TextDecimal | WellKnown::ScaledDecimal,
            )
            | None => {
                out.push(b'{');
                self.json_fields(message, parts, depth, out)?;
                out.push(b'}');
                Ok(())
            }
        }
    }

    /// Writes `"name":value` of each field that is set, after what `out` has of the object.
    fn json_fields(
        &mut self,
        message: usize,
        parts: Range<usize>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Decoded<()> {
        let (pending, oneofs) = (self.scratch.pending.len(), self.scratch.oneofs.len());
        self.collect(message, parts)?;
        let declared = self.schema.message(message);
        let end = self.scratch.pending.len();
        let mut next = pending;
        while next < end {
            let position = self.scratch.pending[next].field;
            let rest = &self.scratch.pending[next..end];
            let mut parts = next..next + rest.partition_point(|pending| pending.field == position);
            next = parts.end;
            let field = &declared.fields[position];
            if let Some(oneof) = field.oneof {
                let member = self.scratch.oneofs[oneofs + oneof];
                if member.field != Some(position) {
                    continue;
                }
                parts.start += self.scratch.pending[parts.clone()]
                    .partition_point(|pending| pending.generation < member.generation);
            }
            if field.cardinality == ProtobufCardinality::Implicit && self.is_default(field, parts.end - 1)? {
                continue;
            }
            self.check_text(out)?;
            if !out.ends_with(b"{") {
                out.push(b',');
            }
            string(&field.json_name, out);
            out.push(b':');
            self.json_field(field, parts, depth, out)
                .map_err(|fault| fault.inside(&field.name))?;
        }
        self.scratch.pending.truncate(pending);
        self.scratch.oneofs.truncate(oneofs);
        Ok(())
    }

    /// Makes all occurrences of a message's fields pending, in the order of the fields.
    fn collect(&mut self, message: usize, parts: Range<usize>) -> Decoded<()> {
        let declared = self.schema.message(message);
        let (pending, oneofs) = (self.scratch.pending.len(), self.scratch.oneofs.len());
        self.scratch
            .oneofs
            .resize(oneofs + declared.oneofs.len(), Member::default());
        for part in parts {
            let mut reader = self.reader(part);
            while !reader.is_done() {
                let (number, wire) = reader.tag()?;
                let position = self.index.find(message, number);
                let field = position.map(|position| (position, &declared.fields[position]));
                let Some((position, field)) = field.filter(|(_, field)| takes(field, wire)) else {
                    self.skip_unknown(&mut reader, number, wire)?;
                    continue;
                };
                let mut generation = 0;
                if let Some(oneof) = field.oneof {
                    let member = &mut self.scratch.oneofs[oneofs + oneof];
                    if member
                        .field
                        .replace(position)
                        .is_some_and(|before| before != position)
                    {
                        member.generation += 1;
                    }
                    generation = member.generation;
                }
                let at = reader.at();
                let place = match field.kind.message() {
                    Some(_) => reader.value(number, wire)?,
                    // A scalar is read from its length on.
                    None => {
                        reader.skip(number, wire)?;
                        (at, reader.at())
                    }
                };
                self.remember(position, generation, place, wire);
            }
        }
        self.scratch.pending[pending..].sort_by_key(|pending| pending.field);
        Ok(())
    }

    /// Whether a scalar has the value that it would have without being there.
    fn is_default(&self, field: &ProtobufField, part: usize) -> Decoded<bool> {
        let Some(scalar) = Scalar::of(field.kind) else {
            return Ok(false);
        };
        let mut reader = self.reader(part);
        Ok(match scalar.wire() {
            Wire::Bytes => reader.bytes()?.is_empty(),
            Wire::Fixed32 => reader.fixed()? == [0; 4],
            Wire::Fixed64 => reader.fixed()? == [0; 8],
            _ if matches!(
                scalar,
                Scalar::Int64 | Scalar::Uint64 | Scalar::Sint64 | Scalar::Bool
            ) =>
            {
                reader.varint()? == 0
            }
            _ => values::low(reader.varint()?) == 0,
        })
    }

    fn json_field(
        &mut self,
        field: &'a ProtobufField,
        parts: Range<usize>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Decoded<()> {
        match field.cardinality {
            ProtobufCardinality::Implicit | ProtobufCardinality::Explicit => match field.kind.message() {
                Some(message) => self.json_message(message, parts, depth + 1, out),
                None => self.json_scalar(field.kind, &mut self.reader(parts.end - 1), out),
            },
            ProtobufCardinality::Repeated => {
                out.push(b'[');
                for part in parts {
                    self.json_elements(field, part, depth, out)
                        .map_err(|fault| fault.inside("[]"))?;
                }
                out.push(b']');
                Ok(())
            }
            ProtobufCardinality::Map => {
                out.push(b'{');
                self.json_entries(field, parts, depth, out)?;
                out.push(b'}');
                Ok(())
            }
        }
    }

    /// One element, or all of those that are packed together.
    fn json_elements(
        &mut self,
        field: &ProtobufField,
        part: usize,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Decoded<()> {
        if let Some(message) = field.kind.message() {
            comma(out);
            return self.json_message(message, part..part + 1, depth + 1, out);
        }
        let mut reader = self.reader(part);
        let packed = Scalar::of(field.kind).is_some_and(values::is_packable);
        if packed && self.scratch.pending[part].wire == Wire::Bytes {
            reader = Reader::new(self.body, reader.range()?);
        }
        while !reader.is_done() {
            self.check_text(out)?;
            comma(out);
            self.json_scalar(field.kind, &mut reader, out)?;
        }
        Ok(())
    }

    fn json_entries(
        &mut self,
        field: &ProtobufField,
        parts: Range<usize>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Decoded<()> {
        let entry = field
            .kind
            .message()
            .map(|entry| &self.schema.message(entry).fields[..]);
        let Some([key, value]) = entry else {
            return Err(crate::builder::mismatch());
        };
        let scalar = Scalar::of(key.kind).unwrap_or(Scalar::String);
        let shape = match (Scalar::of(value.kind), value.kind) {
            (Some(value), _) => MapValue {
                wire: value.wire(),
                is_message: false,
            },
            (None, ProtobufKind::Group(_)) => MapValue {
                wire: Wire::Group,
                is_message: true,
            },
            (None, _) => MapValue {
                wire: Wire::Bytes,
                is_message: true,
            },
        };
        let pending = self.scratch.pending.len();
        for entry in self.entries(scalar, shape, parts)? {
            self.check_text(out)?;
            if !out.ends_with(b"{") {
                out.push(b',');
            }
            let quoted = scalar == Scalar::String || is_quoted(key.kind);
            if !quoted {
                out.push(b'"');
            }
            match entry.key {
                Some(place) => self.json_scalar(key.kind, &mut Reader::new(self.body, place), out)?,
                None => self.json_default(key.kind, out),
            }
            if !quoted {
                out.push(b'"');
            }
            out.push(b':');
            let (start, end) = entry.value;
            match value.kind.message() {
                Some(message) => self.json_message(message, start..end, depth + 1, out)?,
                None if start == end => self.json_default(value.kind, out),
                None => self.json_scalar(value.kind, &mut self.reader(start), out)?,
            }
        }
        self.scratch.pending.truncate(pending);
        Ok(())
    }

    fn json_scalar(&self, kind: ProtobufKind, reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Decoded<()> {
        // Writing to a Vec never fails.
        let _ = match Scalar::of(kind) {
            Some(Scalar::String) => {
                string(values::utf8(reader.bytes()?)?, out);
                return Ok(());
            }
            Some(Scalar::Bytes) => {
                base64(reader.bytes()?, out);
                return Ok(());
            }
            Some(Scalar::Double) => {
                double(f64::from_le_bytes(reader.fixed()?), out);
                return Ok(());
            }
            Some(Scalar::Float) => {
                let value = f32::from_le_bytes(reader.fixed()?);
                if value.is_finite() {
                    serde_json::to_writer(out, &value).map_err(std::io::Error::other)
                } else {
                    double(f64::from(value), out);
                    Ok(())
                }
            }
            Some(Scalar::Bool) => write!(out, "{}", reader.varint()? != 0),
            Some(Scalar::Enum(index)) => {
                let number = values::low(reader.varint()?);
                self.json_symbol(index, number, out);
                Ok(())
            }
            Some(Scalar::Uint64) => write!(out, "\"{}\"", reader.varint()?),
            Some(Scalar::Fixed64) => write!(out, "\"{}\"", u64::from_le_bytes(reader.fixed()?)),
            Some(scalar @ (Scalar::Int64 | Scalar::Sint64 | Scalar::Sfixed64)) => {
                write!(out, "\"{}\"", values::signed(scalar, reader)?)
            }
            Some(scalar) => write!(out, "{}", values::signed(scalar, reader)?),
            None => return Err(crate::builder::mismatch()),
        };
        Ok(())
    }

    fn json_default(&self, kind: ProtobufKind, out: &mut Vec<u8>) {
        let text: &[u8] = match kind {
            ProtobufKind::String | ProtobufKind::Bytes => b"\"\"",
            ProtobufKind::Bool => b"false",
            ProtobufKind::Enum(index) => {
                return self.json_symbol(index, self.schema.enumeration(index).default, out);
            }
            kind if is_quoted(kind) => b"\"0\"",
            ProtobufKind::Double | ProtobufKind::Float => b"0.0",
            _ => b"0",
        };
        out.extend_from_slice(text);
    }

    fn json_symbol(&self, index: usize, number: i32, out: &mut Vec<u8>) {
        let declared = self.schema.enumeration(index);
        match declared.name_of(number) {
            Some(_) if declared.name == "google.protobuf.NullValue" => out.extend_from_slice(b"null"),
            Some(name) => string(name, out),
            None => out.extend_from_slice(number.to_string().as_bytes()),
        }
    }
}

/// Whether a field can come with this wire type.
fn takes(field: &ProtobufField, wire: Wire) -> bool {
    match (Scalar::of(field.kind), field.kind) {
        (Some(scalar), _) => {
            let may_be_packed =
                field.cardinality == ProtobufCardinality::Repeated && values::is_packable(scalar);
            wire == scalar.wire() || (may_be_packed && wire == Wire::Bytes)
        }
        (None, ProtobufKind::Group(_)) => wire == Wire::Group,
        (None, _) => wire == Wire::Bytes,
    }
}

/// Integers of 64 bits are strings in JSON.
fn is_quoted(kind: ProtobufKind) -> bool {
    use ProtobufKind as K;
    matches!(kind, K::Int64 | K::Uint64 | K::Sint64 | K::Fixed64 | K::Sfixed64)
}

fn comma(out: &mut Vec<u8>) {
    if !out.ends_with(b"[") {
        out.push(b',');
    }
}

fn string(text: &str, out: &mut Vec<u8>) {
    // Writing to a Vec never fails.
    let _ = serde_json::to_writer(out, text);
}

fn base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(base64_simd::STANDARD.encode_to_string(bytes).as_bytes());
    out.push(b'"');
}

fn double(value: f64, out: &mut Vec<u8>) {
    let word: &[u8] = if value.is_nan() {
        b"\"NaN\""
    } else if value == f64::INFINITY {
        b"\"Infinity\""
    } else if value == f64::NEG_INFINITY {
        b"\"-Infinity\""
    } else {
        let _ = serde_json::to_writer(out, &value);
        return;
    };
    out.extend_from_slice(word);
}
