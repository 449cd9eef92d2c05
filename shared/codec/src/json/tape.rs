use std::borrow::Cow;

use super::concealed::{Conceal, Concealed};
use super::cursor::{Cursor, Number};
use crate::fault::Decoded;

/// JSON values, flattened in document order and borrowed from their text. Numbers keep their text, so an integer
/// never passes through a double. One tape serves all records of an event: they are walked twice, first to choose
/// columns and then to fill them, and parsed once. Duplicate keys are kept; whoever reads takes the last.
#[derive(Debug, Default)]
pub(crate) struct Tape<'a> {
    nodes: Vec<Node<'a>>,
    /// Strings that had escapes in them.
    escaped: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Node<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    /// Any other number.
    Number(&'a str),
    Text(&'a str),
    Escaped(usize),
    /// The text of the whole (none if something in it is concealed), and the index after its last element.
    Array {
        text: &'a str,
        end: usize,
    },
    /// The text of the whole (none if something in it is concealed), and the index after its last value. Keys and
    /// values alternate.
    Object {
        text: &'a str,
        end: usize,
    },
}

impl<'a> Tape<'a> {
    /// Appends a document; answers where its value is. A faulty one leaves nothing behind.
    pub(crate) fn parse(&mut self, document: &'a [u8], concealed: &Concealed) -> Decoded<usize> {
        self.parse_after(&[], document, concealed)
    }

    /// Appends a document as the field `value` of an object; answers where that is.
    pub(crate) fn parse_as_field(&mut self, document: &'a [u8], concealed: &Concealed) -> Decoded<usize> {
        let object = Node::Object { text: "", end: 0 };
        let at = self.parse_after(&[object, Node::Text("value")], document, concealed)?;
        self.nodes[at] = Node::Object {
            text: "",
            end: self.nodes.len(),
        };
        Ok(at)
    }

    fn parse_after(
        &mut self,
        before: &[Node<'a>],
        document: &'a [u8],
        concealed: &Concealed,
    ) -> Decoded<usize> {
        let (at, escaped) = (self.nodes.len(), self.escaped.len());
        self.nodes.extend_from_slice(before);
        let parsed = Cursor::new(document).and_then(|cursor| {
            let mut parser = Parser {
                cursor,
                tape: self,
                concealed,
                path: String::new(),
                changes: 0,
            };
            parser.value(0)?;
            parser.cursor.finish()?;
            Ok(at)
        });
        if parsed.is_err() {
            self.nodes.truncate(at);
            self.escaped.truncate(escaped);
        }
        parsed
    }

    pub(crate) fn node(&self, at: usize) -> Node<'a> {
        self.nodes[at]
    }

    /// The string at `at`, if it is one.
    pub(crate) fn string(&self, at: usize) -> Option<&str> {
        match self.nodes[at] {
            Node::Text(text) => Some(text),
            Node::Escaped(index) => Some(&self.escaped[index]),
            _ => None,
        }
    }

    /// The index after the value at `at`.
    fn after(&self, at: usize) -> usize {
        match self.nodes[at] {
            Node::Array { end, .. } | Node::Object { end, .. } => end,
            _ => at + 1,
        }
    }

    fn inside(&self, at: usize) -> std::ops::Range<usize> {
        at + 1..self.after(at)
    }

    /// Where an array's elements are.
    pub(crate) fn elements(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let mut range = self.inside(at);
        std::iter::from_fn(move || {
            let element = range.start;
            (element < range.end).then(|| {
                range.start = self.after(element);
                element
            })
        })
    }

    /// An object's keys, and where their values are.
    pub(crate) fn entries(&self, at: usize) -> impl Iterator<Item = (&str, usize)> + '_ {
        let mut range = self.inside(at);
        std::iter::from_fn(move || {
            let key = range.start;
            (key < range.end).then(|| {
                range.start = self.after(key + 1);
                (self.string(key).unwrap_or_default(), key + 1)
            })
        })
    }
}

struct Parser<'a, 't> {
    cursor: Cursor<'a>,
    tape: &'t mut Tape<'a>,
    concealed: &'t Concealed,
    /// Where the parser is, as the settings write it; only kept if something is concealed.
    path: String,
    /// How many values on the tape are not those of the text.
    changes: usize,
}

impl Parser<'_, '_> {
    fn value(&mut self, depth: usize) -> Decoded<()> {
        let node = match self.cursor.peek() {
            Some(b'{') => return self.object(depth),
            Some(b'[') => return self.array(depth),
            Some(b'"') => return self.string(),
            Some(b'-' | b'0'..=b'9') => match self.cursor.number()? {
                Number::Integer(value) => Node::Integer(value),
                Number::Text(text) => Node::Number(text),
            },
            Some(b'n') => {
                self.cursor.null()?;
                Node::Null
            }
            Some(b't' | b'f') => Node::Boolean(self.cursor.boolean()?),
            _ => return Err(self.cursor.expected("a value")),
        };
        self.tape.nodes.push(node);
        Ok(())
    }

    fn string(&mut self) -> Decoded<()> {
        let string = self.cursor.string()?;
        self.push_string(string);
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Decoded<()> {
        let changes = self.changes;
        let (start, node) = self.open(depth)?;
        if !self.cursor.closes(b'}') {
            loop {
                self.field(depth + 1)?;
                if !self.cursor.continues(b'}')? {
                    break;
                }
            }
        }
        self.tape.nodes[node] = Node::Object {
            text: self.text_since(start, changes),
            end: self.tape.nodes.len(),
        };
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Decoded<()> {
        let changes = self.changes;
        let (start, node) = self.open(depth)?;
        if !self.cursor.closes(b']') {
            loop {
                self.value(depth + 1)?;
                if !self.cursor.continues(b']')? {
                    break;
                }
            }
        }
        self.tape.nodes[node] = Node::Array {
            text: self.text_since(start, changes),
            end: self.tape.nodes.len(),
        };
        Ok(())
    }

    fn open(&mut self, depth: usize) -> Decoded<(usize, usize)> {
        let start = self.cursor.position();
        self.cursor.open(depth)?;
        self.tape.nodes.push(Node::Null); // its place; the end is not known yet
        Ok((start, self.tape.nodes.len() - 1))
    }
}

impl<'a> Parser<'a, '_> {
    /// A field of an object, whose value is at nesting `depth`.
    fn field(&mut self, depth: usize) -> Decoded<()> {
        let key = self.cursor.key()?;
        if self.concealed.is_empty() {
            self.push_string(key);
            return self.value(depth);
        }
        let outside = self.path.len();
        if depth > 1 {
            self.path.push('.');
        }
        self.path.push_str(&key);
        match self.concealed.of(&self.path) {
            Some(Conceal::LeaveOut) => {
                self.changes += 1;
                self.cursor.skip(depth)?;
            }
            Some(Conceal::Hash) => {
                self.changes += 1;
                self.push_string(key);
                self.hashed(depth)?;
            }
            None => {
                self.push_string(key);
                self.value(depth)?;
            }
        }
        self.path.truncate(outside);
        Ok(())
    }

    /// A value as its hash: a list as those of its elements, null as itself.
    fn hashed(&mut self, depth: usize) -> Decoded<()> {
        let hash = match self.cursor.peek() {
            Some(b'n') => {
                self.cursor.null()?;
                self.tape.nodes.push(Node::Null);
                return Ok(());
            }
            Some(b'[') => {
                let (_, node) = self.open(depth)?;
                if !self.cursor.closes(b']') {
                    loop {
                        self.hashed(depth + 1)?;
                        if !self.cursor.continues(b']')? {
                            break;
                        }
                    }
                }
                self.tape.nodes[node] = Node::Array {
                    text: "",
                    end: self.tape.nodes.len(),
                };
                return Ok(());
            }
            Some(b'"') => self.concealed.hash(&self.cursor.string()?),
            _ => self.concealed.hash(self.cursor.skip(depth)?),
        };
        self.push_string(Cow::Owned(hash));
        Ok(())
    }

    fn text_since(&self, start: usize, changes: usize) -> &'a str {
        if self.changes == changes {
            self.cursor.since(start)
        } else {
            ""
        }
    }

    fn push_string(&mut self, string: Cow<'a, str>) {
        self.tape.nodes.push(match string {
            Cow::Borrowed(text) => Node::Text(text),
            Cow::Owned(text) => {
                self.tape.escaped.push(text);
                Node::Escaped(self.tape.escaped.len() - 1)
            }
        });
    }
}

#[cfg(test)]
mod tests;
