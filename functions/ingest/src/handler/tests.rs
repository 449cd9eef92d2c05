use std::fs;
use std::path::Path;

use frazil_core::TableName;
use frazil_local::open_warehouse;
use frazil_registry::DirectoryRegistry;
use frazil_table::{CommitSettings, LoadedTable, commit_table, system_environment};

use super::*;
use crate::IngestReport;

/// A warehouse in a directory, with the schemas 1 to 3 of topic `t`.
struct Scene {
    directory: tempfile::TempDir,
    warehouse: Warehouse,
}

const SCHEMAS: [&str; 3] = [
    r#"{"type": "record", "name": "R", "fields": [{"name": "Id", "type": "int"}]}"#,
    r#"{"type": "record", "name": "R", "fields": [{"name": "Id", "type": "int"}, {"name": "email", "type": "string"}]}"#,
    r#"{"type": "record", "name": "S", "namespace": "other", "fields": [{"name": "Sum", "type": "int"}]}"#,
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

    /// One record, to a function that has just started with these keys of the topic.
    async fn ingest(&self, keys: &str, offset: i64, body: &[u8]) -> IngestReport {
        self.try_ingest(keys, offset, body).await.unwrap()
    }

    async fn try_ingest(&self, keys: &str, offset: i64, body: &[u8]) -> Result<IngestReport> {
        let config = Config::parse(&format!("[topics.t]\n{keys}"), Path::new("f")).unwrap();
        let registry = Arc::new(DirectoryRegistry::new(self.directory.path()));
        let options = IngestOptions {
            schema_interval: Duration::ZERO,
        };
        let ingest = Ingest::new(self.warehouse.clone(), Arc::new(config), registry, options);
        let value = base64_simd::STANDARD.encode_to_string(body);
        let event = serde_json::json!({
            "eventSource": "SelfManagedKafka",
            "bootstrapServers": "b:9092",
            "records": {"t-0": [{"topic": "t", "partition": 0, "offset": offset, "timestamp": 1_764_500_000_000_i64,
                "timestampType": "CREATE_TIME", "key": null, "value": value, "headers": []}]},
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
        let name = TableName::new("kafka", name).unwrap();
        let report = commit_table(&scene.warehouse, &name, &CommitSettings::default())
            .await
            .unwrap();
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
