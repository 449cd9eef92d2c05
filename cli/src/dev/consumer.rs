//! A topic's records from a broker: assigned, never joined, so that no group has to agree about anything.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use frazil_core::{Error, ErrorKind, Result, TimestampMs, TopicName};
use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{Consumer, ConsumerContext, StreamConsumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};
use rdkafka::message::{BorrowedMessage, Headers, Message, Timestamp};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use tokio::time::timeout;

use super::event::{EncodedRecord, KafkaRecord, TimestampType};
use super::start::Extent;

/// How long one question to the broker may take.
const ASK: Duration = Duration::from_secs(1);
/// How often the first question is asked: a broker that has just been started, or one far away, gets ten seconds.
const FIRST_ASKS: usize = 10;
/// How long later questions may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long errors that are queued already take to arrive.
const HARVEST: Duration = Duration::from_millis(20);
/// Read ahead by the client, beside what is in batches: a few events.
const PREFETCH_KILOBYTES: &str = "32768";
/// Properties that are Frazil's own: it keeps the positions itself and must hear of every jump.
const OWN: [(&str, &str); 5] = [
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("auto.offset.reset", "error"),
    ("enable.partition.eof", "true"),
    ("allow.auto.create.topics", "false"),
];
/// What anybody may set otherwise.
const DEFAULTS: [(&str, &str); 4] = [
    // The client wants a group's name even where nothing is joined and nothing committed.
    ("group.id", "frazil-dev"),
    ("client.id", "frazil-dev"),
    ("queued.max.messages.kbytes", PREFETCH_KILOBYTES),
    ("max.poll.interval.ms", "86400000"),
];

/// A consumer of all partitions of one topic.
#[derive(Clone)]
pub(crate) struct TopicConsumer {
    client: Arc<StreamConsumer<Listener>>,
    topic: TopicName,
    brokers: String,
}

/// What a consumer hears.
#[derive(Debug)]
pub(crate) enum Heard {
    Record(EncodedRecord),
    /// The end of a partition, for now.
    End(i32),
    /// The broker does not have an offset that was to be read next.
    OutOfRange,
    /// The client tries again by itself.
    Trouble(String),
}

/// Keeps the client's last words: its error codes say less.
#[derive(Default)]
struct Listener {
    heard: Mutex<Option<(KafkaError, String)>>,
}

impl ClientContext for Listener {
    fn error(&self, error: KafkaError, reason: &str) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let is_summary = error.rdkafka_error_code() == Some(Code::AllBrokersDown);
        // “All brokers are down” is said after the reason, and says less.
        match heard.as_mut() {
            Some((code, _)) if is_summary => *code = error,
            _ => *heard = Some((error, reason.to_owned())),
        }
    }
}

impl ConsumerContext for Listener {}

impl TopicConsumer {
    /// Connects, and makes sure that the topic is there.
    pub(crate) async fn connect(
        brokers: &str,
        topic: &TopicName,
        properties: &[(String, String)],
    ) -> Result<(Self, BTreeSet<i32>)> {
        let mut config = ClientConfig::new();
        for (name, value) in DEFAULTS {
            config.set(name, value);
        }
        for (name, value) in properties {
            if let Some((name, _)) = OWN.iter().find(|(own, _)| own == name) {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    "set a property of the Kafka client",
                    "Frazil sets it, so that no record is passed over",
                )
                .with_context("property", name)
                .with_hint("leave it out; --from says where to begin"));
            }
            config.set(name, value);
        }
        for (name, value) in OWN {
            config.set(name, value);
        }
        config.set("bootstrap.servers", brokers);
        let client = config
            .create_with_context(Listener::default())
            .map_err(|error| refused(&error))?;
        let consumer = Self {
            client: Arc::new(client),
            topic: topic.clone(),
            brokers: brokers.to_owned(),
        };
        let partitions = consumer.first_partitions().await?;
        Ok((consumer, partitions))
    }

    async fn first_partitions(&self) -> Result<BTreeSet<i32>> {
        let mut last = None;
        for _ in 0..FIRST_ASKS {
            match self.ask_partitions(ASK).await {
                Ok(partitions) => return partitions,
                Err(error) => last = Some(error),
            }
            if self.harvest().await {
                break;
            }
        }
        let error = last.unwrap_or(KafkaError::Canceled);
        Err(self.failed("ask the broker for the topic", &error))
    }

    /// The topic's partitions as they are now.
    pub(crate) async fn partitions(&self) -> Result<BTreeSet<i32>> {
        let asked = self.ask_partitions(PATIENCE).await;
        asked.map_err(|error| self.failed("ask the broker for the topic", &error))?
    }

    async fn ask_partitions(&self, patience: Duration) -> Result<Result<BTreeSet<i32>>, KafkaError> {
        let metadata = self
            .ask(move |this| this.client.fetch_metadata(Some(this.topic.as_str()), patience))
            .await?;
        let found = metadata
            .topics()
            .iter()
            .find(|topic| topic.name() == self.topic.as_str());
        let partitions: BTreeSet<i32> = found
            .map(|topic| topic.partitions().iter().map(|of| of.id()).collect())
            .unwrap_or_default();
        let code = found.and_then(|topic| topic.error()).map(Code::from);
        Ok(match code {
            None if !partitions.is_empty() => Ok(partitions),
            None | Some(Code::UnknownTopicOrPartition | Code::UnknownTopic) => Err(self.missing()),
            Some(code) => Err(self.failed("ask the broker for the topic", &KafkaError::MetadataFetch(code))),
        })
    }

    fn missing(&self) -> Error {
        Error::new(
            ErrorKind::Invalid,
            "read the topic",
            "the cluster has no such topic",
        )
        .with_context("topic", &self.topic)
        .with_context("brokers", &self.brokers)
        .with_hint("check the spelling, and that --brokers names the right cluster")
        .with_code("kafka.unknown_topic")
    }

    /// Where a partition's log begins and ends.
    pub(crate) async fn extent(&self, partition: i32) -> Result<Extent> {
        let asked = self
            .ask(move |this| {
                this.client
                    .fetch_watermarks(this.topic.as_str(), partition, PATIENCE)
            })
            .await;
        let (first, end) =
            asked.map_err(|error| self.failed("ask where a partition begins and ends", &error))?;
        Ok(Extent { first, end })
    }

    /// The first offset at or after a time, by partition; those that have none are left out.
    pub(crate) async fn offsets_at(
        &self,
        partitions: &BTreeSet<i32>,
        time: TimestampMs,
    ) -> Result<BTreeMap<i32, i64>> {
        let asked = self.list(
            partitions
                .iter()
                .map(|partition| (*partition, Offset::Offset(time.0))),
        );
        let found = match asked {
            Ok(asked) => {
                self.ask(move |this| this.client.offsets_for_times(asked, PATIENCE))
                    .await
            }
            Err(error) => Err(error),
        };
        let found = found.map_err(|error| self.failed("ask for the offsets of a time", &error))?;
        Ok(found
            .elements()
            .iter()
            .filter_map(|element| match element.offset() {
                Offset::Offset(offset) => Some((element.partition(), offset)),
                _ => None,
            })
            .collect())
    }

    /// Begins to read, each partition from its offset; those that are read already go on.
    pub(crate) fn assign(&self, positions: &BTreeMap<i32, i64>) -> Result<()> {
        let list = self.list(
            positions
                .iter()
                .map(|(partition, offset)| (*partition, Offset::Offset(*offset))),
        );
        let assigned = list.and_then(|list| self.client.incremental_assign(&list));
        assigned.map_err(|error| self.failed("read the topic", &error))
    }

    /// Stops reading these for a while.
    pub(crate) fn pause(&self, partitions: &BTreeSet<i32>) -> Result<()> {
        let list = self.list(partitions.iter().map(|partition| (*partition, Offset::Invalid)));
        let paused = list.and_then(|list| self.client.pause(&list));
        paused.map_err(|error| self.failed("pause partitions", &error))
    }

    /// Goes on with these.
    pub(crate) fn resume(&self, partitions: &BTreeSet<i32>) -> Result<()> {
        let list = self.list(partitions.iter().map(|partition| (*partition, Offset::Invalid)));
        let resumed = list.and_then(|list| self.client.resume(&list));
        resumed.map_err(|error| self.failed("resume partitions", &error))
    }

    /// What comes next. Nothing is lost when the future is dropped.
    pub(crate) async fn next(&self) -> Result<Heard> {
        match self.client.recv().await {
            Ok(message) => Ok(Heard::Record(encode(&message)?)),
            Err(KafkaError::PartitionEOF(partition)) => Ok(Heard::End(partition)),
            Err(error) => match error.rdkafka_error_code() {
                Some(Code::OffsetOutOfRange | Code::AutoOffsetReset) => Ok(Heard::OutOfRange),
                Some(Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition) => {
                    Err(self.missing())
                }
                Some(
                    Code::TopicAuthorizationFailed
                    | Code::GroupAuthorizationFailed
                    | Code::SaslAuthenticationFailed,
                ) => Err(self.failed("read the topic", &error)),
                _ if matches!(error, KafkaError::MessageConsumptionFatal(_)) => {
                    Err(self.failed("read the topic", &error))
                }
                _ => Ok(Heard::Trouble(self.said().unwrap_or_else(|| error.to_string()))),
            },
        }
    }

    /// The client's calls that wait do so on a thread of their own.
    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Self) -> Result<T, KafkaError> + Send + 'static,
    ) -> Result<T, KafkaError> {
        let this = self.clone();
        let asked = tokio::task::spawn_blocking(move || question(&this)).await;
        asked.unwrap_or(Err(KafkaError::Canceled))
    }

    fn list(
        &self,
        partitions: impl Iterator<Item = (i32, Offset)>,
    ) -> Result<TopicPartitionList, KafkaError> {
        let mut list = TopicPartitionList::new();
        for (partition, offset) in partitions {
            list.add_partition_offset(self.topic.as_str(), partition, offset)?;
        }
        Ok(list)
    }

    /// Lets the client say why it does not get through; whether no broker is left to hope for.
    async fn harvest(&self) -> bool {
        let mut all_down = false;
        while let Ok(Err(error)) = timeout(HARVEST, self.client.recv()).await {
            all_down |= error.rdkafka_error_code() == Some(Code::AllBrokersDown);
        }
        all_down
    }

    fn said(&self) -> Option<String> {
        let heard = self
            .client
            .context()
            .heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        heard.as_ref().map(|(_, reason)| reason.clone())
    }

    fn failed(&self, operation: &'static str, error: &KafkaError) -> Error {
        let code = error.rdkafka_error_code();
        let (kind, hint) = match code {
            Some(
                Code::TopicAuthorizationFailed
                | Code::GroupAuthorizationFailed
                | Code::SaslAuthenticationFailed,
            ) => (
                ErrorKind::Invalid,
                "check the credentials in --kafka, and what they are allowed to do (describe and read the topic)",
            ),
            _ => (
                ErrorKind::Unavailable,
                "check that the broker runs and that it can be reached under this address and the one that it advertises",
            ),
        };
        let message = self
            .said()
            .unwrap_or_else(|| code.map_or_else(|| error.to_string(), |code| code.to_string()));
        Error::new(kind, operation, message)
            .with_context("topic", &self.topic)
            .with_context("brokers", &self.brokers)
            .with_hint(hint)
            .with_source(error.clone())
    }
}

/// A client that cannot be made. Values may be secrets: they are not shown.
fn refused(error: &KafkaError) -> Error {
    let invalid = |message: String| Error::new(ErrorKind::Invalid, "set up the Kafka client", message);
    match error {
        KafkaError::ClientConfig(_, reason, name, _) => {
            invalid(reason.clone()).with_context("property", name).with_hint(
                "properties are those of librdkafka; TLS and SASL over it need a build with --features kafka-tls",
            )
        }
        other => invalid(other.to_string()).with_hint(
            "properties are those of librdkafka; TLS and SASL over it need a build with --features kafka-tls",
        ),
    }
}

fn encode(message: &BorrowedMessage<'_>) -> Result<EncodedRecord> {
    let (timestamp_ms, timestamp_type) = match message.timestamp() {
        Timestamp::NotAvailable => (-1, TimestampType::None),
        Timestamp::CreateTime(at) => (at, TimestampType::CreateTime),
        Timestamp::LogAppendTime(at) => (at, TimestampType::LogAppendTime),
    };
    let headers = || match message.headers() {
        None => Vec::new(),
        Some(headers) => headers.iter().map(|header| (header.key, header.value)).collect(),
    };
    // Kafka's protocol says that a header's name is UTF-8, brokers do not check it, and the client panics.
    let headers = catch_unwind(AssertUnwindSafe(headers)).map_err(|_| {
        Error::new(
            ErrorKind::Poison,
            "read a record",
            "the name of a header is not UTF-8",
        )
        .with_context("topic", message.topic())
        .with_context("partition", message.partition())
        .with_context("offset", message.offset())
    })?;
    KafkaRecord {
        topic: message.topic(),
        partition: message.partition(),
        offset: message.offset(),
        timestamp_ms,
        timestamp_type,
        key: message.key(),
        value: message.payload(),
        headers,
    }
    .encode()
}
