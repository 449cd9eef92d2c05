use frazil_schema::{ProtobufSchema, TimestampUnit};

use super::plan::Scalar;
use super::wire::{Reader, Wire};
use crate::builder::{Values, mismatch};
use crate::fault::{Decoded, Fault};
use crate::instant::MICROS_PER_DAY;
use crate::{TimestampRange, decimal, text};

/// Reads one scalar and appends it to its column's values.
#[inline]
pub(super) fn scalar(
    scalar: Scalar,
    schema: &ProtobufSchema,
    reader: &mut Reader<'_>,
    values: &mut Values,
) -> Decoded<()> {
    match scalar {
        Scalar::String => match values {
            Values::Text(text) => text.push(utf8(reader.bytes()?)?.as_bytes()),
            Values::Binary(binary) => binary.push(reader.bytes()?),
            _ => Err(mismatch()),
        },
        Scalar::Bytes => match values {
            Values::Binary(binary) => binary.push(reader.bytes()?),
            _ => Err(mismatch()),
        },
        Scalar::Bool => match values {
            Values::Boolean(booleans) => {
                booleans.append(reader.varint()? != 0);
                Ok(())
            }
            _ => Err(mismatch()),
        },
        Scalar::Enum(index) => symbol(schema, index, low(reader.varint()?), values),
        Scalar::Double => double(f64::from_le_bytes(reader.fixed()?), values),
        Scalar::Float => float(f32::from_le_bytes(reader.fixed()?), values),
        Scalar::Uint64 => unsigned(reader.varint()?, values),
        Scalar::Fixed64 => unsigned(u64::from_le_bytes(reader.fixed()?), values),
        _ => integer(signed(scalar, reader)?, values),
    }
}

/// Reads an integer that is not of 64 bits without a sign.
#[inline]
pub(super) fn signed(scalar: Scalar, reader: &mut Reader<'_>) -> Decoded<i64> {
    Ok(match scalar {
        Scalar::Int64 => reader.varint()?.cast_signed(),
        Scalar::Uint32 => i64::from(low(reader.varint()?).cast_unsigned()),
        Scalar::Sint64 => zigzag(reader.varint()?),
        Scalar::Sint32 => i64::from(low(
            zigzag(u64::from(low(reader.varint()?).cast_unsigned())).cast_unsigned()
        )),
        Scalar::Fixed32 => i64::from(u32::from_le_bytes(reader.fixed()?)),
        Scalar::Sfixed32 => i64::from(i32::from_le_bytes(reader.fixed()?)),
        Scalar::Sfixed64 => i64::from_le_bytes(reader.fixed()?),
        _ => i64::from(low(reader.varint()?)),
    })
}

/// The 32 bits of a number that may be written with 64: readers drop the others, as Protobuf's own do.
#[inline]
#[allow(clippy::cast_possible_truncation)]
pub(super) fn low(value: u64) -> i32 {
    value as u32 as i32
}

#[inline]
fn zigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -((value & 1).cast_signed())
}

/// Appends what a field without presence is when it does not come.
pub(super) fn default(scalar: Scalar, schema: &ProtobufSchema, values: &mut Values) -> Decoded<()> {
    match (scalar, values) {
        (Scalar::Enum(index), values) => symbol(schema, index, schema.enumeration(index).default, values),
        (_, Values::Text(text) | Values::Binary(text)) => text.push(&[]),
        (_, Values::Boolean(booleans)) => {
            booleans.append(false);
            Ok(())
        }
        (Scalar::Double, values) => double(0.0, values),
        (Scalar::Float, values) => float(0.0, values),
        (_, values) => integer(0, values),
    }
}

#[inline]
fn integer(value: i64, values: &mut Values) -> Decoded<()> {
    match values {
        // Only fields of 32 bits have such a column.
        Values::Int(ints) => ints.push(low(value.cast_unsigned())),
        Values::Long(longs) => longs.push(value),
        Values::Decimal {
            values,
            precision,
            scale,
        } => values.push(decimal::rescale(i128::from(value), 0, *precision, *scale)?),
        _ => return Err(mismatch()),
    }
    Ok(())
}

#[inline]
fn unsigned(value: u64, values: &mut Values) -> Decoded<()> {
    match values {
        Values::Decimal {
            values,
            precision: 20..,
            scale: 0,
        } => values.push(i128::from(value)),
        Values::Decimal {
            values,
            precision,
            scale,
        } => values.push(decimal::rescale(i128::from(value), 0, *precision, *scale)?),
        Values::Long(longs) => longs.push(i64::try_from(value).map_err(|_| {
            Fault::new(
                "value.long_overflow",
                format!("{value} does not fit into a long of 64 bits"),
            )
            .with_hint("without a `type` in its settings the field is a decimal, which holds it")
        })?),
        _ => return Err(mismatch()),
    }
    Ok(())
}

#[inline]
fn double(value: f64, values: &mut Values) -> Decoded<()> {
    match values {
        Values::Double(doubles) => doubles.push(value),
        Values::Decimal {
            values,
            precision,
            scale,
        } => values.push(decimal::parse(&value.to_string(), *precision, *scale)?),
        _ => return Err(mismatch()),
    }
    Ok(())
}

#[inline]
fn float(value: f32, values: &mut Values) -> Decoded<()> {
    match values {
        Values::Float(floats) => floats.push(value),
        Values::Double(doubles) => doubles.push(f64::from(value)),
        Values::Decimal {
            values,
            precision,
            scale,
        } => values.push(decimal::parse(&value.to_string(), *precision, *scale)?),
        _ => return Err(mismatch()),
    }
    Ok(())
}

/// The name of an enum's number; of a number without a name its digits.
#[inline]
fn symbol(schema: &ProtobufSchema, index: usize, number: i32, values: &mut Values) -> Decoded<()> {
    let (Values::Text(text) | Values::Binary(text)) = values else {
        return Err(mismatch());
    };
    match schema.enumeration(index).name_of(number) {
        Some(name) => text.push(name.as_bytes()),
        None => text.push(number.to_string().as_bytes()),
    }
}

#[inline]
pub(super) fn utf8(bytes: &[u8]) -> Decoded<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        Fault::new(
            "protobuf.invalid_utf8",
            format!("the string is not UTF-8: {error}"),
        )
        .with_hint("`type = \"binary\"` in the settings of the field takes any bytes")
    })
}

/// Appends a `google.protobuf.Timestamp`.
pub(super) fn timestamp(
    [seconds, nanos]: [i64; 2],
    range: &TimestampRange,
    values: &mut Values,
) -> Decoded<()> {
    let micros = seconds
        .checked_mul(1_000_000)
        .and_then(|micros| micros.checked_add(nanos.div_euclid(1_000)));
    let believed = micros.and_then(|micros| range.micros(micros, TimestampUnit::Micros).ok());
    let micros = believed.ok_or_else(|| range.not_seconds(seconds))?;
    match values {
        Values::Timestamp { values, .. } => values.push(micros),
        Values::Long(longs) => longs.push(in_nanos(seconds, nanos).ok_or_else(|| {
            Fault::new(
                "value.long_overflow",
                "the instant in nanoseconds does not fit into a long of 64 bits",
            )
            .with_hint("without a `type` in its settings the field is a timestamp, which holds it")
        })?),
        _ => return Err(mismatch()),
    }
    Ok(())
}

/// Only the sum need fit: the first instant that does is not on a whole second.
fn in_nanos(seconds: i64, nanos: i64) -> Option<i64> {
    i64::try_from(i128::from(seconds) * 1_000_000_000 + i128::from(nanos)).ok()
}

/// Appends a `google.protobuf.Duration` in microseconds, nanoseconds floored.
pub(super) fn duration([seconds, nanos]: [i64; 2], values: &mut Values) -> Decoded<()> {
    let micros = (i128::from(seconds) * 1_000_000_000 + i128::from(nanos)).div_euclid(1_000);
    let micros = i64::try_from(micros).map_err(|_| {
        Fault::new(
            "value.duration_out_of_range",
            format!("{seconds} seconds are more microseconds than 64 bits can count"),
        )
    })?;
    integer(micros, values)
}

/// Appends a `google.type.Date`; `false` if it is no date at all, all of it being zero.
pub(super) fn date(
    [year, month, day]: [i64; 3],
    range: &TimestampRange,
    values: &mut Values,
) -> Decoded<bool> {
    const DAYS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let Values::Date(dates) = values else {
        return Err(mismatch());
    };
    if [year, month, day] == [0, 0, 0] {
        return Ok(false);
    }
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = usize::try_from(month - 1)
        .ok()
        .and_then(|month| DAYS.get(month).copied());
    let last = days.map_or(0, |days| if month == 2 && leap { 29 } else { days });
    if !(1..=9999).contains(&year) || !(1..=last).contains(&day) {
        let fault = Fault::new(
            "value.date_out_of_range",
            format!("year {year}, month {month}, day {day} is not a date"),
        );
        return Err(
            fault.with_hint("a date column cannot hold a part of a date: exclude the field, or complete it")
        );
    }
    // Howard Hinnant, “chrono-Compatible Low-Level Date Algorithms”, `days_from_civil`.
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days =
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
    dates.push(range.date(i32::try_from(days).unwrap_or(i32::MAX))?);
    Ok(true)
}

/// Appends a `google.type.TimeOfDay`, nanoseconds floored.
pub(super) fn time_of_day([hours, minutes, seconds, nanos]: [i64; 4], values: &mut Values) -> Decoded<()> {
    let fits = (0..24).contains(&hours)
        && (0..60).contains(&minutes)
        && (0..60).contains(&seconds)
        && (0..1_000_000_000).contains(&nanos);
    if !fits {
        return Err(Fault::new(
            "value.time_out_of_range",
            format!("{hours}:{minutes}:{seconds} and {nanos} ns is not a time of day"),
        ));
    }
    let micros = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + nanos / 1_000;
    debug_assert!(micros < MICROS_PER_DAY);
    match values {
        Values::Time(times) => times.push(micros),
        Values::Text(text) => {
            text::time(micros, &mut text.data);
            text.end()?;
        }
        _ => return Err(mismatch()),
    }
    Ok(())
}

/// Appends a `google.type.Decimal`: unset means zero.
pub(super) fn text_decimal(given: &[u8], values: &mut Values) -> Decoded<()> {
    let given = utf8(given)?;
    match values {
        Values::Text(text) | Values::Binary(text) => text.push(given.as_bytes())?,
        Values::Decimal {
            values,
            precision,
            scale,
        } => {
            let unsigned = given.strip_prefix('+').unwrap_or(given);
            // The format allows a number to begin with its point.
            let (sign, rest) = unsigned.split_at(usize::from(unsigned.starts_with('-')));
            let zero = if rest.is_empty() || rest.starts_with('.') {
                "0"
            } else {
                ""
            };
            values.push(decimal::parse(
                &format!("{sign}{zero}{rest}"),
                *precision,
                *scale,
            )?);
        }
        _ => return Err(mismatch()),
    }
    Ok(())
}

/// Appends a `confluent.type.Decimal`: a big-endian two's complement number, and its scale.
pub(super) fn scaled_decimal(bytes: &[u8], scale: i64, values: &mut Values) -> Decoded<()> {
    let overflow = || {
        Fault::new(
            "protobuf.decimal_overflow",
            "the decimal has more than 38 digits, or a scale beyond 38",
        )
    };
    let mut unscaled = decimal::twos_complement(bytes).ok_or_else(overflow)?;
    let scale = match u32::try_from(scale) {
        Ok(scale @ 0..=38) => scale,
        Ok(_) => return Err(overflow()),
        // Hundreds and thousands: a scale below zero.
        Err(_) => {
            let zeros = u32::try_from(-scale).map_err(|_| overflow())?;
            let factor = 10i128.checked_pow(zeros).ok_or_else(overflow)?;
            unscaled = unscaled.checked_mul(factor).ok_or_else(overflow)?;
            0
        }
    };
    if !decimal::fits(unscaled, 38) {
        return Err(overflow());
    }
    match values {
        Values::Text(out) => {
            text::decimal(unscaled, scale, &mut out.data);
            out.end()?;
        }
        Values::Decimal {
            values,
            precision,
            scale: to,
        } => values.push(
            if u32::try_from(*to) == Ok(scale) && decimal::fits(unscaled, *precision) {
                unscaled // what the field's annotation promises, and nearly always is true
            } else {
                decimal::rescale(unscaled, scale, *precision, *to)?
            },
        ),
        _ => return Err(mismatch()),
    }
    Ok(())
}

/// Whether a repeated scalar may come packed, as one string of bytes.
#[inline]
pub(super) fn is_packable(scalar: Scalar) -> bool {
    scalar.wire() != Wire::Bytes
}
