//! The words of Frazil: names, offsets, ranges, errors, and the clock and randomness as values.
//!
//! Nothing here does I/O. Every other crate speaks in these types.
//!
//! ```
//! use frazil_core::{IntervalSet, Offset, OffsetRange};
//!
//! let mut holes = IntervalSet::default();
//! holes.insert(OffsetRange::new(Offset(3), Offset(7)).unwrap());
//! assert!(holes.contains(Offset(5)));
//! ```

mod environment;
mod error;
mod intervals;
mod names;
mod offsets;
mod secret;

pub use environment::{Clock, Entropy, Environment, TimestampMs};
pub use error::{Error, ErrorKind, Result};
pub use intervals::IntervalSet;
pub use names::{NamespaceName, RegistryName, SafeNames, SourceName, TableName, TopicName, safe_name};
pub use offsets::{Epoch, Offset, OffsetRange, Partition, SchemaId, TopicPartition};
pub use secret::Secret;
