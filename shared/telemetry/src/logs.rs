use std::io;

use frazil_core::{Error, ErrorKind, Result};
use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// For whom logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object per line on standard output, which Lambda stores as it is: the fields at top level, where
    /// CloudWatch Logs Insights finds them.
    Json,
    /// Short lines on standard error, so that a command's own output stays clean.
    Compact,
}

/// Starts writing logs, once per process. `filter` says what is logged, such as `info` or `frazil_table=debug`.
///
/// `Invalid` when the filter cannot be read, `Internal` when logs were started before.
pub fn start_logs(format: LogFormat, filter: &str) -> Result<()> {
    let started = match format {
        LogFormat::Json => tracing::subscriber::set_global_default(json_logs(filter, io::stdout)?),
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

/// The time of a line is Lambda's own.
fn json_logs<W>(filter: &str, writer: W) -> Result<impl Subscriber + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let logs = tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .with_current_span(false)
        .with_span_list(true)
        .with_env_filter(read_filter(filter)?);
    Ok(logs.without_time().with_writer(writer).finish())
}

fn compact_logs<W>(filter: &str, writer: W) -> Result<impl Subscriber + Send + Sync>
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
    use std::sync::{Arc, Mutex};

    use super::*;

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
        let logs = json_logs("info", move || writer.clone()).unwrap();
        tracing::subscriber::with_default(logs, write_two_events);
        assert_eq!(
            memory.text(),
            "{\"level\":\"INFO\",\"message\":\"committed\",\"snapshot_id\":7,\
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
        let error = start_logs(LogFormat::Compact, "frazil=loud=1").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(
            error.hint(),
            Some("write FRAZIL_LOG as info, debug, or info,frazil_table=debug")
        );
    }
}
