//! The file as it is written: every key optional, every value with its place. [`crate::Config`] makes settings
//! of it. The JSON Schema and the reference page are made of these structs and their comments.

use crate::aws::{AWS_KEYS, AwsSection, CatalogKind};
use crate::duration::DurationMs;
use crate::encoding::{Format, Framing, SchemaSource};
use crate::fault::{At, Located, Problem};
use crate::fields::{FIELD_KEYS, FieldSection};
use crate::instant::{InstantRange, WrittenInstant};
use crate::layout::{PartitionField, SortField, column_name};
use crate::place::{check_place, is_local_path};
use crate::reader::{Keys, LaterKey, Section};
use crate::registry::{REGISTRY_KEYS, RegistrySection, is_variable};
use crate::source::{broker_address, cluster_arn};
use crate::topic::{ColumnCase, KeyColumns, OnError, Tables, TimeType, Timestamps, UnknownFields};

/// Most fields of a partition spec or sort order: each multiplies the files that one event makes.
const MAX_LAYOUT_FIELDS: usize = 8;
/// Most brokers of a source: a few name the cluster, and all are compared with every event.
const MAX_BOOTSTRAP_SERVERS: usize = 100;
/// More columns than this no catalog holds: Glue refuses tables above a few thousand.
const MAX_COLUMNS: u32 = 2_000;
/// Every snapshot stands in every metadata.json.
const MAX_SNAPSHOTS: u32 = 10_000;

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

pub(crate) type Read<T> = Option<Located<T>>;
type Named<T> = Vec<(Located<String>, T)>;

/// How Frazil turns Kafka topics into Iceberg tables.
#[derive(Debug, Clone, Default)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(rename = "frazil.toml", deny_unknown_fields)
)]
pub(crate) struct FileSection {
    /// The format number of this file. A version of Frazil reads its own number and the one before.
    #[cfg_attr(test, schemars(range(min = 1, max = 1), extend("default" = 1)))]
    pub(crate) format: Read<u32>,
    /// Where the tables are: `s3://BUCKET/PREFIX`, or a directory, relative to this file. Without it: `./warehouse`
    /// where the command runs. `--warehouse` and `FRAZIL_WAREHOUSE` go before it.
    #[cfg_attr(test, schemars(extend("examples" = ["s3://my-company-lake/kafka", "./warehouse"])))]
    pub(crate) warehouse: Read<String>,
    /// What knows the current metadata of each table. Without it: `glue` for a warehouse on S3, `sqlite` for a
    /// directory; nothing else is possible.
    pub(crate) catalog: Read<CatalogKind>,
    /// The AWS account of a warehouse on S3.
    pub(crate) aws: Option<AwsSection>,
    /// The directory that is the schema registry of topics that name none, relative to this file. Without it:
    /// `schemas/` beside the event.
    pub(crate) schemas: Read<String>,
    /// Kafka clusters by name. Without any, one source called `default` takes every event.
    #[cfg_attr(
        test,
        schemars(with = "Option<std::collections::BTreeMap<String, SourceSection>>")
    )]
    pub(crate) sources: Named<SourceSection>,
    /// Schema registries by name.
    #[cfg_attr(
        test,
        schemars(with = "Option<std::collections::BTreeMap<String, RegistrySection>>")
    )]
    pub(crate) registries: Named<RegistrySection>,
    /// What holds for every topic that does not say otherwise.
    pub(crate) defaults: TopicKeys,
    /// Topics by name, or by a pattern such as `"orders-*"`. Exactly one section applies to a topic, on top of
    /// `[defaults]`: its exact name before any pattern, then the pattern that fixes the most characters.
    #[cfg_attr(
        test,
        schemars(with = "Option<std::collections::BTreeMap<String, TopicSection>>")
    )]
    pub(crate) topics: Named<TopicSection>,
}

const FILE_KEYS: Keys = Keys {
    known: &[&[
        "format",
        "warehouse",
        "catalog",
        "aws",
        "schemas",
        "sources",
        "registries",
        "defaults",
        "topics",
    ]],
    later: &[
        ("compaction", "maintenance"),
        ("maintenance", "maintenance"),
        ("rest", "the REST catalog"),
        ("tables", "tables that several topics share"),
    ],
    instead: &[],
    elsewhere: &[
        ("namespace", "[defaults] or [topics.NAME]"),
        ("source", "[defaults] or [topics.NAME]"),
        ("on_error", "[defaults] or [topics.NAME]"),
        (
            "registry",
            "[defaults] or [topics.NAME]; the registry itself is [registries.NAME]",
        ),
        ("topic", "[topics.NAME]"),
        ("arn", "[sources.NAME]"),
        ("bootstrap_servers", "[sources.NAME]"),
    ],
};

impl FileSection {
    pub(crate) fn keys() -> &'static Keys {
        &FILE_KEYS
    }

    pub(crate) fn read(section: Section<'_>) -> Self {
        let file = Self {
            format: section.read("format"),
            warehouse: section
                .read("warehouse")
                .filter(|place| check(&section, place, |place: &String| check_place(place))),
            catalog: section.read("catalog"),
            aws: section.section("aws", &AWS_KEYS).map(AwsSection::read),
            schemas: section
                .read("schemas")
                .filter(|path| check(&section, path, |path: &String| is_local_path(path))),
            sources: section
                .sections("sources", &SOURCE_KEYS)
                .into_iter()
                .map(|(name, section)| (name, SourceSection::read(section)))
                .collect(),
            registries: section
                .sections("registries", &REGISTRY_KEYS)
                .into_iter()
                .map(|(name, section)| (name, RegistrySection::read(section)))
                .collect(),
            defaults: section
                .section("defaults", &DEFAULTS_KEYS)
                .map(|section| {
                    let keys = TopicKeys::read(&section);
                    section.finish();
                    keys
                })
                .unwrap_or_default(),
            topics: section
                .sections("topics", &TOPIC_KEYS)
                .into_iter()
                .map(|(name, section)| (name, TopicSection::read(section)))
                .collect(),
        };
        section.finish();
        file
    }
}

/// A Kafka cluster, and how its events are recognised: by `arn`, by any one of `bootstrap_servers`, or both. A
/// single source with neither takes every event.
#[derive(Debug, Clone, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct SourceSection {
    /// The ARN of the MSK cluster.
    #[cfg_attr(test, schemars(regex(pattern = "^arn:[^:]+:kafka:[^:]*:[^:]*:cluster/"), extend("examples" = ["arn:aws:kafka:eu-central-1:111122223333:cluster/main/0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0-1"])))]
    pub(crate) arn: Read<String>,
    /// Brokers as `host:port`. One that occurs in an event is enough: brokers come and go.
    #[cfg_attr(test, schemars(length(max = MAX_BOOTSTRAP_SERVERS), extend("examples" = [["b-1.main.example.com:9092", "b-2.main.example.com:9092"]])))]
    pub(crate) bootstrap_servers: Read<Vec<Located<String>>>,
    /// The namespace of tables of this source, unless the topic names one. Before that of `[defaults]`.
    #[cfg_attr(test, schemars(regex(pattern = "^[a-z0-9_]{1,255}$"), extend("examples" = ["kafka_eu"])))]
    pub(crate) namespace: Read<String>,
}

const SOURCE_KEYS: Keys = Keys {
    known: &[&["arn", "bootstrap_servers", "namespace"]],
    later: &[],
    instead: &[],
    elsewhere: &[
        ("table", "[topics.NAME]"),
        ("topics", "a section of its own"),
        ("registry", "[defaults] or [topics.NAME]"),
    ],
};

impl SourceSection {
    fn read(section: Section<'_>) -> Self {
        let source = Self {
            arn: section
                .read("arn")
                .filter(|arn| check(&section, arn, |arn: &String| cluster_arn(arn).map(drop))),
            bootstrap_servers: section
                .read_list("bootstrap_servers", MAX_BOOTSTRAP_SERVERS)
                .map(|servers| {
                    let faulty = |server: &Located<String>| {
                        !check(&section, server, |text| broker_address(text).map(drop))
                    };
                    Located {
                        value: servers
                            .value
                            .into_iter()
                            .filter(|server| !faulty(server))
                            .collect(),
                        at: servers.at,
                    }
                }),
            namespace: section
                .read("namespace")
                .filter(|name| check(&section, name, is_safe_name)),
        };
        section.finish();
        source
    }
}

/// One topic, or the topics that a pattern matches. Every key of `[defaults]` may stand here too.
#[derive(Debug, Clone, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct TopicSection {
    /// The topic or pattern, when the section is named otherwise: two sources may have a topic of the same name.
    #[cfg_attr(test, schemars(extend("examples" = ["orders"])))]
    pub(crate) topic: Read<String>,
    /// The table. Without it: the topic's name in lowercase, with `_` for everything but a-z, 0-9 and `_`.
    #[cfg_attr(test, schemars(regex(pattern = "^[a-z0-9_]{1,242}$"), extend("examples" = ["orders"])))]
    pub(crate) table: Read<String>,
    #[cfg_attr(test, schemars(flatten))]
    pub(crate) keys: TopicKeys,
}

const TOPIC_KEYS: Keys = Keys {
    known: &[&["topic", "table"], TopicKeys::NAMES],
    later: TopicKeys::LATER,
    instead: TopicKeys::INSTEAD,
    elsewhere: &[
        ("arn", "[sources.NAME]"),
        ("bootstrap_servers", "[sources.NAME]"),
        ("warehouse", "the top of the file"),
    ],
};

const DEFAULTS_KEYS: Keys = Keys {
    known: &[TopicKeys::NAMES],
    later: TopicKeys::LATER,
    instead: TopicKeys::INSTEAD,
    elsewhere: &[
        ("topic", "[topics.NAME]"),
        ("table", "[topics.NAME]"),
        ("arn", "[sources.NAME]"),
        ("bootstrap_servers", "[sources.NAME]"),
        ("warehouse", "the top of the file"),
    ],
};

impl TopicSection {
    fn read(section: Section<'_>) -> Self {
        let topic = Self {
            topic: section.read("topic"),
            table: section
                .read("table")
                .filter(|name| check(&section, name, is_safe_name)),
            keys: TopicKeys::read(&section),
        };
        section.finish();
        topic
    }
}

/// What holds for every topic that does not say otherwise.
#[derive(Debug, Clone, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct TopicKeys {
    /// The source, by its name in `[sources]`. May be left out when there is only one.
    #[cfg_attr(test, schemars(extend("examples" = ["main"])))]
    pub(crate) source: Read<String>,
    /// The namespace (the Glue database) of the table.
    #[cfg_attr(test, schemars(regex(pattern = "^[a-z0-9_]{1,255}$"), extend("default" = "kafka")))]
    pub(crate) namespace: Read<String>,
    /// How values are encoded: `avro`, `protobuf`, `json_schema` (JSON with a schema), `json` (without one: columns come
    /// from what arrives), `raw` (one binary column), `string` (one string column). `auto` is decided by a topic's first
    /// values and kept: values that name a schema are in its language, others are JSON.
    #[cfg_attr(test, schemars(extend("default" = "auto")))]
    pub(crate) format: Read<Format>,
    /// How a value names its schema: `confluent` (header or prefix), `glue`, `apicurio`, `lambda` (the event source
    /// mapping's own registry client), `none`. `auto` takes what the value shows.
    #[cfg_attr(test, schemars(extend("default" = "auto")))]
    pub(crate) framing: Read<Framing>,
    /// Where the schema comes from: `registry`, `infer`, `raw` (no schema); for values without a framing `file:PATH`,
    /// relative to this file, or `subject:NAME@VERSION` (without a version: the latest). `auto` is what the format needs.
    #[cfg_attr(test, schemars(extend("default" = "auto")))]
    pub(crate) schema: Read<SchemaSource>,
    /// The registry, by its name in `[registries]`. May be left out when there is only one.
    #[cfg_attr(test, schemars(extend("examples" = ["main"])))]
    pub(crate) registry: Read<String>,
    /// The full name of the Protobuf message that values are, when their framing does not say.
    #[cfg_attr(test, schemars(extend("examples" = ["shop.v1.Order"])))]
    pub(crate) message: Read<String>,
    /// What becomes of records of different types in one topic: with `one`, a second type suspends the topic; `merged`
    /// gives the table the columns of all; `by_record_name` gives each type a table of its own, `TABLE_FULL_NAME`.
    /// Frozen when the table is made, but for `one` and `merged`.
    #[cfg_attr(test, schemars(extend("default" = "one")))]
    pub(crate) tables: Read<Tables>,
    /// What becomes of keys: `kafka` keeps them as text in `_kafka_key`, `columns` makes columns of their fields too.
    #[cfg_attr(test, schemars(extend("default" = "kafka")))]
    pub(crate) key: Read<KeyColumns>,
    /// How keys that become columns are encoded: as `format`. `auto` is the language of the schema that a key names.
    #[cfg_attr(test, schemars(extend("default" = "auto")))]
    pub(crate) key_format: Read<Format>,
    /// Kafka's own columns, beside `_kafka_partition`, `_kafka_offset`, `_kafka_timestamp` and `_kafka_epoch`,
    /// which every table has.
    pub(crate) kafka_columns: KafkaColumnsSection,
    /// How column names are written, at every level: `lower` is lowercase, `keep` as the schema writes them, `snake`
    /// with `_` between words. Frozen when the table is made.
    #[cfg_attr(test, schemars(extend("default" = "lower")))]
    pub(crate) column_case: Read<ColumnCase>,
    /// What instants become: `utc` is `timestamptz`; `utc_naive` is `timestamp` in UTC, for engines that cannot write
    /// `timestamptz`, such as Athena's CREATE TABLE AS. Frozen when the table is made.
    #[cfg_attr(test, schemars(extend("default" = "utc")))]
    pub(crate) timestamps: Read<Timestamps>,
    /// What times of day become: `string` is `HH:MM:SS.ffffff`; `time` is Iceberg's, which Athena does not have. Frozen
    /// when the table is made.
    #[cfg_attr(test, schemars(extend("default" = "string")))]
    pub(crate) time_type: Read<TimeType>,
    /// Whether a Protobuf oneof has a column `<oneof>_case` that names the member that is set. Frozen when the table is
    /// made.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub(crate) oneof_case: Read<bool>,
    /// What becomes of fields that a record's schema does not have: `count` leaves them out, `collect` keeps them as JSON
    /// text in `_kafka_unknown_fields`, with `fail` the record cannot be read.
    #[cfg_attr(test, schemars(extend("default" = "count")))]
    pub(crate) unknown_fields: Read<UnknownFields>,
    /// Single fields of the values, by path: `[topics.orders.fields."customer.email"]`. Those of `[defaults]` hold where
    /// the topic does not name the same path. Frozen when the field's column is made.
    #[cfg_attr(
        test,
        schemars(with = "Option<std::collections::BTreeMap<String, FieldSection>>")
    )]
    pub(crate) fields: Named<FieldSection>,
    /// The environment variable that holds the secret of hashed fields, at least 16 bytes. With another secret the same
    /// values get other hashes.
    #[cfg_attr(test, schemars(extend("examples" = ["FRAZIL_SECRET_HASH"])))]
    pub(crate) hash_key_env: Read<String>,
    /// The most leaf columns that inference makes of one topic.
    #[cfg_attr(test, schemars(range(min = 1, max = MAX_COLUMNS), extend("default" = 500)))]
    pub(crate) max_columns: Read<u32>,
    /// The partition spec: columns, or transforms of columns: `year(c)`, `month(c)`, `day(c)`, `hour(c)`,
    /// `bucket(16, c)`, `truncate(4, c)`. `[]` is an unpartitioned table.
    #[cfg_attr(test, schemars(length(max = MAX_LAYOUT_FIELDS), extend("default" = ["day(_kafka_timestamp)"])))]
    pub(crate) partition_by: Read<Vec<Located<PartitionField>>>,
    /// A column of the value that says when it happened: short for `partition_by = ["day(COLUMN)"]`.
    #[cfg_attr(test, schemars(extend("examples" = ["created_at"])))]
    pub(crate) event_time: Read<String>,
    /// The sort order within files, each as `COLUMN [asc|desc] [nulls-first|nulls-last]`. As in Iceberg, nulls are
    /// the smallest values unless stated.
    #[cfg_attr(test, schemars(length(max = MAX_LAYOUT_FIELDS), extend("default" = []), extend("examples" = [["customer asc nulls-last"]])))]
    pub(crate) sort_by: Read<Vec<Located<SortField>>>,
    /// The instants that a value may hold, first and last; a record with another one cannot be read. Dates, times,
    /// or distances such as `"now+365d"`.
    #[cfg_attr(test, schemars(with = "Option<[WrittenInstant; 2]>", extend("default" = ["0001-01-01", "9999-12-31"])))]
    pub(crate) timestamp_range: Read<InstantRange>,
    /// The instants by which rows may be partitioned, first and last, written as those of `timestamp_range`. A record
    /// with another one in a column that `partition_by` names cannot be read: one wrong clock would make thousands of
    /// partitions.
    #[cfg_attr(test, schemars(with = "Option<[WrittenInstant; 2]>", extend("default" = ["1970-01-01", "now+365d"])))]
    pub(crate) partition_range: Read<InstantRange>,
    /// What becomes of a record that cannot be read: `dead_letter` stores it in TABLE_dead_letters, `suspend` stops
    /// the topic until somebody decides (what arrives meanwhile is kept), `skip` counts and forgets it.
    #[cfg_attr(test, schemars(extend("default" = "dead_letter")))]
    pub(crate) on_error: Read<OnError>,
    /// With `dead_letter`: when too many records cannot be read, the topic suspends.
    pub(crate) breaker: BreakerSection,
    /// How old a record may get before queries see it, from 10 seconds to a day.
    #[cfg_attr(test, schemars(extend("default" = "1m")))]
    pub(crate) freshness: Read<DurationMs>,
    /// How long the table's past is kept.
    pub(crate) retention: RetentionSection,
    /// Whether what arrives may fill holes that are older than an hour.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub(crate) backfill: Read<bool>,
}

impl TopicKeys {
    const NAMES: &[&str] = &[
        "source",
        "namespace",
        "format",
        "framing",
        "schema",
        "registry",
        "message",
        "tables",
        "key",
        "key_format",
        "kafka_columns",
        "column_case",
        "timestamps",
        "time_type",
        "oneof_case",
        "unknown_fields",
        "fields",
        "hash_key_env",
        "max_columns",
        "partition_by",
        "event_time",
        "sort_by",
        "timestamp_range",
        "partition_range",
        "on_error",
        "breaker",
        "freshness",
        "retention",
        "backfill",
    ];

    const LATER: &[LaterKey] = &[
        ("mode", "upsert"),
        ("upsert", "upsert"),
        ("merge_key", "upsert"),
        ("ttl", "removal of old rows"),
        ("compaction", "maintenance"),
    ];

    const INSTEAD: &[(&str, &str, &str)] = &[(
        "apply_defaults",
        "a default is a reader's, and a table has the columns of many writers: which of them is newest depends on when one \
         asks, so that the same record would become another row when it comes again",
        "remove it; fill in when you read: coalesce(column, value), in a view",
    )];

    fn read(section: &Section<'_>) -> Self {
        let event_time = section.read::<String>("event_time").and_then(|text| {
            let column = column_name(&text.value)
                .map_err(|problem| section.faults().add(&text.at, problem))
                .ok()?;
            Some(Located {
                value: column,
                at: text.at,
            })
        });
        Self {
            source: section.read("source"),
            namespace: section
                .read("namespace")
                .filter(|name| check(section, name, is_safe_name)),
            format: section.read("format"),
            framing: section.read("framing"),
            schema: section.read("schema"),
            registry: section.read("registry"),
            message: section.read("message"),
            tables: section.read("tables"),
            key: section.read("key"),
            key_format: section.read("key_format"),
            kafka_columns: section
                .section("kafka_columns", &KAFKA_COLUMNS_KEYS)
                .map(KafkaColumnsSection::read)
                .unwrap_or_default(),
            column_case: section.read("column_case"),
            timestamps: section.read("timestamps"),
            time_type: section.read("time_type"),
            oneof_case: section.read("oneof_case"),
            unknown_fields: section.read("unknown_fields"),
            fields: section
                .sections("fields", &FIELD_KEYS)
                .into_iter()
                .map(|(path, section)| (path, FieldSection::read(section)))
                .collect(),
            hash_key_env: section
                .read("hash_key_env")
                .filter(|name| check(section, name, |name: &String| is_variable(name))),
            max_columns: section
                .read("max_columns")
                .filter(|columns| check(section, columns, |columns| within(*columns, 1, MAX_COLUMNS))),
            partition_by: section.read_list("partition_by", MAX_LAYOUT_FIELDS),
            event_time,
            sort_by: section.read_list("sort_by", MAX_LAYOUT_FIELDS),
            timestamp_range: read_range(section, "timestamp_range"),
            partition_range: read_range(section, "partition_range"),
            on_error: section.read("on_error"),
            breaker: section
                .section("breaker", &BREAKER_KEYS)
                .map(BreakerSection::read)
                .unwrap_or_default(),
            // Below ten seconds a table makes more snapshots than readers want; beyond a day it is no stream.
            freshness: read_duration(section, "freshness", 10_000, DAY_MS),
            retention: section
                .section("retention", &RETENTION_KEYS)
                .map(RetentionSection::read)
                .unwrap_or_default(),
            backfill: section.read("backfill"),
        }
    }
}

/// Kafka's own columns, beside `_kafka_partition`, `_kafka_offset`, `_kafka_timestamp` and `_kafka_epoch`, which
/// every table has.
#[derive(Debug, Clone, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct KafkaColumnsSection {
    /// `_kafka_key`: the key as a string; bytes that are not UTF-8 as `base64:…`.
    #[cfg_attr(test, schemars(extend("default" = true)))]
    pub(crate) key: Read<bool>,
    /// `_kafka_headers`: a list of structs of name (string) and value (binary).
    #[cfg_attr(test, schemars(extend("default" = true)))]
    pub(crate) headers: Read<bool>,
    /// `_kafka_tombstone`: whether the record had no value.
    #[cfg_attr(test, schemars(extend("default" = true)))]
    pub(crate) tombstone: Read<bool>,
    /// `_kafka_topic`: the exact name of the topic.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub(crate) topic: Read<bool>,
    /// `_kafka_timestamp_type`: whether producer or broker set the timestamp.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub(crate) timestamp_type: Read<bool>,
}

const KAFKA_COLUMNS_KEYS: Keys = Keys {
    known: &[&["key", "headers", "tombstone", "topic", "timestamp_type"]],
    later: &[],
    instead: &[],
    elsewhere: &[],
};

impl KafkaColumnsSection {
    /// The place of the first key that is written.
    pub(crate) fn at(&self) -> Option<&At> {
        let keys = [
            &self.key,
            &self.headers,
            &self.tombstone,
            &self.topic,
            &self.timestamp_type,
        ];
        keys.into_iter()
            .flatten()
            .map(|read| &read.at)
            .min_by_key(|at| at.byte)
    }

    fn read(section: Section<'_>) -> Self {
        let columns = Self {
            key: section.read("key"),
            headers: section.read("headers"),
            tombstone: section.read("tombstone"),
            topic: section.read("topic"),
            timestamp_type: section.read("timestamp_type"),
        };
        section.finish();
        columns
    }
}

/// With `dead_letter`: when too many records cannot be read, the topic suspends.
#[derive(Debug, Clone, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct BreakerSection {
    /// The share of records, from 0 to 1, above which the topic suspends. With `1.0` it never does.
    #[cfg_attr(test, schemars(range(min = 0.0, max = 1.0), extend("default" = 0.05)))]
    pub(crate) share: Read<f64>,
    /// The number of unreadable records that it takes at least.
    #[cfg_attr(test, schemars(range(min = 1), extend("default" = 20)))]
    pub(crate) minimum: Read<u32>,
    /// The time over which both are counted, from a minute to a day.
    #[cfg_attr(test, schemars(extend("default" = "10m")))]
    pub(crate) window: Read<DurationMs>,
}

const BREAKER_KEYS: Keys = Keys {
    known: &[&["share", "minimum", "window"]],
    later: &[],
    instead: &[],
    elsewhere: &[],
};

impl BreakerSection {
    fn read(section: Section<'_>) -> Self {
        let share_is_one = |share: &f64| {
            if (0.0..=1.0).contains(share) {
                return Ok(());
            }
            Err(Problem::new(format!("{share} is not a share from 0 to 1")).hint("5 % is 0.05"))
        };
        let breaker = Self {
            share: section
                .read("share")
                .filter(|share| check(&section, share, share_is_one)),
            minimum: section
                .read("minimum")
                .filter(|minimum| check(&section, minimum, |minimum| within(*minimum, 1, u32::MAX))),
            window: read_duration(&section, "window", MINUTE_MS, DAY_MS),
        };
        section.finish();
        breaker
    }
}

/// How long the table's past is kept.
#[derive(Debug, Clone, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct RetentionSection {
    /// The most snapshots kept; what a tag or branch refers to is kept and not counted.
    #[cfg_attr(test, schemars(range(min = 1, max = MAX_SNAPSHOTS), extend("default" = 100)))]
    pub(crate) snapshots: Read<u32>,
    /// No snapshot younger than this expires, however many there are. From a minute to a year.
    #[cfg_attr(test, schemars(extend("default" = "1h")))]
    pub(crate) snapshot_min_age: Read<DurationMs>,
    /// How long a replaced metadata.json stays readable. At least as long as `snapshot_min_age`, at most a year.
    #[cfg_attr(test, schemars(extend("default" = "6h")))]
    pub(crate) metadata: Read<DurationMs>,
}

const RETENTION_KEYS: Keys = Keys {
    known: &[&["snapshots", "snapshot_min_age", "metadata"]],
    later: &[("rows", "removal of old rows"), ("orphans", "removal of orphans")],
    instead: &[],
    elsewhere: &[],
};

impl RetentionSection {
    fn read(section: Section<'_>) -> Self {
        let retention = Self {
            snapshots: section
                .read("snapshots")
                .filter(|count| check(&section, count, |count| within(*count, 1, MAX_SNAPSHOTS))),
            snapshot_min_age: read_duration(&section, "snapshot_min_age", MINUTE_MS, 365 * DAY_MS),
            metadata: read_duration(&section, "metadata", MINUTE_MS, 365 * DAY_MS),
        };
        section.finish();
        retention
    }
}

pub(crate) fn check<T>(
    section: &Section<'_>,
    read: &Located<T>,
    test: impl Fn(&T) -> Result<(), Problem>,
) -> bool {
    test(&read.value)
        .map_err(|problem| section.faults().add(&read.at, problem))
        .is_ok()
}

fn within(value: u32, min: u32, max: u32) -> Result<(), Problem> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(Problem::new(format!("{value} is not between {min} and {max}")))
}

pub(crate) fn read_duration(
    section: &Section<'_>,
    key: &'static str,
    min_ms: u64,
    max_ms: u64,
) -> Read<DurationMs> {
    let fits = |duration: &DurationMs| {
        if (min_ms..=max_ms).contains(&duration.0) {
            return Ok(());
        }
        let (min, max) = (DurationMs(min_ms), DurationMs(max_ms));
        Err(Problem::new(format!("{duration} is not between {min} and {max}")))
    };
    section
        .read(key)
        .filter(|duration| check(section, duration, fits))
}

fn read_range(section: &Section<'_>, key: &'static str) -> Read<InstantRange> {
    let ends = section.read_list::<WrittenInstant>(key, 2)?;
    let problem = match ends.value.as_slice() {
        [first, last] => {
            let range = InstantRange {
                first: first.value.as_first,
                last: last.value.as_last,
            };
            if range.is_forward() {
                return Some(Located {
                    value: range,
                    at: ends.at,
                });
            }
            Problem::new("the last instant is before the first").hint("write [first, last]")
        }
        _ => Problem::new("a range has two ends").hint("write [first, last]"),
    };
    section.faults().add(&ends.at, problem);
    None
}

/// A namespace or a table as Glue and Athena can name it.
fn is_safe_name(text: &String) -> Result<(), Problem> {
    let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    if !text.is_empty() && text.len() <= 255 && text.bytes().all(legal) {
        return Ok(());
    }
    Err(
        Problem::new(format!("{text:?} is not a name that Glue and Athena accept"))
            .hint("use 1 to 255 of a-z, 0-9 and `_`"),
    )
}
