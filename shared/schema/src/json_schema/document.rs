use std::collections::HashMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A JSON text that keeps the order of fields: it becomes the order of columns. Of duplicate keys the last counts,
/// in the place of the first.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Document {
    Null,
    Boolean(bool),
    Integer(i64),
    /// With a fraction or an exponent, or beyond 64 bits.
    Number(f64),
    String(String),
    Array(Vec<Document>),
    Object(Vec<(String, Document)>),
}

impl Document {
    /// The field of an object.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let fields = self.fields()?;
        fields
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }

    pub(super) fn fields(&self) -> Option<&[(String, Self)]> {
        match self {
            Self::Object(fields) => Some(fields),
            _ => None,
        }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// An integer, also when it was written as a string: Connect's parameters are strings.
    pub(super) fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            Self::String(text) => text.parse().ok(),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Document, E> {
        Ok(Document::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Document, E> {
        Ok(Document::Boolean(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Document, E> {
        Ok(Document::Integer(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Document, E> {
        // What does not fit is only ever asked whether it is an integer of 64 bits.
        #[allow(clippy::cast_precision_loss)]
        Ok(i64::try_from(value).map_or(Document::Number(value as f64), Document::Integer))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Document, E> {
        Ok(Document::Number(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Document, E> {
        Ok(Document::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Document, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Document::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Document, A::Error> {
        let mut fields: Vec<(String, Document)> = Vec::new();
        let mut positions: HashMap<String, usize> = HashMap::new();
        while let Some((key, value)) = access.next_entry::<String, Document>()? {
            match positions.get(&key) {
                Some(position) => fields[*position].1 = value,
                None => {
                    positions.insert(key.clone(), fields.len());
                    fields.push((key, value));
                }
            }
        }
        Ok(Document::Object(fields))
    }
}
