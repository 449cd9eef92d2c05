use std::path::PathBuf;

use frazil_core::{Error, Result};
use frazil_ingest::{IngestReport, TopicOutcome, TopicReport};
use frazil_table::Warehouse;
use serde::Serialize;

use crate::document::{indented, plain};
use crate::failure::{ErrorDocument, Outcome, error_text};
use crate::output::{Document, Output};
use crate::progress::Progress;
use crate::session::{EventFile, Handlers, Session};
use crate::units;

/// What became of events.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Ingested {
    pub(crate) events: Vec<IngestedEvent>,
    /// Why the next event was not taken; those after it were not tried.
    pub(crate) stopped: Option<Stopped>,
}

/// What became of one event.
#[derive(Debug, Serialize)]
pub(crate) struct IngestedEvent {
    /// The file, or `-`.
    event: String,
    #[serde(flatten)]
    report: IngestReport,
}

/// An event that was not taken.
#[derive(Debug, Serialize)]
pub(crate) struct Stopped {
    event: String,
    error: ErrorDocument,
    /// Events after it.
    not_tried: usize,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    outcome: Outcome,
}

pub(crate) async fn ingest(session: &Session, events: &[PathBuf], output: &Output) -> Result<Outcome> {
    let events = EventFile::expand(events)?;
    let warehouse = session.warehouse().await?;
    let progress = session.progress();
    let mut handlers = Handlers::default();
    let ingested = ingest_events(session, &mut handlers, &warehouse, &events, &progress).await;
    drop(progress);
    output.print(&ingested)?;
    Ok(ingested.outcome())
}

/// Ingests events in their order, up to the first that fails: what follows would open a hole behind it.
pub(crate) async fn ingest_events(
    session: &Session,
    handlers: &mut Handlers,
    warehouse: &Warehouse,
    events: &[EventFile],
    progress: &Progress,
) -> Ingested {
    let mut ingested = Ingested {
        events: Vec::with_capacity(events.len()),
        stopped: None,
    };
    for (index, event) in events.iter().enumerate() {
        progress.say(format!(
            "ingesting {} ({} of {})",
            event.name(),
            index + 1,
            events.len()
        ));
        let ingest = session.ingest(handlers, warehouse, event.path());
        let taken = match (ingest, event.read()) {
            (Ok(ingest), Ok(bytes)) => ingest.handle(&bytes).await,
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        match taken {
            Ok(report) => ingested.events.push(IngestedEvent::new(event.name(), report)),
            Err(error) => {
                let not_tried = events.len() - index - 1;
                ingested.stopped = Some(Stopped::new(event.name(), &error, not_tried));
                break;
            }
        }
    }
    ingested
}

impl IngestedEvent {
    pub(crate) fn new(event: String, report: IngestReport) -> Self {
        Self { event, report }
    }
}

impl Stopped {
    pub(crate) fn new(event: String, error: &Error, not_tried: usize) -> Self {
        Self {
            event,
            error: ErrorDocument::from(error),
            not_tried,
            text: error_text(error),
            outcome: Outcome::of(error.kind()),
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let rest = match self.not_tried {
            0 => String::new(),
            events => format!("{} after it not tried\n", units::counted(events as u64, "event")),
        };
        format!("{}\n{}", self.event, indented(&format!("{}{rest}", self.text)))
    }
}

impl Ingested {
    /// Every topic of every event.
    pub(crate) fn topics(&self) -> impl Iterator<Item = &TopicReport> {
        self.events.iter().flat_map(|event| &event.report.topics)
    }

    pub(crate) fn outcome(&self) -> Outcome {
        let waits = |topic: &TopicReport| {
            matches!(topic.outcome, TopicOutcome::Parked { .. }) || !topic.failures.is_empty()
        };
        match &self.stopped {
            Some(stopped) => stopped.outcome,
            None if self.topics().any(waits) => Outcome::Suspended,
            None => Outcome::Done,
        }
    }
}

impl Document for Ingested {
    fn to_text(&self, _: Option<usize>) -> String {
        let mut text = String::new();
        for event in &self.events {
            text.push_str(&format!("{}\n", event.event));
            if event.report.topics.is_empty() {
                text.push_str("  no records\n");
            }
            for topic in &event.report.topics {
                text.push_str(&indented(&topic_text(topic)));
            }
        }
        if let Some(stopped) = &self.stopped {
            text.push_str(&stopped.to_text());
        }
        text
    }
}

fn topic_text(topic: &TopicReport) -> String {
    // Where each type has a table of its own, the topic's is one of several or not there.
    let tables: Vec<String> = match topic.tables.as_slice() {
        [] => vec![topic.table.to_string()],
        several => several.iter().map(|of| of.table.to_string()).collect(),
    };
    let mut text = format!(
        "{} → {}: {}",
        plain(topic.topic.as_str()),
        tables.join(", "),
        units::counted(topic.records, "record")
    );
    match &topic.outcome {
        TopicOutcome::Staged { schema_changed } => {
            text.push_str(&format!(
                ", {} in {} ({})",
                units::counted(topic.rows, "row"),
                units::counted(topic.files, "file"),
                units::bytes(topic.file_bytes)
            ));
            if topic.dead_letters > 0 {
                text.push_str(&format!(
                    ", {}",
                    units::counted(topic.dead_letters, "dead letter")
                ));
            }
            if topic.skipped > 0 {
                text.push_str(&format!(", {} skipped", units::count(topic.skipped)));
            }
            if *schema_changed {
                text.push_str(", schema changed");
            }
            text.push('\n');
        }
        TopicOutcome::Parked { reason } => text.push_str(&format!(", parked: {}\n", plain(reason))),
    }
    for failure in &topic.failures {
        text.push_str(&format!(
            "  not taken from offset {} of partition {} on: {}\n",
            failure.offset,
            failure.topic_partition.partition,
            plain(&failure.reason)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use frazil_core::{Epoch, ErrorKind, Offset, Partition, TableName, TopicPartition};
    use frazil_ingest::{Failure, TableReport, Took};

    use super::*;

    fn orders(outcome: TopicOutcome) -> TopicReport {
        TopicReport {
            source: "default".into(),
            topic: "orders".into(),
            epoch: Epoch(0),
            table: TableName::new("kafka", "orders").unwrap(),
            tables: Vec::new(),
            records: 1_200,
            bytes: 116_400,
            rows: 1_187,
            dead_letters: 13,
            skipped: 0,
            files: 3,
            file_bytes: 41_230,
            outcome,
            failures: Vec::new(),
            took: Took::default(),
        }
    }

    fn ingested(topic: TopicReport) -> Ingested {
        let report = IngestReport { topics: vec![topic] };
        Ingested {
            events: vec![IngestedEvent {
                event: "a.json".to_owned(),
                report,
            }],
            stopped: None,
        }
    }

    #[test]
    fn staged_records_are_counted() {
        let ingested = ingested(orders(TopicOutcome::Staged { schema_changed: true }));
        assert_eq!(
            ingested.to_text(None),
            "a.json\n  orders → kafka.orders: 1,200 records, 1,187 rows in 3 files (41.2 kB), 13 dead letters, \
             schema changed\n"
        );
        assert_eq!(ingested.outcome(), Outcome::Done);
    }

    #[test]
    fn a_topic_of_several_types_names_their_tables() {
        let mut topic = orders(TopicOutcome::Staged {
            schema_changed: false,
        });
        topic.tables = ["orders_paid", "orders_sent"]
            .map(|table| TableReport {
                table: TableName::new("kafka", table).unwrap(),
                records: 600,
                bytes: 58_200,
                rows: 600,
                dead_letters: 0,
            })
            .into();
        let text = ingested(topic).to_text(None);
        assert!(
            text.contains("  orders → kafka.orders_paid, kafka.orders_sent: 1,200 records, "),
            "{text}"
        );
    }

    #[test]
    fn a_suspended_topic_parks_and_says_why() {
        let ingested = ingested(orders(TopicOutcome::Parked {
            reason: "maintenance".to_owned(),
        }));
        assert_eq!(
            ingested.to_text(None),
            "a.json\n  orders → kafka.orders: 1,200 records, parked: maintenance\n"
        );
        assert_eq!(ingested.outcome(), Outcome::Suspended);
    }

    #[test]
    fn records_that_were_not_taken_are_named() {
        let mut topic = orders(TopicOutcome::Staged {
            schema_changed: false,
        });
        topic.failures.push(Failure {
            topic_partition: TopicPartition {
                topic: "orders".into(),
                partition: Partition(3),
            },
            offset: Offset(17),
            reason: "not JSON".to_owned(),
        });
        let ingested = ingested(topic);
        assert!(
            ingested
                .to_text(None)
                .ends_with("    not taken from offset 17 of partition 3 on: not JSON\n")
        );
        assert_eq!(ingested.outcome(), Outcome::Suspended);
    }

    #[test]
    fn stops_at_the_first_event_that_fails() {
        let error =
            Error::new(ErrorKind::Invalid, "read an event", "it ends early").with_hint("send it again");
        let mut ingested = ingested(orders(TopicOutcome::Staged {
            schema_changed: false,
        }));
        ingested.stopped = Some(Stopped::new("b.json".to_owned(), &error, 2));
        let text = ingested.to_text(None);
        assert!(
            text.ends_with(
                "b.json\n  error: cannot read an event: it ends early\n  hint: send it again\n  2 events after it not \
                 tried\n"
            ),
            "{text}"
        );
        assert_eq!(ingested.outcome(), Outcome::Invalid);
    }
}
