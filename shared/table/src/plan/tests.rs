use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use frazil_core::{Epoch, IntervalSet, Offset, OffsetRange, Partition, TableName, TimestampMs};
use frazil_schema::FieldMap;
use uuid::Uuid;

use super::*;
use crate::anchor::Anchor;
use crate::descriptor::Claim;
use crate::ledger::{Hole, LogLedger, PartitionLedger, Settled};

const NOW: TimestampMs = TimestampMs(100 * 3_600_000);
const TABLE: Uuid = Uuid::from_u128(0x7ab1e);

fn range(first: i64, last: i64) -> OffsetRange {
    OffsetRange::new(Offset(first), Offset(last)).unwrap()
}

fn log(epoch: i32) -> LogName {
    LogName {
        source: "main".into(),
        topic: "orders".into(),
        epoch: Epoch(epoch),
    }
}

/// Anchors of a record tell which log it came from: `log` stands for its content.
fn anchor(offset: i64, log: &str) -> Anchor {
    Anchor {
        offset: Offset(offset),
        timestamp: None,
        hash: format!("{log}{offset}"),
    }
}

/// A descriptor with the given number as its id and claims (partition, first, last), anchored at both ends.
struct D {
    listed: Listed,
}

fn d(id: u128, claims: &[(i32, i64, i64)]) -> D {
    of_log(id, claims, "old", 0)
}

fn of_log(id: u128, claims: &[(i32, i64, i64)], content: &str, epoch: i32) -> D {
    let claims = claims
        .iter()
        .map(|(partition, first, last)| Claim {
            partition: Partition(*partition),
            range: range(*first, *last),
            records: 1,
            dead_letters: 0,
            skipped: 0,
            anchors: vec![anchor(*first, content), anchor(*last, content)],
            oldest: None,
        })
        .collect();
    let descriptor = Descriptor {
        format: 1,
        id: Uuid::from_u128(id),
        table: TableName::new("kafka", "orders").unwrap(),
        table_uuid: TABLE,
        source: "main".into(),
        topic: "orders".into(),
        epoch: Epoch(epoch),
        staged_at: NOW,
        backfill: false,
        schema_id: 0,
        partition_spec_id: 0,
        fields: FieldMap::default(),
        claims,
        files: Vec::new(),
        dead_letters: None,
        judgement: None,
        parked_as: None,
    };
    D {
        listed: Listed {
            id: descriptor.id,
            log: log(epoch),
            listing: Listing::First,
            content: Content::Read(Arc::new(descriptor)),
        },
    }
}

impl D {
    fn with(mut self, change: impl Fn(&mut Descriptor)) -> Self {
        if let Content::Read(descriptor) = &mut self.listed.content {
            change(Arc::make_mut(descriptor));
        }
        self
    }

    fn backfill(self) -> Self {
        self.with(|descriptor| descriptor.backfill = true)
    }

    fn late(mut self) -> Self {
        self.listed.listing = Listing::Second;
        self
    }

    fn unreadable(mut self, claims: Option<Vec<(i32, i64, i64)>>) -> Self {
        let claims = claims.map(|claims| {
            claims
                .into_iter()
                .map(|(of, first, last)| (Partition(of), range(first, last)))
                .collect()
        });
        self.listed.content = Content::Unreadable {
            claims,
            reason: "damaged".to_owned(),
        };
        self
    }
}

/// What is planned from, with answers ready.
struct World {
    ledger: Ledger,
    descriptors: Vec<Listed>,
    parked: Vec<Parked>,
    evidence: Evidence,
    relisted: bool,
    policy: TopicPolicy,
    max_taken: usize,
}

fn world(partitions: Vec<(i32, PartitionLedger)>, descriptors: Vec<D>) -> World {
    let mut ledger = Ledger::new(TABLE, FieldMap::default(), TimestampMs(0));
    if !partitions.is_empty() {
        ledger.logs.push(LogLedger {
            source: "main".into(),
            topic: "orders".into(),
            epoch: Epoch(0),
            partitions: partitions
                .into_iter()
                .map(|(of, ledger)| (Partition(of), ledger))
                .collect(),
        });
    }
    World {
        ledger,
        descriptors: descriptors.into_iter().map(|d| d.listed).collect(),
        parked: Vec::new(),
        evidence: Evidence::default(),
        relisted: true,
        policy: TopicPolicy {
            epoch: Epoch(0),
            commits: true,
            replay: false,
        },
        max_taken: MAX_TAKEN,
    }
}

/// A partition of which `[0, next-1]` is taken.
fn taken(next: i64) -> PartitionLedger {
    PartitionLedger {
        next: Offset(next),
        anchors: vec![anchor(next - 1, "old")],
        ..PartitionLedger::default()
    }
}

fn with_hole(next: i64, first: i64, last: i64, age_minutes: i64) -> PartitionLedger {
    let opened_at = TimestampMs(NOW.0 - age_minutes * 60_000);
    PartitionLedger {
        holes: vec![Hole {
            range: range(first, last),
            opened_at,
        }],
        ..taken(next)
    }
}

impl World {
    fn finding(mut self, id: u128, partition: i32, finding: Finding) -> Self {
        let question = Inspect {
            descriptor: Uuid::from_u128(id),
            partition: Partition(partition),
            range: range(0, 0),
        };
        self.evidence.insert(question, finding);
        self
    }

    fn plan(&self) -> Planning {
        let known = HashSet::from([0]);
        plan(&PlanInput {
            ledger: &self.ledger,
            schema_ids: &known,
            spec_ids: &known,
            descriptors: &self.descriptors,
            parked: &self.parked,
            relisted: self.relisted,
            topics: &HashMap::from([(("main".to_owned(), "orders".to_owned()), self.policy)]),
            evidence: &self.evidence,
            now: NOW,
            max_taken: self.max_taken,
        })
    }

    /// Plans, and compares what comes out, a line per decision, with what is expected.
    #[track_caller]
    fn check(&self, expected: &[&str]) {
        assert_eq!(lines(&self.plan()), expected, "{:#?}", self.ledger.logs);
    }
}

fn set(ranges: &IntervalSet) -> String {
    ranges
        .ranges()
        .iter()
        .map(|range| format!("{}-{}", range.first(), range.last()))
        .collect::<Vec<_>>()
        .join(",")
}

fn lines(planning: &Planning) -> Vec<String> {
    let plan = match planning {
        Planning::Relist => return vec!["relist".to_owned()],
        Planning::Inspect(questions) => {
            let ask =
                |q: &Inspect| format!("inspect {} p{} {}", q.descriptor.as_u128(), q.partition, q.range);
            return questions.iter().map(ask).collect();
        }
        Planning::Ready(plan) => plan,
    };
    let mut lines = Vec::new();
    for take in &plan.take {
        let parts: Vec<String> = take
            .accepted
            .iter()
            .map(|(of, ranges)| format!("p{of}:{}", set(ranges)))
            .collect();
        let cut = if take.whole { "" } else { " cut" };
        lines.push(format!("take {}{cut} {}", take.id.as_u128(), parts.join(" ")));
    }
    lines.extend(
        plan.dropped
            .iter()
            .map(|(id, judgement)| format!("drop {} {judgement:?}", id.as_u128())),
    );
    lines.extend(plan.settled.iter().map(|id| format!("settled {}", id.as_u128())));
    lines.extend(
        plan.quarantine
            .iter()
            .map(|(id, _)| format!("quarantine {}", id.as_u128())),
    );
    for waiting in &plan.waiting {
        lines.push(format!(
            "wait {} p{} {:?}",
            waiting.id.as_u128(),
            waiting.partition,
            waiting.reason
        ));
    }
    lines.extend(
        plan.suspend
            .iter()
            .map(|of| format!("suspend {:?} by {}", of.cause, of.descriptor.as_u128())),
    );
    for (of, partition) in plan.ledger.logs.iter().flat_map(|log| &log.partitions) {
        let holes: Vec<String> = partition
            .holes
            .iter()
            .map(|hole| format!(" hole {}-{}", hole.range.first(), hole.range.last()))
            .collect();
        let uncertain = if partition.uncertain.is_empty() {
            String::new()
        } else {
            format!(" uncertain {}", set(&partition.uncertain))
        };
        lines.push(format!(
            "p{of} next {}{}{uncertain}",
            partition.next,
            holes.concat()
        ));
    }
    lines
}

fn same_up_to(offset: i64, staged: (i64, i64)) -> Finding {
    Finding {
        same_up_to: Some(Offset(offset)),
        staged: IntervalSet::from(vec![range(staged.0, staged.1)]),
        present: IntervalSet::from(vec![range(staged.0, offset)]),
        ..Finding::default()
    }
}

fn nothing_in_common(staged: (i64, i64)) -> Finding {
    Finding {
        staged: IntervalSet::from(vec![range(staged.0, staged.1)]),
        ..Finding::default()
    }
}

#[test]
fn what_follows_is_taken_whole_in_offset_order() {
    world(
        vec![(0, taken(100))],
        vec![d(2, &[(0, 150, 199)]), d(1, &[(0, 100, 149), (1, 0, 4)])],
    )
    .check(&[
        "take 1 p0:100-149 p1:0-4",
        "take 2 p0:150-199",
        "settled 1",
        "settled 2",
        "p0 next 200",
        "p1 next 5",
    ]);
}

#[test]
fn a_gap_is_a_hole_only_after_a_second_listing() {
    let mut world = world(vec![(0, taken(100))], vec![d(1, &[(0, 120, 129)])]);
    world.relisted = false;
    world.check(&["relist"]);
    world.relisted = true;
    world.check(&["take 1 p0:120-129", "settled 1", "p0 next 130 hole 100-119"]);
}

#[test]
fn only_a_range_of_the_first_listing_opens_a_hole() {
    world(vec![(0, taken(100))], vec![d(1, &[(0, 120, 129)]).late()])
        .check(&["wait 1 p0 LateListing", "p0 next 100"]);
}

#[test]
fn what_is_parked_or_pending_before_a_gap_keeps_it_open() {
    let mut parked = world(vec![(0, taken(100))], vec![d(1, &[(0, 120, 129)])]);
    parked.parked = vec![Parked {
        log: log(0),
        claims: Some(vec![(Partition(0), range(90, 100))]),
    }];
    parked.check(&["wait 1 p0 Predecessor", "p0 next 100"]);
    parked.parked[0].claims = None;
    parked.check(&["wait 1 p0 Predecessor", "p0 next 100"]);
    parked.parked[0].claims = Some(vec![(Partition(1), range(100, 119))]);
    parked.check(&["take 1 p0:120-129", "settled 1", "p0 next 130 hole 100-119"]);
}

#[test]
fn an_unreadable_descriptor_stops_what_comes_after_it_in_its_partitions_only() {
    let damaged = || d(9, &[]).unreadable(Some(vec![(0, 110, 119)]));
    let others = || {
        vec![
            d(1, &[(0, 100, 109), (1, 0, 9)]),
            d(2, &[(0, 120, 129), (1, 10, 19)]),
        ]
    };
    let mut all = others();
    all.push(damaged());
    world(vec![(0, taken(100))], all).check(&[
        "take 1 p0:100-109 p1:0-9",
        "take 2 cut p1:10-19",
        "settled 1",
        "wait 2 p0 Unreadable",
        "p0 next 110",
        "p1 next 20",
    ]);
    let mut all = others();
    all.push(d(9, &[]).unreadable(None));
    world(vec![(0, taken(100))], all).check(&[
        "wait 1 p0 Unreadable",
        "wait 2 p0 Unreadable",
        "wait 1 p1 Unreadable",
        "wait 2 p1 Unreadable",
        "p0 next 100",
    ]);
}

#[test]
fn a_redelivery_is_dropped_when_its_anchors_prove_it() {
    let known = |anchors: &[i64]| PartitionLedger {
        anchors: anchors.iter().map(|at| anchor(*at, "old")).collect(),
        ..taken(100)
    };
    let again = |anchors: &[i64]| world(vec![(0, known(anchors))], vec![d(1, &[(0, 50, 99)])]);
    let dropped = ["drop 1 Proved", "settled 1", "p0 next 100"];
    again(&[50, 99]).check(&dropped);
    again(&[0, 49, 50, 99]).check(&dropped);
    // The table took it in other pieces, or the ledger has forgotten the first: records of two logs may be between.
    again(&[50, 69, 70, 99]).check(&["inspect 1 p0 [50, 99]"]);
    again(&[99]).check(&["inspect 1 p0 [50, 99]"]);
    again(&[99])
        .finding(1, 0, same_up_to(99, (50, 99)))
        .check(&dropped);
}

#[test]
fn a_straddling_redelivery_is_cut() {
    world(vec![(0, taken(100))], vec![of_log(1, &[(0, 99, 120)], "old", 0)]).check(&[
        "take 1 cut p0:100-120",
        "drop 1 Proved",
        "settled 1",
        "p0 next 121",
    ]);
}

#[test]
fn another_cut_is_compared_row_by_row() {
    let again = || world(vec![(0, taken(100))], vec![d(1, &[(0, 50, 80)])]);
    again().check(&["inspect 1 p0 [50, 80]"]);
    again()
        .finding(1, 0, same_up_to(80, (50, 80)))
        .check(&["drop 1 Proved", "settled 1", "p0 next 100"]);
    again().finding(1, 0, nothing_in_common((50, 80))).check(&[
        "wait 1 p0 Suspended",
        "suspend Unproved by 1",
        "p0 next 100",
    ]);
    // Equal first records prove nothing of what follows them.
    again().finding(1, 0, same_up_to(60, (50, 80))).check(&[
        "wait 1 p0 Suspended",
        "suspend Unproved by 1",
        "p0 next 100",
    ]);
    let other = Finding {
        different_at: Some(Offset(61)),
        ..same_up_to(60, (50, 80))
    };
    again()
        .finding(1, 0, other)
        .check(&["wait 1 p0 Suspended", "suspend Contradiction by 1", "p0 next 100"]);
}

#[test]
fn a_contradiction_stops_the_whole_topic_and_takes_nothing_of_it() {
    let new_log = of_log(3, &[(0, 90, 99)], "new", 0);
    world(
        vec![(0, taken(100)), (1, taken(10))],
        vec![d(1, &[(1, 10, 19)]), new_log],
    )
    .check(&[
        "wait 1 p1 Suspended",
        "wait 3 p0 Suspended",
        "suspend Contradiction by 3",
        "p0 next 100",
        "p1 next 10",
    ]);
}

#[test]
fn an_announced_replay_drops_what_nothing_proves_but_never_a_contradiction() {
    let mut again =
        world(vec![(0, taken(100))], vec![d(1, &[(0, 50, 80)])]).finding(1, 0, nothing_in_common((50, 80)));
    again.policy.replay = true;
    again.check(&["drop 1 Announced", "settled 1", "p0 next 100"]);
    let mut other = world(vec![(0, taken(100))], vec![of_log(1, &[(0, 90, 99)], "new", 0)]);
    other.policy.replay = true;
    other.check(&["wait 1 p0 Suspended", "suspend Contradiction by 1", "p0 next 100"]);
}

#[test]
fn a_live_delivery_fills_a_young_hole_only() {
    let filled = ["take 1 p0:20-29", "settled 1", "p0 next 100"];
    world(vec![(0, with_hole(100, 20, 29, 59))], vec![d(1, &[(0, 20, 29)])]).check(&filled);
    let old = || with_hole(100, 20, 29, 60);
    world(vec![(0, old())], vec![d(1, &[(0, 20, 29)])]).check(&["inspect 1 p0 [20, 29]"]);
    world(vec![(0, old())], vec![d(1, &[(0, 20, 29)])])
        .finding(1, 0, nothing_in_common((20, 29)))
        .check(&[
            "wait 1 p0 Suspended",
            "suspend OldHole by 1",
            "p0 next 100 hole 20-29",
        ]);
    world(vec![(0, old())], vec![d(1, &[(0, 20, 29)]).backfill()]).check(&filled);
}

#[test]
fn a_part_of_a_hole_leaves_the_rest() {
    world(vec![(0, with_hole(100, 20, 29, 0))], vec![d(1, &[(0, 23, 25)])]).check(&[
        "take 1 p0:23-25",
        "settled 1",
        "p0 next 100 hole 20-22 hole 26-29",
    ]);
}

#[test]
fn a_backfill_into_the_uncertain_takes_what_is_missing() {
    let forgotten = || {
        let uncertain = IntervalSet::from(vec![range(20, 40)]);
        vec![(
            0,
            PartitionLedger {
                uncertain,
                ..taken(100)
            },
        )]
    };
    world(forgotten(), vec![d(1, &[(0, 25, 30)]).backfill()]).check(&["inspect 1 p0 [25, 30]"]);
    let finding = Finding {
        present: IntervalSet::from(vec![range(27, 28)]),
        ..nothing_in_common((25, 30))
    };
    world(forgotten(), vec![d(1, &[(0, 25, 30)]).backfill()])
        .finding(1, 0, finding)
        .check(&[
            "take 1 cut p0:25-26,29-30",
            "drop 1 Proved",
            "settled 1",
            "p0 next 100 uncertain 20-24,31-40",
        ]);
    world(forgotten(), vec![d(1, &[(0, 25, 30)])])
        .finding(1, 0, nothing_in_common((25, 30)))
        .check(&[
            "wait 1 p0 Suspended",
            "suspend Unproved by 1",
            "p0 next 100 uncertain 20-40",
        ]);
}

#[test]
fn what_overlaps_this_very_commit_waits_for_the_next() {
    world(
        vec![(0, taken(100))],
        vec![
            d(1, &[(0, 100, 199)]),
            d(2, &[(0, 100, 150)]),
            d(3, &[(0, 200, 210)]),
        ],
    )
    .check(&[
        "take 2 p0:100-150",
        "settled 2",
        "wait 1 p0 Overlap",
        "wait 3 p0 Predecessor",
        "p0 next 151",
    ]);
}

#[test]
fn partitions_of_a_descriptor_part_ways() {
    let mut parted = world(
        vec![(0, taken(100)), (1, taken(50))],
        vec![
            d(1, &[(0, 100, 109), (1, 60, 69)]),
            d(2, &[(1, 50, 59)]).unreadable(Some(vec![(1, 50, 59)])),
        ],
    );
    parted.check(&[
        "take 1 cut p0:100-109",
        "wait 1 p1 Unreadable",
        "p0 next 110",
        "p1 next 50",
    ]);
    let Planning::Ready(first) = parted.plan() else {
        panic!("a plan")
    };
    assert_eq!(
        first.ledger.settled[&Uuid::from_u128(1)],
        Settled::Partitions(vec![Partition(0)])
    );
    // The rest follows, and what was taken is not taken again, nor asked for proof.
    parted.ledger = first.ledger;
    parted.descriptors[1] = d(2, &[(1, 50, 59)]).listed;
    parted.check(&[
        "take 1 cut p1:60-69",
        "take 2 p1:50-59",
        "settled 1",
        "settled 2",
        "p0 next 110",
        "p1 next 70",
    ]);
}

#[test]
fn a_settled_descriptor_that_is_still_listed_is_only_cleared_away() {
    let mut left = world(vec![(0, taken(100))], vec![d(1, &[(0, 50, 80)])]);
    left.ledger.settled.insert(Uuid::from_u128(1), Settled::Whole);
    left.ledger.settled.insert(Uuid::from_u128(2), Settled::Whole);
    let Planning::Ready(plan) = left.plan() else {
        panic!("a plan")
    };
    assert_eq!(lines(&left.plan()), ["settled 1", "p0 next 100"]);
    assert!(!plan.changes_ledger);
    // What is not listed any more is forgotten.
    assert_eq!(
        plan.ledger.settled.keys().copied().collect::<Vec<_>>(),
        [Uuid::from_u128(1)]
    );
}

#[test]
fn a_lower_epoch_is_set_aside_and_a_higher_one_waits() {
    let mut later = world(
        vec![(0, taken(100))],
        vec![
            of_log(1, &[(0, 0, 9)], "old", 0),
            of_log(2, &[(0, 0, 9)], "new", 2),
        ],
    );
    later.ledger.logs[0].epoch = Epoch(1);
    later.policy.epoch = Epoch(1);
    later.check(&["quarantine 1", "wait 2 p0 HigherEpoch", "p0 next 100"]);
}

#[test]
fn a_descriptor_of_another_table_schema_or_field_suspends() {
    let check = |change: &dyn Fn(&mut Descriptor), message: &str| {
        let mut world = world(vec![(0, taken(100))], vec![d(1, &[(0, 100, 109)]).with(change)]);
        world.ledger.fields = FieldMap::from_iter([("/id".to_owned(), 1)]);
        let Planning::Ready(plan) = world.plan() else {
            panic!("a plan")
        };
        assert_eq!(plan.suspend[0].cause, SuspendCause::Identity);
        assert_eq!(plan.suspend[0].message, message);
        assert!(plan.take.is_empty() && !plan.changes_ledger);
    };
    check(
        &|d| d.table_uuid = Uuid::from_u128(1),
        "it was staged for the table with uuid 00000000-0000-0000-0000-000000000001",
    );
    check(
        &|d| d.schema_id = 7,
        "it was written with schema 7, which the table does not have",
    );
    check(
        &|d| d.partition_spec_id = 7,
        "it was written with partition spec 7, which the table does not have",
    );
    check(
        &|d| d.fields = FieldMap::from_iter([("/id".to_owned(), 2)]),
        "it uses field id 2 for field `/id`, and the table uses 1",
    );
}

#[test]
fn a_suspended_topic_waits() {
    let mut held = world(vec![(0, taken(100))], vec![d(1, &[(0, 100, 109)])]);
    held.policy.commits = false;
    held.check(&["wait 1 p0 Suspended", "p0 next 100"]);
}

#[test]
fn a_bounded_commit_takes_the_oldest_with_their_predecessors() {
    let mut many = world(
        vec![],
        vec![
            d(1, &[(0, 10, 19)]),
            d(2, &[(1, 0, 9)]),
            d(3, &[(0, 0, 9)]),
            d(4, &[(0, 20, 29)]),
        ],
    );
    many.max_taken = 1;
    many.check(&[
        "take 1 p0:10-19",
        "take 3 p0:0-9",
        "settled 1",
        "settled 3",
        "wait 4 p0 Bound",
        "wait 2 p1 Bound",
        "p0 next 20",
    ]);
}

#[test]
fn equal_inputs_make_equal_plans() {
    let input = || {
        world(
            vec![(0, taken(100))],
            vec![d(2, &[(0, 150, 199)]), d(1, &[(0, 100, 149)])],
        )
    };
    let (Planning::Ready(one), Planning::Ready(two)) = (input().plan(), input().plan()) else {
        panic!("plans")
    };
    assert_eq!(one, two);
}
