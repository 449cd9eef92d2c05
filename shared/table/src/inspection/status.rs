use std::collections::BTreeMap;

use frazil_core::{
    Epoch, Error, ErrorKind, IntervalSet, Offset, OffsetRange, Partition, Result, SourceName, TableName,
    TimestampMs, TopicName,
};
use serde::Serialize;
use uuid::Uuid;

use super::overview::summary_total_rows;
use super::shelves::{Kept, Named, Place, list_place, pending_by_table};
use crate::ledger::{Ledger, PartitionLedger};
use crate::outbox;
use crate::topic_state::TopicState;
use crate::warehouse::Warehouse;

/// How a topic stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopicStatus {
    /// The source.
    pub source: SourceName,
    /// The topic.
    pub topic: TopicName,
    /// The topic's present life.
    pub epoch: Epoch,
    /// Why it is suspended; `None`: it runs.
    pub suspended: Option<SuspensionStatus>,
    /// Until when an announced replay holds.
    pub replay_until_ms: Option<TimestampMs>,
    /// Age of the oldest record that has arrived and cannot be seen yet; 0 when nothing waits.
    pub freshness_ms: u64,
    /// Events that wait for the topic to resume, or to be drained after it did.
    pub parked: Heap,
    /// Descriptors judged to be redeliveries, kept for 14 days.
    pub dropped: Heap,
    /// Descriptors that wait for a person.
    pub quarantine: Heap,
    /// The tables that it feeds.
    pub tables: Vec<TableStatus>,
}

/// A suspension and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SuspensionStatus {
    /// Why; the stable name of [`Cause`](crate::Cause).
    pub cause: &'static str,
    /// Why, in words, with what to do.
    pub message: String,
    /// Since when.
    pub since_ms: TimestampMs,
}

/// Objects that are kept somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Heap {
    /// How many.
    pub objects: u64,
    /// Their size.
    pub bytes: u64,
    /// When the oldest was stored.
    pub oldest_ms: Option<TimestampMs>,
}

/// What a table has taken of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableStatus {
    /// The table.
    pub table: TableName,
    /// The uuid that the topic knows it by.
    pub uuid: Uuid,
    /// Why nothing more can be said of it.
    pub problem: Option<String>,
    /// Counts its commits, schema-only ones included.
    pub commit: u64,
    /// When the newest was made.
    pub committed_at_ms: Option<TimestampMs>,
    /// The current snapshot.
    pub snapshot_id: Option<i64>,
    /// The table's rows, of all its topics.
    pub rows: u64,
    /// Its dead letters, of all its topics.
    pub dead_letters: DeadLetterStatus,
    /// Descriptors that wait for a commit.
    pub pending: Heap,
    /// How many of those cannot be read: they stop their partitions.
    pub unreadable: u64,
    /// Per partition, what was taken and what waits.
    pub partitions: Vec<PartitionStatus>,
}

/// Records that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadLetterStatus {
    /// The table that takes them; it is made when the first one comes.
    pub table: TableName,
    /// Rows in it.
    pub rows: u64,
    /// Accepted, and not in it yet.
    pub undelivered: u64,
}

/// What a table has taken of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartitionStatus {
    /// The partition.
    pub partition: Partition,
    /// The offset after the highest that was taken.
    pub next: Offset,
    /// Offsets below `next` that were not taken.
    pub holes: Vec<OffsetRange>,
    /// Offsets below `next` of which the ledger forgot what was taken.
    pub uncertain: Vec<OffsetRange>,
    /// Offsets that wait for a commit.
    pub pending: Vec<OffsetRange>,
}

/// How a topic stands. `Invalid` when nothing is known of it.
///
/// O(partitions) plus what waits: every pending descriptor of the topic is read.
pub async fn topic_status(
    warehouse: &Warehouse,
    source: &SourceName,
    topic: &TopicName,
) -> Result<TopicStatus> {
    let known = warehouse.topic_states().await?;
    let state = known
        .into_iter()
        .find(|state| &state.source == source && &state.topic == topic);
    match state {
        Some(state) => status_of(warehouse, state).await,
        None => Err(Error::new(
            ErrorKind::Invalid,
            "show a topic's status",
            "no event of it has arrived in this warehouse",
        )
        .with_context("source", source)
        .with_context("topic", topic)
        .with_hint("`frazil status` lists the topics that are known")),
    }
}

/// How every known topic stands, by source and topic.
pub async fn topic_statuses(warehouse: &Warehouse) -> Result<Vec<TopicStatus>> {
    let mut statuses = Vec::new();
    for state in warehouse.topic_states().await? {
        statuses.push(status_of(warehouse, state).await?);
    }
    Ok(statuses)
}

async fn status_of(warehouse: &Warehouse, state: TopicState) -> Result<TopicStatus> {
    let now = warehouse.environment.now();
    let topic = Some((&state.source, &state.topic));
    // Pending after parked: an event that is drained meanwhile is seen twice rather than not at all.
    let parked = Heap::of(&list_place(warehouse, topic, Place::Parked).await?);
    let mut pending = pending_by_table(warehouse, &state.source, &state.topic).await?;
    let dropped = Heap::of(&list_place(warehouse, topic, Place::Dropped).await?);
    let quarantine = Heap::of(&list_place(warehouse, topic, Place::Quarantine).await?);

    let mut oldest = parked.oldest_ms;
    let mut tables = Vec::new();
    for (name, uuid) in &state.tables {
        let pending = pending.remove(uuid).unwrap_or_default();
        let (table, waiting_since) = table_status(warehouse, &state, name, *uuid, &pending).await?;
        oldest = older(oldest, waiting_since);
        tables.push(table);
    }
    // Descriptors of tables that the state does not name.
    for kept in pending.values().flatten() {
        oldest = older(oldest, Some(arrival(kept)));
    }
    let freshness = oldest.map_or(0, |oldest| now.since(oldest).as_millis());
    Ok(TopicStatus {
        source: state.source,
        topic: state.topic,
        epoch: state.epoch,
        suspended: state.suspended.map(|suspended| SuspensionStatus {
            cause: suspended.cause.as_str(),
            message: suspended.message,
            since_ms: suspended.since,
        }),
        replay_until_ms: state.replay_until.filter(|until| now < *until),
        freshness_ms: u64::try_from(freshness).unwrap_or(u64::MAX),
        parked,
        dropped,
        quarantine,
        tables,
    })
}

/// The table's status, and since when something of it waits.
async fn table_status(
    warehouse: &Warehouse,
    state: &TopicState,
    name: &TableName,
    uuid: Uuid,
    pending: &[Kept],
) -> Result<(TableStatus, Option<TimestampMs>)> {
    let letters = name.dead_letters()?;
    let mut status = TableStatus {
        table: name.clone(),
        uuid,
        problem: None,
        commit: 0,
        committed_at_ms: None,
        snapshot_id: None,
        rows: 0,
        dead_letters: DeadLetterStatus {
            table: letters.clone(),
            rows: 0,
            undelivered: 0,
        },
        pending: Heap::default(),
        unreadable: 0,
        partitions: Vec::new(),
    };
    let mut ledger = None;
    match warehouse.load(name).await {
        Ok(Some(table)) if table.metadata.uuid() == uuid => {
            status.snapshot_id = table.metadata.current_snapshot_id();
            status.rows = summary_total_rows(&table);
            match warehouse.ledger(&table).await {
                Ok(read) => ledger = Some(read),
                Err(error) => status.problem = Some(error.to_string()),
            }
        }
        Ok(Some(table)) => {
            let found = table.metadata.uuid();
            status.problem = Some(format!(
                "the catalog has another table of this name, with uuid {found}"
            ));
        }
        Ok(None) => status.problem = Some("the catalog has no such table any more".to_owned()),
        Err(error) => status.problem = Some(error.to_string()),
    }
    let mut partitions = BTreeMap::new();
    if let Some(ledger) = &ledger {
        status.commit = ledger.commit;
        status.committed_at_ms = Some(ledger.written_at);
        let undelivered = outbox::untaken(warehouse, &letters, ledger).await?;
        status.dead_letters.undelivered = undelivered.iter().map(|entry| entry.records).sum();
        if let Some(letters) = warehouse.load(&letters).await? {
            status.dead_letters.rows = summary_total_rows(&letters);
        }
        let log = ledger
            .log(&state.source, &state.topic)
            .filter(|log| log.epoch == state.epoch);
        partitions.extend(log.into_iter().flat_map(|log| log.partitions.iter()).map(taken));
    }
    let mut oldest = None;
    for kept in pending
        .iter()
        .filter(|kept| !is_settled(ledger.as_ref(), kept, None))
    {
        status.pending.add(kept.bytes, kept.stored_at_ms);
        status.unreadable += u64::from(kept.problem.is_some());
        oldest = older(oldest, Some(arrival(kept)));
        for claim in kept.claims.iter().flatten().filter(|_| kept.epoch == state.epoch) {
            if !is_settled(ledger.as_ref(), kept, Some(claim.partition)) {
                let entry = partitions
                    .entry(claim.partition)
                    .or_insert_with(|| taken((&claim.partition, &PartitionLedger::default())).1);
                entry.pending.push(claim.range);
            }
        }
    }
    status.partitions = partitions.into_values().collect();
    for partition in &mut status.partitions {
        let merged: IntervalSet = partition.pending.drain(..).collect();
        partition.pending = merged.into();
    }
    Ok((status, oldest))
}

fn taken((partition, ledger): (&Partition, &PartitionLedger)) -> (Partition, PartitionStatus) {
    let status = PartitionStatus {
        partition: *partition,
        next: ledger.next,
        holes: ledger.holes.iter().map(|hole| hole.range).collect(),
        uncertain: ledger.uncertain.ranges().to_vec(),
        pending: Vec::new(),
    };
    (*partition, status)
}

/// Whether a descriptor is committed and only waits to be deleted.
fn is_settled(ledger: Option<&Ledger>, kept: &Kept, partition: Option<Partition>) -> bool {
    ledger.is_some_and(|ledger| ledger.has_settled(kept.id, partition))
}

/// When the oldest record of a descriptor arrived in Kafka, or when it was staged if that is not known.
fn arrival(kept: &Kept) -> TimestampMs {
    let oldest = kept
        .claims
        .iter()
        .flatten()
        .filter_map(|claim| claim.oldest_ms)
        .min();
    oldest.unwrap_or(kept.stored_at_ms)
}

fn older(known: Option<TimestampMs>, other: Option<TimestampMs>) -> Option<TimestampMs> {
    match (known, other) {
        (Some(known), Some(other)) => Some(known.min(other)),
        (known, other) => known.or(other),
    }
}

impl Heap {
    pub(super) fn of(objects: &[Named]) -> Self {
        let mut heap = Self::default();
        for named in objects {
            heap.add(named.object.size_bytes, named.object.modified);
        }
        heap
    }

    fn add(&mut self, bytes: u64, stored_at: TimestampMs) {
        self.objects += 1;
        self.bytes += bytes;
        self.oldest_ms = older(self.oldest_ms, Some(stored_at));
    }
}
