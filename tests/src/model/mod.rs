//! The truth that Frazil is measured against, written without Frazil's code.
//!
//! - [`World`] is what Kafka holds: a topic's lives, their partitions, every record that ever was, and which records
//!   were answered with success.
//! - [`produce`] appends to it; [`EventSource`] delivers from it as Lambda's event source mapping does: in order per
//!   partition, at least once, cut differently the second time, with time-outs that leave the invocation running.
//! - [`TableReader`] reads a table as any engine would: pointer, metadata, manifests, Parquet.
//! - [`Oracle`] compares the two and names the promise that is broken.

mod event;
mod event_source;
mod fingerprint;
mod log;
mod oracle;
mod producer;
pub mod protocol;
mod reader;
#[cfg(test)]
mod tests;

pub use event::{EventRecord, event_json, parse_event};
pub use event_source::{Deliver, EventSource, Group, ItemFailure, SourceOptions};
pub use fingerprint::fingerprint;
pub use log::{Content, Id, Log, Record, Shared, World, share};
pub use oracle::{Completeness, Holes, Oracle, View, VisibleRow};
pub use producer::{ProducerOptions, produce};
pub use reader::{Columns, Fetch, TableReader};
