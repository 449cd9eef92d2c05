use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;
use frazil_core::Result;

/// Small documents under a key, changed by compare-and-set: topic states and leases.
///
/// On S3 this is conditional writes; on one machine it is the SQLite file, since a rename is no compare-and-set.
/// Checked for every implementation by [`conformance::state`](crate::conformance).
#[async_trait]
pub trait StateStore: Send + Sync + Debug {
    /// The document and its version; `None` when there is none.
    async fn load(&self, key: &str) -> Result<Option<StateEntry>>;

    /// Writes the document if its version is still `expected` (`None`: if there is none); else `Conflict`.
    /// `Unavailable` may hide a success: load again before deciding.
    async fn store(&self, key: &str, bytes: Bytes, expected: Option<&str>) -> Result<()>;

    /// All keys that start with `prefix`, ascending.
    async fn keys(&self, prefix: &str) -> Result<Vec<String>>;
}

/// A document and the version to name when it is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateEntry {
    /// The document.
    pub bytes: Bytes,
    /// Its version.
    pub version: String,
}
