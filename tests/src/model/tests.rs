//! The model finds what a careless pipeline does wrong, and nothing in a careful one.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use frazil_core::{Error, ErrorKind};

use super::*;
use crate::simulation::{Dice, Failure, Options, Simulation};

/// A pipeline of one step: an event's records become visible in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipeline {
    Careful,
    /// Keeps every delivery.
    KeepsDoubles,
    /// Says yes, then writes.
    AnswersFirst,
    /// Looks for doubles, waits, then writes.
    LooksTooEarly,
    /// Forgets the last record of a batch.
    OffByOne,
    /// Writes one record's values under another's offset.
    MixesRows,
    /// Throws away what cannot be read.
    DropsPoison,
    /// Takes an error for a reason to go on.
    SkipsErrors,
}

#[derive(Default)]
struct Sink {
    rows: Vec<VisibleRow>,
    letters: Vec<VisibleRow>,
    changes: u64,
}

fn deliver(pipeline: Pipeline, world: &Shared<World>, sink: &Rc<RefCell<Sink>>, parts: &Parts) -> Deliver {
    let (world, sink, parts) = (Rc::clone(world), Rc::clone(sink), parts.clone());
    Rc::new(move |event| {
        let (world, sink, parts) = (Rc::clone(&world), Rc::clone(&sink), parts.clone());
        Box::pin(async move {
            let mut records = parse_event(&event).unwrap();
            records.sort_by_key(|record| (record.partition, record.offset));
            parts.pause().await;
            if parts.dice.chance(0.1) {
                if pipeline == Pipeline::SkipsErrors {
                    return Ok(Vec::new());
                }
                return Err(Error::new(
                    ErrorKind::Unavailable,
                    "write",
                    "it failed on purpose",
                ));
            }
            let doubles = |sink: &Sink, record: &EventRecord| {
                let same =
                    |row: &VisibleRow| (row.partition, row.offset) == (record.partition, record.offset);
                sink.rows.iter().chain(&sink.letters).any(same)
            };
            if pipeline == Pipeline::LooksTooEarly {
                records.retain(|record| !doubles(&sink.borrow(), record));
                parts.pause().await;
            }
            if pipeline == Pipeline::OffByOne {
                records.pop();
            }
            let later = parts.clone();
            let write = async move {
                if pipeline == Pipeline::AnswersFirst {
                    later.pause().await;
                }
                let mut sink = sink.borrow_mut();
                let mut previous = None;
                for record in records {
                    let known = doubles(&sink, &record);
                    let blind = matches!(pipeline, Pipeline::KeepsDoubles | Pipeline::LooksTooEarly);
                    if known && !blind {
                        continue;
                    }
                    let (partition, offset) = (record.partition, record.offset);
                    let truth = world
                        .borrow()
                        .record(Id {
                            life: 0,
                            partition,
                            offset,
                        })
                        .unwrap()
                        .fingerprint();
                    let said = if pipeline == Pipeline::MixesRows {
                        previous.or(truth)
                    } else {
                        truth
                    };
                    previous = truth;
                    let row = |fingerprint| VisibleRow {
                        epoch: 0,
                        partition,
                        offset,
                        fingerprint,
                    };
                    match said {
                        Some(fingerprint) => sink.rows.push(row(fingerprint)),
                        None if pipeline == Pipeline::DropsPoison => {}
                        None => sink.letters.push(row(0)),
                    }
                    sink.changes += 1;
                }
            };
            if pipeline == Pipeline::AnswersFirst {
                parts.spawner.actor("writer").crashable().spawn(write);
            } else {
                write.await;
            }
            Ok(Vec::new())
        })
    })
}

#[derive(Clone)]
struct Parts {
    environment: frazil_core::Environment,
    dice: Dice,
    spawner: crate::simulation::Spawner,
}

impl Parts {
    async fn pause(&self) {
        self.environment
            .sleep(Duration::from_millis(self.dice.below(4_000)))
            .await;
    }
}

fn run(seed: u64, pipeline: Pipeline) -> Result<usize, Box<Failure>> {
    let mut simulation = Simulation::new(
        seed,
        Options {
            crash: 0.01,
            ..Options::default()
        },
    );
    let world = share(World::new("orders", 3));
    let group = share(Group::new(3));
    let sink = Rc::new(RefCell::new(Sink::default()));
    let parts = Parts {
        environment: simulation.environment("pipeline"),
        dice: simulation.dice("pipeline"),
        spawner: simulation.spawner(),
    };
    let producer = produce(
        Rc::clone(&world),
        simulation.environment("producer"),
        simulation.dice("producer"),
        ProducerOptions::default(),
    );
    simulation.spawner().spawn("producer", producer);
    for poller in 0..2 {
        let source = EventSource {
            world: Rc::clone(&world),
            group: Rc::clone(&group),
            spawner: simulation.spawner(),
            environment: simulation.environment("source"),
            dice: simulation.dice("source"),
            options: SourceOptions::default(),
            deliver: deliver(pipeline, &world, &sink, &parts),
        };
        simulation
            .spawner()
            .spawn(format!("poller {poller}"), source.run());
    }
    let mut oracle = Oracle::new(Rc::clone(&world));
    let mut seen = 0;
    simulation.run(|| {
        let sink = sink.borrow();
        if std::mem::replace(&mut seen, sink.changes) == sink.changes {
            return Ok(());
        }
        let holes = Some(BTreeMap::new());
        oracle.observe(&View {
            rows: sink.rows.clone(),
            holes,
        })?;
        oracle.observe_dead_letters(&sink.letters)
    })?;
    let settled = oracle
        .settle(Completeness::Acknowledged, |_, _| false)
        .and_then(|()| oracle.settle(Completeness::Everything, |_, _| false));
    settled.map_err(|message| simulation.failure(message))?;
    Ok(oracle.visible())
}

#[test]
fn finds_what_is_wrong_with_a_pipeline() {
    let check = |pipeline, promises: &[&str], at_least: usize| {
        let failures: Vec<Box<Failure>> = (0..100).filter_map(|seed| run(seed, pipeline).err()).collect();
        assert!(
            failures.len() >= at_least,
            "{pipeline:?}: {} of 100 fail",
            failures.len()
        );
        for failure in failures {
            let named = promises
                .iter()
                .any(|promise| failure.message.starts_with(promise));
            assert!(named, "{pipeline:?} should break {promises:?}: {failure}");
        }
    };
    check(Pipeline::KeepsDoubles, &["I2"], 90);
    check(Pipeline::LooksTooEarly, &["I2", "I3"], 50);
    check(Pipeline::AnswersFirst, &["I1", "I3"], 50);
    check(Pipeline::OffByOne, &["I1", "I3"], 90);
    check(Pipeline::MixesRows, &["I8"], 90);
    check(Pipeline::DropsPoison, &["I1"], 50);
    check(Pipeline::SkipsErrors, &["I1", "I3"], 90);
}

#[test]
fn finds_nothing_wrong_with_a_careful_one() {
    for seed in 0..300 {
        let visible = run(seed, Pipeline::Careful).unwrap();
        assert!(
            (30..=60).contains(&visible),
            "seed {seed}: {visible} rows of 60 records"
        );
    }
}

/// A log of one partition with these offsets, all rows.
fn world(offsets: &[i64]) -> Shared<World> {
    let mut world = World::new("t", 1);
    let log = world.current(0).unwrap();
    for wanted in offsets {
        let skipped = wanted - log.end();
        log.append(skipped, |offset| Record {
            offset,
            timestamp_ms: 1,
            key: None,
            value: Some(b"{}".to_vec()),
            content: Content::Row(vec![("id".to_owned(), offset.to_string())]),
            gone: false,
        });
    }
    share(world)
}

fn rows(world: &Shared<World>, epoch: i32, life: usize, offsets: &[i64]) -> Vec<VisibleRow> {
    let world = world.borrow();
    let row = |offset: &i64| {
        let record = world
            .record(Id {
                life,
                partition: 0,
                offset: *offset,
            })
            .unwrap();
        VisibleRow {
            epoch,
            partition: 0,
            offset: *offset,
            fingerprint: record.fingerprint().unwrap(),
        }
    };
    offsets.iter().map(row).collect()
}

#[test]
fn a_recorded_hole_may_be_filled_and_nothing_else() {
    let world = world(&[0, 1, 2, 3, 4, 5]);
    let check = |holes: Option<Vec<(i64, i64)>>, then: &[i64], expected: Option<&str>| {
        let mut oracle = Oracle::new(Rc::clone(&world));
        let holes = holes.map(|holes| BTreeMap::from([((0, 0), holes)]));
        let before = View {
            rows: rows(&world, 0, 0, &[0, 4]),
            holes,
        };
        oracle.observe(&before).unwrap();
        let after = View {
            rows: rows(&world, 0, 0, then),
            holes: None,
        };
        let found = oracle.observe(&after).err();
        assert_eq!(
            found.as_deref().map(|message| &message[..2]),
            expected,
            "{then:?}: {found:?}"
        );
    };
    check(Some(vec![(1, 3)]), &[0, 2, 4], None);
    check(Some(vec![(1, 1)]), &[0, 2, 4], Some("I3"));
    check(Some(vec![]), &[0, 4, 5], None);
    check(None, &[0, 2, 4], None);
    check(Some(vec![]), &[0, 5], Some("I1"));
    check(Some(vec![]), &[0, 4, 4], Some("I2"));
}

#[test]
fn lives_are_told_apart() {
    let world = world(&[0, 1, 2]);
    world.borrow_mut().recreate(1);
    let log = Record {
        offset: 0,
        timestamp_ms: 9,
        key: None,
        value: Some(b"{}".to_vec()),
        content: Content::Row(vec![("id".to_owned(), "new".to_owned())]),
        gone: false,
    };
    world
        .borrow_mut()
        .current(0)
        .unwrap()
        .append(0, |offset| Record { offset, ..log });
    let view = |rows| View { rows, holes: None };
    let mut oracle = Oracle::new(Rc::clone(&world));
    let old = rows(&world, 0, 0, &[0, 1, 2]);
    oracle.observe(&view(old.clone())).unwrap();
    // The first record is the same in both lives, the second is not.
    let mut mixed = old.clone();
    mixed[1] = rows(&world, 0, 1, &[1])[0];
    let fresh = || Oracle::new(Rc::clone(&world));
    assert!(fresh().observe(&view(mixed)).unwrap_err().starts_with("I8"));
    let both = || view(old.iter().copied().chain(rows(&world, 1, 1, &[0, 1])).collect());
    assert!(
        oracle
            .observe(&both())
            .unwrap_err()
            .contains("no log of that epoch")
    );
    oracle.allow(1, 1);
    oracle.observe(&both()).unwrap();
    oracle.settle(Completeness::Everything, |_, _| false).unwrap();
}

#[test]
fn events_can_be_read_back() {
    let record = |offset, value: Option<&[u8]>| Record {
        offset,
        timestamp_ms: 5,
        key: Some("k".to_owned()),
        value: value.map(<[u8]>::to_vec),
        content: Content::Tombstone,
        gone: false,
    };
    let event = event_json("a-b", &[(2, vec![record(7, Some(b"\xff\x00")), record(8, None)])]);
    let text = std::str::from_utf8(&event).unwrap();
    assert!(
        text.contains(r#""a-b-2":[{"headers":[],"key":"aw==","offset":7"#),
        "{text}"
    );
    let read = |offset, value: Option<&[u8]>| EventRecord {
        partition: 2,
        offset,
        value: value.map(<[u8]>::to_vec),
    };
    assert_eq!(
        parse_event(&event).unwrap(),
        [read(7, Some(b"\xff\x00")), read(8, None)]
    );
    assert_eq!(parse_event(b"{}"), None);
}
