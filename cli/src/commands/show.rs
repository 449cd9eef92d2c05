use frazil_core::{Result, TableName};
use frazil_table::inspection::{ScanRequest, ScannedRows, scan_rows, table_overview};
use frazil_table::{LoadedTable, Warehouse};
use serde::Serialize;

use crate::arguments::Show;
use crate::failure::Outcome;
use crate::output::{Document, Output};
use crate::session::{Session, find_table};
use crate::units;
use crate::values::Rows;

/// Rows of a table.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct ShownRows {
    table: TableName,
    snapshot_id: Option<i64>,
    /// Rows of the table at that snapshot, where it is known.
    total_rows: Option<u64>,
    /// Whether there are more rows than are shown.
    more: bool,
    #[serde(flatten)]
    rows: Rows,
}

pub(crate) async fn show(session: &Session, show: &Show, output: &Output) -> Result<Outcome> {
    let warehouse = session.existing_warehouse().await?;
    let name = find_table(&warehouse, &show.table).await?;
    let table = warehouse.load_existing(&name).await?;
    let request = ScanRequest {
        snapshot_id: show.snapshot,
        columns: show.columns.clone(),
        limit: usize::try_from(show.limit).unwrap_or(usize::MAX),
    };
    let progress = session.progress();
    progress.say(format!("reading {name}"));
    let shown = ShownRows::read(&warehouse, &table, &request).await?;
    drop(progress);
    output.print(&shown)?;
    Ok(Outcome::Done)
}

impl ShownRows {
    pub(crate) async fn read(
        warehouse: &Warehouse,
        table: &LoadedTable,
        request: &ScanRequest,
    ) -> Result<Self> {
        let scanned = scan_rows(warehouse, table, request).await?;
        let total_rows = match request.snapshot_id {
            None => Some(table_overview(table).rows),
            Some(_) => None,
        };
        Ok(Self::new(&table.name, &scanned, &request.columns, total_rows))
    }

    fn new(table: &TableName, scanned: &ScannedRows, columns: &[String], total_rows: Option<u64>) -> Self {
        let rows = match &scanned.rows {
            Some(batch) => Rows::of(batch, &scanned.schema),
            None if columns.is_empty() => {
                let fields = scanned.schema.as_struct().fields();
                Rows {
                    columns: fields.iter().map(|field| field.name.clone()).collect(),
                    rows: Vec::new(),
                }
            }
            None => Rows {
                columns: columns.to_vec(),
                rows: Vec::new(),
            },
        };
        Self {
            table: table.clone(),
            snapshot_id: scanned.snapshot_id,
            total_rows,
            more: scanned.more,
            rows,
        }
    }
}

impl Document for ShownRows {
    fn to_text(&self, width: Option<usize>) -> String {
        let shown = self.rows.rows.len() as u64;
        let footer = match (self.total_rows, self.more) {
            (Some(total), true) => format!("({} of {})\n", units::count(shown), units::counted(total, "row")),
            (None, true) => format!("({}, and there are more)\n", units::counted(shown, "row")),
            (_, false) => format!("({})\n", units::counted(shown, "row")),
        };
        format!("{}{footer}", self.rows.to_text(width))
    }
}
