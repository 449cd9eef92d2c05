//! What people use today: Python's library for the language, pyarrow, and its Parquet writer.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use frazil_tests::{python, repository};
use tempfile::TempDir;

use crate::generate::{Case, Language};
use crate::readers::descriptors;

/// `tests/python/speed.py`, waiting for its turns.
pub(crate) struct Python {
    process: Child,
    turns: ChildStdin,
    times: BufReader<ChildStdout>,
    _files: TempDir,
}

/// How long a turn took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// Values to Python's own objects.
    pub(crate) decode: Duration,
    /// Those to an Arrow table.
    pub(crate) table: Duration,
    /// That to Parquet, in memory.
    pub(crate) write: Duration,
}

impl Python {
    /// Gives it the same framed values, and has it read and write them once.
    pub(crate) fn start(case: Case, framed: &[Vec<u8>]) -> Result<Self> {
        let files = tempfile::tempdir()?;
        let (schema, values) = (files.path().join("schema"), files.path().join("values"));
        let language = match case.language {
            Language::Avro => "avro",
            Language::Protobuf => "protobuf",
            Language::JsonSchema => "json",
        };
        match case.language {
            Language::Protobuf => fs::write(&schema, descriptors(case).encode_to_vec())?,
            Language::Avro | Language::JsonSchema => fs::write(&schema, case.schema())?,
        }
        let mut bytes = Vec::new();
        for value in framed {
            bytes.extend_from_slice(&u32::try_from(value.len())?.to_le_bytes());
            bytes.extend_from_slice(value);
        }
        fs::write(&values, bytes)?;

        let mut process = Command::new(python("speed")?)
            .arg(repository().join("tests/python/speed.py"))
            .arg(language)
            .args([&schema, &values])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let turns = process.stdin.take().context("a pipe")?;
        let times = BufReader::new(process.stdout.take().context("a pipe")?);
        let mut python = Self {
            process,
            turns,
            times,
            _files: files,
        };
        python.turn()?;
        Ok(python)
    }

    /// Decodes, builds and writes once more.
    pub(crate) fn turn(&mut self) -> Result<Turn> {
        self.turns.write_all(b"\n")?;
        let mut line = String::new();
        self.times.read_line(&mut line)?;
        let seconds: Vec<f64> = line
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let [decode, table, write] = seconds[..] else {
            anyhow::bail!("speed.py said {line:?}");
        };
        Ok(Turn {
            decode: Duration::from_secs_f64(decode),
            table: Duration::from_secs_f64(table),
            write: Duration::from_secs_f64(write),
        })
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // It would end by itself when nobody gives it turns.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
