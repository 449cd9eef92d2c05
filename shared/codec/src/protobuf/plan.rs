use std::collections::HashMap;

use frazil_schema::{
    Column, ColumnType, ProtobufCardinality, ProtobufField, ProtobufKind, ProtobufMessage, ProtobufSchema,
    WellKnown,
};

use super::wire::Wire;

/// How to read one message into the columns that it asks for.
#[derive(Debug)]
pub(super) struct Record {
    /// Sorted by number.
    pub(super) fields: Vec<Field>,
    /// The position in `fields` of each small number, plus one.
    dense: Vec<u16>,
    /// What each column is when nothing came for it.
    pub(super) absent: Vec<Absent>,
    pub(super) oneofs: usize,
    /// The columns that name the member of a oneof: oneof and column.
    pub(super) cases: Vec<(usize, usize)>,
    /// How many values a row of it takes, lists left out.
    pub(super) cells: u64,
}

/// Numbers below this are found without searching.
const DENSE_NUMBERS: usize = 256;

/// A field that a message declares, with a column or without.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) column: Option<usize>,
    pub(super) oneof: Option<usize>,
    pub(super) occurs: Occurs,
}

#[derive(Debug)]
pub(super) enum Occurs {
    One(Node),
    Many(Node),
    /// Entries of a key and a value.
    Map(Scalar, Node),
}

/// How to read one value.
#[derive(Debug)]
pub(super) enum Node {
    Scalar(Scalar),
    Message { wire: Wire, shape: Shape },
}

/// How to read a message into its column.
#[derive(Debug)]
pub(super) enum Shape {
    /// A struct.
    Record(Record),
    /// No fields: a boolean that says it is there.
    Present,
    /// The text of its JSON, by the index of the message.
    Json(usize),
    /// Its field 1.
    Wrapper(Scalar),
    Timestamp,
    Duration,
    Date,
    TimeOfDay,
    TextDecimal,
    ScaledDecimal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
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
    /// By the index of the enum.
    Enum(usize),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Absent {
    Null,
    Default(Scalar),
    /// A list, complete with what has come.
    List,
    /// A map without entries.
    Map,
}

impl Scalar {
    pub(super) fn of(kind: ProtobufKind) -> Option<Self> {
        use ProtobufKind as K;
        Some(match kind {
            K::Double => Self::Double,
            K::Float => Self::Float,
            K::Int32 => Self::Int32,
            K::Int64 => Self::Int64,
            K::Uint32 => Self::Uint32,
            K::Uint64 => Self::Uint64,
            K::Sint32 => Self::Sint32,
            K::Sint64 => Self::Sint64,
            K::Fixed32 => Self::Fixed32,
            K::Fixed64 => Self::Fixed64,
            K::Sfixed32 => Self::Sfixed32,
            K::Sfixed64 => Self::Sfixed64,
            K::Bool => Self::Bool,
            K::String => Self::String,
            K::Bytes => Self::Bytes,
            K::Enum(index) => Self::Enum(index),
            K::Message(_) | K::Group(_) => return None,
        })
    }

    #[inline]
    pub(super) fn wire(self) -> Wire {
        match self {
            Self::Double | Self::Fixed64 | Self::Sfixed64 => Wire::Fixed64,
            Self::Float | Self::Fixed32 | Self::Sfixed32 => Wire::Fixed32,
            Self::String | Self::Bytes => Wire::Bytes,
            _ => Wire::Varint,
        }
    }
}

impl Record {
    /// The columns must be those of the message.
    pub(super) fn new(schema: &ProtobufSchema, message: &ProtobufMessage, columns: &[Column]) -> Self {
        let places: HashMap<&str, usize> = columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.variant != Some(ProtobufSchema::CASE))
            .map(|(place, column)| (column.source.as_str(), place))
            .collect();
        let place = |field: &ProtobufField| places.get(field.name.as_str()).copied();
        let mut fields: Vec<Field> = message
            .fields
            .iter()
            .map(|field| {
                let column = place(field);
                Field {
                    number: field.number,
                    name: field.name.clone(),
                    column,
                    oneof: field.oneof,
                    occurs: Occurs::new(schema, field, column.map(|column| &columns[column].data_type)),
                }
            })
            .collect();
        fields.sort_by_key(|field| field.number);
        let mut absent = vec![Absent::Null; columns.len()];
        for field in &message.fields {
            let (Some(column), scalar) = (place(field), Scalar::of(field.kind)) else {
                continue;
            };
            absent[column] = match (field.cardinality, scalar) {
                (ProtobufCardinality::Implicit, Some(scalar)) => Absent::Default(scalar),
                (ProtobufCardinality::Implicit | ProtobufCardinality::Explicit, _) => Absent::Null,
                (ProtobufCardinality::Repeated, _) => Absent::List,
                (ProtobufCardinality::Map, _) => Absent::Map,
            };
        }
        let cases = columns.iter().enumerate().filter_map(|(place, column)| {
            let oneof = message.oneofs.iter().position(|oneof| *oneof == column.source)?;
            (column.variant == Some(ProtobufSchema::CASE)).then_some((oneof, place))
        });
        Self {
            dense: dense(&fields),
            cases: cases.collect(),
            oneofs: message.oneofs.len(),
            cells: columns.iter().map(|column| cells(&column.data_type)).sum(),
            absent,
            fields,
        }
    }

    /// The position of the field of this number. `hint` is where the one before it was.
    #[inline]
    pub(super) fn find(&self, number: u32, hint: usize) -> Option<usize> {
        // Fields mostly come in the order of their numbers, and repeated ones in a row.
        for position in [hint + 1, hint] {
            if self
                .fields
                .get(position)
                .is_some_and(|field| field.number == number)
            {
                return Some(position);
            }
        }
        if (number as usize) < DENSE_NUMBERS {
            let position = self.dense.get(number as usize).copied().unwrap_or(0);
            return usize::from(position).checked_sub(1);
        }
        self.fields
            .binary_search_by_key(&number, |field| field.number)
            .ok()
    }
}

fn dense(fields: &[Field]) -> Vec<u16> {
    let mut dense = Vec::new();
    for (position, field) in (1u16..).zip(fields) {
        let number = field.number as usize;
        if number >= DENSE_NUMBERS {
            break;
        }
        dense.resize(number + 1, 0);
        dense[number] = position;
    }
    dense
}

fn cells(data_type: &ColumnType) -> u64 {
    match data_type {
        ColumnType::Primitive(_) | ColumnType::Hashed(_) | ColumnType::List(_) | ColumnType::Map(..) => 1,
        ColumnType::Struct(columns) => columns.iter().map(|column| cells(&column.data_type)).sum(),
    }
}

impl Occurs {
    fn new(schema: &ProtobufSchema, field: &ProtobufField, data_type: Option<&ColumnType>) -> Self {
        match field.cardinality {
            ProtobufCardinality::Implicit | ProtobufCardinality::Explicit => {
                Self::One(Node::new(schema, field.kind, data_type))
            }
            ProtobufCardinality::Repeated => {
                let element = match data_type {
                    Some(ColumnType::List(element)) => Some(&**element),
                    _ => None,
                };
                Self::Many(Node::new(schema, field.kind, element))
            }
            ProtobufCardinality::Map => {
                let value_type = match data_type {
                    Some(ColumnType::Map(_, value)) => Some(&**value),
                    _ => None,
                };
                let entry = field
                    .kind
                    .message()
                    .map(|entry| &schema.message(entry).fields[..]);
                match entry {
                    Some([key, value]) => Self::Map(
                        Scalar::of(key.kind).unwrap_or(Scalar::String),
                        Node::new(schema, value.kind, value_type),
                    ),
                    _ => Self::Many(Node::new(schema, field.kind, None)),
                }
            }
        }
    }
}

impl Node {
    /// Without a type there is no column, and the value is only skipped.
    pub(super) fn new(schema: &ProtobufSchema, kind: ProtobufKind, data_type: Option<&ColumnType>) -> Self {
        if let Some(scalar) = Scalar::of(kind) {
            return Self::Scalar(scalar);
        }
        let index = kind.message().unwrap_or_default();
        let message = schema.message(index);
        let wire = match kind {
            ProtobufKind::Group(_) => Wire::Group,
            _ => Wire::Bytes,
        };
        let shape = match (message.well_known, data_type) {
            (_, None) => Shape::Present,
            (Some(WellKnown::Timestamp), _) => Shape::Timestamp,
            (Some(WellKnown::Duration), _) => Shape::Duration,
            (Some(WellKnown::Wrapper), _) => {
                let inside = message.fields.first().and_then(|field| Scalar::of(field.kind));
                Shape::Wrapper(inside.unwrap_or(Scalar::Bytes))
            }
            (Some(WellKnown::Date), _) => Shape::Date,
            (Some(WellKnown::TimeOfDay), _) => Shape::TimeOfDay,
            (Some(WellKnown::TextDecimal), _) => Shape::TextDecimal,
            (Some(WellKnown::ScaledDecimal), _) => Shape::ScaledDecimal,
            (None, Some(ColumnType::Struct(columns))) => Shape::Record(Record::new(schema, message, columns)),
            (None, Some(data_type)) if is_boolean(data_type) => Shape::Present,
            _ => Shape::Json(index),
        };
        Self::Message { wire, shape }
    }

    /// Whether a value needs the text of JSON.
    pub(super) fn writes_json(&self) -> bool {
        match self {
            Self::Message {
                shape: Shape::Json(_),
                ..
            } => true,
            Self::Message {
                shape: Shape::Record(record),
                ..
            } => record.writes_json(),
            _ => false,
        }
    }
}

impl Record {
    pub(super) fn writes_json(&self) -> bool {
        self.fields.iter().any(|field| {
            let (Occurs::One(node) | Occurs::Many(node) | Occurs::Map(_, node)) = &field.occurs;
            field.column.is_some() && node.writes_json()
        })
    }
}

fn is_boolean(data_type: &ColumnType) -> bool {
    use iceberg::spec::PrimitiveType;
    matches!(
        data_type,
        ColumnType::Primitive(PrimitiveType::Boolean) | ColumnType::Hashed(PrimitiveType::Boolean)
    )
}
