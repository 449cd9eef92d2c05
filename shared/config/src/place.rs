use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::fault::Problem;

/// Where files are: on this machine, or on S3.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A path.
    Local(PathBuf),
    /// `s3://BUCKET/KEY`.
    S3(String),
}

impl Place {
    /// What begins with `s3://` is on S3; everything else is a path.
    pub fn of(text: impl Into<OsString>) -> Self {
        let text = text.into();
        match text.to_str() {
            Some(address) if address.starts_with("s3://") => Self::S3(address.to_owned()),
            Some(_) | None => Self::Local(text.into()),
        }
    }

    /// The path; `None` for what is on S3.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Local(path) => Some(path),
            Self::S3(_) => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => path.display().fmt(f),
            Self::S3(address) => f.write_str(address),
        }
    }
}

/// Refuses addresses that are neither.
pub(crate) fn check_place(text: &str) -> Result<(), Problem> {
    match text.split_once("://") {
        None => Ok(()),
        Some(("s3", rest)) => match rest.split('/').next() {
            Some(bucket) if is_bucket(bucket) => Ok(()),
            Some(_) | None => {
                Err(Problem::new("it names no bucket of S3").hint("write s3://BUCKET or s3://BUCKET/PREFIX"))
            }
        },
        Some((scheme, _)) => Err(Problem::new(format!("{scheme}:// is no place that Frazil knows"))
            .hint("name a directory, or s3://BUCKET/PREFIX")),
    }
}

pub(crate) fn is_local_path(text: &str) -> Result<(), Problem> {
    match text.split_once("://") {
        Some((scheme, _)) => {
            Err(Problem::new(format!("{scheme}:// addresses cannot stand here")).hint("name a directory"))
        }
        None => Ok(()),
    }
}

/// S3's rules for the names of buckets, and access points' aliases.
fn is_bucket(name: &str) -> bool {
    (3..=63).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte))
        && !name.starts_with(['.', '-'])
        && !name.ends_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_paths_or_on_s3() {
        for (text, expected) in [
            ("./warehouse", Ok(Place::Local("./warehouse".into()))),
            ("/data/w", Ok(Place::Local("/data/w".into()))),
            ("s3:/data", Ok(Place::Local("s3:/data".into()))),
            ("s3://bucket/a/b", Ok(Place::S3("s3://bucket/a/b".into()))),
            ("s3://my.bucket-1", Ok(Place::S3("s3://my.bucket-1".into()))),
            ("s3://", Err("it names no bucket of S3")),
            ("s3:///a", Err("it names no bucket of S3")),
            ("s3://Bucket/a", Err("it names no bucket of S3")),
            ("s3a://bucket/a", Err("s3a:// is no place that Frazil knows")),
            ("https://x", Err("https:// is no place that Frazil knows")),
        ] {
            let seen = check_place(text).map(|()| Place::of(text));
            assert_eq!(
                seen.as_ref().map_err(|problem| problem.message.as_str()),
                expected.as_ref().map_err(|text| *text),
                "{text}"
            );
        }
    }
}
