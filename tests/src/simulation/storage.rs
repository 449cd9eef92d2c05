use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use frazil_core::{Clock, Error, ErrorKind, Result, TimestampMs};
use frazil_table::{MAX_ATTRIBUTES_BYTES, ObjectHead, ObjectInfo, ObjectStorage, Page};

use super::{Pace, lock};

/// Objects under `memory://…`. Clones share them.
#[derive(Debug, Clone)]
pub struct MemoryStorage {
    objects: Arc<Mutex<Objects>>,
    clock: Arc<dyn Clock>,
    pace: Pace,
    page_size: usize,
}

#[derive(Debug, Default)]
struct Objects {
    stored: BTreeMap<String, Stored>,
    changes: u64,
    deletions: u64,
}

#[derive(Debug, Clone)]
struct Stored {
    bytes: Bytes,
    modified: TimestampMs,
    attributes: Option<String>,
}

impl MemoryStorage {
    /// The scheme of its locations.
    pub const SCHEME: &'static str = "memory://";

    /// Lists `page_size` objects at a time.
    pub fn new(clock: Arc<dyn Clock>, pace: Pace, page_size: usize) -> Self {
        Self {
            objects: Arc::default(),
            clock,
            pace,
            page_size: page_size.max(1),
        }
    }

    /// The object, at once: for checks from outside.
    pub fn peek(&self, location: &str) -> Option<Bytes> {
        lock(&self.objects)
            .stored
            .get(location)
            .map(|stored| stored.bytes.clone())
    }

    /// Whether there is such an object, at once.
    pub fn exists(&self, location: &str) -> bool {
        lock(&self.objects).stored.contains_key(location)
    }

    /// All locations with this prefix, at once.
    pub fn locations(&self, prefix: &str) -> Vec<String> {
        let objects = lock(&self.objects);
        let from = objects
            .stored
            .range::<str, _>((Bound::Included(prefix), Bound::Unbounded));
        from.map(|(location, _)| location)
            .take_while(|location| location.starts_with(prefix))
            .cloned()
            .collect()
    }

    /// Grows with every put and delete.
    pub fn changes(&self) -> u64 {
        lock(&self.objects).changes
    }

    /// Grows with every object that is deleted.
    pub fn deletions(&self) -> u64 {
        lock(&self.objects).deletions
    }

    async fn turn(&self, location: &str, operation: &'static str) -> Result<()> {
        self.pace.turn().await;
        if location.starts_with(Self::SCHEME) {
            return Ok(());
        }
        Err(
            Error::new(ErrorKind::Invalid, operation, "the location is not in memory")
                .with_context("location", location),
        )
    }
}

#[async_trait]
impl ObjectStorage for MemoryStorage {
    async fn put(&self, location: &str, bytes: Bytes, attributes: Option<&str>) -> Result<()> {
        self.turn(location, "write an object").await?;
        if attributes.is_some_and(|text| text.len() > MAX_ATTRIBUTES_BYTES) {
            return Err(Error::new(
                ErrorKind::Invalid,
                "write an object",
                format!("its attributes are longer than {MAX_ATTRIBUTES_BYTES} bytes"),
            )
            .with_context("location", location));
        }
        let stored = Stored {
            bytes,
            modified: self.clock.now(),
            attributes: attributes.map(str::to_owned),
        };
        let mut objects = lock(&self.objects);
        objects.changes += 1;
        objects.stored.insert(location.to_owned(), stored);
        Ok(())
    }

    async fn get(&self, location: &str, limit_bytes: u64) -> Result<Option<Bytes>> {
        self.turn(location, "read an object").await?;
        match self.peek(location) {
            Some(bytes) if bytes.len() as u64 > limit_bytes => Err(Error::new(
                ErrorKind::Internal,
                "read an object",
                format!(
                    "it has {} bytes, more than the {limit_bytes} allowed",
                    bytes.len()
                ),
            )
            .with_context("location", location)),
            found => Ok(found),
        }
    }

    async fn get_range(&self, location: &str, start: u64, length: u64) -> Result<Option<Bytes>> {
        self.turn(location, "read an object").await?;
        Ok(self.peek(location).map(|bytes| {
            let size = bytes.len() as u64;
            let from = start.min(size);
            let to = start.saturating_add(length).min(size);
            bytes.slice(from as usize..to as usize)
        }))
    }

    async fn head(&self, location: &str) -> Result<Option<ObjectHead>> {
        self.turn(location, "look at an object").await?;
        let objects = lock(&self.objects);
        Ok(objects.stored.get(location).map(|stored| ObjectHead {
            size_bytes: stored.bytes.len() as u64,
            modified: stored.modified,
            attributes: stored.attributes.clone(),
        }))
    }

    async fn list_page(&self, prefix: &str, after: Option<&str>) -> Result<Page> {
        self.turn(prefix, "list objects").await?;
        if !prefix.ends_with('/') {
            return Err(Error::new(
                ErrorKind::Invalid,
                "list objects",
                "the prefix does not end in `/`",
            )
            .with_context("prefix", prefix));
        }
        let objects = lock(&self.objects);
        let start = match after {
            Some(after) if after > prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let mut matching = objects
            .stored
            .range::<str, _>((start, Bound::Unbounded))
            .take_while(|(location, _)| location.starts_with(prefix));
        let page: Vec<ObjectInfo> = matching
            .by_ref()
            .take(self.page_size)
            .map(|(location, stored)| ObjectInfo {
                location: location.clone(),
                size_bytes: stored.bytes.len() as u64,
                modified: stored.modified,
            })
            .collect();
        let more = matching.next().is_some();
        let next = page.last().filter(|_| more).map(|last| last.location.clone());
        Ok(Page { objects: page, next })
    }

    async fn delete(&self, locations: &[String]) -> Result<()> {
        for location in locations {
            self.turn(location, "delete an object").await?;
            let mut objects = lock(&self.objects);
            if objects.stored.remove(location).is_some() {
                objects.changes += 1;
                objects.deletions += 1;
            }
        }
        Ok(())
    }
}
