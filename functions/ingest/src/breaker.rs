use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use frazil_config::Breaker as Limits;
use frazil_core::{SourceName, TimestampMs, TopicName};

/// Counts unreadable records per topic over a rolling window, in this process. Every instance of the function judges
/// by what it sees: a topic whose records have gone bad trips each of them within one event.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    seen: Mutex<HashMap<(SourceName, TopicName), VecDeque<Seen>>>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    at: TimestampMs,
    records: u64,
    unreadable: u64,
}

/// Entries kept per topic: with one event each, more than a window of ten minutes holds.
const MAX_ENTRIES: usize = 4_096;

impl Breaker {
    /// Counts an event, and says whether the topic's unreadable records are above the limits.
    pub(crate) fn trips(
        &self,
        log: (&SourceName, &TopicName),
        limits: &Limits,
        now: TimestampMs,
        records: u64,
        unreadable: u64,
    ) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = seen.entry((log.0.clone(), log.1.clone())).or_default();
        entries.push_back(Seen {
            at: now,
            records,
            unreadable,
        });
        let window = Duration::from(limits.window_ms);
        while entries.len() > MAX_ENTRIES || entries.front().is_some_and(|first| now.since(first.at) > window)
        {
            entries.pop_front();
        }
        let records: u64 = entries.iter().map(|entry| entry.records).sum();
        let unreadable: u64 = entries.iter().map(|entry| entry.unreadable).sum();
        unreadable >= u64::from(limits.minimum) && unreadable as f64 > limits.share * records as f64
    }

    /// Forgets a topic's count: a person resumed it.
    pub(crate) fn reset(&self, log: (&SourceName, &TopicName)) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.remove(&(log.0.clone(), log.1.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_a_share_and_a_number_within_the_window() {
        let limits = Limits::default();
        let log = (&SourceName::new("s"), &TopicName::new("t"));
        let check = |events: &[(i64, u64, u64)], expected: bool| {
            let breaker = Breaker::default();
            let mut tripped = false;
            for (minute, records, unreadable) in events {
                tripped = breaker.trips(log, &limits, TimestampMs(minute * 60_000), *records, *unreadable);
            }
            assert_eq!(tripped, expected, "{events:?}");
        };
        check(&[(0, 19, 19)], false); // all bad, but too few to judge
        check(&[(0, 20, 20)], true);
        check(&[(0, 1_000, 50)], false); // exactly 5 %
        check(&[(0, 1_000, 51)], true);
        check(&[(0, 19, 19), (1, 10, 1)], true);
        check(&[(0, 19, 19), (11, 10, 1)], false); // the first has left the window
    }
}
