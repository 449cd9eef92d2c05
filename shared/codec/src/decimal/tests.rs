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
