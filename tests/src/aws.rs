use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use frazil_aws::{AccessKeys, AccountSettings, AwsSettings};
use frazil_core::Secret;
use serde_json::Value;

use crate::{python, repository};

const REGION: &str = "eu-central-1";
/// How long something is waited for: a minute.
const WAITS: usize = 6_000;
const PAUSE: Duration = Duration::from_millis(10);

/// AWS's stand-in on this machine, with one bucket, [`BUCKET`](Self::BUCKET); stopped when it is dropped.
#[derive(Debug)]
pub struct AwsServer {
    server: Child,
    endpoint: String,
}

impl AwsServer {
    /// The bucket that is there.
    pub const BUCKET: &'static str = "frazil";

    /// Starts one on a free port.
    pub fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// Starts one whose Step Functions invoke functions at `functions`, such as
    /// `http://127.0.0.1:9000/2015-03-31/functions`.
    pub fn start_with_functions(functions: &str) -> Result<Self> {
        Self::start_with(&["--functions", functions])
    }

    fn start_with(arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(python("aws")?);
        command
            .arg(repository().join("tests/python/aws_server.py"))
            .args(["--bucket", Self::BUCKET])
            .args(arguments);
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdout = server.stdout.take().context("no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let said: Value = serde_json::from_str(&line).with_context(|| format!("it said {line:?}"))?;
        let endpoint = said["endpoint"].as_str().context("no endpoint")?.to_owned();
        Ok(Self { server, endpoint })
    }

    /// Its URL, for all services.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// A warehouse in its bucket, under this prefix.
    pub fn warehouse(&self, prefix: &str) -> String {
        format!("s3://{}/{prefix}", Self::BUCKET)
    }

    /// What a process needs to use it.
    pub fn environment(&self) -> [(&str, &str); 5] {
        [
            ("AWS_ENDPOINT_URL", &self.endpoint),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_REGION", REGION),
            // Python's name for it.
            ("AWS_DEFAULT_REGION", REGION),
        ]
    }

    /// The same for this process, whose environment is everybody's.
    pub fn settings(&self) -> AwsSettings {
        AwsSettings {
            account: AccountSettings {
                region: Some(REGION.to_owned()),
                endpoint: Some(self.endpoint.clone()),
                keys: Some(AccessKeys {
                    id: "test".to_owned(),
                    secret: Secret::new("test"),
                }),
                role: None,
            },
            catalog_id: None,
            requests_at_once: None,
        }
    }

    /// From now on these go wrong, and nothing else: see `tests/python/aws_server.py`.
    pub fn faults(&self, faults: &Value) -> Result<()> {
        self.post("/_control/faults", &faults.to_string()).map(drop)
    }

    /// How often each operation was asked for since this was asked for last.
    pub fn counts(&self) -> Result<Value> {
        Ok(serde_json::from_str(&self.post("/_control/counts", "")?)?)
    }

    /// Waits until an operation was asked for, since [`counts`](Self::counts) was asked last.
    pub fn wait_for(&self, operation: &str) -> Result<()> {
        for _ in 0..WAITS {
            if self.counts()?[operation].as_u64() > Some(0) {
                return Ok(());
            }
            sleep(PAUSE);
        }
        bail!("nobody asked for {operation}")
    }

    /// Forgets everything, but for the bucket.
    pub fn reset(&self) -> Result<()> {
        self.post("/moto-api/reset", "")?;
        let (status, _) = request(&self.endpoint, "PUT", &format!("/{}", Self::BUCKET), "", "")?;
        ensure!(status == 200, "{status}");
        Ok(())
    }

    /// Asks Glue.
    pub fn glue(&self, operation: &str, input: &Value) -> Result<Value> {
        let headers = format!(
            "X-Amz-Target: AWSGlue.{operation}\r\nContent-Type: application/x-amz-json-1.1\r\n{}",
            signed_for("glue")
        );
        let (status, answer) = request(&self.endpoint, "POST", "/", &headers, &input.to_string())?;
        let answer = String::from_utf8(answer)?;
        ensure!(status == 200, "{status}: {answer}");
        Ok(serde_json::from_str(&answer)?)
    }

    /// An object of its bucket, past everything that goes wrong.
    pub fn object(&self, location: &str) -> Option<Bytes> {
        let path = location.strip_prefix("s3:/")?;
        let (status, body) = request(&self.endpoint, "GET", path, &signed_for("s3"), "").ok()?;
        (status == 200).then(|| body.into())
    }

    /// Puts an object into its bucket.
    pub fn put_object(&self, location: &str, body: &str) -> Result<()> {
        let path = location.strip_prefix("s3:/").context("not on S3")?;
        let (status, answer) = request(&self.endpoint, "PUT", path, &signed_for("s3"), body)?;
        ensure!(status == 200, "{status}: {}", String::from_utf8_lossy(&answer));
        Ok(())
    }

    fn post(&self, path: &str, body: &str) -> Result<String> {
        let (status, answer) = request(&self.endpoint, "POST", path, "", body)?;
        ensure!(status == 200, "{status}: {}", String::from_utf8_lossy(&answer));
        Ok(String::from_utf8(answer)?)
    }
}

/// The server wants to know for which service, and does not look at signatures.
fn signed_for(service: &str) -> String {
    format!("Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/{REGION}/{service}/aws4_request\r\n")
}

/// As simple as the server allows.
fn request(endpoint: &str, method: &str, path: &str, headers: &str, body: &str) -> Result<(u16, Vec<u8>)> {
    let address = endpoint.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .context("no answer")?;
    let head = std::str::from_utf8(&answer[..end])?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    let body = &answer[end + 4..];
    match head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        true => Ok((status, joined(body)?)),
        false => Ok((status, body.to_vec())),
    }
}

/// The chunks of a body as one.
fn joined(mut body: &[u8]) -> Result<Vec<u8>> {
    let mut joined = Vec::new();
    loop {
        let end = body
            .windows(2)
            .position(|two| two == b"\r\n")
            .context("no chunk")?;
        let length = usize::from_str_radix(std::str::from_utf8(&body[..end])?, 16)?;
        let chunk = body
            .get(end + 2..end + 2 + length)
            .context("a chunk is cut off")?;
        if chunk.is_empty() {
            return Ok(joined);
        }
        joined.extend_from_slice(chunk);
        body = &body[end + 4 + length..];
    }
}

impl Drop for AwsServer {
    fn drop(&mut self) {
        drop(self.server.stdin.take()); // it ends with its standard input
        let _ = self.server.wait();
    }
}
