//! One commit: everything pending of a table becomes one snapshot, and the ledger moves with it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use bytes::Bytes;
use frazil_core::{Error, ErrorKind, Result, TableName, TimestampMs};
use iceberg::spec::{DataFile, MAIN_BRANCH};
use uuid::Uuid;

use crate::dead_letters;
use crate::descriptor::{Descriptor, Judgement};
use crate::inspect::KafkaFields;
use crate::layout::{LogName, Shelf};
use crate::ledger::Ledger;
use crate::metadata::{commit_time, rebuild, write_metadata};
use crate::outbox;
use crate::plan::{CommitPlan, Content, MAX_TAKEN, SuspendCause, Suspension, Take, Waiting};
use crate::properties;
use crate::sabotage::{self, Break};
use crate::snapshot::{FilesBySpec, SnapshotRetention, WrittenManifests, spec_of, stage_append};
use crate::topic_state::Cause;
use crate::trim::{FileContext, schema_of};
use crate::warehouse::{LoadedTable, Warehouse, iceberg_error};

mod change;
mod history;
mod listing;
mod metadata_log;
mod survey;

pub use change::change_ledger;
pub(crate) use change::{WhenMoved, change_table, has_landed, history_moved};
pub(crate) use listing::{move_descriptor, read_descriptors};
pub(crate) use survey::{Scope, Survey, moved};

/// How often one commit starts again when others are first, before the next run takes over.
const MAX_ATTEMPTS: u32 = 16;

/// How many commits one run makes of a table at most: each takes what the one before left comparable.
const MAX_ROUNDS: u32 = 64;

/// How a table is committed.
#[derive(Debug, Clone, Copy)]
pub struct CommitSettings {
    /// At most so many descriptors per commit.
    pub max_taken: usize,
    /// Which snapshots stay.
    pub snapshots: SnapshotRetention,
    /// How long a metadata.json that was replaced stays: a reader or a mirror may hold it.
    pub keep_metadata_for: Duration,
}

impl Default for CommitSettings {
    fn default() -> Self {
        Self {
            max_taken: MAX_TAKEN,
            snapshots: SnapshotRetention::default(),
            keep_metadata_for: Duration::from_secs(6 * 3_600),
        }
    }
}

/// What a run did to a table.
#[derive(Debug, Clone, Default)]
pub struct CommitReport {
    /// The commits that it made, oldest first.
    pub commits: Vec<Committed>,
    /// Descriptors found to be redeliveries, and kept among the dropped ones.
    pub dropped: Vec<(Uuid, Judgement)>,
    /// Descriptors moved aside, and why.
    pub quarantined: Vec<(Uuid, String)>,
    /// Descriptors that cannot be read, and why: they stop their partitions.
    pub unreadable: Vec<(Uuid, String)>,
    /// Topics that a person must decide about.
    pub suspended: Vec<Suspension>,
    /// Claims that stay pending.
    pub waiting: Vec<Waiting>,
    /// Dead letters that reached their table.
    pub dead_letters: u64,
    /// How often somebody else was first.
    pub conflicts: u64,
    /// Holes that the ledger remembers after the run.
    pub holes: u64,
    /// The timestamp of the oldest record that became visible, as its producer or broker set it.
    pub oldest_taken: Option<TimestampMs>,
    /// When the oldest descriptor was staged that was taken.
    pub oldest_staged: Option<TimestampMs>,
}

/// One commit that landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The commit's number.
    pub commit: u64,
    /// The snapshot, if rows were added.
    pub snapshot_id: Option<i64>,
    /// Data files added.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
    /// Rows added.
    pub rows: u64,
    /// Dead letters accepted.
    pub dead_letters: u64,
    /// Descriptors taken, in whole or in part.
    pub descriptors: u64,
}

/// Commits what is pending of a table, until nothing more can be taken. Safe beside any number of other committers,
/// ingests and engines. O(pending) plus one bounded metadata.json per commit.
///
/// A crash anywhere only leaves work that the next run recognises as done.
pub async fn commit_table(
    warehouse: &Warehouse,
    name: &TableName,
    settings: &CommitSettings,
) -> Result<CommitReport> {
    commit_within(warehouse, name, settings, None).await
}

/// Commits what is pending of a table and in scope.
pub(crate) async fn commit_within(
    warehouse: &Warehouse,
    name: &TableName,
    settings: &CommitSettings,
    scope: Option<&Scope>,
) -> Result<CommitReport> {
    let mut report = CommitReport::default();
    for _ in 0..MAX_ROUNDS {
        let mut round = Round {
            warehouse,
            name,
            settings,
            scope,
            report: &mut report,
            staging: Staging::default(),
        };
        if !round.run().await? {
            break;
        }
    }
    // After the descriptors are gone: whose letters are in their table is never taken again, also when a person keeps a
    // pointer that fell back.
    let letters = name.dead_letters()?;
    report.dead_letters = outbox::deliver(warehouse, name, &letters).await?;
    Ok(report)
}

/// One commit in the making.
struct Round<'a> {
    warehouse: &'a Warehouse,
    name: &'a TableName,
    settings: &'a CommitSettings,
    scope: Option<&'a Scope>,
    report: &'a mut CommitReport,
    staging: Staging,
}

/// What an attempt has written and the next one can use again when its plan is equal.
#[derive(Default)]
struct Staging {
    take: Vec<Take>,
    snapshot_id: i64,
    files: FilesBySpec,
    letters: Vec<DataFile>,
    manifests: WrittenManifests,
}

/// A commit whose files are written.
struct StagedCommit {
    location: String,
    metadata: iceberg::spec::TableMetadata,
    committed: Committed,
    /// Metadata files that nothing refers to any more once this is committed.
    outlived: Vec<String>,
}

impl Round<'_> {
    /// Commits once; says whether another round may find more.
    async fn run(&mut self) -> Result<bool> {
        let mut decided: Option<CommitPlan> = None;
        for attempt in 0..MAX_ATTEMPTS {
            if attempt > 0 {
                self.report.conflicts += 1;
                let (base, limit) = (Duration::from_millis(50), Duration::from_secs(5));
                self.warehouse.environment.backoff(attempt, base, limit).await;
            }
            let Some(mut known) = Survey::read(self.warehouse, self.name).await? else {
                return Ok(false);
            };
            if self.stops_for_history(&known).await? {
                return Ok(false);
            }
            let plan = known
                .plan(self.warehouse, self.scope, self.settings.max_taken)
                .await?;
            let plan = decided.take().unwrap_or(plan);
            self.set_aside(&known, &plan).await?;
            if !plan.changes_ledger {
                self.finish(&known, &plan, None).await?;
                return Ok(false);
            }
            let staged = self.stage(&known, &plan).await?;
            if sabotage::is(Break::DeletedBeforeSwap) {
                self.delete_settled(&known, &plan, &[]).await?;
            }
            let table = &known.table;
            let swap =
                self.warehouse
                    .catalog
                    .swap(&table.name, &table.pointer, &staged.location, &staged.metadata);
            match swap.await {
                Ok(()) => {
                    if sabotage::is(Break::LedgerOutsideSwap) {
                        let named = |ledger: &mut Ledger| {
                            ledger.logs.clone_from(&plan.ledger.logs);
                            ledger.settled.clone_from(&plan.ledger.settled);
                            Ok(true)
                        };
                        change_ledger(self.warehouse, self.name, named).await?;
                    }
                    self.finish(&known, &plan, Some(staged)).await?;
                    return Ok(true);
                }
                Err(_) if sabotage::is(Break::LostAnswerIsFailure) => {
                    self.warehouse.storage.delete(&[staged.location]).await?;
                }
                Err(error) if self.has_landed(&staged).await? => {
                    tracing::info!(table = %self.name, %error, "swap landed although its answer did not say so");
                    self.finish(&known, &plan, Some(staged)).await?;
                    return Ok(true);
                }
                Err(error) => {
                    tracing::info!(table = %self.name, attempt, %error, "swap lost, starting again");
                    decided = sabotage::is(Break::DecisionReused).then_some(plan);
                }
            }
        }
        Err(Error::new(
            ErrorKind::Conflict,
            "commit the table",
            format!("others were first {MAX_ATTEMPTS} times"),
        )
        .with_context("table", self.name)
        .with_hint("what is pending stays; the next run tries again"))
    }

    /// Whether the table's history has moved: then its topics are suspended.
    async fn stops_for_history(&mut self, known: &Survey) -> Result<bool> {
        let Some(message) = &known.moved else {
            return Ok(false);
        };
        for state in known.states.values() {
            let (source, topic) = (&state.source, &state.topic);
            let cause = Cause::Commit(SuspendCause::History);
            self.warehouse.suspend(source, topic, cause, message).await?;
            self.report.suspended.push(Suspension {
                log: LogName {
                    source: source.clone(),
                    topic: topic.clone(),
                    epoch: state.epoch,
                },
                cause: SuspendCause::History,
                descriptor: Uuid::nil(),
                partition: None,
                message: message.clone(),
            });
        }
        Ok(true)
    }

    /// What must be durable before the swap: suspensions, quarantine, and copies of what is dropped.
    async fn set_aside(&mut self, known: &Survey, plan: &CommitPlan) -> Result<()> {
        for suspension in &plan.suspend {
            let cause = Cause::Commit(suspension.cause);
            let (source, topic) = (&suspension.log.source, &suspension.log.topic);
            self.warehouse
                .suspend(source, topic, cause, &suspension.message)
                .await?;
        }
        let uuid = known.table.metadata.uuid();
        let layout = &self.warehouse.layout;
        for (id, reason) in &plan.quarantine {
            let Some(listed) = known.descriptors.iter().find(|listed| listed.id == *id) else {
                continue;
            };
            tracing::warn!(table = %self.name, descriptor = %id, reason, "descriptor quarantined");
            listing::move_descriptor(
                self.warehouse,
                uuid,
                &listed.log,
                *id,
                Shelf::Pending,
                Shelf::Quarantine,
            )
            .await?;
        }
        for (id, judgement) in &plan.dropped {
            let Some(descriptor) = known.descriptor(*id) else {
                continue;
            };
            let copy = Descriptor {
                judgement: Some(*judgement),
                ..descriptor.clone()
            };
            let location = layout.descriptor(Shelf::Dropped, uuid, &copy.log(), *id);
            let attributes = copy.attributes();
            self.warehouse
                .storage
                .put(&location, Bytes::from(copy.to_json()?), Some(&attributes))
                .await?;
        }
        Ok(())
    }

    /// Writes everything that the new metadata names, and the metadata.
    async fn stage(&mut self, known: &Survey, plan: &CommitPlan) -> Result<StagedCommit> {
        let table = &known.table;
        let now = commit_time(self.warehouse.environment.now(), &table.metadata);
        if self.staging.snapshot_id == 0 || self.staging.take != plan.take {
            self.staging = self.stage_files(known, plan).await?;
        }
        let snapshot_id = self.staging.snapshot_id;
        let mut ledger = plan.ledger.clone();
        ledger.commit = known.ledger.commit + 1;
        ledger.written_at = now;
        let letters_name = table.name.dead_letters()?;
        ledger.outbox = outbox::untaken(self.warehouse, &letters_name, &known.ledger).await?;
        let letters: u64 = self.staging.letters.iter().map(DataFile::record_count).sum();
        if !self.staging.letters.is_empty() {
            let letters_table = dead_letters::ensure(self.warehouse, &letters_name).await?;
            let uuid = table.metadata.uuid();
            let files = &self.staging.letters;
            let entry = outbox::write_list(self.warehouse, uuid, snapshot_id, &letters_table, files).await?;
            if sabotage::is(Break::LettersByThemselves) {
                outbox::deliver_alone(self.warehouse, &letters_table, &entry).await?;
            } else {
                ledger.outbox.push(entry);
            }
        }
        let has_rows = !self.staging.files.is_empty();
        if has_rows {
            ledger.snapshot_id = Some(snapshot_id);
            ledger.sequence_number = table.metadata.next_sequence_number();
        } else {
            ledger.snapshot_id = table.metadata.current_snapshot_id();
            ledger.sequence_number = table
                .metadata
                .current_snapshot()
                .map_or(0, |s| s.sequence_number());
        }
        let (ledger_location, mut properties) = write_ledger(self.warehouse, &ledger).await?;
        let keep_for = self.settings.keep_metadata_for;
        let length = metadata_log::length(&table.metadata, now, keep_for).to_string();
        properties.insert(metadata_log::LENGTH_PROPERTY.to_owned(), length);
        if sabotage::is(Break::LedgerOutsideSwap) {
            properties.clear();
        }
        let failed = |error| iceberg_error("build the table's metadata", error);
        let mut builder = rebuild(table).set_properties(properties).map_err(failed)?;
        if has_rows {
            let summary = [
                (properties::SUMMARY_LEDGER.to_owned(), ledger_location),
                (properties::SUMMARY_COMMIT.to_owned(), ledger.commit.to_string()),
            ];
            let Staging { files, manifests, .. } = &mut self.staging;
            let summary = HashMap::from(summary);
            let staged =
                stage_append(self.warehouse, table, snapshot_id, files, summary, now, manifests).await?;
            let expired = self.settings.snapshots.expired(&table.metadata, now);
            builder = builder
                .set_branch_snapshot(staged.snapshot, MAIN_BRANCH)
                .map_err(failed)?
                .remove_snapshots(&expired);
        }
        let (location, metadata) = write_metadata(self.warehouse, builder, Some(table), now).await?;
        let files = || self.staging.files.values().flatten();
        let committed = Committed {
            commit: ledger.commit,
            snapshot_id: has_rows.then_some(snapshot_id),
            files: files().count() as u64,
            bytes: files().map(DataFile::file_size_in_bytes).sum(),
            rows: files().map(DataFile::record_count).sum(),
            dead_letters: letters,
            descriptors: plan.take.len() as u64,
        };
        let outlived = metadata_log::outlived(&table.metadata, &metadata, now, keep_for);
        Ok(StagedCommit {
            location,
            metadata,
            committed,
            outlived,
        })
    }

    /// The files of everything taken, cut where only a part is.
    async fn stage_files(&self, known: &Survey, plan: &CommitPlan) -> Result<Staging> {
        let mut staging = Staging {
            take: plan.take.clone(),
            snapshot_id: outbox::new_snapshot_id(self.warehouse),
            ..Staging::default()
        };
        let metadata = &known.table.metadata;
        let kafka = KafkaFields::of(&known.ledger.fields)?;
        let mut letters_table: Option<LoadedTable> = None;
        for take in &plan.take {
            let descriptor = known.descriptor(take.id).ok_or_else(|| {
                Error::new(
                    ErrorKind::Internal,
                    "stage a commit",
                    "the plan takes what was not listed",
                )
                .with_context("descriptor", take.id)
            })?;
            let schema = schema_of(metadata, descriptor.schema_id)?;
            let spec = spec_of(metadata, descriptor.partition_spec_id)?;
            let rows = FileContext {
                warehouse: self.warehouse,
                schema: &schema,
                spec: &spec,
                partition_field: kafka.partition,
                offset_field: kafka.offset,
                location: metadata.location(),
            };
            let files = rows
                .accepted_files(descriptor, &descriptor.files, &take.accepted)
                .await?;
            if !files.is_empty() {
                staging
                    .files
                    .entry(descriptor.partition_spec_id)
                    .or_default()
                    .extend(files);
            }
            if let Some(letters) = &descriptor.dead_letters {
                let table = match &mut letters_table {
                    Some(table) if table.name == letters.table => table,
                    table => table.insert(dead_letters::ensure(self.warehouse, &letters.table).await?),
                };
                let schema = dead_letters::schema();
                let spec = spec_of(&table.metadata, 0)?;
                let location = table.metadata.location();
                let rows = FileContext::of_dead_letters(self.warehouse, &schema, &spec, location);
                staging.letters.extend(
                    rows.accepted_files(descriptor, &letters.files, &take.accepted)
                        .await?,
                );
            }
        }
        Ok(staging)
    }

    async fn has_landed(&self, staged: &StagedCommit) -> Result<bool> {
        let (uuid, snapshot_id) = (staged.metadata.uuid(), staged.committed.snapshot_id);
        change::has_landed(self.warehouse, self.name, uuid, &staged.location, snapshot_id).await
    }

    /// After the swap, or when none was needed: the high-water mark, then the descriptors that are settled.
    async fn finish(
        &mut self,
        known: &Survey,
        plan: &CommitPlan,
        staged: Option<StagedCommit>,
    ) -> Result<()> {
        let uuid = known.table.metadata.uuid();
        // Also for what an earlier run committed and did not note, if it crashed: once the descriptors are gone, the
        // mark is all that shows a pointer which falls back behind that commit.
        let seen = staged.as_ref().map(|staged| staged.committed.commit);
        let seen = seen.or((!plan.settled.is_empty()).then_some(known.written.commit));
        if let Some(seen) = seen {
            for state in known.states.values() {
                let (source, topic) = (&state.source, &state.topic);
                self.warehouse.raise_high_water(source, topic, uuid, seen).await?;
            }
        }
        let outlived = staged.as_ref().map(|staged| staged.outlived.as_slice());
        self.delete_settled(known, plan, outlived.unwrap_or_default())
            .await?;
        self.report.dropped.extend(plan.dropped.iter().copied());
        self.report.quarantined.extend(plan.quarantine.iter().cloned());
        self.report.suspended.extend(plan.suspend.iter().cloned());
        self.report.waiting.clone_from(&plan.waiting);
        let unreadable = known
            .descriptors
            .iter()
            .filter_map(|listed| match &listed.content {
                Content::Unreadable { reason, .. } => Some((listed.id, reason.clone())),
                Content::Read(_) => None,
            });
        self.report.unreadable = unreadable.collect();
        if staged.is_some() {
            for taken in plan.take.iter().filter_map(|take| known.descriptor(take.id)) {
                let staged_at = self.report.oldest_staged.get_or_insert(taken.staged_at);
                *staged_at = taken.staged_at.min(*staged_at);
                for oldest in taken.claims.iter().filter_map(|claim| claim.oldest) {
                    let known = self.report.oldest_taken.get_or_insert(oldest);
                    *known = oldest.min(*known);
                }
            }
        }
        let partitions = plan.ledger.logs.iter().flat_map(|log| log.partitions.values());
        self.report.holes = partitions.map(|partition| partition.holes.len() as u64).sum();
        self.report.commits.extend(staged.map(|staged| staged.committed));
        Ok(())
    }

    /// Deletes descriptors that are settled, and metadata files that nothing refers to any more.
    async fn delete_settled(&self, known: &Survey, plan: &CommitPlan, outlived: &[String]) -> Result<()> {
        let uuid = known.table.metadata.uuid();
        let settled: HashSet<&Uuid> = plan.settled.iter().collect();
        let mut locations: Vec<String> = known
            .descriptors
            .iter()
            .filter(|listed| settled.contains(&listed.id))
            .map(|listed| {
                self.warehouse
                    .layout
                    .descriptor(Shelf::Pending, uuid, &listed.log, listed.id)
            })
            .collect();
        locations.extend(outlived.iter().cloned());
        if locations.is_empty() {
            return Ok(());
        }
        self.warehouse.storage.delete(&locations).await
    }
}

/// Writes a ledger file and returns its location and the table properties that name it.
pub(crate) async fn write_ledger(
    warehouse: &Warehouse,
    ledger: &Ledger,
) -> Result<(String, HashMap<String, String>)> {
    let (bytes, checksum) = ledger.to_json()?;
    let id = warehouse.environment.new_uuid();
    let location = warehouse.layout.ledger(ledger.table_uuid, ledger.commit, id);
    warehouse.storage.put(&location, Bytes::from(bytes), None).await?;
    let properties = BTreeMap::from([
        (properties::LEDGER, location.clone()),
        (properties::LEDGER_SHA256, checksum),
    ]);
    let properties = properties
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
    Ok((location, properties))
}
