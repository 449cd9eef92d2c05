//! Tables that share the records of one topic, each those of its own type.

use std::collections::BTreeMap;

use frazil_core::{Epoch, Error, ErrorKind, IntervalSet, Offset, OffsetRange, Partition, Result};
use serde::Deserialize;

use super::{Count, Counted, PartitionReconciliation, RECONCILE, first_ranges};
use crate::inspection::tally::{OffsetTally, Tallied, difference};
use crate::ledger::PartitionLedger;
use crate::properties;
use crate::warehouse::LoadedTable;

/// The last offset of what is yet to come.
const LAST: Offset = Offset(i64::MAX - 1);

/// Whether a table was made for one of several types of its topic, or for what has no type beside them.
pub(super) fn is_of_one_type(table: &LoadedTable) -> Result<bool> {
    /// The setting that says so; what freezes it is the configuration's.
    #[derive(Deserialize)]
    struct Frozen {
        #[serde(default)]
        tables: Option<String>,
    }
    let Some(settings) = table.metadata.properties().get(properties::SETTINGS) else {
        return Ok(false);
    };
    let frozen: Frozen = serde_json::from_str(settings).map_err(|error| {
        Error::new(ErrorKind::Internal, RECONCILE, format!("its settings: {error}"))
            .with_context("table", &table.name)
            .with_source(error)
    })?;
    Ok(frozen.tables.as_deref() == Some("by_record_name"))
}

/// The tables of one topic as one. Every table claims all offsets and has the rows of some, so that what one lacks is a
/// gap only if the others lack it too.
#[derive(Default)]
pub(super) struct Together {
    partitions: BTreeMap<(Epoch, Partition), Shared>,
}

#[derive(Default)]
struct Shared {
    seen: OffsetTally,
    rows: u64,
    dead_letters: u64,
    next: Option<Offset>,
    taken: Vec<OffsetRange>,
    /// What a table is yet to take, which others have: their rows say nothing of it.
    waiting: Vec<OffsetRange>,
}

impl Together {
    /// Adds a table, and answers what can be said of it alone: doubles and unknown offsets, but no gaps.
    pub(super) fn add(
        &mut self,
        count: Count,
        ledger: Option<(Epoch, &BTreeMap<Partition, PartitionLedger>)>,
    ) -> Vec<PartitionReconciliation> {
        for ((epoch, partition), counted) in &count.partitions {
            let Counted {
                all,
                rows,
                dead_letters,
            } = counted;
            let shared = self.partitions.entry((*epoch, *partition)).or_default();
            shared.seen.add_set(&all.clone().finish().seen);
            shared.rows += rows;
            shared.dead_letters += dead_letters;
        }
        if let Some((epoch, partitions)) = ledger {
            for (partition, ledger) in partitions {
                let shared = self.partitions.entry((epoch, *partition)).or_default();
                shared.next = shared.next.max(Some(ledger.next));
                shared.take(&ledger.taken());
            }
        }
        let mut alone = count.compare(ledger);
        for partition in &mut alone {
            (partition.gaps, partition.gap_ranges) = (0, Vec::new());
        }
        alone
    }

    pub(super) fn finish(self) -> Vec<PartitionReconciliation> {
        let partitions = self.partitions.into_iter();
        partitions
            .map(|((epoch, partition), shared)| shared.finish(epoch, partition))
            .collect()
    }
}

impl Shared {
    fn take(&mut self, taken: &IntervalSet) {
        self.taken.extend(taken.ranges());
        let mut from = None;
        for range in taken.ranges() {
            if let Some(from) = from {
                self.waiting
                    .extend(OffsetRange::new(from, Offset(range.first().0 - 1)).ok());
            }
            from = Some(range.next());
        }
        if let Some(from) = from {
            self.waiting.extend(OffsetRange::new(from, LAST).ok());
        }
    }

    fn finish(self, epoch: Epoch, partition: Partition) -> PartitionReconciliation {
        let taken: IntervalSet = self.taken.into_iter().collect();
        let waiting: IntervalSet = self.waiting.into_iter().collect();
        let Tallied { seen, doubles, .. } = self.seen.finish();
        let gaps = difference(&difference(&taken, &waiting), &seen);
        PartitionReconciliation {
            epoch,
            partition,
            rows: self.rows,
            dead_letters: self.dead_letters,
            next: self.next,
            taken: self.next.map(|_| taken.span()),
            gaps: gaps.span(),
            gap_ranges: first_ranges(&gaps),
            doubles: doubles.span(),
            double_ranges: first_ranges(&doubles),
            // Each table's ledger says it of its own rows.
            unknown: 0,
            unknown_ranges: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use frazil_core::TimestampMs;

    use super::*;

    /// The offsets of rows, and the ranges that the ledger says were taken.
    type Table<'a> = (&'a [i64], &'a [(i64, i64)]);

    /// (gaps, doubles) of tables that share partition 0.
    #[track_caller]
    fn check(tables: &[Table<'_>], gaps: &[(i64, i64)], doubles: &[(i64, i64)]) {
        let mut together = Together::default();
        for (rows, takes) in tables {
            let mut count = Count::default();
            let counted = count.partitions.entry((Epoch(0), Partition(0))).or_default();
            counted.rows = rows.len() as u64;
            counted.all.add(&mut rows.to_vec()).unwrap();
            let mut ledger = PartitionLedger::default();
            for (first, last) in *takes {
                let range = OffsetRange::new(Offset(*first), Offset(*last)).unwrap();
                ledger.take(range, TimestampMs(0));
            }
            let partitions = BTreeMap::from([(Partition(0), ledger)]);
            let alone = together.add(count, Some((Epoch(0), &partitions)));
            assert_eq!(alone.iter().map(|of| of.gaps).sum::<u64>(), 0);
        }
        let found = together.finish();
        let pairs = |ranges: &[OffsetRange]| -> Vec<(i64, i64)> {
            ranges
                .iter()
                .map(|range| (range.first().0, range.last().0))
                .collect()
        };
        assert_eq!(found.len(), 1);
        assert_eq!(pairs(&found[0].gap_ranges), gaps);
        assert_eq!(pairs(&found[0].double_ranges), doubles);
    }

    #[test]
    fn what_one_table_lacks_another_may_have() {
        let all: &[(i64, i64)] = &[(0, 5)];
        check(&[(&[0, 2, 4], all), (&[1, 3, 5], all)], &[], &[]);
        check(&[(&[0, 2], all), (&[1, 5], all)], &[(3, 4)], &[]);
        check(&[(&[0, 1, 2, 3], all), (&[3, 4, 5], all)], &[], &[(3, 3)]);
        // A type that came later has a table from then on.
        check(&[(&[0, 1, 2, 4], all), (&[3, 5], &[(3, 5)])], &[], &[]);
        // A table that has not been committed yet, and one with a hole.
        check(&[(&[0, 4], all), (&[1, 2, 3], &[(0, 3)])], &[], &[]);
        check(&[(&[0, 1], all), (&[4, 5], &[(0, 1), (4, 5)])], &[], &[]);
        check(&[(&[], &[])], &[], &[]);
    }
}
