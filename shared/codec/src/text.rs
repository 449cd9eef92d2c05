//! Values as text, as Iceberg's JSON writes them (Iceberg spec, “JSON single-value serialization”): what hashed
//! columns hash, and what the text of a recursive subtree holds.

use std::io::Write;

use crate::instant::MICROS_PER_DAY;

/// `2017-11-16`.
pub(crate) fn date(days: i32, out: &mut Vec<u8>) {
    let (year, month, day) = civil(i64::from(days));
    // Writing to a Vec never fails, here and below.
    let _ = write!(out, "{year:04}-{month:02}-{day:02}");
}

/// `22:31:08.123456`.
pub(crate) fn time(micros: i64, out: &mut Vec<u8>) {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let _ = write!(out, "{hour:02}:{minute:02}:{second:02}.{fraction:06}");
}

/// `2017-11-16T22:31:08.123456`, with `+00:00` behind it if it is an instant.
pub(crate) fn timestamp(micros: i64, utc: bool, out: &mut Vec<u8>) {
    let days = i32::try_from(micros.div_euclid(MICROS_PER_DAY)).unwrap_or(i32::MAX);
    date(days, out);
    out.push(b'T');
    time(micros.rem_euclid(MICROS_PER_DAY), out);
    if utc {
        out.extend_from_slice(b"+00:00");
    }
}

/// `-0.05` for −5 of scale 2.
pub(crate) fn decimal(unscaled: i128, scale: u32, out: &mut Vec<u8>) {
    if unscaled < 0 {
        out.push(b'-');
    }
    let digits = unscaled.unsigned_abs().to_string();
    let scale = scale as usize;
    if scale == 0 {
        out.extend_from_slice(digits.as_bytes());
        return;
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    let _ = write!(out, "{whole}.{fraction}");
}

/// Year, month and day of the proleptic Gregorian calendar, from days since 1970-01-01 (Howard Hinnant,
/// “chrono-Compatible Low-Level Date Algorithms”, `civil_from_days`).
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 {
        month_index + 3
    } else {
        month_index - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_icebergs_text() {
        let shown = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            String::from_utf8(out).unwrap()
        };
        // Dates by another implementation: `date -u -d @SECONDS`.
        for (days, expected) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (17_486, "2017-11-16"),
            (11_016, "2000-02-29"),
            (-25_509, "1900-02-28"),
            (-25_508, "1900-03-01"),
            (-719_162, "0001-01-01"),
            (2_932_896, "9999-12-31"),
        ] {
            assert_eq!(shown(&|out| date(days, out)), expected);
        }
        // The examples of the specification.
        let micros = 1_510_871_468_123_456;
        assert_eq!(
            shown(&|out| timestamp(micros, false, out)),
            "2017-11-16T22:31:08.123456"
        );
        assert_eq!(
            shown(&|out| timestamp(micros, true, out)),
            "2017-11-16T22:31:08.123456+00:00"
        );
        assert_eq!(
            shown(&|out| timestamp(-1, true, out)),
            "1969-12-31T23:59:59.999999+00:00"
        );
        assert_eq!(shown(&|out| time(81_068_123_456, out)), "22:31:08.123456");
        for (unscaled, scale, expected) in [
            (1_420, 2, "14.20"),
            (-5, 2, "-0.05"),
            (0, 2, "0.00"),
            (7, 0, "7"),
            (-99, 2, "-0.99"),
            (i128::MIN, 0, "-170141183460469231731687303715884105728"),
        ] {
            assert_eq!(shown(&|out| decimal(unscaled, scale, out)), expected);
        }
    }
}
