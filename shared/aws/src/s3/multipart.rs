use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use bytes::Bytes;
use frazil_core::{Error, ErrorKind, Result};
use futures::stream::{self, StreamExt, TryStreamExt};

use super::failed::failed;
use super::location::S3Location;
use super::{ATTRIBUTES, PUT, S3Storage};
use crate::failure::Refusal;

/// From here on, parts: what is lost with a broken connection is one part.
pub(super) const THRESHOLD_BYTES: usize = 16 * 1024 * 1024;
/// S3 takes parts from 5 MB on, and at most 10,000 of them: 80 GB.
const PART_BYTES: usize = 8 * 1024 * 1024;
/// Parts sent at once.
const PARTS_AT_ONCE: usize = 4;

/// Sends an object in parts. It is there once all are; when that fails, the parts are given back.
pub(super) async fn put(
    storage: &S3Storage,
    location: &str,
    at: S3Location<'_>,
    bytes: Bytes,
    attributes: Option<&str>,
) -> Result<()> {
    let client = &storage.client;
    let created = {
        let _turn = storage.turn().await;
        let request = client.create_multipart_upload().bucket(at.bucket).key(at.key);
        let request = match attributes {
            Some(text) => request.metadata(ATTRIBUTES, text),
            None => request,
        };
        request.send().await
    };
    let created = created.map_err(|error| failed(PUT, location, Refusal::of(&error)).with_source(error))?;
    let Some(upload) = created.upload_id else {
        return Err(
            Error::new(ErrorKind::Unavailable, PUT, "S3 named no upload").with_context("object", location)
        );
    };
    let sent = send(storage, location, at, &upload, bytes).await;
    if sent.is_err() {
        // Best effort: a lifecycle rule takes what stays. An upload that is complete is not there to be aborted.
        let _turn = storage.turn().await;
        let aborted = client
            .abort_multipart_upload()
            .bucket(at.bucket)
            .key(at.key)
            .upload_id(&upload)
            .send()
            .await;
        if let Err(error) = aborted {
            tracing::warn!(location, upload, error = %Refusal::of(&error), "parts of an object that failed stay");
        }
    }
    sent
}

async fn send(
    storage: &S3Storage,
    location: &str,
    at: S3Location<'_>,
    upload: &str,
    bytes: Bytes,
) -> Result<()> {
    let client = &storage.client;
    let starts = (0..bytes.len()).step_by(PART_BYTES);
    let parts = starts.zip(1i32..).map(|(start, number)| {
        let body = bytes.slice(start..bytes.len().min(start + PART_BYTES));
        async move {
            let _turn = storage.turn().await;
            let request = client.upload_part().bucket(at.bucket).key(at.key);
            let request = request.upload_id(upload).part_number(number);
            let sent = request.body(ByteStream::from(body)).send().await;
            let sent = sent.map_err(|error| failed(PUT, location, Refusal::of(&error)).with_source(error))?;
            Ok::<_, Error>(
                CompletedPart::builder()
                    .part_number(number)
                    .set_e_tag(sent.e_tag)
                    .set_checksum_crc32(sent.checksum_crc32)
                    .build(),
            )
        }
    });
    let parts: Vec<CompletedPart> = stream::iter(parts).buffered(PARTS_AT_ONCE).try_collect().await?;
    let whole = CompletedMultipartUpload::builder().set_parts(Some(parts)).build();
    let _turn = storage.turn().await;
    let request = client.complete_multipart_upload().bucket(at.bucket).key(at.key);
    let completed = request.upload_id(upload).multipart_upload(whole).send().await;
    completed
        .map(drop)
        .map_err(|error| failed(PUT, location, Refusal::of(&error)).with_source(error))
}
