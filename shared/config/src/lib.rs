//! `frazil.toml`, parsed and validated once with every fault reported together, and the only reader of the
//! environment.
//!
//! ```
//! use std::path::Path;
//!
//! use frazil_config::Config;
//! use frazil_core::TopicName;
//!
//! let text = r#"
//!     [topics.orders]
//!     namespace = "sales"
//!     event_time = "created_at"
//! "#;
//! let config = Config::parse(text, Path::new("frazil.toml")).unwrap();
//! let source = config.source_for(None, ["broker:9092"]).unwrap();
//! let orders = config.topic(source, &TopicName::new("orders")).unwrap();
//! assert_eq!(orders.table.to_string(), "sales.orders");
//! assert_eq!(orders.partition_by[0].to_string(), "day(created_at)");
//!
//! let faults = Config::parse("[topics.orders]\nfreshnes = \"1m\"\n", Path::new("frazil.toml")).unwrap_err();
//! assert_eq!(faults.to_string(), "frazil.toml:2:1: topics.orders.freshnes: unknown key; did you mean `freshness`?");
//! ```

mod aws;
mod choice;
mod config;
mod duration;
mod encoding;
mod environment;
mod fault;
mod fields;
mod frozen;
mod instant;
mod kafka_columns;
mod layout;
mod pattern;
mod place;
mod reader;
mod registry;
mod resolve;
mod rules;
#[cfg(test)]
mod schema;
mod sections;
mod source;
mod topic;

pub use aws::{AwsAccess, CatalogKind};
pub use config::{CONFIG_FORMAT, Config, MAX_CONFIG_BYTES};
pub use duration::DurationMs;
pub use encoding::{Format, Framing, SchemaSource};
pub use environment::{LambdaSettings, Settings};
pub use fault::{ConfigFaults, Fault, Position};
pub use fields::{FieldSettings, FieldType, Hash};
pub use frozen::FrozenChange;
pub use instant::{Instant, InstantRange};
pub use kafka_columns::KafkaColumns;
pub use layout::{PartitionField, SortField, Transform};
pub use place::Place;
pub use registry::{
    ConfluentAccess, IdentitySource, Registry, RegistryAccess, RegistryAuth, RegistryKind, SecretSource,
};
pub use source::Source;
pub use topic::{
    Breaker, ColumnCase, KeyColumns, OnError, Retention, Tables, TimeType, Timestamps, TopicSettings,
    UnknownFields,
};
