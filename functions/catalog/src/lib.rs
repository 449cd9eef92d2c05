//! The catalog function: every minute, what is pending of each table becomes one commit.
//!
//! It never converts rows, and ingest never commits any: that is what keeps the two out of each other's way.

mod handler;
mod operation;

pub use handler::{CatalogFunction, TableCommit};
pub use operation::{CommitAnswer, Operation, TableAnswer};
