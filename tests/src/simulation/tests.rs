//! The simulation finds bugs that are there, and none that are not.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use frazil_core::{Clock, Environment, ErrorKind, Result};
use frazil_table::{ObjectStorage, StateStore, list_all};
use futures::future::join_all;

use super::*;

const KEY: &str = "counter";

#[derive(Clone, Copy, Debug)]
enum Protocol {
    /// Reads, adds, and writes whatever version is there by then.
    Blind,
    /// Reads, adds, writes if unchanged; tries again after any error.
    ForgetsLostAnswers,
    /// As above, and each increment carries a name, so that one whose answer was lost is recognised.
    Careful,
}

async fn read(store: &dyn StateStore) -> Result<(Vec<String>, Option<String>)> {
    let Some(entry) = store.load(KEY).await? else {
        return Ok((Vec::new(), None));
    };
    let names = serde_json::from_slice(&entry.bytes).unwrap();
    Ok((names, Some(entry.version)))
}

/// Adds `name` to the document; the count of names is the counter.
async fn increment(store: &dyn StateStore, protocol: Protocol, name: &str) -> Result<()> {
    for attempt in 0.. {
        let done = async {
            let (mut names, mut version) = read(store).await?;
            match protocol {
                Protocol::Blind => version = store.load(KEY).await?.map(|entry| entry.version),
                Protocol::Careful if names.iter().any(|known| known == name) => return Ok(()),
                Protocol::Careful | Protocol::ForgetsLostAnswers => {}
            }
            names.push(name.to_owned());
            let bytes = Bytes::from(serde_json::to_vec(&names).unwrap());
            store.store(KEY, bytes, version.as_deref()).await
        };
        match done.await {
            Ok(()) => return Ok(()),
            Err(error) if attempt == 30 => return Err(error),
            Err(_) => {}
        }
    }
    Ok(())
}

fn counted(store: &MemoryStateStore) -> usize {
    let names: Vec<String> = store
        .peek(KEY)
        .map_or_else(Vec::new, |bytes| serde_json::from_slice(&bytes).unwrap());
    names.len()
}

/// Three actors add five each; the counter must say fifteen.
fn count(seed: u64, protocol: Protocol, rates: Rates) -> Result<u64, Box<Failure>> {
    let mut simulation = Simulation::new(seed, Options::default());
    let memory = MemoryStateStore::new(Pace::shuffled(simulation.dice("pace")));
    let plan = FaultPlan::random(simulation.trace(), simulation.dice("faults"), rates);
    let store: Arc<dyn StateStore> = Arc::new(FaultyStateStore::new(Arc::new(memory.clone()), plan.clone()));
    let (landing, landing_dice) = (plan.clone(), simulation.dice("landing"));
    let environment = simulation.environment("landing");
    simulation.spawner().actor("landing").daemon().spawn(async move {
        landing
            .keep_landing(&environment, &landing_dice, Duration::from_millis(500))
            .await;
    });
    for actor in 0..3 {
        let store = Arc::clone(&store);
        simulation.spawner().spawn(format!("adder {actor}"), async move {
            for nth in 0..5 {
                increment(&*store, protocol, &format!("{actor}/{nth}"))
                    .await
                    .unwrap();
            }
        });
    }
    simulation.run(|| Ok(()))?;
    block_on(plan.settle());
    match counted(&memory) {
        15 => Ok(simulation.trace().fingerprint()),
        other => Err(simulation.failure(format!("15 increments were counted as {other}"))),
    }
}

fn rates(percent: f64) -> Rates {
    let rate = percent / 100.0;
    Rates {
        fail_before: rate,
        fail_after: rate,
        late: rate,
        twice: rate,
        again: rate,
    }
}

/// How many of 200 schedules fail.
fn failing(protocol: Protocol, rates: Rates) -> usize {
    (0..200)
        .filter(|seed| count(*seed, protocol, rates).is_err())
        .count()
}

#[test]
fn finds_lost_updates_and_lost_answers() {
    let none = Rates::default();
    let check = |protocol, rates, expected: std::ops::RangeInclusive<usize>| {
        let found = failing(protocol, rates);
        assert!(
            expected.contains(&found),
            "{protocol:?} with {rates:?}: {found} of 200 fail"
        );
    };
    check(Protocol::Blind, none, 100..=200);
    check(Protocol::ForgetsLostAnswers, none, 0..=0);
    check(
        Protocol::ForgetsLostAnswers,
        Rates {
            fail_before: 0.05,
            ..none
        },
        0..=0,
    );
    check(
        Protocol::ForgetsLostAnswers,
        Rates {
            fail_after: 0.05,
            ..none
        },
        50..=200,
    );
    check(
        Protocol::ForgetsLostAnswers,
        Rates { late: 0.05, ..none },
        20..=200,
    );
    check(
        Protocol::ForgetsLostAnswers,
        Rates { twice: 0.05, ..none },
        50..=200,
    );
    check(Protocol::Careful, rates(5.0), 0..=0);
}

#[test]
fn one_seed_is_one_run() {
    let run = |seed| count(seed, Protocol::Careful, rates(3.0)).unwrap();
    let fingerprints: Vec<u64> = (0..20).map(run).collect();
    assert_eq!(fingerprints, (0..20).map(run).collect::<Vec<_>>());
    let different: std::collections::BTreeSet<u64> = fingerprints.iter().copied().collect();
    assert_eq!(different.len(), 20);
}

#[test]
fn a_failure_names_its_seed_and_what_happened() {
    let failure = (0..)
        .find_map(|seed| count(seed, Protocol::Blind, Rates::default()).err())
        .unwrap();
    let text = failure.to_string();
    assert!(text.contains(&format!("seed {}", failure.seed)), "{text}");
    assert!(text.contains("StoreState counter"), "{text}");
    let again = count(failure.seed, Protocol::Blind, Rates::default()).unwrap_err();
    assert_eq!(again.to_string(), text);
}

/// Objects move from `a/` to the end while somebody lists: pages show some twice or never.
#[test]
fn a_listing_is_no_snapshot() {
    let mut torn = 0;
    for seed in 0..200 {
        let mut simulation = Simulation::new(seed, Options::default());
        let pace = Pace::shuffled(simulation.dice("pace"));
        let storage = MemoryStorage::new(simulation.clock(), pace, 3);
        let writer = storage.clone();
        simulation.spawner().spawn("writer", async move {
            for nth in 0..12 {
                writer
                    .put(&format!("memory://w/{nth:02}"), Bytes::new(), None)
                    .await
                    .unwrap();
            }
            for nth in 0..12 {
                writer
                    .put(&format!("memory://w/{:02}", nth + 12), Bytes::new(), None)
                    .await
                    .unwrap();
                writer.delete(&[format!("memory://w/{nth:02}")]).await.unwrap();
            }
        });
        let reader = storage.clone();
        let listed = simulation.spawner().spawn("reader", async move {
            let mut sizes = Vec::new();
            for _ in 0..8 {
                sizes.push(list_all(&reader, "memory://w/").await.unwrap().len());
            }
            sizes
        });
        simulation.run(|| Ok(())).unwrap();
        let Outcome::Done(sizes) = block_on(listed) else {
            panic!("the reader ended")
        };
        // Once all are written, every instant holds 12 or 13.
        torn += usize::from(sizes.iter().any(|size| *size > 13));
        assert_eq!(storage.locations("memory://w/").len(), 12);
    }
    assert!(torn > 20, "only {torn} of 200 schedules saw a torn listing");
}

#[test]
fn listings_page_and_ranges_clip() {
    let clock = Arc::new(VirtualClock::eager());
    let storage = MemoryStorage::new(clock, Pace::steady(), 2);
    block_on(async {
        for name in ["w/a", "w/b", "w/c", "w2/d"] {
            let location = format!("memory://{name}");
            storage
                .put(&location, Bytes::from_static(b"0123456789"), Some("x"))
                .await
                .unwrap();
        }
        let page = storage.list_page("memory://w/", None).await.unwrap();
        assert_eq!(page.next.as_deref(), Some("memory://w/b"));
        let page = storage
            .list_page("memory://w/", page.next.as_deref())
            .await
            .unwrap();
        assert_eq!((page.objects.len(), page.next), (1, None));
        let range = |start, length| storage.get_range("memory://w/a", start, length);
        assert_eq!(range(3, 4).await.unwrap().as_deref(), Some(&b"3456"[..]));
        assert_eq!(range(8, 4).await.unwrap().as_deref(), Some(&b"89"[..]));
        assert_eq!(range(20, 4).await.unwrap().as_deref(), Some(&b""[..]));
        assert_eq!(
            storage.get("memory://w/a", 9).await.unwrap_err().kind(),
            ErrorKind::Internal
        );
        assert_eq!(
            storage.get("file:///w/a", 9).await.unwrap_err().kind(),
            ErrorKind::Invalid
        );
        assert_eq!(storage.get("memory://w/none", 9).await.unwrap(), None);
    });
}

#[test]
fn time_passes_only_when_nobody_can_go_on_and_lifetimes_end() {
    let mut simulation = Simulation::new(
        7,
        Options {
            longest_tick_ms: 0,
            stall: 0.0,
            ..Options::default()
        },
    );
    let environment: Environment = simulation.environment("e");
    let clock = simulation.clock();
    let start = environment.now();
    let sleeper = environment.clone();
    let slept = simulation.spawner().spawn("sleeper", async move {
        join_all([300u64, 100, 200].map(|seconds| sleeper.sleep(Duration::from_secs(seconds)))).await;
        sleeper.now()
    });
    let doomed = environment.clone();
    let ended = simulation
        .spawner()
        .actor("doomed")
        .lifetime(Duration::from_secs(60))
        .spawn(async move { doomed.sleep(Duration::from_secs(61)).await });
    simulation.run(|| Ok(())).unwrap();
    assert_eq!(block_on(ended), Outcome::Crashed);
    assert_eq!(block_on(slept), Outcome::Done(clock.now()));
    assert_eq!(clock.now().since(start), Duration::from_secs(300));
}

#[test]
fn a_world_where_nobody_can_go_on_is_reported() {
    let mut simulation = Simulation::new(1, Options::default());
    simulation.spawner().spawn("waiter", std::future::pending::<()>());
    let failure = simulation.run(|| Ok(())).unwrap_err();
    assert_eq!(failure.message, "nobody can go on: waiter");
}

#[test]
fn crashes_are_told_to_whoever_waits() {
    let (mut crashed, mut partial) = (0, 0);
    for seed in 0..100 {
        let options = Options {
            crash: 0.1,
            ..Options::default()
        };
        let mut simulation = Simulation::new(seed, options);
        let store = MemoryStateStore::new(Pace::steady());
        let counter = store.clone();
        let work = simulation.spawner().actor("work").crashable().spawn(async move {
            for nth in 0..5 {
                increment(&counter, Protocol::Careful, &nth.to_string())
                    .await
                    .unwrap();
            }
        });
        simulation.run(|| Ok(())).unwrap();
        if block_on(work) == Outcome::Crashed {
            crashed += 1;
            partial += usize::from((1..5).contains(&counted(&store)));
        } else {
            assert_eq!(counted(&store), 5);
        }
    }
    assert!((20..100).contains(&crashed), "{crashed} of 100 crashed");
    assert!(
        partial > 10,
        "{partial} of {crashed} crashes left a part of the work"
    );
}

/// The matrix on the same protocols, one increment at a time.
fn matrix(protocol: Protocol) -> Result<Coverage, String> {
    block_on(Matrix::new("three increments").run(
        async |plan| {
            let memory = MemoryStateStore::new(Pace::steady());
            let store = FaultyStateStore::new(Arc::new(memory.clone()), plan);
            (memory, store)
        },
        async |(_, store)| {
            for name in ["a", "b", "c"] {
                increment(store, protocol, name).await?;
            }
            Ok(())
        },
        async |(memory, _)| match counted(memory) {
            3 => Ok(()),
            other => Err(format!("3 increments were counted as {other}")),
        },
    ))
}

#[test]
fn the_matrix_covers_every_call() {
    let coverage = matrix(Protocol::Careful).unwrap();
    // A load and a store per increment; 2 faults of a read, 11 of a write.
    assert_eq!(
        coverage,
        Coverage {
            name: "three increments",
            calls: 6,
            points: 6,
            runs: 3 * (2 + 11)
        }
    );
    let failure = matrix(Protocol::ForgetsLostAnswers).unwrap_err();
    assert!(failure.contains("were counted as"), "{failure}");
}
