use std::collections::HashSet;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use frazil_core::{Error, ErrorKind, Result};
use rusqlite::ffi::ErrorCode;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::blocking::blocking;
use crate::io_failure::io_failure;

/// The SQLite file of a warehouse: PyIceberg's tables, and ours beside them.
///
/// - Each call opens the file anew, so that no call can go to a file that somebody has replaced meanwhile; it takes
///   some hundred microseconds.
/// - The rollback journal, not a write-ahead log: the file alone is the catalog whenever nobody writes (copy it, open
///   it with any version), and no version of SQLite that another process brings can meet a bug in sharing the log.
/// - `synchronous=EXTRA`: a commit is on the disk when it is answered, with the removal of the journal.
#[derive(Debug, Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    busy_timeout: Duration,
    has_views: bool,
}

/// How long to wait for other processes. A transaction of ours takes milliseconds; a dozen processes queue up.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// As PyIceberg 0.12 makes them, which is version 1 of Iceberg's JDBC catalog; and our own.
const TABLES: [(&str, &str); 3] = [
    (
        "iceberg_tables",
        "CREATE TABLE IF NOT EXISTS iceberg_tables (
            catalog_name VARCHAR(255) NOT NULL,
            table_namespace VARCHAR(255) NOT NULL,
            table_name VARCHAR(255) NOT NULL,
            metadata_location VARCHAR(1000),
            previous_metadata_location VARCHAR(1000),
            iceberg_type VARCHAR(5),
            PRIMARY KEY (catalog_name, table_namespace, table_name)
        )",
    ),
    (
        "iceberg_namespace_properties",
        "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
            catalog_name VARCHAR(255) NOT NULL,
            namespace VARCHAR(255) NOT NULL,
            property_key VARCHAR(255) NOT NULL,
            property_value VARCHAR(1000) NOT NULL,
            PRIMARY KEY (catalog_name, namespace, property_key)
        )",
    ),
    (
        "frazil_state",
        "CREATE TABLE IF NOT EXISTS frazil_state (
            key TEXT NOT NULL PRIMARY KEY,
            version INTEGER NOT NULL,
            document BLOB NOT NULL
        )",
    ),
];

/// The columns that we use; `iceberg_type` came with version 1.
const COLUMNS: [(&str, &[&str]); 3] = [
    (
        "iceberg_tables",
        &[
            "catalog_name",
            "table_namespace",
            "table_name",
            "metadata_location",
            "previous_metadata_location",
        ],
    ),
    (
        "iceberg_namespace_properties",
        &["catalog_name", "namespace", "property_key", "property_value"],
    ),
    ("frazil_state", &["key", "version", "document"]),
];

const OPEN: &str = "open the catalog's database";

impl Database {
    /// Opens the file and makes it, or the tables that it lacks. A database of something else is `Invalid`.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, BUSY_TIMEOUT)
    }

    pub(crate) fn open_with(path: &Path, busy_timeout: Duration) -> Result<Self> {
        let connection = connect(path, busy_timeout, OpenFlags::SQLITE_OPEN_CREATE)
            .map_err(|error| failure(OPEN, path, error))?;
        let has_views = prepare(connection, path)?;
        let inner = Inner {
            path: path.to_owned(),
            busy_timeout,
            has_views,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Whether `iceberg_tables` holds views too, which only the column `iceberg_type` can tell.
    pub(crate) fn has_views(&self) -> bool {
        self.inner.has_views
    }

    pub(crate) async fn read<T, F>(&self, operation: &'static str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let inner = self.inner.clone();
        blocking(operation, move || {
            connect(&inner.path, inner.busy_timeout, OpenFlags::empty())
                .and_then(|connection| work(&connection))
                .map_err(|error| failure(operation, &inner.path, error))
        })
        .await
    }

    /// Runs `work` in a transaction that holds the write lock from its start. `CommitUnknown` when the commit failed
    /// in a way that may hide a success; after any other error nothing has changed.
    pub(crate) async fn write<T, F>(&self, operation: &'static str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let inner = self.inner.clone();
        blocking(operation, move || {
            let failed = |error| failure(operation, &inner.path, error);
            let mut connection =
                connect(&inner.path, inner.busy_timeout, OpenFlags::empty()).map_err(failed)?;
            let transaction = connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(failed)?;
            let value = work(&transaction).map_err(failed)?;
            transaction
                .commit()
                .map_err(|error| commit_failure(operation, &inner.path, error))?;
            Ok(value)
        })
        .await
    }
}

fn connect(path: &Path, busy_timeout: Duration, create: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | create;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(busy_timeout)?;
    connection.pragma_update(None, "synchronous", "EXTRA")?;
    Ok(connection)
}

/// Makes what is missing and answers whether `iceberg_tables` has the column of version 1.
fn prepare(mut connection: Connection, path: &Path) -> Result<bool> {
    let failed = |error| failure(OPEN, path, error);
    let foreign = |reason: String| {
        Error::new(ErrorKind::Invalid, OPEN, reason)
            .with_context("path", path.display())
            .with_hint("choose another warehouse, or move that file away if nobody needs it")
    };
    let existing =
        names(&connection, "SELECT name FROM sqlite_schema WHERE type = 'table'").map_err(failed)?;
    if TABLES.iter().any(|(table, _)| !existing.contains(*table)) {
        if !existing.is_empty() && !existing.contains("iceberg_tables") {
            let mut others: Vec<&str> = existing.iter().map(String::as_str).collect();
            others.sort_unstable();
            others.truncate(5);
            return Err(foreign(format!(
                "it is a database of something else, with tables {}",
                others.join(", ")
            )));
        }
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        for (_, sql) in TABLES {
            transaction.execute_batch(sql).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
    }
    let mut has_views = false;
    for (table, needed) in COLUMNS {
        let columns = names(
            &connection,
            &format!("SELECT name FROM pragma_table_info('{table}')"),
        )
        .map_err(failed)?;
        if let Some(missing) = needed.iter().find(|column| !columns.contains(**column)) {
            return Err(foreign(format!("its table {table} has no column {missing}")));
        }
        has_views |= columns.contains("iceberg_type");
    }
    Ok(has_views)
}

fn names(connection: &Connection, sql: &str) -> rusqlite::Result<HashSet<String>> {
    connection
        .prepare(sql)?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Says what a SQLite error means for the caller, and the way out.
fn failure(operation: &'static str, path: &Path, error: rusqlite::Error) -> Error {
    let (kind, reason, hint) = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed) => (
            ErrorKind::Unavailable,
            "another process keeps the database locked".to_owned(),
            "find it with `lsof` or `fuser`, and end its transaction",
        ),
        Some(ErrorCode::DiskFull) => (
            ErrorKind::Unavailable,
            "the disk is full".to_owned(),
            "free some space; nothing has changed",
        ),
        Some(ErrorCode::CannotOpen) => match OpenOptions::new().read(true).write(true).open(path) {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => (
                ErrorKind::Invalid,
                "the file is gone".to_owned(),
                "restore it: without it the warehouse's tables cannot be found",
            ),
            Err(cause) => return io_failure(operation, path, cause),
            // The file is fine: the journal beside it cannot be made, or there are too many open files.
            Ok(_) => (
                ErrorKind::Unavailable,
                error.to_string(),
                "give this user write access to the directory, and check the limit of open files",
            ),
        },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => (
            ErrorKind::Invalid,
            "the database is read-only".to_owned(),
            "give this user write access to the file and its directory",
        ),
        Some(ErrorCode::NotADatabase) => (
            ErrorKind::Invalid,
            "the file is not a SQLite database".to_owned(),
            "choose another warehouse, or restore the file from a backup",
        ),
        Some(ErrorCode::DatabaseCorrupt) => (
            ErrorKind::Internal,
            "the database is damaged".to_owned(),
            "keep the file, and restore a backup or repair it with `sqlite3 FILE .recover`",
        ),
        Some(ErrorCode::SystemIoFailure) => (
            ErrorKind::Unavailable,
            format!("reading or writing it failed: {error}"),
            "check the disk and the system's log",
        ),
        _ => (
            ErrorKind::Internal,
            error.to_string(),
            "the database may have been changed by another program",
        ),
    };
    Error::new(kind, operation, reason)
        .with_context("path", path.display())
        .with_hint(hint)
        .with_source(error)
}

/// A commit that was refused for a lock has been rolled back. After any other failure nobody knows: the journal may
/// or may not be gone.
fn commit_failure(operation: &'static str, path: &Path, error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy) => failure(operation, path, error),
        _ => Error::new(
            ErrorKind::CommitUnknown,
            operation,
            format!("its commit failed: {error}"),
        )
        .with_context("path", path.display())
        .with_source(error),
    }
}

#[cfg(test)]
mod tests;
