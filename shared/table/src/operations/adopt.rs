use std::collections::BTreeSet;
use std::time::Duration;

use frazil_core::{Epoch, Error, ErrorKind, Result, SourceName, TableName, TimestampMs, TopicName};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::parked::{EventSink, ParkedEvent, hand_over, move_parked, parked_events};
use super::restage::{Restage, all_claims, unsettled};
use crate::commit::{change_ledger, read_descriptors};
use crate::layout::{LogName, Shelf};
use crate::plan::{Content, Listed};
use crate::topic_state::{Cause, SuspendedTopic, TopicState};
use crate::warehouse::{LoadedTable, Warehouse};

mod sort;
mod unclear;

pub use unclear::Unclear;

/// How long an invocation of the old life may still be alive after the topic was suspended: Lambda's longest timeout.
pub const ADOPT_WAIT: Duration = Duration::from_secs(15 * 60);

/// An adoption, as far as it has come. It is kept in the topic's state, so that any run can go on with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adoption {
    /// The life that ends.
    pub from: Epoch,
    /// The life that begins.
    pub to: Epoch,
    /// When a person asked for it.
    pub started_at: TimestampMs,
    /// Since when no invocation stages any more.
    pub suspended_since: TimestampMs,
    /// What a person said of what is unclear.
    #[serde(default)]
    pub unclear: Option<Life>,
    /// What was sorted; until then nothing is changed that a resume could not leave as it is.
    #[serde(default)]
    pub sorted: Option<Sorted>,
    /// When the topic was resumed.
    #[serde(default)]
    pub finished_at: Option<TimestampMs>,
}

/// How pending, parked and dropped were sorted. The old log's pending descriptors are committed by then, so that what
/// is left under the old life is the new log's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sorted {
    /// The first descriptor of the new log; `None`: none was pending.
    pub first_new: Option<Uuid>,
    /// Dropped descriptors that are the new log's after all.
    #[serde(default)]
    pub from_dropped: BTreeSet<Uuid>,
    /// Descriptors in quarantine that stay there, as the old log's.
    #[serde(default)]
    pub left_aside: BTreeSet<Uuid>,
}

/// One of the two logs of an adoption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Life {
    /// The log that ended.
    Old,
    /// The log that is adopted.
    New,
}

/// What a person says along with “adopt”.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AdoptOptions {
    /// No invocation that began before the suspension runs any more: do not wait. To be said on one machine only,
    /// where a person can see it.
    pub no_invocation_alive: bool,
    /// The life that is to begin: a call that comes after it has begun does nothing. Without it, each call of a topic
    /// that is not being adopted begins another life.
    pub into: Option<Epoch>,
    /// Which log everything unclear belongs to.
    pub unclear: Option<Life>,
}

/// How far an adoption has come.
#[derive(Debug)]
pub enum AdoptProgress {
    /// An invocation of the old life may still be alive: call again at this time.
    Waiting {
        /// When.
        until: TimestampMs,
    },
    /// Nothing tells which log these belong to: call again with an answer. Neither loses a record.
    Unclear(Vec<Unclear>),
    /// These stand in the way: a person must deal with them, then call again.
    Blocked(Vec<(Uuid, String)>),
    /// The topic runs in its new life.
    Done(Adopted),
}

/// What an adoption did, as far as this call carried it out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Adopted {
    /// The topic's present life.
    pub epoch: Epoch,
    /// Descriptors staged anew under it.
    pub restaged: u64,
    /// Parked events moved under it.
    pub moved: u64,
}

impl Adoption {
    /// Whether the topic runs in the new life.
    pub fn is_finished(&self) -> bool {
        self.finished_at.is_some()
    }

    /// Whether parked events of the old log are being staged, so that they can be sorted.
    pub fn drains_old_log(&self) -> bool {
        self.sorted.is_none() && self.unclear == Some(Life::Old)
    }
}

/// Begins a new life of a topic (recreated, migrated, mirrored), or goes on with it. Call until it is `Done`.
///
/// The steps, in an order in which a crash between any two loses and doubles nothing; each finds out what is done:
///
/// 1. Suspend, and wait until no invocation of the old life can be alive. From then on nothing new is staged under it.
/// 2. Sort. Descriptors are judged by the planner in the order of their arrival; the first about which it would ask is
///    the new log's first one. What came before is the old log's and is committed **now**, under the old life: later
///    its ledger is closed. Nothing else of the topic is committed while it is suspended, so sorting again finds the
///    same. The result is written into the state before anything that sorting looks at is changed.
/// 3. The new life into each table's ledger, old ranges, anchors and uncertain intervals going; then into the state.
///    A commit of another run in between finds the topic suspended; what it sets aside as “of a lower epoch” is the
///    new log's and is picked up in step 4.
/// 4. Everything left under the old life is the new log's: descriptors are staged anew with `_kafka_epoch` rewritten
///    and only then deleted (under an id made from the old one, so that doing it twice leaves one), parked events are
///    copied under the new life and only then deleted.
/// 5. When nothing is left under the old life, resume.
///
/// `sink` stages parked events of the old log, when a person says that there are some.
pub async fn adopt(
    warehouse: &Warehouse,
    source: &SourceName,
    topic: &TopicName,
    sink: Option<&dyn EventSink>,
    options: AdoptOptions,
) -> Result<AdoptProgress> {
    let state = begin(warehouse, source, topic, options).await?;
    if has_begun(&state, options) {
        return Ok(AdoptProgress::Done(Adopted {
            epoch: state.epoch,
            ..Adopted::default()
        }));
    }
    let Some(adoption) = state.adoption.clone() else {
        return Err(interrupted(topic));
    };
    let wait_ms = i64::try_from(ADOPT_WAIT.as_millis()).unwrap_or(i64::MAX);
    let until = TimestampMs(adoption.suspended_since.0.saturating_add(wait_ms));
    if adoption.sorted.is_none() && !options.no_invocation_alive && warehouse.environment.now() < until {
        return Ok(AdoptProgress::Waiting { until });
    }
    let mut work = Adopting {
        warehouse,
        tables: tables(warehouse, &state).await?,
        old: LogName {
            source: source.clone(),
            topic: topic.clone(),
            epoch: adoption.from,
        },
        answer: options.unclear.or(adoption.unclear),
        adoption,
        done: Adopted::default(),
    };
    if work.adoption.sorted.is_none() {
        match work.sort(sink).await? {
            sort::Sorting::Done(sorted) => work.record(sorted).await?,
            sort::Sorting::Unclear(unclear) => return Ok(AdoptProgress::Unclear(unclear)),
            sort::Sorting::Blocked(blocked) => return Ok(AdoptProgress::Blocked(blocked)),
        }
    }
    work.change_epoch().await?;
    work.restage().await?;
    work.move_parked().await?;
    let left = work.left().await?;
    if !left.is_empty() {
        return Ok(AdoptProgress::Blocked(left));
    }
    work.finish().await
}

/// Suspends the topic for adoption, or takes up the one that is under way; notes the answer to what is unclear.
async fn begin(
    warehouse: &Warehouse,
    source: &SourceName,
    topic: &TopicName,
    options: AdoptOptions,
) -> Result<TopicState> {
    let now = warehouse.environment.now();
    warehouse
        .change_topic_state(source, topic, |state| {
            if has_begun(state, options) {
                return false;
            }
            if !is_under_way(state) {
                let since = state.suspended.as_ref().map_or(now, |suspended| suspended.since);
                state.adoption = Some(Adoption {
                    from: state.epoch,
                    to: state.epoch.next(),
                    started_at: now,
                    suspended_since: since,
                    unclear: options.unclear,
                    sorted: None,
                    finished_at: None,
                });
                state.suspended = Some(SuspendedTopic {
                    cause: Cause::Adopt,
                    message: format!(
                        "a new life of the topic, epoch {}, is being adopted; `frazil topic adopt` goes on with it",
                        state.epoch.next()
                    ),
                    since,
                });
                state.replay_until = None;
                return true;
            }
            match &mut state.adoption {
                Some(adoption) if adoption.sorted.is_none() && options.unclear.is_some() => {
                    let changed = adoption.unclear != options.unclear;
                    adoption.unclear = options.unclear;
                    changed
                }
                _ => false,
            }
        })
        .await
}

fn is_under_way(state: &TopicState) -> bool {
    state
        .adoption
        .as_ref()
        .is_some_and(|adoption| !adoption.is_finished())
}

fn has_begun(state: &TopicState, options: AdoptOptions) -> bool {
    !is_under_way(state) && options.into.is_some_and(|into| state.epoch >= into)
}

/// The topic's tables that the catalog still has.
async fn tables(warehouse: &Warehouse, state: &TopicState) -> Result<Vec<TableName>> {
    let mut found = Vec::with_capacity(state.tables.len());
    for (name, uuid) in &state.tables {
        match warehouse.load(name).await? {
            Some(table) if table.metadata.uuid() == *uuid => found.push(name.clone()),
            _ => tracing::warn!(table = %name, "table of the topic is gone; it is made anew in the new life"),
        }
    }
    Ok(found)
}

fn interrupted(topic: &TopicName) -> Error {
    Error::new(
        ErrorKind::Conflict,
        "adopt the topic",
        "another run finished or gave up the adoption meanwhile",
    )
    .with_context("topic", topic)
    .with_hint("`frazil status` shows how it stands")
}

struct Adopting<'a> {
    warehouse: &'a Warehouse,
    tables: Vec<TableName>,
    /// The log that ends.
    old: LogName,
    adoption: Adoption,
    answer: Option<Life>,
    done: Adopted,
}

impl Adopting<'_> {
    async fn record(&mut self, sorted: Sorted) -> Result<()> {
        let state = self
            .change(|adoption| {
                let first = adoption.sorted.is_none();
                if first {
                    adoption.sorted = Some(sorted.clone());
                }
                first
            })
            .await?;
        self.adoption = state.adoption.ok_or_else(|| interrupted(&self.old.topic))?;
        Ok(())
    }

    /// Changes this adoption, if it is still the one under way.
    async fn change(&self, change: impl Fn(&mut Adoption) -> bool + Send + Sync) -> Result<TopicState> {
        let (source, topic) = (&self.old.source, &self.old.topic);
        let to = self.adoption.to;
        let state = self
            .warehouse
            .change_topic_state(source, topic, |state| match &mut state.adoption {
                Some(adoption) if adoption.to == to && !adoption.is_finished() => change(adoption),
                _ => false,
            })
            .await?;
        match &state.adoption {
            Some(adoption) if adoption.to == to && !adoption.is_finished() => Ok(state),
            _ => Err(interrupted(topic)),
        }
    }

    async fn change_epoch(&self) -> Result<()> {
        let (source, topic, to) = (&self.old.source, &self.old.topic, self.adoption.to);
        for table in &self.tables {
            change_ledger(self.warehouse, table, |ledger| {
                let log = ledger.log_mut(source, topic, to);
                let behind = log.epoch < to;
                if behind {
                    log.epoch = to;
                    log.partitions.clear();
                }
                Ok(behind)
            })
            .await?;
        }
        self.warehouse
            .change_topic_state(source, topic, |state| {
                let behind = state.epoch < to;
                state.epoch = state.epoch.max(to);
                behind
            })
            .await?;
        Ok(())
    }

    /// Stages everything anew that is left under the old life.
    async fn restage(&mut self) -> Result<()> {
        let sorted = self.adoption.sorted.clone().unwrap_or_default();
        for name in self.tables.clone() {
            let table = self.warehouse.load_existing(&name).await?;
            for shelf in [Shelf::Pending, Shelf::Quarantine, Shelf::Dropped] {
                for listed in self.of_old_life(&table, shelf).await? {
                    let is_new = match shelf {
                        Shelf::Pending => true,
                        Shelf::Quarantine => !sorted.left_aside.contains(&listed.id),
                        Shelf::Dropped => sorted.from_dropped.contains(&listed.id),
                    };
                    if is_new {
                        self.restage_one(&table, shelf, &listed).await?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn restage_one(&mut self, table: &LoadedTable, shelf: Shelf, listed: &Listed) -> Result<()> {
        let Content::Read(descriptor) = &listed.content else {
            return Ok(()); // reported as left
        };
        // Read for each, after the table: what is settled by then stays settled.
        let ledger = self.warehouse.ledger(table).await?;
        let restage = Restage {
            warehouse: self.warehouse,
            table,
            ledger: &ledger,
            epoch: self.adoption.to,
            backfill: descriptor.backfill,
            without: &Default::default(),
        };
        // What is pending may have been taken in part. A dropped copy was not, or is asked about as a whole.
        let accepted = match shelf {
            Shelf::Pending | Shelf::Quarantine => unsettled(&ledger, descriptor),
            Shelf::Dropped => all_claims(descriptor),
        };
        let restaged = restage.run(descriptor, &accepted).await?;
        let location = self
            .warehouse
            .layout
            .descriptor(shelf, table.metadata.uuid(), &listed.log, listed.id);
        self.warehouse.storage.delete(&[location]).await?;
        self.done.restaged += u64::from(restaged.is_some());
        Ok(())
    }

    async fn move_parked(&mut self) -> Result<()> {
        for event in self.parked().await? {
            let moved = move_parked(self.warehouse, &event, self.adoption.to).await?;
            self.done.moved += u64::from(moved);
        }
        Ok(())
    }

    /// What is still under the old life, and why.
    async fn left(&self) -> Result<Vec<(Uuid, String)>> {
        let sorted = self.adoption.sorted.clone().unwrap_or_default();
        let mut left = Vec::new();
        for name in &self.tables {
            let table = self.warehouse.load_existing(name).await?;
            for shelf in [Shelf::Pending, Shelf::Quarantine] {
                let listed = self.of_old_life(&table, shelf).await?;
                let stays = |listed: &Listed| {
                    let is_unreadable = matches!(listed.content, Content::Unreadable { .. });
                    let is_aside = shelf == Shelf::Quarantine;
                    is_aside
                        && (sorted.left_aside.contains(&listed.id)
                            || is_unreadable && self.answer == Some(Life::Old))
                };
                let listed = listed.into_iter().filter(|listed| !stays(listed));
                left.extend(listed.map(|listed| (listed.id, why_left(&listed))));
            }
        }
        left.extend(
            self.parked()
                .await?
                .into_iter()
                .map(|event| (event.id, "it came meanwhile".to_owned())),
        );
        Ok(left)
    }

    async fn finish(self) -> Result<AdoptProgress> {
        let (source, topic, to) = (&self.old.source, &self.old.topic, self.adoption.to);
        let now = self.warehouse.environment.now();
        let present = &self.tables;
        let state = self
            .warehouse
            .change_topic_state(source, topic, |state| match &mut state.adoption {
                Some(adoption) if adoption.to == to && !adoption.is_finished() => {
                    adoption.finished_at = Some(now);
                    if state
                        .suspended
                        .as_ref()
                        .is_some_and(|suspended| suspended.cause == Cause::Adopt)
                    {
                        state.suspended = None;
                    }
                    state.tables.retain(|table, _| present.contains(table));
                    true
                }
                _ => false,
            })
            .await?;
        Ok(AdoptProgress::Done(Adopted {
            epoch: state.epoch,
            ..self.done
        }))
    }

    /// The topic's parked events of the old life and of any before it.
    async fn parked(&self) -> Result<Vec<ParkedEvent>> {
        let events = parked_events(self.warehouse, &self.old.source, &self.old.topic).await?;
        Ok(events
            .into_iter()
            .filter(|event| event.log.epoch < self.adoption.to)
            .collect())
    }

    /// The descriptors of the old life on a shelf, in the order of their arrival.
    async fn of_old_life(&self, table: &LoadedTable, shelf: Shelf) -> Result<Vec<Listed>> {
        let mut listed = read_descriptors(self.warehouse, table.metadata.uuid(), shelf).await?;
        listed.retain(|listed| listed.log == self.old);
        listed.sort_by_key(|listed| (listed.arrival(), listed.id));
        Ok(listed)
    }

    async fn hand_over(&self, sink: Option<&dyn EventSink>, events: &[ParkedEvent]) -> Result<()> {
        let Some(sink) = sink else {
            return Err(Error::new(
                ErrorKind::Invalid,
                "adopt the topic",
                "parked events of the old log must be staged first, and there is no ingest to do it",
            )
            .with_context("topic", &self.old.topic)
            .with_hint("run `frazil topic adopt` where ingest can be reached"));
        };
        for event in events {
            hand_over(self.warehouse, event, sink).await?;
        }
        Ok(())
    }
}

fn why_left(listed: &Listed) -> String {
    match &listed.content {
        Content::Read(_) => "it came meanwhile".to_owned(),
        Content::Unreadable { reason, .. } => format!(
            "it cannot be read: {reason}; set it aside with `frazil pending quarantine` and say that it is the old \
             log's, then it stays there"
        ),
    }
}
