use frazil_core::{ErrorKind, TableName};
use frazil_table::ParkedTopic;
use frazil_table::inspection::TopicStatus;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::handler::{Run, TableCommit};
use crate::pending::Work;

/// Tables per batch when nobody says: one invocation commits them, several at once.
const DEFAULT_BATCH: usize = 20;

/// What the function is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case", deny_unknown_fields)]
pub enum Operation {
    /// Look where there is work.
    ListPending {
        /// How many tables make a batch.
        #[serde(default = "default_batch")]
        batch: usize,
    },
    /// Commit what is pending of these tables, or of all that have something pending.
    Commit {
        /// The tables.
        #[serde(default)]
        tables: Option<Vec<TableName>>,
    },
    /// Say how every topic stands.
    Status,
}

fn default_batch() -> usize {
    DEFAULT_BATCH
}

/// Where there is work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PendingAnswer {
    /// Tables with something pending, in batches for `commit`.
    pub batches: Vec<Vec<TableName>>,
    /// Topics with parked events that run, in batches for ingest's `drain`.
    pub parked: Vec<ParkedTopic>,
    /// Uuids with pending descriptors that no topic knows.
    pub unknown: Vec<Uuid>,
}

impl PendingAnswer {
    /// The answer for work in batches of so many tables, at least one.
    pub fn of(work: Work, batch: usize) -> Self {
        Self {
            batches: work
                .tables
                .chunks(batch.max(1))
                .map(<[TableName]>::to_vec)
                .collect(),
            parked: work.parked,
            unknown: work.unknown,
        }
    }
}

/// How every topic stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatusAnswer {
    /// By source and topic.
    pub topics: Vec<TopicStatus>,
}

/// What a commit run did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommitAnswer {
    /// One entry per table that was begun.
    pub tables: Vec<TableAnswer>,
    /// How many tables failed.
    pub failed: usize,
    /// Tables for which there was no time: ask again with these.
    pub left: Vec<TableName>,
}

/// What a commit run did to one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableAnswer {
    /// The table.
    pub table: TableName,
    /// Commits made.
    pub commits: usize,
    /// Rows added.
    pub rows: u64,
    /// Redeliveries dropped.
    pub dropped: usize,
    /// Claims that stay pending.
    pub waiting: usize,
    /// Topics that were suspended by it.
    pub suspended: Vec<String>,
    /// Why it failed: what to do about it, and the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<(String, String)>,
}

impl CommitAnswer {
    /// The answer for a run.
    pub fn of(run: &Run) -> Self {
        let tables: Vec<TableAnswer> = run.commits.iter().map(TableAnswer::of).collect();
        let failed = tables.iter().filter(|table| table.error.is_some()).count();
        Self {
            tables,
            failed,
            left: run.left.clone(),
        }
    }
}

impl TableAnswer {
    fn of(commit: &TableCommit) -> Self {
        let mut answer = Self {
            table: commit.table.clone(),
            commits: 0,
            rows: 0,
            dropped: 0,
            waiting: 0,
            suspended: Vec::new(),
            error: None,
        };
        match &commit.result {
            Ok(report) => {
                answer.commits = report.commits.len();
                answer.rows = report.commits.iter().map(|commit| commit.rows).sum();
                answer.dropped = report.dropped.len();
                answer.waiting = report.waiting.len();
                answer.suspended = report
                    .suspended
                    .iter()
                    .map(|of| of.log.topic.to_string())
                    .collect();
            }
            Err(error) => {
                let kind: ErrorKind = error.kind();
                answer.error = Some((kind.to_string(), error.to_string()));
            }
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_tagged() {
        let read = |json: &str| serde_json::from_str::<Operation>(json).map_err(|e| e.to_string());
        assert_eq!(
            read(r#"{"operation":"list_pending"}"#),
            Ok(Operation::ListPending { batch: 20 })
        );
        assert_eq!(
            read(r#"{"operation":"commit"}"#),
            Ok(Operation::Commit { tables: None })
        );
        let orders = TableName::new("kafka", "orders").unwrap();
        assert_eq!(
            read(r#"{"operation":"commit","tables":["kafka.orders"]}"#),
            Ok(Operation::Commit {
                tables: Some(vec![orders])
            })
        );
        assert!(
            read(r#"{"operation":"drop"}"#)
                .unwrap_err()
                .contains("unknown variant `drop`, expected one of `list_pending`, `commit`, `status`")
        );
        assert!(
            read(r#"{"operation":"commit","table":"x"}"#)
                .unwrap_err()
                .contains("unknown field `table`")
        );
    }
}
