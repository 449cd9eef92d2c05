use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use frazil_core::{Environment, Error, ErrorKind, Result};
use frazil_kafka::wire::SchemaRef;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Certificate, Client, Identity, Response, StatusCode, Url, redirect};

use super::{Auth, ConfluentOptions, answer};
use crate::{StoredSchema, fault};

/// The longest answer that is read. A registry takes schemas of a megabyte by default, and JSON in JSON doubles quotes.
pub const MAX_ANSWER_BYTES: usize = 8 << 20;

/// How often all nodes are asked before the event is given back: the event source tries again later anyway.
const MAX_ROUNDS: u32 = 4;
const BACKOFF_BASE: Duration = Duration::from_millis(100);
const BACKOFF_LIMIT: Duration = Duration::from_secs(3);

/// Redirects on one host: from `/x` to `/x/`, or to another path of a gateway.
const MAX_REDIRECTS: usize = 3;

/// What registries are asked for, as Confluent's clients do.
const MEDIA_TYPES: &str =
    "application/vnd.schemaregistry.v1+json, application/vnd.schemaregistry+json, application/json";

const CONFIGURE: &str = "reach the schema registry";

/// Requests to the nodes of one registry.
#[derive(Debug)]
pub(super) struct Transport {
    client: Client,
    nodes: Vec<Url>,
    /// The node that answered last.
    preferred: AtomicUsize,
    environment: Environment,
    timeout: Duration,
}

/// What one node said.
enum Said {
    Schema(Result<StoredSchema>),
    NotFound,
    /// Another node, or the same one later, may say something better.
    Later(Error),
    Never(Error),
}

impl Transport {
    pub(super) fn new(options: ConfluentOptions, environment: Environment) -> Result<Self> {
        let nodes = options
            .urls
            .iter()
            .map(|text| node(text))
            .collect::<Result<Vec<_>>>()?;
        if nodes.is_empty() {
            return Err(invalid("no address is configured").with_hint("add urls = [\"https://…\"]"));
        }
        Ok(Self {
            client: client(&options)?,
            nodes,
            preferred: AtomicUsize::new(0),
            environment,
            timeout: options.timeout,
        })
    }

    pub(super) async fn schema(
        &self,
        reference: &SchemaRef,
        path: &[&str],
        query: &str,
    ) -> Result<StoredSchema> {
        let mut failure = None;
        let mut not_found = false;
        for round in 0..MAX_ROUNDS {
            if round > 0 {
                self.environment
                    .backoff(round - 1, BACKOFF_BASE, BACKOFF_LIMIT)
                    .await;
            }
            let first = self.preferred.load(Ordering::Relaxed);
            for place in 0..self.nodes.len() {
                let index = (first + place) % self.nodes.len();
                let node = &self.nodes[index];
                match self.ask(node, reference, path, query).await {
                    Said::Schema(schema) => {
                        self.preferred.store(index, Ordering::Relaxed);
                        return schema;
                    }
                    Said::NotFound if not_found => {
                        return Err(fault::unknown(reference, &of(node))
                            .with_hint("check that the producer uses this registry"));
                    }
                    Said::NotFound => not_found = true,
                    Said::Later(error) => failure = Some(error),
                    Said::Never(error) => return Err(error),
                }
            }
        }
        Err(failure.unwrap_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                "look up the schema",
                "no node of the registry was asked",
            )
        }))
    }

    async fn ask(&self, node: &Url, reference: &SchemaRef, path: &[&str], query: &str) -> Said {
        let mut url = node.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url.set_query(Some(query).filter(|query| !query.is_empty()));
        let mut response = match self.client.get(url).send().await {
            Ok(response) => response,
            Err(error) => return Said::Later(self.failed(node, error)),
        };
        let status = response.status();
        let body = match read(&mut response).await {
            Ok(Some(body)) => body,
            Ok(None) => {
                let message = format!("the answer is longer than {MAX_ANSWER_BYTES} bytes");
                return Said::Never(
                    Error::new(ErrorKind::Invalid, "look up the schema", message)
                        .with_context("schema", reference)
                        .with_code("registry.too_large"),
                );
            }
            Err(error) => return Said::Later(self.failed(node, error)),
        };
        judge(node, reference, status, &body)
    }

    fn failed(&self, node: &Url, error: reqwest::Error) -> Error {
        let error = error.without_url();
        let reason = if error.is_timeout() {
            format!("no answer within {:?}", self.timeout)
        } else {
            innermost(&error)
        };
        fault::unavailable(&of(node), &reason)
            .with_hint("check its address, and that the function's network reaches it")
            .with_source(error)
    }
}

fn judge(node: &Url, reference: &SchemaRef, status: StatusCode, body: &[u8]) -> Said {
    let answer = format!("it answers {status}");
    let registry = of(node);
    match status.as_u16() {
        200 => match answer::schema(reference, body) {
            Some(schema) => Said::Schema(schema),
            None => Said::Later(
                fault::unavailable(&registry, "its answer is not that of a schema registry")
                    .with_hint("check the address, and what stands between us and it"),
            ),
        },
        404 if answer::is_not_found(body) => Said::NotFound,
        404 => Said::Never(
            fault::unavailable(
                &registry,
                "it answers 404, but not that the schema is unknown: the address may be wrong",
            )
            .with_hint(match reference {
                SchemaRef::Guid(_) => {
                    "check the address; GUIDs need a recent registry, such as Confluent Platform 8.0"
                }
                _ => "check the address, and whether the registry's API is below a path of it",
            }),
        ),
        401 | 403 => Said::Never(fault::unauthorized(
            &registry,
            &answer,
            "check the registry's username and password, token or certificate, and that it may read schemas",
        )),
        300..=399 => Said::Never(
            fault::unavailable(&registry, &format!("{answer}: a redirect to another host"))
                .with_hint("name the address that it redirects to, if it is yours"),
        ),
        408 | 425 | 429 | 500.. => Said::Later(
            fault::unavailable(&registry, &answer).with_hint("it is overloaded or starting: wait"),
        ),
        _ => Said::Never(fault::unavailable(&registry, &answer).with_hint("check the registry's address")),
    }
}

fn node(text: &str) -> Result<Url> {
    let Ok(url) = Url::parse(text) else {
        return Err(
            invalid(format!("{text:?} is not an address")).with_hint("write https://HOST[:PORT][/PATH]")
        );
    };
    if !url.username().is_empty() || url.password().is_some() {
        let message = format!("the address of {} holds a name or a password", of(&url));
        return Err(invalid(message).with_hint("use username and password_env"));
    }
    let plain = url.query().is_none() && url.fragment().is_none();
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !plain {
        return Err(invalid(format!("{text:?} is not the address of a registry"))
            .with_hint("write https://HOST[:PORT][/PATH]"));
    }
    Ok(url)
}

fn client(options: &ConfluentOptions) -> Result<Client> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static(MEDIA_TYPES));
    if let Some(mut authorization) = authorization(&options.auth)? {
        authorization.set_sensitive(true);
        headers.insert(AUTHORIZATION, authorization);
    }
    let mut builder = Client::builder()
        .default_headers(headers)
        .user_agent(concat!("frazil/", env!("CARGO_PKG_VERSION")))
        .timeout(options.timeout)
        .connect_timeout(options.timeout)
        .redirect(redirect::Policy::custom(|attempt| {
            let stays = attempt
                .previous()
                .last()
                .is_some_and(|from| same_host(from, attempt.url()));
            if stays && attempt.previous().len() <= MAX_REDIRECTS {
                attempt.follow()
            } else {
                attempt.stop()
            }
        }));
    if let Some(pem) = &options.ca_pem {
        let unreadable = |message: String| invalid(message).with_hint("give certificates in PEM");
        let roots = Certificate::from_pem_bundle(pem)
            .map_err(|error| unreadable(format!("the CA is unreadable: {}", innermost(&error))))?;
        if roots.is_empty() {
            return Err(unreadable("the CA file holds no certificate".to_owned()));
        }
        builder = builder.tls_built_in_root_certs(false);
        for root in roots {
            builder = builder.add_root_certificate(root);
        }
    }
    if let Some(pem) = &options.identity_pem {
        let identity = Identity::from_pem(pem.expose().as_bytes()).map_err(|error| {
            invalid(format!(
                "the client certificate is unreadable: {}",
                innermost(&error)
            ))
            .with_hint("give the certificate, its chain and its private key (PKCS #8) in one PEM")
        })?;
        builder = builder.identity(identity);
    }
    builder
        .build()
        .map_err(|error| invalid(innermost(&error)).with_source(error.without_url()))
}

fn authorization(auth: &Auth) -> Result<Option<HeaderValue>> {
    let text = match auth {
        Auth::None => return Ok(None),
        Auth::Basic { username, password } => {
            if username.contains(':') {
                return Err(invalid("a username cannot hold a colon"));
            }
            let pair = format!("{username}:{}", password.expose());
            format!("Basic {}", base64_simd::STANDARD.encode_to_string(pair))
        }
        Auth::Bearer(token) => format!("Bearer {}", token.expose()),
    };
    HeaderValue::from_str(&text).map(Some).map_err(|_| {
        invalid("the token holds characters that no header can").with_hint("is there a line break in it?")
    })
}

/// The body; `None` if it is too long.
async fn read(response: &mut Response) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

fn same_host(from: &Url, to: &Url) -> bool {
    from.scheme() == to.scheme()
        && from.host() == to.host()
        && from.port_or_known_default() == to.port_or_known_default()
}

/// The node, as errors name it.
fn of(node: &Url) -> String {
    let host = node.host_str().unwrap_or("its host");
    match node.port() {
        Some(port) => format!("the schema registry at {host}:{port}"),
        None => format!("the schema registry at {host}"),
    }
}

/// What lies at the bottom of an error: what stands above it says only that a request failed.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, CONFIGURE, message)
}
