use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use frazil_core::Error;
use futures::StreamExt;
use futures::stream::BoxStream;
use iceberg::io::{
    FileIO, FileIOBuilder, FileMetadata, FileRead, FileWrite, InputFile, OutputFile, Storage, StorageConfig,
    StorageFactory,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ObjectStorage;

/// The most that is read or written in one piece: manifests and metadata are far below it, data files are read by
/// range, and nobody's damaged file makes us allocate more.
pub const MAX_WHOLE_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// Iceberg's view of our storage, so that its manifest writers and table scans run on it.
///
/// A file appears when its writer is closed, in one `put`; a writer that is dropped leaves nothing. An error of the
/// storage is the source of the iceberg error: [`storage_error`] finds it again.
pub fn file_io(storage: Arc<dyn ObjectStorage>) -> FileIO {
    FileIOBuilder::new(Arc::new(Adapter { storage })).build()
}

/// The storage's own error behind an iceberg error, which knows whether to try again.
pub fn storage_error(error: &iceberg::Error) -> Option<&Error> {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(found) = cause.downcast_ref::<Error>() {
            return Some(found);
        }
        source = cause.source();
    }
    None
}

/// Both the factory and what it builds: our storage is made before iceberg sees it.
#[derive(Clone)]
struct Adapter {
    storage: Arc<dyn ObjectStorage>,
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.storage.fmt(f)
    }
}

/// Iceberg's traits ask for serde so that engines can ship a storage to other machines. Ours holds clients and
/// connections; it stays where it is.
impl Serialize for Adapter {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom(
            "an object storage cannot be serialised",
        ))
    }
}

impl<'de> Deserialize<'de> for Adapter {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom(
            "an object storage cannot be deserialised",
        ))
    }
}

#[typetag::serde(name = "FrazilObjectStorage")]
impl StorageFactory for Adapter {
    fn build(&self, _: &StorageConfig) -> iceberg::Result<Arc<dyn Storage>> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
#[typetag::serde(name = "FrazilObjectStorage")]
impl Storage for Adapter {
    async fn exists(&self, path: &str) -> iceberg::Result<bool> {
        Ok(self.storage.head(path).await.map_err(failed)?.is_some())
    }

    async fn metadata(&self, path: &str) -> iceberg::Result<FileMetadata> {
        match self.storage.head(path).await.map_err(failed)? {
            Some(head) => Ok(FileMetadata {
                size: head.size_bytes,
            }),
            None => Err(missing(path)),
        }
    }

    async fn read(&self, path: &str) -> iceberg::Result<Bytes> {
        let found = self.storage.get(path, MAX_WHOLE_FILE_BYTES).await;
        found.map_err(failed)?.ok_or_else(|| missing(path))
    }

    async fn reader(&self, path: &str) -> iceberg::Result<Box<dyn FileRead>> {
        Ok(Box::new(Reader {
            storage: self.storage.clone(),
            path: path.to_owned(),
        }))
    }

    async fn write(&self, path: &str, bytes: Bytes) -> iceberg::Result<()> {
        self.storage.put(path, bytes, None).await.map_err(failed)
    }

    async fn writer(&self, path: &str) -> iceberg::Result<Box<dyn FileWrite>> {
        Ok(Box::new(Writer {
            storage: self.storage.clone(),
            path: path.to_owned(),
            buffer: Some(Vec::new()),
        }))
    }

    async fn delete(&self, path: &str) -> iceberg::Result<()> {
        self.storage.delete(&[path.to_owned()]).await.map_err(failed)
    }

    async fn delete_prefix(&self, path: &str) -> iceberg::Result<()> {
        let prefix = format!("{}/", path.trim_end_matches('/'));
        let mut after = None;
        loop {
            let page = self
                .storage
                .list_page(&prefix, after.as_deref())
                .await
                .map_err(failed)?;
            let locations: Vec<String> = page.objects.into_iter().map(|object| object.location).collect();
            self.storage.delete(&locations).await.map_err(failed)?;
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn delete_stream(&self, paths: BoxStream<'static, String>) -> iceberg::Result<()> {
        let mut chunks = paths.chunks(DELETE_CHUNK);
        while let Some(locations) = chunks.next().await {
            self.storage.delete(&locations).await.map_err(failed)?;
        }
        Ok(())
    }

    fn new_input(&self, path: &str) -> iceberg::Result<InputFile> {
        Ok(InputFile::new(Arc::new(self.clone()), path.to_owned()))
    }

    fn new_output(&self, path: &str) -> iceberg::Result<OutputFile> {
        Ok(OutputFile::new(Arc::new(self.clone()), path.to_owned()))
    }
}

/// What S3 deletes in one call.
const DELETE_CHUNK: usize = 1_000;

struct Reader {
    storage: Arc<dyn ObjectStorage>,
    path: String,
}

#[async_trait]
impl FileRead for Reader {
    async fn read(&self, range: Range<u64>) -> iceberg::Result<Bytes> {
        let length = range.end.saturating_sub(range.start);
        if length > MAX_WHOLE_FILE_BYTES {
            return Err(invalid(
                &self.path,
                format!("{length} bytes at once are more than {MAX_WHOLE_FILE_BYTES}"),
            ));
        }
        let found = self
            .storage
            .get_range(&self.path, range.start, length)
            .await
            .map_err(failed)?;
        let bytes = found.ok_or_else(|| missing(&self.path))?;
        if bytes.len() as u64 != length {
            let reason = format!(
                "the file ends before byte {}: {} of {length} bytes",
                range.end,
                bytes.len()
            );
            return Err(invalid(&self.path, reason));
        }
        Ok(bytes)
    }
}

struct Writer {
    storage: Arc<dyn ObjectStorage>,
    path: String,
    /// `None` once closed.
    buffer: Option<Vec<u8>>,
}

#[async_trait]
impl FileWrite for Writer {
    async fn write(&mut self, bytes: Bytes) -> iceberg::Result<()> {
        let Some(buffer) = &mut self.buffer else {
            return Err(invalid(&self.path, "the writer is closed"));
        };
        if (buffer.len() + bytes.len()) as u64 > MAX_WHOLE_FILE_BYTES {
            return Err(invalid(
                &self.path,
                format!("more than {MAX_WHOLE_FILE_BYTES} bytes in one file"),
            ));
        }
        buffer.extend_from_slice(&bytes);
        Ok(())
    }

    async fn close(&mut self) -> iceberg::Result<()> {
        let Some(buffer) = self.buffer.take() else {
            return Err(invalid(&self.path, "the writer is closed"));
        };
        self.storage
            .put(&self.path, buffer.into(), None)
            .await
            .map_err(failed)
    }
}

fn failed(error: Error) -> iceberg::Error {
    let retryable = error.kind() == frazil_core::ErrorKind::Unavailable;
    iceberg::Error::new(iceberg::ErrorKind::Unexpected, "the storage failed")
        .with_retryable(retryable)
        .with_source(error)
}

fn missing(path: &str) -> iceberg::Error {
    invalid(path, "there is no such file")
}

fn invalid(path: &str, reason: impl Into<String>) -> iceberg::Error {
    iceberg::Error::new(iceberg::ErrorKind::DataInvalid, reason).with_context("path", path)
}

#[cfg(test)]
mod tests;
