use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use frazil_config::{Config, Place, Settings};
use frazil_core::{Environment, Error, ErrorKind, Result, TimestampMs};
use frazil_table::Warehouse;
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::remote::{Fetched, RemoteConfig};
use crate::warehouse::open_in_function;

/// How long a configuration from S3 is used before it is asked whether there is a newer one.
const CONFIG_AGE: Duration = Duration::from_secs(15);

/// An open warehouse and its configuration, which may change while it is used.
#[derive(Debug)]
pub struct Deployment {
    warehouse: Warehouse,
    remote: Option<RemoteConfig>,
    current: Mutex<Current>,
}

/// The configuration in use.
#[derive(Debug)]
struct Current {
    config: Arc<Config>,
    version: Option<String>,
    /// Its text, until it is kept as the last good one.
    unkept: Option<Bytes>,
    asked_at: TimestampMs,
    /// The files that it names.
    folder: Option<TempDir>,
    /// Those of earlier ones, which may be in use.
    outlived: Vec<TempDir>,
}

impl Deployment {
    /// Opens what the environment names. `Invalid` when no warehouse is named, or the configuration cannot be used and
    /// there is none from before.
    pub async fn open(settings: &Settings, environment: &Environment) -> Result<Self> {
        let (remote, current) = match &settings.config {
            None => (None, Current::fixed(Config::default())),
            Some(Place::Local(path)) => (None, Current::fixed(Config::load(path)?)),
            Some(Place::S3(location)) => {
                let remote = RemoteConfig::new(location).await;
                let current = Current::first(&remote, environment).await?;
                (Some(remote), current)
            }
        };
        let place = settings.warehouse.as_ref().or(current.config.warehouse()).ok_or_else(|| {
            Error::new(ErrorKind::Invalid, "start", "no warehouse is named")
                .with_hint("set FRAZIL_WAREHOUSE, or `warehouse` in frazil.toml, to s3://BUCKET/PREFIX or a directory")
        })?;
        let memory_mib = settings.lambda.as_ref().and_then(|lambda| lambda.memory_mib);
        let warehouse = open_in_function(place, current.config.aws(), memory_mib, environment).await?;
        Ok(Self {
            warehouse,
            remote,
            current: Mutex::new(current),
        })
    }

    /// On a warehouse that is open already, with a configuration that stays as it is.
    pub fn fixed(warehouse: Warehouse, config: Config) -> Self {
        Self {
            warehouse,
            remote: None,
            current: Mutex::new(Current::fixed(config)),
        }
    }

    /// The warehouse. Where it is stays as it was when the process started.
    pub fn warehouse(&self) -> &Warehouse {
        &self.warehouse
    }

    /// The configuration: on S3, the newest that can be used, asked for at most every 15 seconds. The same `Arc` until
    /// it changes.
    pub async fn config(&self) -> Arc<Config> {
        let mut current = self.current.lock().await;
        let Some(remote) = &self.remote else {
            return current.config.clone();
        };
        let now = self.warehouse.environment.now();
        if now.since(current.asked_at) < CONFIG_AGE {
            return current.config.clone();
        }
        current.asked_at = now;
        match remote.fetch(current.version.as_deref()).await {
            Ok(None) => {}
            Ok(Some(fetched)) => {
                tracing::info!(version = fetched.version, "new configuration");
                current.replace(fetched);
            }
            Err(error) => {
                tracing::error!(kind = %error.kind(), %error, "the configuration stays as it was: the new one is not usable");
            }
        }
        current.config.clone()
    }

    /// Keeps the configuration in use as the last good one, for processes that start while the newest cannot be used.
    /// One process does this, not all. Asks S3 once per configuration.
    pub async fn keep_last_good(&self) -> Result<()> {
        let mut current = self.current.lock().await;
        if let (Some(remote), Some(text)) = (&self.remote, &current.unkept) {
            remote.keep_last_good(text.clone()).await?;
            current.unkept = None;
        }
        Ok(())
    }
}

impl Current {
    fn fixed(config: Config) -> Self {
        Self {
            config: Arc::new(config),
            version: None,
            unkept: None,
            asked_at: TimestampMs(0),
            folder: None,
            outlived: Vec::new(),
        }
    }

    /// The newest that can be used when a process starts.
    async fn first(remote: &RemoteConfig, environment: &Environment) -> Result<Self> {
        let newest = remote.fetch(None).await;
        let fetched = match newest {
            Ok(fetched) => fetched,
            Err(error) if error.kind() == ErrorKind::Invalid => match remote.fetch_last_good().await {
                Ok(Some(mut last_good)) => {
                    tracing::error!(%error, "the newest configuration is not usable: the last good one is");
                    // The newest is asked for again.
                    last_good.version.clear();
                    Some(last_good)
                }
                Ok(None) | Err(_) => return Err(error),
            },
            Err(error) => return Err(error),
        };
        let mut current = Self::fixed(Config::default());
        current.asked_at = environment.now();
        if let Some(fetched) = fetched {
            current.replace(fetched);
        }
        Ok(current)
    }

    fn replace(&mut self, fetched: Fetched) {
        self.config = Arc::new(fetched.config);
        self.version = Some(fetched.version).filter(|version| !version.is_empty());
        self.unkept = self.version.is_some().then_some(fetched.text);
        self.outlived.extend(self.folder.replace(fetched.folder));
    }
}
