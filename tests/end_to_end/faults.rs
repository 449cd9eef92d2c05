//! Kill it anywhere: every call of ingest and commit goes wrong once in every way, and a rerun leaves exactly what a
//! run without faults leaves (I1, I2, I5, I7).

use std::cell::{Cell, RefCell};

use frazil_core::{Error, Result};
use frazil_tests::model::Record;
use frazil_tests::simulation::Matrix;
use frazil_tests::{Scene, expected_rows, json_record, poison_record};

type Event = Vec<(i32, Vec<Record>)>;

/// The first event makes the table, the second brings a column and a record that cannot be read, the third
/// is the second once more, cut differently.
fn events() -> [Event; 3] {
    let with_column = |offset, note| json_record(offset, &[("id", "7"), ("note", note)]);
    [
        vec![
            (
                0,
                vec![json_record(0, &[("id", "1")]), json_record(1, &[("id", "2")])],
            ),
            (1, vec![json_record(40, &[("id", "3")])]),
        ],
        vec![
            (
                0,
                vec![with_column(2, "new"), poison_record(3), with_column(4, "newer")],
            ),
            (
                1,
                vec![json_record(41, &[("id", "4")]), json_record(43, &[("id", "5")])],
            ),
        ],
        vec![
            (
                0,
                vec![
                    poison_record(3),
                    with_column(4, "newer"),
                    json_record(5, &[("id", "6")]),
                ],
            ),
            (1, vec![json_record(43, &[("id", "5")])]),
        ],
    ]
}

/// A scene, and which of its events were answered with success: those do not come again by themselves.
pub(crate) struct World {
    scene: Scene,
    acknowledged: RefCell<Vec<usize>>,
}

impl World {
    pub(crate) fn new(scene: Scene) -> Self {
        Self {
            scene,
            acknowledged: RefCell::default(),
        }
    }

    async fn deliver(&self, nth: usize) -> Result<()> {
        if self.acknowledged.borrow().contains(&nth) {
            return Ok(());
        }
        let report = self.scene.ingest(&events()[nth]).await?;
        assert_eq!(report.failures().count(), 0);
        self.acknowledged.borrow_mut().push(nth);
        Ok(())
    }
}

pub(crate) async fn ingest_and_commit(world: &World) -> Result<()> {
    world.deliver(0).await?;
    world.scene.commit().await?;
    world.deliver(1).await?;
    world.deliver(2).await?;
    world.scene.commit().await?;
    Ok(())
}

/// What was acknowledged is there, once; and all of it once more changes nothing.
pub(crate) async fn check(world: &World) -> Result<(), String> {
    let scene = world.scene.without_faults();
    check_table(&scene).await?;
    for event in events() {
        scene.ingest(&event).await.map_err(told)?;
    }
    let again = check_table(&scene).await;
    again.map_err(|message| format!("after everything was delivered again: {message}"))
}

async fn check_table(scene: &Scene) -> Result<(), String> {
    // What landed after the last listing is for the next run: no run may be hurt by it.
    let report = scene.commit().await.map_err(told)?;
    equal("suspended topics", &report.suspended, &vec![])?;
    equal("waiting claims", &report.waiting, &vec![])?;

    let [first, second, _] = events();
    let last = vec![(0, vec![json_record(5, &[("id", "6")])])];
    let expected = expected_rows(first.iter().chain(&second).chain(&last));
    equal("number of rows", &expected.len(), &8)?;
    equal("rows", &scene.rows().await?, &expected)?;
    equal("dead letters", &scene.dead_letters().await?, &vec![(0, 3)])?;
    for folder in ["_frazil/pending/", "_frazil/quarantine/", "_frazil/parked/"] {
        equal(folder, &scene.listed(folder).await.map_err(told)?, &vec![])?;
    }
    let ledger = scene.ledger().await.map_err(told)?;
    let next = ledger.logs.iter().flat_map(|log| &log.partitions);
    let next: Vec<(i32, i64)> = next.map(|(of, partition)| (of.0, partition.next.0)).collect();
    equal("next offsets", &next, &vec![(0, 6), (1, 44)])
}

fn told(error: Error) -> String {
    format!("{error:?}")
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: found {found:?}, expected {expected:?}"))
}

#[tokio::test]
async fn in_memory_every_call_goes_wrong_in_every_way() {
    let build = async |plan| World::new(Scene::in_memory_with(plan));
    let coverage = Matrix::new("ingest and commit, in memory")
        .run(build, ingest_and_commit, check)
        .await;
    let coverage = coverage.unwrap_or_else(|message| panic!("{message}"));
    println!("{coverage}");
    assert_eq!(coverage.points, coverage.calls);
    assert!(coverage.calls > 60, "{coverage}");
}

#[tokio::test]
async fn in_a_directory_a_sample_of_calls_goes_wrong_in_every_way() {
    let home = tempfile::tempdir().unwrap();
    let counter = Cell::new(0);
    let build = async |plan| {
        counter.set(counter.get() + 1);
        World::new(Scene::in_directory_with(&home.path().join(counter.get().to_string()), plan).unwrap())
    };
    // A prime, so that the sample does not always meet the same step.
    let matrix = Matrix::new("ingest and commit, in a directory").every(13);
    let coverage = matrix.run(build, ingest_and_commit, check).await;
    let coverage = coverage.unwrap_or_else(|message| panic!("{message}"));
    println!("{coverage}");
    assert!(coverage.points > 6, "{coverage}");
}
