use std::fs;
use std::path::{Path, PathBuf};

use frazil_core::{Error, ErrorKind, Result};

use crate::DATABASE_FILE;
use crate::io_failure::io_failure;

/// Where objects are written before they get their names: on the same file system, so that a rename is one step.
pub(super) const TEMPORARIES: &str = "_frazil/tmp";

/// What an engine takes for a pattern, a fragment or a query instead of a name.
const SPECIAL: &[char] = &['?', '#', '*', '[', ']', '{', '}', '\\'];

/// The warehouse's directory and its location.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    location: String,
}

impl Root {
    pub(super) fn new(path: &Path) -> Result<Self> {
        let operation = super::OPEN;
        let real = fs::canonicalize(path).map_err(|error| io_failure(operation, path, error))?;
        if !real.is_dir() {
            return Err(io_failure(
                operation,
                &real,
                std::io::ErrorKind::NotADirectory.into(),
            ));
        }
        let refuse = |reason: &str| {
            Err(Error::new(ErrorKind::Invalid, operation, reason)
                .with_context("path", real.display())
                .with_hint("choose a path that DuckDB, PyIceberg and Spark can open: letters, digits, spaces, - _ . % ="))
        };
        let Some(text) = real.to_str() else {
            return refuse("its path is not UTF-8");
        };
        if let Some(special) = text.chars().find(|c| SPECIAL.contains(c) || c.is_control()) {
            return refuse(&format!(
                "its path holds {special:?}, which engines do not take as part of a name"
            ));
        }
        let location = format!("file://{}", text.trim_end_matches('/'));
        Ok(Self { path: real, location })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Without a trailing `/`.
    pub(super) fn location(&self) -> &str {
        &self.location
    }

    /// The object's file. Nothing is decoded or encoded.
    pub(super) fn resolve(&self, operation: &'static str, location: &str) -> Result<PathBuf> {
        let relative = self.relative(operation, location)?;
        match relative.split('/').find_map(refused_part) {
            Some(reason) => Err(invalid(operation, location, reason)),
            None if is_reserved(relative) => {
                Err(invalid(operation, location, "the name is the storage's own"))
            }
            None => Ok(self.path.join(relative)),
        }
    }

    /// The folder of a prefix, relative to the root: empty or with a trailing `/`.
    pub(super) fn resolve_prefix(&self, operation: &'static str, prefix: &str) -> Result<String> {
        let relative = self.relative(operation, prefix)?;
        if relative.is_empty() {
            return Ok(String::new());
        }
        let Some(folder) = relative.strip_suffix('/') else {
            return Err(invalid(operation, prefix, "a prefix ends in `/`"));
        };
        match folder.split('/').find_map(refused_part) {
            Some(reason) => Err(invalid(operation, prefix, reason)),
            None => Ok(relative.to_owned()),
        }
    }

    fn relative<'a>(&self, operation: &'static str, location: &'a str) -> Result<&'a str> {
        let inside = location
            .strip_prefix(&self.location)
            .and_then(|rest| rest.strip_prefix('/'));
        inside.ok_or_else(|| {
            invalid(operation, location, "it is outside of the warehouse")
                .with_context("warehouse", &self.location)
                .with_hint("a warehouse cannot be moved: Iceberg keeps whole locations; move it back to where it was made")
        })
    }
}

/// Why this cannot be a part of a location; `None` if it can.
pub(super) fn refused_part(part: &str) -> Option<&'static str> {
    match part {
        "" => Some("a part of it is empty"),
        "." | ".." => Some("`.` and `..` are no names"),
        _ if part.contains(SPECIAL) || part.contains(char::is_control) => {
            Some("one of ? # * [ ] { } \\ or a control character is in it")
        }
        _ => None,
    }
}

/// Where the attributes of an object are.
pub(super) fn attributes_path(object: &Path) -> PathBuf {
    let name = object.file_name().unwrap_or_default().to_string_lossy();
    object.with_file_name(format!(".{name}.attributes"))
}

/// Whether this path under the root is a file of the storage itself.
pub(super) fn is_reserved(relative: &str) -> bool {
    let name = relative.rsplit('/').next().unwrap_or(relative);
    let attributes = name.starts_with('.') && name.ends_with(".attributes");
    let temporary = relative
        .strip_prefix(TEMPORARIES)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    // The database's journals have its name and a suffix such as `-journal`.
    let database = relative
        .strip_prefix(DATABASE_FILE)
        .is_some_and(|rest| rest.is_empty() || (rest.starts_with('-') && !rest.contains('/')));
    attributes || temporary || database
}

fn invalid(operation: &'static str, location: &str, reason: &str) -> Error {
    Error::new(ErrorKind::Invalid, operation, reason).with_context("location", location)
}
