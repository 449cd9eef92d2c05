//! What has to be known about a file's text before the compiler sees it: how deep it nests, and which edition it
//! is. The compiler reads proto2 and proto3; the text of an edition is given to it as proto3, with the same lines and
//! columns, and what features and defaults mean is added afterwards.

use std::borrow::Cow;

use frazil_core::Result;

use super::{MAX_SCHEMA_DEPTH, invalid};

/// A word (name or number), a string or a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    /// With its quotes.
    Text(&'a str),
    Mark(u8),
}

/// The tokens of a file, or of an option's value, with the place where each begins.
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, Token<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        loop {
            let rest = &bytes[self.at..];
            self.at += match rest {
                [] => return None,
                [b'/', b'/', ..] => rest.iter().take_while(|byte| **byte != b'\n').count(),
                [b'/', b'*', ..] => rest[2..]
                    .windows(2)
                    .position(|pair| pair == b"*/")
                    .map_or(rest.len(), |end| end + 4),
                [space, ..] if space.is_ascii_whitespace() => 1,
                _ => break,
            };
        }
        let start = self.at;
        let rest = &bytes[start..];
        let is_word =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.') || *byte >= 0x80;
        let token = match rest[0] {
            quote @ (b'"' | b'\'') => {
                let mut end = 1;
                while end < rest.len() && rest[end] != quote && rest[end] != b'\n' {
                    end += if rest[end] == b'\\' { 2 } else { 1 };
                }
                // A backslash may stand before a character of several bytes.
                let mut end = (start + end + 1).min(bytes.len());
                while !self.text.is_char_boundary(end) {
                    end += 1;
                }
                self.at = end;
                Token::Text(&self.text[start..end])
            }
            byte if is_word(&byte) => {
                self.at += rest.iter().take_while(|byte| is_word(byte)).count();
                Token::Word(&self.text[start..self.at])
            }
            mark => {
                self.at += 1;
                Token::Mark(mark)
            }
        };
        Some((start, token))
    }
}

/// The text for the compiler, and whether the file is an edition.
pub(super) fn prepare<'a>(name: &str, text: &'a str) -> Result<(Cow<'a, str>, bool)> {
    check_depth(name, text)?;
    let mut tokens = Tokens::new(text);
    let head: Vec<(usize, Token<'_>)> = tokens.by_ref().take(4).collect();
    let (start, edition, edition_at) = match head[..] {
        [
            (start, Token::Word("edition")),
            (_, Token::Mark(b'=')),
            (at, Token::Text(edition)),
            (_, Token::Mark(b';')),
        ] => (start, edition, at),
        _ => return Ok((Cow::Borrowed(text), false)),
    };
    if edition.trim_matches(['"', '\'']) != "2023" {
        return Err(invalid(format!(
            "`{name}` is of the edition {edition}, which is not known"
        ))
        .with_hint("use proto2, proto3 or edition 2023"));
    }
    let mut out = String::with_capacity(text.len() + 64);
    out.push_str(&text[..start]);
    out.push_str("syntax");
    out.push_str(&text[start + "edition".len()..edition_at]);
    out.push_str("\"proto3\"");
    let mut done = edition_at + edition.len();
    let (mut brackets, mut reserved, mut starts_statement) = (0usize, false, true);
    let mut rest = tokens.peekable();
    while let Some((at, token)) = rest.next() {
        let next = rest.peek().map(|(_, token)| *token);
        match token {
            Token::Mark(b'[') => brackets += 1,
            Token::Mark(b']') => brackets = brackets.saturating_sub(1),
            Token::Mark(b';') => reserved = false,
            // An explicit default, which proto3 does not have and no column needs, becomes an unknown option.
            Token::Word("default") if brackets == 1 && next == Some(Token::Mark(b'=')) => {
                out.push_str(&text[done..at]);
                out.push_str("_efault");
                done = at + "default".len();
            }
            Token::Word("reserved") if starts_statement && next != Some(Token::Mark(b'=')) => reserved = true,
            // Editions reserve names without quotes.
            Token::Word(word) if reserved && is_name(word) => {
                out.push_str(&text[done..at]);
                out.push('"');
                out.push_str(word);
                out.push('"');
                done = at + word.len();
            }
            _ => {}
        }
        starts_statement = matches!(token, Token::Mark(b';' | b'{' | b'}'));
    }
    out.push_str(&text[done..]);
    Ok((Cow::Owned(out), true))
}

/// Whether a word among what is reserved is a name, and not a part of a range of numbers.
fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_') && word != "to" && word != "max"
}

/// The compiler recurses into what nests.
fn check_depth(name: &str, text: &str) -> Result<()> {
    let mut depth = 0usize;
    for (_, token) in Tokens::new(text) {
        match token {
            Token::Mark(b'{' | b'[' | b'(' | b'<') => depth += 1,
            Token::Mark(b'}' | b']' | b')' | b'>') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_SCHEMA_DEPTH {
            return Err(invalid(format!(
                "`{name}` nests more than {MAX_SCHEMA_DEPTH} levels deep"
            )));
        }
    }
    Ok(())
}
