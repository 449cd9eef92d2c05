use std::future::Future;
use std::time::Duration;

use frazil_core::Environment;

use super::{Content, Record, Shared, World};
use crate::simulation::Dice;

/// What a producer writes.
#[derive(Debug, Clone)]
pub struct ProducerOptions {
    /// How many records, over all partitions.
    pub records: usize,
    /// The chance that offsets before a record are skipped.
    pub gap: f64,
    /// The chance that a record cannot be read.
    pub poison: f64,
    /// The chance that a record is a tombstone.
    pub tombstone: f64,
    /// The chance that a record brings a column that nobody has seen.
    pub new_column: f64,
    /// The chance that the log is compacted after a record.
    pub compaction: f64,
    /// The longest pause between two records.
    pub longest_pause: Duration,
}

impl Default for ProducerOptions {
    fn default() -> Self {
        Self {
            records: 60,
            gap: 0.08,
            poison: 0.02,
            tombstone: 0.05,
            new_column: 0.03,
            compaction: 0.02,
            longest_pause: Duration::from_secs(4),
        }
    }
}

/// Appends records to random partitions of the topic as it is at that moment, then ends. The world counts as
/// incomplete from the call on, not from the first poll.
pub fn produce(
    world: Shared<World>,
    environment: Environment,
    dice: Dice,
    options: ProducerOptions,
) -> impl Future<Output = ()> {
    world.borrow_mut().producing(true);
    append(world, environment, dice, options)
}

async fn append(world: Shared<World>, environment: Environment, dice: Dice, options: ProducerOptions) {
    let mut columns = 0;
    for number in 0..options.records {
        if dice.chance(options.new_column) {
            columns += 1;
        }
        let (content, value) = value(&dice, &options, number, columns);
        {
            let mut world = world.borrow_mut();
            let partition = dice.index(world.partitions()) as i32;
            let key = dice.chance(0.8).then(|| format!("k{}", dice.below(9)));
            let timestamp_ms = if dice.chance(0.05) {
                -1
            } else {
                environment.now().0
            };
            let skipped = if dice.chance(options.gap) {
                dice.between(1, 3) as i64
            } else {
                0
            };
            if let Some(log) = world.current(partition) {
                log.append(skipped, |offset| Record {
                    offset,
                    timestamp_ms,
                    key,
                    value,
                    content,
                    gone: false,
                });
                if dice.chance(options.gap / 2.0) {
                    log.mark();
                }
                if dice.chance(options.compaction) {
                    log.compact(&dice, 0.2);
                }
            }
        }
        let pause_ms = u64::try_from(options.longest_pause.as_millis()).unwrap_or(u64::MAX);
        environment
            .sleep(Duration::from_millis(dice.below(pause_ms + 1)))
            .await;
    }
    world.borrow_mut().producing(false);
}

/// A value with `id`, `v` and some of the columns that have come up so far.
fn value(
    dice: &Dice,
    options: &ProducerOptions,
    number: usize,
    columns: usize,
) -> (Content, Option<Vec<u8>>) {
    if dice.chance(options.poison) {
        return (Content::Poison, Some(format!("{{not json {number}").into_bytes()));
    }
    if dice.chance(options.tombstone) {
        return (Content::Tombstone, None);
    }
    let id = dice.below(1 << 40);
    let text = format!("v{number}");
    let mut json = format!("{{\"id\":{id},\"v\":\"{text}\"");
    let mut row = vec![("id".to_owned(), id.to_string()), ("v".to_owned(), text)];
    for column in 1..=columns {
        // The newest column always comes, so that it is seen at once.
        if column < columns && dice.chance(0.5) {
            continue;
        }
        let (name, number) = (format!("c{column}"), dice.below(1000));
        if column % 2 == 0 {
            json.push_str(&format!(",\"{name}\":\"s{number}\""));
            row.push((name, format!("s{number}")));
        } else {
            json.push_str(&format!(",\"{name}\":{number}"));
            row.push((name, number.to_string()));
        }
    }
    json.push('}');
    (Content::Row(row), Some(json.into_bytes()))
}
