use frazil_core::{Error, ErrorKind, Result};

/// The most that a key may have.
const MAX_KEY_BYTES: usize = 1_024;

/// `s3://bucket/key`, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct S3Location<'l> {
    pub(super) bucket: &'l str,
    pub(super) key: &'l str,
}

impl<'l> S3Location<'l> {
    /// Of one object.
    pub(super) fn parse(location: &'l str) -> Result<Self> {
        let at = Self::parse_prefix(location)?;
        let reason = if at.key.is_empty() || at.key.ends_with('/') {
            "it names a folder, not an object"
        } else if at.key.len() > MAX_KEY_BYTES {
            "its key has more than the 1,024 bytes that S3 holds"
        } else if at.key.split('/').any(|part| matches!(part, "" | "." | "..")) {
            // Some clients and gateways clean paths, and would find another object.
            "its key has an empty part, or one of dots"
        } else {
            return Ok(at);
        };
        Err(refused(location, reason))
    }

    /// Of the objects that start with it.
    pub(super) fn parse_prefix(location: &'l str) -> Result<Self> {
        let rest = location
            .strip_prefix("s3://")
            .ok_or_else(|| refused(location, "it does not start with s3://"))?;
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(refused(location, "it names no bucket"));
        }
        Ok(Self { bucket, key })
    }
}

fn refused(location: &str, reason: &str) -> Error {
    Error::new(ErrorKind::Invalid, "use a location on S3", reason).with_context("location", location)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_buckets_and_keys() {
        let long = format!("s3://b/{}", "k".repeat(1_025));
        for (location, expected) in [
            ("s3://bucket/a/b c.json", Ok(("bucket", "a/b c.json"))),
            ("s3://bucket/ä", Ok(("bucket", "ä"))),
            ("s3://bucket", Err("it names a folder, not an object")),
            ("s3://bucket/a/", Err("it names a folder, not an object")),
            ("s3:///a", Err("it names no bucket")),
            ("file:///a", Err("it does not start with s3://")),
            ("s3://b/a//c", Err("its key has an empty part, or one of dots")),
            ("s3://b/a/../c", Err("its key has an empty part, or one of dots")),
            (&long, Err("its key has more than the 1,024 bytes that S3 holds")),
        ] {
            let parsed = S3Location::parse(location);
            let seen = parsed
                .as_ref()
                .map(|at| (at.bucket, at.key))
                .map_err(Error::message);
            assert_eq!(seen, expected, "{location}");
        }
    }
}
