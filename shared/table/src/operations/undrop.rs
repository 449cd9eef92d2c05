use frazil_core::{Epoch, Error, ErrorKind, Result};
use uuid::Uuid;

use super::restage::{Restage, all_claims};
use super::shelves::{Place, find};
use crate::commit::change_ledger;
use crate::descriptor::{Descriptor, Judgement, MAX_DESCRIPTOR_BYTES};
use crate::layout::Shelf;
use crate::ledger::{Ledger, Part};
use crate::snapshot::held_files;
use crate::warehouse::Warehouse;

/// A descriptor that was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undropped {
    /// The dropped descriptor.
    pub dropped: Uuid,
    /// Under which id it is pending now.
    pub pending: Uuid,
    /// Under which life.
    pub epoch: Epoch,
}

/// Takes back a drop: stages the descriptor anew, as a backfill, under `epoch` (by default the topic's present one).
/// Also for what was set aside, which otherwise only its own life takes.
///
/// What the ledger counts as taken there becomes uncertain first, so that the commit looks into the table, record by
/// record, and takes only what is missing (promise I2). The dropped copy goes after the new descriptor is stored.
///
/// Refused (`Invalid`): a descriptor that was proved to be a redelivery; one whose files the table holds already; an
/// earlier life than the topic's, since its ledger is closed.
pub async fn undrop(warehouse: &Warehouse, id: Uuid, epoch: Option<Epoch>) -> Result<Undropped> {
    let place = find(warehouse, &[Shelf::Dropped, Shelf::Quarantine], id).await?;
    let descriptor = read(warehouse, &place).await?;
    let refused = |message: String| {
        Error::new(ErrorKind::Invalid, "take back the descriptor", message).with_context("descriptor", id)
    };
    if descriptor.judgement == Some(Judgement::Proved) {
        return Err(refused(
            "it was proved that the table holds these records".to_owned(),
        ));
    }
    let state = warehouse.topic_state(&place.log.source, &place.log.topic).await?;
    let epoch = epoch.unwrap_or(state.epoch);
    if epoch < state.epoch {
        return Err(refused(format!(
            "the topic is at epoch {}, and the ledger of epoch {epoch} is closed",
            state.epoch
        ))
        .with_hint("take it under the present epoch"));
    }
    let table = warehouse.load_existing(&descriptor.table).await?;
    if table.metadata.uuid() != place.table {
        return Err(
            refused("the table that it was staged for is gone".to_owned()).with_context("table", &table.name)
        );
    }
    let held = held_files(warehouse, &table).await?;
    let files = descriptor
        .files
        .iter()
        .chain(descriptor.dead_letters.iter().flat_map(|letters| &letters.files));
    let paths: Vec<String> = files
        .map(|file| path_of(file.data_file.get()))
        .collect::<Result<_>>()?;
    if !paths.is_empty() && paths.iter().all(|path| held.contains(path)) {
        return Err(refused("the table holds its files".to_owned()).with_context("table", &table.name));
    }
    change_ledger(warehouse, &table.name, |ledger| {
        Ok(doubt(ledger, &descriptor, epoch))
    })
    .await?;
    let ledger = warehouse.ledger(&table).await?;
    let restage = Restage {
        warehouse,
        table: &table,
        ledger: &ledger,
        epoch,
        backfill: true,
        without: &held,
    };
    let pending = restage
        .run(&descriptor, &all_claims(&descriptor))
        .await?
        .ok_or_else(|| refused("it claims nothing".to_owned()))?;
    let location = warehouse
        .layout
        .descriptor(place.shelf, place.table, &place.log, id);
    warehouse.storage.delete(&[location]).await?;
    Ok(Undropped {
        dropped: id,
        pending,
        epoch,
    })
}

async fn read(warehouse: &Warehouse, place: &Place) -> Result<Descriptor> {
    let location = warehouse
        .layout
        .descriptor(place.shelf, place.table, &place.log, place.id);
    let bytes = warehouse.storage.get(&location, MAX_DESCRIPTOR_BYTES).await?;
    let bytes = bytes.ok_or_else(|| {
        Error::new(
            ErrorKind::Conflict,
            "read the descriptor",
            "it was moved meanwhile",
        )
        .with_context("descriptor", place.id)
    })?;
    Descriptor::from_json(&bytes)
}

/// Declares uncertain what the ledger counts as taken of the descriptor's claims.
fn doubt(ledger: &mut Ledger, descriptor: &Descriptor, epoch: Epoch) -> bool {
    let known = ledger.log(&descriptor.source, &descriptor.topic);
    if known.is_none_or(|known| known.epoch != epoch) {
        return false;
    }
    let log = ledger.log_mut(&descriptor.source, &descriptor.topic, epoch);
    let mut doubted = false;
    for claim in &descriptor.claims {
        let Some(partition) = log.partitions.get_mut(&claim.partition) else {
            continue;
        };
        for part in partition.parts(claim.range) {
            if let Part::Covered(range) = part {
                partition.doubt(range);
                doubted = true;
            }
        }
    }
    doubted
}

fn path_of(data_file: &str) -> Result<String> {
    #[derive(serde::Deserialize)]
    struct Described {
        path: String,
    }
    let described: Described = serde_json::from_str(data_file)
        .map_err(|e| Error::new(ErrorKind::Internal, "read a staged file", e.to_string()).with_source(e))?;
    Ok(described.path)
}
