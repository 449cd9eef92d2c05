//! The on-failure destination: what Lambda writes to a bucket, in a folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use chrono::{DateTime, SecondsFormat, Utc};
use frazil_core::{Environment, Error, ErrorKind, Result, TimestampMs};
use serde::Serialize;

use super::event::EventForm;
use super::mapping::{Batch, Condition};

const KEEP: &str = "keep what is given up";

/// A folder that takes what is given up, an object of Lambda's form per batch.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    folder: PathBuf,
    environment: Environment,
}

impl Destination {
    /// The folder, made if it is not there.
    pub(crate) fn open(folder: &Path, environment: &Environment) -> Result<Self> {
        fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        Ok(Self {
            folder: folder.to_owned(),
            environment: environment.clone(),
        })
    }

    /// Writes a batch and returns where it is. Blocks.
    pub(crate) fn keep(
        &self,
        form: &EventForm,
        batch: &Batch,
        condition: Condition,
        brokers: &str,
        handler: &str,
    ) -> Result<PathBuf> {
        let (now, id) = (self.environment.now(), self.environment.new_uuid());
        let object = Object::of(form, batch, condition, brokers, handler, now, id.to_string());
        let bytes = serde_json::to_vec(&object)
            .map_err(|error| Error::new(ErrorKind::Internal, KEEP, error.to_string()).with_source(error))?;
        let name = format!("{}-{id}", time(now).format("%Y-%m-%dT%H.%M.%S"));
        let (part, path) = (
            self.folder.join(format!("{name}.part")),
            self.folder.join(format!("{name}.json")),
        );
        let write = || {
            let mut file = File::create(&part)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&part, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        write().map_err(|error| failed(&path, error))?;
        Ok(path)
    }
}

/// An object of Lambda's, as in “Capturing discarded batches”, S3.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    request_context: RequestContext,
    response_context: Option<ResponseContext>,
    version: &'static str,
    timestamp: String,
    #[serde(rename = "KafkaBatchInfo")]
    batch: BatchInfo,
    /// The event, as text.
    payload: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestContext {
    request_id: String,
    function_arn: String,
    condition: &'static str,
    approximate_invoke_count: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResponseContext {
    status_code: u16,
    executed_version: &'static str,
    function_error: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BatchInfo {
    batch_size: usize,
    bootstrap_servers: String,
    payload_size: usize,
    records_info: BTreeMap<String, RecordsInfo>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RecordsInfo {
    first_record_offset: String,
    last_record_offset: String,
    first_record_timestamp: Option<String>,
    last_record_timestamp: Option<String>,
}

impl Object {
    fn of(
        form: &EventForm,
        batch: &Batch,
        condition: Condition,
        brokers: &str,
        handler: &str,
        now: TimestampMs,
        request_id: String,
    ) -> Self {
        let payload = String::from_utf8_lossy(&form.event(&batch.records)).into_owned();
        let at = |millis: Option<i64>| millis.map(|millis| iso(TimestampMs(millis)));
        let info = |records: &[super::event::EncodedRecord]| {
            let (first, last) = (records.first()?, records.last()?);
            let info = RecordsInfo {
                first_record_offset: first.offset.to_string(),
                last_record_offset: last.offset.to_string(),
                first_record_timestamp: at(first.timestamp_ms),
                last_record_timestamp: at(last.timestamp_ms),
            };
            Some((form.topic_partition(first.partition), info))
        };
        let partitions = batch.records.chunk_by(|a, b| a.partition == b.partition);
        Self {
            request_context: RequestContext {
                request_id,
                function_arn: handler.to_owned(),
                condition: condition.as_str(),
                approximate_invoke_count: batch.invocations,
            },
            response_context: (batch.invocations > 0).then_some(ResponseContext {
                status_code: 200,
                executed_version: "$LATEST",
                function_error: "Unhandled",
            }),
            version: "1.0",
            timestamp: iso(now),
            batch: BatchInfo {
                batch_size: batch.records.len(),
                bootstrap_servers: brokers.to_owned(),
                payload_size: payload.len(),
                records_info: partitions.filter_map(info).collect(),
            },
            payload,
        }
    }
}

fn time(at: TimestampMs) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.0).unwrap_or_default()
}

fn iso(at: TimestampMs) -> String {
    time(at).to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, KEEP, error.to_string())
        .with_context("path", path.display())
        .with_hint("--on-failure names a folder that can be written to; nothing was passed over")
        .with_source(error)
}
