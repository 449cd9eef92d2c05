use std::fmt;

/// What the caller should do about an error. The kind is the contract; the text is for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// This record can never be read; the topic's `on_error` decides what becomes of it.
    Poison,
    /// Configuration or input is wrong: fail at once, with every fault listed.
    Invalid,
    /// Something is away or busy: retry with backoff and jitter. Nothing was acknowledged.
    Unavailable,
    /// Somebody else was first: reload and rebase.
    Conflict,
    /// The swap may or may not have happened: read the pointer again, then decide (promise I5).
    CommitUnknown,
    /// A person must choose before this goes on.
    Suspended,
    /// A defect or damaged state: stop, keep everything.
    Internal,
}

impl ErrorKind {
    /// The stable name used in logs, metrics and JSON output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Poison => "poison",
            Self::Invalid => "invalid",
            Self::Unavailable => "unavailable",
            Self::Conflict => "conflict",
            Self::CommitUnknown => "commit_unknown",
            Self::Suspended => "suspended",
            Self::Internal => "internal",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `Result` with Frazil's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: what to do about it, what was being done, why it failed and how to get out.
///
/// ```
/// use frazil_core::{Error, ErrorKind};
///
/// let error = Error::new(ErrorKind::Unavailable, "read the schema", "the registry answered 503")
///     .with_context("schema_id", 7)
///     .with_hint("check that the registry is running");
/// assert_eq!(
///     error.to_string(),
///     "cannot read the schema: the registry answered 503 (schema_id=7); check that the registry is running",
/// );
/// ```
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    operation: &'static str,
    message: String,
    context: Vec<(&'static str, String)>,
    hint: Option<String>,
    code: Option<&'static str>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// `operation` completes “cannot …”; `message` is the reason.
    pub fn new(kind: ErrorKind, operation: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            operation,
            message: message.into(),
            context: Vec::new(),
            hint: None,
            code: None,
            source: None,
        }))
    }

    /// Names a thing that the error is about.
    #[must_use]
    pub fn with_context(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.0.context.push((key, value.to_string()));
        self
    }

    /// Says the way out.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// A stable code for dead letters and JSON output, such as `avro.truncated`.
    #[must_use]
    pub fn with_code(mut self, code: &'static str) -> Self {
        self.0.code = Some(code);
        self
    }

    /// Keeps the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What the caller should do.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What was being done, as the end of “cannot …”.
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// The reason, without operation, context and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The way out, if there is one to name.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The stable code, if one was given.
    pub fn code(&self) -> Option<&'static str> {
        self.0.code
    }

    /// The things that the error is about.
    pub fn context(&self) -> &[(&'static str, String)] {
        &self.0.context
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.0;
        write!(f, "cannot {}: {}", inner.operation, inner.message)?;
        for (index, (key, value)) in inner.context.iter().enumerate() {
            let open = if index == 0 { " (" } else { ", " };
            write!(f, "{open}{key}={value}")?;
        }
        if !inner.context.is_empty() {
            f.write_str(")")?;
        }
        if let Some(hint) = &inner.hint {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.kind())?;
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            write!(f, "\n  caused by: {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn std::error::Error + 'static))
    }
}
