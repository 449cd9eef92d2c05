use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use frazil_core::{IntervalSet, Offset, Partition};
use frazil_schema::FieldPath;
use uuid::Uuid;

use super::{
    CommitPlan, Content, Inspect, Listed, PlanInput, Planning, SuspendCause, Suspension, Take, TopicPolicy,
    WaitReason, Waiting, claim,
};
use crate::descriptor::{Claim, Descriptor, Judgement};
use crate::layout::LogName;
use crate::ledger::{Added, Ledger, LogLedger, Settled};
use crate::sabotage::{self, Break};

/// A plan in the making.
pub(super) struct Draft<'a> {
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
pub(super) enum Outcome {
    Take {
        accepted: IntervalSet,
        drops: Option<Judgement>,
    },
    Drop(Judgement),
    Wait(WaitReason),
}

impl<'a> Draft<'a> {
    pub(super) fn new(input: &'a PlanInput<'a>) -> Self {
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

    pub(super) fn plan_log(&mut self, log: &LogName, listed: &[&'a Listed], chosen: &HashSet<Uuid>) {
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
        let is_unreadable = |listed: &&Listed| matches!(listed.content, Content::Unreadable { .. });
        let unreadable: Vec<&Listed> = listed.iter().copied().filter(is_unreadable).collect();
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
                unreadable: &unreadable,
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

    pub(super) fn finish(mut self) -> Planning {
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
            "it uses field id {theirs} for {}, and the table uses {ours}",
            FieldPath::describe(path)
        ))
    }
}

struct LogPlan<'a> {
    ledger: LogLedger,
    outcomes: Vec<(&'a Listed, &'a Claim, Outcome)>,
}
