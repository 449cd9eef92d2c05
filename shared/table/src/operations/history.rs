use std::collections::BTreeSet;

use frazil_core::{Error, ErrorKind, IntervalSet, Offset, OffsetRange, Result, TableName};
use iceberg::spec::{MAIN_BRANCH, SnapshotReference, SnapshotRetention, TableMetadataBuilder};

use crate::commit::{Survey, WhenMoved, change_table};
use crate::inspect::KafkaFields;
use crate::ledger::Ledger;
use crate::outbox;
use crate::warehouse::{LoadedTable, Warehouse, iceberg_error};

/// What holds after a table's history has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryChoice {
    /// What is in the table now. Everything that the ledger took becomes uncertain: backfills take what is missing.
    KeepPresent,
    /// What the last commit wrote: `main` is pointed back to its snapshot, if the metadata still has it.
    RestoreMain,
}

/// Answers a moved history, in one commit without rows. `false`: the history is as the ledger says.
///
/// The new commit's number is above any that was seen of this table, so that a pointer which fell back together with
/// its ledger is known from the one that was chosen.
pub async fn restore_history(warehouse: &Warehouse, name: &TableName, choice: HistoryChoice) -> Result<bool> {
    let Some(survey) = Survey::read(warehouse, name).await? else {
        return Err(Error::new(
            ErrorKind::Invalid,
            "restore the table's history",
            "the catalog has no such table",
        )
        .with_context("table", name));
    };
    if survey.moved.is_none() {
        return Ok(false);
    }
    let uuid = survey.table.metadata.uuid();
    let marks = survey
        .states
        .values()
        .filter_map(|state| state.high_water.get(&uuid));
    let seen = marks.copied().max().unwrap_or(0);
    let delivered = match choice {
        HistoryChoice::KeepPresent => {
            outbox::delivered(warehouse, &name.dead_letters()?, &survey.ledger).await?
        }
        HistoryChoice::RestoreMain => BTreeSet::new(),
    };
    let location = survey.table.pointer.metadata_location;
    let change = |table: &LoadedTable, ledger: &mut Ledger, builder: TableMetadataBuilder| {
        // Chosen for what was looked at. Whatever came since, this change included, is looked at again.
        if table.pointer.metadata_location != location {
            return Ok(None);
        }
        let builder = match choice {
            HistoryChoice::KeepPresent => {
                keep_present(table, ledger)?;
                // An outbox that fell back may hold what was delivered and forgotten.
                ledger
                    .outbox
                    .retain(|entry| !delivered.contains(&entry.snapshot_id));
                builder
            }
            HistoryChoice::RestoreMain => restore_main(table, ledger, seen, builder)?,
        };
        ledger.commit = ledger.commit.max(seen);
        Ok(Some(builder))
    };
    change_table(warehouse, name, WhenMoved::Answer, change)
        .await
        .map(|commit| commit.is_some())
}

fn keep_present(table: &LoadedTable, ledger: &mut Ledger) -> Result<()> {
    let kafka = KafkaFields::of(&ledger.fields)?;
    let schema = table.metadata.current_schema();
    for (field, name) in [
        (kafka.partition, "_kafka_partition"),
        (kafka.offset, "_kafka_offset"),
    ] {
        if schema.field_by_id(field).is_none() {
            return Err(Error::new(
                ErrorKind::Suspended,
                "keep the table as it is",
                format!(
                    "it was replaced by one that does not have the column `{name}` under field id {field}"
                ),
            )
            .with_context("table", &table.name)
            .with_hint("restore `main`, or drop the table and resume with the choice that it is made anew"));
        }
    }
    ledger.table_uuid = table.metadata.uuid();
    for partition in ledger.logs.iter_mut().flat_map(|log| log.partitions.values_mut()) {
        partition.holes.clear();
        partition.uncertain = IntervalSet::default();
        if let Ok(all) = OffsetRange::new(Offset(0), Offset(partition.next.0 - 1)) {
            partition.uncertain.insert(all);
        }
    }
    Ok(())
}

fn restore_main(
    table: &LoadedTable,
    ledger: &Ledger,
    seen: u64,
    builder: TableMetadataBuilder,
) -> Result<TableMetadataBuilder> {
    let lost = |found: String| {
        Error::new(ErrorKind::Suspended, "restore `main`", found)
            .with_context("table", &table.name)
            .with_hint(
                "point the catalog at the newest metadata.json that names it, or go on from what is there with \
                 `--history keep`",
            )
    };
    if ledger.table_uuid != table.metadata.uuid() {
        return Err(lost("the ledger is that of another table".to_owned()));
    }
    if ledger.commit < seen {
        return Err(lost(format!(
            "commit {seen} is not in this metadata, which ends at commit {}",
            ledger.commit
        )));
    }
    let snapshot_id = ledger
        .snapshot_id
        .ok_or_else(|| lost("the ledger names no snapshot".to_owned()))?;
    if table.metadata.snapshot_by_id(snapshot_id).is_none() {
        return Err(lost(format!(
            "snapshot {snapshot_id} is not in the metadata any more"
        )));
    }
    let retention = SnapshotRetention::Branch {
        min_snapshots_to_keep: None,
        max_snapshot_age_ms: None,
        max_ref_age_ms: None,
    };
    builder
        .set_ref(MAIN_BRANCH, SnapshotReference::new(snapshot_id, retention))
        .map_err(|error| iceberg_error("restore `main`", error))
}
