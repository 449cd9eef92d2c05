use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};

use super::{FaultKind, lock};

/// An operation of a back end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the traits say what they are
pub enum Operation {
    Put,
    Get,
    GetRange,
    Head,
    ListPage,
    Delete,
    CreateNamespace,
    Namespaces,
    Tables,
    LoadTable,
    CreateTable,
    Swap,
    DropTable,
    LoadState,
    StoreState,
    StateKeys,
}

impl Operation {
    /// Whether it changes anything, so that it matters whether a failed one happened.
    pub fn writes(self) -> bool {
        matches!(
            self,
            Self::Put
                | Self::Delete
                | Self::CreateNamespace
                | Self::CreateTable
                | Self::Swap
                | Self::DropTable
                | Self::StoreState
        )
    }

    /// Whether a lost answer is told as `CommitUnknown`.
    pub fn commits(self) -> bool {
        matches!(self, Self::CreateTable | Self::Swap)
    }
}

/// One call of a back end.
#[derive(Debug, Clone)]
pub struct Point {
    /// Counted from 0 in the run.
    pub index: u64,
    /// Who called.
    pub actor: Arc<str>,
    /// What was called.
    pub operation: Operation,
    /// On what.
    pub location: String,
    /// What went wrong on purpose.
    pub fault: Option<FaultKind>,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = shorten(&self.location);
        write!(
            f,
            "{:>5} {:<14} {:?} {location}",
            self.index, self.actor, self.operation
        )?;
        match self.fault {
            Some(fault) => write!(f, "  <-- {fault:?}"),
            None => Ok(()),
        }
    }
}

/// The location without its scheme, and of every uuid only the random end that tells it from others.
fn shorten(location: &str) -> String {
    let path = location.split_once("://").map_or(location, |(_, path)| path);
    let mut short = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(c) = rest.chars().next() {
        match rest.get(..36) {
            Some(candidate) if candidate.parse::<uuid::Uuid>().is_ok() => {
                short.push('~');
                short.push_str(&candidate[30..]);
                rest = &rest[36..];
            }
            _ => {
                short.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    short
}

/// What happened, newest last. Clones share it.
#[derive(Debug, Clone)]
pub struct Trace(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    actor: Arc<str>,
    lines: VecDeque<Line>,
    limit: usize,
    calls: u64,
    fingerprint: u64,
}

#[derive(Debug, Clone)]
enum Line {
    Call(Point),
    Note(Arc<str>, String),
}

impl Trace {
    /// Keeps the newest `limit` lines.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            actor: Arc::from("main"),
            lines: VecDeque::new(),
            limit,
            calls: 0,
            fingerprint: 0xcbf2_9ce4_8422_2325,
        })))
    }

    /// From now on, `actor` is acting.
    pub fn enter(&self, actor: &Arc<str>) {
        lock(&self.0).actor = Arc::clone(actor);
    }

    /// Who is acting.
    pub fn actor(&self) -> Arc<str> {
        Arc::clone(&lock(&self.0).actor)
    }

    /// Adds a remark of the acting actor.
    pub fn note(&self, remark: impl Into<String>) {
        let mut inner = lock(&self.0);
        let remark = remark.into();
        inner.digest(remark.as_bytes());
        let actor = Arc::clone(&inner.actor);
        inner.push(Line::Note(actor, remark));
    }

    /// Adds a call; answers its index.
    pub(super) fn call(&self, operation: Operation, location: &str, fault: Option<FaultKind>) -> u64 {
        let mut inner = lock(&self.0);
        let index = inner.calls;
        inner.calls += 1;
        inner.digest(&[operation as u8, u8::from(fault.is_some())]);
        inner.digest(location.as_bytes());
        let actor = Arc::clone(&inner.actor);
        inner.digest(actor.as_bytes());
        let location = location.to_owned();
        inner.push(Line::Call(Point {
            index,
            actor,
            operation,
            location,
            fault,
        }));
        index
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        lock(&self.0).calls
    }

    /// The calls that are still kept.
    pub fn points(&self) -> Vec<Point> {
        let inner = lock(&self.0);
        let calls = inner.lines.iter().filter_map(|line| match line {
            Line::Call(point) => Some(point.clone()),
            Line::Note(..) => None,
        });
        calls.collect()
    }

    /// A hash of everything that happened: equal for two runs of one seed, or the code under test is not
    /// deterministic.
    pub fn fingerprint(&self) -> u64 {
        lock(&self.0).fingerprint
    }
}

impl Default for Trace {
    /// Keeps the newest 400 lines.
    fn default() -> Self {
        Self::new(400)
    }
}

impl Inner {
    fn push(&mut self, line: Line) {
        if self.lines.len() >= self.limit {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    fn digest(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.fingerprint = (self.fingerprint ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &lock(&self.0).lines {
            match line {
                Line::Call(point) => writeln!(f, "{point}")?,
                Line::Note(actor, remark) => writeln!(f, "      {actor:<14} {remark}")?,
            }
        }
        Ok(())
    }
}
