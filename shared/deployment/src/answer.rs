use frazil_core::{Error, ErrorKind, Result};
use frazil_telemetry::Metrics;
use serde::Serialize;
use serde_json::Value;

/// What a function answers, and what it measured.
#[derive(Debug)]
pub struct Answer {
    /// For Lambda, or whoever asked.
    pub body: Value,
    /// For CloudWatch.
    pub metrics: Vec<Metrics>,
}

impl Answer {
    /// An answer of this document.
    pub fn new(body: &impl Serialize, metrics: Vec<Metrics>) -> Result<Self> {
        let body = serde_json::to_value(body).map_err(|error| {
            Error::new(ErrorKind::Internal, "answer", error.to_string()).with_source(error)
        })?;
        Ok(Self { body, metrics })
    }
}
