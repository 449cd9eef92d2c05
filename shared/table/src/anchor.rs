use frazil_core::{Offset, TimestampMs};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Offset, timestamp and a hash of one record: proof of which log a range came from.
///
/// Anchors are taken at the first record at or after each multiple of [`Anchor::EVERY`] offsets, and at the last
/// record of a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    /// The record's offset.
    pub offset: Offset,
    /// Kafka's timestamp of the record, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<TimestampMs>,
    /// The first 128 bits of SHA-256 over key and value, in hex.
    pub hash: String,
}

impl Anchor {
    /// How many offsets lie between two anchors of a long range.
    pub const EVERY: i64 = 1_000;

    /// How many of the newest anchors the ledger keeps per partition.
    pub const KEPT: usize = 16;

    /// The anchor of a record. A null key or value and an empty one hash alike: the event source does not tell them
    /// apart reliably.
    pub fn of(
        offset: Offset,
        timestamp: Option<TimestampMs>,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) -> Self {
        let mut hash = Sha256::new();
        for part in [key.unwrap_or_default(), value.unwrap_or_default()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let hash = hash.finalize()[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self {
            offset,
            timestamp,
            hash,
        }
    }

    /// Whether a record at `offset` is to be anchored, given the offset of the record before it in the range.
    pub fn is_due(previous: Option<Offset>, offset: Offset) -> bool {
        match previous {
            None => true,
            Some(previous) => previous.0.div_euclid(Self::EVERY) != offset.0.div_euclid(Self::EVERY),
        }
    }

    /// Whether the two name the same record of the same log. Meaningful for equal offsets only.
    pub fn agrees_with(&self, other: &Anchor) -> bool {
        self.hash == other.hash && self.timestamp == other.timestamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_stable_and_separate_key_from_value() {
        let anchor = |key: &str, value: &str| {
            Anchor::of(Offset(1), None, Some(key.as_bytes()), Some(value.as_bytes())).hash
        };
        // sha256 of 01 00*7 "a" 02 00*7 "bc", computed with another tool
        assert_eq!(anchor("a", "bc"), "9a8acca1b6c6c0befd3fbc756aed625d");
        assert_ne!(anchor("a", "bc"), anchor("ab", "c"));
        assert_eq!(
            Anchor::of(Offset(1), None, None, Some(b"x")).hash,
            anchor("", "x")
        );
    }

    #[test]
    fn every_thousand_offsets_and_the_first() {
        let due: Vec<i64> = [0, 1, 999, 1000, 1001, 3500, 3999]
            .iter()
            .scan(None, |previous, &offset| {
                let due = Anchor::is_due(*previous, Offset(offset));
                *previous = Some(Offset(offset));
                Some((offset, due))
            })
            .filter_map(|(offset, due)| due.then_some(offset))
            .collect();
        assert_eq!(due, [0, 1000, 3500]);
    }
}
