use proptest::prelude::*;

use super::*;

const NOW: TimestampMs = TimestampMs(1_796_040_000_000);

fn rules() -> Rules {
    Rules {
        batch_size: 4,
        window: Duration::from_millis(500),
        max_retries: None,
        max_record_age: None,
        bisect: false,
        max_event_bytes: MAX_EVENT_BYTES,
    }
}

fn record(partition: i32, offset: i64) -> EncodedRecord {
    EncodedRecord {
        partition,
        offset,
        timestamp_ms: Some(NOW.0),
        json: vec![b'x'; 10],
    }
}

fn mapping(rules: Rules) -> Mapping {
    Mapping::new(rules, EventForm::new("orders".into(), "b:9092"))
}

fn later(millis: i64) -> TimestampMs {
    TimestampMs(NOW.0 + millis)
}

/// `p:first-last` of each run of records.
fn shown(batch: &Batch) -> String {
    let runs = batch
        .records
        .chunk_by(|a, b| a.partition == b.partition && a.offset + 1 == b.offset);
    let runs = runs.filter_map(|run| {
        Some(format!(
            "{}:{}-{}",
            run.first()?.partition,
            run.first()?.offset,
            run.last()?.offset
        ))
    });
    runs.collect::<Vec<_>>().join(" ")
}

/// Plays a script and returns what the mapping did, a line each.
///
/// An answer is what the function says to one event: `ok`, `fail`, `away`, or failed items as `p@offset`.
fn play(rules: Rules, records: &[(i32, std::ops::Range<i64>)], answers: &[&str]) -> Vec<String> {
    let mut mapping = mapping(rules);
    for (partition, offsets) in records {
        for offset in offsets.clone() {
            mapping.push(record(*partition, offset), NOW);
        }
    }
    mapping.flush();
    let (mut now, mut answers, mut lines) = (NOW, answers.iter(), Vec::new());
    loop {
        match mapping.step(now) {
            Step::Invoke(batch) => {
                let text = shown(&batch);
                let Some(said) = answers.next() else {
                    lines.push(format!("invoke {text}: …"));
                    return lines;
                };
                let verdict = mapping.answered(batch, answer(said), now);
                lines.push(format!("invoke {text}: {said}, {:?}", verdict.next));
            }
            Step::SetAside(batch, condition) => {
                lines.push(format!("{} {}", condition.as_str(), shown(&batch)));
                mapping.settled(&batch);
            }
            Step::Wait(Some(until)) => now = until,
            Step::Wait(None) => {
                lines.push(format!("{:?}", mapping.positions()));
                return lines;
            }
        }
    }
}

fn answer(said: &str) -> Answer {
    match said {
        "ok" => Answer::Taken,
        "fail" => Answer::Failed("boom".to_owned()),
        "away" => Answer::NotInvoked("away".to_owned()),
        items => Answer::ItemFailures(
            items
                .split(' ')
                .filter_map(|item| item.split_once('@'))
                .map(|(partition, offset)| (format!("orders-{partition}"), offset.parse().unwrap()))
                .collect(),
        ),
    }
}

#[test]
fn events_are_cut_by_size_and_keep_the_order() {
    assert_eq!(
        play(rules(), &[(0, 0..3), (1, 5..8)], &["ok", "ok"]),
        [
            "invoke 0:0-2 1:5-5: ok, Done",
            "invoke 1:6-7: ok, Done",
            "{0: 3, 1: 8}"
        ]
    );
}

#[test]
fn a_failed_event_comes_again_whole_and_holds_up_its_partitions_only() {
    assert_eq!(
        play(
            rules(),
            &[(0, 0..4), (1, 0..4), (0, 4..6)],
            &["fail", "ok", "fail", "ok", "ok"]
        ),
        [
            "invoke 0:0-3: fail, Retry(200ms)",
            "invoke 1:0-3: ok, Done",
            "invoke 0:0-3: fail, Retry(400ms)",
            "invoke 0:0-3: ok, Done",
            "invoke 0:4-5: ok, Done",
            "{0: 6, 1: 4}"
        ]
    );
}

#[test]
fn retries_end_where_they_are_told_to() {
    let once_more = Rules {
        max_retries: Some(1),
        ..rules()
    };
    assert_eq!(
        play(once_more, &[(0, 0..5)], &["fail", "away", "fail", "ok"]),
        [
            "invoke 0:0-3: fail, Retry(200ms)",
            "invoke 0:0-3: away, Retry(400ms)",
            "invoke 0:0-3: fail, GivenUp",
            "RetryAttemptsExhausted 0:0-3",
            "invoke 0:4-4: ok, Done",
            "{0: 5}"
        ]
    );
}

#[test]
fn bisecting_finds_the_record_and_does_not_count_as_a_retry() {
    let bisect = Rules {
        bisect: true,
        max_retries: Some(1),
        ..rules()
    };
    assert_eq!(
        play(
            bisect,
            &[(0, 0..4)],
            &["fail", "ok", "fail", "fail", "fail", "ok"]
        ),
        [
            "invoke 0:0-3: fail, Bisected",
            "invoke 0:0-1: ok, Done",
            "invoke 0:2-3: fail, Bisected",
            "invoke 0:2-2: fail, Retry(200ms)",
            "invoke 0:2-2: fail, GivenUp",
            "RetryAttemptsExhausted 0:2-2",
            "invoke 0:3-3: ok, Done",
            "{0: 4}"
        ]
    );
}

#[test]
fn failed_items_come_again_with_what_follows_them() {
    assert_eq!(
        play(rules(), &[(0, 0..2), (1, 0..2)], &["1@1", "ok"]),
        [
            "invoke 0:0-1 1:0-1: 1@1, Retry(200ms)",
            "invoke 1:1-1: ok, Done",
            "{0: 2, 1: 2}"
        ]
    );
    // The lowest counts; and what is named without progress is a failure like any other.
    let once_more = Rules {
        max_retries: Some(1),
        ..rules()
    };
    assert_eq!(
        play(once_more, &[(0, 0..4)], &["0@3 0@1", "0@1", "0@1"]),
        [
            "invoke 0:0-3: 0@3 0@1, Retry(200ms)",
            "invoke 0:1-3: 0@1, Retry(400ms)",
            "invoke 0:1-3: 0@1, GivenUp",
            "RetryAttemptsExhausted 0:1-3",
            "{0: 4}"
        ]
    );
    // An item that is not in the event makes all of it fail.
    assert_eq!(
        play(rules(), &[(0, 0..2)], &["0@7", "2@0", "ok"]),
        [
            "invoke 0:0-1: 0@7, Retry(200ms)",
            "invoke 0:0-1: 2@0, Retry(400ms)",
            "invoke 0:0-1: ok, Done",
            "{0: 2}"
        ]
    );
}

#[test]
fn an_event_waits_for_its_window() {
    let mut mapping = mapping(rules());
    mapping.push(record(0, 0), NOW);
    mapping.push(record(0, 1), later(499));
    assert_eq!(mapping.step(later(499)), Step::Wait(Some(later(500))));
    let Step::Invoke(batch) = mapping.step(later(500)) else {
        panic!("the window has ended");
    };
    assert_eq!(shown(&batch), "0:0-1");
    mapping.answered(batch, Answer::Taken, later(500));
    assert_eq!(mapping.step(later(500)), Step::Wait(None));
    for offset in 2..6 {
        mapping.push(record(0, offset), later(500));
    }
    assert!(matches!(mapping.step(later(500)), Step::Invoke(_)), "it is full");
}

#[test]
fn an_event_is_full_before_it_is_larger_than_a_lambda_takes() {
    let form = EventForm::new("orders".into(), "b:9092");
    let frame = form.envelope_bytes() + form.partition_bytes(0);
    let rules = Rules {
        batch_size: 100,
        max_event_bytes: frame + 3 * 11,
        ..rules()
    };
    let mut mapping = mapping(rules.clone());
    for offset in 0..4 {
        mapping.push(record(0, offset), NOW);
    }
    let Step::Invoke(batch) = mapping.step(NOW) else {
        panic!("three fill it");
    };
    assert_eq!(shown(&batch), "0:0-2");
    assert!(form.event(&batch.records).len() <= rules.max_event_bytes);
}

#[test]
fn a_record_that_no_event_can_hold_is_set_aside_alone() {
    let rules = Rules {
        max_event_bytes: 200,
        ..rules()
    };
    let mut mapping = mapping(rules);
    mapping.push(record(0, 0), NOW);
    mapping.push(
        EncodedRecord {
            json: vec![b'x'; 200],
            ..record(0, 1)
        },
        NOW,
    );
    mapping.push(record(0, 2), NOW);
    mapping.flush();
    let mut seen = Vec::new();
    loop {
        match mapping.step(NOW) {
            Step::Invoke(batch) => {
                seen.push(shown(&batch));
                mapping.answered(batch, Answer::Taken, NOW);
            }
            Step::SetAside(batch, condition) => {
                seen.push(format!("{} {}", condition.as_str(), shown(&batch)));
                mapping.settled(&batch);
            }
            Step::Wait(_) => break,
        }
    }
    assert_eq!(seen, ["0:0-0", "MaximumPayloadSizeExceeded 0:1-1", "0:2-2"]);
}

#[test]
fn old_records_are_given_up_and_do_not_carry_the_position_past_younger_ones() {
    let rules = Rules {
        max_record_age: Some(Duration::from_secs(60)),
        ..rules()
    };
    let mut mapping = mapping(rules);
    mapping.push(record(0, 0), NOW);
    mapping.push(
        EncodedRecord {
            timestamp_ms: Some(NOW.0 - 60_001),
            ..record(0, 1)
        },
        NOW,
    );
    mapping.push(
        EncodedRecord {
            timestamp_ms: None,
            ..record(0, 2)
        },
        NOW,
    );
    mapping.flush();
    let Step::SetAside(old, Condition::RecordAgeExceeded) = mapping.step(NOW) else {
        panic!("one is too old");
    };
    assert_eq!(shown(&old), "0:1-1");
    mapping.settled(&old);
    assert_eq!(mapping.positions(), BTreeMap::from([(0, 0)]));
    let Step::Invoke(young) = mapping.step(NOW) else {
        panic!("the others are tried");
    };
    assert_eq!(shown(&young), "0:0-0 0:2-2");
    mapping.answered(young, Answer::Taken, NOW);
    assert_eq!(mapping.positions(), BTreeMap::from([(0, 3)]));
}

#[test]
fn reading_ahead_ends_at_two_events_and_what_is_held_up_does_not_count() {
    let mut mapping = mapping(rules());
    for offset in 0..8 {
        assert!(mapping.wants_more());
        mapping.push(record(0, offset), NOW);
    }
    assert!(!mapping.wants_more());
    let Step::Invoke(batch) = mapping.step(NOW) else {
        panic!("it is full");
    };
    mapping.answered(batch, Answer::Failed("boom".to_owned()), NOW);
    assert!(mapping.wants_more(), "others may go on");
    assert_eq!(mapping.held_up(), &BTreeSet::from([0]));
}

proptest! {
    /// Whatever the function answers: each record is taken or given up once, after all that precede it in its
    /// partition, and no position lies behind a record that is not.
    #[test]
    fn every_record_is_done_once_and_in_order(
        records in prop::collection::vec(0_i32..3, 1..60),
        answers in prop::collection::vec((0_u8..8, any::<prop::sample::Index>()), 0..80),
        bisect in any::<bool>(),
        max_retries in prop::option::of(0_u32..3),
        ahead in 1_usize..60,
    ) {
        let mut mapping = mapping(Rules { bisect, max_retries, ..rules() });
        let mut offsets = [0_i64; 3];
        let records: Vec<EncodedRecord> = records
            .into_iter()
            .map(|partition| {
                let offset = offsets[partition as usize];
                offsets[partition as usize] += 1 + i64::from(offset % 3 == 0);
                record(partition, offset)
            })
            .collect();
        let mut coming = records.clone().into_iter();
        let (mut now, mut answers, mut done) = (NOW, answers.into_iter(), Vec::new());
        let mut idle = false;
        loop {
            for record in coming.by_ref().take(ahead) {
                mapping.push(record, now);
                idle = false;
            }
            let step = mapping.step(now);
            match step {
                Step::Invoke(batch) => {
                    let said = answers.next();
                    let answer = match said {
                        Some((0 | 1, _)) => Answer::Failed("boom".to_owned()),
                        Some((2, _)) => Answer::NotInvoked("away".to_owned()),
                        Some((3..=5, index)) => {
                            let failed = index.get(&batch.records);
                            Answer::ItemFailures(vec![(format!("orders-{}", failed.partition), failed.offset)])
                        }
                        _ => Answer::Taken,
                    };
                    let before = batch.records.clone();
                    let stop = match &answer {
                        Answer::Taken => None,
                        Answer::ItemFailures(items) => {
                            let partition: i32 = items[0].0["orders-".len()..].parse().unwrap();
                            Some((partition, items[0].1))
                        }
                        Answer::Failed(_) | Answer::NotInvoked(_) => Some((-1, 0)),
                    };
                    mapping.answered(batch, answer, now);
                    done.extend(before.into_iter().filter(|record| match stop {
                        None => true,
                        Some((-1, _)) => false,
                        Some((partition, offset)) => record.partition != partition || record.offset < offset,
                    }));
                }
                Step::SetAside(batch, _) => {
                    mapping.settled(&batch);
                    done.extend(batch.records);
                }
                Step::Wait(Some(until)) => now = until.max(now),
                Step::Wait(None) if idle => break,
                Step::Wait(None) => idle = true,
            }
            for (partition, next) in mapping.positions() {
                let outstanding = records.iter().filter(|record| record.partition == partition && !done.contains(record));
                prop_assert!(outstanding.map(|record| record.offset).min().is_none_or(|first| next <= first));
            }
        }
        prop_assert!(mapping.is_empty());
        for partition in 0..3 {
            let of = |records: &[EncodedRecord]| -> Vec<i64> {
                records.iter().filter(|record| record.partition == partition).map(|record| record.offset).collect()
            };
            prop_assert_eq!(of(&done), of(&records));
        }
    }
}
