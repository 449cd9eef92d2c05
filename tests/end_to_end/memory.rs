//! The largest event that Lambda delivers fits into a small function, whatever its format.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use frazil_tests::{binary, repository};
use serde_json::Value;

use event::{event_json, framed};
use generate::{CASES, Case, Language, ORDERS, Shape};

#[path = "../benches/speed/event.rs"]
mod event;
#[path = "../../shared/codec/benches/orders/generate/mod.rs"]
mod generate;

/// Lambda's limit of an event.
const EVENT_BYTES: usize = 6 * 1024 * 1024;
/// What the process may have at most: the smallest function that Lambda offers.
const PEAK_BYTES: u64 = 128 * 1024 * 1024;

/// Ingests the largest event that can be made of these values.
fn check(name: &str, values: &[Vec<u8>], configuration: &str, schema: Option<(&str, String)>) -> Result<()> {
    let fitting = values.len() * EVENT_BYTES / event_json(values).len();
    let event = event_json(&values[..fitting]);
    ensure!(
        (EVENT_BYTES * 90 / 100..=EVENT_BYTES).contains(&event.len()),
        "{} bytes",
        event.len()
    );
    let home = tempfile::tempdir()?;
    fs::write(home.path().join("event.json"), event)?;
    fs::write(home.path().join("frazil.toml"), configuration)?;
    if let Some((extension, text)) = schema {
        fs::create_dir_all(home.path().join("schemas/ids"))?;
        fs::write(home.path().join("schemas/ids/7").with_extension(extension), text)?;
    }
    let done = Command::new(std::env::var_os("FRAZIL_PYTHON").unwrap_or_else(|| "python3".into()))
        .arg(repository().join("tests/python/peak_memory.py"))
        .arg(binary("frazil")?)
        .args([
            "ingest",
            "event.json",
            "--output",
            "json",
            "--warehouse",
            "warehouse",
        ])
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output()?;
    let printed = String::from_utf8(done.stdout)?;
    ensure!(
        done.status.success(),
        "{name}: {printed}\n{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let (report, peak) = printed.trim_end().rsplit_once('\n').context("two answers")?;
    let report: Value = serde_json::from_str(report)?;
    let topic = &report["events"][0]["topics"][0];
    ensure!(
        topic["rows"] == fitting && topic["dead_letters"] == 0,
        "{name}: {report:#}"
    );
    let peak: u64 = peak.parse()?;
    println!("{name}: {fitting} records, {} MB", peak / 1_000_000);
    ensure!(
        peak < PEAK_BYTES,
        "{name}: {peak} bytes at most, and {PEAK_BYTES} are allowed"
    );
    Ok(())
}

#[test]
fn the_largest_event_fits_into_a_small_function() -> Result<()> {
    for case in CASES {
        let values: Vec<Vec<u8>> = case
            .values(ORDERS)
            .iter()
            .map(|value| framed(case, value))
            .collect();
        let extension = match case.language {
            Language::Avro => "avsc",
            Language::Protobuf => "proto",
            Language::JsonSchema => "json",
        };
        check(&case.to_string(), &values, "", Some((extension, case.schema())))?;
    }
    Ok(())
}

#[test]
fn so_does_one_without_schemas() -> Result<()> {
    for shape in [Shape::Nested, Shape::Flat] {
        let json = Case {
            language: Language::JsonSchema,
            shape,
        };
        let values = json.values(ORDERS);
        check(&format!("inferred {json}"), &values, "", None)?;
        for format in ["raw", "string"] {
            let configuration = format!("[topics.orders]\nformat = \"{format}\"\n");
            check(&format!("{format} {json}"), &values, &configuration, None)?;
        }
    }
    Ok(())
}

/// Few and large ones, of a format that nobody reads.
#[test]
fn so_do_a_few_long_values() -> Result<()> {
    let values = vec![vec![7; 1 << 18]; 32];
    check(
        "long raw values",
        &values,
        "[topics.orders]\nformat = \"raw\"\n",
        None,
    )
}
