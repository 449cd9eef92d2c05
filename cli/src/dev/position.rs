//! Up to where a topic was read, in a small file of the warehouse: it goes where the rows go, and with them.

use std::collections::BTreeMap;

use bytes::Bytes;
use frazil_core::{Error, ErrorKind, Result, SourceName, TopicName, safe_name};
use frazil_table::Warehouse;
use serde::{Deserialize, Serialize};

/// The format number of the file.
const FORMAT: u32 = 1;
/// More than a topic with 100,000 partitions needs.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The file. A lost one is harmless: the records come again, and what the table has is recognised.
#[derive(Debug, Clone)]
pub(crate) struct PositionFile {
    warehouse: Warehouse,
    location: String,
    source: SourceName,
    topic: TopicName,
    handler: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Document {
    format: u32,
    source: SourceName,
    topic: TopicName,
    handler: String,
    /// The next offset of each partition.
    next: BTreeMap<i32, i64>,
    written_at_ms: i64,
}

impl PositionFile {
    /// Of a topic, for one handler: what another one took says nothing about this one.
    pub(crate) fn new(warehouse: &Warehouse, source: &SourceName, topic: &TopicName, handler: &str) -> Self {
        let name = safe_name(handler);
        let location = format!(
            "{}/_frazil/dev/{source}/{topic}/{name}.json",
            warehouse.layout.warehouse()
        );
        Self {
            warehouse: warehouse.clone(),
            location,
            source: source.clone(),
            topic: topic.clone(),
            handler: handler.to_owned(),
        }
    }

    /// The next offset of each partition; `None` for a first start.
    pub(crate) async fn read(&self) -> Result<Option<BTreeMap<i32, i64>>> {
        let Some(bytes) = self.warehouse.storage.get(&self.location, MAX_BYTES).await? else {
            return Ok(None);
        };
        let faulty = |message: String, hint: &str| {
            Error::new(ErrorKind::Invalid, "read the position of an earlier run", message)
                .with_context("file", &self.location)
                .with_hint(hint)
        };
        let again = "start with --restart: the topic is read again, and what the table has is recognised";
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let head: Head = serde_json::from_slice(&bytes).map_err(|error| faulty(error.to_string(), again))?;
        if head.format > FORMAT {
            let message = format!(
                "it has format {}, and this version reads up to {FORMAT}",
                head.format
            );
            return Err(faulty(message, "use the newer version of frazil"));
        }
        let document: Document =
            serde_json::from_slice(&bytes).map_err(|error| faulty(error.to_string(), again))?;
        if let Some((partition, next)) = document
            .next
            .iter()
            .find(|(partition, next)| **partition < 0 || **next < 0)
        {
            return Err(faulty(
                format!("partition {partition} is at offset {next}"),
                again,
            ));
        }
        Ok(Some(document.next))
    }

    /// Writes the next offset of each partition.
    pub(crate) async fn write(&self, next: &BTreeMap<i32, i64>) -> Result<()> {
        let document = Document {
            format: FORMAT,
            source: self.source.clone(),
            topic: self.topic.clone(),
            handler: self.handler.clone(),
            next: next.clone(),
            written_at_ms: self.warehouse.environment.now().0,
        };
        let bytes = serde_json::to_vec(&document).map_err(|error| {
            Error::new(ErrorKind::Internal, "write the position", error.to_string()).with_source(error)
        })?;
        self.warehouse
            .storage
            .put(&self.location, Bytes::from(bytes), None)
            .await
    }
}
