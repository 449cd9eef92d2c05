use serde::{Deserialize, Serialize};
use toml::de::DeValue;

use crate::fault::Problem;
use crate::reader::{FromToml, expected};

const UNITS: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// A length of time in milliseconds. The file writes it as `"500ms"`, `"30s"`, `"1m"`, `"1h30m"` or `"14d"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DurationMs(pub u64);

impl DurationMs {
    /// Reads `"1h30m"`: numbers with units from large to small, each unit once.
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        let wrong = || {
            Problem::new(format!("{text:?} is not a duration"))
                .hint("write a number and a unit, such as \"30s\", \"5m\", \"1h30m\" or \"14d\"")
        };
        let (mut rest, mut total_ms, mut smallest) = (text, 0u64, u64::MAX);
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, tail) = rest.split_at(digits);
            let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
            let (unit, tail) = tail.split_at(letters);
            let (_, unit_ms) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
            if *unit_ms >= smallest {
                return Err(wrong());
            }
            smallest = *unit_ms;
            total_ms = number
                .parse::<u64>()
                .ok()
                .and_then(|number| number.checked_mul(*unit_ms))
                .and_then(|part| total_ms.checked_add(part))
                .ok_or_else(wrong)?;
            rest = tail;
        }
        if text.is_empty() {
            Err(wrong())
        } else {
            Ok(Self(total_ms))
        }
    }
}

impl std::fmt::Display for DurationMs {
    /// As the file writes it: `1h30m`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (unit, unit_ms) in UNITS.iter().rev() {
            if rest >= *unit_ms {
                write!(f, "{}{unit}", rest / unit_ms)?;
                rest %= unit_ms;
            }
        }
        Ok(())
    }
}

impl std::str::FromStr for DurationMs {
    type Err = String;

    /// The same as in the file; the error says how it is written.
    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(text)
            .map_err(|_| format!("write a number and a unit, such as 30s, 5m, 1h30m or 14d, not {text:?}"))
    }
}

impl From<DurationMs> for std::time::Duration {
    fn from(duration: DurationMs) -> Self {
        Self::from_millis(duration.0)
    }
}

impl FromToml for DurationMs {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Problem> {
        match value.as_str() {
            Some(text) => Self::parse(text),
            None => Err(expected("a duration such as \"30s\"", value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, ms) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("1m", 60_000),
            ("1h30m", 5_400_000),
            ("14d", 1_209_600_000),
            ("1d2h3m4s5ms", 93_784_005),
        ] {
            assert_eq!(DurationMs::parse(text), Ok(DurationMs(ms)), "{text}");
            assert_eq!(DurationMs(ms).to_string(), text);
        }
        for text in [
            "",
            "5",
            "m",
            "1 m",
            "-1s",
            "1.5h",
            "1m1h",
            "1m1m",
            "1y",
            "99999999999999999999s",
            "213503982335d",
            "1é",
        ] {
            assert!(DurationMs::parse(text).is_err(), "{text}");
        }
    }
}
