use frazil_core::{Error, ErrorKind};

/// Why a record cannot be decoded, collected on the way out of the nesting.
#[derive(Debug)]
pub(crate) struct Fault {
    code: &'static str,
    message: String,
    hint: Option<String>,
    /// Innermost first.
    path: Vec<String>,
}

/// Boxed, so that a decoded value costs no more to return than a pointer.
pub(crate) type Decoded<T> = Result<T, Box<Fault>>;

impl Fault {
    #[cold]
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            code,
            message: message.into(),
            hint: None,
            path: Vec::new(),
        })
    }

    #[cold]
    pub(crate) fn with_hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<Self> {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the field (or `[]`) that the fault is inside.
    #[cold]
    pub(crate) fn inside(mut self: Box<Self>, step: &str) -> Box<Self> {
        self.path.push(step.to_owned());
        self
    }

    pub(crate) fn into_error(self) -> Error {
        let mut path = String::new();
        for step in self.path.iter().rev() {
            if !path.is_empty() && step != "[]" {
                path.push('.');
            }
            path.push_str(step);
        }
        let message = if path.is_empty() {
            self.message
        } else {
            format!("field `{path}`: {}", self.message)
        };
        let mut error = Error::new(ErrorKind::Poison, "decode the record", message).with_code(self.code);
        if !path.is_empty() {
            error = error.with_context("field", path);
        }
        match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}
