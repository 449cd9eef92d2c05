//! Fields that settings exclude or hash are in no text either: not in that of unknown fields.

use super::{Node, ObjectNode};
use crate::fault::Decoded;
use crate::json::cursor::Cursor;

impl ObjectNode {
    /// Keeps a field of the root, of which a part has no column: key and value as they came, but for what is
    /// concealed.
    pub(super) fn collect(&self, entry: &str, key: &str, out: &mut Vec<u8>) -> Decoded<()> {
        let field = self.field(key);
        if field.is_some_and(|field| field.concealed) {
            return Ok(());
        }
        out.push(if out.is_empty() { b'{' } else { b',' });
        match field {
            Some(field) if field.node.conceals() => {
                let mut cursor = Cursor::of_text(entry);
                cursor.key()?;
                out.extend_from_slice(cursor.since(0).as_bytes());
                field.node.copy(&mut cursor, 1, out)?;
            }
            _ => out.extend_from_slice(entry.as_bytes()),
        }
        Ok(())
    }

    /// Whether everything that the settings conceal of the root's field `key` is known here, so that a copy leaves it
    /// out. What the schema does not have, nobody could find in the text again.
    pub(super) fn conceals_all(&self, key: &str, concealed: &[String]) -> bool {
        let mut of_key = concealed.iter().filter(|path| {
            path.strip_prefix(key)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        of_key.all(|path| self.knows(path))
    }

    fn knows(&self, path: &str) -> bool {
        self.fields
            .iter()
            .any(|field| match path.strip_prefix(&field.name) {
                Some("") => field.concealed,
                Some(rest) => {
                    field.concealed || rest.strip_prefix('.').is_some_and(|rest| field.node.knows(rest))
                }
                None => false,
            })
    }

    /// Copies an object without what is concealed in it.
    fn copy(&self, cursor: &mut Cursor<'_>, depth: usize, out: &mut Vec<u8>) -> Decoded<()> {
        let mut copied = false;
        copy_items(cursor, depth, [b'{', b'}'], out, |cursor, out| {
            let start = cursor.position();
            let key = cursor.key()?;
            let field = self.field(&key);
            if field.is_some_and(|field| field.concealed) {
                cursor.skip(depth + 1)?;
                return Ok(());
            }
            if std::mem::replace(&mut copied, true) {
                out.push(b',');
            }
            out.extend_from_slice(cursor.since(start).as_bytes());
            match field {
                Some(field) => field.node.copy(cursor, depth + 1, out),
                None => {
                    out.extend_from_slice(cursor.skip(depth + 1)?.as_bytes());
                    Ok(())
                }
            }
        })
    }
}

impl Node {
    fn knows(&self, path: &str) -> bool {
        match self {
            Self::Object(object) => object.knows(path),
            Self::Map(inner) | Self::List(inner) => inner.knows(path),
            Self::Excluded | Self::Null | Self::Scalar(_) | Self::Any => false,
        }
    }

    /// Whether a field inside is concealed.
    pub(super) fn conceals(&self) -> bool {
        match self {
            Self::Object(object) => object.conceals,
            Self::Map(inner) | Self::List(inner) => inner.conceals(),
            Self::Excluded | Self::Null | Self::Scalar(_) | Self::Any => false,
        }
    }

    /// Copies a value without what is concealed in it.
    fn copy(&self, cursor: &mut Cursor<'_>, depth: usize, out: &mut Vec<u8>) -> Decoded<()> {
        let mut copied = false;
        let mut comma = |out: &mut Vec<u8>| {
            if std::mem::replace(&mut copied, true) {
                out.push(b',');
            }
        };
        match (self, cursor.peek()) {
            (Self::Object(object), Some(b'{')) if object.conceals => object.copy(cursor, depth, out),
            (Self::Map(values), Some(b'{')) if values.conceals() => {
                copy_items(cursor, depth, [b'{', b'}'], out, |cursor, out| {
                    comma(out);
                    let start = cursor.position();
                    cursor.key()?;
                    out.extend_from_slice(cursor.since(start).as_bytes());
                    values.copy(cursor, depth + 1, out)
                })
            }
            (Self::List(element), Some(b'[')) if element.conceals() => {
                copy_items(cursor, depth, [b'[', b']'], out, |cursor, out| {
                    comma(out);
                    element.copy(cursor, depth + 1, out)
                })
            }
            _ => {
                out.extend_from_slice(cursor.skip(depth)?.as_bytes());
                Ok(())
            }
        }
    }
}

/// Copies an object or array item by item, in these brackets.
fn copy_items<'a>(
    cursor: &mut Cursor<'a>,
    depth: usize,
    [open, close]: [u8; 2],
    out: &mut Vec<u8>,
    mut copy: impl FnMut(&mut Cursor<'a>, &mut Vec<u8>) -> Decoded<()>,
) -> Decoded<()> {
    cursor.open(depth)?;
    out.push(open);
    let mut more = !cursor.closes(close);
    while more {
        cursor.peek(); // past the white space
        copy(cursor, out)?;
        more = cursor.continues(close)?;
    }
    out.push(close);
    Ok(())
}
