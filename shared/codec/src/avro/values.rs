use crate::builder::Bytes;
use crate::decimal::twos_complement;
use crate::fault::{Decoded, Fault};
use crate::instant::MICROS_PER_DAY;

/// A big-endian two's complement number below `limit` (ten to the precision).
#[inline]
pub(super) fn decimal(bytes: &[u8], limit: i128) -> Decoded<i128> {
    if let Some(value) = twos_complement(bytes)
        && value.unsigned_abs() < limit.unsigned_abs()
    {
        return Ok(value);
    }
    Err(Fault::new(
        "avro.decimal_overflow",
        format!(
            "the decimal has more digits than its precision, {}",
            limit.ilog10()
        ),
    ))
}

/// Microseconds since midnight, if they are less than a day.
pub(super) fn time_of_day(micros: i64) -> Decoded<i64> {
    if (0..MICROS_PER_DAY).contains(&micros) {
        return Ok(micros);
    }
    Err(Fault::new(
        "value.time_out_of_range",
        format!("{micros} µs is not a time of day"),
    ))
}

/// The canonical form: lowercase, with hyphens. Takes braces, `urn:uuid:` and 32 digits as well.
pub(super) fn uuid(given: &str, text: &mut Bytes) -> Decoded<()> {
    let bare = given
        .trim_start_matches("urn:uuid:")
        .trim_start_matches('{')
        .trim_end_matches('}');
    let mut digits = [0u8; 32];
    let mut count = 0;
    for byte in bare.bytes().filter(|byte| *byte != b'-') {
        if !byte.is_ascii_hexdigit() || count == 32 {
            return Err(not_a_uuid());
        }
        digits[count] = byte.to_ascii_lowercase();
        count += 1;
    }
    if count != 32 {
        return Err(not_a_uuid());
    }
    hyphenated(&digits, text)
}

pub(super) fn uuid_of_bytes(bytes: [u8; 16], text: &mut Bytes) -> Decoded<()> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0u8; 32];
    for (index, byte) in bytes.iter().enumerate() {
        digits[2 * index] = HEX[usize::from(byte >> 4)];
        digits[2 * index + 1] = HEX[usize::from(byte & 15)];
    }
    hyphenated(&digits, text)
}

fn hyphenated(digits: &[u8; 32], text: &mut Bytes) -> Decoded<()> {
    for (index, digit) in digits.iter().enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            text.data.push(b'-');
        }
        text.data.push(*digit);
    }
    text.end()
}

#[cold]
fn not_a_uuid() -> Box<Fault> {
    Fault::new("avro.invalid", "the string is not a UUID")
}
