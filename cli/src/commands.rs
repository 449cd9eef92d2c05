//! One file per command: what it does, and how that reads.

mod check;
mod commit;
mod config;
mod dead_letters;
mod describe;
mod dev;
mod ingest;
mod pending;
mod reconcile;
mod replay;
mod run;
mod schema;
mod show;
mod status;
mod tables;
mod topic;

#[cfg(feature = "kafka")]
pub(crate) use commit::Commits;
pub(crate) use schema::reference;

use std::future::Future;

use frazil_config::Settings;
use frazil_core::{Error, ErrorKind, Result};
use frazil_table::system_environment;
use frazil_telemetry::{LogFormat, start_logs};

use crate::arguments::{Arguments, Command};
use crate::failure::Outcome;
use crate::output::Output;
use crate::session::Session;

/// What is logged when `FRAZIL_LOG` says nothing: the output tells the rest.
const DEFAULT_LOGS: &str = "error";

pub(crate) fn run(arguments: Arguments, output: &Output) -> Result<Outcome> {
    let settings = Settings::from_process()?;
    start_logs(
        LogFormat::Compact,
        settings.log.as_deref().unwrap_or(DEFAULT_LOGS),
        &system_environment(),
    )?;
    if let Command::Check { file, online } = &arguments.command {
        let schemas = arguments.common.schemas.clone().or(settings.schemas);
        return block_on(check::check(file, schemas, *online, output));
    }
    if let Command::Config(command) = &arguments.command {
        return block_on(config::config(command, output));
    }
    block_on(async {
        let session = Session::new(&arguments.common, settings).await?;
        dispatch(arguments.command, &session, output).await
    })
}

async fn dispatch(command: Command, session: &Session, output: &Output) -> Result<Outcome> {
    match command {
        Command::Run(events) => run::run(session, &events.events, output).await,
        Command::Ingest(events) => ingest::ingest(session, &events.events, output).await,
        Command::Commit { table } => commit::commit(session, table.as_deref(), output).await,
        Command::Dev(arguments) => dev::dev(session, &arguments, output).await,
        Command::Tables => tables::tables(session, output).await,
        Command::Describe { table } => describe::describe(session, &table, output).await,
        Command::Show(show) => show::show(session, &show, output).await,
        Command::Status { topic, source } => status::status(session, topic, &source, output).await,
        Command::Topic(command) => topic::topic(session, command, output).await,
        Command::Pending(pending) => pending::pending(session, pending, output).await,
        Command::DeadLetters(letters) => dead_letters::dead_letters(session, letters, output).await,
        Command::Reconcile {
            topic,
            source,
            expect_contiguous,
        } => reconcile::reconcile(session, &topic, &source, expect_contiguous, output).await,
        Command::Schema(arguments) => schema::schema(session, &arguments, output).await,
        Command::Check { file, online } => check::check(&file, None, online, output).await,
        Command::Config(command) => config::config(&command, output).await,
        Command::Replay { failed } => replay::replay(session, &failed, output).await,
    }
}

fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            Error::new(ErrorKind::Internal, "start the runtime", error.to_string()).with_source(error)
        })?;
    runtime.block_on(work)
}
