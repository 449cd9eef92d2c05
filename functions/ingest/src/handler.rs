use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use frazil_config::{Config, Format, OnError, Tables, TopicSettings};
use frazil_core::{Error, ErrorKind, Offset, Partition, Result, TopicName};
use frazil_kafka::wire::Framing;
use frazil_kafka::{EventBuffer, Origin, PartitionBatch, Record};
use frazil_table::{Cause, EventSink, LogName, ParkedEvent, TopicState, Warehouse, park};

use crate::Registries;
use crate::breaker::Breaker;
use crate::encoding::{Encoding, Known, kept, known, prevailing};
use crate::parts::{Mappings, PreparedRoute};
use crate::report::{IngestReport, Took, TopicOutcome, TopicReport, size_of};
use crate::route::{Routed, record_names};
use crate::schemas::Schemas;

/// How the function behaves beside its configuration.
#[derive(Debug, Clone, Copy)]
pub struct IngestOptions {
    /// Two schema changes of a table are at least this far apart.
    pub schema_interval: Duration,
    /// Whether what is taken may fill holes of any age: somebody delivers again what the event source gave up on.
    pub backfill: bool,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self {
            schema_interval: Duration::from_secs(10),
            backfill: false,
        }
    }
}

/// The ingest handler. One per process: it keeps compiled schemas and the breaker's counts.
#[derive(Debug)]
pub struct Ingest {
    pub(crate) warehouse: Warehouse,
    pub(crate) config: Arc<Config>,
    pub(crate) schemas: Schemas,
    breaker: Breaker,
    pub(crate) options: IngestOptions,
}

/// Who delivers an event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery<'a> {
    /// The event source: what a suspended topic gets is parked.
    Live,
    /// The drain of parked events of this topic: it stops when the topic is suspended again.
    Parked(&'a ParkedEvent),
}

/// One topic's part of an event, on its way through.
pub(crate) struct TopicEvent<'a> {
    pub(crate) settings: TopicSettings,
    pub(crate) state: TopicState,
    pub(crate) batches: Vec<&'a PartitionBatch<'a>>,
    raw: &'a [u8],
    pub(crate) delivery: Delivery<'a>,
}

impl Ingest {
    /// A handler on the given warehouse.
    pub fn new(
        warehouse: Warehouse,
        config: Arc<Config>,
        registries: impl Into<Registries>,
        options: IngestOptions,
    ) -> Self {
        Self {
            warehouse,
            config,
            schemas: Schemas::new(registries.into()),
            breaker: Breaker::default(),
            options,
        }
    }

    /// Takes a Kafka event as Lambda delivers it. When it answers `Ok`, every record is safe except those from
    /// [`Failure::offset`] on, per partition; on an error none may be acknowledged.
    pub async fn handle(&self, event: &[u8]) -> Result<IngestReport> {
        self.handle_delivery(event, Delivery::Live).await
    }

    /// Takes a parked event of a topic again. `Suspended` when the topic is suspended: the event stays parked.
    pub async fn handle_parked(&self, parked: &ParkedEvent, event: &[u8]) -> Result<IngestReport> {
        self.handle_delivery(event, Delivery::Parked(parked)).await
    }

    async fn handle_delivery(&self, raw: &[u8], delivery: Delivery<'_>) -> Result<IngestReport> {
        let mut buffer = EventBuffer::default();
        let event = buffer.parse(raw)?;
        let mut topics: BTreeMap<&TopicName, Vec<&PartitionBatch<'_>>> = BTreeMap::new();
        for batch in &event.batches {
            topics
                .entry(&batch.topic_partition.topic)
                .or_default()
                .push(batch);
        }
        if let Delivery::Parked(parked) = delivery {
            topics.retain(|topic, _| **topic == parked.log.topic);
        }
        let mut report = IngestReport::default();
        for (topic, batches) in topics {
            let settings = self.settings(&event.origin, topic, delivery)?;
            let state = self.warehouse.topic_state(&settings.source, topic).await?;
            let topic = TopicEvent {
                settings,
                state,
                batches,
                raw,
                delivery,
            };
            report.topics.push(self.take(&topic).await?);
        }
        Ok(report)
    }

    fn settings(&self, origin: &Origin, topic: &TopicName, delivery: Delivery<'_>) -> Result<TopicSettings> {
        match delivery {
            Delivery::Parked(parked) => self.config.topic(&parked.log.source, topic),
            Delivery::Live => {
                let brokers = origin.bootstrap_servers.iter().map(String::as_str);
                let source = self.config.source_for(origin.source_arn.as_deref(), brokers)?;
                self.config.topic(source, topic)
            }
        }
    }

    /// One topic: resolve, decode, evolve, stage.
    async fn take(&self, topic: &TopicEvent<'_>) -> Result<TopicReport> {
        let suspended = topic.state.suspended.as_ref();
        let is_taken = match topic.delivery {
            Delivery::Live => suspended.is_none(),
            Delivery::Parked(parked) => topic.state.takes_parked(parked.log.epoch),
        };
        if !is_taken {
            let reason = suspended.map_or("it is of another life of the topic", |of| of.message.as_str());
            return self.park(topic, reason).await;
        }
        let started = self.warehouse.environment.now();
        let records = topic.records();
        let encoding = self.encoding(topic).await?;
        let mappings = Mappings::of(&topic.settings)?;
        let parts = self.parts(&topic.settings, encoding, &mappings, &records).await?;
        let routed = match parts.route(&topic.settings, &records) {
            Ok(routed) => routed,
            Err(error) if error.kind() == ErrorKind::Invalid => {
                return self
                    .suspend_and_park(topic, Cause::Schema, &error.to_string())
                    .await;
            }
            Err(error) => return Err(error),
        };
        if let Some(message) = self.second_type(topic, &routed).await? {
            return self.suspend_and_park(topic, Cause::Schema, &message).await;
        }
        let now = self.warehouse.environment.now();
        let mut routes = routed.prepare(&topic.settings, &mappings, now)?;

        let undecodable: Vec<(usize, Error)> =
            routes.iter_mut().flat_map(PreparedRoute::take_poison).collect();
        let mut unreadable = routed.poison.clone();
        unreadable.extend(undecodable.iter().map(|(place, error)| (*place, error)));

        let stops = match self.judge(topic, &records, &unreadable).await? {
            Judged::Go(stops) => stops,
            Judged::Park(reason) => return self.park(topic, &reason).await,
        };
        let is_taken = |place: usize| {
            let (partition, record) = records[place];
            stops
                .get(&partition)
                .is_none_or(|stop: &Stop| record.offset < stop.offset)
        };
        routes.iter_mut().for_each(|route| route.retain(is_taken));
        let decoded = self.warehouse.environment.now();
        let mut report = self.stage(topic, &records, &routes, &unreadable, &stops).await?;
        report.took = Took {
            decode: decoded.since(started),
            write: self.warehouse.environment.now().since(decoded),
        };
        Ok(report)
    }

    /// Why the topic must stop, if its records are of another type than its table was made for.
    async fn second_type(&self, topic: &TopicEvent<'_>, routed: &Routed<'_>) -> Result<Option<String>> {
        if topic.settings.tables != Tables::One {
            return Ok(None);
        }
        let names = record_names(routed);
        let Some(first) = names.first() else {
            return Ok(None);
        };
        let known = match &topic.state.record_name {
            Some(known) => known.clone(),
            None => {
                let keep = |state: &mut TopicState| {
                    let is_new = state.record_name.is_none();
                    state.record_name.get_or_insert_with(|| first.clone());
                    is_new
                };
                let (source, name) = (&topic.settings.source, &topic.settings.topic);
                let state = self.warehouse.change_topic_state(source, name, keep).await?;
                state.record_name.unwrap_or_else(|| first.clone())
            }
        };
        Ok(names.into_iter().find(|name| *name != known).map(|other| {
            format!(
                "the topic's records are `{known}`, and now there are some of the type `{other}`; set tables = \
                 \"by_record_name\" (in a topic without a table) for a table of each type, or tables = \"merged\" for \
                 one with the columns of all, then `frazil topic resume`"
            )
        }))
    }

    /// How the topic's values are read. Under `auto`, what prevails among the first ones is kept in the state: how a
    /// record is read must not depend on the company in which it is delivered again.
    async fn encoding(&self, topic: &TopicEvent<'_>) -> Result<Encoding> {
        if let Known::Settled(encoding) = known(&topic.settings, &topic.state) {
            return Ok(encoding);
        }
        let Some((format, framing)) = prevailing(&topic.batches) else {
            // Nothing to decide by: what is there is reported as it is, and the next values decide.
            return Ok(Encoding {
                format: Format::Auto,
                framing: Framing::Auto,
            });
        };
        let keep = |state: &mut TopicState| {
            let is_new = state.value_format.is_none();
            if is_new {
                (state.value_format, state.value_framing) = (Some(format), Some(framing));
            }
            is_new
        };
        let state = self
            .warehouse
            .change_topic_state(&topic.settings.source, &topic.settings.topic, keep)
            .await?;
        Ok(kept(state.value_format.unwrap_or(format), state.value_framing))
    }

    /// Decides about records that cannot be read: go on (perhaps up to a stop per partition), or suspend and park.
    async fn judge(
        &self,
        topic: &TopicEvent<'_>,
        records: &[(Partition, &Record<'_>)],
        unreadable: &BTreeMap<usize, &Error>,
    ) -> Result<Judged> {
        let settings = &topic.settings;
        match settings.on_error {
            OnError::Skip => {
                if let Some((place, error)) = unreadable.first_key_value() {
                    let (partition, record) = records[*place];
                    let (topic, first_offset) = (&settings.topic, record.offset.0);
                    let skipped = unreadable.len();
                    tracing::warn!(%topic, %partition, first_offset, skipped, %error, "records skipped");
                }
                Ok(Judged::Go(BTreeMap::new()))
            }
            OnError::Suspend => {
                let mut stops: BTreeMap<Partition, Stop> = BTreeMap::new();
                for (place, error) in unreadable {
                    let (partition, record) = records[*place];
                    let stop = Stop {
                        offset: record.offset,
                        reason: error.to_string(),
                    };
                    stops.entry(partition).or_insert(stop);
                }
                if let Some((partition, stop)) = stops.first_key_value() {
                    let message = format!(
                        "partition {partition}: the record at offset {} cannot be read: {}; fix the schema or the \
                         record, then `frazil topic resume`, or set on_error = \"dead_letter\"",
                        stop.offset, stop.reason
                    );
                    self.warehouse
                        .suspend(&settings.source, &settings.topic, Cause::Poison, &message)
                        .await?;
                }
                Ok(Judged::Go(stops))
            }
            OnError::DeadLetter => {
                let (count, total) = (unreadable.len() as u64, records.len() as u64);
                let now = self.warehouse.environment.now();
                let log = (&settings.source, &settings.topic);
                if !self.breaker.trips(log, &settings.breaker, now, total, count) {
                    return Ok(Judged::Go(BTreeMap::new()));
                }
                self.breaker.reset(log);
                if topic.state.breaker_override {
                    self.warehouse
                        .change_topic_state(&settings.source, &settings.topic, |state| {
                            std::mem::take(&mut state.breaker_override)
                        })
                        .await?;
                    return Ok(Judged::Go(BTreeMap::new()));
                }
                let example = unreadable
                    .first_key_value()
                    .map(|(_, error)| error.to_string())
                    .unwrap_or_default();
                let message = format!(
                    "too many records cannot be read ({count} of {total} in this event), for example: {example}; fix \
                     it and `frazil topic resume`, or resume with --override-breaker to take them as dead letters"
                );
                self.warehouse
                    .suspend(&settings.source, &settings.topic, Cause::Breaker, &message)
                    .await?;
                Ok(Judged::Park(message))
            }
        }
    }

    pub(crate) async fn suspend_and_park(
        &self,
        topic: &TopicEvent<'_>,
        cause: Cause,
        message: &str,
    ) -> Result<TopicReport> {
        self.warehouse
            .suspend(&topic.settings.source, &topic.settings.topic, cause, message)
            .await?;
        self.park(topic, message).await
    }

    /// Keeps the event as it came, to be taken when the topic runs again. A parked event that is being drained stays
    /// where it is instead.
    async fn park(&self, topic: &TopicEvent<'_>, reason: &str) -> Result<TopicReport> {
        if let Delivery::Parked(parked) = topic.delivery {
            return Err(Error::new(ErrorKind::Suspended, "take a parked event", reason)
                .with_context("topic", &parked.log.topic)
                .with_context("event", parked.id)
                .with_hint("it stays parked until the topic runs"));
        }
        let claims = topic
            .batches
            .iter()
            .map(|batch| (batch.topic_partition.partition, batch.range()));
        let claims: Vec<_> = claims.collect();
        let event = Bytes::copy_from_slice(topic.raw);
        park(&self.warehouse, &topic.log(), event, Some(&claims)).await?;
        Ok(topic.report(TopicOutcome::Parked {
            reason: reason.to_owned(),
        }))
    }
}

#[async_trait]
impl EventSink for Ingest {
    async fn deliver(&self, parked: &ParkedEvent, event: Bytes) -> Result<()> {
        let report = self.handle_parked(parked, &event).await?;
        // What was not taken is only in the parked event: it must stay.
        match report.topics.iter().flat_map(|topic| &topic.failures).next() {
            None => Ok(()),
            Some(failure) => Err(Error::new(
                ErrorKind::Suspended,
                "take a parked event",
                failure.reason.clone(),
            )
            .with_context("topic_partition", &failure.topic_partition)
            .with_context("offset", failure.offset)
            .with_hint("it stays parked until the topic runs")),
        }
    }
}

/// Where a partition stops being taken, and why.
pub(crate) struct Stop {
    pub(crate) offset: Offset,
    pub(crate) reason: String,
}

enum Judged {
    Go(BTreeMap<Partition, Stop>),
    Park(String),
}

impl<'a> TopicEvent<'a> {
    pub(crate) fn log(&self) -> LogName {
        LogName {
            source: self.settings.source.clone(),
            topic: self.settings.topic.clone(),
            epoch: self.state.epoch,
        }
    }

    /// All records, by partition and offset.
    fn records(&self) -> Vec<(Partition, &'a Record<'a>)> {
        let of = |batch: &&'a PartitionBatch<'a>| {
            let partition = batch.topic_partition.partition;
            batch.records.iter().map(move |record| (partition, record))
        };
        self.batches.iter().flat_map(of).collect()
    }

    pub(crate) fn report(&self, outcome: TopicOutcome) -> TopicReport {
        let records = self.batches.iter().flat_map(|batch| &batch.records);
        TopicReport {
            source: self.settings.source.clone(),
            topic: self.settings.topic.clone(),
            epoch: self.state.epoch,
            table: self.settings.table.clone(),
            tables: Vec::new(),
            records: records.clone().count() as u64,
            bytes: records.map(size_of).sum(),
            rows: 0,
            dead_letters: 0,
            skipped: 0,
            files: 0,
            file_bytes: 0,
            outcome,
            failures: Vec::new(),
            took: Took::default(),
        }
    }
}

#[cfg(test)]
mod tests;
