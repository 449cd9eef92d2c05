use std::io;
use std::path::Path;

use frazil_core::{Error, ErrorKind};

/// Says what an I/O error means for the caller, and the way out.
pub(crate) fn io_failure(operation: &'static str, path: &Path, error: io::Error) -> Error {
    use io::ErrorKind as Io;
    let (kind, reason, hint) = match error.kind() {
        Io::StorageFull | Io::QuotaExceeded => (
            ErrorKind::Unavailable,
            "the disk is full",
            "free some space; nothing half-written is left behind",
        ),
        Io::PermissionDenied => (
            ErrorKind::Invalid,
            "permission denied",
            "give this user write access to the whole warehouse",
        ),
        Io::ReadOnlyFilesystem => (
            ErrorKind::Invalid,
            "the file system is read-only",
            "choose a warehouse on a writable one",
        ),
        Io::NotADirectory | Io::AlreadyExists => (
            ErrorKind::Invalid,
            "a file is where a directory must be",
            "move that file away or choose another warehouse",
        ),
        Io::IsADirectory | Io::DirectoryNotEmpty => (
            ErrorKind::Invalid,
            "a directory is where a file must be",
            "move that directory away",
        ),
        Io::InvalidFilename => (
            ErrorKind::Invalid,
            "the name is too long for this file system",
            "a part between two `/` has at most 240 bytes",
        ),
        Io::CrossesDevices => (
            ErrorKind::Invalid,
            "the warehouse spans several file systems",
            "keep it on one, so that files appear in one step",
        ),
        _ => {
            let text = error.to_string();
            return Error::new(ErrorKind::Unavailable, operation, text)
                .with_context("path", path.display())
                .with_source(error);
        }
    };
    Error::new(kind, operation, reason)
        .with_context("path", path.display())
        .with_hint(hint)
        .with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_says_what_to_do() {
        // Numbers of Linux, as the kernel answers them.
        for (number, kind, reason) in [
            (28, ErrorKind::Unavailable, "the disk is full"),
            (122, ErrorKind::Unavailable, "the disk is full"),
            (13, ErrorKind::Invalid, "permission denied"),
            (30, ErrorKind::Invalid, "the file system is read-only"),
            (20, ErrorKind::Invalid, "a file is where a directory must be"),
            (21, ErrorKind::Invalid, "a directory is where a file must be"),
            (
                36,
                ErrorKind::Invalid,
                "the name is too long for this file system",
            ),
            (18, ErrorKind::Invalid, "the warehouse spans several file systems"),
            (24, ErrorKind::Unavailable, "Too many open files (os error 24)"),
        ] {
            let error = io_failure(
                "write an object",
                Path::new("/w/a"),
                io::Error::from_raw_os_error(number),
            );
            assert_eq!((error.kind(), error.message()), (kind, reason), "{number}");
            assert!(error.to_string().contains("path=/w/a"), "{error}");
        }
    }
}
