use std::{fmt, io};

use chrono::{DateTime, SecondsFormat};
use frazil_core::{Environment, Error, ErrorKind, Result};
use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

/// For whom logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object per line on standard output, as Lambda wants it: `timestamp` and `level`, by which it
    /// filters, and the fields at top level, where CloudWatch Logs Insights finds them.
    Json,
    /// Short lines on standard error, so that a command's own output stays clean.
    Compact,
}

/// Starts writing logs, once per process. `filter` says what is logged, such as `info` or `frazil_table=debug`.
///
/// `Invalid` when the filter cannot be read, `Internal` when logs were started before.
pub fn start_logs(format: LogFormat, filter: &str, environment: &Environment) -> Result<()> {
    let started = match format {
        LogFormat::Json => {
            tracing::subscriber::set_global_default(json_logs(filter, environment, io::stdout)?)
        }
        LogFormat::Compact => tracing::subscriber::set_global_default(compact_logs(filter, io::stderr)?),
    };
    started.map_err(|error| {
        Error::new(ErrorKind::Internal, "start logs", "they were started before").with_source(error)
    })
}

fn read_filter(filter: &str) -> Result<EnvFilter> {
    EnvFilter::builder().parse(filter).map_err(|error| {
        Error::new(
            ErrorKind::Invalid,
            "start logs",
            format!("{filter:?} is not a filter: {error}"),
        )
        .with_hint("write FRAZIL_LOG as info, debug, or info,frazil_table=debug")
        .with_source(error)
    })
}

fn json_logs<W>(
    filter: &str,
    environment: &Environment,
    writer: W,
) -> Result<impl Subscriber + Send + Sync + use<W>>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let logs = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(true)
        .with_timer(Timer(environment.clone()));
    Ok(logs
        .with_env_filter(read_filter(filter)?)
        .with_writer(writer)
        .finish())
}

/// The environment's time, as RFC 3339 in milliseconds.
struct Timer(Environment);

impl FormatTime for Timer {
    fn format_time(&self, w: &mut Writer<'_>) -> fmt::Result {
        let time = DateTime::from_timestamp_millis(self.0.now().0).ok_or(fmt::Error)?;
        w.write_str(&time.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

fn compact_logs<W>(filter: &str, writer: W) -> Result<impl Subscriber + Send + Sync + use<W>>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let logs = tracing_subscriber::fmt()
        .compact()
        .with_target(false)
        .without_time();
    Ok(logs
        .with_env_filter(read_filter(filter)?)
        .with_writer(writer)
        .finish())
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use frazil_core::{Clock, Entropy, TimestampMs};

    use super::*;

    /// A clock that stands still.
    #[derive(Debug)]
    struct Standing;

    impl Clock for Standing {
        fn now(&self) -> TimestampMs {
            TimestampMs(1_700_000_000_007)
        }

        fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
            Box::pin(std::future::ready(()))
        }
    }

    impl Entropy for Standing {
        fn next_u64(&self) -> u64 {
            0
        }
    }

    fn environment() -> Environment {
        Environment::new(Arc::new(Standing), Arc::new(Standing))
    }

    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Memory {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn write_two_events() {
        let span = tracing::info_span!("commit", table = "sales.orders");
        let _inside = span.enter();
        tracing::info!(snapshot_id = 7, "committed");
        tracing::debug!("too much detail");
    }

    #[test]
    fn json_has_its_fields_at_top_level() {
        let memory = Memory::default();
        let writer = memory.clone();
        let logs = json_logs("info", &environment(), move || writer.clone()).unwrap();
        tracing::subscriber::with_default(logs, write_two_events);
        assert_eq!(
            memory.text(),
            "{\"timestamp\":\"2023-11-14T22:13:20.007Z\",\"level\":\"INFO\",\"message\":\"committed\",\"snapshot_id\":7,\
             \"target\":\"frazil_telemetry::logs::tests\",\
             \"spans\":[{\"table\":\"sales.orders\",\"name\":\"commit\"}]}\n"
        );
    }

    #[test]
    fn compact_is_for_people() {
        let memory = Memory::default();
        let writer = memory.clone();
        let logs = compact_logs("warn,frazil_telemetry=info", move || writer.clone()).unwrap();
        tracing::subscriber::with_default(logs, write_two_events);
        assert_eq!(
            memory.text(),
            " INFO commit: committed snapshot_id=7 table=\"sales.orders\"\n"
        );
    }

    #[test]
    fn a_wrong_filter_says_the_way_out() {
        let error = start_logs(LogFormat::Compact, "frazil=loud=1", &environment()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(
            error.hint(),
            Some("write FRAZIL_LOG as info, debug, or info,frazil_table=debug")
        );
    }
}
