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

mod command;
mod judges;
mod python;

pub use command::{frazil, run_frazil};
pub use judges::{Reader, compare, compare_table, footers, sample_warehouse};
pub use python::{python, repository, run_python};
