use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Read;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;

use frazil_config::{Config, Place, Settings};
use frazil_core::{Environment, Error, ErrorKind, Result, SourceName, TableName, TopicName};
use frazil_deployment::{ConfigFiles, load_config, open_warehouse};
use frazil_ingest::{Ingest, IngestOptions, Registries};
use frazil_local::DATABASE_FILE;
use frazil_table::{Warehouse, system_environment};

use crate::arguments::Common;
use crate::progress::Progress;
use crate::queries::Reached;

/// What is taken for the configuration when nobody names one.
const CONFIG_FILE: &str = "frazil.toml";
/// What is taken for the warehouse when nobody names one.
const WAREHOUSE: &str = "warehouse";
/// The folder beside an event that is taken for the schema registry when nobody names one.
pub(crate) const SCHEMAS: &str = "schemas";
/// Larger than any event that Lambda delivers, and than any that is parsed.
pub(crate) const MAX_EVENT_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// What every command works with. Options go before the environment, and that before `frazil.toml`.
#[derive(Debug)]
pub(crate) struct Session {
    config: Arc<Config>,
    /// Read when a schema is, or a certificate.
    _config_files: ConfigFiles,
    place: Place,
    schemas: Option<PathBuf>,
    environment: Environment,
}

impl Session {
    pub(crate) async fn new(common: &Common, settings: Settings) -> Result<Self> {
        let named = common.config.clone().or(settings.config);
        let beside = || {
            Path::new(CONFIG_FILE)
                .exists()
                .then(|| Place::Local(CONFIG_FILE.into()))
        };
        let (config, config_files) = match named.or_else(beside) {
            Some(place) => load_config(&place).await?,
            None => Default::default(),
        };
        let place = common.warehouse.clone().or(settings.warehouse);
        let place = place.or_else(|| config.warehouse().cloned());
        let schemas = common.schemas.clone().or(settings.schemas);
        let schemas = schemas.or_else(|| config.schemas().map(Path::to_owned));
        Ok(Self {
            config: Arc::new(config),
            _config_files: config_files,
            place: place.unwrap_or_else(|| Place::Local(WAREHOUSE.into())),
            schemas,
            environment: system_environment(),
        })
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        self.config.clone()
    }

    pub(crate) fn progress(&self) -> Progress {
        Progress::start(&self.environment)
    }

    /// The warehouse; a directory is made when there is none.
    pub(crate) async fn warehouse(&self) -> Result<Warehouse> {
        open_warehouse(&self.place, self.config.aws(), &self.environment).await
    }

    /// The warehouse, for commands that have nothing to say about one that does not exist.
    pub(crate) async fn existing_warehouse(&self) -> Result<Warehouse> {
        if let Some(directory) = self.place.path()
            && !directory.join(DATABASE_FILE).exists()
        {
            return Err(Error::new(
                ErrorKind::Invalid,
                "open the warehouse",
                "there is none in this directory",
            )
            .with_context("directory", directory.display())
            .with_hint("name it with --warehouse; `frazil run EVENT.json` makes one"));
        }
        self.warehouse().await
    }

    /// How other engines reach the catalog.
    pub(crate) fn reached(&self, warehouse: &Warehouse) -> Reached {
        let location = warehouse.layout.warehouse();
        match location.strip_prefix("file://") {
            Some(directory) => Reached::Sqlite {
                database: Path::new(directory).join(DATABASE_FILE),
            },
            None => Reached::Glue {
                region: self.config.aws().region.clone(),
                catalog_id: self.config.aws().catalog_id.clone(),
            },
        }
    }

    /// The ingest handler for an event of this path; `None`: for parked events and standard input.
    pub(crate) fn ingest<'h>(
        &self,
        handlers: &'h mut Handlers,
        warehouse: &Warehouse,
        event: Option<&Path>,
    ) -> Result<&'h Ingest> {
        let beside = || {
            event
                .and_then(Path::parent)
                .unwrap_or(Path::new(""))
                .join(SCHEMAS)
        };
        let schemas = self.schemas.clone().unwrap_or_else(beside);
        match handlers.by_schemas.entry(schemas) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(vacant) => {
                let registries = Registries::open(&self.config, vacant.key(), &self.environment)?;
                let (warehouse, config) = (warehouse.clone(), self.config.clone());
                Ok(vacant.insert(Ingest::new(warehouse, config, registries, handlers.options)))
            }
        }
    }

    /// The schema registries, for what is of no event.
    pub(crate) fn registries(&self) -> Result<Registries> {
        let schemas = self.schemas.clone().unwrap_or_else(|| SCHEMAS.into());
        Registries::open(&self.config, &schemas, &self.environment)
    }

    /// Parked events do not tell where their schemas are; when these are not found, a person must.
    pub(crate) fn about_schemas(&self, error: Error) -> Error {
        if error.kind() == ErrorKind::Unavailable && self.schemas.is_none() {
            error.with_hint("name the folder of the schemas with --schemas")
        } else {
            error
        }
    }

    /// The source of a topic: the one named, or the only one that is known to have it.
    pub(crate) async fn source_of(
        &self,
        warehouse: &Warehouse,
        topic: &TopicName,
        named: Option<SourceName>,
    ) -> Result<SourceName> {
        if let Some(named) = named {
            return Ok(named);
        }
        let states = warehouse.topic_states().await?;
        let known = states
            .into_iter()
            .filter(|state| &state.topic == topic)
            .map(|state| state.source)
            .collect();
        let configured = self
            .config
            .sources()
            .iter()
            .map(|source| source.name().clone())
            .collect();
        choose_source(topic, known, configured)
    }
}

/// Ingest handlers by the folder that is their schema registry.
#[derive(Debug, Default)]
pub(crate) struct Handlers {
    by_schemas: BTreeMap<PathBuf, Ingest>,
    options: IngestOptions,
}

impl Handlers {
    /// Handlers that behave so.
    pub(crate) fn with(options: IngestOptions) -> Self {
        Self {
            by_schemas: BTreeMap::new(),
            options,
        }
    }
}

/// Sources that have delivered the topic go before sources that could.
fn choose_source(
    topic: &TopicName,
    known: Vec<SourceName>,
    configured: Vec<SourceName>,
) -> Result<SourceName> {
    let candidates = if known.is_empty() { configured } else { known };
    match candidates.as_slice() {
        [source] => Ok(source.clone()),
        several => {
            let names: Vec<&str> = several.iter().map(SourceName::as_str).collect();
            Err(Error::new(
                ErrorKind::Invalid,
                "find the topic",
                format!("it may be of {}", names.join(", ")),
            )
            .with_context("topic", topic)
            .with_hint("say which with --source"))
        }
    }
}

/// A table by its name, with or without its namespace.
pub(crate) async fn find_table(warehouse: &Warehouse, name: &str) -> Result<TableName> {
    if name.contains('.') {
        return TableName::try_from(name.to_owned());
    }
    let mut found = Vec::new();
    for namespace in warehouse.namespaces().await? {
        let tables = warehouse.catalog.tables(&namespace).await?;
        found.extend(tables.into_iter().filter(|table| table.table() == name));
    }
    match found.as_slice() {
        [table] => Ok(table.clone()),
        [] => Err(Error::new(
            ErrorKind::Invalid,
            "find the table",
            "the catalog has no such table",
        )
        .with_context("table", name)
        .with_hint("`frazil tables` lists what there is")),
        several => {
            let names: Vec<String> = several.iter().map(ToString::to_string).collect();
            Err(Error::new(
                ErrorKind::Invalid,
                "find the table",
                "several namespaces have one of this name",
            )
            .with_context("table", name)
            .with_hint(format!("write {}", names.join(" or "))))
        }
    }
}

/// Where an event comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EventFile {
    /// Standard input.
    Input,
    /// A file.
    File(PathBuf),
}

impl EventFile {
    /// The files that arguments mean: `-` is standard input, a folder is its `*.json` by name.
    pub(crate) fn expand(arguments: &[PathBuf]) -> Result<Vec<Self>> {
        let mut events = Vec::new();
        for argument in arguments {
            let failed = |error| unreadable(argument, error);
            if argument == Path::new("-") {
                if events.contains(&Self::Input) {
                    return Err(Error::new(
                        ErrorKind::Invalid,
                        "read events",
                        "standard input is named twice",
                    ));
                }
                events.push(Self::Input);
            } else if argument.is_dir() {
                let entries = std::fs::read_dir(argument).map_err(failed)?;
                let mut files = Vec::new();
                for entry in entries {
                    let path = entry.map_err(failed)?.path();
                    if path.extension().is_some_and(|extension| extension == "json") && path.is_file() {
                        files.push(path);
                    }
                }
                if files.is_empty() {
                    return Err(
                        Error::new(ErrorKind::Invalid, "read events", "the folder has no *.json")
                            .with_context("folder", argument.display()),
                    );
                }
                files.sort();
                events.extend(files.into_iter().map(Self::File));
            } else {
                events.push(Self::File(argument.clone()));
            }
        }
        Ok(events)
    }

    /// The name that it has in output.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Input => "-".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// The file's path.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Input => None,
            Self::File(path) => Some(path),
        }
    }

    /// All of it. Blocks.
    pub(crate) fn read(&self) -> Result<Vec<u8>> {
        let name = PathBuf::from(self.name());
        let mut bytes = Vec::new();
        let read = match self {
            Self::Input => std::io::stdin()
                .lock()
                .take(MAX_EVENT_FILE_BYTES + 1)
                .read_to_end(&mut bytes),
            Self::File(path) => std::fs::File::open(path)
                .and_then(|file| file.take(MAX_EVENT_FILE_BYTES + 1).read_to_end(&mut bytes)),
        };
        read.map_err(|error| unreadable(&name, error))?;
        if bytes.len() as u64 > MAX_EVENT_FILE_BYTES {
            return Err(Error::new(
                ErrorKind::Invalid,
                "read an event",
                format!(
                    "it is longer than {MAX_EVENT_FILE_BYTES} bytes, and Lambda's events are at most 6 MB"
                ),
            )
            .with_context("event", name.display()));
        }
        Ok(bytes)
    }
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    let shown = absolute(path).unwrap_or_else(|_| path.to_owned());
    Error::new(ErrorKind::Invalid, "read an event", error.to_string())
        .with_context("event", shown.display())
        .with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_its_json_files_by_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.json", "a.json", "README.md"] {
            std::fs::write(folder.path().join(name), "{}").unwrap();
        }
        std::fs::create_dir(folder.path().join("golden.json")).unwrap();
        let events = EventFile::expand(&["-".into(), folder.path().to_owned()]).unwrap();
        let names = ["a.json", "b.json"].map(|name| EventFile::File(folder.path().join(name)));
        assert_eq!(events, [&[EventFile::Input][..], &names].concat());
        let error = EventFile::expand(&["-".into(), "-".into()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read events: standard input is named twice"
        );
    }

    #[test]
    fn an_event_that_is_not_there_is_named() {
        let error = EventFile::File("/no/such/event.json".into()).read().unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (
                ErrorKind::Invalid,
                "cannot read an event: No such file or directory (os error 2) (event=/no/such/event.json)"
            )
        );
    }

    #[test]
    fn a_topic_is_of_the_source_that_delivered_it() {
        let topic = TopicName::from("orders");
        let sources = |names: &[&str]| {
            names
                .iter()
                .map(|name| SourceName::from(*name))
                .collect::<Vec<_>>()
        };
        let choose = |known: &[&str], configured: &[&str]| {
            choose_source(&topic, sources(known), sources(configured)).map(|source| source.to_string())
        };
        assert_eq!(choose(&["b"], &["a", "b"]).unwrap(), "b");
        assert_eq!(choose(&[], &["a"]).unwrap(), "a");
        assert_eq!(
            choose(&["a", "b"], &["a", "b", "c"]).unwrap_err().to_string(),
            "cannot find the topic: it may be of a, b (topic=orders); say which with --source"
        );
    }
}
