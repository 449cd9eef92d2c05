//! Lambda's rules for a Kafka event source mapping, without any I/O: what goes into a batch, what becomes of one that
//! failed, and up to where each partition is done.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use frazil_core::TimestampMs;

use super::event::{EncodedRecord, EventForm};

/// The largest event, of an invocation with a response (“Lambda quotas”, 6 MB).
pub(crate) const MAX_EVENT_BYTES: usize = 6 * 1024 * 1024;
/// The wait before the first retry; it doubles with every failure of a batch.
const FIRST_RETRY_AFTER: Duration = Duration::from_millis(200);
/// The longest wait between two tries: whoever repairs the function should not have to wait for Frazil.
const LAST_RETRY_AFTER: Duration = Duration::from_secs(30);
/// How many batches of records are read ahead.
const BATCHES_AHEAD: usize = 2;

/// What a person may choose, by Lambda's names.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// `BatchSize`.
    pub(crate) batch_size: usize,
    /// `MaximumBatchingWindowInSeconds`.
    pub(crate) window: Duration,
    /// `MaximumRetryAttempts`; `None` is −1, no end.
    pub(crate) max_retries: Option<u32>,
    /// `MaximumRecordAgeInSeconds`; `None` is −1, no end.
    pub(crate) max_record_age: Option<Duration>,
    /// `BisectBatchOnFunctionError`.
    pub(crate) bisect: bool,
    /// The largest event.
    pub(crate) max_event_bytes: usize,
}

/// Records of one invocation, in order of partition and offset.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Batch {
    pub(crate) records: Vec<EncodedRecord>,
    /// How often the function was invoked with these records.
    pub(crate) invocations: u32,
    /// Failures that count against `max_retries`.
    failures: u32,
    /// Tries in a row that came to nothing: the wait grows with them.
    setbacks: u32,
    not_before: TimestampMs,
    /// Why it is given up, once it is.
    given_up: Option<Condition>,
}

/// Why records are given up: Lambda's words for it in what goes to the on-failure destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    RetryAttemptsExhausted,
    RecordAgeExceeded,
    MaximumPayloadSizeExceeded,
}

impl Condition {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::RetryAttemptsExhausted => "RetryAttemptsExhausted",
            Self::RecordAgeExceeded => "RecordAgeExceeded",
            Self::MaximumPayloadSizeExceeded => "MaximumPayloadSizeExceeded",
        }
    }
}

/// What is to be done now. A batch comes back with [`Mapping::answered`] or [`Mapping::settled`] before the next step.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// Invoke the function.
    Invoke(Batch),
    /// Keep the records elsewhere: they are given up.
    SetAside(Batch, Condition),
    /// Nothing before this time, or before more records come.
    Wait(Option<TimestampMs>),
}

/// What an invocation came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The function took all of it.
    Taken,
    /// `batchItemFailures`: `topic-partition` and offset.
    ItemFailures(Vec<(String, i64)>),
    /// The function failed.
    Failed(String),
    /// The function was not reached: throttled, away, not answering. That is no failure of these records.
    NotInvoked(String),
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Records that are done.
    pub(crate) done: usize,
    /// Records that come again, or are given up next.
    pub(crate) left: usize,
    /// Why not all of it was done.
    pub(crate) reason: Option<String>,
    /// What happens to what is left.
    pub(crate) next: Next,
}

/// What happens to what is left of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing is left.
    Done,
    /// It is tried again after this time.
    Retry(Duration),
    /// It was cut in halves.
    Bisected,
    /// It is given up.
    GivenUp,
}

/// The records of one topic on their way through.
#[derive(Debug)]
pub(crate) struct Mapping {
    rules: Rules,
    form: EventForm,
    /// Read and in no batch yet, in the order in which they came, with the time.
    waiting: VecDeque<(EncodedRecord, TimestampMs)>,
    waiting_bytes: usize,
    /// The same, of partitions that an unfinished batch holds up.
    held: VecDeque<(EncodedRecord, TimestampMs)>,
    /// Batches to be tried again or given up. Where two share a partition, the first goes first.
    unfinished: VecDeque<Batch>,
    /// Partitions of which a batch is unfinished.
    held_up: BTreeSet<i32>,
    /// Partitions that have delivered something.
    known: BTreeSet<i32>,
    /// What an event with all of them takes beside its records.
    frame_bytes: usize,
    /// The highest offset that is done, by partition.
    done: BTreeMap<i32, i64>,
    /// Whether what is there goes out without waiting for more.
    flush: bool,
}

impl Mapping {
    pub(crate) fn new(rules: Rules, form: EventForm) -> Self {
        Self {
            rules,
            frame_bytes: form.envelope_bytes(),
            form,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            held: VecDeque::new(),
            unfinished: VecDeque::new(),
            held_up: BTreeSet::new(),
            known: BTreeSet::new(),
            done: BTreeMap::new(),
            flush: false,
        }
    }

    /// Takes the next record of its partition.
    pub(crate) fn push(&mut self, record: EncodedRecord, now: TimestampMs) {
        if self.known.insert(record.partition) {
            self.frame_bytes += self.form.partition_bytes(record.partition);
        }
        if self.held_up.contains(&record.partition) {
            self.held.push_back((record, now));
        } else {
            self.waiting_bytes += EventForm::record_bytes(&record);
            self.waiting.push_back((record, now));
        }
    }

    /// Whether more records are wanted. What is held up does not count: its partitions are not read meanwhile.
    pub(crate) fn wants_more(&self) -> bool {
        self.waiting.len() < BATCHES_AHEAD * self.rules.batch_size
            && self.waiting_bytes < BATCHES_AHEAD * self.rules.max_event_bytes
    }

    /// Partitions of which a batch is unfinished: nothing after it goes out before it is done.
    pub(crate) fn held_up(&self) -> &BTreeSet<i32> {
        &self.held_up
    }

    /// From now on nothing more is waited for.
    pub(crate) fn flush(&mut self) {
        self.flush = true;
    }

    /// Whether nothing is on its way, except a batch that was handed out.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.held.is_empty() && self.unfinished.is_empty()
    }

    /// The offset from which each partition is to be read after a restart.
    pub(crate) fn positions(&self) -> BTreeMap<i32, i64> {
        let mut positions: BTreeMap<i32, i64> = self
            .done
            .iter()
            .map(|(partition, offset)| (*partition, offset + 1))
            .collect();
        // What was given up for its age may lie behind what is still to be done.
        for record in self.unfinished.iter().flat_map(|batch| &batch.records) {
            if let Some(position) = positions.get_mut(&record.partition) {
                *position = record.offset.min(*position);
            }
        }
        positions
    }

    /// What to do now.
    pub(crate) fn step(&mut self, now: TimestampMs) -> Step {
        let mut wake = None;
        let mut earlier = BTreeSet::new();
        for index in 0..self.unfinished.len() {
            let batch = &self.unfinished[index];
            let is_first = batch.partitions().all(|partition| !earlier.contains(&partition));
            earlier.extend(batch.partitions());
            if is_first && batch.not_before <= now {
                return self.take(index, now);
            }
            if is_first {
                wake = Some(wake.map_or(batch.not_before, |wake: TimestampMs| wake.min(batch.not_before)));
            }
        }
        if let Some((_, since)) = self.waiting.front() {
            let window_ends = TimestampMs(since.0.saturating_add(millis(self.rules.window)));
            let (fits, is_full) = self.next_batch();
            if is_full || self.flush || window_ends <= now {
                let batch = self.form_batch(fits, now);
                self.unfinished.push_back(batch);
                return self.take(self.unfinished.len() - 1, now);
            }
            wake = Some(wake.map_or(window_ends, |wake| wake.min(window_ends)));
        }
        Step::Wait(wake)
    }

    /// How many of the waiting records the next batch takes, 0 if the first is too large for any; and whether more would
    /// not fit.
    fn next_batch(&self) -> (usize, bool) {
        let (records, bytes) = (self.waiting.len(), self.frame_bytes + self.waiting_bytes);
        if records < self.rules.batch_size && bytes <= self.rules.max_event_bytes {
            return (records, false);
        }
        let mut bytes = self.form.envelope_bytes();
        let mut partitions = BTreeSet::new();
        for (count, (record, _)) in self.waiting.iter().enumerate() {
            if count == self.rules.batch_size {
                return (count, true);
            }
            if partitions.insert(record.partition) {
                bytes += self.form.partition_bytes(record.partition);
            }
            bytes += EventForm::record_bytes(record);
            if bytes > self.rules.max_event_bytes {
                return (count, true);
            }
        }
        (self.waiting.len(), self.waiting.len() >= self.rules.batch_size)
    }

    fn form_batch(&mut self, fits: usize, now: TimestampMs) -> Batch {
        let given_up = (fits == 0).then_some(Condition::MaximumPayloadSizeExceeded);
        let taken = self.waiting.drain(..fits.max(1)).map(|(record, _)| record);
        let mut records: Vec<EncodedRecord> = taken.collect();
        records.sort_by_key(|record| (record.partition, record.offset));
        self.waiting_bytes -= records.iter().map(EventForm::record_bytes).sum::<usize>();
        Batch {
            records,
            invocations: 0,
            failures: 0,
            setbacks: 0,
            not_before: now,
            given_up,
        }
    }

    /// Hands a batch out, to be invoked or given up.
    fn take(&mut self, index: usize, now: TimestampMs) -> Step {
        let Some(mut batch) = self.unfinished.remove(index) else {
            return Step::Wait(Some(now));
        };
        if let Some(condition) = batch.given_up {
            return Step::SetAside(batch, condition);
        }
        if let Some(limit) = self.rules.max_record_age {
            let is_expired = |record: &EncodedRecord| record.is_older_than(limit, now);
            let (expired, fresh): (Vec<_>, Vec<_>) = batch.records.into_iter().partition(is_expired);
            if !expired.is_empty() {
                if !fresh.is_empty() {
                    self.unfinished.insert(
                        index,
                        Batch {
                            records: fresh,
                            ..batch
                        },
                    );
                    self.sort_waiting();
                }
                return Step::SetAside(
                    Batch {
                        records: expired,
                        ..batch
                    },
                    Condition::RecordAgeExceeded,
                );
            }
            batch.records = fresh;
        }
        batch.invocations += 1;
        Step::Invoke(batch)
    }

    /// A batch that was to be set aside is safe elsewhere.
    pub(crate) fn settled(&mut self, batch: &Batch) {
        self.mark_done(&batch.records);
        self.sort_waiting();
    }

    /// An invocation is over.
    pub(crate) fn answered(&mut self, batch: Batch, answer: Answer, now: TimestampMs) -> Verdict {
        let verdict = match answer {
            Answer::Taken => self.took(&batch),
            Answer::ItemFailures(failures) => match first_failures(&self.form, &batch, &failures) {
                Ok(first) => self.took_part(batch, &first, now),
                Err(reason) => self.failed(batch, reason, now),
            },
            Answer::Failed(reason) => self.failed(batch, reason, now),
            Answer::NotInvoked(reason) => {
                let left = batch.records.len();
                let next = self.retry(batch, now);
                Verdict {
                    done: 0,
                    left,
                    reason: Some(reason),
                    next,
                }
            }
        };
        self.sort_waiting();
        verdict
    }

    fn took(&mut self, batch: &Batch) -> Verdict {
        self.mark_done(&batch.records);
        Verdict {
            done: batch.records.len(),
            left: 0,
            reason: None,
            next: Next::Done,
        }
    }

    /// Each partition is done up to its first failure; what is left is tried as a batch of its own.
    fn took_part(&mut self, batch: Batch, first: &BTreeMap<i32, i64>, now: TimestampMs) -> Verdict {
        let is_taken = |record: &EncodedRecord| {
            first
                .get(&record.partition)
                .is_none_or(|stop| record.offset < *stop)
        };
        let (taken, left): (Vec<_>, Vec<_>) = batch.records.into_iter().partition(is_taken);
        let (done, reason) = (taken.len(), "the function reported failed items".to_owned());
        self.mark_done(&taken);
        let batch = Batch {
            records: left,
            ..batch
        };
        if batch.records.is_empty() {
            return Verdict {
                done,
                left: 0,
                reason: None,
                next: Next::Done,
            };
        }
        if done == 0 {
            return self.failed(batch, reason, now);
        }
        // Lambda does not say whether these were tried before; here they count as new.
        let batch = Batch {
            failures: 0,
            setbacks: 0,
            ..batch
        };
        let left = batch.records.len();
        let next = self.retry(batch, now);
        Verdict {
            done,
            left,
            reason: Some(reason),
            next,
        }
    }

    fn failed(&mut self, mut batch: Batch, reason: String, now: TimestampMs) -> Verdict {
        let left = batch.records.len();
        let next = if self.rules.bisect && left > 1 {
            // “Splitting a batch does not count towards the retry quota.”
            let second = batch.records.split_off(left / 2);
            self.unfinished.push_front(Batch {
                records: second,
                not_before: now,
                ..batch
            });
            self.unfinished.push_front(Batch {
                not_before: now,
                ..batch
            });
            Next::Bisected
        } else {
            batch.failures += 1;
            if self.rules.max_retries.is_some_and(|most| batch.failures > most) {
                batch.given_up = Some(Condition::RetryAttemptsExhausted);
                batch.not_before = now;
                self.unfinished.push_front(batch);
                Next::GivenUp
            } else {
                self.retry(batch, now)
            }
        };
        Verdict {
            done: 0,
            left,
            reason: Some(reason),
            next,
        }
    }

    /// In front of all others: those that share a partition with it come after it.
    fn retry(&mut self, mut batch: Batch, now: TimestampMs) -> Next {
        let wait = FIRST_RETRY_AFTER
            .saturating_mul(1 << batch.setbacks.min(16))
            .min(LAST_RETRY_AFTER);
        batch.setbacks += 1;
        batch.not_before = TimestampMs(now.0.saturating_add(millis(wait)));
        self.unfinished.push_front(batch);
        Next::Retry(wait)
    }

    fn mark_done(&mut self, records: &[EncodedRecord]) {
        for record in records {
            let done = self.done.entry(record.partition).or_insert(record.offset);
            *done = record.offset.max(*done);
        }
    }

    /// Puts records of partitions that are held up apart, and those that are not any more back, before what came later.
    fn sort_waiting(&mut self) {
        self.held_up = self.unfinished.iter().flat_map(Batch::partitions).collect();
        let is_held = |(record, _): &(EncodedRecord, TimestampMs)| self.held_up.contains(&record.partition);
        let (held, freed): (VecDeque<_>, VecDeque<_>) = self.held.drain(..).partition(is_held);
        let (newly_held, waiting): (VecDeque<_>, VecDeque<_>) = self.waiting.drain(..).partition(is_held);
        self.held = held.into_iter().chain(newly_held).collect();
        self.waiting = freed.into_iter().chain(waiting).collect();
        self.waiting_bytes = self
            .waiting
            .iter()
            .map(|(record, _)| EventForm::record_bytes(record))
            .sum();
    }
}

impl Batch {
    /// The partitions, some of them more than once.
    fn partitions(&self) -> impl Iterator<Item = i32> {
        self.records.iter().map(|record| record.partition)
    }
}

/// The first failure of each partition. An id that is not of the batch makes all of it fail: so Lambda does it.
fn first_failures(
    form: &EventForm,
    batch: &Batch,
    failures: &[(String, i64)],
) -> Result<BTreeMap<i32, i64>, String> {
    let known: BTreeMap<(String, i64), i32> = batch
        .records
        .iter()
        .map(|record| {
            (
                (form.topic_partition(record.partition), record.offset),
                record.partition,
            )
        })
        .collect();
    let mut first = BTreeMap::new();
    for failure in failures {
        let Some(partition) = known.get(failure) else {
            return Err(format!(
                "the function reported {}, offset {} as failed, which is not in the event",
                failure.0, failure.1
            ));
        };
        let stop = first.entry(*partition).or_insert(failure.1);
        *stop = failure.1.min(*stop);
    }
    Ok(first)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
