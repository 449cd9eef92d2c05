//! The whole protocol in one world: producers, an event source, ingests, committers and a person at the command, on
//! memory back ends that fail, lose answers and land calls late; all drawn from one seed.
//!
//! [`run`] plays one schedule. After every step in which a table changed, [`Watch`] compares it with the world; when
//! all is quiet, nothing that was acknowledged may be missing.

mod actors;
mod backend;
mod operator;
mod profile;
mod settle;
mod watch;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use frazil_core::{SourceName, TableName, TopicName};

use super::{Group, Shared, World, share};
use crate::simulation::{Dice, Failure, Options, Simulation, Trace};

pub use backend::Backend;
pub use profile::{Intervention, Profile};
pub use watch::Watch;

/// The topic of every schedule.
pub const TOPIC: &str = "orders";

/// What a schedule came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Polls of actors.
    pub steps: u64,
    /// Calls of back ends.
    pub calls: u64,
    /// Calls that went wrong.
    pub faults: u64,
    /// Rows in the table at the end.
    pub rows: usize,
    /// How often the pointer of the table moved.
    pub commits: usize,
    /// A hash of everything that happened.
    pub fingerprint: u64,
}

/// What all actors of a schedule share.
pub(super) struct Stage {
    pub(super) profile: Profile,
    pub(super) world: Shared<World>,
    pub(super) group: Shared<Group>,
    pub(super) backend: Backend,
    pub(super) watch: RefCell<Watch>,
    pub(super) dice: Dice,
    pub(super) trace: Trace,
    /// Event sources that still deliver.
    pub(super) delivering: Cell<usize>,
    /// What an actor saw that must not be.
    pub(super) violation: RefCell<Option<String>>,
}

impl Stage {
    pub(super) fn source(&self) -> SourceName {
        SourceName::new("default")
    }

    pub(super) fn topic(&self) -> TopicName {
        TopicName::new(TOPIC)
    }

    pub(super) fn table(&self) -> TableName {
        self.backend.table.clone()
    }

    pub(super) fn delivers(&self) -> bool {
        self.delivering.get() > 0
    }

    pub(super) fn note(&self, remark: impl Into<String>) {
        self.trace.note(remark);
    }

    pub(super) fn violate(&self, message: impl Into<String>) {
        self.violation.borrow_mut().get_or_insert(message.into());
    }

    fn check(&self) -> Result<(), String> {
        match self.violation.borrow_mut().take() {
            Some(message) => Err(message),
            None => self.watch.borrow_mut().look(&self.backend),
        }
    }
}

/// Plays the schedule of a seed, with the profile that the seed draws.
pub fn run(seed: u64) -> Result<Summary, Box<Failure>> {
    run_with(seed, Profile::drawn)
}

/// Plays the schedule of a seed with a profile.
pub fn run_with(seed: u64, profile: impl FnOnce(&Dice) -> Profile) -> Result<Summary, Box<Failure>> {
    let profile = profile(&Dice::new(seed).fork("profile"));
    let options = Options {
        crash: profile.crash,
        stall: profile.stall,
        ..Options::default()
    };
    let mut simulation = Simulation::new(seed, options);
    let world = share(World::new(TOPIC, profile.partitions));
    let backend = Backend::new(&simulation, &profile);
    let stage = Rc::new(Stage {
        group: share(Group::new(profile.partitions)),
        watch: RefCell::new(Watch::new(Rc::clone(&world), &backend)),
        world,
        backend,
        dice: simulation.dice("stage"),
        trace: simulation.trace(),
        delivering: Cell::new(0),
        violation: RefCell::default(),
        profile,
    });
    actors::start(&simulation, &stage);
    let check = || stage.check();
    simulation.run(check)?;
    stage.note("all is delivered: no more faults");
    stage.backend.plan.disarm();
    simulation
        .spawner()
        .spawn("settling", settle::settle(Rc::clone(&stage)));
    simulation.run(check)?;
    let judged = stage.watch.borrow_mut().judge(&stage.backend);
    judged.map_err(|message| simulation.failure(message))?;
    let (backend, watch) = (&stage.backend, stage.watch.borrow());
    Ok(Summary {
        steps: simulation.steps(),
        calls: stage.trace.calls(),
        faults: backend.plan.injected(),
        rows: watch.visible(),
        commits: backend.catalog.history(&backend.table).len(),
        fingerprint: stage.trace.fingerprint(),
    })
}
