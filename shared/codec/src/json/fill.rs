use std::collections::HashMap;
use std::io::Write;

use frazil_schema::{Column, ColumnType};
use iceberg::spec::PrimitiveType;

use super::{Node, Tape, scalar};
use crate::builder::{Builder, Values};
use crate::decimal;
use crate::fault::{Decoded, Fault};

/// Which columns the fields of an object go to.
#[derive(Debug, Default)]
pub(crate) struct ObjectPlan {
    fields: Vec<FieldPlan>,
    positions: HashMap<String, usize>,
    /// The column that keeps fields without a column of their own.
    unknown: Option<usize>,
}

/// A field's own column and its siblings, by their place among the object's columns.
#[derive(Debug, Default)]
struct FieldPlan {
    own: Option<(usize, ValuePlan)>,
    siblings: Vec<(&'static str, usize, ValuePlan)>,
}

#[derive(Debug)]
enum ValuePlan {
    Scalar(PrimitiveType),
    Object(ObjectPlan),
    List(Box<ValuePlan>),
    /// Inferred JSON never asks for it.
    Nothing,
}

/// Whether everything in a value found a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Wholly,
    InPart,
}

impl ObjectPlan {
    pub(crate) fn new(columns: &[Column]) -> Self {
        let mut plan = Self::default();
        for (index, column) in columns.iter().enumerate() {
            if column.variant == Some("unknown") {
                plan.unknown = Some(index);
                continue;
            }
            let position = *plan
                .positions
                .entry(column.source.clone())
                .or_insert(plan.fields.len());
            if position == plan.fields.len() {
                plan.fields.push(FieldPlan::default());
            }
            let field = &mut plan.fields[position];
            let value = ValuePlan::new(&column.data_type);
            match column.variant {
                // A hashed field has no other column: its values are strings by now.
                None | Some("sha256") => field.own = Some((index, value)),
                Some(variant) => field.siblings.push((variant, index, value)),
            }
        }
        plan
    }

    /// Pushes one row: the fields of the object at `at`, or nulls if there is none.
    pub(crate) fn push_row(
        &self,
        tape: &Tape<'_>,
        at: Option<usize>,
        builders: &mut [Builder],
    ) -> Decoded<()> {
        let Some(at) = at.filter(|at| matches!(tape.node(*at), Node::Object { .. })) else {
            builders.iter_mut().for_each(Builder::push_null);
            return Ok(());
        };
        let mut leftover = Vec::new();
        self.push_fields(tape, at, builders, Some(&mut leftover))?;
        if let Some(unknown) = self.unknown {
            let builder = &mut builders[unknown];
            if leftover.is_empty() {
                builder.push_null();
            } else {
                leftover.push(b'}');
                push_text(builder, &leftover)?;
            }
        }
        Ok(())
    }

    /// Pushes the object's fields. Those that found no column, wholly or in part, are added to `leftover`.
    fn push_fields(
        &self,
        tape: &Tape<'_>,
        at: usize,
        builders: &mut [Builder],
        mut leftover: Option<&mut Vec<u8>>,
    ) -> Decoded<Stored> {
        let mut values: Vec<Option<usize>> = vec![None; self.fields.len()];
        let mut stored = Stored::Wholly;
        let mut keep = |key: &str, value: usize| {
            stored = Stored::InPart;
            if let Some(leftover) = leftover.as_deref_mut() {
                leftover.push(if leftover.is_empty() { b'{' } else { b',' });
                write_string(leftover, key);
                leftover.push(b':');
                write_json(tape, value, leftover);
            }
        };
        for (key, value) in tape.entries(at) {
            match self.positions.get(key) {
                Some(position) => values[*position] = Some(value), // of duplicate keys the last counts
                None if is_blank(tape, value) => {}
                None => keep(key, value),
            }
        }
        for (field, value) in self.fields.iter().zip(&values) {
            if field.push(tape, *value, builders)? == Stored::InPart
                && let Some(value) = value
            {
                let key = tape.string(value - 1).unwrap_or_default();
                keep(key, *value);
            }
        }
        Ok(stored)
    }
}

impl FieldPlan {
    fn push(&self, tape: &Tape<'_>, value: Option<usize>, builders: &mut [Builder]) -> Decoded<Stored> {
        let value = value.filter(|value| tape.node(*value) != Node::Null);
        let mut stored = Stored::InPart;
        let mut own_takes_it = false;
        if let Some((index, plan)) = &self.own {
            let builder = &mut builders[*index];
            match value {
                Some(value) if plan.takes(tape, value) => {
                    own_takes_it = true;
                    stored = plan.push(tape, value, builder)?;
                }
                _ => builder.push_null(),
            }
        }
        let variant = match value {
            Some(value) if !own_takes_it => {
                Some(scalar(tape.node(value)).map_or("string", |kind| kind.variant()))
            }
            _ => None,
        };
        for (name, index, plan) in &self.siblings {
            match value {
                Some(value) if variant == Some(*name) && plan.takes(tape, value) => {
                    stored = plan.push(tape, value, &mut builders[*index])?;
                }
                _ => builders[*index].push_null(),
            }
        }
        Ok(match value {
            Some(value) if stored == Stored::InPart && !is_blank(tape, value) => Stored::InPart,
            _ => Stored::Wholly,
        })
    }
}

impl ValuePlan {
    fn new(data_type: &ColumnType) -> Self {
        match data_type {
            ColumnType::Primitive(primitive) => Self::Scalar(primitive.clone()),
            ColumnType::Struct(columns) => Self::Object(ObjectPlan::new(columns)),
            ColumnType::List(element) => Self::List(Box::new(Self::new(element))),
            ColumnType::Map(..) | ColumnType::Hashed(_) => Self::Nothing,
        }
    }

    fn takes(&self, tape: &Tape<'_>, at: usize) -> bool {
        match (self, tape.node(at)) {
            (Self::Scalar(PrimitiveType::String), _) => true,
            (Self::Scalar(PrimitiveType::Decimal { precision, scale }), node) => {
                decimal(node, *precision, *scale).is_some()
            }
            (Self::Scalar(primitive), node) => scalar(node).is_some_and(|kind| kind.fits(primitive)),
            (Self::Object(_), Node::Object { .. }) => true,
            (Self::List(element), Node::Array { .. }) => tape
                .elements(at)
                .all(|at| tape.node(at) == Node::Null || element.takes(tape, at)),
            _ => false,
        }
    }

    /// Pushes a value that [`takes`](Self::takes) has said yes to.
    fn push(&self, tape: &Tape<'_>, at: usize, builder: &mut Builder) -> Decoded<Stored> {
        let mut stored = Stored::Wholly;
        match (self, tape.node(at), &mut builder.values) {
            (Self::Scalar(_), Node::Boolean(value), Values::Boolean(values)) => values.append(value),
            (Self::Scalar(_), Node::Integer(value), Values::Long(values)) => values.push(value),
            // Exact: `takes` has seen that it is below 2⁵³.
            #[allow(clippy::cast_precision_loss)]
            (Self::Scalar(_), Node::Integer(value), Values::Double(values)) => values.push(value as f64),
            (Self::Scalar(_), Node::Number(text), Values::Double(values)) => {
                values.push(
                    text.parse()
                        .map_err(|_| Fault::new("json.invalid", "a number is not one"))?,
                );
            }
            (
                Self::Scalar(PrimitiveType::Decimal { precision, scale }),
                node,
                Values::Decimal { values, .. },
            ) => {
                let decimal = decimal(node, *precision, *scale);
                values.push(decimal.ok_or_else(|| Fault::new("json.invalid", "a number is not one"))?);
            }
            (Self::Scalar(_), node, Values::Text(values)) => {
                match (tape.string(at), node) {
                    (Some(text), _) => values.data.extend_from_slice(text.as_bytes()),
                    (None, _) => write_json(tape, at, &mut values.data),
                }
                values.end()?;
            }
            (Self::Object(plan), Node::Object { .. }, Values::Struct(children)) => {
                stored = plan.push_fields(tape, at, children, None)?;
            }
            (Self::List(plan), Node::Array { .. }, Values::List(items)) => {
                for element in tape.elements(at) {
                    if tape.node(element) == Node::Null {
                        items.element.push_null();
                    } else if plan.push(tape, element, &mut items.element)? == Stored::InPart {
                        stored = Stored::InPart;
                    }
                }
                items.end()?;
            }
            _ => {
                return Err(Fault::new(
                    "internal.column_mismatch",
                    "the column was made for another type",
                ));
            }
        }
        builder.valid();
        Ok(stored)
    }
}

/// A number as an unscaled decimal, if it is one exactly.
fn decimal(node: Node<'_>, precision: u32, scale: u32) -> Option<i128> {
    let value = match node {
        Node::Integer(value) => i128::from(value).checked_mul(10i128.checked_pow(scale)?)?,
        Node::Number(text) => decimal::scaled(text, scale).ok()?,
        _ => return None,
    };
    decimal::fits(value, u8::try_from(precision).unwrap_or(38)).then_some(value)
}

fn push_text(builder: &mut Builder, text: &[u8]) -> Decoded<()> {
    if let Values::Text(values) = &mut builder.values {
        values.push(text)?;
        builder.valid();
    }
    Ok(())
}

/// Nothing but nulls, empty objects and empty lists: what waits for a type.
fn is_blank(tape: &Tape<'_>, at: usize) -> bool {
    match tape.node(at) {
        Node::Null => true,
        Node::Object { .. } => tape.entries(at).all(|(_, value)| is_blank(tape, value)),
        Node::Array { .. } => tape.elements(at).all(|element| is_blank(tape, element)),
        _ => false,
    }
}

/// The value's JSON text: as it came, unless something in it is concealed.
fn write_json(tape: &Tape<'_>, at: usize, out: &mut Vec<u8>) {
    match tape.node(at) {
        Node::Object { text: "", .. } => {
            for (index, (key, value)) in tape.entries(at).enumerate() {
                out.push(if index == 0 { b'{' } else { b',' });
                write_string(out, key);
                out.push(b':');
                write_json(tape, value, out);
            }
            out.extend_from_slice(if tape.entries(at).next().is_none() {
                b"{}"
            } else {
                b"}"
            });
            return;
        }
        Node::Array { text: "", .. } => {
            out.push(b'[');
            for (index, element) in tape.elements(at).enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_json(tape, element, out);
            }
            out.push(b']');
            return;
        }
        _ => {}
    }
    // Writing to a Vec never fails.
    let _ = match tape.node(at) {
        Node::Null => out.write_all(b"null"),
        Node::Boolean(value) => write!(out, "{value}"),
        Node::Integer(value) => write!(out, "{value}"),
        Node::Number(text) | Node::Array { text, .. } | Node::Object { text, .. } => {
            out.write_all(text.as_bytes())
        }
        Node::Text(_) | Node::Escaped(_) => {
            write_string(out, tape.string(at).unwrap_or_default());
            Ok(())
        }
    };
}

fn write_string(out: &mut Vec<u8>, text: &str) {
    // A string always has a JSON form, and writing to a Vec never fails.
    let _ = serde_json::to_writer(out, text);
}
