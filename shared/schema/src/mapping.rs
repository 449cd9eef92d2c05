use std::collections::BTreeMap;

use frazil_core::{Error, ErrorKind, Result, safe_name};
use iceberg::spec::PrimitiveType;
use serde::{Deserialize, Serialize};

use crate::{Column, ColumnType};

/// What a topic's settings say about how source schemas become columns. A part of the table's contract: it is frozen
/// when the table is created.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mapping {
    /// `timestamps = "utc_naive"`: every instant becomes a `timestamp` in UTC, for engines without `timestamptz`.
    #[serde(default)]
    pub utc_naive: bool,
    /// `time_type = "time"`: times of day become Iceberg's `time`, which Athena does not have, instead of strings.
    #[serde(default)]
    pub native_time: bool,
    /// `oneof_case = true`: a Protobuf oneof has a column that names the member that is set.
    #[serde(default)]
    pub oneof_case: bool,
    /// Settings of single fields, by path: `customer.email`; elements of lists and values of maps add no step.
    #[serde(default)]
    pub fields: BTreeMap<String, FieldMapping>,
}

/// What the settings say about one field.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FieldMapping {
    /// The column's type, instead of the one that the contract gives.
    #[serde(default, rename = "type")]
    pub data_type: Option<PrimitiveType>,
    /// The field has no column.
    #[serde(default)]
    pub exclude: bool,
}

impl Mapping {
    /// The column of field `source` below the fields `parent`, for which the contract has the type `natural`; `None`
    /// if the field is excluded.
    ///
    /// # Errors
    /// `Invalid`, naming the field, if the settings ask for a type that `natural` cannot become.
    pub fn column(&self, parent: &[&str], source: &str, natural: ColumnType) -> Result<Option<Column>> {
        let mut path = parent.join(".");
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(source);
        let data_type = match self.fields.get(&path) {
            Some(field) if field.exclude => return Ok(None),
            Some(FieldMapping {
                data_type: Some(wanted),
                ..
            }) => retyped(&path, &natural, wanted)?,
            _ => natural,
        };
        Ok(Some(Column::named(
            source,
            safe_name(source).to_ascii_lowercase(),
            data_type,
        )))
    }

    /// The column type of an instant.
    pub fn instant(&self) -> PrimitiveType {
        if self.utc_naive {
            PrimitiveType::Timestamp
        } else {
            PrimitiveType::Timestamptz
        }
    }

    /// The column type of a time of day.
    pub fn time(&self) -> PrimitiveType {
        if self.native_time {
            PrimitiveType::Time
        } else {
            PrimitiveType::String
        }
    }
}

/// The types that a field may be given by its settings: those whose values convert without loss, or are poison.
fn retyped(path: &str, natural: &ColumnType, wanted: &PrimitiveType) -> Result<ColumnType> {
    use PrimitiveType as P;
    let fits = match natural {
        ColumnType::Primitive(natural) => {
            natural == wanted
                || matches!(
                    (natural, wanted),
                    (P::Decimal { scale: 0, .. }, P::Long)
                        | (P::Timestamptz | P::Timestamp, P::Long)
                        | (P::Int, P::Long)
                        | (P::Float, P::Double)
                        | (P::Int | P::Long | P::Double, P::Decimal { .. })
                        | (P::String, P::Binary)
                )
        }
        _ => false,
    };
    if fits {
        return Ok(ColumnType::Primitive(wanted.clone()));
    }
    Err(Error::new(
        ErrorKind::Invalid,
        "map the source schema to columns",
        format!("field `{path}` is {natural} and cannot be given the type {wanted}"),
    )
    .with_hint("change `type` in the topic's settings of this field"))
}
