use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use frazil_core::{Clock, TimestampMs};

use super::lock;

/// Time that moves only when it is told to.
#[derive(Debug)]
pub struct VirtualClock {
    now_ms: AtomicI64,
    /// By deadline and order of asking.
    sleepers: Mutex<BTreeMap<(i64, u64), Waker>>,
    asked: AtomicU64,
    eager: bool,
}

impl VirtualClock {
    /// 2026-01-01 00:00 UTC: a plain day, on which a simulation starts.
    pub const START: TimestampMs = TimestampMs(1_767_225_600_000);

    /// A clock that the simulation advances when nobody can go on.
    pub fn new() -> Self {
        Self {
            now_ms: AtomicI64::new(Self::START.0),
            sleepers: Mutex::default(),
            asked: AtomicU64::new(0),
            eager: false,
        }
    }

    /// A clock on which every sleep advances the time by itself: for runs without a simulation around them.
    pub fn eager() -> Self {
        Self {
            eager: true,
            ..Self::new()
        }
    }

    /// Moves the time forward and wakes whoever waited for it.
    pub fn advance(&self, duration: Duration) {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        self.advance_to(TimestampMs(self.now().0.saturating_add(millis)));
    }

    /// Moves the time forward, never back, and wakes whoever waited for it.
    pub fn advance_to(&self, time: TimestampMs) {
        self.now_ms.fetch_max(time.0, Ordering::Relaxed);
        let due = {
            let mut sleepers = lock(&self.sleepers);
            let later = sleepers.split_off(&(self.now().0.saturating_add(1), 0));
            std::mem::replace(&mut *sleepers, later)
        };
        due.into_values().for_each(Waker::wake);
    }

    /// When the next sleeper wants to be woken.
    pub fn next_deadline(&self) -> Option<TimestampMs> {
        let sleepers = lock(&self.sleepers);
        sleepers
            .first_key_value()
            .map(|((deadline, _), _)| TimestampMs(*deadline))
    }
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> TimestampMs {
        TimestampMs(self.now_ms.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Box::pin(Sleep {
            clock: self,
            deadline: self.now().0.saturating_add(millis),
            id: self.asked.fetch_add(1, Ordering::Relaxed),
            waiting: false,
        })
    }
}

struct Sleep<'a> {
    clock: &'a VirtualClock,
    deadline: i64,
    id: u64,
    waiting: bool,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // Even a sleep of no time lets others go first.
        if self.waiting && self.clock.now().0 >= self.deadline {
            return Poll::Ready(());
        }
        self.waiting = true;
        if self.clock.eager {
            self.clock.advance_to(TimestampMs(self.deadline));
            context.waker().wake_by_ref();
        } else if self.clock.now().0 >= self.deadline {
            context.waker().wake_by_ref();
        } else {
            lock(&self.clock.sleepers).insert((self.deadline, self.id), context.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        lock(&self.clock.sleepers).remove(&(self.deadline, self.id));
    }
}
