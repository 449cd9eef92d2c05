use std::borrow::Cow;
use std::collections::HashMap;

use frazil_schema::{JsonField, JsonSchema, JsonType};

use super::cursor::Cursor;
use super::scalar;
use crate::builder::{Builder, Items, Values, mismatch};
use crate::decoder::Context;
use crate::fault::{Decoded, Fault};
use crate::{UnknownFields, json};

mod concealed;

/// How to read one type of a JSON Schema into the column that it asks for. Straight from the text: no value is built
/// in between, and of duplicate keys the last one counts, since columns can be cut back.
#[derive(Debug)]
pub(crate) struct JsonPlan {
    root: Node,
}

#[derive(Debug)]
enum Node {
    /// No column, whatever comes.
    Excluded,
    /// No column, since only null can come.
    Null,
    Scalar(JsonType),
    Any,
    Object(ObjectNode),
    Map(Box<Node>),
    List(Box<Node>),
}

#[derive(Debug)]
struct ObjectNode {
    fields: Vec<FieldNode>,
    positions: HashMap<String, usize>,
    /// Whether a field, here or further inside, is concealed.
    conceals: bool,
}

#[derive(Debug)]
struct FieldNode {
    name: String,
    /// The place of its column among those of the object.
    column: Option<usize>,
    node: Node,
    /// Its value must not be kept in any text.
    concealed: bool,
}

impl JsonPlan {
    pub(crate) fn new(schema: &JsonSchema) -> Self {
        Self {
            root: Node::new(schema.root()),
        }
    }

    /// Appends one value to each of the schema's columns. On an error they may hold a part: cut them back.
    pub(crate) fn decode(&self, body: &[u8], builders: &mut [Builder], context: &mut Context) -> Decoded<()> {
        let mut cursor = Cursor::new(body)?;
        match (&self.root, cursor.peek()) {
            (Node::Object(_), Some(b'n')) => {
                cursor.null()?;
                builders.iter_mut().for_each(Builder::push_null);
            }
            (Node::Object(object), Some(b'{')) => object.decode(builders, &mut cursor, 0, context)?,
            (Node::Object(_), Some(b'[' | b'"' | b't' | b'f' | b'-' | b'0'..=b'9')) => {
                return Err(json::not_an_object());
            }
            (Node::Object(_), _) => return Err(cursor.expected("a value")),
            (root, _) => match builders.first_mut() {
                Some(builder) => root
                    .decode(builder, &mut cursor, 0, context)
                    .map_err(|fault| fault.inside("value"))?,
                None => {
                    cursor.skip(0)?;
                }
            },
        }
        cursor.finish()
    }
}

impl Node {
    fn new(data_type: &JsonType) -> Self {
        match data_type {
            JsonType::Null => Self::Null,
            JsonType::Excluded => Self::Excluded,
            JsonType::Any => Self::Any,
            JsonType::Object(fields) => Self::Object(ObjectNode::new(fields)),
            JsonType::Map(values) => Self::Map(Box::new(Self::new(values))),
            JsonType::List(elements) => Self::List(Box::new(Self::new(elements))),
            scalar => Self::Scalar(scalar.clone()),
        }
    }

    /// Decodes one value, at nesting `depth`, into its column.
    fn decode(
        &self,
        builder: &mut Builder,
        cursor: &mut Cursor<'_>,
        depth: usize,
        context: &mut Context,
    ) -> Decoded<()> {
        let first = cursor.peek();
        if first == Some(b'n') {
            cursor.null()?;
            builder.push_null();
            return Ok(());
        }
        match (self, first, &mut builder.values) {
            (Self::Scalar(data_type), _, values) => {
                scalar::decode(data_type, values, cursor, depth, &context.timestamp_range)?;
            }
            (Self::Any, _, Values::Text(out) | Values::Binary(out)) => {
                out.push(cursor.skip(depth)?.as_bytes())?;
            }
            (Self::Object(object), Some(b'{'), Values::Struct(children)) => {
                object.decode(children, cursor, depth, context)?;
            }
            (Self::Object(object), Some(b'{'), Values::Boolean(present)) => {
                present.append(true);
                object.decode(&mut [], cursor, depth, context)?;
            }
            (Self::Map(values), Some(b'{'), Values::Map { .. }) => {
                return decode_map(values, builder, cursor, depth, context);
            }
            (Self::List(element), Some(b'['), Values::List(items)) => {
                decode_list(element, items, cursor, depth, context)?;
            }
            (Self::Object(_), _, _) | (Self::Map(_), _, _) => {
                return Err(scalar::wrong_type("an object", cursor, depth));
            }
            (Self::List(_), _, _) => return Err(scalar::wrong_type("an array", cursor, depth)),
            _ => return Err(mismatch()),
        }
        builder.valid();
        Ok(())
    }
}

fn decode_list(
    element: &Node,
    items: &mut Items,
    cursor: &mut Cursor<'_>,
    depth: usize,
    context: &mut Context,
) -> Decoded<()> {
    cursor.open(depth)?;
    if !cursor.closes(b']') {
        loop {
            element
                .decode(&mut items.element, cursor, depth + 1, context)
                .map_err(|fault| fault.inside("[]"))?;
            if !cursor.continues(b']')? {
                break;
            }
        }
    }
    items.end()
}

/// A map, whose keys may repeat in the text but not in the column.
fn decode_map(
    values: &Node,
    builder: &mut Builder,
    cursor: &mut Cursor<'_>,
    depth: usize,
    context: &mut Context,
) -> Decoded<()> {
    let (start, len) = (cursor.position(), builder.len());
    let mut keys = Vec::new();
    cursor.open(depth)?;
    let mut more = !cursor.closes(b'}');
    let Values::Map { items, keys: column } = &mut builder.values else {
        return Err(mismatch());
    };
    while more {
        let key = cursor.key()?;
        column.push_text(&key)?;
        values
            .decode(&mut items.element, cursor, depth + 1, context)
            .map_err(|fault| fault.inside("[]"))?;
        keys.push(key);
        more = cursor.continues(b'}')?;
    }
    items.end()?;
    if !repeats(&mut keys) {
        builder.valid();
        return Ok(());
    }
    // Rare: again, and only the last value of each key.
    builder.truncate(len);
    cursor.seek(start);
    decode_last_of_each(values, builder, cursor, depth, context)
}

fn repeats(keys: &mut [Cow<'_, str>]) -> bool {
    /// Up to here comparing each with each is faster than sorting.
    const FEW: usize = 12;
    if keys.len() > FEW {
        keys.sort_unstable();
        return keys.windows(2).any(|pair| pair[0] == pair[1]);
    }
    (1..keys.len()).any(|index| keys[..index].contains(&keys[index]))
}

fn decode_last_of_each(
    values: &Node,
    builder: &mut Builder,
    cursor: &mut Cursor<'_>,
    depth: usize,
    context: &mut Context,
) -> Decoded<()> {
    let mut last: Vec<(Cow<'_, str>, usize)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    cursor.open(depth)?;
    loop {
        let key = cursor.key()?;
        let position = cursor.position();
        cursor.skip(depth + 1)?;
        match places.get(key.as_ref()) {
            Some(place) => last[*place].1 = position,
            None => {
                places.insert(key.to_string(), last.len());
                last.push((key, position));
            }
        }
        if !cursor.continues(b'}')? {
            break;
        }
    }
    let end = cursor.position();
    let Values::Map { items, keys } = &mut builder.values else {
        return Err(mismatch());
    };
    for (key, position) in last {
        keys.push_text(&key)?;
        cursor.seek(position);
        values
            .decode(&mut items.element, cursor, depth + 1, context)
            .map_err(|fault| fault.inside("[]"))?;
    }
    items.end()?;
    cursor.seek(end);
    builder.valid();
    Ok(())
}

impl ObjectNode {
    fn new(fields: &[JsonField]) -> Self {
        let mut columns = 0;
        let fields: Vec<FieldNode> = fields
            .iter()
            .map(|field| {
                let column = field.data_type.has_column().then(|| {
                    columns += 1;
                    columns - 1
                });
                FieldNode {
                    name: field.name.clone(),
                    column,
                    node: Node::new(&field.data_type),
                    concealed: field.concealed,
                }
            })
            .collect();
        let conceals = fields
            .iter()
            .any(|field| field.concealed || field.node.conceals());
        let positions = fields
            .iter()
            .enumerate()
            .map(|(position, field)| (field.name.clone(), position))
            .collect();
        Self {
            fields,
            positions,
            conceals,
        }
    }

    /// The field of this name. Producers write fields in the order of the schema more often than not, so the one
    /// after the last one is tried first.
    #[inline]
    fn find(&self, key: &str, next: usize) -> Option<usize> {
        match self.fields.get(next) {
            Some(field) if field.name == key => Some(next),
            _ => self.positions.get(key).copied(),
        }
    }

    fn field(&self, key: &str) -> Option<&FieldNode> {
        self.positions.get(key).map(|position| &self.fields[*position])
    }

    /// Decodes an object at nesting `depth`, whose first byte was peeked: one value for each of the columns.
    fn decode(
        &self,
        columns: &mut [Builder],
        cursor: &mut Cursor<'_>,
        depth: usize,
        context: &mut Context,
    ) -> Decoded<()> {
        let before = columns.first().map_or(0, Builder::len);
        cursor.open(depth)?;
        let mut more = !cursor.closes(b'}');
        let mut next = 0;
        while more {
            cursor.peek();
            let (start, unknown) = (cursor.position(), context.unknown_fields);
            let key = cursor.key()?;
            match self.find(&key, next) {
                Some(position) => {
                    next = position + 1;
                    let field = &self.fields[position];
                    match field.column.and_then(|column| columns.get_mut(column)) {
                        Some(builder) => {
                            if builder.len() > before {
                                builder.truncate(before); // of duplicate keys the last counts
                            }
                            field
                                .node
                                .decode(builder, cursor, depth + 1, context)
                                .map_err(|fault| fault.inside(&field.name))?;
                        }
                        None => field.pass(cursor, depth + 1, context)?,
                    }
                }
                None => {
                    context.unknown(&key)?;
                    cursor.skip(depth + 1)?;
                }
            }
            if depth == 0
                && context.unknown_fields > unknown
                && context.policy == UnknownFields::Collect
                && self.conceals_all(&key, &context.concealed)
            {
                self.collect(cursor.since(start), &key, &mut context.collected)?;
            }
            more = cursor.continues(b'}')?;
        }
        for column in columns {
            if column.len() == before {
                column.push_null();
            }
        }
        Ok(())
    }
}

impl FieldNode {
    /// Passes a value over that has no column: it counts as unknown if the schema says that it cannot be there.
    fn pass(&self, cursor: &mut Cursor<'_>, depth: usize, context: &mut Context) -> Decoded<()> {
        if matches!(self.node, Node::Null) && cursor.peek() != Some(b'n') {
            context.unknown(&self.name)?;
        }
        cursor.skip(depth)?;
        Ok(())
    }
}

impl Context {
    fn unknown(&mut self, name: &str) -> Decoded<()> {
        if self.policy == UnknownFields::Fail {
            return Err(unknown_field(name));
        }
        self.unknown_fields += 1;
        Ok(())
    }
}

#[cold]
fn unknown_field(name: &str) -> Box<Fault> {
    Fault::new("json.unknown_field", "the schema has no field of this name")
        .inside(name)
        .with_hint("register the producer's schema, or set `unknown_fields` to \"collect\" or \"count\"")
}
