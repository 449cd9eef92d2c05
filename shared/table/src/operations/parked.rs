use async_trait::async_trait;
use bytes::Bytes;
use frazil_core::{Error, ErrorKind, OffsetRange, Partition, Result, SourceName, TopicName};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::descriptor::claims_to_attributes;
use crate::layout::LogName;
use crate::storage::list_all;
use crate::warehouse::Warehouse;

/// The format number in a parked event's attributes (promise I9).
pub const PARKED_FORMAT: u32 = 1;

/// The largest parked event that is read: Lambda delivers at most 6 MB, and a file on one machine may hold more.
pub const MAX_EVENT_BYTES: u64 = 256 * 1024 * 1024;

/// Takes parked events: the ingest function, or its handler on one machine.
#[async_trait]
pub trait EventSink: Send + Sync {
    /// Stages the event, and answers success only when all of its records are staged or dead letters (promise I1).
    ///
    /// Never parks. An ingest that finds the topic suspended meanwhile answers `Suspended`: parked again, the event
    /// would be there twice, and its copy after others that came later. The topic's state is read anew for each event
    /// and asked with [`TopicState::takes_parked`](crate::TopicState::takes_parked).
    async fn deliver(&self, parked: &ParkedEvent, event: Bytes) -> Result<()>;
}

/// Which parked event it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParkedEvent {
    /// The log that it was parked under; it is staged under this epoch.
    pub log: LogName,
    /// Time-ordered.
    pub id: Uuid,
}

/// A topic with parked events: what the catalog function finds and the ingest function drains.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ParkedTopic {
    /// The cluster.
    pub source: SourceName,
    /// The topic.
    pub topic: TopicName,
}

/// What a drain did.
#[derive(Debug, Default)]
pub struct DrainReport {
    /// Events staged and deleted.
    pub delivered: u64,
    /// Topics whose drain stopped before its end, and why. What is left stays in order for the next run.
    pub stopped: Vec<(SourceName, TopicName, Error)>,
}

/// Keeps an event of a suspended topic as it came. Its claims are readable without it; `None`: they are not known, and
/// it must be assumed to hold anything of its log.
pub async fn park(
    warehouse: &Warehouse,
    log: &LogName,
    event: Bytes,
    claims: Option<&[(Partition, OffsetRange)]>,
) -> Result<Uuid> {
    let id = warehouse.environment.new_uuid();
    let attributes = match claims {
        Some(claims) => claims_to_attributes(PARKED_FORMAT, claims.iter().copied()),
        None => format!("{PARKED_FORMAT} *"),
    };
    let location = warehouse.layout.parked_event(log, id);
    warehouse.storage.put(&location, event, Some(&attributes)).await?;
    Ok(id)
}

/// Hands at most `limit` parked events of running topics to ingest, those of a topic in the order in which they came,
/// and deletes each after it is staged. A topic's drain stops at its first failure; other topics go on.
/// O(topics with parked events + events delivered): a suspended topic's events are not listed through.
pub async fn drain_parked(warehouse: &Warehouse, sink: &dyn EventSink, limit: usize) -> Result<DrainReport> {
    let mut report = DrainReport::default();
    let mut last: Option<ParkedTopic> = None;
    while let Some(parked) = next_parked_topic(warehouse, last.as_ref()).await? {
        let room = limit.saturating_sub(report.delivered as usize);
        if room == 0 {
            break;
        }
        let ParkedTopic { source, topic } = &parked;
        match drain_topic(warehouse, source, topic, sink, room).await {
            Ok(delivered) => report.delivered += delivered,
            Err(stopped) => {
                report.delivered += stopped.delivered;
                report
                    .stopped
                    .push((source.clone(), topic.clone(), stopped.error));
            }
        }
        last = Some(parked);
    }
    Ok(report)
}

/// Topics with parked events that may be drained now, ascending. O(topics with parked events).
pub async fn parked_topics(warehouse: &Warehouse) -> Result<Vec<ParkedTopic>> {
    let mut running = Vec::new();
    let mut last: Option<ParkedTopic> = None;
    while let Some(parked) = next_parked_topic(warehouse, last.as_ref()).await? {
        let state = warehouse.topic_state(&parked.source, &parked.topic).await?;
        if state.suspended.is_none() {
            running.push(parked.clone());
        }
        last = Some(parked);
    }
    Ok(running)
}

/// The first topic with parked events behind `last`. Its events are not listed through.
async fn next_parked_topic(warehouse: &Warehouse, last: Option<&ParkedTopic>) -> Result<Option<ParkedTopic>> {
    let prefix = warehouse.layout.all_parked();
    // What follows a topic's prefix is an epoch, which starts with a digit.
    let behind = |last: &ParkedTopic| format!("{}~", warehouse.layout.parked(&last.source, &last.topic));
    let mut after = last.map(behind);
    loop {
        let page = warehouse.storage.list_page(&prefix, after.as_deref()).await?;
        let Some(first) = page.objects.first() else {
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(None),
            }
            continue;
        };
        if let Some((LogName { source, topic, .. }, _)) = warehouse.layout.parse_parked(&first.location) {
            return Ok(Some(ParkedTopic { source, topic }));
        }
        tracing::warn!(location = first.location, "not a parked event, passed over");
        after = Some(first.location.clone());
    }
}

/// A drain that stopped before its end.
#[derive(Debug)]
pub struct Stopped {
    /// Events staged and deleted before.
    pub delivered: u64,
    /// Why it stopped.
    pub error: Error,
}

/// Hands at most `limit` of a topic's parked events to ingest. None when the topic is suspended.
pub async fn drain_topic(
    warehouse: &Warehouse,
    source: &SourceName,
    topic: &TopicName,
    sink: &dyn EventSink,
    limit: usize,
) -> Result<u64, Stopped> {
    let mut delivered = 0;
    match drain(warehouse, source, topic, sink, limit, &mut delivered).await {
        Ok(()) => Ok(delivered),
        Err(error) => Err(Stopped { delivered, error }),
    }
}

async fn drain(
    warehouse: &Warehouse,
    source: &SourceName,
    topic: &TopicName,
    sink: &dyn EventSink,
    limit: usize,
    delivered: &mut u64,
) -> Result<()> {
    let state = warehouse.topic_state(source, topic).await?;
    if state.suspended.is_some() {
        return Ok(());
    }
    let mut events = parked_events(warehouse, source, topic).await?;
    if let Some(adoption) = state.adoption.as_ref().filter(|adoption| adoption.is_finished()) {
        // Whatever is parked under an earlier life after an adoption came late from an invocation that had read the
        // state before: it is the new log's.
        let mut moved = false;
        for event in events.iter().filter(|event| event.log.epoch < adoption.to) {
            moved |= move_parked(warehouse, event, adoption.to).await?;
        }
        if moved {
            events = parked_events(warehouse, source, topic).await?;
        }
    }
    for event in events.into_iter().take(limit) {
        if event.log.epoch != state.epoch {
            return Err(Error::new(
                ErrorKind::Suspended,
                "drain parked events",
                format!(
                    "one is of epoch {}, and the topic is at epoch {}",
                    event.log.epoch, state.epoch
                ),
            )
            .with_context("topic", topic)
            .with_context("event", event.id)
            .with_hint("`frazil topic adopt` sorts what belongs to which life"));
        }
        *delivered += u64::from(hand_over(warehouse, &event, sink).await?);
    }
    Ok(())
}

/// Stages one parked event and deletes it; `false`: somebody else did.
pub(super) async fn hand_over(
    warehouse: &Warehouse,
    event: &ParkedEvent,
    sink: &dyn EventSink,
) -> Result<bool> {
    let location = warehouse.layout.parked_event(&event.log, event.id);
    let Some(bytes) = warehouse.storage.get(&location, MAX_EVENT_BYTES).await? else {
        return Ok(false);
    };
    sink.deliver(event, bytes).await?;
    warehouse.storage.delete(&[location]).await?;
    Ok(true)
}

/// A topic's parked events, in the order of lives and arrival.
pub(super) async fn parked_events(
    warehouse: &Warehouse,
    source: &SourceName,
    topic: &TopicName,
) -> Result<Vec<ParkedEvent>> {
    let prefix = warehouse.layout.parked(source, topic);
    let objects = list_all(warehouse.storage.as_ref(), &prefix).await?;
    let parsed = objects
        .iter()
        .filter_map(|object| warehouse.layout.parse_parked(&object.location));
    let mut events: Vec<ParkedEvent> = parsed.map(|(log, id)| ParkedEvent { log, id }).collect();
    events.sort();
    Ok(events)
}

/// Moves a parked event to another life: copied under the same id first, then deleted.
pub(super) async fn move_parked(
    warehouse: &Warehouse,
    event: &ParkedEvent,
    epoch: frazil_core::Epoch,
) -> Result<bool> {
    let from = warehouse.layout.parked_event(&event.log, event.id);
    let Some(bytes) = warehouse.storage.get(&from, MAX_EVENT_BYTES).await? else {
        return Ok(false);
    };
    let attributes = warehouse
        .storage
        .head(&from)
        .await?
        .and_then(|head| head.attributes);
    let log = LogName {
        epoch,
        ..event.log.clone()
    };
    let to = warehouse.layout.parked_event(&log, event.id);
    warehouse.storage.put(&to, bytes, attributes.as_deref()).await?;
    warehouse.storage.delete(&[from]).await?;
    Ok(true)
}
