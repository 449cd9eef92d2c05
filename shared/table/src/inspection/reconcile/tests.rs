use frazil_core::TimestampMs;

use super::*;

fn range(first: i64, last: i64) -> OffsetRange {
    OffsetRange::new(Offset(first), Offset(last)).unwrap()
}

fn counted(rows: &[i64], dead_letters: &[i64]) -> Counted {
    let mut counted = Counted {
        rows: rows.len() as u64,
        dead_letters: dead_letters.len() as u64,
        ..Counted::default()
    };
    counted.all.add(&mut rows.to_vec()).unwrap();
    counted.all.add(&mut dead_letters.to_vec()).unwrap();
    counted
}

fn ledger(takes: &[(i64, i64)], uncertain: &[(i64, i64)]) -> PartitionLedger {
    let mut ledger = PartitionLedger::default();
    for (first, last) in takes {
        ledger.take(range(*first, *last), TimestampMs(0));
    }
    for (first, last) in uncertain {
        ledger
            .holes
            .retain(|hole| !hole.range.overlaps(range(*first, *last)));
        ledger.uncertain.insert(range(*first, *last));
    }
    ledger
}

/// Ranges as pairs of first and last.
type Ranges<'a> = &'a [(i64, i64)];

/// (gaps, doubles, unknown) of rows and dead letters against a ledger.
#[track_caller]
fn check(
    rows: &[i64],
    dead_letters: &[i64],
    known: Known<'_>,
    expected: (Ranges<'_>, Ranges<'_>, Ranges<'_>),
) {
    let found = compare_partition(Epoch(0), Partition(0), counted(rows, dead_letters), known);
    let ranges = |ranges: &[(i64, i64)]| {
        ranges
            .iter()
            .map(|(first, last)| range(*first, *last))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (&found.gap_ranges, &found.double_ranges, &found.unknown_ranges),
        (&ranges(expected.0), &ranges(expected.1), &ranges(expected.2)),
    );
    let span = |ranges: &[OffsetRange]| ranges.iter().map(|range| range.span()).sum::<u64>();
    assert_eq!(
        (found.gaps, found.doubles, found.unknown),
        (
            span(&found.gap_ranges),
            span(&found.double_ranges),
            span(&found.unknown_ranges)
        ),
    );
}

#[test]
fn rows_and_dead_letters_are_compared_with_the_ledger() {
    let whole = ledger(&[(0, 4)], &[]);
    check(
        &[0, 1, 2, 3, 4],
        &[],
        Known::Present(Some(&whole)),
        (&[], &[], &[]),
    );
    check(&[0, 1, 3, 4], &[2], Known::Present(Some(&whole)), (&[], &[], &[]));
    check(
        &[0, 4],
        &[2],
        Known::Present(Some(&whole)),
        (&[(1, 1), (3, 3)], &[], &[]),
    );
    check(
        &[0, 1, 2, 3, 4],
        &[2],
        Known::Present(Some(&whole)),
        (&[], &[(2, 2)], &[]),
    );
    check(
        &[0, 1, 2, 3, 4, 5, 6],
        &[],
        Known::Present(Some(&whole)),
        (&[], &[], &[(5, 6)]),
    );
    check(&[], &[], Known::Present(Some(&whole)), (&[(0, 4)], &[], &[]));
}

#[test]
fn a_hole_holds_no_rows_and_an_uncertain_interval_may() {
    let holed = ledger(&[(0, 1), (5, 6)], &[]);
    check(&[0, 1, 5, 6], &[], Known::Present(Some(&holed)), (&[], &[], &[]));
    check(
        &[0, 1, 3, 5, 6],
        &[],
        Known::Present(Some(&holed)),
        (&[], &[], &[(3, 3)]),
    );
    let uncertain = ledger(&[(0, 1), (5, 6)], &[(2, 4)]);
    check(
        &[0, 1, 3, 5, 6],
        &[],
        Known::Present(Some(&uncertain)),
        (&[], &[], &[]),
    );
    check(
        &[0, 1, 3, 3, 5, 6],
        &[],
        Known::Present(Some(&uncertain)),
        (&[], &[(3, 3)], &[]),
    );
}

#[test]
fn a_past_life_can_only_have_doubles_and_an_unknown_one_nothing() {
    check(&[0, 1, 1], &[], Known::Past, (&[], &[(1, 1)], &[]));
    check(&[0, 1], &[], Known::Present(None), (&[], &[], &[(0, 1)]));
}

#[test]
fn every_partition_of_the_ledger_is_listed_and_every_life_in_the_rows() {
    let present = BTreeMap::from([
        (Partition(0), ledger(&[(0, 1)], &[])),
        (Partition(1), ledger(&[(0, 2)], &[])),
    ]);
    let mut count = Count::default();
    for (epoch, partition, rows) in [(1, 0, vec![0, 1]), (0, 0, vec![7]), (2, 0, vec![0])] {
        count
            .partitions
            .insert((Epoch(epoch), Partition(partition)), counted(&rows, &[]));
    }
    let listed: Vec<_> = count
        .compare(Some((Epoch(1), &present)))
        .into_iter()
        .map(|p| (p.epoch.0, p.partition.0, p.rows, p.taken, p.gaps, p.unknown))
        .collect();
    assert_eq!(
        listed,
        [
            (0, 0, 1, None, 0, 0),
            (1, 0, 2, Some(2), 0, 0),
            (1, 1, 0, Some(3), 3, 0),
            (2, 0, 1, None, 0, 1)
        ]
    );
}

#[test]
fn what_is_shown_is_bounded_and_what_is_counted_is_not() {
    let whole = ledger(&[(0, 99)], &[]);
    let rows: Vec<i64> = (0..100).step_by(2).collect();
    let found = compare_partition(
        Epoch(0),
        Partition(0),
        counted(&rows, &[]),
        Known::Present(Some(&whole)),
    );
    assert_eq!((found.gaps, found.gap_ranges.len()), (50, MAX_RANGES_SHOWN));
}
