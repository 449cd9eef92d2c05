use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use frazil_core::{Error, ErrorKind, Result, SchemaId};
use frazil_kafka::wire::{SchemaRef, SubjectVersion};
use serde::Deserialize;

use crate::files::{self, OPERATION};
use crate::{SchemaKind, SchemaRegistry, StoredSchema, fault};

/// A directory as a schema registry: for one machine, for tests and for topics whose registry is away.
///
/// ```text
/// <directory>/ids/7.avsc                  or .json (JSON Schema), or .proto
/// <directory>/ids/7.references.json       [{"name": "money.proto", "subject": "money", "version": 1}]
/// <directory>/guids/<guid>.avsc           by Confluent's GUID
/// <directory>/versions/<uuid>.avsc        by Glue's schema version id
/// <directory>/subjects/orders-value.json  {"versions": [{"version": 1, "id": 7}]}
/// ```
#[derive(Debug, Clone)]
pub struct DirectoryRegistry {
    directory: PathBuf,
}

#[derive(Deserialize)]
struct Subject {
    versions: Vec<ListedVersion>,
}

#[derive(Deserialize)]
struct ListedVersion {
    version: u32,
    id: SchemaId,
}

impl DirectoryRegistry {
    /// Uses this directory. It is not looked at before the first question.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    /// The id of a subject's version; `None` if the directory does not have it.
    async fn id_of(&self, subject: &str, version: SubjectVersion) -> Result<Option<SchemaId>> {
        let operation = "look up the subject";
        // A subject is a topic's name with a suffix; this keeps it inside the directory.
        if subject.is_empty() || subject.starts_with('.') || subject.contains(['/', '\\', '\0']) {
            return Err(Error::new(
                ErrorKind::Invalid,
                operation,
                format!("`{subject}` cannot be a file's name"),
            ));
        }
        let path = self.directory.join("subjects").join(format!("{subject}.json"));
        let Some(text) = self.explain(files::read(operation, &path).await)? else {
            return Ok(None);
        };
        let subject: Subject = serde_json::from_str(&text).map_err(|error| {
            Error::new(
                ErrorKind::Invalid,
                operation,
                format!("{}: {error}", path.display()),
            )
            .with_hint(r#"the file should be like {"versions": [{"version": 1, "id": 7}]}"#)
            .with_source(error)
        })?;
        let versions = subject.versions.into_iter();
        let found = match version {
            SubjectVersion::Latest => versions.max_by_key(|listed| listed.version),
            SubjectVersion::Number(number) => versions.into_iter().find(|listed| listed.version == number),
        };
        Ok(found.map(|listed| listed.id))
    }

    /// The schema in the first of the files `<folder>/<name>.<extension>`.
    async fn find(&self, folder: &str, name: &str) -> Result<Option<StoredSchema>> {
        let folder = self.directory.join(folder);
        for kind in SchemaKind::ALL {
            let path = folder.join(format!("{name}.{}", kind.extension()));
            if let Some(schema) = self.explain(files::schema(kind, &path).await)? {
                return Ok(Some(schema));
            }
        }
        Ok(None)
    }

    fn explain<T>(&self, read: Result<T>) -> Result<T> {
        read.map_err(|error| match error.kind() {
            ErrorKind::Unavailable => {
                error.with_hint(format!("check the schema directory {}", self.directory.display()))
            }
            _ => error,
        })
    }
}

#[async_trait]
impl SchemaRegistry for DirectoryRegistry {
    async fn stored(&self, reference: &SchemaRef) -> Result<Arc<StoredSchema>> {
        let (folder, name) = match reference {
            SchemaRef::Id(id) => ("ids", id.to_string()),
            SchemaRef::Apicurio(id) => ("ids", id.to_string()),
            SchemaRef::Guid(guid) => ("guids", guid.to_string()),
            SchemaRef::GlueVersion(version) => ("versions", version.to_string()),
            SchemaRef::Subject { subject, version } => match self.id_of(subject, *version).await? {
                Some(id) => ("ids", id.to_string()),
                None => return Err(self.unknown("subjects", subject, reference)),
            },
            SchemaRef::File(path) => return file(path, reference).await,
        };
        match self.find(folder, &name).await? {
            Some(schema) => Ok(Arc::new(schema)),
            None => Err(self.unknown(folder, &name, reference)),
        }
    }
}

impl DirectoryRegistry {
    fn unknown(&self, folder: &str, name: &str, reference: &SchemaRef) -> Error {
        let folder = self.directory.join(folder);
        let add = match reference {
            SchemaRef::Subject { .. } => format!("add it to {name}.json"),
            _ => format!("add it as {name}.avsc"),
        };
        fault::unknown(reference, &folder.display().to_string())
            .with_hint(format!("{add}, or check that the producer uses this registry"))
    }
}

/// Schemas in files that the configuration names, and nothing else: for payloads without a framing.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileSchemas;

#[async_trait]
impl SchemaRegistry for FileSchemas {
    async fn stored(&self, reference: &SchemaRef) -> Result<Arc<StoredSchema>> {
        match reference {
            SchemaRef::File(path) => file(path, reference).await,
            _ => Err(fault::wrong_kind(reference, "a file")),
        }
    }
}

/// A file that the configuration, or a file beside it, names: when it is not there, no record is to blame.
async fn file(path: &Path, reference: &SchemaRef) -> Result<Arc<StoredSchema>> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let kind = SchemaKind::ALL
        .into_iter()
        .find(|kind| Some(kind.extension()) == extension);
    let Some(kind) = kind else {
        let message = format!("{} does not say its language", path.display());
        return Err(Error::new(ErrorKind::Invalid, OPERATION, message)
            .with_hint("name it .avsc (Avro), .json (JSON Schema) or .proto (Protobuf)"));
    };
    match files::schema(kind, path).await? {
        Some(schema) => Ok(Arc::new(schema)),
        None => Err(Error::new(
            ErrorKind::Unavailable,
            OPERATION,
            format!("there is no {reference}"),
        )
        .with_code("registry.unavailable")
        .with_hint("check the path; `file:` starts from the folder of frazil.toml")),
    }
}

#[cfg(test)]
mod tests;
