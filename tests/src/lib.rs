//! What the end-to-end tests stand on: a world to break things in, and the truth to compare with.
//!
//! ```
//! use frazil_table::ObjectStorage;
//! use frazil_tests::simulation::{MemoryStorage, Options, Pace, Simulation};
//!
//! let mut simulation = Simulation::new(42, Options::default());
//! let storage = MemoryStorage::new(simulation.clock(), Pace::steady(), 3);
//! for writer in ["a", "b"] {
//!     let storage = storage.clone();
//!     simulation.spawner().spawn(writer, async move {
//!         let location = format!("memory://w/{writer}");
//!         storage.put(&location, writer.into(), None).await.unwrap();
//!     });
//! }
//! simulation.run(|| Ok(())).unwrap();
//! assert_eq!(storage.locations("memory://w/"), ["memory://w/a", "memory://w/b"]);
//! ```

pub mod model;
pub mod simulation;
