//! A Lambda endpoint that fails: what it is given, in which order, and what is kept of what it never takes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};
use frazil_tests::{Produced, run_frazil};
use serde_json::{Value, json};

use super::{Bench, json_record};

/// Partition and offset of each record of an event, in its order.
type Places = Vec<(i64, i64)>;

/// What the function says to an event.
enum Answer {
    Success,
    FunctionError,
    ServiceError,
    ItemFailure(i64, i64),
}

/// An endpoint, and the events that it was given with what it took of each.
struct Endpoint {
    url: String,
    calls: Arc<Mutex<Vec<(Places, Places)>>>,
}

impl Endpoint {
    /// `answer` gets the number of the call, from 1, and the event's records.
    fn start(answer: impl Fn(usize, &Value, &Places) -> Answer + Send + 'static) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!(
            "http://{}/2015-03-31/functions/ingest/invocations",
            listener.local_addr()?
        );
        let calls = Arc::new(Mutex::new(Vec::new()));
        let seen = calls.clone();
        // It lives as long as the process of the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = serve(stream, &seen, &answer);
            }
        });
        Ok(Self { url, calls })
    }

    fn calls(&self) -> Vec<(Places, Places)> {
        self.calls.lock().unwrap().clone()
    }

    /// What it took of a partition, in the order in which it did.
    fn taken(&self, partition: i64) -> Vec<i64> {
        let calls = self.calls();
        let taken = calls.iter().flat_map(|(_, taken)| taken);
        taken
            .filter(|(of, _)| *of == partition)
            .map(|(_, offset)| *offset)
            .collect()
    }
}

fn serve(
    stream: TcpStream,
    seen: &Mutex<Vec<(Places, Places)>>,
    answer: &impl Fn(usize, &Value, &Places) -> Answer,
) -> Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        ensure!(
            line.starts_with("POST /2015-03-31/functions/ingest/invocations "),
            "{line}"
        );
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line)?;
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        let event: Value = serde_json::from_slice(&body)?;
        ensure!(event["eventSource"] == "SelfManagedKafka", "{event}");
        let records = event["records"]
            .as_object()
            .context("no records")?
            .values()
            .filter_map(Value::as_array)
            .flatten();
        let places: Places = records
            .filter_map(|record| Some((record["partition"].as_i64()?, record["offset"].as_i64()?)))
            .collect();

        let mut seen = seen.lock().unwrap();
        let (status, header, body, taken) = match answer(seen.len() + 1, &event, &places) {
            Answer::Success => ("200 OK", "", json!({"batchItemFailures": []}), places.clone()),
            Answer::FunctionError => (
                "200 OK",
                "x-amz-function-error: Unhandled\r\n",
                json!({"errorMessage": "boom"}),
                vec![],
            ),
            Answer::ServiceError => (
                "500 Internal Server Error",
                "",
                json!({"message": "later"}),
                vec![],
            ),
            Answer::ItemFailure(partition, offset) => {
                let item = json!({"partition": format!("orders-{partition}"), "offset": offset});
                let taken = places
                    .iter()
                    .copied()
                    .filter(|(of, at)| *of != partition || *at < offset);
                (
                    "200 OK",
                    "",
                    json!({"batchItemFailures": [{"itemIdentifier": item}]}),
                    taken.collect(),
                )
            }
        };
        seen.push((places, taken));
        drop(seen);
        let body = body.to_string();
        let length = body.len();
        write!(
            stream.get_mut(),
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{header}content-length: {length}\r\n\r\n{body}"
        )?;
    }
}

/// One call in three fails, in one of three ways; each partition arrives whole, once and in order.
#[test]
fn an_endpoint_that_fails_one_call_in_three() -> Result<()> {
    let bench = Bench::new("orders", 3)?;
    bench
        .broker
        .produce(&(0..1_200).map(json_record).collect::<Vec<_>>())?;
    let endpoint = Endpoint::start(|call, _, places| match (call % 3, call / 3 % 3) {
        (0, 0) => Answer::FunctionError,
        (0, 1) => Answer::ServiceError,
        (0, _) => {
            let (partition, offset) = places[places.len() / 2];
            Answer::ItemFailure(partition, offset)
        }
        _ => Answer::Success,
    })?;
    let said = bench.dev(&[
        "--topic",
        "orders",
        "--once",
        "--endpoint",
        &endpoint.url,
        "--report-batch-item-failures",
        "--bisect",
        "--batch-size",
        "50",
        "--commit-every",
        "0",
    ])?;
    said.ensure_code(0)?;
    let stopped = said.only("stopped")?;
    ensure!(
        stopped["records"] == 1_200 && stopped["given_up"] == 0,
        "{stopped}"
    );

    let calls = endpoint.calls();
    ensure!(
        stopped["events"] == calls.len() && calls.len() >= 24,
        "{} calls, {stopped}",
        calls.len()
    );
    ensure!(
        stopped["failed"] == calls.len() / 3,
        "{} calls, {stopped}",
        calls.len()
    );
    for partition in 0..3 {
        ensure!(
            endpoint.taken(partition) == (0..400).collect::<Vec<_>>(),
            "partition {partition}: {calls:?}"
        );
    }
    for (call, (places, taken)) in calls.iter().enumerate().map(|(index, call)| (index + 1, call)) {
        ensure!(
            places.len() <= 50 && !places.is_empty(),
            "call {call}: {places:?}"
        );
        let Some((next, _)) = calls.get(call) else {
            continue;
        };
        let left: Places = places
            .iter()
            .copied()
            .filter(|place| !taken.contains(place))
            .collect();
        // A failure of the function is cut in halves, a failure to reach it is not; items leave what follows them.
        // What others of the event's partitions hold ready may come in between, while the wait lasts.
        let expected = match (call % 3, call / 3 % 3) {
            (0, 0) if places.len() > 1 => Some(places[..places.len() / 2].to_vec()),
            _ => None,
        };
        if let Some(expected) = expected {
            ensure!(next == &expected, "after call {call} with {places:?}: {next:?}");
        } else if !left.is_empty() {
            let again = calls[call..]
                .iter()
                .find(|(places, _)| places.contains(&left[0]))
                .context("never again")?;
            ensure!(
                again.0 == left,
                "after call {call}, {left:?} came again as {:?}",
                again.0
            );
        }
    }
    // The handler behind the endpoint has its own position.
    ensure!(bench.dev(&["--topic", "orders", "--once"])?.only("started")?["resumed"] == false);
    Ok(())
}

/// A record that the function never takes is found by halves, kept as Lambda keeps it, and the others go on.
#[test]
fn what_the_function_never_takes_is_kept_and_can_be_ingested() -> Result<()> {
    let bench = Bench::new("orders", 3)?;
    bench
        .broker
        .produce(&(0..300).map(json_record).collect::<Vec<_>>())?;
    let poison = (1, 33);
    let endpoint = Endpoint::start(move |_, _, places| match places.contains(&poison) {
        true => Answer::FunctionError,
        false => Answer::Success,
    })?;
    let folder = bench.home.path().join("failed");
    let said = bench.dev(&[
        "--topic",
        "orders",
        "--once",
        "--endpoint",
        &endpoint.url,
        "--bisect",
        "--max-retries",
        "1",
        "--on-failure",
        "failed",
        "--commit-every",
        "0",
    ])?;
    said.ensure_code(1)?;
    let given_up = said.only("given_up")?;
    ensure!(
        given_up["records"] == 1
            && given_up["condition"] == "RetryAttemptsExhausted"
            && given_up["invocations"].as_u64() > Some(2),
        "{given_up}"
    );
    for partition in 0..3 {
        let expected: Vec<i64> = (0..100).filter(|offset| (partition, *offset) != poison).collect();
        ensure!(endpoint.taken(partition) == expected, "partition {partition}");
    }

    let files: Vec<_> = fs::read_dir(&folder)?.collect::<Result<_, _>>()?;
    ensure!(files.len() == 1, "{files:?}");
    let object: Value = serde_json::from_slice(&fs::read(files[0].path())?)?;
    ensure!(
        object["requestContext"]["condition"] == "RetryAttemptsExhausted"
            && object["requestContext"]["approximateInvokeCount"] == given_up["invocations"]
            && object["version"] == "1.0"
            && object["KafkaBatchInfo"]["batchSize"] == 1
            && object["KafkaBatchInfo"]["recordsInfo"]["orders-1"]["firstRecordOffset"] == "33"
            && object["KafkaBatchInfo"]["recordsInfo"]["orders-1"]["lastRecordTimestamp"]
                == "2026-11-30T12:00:00.100Z",
        "{object}"
    );
    // The event is in it, as text, and ingest takes it.
    let event = bench.home.path().join("event.json");
    fs::write(&event, object["payload"].as_str().context("no payload")?)?;
    let event = event.to_str().context("the path is not UTF-8")?;
    let ingested = run_frazil(&bench.warehouse(), &["ingest", event])?;
    ensure!(ingested["events"][0]["topics"][0]["rows"] == 1, "{ingested}");
    Ok(())
}

/// A record that no event can hold: refused by name, or kept, and the others go on.
#[test]
fn a_record_above_six_megabytes() -> Result<()> {
    let bench = Bench::new("orders", 3)?;
    let mut records: Vec<Produced> = (0..30).map(json_record).collect();
    // 4.8 MB, 6.4 MB in base64.
    records[10].value = Some(format!(r#"{{"note":"{}"}}"#, "x".repeat(4_800_000)).into_bytes());
    bench.broker.produce(&records)?;
    let said = bench.dev(&["--topic", "orders", "--once"])?;
    said.ensure_code(2)?;
    let stopped = said.only("stopped")?;
    ensure!(stopped["at"] == "by an error", "{stopped}");
    let error = said.error()?;
    let place = json!({"topic": "orders", "partition": "1", "offset": "3"});
    ensure!(
        error["code"] == "event.too_large" && error["context"] == place,
        "{error}"
    );

    let said = bench.dev(&["--topic", "orders", "--once", "--on-failure", "failed"])?;
    said.ensure_code(1)?;
    let given_up = said.only("given_up")?;
    ensure!(
        given_up["records"] == 1 && given_up["condition"] == "MaximumPayloadSizeExceeded",
        "{given_up}"
    );
    let status = run_frazil(&bench.warehouse(), &["status", "orders"])?;
    let table = &status["topics"][0]["tables"][0];
    ensure!(
        table["rows"] == 29 && table["partitions"][1]["holes"] == json!([[3, 3]]),
        "{table}"
    );

    // Ingest itself reads more than Lambda sends: what was kept finds its place.
    let files: Vec<_> = fs::read_dir(bench.home.path().join("failed"))?.collect::<Result<_, _>>()?;
    let object: Value = serde_json::from_slice(&fs::read(files[0].path())?)?;
    ensure!(
        object["responseContext"].is_null(),
        "{}",
        object["responseContext"]
    );
    let event = bench.home.path().join("event.json");
    fs::write(&event, object["payload"].as_str().context("no payload")?)?;
    let ran = run_frazil(&bench.warehouse(), &["run", event.to_str().context("not UTF-8")?])?;
    ensure!(ran["tables"][0]["total_rows"] == 30, "{}", ran["tables"][0]);
    run_frazil(
        &bench.warehouse(),
        &["reconcile", "orders", "--expect-contiguous"],
    )?;
    Ok(())
}
