//! The model of the whole protocol: seeded schedules on memory back ends (promises I1–I5 and I8).
//!
//! `FRAZIL_TEST_SCHEDULES` and `FRAZIL_TEST_SEED` choose how many schedules run and from which seed. A million:
//! `cargo run -p frazil-tests --release --example model -- --schedules 1000000`.

mod sabotage;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use frazil_tests::model::protocol::{Summary, run};
use frazil_tests::simulation::Failure;

/// After so many failures nobody needs more.
const FAILURES_SHOWN: usize = 20;

fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable} is `{text}`, and should be a number")),
        Err(_) => default,
    }
}

/// Plays schedules on all cores and panics with the first failures.
fn play(seed: u64, schedules: u64) {
    let first = number("FRAZIL_TEST_SEED", seed);
    let end = first + number("FRAZIL_TEST_SCHEDULES", schedules);
    let next = AtomicU64::new(first);
    let found: Mutex<(Summary, Vec<Box<Failure>>)> = Mutex::default();
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end || found.lock().unwrap().1.len() >= FAILURES_SHOWN {
                return;
            }
            let result = run(seed);
            let (total, failures) = &mut *found.lock().unwrap();
            match result {
                Ok(summary) => {
                    total.steps += summary.steps;
                    total.calls += summary.calls;
                    total.faults += summary.faults;
                    total.rows += summary.rows;
                    total.commits += summary.commits;
                }
                Err(failure) => failures.push(failure),
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let (total, failures) = found.into_inner().unwrap();
    println!("{} schedules: {total:?}", end - first);
    if let Some(failure) = failures.first() {
        let lines = failures
            .iter()
            .map(|failure| format!("seed {}: {}", failure.seed, failure.message));
        panic!(
            "{failure}\nall that fail:\n{}",
            lines.collect::<Vec<_>>().join("\n")
        );
    }
    let enough = |name: &str, count: u64| {
        assert!(
            count >= end - first,
            "only {count} {name}: the model does not do much"
        );
    };
    enough("calls went wrong", total.faults);
    enough("rows", total.rows as u64);
    enough("commits", total.commits as u64);
}

#[test]
fn every_schedule_keeps_the_promises() {
    play(0, 2_000);
}

#[test]
#[ignore = "slow: more schedules, with other seeds"]
fn other_schedules_keep_the_promises() {
    play(5_000, 1_000);
}

#[test]
fn a_seed_gives_the_same_run_again() {
    for seed in [1, 7, 23] {
        assert_eq!(run(seed).unwrap(), run(seed).unwrap(), "seed {seed}");
    }
}
