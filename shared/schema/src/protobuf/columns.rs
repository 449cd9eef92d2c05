use frazil_core::Result;
use iceberg::spec::PrimitiveType;

use super::{
    ProtobufCardinality, ProtobufField, ProtobufKind, ProtobufSchema, ProtobufTypes, WellKnown, invalid,
};
use crate::{Column, ColumnType, MAX_SCHEMA_DEPTH, MAX_SCHEMA_TYPES, Mapping};

/// The columns that a message asks for. The mapping is a contract: for an existing table it never changes.
pub(super) fn of_root(types: &ProtobufTypes, root: usize, mapping: &Mapping) -> Result<Vec<Column>> {
    let mut walk = Walk {
        types,
        mapping,
        open: Vec::new(),
        path: Vec::new(),
        count: 0,
    };
    if types.messages[root].well_known.is_none() {
        return walk.message(root);
    }
    let data_type = walk.value(ProtobufKind::Message(root), None)?;
    Ok(mapping.column(&[], "value", data_type)?.into_iter().collect())
}

struct Walk<'a> {
    types: &'a ProtobufTypes,
    mapping: &'a Mapping,
    /// The messages that the walk is inside.
    open: Vec<usize>,
    /// The names of the fields that the walk is inside.
    path: Vec<&'a str>,
    count: usize,
}

impl<'a> Walk<'a> {
    fn message(&mut self, index: usize) -> Result<Vec<Column>> {
        if self.open.len() >= MAX_SCHEMA_DEPTH {
            return Err(self.invalid(format!("it nests more than {MAX_SCHEMA_DEPTH} levels deep")));
        }
        self.open.push(index);
        let types = self.types;
        let message = &types.messages[index];
        let mut columns = Vec::with_capacity(message.fields.len());
        for (position, field) in message.fields.iter().enumerate() {
            if !self.mapping.excludes(&self.path, &field.name) {
                self.path.push(&field.name);
                let natural = self.field(field)?;
                self.path.pop();
                if let Some(mut column) = self.mapping.column(&self.path, &field.name, natural)? {
                    column.doc.clone_from(&field.doc);
                    columns.push(column);
                }
            }
            let last_of = |oneof: &usize| {
                !message.fields[position + 1..]
                    .iter()
                    .any(|f| f.oneof == Some(*oneof))
            };
            if let Some(oneof) = field.oneof.filter(last_of)
                && self.mapping.oneof_case
            {
                columns.extend(self.case(&message.oneofs[oneof])?);
            }
        }
        self.open.pop();
        Ok(columns)
    }

    /// The column that names the member of a oneof.
    fn case(&self, oneof: &str) -> Result<Option<Column>> {
        let name = format!("{oneof}_{}", ProtobufSchema::CASE);
        let column = self.mapping.column(&self.path, &name, ColumnType::STRING)?;
        Ok(column.map(|column| Column {
            source: oneof.to_owned(),
            variant: Some(ProtobufSchema::CASE),
            ..column
        }))
    }

    fn field(&mut self, field: &'a ProtobufField) -> Result<ColumnType> {
        self.count += 1;
        if self.count > MAX_SCHEMA_TYPES {
            return Err(self.invalid(format!("it has more than {MAX_SCHEMA_TYPES} fields")));
        }
        Ok(match field.cardinality {
            ProtobufCardinality::Implicit | ProtobufCardinality::Explicit => {
                self.value(field.kind, Some(field))?
            }
            ProtobufCardinality::Repeated => ColumnType::List(Box::new(self.value(field.kind, Some(field))?)),
            ProtobufCardinality::Map => {
                let types = self.types;
                let entry = field
                    .kind
                    .message()
                    .map(|entry| &types.messages[entry].fields[..]);
                let Some([key, value]) = entry else {
                    return Err(self.invalid("its map has no key and value".to_owned()));
                };
                let key = self.value(key.kind, None)?;
                ColumnType::Map(Box::new(key), Box::new(self.value(value.kind, Some(value))?))
            }
        })
    }

    fn value(&mut self, kind: ProtobufKind, field: Option<&ProtobufField>) -> Result<ColumnType> {
        let (ProtobufKind::Message(index) | ProtobufKind::Group(index)) = kind else {
            return Ok(ColumnType::Primitive(scalar(kind)));
        };
        let message = &self.types.messages[index];
        Ok(ColumnType::Primitive(match message.well_known {
            Some(WellKnown::Timestamp) => self.mapping.instant(),
            Some(WellKnown::Duration) => PrimitiveType::Long,
            Some(WellKnown::Wrapper) => message
                .fields
                .first()
                .map_or(PrimitiveType::String, |f| scalar(f.kind)),
            Some(
                WellKnown::Struct
                | WellKnown::Value
                | WellKnown::ListValue
                | WellKnown::Any
                | WellKnown::FieldMask,
            ) => PrimitiveType::String,
            Some(WellKnown::Date) => PrimitiveType::Date,
            Some(WellKnown::TimeOfDay) => self.mapping.time(),
            Some(WellKnown::TextDecimal | WellKnown::ScaledDecimal) => {
                self.decimal(message.well_known, field)
            }
            // A message inside itself would have columns without end.
            None if self.open.contains(&index) => PrimitiveType::String,
            None => {
                let columns = self.message(index)?;
                if columns.is_empty() {
                    PrimitiveType::Boolean // present or null: neither Parquet nor Athena takes an empty struct
                } else {
                    return Ok(ColumnType::Struct(columns));
                }
            }
        }))
    }

    /// A decimal is one where its precision and scale are known: from the topic's settings, or from Confluent's
    /// annotation of the field.
    fn decimal(&self, message: Option<WellKnown>, field: Option<&ProtobufField>) -> PrimitiveType {
        let set = self.mapping.fields.get(&self.path.join("."));
        if let Some(decimal @ PrimitiveType::Decimal { .. }) = set.and_then(|set| set.data_type.as_ref()) {
            return decimal.clone();
        }
        match field.and_then(|field| field.decimal) {
            Some((precision, scale)) if message == Some(WellKnown::ScaledDecimal) => {
                PrimitiveType::Decimal { precision, scale }
            }
            _ => PrimitiveType::String,
        }
    }

    fn invalid(&self, reason: String) -> frazil_core::Error {
        let message = self
            .open
            .first()
            .map_or("the message", |root| &self.types.messages[*root].name);
        match &self.path[..] {
            [] => invalid(format!("`{message}`: {reason}")),
            path => invalid(format!("`{message}`, field `{}`: {reason}", path.join("."))),
        }
    }
}

fn scalar(kind: ProtobufKind) -> PrimitiveType {
    use ProtobufKind as K;
    match kind {
        K::Double => PrimitiveType::Double,
        K::Float => PrimitiveType::Float,
        K::Int32 | K::Sint32 | K::Sfixed32 => PrimitiveType::Int,
        K::Uint32 | K::Fixed32 | K::Int64 | K::Sint64 | K::Sfixed64 => PrimitiveType::Long,
        // A long would turn the upper half negative.
        K::Uint64 | K::Fixed64 => PrimitiveType::Decimal {
            precision: 20,
            scale: 0,
        },
        K::Bool => PrimitiveType::Boolean,
        K::String | K::Enum(_) => PrimitiveType::String,
        K::Bytes => PrimitiveType::Binary,
        K::Message(_) | K::Group(_) => PrimitiveType::Boolean,
    }
}
