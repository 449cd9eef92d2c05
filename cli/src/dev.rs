//! `frazil dev`: Lambda's event source mapping on one machine, and a commit loop beside it.
//!
//! `mapping` holds Lambda's rules and no I/O; `poller` carries them out for one topic; `consumer`, `invoke`,
//! `destination` and `position` are the world around it. Where a topic is read from is decided in `start`.

mod consumer;
mod destination;
mod event;
mod interrupt;
mod invoke;
mod journal;
mod mapping;
mod poller;
mod position;
mod start;

use std::sync::Arc;
use std::time::Duration;

use frazil_core::{Result, TopicName};
use frazil_ingest::{Ingest, IngestOptions};
use frazil_table::Warehouse;
use futures::future::join_all;
use tokio::sync::watch;

use self::consumer::TopicConsumer;
use self::destination::Destination;
use self::event::EventForm;
use self::invoke::Invoker;
use self::journal::Journal;
use self::mapping::{MAX_EVENT_BYTES, Rules};
use self::poller::{Polled, Poller};
use self::position::PositionFile;
use crate::arguments::Dev;
use crate::commands::Commits;
use crate::failure::Outcome;
use crate::output::Output;
use crate::progress::Progress;
use crate::session::Session;

/// Runs a mapping per topic until it is asked to stop, or with `--once` until their ends.
pub(crate) async fn run(session: &Session, dev: &Dev, output: &Output) -> Result<Outcome> {
    let warehouse = session.warehouse().await?;
    let config = session.config();
    let source = config
        .source_for(None, dev.brokers.split(',').map(str::trim))?
        .clone();
    let registries = session.registries()?;
    let ingest = Ingest::new(warehouse.clone(), config, registries, IngestOptions::default());
    let ingest = Arc::new(ingest);
    let invoker = match &dev.endpoint {
        Some(url) => Invoker::endpoint(url, dev.report_batch_item_failures)?,
        None => Invoker::InProcess {
            ingest: ingest.clone(),
            reports_item_failures: dev.report_batch_item_failures,
        },
    };
    let on_failure = match &dev.on_failure {
        Some(folder) => Some(Destination::open(folder, &warehouse.environment)?),
        None => None,
    };
    let journal = Journal::new(*output, warehouse.environment.clone());
    let interrupted = interrupt::listen()?;

    let mut pollers = Vec::new();
    for topic in dev.topics() {
        let (consumer, partitions) = TopicConsumer::connect(&dev.brokers, &topic, &dev.kafka).await?;
        let poller = Poller {
            form: EventForm::new(topic.clone(), &dev.brokers),
            positions: PositionFile::new(&warehouse, &source, &topic, &invoker.name()),
            topic,
            brokers: &dev.brokers,
            consumer,
            invoker: invoker.clone(),
            on_failure: on_failure.clone(),
            journal: &journal,
            environment: warehouse.environment.clone(),
            once: dev.once,
        };
        pollers.push((poller, partitions));
    }

    // Dropped at the end of polling: then the commit loop ends too.
    let (stop, stopped) = watch::channel(false);
    let commits = CommitLoop {
        session,
        warehouse: &warehouse,
        ingest: &ingest,
        journal: &journal,
        every: (!dev.commit_every.is_zero()).then_some(dev.commit_every),
    };
    let polling = async {
        let polling = pollers.into_iter().map(|(poller, partitions)| {
            let (stop, stopped) = (stop.clone(), stopped.clone());
            async move {
                let polled = poller
                    .run(rules(dev), partitions, dev.from, dev.restart, stopped)
                    .await;
                if polled.error.is_some() {
                    // One topic alone would go on unnoticed.
                    stop.send_replace(true);
                }
                polled
            }
        });
        let polled = tokio::select! {
            polled = join_all(polling) => polled,
            never = forward(interrupted, &stop) => match never {},
        };
        stop.send_replace(true);
        polled
    };
    let (polled, ()) = tokio::join!(polling, commits.run(stopped.clone()));
    let committed = commits.last().await;
    conclude(polled, committed)
}

fn rules(dev: &Dev) -> Rules {
    Rules {
        batch_size: dev.batch_size as usize,
        window: dev.batch_window,
        max_retries: u32::try_from(dev.max_retries).ok(),
        max_record_age: dev.max_record_age,
        bisect: dev.bisect,
        max_event_bytes: MAX_EVENT_BYTES,
    }
}

/// Passes an interruption on, as often as there is one.
async fn forward(
    mut interrupted: watch::Receiver<bool>,
    stop: &watch::Sender<bool>,
) -> std::convert::Infallible {
    while interrupted.changed().await.is_ok() {
        stop.send_replace(true);
    }
    std::future::pending().await
}

/// What a run came to: an error before a question.
fn conclude(polled: Vec<Polled>, committed: Result<Outcome>) -> Result<Outcome> {
    let (mut parked, mut given_up) = (0, 0);
    let mut first_error = None;
    for polled in polled {
        parked += polled.totals.parked;
        given_up += polled.totals.given_up;
        first_error = first_error.or(polled.error);
    }
    if let Some(error) = first_error {
        return Err(error);
    }
    match committed? {
        failed @ (Outcome::Failed | Outcome::Invalid) => Ok(failed),
        _ if given_up > 0 => Ok(Outcome::Failed),
        _ if parked > 0 => Ok(Outcome::Suspended),
        committed => Ok(committed),
    }
}

/// Commits what the handler stages, and drains what was parked: what the commit state machine does on AWS.
struct CommitLoop<'a> {
    session: &'a Session,
    warehouse: &'a Warehouse,
    ingest: &'a Ingest,
    journal: &'a Journal,
    /// `None`: never.
    every: Option<Duration>,
}

impl CommitLoop<'_> {
    async fn run(&self, mut stopped: watch::Receiver<bool>) {
        let Some(every) = self.every else { return };
        while !*stopped.borrow_and_update() {
            tokio::select! {
                () = self.warehouse.environment.sleep(every) => {
                    // A failure is told; the next run tries again.
                    if let Err(error) = self.commit().await
                        && self.journal.commit_failed(&error).is_err()
                    {
                        return;
                    }
                }
                changed = stopped.changed() => if changed.is_err() { return },
            }
        }
    }

    async fn last(&self) -> Result<Outcome> {
        match self.every {
            Some(_) => self.commit().await,
            None => Ok(Outcome::Done),
        }
    }

    async fn commit(&self) -> Result<Outcome> {
        let progress = Progress::silent();
        let commits = Commits::make(self.session, self.ingest, self.warehouse, None, &progress).await?;
        self.journal.committed(&commits)?;
        Ok(commits.outcome())
    }
}

impl Dev {
    /// The topics, each once.
    fn topics(&self) -> Vec<TopicName> {
        let mut topics: Vec<TopicName> = self
            .topic
            .iter()
            .map(|topic| TopicName::from(topic.as_str()))
            .collect();
        topics.sort();
        topics.dedup();
        topics
    }
}
