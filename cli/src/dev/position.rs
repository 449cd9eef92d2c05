//! Up to where a topic was read, in a small file of the warehouse: it goes where the rows go, and with them.

use std::collections::BTreeMap;

use bytes::Bytes;
use frazil_core::{Error, ErrorKind, Offset, Result, SourceName, TopicName, safe_name};
use frazil_table::Warehouse;
use serde::{Deserialize, Serialize};

/// The format number of the file.
const FORMAT: u32 = 1;
/// More than a topic with 100,000 partitions needs.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// What file systems take as a name, less what is added to it.
const MAX_NAME_CHARS: usize = 200;

/// The file. A lost one is harmless: the records come again, and what the table has is recognised.
#[derive(Debug, Clone)]
pub(crate) struct PositionFile {
    warehouse: Warehouse,
    location: String,
    source: SourceName,
    topic: TopicName,
    handler: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Document {
    format: u32,
    source: SourceName,
    topic: TopicName,
    handler: String,
    /// The next offset of each partition.
    next: BTreeMap<i32, i64>,
    written_at_ms: i64,
}

impl PositionFile {
    /// Of a topic, for one handler: what another one took says nothing about this one.
    pub(crate) fn new(warehouse: &Warehouse, source: &SourceName, topic: &TopicName, handler: &str) -> Self {
        let mut name = safe_name(handler);
        name.truncate(MAX_NAME_CHARS); // ASCII by now
        let location = format!(
            "{}/_frazil/dev/{source}/{topic}/{name}.json",
            warehouse.layout.warehouse()
        );
        Self {
            warehouse: warehouse.clone(),
            location,
            source: source.clone(),
            topic: topic.clone(),
            handler: handler.to_owned(),
        }
    }

    /// The next offset of each partition; `None` for a first start.
    pub(crate) async fn read(&self) -> Result<Option<BTreeMap<i32, i64>>> {
        let Some(bytes) = self.warehouse.storage.get(&self.location, MAX_BYTES).await? else {
            return Ok(None);
        };
        let next = parse(&bytes).map_err(|error| error.with_context("file", &self.location))?;
        Ok(Some(next))
    }

    /// Writes the next offset of each partition.
    pub(crate) async fn write(&self, next: &BTreeMap<i32, i64>) -> Result<()> {
        let document = Document {
            format: FORMAT,
            source: self.source.clone(),
            topic: self.topic.clone(),
            handler: self.handler.clone(),
            next: next.clone(),
            written_at_ms: self.warehouse.environment.now().0,
        };
        let bytes = serde_json::to_vec(&document).map_err(|error| {
            Error::new(ErrorKind::Internal, "write the position", error.to_string()).with_source(error)
        })?;
        self.warehouse
            .storage
            .put(&self.location, Bytes::from(bytes), None)
            .await
    }
}

/// The next offset of each partition, as the file has it.
fn parse(bytes: &[u8]) -> Result<BTreeMap<i32, i64>> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let faulty = |message: String, hint: &str| {
        Error::new(ErrorKind::Invalid, "read the position of an earlier run", message).with_hint(hint)
    };
    let again = "start with --restart: the topic is read again, and what the table has is recognised";
    let head: Head = serde_json::from_slice(bytes).map_err(|error| faulty(error.to_string(), again))?;
    if head.format != FORMAT {
        let message = format!("it has format {}, and this version reads {FORMAT}", head.format);
        return Err(faulty(
            message,
            "use the version of frazil that wrote it, or start with --restart",
        ));
    }
    let document: Document =
        serde_json::from_slice(bytes).map_err(|error| faulty(error.to_string(), again))?;
    let is_wrong = |(partition, next): &(&i32, &i64)| **partition < 0 || !(0..=Offset::MAX.0).contains(*next);
    match document.next.iter().find(is_wrong) {
        Some((partition, next)) => Err(faulty(
            format!("partition {partition} is at offset {next}"),
            again,
        )),
        None => Ok(document.next),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: &str = r#"{"format":1,"source":"main","topic":"orders","handler":"in process","next":{"0":17,"12":0},"written_at_ms":1796040000000}"#;

    #[test]
    fn a_file_is_read_or_says_why_not() {
        assert_eq!(
            parse(FILE.as_bytes()).unwrap(),
            BTreeMap::from([(0, 17), (12, 0)])
        );
        for (found, replaced, message) in [
            (
                r#""format":1"#,
                r#""format":2"#,
                "it has format 2, and this version reads 1",
            ),
            (":17", ":-1", "partition 0 is at offset -1"),
            (r#""12""#, r#""-2""#, "partition -2 is at offset 0"),
            (
                r#""12""#,
                r#""x""#,
                "invalid value: expected key to be a number in quotes at line 1 column 84",
            ),
        ] {
            let error = parse(FILE.replace(found, replaced).as_bytes()).unwrap_err();
            assert_eq!(
                (error.kind(), error.message()),
                (ErrorKind::Invalid, message),
                "{replaced}"
            );
        }
    }

    fn check(bytes: &[u8]) {
        if let Ok(next) = parse(bytes) {
            assert!(
                next.iter().all(|(partition, next)| *partition >= 0 && *next >= 0),
                "{next:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_no_position(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            check(&bytes);
        }

        #[test]
        fn mutated_files_give_a_position_or_a_fault(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut bytes = FILE.as_bytes().to_vec();
            for (index, byte) in changes {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
            check(&bytes);
        }
    }
}
