//! Schema-only commits: making a table, and adding or widening columns before the rows that need them (promise I4).

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use frazil_core::{Error, ErrorKind, Result, TableName, TimestampMs};
use frazil_schema::{Column, Evolution, FieldMap, KafkaColumns, RefusedChange, evolve};
use iceberg::spec::{
    FormatVersion, NullOrder, Schema, SortDirection, SortField, SortOrder, TableMetadataBuilder, Transform,
    UnboundPartitionSpec,
};
use uuid::Uuid;

use crate::commit::{WhenMoved, change_table, write_ledger};
use crate::ledger::Ledger;
use crate::metadata::{common_properties, write_metadata};
use crate::properties;
use crate::warehouse::{LoadedTable, Warehouse, iceberg_error};

/// How often a schema-only commit starts again when others are first.
const MAX_ATTEMPTS: u32 = 32;

/// The columns that the records of an event need, one list per writer schema, given what the table has: inferred JSON
/// depends on it.
pub trait WantedColumns: Sync {
    /// Whether the records' settings are those that the table was made with, by its properties. Asked before anything
    /// of the table changes.
    ///
    /// # Errors
    /// `Suspended` if not: a person must decide.
    fn check_settings(&self, _properties: &HashMap<String, String>, _fields: &FieldMap) -> Result<()> {
        Ok(())
    }

    /// The lists, for a new table without one.
    fn columns(&self, table: Option<(&Schema, &FieldMap)>) -> Vec<Cow<'_, [Column]>>;
}

/// What a table is made with. It does not change afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct TableDesign {
    /// Kafka's own columns.
    pub kafka: KafkaColumns,
    /// Columns and transforms of the partition spec.
    pub partition_by: Vec<(String, Transform)>,
    /// Columns, transforms, directions and the place of nulls of the sort order.
    pub sort_by: Vec<(String, Transform, SortDirection, NullOrder)>,
    /// Further table properties: topic, source, the frozen settings.
    pub properties: HashMap<String, String>,
}

/// A table that has a place for every wanted column.
#[derive(Debug)]
pub enum Ensured {
    /// Here it is, with the ledger of the same metadata. `changed`: this call made it or its columns.
    Ready {
        /// The table.
        table: LoadedTable,
        /// Its ledger.
        ledger: Box<Ledger>,
        /// Whether this call committed something.
        changed: bool,
    },
    /// Some change is not accepted; nothing was committed.
    Refused(Vec<RefusedChange>),
}

/// Loads a table, and makes it or adds columns first where that is needed: one metadata-only commit for all of them.
///
/// `known` is the uuid that the topic's state has: a table that it knows and the catalog does not, or under another
/// uuid, is not made again in silence (`Suspended`). Field ids are taken from the metadata read after the commit.
/// Two schema changes of a table are at least `interval` apart, with jitter, so that a hundred functions that meet a
/// new schema make one commit and ninety-nine reads.
pub async fn ensure_table(
    warehouse: &Warehouse,
    name: &TableName,
    wanted: &dyn WantedColumns,
    design: &TableDesign,
    known: Option<Uuid>,
    interval: Duration,
) -> Result<Ensured> {
    let mut changed = false;
    for attempt in 0..MAX_ATTEMPTS {
        if attempt > 0 {
            let (base, limit) = (Duration::from_millis(50), Duration::from_secs(5));
            warehouse.environment.backoff(attempt, base, limit).await;
        }
        let Some(table) = warehouse.load(name).await? else {
            if let Some(uuid) = known {
                return Err(gone(
                    name,
                    &format!("the topic's table with uuid {uuid} is not in the catalog any more"),
                ));
            }
            match create(warehouse, name, wanted, design).await? {
                Some(refused) => return Ok(Ensured::Refused(refused)),
                None => {
                    changed = true;
                    continue;
                }
            }
        };
        let uuid = table.metadata.uuid();
        if let Some(known) = known.filter(|known| *known != uuid) {
            return Err(gone(
                name,
                &format!("it was made anew with uuid {uuid}; the topic's table had uuid {known}"),
            ));
        }
        let ledger = warehouse.ledger(&table).await?;
        wanted.check_settings(table.metadata.properties(), &ledger.fields)?;
        match evolution(&table, &ledger, wanted, &design.kafka)? {
            Evolution::Unchanged => {
                return Ok(Ensured::Ready {
                    table,
                    ledger: Box::new(ledger),
                    changed,
                });
            }
            Evolution::Refused(refused) => return Ok(Ensured::Refused(refused)),
            Evolution::Changed(change) => {
                if wait_for_turn(warehouse, &table, interval).await {
                    continue;
                }
                tracing::info!(table = %name, added = ?change.added, widened = ?change.widened, "schema changes");
                changed |= change_schema(warehouse, name, wanted, design).await?;
            }
        }
    }
    Err(Error::new(
        ErrorKind::Unavailable,
        "change the table's schema",
        "other writers were first every time",
    )
    .with_context("table", name))
}

fn gone(name: &TableName, found: &str) -> Error {
    Error::new(ErrorKind::Suspended, "use the topic's table", found)
        .with_context("table", name)
        .with_code("table.gone")
        .with_hint("restore the table, or start over with `frazil topic adopt`")
}

/// What an existing table needs for the wanted columns.
fn evolution(
    table: &LoadedTable,
    ledger: &Ledger,
    wanted: &dyn WantedColumns,
    kafka: &KafkaColumns,
) -> Result<Evolution> {
    let metadata = &table.metadata;
    let lists = wanted.columns(Some((metadata.current_schema().as_ref(), &ledger.fields)));
    let lists: Vec<&[Column]> = lists.iter().map(AsRef::as_ref).collect();
    evolve(
        Some(metadata.current_schema()),
        metadata.last_column_id(),
        &ledger.fields,
        &lists,
        kafka,
    )
}

/// Waits until the last schema change is `interval` old, with jitter; says whether it waited.
async fn wait_for_turn(warehouse: &Warehouse, table: &LoadedTable, interval: Duration) -> bool {
    let last = table
        .metadata
        .properties()
        .get(properties::SCHEMA_CHANGED_AT)
        .and_then(|at| at.parse().ok());
    let Some(last) = last.map(TimestampMs) else {
        return false;
    };
    let age = warehouse.environment.now().since(last);
    let Some(rest) = interval.checked_sub(age).filter(|rest| !rest.is_zero()) else {
        return false;
    };
    let jitter_ms = warehouse.environment.next_u64() % (interval.as_millis() as u64 / 4).max(1);
    warehouse
        .environment
        .sleep(rest + Duration::from_millis(jitter_ms))
        .await;
    true
}

/// Makes the table. Whatever the catalog answers, the caller reads what is there.
async fn create(
    warehouse: &Warehouse,
    name: &TableName,
    wanted: &dyn WantedColumns,
    design: &TableDesign,
) -> Result<Option<Vec<RefusedChange>>> {
    let lists = wanted.columns(None);
    let lists: Vec<&[Column]> = lists.iter().map(AsRef::as_ref).collect();
    let change = match evolve(None, 0, &FieldMap::default(), &lists, &design.kafka)? {
        Evolution::Changed(change) => change,
        Evolution::Refused(refused) => return Ok(Some(refused)),
        Evolution::Unchanged => {
            return Err(Error::new(
                ErrorKind::Internal,
                "make a table",
                "a new table without columns",
            ));
        }
    };
    let failed = |error| iceberg_error("make a table", error);
    let uuid = warehouse.environment.new_uuid();
    let now = warehouse.environment.now();
    let spec = partition_spec(&change.schema, design)?;
    let order = sort_order(&change.schema, design)?;
    let ledger = Ledger::new(uuid, change.fields, now);
    let (_, ledger_properties) = write_ledger(warehouse, &ledger).await?;
    let mut table_properties = common_properties();
    table_properties.insert(properties::KIND.to_owned(), "rows".to_owned());
    table_properties.extend(design.properties.clone());
    table_properties.extend(ledger_properties);
    table_properties.insert(properties::SCHEMA_CHANGED_AT.to_owned(), now.to_string());
    let location = warehouse.layout.table(name, uuid);
    let builder = TableMetadataBuilder::new(
        change.schema,
        spec,
        order,
        location,
        FormatVersion::V2,
        table_properties,
    )
    .map_err(failed)?
    .assign_uuid(uuid);
    let (location, metadata) = write_metadata(warehouse, builder, None, now).await?;
    warehouse.catalog.create_namespace(name.namespace()).await?;
    match warehouse.catalog.create(name, &location, &metadata).await {
        Ok(()) => Ok(None),
        Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::CommitUnknown) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Commits the new schema and the ledger that maps it, worked out anew from what each try finds. `false`: somebody
/// else did it first, or the change turned out to be refused, which the caller sees when it reads again.
async fn change_schema(
    warehouse: &Warehouse,
    name: &TableName,
    wanted: &dyn WantedColumns,
    design: &TableDesign,
) -> Result<bool> {
    let failed = |error| iceberg_error("change the table's schema", error);
    let now = warehouse.environment.now();
    let change = |table: &LoadedTable, ledger: &mut Ledger, builder: TableMetadataBuilder| {
        let Evolution::Changed(change) = evolution(table, ledger, wanted, &design.kafka)? else {
            return Ok(None);
        };
        ledger.fields = change.fields;
        let mut changed = HashMap::from([(properties::SCHEMA_CHANGED_AT.to_owned(), now.to_string())]);
        // A setting of a field that had no column until now is frozen with it; no other differs.
        let settings = design.properties.get_key_value(properties::SETTINGS);
        changed.extend(settings.map(|(key, value)| (key.clone(), value.clone())));
        let builder = builder
            .add_current_schema(change.schema)
            .and_then(|builder| builder.set_properties(changed))
            .map_err(failed)?;
        Ok(Some(builder))
    };
    let committed = change_table(warehouse, name, WhenMoved::Refuse, change).await?;
    Ok(committed.is_some())
}

fn partition_spec(schema: &Schema, design: &TableDesign) -> Result<UnboundPartitionSpec> {
    let mut spec = UnboundPartitionSpec::builder();
    for (column, transform) in &design.partition_by {
        let field = source_column(schema, column, "partition")?;
        let name = match transform {
            Transform::Identity => column.clone(),
            Transform::Bucket(_) => format!("{column}_bucket"),
            Transform::Truncate(_) => format!("{column}_trunc"),
            other => format!("{column}_{other}"),
        };
        // An identity partition is named like its column; any other name must be free.
        let taken = !matches!(transform, Transform::Identity) && schema.field_by_name(&name).is_some();
        let name = if taken { format!("{name}_partition") } else { name };
        spec = spec
            .add_partition_field(field, name, *transform)
            .map_err(|error| invalid_layout("partition", column, error))?;
    }
    Ok(spec.build())
}

fn sort_order(schema: &Schema, design: &TableDesign) -> Result<SortOrder> {
    let mut order = SortOrder::builder();
    for (column, transform, direction, null_order) in &design.sort_by {
        let field = SortField::builder()
            .source_id(source_column(schema, column, "sort")?)
            .transform(*transform)
            .direction(*direction)
            .null_order(*null_order)
            .build();
        order.with_sort_field(field);
    }
    order
        .build(schema)
        .map_err(|error| iceberg_error("make a sort order", error))
}

fn source_column(schema: &Schema, column: &str, what: &'static str) -> Result<i32> {
    // Settings write columns in lowercase; a table's columns may not be, but never differ in case only.
    let field = schema.field_by_name_case_insensitive(column);
    field.map(|field| field.id).ok_or_else(|| {
        Error::new(
            ErrorKind::Invalid,
            "make a table",
            format!("there is no column `{column}` to {what} by"),
        )
        .with_hint("name a column of the records or one of Kafka's own, or wait until a record has it")
    })
}

fn invalid_layout(what: &'static str, column: &str, error: iceberg::Error) -> Error {
    let message = format!("cannot {what} by `{column}`: {}", error.message());
    Error::new(ErrorKind::Invalid, "make a table", message).with_source(error)
}
