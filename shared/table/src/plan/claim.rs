use std::collections::BTreeSet;

use frazil_core::{IntervalSet, Offset, OffsetRange, Partition};

use super::draft::Outcome;
use super::{
    Content, Finding, Inspect, LIVE_HOLE_AGE, Listed, Listing, PlanInput, SuspendCause, Suspension,
    TopicPolicy, WaitReason,
};
use crate::anchor::Anchor;
use crate::descriptor::{Claim, Judgement};
use crate::layout::LogName;
use crate::ledger::{Part, PartitionLedger};
use crate::sabotage::{self, Break};

/// What a claim is judged by, beside itself.
pub(super) struct Context<'a> {
    pub(super) input: &'a PlanInput<'a>,
    pub(super) log: &'a LogName,
    /// The partition in the metadata being replaced, before this plan took anything.
    pub(super) base: Option<&'a PartitionLedger>,
    pub(super) policy: TopicPolicy,
    /// Descriptors of the log that cannot be read.
    pub(super) unreadable: &'a [&'a Listed],
    pub(super) chosen: bool,
}

/// What is said of a claim.
pub(super) enum Judged {
    Outcome(Outcome),
    Ask(Inspect),
    Relist,
}

/// Judges one claim, and books it in `partition` when it is taken. Claims of a partition are judged in the order of
/// their offsets, so that what is taken is a prefix of what is known.
pub(super) fn judge(
    context: &Context<'_>,
    partition: &mut PartitionLedger,
    listed: &Listed,
    backfill: bool,
    claim: &Claim,
) -> Result<Judged, Box<Suspension>> {
    let wait = |reason| Ok(Judged::Outcome(Outcome::Wait(reason)));
    if is_blocked(context, claim) {
        return wait(WaitReason::Unreadable);
    }
    if !context.chosen {
        return wait(WaitReason::Bound);
    }
    if let Ok(gap) = OffsetRange::new(partition.next, Offset(claim.range.first().0 - 1)) {
        if !context.input.relisted && !sabotage::is(Break::HoleWithoutRelisting) {
            return Ok(Judged::Relist);
        }
        if listed.listing == Listing::Second {
            return wait(WaitReason::LateListing);
        }
        if !sabotage::is(Break::HoleOverPending) && covers_gap(context, claim.partition, gap) {
            return wait(WaitReason::Predecessor);
        }
    }
    let parts = partition.parts(claim.range);
    let proof = match prove(context, partition, listed, backfill, claim, &parts)? {
        Proof::Given(proof) => proof,
        Proof::Wanted(judged) => return Ok(judged),
    };
    let mut accepted = IntervalSet::default();
    let mut drops = None;
    for part in parts {
        match part {
            Part::New(range) | Part::Hole(range, _) => accepted.insert(range),
            Part::Covered(_) => drops = Some(proof.judgement),
            Part::Uncertain(range) => {
                accepted.insert(range);
                for present in proof.present.intersect(range) {
                    accepted.remove(present);
                    drops = Some(proof.judgement);
                }
            }
        }
    }
    partition.take(claim.range, context.input.now);
    partition.remember(&claim.anchors);
    Ok(Judged::Outcome(match drops {
        Some(judgement) if accepted.is_empty() => Outcome::Drop(judgement),
        drops => Outcome::Take { accepted, drops },
    }))
}

enum Proof {
    Given(Proved),
    Wanted(Judged),
}

struct Proved {
    judgement: Judgement,
    /// Offsets that the table holds already, where an uncertain interval made us look.
    present: IntervalSet,
}

/// Asks for proof that what reaches below `next` is of the same log, as far as it needs one.
fn prove(
    context: &Context<'_>,
    partition: &PartitionLedger,
    listed: &Listed,
    backfill: bool,
    claim: &Claim,
    parts: &[Part],
) -> Result<Proof, Box<Suspension>> {
    let suspend = |cause, message| {
        Err(Box::new(Suspension {
            log: context.log.clone(),
            cause,
            descriptor: listed.id,
            partition: Some(claim.partition),
            message,
        }))
    };
    if sabotage::is(Break::DropWithoutProof) {
        return Ok(Proof::Given(Proved {
            judgement: Judgement::Proved,
            present: IntervalSet::default(),
        }));
    }
    let (agreed_to, disagreed_at) = compare_anchors(partition, claim);
    if let Some(at) = disagreed_at {
        return suspend(SuspendCause::Contradiction, contradiction(claim, at));
    }
    let needs_proof: Vec<Part> = parts
        .iter()
        .copied()
        .filter(|part| needs_proof(context, backfill, *part))
        .collect();
    let uncertain = parts.iter().any(|part| matches!(part, Part::Uncertain(_)));
    let Some(last) = needs_proof.last().map(|part| part.range().last()) else {
        if !uncertain {
            return Ok(Proof::Given(Proved {
                judgement: Judgement::Proved,
                present: IntervalSet::default(),
            }));
        }
        // A declared backfill into an uncertain interval still has to look what is there.
        return Ok(match context.input.evidence.of(listed.id, claim.partition) {
            None => Proof::Wanted(ask(listed, claim)),
            Some(finding) => Proof::Given(Proved {
                judgement: Judgement::Proved,
                present: finding.present.clone(),
            }),
        });
    };
    let anchored = agreed_to.is_some_and(|offset| offset >= last) && same_anchors(partition, claim, last);
    if anchored && !uncertain {
        return Ok(Proof::Given(Proved {
            judgement: Judgement::Proved,
            present: IntervalSet::default(),
        }));
    }
    if is_taken_by_this_plan(context.base, parts) {
        return Ok(Proof::Wanted(Judged::Outcome(Outcome::Wait(WaitReason::Overlap))));
    }
    let Some(finding) = context.input.evidence.of(listed.id, claim.partition) else {
        return Ok(Proof::Wanted(ask(listed, claim)));
    };
    if let Some(at) = finding.different_at {
        return suspend(SuspendCause::Contradiction, contradiction(claim, at));
    }
    let proved_to = agreed_to.max(finding.same_up_to);
    let unproved = needs_proof.iter().find(|part| {
        let range = part.range();
        proved_to.is_none_or(|offset| offset < range.last()) && holds_rows_beyond(finding, range, proved_to)
    });
    let given = |judgement| {
        Ok(Proof::Given(Proved {
            judgement,
            present: finding.present.clone(),
        }))
    };
    match unproved {
        None => given(Judgement::Proved),
        Some(_) if context.policy.replay || backfill => given(Judgement::Announced),
        Some(Part::Hole(range, _)) => suspend(
            SuspendCause::OldHole,
            format!(
                "partition {}: a live delivery of {} reaches into offsets {range} that were passed over more than an \
                 hour ago; is it a backfill or a new log?",
                claim.partition, claim.range
            ),
        ),
        Some(part) => suspend(
            SuspendCause::Unproved,
            format!(
                "partition {}: offsets {} were delivered again and nothing proves that they are the records that the \
                 table took; was the group reset, or is this a new log?",
                claim.partition,
                part.range()
            ),
        ),
    }
}

fn ask(listed: &Listed, claim: &Claim) -> Judged {
    Judged::Ask(Inspect {
        descriptor: listed.id,
        partition: claim.partition,
        range: claim.range,
    })
}

fn contradiction(claim: &Claim, at: Offset) -> String {
    format!(
        "partition {}: offset {at} was delivered again with another record than the table took; this looks like a \
         new log (a recreated topic, another cluster)",
        claim.partition
    )
}

/// Covered offsets always need proof. An old hole needs it from a live delivery, and so does an uncertain interval.
fn needs_proof(context: &Context<'_>, backfill: bool, part: Part) -> bool {
    match part {
        Part::New(_) => false,
        Part::Covered(_) => true,
        Part::Uncertain(_) => !backfill,
        Part::Hole(..) if sabotage::is(Break::OldHoleOpenToAll) => false,
        Part::Hole(_, opened_at) => !backfill && context.input.now.since(opened_at) >= LIVE_HOLE_AGE,
    }
}

/// The highest offset at which claim and ledger have the same anchor, and the lowest at which they differ.
fn compare_anchors(partition: &PartitionLedger, claim: &Claim) -> (Option<Offset>, Option<Offset>) {
    let mut agreed = None;
    for anchor in &claim.anchors {
        let known: Option<&Anchor> = partition
            .anchors
            .iter()
            .find(|known| known.offset == anchor.offset);
        match known {
            Some(known) if known.agrees_with(anchor) => agreed = Some(anchor.offset),
            Some(_) => return (agreed, Some(anchor.offset)),
            None => {}
        }
    }
    (agreed, None)
}

/// Whether claim and ledger have their anchors at the same offsets, from the claim's first to `last`. What was cut
/// otherwise, or so long ago that the ledger has forgotten some, may be of another log between two anchors that agree:
/// a group that went on in the middle of a new log has mixed the two. Then the rows are compared.
fn same_anchors(partition: &PartitionLedger, claim: &Claim, last: Offset) -> bool {
    let within = |anchor: &&Anchor| claim.range.contains(anchor.offset) && anchor.offset <= last;
    let offsets = |anchors: &[Anchor]| -> BTreeSet<Offset> {
        anchors
            .iter()
            .filter(within)
            .map(|anchor| anchor.offset)
            .collect()
    };
    offsets(&partition.anchors) == offsets(&claim.anchors)
}

/// Whether some of what the claim covers was taken by this very plan, so that its rows are not in the table yet.
fn is_taken_by_this_plan(base: Option<&PartitionLedger>, parts: &[Part]) -> bool {
    let taken = base.map(PartitionLedger::taken).unwrap_or_default();
    parts
        .iter()
        .any(|part| matches!(part, Part::Covered(range) if !taken.covers(*range)))
}

/// Whether the descriptor holds rows in the range beyond what is proved. Where it holds none, nothing can be lost.
fn holds_rows_beyond(finding: &Finding, range: OffsetRange, proved_to: Option<Offset>) -> bool {
    let first = proved_to.map_or(range.first(), |offset| offset.next().max(range.first()));
    OffsetRange::new(first, range.last()).is_ok_and(|rest| !finding.staged.intersect(rest).is_empty())
}

/// Whether a descriptor that cannot be read comes before the claim or shares offsets with it.
fn is_blocked(context: &Context<'_>, claim: &Claim) -> bool {
    context.unreadable.iter().any(|listed| match &listed.content {
        Content::Read(_) => false,
        Content::Unreadable { claims: None, .. } => true,
        Content::Unreadable {
            claims: Some(claims), ..
        } => claims
            .iter()
            .any(|(partition, range)| *partition == claim.partition && range.first() <= claim.range.last()),
    })
}

/// Whether anything pending or parked of the log covers a part of the gap.
fn covers_gap(context: &Context<'_>, partition: Partition, gap: OffsetRange) -> bool {
    let overlaps = |claims: &Option<Vec<(Partition, OffsetRange)>>| match claims {
        None => true,
        Some(claims) => claims
            .iter()
            .any(|(of, range)| *of == partition && range.overlaps(gap)),
    };
    let pending = context
        .input
        .descriptors
        .iter()
        .filter(|listed| &listed.log == context.log);
    let mut pending = pending.map(|listed| match &listed.content {
        Content::Read(descriptor) => descriptor
            .claims
            .iter()
            .any(|claim| claim.partition == partition && claim.range.overlaps(gap)),
        Content::Unreadable { claims, .. } => overlaps(claims),
    });
    let mut parked = context
        .input
        .parked
        .iter()
        .filter(|parked| &parked.log == context.log);
    pending.any(|covers| covers) || parked.any(|parked| overlaps(&parked.claims))
}
