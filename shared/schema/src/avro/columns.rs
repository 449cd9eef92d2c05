use iceberg::spec::PrimitiveType;

use super::{AvroField, AvroType};
use crate::{Column, ColumnType};

/// The columns of a record's fields. Fields that can only be null have none.
pub(super) fn of_fields(fields: &[AvroField]) -> Vec<Column> {
    fields
        .iter()
        .filter_map(|field| {
            let mut column = Column::new(&field.name, field.data_type.column_type()?);
            column.doc.clone_from(&field.doc);
            Some(column)
        })
        .collect()
}

impl AvroType {
    /// The type of the column that holds this type, if it can be anything but null. The mapping is a contract:
    /// for an existing table it never changes.
    pub fn column_type(&self) -> Option<ColumnType> {
        use PrimitiveType as P;
        Some(ColumnType::Primitive(match self {
            Self::Null => return None,
            Self::Boolean => P::Boolean,
            Self::Int => P::Int,
            Self::Long => P::Long,
            Self::Float => P::Float,
            Self::Double => P::Double,
            Self::Bytes | Self::Fixed(_) | Self::Duration => P::Binary,
            Self::String | Self::Enum(_) | Self::Uuid | Self::UuidBytes => P::String,
            // Athena has no time type.
            Self::TimeMillis | Self::TimeMicros => P::String,
            Self::Decimal { precision, scale, .. } => P::Decimal {
                precision: *precision,
                scale: *scale,
            },
            Self::Date => P::Date,
            Self::Timestamp { utc: true, .. } => P::Timestamptz,
            Self::Timestamp { utc: false, .. } => P::Timestamp,
            Self::Record(fields) => {
                let columns = of_fields(fields);
                if columns.is_empty() {
                    P::Boolean // present or null: neither Parquet nor Athena takes an empty struct
                } else {
                    return Some(ColumnType::Struct(columns));
                }
            }
            Self::Array(items) => return Some(ColumnType::List(Box::new(items.column_type()?))),
            Self::Map(values) => {
                return Some(ColumnType::Map(
                    Box::new(ColumnType::STRING),
                    Box::new(values.column_type()?),
                ));
            }
            Self::Union(branches) => match self.only_branch() {
                Some(branch) => return branch.data_type.column_type(),
                None => {
                    let columns = of_fields(branches);
                    if columns.is_empty() {
                        return None;
                    }
                    return Some(ColumnType::Struct(columns));
                }
            },
        }))
    }

    /// The branch of a union that is not null, if there is exactly one: such a union is an optional field.
    pub fn only_branch(&self) -> Option<&AvroField> {
        let Self::Union(branches) = self else { return None };
        let mut others = branches
            .iter()
            .filter(|branch| branch.data_type != AvroType::Null);
        others.next().filter(|_| others.next().is_none())
    }
}
