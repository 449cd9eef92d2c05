use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use frazil_core::{
    Epoch, Error, ErrorKind, IntervalSet, Offset, OffsetRange, Partition, Result, SourceName, TableName,
    TopicName,
};
use futures::TryStreamExt;
use iceberg::spec::DataFile;
use serde::Serialize;

use super::scan::RowScan;
use super::tally::{OffsetTally, Tallied, difference};
use crate::dead_letters;
use crate::inspect::KafkaFields;
use crate::ledger::{Ledger, PartitionLedger};
use crate::outbox;
use crate::rows::{MAX_FILE_BYTES, data_file_from_json, read_data_file};
use crate::snapshot::spec_of;
use crate::warehouse::{LoadedTable, Warehouse};

mod together;

use together::{Together, is_of_one_type};

/// How many ranges of each kind are named per partition; all are counted.
pub const MAX_RANGES_SHOWN: usize = 16;

/// How often the tables are read again because a commit came between.
const MAX_ATTEMPTS: u32 = 16;

/// Rows decoded at a time: three narrow columns.
const BATCH_ROWS: usize = 16_384;

const RECONCILE: &str = "reconcile the topic";

/// Rows and dead letters of a topic against the ledgers of its tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reconciliation {
    /// The source.
    pub source: SourceName,
    /// The topic.
    pub topic: TopicName,
    /// The topic's present life.
    pub epoch: Epoch,
    /// Per table.
    pub tables: Vec<TableReconciliation>,
    /// Where each type of record has a table of its own: all of these tables as one. A record is in one of them, so that
    /// gaps, and offsets that two tables have, can only be seen here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<PartitionReconciliation>,
}

/// A table's part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableReconciliation {
    /// The table.
    pub table: TableName,
    /// The snapshot that was read.
    pub snapshot_id: Option<i64>,
    /// The commit whose ledger was read.
    pub commit: u64,
    /// Per life of the topic and partition.
    pub partitions: Vec<PartitionReconciliation>,
}

/// A partition's part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartitionReconciliation {
    /// The topic's life.
    pub epoch: Epoch,
    /// The partition.
    pub partition: Partition,
    /// Rows in the table.
    pub rows: u64,
    /// Dead letters, those on their way to their table included.
    pub dead_letters: u64,
    /// The offset after the highest that the ledger says was taken. `None`: the ledger says nothing of this life.
    pub next: Option<Offset>,
    /// How many offsets the ledger says were taken.
    pub taken: Option<u64>,
    /// Offsets taken that are neither row nor dead letter. Kafka leaves such gaps by itself (compaction, transaction
    /// markers), and so do records skipped on purpose and rows deleted later.
    pub gaps: u64,
    /// The first of them.
    pub gap_ranges: Vec<OffsetRange>,
    /// Offsets that are there more than once: always a fault.
    pub doubles: u64,
    /// The first of them.
    pub double_ranges: Vec<OffsetRange>,
    /// Offsets that are there and that the ledger does not say were taken: always a fault.
    pub unknown: u64,
    /// The first of them.
    pub unknown_ranges: Vec<OffsetRange>,
}

impl Reconciliation {
    /// Offsets that are there twice, or that no ledger knows.
    pub fn faults(&self) -> u64 {
        self.partitions()
            .chain(&self.together)
            .map(|partition| partition.doubles + partition.unknown)
            .sum()
    }

    /// Offsets taken that are neither row nor dead letter.
    pub fn gaps(&self) -> u64 {
        let partitions = self.partitions().chain(&self.together);
        partitions.map(|partition| partition.gaps).sum()
    }

    fn partitions(&self) -> impl Iterator<Item = &PartitionReconciliation> {
        self.tables.iter().flat_map(|table| &table.partitions)
    }
}

/// Counts the rows and dead letters of a topic, offset by offset, and compares them with the ledgers.
///
/// Reads three columns of every file of its tables and of their dead-letter tables: O(files), streamed. Memory grows
/// with the runs of consecutive offsets. Needs a tokio runtime.
pub async fn reconcile_topic(
    warehouse: &Warehouse,
    source: &SourceName,
    topic: &TopicName,
) -> Result<Reconciliation> {
    let state = warehouse.topic_state(source, topic).await?;
    if state.tables.is_empty() {
        return Err(Error::new(
            ErrorKind::Invalid,
            RECONCILE,
            "it feeds no table of this warehouse",
        )
        .with_context("source", source)
        .with_context("topic", topic)
        .with_hint("`frazil status` lists the topics that are known"));
    }
    let mut tables = Vec::new();
    let mut together = Together::default();
    for name in state.tables.keys() {
        let pair = StablePair::load(warehouse, name).await?;
        let mut count = Count::default();
        count.rows(warehouse, &pair, topic).await?;
        count.letters(warehouse, &pair, source, topic).await?;
        let log = pair.ledger.log(source, topic);
        let log = log.map(|log| (log.epoch, &log.partitions));
        let is_one_of_several = is_of_one_type(&pair.table)?;
        let partitions = if is_one_of_several {
            together.add(count, log)
        } else {
            count.compare(log)
        };
        tables.push(TableReconciliation {
            table: name.clone(),
            snapshot_id: pair.table.metadata.current_snapshot_id(),
            commit: pair.ledger.commit,
            partitions,
        });
    }
    Ok(Reconciliation {
        source: source.clone(),
        topic: topic.clone(),
        epoch: state.epoch,
        tables,
        together: together.finish(),
    })
}

/// A table, its ledger and its dead letters as they were at one moment.
struct StablePair {
    table: LoadedTable,
    ledger: Ledger,
    letters: Option<LoadedTable>,
    /// Dead letters that are accepted and not in their table.
    undelivered: Vec<DataFile>,
}

impl StablePair {
    /// A commit between two reads would make a dead letter look lost or unknown, so both are read until neither has
    /// moved.
    async fn load(warehouse: &Warehouse, name: &TableName) -> Result<Self> {
        let letters_name = name.dead_letters()?;
        for _ in 0..MAX_ATTEMPTS {
            let table = warehouse.load_existing(name).await?;
            let letters = warehouse.load(&letters_name).await?;
            let ledger = warehouse.ledger(&table).await?;
            let undelivered = undelivered(warehouse, &letters_name, letters.as_ref(), &ledger).await?;
            let same = |before: Option<&LoadedTable>, now: Option<&crate::Pointer>| {
                before.map(|table| &table.pointer) == now
            };
            let table_now = warehouse.catalog.load(name).await?;
            let letters_now = warehouse.catalog.load(&letters_name).await?;
            if same(Some(&table), table_now.as_ref()) && same(letters.as_ref(), letters_now.as_ref()) {
                return Ok(Self {
                    table,
                    ledger,
                    letters,
                    undelivered,
                });
            }
        }
        Err(
            Error::new(ErrorKind::Conflict, RECONCILE, "commits came between every time")
                .with_context("table", name)
                .with_hint("try again when the table rests for some seconds"),
        )
    }
}

async fn undelivered(
    warehouse: &Warehouse,
    name: &TableName,
    letters: Option<&LoadedTable>,
    ledger: &Ledger,
) -> Result<Vec<DataFile>> {
    let mut files = Vec::new();
    for entry in outbox::untaken(warehouse, name, ledger).await? {
        for (spec_id, json) in outbox::read_list(warehouse, &entry).await?.1 {
            let Some(letters) = letters else {
                return Err(Error::new(
                    ErrorKind::Internal,
                    RECONCILE,
                    "dead letters wait for a table that is gone",
                )
                .with_context("table", name)
                .with_hint("`frazil commit` makes it again and delivers them"));
            };
            let spec = spec_of(&letters.metadata, spec_id)?;
            files.push(data_file_from_json(&json, &spec, &dead_letters::schema())?);
        }
    }
    Ok(files)
}

/// What was counted of a partition.
#[derive(Default)]
struct Counted {
    all: OffsetTally,
    rows: u64,
    dead_letters: u64,
}

#[derive(Default)]
struct Count {
    partitions: BTreeMap<(Epoch, Partition), Counted>,
}

/// Where the columns are that say which record a row is.
struct Columns {
    epoch: String,
    partition: String,
    offset: String,
    /// Columns whose text must be this.
    only: Vec<(String, String)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Row,
    DeadLetter,
}

impl Count {
    async fn rows(&mut self, warehouse: &Warehouse, pair: &StablePair, topic: &TopicName) -> Result<()> {
        let fields = KafkaFields::of(&pair.ledger.fields)?;
        let name_of = |id: i32| {
            let name = pair.table.metadata.current_schema().name_by_field_id(id);
            name.map(str::to_owned).ok_or_else(|| {
                Error::new(
                    ErrorKind::Invalid,
                    RECONCILE,
                    format!("the column with field id {id} was dropped"),
                )
                .with_context("table", &pair.table.name)
            })
        };
        let columns = Columns {
            epoch: name_of(fields.epoch)?,
            partition: name_of(fields.partition)?,
            offset: name_of(fields.offset)?,
            only: match fields.topic {
                Some(field) => vec![(name_of(field)?, topic.to_string())],
                None => Vec::new(),
            },
        };
        self.scan(warehouse, &pair.table, &columns, Kind::Row).await
    }

    async fn letters(
        &mut self,
        warehouse: &Warehouse,
        pair: &StablePair,
        source: &SourceName,
        topic: &TopicName,
    ) -> Result<()> {
        let columns = Columns {
            epoch: "epoch".to_owned(),
            partition: "partition".to_owned(),
            offset: "offset".to_owned(),
            only: vec![
                ("source".to_owned(), source.to_string()),
                ("topic".to_owned(), topic.to_string()),
            ],
        };
        if let Some(letters) = &pair.letters {
            self.scan(warehouse, letters, &columns, Kind::DeadLetter).await?;
        }
        for file in &pair.undelivered {
            let bytes = warehouse
                .storage
                .get(file.file_path(), MAX_FILE_BYTES as u64)
                .await?;
            let bytes = bytes.ok_or_else(|| {
                Error::new(
                    ErrorKind::Internal,
                    RECONCILE,
                    "a file of dead letters is missing",
                )
                .with_context("file", file.file_path())
            })?;
            for batch in read_data_file(bytes, Some(&dead_letters::field_ids::PLACE))? {
                self.add(&batch, &columns, Kind::DeadLetter)?;
            }
        }
        Ok(())
    }

    async fn scan(
        &mut self,
        warehouse: &Warehouse,
        table: &LoadedTable,
        columns: &Columns,
        kind: Kind,
    ) -> Result<()> {
        let mut names = vec![
            columns.epoch.clone(),
            columns.partition.clone(),
            columns.offset.clone(),
        ];
        names.extend(columns.only.iter().map(|(name, _)| name.clone()));
        let scan = RowScan::new(warehouse, table)?;
        let mut batches = scan.rows(scan.files(None, &names).await?, BATCH_ROWS)?;
        while let Some(batch) = batches.try_next().await? {
            self.add(&batch, columns, kind)
                .map_err(|error| error.with_context("table", &table.name))?;
        }
        Ok(())
    }

    fn add(&mut self, batch: &RecordBatch, columns: &Columns, kind: Kind) -> Result<()> {
        let damaged = |what: &str| {
            Error::new(
                ErrorKind::Internal,
                RECONCILE,
                format!("rows do not say which record they are: {what}"),
            )
        };
        let column = |name: &str| batch.column_by_name(name).ok_or_else(|| damaged(name));
        let epochs = column(&columns.epoch)?;
        let epochs = epochs
            .as_primitive_opt::<Int32Type>()
            .ok_or_else(|| damaged(&columns.epoch))?;
        let partitions = column(&columns.partition)?;
        let partitions = partitions
            .as_primitive_opt::<Int32Type>()
            .ok_or_else(|| damaged(&columns.partition))?;
        let offsets = column(&columns.offset)?;
        let offsets = offsets
            .as_primitive_opt::<Int64Type>()
            .ok_or_else(|| damaged(&columns.offset))?;
        let mut only = Vec::new();
        for (name, wanted) in &columns.only {
            let texts = column(name)?
                .as_string_opt::<i32>()
                .ok_or_else(|| damaged(name))?;
            only.push((texts, wanted.as_str()));
        }
        if epochs.null_count() + partitions.null_count() + offsets.null_count() > 0 {
            return Err(damaged("some are null"));
        }
        let mut found: BTreeMap<(Epoch, Partition), Vec<i64>> = BTreeMap::new();
        for row in 0..batch.num_rows() {
            if only
                .iter()
                .all(|(texts, wanted)| texts.is_valid(row) && texts.value(row) == *wanted)
            {
                let log = (Epoch(epochs.value(row)), Partition(partitions.value(row)));
                found.entry(log).or_default().push(offsets.value(row));
            }
        }
        for (log, mut offsets) in found {
            let counted = self.partitions.entry(log).or_default();
            match kind {
                Kind::Row => counted.rows += offsets.len() as u64,
                Kind::DeadLetter => counted.dead_letters += offsets.len() as u64,
            }
            counted.all.add(&mut offsets)?;
        }
        Ok(())
    }

    /// Compares with the ledger: its log's epoch and partitions.
    fn compare(
        mut self,
        ledger: Option<(Epoch, &BTreeMap<Partition, PartitionLedger>)>,
    ) -> Vec<PartitionReconciliation> {
        if let Some((epoch, partitions)) = ledger {
            for partition in partitions.keys() {
                self.partitions.entry((epoch, *partition)).or_default();
            }
        }
        self.partitions
            .into_iter()
            .map(|((epoch, partition), counted)| {
                let known = match ledger {
                    Some((present, partitions)) if epoch == present => {
                        Known::Present(partitions.get(&partition))
                    }
                    // The ledger keeps the present life only.
                    Some((present, _)) if epoch < present => Known::Past,
                    Some(_) | None => Known::Present(None),
                };
                compare_partition(epoch, partition, counted, known)
            })
            .collect()
    }
}

/// What the ledger has on a partition.
#[derive(Clone, Copy)]
enum Known<'a> {
    /// It is of the present life; `None`: nothing was taken of it.
    Present(Option<&'a PartitionLedger>),
    /// It is of an earlier life, of which the ledger keeps nothing.
    Past,
}

fn compare_partition(
    epoch: Epoch,
    partition: Partition,
    counted: Counted,
    known: Known<'_>,
) -> PartitionReconciliation {
    let Tallied {
        rows: _,
        seen,
        doubles,
    } = counted.all.finish();
    let (next, taken, gaps, unknown) = match known {
        Known::Past => (None, None, IntervalSet::default(), IntervalSet::default()),
        Known::Present(None) => (None, None, IntervalSet::default(), seen),
        Known::Present(Some(ledger)) => {
            let taken = ledger.taken();
            let mut allowed = taken.clone();
            // What was taken there the ledger has forgotten; a backfill looks at the rows themselves.
            ledger
                .uncertain
                .ranges()
                .iter()
                .for_each(|range| allowed.insert(*range));
            let (gaps, unknown) = (difference(&taken, &seen), difference(&seen, &allowed));
            (Some(ledger.next), Some(taken.span()), gaps, unknown)
        }
    };
    PartitionReconciliation {
        epoch,
        partition,
        rows: counted.rows,
        dead_letters: counted.dead_letters,
        next,
        taken,
        gaps: gaps.span(),
        gap_ranges: first_ranges(&gaps),
        doubles: doubles.span(),
        double_ranges: first_ranges(&doubles),
        unknown: unknown.span(),
        unknown_ranges: first_ranges(&unknown),
    }
}

fn first_ranges(set: &IntervalSet) -> Vec<OffsetRange> {
    set.ranges().iter().take(MAX_RANGES_SHOWN).copied().collect()
}

#[cfg(test)]
mod tests;
