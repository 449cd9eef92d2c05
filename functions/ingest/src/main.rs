//! The Lambda binary of the ingest function.

use std::sync::Arc;

use frazil_config::{Config, Settings};
use frazil_core::{Error, ErrorKind};
use frazil_ingest::{Ingest, IngestOptions, Registries, answer};
use frazil_local::open_warehouse;
use frazil_table::system_environment;
use frazil_telemetry::{LogFormat, start_logs};
use lambda_runtime::{Diagnostic, LambdaEvent, run, service_fn};
use serde_json::value::RawValue;

#[tokio::main]
async fn main() -> Result<(), lambda_runtime::Error> {
    let environment = system_environment();
    let settings = Settings::from_process()?;
    start_logs(
        LogFormat::Json,
        settings.log.as_deref().unwrap_or("info"),
        &environment,
    )?;
    let config = match &settings.config {
        Some(path) => Config::load(path)?,
        None => Config::default(),
    };
    let directory = settings
        .warehouse
        .as_deref()
        .or(config.warehouse())
        .ok_or_else(|| {
            Error::new(ErrorKind::Invalid, "start", "no warehouse is named").with_hint("set FRAZIL_WAREHOUSE")
        })?;
    let schemas = settings
        .schemas
        .as_deref()
        .or(config.schemas())
        .unwrap_or(directory);
    let registries = Registries::open(&config, schemas, &environment)?;
    let warehouse = open_warehouse(directory, &environment)?;
    let ingest = Ingest::new(warehouse, Arc::new(config), registries, IngestOptions::default());
    let ingest = &ingest;
    run(service_fn(move |event: LambdaEvent<Box<RawValue>>| async move {
        let report = ingest.handle(event.payload.get().as_bytes()).await;
        report
            .and_then(|report| answer(&report, false))
            .map_err(diagnostic)
    }))
    .await
}

/// Lambda's form of an error: its type is what to do about it.
fn diagnostic(error: Error) -> Diagnostic {
    Diagnostic {
        error_type: error.kind().to_string(),
        error_message: error.to_string(),
    }
}
