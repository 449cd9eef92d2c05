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
    let scale = u32::try_from(scale).unwrap_or(0);
    let not_a_number = || Fault::new("value.not_a_number", "the value is not a number");
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        // An exponent that no i32 holds is as good as endless.
        Some((mantissa, exponent)) => {
            let digits = exponent.trim_start_matches(['+', '-']);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(not_a_number());
            }
            let endless = if exponent.starts_with('-') {
                i32::MIN
            } else {
                i32::MAX
            };
            (mantissa, exponent.parse().unwrap_or(endless))
        }
        None => (unsigned, 0i32),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return Err(not_a_number());
    }
    let digits = [whole, fraction].concat();
    let significant = digits.trim_start_matches('0');
    if significant.is_empty() {
        return Ok(0);
    }
    // The digits, times ten to the power of `shift`, are the unscaled value.
    let fraction_len = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let shift = i64::from(exponent) + i64::from(scale) - fraction_len;
    let padded = if shift >= 0 {
        let zeros = usize::try_from(shift).unwrap_or(usize::MAX);
        if significant.len().saturating_add(zeros) > MAX_DIGITS {
            return Err(too_wide(precision, scale));
        }
        format!("{significant}{}", "0".repeat(zeros))
    } else {
        let dropped = usize::try_from(shift.unsigned_abs()).unwrap_or(usize::MAX);
        let kept = significant
            .len()
            .checked_sub(dropped)
            .ok_or_else(|| inexact(scale))?;
        let (kept, dropped) = significant.split_at(kept);
        if !dropped.bytes().all(|byte| byte == b'0') || kept.is_empty() {
            return Err(inexact(scale));
        }
        kept.to_owned()
    };
    let unsigned: i128 = padded.parse().map_err(|_| too_wide(precision, scale))?;
    within(if negative { -unsigned } else { unsigned }, precision, scale)
}

fn within(unscaled: i128, precision: u8, scale: u32) -> Decoded<i128> {
    let limit = 10u128.checked_pow(u32::from(precision)).unwrap_or(u128::MAX);
    if unscaled.unsigned_abs() < limit {
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, precision: u8, scale: i8, expected: Result<i128, &str>) {
        let found = parse(text, precision, scale).map_err(|fault| fault.into_error());
        let found = found.as_ref().map_err(|error| error.code().unwrap_or_default());
        assert_eq!(found.copied(), expected, "{text}");
    }

    #[test]
    fn numbers_are_taken_exactly_or_not_at_all() {
        for (text, expected) in [
            ("12.5", Ok(1_250)),
            ("-0.05", Ok(-5)),
            ("0", Ok(0)),
            ("-0.000", Ok(0)),
            ("0e999999999999", Ok(0)),
            ("007.10", Ok(710)),
            ("1.25e1", Ok(1_250)),
            ("125E-2", Ok(125)),
            ("1250e-1", Ok(12_500)),
            ("9999999.99", Ok(999_999_999)),
            ("10000000", Err("value.decimal_overflow")),
            ("1e7", Err("value.decimal_overflow")),
            ("1e999999999999", Err("value.decimal_overflow")),
            ("0.005", Err("value.decimal_inexact")),
            ("1e-999999999999", Err("value.decimal_inexact")),
            ("123e-5", Err("value.decimal_inexact")),
            ("", Err("value.not_a_number")),
            ("-", Err("value.not_a_number")),
            (".5", Err("value.not_a_number")),
            ("1e", Err("value.not_a_number")),
            ("1e5e5", Err("value.not_a_number")),
            ("NaN", Err("value.not_a_number")),
            ("1 ", Err("value.not_a_number")),
        ] {
            check(text, 9, 2, expected);
        }
        check("0.00000000000000000000000000000000000001", 38, 38, Ok(1));
        check(&"9".repeat(38), 38, 0, Ok(10i128.pow(38) - 1));
        check(&"9".repeat(39), 38, 0, Err("value.decimal_overflow"));
    }

    #[test]
    fn scales_change_exactly_or_not_at_all() {
        let code = |fault: Box<Fault>| fault.into_error().code().unwrap_or_default().to_owned();
        for (unscaled, from, precision, to, expected) in [
            (1_250, 2, 9, 4, Ok(125_000)),
            (1_250, 2, 9, 1, Ok(125)),
            (1_251, 2, 9, 1, Err("value.decimal_inexact")),
            (0, 38, 9, 0, Ok(0)),
            (99_999, 0, 5, 1, Err("value.decimal_overflow")),
            (i128::MAX, 0, 38, 38, Err("value.decimal_overflow")),
            (-7, 0, 3, 2, Ok(-700)),
        ] {
            assert_eq!(
                rescale(unscaled, from, precision, to).map_err(code),
                expected.map_err(str::to_owned),
                "{unscaled}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[-+0-9.eE]{0,50}|.{0,20}", precision in 1u8..=38, scale in 0i8..=38) {
            let _ = parse(&text, precision, scale);
        }

        #[test]
        fn what_a_decimal_prints_is_what_it_reads(unscaled in -10i128.pow(37)..10i128.pow(37), scale in 0u8..=38) {
            let mut text = Vec::new();
            crate::text::decimal(unscaled, u32::from(scale), &mut text);
            let text = String::from_utf8(text).unwrap();
            let scale = i8::try_from(scale).unwrap();
            prop_assert_eq!(parse(&text, 38, scale).map_err(|fault| fault.into_error().to_string()), Ok(unscaled));
        }
    }
}
