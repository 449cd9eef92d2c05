use std::collections::{HashMap, HashSet};

use frazil_core::{Error, ErrorKind, Result, SourceName, TableName, TopicName};
use uuid::Uuid;

use super::{history, listing};
use crate::descriptor::Descriptor;
use crate::inspect::inspect;
use crate::ledger::{Ledger, PartitionLedger};
use crate::metadata::commit_time;
use crate::plan::{
    CommitPlan, Content, Evidence, Listed, Parked, PlanInput, Planning, Suspension, TopicPolicy, plan,
};
use crate::properties;
use crate::topic_state::TopicState;
use crate::warehouse::{LoadedTable, Warehouse};

/// How often a table is read anew because it changed in between.
const MAX_READS: u32 = 16;

/// What a decision about a table is made from, read in this order: the table, then everything pending, then the
/// topics' states.
#[derive(Debug)]
pub(crate) struct Survey {
    pub(crate) table: LoadedTable,
    /// The ledger that the table names.
    pub(crate) written: Ledger,
    /// The ledger to plan with: the written one, and what the table's history adds to it.
    pub(crate) ledger: Ledger,
    /// Why nothing may be decided: the table's history has moved.
    pub(crate) moved: Option<String>,
    pub(crate) descriptors: Vec<Listed>,
    pub(crate) states: HashMap<(String, String), TopicState>,
    parked: Vec<(Uuid, Parked)>,
    relisted: bool,
    evidence: Evidence,
}

/// Restricts a decision to some descriptors of one topic, and lets them pass although the topic is suspended.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) source: SourceName,
    pub(crate) topic: TopicName,
    /// The descriptors and parked events that are looked at. The others are as if they were not there, but what the
    /// ledger says of them is kept. `None`: all of the topic's.
    pub(crate) only: Option<HashSet<Uuid>>,
    /// Whether what is covered may be dropped without proof; `None`: as the topic's state says.
    pub(crate) replay: Option<bool>,
}

impl Survey {
    /// `None`: the catalog has no such table.
    pub(crate) async fn read(warehouse: &Warehouse, name: &TableName) -> Result<Option<Self>> {
        for _ in 0..MAX_READS {
            let Some(survey) = Self::read_once(warehouse, name).await? else {
                return Ok(None);
            };
            // A commit that landed after the pointer was read and before the states were looks like a pointer that
            // fell back. Only a pointer that is still there says so.
            let is_stale = survey.moved.is_some()
                && warehouse.catalog.load(name).await?.as_ref() != Some(&survey.table.pointer);
            if !is_stale {
                return Ok(Some(survey));
            }
        }
        Err(Error::new(
            ErrorKind::Conflict,
            "look at the table",
            format!("others changed it {MAX_READS} times meanwhile"),
        )
        .with_context("table", name)
        .with_hint("try again"))
    }

    async fn read_once(warehouse: &Warehouse, name: &TableName) -> Result<Option<Self>> {
        let Some(table) = warehouse.load(name).await? else {
            return Ok(None);
        };
        let written = warehouse.ledger(&table).await?;
        let descriptors = listing::pending(warehouse, &table).await?;
        let logs = descriptors
            .iter()
            .map(|listed| (&listed.log.source, &listed.log.topic));
        let logs = logs.chain(written.logs.iter().map(|log| (&log.source, &log.topic)));
        let maker = maker(&table);
        let logs = logs.chain(maker.iter().map(|(source, topic)| (source, topic)));
        let mut states = HashMap::new();
        for (source, topic) in logs.collect::<HashSet<_>>() {
            let state = warehouse.topic_state(source, topic).await?;
            states.insert((source.to_string(), topic.to_string()), state);
        }
        let mut ledger = written.clone();
        let moved = follow_history(&table, &mut ledger, states.values());
        Ok(Some(Self {
            table,
            written,
            ledger,
            moved,
            descriptors,
            states,
            parked: Vec::new(),
            relisted: false,
            evidence: Evidence::default(),
        }))
    }

    /// Plans until everything that the plan asks for is known. What is read for one plan serves the next.
    pub(crate) async fn plan(
        &mut self,
        warehouse: &Warehouse,
        scope: Option<&Scope>,
        max_taken: usize,
    ) -> Result<CommitPlan> {
        let metadata = self.table.metadata.clone();
        let schema_ids: HashSet<i32> = metadata.schemas_iter().map(|schema| schema.schema_id()).collect();
        let spec_ids: HashSet<i32> = metadata
            .partition_specs_iter()
            .map(|spec| spec.spec_id())
            .collect();
        let now = commit_time(warehouse.environment.now(), &metadata);
        let topics: HashMap<_, TopicPolicy> = self
            .states
            .iter()
            .map(|(key, state)| {
                (
                    key.clone(),
                    policy(state, scope, state.policy(warehouse.environment.now())),
                )
            })
            .collect();
        loop {
            let is_looked_at = |id: Uuid, source: &SourceName, topic: &TopicName| {
                scope.is_none_or(|scope| {
                    (source, topic) == (&scope.source, &scope.topic)
                        && scope.only.as_ref().is_none_or(|only| only.contains(&id))
                })
            };
            let looked_at = |listed: &&Listed| is_looked_at(listed.id, &listed.log.source, &listed.log.topic);
            let descriptors: Vec<Listed> = self.descriptors.iter().filter(looked_at).cloned().collect();
            let parked = self.parked.iter();
            let parked =
                parked.filter(|(id, parked)| is_looked_at(*id, &parked.log.source, &parked.log.topic));
            let parked: Vec<Parked> = parked.map(|(_, parked)| parked.clone()).collect();
            let input = PlanInput {
                ledger: &self.ledger,
                schema_ids: &schema_ids,
                spec_ids: &spec_ids,
                descriptors: &descriptors,
                parked: &parked,
                relisted: self.relisted,
                topics: &topics,
                evidence: &self.evidence,
                now,
                max_taken,
            };
            match plan(&input) {
                Planning::Ready(mut plan) => {
                    self.keep_settled(&mut plan, &descriptors);
                    // The commit that sees a delete writes down what it means, with or without rows of its own.
                    plan.changes_ledger |= plan.ledger.logs != self.written.logs;
                    return Ok(*plan);
                }
                Planning::Relist => {
                    self.parked = listing::parked(warehouse, &self.descriptors).await?;
                    listing::pending_again(warehouse, &self.table, &mut self.descriptors).await?;
                    self.relisted = true;
                }
                Planning::Inspect(questions) => {
                    for question in questions {
                        let Some(descriptor) = self.descriptor(question.descriptor) else {
                            continue;
                        };
                        let finding =
                            inspect(warehouse, &self.table, &self.ledger, descriptor, question).await?;
                        self.evidence.insert(question, finding);
                    }
                }
            }
        }
    }

    /// What the planner would ask a person about the topic if it were running.
    pub(crate) async fn questions(
        &mut self,
        warehouse: &Warehouse,
        scope: &Scope,
    ) -> Result<Vec<Suspension>> {
        let plan = self.plan(warehouse, Some(scope), usize::MAX).await?;
        Ok(plan.suspend)
    }

    /// A descriptor that was listed and could be read.
    pub(crate) fn descriptor(&self, id: Uuid) -> Option<&Descriptor> {
        let listed = self.descriptors.iter().find(|listed| listed.id == id);
        listed.and_then(|listed| match &listed.content {
            Content::Read(descriptor) => Some(descriptor.as_ref()),
            Content::Unreadable { .. } => None,
        })
    }

    /// A plan forgets settled descriptors that are not listed any more. Those that it did not look at are listed.
    fn keep_settled(&self, plan: &mut CommitPlan, looked_at: &[Listed]) {
        let looked_at: HashSet<Uuid> = looked_at.iter().map(|listed| listed.id).collect();
        let others = self
            .descriptors
            .iter()
            .filter(|listed| !looked_at.contains(&listed.id));
        for id in others.map(|listed| listed.id) {
            if let Some(settled) = self.ledger.settled.get(&id) {
                plan.ledger.settled.insert(id, settled.clone());
            }
        }
    }
}

/// The topic that made the table: a ledger that fell back to its beginning names none, and its state tells.
fn maker(table: &LoadedTable) -> Option<(SourceName, TopicName)> {
    let property = |key: &str| table.metadata.properties().get(key).map(String::as_str);
    Some((
        property(properties::SOURCE)?.into(),
        property(properties::TOPIC)?.into(),
    ))
}

/// Why nothing may be decided about the table, if its history has moved; see [`follow_history`].
pub(crate) async fn moved(
    warehouse: &Warehouse,
    table: &LoadedTable,
    ledger: &mut Ledger,
) -> Result<Option<String>> {
    let mut states = Vec::with_capacity(ledger.logs.len() + 1);
    let maker = maker(table);
    let logs = ledger.logs.iter().map(|log| (&log.source, &log.topic));
    let logs = logs.chain(maker.iter().map(|(source, topic)| (source, topic)));
    for (source, topic) in logs.collect::<HashSet<_>>() {
        states.push(warehouse.topic_state(source, topic).await?);
    }
    Ok(follow_history(table, ledger, states.iter()))
}

/// Walks the table's history since the ledger was written: the message says that it has moved. A delete by another
/// engine settles what was uncertain, since what was erased must not come back.
fn follow_history<'a>(
    table: &LoadedTable,
    ledger: &mut Ledger,
    states: impl Iterator<Item = &'a TopicState>,
) -> Option<String> {
    let marks = states.filter_map(|state| state.high_water.get(&table.metadata.uuid()));
    match history::check(&table.metadata, ledger, marks.copied().max()) {
        history::History::Fine { rows_were_deleted } => {
            if rows_were_deleted {
                let partitions = ledger.logs.iter_mut().flat_map(|log| log.partitions.values_mut());
                partitions.for_each(PartitionLedger::settle_uncertain);
            }
            None
        }
        history::History::Moved(message) => Some(message),
    }
}

fn policy(state: &TopicState, scope: Option<&Scope>, policy: TopicPolicy) -> TopicPolicy {
    match scope {
        Some(scope) if (&state.source, &state.topic) == (&scope.source, &scope.topic) => TopicPolicy {
            commits: true,
            replay: scope.replay.unwrap_or(policy.replay),
            ..policy
        },
        _ => policy,
    }
}
