use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::repository;

/// The command `frazil`, ready to take its arguments.
pub fn frazil() -> Result<Command> {
    Ok(Command::new(binary("frazil")?))
}

/// A binary of this workspace: built once per test run, with the profile and in the target directory of the tests, so
/// that it is always that of the sources at hand.
pub fn binary(name: &str) -> Result<PathBuf> {
    static BUILT: OnceLock<Result<BTreeMap<String, PathBuf>, String>> = OnceLock::new();
    match BUILT.get_or_init(|| build().map_err(|fault| format!("{fault:#}"))) {
        Ok(binaries) => binaries
            .get(name)
            .cloned()
            .with_context(|| format!("the workspace has no binary {name}")),
        Err(fault) => bail!("{fault}"),
    }
}

/// Runs `frazil` with `--warehouse` and `--output json`, and returns what it printed.
///
/// When it fails, the error holds its exit code and both outputs.
pub fn run_frazil(warehouse: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<Value> {
    run_frazil_with(warehouse, arguments, &[])
}

/// The same, with these variables in its environment.
pub fn run_frazil_with(
    warehouse: &Path,
    arguments: &[impl AsRef<OsStr>],
    variables: &[(&str, &str)],
) -> Result<Value> {
    let mut command = frazil()?;
    command
        .args(arguments)
        .arg("--warehouse")
        .arg(warehouse)
        .args(["--output", "json"])
        .envs(variables.iter().copied())
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

fn build() -> Result<BTreeMap<String, PathBuf>> {
    let tests = std::env::current_exe()?;
    let target = tests
        .ancestors()
        .nth(3)
        .context("the tests do not run in a target directory")?;
    let mut cargo = Command::new(env!("CARGO"));
    // The whole workspace is selected, as in `cargo test --workspace`: other features would build everything again.
    cargo.args(["build", "--quiet", "--locked", "--workspace", "--bins"]);
    cargo
        .args(["--message-format", "json-render-diagnostics", "--target-dir"])
        .arg(target);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    // What Cargo tells these tests about their package is none of its own business: the build script of `ring` runs
    // again when such a variable changes, and all that is above it is compiled again, there and back.
    for (name, _) in std::env::vars_os() {
        let shown = name.to_string_lossy();
        if shown.starts_with("CARGO_PKG_") || shown.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    let done = cargo.current_dir(repository()).stdin(Stdio::null()).output()?;
    ensure!(
        done.status.success(),
        "{cargo:?}: {}\n{}",
        done.status,
        String::from_utf8_lossy(&done.stderr)
    );
    let mut binaries = BTreeMap::new();
    for line in done.stdout.lines() {
        let message: Value = serde_json::from_str(&line?)?;
        if let (Some(name), Some(executable)) =
            (message["target"]["name"].as_str(), message["executable"].as_str())
        {
            binaries.insert(name.to_owned(), PathBuf::from(executable));
        }
    }
    Ok(binaries)
}
