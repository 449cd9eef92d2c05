use std::collections::BTreeMap;
use std::fmt;

use frazil_core::{Error, ErrorKind, Result, safe_name};
use iceberg::spec::PrimitiveType;
use serde::{Deserialize, Serialize};

use crate::{Column, ColumnType};

/// What a topic's settings say about how source schemas become columns. A part of the table's contract: it is frozen
/// when the table is created.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mapping {
    /// How column names are written, at every level.
    #[serde(default)]
    pub column_case: ColumnCase,
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

/// How column names are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnCase {
    /// `orderid`: what Glue, Athena and Lake Formation agree on.
    #[default]
    Lower,
    /// `orderId`, as the source writes it. Names that differ in case only still count as equal.
    Keep,
    /// `order_id`.
    Snake,
}

impl ColumnCase {
    /// The column name of a field: safe for Glue and Athena.
    pub fn name(self, source: &str) -> String {
        match self {
            Self::Lower => safe_name(source).to_ascii_lowercase(),
            Self::Keep => safe_name(source),
            Self::Snake => snake(source),
        }
    }
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
    /// The column holds a keyed hash of the field's values.
    #[serde(default)]
    pub hash: Option<HashMethod>,
}

/// How values are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HashMethod {
    /// HMAC-SHA256, as 64 hexadecimal digits in lowercase.
    Sha256,
}

impl HashMethod {
    /// The method's name, as settings and source paths write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
        }
    }
}

impl Mapping {
    /// The column of field `source` below the fields `parent`, for which the contract has the type `natural`; `None`
    /// if the field is excluded.
    ///
    /// What the settings say about a list or map holds for its elements or values. A hashed field feeds a column of
    /// its own ([`Column::variant`]): should its setting go, plain values never join the hashed ones.
    ///
    /// # Errors
    /// `Invalid`, naming the field, if the settings ask for what `natural` cannot become.
    pub fn column(&self, parent: &[&str], source: &str, natural: ColumnType) -> Result<Option<Column>> {
        let path = self.path(parent, source);
        let path = path.as_str();
        self.reaches_inside(path, &natural)?;
        let mut column = Column::named(source, self.name(source), natural);
        if let Some(field) = self.fields.get(path) {
            if field.exclude {
                return Ok(None);
            }
            if let Some(wanted) = &field.data_type {
                column.data_type = retyped(path, &column.data_type, wanted)?;
            }
            if let Some(method) = field.hash {
                column.data_type = hashed(path, &column.data_type)?;
                column.variant = Some(method.as_str());
            }
        }
        Ok(Some(column))
    }

    /// What the settings say about the field `source` below the fields `parent`.
    pub fn field(&self, parent: &[&str], source: &str) -> Option<&FieldMapping> {
        self.fields.get(&self.path(parent, source))
    }

    /// Checks the settings of a topic whose columns come from what arrives. JSON has neither dates nor integers of 32
    /// bits: only the types that inference makes itself, and decimals, can be asked for.
    ///
    /// # Errors
    /// `Invalid`, naming the field.
    pub fn check_inferred(&self) -> Result<()> {
        use PrimitiveType as P;
        for (path, field) in &self.fields {
            match &field.data_type {
                None | Some(P::Boolean | P::Long | P::Double | P::String | P::Decimal { .. }) => {}
                Some(other) => {
                    return Err(refused(format!(
                        "field `{path}` of inferred JSON cannot be given the type {other}"
                    ))
                    .with_hint(
                        "possible are boolean, long, double, decimal and string; a JSON Schema has more",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether the field `source` below the fields `parent` has no column.
    pub fn excludes(&self, parent: &[&str], source: &str) -> bool {
        !self.fields.is_empty()
            && self
                .fields
                .get(&self.path(parent, source))
                .is_some_and(|field| field.exclude)
    }

    /// The column name of a field: safe for Glue and Athena, in the case that the settings ask for.
    pub fn name(&self, source: &str) -> String {
        self.column_case.name(source)
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

    /// The paths in the settings that concern no field of these schemas, of which `compile` makes columns under other
    /// settings. For a check before anything runs: when records arrive, such a setting is no error.
    ///
    /// # Errors
    /// Those of `compile`.
    pub fn unused<S>(
        &self,
        schemas: &[S],
        compile: impl Fn(&S, &Self) -> Result<Vec<Column>>,
    ) -> Result<Vec<&str>> {
        let without = Self {
            fields: BTreeMap::new(),
            ..self.clone()
        };
        let mut unused: Vec<&str> = self.fields.keys().map(String::as_str).collect();
        for schema in schemas {
            let columns = compile(schema, &without)?;
            let mut still = Vec::with_capacity(unused.len());
            for path in unused {
                let exclude = FieldMapping {
                    exclude: true,
                    ..FieldMapping::default()
                };
                let excluding = Self {
                    fields: BTreeMap::from([(path.to_owned(), exclude)]),
                    ..without.clone()
                };
                // A setting that reaches inside a text is an error of its own, and about a field that exists.
                if compile(schema, &excluding).is_ok_and(|others| others == columns) {
                    still.push(path);
                }
            }
            unused = still;
        }
        Ok(unused)
    }

    fn path(&self, parent: &[&str], source: &str) -> String {
        let mut path = parent.join(".");
        if !parent.is_empty() {
            path.push('.');
        }
        path.push_str(source);
        path
    }

    /// Nested fields that became one text cannot be excluded or hashed any more: nobody may believe that they are.
    fn reaches_inside(&self, path: &str, natural: &ColumnType) -> Result<()> {
        if self.fields.is_empty() || *innermost(natural) != ColumnType::STRING {
            return Ok(());
        }
        let prefix = format!("{path}.");
        match self.fields.range(prefix.clone()..).next() {
            Some((inside, _)) if inside.starts_with(&prefix) => Err(refused(format!(
                "field `{path}` becomes one string, and the settings name `{inside}` inside it"
            ))
            .with_hint(format!("exclude or hash `{path}` as a whole"))),
            _ => Ok(()),
        }
    }
}

/// The type inside lists and maps.
fn innermost(data_type: &ColumnType) -> &ColumnType {
    match data_type {
        ColumnType::List(inner) | ColumnType::Map(_, inner) => innermost(inner),
        other => other,
    }
}

/// The same lists and maps around another type.
fn replaced(data_type: &ColumnType, innermost: ColumnType) -> ColumnType {
    match data_type {
        ColumnType::List(element) => ColumnType::List(Box::new(replaced(element, innermost))),
        ColumnType::Map(key, value) => ColumnType::Map(key.clone(), Box::new(replaced(value, innermost))),
        _ => innermost,
    }
}

/// The types that a field may be given by its settings: those whose values convert without loss, or are poison.
fn retyped(path: &str, natural: &ColumnType, wanted: &PrimitiveType) -> Result<ColumnType> {
    use PrimitiveType as P;
    let inside = innermost(natural);
    let fits = match inside {
        ColumnType::Primitive(natural) => {
            natural == wanted
                || matches!(
                    (natural, wanted),
                    (P::Decimal { scale: 0, .. }, P::Long)
                        | (P::Timestamptz | P::Timestamp, P::Long)
                        | (P::Int, P::Long)
                        | (P::Float, P::Double)
                        | (
                            P::Int | P::Long | P::Float | P::Double | P::Decimal { .. },
                            P::Decimal { .. }
                        )
                        | (P::String, P::Binary)
                )
        }
        _ => false,
    };
    if fits {
        return Ok(replaced(natural, ColumnType::Primitive(wanted.clone())));
    }
    Err(
        refused(format!("field `{path}` is {inside} and cannot be given the type {wanted}")).with_hint(
            "possible are: int as long, float as double, any number as decimal, an instant or a decimal of scale 0 \
             as long, string as binary",
        ),
    )
}

/// The types that can be hashed: those whose values have exactly one text.
fn hashed(path: &str, natural: &ColumnType) -> Result<ColumnType> {
    use PrimitiveType as P;
    match innermost(natural) {
        ColumnType::Primitive(P::Float | P::Double) => Err(refused(format!(
            "field `{path}` is a binary fraction, which has no text of its own to hash"
        ))
        .with_hint("give it a decimal type as well, or exclude it")),
        ColumnType::Primitive(inside) => Ok(replaced(natural, ColumnType::Hashed(inside.clone()))),
        inside => Err(refused(format!(
            "field `{path}` is {inside}, and only single values are hashed"
        ))
        .with_hint("name the fields inside it, or exclude it")),
    }
}

fn refused(message: impl fmt::Display) -> Error {
    Error::new(
        ErrorKind::Invalid,
        "map the source schema to columns",
        message.to_string(),
    )
    .with_code("schema.setting_refused")
}

/// `orderId` and `OrderID` as `order_id`, `HTTPServer2` as `http_server2`.
fn snake(source: &str) -> String {
    let chars: Vec<char> = source.chars().collect();
    let mut name = String::with_capacity(source.len() + 4);
    for (index, c) in chars.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| chars.get(index));
        let after = chars.get(index + 1);
        let starts_word = c.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_numeric()
                    || (before.is_uppercase() && after.is_some_and(|after| after.is_lowercase()))
            });
        if starts_word {
            name.push('_');
        }
        name.push(*c);
    }
    safe_name(&name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
