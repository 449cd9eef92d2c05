use std::collections::BTreeMap;

use frazil_core::{Result, TableName};

use crate::dead_letters::DeadLetter;
use crate::layout::LogName;
use crate::operations::read_letters;
use crate::outbox;
use crate::snapshot::live_files;
use crate::warehouse::Warehouse;

/// A table's dead letters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadLetters {
    /// How many there are of each code.
    pub counts: BTreeMap<String, u64>,
    /// How many are accepted and not yet in their table: the next commit brings them there.
    pub waiting: u64,
    /// The first ones, by log, partition and offset.
    pub letters: Vec<(LogName, DeadLetter)>,
}

/// Reads a table's dead letters: counts all that are `wanted`, and shows the first `limit`. O(dead letters).
pub async fn dead_letters_of(
    warehouse: &Warehouse,
    name: &TableName,
    wanted: &(dyn Fn(&DeadLetter) -> bool + Sync),
    limit: usize,
) -> Result<DeadLetters> {
    let mut found = DeadLetters::default();
    let letters_name = name.dead_letters()?;
    let table = warehouse.load_existing(name).await?;
    let ledger = warehouse.ledger(&table).await?;
    let untaken = outbox::untaken(warehouse, &letters_name, &ledger).await?;
    found.waiting = untaken.iter().map(|entry| entry.records).sum();
    let Some(letters) = warehouse.load(&letters_name).await? else {
        return Ok(found);
    };
    for file in live_files(warehouse, &letters, |_| true).await? {
        for (source, topic, epoch, letter) in read_letters(warehouse, &file).await? {
            if !wanted(&letter) {
                continue;
            }
            *found.counts.entry(letter.code.clone()).or_default() += 1;
            let log = LogName { source, topic, epoch };
            found.letters.push((log, letter));
        }
        found.letters.sort_by(|(a, one), (b, other)| {
            (a, one.partition, one.offset).cmp(&(b, other.partition, other.offset))
        });
        found.letters.truncate(limit);
    }
    Ok(found)
}
