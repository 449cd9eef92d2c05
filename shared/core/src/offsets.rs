use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result, TopicName};

/// A position in a Kafka partition, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Offset(pub i64);

impl Offset {
    /// The largest offset that Frazil accepts. One below the type's end, so that `next` of a range always exists.
    pub const MAX: Offset = Offset(i64::MAX - 1);

    /// The offset after this one.
    pub fn next(self) -> Offset {
        Offset(self.0.saturating_add(1))
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A Kafka partition number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Partition(pub i32);

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Counts the lives of a topic: one more whenever a person says “this is a new log”.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub i32);

impl Epoch {
    /// The next life.
    pub fn next(self) -> Epoch {
        Epoch(self.0 + 1)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The id that a schema registry gave a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SchemaId(pub u32);

impl fmt::Display for SchemaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A Kafka topic and partition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TopicPartition {
    /// The topic, exactly as Kafka spells it.
    pub topic: TopicName,
    /// The partition.
    pub partition: Partition,
}

impl fmt::Display for TopicPartition {
    /// `orders-3`, as Lambda writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// The offsets `[first, last]` of one partition, both included, never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "(i64, i64)", into = "(i64, i64)")]
pub struct OffsetRange {
    first: Offset,
    last: Offset,
}

impl OffsetRange {
    /// Refuses negative offsets, offsets above [`Offset::MAX`] and `last < first`.
    pub fn new(first: Offset, last: Offset) -> Result<Self> {
        if first.0 < 0 || last < first || last > Offset::MAX {
            return Err(Error::new(
                ErrorKind::Invalid,
                "use an offset range",
                format!("[{first}, {last}] is not a range of Kafka offsets"),
            ));
        }
        Ok(Self { first, last })
    }

    /// The range of one offset.
    pub fn single(offset: Offset) -> Result<Self> {
        Self::new(offset, offset)
    }

    /// The first offset.
    pub fn first(self) -> Offset {
        self.first
    }

    /// The last offset, included.
    pub fn last(self) -> Offset {
        self.last
    }

    /// The offset after the last.
    pub fn next(self) -> Offset {
        self.last.next()
    }

    /// How many offsets the range spans, at least 1.
    pub fn span(self) -> u64 {
        self.last.0.abs_diff(self.first.0) + 1
    }

    /// Whether the offset lies in the range.
    pub fn contains(self, offset: Offset) -> bool {
        self.first <= offset && offset <= self.last
    }

    /// Whether the two share an offset.
    pub fn overlaps(self, other: OffsetRange) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// The offsets in both.
    pub fn intersect(self, other: OffsetRange) -> Option<OffsetRange> {
        let (first, last) = (self.first.max(other.first), self.last.min(other.last));
        (first <= last).then_some(OffsetRange { first, last })
    }
}

impl fmt::Display for OffsetRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {}]", self.first, self.last)
    }
}

impl TryFrom<(i64, i64)> for OffsetRange {
    type Error = Error;

    fn try_from((first, last): (i64, i64)) -> Result<Self> {
        Self::new(Offset(first), Offset(last))
    }
}

impl From<OffsetRange> for (i64, i64) {
    fn from(range: OffsetRange) -> Self {
        (range.first.0, range.last.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_is_no_range() {
        for (first, last) in [(-1, 3), (4, 3), (0, i64::MAX)] {
            assert!(
                OffsetRange::new(Offset(first), Offset(last)).is_err(),
                "{first}..{last}"
            );
        }
        assert!(serde_json::from_str::<OffsetRange>("[5,4]").is_err());
    }

    #[test]
    fn spans_and_intersects() {
        let range = |first, last| OffsetRange::new(Offset(first), Offset(last)).expect("a range");
        assert_eq!(range(3, 3).span(), 1);
        assert_eq!(range(0, i64::MAX - 1).span(), i64::MAX as u64);
        assert_eq!(range(3, 9).intersect(range(9, 12)), Some(range(9, 9)));
        assert_eq!(range(3, 9).intersect(range(10, 12)), None);
        assert_eq!(serde_json::to_string(&range(3, 9)).expect("json"), "[3,9]");
    }
}
