use std::collections::{BTreeMap, BTreeSet};

use frazil_core::{Result, SourceName, TableName, TopicName};
use frazil_table::{ParkedTopic, Shelf, Warehouse, parked_topics};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::Serialize;
use tokio::sync::Mutex;
use uuid::Uuid;

/// Tables of one answer: Step Functions holds 256 KB per state. Where more have work, a run begins anywhere among them.
const MAX_TABLES: usize = 2_000;
/// Topics of one answer.
const MAX_PARKED: usize = 500;

/// Tables that are looked up at once.
const LOOKUPS_AT_ONCE: usize = 16;

/// Where there is work, found by what waits for it: O(tables and topics with something waiting), not O(tables).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Work {
    /// Tables with pending descriptors, at most 2,000.
    pub tables: Vec<TableName>,
    /// Uuids with pending descriptors that no topic knows: their tables were dropped, or their topics' states are lost.
    pub unknown: Vec<Uuid>,
    /// Topics with parked events that run, at most 500.
    pub parked: Vec<ParkedTopic>,
}

/// The names of tables by their uuids, which never change: learned once per process.
#[derive(Debug, Default)]
pub(crate) struct KnownTables(Mutex<BTreeMap<Uuid, TableName>>);

impl KnownTables {
    /// Looks where there is work.
    pub(crate) async fn work(&self, warehouse: &Warehouse) -> Result<Work> {
        let shelf = warehouse.layout.shelf(Shelf::Pending);
        let folders = warehouse.storage.list_folders(&shelf).await?;
        let uuids = folders.iter().filter_map(|folder| {
            let uuid = folder.strip_prefix(&shelf)?.trim_end_matches('/');
            uuid.parse::<Uuid>().ok()
        });
        let looked_up: Vec<(Uuid, Option<TableName>)> = stream::iter(uuids)
            .map(|uuid| async move { Ok::<_, frazil_core::Error>((uuid, self.name(warehouse, uuid).await?)) })
            .buffered(LOOKUPS_AT_ONCE)
            .try_collect()
            .await?;
        let mut tables = BTreeSet::new();
        let mut unknown = Vec::new();
        for (uuid, name) in looked_up {
            match name {
                Some(name) => {
                    tables.insert(name);
                }
                None => unknown.push(uuid),
            }
        }
        let start = warehouse.environment.next_u64();
        Ok(Work {
            tables: some_of(tables.into_iter().collect(), MAX_TABLES, start),
            unknown,
            parked: some_of(parked_topics(warehouse).await?, MAX_PARKED, start),
        })
    }

    /// The table's name, as the topic says whose descriptor is pending.
    async fn name(&self, warehouse: &Warehouse, table: Uuid) -> Result<Option<TableName>> {
        if let Some(name) = self.0.lock().await.get(&table) {
            return Ok(Some(name.clone()));
        }
        let prefix = warehouse.layout.descriptors(Shelf::Pending, table);
        let page = warehouse.storage.list_page(&prefix, None).await?;
        let of_topics: BTreeSet<(SourceName, TopicName)> = page
            .objects
            .iter()
            .filter_map(|object| {
                warehouse
                    .layout
                    .parse_descriptor(Shelf::Pending, &object.location)
            })
            .map(|(_, log, _)| (log.source, log.topic))
            .collect();
        for (source, topic) in of_topics {
            let state = warehouse.topic_state(&source, &topic).await?;
            let mut known = self.0.lock().await;
            known.extend(state.tables.into_iter().map(|(name, uuid)| (uuid, name)));
            if let Some(name) = known.get(&table) {
                return Ok(Some(name.clone()));
            }
        }
        Ok(None)
    }
}

/// At most `limit`, from a place that `start` chooses: none waits for ever behind others.
fn some_of<T>(mut all: Vec<T>, limit: usize, start: u64) -> Vec<T> {
    if all.len() > limit {
        let middle = usize::try_from(start % all.len() as u64).unwrap_or(0);
        all.rotate_left(middle);
        all.truncate(limit);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_there_is_too_much_a_run_begins_anywhere() {
        assert_eq!(some_of(vec![1, 2, 3], 3, 7), [1, 2, 3]);
        assert_eq!(some_of(vec![1, 2, 3, 4], 3, 7), [4, 1, 2]);
        assert!(some_of(Vec::<u8>::new(), 3, 7).is_empty());
    }
}
