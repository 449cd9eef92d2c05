use async_trait::async_trait;
use aws_sdk_s3::config::{Builder, retry::RetryConfig};
use aws_sdk_s3::primitives::ByteStream;
use bytes::Bytes;
use frazil_core::{Error, ErrorKind, Result};
use frazil_table::{StateEntry, StateStore, list_all};

use super::S3Storage;
use super::failed::failed;
use super::location::S3Location;
use crate::failure::Refusal;

/// The most that is read as one document: a topic's state with thousands of partitions is far below it.
const MAX_DOCUMENT_BYTES: u64 = 64 * 1024 * 1024;

const STORE: &str = "store a state";

/// Documents as objects `KEY.json` below a prefix, changed by conditional writes. A version is an ETag: it says what
/// the document is, so a document that changes back has its old version again.
#[derive(Debug, Clone)]
pub struct S3StateStore {
    storage: S3Storage,
    prefix: String,
}

impl S3StateStore {
    /// Documents below `prefix`, such as `s3://bucket/warehouse/_frazil/state/`.
    pub fn new(storage: S3Storage, prefix: impl Into<String>) -> Self {
        Self {
            storage,
            prefix: prefix.into(),
        }
    }

    fn location(&self, key: &str) -> String {
        format!("{}{key}.json", self.prefix)
    }
}

#[async_trait]
impl StateStore for S3StateStore {
    async fn load(&self, key: &str) -> Result<Option<StateEntry>> {
        let found = self
            .storage
            .get_with_version(&self.location(key), None, MAX_DOCUMENT_BYTES)
            .await?;
        Ok(found.map(|(bytes, version)| StateEntry { bytes, version }))
    }

    async fn store(&self, key: &str, bytes: Bytes, expected: Option<&str>) -> Result<()> {
        let location = self.location(key);
        let at = S3Location::parse(&location)?;
        let conflict = || {
            Error::new(ErrorKind::Conflict, STORE, "somebody else changed it meanwhile")
                .with_context("key", key)
        };
        let _turn = self.storage.turn().await;
        let request = self.storage.client.put_object().bucket(at.bucket).key(at.key);
        let request = request
            .content_type("application/json")
            .body(ByteStream::from(bytes));
        let request = match expected {
            None => request.if_none_match("*"),
            // What is no ETag was never a version: S3 would refuse it as a fault of ours.
            Some(version) if !version.starts_with('"') => return Err(conflict()),
            Some(version) => request.if_match(version),
        };
        // Never repeated by the SDK: the second answer to a write that succeeded would be a conflict.
        let once = Builder::new().retry_config(RetryConfig::disabled());
        let Err(error) = request.customize().config_override(once).send().await else {
            return Ok(());
        };
        let refusal = Refusal::of(&error);
        match refusal.code.as_str() {
            "PreconditionFailed" | "ConditionalRequestConflict" | "NoSuchKey" => Err(conflict()),
            _ => Err(failed(STORE, &location, refusal).with_source(error)),
        }
    }

    async fn keys(&self, prefix: &str) -> Result<Vec<String>> {
        let objects = list_all(&self.storage, &format!("{}{prefix}", self.prefix)).await?;
        let keys = objects.iter().filter_map(|object| {
            let key = object
                .location
                .strip_prefix(&self.prefix)?
                .strip_suffix(".json")?;
            Some(key.to_owned())
        });
        let mut keys: Vec<String> = keys.collect();
        keys.sort();
        Ok(keys)
    }
}
