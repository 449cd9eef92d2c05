use std::collections::BTreeMap;
use std::fmt::Write as _;

use frazil_core::{
    Epoch, Error, ErrorKind, Offset, OffsetRange, Partition, Result, SourceName, TableName, TimestampMs,
    TopicName,
};
use frazil_schema::FieldMap;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::anchor::Anchor;
use crate::layout::LogName;
use crate::storage::MAX_ATTRIBUTES_BYTES;

/// The format number that this version writes, and the newest that it reads (promise I9).
pub const DESCRIPTOR_FORMAT: u32 = 1;

/// The largest descriptor that is read: 1,000 partitions with 16 anchors each and 2,000 files stay below.
pub const MAX_DESCRIPTOR_BYTES: u64 = 64 * 1024 * 1024;

/// What one invocation staged for one table: “these files hold p3:[100,199], p7:[40,61]”.
///
/// A range never claims a record that is neither in the files, nor in the dead letters, nor skipped on purpose.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Descriptor {
    /// The format number.
    pub format: u32,
    /// Time-ordered, unique.
    pub id: Uuid,
    /// The table, for people; the uuid is what counts.
    pub table: TableName,
    /// Which table.
    pub table_uuid: Uuid,
    /// Which cluster.
    pub source: SourceName,
    /// Which topic.
    pub topic: TopicName,
    /// Which life of the topic.
    pub epoch: Epoch,
    /// When it was staged.
    pub staged_at: TimestampMs,
    /// Whether it may fill holes of any age: declared by the mapping's configuration or by a command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub backfill: bool,
    /// The schema that the files were written with.
    pub schema_id: i32,
    /// The partition spec that the files were written with.
    pub partition_spec_id: i32,
    /// The field ids that the files use, by source path.
    pub fields: FieldMap,
    /// What it claims, one entry per partition.
    pub claims: Vec<Claim>,
    /// Data files of the table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<StagedFile>,
    /// Data files of the dead-letter table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letters: Option<StagedDeadLetters>,
    /// Why it was dropped, on the shelf of dropped ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judgement: Option<Judgement>,
    /// The parked event that it was staged from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked_as: Option<Uuid>,
}

/// What a descriptor claims of one partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The partition.
    pub partition: Partition,
    /// The offsets, those that Kafka skipped in between included.
    pub range: OffsetRange,
    /// Records read, whatever became of them.
    pub records: u64,
    /// Records that became dead letters.
    #[serde(default)]
    pub dead_letters: u64,
    /// Records skipped on purpose (`on_error = "skip"`).
    #[serde(default)]
    pub skipped: u64,
    /// Proof of which log the range came from, ascending by offset.
    pub anchors: Vec<Anchor>,
    /// The oldest record's timestamp, for freshness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<TimestampMs>,
}

/// A data file that a descriptor stages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StagedFile {
    /// The Kafka partitions with rows in it, and how many.
    pub rows: BTreeMap<Partition, u64>,
    /// The entry for the manifest, in Iceberg's JSON form.
    pub data_file: Box<RawValue>,
}

/// Dead letters that a descriptor stages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StagedDeadLetters {
    /// The dead-letter table.
    pub table: TableName,
    /// Its uuid.
    pub table_uuid: Uuid,
    /// Its data files.
    pub files: Vec<StagedFile>,
}

/// Why a descriptor was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// Anchors or rows proved that the table holds these records.
    Proved,
    /// A person announced a replay, or the range declared itself a backfill.
    Announced,
}

impl Descriptor {
    /// The log that it came from.
    pub fn log(&self) -> LogName {
        LogName {
            source: self.source.clone(),
            topic: self.topic.clone(),
            epoch: self.epoch,
        }
    }

    /// Its place in the order in which records arrived: what was parked arrived before it was staged.
    pub fn arrival(&self) -> Uuid {
        self.parked_as.unwrap_or(self.id)
    }

    /// Rows in its data files.
    pub fn rows(&self) -> u64 {
        self.files.iter().flat_map(|file| file.rows.values()).sum()
    }

    /// The bytes to store.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self)
            .map_err(|e| Error::new(ErrorKind::Internal, "write a descriptor", e.to_string()).with_source(e))
    }

    /// Reads a descriptor; refuses a newer format by name before anything else of it is looked at.
    pub fn from_json(bytes: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let unreadable = |e: serde_json::Error| {
            Error::new(ErrorKind::Internal, "read a descriptor", e.to_string())
                .with_hint("`frazil pending quarantine ID` sets it aside; its files are kept")
                .with_source(e)
        };
        let Format { format } = serde_json::from_slice(bytes).map_err(unreadable)?;
        if format == 0 || format > DESCRIPTOR_FORMAT {
            return Err(Error::new(
                ErrorKind::Invalid,
                "read a descriptor",
                format!("it has format {format}, and this version reads up to {DESCRIPTOR_FORMAT}"),
            )
            .with_hint("a newer version staged it: upgrade this one"));
        }
        let descriptor: Self = serde_json::from_slice(bytes).map_err(unreadable)?;
        let mut partitions: Vec<Partition> = descriptor.claims.iter().map(|claim| claim.partition).collect();
        partitions.sort_unstable();
        if partitions.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::new(
                ErrorKind::Internal,
                "read a descriptor",
                "it claims one partition twice",
            )
            .with_context("descriptor", descriptor.id));
        }
        Ok(descriptor)
    }

    /// Its claims as object attributes, readable when the object itself is not: `1 3:100-199,7:40-61`.
    /// When they do not fit, `1 *`: every partition of the log.
    pub fn attributes(&self) -> String {
        let claims = self.claims.iter().map(|claim| (claim.partition, claim.range));
        claims_to_attributes(DESCRIPTOR_FORMAT, claims)
    }
}

/// Claims as object attributes; see [`Descriptor::attributes`]. Parked events carry the same.
pub fn claims_to_attributes(format: u32, claims: impl Iterator<Item = (Partition, OffsetRange)>) -> String {
    let mut text = format!("{format} ");
    for (index, (partition, range)) in claims.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{partition}:{}-{}", range.first(), range.last());
    }
    if text.len() > MAX_ATTRIBUTES_BYTES {
        format!("{format} *")
    } else {
        text
    }
}

/// Reads claims from object attributes. `None`: they name no ranges, so all of the log must be assumed.
pub fn claims_from_attributes(attributes: Option<&str>) -> Option<Vec<(Partition, OffsetRange)>> {
    let (_format, claims) = attributes?.split_once(' ')?;
    claims
        .split(',')
        .map(|claim| {
            let (partition, range) = claim.split_once(':')?;
            let (first, last) = range.split_once('-')?;
            let range = OffsetRange::new(Offset(first.parse().ok()?), Offset(last.parse().ok()?)).ok()?;
            Some((Partition(partition.parse().ok()?), range))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(first: i64, last: i64) -> OffsetRange {
        OffsetRange::new(Offset(first), Offset(last)).unwrap()
    }

    #[test]
    fn attributes_name_the_claims_or_all() {
        let claims = vec![(Partition(3), range(100, 199)), (Partition(7), range(40, 61))];
        let text = claims_to_attributes(1, claims.clone().into_iter());
        assert_eq!(text, "1 3:100-199,7:40-61");
        assert_eq!(claims_from_attributes(Some(&text)), Some(claims));
        let many = (0..1000).map(|partition| (Partition(partition), range(0, i64::MAX - 1)));
        assert_eq!(claims_to_attributes(1, many), "1 *");
        for unknown in [
            None,
            Some("1 *"),
            Some(""),
            Some("1 3:9-1"),
            Some("2 later format"),
        ] {
            assert_eq!(claims_from_attributes(unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn a_newer_format_is_named() {
        let error = Descriptor::from_json(br#"{"format":2,"whatever":[]}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read a descriptor: it has format 2, and this version reads up to 1; \
             a newer version staged it: upgrade this one"
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in ".{0,200}") {
            let _ = Descriptor::from_json(&bytes);
            let _ = claims_from_attributes(Some(&text));
        }

        /// What is read of changed attributes can be written and read again.
        #[test]
        fn mutated_attributes_never_panic(at in 0usize..30, byte in 0u8..0x80, cut in 0usize..60) {
            let mut text = b"1 3:100-199,7:40-61,12:0-0".to_vec();
            let at = at % text.len();
            text[at] = byte;
            text.truncate(cut);
            let text = String::from_utf8(text).unwrap();
            if let Some(claims) = claims_from_attributes(Some(&text)) {
                let written = claims_to_attributes(1, claims.clone().into_iter());
                prop_assert_eq!(claims_from_attributes(Some(&written)), Some(claims));
            }
        }
    }
}
