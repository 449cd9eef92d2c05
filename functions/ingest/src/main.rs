//! The Lambda binary of the ingest function.

use frazil_config::Settings;
use frazil_core::Error;
use frazil_deployment::{Deployment, deadline};
use frazil_ingest::Function;
use frazil_table::system_environment;
use frazil_telemetry::{LogFormat, start_logs, write_metrics};
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
    let function = Function::new(Deployment::open(&settings, &environment).await?, &settings);
    function.warm_up().await?;
    let (function, environment) = (&function, &environment);
    run(service_fn(move |event: LambdaEvent<Box<RawValue>>| async move {
        let deadline = deadline(event.context.deadline, environment.now());
        let payload = event.payload.get().as_bytes();
        let answer = function.invoke(payload, deadline).await.map_err(diagnostic)?;
        write_metrics(&answer.metrics);
        Ok::<_, Diagnostic>(answer.body)
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
