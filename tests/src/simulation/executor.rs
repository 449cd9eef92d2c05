use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use frazil_core::{Clock, Environment, TimestampMs};
use futures::channel::oneshot;

use super::{Dice, Trace, VirtualClock};

/// How unkind the schedule is.
#[derive(Debug, Clone)]
pub struct Options {
    /// The chance, at each step, that a crashable actor is dropped instead of polled.
    pub crash: f64,
    /// The chance, at each step, that the chosen actor is set aside for a while: this is how plans get stale.
    pub stall: f64,
    /// The most steps that an actor is set aside.
    pub longest_stall: u64,
    /// The most milliseconds that pass in one step.
    pub longest_tick_ms: u64,
    /// After so many steps the run is judged to be going nowhere.
    pub max_steps: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            crash: 0.0,
            stall: 0.02,
            longest_stall: 120,
            longest_tick_ms: 40,
            max_steps: 400_000,
        }
    }
}

/// Runs actors one poll at a time, in an order drawn from a seed.
pub struct Simulation {
    seed: u64,
    options: Options,
    dice: Dice,
    schedule: Dice,
    clock: Arc<VirtualClock>,
    trace: Trace,
    spawner: Spawner,
    actors: Vec<Actor>,
    steps: u64,
}

struct Actor {
    name: Arc<str>,
    future: Pin<Box<dyn Future<Output = ()>>>,
    ready: Arc<Ready>,
    waker: Waker,
    crashable: bool,
    daemon: bool,
    /// When it is dropped, wherever it is.
    dies: Option<TimestampMs>,
    /// The step before which it is not polled.
    stalled_until: u64,
}

struct Ready(AtomicBool);

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Simulation {
    /// A world without actors.
    pub fn new(seed: u64, options: Options) -> Self {
        let dice = Dice::new(seed);
        let clock = Arc::new(VirtualClock::new());
        Self {
            seed,
            options,
            schedule: dice.fork("schedule"),
            dice,
            trace: Trace::default(),
            spawner: Spawner {
                clock: Arc::clone(&clock),
                queue: Rc::default(),
            },
            clock,
            actors: Vec::new(),
            steps: 0,
        }
    }

    /// A stream of randomness for one purpose.
    pub fn dice(&self, label: &str) -> Dice {
        self.dice.fork(label)
    }

    /// The world's time.
    pub fn clock(&self) -> Arc<VirtualClock> {
        Arc::clone(&self.clock)
    }

    /// The world's time and a stream of randomness, for the code under test.
    pub fn environment(&self, label: &str) -> Environment {
        Environment::new(self.clock(), Arc::new(self.dice(label)))
    }

    /// What happens, for the fault wrappers and for remarks.
    pub fn trace(&self) -> Trace {
        self.trace.clone()
    }

    /// Starts actors; actors may keep one and start others.
    pub fn spawner(&self) -> Spawner {
        self.spawner.clone()
    }

    /// How many polls there were.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Runs until every actor that is no daemon has ended. `after_step` looks at the world after each step; what it
    /// answers as an error ends the run.
    pub fn run(&mut self, mut after_step: impl FnMut() -> Result<(), String>) -> Result<(), Box<Failure>> {
        loop {
            self.adopt_spawned();
            if self.actors.iter().all(|actor| actor.daemon) {
                return Ok(());
            }
            if self.steps >= self.options.max_steps {
                return Err(self.failure(format!(
                    "still running after {} steps: {}",
                    self.steps,
                    self.names()
                )));
            }
            match self.choose() {
                Some(chosen) => self.step(chosen)?,
                None => self.pass_time()?,
            }
            after_step().map_err(|message| self.failure(message))?;
        }
    }

    /// Drops every actor, as if all machines had stopped at once.
    pub fn crash_all(&mut self) {
        self.adopt_spawned();
        for actor in std::mem::take(&mut self.actors) {
            self.trace.enter(&actor.name);
            drop(actor);
        }
    }

    /// What to report when something outside a step is wrong.
    pub fn failure(&self, message: impl Into<String>) -> Box<Failure> {
        Box::new(Failure {
            seed: self.seed,
            step: self.steps,
            actor: self.trace.actor().to_string(),
            message: message.into(),
            trace: self.trace.to_string(),
        })
    }

    fn adopt_spawned(&mut self) {
        self.actors.append(&mut self.spawner.queue.borrow_mut());
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.actors.iter().map(|actor| &*actor.name).collect();
        names.join(", ")
    }

    fn choose(&self) -> Option<usize> {
        let runnable = |actor: &Actor| actor.ready.0.load(Ordering::Relaxed);
        let free = |actor: &Actor| runnable(actor) && actor.stalled_until <= self.steps;
        let count = self.actors.iter().filter(|actor| free(actor)).count();
        if count > 0 {
            let nth = self.schedule.index(count);
            let mut indices = self.actors.iter().enumerate().filter(|(_, actor)| free(actor));
            return indices.nth(nth).map(|(index, _)| index);
        }
        // Only stalled ones are left: the one whose stall ends first.
        let stalled = self
            .actors
            .iter()
            .enumerate()
            .filter(|(_, actor)| runnable(actor));
        stalled
            .min_by_key(|(_, actor)| actor.stalled_until)
            .map(|(index, _)| index)
    }

    fn step(&mut self, chosen: usize) -> Result<(), Box<Failure>> {
        self.steps += 1;
        let tick_ms = self.schedule.below(self.options.longest_tick_ms + 1);
        self.clock.advance(Duration::from_millis(tick_ms));
        let now = self.clock.now();
        let actor = &mut self.actors[chosen];
        self.trace.enter(&actor.name);
        if actor.dies.is_some_and(|dies| dies <= now) {
            self.trace.note("is out of time and ends");
            self.actors.remove(chosen);
            return Ok(());
        }
        if actor.crashable && self.schedule.chance(self.options.crash) {
            self.trace.note("crashes");
            self.actors.remove(chosen);
            return Ok(());
        }
        if !actor.daemon && actor.stalled_until < self.steps && self.schedule.chance(self.options.stall) {
            actor.stalled_until = self.steps + self.schedule.below(self.options.longest_stall + 1);
            return Ok(());
        }
        actor.ready.0.store(false, Ordering::Relaxed);
        let mut context = Context::from_waker(&actor.waker);
        let future = actor.future.as_mut();
        match std::panic::catch_unwind(AssertUnwindSafe(|| future.poll(&mut context))) {
            Ok(Poll::Pending) => Ok(()),
            Ok(Poll::Ready(())) => {
                self.actors.remove(chosen);
                Ok(())
            }
            Err(panic) => {
                let text = panic
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| panic.downcast_ref::<&str>().copied())
                    .unwrap_or("no message");
                Err(self.failure(format!("panicked: {text}")))
            }
        }
    }

    /// Nobody can go on: on to the next deadline of a sleeper, or of somebody's life.
    fn pass_time(&mut self) -> Result<(), Box<Failure>> {
        let death = self.actors.iter().filter_map(|actor| actor.dies).min();
        let Some(time) = self.clock.next_deadline().into_iter().chain(death).min() else {
            return Err(self.failure(format!("nobody can go on: {}", self.names())));
        };
        self.clock.advance_to(time);
        for actor in self
            .actors
            .extract_if(.., |actor| actor.dies.is_some_and(|dies| dies <= time))
        {
            self.trace.enter(&actor.name);
            self.trace.note("is out of time and ends");
        }
        Ok(())
    }
}

/// Why a run failed, and how to see it again.
pub struct Failure {
    /// Gives the same run again.
    pub seed: u64,
    /// After how many steps it was seen.
    pub step: u64,
    /// Who was acting.
    pub actor: String,
    /// What is wrong.
    pub message: String,
    /// The last things that happened.
    pub trace: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            step,
            actor,
            message,
            trace,
        } = self;
        write!(
            f,
            "{trace}seed {seed}, step {step}, while {actor} was acting: {message}"
        )
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{self}")
    }
}

impl std::error::Error for Failure {}

/// Starts actors.
#[derive(Clone)]
pub struct Spawner {
    clock: Arc<VirtualClock>,
    queue: Rc<RefCell<Vec<Actor>>>,
}

impl Spawner {
    /// Starts an actor that runs until it ends by itself.
    pub fn spawn<T: 'static>(
        &self,
        name: impl AsRef<str>,
        future: impl Future<Output = T> + 'static,
    ) -> Handle<T> {
        self.actor(name).spawn(future)
    }

    /// An actor with a fate.
    pub fn actor(&self, name: impl AsRef<str>) -> ActorBuilder {
        ActorBuilder {
            spawner: self.clone(),
            name: Arc::from(name.as_ref()),
            crashable: false,
            daemon: false,
            lifetime: None,
        }
    }
}

/// An actor before it starts.
#[must_use]
pub struct ActorBuilder {
    spawner: Spawner,
    name: Arc<str>,
    crashable: bool,
    daemon: bool,
    lifetime: Option<Duration>,
}

impl ActorBuilder {
    /// It may be dropped at any of its steps.
    pub fn crashable(mut self) -> Self {
        self.crashable = true;
        self
    }

    /// The run does not wait for its end, and it is never stalled.
    pub fn daemon(mut self) -> Self {
        self.daemon = true;
        self
    }

    /// It is dropped after this time, as Lambda does.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }

    /// Starts it.
    pub fn spawn<T: 'static>(self, future: impl Future<Output = T> + 'static) -> Handle<T> {
        let (sender, receiver) = oneshot::channel();
        let ready = Arc::new(Ready(AtomicBool::new(true)));
        let now = self.spawner.clock.now();
        let dies = self.lifetime.map(|lifetime| {
            let lifetime_ms = i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX);
            TimestampMs(now.0.saturating_add(lifetime_ms))
        });
        self.spawner.queue.borrow_mut().push(Actor {
            name: self.name,
            future: Box::pin(async move {
                // Whoever waited may be gone: that is their affair.
                let _ = sender.send(future.await);
            }),
            waker: Waker::from(Arc::clone(&ready)),
            ready,
            crashable: self.crashable,
            daemon: self.daemon,
            dies,
            stalled_until: 0,
        });
        Handle(receiver)
    }
}

/// Waits for an actor's end. Dropping it leaves the actor alone: that makes a zombie.
#[derive(Debug)]
pub struct Handle<T>(oneshot::Receiver<T>);

/// How an actor ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<T> {
    /// By itself.
    Done(T),
    /// It crashed or was out of time.
    Crashed,
}

impl<T> Future for Handle<T> {
    type Output = Outcome<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome<T>> {
        Pin::new(&mut self.0)
            .poll(context)
            .map(|result| result.map_or(Outcome::Crashed, Outcome::Done))
    }
}

/// Runs one future to its end without a simulation around it; time must be [`VirtualClock::eager`].
///
/// # Panics
///
/// When the future waits for something that nobody will do.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let ready = Arc::new(Ready(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&ready));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        assert!(
            ready.0.swap(false, Ordering::Relaxed),
            "the future waits for what nobody will do"
        );
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}
