//! What is said while it runs: a line now and then for people, a JSON document per line for programs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use frazil_core::{Environment, Error, Result, TimestampMs, TopicName};
use serde::Serialize;

use super::invoke::Invoked;
use super::mapping::{Batch, Condition, Next, Verdict};
use crate::commands::Commits;
use crate::document::{indented, plain};
use crate::failure::{ErrorDocument, error_text};
use crate::output::Output;
use crate::units;

/// People get a line of a kind and topic at most this often.
const PACE: Duration = Duration::from_secs(2);

/// What one topic's mapping did.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Totals {
    /// Records that the function took.
    pub(crate) records: u64,
    /// Events that it was invoked with, each try counted.
    pub(crate) events: u64,
    /// Bytes of those.
    pub(crate) bytes: u64,
    /// Events that it did not take, or only in part.
    pub(crate) failed: u64,
    /// Records that became dead letters; not known of an endpoint.
    pub(crate) dead_letters: u64,
    /// Records that were parked, because the topic is suspended; not known of an endpoint.
    pub(crate) parked: u64,
    /// Records that were given up.
    pub(crate) given_up: u64,
}

/// Something that happened, as programs read it.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Line<'a> {
    Started {
        topic: &'a TopicName,
        brokers: &'a str,
        handler: &'a str,
        resumed: bool,
        next: &'a BTreeMap<i32, i64>,
    },
    Invoked {
        topic: &'a TopicName,
        records: usize,
        bytes: usize,
        took_ms: u64,
        invocation: u32,
        done: usize,
        left: usize,
        then: &'static str,
        retry_in_ms: Option<u64>,
        reason: Option<&'a str>,
        parked: Option<&'a str>,
    },
    GivenUp {
        topic: &'a TopicName,
        records: usize,
        condition: &'static str,
        invocations: u32,
        file: Option<String>,
    },
    Trouble {
        topic: &'a TopicName,
        message: &'a str,
    },
    CommitFailed {
        error: ErrorDocument,
    },
    Committed {
        #[serde(flatten)]
        commits: &'a Commits,
    },
    Stopped {
        topic: &'a TopicName,
        at: &'static str,
        #[serde(flatten)]
        totals: &'a Totals,
        next: &'a BTreeMap<i32, i64>,
    },
}

/// Writes the lines.
#[derive(Debug)]
pub(crate) struct Journal {
    output: Output,
    environment: Environment,
    pace: Mutex<BTreeMap<(TopicName, Kind), Pace>>,
}

/// Lines that are not written each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Taken,
    Failed,
    Trouble,
}

#[derive(Debug, Default)]
struct Pace {
    last: Option<TimestampMs>,
    records: u64,
    bytes: u64,
    events: u64,
}

impl Journal {
    pub(crate) fn new(output: Output, environment: Environment) -> Self {
        Self {
            output,
            environment,
            pace: Mutex::default(),
        }
    }

    pub(crate) fn started(
        &self,
        topic: &TopicName,
        brokers: &str,
        handler: &str,
        resumed: bool,
        next: &BTreeMap<i32, i64>,
    ) -> Result<()> {
        let from = if resumed {
            "from where the last run stopped"
        } else {
            "for the first time"
        };
        let text = format!(
            "{}: reading {} at {brokers} {from}, handled {}",
            plain(topic.as_str()),
            units::counted(next.len() as u64, "partition"),
            if handler == "in process" {
                handler.to_owned()
            } else {
                format!("by {handler}")
            },
        );
        self.write(
            &Line::Started {
                topic,
                brokers,
                handler,
                resumed,
                next,
            },
            Some(&text),
        )
    }

    /// An invocation is over.
    pub(crate) fn invoked(
        &self,
        topic: &TopicName,
        call: &Call,
        invoked: &Invoked,
        verdict: &Verdict,
    ) -> Result<()> {
        let parked = invoked
            .report
            .as_ref()
            .map(super::invoke::parked)
            .unwrap_or_default();
        let retry_in = match verdict.next {
            Next::Retry(wait) => Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            Next::Done | Next::Bisected | Next::GivenUp => None,
        };
        let then = match verdict.next {
            Next::Done => "done",
            Next::Retry(_) => "retry",
            Next::Bisected => "bisect",
            Next::GivenUp => "give_up",
        };
        let line = Line::Invoked {
            topic,
            records: call.records,
            bytes: call.bytes,
            took_ms: self.environment.now().since(call.began).as_millis() as u64,
            invocation: call.invocation,
            done: verdict.done,
            left: verdict.left,
            then,
            retry_in_ms: retry_in,
            reason: verdict.reason.as_deref(),
            parked: parked.1,
        };
        let name = plain(topic.as_str());
        let text = match &verdict.reason {
            Some(reason) if self.is_time(topic, Kind::Failed) => {
                let then = match (verdict.next, retry_in) {
                    (Next::Bisected, _) => "each half again".to_owned(),
                    (Next::GivenUp, _) => "no more tries".to_owned(),
                    (_, Some(wait)) => format!("again in {}", units::duration(wait)),
                    (_, None) => "done".to_owned(),
                };
                let left = units::counted(verdict.left as u64, "record");
                Some(format!("{name}: {left} not taken, {then}: {}", plain(reason)))
            }
            Some(_) => None,
            None => self.taken(topic, call, parked.1),
        };
        self.write(&line, text.as_deref())
    }

    /// A line for what was taken since the last one.
    fn taken(&self, topic: &TopicName, call: &Call, parked: Option<&str>) -> Option<String> {
        {
            let mut paces = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
            let pace = paces.entry((topic.clone(), Kind::Taken)).or_default();
            pace.records += call.records as u64;
            pace.bytes += call.bytes as u64;
            pace.events += 1;
        }
        if !self.is_time(topic, Kind::Taken) {
            return None;
        }
        let mut paces = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let pace = paces.entry((topic.clone(), Kind::Taken)).or_default();
        let what = match parked {
            None => String::new(),
            Some(reason) => format!(", parked: {}", plain(reason)),
        };
        let text = format!(
            "{}: {} in {} ({}){what}",
            plain(topic.as_str()),
            units::counted(pace.records, "record"),
            units::counted(pace.events, "event"),
            units::bytes(pace.bytes),
        );
        (pace.records, pace.bytes, pace.events) = (0, 0, 0);
        Some(text)
    }

    /// Records are given up.
    pub(crate) fn given_up(
        &self,
        topic: &TopicName,
        batch: &Batch,
        condition: Condition,
        file: Option<&Path>,
    ) -> Result<()> {
        let records = batch.records.len();
        let file = file.map(|file| file.display().to_string());
        let place = match &file {
            Some(file) => format!("kept in {file}"),
            None => "lost to this run: no --on-failure names a folder for them".to_owned(),
        };
        let text = format!(
            "{}: {} given up ({}), {place}",
            plain(topic.as_str()),
            units::counted(records as u64, "record"),
            condition.as_str()
        );
        let line = Line::GivenUp {
            topic,
            records,
            condition: condition.as_str(),
            invocations: batch.invocations,
            file,
        };
        self.write(&line, Some(&text))
    }

    /// Something that may pass by itself.
    pub(crate) fn trouble(&self, topic: &TopicName, message: &str) -> Result<()> {
        let text = format!("{}: {}", plain(topic.as_str()), plain(message));
        let is_time = self.is_time(topic, Kind::Trouble);
        self.write(&Line::Trouble { topic, message }, is_time.then_some(&text))
    }

    /// A run of commits. People hear of what changed.
    pub(crate) fn committed(&self, commits: &Commits) -> Result<()> {
        let mut text = commits.problems();
        for table in &commits.tables {
            let remarks = table.remarks();
            if table.files > 0 || table.dead_letters > 0 {
                let letters = match table.dead_letters {
                    0 => String::new(),
                    letters => format!(", {}", units::counted(letters, "dead letter")),
                };
                text.push_str(&format!(
                    "{}: {} committed in {} ({}){letters}\n",
                    table.table,
                    units::counted(table.rows, "row"),
                    units::counted(table.files, "file"),
                    units::bytes(table.bytes)
                ));
            } else if !remarks.is_empty() {
                text.push_str(&format!("{}: nothing committed\n", table.table));
            }
            text.push_str(&indented(&remarks));
        }
        let text = text.trim_end();
        self.write(&Line::Committed { commits }, (!text.is_empty()).then_some(text))
    }

    /// A run of commits that could not be made; the next one tries again.
    pub(crate) fn commit_failed(&self, error: &Error) -> Result<()> {
        let line = Line::CommitFailed {
            error: ErrorDocument::from(error),
        };
        self.write(&line, Some(error_text(error).trim_end()))
    }

    /// A topic's mapping has come to its end.
    pub(crate) fn stopped(
        &self,
        topic: &TopicName,
        at: &'static str,
        totals: &Totals,
        next: &BTreeMap<i32, i64>,
    ) -> Result<()> {
        let mut text = format!(
            "{}: stopped, {at}: {} taken in {} ({})",
            plain(topic.as_str()),
            units::counted(totals.records, "record"),
            units::counted(totals.events, "event"),
            units::bytes(totals.bytes),
        );
        for (number, what) in [
            (totals.failed, "events failed"),
            (totals.dead_letters, "dead letters"),
            (totals.parked, "records parked"),
            (totals.given_up, "records given up"),
        ] {
            if number > 0 {
                text.push_str(&format!(", {} {what}", units::count(number)));
            }
        }
        self.write(
            &Line::Stopped {
                topic,
                at,
                totals,
                next,
            },
            Some(&text),
        )
    }

    fn is_time(&self, topic: &TopicName, kind: Kind) -> bool {
        let now = self.environment.now();
        let mut paces = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let pace = paces.entry((topic.clone(), kind)).or_default();
        let is_time = pace.last.is_none_or(|last| now.since(last) >= PACE);
        if is_time {
            pace.last = Some(now);
        }
        is_time
    }

    fn write(&self, line: &Line<'_>, text: Option<impl AsRef<str>>) -> Result<()> {
        self.output.line(line, text.as_ref().map(AsRef::as_ref))
    }
}

/// An invocation, as far as it is told of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) records: usize,
    pub(crate) bytes: usize,
    pub(crate) invocation: u32,
    pub(crate) began: TimestampMs,
}
