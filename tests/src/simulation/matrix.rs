use std::fmt;
use std::pin::pin;

use frazil_core::Result;
use futures::future::{Either, select};

use super::{FaultKind, FaultPlan, Lateness, Point, Trace};

/// Every call of a scenario goes wrong once in every way, one run each.
///
/// A run is: the scenario with the fault; the scenario again, as whoever called it would do, until it succeeds; the
/// check. If a call was still to land, it lands now, and scenario and check follow once more.
#[derive(Debug, Clone)]
pub struct Matrix {
    name: &'static str,
    kinds: Vec<FaultKind>,
    attempts: u32,
    every: usize,
}

/// How much was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// The scenario.
    pub name: &'static str,
    /// How many calls it makes when nothing goes wrong.
    pub calls: usize,
    /// At how many of them something went wrong.
    pub points: usize,
    /// How many runs there were.
    pub runs: usize,
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            calls,
            points,
            runs,
        } = self;
        write!(
            f,
            "{name}: {points} of {calls} calls went wrong in every way, {runs} runs"
        )
    }
}

impl Matrix {
    /// All faults at all calls.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            kinds: vec![
                FaultKind::FailBefore,
                FaultKind::FailAfter,
                FaultKind::Late(Lateness::Calls(1)),
                FaultKind::Late(Lateness::Calls(9)),
                FaultKind::Late(Lateness::Settled),
                FaultKind::Twice,
                FaultKind::Again(Lateness::Calls(6)),
                FaultKind::Again(Lateness::Settled),
                FaultKind::Abort,
                FaultKind::AbortLate(Lateness::Calls(3)),
                FaultKind::AbortLate(Lateness::Settled),
            ],
            attempts: 4,
            every: 1,
        }
    }

    /// Only these faults.
    pub fn kinds(mut self, kinds: impl IntoIterator<Item = FaultKind>) -> Self {
        self.kinds = kinds.into_iter().collect();
        self
    }

    /// Only at every `every`th call: for back ends that are slow.
    pub fn every(mut self, every: usize) -> Self {
        self.every = every.max(1);
        self
    }

    /// `build` makes fresh back ends around the plan (its own calls never go wrong), `scenario` is the work, `check`
    /// says what is wrong with what is left.
    pub async fn run<W>(
        &self,
        build: impl AsyncFn(FaultPlan) -> W,
        scenario: impl AsyncFn(&W) -> Result<()>,
        check: impl AsyncFn(&W) -> Result<(), String>,
    ) -> Result<Coverage, String> {
        let trace = Trace::new(usize::MAX);
        let plan = FaultPlan::clean(trace.clone());
        let world = build(plan).await;
        let before = usize::try_from(trace.calls()).unwrap_or(usize::MAX);
        let clean = async || -> Result<(), String> {
            scenario(&world)
                .await
                .map_err(|error| format!("it fails by itself: {error:?}"))?;
            check(&world).await
        };
        clean()
            .await
            .map_err(|message| format!("{trace}{}: {message}", self.name))?;
        // The check reads the back ends themselves, past the wrappers, so all further calls are the scenario's.
        let points: Vec<Point> = trace.points().split_off(before);

        let mut coverage = Coverage {
            name: self.name,
            calls: points.len(),
            points: 0,
            runs: 0,
        };
        for (nth, point) in points.iter().enumerate().step_by(self.every) {
            coverage.points += 1;
            for kind in &self.kinds {
                if !applies(*kind, point) {
                    continue;
                }
                coverage.runs += 1;
                self.one(nth as u64, *kind, &build, &scenario, &check)
                    .await
                    .map_err(|message| format!("{message}\n{}: {kind:?} at {point}", self.name))?;
            }
        }
        Ok(coverage)
    }

    async fn one<W>(
        &self,
        nth: u64,
        kind: FaultKind,
        build: &impl AsyncFn(FaultPlan) -> W,
        scenario: &impl AsyncFn(&W) -> Result<()>,
        check: &impl AsyncFn(&W) -> Result<(), String>,
    ) -> Result<(), String> {
        let trace = Trace::default();
        let plan = FaultPlan::clean(trace.clone());
        let world = build(plan.clone()).await;
        plan.arm(trace.calls() + nth, kind);
        {
            let run = pin!(scenario(&world));
            let aborted = pin!(plan.aborted());
            match select(run, aborted).await {
                Either::Left((Ok(()), _)) => trace.note("the run succeeded"),
                Either::Left((Err(error), _)) => trace.note(format!("the run failed: {error}")),
                Either::Right(_) => trace.note("the run was ended"),
            }
        }
        plan.disarm();
        let finish = async || -> Result<(), String> {
            let mut attempt = 1;
            while let Err(error) = scenario(&world).await {
                trace.note(format!("rerun {attempt} failed: {error}"));
                if attempt >= self.attempts {
                    return Err(format!("it does not recover: {error:?}"));
                }
                attempt += 1;
            }
            trace.note("the rerun succeeded");
            check(&world).await
        };
        let explain = |message: String| format!("{trace}{message}");
        finish().await.map_err(explain)?;
        if plan.settle().await > 0 {
            finish().await.map_err(explain)?;
        }
        Ok(())
    }
}

/// A read that fails has no other side to it.
fn applies(kind: FaultKind, point: &Point) -> bool {
    point.operation.writes() || matches!(kind, FaultKind::FailBefore | FaultKind::Abort)
}
