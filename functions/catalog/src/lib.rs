//! The catalog function: every minute, what is pending of each table becomes one commit.
//!
//! It never converts rows, and ingest never commits any: that is what keeps the two out of each other's way.

mod function;
mod handler;
mod metrics;
mod operation;
mod pending;

pub use function::Function;
pub use handler::{CatalogFunction, Run, TableCommit};
pub use operation::{CommitAnswer, Operation, PendingAnswer, StatusAnswer, TableAnswer};
pub use pending::Work;
