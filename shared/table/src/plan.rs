//! What a commit takes: a pure decision from the ledger in the metadata that is being replaced and from all that is
//! listed. Nothing here does I/O; what the decision needs to know more of, it asks for ([`Planning`]).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use frazil_core::{Epoch, IntervalSet, Offset, OffsetRange, Partition, TimestampMs};
use uuid::Uuid;

use crate::descriptor::{Descriptor, Judgement};
use crate::layout::LogName;
use crate::ledger::Ledger;

mod claim;
mod draft;
mod selection;
#[cfg(test)]
mod tests;

use draft::Draft;

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
