use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use arrow_array::RecordBatch;
use async_trait::async_trait;
use bytes::Bytes;
use frazil_core::{Epoch, Error, ErrorKind, IntervalSet, Offset, OffsetRange, Partition, Result, TableName};
use iceberg::spec::DataFile;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::commit::{change_ledger, has_landed, history_moved, moved, write_ledger};
use crate::dead_letters::{self, DeadLetter};
use crate::inspect::{KafkaFields, files_within};
use crate::layout::LogName;
use crate::ledger::{Ledger, RetryEntry};
use crate::metadata::commit_time;
use crate::outbox::{self, new_snapshot_id};
use crate::plan::Inspect;
use crate::properties;
use crate::rows::{FileSettings, filter_rows, read_data_file};
use crate::snapshot::{FilesBySpec, WrittenManifests, live_files, name_snapshot, stage_append};
use crate::stage::FileWriter;
use crate::warehouse::{LoadedTable, Warehouse};

mod letters;

use letters::remove_letters;

/// How often one swap is tried before the next retry takes over.
const MAX_ATTEMPTS: u32 = 16;

/// One job moves at most so many dead letters: they are all in memory, and one snapshot holds them.
pub const MAX_RETRIED: usize = 10_000;

/// One job reads at most so many bytes of dead letters, but always one file.
const MAX_RETRIED_BYTES: usize = 64 * 1024 * 1024;

/// The list of one job's dead letters is at most so long.
const MAX_LIST_BYTES: u64 = 64 * 1024 * 1024;

/// Reads dead letters again: the ingest handler, whose schemas and settings may have changed since.
#[async_trait]
pub trait LetterReader: Send + Sync {
    /// Reads the dead letters of one log.
    async fn read_again(&self, log: &LogName, letters: &[DeadLetter]) -> Result<Reread>;
}

/// What became of the dead letters of one log when they were read again.
#[derive(Debug, Default)]
pub struct Reread {
    /// What can be read now, as rows of tables that have a place for them.
    pub rows: Vec<ReadAgain>,
    /// What cannot be read now either: code and reason of each.
    pub poison: Vec<(String, String)>,
}

/// Dead letters that can be read now, as rows of one table.
#[derive(Debug)]
pub struct ReadAgain {
    /// The table, as it was read after any schema change.
    pub table: TableName,
    /// The rows, in the table's schema.
    pub rows: RecordBatch,
    /// For each row, the index of its dead letter.
    pub letters: Vec<usize>,
}

/// What a retry did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetryReport {
    /// Dead letters that were looked at.
    pub read: u64,
    /// Dead letters that are rows now.
    pub moved: u64,
    /// Dead letters of interrupted retries, which were rows already and are now gone from the dead letters.
    pub finished: u64,
    /// Snapshots that were added, by table.
    pub snapshots: Vec<(TableName, i64)>,
    /// Why dead letters stay, by code.
    pub left: BTreeMap<String, LettersLeft>,
}

/// Dead letters that stay for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LettersLeft {
    /// How many.
    pub letters: u64,
    /// The reason of the first of them, in words.
    pub reason: String,
}

/// The code of dead letters that can be read, and whose offsets the table has not taken.
const NOT_TAKEN: &str = "retry.not_taken";

impl RetryReport {
    fn leave(&mut self, code: impl Into<String>, letters: u64, reason: impl FnOnce() -> String) {
        if letters > 0 {
            let left = self.left.entry(code.into()).or_insert_with(|| LettersLeft {
                letters: 0,
                reason: reason(),
            });
            left.letters += letters;
        }
    }
}

/// Which record a dead letter is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Place {
    #[serde(flatten)]
    pub(crate) log: LogName,
    pub(crate) partition: Partition,
    pub(crate) offset: Offset,
}

/// The dead letters of one job, kept until they are out of their table.
#[derive(Debug, Serialize, Deserialize)]
struct JobList {
    format: u32,
    dead_letters: TableName,
    places: BTreeSet<Place>,
}

/// Reads the dead letters of a table again and moves those that can be read now into it, each once.
///
/// Two tables are two swaps: the first adds the rows and records the job in the ledger, the second takes the letters
/// away, and then the ledger forgets the job. A crash between them repeats nothing: every retry first finishes what is
/// recorded, and no row is added whose offset the metadata being replaced has already. Between the two swaps a record
/// is a row and a dead letter. O(dead letters).
pub async fn retry_dead_letters(
    warehouse: &Warehouse,
    name: &TableName,
    wanted: &(dyn Fn(&DeadLetter) -> bool + Sync),
    reader: &dyn LetterReader,
) -> Result<RetryReport> {
    let mut report = RetryReport::default();
    let letters_name = name.dead_letters()?;
    warehouse.load_existing(name).await?;
    outbox::deliver(warehouse, name, &letters_name).await?;
    report.finished += finish_recorded(warehouse, name).await?;
    let Some(letters) = warehouse.load(&letters_name).await? else {
        return Ok(report);
    };
    let retry = Retry {
        warehouse,
        letters: &letters_name,
        reader,
    };
    let mut job: BTreeMap<LogName, Vec<DeadLetter>> = BTreeMap::new();
    let (mut count, mut bytes) = (0, 0);
    for file in live_files(warehouse, &letters, |_| true).await? {
        for (source, topic, epoch, letter) in read_letters(warehouse, &file).await? {
            if !wanted(&letter) {
                continue;
            }
            count += 1;
            bytes += letter.key.as_ref().map_or(0, Vec::len) + letter.value.as_ref().map_or(0, Vec::len);
            let log = LogName { source, topic, epoch };
            job.entry(log).or_default().push(letter);
            if count >= MAX_RETRIED {
                retry.run(std::mem::take(&mut job), &mut report).await?;
                (count, bytes) = (0, 0);
            }
        }
        if bytes >= MAX_RETRIED_BYTES {
            retry.run(std::mem::take(&mut job), &mut report).await?;
            (count, bytes) = (0, 0);
        }
    }
    retry.run(job, &mut report).await?;
    Ok(report)
}

/// The dead letters of a data file.
pub(crate) async fn read_letters(
    warehouse: &Warehouse,
    file: &DataFile,
) -> Result<Vec<(frazil_core::SourceName, frazil_core::TopicName, Epoch, DeadLetter)>> {
    let mut letters = Vec::new();
    for batch in read_data_file(
        warehouse.data_file(file.file_path(), "restore the file").await?,
        None,
    )? {
        letters.extend(dead_letters::from_batch(&batch)?);
    }
    Ok(letters)
}

/// Takes the dead letters of recorded jobs away and forgets the jobs. Says how many were taken away.
async fn finish_recorded(warehouse: &Warehouse, name: &TableName) -> Result<u64> {
    let Some(table) = warehouse.load(name).await? else {
        return Ok(0);
    };
    let mut removed = 0;
    for job in warehouse.ledger(&table).await?.retries {
        let list = read_list(warehouse, &job).await?;
        removed += finish(warehouse, name, &list.dead_letters, &job, &list.places).await?;
    }
    Ok(removed)
}

async fn read_list(warehouse: &Warehouse, job: &RetryEntry) -> Result<JobList> {
    let failed = |message: String| {
        Error::new(ErrorKind::Internal, "read the list of a retry", message)
            .with_context("list", &job.list)
            .with_hint("restore the file")
    };
    let bytes = warehouse.storage.get(&job.list, MAX_LIST_BYTES).await?;
    let bytes = bytes.ok_or_else(|| failed("it is missing".to_owned()))?;
    serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string()).with_source(error))
}

async fn finish(
    warehouse: &Warehouse,
    name: &TableName,
    letters: &TableName,
    job: &RetryEntry,
    places: &BTreeSet<Place>,
) -> Result<u64> {
    let removed = remove_letters(warehouse, letters, places).await?;
    let forget = |ledger: &mut Ledger| {
        let before = ledger.retries.len();
        ledger.retries.retain(|known| known.id != job.id);
        Ok(ledger.retries.len() != before)
    };
    change_ledger(warehouse, name, forget).await?;
    Ok(removed)
}

/// What the table has taken of a log; `None`: all of it, since it is of an earlier life, of which nothing comes any more.
fn taken(ledger: &Ledger, log: &LogName) -> Option<BTreeMap<Partition, IntervalSet>> {
    let known = ledger.log(&log.source, &log.topic);
    match known {
        Some(known) if known.epoch > log.epoch => None,
        Some(known) => {
            let partitions = known.partitions.iter();
            Some(partitions.map(|(of, known)| (*of, known.taken())).collect())
        }
        None => Some(BTreeMap::new()),
    }
}

/// The dead letters of one job that are rows of the table now, and the job if some became rows by it.
struct Added {
    job: Option<RetryEntry>,
    places: BTreeSet<Place>,
    /// How many the table has not taken, which a delivery may still bring.
    not_taken: u64,
}

struct Retry<'a> {
    warehouse: &'a Warehouse,
    letters: &'a TableName,
    reader: &'a dyn LetterReader,
}

impl Retry<'_> {
    async fn run(&self, letters: BTreeMap<LogName, Vec<DeadLetter>>, report: &mut RetryReport) -> Result<()> {
        for (log, letters) in letters {
            report.read += letters.len() as u64;
            let reread = self.reader.read_again(&log, &letters).await?;
            for (code, reason) in reread.poison {
                report.leave(code, 1, || reason);
            }
            for found in reread.rows {
                if found.letters.is_empty() {
                    continue;
                }
                // Another table of the topic may have a job of its own that was interrupted.
                report.finished += finish_recorded(self.warehouse, &found.table).await?;
                let added = self.add_rows(&log, &letters, &found, report).await?;
                report.leave(NOT_TAKEN, added.not_taken, || {
                    format!(
                        "{} has not taken these offsets: a delivery may still bring them; commit what is pending, and \
                         retry",
                        found.table
                    )
                });
                let removed = match added {
                    Added { places, .. } if places.is_empty() => 0,
                    Added {
                        job: Some(job),
                        places,
                        ..
                    } => finish(self.warehouse, &found.table, self.letters, &job, &places).await?,
                    Added {
                        job: None, places, ..
                    } => remove_letters(self.warehouse, self.letters, &places).await?,
                };
                report.moved += removed;
            }
        }
        Ok(())
    }

    /// Adds the rows that the table does not have, and records the job, in one swap.
    async fn add_rows(
        &self,
        log: &LogName,
        letters: &[DeadLetter],
        found: &ReadAgain,
        report: &mut RetryReport,
    ) -> Result<Added> {
        let warehouse = self.warehouse;
        for attempt in 0..MAX_ATTEMPTS {
            if attempt > 0 {
                let (base, limit) = (Duration::from_millis(50), Duration::from_secs(5));
                warehouse.environment.backoff(attempt, base, limit).await;
            }
            let table = warehouse.load_existing(&found.table).await?;
            let mut ledger = warehouse.ledger(&table).await?;
            if let Some(message) = moved(warehouse, &table, &mut ledger).await? {
                if warehouse.catalog.load(&found.table).await?.as_ref() != Some(&table.pointer) {
                    continue;
                }
                return Err(history_moved(&found.table, message));
            }
            let fields = KafkaFields::of(&ledger.fields)?;
            // What the table has not taken yet, a delivery may still bring: then the row would be there twice.
            let taken = taken(&ledger, log);
            let is_taken = |partition: Partition, offset: Offset| {
                taken
                    .as_ref()
                    .is_none_or(|of| of.get(&partition).is_some_and(|taken| taken.contains(offset)))
            };
            let places = found.letters.iter().map(|at| Place {
                log: log.clone(),
                partition: letters[*at].partition,
                offset: letters[*at].offset,
            });
            let (places, others): (BTreeSet<Place>, BTreeSet<Place>) =
                places.partition(|place| is_taken(place.partition, place.offset));
            let not_taken = others.len() as u64;
            let mut rows = self.missing(&table, fields, log, &found.rows).await?;
            rows = filter_rows(&rows, fields.partition, fields.offset, &is_taken)?;
            if rows.is_empty() {
                return Ok(Added {
                    job: None,
                    places,
                    not_taken,
                });
            }
            let id = warehouse.environment.new_uuid();
            // The list is this attempt's own: what the table has taken may be more by now.
            let job = self.write_list(table.metadata.uuid(), id, &places).await?;
            let mut files = Vec::new();
            for (number, rows) in rows.iter().enumerate() {
                let id = match number {
                    0 => id,
                    _ => warehouse.environment.new_uuid(),
                };
                let writer = FileWriter {
                    warehouse,
                    schema: table.metadata.current_schema(),
                    spec: table.metadata.default_partition_spec(),
                    settings: &FileSettings::default(),
                    location: table.metadata.location(),
                    id,
                };
                let written = writer.write(rows, fields.partition).await?;
                files.extend(written.into_iter().map(|file| file.data_file));
            }
            let spec_id = table.metadata.default_partition_spec_id();
            let files = FilesBySpec::from([(spec_id, files)]);
            if let Some(snapshot_id) = self.swap(&table, ledger, &files, &job).await? {
                report.snapshots.push((found.table.clone(), snapshot_id));
                return Ok(Added {
                    job: Some(job),
                    places,
                    not_taken,
                });
            }
        }
        Err(Error::new(
            ErrorKind::Conflict,
            "retry dead letters",
            format!("others were first {MAX_ATTEMPTS} times"),
        )
        .with_context("table", &found.table)
        .with_hint("try again"))
    }

    /// The rows whose offsets the table does not hold in this epoch.
    async fn missing(
        &self,
        table: &LoadedTable,
        fields: KafkaFields,
        log: &LogName,
        rows: &RecordBatch,
    ) -> Result<Vec<RecordBatch>> {
        let (partition_field, offset_field) = (fields.partition, fields.offset);
        let mut wanted: BTreeMap<Partition, (Offset, Offset)> = BTreeMap::new();
        for (partition, offset) in crate::rows::positions(rows, partition_field, offset_field)? {
            let ends = wanted.entry(partition).or_insert((offset, offset));
            *ends = (ends.0.min(offset), ends.1.max(offset));
        }
        let mut held: HashSet<(Partition, Offset)> = HashSet::new();
        for (partition, (first, last)) in wanted {
            let question = Inspect {
                descriptor: Uuid::nil(),
                partition,
                range: OffsetRange::new(first, last)?,
            };
            let files = files_within(self.warehouse, table, partition_field, offset_field, question).await?;
            for file in files {
                let columns = [
                    Some(partition_field),
                    Some(offset_field),
                    Some(fields.epoch),
                    fields.topic,
                ];
                let columns: Vec<i32> = columns.into_iter().flatten().collect();
                let batches = read_data_file(
                    self.warehouse
                        .data_file(file.file_path(), "restore the file")
                        .await?,
                    Some(&columns),
                )?;
                let batches = crate::inspect::of_log(batches, log, None, fields.topic, Some(fields.epoch))?;
                for batch in batches {
                    held.extend(crate::rows::positions(&batch, partition_field, offset_field)?);
                }
            }
        }
        let keep = |partition, offset| !held.contains(&(partition, offset));
        filter_rows(std::slice::from_ref(rows), partition_field, offset_field, &keep)
    }

    async fn write_list(&self, table: Uuid, id: Uuid, places: &BTreeSet<Place>) -> Result<RetryEntry> {
        let list = JobList {
            format: 1,
            dead_letters: self.letters.clone(),
            places: places.clone(),
        };
        let bytes = serde_json::to_vec(&list).map_err(|e| {
            Error::new(ErrorKind::Internal, "write the list of a retry", e.to_string()).with_source(e)
        })?;
        let location = self.warehouse.layout.retry(table, id);
        self.warehouse
            .storage
            .put(&location, Bytes::from(bytes), None)
            .await?;
        Ok(RetryEntry { id, list: location })
    }

    /// Adds the files and records the job. `None`: somebody else was first.
    async fn swap(
        &self,
        table: &LoadedTable,
        mut ledger: Ledger,
        files: &FilesBySpec,
        job: &RetryEntry,
    ) -> Result<Option<i64>> {
        let warehouse = self.warehouse;
        let now = commit_time(warehouse.environment.now(), &table.metadata);
        let snapshot_id = new_snapshot_id(warehouse);
        ledger.commit += 1;
        ledger.written_at = now;
        ledger.added.clear();
        ledger.snapshot_id = Some(snapshot_id);
        ledger.sequence_number = table.metadata.next_sequence_number();
        ledger.retries.push(job.clone());
        let (ledger_location, named) = write_ledger(warehouse, &ledger).await?;
        let summary = HashMap::from([
            (properties::SUMMARY_LEDGER.to_owned(), ledger_location),
            (properties::SUMMARY_COMMIT.to_owned(), ledger.commit.to_string()),
        ]);
        let mut written = WrittenManifests::default();
        let staged = stage_append(warehouse, table, snapshot_id, files, summary, now, &mut written).await?;
        let (location, metadata) = name_snapshot(warehouse, table, staged, named, now).await?;
        let swapped = warehouse
            .catalog
            .swap(&table.name, &table.pointer, &location, &metadata)
            .await;
        if let Err(error) = swapped {
            let uuid = metadata.uuid();
            if !has_landed(warehouse, &table.name, uuid, &location, Some(snapshot_id)).await? {
                tracing::info!(table = %table.name, %error, "swap lost, starting again");
                return Ok(None);
            }
        }
        for log in &ledger.logs {
            warehouse
                .raise_high_water(&log.source, &log.topic, ledger.table_uuid, ledger.commit)
                .await?;
        }
        Ok(Some(snapshot_id))
    }
}
