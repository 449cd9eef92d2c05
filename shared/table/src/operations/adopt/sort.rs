use std::collections::{BTreeMap, HashSet};

use frazil_core::{Error, ErrorKind, Offset, Partition, Result, TableName};
use uuid::Uuid;

use super::unclear::{dropped_before, of_quarantined};
use super::{Adopting, Life, Sorted, Unclear};
use crate::commit::{CommitSettings, Scope, Survey, commit_within, history_moved};
use crate::descriptor::claims_from_attributes;
use crate::layout::Shelf;
use crate::operations::parked::{EventSink, ParkedEvent};
use crate::plan::{Content, SuspendCause, WaitReason};

/// How often sorting starts again at most: each time something was committed, and what waited for it can be compared.
const MAX_ROUNDS: u32 = 64;

pub(super) enum Sorting {
    Done(Sorted),
    Unclear(Vec<Unclear>),
    Blocked(Vec<(Uuid, String)>),
}

impl Adopting<'_> {
    /// Commits what is the old log's, and says where the new one begins.
    pub(super) async fn sort(&self, sink: Option<&dyn EventSink>) -> Result<Sorting> {
        for _ in 0..MAX_ROUNDS {
            let parked = self.parked().await?;
            let first_new = self.first_new(&parked).await?;
            let (old, new): (Vec<ParkedEvent>, Vec<ParkedEvent>) = parked
                .into_iter()
                .partition(|event| first_new.is_none_or(|first| event.id < first));
            if self.answer == Some(Life::Old) && !old.is_empty() {
                self.hand_over(sink, &old).await?;
                continue;
            }
            let (went_on, waiting) = self.commit_old(first_new, &old).await?;
            if went_on {
                continue;
            }
            let unclear = self.unclear(&old, &new, first_new).await?;
            if self.answer.is_none() && !unclear.is_empty() {
                return Ok(Sorting::Unclear(unclear));
            }
            if !waiting.is_empty() {
                return Ok(Sorting::Blocked(waiting));
            }
            return Ok(Sorting::Done(self.sorted(first_new, &unclear)));
        }
        Err(Error::new(
            ErrorKind::Conflict,
            "sort what is pending",
            "more came every time",
        )
        .with_context("topic", &self.old.topic)
        .with_hint("an invocation of the old life is still alive: stop it, then call again"))
    }

    /// Commits what came before the new log. Says whether that went on, and what cannot be committed and why.
    async fn commit_old(
        &self,
        first_new: Option<Uuid>,
        old_parked: &[ParkedEvent],
    ) -> Result<(bool, Vec<(Uuid, String)>)> {
        let mut went_on = false;
        let mut blocked = Vec::new();
        for name in &self.tables {
            let mut only = self.pending_before(name, first_new).await?;
            if self.answer != Some(Life::New) {
                only.extend(old_parked.iter().map(|event| event.id));
            }
            let settings = CommitSettings::default();
            let report = commit_within(self.warehouse, name, &settings, Some(&self.scope(only))).await?;
            went_on |= !report.commits.is_empty();
            blocked.extend(report.waiting.iter().map(|waiting| {
                let why = match waiting.reason {
                    WaitReason::Unreadable => {
                        "a descriptor that cannot be read stops it: set that aside with `frazil pending quarantine`"
                    }
                    _ => "it waits for something before it: call again",
                };
                (waiting.id, why.to_owned())
            }));
        }
        Ok((went_on, blocked))
    }

    fn sorted(&self, first_new: Option<Uuid>, unclear: &[Unclear]) -> Sorted {
        let mut sorted = Sorted {
            first_new,
            ..Sorted::default()
        };
        for question in unclear {
            match (question, self.answer) {
                (Unclear::Dropped { id, .. }, Some(Life::New)) => {
                    sorted.from_dropped.insert(*id);
                }
                (Unclear::Quarantined { id, .. }, Some(Life::Old)) => {
                    sorted.left_aside.insert(*id);
                }
                _ => {}
            }
        }
        sorted
    }

    fn scope(&self, only: HashSet<Uuid>) -> Scope {
        Scope {
            source: self.old.source.clone(),
            topic: self.old.topic.clone(),
            only: Some(only),
            replay: Some(false),
        }
    }

    async fn pending_before(&self, name: &TableName, first_new: Option<Uuid>) -> Result<HashSet<Uuid>> {
        let table = self.warehouse.load_existing(name).await?;
        let pending = self.of_old_life(&table, Shelf::Pending).await?;
        let before = pending
            .iter()
            .filter(|listed| first_new.is_none_or(|first| listed.arrival() < first));
        Ok(before.map(|listed| listed.id).collect())
    }

    /// The arrival of the first descriptor about which the planner would ask if the topic were running.
    async fn first_new(&self, parked: &[ParkedEvent]) -> Result<Option<Uuid>> {
        let mut first: Option<Uuid> = None;
        for name in &self.tables {
            let Some(mut survey) = Survey::read(self.warehouse, name).await? else {
                continue;
            };
            if let Some(message) = survey.moved.take() {
                return Err(history_moved(name, message));
            }
            let found = self.first_question(&mut survey, parked).await?;
            first = first.into_iter().chain(found).min();
        }
        Ok(first)
    }

    /// Looks for the shortest prefix by arrival that makes the planner ask. O(log n) plans.
    async fn first_question(&self, survey: &mut Survey, parked: &[ParkedEvent]) -> Result<Option<Uuid>> {
        let pending = survey
            .descriptors
            .iter()
            .filter(|listed| listed.log == self.old && !survey.ledger.has_settled(listed.id, None));
        let mut order: Vec<(Uuid, Uuid)> = pending.map(|listed| (listed.arrival(), listed.id)).collect();
        order.sort_unstable();
        let (mut unasked, mut asked) = (0, order.len() + 1);
        let mut length = order.len();
        while asked - unasked > 1 {
            let prefix = &order[..length];
            let last = prefix.last().map(|(arrival, _)| *arrival);
            let before = parked
                .iter()
                .map(|event| event.id)
                .filter(|id| last.is_some_and(|last| *id < last));
            let only = prefix.iter().map(|(_, id)| *id).chain(before).collect();
            if self.is_asked(survey, only).await? {
                asked = length;
            } else if length == order.len() {
                return Ok(None);
            } else {
                unasked = length;
            }
            length = usize::midpoint(unasked, asked);
        }
        Ok(order.get(asked - 1).map(|(arrival, _)| *arrival))
    }

    async fn is_asked(&self, survey: &mut Survey, only: HashSet<Uuid>) -> Result<bool> {
        let questions = survey.questions(self.warehouse, &self.scope(only)).await?;
        match questions.first() {
            None => Ok(false),
            Some(question) if question.cause == SuspendCause::Identity => Err(Error::new(
                ErrorKind::Suspended,
                "sort what is pending",
                question.message.clone(),
            )
            .with_context("descriptor", question.descriptor)
            .with_code("identity")
            .with_hint("set it aside with `frazil pending quarantine`, then adopt again")),
            Some(_) => Ok(true),
        }
    }

    /// What nothing tells the log of.
    async fn unclear(
        &self,
        old_parked: &[ParkedEvent],
        new_parked: &[ParkedEvent],
        first_new: Option<Uuid>,
    ) -> Result<Vec<Unclear>> {
        let mut unclear: Vec<Unclear> = Vec::new();
        unclear.extend(old_parked.iter().map(|event| Unclear::Parked { id: event.id }));
        let parked_from = self.first_offsets(new_parked).await?;
        for name in &self.tables {
            let table = self.warehouse.load_existing(name).await?;
            let mut new_from = parked_from.clone();
            for listed in self.of_old_life(&table, Shelf::Pending).await? {
                if first_new.is_none_or(|first| listed.arrival() < first) {
                    continue;
                }
                let Content::Read(descriptor) = &listed.content else {
                    continue;
                };
                for claim in &descriptor.claims {
                    let first = new_from.entry(claim.partition).or_insert(claim.range.first());
                    *first = claim.range.first().min(*first);
                }
            }
            let dropped = self.of_old_life(&table, Shelf::Dropped).await?;
            unclear.extend(dropped_before(&dropped, &new_from));
            let quarantined = self.of_old_life(&table, Shelf::Quarantine).await?;
            unclear.extend(of_quarantined(&quarantined, first_new));
        }
        Ok(unclear)
    }

    /// The lowest offset per partition of what was parked after the new log began.
    async fn first_offsets(&self, parked: &[ParkedEvent]) -> Result<BTreeMap<Partition, Offset>> {
        let mut firsts = BTreeMap::new();
        for event in parked {
            let location = self.warehouse.layout.parked_event(&event.log, event.id);
            let head = self.warehouse.storage.head(&location).await?;
            let attributes = head.and_then(|head| head.attributes);
            for (partition, range) in claims_from_attributes(attributes.as_deref()).unwrap_or_default() {
                let first = firsts.entry(partition).or_insert(range.first());
                *first = range.first().min(*first);
            }
        }
        Ok(firsts)
    }
}
