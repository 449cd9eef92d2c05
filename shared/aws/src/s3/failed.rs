use frazil_core::{Error, ErrorKind};

use crate::failure::Refusal;

/// What to do about an error of S3, by its code. What it refuses to do for us is `Unavailable`: nothing is lost while
/// somebody repairs it.
pub(super) fn failed(operation: &'static str, location: &str, refusal: Refusal) -> Error {
    let (kind, hint) = match refusal.code.as_str() {
        "NoSuchBucket" => (
            ErrorKind::Invalid,
            "create the bucket, or correct `warehouse` in frazil.toml",
        ),
        "PermanentRedirect" | "TemporaryRedirect" | "IllegalLocationConstraintException" => (
            ErrorKind::Invalid,
            "the bucket is in another region: set `region` in [aws], or AWS_REGION",
        ),
        "AuthorizationHeaderMalformed" => (
            ErrorKind::Unavailable,
            "check `region` in [aws] or AWS_REGION: it should be the bucket's",
        ),
        "InvalidObjectState" => (
            ErrorKind::Unavailable,
            "the object is archived: restore it, and keep lifecycle rules away from the warehouse",
        ),
        "KMS.DisabledException" | "KMS.NotFoundException" | "KMS.InvalidStateException" => {
            (ErrorKind::Unavailable, "enable the KMS key of the bucket again")
        }
        _ if refusal.is_denial() => (
            ErrorKind::Unavailable,
            "allow the role s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload on the \
             warehouse's objects, s3:ListBucket on its bucket (without it, S3 says 403 of an object that is not \
             there), and the bucket's KMS key",
        ),
        _ if refusal.status.is_none() && refusal.code.is_empty() => (
            ErrorKind::Unavailable,
            "check credentials, region and network: in a VPC, S3 needs a gateway endpoint or NAT",
        ),
        _ => (
            ErrorKind::Unavailable,
            "S3 repairs itself; what was asked is tried again",
        ),
    };
    refusal
        .error(kind, operation)
        .with_context("object", location)
        .with_hint(hint)
}
