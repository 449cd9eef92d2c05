use std::ffi::OsString;
use std::path::PathBuf;

use frazil_core::{Error, ErrorKind, Result};

use crate::fault::closest;
use crate::place::Place;

const PREFIX: &str = "FRAZIL_";
/// What tests of this repository say to each other; of no meaning here.
const TEST_PREFIX: &str = "FRAZIL_TEST_";
/// Names that the configuration may give to its secrets; what begins otherwise with `FRAZIL_` is ours.
const SECRET_PREFIX: &str = "FRAZIL_SECRET_";
const KNOWN: [&str; 5] = [
    "FRAZIL_CONFIG",
    "FRAZIL_WAREHOUSE",
    "FRAZIL_SCHEMAS",
    "FRAZIL_LOG",
    "FRAZIL_REPORT_ITEM_FAILURES",
];

/// What the environment says. Options of the command go before it, and it goes before `frazil.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// `FRAZIL_CONFIG`: where `frazil.toml` is.
    pub config: Option<Place>,
    /// `FRAZIL_WAREHOUSE`: where the tables are.
    pub warehouse: Option<Place>,
    /// `FRAZIL_SCHEMAS`: the directory that is the schema registry.
    pub schemas: Option<PathBuf>,
    /// `FRAZIL_LOG`: what is logged, such as `info` or `frazil_table=debug`.
    pub log: Option<String>,
    /// `FRAZIL_REPORT_ITEM_FAILURES`: whether the event source mapping has `ReportBatchItemFailures`, so that a failed
    /// record needs not fail the whole event.
    pub report_item_failures: bool,
    /// Set by AWS Lambda.
    pub lambda: Option<LambdaSettings>,
}

/// What AWS Lambda says about the function that is running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LambdaSettings {
    /// `AWS_LAMBDA_FUNCTION_NAME`.
    pub function: String,
    /// `AWS_LAMBDA_FUNCTION_MEMORY_SIZE`: buffers are sized from it.
    pub memory_mib: Option<u32>,
}

impl Settings {
    /// The settings of this process. The only place of Frazil that reads the environment.
    pub fn from_process() -> Result<Self> {
        Self::from_env(std::env::vars_os())
    }

    /// The settings that the variables make. `Invalid` lists every `FRAZIL_` variable that is unknown or wrong;
    /// empty ones count as not set.
    pub fn from_env<K, V>(variables: impl IntoIterator<Item = (K, V)>) -> Result<Self>
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let mut settings = Self::default();
        let mut memory_mib = None;
        let mut faults = Vec::new();
        for (name, value) in variables {
            let (name, value) = (name.into(), value.into());
            let Some(name) = name.to_str() else { continue };
            if value.is_empty() || name.starts_with(TEST_PREFIX) || name.starts_with(SECRET_PREFIX) {
                continue;
            }
            match name {
                "FRAZIL_CONFIG" => settings.config = Some(Place::of(value)),
                "FRAZIL_WAREHOUSE" => settings.warehouse = Some(Place::of(value)),
                "FRAZIL_REPORT_ITEM_FAILURES" => match value.to_str() {
                    Some("true") => settings.report_item_failures = true,
                    Some("false") => settings.report_item_failures = false,
                    Some(_) | None => faults.push(format!("{name}: write true or false")),
                },
                "FRAZIL_SCHEMAS" => settings.schemas = Some(value.into()),
                "FRAZIL_LOG" => match value.into_string() {
                    Ok(value) => settings.log = Some(value),
                    Err(_) => faults.push("FRAZIL_LOG: not UTF-8 text".to_owned()),
                },
                "AWS_LAMBDA_FUNCTION_NAME" => {
                    settings.lambda = Some(LambdaSettings {
                        function: value.to_string_lossy().into_owned(),
                        memory_mib: None,
                    });
                }
                "AWS_LAMBDA_FUNCTION_MEMORY_SIZE" => {
                    memory_mib = value.to_str().and_then(|text| text.parse().ok())
                }
                _ if name.starts_with(PREFIX) => faults.push(unknown(name)),
                _ => {}
            }
        }
        if let Some(lambda) = &mut settings.lambda {
            lambda.memory_mib = memory_mib;
        }
        if faults.is_empty() {
            return Ok(settings);
        }
        faults.sort();
        Err(
            Error::new(ErrorKind::Invalid, "use the environment", faults.join("; "))
                .with_code("environment.invalid"),
        )
    }
}

fn unknown(name: &str) -> String {
    let unprefixed = |name| str::strip_prefix(name, PREFIX).unwrap_or(name);
    match closest(unprefixed(name), KNOWN.map(unprefixed)) {
        Some(known) => format!("{name}: unknown variable; did you mean {PREFIX}{known}?"),
        None => format!("{name}: unknown variable; known are {}", KNOWN.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_read_once() {
        let settings = Settings::from_env([
            ("PATH", "/bin"),
            ("FRAZIL_CONFIG", "/etc/frazil.toml"),
            ("FRAZIL_WAREHOUSE", ""),
            ("FRAZIL_LOG", "debug"),
            ("FRAZIL_TEST_SLOW", "1"),
            ("FRAZIL_SECRET_REGISTRY", "hunter2"),
            ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1769"),
            ("AWS_LAMBDA_FUNCTION_NAME", "frazil-ingest"),
        ])
        .unwrap();
        assert_eq!(
            settings,
            Settings {
                config: Some(Place::Local("/etc/frazil.toml".into())),
                warehouse: None,
                schemas: None,
                log: Some("debug".to_owned()),
                report_item_failures: false,
                lambda: Some(LambdaSettings {
                    function: "frazil-ingest".to_owned(),
                    memory_mib: Some(1769)
                }),
            }
        );
    }

    #[test]
    fn unknown_variables_are_named_together() {
        let error = Settings::from_env([("FRAZIL_WAREHUOSE", "x"), ("FRAZIL_COLOUR", "y")]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(
            error.to_string(),
            "cannot use the environment: FRAZIL_COLOUR: unknown variable; known are FRAZIL_CONFIG, \
             FRAZIL_WAREHOUSE, FRAZIL_SCHEMAS, FRAZIL_LOG, FRAZIL_REPORT_ITEM_FAILURES; FRAZIL_WAREHUOSE: unknown variable; did you mean \
             FRAZIL_WAREHOUSE?"
        );
    }
}
