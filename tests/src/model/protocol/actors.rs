use std::rc::Rc;
use std::time::Duration;

use frazil_core::{Error, ErrorKind};
use frazil_table::{CommitSettings, commit_table, drain_parked};

use super::{Stage, operator};
use crate::model::{Deliver, EventSource, Id, ItemFailure, parse_event, produce};
use crate::simulation::{Simulation, Spawner};

/// Parked events per run.
const DRAINED_AT_ONCE: usize = 20;

/// A commit run is a Lambda invocation.
const LONGEST_RUN: Duration = Duration::from_secs(840);

/// Starts everybody.
pub(super) fn start(simulation: &Simulation, stage: &Rc<Stage>) {
    let spawner = simulation.spawner();
    let producer = produce(
        Rc::clone(&stage.world),
        simulation.environment("producer"),
        simulation.dice("producer"),
        stage.profile.producer.clone(),
    );
    spawner.spawn("producer", producer);
    for poller in 0..stage.profile.pollers {
        let source = EventSource {
            world: Rc::clone(&stage.world),
            group: Rc::clone(&stage.group),
            spawner: simulation.spawner(),
            environment: simulation.environment("source"),
            dice: simulation.dice("source"),
            options: stage.profile.source.clone(),
            deliver: deliver(stage),
        };
        stage.delivering.set(stage.delivering.get() + 1);
        let stage = Rc::clone(stage);
        spawner.spawn(format!("poller {poller}"), async move {
            source.run().await;
            stage.delivering.set(stage.delivering.get() - 1);
        });
    }
    for number in 0..stage.profile.committers {
        let committer = committer(Rc::clone(stage), simulation.spawner(), number);
        spawner.spawn(format!("schedule {number}"), committer);
    }
    spawner.spawn("operator", operator::operate(Rc::clone(stage)));
    let (plan, environment, dice) = (
        stage.backend.plan.clone(),
        simulation.environment("late"),
        simulation.dice("late"),
    );
    let longest = stage.profile.longest_late;
    spawner.actor("packets").daemon().spawn(async move {
        plan.keep_landing(&environment, &dice, longest).await;
    });
}

fn deliver(stage: &Rc<Stage>) -> Deliver {
    let stage = Rc::clone(stage);
    Rc::new(move |event| {
        let stage = Rc::clone(&stage);
        Box::pin(async move {
            let life = stage.world.borrow().life();
            let records = parse_event(&event).unwrap_or_default();
            let mut ids: Vec<Id> = records
                .iter()
                .map(|record| Id {
                    life,
                    partition: record.partition,
                    offset: record.offset,
                })
                .collect();
            stage.watch.borrow_mut().delivers(&ids);
            let ingest = stage.backend.ingest(stage.dice.index(8));
            let report = ingest.handle(&event).await;
            let report = report.inspect_err(|error| is_expected(&stage, error))?;
            ids.retain(|id| {
                let mut failures = report.failures();
                !failures.any(|failed| {
                    failed.topic_partition.partition.0 == id.partition && failed.offset.0 <= id.offset
                })
            });
            stage.watch.borrow_mut().succeeds(&ids);
            let failures = report.failures();
            let failures = failures.map(|failure| ItemFailure {
                partition: failure.topic_partition.partition.0,
                offset: failure.offset.0,
            });
            Ok(failures.collect())
        })
    })
}

async fn committer(stage: Rc<Stage>, spawner: Spawner, number: usize) {
    let environment = stage.backend.warehouse().environment;
    let longest_ms = stage.profile.commit_pause.as_millis() as u64;
    while stage.delivers() {
        let pause_ms = stage.dice.below(longest_ms);
        environment.sleep(Duration::from_millis(pause_ms)).await;
        let run = commit(Rc::clone(&stage));
        let actor = spawner
            .actor(format!("commit {number}"))
            .crashable()
            .lifetime(LONGEST_RUN);
        actor.spawn(run).await;
    }
}

/// One run of the catalog function.
pub(super) async fn commit(stage: Rc<Stage>) {
    let warehouse = stage.backend.warehouse();
    let settings = CommitSettings {
        max_taken: stage.profile.max_taken,
        ..CommitSettings::default()
    };
    match commit_table(&warehouse, &stage.table(), &settings).await {
        Ok(report) => {
            for committed in &report.commits {
                stage.note(format!("commit {} landed", committed.commit));
            }
            for suspension in &report.suspended {
                stage.note(format!("suspends: {}", suspension.message));
            }
            for waiting in &report.waiting {
                let id = waiting.id.simple().to_string();
                stage.note(format!("~{} waits: {:?}", &id[26..], waiting.reason));
            }
        }
        Err(error) => is_expected(&stage, &error),
    }
    let ingest = stage.backend.ingest(stage.dice.index(8));
    match drain_parked(&warehouse, ingest.as_ref(), DRAINED_AT_ONCE).await {
        Ok(report) => {
            for (_, _, error) in &report.stopped {
                stage.note(format!("the drain stops: {error}"));
            }
        }
        Err(error) => is_expected(&stage, &error),
    }
}

/// Whatever a back end does, nobody may find anything damaged.
pub(super) fn is_expected(stage: &Stage, error: &Error) {
    stage.note(format!("fails: {error}"));
    // Whoever drops a table takes its files away, too.
    if error.kind() == ErrorKind::Internal && !stage.watch.borrow().is_dropped() {
        stage.violate(format!("an error that must not be: {error:?}"));
    }
}
