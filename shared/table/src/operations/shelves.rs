use frazil_core::{Error, ErrorKind, Result};
use uuid::Uuid;

use crate::commit::move_descriptor;
use crate::layout::{LogName, Shelf};
use crate::storage::list_all;
use crate::warehouse::Warehouse;

/// A descriptor's place on a shelf.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) shelf: Shelf,
    pub(super) table: Uuid,
    pub(super) log: LogName,
    pub(super) id: Uuid,
}

/// Sets a pending descriptor aside, as it is: no plan takes it until a person decides. Its files are kept.
pub async fn quarantine_descriptor(warehouse: &Warehouse, id: Uuid) -> Result<()> {
    let place = find(warehouse, &[Shelf::Pending], id).await?;
    let moved = move_descriptor(
        warehouse,
        place.table,
        &place.log,
        id,
        Shelf::Pending,
        Shelf::Quarantine,
    )
    .await?;
    if moved {
        Ok(())
    } else {
        Err(not_found(&[Shelf::Pending], id))
    }
}

/// Puts a descriptor that was set aside back to the pending ones, as it is: the next commit judges it.
///
/// Refused (`Invalid`) for one of an earlier life of its topic: the commit would only set it aside again.
pub async fn release_descriptor(warehouse: &Warehouse, id: Uuid) -> Result<()> {
    let place = find(warehouse, &[Shelf::Quarantine], id).await?;
    let state = warehouse.topic_state(&place.log.source, &place.log.topic).await?;
    if place.log.epoch < state.epoch {
        return Err(Error::new(
            ErrorKind::Invalid,
            "release the descriptor",
            format!(
                "it is of epoch {}, and the topic is at epoch {}",
                place.log.epoch, state.epoch
            ),
        )
        .with_context("descriptor", id)
        .with_hint("`frazil topic undrop` takes it under the present epoch"));
    }
    let moved = move_descriptor(
        warehouse,
        place.table,
        &place.log,
        id,
        Shelf::Quarantine,
        Shelf::Pending,
    )
    .await?;
    if moved {
        Ok(())
    } else {
        Err(not_found(&[Shelf::Quarantine], id))
    }
}

/// Looks for a descriptor by id. O(objects on these shelves): ids are named by people, one at a time.
pub(super) async fn find(warehouse: &Warehouse, shelves: &[Shelf], id: Uuid) -> Result<Place> {
    for shelf in shelves {
        for object in list_all(warehouse.storage.as_ref(), &warehouse.layout.shelf(*shelf)).await? {
            match warehouse.layout.parse_descriptor(*shelf, &object.location) {
                Some((table, log, found)) if found == id => {
                    return Ok(Place {
                        shelf: *shelf,
                        table,
                        log,
                        id,
                    });
                }
                _ => {}
            }
        }
    }
    Err(not_found(shelves, id))
}

fn not_found(shelves: &[Shelf], id: Uuid) -> Error {
    let shelves: Vec<&str> = shelves.iter().map(|shelf| shelf.as_str()).collect();
    Error::new(
        ErrorKind::Invalid,
        "find the descriptor",
        format!("there is none of that id under {}", shelves.join(", ")),
    )
    .with_context("descriptor", id)
    .with_hint("`frazil pending` lists what there is; what was committed meanwhile is gone from it")
}
