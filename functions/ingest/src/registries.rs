use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use frazil_aws::GlueSchemas;
use frazil_config::{Config, ConfluentAccess, IdentitySource, RegistryAccess, RegistryAuth};
use frazil_core::{Environment, Error, ErrorKind, RegistryName, Result, Secret};
use frazil_kafka::wire::SchemaRef;
use frazil_registry::{
    Auth, CachedRegistry, ConfluentOptions, ConfluentRegistry, DirectoryRegistry, FileSchemas, SchemaRegistry,
};

/// A CA file may be this long: that of a whole system is a quarter of it.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// The schema registries of a configuration, each with a cache before it.
#[derive(Debug, Clone)]
pub struct Registries {
    unnamed: Arc<dyn SchemaRegistry>,
    named: BTreeMap<RegistryName, Arc<dyn SchemaRegistry>>,
    files: Arc<dyn SchemaRegistry>,
}

impl Registries {
    /// The registries that the file names; `directory` is that of topics that name none. Nothing is asked yet, but
    /// certificates and secrets are read.
    ///
    /// # Errors
    /// `Invalid` if an environment variable that holds a secret is not set, or a certificate is unreadable.
    pub fn open(config: &Config, directory: &Path, environment: &Environment) -> Result<Self> {
        let mut registries = Self::open_directories(config, directory);
        for registry in config.registries() {
            let opened: Arc<dyn SchemaRegistry> = match registry.access() {
                RegistryAccess::Directory { .. } => continue,
                RegistryAccess::Glue {
                    region,
                    registry_name,
                } => Arc::new(CachedRegistry::new(GlueSchemas::new(
                    region.clone(),
                    registry_name.clone(),
                ))),
                RegistryAccess::Confluent(access) => {
                    let client = confluent(access)
                        .and_then(|options| ConfluentRegistry::new(options, environment.clone()))
                        .map_err(|error| error.with_context("registry", registry.name()))?;
                    Arc::new(CachedRegistry::new(client))
                }
            };
            registries.named.insert(registry.name().clone(), opened);
        }
        Ok(registries)
    }

    /// Of the registries that the file names, those that are directories: nothing needs a network or a secret.
    pub fn open_directories(config: &Config, directory: &Path) -> Self {
        let open = |path: &Path| Arc::new(CachedRegistry::new(DirectoryRegistry::new(path)));
        let mut registries = Self::from(open(directory));
        for registry in config.registries() {
            if let RegistryAccess::Directory { path } = registry.access() {
                registries.named.insert(registry.name().clone(), open(path));
            }
        }
        registries
    }

    /// The registry that has what is asked for: files are in none.
    pub fn get(&self, name: Option<&RegistryName>, reference: &SchemaRef) -> Result<&dyn SchemaRegistry> {
        if let SchemaRef::File(_) = reference {
            return Ok(self.files.as_ref());
        }
        match name {
            None => Ok(self.unnamed.as_ref()),
            Some(name) => self.named.get(name).map(Arc::as_ref).ok_or_else(|| {
                Error::new(
                    ErrorKind::Invalid,
                    "look up the schema",
                    format!("the registry `{name}` was not opened"),
                )
                .with_hint("check [registries] in the configuration")
            }),
        }
    }
}

/// One registry, for topics that name none.
impl<R: SchemaRegistry + 'static> From<Arc<R>> for Registries {
    fn from(unnamed: Arc<R>) -> Self {
        Self {
            unnamed,
            named: BTreeMap::new(),
            files: Arc::new(CachedRegistry::new(FileSchemas)),
        }
    }
}

fn confluent(access: &ConfluentAccess) -> Result<ConfluentOptions> {
    Ok(ConfluentOptions {
        urls: access.urls.clone(),
        auth: match &access.auth {
            RegistryAuth::None => Auth::None,
            RegistryAuth::Basic { username, password } => Auth::Basic {
                username: username.clone(),
                password: password.read()?,
            },
            RegistryAuth::Bearer(token) => Auth::Bearer(token.read()?),
        },
        ca_pem: match &access.ca_file {
            Some(path) => Some(pem(path)?.into_bytes()),
            None => None,
        },
        identity_pem: match &access.identity {
            Some(IdentitySource::File(path)) => Some(Secret::new(pem(path)?)),
            Some(IdentitySource::Secret(source)) => Some(source.read()?),
            None => None,
        },
        timeout: Duration::from_millis(access.timeout_ms.0),
    })
}

fn pem(path: &Path) -> Result<String> {
    use std::io::Read as _;
    let failed = |reason: String| {
        Error::new(
            ErrorKind::Invalid,
            "read a certificate",
            format!("{}: {reason}", path.display()),
        )
        .with_hint("check the path; relative ones start from the folder of frazil.toml")
    };
    let mut text = String::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(MAX_PEM_BYTES + 1).read_to_string(&mut text));
    read.map_err(|error| failed(error.to_string()).with_source(error))?;
    if text.len() as u64 > MAX_PEM_BYTES {
        return Err(failed(format!("it is longer than {MAX_PEM_BYTES} bytes")));
    }
    Ok(text)
}
