use frazil_core::{Error, ErrorKind, Result};

use crate::avro::{MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, MAX_SCHEMA_TYPES};
use crate::{Column, Mapping};

mod columns;
mod compiler;
mod document;
mod domain;
mod references;

use compiler::Compiler;
use document::Document;
use references::References;

/// A schema may refer to this many others, to any depth together: registries resolve each with a request.
pub const MAX_REFERENCES: usize = 1_000;
/// A schema and all that it refers to may be this long together.
pub const MAX_REFERENCED_BYTES: usize = 8 << 20;

/// A JSON Schema that has written records, with every reference followed and the columns that it asks for.
///
/// Drafts 4, 6, 7, 2019-09 and 2020-12, told apart by `$schema`; without one it is the newest. Only what says
/// something about types is read: the schema's other assertions (`minimum`, `pattern`, `required` …) are the
/// producer's business. With the annotations of Connect's converter (`connect.type`, `connect.parameters`, `title`).
#[derive(Debug, Clone, PartialEq)]
pub struct JsonSchema {
    title: Option<String>,
    root: JsonType,
    columns: Vec<Column>,
}

/// A field of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonField {
    /// The key, exactly.
    pub name: String,
    /// The type of the value.
    pub data_type: JsonType,
    /// The settings exclude or hash it: its value must not be kept in any text.
    pub concealed: bool,
}

/// How to read a JSON value. Null is always allowed. Those that hold others say nothing about the column's type: it
/// is that of the [`Column`], which the settings may have changed.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonType {
    /// Only ever null, or no value at all: no column.
    Null,
    /// The topic's settings exclude the field: no column, and nothing is missed.
    Excluded,
    /// `true` or `false`.
    Boolean,
    /// A number without a fraction.
    Integer,
    /// Any number.
    Number,
    /// A number, or Connect's base64 of a big-endian two's complement number with this scale.
    Decimal {
        /// How many digits there are after the point.
        scale: u32,
    },
    /// A string.
    String,
    /// A string in base64.
    Base64,
    /// A string: an RFC 3339 date and time, whose offset may be missing.
    DateTime,
    /// A string: an RFC 3339 date.
    Date,
    /// A string: an RFC 3339 time.
    Time,
    /// A string: a UUID.
    Uuid,
    /// An integer: days since 1970-01-01.
    EpochDays,
    /// An integer: milliseconds since midnight.
    DayMillis,
    /// An integer: milliseconds since 1970-01-01T00:00Z.
    EpochMillis,
    /// Fields by name, in the order of the schema. Those that have a column have the columns of the struct, one after
    /// the other; if none has, the column is a boolean: present or null.
    Object(Vec<JsonField>),
    /// Any names, and values of one type.
    Map(Box<JsonType>),
    /// Elements of one type.
    List(Box<JsonType>),
    /// Anything: its JSON text.
    Any,
}

impl JsonType {
    /// Whether values of the type go to a column.
    pub fn has_column(&self) -> bool {
        !matches!(self, Self::Null | Self::Excluded)
    }
}

impl JsonSchema {
    /// Compiles a schema. `references` are the schemas that the registry gives for it, by the names that it gives
    /// them, to any depth. A schema that is not of objects with named fields becomes one column, `value`.
    ///
    /// # Errors
    /// `Invalid`, naming the field, if the schema is not JSON Schema, is larger than the bounds of this module, refers
    /// to what is not there, has a decimal that no column can hold, or the settings ask for what cannot be.
    pub fn compile(text: &str, references: &[(String, String)], mapping: &Mapping) -> Result<Self> {
        if text.len() > MAX_SCHEMA_BYTES {
            return Err(invalid(
                "",
                format!("it is {} bytes long; the limit is {MAX_SCHEMA_BYTES}", text.len()),
            ));
        }
        let bytes = text.len() + references.iter().map(|(_, text)| text.len()).sum::<usize>();
        if references.len() > MAX_REFERENCES || bytes > MAX_REFERENCED_BYTES {
            return Err(invalid(
                "",
                format!(
                    "it has {} references and {bytes} bytes with them; the limits are {MAX_REFERENCES} and \
                     {MAX_REFERENCED_BYTES}",
                    references.len()
                ),
            ));
        }
        let root = parse(text, "it")?;
        let referenced = references
            .iter()
            .map(|(name, text)| Ok((name.as_str(), parse(text, &format!("its reference `{name}`"))?)))
            .collect::<Result<Vec<(&str, Document)>>>()?;
        let mut documents = References::default();
        let place = documents.add("", &root);
        for (name, document) in &referenced {
            documents.add(name, document);
        }
        let domain = Compiler::new(&documents).compile(&place)?;
        let (of_root, columns) = columns::of_root(domain, mapping)?;
        Ok(Self {
            title: root.get("title").and_then(Document::as_str).map(str::to_owned),
            root: of_root,
            columns,
        })
    }

    /// The schema's title, which strategies that name subjects after records take for the name of its type.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// How to read a record's value: an object whose fields have the columns, or the one column's value.
    pub fn root(&self) -> &JsonType {
        &self.root
    }

    /// The columns that the schema asks for.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }
}

fn parse(text: &str, what: &str) -> Result<Document> {
    // serde_json stops at 128 levels.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text).map_err(|error| invalid("", format!("{what} is not JSON: {error}")))
}

fn invalid(path: &str, message: impl std::fmt::Display) -> Error {
    let place = if path.is_empty() {
        "the schema".to_owned()
    } else {
        format!("field `{path}`")
    };
    Error::new(
        ErrorKind::Invalid,
        "use the JSON Schema",
        format!("{place}: {message}"),
    )
    .with_code("json.schema_invalid")
}

#[cfg(test)]
mod tests;
