//! Who takes the events: the ingest handler of this process, or a Lambda endpoint.

use std::sync::Arc;
use std::time::Duration;

use frazil_core::{Error, ErrorKind, Result};
use frazil_ingest::{Ingest, IngestReport, TopicOutcome, answer};
use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;

use super::mapping::Answer;

/// Longer than a function may run (15 minutes).
const INVOCATION_TIMEOUT: Duration = Duration::from_secs(15 * 60 + 30);
/// A connection on one machine, or to an endpoint in a region.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest response of Lambda (“Lambda quotas”, 6 MB).
const MAX_RESPONSE_BYTES: usize = 6 * 1024 * 1024;
/// Of what a function says about its failure.
const MAX_SHOWN_CHARS: usize = 500;
/// How Lambda says that the function failed, in the answer to a call that worked.
const FUNCTION_ERROR: &str = "x-amz-function-error";

/// Takes events.
#[derive(Debug, Clone)]
pub(crate) enum Invoker {
    /// The handler of this process.
    InProcess {
        ingest: Arc<Ingest>,
        reports_item_failures: bool,
    },
    /// A Lambda endpoint, such as `http://127.0.0.1:9000/2015-03-31/functions/ingest/invocations`.
    Endpoint {
        client: Client,
        url: Url,
        reports_item_failures: bool,
    },
}

/// An answer, and what else is known of it.
#[derive(Debug)]
pub(crate) struct Invoked {
    pub(crate) answer: Answer,
    /// What the handler of this process did.
    pub(crate) report: Option<IngestReport>,
}

impl Invoker {
    pub(crate) fn endpoint(url: &str, reports_item_failures: bool) -> Result<Self> {
        let invalid = |message: String| {
            Error::new(ErrorKind::Invalid, "use the endpoint", message)
                .with_context("endpoint", url)
                .with_hint("write it as http://127.0.0.1:9000/2015-03-31/functions/ingest/invocations")
        };
        let parsed = Url::parse(url).map_err(|error| invalid(error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(invalid(format!("`{}` is not http or https", parsed.scheme())));
        }
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(INVOCATION_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| invalid(error.to_string()))?;
        Ok(Self::Endpoint {
            client,
            url: parsed,
            reports_item_failures,
        })
    }

    /// How the handler is called in output and in the position's file.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::InProcess { .. } => "in process".to_owned(),
            Self::Endpoint { url, .. } => url.to_string(),
        }
    }

    /// Hands an event over. An error is one that no retry helps against.
    pub(crate) async fn invoke(self, event: Vec<u8>) -> Result<Invoked> {
        match self {
            Self::InProcess {
                ingest,
                reports_item_failures,
            } => in_process(&ingest, &event, reports_item_failures).await,
            Self::Endpoint {
                client,
                url,
                reports_item_failures,
            } => {
                let request = client
                    .post(url)
                    .header("content-type", "application/json")
                    .body(event);
                let answer = match request.send().await {
                    Ok(response) => read(response, reports_item_failures).await,
                    Err(error) => Answer::NotInvoked(reason(&error)),
                };
                Ok(Invoked { answer, report: None })
            }
        }
    }
}

async fn in_process(ingest: &Ingest, event: &[u8], reports_item_failures: bool) -> Result<Invoked> {
    let report = match ingest.handle(event).await {
        Ok(report) => report,
        // The configuration or the warehouse is wrong: the same event will never be taken.
        Err(error) if error.kind() == ErrorKind::Invalid => return Err(error),
        Err(error) => {
            return Ok(Invoked {
                answer: Answer::Failed(error.to_string()),
                report: None,
            });
        }
    };
    let answer = match answer(&report, reports_item_failures) {
        Err(error) => Answer::Failed(error.to_string()),
        Ok(answer) if answer.batch_item_failures.is_empty() => Answer::Taken,
        Ok(answer) => Answer::ItemFailures(
            answer
                .batch_item_failures
                .into_iter()
                .map(|failure| (failure.item_identifier.partition, failure.item_identifier.offset))
                .collect(),
        ),
    };
    Ok(Invoked {
        answer,
        report: Some(report),
    })
}

/// What an endpoint's answer means.
async fn read(mut response: Response, reports_item_failures: bool) -> Answer {
    let status = response.status();
    let function_error = response.headers().get(FUNCTION_ERROR).cloned();
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= MAX_RESPONSE_BYTES => {
                body.extend_from_slice(&chunk)
            }
            Ok(Some(_)) => {
                return Answer::Failed(format!("its response is longer than {MAX_RESPONSE_BYTES} bytes"));
            }
            Ok(None) => break,
            // It may have been done; it is asked again, and what was taken is recognised.
            Err(error) => return Answer::NotInvoked(reason(&error)),
        }
    }
    judge(
        status,
        function_error.as_ref().map(|kind| kind.as_bytes()),
        &body,
        reports_item_failures,
    )
}

fn judge(
    status: StatusCode,
    function_error: Option<&[u8]>,
    body: &[u8],
    reports_item_failures: bool,
) -> Answer {
    let shown = || -> String {
        let text = String::from_utf8_lossy(body);
        text.trim().chars().take(MAX_SHOWN_CHARS).collect()
    };
    if let Some(kind) = function_error {
        return Answer::Failed(format!(
            "the function failed ({}): {}",
            String::from_utf8_lossy(kind),
            shown()
        ));
    }
    // Local runtimes say so in the body alone, with a 500, or even a 200 when the function could not start.
    if is_function_error(body) {
        return Answer::Failed(format!("the function failed: {}", shown()));
    }
    if !status.is_success() {
        return Answer::NotInvoked(format!("the endpoint answers {status}: {}", shown()));
    }
    if !reports_item_failures {
        return Answer::Taken;
    }
    match item_failures(body) {
        Ok(failures) if failures.is_empty() => Answer::Taken,
        Ok(failures) => Answer::ItemFailures(failures),
        Err(reason) => Answer::Failed(reason),
    }
}

/// Whether this is what a Lambda runtime makes of an error.
fn is_function_error(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct FunctionError {
        #[serde(rename = "errorType")]
        _kind: String,
        #[serde(rename = "errorMessage")]
        _message: String,
    }
    serde_json::from_slice::<FunctionError>(body).is_ok()
}

/// `batchItemFailures`: nothing, null, an empty object or an empty list is success (“Reporting batch item failures”).
fn item_failures(body: &[u8]) -> std::result::Result<Vec<(String, i64)>, String> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Response {
        batch_item_failures: Option<Vec<Failure>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Failure {
        item_identifier: Item,
    }
    #[derive(Deserialize)]
    struct Item {
        partition: String,
        offset: i64,
    }
    if body.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let response: Option<Response> = serde_json::from_slice(body)
        .map_err(|error| format!("the function's response is not one of batchItemFailures: {error}"))?;
    let failures = response
        .and_then(|response| response.batch_item_failures)
        .unwrap_or_default();
    Ok(failures
        .into_iter()
        .map(|failure| (failure.item_identifier.partition, failure.item_identifier.offset))
        .collect())
}

/// An HTTP client's error, with the cause that it keeps to itself.
fn reason(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// How many records of a report were parked, and why; and how many became dead letters.
pub(crate) fn parked(report: &IngestReport) -> (u64, Option<&str>) {
    let mut parked = (0, None);
    for topic in &report.topics {
        if let TopicOutcome::Parked { reason } = &topic.outcome {
            parked = (parked.0 + topic.records, Some(reason.as_str()));
        }
    }
    parked
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ERROR: &str = r#"{"errorType":"unavailable","errorMessage":"the bucket is away"}"#;
    const SEVEN: &str = r#"{"batchItemFailures":[{"itemIdentifier":{"partition":"orders-0","offset":7}}]}"#;

    #[test]
    fn an_answer_means_what_lambda_means() {
        let failed = |reason: &str| Answer::Failed(reason.to_owned());
        let item = |offset| Answer::ItemFailures(vec![("orders-0".to_owned(), offset)]);
        for (status, function_error, body, reports, expected) in [
            (200, None, "null", true, Answer::Taken),
            (200, None, "", true, Answer::Taken),
            (200, None, "{}", true, Answer::Taken),
            (200, None, r#"{"batchItemFailures":null}"#, true, Answer::Taken),
            (200, None, r#"{"batchItemFailures":[]}"#, true, Answer::Taken),
            (
                500,
                None,
                ERROR,
                false,
                failed(&format!("the function failed: {ERROR}")),
            ),
            (
                200,
                None,
                ERROR,
                true,
                failed(&format!("the function failed: {ERROR}")),
            ),
            (200, None, SEVEN, true, item(7)),
            (200, None, SEVEN, false, Answer::Taken),
            (200, None, "done", false, Answer::Taken),
            (
                200,
                None,
                r#"{"batchItemFailures":[{"itemIdentifier":null}]}"#,
                true,
                failed(
                    "the function's response is not one of batchItemFailures: invalid type: null, expected struct Item at line 1 column 44",
                ),
            ),
            (
                200,
                Some("Unhandled"),
                "boom",
                true,
                failed("the function failed (Unhandled): boom"),
            ),
            (
                500,
                Some("Handled"),
                "boom",
                false,
                failed("the function failed (Handled): boom"),
            ),
            (
                429,
                None,
                "slow down",
                true,
                Answer::NotInvoked("the endpoint answers 429 Too Many Requests: slow down".to_owned()),
            ),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let judged = judge(
                status,
                function_error.map(str::as_bytes),
                body.as_bytes(),
                reports,
            );
            assert_eq!(judged, expected, "{status} {function_error:?} {body}");
        }
    }

    #[test]
    fn an_endpoint_is_an_address() {
        for (url, reason) in [
            ("127.0.0.1:9000/x", "relative URL without a base"),
            ("ftp://host/x", "`ftp` is not http or https"),
        ] {
            let error = Invoker::endpoint(url, false).unwrap_err();
            assert_eq!(
                (error.kind(), error.message()),
                (ErrorKind::Invalid, reason),
                "{url}"
            );
        }
    }
    proptest! {
        #[test]
        fn arbitrary_answers_are_judged(
            status in 200_u16..600,
            body in prop::collection::vec(any::<u8>(), 0..100),
            reports in any::<bool>(),
        ) {
            let answer = judge(StatusCode::from_u16(status).unwrap(), None, &body, reports);
            prop_assert_eq!(matches!(answer, Answer::NotInvoked(_)), status >= 300);
        }

        /// Nothing that is no list of items passes for success.
        #[test]
        fn mutated_answers_are_no_success(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut body = SEVEN.as_bytes().to_vec();
            for (index, byte) in changes {
                // Another name for the list would be an object without one, which is success.
                let index = 22 + index.index(body.len() - 22);
                body[index] = byte;
            }
            let answer = judge(StatusCode::OK, None, &body, true);
            prop_assert!(answer != Answer::Taken, "{}", String::from_utf8_lossy(&body));
        }
    }
}
