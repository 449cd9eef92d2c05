//! Numbers as people read them.

use chrono::{DateTime, SecondsFormat};
use frazil_core::{OffsetRange, TimestampMs};

/// `1,234,567`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 row`, `2 rows`.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// `412 B`, `4.1 kB`, `1.2 GB`: decimal, as disks and S3's bill count.
pub(crate) fn bytes(number: u64) -> String {
    let mut size = number as f64;
    for unit in ["B", "kB", "MB", "GB", "TB"] {
        if size < 999.95 {
            return if unit == "B" {
                format!("{number} B")
            } else {
                format!("{size:.1} {unit}")
            };
        }
        size /= 1_000.0;
    }
    format!("{size:.1} PB")
}

/// `0 s`, `250 ms`, `42 s`, `3 m 12 s`, `5 h 0 m`, `2 d 3 h`.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match ms {
        0 => "0 s".to_owned(),
        1..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{seconds} s"),
        60_000..3_600_000 => format!("{minutes} m {} s", seconds % 60),
        3_600_000..86_400_000 => format!("{hours} h {} m", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

/// `2026-11-30T18:34:42.123Z`; a time that no calendar has as a number.
pub(crate) fn time(at: TimestampMs) -> String {
    match DateTime::from_timestamp_millis(at.0) {
        Some(time) => time.to_rfc3339_opts(SecondsFormat::AutoSi, true),
        None => format!("{} ms", at.0),
    }
}

/// `[0, 9] [12, 12]`, at most `limit` of them; `–` for none.
pub(crate) fn ranges(ranges: &[OffsetRange], limit: usize) -> String {
    if ranges.is_empty() {
        return "–".to_owned();
    }
    let mut text: Vec<String> = ranges.iter().take(limit).map(ToString::to_string).collect();
    if ranges.len() > limit {
        text.push(format!("… {} more", ranges.len() - limit));
    }
    text.join(" ")
}

#[cfg(test)]
mod tests {
    use frazil_core::Offset;

    use super::*;

    #[test]
    fn numbers_read_well() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(number), text);
        }
        for (number, text) in [(0, "0 rows"), (1, "1 row"), (1_200, "1,200 rows")] {
            assert_eq!(counted(number, "row"), text);
        }
        for (number, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (1_234_567_890, "1.2 GB"),
            (u64::MAX, "18446.7 PB"),
        ] {
            assert_eq!(bytes(number), text);
        }
        for (ms, text) in [
            (0, "0 s"),
            (999, "999 ms"),
            (59_999, "59 s"),
            (192_000, "3 m 12 s"),
            (18_000_000, "5 h 0 m"),
            (183_600_000, "2 d 3 h"),
        ] {
            assert_eq!(duration(ms), text);
        }
    }

    #[test]
    fn times_are_utc() {
        assert_eq!(time(TimestampMs(1_796_063_682_123)), "2026-11-30T18:34:42.123Z");
        assert_eq!(time(TimestampMs(0)), "1970-01-01T00:00:00Z");
        assert_eq!(time(TimestampMs(i64::MAX)), "9223372036854775807 ms");
    }

    #[test]
    fn ranges_are_cut_short() {
        let range = |first, last| OffsetRange::new(Offset(first), Offset(last)).unwrap();
        assert_eq!(ranges(&[], 2), "–");
        assert_eq!(
            ranges(&[range(0, 9), range(12, 12), range(15, 20)], 2),
            "[0, 9] [12, 12] … 1 more"
        );
    }
}
