use frazil_schema::{JsonScalar, JsonShape};

use crate::decimal;
use crate::fault::Fault;

mod calendar;
mod concealed;
mod cursor;
mod decode;
mod fill;
mod number;
mod scalar;
mod tape;

pub(crate) use concealed::Concealed;
pub(crate) use decode::JsonPlan;
pub(crate) use fill::ObjectPlan;
pub(crate) use tape::{Node, Tape};

/// Records what a parsed value holds, so that columns can be chosen for it.
pub(crate) fn observe(tape: &Tape<'_>, at: usize, shape: &mut JsonShape) {
    match tape.node(at) {
        Node::Object { .. } => {
            shape.see_object();
            for (key, value) in tape.entries(at) {
                observe(tape, value, shape.field(key));
            }
        }
        Node::Array { .. } => {
            let elements = shape.see_array();
            for element in tape.elements(at) {
                observe(tape, element, elements);
            }
        }
        node => shape_scalar(node, shape),
    }
}

fn shape_scalar(node: Node<'_>, shape: &mut JsonShape) {
    if let Some(scalar) = scalar(node) {
        shape.see_scalar(scalar);
    }
    match node {
        Node::Integer(value) => {
            let whole = value.unsigned_abs().checked_ilog10().map_or(0, |log| log + 1);
            shape.see_digits(whole, 0);
        }
        Node::Number(text) => {
            let (whole, fraction) = decimal::digits(text);
            shape.see_digits(whole, fraction);
        }
        _ => {}
    }
}

/// What kind of scalar a node is; `None` for null, objects and arrays.
pub(crate) fn scalar(node: Node<'_>) -> Option<JsonScalar> {
    /// A double holds every integer up to here.
    const EXACT: u64 = 1 << 53;
    Some(match node {
        Node::Boolean(_) => JsonScalar::Boolean,
        Node::Integer(value) if value.unsigned_abs() <= EXACT => JsonScalar::Integer,
        Node::Integer(_) => JsonScalar::WideInteger,
        Node::Number(text) if is_integer(text) => JsonScalar::HugeNumber,
        Node::Number(text) => match text.parse::<f64>() {
            Ok(value) if value.is_finite() => JsonScalar::Fraction,
            _ => JsonScalar::HugeNumber,
        },
        Node::Text(_) | Node::Escaped(_) => JsonScalar::String,
        Node::Null | Node::Object { .. } | Node::Array { .. } => return None,
    })
}

/// Whether a document can only be an object or null.
pub(crate) fn is_object_or_null(document: &[u8]) -> bool {
    let first = document.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(first, Some(b'{' | b'n'))
}

/// A record that is a scalar or a list where fields are wanted.
#[cold]
pub(crate) fn not_an_object() -> Box<Fault> {
    Fault::new("json.not_an_object", "the JSON value is not an object")
        .with_hint("only an object's fields can become columns")
}

fn is_integer(text: &str) -> bool {
    !text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
}
