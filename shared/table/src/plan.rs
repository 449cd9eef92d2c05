//! What a commit takes: a pure decision from the ledger in the metadata that is being replaced and from all that is
//! listed. Nothing here does I/O; what the decision needs to know more of, it asks for ([`Planning`]).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use frazil_core::{Epoch, IntervalSet, Offset, OffsetRange, Partition, TimestampMs};
use uuid::Uuid;

use crate::descriptor::{Claim, Descriptor, Judgement};
use crate::layout::LogName;
use crate::ledger::{Added, Ledger, LogLedger, Settled};
use crate::sabotage::{self, Break};

mod claim;
mod selection;
#[cfg(test)]
mod tests;

/// A live delivery may fill a hole that is younger than this; an older one asks for a declared backfill, since by
/// then the delivery may come from another log.
pub const LIVE_HOLE_AGE: Duration = Duration::from_secs(3_600);

/// How many descriptors one commit takes by default. It bounds memory and time of a commit; what is left waits for
/// the next one, seconds later. All that is listed is known to every plan.
pub const MAX_TAKEN: usize = 2_000;

/// What a plan is made from.
#[derive(Debug)]
pub struct PlanInput<'a> {
    /// The ledger in the metadata that the commit replaces.
    pub ledger: &'a Ledger,
    /// Schemas that the metadata holds.
    pub schema_ids: &'a HashSet<i32>,
    /// Partition specs that the metadata holds.
    pub spec_ids: &'a HashSet<i32>,
    /// Every descriptor that was listed.
    pub descriptors: &'a [Listed],
    /// Every parked event that was listed.
    pub parked: &'a [Parked],
    /// Whether pending and parked were listed a second time, after the first listing had finished.
    pub relisted: bool,
    /// Per log, what the topic's state says.
    pub topics: &'a HashMap<(String, String), TopicPolicy>,
    /// What was found out about claims so far.
    pub evidence: &'a Evidence,
    /// The commit's time.
    pub now: TimestampMs,
    /// At most so many descriptors are taken, give or take those that need each other.
    pub max_taken: usize,
}

/// A descriptor in a listing.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its id, from its name.
    pub id: Uuid,
    /// Its log, from its name.
    pub log: LogName,
    /// Which listing saw it first.
    pub listing: Listing,
    /// What it says.
    pub content: Content,
}

impl Listed {
    /// Its place in the order in which records arrived: see [`Descriptor::arrival`].
    pub fn arrival(&self) -> Uuid {
        match &self.content {
            Content::Read(descriptor) => descriptor.arrival(),
            Content::Unreadable { .. } => self.id,
        }
    }
}

/// Which listing saw an object first. Only a range from the first may open a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// The one that the plan starts from.
    First,
    /// The one made after the first had finished.
    Second,
}

/// What a descriptor says.
#[derive(Debug, Clone)]
pub enum Content {
    /// It was read.
    Read(Arc<Descriptor>),
    /// It cannot be read, and stops these claims; `None`: its whole log.
    Unreadable {
        /// The claims in its object's attributes.
        claims: Option<Vec<(Partition, OffsetRange)>>,
        /// Why it cannot be read.
        reason: String,
    },
}

/// A parked event in a listing.
#[derive(Debug, Clone)]
pub struct Parked {
    /// Its log.
    pub log: LogName,
    /// The claims in its object's attributes; `None`: they must be assumed to be anything of its log.
    pub claims: Option<Vec<(Partition, OffsetRange)>>,
}

/// What a topic's state means for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopicPolicy {
    /// The topic's present life.
    pub epoch: Epoch,
    /// Whether its descriptors may be taken.
    pub commits: bool,
    /// Whether a person announced that the group was reset: what is covered may be dropped without proof.
    pub replay: bool,
}

/// What was found out about claims by reading files.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    findings: HashMap<(Uuid, Partition), Finding>,
}

/// A question to be answered by reading files: what do the descriptor's rows in its claim of this partition have in
/// common with the table's?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Inspect {
    /// The descriptor.
    pub descriptor: Uuid,
    /// The partition.
    pub partition: Partition,
    /// The descriptor's claim.
    pub range: OffsetRange,
}

/// The answer to an [`Inspect`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Finding {
    /// Offsets of the claim that table, dead letters or outbox hold.
    pub present: IntervalSet,
    /// Offsets of the claim that the descriptor's files hold.
    pub staged: IntervalSet,
    /// The highest offset of which both hold the same record, below any difference.
    pub same_up_to: Option<Offset>,
    /// The lowest offset of which they hold different records.
    pub different_at: Option<Offset>,
}

impl Evidence {
    /// Adds an answer.
    pub fn insert(&mut self, question: Inspect, finding: Finding) {
        self.findings
            .insert((question.descriptor, question.partition), finding);
    }

    fn of(&self, descriptor: Uuid, partition: Partition) -> Option<&Finding> {
        self.findings.get(&(descriptor, partition))
    }
}

/// How far planning has come.
#[derive(Debug)]
pub enum Planning {
    /// A range would open a hole: list pending and parked again, then plan again.
    Relist,
    /// Files must be read first, then plan again.
    Inspect(Vec<Inspect>),
    /// Decided.
    Ready(Box<CommitPlan>),
}

/// What a commit does. Equal plans stage equal files.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitPlan {
    /// What to take of which descriptor, in the order of their ids.
    pub take: Vec<Take>,
    /// Descriptors to keep a copy of among the dropped ones.
    pub dropped: Vec<(Uuid, Judgement)>,
    /// Descriptors that are settled once the plan is committed, to be deleted then.
    pub settled: Vec<Uuid>,
    /// Descriptors to be moved aside, and why.
    pub quarantine: Vec<(Uuid, String)>,
    /// What stays, and why.
    pub waiting: Vec<Waiting>,
    /// Topics that a person must decide about.
    pub suspend: Vec<Suspension>,
    /// The next ledger, without snapshot and sequence number.
    pub ledger: Ledger,
    /// Whether the ledger says more than the one being replaced, so that a swap is needed.
    pub changes_ledger: bool,
}

/// What to take of a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Take {
    /// The descriptor.
    pub id: Uuid,
    /// Per partition, the offsets to take.
    pub accepted: BTreeMap<Partition, IntervalSet>,
    /// Whether that is all that the descriptor claims, so that its files can be used as they are.
    pub whole: bool,
}

/// A claim that stays pending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The descriptor.
    pub id: Uuid,
    /// The partition.
    pub partition: Partition,
    /// What it waits for.
    pub reason: WaitReason,
}

/// What a claim waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitReason {
    /// An unreadable descriptor covers this or comes before it.
    Unreadable,
    /// The topic is suspended.
    Suspended,
    /// It belongs to a life of the topic that the table does not know yet.
    HigherEpoch,
    /// It overlaps what this very commit takes: the next one can compare them.
    Overlap,
    /// Something pending or parked covers offsets before it.
    Predecessor,
    /// It came after the first listing and would open a hole.
    LateListing,
    /// This commit takes enough already.
    Bound,
}

/// A topic that a person must decide about, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    /// The log.
    pub log: LogName,
    /// What was found.
    pub cause: SuspendCause,
    /// The descriptor and partition that showed it.
    pub descriptor: Uuid,
    /// The partition that showed it.
    pub partition: Option<Partition>,
    /// What was found, in words.
    pub message: String,
}

/// Why a commit stops a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuspendCause {
    /// Offsets that were taken come again with other records: another log.
    Contradiction,
    /// Offsets that were taken come again, and nothing proves that they are the same records.
    Unproved,
    /// A live delivery reaches into a hole that is too old for it.
    OldHole,
    /// A descriptor names a field id that means something else in this table, or a schema or partition spec that the
    /// table does not have.
    Identity,
    /// The table's history has moved: the commit that the ledger names is not in it.
    History,
}

/// Decides what a commit takes. O(known · log known).
pub fn plan(input: &PlanInput<'_>) -> Planning {
    let mut logs: BTreeMap<&LogName, Vec<&Listed>> = BTreeMap::new();
    for listed in input.descriptors {
        logs.entry(&listed.log).or_default().push(listed);
    }
    let chosen = selection::within_bound(input);
    let mut draft = Draft::new(input);
    for (log, listed) in logs {
        draft.plan_log(log, &listed, &chosen);
    }
    draft.finish()
}

/// A plan in the making.
struct Draft<'a> {
    input: &'a PlanInput<'a>,
    ledger: Ledger,
    questions: BTreeSet<Inspect>,
    relist: bool,
    accepted: BTreeMap<Uuid, LogTake>,
    dropped: BTreeMap<Uuid, Judgement>,
    settled: BTreeMap<Uuid, Settled>,
    quarantine: Vec<(Uuid, String)>,
    waiting: Vec<Waiting>,
    suspend: Vec<Suspension>,
    added: Vec<Added>,
}

#[derive(Default)]
struct LogTake {
    accepted: BTreeMap<Partition, IntervalSet>,
    whole: bool,
}

/// What became of one claim.
enum Outcome {
    Take {
        accepted: IntervalSet,
        drops: Option<Judgement>,
    },
    Drop(Judgement),
    Wait(WaitReason),
}

impl<'a> Draft<'a> {
    fn new(input: &'a PlanInput<'a>) -> Self {
        let listed: HashSet<Uuid> = input.descriptors.iter().map(|listed| listed.id).collect();
        let settled = input.ledger.settled.iter();
        let settled = settled
            .filter(|(id, _)| listed.contains(id))
            .map(|(id, s)| (*id, s.clone()))
            .collect();
        Self {
            input,
            ledger: input.ledger.clone(),
            questions: BTreeSet::new(),
            relist: false,
            accepted: BTreeMap::new(),
            dropped: BTreeMap::new(),
            settled,
            quarantine: Vec::new(),
            waiting: Vec::new(),
            suspend: Vec::new(),
            added: Vec::new(),
        }
    }

    fn plan_log(&mut self, log: &LogName, listed: &[&'a Listed], chosen: &HashSet<Uuid>) {
        let policy = self
            .input
            .topics
            .get(&(log.source.to_string(), log.topic.to_string()));
        let Some(policy) = policy.copied() else {
            return self.wait_all(listed, WaitReason::Suspended);
        };
        let known = self.input.ledger.log(&log.source, &log.topic);
        let epoch = known.map_or(policy.epoch, |known| known.epoch);
        if log.epoch < epoch {
            let ledger = self.input.ledger;
            for listed in listed
                .iter()
                .filter(|listed| !ledger.has_settled(listed.id, None))
            {
                let reason = format!("it is of epoch {}, and the table is at epoch {epoch}", log.epoch);
                self.quarantine.push((listed.id, reason));
            }
            return;
        }
        if log.epoch > epoch {
            return self.wait_all(listed, WaitReason::HigherEpoch);
        }
        if !policy.commits {
            return self.wait_all(listed, WaitReason::Suspended);
        }
        let fresh = LogLedger {
            source: log.source.clone(),
            topic: log.topic.clone(),
            epoch,
            partitions: BTreeMap::new(),
        };
        let base = known.cloned().unwrap_or(fresh);
        match self.plan_claims(log, &base, policy, listed, chosen) {
            Ok(planned) => self.merge(log, &base, planned),
            Err(suspension) => {
                self.wait_all(listed, WaitReason::Suspended);
                self.suspend.push(*suspension);
            }
        }
    }

    fn plan_claims(
        &mut self,
        log: &LogName,
        base: &LogLedger,
        policy: TopicPolicy,
        listed: &[&'a Listed],
        chosen: &HashSet<Uuid>,
    ) -> Result<LogPlan<'a>, Box<Suspension>> {
        let mut planned = LogPlan {
            ledger: base.clone(),
            outcomes: Vec::new(),
        };
        let mut claims: Vec<(&Arc<Descriptor>, &'a Listed, &'a Claim)> = Vec::new();
        for &listed in listed {
            if let Content::Read(descriptor) = &listed.content {
                if self.input.ledger.has_settled(listed.id, None) {
                    continue;
                }
                if let Some(message) = self.contradicts_identity(descriptor) {
                    return Err(Box::new(Suspension {
                        log: log.clone(),
                        cause: SuspendCause::Identity,
                        descriptor: listed.id,
                        partition: None,
                        message,
                    }));
                }
                claims.extend(descriptor.claims.iter().map(|claim| (descriptor, listed, claim)));
            }
        }
        claims.sort_by_key(|(_, listed, claim)| (claim.partition, claim.range, listed.id));
        for (descriptor, listed, claim) in claims {
            if self.input.ledger.has_settled(listed.id, Some(claim.partition)) {
                continue;
            }
            let context = claim::Context {
                input: self.input,
                log,
                base: base.partitions.get(&claim.partition),
                policy,
                chosen: chosen.contains(&listed.id),
            };
            let partition = planned.ledger.partitions.entry(claim.partition).or_default();
            let outcome = match claim::judge(&context, partition, listed, descriptor.backfill, claim)? {
                claim::Judged::Outcome(outcome) => outcome,
                claim::Judged::Relist => {
                    self.relist = true;
                    Outcome::Wait(WaitReason::LateListing)
                }
                claim::Judged::Ask(question) => {
                    self.questions.insert(question);
                    Outcome::Wait(WaitReason::Overlap)
                }
            };
            planned.outcomes.push((listed, claim, outcome));
        }
        planned
            .ledger
            .partitions
            .retain(|_, partition| partition.next > Offset(0));
        Ok(planned)
    }

    fn merge(&mut self, log: &LogName, base: &LogLedger, planned: LogPlan<'a>) {
        let mut added = Added {
            source: log.source.clone(),
            topic: log.topic.clone(),
            epoch: base.epoch,
            ranges: BTreeMap::new(),
        };
        let mut open: HashSet<Uuid> = HashSet::new();
        let mut done: BTreeMap<Uuid, Vec<Partition>> = BTreeMap::new();
        for (listed, claim, outcome) in planned.outcomes {
            match outcome {
                Outcome::Take { accepted, drops } => {
                    let whole = accepted.covers(claim.range);
                    let ranges = added.ranges.entry(claim.partition).or_default();
                    accepted.ranges().iter().for_each(|range| ranges.insert(*range));
                    let take = self.accepted.entry(listed.id).or_insert(LogTake {
                        whole: true,
                        ..LogTake::default()
                    });
                    take.whole &= whole;
                    take.accepted.insert(claim.partition, accepted);
                    if let Some(judgement) = drops {
                        self.dropped.insert(listed.id, judgement);
                    }
                    done.entry(listed.id).or_default().push(claim.partition);
                }
                Outcome::Drop(judgement) => {
                    self.dropped.entry(listed.id).or_insert(judgement);
                    done.entry(listed.id).or_default().push(claim.partition);
                }
                Outcome::Wait(reason) => {
                    open.insert(listed.id);
                    self.waiting.push(Waiting {
                        id: listed.id,
                        partition: claim.partition,
                        reason,
                    });
                }
            }
        }
        for (id, partitions) in done {
            let before = match self.settled.remove(&id) {
                Some(Settled::Partitions(before)) => before,
                Some(Settled::Whole) | None => Vec::new(),
            };
            if let Some(take) = self.accepted.get_mut(&id) {
                take.whole &=
                    before.is_empty() && !open.contains(&id) && take.accepted.len() == partitions.len();
            }
            let settled = if open.contains(&id) && !sabotage::is(Break::PartlyTakenDeleted) {
                Settled::Partitions(before.into_iter().chain(partitions).collect())
            } else {
                Settled::Whole
            };
            self.settled.insert(id, settled);
        }
        if planned.ledger != *base {
            *self.ledger.log_mut(&log.source, &log.topic, base.epoch) = planned.ledger;
        }
        if !added.ranges.is_empty() {
            self.added.push(added);
        }
    }

    fn finish(mut self) -> Planning {
        if !self.questions.is_empty() {
            return Planning::Inspect(self.questions.into_iter().collect());
        }
        if self.relist && !self.input.relisted {
            return Planning::Relist;
        }
        let take: Vec<Take> = self
            .accepted
            .into_iter()
            .map(|(id, take)| Take {
                id,
                accepted: take.accepted,
                whole: take.whole,
            })
            .collect();
        let changes_ledger = !take.is_empty() || self.ledger.logs != self.input.ledger.logs;
        let settled = self
            .settled
            .iter()
            .filter(|(_, s)| **s == Settled::Whole)
            .map(|(id, _)| *id)
            .collect();
        self.ledger.settled = self.settled;
        self.ledger.added = self.added;
        self.ledger.written_at = self.input.now;
        Planning::Ready(Box::new(CommitPlan {
            take,
            dropped: self.dropped.into_iter().collect(),
            settled,
            quarantine: self.quarantine,
            waiting: self.waiting,
            suspend: self.suspend,
            ledger: self.ledger,
            changes_ledger,
        }))
    }

    fn wait_all(&mut self, listed: &[&Listed], reason: WaitReason) {
        for listed in listed {
            let Content::Read(descriptor) = &listed.content else {
                continue;
            };
            let partitions = descriptor.claims.iter().map(|claim| claim.partition);
            let open = partitions.filter(|of| !self.input.ledger.has_settled(listed.id, Some(*of)));
            self.waiting.extend(open.map(|partition| Waiting {
                id: listed.id,
                partition,
                reason,
            }));
        }
    }

    fn contradicts_identity(&self, descriptor: &Descriptor) -> Option<String> {
        if descriptor.table_uuid != self.input.ledger.table_uuid && !sabotage::is(Break::PendingByName) {
            return Some(format!(
                "it was staged for the table with uuid {}",
                descriptor.table_uuid
            ));
        }
        if !self.input.schema_ids.contains(&descriptor.schema_id) {
            return Some(format!(
                "it was written with schema {}, which the table does not have",
                descriptor.schema_id
            ));
        }
        if !self.input.spec_ids.contains(&descriptor.partition_spec_id) {
            let spec = descriptor.partition_spec_id;
            return Some(format!(
                "it was written with partition spec {spec}, which the table does not have"
            ));
        }
        let (path, theirs, ours) = descriptor.fields.contradiction(&self.input.ledger.fields)?;
        Some(format!(
            "it uses field id {theirs} for `{path}`, and the table uses {ours}"
        ))
    }
}

struct LogPlan<'a> {
    ledger: LogLedger,
    outcomes: Vec<(&'a Listed, &'a Claim, Outcome)>,
}
