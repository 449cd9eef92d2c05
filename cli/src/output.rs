use std::io::{self, IsTerminal, Write};

use frazil_core::{Error, ErrorKind, Result};
use serde::Serialize;

use crate::arguments::Format;
use crate::failure::{ErrorDocument, error_text};

/// What a command has to say: one JSON document, or text for people.
pub(crate) trait Document: Serialize {
    /// The text, each line ended. `width` is that of the terminal; without one, nothing is left out.
    fn to_text(&self, width: Option<usize>) -> String;
}

/// Where results go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    format: Format,
    width: Option<usize>,
}

impl Output {
    pub(crate) fn to_terminal(format: Format) -> Self {
        let width = terminal_size::terminal_size().filter(|_| io::stdout().is_terminal());
        Self {
            format,
            width: width.map(|(width, _)| usize::from(width.0)),
        }
    }

    /// Prints the document. A reader that has gone (`frazil show | head`) is no error.
    pub(crate) fn print<D: Document>(&self, document: &D) -> Result<()> {
        let text = render(document, self.format, self.width)?;
        write(&mut io::stdout().lock(), &text)
    }

    /// Prints what has just happened, on a line of its own: a document, or text, for people only where there is some.
    #[cfg(feature = "kafka")]
    pub(crate) fn line(&self, document: &impl Serialize, text: Option<&str>) -> Result<()> {
        let line = match self.format {
            Format::Table => text.map(str::to_owned),
            Format::Json => Some(serde_json::to_string(document).map_err(|error| {
                Error::new(ErrorKind::Internal, "write the output as JSON", error.to_string())
                    .with_source(error)
            })?),
        };
        match line {
            Some(line) => write(&mut io::stdout().lock(), &format!("{line}\n")),
            None => Ok(()),
        }
    }

    /// Prints an error: for people on standard error, as a document on standard output.
    pub(crate) fn fail(&self, error: &Error) {
        #[derive(Serialize)]
        struct Failed {
            error: ErrorDocument,
        }
        let document = serde_json::to_string_pretty(&Failed {
            error: ErrorDocument::from(error),
        });
        // There is nobody left to tell when this fails too.
        let _ = match (self.format, document) {
            (Format::Json, Ok(document)) => write(&mut io::stdout().lock(), &format!("{document}\n")),
            (Format::Json | Format::Table, _) => write(&mut io::stderr().lock(), &error_text(error)),
        };
    }
}

fn render<D: Document>(document: &D, format: Format, width: Option<usize>) -> Result<String> {
    match format {
        Format::Table => Ok(document.to_text(width)),
        Format::Json => {
            let mut text = serde_json::to_string_pretty(document).map_err(|error| {
                Error::new(ErrorKind::Internal, "write the output as JSON", error.to_string())
                    .with_source(error)
            })?;
            text.push('\n');
            Ok(text)
        }
    }
}

fn write(to: &mut impl Write, text: &str) -> Result<()> {
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            Err(Error::new(ErrorKind::Internal, "print the output", error.to_string()).with_source(error))
        }
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Pipe(io::ErrorKind);

    impl Write for Pipe {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error_and_a_full_disk_is() {
        assert!(write(&mut Pipe(io::ErrorKind::BrokenPipe), "x").is_ok());
        let error = write(&mut Pipe(io::ErrorKind::StorageFull), "x").unwrap_err();
        assert_eq!(error.to_string(), "cannot print the output: no storage space");
    }

    #[test]
    fn json_is_one_document_with_a_line_end() {
        #[derive(Serialize)]
        struct Answer {
            rows: u64,
        }
        impl Document for Answer {
            fn to_text(&self, width: Option<usize>) -> String {
                format!("{} rows at {width:?}\n", self.rows)
            }
        }
        assert_eq!(
            render(&Answer { rows: 3 }, Format::Json, Some(80)).unwrap(),
            "{\n  \"rows\": 3\n}\n"
        );
        assert_eq!(
            render(&Answer { rows: 3 }, Format::Table, Some(80)).unwrap(),
            "3 rows at Some(80)\n"
        );
    }
}
