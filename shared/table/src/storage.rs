use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;
use frazil_core::{Error, ErrorKind, Result, TimestampMs};

/// Objects under full locations such as `file:///warehouse/kafka/orders-0190/data/x.parquet`: a directory or a bucket.
///
/// Promises that everything above builds on, checked for every implementation by
/// [`conformance::storage`](crate::conformance):
///
/// - An object is seen whole or not at all. A crash in the middle of [`put`](Self::put) leaves nothing under the
///   final name.
/// - After `put` answered success the object is durable, and the next `get` and `list_page` see it.
/// - A listing is not a snapshot: an object that exists from its first page to its last is in it; one that comes or
///   goes meanwhile may be or not be.
///
/// Errors: `Unavailable` (try again; a `put` may or may not have happened, which is harmless since names are used
/// once), `Invalid` (the location cannot be one of this storage's), `Internal` (damaged).
#[async_trait]
pub trait ObjectStorage: Send + Sync + Debug {
    /// Writes an object, replacing one of that name. `attributes` is a short text that can be read without the
    /// object; one that [`check_attributes`] refuses is `Invalid`. While a name is replaced, `head` may show the
    /// attributes of either object: names are used once.
    async fn put(&self, location: &str, bytes: Bytes, attributes: Option<&str>) -> Result<()>;

    /// Reads an object of at most `limit_bytes`; `None` when there is none. A larger one is `Internal`.
    async fn get(&self, location: &str, limit_bytes: u64) -> Result<Option<Bytes>>;

    /// Reads `length` bytes from `start`; fewer at the object's end; `None` when there is no object.
    async fn get_range(&self, location: &str, start: u64, length: u64) -> Result<Option<Bytes>>;

    /// Size, time and attributes; `None` when there is no object.
    async fn head(&self, location: &str) -> Result<Option<ObjectHead>>;

    /// The next page of objects whose location starts with `prefix` (which ends in `/`), in ascending order of
    /// location, after the location `after`. `next` is what to pass as `after`, `None` on the last page.
    async fn list_page(&self, prefix: &str, after: Option<&str>) -> Result<Page>;

    /// The folders directly under `prefix` (which ends in `/`) that hold objects, each with its trailing `/`,
    /// ascending. O(folders): what lies in them is not listed through.
    async fn list_folders(&self, prefix: &str) -> Result<Vec<String>> {
        let mut folders: Vec<String> = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = self.list_page(prefix, after.as_deref()).await?;
            after = page.next;
            for object in page.objects {
                if folders
                    .last()
                    .is_some_and(|folder| object.location.starts_with(folder.as_str()))
                {
                    continue;
                }
                if let Some((folder, _)) = object.location[prefix.len()..].split_once('/') {
                    folders.push(format!("{prefix}{folder}/"));
                }
            }
            match (&mut after, folders.last()) {
                (None, _) => return Ok(folders),
                // On to what follows the last folder, which no character sorts behind.
                (Some(after), Some(folder)) if after.starts_with(folder.as_str()) => {
                    *after = format!("{folder}{}", char::MAX);
                }
                (Some(_), _) => {}
            }
        }
    }

    /// Deletes objects; one that does not exist counts as deleted.
    async fn delete(&self, locations: &[String]) -> Result<()>;
}

/// The most that S3 stores as an object's metadata is 2 KB, names included.
pub const MAX_ATTRIBUTES_BYTES: usize = 1_800;

/// Refuses attributes that S3 would not give back as they are: they travel in an HTTP header, so they are printable
/// ASCII without spaces at either end, at most [`MAX_ATTRIBUTES_BYTES`].
pub fn check_attributes(attributes: Option<&str>) -> Result<()> {
    let Some(text) = attributes else { return Ok(()) };
    let reason = if text.len() > MAX_ATTRIBUTES_BYTES {
        format!("they have {} bytes, more than {MAX_ATTRIBUTES_BYTES}", text.len())
    } else if !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        format!("{text:?} is not printable ASCII")
    } else if text.starts_with(' ') || text.ends_with(' ') {
        format!("{text:?} starts or ends with a space")
    } else {
        return Ok(());
    };
    Err(Error::new(
        ErrorKind::Invalid,
        "store an object's attributes",
        reason,
    ))
}

/// An object in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its full location.
    pub location: String,
    /// Its size.
    pub size_bytes: u64,
    /// When it was written, by the storage's clock.
    pub modified: TimestampMs,
}

/// What is known of an object without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectHead {
    /// Its size.
    pub size_bytes: u64,
    /// When it was written, by the storage's clock.
    pub modified: TimestampMs,
    /// The attributes that it was written with.
    pub attributes: Option<String>,
}

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The objects, ascending by location.
    pub objects: Vec<ObjectInfo>,
    /// Where the next page starts, if there is one.
    pub next: Option<String>,
}

/// Every object under `prefix`, page by page. O(objects).
pub async fn list_all(storage: &dyn ObjectStorage, prefix: &str) -> Result<Vec<ObjectInfo>> {
    let mut objects = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = storage.list_page(prefix, after.as_deref()).await?;
        objects.extend(page.objects);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(objects),
        }
    }
}
