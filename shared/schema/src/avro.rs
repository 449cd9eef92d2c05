use std::collections::HashMap;

use frazil_core::{Error, ErrorKind, Result};
use serde_json::{Map, Value};

use crate::Column;

mod columns;
mod logical;

/// A schema's text may be this long: registries stop well below it.
pub const MAX_SCHEMA_BYTES: usize = 1 << 20;
/// A schema may nest this deep: deeper columns help nobody, and every walk over a schema recurses.
pub const MAX_SCHEMA_DEPTH: usize = 64;
/// A schema may have this many types once references are followed: a few nested records that each name the
/// next twice would otherwise grow without end.
pub const MAX_SCHEMA_TYPES: usize = 20_000;

/// An Avro schema that has written records, with every reference followed and the columns that it asks for.
///
/// The rules are those of the Avro specification 1.12 (“Schema Declaration”, “Names”, “Logical Types”): unknown
/// attributes and logical types that do not fit their type are ignored, with one exception: a decimal that no
/// column can hold is refused.
#[derive(Debug, Clone, PartialEq)]
pub struct AvroSchema {
    fields: Vec<AvroField>,
    columns: Vec<Column>,
}

/// A field of a record, or a branch of a union.
#[derive(Debug, Clone, PartialEq)]
pub struct AvroField {
    /// The field's name; for a branch of a union the name of its column.
    pub name: String,
    /// The field's `doc`.
    pub doc: Option<String>,
    /// The field's type.
    pub data_type: AvroType,
}

/// A type in an [`AvroSchema`], logical types included.
#[derive(Debug, Clone, PartialEq)]
pub enum AvroType {
    /// Always null: no bytes, no column.
    Null,
    /// One byte, 0 or 1.
    Boolean,
    /// A zigzag varint of 32 bits.
    Int,
    /// A zigzag varint of 64 bits.
    Long,
    /// IEEE 754, 4 bytes.
    Float,
    /// IEEE 754, 8 bytes.
    Double,
    /// A length and bytes.
    Bytes,
    /// A length and UTF-8.
    String,
    /// So many bytes.
    Fixed(usize),
    /// The index of a symbol.
    Enum(Vec<String>),
    /// A big-endian two's complement number, on bytes or on a fixed of `size`.
    Decimal {
        /// 1 to 38.
        precision: u32,
        /// 0 to `precision`.
        scale: u32,
        /// The size of the fixed; `None` on bytes.
        size: Option<usize>,
    },
    /// Days since 1970-01-01, an int.
    Date,
    /// Milliseconds since midnight, an int.
    TimeMillis,
    /// Microseconds since midnight, a long.
    TimeMicros,
    /// A long since 1970-01-01T00:00, of UTC or of no zone.
    Timestamp {
        /// What the long counts.
        unit: TimestampUnit,
        /// Whether it is an instant (`timestamp-*`, not `local-timestamp-*`).
        utc: bool,
    },
    /// A UUID as a string.
    Uuid,
    /// A UUID as 16 bytes.
    UuidBytes,
    /// Months, days and milliseconds: 12 bytes.
    Duration,
    /// Fields, one after the other.
    Record(Vec<AvroField>),
    /// Blocks of items.
    Array(Box<AvroType>),
    /// Blocks of a string and a value.
    Map(Box<AvroType>),
    /// The index of a branch and its value.
    Union(Vec<AvroField>),
}

/// What an Avro timestamp counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampUnit {
    /// Milliseconds.
    Millis,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
}

impl AvroSchema {
    /// Parses a schema. A schema that is not a record becomes a record of one field, `value`: on the wire they
    /// are the same.
    ///
    /// # Errors
    /// `Invalid`, naming the field, if the schema is not Avro, is larger than the bounds of this module, refers to
    /// itself, or has a decimal that no column can hold.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > MAX_SCHEMA_BYTES {
            return Err(invalid(
                "",
                format!("it is {} bytes long; the limit is {MAX_SCHEMA_BYTES}", text.len()),
            ));
        }
        let json: Value = serde_json::from_str(text).or_else(|error| {
            // A bare `string` is a schema too, and some registries hand it out without quotes.
            let word = text.trim();
            let bare =
                word.bytes().all(|b| b.is_ascii_lowercase()) && !["true", "false", "null"].contains(&word);
            if bare && !word.is_empty() {
                Ok(Value::String(word.to_owned()))
            } else {
                Err(invalid("", format!("it is not JSON: {error}")))
            }
        })?;
        let mut parser = Parser::default();
        let fields = match parser.parse(&json, &Place::root())? {
            AvroType::Record(fields) => fields,
            data_type => vec![AvroField {
                name: "value".to_owned(),
                doc: None,
                data_type,
            }],
        };
        let columns = columns::of_fields(&fields);
        Ok(Self { fields, columns })
    }

    /// The record's fields, in the order in which they are on the wire.
    pub fn fields(&self) -> &[AvroField] {
        &self.fields
    }

    /// The columns that the schema asks for, one for each field that has any.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }
}

pub(crate) fn invalid(path: &str, message: impl std::fmt::Display) -> Error {
    let place = if path.is_empty() {
        "the schema".to_owned()
    } else {
        format!("field `{path}`")
    };
    Error::new(
        ErrorKind::Invalid,
        "use the Avro schema",
        format!("{place}: {message}"),
    )
    .with_code("avro.schema_invalid")
}

/// Where the parser is: for messages, for resolving names, and for the bound on depth.
struct Place {
    path: String,
    namespace: String,
    depth: usize,
}

impl Place {
    fn root() -> Self {
        Self {
            path: String::new(),
            namespace: String::new(),
            depth: 0,
        }
    }

    fn inside(&self, step: &str, namespace: &str) -> Self {
        let dot = if self.path.is_empty() || step.is_empty() || step == "[]" {
            ""
        } else {
            "."
        };
        Self {
            path: format!("{}{dot}{step}", self.path),
            namespace: namespace.to_owned(),
            depth: self.depth + 1,
        }
    }
}

#[derive(Default)]
struct Parser {
    /// `None` while the definition is being parsed: a reference to it is recursive.
    names: HashMap<String, Option<AvroType>>,
    types: usize,
}

impl Parser {
    fn parse(&mut self, json: &Value, place: &Place) -> Result<AvroType> {
        self.types += 1;
        self.within_bounds(place, 0)?;
        match json {
            Value::String(name) => self.named(name, place),
            Value::Array(branches) => self.union(branches, place),
            Value::Object(object) => self.object(object, place),
            other => Err(invalid(&place.path, format!("`{other}` is not a type"))),
        }
    }

    fn named(&mut self, name: &str, place: &Place) -> Result<AvroType> {
        if let Some(primitive) = primitive(name) {
            return Ok(primitive);
        }
        // As written if it has a namespace, else in the enclosing one, else in none.
        for candidate in [full_name(name, &place.namespace), name.to_owned()] {
            match self.names.get(&candidate) {
                Some(None) => {
                    return Err(
                        invalid(&place.path, format!("type `{candidate}` contains itself"))
                            .with_hint("leave the field out of the schema, or write it as a string of JSON"),
                    );
                }
                Some(Some(defined)) => {
                    let (types, depth) = size(defined);
                    let defined = defined.clone();
                    self.types += types;
                    self.within_bounds(place, depth)?;
                    return Ok(defined);
                }
                None => {}
            }
        }
        Err(invalid(&place.path, format!("type `{name}` is not defined"))
            .with_hint("types of other subjects must be inlined in this schema"))
    }

    fn within_bounds(&self, place: &Place, further: usize) -> Result<()> {
        if self.types > MAX_SCHEMA_TYPES {
            return Err(invalid(
                &place.path,
                format!("the schema has more than {MAX_SCHEMA_TYPES} types"),
            ));
        }
        if place.depth + further > MAX_SCHEMA_DEPTH {
            return Err(invalid(
                &place.path,
                format!("it is nested more than {MAX_SCHEMA_DEPTH} levels deep"),
            ));
        }
        Ok(())
    }

    fn union(&mut self, branches: &[Value], place: &Place) -> Result<AvroType> {
        let mut parsed: Vec<AvroField> = Vec::with_capacity(branches.len());
        let mut full_names: Vec<String> = Vec::with_capacity(branches.len());
        for branch in branches {
            let (short, full) = branch_name(branch, &place.namespace);
            if full_names.contains(&full) || short == "union" {
                return Err(invalid(
                    &place.path,
                    format!("the union has two branches of type `{full}`"),
                ));
            }
            let data_type = self.parse(branch, &place.inside("", &place.namespace))?;
            parsed.push(AvroField {
                name: short,
                doc: None,
                data_type,
            });
            full_names.push(full);
        }
        // Every one of those that clash, so that the order of branches does not matter.
        let short: Vec<String> = parsed
            .iter()
            .map(|branch| branch.name.to_ascii_lowercase())
            .collect();
        for (index, branch) in parsed.iter_mut().enumerate() {
            if short.iter().filter(|other| **other == short[index]).count() > 1 {
                branch.name = full_names[index].replace('.', "_");
            }
        }
        Ok(AvroType::Union(parsed))
    }

    fn object(&mut self, object: &Map<String, Value>, place: &Place) -> Result<AvroType> {
        match object.get("type") {
            Some(Value::String(name)) => match name.as_str() {
                "record" | "error" | "enum" | "fixed" => self.define(object, place),
                "array" => {
                    let items = attribute(object, "items", place)?;
                    Ok(AvroType::Array(Box::new(
                        self.parse(items, &place.inside("[]", &place.namespace))?,
                    )))
                }
                "map" => {
                    let values = attribute(object, "values", place)?;
                    Ok(AvroType::Map(Box::new(
                        self.parse(values, &place.inside("[]", &place.namespace))?,
                    )))
                }
                name => {
                    let base = self.named(name, place)?;
                    logical::apply(base, object, &place.path)
                }
            },
            // {"type": {"type": "string"}}: some generators nest needlessly.
            Some(inner) => self.parse(inner, &place.inside("", &place.namespace)),
            None => Err(invalid(&place.path, "a type has no `type`")),
        }
    }

    fn define(&mut self, object: &Map<String, Value>, place: &Place) -> Result<AvroType> {
        let name = text(object, "name", place)?;
        let enclosing = object
            .get("namespace")
            .and_then(Value::as_str)
            .unwrap_or(&place.namespace);
        let full = full_name(name, enclosing);
        let namespace = full
            .rsplit_once('.')
            .map_or("", |(namespace, _)| namespace)
            .to_owned();
        if self.names.contains_key(&full) {
            return Err(invalid(&place.path, format!("type `{full}` is defined twice")));
        }
        self.names.insert(full.clone(), None);
        let parsed = self.definition(object, &namespace, place)?;
        self.names.insert(full, Some(parsed.clone()));
        Ok(parsed)
    }

    fn definition(
        &mut self,
        object: &Map<String, Value>,
        namespace: &str,
        place: &Place,
    ) -> Result<AvroType> {
        match object.get("type").and_then(Value::as_str) {
            Some("enum") => {
                let symbols = array(object, "symbols", place)?;
                let symbols: Option<Vec<String>> = symbols
                    .iter()
                    .map(|symbol| symbol.as_str().map(str::to_owned))
                    .collect();
                symbols
                    .map(AvroType::Enum)
                    .ok_or_else(|| invalid(&place.path, "an enum symbol is not a string"))
            }
            Some("fixed") => {
                let size = object
                    .get("size")
                    .and_then(Value::as_u64)
                    .and_then(|size| i32::try_from(size).ok());
                let size =
                    size.ok_or_else(|| invalid(&place.path, "a fixed needs a `size` of 0 to 2147483647"))?;
                let base = AvroType::Fixed(usize::try_from(size).unwrap_or_default());
                logical::apply(base, object, &place.path)
            }
            _ => self.record(object, namespace, place),
        }
    }

    fn record(&mut self, object: &Map<String, Value>, namespace: &str, place: &Place) -> Result<AvroType> {
        let mut fields: Vec<AvroField> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for field in array(object, "fields", place)? {
            let Value::Object(field) = field else {
                return Err(invalid(&place.path, "a field is not an object"));
            };
            let name = text(field, "name", place)?;
            let inside = place.inside(name, namespace);
            if !seen.insert(name) {
                return Err(invalid(&inside.path, "the record has two fields of this name"));
            }
            let json = attribute(field, "type", &inside)?;
            let data_type = self.parse(json, &inside)?;
            let doc = field.get("doc").and_then(Value::as_str).map(str::to_owned);
            fields.push(AvroField {
                name: name.to_owned(),
                doc,
                data_type,
            });
        }
        Ok(AvroType::Record(fields))
    }
}

fn primitive(name: &str) -> Option<AvroType> {
    Some(match name {
        "null" => AvroType::Null,
        "boolean" => AvroType::Boolean,
        "int" => AvroType::Int,
        "long" => AvroType::Long,
        "float" => AvroType::Float,
        "double" => AvroType::Double,
        "bytes" => AvroType::Bytes,
        "string" => AvroType::String,
        _ => return None,
    })
}

/// How many types there are in a type, and how deep they go.
fn size(data_type: &AvroType) -> (usize, usize) {
    let inner: Vec<(usize, usize)> = match data_type {
        AvroType::Record(fields) | AvroType::Union(fields) => {
            fields.iter().map(|field| size(&field.data_type)).collect()
        }
        AvroType::Array(inner) | AvroType::Map(inner) => vec![size(inner)],
        _ => Vec::new(),
    };
    let types = inner.iter().map(|(types, _)| types).sum::<usize>();
    (
        types + 1,
        inner.iter().map(|(_, depth)| depth + 1).max().unwrap_or(0),
    )
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}.{name}")
    }
}

/// The short and full name of a union's branch.
fn branch_name(branch: &Value, namespace: &str) -> (String, String) {
    let full = match branch {
        Value::String(name) if primitive(name).is_some() => name.clone(),
        Value::String(name) => full_name(name, namespace),
        Value::Array(_) => "union".to_owned(),
        Value::Object(object) => match (object.get("type").and_then(Value::as_str), object.get("name")) {
            (Some("record" | "error" | "enum" | "fixed"), Some(Value::String(name))) => full_name(
                name,
                object
                    .get("namespace")
                    .and_then(Value::as_str)
                    .unwrap_or(namespace),
            ),
            (Some(name), _) => name.to_owned(),
            (None, _) => object
                .get("type")
                .map_or(String::new(), |inner| branch_name(inner, namespace).1),
        },
        _ => String::new(),
    };
    let short = full.rsplit('.').next().unwrap_or(&full).to_owned();
    (short, full)
}

fn attribute<'a>(object: &'a Map<String, Value>, name: &str, place: &Place) -> Result<&'a Value> {
    object
        .get(name)
        .ok_or_else(|| invalid(&place.path, format!("`{name}` is missing")))
}

fn text<'a>(object: &'a Map<String, Value>, name: &str, place: &Place) -> Result<&'a str> {
    attribute(object, name, place)?
        .as_str()
        .ok_or_else(|| invalid(&place.path, format!("`{name}` is not a string")))
}

fn array<'a>(object: &'a Map<String, Value>, name: &str, place: &Place) -> Result<&'a [Value]> {
    match attribute(object, name, place)? {
        Value::Array(items) => Ok(items),
        _ => Err(invalid(&place.path, format!("`{name}` is not an array"))),
    }
}

#[cfg(test)]
mod tests;
