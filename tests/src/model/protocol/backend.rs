use std::path::Path;
use std::sync::Arc;

use frazil_config::Config;
use frazil_core::TableName;
use frazil_ingest::{Ingest, IngestOptions};
use frazil_registry::DirectoryRegistry;
use frazil_table::{Layout, Warehouse};

use super::{Profile, TOPIC};
use crate::simulation::{
    FaultPlan, FaultyCatalog, FaultyStateStore, FaultyStorage, MemoryCatalog, MemoryStateStore,
    MemoryStorage, Pace, Simulation,
};

/// The configuration of every schedule. A breaker that trips now and then is part of it.
const CONFIG: &str = "[defaults]\nformat = \"json\"\n[defaults.breaker]\nshare = 0.3\nminimum = 10\n";

/// The memory back ends of a schedule, and the code under test on top of them.
pub struct Backend {
    /// The objects, past all faults.
    pub storage: MemoryStorage,
    /// The pointers, past all faults.
    pub catalog: MemoryCatalog,
    /// The states, past all faults.
    pub states: MemoryStateStore,
    /// What goes wrong.
    pub plan: FaultPlan,
    /// The topic's table.
    pub table: TableName,
    /// Where unreadable records go.
    pub letters: TableName,
    /// Where everything lies.
    pub layout: Layout,
    ingests: Vec<Arc<Ingest>>,
    warehouse: Warehouse,
}

impl Backend {
    pub(super) fn new(simulation: &Simulation, profile: &Profile) -> Self {
        let pace = || Pace::shuffled(simulation.dice("pace"));
        let storage = MemoryStorage::new(simulation.clock(), pace(), profile.page_size);
        let catalog = MemoryCatalog::new(pace());
        let states = MemoryStateStore::new(pace());
        let plan = FaultPlan::random(simulation.trace(), simulation.dice("faults"), profile.faults);
        let layout = Layout::new("memory://w");
        let warehouse = Warehouse {
            layout: layout.clone(),
            storage: Arc::new(FaultyStorage::new(Arc::new(storage.clone()), plan.clone())),
            catalog: Arc::new(FaultyCatalog::new(Arc::new(catalog.clone()), plan.clone())),
            states: Arc::new(FaultyStateStore::new(Arc::new(states.clone()), plan.clone())),
            environment: simulation.environment("warehouse"),
        };
        let config = Arc::new(Config::parse(CONFIG, Path::new("frazil.toml")).expect("it is valid"));
        // JSON needs no schemas.
        let registry = Arc::new(DirectoryRegistry::new("no-schemas"));
        let ingest = || {
            let (warehouse, config) = (warehouse.clone(), Arc::clone(&config));
            Arc::new(Ingest::new(
                warehouse,
                config,
                registry.clone(),
                IngestOptions::default(),
            ))
        };
        let table = TableName::new("kafka", TOPIC).expect("it is a name");
        Self {
            letters: table.dead_letters().expect("it is a name"),
            table,
            layout,
            ingests: (0..profile.ingests).map(|_| ingest()).collect(),
            storage,
            catalog,
            states,
            plan,
            warehouse,
        }
    }

    /// The warehouse as the code under test has it.
    pub fn warehouse(&self) -> Warehouse {
        self.warehouse.clone()
    }

    /// One of the ingest processes.
    pub fn ingest(&self, number: usize) -> Arc<Ingest> {
        Arc::clone(&self.ingests[number % self.ingests.len()])
    }
}
