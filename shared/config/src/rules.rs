use frazil_core::{NamespaceName, SourceName};

use crate::fault::{At, FaultList, Located, Problem, closest};
use crate::pattern::TopicPattern;
use crate::registry::check_registry;
use crate::resolve::check_keys;
use crate::sections::{FileSection, SourceSection, TopicSection};
use crate::source::{Source, broker_address, source_name};

/// Most patterns of a file: every two are compared.
const MAX_PATTERNS: usize = 100;
/// Most sources of a file: every two are compared, and each with every event.
const MAX_SOURCES: usize = 100;

const DEFAULT_SOURCE: &str = "default";

/// What one `[topics.…]` section says.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) at: At,
    pub(crate) source: SourceName,
    pub(crate) pattern: TopicPattern,
    pub(crate) section: TopicSection,
}

/// The source of a configuration that names none.
pub(crate) fn default_source() -> Source {
    Source {
        name: SourceName::new(DEFAULT_SOURCE),
        arn: None,
        bootstrap_servers: Vec::new(),
        namespace: None,
    }
}

/// The sources of the file, each recognisable among the others.
pub(crate) fn read_sources(file: &FileSection, faults: &FaultList) -> Vec<Source> {
    if file.sources.is_empty() {
        return vec![default_source()];
    }
    if let Some((beyond, _)) = file.sources.get(MAX_SOURCES) {
        let problem = Problem::new(format!(
            "{} sources, at most {MAX_SOURCES} are possible",
            file.sources.len()
        ));
        faults.add(&beyond.at, problem.hint("use a file for each part of them"));
    }
    let mut sources: Vec<Source> = Vec::new();
    for (name, section) in file.sources.iter().take(MAX_SOURCES) {
        let source = match source_name(&name.value) {
            Ok(source) => source,
            Err(problem) => {
                faults.add(&name.at, problem);
                continue;
            }
        };
        let source = read_source(source, section);
        let written = section.arn.is_some() || section.bootstrap_servers.is_some();
        if !written && file.sources.len() > 1 {
            let problem = Problem::new("nothing tells its events from those of the other sources");
            faults.add(&name.at, problem.hint("add arn or bootstrap_servers"));
        }
        if let Some(other) = sources
            .iter()
            .find(|other| other.arn.is_some() && other.arn == source.arn)
        {
            let at = section.arn.as_ref().map_or(&name.at, |arn| &arn.at);
            faults.add(
                at,
                Problem::new(format!("source `{}` has the same ARN", other.name)).hint("keep one"),
            );
        }
        for server in section
            .bootstrap_servers
            .iter()
            .flat_map(|servers| &servers.value)
        {
            let Ok(address) = broker_address(&server.value) else {
                continue;
            };
            if let Some(other) = sources
                .iter()
                .find(|other| other.bootstrap_servers.contains(&address))
            {
                let problem = Problem::new(format!("source `{}` has the same broker", other.name));
                faults.add(&server.at, problem.hint("keep one"));
            }
        }
        sources.push(source);
    }
    sources
}

fn read_source(name: SourceName, section: &SourceSection) -> Source {
    let servers = section
        .bootstrap_servers
        .iter()
        .flat_map(|servers| &servers.value);
    Source {
        name,
        arn: section.arn.as_ref().map(|arn| arn.value.clone()),
        bootstrap_servers: servers
            .filter_map(|server| broker_address(&server.value).ok())
            .collect(),
        namespace: section
            .namespace
            .as_ref()
            .map(|name| NamespaceName::new(name.value.as_str())),
    }
}

/// The topics of the file, in which no two sections mean the same topic equally well.
pub(crate) fn read_rules(file: &FileSection, sources: &[Source], faults: &FaultList) -> Vec<Rule> {
    if let Some(source) = &file.defaults.source {
        find_source(source, sources, faults);
    }
    if let Some(registry) = &file.defaults.registry {
        check_registry(registry, file, faults);
    }
    let mut rules: Vec<Rule> = Vec::new();
    for (name, section) in &file.topics {
        check_keys(&section.keys, Some(&file.defaults), faults);
        if let Some(registry) = &section.keys.registry {
            check_registry(registry, file, faults);
        }
        let written = section.topic.as_ref().unwrap_or(name);
        let pattern = match TopicPattern::new(&written.value) {
            Ok(pattern) => pattern,
            Err(problem) => {
                faults.add(&written.at, problem);
                continue;
            }
        };
        if let Some(table) = section.table.as_ref().filter(|_| !pattern.is_exact()) {
            let problem = Problem::new("the topics of a pattern cannot share one table in this version");
            faults.add(
                &table.at,
                problem.hint("remove it: each topic gets a table of its own name"),
            );
        }
        let source = match (&section.keys.source, &file.defaults.source, sources) {
            (Some(source), _, _) => find_source(source, sources, faults),
            // A wrong default is reported once, where it stands.
            (None, Some(source), _) => sources
                .iter()
                .map(|known| &known.name)
                .find(|name| name.as_str() == source.value),
            (None, None, [only]) => Some(&only.name),
            (None, None, _) => {
                let problem = Problem::new("no source is named, and there are several");
                faults.add(
                    &name.at,
                    problem.hint("add source = \"NAME\", here or in [defaults]"),
                );
                None
            }
        };
        let Some(source) = source.cloned() else { continue };
        rules.push(Rule {
            at: name.at.clone(),
            source,
            pattern,
            section: section.clone(),
        });
    }
    check_overlaps(&rules, faults);
    rules
}

fn find_source<'s>(
    written: &Located<String>,
    sources: &'s [Source],
    faults: &FaultList,
) -> Option<&'s SourceName> {
    let names = || sources.iter().map(|source| &source.name);
    let found = names().find(|name| name.as_str() == written.value);
    if found.is_none() {
        let hint = match closest(&written.value, names().map(SourceName::as_str)) {
            Some(name) => format!("did you mean {name:?}?"),
            None => format!("add [sources.{}], or name one of: {}", written.value, {
                names().map(SourceName::as_str).collect::<Vec<_>>().join(", ")
            }),
        };
        faults.add(
            &written.at,
            Problem::new(format!("there is no source {:?}", written.value)).hint(hint),
        );
    }
    found
}

/// Of two sections that fix equally many characters, none may mean what the other means.
fn check_overlaps(rules: &[Rule], faults: &FaultList) {
    let (exact, patterns): (Vec<&Rule>, Vec<&Rule>) = rules.iter().partition(|rule| rule.pattern.is_exact());
    let mut seen = std::collections::BTreeMap::new();
    for rule in exact {
        if let Some(other) = seen.insert((&rule.source, rule.pattern.as_str()), &rule.at.key_path) {
            faults.add(
                &rule.at,
                Problem::new(format!("{other} is about the same topic")).hint("keep one section"),
            );
        }
    }
    if let Some(beyond) = patterns.get(MAX_PATTERNS) {
        let problem = Problem::new(format!(
            "{} patterns, at most {MAX_PATTERNS} are possible",
            patterns.len()
        ));
        faults.add(&beyond.at, problem.hint("use fewer, wider patterns"));
        return;
    }
    for (index, rule) in patterns.iter().enumerate() {
        let rival = patterns[..index].iter().find(|other| {
            other.source == rule.source
                && other.pattern.rank() == rule.pattern.rank()
                && other.pattern.overlaps(&rule.pattern)
        });
        if let Some(rival) = rival {
            let problem = Problem::new(format!(
                "some topics match both this pattern and {}, equally well",
                rival.at.key_path
            ));
            faults.add(&rule.at, problem.hint("make one of them longer"));
        }
    }
}
