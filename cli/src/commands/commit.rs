use std::collections::BTreeMap;

use frazil_core::{Result, SourceName, TableName, TopicName};
use frazil_table::inspection::{TableKind, list_tables};
use frazil_table::plan::WaitReason;
use frazil_table::{Cause, CommitReport, Committed, Judgement, Warehouse};
use serde::Serialize;
use uuid::Uuid;

use crate::document::{indented, plain};
use crate::failure::Outcome;
use crate::output::{Document, Output};
use crate::progress::Progress;
use crate::session::{Handlers, Session, find_table};
use crate::units;

/// What commits did.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Commits {
    tables: Vec<TableCommit>,
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
pub(crate) struct SuspendedDocument {
    source: SourceName,
    topic: TopicName,
    cause: &'static str,
    message: String,
}

pub(crate) async fn commit(session: &Session, table: Option<&str>, output: &Output) -> Result<Outcome> {
    let warehouse = session.existing_warehouse()?;
    let table = match table {
        None => None,
        Some(name) => Some(find_table(&warehouse, name).await?),
    };
    let progress = session.progress();
    let mut handlers = Handlers::default();
    let tables = commit_tables(session, &mut handlers, &warehouse, table.as_slice(), &progress).await?;
    drop(progress);
    let commits = Commits { tables };
    output.print(&commits)?;
    Ok(outcome_of(&commits.tables))
}

/// Commits these tables, or all when there are none, and ingests what was parked.
pub(crate) async fn commit_tables(
    session: &Session,
    handlers: &mut Handlers,
    warehouse: &Warehouse,
    tables: &[TableName],
    progress: &Progress,
) -> Result<Vec<TableCommit>> {
    progress.say("committing");
    let ingest = session.ingest(handlers, warehouse, None);
    let _ = ingest;
    let mut names = tables.to_vec();
    if names.is_empty() {
        for (name, overview) in list_tables(warehouse).await? {
            if overview.is_ok_and(|overview| overview.kind == TableKind::Rows) {
                names.push(name);
            }
        }
    }
    let mut commits = Vec::new();
    for name in names {
        let report = frazil_table::commit_table(warehouse, &name, &Default::default()).await?;
        commits.push(TableCommit::new(name, report));
    }
    Ok(commits)
}

/// Suspended as soon as a person must decide about one of them.
pub(crate) fn outcome_of(tables: &[TableCommit]) -> Outcome {
    if tables.iter().any(|table| !table.suspended.is_empty()) {
        Outcome::Suspended
    } else {
        Outcome::Done
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
        if self.tables.is_empty() {
            return "no tables\n".to_owned();
        }
        let mut text = String::new();
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
