use frazil_core::{Result, TopicName};
use frazil_table::inspection::{Heap, TableStatus, TopicStatus, topic_status, topic_statuses};
use serde::Serialize;

use crate::arguments::Source;
use crate::document::{indented, pairs, plain, table};
use crate::failure::Outcome;
use crate::output::{Document, Output};
use crate::session::Session;
use crate::units;

/// How many ranges people see of each kind and partition; JSON has all.
const RANGES_SHOWN: usize = 4;

/// How topics stand.
#[derive(Debug, Serialize)]
struct Status {
    topics: Vec<TopicStatus>,
    #[serde(skip)]
    in_detail: bool,
}

pub(crate) async fn status(
    session: &Session,
    topic: Option<String>,
    source: &Source,
    output: &Output,
) -> Result<Outcome> {
    let warehouse = session.existing_warehouse().await?;
    let progress = session.progress();
    progress.say("reading what is pending");
    let in_detail = topic.is_some();
    let topics = match topic {
        None => topic_statuses(&warehouse).await?,
        Some(topic) => {
            let topic = TopicName::new(topic);
            let source = session.source_of(&warehouse, &topic, source.name()).await?;
            vec![topic_status(&warehouse, &source, &topic).await?]
        }
    };
    drop(progress);
    let status = Status { topics, in_detail };
    output.print(&status)?;
    let has_problem = status
        .topics
        .iter()
        .flat_map(|topic| &topic.tables)
        .any(|table| table.problem.is_some());
    Ok(if has_problem {
        Outcome::Failed
    } else {
        Outcome::Done
    })
}

impl Document for Status {
    fn to_text(&self, _: Option<usize>) -> String {
        if self.in_detail {
            return self.topics.iter().map(detail).collect();
        }
        if self.topics.is_empty() {
            return "no topics yet; `frazil run EVENT.json` brings the first\n".to_owned();
        }
        let rows = self.topics.iter().map(|topic| {
            let sum = |count: fn(&TableStatus) -> u64| topic.tables.iter().map(count).sum::<u64>();
            vec![
                plain(topic.topic.as_str()),
                topic.source.to_string(),
                state(topic),
                topic.epoch.to_string(),
                units::count(sum(|table| table.rows)),
                units::duration(topic.freshness_ms),
                units::count(sum(|table| table.pending.objects)),
                units::count(topic.parked.objects),
                units::count(topic.dropped.objects),
                units::count(topic.quarantine.objects),
                units::count(sum(|table| {
                    table.dead_letters.rows + table.dead_letters.undelivered
                })),
            ]
        });
        let headers = [
            "TOPIC",
            "SOURCE",
            "STATE",
            "EPOCH",
            "ROWS",
            "FRESHNESS",
            "PENDING",
            "PARKED",
            "DROPPED",
            "QUARANTINE",
            "DEAD LETTERS",
        ];
        let mut text = table(&headers, &headers[3..], rows);
        for topic in &self.topics {
            if let Some(suspended) = &topic.suspended {
                text.push_str(&format!(
                    "\n{}: {}\n",
                    plain(topic.topic.as_str()),
                    plain(&suspended.message)
                ));
            }
            for table in &topic.tables {
                if let Some(problem) = &table.problem {
                    text.push_str(&format!("\n{}: {}\n", table.table, plain(problem)));
                }
            }
        }
        text
    }
}

fn state(topic: &TopicStatus) -> String {
    match &topic.suspended {
        Some(suspended) => format!("suspended ({})", suspended.cause),
        None => "running".to_owned(),
    }
}

fn detail(topic: &TopicStatus) -> String {
    let (reason, since) = match &topic.suspended {
        Some(suspended) => (plain(&suspended.message), units::time(suspended.since_ms)),
        None => (String::new(), String::new()),
    };
    let replay = topic
        .replay_until_ms
        .map(|until| format!("announced until {}", units::time(until)));
    let mut text = format!("{} (source {})\n", plain(topic.topic.as_str()), topic.source);
    text.push_str(&indented(&pairs([
        ("state", state(topic)),
        ("since", since),
        ("reason", reason),
        ("epoch", topic.epoch.to_string()),
        ("freshness", units::duration(topic.freshness_ms)),
        ("replay", replay.unwrap_or_default()),
        ("parked", heap(&topic.parked, "event")),
        ("dropped", heap(&topic.dropped, "descriptor")),
        ("quarantine", heap(&topic.quarantine, "descriptor")),
    ])));
    for table in &topic.tables {
        text.push_str(&format!("\n{}\n{}", table.table, indented(&table_detail(table))));
    }
    text
}

fn table_detail(of: &TableStatus) -> String {
    let undelivered = match of.dead_letters.undelivered {
        0 => String::new(),
        letters => format!(", {} on the way", units::count(letters)),
    };
    let mut pending = heap(&of.pending, "descriptor");
    if of.unreadable > 0 {
        pending.push_str(&format!(
            ", {} cannot be read: `frazil pending` says why",
            units::count(of.unreadable)
        ));
    }
    let committed = of
        .committed_at_ms
        .map(|at| format!("{}, {}", of.commit, units::time(at)));
    let mut text = pairs([
        ("problem", plain(of.problem.as_deref().unwrap_or_default())),
        ("rows", units::count(of.rows)),
        (
            "dead letters",
            format!("{}{undelivered}", units::count(of.dead_letters.rows)),
        ),
        ("last commit", committed.unwrap_or_default()),
        ("pending", pending),
    ]);
    if !of.partitions.is_empty() {
        let rows = of.partitions.iter().map(|partition| {
            vec![
                partition.partition.to_string(),
                partition.next.to_string(),
                units::ranges(&partition.holes, RANGES_SHOWN),
                units::ranges(&partition.uncertain, RANGES_SHOWN),
                units::ranges(&partition.pending, RANGES_SHOWN),
            ]
        });
        text.push('\n');
        text.push_str(&table(
            &["PARTITION", "NEXT", "HOLES", "UNCERTAIN", "PENDING"],
            &["PARTITION", "NEXT"],
            rows,
        ));
    }
    text
}

fn heap(heap: &Heap, noun: &str) -> String {
    match heap.oldest_ms {
        None => "none".to_owned(),
        Some(oldest) => format!(
            "{}, {}, oldest {}",
            units::counted(heap.objects, noun),
            units::bytes(heap.bytes),
            units::time(oldest)
        ),
    }
}

#[cfg(test)]
mod tests;
