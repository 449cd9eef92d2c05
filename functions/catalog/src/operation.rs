use frazil_core::{ErrorKind, TableName};
use serde::{Deserialize, Serialize};

use crate::handler::TableCommit;

/// What the function is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case", deny_unknown_fields)]
pub enum Operation {
    /// Commit what is pending of these tables, or of all.
    Commit {
        /// The tables; all when left out.
        #[serde(default)]
        tables: Option<Vec<TableName>>,
    },
}

/// What a commit run did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommitAnswer {
    /// One entry per table.
    pub tables: Vec<TableAnswer>,
    /// How many tables failed.
    pub failed: usize,
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
    pub fn of(commits: &[TableCommit]) -> Self {
        let tables: Vec<TableAnswer> = commits.iter().map(TableAnswer::of).collect();
        let failed = tables.iter().filter(|table| table.error.is_some()).count();
        Self { tables, failed }
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
                .contains("unknown variant `drop`, expected `commit`")
        );
        assert!(
            read(r#"{"operation":"commit","table":"x"}"#)
                .unwrap_err()
                .contains("unknown field `table`")
        );
    }
}
