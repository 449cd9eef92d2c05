use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};

use frazil_core::{Error, ErrorKind};
use serde::Serialize;

/// How many faults are listed; a file that is wrong everywhere does not fill the screen (or the log).
const MAX_FAULTS: usize = 100;
/// How many characters of a key, a message or a hint are shown: they repeat what was written.
const MAX_SHOWN_CHARS: usize = 400;
/// Longest name that is compared with the known ones: comparing costs the product of both lengths.
const MAX_COMPARED_BYTES: usize = 64;

/// A place in the file, both counted from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// One thing that is wrong with the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The key, as TOML writes it: `topics."web.clicks".format`. Empty when the fault is about no key.
    pub key_path: String,
    /// Where it is; none when the file could not be read.
    pub position: Option<Position>,
    /// What is wrong.
    pub message: String,
    /// The way out, if there is one to name.
    pub hint: Option<String>,
}

/// Everything that is wrong with a configuration, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFaults {
    path: PathBuf,
    faults: Vec<Fault>,
    unlisted: usize,
}

impl ConfigFaults {
    /// A fault of the file as a whole.
    pub(crate) fn of_file(path: &Path, message: String, hint: &str) -> Self {
        let fault = Fault {
            key_path: String::new(),
            position: None,
            message,
            hint: Some(hint.to_owned()),
        };
        Self {
            path: path.to_owned(),
            faults: vec![fault],
            unlisted: 0,
        }
    }

    /// The file, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The faults, at least one and at most 100.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// How many faults there are, those beyond the listed ones included.
    pub fn count(&self) -> usize {
        self.faults.len() + self.unlisted
    }
}

impl fmt::Display for ConfigFaults {
    /// One line per fault: `frazil.toml:12:3: topics.orders.format: …; …`, as compilers write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}:", self.path.display())?;
            if let Some(Position { line, column }) = fault.position {
                write!(f, "{line}:{column}:")?;
            }
            if !fault.key_path.is_empty() {
                write!(f, " {}:", fault.key_path)?;
            }
            write!(f, " {}", fault.message)?;
            if let Some(hint) = &fault.hint {
                write!(f, "; {hint}")?;
            }
        }
        if self.unlisted > 0 {
            write!(f, "\n… and {} more", self.unlisted)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigFaults {}

impl From<ConfigFaults> for Error {
    fn from(faults: ConfigFaults) -> Self {
        let count = match faults.count() {
            1 => "1 fault".to_owned(),
            count => format!("{count} faults"),
        };
        Error::new(
            ErrorKind::Invalid,
            "use the configuration",
            format!("{count} found\n{faults}"),
        )
        .with_code("config.invalid")
    }
}

/// Why a value is refused, before it is known where it stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Where a value stands: its key path, and its first byte in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) key_path: String,
    pub(crate) byte: usize,
}

/// A value that knows where it stands, so that a later check can point at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) at: At,
}

/// Collects faults while a text is read.
#[derive(Debug, Default)]
pub(crate) struct FaultList {
    faults: RefCell<Vec<(At, Problem)>>,
    unlisted: RefCell<usize>,
}

impl FaultList {
    pub(crate) fn add(&self, at: &At, problem: Problem) {
        let mut faults = self.faults.borrow_mut();
        if faults.len() < MAX_FAULTS {
            faults.push((at.clone(), problem));
        } else {
            *self.unlisted.borrow_mut() += 1;
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.faults.borrow().len() + *self.unlisted.borrow()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.faults.borrow().is_empty()
    }

    /// The faults in the order of the file, with line and column.
    pub(crate) fn into_faults(self, path: &Path, text: &str) -> ConfigFaults {
        let mut faults = self.faults.into_inner();
        faults.sort_by_key(|(at, _)| at.byte);
        let faults = faults
            .into_iter()
            .map(|(at, problem)| Fault {
                key_path: shown(at.key_path),
                position: Some(position(text, at.byte)),
                message: shown(problem.message),
                hint: problem.hint.map(shown),
            })
            .collect();
        ConfigFaults {
            path: path.to_owned(),
            faults,
            unlisted: self.unlisted.into_inner(),
        }
    }
}

fn shown(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_SHOWN_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

fn position(text: &str, byte: usize) -> Position {
    let mut end = byte.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Position {
        line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

/// `wanted` as a part of a key path: bare where TOML allows it, quoted elsewhere.
pub(crate) fn join_key(parent: &str, key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let key = if bare {
        key.to_owned()
    } else {
        format!("\"{}\"", key.escape_debug())
    };
    if parent.is_empty() {
        key
    } else {
        format!("{parent}.{key}")
    }
}

/// The name closest to what was written, if one is close enough to be what was meant.
pub(crate) fn closest<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if written.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let folded = |name: &str| name.to_lowercase().replace('-', "_");
    let written = folded(written);
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(&written, &folded(name)), name))
        .filter(|(distance, name)| *distance <= name.chars().count().max(written.chars().count()) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}
