use frazil_core::{Epoch, SourceName, TableName, TopicName};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::sabotage::{self, Break};

/// Where everything lies under a warehouse. All of Frazil's own files are under `_frazil/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    warehouse: String,
}

/// Which folder of `_frazil/` a descriptor is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shelf {
    /// Staged, to be committed.
    Pending,
    /// Judged to be a redelivery, kept for 14 days.
    Dropped,
    /// Waiting for a person, kept until then.
    Quarantine,
}

impl Shelf {
    /// The folder's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Dropped => "dropped",
            Self::Quarantine => "quarantine",
        }
    }
}

/// A topic of a source in one of its lives.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LogName {
    /// The cluster.
    pub source: SourceName,
    /// The topic.
    pub topic: TopicName,
    /// Which life of the topic.
    pub epoch: Epoch,
}

impl Layout {
    /// `warehouse` is a location such as `file:///data/warehouse` or `s3://bucket/prefix`; a trailing `/` is dropped.
    pub fn new(warehouse: impl Into<String>) -> Self {
        let mut warehouse = warehouse.into();
        while warehouse.ends_with('/') {
            warehouse.pop();
        }
        Self { warehouse }
    }

    /// The warehouse's location, without a trailing `/`.
    pub fn warehouse(&self) -> &str {
        &self.warehouse
    }

    /// A new table's location. It ends in the last part of the uuid, the random one, so that a dropped and recreated
    /// table never shares a prefix with its predecessor.
    pub fn table(&self, table: &TableName, uuid: Uuid) -> String {
        let simple = uuid.simple().to_string();
        let random = &simple[simple.len() - 12..];
        format!(
            "{}/{}/{}-{random}",
            self.warehouse,
            table.namespace(),
            table.table()
        )
    }

    /// The prefix of all descriptors of a table, with its trailing `/`.
    pub fn descriptors(&self, shelf: Shelf, table: Uuid) -> String {
        // The tests have one table of that name.
        let table = if sabotage::is(Break::PendingByName) {
            Uuid::nil()
        } else {
            table
        };
        format!("{}/_frazil/{}/{table}/", self.warehouse, shelf.as_str())
    }

    /// The prefix of all descriptors on a shelf, with its trailing `/`.
    pub fn shelf(&self, shelf: Shelf) -> String {
        format!("{}/_frazil/{}/", self.warehouse, shelf.as_str())
    }

    /// A descriptor's location.
    pub fn descriptor(&self, shelf: Shelf, table: Uuid, log: &LogName, id: Uuid) -> String {
        format!("{}{}/{id}.json", self.descriptors(shelf, table), log_path(log))
    }

    /// Reads table, log and id back from a descriptor's location.
    pub fn parse_descriptor(&self, shelf: Shelf, location: &str) -> Option<(Uuid, LogName, Uuid)> {
        let rest = location.strip_prefix(&self.shelf(shelf))?;
        let (table, rest) = rest.split_once('/')?;
        let (log, id) = parse_log_path(rest)?;
        Some((table.parse().ok()?, log, id))
    }

    /// The prefix of a topic's parked events in all epochs, with its trailing `/`.
    pub fn parked(&self, source: &SourceName, topic: &TopicName) -> String {
        format!("{}/_frazil/parked/{source}/{topic}/", self.warehouse)
    }

    /// The prefix of all parked events, with its trailing `/`.
    pub fn all_parked(&self) -> String {
        format!("{}/_frazil/parked/", self.warehouse)
    }

    /// A parked event's location.
    pub fn parked_event(&self, log: &LogName, id: Uuid) -> String {
        format!("{}/_frazil/parked/{}/{id}.json", self.warehouse, log_path(log))
    }

    /// Reads log and id back from a parked event's location.
    pub fn parse_parked(&self, location: &str) -> Option<(LogName, Uuid)> {
        parse_log_path(location.strip_prefix(&self.all_parked())?)
    }

    /// The prefix of a table's ledger files, with its trailing `/`.
    pub fn ledgers(&self, table: Uuid) -> String {
        format!("{}/_frazil/ledger/{table}/", self.warehouse)
    }

    /// A ledger file's location: `commit` sorts, `id` makes it this attempt's own.
    pub fn ledger(&self, table: Uuid, commit: u64, id: Uuid) -> String {
        format!("{}{commit:012}-{id}.json", self.ledgers(table))
    }

    /// The list of dead-letter files that a commit accepted.
    pub fn outbox(&self, table: Uuid, snapshot_id: i64) -> String {
        format!("{}/_frazil/outbox/{table}/{snapshot_id}.json", self.warehouse)
    }

    /// The list of dead letters that a retry has moved into their table.
    pub fn retry(&self, table: Uuid, id: Uuid) -> String {
        format!("{}/_frazil/retries/{table}/{id}.json", self.warehouse)
    }
}

fn log_path(log: &LogName) -> String {
    format!("{}/{}/{}", log.source, log.topic, log.epoch)
}

fn parse_log_path(path: &str) -> Option<(LogName, Uuid)> {
    let mut parts = path.split('/');
    let (source, topic, epoch, file) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || source.is_empty() || topic.is_empty() {
        return None;
    }
    let log = LogName {
        source: SourceName::new(source),
        topic: TopicName::new(topic),
        epoch: Epoch(epoch.parse().ok()?),
    };
    Some((log, file.strip_suffix(".json")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_can_be_read_back() {
        let layout = Layout::new("s3://bucket/prefix/");
        let log = LogName {
            source: "main".into(),
            topic: "web.clicks-v1".into(),
            epoch: Epoch(2),
        };
        let (table, id) = (Uuid::from_u128(7), Uuid::from_u128(9));
        let location = layout.descriptor(Shelf::Dropped, table, &log, id);
        assert_eq!(
            location,
            "s3://bucket/prefix/_frazil/dropped/00000000-0000-0000-0000-000000000007/main/web.clicks-v1/2/\
             00000000-0000-0000-0000-000000000009.json"
        );
        assert_eq!(
            layout.parse_descriptor(Shelf::Dropped, &location),
            Some((table, log.clone(), id))
        );
        assert_eq!(layout.parse_descriptor(Shelf::Pending, &location), None);
        assert_eq!(
            layout.parse_parked(&layout.parked_event(&log, id)),
            Some((log, id))
        );
        for stray in [
            "s3://bucket/prefix/_frazil/parked/x",
            "s3://other/",
            "s3://bucket/prefix/_frazil/parked/a/b/c/d/e.json",
        ] {
            assert_eq!(layout.parse_parked(stray), None, "{stray}");
        }
    }

    #[test]
    fn a_recreated_table_never_shares_a_prefix() {
        let layout = Layout::new("file:///w");
        let name = TableName::new("kafka", "orders").unwrap();
        let uuid: Uuid = "0190a0b0-c0d0-7000-8000-0123456789ab".parse().unwrap();
        assert_eq!(layout.table(&name, uuid), "file:///w/kafka/orders-0123456789ab");
    }
}
