use std::collections::BTreeMap;
use std::path::Path;

use frazil_core::{ErrorKind, RegistryName, SourceName, TableName, TopicName};
use proptest::prelude::*;

use crate::{
    Breaker, ColumnCase, Config, DurationMs, Format, Framing, Instant, InstantRange, KafkaColumns,
    KeyColumns, OnError, PartitionField, Place, Retention, SchemaSource, SortField, Tables, TimeType,
    Timestamps, TopicSettings, Transform, UnknownFields,
};

fn parse(text: &str) -> Config {
    Config::parse(text, Path::new("/etc/frazil/frazil.toml")).unwrap()
}

/// The faults of a text, one per line, without the file's name.
fn faults(text: &str) -> String {
    let faults = Config::parse(text, Path::new("f")).expect_err(text).to_string();
    faults
        .lines()
        .map(|line| line.strip_prefix("f:").unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n")
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(faults(text), expected, "{text}");
}

fn topic(config: &Config, topic: &str) -> TopicSettings {
    let source = config.sources()[0].name();
    config.topic(source, &TopicName::new(topic)).unwrap()
}

fn kafka_timestamp_by_day() -> Vec<PartitionField> {
    vec![PartitionField {
        source: "_kafka_timestamp".to_owned(),
        transform: Transform::Day,
    }]
}

#[test]
fn without_a_file_every_topic_has_a_table() {
    let config = Config::default();
    let source = config.source_for(None, []).unwrap();
    let settings = config.topic(source, &TopicName::new("Web.Clicks-v1")).unwrap();
    let expected = TopicSettings {
        source: SourceName::new("default"),
        topic: TopicName::new("Web.Clicks-v1"),
        table: TableName::new("kafka", "web_clicks_v1").unwrap(),
        format: Format::Auto,
        framing: Framing::Auto,
        schema: SchemaSource::Auto,
        registry: None,
        message: None,
        tables: Tables::One,
        key: KeyColumns::Kafka,
        key_format: Format::Auto,
        kafka_columns: KafkaColumns {
            key: true,
            headers: true,
            tombstone: true,
            topic: false,
            timestamp_type: false,
        },
        column_case: ColumnCase::Lower,
        timestamps: Timestamps::Utc,
        time_type: TimeType::String,
        oneof_case: false,
        unknown_fields: UnknownFields::Count,
        fields: BTreeMap::new(),
        hash_key_env: None,
        max_columns: 500,
        partition_by: kafka_timestamp_by_day(),
        sort_by: vec![],
        timestamp_range: InstantRange::YEARS_1_TO_9999,
        partition_range: InstantRange {
            first: Instant::AtMicros(0),
            last: Instant::FromNowMs(31_536_000_000),
        },
        on_error: OnError::DeadLetter,
        breaker: Breaker {
            share: 0.05,
            minimum: 20,
            window_ms: DurationMs(600_000),
        },
        freshness_ms: DurationMs(60_000),
        retention: Retention {
            snapshots: 100,
            snapshot_min_age_ms: DurationMs(3_600_000),
            metadata_ms: DurationMs(21_600_000),
        },
        backfill: false,
    };
    assert_eq!(settings, expected);
    assert_eq!(
        topic(&parse(""), "Web.Clicks-v1"),
        expected,
        "an empty file is no file"
    );
    assert_eq!(config.warehouse(), None);
}

#[test]
fn every_key_is_heard() {
    let config = parse(
        r#"
        format = 1
        warehouse = "./warehouse"
        schemas = "/srv/schemas"
        [sources.main]
        bootstrap_servers = ["b-1:9092"]
        [registries.cloud]
        kind = "confluent"
        urls = ["https://registry.example.com"]
        [defaults]
        namespace = "raw"
        kafka_columns.topic = true
        retention.snapshots = 10
        fields."customer.tax_id".exclude = true
        fields.total.type = "long"
        [topics.orders]
        source = "main"
        namespace = "sales"
        table = "all_orders"
        format = "avro"
        framing = "confluent"
        schema = "registry"
        registry = "cloud"
        tables = "by_record_name"
        key = "columns"
        key_format = "avro"
        kafka_columns = { key = false, timestamp_type = true }
        column_case = "snake"
        timestamps = "utc_naive"
        time_type = "time"
        oneof_case = true
        unknown_fields = "collect"
        fields."customer.email".hash = "sha256"
        fields.total = { type = "decimal(18,4)" }
        hash_key_env = "FRAZIL_SECRET_HASH"
        max_columns = 20
        partition_by = ["day(created_at)", "bucket(16, customer)"]
        sort_by = ["customer desc"]
        timestamp_range = [2000-01-01, 2099-12-31T23:59:59Z]
        partition_range = [2020-01-01, "now + 1d"]
        on_error = "dead_letter"
        breaker = { share = 0.5, minimum = 3, window = "1h" }
        freshness = "5m"
        retention = { snapshot_min_age = "2h", metadata = "1d" }
        backfill = true
        "#,
    );
    assert_eq!(
        config.warehouse(),
        Some(&Place::Local("/etc/frazil/./warehouse".into()))
    );
    assert_eq!(config.schemas(), Some(Path::new("/srv/schemas")));
    let settings = topic(&config, "orders");
    assert_eq!(
        settings,
        TopicSettings {
            source: SourceName::new("main"),
            topic: TopicName::new("orders"),
            table: TableName::new("sales", "all_orders").unwrap(),
            format: Format::Avro,
            framing: Framing::Confluent,
            schema: SchemaSource::Registry,
            registry: Some(RegistryName::new("cloud")),
            message: None,
            tables: Tables::ByRecordName,
            key: KeyColumns::Columns,
            key_format: Format::Avro,
            kafka_columns: KafkaColumns {
                key: false,
                headers: true,
                tombstone: true,
                topic: true,
                timestamp_type: true
            },
            column_case: ColumnCase::Snake,
            timestamps: Timestamps::UtcNaive,
            time_type: TimeType::Time,
            oneof_case: true,
            unknown_fields: UnknownFields::Collect,
            fields: [
                ("customer.email", r#"{"hash": "sha256"}"#),
                ("customer.tax_id", r#"{"exclude": true}"#),
                ("total", r#"{"type": "decimal(18, 4)"}"#),
            ]
            .map(|(path, field)| (path.to_owned(), serde_json::from_str(field).unwrap()))
            .into(),
            hash_key_env: Some("FRAZIL_SECRET_HASH".to_owned()),
            max_columns: 20,
            partition_by: vec![
                PartitionField {
                    source: "created_at".to_owned(),
                    transform: Transform::Day
                },
                PartitionField {
                    source: "customer".to_owned(),
                    transform: Transform::Bucket(16)
                },
            ],
            sort_by: vec![SortField {
                source: "customer".to_owned(),
                transform: Transform::Identity,
                descending: true,
                nulls_first: false,
            }],
            timestamp_range: InstantRange {
                first: Instant::AtMicros(946_684_800_000_000),
                last: Instant::AtMicros(4_102_444_799_000_000),
            },
            partition_range: InstantRange {
                first: Instant::AtMicros(1_577_836_800_000_000),
                last: Instant::FromNowMs(86_400_000),
            },
            on_error: OnError::DeadLetter,
            breaker: Breaker {
                share: 0.5,
                minimum: 3,
                window_ms: DurationMs(3_600_000)
            },
            freshness_ms: DurationMs(300_000),
            retention: Retention {
                snapshots: 10,
                snapshot_min_age_ms: DurationMs(7_200_000),
                metadata_ms: DurationMs(86_400_000),
            },
            backfill: true,
        }
    );
    assert_eq!(config.topics().collect::<Vec<_>>(), [&settings]);
    let frozen = serde_json::to_string(&settings).unwrap();
    assert_eq!(serde_json::from_str::<TopicSettings>(&frozen).unwrap(), settings);
}

#[test]
fn five_faults_are_five() {
    let text = r#"warehouse = "hdfs://bucket/tables"

[defaults]
on_error = "dead-leter"

[topics."web.clicks"]
freshnes = "1m"
max_columns = 0
partition_by = ["day(created_at)", "days(ts)"]
"#;
    assert_eq!(
        Config::parse(text, Path::new("conf/frazil.toml"))
            .unwrap_err()
            .to_string(),
        r#"conf/frazil.toml:1:1: warehouse: hdfs:// is no place that Frazil knows; name a directory, or s3://BUCKET/PREFIX
conf/frazil.toml:4:1: defaults.on_error: unknown value "dead-leter"; did you mean "dead_letter"?
conf/frazil.toml:7:1: topics."web.clicks".freshnes: unknown key; did you mean `freshness`?
conf/frazil.toml:8:1: topics."web.clicks".max_columns: 0 is not between 1 and 2000
conf/frazil.toml:9:36: topics."web.clicks".partition_by[1]: `days` is not a transform of Iceberg; did you mean `day`?"#
    );
    let error = frazil_core::Error::from(Config::parse(text, Path::new("conf/frazil.toml")).unwrap_err());
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error
            .to_string()
            .starts_with("cannot use the configuration: 5 faults found\nconf/frazil.toml:1:1: ")
    );
}

#[test]
fn each_fault_names_the_thing_the_reason_and_the_way_out() {
    for (text, expected) in [
        (
            "x = ",
            "1:5: string values must be quoted, expected literal string",
        ),
        (
            "a = 1\na = 2\n[topics.a\n",
            "2:1: duplicate key\n3:10: unclosed table, expected `]`",
        ),
        (
            "[defaults]\nkafka_columns.topic = true\npartition_by = [\"_kafka_topic\"]\n[topics.a]\nkafka_columns = { key = false, topic = false }",
            "5:19: topics.a.kafka_columns.key: the table has no column `_kafka_topic`; set kafka_columns.topic = true",
        ),
        (
            "[defaults]\npartition_by = [\"_kafka_topic\"]\n[topics.a]\n[topics.b]",
            "2:17: defaults.partition_by[0]: the table has no column `_kafka_topic`; set kafka_columns.topic = true",
        ),
        (
            "[topics.a]\nsort_by = [\"_kafka_timestmp\"]",
            "2:12: topics.a.sort_by[0]: Frazil has no column `_kafka_timestmp`; did you mean `_kafka_timestamp`?",
        ),
        (
            "format = 2\nfuture = true",
            "1:1: format: format 2 is not one that this version reads: it reads 1; use the version of Frazil that the file was written for",
        ),
        (
            "format = \"1\"",
            "1:1: format: expected a whole number, found a string",
        ),
        (
            "topics = 3",
            "1:1: topics: expected a section, found an integer; write [topics.NAME]",
        ),
        (
            "[topics]\norders = 3",
            "2:1: topics.orders: expected a section, found an integer",
        ),
        (
            "namespaces = \"x\"",
            "1:1: namespaces: unknown key; known here: format, warehouse, catalog, aws, schemas, sources, registries, defaults, topics",
        ),
        (
            "namespace = \"x\"",
            "1:1: namespace: unknown key; it belongs in [defaults] or [topics.NAME]",
        ),
        (
            "[defaults]\ntable = \"x\"",
            "2:1: defaults.table: unknown key; it belongs in [topics.NAME]",
        ),
        (
            "[topics.a]\nhash_key_env = \"MY KEY=1\"",
            "2:1: topics.a.hash_key_env: not the name of an environment variable; write the variable's name here, such as \
             \"REGISTRY_PASSWORD\", and the secret into the variable",
        ),
        (
            "[topics.a]\nmerge_key = [\"id\"]",
            "2:1: topics.a.merge_key: upsert: this version does not have it yet; remove it",
        ),
        (
            "[topics.a]\napply_defaults = true",
            "2:1: topics.a.apply_defaults: a default is a reader's, and a table has the columns of many writers: which of \
             them is newest depends on when one asks, so that the same record would become another row when it comes \
             again; remove it; fill in when you read: coalesce(column, value), in a view",
        ),
        (
            "[topics.a.fields.x]\nexclude = true\ntype = \"long\"",
            "3:1: topics.a.fields.x.type: an excluded field has no column that this could be about; remove it, or the exclusion",
        ),
        (
            "[topics.a.fields.\"x.y\"]\ntype = \"varchar\"",
            "2:1: topics.a.fields.\"x.y\".type: \"varchar\" is not a type of Iceberg that a column can be given; use one of \
             boolean, int, long, float, double, date, time, timestamp, timestamptz, string, binary, decimal(PRECISION, SCALE)",
        ),
        (
            "[topics.a.fields.x]\ntype = \"decimal(39, 2)\"",
            "2:1: topics.a.fields.x.type: \"decimal(39, 2)\" is not a decimal that a table can hold; write \
             decimal(PRECISION, SCALE) with a precision of 1 to 38 and a scale of 0 to the precision",
        ),
        (
            "[topics.a.fields.customer.email]\nexclude = true",
            "1:27: topics.a.fields.customer.email: a field has no sections; a path is one key, in quotes: fields.\"….email\"",
        ),
        (
            "[topics.a.fields.x]\nhash = \"sha256\"",
            "2:1: topics.a.fields.x.hash: there is no secret to hash with; name the environment variable that holds it: \
             hash_key_env = \"FRAZIL_SECRET_HASH\"",
        ),
        (
            "[topics.a.fields._kafka_key]\nexclude = true",
            "1:18: topics.a.fields._kafka_key: settings of fields are about the records' values, not Kafka's own columns; \
             switch columns off in kafka_columns",
        ),
        (
            "[topics.a]\nformat = \"csv\"",
            "2:1: topics.a.format: \"csv\" (delimited text): this version does not have it yet; write \"auto\", \"avro\", \"json\", \"json_schema\", \"protobuf\", \"raw\" or \"string\"",
        ),
        (
            "[topics.a]\ncolumn_case = \"snak\"",
            "2:1: topics.a.column_case: unknown value \"snak\"; did you mean \"snake\"?",
        ),
        (
            "[topics.a]\nformat = \"avro\"\nschema = \"infer\"",
            "3:1: topics.a.schema: Avro cannot be read without its schema; use schema = \"registry\"",
        ),
        (
            "[defaults]\nformat = \"avro\"\n[topics.a]\nschema = \"infer\"",
            "4:1: topics.a.schema: Avro cannot be read without its schema; use schema = \"registry\"",
        ),
        (
            "[topics.a]\nformat = \"json\"\nschema = \"registry\"",
            "3:1: topics.a.schema: \"json\" is JSON without a schema; use format = \"json_schema\", or schema = \"infer\"",
        ),
        (
            "[topics.a]\nnamespace = \"Sales\"",
            "2:1: topics.a.namespace: \"Sales\" is not a name that Glue and Athena accept; use 1 to 255 of a-z, 0-9 and `_`",
        ),
        (
            "[topics.a]\nfreshness = \"1s\"",
            "2:1: topics.a.freshness: 1s is not between 10s and 1d",
        ),
        (
            "[topics.a]\nfreshness = 60",
            "2:1: topics.a.freshness: expected a duration such as \"30s\", found an integer",
        ),
        (
            "[topics.a]\nfreshness = \"1 minute\"",
            "2:1: topics.a.freshness: \"1 minute\" is not a duration; write a number and a unit, such as \"30s\", \"5m\", \"1h30m\" or \"14d\"",
        ),
        (
            "[topics.a]\nbackfill = \"yes\"",
            "2:1: topics.a.backfill: expected true or false, found a string",
        ),
        (
            "[topics.a]\nevent_time = \"createdAt\"",
            "2:1: topics.a.event_time: the table has no column `createdAt`: its columns are lowercase, of a-z, 0-9 and _; write `createdat`",
        ),
        (
            "[topics.a]\nevent_time = \"ts\"\npartition_by = []",
            "2:1: topics.a.event_time: event_time and partition_by both say how the table is partitioned; write \"day(ts)\" in partition_by and remove event_time",
        ),
        (
            "[topics.a]\npartition_by = \"day(ts)\"",
            "2:1: topics.a.partition_by: expected a list, found a string; write it in brackets: [\"…\"]",
        ),
        (
            "[topics.a]\npartition_by = [\"_kafka_topic\"]",
            "2:17: topics.a.partition_by[0]: the table has no column `_kafka_topic`; set kafka_columns.topic = true",
        ),
        (
            "[topics.a]\npartition_by = [\"bucket(4, x)\", \"bucket(8, x)\"]",
            "2:33: topics.a.partition_by[1]: `bucket[8](x)` and `bucket[4](x)` are one field, `x_bucket`; keep one",
        ),
        (
            "[topics.a]\nsort_by = [\"x\", \"x desc\"]",
            "2:17: topics.a.sort_by[1]: `x` and `x` are one field, `x`; keep one",
        ),
        (
            "[topics.a]\ntimestamp_range = [2001-01-01]",
            "2:1: topics.a.timestamp_range: a range has two ends; write [first, last]",
        ),
        (
            "[topics.a]\ntimestamp_range = [2001-01-02, 2001-01-01]",
            "2:1: topics.a.timestamp_range: the last instant is before the first; write [first, last]",
        ),
        (
            "[topics.a]\nbreaker.share = 5",
            "2:9: topics.a.breaker.share: 5 is not a share from 0 to 1; 5 % is 0.05",
        ),
        (
            "[topics.a]\non_error = \"skip\"\nbreaker.minimum = 5",
            "3:9: topics.a.breaker.minimum: the breaker does nothing with on_error = \"skip\"; remove it, or use on_error = \"dead_letter\"",
        ),
        (
            "[topics.a]\nretention.metadata = \"30m\"",
            "2:11: topics.a.retention.metadata: metadata is kept for 30m, less than snapshots (1h); readers need both: keep metadata at least as long",
        ),
        (
            "[topics.\"a b\"]",
            "1:9: topics.\"a b\": ' ' cannot be in the name of a Kafka topic; use a-z, A-Z, 0-9, `.`, `_`, `-`, and `*` in patterns",
        ),
        (
            "[topics.\"a-*\"]\ntable = \"a\"",
            "2:1: topics.\"a-*\".table: the topics of a pattern cannot share one table in this version; remove it: each topic gets a table of its own name",
        ),
        (
            "[topics.\"a*\"]\n[topics.\"*b\"]",
            "2:9: topics.\"*b\": some topics match both this pattern and topics.\"a*\", equally well; make one of them longer",
        ),
        (
            "[topics.a]\n[topics.b]\ntopic = \"a\"",
            "2:9: topics.b: topics.a is about the same topic; keep one section\n2:9: topics.b: `kafka.a` would take this topic and topics.a; name another table\n2:9: topics.b: `kafka.a_dead_letters` would take the dead letters of this topic and the dead letters of topics.a; name another table",
        ),
        (
            "[topics.\"web.clicks\"]\n[topics.web-clicks]",
            "2:9: topics.web-clicks: `kafka.web_clicks` would take this topic and topics.\"web.clicks\"; name another table\n2:9: topics.web-clicks: `kafka.web_clicks_dead_letters` would take the dead letters of this topic and the dead letters of topics.\"web.clicks\"; name another table",
        ),
        (
            "[topics.a]\n[topics.a_dead_letters]",
            "2:9: topics.a_dead_letters: `kafka.a_dead_letters` would take this topic and the dead letters of topics.a; name another table",
        ),
        (
            "[topics.a]\nsource = \"man\"\n[sources.main]",
            "2:1: topics.a.source: there is no source \"man\"; did you mean \"main\"?",
        ),
        (
            "[topics.a]\n[sources.x]\narn = \"arn:aws:kafka:r:1:cluster/x/y\"\n[sources.y]\nbootstrap_servers = [\"h:1\"]",
            "1:9: topics.a: no source is named, and there are several; add source = \"NAME\", here or in [defaults]",
        ),
        (
            "[sources.x]\n[sources.y]\nbootstrap_servers = [\"h:1\"]",
            "1:10: sources.x: nothing tells its events from those of the other sources; add arn or bootstrap_servers",
        ),
        (
            "[sources.x]\nbootstrap_servers = [\"h:1\", \"g\"]\n[sources.y]\nbootstrap_servers = [\"H:1\"]",
            "2:29: sources.x.bootstrap_servers[1]: \"g\" is not the address of a broker; write it as host:port\n4:22: sources.y.bootstrap_servers[0]: source `x` has the same broker; keep one",
        ),
        (
            "[sources.x]\narn = \"arn:aws:s3:::b\"",
            "2:1: sources.x.arn: not the ARN of an MSK cluster; write arn:aws:kafka:REGION:ACCOUNT:cluster/NAME/UUID, or use bootstrap_servers",
        ),
        (
            "[sources.\"a/b\"]",
            "1:10: sources.\"a/b\": not the name of a source; use 1 to 64 of a-z, A-Z, 0-9, `_` and `-`",
        ),
    ] {
        check(text, expected);
    }
}

#[test]
fn a_text_that_is_wrong_everywhere_is_cut_short() {
    let text: String = (0..150).map(|n| format!("key_{n} = 1\n")).collect();
    let faults = Config::parse(&text, Path::new("f")).unwrap_err();
    assert_eq!((faults.faults().len(), faults.count()), (100, 150));
    assert!(faults.to_string().ends_with("\n… and 50 more"));
    let word = "x".repeat(100_000);
    check(
        &format!("[defaults]\non_error = \"{word}\""),
        &format!(
            "2:1: defaults.on_error: unknown value \"{}…; write \"dead_letter\", \"suspend\" or \"skip\"",
            "x".repeat(385)
        ),
    );
    let sources: String = (0..101)
        .map(|n| format!("[sources.s{n}]\nbootstrap_servers = [\"h{n}:1\"]\n"))
        .collect();
    check(
        &sources,
        "201:10: sources.s100: 101 sources, at most 100 are possible; use a file for each part of them",
    );
    let patterns: String = (0..101).map(|n| format!("[topics.\"{n:03}*\"]\n")).collect();
    check(
        &patterns,
        "101:9: topics.\"100*\": 101 patterns, at most 100 are possible; use fewer, wider patterns",
    );
    let long = format!("# {}", "x".repeat(1 << 20));
    check(
        &long,
        " is longer than 1048576 bytes; use patterns and [defaults] to say less",
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let missing = Config::load(Path::new("/nowhere/frazil.toml"))
        .unwrap_err()
        .to_string();
    assert_eq!(
        missing,
        "/nowhere/frazil.toml: cannot be read: No such file or directory (os error 2); check the path given by --config"
    );
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("frazil.toml");
    std::fs::write(&path, b"\xff").unwrap();
    assert!(
        Config::load(&path)
            .unwrap_err()
            .to_string()
            .contains("is not UTF-8 text")
    );
    std::fs::write(&path, "warehouse = \"w\"\n").unwrap();
    assert_eq!(
        Config::load(&path).unwrap().warehouse(),
        Some(&Place::Local(directory.path().join("w")))
    );
}

#[test]
fn the_best_section_applies_on_top_of_the_defaults() {
    let config = parse(
        r#"
        [defaults]
        namespace = "raw"
        event_time = "ts"
        max_columns = 1
        [topics."*"]
        max_columns = 2
        [topics."orders-*"]
        max_columns = 3
        partition_by = []
        [topics."*-eu-west"]
        max_columns = 4
        [topics.orders-eu]
        max_columns = 5
        table = "orders"
        "#,
    );
    for (name, max_columns, table, partition_by) in [
        ("clicks", 2, "raw.clicks", "day(ts)"),
        ("orders-us", 3, "raw.orders_us", ""),
        ("orders-eu-west", 4, "raw.orders_eu_west", "day(ts)"),
        ("orders-eu", 5, "raw.orders", "day(ts)"),
    ] {
        let settings = topic(&config, name);
        assert_eq!(settings.max_columns, max_columns, "{name}");
        assert_eq!(settings.table.to_string(), table, "{name}");
        let fields: Vec<String> = settings.partition_by.iter().map(ToString::to_string).collect();
        assert_eq!(fields.join(", "), partition_by, "{name}");
    }
}

#[test]
fn format_framing_and_schema_imply_each_other() {
    use Format as F;
    use Framing as W;
    use SchemaSource as S;
    let file = || S::File("orders.proto".to_owned());
    let subject = || S::Subject("orders-value".to_owned(), Some(3));
    for (keys, format, framing, schema) in [
        ("", F::Auto, W::Auto, S::Auto),
        ("format = \"avro\"", F::Avro, W::Auto, S::Registry),
        (
            "format = \"protobuf\"\nframing = \"glue\"",
            F::Protobuf,
            W::Glue,
            S::Registry,
        ),
        ("format = \"json\"", F::Json, W::Auto, S::Infer),
        ("format = \"json_schema\"", F::JsonSchema, W::Auto, S::Registry),
        ("format = \"raw\"", F::Raw, W::None, S::Raw),
        (
            "format = \"string\"\nframing = \"confluent\"",
            F::String,
            W::Confluent,
            S::Raw,
        ),
        ("format = \"json\"\nschema = \"raw\"", F::String, W::None, S::Raw),
        ("schema = \"registry\"", F::Auto, W::Auto, S::Registry),
        ("schema = \"infer\"", F::Json, W::Auto, S::Infer),
        ("schema = \"raw\"", F::Raw, W::None, S::Raw),
        ("framing = \"lambda\"", F::Auto, W::Lambda, S::Registry),
        ("framing = \"none\"", F::Json, W::None, S::Infer),
        (
            "schema = \"file:orders.proto\"\nmessage = \"Order\"",
            F::Auto,
            W::None,
            file(),
        ),
        (
            "format = \"protobuf\"\nframing = \"none\"\nschema = \"file:orders.proto\"",
            F::Protobuf,
            W::None,
            file(),
        ),
        (
            "format = \"avro\"\nschema = \"subject:orders-value@3\"",
            F::Avro,
            W::None,
            subject(),
        ),
    ] {
        let settings = topic(&parse(&format!("[topics.a]\n{keys}")), "a");
        let found = (settings.format, settings.framing, settings.schema);
        assert_eq!(found, (format, framing, schema), "{keys}");
    }
}

#[test]
fn encodings_that_contradict_themselves_are_refused() {
    for (keys, fault) in [
        (
            "format = \"avro\"\nframing = \"none\"",
            "3:1: topics.a.framing: without a framing no record names its schema; name it: schema = \"file:PATH\" or \
             \"subject:NAME@VERSION\"",
        ),
        (
            "framing = \"glue\"\nschema = \"file:a.avsc\"",
            "3:1: topics.a.schema: with framing = \"glue\" each record names its schema, and schema names another; \
             remove one of them; framing = \"none\" is for values without a framing",
        ),
        (
            "format = \"protobuf\"\nschema = \"file:a.avsc\"",
            "3:1: topics.a.schema: format = \"protobuf\" needs a schema in a .proto file; name another file, or remove \
             format",
        ),
        (
            "format = \"protobuf\"\nschema = \"infer\"",
            "3:1: topics.a.schema: Protobuf cannot be read without its schema; use schema = \"registry\"",
        ),
        (
            "format = \"raw\"\nschema = \"registry\"",
            "3:1: topics.a.schema: format = \"raw\" has no schema; remove schema, or name the format of the values",
        ),
        (
            "format = \"avro\"\nmessage = \"Order\"",
            "3:1: topics.a.message: only Protobuf has messages to choose from; remove it, or use format = \"protobuf\"",
        ),
        (
            "schema = \"file:a.txt\"",
            "2:1: topics.a.schema: \"a.txt\" does not say its language; name it .avsc (Avro), .json (JSON Schema) or \
             .proto (Protobuf)",
        ),
        (
            "schema = \"glue\"",
            "2:1: topics.a.schema: \"glue\" is a framing, or the kind of a registry; write framing = \"glue\", or \
             registry = \"NAME\"",
        ),
    ] {
        let text = format!("[topics.a]\n{keys}");
        let faults = Config::parse(&text, Path::new("f")).unwrap_err();
        assert_eq!(faults.to_string(), format!("f:{fault}"), "{keys}");
    }
}

#[test]
fn an_event_belongs_to_exactly_one_source() {
    let config = parse(
        r#"
        [sources.eu]
        arn = "arn:aws:kafka:eu-central-1:1:cluster/eu/1"
        bootstrap_servers = ["B-1.eu:9092", "b-2.eu:9092"]
        namespace = "eu"
        [sources.us]
        bootstrap_servers = ["b-1.us:9092"]
        [topics.orders_us]
        topic = "orders"
        source = "us"
        namespace = "sales"
        "#,
    );
    let eu_arn = Some("arn:aws:kafka:eu-central-1:1:cluster/eu/1");
    for (arn, servers, expected) in [
        (eu_arn, vec![], Ok("eu")),
        (eu_arn, vec!["b-9.eu:9092"], Ok("eu")),
        (None, vec!["b-9.eu:9092", "b-2.EU:9092"], Ok("eu")),
        (None, vec!["b-1.us:9092"], Ok("us")),
        (None, vec!["b-1.us:9093"], Err("source.unknown")),
        (
            Some("arn:aws:kafka:eu-central-1:1:cluster/eu/2"),
            vec![],
            Err("source.unknown"),
        ),
        (eu_arn, vec!["b-1.us:9092"], Err("source.ambiguous")),
    ] {
        let found = config.source_for(arn, servers.iter().copied());
        let found = found
            .map(SourceName::as_str)
            .map_err(|error| error.code().unwrap());
        assert_eq!(found, expected, "{arn:?} {servers:?}");
    }
    let table = |source: &str, topic: &str| {
        config
            .topic(&SourceName::new(source), &TopicName::new(topic))
            .unwrap()
            .table
            .to_string()
    };
    assert_eq!(table("eu", "orders"), "eu.orders");
    assert_eq!(table("us", "orders"), "sales.orders");
    assert_eq!(table("us", "clicks"), "kafka.clicks");
    let unknown = config
        .topic(&SourceName::new("ap"), &TopicName::new("orders"))
        .unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "cannot configure a topic: the configuration has no such source (source=ap, topic=orders)"
    );
}

#[test]
fn a_new_topic_takes_nobodys_table() {
    let config = parse("[topics.orders]\ntable = \"all_orders\"");
    let source = config.sources()[0].name().clone();
    let taken = config.topic(&source, &TopicName::new("all.orders")).unwrap_err();
    assert_eq!(
        taken.to_string(),
        "cannot give a topic its table: topic `orders` of source `default` has the table `kafka.all_orders` \
         (source=default, topic=all.orders, table=kafka.all_orders); name another table: \
         [topics.\"all.orders\"] table = \"…\""
    );
    for (existing, table, alone) in [
        ("web-clicks", "kafka.web_clicks", false),
        ("web.clicks", "kafka.web_clicks", true),
        ("x", "kafka.web_clicks_dead_letters", false),
        ("x", "other.web_clicks", true),
    ] {
        let settings = config.topic(&source, &TopicName::new("web.clicks")).unwrap();
        let table = TableName::try_from(table.to_owned()).unwrap();
        let found = settings.check_alone([(&source, &TopicName::new(existing), &table)]);
        assert_eq!(found.is_ok(), alone, "{existing} {table}");
    }
    for name in ["", ".", "a b", "a*", &"x".repeat(250), &"x".repeat(243)] {
        assert!(config.topic(&source, &TopicName::new(name)).is_err(), "{name}");
    }
    assert!(config.topic(&source, &TopicName::new("x".repeat(242))).is_ok());
}

/// Lines that are nearly a configuration, so that arbitrary picks get past the TOML parser.
fn nearly() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        "[a-z_.]{1,12}",
        prop::sample::select(vec![
            "[topics.\"a*\"]",
            "[sources.s]",
            "[defaults]",
            "[topics.a]",
            "topics",
            "format",
            "framing",
            "schema",
            "registry",
            "[registries.r]",
            "kind",
            "urls",
            "password_env",
            "partition_by",
            "sort_by",
            "event_time",
            "breaker.share",
            "retention.snapshots",
            "freshness",
            "timestamp_range",
            "table",
            "bootstrap_servers",
            "arn",
            "kafka_columns",
            "on_error",
            "source",
            "topic",
            "namespace",
        ])
        .prop_map(str::to_owned),
    ];
    let value = prop_oneof![
        "\\PC{0,12}".prop_map(|text| format!("{text:?}")),
        "[0-9a-z+:.-]{1,12}",
        prop::sample::select(vec![
            "\"now+99999999999d\"",
            "[]",
            "{}",
            "[1, \"day(x)\"]",
            "[\"bucket(99999999999, x) desc\"]",
            "9e999",
            "-1",
            "0xffffffffffffffffff",
            "[0000-01-01, 9999-12-31]",
            "[\"now-1d\", \"now+106751991167d\"]",
            "\"a\"",
            "\"confluent\"",
            "\"none\"",
            "\"file:a.avsc\"",
            "nan",
            "\"1d\"",
            "\"*\"",
            "true",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec((key, value), 0..8).prop_map(|lines| {
        let line = |(key, value): (String, String)| {
            if key.starts_with('[') {
                key
            } else {
                format!("{key} = {value}")
            }
        };
        lines.into_iter().map(line).collect::<Vec<_>>().join("\n")
    })
}

proptest! {
    #[test]
    fn arbitrary_and_mutated_text_never_panics(text in prop_oneof!["\\PC{0,200}", nearly()]) {
        match Config::parse(&text, Path::new("f")) {
            Ok(config) => {
                for topic in ["a", "ab", "c"] {
                    let _ = config.topic(config.sources()[0].name(), &TopicName::new(topic));
                }
            }
            Err(faults) => {
                prop_assert!(faults.count() > 0);
                prop_assert!(!faults.to_string().is_empty());
                for fault in faults.faults() {
                    let position = fault.position.unwrap();
                    let line = text.split('\n').nth(position.line - 1).unwrap();
                    prop_assert!(position.column <= line.chars().count() + 1);
                }
            }
        }
    }
}
