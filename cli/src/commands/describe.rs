use frazil_core::Result;
use frazil_table::inspection::{SnapshotOverview, TableOverview, snapshot_overviews, table_overview};
use serde::Serialize;

use crate::document::{indented, pairs, plain, table};
use crate::failure::Outcome;
use crate::output::{Document, Output};
use crate::session::{Session, find_table};
use crate::units;

/// How many snapshots people see; JSON has all.
const SNAPSHOTS_SHOWN: usize = 10;

/// A table and its history.
#[derive(Debug, Serialize)]
struct Description {
    #[serde(flatten)]
    overview: TableOverview,
    /// Newest first.
    history: Vec<SnapshotOverview>,
}

pub(crate) async fn describe(session: &Session, name: &str, output: &Output) -> Result<Outcome> {
    let warehouse = session.existing_warehouse().await?;
    let name = find_table(&warehouse, name).await?;
    let table = warehouse.load_existing(&name).await?;
    output.print(&Description {
        overview: table_overview(&table),
        history: snapshot_overviews(&table),
    })?;
    Ok(Outcome::Done)
}

impl Document for Description {
    fn to_text(&self, _: Option<usize>) -> String {
        let of = &self.overview;
        let origin = match (&of.topic, &of.source) {
            (Some(topic), Some(source)) => format!("{topic} (source {source})"),
            (Some(topic), None) => topic.clone(),
            (None, _) => String::new(),
        };
        let mut text = format!("{}\n", of.table);
        let deletes = if of.delete_files == 0 {
            String::new()
        } else {
            format!(", {} to apply", units::counted(of.delete_files, "delete file"))
        };
        text.push_str(&indented(&pairs([
            ("topic", plain(&origin)),
            ("kind", of.kind.as_str().to_owned()),
            ("rows", units::count(of.rows)),
            (
                "files",
                format!(
                    "{}, {}{deletes}",
                    units::counted(of.files, "data file"),
                    units::bytes(of.bytes)
                ),
            ),
            ("partitioned by", of.partition_by.join(", ")),
            ("sorted by", of.sort_by.join(", ")),
            ("changed", units::time(of.updated_at_ms)),
            ("uuid", of.uuid.to_string()),
            ("location", of.location.clone()),
            ("metadata", of.metadata_location.clone()),
        ])));
        let columns = of.columns.iter().map(|column| {
            vec![
                column.id.to_string(),
                plain(&column.name),
                plain(&column.type_name),
                if column.required {
                    "not null".to_owned()
                } else {
                    String::new()
                },
                plain(column.doc.as_deref().unwrap_or_default()),
            ]
        });
        text.push_str("\nColumns\n");
        text.push_str(&indented(&table(
            &["ID", "NAME", "TYPE", "", "DOC"],
            &["ID"],
            columns,
        )));
        let snapshots = self.history.iter().take(SNAPSHOTS_SHOWN).map(|snapshot| {
            vec![
                snapshot.snapshot_id.to_string(),
                units::time(snapshot.committed_at_ms),
                snapshot.operation.clone(),
                units::count(snapshot.added_rows),
                units::count(snapshot.added_files),
                units::count(snapshot.total_rows),
            ]
        });
        text.push_str(&format!("\nSnapshots ({})\n", self.history.len()));
        if !self.history.is_empty() {
            let headers = [
                "ID",
                "COMMITTED",
                "OPERATION",
                "ROWS ADDED",
                "FILES ADDED",
                "ROWS",
            ];
            text.push_str(&indented(&table(
                &headers,
                &["ROWS ADDED", "FILES ADDED", "ROWS"],
                snapshots,
            )));
        }
        if self.history.len() > SNAPSHOTS_SHOWN {
            text.push_str(&format!("  … {} older\n", self.history.len() - SNAPSHOTS_SHOWN));
        }
        text
    }
}
