use std::path::{Path, PathBuf};

use frazil_core::{Error, ErrorKind, RegistryName, Result, Secret};

use crate::choice::choice;
use crate::duration::DurationMs;
use crate::fault::{At, FaultList, Located, Problem, closest};
use crate::reader::{Keys, Section};
use crate::sections::{FileSection, Read, check, read_duration};

/// Most nodes of a registry: each is asked before the event is given back.
const MAX_URLS: usize = 10;
/// Most registries of a file.
const MAX_REGISTRIES: usize = 100;
/// Longest name of a registry, or of an environment variable.
const MAX_NAME_LEN: usize = 64;
/// A registry answers in milliseconds, and one that starts up in a few seconds.
const DEFAULT_TIMEOUT_MS: u64 = 10_000;
/// Glue's registry of schemas that name none.
const DEFAULT_GLUE_REGISTRY: &str = "default-registry";

choice! {
    /// What sort of registry it is.
    pub enum RegistryKind {
        /// Files in a directory.
        #[default]
        Directory = "directory",
        /// Confluent's API, over HTTP: Confluent, Karapace, Redpanda, Apicurio's compatible one, and others.
        Confluent = "confluent",
        /// The schema registry of AWS Glue.
        Glue = "glue",
    }
    later {
        "apicurio": "Apicurio's own API; its Confluent-compatible one is \"confluent\"",
    }
}

/// A schema registry that the configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    pub(crate) name: RegistryName,
    pub(crate) access: RegistryAccess,
}

impl Registry {
    /// The name.
    pub fn name(&self) -> &RegistryName {
        &self.name
    }

    /// How it is reached.
    pub fn access(&self) -> &RegistryAccess {
        &self.access
    }
}

/// How a registry is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistryAccess {
    /// Files in this directory.
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// Confluent's API over HTTP.
    Confluent(ConfluentAccess),
    /// AWS Glue.
    Glue {
        /// The region; `None`: the process's own.
        region: Option<String>,
        /// Where names are looked up; ids need none.
        registry_name: String,
    },
}

/// How a registry with Confluent's API is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfluentAccess {
    /// The addresses of its nodes.
    pub urls: Vec<String>,
    /// Who we say we are.
    pub auth: RegistryAuth,
    /// A file of certificates that the server's must come from.
    pub ca_file: Option<PathBuf>,
    /// Certificate, chain and private key for mutual TLS.
    pub identity: Option<IdentitySource>,
    /// How long one request may take.
    pub timeout_ms: DurationMs,
}

/// Who we say we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistryAuth {
    /// Nobody.
    None,
    /// A user and a password.
    Basic {
        /// The user.
        username: String,
        /// Where the password is.
        password: SecretSource,
    },
    /// A token.
    Bearer(SecretSource),
}

/// Where a secret is. It never stands in the configuration itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In this environment variable.
    Variable(String),
}

/// Where certificate and key are, together in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdentitySource {
    /// In a file.
    File(PathBuf),
    /// Where secrets are.
    Secret(SecretSource),
}

impl SecretSource {
    /// The secret, from this process's environment.
    ///
    /// # Errors
    /// `Invalid` if the variable is not set, is empty or is not text.
    pub fn read(&self) -> Result<Secret> {
        self.read_from(|name| std::env::var(name).ok())
    }

    fn read_from(&self, lookup: impl Fn(&str) -> Option<String>) -> Result<Secret> {
        let Self::Variable(name) = self;
        match lookup(name).filter(|value| !value.is_empty()) {
            Some(value) => Ok(Secret::new(value)),
            None => Err(Error::new(
                ErrorKind::Invalid,
                "use the environment",
                format!("the variable {name}, which the configuration names, is not set"),
            )
            .with_code("environment.invalid")
            .with_hint("set it where Frazil runs")),
        }
    }
}

/// A schema registry. Topics name it with `registry`; when there is only one, they need not.
#[derive(Debug, Clone, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct RegistrySection {
    /// What it is: `directory` (files), `confluent` (Confluent's API over HTTP, which Karapace, Redpanda and Apicurio
    /// speak too), `glue` (AWS Glue).
    #[cfg_attr(test, schemars(extend("default" = "directory")))]
    kind: Read<RegistryKind>,
    /// With `directory`: where it is, relative to this file.
    #[cfg_attr(test, schemars(extend("examples" = ["./schemas"])))]
    path: Read<String>,
    /// With `confluent`: the addresses of its nodes, `https://HOST[:PORT][/PATH]`. They are asked in this order,
    /// beginning with the one that answered last.
    #[cfg_attr(test, schemars(length(min = 1, max = MAX_URLS), extend("examples" = [["https://registry-1.example.com:8081", "https://registry-2.example.com:8081"]])))]
    urls: Read<Vec<Located<String>>>,
    /// The user, or the API key of Confluent Cloud.
    #[cfg_attr(test, schemars(extend("examples" = ["frazil"])))]
    username: Read<String>,
    /// The environment variable that holds the user's password, or the API key's secret.
    #[cfg_attr(test, schemars(regex(pattern = "^[A-Za-z_][A-Za-z0-9_]{0,63}$"), extend("examples" = ["REGISTRY_PASSWORD"])))]
    password_env: Read<String>,
    /// The environment variable that holds a bearer token, instead of user and password.
    #[cfg_attr(test, schemars(regex(pattern = "^[A-Za-z_][A-Za-z0-9_]{0,63}$"), extend("examples" = ["REGISTRY_TOKEN"])))]
    token_env: Read<String>,
    /// A PEM file of certificates, relative to this file: the server's must come from one of them. Without it: those
    /// that the system trusts.
    #[cfg_attr(test, schemars(extend("examples" = ["ca.pem"])))]
    ca_file: Read<String>,
    /// For mutual TLS: a PEM file of certificate, chain and private key (PKCS #8), relative to this file.
    #[cfg_attr(test, schemars(extend("examples" = ["client.pem"])))]
    identity_file: Read<String>,
    /// For mutual TLS: the environment variable that holds the same.
    #[cfg_attr(test, schemars(regex(pattern = "^[A-Za-z_][A-Za-z0-9_]{0,63}$"), extend("examples" = ["REGISTRY_IDENTITY"])))]
    identity_env: Read<String>,
    /// How long one request may take, from 100 ms to a minute.
    #[cfg_attr(test, schemars(extend("default" = "10s")))]
    timeout: Read<DurationMs>,
    /// With `glue`: the region. Without it: that of the function.
    #[cfg_attr(test, schemars(extend("examples" = ["eu-central-1"])))]
    region: Read<String>,
    /// With `glue`: the registry in which `subject:NAME` is looked up; what records name needs none.
    #[cfg_attr(test, schemars(extend("default" = "default-registry")))]
    registry_name: Read<String>,
    /// What a wrong key would have said is not missed as well.
    #[cfg_attr(test, schemars(skip))]
    is_faulty: bool,
}

const IN_ENVIRONMENT: &str = "an environment variable, whose name stands here: password_env, token_env";

pub(crate) const REGISTRY_KEYS: Keys = Keys {
    known: &[&[
        "kind",
        "path",
        "urls",
        "username",
        "password_env",
        "token_env",
        "ca_file",
        "identity_file",
        "identity_env",
        "timeout",
        "region",
        "registry_name",
    ]],
    later: &[
        ("secret", "credentials in Secrets Manager"),
        ("password_secret", "credentials in Secrets Manager"),
        ("token_secret", "credentials in Secrets Manager"),
        ("identity_secret", "credentials in Secrets Manager"),
        ("oauth", "OAuth"),
    ],
    instead: &[],
    elsewhere: &[
        ("password", IN_ENVIRONMENT),
        ("token", IN_ENVIRONMENT),
        ("url", "urls, a list"),
    ],
};

impl RegistrySection {
    pub(crate) fn read(section: Section<'_>) -> Self {
        let (faults, before) = (section.faults(), section.faults().count());
        let variable = |key| {
            section
                .read(key)
                .filter(|name| check(&section, name, |name: &String| is_variable(name)))
        };
        let mut registry = Self {
            kind: section.read("kind"),
            path: section.read("path"),
            urls: section.read_list("urls", MAX_URLS),
            username: section.read("username"),
            password_env: variable("password_env"),
            token_env: variable("token_env"),
            ca_file: section.read("ca_file"),
            identity_file: section.read("identity_file"),
            identity_env: variable("identity_env"),
            // Shorter than 100 ms no registry far away can answer; a function has other things to wait for.
            timeout: read_duration(&section, "timeout", 100, 60_000),
            region: section.read("region"),
            registry_name: section.read("registry_name"),
            is_faulty: false,
        };
        section.finish();
        registry.is_faulty = faults.count() > before;
        registry
    }

    /// Each key that is written, and the kinds that have it.
    fn owners(&self) -> [(&'static str, Option<&At>, RegistryKind); 11] {
        fn at<T>(read: &Read<T>) -> Option<&At> {
            read.as_ref().map(|read| &read.at)
        }
        use RegistryKind::{Confluent, Directory, Glue};
        [
            ("path", at(&self.path), Directory),
            ("urls", at(&self.urls), Confluent),
            ("username", at(&self.username), Confluent),
            ("password_env", at(&self.password_env), Confluent),
            ("token_env", at(&self.token_env), Confluent),
            ("ca_file", at(&self.ca_file), Confluent),
            ("identity_file", at(&self.identity_file), Confluent),
            ("identity_env", at(&self.identity_env), Confluent),
            ("timeout", at(&self.timeout), Confluent),
            ("region", at(&self.region), Glue),
            ("registry_name", at(&self.registry_name), Glue),
        ]
    }

    fn access(
        &self,
        name: &At,
        from_here: &dyn Fn(&str) -> PathBuf,
        faults: &FaultList,
    ) -> Option<RegistryAccess> {
        let kind = self
            .kind
            .as_ref()
            .map_or_else(RegistryKind::default, |kind| kind.value);
        for (key, at, owner) in self.owners() {
            if let Some(at) = at.filter(|_| owner != kind) {
                let problem = Problem::new(format!("a registry of kind \"{kind}\" has no {key}"));
                faults.add(
                    at,
                    problem.hint(format!("remove it, or write kind = \"{owner}\"")),
                );
            }
        }
        let value = |read: &Read<String>| read.as_ref().map(|read| read.value.clone());
        match kind {
            RegistryKind::Directory => match value(&self.path) {
                Some(path) => Some(RegistryAccess::Directory {
                    path: from_here(&path),
                }),
                None => {
                    faults.add(
                        name,
                        Problem::new("nothing says where it is")
                            .hint("add path, or urls and kind = \"confluent\""),
                    );
                    None
                }
            },
            RegistryKind::Glue => Some(RegistryAccess::Glue {
                region: value(&self.region),
                registry_name: value(&self.registry_name).unwrap_or_else(|| DEFAULT_GLUE_REGISTRY.to_owned()),
            }),
            RegistryKind::Confluent => self
                .confluent(name, from_here, faults)
                .map(RegistryAccess::Confluent),
        }
    }

    fn confluent(
        &self,
        name: &At,
        from_here: &dyn Fn(&str) -> PathBuf,
        faults: &FaultList,
    ) -> Option<ConfluentAccess> {
        let urls = match &self.urls {
            Some(urls) if !urls.value.is_empty() => urls,
            written => {
                let at = written.as_ref().map_or(name, |urls| &urls.at);
                faults.add(
                    at,
                    Problem::new("nothing says where it is").hint("add urls = [\"https://…\"]"),
                );
                return None;
            }
        };
        for url in &urls.value {
            if let Err(problem) = is_url(&url.value) {
                faults.add(&url.at, problem);
            }
        }
        let variable = |read: &Located<String>| SecretSource::Variable(read.value.clone());
        let auth = match (&self.username, &self.password_env, &self.token_env) {
            (None, None, None) => RegistryAuth::None,
            (Some(username), Some(password), None) => RegistryAuth::Basic {
                username: username.value.clone(),
                password: variable(password),
            },
            (None, None, Some(token)) => RegistryAuth::Bearer(variable(token)),
            (Some(alone), None, None) | (None, Some(alone), None) => {
                let problem = Problem::new("a user needs a password, and a password a user");
                faults.add(&alone.at, problem.hint("write username and password_env"));
                return None;
            }
            (_, _, Some(token)) => {
                let problem = Problem::new("a token stands instead of user and password");
                faults.add(&token.at, problem.hint("remove one of them"));
                return None;
            }
        };
        let identity = match (&self.identity_file, &self.identity_env) {
            (None, None) => None,
            (Some(file), None) => Some(IdentitySource::File(from_here(&file.value))),
            (None, Some(name)) => Some(IdentitySource::Secret(variable(name))),
            (Some(_), Some(name)) => {
                faults.add(
                    &name.at,
                    Problem::new("identity_file says it too").hint("remove one of them"),
                );
                return None;
            }
        };
        Some(ConfluentAccess {
            urls: urls.value.iter().map(|url| url.value.clone()).collect(),
            auth,
            ca_file: self.ca_file.as_ref().map(|file| from_here(&file.value)),
            identity,
            timeout_ms: self
                .timeout
                .as_ref()
                .map_or(DurationMs(DEFAULT_TIMEOUT_MS), |read| read.value),
        })
    }
}

/// The registries of the file.
pub(crate) fn read_registries(file: &FileSection, path: &Path, faults: &FaultList) -> Vec<Registry> {
    let from_here = |relative: &str| match path.parent() {
        Some(directory) => directory.join(relative),
        None => PathBuf::from(relative),
    };
    if let Some((beyond, _)) = file.registries.get(MAX_REGISTRIES) {
        let problem = Problem::new(format!(
            "{} registries, at most {MAX_REGISTRIES} are possible",
            file.registries.len()
        ));
        faults.add(&beyond.at, problem.hint("use a file for each part of them"));
    }
    let mut registries = Vec::new();
    for (name, section) in file.registries.iter().take(MAX_REGISTRIES) {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.value.is_empty() || name.value.len() > MAX_NAME_LEN || !name.value.chars().all(legal) {
            faults.add(
                &name.at,
                Problem::new("not the name of a registry")
                    .hint(format!("use 1 to {MAX_NAME_LEN} of a-z, A-Z, 0-9, `_` and `-`")),
            );
            continue;
        }
        if section.is_faulty {
            continue;
        }
        if let Some(access) = section.access(&name.at, &from_here, faults) {
            registries.push(Registry {
                name: RegistryName::new(name.value.as_str()),
                access,
            });
        }
    }
    registries
}

/// Checks that a topic's `registry` is one of the file's.
pub(crate) fn check_registry(written: &Located<String>, file: &FileSection, faults: &FaultList) {
    let names = || file.registries.iter().map(|(name, _)| name.value.as_str());
    if names().any(|name| name == written.value) {
        return;
    }
    let hint = match closest(&written.value, names()) {
        Some(name) => format!("did you mean {name:?}?"),
        None => format!("add [registries.{}]", written.value),
    };
    faults.add(
        &written.at,
        Problem::new(format!("there is no registry {:?}", written.value)).hint(hint),
    );
}

pub(crate) fn is_variable(text: &str) -> Result<(), Problem> {
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let starts = text.bytes().next().is_some_and(|b| !b.is_ascii_digit());
    if starts && text.len() <= MAX_NAME_LEN && text.bytes().all(legal) {
        return Ok(());
    }
    // What was written may be the secret itself.
    Err(Problem::new("not the name of an environment variable").hint(
        "write the variable's name here, such as \"REGISTRY_PASSWORD\", and the secret into the variable",
    ))
}

fn is_url(text: &str) -> Result<(), Problem> {
    let rest = text.strip_prefix("https://").or(text.strip_prefix("http://"));
    let authority = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    match authority {
        Some(authority) if authority.contains('@') => {
            Err(Problem::new("the address holds a name or a password")
                .hint("remove it from the address; use username and password_env"))
        }
        Some(authority) if !authority.is_empty() && !text.contains(['?', '#', ' ']) => Ok(()),
        _ => Err(Problem::new(format!("{text:?} is not the address of a registry"))
            .hint("write https://HOST[:PORT][/PATH]")),
    }
}

#[cfg(test)]
mod tests;
