use std::collections::{BTreeMap, BTreeSet};

use super::{Content, Id, Record, Shared, World};

/// A row that a reader of the table sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VisibleRow {
    /// `_kafka_epoch`.
    pub epoch: i32,
    /// `_kafka_partition`.
    pub partition: i32,
    /// `_kafka_offset`.
    pub offset: i64,
    /// What else it says; see [`fingerprint`](super::fingerprint()).
    pub fingerprint: u64,
}

/// Recorded holes, as `[first, last]` by epoch and partition.
pub type Holes = BTreeMap<(i32, i32), Vec<(i64, i64)>>;

/// What a reader sees of a table.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Its rows, in any order.
    pub rows: Vec<VisibleRow>,
    /// Holes that are recorded with these rows: what may still be filled. `None` when the reader does not know.
    pub holes: Option<Holes>,
}

/// How much must be in the table at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    /// Every acknowledged record, in the table or wherever else it may be.
    Acknowledged,
    /// Every record that is still in the current life's log, in the table or in dead letters.
    Everything,
}

/// Holds a table against the world, step by step.
pub struct Oracle {
    world: Shared<World>,
    /// Which lives of the topic an epoch may hold rows of. More than one only after a person answered wrongly.
    lives: BTreeMap<i32, Vec<usize>>,
    rows: BTreeMap<(i32, i32, i64), u64>,
    highest: BTreeMap<(i32, i32), i64>,
    holes: Option<Holes>,
    dead_letters: BTreeSet<(i32, i32, i64)>,
}

impl Oracle {
    /// Epoch 0 is the topic's first life.
    pub fn new(world: Shared<World>) -> Self {
        Self {
            world,
            lives: BTreeMap::from([(0, vec![0])]),
            rows: BTreeMap::new(),
            highest: BTreeMap::new(),
            holes: None,
            dead_letters: BTreeSet::new(),
        }
    }

    /// From now on, the epoch may hold rows of this life.
    pub fn allow(&mut self, epoch: i32, life: usize) {
        let lives = self.lives.entry(epoch).or_default();
        if !lives.contains(&life) {
            lives.push(life);
        }
    }

    /// History has moved, or the table is a new one: what was visible need not be so any more.
    pub fn forget(&mut self) {
        self.rows.clear();
        self.highest.clear();
        self.holes = None;
        self.dead_letters.clear();
    }

    /// How many rows were visible last.
    pub fn visible(&self) -> usize {
        self.rows.len()
    }

    /// The table has changed: no row twice (I2), none gone (I1), none that the log does not have, none before its
    /// turn unless a hole was recorded (I3).
    pub fn observe(&mut self, view: &View) -> Result<(), String> {
        let mut rows = BTreeMap::new();
        for row in &view.rows {
            let key = (row.epoch, row.partition, row.offset);
            if rows.insert(key, row.fingerprint).is_some() {
                return Err(format!("I2: {} is visible twice", describe(key)));
            }
        }
        if let Some(gone) = self.rows.keys().find(|key| !rows.contains_key(*key)) {
            return Err(format!("I1: {} was visible and is no more", describe(*gone)));
        }
        let mut highest = self.highest.clone();
        for (key, fingerprint) in &rows {
            if let Some(before) = self.rows.get(key) {
                if before != fingerprint {
                    return Err(format!("I6: {} now says something else", describe(*key)));
                }
                continue;
            }
            self.matches_log(*key, *fingerprint)?;
            let (epoch, partition, offset) = *key;
            let known = self.highest.get(&(epoch, partition)).copied().unwrap_or(-1);
            if offset < known && !self.was_hole(*key) {
                return Err(format!(
                    "I3: {} became visible after offset {known}, and no hole was recorded there",
                    describe(*key)
                ));
            }
            let highest = highest.entry((epoch, partition)).or_insert(-1);
            *highest = (*highest).max(offset);
        }
        self.rows = rows;
        self.highest = highest;
        self.holes.clone_from(&view.holes);
        Ok(())
    }

    /// The dead-letter table has changed: none twice, and only records that cannot be read.
    pub fn observe_dead_letters(&mut self, letters: &[VisibleRow]) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for letter in letters {
            let key = (letter.epoch, letter.partition, letter.offset);
            if !seen.insert(key) {
                return Err(format!("I2: {} is in dead letters twice", describe(key)));
            }
            let poison = |record: &Record| record.content == Content::Poison;
            if !self.candidates(key).iter().any(|(_, record)| poison(record)) {
                return Err(format!("{} is in dead letters, but can be read", describe(key)));
            }
        }
        if let Some(gone) = self.dead_letters.difference(&seen).next() {
            return Err(format!(
                "I1: {} was in dead letters and is no more",
                describe(*gone)
            ));
        }
        self.dead_letters = seen;
        Ok(())
    }

    /// All is quiet. `kept` says whether a record is somewhere else where it may be: parked, dropped, quarantined.
    pub fn settle(
        &self,
        completeness: Completeness,
        kept: impl Fn(Id, &Record) -> bool,
    ) -> Result<(), String> {
        let world = self.world.borrow();
        let required: Vec<Id> = match completeness {
            Completeness::Acknowledged => world.acknowledged().iter().copied().collect(),
            Completeness::Everything => {
                let all = world.records(world.life());
                all.filter(|(_, record)| !record.gone).map(|(id, _)| id).collect()
            }
        };
        for id in required {
            let Some(record) = world.record(id) else {
                return Err(format!("the world has no record {id:?}"));
            };
            if self.holds(id, record) || kept(id, record) {
                continue;
            }
            let Id {
                life,
                partition,
                offset,
            } = id;
            let said = if world.acknowledged().contains(&id) {
                "acknowledged"
            } else {
                "delivered"
            };
            return Err(format!(
                "I1: offset {offset} of partition {partition} in life {life} was {said} and is nowhere: {:?}",
                record.content
            ));
        }
        Ok(())
    }

    /// Whether the table or dead letters hold the record, under an epoch of its life.
    fn holds(&self, id: Id, record: &Record) -> bool {
        let epochs = self.lives.iter().filter(|(_, lives)| lives.contains(&id.life));
        let mut keys = epochs.map(|(epoch, _)| (*epoch, id.partition, id.offset));
        match record.fingerprint() {
            Some(fingerprint) => keys.any(|key| self.rows.get(&key) == Some(&fingerprint)),
            None => keys.any(|key| self.dead_letters.contains(&key)),
        }
    }

    fn candidates(&self, (epoch, partition, offset): (i32, i32, i64)) -> Vec<(usize, Record)> {
        let world = self.world.borrow();
        let lives = self.lives.get(&epoch).into_iter().flatten();
        lives
            .filter_map(|life| {
                let record = world.record(Id {
                    life: *life,
                    partition,
                    offset,
                })?;
                Some((*life, record.clone()))
            })
            .collect()
    }

    fn matches_log(&self, key: (i32, i32, i64), fingerprint: u64) -> Result<(), String> {
        let candidates = self.candidates(key);
        if candidates.is_empty() {
            return Err(format!(
                "{} is visible, but no log of that epoch has it",
                describe(key)
            ));
        }
        if candidates
            .iter()
            .any(|(_, record)| record.fingerprint() == Some(fingerprint))
        {
            return Ok(());
        }
        let logs: Vec<String> = candidates
            .iter()
            .map(|(life, record)| format!("life {life} has {:?}", record.content))
            .collect();
        Err(format!(
            "I8: {} does not say what its log says: {}",
            describe(key),
            logs.join(", ")
        ))
    }

    fn was_hole(&self, (epoch, partition, offset): (i32, i32, i64)) -> bool {
        match &self.holes {
            None => true,
            Some(holes) => holes.get(&(epoch, partition)).is_some_and(|holes| {
                holes
                    .iter()
                    .any(|(first, last)| (first..=last).contains(&&offset))
            }),
        }
    }
}

fn describe((epoch, partition, offset): (i32, i32, i64)) -> String {
    format!("offset {offset} of partition {partition} in epoch {epoch}")
}
