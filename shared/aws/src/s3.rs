use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::Builder;
use aws_sdk_s3::primitives::{ByteStream, DateTime};
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use aws_types::service_config::ServiceConfigKey;
use bytes::{Bytes, BytesMut};
use frazil_core::{Error, ErrorKind, Result, TimestampMs};
use frazil_table::{ObjectHead, ObjectInfo, ObjectStorage, Page, check_attributes};
use futures::stream::{self, TryStreamExt};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::account::Account;
use crate::failure::Refusal;
use location::S3Location;

mod failed;
mod location;
mod multipart;
mod states;

pub use states::S3StateStore;

/// Requests at once when nobody says. One S3 prefix takes thousands a second; this is about sockets and memory: each may
/// hold a part of 8 MB.
const REQUESTS_AT_ONCE: usize = 64;
/// What `DeleteObjects` takes.
const MAX_DELETED_AT_ONCE: usize = 1_000;
/// Lists of objects that are deleted at once.
const DELETIONS_AT_ONCE: usize = 4;
/// How often an object whose bytes stopped coming is read from its start: the SDK tries again only until the
/// answer's head is there.
const MAX_READS: usize = 4;
/// The user metadata that attributes are kept in: `x-amz-meta-frazil`.
const ATTRIBUTES: &str = "frazil";

const PUT: &str = "write an object";
const GET: &str = "read an object";
const HEAD: &str = "look at an object";
const LIST: &str = "list objects";
const DELETE: &str = "delete objects";

/// S3, or what speaks its protocol, as storage: the object `s3://bucket/a/b` is the key `a/b`, byte for byte.
///
/// Buckets of any region's general purpose are fine; directory buckets are not, since they list in no order. Where an
/// endpoint of one's own is set (`AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, or in the profile), buckets are named in
/// the path: servers other than AWS seldom have a name for each.
///
/// Bounded: 64 requests at once unless told otherwise; objects of 16 MB or more are sent in parts of 8 MB, four at once.
#[derive(Debug, Clone)]
pub struct S3Storage {
    client: Client,
    requests: Arc<Semaphore>,
}

/// An object, if it is not what is known already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfChanged {
    /// It is what is known.
    Unchanged,
    /// There is none.
    Missing,
    /// It is another.
    Changed {
        /// The object.
        bytes: Bytes,
        /// Its ETag.
        version: String,
    },
}

impl S3Storage {
    /// Storage of the account.
    pub fn new(account: &Account) -> Self {
        Self {
            client: client(account),
            requests: Arc::new(Semaphore::new(REQUESTS_AT_ONCE)),
        }
    }

    /// The same, with at most so many requests at once, at least one.
    pub fn with_requests(self, at_once: usize) -> Self {
        Self {
            requests: Arc::new(Semaphore::new(at_once.max(1))),
            ..self
        }
    }

    /// Reads an object unless it is still the version that is `known`.
    pub async fn get_if_changed(
        &self,
        location: &str,
        known: Option<&str>,
        limit_bytes: u64,
    ) -> Result<IfChanged> {
        if let Some(known) = known {
            let at = S3Location::parse(location)?;
            let _turn = self.turn().await;
            let head = self.client.head_object().bucket(at.bucket).key(at.key);
            match head.if_none_match(known).send().await {
                Ok(_) => {}
                Err(error) => {
                    let refusal = Refusal::of(&error);
                    return match refusal.status {
                        Some(304) => Ok(IfChanged::Unchanged),
                        Some(404) => Ok(IfChanged::Missing),
                        _ => Err(failed::failed(HEAD, location, refusal).with_source(error)),
                    };
                }
            }
        }
        Ok(match self.get_with_version(location, None, limit_bytes).await? {
            Some((bytes, version)) => IfChanged::Changed { bytes, version },
            None => IfChanged::Missing,
        })
    }

    /// Waits for its turn.
    async fn turn(&self) -> SemaphorePermit<'_> {
        let turn = self.requests.acquire().await;
        turn.expect("the semaphore is never closed")
    }

    /// Reads an object, or a range of it with both ends included, and its ETag.
    async fn get_with_version(
        &self,
        location: &str,
        range: Option<(u64, u64)>,
        limit_bytes: u64,
    ) -> Result<Option<(Bytes, String)>> {
        let mut reads = 0;
        loop {
            reads += 1;
            match self.read(location, range, limit_bytes).await {
                Err(error) if error.kind() == ErrorKind::Unavailable && reads < MAX_READS => {
                    tracing::debug!(location, reads, %error, "reading again");
                }
                answer => return answer,
            }
        }
    }

    async fn read(
        &self,
        location: &str,
        range: Option<(u64, u64)>,
        limit_bytes: u64,
    ) -> Result<Option<(Bytes, String)>> {
        let at = S3Location::parse(location)?;
        let _turn = self.turn().await;
        let request = self.client.get_object().bucket(at.bucket).key(at.key);
        let request = request.set_range(range.map(|(start, end)| format!("bytes={start}-{end}")));
        let mut answer = match request.send().await {
            Ok(answer) => answer,
            Err(error) => {
                let refusal = Refusal::of(&error);
                return match refusal.code.as_str() {
                    "NoSuchKey" => Ok(None),
                    // The object ends before the range starts.
                    "InvalidRange" => Ok(Some((Bytes::new(), String::new()))),
                    _ => Err(failed::failed(GET, location, refusal).with_source(error)),
                };
            }
        };
        let too_large = |size: u64| {
            Error::new(
                ErrorKind::Internal,
                GET,
                format!("it has {size} bytes or more, and at most {limit_bytes} are read"),
            )
            .with_context("object", location)
        };
        let size = u64::try_from(answer.content_length().unwrap_or(0)).unwrap_or(0);
        if size > limit_bytes {
            return Err(too_large(size));
        }
        let mut bytes = BytesMut::with_capacity(usize::try_from(size).unwrap_or(0));
        while let Some(chunk) = answer.body.next().await {
            let chunk = chunk.map_err(|error| {
                Error::new(
                    ErrorKind::Unavailable,
                    GET,
                    "the connection broke while it was read",
                )
                .with_context("object", location)
                .with_source(error)
            })?;
            bytes.extend_from_slice(&chunk);
            if bytes.len() as u64 > limit_bytes {
                return Err(too_large(bytes.len() as u64));
            }
        }
        Ok(Some((bytes.freeze(), answer.e_tag.unwrap_or_default())))
    }

    async fn delete_chunk(&self, bucket: &str, keys: Vec<String>) -> Result<()> {
        let identifiers = keys.iter().map(|key| {
            let identifier = ObjectIdentifier::builder().key(key).build();
            identifier.map_err(|error| Error::new(ErrorKind::Internal, DELETE, error.to_string()))
        });
        let objects: Vec<ObjectIdentifier> = identifiers.collect::<Result<_>>()?;
        let delete = Delete::builder().set_objects(Some(objects)).quiet(true).build();
        let delete = delete.map_err(|error| Error::new(ErrorKind::Internal, DELETE, error.to_string()))?;
        let _turn = self.turn().await;
        let answer = self
            .client
            .delete_objects()
            .bucket(bucket)
            .delete(delete)
            .send()
            .await;
        let answer = answer.map_err(|error| {
            failed::failed(DELETE, &format!("s3://{bucket}/"), Refusal::of(&error)).with_source(error)
        })?;
        // Only those that were not deleted are answered.
        let Some(refused) = answer.errors().first() else {
            return Ok(());
        };
        let refusal = Refusal {
            code: refused.code().unwrap_or_default().to_owned(),
            status: None,
            message: format!(
                "{} of {} were refused, the first because of {}: {}",
                answer.errors().len(),
                keys.len(),
                refused.code().unwrap_or("nothing that was said"),
                refused.message().unwrap_or_default()
            ),
            is_ambiguous: true,
        };
        let location = format!("s3://{bucket}/{}", refused.key().unwrap_or_default());
        Err(failed::failed(DELETE, &location, refusal))
    }
}

#[async_trait]
impl ObjectStorage for S3Storage {
    async fn put(&self, location: &str, bytes: Bytes, attributes: Option<&str>) -> Result<()> {
        check_attributes(attributes)?;
        let at = S3Location::parse(location)?;
        if bytes.len() >= multipart::THRESHOLD_BYTES {
            return multipart::put(self, location, at, bytes, attributes).await;
        }
        let _turn = self.turn().await;
        let request = self.client.put_object().bucket(at.bucket).key(at.key);
        let request = match attributes {
            Some(text) => request.metadata(ATTRIBUTES, text),
            None => request,
        };
        let sent = request.body(ByteStream::from(bytes)).send().await;
        sent.map(drop)
            .map_err(|error| failed::failed(PUT, location, Refusal::of(&error)).with_source(error))
    }

    async fn get(&self, location: &str, limit_bytes: u64) -> Result<Option<Bytes>> {
        let found = self.get_with_version(location, None, limit_bytes).await?;
        Ok(found.map(|(bytes, _)| bytes))
    }

    async fn get_range(&self, location: &str, start: u64, length: u64) -> Result<Option<Bytes>> {
        if length == 0 {
            let head = self.head(location).await?;
            return Ok(head.map(|_| Bytes::new()));
        }
        let range = (start, start.saturating_add(length - 1));
        let found = self.get_with_version(location, Some(range), length).await?;
        Ok(found.map(|(bytes, _)| bytes))
    }

    async fn head(&self, location: &str) -> Result<Option<ObjectHead>> {
        let at = S3Location::parse(location)?;
        let _turn = self.turn().await;
        let answer = self
            .client
            .head_object()
            .bucket(at.bucket)
            .key(at.key)
            .send()
            .await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                // An answer to HEAD has no body that could name a missing bucket: one is taken for a missing object.
                let refusal = Refusal::of(&error);
                return match (refusal.code.as_str(), refusal.status) {
                    ("NotFound" | "NoSuchKey", _) | (_, Some(404)) => Ok(None),
                    _ => Err(failed::failed(HEAD, location, refusal).with_source(error)),
                };
            }
        };
        Ok(Some(ObjectHead {
            size_bytes: u64::try_from(answer.content_length().unwrap_or(0)).unwrap_or(0),
            modified: modified(answer.last_modified()),
            attributes: answer
                .metadata()
                .and_then(|metadata| metadata.get(ATTRIBUTES))
                .cloned(),
        }))
    }

    async fn list_page(&self, prefix: &str, after: Option<&str>) -> Result<Page> {
        let at = S3Location::parse_prefix(prefix)?;
        let request = self.client.list_objects_v2().bucket(at.bucket).prefix(at.key);
        // What sorts before the prefix is before everything in it.
        let after = after.filter(|after| *after >= prefix);
        let request = match after {
            Some(after) => request.start_after(after.get(prefix.len() - at.key.len()..).unwrap_or_default()),
            None => request,
        };
        let _turn = self.turn().await;
        let answer = request
            .send()
            .await
            .map_err(|error| failed::failed(LIST, prefix, Refusal::of(&error)).with_source(error))?;
        let objects: Vec<ObjectInfo> = answer
            .contents()
            .iter()
            .map(|object| ObjectInfo {
                location: format!("s3://{}/{}", at.bucket, object.key().unwrap_or_default()),
                size_bytes: u64::try_from(object.size().unwrap_or(0)).unwrap_or(0),
                modified: modified(object.last_modified()),
            })
            .collect();
        let next = match answer.is_truncated() {
            Some(true) => objects.last().map(|last| last.location.clone()),
            Some(false) | None => None,
        };
        Ok(Page { objects, next })
    }

    async fn list_folders(&self, prefix: &str) -> Result<Vec<String>> {
        let at = S3Location::parse_prefix(prefix)?;
        let mut folders = Vec::new();
        let mut token = None;
        loop {
            let request = self
                .client
                .list_objects_v2()
                .bucket(at.bucket)
                .prefix(at.key)
                .delimiter("/")
                .set_continuation_token(token);
            let _turn = self.turn().await;
            let answer = request
                .send()
                .await
                .map_err(|error| failed::failed(LIST, prefix, Refusal::of(&error)).with_source(error))?;
            let found = answer.common_prefixes().iter().filter_map(|found| found.prefix());
            folders.extend(found.map(|folder| format!("s3://{}/{folder}", at.bucket)));
            token = answer.next_continuation_token;
            if token.is_none() {
                return Ok(folders);
            }
        }
    }

    async fn delete(&self, locations: &[String]) -> Result<()> {
        let mut chunks: Vec<(&str, Vec<String>)> = Vec::new();
        for location in locations {
            let at = S3Location::parse(location)?;
            match chunks.last_mut() {
                Some((bucket, keys)) if *bucket == at.bucket && keys.len() < MAX_DELETED_AT_ONCE => {
                    keys.push(at.key.to_owned());
                }
                _ => chunks.push((at.bucket, vec![at.key.to_owned()])),
            }
        }
        stream::iter(chunks.into_iter().map(Ok))
            .try_for_each_concurrent(DELETIONS_AT_ONCE, |(bucket, keys)| {
                self.delete_chunk(bucket, keys)
            })
            .await
    }
}

/// Buckets in the path where an endpoint of one's own is set, which the SDK finds in the same places.
fn client(account: &Account) -> Client {
    let sdk = account.sdk();
    let of_service = sdk.service_config().and_then(|settings| {
        let key = ServiceConfigKey::builder()
            .service_id("S3")
            .env("AWS_ENDPOINT_URL")
            .profile("endpoint_url");
        settings.load_config(key.build().ok()?)
    });
    let is_own = sdk.endpoint_url().is_some() || of_service.is_some();
    Client::from_conf(Builder::from(sdk).force_path_style(is_own).build())
}

fn modified(time: Option<&DateTime>) -> TimestampMs {
    TimestampMs(time.and_then(|time| time.to_millis().ok()).unwrap_or(0))
}
