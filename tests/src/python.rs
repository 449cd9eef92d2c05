use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Lines of a failed program's standard error that are worth showing: a traceback, not a log.
const SHOWN_STDERR_LINES: usize = 30;

/// The root of this repository.
pub fn repository() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests)
}

/// The interpreter of a Python environment: `readers`, `spark`, `aws`, `broker` or `events`.
///
/// The first call ever makes the environment from its pins, in the user's cache directory, which takes a minute;
/// later calls take some milliseconds. Several processes may ask at once.
pub fn python(environment: &str) -> Result<PathBuf> {
    let base = std::env::var_os("FRAZIL_PYTHON").unwrap_or_else(|| OsString::from("python3"));
    let printed = run(
        &base,
        &[
            scripts().join("environment.py").as_os_str(),
            OsStr::new(environment),
        ],
        &[],
    )?;
    Ok(PathBuf::from(printed.trim_end()))
}

/// Runs a script of `tests/python`, or one with an absolute path, in an environment, and returns what it printed.
///
/// When it fails, the error holds what it printed and the end of its standard error.
pub fn run_python<A: AsRef<OsStr>>(
    environment: &str,
    script: impl AsRef<Path>,
    arguments: &[A],
) -> Result<String> {
    run_python_with(environment, script, arguments, &[])
}

/// As [`run_python`], with variables beside those of this process.
pub fn run_python_with<A: AsRef<OsStr>>(
    environment: &str,
    script: impl AsRef<Path>,
    arguments: &[A],
    variables: &[(&str, &str)],
) -> Result<String> {
    let script = scripts().join(script);
    let arguments: Vec<&OsStr> = std::iter::once(script.as_os_str())
        .chain(arguments.iter().map(AsRef::as_ref))
        .collect();
    run(python(environment)?.as_os_str(), &arguments, variables)
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python")
}

fn run(program: &OsStr, arguments: &[&OsStr], variables: &[(&str, &str)]) -> Result<String> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(repository())
        .stdin(Stdio::null());
    let done = command.output().with_context(|| {
        format!(
            "{} cannot be started: install Python 3.10 or newer, or set FRAZIL_PYTHON to one",
            program.display()
        )
    })?;
    let printed = String::from_utf8_lossy(&done.stdout).trim_end().to_owned();
    if !done.status.success() {
        let stderr = String::from_utf8_lossy(&done.stderr);
        let lines: Vec<&str> = stderr.lines().collect();
        let shown = &lines[lines.len().saturating_sub(SHOWN_STDERR_LINES)..];
        bail!("{command:?}: {}\n{printed}\n{}", done.status, shown.join("\n"));
    }
    Ok(printed)
}
