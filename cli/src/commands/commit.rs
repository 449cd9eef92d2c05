use std::collections::BTreeMap;

use frazil_catalog::CatalogFunction;
use frazil_core::{Error, Result, SourceName, TableName, TopicName};
use frazil_ingest::Ingest;
use frazil_table::plan::WaitReason;
use frazil_table::{Cause, CommitReport, Committed, Judgement, Warehouse};
use serde::Serialize;
use uuid::Uuid;

use crate::document::{indented, plain};
use crate::failure::{ErrorDocument, Outcome, error_text};
use crate::output::{Document, Output};
use crate::progress::Progress;
use crate::session::{Handlers, Session, find_table};
use crate::units;

/// What commits did.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Commits {
    pub(crate) tables: Vec<TableCommit>,
    failed: Vec<FailedCommit>,
    /// What was parked and is ingested now.
    drained: Drained,
}

/// What a run of commits did to one table.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TableCommit {
    pub(crate) table: TableName,
    /// Rows that became visible.
    pub(crate) rows: u64,
    /// Data files that became visible.
    pub(crate) files: u64,
    /// Their size.
    pub(crate) bytes: u64,
    /// Dead letters that reached their table.
    pub(crate) dead_letters: u64,
    /// Descriptors that were redeliveries: their rows are in the table already.
    pub(crate) redelivered: u64,
    /// The commits, oldest first.
    commits: Vec<CommitDocument>,
    dropped: Vec<Dropped>,
    quarantined: Vec<Quarantined>,
    /// Descriptors that stop their partitions.
    unreadable: Vec<Unreadable>,
    pub(crate) suspended: Vec<SuspendedDocument>,
    /// What stays pending, and for what it waits: reason → claims.
    waiting: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    waiting_text: BTreeMap<&'static str, &'static str>,
    /// How often another committer was first.
    conflicts: u64,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct CommitDocument {
    commit: u64,
    snapshot_id: Option<i64>,
    rows: u64,
    files: u64,
    bytes: u64,
    dead_letters: u64,
    descriptors: u64,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Dropped {
    id: Uuid,
    judgement: Judgement,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Quarantined {
    id: Uuid,
    reason: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Unreadable {
    id: Uuid,
    reason: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SuspendedDocument {
    source: SourceName,
    topic: TopicName,
    cause: &'static str,
    message: String,
}

/// A table that could not be committed; the others were.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct FailedCommit {
    table: TableName,
    error: ErrorDocument,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    outcome: Outcome,
}

/// What became of parked events.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Drained {
    /// Events that were ingested.
    events: u64,
    /// Topics of which some stay parked, although they run.
    stopped: Vec<StoppedDrain>,
}

#[derive(Debug, PartialEq, Serialize)]
struct StoppedDrain {
    source: SourceName,
    topic: TopicName,
    error: ErrorDocument,
    #[serde(skip)]
    text: String,
    #[serde(skip)]
    outcome: Outcome,
}

pub(crate) async fn commit(session: &Session, table: Option<&str>, output: &Output) -> Result<Outcome> {
    let warehouse = session.existing_warehouse().await?;
    let tables = match table {
        None => None,
        Some(name) => Some(vec![find_table(&warehouse, name).await?]),
    };
    let progress = session.progress();
    let mut handlers = Handlers::default();
    let commits = Commits::make(
        session,
        session.ingest(&mut handlers, &warehouse, None)?,
        &warehouse,
        tables.as_deref(),
        &progress,
    )
    .await?;
    drop(progress);
    output.print(&commits)?;
    Ok(commits.outcome())
}

impl Commits {
    /// Ingests what was parked, then commits these tables, or all.
    pub(crate) async fn make(
        session: &Session,
        ingest: &Ingest,
        warehouse: &Warehouse,
        tables: Option<&[TableName]>,
        progress: &Progress,
    ) -> Result<Self> {
        let function = CatalogFunction::new(warehouse.clone(), session.config());
        progress.say("ingesting parked events");
        let mut drained = Drained::default();
        loop {
            let report = function.drain(ingest).await?;
            drained.events += report.delivered;
            drained.stopped = report
                .stopped
                .into_iter()
                .map(|(source, topic, error)| {
                    StoppedDrain::from((source, topic, session.about_schemas(error)))
                })
                .collect();
            if report.delivered == 0 {
                break;
            }
        }
        progress.say("committing");
        let mut commits = Self {
            tables: Vec::new(),
            failed: Vec::new(),
            drained,
        };
        for commit in function.commit(tables).await? {
            match commit.result {
                Ok(report) => commits.tables.push(TableCommit::new(commit.table, report)),
                Err(error) => commits.failed.push(FailedCommit {
                    table: commit.table,
                    error: ErrorDocument::from(&error),
                    text: error_text(&error),
                    outcome: Outcome::of(error.kind()),
                }),
            }
        }
        Ok(commits)
    }

    /// Failures go before questions.
    pub(crate) fn outcome(&self) -> Outcome {
        let failed = self.failed.iter().map(|failed| failed.outcome);
        let stopped = self.drained.stopped.iter().map(|stopped| stopped.outcome);
        let asks = self.tables.iter().any(|table| !table.suspended.is_empty());
        let asks = asks.then_some(Outcome::Suspended);
        let found: Vec<Outcome> = failed.chain(stopped).chain(asks).collect();
        let worst = found.iter().find(|outcome| **outcome != Outcome::Suspended);
        worst.or(found.first()).copied().unwrap_or(Outcome::Done)
    }

    /// What went wrong, table by table and topic by topic.
    pub(crate) fn problems(&self) -> String {
        let mut text = String::new();
        for stopped in &self.drained.stopped {
            text.push_str(&format!(
                "{} stays parked\n{}",
                plain(stopped.topic.as_str()),
                indented(&stopped.text)
            ));
        }
        for failed in &self.failed {
            text.push_str(&format!(
                "{} was not committed\n{}",
                failed.table,
                indented(&failed.text)
            ));
        }
        text
    }
}

impl From<(SourceName, TopicName, Error)> for StoppedDrain {
    fn from((source, topic, error): (SourceName, TopicName, Error)) -> Self {
        Self {
            source,
            topic,
            error: ErrorDocument::from(&error),
            text: error_text(&error),
            outcome: Outcome::of(error.kind()),
        }
    }
}

impl TableCommit {
    pub(crate) fn new(table: TableName, report: CommitReport) -> Self {
        let (mut waiting, mut waiting_text) = (BTreeMap::new(), BTreeMap::new());
        for claim in &report.waiting {
            let (name, text) = waiting_for(claim.reason);
            *waiting.entry(name).or_insert(0) += 1;
            waiting_text.insert(name, text);
        }
        let sum = |count: fn(&Committed) -> u64| report.commits.iter().map(count).sum();
        Self {
            table,
            rows: sum(|commit| commit.rows),
            files: sum(|commit| commit.files),
            bytes: sum(|commit| commit.bytes),
            dead_letters: report.dead_letters,
            redelivered: report.dropped.len() as u64,
            commits: report
                .commits
                .iter()
                .map(|commit| CommitDocument {
                    commit: commit.commit,
                    snapshot_id: commit.snapshot_id,
                    rows: commit.rows,
                    files: commit.files,
                    bytes: commit.bytes,
                    dead_letters: commit.dead_letters,
                    descriptors: commit.descriptors,
                })
                .collect(),
            dropped: report
                .dropped
                .into_iter()
                .map(|(id, judgement)| Dropped { id, judgement })
                .collect(),
            quarantined: report
                .quarantined
                .into_iter()
                .map(|(id, reason)| Quarantined { id, reason })
                .collect(),
            unreadable: report
                .unreadable
                .into_iter()
                .map(|(id, reason)| Unreadable { id, reason })
                .collect(),
            suspended: report
                .suspended
                .into_iter()
                .map(|suspension| SuspendedDocument {
                    source: suspension.log.source,
                    topic: suspension.log.topic,
                    cause: Cause::Commit(suspension.cause).as_str(),
                    message: suspension.message,
                })
                .collect(),
            waiting,
            waiting_text,
            conflicts: report.conflicts,
        }
    }

    /// What is out of the ordinary, a line each.
    pub(crate) fn remarks(&self) -> String {
        let mut text = String::new();
        if self.redelivered > 0 {
            text.push_str(&format!(
                "{} delivered again, already in the table; kept as dropped for 14 days\n",
                units::counted(self.redelivered, "descriptor")
            ));
        }
        for quarantined in &self.quarantined {
            text.push_str(&format!(
                "in quarantine: {}, {}\n",
                quarantined.id,
                plain(&quarantined.reason)
            ));
        }
        for unreadable in &self.unreadable {
            text.push_str(&format!(
                "stopped by {id}: {}; or set it aside with `frazil pending quarantine {id}`\n",
                plain(&unreadable.reason),
                id = unreadable.id,
            ));
        }
        for (reason, claims) in &self.waiting {
            let why = self.waiting_text.get(reason).copied().unwrap_or(reason);
            text.push_str(&format!("pending: {} {why}\n", units::counted(*claims, "claim")));
        }
        for suspended in &self.suspended {
            text.push_str(&format!(
                "suspended: {} ({}): {}\n",
                plain(suspended.topic.as_str()),
                suspended.cause,
                plain(&suspended.message)
            ));
        }
        text
    }
}

/// A wait: its stable name, and as people read it.
fn waiting_for(reason: WaitReason) -> (&'static str, &'static str) {
    match reason {
        WaitReason::Unreadable => (
            "unreadable",
            "behind a descriptor that cannot be read (`frazil pending` says which)",
        ),
        WaitReason::Suspended => ("suspended", "of a suspended topic"),
        WaitReason::HigherEpoch => (
            "higher_epoch",
            "of a life of the topic that the table does not know yet",
        ),
        WaitReason::Overlap => ("overlap", "for the next commit to compare them"),
        WaitReason::Predecessor => ("predecessor", "behind offsets that are pending or parked"),
        WaitReason::LateListing => (
            "late_listing",
            "for the next commit: they came while this one was listing",
        ),
        WaitReason::Bound => ("bound", "for the next commit: this one took enough"),
    }
}

impl Document for Commits {
    fn to_text(&self, _: Option<usize>) -> String {
        let mut text = self.problems();
        if self.tables.is_empty() && text.is_empty() {
            return "no tables\n".to_owned();
        }
        if self.drained.events > 0 {
            text.push_str(&format!(
                "{} ingested\n",
                units::counted(self.drained.events, "parked event")
            ));
        }
        for table in &self.tables {
            let what = match (table.commits.len(), table.rows) {
                (0, _) => "nothing to commit".to_owned(),
                (commits, rows) => format!(
                    "{} in {}, {} in {}",
                    units::counted(rows, "row"),
                    units::counted(table.files, "file"),
                    units::bytes(table.bytes),
                    units::counted(commits as u64, "commit"),
                ),
            };
            let letters = match table.dead_letters {
                0 => String::new(),
                letters => format!(", {}", units::counted(letters, "dead letter")),
            };
            text.push_str(&format!(
                "{}  {what}{letters}\n{}",
                table.table,
                indented(&table.remarks())
            ));
        }
        text
    }
}
