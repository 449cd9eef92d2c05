use std::fs::{self, DirEntry, ReadDir};
use std::io;

use frazil_core::{Error, ErrorKind, Result};
use frazil_table::{ObjectInfo, Page};

use super::root::{self, Root, TEMPORARIES};
use super::{LIST, found, modified};
use crate::io_failure::io_failure;

/// What S3 answers in one page.
pub(super) const PAGE_OBJECTS: usize = 1_000;
/// Far deeper than any layout; only a loop of symbolic links gets there.
const MAX_DEPTH: usize = 64;

/// The first page of objects under `folder` (relative to the root) whose location sorts after `after`.
pub(super) fn page(root: &Root, folder: &str, after: Option<&str>) -> Result<Page> {
    let prefix = format!("{}/{folder}", root.location());
    let after = match after {
        Some(after) => match after.strip_prefix(&prefix) {
            Some(rest) => Some(rest),
            None if after < prefix.as_str() => None,
            // It sorts after everything with this prefix.
            None => return Ok(Page::default()),
        },
        None => None,
    };
    let mut walk = Walk {
        root,
        objects: Vec::new(),
    };
    walk.visit(folder, after, 0)?;
    let mut objects = walk.objects;
    let more = objects.len() > PAGE_OBJECTS;
    objects.truncate(PAGE_OBJECTS);
    let next = objects.last().filter(|_| more).map(|last| last.location.clone());
    Ok(Page { objects, next })
}

/// A walk in the order of whole locations. A folder sorts as its name with `/`, so that `a-b/x` comes before `a/x`
/// although `a` comes before `a-b`.
struct Walk<'a> {
    root: &'a Root,
    objects: Vec<ObjectInfo>,
}

impl Walk<'_> {
    /// One more than a page shows that there is another.
    fn is_full(&self) -> bool {
        self.objects.len() > PAGE_OBJECTS
    }

    /// `after` is relative to `folder`.
    fn visit(&mut self, folder: &str, after: Option<&str>, depth: usize) -> Result<()> {
        let path = self.root.path().join(folder);
        let failed = |error| io_failure(LIST, &path, error);
        if depth > MAX_DEPTH {
            let reason = format!("folders are nested more than {MAX_DEPTH} deep");
            return Err(Error::new(ErrorKind::Internal, LIST, reason)
                .with_context("path", path.display())
                .with_hint("look for a symbolic link that leads back to a folder above it"));
        }
        // A folder that goes away meanwhile has no objects.
        let Some(entries) = found(fs::read_dir(&path)).map_err(failed)? else {
            return Ok(());
        };
        for key in keys(entries, folder, after).map_err(failed)? {
            if self.is_full() {
                break;
            }
            if key.ends_with('/') {
                let rest = after.and_then(|after| after.strip_prefix(key.as_str()));
                self.visit(&format!("{folder}{key}"), rest, depth + 1)?;
            } else if let Some(metadata) = found(fs::metadata(path.join(&key))).map_err(failed)? {
                self.objects.push(ObjectInfo {
                    location: format!("{}/{folder}{key}", self.root.location()),
                    size_bytes: metadata.len(),
                    modified: modified(&metadata),
                });
            }
        }
        Ok(())
    }
}

/// The names in a folder that are after `after` or may hold such, folders with a trailing `/`, ascending.
fn keys(entries: ReadDir, folder: &str, after: Option<&str>) -> io::Result<Vec<String>> {
    let mut keys = Vec::new();
    for entry in entries {
        let entry = entry?;
        // What cannot be an object's name is somebody else's file.
        let Ok(mut key) = entry.file_name().into_string() else {
            continue;
        };
        if root::refused_part(&key).is_some() {
            continue;
        }
        let Some(is_folder) = is_folder(&entry)? else {
            continue;
        };
        let relative = format!("{folder}{key}");
        // A topic may be named like a file of ours; its folder is no such file.
        let hidden = if is_folder {
            relative == TEMPORARIES
        } else {
            root::is_reserved(&relative)
        };
        if is_folder {
            key.push('/');
        }
        let wanted = after.is_none_or(|after| key.as_str() > after || (is_folder && after.starts_with(&key)));
        if wanted && !hidden {
            keys.push(key);
        }
    }
    keys.sort_unstable();
    Ok(keys)
}

/// `None` for what is neither file nor folder, or gone.
fn is_folder(entry: &DirEntry) -> io::Result<Option<bool>> {
    let Some(mut kind) = found(entry.file_type())? else {
        return Ok(None);
    };
    if kind.is_symlink() {
        match found(fs::metadata(entry.path()))? {
            Some(metadata) => kind = metadata.file_type(),
            None => return Ok(None),
        }
    }
    Ok((kind.is_dir() || kind.is_file()).then(|| kind.is_dir()))
}
