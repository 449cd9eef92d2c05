use frazil_core::IntervalSet;
use proptest::prelude::*;

use super::*;

fn range(first: i64, last: i64) -> OffsetRange {
    OffsetRange::new(Offset(first), Offset(last)).unwrap()
}

#[test]
fn parts_say_what_is_known() {
    let ledger = PartitionLedger {
        next: Offset(100),
        holes: vec![Hole {
            range: range(10, 19),
            opened_at: TimestampMs(5),
        }],
        uncertain: IntervalSet::from(vec![range(40, 49)]),
        anchors: Vec::new(),
    };
    assert_eq!(
        ledger.parts(range(5, 104)),
        [
            Part::Covered(range(5, 9)),
            Part::Hole(range(10, 19), TimestampMs(5)),
            Part::Covered(range(20, 39)),
            Part::Uncertain(range(40, 49)),
            Part::Covered(range(50, 99)),
            Part::New(range(100, 104)),
        ]
    );
}

#[test]
fn beyond_sixteen_holes_the_closest_two_become_uncertain() {
    let mut ledger = PartitionLedger::default();
    // Holes [10·k, 10·k+4], but the ninth starts right behind the eighth's record.
    for k in 0..=16 {
        let first = if k == 9 { 90 - 4 } else { 10 * k };
        ledger.take(range(first + 5, 10 * k + 9), TimestampMs(k));
    }
    assert_eq!(ledger.holes.len(), 15);
    assert_eq!(ledger.uncertain.ranges().len(), 1);
    assert_eq!(ledger.next, Offset(170));
}

#[test]
fn a_newer_format_or_another_checksum_is_refused() {
    let ledger = Ledger::new(Uuid::from_u128(1), FieldMap::default(), TimestampMs(0));
    let (bytes, checksum) = ledger.to_json().unwrap();
    assert_eq!(Ledger::from_json(&bytes, &checksum).unwrap(), ledger);
    let error = Ledger::from_json(&bytes, "0").unwrap_err();
    assert!(error.to_string().contains("and the table says 0"), "{error}");
    let newer = String::from_utf8(bytes)
        .unwrap()
        .replace("\"format\":1", "\"format\":2");
    let error = Ledger::from_json(newer.as_bytes(), &sha256_hex(newer.as_bytes())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read the ledger: it has format 2, and this version reads up to 1; \
         a newer version wrote it: upgrade this one"
    );
}

#[test]
fn the_newest_anchors_stay() {
    let anchor = |offset| Anchor {
        offset: Offset(offset),
        timestamp: None,
        hash: String::new(),
    };
    let mut ledger = PartitionLedger::default();
    ledger.remember(&(0..20).map(anchor).collect::<Vec<_>>());
    ledger.remember(&[anchor(3), anchor(19)]);
    let offsets: Vec<i64> = ledger.anchors.iter().map(|anchor| anchor.offset.0).collect();
    assert_eq!(offsets, (4..20).collect::<Vec<_>>());
}

proptest! {
    /// Whatever is taken in whatever order, the ledger never says that something was taken which was not, unless it
    /// says that it does not know; and it stays bounded.
    #[test]
    fn what_was_taken_is_taken_or_uncertain(ranges in prop::collection::vec((0i64..2_000, 0i64..8), 1..200)) {
        let mut ledger = PartitionLedger::default();
        let mut truth = IntervalSet::default();
        for (first, span) in ranges {
            let range = range(first, first + span);
            ledger.take(range, TimestampMs(0));
            truth.insert(range);
        }
        prop_assert!(ledger.holes.len() <= MAX_HOLES);
        prop_assert!(ledger.uncertain.ranges().len() <= MAX_UNCERTAIN);
        let known = ledger.taken();
        for offset in 0..ledger.next.0 {
            let offset = Offset(offset);
            let is_hole = ledger.holes.iter().any(|hole| hole.range.contains(offset));
            let is_uncertain = ledger.uncertain.contains(offset);
            prop_assert!(!(is_hole && is_uncertain), "{offset} is a hole and uncertain");
            if !is_uncertain {
                prop_assert_eq!(known.contains(offset), truth.contains(offset), "{}", offset);
                prop_assert_eq!(is_hole, !truth.contains(offset), "{}", offset);
            }
        }
    }
}
