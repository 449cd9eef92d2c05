use std::collections::BTreeMap;
use std::path::PathBuf;

use frazil_core::{Result, TableName};
use frazil_table::Warehouse;
use frazil_table::inspection::{ScanRequest, table_overview};
use serde::Serialize;

use super::commit::{Commits, TableCommit};
use super::ingest::{Ingested, ingest_events};
use super::show::ShownRows;
use crate::document::{indented, pairs, plain};
use crate::failure::Outcome;
use crate::output::{Document, Output};
use crate::queries::Queries;
use crate::session::{EventFile, Handlers, Session};
use crate::units;

/// How many rows are shown of each table.
const ROWS_SHOWN: usize = 10;

/// Events, from files to rows.
#[derive(Debug, Serialize)]
struct Ran {
    /// The tables of the events.
    tables: Vec<TableRun>,
    ingested: Ingested,
    /// What could not be committed. The commits that were made stand at their tables.
    commits: Commits,
}

/// What a run did to one table, and how to look at it.
#[derive(Debug, Serialize)]
struct TableRun {
    table: TableName,
    /// The topics that the events brought for it.
    topics: Vec<String>,
    /// Records in the events.
    records: u64,
    /// Bytes of keys and values as Kafka holds them.
    bytes: u64,
    /// Records of these events that became dead letters.
    dead_letters: u64,
    /// Records that were skipped on purpose.
    skipped: u64,
    /// Records that are parked: their topic is suspended.
    parked: u64,
    /// What the commit did; rows that were pending before count too.
    committed: TableCommit,
    /// The table as it is now.
    snapshot_id: Option<i64>,
    metadata_location: String,
    total_rows: u64,
    total_files: u64,
    total_bytes: u64,
    /// The first rows.
    sample: ShownRows,
    /// Lines to copy.
    queries: Queries,
}

pub(crate) async fn run(session: &Session, events: &[PathBuf], output: &Output) -> Result<Outcome> {
    let events = EventFile::expand(events)?;
    let warehouse = session.warehouse().await?;
    let progress = session.progress();
    let mut handlers = Handlers::default();
    let ingested = ingest_events(session, &mut handlers, &warehouse, &events, &progress).await;

    let counts = Counts::by_table(&ingested);
    let names: Vec<TableName> = counts.keys().cloned().collect();
    // Tables of an event that failed half-way may have something pending as well.
    let names = (!names.is_empty()).then_some(names.as_slice());
    let mut commits = match names {
        Some(names) => {
            let event = events.first().and_then(EventFile::path);
            let ingest = session.ingest(&mut handlers, &warehouse, event)?;
            Commits::make(session, ingest, &warehouse, Some(names), &progress).await?
        }
        None => Commits::default(),
    };
    let outcome = match (ingested.outcome(), commits.outcome()) {
        (Outcome::Done, committed) => committed,
        (Outcome::Suspended, committed @ (Outcome::Failed | Outcome::Invalid)) => committed,
        (ingested, _) => ingested,
    };
    progress.say("reading rows");
    let mut tables = Vec::new();
    for (name, counts) in counts {
        let Some(at) = commits.tables.iter().position(|commit| commit.table == name) else {
            continue;
        };
        let committed = commits.tables.swap_remove(at);
        // A table that does not exist yet: everything of it is parked.
        if let Some(table) = describe(session, &warehouse, name, counts, committed).await? {
            tables.push(table);
        }
    }
    let ran = Ran {
        tables,
        ingested,
        commits,
    };
    drop(progress);
    output.print(&ran)?;
    Ok(outcome)
}

/// What events brought for a table.
#[derive(Debug, Default)]
struct Counts {
    topics: Vec<String>,
    records: u64,
    bytes: u64,
    dead_letters: u64,
    skipped: u64,
    parked: u64,
}

impl Counts {
    fn by_table(ingested: &Ingested) -> BTreeMap<TableName, Self> {
        let mut tables: BTreeMap<TableName, Self> = BTreeMap::new();
        for topic in ingested.topics() {
            let name = topic.topic.to_string();
            for staged in &topic.tables {
                let counts = tables.entry(staged.table.clone()).or_default();
                counts.come_from(&name);
                counts.records += staged.records;
                counts.bytes += staged.bytes;
                counts.dead_letters += staged.dead_letters;
            }
            let is_parked = matches!(topic.outcome, frazil_ingest::TopicOutcome::Parked { .. });
            // Where nothing was staged the topic's own table stands for the topic.
            if topic.tables.is_empty() || topic.skipped > 0 {
                let counts = tables.entry(topic.table.clone()).or_default();
                counts.come_from(&name);
                counts.skipped += topic.skipped;
                if topic.tables.is_empty() {
                    counts.records += topic.records;
                    counts.bytes += topic.bytes;
                }
                if is_parked {
                    counts.parked += topic.records;
                }
            }
        }
        tables
    }

    fn come_from(&mut self, topic: &str) {
        if !self.topics.iter().any(|known| known == topic) {
            self.topics.push(topic.to_owned());
        }
    }
}

async fn describe(
    session: &Session,
    warehouse: &Warehouse,
    name: TableName,
    counts: Counts,
    committed: TableCommit,
) -> Result<Option<TableRun>> {
    let Some(table) = warehouse.load(&name).await? else {
        return Ok(None);
    };
    let request = ScanRequest {
        snapshot_id: None,
        columns: Vec::new(),
        limit: ROWS_SHOWN,
    };
    let sample = ShownRows::read(warehouse, &table, &request).await?;
    let overview = table_overview(&table);
    let reached = session.reached(warehouse);
    let queries = Queries::new(
        &name,
        &overview.metadata_location,
        &reached,
        warehouse.layout.warehouse(),
    );
    Ok(Some(TableRun {
        table: name,
        topics: counts.topics,
        records: counts.records,
        bytes: counts.bytes,
        dead_letters: counts.dead_letters,
        skipped: counts.skipped,
        parked: counts.parked,
        committed,
        snapshot_id: overview.snapshot.map(|snapshot| snapshot.snapshot_id),
        metadata_location: overview.metadata_location,
        total_rows: overview.rows,
        total_files: overview.files,
        total_bytes: overview.bytes,
        sample,
        queries,
    }))
}

impl Document for Ran {
    fn to_text(&self, width: Option<usize>) -> String {
        let mut text = String::new();
        // What went well is in the tables; what did not is said first.
        if self.ingested.outcome() != Outcome::Done || self.tables.is_empty() {
            text.push_str(&self.ingested.to_text(width));
            text.push('\n');
        }
        let problems = self.commits.problems();
        if !problems.is_empty() {
            text.push_str(&format!("{problems}\n"));
        }
        for (index, table) in self.tables.iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            text.push_str(&table.to_text(width));
        }
        text
    }
}

impl TableRun {
    fn to_text(&self, width: Option<usize>) -> String {
        let some = |number: u64| {
            if number == 0 {
                String::new()
            } else {
                units::count(number)
            }
        };
        let letters = match self.dead_letters {
            0 => "0".to_owned(),
            letters => format!("{} in {}_dead_letters", units::count(letters), self.table),
        };
        let snapshot = match self.snapshot_id {
            None => "none yet".to_owned(),
            Some(id) => format!("{id}, {} in all", units::counted(self.total_rows, "row")),
        };
        let mut text = format!("{} ← {}\n", self.table, plain(&self.topics.join(", ")));
        text.push_str(&indented(&pairs([
            (
                "records read",
                format!("{} ({})", units::count(self.records), units::bytes(self.bytes)),
            ),
            ("rows written", units::count(self.committed.rows)),
            ("dead letters", letters),
            ("skipped", some(self.skipped)),
            ("parked", some(self.parked)),
            (
                "files",
                format!(
                    "{}, {}",
                    units::count(self.committed.files),
                    units::bytes(self.committed.bytes)
                ),
            ),
            ("snapshot", snapshot),
        ])));
        text.push_str(&indented(&self.committed.remarks()));
        text.push('\n');
        text.push_str(&self.sample.to_text(width));
        text.push('\n');
        text.push_str(&self.queries.to_text());
        text
    }
}
