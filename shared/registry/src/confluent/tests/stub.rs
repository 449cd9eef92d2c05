//! A server with the answers that a test writes.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
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
                    respond(stream, &seen, answer.as_ref()).await;
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

/// Answers the requests of one connection, until the client has enough of it.
async fn respond(
    mut stream: Pin<Box<dyn Stream>>,
    seen: &Mutex<Vec<Seen>>,
    answer: &(dyn Fn(usize, &str) -> Answer + Send + Sync),
) {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        let response = {
            let head = String::from_utf8(head).unwrap();
            let mut lines = head.lines();
            let path = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
            let mut headers = lines.filter_map(|line| line.split_once(": "));
            let authorization = headers.find(|(name, _)| name.eq_ignore_ascii_case("authorization"));
            let mut seen = seen.lock().unwrap();
            let (status, headers, body) = answer(seen.len(), &path);
            seen.push(Seen {
                path,
                authorization: authorization.map(|(_, value)| value.to_owned()),
            });
            let headers: String = headers
                .iter()
                .map(|(name, value)| format!("{name}: {value}\r\n"))
                .collect();
            let length = body.len();
            format!("HTTP/1.1 {status} Stub\r\n{headers}content-length: {length}\r\n\r\n{body}")
        };
        if stream.write_all(response.as_bytes()).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

trait Stream: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Stream for T {}
