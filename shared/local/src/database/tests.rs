use std::fs;

use tempfile::TempDir;

use super::*;

fn open(directory: &TempDir) -> Result<Database> {
    Database::open_with(&directory.path().join("catalog.db"), Duration::from_millis(50))
}

/// Opens a file with this content and answers the error.
fn refused(content: &[u8]) -> Error {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("catalog.db");
    fs::write(&path, content).unwrap();
    let error = open(&directory).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), content, "the file is left as it was");
    error
}

fn database_with(sql: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.db");
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    fs::read(path).unwrap()
}

#[test]
fn a_file_of_something_else_is_refused() {
    let error = refused(
        b"# Notes\n\nThis is a text of more than one hundred bytes, so that it cannot be taken for \
                          an empty database, however short its header is.",
    );
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Invalid, "the file is not a SQLite database")
    );
    for (sql, reason) in [
        (
            "CREATE TABLE moz_places (id); CREATE TABLE a (id)",
            "it is a database of something else, with tables a, moz_places",
        ),
        (
            "CREATE TABLE iceberg_tables (id); CREATE TABLE iceberg_namespace_properties (id);
             CREATE TABLE frazil_state (key)",
            "its table iceberg_tables has no column catalog_name",
        ),
    ] {
        let error = refused(&database_with(sql));
        assert_eq!((error.kind(), error.message()), (ErrorKind::Invalid, reason));
        assert!(error.to_string().contains("catalog.db"), "{error}");
    }
}

#[tokio::test]
async fn an_empty_file_becomes_a_database() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("catalog.db"), b"").unwrap();
    assert!(open(&directory).unwrap().has_views());
    assert!(
        open(&directory).unwrap().has_views(),
        "and is one when opened again"
    );
}

#[tokio::test]
async fn damage_is_told_and_no_byte_of_it_panics() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("catalog.db");
    open(&directory).unwrap();
    let fill = "INSERT INTO frazil_state VALUES ('a', 1, zeroblob(20000)), ('b', 1, x'00')";
    Connection::open(&path).unwrap().execute_batch(fill).unwrap();
    let whole = fs::read(&path).unwrap();
    let mut told = HashSet::new();
    // Each page zeroed, cut after each page, and single bytes of the headers changed.
    let zeroed = (0..whole.len() / 4096).map(|page| {
        let mut bytes = whole.clone();
        bytes[page * 4096..(page + 1) * 4096].fill(0);
        bytes
    });
    let cut = (1..whole.len() / 4096).map(|page| whole[..page * 4096 + 100].to_vec());
    let changed = (0..300).map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xa5;
        bytes
    });
    for bytes in zeroed.chain(cut).chain(changed) {
        fs::write(&path, bytes).unwrap();
        let read = match open(&directory) {
            Ok(database) => database
                .read("read", |connection| {
                    connection.query_row("SELECT sum(length(document)) FROM frazil_state", [], |row| {
                        row.get::<_, i64>(0)
                    })
                })
                .await
                .map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = read {
            told.insert((error.kind(), error.message().to_owned()));
        }
    }
    for (kind, reason) in [
        (ErrorKind::Internal, "the database is damaged"),
        (ErrorKind::Invalid, "the file is not a SQLite database"),
    ] {
        assert!(told.contains(&(kind, reason.to_owned())), "{told:?}");
    }
}

#[tokio::test]
async fn a_lock_that_stays_is_unavailable_and_nothing_has_changed() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory).unwrap();
    let other = Connection::open(directory.path().join("catalog.db")).unwrap();
    let insert = || {
        database.write("write", |transaction| {
            transaction.execute("INSERT INTO frazil_state VALUES ('a', 1, x'00')", [])
        })
    };
    // A writer keeps us from beginning, a reader keeps us from committing.
    for (lock, also) in [("BEGIN EXCLUSIVE", ""), ("BEGIN", "SELECT * FROM frazil_state")] {
        other.execute_batch(lock).unwrap();
        if !also.is_empty() {
            other.prepare(also).unwrap().query([]).unwrap().next().unwrap();
        }
        let error = insert().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{lock}");
        assert_eq!(
            error.message(),
            "another process keeps the database locked",
            "{lock}"
        );
        other.execute_batch("ROLLBACK").unwrap();
        let count = "SELECT count(*) FROM frazil_state";
        assert_eq!(
            other.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap(),
            0,
            "{lock}"
        );
    }
    assert_eq!(insert().await.unwrap(), 1);
}

#[tokio::test]
async fn a_file_that_goes_away_is_not_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory).unwrap();
    fs::remove_file(directory.path().join("catalog.db")).unwrap();
    let error = database.read("read", |_| Ok(())).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Invalid, "the file is gone")
    );
    assert!(!directory.path().join("catalog.db").exists());
}

#[test]
fn a_directory_in_its_place_is_told() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("catalog.db")).unwrap();
    let error = open(&directory).unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Invalid, "a directory is where a file must be")
    );
}

#[test]
fn each_failure_says_what_to_do() {
    let path = tempfile::NamedTempFile::new().unwrap();
    // SQLite's result codes; a failed commit is unknown unless it was refused for a lock.
    for (code, kind, committing) in [
        (5, ErrorKind::Unavailable, ErrorKind::Unavailable),
        (6, ErrorKind::Unavailable, ErrorKind::CommitUnknown),
        (8, ErrorKind::Invalid, ErrorKind::CommitUnknown),
        (10, ErrorKind::Unavailable, ErrorKind::CommitUnknown),
        (11, ErrorKind::Internal, ErrorKind::CommitUnknown),
        (13, ErrorKind::Unavailable, ErrorKind::CommitUnknown),
        (14, ErrorKind::Unavailable, ErrorKind::CommitUnknown),
        (26, ErrorKind::Invalid, ErrorKind::CommitUnknown),
        (1, ErrorKind::Internal, ErrorKind::CommitUnknown),
    ] {
        let error = || rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        assert_eq!(failure("read", path.path(), error()).kind(), kind, "{code}");
        assert_eq!(
            commit_failure("write", path.path(), error()).kind(),
            committing,
            "{code}"
        );
    }
}
