use std::process::ExitCode;

use frazil_core::{Error, ErrorKind};
use serde::Serialize;
use serde_json::{Map, Value};

/// What a command came to, when it did not end with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All of it was done.
    Done,
    /// Something was found or left undone; the output says what.
    Failed,
    /// The input is wrong; the output says where.
    Invalid,
    /// A topic waits for a person.
    Suspended,
}

impl Outcome {
    pub(crate) fn exit_code(self) -> ExitCode {
        ExitCode::from(self.code())
    }

    fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Invalid => 2,
            Self::Suspended => 3,
        }
    }

    /// The outcome that an error means.
    pub(crate) fn of(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Invalid => Self::Invalid,
            ErrorKind::Suspended => Self::Suspended,
            ErrorKind::Poison
            | ErrorKind::Unavailable
            | ErrorKind::Conflict
            | ErrorKind::CommitUnknown
            | ErrorKind::Internal => Self::Failed,
        }
    }
}

/// The exit code of an error.
pub(crate) fn exit_code(kind: ErrorKind) -> ExitCode {
    Outcome::of(kind).exit_code()
}

/// An error in JSON output.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ErrorDocument {
    kind: &'static str,
    code: Option<&'static str>,
    operation: &'static str,
    message: String,
    context: Map<String, Value>,
    hint: Option<String>,
}

impl From<&Error> for ErrorDocument {
    fn from(error: &Error) -> Self {
        let context = error
            .context()
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone().into()));
        Self {
            kind: error.kind().as_str(),
            code: error.code(),
            operation: error.operation(),
            message: error.message().to_owned(),
            context: context.collect(),
            hint: error.hint().map(str::to_owned),
        }
    }
}

/// An error for people: what could not be done and why, then the way out.
pub(crate) fn error_text(error: &Error) -> String {
    let mut text = format!("error: cannot {}: {}", error.operation(), error.message());
    let context: Vec<String> = error
        .context()
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    if !context.is_empty() {
        text.push_str(&format!(" ({})", context.join(", ")));
    }
    text.push('\n');
    if let Some(hint) = error.hint() {
        text.push_str(&format!("hint: {hint}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error() -> Error {
        Error::new(
            ErrorKind::Unavailable,
            "read the schema",
            "the registry answered 503",
        )
        .with_context("schema_id", 7)
        .with_context("topic", "orders")
        .with_code("registry.away")
        .with_hint("check that the registry is running")
    }

    #[test]
    fn people_read_the_reason_and_the_way_out() {
        assert_eq!(
            error_text(&error()),
            "error: cannot read the schema: the registry answered 503 (schema_id=7, topic=orders)\n\
             hint: check that the registry is running\n"
        );
        let bare = Error::new(ErrorKind::Internal, "write", "the disk is full");
        assert_eq!(error_text(&bare), "error: cannot write: the disk is full\n");
    }

    #[test]
    fn programs_read_the_kind() {
        assert_eq!(
            serde_json::to_string(&ErrorDocument::from(&error())).unwrap(),
            r#"{"kind":"unavailable","code":"registry.away","operation":"read the schema","message":"the registry answered 503","context":{"schema_id":"7","topic":"orders"},"hint":"check that the registry is running"}"#
        );
    }

    #[test]
    fn exit_codes_follow_the_kind() {
        for (kind, code) in [
            (ErrorKind::Poison, 1),
            (ErrorKind::Invalid, 2),
            (ErrorKind::Unavailable, 1),
            (ErrorKind::Conflict, 1),
            (ErrorKind::CommitUnknown, 1),
            (ErrorKind::Suspended, 3),
            (ErrorKind::Internal, 1),
        ] {
            assert_eq!(Outcome::of(kind).code(), code, "{kind}");
        }
        assert_eq!(Outcome::Done.code(), 0);
    }
}
