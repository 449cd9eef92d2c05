use bytes::Bytes;
use frazil_core::{Epoch, Error, ErrorKind, Result};
use frazil_table::{
    AdoptOptions, AdoptProgress, CommitSettings, HistoryChoice, Life, Resume, Shelf, adopt, announce_replay,
    commit_table, drain_parked, park, resume_topic, undrop,
};
use frazil_tests::simulation::{Coverage, Matrix, block_on};

use super::parking::Stager;
use super::world::{Row, World, log, rows, source, topic};

fn same(world: &World, expected: &[Vec<Row>]) -> Result<(), String> {
    let mut expected: Vec<Row> = expected.iter().flatten().copied().collect();
    expected.sort_unstable();
    let seen = world.seen();
    if seen == expected {
        Ok(())
    } else {
        Err(format!("seen {seen:?}, expected {expected:?}"))
    }
}

#[test]
fn an_adoption_can_stop_anywhere() {
    let covered: std::result::Result<Coverage, String> = block_on(Matrix::new("adopt").run(
        async |plan| {
            let world = World::new(plan).await;
            world
                .stage_many(0, &[("a", 0, 0..=9), ("a", 1, 0..=2)], false, None)
                .await;
            world.commit().await;
            world.stage(0, "a", 1, 0..=1).await;
            world.commit().await;
            world.stage(0, "a", 0, 10..=12).await;
            world.stage(0, "b", 1, 2..=3).await;
            world.stage(0, "b", 0, 0..=4).await;
            world.commit().await;
            world.pass(1);
            park(&world.plain, &log(0), Bytes::from("b 0 5 7"), None)
                .await
                .unwrap();
            world
        },
        async |world| {
            let options = AdoptOptions {
                no_invocation_alive: true,
                into: Some(Epoch(1)),
                unclear: Some(Life::New),
            };
            match adopt(&world.faulty, &source(), &topic(), None, options).await? {
                AdoptProgress::Done(_) => {}
                other => return Err(Error::new(ErrorKind::Internal, "adopt", format!("{other:?}"))),
            }
            commit_table(&world.faulty, &world.table, &CommitSettings::default()).await?;
            let sink = Stager {
                world,
                fails_at: None,
                seen: Default::default(),
            };
            let drained = drain_parked(&world.faulty, &sink, 10).await?;
            if let Some((_, _, error)) = drained.stopped.into_iter().next() {
                return Err(error);
            }
            commit_table(&world.faulty, &world.table, &CommitSettings::default())
                .await
                .map(drop)
        },
        async |world| {
            let (parked, pending, aside) = (
                world.parked(),
                world.shelf(Shelf::Pending),
                world.shelf(Shelf::Quarantine),
            );
            if !parked.is_empty() || pending + aside > 0 || world.cause().await.is_some() {
                return Err(format!(
                    "left: {parked:?}, {pending} pending, {aside} in quarantine"
                ));
            }
            same(
                world,
                &[
                    rows(0, "a", 0, 0..=12),
                    rows(0, "a", 1, 0..=2),
                    rows(1, "a", 1, 0..=1),
                    rows(1, "b", 1, 2..=3),
                    rows(1, "b", 0, 0..=7),
                ],
            )
        },
    ));
    let covered = covered.unwrap_or_else(|message| panic!("{message}"));
    println!("{covered}");
    assert!(covered.points > 60, "{covered}");
}

#[test]
fn taking_back_a_drop_can_stop_anywhere() {
    let covered = block_on(Matrix::new("undrop").run(
        async |plan| {
            let world = World::new(plan).await;
            world.stage(0, "a", 0, 0..=9).await;
            world.commit().await;
            world.erase().await;
            announce_replay(&world.plain, &source(), &topic(), None)
                .await
                .unwrap();
            let id = world.stage(0, "a", 0, 0..=4).await;
            world.commit().await;
            (world, id)
        },
        async |(world, id)| {
            match undrop(&world.faulty, *id, None).await {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Invalid => {} // done already
                Err(error) => return Err(error),
            }
            commit_table(&world.faulty, &world.table, &CommitSettings::default())
                .await
                .map(drop)
        },
        async |(world, _)| same(world, &[rows(0, "a", 0, 0..=4)]),
    ));
    println!("{}", covered.unwrap_or_else(|message| panic!("{message}")));
}

#[test]
fn a_choice_about_history_can_stop_anywhere() {
    for choice in [HistoryChoice::RestoreMain, HistoryChoice::KeepPresent] {
        let covered = block_on(Matrix::new("history").run(
            async |plan| {
                let world = World::new(plan).await;
                world.stage(0, "a", 0, 0..=4).await;
                world.commit().await;
                world.stage(0, "a", 0, 5..=9).await;
                world.commit().await;
                world.roll_back().await;
                world.stage(0, "a", 0, 10..=12).await;
                world.commit().await;
                world
            },
            async |world| {
                let resume = Resume {
                    history: Some(choice),
                    ..Resume::default()
                };
                resume_topic(&world.faulty, &source(), &topic(), resume).await?;
                commit_table(&world.faulty, &world.table, &CommitSettings::default())
                    .await
                    .map(drop)
            },
            async |world| match choice {
                HistoryChoice::RestoreMain => same(world, &[rows(0, "a", 0, 0..=12)]),
                HistoryChoice::KeepPresent => {
                    same(world, &[rows(0, "a", 0, 0..=4), rows(0, "a", 0, 10..=12)])
                }
            },
        ));
        println!("{}", covered.unwrap_or_else(|message| panic!("{message}")));
    }
}
