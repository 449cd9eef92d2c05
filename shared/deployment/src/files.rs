use bytes::Bytes;
use frazil_aws::{Account, S3Storage};
use frazil_config::AwsAccess;
use frazil_core::{Error, ErrorKind, Result};
use frazil_table::{ObjectStorage, list_all};

use crate::warehouse::settings;

/// Objects on S3 that somebody names, outside a warehouse.
#[derive(Debug)]
pub struct FilesOnS3 {
    storage: S3Storage,
}

impl FilesOnS3 {
    /// As the account of the warehouse sees them.
    pub async fn new(aws: &AwsAccess) -> Self {
        Self {
            storage: S3Storage::new(&Account::open(&settings(aws).account).await),
        }
    }

    /// The object of that name, or every object below it, ascending. `Invalid` when there is none.
    pub async fn expand(&self, location: &str) -> Result<Vec<String>> {
        if !location.ends_with('/') && self.storage.head(location).await?.is_some() {
            return Ok(vec![location.to_owned()]);
        }
        let folder = format!("{}/", location.trim_end_matches('/'));
        let objects = list_all(&self.storage, &folder).await?;
        if objects.is_empty() {
            return Err(Error::new(ErrorKind::Invalid, "read from S3", "there is nothing")
                .with_context("location", location)
                .with_hint("check bucket and prefix: `aws s3 ls` shows what there is"));
        }
        Ok(objects.into_iter().map(|object| object.location).collect())
    }

    /// An object of at most so many bytes.
    pub async fn read(&self, location: &str, limit_bytes: u64) -> Result<Bytes> {
        let found = self.storage.get(location, limit_bytes).await?;
        found.ok_or_else(|| {
            Error::new(ErrorKind::Invalid, "read from S3", "there is no such object")
                .with_context("location", location)
        })
    }
}
