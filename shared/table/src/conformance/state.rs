use std::sync::Arc;

use bytes::Bytes;
use frazil_core::ErrorKind;
use futures::future::join_all;

use super::{Broken, Kept, promise, refused, same};
use crate::{StateEntry, StateStore};

/// Checks every promise of [`StateStore`]. All keys are under `conformance/`, which must be unused.
pub async fn state(store: Arc<dyn StateStore>) {
    let store = store.as_ref();
    promise("a document that was never written is missing", missing(store)).await;
    promise("a document is created only if there is none", creation(store)).await;
    promise("a document changes only from the expected version", change(store)).await;
    promise(
        "a version that was never given out is a conflict",
        foreign_version(store),
    )
    .await;
    promise(
        "of concurrent changes from one version exactly one succeeds",
        race(store),
    )
    .await;
    promise(
        "of concurrent creations exactly one succeeds",
        creation_race(store),
    )
    .await;
    promise("keys are listed by prefix, ascending", keys(store)).await;
    promise("documents are bytes, empty or a megabyte long", contents(store)).await;
}

/// As many as try at the same time.
const RACERS: usize = 8;
/// Enough rounds to meet more than one order of events.
const ROUNDS: usize = 5;

async fn load(store: &dyn StateStore, key: &str) -> Result<StateEntry, Broken> {
    let entry = store.load(key).await?;
    entry.ok_or_else(|| Broken(format!("{key} is missing")))
}

async fn missing(store: &dyn StateStore) -> Kept {
    same("load", store.load("conformance/missing").await?, None)?;
    let change = store
        .store("conformance/missing", Bytes::from_static(b"x"), Some("1"))
        .await;
    refused("a change of it", change, ErrorKind::Conflict)?;
    same(
        "load after a refused change",
        store.load("conformance/missing").await?,
        None,
    )
}

async fn creation(store: &dyn StateStore) -> Kept {
    let key = "conformance/created/topic-1.v2";
    store.store(key, Bytes::from_static(b"first"), None).await?;
    let first = load(store, key).await?;
    same("the document", &first.bytes[..], b"first")?;
    refused(
        "a second creation",
        store.store(key, Bytes::from_static(b"second"), None).await,
        ErrorKind::Conflict,
    )?;
    same(
        "the entry after a refused creation",
        load(store, key).await?,
        first,
    )
}

async fn change(store: &dyn StateStore) -> Kept {
    let key = "conformance/changed";
    store.store(key, Bytes::from_static(b"1"), None).await?;
    let first = load(store, key).await?;
    store
        .store(key, Bytes::from_static(b"2"), Some(&first.version))
        .await?;
    let second = load(store, key).await?;
    same("the document", &second.bytes[..], b"2")?;
    same(
        "the version stays the same after a change",
        second.version == first.version,
        false,
    )?;
    let stale = store
        .store(key, Bytes::from_static(b"3"), Some(&first.version))
        .await;
    refused("a change from a stale version", stale, ErrorKind::Conflict)?;
    same(
        "the entry after a refused change",
        load(store, key).await?,
        second.clone(),
    )?;
    same(
        "the entry when it is loaded again",
        load(store, key).await?,
        second,
    )
}

async fn foreign_version(store: &dyn StateStore) -> Kept {
    let key = "conformance/foreign";
    store.store(key, Bytes::from_static(b"1"), None).await?;
    let entry = load(store, key).await?;
    for version in ["", "0", "-1", "no such version", "99999999999999999999999", " 1"] {
        let change = store.store(key, Bytes::from_static(b"2"), Some(version)).await;
        refused(
            &format!("a change from version `{version}`"),
            change,
            ErrorKind::Conflict,
        )?;
    }
    same("the entry", load(store, key).await?, entry)
}

async fn race(store: &dyn StateStore) -> Kept {
    let key = "conformance/race";
    store.store(key, Bytes::from_static(b"start"), None).await?;
    for round in 0..ROUNDS {
        let version = load(store, key).await?.version;
        let names: Vec<String> = (0..RACERS)
            .map(|racer| format!("round {round} racer {racer}"))
            .collect();
        let tries = names
            .iter()
            .map(|name| store.store(key, Bytes::from(name.clone()), Some(&version)));
        one_winner(store, key, &names, join_all(tries).await).await?;
    }
    Ok(())
}

async fn creation_race(store: &dyn StateStore) -> Kept {
    for round in 0..ROUNDS {
        let key = format!("conformance/creation-race/{round}");
        let names: Vec<String> = (0..RACERS).map(|racer| format!("racer {racer}")).collect();
        let tries = names
            .iter()
            .map(|name| store.store(&key, Bytes::from(name.clone()), None));
        one_winner(store, &key, &names, join_all(tries).await).await?;
    }
    Ok(())
}

async fn one_winner(
    store: &dyn StateStore,
    key: &str,
    names: &[String],
    results: Vec<frazil_core::Result<()>>,
) -> Kept {
    let mut winners = Vec::new();
    for (name, result) in names.iter().zip(results) {
        match result {
            Ok(()) => winners.push(name.as_str()),
            lost => refused(name, lost, ErrorKind::Conflict)?,
        }
    }
    same("the number of winners", winners.len(), 1)?;
    let document = load(store, key).await?.bytes;
    same(
        "the document after the race",
        String::from_utf8_lossy(&document).as_ref(),
        winners[0],
    )
}

async fn keys(store: &dyn StateStore) -> Kept {
    let all = [
        "a-b/x", "a.b/x", "a/x", "a/y", "a_b/x", "a%/x", "aXb/x", "B/x", "b/x.json",
    ];
    for key in all {
        store
            .store(
                &format!("conformance/keys/{key}"),
                Bytes::from_static(b"{}"),
                None,
            )
            .await?;
    }
    // `_` and `%` would match more as SQL patterns, and upper case sorts first as bytes.
    let tables: [(&str, &[&str]); 6] = [
        (
            "",
            &[
                "B/x", "a%/x", "a-b/x", "a.b/x", "a/x", "a/y", "aXb/x", "a_b/x", "b/x.json",
            ],
        ),
        ("a/", &["a/x", "a/y"]),
        ("a_b/", &["a_b/x"]),
        ("a%", &["a%/x"]),
        ("b/x.json", &["b/x.json"]),
        ("c", &[]),
    ];
    for (prefix, expected) in tables {
        let expected: Vec<String> = expected
            .iter()
            .map(|key| format!("conformance/keys/{key}"))
            .collect();
        let seen = store.keys(&format!("conformance/keys/{prefix}")).await?;
        same(&format!("the list under `{prefix}`"), seen, expected)?;
    }
    Ok(())
}

async fn contents(store: &dyn StateStore) -> Kept {
    let megabyte: Vec<u8> = (0..1_048_576u32).map(|at| (at ^ (at >> 8)) as u8).collect();
    for (key, document) in [
        ("conformance/contents/empty", Vec::new()),
        ("conformance/contents/megabyte", megabyte),
        (
            "conformance/contents/text",
            "{\"é\": \"\\u0000\"}".as_bytes().to_vec(),
        ),
    ] {
        let document = Bytes::from(document);
        store.store(key, Bytes::new(), None).await?;
        let version = load(store, key).await?.version;
        store.store(key, document.clone(), Some(&version)).await?;
        same(
            &format!("{key} unchanged"),
            load(store, key).await?.bytes == document,
            true,
        )?;
    }
    Ok(())
}
