use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use frazil_core::{ErrorKind, Result};
use futures::stream::{self, StreamExt, TryStreamExt};
use uuid::Uuid;

use crate::descriptor::{Descriptor, MAX_DESCRIPTOR_BYTES, claims_from_attributes};
use crate::layout::{LogName, Shelf};
use crate::plan::{Content, Listed, Listing, Parked};
use crate::storage::list_all;
use crate::warehouse::{LoadedTable, Warehouse};

/// How many objects are read at once.
const READS_AT_ONCE: usize = 32;

/// Every descriptor of the table on a shelf, each read.
pub(crate) async fn read_descriptors(
    warehouse: &Warehouse,
    table: Uuid,
    shelf: Shelf,
) -> Result<Vec<Listed>> {
    read_new(warehouse, table, shelf, Listing::First, &HashSet::new()).await
}

/// Every pending descriptor of the table, each read.
pub(super) async fn pending(warehouse: &Warehouse, table: &LoadedTable) -> Result<Vec<Listed>> {
    read_descriptors(warehouse, table.metadata.uuid(), Shelf::Pending).await
}

/// Lists pending descriptors again, and adds those that were not known.
pub(super) async fn pending_again(
    warehouse: &Warehouse,
    table: &LoadedTable,
    known: &mut Vec<Listed>,
) -> Result<()> {
    let ids: HashSet<Uuid> = known.iter().map(|listed| listed.id).collect();
    known.extend(
        read_new(
            warehouse,
            table.metadata.uuid(),
            Shelf::Pending,
            Listing::Second,
            &ids,
        )
        .await?,
    );
    Ok(())
}

async fn read_new(
    warehouse: &Warehouse,
    table: Uuid,
    shelf: Shelf,
    listing: Listing,
    known: &HashSet<Uuid>,
) -> Result<Vec<Listed>> {
    let prefix = warehouse.layout.descriptors(shelf, table);
    let mut names = Vec::new();
    for object in list_all(warehouse.storage.as_ref(), &prefix).await? {
        match warehouse.layout.parse_descriptor(shelf, &object.location) {
            Some((_, log, id)) if !known.contains(&id) => names.push((object.location, log, id)),
            Some(_) => {}
            None => tracing::warn!(location = object.location, "not a descriptor, passed over"),
        }
    }
    let read = |(location, log, id): (String, LogName, Uuid)| async move {
        let content = read_content(warehouse, &location).await?;
        Ok::<_, frazil_core::Error>(content.map(|content| Listed {
            id,
            log,
            listing,
            content,
        }))
    };
    let listed: Vec<Option<Listed>> = stream::iter(names)
        .map(read)
        .buffered(READS_AT_ONCE)
        .try_collect()
        .await?;
    Ok(listed.into_iter().flatten().collect())
}

/// `None`: it is gone since it was listed.
async fn read_content(warehouse: &Warehouse, location: &str) -> Result<Option<Content>> {
    let read = match warehouse.storage.get(location, MAX_DESCRIPTOR_BYTES).await {
        Ok(None) => return Ok(None),
        Ok(Some(bytes)) => Descriptor::from_json(&bytes),
        Err(error) if error.kind() == ErrorKind::Internal => Err(error),
        Err(error) => return Err(error),
    };
    match read {
        Ok(descriptor) => Ok(Some(Content::Read(Arc::new(descriptor)))),
        Err(error) => {
            tracing::error!(location, %error, "descriptor cannot be read and stops its partitions");
            let head = warehouse.storage.head(location).await?;
            let claims = claims_from_attributes(head.and_then(|head| head.attributes).as_deref());
            Ok(Some(Content::Unreadable {
                claims,
                reason: error.to_string(),
            }))
        }
    }
}

/// Every parked event of the topics that have something pending. Listed before pending is listed again: an event that
/// is drained meanwhile is staged before it is deleted here.
pub(super) async fn parked(warehouse: &Warehouse, descriptors: &[Listed]) -> Result<Vec<(Uuid, Parked)>> {
    let topics: BTreeSet<_> = descriptors
        .iter()
        .map(|listed| (listed.log.source.clone(), listed.log.topic.clone()))
        .collect();
    let mut parked = Vec::new();
    for (source, topic) in topics {
        let prefix = warehouse.layout.parked(&source, &topic);
        for object in list_all(warehouse.storage.as_ref(), &prefix).await? {
            let Some((log, id)) = warehouse.layout.parse_parked(&object.location) else {
                continue;
            };
            let Some(head) = warehouse.storage.head(&object.location).await? else {
                // Drained since: what it was staged as is in the listing that comes next.
                continue;
            };
            let claims = claims_from_attributes(head.attributes.as_deref());
            parked.push((id, Parked { log, claims }));
        }
    }
    Ok(parked)
}

/// Moves a descriptor as it is to another shelf: copied first, then deleted.
pub(crate) async fn move_descriptor(
    warehouse: &Warehouse,
    table: Uuid,
    log: &LogName,
    id: Uuid,
    from: Shelf,
    to: Shelf,
) -> Result<bool> {
    let source = warehouse.layout.descriptor(from, table, log, id);
    let Some(bytes) = warehouse.storage.get(&source, MAX_DESCRIPTOR_BYTES).await? else {
        return Ok(false);
    };
    let attributes = warehouse
        .storage
        .head(&source)
        .await?
        .and_then(|head| head.attributes);
    let target = warehouse.layout.descriptor(to, table, log, id);
    warehouse
        .storage
        .put(&target, bytes, attributes.as_deref())
        .await?;
    warehouse.storage.delete(&[source]).await?;
    Ok(true)
}
