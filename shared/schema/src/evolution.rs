use std::collections::HashMap;
use std::sync::Arc;

use frazil_core::{Error, ErrorKind, Result, SafeNames};
use iceberg::spec::{
    ListType, MapType, NestedField, NestedFieldRef, PrimitiveType, Schema, StructType, Type,
};

use crate::{Column, ColumnType, FieldMap, FieldPath, KafkaColumns, MAX_NAME_BYTES};

/// What a table's schema has to become before rows of the wanted columns can be written.
#[derive(Debug, Clone, PartialEq)]
pub enum Evolution {
    /// The table has a place for everything.
    Unchanged,
    /// A metadata-only commit is needed first.
    Changed(Box<SchemaChange>),
    /// Some change is not accepted (promise I8). The table stays as it is.
    Refused(Vec<RefusedChange>),
}

/// An accepted change of a table's schema.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaChange {
    /// The new schema. Its schema id is the current one's; the metadata builder gives it the next.
    pub schema: Schema,
    /// The new source field → field id map, to be kept in the ledger.
    pub fields: FieldMap,
    /// The highest field id ever given in the table.
    pub last_column_id: i32,
    /// Source paths of the columns that are new.
    pub added: Vec<String>,
    /// Source paths of the columns that get a wider type.
    pub widened: Vec<String>,
}

/// A change that a table does not accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedChange {
    /// Which of the wanted lists asks for it.
    pub list: usize,
    /// The source path of the field.
    pub field: String,
    /// The type that the table has.
    pub from: String,
    /// The type that the source wants.
    pub to: String,
}

impl RefusedChange {
    /// The change as an error that a person must decide about.
    pub fn to_error(&self) -> Error {
        Self::all_to_error(std::slice::from_ref(self))
    }

    /// All changes as one error. What several writers ask for in the same words is said once.
    pub fn all_to_error(changes: &[Self]) -> Error {
        let mut reasons: Vec<String> = Vec::new();
        for change in changes {
            let reason = format!(
                "{} is {} in the table and {} in the source",
                FieldPath::describe(&change.field),
                change.from,
                change.to
            );
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        Error::new(
            ErrorKind::Suspended,
            "change the table's schema",
            reasons.join(", "),
        )
        .with_code("schema.change_refused")
        .with_hint("let the producer use a new field name, or give the topic a new table")
    }
}

/// Works out the schema that holds every list of wanted columns (one list per writer schema, in the order in
/// which they came) beside Kafka's own columns. Creating a table is evolving from `None`.
///
/// A field is found by its id in `fields`, whatever another engine has called its column since. A field whose
/// column another engine has dropped gets a new column with a new id: ids are never used twice. A wanted type
/// that the column's type holds without loss (an int for a long column: a record of an older schema) changes
/// nothing. Ids of a new table are those that Iceberg's own creation assigns, level by level, so they survive it.
///
/// # Errors
/// `Invalid` if a value field has the name of one of Kafka's own columns.
pub fn evolve(
    current: Option<&Schema>,
    last_column_id: i32,
    fields: &FieldMap,
    wanted: &[&[Column]],
    kafka: &KafkaColumns,
) -> Result<Evolution> {
    let kafka_columns = kafka.columns();
    let mut evolver = Evolver {
        fields: if current.is_some() {
            fields.clone()
        } else {
            FieldMap::default()
        },
        last_column_id: current.map_or(0, |schema| schema.highest_field_id().max(last_column_id)),
        kafka_names: kafka_columns.iter().map(|column| column.name.clone()).collect(),
        list: 0,
        added: Vec::new(),
        widened: Vec::new(),
        refused: Vec::new(),
    };
    let mut columns = current
        .map(|schema| schema.as_struct().fields().to_vec())
        .unwrap_or_default();
    for (list, wanted) in wanted.iter().enumerate() {
        evolver.list = list;
        columns = evolver.merge_struct(&columns, wanted, &FieldPath::value())?;
    }
    evolver.list = wanted.len();
    columns = evolver.merge_struct(&columns, &kafka_columns, &FieldPath::kafka())?;

    if !evolver.refused.is_empty() {
        return Ok(Evolution::Refused(evolver.refused));
    }
    if evolver.added.is_empty() && evolver.widened.is_empty() {
        return Ok(Evolution::Unchanged);
    }
    let Evolver {
        mut fields,
        last_column_id,
        added,
        widened,
        ..
    } = evolver;
    let mut builder = Schema::builder();
    match current {
        Some(schema) => {
            builder = builder
                .with_schema_id(schema.schema_id())
                .with_identifier_field_ids(schema.identifier_field_ids());
        }
        None => {
            let mut renumbering = Renumbering::default();
            columns = renumbering.fields(&columns);
            fields.renumber(|id| renumbering.new_ids.get(&id).copied().unwrap_or(id));
        }
    }
    let schema = builder.with_fields(columns).build().map_err(|error| {
        Error::new(ErrorKind::Internal, "build the table's schema", error.to_string()).with_source(error)
    })?;
    Ok(Evolution::Changed(Box::new(SchemaChange {
        schema,
        fields,
        last_column_id,
        added,
        widened,
    })))
}

struct Evolver {
    fields: FieldMap,
    last_column_id: i32,
    kafka_names: Vec<String>,
    list: usize,
    added: Vec<String>,
    widened: Vec<String>,
    refused: Vec<RefusedChange>,
}

impl Evolver {
    fn merge_struct(
        &mut self,
        current: &[NestedFieldRef],
        wanted: &[Column],
        parent: &FieldPath,
    ) -> Result<Vec<NestedFieldRef>> {
        let mut columns = current.to_vec();
        let mut positions: HashMap<i32, usize> = columns
            .iter()
            .enumerate()
            .map(|(position, field)| (field.id, position))
            .collect();
        let mut names = SafeNames::default();
        for column in &columns {
            names.reserve(column.name.to_ascii_lowercase());
        }
        for column in wanted {
            let path = column.path(parent);
            let position = self.fields.get(&path).and_then(|id| positions.get(&id).copied());
            if let Some(position) = position {
                let field = &columns[position];
                let merged = self.merge_type(&field.field_type, &column.data_type, &path)?;
                if let Some(merged) = merged {
                    let mut field = NestedField::clone(field);
                    *field.field_type = merged;
                    columns[position] = Arc::new(field);
                }
            } else {
                let name = self.name(column, parent, &mut names)?;
                let id = self.next_id()?;
                positions.insert(id, columns.len());
                self.fields.insert(&path, id);
                self.added.push(path.to_string());
                let mut field = NestedField::optional(id, &name, self.new_type(&column.data_type, &path)?);
                field.doc = doc(column, &name);
                columns.push(Arc::new(field));
            }
        }
        Ok(columns)
    }

    fn name(&self, column: &Column, parent: &FieldPath, names: &mut SafeNames) -> Result<String> {
        if parent.is_value_root() && self.kafka_names.contains(&column.name.to_ascii_lowercase()) {
            return Err(Error::new(
                ErrorKind::Invalid,
                "add a column",
                format!(
                    "the value's field `{}` has the name of Kafka's own column `{}`",
                    column.source, column.name
                ),
            )
            .with_code("schema.column_clash")
            .with_hint("rename the field in the producer, or switch that column off for this topic"));
        }
        let key_name = format!("key_{}", column.name);
        // Siblings of a key's field are called like it.
        let is_taken = || {
            names.is_claimed(&column.name.to_ascii_lowercase())
                || self.fields.get(&parent.field(&column.source, None)).is_some()
        };
        let wanted = if column.is_of_key() && parent.is_value_root() && is_taken() {
            &key_name
        } else {
            &column.name
        };
        let name = claim(names, wanted);
        if *parent == FieldPath::kafka() && name != column.name {
            return Err(Error::new(
                ErrorKind::Invalid,
                "add a column",
                format!(
                    "Kafka's own column `{}` has the name of a column that the table already has",
                    column.name
                ),
            )
            .with_code("schema.column_clash")
            .with_hint("switch that column off for this topic, or give the topic a new table"));
        }
        Ok(name)
    }

    /// The type that holds both, or `None` if `current` does already or the change is refused.
    fn merge_type(&mut self, current: &Type, wanted: &ColumnType, path: &FieldPath) -> Result<Option<Type>> {
        Ok(match (current, wanted) {
            (Type::Primitive(PrimitiveType::String), ColumnType::Hashed(_)) => None,
            (Type::Primitive(from), ColumnType::Primitive(to)) => match fit(from, to) {
                Fit::Holds => None,
                Fit::Widens => {
                    self.widened.push(path.to_string());
                    Some(Type::Primitive(to.clone()))
                }
                Fit::Refused => self.refuse(current, wanted, path),
            },
            (Type::Struct(from), ColumnType::Struct(to)) => {
                let merged = self.merge_struct(from.fields(), to, path)?;
                (merged != from.fields()).then(|| Type::Struct(StructType::new(merged)))
            }
            (Type::List(from), ColumnType::List(to)) => self
                .merge_nested(&from.element_field, to, &path.element())?
                .map(|element| Type::List(ListType::new(element))),
            (Type::Map(from), ColumnType::Map(key, value)) => {
                if !same_key(&from.key_field.field_type, key) {
                    return Ok(self.refuse(current, wanted, path));
                }
                self.merge_nested(&from.value_field, value, &path.map_value())?
                    .map(|value| Type::Map(MapType::new(from.key_field.clone(), value)))
            }
            _ => self.refuse(current, wanted, path),
        })
    }

    fn merge_nested(
        &mut self,
        field: &NestedFieldRef,
        wanted: &ColumnType,
        path: &FieldPath,
    ) -> Result<Option<NestedFieldRef>> {
        let merged = self.merge_type(&field.field_type, wanted, path)?;
        Ok(merged.map(|merged| {
            let mut field = NestedField::clone(field);
            *field.field_type = merged;
            Arc::new(field)
        }))
    }

    fn refuse(&mut self, from: &Type, to: &ColumnType, path: &FieldPath) -> Option<Type> {
        self.refused.push(RefusedChange {
            list: self.list,
            field: path.to_string(),
            from: describe(from),
            to: describe_wanted(to),
        });
        None
    }

    fn new_type(&mut self, wanted: &ColumnType, path: &FieldPath) -> Result<Type> {
        Ok(match wanted {
            ColumnType::Primitive(primitive) => Type::Primitive(primitive.clone()),
            ColumnType::Hashed(_) => Type::Primitive(PrimitiveType::String),
            ColumnType::Struct(columns) => {
                let added = self.added.len();
                let merged = self.merge_struct(&[], columns, path)?;
                self.added.truncate(added); // the parent says it
                Type::Struct(StructType::new(merged))
            }
            ColumnType::List(element) => {
                let path = path.element();
                let id = self.mapped_id(&path)?;
                let element = self.new_type(element, &path)?;
                Type::List(ListType::new(Arc::new(NestedField::list_element(
                    id, element, false,
                ))))
            }
            ColumnType::Map(key, value) => {
                let (key_path, value_path) = (path.key(), path.map_value());
                let (key_id, value_id) = (self.mapped_id(&key_path)?, self.mapped_id(&value_path)?);
                let (key, value) = (self.new_type(key, &key_path)?, self.new_type(value, &value_path)?);
                Type::Map(MapType::optional(key_id, key, value_id, value))
            }
        })
    }

    fn mapped_id(&mut self, path: &FieldPath) -> Result<i32> {
        let id = self.next_id()?;
        self.fields.insert(path, id);
        Ok(id)
    }

    fn next_id(&mut self) -> Result<i32> {
        self.last_column_id = self.last_column_id.checked_add(1).ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                "add a column",
                "the table has used up its field ids",
            )
            .with_hint("give the topic a new table")
        })?;
        Ok(self.last_column_id)
    }
}

/// The wanted name, cut to what Glue can hold, or with the first suffix that is free. Names that differ in case only
/// are equal to Athena.
fn claim(names: &mut SafeNames, wanted: &str) -> String {
    /// As long as `_4294967295`.
    const MAX_SUFFIX_BYTES: usize = 11;
    let cut = |len: usize| wanted.get(..len).unwrap_or(wanted);
    for wanted in [cut(MAX_NAME_BYTES), cut(MAX_NAME_BYTES - MAX_SUFFIX_BYTES)] {
        let claimed = names.claim(wanted.to_ascii_lowercase());
        if claimed.len() <= MAX_NAME_BYTES {
            let suffix = claimed.get(wanted.len()..).unwrap_or_default();
            return format!("{wanted}{suffix}");
        }
    }
    wanted.to_owned() // the second try always fits
}

fn doc(column: &Column, name: &str) -> Option<String> {
    let renamed = (name != column.source && !column.source.is_empty())
        .then(|| format!("`{}` in the source", column.source));
    match (&column.doc, renamed) {
        (Some(doc), Some(renamed)) => Some(format!("{doc} ({renamed})")),
        (Some(doc), None) => Some(doc.clone()),
        (None, renamed) => renamed,
    }
}

enum Fit {
    Holds,
    Widens,
    Refused,
}

/// Iceberg spec, Schema Evolution: the promotions that format v2 allows, in both directions.
fn fit(from: &PrimitiveType, to: &PrimitiveType) -> Fit {
    use PrimitiveType::{Decimal, Double, Float, Int, Long};
    match (from, to) {
        (from, to) if from == to => Fit::Holds,
        (Int, Long) | (Float, Double) => Fit::Widens,
        (Long, Int) | (Double, Float) => Fit::Holds,
        (
            Decimal { precision, scale },
            Decimal {
                precision: wanted,
                scale: wanted_scale,
            },
        ) if scale == wanted_scale => {
            if wanted > precision {
                Fit::Widens
            } else {
                Fit::Holds
            }
        }
        _ => Fit::Refused,
    }
}

fn same_key(from: &Type, to: &ColumnType) -> bool {
    matches!((from, to), (Type::Primitive(from), ColumnType::Primitive(to)) if from == to)
}

fn describe(data_type: &Type) -> String {
    match data_type {
        Type::Primitive(primitive) => primitive.to_string(),
        Type::Struct(_) => "a struct".to_owned(),
        Type::List(_) => "a list".to_owned(),
        Type::Map(map) => format!("a map with keys of {}", describe(&map.key_field.field_type)),
    }
}

fn describe_wanted(data_type: &ColumnType) -> String {
    match data_type {
        ColumnType::Primitive(_) | ColumnType::Hashed(_) => data_type.to_string(),
        ColumnType::Struct(_) => "a struct".to_owned(),
        ColumnType::List(_) => "a list".to_owned(),
        ColumnType::Map(key, _) => format!("a map with keys of {}", describe_wanted(key)),
    }
}

/// Numbers fields as iceberg's creation of a table does: a level first, then what is inside each field.
#[derive(Default)]
struct Renumbering {
    last: i32,
    new_ids: HashMap<i32, i32>,
}

impl Renumbering {
    fn fields(&mut self, fields: &[NestedFieldRef]) -> Vec<NestedFieldRef> {
        let level: Vec<NestedField> = fields.iter().map(|field| self.assign(field)).collect();
        level.into_iter().map(|field| self.inside(field)).collect()
    }

    fn assign(&mut self, field: &NestedFieldRef) -> NestedField {
        self.last += 1;
        self.new_ids.insert(field.id, self.last);
        let mut field = NestedField::clone(field);
        field.id = self.last;
        field
    }

    fn inside(&mut self, mut field: NestedField) -> NestedFieldRef {
        let inside = match field.field_type.as_ref() {
            Type::Primitive(primitive) => Type::Primitive(primitive.clone()),
            Type::Struct(inner) => Type::Struct(StructType::new(self.fields(inner.fields()))),
            Type::List(list) => {
                let element = self.assign(&list.element_field);
                Type::List(ListType::new(self.inside(element)))
            }
            Type::Map(map) => {
                let key = self.assign(&map.key_field);
                let key = self.inside(key);
                let value = self.assign(&map.value_field);
                Type::Map(MapType::new(key, self.inside(value)))
            }
        };
        *field.field_type = inside;
        Arc::new(field)
    }
}

#[cfg(test)]
mod tests;
