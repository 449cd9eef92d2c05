//! Commits without rows: the ledger, properties and schema of a table change, its snapshots do not.

use std::time::Duration;

use frazil_core::{Error, ErrorKind, Result, TableName};
use iceberg::spec::TableMetadataBuilder;
use uuid::Uuid;

use super::{survey, write_ledger};
use crate::ledger::Ledger;
use crate::metadata::{commit_time, rebuild, write_metadata};
use crate::warehouse::{LoadedTable, Warehouse, iceberg_error};

/// How often a change starts again when others are first.
const MAX_ATTEMPTS: u32 = 32;

/// What is to be done when the table's history has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenMoved {
    /// Nothing is changed: a new ledger would hide that it has moved.
    Refuse,
    /// This change is the answer to it.
    Answer,
}

/// Changes a table's ledger in a commit of its own, and starts again from what is there when somebody else was first.
///
/// `change` sees the newest ledger at each try and says whether there is anything to write; it must recognise its own
/// work, since a swap may land although its answer was lost (promise I5). Returns the table as it then is, and the
/// number of the commit that changed it. Errors: `Suspended` when the table's history has moved; `CommitUnknown` when
/// nobody can say whether the swap landed: call again.
pub async fn change_ledger(
    warehouse: &Warehouse,
    name: &TableName,
    change: impl Fn(&mut Ledger) -> Result<bool> + Send + Sync,
) -> Result<Option<u64>> {
    let change = |_: &LoadedTable, ledger: &mut Ledger, builder| Ok(change(ledger)?.then_some(builder));
    change_table(warehouse, name, WhenMoved::Refuse, change).await
}

/// Like [`change_ledger`], for a change that touches more of the metadata: `change` gets a builder on top of what is
/// there, and returns it with its changes, or `None` when there is nothing to write.
pub(crate) async fn change_table<F>(
    warehouse: &Warehouse,
    name: &TableName,
    when_moved: WhenMoved,
    change: F,
) -> Result<Option<u64>>
where
    F: Fn(&LoadedTable, &mut Ledger, TableMetadataBuilder) -> Result<Option<TableMetadataBuilder>>
        + Send
        + Sync,
{
    for attempt in 0..MAX_ATTEMPTS {
        if attempt > 0 {
            let (base, limit) = (Duration::from_millis(50), Duration::from_secs(5));
            warehouse.environment.backoff(attempt, base, limit).await;
        }
        let table = warehouse.load_existing(name).await?;
        let mut ledger = warehouse.ledger(&table).await?;
        let moved = survey::moved(warehouse, &table, &mut ledger).await?;
        if moved.is_some() && warehouse.catalog.load(name).await?.as_ref() != Some(&table.pointer) {
            // A commit landed between reading the pointer and the states: no history has moved.
            continue;
        }
        if let Some(message) = moved.filter(|_| when_moved == WhenMoved::Refuse) {
            return Err(history_moved(name, message));
        }
        let Some(builder) = change(&table, &mut ledger, rebuild(&table))? else {
            return Ok(None);
        };
        let now = commit_time(warehouse.environment.now(), &table.metadata);
        let failed = |error| iceberg_error("change the table", error);
        let (location, metadata) = {
            // The snapshot that the change leaves current; building twice is cheaper than guessing.
            let current = builder.clone().build().map_err(failed)?.metadata;
            ledger.commit += 1;
            ledger.written_at = now;
            ledger.added.clear();
            ledger.snapshot_id = current.current_snapshot_id();
            ledger.sequence_number = current.current_snapshot().map_or(0, |s| s.sequence_number());
            let (_, named) = write_ledger(warehouse, &ledger).await?;
            write_metadata(
                warehouse,
                builder.set_properties(named).map_err(failed)?,
                Some(&table),
                now,
            )
            .await?
        };
        let swap = warehouse.catalog.swap(name, &table.pointer, &location, &metadata);
        match swap.await {
            Ok(()) => {}
            Err(error) if has_landed(warehouse, name, metadata.uuid(), &location, None).await? => {
                tracing::info!(table = %name, %error, "swap landed although its answer did not say so");
            }
            Err(error) => {
                tracing::info!(table = %name, attempt, %error, "swap lost, starting again");
                continue;
            }
        }
        for log in &ledger.logs {
            warehouse
                .raise_high_water(&log.source, &log.topic, ledger.table_uuid, ledger.commit)
                .await?;
        }
        return Ok(Some(ledger.commit));
    }
    Err(Error::new(
        ErrorKind::Conflict,
        "change the table",
        format!("others were first {MAX_ATTEMPTS} times"),
    )
    .with_context("table", name)
    .with_hint("try again"))
}

/// A table whose history has moved, and the two ways on.
pub(crate) fn history_moved(name: &TableName, message: String) -> Error {
    Error::new(ErrorKind::Suspended, "change the table", message)
        .with_context("table", name)
        .with_code("history")
        .with_hint(
            "`frazil topic resume --history restore` rolls `main` forward, `--history keep` goes on from what is \
             there now",
        )
}

/// Reads the pointer again after a swap that did not answer success, and looks whether it happened (promise I5).
pub(crate) async fn has_landed(
    warehouse: &Warehouse,
    name: &TableName,
    uuid: Uuid,
    location: &str,
    snapshot_id: Option<i64>,
) -> Result<bool> {
    let loaded = warehouse.load(name).await.map_err(|error| {
        Error::new(
            ErrorKind::CommitUnknown,
            "find out whether a commit landed",
            error.message().to_owned(),
        )
        .with_context("table", name)
        .with_hint("nothing is lost: the next run looks again")
        .with_source(error)
    })?;
    let Some(table) = loaded.filter(|table| table.metadata.uuid() == uuid) else {
        return Ok(false);
    };
    let mut log = table.metadata.metadata_log().iter();
    let named =
        table.pointer.metadata_location == location || log.any(|entry| entry.metadata_file == location);
    let snapshot = snapshot_id.is_some_and(|id| table.metadata.snapshot_by_id(id).is_some());
    Ok(named || snapshot)
}
