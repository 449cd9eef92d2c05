use crate::fault::{Decoded, Fault};

/// What keeps a number out of a decimal or an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Misfit {
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
pub(super) fn digits(text: &str) -> (u32, u32) {
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
pub(super) fn scaled(text: &str, scale: u32) -> Result<i128, Misfit> {
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

/// Whether a decimal of this precision holds the unscaled value.
#[inline]
pub(super) fn fits(unscaled: i128, precision: u8) -> bool {
    unscaled.unsigned_abs() < 10u128.pow(u32::from(precision.min(38)))
}

/// A big-endian two's complement number, if it is within 128 bits.
pub(super) fn twos_complement(bytes: &[u8]) -> Option<i128> {
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let fill = if negative { 0xff } else { 0 };
    let (sign, digits) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut wide = [fill; 16];
    wide[16 - digits.len()..].copy_from_slice(digits);
    let value = i128::from_be_bytes(wide);
    (sign.iter().all(|byte| *byte == fill) && (value < 0) == negative).then_some(value)
}

#[cold]
pub(super) fn too_large(number: &str, room: impl std::fmt::Display) -> Box<Fault> {
    Fault::new(
        "json.number_out_of_range",
        format!("{} is beyond {room}", shortened(number)),
    )
}

/// A number for a message.
pub(super) fn shortened(number: &str) -> String {
    const SHOWN: usize = 40;
    match number.get(..SHOWN) {
        Some(start) if number.len() > SHOWN => format!("{start}…"),
        _ => number.to_owned(),
    }
}

/// The nearest double.
pub(super) fn double(text: &str) -> Decoded<f64> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(too_large(text, "a double")),
    }
}

/// The nearest float.
pub(super) fn float(text: &str) -> Decoded<f32> {
    match text.parse::<f32>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(too_large(text, "a float")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_exact_or_refused() {
        const MAX: i128 = 99_999_999_999_999_999_999_999_999_999_999_999_999;
        let cases = [
            ("0", 0, Ok(0)),
            ("-0", 5, Ok(0)),
            ("0.00e99999999999999999999", 2, Ok(0)),
            ("1.0", 0, Ok(1)),
            ("1.5", 0, Err(Misfit::Inexact)),
            ("1.5", 1, Ok(15)),
            ("-1.50", 1, Ok(-15)),
            ("1e3", 0, Ok(1_000)),
            ("1E+3", 2, Ok(100_000)),
            ("1200e-2", 0, Ok(12)),
            ("1234e-2", 0, Err(Misfit::Inexact)),
            ("12.345e1", 2, Ok(12_345)),
            ("0.0000000000000000000000000000000000001", 37, Ok(1)),
            ("0.00000000000000000000000000000000000001", 38, Ok(1)),
            ("1e-39", 38, Err(Misfit::Inexact)),
            ("99999999999999999999999999999999999999", 0, Ok(MAX)),
            ("-99999999999999999999999999999999999999", 0, Ok(-MAX)),
            ("0.99999999999999999999999999999999999999", 38, Ok(MAX)),
            (
                "100000000000000000000000000000000000000",
                0,
                Err(Misfit::TooLarge),
            ),
            ("1e38", 0, Err(Misfit::TooLarge)),
            ("1e37", 0, Ok(10i128.pow(37))),
            ("1e999999999999999999999", 0, Err(Misfit::TooLarge)),
            ("1e-999999999999999999999", 38, Err(Misfit::Inexact)),
            ("9007199254740993.0", 0, Ok(9_007_199_254_740_993)),
            ("9223372036854775808", 0, Ok(9_223_372_036_854_775_808)),
        ];
        for (text, scale, expected) in cases {
            assert_eq!(scaled(text, scale), expected, "{text} with scale {scale}");
        }
        let long = format!(
            "{}1{}",
            "0.".to_owned() + &"0".repeat(1_000_000),
            "0".repeat(1_000_000)
        );
        assert_eq!(scaled(&long, 38), Err(Misfit::Inexact));
        assert_eq!(scaled(&format!("{long}e1000001"), 0), Ok(1));
    }

    #[test]
    fn digits_are_counted_before_and_after_the_point() {
        for (text, expected) in [
            ("0.0", (0, 0)),
            ("12.50", (2, 1)),
            ("-0.005", (0, 3)),
            ("1e3", (4, 0)),
            ("1.25e1", (2, 1)),
            ("1200", (4, 0)),
            ("123e-5", (0, 5)),
            ("1e99999999999999999999", (u32::MAX, 0)),
            ("1e-99999999999999999999", (0, u32::MAX)),
        ] {
            assert_eq!(digits(text), expected, "{text}");
        }
    }

    #[test]
    fn bytes_are_twos_complement() {
        for (bytes, expected) in [
            (&[][..], Some(0)),
            (&[0x30, 0x39], Some(12_345)),
            (&[0xff], Some(-1)),
            (&[0, 0xff], Some(255)),
            (&[0xff; 20], Some(-1)),
            (
                &[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                Some(i128::MIN),
            ),
            (&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], None),
            (&[0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], None),
        ] {
            assert_eq!(twos_complement(bytes), expected, "{bytes:x?}");
        }
    }

    /// Slowly, digit by digit: the number's decimal expansion as text, moved by the exponent, then by the scale.
    fn reference(whole: &str, fraction: &str, exponent: i32, scale: u32) -> Result<i128, Misfit> {
        let mut digits: Vec<char> = whole.chars().chain(fraction.chars()).collect();
        let mut point = i64::try_from(whole.len()).unwrap() + i64::from(exponent) + i64::from(scale);
        while point < 0 {
            digits.insert(0, '0');
            point += 1;
        }
        while i64::try_from(digits.len()).unwrap() < point {
            digits.push('0');
        }
        let (before, after) = digits.split_at(usize::try_from(point).unwrap());
        if after.iter().any(|digit| *digit != '0') {
            return Err(Misfit::Inexact);
        }
        let before: String = before.iter().collect();
        let before = before.trim_start_matches('0');
        if before.len() > 38 {
            return Err(Misfit::TooLarge);
        }
        Ok(if before.is_empty() {
            0
        } else {
            before.parse().unwrap()
        })
    }

    proptest! {
        #[test]
        fn scaled_numbers_agree_with_a_slow_reference(
            negative: bool, whole in "0|[1-9][0-9]{0,40}", fraction in "[0-9]{0,12}(000)?", exponent in -45i32..45, scale in 0u32..=38
        ) {
            let point = if fraction.is_empty() { "" } else { "." };
            let sign = if negative { "-" } else { "" };
            let expected = reference(&whole, &fraction, exponent, scale).map(|value| if negative { -value } else { value });
            for exponent in [format!("e{exponent}"), format!("E{exponent:+03}")] {
                prop_assert_eq!(scaled(&format!("{sign}{whole}{point}{fraction}{exponent}"), scale), expected);
            }
        }
    }
}
