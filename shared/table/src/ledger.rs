use std::collections::BTreeMap;

use frazil_core::{
    Epoch, Error, ErrorKind, IntervalSet, Offset, OffsetRange, Partition, Result, SourceName, TimestampMs,
    TopicName,
};
use frazil_schema::FieldMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::anchor::Anchor;

mod partition;
#[cfg(test)]
mod tests;

pub use partition::{Hole, MAX_HOLES, MAX_UNCERTAIN, Part, PartitionLedger};

/// The format number that this version writes, and the newest that it reads (promise I9).
pub const LEDGER_FORMAT: u32 = 1;

/// The largest ledger that is read: about 1 kB per partition, so 64 times what 1,000 partitions need.
pub const MAX_LEDGER_BYTES: u64 = 64 * 1024 * 1024;

/// What a table has taken from Kafka: an immutable file, one per commit, named by a table property together with its
/// checksum, so that it moves in the same swap as the rows (promise I4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The format number.
    pub format: u32,
    /// The table that it belongs to.
    pub table_uuid: Uuid,
    /// Counts the commits of this table, schema-only ones included.
    pub commit: u64,
    /// The table's snapshot at this commit.
    #[serde(default)]
    pub snapshot_id: Option<i64>,
    /// That snapshot's sequence number, 0 without one.
    pub sequence_number: i64,
    /// When it was written.
    pub written_at: TimestampMs,
    /// Source path → field id: a field id never changes meaning (promise I8).
    pub fields: FieldMap,
    /// What was taken, per source and topic, in the topic's present life.
    pub logs: Vec<LogLedger>,
    /// Descriptors that are taken in whole or in part and may still be listed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settled: BTreeMap<Uuid, Settled>,
    /// Dead letters that are accepted and not yet in the dead-letter table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outbox: Vec<OutboxEntry>,
    /// Retries whose rows are in the table, and whose dead letters may still be in theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<RetryEntry>,
    /// What this commit took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<Added>,
}

/// The ledger of one log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLedger {
    /// The cluster.
    pub source: SourceName,
    /// The topic.
    pub topic: TopicName,
    /// The topic's present life.
    pub epoch: Epoch,
    /// Per partition.
    pub partitions: BTreeMap<Partition, PartitionLedger>,
}

/// How much of a descriptor is settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// All of it: it is to be deleted.
    Whole,
    /// These partitions of it; the others wait.
    Partitions(Vec<Partition>),
}

/// Dead-letter files of one commit, identified by (table uuid, snapshot id).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxEntry {
    /// The commit's snapshot, or for a commit without rows its reserved id.
    pub snapshot_id: i64,
    /// Where the list of files is.
    pub list: String,
    /// The dead-letter table.
    pub table_uuid: Uuid,
    /// How many dead letters.
    pub records: u64,
}

/// Dead letters that were read after all, and are rows since the commit that recorded this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryEntry {
    /// The retry.
    pub id: Uuid,
    /// Where the list of its dead letters is.
    pub list: String,
}

/// What one commit took of one log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// The cluster.
    pub source: SourceName,
    /// The topic.
    pub topic: TopicName,
    /// Its life.
    pub epoch: Epoch,
    /// The offsets per partition.
    pub ranges: BTreeMap<Partition, IntervalSet>,
}

impl Ledger {
    /// The ledger of a new table.
    pub fn new(table_uuid: Uuid, fields: FieldMap, now: TimestampMs) -> Self {
        Self {
            format: LEDGER_FORMAT,
            table_uuid,
            commit: 1,
            snapshot_id: None,
            sequence_number: 0,
            written_at: now,
            fields,
            logs: Vec::new(),
            settled: BTreeMap::new(),
            outbox: Vec::new(),
            retries: Vec::new(),
            added: Vec::new(),
        }
    }

    /// The ledger of a log, if the table has taken from it.
    pub fn log(&self, source: &SourceName, topic: &TopicName) -> Option<&LogLedger> {
        self.logs
            .iter()
            .find(|log| &log.source == source && &log.topic == topic)
    }

    /// The ledger of a log, made for `epoch` when there is none.
    pub fn log_mut(&mut self, source: &SourceName, topic: &TopicName, epoch: Epoch) -> &mut LogLedger {
        let known = self
            .logs
            .iter()
            .position(|log| &log.source == source && &log.topic == topic);
        let index = known.unwrap_or_else(|| {
            self.logs.push(LogLedger {
                source: source.clone(),
                topic: topic.clone(),
                epoch,
                partitions: BTreeMap::new(),
            });
            self.logs.len() - 1
        });
        &mut self.logs[index]
    }

    /// Whether a descriptor is settled: in whole, or in the given partition.
    pub fn has_settled(&self, descriptor: Uuid, partition: Option<Partition>) -> bool {
        match (self.settled.get(&descriptor), partition) {
            (Some(Settled::Whole), _) => true,
            (Some(Settled::Partitions(settled)), Some(partition)) => settled.contains(&partition),
            (Some(Settled::Partitions(_)), None) | (None, _) => false,
        }
    }

    /// The file's bytes and their checksum, hex SHA-256.
    pub fn to_json(&self) -> Result<(Vec<u8>, String)> {
        let bytes = serde_json::to_vec(self)
            .map_err(|e| Error::new(ErrorKind::Internal, "write the ledger", e.to_string()).with_source(e))?;
        let checksum = sha256_hex(&bytes);
        Ok((bytes, checksum))
    }

    /// Reads a ledger and checks it against the checksum that the table names.
    pub fn from_json(bytes: &[u8], checksum: &str) -> Result<Self> {
        let damaged = |message: String| {
            Error::new(ErrorKind::Internal, "read the ledger", message)
                .with_hint("nothing is committed to this table until its ledger is back: restore the file")
        };
        let actual = sha256_hex(bytes);
        if actual != checksum {
            return Err(damaged(format!(
                "its checksum is {actual}, and the table says {checksum}"
            )));
        }
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let Format { format } =
            serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()).with_source(e))?;
        if format == 0 || format > LEDGER_FORMAT {
            return Err(Error::new(
                ErrorKind::Invalid,
                "read the ledger",
                format!("it has format {format}, and this version reads up to {LEDGER_FORMAT}"),
            )
            .with_hint("a newer version wrote it: upgrade this one"));
        }
        serde_json::from_slice(bytes).map_err(|e| damaged(e.to_string()).with_source(e))
    }
}

impl PartitionLedger {
    /// Remembers anchors, newest last, at most [`Anchor::KEPT`].
    pub fn remember(&mut self, anchors: &[Anchor]) {
        for anchor in anchors {
            if !self.anchors.iter().any(|known| known.offset == anchor.offset) {
                self.anchors.push(anchor.clone());
            }
        }
        self.anchors.sort_by_key(|anchor| anchor.offset);
        let surplus = self.anchors.len().saturating_sub(Anchor::KEPT);
        self.anchors.drain(..surplus);
    }

    /// Everything taken so far: below `next`, in no hole and not uncertain.
    pub fn taken(&self) -> IntervalSet {
        let mut taken = IntervalSet::default();
        if let Ok(all) = OffsetRange::new(Offset(0), Offset(self.next.0 - 1)) {
            taken.insert(all);
        }
        for hole in &self.holes {
            taken.remove(hole.range);
        }
        for range in self.uncertain.ranges() {
            taken.remove(*range);
        }
        taken
    }
}

fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
