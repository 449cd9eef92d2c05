use std::collections::HashMap;

use frazil_core::Result;
use serde_json::{Map, Value};

use super::{AvroField, AvroType, MAX_SCHEMA_DEPTH, MAX_SCHEMA_TYPES, invalid, logical};

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

/// Follows the names of one schema. Definitions are found first, so that a type is the same wherever it is named.
pub(super) struct Parser<'a> {
    root: &'a Value,
    names: HashMap<String, Definition<'a>>,
    /// The records around the place where the parser is: a reference to one of them is recursive.
    around: Vec<String>,
    /// The names of records that are kept as definitions.
    recursive: Vec<String>,
    /// A definition is being parsed, in which every record is a reference.
    in_definition: bool,
    types: usize,
}

#[derive(Debug, Clone, Copy)]
struct Definition<'a> {
    object: &'a Map<String, Value>,
    /// Which of the texts it stands in.
    text: usize,
}

impl<'a> Parser<'a> {
    /// Finds the definitions in a schema and in those that it refers to.
    pub(super) fn new(root: &'a Value, references: &'a [Value]) -> Result<Self> {
        let mut parser = Self {
            root,
            names: HashMap::new(),
            around: Vec::new(),
            recursive: Vec::new(),
            in_definition: false,
            types: 0,
        };
        for (text, json) in references.iter().chain([root]).enumerate() {
            parser.collect(json, text, &Place::root())?;
        }
        Ok(parser)
    }

    /// The schema's type, with every reference followed.
    pub(super) fn root(&mut self) -> Result<AvroType> {
        self.parse(self.root, &Place::root())
    }

    /// The records that [`AvroType::Recursive`] refers to, those inside them included.
    pub(super) fn definitions(mut self) -> Result<Vec<AvroType>> {
        self.in_definition = true;
        let mut definitions = Vec::new();
        while let Some(name) = self.recursive.get(definitions.len()).cloned() {
            let Some(Definition { object, .. }) = self.names.get(&name).copied() else {
                break;
            };
            definitions.push(self.record(object, namespace(&name), &Place::root())?);
        }
        Ok(definitions)
    }

    /// Notes every definition inside `json`. What is wrong otherwise comes to light when it is parsed.
    fn collect(&mut self, json: &'a Value, text: usize, place: &Place) -> Result<()> {
        match json {
            Value::Array(branches) => {
                for branch in branches {
                    self.collect(branch, text, &place.inside("", &place.namespace))?;
                }
            }
            Value::Object(object) => match object.get("type") {
                Some(Value::String(kind)) => match kind.as_str() {
                    "record" | "error" | "enum" | "fixed" => self.collect_named(object, text, place)?,
                    "array" | "map" => {
                        let inner = object.get(if kind == "array" { "items" } else { "values" });
                        if let Some(inner) = inner {
                            self.collect(inner, text, &place.inside("[]", &place.namespace))?;
                        }
                    }
                    _ => {}
                },
                Some(inner) => self.collect(inner, text, &place.inside("", &place.namespace))?,
                None => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn collect_named(&mut self, object: &'a Map<String, Value>, text: usize, place: &Place) -> Result<()> {
        let Some(full) = defined_name(object, &place.namespace) else {
            return Ok(());
        };
        let definition = Definition { object, text };
        if let Some(other) = self.names.insert(full.clone(), definition)
            // Two of the texts may bring the same type along.
            && (other.text == text || other.object != object)
        {
            return Err(invalid(&place.path, format!("type `{full}` is defined twice")));
        }
        let fields = object.get("fields").and_then(Value::as_array);
        for field in fields.into_iter().flatten() {
            let name = field.get("name").and_then(Value::as_str).unwrap_or_default();
            if let Some(json) = field.get("type") {
                self.collect(json, text, &place.inside(name, namespace(&full)))?;
            }
        }
        Ok(())
    }

    fn parse(&mut self, json: &'a Value, place: &Place) -> Result<AvroType> {
        self.types += 1;
        self.within_bounds(place)?;
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
            if let Some(Definition { object, .. }) = self.names.get(&candidate).copied() {
                return self.define(&candidate, object, place);
            }
        }
        Err(invalid(&place.path, format!("type `{name}` is not defined"))
            .with_hint("types of other subjects must be among the schema's references"))
    }

    fn within_bounds(&self, place: &Place) -> Result<()> {
        if self.types > MAX_SCHEMA_TYPES {
            return Err(invalid(
                &place.path,
                format!("the schema has more than {MAX_SCHEMA_TYPES} types"),
            ));
        }
        if place.depth > MAX_SCHEMA_DEPTH {
            return Err(invalid(
                &place.path,
                format!("it is nested more than {MAX_SCHEMA_DEPTH} levels deep"),
            ));
        }
        Ok(())
    }

    fn union(&mut self, branches: &'a [Value], place: &Place) -> Result<AvroType> {
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
                excluded: false,
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

    fn object(&mut self, object: &'a Map<String, Value>, place: &Place) -> Result<AvroType> {
        match object.get("type") {
            Some(Value::String(name)) => match name.as_str() {
                "record" | "error" | "enum" | "fixed" => {
                    let name = text(object, "name", place)?;
                    let full = defined_name(object, &place.namespace).unwrap_or_else(|| name.to_owned());
                    self.define(&full, object, place)
                }
                "array" => {
                    let items = attribute(object, "items", place)?;
                    let items_type = self.parse(items, &place.inside("[]", &place.namespace))?;
                    Ok(self.array_of(items, items_type, &place.namespace))
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

    /// An array; a map if its items are Kafka Connect's `MapEntry` (Confluent's AvroData, `isMapEntry`) and the keys
    /// are such as a map can have.
    fn array_of(&self, items: &'a Value, items_type: AvroType, enclosing: &str) -> AvroType {
        let AvroType::Record(mut fields) = items_type else {
            return AvroType::Array(Box::new(items_type));
        };
        let (name, object) = match items {
            Value::String(name) => {
                let full = full_name(name, enclosing);
                let object = self.names.get(&full).or(self.names.get(name)).map(|of| of.object);
                (full, object)
            }
            Value::Object(object) => (defined_name(object, enclosing).unwrap_or_default(), Some(object)),
            _ => (String::new(), None),
        };
        let marked = object
            .and_then(|object| object.get("connect.internal.type"))
            .is_some_and(|mark| mark == "MapEntry");
        let is_entry = marked || name == "io.confluent.connect.avro.MapEntry";
        match fields.as_mut_slice() {
            [key, value]
                if is_entry
                    && key.name == "key"
                    && value.name == "value"
                    && key.data_type.is_scalar()
                    && value.data_type.has_column() =>
            {
                let key = std::mem::replace(&mut key.data_type, AvroType::Null);
                let value = std::mem::replace(&mut value.data_type, AvroType::Null);
                AvroType::Entries(Box::new((key, value)))
            }
            _ => AvroType::Array(Box::new(AvroType::Record(fields))),
        }
    }

    /// What a definition becomes at this place.
    fn define(&mut self, full: &str, object: &'a Map<String, Value>, place: &Place) -> Result<AvroType> {
        let is_record = !matches!(object.get("type").and_then(Value::as_str), Some("enum" | "fixed"));
        if is_record && (self.in_definition || self.around.iter().any(|name| name == full)) {
            let known = self.recursive.iter().position(|name| name == full);
            return Ok(AvroType::Recursive(known.unwrap_or_else(|| {
                self.recursive.push(full.to_owned());
                self.recursive.len() - 1
            })));
        }
        self.around.push(full.to_owned());
        let parsed = self.definition(object, namespace(full), place);
        self.around.pop();
        parsed
    }

    fn definition(
        &mut self,
        object: &'a Map<String, Value>,
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

    fn record(&mut self, object: &'a Map<String, Value>, namespace: &str, place: &Place) -> Result<AvroType> {
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
                excluded: false,
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

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() {
        name.to_owned()
    } else {
        format!("{namespace}.{name}")
    }
}

/// The full name of a schema that is a record.
pub(super) fn record_name(json: &Value) -> Option<String> {
    let object = json.as_object()?;
    match object.get("type")? {
        Value::String(name) if name == "record" => defined_name(object, ""),
        inner @ Value::Object(_) => record_name(inner),
        _ => None,
    }
}

/// The full name that a definition gives to its type.
fn defined_name(object: &Map<String, Value>, enclosing: &str) -> Option<String> {
    let name = object.get("name").and_then(Value::as_str)?;
    let namespace = object.get("namespace").and_then(Value::as_str);
    Some(full_name(name, namespace.unwrap_or(enclosing)))
}

/// The namespace of a full name.
fn namespace(full: &str) -> &str {
    full.rsplit_once('.').map_or("", |(namespace, _)| namespace)
}

/// The short and full name of a union's branch.
fn branch_name(branch: &Value, enclosing: &str) -> (String, String) {
    let full = match branch {
        Value::String(name) if primitive(name).is_some() => name.clone(),
        Value::String(name) => full_name(name, enclosing),
        Value::Array(_) => "union".to_owned(),
        Value::Object(object) => match object.get("type").and_then(Value::as_str) {
            Some("record" | "error" | "enum" | "fixed") => {
                defined_name(object, enclosing).unwrap_or_default()
            }
            Some(name) if primitive(name).is_some() || matches!(name, "array" | "map") => name.to_owned(),
            Some(name) => full_name(name, enclosing),
            None => object
                .get("type")
                .map_or(String::new(), |inner| branch_name(inner, enclosing).1),
        },
        _ => String::new(),
    };
    let short = full.rsplit('.').next().unwrap_or(&full).to_owned();
    (short, full)
}

fn attribute<'v>(object: &'v Map<String, Value>, name: &str, place: &Place) -> Result<&'v Value> {
    object
        .get(name)
        .ok_or_else(|| invalid(&place.path, format!("`{name}` is missing")))
}

fn text<'v>(object: &'v Map<String, Value>, name: &str, place: &Place) -> Result<&'v str> {
    attribute(object, name, place)?
        .as_str()
        .ok_or_else(|| invalid(&place.path, format!("`{name}` is not a string")))
}

fn array<'v>(object: &'v Map<String, Value>, name: &str, place: &Place) -> Result<&'v [Value]> {
    match attribute(object, name, place)? {
        Value::Array(items) => Ok(items),
        _ => Err(invalid(&place.path, format!("`{name}` is not an array"))),
    }
}
