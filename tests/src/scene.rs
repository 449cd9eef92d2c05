use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use frazil_config::Config;
use frazil_core::{Environment, Result, TableName};
use frazil_ingest::{Ingest, IngestOptions, IngestReport};
use frazil_local::open_warehouse;
use frazil_registry::DirectoryRegistry;
use frazil_table::properties::LEDGER;
use frazil_table::{
    Catalog, CommitReport, CommitSettings, Layout, Ledger, ObjectStorage, RetryReport, StateStore, Warehouse,
    commit_table, list_all, retry_dead_letters,
};
use iceberg::spec::{FormatVersion, ManifestList};

use crate::AwsServer;
use crate::model::{Columns, Content, Fetch, Record, TableReader, VisibleRow, event_json};
use crate::simulation::{
    Dice, FaultPlan, FaultyCatalog, FaultyStateStore, FaultyStorage, MemoryCatalog, MemoryStateStore,
    MemoryStorage, Pace, Trace, VirtualClock,
};

/// Few enough for listings to take several pages.
const PAGE_SIZE: usize = 3;

/// Reads a file of the world that a scene plays in.
type ReadFile = Arc<dyn Fn(&str) -> Option<Bytes> + Send + Sync>;

/// One topic of JSON records, `events`, and its table, `kafka.events`: ingested and committed as the functions do it,
/// on a clock that jumps over every wait, and read back as an engine would.
#[derive(Clone)]
pub struct Scene {
    /// The back ends as the code under test sees them: calls go wrong as planned.
    pub warehouse: Warehouse,
    /// The same back ends, past the plan: for checks.
    pub truth: Warehouse,
    /// The time.
    pub clock: Arc<VirtualClock>,
    config: Arc<Config>,
    read: ReadFile,
}

/// What every commit has to read and write again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weight {
    /// Of metadata.json.
    pub metadata_bytes: u64,
    /// Of the ledger.
    pub ledger_bytes: u64,
    /// In metadata.json.
    pub snapshots: usize,
    /// In the current snapshot.
    pub manifests: usize,
}

impl fmt::Debug for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scene")
            .field("warehouse", &self.truth.layout)
            .finish_non_exhaustive()
    }
}

impl Scene {
    /// The topic.
    pub const TOPIC: &'static str = "events";

    /// In memory, with nothing going wrong.
    pub fn in_memory() -> Self {
        Self::in_memory_with(FaultPlan::clean(Trace::default()))
    }

    /// In memory.
    pub fn in_memory_with(plan: FaultPlan) -> Self {
        let clock = Arc::new(VirtualClock::eager());
        let storage = MemoryStorage::new(clock.clone(), Pace::steady(), PAGE_SIZE);
        let objects = storage.clone();
        let truth = Warehouse {
            layout: Layout::new(format!("{}warehouse", MemoryStorage::SCHEME)),
            storage: Arc::new(storage),
            catalog: Arc::new(MemoryCatalog::new(Pace::steady())),
            states: Arc::new(MemoryStateStore::new(Pace::steady())),
            environment: Environment::new(clock.clone(), Arc::new(Dice::new(1))),
        };
        Self::on(
            truth,
            clock,
            plan,
            Arc::new(move |location| objects.peek(location)),
        )
    }

    /// In a directory that may have a warehouse already, with nothing going wrong.
    pub fn in_directory(directory: &Path) -> Result<Self> {
        Self::in_directory_with(directory, FaultPlan::clean(Trace::default()))
    }

    /// In a directory that may have a warehouse already.
    pub fn in_directory_with(directory: &Path, plan: FaultPlan) -> Result<Self> {
        let clock = Arc::new(VirtualClock::eager());
        let environment = Environment::new(clock.clone(), Arc::new(Dice::new(1)));
        let truth = open_warehouse(directory, &environment)?;
        let read = |location: &str| fs::read(location.strip_prefix("file://")?).ok().map(Bytes::from);
        Ok(Self::on(truth, clock, plan, Arc::new(read)))
    }

    /// On AWS's stand-in, under a prefix that nobody uses.
    pub async fn on_aws(server: &Arc<AwsServer>, prefix: &str, plan: FaultPlan) -> Result<Self> {
        let clock = Arc::new(VirtualClock::eager());
        let environment = Environment::new(clock.clone(), Arc::new(Dice::new(1)));
        let location = server.warehouse(prefix);
        let truth = frazil_aws::open_warehouse(&location, &server.settings(), &environment).await?;
        let server = server.clone();
        Ok(Self::on(
            truth,
            clock,
            plan,
            Arc::new(move |location| server.object(location)),
        ))
    }

    fn on(truth: Warehouse, clock: Arc<VirtualClock>, plan: FaultPlan, read: ReadFile) -> Self {
        let storage: Arc<dyn ObjectStorage> =
            Arc::new(FaultyStorage::new(truth.storage.clone(), plan.clone()));
        let catalog: Arc<dyn Catalog> = Arc::new(FaultyCatalog::new(truth.catalog.clone(), plan.clone()));
        let states: Arc<dyn StateStore> = Arc::new(FaultyStateStore::new(truth.states.clone(), plan));
        let warehouse = Warehouse {
            storage,
            catalog,
            states,
            ..truth.clone()
        };
        Self {
            warehouse,
            truth,
            clock,
            config: Arc::default(),
            read,
        }
    }

    /// The same, past the plan.
    pub fn without_faults(&self) -> Self {
        Self {
            warehouse: self.truth.clone(),
            ..self.clone()
        }
    }

    /// From now on, with this configuration.
    pub fn configure(&mut self, toml: &str) -> Result<()> {
        self.config = Arc::new(Config::parse(toml, Path::new("frazil.toml"))?);
        Ok(())
    }

    /// The topic's table.
    pub fn table(&self) -> TableName {
        TableName::new("kafka", Self::TOPIC).unwrap_or_else(|_| unreachable!("it is a name"))
    }

    /// One event, to a function that has just started.
    pub async fn ingest(&self, batches: &[(i32, Vec<Record>)]) -> Result<IngestReport> {
        self.handler().handle(&event_json(Self::TOPIC, batches)).await
    }

    /// Dead letters are read again, by a function that has just started.
    pub async fn retry(&self) -> Result<RetryReport> {
        retry_dead_letters(&self.warehouse, &self.table(), &|_| true, &self.handler()).await
    }

    fn handler(&self) -> Ingest {
        let registry = Arc::new(DirectoryRegistry::new("/nowhere"));
        let options = IngestOptions::default();
        Ingest::new(self.warehouse.clone(), self.config.clone(), registry, options)
    }

    /// One run of the commit.
    pub async fn commit(&self) -> Result<CommitReport> {
        commit_table(&self.warehouse, &self.table(), &CommitSettings::default()).await
    }

    /// Lets time pass.
    pub fn wait(&self, duration: Duration) {
        self.clock.advance(duration);
    }

    /// The ledger in the current metadata.
    pub async fn ledger(&self) -> Result<Ledger> {
        let table = self.truth.load_existing(&self.table()).await?;
        self.truth.ledger(&table).await
    }

    /// What lies under a folder of the warehouse, such as `_frazil/pending/`.
    pub async fn listed(&self, folder: &str) -> Result<Vec<String>> {
        let prefix = format!("{}/{folder}", self.truth.layout.warehouse());
        let objects = list_all(self.truth.storage.as_ref(), &prefix).await?;
        Ok(objects.into_iter().map(|object| object.location).collect())
    }

    /// The rows of the table as they are now, by partition and offset. Every file that any snapshot refers to must be
    /// there (I7).
    pub async fn rows(&self) -> Result<Vec<VisibleRow>, String> {
        self.read_table(&self.table(), Columns::TABLE).await
    }

    /// Partition and offset of each dead letter.
    pub async fn dead_letters(&self) -> Result<Vec<(i32, i64)>, String> {
        let table = self.table().dead_letters().map_err(|error| error.to_string())?;
        let rows = self.read_table(&table, Columns::DEAD_LETTERS).await?;
        Ok(rows.iter().map(|row| (row.partition, row.offset)).collect())
    }

    /// How much every commit has to read and write again.
    pub async fn weight(&self) -> Result<Weight> {
        let table = self.truth.load_existing(&self.table()).await?;
        let manifests = match table.metadata.current_snapshot() {
            None => 0,
            Some(snapshot) => {
                let list = self
                    .truth
                    .storage
                    .get(snapshot.manifest_list(), u64::MAX)
                    .await?
                    .unwrap_or_default();
                let list = ManifestList::parse_with_version(&list, FormatVersion::V2);
                list.map_or(0, |list| list.entries().len())
            }
        };
        let ledger = table
            .metadata
            .properties()
            .get(LEDGER)
            .cloned()
            .unwrap_or_default();
        let size = async |location: &str| -> Result<u64> {
            Ok(self
                .truth
                .storage
                .head(location)
                .await?
                .map_or(0, |head| head.size_bytes))
        };
        Ok(Weight {
            metadata_bytes: size(&table.pointer.metadata_location).await?,
            ledger_bytes: size(&ledger).await?,
            snapshots: table.metadata.snapshots().len(),
            manifests,
        })
    }

    /// Removes what no reader of the current metadata.json needs, as maintenance does: for runs that are long.
    pub async fn sweep(&self) -> Result<()> {
        let table = self.truth.load_existing(&self.table()).await?;
        let mut kept: BTreeSet<String> = table
            .metadata
            .metadata_log()
            .iter()
            .map(|e| e.metadata_file.clone())
            .collect();
        kept.insert(table.pointer.metadata_location.clone());
        kept.extend(table.metadata.properties().get(LEDGER).cloned());
        let root = format!("{}/", self.truth.layout.warehouse());
        let superfluous: Vec<String> = list_all(self.truth.storage.as_ref(), &root)
            .await?
            .into_iter()
            .map(|object| object.location)
            .filter(|of| {
                (of.ends_with(".metadata.json") || of.contains("/_frazil/ledger/")) && !kept.contains(of)
            })
            .collect();
        self.truth.storage.delete(&superfluous).await
    }

    async fn read_table(&self, name: &TableName, columns: Columns) -> Result<Vec<VisibleRow>, String> {
        let pointer = self
            .truth
            .catalog
            .load(name)
            .await
            .map_err(|error| error.to_string())?;
        let Some(pointer) = pointer else {
            return Ok(Vec::new());
        };
        let read = self.read.clone();
        let fetch: Fetch = Box::new(move |location| read(location));
        let mut reader = TableReader::new(columns, fetch);
        let metadata = reader.metadata(&pointer.metadata_location)?;
        for entry in metadata.metadata_log() {
            let earlier = reader.metadata(&entry.metadata_file)?;
            reader.check_references(&earlier)?;
        }
        reader.check_references(&metadata)?;
        let mut rows = reader.rows(&metadata)?;
        rows.sort_unstable();
        Ok(rows)
    }
}

/// A JSON record whose columns are these texts, and numbers where the text is one.
pub fn json_record(offset: i64, columns: &[(&str, &str)]) -> Record {
    let value = columns.iter().map(|(name, value)| match value.parse::<i64>() {
        Ok(_) => format!("\"{name}\":{value}"),
        Err(_) => format!("\"{name}\":\"{value}\""),
    });
    let value = format!("{{{}}}", value.collect::<Vec<_>>().join(","));
    let columns = columns
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    record(offset, value, Content::Row(columns.collect()))
}

/// A record that no table can hold.
pub fn poison_record(offset: i64) -> Record {
    record(offset, format!("{{poison {offset}"), Content::Poison)
}

fn record(offset: i64, value: String, content: Content) -> Record {
    Record {
        offset,
        timestamp_ms: VirtualClock::START.0 - 60_000 + offset,
        key: Some(format!("k{offset}")),
        value: Some(value.into_bytes()),
        content,
        gone: false,
    }
}

/// The rows that these records are in a table of the topic's first life.
pub fn expected_rows<'a>(batches: impl IntoIterator<Item = &'a (i32, Vec<Record>)>) -> Vec<VisibleRow> {
    let mut rows: Vec<VisibleRow> = batches
        .into_iter()
        .flat_map(|(partition, records)| records.iter().map(move |record| (*partition, record)))
        .filter_map(|(partition, record)| {
            let fingerprint = record.fingerprint()?;
            Some(VisibleRow {
                epoch: 0,
                partition,
                offset: record.offset,
                fingerprint,
            })
        })
        .collect();
    rows.sort_unstable();
    rows
}
