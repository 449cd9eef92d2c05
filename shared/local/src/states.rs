use async_trait::async_trait;
use bytes::Bytes;
use frazil_core::{Error, ErrorKind, Result};
use frazil_table::{StateEntry, StateStore};
use rusqlite::{OptionalExtension, params};

use crate::Database;

/// The most that is read as one document: a topic's state with thousands of partitions is far below it.
pub const MAX_DOCUMENT_BYTES: usize = 64 * 1024 * 1024;

/// Documents in the table `frazil_state` of the catalog's file. A version is a number that grows with each change.
#[derive(Debug, Clone)]
pub struct SqliteStateStore {
    database: Database,
}

impl SqliteStateStore {
    /// Keeps documents in `database`.
    pub fn new(database: Database) -> Self {
        Self { database }
    }
}

const LOAD: &str = "load a state";
const STORE: &str = "store a state";
const LIST: &str = "list states";

#[async_trait]
impl StateStore for SqliteStateStore {
    async fn load(&self, key: &str) -> Result<Option<StateEntry>> {
        let name = key.to_owned();
        let found = self.database.read(LOAD, move |connection| {
            let mut statement =
                connection.prepare("SELECT version, document FROM frazil_state WHERE key = ?1")?;
            statement
                .query_row([name], |row| {
                    let document = row.get_ref(1)?.as_blob()?;
                    let bytes =
                        (document.len() <= MAX_DOCUMENT_BYTES).then(|| Bytes::copy_from_slice(document));
                    Ok((row.get::<_, i64>(0)?, bytes))
                })
                .optional()
        });
        match found.await? {
            None => Ok(None),
            Some((version, Some(bytes))) => Ok(Some(StateEntry {
                bytes,
                version: version.to_string(),
            })),
            Some((_, None)) => Err(Error::new(
                ErrorKind::Internal,
                LOAD,
                format!("it has more than {MAX_DOCUMENT_BYTES} bytes"),
            )
            .with_context("key", key)),
        }
    }

    async fn store(&self, key: &str, bytes: Bytes, expected: Option<&str>) -> Result<()> {
        if bytes.len() > MAX_DOCUMENT_BYTES {
            let reason = format!("{} bytes are more than {MAX_DOCUMENT_BYTES}", bytes.len());
            return Err(Error::new(ErrorKind::Invalid, STORE, reason).with_context("key", key));
        }
        let conflict = || {
            Error::new(ErrorKind::Conflict, STORE, "somebody else changed it meanwhile")
                .with_context("key", key)
        };
        let expected = match expected {
            None => None,
            // Only what we print ourselves is a version of ours.
            Some(text) => match text.parse::<i64>() {
                Ok(version) if version.to_string() == text => Some(version),
                _ => return Err(conflict()),
            },
        };
        let name = key.to_owned();
        let written = self.database.write(STORE, move |transaction| match expected {
            None => transaction.execute(
                "INSERT INTO frazil_state (key, version, document) VALUES (?1, 1, ?2) ON CONFLICT DO NOTHING",
                params![name, &bytes[..]],
            ),
            Some(version) => transaction.execute(
                "UPDATE frazil_state SET version = version + 1, document = ?3 WHERE key = ?1 AND version = ?2",
                params![name, version, &bytes[..]],
            ),
        });
        match written.await {
            Ok(0) => Err(conflict()),
            Ok(_) => Ok(()),
            // For a state, `Unavailable` says already that it may have happened.
            Err(error) if error.kind() == ErrorKind::CommitUnknown => {
                Err(
                    Error::new(ErrorKind::Unavailable, STORE, error.message().to_owned())
                        .with_context("key", key)
                        .with_source(error),
                )
            }
            Err(error) => Err(error),
        }
    }

    async fn keys(&self, prefix: &str) -> Result<Vec<String>> {
        let prefix = prefix.to_owned();
        let sql =
            "SELECT key FROM frazil_state WHERE key >= ?1 AND substr(key, 1, length(?1)) = ?1 ORDER BY key";
        self.database
            .read(LIST, move |connection| {
                connection
                    .prepare(sql)?
                    .query_map([prefix], |row| row.get(0))?
                    .collect()
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn conforms() {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::open(&directory.path().join("catalog.db")).unwrap();
        frazil_table::conformance::state(Arc::new(SqliteStateStore::new(database))).await;
    }
}
