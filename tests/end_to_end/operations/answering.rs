use frazil_core::ErrorKind;
use frazil_table::plan::SuspendCause;
use frazil_table::{
    Cause, HistoryChoice, Judgement, Resume, Shelf, announce_replay, quarantine_descriptor,
    release_descriptor, resume_topic, suspend_topic, undrop,
};
use frazil_tests::simulation::block_on;

use super::world::{World, answer, rows, source, topic};

#[test]
fn a_group_reset_to_0_is_proved_and_stops_nothing() {
    block_on(async {
        let world = World::clean().await;
        world.stage(0, "a", 0, 0..=9).await;
        world.commit().await;
        let again = [
            world.stage(0, "a", 0, 0..=4).await,
            world.stage(0, "a", 0, 5..=12).await,
        ];
        let report = world.commit().await;
        assert_eq!(report.dropped, again.map(|id| (id, Judgement::Proved)));
        assert_eq!(world.cause().await, None);
        world.check([rows(0, "a", 0, 0..=12)]);
        assert_eq!((world.shelf(Shelf::Pending), world.shelf(Shelf::Dropped)), (0, 2));

        let refused = answer(undrop(&world.plain, again[0], None).await);
        assert_eq!(refused, (ErrorKind::Invalid, None));
        assert_eq!(world.shelf(Shelf::Dropped), 2);
    });
}

#[test]
fn a_reset_over_erased_rows_is_asked_about_and_answered_with_replay() {
    block_on(async {
        let world = World::clean().await;
        world.stage(0, "a", 0, 0..=9).await;
        world.commit().await;
        world.erase().await;
        let again = world.stage(0, "a", 0, 0..=4).await;
        world.commit().await;
        assert_eq!(world.cause().await, Some(Cause::Commit(SuspendCause::Unproved)));
        let resumed = resume_topic(&world.plain, &source(), &topic(), Resume::default()).await;
        assert_eq!(answer(resumed), (ErrorKind::Suspended, Some("unproved")));

        let state = announce_replay(&world.plain, &source(), &topic(), None)
            .await
            .unwrap();
        assert_eq!(state.suspended, None);
        world.stage(0, "a", 0, 5..=11).await;
        let report = world.commit().await;
        assert!(
            report.dropped.contains(&(again, Judgement::Announced)),
            "{report:?}"
        );
        assert_eq!(world.cause().await, None);
        world.check([rows(0, "a", 0, 10..=11)]);

        // It was wrong: they are wanted back. Once is enough.
        let taken_back = undrop(&world.plain, again, None).await.unwrap();
        assert_eq!((taken_back.dropped, taken_back.epoch.0), (again, 0));
        world.commit().await;
        world.check([rows(0, "a", 0, 0..=4), rows(0, "a", 0, 10..=11)]);
        assert_eq!((world.shelf(Shelf::Pending), world.shelf(Shelf::Dropped)), (0, 1));
        assert_eq!(
            answer(undrop(&world.plain, again, None).await).0,
            ErrorKind::Invalid
        );
    });
}

#[test]
fn replay_answers_no_contradiction() {
    block_on(async {
        let world = World::clean().await;
        world.stage(0, "a", 0, 0..=9).await;
        world.commit().await;
        let other = world.stage(0, "b", 0, 0..=4).await;
        world.commit().await;
        assert_eq!(
            world.cause().await,
            Some(Cause::Commit(SuspendCause::Contradiction))
        );
        let refused = answer(announce_replay(&world.plain, &source(), &topic(), None).await);
        assert_eq!(refused, (ErrorKind::Suspended, Some("contradiction")));
        assert_eq!(world.state().await.replay_until, None);

        // Set aside, it asks nothing any more; released, it asks again.
        quarantine_descriptor(&world.plain, other).await.unwrap();
        assert_eq!(
            (world.shelf(Shelf::Pending), world.shelf(Shelf::Quarantine)),
            (0, 1)
        );
        let state = resume_topic(&world.plain, &source(), &topic(), Resume::default())
            .await
            .unwrap();
        assert_eq!(state.suspended, None);
        release_descriptor(&world.plain, other).await.unwrap();
        assert_eq!(
            (world.shelf(Shelf::Pending), world.shelf(Shelf::Quarantine)),
            (1, 0)
        );
        world.commit().await;
        assert_eq!(
            world.cause().await,
            Some(Cause::Commit(SuspendCause::Contradiction))
        );
        world.check([rows(0, "a", 0, 0..=9)]);
    });
}

#[test]
fn an_old_hole_is_filled_by_replay_or_by_a_backfill() {
    block_on(async {
        for backfill in [false, true] {
            let world = World::clean().await;
            world.stage(0, "a", 0, 0..=4).await;
            world.commit().await;
            world.stage(0, "a", 0, 10..=14).await;
            world.commit().await;
            world.pass(120);
            if backfill {
                world.stage_backfill("a", 0, 5..=9).await;
            } else {
                world.stage(0, "a", 0, 5..=9).await;
                world.commit().await;
                assert_eq!(world.cause().await, Some(Cause::Commit(SuspendCause::OldHole)));
                let resumed = resume_topic(&world.plain, &source(), &topic(), Resume::default()).await;
                assert_eq!(answer(resumed), (ErrorKind::Suspended, Some("old_hole")));
                announce_replay(&world.plain, &source(), &topic(), None)
                    .await
                    .unwrap();
            }
            world.commit().await;
            assert_eq!(world.cause().await, None);
            world.check([rows(0, "a", 0, 0..=14)]);
        }
    });
}

#[test]
fn a_suspended_topic_still_commits_what_is_staged() {
    block_on(async {
        let world = World::clean().await;
        world.stage(0, "a", 0, 0..=4).await;
        suspend_topic(&world.plain, &source(), &topic(), "maintenance")
            .await
            .unwrap();
        world.commit().await;
        assert_eq!(world.cause().await, Some(Cause::Operator));
        world.check([rows(0, "a", 0, 0..=4)]);
        let overriding = Resume {
            override_breaker: true,
            ..Resume::default()
        };
        let state = resume_topic(&world.plain, &source(), &topic(), overriding)
            .await
            .unwrap();
        assert_eq!((state.suspended, state.breaker_override), (None, true));
    });
}

#[test]
fn moved_history_is_restored_or_kept() {
    block_on(async {
        for choice in [HistoryChoice::RestoreMain, HistoryChoice::KeepPresent] {
            let world = World::clean().await;
            world.stage(0, "a", 0, 0..=4).await;
            world.commit().await;
            world.stage(0, "a", 0, 5..=9).await;
            world.commit().await;
            world.roll_back().await;
            world.check([rows(0, "a", 0, 0..=4)]);
            world.stage(0, "a", 0, 10..=12).await;
            world.commit().await;
            assert_eq!(world.cause().await, Some(Cause::Commit(SuspendCause::History)));
            let plain = resume_topic(&world.plain, &source(), &topic(), Resume::default()).await;
            assert_eq!(answer(plain), (ErrorKind::Suspended, Some("history")));

            let resume = Resume {
                history: Some(choice),
                ..Resume::default()
            };
            resume_topic(&world.plain, &source(), &topic(), resume)
                .await
                .unwrap();
            world.commit().await;
            assert_eq!(world.cause().await, None, "{choice:?}");
            match choice {
                HistoryChoice::RestoreMain => world.check([rows(0, "a", 0, 0..=12)]),
                HistoryChoice::KeepPresent => {
                    world.check([rows(0, "a", 0, 0..=4), rows(0, "a", 0, 10..=12)]);
                    // Everything was made uncertain: a backfill of all takes only what is missing.
                    world.stage_backfill("a", 0, 0..=12).await;
                    world.commit().await;
                    world.check([rows(0, "a", 0, 0..=12)]);
                }
            }
        }
    });
}
