use std::collections::BTreeMap;

use frazil_core::{Epoch, Error, ErrorKind, Offset, Partition, Result, SourceName, TableName, TopicName};
use frazil_table::dead_letters::DeadLetter;
use frazil_table::inspection::dead_letters_of;
use frazil_table::{LogName, Warehouse, properties, retry_dead_letters};
use serde::Serialize;

use crate::arguments::DeadLetters;
use crate::document::{plain, table};
use crate::failure::Outcome;
use crate::output::{Document, Output};
use crate::session::{Handlers, Session, find_table};
use crate::units;

/// People see so much of a value.
const VALUE_SHOWN: usize = 60;

/// A table's dead letters.
#[derive(Debug, PartialEq, Serialize)]
struct Listed {
    table: TableName,
    total: u64,
    /// Accepted, and in their table with the next commit.
    waiting: u64,
    counts: BTreeMap<String, u64>,
    letters: Vec<Letter>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Letter {
    source: SourceName,
    topic: TopicName,
    epoch: Epoch,
    partition: Partition,
    offset: Offset,
    timestamp_ms: Option<i64>,
    code: String,
    reason: String,
    /// As text where they are UTF-8, else `base64:…`.
    key: Option<String>,
    value: Option<String>,
}

/// What a retry did.
#[derive(Debug, PartialEq, Serialize)]
struct Retried {
    table: TableName,
    read: u64,
    moved: u64,
    finished: u64,
    /// Those that stay.
    left: u64,
    left_because: Vec<Left>,
    snapshots: Vec<Snapshot>,
}

/// Why some stay.
#[derive(Debug, PartialEq, Serialize)]
struct Left {
    /// Today's code, which may be another than that of the letter.
    code: String,
    letters: u64,
    /// Of the first one.
    reason: String,
}

#[derive(Debug, PartialEq, Serialize)]
struct Snapshot {
    table: TableName,
    snapshot_id: i64,
}

pub(crate) async fn dead_letters(
    session: &Session,
    arguments: DeadLetters,
    output: &Output,
) -> Result<Outcome> {
    let warehouse = session.existing_warehouse().await?;
    let name = find_table(&warehouse, &arguments.table).await?;
    refuse_elsewhere(session, &warehouse, &name).await?;
    let codes = arguments.code;
    let wanted = move |letter: &DeadLetter| codes.is_empty() || codes.contains(&letter.code);
    let progress = session.progress();
    if !arguments.retry {
        progress.say(format!("reading the dead letters of {name}"));
        let limit = usize::try_from(arguments.limit).unwrap_or(usize::MAX);
        let found = dead_letters_of(&warehouse, &name, &wanted, limit).await?;
        drop(progress);
        let letters = found
            .letters
            .into_iter()
            .map(|(log, letter)| Letter::new(log, letter));
        output.print(&Listed {
            table: name,
            total: found.counts.values().sum(),
            waiting: found.waiting,
            letters: letters.collect(),
            counts: found.counts,
        })?;
        return Ok(Outcome::Done);
    }
    progress.say(format!("reading the dead letters of {name} again"));
    let mut handlers = Handlers::default();
    let ingest = session.ingest(&mut handlers, &warehouse, None)?;
    let retried = retry_dead_letters(&warehouse, &name, &wanted, ingest).await;
    let report = retried.map_err(|error| session.about_schemas(error))?;
    drop(progress);
    output.print(&Retried {
        table: name,
        read: report.read,
        moved: report.moved,
        finished: report.finished,
        left: report.read.saturating_sub(report.moved),
        left_because: report
            .left
            .into_iter()
            .map(|(code, left)| Left {
                code,
                letters: left.letters,
                reason: left.reason,
            })
            .collect(),
        snapshots: report
            .snapshots
            .into_iter()
            .map(|(table, snapshot_id)| Snapshot { table, snapshot_id })
            .collect(),
    })?;
    Ok(Outcome::Done)
}

/// Where each type of a topic has its table, what cannot be read has no type: it is with the topic's own table. Says so
/// of a table of one type.
async fn refuse_elsewhere(session: &Session, warehouse: &Warehouse, name: &TableName) -> Result<()> {
    let table = warehouse.load_existing(name).await?;
    let properties = table.metadata.properties();
    let property = |key| properties.get(key).map(String::as_str);
    let (Some(record_name), Some(source), Some(topic)) = (
        property(properties::RECORD_NAME),
        property(properties::SOURCE),
        property(properties::TOPIC),
    ) else {
        return Ok(());
    };
    // The table may be of a topic that today's configuration does not have.
    let Ok(settings) = session.config().topic(&source.into(), &topic.into()) else {
        return Ok(());
    };
    let home = settings.table;
    if home == *name || warehouse.catalog.load(&home).await?.is_none() {
        return Ok(());
    }
    let message = format!(
        "{name} is for the type `{record_name}` of the topic `{topic}`, and what cannot be read has no type: it is with {home}"
    );
    Err(
        Error::new(ErrorKind::Invalid, "read dead letters", message).with_hint(format!(
            "`frazil dead-letters {home}`; a retry from there fills {name} too"
        )),
    )
}

impl Letter {
    fn new(log: LogName, letter: DeadLetter) -> Self {
        Self {
            source: log.source,
            topic: log.topic,
            epoch: log.epoch,
            partition: letter.partition,
            offset: letter.offset,
            timestamp_ms: letter.timestamp.map(|timestamp| timestamp.0),
            code: letter.code,
            reason: letter.reason,
            key: letter.key.map(readable),
            value: letter.value.map(readable),
        }
    }
}

fn readable(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        format!(
            "base64:{}",
            base64_simd::STANDARD.encode_to_string(error.as_bytes())
        )
    })
}

impl Document for Listed {
    fn to_text(&self, _: Option<usize>) -> String {
        let waiting = match self.waiting {
            0 => String::new(),
            waiting => format!("{} more wait for the next commit\n", units::count(waiting)),
        };
        if self.total == 0 {
            return format!("{} has no such dead letters\n{waiting}", self.table);
        }
        let counts = self
            .counts
            .iter()
            .map(|(code, count)| vec![plain(code), units::count(*count)]);
        let mut text = table(&["CODE", "RECORDS"], &["RECORDS"], counts);
        text.push_str(&waiting);
        text.push('\n');
        let rows = self.letters.iter().map(|letter| {
            let value = letter.value.as_deref().unwrap_or("–");
            vec![
                plain(letter.topic.as_str()),
                letter.partition.to_string(),
                letter.offset.to_string(),
                letter.code.clone(),
                plain(&letter.reason),
                plain(&value.chars().take(VALUE_SHOWN).collect::<String>()),
            ]
        });
        let headers = ["TOPIC", "PARTITION", "OFFSET", "CODE", "REASON", "VALUE"];
        text.push_str(&table(&headers, &["PARTITION", "OFFSET"], rows));
        let shown = self.letters.len() as u64;
        if shown < self.total {
            text.push_str(&format!(
                "… {} more; --limit shows them\n",
                units::count(self.total - shown)
            ));
        }
        text
    }
}

impl Document for Retried {
    fn to_text(&self, _: Option<usize>) -> String {
        let mut text = format!(
            "{}: {} read again, {} now, {} as before\n",
            self.table,
            units::counted(self.read, "dead letter"),
            units::counted(self.moved, "row"),
            units::counted(self.left, "dead letter")
        );
        if !self.left_because.is_empty() {
            let rows = self
                .left_because
                .iter()
                .map(|left| vec![plain(&left.code), units::count(left.letters), plain(&left.reason)]);
            let headers = ["CODE TODAY", "RECORDS", "REASON, OF THE FIRST"];
            text.push_str(&format!("\n{}", table(&headers, &["RECORDS"], rows)));
        }
        if self.finished > 0 {
            let finished = units::count(self.finished);
            text.push_str(&format!("{finished} of an interrupted retry were rows already\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_says_why_letters_stay() {
        let retried = Retried {
            table: TableName::new("kafka", "orders").unwrap(),
            read: 1_204,
            moved: 1_200,
            finished: 1,
            left: 4,
            left_because: vec![
                Left {
                    code: "avro.truncated".to_owned(),
                    letters: 3,
                    reason: "it ends too early".to_owned(),
                },
                Left {
                    code: "retry.not_taken".to_owned(),
                    letters: 1,
                    reason: "a delivery may still bring them".to_owned(),
                },
            ],
            snapshots: Vec::new(),
        };
        assert_eq!(
            retried.to_text(None),
            "kafka.orders: 1,204 dead letters read again, 1,200 rows now, 4 dead letters as before\n\n\
             CODE TODAY       RECORDS  REASON, OF THE FIRST\n\
             avro.truncated         3  it ends too early\n\
             retry.not_taken        1  a delivery may still bring them\n\
             1 of an interrupted retry were rows already\n"
        );
    }
}
