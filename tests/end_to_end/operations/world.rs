//! A table fed by hand: each test says which records arrive, and which rows must be seen.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use frazil_core::{
    Environment, Epoch, ErrorKind, Offset, OffsetRange, Partition, SourceName, TableName, TimestampMs,
    TopicName,
};
use frazil_schema::{Column, ColumnType, FieldMap, KafkaColumns};
use frazil_table::{
    Anchor, Catalog, Cause, Claim, CommitReport, CommitSettings, Ensured, FileSettings, Layout, LogName,
    ObjectStorage, Shelf, StageRequest, StateStore, TableDesign, TopicState, WantedColumns, Warehouse,
    commit_table, ensure_table, stage,
};
use frazil_tests::model::{Columns, TableReader, fingerprint};
use frazil_tests::simulation::{
    Dice, FaultPlan, FaultyCatalog, FaultyStateStore, FaultyStorage, MemoryCatalog, MemoryStateStore,
    MemoryStorage, Pace, VirtualClock,
};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{MAIN_BRANCH, ManifestListWriter, Operation, Schema, Snapshot, Summary};
use uuid::Uuid;

const START_MS: i64 = 1_767_225_600_000;

/// Epoch, partition, offset, and which log's record it is.
pub(super) type Row = (i32, i32, i64, u64);

pub(super) struct World {
    pub(super) storage: MemoryStorage,
    pub(super) catalog: MemoryCatalog,
    pub(super) clock: Arc<VirtualClock>,
    /// The back ends as they are.
    pub(super) plain: Warehouse,
    /// The back ends through the fault plan.
    pub(super) faulty: Warehouse,
    pub(super) table: TableName,
}

struct Wanted;

impl WantedColumns for Wanted {
    fn columns(&self, _: Option<(&Schema, &FieldMap)>) -> Vec<Cow<'_, [Column]>> {
        vec![Cow::Owned(vec![Column::new("v", ColumnType::STRING)])]
    }
}

pub(super) fn source() -> SourceName {
    SourceName::new("main")
}

pub(super) fn topic() -> TopicName {
    TopicName::new("orders")
}

pub(super) fn log(epoch: i32) -> LogName {
    LogName {
        source: source(),
        topic: topic(),
        epoch: Epoch(epoch),
    }
}

/// The rows of a log in an epoch: its name is in its records, so that two logs differ at every offset.
pub(super) fn rows(epoch: i32, log: &str, partition: i32, offsets: RangeInclusive<i64>) -> Vec<Row> {
    let row = |offset| {
        let value = value_of(log, partition, offset);
        let says = fingerprint(Some(START_MS + offset), None, [("v", value.as_str())]);
        (epoch, partition, offset, says)
    };
    offsets.map(row).collect()
}

fn value_of(log: &str, partition: i32, offset: i64) -> String {
    format!("{log}-{partition}-{offset}")
}

impl World {
    pub(super) async fn new(plan: FaultPlan) -> Self {
        let clock = Arc::new(VirtualClock::eager());
        let storage = MemoryStorage::new(clock.clone(), Pace::steady(), 2);
        let catalog = MemoryCatalog::new(Pace::steady());
        let states = MemoryStateStore::new(Pace::steady());
        let environment = Environment::new(clock.clone(), Arc::new(Dice::new(7)));
        let warehouse =
            |storage: Arc<dyn ObjectStorage>, catalog: Arc<dyn Catalog>, states: Arc<dyn StateStore>| {
                Warehouse {
                    layout: Layout::new("memory://warehouse"),
                    storage,
                    catalog,
                    states,
                    environment: environment.clone(),
                }
            };
        let plain = warehouse(
            Arc::new(storage.clone()),
            Arc::new(catalog.clone()),
            Arc::new(states.clone()),
        );
        let faulty = warehouse(
            Arc::new(FaultyStorage::new(plain.storage.clone(), plan.clone())),
            Arc::new(FaultyCatalog::new(plain.catalog.clone(), plan.clone())),
            Arc::new(FaultyStateStore::new(plain.states.clone(), plan)),
        );
        let table = TableName::new("kafka", "orders").unwrap();
        let world = Self {
            storage,
            catalog,
            clock,
            plain,
            faulty,
            table,
        };
        world.make_table().await;
        world
    }

    pub(super) async fn clean() -> Self {
        Self::new(FaultPlan::clean(Default::default())).await
    }

    async fn make_table(&self) {
        let design = TableDesign {
            kafka: KafkaColumns {
                key: false,
                headers: false,
                tombstone: false,
                topic: false,
                timestamp_type: false,
                utc_naive: false,
            },
            partition_by: Vec::new(),
            sort_by: Vec::new(),
            properties: HashMap::new(),
        };
        let made = ensure_table(&self.plain, &self.table, &Wanted, &design, None, Duration::ZERO).await;
        let Ensured::Ready { table, .. } = made.unwrap() else {
            panic!("refused")
        };
        let uuid = table.metadata.uuid();
        let add = |state: &mut TopicState| state.tables.insert(self.table.clone(), uuid).is_none();
        self.plain
            .change_topic_state(&source(), &topic(), add)
            .await
            .unwrap();
    }

    /// Stages records of a log under an epoch, as one invocation does.
    pub(super) async fn stage(
        &self,
        epoch: i32,
        log: &str,
        partition: i32,
        offsets: RangeInclusive<i64>,
    ) -> Uuid {
        self.stage_many(epoch, &[(log, partition, offsets)], false, None)
            .await
    }

    pub(super) async fn stage_backfill(
        &self,
        log: &str,
        partition: i32,
        offsets: RangeInclusive<i64>,
    ) -> Uuid {
        self.stage_many(0, &[(log, partition, offsets)], true, None).await
    }

    pub(super) async fn stage_many(
        &self,
        epoch: i32,
        parts: &[(&str, i32, RangeInclusive<i64>)],
        backfill: bool,
        parked_as: Option<Uuid>,
    ) -> Uuid {
        // Ids of one millisecond have no order.
        self.clock.advance(Duration::from_millis(5));
        let table = self.plain.load_existing(&self.table).await.unwrap();
        let ledger = self.plain.ledger(&table).await.unwrap();
        let (mut partitions, mut offsets, mut times, mut values) = (vec![], vec![], vec![], vec![]);
        let mut claims = Vec::new();
        for (log, partition, range) in parts {
            let mut anchors: Vec<Anchor> = Vec::new();
            let mut previous = None;
            for offset in range.clone() {
                let value = value_of(log, *partition, offset);
                if Anchor::is_due(previous, Offset(offset)) || offset == *range.end() {
                    let time = Some(TimestampMs(START_MS + offset));
                    anchors.push(Anchor::of(Offset(offset), time, None, Some(value.as_bytes())));
                }
                previous = Some(Offset(offset));
                partitions.push(*partition);
                offsets.push(offset);
                times.push((START_MS + offset) * 1_000);
                values.push(value);
            }
            claims.push(Claim {
                partition: Partition(*partition),
                range: OffsetRange::new(Offset(*range.start()), Offset(*range.end())).unwrap(),
                records: range.clone().count() as u64,
                dead_letters: 0,
                skipped: 0,
                anchors,
                oldest: None,
            });
        }
        let schema = Arc::new(schema_to_arrow_schema(table.metadata.current_schema()).unwrap());
        let count = offsets.len();
        let column = |name: &str| -> ArrayRef {
            match name {
                "_kafka_partition" => Arc::new(Int32Array::from(partitions.clone())),
                "_kafka_offset" => Arc::new(Int64Array::from(offsets.clone())),
                "_kafka_epoch" => Arc::new(Int32Array::from_value(epoch, count)),
                "_kafka_timestamp" => {
                    Arc::new(TimestampMicrosecondArray::from(times.clone()).with_timezone("+00:00"))
                }
                "v" => Arc::new(StringArray::from(values.clone())),
                other => panic!("an unexpected column {other}"),
            }
        };
        let columns = schema.fields().iter().map(|field| column(field.name())).collect();
        let request = StageRequest {
            table: &table,
            ledger: &ledger,
            log: log(epoch),
            claims,
            rows: Some(RecordBatch::try_new(schema.clone(), columns).unwrap()),
            dead_letters: Vec::new(),
            backfill,
            parked_as,
            files: FileSettings::default(),
        };
        stage(&self.plain, request).await.unwrap().id
    }

    pub(super) async fn commit(&self) -> CommitReport {
        commit_table(&self.plain, &self.table, &CommitSettings::default())
            .await
            .unwrap()
    }

    pub(super) async fn state(&self) -> TopicState {
        self.plain.topic_state(&source(), &topic()).await.unwrap()
    }

    pub(super) async fn cause(&self) -> Option<Cause> {
        self.state().await.suspended.map(|suspended| suspended.cause)
    }

    /// Descriptors on a shelf.
    pub(super) fn shelf(&self, shelf: Shelf) -> usize {
        self.storage.locations(&self.plain.layout.shelf(shelf)).len()
    }

    pub(super) fn parked(&self) -> Vec<String> {
        self.storage.locations(&self.plain.layout.all_parked())
    }

    /// What an engine reads, sorted.
    pub(super) fn seen(&self) -> Vec<Row> {
        let storage = self.storage.clone();
        let mut reader = TableReader::new(Columns::TABLE, Box::new(move |location| storage.peek(location)));
        let pointer = self.catalog.peek(&self.table).unwrap();
        let metadata = reader.metadata(&pointer.metadata_location).unwrap();
        let rows = reader.rows(&metadata).unwrap();
        let mut seen: Vec<Row> = rows
            .iter()
            .map(|row| (row.epoch, row.partition, row.offset, row.fingerprint))
            .collect();
        seen.sort_unstable();
        seen
    }

    #[track_caller]
    pub(super) fn check(&self, expected: impl IntoIterator<Item = Vec<Row>>) {
        let mut expected: Vec<Row> = expected.into_iter().flatten().collect();
        expected.sort_unstable();
        assert_eq!(self.seen(), expected);
    }

    pub(super) fn pass(&self, minutes: u64) {
        self.clock.advance(Duration::from_secs(minutes * 60));
    }

    /// Deletes all rows, as another engine does it.
    pub(super) async fn erase(&self) {
        let table = self.plain.load_existing(&self.table).await.unwrap();
        let metadata = &table.metadata;
        let (id, sequence_number) = (4711, metadata.next_sequence_number());
        let parent = metadata.current_snapshot_id();
        let list = format!("{}/metadata/snap-erased.avro", metadata.location());
        let output = self
            .plain
            .file_io()
            .new_output(&list)
            .unwrap()
            .writer()
            .await
            .unwrap();
        let writer = ManifestListWriter::v2(output, id, parent, sequence_number);
        writer.close().await.unwrap();
        let summary = Summary {
            operation: Operation::Delete,
            additional_properties: HashMap::new(),
        };
        let snapshot = Snapshot::builder()
            .with_snapshot_id(id)
            .with_parent_snapshot_id(parent)
            .with_sequence_number(sequence_number)
            .with_timestamp_ms(metadata.last_updated_ms() + 1)
            .with_manifest_list(list)
            .with_summary(summary)
            .with_schema_id(metadata.current_schema_id())
            .build();
        let builder = metadata
            .as_ref()
            .clone()
            .into_builder(Some(table.pointer.metadata_location.clone()));
        let built = builder
            .set_branch_snapshot(snapshot, MAIN_BRANCH)
            .unwrap()
            .build()
            .unwrap()
            .metadata;
        let bytes = serde_json::to_vec(&built).unwrap();
        self.point_to("erased", bytes).await;
    }

    /// Points `main` back to its first snapshot, as an engine's rollback does.
    pub(super) async fn roll_back(&self) {
        let table = self.plain.load_existing(&self.table).await.unwrap();
        let first = table.metadata.history().first().unwrap().snapshot_id;
        let mut json = serde_json::to_value(table.metadata.as_ref()).unwrap();
        json["current-snapshot-id"] = first.into();
        json["refs"]["main"]["snapshot-id"] = first.into();
        json["snapshot-log"]
            .as_array_mut()
            .unwrap()
            .push(serde_json::json!({
                "snapshot-id": first,
                "timestamp-ms": table.metadata.last_updated_ms(),
            }));
        self.point_to("rolled-back", serde_json::to_vec(&json).unwrap())
            .await;
    }

    async fn point_to(&self, name: &str, metadata: Vec<u8>) {
        let location = format!("memory://warehouse/elsewhere/00099-{name}.metadata.json");
        self.plain
            .storage
            .put(&location, metadata.into(), None)
            .await
            .unwrap();
        self.catalog.force(&self.table, &location);
    }
}

/// The error's kind and code.
pub(super) fn answer<T: std::fmt::Debug>(
    result: frazil_core::Result<T>,
) -> (ErrorKind, Option<&'static str>) {
    let error = result.unwrap_err();
    (error.kind(), error.code())
}
