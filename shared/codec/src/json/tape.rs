use crate::fault::{Decoded, Fault};

/// Values nested deeper than this are poison: every walk recurses, and serde_json stops there as well.
pub(crate) const MAX_DEPTH: usize = 128;

/// JSON values, flattened in document order and borrowed from their text. Numbers keep their text, so an integer
/// never passes through a double. One tape serves all records of an event: they are walked twice, first to choose
/// columns and then to fill them, and parsed once.
///
/// The grammar is RFC 8259's, without extensions. Duplicate keys are kept; whoever reads takes the last.
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
    /// The text of the whole, and the index after its last element.
    Array {
        text: &'a str,
        end: usize,
    },
    /// The text of the whole, and the index after its last value. Keys and values alternate.
    Object {
        text: &'a str,
        end: usize,
    },
}

impl<'a> Tape<'a> {
    /// Appends a document; answers where its value is. A faulty one leaves nothing behind.
    pub(crate) fn parse(&mut self, document: &'a [u8]) -> Decoded<usize> {
        let (at, escaped) = (self.nodes.len(), self.escaped.len());
        let parsed = std::str::from_utf8(document)
            .map_err(|error| Fault::new("json.invalid", format!("the JSON is not UTF-8: {error}")))
            .and_then(|text| {
                let mut parser = Parser {
                    text,
                    bytes: document,
                    at: 0,
                    tape: self,
                };
                parser.value(0)?;
                parser.space();
                if parser.at < document.len() {
                    Err(parser.expected("the end of the text"))
                } else {
                    Ok(at)
                }
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
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    tape: &'t mut Tape<'a>,
}

impl<'a> Parser<'a, '_> {
    fn value(&mut self, depth: usize) -> Decoded<()> {
        self.space();
        let start = self.at;
        let node = match self.bytes.get(self.at) {
            Some(b'{') => return self.object(depth),
            Some(b'[') => return self.array(depth),
            Some(b'"') => self.string()?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'n') => self.word("null", Node::Null)?,
            Some(b't') => self.word("true", Node::Boolean(true))?,
            Some(b'f') => self.word("false", Node::Boolean(false))?,
            _ => {
                self.at = start;
                return Err(self.expected("a value"));
            }
        };
        self.tape.nodes.push(node);
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Decoded<()> {
        let (start, node) = self.open(depth)?;
        if !self.closes(b'}') {
            loop {
                self.space();
                if self.bytes.get(self.at) != Some(&b'"') {
                    return Err(self.expected("a key"));
                }
                let key = self.string()?;
                self.tape.nodes.push(key);
                self.space();
                if self.bytes.get(self.at) != Some(&b':') {
                    return Err(self.expected("`:`"));
                }
                self.at += 1;
                self.value(depth + 1)?;
                if !self.continues(b'}')? {
                    break;
                }
            }
        }
        self.tape.nodes[node] = Node::Object {
            text: &self.text[start..self.at],
            end: self.tape.nodes.len(),
        };
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Decoded<()> {
        let (start, node) = self.open(depth)?;
        if !self.closes(b']') {
            loop {
                self.value(depth + 1)?;
                if !self.continues(b']')? {
                    break;
                }
            }
        }
        self.tape.nodes[node] = Node::Array {
            text: &self.text[start..self.at],
            end: self.tape.nodes.len(),
        };
        Ok(())
    }

    fn open(&mut self, depth: usize) -> Decoded<(usize, usize)> {
        if depth >= MAX_DEPTH {
            return Err(Fault::new(
                "json.too_deep",
                format!("the JSON is nested more than {MAX_DEPTH} levels deep"),
            ));
        }
        let start = self.at;
        self.at += 1;
        self.tape.nodes.push(Node::Null); // its place; the end is not known yet
        Ok((start, self.tape.nodes.len() - 1))
    }

    fn closes(&mut self, close: u8) -> bool {
        self.space();
        let closes = self.bytes.get(self.at) == Some(&close);
        self.at += usize::from(closes);
        closes
    }

    /// Whether a comma follows; otherwise it must be the end.
    fn continues(&mut self, close: u8) -> Decoded<bool> {
        self.space();
        match self.bytes.get(self.at) {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if *byte == close => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.expected(if close == b'}' { "`,` or `}`" } else { "`,` or `]`" })),
        }
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str, node: Node<'a>) -> Decoded<Node<'a>> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        Ok(node)
    }

    fn string(&mut self) -> Decoded<Node<'a>> {
        let start = self.at;
        let mut escapes = false;
        self.at += 1;
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escapes = true;
                    self.at += 2;
                }
                Some(0..0x20) => return Err(self.expected("no control character in a string")),
                Some(_) => self.at += 1,
                None => return Err(self.expected("the string's end")),
            }
        }
        self.at += 1;
        if !escapes {
            return Ok(Node::Text(&self.text[start + 1..self.at - 1]));
        }
        let unescaped = serde_json::from_str(&self.text[start..self.at]).map_err(|_| {
            self.at = start;
            self.expected("no invalid escape in the string")
        })?;
        self.tape.escaped.push(unescaped);
        Ok(Node::Escaped(self.tape.escaped.len() - 1))
    }

    fn number(&mut self) -> Decoded<Node<'a>> {
        let start = self.at;
        self.at += usize::from(self.bytes[self.at] == b'-');
        match self.bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        let mut integer = true;
        if self.bytes.get(self.at) == Some(&b'.') {
            integer = false;
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            integer = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        Ok(match text.parse() {
            Ok(value) if integer => Node::Integer(value),
            _ => Node::Number(text),
        })
    }

    fn digits(&mut self) -> Decoded<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.bytes.get(self.at) {
            self.at += 1;
        }
        if self.at == start {
            Err(self.expected("a digit"))
        } else {
            Ok(())
        }
    }

    #[cold]
    fn expected(&self, what: &str) -> Box<Fault> {
        let before = &self.bytes[..self.at.min(self.bytes.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        Fault::new(
            "json.invalid",
            format!("line {line}, column {column}: expected {what}"),
        )
    }
}

#[cfg(test)]
mod tests;
