use std::thread;

use bytes::Bytes;
use frazil_core::ErrorKind;
use frazil_table::{StateStore, system_environment};

use super::*;

fn open(directory: &Path) -> Result<Warehouse> {
    open_warehouse(directory, &system_environment())
}

#[test]
fn a_warehouse_is_made_and_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/ware house");
    let first = open(&path).unwrap();
    assert_eq!(
        first.layout.warehouse(),
        format!("file://{}", fs::canonicalize(&path).unwrap().display())
    );
    assert_eq!(open(&path).unwrap().layout, first.layout);
    assert!(path.join(DATABASE_FILE).is_file());
}

#[test]
fn a_warehouse_that_is_a_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "x").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = open(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let text = error.to_string();
        assert!(text.contains("a file is where a directory must be"), "{text}");
        assert!(text.contains(&path.display().to_string()), "{text}");
    }
}

/// Opens of one new warehouse, and increments of one state, all at once.
#[test]
fn a_dozen_openers_share_it_and_lose_no_update() {
    const OPENERS: usize = 12;
    const INCREMENTS: usize = 10;
    let directory = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for opener in 0..OPENERS {
            let path = directory.path().join("warehouse");
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                let warehouse = open(&path).unwrap();
                runtime.block_on(async {
                    for at in 0..INCREMENTS {
                        increment(warehouse.states.as_ref()).await;
                        let location = format!("{}/a/{opener}-{at}", warehouse.layout.warehouse());
                        warehouse
                            .storage
                            .put(&location, Bytes::new(), Some("x"))
                            .await
                            .unwrap();
                    }
                });
            });
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let warehouse = open(&directory.path().join("warehouse")).unwrap();
    let (count, objects) = runtime.block_on(async {
        let entry = warehouse.states.load("count").await.unwrap().unwrap();
        let prefix = format!("{}/", warehouse.layout.warehouse());
        (
            entry.bytes,
            frazil_table::list_all(warehouse.storage.as_ref(), &prefix)
                .await
                .unwrap(),
        )
    });
    assert_eq!(count, "120");
    assert_eq!(objects.len(), OPENERS * INCREMENTS, "{objects:?}");
}

async fn increment(states: &dyn StateStore) {
    loop {
        let entry = states.load("count").await.unwrap();
        let count: usize = match &entry {
            Some(entry) => std::str::from_utf8(&entry.bytes).unwrap().parse().unwrap(),
            None => 0,
        };
        let version = entry.as_ref().map(|entry| entry.version.as_str());
        match states
            .store("count", (count + 1).to_string().into(), version)
            .await
        {
            Ok(()) => return,
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
    }
}
