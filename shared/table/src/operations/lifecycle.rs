use std::time::Duration;

use frazil_core::{Error, ErrorKind, Result, SourceName, TimestampMs, TopicName};

use super::history::{HistoryChoice, restore_history};
use crate::commit::{Scope, Survey};
use crate::plan::{SuspendCause, Suspension};
use crate::topic_state::{Cause, SuspendedTopic, TopicState};
use crate::warehouse::Warehouse;

/// How long an announced replay holds by default: a reset group reads a day's records in far less.
pub const REPLAY_FOR: Duration = Duration::from_secs(24 * 3_600);

/// What a person chooses together with “go on”.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resume {
    /// After a table's history has moved: what holds now.
    pub history: Option<HistoryChoice>,
    /// Let the circuit breaker's next trip pass.
    pub override_breaker: bool,
    /// After a table of the topic is gone: make it anew, with the next records.
    pub forget_missing_tables: bool,
    /// Give up an adoption that has not changed any table yet.
    pub abandon_adoption: bool,
}

/// Stops a topic: what comes is parked, what is staged already is still committed.
pub async fn suspend_topic(
    warehouse: &Warehouse,
    source: &SourceName,
    topic: &TopicName,
    reason: &str,
) -> Result<TopicState> {
    warehouse.suspend(source, topic, Cause::Operator, reason).await
}

/// Lets a topic go on, when what stopped it is answered: by `choice`, or because it is no question any more. Whether a
/// commit would stop it again is asked of the planner itself, from what is pending now. Resuming a running topic
/// changes nothing.
///
/// `Suspended`: a question is open; the hint names the answers.
pub async fn resume_topic(
    warehouse: &Warehouse,
    source: &SourceName,
    topic: &TopicName,
    choice: Resume,
) -> Result<TopicState> {
    let state = warehouse.topic_state(source, topic).await?;
    let Some(suspended) = state.suspended.clone() else {
        return Ok(state);
    };
    match suspended.cause {
        Cause::Operator | Cause::Poison | Cause::Schema | Cause::Breaker => {}
        Cause::TableGone => check_tables(warehouse, &state, choice.forget_missing_tables).await?,
        Cause::Adopt => check_adoption(&state, choice.abandon_adoption)?,
        Cause::Commit(cause) => {
            if let Some(history) = choice.history {
                for table in state.tables.keys() {
                    restore_history(warehouse, table, history).await?;
                }
            }
            let open = open_questions(warehouse, &state, None).await?;
            if let Some(question) = open.into_iter().next() {
                return Err(still_open(topic, &question));
            }
            tracing::info!(%topic, ?cause, "nothing pending asks any more");
        }
    }
    let missing = match choice.forget_missing_tables {
        true => missing_tables(warehouse, &state).await?,
        false => Vec::new(),
    };
    let changed = warehouse
        .change_topic_state(source, topic, |state| {
            if state.suspended.as_ref() != Some(&suspended) {
                return false;
            }
            state.suspended = None;
            state.breaker_override |= choice.override_breaker;
            state.tables.retain(|table, _| !missing.contains(table));
            if suspended.cause == Cause::Adopt {
                state.adoption = None;
            }
            true
        })
        .await?;
    answered(changed, topic)
}

/// Announces that the group was reset: until `until`, what is covered is dropped (and kept) without proof. A topic that
/// waits for this answer goes on.
///
/// It answers a missing proof, never a contradiction: offsets that come with other records than the table took are
/// another log, whatever was reset, and the planner would stop again at once.
pub async fn announce_replay(
    warehouse: &Warehouse,
    source: &SourceName,
    topic: &TopicName,
    until: Option<TimestampMs>,
) -> Result<TopicState> {
    let day_ms = i64::try_from(REPLAY_FOR.as_millis()).unwrap_or(i64::MAX);
    let until = until.unwrap_or(TimestampMs(warehouse.environment.now().0.saturating_add(day_ms)));
    let state = warehouse.topic_state(source, topic).await?;
    let suspended = state.suspended.clone();
    let cause = suspended.as_ref().map(|suspended| suspended.cause);
    let waits_for_proof = match cause {
        Some(Cause::Commit(SuspendCause::Contradiction | SuspendCause::Unproved | SuspendCause::OldHole)) => {
            true
        }
        Some(Cause::Adopt) => return Err(unfinished_adoption(topic)),
        _ => false,
    };
    if waits_for_proof {
        let open = open_questions(warehouse, &state, Some(true)).await?;
        if let Some(question) = open.into_iter().next() {
            return Err(still_open(topic, &question));
        }
    }
    let changed = warehouse
        .change_topic_state(source, topic, |state| {
            if state.suspended != suspended {
                return false;
            }
            state.replay_until = Some(until);
            if waits_for_proof {
                state.suspended = None;
            }
            true
        })
        .await?;
    if changed.suspended != suspended && changed.replay_until != Some(until) {
        return Err(changed_meanwhile(topic));
    }
    Ok(changed)
}

/// What a commit would ask about the topic now, if it were running.
async fn open_questions(
    warehouse: &Warehouse,
    state: &TopicState,
    replay: Option<bool>,
) -> Result<Vec<Suspension>> {
    let scope = Scope {
        source: state.source.clone(),
        topic: state.topic.clone(),
        only: None,
        replay,
    };
    let mut open = Vec::new();
    for table in state.tables.keys() {
        let Some(mut survey) = Survey::read(warehouse, table).await? else {
            continue;
        };
        if let Some(message) = survey.moved.take() {
            return Err(crate::commit::history_moved(table, message));
        }
        open.extend(survey.questions(warehouse, &scope).await?);
    }
    Ok(open)
}

fn still_open(topic: &TopicName, question: &Suspension) -> Error {
    let (code, hint) = match question.cause {
        SuspendCause::Contradiction => (
            "contradiction",
            "`frazil topic adopt` begins a new life of the topic; if it is no new log, set the descriptor aside with \
             `frazil pending quarantine`",
        ),
        SuspendCause::Unproved => (
            "unproved",
            "`frazil topic replay` if the group was reset: what the table took is dropped; `frazil topic adopt` if \
             this is a new log",
        ),
        SuspendCause::OldHole => (
            "old_hole",
            "`frazil topic replay` if these records belong to this log: the hole is filled; `frazil topic adopt` if \
             this is a new log",
        ),
        SuspendCause::Identity => (
            "identity",
            "set the descriptor aside with `frazil pending quarantine`; its records are kept",
        ),
        SuspendCause::History => (
            "history",
            "`frazil topic resume --history keep` or `--history restore`",
        ),
    };
    Error::new(ErrorKind::Suspended, "resume the topic", question.message.clone())
        .with_context("topic", topic)
        .with_context("descriptor", question.descriptor)
        .with_code(code)
        .with_hint(hint)
}

fn check_adoption(state: &TopicState, abandon: bool) -> Result<()> {
    let unchanged = state
        .adoption
        .as_ref()
        .is_none_or(|adoption| adoption.sorted.is_none());
    if abandon && unchanged {
        return Ok(());
    }
    Err(unfinished_adoption(&state.topic))
}

fn unfinished_adoption(topic: &TopicName) -> Error {
    Error::new(
        ErrorKind::Suspended,
        "resume the topic",
        "the adoption of a new log has begun and is not finished",
    )
    .with_context("topic", topic)
    .with_code("adopt")
    .with_hint("run `frazil topic adopt` again: it goes on where it stopped and resumes the topic at its end")
}

async fn missing_tables(warehouse: &Warehouse, state: &TopicState) -> Result<Vec<frazil_core::TableName>> {
    let mut missing = Vec::new();
    for (table, uuid) in &state.tables {
        let found = warehouse.load(table).await?;
        if found.is_none_or(|found| found.metadata.uuid() != *uuid) {
            missing.push(table.clone());
        }
    }
    Ok(missing)
}

async fn check_tables(warehouse: &Warehouse, state: &TopicState, forget: bool) -> Result<()> {
    let missing = missing_tables(warehouse, state).await?;
    match missing.first() {
        Some(table) if !forget => Err(Error::new(
            ErrorKind::Suspended,
            "resume the topic",
            "a table that it fed is not in the catalog any more, or another table has its name",
        )
        .with_context("topic", &state.topic)
        .with_context("table", table)
        .with_code("table_gone")
        .with_hint("restore the table, or resume with the choice that it is made anew")),
        _ => Ok(()),
    }
}

/// The state after a change that was only made if the suspension was still the one that was looked at.
fn answered(state: TopicState, topic: &TopicName) -> Result<TopicState> {
    match &state.suspended {
        None => Ok(state),
        Some(SuspendedTopic { .. }) => Err(changed_meanwhile(topic)),
    }
}

fn changed_meanwhile(topic: &TopicName) -> Error {
    Error::new(
        ErrorKind::Suspended,
        "resume the topic",
        "it was stopped for another reason meanwhile",
    )
    .with_context("topic", topic)
    .with_hint("`frazil status` shows the new reason")
}
