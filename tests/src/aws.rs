use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use frazil_aws::{AccessKeys, AccountSettings, AwsSettings};
use frazil_core::Secret;
use serde_json::Value;

use crate::{python, repository};

const REGION: &str = "eu-central-1";

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
    pub fn environment(&self) -> [(&str, &str); 4] {
        [
            ("AWS_ENDPOINT_URL", &self.endpoint),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_REGION", REGION),
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

    fn post(&self, path: &str, body: &str) -> Result<String> {
        let address = self.endpoint.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address)?;
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no answer")?;
        ensure!(head.starts_with("HTTP/1.1 200"), "{head}");
        Ok(body.to_owned())
    }
}

impl Drop for AwsServer {
    fn drop(&mut self) {
        drop(self.server.stdin.take()); // it ends with its standard input
        let _ = self.server.wait();
    }
}
