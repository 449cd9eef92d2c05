/// A moment as RFC 3339 writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    /// Seconds since 1970-01-01T00:00Z.
    pub(super) seconds: i64,
    pub(super) nanos: u32,
}

const DAY: i64 = 86_400;

/// A date and time (RFC 3339, section 5.6, `date-time`). An offset may be missing: it is UTC then. Digits beyond
/// nanoseconds are cut off; a leap second is the first second of the next minute.
pub(super) fn date_time(text: &str) -> Option<Moment> {
    let (day, time) = text.split_at_checked(10)?;
    let days = i64::from(date(day)?);
    let time = time.strip_prefix(['T', 't', ' '])?;
    let (second_of_day, nanos, offset) = time_with_offset(time)?;
    Some(Moment {
        seconds: days * DAY + second_of_day - offset,
        nanos,
    })
}

/// A time of day (RFC 3339, section 5.6, `full-time`), in UTC if it has an offset: microseconds since midnight.
pub(super) fn time_of_day(text: &str) -> Option<i64> {
    let (second, nanos, offset) = time_with_offset(text)?;
    Some((second - offset).rem_euclid(DAY) * 1_000_000 + i64::from(nanos / 1_000))
}

/// A date (RFC 3339, section 5.6, `full-date`): days since 1970-01-01.
pub(super) fn date(text: &str) -> Option<i32> {
    let bytes: [u8; 10] = text.as_bytes().try_into().ok()?;
    if bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let (year, month, day) = (number(&bytes[..4])?, number(&bytes[5..7])?, number(&bytes[8..])?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    };
    (1..=length)
        .contains(&day)
        .then(|| days_from_civil(year, month, day))
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar (Howard Hinnant, “chrono-Compatible Low-Level Date
/// Algorithms”).
fn days_from_civil(year: i32, month: i32, day: i32) -> i32 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The second of the day where the clock is, nanoseconds, and the offset in seconds.
fn time_with_offset(text: &str) -> Option<(i64, u32, i64)> {
    let bytes = text.as_bytes();
    let (clock, rest) = bytes.split_at_checked(8)?;
    if clock[2] != b':' || clock[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (number(&clock[..2])?, number(&clock[3..5])?, number(&clock[6..])?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (nanos, rest) = match rest.split_first() {
        Some((b'.', fraction)) => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if digits == 0 {
                return None;
            }
            let (fraction, rest) = fraction.split_at(digits);
            let nanos = (0..9).fold(0, |nanos, place| {
                nanos * 10 + u32::from(fraction.get(place).map_or(0, |digit| digit - b'0'))
            });
            (nanos, rest)
        }
        _ => (0, rest),
    };
    let offset = match rest {
        [] | [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), hours @ .., b':', tens, ones] if hours.len() == 2 => {
            let (hours, minutes) = (number(hours)?, number(&[*tens, *ones])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let offset = i64::from(hours) * 3_600 + i64::from(minutes) * 60;
            if *sign == b'-' { -offset } else { offset }
        }
        _ => return None,
    };
    let second_of_day = i64::from(hour) * 3_600 + i64::from(minute) * 60 + i64::from(second);
    // A leap second is the last one of a day of UTC.
    if second == 60 && (second_of_day - offset).rem_euclid(DAY) != 0 {
        return None;
    }
    Some((second_of_day, nanos, offset))
}

fn number(digits: &[u8]) -> Option<i32> {
    digits.iter().try_fold(0, |value, digit| {
        digit
            .is_ascii_digit()
            .then(|| value * 10 + i32::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn micros(text: &str) -> Option<i64> {
        date_time(text).map(|moment| moment.seconds * 1_000_000 + i64::from(moment.nanos) / 1_000)
    }

    #[test]
    fn dates_and_times_are_those_of_rfc_3339() {
        // RFC 3339, section 5.8, and JSON-Schema-Test-Suite, optional/format/date-time.json; seconds by `date -u +%s`.
        let cases = [
            ("1985-04-12T23:20:50.52Z", Some(482_196_050_520_000)),
            ("1996-12-19T16:39:57-08:00", Some(851_042_397_000_000)),
            ("1990-12-31T23:59:60Z", Some(662_688_000_000_000)),
            ("1990-12-31T15:59:60-08:00", Some(662_688_000_000_000)),
            ("1937-01-01T12:00:27.87+00:20", Some(-1_041_337_172_130_000)),
            ("1963-06-19T08:30:06.283185Z", Some(-206_292_593_716_815)),
            ("1990-12-31T15:59:50.123-08:00", Some(662_687_990_123_000)),
            ("1963-06-19t08:30:06.283185z", Some(-206_292_593_716_815)),
            ("1963-06-19 08:30:06Z", Some(-206_292_594_000_000)),
            ("1998-12-31T23:59:60.999Z", Some(915_148_800_999_000)),
            ("1970-01-01T00:00:00", Some(0)),
            ("1969-12-31T23:59:59.9999999", Some(-1)),
            ("1970-01-01T00:00:00.1234567891234567890123456789", Some(123_456)),
            ("0001-01-01T00:00:00Z", Some(-62_135_596_800_000_000)),
            ("9999-12-31T23:59:59.999999Z", Some(253_402_300_799_999_999)),
            ("0000-01-01T00:00:00Z", Some(-62_167_219_200_000_000)),
            ("2024-02-29T00:00:00Z", Some(1_709_164_800_000_000)),
            ("1998-12-31T23:59:61Z", None),
            ("1998-12-31T23:58:60Z", None),
            ("1998-12-31T22:59:60Z", None),
            ("1990-02-31T15:59:59.123-08:00", None),
            ("1990-12-31T15:59:59-24:00", None),
            ("1963-06-19T08:30:06.28123+01:00Z", None),
            ("06/19/1963 08:30:06 PST", None),
            ("2013-350T01:01:01", None),
            ("1963-6-19T08:30:06.283185Z", None),
            ("1963-06-1T00:00:00Z", None),
            ("1963-06-1৪T00:00:00Z", None),
            ("1963-06-11T0৪:00:00Z", None),
            ("2023-02-29T00:00:00Z", None),
            ("1900-02-29T00:00:00Z", None),
            ("2020-13-01T00:00:00Z", None),
            ("2020-00-01T00:00:00Z", None),
            ("2020-01-00T00:00:00Z", None),
            ("2020-01-01T24:00:00Z", None),
            ("2020-01-01T00:60:00Z", None),
            ("2020-01-01T00:00:00.Z", None),
            ("2020-01-01T00:00:00+0100", None),
            ("2020-01-01T00:00:00+01:60", None),
            ("2020-01-01T00:00Z", None),
            ("2020-01-01", None),
            ("-020-01-01T00:00:00Z", None),
            ("+11963-06-19T08:30:06Z", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(micros(text), expected, "{text}");
        }
    }

    #[test]
    fn dates_and_times_alone() {
        // JSON-Schema-Test-Suite, optional/format/date.json and time.json.
        for (text, expected) in [
            ("1963-06-19", Some(-2_388)),
            ("2020-02-29", Some(18_321)),
            ("2021-02-29", None),
            ("0001-01-01", Some(-719_162)),
            ("9999-12-31", Some(2_932_896)),
            ("2020-11-31", None),
            ("06/19/1963", None),
            ("2013-350", None),
            ("1998-1-20", None),
            ("1963-06-1৪", None),
            ("20230328", None),
            ("2023-W13-2", None),
            ("2022-W52", None),
            ("1998-01-20Z", None),
        ] {
            assert_eq!(date(text), expected, "{text}");
        }
        for (text, expected) in [
            ("08:30:06Z", Some(30_606_000_000)),
            ("08:30:06.283185", Some(30_606_283_185)),
            ("23:59:60Z", Some(0)),
            ("01:29:60+01:30", Some(0)),
            ("00:30:00+01:00", Some(84_600_000_000)),
            ("22:59:60Z", None),
            ("24:00:00Z", None),
            ("8:3:6Z", None),
            ("12:00:00.52", Some(43_200_520_000)),
            ("12:00:00 PST", None),
        ] {
            assert_eq!(time_of_day(text), expected, "{text}");
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut expected = date("0000-01-01").unwrap();
        for year in 0..=9_999 {
            for month in 1..=12 {
                for day in 1..=31 {
                    if let Some(days) = date(&format!("{year:04}-{month:02}-{day:02}")) {
                        assert_eq!(days, expected);
                        expected += 1;
                    }
                }
            }
        }
        assert_eq!(expected, 2_932_897);
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_no_panic(text in r"\PC{0,30}", near in r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{0,12})?([zZ]|[+-][0-9:]{0,5})?") {
            for text in [&text, &near] {
                let _ = (date_time(text), time_of_day(text), date(text));
            }
        }
    }
}
