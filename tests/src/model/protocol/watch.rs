use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use frazil_core::{Offset, Partition, TimestampMs};
use frazil_table::plan::LIVE_HOLE_AGE;
use frazil_table::{Descriptor, Judgement, Ledger, PartitionLedger, Shelf, properties};
use iceberg::spec::TableMetadata;
use uuid::Uuid;

use super::Backend;
use crate::model::{
    Columns, Completeness, Content, Holes, Id, Oracle, Shared, TableReader, View, VisibleRow, World,
};
use crate::simulation::MemoryStorage;

/// Looks at the tables whenever their pointers have moved, and names the promise that is broken.
pub struct Watch {
    world: Shared<World>,
    oracle: Oracle,
    rows: TableReader,
    letters: TableReader,
    seen: u64,
    table: Option<String>,
    letter_table: Option<String>,
    /// The dead letters that are in their table.
    delivered: BTreeSet<(i32, i32, i64)>,
    /// Source path → field id, per table (promise I8).
    fields: BTreeMap<Uuid, BTreeMap<String, i32>>,
    visible: Vec<VisibleRow>,
    /// Acknowledged records that a person or another engine took away.
    excused: BTreeSet<Id>,
    /// What was visible before history moved, until somebody decided.
    rolled_back: Option<Vec<VisibleRow>>,
    keeps: bool,
    dropped: bool,
    /// Somebody said “these are the same records”, rightly or not.
    replayed: bool,
    epochs: i32,
    /// Counts deliveries and successes, to tell what came before what.
    moment: u64,
    first_delivered: BTreeMap<Id, u64>,
    succeeded: BTreeMap<Id, u64>,
    /// The ledger that the table had before.
    ledger: Option<Ledger>,
    /// The rows that it had then.
    before: BTreeSet<(i32, i32, i64)>,
    deletions: u64,
}

impl Watch {
    pub(super) fn new(world: Shared<World>, backend: &Backend) -> Self {
        let reader = |columns| {
            let storage: MemoryStorage = backend.storage.clone();
            TableReader::new(columns, Box::new(move |location| storage.peek(location)))
        };
        Self {
            oracle: Oracle::new(Rc::clone(&world)),
            world,
            rows: reader(Columns::TABLE),
            letters: reader(Columns::DEAD_LETTERS),
            seen: 0,
            table: None,
            letter_table: None,
            delivered: BTreeSet::new(),
            fields: BTreeMap::new(),
            visible: Vec::new(),
            excused: BTreeSet::new(),
            rolled_back: None,
            keeps: false,
            dropped: false,
            replayed: false,
            epochs: 0,
            moment: 0,
            first_delivered: BTreeMap::new(),
            succeeded: BTreeMap::new(),
            ledger: None,
            before: BTreeSet::new(),
            deletions: 0,
        }
    }

    /// How many rows are in the table.
    pub fn visible(&self) -> usize {
        self.visible.len()
    }

    /// An invocation begins with these records.
    pub(super) fn delivers(&mut self, ids: &[Id]) {
        self.moment += 1;
        for id in ids {
            self.first_delivered.entry(*id).or_insert(self.moment);
        }
    }

    /// It ended with success for these.
    pub(super) fn succeeds(&mut self, ids: &[Id]) {
        self.moment += 1;
        for id in ids {
            self.succeeded.entry(*id).or_insert(self.moment);
        }
    }

    /// The topic was made anew.
    pub(super) fn recreated(&mut self) {
        self.allow_all();
    }

    /// Somebody adopts: there may be one more epoch.
    pub(super) fn adopts(&mut self) {
        self.epochs += 1;
        self.allow_all();
    }

    /// Where a group stands in the middle of a new log nobody can tell it from the old one, and what is unclear may be
    /// answered wrongly: neither may lose a record.
    fn allow_all(&mut self) {
        let lives = self.world.borrow().life();
        for epoch in 0..=self.epochs {
            (0..=lives).for_each(|life| self.oracle.allow(epoch, life));
        }
    }

    /// Another engine or a restored catalog takes the table back.
    pub(super) fn history_moves(&mut self) {
        self.oracle.forget();
        // Dead letters are looked at anew: the oracle has forgotten them, too.
        self.letter_table = None;
        self.rolled_back = Some(self.visible.clone());
        self.ledger = None;
        self.fields.clear();
    }

    /// Somebody chose that what is there now holds.
    pub(super) fn keeps_present(&mut self) {
        self.keeps = true;
        let gone = self.rolled_back.take().unwrap_or_default();
        let gone: BTreeSet<(i32, i64)> = gone.iter().map(|row| (row.partition, row.offset)).collect();
        let world = self.world.borrow();
        let acknowledged = world.acknowledged().iter().copied();
        self.excused.extend(acknowledged.filter(|id| {
            let poison = world
                .record(*id)
                .is_some_and(|record| record.content == Content::Poison);
            poison || gone.contains(&(id.partition, id.offset))
        }));
    }

    pub(super) fn keeps(&self) -> bool {
        self.keeps
    }

    /// Another engine dropped the table.
    pub(super) fn table_dropped(&mut self) {
        self.dropped = true;
        self.oracle.forget();
        self.delivered.clear();
        self.letter_table = None;
        self.table = None;
        self.ledger = None;
        self.visible.clear();
        self.excused
            .extend(self.world.borrow().acknowledged().iter().copied());
    }

    /// Somebody announces that the group was reset.
    pub(super) fn replays(&mut self) {
        self.replayed = true;
    }

    /// Whether the table may take records anew whose dead letters are already in their table: it was made anew, or its
    /// pointer and ledger fell back and somebody kept that. Dead letters may be there twice then.
    pub(super) fn takes_anew(&self) -> bool {
        self.dropped || self.keeps
    }

    /// Whether somebody dropped the table.
    pub(super) fn is_dropped(&self) -> bool {
        self.dropped
    }

    /// Looks, if a pointer has moved.
    pub(super) fn look(&mut self, backend: &Backend) -> Result<(), String> {
        let deletions = backend.storage.deletions();
        if std::mem::replace(&mut self.deletions, deletions) != deletions
            && let Some(pointer) = backend.catalog.peek(&backend.table)
            && !backend.storage.exists(&pointer.metadata_location)
        {
            return Err(format!(
                "I5: {} was deleted, and the table is there",
                pointer.metadata_location
            ));
        }
        let changes = backend.catalog.changes();
        if std::mem::replace(&mut self.seen, changes) == changes {
            return Ok(());
        }
        if let Some(pointer) = backend.catalog.peek(&backend.letters)
            && self.letter_table.as_ref() != Some(&pointer.metadata_location)
        {
            let metadata = self.letters.metadata(&pointer.metadata_location)?;
            let mut letters = self.letters.rows(&metadata)?;
            if self.takes_anew() {
                letters.sort_unstable();
                letters.dedup_by_key(|letter| (letter.epoch, letter.partition, letter.offset));
            }
            self.oracle.observe_dead_letters(&letters)?;
            let place = |letter: &VisibleRow| (letter.epoch, letter.partition, letter.offset);
            self.delivered = letters.iter().map(place).collect();
            self.letter_table = Some(pointer.metadata_location);
        }
        if let Some(pointer) = backend.catalog.peek(&backend.table)
            && self.table.as_ref() != Some(&pointer.metadata_location)
        {
            let metadata = self.rows.metadata(&pointer.metadata_location)?;
            let ledger = ledger(backend, &metadata)?;
            self.table = Some(pointer.metadata_location);
            self.look_at_table(&metadata, &ledger)?;
        }
        Ok(())
    }

    fn look_at_table(&mut self, metadata: &TableMetadata, ledger: &Ledger) -> Result<(), String> {
        let rows = self.rows.rows(metadata)?;
        self.visible.clone_from(&rows);
        self.fields_keep_meaning(metadata, ledger)?;
        if ledger.snapshot_id != metadata.current_snapshot_id() {
            // Rolled back, and nobody has decided yet.
            return match self.rolled_back {
                Some(_) => Ok(()),
                None => Err(format!(
                    "I4: the ledger is of snapshot {:?}, and `main` is at {:?}",
                    ledger.snapshot_id,
                    metadata.current_snapshot_id()
                )),
            };
        }
        agree(ledger, &rows)?;
        let undisturbed = !self.takes_anew() && self.rolled_back.is_none();
        if self.world.borrow().life() == 0 {
            self.nothing_is_missing(ledger, &rows)?;
            if undisturbed {
                self.holes_are_real(ledger)?;
            }
        } else if !self.replayed {
            self.old_holes_stay_shut(ledger, &rows)?;
        }
        self.ledger = Some(ledger.clone());
        self.before = rows
            .iter()
            .map(|row| (row.epoch, row.partition, row.offset))
            .collect();
        let view = View {
            rows,
            holes: Some(holes(ledger)),
        };
        self.oracle.observe(&view)
    }

    /// Field ids are never given away twice, and never change their path (I8).
    fn fields_keep_meaning(&mut self, metadata: &TableMetadata, ledger: &Ledger) -> Result<(), String> {
        let known = self.fields.entry(metadata.uuid()).or_default();
        let now: BTreeMap<String, i32> = ledger
            .fields
            .iter()
            .map(|(path, id)| (path.to_owned(), id))
            .collect();
        for (path, id) in known.iter() {
            if now.get(path) != Some(id) {
                return Err(format!("I8: `{path}` was field {id} and is {:?}", now.get(path)));
            }
        }
        let ids: BTreeSet<i32> = now.values().copied().collect();
        if ids.len() != now.len() {
            return Err(format!("I8: a field id has two meanings: {now:?}"));
        }
        if let Some((path, id)) = now
            .iter()
            .find(|(_, id)| metadata.current_schema().field_by_id(**id).is_none())
        {
            return Err(format!(
                "I8: the schema has no field {id}, which the ledger says is `{path}`"
            ));
        }
        *known = now;
        Ok(())
    }

    /// What the ledger says was taken is there (I1, I4). Only what Kafka still has: of what was compacted away nobody
    /// knows whether it was ever delivered.
    fn nothing_is_missing(&self, ledger: &Ledger, rows: &[VisibleRow]) -> Result<(), String> {
        let there: BTreeSet<(i32, i32, i64)> = rows
            .iter()
            .map(|row| (row.epoch, row.partition, row.offset))
            .collect();
        let world = self.world.borrow();
        for log in &ledger.logs {
            for (partition, taken) in &log.partitions {
                let (taken, partition) = (taken.taken(), partition.0);
                let Some(kafka) = world.log(0, partition) else {
                    continue;
                };
                for record in kafka.all().filter(|record| !record.gone) {
                    let place = (log.epoch.0, partition, record.offset);
                    let is_row = record.content != Content::Poison;
                    if is_row && taken.contains(Offset(record.offset)) && !there.contains(&place) {
                        return Err(format!(
                            "I1: the ledger took offset {} of partition {partition}, and it is not in the table",
                            record.offset
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// A hole is opened over nothing that was staged or parked before what comes after it was even delivered (I3).
    fn holes_are_real(&self, ledger: &Ledger) -> Result<(), String> {
        for log in &ledger.logs {
            for (partition, known) in &log.partitions {
                let before = self.partition_before(log.epoch.0, partition.0);
                let next_before = before.map_or(0, |before| before.next.0);
                let id = |offset| Id {
                    life: 0,
                    partition: partition.0,
                    offset,
                };
                for hole in &known.holes {
                    let (first, last) = (hole.range.first().0.max(next_before), hole.range.last().0);
                    // What opened it: the first record above it that was delivered.
                    let mut above = self.first_delivered.range(id(last + 1)..=id(known.next.0));
                    let Some((_, delivered)) = above.next().filter(|_| first <= last) else {
                        continue;
                    };
                    let mut inside = self.succeeded.range(id(first)..=id(last));
                    if let Some((lost, _)) = inside.find(|(_, succeeded)| *succeeded < delivered) {
                        return Err(format!(
                            "I3: a hole was opened over offset {} of partition {}, which was answered with success \
                             before what comes after it was delivered",
                            lost.offset, lost.partition
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// A hole of the old log is too old for live deliveries, which may be another log's.
    fn old_holes_stay_shut(&self, ledger: &Ledger, rows: &[VisibleRow]) -> Result<(), String> {
        let world = self.world.borrow();
        for row in rows.iter().filter(|row| row.epoch == 0) {
            if self.before.contains(&(row.epoch, row.partition, row.offset)) {
                continue;
            }
            let Some(before) = self.partition_before(0, row.partition) else {
                continue;
            };
            let now: TimestampMs = ledger.written_at;
            let shut = before.holes.iter().any(|hole| {
                hole.range.contains(Offset(row.offset)) && now.since(hole.opened_at) >= LIVE_HOLE_AGE
            });
            let old = world.log(0, row.partition).and_then(|log| log.at(row.offset));
            let is_old = old.is_some_and(|record| record.fingerprint() == Some(row.fingerprint));
            if shut && !is_old {
                return Err(format!(
                    "I2: offset {} of partition {} in epoch 0 is another log's, and fills an old hole",
                    row.offset, row.partition
                ));
            }
        }
        Ok(())
    }

    fn partition_before(&self, epoch: i32, partition: i32) -> Option<&PartitionLedger> {
        let logs = self.ledger.iter().flat_map(|ledger| &ledger.logs);
        let mut logs = logs.filter(|log| log.epoch.0 == epoch);
        logs.find_map(|log| log.partitions.get(&Partition(partition)))
    }

    /// What is still to be done, if anything.
    pub(super) fn left(&self, backend: &Backend) -> Option<String> {
        let mut left = backend.storage.locations(&backend.layout.all_parked());
        if let Some(pointer) = backend.catalog.peek(&backend.table)
            && let Ok(metadata) = self.rows.metadata(&pointer.metadata_location)
        {
            left.extend(
                backend
                    .storage
                    .locations(&backend.layout.descriptors(Shelf::Pending, metadata.uuid())),
            );
            let outbox = ledger(backend, &metadata)
                .map(|ledger| ledger.outbox)
                .unwrap_or_default();
            let undelivered = |id: i64| {
                let Some(letters) = &self.letter_table else {
                    return true;
                };
                let Ok(letters) = self.letters.metadata(letters) else {
                    return true;
                };
                let taken = letters.properties().get(properties::TAKEN_OUTBOX);
                !taken.is_some_and(|taken| taken.contains(&id.to_string()))
            };
            let waiting = outbox.iter().filter(|entry| undelivered(entry.snapshot_id));
            left.extend(waiting.map(|entry| entry.list.clone()));
        }
        left.first()
            .map(|first| format!("{} objects wait, the first is {first}", left.len()))
    }

    /// All is quiet: everything that was acknowledged is where it may be (I1), and every file that a snapshot refers
    /// to is there (I7).
    pub(super) fn judge(&mut self, backend: &Backend) -> Result<(), String> {
        self.look(backend)?;
        let kept = kept(backend, self.table_uuid(backend));
        let excused = &self.excused;
        self.oracle.settle(Completeness::Acknowledged, |id, record| {
            // What was compacted away before it was committed, and came again without it, is only among the dropped.
            let is_kept = |claim: &KeptClaim| {
                claim.partition == id.partition
                    && (claim.first..=claim.last).contains(&id.offset)
                    && (!claim.proved || record.gone)
            };
            excused.contains(&id) || kept.iter().any(is_kept)
        })?;
        for (reader, table) in [
            (&mut self.rows, &backend.table),
            (&mut self.letters, &backend.letters),
        ] {
            if let Some(pointer) = backend.catalog.peek(table) {
                let metadata = reader.metadata(&pointer.metadata_location)?;
                reader.check_references(&metadata)?;
            }
        }
        Ok(())
    }

    fn table_uuid(&self, backend: &Backend) -> Option<Uuid> {
        let pointer = backend.catalog.peek(&backend.table)?;
        let metadata = self.rows.metadata(&pointer.metadata_location).ok()?;
        Some(metadata.uuid())
    }
}

/// The ledger that the metadata names, checked (I4).
fn ledger(backend: &Backend, metadata: &TableMetadata) -> Result<Ledger, String> {
    let property = |key: &str| {
        let value = metadata.properties().get(key);
        value
            .cloned()
            .ok_or_else(|| format!("I4: the metadata has no property {key}"))
    };
    let (location, checksum) = (
        property(properties::LEDGER)?,
        property(properties::LEDGER_SHA256)?,
    );
    let bytes = backend.storage.peek(&location);
    let bytes = bytes.ok_or_else(|| format!("I4: the ledger {location} is named and missing"))?;
    let ledger = Ledger::from_json(&bytes, &checksum).map_err(|error| format!("I4: {error}"))?;
    if ledger.table_uuid != metadata.uuid() {
        return Err(format!("I4: the ledger is that of table {}", ledger.table_uuid));
    }
    Ok(ledger)
}

/// No row that the ledger does not know of, in the present epoch (I4).
fn agree(ledger: &Ledger, rows: &[VisibleRow]) -> Result<(), String> {
    for log in &ledger.logs {
        let present = rows.iter().filter(|row| row.epoch == log.epoch.0);
        for row in present {
            let partition = log.partitions.iter().find(|(of, _)| of.0 == row.partition);
            let known = partition.is_some_and(|(_, partition)| {
                let offset = Offset(row.offset);
                partition.taken().contains(offset) || partition.uncertain.contains(offset)
            });
            if !known {
                return Err(format!(
                    "I4: offset {} of partition {} in epoch {} is visible, and the ledger does not say that it was \
                     taken",
                    row.offset, row.partition, row.epoch
                ));
            }
        }
    }
    let newest = ledger.logs.iter().map(|log| log.epoch.0).max().unwrap_or(-1);
    match rows.iter().find(|row| row.epoch > newest) {
        Some(row) => Err(format!(
            "I4: a row of epoch {} is visible, and the ledger has none",
            row.epoch
        )),
        None => Ok(()),
    }
}

/// What may still be filled: holes, and what the ledger forgot.
fn holes(ledger: &Ledger) -> Holes {
    let mut holes = Holes::new();
    for log in &ledger.logs {
        for (partition, known) in &log.partitions {
            let ranges = known.holes.iter().map(|hole| hole.range);
            let ranges = ranges.chain(known.uncertain.ranges().iter().copied());
            let ranges = ranges.map(|range| (range.first().0, range.last().0)).collect();
            holes.insert((log.epoch.0, partition.0), ranges);
        }
    }
    holes
}

/// A claim of something that was set aside.
struct KeptClaim {
    partition: i32,
    first: i64,
    last: i64,
    /// Whether the table was said to hold the same.
    proved: bool,
}

/// What was set aside: drops, quarantine, and what was staged for a table that is gone.
fn kept(backend: &Backend, table: Option<Uuid>) -> Vec<KeptClaim> {
    let mut kept = Vec::new();
    for shelf in [Shelf::Dropped, Shelf::Quarantine, Shelf::Pending] {
        for location in backend.storage.locations(&backend.layout.shelf(shelf)) {
            let descriptor = backend.storage.peek(&location);
            let Some(Ok(descriptor)) = descriptor.map(|bytes| Descriptor::from_json(&bytes)) else {
                continue;
            };
            let counts = match shelf {
                Shelf::Dropped | Shelf::Quarantine => true,
                Shelf::Pending => Some(descriptor.table_uuid) != table,
            };
            let claims = descriptor.claims.iter().filter(|_| counts);
            kept.extend(claims.map(|claim| KeptClaim {
                partition: claim.partition.0,
                first: claim.range.first().0,
                last: claim.range.last().0,
                proved: descriptor.judgement == Some(Judgement::Proved),
            }));
        }
    }
    kept
}
