use bytes::Bytes;
use frazil_core::{Epoch, ErrorKind, Offset, OffsetRange, Partition};
use frazil_table::plan::SuspendCause;
use frazil_table::{
    AdoptOptions, AdoptProgress, Cause, Life, Resume, Shelf, Unclear, adopt, park, resume_topic,
    suspend_topic,
};
use frazil_tests::simulation::block_on;

use super::parking::Stager;
use super::world::{World, answer, log, rows, source, topic};

const ON_ONE_MACHINE: AdoptOptions = AdoptOptions {
    no_invocation_alive: true,
    into: None,
    unclear: None,
};

async fn progress(world: &World, options: AdoptOptions) -> AdoptProgress {
    let sink = Stager {
        world,
        fails_at: None,
        seen: Default::default(),
    };
    adopt(&world.plain, &source(), &topic(), Some(&sink), options)
        .await
        .unwrap()
}

#[track_caller]
fn assert_done(progress: &AdoptProgress, epoch: i32) {
    match progress {
        AdoptProgress::Done(done) => assert_eq!(done.epoch, Epoch(epoch)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_recreated_topic_gets_a_life_of_its_own() {
    block_on(async {
        let world = World::clean().await;
        world
            .stage_many(0, &[("a", 0, 0..=9), ("a", 1, 0..=2)], false, None)
            .await;
        world.commit().await;
        world.stage(0, "a", 0, 10..=12).await;
        world
            .stage_many(0, &[("b", 0, 0..=4), ("b", 1, 0..=5)], false, None)
            .await;
        world.commit().await;
        assert_eq!(
            world.cause().await,
            Some(Cause::Commit(SuspendCause::Contradiction))
        );
        let range = OffsetRange::new(Offset(5), Offset(7)).unwrap();
        park(
            &world.plain,
            &log(0),
            Bytes::from("b 0 5 7"),
            Some(&[(Partition(0), range)]),
        )
        .await
        .unwrap();

        let waiting = progress(&world, AdoptOptions::default()).await;
        assert!(matches!(waiting, AdoptProgress::Waiting { .. }), "{waiting:?}");
        let resumed = resume_topic(&world.plain, &source(), &topic(), Resume::default()).await;
        assert_eq!(answer(resumed), (ErrorKind::Suspended, Some("adopt")));
        world.commit().await;
        world.check([rows(0, "a", 0, 0..=9), rows(0, "a", 1, 0..=2)]);

        world.pass(16);
        assert_done(&progress(&world, AdoptOptions::default()).await, 1);
        assert_eq!(world.cause().await, None);
        world.commit().await;
        let sink = Stager {
            world: &world,
            fails_at: None,
            seen: Default::default(),
        };
        let drained = frazil_table::drain_parked(&world.plain, &sink, 10).await.unwrap();
        assert_eq!(drained.delivered, 1);
        world.commit().await;
        world.check([
            rows(0, "a", 0, 0..=12),
            rows(0, "a", 1, 0..=2),
            rows(1, "b", 0, 0..=7),
            rows(1, "b", 1, 0..=5),
        ]);
        assert_eq!(
            (world.shelf(Shelf::Pending), world.shelf(Shelf::Quarantine)),
            (0, 0)
        );
        // Said again, it is done already.
        let again = AdoptOptions {
            into: Some(Epoch(1)),
            ..AdoptOptions::default()
        };
        assert_done(&progress(&world, again).await, 1);
    });
}

#[test]
fn equal_first_records_are_asked_about_and_neither_answer_loses_one() {
    block_on(async {
        for life in [Life::Old, Life::New] {
            let world = World::clean().await;
            world.stage(0, "a", 0, 0..=9).await;
            world.commit().await;
            // The new log begins with the same records.
            let first = world.stage(0, "a", 0, 0..=3).await;
            world.commit().await;
            assert_eq!((world.cause().await, world.shelf(Shelf::Dropped)), (None, 1));
            world.stage(0, "b", 0, 4..=6).await;
            world.commit().await;

            let asked = progress(&world, ON_ONE_MACHINE).await;
            let AdoptProgress::Unclear(unclear) = &asked else {
                panic!("{asked:?}")
            };
            assert!(
                matches!(unclear[..], [Unclear::Dropped { id, .. }] if id == first),
                "{unclear:?}"
            );
            assert_eq!(world.cause().await, Some(Cause::Adopt));

            let answered = AdoptOptions {
                unclear: Some(life),
                ..ON_ONE_MACHINE
            };
            assert_done(&progress(&world, answered).await, 1);
            world.commit().await;
            assert_eq!(world.cause().await, None);
            match life {
                Life::Old => {
                    world.check([rows(0, "a", 0, 0..=9), rows(1, "b", 0, 4..=6)]);
                    assert_eq!(world.shelf(Shelf::Dropped), 1);
                }
                Life::New => {
                    world.check([
                        rows(0, "a", 0, 0..=9),
                        rows(1, "a", 0, 0..=3),
                        rows(1, "b", 0, 4..=6),
                    ]);
                    assert_eq!(world.shelf(Shelf::Dropped), 0);
                }
            }
        }
    });
}

#[test]
fn events_parked_before_any_contradiction_are_asked_about() {
    block_on(async {
        for life in [Life::Old, Life::New] {
            let world = World::clean().await;
            world.stage(0, "a", 0, 0..=9).await;
            world.commit().await;
            suspend_topic(&world.plain, &source(), &topic(), "moving to another cluster")
                .await
                .unwrap();
            let tag = if life == Life::Old { "a" } else { "b" };
            let event = Bytes::from(format!("{tag} 0 10 12"));
            park(&world.plain, &log(0), event, None).await.unwrap();

            let asked = progress(&world, ON_ONE_MACHINE).await;
            assert!(
                matches!(&asked, AdoptProgress::Unclear(unclear) if matches!(unclear[..], [Unclear::Parked { .. }])),
                "{asked:?}"
            );
            assert_done(
                &progress(
                    &world,
                    AdoptOptions {
                        unclear: Some(life),
                        ..ON_ONE_MACHINE
                    },
                )
                .await,
                1,
            );
            let sink = Stager {
                world: &world,
                fails_at: None,
                seen: Default::default(),
            };
            frazil_table::drain_parked(&world.plain, &sink, 10).await.unwrap();
            world.commit().await;
            match life {
                Life::Old => world.check([rows(0, "a", 0, 0..=12)]),
                Life::New => world.check([rows(0, "a", 0, 0..=9), rows(1, "b", 0, 10..=12)]),
            }
            assert_eq!(world.parked(), Vec::<String>::new());
        }
    });
}

#[test]
fn what_was_set_aside_stands_in_the_way_until_it_is_decided() {
    block_on(async {
        let world = World::clean().await;
        world.stage(0, "a", 0, 0..=9).await;
        world.commit().await;
        let aside = world.stage(0, "a", 0, 10..=12).await;
        frazil_table::quarantine_descriptor(&world.plain, aside)
            .await
            .unwrap();
        world.stage(0, "b", 0, 0..=4).await;
        let asked = progress(&world, ON_ONE_MACHINE).await;
        assert!(
            matches!(&asked, AdoptProgress::Unclear(unclear)
                if matches!(unclear[..], [Unclear::Quarantined { id, readable: true }] if id == aside)),
            "{asked:?}"
        );
        assert_done(
            &progress(
                &world,
                AdoptOptions {
                    unclear: Some(Life::Old),
                    ..ON_ONE_MACHINE
                },
            )
            .await,
            1,
        );
        world.commit().await;
        world.check([rows(0, "a", 0, 0..=9), rows(1, "b", 0, 0..=4)]);
        // It is kept, and can be taken under the present life.
        assert_eq!(world.shelf(Shelf::Quarantine), 1);
        let released = frazil_table::release_descriptor(&world.plain, aside).await;
        assert_eq!(answer(released).0, ErrorKind::Invalid);
        let taken = frazil_table::undrop(&world.plain, aside, None).await.unwrap();
        assert_eq!(taken.epoch, Epoch(1));
        world.commit().await;
        world.check([
            rows(0, "a", 0, 0..=9),
            rows(1, "b", 0, 0..=4),
            rows(1, "a", 0, 10..=12),
        ]);
    });
}

#[test]
fn an_adoption_can_be_given_up_before_it_sorts() {
    block_on(async {
        let world = World::clean().await;
        world.stage(0, "a", 0, 0..=9).await;
        progress(&world, AdoptOptions::default()).await;
        let abandon = Resume {
            abandon_adoption: true,
            ..Resume::default()
        };
        let state = resume_topic(&world.plain, &source(), &topic(), abandon)
            .await
            .unwrap();
        assert_eq!(
            (state.epoch, state.suspended, state.adoption),
            (Epoch(0), None, None)
        );
        world.commit().await;
        world.check([rows(0, "a", 0, 0..=9)]);
    });
}
