//! What the end-to-end tests share: the command under test, Python environments made on demand, and other engines as
//! judges of our tables.
//!
//! Nothing is skipped: a test whose need is missing fails, with a message that says how to install it.
//!
//! ```no_run
//! use frazil_tests::{Reader, compare, footers, run_frazil};
//! use std::path::Path;
//!
//! # fn main() -> anyhow::Result<()> {
//! let warehouse = Path::new("warehouse");
//! run_frazil(warehouse, &["run", "events/orders-avro.json"])?;
//! compare(Reader::DuckDb, warehouse, &["events/golden/orders-avro.json"])?;
//! footers(warehouse, "kafka.orders")?;
//! # Ok(())
//! # }
//! ```
//!
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

mod aws;
mod broker;
mod command;
mod judges;
mod lambda;
pub mod model;
mod python;
mod scene;
mod server;
pub mod simulation;

pub use aws::AwsServer;
pub use broker::{Broker, Produced};
pub use command::{binary, frazil, run_frazil, run_frazil_with};
pub use judges::{Reader, compare, compare_on_s3, compare_table, footers, sample_warehouse};
pub use lambda::LambdaServer;
pub use python::{python, repository, run_python, run_python_with};
pub use scene::{Scene, Weight, expected_rows, json_record, poison_record};
