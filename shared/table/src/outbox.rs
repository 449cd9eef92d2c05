use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use frazil_core::{Error, ErrorKind, Result, TableName};
use iceberg::spec::DataFile;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::commit::moved;
use crate::dead_letters;
use crate::ledger::{Ledger, OutboxEntry};
use crate::metadata::commit_time;
use crate::properties;
use crate::rows::{data_file_from_json, data_file_to_json};
use crate::snapshot::{FilesBySpec, WrittenManifests, held_files, name_snapshot, stage_append};
use crate::warehouse::{LoadedTable, Warehouse};

/// The largest list of dead-letter files that is read.
const MAX_LIST_BYTES: u64 = 64 * 1024 * 1024;

/// How often a swap is tried before the next run takes over.
const MAX_ATTEMPTS: u32 = 8;

/// The dead-letter files of one commit: written before the swap, applied after it.
#[derive(Debug, Serialize, Deserialize)]
struct FileList {
    format: u32,
    table: TableName,
    table_uuid: Uuid,
    files: Vec<ListedFile>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ListedFile {
    partition_spec_id: i32,
    data_file: serde_json::Value,
}

/// Which outbox entries a dead-letter table has taken: main table uuid → snapshot ids.
type Taken = BTreeMap<Uuid, BTreeSet<i64>>;

/// Writes the list of a commit's dead-letter files.
pub(crate) async fn write_list(
    warehouse: &Warehouse,
    main_uuid: Uuid,
    snapshot_id: i64,
    letters: &LoadedTable,
    files: &[DataFile],
) -> Result<OutboxEntry> {
    let schema = dead_letters::schema();
    let mut listed = Vec::with_capacity(files.len());
    for file in files {
        let spec_id = letters.metadata.default_partition_spec_id();
        let spec = crate::snapshot::spec_of(&letters.metadata, spec_id)?;
        listed.push(ListedFile {
            partition_spec_id: spec_id,
            data_file: data_file_to_json(file, &spec, &schema)?,
        });
    }
    let list = FileList {
        format: 1,
        table: letters.name.clone(),
        table_uuid: letters.metadata.uuid(),
        files: listed,
    };
    let bytes = serde_json::to_vec(&list).map_err(|e| {
        Error::new(ErrorKind::Internal, "list dead-letter files", e.to_string()).with_source(e)
    })?;
    let location = warehouse.layout.outbox(main_uuid, snapshot_id);
    warehouse.storage.put(&location, Bytes::from(bytes), None).await?;
    Ok(OutboxEntry {
        snapshot_id,
        list: location,
        table_uuid: letters.metadata.uuid(),
        records: files.iter().map(DataFile::record_count).sum(),
    })
}

/// Reads a commit's dead-letter files.
pub(crate) async fn read_list(
    warehouse: &Warehouse,
    entry: &OutboxEntry,
) -> Result<(TableName, Vec<(i32, serde_json::Value)>)> {
    let bytes = warehouse
        .storage
        .get(&entry.list, MAX_LIST_BYTES)
        .await?
        .ok_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                "read dead letters of a commit",
                "their list is missing",
            )
            .with_context("list", &entry.list)
            .with_hint("restore the file")
        })?;
    let list: FileList = serde_json::from_slice(&bytes).map_err(|e| {
        Error::new(
            ErrorKind::Internal,
            "read dead letters of a commit",
            e.to_string(),
        )
        .with_context("list", &entry.list)
        .with_source(e)
    })?;
    Ok((
        list.table,
        list.files
            .into_iter()
            .map(|file| (file.partition_spec_id, file.data_file))
            .collect(),
    ))
}

/// The entries of `ledger`'s outbox that the dead-letter table has not taken yet.
pub(crate) async fn untaken(
    warehouse: &Warehouse,
    name: &TableName,
    ledger: &Ledger,
) -> Result<Vec<OutboxEntry>> {
    if ledger.outbox.is_empty() {
        return Ok(Vec::new());
    }
    let Some(letters) = warehouse.load(name).await? else {
        return Ok(ledger.outbox.clone());
    };
    let taken = taken(&letters)?;
    let taken = taken.get(&ledger.table_uuid);
    let is_taken = |entry: &&OutboxEntry| {
        entry.table_uuid == letters.metadata.uuid()
            && taken.is_some_and(|ids| ids.contains(&entry.snapshot_id))
    };
    Ok(ledger
        .outbox
        .iter()
        .filter(|entry| !is_taken(entry))
        .cloned()
        .collect())
}

/// The entries of `ledger`'s outbox whose files the dead-letter table holds already. O(files in that table): for what
/// a person asks.
pub(crate) async fn delivered(
    warehouse: &Warehouse,
    name: &TableName,
    ledger: &Ledger,
) -> Result<BTreeSet<i64>> {
    let mut delivered = BTreeSet::new();
    let Some(letters) = warehouse.load(name).await? else {
        return Ok(delivered);
    };
    let held = held_files(warehouse, &letters).await?;
    let (schema, spec) = (
        dead_letters::schema(),
        crate::snapshot::spec_of(&letters.metadata, 0)?,
    );
    for entry in &ledger.outbox {
        let (_, listed) = read_list(warehouse, entry).await?;
        for (_, json) in listed {
            if held.contains(data_file_from_json(&json, &spec, &schema)?.file_path()) {
                delivered.insert(entry.snapshot_id);
            }
        }
    }
    Ok(delivered)
}

/// Adds the dead letters that wait in `main`'s outbox to their table, each entry once. Returns how many were added.
///
/// Entries that the dead-letter table has recorded are passed over, and records of entries that the outbox no longer
/// holds are forgotten. The main table's outbox drops an entry only after it is recorded, so whatever crashes, nothing
/// is added twice. The dead-letter table is loaded before the ledger: an entry that was recorded and forgotten before
/// the one is out of the other.
pub(crate) async fn deliver(warehouse: &Warehouse, main: &TableName, letters: &TableName) -> Result<u64> {
    for attempt in 0..MAX_ATTEMPTS {
        if attempt > 0 {
            let (base, limit) = (
                std::time::Duration::from_millis(50),
                std::time::Duration::from_secs(2),
            );
            warehouse.environment.backoff(attempt, base, limit).await;
        }
        let table = warehouse.load(letters).await?;
        let Some(main) = warehouse.load(main).await? else {
            return Ok(0);
        };
        let ledger = warehouse.ledger(&main).await?;
        if ledger.outbox.is_empty() {
            return Ok(0);
        }
        let Some(table) = table else {
            // Not made yet when it was looked for, or gone: in both cases made, since its files wait.
            dead_letters::ensure(warehouse, letters).await?;
            continue;
        };
        let mut taken = taken(&table)?;
        let mine = taken.entry(ledger.table_uuid).or_default();
        let due: Vec<&OutboxEntry> = ledger
            .outbox
            .iter()
            .filter(|entry| !mine.contains(&entry.snapshot_id))
            .collect();
        if due.is_empty() || moved(warehouse, &main, &mut ledger.clone()).await?.is_some() {
            // An outbox that fell back may hold what was delivered, recorded and forgotten long ago.
            return Ok(0);
        }
        mine.retain(|id| ledger.outbox.iter().any(|entry| entry.snapshot_id == *id));
        mine.extend(due.iter().map(|entry| entry.snapshot_id));
        match add(warehouse, &table, &due, &taken).await {
            Ok(()) => return Ok(due.iter().map(|entry| entry.records).sum()),
            // Lost the race, or lost the answer: the record in the table says which, on the next turn.
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::CommitUnknown) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(
        ErrorKind::Conflict,
        "deliver dead letters",
        "other writers were first every time",
    )
    .with_context("table", letters))
}

/// What the outbox is there to prevent: see [`crate::sabotage`].
pub(crate) async fn deliver_alone(
    warehouse: &Warehouse,
    letters: &LoadedTable,
    entry: &OutboxEntry,
) -> Result<()> {
    add(warehouse, letters, &[entry], &taken(letters)?).await
}

async fn add(warehouse: &Warehouse, table: &LoadedTable, due: &[&OutboxEntry], taken: &Taken) -> Result<()> {
    let schema = dead_letters::schema();
    let mut files = FilesBySpec::new();
    for entry in due {
        let (_, listed) = read_list(warehouse, entry).await?;
        for (spec_id, json) in listed {
            let spec = crate::snapshot::spec_of(&table.metadata, spec_id)?;
            files
                .entry(spec_id)
                .or_default()
                .push(data_file_from_json(&json, &spec, &schema)?);
        }
    }
    let now = commit_time(warehouse.environment.now(), &table.metadata);
    let snapshot_id = new_snapshot_id(warehouse);
    let mut written = WrittenManifests::default();
    let staged = stage_append(
        warehouse,
        table,
        snapshot_id,
        &files,
        Default::default(),
        now,
        &mut written,
    )
    .await?;
    let taken = serde_json::to_string(taken)
        .map_err(|e| Error::new(ErrorKind::Internal, "deliver dead letters", e.to_string()).with_source(e))?;
    let properties = [(properties::TAKEN_OUTBOX.to_owned(), taken)].into();
    let (location, metadata) = name_snapshot(warehouse, table, staged, properties, now).await?;
    warehouse
        .catalog
        .swap(&table.name, &table.pointer, &location, &metadata)
        .await
        .map_err(unknown_unless_conflict)
}

/// Any answer to a swap but success and conflict may hide a success.
pub(crate) fn unknown_unless_conflict(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Conflict | ErrorKind::CommitUnknown => error,
        kind => Error::new(
            ErrorKind::CommitUnknown,
            "swap the table's pointer",
            error.message().to_owned(),
        )
        .with_context("answer", kind)
        .with_source(error),
    }
}

pub(crate) fn new_snapshot_id(warehouse: &Warehouse) -> i64 {
    (warehouse.environment.next_u64() >> 1).max(1) as i64
}

fn taken(letters: &LoadedTable) -> Result<Taken> {
    match letters.metadata.properties().get(properties::TAKEN_OUTBOX) {
        None => Ok(Taken::new()),
        Some(json) => serde_json::from_str(json).map_err(|e| {
            Error::new(
                ErrorKind::Internal,
                "read which dead letters were delivered",
                e.to_string(),
            )
            .with_context("table", &letters.name)
            .with_source(e)
        }),
    }
}
