//! Logs for Lambda and for people, and CloudWatch metrics embedded in logs.
//!
//! Logs are `tracing` events: a constant lowercase message, and fields. No payload of a record is ever a field.
//! Metrics are plain values that render to one line; whoever has the output writes it.
//!
//! ```
//! use frazil_core::TimestampMs;
//! use frazil_telemetry::{Metrics, Unit};
//!
//! let mut metrics = Metrics::new(TimestampMs(1_700_000_000_000));
//! metrics.dimension("table", "sales.orders");
//! metrics.add("rows_written", 120.0, Unit::Count);
//! let line = metrics.to_line().unwrap();
//! assert!(line.starts_with("{\"_aws\":{"));
//! assert!(!line.contains('\n'));
//! ```

mod logs;
mod metrics;

pub use logs::{LogFormat, start_logs};
pub use metrics::{Metrics, NAMESPACE, Unit, write_metrics};
