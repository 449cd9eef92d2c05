use std::sync::Arc;

use frazil_core::{Error, ErrorKind, Result};
use serde_json::Value;

use crate::{Column, Mapping};
use parser::Parser;

mod columns;
mod logical;
mod parser;

/// A schema's text may be this long: registries stop well below it.
pub const MAX_SCHEMA_BYTES: usize = 1 << 20;
/// A schema's text may nest so deep: beyond it serde_json stops, for the sake of the stack. A record in a record takes
/// three levels.
const MAX_JSON_DEPTH: usize = 127;
/// A schema may nest this deep: deeper columns help nobody, and every walk over a schema recurses.
pub const MAX_SCHEMA_DEPTH: usize = 64;
/// A schema may have this many types once references are followed: a few nested records that each name the
/// next twice would otherwise grow without end.
pub const MAX_SCHEMA_TYPES: usize = 20_000;

/// An Avro schema that has written records, with every reference followed and the columns that it asks for.
///
/// The rules are those of the Avro specification 1.12 (“Schema Declaration”, “Names”, “Logical Types”): unknown
/// attributes and logical types that do not fit their type are ignored, with one exception: a decimal that no
/// column can hold is refused. A name may be used before its definition: what a type becomes does not depend on the
/// order of fields.
#[derive(Debug, Clone, PartialEq)]
pub struct AvroSchema {
    name: Option<String>,
    fields: Vec<AvroField>,
    definitions: Arc<[AvroType]>,
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
    /// The topic's settings give it no column: it is read past.
    pub excluded: bool,
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
    /// Blocks of a key and a value: Kafka Connect's form of maps whose keys are no strings, an array of records.
    Entries(Box<(AvroType, AvroType)>),
    /// The index of a branch and its value.
    Union(Vec<AvroField>),
    /// A record inside itself, by its place among the [definitions](AvroSchema::definitions).
    Recursive(usize),
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
    /// Parses a schema that names no types of others, for a topic without settings. See [`compile`](Self::compile).
    ///
    /// # Errors
    /// Those of [`compile`](Self::compile).
    pub fn parse(text: &str) -> Result<Self> {
        Self::compile(text, &[], &Mapping::default())
    }

    /// Parses a schema and makes its columns. `references` are the names and texts of schemas whose types it uses,
    /// in any order. A schema that is not a record becomes a record of one field, `value`: on the wire they are the
    /// same.
    ///
    /// # Errors
    /// `Invalid`, naming the field, if the schema is not Avro, is larger than the bounds of this module, has a decimal
    /// that no column can hold, or cannot become what the mapping asks for.
    pub fn compile(text: &str, references: &[(String, String)], mapping: &Mapping) -> Result<Self> {
        let bytes = text.len() + references.iter().map(|(_, text)| text.len()).sum::<usize>();
        if bytes > MAX_SCHEMA_BYTES {
            let all = if references.is_empty() {
                ""
            } else {
                " with its references"
            };
            return Err(invalid(
                "",
                format!("it is {bytes} bytes long{all}; the limit is {MAX_SCHEMA_BYTES}"),
            ));
        }
        check_nesting(text, "it")?;
        let json = read(text).map_err(|error| invalid("", format!("it is not JSON: {error}")))?;
        let mut others = Vec::with_capacity(references.len());
        for (name, text) in references {
            check_nesting(text, &format!("the schema `{name}` that it refers to"))?;
            let json = read(text).map_err(|error| {
                invalid(
                    "",
                    format!("the schema `{name}` that it refers to is not JSON: {error}"),
                )
            })?;
            others.push(json);
        }
        let mut parser = Parser::new(&json, &others)?;
        let mut fields = match parser.root()? {
            AvroType::Record(fields) => fields,
            data_type => vec![AvroField {
                name: "value".to_owned(),
                doc: None,
                data_type,
                excluded: false,
            }],
        };
        let definitions = parser.definitions()?.into();
        let columns = columns::of_fields(&mut fields, &[], mapping)?;
        Ok(Self {
            name: parser::record_name(&json),
            fields,
            definitions,
            columns,
        })
    }

    /// The full name of the record; none of a schema that is something else.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The record's fields, in the order in which they are on the wire.
    pub fn fields(&self) -> &[AvroField] {
        &self.fields
    }

    /// The records that hold themselves, and those in them. Inside a definition every record is such a reference.
    pub fn definitions(&self) -> &Arc<[AvroType]> {
        &self.definitions
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

/// A schema's text that nests deeper than can be read safely says so, and what helps.
fn check_nesting(text: &str, which: &str) -> Result<()> {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    if deepest <= MAX_JSON_DEPTH {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Invalid,
        "use the Avro schema",
        format!(
            "{which} has braces and brackets {deepest} deep in its text, and {MAX_JSON_DEPTH} are possible: some 42 records \
             defined inside each other"
        ),
    )
    .with_code("avro.schema_too_deep")
    .with_hint("define inner records in schemas of their own, by reference, or beside each other, by name"))
}

/// The JSON of a schema's text.
fn read(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|error| {
        // A bare `string` is a schema too, and some registries hand it out without quotes.
        let word = text.trim();
        let bare = word.bytes().all(|b| b.is_ascii_lowercase()) && !["true", "false", "null"].contains(&word);
        if bare && !word.is_empty() {
            Ok(Value::String(word.to_owned()))
        } else {
            Err(error)
        }
    })
}

#[cfg(test)]
mod tests;
