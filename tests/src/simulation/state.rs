use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use frazil_core::{Error, ErrorKind, Result};
use frazil_table::{StateEntry, StateStore};

use super::{Pace, lock};

/// Small documents with versions. Clones share them.
#[derive(Debug, Clone)]
pub struct MemoryStateStore {
    documents: Arc<Mutex<Documents>>,
    pace: Pace,
}

#[derive(Debug, Default)]
struct Documents {
    entries: BTreeMap<String, StateEntry>,
    changes: u64,
}

impl MemoryStateStore {
    /// An empty store.
    pub fn new(pace: Pace) -> Self {
        Self {
            documents: Arc::default(),
            pace,
        }
    }

    /// The document, at once: for checks from outside.
    pub fn peek(&self, key: &str) -> Option<Bytes> {
        lock(&self.documents)
            .entries
            .get(key)
            .map(|entry| entry.bytes.clone())
    }

    /// Grows with every change of a document.
    pub fn changes(&self) -> u64 {
        lock(&self.documents).changes
    }
}

#[async_trait]
impl StateStore for MemoryStateStore {
    async fn load(&self, key: &str) -> Result<Option<StateEntry>> {
        self.pace.turn().await;
        Ok(lock(&self.documents).entries.get(key).cloned())
    }

    async fn store(&self, key: &str, bytes: Bytes, expected: Option<&str>) -> Result<()> {
        self.pace.turn().await;
        let mut documents = lock(&self.documents);
        let current = documents.entries.get(key).map(|entry| entry.version.as_str());
        if current != expected {
            return Err(
                Error::new(ErrorKind::Conflict, "store a state", "somebody else changed it")
                    .with_context("key", key),
            );
        }
        documents.changes += 1;
        let version = format!("v{}", documents.changes);
        documents
            .entries
            .insert(key.to_owned(), StateEntry { bytes, version });
        Ok(())
    }

    async fn keys(&self, prefix: &str) -> Result<Vec<String>> {
        self.pace.turn().await;
        let documents = lock(&self.documents);
        Ok(documents
            .entries
            .keys()
            .filter(|key| key.starts_with(prefix))
            .cloned()
            .collect())
    }
}
