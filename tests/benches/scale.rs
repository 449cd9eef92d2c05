//! What one run of the catalog function costs when much is pending, in calls of the back ends and in dollars.
//!
//! The time is the function's own work on back ends in memory. What S3 and Glue take is computed from the calls.
//!
//! ```text
//! cargo bench --workspace --bench scale
//! ```

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use frazil_catalog::{Function, Operation as Asked};
use frazil_config::Config;
use frazil_core::{TableName, TimestampMs};
use frazil_deployment::Deployment;
use frazil_ingest::{Ingest, IngestOptions};
use frazil_registry::DirectoryRegistry;
use frazil_table::properties::LEDGER;
use frazil_table::{CommitSettings, Layout, Shelf, Warehouse, commit_table, list_all, system_environment};
use frazil_tests::json_record;
use frazil_tests::model::event_json;
use frazil_tests::simulation::{
    FaultPlan, FaultyCatalog, FaultyStateStore, FaultyStorage, MemoryCatalog, MemoryStateStore,
    MemoryStorage, Operation, Pace, Trace, VirtualClock,
};

/// Of the one table with many descriptors.
const DESCRIPTORS: i64 = 2_000;
const PARTITIONS: i32 = 100;
/// With one descriptor each.
const TABLES: usize = 300;
/// Tables per invocation, as the state machine asks.
const BATCH: usize = 20;
/// More than one commit takes: a backlog, made small.
const BACKLOG: i64 = 400;
const TAKEN_OF_BACKLOG: usize = 100;
/// S3's.
const PAGE_SIZE: usize = 1_000;

/// us-east-1. Those of S3 and Glue are unverified.
const PER_GET: f64 = 0.0004 / 1e3;
const PER_PUT_OR_LIST: f64 = 0.005 / 1e3;
const PER_GLUE: f64 = 1.0 / 1e6;
const PER_GB_SECOND: f64 = 0.000_013_333_4;
const PER_INVOCATION: f64 = 0.20 / 1e6;
/// Of the catalog function.
const MEMORY_GB: f64 = 1.0;
/// Assumed, not measured: S3 and Glue inside a region.
const SECONDS_PER_REQUEST: f64 = 0.03;
/// Minutes of 30 days.
const RUNS_PER_MONTH: f64 = 43_200.0;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    println!("run                               s    GET   PUT  LIST  DELETE  Glue  commits     rows");
    let world = World::new();
    let one = vec!["events".to_owned()];
    world.stage(&one, PARTITIONS, 0..1).await?;
    world.run().await?;
    world.stage(&one, PARTITIONS, 1..=DESCRIPTORS).await?;
    let pending = world.pending_bytes().await?;
    let run = world.run().await?;
    ensure!(run.commits == 1, "{run:?}");
    // Descriptors are read 32 at once, and everything else one after another.
    run.show("2,000 descriptors × 100 partitions", 32.0);
    let (metadata, ledger) = world.weight("events").await?;
    println!("  descriptors {pending} bytes, ledger {ledger}, metadata.json {metadata}");

    let world = World::new();
    let topics: Vec<String> = (0..TABLES).map(|nth| format!("t{nth:03}")).collect();
    world.stage(&topics, 1, 0..1).await?;
    world.run().await?;
    world.stage(&topics, 1, 1..2).await?;
    let run = world.run().await?;
    ensure!(run.commits == TABLES as u64, "{run:?}");
    // Eight tables at once.
    run.show("300 tables × 1 descriptor", 8.0);
    let (metadata, ledger) = world.weight("t000").await?;
    println!("  per table: ledger {ledger} bytes, metadata.json {metadata}");
    let run = world.run().await?;
    run.show("nothing pending", 1.0);

    let world = World::new();
    world.stage(&one, PARTITIONS, 0..BACKLOG).await?;
    let before = world.trace.points().len();
    let settings = CommitSettings {
        max_taken: TAKEN_OF_BACKLOG,
        ..CommitSettings::default()
    };
    let table = TableName::new("kafka", "events")?;
    let report = commit_table(&world.warehouse, &table, &settings).await?;
    let gets = world.calls(before).gets;
    println!(
        "backlog: {BACKLOG} descriptors, at most {TAKEN_OF_BACKLOG} per commit: {} commits, {gets} GET",
        report.commits.len()
    );
    Ok(())
}

/// Back ends in memory, with everything that the functions call written down.
struct World {
    /// Written down.
    warehouse: Warehouse,
    truth: Warehouse,
    trace: Trace,
    ingest: Ingest,
}

impl World {
    fn new() -> Self {
        let storage = MemoryStorage::new(Arc::new(VirtualClock::new()), Pace::steady(), PAGE_SIZE);
        let truth = Warehouse {
            layout: Layout::new(format!("{}warehouse", MemoryStorage::SCHEME)),
            storage: Arc::new(storage),
            catalog: Arc::new(MemoryCatalog::new(Pace::steady())),
            states: Arc::new(MemoryStateStore::new(Pace::steady())),
            // A clock that jumps would be at every deadline at once.
            environment: system_environment(),
        };
        let trace = Trace::new(usize::MAX);
        let plan = FaultPlan::clean(trace.clone());
        let warehouse = Warehouse {
            storage: Arc::new(FaultyStorage::new(truth.storage.clone(), plan.clone())),
            catalog: Arc::new(FaultyCatalog::new(truth.catalog.clone(), plan.clone())),
            states: Arc::new(FaultyStateStore::new(truth.states.clone(), plan)),
            ..truth.clone()
        };
        let registry = Arc::new(DirectoryRegistry::new("/nowhere"));
        let ingest = Ingest::new(
            truth.clone(),
            Arc::<Config>::default(),
            registry,
            IngestOptions::default(),
        );
        Self {
            warehouse,
            truth,
            trace,
            ingest,
        }
    }

    /// One event per topic and offset, with one record in each partition.
    async fn stage(
        &self,
        topics: &[String],
        partitions: i32,
        offsets: impl Iterator<Item = i64> + Clone,
    ) -> Result<()> {
        for topic in topics {
            for offset in offsets.clone() {
                let record = |partition| (partition, vec![json_record(offset, &[("id", "0")])]);
                let event: Vec<_> = (0..partitions).map(record).collect();
                self.ingest.handle(&event_json(topic, &event)).await?;
            }
        }
        Ok(())
    }

    /// What the state machine does, by a process that knows no table yet.
    #[allow(clippy::disallowed_methods)] // what is measured is the machine
    async fn run(&self) -> Result<Run> {
        let function = Function::new(Deployment::fixed(self.warehouse.clone(), Config::default()));
        let deadline = TimestampMs(self.warehouse.environment.now().0 + 900_000);
        let before = self.trace.points().len();
        let start = Instant::now();
        let answer = function
            .invoke(&Asked::ListPending { batch: BATCH }, deadline)
            .await?;
        let batches: Vec<Vec<TableName>> = serde_json::from_value(answer.body["batches"].clone())?;
        let mut run = Run {
            invocations: 1 + batches.len(),
            ..Run::default()
        };
        for tables in batches {
            let asked = Asked::Commit { tables: Some(tables) };
            let body = function.invoke(&asked, deadline).await?.body;
            ensure!(
                body["failed"] == 0 && body["left"] == serde_json::json!([]),
                "{body}"
            );
            for table in body["tables"].as_array().context("no tables")? {
                run.commits += table["commits"].as_u64().unwrap_or(0);
                run.rows += table["rows"].as_u64().unwrap_or(0);
            }
        }
        run.took = start.elapsed();
        run.calls = self.calls(before);
        Ok(run)
    }

    /// Since there were `before` calls.
    fn calls(&self, before: usize) -> Calls {
        let mut calls = Calls::default();
        let mut descriptors = HashSet::new();
        for point in self.trace.points().iter().skip(before) {
            match point.operation {
                Operation::Get | Operation::GetRange | Operation::Head | Operation::LoadState => {
                    calls.gets += 1;
                    if point.location.contains("/_frazil/pending/") {
                        descriptors.insert(point.location.clone());
                    }
                }
                Operation::Put | Operation::StoreState => calls.puts += 1,
                Operation::ListPage | Operation::StateKeys => calls.lists += 1,
                Operation::Delete => calls.deletes += 1,
                // Glue's swap looks first: what others wrote into the table is kept.
                Operation::Swap => calls.glue += 2,
                Operation::CreateNamespace
                | Operation::Namespaces
                | Operation::Tables
                | Operation::LoadTable
                | Operation::CreateTable
                | Operation::DropTable => calls.glue += 1,
            }
        }
        calls.descriptors = descriptors.len() as u64;
        calls
    }

    async fn pending_bytes(&self) -> Result<u64> {
        let prefix = self.truth.layout.shelf(Shelf::Pending);
        let objects = list_all(self.truth.storage.as_ref(), &prefix).await?;
        Ok(objects.iter().map(|object| object.size_bytes).sum())
    }

    /// Bytes of metadata.json and ledger.
    async fn weight(&self, topic: &str) -> Result<(u64, u64)> {
        let table = self.truth.load_existing(&TableName::new("kafka", topic)?).await?;
        let ledger = table.metadata.properties().get(LEDGER).context("no ledger")?;
        let mut sizes = Vec::new();
        for location in [&table.pointer.metadata_location, ledger] {
            let head = self.truth.storage.head(location).await?;
            sizes.push(head.context("not there")?.size_bytes);
        }
        Ok((sizes[0], sizes[1]))
    }
}

#[derive(Debug, Default)]
struct Calls {
    gets: u64,
    puts: u64,
    lists: u64,
    deletes: u64,
    glue: u64,
    /// Of the GETs, descriptors: many at once.
    descriptors: u64,
}

#[derive(Debug, Default)]
struct Run {
    took: Duration,
    calls: Calls,
    invocations: usize,
    commits: u64,
    rows: u64,
}

impl Run {
    /// With so many requests under way at once: those for descriptors, or all when tables share the time.
    fn show(&self, name: &str, at_once: f64) {
        let calls = &self.calls;
        println!(
            "{name:<30} {:>5.2} {:>6} {:>5} {:>5} {:>7} {:>5} {:>8} {:>8}",
            self.took.as_secs_f64(),
            calls.gets,
            calls.puts,
            calls.lists,
            calls.deletes,
            calls.glue,
            self.commits,
            self.rows,
        );
        let all = (calls.gets + calls.puts + calls.lists + calls.deletes + calls.glue) as f64;
        let together = if self.commits > 1 {
            all
        } else {
            calls.descriptors as f64
        };
        let waits = (all - together + together / at_once) * SECONDS_PER_REQUEST;
        let seconds = self.took.as_secs_f64() + waits;
        let s3 = calls.gets as f64 * PER_GET + (calls.puts + calls.lists) as f64 * PER_PUT_OR_LIST;
        let glue = calls.glue as f64 * PER_GLUE;
        let lambda = seconds * MEMORY_GB * PER_GB_SECOND + self.invocations as f64 * PER_INVOCATION;
        let run = s3 + glue + lambda;
        println!(
            "  {} invocations, {seconds:.1} s of them in all; $ per run: S3 {s3:.6}, Glue {glue:.6}, Lambda {lambda:.6}, \
             together {run:.6}; per month of such runs {:.2}",
            self.invocations,
            run * RUNS_PER_MONTH,
        );
    }
}
