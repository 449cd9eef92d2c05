use std::sync::atomic::{AtomicU64, Ordering};

use frazil_core::{Clock, Entropy, SchemaId, TimestampMs};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto};
use uuid::Uuid;

use super::*;
use crate::{CachedRegistry, SchemaKind};

mod stub;

use stub::{Stub, json};

/// Time that passes when somebody waits for it, and the longest random waits.
#[derive(Debug, Default)]
struct Still {
    waits: AtomicU64,
}

impl Clock for Still {
    fn now(&self) -> TimestampMs {
        TimestampMs(0)
    }

    fn sleep(&self, _: Duration) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.waits.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(()))
    }
}

impl Entropy for Still {
    fn next_u64(&self) -> u64 {
        u64::MAX
    }
}

fn registry_at(options: ConfluentOptions) -> (ConfluentRegistry, Arc<Still>) {
    let still = Arc::new(Still::default());
    let environment = Environment::new(still.clone(), still.clone());
    (ConfluentRegistry::new(options, environment).unwrap(), still)
}

fn registry(stubs: &[&Stub]) -> ConfluentRegistry {
    registry_at(ConfluentOptions::new(stubs.iter().map(|stub| stub.url()))).0
}

fn id(id: u32) -> SchemaRef {
    SchemaRef::Id(SchemaId(id))
}

const NOT_FOUND: &str = r#"{"error_code":40403,"message":"Schema 7 not found"}"#;
const INT: &str = r#"{"schema":"\"int\""}"#;

/// The example answers of the API reference, with what stands around the schema.
#[tokio::test]
async fn each_kind_of_name_has_its_address() {
    let stub = Stub::start(|_, path| match path {
        "/schemas/ids/1" => json(200, r#"{"schema": "{\"type\": \"string\"}"}"#),
        "/schemas/ids/2" => json(
            200,
            r#"{"schemaType":"JSON","schema":"{}","maxId":9,"ruleSet":null,"metadata":{"a":1}}"#,
        ),
        "/schemas/ids/4294967297" => json(200, r#"{"schema":"\"long\"","references":[]}"#),
        "/schemas/guids/89791c0e-5e8a-4f6b-9b1a-2b3c4d5e6f70" => json(
            200,
            r#"{"subject":"orders-value","version":1,"id":3,"guid":"89791c0e-5e8a-4f6b-9b1a-2b3c4d5e6f70","schemaType":"PROTOBUF","schema":"message M {}"}"#,
        ),
        "/subjects/a%2Fb%3Fc/versions/latest" => json(200, r#"{"subject":"a/b?c","id":4,"version":7,"schema":"\"int\""}"#),
        "/subjects/orders-value/versions/3?deleted=true" => json(200, INT),
        _ => json(500, path),
    })
    .await;
    let registry = registry(&[&stub]);
    let guid = Uuid::try_parse("89791c0e-5e8a-4f6b-9b1a-2b3c4d5e6f70").unwrap();
    let latest = SchemaRef::Subject {
        subject: "a/b?c".to_owned(),
        version: SubjectVersion::Latest,
    };
    for (reference, kind, text) in [
        (id(1), SchemaKind::Avro, r#"{"type": "string"}"#),
        (id(2), SchemaKind::Json, "{}"),
        (SchemaRef::Apicurio(4_294_967_297), SchemaKind::Avro, "\"long\""),
        (SchemaRef::Guid(guid), SchemaKind::Protobuf, "message M {}"),
        (latest, SchemaKind::Avro, "\"int\""),
        (SchemaRef::version("orders-value", 3), SchemaKind::Avro, "\"int\""),
    ] {
        let found = registry.schema(&reference).await.unwrap();
        assert_eq!((found.kind, found.text.as_str()), (kind, text), "{reference}");
    }
    for reference in [
        SchemaRef::GlueVersion(guid),
        SchemaRef::version("..", 1),
        SchemaRef::File("a.avsc".into()),
    ] {
        let error = registry.schema(&reference).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    assert_eq!(stub.seen().len(), 6);
}

#[tokio::test]
async fn references_are_fetched_to_any_depth_and_once() {
    let stub = Stub::start(|_, path| match path {
        "/schemas/ids/1" => json(
            200,
            r#"{"schemaType":"PROTOBUF","schema":"root","references":[{"name":"a.proto","subject":"a","version":2},{"name":"b.proto","subject":"b","version":1}]}"#,
        ),
        "/subjects/a/versions/2?deleted=true" => json(
            200,
            r#"{"subject":"a","version":2,"id":8,"schemaType":"PROTOBUF","schema":"a","references":[{"name":"c.proto","subject":"c","version":1}]}"#,
        ),
        "/subjects/b/versions/1?deleted=true" => json(
            200,
            r#"{"subject":"b","version":1,"id":9,"schemaType":"PROTOBUF","schema":"b","references":[{"name":"c.proto","subject":"c","version":1}]}"#,
        ),
        "/subjects/c/versions/1?deleted=true" => json(200, r#"{"schemaType":"PROTOBUF","schema":"c"}"#),
        _ => json(500, path),
    })
    .await;
    let registry = CachedRegistry::new(registry(&[&stub]));
    for _ in 0..2 {
        let found = registry.schema(&id(1)).await.unwrap();
        let names: Vec<&str> = found.references.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["c.proto", "a.proto", "b.proto"]);
    }
    assert_eq!(stub.seen().len(), 4);
}

#[track_caller]
fn check_error(error: &Error, kind: ErrorKind, code: &str, message: &str) {
    assert_eq!((error.kind(), error.code()), (kind, Some(code)), "{error}");
    assert!(error.message().contains(message), "{error}");
    assert!(error.hint().is_some(), "{error}");
}

/// What a lone node answers, for ever; what that means, and how often it was asked.
async fn check_refused(answer: stub::Answer, kind: ErrorKind, code: &str, message: &str, asked: usize) {
    let stub = Stub::start(move |_, _| answer.clone()).await;
    let (registry, still) = registry_at(ConfluentOptions::new([stub.url()]));
    let error = registry.schema(&id(7)).await.unwrap_err();
    check_error(&error, kind, code, message);
    assert_eq!(stub.seen().len(), asked, "{error}");
    assert_eq!(still.waits.load(Ordering::SeqCst), asked as u64 - 1, "{error}");
}

#[tokio::test]
async fn only_the_registrys_own_words_make_a_record_poison() {
    use ErrorKind::{Invalid, Poison, Unavailable};
    for code in [40_401, 40_402, 40_403] {
        let body = format!(r#"{{"error_code":{code},"message":"not found"}}"#);
        let answer = json(404, &body);
        check_refused(
            answer,
            Poison,
            "registry.unknown_schema",
            "has no schema with id 7",
            2,
        )
        .await;
    }
    for body in [
        r#"{"error_code":404,"message":"HTTP 404 Not Found"}"#,
        "<html>Not Found</html>",
        "",
    ] {
        let message = "the address may be wrong";
        check_refused(json(404, body), Unavailable, "registry.unavailable", message, 1).await;
    }
    for status in [401, 403] {
        let message = format!("refuses us: it answers {status}");
        let answer = json(status, r#"{"error_code":40301,"message":"denied"}"#);
        check_refused(answer, Unavailable, "registry.unauthorized", &message, 1).await;
    }
    for status in [408, 429, 500, 502, 503] {
        let message = format!("it answers {status}");
        check_refused(
            json(status, NOT_FOUND),
            Unavailable,
            "registry.unavailable",
            &message,
            4,
        )
        .await;
    }
    let message = "its answer is not that of a schema registry";
    for body in ["<html>please log in</html>", "{}", "[]", r#"{"schema":{}}"#] {
        check_refused(json(200, body), Unavailable, "registry.unavailable", message, 4).await;
    }
    let thrift = json(200, r#"{"schema":"","schemaType":"THRIFT"}"#);
    let error = {
        let stub = Stub::start(move |_, _| thrift.clone()).await;
        registry(&[&stub]).schema(&id(7)).await.unwrap_err()
    };
    assert_eq!(
        (error.kind(), error.code()),
        (Invalid, Some("registry.unsupported_format"))
    );
}

#[tokio::test]
async fn a_schema_that_one_node_does_not_know_yet_is_asked_for_again() {
    let behind = Stub::start(|_, _| json(404, NOT_FOUND)).await;
    let ahead = Stub::start(|_, _| json(200, INT)).await;
    let found = registry(&[&behind, &ahead]).schema(&id(7)).await.unwrap();
    assert_eq!(found.text, "\"int\"");
    let late = Stub::start(|n, _| {
        json(
            if n == 0 { 404 } else { 200 },
            if n == 0 { NOT_FOUND } else { INT },
        )
    })
    .await;
    let found = registry(&[&late]).schema(&id(7)).await.unwrap();
    assert_eq!(found.text, "\"int\"");
}

#[tokio::test]
async fn an_overloaded_node_is_asked_again() {
    let stub = Stub::start(|n, _| if n < 3 { json(503, "") } else { json(200, INT) }).await;
    let (registry, still) = registry_at(ConfluentOptions::new([stub.url()]));
    assert_eq!(registry.schema(&id(7)).await.unwrap().text, "\"int\"");
    assert_eq!(still.waits.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn the_next_node_stands_in_and_stays() {
    // Nobody listens at the port of a listener that is gone.
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let away = format!("http://127.0.0.1:{}", gone.local_addr().unwrap().port());
    drop(gone);
    let failing = Stub::start(|_, _| json(500, "")).await;
    let good = Stub::start(|_, _| json(200, INT)).await;
    let (registry, still) = registry_at(ConfluentOptions::new([away.clone(), failing.url(), good.url()]));
    for _ in 0..2 {
        assert_eq!(registry.schema(&id(7)).await.unwrap().text, "\"int\"");
    }
    assert_eq!(
        (
            failing.seen().len(),
            good.seen().len(),
            still.waits.load(Ordering::SeqCst)
        ),
        (1, 2, 0)
    );
    let (registry, _) = registry_at(ConfluentOptions::new([away.clone()]));
    let error = registry.schema(&id(7)).await.unwrap_err();
    let address = away.trim_start_matches("http://");
    check_error(
        &error,
        ErrorKind::Unavailable,
        "registry.unavailable",
        &format!("the schema registry at {address}: "),
    );
}

#[tokio::test]
async fn a_silent_node_is_given_up() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut options = ConfluentOptions::new([format!("http://{}", silent.local_addr().unwrap())]);
    options.timeout = Duration::from_millis(50);
    let error = registry_at(options).0.schema(&id(7)).await.unwrap_err();
    check_error(
        &error,
        ErrorKind::Unavailable,
        "registry.unavailable",
        "no answer within 50ms",
    );
}

#[tokio::test]
async fn answers_are_bounded() {
    let long = " ".repeat(MAX_ANSWER_BYTES);
    let fits = format!("{INT}{}", &long[INT.len()..]);
    let stub = Stub::start(move |_, path| match path {
        "/schemas/ids/1" => json(200, &fits),
        _ => json(200, &format!("{fits} ")),
    })
    .await;
    let registry = registry(&[&stub]);
    assert_eq!(registry.schema(&id(1)).await.unwrap().text, "\"int\"");
    let error = registry.schema(&id(2)).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.code()),
        (ErrorKind::Invalid, Some("registry.too_large"))
    );
}

#[tokio::test]
async fn redirects_stay_on_the_host() {
    let elsewhere = Stub::start(|_, _| json(200, INT)).await;
    let url = elsewhere.url();
    let stub = Stub::start(move |_, path| {
        let to = match path {
            "/schemas/ids/1" => "/v2/schemas/ids/1".to_owned(),
            "/schemas/ids/2" => format!("{url}/schemas/ids/2"),
            "/schemas/ids/3" => "/schemas/ids/3".to_owned(),
            _ => return json(200, INT),
        };
        (302, vec![("location", to)], String::new())
    })
    .await;
    let mut options = ConfluentOptions::new([stub.url()]);
    options.auth = Auth::Bearer(Secret::new("t0ken"));
    let (registry, _) = registry_at(options);
    assert_eq!(registry.schema(&id(1)).await.unwrap().text, "\"int\"");
    for endless_or_elsewhere in [2, 3] {
        let error = registry.schema(&id(endless_or_elsewhere)).await.unwrap_err();
        check_error(
            &error,
            ErrorKind::Unavailable,
            "registry.unavailable",
            "it answers 302",
        );
    }
    assert_eq!(elsewhere.seen(), []);
    assert_eq!(stub.seen().len(), 2 + 1 + 4);
}

#[tokio::test]
async fn credentials_are_sent_and_not_shown() {
    let stub = Stub::start(|_, _| json(200, INT)).await;
    let basic = Auth::Basic {
        username: "Aladdin".to_owned(),
        password: Secret::new("open sesame"),
    };
    for (auth, expected) in [
        (Auth::None, None),
        // RFC 7617's example.
        (basic, Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")),
        (Auth::Bearer(Secret::new("t0ken")), Some("Bearer t0ken")),
    ] {
        let mut options = ConfluentOptions::new([format!("{}/registry/", stub.url())]);
        options.auth = auth;
        let shown = format!("{options:?}");
        let (registry, _) = registry_at(options);
        let shown = format!("{shown}{registry:?}");
        for secret in ["open sesame", "t0ken", "b3BlbiBzZXNhbWU"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        registry.schema(&id(1)).await.unwrap();
        let seen = stub.seen().pop().unwrap();
        assert_eq!(seen.path, "/registry/schemas/ids/1");
        assert_eq!(seen.authorization.as_deref(), expected);
    }
    assert_eq!(stub.paths().len(), 3);
}

#[test]
fn wrong_options_are_refused() {
    let plain = || ConfluentOptions::new(["https://registry.example"]);
    let with_url = |url: &str| ConfluentOptions::new([url]);
    let none: [&str; 0] = [];
    for (options, reason) in [
        (ConfluentOptions::new(none), "no address is configured"),
        (
            with_url("registry.example:8081"),
            "is not the address of a registry",
        ),
        (
            with_url("ftp://registry.example"),
            "is not the address of a registry",
        ),
        (
            with_url("https://r.example/?x=1"),
            "is not the address of a registry",
        ),
        (
            with_url("https://me:secret@r.example"),
            "the address of the schema registry at r.example holds a name or a password",
        ),
        (
            ConfluentOptions {
                ca_pem: Some(b"no certificate".to_vec()),
                ..plain()
            },
            "the CA file holds no certificate",
        ),
        (
            ConfluentOptions {
                identity_pem: Some(Secret::new("no key")),
                ..plain()
            },
            "the client certificate is unreadable",
        ),
        (
            ConfluentOptions {
                auth: Auth::Bearer(Secret::new("two\nlines")),
                ..plain()
            },
            "the token holds characters that no header can",
        ),
    ] {
        let still = Arc::new(Still::default());
        let error = ConfluentRegistry::new(options, Environment::new(still.clone(), still)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains(reason), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

/// A CA, and what it signed for `localhost` or for a client.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self, usage: ExtendedKeyUsagePurpose) -> (rcgen::Certificate, KeyPair) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap(), key)
    }

    /// A server that this CA vouches for, and that asks clients for a certificate of `clients`.
    fn acceptor(&self, clients: Option<&Authority>) -> TlsAcceptor {
        let (certificate, key) = self.sign(ExtendedKeyUsagePurpose::ServerAuth);
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = match clients {
            None => config.with_no_client_auth(),
            Some(clients) => {
                let mut roots = RootCertStore::empty();
                roots.add(clients.0.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                config.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = config.with_single_cert(vec![certificate.der().clone()], key.into());
        TlsAcceptor::from(Arc::new(config.unwrap()))
    }
}

#[tokio::test]
async fn a_custom_ca_is_trusted_and_no_other() {
    let authority = Authority::new();
    let stub = Stub::start_tls(authority.acceptor(None), |_, _| json(200, INT)).await;
    let with = |ca_pem: Option<String>| ConfluentOptions {
        ca_pem: ca_pem.map(String::into_bytes),
        ..ConfluentOptions::new([stub.url()])
    };
    let (registry, _) = registry_at(with(Some(authority.0.pem())));
    assert_eq!(registry.schema(&id(1)).await.unwrap().text, "\"int\"");
    for other in [None, Some(Authority::new().0.pem())] {
        let error = registry_at(with(other)).0.schema(&id(1)).await.unwrap_err();
        check_error(
            &error,
            ErrorKind::Unavailable,
            "registry.unavailable",
            "invalid peer certificate",
        );
    }
    assert_eq!(stub.seen().len(), 1);
}

#[tokio::test]
async fn mutual_tls() {
    let (servers, clients) = (Authority::new(), Authority::new());
    let stub = Stub::start_tls(servers.acceptor(Some(&clients)), |_, _| json(200, INT)).await;
    let with = |authority: Option<&Authority>| {
        let identity = authority.map(|authority| {
            let (certificate, key) = authority.sign(ExtendedKeyUsagePurpose::ClientAuth);
            Secret::new(format!("{}{}", certificate.pem(), key.serialize_pem()))
        });
        ConfluentOptions {
            ca_pem: Some(servers.0.pem().into_bytes()),
            identity_pem: identity,
            ..ConfluentOptions::new([stub.url()])
        }
    };
    let (registry, _) = registry_at(with(Some(&clients)));
    assert_eq!(registry.schema(&id(1)).await.unwrap().text, "\"int\"");
    for stranger in [None, Some(&servers)] {
        let error = registry_at(with(stranger)).0.schema(&id(1)).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.code()),
            (ErrorKind::Unavailable, Some("registry.unavailable")),
            "{error}"
        );
    }
    assert_eq!(stub.seen().len(), 1);
}
