use std::sync::Arc;

use bytes::Bytes;
use frazil_core::{Environment, Error, ErrorKind, Result, TableName};
use iceberg::io::FileIO;
use iceberg::spec::{FormatVersion, TableMetadata, TableMetadataRef};

use crate::catalog::{Catalog, Pointer};
use crate::file_io::{file_io, storage_error};
use crate::layout::Layout;
use crate::ledger::{Ledger, MAX_LEDGER_BYTES};
use crate::properties;
use crate::rows::MAX_FILE_BYTES;
use crate::state::StateStore;
use crate::storage::ObjectStorage;

/// Everything that a table needs around it: storage, catalog, state, layout, clock and randomness. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Warehouse {
    /// Where everything lies.
    pub layout: Layout,
    /// The objects.
    pub storage: Arc<dyn ObjectStorage>,
    /// The pointers.
    pub catalog: Arc<dyn Catalog>,
    /// Topic states and leases.
    pub states: Arc<dyn StateStore>,
    /// Time and randomness.
    pub environment: Environment,
}

/// A table as a pointer names it.
#[derive(Debug, Clone)]
pub struct LoadedTable {
    /// Its name.
    pub name: TableName,
    /// The pointer that was read.
    pub pointer: Pointer,
    /// The metadata that the pointer names.
    pub metadata: TableMetadataRef,
}

impl Warehouse {
    /// Iceberg's view of the storage.
    pub fn file_io(&self) -> FileIO {
        file_io(self.storage.clone())
    }

    /// Reads a table's pointer and metadata; `None` when the catalog has no such table.
    pub async fn load(&self, name: &TableName) -> Result<Option<LoadedTable>> {
        let Some(pointer) = self.catalog.load(name).await? else {
            return Ok(None);
        };
        let metadata = TableMetadata::read_from(&self.file_io(), &pointer.metadata_location).await;
        let metadata = metadata.map_err(|error| {
            iceberg_error("read the table's metadata", error)
                .with_context("table", name)
                .with_context("metadata_location", &pointer.metadata_location)
                .with_hint("restore that file, or point the catalog at the last good metadata.json")
        })?;
        if metadata.format_version() != FormatVersion::V2 {
            return Err(Error::new(
                ErrorKind::Invalid,
                "use the table",
                format!(
                    "it has Iceberg format {}, and Frazil writes v2",
                    metadata.format_version()
                ),
            )
            .with_context("table", name)
            .with_hint("Athena reads v2 only; recreate the table as v2, or exclude the topic"));
        }
        Ok(Some(LoadedTable {
            name: name.clone(),
            pointer,
            metadata: Arc::new(metadata),
        }))
    }

    /// Like [`load`](Self::load), for a table that must exist.
    pub async fn load_existing(&self, name: &TableName) -> Result<LoadedTable> {
        self.load(name).await?.ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                "find the table",
                "the catalog has no such table",
            )
            .with_context("table", name)
            .with_hint("`frazil tables` lists what there is")
        })
    }

    /// A data file's bytes; `way_out` is what to do when it is missing.
    pub(crate) async fn data_file(&self, path: &str, way_out: &'static str) -> Result<Bytes> {
        let bytes = self.storage.get(path, MAX_FILE_BYTES as u64).await?;
        bytes.ok_or_else(|| {
            Error::new(ErrorKind::Internal, "read a data file", "the file is missing")
                .with_context("file", path)
                .with_hint(way_out)
        })
    }

    /// Reads the ledger that a table's metadata names.
    pub async fn ledger(&self, table: &LoadedTable) -> Result<Ledger> {
        let properties = table.metadata.properties();
        let (Some(location), Some(checksum)) = (
            properties.get(properties::LEDGER),
            properties.get(properties::LEDGER_SHA256),
        ) else {
            return Err(Error::new(
                ErrorKind::Invalid,
                "read the ledger",
                "the table has none: Frazil did not make it",
            )
            .with_context("table", &table.name));
        };
        let failed = |error: Error| {
            error
                .with_context("table", &table.name)
                .with_context("ledger", location)
        };
        let bytes = self
            .storage
            .get(location, MAX_LEDGER_BYTES)
            .await
            .map_err(failed)?
            .ok_or_else(|| {
                failed(
                    Error::new(ErrorKind::Internal, "read the ledger", "the file is missing").with_hint(
                        "nothing is committed to this table until its ledger is back: restore the file",
                    ),
                )
            })?;
        Ledger::from_json(&bytes, checksum).map_err(failed)
    }
}

/// Turns an iceberg error into ours; a storage error inside says what happened and keeps its kind, since it knows
/// whether to try again.
pub(crate) fn iceberg_error(operation: &'static str, error: iceberg::Error) -> Error {
    let Some(inner) = storage_error(&error) else {
        return Error::new(ErrorKind::Internal, operation, error.message().to_owned()).with_source(error);
    };
    let mut told = Error::new(inner.kind(), operation, inner.message().to_owned());
    for (key, value) in inner.context() {
        told = told.with_context(key, value);
    }
    if let Some(hint) = inner.hint() {
        told = told.with_hint(hint);
    }
    told.with_source(error)
}
