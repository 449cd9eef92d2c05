//! The whole of it, by its real protocols: a Kafka broker, the event source mapping of `frazil dev`, the functions'
//! binaries under Lambda's runtime, the state machine of the commits, S3 and Glue, and two other engines as readers.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use apache_avro::types::Value as Avro;
use frazil_tests::{
    AwsServer, Broker, LambdaServer, Produced, Reader, frazil, python, repository, run_python_with,
};
use serde_json::Value;
use tempfile::TempDir;

/// Of each topic.
const RECORDS: i64 = 100_000;
/// In the middle of all, both topics' values get a field more.
const NEW_SINCE: i64 = RECORDS / 2;
const PARTITIONS: i64 = 3;
/// 2026-11-30T12:00:00Z.
const NOON_MS: i64 = 1_796_040_000_000;
/// The record that cannot be read.
const POISON: i64 = 4_321;
/// The endpoint fails each of so many calls.
const FAILING: usize = 10;

struct World {
    home: TempDir,
    broker: Broker,
    aws: AwsServer,
    lambda: LambdaServer,
    machine: String,
    endpoint: String,
}

impl World {
    fn start() -> Result<Self> {
        let home = tempfile::tempdir()?;
        let broker = Broker::start()?;
        let lambda = LambdaServer::start()?;
        let aws = AwsServer::start_with_functions(&lambda.functions())?;
        fs::write(
            home.path().join("frazil.toml"),
            format!(
                "warehouse = \"{}\"\n[topics.orders]\n[topics.payments]\n",
                aws.warehouse("lake")
            ),
        )?;
        let ids = home.path().join("schemas/ids");
        fs::create_dir_all(&ids)?;
        let fields = r#"{"name":"id","type":"long"},{"name":"note","type":"string"}"#;
        let schema = |fields: &str| format!(r#"{{"type":"record","name":"Payment","fields":[{fields}]}}"#);
        fs::write(ids.join("1.avsc"), schema(fields))?;
        let more = format!(r#"{fields},{{"name":"extra","type":["null","long"],"default":null}}"#);
        fs::write(ids.join("2.avsc"), schema(&more))?;
        let endpoint = unreliable(lambda.address())?;
        let mut world = Self {
            home,
            broker,
            machine: String::new(),
            endpoint,
            lambda,
            aws,
        };
        world.frazil(&["config", "push", "frazil.toml", &world.config()])?;
        world.start_functions()?;
        let definition = repository().join("infra/statemachines/commit.asl.json");
        world.machine = world.machines(&[
            "create",
            "commit",
            &definition.display().to_string(),
            "Partition=aws",
            "CatalogFunction=catalog",
            "IngestFunction=ingest",
        ])?;
        Ok(world)
    }

    fn config(&self) -> String {
        self.aws.warehouse("frazil.toml")
    }

    fn start_functions(&mut self) -> Result<()> {
        self.start_function("ingest")?;
        self.start_function("catalog")
    }

    fn start_function(&mut self, name: &str) -> Result<()> {
        let (config, schemas) = (self.config(), self.home.path().join("schemas"));
        let schemas = schemas.display().to_string();
        let mut variables = self.aws.environment().to_vec();
        variables.extend([
            ("FRAZIL_CONFIG", config.as_str()),
            ("FRAZIL_SCHEMAS", schemas.as_str()),
            ("FRAZIL_REPORT_ITEM_FAILURES", "true"),
        ]);
        let log = self.home.path().join(format!("{name}.log"));
        self.lambda
            .start_function(name, &format!("frazil-{name}"), &variables, &log)
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.home.path().join(format!("{name}.log"))).unwrap_or_default()
    }

    /// The command, with the configuration that the functions have.
    fn frazil(&self, arguments: &[&str]) -> Result<()> {
        let done = frazil()?
            .args(arguments)
            .current_dir(self.home.path())
            .envs(self.aws.environment())
            .stdin(Stdio::null())
            .output()?;
        let said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
        ensure!(done.status.success(), "{arguments:?}: {}\n{said}", done.status);
        Ok(())
    }

    fn machines(&self, arguments: &[&str]) -> Result<String> {
        run_python_with("aws", "state_machine.py", arguments, &self.aws.environment())
    }

    /// Runs the state machine so many times at once. How each run ended.
    fn commit(&self, runs: u32) -> Result<Vec<Value>> {
        let said = self.machines(&["run", &self.machine, &runs.to_string()])?;
        Ok(serde_json::from_str(&said)?)
    }

    /// One run of it, which goes on by itself.
    fn begin_commit(&self) -> Result<Child> {
        let mut command = Command::new(python("aws")?);
        command
            .arg(repository().join("tests/python/state_machine.py"))
            .args(["run", &self.machine, "1"])
            .envs(self.aws.environment())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        Ok(command.spawn()?)
    }

    fn commit_well(&self, runs: u32) -> Result<()> {
        let ended = self.commit(runs)?;
        let well = ended.iter().all(|run| run["status"] == "SUCCEEDED");
        ensure!(well, "{ended:?}\n{}\n{}", self.log("catalog"), self.log("ingest"));
        Ok(())
    }

    /// Starts the mapping of both topics: it ends where they do.
    fn mapping(&self) -> Result<Child> {
        let log = fs::File::create(self.home.path().join("dev.log"))?;
        let mut command = frazil()?;
        command
            .args([
                "dev",
                "--once",
                "--commit-every",
                "0",
                "--brokers",
                self.broker.address(),
            ])
            .args([
                "--topic",
                "orders",
                "--topic",
                "payments",
                "--endpoint",
                &self.endpoint,
            ])
            .args([
                "--batch-size",
                "5000",
                "--batch-window",
                "2s",
                "--report-batch-item-failures",
            ])
            .current_dir(self.home.path())
            .envs(self.aws.environment())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        Ok(command.spawn()?)
    }

    fn ended(&self, mut mapping: Child) -> Result<()> {
        let status = mapping.wait()?;
        let said = fs::read_to_string(self.home.path().join("dev.log"))?;
        ensure!(status.success(), "{status}\n{said}\n{}", self.log("ingest"));
        Ok(())
    }

    /// Both topics' records from one number to another.
    fn produce(&self, from: i64, to: i64) -> Result<()> {
        let mut records = Vec::new();
        for id in from..to {
            records.push(self.record("orders", id, self.json(id)));
            records.push(self.record("payments", id, self.avro(id)?));
        }
        self.broker.produce(&records)
    }

    fn record(&self, topic: &str, id: i64, value: Vec<u8>) -> Produced {
        Produced {
            topic: topic.to_owned(),
            partition: (id % PARTITIONS) as i32,
            timestamp_ms: NOON_MS + id,
            key: Some(format!("k{id}").into_bytes()),
            value: Some(value),
            headers: Vec::new(),
        }
    }

    fn json(&self, id: i64) -> Vec<u8> {
        match id {
            POISON => b"{\"id\":".to_vec(),
            _ if id < NEW_SINCE => format!(r#"{{"id":{id},"note":"note {id}"}}"#).into_bytes(),
            _ => format!(r#"{{"id":{id},"note":"note {id}","extra":{}}}"#, 2 * id).into_bytes(),
        }
    }

    /// Framed as Confluent's serializer does it.
    fn avro(&self, id: i64) -> Result<Vec<u8>> {
        let is_new = id >= NEW_SINCE;
        let schema_id: u32 = if is_new { 2 } else { 1 };
        let text = fs::read_to_string(self.home.path().join(format!("schemas/ids/{schema_id}.avsc")))?;
        let schema = apache_avro::Schema::parse_str(&text)?;
        let mut fields = vec![
            ("id".to_owned(), Avro::Long(id)),
            ("note".to_owned(), Avro::String(format!("note {id}"))),
        ];
        if is_new {
            fields.push(("extra".to_owned(), Avro::Union(1, Box::new(Avro::Long(2 * id)))));
        }
        let payload = apache_avro::to_avro_datum(&schema, Avro::Record(fields))?;
        Ok([&[0][..], &schema_id.to_be_bytes(), &payload].concat())
    }

    /// Each record is in its table, once, for two other engines; the one that cannot be read is a dead letter.
    fn check(&self) -> Result<()> {
        let [partitions, records, new_since] =
            [PARTITIONS, RECORDS, NEW_SINCE].map(|number| number.to_string());
        let poison = POISON.to_string();
        let warehouse = self.aws.warehouse("lake");
        for reader in [Reader::PyIceberg, Reader::DuckDb] {
            for (table, missing) in [("kafka.orders", Some(&poison)), ("kafka.payments", None)] {
                let name = if reader == Reader::DuckDb {
                    "duckdb"
                } else {
                    "pyiceberg"
                };
                let mut arguments = vec![
                    "--reader",
                    name,
                    &warehouse,
                    table,
                    &partitions,
                    &records,
                    &new_since,
                ];
                arguments.extend(missing.map(String::as_str));
                run_python_with("readers", "whole.py", &arguments, &self.aws.environment())?;
            }
        }
        self.frazil(&["reconcile", "orders", "--expect-contiguous"])?;
        self.frazil(&["reconcile", "payments", "--expect-contiguous"])
    }
}

/// Passes calls on to Lambda, and fails one in ten: half of those before the function has seen the event, half after
/// it has answered.
fn unreliable(lambda: &str) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!(
        "http://{}/2015-03-31/functions/ingest/invocations",
        listener.local_addr()?
    );
    let lambda = lambda.to_owned();
    // It lives as long as the process of the tests.
    std::thread::spawn(move || {
        static CALLS: AtomicUsize = AtomicUsize::new(1);
        for stream in listener.incoming().flatten() {
            let lambda = lambda.clone();
            std::thread::spawn(move || {
                let call = CALLS.fetch_add(1, Ordering::SeqCst);
                let _ = pass_on(stream, &lambda, call);
            });
        }
    });
    Ok(url)
}

fn pass_on(mut client: TcpStream, lambda: &str, call: usize) -> Result<()> {
    let request = read_message(&mut client)?;
    if call % (2 * FAILING) == FAILING {
        client.write_all(
            b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        )?;
        return Ok(());
    }
    let mut server = TcpStream::connect(lambda)?;
    let head_end = find(&request, b"\r\n").context("no request line")?;
    server.write_all(&request[..head_end])?;
    server.write_all(b"\r\nConnection: close")?;
    server.write_all(&request[head_end..])?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    if !call.is_multiple_of(2 * FAILING) {
        let line_end = find(&answer, b"\r\n").context("no status line")?;
        client.write_all(&answer[..line_end])?;
        client.write_all(b"\r\nConnection: close")?;
        client.write_all(&answer[line_end..])?;
    }
    Ok(())
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// A request with its body.
fn read_message(stream: &mut TcpStream) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 65_536];
    loop {
        let read = stream.read(&mut chunk)?;
        ensure!(read > 0, "cut off");
        bytes.extend_from_slice(&chunk[..read]);
        let Some(end) = find(&bytes, b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.context("no length")?.trim().parse()?;
        if bytes.len() >= end + 4 + length {
            return Ok(bytes);
        }
    }
}

#[test]
fn from_broker_to_readers_by_real_protocols() -> Result<()> {
    let world = World::start()?;
    world.broker.make_topic("orders", PARTITIONS as u32)?;
    world.broker.make_topic("payments", PARTITIONS as u32)?;

    // A third of it: two runs of the state machine at once, while more comes.
    world.produce(0, RECORDS / 3)?;
    let mapping = world.mapping()?;
    world.commit_well(2)?;
    world.ended(mapping)?;
    world.commit_well(2)?;

    // A third with a topic that is suspended, the new schema in the middle, and a catalog that is killed in a commit:
    // the run goes on with the one that is started instead.
    world.frazil(&["topic", "suspend", "orders"])?;
    world.produce(RECORDS / 3, 2 * RECORDS / 3)?;
    world.ended(world.mapping()?)?;
    world.aws.counts()?;
    let run = world.begin_commit()?;
    world.aws.wait_for("UpdateTable")?;
    world.lambda.kill_function("catalog")?;
    let run = run.wait_with_output()?;
    let said = String::from_utf8_lossy(&run.stdout);
    ensure!(said.contains("SUCCEEDED"), "{said}\n{}", world.log("catalog"));

    // Somebody uploads a configuration that cannot be used: functions keep the last good one, also one that starts now.
    world
        .aws
        .put_object(&world.config(), "[topics.orders]\nfreshnes = \"1m\"\n")?;
    world.lambda.kill_function("ingest")?;

    // The rest, after the topic was resumed: what was parked comes first.
    world.frazil(&["topic", "resume", "orders"])?;
    world.produce(2 * RECORDS / 3, RECORDS)?;
    let mapping = world.mapping()?;
    world.commit_well(2)?;
    world.ended(mapping)?;
    // What is drained in one run is committed by the next.
    world.commit_well(1)?;
    world.commit_well(2)?;
    let log = world.log("ingest");
    ensure!(
        log.contains("the newest configuration is not usable: the last good one is"),
        "{log}"
    );
    world.check()?;
    Ok(())
}
