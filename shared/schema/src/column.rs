use std::fmt;

use frazil_core::safe_name;
use iceberg::spec::PrimitiveType;

use crate::field_map::is_of_key;
use crate::{FieldPath, KafkaColumns};

/// A column that a source schema asks for. It has no field id yet: see [`evolve`](crate::evolve).
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The field's name in the source, exactly.
    pub source: String,
    /// Set where one source field feeds several columns, such as `double` for `price__double`, or a column of hashes.
    pub variant: Option<&'static str>,
    /// The name to ask for: safe for Glue and Athena, lowercase. A clash in the table gives it a suffix.
    pub name: String,
    /// The field's description in the source.
    pub doc: Option<String>,
    /// The column's type.
    pub data_type: ColumnType,
}

impl Column {
    /// A column under the safe, lowercase form of `source`.
    pub fn new(source: impl Into<String>, data_type: ColumnType) -> Self {
        let source = source.into();
        let name = safe_name(&source).to_ascii_lowercase();
        Self::named(source, name, data_type)
    }

    /// A column under a chosen name.
    pub(crate) fn named(source: impl Into<String>, name: String, data_type: ColumnType) -> Self {
        Self {
            source: source.into(),
            variant: None,
            name,
            doc: None,
            data_type,
        }
    }

    /// The column beside `source` for values of another type, named `source__variant`.
    pub fn sibling(source: &str, variant: &'static str, data_type: ColumnType) -> Self {
        let mut column = Self::new(source, data_type);
        column.name = format!("{}__{variant}", column.name);
        column.variant = Some(variant);
        column
    }

    /// The column that keeps, as a JSON object, the fields of a value that have no column of their own. A table has it
    /// once a record needs it.
    pub fn unknown_fields() -> Self {
        Self {
            variant: Some("unknown"),
            doc: Some("JSON object of the value's fields that have no column of their own".to_owned()),
            ..Self::named("", KafkaColumns::UNKNOWN_FIELDS.to_owned(), ColumnType::STRING)
        }
    }

    /// The column of the same field of a record's key. It has a path of its own beside that of a field of the value, and
    /// where the name is taken, `key_` goes before it. A key that is a single value is the column `key`.
    #[must_use]
    pub fn of_key(&self) -> Self {
        let mut column = self.clone();
        column.variant = Some(RecordPart::Key.variant(self.variant).unwrap_or("key"));
        if column.source == "value" {
            column.name = match self.variant {
                Some(variant) => format!("key__{variant}"),
                None => "key".to_owned(),
            };
        }
        column
    }

    pub(crate) fn is_of_key(&self) -> bool {
        self.variant.is_some_and(|variant| variant.starts_with("key"))
    }

    /// Where the column comes from, below `parent`.
    pub fn path(&self, parent: &FieldPath) -> FieldPath {
        parent.field(&self.source, self.variant)
    }
}

/// The part of a record that columns are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RecordPart {
    /// The value.
    #[default]
    Value,
    /// The key: its fields have paths of their own, `/id~key` beside the value's `/id`.
    Key,
}

impl RecordPart {
    /// The variant of a column at the top that the value would have as `variant`.
    pub(crate) fn variant(self, variant: Option<&'static str>) -> Option<&'static str> {
        match (self, variant) {
            (Self::Value, variant) => variant,
            (Self::Key, Some("boolean")) => Some("key_boolean"),
            (Self::Key, Some("long")) => Some("key_long"),
            (Self::Key, Some("double")) => Some("key_double"),
            (Self::Key, Some("string")) => Some("key_string"),
            // No other setting or sibling is for keys.
            (Self::Key, None | Some(_)) => Some("key"),
        }
    }

    /// Whether a column of this path is fed by this part.
    pub(crate) fn feeds(self, path: &str) -> bool {
        match self {
            Self::Value => path.starts_with('/') && !is_of_key(path),
            Self::Key => is_of_key(path),
        }
    }
}

/// The type of a [`Column`]: Iceberg's types without field ids. Everything in it is optional.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnType {
    /// A scalar.
    Primitive(PrimitiveType),
    /// A string column that holds a keyed hash of values of this type.
    Hashed(PrimitiveType),
    /// Named fields. None at all asks nothing of a struct that the table has already.
    Struct(Vec<Column>),
    /// A list of optional elements.
    List(Box<ColumnType>),
    /// A map from a key, never null, to an optional value.
    Map(Box<ColumnType>, Box<ColumnType>),
}

impl ColumnType {
    /// A string column.
    pub const STRING: Self = Self::Primitive(PrimitiveType::String);

    /// How many columns the type has once it is flattened.
    pub fn leaves(&self) -> usize {
        match self {
            Self::Primitive(_) | Self::Hashed(_) => 1,
            Self::Struct(columns) => columns.iter().map(|c| c.data_type.leaves()).sum(),
            Self::List(element) => element.leaves(),
            Self::Map(key, value) => key.leaves() + value.leaves(),
        }
    }
}

/// As Iceberg writes types: `struct<a: int, b: list<string>>`.
impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Primitive(primitive) => primitive.fmt(f),
            Self::Hashed(_) => PrimitiveType::String.fmt(f),
            Self::Struct(columns) => {
                f.write_str("struct<")?;
                for (index, column) in columns.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{}: {}", column.name, column.data_type)?;
                }
                f.write_str(">")
            }
            Self::List(element) => write!(f, "list<{element}>"),
            Self::Map(key, value) => write!(f, "map<{key}, {value}>"),
        }
    }
}
