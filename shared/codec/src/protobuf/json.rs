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
use crate::fault::Decoded;
use crate::text;

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

impl<'a> Reading<'a> {
    /// Writes the message whose parts are the pending `parts`.
    pub(super) fn json_message(
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

    /// `1972-01-01T10:00:20.021Z`, with as many threes of digits as it needs.
    fn json_timestamp(&mut self, parts: Range<usize>, out: &mut Vec<u8>) -> Decoded<()> {
        let [seconds, nanos] = self.integers(parts)?;
        let (seconds, nanos) = (
            seconds.saturating_add(nanos.div_euclid(1_000_000_000)),
            nanos.rem_euclid(1_000_000_000),
        );
        let micros = seconds.checked_mul(1_000_000);
        let believed = micros.filter(|micros| {
            self.range
                .micros(*micros, frazil_schema::TimestampUnit::Micros)
                .is_ok()
        });
        let micros = believed.ok_or_else(|| self.range.not_seconds(seconds))?;
        out.push(b'"');
        text::timestamp(micros, false, out);
        out.truncate(out.len() - ".000000".len());
        fraction(nanos.unsigned_abs(), out);
        out.extend_from_slice(b"Z\"");
        Ok(())
    }

    /// `1.5s`.
    fn json_duration(&mut self, parts: Range<usize>, out: &mut Vec<u8>) -> Decoded<()> {
        let [seconds, nanos] = self.integers(parts)?;
        let total = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        let magnitude = total.unsigned_abs();
        let nanos = u64::try_from(magnitude % 1_000_000_000).unwrap_or_default();
        let sign = if total < 0 { "-" } else { "" };
        let _ = write!(out, "\"{sign}{}", magnitude / 1_000_000_000);
        fraction(nanos, out);
        out.extend_from_slice(b"s\"");
        Ok(())
    }

    fn json_wrapper(&mut self, message: usize, parts: Range<usize>, out: &mut Vec<u8>) -> Decoded<()> {
        let kind = self.schema.message(message).fields[0].kind;
        let wire = Scalar::of(kind).map(Scalar::wire);
        let mut found = None;
        self.fields(parts, |number, given, reader| {
            let is_value = number == 1 && Some(given) == wire;
            if is_value {
                found = Some(*reader);
                reader.skip(number, given)?;
            }
            Ok(is_value)
        })?;
        match found {
            Some(mut reader) => self.json_scalar(kind, &mut reader, out),
            None => {
                self.json_default(kind, out);
                Ok(())
            }
        }
    }

    /// A message that stands for its only field, `empty` if that is not set.
    fn json_only_field(
        &mut self,
        message: usize,
        parts: Range<usize>,
        depth: usize,
        out: &mut Vec<u8>,
        empty: &[u8],
    ) -> Decoded<()> {
        let (pending, oneofs) = (self.scratch.pending.len(), self.scratch.oneofs.len());
        self.collect(message, parts)?;
        let parts = pending..self.scratch.pending.len();
        if parts.is_empty() {
            out.extend_from_slice(empty);
        } else {
            self.json_field(&self.schema.message(message).fields[0], parts, depth, out)?;
        }
        self.scratch.pending.truncate(pending);
        self.scratch.oneofs.truncate(oneofs);
        Ok(())
    }

    /// A `google.protobuf.Value` is the member that it has; without one, null.
    fn json_value(
        &mut self,
        message: usize,
        parts: Range<usize>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Decoded<()> {
        let (pending, oneofs) = (self.scratch.pending.len(), self.scratch.oneofs.len());
        self.collect(message, parts)?;
        let member = self.scratch.oneofs.get(oneofs).copied().unwrap_or_default();
        match member.field {
            None => out.extend_from_slice(b"null"),
            Some(position) => {
                let frame = &self.scratch.pending[pending..];
                let start = frame.partition_point(|pending| pending.field < position);
                let end = frame.partition_point(|pending| pending.field <= position);
                let of_before = frame[start..end].partition_point(|part| part.generation < member.generation);
                let parts = pending + start + of_before..pending + end;
                self.json_field(&self.schema.message(message).fields[position], parts, depth, out)?;
            }
        }
        self.scratch.pending.truncate(pending);
        self.scratch.oneofs.truncate(oneofs);
        Ok(())
    }

    /// `{"@type": …, …}` with the fields of the message inside if the file knows it, else `"value"` with its bytes.
    fn json_any(&mut self, parts: Range<usize>, depth: usize, out: &mut Vec<u8>) -> Decoded<()> {
        let (mut url, mut value): (&[u8], Option<(usize, usize)>) = (&[], None);
        self.fields(parts, |number, wire, reader| {
            match (number, wire) {
                (1, Wire::Bytes) => url = reader.bytes()?,
                (2, Wire::Bytes) => value = Some(reader.range()?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let url = values::utf8(url)?;
        let place = value.unwrap_or((0, 0));
        if url.is_empty() && place.0 == place.1 {
            out.extend_from_slice(b"{}");
            return Ok(());
        }
        out.extend_from_slice(b"{\"@type\":");
        string(url, out);
        let name = url.rsplit_once('/').map_or(url, |(_, name)| name);
        match self.schema.find(name) {
            None => {
                out.extend_from_slice(b",\"value\":");
                base64(&self.body[place.0..place.1], out);
            }
            Some(message) => {
                let part = self.scratch.pending.len();
                self.remember(0, 0, place, Wire::Bytes);
                let has_form = !matches!(
                    self.schema.message(message).well_known,
                    None | Some(
                        WellKnown::Date
                            | WellKnown::TimeOfDay
                            | WellKnown::TextDecimal
                            | WellKnown::ScaledDecimal
                    )
                );
                if has_form {
                    out.extend_from_slice(b",\"value\":");
                    self.json_message(message, part..part + 1, depth + 1, out)?;
                } else if depth + 1 >= MAX_DEPTH {
                    return Err(super::wire::too_deep());
                } else {
                    self.json_fields(message, part..part + 1, depth + 1, out)?;
                }
                self.scratch.pending.truncate(part);
            }
        }
        out.push(b'}');
        Ok(())
    }

    /// `"user.displayName,photo"`.
    fn json_field_mask(&mut self, parts: Range<usize>, out: &mut Vec<u8>) -> Decoded<()> {
        let mut paths: Vec<&[u8]> = Vec::new();
        self.fields(parts, |number, wire, reader| {
            let is_path = (number, wire) == (1, Wire::Bytes);
            if is_path {
                paths.push(reader.bytes()?);
            }
            Ok(is_path)
        })?;
        let mut shown = String::new();
        for (index, path) in paths.into_iter().enumerate() {
            if index > 0 {
                shown.push(',');
            }
            let mut after_underscore = false;
            for c in values::utf8(path)?.chars() {
                match c {
                    '_' => after_underscore = true,
                    c if after_underscore => {
                        shown.push(c.to_ascii_uppercase());
                        after_underscore = false;
                    }
                    c => shown.push(c),
                }
            }
        }
        string(&shown, out);
        Ok(())
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

/// `.021`, `.000001` or nothing at all.
fn fraction(nanos: u64, out: &mut Vec<u8>) {
    let _ = match nanos {
        0 => return,
        nanos if nanos % 1_000_000 == 0 => write!(out, ".{:03}", nanos / 1_000_000),
        nanos if nanos % 1_000 == 0 => write!(out, ".{:06}", nanos / 1_000),
        nanos => write!(out, ".{nanos:09}"),
    };
}
