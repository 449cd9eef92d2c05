use frazil_schema::{AvroField, AvroType, TimestampUnit};

use crate::TimestampRange;
use crate::builder::{Builder, Values, mismatch};
use crate::fault::{Decoded, Fault};

mod cursor;
mod values;

pub(crate) use cursor::Cursor;

/// How to read one type of a writer's schema into the column that it asks for.
///
/// Written here rather than taken from arrow-avro (`benches/orders` compares the two): that decoder takes any
/// union index but the null's for the other branch, leaves columns of unequal length behind a record that fails,
/// finds wrong UTF-8 and enum symbols only when the whole batch is done, and has no bound on empty items. One
/// poison record must be told apart from its neighbours, by field.
#[derive(Debug)]
pub(crate) enum Node {
    /// Always null: read, and no column.
    Columnless(AvroType),
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    Text,
    Fixed(usize),
    Enum(Vec<String>),
    Decimal {
        limit: i128,
        size: Option<usize>,
    },
    Date,
    TimeMillis,
    TimeMicros,
    Timestamp(TimestampUnit),
    Uuid,
    UuidBytes,
    /// A record without columns: a boolean that says it is there.
    Present(Vec<AvroType>),
    Struct(Vec<(String, Node)>),
    List {
        item: Box<Node>,
        empty_items: bool,
    },
    Map(Box<Node>),
    Optional {
        null: Option<usize>,
        value: usize,
        inner: Box<Node>,
    },
    /// A struct of which one field, the branch, is set.
    Choice(Vec<(String, Node)>),
}

impl Node {
    pub(crate) fn of_record(fields: &[AvroField]) -> Vec<(String, Self)> {
        fields
            .iter()
            .map(|field| (field.name.clone(), Self::new(&field.data_type)))
            .collect()
    }

    fn new(data_type: &AvroType) -> Self {
        if data_type.column_type().is_none() {
            return Self::Columnless(data_type.clone());
        }
        match data_type {
            AvroType::Null => Self::Columnless(AvroType::Null),
            AvroType::Boolean => Self::Boolean,
            AvroType::Int => Self::Int,
            AvroType::Long => Self::Long,
            AvroType::Float => Self::Float,
            AvroType::Double => Self::Double,
            AvroType::Bytes => Self::Bytes,
            AvroType::String => Self::Text,
            AvroType::Fixed(size) => Self::Fixed(*size),
            AvroType::Duration => Self::Fixed(12),
            AvroType::Enum(symbols) => Self::Enum(symbols.clone()),
            AvroType::Decimal { precision, size, .. } => Self::Decimal {
                limit: 10i128.pow((*precision).min(38)),
                size: *size,
            },
            AvroType::Date => Self::Date,
            AvroType::TimeMillis => Self::TimeMillis,
            AvroType::TimeMicros => Self::TimeMicros,
            AvroType::Timestamp { unit, .. } => Self::Timestamp(*unit),
            AvroType::Uuid => Self::Uuid,
            AvroType::UuidBytes => Self::UuidBytes,
            AvroType::Record(fields) => {
                let nodes = Self::of_record(fields);
                if nodes.iter().all(|(_, node)| matches!(node, Self::Columnless(_))) {
                    Self::Present(fields.iter().map(|field| field.data_type.clone()).collect())
                } else {
                    Self::Struct(nodes)
                }
            }
            AvroType::Array(items) => Self::List {
                item: Box::new(Self::new(items)),
                empty_items: cursor::may_be_empty(items),
            },
            AvroType::Map(values) => Self::Map(Box::new(Self::new(values))),
            AvroType::Union(branches) => match data_type.only_branch() {
                Some(only) => {
                    let position = |null| {
                        branches
                            .iter()
                            .position(|b| (b.data_type == AvroType::Null) == null)
                    };
                    Self::Optional {
                        null: position(true),
                        value: position(false).unwrap_or(0),
                        inner: Box::new(Self::new(&only.data_type)),
                    }
                }
                None => Self::Choice(Self::of_record(branches)),
            },
        }
    }
}

/// Decodes one value into its column. On an error the column may hold a part of it: cut it back.
pub(crate) fn decode(
    node: &Node,
    builder: &mut Builder,
    cursor: &mut Cursor<'_>,
    range: &TimestampRange,
) -> Decoded<()> {
    match (node, &mut builder.values) {
        (Node::Boolean, Values::Boolean(values)) => values.append(cursor.boolean()?),
        (Node::Int, Values::Int(values)) => values.push(cursor.int()?),
        (Node::Long, Values::Long(values)) => values.push(cursor.long()?),
        (Node::Float, Values::Float(values)) => values.push(f32::from_le_bytes(cursor.array()?)),
        (Node::Double, Values::Double(values)) => values.push(f64::from_le_bytes(cursor.array()?)),
        (Node::Bytes, Values::Binary(values)) => values.push(cursor.bytes()?)?,
        (Node::Fixed(size), Values::Binary(values)) => values.push(cursor.take(*size)?)?,
        (Node::Text, Values::Text(values)) => values.push(cursor.text()?.as_bytes())?,
        (Node::Enum(symbols), Values::Text(values)) => {
            let index = cursor.long()?;
            let symbol = usize::try_from(index)
                .ok()
                .and_then(|index| symbols.get(index))
                .ok_or_else(|| {
                    Fault::new(
                        "avro.invalid",
                        format!("enum symbol {index} of {}", symbols.len()),
                    )
                })?;
            values.push(symbol.as_bytes())?;
        }
        (Node::Decimal { limit, size }, Values::Decimal { values: decimals, .. }) => {
            let bytes = match size {
                Some(size) => cursor.take(*size)?,
                None => cursor.bytes()?,
            };
            decimals.push(values::decimal(bytes, *limit)?);
        }
        (Node::Date, Values::Date(dates)) => dates.push(range.date(cursor.int()?)?),
        (Node::TimeMillis, Values::Text(text)) => {
            values::time_of_day(i64::from(cursor.int()?).saturating_mul(1_000), text)?;
        }
        (Node::TimeMicros, Values::Text(text)) => values::time_of_day(cursor.long()?, text)?,
        (Node::Timestamp(unit), Values::Timestamp { values, .. }) => {
            values.push(range.micros(cursor.long()?, *unit)?);
        }
        (Node::Uuid, Values::Text(text)) => values::uuid(cursor.text()?, text)?,
        (Node::UuidBytes, Values::Text(text)) => values::uuid_of_bytes(cursor.array()?, text)?,
        (Node::Present(fields), Values::Boolean(values)) => {
            for field in fields {
                cursor.skip_columnless(field)?;
            }
            values.append(true);
        }
        (Node::Struct(fields), Values::Struct(children)) => decode_fields(fields, children, cursor, range)?,
        (Node::List { item, empty_items }, Values::List(items)) => {
            while let Some(count) = cursor.block(*empty_items)? {
                for _ in 0..count {
                    decode(item, &mut items.element, cursor, range).map_err(|fault| fault.inside("[]"))?;
                }
            }
            items.end()?;
        }
        (Node::Map(value), Values::Map { items, keys }) => {
            while let Some(count) = cursor.block(false)? {
                for _ in 0..count {
                    keys.push_text(cursor.text()?)?;
                    decode(value, &mut items.element, cursor, range).map_err(|fault| fault.inside("[]"))?;
                }
            }
            items.end()?;
        }
        (Node::Optional { null, value, inner }, _) => {
            let branch = cursor.index()?;
            if branch == *value {
                return decode(inner, builder, cursor, range);
            }
            if Some(branch) != *null {
                return Err(no_branch(branch));
            }
            builder.push_null();
            return Ok(());
        }
        (Node::Choice(branches), Values::Struct(children)) => {
            let branch = cursor.index()?;
            let Some((name, node)) = branches.get(branch) else {
                return Err(no_branch(branch));
            };
            if let Node::Columnless(data_type) = node {
                cursor.skip_columnless(data_type)?;
                builder.push_null();
                return Ok(());
            }
            let mut others = children.iter_mut();
            for (index, (_, other)) in branches.iter().enumerate() {
                if matches!(other, Node::Columnless(_)) {
                    continue;
                }
                match others.next() {
                    Some(child) if index == branch => {
                        decode(node, child, cursor, range).map_err(|fault| fault.inside(name))?;
                    }
                    Some(child) => child.push_null(),
                    None => return Err(mismatch()),
                }
            }
        }
        _ => return Err(mismatch()),
    }
    builder.valid();
    Ok(())
}

/// Decodes the fields of a record into the columns of those that have one.
pub(crate) fn decode_fields(
    fields: &[(String, Node)],
    builders: &mut [Builder],
    cursor: &mut Cursor<'_>,
    range: &TimestampRange,
) -> Decoded<()> {
    let mut builders = builders.iter_mut();
    for (name, node) in fields {
        if let Node::Columnless(data_type) = node {
            cursor
                .skip_columnless(data_type)
                .map_err(|fault| fault.inside(name))?;
            continue;
        }
        let builder = builders.next().ok_or_else(mismatch)?;
        decode(node, builder, cursor, range).map_err(|fault| fault.inside(name))?;
    }
    Ok(())
}

#[cold]
fn no_branch(branch: usize) -> Box<Fault> {
    Fault::new("avro.invalid", format!("the union has no branch {branch}"))
}
