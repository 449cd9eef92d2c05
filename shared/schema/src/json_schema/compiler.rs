use frazil_core::Result;

use super::document::Document;
use super::domain::{Array, Domain, Number, Object, Rest, Text};
use super::references::{Draft, Place, References};
use super::{MAX_SCHEMA_DEPTH, MAX_SCHEMA_TYPES, invalid};

/// Schemas may be applied inside one another (`$ref`, `allOf` …) this often on the way to one value: compiling
/// recurses.
const MAX_APPLIED: usize = 4 * MAX_SCHEMA_DEPTH;

/// Works out which values a schema allows.
pub(super) struct Compiler<'r, 'a> {
    references: &'r References<'a>,
    /// The schemas that are being compiled, by address: one that is met again contains itself.
    open: Vec<*const Document>,
    path: Vec<String>,
    types: usize,
}

impl<'r, 'a> Compiler<'r, 'a> {
    pub(super) fn new(references: &'r References<'a>) -> Self {
        Self {
            references,
            open: Vec::new(),
            path: Vec::new(),
            types: 0,
        }
    }

    /// The values that the schema allows. One that contains itself allows everything there: it becomes text.
    pub(super) fn compile(&mut self, place: &Place<'a>) -> Result<Domain> {
        let schema = match place.schema {
            Document::Boolean(true) => return Ok(Domain::any()),
            Document::Boolean(false) => return Ok(Domain::nothing()),
            Document::Object(_) => place.schema,
            _ => return Err(self.invalid("a schema is an object, `true` or `false`")),
        };
        let address = std::ptr::from_ref(schema);
        if self.open.contains(&address) {
            return Ok(Domain::any());
        }
        self.types += 1;
        if self.types > MAX_SCHEMA_TYPES {
            return Err(self.invalid(format!("the schema has more than {MAX_SCHEMA_TYPES} types")));
        }
        if self.path.len() > MAX_SCHEMA_DEPTH || self.open.len() >= MAX_APPLIED {
            return Err(self.invalid(format!("it is nested more than {MAX_SCHEMA_DEPTH} levels deep")));
        }
        self.open.push(address);
        let domain = self.object(place);
        self.open.pop();
        domain
    }

    fn object(&mut self, place: &Place<'a>) -> Result<Domain> {
        let schema = place.schema;
        let mut domain = Domain::any();
        domain.doc = schema
            .get("description")
            .and_then(Document::as_str)
            .map(str::to_owned);
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(reference) = schema.get(keyword) {
                domain = domain.and(self.reference(reference, place)?);
                if place.draft != Draft::Modern && keyword == "$ref" {
                    return Ok(domain);
                }
            }
        }
        if let Some(kinds) = self.kinds(schema)? {
            domain = domain.and(kinds);
        }
        for keyword in ["enum", "const"] {
            let values = match schema.get(keyword) {
                Some(Document::Array(values)) if keyword == "enum" => values.as_slice(),
                Some(value) if keyword == "const" => std::slice::from_ref(value),
                _ => continue,
            };
            let values = values.iter().map(of_value).reduce(Domain::or);
            domain = domain.and(values.unwrap_or_default());
        }
        if let Some(format) = schema.get("format").and_then(Document::as_str) {
            let text = match format {
                "date-time" => Text::DateTime,
                "date" => Text::Date,
                "time" => Text::Time,
                "uuid" => Text::Uuid,
                _ => Text::Plain,
            };
            domain.string = domain
                .string
                .map(|plain| if text == Text::Plain { plain } else { text });
        }
        self.connect(schema, &mut domain)?;
        if let Some(object) = self.properties(place)? {
            domain = domain.and(Domain {
                object: Some(object),
                ..Domain::any()
            });
        }
        if let Some(array) = self.elements(place)? {
            domain = domain.and(Domain {
                array: Some(array),
                ..Domain::any()
            });
        }
        self.compositions(place, domain)
    }

    fn reference(&mut self, reference: &Document, place: &Place<'a>) -> Result<Domain> {
        let Some(reference) = reference.as_str() else {
            return Err(self.invalid("a `$ref` is not a string"));
        };
        if let Some(target) = self.references.find(reference, place) {
            return self.compile(&target);
        }
        // A schema of schemas: no table wants its fields.
        if reference.starts_with("http://json-schema.org/")
            || reference.starts_with("https://json-schema.org/")
        {
            return Ok(Domain::any());
        }
        Err(self
            .invalid(format!("`$ref` names `{reference}`, which is not there"))
            .with_hint("register the schema as a reference of this one, or put it into `$defs`"))
    }

    /// The kinds that `type` names, or that keywords of one kind imply.
    fn kinds(&self, schema: &Document) -> Result<Option<Domain>> {
        let names = match schema.get("type") {
            Some(name @ Document::String(_)) => std::slice::from_ref(name),
            Some(Document::Array(names)) => names.as_slice(),
            Some(_) => return Err(self.invalid("`type` is neither a name nor a list of names")),
            None => {
                let any = |keywords: &[&str]| keywords.iter().any(|keyword| schema.get(keyword).is_some());
                let object = any(&["properties", "additionalProperties", "patternProperties"]);
                let array = any(&["items", "prefixItems"]);
                return Ok((object || array).then(|| Domain {
                    null: true,
                    object: object.then(Object::any),
                    array: array.then_some(Array::Any),
                    ..Domain::nothing()
                }));
            }
        };
        let mut kinds = Domain::nothing();
        for name in names {
            let any = Domain::any();
            match name.as_str() {
                Some("null") => kinds.null = true,
                Some("boolean") => kinds.boolean = true,
                Some("integer") if kinds.number.is_none() => kinds.number = Some(Number::Integer),
                Some("integer") => {}
                Some("number") => kinds.number = any.number,
                Some("string") => kinds.string = any.string,
                Some("array") => kinds.array = any.array,
                Some("object") => kinds.object = any.object,
                _ => return Err(self.invalid("`type` names what is not a JSON type")),
            }
        }
        Ok(Some(kinds))
    }

    /// What Connect's converter says beside the JSON types (Confluent, `JsonSchemaData`). A decimal's type is always
    /// number there, and by default its values are strings.
    fn connect(&self, schema: &Document, domain: &mut Domain) -> Result<()> {
        let number = match schema.get("connect.type").and_then(Document::as_str) {
            Some("int8" | "int16" | "int32") => Some(Number::Int),
            Some("int64") => Some(Number::Integer),
            Some("float32") => Some(Number::Float),
            Some("float64") => Some(Number::Double),
            Some("bytes") => {
                domain.string = domain.string.map(|_| Text::Base64);
                None
            }
            _ => None,
        };
        if number.is_some() && domain.number.is_some() {
            domain.number = number;
        }
        let title = schema.get("title").and_then(Document::as_str).unwrap_or_default();
        let logical = match title.strip_prefix("org.apache.kafka.connect.data.") {
            Some("Decimal") if domain.number.is_some() || domain.string.is_some() => self.decimal(schema)?,
            Some("Date") if domain.number.is_some() => Number::Date,
            Some("Time") if domain.number.is_some() => Number::Time,
            Some("Timestamp") if domain.number.is_some() => Number::Timestamp,
            _ => return Ok(()),
        };
        *domain = Domain {
            null: domain.null,
            number: Some(logical),
            doc: domain.doc.take(),
            ..Domain::nothing()
        };
        Ok(())
    }

    fn decimal(&self, schema: &Document) -> Result<Number> {
        let parameter = |names: &[&str]| {
            let parameters = schema.get("connect.parameters")?;
            names.iter().find_map(|name| parameters.get(name)?.as_integer())
        };
        let precision = parameter(&["connect.decimal.precision", "precision"]).unwrap_or(38);
        let Some(scale) = parameter(&["scale"]) else {
            return Err(self.invalid("the decimal has no `scale` in `connect.parameters`"));
        };
        match (u32::try_from(precision), u32::try_from(scale)) {
            (Ok(precision @ 1..=38), Ok(scale)) if scale <= precision => {
                Ok(Number::Decimal { precision, scale })
            }
            _ => Err(self
                .invalid(format!("no column can hold decimal({precision}, {scale})"))
                .with_hint("the precision is 1 to 38, and the scale 0 to the precision")),
        }
    }

    fn properties(&mut self, place: &Place<'a>) -> Result<Option<Object>> {
        let schema = place.schema;
        let mut object = Object::any();
        let properties = schema.get("properties");
        if let Some(properties) = properties {
            object.fields = self.fields(properties, place)?;
        }
        let rest = schema.get("additionalProperties");
        let patterns = schema.get("patternProperties").and_then(Document::fields);
        if rest.is_none() && patterns.is_none() {
            return Ok(properties.map(|_| object));
        }
        object.rest = match rest {
            None | Some(Document::Boolean(true)) => Rest::Any,
            Some(Document::Boolean(false)) => Rest::Nothing,
            Some(rest) => self.rest(&place.inside(rest))?,
        };
        for (_, values) in patterns.unwrap_or_default() {
            let values = self.rest(&place.inside(values))?;
            object.rest = match (object.rest, values) {
                (Rest::Any, _) | (_, Rest::Any) => Rest::Any,
                (Rest::Values(a), Rest::Values(b)) => Rest::Values(Box::new(a.or(*b))),
                (Rest::Nothing, rest) | (rest, Rest::Nothing) => rest,
            };
        }
        Ok(Some(object))
    }

    fn rest(&mut self, place: &Place<'a>) -> Result<Rest> {
        let values = self.inside("[]", place)?;
        Ok(if values.is_any() {
            Rest::Any
        } else {
            Rest::Values(Box::new(values))
        })
    }

    /// Fields by name. Connect says their order by itself, since its objects have none.
    fn fields(&mut self, properties: &'a Document, place: &Place<'a>) -> Result<Vec<(String, Domain)>> {
        let Some(properties) = properties.fields() else {
            return Err(self.invalid("`properties` is not an object"));
        };
        let mut ordered: Vec<&(String, Document)> = properties.iter().collect();
        ordered.sort_by_key(|(_, schema)| {
            let index = schema.get("connect.index").and_then(Document::as_integer);
            index.unwrap_or(i64::MAX)
        });
        let mut fields = Vec::with_capacity(ordered.len());
        for (name, schema) in ordered {
            fields.push((name.clone(), self.inside(name, &place.inside(schema))?));
        }
        Ok(fields)
    }

    fn elements(&mut self, place: &Place<'a>) -> Result<Option<Array>> {
        if place.schema.get("prefixItems").is_some() {
            return Ok(Some(Array::Tuple));
        }
        let Some(items) = place.schema.get("items") else {
            return Ok(None);
        };
        if matches!(items, Document::Array(_)) {
            return Ok(Some(Array::Tuple));
        }
        let element = self.inside("[]", &place.inside(items))?;
        Ok((!element.is_any()).then(|| Array::List(Box::new(element))))
    }

    fn inside(&mut self, step: &str, place: &Place<'a>) -> Result<Domain> {
        self.path.push(step.to_owned());
        let domain = self.compile(place);
        self.path.pop();
        domain
    }

    fn compositions(&mut self, place: &Place<'a>, mut domain: Domain) -> Result<Domain> {
        let schema = place.schema;
        for part in self.list(schema, "allOf")? {
            domain = domain.and(self.compile(&place.inside(part))?);
        }
        for keyword in ["anyOf", "oneOf"] {
            let mut union = None;
            for branch in self.list(schema, keyword)? {
                let branch = self.compile(&place.inside(branch))?;
                union = Some(match union {
                    None => branch,
                    Some(union) => Domain::or(union, branch),
                });
            }
            if let Some(union) = union {
                domain = domain.and(union);
            }
        }
        let conditional = ["then", "else"]
            .into_iter()
            .filter_map(|keyword| schema.get(keyword));
        let dependent = schema
            .get("dependentSchemas")
            .and_then(Document::fields)
            .unwrap_or_default();
        // Until draft 7 they shared a keyword with the lists of what is required.
        let dependencies = schema
            .get("dependencies")
            .filter(|_| place.draft != Draft::Modern);
        let dependencies = dependencies.and_then(Document::fields).unwrap_or_default();
        let dependent = dependent.iter().chain(dependencies).map(|(_, part)| part);
        let dependent = dependent.filter(|part| !matches!(part, Document::Array(_)));
        for part in conditional.chain(dependent) {
            let part = self.compile(&place.inside(part))?;
            if let (Some(object), Some(part)) = (&mut domain.object, part.object) {
                object.may_have(part.fields);
            }
        }
        Ok(domain)
    }

    fn list(&self, schema: &'a Document, keyword: &str) -> Result<&'a [Document]> {
        match schema.get(keyword) {
            None => Ok(&[]),
            Some(Document::Array(items)) => Ok(items),
            Some(_) => Err(self.invalid(format!("`{keyword}` is not a list of schemas"))),
        }
    }

    fn invalid(&self, message: impl std::fmt::Display) -> frazil_core::Error {
        let mut path = String::new();
        for step in &self.path {
            if !path.is_empty() && step != "[]" {
                path.push('.');
            }
            path.push_str(step);
        }
        invalid(&path, message)
    }
}

/// Values of one value's kind.
fn of_value(value: &Document) -> Domain {
    let any = Domain::any();
    let nothing = Domain::nothing();
    match value {
        Document::Null => Domain {
            null: true,
            ..nothing
        },
        Document::Boolean(_) => Domain {
            boolean: true,
            ..nothing
        },
        Document::Integer(_) => Domain {
            number: Some(Number::Integer),
            ..nothing
        },
        Document::Number(_) => Domain {
            number: any.number,
            ..nothing
        },
        Document::String(_) => Domain {
            string: any.string,
            ..nothing
        },
        Document::Array(_) => Domain {
            array: any.array,
            ..nothing
        },
        Document::Object(_) => Domain {
            object: any.object,
            ..nothing
        },
    }
}
