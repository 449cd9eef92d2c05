use std::sync::Arc;
use std::time::Duration;

use frazil_config::Config;
use frazil_core::{Result, TableName};
use frazil_table::{
    CommitReport, CommitSettings, DrainReport, EventSink, SnapshotRetention, Warehouse, commit_table,
    drain_parked, properties,
};
use futures::stream::{self, StreamExt};

/// Tables committed at once: a commit waits for storage most of its time.
const TABLES_AT_ONCE: usize = 8;

/// Parked events handed on per run. What is left waits for the next run, a minute later.
const PARKED_PER_RUN: usize = 1_000;

/// The catalog handler.
#[derive(Debug, Clone)]
pub struct CatalogFunction {
    warehouse: Warehouse,
    config: Arc<Config>,
}

/// What a run did to one table, or why it could not.
#[derive(Debug)]
pub struct TableCommit {
    /// The table.
    pub table: TableName,
    /// What was done.
    pub result: Result<CommitReport>,
}

impl CatalogFunction {
    /// A handler on the given warehouse.
    pub fn new(warehouse: Warehouse, config: Arc<Config>) -> Self {
        Self { warehouse, config }
    }

    /// Commits what is pending of the given tables, or of all. One table's failure does not stop the others.
    pub async fn commit(&self, tables: Option<&[TableName]>) -> Result<Vec<TableCommit>> {
        let tables = match tables {
            Some(tables) => tables.to_vec(),
            None => self.tables().await?,
        };
        let commit = |table: TableName| async move {
            let result = self.commit_one(&table).await;
            if let Err(error) = &result {
                tracing::error!(%table, kind = %error.kind(), %error, "commit failed");
            }
            TableCommit { table, result }
        };
        Ok(stream::iter(tables)
            .map(commit)
            .buffered(TABLES_AT_ONCE)
            .collect()
            .await)
    }

    /// Hands parked events of running topics to ingest, in order.
    pub async fn drain(&self, sink: &dyn EventSink) -> Result<DrainReport> {
        drain_parked(&self.warehouse, sink, PARKED_PER_RUN).await
    }

    /// All tables with rows that Frazil made, ascending.
    pub async fn tables(&self) -> Result<Vec<TableName>> {
        let mut tables = Vec::new();
        for namespace in self.warehouse.catalog.namespaces().await? {
            for table in self.warehouse.catalog.tables(&namespace).await? {
                let loaded = self.warehouse.load(&table).await?;
                let has_ledger = |table: &frazil_table::LoadedTable| {
                    table.metadata.properties().contains_key(properties::LEDGER)
                };
                if loaded.as_ref().is_some_and(has_ledger) {
                    tables.push(table);
                }
            }
        }
        Ok(tables)
    }

    async fn commit_one(&self, table: &TableName) -> Result<CommitReport> {
        let settings = self.settings(table).await?;
        commit_table(&self.warehouse, table, &settings).await
    }

    /// Snapshot retention of the topic that made the table, as the configuration has it now.
    async fn settings(&self, table: &TableName) -> Result<CommitSettings> {
        let Some(loaded) = self.warehouse.load(table).await? else {
            return Ok(CommitSettings::default());
        };
        let named = loaded.metadata.properties();
        let (Some(source), Some(topic)) = (named.get(properties::SOURCE), named.get(properties::TOPIC))
        else {
            return Ok(CommitSettings::default());
        };
        let (source, topic) = (source.as_str().into(), topic.as_str().into());
        // A topic that the configuration does not know any more is still committed, with the defaults.
        let Ok(topic) = self.config.topic(&source, &topic) else {
            return Ok(CommitSettings::default());
        };
        Ok(CommitSettings {
            snapshots: SnapshotRetention {
                keep: topic.retention.snapshots as usize,
                min_age: Duration::from(topic.retention.snapshot_min_age_ms),
            },
            keep_metadata_for: Duration::from(topic.retention.metadata_ms),
            ..CommitSettings::default()
        })
    }
}
