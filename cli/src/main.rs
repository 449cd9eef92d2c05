//! `frazil`: Kafka topics into Apache Iceberg tables, on one machine.

mod arguments;
mod commands;
#[cfg(feature = "kafka")]
mod dev;
mod document;
mod failure;
mod output;
mod progress;
mod queries;
mod session;
mod units;
mod values;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::Arguments;
use crate::output::Output;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let output = Output::to_terminal(arguments.common.output);
    match commands::run(arguments, &output) {
        Ok(outcome) => outcome.exit_code(),
        Err(error) => {
            output.fail(&error);
            failure::exit_code(error.kind())
        }
    }
}
