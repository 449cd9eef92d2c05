use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use frazil_core::{Environment, Error, ErrorKind, Result, Secret};
use frazil_kafka::wire::{SchemaRef, SubjectVersion};

use crate::{SchemaRegistry, StoredSchema, fault};

mod answer;
mod transport;

pub use transport::MAX_ANSWER_BYTES;
use transport::Transport;

/// How to reach a registry that speaks Confluent's API: Confluent's own, or Karapace, Redpanda, Apicurio's
/// compatible one, and others.
#[derive(Debug, Clone)]
pub struct ConfluentOptions {
    /// Base addresses of the nodes of one registry, `http://` or `https://`, perhaps with a path. They are asked in this
    /// order, beginning with the one that answered last.
    pub urls: Vec<String>,
    /// Who we say we are.
    pub auth: Auth,
    /// Certificates in PEM that the server's must come from. Without them: those that the system trusts.
    pub ca_pem: Option<Vec<u8>>,
    /// Certificate, its chain and its private key (PKCS #8) in PEM, for mutual TLS.
    pub identity_pem: Option<Secret>,
    /// How long one request may take.
    pub timeout: Duration,
}

impl ConfluentOptions {
    /// Ten seconds: a registry answers in milliseconds, and one that starts up in a few seconds.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

    /// Plain access to these addresses.
    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            urls: urls.into_iter().map(Into::into).collect(),
            auth: Auth::None,
            ca_pem: None,
            identity_pem: None,
            timeout: Self::DEFAULT_TIMEOUT,
        }
    }
}

/// What goes into the `Authorization` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    /// Nothing.
    None,
    /// A user, or the key of Confluent Cloud, and its password or secret.
    Basic {
        /// The user.
        username: String,
        /// The password.
        password: Secret,
    },
    /// A token.
    Bearer(Secret),
}

/// A registry that speaks Confluent's API, over HTTP or HTTPS.
///
/// A node that is away or overloaded (connection, timeout, 429, 5xx) is passed over for the next one; when all are, the
/// round is repeated a few times with exponential backoff and jitter. Redirects are followed on the same host only, so
/// that credentials go nowhere else. “Not found” is believed only in Confluent's own words (error codes 40401 to 40403)
/// and after a second question: a node may be a moment behind the one that registered the schema.
#[derive(Debug)]
pub struct ConfluentRegistry {
    transport: Transport,
}

impl ConfluentRegistry {
    /// A client of this registry. Nothing is asked yet.
    ///
    /// # Errors
    /// `Invalid` if there is no address, if one is none or holds a password, or if a certificate or key is unreadable.
    pub fn new(options: ConfluentOptions, environment: Environment) -> Result<Self> {
        Ok(Self {
            transport: Transport::new(options, environment)?,
        })
    }
}

#[async_trait]
impl SchemaRegistry for ConfluentRegistry {
    async fn stored(&self, reference: &SchemaRef) -> Result<Arc<StoredSchema>> {
        let schema = match reference {
            SchemaRef::Id(id) => {
                let id = id.to_string();
                self.transport
                    .schema(reference, &["schemas", "ids", &id], "")
                    .await
            }
            SchemaRef::Apicurio(id) => {
                let id = id.to_string();
                self.transport
                    .schema(reference, &["schemas", "ids", &id], "")
                    .await
            }
            SchemaRef::Guid(guid) => {
                let guid = guid.to_string();
                self.transport
                    .schema(reference, &["schemas", "guids", &guid], "")
                    .await
            }
            SchemaRef::Subject { subject, version } => {
                // As one segment of a path these would mean another path.
                if matches!(subject.as_str(), "" | "." | "..") {
                    return Err(Error::new(
                        ErrorKind::Invalid,
                        "look up the schema",
                        format!("{subject:?} is not a subject"),
                    ));
                }
                // A reference outlives the deletion of its subject, as in Confluent's own clients.
                let (version, query) = match version {
                    SubjectVersion::Latest => ("latest".to_owned(), ""),
                    SubjectVersion::Number(number) => (number.to_string(), "deleted=true"),
                };
                self.transport
                    .schema(reference, &["subjects", subject, "versions", &version], query)
                    .await
            }
            SchemaRef::GlueVersion(_) | SchemaRef::File(_) => {
                return Err(fault::wrong_kind(reference, "one with Confluent's API"));
            }
        };
        schema.map(Arc::new)
    }
}

#[cfg(test)]
mod tests;
