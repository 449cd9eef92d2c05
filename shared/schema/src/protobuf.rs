use std::collections::HashMap;
use std::sync::Arc;

use frazil_core::{Error, ErrorKind, Result};

use crate::{Column, MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, Mapping};

mod builtin;
mod columns;
mod compile;
mod options;
mod selector;
mod source;
#[cfg(test)]
mod tests;
mod well_known;

pub use selector::MessageSelector;
pub use well_known::WellKnown;

/// A file may come with this many others: registries know chains of a few dozen, and each import costs a level of
/// the compiler's stack.
pub const MAX_PROTOBUF_FILES: usize = 256;
/// A file and those that came with it may be this long together.
pub const MAX_PROTOBUF_BYTES: usize = 8 * MAX_SCHEMA_BYTES;

/// A compiled `.proto` file: proto2, proto3 or edition 2023.
///
/// Files below `google/protobuf/`, `google/type/` and `confluent/` are built in. Options that matter for the
/// columns or for the wire are read (`features`, `json_name`, `confluent.field_meta`); all others are ignored, and
/// need not be defined.
#[derive(Debug, Clone)]
pub struct ProtobufFile {
    types: Arc<ProtobufTypes>,
    /// The top-level messages of the file itself, in its order.
    messages: Vec<usize>,
}

/// All messages and enums of a file and of what it imports.
#[derive(Debug, Default, PartialEq)]
struct ProtobufTypes {
    messages: Vec<ProtobufMessage>,
    enums: Vec<ProtobufEnum>,
    by_name: HashMap<String, usize>,
}

/// A message that has written records, and the columns that it asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct ProtobufSchema {
    types: Arc<ProtobufTypes>,
    root: usize,
    columns: Vec<Column>,
}

/// A message or group.
#[derive(Debug, Clone, PartialEq)]
pub struct ProtobufMessage {
    /// The full name, such as `shop.Order.Item`.
    pub name: String,
    /// The fields in the order of the file.
    pub fields: Vec<ProtobufField>,
    /// The names of the oneofs, in the order of the file; those that `optional` makes up in proto3 are left out.
    pub oneofs: Vec<String>,
    /// Set if the message is mapped as a value rather than by its fields.
    pub well_known: Option<WellKnown>,
    /// Messages declared inside, in the order of the file.
    nested: Vec<usize>,
    /// Whether it is what a map or a group is made of.
    synthetic: bool,
}

/// A field of a [`ProtobufMessage`].
#[derive(Debug, Clone, PartialEq)]
pub struct ProtobufField {
    /// The name in the file.
    pub name: String,
    /// The name in JSON.
    pub json_name: String,
    /// The number on the wire.
    pub number: u32,
    /// The type of its value or values.
    pub kind: ProtobufKind,
    /// How often it occurs, and what it is when it does not.
    pub cardinality: ProtobufCardinality,
    /// The oneof that it belongs to, by index.
    pub oneof: Option<usize>,
    /// The comment before it, or the `doc` of its `confluent.field_meta`.
    pub doc: Option<String>,
    /// Precision and scale that its `confluent.field_meta` gives a `confluent.type.Decimal`.
    pub decimal: Option<(u32, u32)>,
}

/// How often a field occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtobufCardinality {
    /// Once; absent means the type's default value.
    Implicit,
    /// At most once; absent means unset.
    Explicit,
    /// Any number of times. Packed or not: readers take both.
    Repeated,
    /// Any number of times, as entries of fields 1, the key, and 2, the value.
    Map,
}

/// The type of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // named after Protobuf's own types
pub enum ProtobufKind {
    Double,
    Float,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Sint32,
    Sint64,
    Fixed32,
    Fixed64,
    Sfixed32,
    Sfixed64,
    Bool,
    String,
    Bytes,
    /// The index of the enum.
    Enum(usize),
    /// The index of the message.
    Message(usize),
    /// The index of the message, which lies between two tags: a group, or `DELIMITED` in an edition.
    Group(usize),
}

impl ProtobufKind {
    /// The index of the message, if it is one.
    pub fn message(self) -> Option<usize> {
        match self {
            Self::Message(index) | Self::Group(index) => Some(index),
            _ => None,
        }
    }
}

/// An enum.
#[derive(Debug, Clone, PartialEq)]
pub struct ProtobufEnum {
    /// The full name.
    pub name: String,
    /// Number and name of each value, sorted by number; of aliases the first.
    pub values: Vec<(i32, String)>,
    /// The number that an unset field has.
    pub default: i32,
}

impl ProtobufEnum {
    /// The name of a number, if it has one.
    #[inline]
    pub fn name_of(&self, number: i32) -> Option<&str> {
        // Most enums count from zero, without holes.
        let near = usize::try_from(number)
            .ok()
            .and_then(|index| self.values.get(index));
        let found = near.filter(|(found, _)| *found == number).or_else(|| {
            let index = self.values.binary_search_by_key(&number, |(number, _)| *number);
            index.ok().map(|index| &self.values[index])
        });
        found.map(|(_, name)| name.as_str())
    }
}

impl ProtobufFile {
    /// Compiles a file together with those that it needs, each with the name by which it is imported.
    ///
    /// # Errors
    /// `Invalid`, with file, line and reason, if one of them is not Protobuf, if an import is missing, or if they are
    /// larger than the bounds of this module.
    pub fn compile(text: &str, references: &[(String, String)]) -> Result<Self> {
        compile::compile(text, references)
    }

    /// The schema of one of the file's messages under a topic's settings.
    ///
    /// # Errors
    /// `Invalid` if the file has no such message, if the message needs more columns than the bounds allow, or if a
    /// setting does not fit a field.
    pub fn message(&self, selector: &MessageSelector, mapping: &Mapping) -> Result<ProtobufSchema> {
        let root = self.select(selector)?;
        let columns = columns::of_root(&self.types, root, mapping)?;
        Ok(ProtobufSchema {
            types: Arc::clone(&self.types),
            root,
            columns,
        })
    }

    /// The full names of the file's messages, entries of maps left out, in the order of the file.
    pub fn message_names(&self) -> Vec<&str> {
        let shown = self.all().into_iter().map(|index| &self.types.messages[index]);
        shown
            .filter(|message| !message.synthetic)
            .map(|message| message.name.as_str())
            .collect()
    }

    fn select(&self, selector: &MessageSelector) -> Result<usize> {
        let found = match selector {
            MessageSelector::First => self.messages.first().copied(),
            MessageSelector::Path(path) if path.is_empty() => self.messages.first().copied(),
            MessageSelector::Path(path) => self.by_path(path),
            MessageSelector::Sorted(index) => {
                let mut all = self.all();
                all.sort_by(|a, b| self.types.messages[*a].name.cmp(&self.types.messages[*b].name));
                usize::try_from(*index)
                    .ok()
                    .and_then(|index| all.get(index).copied())
            }
            MessageSelector::Name(name) => self
                .types
                .by_name
                .get(name.strip_prefix('.').unwrap_or(name))
                .copied(),
        };
        found.ok_or_else(|| {
            let wanted = match selector {
                MessageSelector::First => "no message at all".to_owned(),
                MessageSelector::Path(path) => format!("no message at the indexes {path:?}"),
                MessageSelector::Sorted(index) => format!("no message at the sorted index {index}"),
                MessageSelector::Name(name) => format!("no message `{name}`"),
            };
            invalid(format!("the file has {wanted}")).with_hint(match self.message_names()[..] {
                [] => "the schema must have a message".to_owned(),
                ref names => format!("it has {}", names.join(", ")),
            })
        })
    }

    fn by_path(&self, path: &[i32]) -> Option<usize> {
        let mut level = &self.messages;
        let mut found = None;
        for step in path {
            let step = usize::try_from(*step).ok()?;
            let mut messages = level
                .iter()
                .copied()
                .filter(|index| !self.types.messages[*index].synthetic);
            let message = messages.nth(step)?;
            level = &self.types.messages[message].nested;
            found = Some(message);
        }
        found
    }

    /// The file's messages, nested ones included: each before those inside it.
    fn all(&self) -> Vec<usize> {
        let mut all = Vec::new();
        let mut open: Vec<usize> = self.messages.iter().rev().copied().collect();
        while let Some(message) = open.pop() {
            all.push(message);
            open.extend(self.types.messages[message].nested.iter().rev());
        }
        all
    }
}

impl ProtobufSchema {
    /// The index of the message that the records are.
    pub fn root(&self) -> usize {
        self.root
    }

    /// A message by its index.
    pub fn message(&self, index: usize) -> &ProtobufMessage {
        &self.types.messages[index]
    }

    /// All messages that the file can see, by index.
    pub fn messages(&self) -> &[ProtobufMessage] {
        &self.types.messages
    }

    /// The index of a message by its full name: of any that the file can see.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.types.by_name.get(name).copied()
    }

    /// An enum by its index.
    pub fn enumeration(&self, index: usize) -> &ProtobufEnum {
        &self.types.enums[index]
    }

    /// The full name of the message that the records are.
    pub fn name(&self) -> &str {
        &self.types.messages[self.root].name
    }

    /// The columns that the message asks for. A column comes from the field of the name in `source`, but one with
    /// the variant [`CASE`](Self::CASE) from the oneof of that name. A message that is mapped as a value (a
    /// `google.protobuf.Timestamp`, say) has one column, `value`.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The variant of the column that names the member of a oneof that is set.
    pub const CASE: &str = "case";
}

pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, "use the Protobuf schema", message).with_code("protobuf.schema_invalid")
}
