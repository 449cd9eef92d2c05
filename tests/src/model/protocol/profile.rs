use std::time::Duration;

use crate::model::{ProducerOptions, SourceOptions};
use crate::simulation::{Dice, Rates};

/// What a person or another engine does in the middle of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Intervention {
    /// `frazil topic suspend`, and a while later resume.
    Suspend,
    /// Nothing, for so long.
    Pause(Duration),
    /// The consumer group goes back to offset 0.
    Reset,
    /// The topic is deleted and made anew; so many first records come again.
    Recreate {
        /// How many first records of each partition are those of the old log.
        repeated: usize,
        /// Whether somebody adopts at once, or only when asked.
        announced: bool,
    },
    /// The catalog is restored from a copy: the pointer falls back, and the ledger with it.
    RestorePointer {
        /// How many commits.
        commits: usize,
    },
    /// Another engine rolls `main` back to the snapshot before.
    RollBack,
    /// Another engine drops the table.
    Drop,
}

/// The kind of schedule: who acts, and how unkind the world is.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Partitions of the topic.
    pub partitions: usize,
    /// What is produced.
    pub producer: ProducerOptions,
    /// How it is delivered.
    pub source: SourceOptions,
    /// Pollers that share the group.
    pub pollers: usize,
    /// Ingest processes.
    pub ingests: usize,
    /// Committers side by side.
    pub committers: usize,
    /// The longest pause between two runs of a committer.
    pub commit_pause: Duration,
    /// Descriptors per commit at most.
    pub max_taken: usize,
    /// Objects per page of a listing.
    pub page_size: usize,
    /// The chance at each step that an invocation or commit run crashes.
    pub crash: f64,
    /// The chance at each step that an actor is set aside.
    pub stall: f64,
    /// Faults of the back ends.
    pub faults: Rates,
    /// The longest that a late call takes to land.
    pub longest_late: Duration,
    /// What happens in between, in this order.
    pub interventions: Vec<Intervention>,
}

impl Profile {
    /// Nothing goes wrong but what an event source does anyway.
    pub fn calm() -> Self {
        Self {
            partitions: 2,
            producer: ProducerOptions {
                records: 40,
                longest_pause: Duration::from_millis(1_500),
                ..ProducerOptions::default()
            },
            source: SourceOptions {
                longest_batch: 8,
                ..SourceOptions::default()
            },
            pollers: 2,
            ingests: 2,
            committers: 2,
            commit_pause: Duration::from_secs(20),
            max_taken: 2_000,
            page_size: 3,
            crash: 0.0,
            stall: 0.02,
            faults: Rates::default(),
            longest_late: Duration::from_secs(600),
            interventions: Vec::new(),
        }
    }

    /// A kind of schedule, drawn at random.
    pub fn drawn(dice: &Dice) -> Self {
        let calm = Self::calm();
        let rough = dice.chance(0.8);
        let scale = |rate: f64| if rough { rate } else { 0.0 };
        let give_up_after = dice.chance(0.2).then_some(3);
        Self {
            partitions: dice.between(1, 2) as usize,
            producer: ProducerOptions {
                records: dice.between(16, 48) as usize,
                gap: [0.0, 0.08, 0.4][dice.index(3)],
                poison: [0.0, 0.02, 0.15][dice.index(3)],
                compaction: [0.0, 0.03][dice.index(2)],
                ..calm.producer.clone()
            },
            source: SourceOptions {
                impatience: scale(0.08),
                redelivery: [0.02, 0.1][dice.index(2)],
                give_up_after,
                ..calm.source.clone()
            },
            committers: dice.between(1, 3) as usize,
            max_taken: [2, 4, 2_000][dice.index(3)],
            page_size: dice.between(1, 4) as usize,
            crash: scale(0.003),
            faults: Rates {
                fail_before: scale(0.01),
                fail_after: scale(0.01),
                late: scale(0.01),
                twice: scale(0.005),
                again: scale(0.005),
            },
            interventions: draw_interventions(dice),
            ..calm
        }
    }
}

fn draw_interventions(dice: &Dice) -> Vec<Intervention> {
    let mut drawn = Vec::new();
    if dice.chance(0.3) {
        drawn.push(Intervention::Suspend);
    }
    if dice.chance(0.15) {
        drawn.push(Intervention::Reset);
    }
    // At most one of those that change what may be expected of a table.
    match dice.below(12) {
        0 | 1 => drawn.push(Intervention::Recreate {
            repeated: dice.below(4) as usize,
            announced: dice.chance(0.5),
        }),
        2 => drawn.push(Intervention::RestorePointer {
            commits: dice.between(1, 3) as usize,
        }),
        3 => drawn.push(Intervention::RollBack),
        4 => drawn.push(Intervention::Drop),
        _ => {}
    }
    dice.shuffle(&mut drawn);
    drawn
}
