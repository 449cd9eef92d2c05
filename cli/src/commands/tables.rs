use frazil_core::{Result, TableName};
use frazil_table::inspection::{TableOverview, list_tables};
use serde::Serialize;

use crate::document::table;
use crate::failure::{ErrorDocument, Outcome, error_text};
use crate::output::{Document, Output};
use crate::session::Session;
use crate::units;

/// The tables of the catalog.
#[derive(Debug, Serialize)]
struct Tables {
    tables: Vec<TableOverview>,
    /// Tables that cannot be read.
    unreadable: Vec<Unreadable>,
    #[serde(skip)]
    warehouse: String,
}

#[derive(Debug, Serialize)]
struct Unreadable {
    table: TableName,
    error: ErrorDocument,
    #[serde(skip)]
    text: String,
}

pub(crate) async fn tables(session: &Session, output: &Output) -> Result<Outcome> {
    let warehouse = session.existing_warehouse().await?;
    let progress = session.progress();
    progress.say("reading tables");
    let mut listed = Tables {
        tables: Vec::new(),
        unreadable: Vec::new(),
        warehouse: warehouse.layout.warehouse().to_owned(),
    };
    for (name, overview) in list_tables(&warehouse).await? {
        match overview {
            Ok(overview) => listed.tables.push(overview),
            Err(error) => listed.unreadable.push(Unreadable {
                table: name,
                error: ErrorDocument::from(&error),
                text: error_text(&error),
            }),
        }
    }
    drop(progress);
    output.print(&listed)?;
    Ok(if listed.unreadable.is_empty() {
        Outcome::Done
    } else {
        Outcome::Failed
    })
}

impl Document for Tables {
    fn to_text(&self, _: Option<usize>) -> String {
        if self.tables.is_empty() && self.unreadable.is_empty() {
            return format!("no tables in {}\n", self.warehouse);
        }
        let rows = self.tables.iter().map(|overview| {
            vec![
                overview.table.to_string(),
                overview.topic.clone().unwrap_or_else(|| "–".to_owned()),
                units::count(overview.rows),
                units::count(overview.files),
                units::bytes(overview.bytes),
                overview.snapshots.to_string(),
                units::time(overview.updated_at_ms),
            ]
        });
        let numbers = ["ROWS", "FILES", "SIZE", "SNAPSHOTS"];
        let mut text = table(
            &["TABLE", "TOPIC", "ROWS", "FILES", "SIZE", "SNAPSHOTS", "CHANGED"],
            &numbers,
            rows,
        );
        for unreadable in &self.unreadable {
            text.push_str(&format!("\n{}\n{}", unreadable.table, unreadable.text));
        }
        text
    }
}
