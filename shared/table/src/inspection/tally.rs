use frazil_core::{IntervalSet, Offset, OffsetRange, Result};

/// Runs that are kept apart before they are merged again.
const RUNS_BEFORE_MERGE: usize = 65_536;

/// Counts the offsets of one partition that are seen, and finds those seen twice.
///
/// Memory is that of the runs of consecutive offsets, not of the offsets; a run per record at worst.
#[derive(Debug, Clone, Default)]
pub(super) struct OffsetTally {
    rows: u64,
    runs: Vec<OffsetRange>,
    doubles: Vec<OffsetRange>,
    merged: usize,
}

/// What a tally comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tallied {
    /// Every offset, as often as it was seen.
    pub(super) rows: u64,
    /// The offsets seen.
    pub(super) seen: IntervalSet,
    /// Those seen more than once.
    pub(super) doubles: IntervalSet,
}

impl OffsetTally {
    /// Counts these offsets, in any order.
    pub(super) fn add(&mut self, offsets: &mut Vec<i64>) -> Result<()> {
        offsets.sort_unstable();
        self.rows += offsets.len() as u64;
        let mut offsets = offsets.drain(..);
        let Some(mut first) = offsets.next() else {
            return Ok(());
        };
        let mut last = first;
        for offset in offsets {
            if offset == last.saturating_add(1) {
                last = offset;
            } else {
                self.runs.push(OffsetRange::new(Offset(first), Offset(last))?);
                (first, last) = (offset, offset);
            }
        }
        self.runs.push(OffsetRange::new(Offset(first), Offset(last))?);
        if self.runs.len() > 2 * self.merged + RUNS_BEFORE_MERGE {
            self.merge();
        }
        Ok(())
    }

    /// Counts every offset of a set once.
    pub(super) fn add_set(&mut self, offsets: &IntervalSet) {
        self.rows += offsets.span();
        self.runs.extend(offsets.ranges());
    }

    pub(super) fn finish(mut self) -> Tallied {
        self.merge();
        Tallied {
            rows: self.rows,
            seen: self.runs.into_iter().collect(),
            doubles: self.doubles.into_iter().collect(),
        }
    }

    fn merge(&mut self) {
        self.runs.sort_unstable_by_key(|run| run.first());
        let mut merged: Vec<OffsetRange> = Vec::with_capacity(self.runs.len());
        for run in self.runs.drain(..) {
            match merged.last_mut() {
                Some(known) if run.first() <= known.next() => {
                    self.doubles.extend(known.intersect(run));
                    let last = known.last().max(run.last());
                    *known = OffsetRange::new(known.first(), last).unwrap_or(*known);
                }
                Some(_) | None => merged.push(run),
            }
        }
        self.merged = merged.len();
        self.runs = merged;
        self.doubles.sort_unstable_by_key(|run| run.first());
        self.doubles.dedup();
    }
}

/// The offsets of `whole` that are not in `part`. Linear in both.
pub(super) fn difference(whole: &IntervalSet, part: &IntervalSet) -> IntervalSet {
    let mut left = Vec::new();
    for range in whole.ranges() {
        let mut from = range.first();
        for known in part.intersect(*range) {
            left.extend(OffsetRange::new(from, Offset(known.first().0 - 1)).ok());
            from = known.next();
        }
        left.extend(OffsetRange::new(from, range.last()).ok());
    }
    left.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn set(ranges: &[(i64, i64)]) -> IntervalSet {
        ranges
            .iter()
            .map(|&range| OffsetRange::try_from(range).unwrap())
            .collect()
    }

    fn check(files: &[&[i64]], seen: &[(i64, i64)], doubles: &[(i64, i64)]) {
        let mut tally = OffsetTally::default();
        for file in files {
            tally.add(&mut file.to_vec()).unwrap();
        }
        let rows = files.iter().map(|file| file.len() as u64).sum();
        let expected = Tallied {
            rows,
            seen: set(seen),
            doubles: set(doubles),
        };
        assert_eq!(tally.finish(), expected, "{files:?}");
    }

    #[test]
    fn finds_what_is_seen_twice() {
        check(&[], &[], &[]);
        check(&[&[]], &[], &[]);
        check(&[&[0, 1, 2], &[3, 4]], &[(0, 4)], &[]);
        check(&[&[5, 3, 4]], &[(3, 5)], &[]);
        check(&[&[1, 1]], &[(1, 1)], &[(1, 1)]);
        check(&[&[0, 1, 2, 7], &[2, 3, 7]], &[(0, 3), (7, 7)], &[(2, 2), (7, 7)]);
        check(
            &[&[0, 1, 2, 3, 4], &[1], &[3], &[3]],
            &[(0, 4)],
            &[(1, 1), (3, 3)],
        );
    }

    #[test]
    fn an_offset_that_kafka_cannot_have_is_an_error() {
        let error = OffsetTally::default().add(&mut vec![-3]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot use an offset range: [-3, -3] is not a range of Kafka offsets"
        );
    }

    #[test]
    fn differences_are_what_is_left() {
        for (whole, part, left) in [
            (&[(0, 9)][..], &[][..], &[(0, 9)][..]),
            (&[(0, 9)], &[(0, 9)], &[]),
            (&[(0, 9)], &[(3, 4), (9, 20)], &[(0, 2), (5, 8)]),
            (&[(0, 1), (5, 6)], &[(0, 5)], &[(6, 6)]),
            (&[(5, 6)], &[(0, 3), (8, 9)], &[(5, 6)]),
        ] {
            assert_eq!(
                difference(&set(whole), &set(part)),
                set(left),
                "{whole:?} without {part:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn agrees_with_counting_one_by_one(
            files in prop::collection::vec(prop::collection::vec(0i64..40, 0..20), 0..8),
            often in prop::bool::ANY,
        ) {
            let mut tally = OffsetTally::default();
            let mut counts = BTreeMap::<i64, u64>::new();
            for file in &files {
                file.iter().for_each(|offset| *counts.entry(*offset).or_default() += 1);
                tally.add(&mut file.clone()).unwrap();
                if often {
                    tally.merge();
                }
            }
            let single = |offset: &i64| OffsetRange::single(Offset(*offset)).unwrap();
            let tallied = tally.finish();
            prop_assert_eq!(tallied.rows, counts.values().sum::<u64>());
            prop_assert_eq!(tallied.seen, counts.keys().map(single).collect::<IntervalSet>());
            let doubles = counts.iter().filter(|(_, count)| **count > 1).map(|(offset, _)| single(offset));
            prop_assert_eq!(tallied.doubles, doubles.collect::<IntervalSet>());
        }
    }
}
