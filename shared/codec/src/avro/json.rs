use std::io::Write;

use frazil_schema::AvroType;

use super::cursor::{Cursor, MAX_SUBTREE_DEPTH, Subtree, may_be_empty, too_deep};
use super::{no_branch, values};
use crate::builder::Bytes;
use crate::fault::{Decoded, Fault};
use crate::{TimestampRange, text};

/// The text of one subtree may be this long. Field names make it longer than the record's bytes, without a bound by a
/// lot; Athena takes rows of 32 MB.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// Writes a subtree that is in no column of its own as plain JSON: unions as the value alone, bytes as base64,
/// decimals as numbers with all their digits, dates and times as Iceberg's JSON has them, numbers that JSON lacks as
/// `"NaN"`, `"Infinity"` and `"-Infinity"`.
pub(super) fn write(
    subtree: &Subtree,
    cursor: &mut Cursor<'_>,
    range: &TimestampRange,
    out: &mut Bytes,
) -> Decoded<()> {
    let start = out.data.len();
    let mut writer = Writer {
        definitions: &subtree.definitions,
        range,
        end: start + MAX_TEXT_BYTES,
        scratch: Bytes::new(),
        out: &mut out.data,
    };
    writer.value(&subtree.data_type, cursor, 0)?;
    out.end()
}

struct Writer<'w> {
    definitions: &'w [AvroType],
    range: &'w TimestampRange,
    end: usize,
    scratch: Bytes,
    out: &'w mut Vec<u8>,
}

impl Writer<'_> {
    fn value(&mut self, data_type: &AvroType, cursor: &mut Cursor<'_>, depth: usize) -> Decoded<()> {
        if depth > MAX_SUBTREE_DEPTH {
            return Err(too_deep());
        }
        if self.out.len() > self.end {
            return Err(Fault::new(
                "avro.text_too_large",
                format!("the JSON text of a subtree is longer than {MAX_TEXT_BYTES} bytes"),
            ));
        }
        // Writing to a Vec never fails.
        match data_type {
            AvroType::Null => self.out.extend_from_slice(b"null"),
            AvroType::Boolean => {
                let _ = write!(self.out, "{}", cursor.boolean()?);
            }
            AvroType::Int => {
                let _ = write!(self.out, "{}", cursor.int()?);
            }
            AvroType::Long => {
                let _ = write!(self.out, "{}", cursor.long()?);
            }
            AvroType::Float => {
                let value = f32::from_le_bytes(cursor.array()?);
                self.float(value.is_finite().then_some(value), f64::from(value));
            }
            AvroType::Double => {
                let value = f64::from_le_bytes(cursor.array()?);
                self.float(value.is_finite().then_some(value), value);
            }
            AvroType::Bytes => self.base64(cursor.bytes()?),
            AvroType::Fixed(size) => self.base64(cursor.take(*size)?),
            AvroType::Duration => self.base64(cursor.take(12)?),
            AvroType::String => self.string(cursor.text()?),
            AvroType::Enum(symbols) => self.string(cursor.symbol(symbols)?),
            AvroType::Decimal {
                precision,
                scale,
                size,
            } => {
                let bytes = match size {
                    Some(size) => cursor.take(*size)?,
                    None => cursor.bytes()?,
                };
                let unscaled = values::decimal(bytes, 10i128.pow((*precision).min(38)))?;
                text::decimal(unscaled, *scale, self.out);
            }
            AvroType::Date => {
                let days = self.range.date(cursor.int()?)?;
                self.quoted(|out| text::date(days, out));
            }
            AvroType::TimeMillis => {
                let micros = values::time_of_day(i64::from(cursor.int()?).saturating_mul(1_000))?;
                self.quoted(|out| text::time(micros, out));
            }
            AvroType::TimeMicros => {
                let micros = values::time_of_day(cursor.long()?)?;
                self.quoted(|out| text::time(micros, out));
            }
            AvroType::Timestamp { unit, utc } => {
                let micros = self.range.micros(cursor.long()?, *unit)?;
                self.quoted(|out| text::timestamp(micros, *utc, out));
            }
            AvroType::Uuid => {
                let given = cursor.text()?;
                self.uuid(|scratch| values::uuid(given, scratch))?;
            }
            AvroType::UuidBytes => {
                let bytes = cursor.array()?;
                self.uuid(|scratch| values::uuid_of_bytes(bytes, scratch))?;
            }
            AvroType::Record(fields) => {
                self.out.push(b'{');
                for (index, field) in fields.iter().enumerate() {
                    self.comma(index);
                    self.string(&field.name);
                    self.out.push(b':');
                    self.value(&field.data_type, cursor, depth + 1)
                        .map_err(|fault| fault.inside(&field.name))?;
                }
                self.out.push(b'}');
            }
            AvroType::Array(items) => {
                self.out.push(b'[');
                let mut index = 0;
                while let Some(count) = cursor.block(may_be_empty(items))? {
                    for _ in 0..count {
                        self.comma(index);
                        self.value(items, cursor, depth + 1)
                            .map_err(|fault| fault.inside("[]"))?;
                        index += 1;
                    }
                }
                self.out.push(b']');
            }
            AvroType::Entries(entry) => {
                let (key, value) = &**entry;
                self.out.push(b'[');
                let mut index = 0;
                while let Some(count) = cursor.block(may_be_empty(key) && may_be_empty(value))? {
                    for _ in 0..count {
                        self.comma(index);
                        self.out.extend_from_slice(b"{\"key\":");
                        self.value(key, cursor, depth + 1)?;
                        self.out.extend_from_slice(b",\"value\":");
                        self.value(value, cursor, depth + 1)?;
                        self.out.push(b'}');
                        index += 1;
                    }
                }
                self.out.push(b']');
            }
            AvroType::Map(values) => {
                self.out.push(b'{');
                let mut index = 0;
                while let Some(count) = cursor.block(false)? {
                    for _ in 0..count {
                        self.comma(index);
                        self.string(cursor.text()?);
                        self.out.push(b':');
                        self.value(values, cursor, depth + 1)
                            .map_err(|fault| fault.inside("[]"))?;
                        index += 1;
                    }
                }
                self.out.push(b'}');
            }
            // Neither a union nor a reference is a level of the text, and neither holds another of its kind.
            AvroType::Union(branches) => {
                let branch = cursor.index()?;
                match branches.get(branch) {
                    Some(branch) => self.value(&branch.data_type, cursor, depth)?,
                    None => return Err(no_branch(branch)),
                }
            }
            AvroType::Recursive(definition) => match self.definitions.get(*definition) {
                Some(definition) => self.value(definition, cursor, depth)?,
                None => return Err(crate::builder::mismatch()),
            },
        }
        Ok(())
    }

    fn comma(&mut self, index: usize) {
        if index > 0 {
            self.out.push(b',');
        }
    }

    fn string(&mut self, text: &str) {
        // A string always has a JSON form.
        let _ = serde_json::to_writer(&mut *self.out, text);
    }

    fn quoted(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.out.push(b'"');
        write(self.out);
        self.out.push(b'"');
    }

    fn base64(&mut self, bytes: &[u8]) {
        self.quoted(|out| base64_simd::STANDARD.encode_append(bytes, out));
    }

    fn float(&mut self, finite: Option<impl serde::Serialize>, value: f64) {
        match finite {
            Some(finite) => {
                let _ = serde_json::to_writer(&mut *self.out, &finite);
            }
            None if value.is_nan() => self.string("NaN"),
            None if value > 0.0 => self.string("Infinity"),
            None => self.string("-Infinity"),
        }
    }

    fn uuid(&mut self, read: impl FnOnce(&mut Bytes) -> Decoded<()>) -> Decoded<()> {
        self.scratch.data.clear();
        read(&mut self.scratch)?;
        let uuid = std::mem::take(&mut self.scratch.data);
        self.quoted(|out| out.extend_from_slice(&uuid));
        self.scratch = Bytes::new();
        Ok(())
    }
}
