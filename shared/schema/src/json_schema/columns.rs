use frazil_core::Result;
use iceberg::spec::PrimitiveType;

use super::domain::{Array, Domain, Number, Object, Rest, Text};
use super::{JsonField, JsonType};
use crate::{Column, ColumnType, Mapping};

/// How to read the root's values, and the columns for them.
pub(super) fn of_root(domain: Domain, mapping: &Mapping) -> Result<(JsonType, Vec<Column>)> {
    let mut chooser = Chooser {
        mapping,
        path: Vec::new(),
    };
    match domain {
        Domain {
            boolean: false,
            number: None,
            string: None,
            array: None,
            object: Some(Object { fields, .. }),
            ..
        } if !fields.is_empty() => {
            let (fields, columns) = chooser.fields(fields)?;
            Ok((JsonType::Object(fields), columns))
        }
        domain => {
            let doc = domain.doc.clone();
            let (data_type, column) = chooser.field("value", domain)?;
            let column = column.map(|column| Column { doc, ..column });
            Ok((data_type, column.into_iter().collect()))
        }
    }
}

struct Chooser<'m> {
    mapping: &'m Mapping,
    path: Vec<String>,
}

impl Chooser<'_> {
    fn fields(&mut self, domains: Vec<(String, Domain)>) -> Result<(Vec<JsonField>, Vec<Column>)> {
        let mut fields = Vec::with_capacity(domains.len());
        let mut columns = Vec::with_capacity(domains.len());
        for (name, domain) in domains {
            let doc = domain.doc.clone();
            let (data_type, column) = self.field(&name, domain)?;
            let hashed = |column: &Column| is_hashed(&column.data_type);
            fields.push(JsonField {
                concealed: data_type == JsonType::Excluded || column.as_ref().is_some_and(hashed),
                name,
                data_type,
            });
            columns.extend(column.map(|column| Column { doc, ..column }));
        }
        Ok((fields, columns))
    }

    fn field(&mut self, name: &str, domain: Domain) -> Result<(JsonType, Option<Column>)> {
        self.path.push(name.to_owned());
        let chosen = self.value(domain);
        self.path.pop();
        let (data_type, Some(natural)) = chosen? else {
            return Ok((JsonType::Null, None));
        };
        let parent: Vec<&str> = self.path.iter().map(String::as_str).collect();
        Ok(match self.mapping.column(&parent, name, natural)? {
            Some(column) => (data_type, Some(column)),
            None => (JsonType::Excluded, None),
        })
    }

    /// How to read the values, and the column type that the contract gives them.
    fn value(&mut self, domain: Domain) -> Result<(JsonType, Option<ColumnType>)> {
        use PrimitiveType as P;
        let Domain {
            boolean,
            number,
            string,
            array,
            object,
            ..
        } = domain;
        let (data_type, primitive) = match (boolean, number, string, array, object) {
            (false, None, None, None, None) => return Ok((JsonType::Null, None)),
            (true, None, None, None, None) => (JsonType::Boolean, P::Boolean),
            (false, Some(number), None, None, None) => match number {
                Number::Double => (JsonType::Number, P::Double),
                Number::Float => (JsonType::Number, P::Float),
                Number::Integer => (JsonType::Integer, P::Long),
                Number::Int => (JsonType::Integer, P::Int),
                Number::Decimal { precision, scale } => {
                    (JsonType::Decimal { scale }, P::Decimal { precision, scale })
                }
                Number::Date => (JsonType::EpochDays, P::Date),
                Number::Time => (JsonType::DayMillis, self.mapping.time()),
                Number::Timestamp => (JsonType::EpochMillis, self.mapping.instant()),
                Number::Mixed => (JsonType::Any, P::String),
            },
            (false, None, Some(text), None, None) => match text {
                Text::Plain => (JsonType::String, P::String),
                Text::DateTime => (JsonType::DateTime, self.mapping.instant()),
                Text::Date => (JsonType::Date, P::Date),
                Text::Time => (JsonType::Time, self.mapping.time()),
                Text::Uuid => (JsonType::Uuid, P::String),
                Text::Base64 => (JsonType::Base64, P::Binary),
            },
            (false, None, None, Some(Array::List(element)), None) => {
                let (element, column) = self.value(*element)?;
                return Ok(match column {
                    Some(column) => (
                        JsonType::List(Box::new(element)),
                        Some(ColumnType::List(Box::new(column))),
                    ),
                    None => (JsonType::Null, None),
                });
            }
            (false, None, None, None, Some(object)) => return self.object(object),
            // An array of anything, or values of several kinds.
            _ => (JsonType::Any, P::String),
        };
        Ok((data_type, Some(ColumnType::Primitive(primitive))))
    }

    fn object(&mut self, object: Object) -> Result<(JsonType, Option<ColumnType>)> {
        if !object.fields.is_empty() {
            let (fields, columns) = self.fields(object.fields)?;
            let column = if columns.is_empty() {
                ColumnType::Primitive(PrimitiveType::Boolean) // present or null: no reader takes an empty struct
            } else {
                ColumnType::Struct(columns)
            };
            return Ok((JsonType::Object(fields), Some(column)));
        }
        let Rest::Values(values) = object.rest else {
            return Ok((JsonType::Any, Some(ColumnType::STRING)));
        };
        let (values, column) = self.value(*values)?;
        Ok(match column {
            Some(column) => (
                JsonType::Map(Box::new(values)),
                Some(ColumnType::Map(Box::new(ColumnType::STRING), Box::new(column))),
            ),
            None => (JsonType::Null, None),
        })
    }
}

/// Whether a column's values, or those of its list or map, are hashes. Fields inside a struct have settings of their own.
fn is_hashed(data_type: &ColumnType) -> bool {
    match data_type {
        ColumnType::Hashed(_) => true,
        ColumnType::List(inner) | ColumnType::Map(_, inner) => is_hashed(inner),
        ColumnType::Primitive(_) | ColumnType::Struct(_) => false,
    }
}
