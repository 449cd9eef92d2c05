//! Schemas in files, and beside each the list of those that it needs.

use std::io::{self, ErrorKind as IoKind};
use std::path::Path;

use frazil_core::{Error, ErrorKind, Result, SchemaId};
use frazil_kafka::wire::SchemaRef;
use serde::Deserialize;
use tokio::io::AsyncReadExt;

use crate::{Reference, SchemaKind, StoredSchema};

/// A file in the directory may be this long: a registry's own limits are well below.
pub const MAX_SCHEMA_FILE_BYTES: u64 = 1 << 20;

pub(crate) const OPERATION: &str = "look up the schema";

/// `7.references.json` beside `7.proto`.
const REFERENCES_EXTENSION: &str = "references.json";

/// A reference as it is written: with what else it is, besides its name.
#[derive(Deserialize)]
struct Written {
    name: String,
    subject: Option<String>,
    version: Option<u32>,
    id: Option<SchemaId>,
    file: Option<String>,
}

/// The schema in a file; `None` if there is no such file in a folder that can be read.
pub(crate) async fn schema(kind: SchemaKind, path: &Path) -> Result<Option<StoredSchema>> {
    let Some(text) = read(OPERATION, path).await? else {
        return Ok(None);
    };
    let beside = path.with_extension(REFERENCES_EXTENSION);
    let references = match read(OPERATION, &beside).await? {
        Some(list) => references(&beside, &list)?,
        None => Vec::new(),
    };
    Ok(Some(StoredSchema {
        kind,
        text,
        references,
    }))
}

fn references(path: &Path, text: &str) -> Result<Vec<Reference>> {
    let hint = r#"it should be like [{"name": "money.proto", "subject": "money", "version": 1}]; "id" or "file" may stand for subject and version"#;
    let invalid = |reason: String| {
        Error::new(
            ErrorKind::Invalid,
            OPERATION,
            format!("{}: {reason}", path.display()),
        )
        .with_code("registry.bad_reference")
        .with_hint(hint)
    };
    let written: Vec<Written> =
        serde_json::from_str(text).map_err(|error| invalid(error.to_string()).with_source(error))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    written
        .into_iter()
        .map(|written| {
            let target = match (written.subject, written.version, written.id, written.file) {
                (Some(subject), Some(version), None, None) => SchemaRef::version(subject, version),
                (None, None, Some(id), None) => SchemaRef::Id(id),
                (None, None, None, Some(file)) => SchemaRef::File(folder.join(file)),
                _ => {
                    return Err(invalid(format!(
                        "`{}` needs subject and version, or id, or file",
                        written.name
                    )));
                }
            };
            Ok(Reference {
                name: written.name,
                target,
            })
        })
        .collect()
}

/// The file's text; `None` if there is no such file in a directory that can be read.
pub(crate) async fn read(operation: &'static str, path: &Path) -> Result<Option<String>> {
    let bytes = match bounded(path).await {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == IoKind::NotFound => {
            // Not there, or is the whole folder away? Only the first is the record's fault.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            return match tokio::fs::read_dir(folder).await {
                Ok(_) => Ok(None),
                Err(error) => Err(unreadable(operation, folder, error)),
            };
        }
        Err(error) => return Err(unreadable(operation, path, error)),
    };
    if bytes.len() as u64 > MAX_SCHEMA_FILE_BYTES {
        let message = format!("{} is longer than {MAX_SCHEMA_FILE_BYTES} bytes", path.display());
        return Err(Error::new(ErrorKind::Invalid, operation, message).with_code("registry.too_large"));
    }
    String::from_utf8(bytes).map(Some).map_err(|error| {
        Error::new(
            ErrorKind::Invalid,
            operation,
            format!("{} is not UTF-8", path.display()),
        )
        .with_source(error)
    })
}

fn unreadable(operation: &'static str, path: &Path, error: io::Error) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        operation,
        format!("{}: {error}", path.display()),
    )
    .with_code("registry.unavailable")
    .with_source(error)
}

async fn bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = tokio::fs::File::open(path).await?;
    file.take(MAX_SCHEMA_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .await?;
    Ok(bytes)
}
