use std::sync::Arc;

use frazil_schema::{AvroField, AvroSchema, AvroType, TimestampUnit};

use crate::builder::{Builder, Values, mismatch};
use crate::fault::{Decoded, Fault};
use crate::{TimestampRange, decimal, text};

mod cursor;
mod json;
mod values;

pub(crate) use cursor::{Cursor, Subtree};

/// How to read one type of a writer's schema into the column that it asks for.
///
/// Written here rather than taken from arrow-avro (`benches/orders` compares the two): that decoder takes any
/// union index but the null's for the other branch, leaves columns of unequal length behind a record that fails,
/// finds wrong UTF-8 and enum symbols only when the whole batch is done, and has no bound on empty items. One
/// poison record must be told apart from its neighbours, by field.
#[derive(Debug)]
pub(crate) enum Node {
    /// Always null or excluded: read past, and no column.
    Skipped(Subtree),
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
        /// Ten to the power of `precision`.
        limit: i128,
        precision: u32,
        scale: u32,
        size: Option<usize>,
    },
    Date,
    TimeMillis,
    TimeMicros,
    Timestamp(TimestampUnit),
    Uuid,
    UuidBytes,
    /// A record without columns: a boolean that says it is there.
    Present(Vec<Subtree>),
    Struct(Vec<(String, Node)>),
    List {
        item: Box<Node>,
        empty_items: bool,
    },
    Map(Box<Node>),
    /// A map from keys and values.
    Entries {
        entry: Box<(Node, Node)>,
        empty_items: bool,
    },
    Optional {
        null: Option<usize>,
        value: usize,
        inner: Box<Node>,
    },
    /// A struct of which one field, the branch, is set.
    Choice(Vec<(String, Node)>),
    /// The JSON of a record inside itself.
    Json(Subtree),
}

impl Node {
    pub(crate) fn of_schema(schema: &AvroSchema) -> Vec<(String, Self)> {
        Self::of_fields(schema.fields(), schema.definitions())
    }

    fn of_fields(fields: &[AvroField], definitions: &Arc<[AvroType]>) -> Vec<(String, Self)> {
        let node = |field: &AvroField| {
            let node = if field.excluded || !field.data_type.has_column() {
                Self::Skipped(subtree(&field.data_type, definitions))
            } else {
                Self::new(&field.data_type, definitions)
            };
            (field.name.clone(), node)
        };
        fields.iter().map(node).collect()
    }

    fn new(data_type: &AvroType, definitions: &Arc<[AvroType]>) -> Self {
        match data_type {
            AvroType::Null => Self::Skipped(subtree(data_type, definitions)),
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
            AvroType::Decimal {
                precision,
                scale,
                size,
            } => Self::Decimal {
                limit: 10i128.pow((*precision).min(38)),
                precision: *precision,
                scale: *scale,
                size: *size,
            },
            AvroType::Date => Self::Date,
            AvroType::TimeMillis => Self::TimeMillis,
            AvroType::TimeMicros => Self::TimeMicros,
            AvroType::Timestamp { unit, .. } => Self::Timestamp(*unit),
            AvroType::Uuid => Self::Uuid,
            AvroType::UuidBytes => Self::UuidBytes,
            AvroType::Recursive(_) => Self::Json(subtree(data_type, definitions)),
            AvroType::Record(fields) => {
                let nodes = Self::of_fields(fields, definitions);
                if nodes.iter().all(|(_, node)| matches!(node, Self::Skipped(_))) {
                    let fields = fields.iter().map(|field| subtree(&field.data_type, definitions));
                    Self::Present(fields.collect())
                } else {
                    Self::Struct(nodes)
                }
            }
            AvroType::Array(items) => Self::List {
                item: Box::new(Self::new(items, definitions)),
                empty_items: cursor::may_be_empty(items),
            },
            AvroType::Map(values) => Self::Map(Box::new(Self::new(values, definitions))),
            AvroType::Entries(entry) => {
                let (key, value) = &**entry;
                Self::Entries {
                    entry: Box::new((Self::new(key, definitions), Self::new(value, definitions))),
                    empty_items: cursor::may_be_empty(key) && cursor::may_be_empty(value),
                }
            }
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
                        inner: Box::new(Self::new(&only.data_type, definitions)),
                    }
                }
                None => Self::Choice(Self::of_fields(branches, definitions)),
            },
        }
    }
}

fn subtree(data_type: &AvroType, definitions: &Arc<[AvroType]>) -> Subtree {
    Subtree {
        data_type: data_type.clone(),
        definitions: definitions.clone(),
    }
}

/// Decodes one value into its column, which has the type that the contract gives to the node or the one that the
/// topic's settings chose instead. On an error the column may hold a part of it: cut it back.
pub(crate) fn decode(
    node: &Node,
    builder: &mut Builder,
    cursor: &mut Cursor<'_>,
    range: &TimestampRange,
) -> Decoded<()> {
    match (node, &mut builder.values) {
        (Node::Boolean, Values::Boolean(values)) => values.append(cursor.boolean()?),
        (Node::Int, Values::Int(values)) => values.push(cursor.int()?),
        (Node::Int, Values::Long(values)) => values.push(i64::from(cursor.int()?)),
        (Node::Long, Values::Long(values)) => values.push(cursor.long()?),
        (Node::Float, Values::Float(values)) => values.push(f32::from_le_bytes(cursor.array()?)),
        (Node::Float, Values::Double(values)) => {
            values.push(f64::from(f32::from_le_bytes(cursor.array()?)));
        }
        (Node::Double, Values::Double(values)) => values.push(f64::from_le_bytes(cursor.array()?)),
        (
            Node::Int | Node::Long | Node::Float | Node::Double,
            Values::Decimal {
                values,
                precision,
                scale,
            },
        ) => values.push(match node {
            Node::Int => decimal::rescale(i128::from(cursor.int()?), 0, *precision, *scale)?,
            Node::Long => decimal::rescale(i128::from(cursor.long()?), 0, *precision, *scale)?,
            // The shortest number that reads back as the same float.
            Node::Float => {
                let value = f32::from_le_bytes(cursor.array()?).to_string();
                decimal::parse(&value, *precision, *scale)?
            }
            _ => {
                let value = f64::from_le_bytes(cursor.array()?).to_string();
                decimal::parse(&value, *precision, *scale)?
            }
        }),
        (Node::Bytes, Values::Binary(values)) => values.push(cursor.bytes()?)?,
        (Node::Fixed(size), Values::Binary(values)) => values.push(cursor.take(*size)?)?,
        (Node::Text, Values::Text(values) | Values::Binary(values)) => {
            values.push(cursor.text()?.as_bytes())?;
        }
        (Node::Enum(symbols), Values::Text(values) | Values::Binary(values)) => {
            values.push(cursor.symbol(symbols)?.as_bytes())?;
        }
        (
            Node::Decimal {
                limit,
                precision,
                scale,
                size,
            },
            values,
        ) => {
            let bytes = match size {
                Some(size) => cursor.take(*size)?,
                None => cursor.bytes()?,
            };
            let unscaled = values::decimal(bytes, *limit)?;
            match values {
                Values::Decimal {
                    values,
                    precision: to,
                    scale: to_scale,
                } => {
                    let same = i64::from(*to_scale) == i64::from(*scale) && u32::from(*to) >= *precision;
                    values.push(if same {
                        unscaled
                    } else {
                        decimal::rescale(unscaled, *scale, *to, *to_scale)?
                    });
                }
                Values::Long(values) if *scale == 0 => values.push(long(unscaled)?),
                _ => return Err(mismatch()),
            }
        }
        (Node::Date, Values::Date(dates)) => dates.push(range.date(cursor.int()?)?),
        (Node::TimeMillis | Node::TimeMicros, values) => {
            let micros = values::time_of_day(match node {
                Node::TimeMillis => i64::from(cursor.int()?).saturating_mul(1_000),
                _ => cursor.long()?,
            })?;
            match values {
                Values::Time(times) => times.push(micros),
                Values::Text(times) | Values::Binary(times) => {
                    text::time(micros, &mut times.data);
                    times.end()?;
                }
                _ => return Err(mismatch()),
            }
        }
        (Node::Timestamp(unit), Values::Timestamp { values, .. }) => {
            values.push(range.micros(cursor.long()?, *unit)?);
        }
        // As the source counts: no nanosecond is lost, and no range is asked for.
        (Node::Timestamp(_), Values::Long(values)) => values.push(cursor.long()?),
        (Node::Uuid, Values::Text(text) | Values::Binary(text)) => values::uuid(cursor.text()?, text)?,
        (Node::UuidBytes, Values::Text(text) | Values::Binary(text)) => {
            values::uuid_of_bytes(cursor.array()?, text)?;
        }
        (Node::Json(subtree), Values::Text(text) | Values::Binary(text)) => {
            json::write(subtree, cursor, range, text)?;
        }
        (Node::Present(fields), Values::Boolean(values)) => {
            for field in fields {
                cursor.skip(field)?;
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
        (Node::Entries { entry, empty_items }, Values::Map { items, keys }) => {
            let (key, value) = &**entry;
            while let Some(count) = cursor.block(*empty_items)? {
                for _ in 0..count {
                    decode_key(key, keys, cursor, range).map_err(|fault| fault.inside("[]"))?;
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
            if let Node::Skipped(subtree) = node {
                cursor.skip(subtree)?;
                builder.push_null();
                return Ok(());
            }
            let mut others = children.iter_mut();
            for (index, (_, other)) in branches.iter().enumerate() {
                if matches!(other, Node::Skipped(_)) {
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

/// Decodes the key of a map, which is never null.
fn decode_key(
    node: &Node,
    keys: &mut Builder,
    cursor: &mut Cursor<'_>,
    range: &TimestampRange,
) -> Decoded<()> {
    let Node::Optional { null, value, inner } = node else {
        return decode(node, keys, cursor, range);
    };
    match cursor.index()? {
        branch if branch == *value => decode(inner, keys, cursor, range),
        branch if Some(branch) == *null => Err(Fault::new(
            "avro.null_key",
            "the key of a map is null, and a table's map has none",
        )),
        branch => Err(no_branch(branch)),
    }
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
        if let Node::Skipped(subtree) = node {
            cursor.skip(subtree).map_err(|fault| fault.inside(name))?;
            continue;
        }
        let builder = builders.next().ok_or_else(mismatch)?;
        decode(node, builder, cursor, range).map_err(|fault| fault.inside(name))?;
    }
    Ok(())
}

fn long(value: i128) -> Decoded<i64> {
    i64::try_from(value).map_err(|_| {
        Fault::new(
            "value.long_overflow",
            format!("{value} does not fit into a long of 64 bits"),
        )
        .with_hint("without a `type` in its settings the field is a decimal, which holds it")
    })
}

#[cold]
fn no_branch(branch: usize) -> Box<Fault> {
    Fault::new("avro.invalid", format!("the union has no branch {branch}"))
}
