use std::fmt;

use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use frazil_core::{Error, ErrorKind};

/// What an error of the SDK says, before it is text.
pub(crate) struct Refusal {
    /// The service's code; empty when no answer came.
    pub(crate) code: String,
    /// The HTTP status; `None` when no answer came.
    pub(crate) status: Option<u16>,
    /// The service's words, or the SDK's.
    pub(crate) message: String,
    /// Whether the request may have been carried out all the same.
    pub(crate) is_ambiguous: bool,
}

impl Refusal {
    pub(crate) fn of<E>(error: &SdkError<E, HttpResponse>) -> Self
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let status = error.raw_response().map(|response| response.status().as_u16());
        let code = error.code().unwrap_or_default().to_owned();
        let message = match (error.message(), code.as_str()) {
            (Some(message), code) if !code.is_empty() => format!("{code}: {message}"),
            (None, code) if !code.is_empty() => code.to_owned(),
            _ => DisplayErrorContext(error).to_string(),
        };
        let is_ambiguous = match error {
            SdkError::ConstructionFailure(_) => false,
            SdkError::DispatchFailure(failure) => !failure.is_user(),
            SdkError::ServiceError(_) => status.is_none_or(|status| status >= 500) && !is_throttling(&code),
            _ => true,
        };
        Self {
            code,
            status,
            message,
            is_ambiguous,
        }
    }

    /// Whether the service had no time for the request, and did nothing.
    pub(crate) fn is_throttling(&self) -> bool {
        is_throttling(&self.code) || self.status == Some(429)
    }

    /// Whether who asks may not, or cannot say who they are.
    pub(crate) fn is_denial(&self) -> bool {
        matches!(
            self.code.as_str(),
            "AccessDenied"
                | "AccessDeniedException"
                | "AllAccessDisabled"
                | "AuthorizationHeaderMalformed"
                | "ExpiredToken"
                | "ExpiredTokenException"
                | "Forbidden"
                | "InvalidAccessKeyId"
                | "InvalidClientTokenId"
                | "InvalidSignatureException"
                | "InvalidToken"
                | "SignatureDoesNotMatch"
                | "UnrecognizedClientException"
        ) || self.status == Some(403)
    }

    /// Ours, of this kind.
    pub(crate) fn error(self, kind: ErrorKind, operation: &'static str) -> Error {
        Error::new(kind, operation, self.message)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

fn is_throttling(code: &str) -> bool {
    matches!(
        code,
        "Throttling"
            | "ThrottlingException"
            | "ThrottledException"
            | "TooManyRequestsException"
            | "RequestLimitExceeded"
            | "RequestThrottled"
            | "RequestThrottledException"
            | "SlowDown"
            | "BandwidthLimitExceeded"
            | "ProvisionedThroughputExceededException"
            | "LimitExceededException"
    )
}
