//! Event JSON → Parquet in memory, on one core, in parts and as a whole: `cargo bench -p frazil-tests --bench speed`.
//!
//! The same 45,072 orders in Avro, Protobuf and JSON Schema, nested and flat; beside them what only skips through the
//! bytes, what makes a tree of values per record, and what people use today from Python. Everything takes turns within
//! one run, so that ratios hold on a noisy machine; each figure is a median. Prints a table in Markdown.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock

use std::time::Duration;

use anyhow::Result;

use contest::{Contest, Part};
use generate::{CASES, ORDERS};

mod contest;
mod event;
#[path = "../../../shared/codec/benches/orders/generate/mod.rs"]
mod generate;
mod pipeline;
mod python;
#[path = "../../../shared/codec/benches/orders/readers.rs"]
mod readers;

const ROUNDS: usize = 15;

fn main() -> Result<()> {
    let mut contests = CASES
        .into_iter()
        .map(|case| Contest::new(case, ORDERS))
        .collect::<Result<Vec<_>>>()?;
    for round in 0..ROUNDS {
        eprint!("\rround {} of {ROUNDS}", round + 1);
        for contest in &mut contests {
            contest.round()?;
        }
    }
    eprintln!();
    report(&contests);
    Ok(())
}

fn report(contests: &[Contest]) {
    let line = |name: &str, cell: &dyn Fn(&Contest) -> String| {
        let cells: Vec<String> = contests.iter().map(cell).collect();
        println!("| {name} | {} |", cells.join(" | "));
    };
    let time = |name: &str, time: &dyn Fn(&Contest) -> Duration| line(name, &|contest| ms(time(contest)));
    let part = |name: &str, part: Part| time(name, &|contest| contest.time(part));

    line("", &|contest| contest.case.to_string());
    line("---", &|_| "---".to_owned());
    line("raw Kafka bytes, MB", &|contest| megabytes(contest.raw_bytes));
    line("event JSON, MB", &|contest| megabytes(contest.event_bytes()));
    line("Parquet, MB", &|contest| megabytes(contest.file_bytes));
    part("parse the event, base64 included, ms", Part::Parse);
    part("– base64 alone", Part::Base64);
    part("decode to the table's columns", Part::Decode);
    part("– skipping through the values alone", Part::Skip);
    part("– Kafka's columns alone", Part::KafkaColumns);
    part("write Parquet", Part::Write);
    part("– without zstd", Part::WritePlain);
    time("sum of the parts", &sum);
    part("**whole**", Part::Whole);
    line("**MB/s of raw Kafka bytes**", &rate);
    line("whole / sum of the parts", &|contest| {
        ratio(contest.time(Part::Whole), sum(contest))
    });
    line("decode / its floor (skipping + Kafka's columns)", &|contest| {
        let floor = contest.time(Part::Skip) + contest.time(Part::KafkaColumns);
        ratio(contest.time(Part::Decode), floor)
    });
    part("a tree of values per record, nothing else", Part::Trees);
    part("Python: decode", Part::PythonDecode);
    part("Python: pyarrow table", Part::PythonTable);
    part("Python: write Parquet", Part::PythonWrite);
    line("trees / our decode, table included", &|contest| {
        ratio(contest.time(Part::Trees), contest.time(Part::Decode))
    });
    line("Python / our decode and write", &|contest| {
        let ours = contest.time(Part::Decode) + contest.time(Part::Write);
        ratio(python(contest), ours)
    });
    line("Python without the event / our whole", &|contest| {
        ratio(python(contest), contest.time(Part::Whole))
    });
}

fn sum(contest: &Contest) -> Duration {
    contest.time(Part::Parse) + contest.time(Part::Decode) + contest.time(Part::Write)
}

fn python(contest: &Contest) -> Duration {
    contest.time(Part::PythonDecode) + contest.time(Part::PythonTable) + contest.time(Part::PythonWrite)
}

fn rate(contest: &Contest) -> String {
    let megabytes = contest.raw_bytes as f64 / 1e6;
    format!("**{:.0}**", megabytes / contest.time(Part::Whole).as_secs_f64())
}

fn ms(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}

fn megabytes(bytes: usize) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

fn ratio(time: Duration, other: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() / other.as_secs_f64())
}
