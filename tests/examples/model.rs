//! Plays many schedules of the model of the whole protocol:
//! `cargo run -p frazil-tests --release --example model -- --schedules 1000000 [--seed 0] [--threads N]`.
//!
//! Prints how far it is, and every seed that fails with what it breaks; `--seed N --schedules 1` shows one with its
//! trace.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use frazil_tests::model::protocol::run;

/// A line of progress after so many schedules.
const PROGRESS_EVERY: u64 = 10_000;

struct Wanted {
    first: u64,
    schedules: u64,
    threads: u64,
}

fn read_arguments() -> Result<Wanted, String> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let mut wanted = Wanted {
        first: 0,
        schedules: 10_000,
        threads: cores as u64,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse().ok());
        let value = value.ok_or_else(|| format!("{name} needs a number"))?;
        match name.as_str() {
            "--seed" => wanted.first = value,
            "--schedules" => wanted.schedules = value,
            "--threads" => wanted.threads = value,
            _ => {
                return Err(format!(
                    "{name} is unknown: there are --seed, --schedules and --threads"
                ));
            }
        }
    }
    Ok(wanted)
}

fn main() -> ExitCode {
    let wanted = match read_arguments() {
        Ok(wanted) => wanted,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let next = AtomicU64::new(wanted.first);
    let failed = Mutex::new(Vec::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let done = seed - wanted.first;
            if done >= wanted.schedules {
                return;
            }
            if done > 0 && done.is_multiple_of(PROGRESS_EVERY) {
                eprintln!("{done} of {} schedules", wanted.schedules);
            }
            if let Err(failure) = run(seed) {
                if wanted.schedules == 1 {
                    println!("{failure}");
                } else {
                    println!("seed {seed}, step {}: {}", failure.step, failure.message);
                }
                failed
                    .lock()
                    .unwrap_or_else(|poisoned| poisoned.into_inner())
                    .push(seed);
            }
        }
    };
    std::thread::scope(|scope| (0..wanted.threads.max(1)).for_each(|_| drop(scope.spawn(work))));
    let failed = failed
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    println!(
        "{} schedules from seed {}, {} failed",
        wanted.schedules,
        wanted.first,
        failed.len()
    );
    if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
