use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use frazil_core::{Environment, Error, ErrorKind, Result};

use super::{Dice, Operation, Trace, lock};

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// It answers an error, and nothing happened.
    FailBefore,
    /// It happened, and it answers an error.
    FailAfter,
    /// It answers an error, and happens some time later.
    Late(Lateness),
    /// It is sent twice, as a client with retries does after a lost answer; the second answer is what the caller sees.
    Twice,
    /// It happens, answers the truth, and happens once more some time later: a packet took a long way round.
    Again(Lateness),
    /// The run ends here; nothing happened.
    Abort,
    /// The run ends here, and the call happens some time later.
    AbortLate(Lateness),
}

/// How late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lateness {
    /// After so many further calls of anything.
    Calls(u64),
    /// Not before [`FaultPlan::settle`] or [`FaultPlan::land_one`].
    Settled,
}

/// The chance of each fault, per call. Reads can only fail before.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)] // named after the faults
pub struct Rates {
    pub fail_before: f64,
    pub fail_after: f64,
    pub late: f64,
    pub twice: f64,
    pub again: f64,
}

/// Decides, for every call of every wrapper that shares it, what goes wrong. Clones share it.
#[derive(Debug, Clone)]
pub struct FaultPlan {
    state: Arc<Mutex<State>>,
    trace: Trace,
}

#[derive(Debug, Default)]
struct State {
    mode: Mode,
    late: Vec<Late>,
    aborted: bool,
    injected: u64,
    wakers: Vec<Waker>,
}

#[derive(Debug, Default)]
enum Mode {
    #[default]
    Clean,
    At(u64, FaultKind),
    Random(Dice, Rates),
}

pub(super) type LateCall = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Late {
    due: Option<u64>,
    what: String,
    call: LateCall,
}

impl fmt::Debug for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl FaultPlan {
    /// Nothing goes wrong, until it is [armed](Self::arm); calls are recorded.
    pub fn clean(trace: Trace) -> Self {
        Self {
            state: Arc::default(),
            trace,
        }
    }

    /// Each call may go wrong.
    pub fn random(trace: Trace, dice: Dice, rates: Rates) -> Self {
        let plan = Self::clean(trace);
        lock(&plan.state).mode = Mode::Random(dice, rates);
        plan
    }

    /// From now on, only the call with this index (as the trace counts) goes wrong.
    pub fn arm(&self, call: u64, kind: FaultKind) {
        lock(&self.state).mode = Mode::At(call, kind);
    }

    /// From now on nothing goes wrong; after an abort, calls go through again. What was late stays so.
    pub fn disarm(&self) {
        let mut state = lock(&self.state);
        state.mode = Mode::Clean;
        state.aborted = false;
    }

    /// Where calls are recorded.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// How many calls went wrong.
    pub fn injected(&self) -> u64 {
        lock(&self.state).injected
    }

    /// Completes when the run has ended by [`FaultKind::Abort`].
    pub async fn aborted(&self) {
        self.wait_for(|state| state.aborted).await;
    }

    /// Completes when a call waits to happen late.
    pub async fn something_late(&self) {
        self.wait_for(|state| !state.late.is_empty()).await;
    }

    async fn wait_for(&self, condition: impl Fn(&State) -> bool) {
        poll_fn(|context| {
            let mut state = lock(&self.state);
            if condition(&state) {
                return Poll::Ready(());
            }
            state.wakers.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Lets one of the late calls happen; answers whether there was one.
    pub async fn land_one(&self, dice: &Dice) -> bool {
        let late = {
            let mut state = lock(&self.state);
            if state.late.is_empty() {
                return false;
            }
            let chosen = dice.index(state.late.len());
            state.late.swap_remove(chosen)
        };
        self.land(late).await;
        true
    }

    /// Lets every late call happen, in the order of the calls; answers how many there were.
    pub async fn settle(&self) -> usize {
        let late = std::mem::take(&mut lock(&self.state).late);
        let count = late.len();
        for late in late {
            self.land(late).await;
        }
        count
    }

    async fn land(&self, late: Late) {
        self.trace.note(format!("lands late: {}", late.what));
        late.call.await;
    }

    /// Lets late calls happen for ever, each at most `longest` after the one before; most of them much
    /// sooner. For a daemon of a simulation.
    pub async fn keep_landing(&self, environment: &Environment, dice: &Dice, longest: Duration) {
        let longest_ms = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
        loop {
            self.something_late().await;
            if dice.chance(0.6) {
                let longest_ms = if dice.chance(0.5) {
                    longest_ms / 20
                } else {
                    longest_ms
                };
                environment
                    .sleep(Duration::from_millis(dice.below(longest_ms + 1)))
                    .await;
            }
            self.land_one(dice).await;
        }
    }

    /// A call begins. What is due lands first.
    pub(super) async fn begin(&self, operation: Operation, location: &str) -> Option<FaultKind> {
        if lock(&self.state).aborted {
            pending::<()>().await;
        }
        while let Some(late) = self.take_due() {
            self.land(late).await;
        }
        let fault = {
            let mut state = lock(&self.state);
            let fault = state.decide(self.trace.calls(), operation);
            self.trace.call(operation, location, fault);
            state.injected += u64::from(fault.is_some());
            if matches!(fault, Some(FaultKind::Abort)) {
                state.abort();
            }
            fault
        };
        if fault == Some(FaultKind::Abort) {
            pending::<()>().await;
        }
        fault
    }

    /// Keeps a call for later. After [`FaultKind::AbortLate`] this never completes.
    pub(super) async fn postpone(&self, fault: FaultKind, lateness: Lateness, what: String, call: LateCall) {
        {
            let mut state = lock(&self.state);
            let due = match lateness {
                Lateness::Calls(calls) => Some(self.trace.calls() + calls),
                Lateness::Settled => None,
            };
            state.late.push(Late { due, what, call });
            state.wake();
            if matches!(fault, FaultKind::AbortLate(_)) {
                state.abort();
            }
        }
        if matches!(fault, FaultKind::AbortLate(_)) {
            pending::<()>().await;
        }
    }

    fn take_due(&self) -> Option<Late> {
        let mut state = lock(&self.state);
        let calls = self.trace.calls();
        let due = state
            .late
            .iter()
            .position(|late| late.due.is_some_and(|due| due <= calls))?;
        Some(state.late.remove(due))
    }
}

impl State {
    fn decide(&mut self, call: u64, operation: Operation) -> Option<FaultKind> {
        match &self.mode {
            Mode::Clean => None,
            Mode::At(at, kind) => (*at == call).then_some(*kind),
            Mode::Random(dice, rates) => {
                if dice.chance(rates.fail_before) {
                    Some(FaultKind::FailBefore)
                } else if !operation.writes() {
                    None
                } else if dice.chance(rates.fail_after) {
                    Some(FaultKind::FailAfter)
                } else if dice.chance(rates.late) {
                    Some(FaultKind::Late(Lateness::Settled))
                } else if dice.chance(rates.twice) {
                    Some(FaultKind::Twice)
                } else {
                    dice.chance(rates.again)
                        .then_some(FaultKind::Again(Lateness::Settled))
                }
            }
        }
    }

    fn abort(&mut self) {
        self.aborted = true;
        self.wake();
    }

    fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

/// The error of a call that did not happen.
pub(super) fn refused<T>(location: &str) -> Result<T> {
    Err(Error::new(
        ErrorKind::Unavailable,
        "reach the back end",
        "it failed on purpose",
    )
    .with_context("location", location))
}

/// The error of a call that happened, or will.
pub(super) fn lost<T>(operation: Operation, location: &str) -> Result<T> {
    let kind = if operation.commits() {
        ErrorKind::CommitUnknown
    } else {
        ErrorKind::Unavailable
    };
    Err(
        Error::new(kind, "hear from the back end", "its answer was lost on purpose")
            .with_context("location", location),
    )
}
