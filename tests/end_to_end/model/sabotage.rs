//! Rules of the protocol are left out one by one, and the model sees each.

use std::time::Duration;

use frazil_table::sabotage::{Break, with};
use frazil_tests::model::protocol::{Intervention, Profile, run_with};
use frazil_tests::model::{ProducerOptions, SourceOptions};
use frazil_tests::simulation::{Dice, Rates};

/// Plays schedules until one fails, and says which promise it breaks. The same schedules pass with the rule in force.
fn check(broken: Break, promises: &[&str], schedules: u64, profile: fn(&Dice) -> Profile) {
    let found = (0..schedules).find_map(|seed| {
        let failure = with(broken, || run_with(seed, profile)).err()?;
        Some((seed, failure))
    });
    let Some((seed, failure)) = found else {
        panic!("{broken:?}: nobody saw it in {schedules} schedules");
    };
    println!("{broken:?}: seed {seed}: {}", failure.message);
    let named = promises
        .iter()
        .any(|promise| failure.message.starts_with(promise));
    assert!(named, "{broken:?} should break {promises:?}: {failure}");
    run_with(seed, profile).unwrap_or_else(|failure| panic!("seed {seed} without {broken:?}: {failure}"));
}

fn rough(_: &Dice) -> Profile {
    Profile {
        committers: 3,
        commit_pause: Duration::from_secs(6),
        crash: 0.003,
        faults: Rates {
            fail_before: 0.01,
            fail_after: 0.02,
            late: 0.02,
            twice: 0.02,
            again: 0.01,
        },
        ..Profile::calm()
    }
}

#[test]
fn a_ledger_named_outside_the_swap() {
    check(Break::LedgerOutsideSwap, &["I4"], 20, rough);
}

#[test]
fn a_decision_reused_after_a_conflict() {
    check(Break::DecisionReused, &["I1", "I2", "I4"], 200, rough);
}

#[test]
fn a_descriptor_deleted_before_the_swap() {
    check(Break::DeletedBeforeSwap, &["I1", "I3"], 200, rough);
}

#[test]
fn a_hole_accepted_without_listing_again() {
    check(Break::HoleWithoutRelisting, &["I3"], 400, |dice| Profile {
        page_size: 1,
        interventions: vec![Intervention::Suspend, Intervention::Suspend],
        ..rough(dice)
    });
}

#[test]
fn a_conflict_taken_for_failure_after_a_lost_answer() {
    check(Break::LostAnswerIsFailure, &["I5"], 100, rough);
}

#[test]
fn pending_found_by_name() {
    check(Break::PendingByName, &["I7", "I2", "I1"], 200, |dice| Profile {
        commit_pause: Duration::from_secs(60),
        interventions: vec![Intervention::Drop],
        ..rough(dice)
    });
}

#[test]
fn dead_letters_in_a_commit_of_their_own() {
    check(Break::LettersByThemselves, &["I2"], 200, |dice| Profile {
        producer: ProducerOptions {
            poison: 0.15,
            ..Profile::calm().producer
        },
        ..rough(dice)
    });
}

#[test]
fn a_forgotten_hole_taken_for_committed() {
    check(Break::ForgottenIsTaken, &["I1"], 300, |dice| Profile {
        partitions: 1,
        producer: ProducerOptions {
            records: 80,
            gap: 0.7,
            compaction: 0.0,
            ..Profile::calm().producer
        },
        source: SourceOptions {
            longest_batch: 1,
            give_up_after: Some(1),
            redelivery: 0.0,
            ..Profile::calm().source
        },
        ..rough(dice)
    });
}

/// A topic that is made anew, and whose first records may come again.
fn recreated(dice: &Dice) -> Profile {
    Profile {
        interventions: vec![Intervention::Recreate {
            repeated: dice.below(4) as usize,
            announced: false,
        }],
        ..rough(dice)
    }
}

#[test]
fn a_covered_range_dropped_without_proof() {
    check(Break::DropWithoutProof, &["I1"], 200, recreated);
}

#[test]
fn a_hole_over_what_waits() {
    check(Break::HoleOverPending, &["I3"], 400, |dice| Profile {
        page_size: 1,
        stall: 0.05,
        interventions: vec![Intervention::Suspend, Intervention::Suspend],
        ..rough(dice)
    });
}

#[test]
fn a_descriptor_deleted_that_was_taken_in_part() {
    check(Break::PartlyTakenDeleted, &["I1", "I3"], 400, rough);
}

#[test]
fn an_old_hole_filled_by_another_log() {
    check(Break::OldHoleOpenToAll, &["I2"], 400, |dice| Profile {
        partitions: 1,
        producer: ProducerOptions {
            records: 30,
            gap: 0.8,
            longest_pause: Duration::from_secs(600),
            ..Profile::calm().producer
        },
        source: SourceOptions {
            longest_batch: 1,
            ..Profile::calm().source
        },
        interventions: vec![
            Intervention::Pause(Duration::from_secs(5_400)),
            Intervention::Recreate {
                repeated: 0,
                announced: false,
            },
        ],
        commit_pause: Duration::from_secs(240),
        ..rough(dice)
    });
}
