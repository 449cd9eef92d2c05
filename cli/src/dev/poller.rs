//! One topic's event poller: from the consumer through the rules to the handler, one invocation at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use frazil_core::{Environment, Error, ErrorKind, Result, TimestampMs, TopicName};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::consumer::{Heard, TopicConsumer};
use super::destination::Destination;
use super::event::EventForm;
use super::invoke::{Invoked, Invoker, parked};
use super::journal::{Call, Journal, Totals};
use super::mapping::{Answer, Batch, Condition, Mapping, Next, Rules, Step};
use super::position::PositionFile;
use super::start::{self, Misfit};
use crate::arguments::StartingPosition;

/// How often the topic is asked for new partitions, and with `--once` whether anybody answers at all.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// With `--once`: how long no broker may answer, and no endpoint be reached.
const SILENCE: Duration = Duration::from_secs(30);

/// What a poller works with.
pub(crate) struct Poller<'a> {
    pub(crate) topic: TopicName,
    pub(crate) brokers: &'a str,
    pub(crate) consumer: TopicConsumer,
    pub(crate) form: EventForm,
    pub(crate) invoker: Invoker,
    pub(crate) positions: PositionFile,
    pub(crate) on_failure: Option<Destination>,
    pub(crate) journal: &'a Journal,
    pub(crate) environment: Environment,
    pub(crate) once: bool,
}

/// What a poller came to.
#[derive(Debug, Default)]
pub(crate) struct Polled {
    pub(crate) totals: Totals,
    /// What stopped it before its time.
    pub(crate) error: Option<Error>,
}

/// The state of a run.
struct Run {
    mapping: Mapping,
    totals: Totals,
    /// Where each partition is read from after a restart.
    next: BTreeMap<i32, i64>,
    /// With `--once`: partitions that were read to their end.
    ended: BTreeSet<i32>,
    paused: BTreeSet<i32>,
    silent_since: Option<TimestampMs>,
    /// Since when the function could not be invoked.
    unreached_since: Option<TimestampMs>,
    looked_around: TimestampMs,
}

/// An invocation on its way.
struct InFlight {
    batch: Batch,
    call: Call,
    answer: JoinHandle<Result<Invoked>>,
}

/// A run's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    AtTheEnd,
    Asked,
}

impl Poller<'_> {
    /// Runs until it is asked to stop, or with `--once` until each partition was read to its end.
    pub(crate) async fn run(
        self,
        rules: Rules,
        partitions: BTreeSet<i32>,
        from: StartingPosition,
        restart: bool,
        stop: watch::Receiver<bool>,
    ) -> Polled {
        let mut run = match self.begin(rules, partitions, from, restart).await {
            Ok(run) => run,
            Err(error) => {
                return Polled {
                    totals: Totals::default(),
                    error: Some(error),
                };
            }
        };
        let ended = self.poll(&mut run, stop).await;
        let at = match &ended {
            Ok(Ending::AtTheEnd) => "at the end",
            Ok(Ending::Asked) => "as asked",
            Err(_) => "by an error",
        };
        let told = self.journal.stopped(&self.topic, at, &run.totals, &run.next);
        Polled {
            totals: run.totals,
            error: ended.err().or(told.err()),
        }
    }

    async fn begin(
        &self,
        rules: Rules,
        partitions: BTreeSet<i32>,
        from: StartingPosition,
        restart: bool,
    ) -> Result<Run> {
        let known = if restart {
            None
        } else {
            self.positions.read().await?
        };
        let mut extents = BTreeMap::new();
        for partition in &partitions {
            extents.insert(*partition, self.consumer.extent(*partition).await?);
        }
        let next = match (&known, from) {
            (Some(known), _) => {
                start::resumed(known, &extents).map_err(|misfit| misfit.error(&self.topic, self.brokers))?
            }
            (None, StartingPosition::Earliest) => start::earliest(&extents),
            (None, StartingPosition::Latest) => start::latest(&extents),
            (None, StartingPosition::Time(time)) => {
                start::at_time(&extents, &self.consumer.offsets_at(&partitions, time).await?)
            }
        };
        // “Latest” must stay what it is now, also when nothing arrives before the next start.
        self.positions.write(&next).await?;
        self.consumer.assign(&next)?;
        let (resumed, handler) = (known.is_some(), self.invoker.name());
        self.journal
            .started(&self.topic, self.brokers, &handler, resumed, &next)?;
        Ok(Run {
            mapping: Mapping::new(rules, self.form.clone()),
            totals: Totals::default(),
            ended: BTreeSet::new(),
            next,
            paused: BTreeSet::new(),
            silent_since: None,
            unreached_since: None,
            looked_around: self.environment.now(),
        })
    }

    /// The client does not say which partition it means: the one whose position lies outside of its log.
    async fn out_of_range(&self, run: &Run) -> Error {
        for (partition, next) in &run.next {
            match self.consumer.extent(*partition).await {
                Ok(extent) if (extent.first..=extent.end).contains(next) => {}
                Ok(extent) => {
                    let misfit = Misfit {
                        partition: *partition,
                        next: *next,
                        extent: Some(extent),
                    };
                    return misfit.error(&self.topic, self.brokers);
                }
                Err(error) => return error,
            }
        }
        Error::new(
            ErrorKind::Invalid,
            "go on reading the topic",
            "the broker has the next offset no more",
        )
        .with_context("topic", &self.topic)
        .with_context("brokers", self.brokers)
        .with_code("kafka.offset_out_of_range")
        .with_hint("start again: it then says which partition it is")
    }

    async fn poll(&self, run: &mut Run, mut stop: watch::Receiver<bool>) -> Result<Ending> {
        let mut in_flight: Option<InFlight> = None;
        loop {
            let stopping = *stop.borrow_and_update();
            let all_read = self.once && run.ended.len() >= run.next.len();
            if all_read {
                // What there is goes out without waiting for its window to end.
                run.mapping.flush();
            }
            let mut wake = None;
            if in_flight.is_none() {
                if stopping {
                    return Ok(Ending::Asked);
                }
                match run.mapping.step(self.environment.now()) {
                    Step::Invoke(batch) => in_flight = Some(self.invoke(run, batch)),
                    Step::SetAside(batch, condition) => {
                        self.set_aside(run, &batch, condition).await?;
                        continue;
                    }
                    Step::Wait(until) => wake = until,
                }
            }
            if all_read && in_flight.is_none() && run.mapping.is_empty() {
                return Ok(Ending::AtTheEnd);
            }
            let patience = self.patience(run, wake);
            let listens = !stopping && !all_read && run.mapping.wants_more();
            tokio::select! {
                answer = answer(&mut in_flight), if in_flight.is_some() => {
                    if let Some(done) = in_flight.take() {
                        self.answered(run, done, answer?).await?;
                    }
                }
                heard = self.consumer.next(), if listens => self.heard(run, heard?).await?,
                () = self.environment.sleep(patience) => self.look_around(run).await?,
                // Its sender lives as long as all pollers.
                _ = stop.changed(), if !stopping => {}
            }
        }
    }

    fn invoke(&self, run: &mut Run, batch: Batch) -> InFlight {
        let event = self.form.event(&batch.records);
        let call = Call {
            records: batch.records.len(),
            bytes: event.len(),
            invocation: batch.invocations,
            began: self.environment.now(),
        };
        run.totals.events += 1;
        run.totals.bytes += event.len() as u64;
        let answer = tokio::spawn(self.invoker.clone().invoke(event));
        InFlight { batch, call, answer }
    }

    async fn answered(&self, run: &mut Run, done: InFlight, invoked: Invoked) -> Result<()> {
        let now = self.environment.now();
        run.unreached_since = match &invoked.answer {
            Answer::NotInvoked(_) => Some(run.unreached_since.unwrap_or(now)),
            Answer::Taken | Answer::ItemFailures(_) | Answer::Failed(_) => None,
        };
        let verdict = run.mapping.answered(done.batch, invoked.answer.clone(), now);
        run.totals.records += verdict.done as u64;
        run.totals.failed += u64::from(verdict.next != Next::Done);
        if let Some(report) = &invoked.report {
            run.totals.parked += parked(report).0;
            run.totals.dead_letters += report.topics.iter().map(|topic| topic.dead_letters).sum::<u64>();
        }
        self.advance(run).await?;
        self.journal
            .invoked(&self.topic, &done.call, &invoked, &verdict)?;
        match (run.unreached_since, verdict.reason) {
            (Some(since), Some(reason)) if self.once && now.since(since) >= SILENCE => {
                Err(Error::new(ErrorKind::Unavailable, "invoke the function", reason)
                    .with_context("topic", &self.topic)
                    .with_context("handler", self.invoker.name())
                    .with_hint("start again when it runs: reading goes on where it stopped"))
            }
            _ => Ok(()),
        }
    }

    async fn set_aside(&self, run: &mut Run, batch: &Batch, condition: Condition) -> Result<()> {
        let file = match &self.on_failure {
            Some(destination) => {
                Some(destination.keep(&self.form, batch, condition, self.brokers, &self.invoker.name())?)
            }
            // Lambda drops it. Here nobody has chosen that.
            None if condition == Condition::MaximumPayloadSizeExceeded => return Err(self.too_large(batch)),
            None => None,
        };
        run.mapping.settled(batch);
        run.totals.given_up += batch.records.len() as u64;
        self.advance(run).await?;
        self.journal
            .given_up(&self.topic, batch, condition, file.as_deref())
    }

    fn too_large(&self, batch: &Batch) -> Error {
        let error = Error::new(
            ErrorKind::Invalid,
            "invoke the function with a record",
            "its event would be larger than the 6 MB that Lambda takes",
        );
        let place = batch.records.first();
        let error = error
            .with_context("topic", &self.topic)
            .with_code("event.too_large");
        place
            .into_iter()
            .fold(error, |error, record| {
                error
                    .with_context("partition", record.partition)
                    .with_context("offset", record.offset)
            })
            .with_hint("start again with --on-failure DIR: such records are kept there, and the others go on")
    }

    /// Keeps what is done, and reads again what is held up no more.
    async fn advance(&self, run: &mut Run) -> Result<()> {
        let positions = run.mapping.positions();
        if positions
            .iter()
            .any(|(partition, next)| run.next.get(partition) != Some(next))
        {
            run.next.extend(positions);
            self.positions.write(&run.next).await?;
        }
        self.pause(run)
    }

    fn pause(&self, run: &mut Run) -> Result<()> {
        let mut wanted = run.mapping.held_up().clone();
        if self.once {
            wanted.extend(&run.ended);
        }
        if wanted == run.paused {
            return Ok(());
        }
        let resumed: BTreeSet<i32> = run.paused.difference(&wanted).copied().collect();
        let paused: BTreeSet<i32> = wanted.difference(&run.paused).copied().collect();
        if !resumed.is_empty() {
            self.consumer.resume(&resumed)?;
        }
        if !paused.is_empty() {
            self.consumer.pause(&paused)?;
        }
        run.paused = wanted;
        Ok(())
    }

    async fn heard(&self, run: &mut Run, heard: Heard) -> Result<()> {
        let now = self.environment.now();
        match heard {
            Heard::Record(record) => {
                run.silent_since = None;
                run.mapping.push(record, now);
            }
            Heard::End(partition) => {
                run.silent_since = None;
                if self.once {
                    run.ended.insert(partition);
                    self.pause(run)?;
                }
            }
            Heard::OutOfRange => return Err(self.out_of_range(run).await),
            Heard::Trouble(message) => {
                let since = *run.silent_since.get_or_insert(now);
                if self.once && now.since(since) >= SILENCE {
                    return Err(self.silent(message));
                }
                self.journal
                    .trouble(&self.topic, &format!("{message}; the client tries again"))?;
            }
        }
        Ok(())
    }

    fn silent(&self, message: String) -> Error {
        Error::new(ErrorKind::Unavailable, "read the topic to its end", message)
            .with_context("topic", &self.topic)
            .with_context("brokers", self.brokers)
            .with_hint("start again when the broker runs: it goes on where it stopped")
    }

    /// How long to wait for `wake`, or until it is time to look around.
    fn patience(&self, run: &Run, wake: Option<TimestampMs>) -> Duration {
        let now = self.environment.now();
        let look = LOOK_EVERY.saturating_sub(now.since(run.looked_around));
        let wait = wake.map_or(look, |wake| wake.since(now).min(look));
        // Never nothing: that would starve the others.
        wait.max(Duration::from_millis(1))
    }

    /// New partitions begin at their beginning; and a run that is to end does not wait for a broker for ever.
    async fn look_around(&self, run: &mut Run) -> Result<()> {
        let now = self.environment.now();
        let is_due = now.since(run.looked_around) >= LOOK_EVERY;
        if is_due {
            run.looked_around = now;
        }
        if self.once {
            return match run.silent_since {
                Some(since) if now.since(since) >= SILENCE => {
                    Err(self.silent("no broker answers".to_owned()))
                }
                _ => Ok(()),
            };
        }
        if !is_due {
            return Ok(());
        }
        let partitions = match self.consumer.partitions().await {
            Ok(partitions) => partitions,
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                return self.journal.trouble(&self.topic, &error.to_string());
            }
            Err(error) => return Err(error),
        };
        let mut added = BTreeMap::new();
        for partition in partitions
            .into_iter()
            .filter(|partition| !run.next.contains_key(partition))
        {
            added.insert(partition, self.consumer.extent(partition).await?.first);
        }
        if !added.is_empty() {
            run.next.extend(&added);
            self.positions.write(&run.next).await?;
            self.consumer.assign(&added)?;
            let found = format!("{} new: read from the beginning", added.len());
            self.journal
                .trouble(&self.topic, &format!("partitions {found}"))?;
        }
        Ok(())
    }
}

/// The answer of what is in flight; never without.
async fn answer(in_flight: &mut Option<InFlight>) -> Result<Invoked> {
    match in_flight {
        None => std::future::pending().await,
        Some(in_flight) => (&mut in_flight.answer).await.unwrap_or_else(|error| {
            Err(
                Error::new(ErrorKind::Internal, "run the ingest handler", error.to_string())
                    .with_source(error),
            )
        }),
    }
}
