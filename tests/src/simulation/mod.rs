//! A deterministic world to run Frazil in: actors, time, randomness, storage, catalog and failures, all from one
//! seed.
//!
//! - [`Simulation`] polls actors (plain futures) in an order drawn from the seed. Every operation of the memory back
//!   ends waits at a gate first, so that one poll of an actor is its progress to its next operation, and everything
//!   that can interleave on real machines can interleave here.
//! - [`MemoryStorage`], [`MemoryCatalog`] and [`MemoryStateStore`] keep the promises of the traits and no more: a
//!   listing comes in small pages between which objects come and go.
//! - [`FaultPlan`] with [`FaultyStorage`], [`FaultyCatalog`] and [`FaultyStateStore`] around any back end makes calls
//!   fail before, fail after (“it worked, the answer was lost”), land late, happen twice, or end the run.
//! - [`Matrix`] runs a scenario once per call and fault, one by one, and checks what is left after a rerun.
//!
//! A failure prints the seed and the last operations; the same seed gives the same run. That holds as long as the
//! code under test draws no randomness of its own, iteration order of hash maps included: [`Trace::fingerprint`]
//! tells.

mod catalog;
mod clock;
mod dice;
mod executor;
mod fault;
mod faulty;
mod gate;
mod matrix;
mod state;
mod storage;
#[cfg(test)]
mod tests;
mod trace;

pub use catalog::MemoryCatalog;
pub use clock::VirtualClock;
pub use dice::Dice;
pub use executor::{ActorBuilder, Failure, Handle, Options, Outcome, Simulation, Spawner, block_on};
pub use fault::{FaultKind, FaultPlan, Lateness, Rates};
pub use faulty::{FaultyCatalog, FaultyStateStore, FaultyStorage};
pub use gate::Pace;
pub use matrix::{Coverage, Matrix};
pub use state::MemoryStateStore;
pub use storage::MemoryStorage;
pub use trace::{Operation, Point, Trace};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks whatever a panicking actor left behind: the simulation reports the panic itself.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
