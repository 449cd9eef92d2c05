use std::path::{Path, PathBuf};

use frazil_config::{Config, ConfigFaults};
use frazil_core::Result;
use serde::Serialize;

use crate::document::table;
use crate::failure::Outcome;
use crate::output::{Document, Output};
use crate::session::SCHEMAS;

mod schemas;

use schemas::KnownSchemas;
pub(crate) use schemas::unused_fields;

/// What is wrong with a configuration, or what it means.
#[derive(Debug, PartialEq, Serialize)]
struct Checked {
    config: String,
    valid: bool,
    /// How many faults there are; at most 100 are listed.
    fault_count: usize,
    faults: Vec<FaultDocument>,
    sources: Vec<String>,
    /// The topics that the file names exactly.
    topics: Vec<TopicDocument>,
    /// What their schemas come to, where they are at hand.
    #[serde(flatten)]
    schemas: KnownSchemas,
    #[serde(skip)]
    text: String,
}

#[derive(Debug, PartialEq, Serialize)]
struct FaultDocument {
    key_path: String,
    line: Option<usize>,
    column: Option<usize>,
    message: String,
    hint: Option<String>,
}

#[derive(Debug, PartialEq, Serialize)]
struct TopicDocument {
    source: String,
    topic: String,
    table: String,
    format: &'static str,
    partition_by: Vec<String>,
    on_error: &'static str,
}

/// `schemas` is the directory of schemas that somebody named; else the file's, else the one that events have beside them.
pub(crate) async fn check(
    file: &Path,
    schemas: Option<PathBuf>,
    online: bool,
    output: &Output,
) -> Result<Outcome> {
    let checked = match Config::load(file) {
        Ok(config) => {
            let directory = schemas.or_else(|| config.schemas().map(Path::to_owned));
            let directory = directory.unwrap_or_else(|| SCHEMAS.into());
            Checked {
                schemas: KnownSchemas::of(&config, &directory, online).await?,
                ..Checked::valid(file, &config)
            }
        }
        Err(faults) => Checked::invalid(&faults),
    };
    output.print(&checked)?;
    Ok(match (checked.valid, checked.schemas.has_problem()) {
        (false, _) => Outcome::Invalid,
        (true, true) => Outcome::Failed,
        (true, false) => Outcome::Done,
    })
}

impl Checked {
    fn valid(file: &Path, config: &Config) -> Self {
        let topics = config.topics().map(|topic| TopicDocument {
            source: topic.source.to_string(),
            topic: topic.topic.to_string(),
            table: topic.table.to_string(),
            format: topic.format.as_str(),
            partition_by: topic.partition_by.iter().map(ToString::to_string).collect(),
            on_error: topic.on_error.as_str(),
        });
        Self {
            config: file.display().to_string(),
            valid: true,
            fault_count: 0,
            faults: Vec::new(),
            sources: config
                .sources()
                .iter()
                .map(|source| source.name().to_string())
                .collect(),
            topics: topics.collect(),
            schemas: KnownSchemas::default(),
            text: String::new(),
        }
    }

    fn invalid(faults: &ConfigFaults) -> Self {
        let listed = faults.faults().iter().map(|fault| FaultDocument {
            key_path: fault.key_path.clone(),
            line: fault.position.map(|position| position.line),
            column: fault.position.map(|position| position.column),
            message: fault.message.clone(),
            hint: fault.hint.clone(),
        });
        Self {
            config: faults.path().display().to_string(),
            valid: false,
            fault_count: faults.count(),
            faults: listed.collect(),
            sources: Vec::new(),
            topics: Vec::new(),
            schemas: KnownSchemas::default(),
            text: faults.to_string(),
        }
    }
}

impl Document for Checked {
    fn to_text(&self, _: Option<usize>) -> String {
        if !self.valid {
            let plural = if self.fault_count == 1 { "" } else { "s" };
            return format!("{}\n\n{} fault{plural}\n", self.text, self.fault_count);
        }
        let mut text = format!("{}: no faults\n", self.config);
        if !self.topics.is_empty() {
            text.push('\n');
            let rows = self.topics.iter().map(|topic| {
                vec![
                    topic.source.clone(),
                    topic.topic.clone(),
                    topic.table.clone(),
                    topic.format.to_owned(),
                    topic.partition_by.join(", "),
                    topic.on_error.to_owned(),
                ]
            });
            text.push_str(&table(
                &["SOURCE", "TOPIC", "TABLE", "FORMAT", "PARTITIONED BY", "ON ERROR"],
                &[],
                rows,
            ));
        }
        text.push_str(&self.schemas.to_text());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Checked {
        let path = Path::new("frazil.toml");
        match Config::parse(text, path) {
            Ok(config) => Checked::valid(path, &config),
            Err(faults) => Checked::invalid(&faults),
        }
    }

    #[test]
    fn faults_read_like_a_compiler_and_come_together() {
        let checked = checked("[topics.orders]\nfreshnes = \"1m\"\nformat = \"xml\"\n");
        assert_eq!(checked.to_text(None).lines().last(), Some("2 faults"),);
        assert!(checked.to_text(None).starts_with(
            "frazil.toml:2:1: topics.orders.freshnes: unknown key; did you mean `freshness`?\nfrazil.toml:3:"
        ));
        assert_eq!(
            (checked.faults[1].key_path.as_str(), checked.faults[1].line),
            ("topics.orders.format", Some(3))
        );
    }

    #[test]
    fn a_good_file_shows_what_it_means() {
        assert_eq!(
            checked("[topics.orders]\nformat = \"avro\"\n").to_text(None),
            "frazil.toml: no faults\n\n\
             SOURCE   TOPIC   TABLE         FORMAT  PARTITIONED BY         ON ERROR\n\
             default  orders  kafka.orders  avro    day(_kafka_timestamp)  dead_letter\n"
        );
    }
}
