use std::collections::HashSet;
use std::fmt::Write as _;

use super::{Change, ICEBERG, METADATA_LOCATION, PREVIOUS_METADATA_LOCATION, TABLE_TYPE};
use aws_sdk_glue::types::{Column, StorageDescriptor, Table, TableInput};
use iceberg::spec::{NestedFieldRef, PrimitiveType, TableMetadata, Type};

/// What Glue takes as a comment, in bytes.
const MAX_COMMENT_BYTES: usize = 255;
/// What Glue takes as a table's description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 2_048;
/// What Glue takes as a column's name, in bytes.
const MAX_NAME_BYTES: usize = 255;
/// What Glue takes as a column's type, in characters.
const MAX_TYPE_CHARS: usize = 131_072;

const EXTERNAL_TABLE: &str = "EXTERNAL_TABLE";
const COMMENT_PROPERTY: &str = "comment";

/// Which columns Glue is shown. They inform people and permissions; engines read the metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Columns {
    /// Those of the current schema, then those of earlier ones.
    All,
    /// Those of the current schema.
    Current,
    /// Those of the current schema, nested ones as `string`, without comments.
    Flat,
    /// None.
    None,
}

impl Columns {
    /// What to try when these are too many.
    pub(super) fn fewer(self) -> Option<Self> {
        match self {
            Self::All => Some(Self::Current),
            Self::Current => Some(Self::Flat),
            Self::Flat => Some(Self::None),
            Self::None => None,
        }
    }
}

/// The table as Glue is told. What its entry has beside what Iceberg gives it stays.
pub(super) fn table_input(change: &Change<'_>, columns: Columns) -> TableInput {
    let metadata = change.metadata;
    let current = change.replaced.map(|(_, current)| current);
    let mut parameters = current.and_then(Table::parameters).cloned().unwrap_or_default();
    let mut set = |name: &str, value: &str| parameters.insert(name.to_owned(), value.to_owned());
    set(TABLE_TYPE, ICEBERG);
    set(METADATA_LOCATION, change.metadata_location);
    if let Some((expected, _)) = change.replaced {
        set(PREVIOUS_METADATA_LOCATION, &expected.metadata_location);
    }
    let known = current.and_then(Table::storage_descriptor).cloned();
    let storage = match known {
        Some(StorageDescriptor {
            additional_locations, ..
        }) => StorageDescriptor::builder().set_additional_locations(additional_locations),
        None => StorageDescriptor::builder(),
    };
    let storage = storage
        .location(metadata.location())
        .set_columns(Some(glue_columns(metadata, columns)))
        .build();
    let comment = metadata.properties().get(COMMENT_PROPERTY);
    let comment = comment.map(|text| single_line(text, MAX_DESCRIPTION_BYTES));
    let description = comment.or_else(|| current?.description().map(str::to_owned));
    let input = TableInput::builder()
        .name(change.table.table())
        .set_description(description)
        .set_owner(current.and_then(Table::owner).map(str::to_owned))
        .table_type(EXTERNAL_TABLE)
        .set_partition_keys(Some(Vec::new()))
        .storage_descriptor(storage)
        .set_parameters(Some(parameters));
    input.build().expect("the name is set")
}

fn glue_columns(metadata: &TableMetadata, which: Columns) -> Vec<Column> {
    let mut columns = Vec::new();
    if which == Columns::None {
        return columns;
    }
    let mut names: HashSet<&str> = HashSet::new();
    for field in metadata.current_schema().as_struct().fields() {
        names.insert(&field.name);
        columns.push(column(field, true, which));
    }
    if which == Columns::All {
        let mut earlier: Vec<_> = metadata
            .schemas_iter()
            .filter(|schema| schema.schema_id() != metadata.current_schema_id())
            .collect();
        earlier.sort_by_key(|schema| std::cmp::Reverse(schema.schema_id()));
        for field in earlier.into_iter().flat_map(|schema| schema.as_struct().fields()) {
            if names.insert(&field.name) {
                columns.push(column(field, false, which));
            }
        }
    }
    // A name that Glue cannot hold is another engine's doing.
    columns
        .retain(|column| column.name().len() <= MAX_NAME_BYTES && !column.name().contains(char::is_control));
    columns
}

fn column(field: &NestedFieldRef, is_current: bool, which: Columns) -> Column {
    let is_flat = which == Columns::Flat && !field.field_type.is_primitive();
    let mut kind = String::new();
    write_type(&field.field_type, &mut kind);
    if is_flat || kind.chars().count() > MAX_TYPE_CHARS {
        kind = "string".to_owned();
    }
    let comment = field.doc.as_deref().filter(|_| which != Columns::Flat);
    Column::builder()
        .name(&field.name)
        .r#type(kind)
        .set_comment(comment.map(|doc| single_line(doc, MAX_COMMENT_BYTES)))
        .parameters("iceberg.field.id", field.id.to_string())
        .parameters("iceberg.field.optional", (!field.required).to_string())
        .parameters("iceberg.field.current", is_current.to_string())
        .build()
        .expect("the name is set")
}

/// Glue takes one line, and counts bytes.
fn single_line(text: &str, limit_bytes: usize) -> String {
    let line: String = text
        .chars()
        .map(|c| if c.is_control() && c != '\t' { ' ' } else { c })
        .collect();
    let mut end = limit_bytes.min(line.len());
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line[..end].to_owned()
}

fn write_type(kind: &Type, text: &mut String) {
    match kind {
        Type::Primitive(primitive) => match primitive {
            PrimitiveType::Boolean => text.push_str("boolean"),
            PrimitiveType::Int => text.push_str("int"),
            PrimitiveType::Long => text.push_str("bigint"),
            PrimitiveType::Float => text.push_str("float"),
            PrimitiveType::Double => text.push_str("double"),
            PrimitiveType::Date => text.push_str("date"),
            PrimitiveType::Timestamp
            | PrimitiveType::Timestamptz
            | PrimitiveType::TimestampNs
            | PrimitiveType::TimestamptzNs => text.push_str("timestamp"),
            PrimitiveType::Fixed(_) | PrimitiveType::Binary => text.push_str("binary"),
            PrimitiveType::Decimal { precision, scale } => {
                let _ = write!(text, "decimal({precision},{scale})");
            }
            PrimitiveType::Time | PrimitiveType::String | PrimitiveType::Uuid => text.push_str("string"),
        },
        Type::Struct(fields) => {
            text.push_str("struct<");
            for (index, field) in fields.fields().iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&field.name);
                text.push(':');
                write_type(&field.field_type, text);
            }
            text.push('>');
        }
        Type::List(list) => {
            text.push_str("array<");
            write_type(&list.element_field.field_type, text);
            text.push('>');
        }
        Type::Map(map) => {
            text.push_str("map<");
            write_type(&map.key_field.field_type, text);
            text.push(',');
            write_type(&map.value_field.field_type, text);
            text.push('>');
        }
    }
}
