use std::fmt::Debug;

use async_trait::async_trait;
use frazil_core::{NamespaceName, Result, TableName};
use iceberg::spec::TableMetadata;

/// Where the current metadata of each table is, and the atomic swap of it.
///
/// Promises, checked for every implementation by [`conformance::catalog`](crate::conformance):
///
/// - [`swap`](Self::swap) succeeds for at most one caller per [`Pointer`]; `Conflict` means that it did not happen.
/// - A metadata location is used once: neither `create` nor `swap` is given one that was a table's before.
/// - Any other error of `swap` and `create` may hide a success (`CommitUnknown`, `Unavailable`): the caller reads
///   the pointer again before it decides (promise I5). Implementations never retry a swap by themselves.
#[async_trait]
pub trait Catalog: Send + Sync + Debug {
    /// Makes the namespace if it is missing.
    async fn create_namespace(&self, namespace: &NamespaceName) -> Result<()>;

    /// All namespaces, ascending.
    async fn namespaces(&self) -> Result<Vec<NamespaceName>>;

    /// The tables of a namespace, ascending; none when there is no such namespace.
    async fn tables(&self, namespace: &NamespaceName) -> Result<Vec<TableName>>;

    /// The table's pointer; `None` when there is no such table.
    async fn load(&self, table: &TableName) -> Result<Option<Pointer>>;

    /// Adds a table whose first metadata has been written; `Conflict` when the name is taken.
    async fn create(
        &self,
        table: &TableName,
        metadata_location: &str,
        metadata: &TableMetadata,
    ) -> Result<()>;

    /// Moves the table from `expected` to metadata that has been written; `Conflict` when the pointer is not
    /// `expected` any more, or the table is gone.
    async fn swap(
        &self,
        table: &TableName,
        expected: &Pointer,
        metadata_location: &str,
        metadata: &TableMetadata,
    ) -> Result<()>;

    /// Removes the table's entry, never its files. A missing one counts as removed.
    async fn drop_table(&self, table: &TableName) -> Result<()>;
}

/// The catalog's entry for a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// Where the current metadata.json is.
    pub metadata_location: String,
    /// The catalog's own token for “this entry, unchanged” (Glue: VersionId; SQLite: the location itself).
    pub version: String,
}
