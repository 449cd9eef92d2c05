//! `frazil dev`: a real broker, Lambda's rules, and the tables that come of it.

mod endpoint;
mod faults;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use base64_simd::STANDARD;
use frazil_tests::{Broker, Produced, Reader, compare, footers, frazil, repository, run_frazil};
use serde_json::{Value, json};
use tempfile::TempDir;

/// 2026-11-30T12:00:00Z; all records are of that day.
const NOON_MS: i64 = 1_796_040_000_000;
const RECORDS: i64 = 20_000;

/// A broker, and a folder with the warehouse.
struct Bench {
    home: TempDir,
    broker: Broker,
}

/// What a run of `frazil dev` said.
struct Said {
    code: Option<i32>,
    lines: Vec<Value>,
    error: Option<Value>,
    stderr: String,
}

impl Bench {
    fn new(topic: &str, partitions: u32) -> Result<Self> {
        let (home, broker) = (tempfile::tempdir()?, Broker::start()?);
        broker.make_topic(topic, partitions)?;
        Ok(Self { home, broker })
    }

    fn warehouse(&self) -> PathBuf {
        self.home.path().join("warehouse")
    }

    /// `frazil dev` on this broker and warehouse, ready to take more.
    fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = frazil()?;
        command
            .args(["dev", "--output", "json", "--brokers", self.broker.address()])
            .args(arguments)
            .arg("--warehouse")
            .arg(self.warehouse())
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        Ok(command)
    }

    fn dev(&self, arguments: &[&str]) -> Result<Said> {
        let done = self.command(arguments)?.output()?;
        Said::of(done.status.code(), &done.stdout, &done.stderr)
    }

    fn compare(&self, golden: &Value) -> Result<()> {
        let path = self.home.path().join("golden.json");
        fs::write(&path, golden.to_string())?;
        for reader in [Reader::PyIceberg, Reader::DuckDb] {
            compare(reader, &self.warehouse(), &[&path])?;
        }
        Ok(())
    }
}

impl Said {
    fn of(code: Option<i32>, stdout: &[u8], stderr: &[u8]) -> Result<Self> {
        let stderr = String::from_utf8_lossy(stderr).into_owned();
        let documents: Vec<Value> = serde_json::Deserializer::from_slice(stdout)
            .into_iter()
            .collect::<Result<_, _>>()
            .with_context(|| format!("{}{stderr}", String::from_utf8_lossy(stdout)))?;
        let (errors, lines): (Vec<_>, Vec<_>) = documents
            .into_iter()
            .partition(|document| document["event"].is_null());
        let error = errors
            .into_iter()
            .next()
            .map(|mut document| document["error"].take());
        Ok(Self {
            code,
            lines,
            error,
            stderr,
        })
    }

    /// The error that ended it.
    fn error(&self) -> Result<&Value> {
        self.error
            .as_ref()
            .with_context(|| format!("no error: {:#?}", self.lines))
    }

    fn ensure_code(&self, code: i32) -> Result<()> {
        ensure!(
            self.code == Some(code),
            "{:?}\n{}\n{:#?}",
            self.code,
            self.stderr,
            self.lines
        );
        Ok(())
    }

    /// The only line of a kind.
    fn only(&self, event: &str) -> Result<&Value> {
        let found: Vec<&Value> = self.all(event).collect();
        match found.as_slice() {
            [line] => Ok(line),
            _ => anyhow::bail!("{} lines of {event}: {:#?}", found.len(), self.lines),
        }
    }

    fn all(&self, event: &str) -> impl Iterator<Item = &Value> {
        self.lines.iter().filter(move |line| line["event"] == event)
    }
}

/// Record `index`: three partitions in turn, a tombstone every hundred, headers of a name twice, null and empty.
fn json_record(index: i64) -> Produced {
    let bytes = |text: &str| Some(text.as_bytes().to_vec());
    let header = |name: &str, value: Option<&[u8]>| (name.to_owned(), value.map(<[u8]>::to_vec));
    Produced {
        topic: "orders".to_owned(),
        partition: (index % 3) as i32,
        timestamp_ms: NOON_MS + index,
        key: bytes(&format!("k{index}")),
        value: match index % 100 {
            0 => None,
            _ => bytes(&format!(
                r#"{{"id":{index},"total":{},"note":"№ {index}"}}"#,
                index * 3
            )),
        },
        headers: match index % 10 {
            1 => vec![
                header("a", Some(&[0xFF, 0])),
                header("a", None),
                header("b", Some(&[])),
            ],
            _ => Vec::new(),
        },
    }
}

/// The table that the first records become, by the words of the golden results.
fn json_golden(records: i64) -> Value {
    let columns = json!([
        {"name": "id", "type": "long"}, {"name": "total", "type": "long"}, {"name": "note", "type": "string"},
        {"name": "_kafka_partition", "type": "int"}, {"name": "_kafka_offset", "type": "long"},
        {"name": "_kafka_timestamp", "type": "timestamptz"}, {"name": "_kafka_epoch", "type": "int"},
        {"name": "_kafka_key", "type": "string"},
        {"name": "_kafka_headers", "type": {"list": {"struct": [
            {"name": "name", "type": "string"}, {"name": "value", "type": "binary"}]}}},
        {"name": "_kafka_tombstone", "type": "boolean"},
    ]);
    let row = |index: i64| {
        let (minutes, seconds, millis) = (index / 60_000, index / 1_000 % 60, index % 1_000);
        let mut row = json!({
            "_kafka_partition": index % 3, "_kafka_offset": index / 3,
            "_kafka_timestamp": format!("2026-11-30T12:{minutes:02}:{seconds:02}.{millis:03}000Z"),
            "_kafka_epoch": 0, "_kafka_key": format!("k{index}"), "_kafka_headers": [],
            "_kafka_tombstone": index % 100 == 0,
        });
        if index % 100 != 0 {
            row["id"] = index.into();
            row["total"] = (index * 3).into();
            row["note"] = format!("№ {index}").into();
        }
        if index % 10 == 1 {
            row["_kafka_headers"] = json!([
                {"name": "a", "value": "/wA="}, {"name": "a", "value": null}, {"name": "b", "value": ""},
            ]);
        }
        row
    };
    json!({
        "table": "kafka.orders", "records": records, "dead_letters": [], "columns": columns,
        "partitions": [{"day": "2026-11-30", "rows": records}],
        "rows": (0..records).map(row).collect::<Vec<_>>(),
    })
}

/// I1, I2: everything produced is in the table, once, whatever is forgotten between runs.
#[test]
fn a_topic_becomes_a_table_and_stays_one_record_for_one_row() -> Result<()> {
    let bench = Bench::new("orders", 3)?;
    bench
        .broker
        .produce(&(0..RECORDS).map(json_record).collect::<Vec<_>>())?;
    let golden = json_golden(RECORDS);
    let totals = golden["rows"]
        .as_array()
        .context("no rows")?
        .iter()
        .filter_map(|row| row["total"].as_i64());
    ensure!(totals.sum::<i64>() == 594_000_000);

    // At the end nobody waits for the window.
    let once = [
        "--topic",
        "orders",
        "--once",
        "--batch-size",
        "1000",
        "--batch-window",
        "300s",
    ];
    let said = bench.dev(&once)?;
    said.ensure_code(0)?;
    let started = said.only("started")?;
    ensure!(
        started["resumed"] == false && started["next"] == json!({"0": 0, "1": 0, "2": 0}),
        "{started}"
    );
    let stopped = said.only("stopped")?;
    ensure!(
        stopped["at"] == "at the end" && stopped["records"] == RECORDS,
        "{stopped}"
    );
    ensure!(
        stopped["next"] == json!({"0": 6_667, "1": 6_667, "2": 6_666}),
        "{stopped}"
    );
    for invoked in said.all("invoked") {
        ensure!(
            invoked["records"].as_i64() <= Some(1_000) && invoked["then"] == "done",
            "{invoked}"
        );
    }
    ensure!(
        said.only("committed")?["tables"][0]["rows"] == RECORDS,
        "{:?}",
        said.only("committed")?
    );
    bench.compare(&golden)?;
    footers(&bench.warehouse(), "kafka.orders")?;

    // Later, more of it: only that is read.
    let more = RECORDS + 200;
    bench
        .broker
        .produce(&(RECORDS..more).map(json_record).collect::<Vec<_>>())?;
    let said = bench.dev(&once)?;
    said.ensure_code(0)?;
    let (started, stopped) = (said.only("started")?, said.only("stopped")?);
    ensure!(
        started["resumed"] == true && stopped["records"] == 200,
        "{started} {stopped}"
    );

    // The position is lost: everything comes again, and nothing is there twice.
    fs::remove_dir_all(bench.warehouse().join("_frazil/dev"))?;
    let said = bench.dev(&once)?;
    said.ensure_code(0)?;
    ensure!(
        said.only("stopped")?["records"] == more,
        "{:?}",
        said.only("stopped")?
    );
    let committed = &said.only("committed")?["tables"][0];
    ensure!(
        committed["rows"] == 0 && committed["redelivered"].as_u64() >= Some(20),
        "{committed}"
    );
    bench.compare(&json_golden(more))?;
    run_frazil(
        &bench.warehouse(),
        &["reconcile", "orders", "--expect-contiguous"],
    )?;

    // A newer version's file is not overwritten.
    let position = bench
        .warehouse()
        .join("_frazil/dev/default/orders/in_process.json");
    fs::write(&position, r#"{"format":2,"places":[]}"#)?;
    let said = bench.dev(&once)?;
    said.ensure_code(2)?;
    ensure!(
        said.error()?["message"] == "it has format 2, and this version reads 1",
        "{:?}",
        said.error
    );
    Ok(())
}

/// Values of the golden event, from a broker: the same table, but for the offsets, which a broker counts from 0.
#[test]
fn avro_with_a_registry_becomes_the_golden_table() -> Result<()> {
    let bench = Bench::new("orders", 4)?;
    let event: Value =
        serde_json::from_str(&fs::read_to_string(repository().join("events/orders-avro.json"))?)?;
    let mut records = Vec::new();
    for record in event["records"]
        .as_object()
        .context("no records")?
        .values()
        .filter_map(Value::as_array)
        .flatten()
    {
        let decoded = |value: &Value| {
            value
                .as_str()
                .map(|text| STANDARD.decode_to_vec(text))
                .transpose()
        };
        let headers = record["headers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_object)
            .flatten();
        let headers = headers.map(|(name, value)| {
            let bytes = value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_i64)
                .map(|byte| byte as u8);
            (name.clone(), Some(bytes.collect()))
        });
        records.push(Produced {
            topic: "orders".to_owned(),
            partition: record["partition"].as_i64().context("no partition")? as i32,
            timestamp_ms: record["timestamp"].as_i64().context("no timestamp")?,
            key: decoded(&record["key"])?,
            value: decoded(&record["value"])?,
            headers: headers.collect(),
        });
    }
    bench.broker.produce(&records)?;
    let schemas = repository().join("events/schemas");
    let schemas = schemas.to_str().context("the path is not UTF-8")?;
    bench
        .dev(&["--topic", "orders", "--once", "--schemas", schemas])?
        .ensure_code(0)?;

    let mut golden = golden("orders-avro.json")?;
    let mut next: BTreeMap<i64, i64> = BTreeMap::new();
    for row in golden["rows"].as_array_mut().context("no rows")? {
        let next = next
            .entry(row["_kafka_partition"].as_i64().context("no partition")?)
            .or_default();
        row["_kafka_offset"] = (*next).into();
        *next += 1;
    }
    bench.compare(&golden)
}

fn golden(name: &str) -> Result<Value> {
    let path: &Path = &repository().join("events/golden").join(name);
    Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
}

/// Two topics are two mappings, each with its own events; and a suspended one is parked until it resumes.
#[test]
fn two_topics_at_once_one_of_them_suspended() -> Result<()> {
    let bench = Bench::new("orders", 3)?;
    bench.broker.make_topic("clicks", 1)?;
    let click = |index| Produced {
        topic: "clicks".to_owned(),
        partition: 0,
        ..json_record(index)
    };
    bench.broker.produce(
        &(0..30)
            .map(json_record)
            .chain((0..30).map(click))
            .collect::<Vec<_>>(),
    )?;
    let both = ["--topic", "orders", "--topic", "clicks", "--once"];
    bench.dev(&both)?.ensure_code(0)?;
    run_frazil(
        &bench.warehouse(),
        &["topic", "suspend", "clicks", "--reason", "a test"],
    )?;

    bench.broker.produce(
        &(30..60)
            .map(json_record)
            .chain((30..60).map(click))
            .collect::<Vec<_>>(),
    )?;
    let said = bench.dev(&both)?;
    said.ensure_code(3)?;
    let clicks = said
        .all("stopped")
        .find(|line| line["topic"] == "clicks")
        .context("not stopped")?;
    ensure!(clicks["parked"] == 30 && clicks["records"] == 30, "{clicks}");

    run_frazil(&bench.warehouse(), &["topic", "resume", "clicks"])?;
    let said = bench.dev(&both)?;
    said.ensure_code(0)?;
    ensure!(
        said.only("committed")?["drained"]["events"] == 1,
        "{:?}",
        said.only("committed")?
    );
    bench.compare(&json_golden(60))?;
    run_frazil(
        &bench.warehouse(),
        &["reconcile", "clicks", "--expect-contiguous"],
    )?;
    Ok(())
}
