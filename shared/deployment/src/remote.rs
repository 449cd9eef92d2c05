use std::fs;
use std::path::Path;

use bytes::Bytes;
use frazil_aws::{Account, AccountSettings, IfChanged, S3Storage};
use frazil_config::{Config, MAX_CONFIG_BYTES, Place};
use frazil_core::{Error, ErrorKind, Result};
use frazil_table::ObjectStorage;
use tempfile::TempDir;

/// The last configuration on S3 that could be used is kept beside it under this name.
const LAST_GOOD: &str = ".last-good";
/// The largest file that a configuration may name: a schema, or certificates.
const MAX_FILE_BYTES: u64 = 4 << 20;

const LOAD: &str = "load the configuration";
const PUSH: &str = "push the configuration";

/// `frazil.toml` on S3. Files that it names lie beside it.
#[derive(Debug)]
pub(crate) struct RemoteConfig {
    storage: S3Storage,
    location: String,
}

/// A configuration from S3, and where its files are on this machine.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) config: Config,
    pub(crate) text: Bytes,
    /// Its ETag.
    pub(crate) version: String,
    /// Removed when it is dropped.
    pub(crate) folder: TempDir,
}

impl RemoteConfig {
    /// With the process's own credentials: what `[aws]` says is for the warehouse.
    pub(crate) async fn new(location: &str) -> Self {
        let account = Account::open(&AccountSettings::default()).await;
        Self {
            storage: S3Storage::new(&account),
            location: location.to_owned(),
        }
    }

    /// The configuration, unless it is still `known`. `Invalid` when it cannot be used.
    pub(crate) async fn fetch(&self, known: Option<&str>) -> Result<Option<Fetched>> {
        self.fetch_from(&self.location, known).await
    }

    /// The last one that could be used.
    pub(crate) async fn fetch_last_good(&self) -> Result<Option<Fetched>> {
        let location = self.last_good();
        match self.storage.head(&location).await? {
            Some(_) => self.fetch_from(&location, None).await,
            None => Ok(None),
        }
    }

    /// Keeps what can be used.
    pub(crate) async fn keep_last_good(&self, text: Bytes) -> Result<()> {
        let location = self.last_good();
        let known = self.storage.get(&location, MAX_CONFIG_BYTES as u64).await?;
        if known.as_ref() == Some(&text) {
            return Ok(());
        }
        self.storage.put(&location, text, None).await
    }

    fn last_good(&self) -> String {
        format!("{}{LAST_GOOD}", self.location)
    }

    async fn fetch_from(&self, location: &str, known: Option<&str>) -> Result<Option<Fetched>> {
        let (text, version) = match self
            .storage
            .get_if_changed(location, known, MAX_CONFIG_BYTES as u64)
            .await?
        {
            IfChanged::Unchanged => return Ok(None),
            IfChanged::Changed { bytes, version } => (bytes, version),
            IfChanged::Missing => {
                return Err(Error::new(ErrorKind::Invalid, LOAD, "there is no such object")
                    .with_context("config", location)
                    .with_hint("`frazil config push FILE` puts it there"));
            }
        };
        let folder = tempfile::tempdir().map_err(|error| {
            Error::new(ErrorKind::Unavailable, LOAD, error.to_string()).with_source(error)
        })?;
        let config = parse(&text, &folder.path().join("frazil.toml"), location)?;
        for file in config.files() {
            // Absolute paths are the function's own.
            let Ok(relative) = file.strip_prefix(folder.path()) else {
                continue;
            };
            let beside = beside(location, relative);
            let bytes = self.storage.get(&beside, MAX_FILE_BYTES).await?.ok_or_else(|| {
                Error::new(ErrorKind::Invalid, LOAD, "a file that it names is not beside it")
                    .with_context("config", location)
                    .with_context("file", &beside)
                    .with_hint("`frazil config push FILE` puts files there too")
            })?;
            write(&file, &bytes).map_err(|error| {
                Error::new(ErrorKind::Unavailable, LOAD, error.to_string()).with_source(error)
            })?;
        }
        Ok(Some(Fetched {
            config,
            text,
            version,
            folder,
        }))
    }
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, bytes)
}

/// Faults are shown with the name that people know.
fn parse(text: &[u8], path: &Path, location: &str) -> Result<Config> {
    let text = std::str::from_utf8(text).map_err(|_| {
        Error::new(ErrorKind::Invalid, LOAD, "it is not UTF-8 text").with_context("config", location)
    })?;
    Config::parse(text, path).map_err(|faults| {
        let message = faults.to_string().replace(&path.display().to_string(), location);
        Error::new(ErrorKind::Invalid, LOAD, message).with_source(faults)
    })
}

/// The location of a file that the configuration at `location` names.
fn beside(location: &str, relative: &Path) -> String {
    let folder = location.rsplit_once('/').map_or(location, |(folder, _)| folder);
    let mut beside = folder.to_owned();
    for part in relative.components() {
        beside.push('/');
        beside.push_str(&part.as_os_str().to_string_lossy());
    }
    beside
}

/// The files that a configuration from S3 names, on this machine: removed when it is dropped.
#[derive(Debug, Default)]
pub struct ConfigFiles(
    #[expect(dead_code, reason = "held, for what it does when it is dropped")] Option<TempDir>,
);

/// Loads a configuration from wherever it is, once. It can be used as long as its files are held.
pub async fn load_config(place: &Place) -> Result<(Config, ConfigFiles)> {
    match place {
        Place::Local(path) => Ok((Config::load(path)?, ConfigFiles::default())),
        Place::S3(location) => match RemoteConfig::new(location).await.fetch(None).await? {
            Some(fetched) => Ok((fetched.config, ConfigFiles(Some(fetched.folder)))),
            None => Ok((Config::default(), ConfigFiles::default())),
        },
    }
}

/// What was pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// Where the configuration is now.
    pub location: String,
    /// Where the files are that it names.
    pub files: Vec<String>,
    /// Whether it was there already, as it is.
    pub unchanged: bool,
}

/// Puts a configuration that can be used, and the files that it names, to where functions read it: files first, so that
/// no function sees a name without its file.
pub async fn push_config(path: &Path, location: &str) -> Result<Pushed> {
    let refuse = |reason: String| Error::new(ErrorKind::Invalid, PUSH, reason);
    if !location.starts_with("s3://") || location.ends_with('/') {
        return Err(refuse("it is pushed to an object on S3".to_owned())
            .with_context("location", location)
            .with_hint("write s3://BUCKET/PREFIX/frazil.toml"));
    }
    let config = Config::load(path)?;
    let read = |path: &Path| {
        fs::read(path).map_err(|error| {
            refuse(error.to_string())
                .with_context("file", path.display())
                .with_source(error)
        })
    };
    let text = Bytes::from(read(path)?);
    let remote = RemoteConfig::new(location).await;
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut files = Vec::new();
    for file in config.files() {
        let Ok(relative) = file.strip_prefix(folder) else {
            return Err(
                refuse("a file that it names is not in its folder or below".to_owned())
                    .with_context("file", file.display())
                    .with_hint(
                        "functions have only what is pushed with it: move the file beside frazil.toml",
                    ),
            );
        };
        let bytes = read(&file)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(refuse(format!("a file has more than {MAX_FILE_BYTES} bytes"))
                .with_context("file", file.display()));
        }
        files.push((beside(location, relative), Bytes::from(bytes)));
    }
    for (location, bytes) in &files {
        remote.storage.put(location, bytes.clone(), None).await?;
    }
    let known = remote.storage.get(location, MAX_CONFIG_BYTES as u64).await?;
    let unchanged = known.as_ref() == Some(&text);
    if !unchanged {
        remote.storage.put(location, text.clone(), None).await?;
    }
    remote.keep_last_good(text).await?;
    Ok(Pushed {
        location: location.to_owned(),
        files: files.into_iter().map(|(location, _)| location).collect(),
        unchanged,
    })
}
