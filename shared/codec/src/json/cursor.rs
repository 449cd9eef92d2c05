use std::borrow::Cow;

use crate::fault::{Decoded, Fault};

/// Values nested deeper than this are poison: every walk recurses, and serde_json stops there as well.
pub(crate) const MAX_DEPTH: usize = 128;

/// Reads a JSON text from front to back. The grammar is RFC 8259's, without extensions: no byte order mark, no `NaN`,
/// no lone surrogates. Numbers keep their text, so an integer never passes through a double.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

/// A number as it is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number<'a> {
    /// Digits only, and within 64 bits.
    Integer(i64),
    /// Any other.
    Text(&'a str),
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(document: &'a [u8]) -> Decoded<Self> {
        let text = std::str::from_utf8(document)
            .map_err(|error| Fault::new("json.invalid", format!("the JSON is not UTF-8: {error}")))?;
        Ok(Self::of_text(text))
    }

    pub(crate) fn of_text(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// How many bytes are read.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Goes back to a [`position`](Self::position).
    pub(crate) fn seek(&mut self, position: usize) {
        self.at = position;
    }

    /// What was read since a [`position`](Self::position).
    #[inline]
    pub(crate) fn since(&self, position: usize) -> &'a str {
        &self.text[position..self.at]
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The first byte of what follows the white space.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.byte() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                other => return other,
            }
        }
    }

    /// Whether nothing but white space is left.
    pub(crate) fn finish(&mut self) -> Decoded<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end of the text")),
        }
    }

    /// Goes into an object or array at nesting `depth`, whose first byte was peeked.
    #[inline]
    pub(crate) fn open(&mut self, depth: usize) -> Decoded<()> {
        if depth >= MAX_DEPTH {
            return Err(Fault::new(
                "json.too_deep",
                format!("the JSON is nested more than {MAX_DEPTH} levels deep"),
            ));
        }
        self.at += 1;
        Ok(())
    }

    /// Whether the object or array that was opened is empty; goes out of it then.
    #[inline]
    pub(crate) fn closes(&mut self, close: u8) -> bool {
        let closes = self.peek() == Some(close);
        self.at += usize::from(closes);
        closes
    }

    /// Whether a comma follows; otherwise it must be the end.
    #[inline]
    pub(crate) fn continues(&mut self, close: u8) -> Decoded<bool> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.expected(if close == b'}' { "`,` or `}`" } else { "`,` or `]`" })),
        }
    }

    /// A key, and the colon after it.
    #[inline]
    pub(crate) fn key(&mut self) -> Decoded<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a key"));
        }
        let key = self.string()?;
        if self.peek() != Some(b':') {
            return Err(self.expected("`:`"));
        }
        self.at += 1;
        Ok(key)
    }

    pub(crate) fn null(&mut self) -> Decoded<()> {
        self.word("null")
    }

    pub(crate) fn boolean(&mut self) -> Decoded<bool> {
        if self.byte() == Some(b't') {
            self.word("true")?;
            return Ok(true);
        }
        self.word("false")?;
        Ok(false)
    }

    fn word(&mut self, word: &str) -> Decoded<()> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        Ok(())
    }

    /// A string, whose first byte was peeked; borrowed if nothing in it is escaped.
    #[inline]
    pub(crate) fn string(&mut self) -> Decoded<Cow<'a, str>> {
        let start = self.at;
        self.at += 1;
        self.at += plain(&self.text.as_bytes()[self.at..]);
        if self.byte() == Some(b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(&self.text[start + 1..self.at - 1]));
        }
        self.escaped(start)
    }

    #[inline(never)]
    fn escaped(&mut self, start: usize) -> Decoded<Cow<'a, str>> {
        loop {
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') if self.at + 1 < self.text.len() => self.at += 2,
                Some(0..0x20) => return Err(self.expected("no control character in a string")),
                Some(_) => self.at += 1,
                None => return Err(self.expected("the string's end")),
            }
        }
        self.at += 1;
        // A backslash before a character of several bytes is no boundary, and no JSON either.
        let unescaped = self.text.get(start..self.at).map(serde_json::from_str);
        match unescaped {
            Some(Ok(text)) => Ok(Cow::Owned(text)),
            _ => {
                self.at = start;
                Err(self.expected("no invalid escape in the string"))
            }
        }
    }

    /// A number, whose first byte was peeked.
    #[inline]
    pub(crate) fn number(&mut self) -> Decoded<Number<'a>> {
        let start = self.at;
        let negative = self.byte() == Some(b'-');
        self.at += usize::from(negative);
        let mut value = Some(0i64);
        if self.byte() == Some(b'0') {
            self.at += 1;
        } else {
            let first = self.at;
            while let Some(digit @ b'0'..=b'9') = self.byte() {
                let digit = i64::from(digit - b'0');
                // Downwards, since there is one more below zero.
                value = value.and_then(|value| value.checked_mul(10)?.checked_sub(digit));
                self.at += 1;
            }
            if self.at == first {
                return Err(self.expected("a digit"));
            }
        }
        if let Some(b'.' | b'e' | b'E') = self.byte() {
            self.fraction()?;
            value = None;
        }
        if !negative {
            value = value.and_then(i64::checked_neg);
        }
        Ok(match value {
            Some(value) => Number::Integer(value),
            None => Number::Text(self.since(start)),
        })
    }

    fn fraction(&mut self) -> Decoded<()> {
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Decoded<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.byte() {
            self.at += 1;
        }
        if self.at == start {
            Err(self.expected("a digit"))
        } else {
            Ok(())
        }
    }

    /// Reads a value at nesting `depth`, whatever it is, and answers its text.
    pub(crate) fn skip(&mut self, depth: usize) -> Decoded<&'a str> {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'{') => {
                self.open(depth)?;
                if !self.closes(b'}') {
                    loop {
                        self.key()?;
                        self.skip(depth + 1)?;
                        if !self.continues(b'}')? {
                            break;
                        }
                    }
                }
            }
            Some(b'[') => {
                self.open(depth)?;
                if !self.closes(b']') {
                    loop {
                        self.skip(depth + 1)?;
                        if !self.continues(b']')? {
                            break;
                        }
                    }
                }
            }
            Some(b'"') => {
                self.string()?;
            }
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
            }
            Some(b'n') => self.null()?,
            Some(b't' | b'f') => {
                self.boolean()?;
            }
            _ => return Err(self.expected("a value")),
        }
        Ok(self.since(start))
    }

    #[cold]
    pub(crate) fn expected(&self, what: &str) -> Box<Fault> {
        let bytes = self.text.as_bytes();
        let before = &bytes[..self.at.min(bytes.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        Fault::new(
            "json.invalid",
            format!("line {line}, column {column}: expected {what}"),
        )
    }
}

/// How many bytes a string goes on with before its end, an escape or a control character: eight at a time.
#[inline]
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    /// The high bit of the first zero byte, and perhaps of later ones.
    fn zeros(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word & HIGHS
    }
    let mut at = 0;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        let quotes = zeros(word ^ (ONES * u64::from(b'"')));
        let escapes = zeros(word ^ (ONES * u64::from(b'\\')));
        let controls = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        let ends = quotes | escapes | controls;
        if ends != 0 {
            return at + (ends.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    at + rest.iter().position(ends).unwrap_or(rest.len())
}
