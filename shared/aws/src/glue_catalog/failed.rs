use frazil_core::{Error, ErrorKind};

use crate::failure::Refusal;

/// What to do about an error of a request that changes nothing, or may be made again.
pub(super) fn reading(operation: &'static str, refusal: Refusal) -> Error {
    let (kind, hint) = match refusal.code.as_str() {
        "InvalidInputException" | "ValidationException" => (ErrorKind::Invalid, None),
        "EntityNotFoundException" => (
            ErrorKind::Invalid,
            Some("check `catalog_id` and `region` in [aws]: the database or catalog is not there"),
        ),
        "ResourceNumberLimitExceededException" => (
            ErrorKind::Unavailable,
            Some("a quota of the Glue Data Catalog is used up: ask AWS for more, or remove what is not used"),
        ),
        "GlueEncryptionException" => (
            ErrorKind::Unavailable,
            Some("allow the role the KMS key of the Data Catalog, and check that it is enabled"),
        ),
        _ if refusal.is_denial() => (
            ErrorKind::Unavailable,
            Some(
                "allow the role glue:GetDatabase, CreateDatabase, GetTable, GetTables, CreateTable, UpdateTable and \
                 DeleteTable; where Lake Formation governs, also lakeformation:GetDataAccess and grants on the \
                 database, its tables and their location",
            ),
        ),
        _ if refusal.status.is_none() && refusal.code.is_empty() => (
            ErrorKind::Unavailable,
            Some("check credentials, region and network"),
        ),
        _ => (ErrorKind::Unavailable, None),
    };
    let error = refusal.error(kind, operation);
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// What to do about an error of a creation or swap: what may have happened all the same is `CommitUnknown`, and
/// whoever asked reads the pointer again (promise I5).
pub(super) fn writing(operation: &'static str, refusal: Refusal) -> Error {
    match refusal.code.as_str() {
        "ConcurrentModificationException" => {
            Error::new(ErrorKind::Conflict, operation, "somebody else moved it meanwhile")
        }
        "AlreadyExistsException" => Error::new(ErrorKind::Conflict, operation, "the name is taken"),
        // Of a table that is swapped, or of the database that one is made in.
        "EntityNotFoundException" => Error::new(ErrorKind::Conflict, operation, "it is gone")
            .with_hint("the database or the table was dropped meanwhile; the next run makes what is missing"),
        _ if refusal.is_ambiguous => refusal.error(ErrorKind::CommitUnknown, operation),
        _ => reading(operation, refusal),
    }
}

/// Whether Glue says that the table is more than it holds.
pub(super) fn is_too_large(refusal: &Refusal) -> bool {
    let message = refusal.message.to_ascii_lowercase();
    !refusal.is_ambiguous
        && refusal.status != Some(403)
        && [
            "size exceed",
            "too large",
            "exceeds the maximum",
            "exceeded the maximum",
            "exceed the limit",
        ]
        .iter()
        .any(|words| message.contains(words))
}
