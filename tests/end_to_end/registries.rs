//! One event of orders, framed in each way and with each kind of registry: the table is always the same.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};
use base64_simd::STANDARD;
use frazil_tests::{AwsServer, Reader, compare, frazil, repository};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The event of orders, each value given to `frame` as a whole record with its schema id and payload.
fn event(frame: impl Fn(&mut Value, u32, &[u8])) -> Result<String> {
    let text = fs::read_to_string(repository().join("events/orders-avro.json"))?;
    let mut event: Value = serde_json::from_str(&text)?;
    let records = event["records"].as_object_mut().context("no records")?;
    for record in records.values_mut().filter_map(Value::as_array_mut).flatten() {
        let Some(value) = record["value"].as_str() else {
            continue;
        };
        let value = STANDARD.decode_to_vec(value)?;
        let (prefix, payload) = value.split_first_chunk::<5>().context("no prefix")?;
        let id = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
        frame(record, id, payload);
    }
    Ok(event.to_string())
}

fn schemas() -> PathBuf {
    repository().join("events/schemas/ids")
}

/// A folder with an event, a configuration, and the warehouse that they become.
struct Bench {
    home: TempDir,
}

impl Bench {
    fn new(event: &str, configuration: &str) -> Result<Self> {
        let home = tempfile::tempdir()?;
        fs::write(home.path().join("event.json"), event)?;
        fs::write(home.path().join("frazil.toml"), configuration)?;
        Ok(Self { home })
    }

    fn run(&self, environment: &[(&str, &str)]) -> Result<(Option<i32>, String)> {
        let done = frazil()?
            .args([
                "run",
                "event.json",
                "--config",
                "frazil.toml",
                "--warehouse",
                "warehouse",
            ])
            .current_dir(self.home.path())
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .output()?;
        let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
        Ok((done.status.code(), said))
    }

    /// The table is that of the golden result, as two other engines read it.
    fn check(&self, environment: &[(&str, &str)]) -> Result<()> {
        let (code, said) = self.run(environment)?;
        ensure!(code == Some(0), "{code:?}\n{said}");
        for reader in [Reader::PyIceberg, Reader::DuckDb] {
            let golden = repository().join("events/golden/orders-avro.json");
            compare(reader, &self.home.path().join("warehouse"), &[golden])?;
        }
        Ok(())
    }
}

/// AWS's stand-in, with the schemas of the events in a registry of Glue.
struct Glue {
    server: AwsServer,
    versions: BTreeMap<u32, uuid::Uuid>,
}

impl Glue {
    fn start(registry: &str, ids: &[u32]) -> Result<Self> {
        let server = AwsServer::start()?;
        server.glue("CreateRegistry", &json!({"RegistryName": registry}))?;
        let mut versions = BTreeMap::new();
        for id in ids {
            let schema = json!({
                "RegistryId": {"RegistryName": registry}, "SchemaName": format!("orders-{id}"),
                "DataFormat": "AVRO", "Compatibility": "NONE",
                "SchemaDefinition": fs::read_to_string(schemas().join(format!("{id}.avsc")))?,
            });
            let made = server.glue("CreateSchema", &schema)?;
            let version = made["SchemaVersionId"].as_str().context("no version")?;
            versions.insert(*id, uuid::Uuid::try_parse(version)?);
        }
        Ok(Self { server, versions })
    }

    fn version(&self, id: u32) -> uuid::Uuid {
        self.versions[&id]
    }

    fn environment(&self) -> [(&str, &str); 5] {
        self.server.environment()
    }
}

const GLUE: &str = "[registries.aws]\nkind = \"glue\"\nregistry_name = \"shop\"\n";

#[test]
fn glue_plain_and_compressed() -> Result<()> {
    let glue = Glue::start("shop", &[7, 8])?;
    let count = AtomicUsize::new(0);
    let event = event(|record, id, payload| {
        let compressed = count.fetch_add(1, Ordering::SeqCst) % 2 == 1;
        let (compression, payload) = if compressed {
            (5, miniz_oxide::deflate::compress_to_vec_zlib(payload, 6))
        } else {
            (0, payload.to_vec())
        };
        let value = [&[3, compression], &glue.version(id).as_bytes()[..], &payload].concat();
        record["value"] = STANDARD.encode_to_string(value).into();
    })?;
    Bench::new(&event, GLUE)?.check(&glue.environment())
}

/// Without a framing, with the version of a schema in the configuration; and what Glue does not have.
#[test]
fn glue_by_name_and_what_it_does_not_have() -> Result<()> {
    let glue = Glue::start("shop", &[7])?;
    let one = |value: &[u8]| {
        json!({"eventSource": "aws:kafka", "bootstrapServers": "b:9092", "records": {"t-0": [
            {"topic": "t", "partition": 0, "offset": 0, "timestamp": 1_796_040_000_000_i64,
             "value": STANDARD.encode_to_string(value)}
        ]}})
        .to_string()
    };
    let framed = [&[3, 0], &[7; 16][..], b"x"].concat();
    let bench = Bench::new(
        &one(&framed),
        &format!("{GLUE}[topics.t]\non_error = \"suspend\"\n"),
    )?;
    let (code, said) = bench.run(&glue.environment())?;
    ensure!(code == Some(3), "{code:?}\n{said}");
    let expected = "Glue's schema registry `shop` has no schema with Glue schema version 07070707-0707-0707-0707-070707070707";
    ensure!(said.contains(expected), "{said}");

    let configuration =
        format!("{GLUE}[topics.t]\nschema = \"subject:orders-7@1\"\non_error = \"suspend\"\n");
    let bench = Bench::new(&one(b"\x02"), &configuration)?;
    let (code, said) = bench.run(&glue.environment())?;
    // The schema was found: the value is what is cut off.
    ensure!(code == Some(3) && said.contains("field `id`"), "{code:?}\n{said}");
    Ok(())
}

#[test]
fn lambdas_own_registry_client() -> Result<()> {
    let event = event(|record, id, payload| {
        record["value"] = STANDARD.encode_to_string(payload).into();
        record["valueSchemaMetadata"] = json!({"dataFormat": "AVRO", "schemaId": id.to_string()});
    })?;
    let configuration = format!("schemas = {:?}\n", repository().join("events/schemas"));
    Bench::new(&event, &configuration)?.check(&[])
}

/// A registry with Confluent's API over the schemas of the events. It asks for a password, and its first answer to
/// each path is that it is not ready.
struct Confluent {
    address: String,
    paths: Arc<Mutex<Vec<String>>>,
}

impl Confluent {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let paths = Arc::new(Mutex::new(Vec::new()));
        let seen = paths.clone();
        // It lives as long as the process of the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = answer(stream, &seen);
            }
        });
        Ok(Self { address, paths })
    }
}

fn answer(mut stream: TcpStream, seen: &Mutex<Vec<String>>) -> Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < 8_192 {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head)?;
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    // “frazil:hunter2”
    let knows_us = head
        .to_lowercase()
        .contains("authorization: basic znjhemlsomh1bnrlcji=");
    let is_first = {
        let mut seen = seen.lock().unwrap();
        seen.push(path.clone());
        seen.iter().filter(|other| **other == path).count() == 1
    };
    let schema = path
        .strip_prefix("/schemas/ids/")
        .and_then(|id| fs::read_to_string(schemas().join(format!("{id}.avsc"))).ok());
    let (status, body) = match schema {
        _ if !knows_us => (
            "401 Unauthorized",
            json!({"error_code": 401, "message": "Unauthorized"}),
        ),
        _ if is_first => ("503 Service Unavailable", json!({})),
        Some(schema) => ("200 OK", json!({ "schema": schema })),
        None => (
            "404 Not Found",
            json!({"error_code": 40403, "message": "Schema not found"}),
        ),
    };
    let body = body.to_string();
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/vnd.schemaregistry.v1+json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    )?;
    Ok(())
}

#[test]
fn confluent_over_http() -> Result<()> {
    let registry = Confluent::start()?;
    let configuration = format!(
        "[registries.main]\nkind = \"confluent\"\nurls = [\"http://{}\"]\nusername = \"frazil\"\n\
         password_env = \"FRAZIL_SECRET_REGISTRY\"\n",
        registry.address
    );
    let unframed = |_: &mut Value, _: u32, _: &[u8]| {};
    let bench = Bench::new(&event(unframed)?, &configuration)?;

    let (code, said) = bench.run(&[])?;
    ensure!(
        code == Some(1) || code == Some(2),
        "without a password: {code:?}\n{said}"
    );
    ensure!(said.contains("FRAZIL_SECRET_REGISTRY"), "{said}");
    let (code, said) = bench.run(&[("FRAZIL_SECRET_REGISTRY", "wrong")])?;
    ensure!(
        code == Some(1) && said.contains("refuses us: it answers 401 Unauthorized"),
        "{code:?}\n{said}"
    );
    ensure!(!said.contains("wrong"), "{said}");

    registry.paths.lock().unwrap().clear();
    bench.check(&[("FRAZIL_SECRET_REGISTRY", "hunter2")])?;
    let mut paths = registry.paths.lock().unwrap().clone();
    paths.sort();
    let expected = [
        "/schemas/ids/7",
        "/schemas/ids/7",
        "/schemas/ids/8",
        "/schemas/ids/8",
    ];
    ensure!(paths == expected, "{paths:?}");
    Ok(())
}

/// A whole directory as a registry that a topic names, beside one that it does not.
#[test]
fn the_registry_that_a_topic_names() -> Result<()> {
    let unframed = |_: &mut Value, _: u32, _: &[u8]| {};
    let folder = |path: &Path| format!("{:?}", path.display().to_string());
    let configuration = format!(
        "[registries.events]\npath = {}\n[registries.other]\npath = \"/nowhere\"\n[topics.orders]\nregistry = \"events\"\n",
        folder(&repository().join("events/schemas"))
    );
    Bench::new(&event(unframed)?, &configuration)?.check(&[])
}
