use chrono::{NaiveDate, NaiveTime};
use frazil_core::TimestampMs;
use serde::{Deserialize, Serialize};
use toml::de::DeValue;
use toml::value::{Datetime, Offset};

use crate::duration::DurationMs;
use crate::fault::Problem;
use crate::reader::{FromToml, expected};

const MICROS_PER_MS: i64 = 1_000;

/// One end of a range of instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Instant {
    /// Microseconds since 1970-01-01 UTC.
    AtMicros(i64),
    /// Milliseconds from the time of the decision; negative is before it.
    FromNowMs(i64),
}

impl Instant {
    fn micros(self, now: TimestampMs) -> i64 {
        match self {
            Self::AtMicros(micros) => micros,
            Self::FromNowMs(ms) => now.0.saturating_add(ms).saturating_mul(MICROS_PER_MS),
        }
    }
}

/// A range of instants, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct InstantRange {
    /// The first instant.
    pub first: Instant,
    /// The last instant.
    pub last: Instant,
}

/// What a clock can say: from 1970, where Unix time starts, to a year from now.
impl Default for InstantRange {
    fn default() -> Self {
        Self {
            first: Instant::AtMicros(0),
            last: Instant::FromNowMs(365 * 86_400_000),
        }
    }
}

impl InstantRange {
    /// Years 1 to 9999: what Parquet readers and query engines agree on.
    pub const YEARS_1_TO_9999: Self = Self {
        first: Instant::AtMicros(-62_135_596_800_000_000),
        last: Instant::AtMicros(253_402_300_799_999_999),
    };

    /// Whether the range can hold anything. Of an end that moves with the clock only the kind is known.
    pub(crate) fn is_forward(self) -> bool {
        match (self.first, self.last) {
            (Instant::AtMicros(first), Instant::AtMicros(last)) => first <= last,
            (Instant::FromNowMs(first), Instant::FromNowMs(last)) => first <= last,
            (Instant::AtMicros(_), Instant::FromNowMs(_)) | (Instant::FromNowMs(_), Instant::AtMicros(_)) => {
                true
            }
        }
    }

    /// The range in microseconds since 1970-01-01 UTC, `(first, last)`.
    pub fn micros(self, now: TimestampMs) -> (i64, i64) {
        (self.first.micros(now), self.last.micros(now))
    }
}

/// An end of a range as the file writes it. A date is its first instant or its last, as the end asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrittenInstant {
    pub(crate) as_first: Instant,
    pub(crate) as_last: Instant,
}

impl WrittenInstant {
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        if let Some(shift) = text.trim().strip_prefix("now") {
            let shift = shift.trim();
            let (sign, duration) = match shift.split_at_checked(1) {
                Some(("+", duration)) => (1, duration),
                Some(("-", duration)) => (-1, duration),
                _ if shift.is_empty() => (1, "0s"),
                _ => return Err(not_an_instant(text)),
            };
            let DurationMs(ms) = DurationMs::parse(duration.trim())?;
            let ms = i64::try_from(ms).map_err(|_| not_an_instant(text))?;
            let instant = Instant::FromNowMs(sign * ms);
            return Ok(Self {
                as_first: instant,
                as_last: instant,
            });
        }
        let datetime = text
            .trim()
            .parse::<Datetime>()
            .map_err(|_| not_an_instant(text))?;
        Self::from_datetime(&datetime)
    }

    fn from_datetime(datetime: &Datetime) -> Result<Self, Problem> {
        let wrong = || not_an_instant(&datetime.to_string());
        let date = datetime.date.ok_or_else(wrong)?;
        let date = NaiveDate::from_ymd_opt(date.year.into(), date.month.into(), date.day.into())
            .ok_or_else(wrong)?;
        let micros = |time: NaiveTime| {
            let offset_minutes = match datetime.offset {
                None | Some(Offset::Z) => 0,
                Some(Offset::Custom { minutes }) => i64::from(minutes),
            };
            Instant::AtMicros(date.and_time(time).and_utc().timestamp_micros() - offset_minutes * 60_000_000)
        };
        match datetime.time {
            None => {
                let end = NaiveTime::from_hms_micro_opt(23, 59, 59, 999_999).ok_or_else(wrong)?;
                Ok(Self {
                    as_first: micros(NaiveTime::MIN),
                    as_last: micros(end),
                })
            }
            Some(time) => {
                let (hour, minute, second) = (time.hour.into(), time.minute.into(), time.second.into());
                let time =
                    NaiveTime::from_hms_nano_opt(hour, minute, second, time.nanosecond).ok_or_else(wrong)?;
                Ok(Self {
                    as_first: micros(time),
                    as_last: micros(time),
                })
            }
        }
    }
}

fn not_an_instant(text: &str) -> Problem {
    Problem::new(format!(
        "{text:?} is not a date, a time in UTC, or a distance from now"
    ))
    .hint("write 2020-01-01, 2020-01-01T12:00:00Z or \"now+365d\"")
}

impl FromToml for WrittenInstant {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Problem> {
        match value {
            DeValue::Datetime(datetime) => Self::from_datetime(datetime),
            DeValue::String(text) => Self::parse(text),
            _ => Err(expected("a date such as 2020-01-01 or \"now+365d\"", value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_dates_times_and_distances() {
        use Instant::{AtMicros, FromNowMs};
        for (text, first, last) in [
            ("1970-01-01", AtMicros(0), AtMicros(86_399_999_999)),
            (
                "0001-01-01",
                AtMicros(-62_135_596_800_000_000),
                AtMicros(-62_135_510_400_000_001),
            ),
            (
                "9999-12-31",
                AtMicros(253_402_214_400_000_000),
                AtMicros(253_402_300_799_999_999),
            ),
            (
                "2026-02-03T04:05:06.7Z",
                AtMicros(1_770_091_506_700_000),
                AtMicros(1_770_091_506_700_000),
            ),
            (
                "2026-02-03T04:05:06",
                AtMicros(1_770_091_506_000_000),
                AtMicros(1_770_091_506_000_000),
            ),
            (
                "2026-02-03T04:05:06+02:00",
                AtMicros(1_770_084_306_000_000),
                AtMicros(1_770_084_306_000_000),
            ),
            ("now", FromNowMs(0), FromNowMs(0)),
            ("now+1d", FromNowMs(86_400_000), FromNowMs(86_400_000)),
            ("now - 2h", FromNowMs(-7_200_000), FromNowMs(-7_200_000)),
        ] {
            assert_eq!(
                WrittenInstant::parse(text),
                Ok(WrittenInstant {
                    as_first: first,
                    as_last: last
                }),
                "{text}"
            );
        }
        for text in [
            "",
            "12:00:00",
            "2026-02-30",
            "2026",
            "now+",
            "nowadays",
            "now+1y",
            "now1é",
            "tomorrow",
        ] {
            assert!(WrittenInstant::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_distance_counts_from_the_moment_of_the_decision() {
        let now = TimestampMs(1_000);
        let range = InstantRange {
            first: Instant::AtMicros(0),
            last: Instant::FromNowMs(365 * 86_400_000),
        };
        assert_eq!(range.micros(now), (0, 31_536_001_000_000));
        assert_eq!(
            InstantRange::YEARS_1_TO_9999.micros(now),
            (-62_135_596_800_000_000, 253_402_300_799_999_999)
        );
    }
}
