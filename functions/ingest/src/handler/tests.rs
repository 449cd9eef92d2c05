use std::fs;
use std::path::Path;

use frazil_core::TableName;
use frazil_local::open_warehouse;
use frazil_registry::DirectoryRegistry;
use frazil_table::{
    CommitReport, CommitSettings, LoadedTable, RetryReport, commit_table, retry_dead_letters,
    system_environment,
};

use super::*;
use crate::IngestReport;

/// A warehouse in a directory, with the schemas 1 to 5 of topic `t`.
struct Scene {
    directory: tempfile::TempDir,
    warehouse: Warehouse,
}

const SCHEMAS: [&str; 5] = [
    r#"{"type": "record", "name": "R", "fields": [{"name": "Id", "type": "int"}]}"#,
    r#"{"type": "record", "name": "R", "fields": [{"name": "Id", "type": "int"}, {"name": "email", "type": "string"}]}"#,
    r#"{"type": "record", "name": "S", "namespace": "other", "fields": [{"name": "Sum", "type": "int"}]}"#,
    r#"{"type": "record", "name": "other_S", "fields": [{"name": "Sum", "type": "int"}]}"#,
    r#"{"type": "record", "name": "R", "fields": [{"name": "_kafka_offset", "type": "int"}]}"#,
];

/// `PATH`: a variable that is always there, and never shorter than a secret must be.
const HASHED: &str = "hash_key_env = \"PATH\"\nfields.email.hash = \"sha256\"";

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("ids")).unwrap();
        for (id, schema) in (1..).zip(SCHEMAS) {
            fs::write(directory.path().join(format!("ids/{id}.avsc")), schema).unwrap();
        }
        let warehouse = open_warehouse(&directory.path().join("warehouse"), &system_environment()).unwrap();
        Self { directory, warehouse }
    }

    /// A function that has just started with these keys of the topic.
    fn function(&self, keys: &str) -> Ingest {
        let config = Config::parse(&format!("[topics.t]\n{keys}"), Path::new("f")).unwrap();
        let registry = Arc::new(DirectoryRegistry::new(self.directory.path()));
        let options = IngestOptions {
            schema_interval: Duration::ZERO,
            ..IngestOptions::default()
        };
        Ingest::new(self.warehouse.clone(), Arc::new(config), registry, options)
    }

    async fn commit(&self, table: &str) -> CommitReport {
        let name = TableName::new("kafka", table).unwrap();
        commit_table(&self.warehouse, &name, &CommitSettings::default())
            .await
            .unwrap()
    }

    /// Reads the dead letters of the topic's own table again.
    async fn retry(&self, keys: &str) -> Result<RetryReport> {
        let name = TableName::new("kafka", "t").unwrap();
        retry_dead_letters(&self.warehouse, &name, &|_| true, &self.function(keys)).await
    }

    /// One record, to a function that has just started with these keys of the topic.
    async fn ingest(&self, keys: &str, offset: i64, body: &[u8]) -> IngestReport {
        self.try_ingest(keys, offset, body).await.unwrap()
    }

    async fn try_ingest(&self, keys: &str, offset: i64, body: &[u8]) -> Result<IngestReport> {
        self.try_ingest_keyed(keys, offset, None, body).await
    }

    async fn try_ingest_keyed(
        &self,
        keys: &str,
        offset: i64,
        key: Option<&[u8]>,
        body: &[u8],
    ) -> Result<IngestReport> {
        let ingest = self.function(keys);
        let key = key.map(|key| base64_simd::STANDARD.encode_to_string(key));
        let value = base64_simd::STANDARD.encode_to_string(body);
        let event = serde_json::json!({
            "eventSource": "SelfManagedKafka",
            "bootstrapServers": "b:9092",
            "records": {"t-0": [{"topic": "t", "partition": 0, "offset": offset, "timestamp": 1_764_500_000_000_i64,
                "timestampType": "CREATE_TIME", "key": key, "value": value, "headers": []}]},
        });
        ingest.handle(event.to_string().as_bytes()).await
    }

    async fn table(&self) -> LoadedTable {
        let name = TableName::new("kafka", "t").unwrap();
        self.warehouse.load(&name).await.unwrap().unwrap()
    }

    /// The value's columns of the table.
    async fn columns(&self) -> Vec<String> {
        let table = self.table().await;
        let fields = table.metadata.current_schema().as_struct().fields();
        let own = fields.iter().filter(|field| !field.name.starts_with("_kafka_"));
        own.map(|field| format!("{} {}", field.name, field.field_type))
            .collect()
    }
}

const FIRST: &[u8] = b"\0\0\0\0\x01\x0e";
const SECOND: &[u8] = b"\0\0\0\0\x02\x0e\x02x";

const OTHER: &[u8] = b"\0\0\0\0\x03\x10";

fn outcome(report: &IngestReport) -> (u64, String) {
    let topic = &report.topics[0];
    let outcome = match &topic.outcome {
        TopicOutcome::Staged { schema_changed } => format!("staged, schema changed: {schema_changed}"),
        TopicOutcome::Parked { reason } => reason.clone(),
    };
    (topic.rows, outcome)
}

#[tokio::test]
async fn a_changed_setting_suspends_before_anything_of_the_table_changes() {
    let scene = Scene::new();
    let report = scene.ingest("column_case = \"snake\"", 0, FIRST).await;
    assert_eq!(outcome(&report), (1, "staged, schema changed: true".to_owned()));
    let before = scene.table().await.metadata.last_updated_ms();
    let report = scene.ingest("column_case = \"lower\"", 1, SECOND).await;
    assert_eq!(
        outcome(&report),
        (
            0,
            "table kafka.t: cannot use the topic's settings: `column_case` was \"snake\" when the table was made and is \
             \"lower\" now; the table keeps what it was made with: set it back and `frazil topic resume`, or give the \
             topic a new table"
                .to_owned()
        )
    );
    assert_eq!(scene.table().await.metadata.last_updated_ms(), before);
    // It stays suspended: somebody must say that all is well again.
    let report = scene.ingest("column_case = \"snake\"", 2, SECOND).await;
    assert_eq!(report.topics[0].rows, 0);
}

#[tokio::test]
async fn a_later_field_brings_its_settings_and_keeps_them() {
    let scene = Scene::new();
    scene.ingest("", 0, FIRST).await;
    assert_eq!(scene.columns().await, ["id int"]);
    let report = scene.ingest(HASHED, 1, SECOND).await;
    assert_eq!(outcome(&report), (1, "staged, schema changed: true".to_owned()));
    assert_eq!(scene.columns().await, ["id int", "email string"]);
    // Now it is the table's own: the same again is fine, and without it the topic suspends.
    let report = scene.ingest(HASHED, 2, SECOND).await;
    assert_eq!(outcome(&report), (1, "staged, schema changed: false".to_owned()));
    let report = scene.ingest("", 3, SECOND).await;
    let (rows, reason) = outcome(&report);
    assert_eq!(rows, 0);
    assert!(
        reason.contains(
            "`fields.\"email\"` was { hash = \"sha256\" } when the table was made and is not set now"
        ),
        "{reason}"
    );
    assert_eq!(scene.columns().await, ["id int", "email string"]);
}

#[tokio::test]
async fn a_field_that_has_a_column_gets_no_setting_any_more() {
    let scene = Scene::new();
    scene.ingest("", 0, SECOND).await;
    let (rows, reason) = outcome(&scene.ingest(HASHED, 1, SECOND).await);
    assert_eq!(rows, 0);
    assert!(reason.contains("`fields.\"email\"` was not set"), "{reason}");
}

#[tokio::test]
async fn a_second_type_suspends_unless_the_table_takes_all() {
    let scene = Scene::new();
    assert_eq!(scene.ingest("", 0, FIRST).await.topics[0].rows, 1);
    let (rows, reason) = outcome(&scene.ingest("", 1, OTHER).await);
    assert_eq!(rows, 0);
    assert!(
        reason.starts_with(
            "the topic's records are `R`, and now there are some of the type `other.S`; set tables"
        ),
        "{reason}"
    );
    assert_eq!(scene.columns().await, ["id int"]);

    let scene = Scene::new();
    for (offset, body) in [(0, FIRST), (1, OTHER)] {
        assert_eq!(
            scene.ingest("tables = \"merged\"", offset, body).await.topics[0].rows,
            1
        );
    }
    assert_eq!(scene.columns().await, ["id int", "sum int"]);
}

#[tokio::test]
async fn each_type_has_its_table_and_every_table_claims_every_event() {
    let scene = Scene::new();
    let keys = "tables = \"by_record_name\"";
    for (offset, body) in [
        (0, FIRST),
        (1, OTHER),
        (2, SECOND),
        (3, &b"\0\0\0\0\x01"[..]),
        (4, OTHER),
    ] {
        scene.ingest(keys, offset, body).await;
    }
    let mut found = Vec::new();
    for name in ["t", "t_r", "t_other_s"] {
        let report = scene.commit(name).await;
        let name = TableName::new("kafka", name).unwrap();
        assert!(
            report.suspended.is_empty() && report.waiting.is_empty(),
            "{report:?}"
        );
        let table = scene.warehouse.load(&name).await.unwrap().unwrap();
        let ledger = scene.warehouse.ledger(&table).await.unwrap();
        let log = ledger.log(&"default".into(), &"t".into()).unwrap();
        let rows: u64 = report.commits.iter().map(|commit| commit.rows).sum();
        found.push((
            name.table().to_owned(),
            rows,
            report.dead_letters,
            log.partitions[&Partition(0)].next.0,
        ));
    }
    let expected = [("t", 0, 1, 5), ("t_r", 2, 0, 5), ("t_other_s", 2, 0, 5)];
    assert_eq!(
        found,
        expected.map(|(name, rows, dead, next)| (name.to_owned(), rows, dead, next))
    );
}

#[tokio::test]
async fn a_schema_that_is_not_there_never_sends_a_record_to_another_table() {
    let scene = Scene::new();
    let unknown = b"\0\0\0\0\x09\x10";
    let error = scene
        .try_ingest("tables = \"by_record_name\"", 0, unknown)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(scene.ingest("", 0, unknown).await.topics[0].dead_letters, 1);
}

/// Takes nothing of what the scene delivers: its records are of 2025.
const TOO_NARROW: &str = "timestamp_range = [2000-01-01, 2001-01-01]";

/// What the type's table has not taken may still come as a row: the letter must not become one before.
#[tokio::test]
async fn a_retry_moves_nothing_that_a_delivery_may_still_bring() {
    let (scene, by_name) = (Scene::new(), "tables = \"by_record_name\"");
    let narrow = format!("{by_name}\n{TOO_NARROW}");
    assert_eq!(scene.ingest(&narrow, 0, OTHER).await.topics[0].dead_letters, 1);
    scene.commit("t").await;
    let retried = scene.retry(by_name).await.unwrap();
    assert_eq!((retried.read, retried.moved, retried.snapshots.len()), (1, 0, 0));
    let left = &retried.left["retry.not_taken"];
    assert_eq!(left.letters, 1);
    assert!(
        left.reason
            .starts_with("kafka.t_other_s has not taken these offsets: a delivery may still bring them"),
        "{left:?}"
    );
    // Still out of range: the reason is today's.
    let still = scene.retry(&narrow).await.unwrap();
    assert_eq!(
        still.left.keys().collect::<Vec<_>>(),
        ["value.timestamp_out_of_range"]
    );
    // Once it is committed that the record came without a row, nothing but the letter can bring one.
    scene.ingest(by_name, 0, OTHER).await;
    let rows = |report: CommitReport| report.commits.iter().map(|commit| commit.rows).sum::<u64>();
    assert_eq!(rows(scene.commit("t_other_s").await), 0);
    let retried = scene.retry(by_name).await.unwrap();
    assert_eq!((retried.read, retried.moved, retried.snapshots.len()), (1, 1, 1));
    scene.ingest(by_name, 0, OTHER).await;
    assert_eq!(rows(scene.commit("t_other_s").await), 0);
    assert_eq!(scene.retry(by_name).await.unwrap().read, 0);
}

#[tokio::test]
async fn a_retry_keeps_to_the_type_of_the_table() {
    let scene = Scene::new();
    assert_eq!(scene.ingest("", 0, FIRST).await.topics[0].rows, 1);
    assert_eq!(scene.ingest(TOO_NARROW, 1, FIRST).await.topics[0].dead_letters, 1);
    scene.commit("t").await;
    assert_eq!(scene.retry("").await.unwrap().moved, 1);

    let scene = Scene::new();
    assert_eq!(scene.ingest("", 0, FIRST).await.topics[0].rows, 1);
    let merged = format!("tables = \"merged\"\n{TOO_NARROW}");
    assert_eq!(scene.ingest(&merged, 1, OTHER).await.topics[0].dead_letters, 1);
    scene.commit("t").await;
    let error = scene.retry("").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert_eq!(scene.columns().await, ["id int"]);
    assert_eq!(scene.retry("tables = \"merged\"").await.unwrap().moved, 1);
}

#[tokio::test]
async fn two_types_never_share_a_table_because_of_their_names() {
    let (scene, by_name) = (Scene::new(), "tables = \"by_record_name\"");
    assert_eq!(scene.ingest(by_name, 0, OTHER).await.topics[0].rows, 1);
    let (rows, reason) = outcome(&scene.ingest(by_name, 1, b"\0\0\0\0\x04\x10").await);
    assert_eq!(rows, 0);
    assert!(
        reason.contains("it is that of the type `other.S`, and these records are of the type `other_S`"),
        "{reason}"
    );
}

/// Delivered again, it would be the same: the partition would never go on.
#[tokio::test]
async fn what_no_delivery_changes_suspends() {
    let scene = Scene::new();
    let (rows, reason) = outcome(&scene.ingest("", 0, b"\0\0\0\0\x05\x10").await);
    assert_eq!(rows, 0);
    assert!(
        reason.starts_with("table kafka.t: cannot add a column: the value's field `_kafka_offset`"),
        "{reason}"
    );
}

/// The scene's records are of 2025.
#[tokio::test]
async fn a_partition_out_of_range_makes_a_dead_letter_that_a_wider_range_takes() {
    let scene = Scene::new();
    let narrow = "partition_range = [\"2000-01-01\", \"2001-01-01\"]";
    for elsewhere in [
        "partition_by = []",
        "partition_by = [\"bucket(4, _kafka_timestamp)\"]",
    ] {
        let other = Scene::new();
        let report = other.ingest(&format!("{elsewhere}\n{narrow}"), 0, FIRST).await;
        assert_eq!(report.topics[0].rows, 1, "{elsewhere}");
    }
    assert_eq!(scene.ingest("", 0, FIRST).await.topics[0].rows, 1);
    assert_eq!(scene.ingest(narrow, 1, FIRST).await.topics[0].dead_letters, 1);
    // Nothing of the value is wrong: `skip` forgets no record for the time that Kafka says.
    let skip = format!("on_error = \"skip\"\n{narrow}");
    assert_eq!(scene.ingest(&skip, 2, FIRST).await.topics[0].rows, 1);
    scene.commit("t").await;
    assert_eq!(scene.retry(narrow).await.unwrap().moved, 0);
    assert_eq!(scene.retry("").await.unwrap().moved, 1);
}

/// Settings of single fields are the value's, also where the key is JSON too.
#[tokio::test]
async fn keys_of_json_become_columns_and_settings_of_fields_are_not_theirs() {
    let scene = Scene::new();
    let keys = "format = \"json\"\nkey = \"columns\"\nkey_format = \"json\"\nfields.Id.exclude = true";
    for (offset, key, rows) in [
        (0, Some(&br#"{"Id": 1, "region": "eu"}"#[..]), 1),
        (1, Some(br#"{"Id": "x"}"#), 1),
        (2, None, 1),
        (3, Some(b"{"), 0),
    ] {
        let report = scene
            .try_ingest_keyed(keys, offset, key, br#"{"Id": 7, "region": 1}"#)
            .await
            .unwrap();
        assert_eq!(report.topics[0].rows, rows, "{offset}");
    }
    assert_eq!(
        scene.columns().await,
        ["region long", "id long", "key_region string", "id__string string"]
    );
    // A setting of a field that only the key has is new, and no change.
    let more = format!("{keys}\nfields.region.exclude = false\nfields.later.exclude = true");
    let report = scene
        .try_ingest_keyed(&more, 4, Some(br#"{"later": 1}"#), b"{}")
        .await
        .unwrap();
    assert_eq!(outcome(&report), (1, "staged, schema changed: true".to_owned()));
}
