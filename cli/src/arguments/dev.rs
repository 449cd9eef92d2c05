use std::path::PathBuf;
use std::time::Duration;

use chrono::DateTime;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use frazil_config::DurationMs;
use frazil_core::TimestampMs;

/// The longest batching window of an event source mapping.
const MAX_WINDOW: Duration = Duration::from_secs(300);

/// Names and rules are those of Lambda's event source mapping.
#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// Brokers to ask first
    #[arg(long, value_name = "HOST:PORT,…", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) brokers: String,
    /// A topic; may be given several times, for a mapping each
    #[arg(long, required = true, value_name = "TOPIC", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) topic: Vec<String>,
    /// Where a topic begins that was never read: earliest, latest, or a time
    #[arg(long, default_value = "earliest", value_name = "POSITION", value_parser = starting_position)]
    pub(crate) from: StartingPosition,
    /// Forget where the last run stopped, and begin at --from
    #[arg(long)]
    pub(crate) restart: bool,
    /// Stop when every partition was read to its end
    #[arg(long)]
    pub(crate) once: bool,
    /// Commit this often; 0 for never
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = interval)]
    pub(crate) commit_every: Duration,
    /// Invoke a Lambda endpoint instead of the handler of this process
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// At most so many records in an event
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) batch_size: u32,
    /// Wait so long for an event to fill, up to 300s
    #[arg(long, default_value = "500ms", value_name = "TIME", value_parser = window)]
    pub(crate) batch_window: Duration,
    /// Try an event that failed again so many times; -1 for ever
    #[arg(long, default_value_t = -1, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1..=10_000))]
    pub(crate) max_retries: i32,
    /// Give up records that are older
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub(crate) max_record_age: Option<Duration>,
    /// Cut an event that failed in halves
    #[arg(long)]
    pub(crate) bisect: bool,
    /// Read batchItemFailures in the answer: only what it names comes again
    #[arg(long)]
    pub(crate) report_batch_item_failures: bool,
    /// Keep what is given up in this folder, an event per file
    #[arg(long, value_name = "DIR")]
    pub(crate) on_failure: Option<PathBuf>,
    /// A property of the Kafka client (librdkafka), such as security.protocol=SASL_SSL; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = property)]
    pub(crate) kafka: Vec<(String, String)>,
}

/// Where a topic begins when nothing is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartingPosition {
    /// `TRIM_HORIZON`.
    Earliest,
    /// `LATEST`.
    Latest,
    /// `AT_TIMESTAMP`.
    Time(TimestampMs),
}

fn starting_position(text: &str) -> Result<StartingPosition, String> {
    match text {
        "earliest" => return Ok(StartingPosition::Earliest),
        "latest" => return Ok(StartingPosition::Latest),
        _ => {}
    }
    let millis = match DateTime::parse_from_rfc3339(text) {
        Ok(time) => Some(time.timestamp_millis()),
        Err(_) => text.parse::<i64>().ok(),
    };
    match millis {
        Some(millis) if millis >= 0 => Ok(StartingPosition::Time(TimestampMs(millis))),
        _ => Err(
            "write earliest, latest, a time such as 2026-11-30T06:00:00Z, or milliseconds since 1970"
                .to_owned(),
        ),
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let parsed: DurationMs = text.parse()?;
    Ok(parsed.into())
}

fn window(text: &str) -> Result<Duration, String> {
    match interval(text)? {
        window if window > MAX_WINDOW => Err(format!("it is at most {}s", MAX_WINDOW.as_secs())),
        window => Ok(window),
    }
}

/// Without the value in the message: it may be a secret.
fn property(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        _ => Err("write it as name=value".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_windows_and_properties() {
        let time = |millis| Ok(StartingPosition::Time(TimestampMs(millis)));
        for (text, expected) in [
            ("earliest", Ok(StartingPosition::Earliest)),
            ("latest", Ok(StartingPosition::Latest)),
            ("1796040000000", time(1_796_040_000_000)),
            ("2026-11-30T12:00:00+01:00", time(1_796_036_400_000)),
        ] {
            assert_eq!(starting_position(text), expected, "{text}");
        }
        for text in ["", "first", "-1", "2026-11-30"] {
            assert!(starting_position(text).is_err(), "{text}");
        }
        assert_eq!(window("300s"), Ok(MAX_WINDOW));
        assert_eq!(window("0"), Ok(Duration::ZERO));
        assert_eq!(window("6m"), Err("it is at most 300s".to_owned()));
        assert!(
            interval("60").unwrap_err().contains("such as"),
            "{:?}",
            interval("60")
        );
        assert_eq!(
            property("sasl.password=a=b"),
            Ok(("sasl.password".to_owned(), "a=b".to_owned()))
        );
        assert_eq!(property("secret"), Err("write it as name=value".to_owned()));
    }
}
