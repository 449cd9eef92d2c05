use std::collections::BTreeMap;

use frazil_core::{Error, ErrorKind, Result, TimestampMs};
use serde_json::{Map, Value, json};

/// The CloudWatch namespace of all of Frazil's metrics.
pub const NAMESPACE: &str = "Frazil";

/// Bounds of the embedded metric format (CloudWatch documentation, “Specification: Embedded metric format”):
/// CloudWatch drops a line that breaks one, so it is refused here, where it can be seen.
const MAX_DIMENSIONS: usize = 30;
const MAX_METRICS: usize = 100;
const MAX_VALUES: usize = 100;
/// Dimension values above this length are refused by CloudWatch.
const MAX_DIMENSION_VALUE_CHARS: usize = 1_024;
const RESERVED: &str = "_aws";

/// What a metric counts, by CloudWatch's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Percent, from 0 to 100.
    Percent,
    /// A number without a unit.
    None,
}

impl Unit {
    fn as_str(self) -> &'static str {
        match self {
            Self::Count => "Count",
            Self::Bytes => "Bytes",
            Self::Milliseconds => "Milliseconds",
            Self::Seconds => "Seconds",
            Self::Percent => "Percent",
            Self::None => "None",
        }
    }
}

/// Measurements that share one set of dimensions. A plain value: [`Metrics::to_line`] renders it as one line of
/// JSON in CloudWatch's embedded metric format, which CloudWatch finds in the logs of a function.
///
/// Each set of dimension values is a metric of its own, and is paid for: dimensions are for tables and topics,
/// properties for what only a person who reads the log wants to know.
#[derive(Debug, Clone, PartialEq)]
pub struct Metrics {
    at: TimestampMs,
    dimensions: BTreeMap<&'static str, String>,
    properties: BTreeMap<&'static str, Value>,
    metrics: BTreeMap<&'static str, (Unit, Vec<f64>)>,
}

impl Metrics {
    /// No measurements, taken at this time.
    pub fn new(at: TimestampMs) -> Self {
        Self {
            at,
            dimensions: BTreeMap::new(),
            properties: BTreeMap::new(),
            metrics: BTreeMap::new(),
        }
    }

    /// Says what the measurements are about, such as a table.
    pub fn dimension(&mut self, name: &'static str, value: impl Into<String>) {
        self.dimensions.insert(name, value.into());
    }

    /// Adds a field that is searchable in the log and makes no metric, such as a request id.
    pub fn property(&mut self, name: &'static str, value: impl Into<Value>) {
        self.properties.insert(name, value.into());
    }

    /// Adds a measurement; of one metric there may be several. The unit of the first one holds.
    pub fn add(&mut self, name: &'static str, value: f64, unit: Unit) {
        self.metrics
            .entry(name)
            .or_insert((unit, Vec::new()))
            .1
            .push(value);
    }

    /// Whether nothing was measured. Such a line needs not be written.
    pub fn is_empty(&self) -> bool {
        self.metrics.is_empty()
    }

    /// One line of JSON, without the line's end.
    ///
    /// `Internal` when CloudWatch would drop it in silence: a value that is no number, one name used twice, or
    /// more dimensions (30), metrics (100) or values of a metric (100) than the format takes.
    pub fn to_line(&self) -> Result<String> {
        self.check()?;
        let names: Vec<Value> = self
            .metrics
            .iter()
            .map(|(name, (unit, _))| json!({"Name": name, "Unit": unit.as_str()}))
            .collect();
        let dimensions: Vec<&str> = self.dimensions.keys().copied().collect();
        let mut line = Map::new();
        line.insert(
            RESERVED.to_owned(),
            json!({
                "Timestamp": self.at,
                "CloudWatchMetrics": [{"Namespace": NAMESPACE, "Dimensions": [dimensions], "Metrics": names}],
            }),
        );
        for (name, value) in &self.dimensions {
            line.insert((*name).to_owned(), json!(value));
        }
        for (name, value) in &self.properties {
            line.insert((*name).to_owned(), value.clone());
        }
        for (name, (_, values)) in &self.metrics {
            let value = match values.as_slice() {
                [only] => json!(only),
                several => json!(several),
            };
            line.insert((*name).to_owned(), value);
        }
        Ok(Value::Object(line).to_string())
    }

    fn check(&self) -> Result<()> {
        let refuse = |message: String| Err(Error::new(ErrorKind::Internal, "write metrics", message));
        for (what, count, max) in [
            ("dimensions", self.dimensions.len(), MAX_DIMENSIONS),
            ("metrics", self.metrics.len(), MAX_METRICS),
        ] {
            if count > max {
                return refuse(format!("{count} {what}, CloudWatch takes {max}"));
            }
        }
        for (name, value) in &self.dimensions {
            if value.is_empty() || value.chars().count() > MAX_DIMENSION_VALUE_CHARS {
                return refuse(format!(
                    "dimension `{name}` has a value that CloudWatch does not take"
                ));
            }
        }
        for (name, (_, values)) in &self.metrics {
            if values.len() > MAX_VALUES {
                return refuse(format!(
                    "metric `{name}` has {} values, CloudWatch takes {MAX_VALUES}",
                    values.len()
                ));
            }
            if let Some(value) = values.iter().find(|value| !value.is_finite()) {
                return refuse(format!("metric `{name}` has the value {value}"));
            }
        }
        let names = self
            .dimensions
            .keys()
            .chain(self.properties.keys())
            .chain(self.metrics.keys());
        let mut seen = std::collections::BTreeSet::from([RESERVED]);
        for name in names {
            if !seen.insert(name) {
                return refuse(format!("the name `{name}` is used twice"));
            }
        }
        Ok(())
    }
}

/// Writes lines to standard output, where CloudWatch finds those of a function. One that it would drop is logged
/// instead.
pub fn write_metrics(metrics: &[Metrics]) {
    use std::io::Write as _;
    let mut lines = String::new();
    for metrics in metrics.iter().filter(|metrics| !metrics.is_empty()) {
        match metrics.to_line() {
            Ok(line) => {
                lines.push_str(&line);
                lines.push('\n');
            }
            Err(error) => tracing::error!(%error, "metrics are not written"),
        }
    }
    // A function without standard output has nobody to tell.
    let _ = std::io::stdout().lock().write_all(lines.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of CloudWatch's specification, with Frazil's names.
    #[test]
    fn a_line_is_what_the_specification_shows() {
        let mut metrics = Metrics::new(TimestampMs(1_574_109_732_004));
        metrics.dimension("topic", "orders");
        metrics.dimension("table", "sales.orders");
        metrics.property("request_id", "989ffbf8-9ace-4817-a57c-e4dd734019ee");
        metrics.add("duration", 42.5, Unit::Milliseconds);
        metrics.add("rows_written", 3.0, Unit::Count);
        metrics.add("file_size", 10.0, Unit::Bytes);
        metrics.add("file_size", 20.0, Unit::Bytes);
        let line = metrics.to_line().unwrap();
        assert!(!line.contains('\n'));
        let expected: Value = serde_json::from_str(
            r#"{
              "_aws": {
                "Timestamp": 1574109732004,
                "CloudWatchMetrics": [
                  {
                    "Namespace": "Frazil",
                    "Dimensions": [["table", "topic"]],
                    "Metrics": [
                      {"Name": "duration", "Unit": "Milliseconds"},
                      {"Name": "file_size", "Unit": "Bytes"},
                      {"Name": "rows_written", "Unit": "Count"}
                    ]
                  }
                ]
              },
              "topic": "orders",
              "table": "sales.orders",
              "request_id": "989ffbf8-9ace-4817-a57c-e4dd734019ee",
              "duration": 42.5,
              "rows_written": 3.0,
              "file_size": [10.0, 20.0]
            }"#,
        )
        .unwrap();
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), expected);
    }

    #[test]
    fn what_cloudwatch_would_drop_is_refused() {
        let refused = |change: &dyn Fn(&mut Metrics)| {
            let mut metrics = Metrics::new(TimestampMs(0));
            metrics.dimension("table", "t");
            metrics.add("rows", 1.0, Unit::Count);
            assert!(metrics.to_line().is_ok());
            change(&mut metrics);
            metrics.to_line().unwrap_err().message().to_owned()
        };
        assert_eq!(
            refused(&|m| m.add("rows", f64::NAN, Unit::Count)),
            "metric `rows` has the value NaN"
        );
        assert_eq!(
            refused(&|m| m.dimension("rows", "x")),
            "the name `rows` is used twice"
        );
        assert_eq!(
            refused(&|m| m.property("_aws", 1)),
            "the name `_aws` is used twice"
        );
        assert_eq!(
            refused(&|m| m.dimension("topic", "")),
            "dimension `topic` has a value that CloudWatch does not take"
        );
        let many = |m: &mut Metrics| (0..100).for_each(|_| m.add("rows", 1.0, Unit::Count));
        assert_eq!(
            refused(&many),
            "metric `rows` has 101 values, CloudWatch takes 100"
        );
    }
}
