use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use frazil_config::{Config, Settings};
use frazil_core::{Environment, Error, ErrorKind, Result, SourceName, TimestampMs, TopicName};
use frazil_deployment::{Answer, Deployment};
use frazil_table::{EventSink, ParkedEvent, ParkedTopic, drain_topic};
use futures::future::{Either, select};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::{Ingest, IngestOptions, Registries, answer, metrics};

/// What is left of an invocation's time when an event is given up, so that there is time to answer. It is delivered
/// again; what was staged of it is proved to be a redelivery then.
const LAST_WORD: Duration = Duration::from_secs(2);
/// What is left when no further parked event is begun.
const RESERVE: Duration = Duration::from_secs(20);
/// Parked events of a topic handed on per invocation.
const PARKED_PER_RUN: usize = 1_000;
/// Longer than any operation; an event may be short as well.
const MAX_OPERATION_BYTES: usize = 64 * 1024;
/// Where schemas are looked for when nothing says where: beside the function.
const SCHEMAS: &str = "schemas";
/// Marks what was not begun for want of time.
const OUT_OF_TIME: &str = "function.deadline";

/// What Lambda invokes: with Kafka's events, or to drain what was parked.
#[derive(Debug)]
pub struct Function {
    deployment: Deployment,
    schemas: Option<PathBuf>,
    reports_item_failures: bool,
    handler: Mutex<Option<(Arc<Config>, Arc<Ingest>)>>,
    has_run: AtomicBool,
}

/// What the function is asked to do beside taking events.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case", deny_unknown_fields)]
enum Operation {
    /// Take the parked events of these topics.
    Drain { topics: Vec<ParkedTopic> },
}

/// What a drain did.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Drained {
    /// Events staged and deleted.
    delivered: u64,
    /// Topics whose drain stopped before its end, and why.
    stopped: Vec<StoppedTopic>,
    /// Topics for which there was no time: ask again with these.
    left: Vec<ParkedTopic>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct StoppedTopic {
    source: SourceName,
    topic: TopicName,
    reason: String,
}

impl Function {
    /// A function of this deployment.
    pub fn new(deployment: Deployment, settings: &Settings) -> Self {
        Self {
            deployment,
            schemas: settings.schemas.clone(),
            reports_item_failures: settings.report_item_failures,
            handler: Mutex::new(None),
            has_run: AtomicBool::new(false),
        }
    }

    /// Makes ready what the first event needs, while Lambda does not bill for it yet.
    pub async fn warm_up(&self) -> Result<()> {
        self.handler().await.map(drop)
    }

    /// Takes an event, or does what is asked, and answers before `deadline`. An error acknowledges nothing.
    pub async fn invoke(&self, payload: &[u8], deadline: TimestampMs) -> Result<Answer> {
        let handler = self.handler().await?;
        if let Some(Operation::Drain { topics }) = operation(payload) {
            return self.drain(&handler, topics, deadline).await;
        }
        let environment = &self.deployment.warehouse().environment;
        let started = environment.now();
        let is_cold = !self.has_run.swap(true, Ordering::Relaxed);
        let time = deadline.since(started);
        let time = time.saturating_sub(LAST_WORD.min(time / 2));
        let report = match select(pin!(handler.handle(payload)), pin!(environment.sleep(time))).await {
            Either::Left((report, _)) => report?,
            Either::Right(_) => return Err(out_of_time(time)),
        };
        let now = environment.now();
        let metrics = metrics::of_report(now, &report, now.since(started), is_cold);
        Answer::new(&answer(&report, self.reports_item_failures)?, metrics)
    }

    async fn drain(
        &self,
        handler: &Ingest,
        topics: Vec<ParkedTopic>,
        deadline: TimestampMs,
    ) -> Result<Answer> {
        let warehouse = self.deployment.warehouse();
        let time = deadline.since(warehouse.environment.now());
        let reserve = i64::try_from(RESERVE.min(time / 2).as_millis()).unwrap_or(0);
        let sink = InTime {
            handler,
            environment: &warehouse.environment,
            until: TimestampMs(deadline.0.saturating_sub(reserve)),
        };
        let mut drained = Drained::default();
        for parked in topics {
            let ParkedTopic { source, topic } = &parked;
            match drain_topic(warehouse, source, topic, &sink, PARKED_PER_RUN).await {
                Ok(delivered) => {
                    drained.delivered += delivered;
                    if delivered as usize == PARKED_PER_RUN {
                        drained.left.push(parked);
                    }
                }
                Err(stopped) => {
                    drained.delivered += stopped.delivered;
                    if stopped.error.code() == Some(OUT_OF_TIME) {
                        drained.left.push(parked);
                        continue;
                    }
                    tracing::warn!(%source, %topic, error = %stopped.error, "parked events stay parked");
                    drained.stopped.push(StoppedTopic {
                        reason: stopped.error.to_string(),
                        source: source.clone(),
                        topic: topic.clone(),
                    });
                }
            }
        }
        let now = warehouse.environment.now();
        let metrics = vec![metrics::of_drain(now, drained.delivered, drained.stopped.len())];
        Answer::new(&drained, metrics)
    }

    /// The handler for the configuration as it is now. It keeps schemas and the breaker's counts, until that changes.
    async fn handler(&self) -> Result<Arc<Ingest>> {
        let config = self.deployment.config().await;
        let mut known = self.handler.lock().await;
        if let Some((of, handler)) = known.as_ref()
            && Arc::ptr_eq(of, &config)
        {
            return Ok(handler.clone());
        }
        let warehouse = self.deployment.warehouse();
        let schemas = self
            .schemas
            .as_deref()
            .or(config.schemas())
            .unwrap_or(SCHEMAS.as_ref());
        let registries = Registries::open(&config, schemas, &warehouse.environment)?;
        let options = IngestOptions::default();
        let handler = Arc::new(Ingest::new(
            warehouse.clone(),
            config.clone(),
            registries,
            options,
        ));
        *known = Some((config, handler.clone()));
        Ok(handler)
    }
}

/// Begins no event when there is no time for it.
struct InTime<'a> {
    handler: &'a Ingest,
    environment: &'a Environment,
    until: TimestampMs,
}

#[async_trait]
impl EventSink for InTime<'_> {
    async fn deliver(&self, parked: &ParkedEvent, event: Bytes) -> Result<()> {
        if self.environment.now() >= self.until {
            return Err(out_of_time(Duration::ZERO));
        }
        self.handler.deliver(parked, event).await
    }
}

fn out_of_time(time: Duration) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "take the event in time",
        format!("the function has run for {:.1} s", time.as_secs_f64()),
    )
    .with_code(OUT_OF_TIME)
    .with_hint("nothing is lost, it is delivered again: raise the function's timeout or memory, or lower the batch size")
}

/// An operation; `None`: an event.
fn operation(payload: &[u8]) -> Option<Operation> {
    if payload.len() > MAX_OPERATION_BYTES {
        return None;
    }
    serde_json::from_slice(payload).ok()
}
