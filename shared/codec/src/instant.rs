use frazil_schema::TimestampUnit;

use crate::fault::{Decoded, Fault};

pub(crate) const MICROS_PER_DAY: i64 = 86_400_000_000;
/// 1990-01-01 and 2100-01-01: what a business event's timestamp most likely lies between, for hints only.
pub(crate) const LIKELY_MICROS: std::ops::Range<i128> = 631_152_000_000_000..4_102_444_800_000_000;

/// Which instants are believed; anything else is poison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimestampRange {
    /// The first believed instant, in microseconds since 1970-01-01 UTC.
    pub first_micros: i64,
    /// The last believed instant, in microseconds since 1970-01-01 UTC.
    pub last_micros: i64,
}

impl Default for TimestampRange {
    /// The years 1 to 9999: what every reader can show.
    fn default() -> Self {
        Self {
            first_micros: -62_135_596_800_000_000,
            last_micros: 253_402_300_799_999_999,
        }
    }
}

impl TimestampRange {
    /// The instant in microseconds, nanoseconds floored.
    #[inline]
    pub(crate) fn micros(&self, value: i64, unit: TimestampUnit) -> Decoded<i64> {
        let micros = match unit {
            TimestampUnit::Millis => value.checked_mul(1_000),
            TimestampUnit::Micros => Some(value),
            TimestampUnit::Nanos => Some(value.div_euclid(1_000)),
        };
        match micros {
            Some(micros) if self.holds(micros) => Ok(micros),
            _ => Err(out_of_range(value, unit)),
        }
    }

    /// Why an instant so many seconds after 1970 is not believed.
    #[cold]
    pub(crate) fn not_seconds(&self, seconds: i64) -> Box<Fault> {
        let fault = Fault::new(
            "value.timestamp_out_of_range",
            format!("{seconds} seconds after 1970 is outside the topic's timestamp range"),
        );
        let wide = i128::from(seconds);
        let likely = [
            ("milliseconds", wide * 1_000),
            ("microseconds", wide),
            ("nanoseconds", wide / 1_000),
        ]
        .into_iter()
        .find(|(_, micros)| LIKELY_MICROS.contains(micros));
        match likely {
            Some((likely, _)) => fault.with_hint(format!("it looks like {likely} in a second field")),
            None => fault.with_hint("correct the producer's clock, or widen `timestamp_range`"),
        }
    }

    #[inline]
    pub(crate) fn holds(&self, micros: i64) -> bool {
        self.first_micros <= micros && micros <= self.last_micros
    }

    /// Whether an instant of that day is believed.
    #[inline]
    pub(crate) fn holds_date(&self, days: i32) -> bool {
        let first = self.first_micros.div_euclid(MICROS_PER_DAY);
        let last = self.last_micros.div_euclid(MICROS_PER_DAY);
        (first..=last).contains(&i64::from(days))
    }

    #[inline]
    pub(crate) fn date(&self, days: i32) -> Decoded<i32> {
        if self.holds_date(days) {
            return Ok(days);
        }
        Err(Fault::new(
            "value.date_out_of_range",
            format!("day {days} after 1970-01-01 is outside the believed range"),
        ))
    }
}

#[cold]
fn out_of_range(value: i64, unit: TimestampUnit) -> Box<Fault> {
    let name = |unit| match unit {
        TimestampUnit::Millis => "milliseconds",
        TimestampUnit::Micros => "microseconds",
        TimestampUnit::Nanos => "nanoseconds",
    };
    let singular = name(unit).trim_end_matches('s');
    let fault = Fault::new(
        "value.timestamp_out_of_range",
        format!(
            "{value} {} after 1970 is outside the topic's timestamp range",
            name(unit)
        ),
    );
    let wide = i128::from(value);
    let likely = [
        ("seconds", wide * 1_000_000),
        ("milliseconds", wide * 1_000),
        ("microseconds", wide),
        ("nanoseconds", wide / 1_000),
    ]
    .into_iter()
    .find(|(likely, micros)| *likely != name(unit) && LIKELY_MICROS.contains(micros));
    match likely {
        Some((likely, _)) => fault.with_hint(format!("it looks like {likely} in a {singular} field")),
        None => fault.with_hint("correct the producer's clock, or widen `timestamp_range`"),
    }
}
