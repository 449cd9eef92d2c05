use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ord::sort::{SortColumn, lexsort_to_indices};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use frazil_core::{Error, ErrorKind, Result};
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::scan::FileScanTask;
use iceberg::spec::{ListType, MapType, NestedField, NestedFieldRef, Schema, SchemaRef, StructType, Type};
use iceberg::table::Table;
use iceberg::{Runtime, TableIdent};

mod evolved;

use super::overview::TableKind;
use crate::inspect::KafkaFields;
use crate::rows::{MAX_FILE_BYTES, read_data_file};
use crate::warehouse::{LoadedTable, Warehouse, iceberg_error};

/// How many data files are considered for a scan with a limit. They are a table's first ones in the order in which its
/// manifests are read; beyond that, looking for older files would cost more than it tells.
pub const MAX_FILES_PLANNED: usize = 10_000;

/// Rows decoded at a time.
const BATCH_ROWS: usize = 1_024;

const READ: &str = "read the table's rows";

/// Which rows to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanRequest {
    /// The snapshot; `None`: the current one.
    pub snapshot_id: Option<i64>,
    /// Top-level columns, in the order wanted; empty: all.
    pub columns: Vec<String>,
    /// At most so many rows.
    pub limit: usize,
}

/// Rows of a table.
#[derive(Debug, Clone)]
pub struct ScannedRows {
    /// The snapshot that was read; `None`: the table has none yet.
    pub snapshot_id: Option<i64>,
    /// The snapshot's schema.
    pub schema: SchemaRef,
    /// The rows, in one batch; `None`: there are none.
    pub rows: Option<RecordBatch>,
    /// Whether the table may hold more than was asked for.
    pub more: bool,
}

/// Reads rows as any Iceberg reader sees them: in the snapshot's schema, without deleted ones.
///
/// Files are read oldest first and one at a time, until there are enough rows; these are then put in order of epoch,
/// partition and offset. O(manifests) plus the files that the limit needs. Needs a tokio runtime.
///
/// `Invalid` when the snapshot or a column does not exist.
pub async fn scan_rows(
    warehouse: &Warehouse,
    table: &LoadedTable,
    request: &ScanRequest,
) -> Result<ScannedRows> {
    let snapshot = match request.snapshot_id {
        None => table.metadata.current_snapshot().cloned(),
        Some(id) => Some(table.metadata.snapshot_by_id(id).cloned().ok_or_else(|| {
            Error::new(ErrorKind::Invalid, READ, format!("it has no snapshot {id}"))
                .with_context("table", &table.name)
                .with_hint("`frazil describe TABLE` lists its snapshots; old ones expire")
        })?),
    };
    let schema = match &snapshot {
        None => table.metadata.current_schema().clone(),
        Some(snapshot) => snapshot
            .schema(&table.metadata)
            .map_err(|e| iceberg_error(READ, e))?,
    };
    let names: Vec<String> = schema
        .as_struct()
        .fields()
        .iter()
        .map(|field| field.name.clone())
        .collect();
    for column in &request.columns {
        if !names.contains(column) {
            return Err(
                Error::new(ErrorKind::Invalid, READ, format!("it has no column `{column}`"))
                    .with_context("table", &table.name)
                    .with_hint(format!("its columns are {}", names.join(", "))),
            );
        }
    }
    let wanted = if request.columns.is_empty() {
        names
    } else {
        request.columns.clone()
    };
    let Some(snapshot) = snapshot else {
        return Ok(ScannedRows {
            snapshot_id: None,
            schema,
            rows: None,
            more: false,
        });
    };
    // What rows are put in order by is read as well, and taken out again.
    let order = order_columns(warehouse, table, &schema).await?;
    let mut columns = wanted.clone();
    columns.extend(order.iter().filter(|name| !wanted.contains(name)).cloned());

    let limit = request.limit;
    let scan = RowScan::new(warehouse, table)?;
    let mut tasks = scan.files(Some(snapshot.snapshot_id()), &columns).await?;
    let mut planned = Vec::new();
    while let Some(task) = tasks.try_next().await? {
        planned.push(task);
        if planned.len() == MAX_FILES_PLANNED {
            break;
        }
    }
    // Names of our data files start with the time.
    planned.sort_by(|a, b| a.data_file_path.cmp(&b.data_file_path));
    let mut read = Vec::new();
    let mut count = 0;
    for file in planned {
        if count > limit {
            break;
        }
        for batch in file_rows(warehouse, &scan, file, &schema, &columns, limit - count).await? {
            count += batch.num_rows();
            read.push(batch);
        }
    }
    let rows = in_order(&read, &order)?.map(|rows| {
        let kept: Vec<usize> = wanted
            .iter()
            .filter_map(|name| rows.schema_ref().index_of(name).ok())
            .collect();
        rows.slice(0, rows.num_rows().min(limit))
            .project(&kept)
            .map_err(arrow_failed)
    });
    Ok(ScannedRows {
        snapshot_id: Some(snapshot.snapshot_id()),
        schema,
        rows: rows.transpose()?,
        more: count > limit,
    })
}

/// Rows of one file, until there are more than `limit`. iceberg 0.10 cannot make a list or map of nulls for a file that
/// was written before the table had the column: such a file is read whole, and its rows are put into the schema here.
async fn file_rows(
    warehouse: &Warehouse,
    scan: &RowScan,
    file: FileScanTask,
    schema: &Schema,
    columns: &[String],
    limit: usize,
) -> Result<Vec<RecordBatch>> {
    let files = stream::iter([Ok(file.clone())]).boxed();
    let mut batches = scan.rows(files, limit.clamp(1, BATCH_ROWS))?;
    let (mut read, mut count) = (Vec::new(), 0);
    while count <= limit {
        match batches.try_next().await {
            Ok(Some(batch)) => {
                count += batch.num_rows();
                read.push(batch);
            }
            Ok(None) => break,
            // Deletes would have to be applied as well.
            Err(error) if !file.deletes.is_empty() => return Err(error),
            Err(error) => return whole_file(warehouse, &file, schema, columns).await?.ok_or(error),
        }
    }
    Ok(read)
}

/// All rows of a file without deletes, in these columns of the schema. `None`: it is not there.
async fn whole_file(
    warehouse: &Warehouse,
    file: &FileScanTask,
    schema: &Schema,
    columns: &[String],
) -> Result<Option<Vec<RecordBatch>>> {
    let bytes = warehouse
        .storage
        .get(&file.data_file_path, MAX_FILE_BYTES as u64)
        .await?;
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    let arrow = schema_to_arrow_schema(&without_docs(schema)?).map_err(|e| iceberg_error(READ, e))?;
    let wanted = columns.iter().map(|name| arrow.index_of(name));
    let wanted = wanted
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(arrow_failed)?;
    let arrow = Arc::new(arrow.project(&wanted).map_err(arrow_failed)?);
    let rows = read_data_file(bytes, None)?;
    let rows = rows.iter().map(|rows| evolved::in_schema(rows, &arrow));
    rows.collect::<Result<Vec<_>>>().map(Some)
}

/// Rows of a table, file by file. Bounded memory: one batch at a time.
pub(super) struct RowScan {
    table: Table,
}

impl RowScan {
    pub(super) fn new(warehouse: &Warehouse, table: &LoadedTable) -> Result<Self> {
        let failed = |e| iceberg_error(READ, e);
        let name = [table.name.namespace().as_str(), table.name.table()];
        let table = Table::builder()
            .file_io(warehouse.file_io())
            .metadata(table.metadata.clone())
            .metadata_location(table.pointer.metadata_location.clone())
            .identifier(TableIdent::from_strs(name).map_err(failed)?)
            .runtime(Runtime::try_current().map_err(failed)?)
            .readonly(true)
            .build()
            .map_err(failed)?;
        Ok(Self { table })
    }

    /// The files of a snapshot, with the deletes that apply to each.
    pub(super) async fn files(
        &self,
        snapshot_id: Option<i64>,
        columns: &[String],
    ) -> Result<BoxStream<'static, Result<FileScanTask>>> {
        let failed = |e| iceberg_error(READ, e);
        let mut scan = self.table.scan().select(columns);
        if let Some(id) = snapshot_id {
            scan = scan.snapshot_id(id);
        }
        let scan = scan.with_concurrency_limit(4).build().map_err(failed)?;
        let schema = match scan.snapshot() {
            Some(snapshot) => snapshot.schema(self.table.metadata()).map_err(failed)?,
            None => self.table.current_schema_ref(),
        };
        let schema = Arc::new(without_docs(&schema)?);
        let files = scan.plan_files().await.map_err(failed)?;
        let files = files.map_ok(move |mut file| {
            file.schema = schema.clone();
            file
        });
        Ok(files.map_err(failed).boxed())
    }

    /// The rows of these files, in their order.
    pub(super) fn rows(
        &self,
        files: BoxStream<'static, Result<FileScanTask>>,
        batch_rows: usize,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let files = files.map_err(|error| {
            iceberg::Error::new(iceberg::ErrorKind::Unexpected, "the files cannot be listed")
                .with_source(error)
        });
        let reader = self
            .table
            .reader_builder()
            .with_data_file_concurrency_limit(1)
            .with_batch_size(batch_rows);
        let read = reader
            .build()
            .read(files.boxed())
            .map_err(|e| iceberg_error(READ, e))?;
        Ok(read.stream().map_err(|e| iceberg_error(READ, e)).boxed())
    }
}

/// The schema without its documentation. iceberg 0.10 compares the Arrow types of file and table with all they carry,
/// and a nested field with a doc, which Parquet does not hold, makes it refuse the file.
fn without_docs(schema: &Schema) -> Result<Schema> {
    let fields = schema.as_struct().fields().iter().map(undocumented);
    Schema::builder()
        .with_schema_id(schema.schema_id())
        .with_identifier_field_ids(schema.identifier_field_ids())
        .with_fields(fields)
        .build()
        .map_err(|e| iceberg_error(READ, e))
}

fn undocumented(field: &NestedFieldRef) -> NestedFieldRef {
    let mut field = NestedField::clone(field);
    field.doc = None;
    field.field_type = Box::new(match *field.field_type {
        Type::Primitive(primitive) => Type::Primitive(primitive),
        Type::Struct(of) => Type::Struct(StructType::new(of.fields().iter().map(undocumented).collect())),
        Type::List(of) => Type::List(ListType::new(undocumented(&of.element_field))),
        Type::Map(of) => Type::Map(MapType::new(
            undocumented(&of.key_field),
            undocumented(&of.value_field),
        )),
    });
    Arc::new(field)
}

/// Names of the columns that say which record a row is: epoch, partition, offset. None in a table that is not ours.
async fn order_columns(
    warehouse: &Warehouse,
    table: &LoadedTable,
    schema: &SchemaRef,
) -> Result<Vec<String>> {
    let ids = match TableKind::of(&table.metadata) {
        TableKind::Foreign => return Ok(Vec::new()),
        TableKind::DeadLetters => {
            use crate::dead_letters::field_ids::{EPOCH, OFFSET, PARTITION};
            [EPOCH, PARTITION, OFFSET]
        }
        TableKind::Rows => {
            let fields = KafkaFields::of(&warehouse.ledger(table).await?.fields)?;
            [fields.epoch, fields.partition, fields.offset]
        }
    };
    Ok(ids
        .iter()
        .filter_map(|id| schema.name_by_field_id(*id))
        .map(str::to_owned)
        .collect())
}

/// All rows in one batch, ordered by these columns.
fn in_order(batches: &[RecordBatch], order: &[String]) -> Result<Option<RecordBatch>> {
    let Some(first) = batches.first() else {
        return Ok(None);
    };
    let rows = concat_batches(&first.schema(), batches).map_err(arrow_failed)?;
    let columns: Vec<SortColumn> = order
        .iter()
        .filter_map(|name| rows.column_by_name(name))
        .map(|column| SortColumn {
            values: Arc::clone(column),
            options: None,
        })
        .collect();
    if columns.is_empty() {
        return Ok(Some(rows));
    }
    let indices = lexsort_to_indices(&columns, None).map_err(arrow_failed)?;
    take_record_batch(&rows, &indices).map(Some).map_err(arrow_failed)
}

fn arrow_failed(error: arrow_schema::ArrowError) -> Error {
    Error::new(ErrorKind::Internal, READ, error.to_string()).with_source(error)
}

#[cfg(test)]
mod tests {
    use iceberg::spec::PrimitiveType;

    use super::*;

    #[test]
    fn documentation_goes_at_every_level_and_ids_stay() {
        let long = |id: i32, name: &str| {
            Arc::new(NestedField::optional(id, name, Type::Primitive(PrimitiveType::Long)).with_doc("d"))
        };
        let of = |fields| Type::Struct(StructType::new(fields));
        let list = Type::List(ListType::new(Arc::new(NestedField::list_element(
            5,
            of(vec![long(6, "a")]),
            false,
        ))));
        let map = Type::Map(MapType::new(
            Arc::new(NestedField::map_key_element(
                8,
                Type::Primitive(PrimitiveType::String),
            )),
            Arc::new(NestedField::map_value_element(9, of(vec![long(10, "b")]), false)),
        ));
        let schema = Schema::builder()
            .with_schema_id(3)
            .with_fields([
                long(1, "id"),
                Arc::new(NestedField::optional(2, "s", of(vec![long(3, "n")])).with_doc("d")),
                Arc::new(NestedField::optional(4, "l", list)),
                Arc::new(NestedField::optional(7, "m", map)),
            ])
            .build()
            .unwrap();
        let json = serde_json::to_string(&without_docs(&schema).unwrap()).unwrap();
        assert!(serde_json::to_string(&schema).unwrap().contains("\"doc\""));
        assert!(!json.contains("\"doc\""), "{json}");
        let stripped = without_docs(&schema).unwrap();
        for (id, name) in [(3, "s.n"), (6, "l.element.a"), (10, "m.value.b")] {
            assert_eq!(stripped.name_by_field_id(id), Some(name));
        }
        assert_eq!(stripped.schema_id(), 3);
    }
}
