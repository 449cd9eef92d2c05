//! Numbers into decimals of a chosen precision and scale: exactly, or not at all.

use crate::fault::{Decoded, Fault};

/// The most digits of a decimal, here and in every reader.
const MAX_DIGITS: usize = 38;

/// The unscaled value with `to` digits behind the point, of one with `from`.
pub(crate) fn rescale(unscaled: i128, from: u32, precision: u8, to: i8) -> Decoded<i128> {
    let to = u32::try_from(to).unwrap_or(0);
    let rescaled = if to >= from {
        10i128
            .checked_pow(to - from)
            .and_then(|factor| unscaled.checked_mul(factor))
            .ok_or_else(|| too_wide(precision, to))?
    } else {
        match 10i128.checked_pow(from - to) {
            Some(divisor) if unscaled % divisor == 0 => unscaled / divisor,
            _ if unscaled == 0 => 0,
            _ => return Err(inexact(to)),
        }
    };
    within(rescaled, precision, to)
}

/// The unscaled value of a number such as `-12.50` or `1.25e1`: JSON's numbers, and what Rust prints of floats.
pub(crate) fn parse(text: &str, precision: u8, scale: i8) -> Decoded<i128> {
    let not_a_number = || Fault::new("value.not_a_number", "the value is not a number");
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = !whole.is_empty() && !exponent.is_empty();
    if !is_number || ![whole, fraction, exponent].into_iter().all(is_digits) {
        return Err(not_a_number());
    }
    of_number(text, precision, scale)
}

/// The unscaled value of a number that is written as JSON's are.
#[inline]
pub(crate) fn of_number(text: &str, precision: u8, scale: i8) -> Decoded<i128> {
    let scale = u32::try_from(scale).unwrap_or(0);
    match scaled(text, scale) {
        Ok(unscaled) => within(unscaled, precision, scale),
        Err(Misfit::Inexact) => Err(inexact(scale)),
        Err(Misfit::TooLarge) => Err(too_wide(precision, scale)),
    }
}

/// What keeps a number out of a decimal or an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// It has more digits after the point than the scale.
    Inexact,
    /// It has more digits than there is room for.
    TooLarge,
}

/// A JSON number taken apart: significant digits without zeros around them, times ten to the `exponent`.
struct Parts<'t> {
    negative: bool,
    whole: &'t str,
    fraction: &'t str,
    leading: usize,
    significant: usize,
    exponent: i128,
}

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(text) => (true, text),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = || whole.bytes().chain(fraction.bytes());
        let count = whole.len() + fraction.len();
        let leading = digits().take_while(|digit| *digit == b'0').count();
        let trailing = match count - leading {
            0 => 0,
            _ => digits().rev().take_while(|digit| *digit == b'0').count(),
        };
        Self {
            negative,
            whole,
            fraction,
            leading,
            significant: count - leading - trailing,
            exponent: i128::from(saturating(exponent)) + wide(trailing) - wide(fraction.len()),
        }
    }
}

/// How many digits a number has before and after the point, zeros around it left out.
pub(crate) fn digits(text: &str) -> (u32, u32) {
    let parts = Parts::of(text);
    if parts.significant == 0 {
        return (0, 0);
    }
    let bounded = |count: i128| u32::try_from(count.max(0)).unwrap_or(u32::MAX);
    (
        bounded(wide(parts.significant) + parts.exponent),
        bounded(-parts.exponent),
    )
}

/// A JSON number times ten to the `scale`, exactly: never through a double, and at no cost for a large exponent.
pub(crate) fn scaled(text: &str, scale: u32) -> Result<i128, Misfit> {
    let parts = Parts::of(text);
    if parts.significant == 0 {
        return Ok(0);
    }
    let shift = parts.exponent + i128::from(scale);
    if shift < 0 {
        return Err(Misfit::Inexact);
    }
    // Ten to the 38th is the first power beyond every decimal, and below the end of an i128.
    if wide(parts.significant) + shift > 38 {
        return Err(Misfit::TooLarge);
    }
    let shift = u32::try_from(shift).map_err(|_| Misfit::TooLarge)?;
    let digits = parts.whole.bytes().chain(parts.fraction.bytes());
    let value = digits
        .skip(parts.leading)
        .take(parts.significant)
        .fold(0i128, |value, digit| value * 10 + i128::from(digit - b'0'));
    let value = value * 10i128.pow(shift);
    Ok(if parts.negative { -value } else { value })
}

fn wide(count: usize) -> i128 {
    i128::try_from(count).unwrap_or(i128::MAX / 4)
}

fn saturating(exponent: &str) -> i64 {
    let (negative, digits) = match exponent.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, exponent.trim_start_matches('+')),
    };
    let value = digits.bytes().fold(0i64, |value, digit| {
        value.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
    });
    if negative { -value } else { value }
}

/// Ten to the power of each precision.
const LIMITS: [u128; MAX_DIGITS + 1] = {
    let mut limits = [1; MAX_DIGITS + 1];
    let mut precision = 1;
    while precision < limits.len() {
        limits[precision] = limits[precision - 1] * 10;
        precision += 1;
    }
    limits
};

/// Whether a decimal of this precision holds the unscaled value.
#[inline]
pub(crate) fn fits(unscaled: i128, precision: u8) -> bool {
    unscaled.unsigned_abs() < LIMITS[usize::from(precision).min(MAX_DIGITS)]
}

/// A big-endian two's complement number, if it is within 128 bits.
pub(crate) fn twos_complement(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let fill = if negative { 0xff } else { 0 };
    let (sign, digits) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut wide = [fill; 16];
    wide[16 - digits.len()..].copy_from_slice(digits);
    let value = i128::from_be_bytes(wide);
    (sign.iter().all(|byte| *byte == fill) && (value < 0) == negative).then_some(value)
}

fn within(unscaled: i128, precision: u8, scale: u32) -> Decoded<i128> {
    if fits(unscaled, precision) {
        return Ok(unscaled);
    }
    Err(too_wide(precision, scale))
}

#[cold]
fn too_wide(precision: u8, scale: u32) -> Box<Fault> {
    Fault::new(
        "value.decimal_overflow",
        format!("the number has more digits than decimal({precision}, {scale}) can hold"),
    )
}

#[cold]
fn inexact(scale: u32) -> Box<Fault> {
    Fault::new(
        "value.decimal_inexact",
        format!("the number has more than {scale} digits behind the point"),
    )
    .with_hint("nothing is rounded: give the field a decimal type with a larger scale")
}

#[cfg(test)]
mod tests;
