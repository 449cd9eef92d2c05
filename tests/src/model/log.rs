use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::fingerprint;
use crate::simulation::Dice;

/// One record, for ever: which life of the topic, which partition, which offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Counts the lives from 0.
    pub life: usize,
    /// The partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
}

/// A Kafka record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its offset.
    pub offset: i64,
    /// Milliseconds; −1 when it has none.
    pub timestamp_ms: i64,
    /// Its key.
    pub key: Option<String>,
    /// Its value as bytes; `None` for a tombstone.
    pub value: Option<Vec<u8>>,
    /// What a reader should make of it.
    pub content: Content,
    /// Compacted away: nobody will be given it any more.
    pub gone: bool,
}

/// What a record's value means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Columns and their values, as text.
    Row(Vec<(String, String)>),
    /// No row, on purpose.
    Tombstone,
    /// Cannot be read.
    Poison,
}

impl Record {
    /// What a table should say of it; `None` when it has no place in a table.
    pub fn fingerprint(&self) -> Option<u64> {
        let columns = match &self.content {
            Content::Row(columns) => columns.as_slice(),
            Content::Tombstone => &[],
            Content::Poison => return None,
        };
        let timestamp = (self.timestamp_ms != -1).then_some(self.timestamp_ms);
        let columns = columns
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        Some(fingerprint(timestamp, self.key.as_deref(), columns))
    }
}

/// A partition in one life of its topic.
#[derive(Debug, Clone, Default)]
pub struct Log {
    records: BTreeMap<i64, Record>,
    end: i64,
}

impl Log {
    /// The offset that the next record gets.
    pub fn end(&self) -> i64 {
        self.end
    }

    /// Appends a record; `skipped` offsets before it belong to transaction markers or aborted records.
    pub fn append(&mut self, skipped: i64, record: impl FnOnce(i64) -> Record) {
        let offset = self.end + skipped;
        self.records.insert(offset, record(offset));
        self.end = offset + 1;
    }

    /// A transaction marker at the end: an offset that never has a record.
    pub fn mark(&mut self) {
        self.end += 1;
    }

    /// At most `count` records from this offset on, as Kafka would give them now.
    pub fn fetch(&self, from: i64, count: usize) -> Vec<Record> {
        self.present(from).take(count).cloned().collect()
    }

    /// Whether there is something to fetch.
    pub fn has_more(&self, from: i64) -> bool {
        self.present(from).next().is_some()
    }

    fn present(&self, from: i64) -> impl Iterator<Item = &Record> {
        self.records
            .range(from..)
            .map(|(_, record)| record)
            .filter(|record| !record.gone)
    }

    /// Everything that ever was.
    pub fn all(&self) -> impl Iterator<Item = &Record> {
        self.records.values()
    }

    /// The record that is or was at this offset.
    pub fn at(&self, offset: i64) -> Option<&Record> {
        self.records.get(&offset)
    }

    /// Compacts: each record but the last may be gone with this probability.
    pub fn compact(&mut self, dice: &Dice, probability: f64) {
        let last = self.end - 1;
        for record in self.records.values_mut() {
            if record.offset < last && dice.chance(probability) {
                record.gone = true;
            }
        }
    }
}

/// A topic in all its lives, and what was promised about its records.
#[derive(Debug)]
pub struct World {
    topic: String,
    lives: Vec<Vec<Log>>,
    /// Answered with success.
    acknowledged: BTreeSet<Id>,
    /// Delivered in vain too often: (life, partition, first, last) of what Lambda gave up on.
    given_up: Vec<(usize, i32, i64, i64)>,
    producing: usize,
}

/// The actors of one simulation share the world.
pub type Shared<T> = Rc<RefCell<T>>;

/// Shares it.
pub fn share<T>(value: T) -> Shared<T> {
    Rc::new(RefCell::new(value))
}

impl World {
    /// A topic with empty partitions.
    pub fn new(topic: &str, partitions: usize) -> Self {
        Self {
            topic: topic.to_owned(),
            lives: vec![vec![Log::default(); partitions]],
            acknowledged: BTreeSet::new(),
            given_up: Vec::new(),
            producing: 0,
        }
    }

    /// The topic's name.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The life that the topic is in.
    pub fn life(&self) -> usize {
        self.lives.len() - 1
    }

    /// How many partitions it has now.
    pub fn partitions(&self) -> usize {
        self.lives[self.life()].len()
    }

    /// A partition in a life.
    pub fn log(&self, life: usize, partition: i32) -> Option<&Log> {
        self.lives.get(life)?.get(usize::try_from(partition).ok()?)
    }

    /// A partition as it is now, to append to.
    pub fn current(&mut self, partition: i32) -> Option<&mut Log> {
        self.lives.last_mut()?.get_mut(usize::try_from(partition).ok()?)
    }

    /// The record with this id.
    pub fn record(&self, id: Id) -> Option<&Record> {
        self.log(id.life, id.partition)?.at(id.offset)
    }

    /// Every record of a life.
    pub fn records(&self, life: usize) -> impl Iterator<Item = (Id, &Record)> {
        self.lives
            .get(life)
            .into_iter()
            .flatten()
            .zip(0..)
            .flat_map(move |(log, partition)| {
                log.all().map(move |record| {
                    (
                        Id {
                            life,
                            partition,
                            offset: record.offset,
                        },
                        record,
                    )
                })
            })
    }

    /// Deletes the topic and makes it anew. The first `repeated` records of each partition come again, byte by byte
    /// and with their old timestamps: as from a restored backup, or a producer that starts over.
    pub fn recreate(&mut self, repeated: usize) {
        let life = self.lives[self.life()].iter().map(|old| {
            let mut log = Log::default();
            for record in old.all().take(repeated) {
                let record = record.clone();
                log.append(0, |offset| Record {
                    offset,
                    gone: false,
                    ..record
                });
            }
            log
        });
        let life = life.collect();
        self.lives.push(life);
    }

    /// Success was answered for these records.
    pub fn acknowledge(&mut self, ids: impl IntoIterator<Item = Id>) {
        self.acknowledged.extend(ids);
    }

    /// Everything that was answered with success.
    pub fn acknowledged(&self) -> &BTreeSet<Id> {
        &self.acknowledged
    }

    /// Lambda gave up on these.
    pub fn give_up(&mut self, life: usize, partition: i32, first: i64, last: i64) {
        self.given_up.push((life, partition, first, last));
    }

    /// Takes what Lambda gave up on, to replay it.
    pub fn take_given_up(&mut self) -> Vec<(usize, i32, i64, i64)> {
        std::mem::take(&mut self.given_up)
    }

    /// A producer starts or ends.
    pub fn producing(&mut self, started: bool) {
        self.producing = if started {
            self.producing + 1
        } else {
            self.producing.saturating_sub(1)
        };
    }

    /// Whether no more records will come.
    pub fn is_complete(&self) -> bool {
        self.producing == 0
    }
}
