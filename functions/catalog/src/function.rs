use std::time::Duration;

use frazil_core::{Result, TimestampMs};
use frazil_deployment::{Answer, Deployment};
use frazil_table::inspection::topic_statuses;

use crate::handler::CatalogFunction;
use crate::metrics;
use crate::operation::{CommitAnswer, Operation, PendingAnswer, StatusAnswer};
use crate::pending::KnownTables;

/// What is left of an invocation's time when no further table is begun: a commit of hundreds of descriptors takes
/// seconds, and one that is cut short is only work for the next run.
const RESERVE: Duration = Duration::from_secs(20);
/// What is left when commits under way are given up, so that there is time to answer.
const LAST_WORD: Duration = Duration::from_secs(3);

/// What Lambda invokes.
#[derive(Debug)]
pub struct Function {
    deployment: Deployment,
    known: KnownTables,
}

impl Function {
    /// A function of this deployment.
    pub fn new(deployment: Deployment) -> Self {
        Self {
            deployment,
            known: KnownTables::default(),
        }
    }

    /// Does what is asked, and answers before `deadline`.
    pub async fn invoke(&self, operation: &Operation, deadline: TimestampMs) -> Result<Answer> {
        let warehouse = self.deployment.warehouse();
        let config = self.deployment.config().await;
        let function = CatalogFunction::new(warehouse.clone(), config);
        match operation {
            Operation::ListPending { batch } => {
                if let Err(error) = self.deployment.keep_last_good().await {
                    tracing::warn!(%error, "the last good configuration was not kept");
                }
                let work = self.known.work(warehouse).await?;
                for uuid in &work.unknown {
                    tracing::error!(table_uuid = %uuid, "descriptors are pending for a table that no topic knows");
                }
                let metrics = vec![metrics::of_work(warehouse.environment.now(), &work)];
                Answer::new(&PendingAnswer::of(work, *batch), metrics)
            }
            Operation::Commit { tables } => {
                let started = warehouse.environment.now();
                let begin_until = before(deadline, RESERVE.min(half_of(deadline, started)));
                let stop_at = before(deadline, LAST_WORD.min(half_of(deadline, started)));
                let tables = match tables {
                    Some(tables) => tables.clone(),
                    None => self.known.work(warehouse).await?.tables,
                };
                let run = function.commit_until(&tables, begin_until, stop_at).await;
                let metrics = metrics::of_commits(warehouse.environment.now(), &run.commits);
                Answer::new(&CommitAnswer::of(&run), metrics)
            }
            Operation::Status => {
                let topics = topic_statuses(warehouse).await?;
                let metrics = metrics::of_statuses(warehouse.environment.now(), &topics);
                Answer::new(&StatusAnswer { topics }, metrics)
            }
        }
    }
}

fn before(deadline: TimestampMs, reserve: Duration) -> TimestampMs {
    TimestampMs(
        deadline
            .0
            .saturating_sub(i64::try_from(reserve.as_millis()).unwrap_or(i64::MAX)),
    )
}

/// A function with little time keeps half of it.
fn half_of(deadline: TimestampMs, now: TimestampMs) -> Duration {
    deadline.since(now) / 2
}
