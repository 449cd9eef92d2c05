use frazil_core::{IntervalSet, Offset, OffsetRange, TimestampMs};
use serde::{Deserialize, Serialize};

use crate::anchor::Anchor;
use crate::sabotage::{self, Break};

/// How many holes a partition remembers exactly. Beyond that the closest two become one uncertain interval, so that
/// the ledger stays at about 1 kB per partition; forgetting costs a scan, never a record.
pub const MAX_HOLES: usize = 16;

/// How many uncertain intervals a partition keeps apart. Beyond that the closest two become one.
pub const MAX_UNCERTAIN: usize = 8;

/// What a table has taken of one partition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartitionLedger {
    /// The offset after the highest that was taken.
    pub next: Offset,
    /// Offsets below `next` that were not taken, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<Hole>,
    /// Offsets below `next` of which the ledger forgot what was taken.
    #[serde(default, skip_serializing_if = "IntervalSet::is_empty")]
    pub uncertain: IntervalSet,
    /// The newest anchors, ascending by offset.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<Anchor>,
}

/// Offsets that were passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hole {
    /// The offsets.
    pub range: OffsetRange,
    /// When they were passed over.
    pub opened_at: TimestampMs,
}

/// What the ledger says of a part of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// At or above `next`.
    New(OffsetRange),
    /// In a hole that was opened then.
    Hole(OffsetRange, TimestampMs),
    /// The ledger does not remember.
    Uncertain(OffsetRange),
    /// Taken before.
    Covered(OffsetRange),
}

impl PartitionLedger {
    /// Cuts a range into parts, ascending, by what is known of them.
    pub fn parts(&self, range: OffsetRange) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut covered = IntervalSet::from(vec![range]);
        if let Ok(new) = OffsetRange::new(range.first().max(self.next), range.last()) {
            covered.remove(new);
            parts.push(Part::New(new));
        }
        for hole in &self.holes {
            if let Some(inside) = hole.range.intersect(range) {
                covered.remove(inside);
                parts.push(Part::Hole(inside, hole.opened_at));
            }
        }
        for inside in self.uncertain.intersect(range) {
            covered.remove(inside);
            parts.push(Part::Uncertain(inside));
        }
        parts.extend(covered.ranges().iter().map(|&range| Part::Covered(range)));
        parts.sort_by_key(|part| part.range().first());
        parts
    }

    /// Takes a range: `next` moves up to its end, holes and uncertain intervals in it are settled.
    /// What lies between `next` and the range becomes a hole.
    pub fn take(&mut self, range: OffsetRange, now: TimestampMs) {
        if let Ok(gap) = OffsetRange::new(self.next, Offset(range.first().0 - 1)) {
            self.holes.push(Hole {
                range: gap,
                opened_at: now,
            });
        }
        self.next = self.next.max(range.next());
        self.settle(range);
        self.bound();
    }

    /// Marks offsets below `next` as taken.
    fn settle(&mut self, range: OffsetRange) {
        let mut left = Vec::with_capacity(self.holes.len() + 1);
        for hole in &self.holes {
            let mut rest = IntervalSet::from(vec![hole.range]);
            rest.remove(range);
            left.extend(rest.ranges().iter().map(|&range| Hole {
                range,
                opened_at: hole.opened_at,
            }));
        }
        self.holes = left;
        self.uncertain.remove(range);
    }

    /// Declares everything uncertain to be taken: rows are being removed there, and what was erased must not come
    /// back.
    pub fn settle_uncertain(&mut self) {
        self.uncertain = IntervalSet::default();
    }

    /// Declares offsets uncertain that were taken: a backfill looks which of them are missing.
    pub(crate) fn doubt(&mut self, range: OffsetRange) {
        self.uncertain.insert(range);
        self.bound();
    }

    fn bound(&mut self) {
        while self.holes.len() > MAX_HOLES {
            let spans = |pair: &[Hole]| OffsetRange::new(pair[0].range.first(), pair[1].range.last());
            let Some((at, Ok(joined))) = self
                .holes
                .windows(2)
                .map(spans)
                .enumerate()
                .min_by_key(|(_, joined)| joined.as_ref().map_or(u64::MAX, |joined| joined.span()))
            else {
                return;
            };
            self.holes.drain(at..at + 2);
            if !sabotage::is(Break::ForgottenIsTaken) {
                self.uncertain.insert(joined);
            }
        }
        while self.uncertain.ranges().len() > MAX_UNCERTAIN {
            let spans = |pair: &[OffsetRange]| OffsetRange::new(pair[0].first(), pair[1].last());
            let closest = self
                .uncertain
                .ranges()
                .windows(2)
                .filter_map(|pair| spans(pair).ok())
                .min_by_key(|joined| joined.span());
            let Some(joined) = closest else { return };
            self.uncertain.insert(joined);
            self.holes.retain(|hole| !joined.overlaps(hole.range));
        }
    }
}

impl Part {
    /// The part's offsets.
    pub fn range(self) -> OffsetRange {
        match self {
            Self::New(range) | Self::Hole(range, _) | Self::Uncertain(range) | Self::Covered(range) => range,
        }
    }
}
