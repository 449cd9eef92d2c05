use std::collections::{BTreeMap, HashMap};

use frazil_core::{
    Epoch, Error, ErrorKind, OffsetRange, Partition, Result, SourceName, TableName, TimestampMs, TopicName,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Serialize;
use uuid::Uuid;

use crate::descriptor::{Descriptor, Judgement, MAX_DESCRIPTOR_BYTES, claims_from_attributes};
use crate::layout::{LogName, Shelf};
use crate::storage::{ObjectInfo, list_all};
use crate::warehouse::Warehouse;

/// How many objects are read at once.
const READS_AT_ONCE: usize = 32;

/// Where something is kept that is not in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Staged, to be committed.
    Pending,
    /// An event of a suspended topic.
    Parked,
    /// Judged to be a redelivery, kept for 14 days.
    Dropped,
    /// Waiting for a person.
    Quarantine,
}

impl Place {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Parked, Self::Dropped, Self::Quarantine];

    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Parked => "parked",
            Self::Dropped => "dropped",
            Self::Quarantine => "quarantine",
        }
    }

    fn shelf(self) -> Option<Shelf> {
        match self {
            Self::Pending => Some(Shelf::Pending),
            Self::Parked => None,
            Self::Dropped => Some(Shelf::Dropped),
            Self::Quarantine => Some(Shelf::Quarantine),
        }
    }
}

/// A descriptor or a parked event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// Its id.
    pub id: Uuid,
    /// Where it is kept.
    pub place: Place,
    /// The source.
    pub source: SourceName,
    /// The topic.
    pub topic: TopicName,
    /// The topic's life that it belongs to.
    pub epoch: Epoch,
    /// The table, of a descriptor that can be read.
    pub table: Option<TableName>,
    /// The table's uuid, of a descriptor.
    pub table_uuid: Option<Uuid>,
    /// What it claims; `None`: it does not say, so it may be anything of its topic.
    pub claims: Option<Vec<KeptClaim>>,
    /// Rows in its data files.
    pub rows: Option<u64>,
    /// Its data files.
    pub files: Option<u64>,
    /// Whether it declares itself a backfill.
    pub backfill: bool,
    /// Why it was dropped.
    pub judgement: Option<Judgement>,
    /// Why it cannot be read.
    pub problem: Option<String>,
    /// When it was stored here.
    pub stored_at_ms: TimestampMs,
    /// Its size.
    pub bytes: u64,
    /// The object.
    pub location: String,
}

/// What is claimed of one partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptClaim {
    /// The partition.
    pub partition: Partition,
    /// The offsets.
    pub range: OffsetRange,
    /// Records in them; a parked event does not say.
    pub records: Option<u64>,
    /// Records that became dead letters.
    pub dead_letters: Option<u64>,
    /// Records that were skipped on purpose.
    pub skipped: Option<u64>,
    /// The oldest record's timestamp.
    pub oldest_ms: Option<TimestampMs>,
}

/// What is kept in these places, oldest first in each; with `topic`, only of that topic. At most `limit` of each place
/// are read; the map says how many there are. O(objects in these places), plus the ones read.
pub async fn list_kept(
    warehouse: &Warehouse,
    topic: Option<(&SourceName, &TopicName)>,
    places: &[Place],
    limit: usize,
) -> Result<(Vec<Kept>, BTreeMap<Place, u64>)> {
    let mut kept = Vec::new();
    let mut counts = BTreeMap::new();
    for place in places {
        let mut named = list_place(warehouse, topic, *place).await?;
        counts.insert(*place, named.len() as u64);
        named.truncate(limit);
        let read = stream::iter(named)
            .map(|named| read(warehouse, named))
            .buffered(READS_AT_ONCE);
        let read: Vec<Option<Kept>> = read.try_collect().await?;
        kept.extend(read.into_iter().flatten());
    }
    Ok((kept, counts))
}

/// The descriptor or parked event of this id, wherever it is kept: `Invalid` when there is none.
pub async fn find_kept(warehouse: &Warehouse, id: Uuid) -> Result<Kept> {
    for place in Place::ALL {
        let named = list_place(warehouse, None, place).await?;
        if let Some(named) = named.into_iter().find(|named| named.id == id)
            && let Some(kept) = read(warehouse, named).await?
        {
            return Ok(kept);
        }
    }
    Err(Error::new(
        ErrorKind::Invalid,
        "find a descriptor or parked event",
        "nothing of this id is pending, parked, dropped or in quarantine",
    )
    .with_context("id", id)
    .with_hint("`frazil pending` lists what there is; what is committed is gone from there"))
}

/// An object of which only the name is known.
pub(super) struct Named {
    pub(super) id: Uuid,
    pub(super) log: LogName,
    pub(super) table: Option<Uuid>,
    pub(super) place: Place,
    pub(super) object: ObjectInfo,
}

/// The objects of a place, oldest first (ids start with the time).
pub(super) async fn list_place(
    warehouse: &Warehouse,
    topic: Option<(&SourceName, &TopicName)>,
    place: Place,
) -> Result<Vec<Named>> {
    let layout = &warehouse.layout;
    let prefix = match (place.shelf(), topic) {
        (Some(shelf), _) => layout.shelf(shelf),
        (None, Some((source, topic))) => layout.parked(source, topic),
        (None, None) => layout.all_parked(),
    };
    let mut named = Vec::new();
    for object in list_all(warehouse.storage.as_ref(), &prefix).await? {
        let parsed = match place.shelf() {
            Some(shelf) => layout
                .parse_descriptor(shelf, &object.location)
                .map(|(table, log, id)| (Some(table), log, id)),
            None => layout
                .parse_parked(&object.location)
                .map(|(log, id)| (None, log, id)),
        };
        let Some((table, log, id)) = parsed else {
            tracing::warn!(location = object.location, "foreign object, passed over");
            continue;
        };
        if topic.is_none_or(|(source, topic)| &log.source == source && &log.topic == topic) {
            named.push(Named {
                id,
                log,
                table,
                place,
                object,
            });
        }
    }
    named.sort_by_key(|named| named.id);
    Ok(named)
}

/// `None`: it is gone since it was listed.
pub(super) async fn read(warehouse: &Warehouse, named: Named) -> Result<Option<Kept>> {
    let mut kept = Kept {
        id: named.id,
        place: named.place,
        source: named.log.source,
        topic: named.log.topic,
        epoch: named.log.epoch,
        table: None,
        table_uuid: named.table,
        claims: None,
        rows: None,
        files: None,
        backfill: false,
        judgement: None,
        problem: None,
        stored_at_ms: named.object.modified,
        bytes: named.object.size_bytes,
        location: named.object.location,
    };
    if named.place != Place::Parked {
        let content = warehouse.storage.get(&kept.location, MAX_DESCRIPTOR_BYTES).await;
        let content = match content {
            Ok(None) => return Ok(None),
            Ok(Some(bytes)) => Descriptor::from_json(&bytes),
            // Larger than any descriptor may be.
            Err(error) if error.kind() == ErrorKind::Internal => Err(error),
            Err(error) => return Err(error),
        };
        match content {
            Ok(descriptor) => {
                describe(&mut kept, descriptor);
                return Ok(Some(kept));
            }
            Err(error) => kept.problem = Some(error.to_string()),
        }
    }
    let Some(head) = warehouse.storage.head(&kept.location).await? else {
        return Ok(None);
    };
    kept.claims = claims_from_attributes(head.attributes.as_deref()).map(|claims| {
        let claims = claims.into_iter().map(|(partition, range)| KeptClaim {
            partition,
            range,
            records: None,
            dead_letters: None,
            skipped: None,
            oldest_ms: None,
        });
        claims.collect()
    });
    Ok(Some(kept))
}

fn describe(kept: &mut Kept, descriptor: Descriptor) {
    kept.rows = Some(descriptor.rows());
    kept.files = Some(descriptor.files.len() as u64);
    kept.table = Some(descriptor.table);
    kept.backfill = descriptor.backfill;
    kept.judgement = descriptor.judgement;
    let claims = descriptor.claims.into_iter().map(|claim| KeptClaim {
        partition: claim.partition,
        range: claim.range,
        records: Some(claim.records),
        dead_letters: Some(claim.dead_letters),
        skipped: Some(claim.skipped),
        oldest_ms: claim.oldest,
    });
    kept.claims = Some(claims.collect());
}

/// Everything pending of a topic, read, by table uuid.
pub(super) async fn pending_by_table(
    warehouse: &Warehouse,
    source: &SourceName,
    topic: &TopicName,
) -> Result<HashMap<Uuid, Vec<Kept>>> {
    let (pending, _) = list_kept(warehouse, Some((source, topic)), &[Place::Pending], usize::MAX).await?;
    let mut by_table: HashMap<Uuid, Vec<Kept>> = HashMap::new();
    for kept in pending {
        if let Some(uuid) = kept.table_uuid {
            by_table.entry(uuid).or_default().push(kept);
        }
    }
    Ok(by_table)
}
