use std::path::Path;

use bytes::Bytes;
use frazil_config::Place;
use frazil_core::{Error, ErrorKind, Result};
use frazil_deployment::FilesOnS3;
use frazil_ingest::IngestOptions;
use serde::Deserialize;

use crate::commands::ingest::{Ingested, IngestedEvent, Stopped};
use crate::failure::Outcome;
use crate::output::Output;
use crate::session::{EventFile, Handlers, MAX_EVENT_FILE_BYTES, Session};

/// What Lambda writes to an on-failure destination on S3 (AWS's documentation, “Capturing discarded batches”).
#[derive(Debug, Deserialize)]
struct FailedInvocation {
    /// The event, as the text of its JSON.
    payload: String,
}

/// Something to replay, not read yet.
enum Failed {
    Here(EventFile),
    OnS3(String),
}

/// Ingests failed invocations in the order of their names, which begin with the time, up to the first that cannot be
/// taken.
pub(crate) async fn replay(session: &Session, places: &[Place], output: &Output) -> Result<Outcome> {
    let s3 = FilesOnS3::new(session.config().aws()).await;
    let mut failed = Vec::new();
    for place in places {
        match place {
            Place::Local(path) => {
                let files = EventFile::expand(std::slice::from_ref(path))?;
                failed.extend(files.into_iter().map(Failed::Here));
            }
            Place::S3(location) => failed.extend(s3.expand(location).await?.into_iter().map(Failed::OnS3)),
        }
    }
    let warehouse = session.warehouse().await?;
    let progress = session.progress();
    let mut handlers = Handlers::with(IngestOptions {
        backfill: true,
        ..IngestOptions::default()
    });
    let mut ingested = Ingested::default();
    for (index, failed_one) in failed.iter().enumerate() {
        let name = failed_one.name();
        progress.say(format!("ingesting {name} ({} of {})", index + 1, failed.len()));
        let taken = async {
            let bytes = match failed_one {
                Failed::Here(file) => Bytes::from(file.read()?),
                Failed::OnS3(location) => s3.read(location, MAX_EVENT_FILE_BYTES).await?,
            };
            let event = event_of(&bytes, &name)?;
            let handler = session.ingest(&mut handlers, &warehouse, failed_one.path())?;
            handler.handle(event.as_bytes()).await
        };
        match taken.await {
            Ok(report) => ingested.events.push(IngestedEvent::new(name, report)),
            Err(error) => {
                ingested.stopped = Some(Stopped::new(name, &error, failed.len() - index - 1));
                break;
            }
        }
    }
    drop(progress);
    output.print(&ingested)?;
    Ok(ingested.outcome())
}

impl Failed {
    fn name(&self) -> String {
        match self {
            Self::Here(file) => file.name(),
            Self::OnS3(location) => location.clone(),
        }
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Here(file) => file.path(),
            Self::OnS3(_) => None,
        }
    }
}

/// The event in a failed invocation. Destinations other than S3 have none.
fn event_of(bytes: &[u8], name: &str) -> Result<String> {
    let refuse = |reason: String| {
        Error::new(ErrorKind::Invalid, "replay a failed invocation", reason)
            .with_context("object", name)
            .with_hint("name what Lambda wrote to an on-failure destination on S3; events themselves are for `frazil ingest`")
    };
    serde_json::from_slice(bytes)
        .map(|FailedInvocation { payload }| payload)
        .map_err(|error| refuse(error.to_string()).with_source(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_is_in_the_payload() {
        let object =
            br#"{"version":"1.0","timestamp":"2026-11-30T10:00:00.000Z","requestContext":{"requestId":"x",
            "condition":"RetriesExhausted","approximateInvokeCount":3},"payload":"{\"records\":{}}"}"#;
        assert_eq!(event_of(object, "s3://b/k").unwrap(), r#"{"records":{}}"#);
        let error = event_of(br#"{"records":{}}"#, "s3://b/k")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("missing field `payload`") && error.contains("object=s3://b/k"),
            "{error}"
        );
        assert!(event_of(br#"{"payload":{"records":{}}}"#, "s3://b/k").is_err());
    }
}
