//! The ingest function: a Kafka event becomes data files and one descriptor per topic; nothing becomes visible.
//!
//! Success is answered only when every record of the event is staged, parked, a dead letter, or skipped on purpose
//! (promise I1). Any number of invocations run at once without a conflict: each adds objects under its own names.

mod answer;
mod breaker;
mod claims;
mod compile;
mod decode;
mod design;
mod encoding;
mod function;
mod handler;
mod metrics;
mod parts;
mod registries;
mod report;
mod retry;
mod route;
mod schemas;
mod staging;

pub use answer::{BatchItemFailure, BatchItemFailures, ItemIdentifier, answer};
pub use compile::compile;
pub use design::{kafka_columns, mapping};
pub use function::Function;
pub use handler::{Ingest, IngestOptions};
pub use registries::Registries;
pub use report::{Failure, IngestReport, TableReport, Took, TopicOutcome, TopicReport};
