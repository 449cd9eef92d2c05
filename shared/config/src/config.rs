use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use frazil_core::{Error, ErrorKind, Result, SourceName, TopicName};
use toml::de::DeTable;

use crate::aws::{AwsAccess, read_aws};
use crate::encoding::SchemaSource;
use crate::fault::{At, ConfigFaults, FaultList, Problem};
use crate::pattern::TopicPattern;
use crate::place::Place;
use crate::reader::Section;
use crate::registry::{IdentitySource, Registry, RegistryAccess, read_registries};
use crate::resolve::{check_keys, resolve};
use crate::rules::{Rule, default_source, read_rules, read_sources};
use crate::sections::{FileSection, TopicKeys};
use crate::source::{Source, broker_address};
use crate::topic::TopicSettings;

/// Longest file that is read; one topic with all its keys takes about one kilobyte.
pub const MAX_CONFIG_BYTES: usize = 1 << 20;
/// The format number that this version writes, and the newest that it reads.
pub const CONFIG_FORMAT: u32 = 1;

/// `frazil.toml`: parsed, validated, and asked by source and topic.
#[derive(Debug, Clone)]
pub struct Config {
    format: u32,
    warehouse: Option<Place>,
    aws: AwsAccess,
    schemas: Option<PathBuf>,
    /// What relative paths start from.
    folder: PathBuf,
    registries: Vec<Registry>,
    sources: Vec<Source>,
    defaults: TopicKeys,
    rules: Vec<Rule>,
    /// The topics that the file names exactly.
    exact: BTreeMap<(SourceName, TopicName), TopicSettings>,
}

impl Default for Config {
    /// No file: one source called `default` that takes every event, and the defaults for every topic.
    fn default() -> Self {
        Self {
            format: CONFIG_FORMAT,
            warehouse: None,
            aws: AwsAccess::default(),
            schemas: None,
            folder: PathBuf::new(),
            registries: Vec::new(),
            sources: vec![default_source()],
            defaults: TopicKeys::default(),
            rules: Vec::new(),
            exact: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Reads a file of at most [`MAX_CONFIG_BYTES`].
    pub fn load(path: &Path) -> Result<Self, ConfigFaults> {
        let of_file =
            |message: String| ConfigFaults::of_file(path, message, "check the path given by --config");
        let mut bytes = Vec::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(MAX_CONFIG_BYTES as u64 + 1).read_to_end(&mut bytes))
            .map_err(|error| of_file(format!("cannot be read: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|_| of_file("is not UTF-8 text".to_owned()))?;
        Self::parse(&text, path)
    }

    /// Reads the text of a file and reports everything that is wrong with it. `path` names the file in faults, and
    /// its directory is what relative paths in the text start from.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigFaults> {
        if text.len() > MAX_CONFIG_BYTES {
            let message = format!("is longer than {MAX_CONFIG_BYTES} bytes");
            return Err(ConfigFaults::of_file(
                path,
                message,
                "use patterns and [defaults] to say less",
            ));
        }
        let faults = FaultList::default();
        let (document, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let byte = error.span().map_or(0, |span| span.start);
            faults.add(
                &At {
                    key_path: String::new(),
                    byte,
                },
                Problem::new(error.message()),
            );
        }
        let table = document.get_ref();
        if errors.is_empty() {
            check_format(table, &faults);
        }
        // What a damaged text or a newer format means is a guess: its other faults would mislead.
        let config = faults.is_empty().then(|| Self::read(table, path, &faults));
        match config {
            Some(config) if faults.is_empty() => Ok(config),
            Some(_) | None => Err(faults.into_faults(path, text)),
        }
    }

    fn read(table: &DeTable<'_>, path: &Path, faults: &FaultList) -> Self {
        let top = At {
            key_path: String::new(),
            byte: 0,
        };
        let file = FileSection::read(Section::new(top, table, FileSection::keys(), faults));
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let from_here = |relative: String| folder.join(relative);
        check_keys(&file.defaults, None, faults);
        let sources = read_sources(&file, faults);
        let registries = read_registries(&file, path, faults);
        let aws = read_aws(&file, faults);
        let rules = read_rules(&file, &sources, faults);
        let exact = resolve_exact(&rules, &sources, &file.defaults, &registries, faults);
        Self {
            format: file.format.map_or(CONFIG_FORMAT, |format| format.value),
            warehouse: file.warehouse.map(|place| match Place::of(place.value) {
                Place::Local(relative) => Place::Local(folder.join(relative)),
                on_s3 @ Place::S3(_) => on_s3,
            }),
            aws,
            schemas: file.schemas.map(|path| from_here(path.value)),
            registries,
            sources,
            defaults: file.defaults,
            rules,
            exact,
            folder,
        }
    }

    /// The format number of the file (promise I9).
    pub fn format(&self) -> u32 {
        self.format
    }

    /// Where the tables are, if the file says.
    pub fn warehouse(&self) -> Option<&Place> {
        self.warehouse.as_ref()
    }

    /// The AWS account of a warehouse on S3.
    pub fn aws(&self) -> &AwsAccess {
        &self.aws
    }

    /// The directory that is the schema registry, if the file names one.
    pub fn schemas(&self) -> Option<&Path> {
        self.schemas.as_deref()
    }

    /// The schema registries that the file names.
    pub fn registries(&self) -> &[Registry] {
        &self.registries
    }

    /// The path of [`SchemaSource::File`](crate::SchemaSource::File): relative ones start from the folder of this file.
    pub fn schema_file(&self, written: &str) -> PathBuf {
        self.folder.join(written)
    }

    /// The files that this one names, schemas and certificates: once each, ascending.
    pub fn files(&self) -> Vec<PathBuf> {
        let keys = self
            .rules
            .iter()
            .map(|rule| &rule.section.keys)
            .chain([&self.defaults]);
        let schemas = keys.filter_map(|keys| match &keys.schema.as_ref()?.value {
            SchemaSource::File(written) => Some(self.schema_file(written)),
            SchemaSource::Auto
            | SchemaSource::Registry
            | SchemaSource::Infer
            | SchemaSource::Raw
            | SchemaSource::Subject(..) => None,
        });
        let mut files: Vec<PathBuf> = schemas.collect();
        for registry in &self.registries {
            if let RegistryAccess::Confluent(access) = registry.access() {
                files.extend(access.ca_file.clone());
                if let Some(IdentitySource::File(path)) = &access.identity {
                    files.push(path.clone());
                }
            }
        }
        files.sort();
        files.dedup();
        files
    }

    /// The sources, at least one.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The settings of the topics that the file names exactly, by source and topic.
    pub fn topics(&self) -> impl Iterator<Item = &TopicSettings> {
        self.exact.values()
    }

    /// The source that an event came from, by the ARN of its cluster and its brokers (`host:port`).
    ///
    /// `Invalid` when no source or more than one matches: an event from an unknown source is refused, because its
    /// offsets would be taken for those of another log.
    pub fn source_for<'s>(
        &self,
        arn: Option<&str>,
        bootstrap_servers: impl IntoIterator<Item = &'s str>,
    ) -> Result<&SourceName> {
        let written: Vec<&str> = bootstrap_servers.into_iter().collect();
        let servers: Vec<String> = written
            .iter()
            .filter_map(|server| broker_address(server).ok())
            .collect();
        let found: Vec<&Source> = self
            .sources
            .iter()
            .filter(|source| source.matches(arn, &servers))
            .collect();
        let refuse = |message: String, hint: &str| {
            Error::new(ErrorKind::Invalid, "find the source of an event", message)
                .with_context("arn", arn.unwrap_or("none"))
                .with_context("bootstrap_servers", written.join(","))
                .with_hint(hint)
        };
        match found.as_slice() {
            [source] => Ok(&source.name),
            [] => Err(refuse(
                "no source of the configuration matches".to_owned(),
                "add it to [sources]",
            )
            .with_code("source.unknown")),
            several => {
                let names: Vec<&str> = several.iter().map(|source| source.name.as_str()).collect();
                Err(refuse(
                    format!("several sources match: {}", names.join(", ")),
                    "make their arn and bootstrap_servers differ",
                )
                .with_code("source.ambiguous"))
            }
        }
    }

    /// The settings of a topic: of the section that fits it best, on top of the defaults.
    ///
    /// `Invalid` when the source is unknown, when the topic's name makes no table name, or when the file gives the
    /// table to another topic. Tables of topics that the file does not name exactly are checked against each other
    /// with [`TopicSettings::check_alone`], by whoever knows the tables that exist.
    pub fn topic(&self, source: &SourceName, topic: &TopicName) -> Result<TopicSettings> {
        if let Some(settings) = self.exact.get(&(source.clone(), topic.clone())) {
            return Ok(settings.clone());
        }
        let refuse = |message: String| {
            Error::new(ErrorKind::Invalid, "configure a topic", message)
                .with_context("source", source)
                .with_context("topic", topic)
        };
        let Some(known) = self.sources.iter().find(|known| known.name == *source) else {
            return Err(refuse("the configuration has no such source".to_owned()).with_code("source.unknown"));
        };
        match TopicPattern::new(topic.as_str()) {
            Ok(name) if name.is_exact() => {}
            Ok(_) | Err(_) => return Err(refuse("Kafka could not name a topic so".to_owned())),
        }
        let rule = self
            .rules
            .iter()
            .filter(|rule| rule.source == *source && rule.pattern.matches(topic.as_str()))
            .max_by_key(|rule| rule.pattern.rank());
        let settings = resolve(
            known,
            topic,
            rule.map(|rule| &rule.section),
            &self.defaults,
            &self.registries,
        )?;
        settings.check_alone(
            self.topics()
                .map(|other| (&other.source, &other.topic, &other.table)),
        )?;
        Ok(settings)
    }
}

/// A newer file is not half-read.
fn check_format(table: &DeTable<'_>, faults: &FaultList) {
    let Some((key, value)) = table.get_key_value("format") else {
        return;
    };
    let Some(format) = value.get_ref().as_integer() else {
        return;
    };
    let known =
        u32::from_str_radix(format.as_str(), format.radix()).is_ok_and(|n| (1..=CONFIG_FORMAT).contains(&n));
    if !known {
        faults.add(
            &At {
                key_path: "format".to_owned(),
                byte: key.span().start,
            },
            Problem::new(format!(
                "format {format} is not one that this version reads: it reads {CONFIG_FORMAT}"
            ))
            .hint("use the version of Frazil that the file was written for"),
        );
    }
}

/// The topics that the file names, with a fault for each that would share a table with another.
fn resolve_exact(
    rules: &[Rule],
    sources: &[Source],
    defaults: &TopicKeys,
    registries: &[Registry],
    faults: &FaultList,
) -> BTreeMap<(SourceName, TopicName), TopicSettings> {
    let mut exact = BTreeMap::new();
    let mut owners = BTreeMap::new();
    for rule in rules.iter().filter(|rule| rule.pattern.is_exact()) {
        let Some(source) = sources.iter().find(|source| source.name == rule.source) else {
            continue;
        };
        let topic = TopicName::new(rule.pattern.as_str());
        let resolved = resolve(source, &topic, Some(&rule.section), defaults, registries)
            .and_then(|settings| Ok((settings.table.dead_letters()?, settings)));
        let (dead_letters, settings) = match resolved {
            Ok(resolved) => resolved,
            Err(error) => {
                let hint = error.hint().unwrap_or("name another table").to_owned();
                faults.add(&rule.at, Problem::new(error.message()).hint(hint));
                continue;
            }
        };
        let at = rule.section.table.as_ref().map_or(&rule.at, |table| &table.at);
        for (table, purpose) in [
            (settings.table.clone(), ""),
            (dead_letters, "the dead letters of "),
        ] {
            if let Some(owner) = owners.insert(table.clone(), format!("{purpose}{}", rule.at.key_path)) {
                faults.add(
                    at,
                    Problem::new(format!("`{table}` would take {purpose}this topic and {owner}"))
                        .hint("name another table"),
                );
            }
        }
        exact.insert((rule.source.clone(), topic), settings);
    }
    exact
}

#[cfg(test)]
mod tests;
