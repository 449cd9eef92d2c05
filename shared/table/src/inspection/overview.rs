use std::collections::BTreeMap;

use frazil_core::{Error, Result, TableName, TimestampMs};
use futures::StreamExt;
use futures::stream;
use iceberg::spec::{NullOrder, PrimitiveType, Schema, SnapshotRef, SortDirection, TableMetadata, Type};
use serde::Serialize;
use uuid::Uuid;

use crate::properties;
use crate::warehouse::{LoadedTable, Warehouse};

/// How many tables are read at once.
const READS_AT_ONCE: usize = 16;

/// What a table is and how much it holds, from its metadata alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableOverview {
    /// Its name.
    pub table: TableName,
    /// Its uuid.
    pub uuid: Uuid,
    /// Who feeds it.
    pub kind: TableKind,
    /// The source of the topic that made it.
    pub source: Option<String>,
    /// The topic that made it, exactly as Kafka spells it.
    pub topic: Option<String>,
    /// Where its files are.
    pub location: String,
    /// Its current metadata.json.
    pub metadata_location: String,
    /// Iceberg's format version.
    pub format_version: u8,
    /// Its columns, in order.
    pub columns: Vec<ColumnOverview>,
    /// Its partition fields, such as `day(_kafka_timestamp)`.
    pub partition_by: Vec<String>,
    /// Its sort fields, such as `customer asc nulls-last`.
    pub sort_by: Vec<String>,
    /// Its rows, before deletes that other engines noted in delete files.
    pub rows: u64,
    /// Its data files.
    pub files: u64,
    /// Their size.
    pub bytes: u64,
    /// Its delete files, which only other engines write.
    pub delete_files: u64,
    /// The current snapshot.
    pub snapshot: Option<SnapshotOverview>,
    /// How many snapshots can be read.
    pub snapshots: usize,
    /// When the metadata last changed.
    pub updated_at_ms: TimestampMs,
    /// The table's properties.
    pub properties: BTreeMap<String, String>,
}

/// What feeds a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TableKind {
    /// The records of topics.
    Rows,
    /// Records that could not be read.
    DeadLetters,
    /// Not Frazil.
    Foreign,
}

impl TableKind {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::DeadLetters => "dead_letters",
            Self::Foreign => "foreign",
        }
    }

    pub(super) fn of(metadata: &TableMetadata) -> Self {
        match metadata.properties().get(properties::KIND).map(String::as_str) {
            Some("rows") => Self::Rows,
            Some("dead-letters") => Self::DeadLetters,
            Some(_) | None => Self::Foreign,
        }
    }
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnOverview {
    /// Its field id.
    pub id: i32,
    /// Its name.
    pub name: String,
    /// Its type, as SQL engines write it: `decimal(9,2)`, `list<struct<name: string>>`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Whether it is never null.
    pub required: bool,
    /// What its schema says about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doc: Option<String>,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotOverview {
    /// Its id.
    pub snapshot_id: i64,
    /// Its place in the table's history.
    pub sequence_number: i64,
    /// When it was committed.
    pub committed_at_ms: TimestampMs,
    /// `append`, or what another engine did.
    pub operation: String,
    /// Rows that it added.
    pub added_rows: u64,
    /// Data files that it added.
    pub added_files: u64,
    /// Rows of the table with it.
    pub total_rows: u64,
    /// Frazil's number of the commit, if it made it.
    pub commit: Option<u64>,
}

/// The top-level columns of a schema, in order.
pub fn column_overviews(schema: &Schema) -> Vec<ColumnOverview> {
    let columns = schema.as_struct().fields().iter().map(|field| ColumnOverview {
        id: field.id,
        name: field.name.clone(),
        type_name: type_name(&field.field_type),
        required: field.required,
        doc: field.doc.clone(),
    });
    columns.collect()
}

/// The overview of a table that was loaded.
pub fn table_overview(table: &LoadedTable) -> TableOverview {
    let metadata = &table.metadata;
    let schema = metadata.current_schema();
    let column_name = |id: i32| {
        schema
            .name_by_field_id(id)
            .map_or_else(|| format!("field {id}"), str::to_owned)
    };
    let partition_by = metadata.default_partition_spec().fields().iter().map(|field| {
        let column = column_name(field.source_id);
        transformed(&field.transform.to_string(), &column)
    });
    let sort_by = metadata.default_sort_order().fields.iter().map(|field| {
        let column = transformed(&field.transform.to_string(), &column_name(field.source_id));
        let direction = match field.direction {
            SortDirection::Ascending => "asc",
            SortDirection::Descending => "desc",
        };
        let nulls = match field.null_order {
            NullOrder::First => "nulls-first",
            NullOrder::Last => "nulls-last",
        };
        format!("{column} {direction} {nulls}")
    });
    let snapshot = metadata.current_snapshot();
    let total = |name: &str| snapshot.map_or(0, |snapshot| summary_number(snapshot, name).unwrap_or(0));
    let property = |name: &str| metadata.properties().get(name).cloned();
    TableOverview {
        table: table.name.clone(),
        uuid: metadata.uuid(),
        kind: TableKind::of(metadata),
        source: property(properties::SOURCE),
        topic: property(properties::TOPIC),
        location: metadata.location().to_owned(),
        metadata_location: table.pointer.metadata_location.clone(),
        format_version: metadata.format_version() as u8,
        columns: column_overviews(schema),
        partition_by: partition_by.collect(),
        sort_by: sort_by.collect(),
        rows: total("total-records"),
        files: total("total-data-files"),
        bytes: total("total-files-size"),
        delete_files: total("total-delete-files"),
        snapshot: snapshot.map(snapshot_overview),
        snapshots: metadata.snapshots().count(),
        updated_at_ms: TimestampMs(metadata.last_updated_ms()),
        properties: metadata
            .properties()
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    }
}

/// The snapshots of a table that can be read, newest first.
pub fn snapshot_overviews(table: &LoadedTable) -> Vec<SnapshotOverview> {
    let mut snapshots: Vec<_> = table.metadata.snapshots().map(snapshot_overview).collect();
    snapshots.sort_by_key(|snapshot| std::cmp::Reverse(snapshot.sequence_number));
    snapshots
}

/// Every table of the catalog, by name; one that cannot be read comes with the reason, and does not hide the others.
/// O(tables), each a metadata.json.
pub async fn list_tables(warehouse: &Warehouse) -> Result<Vec<(TableName, Result<TableOverview, Error>)>> {
    let mut names = Vec::new();
    for namespace in warehouse.namespaces().await? {
        names.extend(warehouse.catalog.tables(&namespace).await?);
    }
    let read = |name: TableName| async move {
        let overview = match warehouse.load(&name).await {
            Ok(Some(table)) => Ok(table_overview(&table)),
            Ok(None) => return None, // dropped since it was listed
            Err(error) => Err(error),
        };
        Some((name, overview))
    };
    let tables = stream::iter(names).map(read).buffered(READS_AT_ONCE);
    Ok(tables.filter_map(|found| async { found }).collect().await)
}

pub(super) fn snapshot_overview(snapshot: &SnapshotRef) -> SnapshotOverview {
    let number = |name: &str| summary_number(snapshot, name);
    SnapshotOverview {
        snapshot_id: snapshot.snapshot_id(),
        sequence_number: snapshot.sequence_number(),
        committed_at_ms: TimestampMs(snapshot.timestamp_ms()),
        operation: snapshot.summary().operation.as_str().to_owned(),
        added_rows: number("added-records").unwrap_or(0),
        added_files: number("added-data-files").unwrap_or(0),
        total_rows: number("total-records").unwrap_or(0),
        commit: number(properties::SUMMARY_COMMIT),
    }
}

/// The table's rows, by the current snapshot's summary.
pub(super) fn summary_total_rows(table: &LoadedTable) -> u64 {
    let snapshot = table.metadata.current_snapshot();
    snapshot
        .and_then(|snapshot| summary_number(snapshot, "total-records"))
        .unwrap_or(0)
}

fn summary_number(snapshot: &SnapshotRef, name: &str) -> Option<u64> {
    snapshot.summary().additional_properties.get(name)?.parse().ok()
}

/// `bucket[16]` of `id` as `bucket(16, id)`: what `frazil.toml` and the SQL engines write.
fn transformed(transform: &str, column: &str) -> String {
    match transform.split_once('[') {
        _ if transform == "identity" => column.to_owned(),
        Some((name, width)) => format!("{name}({}, {column})", width.trim_end_matches(']')),
        None => format!("{transform}({column})"),
    }
}

/// A type as SQL engines write it. Depth is bounded by the metadata's reader.
fn type_name(of: &Type) -> String {
    match of {
        Type::Primitive(PrimitiveType::Decimal { precision, scale }) => {
            format!("decimal({precision},{scale})")
        }
        Type::Primitive(primitive) => primitive.to_string(),
        Type::Struct(of) => {
            let fields: Vec<String> = of
                .fields()
                .iter()
                .map(|field| format!("{}: {}", field.name, type_name(&field.field_type)))
                .collect();
            format!("struct<{}>", fields.join(", "))
        }
        Type::List(of) => format!("list<{}>", type_name(&of.element_field.field_type)),
        Type::Map(of) => format!(
            "map<{}, {}>",
            type_name(&of.key_field.field_type),
            type_name(&of.value_field.field_type)
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use iceberg::spec::{ListType, NestedField, StructType};

    use super::*;

    #[test]
    fn transforms_read_like_the_configuration() {
        for (transform, expected) in [
            ("identity", "id"),
            ("day", "day(id)"),
            ("bucket[16]", "bucket(16, id)"),
            ("truncate[4]", "truncate(4, id)"),
        ] {
            assert_eq!(transformed(transform, "id"), expected);
        }
    }

    #[test]
    fn types_read_like_sql() {
        let price = NestedField::optional(
            2,
            "price",
            Type::Primitive(PrimitiveType::Decimal {
                precision: 9,
                scale: 2,
            }),
        );
        let item = Type::Struct(StructType::new(vec![
            Arc::new(price),
            Arc::new(NestedField::optional(
                3,
                "at",
                Type::Primitive(PrimitiveType::Timestamptz),
            )),
        ]));
        let list = Type::List(ListType::new(Arc::new(NestedField::list_element(1, item, false))));
        assert_eq!(
            type_name(&list),
            "list<struct<price: decimal(9,2), at: timestamptz>>"
        );
    }
}
