//! A server with the answers that a test writes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Status, headers, body.
pub(super) type Answer = (u16, Vec<(&'static str, String)>, String);

/// A request as the server saw it: path with query, and the `Authorization` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) path: String,
    pub(super) authorization: Option<String>,
}

/// A running server. It ends with the test's runtime.
pub(super) struct Stub {
    address: SocketAddr,
    scheme: &'static str,
    seen: Arc<Mutex<Vec<Seen>>>,
}

pub(super) fn json(status: u16, body: &str) -> Answer {
    let media = "application/vnd.schemaregistry.v1+json".to_owned();
    (status, vec![("content-type", media)], body.to_owned())
}

impl Stub {
    /// `answer` gets the number of the request, from 0, and its path with query.
    pub(super) async fn start(answer: impl Fn(usize, &str) -> Answer + Send + Sync + 'static) -> Self {
        Self::serve(None, answer).await
    }

    pub(super) async fn start_tls(
        tls: TlsAcceptor,
        answer: impl Fn(usize, &str) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::serve(Some(tls), answer).await
    }

    async fn serve(
        tls: Option<TlsAcceptor>,
        answer: impl Fn(usize, &str) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stub = Self {
            address: listener.local_addr().unwrap(),
            scheme: if tls.is_some() { "https" } else { "http" },
            seen: Arc::default(),
        };
        let (seen, answer) = (stub.seen.clone(), Arc::new(answer));
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                let (tls, seen, answer) = (tls.clone(), seen.clone(), answer.clone());
                tokio::spawn(async move {
                    let stream: Pin<Box<dyn Stream>> = match tls {
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => Box::pin(stream),
                            Err(_) => return, // the client hears of it
                        },
                        None => Box::pin(stream),
                    };
                    let service = service_fn(|request: Request<Incoming>| {
                        let response = respond(&seen, answer.as_ref(), &request);
                        async move { Ok::<_, Infallible>(response) }
                    });
                    let connection = hyper::server::conn::http1::Builder::new();
                    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        stub
    }

    pub(super) fn url(&self) -> String {
        // The certificates of tests are for this name.
        format!("{}://localhost:{}", self.scheme, self.address.port())
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.path).collect()
    }
}

fn respond(
    seen: &Mutex<Vec<Seen>>,
    answer: &dyn Fn(usize, &str) -> Answer,
    request: &Request<Incoming>,
) -> Response<Full<Bytes>> {
    let path = request.uri().path_and_query().unwrap().to_string();
    let mut seen = seen.lock().unwrap();
    let (status, headers, body) = answer(seen.len(), &path);
    let authorization = request.headers().get("authorization");
    seen.push(Seen {
        path,
        authorization: authorization.map(|value| value.to_str().unwrap().to_owned()),
    });
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(Full::from(body)).unwrap()
}

trait Stream: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Stream for T {}
