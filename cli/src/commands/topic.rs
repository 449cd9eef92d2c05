use frazil_core::{Epoch, Error, ErrorKind, Result, SourceName, TopicName};
use frazil_table::{
    AdoptOptions, AdoptProgress, HistoryChoice, Life as AdoptedLife, Resume, TopicState, Unclear, Warehouse,
    adopt, announce_replay, resume_topic, suspend_topic, undrop,
};
use serde::Serialize;
use uuid::Uuid;

use crate::arguments::{History, Life, Topic, TopicCommand};
use crate::document::plain;
use crate::failure::Outcome;
use crate::output::{Document, Output};
use crate::session::{Handlers, Session};
use crate::units;

/// What a command did to a topic, and how it stands now.
#[derive(Debug, PartialEq, Serialize)]
struct Changed {
    source: SourceName,
    topic: TopicName,
    epoch: Epoch,
    /// `running` or `suspended`.
    state: &'static str,
    #[serde(flatten)]
    done: Done,
}

/// What was done.
#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "done", rename_all = "snake_case")]
enum Done {
    Suspended {
        reason: String,
    },
    Resumed,
    ReplayAnnounced {
        until_ms: i64,
    },
    /// The topic runs in its new life.
    Adopted {
        restaged: u64,
        moved: u64,
    },
    /// Something of the old life may still be running: the command is to be given again then.
    AdoptionWaits {
        until_ms: i64,
    },
    /// Nothing tells which log these belong to.
    AdoptionUnclear {
        unclear: Vec<UnclearDocument>,
    },
    /// These stand in the way.
    AdoptionBlocked {
        blocked: Vec<Blocked>,
    },
    Undropped {
        restaged: Vec<Restaged>,
    },
}

/// Something of which nothing tells the log.
#[derive(Debug, PartialEq, Serialize)]
struct UnclearDocument {
    id: Uuid,
    /// `dropped`, `parked` or `quarantine`.
    place: &'static str,
    /// Whether it can be read; what cannot can only be left aside.
    readable: bool,
}

#[derive(Debug, PartialEq, Serialize)]
struct Blocked {
    id: Uuid,
    reason: String,
}

#[derive(Debug, PartialEq, Serialize)]
struct Restaged {
    dropped: Uuid,
    pending: Uuid,
    epoch: Epoch,
}

pub(crate) async fn topic(session: &Session, command: TopicCommand, output: &Output) -> Result<Outcome> {
    let warehouse = session.existing_warehouse().await?;
    let named = match &command {
        TopicCommand::Suspend { topic, .. }
        | TopicCommand::Resume { topic, .. }
        | TopicCommand::Replay { topic }
        | TopicCommand::Adopt { topic, .. }
        | TopicCommand::Undrop { topic, .. } => topic,
    };
    let (source, topic) = known_topic(session, &warehouse, named).await?;
    let progress = session.progress();
    let done = match command {
        TopicCommand::Suspend { reason, .. } => {
            suspend_topic(&warehouse, &source, &topic, &reason).await?;
            Done::Suspended { reason }
        }
        TopicCommand::Resume {
            override_breaker,
            history,
            forget_missing_tables,
            abandon_adoption,
            ..
        } => {
            let choice = Resume {
                history: history.map(|history| match history {
                    History::Keep => HistoryChoice::KeepPresent,
                    History::Restore => HistoryChoice::RestoreMain,
                }),
                override_breaker,
                forget_missing_tables,
                abandon_adoption,
            };
            resume_topic(&warehouse, &source, &topic, choice).await?;
            Done::Resumed
        }
        TopicCommand::Replay { .. } => {
            let state = announce_replay(&warehouse, &source, &topic, None).await?;
            Done::ReplayAnnounced {
                until_ms: state.replay_until.map_or(0, |until| until.0),
            }
        }
        TopicCommand::Adopt {
            into,
            unclear,
            no_wait,
            ..
        } => {
            progress.say("sorting what is pending, parked and dropped");
            let mut handlers = Handlers::default();
            let sink = session.ingest(&mut handlers, &warehouse, None)?;
            let options = AdoptOptions {
                no_invocation_alive: no_wait,
                into: into.map(Epoch),
                unclear: unclear.map(|life| match life {
                    Life::Old => AdoptedLife::Old,
                    Life::New => AdoptedLife::New,
                }),
            };
            adopted(adopt(&warehouse, &source, &topic, Some(sink), options).await?)
        }
        TopicCommand::Undrop { ids, epoch, .. } => {
            let mut restaged = Vec::with_capacity(ids.len());
            for id in ids {
                let undropped = undrop(&warehouse, id, epoch.map(Epoch)).await?;
                restaged.push(Restaged {
                    dropped: undropped.dropped,
                    pending: undropped.pending,
                    epoch: undropped.epoch,
                });
            }
            Done::Undropped { restaged }
        }
    };
    drop(progress);
    let changed = Changed::new(warehouse.topic_state(&source, &topic).await?, done);
    output.print(&changed)?;
    Ok(changed.outcome())
}

/// A topic that was never seen is a slip of the pen, not a topic to suspend.
async fn known_topic(
    session: &Session,
    warehouse: &Warehouse,
    topic: &Topic,
) -> Result<(SourceName, TopicName)> {
    let name = topic.name();
    let source = session.source_of(warehouse, &name, topic.source.name()).await?;
    let states = warehouse.topic_states().await?;
    if states
        .iter()
        .any(|state| state.topic == name && state.source == source)
    {
        return Ok((source, name));
    }
    Err(Error::new(
        ErrorKind::Invalid,
        "find the topic",
        "no event of it has arrived in this warehouse",
    )
    .with_context("source", &source)
    .with_context("topic", &name)
    .with_hint("`frazil status` lists the topics that are known"))
}

fn adopted(progress: AdoptProgress) -> Done {
    match progress {
        AdoptProgress::Done(adopted) => Done::Adopted {
            restaged: adopted.restaged,
            moved: adopted.moved,
        },
        AdoptProgress::Waiting { until } => Done::AdoptionWaits { until_ms: until.0 },
        AdoptProgress::Unclear(unclear) => Done::AdoptionUnclear {
            unclear: unclear.into_iter().map(UnclearDocument::from).collect(),
        },
        AdoptProgress::Blocked(blocked) => Done::AdoptionBlocked {
            blocked: blocked
                .into_iter()
                .map(|(id, reason)| Blocked { id, reason })
                .collect(),
        },
    }
}

impl From<Unclear> for UnclearDocument {
    fn from(unclear: Unclear) -> Self {
        match unclear {
            Unclear::Dropped { id, .. } => Self {
                id,
                place: "dropped",
                readable: true,
            },
            Unclear::Parked { id } => Self {
                id,
                place: "parked",
                readable: true,
            },
            Unclear::Quarantined { id, readable } => Self {
                id,
                place: "quarantine",
                readable,
            },
        }
    }
}

impl Changed {
    fn new(state: TopicState, done: Done) -> Self {
        Self {
            source: state.source,
            topic: state.topic,
            epoch: state.epoch,
            state: if state.suspended.is_some() {
                "suspended"
            } else {
                "running"
            },
            done,
        }
    }

    /// An adoption that is not finished leaves the topic suspended.
    fn outcome(&self) -> Outcome {
        match self.done {
            Done::Suspended { .. }
            | Done::Resumed
            | Done::ReplayAnnounced { .. }
            | Done::Adopted { .. }
            | Done::Undropped { .. } => Outcome::Done,
            Done::AdoptionWaits { .. } | Done::AdoptionUnclear { .. } | Done::AdoptionBlocked { .. } => {
                Outcome::Suspended
            }
        }
    }
}

impl Document for Changed {
    fn to_text(&self, _: Option<usize>) -> String {
        let topic = plain(self.topic.as_str());
        match &self.done {
            Done::Suspended { reason } => {
                format!(
                    "{topic} is suspended: {}; what arrives is parked\n",
                    plain(reason)
                )
            }
            Done::Resumed => {
                format!("{topic} is running; what was parked is ingested with the next commit\n")
            }
            Done::ReplayAnnounced { until_ms } => format!(
                "{topic}: until {}, offsets that the table has are dropped when they come again, and kept for 14 \
                 days\n",
                units::time(frazil_core::TimestampMs(*until_ms))
            ),
            Done::Adopted { restaged, moved } => format!(
                "{topic} is running in epoch {}; {} and {} of the new log were taken over\n",
                self.epoch,
                units::counted(*restaged, "descriptor"),
                units::counted(*moved, "parked event")
            ),
            Done::AdoptionWaits { until_ms } => format!(
                "{topic}: an invocation that began before may still be running; give the command again after {}, or \
                 with --no-wait if you know that none is\n",
                units::time(frazil_core::TimestampMs(*until_ms))
            ),
            Done::AdoptionUnclear { unclear } => {
                let mut text = format!("{topic}: nothing tells which log these belong to:\n");
                let readable = |of: &UnclearDocument| if of.readable { "" } else { ", cannot be read" };
                text.extend(
                    unclear
                        .iter()
                        .map(|of| format!("  {}  {}{}\n", of.id, of.place, readable(of))),
                );
                text.push_str(
                    "give the command again with --unclear old or --unclear new; neither loses a record\n",
                );
                text
            }
            Done::AdoptionBlocked { blocked } => {
                let mut text = format!("{topic}: these stand in the way:\n");
                text.extend(
                    blocked
                        .iter()
                        .map(|of| format!("  {}  {}\n", of.id, plain(&of.reason))),
                );
                text.push_str("deal with them (`frazil pending show ID`), then give the command again\n");
                text
            }
            Done::Undropped { restaged } => {
                let line = |of: &Restaged| {
                    format!(
                        "{} is pending again as {}, in epoch {}\n",
                        of.dropped, of.pending, of.epoch
                    )
                };
                restaged.iter().map(line).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(done: Done) -> Changed {
        Changed::new(TopicState::new("default".into(), "orders".into()), done)
    }

    #[test]
    fn says_what_was_done_and_what_is_next() {
        for (done, text, outcome) in [
            (
                Done::Suspended {
                    reason: "maintenance".to_owned(),
                },
                "orders is suspended: maintenance; what arrives is parked\n",
                Outcome::Done,
            ),
            (
                Done::Resumed,
                "orders is running; what was parked is ingested with the next commit\n",
                Outcome::Done,
            ),
            (
                Done::ReplayAnnounced {
                    until_ms: 1_796_063_000_000,
                },
                "orders: until 2026-11-30T18:23:20Z, offsets that the table has are dropped when they come again, \
                 and kept for 14 days\n",
                Outcome::Done,
            ),
            (
                Done::Adopted {
                    restaged: 1,
                    moved: 2,
                },
                "orders is running in epoch 0; 1 descriptor and 2 parked events of the new log were taken over\n",
                Outcome::Done,
            ),
            (
                Done::AdoptionWaits {
                    until_ms: 1_796_063_000_000,
                },
                "orders: an invocation that began before may still be running; give the command again after \
                 2026-11-30T18:23:20Z, or with --no-wait if you know that none is\n",
                Outcome::Suspended,
            ),
            (
                Done::AdoptionBlocked {
                    blocked: vec![Blocked {
                        id: Uuid::from_u128(9),
                        reason: "cannot be read".to_owned(),
                    }],
                },
                "orders: these stand in the way:\n  00000000-0000-0000-0000-000000000009  cannot be read\ndeal with \
                 them (`frazil pending show ID`), then give the command again\n",
                Outcome::Suspended,
            ),
        ] {
            let changed = changed(done);
            assert_eq!(
                (changed.to_text(None).as_str(), changed.outcome()),
                (text, outcome)
            );
        }
    }

    #[test]
    fn programs_read_what_was_done() {
        assert_eq!(
            serde_json::to_string(&changed(Done::AdoptionWaits { until_ms: 7 })).unwrap(),
            r#"{"source":"default","topic":"orders","epoch":0,"state":"running","done":"adoption_waits","until_ms":7}"#
        );
    }
}
