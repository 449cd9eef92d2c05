use std::io::{self, ErrorKind as IoKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use frazil_core::{Error, ErrorKind, Result, SchemaId};
use serde::Deserialize;
use tokio::io::AsyncReadExt;

use crate::{RegisteredSchema, SchemaKind, SchemaRegistry};

/// A file in the directory may be this long: a registry's own limits are well below.
pub const MAX_SCHEMA_FILE_BYTES: u64 = 1 << 20;

/// A directory as a schema registry: for one machine, for tests and for topics whose registry is away.
///
/// ```text
/// <directory>/ids/7.avsc                  or .json (JSON Schema), or .proto
/// <directory>/subjects/orders-value.json  {"versions": [{"version": 1, "id": 7}]}
/// ```
#[derive(Debug, Clone)]
pub struct DirectoryRegistry {
    directory: PathBuf,
}

#[derive(Deserialize)]
struct Subject {
    versions: Vec<SubjectVersion>,
}

#[derive(Deserialize)]
struct SubjectVersion {
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

    /// The id of a subject's version with the highest number; `None` if the directory has no such subject.
    ///
    /// # Errors
    /// `Unavailable` if the directory cannot be read; `Invalid` if the subject's file is not one, or its name cannot
    /// be a file's.
    pub async fn latest(&self, subject: &str) -> Result<Option<SchemaId>> {
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
        let Some(text) = self.read(operation, &path).await? else {
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
        Ok(subject
            .versions
            .into_iter()
            .max_by_key(|version| version.version)
            .map(|version| version.id))
    }

    /// The file's text; `None` if there is no such file in a directory that can be read.
    async fn read(&self, operation: &'static str, path: &Path) -> Result<Option<String>> {
        let bytes = match bounded(path).await {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == IoKind::NotFound => {
                // Not there, or is the whole directory away? Only the first is the record's fault.
                let folder = path.parent().unwrap_or(&self.directory);
                return match tokio::fs::read_dir(folder).await {
                    Ok(_) => Ok(None),
                    Err(error) => Err(self.unreadable(operation, folder, error)),
                };
            }
            Err(error) => return Err(self.unreadable(operation, path, error)),
        };
        if bytes.len() as u64 > MAX_SCHEMA_FILE_BYTES {
            let message = format!("{} is longer than {MAX_SCHEMA_FILE_BYTES} bytes", path.display());
            return Err(Error::new(ErrorKind::Invalid, operation, message));
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

    fn unreadable(&self, operation: &'static str, path: &Path, error: io::Error) -> Error {
        Error::new(
            ErrorKind::Unavailable,
            operation,
            format!("{}: {error}", path.display()),
        )
        .with_code("registry.unavailable")
        .with_hint(format!("check the schema directory {}", self.directory.display()))
        .with_source(error)
    }
}

async fn bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = tokio::fs::File::open(path).await?;
    file.take(MAX_SCHEMA_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .await?;
    Ok(bytes)
}

#[async_trait]
impl SchemaRegistry for DirectoryRegistry {
    async fn schema(&self, id: SchemaId) -> Result<Arc<RegisteredSchema>> {
        let operation = "look up the schema";
        let ids = self.directory.join("ids");
        for kind in SchemaKind::ALL {
            let path = ids.join(format!("{id}.{}", kind.extension()));
            if let Some(text) = self.read(operation, &path).await? {
                return Ok(Arc::new(RegisteredSchema { id, kind, text }));
            }
        }
        Err(Error::new(
            ErrorKind::Poison,
            operation,
            format!("{} has no schema {id}", ids.display()),
        )
        .with_code("registry.unknown_schema")
        .with_context("schema_id", id)
        .with_hint(format!(
            "add it as {id}.avsc, or check that the producer uses this registry"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(files: &[(&str, &[u8])]) -> (tempfile::TempDir, DirectoryRegistry) {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let registry = DirectoryRegistry::new(folder.path());
        (folder, registry)
    }

    #[tokio::test]
    async fn each_kind_is_found_by_its_extension() {
        let (_folder, registry) = registry(&[
            ("ids/1.avsc", b"\"int\""),
            ("ids/2.json", b"{}"),
            ("ids/3.proto", b"message M {}"),
        ]);
        for (id, kind, text) in [
            (1, SchemaKind::Avro, "\"int\""),
            (2, SchemaKind::Json, "{}"),
            (3, SchemaKind::Protobuf, "message M {}"),
        ] {
            let found = registry.schema(SchemaId(id)).await.unwrap();
            assert_eq!(
                *found,
                RegisteredSchema {
                    id: SchemaId(id),
                    kind,
                    text: text.to_owned()
                }
            );
        }
    }

    #[tokio::test]
    async fn an_unknown_id_is_the_records_fault_and_an_absent_directory_is_not() {
        let (folder, registry) = registry(&[("ids/1.avsc", b"\"int\"")]);
        let error = registry.schema(SchemaId(4)).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.code()),
            (ErrorKind::Poison, Some("registry.unknown_schema"))
        );

        let elsewhere = folder.path().join("elsewhere");
        let error = DirectoryRegistry::new(&elsewhere)
            .schema(SchemaId(1))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(
            error.to_string().contains(&elsewhere.display().to_string()),
            "{error}"
        );
    }

    #[tokio::test]
    async fn what_cannot_be_used_is_refused() {
        let long = vec![b' '; usize::try_from(MAX_SCHEMA_FILE_BYTES).unwrap() + 1];
        let (_folder, registry) = registry(&[("ids/1.avsc", &long), ("ids/2.avsc", b"\xff")]);
        for (id, reason) in [(1, "longer than 1048576 bytes"), (2, "not UTF-8")] {
            let error = registry.schema(SchemaId(id)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[tokio::test]
    async fn the_latest_version_has_the_highest_number() {
        let (_folder, registry) = registry(&[
            (
                "subjects/orders-value.json",
                br#"{"versions": [{"version": 2, "id": 5}, {"version": 1, "id": 9}]}"#,
            ),
            ("subjects/empty.json", br#"{"versions": []}"#),
            ("subjects/broken.json", b"{"),
        ]);
        assert_eq!(registry.latest("orders-value").await.unwrap(), Some(SchemaId(5)));
        assert_eq!(registry.latest("empty").await.unwrap(), None);
        assert_eq!(registry.latest("absent").await.unwrap(), None);
        for subject in ["broken", "../ids/1", ""] {
            assert_eq!(
                registry.latest(subject).await.unwrap_err().kind(),
                ErrorKind::Invalid,
                "{subject}"
            );
        }
    }
}
