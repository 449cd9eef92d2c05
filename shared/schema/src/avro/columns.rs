use frazil_core::Result;
use iceberg::spec::PrimitiveType;

use super::{AvroField, AvroType, invalid};
use crate::{Column, ColumnType, Mapping};

/// The columns of a record's fields, below the fields `parent`. Fields that can only be null have none; those that the
/// mapping excludes are marked.
pub(super) fn of_fields(fields: &mut [AvroField], parent: &[&str], mapping: &Mapping) -> Result<Vec<Column>> {
    let mut columns = Vec::with_capacity(fields.len());
    for field in fields {
        if mapping.excludes(parent, &field.name) {
            field.excluded = true;
            continue;
        }
        let path: Vec<&str> = parent.iter().copied().chain([field.name.as_str()]).collect();
        let Some(natural) = of_type(&mut field.data_type, &path, mapping)? else {
            continue;
        };
        if let Some(mut column) = mapping.column(parent, &field.name, natural)? {
            column.doc.clone_from(&field.doc);
            columns.push(column);
        }
    }
    Ok(columns)
}

/// The type of the column that holds this type at `path`, if it can be anything but null. The mapping is a contract:
/// for an existing table it never changes.
fn of_type(data_type: &mut AvroType, path: &[&str], mapping: &Mapping) -> Result<Option<ColumnType>> {
    use PrimitiveType as P;
    if !data_type.has_column() {
        return Ok(None);
    }
    Ok(Some(ColumnType::Primitive(match data_type {
        AvroType::Null => return Ok(None),
        AvroType::Boolean => P::Boolean,
        AvroType::Int => P::Int,
        AvroType::Long => P::Long,
        AvroType::Float => P::Float,
        AvroType::Double => P::Double,
        AvroType::Bytes | AvroType::Fixed(_) | AvroType::Duration => P::Binary,
        AvroType::String | AvroType::Enum(_) | AvroType::Uuid | AvroType::UuidBytes => P::String,
        AvroType::TimeMillis | AvroType::TimeMicros => mapping.time(),
        AvroType::Decimal { precision, scale, .. } => P::Decimal {
            precision: *precision,
            scale: *scale,
        },
        AvroType::Date => P::Date,
        AvroType::Timestamp { utc: true, .. } => mapping.instant(),
        AvroType::Timestamp { utc: false, .. } => P::Timestamp,
        AvroType::Recursive(_) => P::String, // the JSON of that subtree
        AvroType::Record(fields) => {
            let columns = of_fields(fields, path, mapping)?;
            if !columns.is_empty() {
                return Ok(Some(ColumnType::Struct(columns)));
            }
            P::Boolean // present or null: neither Parquet nor Athena takes an empty struct
        }
        AvroType::Array(items) => {
            let element = of_type(items, path, mapping)?;
            return Ok(element.map(|element| ColumnType::List(Box::new(element))));
        }
        AvroType::Map(values) => {
            let value = of_type(values, path, mapping)?;
            return Ok(value.map(|value| map(ColumnType::STRING, value)));
        }
        AvroType::Entries(entry) => {
            let (key, value) = &mut **entry;
            let (key, value) = (of_type(key, path, mapping)?, of_type(value, path, mapping)?);
            return Ok(key.zip(value).map(|(key, value)| map(key, value)));
        }
        AvroType::Union(_) if data_type.only_branch().is_some() => {
            let AvroType::Union(branches) = data_type else {
                return Ok(None);
            };
            let mut others = branches
                .iter_mut()
                .filter(|branch| branch.data_type != AvroType::Null);
            return match others.next() {
                Some(only) => of_type(&mut only.data_type, path, mapping),
                None => Ok(None),
            };
        }
        AvroType::Union(branches) => {
            let columns = of_fields(branches, path, mapping)?;
            if columns.is_empty() {
                let path = path.join(".");
                return Err(invalid(&path, "the settings exclude every branch of the union")
                    .with_hint(format!("exclude `{path}` itself")));
            }
            return Ok(Some(ColumnType::Struct(columns)));
        }
    })))
}

fn map(key: ColumnType, value: ColumnType) -> ColumnType {
    ColumnType::Map(Box::new(key), Box::new(value))
}

impl AvroType {
    /// Whether it can be anything but null, alone or in lists and maps. Only such a type has a column.
    pub fn has_column(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Array(inner) | Self::Map(inner) => inner.has_column(),
            Self::Union(branches) => branches.iter().any(|branch| branch.data_type.has_column()),
            _ => true,
        }
    }

    /// The branch of a union that is not null, if there is exactly one: such a union is an optional field.
    pub fn only_branch(&self) -> Option<&AvroField> {
        let Self::Union(branches) = self else { return None };
        let mut others = branches
            .iter()
            .filter(|branch| branch.data_type != AvroType::Null);
        others.next().filter(|_| others.next().is_none())
    }

    /// Whether its column is a single value, as the key of a map must be.
    pub(super) fn is_scalar(&self) -> bool {
        match self {
            Self::Null | Self::Record(_) | Self::Array(_) | Self::Map(_) | Self::Entries(_) => false,
            Self::Recursive(_) => false,
            Self::Union(_) => self
                .only_branch()
                .is_some_and(|branch| branch.data_type.is_scalar()),
            _ => true,
        }
    }
}
