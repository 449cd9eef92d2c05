use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use frazil_core::{Environment, Result};
use frazil_table::{Layout, Warehouse};

use crate::io_failure::io_failure;
use crate::{Database, DirectoryStorage, SqliteCatalog, SqliteStateStore};

/// The file of the catalog and the states, in the warehouse's directory.
pub const DATABASE_FILE: &str = "catalog.db";

/// Opens the warehouse in `directory`, and makes it if there is none. Blocks for some milliseconds.
///
/// `Invalid` when it cannot be one: a file, not writable, a database of something else. `Unavailable` when the disk is
/// full or another process keeps the database locked. `Internal` when the database is damaged.
pub fn open_warehouse(directory: &Path, environment: &Environment) -> Result<Warehouse> {
    let operation = "open the warehouse";
    let is_new = !directory.is_dir();
    fs::create_dir_all(directory).map_err(|error| io_failure(operation, directory, error))?;
    let storage = DirectoryStorage::new(directory, environment)?;
    if is_new {
        // So that a crash does not lose the warehouse as a whole. Best effort: those above may not be ours to open.
        for above in storage.root().ancestors().skip(1) {
            let _ = File::open(above).and_then(|above| above.sync_all());
        }
    }
    storage.clean(environment.now())?;
    let database = Database::open(&storage.root().join(DATABASE_FILE))?;
    Ok(Warehouse {
        layout: Layout::new(storage.location()),
        environment: environment.clone(),
        catalog: Arc::new(SqliteCatalog::new(database.clone())),
        states: Arc::new(SqliteStateStore::new(database)),
        storage: Arc::new(storage),
    })
}

#[cfg(test)]
mod tests;
