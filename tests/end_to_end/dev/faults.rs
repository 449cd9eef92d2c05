//! What is not there, what goes away, and Ctrl-C.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Bench, json_record};

#[test]
fn what_is_not_there_is_named() -> Result<()> {
    let bench = Bench::new("orders", 1)?;
    let brokers = bench.broker.address().to_owned();
    let said = bench.dev(&["--topic", "nothing", "--once"])?;
    let error = said.error()?;
    ensure!(
        said.code == Some(2) && error["code"] == "kafka.unknown_topic",
        "{error}"
    );
    ensure!(
        error["context"] == json!({"topic": "nothing", "brokers": brokers}),
        "{error}"
    );

    let Bench { home, broker } = bench;
    drop(broker);
    let mut command = frazil_tests::frazil()?;
    command
        .args([
            "dev",
            "--brokers",
            &brokers,
            "--topic",
            "orders",
            "--once",
            "--warehouse",
        ])
        .arg(home.path().join("warehouse"));
    let done = command.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.code() == Some(1), "{said}");
    ensure!(
        said.contains("Connection refused") && said.contains(&brokers),
        "{said}"
    );
    ensure!(said.contains("hint: check that the broker runs"), "{said}");
    Ok(())
}

/// I1: an interruption finishes the event on its way and commits; a broker that goes away is told, and waited for.
#[test]
fn ctrl_c_stops_in_order_also_when_the_broker_is_gone() -> Result<()> {
    let bench = Bench::new("orders", 3)?;
    bench
        .broker
        .produce(&(0..300).map(json_record).collect::<Vec<_>>())?;
    let mut command = bench.command(&["--topic", "orders", "--commit-every", "1s"])?;
    let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(running.stdout.take().context("no output")?).lines();
    let mut wait_for = |event: &str, enough: &dyn Fn(&Value) -> bool| -> Result<Value> {
        loop {
            let line: Value = serde_json::from_str(&lines.next().context("it has ended")??)?;
            if line["event"] == event && enough(&line) {
                return Ok(line);
            }
        }
    };
    // The loop commits beside it.
    let mut committed = 0;
    while committed < 300 {
        let line = wait_for("committed", &|line| !line["tables"][0].is_null())?;
        committed += line["tables"][0]["rows"].as_i64().context("no number")?;
    }
    let Bench { home, broker } = bench;
    drop(broker);
    wait_for("trouble", &|_| true)?;
    let pid = running.id().to_string();
    ensure!(Command::new("kill").args(["-INT", &pid]).status()?.success());
    let stopped = wait_for("stopped", &|_| true)?;
    ensure!(
        stopped["at"] == "as asked" && stopped["records"] == 300,
        "{stopped}"
    );
    let last = wait_for("committed", &|_| true)?;
    ensure!(
        last["tables"][0]["rows"] == 0 && last["failed"] == json!([]),
        "{last}"
    );
    let status = running.wait()?;
    let mut stderr = String::new();
    running
        .stderr
        .take()
        .context("no errors")?
        .read_to_string(&mut stderr)?;
    ensure!(
        status.code() == Some(0) && stderr.is_empty(),
        "{status}: {stderr}"
    );
    drop(home);
    Ok(())
}
