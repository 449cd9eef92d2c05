use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use frazil_core::{Environment, Result};
use futures::future::{Either, select};

use super::{Id, Record, Shared, World, event_json};
use crate::simulation::{Dice, Outcome, Spawner};

/// From this offset of this partition on, the batch is to come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemFailure {
    /// The partition.
    pub partition: i32,
    /// The first offset that failed.
    pub offset: i64,
}

/// The function that events are delivered to: success may name what failed.
pub type Deliver = Rc<dyn Fn(Bytes) -> Pin<Box<dyn Future<Output = Result<Vec<ItemFailure>>>>>>;

/// What the consumer group has committed.
#[derive(Debug)]
pub struct Group {
    life: usize,
    positions: Vec<i64>,
    in_flight: Vec<bool>,
    /// Moves when partitions are taken away: whoever holds an older one may not commit.
    generation: u64,
    /// Failures in a row, per partition.
    failures: Vec<u32>,
}

impl Group {
    /// Starts at the beginning of every partition.
    pub fn new(partitions: usize) -> Self {
        Self {
            life: 0,
            positions: vec![0; partitions],
            in_flight: vec![false; partitions],
            generation: 0,
            failures: vec![0; partitions],
        }
    }

    /// Somebody resets the group to the beginning.
    pub fn reset(&mut self) {
        self.positions.fill(0);
        self.fence();
    }

    /// The topic has been recreated: a position that is beyond its log starts over, as `auto.offset.reset=earliest`
    /// does; one within it stays, and the records before it are never delivered.
    pub fn follow(&mut self, world: &World) {
        if self.life == world.life() {
            return;
        }
        self.life = world.life();
        for (partition, position) in self.positions.iter_mut().enumerate() {
            let end = world.log(self.life, partition as i32).map_or(0, super::Log::end);
            if *position > end {
                *position = 0;
            }
        }
        self.fence();
    }

    /// Where the group is in a partition.
    pub fn position(&self, partition: i32) -> i64 {
        self.positions.get(partition as usize).copied().unwrap_or(0)
    }

    fn fence(&mut self) {
        self.generation += 1;
        self.in_flight.fill(false);
    }

    fn has_work(&self, world: &World) -> bool {
        let mut partitions = self.positions.iter().enumerate();
        partitions.any(|(partition, position)| {
            world
                .log(self.life, partition as i32)
                .is_some_and(|log| log.has_more(*position))
        })
    }
}

/// How an event source behaves.
#[derive(Debug, Clone)]
pub struct SourceOptions {
    /// The most records of a partition in one event.
    pub longest_batch: u64,
    /// The chance that an invocation is abandoned long before it ends.
    pub impatience: f64,
    /// The chance, after a success, that a partition goes back some records.
    pub redelivery: f64,
    /// The chance that an event is delivered twice at once.
    pub doubles: f64,
    /// The chance that a partition is given to another poller while its batch is on the way.
    pub rebalance: f64,
    /// The chance that the records of a batch are in the event in another order.
    pub disorder: f64,
    /// After so many failures in a row a batch is given up, as with an on-failure destination.
    pub give_up_after: Option<u32>,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            longest_batch: 9,
            impatience: 0.05,
            redelivery: 0.08,
            doubles: 0.03,
            rebalance: 0.05,
            disorder: 0.1,
            give_up_after: None,
        }
    }
}

/// Lambda stops an invocation after this time; the mapping stops waiting a little later.
const LONGEST_INVOCATION: Duration = Duration::from_secs(840);

/// One poller of an event source mapping. Several may share a group.
#[derive(Clone)]
pub struct EventSource {
    /// What it reads.
    pub world: Shared<World>,
    /// Whose positions it moves.
    pub group: Shared<Group>,
    /// Starts invocations: each is an actor of its own, so it goes on when nobody waits for it.
    pub spawner: Spawner,
    /// Time.
    pub environment: Environment,
    /// What it decides by.
    pub dice: Dice,
    /// How it behaves.
    pub options: SourceOptions,
    /// What it invokes.
    pub deliver: Deliver,
}

struct Batch {
    life: usize,
    generation: u64,
    partitions: Vec<(i32, Vec<Record>)>,
}

impl Batch {
    fn ids(&self, failures: &[ItemFailure]) -> Vec<Id> {
        let life = self.life;
        let records = self.partitions.iter().flat_map(|(partition, records)| {
            records.iter().map(move |record| Id {
                life,
                partition: *partition,
                offset: record.offset,
            })
        });
        records
            .filter(|id| end_of_success(failures, id.partition).is_none_or(|end| id.offset < end))
            .collect()
    }
}

/// Where the success of a partition ends, if it ends within the batch.
fn end_of_success(failures: &[ItemFailure], partition: i32) -> Option<i64> {
    let failed = failures.iter().filter(|failure| failure.partition == partition);
    failed.map(|failure| failure.offset).min()
}

impl EventSource {
    /// Delivers until the producers have ended and everything has been answered with success.
    pub async fn run(self) {
        loop {
            let Some(batch) = self.cut() else {
                if self.is_done() {
                    return;
                }
                let pause_ms = self.dice.between(100, 3_000);
                self.environment.sleep(Duration::from_millis(pause_ms)).await;
                continue;
            };
            self.invoke(batch).await;
        }
    }

    fn is_done(&self) -> bool {
        let (world, group) = (self.world.borrow(), self.group.borrow());
        world.is_complete() && !group.has_work(&world) && group.life == world.life()
    }

    /// The next batch, some records each of some partitions; `None` when there is nothing to deliver.
    fn cut(&self) -> Option<Batch> {
        let world = self.world.borrow();
        let mut group = self.group.borrow_mut();
        group.follow(&world);
        let mut partitions = Vec::new();
        let rebalance = self.dice.chance(self.options.rebalance);
        for partition in 0..group.positions.len() {
            let log = world.log(group.life, partition as i32)?;
            let busy = group.in_flight[partition] && !rebalance;
            if busy || !log.has_more(group.positions[partition]) || self.dice.chance(0.3) {
                continue;
            }
            let count = self.dice.between(1, self.options.longest_batch) as usize;
            partitions.push((partition as i32, log.fetch(group.positions[partition], count)));
        }
        if partitions.is_empty() {
            return None;
        }
        if rebalance {
            group.generation += 1;
        }
        for (partition, _) in &partitions {
            group.in_flight[*partition as usize] = true;
        }
        Some(Batch {
            life: group.life,
            generation: group.generation,
            partitions,
        })
    }

    async fn invoke(&self, batch: Batch) {
        let batch = Rc::new(batch);
        let mut event = batch.partitions.clone();
        if self.dice.chance(self.options.disorder) {
            event
                .iter_mut()
                .for_each(|(_, records)| self.dice.shuffle(records));
        }
        let event = event_json(self.world.borrow().topic(), &event);
        if self.dice.chance(self.options.doubles) {
            drop(self.start(&batch, event.clone()));
        }
        let invocation = self.start(&batch, event);
        let patience = if self.dice.chance(self.options.impatience) {
            Duration::from_millis(self.dice.between(10, 3_000))
        } else {
            LONGEST_INVOCATION + Duration::from_secs(5)
        };
        let patience = Box::pin(self.environment.sleep(patience));
        let answer = match select(invocation, patience).await {
            Either::Left((Outcome::Done(Ok(failures)), _)) => Some(failures),
            _ => None,
        };
        let succeeded = self.settle(&batch, answer.as_deref());
        if !succeeded {
            self.environment
                .sleep(Duration::from_millis(self.dice.between(200, 20_000)))
                .await;
        }
    }

    /// Starts an invocation. Its success counts, whether or not anybody still waits for it.
    fn start(&self, batch: &Rc<Batch>, event: Bytes) -> crate::simulation::Handle<Result<Vec<ItemFailure>>> {
        let (world, deliver, batch) = (Rc::clone(&self.world), Rc::clone(&self.deliver), Rc::clone(batch));
        let name = match batch.partitions.first() {
            Some((partition, records)) => {
                format!(
                    "ingest {partition}:{}",
                    records.first().map_or(0, |record| record.offset)
                )
            }
            None => "ingest".to_owned(),
        };
        self.spawner
            .actor(name)
            .crashable()
            .lifetime(LONGEST_INVOCATION)
            .spawn(async move {
                let answer = deliver(event).await;
                if let Ok(failures) = &answer {
                    world.borrow_mut().acknowledge(batch.ids(failures));
                }
                answer
            })
    }

    /// Moves the positions, or does not; answers whether all of the batch succeeded.
    fn settle(&self, batch: &Batch, answer: Option<&[ItemFailure]>) -> bool {
        let mut group = self.group.borrow_mut();
        if group.generation != batch.generation {
            return answer.is_some_and(<[_]>::is_empty);
        }
        let mut all = true;
        for (partition, records) in &batch.partitions {
            let index = *partition as usize;
            group.in_flight[index] = false;
            let (Some(first), Some(last)) = (records.first(), records.last()) else {
                continue;
            };
            let next = match answer {
                Some(failures) => end_of_success(failures, *partition).unwrap_or(last.offset + 1),
                None => first.offset,
            };
            if next > last.offset {
                group.failures[index] = 0;
            } else {
                all = false;
                group.failures[index] += 1;
            }
            group.positions[index] = next;
            if self
                .options
                .give_up_after
                .is_some_and(|limit| group.failures[index] >= limit)
            {
                self.world
                    .borrow_mut()
                    .give_up(batch.life, *partition, next, last.offset);
                group.positions[index] = last.offset + 1;
                group.failures[index] = 0;
            } else if self.dice.chance(self.options.redelivery) {
                let back = self.dice.between(1, 20) as i64;
                group.positions[index] = (group.positions[index] - back).max(0);
            }
        }
        all
    }
}
