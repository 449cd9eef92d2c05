use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use frazil_config::Config;
use frazil_core::{Result, TableName, TimestampMs};
use frazil_table::{
    CommitReport, CommitSettings, DrainReport, EventSink, SnapshotRetention, Warehouse, commit_table,
    drain_parked, properties,
};
use futures::future::{Either, select};
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
    /// How long it took.
    pub took: Duration,
}

/// A run over tables that ended in time.
#[derive(Debug, Default)]
pub struct Run {
    /// Tables that were committed, or failed.
    pub commits: Vec<TableCommit>,
    /// Tables for which there was no time, ascending.
    pub left: Vec<TableName>,
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
        let never = TimestampMs(i64::MAX);
        Ok(self.commit_until(&tables, never, never).await.commits)
    }

    /// Commits what is pending of these tables: begins none after `begin_until`, and gives up at `stop_at` what is under
    /// way, which leaves it to the next run.
    pub async fn commit_until(
        &self,
        tables: &[TableName],
        begin_until: TimestampMs,
        stop_at: TimestampMs,
    ) -> Run {
        let environment = &self.warehouse.environment;
        let commit = |table: TableName| async move {
            let started = environment.now();
            if started >= begin_until {
                return Err(table);
            }
            let Some(result) = self.commit_in_time(&table, stop_at).await else {
                return Err(table);
            };
            if let Err(error) = &result {
                tracing::error!(%table, kind = %error.kind(), %error, "commit failed");
            }
            let took = environment.now().since(started);
            Ok(TableCommit { table, result, took })
        };
        let mut ended = stream::iter(tables.to_vec()).map(commit).buffered(TABLES_AT_ONCE);
        let mut run = Run::default();
        while let Some(ended) = ended.next().await {
            match ended {
                Ok(commit) => run.commits.push(commit),
                Err(left) => run.left.push(left),
            }
        }
        run
    }

    /// Hands parked events of running topics to ingest, in order.
    pub async fn drain(&self, sink: &dyn EventSink) -> Result<DrainReport> {
        drain_parked(&self.warehouse, sink, PARKED_PER_RUN).await
    }

    /// All tables that topics of this warehouse feed and that the catalog has, ascending. O(topics).
    pub async fn tables(&self) -> Result<Vec<TableName>> {
        let states = self.warehouse.topic_states().await?;
        let tables: BTreeSet<TableName> = states
            .into_iter()
            .flat_map(|state| state.tables.into_keys())
            .collect();
        let mut found = Vec::new();
        for table in tables {
            if self.warehouse.catalog.load(&table).await?.is_some() {
                found.push(table);
            }
        }
        Ok(found)
    }

    /// `None` when it was given up.
    async fn commit_in_time(&self, table: &TableName, stop_at: TimestampMs) -> Option<Result<CommitReport>> {
        let commit = pin!(self.commit_one(table));
        if stop_at.0 == i64::MAX {
            return Some(commit.await);
        }
        let environment = &self.warehouse.environment;
        let time = stop_at.since(environment.now());
        match select(commit, pin!(environment.sleep(time))).await {
            Either::Left((result, _)) => Some(result),
            Either::Right(_) => None,
        }
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
