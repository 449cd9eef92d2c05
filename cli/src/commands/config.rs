use frazil_core::Result;
use frazil_deployment::push_config;
use serde::Serialize;

use crate::arguments::ConfigCommand;
use crate::failure::Outcome;
use crate::output::{Document, Output};

/// What was put to S3.
#[derive(Debug, Serialize)]
struct Pushed {
    location: String,
    /// Files that the configuration names.
    files: Vec<String>,
    /// Whether it was there already, as it is.
    unchanged: bool,
}

pub(crate) async fn config(command: &ConfigCommand, output: &Output) -> Result<Outcome> {
    let ConfigCommand::Push { file, location } = command;
    let pushed = push_config(file, location).await?;
    output.print(&Pushed {
        location: pushed.location,
        files: pushed.files,
        unchanged: pushed.unchanged,
    })?;
    Ok(Outcome::Done)
}

impl Document for Pushed {
    fn to_text(&self, _: Option<usize>) -> String {
        let mut text = match self.unchanged {
            true => format!("{} is this already\n", self.location),
            false => format!("{}: functions use it within 15 seconds\n", self.location),
        };
        for file in &self.files {
            text.push_str(&format!("  {file}\n"));
        }
        text
    }
}
