use std::rc::Rc;
use std::time::Duration;

use frazil_core::{Error, ErrorKind, TimestampMs};
use frazil_table::plan::SuspendCause;
use frazil_table::{
    AdoptOptions, AdoptProgress, Catalog, Cause, HistoryChoice, Life, ObjectStorage, Resume, TopicState,
    adopt, announce_replay, quarantine_descriptor, resume_topic, suspend_topic,
};
use iceberg::spec::{MAIN_BRANCH, SnapshotReference, SnapshotRetention, TableMetadata};

use super::actors::is_expected;
use super::{Intervention, Stage};

/// A person at the command: does what the schedule says, and answers whatever stops the topic.
pub(super) async fn operate(stage: Rc<Stage>) {
    let environment = stage.backend.warehouse().environment;
    let mut todo = stage.profile.interventions.clone();
    todo.reverse();
    while stage.delivers() {
        let pause_ms = stage.dice.between(1_000, 25_000);
        environment.sleep(Duration::from_millis(pause_ms)).await;
        if stage.dice.chance(0.6)
            && let Some(intervention) = todo.pop()
        {
            stage.note(format!("{intervention:?}"));
            if !intervene(&stage, intervention).await {
                todo.push(intervention);
            }
        } else if stage.dice.chance(0.5) {
            answer(&stage).await;
        }
    }
}

/// Does it; `false`: it is too early.
async fn intervene(stage: &Rc<Stage>, intervention: Intervention) -> bool {
    match intervention {
        Intervention::Suspend => {
            let (source, topic) = (stage.source(), stage.topic());
            let done = suspend_topic(
                &stage.backend.warehouse(),
                &source,
                &topic,
                "the schedule says so",
            )
            .await;
            done.inspect_err(|error| is_expected(stage, error)).is_ok()
        }
        Intervention::Pause(pause) => {
            stage.backend.warehouse().environment.sleep(pause).await;
            true
        }
        Intervention::Reset => {
            stage.group.borrow_mut().reset();
            true
        }
        Intervention::Recreate { repeated, announced } => {
            stage.world.borrow_mut().recreate(repeated);
            stage.watch.borrow_mut().recreated();
            if announced {
                go_on_adopting(stage).await;
            }
            true
        }
        Intervention::RestorePointer { commits } => {
            let table = stage.table();
            let history = stage.backend.catalog.history(&table);
            let Some(earlier) = history.len().checked_sub(commits + 1) else {
                return false;
            };
            if stage.backend.catalog.peek(&table).is_none() {
                return false;
            }
            stage.watch.borrow_mut().history_moves();
            stage.backend.catalog.force(&table, &history[earlier]);
            true
        }
        Intervention::RollBack => roll_back(stage).await,
        Intervention::Drop => {
            let table = stage.table();
            if stage.backend.catalog.peek(&table).is_none() {
                return false;
            }
            drop_table(stage).await
        }
    }
}

/// Another engine drops the table with its dead letters, and everything under its location.
async fn drop_table(stage: &Rc<Stage>) -> bool {
    let (backend, table) = (&stage.backend, stage.table());
    // A call that makes the table and lands after its files are gone would be no fault of anybody's.
    backend.plan.settle().await;
    let pointer = backend.catalog.peek(&table);
    let bytes = pointer.and_then(|pointer| backend.storage.peek(&pointer.metadata_location));
    let Some(Ok(metadata)) = bytes.map(|bytes| serde_json::from_slice::<TableMetadata>(&bytes)) else {
        return false;
    };
    if backend.catalog.drop_table(&table).await.is_err() {
        return false;
    }
    stage.watch.borrow_mut().table_dropped();
    if backend.catalog.drop_table(&backend.letters).await.is_err() {
        return false;
    }
    stage.watch.borrow_mut().table_dropped();
    let files = backend.storage.locations(&format!("{}/", metadata.location()));
    backend.storage.delete(&files).await.is_ok()
}

/// Another engine sets `main` to the parent of its snapshot.
async fn roll_back(stage: &Rc<Stage>) -> bool {
    let (backend, table) = (&stage.backend, stage.table());
    let Some(pointer) = backend.catalog.peek(&table) else {
        return false;
    };
    let Some(bytes) = backend.storage.peek(&pointer.metadata_location) else {
        return false;
    };
    let Ok(metadata) = serde_json::from_slice::<TableMetadata>(&bytes) else {
        return false;
    };
    let parent = metadata
        .current_snapshot()
        .and_then(|now| now.parent_snapshot_id());
    let Some(parent) = parent.filter(|parent| metadata.snapshot_by_id(*parent).is_some()) else {
        return false;
    };
    let retention = SnapshotRetention::Branch {
        min_snapshots_to_keep: None,
        max_snapshot_age_ms: None,
        max_ref_age_ms: None,
    };
    let builder = metadata
        .into_builder(Some(pointer.metadata_location.clone()))
        .set_ref(MAIN_BRANCH, SnapshotReference::new(parent, retention));
    let Ok(rolled_back) = builder.and_then(|builder| builder.build()) else {
        return false;
    };
    let location = format!("memory://w/other-engine/{}.json", stage.dice.next());
    let bytes = at_virtual_time(&rolled_back.metadata, backend.warehouse().environment.now());
    let stored = backend.storage.put(&location, bytes.into(), None).await;
    if stored.is_err() || backend.catalog.peek(&table).as_ref() != Some(&pointer) {
        return false;
    }
    stage.watch.borrow_mut().history_moves();
    backend.catalog.force(&table, &location);
    true
}

/// The metadata as JSON. Its builder asks the machine for the time.
fn at_virtual_time(metadata: &TableMetadata, now: TimestampMs) -> Vec<u8> {
    let mut json = serde_json::to_value(metadata).unwrap_or_default();
    json["last-updated-ms"] = now.0.into();
    let log = json["snapshot-log"].as_array_mut().into_iter().flatten();
    for entry in log.filter(|entry| entry["timestamp-ms"].as_i64() > Some(now.0)) {
        entry["timestamp-ms"] = now.0.into();
    }
    json.to_string().into_bytes()
}

/// Looks why the topic is suspended, if it is, and answers. Says whether there was a question.
pub(super) async fn answer(stage: &Rc<Stage>) -> bool {
    let warehouse = stage.backend.warehouse();
    let (source, topic) = (stage.source(), stage.topic());
    let state = match warehouse.topic_state(&source, &topic).await {
        Ok(state) => state,
        Err(error) => {
            is_expected(stage, &error);
            return true;
        }
    };
    let Some(suspended) = &state.suspended else {
        return false;
    };
    stage.note(format!("answers {:?}", suspended.cause));
    match suspended.cause {
        Cause::Operator | Cause::Poison | Cause::Schema => resume(stage, Resume::default()).await,
        Cause::Breaker => {
            let choice = Resume {
                override_breaker: true,
                ..Resume::default()
            };
            resume(stage, choice).await;
        }
        Cause::TableGone => {
            let choice = Resume {
                forget_missing_tables: true,
                ..Resume::default()
            };
            resume(stage, choice).await;
        }
        Cause::Adopt => go_on_adopting(stage).await,
        Cause::Commit(SuspendCause::Contradiction) => contradicted(stage, &suspended.message).await,
        Cause::Commit(SuspendCause::Unproved | SuspendCause::OldHole) => {
            if stage.world.borrow().life() > 0 && stage.dice.chance(0.5) {
                go_on_adopting(stage).await;
            } else {
                replay(stage).await;
            }
        }
        Cause::Commit(SuspendCause::Identity) => resume(stage, Resume::default()).await,
        Cause::Commit(SuspendCause::History) => history(stage, &state).await,
    }
    true
}

/// Offsets came with other records: there must be another log.
async fn contradicted(stage: &Rc<Stage>, message: &str) {
    // A dead letter that is there twice is compared with neither.
    if stage.world.borrow().life() == 0 && !stage.watch.borrow().takes_anew() {
        return stage.violate(format!(
            "there is one log only, and a commit found another: {message}"
        ));
    }
    go_on_adopting(stage).await;
}

async fn resume(stage: &Rc<Stage>, choice: Resume) {
    let warehouse = stage.backend.warehouse();
    let resumed = resume_topic(&warehouse, &stage.source(), &stage.topic(), choice).await;
    let Err(error) = resumed else {
        return stage.note("resumed");
    };
    is_expected(stage, &error);
    // What is open is not what the state says any more: the hint of the error is what a person goes by.
    match error.code() {
        Some("identity") => set_aside(stage, &error).await,
        Some("history") => answer_history(stage).await,
        Some("contradiction") => contradicted(stage, error.message()).await,
        Some("unproved" | "old_hole") => replay(stage).await,
        _ => {}
    }
}

async fn replay(stage: &Rc<Stage>) {
    stage.watch.borrow_mut().replays();
    let until = TimestampMs(stage.backend.warehouse().environment.now().0 + 3_600_000);
    let warehouse = stage.backend.warehouse();
    let replayed = announce_replay(&warehouse, &stage.source(), &stage.topic(), Some(until)).await;
    let Err(error) = replayed else {
        return stage.note("replay announced");
    };
    is_expected(stage, &error);
    match error.code() {
        Some("contradiction") => contradicted(stage, error.message()).await,
        Some("history") => answer_history(stage).await,
        Some("identity") => set_aside(stage, &error).await,
        _ => {}
    }
}

/// Quarantines the descriptor that an error names.
async fn set_aside(stage: &Rc<Stage>, error: &Error) {
    let context = error.context().iter();
    let mut descriptors = context.filter(|(key, _)| *key == "descriptor");
    if let Some(id) = descriptors.next().and_then(|(_, id)| id.parse().ok()) {
        let moved = quarantine_descriptor(&stage.backend.warehouse(), id).await;
        let _ = moved.inspect_err(|error| stage.note(format!("fails: {error}")));
    }
}

/// Adopts, as far as that comes in one go.
async fn go_on_adopting(stage: &Rc<Stage>) {
    stage.watch.borrow_mut().adopts();
    let warehouse = stage.backend.warehouse();
    let ingest = stage.backend.ingest(0);
    let mut options = AdoptOptions::default();
    for _ in 0..8 {
        let (source, topic) = (stage.source(), stage.topic());
        match adopt(&warehouse, &source, &topic, Some(ingest.as_ref()), options).await {
            Ok(AdoptProgress::Waiting { until }) => {
                let wait_ms = until.0 - warehouse.environment.now().0;
                let wait = Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0) + 1);
                warehouse.environment.sleep(wait).await;
            }
            Ok(AdoptProgress::Unclear(unclear)) => {
                let life = if stage.dice.chance(0.5) {
                    Life::Old
                } else {
                    Life::New
                };
                stage.note(format!("unclear: {unclear:?}, and says {life:?}"));
                options.unclear = Some(life);
            }
            Ok(AdoptProgress::Blocked(blocked)) => {
                stage.note(format!("adopt is blocked: {blocked:?}"));
                return;
            }
            Ok(AdoptProgress::Done(adopted)) => {
                stage.note(format!("adopted: {adopted:?}"));
                return;
            }
            Err(error) => {
                is_expected(stage, &error);
                if error.code() == Some("history") {
                    answer_history(stage).await;
                } else if error.kind() == ErrorKind::Suspended {
                    return;
                }
            }
        }
    }
}

async fn history(stage: &Rc<Stage>, _state: &TopicState) {
    answer_history(stage).await;
    resume(stage, Resume::default()).await;
}

/// Keeps what is there, or restores what was: by the command, or by pointing the catalog at the newest metadata.
async fn answer_history(stage: &Rc<Stage>) {
    let (warehouse, table) = (stage.backend.warehouse(), stage.table());
    let choice = if stage.watch.borrow().keeps() || stage.dice.chance(0.5) {
        stage.watch.borrow_mut().keeps_present();
        HistoryChoice::KeepPresent
    } else {
        HistoryChoice::RestoreMain
    };
    stage.note(format!("{choice:?}"));
    match frazil_table::restore_history(&warehouse, &table, choice).await {
        Ok(_) => {}
        Err(error) => {
            is_expected(stage, &error);
            // The metadata itself fell back: the way out is the catalog.
            if error.kind() == ErrorKind::Suspended && choice == HistoryChoice::RestoreMain {
                stage.watch.borrow_mut().keeps_present();
            }
        }
    }
}
