use std::ffi::OsStr;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::repository;

/// The command `frazil`, ready to take its arguments: built once per test run, with the profile and in the target
/// directory of the tests, so that it is always that of the sources at hand.
pub fn frazil() -> Result<Command> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match BUILT.get_or_init(|| build().map_err(|fault| format!("{fault:#}"))) {
        Ok(path) => Ok(Command::new(path)),
        Err(fault) => bail!("{fault}"),
    }
}

/// Runs `frazil` with `--warehouse` and `--output json`, and returns what it printed.
///
/// When it fails, the error holds its exit code and both outputs.
pub fn run_frazil(warehouse: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<Value> {
    let mut command = frazil()?;
    command
        .args(arguments)
        .arg("--warehouse")
        .arg(warehouse)
        .args(["--output", "json"])
        .stdin(Stdio::null());
    let done = command
        .output()
        .with_context(|| format!("{command:?} cannot be started"))?;
    let (stdout, stderr) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    ensure!(
        done.status.success(),
        "{command:?}: {}\n{stdout}{stderr}",
        done.status
    );
    serde_json::from_str(&stdout).with_context(|| format!("{command:?} did not print JSON but:\n{stdout}"))
}

fn build() -> Result<PathBuf> {
    let tests = std::env::current_exe()?;
    let target = tests
        .ancestors()
        .nth(3)
        .context("the tests do not run in a target directory")?;
    let mut cargo = Command::new(env!("CARGO"));
    // The whole workspace is selected, as in `cargo test --workspace`: other features would build everything again.
    cargo.args(["build", "--quiet", "--locked", "--workspace", "--bin", "frazil"]);
    cargo
        .args(["--message-format", "json-render-diagnostics", "--target-dir"])
        .arg(target);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    let done = cargo.current_dir(repository()).stdin(Stdio::null()).output()?;
    ensure!(
        done.status.success(),
        "{cargo:?}: {}\n{}",
        done.status,
        String::from_utf8_lossy(&done.stderr)
    );
    for line in done.stdout.lines() {
        let message: Value = serde_json::from_str(&line?)?;
        if message["target"]["name"] == "frazil"
            && let Some(executable) = message["executable"].as_str()
        {
            return Ok(PathBuf::from(executable));
        }
    }
    bail!("{cargo:?} built no command frazil")
}
