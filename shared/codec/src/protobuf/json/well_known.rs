use std::io::Write;
use std::ops::Range;

use frazil_schema::{TimestampUnit, WellKnown};

use super::super::plan::Scalar;
use super::super::wire::{MAX_DEPTH, Wire, too_deep};
use super::super::{Reading, values};
use super::{base64, string};
use crate::fault::Decoded;
use crate::text;

/// The messages that ProtoJSON has forms of their own for.
impl Reading<'_> {
    /// `1972-01-01T10:00:20.021Z`, with as many threes of digits as it needs.
    pub(super) fn json_timestamp(&mut self, parts: Range<usize>, out: &mut Vec<u8>) -> Decoded<()> {
        let [seconds, nanos] = self.integers(parts)?;
        let (seconds, nanos) = (
            seconds.saturating_add(nanos.div_euclid(1_000_000_000)),
            nanos.rem_euclid(1_000_000_000),
        );
        let micros = seconds.checked_mul(1_000_000);
        let believed = micros.filter(|micros| self.range.micros(*micros, TimestampUnit::Micros).is_ok());
        let micros = believed.ok_or_else(|| self.range.not_seconds(seconds))?;
        out.push(b'"');
        text::timestamp(micros, false, out);
        out.truncate(out.len() - ".000000".len());
        fraction(nanos.unsigned_abs(), out);
        out.extend_from_slice(b"Z\"");
        Ok(())
    }

    /// `1.5s`.
    pub(super) fn json_duration(&mut self, parts: Range<usize>, out: &mut Vec<u8>) -> Decoded<()> {
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

    pub(super) fn json_wrapper(
        &mut self,
        message: usize,
        parts: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Decoded<()> {
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
    pub(super) fn json_only_field(
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
    pub(super) fn json_value(
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
    pub(super) fn json_any(&mut self, parts: Range<usize>, depth: usize, out: &mut Vec<u8>) -> Decoded<()> {
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
                    return Err(too_deep());
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
    pub(super) fn json_field_mask(&mut self, parts: Range<usize>, out: &mut Vec<u8>) -> Decoded<()> {
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

/// `.021`, `.000001` or nothing at all.
fn fraction(nanos: u64, out: &mut Vec<u8>) {
    let _ = match nanos {
        0 => return,
        nanos if nanos % 1_000_000 == 0 => write!(out, ".{:03}", nanos / 1_000_000),
        nanos if nanos % 1_000 == 0 => write!(out, ".{:06}", nanos / 1_000),
        nanos => write!(out, ".{nanos:09}"),
    };
}
