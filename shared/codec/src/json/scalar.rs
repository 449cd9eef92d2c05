use std::borrow::Cow;

use frazil_schema::{JsonType, TimestampUnit};

use super::calendar;
use super::cursor::{Cursor, Number};
use super::number::{double, float, shortened, too_large};
use crate::TimestampRange;
use crate::builder::{Values, mismatch};
use crate::decimal::{self, Misfit, scaled};
use crate::fault::{Decoded, Fault};
use crate::instant::MICROS_PER_DAY;
use crate::text;

/// Decodes a value that is not null into a column whose type the settings may have changed.
#[inline]
pub(super) fn decode(
    data_type: &JsonType,
    column: &mut Values,
    cursor: &mut Cursor<'_>,
    depth: usize,
    range: &TimestampRange,
) -> Decoded<()> {
    match (data_type, column) {
        (JsonType::String | JsonType::Time, Values::Text(out) | Values::Binary(out)) => {
            let text = string(cursor, depth, "a string")?;
            out.push(text.as_bytes())
        }
        (JsonType::Integer, Values::Long(out)) => {
            out.push(integer(cursor, depth)?);
            Ok(())
        }
        (JsonType::Integer, Values::Int(out)) => {
            let value = integer(cursor, depth)?;
            out.push(i32::try_from(value).map_err(|_| too_large(&value.to_string(), "a column of 32 bits"))?);
            Ok(())
        }
        (JsonType::Number, Values::Double(out)) => {
            out.push(match number(cursor, depth, "a number")? {
                // The nearest double, as JSON readers have it.
                #[allow(clippy::cast_precision_loss)]
                (Number::Integer(value), text) if value != 0 || !text.starts_with('-') => value as f64,
                (_, text) => double(text)?,
            });
            Ok(())
        }
        (JsonType::Number, Values::Float(out)) => {
            let (_, text) = number(cursor, depth, "a number")?;
            out.push(float(text)?);
            Ok(())
        }
        (JsonType::Boolean, Values::Boolean(out)) => match cursor.peek() {
            Some(b't' | b'f') => {
                out.append(cursor.boolean()?);
                Ok(())
            }
            _ => Err(wrong_type("a boolean", cursor, depth)),
        },
        (
            JsonType::Decimal { scale: from },
            Values::Decimal {
                values,
                precision,
                scale,
            },
        ) => {
            let value = match cursor.peek() {
                Some(b'"') => unscaled(&string(cursor, depth, "a decimal")?, *from, *precision, *scale)?,
                _ => decimal(cursor, depth, *precision, *scale)?,
            };
            values.push(value);
            Ok(())
        }
        (JsonType::Decimal { scale: from }, Values::Long(out)) => {
            let value = match cursor.peek() {
                Some(b'"') => unscaled(&string(cursor, depth, "a decimal")?, *from, 38, 0)?,
                _ => decimal(cursor, depth, 38, 0)?,
            };
            out.push(i64::try_from(value).map_err(|_| too_large(&value.to_string(), "a column of 64 bits"))?);
            Ok(())
        }
        (
            JsonType::Number | JsonType::Integer,
            Values::Decimal {
                values,
                precision,
                scale,
            },
        ) => {
            values.push(decimal(cursor, depth, *precision, *scale)?);
            Ok(())
        }
        (JsonType::DateTime, Values::Timestamp { values, .. }) => {
            let moment = moment(cursor, depth)?;
            let micros = moment.seconds * 1_000_000 + i64::from(moment.nanos / 1_000);
            values.push(range.micros(micros, TimestampUnit::Micros)?);
            Ok(())
        }
        (JsonType::DateTime, Values::Long(out)) => {
            let moment = moment(cursor, depth)?;
            let nanos = i128::from(moment.seconds) * 1_000_000_000 + i128::from(moment.nanos);
            out.push(i64::try_from(nanos).map_err(|_| {
                too_large(
                    &nanos.to_string(),
                    "64 bits of nanoseconds, which end in the years 1677 and 2262",
                )
            })?);
            Ok(())
        }
        (JsonType::Date, Values::Date(out)) => {
            let text = string(cursor, depth, "a date")?;
            out.push(range.date(calendar::date(&text).ok_or_else(|| bad_format("a date", &text))?)?);
            Ok(())
        }
        (JsonType::Uuid, Values::Text(out) | Values::Binary(out)) => {
            let text = string(cursor, depth, "a UUID")?;
            if !is_uuid(text.as_bytes()) {
                return Err(bad_format("a UUID", &text));
            }
            out.data
                .extend(text.bytes().map(|byte| byte.to_ascii_lowercase()));
            out.end()
        }
        (JsonType::Base64, Values::Binary(out)) => {
            let text = string(cursor, depth, "base64")?;
            base64_simd::STANDARD
                .decode_append(text.as_bytes(), &mut out.data)
                .map_err(|_| bad_format("base64", &text))?;
            out.end()
        }
        (JsonType::EpochDays, Values::Date(out)) => {
            let days = integer(cursor, depth)?;
            let days = i32::try_from(days).map_err(|_| too_large(&days.to_string(), "a date's range"))?;
            out.push(range.date(days)?);
            Ok(())
        }
        (JsonType::DayMillis, Values::Text(out) | Values::Binary(out)) => {
            text::time(day_micros(integer(cursor, depth)?)?, &mut out.data);
            out.end()
        }
        (JsonType::DayMillis, Values::Time(out)) => {
            out.push(day_micros(integer(cursor, depth)?)?);
            Ok(())
        }
        (JsonType::Time, Values::Time(out)) => {
            let text = string(cursor, depth, "a time")?;
            out.push(calendar::time_of_day(&text).ok_or_else(|| bad_format("an RFC 3339 time", &text))?);
            Ok(())
        }
        (JsonType::EpochMillis, Values::Timestamp { values, .. }) => {
            values.push(range.micros(integer(cursor, depth)?, TimestampUnit::Millis)?);
            Ok(())
        }
        (JsonType::EpochMillis, Values::Long(out)) => {
            out.push(integer(cursor, depth)?);
            Ok(())
        }
        _ => Err(mismatch()),
    }
}

/// A string whose kind the column wants.
#[inline]
fn string<'a>(cursor: &mut Cursor<'a>, depth: usize, wanted: &'static str) -> Decoded<Cow<'a, str>> {
    match cursor.peek() {
        Some(b'"') => cursor.string(),
        _ => Err(wrong_type(wanted, cursor, depth)),
    }
}

/// A number, and how it is written.
#[inline]
fn number<'a>(cursor: &mut Cursor<'a>, depth: usize, wanted: &'static str) -> Decoded<(Number<'a>, &'a str)> {
    match cursor.peek() {
        Some(b'-' | b'0'..=b'9') => {
            let start = cursor.position();
            Ok((cursor.number()?, cursor.since(start)))
        }
        _ => Err(wrong_type(wanted, cursor, depth)),
    }
}

/// An integer of 64 bits. JSON Schema takes every number without a fraction for one, however it is written.
#[inline]
fn integer(cursor: &mut Cursor<'_>, depth: usize) -> Decoded<i64> {
    match number(cursor, depth, "an integer")? {
        (Number::Integer(value), _) => Ok(value),
        (Number::Text(text), _) => match scaled(text, 0).map(i64::try_from) {
            Ok(Ok(value)) => Ok(value),
            Err(Misfit::Inexact) => Err(Fault::new(
                "json.type_mismatch",
                format!(
                    "the schema wants an integer, and it is the number {}",
                    shortened(text)
                ),
            )),
            Ok(Err(_)) | Err(Misfit::TooLarge) => Err(too_large(text, "64 bits")),
        },
    }
}

fn decimal(cursor: &mut Cursor<'_>, depth: usize, precision: u8, scale: i8) -> Decoded<i128> {
    match number(cursor, depth, "a number")? {
        (Number::Integer(value), _) => decimal::rescale(i128::from(value), 0, precision, scale),
        (Number::Text(text), _) => decimal::of_number(text, precision, scale),
    }
}

/// Connect's decimal in base64: a big-endian number of the schema's scale, brought to the column's.
fn unscaled(text: &str, from: u32, precision: u8, scale: i8) -> Decoded<i128> {
    let bytes = base64_simd::STANDARD
        .decode_to_vec(text)
        .map_err(|_| bad_format("a number, nor a decimal in base64", text))?;
    match decimal::twos_complement(&bytes) {
        Some(value) => decimal::rescale(value, from, precision, scale),
        None => decimal::rescale(i128::MAX, 0, precision, scale), // beyond every decimal as well
    }
}

fn moment(cursor: &mut Cursor<'_>, depth: usize) -> Decoded<calendar::Moment> {
    let text = string(cursor, depth, "a date and time")?;
    calendar::date_time(&text).ok_or_else(|| bad_format("an RFC 3339 date and time", &text))
}

fn day_micros(millis: i64) -> Decoded<i64> {
    let micros = millis
        .checked_mul(1_000)
        .filter(|micros| (0..MICROS_PER_DAY).contains(micros));
    micros.ok_or_else(|| {
        Fault::new(
            "value.time_out_of_range",
            format!("{millis} ms is not a time of day"),
        )
    })
}

/// 8-4-4-4-12 hexadecimal digits (RFC 9562, section 4).
fn is_uuid(text: &[u8]) -> bool {
    text.len() == 36
        && text.iter().enumerate().all(|(index, byte)| match index {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// What is there instead of the type that the schema says; or that it is no JSON at all.
#[cold]
pub(super) fn wrong_type(wanted: &str, cursor: &mut Cursor<'_>, depth: usize) -> Box<Fault> {
    let found = match cursor.peek() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'-' | b'0'..=b'9') => "a number",
        _ => return cursor.expected("a value"),
    };
    if let Err(fault) = cursor.skip(depth) {
        return fault;
    }
    Fault::new(
        "json.type_mismatch",
        format!("the schema wants {wanted}, and it is {found}"),
    )
}

#[cold]
fn bad_format(wanted: &str, text: &str) -> Box<Fault> {
    Fault::new(
        "json.invalid_format",
        format!("the string of {} bytes is not {wanted}", text.len()),
    )
}
