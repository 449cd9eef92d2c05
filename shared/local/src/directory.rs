mod listing;
mod root;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use frazil_core::{Environment, Error, ErrorKind, Result, TimestampMs};
use frazil_table::{MAX_ATTRIBUTES_BYTES, ObjectHead, ObjectStorage, Page, check_attributes};

use crate::blocking::blocking;
use crate::io_failure::io_failure;
use root::{Root, TEMPORARIES};

/// A directory as storage: the object `file:///data/warehouse/a/b` is the file `/data/warehouse/a/b`, byte for byte
/// and character for character, so that every engine opens it under the same name.
///
/// - An object is written under `_frazil/tmp/`, synced, and renamed into place; then its directory is synced. What a
///   crash leaves in `_frazil/tmp/` is removed by [`clean`](Self::clean).
/// - Attributes are in a file `.NAME.attributes` beside the object, written before it and deleted after it. It is
///   never listed; a crash in between leaves it, and nobody sees it.
/// - A listing reads whole directories: O(entries of the largest one) memory, and each page reads the directories on
///   its way again.
/// - Directories are never removed, so that nobody loses one in the middle of a put.
/// - A file cannot be an object and a folder: after `a/b` there can be no object `a`.
#[derive(Debug, Clone)]
pub struct DirectoryStorage {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    root: Root,
    /// Makes names in `_frazil/tmp/` this process's own.
    token: u64,
    counter: AtomicU64,
    /// Directories that are known to survive a crash.
    durable: Mutex<HashSet<PathBuf>>,
}

/// How old a file in `_frazil/tmp/` is when its writer must be gone: a put takes seconds.
const TEMPORARY_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Enough for the directories of a process's lifetime; more are synced again.
const MAX_DURABLE: usize = 10_000;

const OPEN: &str = "open the warehouse's directory";
const PUT: &str = "write an object";
const GET: &str = "read an object";
const LIST: &str = "list objects";
const DELETE: &str = "delete an object";

impl DirectoryStorage {
    /// Uses an existing directory. Symbolic links on the way to it are resolved: its location is the real one.
    pub fn new(root: &Path, environment: &Environment) -> Result<Self> {
        let inner = Inner {
            root: Root::new(root)?,
            token: environment.next_u64(),
            counter: AtomicU64::new(0),
            durable: Mutex::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// The directory's location, such as `file:///data/warehouse`.
    pub fn location(&self) -> &str {
        self.inner.root.location()
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        self.inner.root.path()
    }

    /// Removes what crashed processes left behind more than a day ago. Blocks.
    pub fn clean(&self, now: TimestampMs) -> Result<()> {
        let directory = self.root().join(TEMPORARIES);
        let Some(entries) =
            found(fs::read_dir(&directory)).map_err(|error| io_failure(OPEN, &directory, error))?
        else {
            return Ok(());
        };
        for entry in entries {
            let entry = entry.map_err(|error| io_failure(OPEN, &directory, error))?;
            let failed = |error| io_failure(OPEN, &entry.path(), error);
            let Some(metadata) = found(entry.metadata()).map_err(failed)? else {
                continue;
            };
            if metadata.is_file() && now.since(modified(&metadata)) > TEMPORARY_AGE {
                found(fs::remove_file(entry.path())).map_err(failed)?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl ObjectStorage for DirectoryStorage {
    async fn put(&self, location: &str, bytes: Bytes, attributes: Option<&str>) -> Result<()> {
        check_attributes(attributes)?;
        let path = self.inner.root.resolve(PUT, location)?;
        let (inner, attributes) = (self.inner.clone(), attributes.map(str::to_owned));
        blocking(PUT, move || inner.put(&path, &bytes, attributes.as_deref())).await
    }

    async fn get(&self, location: &str, limit_bytes: u64) -> Result<Option<Bytes>> {
        let path = self.inner.root.resolve(GET, location)?;
        blocking(GET, move || {
            let read = || -> io::Result<Result<Bytes, u64>> {
                let (file, size) = open_object(&path)?;
                if size > limit_bytes {
                    return Ok(Err(size));
                }
                Ok(Ok(read_exactly(file, size)?.into()))
            };
            match found(read()).map_err(|error| io_failure(GET, &path, error))? {
                None => Ok(None),
                Some(Ok(bytes)) => Ok(Some(bytes)),
                Some(Err(size)) => {
                    let reason = format!("it has {size} bytes, more than the limit of {limit_bytes}");
                    Err(Error::new(ErrorKind::Internal, GET, reason).with_context("path", path.display()))
                }
            }
        })
        .await
    }

    async fn get_range(&self, location: &str, start: u64, length: u64) -> Result<Option<Bytes>> {
        let path = self.inner.root.resolve(GET, location)?;
        blocking(GET, move || {
            let read = || -> io::Result<Bytes> {
                let (mut file, size) = open_object(&path)?;
                let start = start.min(size);
                file.seek(SeekFrom::Start(start))?;
                Ok(read_exactly(file, length.min(size - start))?.into())
            };
            found(read()).map_err(|error| io_failure(GET, &path, error))
        })
        .await
    }

    async fn head(&self, location: &str) -> Result<Option<ObjectHead>> {
        let path = self.inner.root.resolve(GET, location)?;
        blocking(GET, move || {
            let failed = |error| io_failure(GET, &path, error);
            let Some(metadata) = found(fs::metadata(&path))
                .map_err(failed)?
                .filter(Metadata::is_file)
            else {
                return Ok(None);
            };
            Ok(Some(ObjectHead {
                size_bytes: metadata.len(),
                modified: modified(&metadata),
                attributes: read_attributes(&path)?,
            }))
        })
        .await
    }

    async fn list_page(&self, prefix: &str, after: Option<&str>) -> Result<Page> {
        let folder = self.inner.root.resolve_prefix(LIST, prefix)?;
        let (inner, after) = (self.inner.clone(), after.map(str::to_owned));
        blocking(LIST, move || {
            listing::page(&inner.root, &folder, after.as_deref())
        })
        .await
    }

    async fn delete(&self, locations: &[String]) -> Result<()> {
        let resolved = locations
            .iter()
            .map(|location| self.inner.root.resolve(DELETE, location));
        let paths: Vec<PathBuf> = resolved.collect::<Result<_>>()?;
        blocking(DELETE, move || {
            for path in paths {
                for path in [path.clone(), root::attributes_path(&path)] {
                    match found(fs::remove_file(&path)) {
                        Ok(_) => {}
                        // A folder is no object, so there is nothing to delete.
                        Err(_) if path.is_dir() => {}
                        Err(error) => return Err(io_failure(DELETE, &path, error)),
                    }
                }
            }
            Ok(())
        })
        .await
    }
}

impl Inner {
    fn put(&self, path: &Path, bytes: &[u8], attributes: Option<&str>) -> Result<()> {
        match self.try_put(path, bytes, attributes) {
            // Somebody removed a directory that we knew: make it again, once.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.durable().clear();
                self.try_put(path, bytes, attributes)
            }
            result => result,
        }
        .map_err(|error| io_failure(PUT, path, error))
    }

    fn try_put(&self, path: &Path, bytes: &[u8], attributes: Option<&str>) -> io::Result<()> {
        let directory = path.parent().unwrap_or(self.root.path());
        self.make_directory(directory)?;
        let object = self.write_temporary(bytes)?;
        let beside = root::attributes_path(path);
        match attributes {
            Some(text) => {
                self.write_temporary(text.as_bytes())?.rename(&beside)?;
                // Else a crash could keep the object's new name and lose this one.
                sync_directory(directory)?;
            }
            None => {
                found(fs::remove_file(&beside))?;
            }
        }
        object.rename(path)?;
        sync_directory(directory)
    }

    /// Makes the directory and those above it, so that they survive a crash. Another process may have made it and not
    /// have synced it yet, so the first use of each is synced here.
    fn make_directory(&self, directory: &Path) -> io::Result<()> {
        if directory == self.root.path() || self.durable().contains(directory) {
            return Ok(());
        }
        let above = directory.parent().unwrap_or(self.root.path());
        self.make_directory(above)?;
        match fs::create_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {}
            made => made?,
        }
        sync_directory(above)?;
        let mut durable = self.durable();
        if durable.len() >= MAX_DURABLE {
            durable.clear();
        }
        durable.insert(directory.to_owned());
        Ok(())
    }

    fn durable(&self) -> std::sync::MutexGuard<'_, HashSet<PathBuf>> {
        // The set is whole after every step of ours, so a panic elsewhere does not spoil it.
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_temporary(&self, bytes: &[u8]) -> io::Result<Temporary> {
        let directory = self.root.path().join(TEMPORARIES);
        self.make_directory(&directory)?;
        loop {
            let count = self.counter.fetch_add(1, Ordering::Relaxed);
            let path = directory.join(format!("{:016x}-{count}", self.token));
            let mut file = match File::create_new(&path) {
                // A process with the same randomness left it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                created => created?,
            };
            let temporary = Temporary { path };
            file.write_all(bytes)?;
            file.sync_all()?;
            return Ok(temporary);
        }
    }
}

/// A file in `_frazil/tmp/`, removed unless it got its final name.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn rename(self, to: &Path) -> io::Result<()> {
        fs::rename(&self.path, to)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is nothing; after a failure this is best effort, since `clean` removes what stays.
        let _ = fs::remove_file(&self.path);
    }
}

/// `None` for what is not there, be it for a missing folder or for a file in a folder's place.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn open_object(path: &Path) -> io::Result<(File, u64)> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok((file, metadata.len())),
        // A folder: there is no object of that name.
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

/// `length` is within the file, so that nobody makes us allocate more than there is.
fn read_exactly(file: File, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?);
    file.take(length).read_to_end(&mut bytes)?;
    match bytes.len() as u64 == length {
        true => Ok(bytes),
        // Objects are replaced, never cut: somebody else did.
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn read_attributes(object: &Path) -> Result<Option<String>> {
    let path = root::attributes_path(object);
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        // One more than allowed, to see that there is more.
        File::open(&path)?
            .take(MAX_ATTRIBUTES_BYTES as u64 + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let Some(bytes) = found(read()).map_err(|error| io_failure(GET, &path, error))? else {
        return Ok(None);
    };
    match String::from_utf8(bytes)
        .ok()
        .filter(|text| check_attributes(Some(text)).is_ok())
    {
        Some(text) => Ok(Some(text)),
        None => Err(Error::new(ErrorKind::Internal, GET, "its attributes are damaged")
            .with_context("path", path.display())),
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn modified(metadata: &Metadata) -> TimestampMs {
    // Every system that we run on keeps the time; before 1970 is as good as 1970.
    let elapsed = metadata
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    TimestampMs(i64::try_from(elapsed.unwrap_or_default().as_millis()).unwrap_or(i64::MAX))
}
