use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use frazil_core::{
    Epoch, Error, ErrorKind, NamespaceName, Result, SourceName, TableName, TimestampMs, TopicName,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::operations::Adoption;
use crate::plan::{SuspendCause, TopicPolicy};
use crate::warehouse::Warehouse;

/// The format number that this version writes, and the newest that it reads (promise I9).
pub const STATE_FORMAT: u32 = 1;

/// How many states are loaded at once.
const LOADS_AT_ONCE: usize = 32;

/// How often a change of a state is tried when others change it too.
const MAX_ATTEMPTS: u32 = 16;

/// What is known of a topic beside its tables: its life, whether it runs, and how far its tables had come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicState {
    /// The format number.
    pub format: u32,
    /// The cluster.
    pub source: SourceName,
    /// The topic.
    pub topic: TopicName,
    /// The topic's present life.
    pub epoch: Epoch,
    /// Why it is suspended; `None`: it runs.
    #[serde(default)]
    pub suspended: Option<SuspendedTopic>,
    /// Until when a person's “I reset the group” holds.
    #[serde(default)]
    pub replay_until: Option<TimestampMs>,
    /// Tables that the topic feeds. One that the catalog does not know any more is not made again in silence.
    #[serde(default)]
    pub tables: BTreeMap<TableName, Uuid>,
    /// Per table, the highest commit number seen: a pointer that falls back together with its ledger shows here.
    #[serde(default)]
    pub high_water: BTreeMap<Uuid, u64>,
    /// What `format = "auto"` found when the first values came. It stays: how a record is read must not depend on the
    /// company in which it is delivered again.
    #[serde(default)]
    pub value_format: Option<ValueFormat>,
    /// How the values that decided it name their schemas. Decided and kept together with `value_format`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_framing: Option<ValueFraming>,
    /// The full name of the type that the topic's records are, once one was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_name: Option<String>,
    /// Whether resume asked the breaker to let the next trip pass.
    #[serde(default)]
    pub breaker_override: bool,
    /// The adoption of a new life that is under way, or the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adoption: Option<Adoption>,
}

/// How a topic's values are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueFormat {
    /// In the language of the schema that each names. Once there was only one such language.
    #[serde(alias = "avro")]
    Registered,
    /// One JSON object per record.
    Json,
}

/// How a topic's values name their schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueFraming {
    /// Confluent's header or prefix.
    Confluent,
    /// Glue's prefix.
    Glue,
    /// Lambda's registry client has taken the prefix off, and the event says the schema.
    Lambda,
    /// They do not.
    None,
}

/// A suspension and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspendedTopic {
    /// Why.
    pub cause: Cause,
    /// Why, in words, with what to do.
    pub message: String,
    /// Since when.
    pub since: TimestampMs,
}

/// Why a topic is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A person asked for it.
    Operator,
    /// A record could not be read, and the topic says `on_error = "suspend"`.
    Poison,
    /// Too many dead letters.
    Breaker,
    /// A schema change was refused.
    Schema,
    /// A table of the topic is gone from the catalog.
    TableGone,
    /// A new life of the topic is being adopted.
    Adopt,
    /// A commit found something that a person must decide.
    Commit(SuspendCause),
}

impl Cause {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Poison => "poison",
            Self::Breaker => "breaker",
            Self::Schema => "schema",
            Self::TableGone => "table_gone",
            Self::Adopt => "adopt",
            Self::Commit(SuspendCause::Contradiction) => "contradiction",
            Self::Commit(SuspendCause::Unproved) => "unproved",
            Self::Commit(SuspendCause::OldHole) => "old_hole",
            Self::Commit(SuspendCause::Identity) => "identity",
            Self::Commit(SuspendCause::History) => "history",
        }
    }

    /// Whether what is staged already may still be committed: what a person or the decoder stopped is sound, what a
    /// commit stopped is in question.
    pub fn lets_commits_pass(self) -> bool {
        match self {
            Self::Operator | Self::Poison | Self::Breaker | Self::Schema => true,
            Self::TableGone | Self::Adopt | Self::Commit(_) => false,
        }
    }
}

impl TopicState {
    /// The state of a topic that nobody has said anything about: epoch 0, running.
    pub fn new(source: SourceName, topic: TopicName) -> Self {
        Self {
            format: STATE_FORMAT,
            source,
            topic,
            epoch: Epoch(0),
            suspended: None,
            replay_until: None,
            tables: BTreeMap::new(),
            high_water: BTreeMap::new(),
            value_format: None,
            value_framing: None,
            record_name: None,
            breaker_override: false,
            adoption: None,
        }
    }

    /// What the state means for a commit at `now`.
    pub fn policy(&self, now: TimestampMs) -> TopicPolicy {
        TopicPolicy {
            epoch: self.epoch,
            commits: self
                .suspended
                .as_ref()
                .is_none_or(|suspended| suspended.cause.lets_commits_pass()),
            replay: self.replay_until.is_some_and(|until| now < until),
        }
    }

    /// Whether a parked event of this life may be staged now: the topic runs in it, or it is being adopted and a
    /// person said that the event is the old log's. Who drains answers `Suspended` otherwise, and never parks again.
    pub fn takes_parked(&self, epoch: Epoch) -> bool {
        let drains_old = self.adoption.as_ref().is_some_and(Adoption::drains_old_log);
        epoch == self.epoch && (self.suspended.is_none() || drains_old)
    }

    fn key(source: &SourceName, topic: &TopicName) -> String {
        format!("topic/{source}/{topic}")
    }

    fn from_json(bytes: &[u8], key: &str) -> Result<Self> {
        let damaged = |e: serde_json::Error| {
            Error::new(ErrorKind::Internal, "read a topic's state", e.to_string())
                .with_context("key", key)
                .with_hint("restore an earlier version of it")
                .with_source(e)
        };
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let Format { format } = serde_json::from_slice(bytes).map_err(damaged)?;
        if format == 0 || format > STATE_FORMAT {
            return Err(Error::new(
                ErrorKind::Invalid,
                "read a topic's state",
                format!("it has format {format}, and this version reads up to {STATE_FORMAT}"),
            )
            .with_context("key", key)
            .with_hint("a newer version wrote it: upgrade this one"));
        }
        serde_json::from_slice(bytes).map_err(damaged)
    }
}

impl Warehouse {
    /// The topic's state; a new one when none is stored.
    pub async fn topic_state(&self, source: &SourceName, topic: &TopicName) -> Result<TopicState> {
        let key = TopicState::key(source, topic);
        match self.states.load(&key).await? {
            Some(entry) => TopicState::from_json(&entry.bytes, &key),
            None => Ok(TopicState::new(source.clone(), topic.clone())),
        }
    }

    /// All stored topic states, by source and topic.
    pub async fn topic_states(&self) -> Result<Vec<TopicState>> {
        let keys = self.states.keys("topic/").await?;
        let loads = keys.into_iter().map(|key| async move {
            match self.states.load(&key).await? {
                Some(entry) => TopicState::from_json(&entry.bytes, &key).map(Some),
                None => Ok(None),
            }
        });
        let states: Vec<Option<TopicState>> =
            stream::iter(loads).buffered(LOADS_AT_ONCE).try_collect().await?;
        Ok(states.into_iter().flatten().collect())
    }

    /// The namespaces that topics of this warehouse feed; all of the catalog while there are no topics: a catalog may be
    /// shared with others. Ascending.
    pub async fn namespaces(&self) -> Result<Vec<NamespaceName>> {
        let states = self.topic_states().await?;
        let tables = states.iter().flat_map(|state| state.tables.keys());
        let namespaces: BTreeSet<NamespaceName> = tables.map(|table| table.namespace().clone()).collect();
        match namespaces.is_empty() {
            true => self.catalog.namespaces().await,
            false => Ok(namespaces.into_iter().collect()),
        }
    }

    /// Changes the topic's state by compare-and-set until it holds; `change` says whether there is anything to
    /// write, and sees the newest state at each try. Returns the state as it then is.
    pub async fn change_topic_state(
        &self,
        source: &SourceName,
        topic: &TopicName,
        change: impl Fn(&mut TopicState) -> bool + Send + Sync,
    ) -> Result<TopicState> {
        let key = TopicState::key(source, topic);
        let mut last = None;
        for attempt in 0..MAX_ATTEMPTS {
            if attempt > 0 {
                let (base, limit) = (
                    std::time::Duration::from_millis(20),
                    std::time::Duration::from_secs(2),
                );
                self.environment.backoff(attempt, base, limit).await;
            }
            let entry = self.states.load(&key).await?;
            let mut state = match &entry {
                Some(entry) => TopicState::from_json(&entry.bytes, &key)?,
                None => TopicState::new(source.clone(), topic.clone()),
            };
            if !change(&mut state) {
                return Ok(state);
            }
            let bytes = serde_json::to_vec(&state).map_err(|e| {
                Error::new(ErrorKind::Internal, "write a topic's state", e.to_string()).with_source(e)
            })?;
            let version = entry.as_ref().map(|entry| entry.version.as_str());
            match self.states.store(&key, Bytes::from(bytes), version).await {
                Ok(()) => return Ok(state),
                Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Unavailable) => {
                    last = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| {
            Error::new(
                ErrorKind::Conflict,
                "write a topic's state",
                "others changed it every time",
            )
        }))
    }

    /// Suspends a running topic, or leaves an earlier reason as it is.
    pub async fn suspend(
        &self,
        source: &SourceName,
        topic: &TopicName,
        cause: Cause,
        message: &str,
    ) -> Result<TopicState> {
        let since = self.environment.now();
        self.change_topic_state(source, topic, |state| {
            let stops_more = state
                .suspended
                .as_ref()
                .is_none_or(|known| known.cause.lets_commits_pass() && !cause.lets_commits_pass());
            if stops_more {
                state.suspended = Some(SuspendedTopic {
                    cause,
                    message: message.to_owned(),
                    since,
                });
            }
            stops_more
        })
        .await
    }

    /// Notes that a table was seen at a commit; never goes back.
    pub(crate) async fn raise_high_water(
        &self,
        source: &SourceName,
        topic: &TopicName,
        table: Uuid,
        commit: u64,
    ) -> Result<()> {
        let raise = |state: &mut TopicState| {
            let rises = state.high_water.get(&table).is_none_or(|known| *known < commit);
            if rises {
                state.high_water.insert(table, commit);
            }
            rises
        };
        self.change_topic_state(source, topic, raise).await.map(drop)
    }
}
