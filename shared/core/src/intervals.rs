use serde::{Deserialize, Serialize};

use crate::{Offset, OffsetRange};

/// A set of offsets, kept as sorted ranges that neither overlap nor touch.
///
/// Insert, remove and lookup cost O(log n) to find the place and O(n) to move what follows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(from = "Vec<OffsetRange>", into = "Vec<OffsetRange>")]
pub struct IntervalSet {
    ranges: Vec<OffsetRange>,
}

impl IntervalSet {
    /// The ranges, ascending.
    pub fn ranges(&self) -> &[OffsetRange] {
        &self.ranges
    }

    /// Whether no offset is in the set.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many offsets are in the set.
    pub fn span(&self) -> u64 {
        self.ranges.iter().map(|range| range.span()).sum()
    }

    /// Whether the offset is in the set.
    pub fn contains(&self, offset: Offset) -> bool {
        let at = self.ranges.partition_point(|range| range.last() < offset);
        self.ranges.get(at).is_some_and(|range| range.contains(offset))
    }

    /// Whether every offset of the range is in the set.
    pub fn covers(&self, range: OffsetRange) -> bool {
        let at = self.ranges.partition_point(|known| known.last() < range.first());
        self.ranges
            .get(at)
            .is_some_and(|known| known.first() <= range.first() && range.last() <= known.last())
    }

    /// Adds the range; ranges that touch become one.
    pub fn insert(&mut self, range: OffsetRange) {
        let from = self.ranges.partition_point(|known| known.next() < range.first());
        let to = self.ranges.partition_point(|known| known.first() <= range.next());
        let mut merged = range;
        if let Some(touched) = self.ranges.get(from..to).filter(|touched| !touched.is_empty()) {
            let first = merged.first().min(touched[0].first());
            let last = merged.last().max(touched[touched.len() - 1].last());
            merged = OffsetRange::new(first, last).unwrap_or(merged);
        }
        self.ranges.splice(from..to, [merged]);
    }

    /// Removes the range's offsets.
    pub fn remove(&mut self, range: OffsetRange) {
        let from = self.ranges.partition_point(|known| known.last() < range.first());
        let to = self.ranges.partition_point(|known| known.first() <= range.last());
        if from >= to {
            return;
        }
        let left = OffsetRange::new(self.ranges[from].first(), Offset(range.first().0 - 1)).ok();
        let right = OffsetRange::new(range.next(), self.ranges[to - 1].last()).ok();
        self.ranges.splice(from..to, left.into_iter().chain(right));
    }

    /// The offsets of the range that are in the set, ascending.
    pub fn intersect(&self, range: OffsetRange) -> Vec<OffsetRange> {
        let from = self.ranges.partition_point(|known| known.last() < range.first());
        self.ranges[from..]
            .iter()
            .map_while(|known| known.intersect(range))
            .collect()
    }

    /// The offsets of the range that are not in the set, ascending.
    pub fn missing(&self, range: OffsetRange) -> Vec<OffsetRange> {
        let mut gaps = IntervalSet::from(vec![range]);
        for known in self.intersect(range) {
            gaps.remove(known);
        }
        gaps.ranges
    }
}

impl From<Vec<OffsetRange>> for IntervalSet {
    fn from(ranges: Vec<OffsetRange>) -> Self {
        let mut set = IntervalSet::default();
        for range in ranges {
            set.insert(range);
        }
        set
    }
}

impl FromIterator<OffsetRange> for IntervalSet {
    fn from_iter<I: IntoIterator<Item = OffsetRange>>(ranges: I) -> Self {
        let mut set = IntervalSet::default();
        for range in ranges {
            set.insert(range);
        }
        set
    }
}

impl From<IntervalSet> for Vec<OffsetRange> {
    fn from(set: IntervalSet) -> Self {
        set.ranges
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn range(first: i64, last: i64) -> OffsetRange {
        OffsetRange::new(Offset(first), Offset(last)).expect("a range")
    }

    #[derive(Debug, Clone)]
    enum Step {
        Insert(i64, i64),
        Remove(i64, i64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = (any::<bool>(), 0..60i64, 0..12i64).prop_map(|(insert, first, span)| {
            if insert {
                Step::Insert(first, first + span)
            } else {
                Step::Remove(first, first + span)
            }
        });
        prop::collection::vec(step, 0..40)
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_set(steps in steps(), asked in (0..60i64, 0..20i64)) {
            let (mut set, mut plain) = (IntervalSet::default(), BTreeSet::new());
            for step in steps {
                match step {
                    Step::Insert(first, last) => {
                        set.insert(range(first, last));
                        plain.extend(first..=last);
                    }
                    Step::Remove(first, last) => {
                        set.remove(range(first, last));
                        plain.retain(|offset| !(first..=last).contains(offset));
                    }
                }
            }
            let flat = |ranges: &[OffsetRange]| -> Vec<i64> {
                ranges.iter().flat_map(|r| r.first().0..=r.last().0).collect()
            };
            prop_assert_eq!(flat(set.ranges()), plain.iter().copied().collect::<Vec<_>>());
            for pair in set.ranges().windows(2) {
                prop_assert!(pair[0].last().0 + 1 < pair[1].first().0, "touching ranges are one");
            }
            let window = range(asked.0, asked.0 + asked.1);
            let inside: Vec<i64> = (asked.0..=asked.0 + asked.1).filter(|o| plain.contains(o)).collect();
            let outside: Vec<i64> = (asked.0..=asked.0 + asked.1).filter(|o| !plain.contains(o)).collect();
            prop_assert_eq!(set.covers(window), outside.is_empty());
            prop_assert_eq!(flat(&set.intersect(window)), inside);
            prop_assert_eq!(flat(&set.missing(window)), outside);
        }
    }
}
