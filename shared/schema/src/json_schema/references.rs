use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use super::document::Document;

/// The schemas that a `$ref` can name: each document, and inside them each schema with an `$id` or an anchor
/// (JSON Schema Core, “Schema Identification”, “Embedded Schemas”).
#[derive(Debug, Default)]
pub(super) struct References<'a> {
    by_uri: HashMap<String, Place<'a>>,
}

/// A schema, and how to read references in it.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub(super) schema: &'a Document,
    /// The URI that references are relative to; empty if nobody gave one.
    pub(super) base: Rc<str>,
    pub(super) draft: Draft,
}

/// What the drafts do differently, as far as types go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Draft {
    /// `id` instead of `$id`; beside `$ref` nothing counts.
    Four,
    /// Beside `$ref` nothing counts.
    SixOrSeven,
    /// 2019-09 and 2020-12: what is beside `$ref` counts too.
    Modern,
}

impl Draft {
    /// The draft that `$schema` names; without one, `enclosing`.
    fn of(schema: &Document, enclosing: Self) -> Self {
        match schema.get("$schema").and_then(Document::as_str) {
            Some(uri) if uri.contains("draft-04") => Self::Four,
            Some(uri) if uri.contains("draft-06") || uri.contains("draft-07") => Self::SixOrSeven,
            Some(_) => Self::Modern,
            None => enclosing,
        }
    }

    fn id(self, schema: &Document) -> Option<&str> {
        let keyword = if self == Self::Four { "id" } else { "$id" };
        schema.get(keyword)?.as_str()
    }
}

impl<'a> Place<'a> {
    /// A schema inside this one. An `$id` moves the base.
    pub(super) fn inside(&self, schema: &'a Document) -> Self {
        let draft = Draft::of(schema, self.draft);
        let base = match draft.id(schema) {
            // `#name` is an anchor, and `#/a/b` what some generators write without a meaning.
            Some(id) if !id.starts_with('#') => Rc::from(resolve(&self.base, without_fragment(id)).as_str()),
            _ => self.base.clone(),
        };
        Self { schema, base, draft }
    }
}

impl<'a> References<'a> {
    /// Adds a document under the name that others have for it. Answers where its schema is.
    pub(super) fn add(&mut self, name: &str, document: &'a Document) -> Place<'a> {
        let name = without_fragment(name);
        let outside = Place {
            schema: document,
            base: Rc::from(name),
            draft: Draft::Modern,
        };
        let root = outside.inside(document);
        self.by_uri.entry(name.to_owned()).or_insert_with(|| root.clone());
        self.index(&root);
        root
    }

    fn index(&mut self, place: &Place<'a>) {
        let fields = match place.schema {
            Document::Array(items) => {
                return items.iter().for_each(|item| self.index(&place.inside(item)));
            }
            Document::Object(fields) => fields,
            _ => return,
        };
        let mut names = Vec::new();
        if let Some(id) = place.draft.id(place.schema) {
            match id.strip_prefix('#') {
                Some(anchor) => names.push(format!("{}#{anchor}", place.base)),
                None => names.push(place.base.as_ref().to_owned()),
            }
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(anchor) = place.schema.get(keyword).and_then(Document::as_str) {
                names.push(format!("{}#{anchor}", place.base));
            }
        }
        for name in names {
            self.by_uri.entry(name).or_insert_with(|| place.clone());
        }
        for (keyword, value) in fields {
            // Values, not schemas.
            if !matches!(keyword.as_str(), "enum" | "const" | "default" | "examples") {
                self.index(&place.inside(value));
            }
        }
    }

    /// The schema that `reference` names, seen from `from`.
    pub(super) fn find(&self, reference: &str, from: &Place<'a>) -> Option<Place<'a>> {
        let absolute = resolve(&from.base, reference);
        let (uri, fragment) = absolute.split_once('#').unwrap_or((&absolute, ""));
        // As the standard resolves it, or as the registry has the name.
        let document = self
            .by_uri
            .get(uri)
            .or_else(|| self.by_uri.get(without_fragment(reference)))?;
        if fragment.is_empty() {
            return Some(document.clone());
        }
        if !fragment.starts_with('/') {
            let anchored = self.by_uri.get(&format!("{uri}#{fragment}"));
            return anchored
                .or_else(|| self.by_uri.get(&format!("{}#{fragment}", document.base)))
                .cloned();
        }
        let mut place = document.clone();
        for token in fragment.split('/').skip(1) {
            let token = percent_decoded(token);
            let token = token.replace("~1", "/").replace("~0", "~");
            let inner = match place.schema {
                Document::Object(_) => place.schema.get(&token)?,
                Document::Array(items) => items.get(token.parse::<usize>().ok()?)?,
                _ => return None,
            };
            place = place.inside(inner);
        }
        Some(place)
    }
}

fn without_fragment(uri: &str) -> &str {
    uri.split_once('#').map_or(uri, |(uri, _)| uri)
}

/// `reference` against `base` (RFC 3986, section 5.2).
fn resolve(base: &str, reference: &str) -> String {
    let base = without_fragment(base);
    if reference.is_empty() || base.is_empty() || has_scheme(reference) {
        return if reference.is_empty() { base } else { reference }.to_owned();
    }
    if reference.starts_with('#') {
        return format!("{base}{reference}");
    }
    let scheme_end = if has_scheme(base) {
        base.find(':').map_or(0, |colon| colon + 1)
    } else {
        0
    };
    let (scheme, rest) = base.split_at(scheme_end);
    if reference.starts_with("//") {
        return format!("{scheme}{reference}");
    }
    let authority_end = match rest.strip_prefix("//") {
        Some(inner) => 2 + inner.find(['/', '?']).unwrap_or(inner.len()),
        None => 0,
    };
    let (authority, path) = rest.split_at(authority_end);
    let path = path.split('?').next().unwrap_or_default();
    let suffix = reference.find(['?', '#']).unwrap_or(reference.len());
    let (relative, suffix) = reference.split_at(suffix);
    let joined = if relative.is_empty() {
        path.to_owned()
    } else if relative.starts_with('/') {
        without_dots(relative)
    } else {
        let directory = path.rfind('/').map_or("", |slash| &path[..=slash]);
        let slash = if directory.is_empty() && !authority.is_empty() {
            "/"
        } else {
            ""
        };
        without_dots(&format!("{slash}{directory}{relative}"))
    };
    format!("{scheme}{authority}{joined}{suffix}")
}

fn has_scheme(uri: &str) -> bool {
    let Some((scheme, _)) = uri.split_once(':') else {
        return false;
    };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

fn without_dots(path: &str) -> String {
    if !path.contains("./") && !path.ends_with('.') {
        return path.to_owned();
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." && kept.last().is_some_and(|kept| !kept.is_empty()) {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    kept.join("/")
}

fn percent_decoded(token: &str) -> Cow<'_, str> {
    if !token.contains('%') {
        return Cow::Borrowed(token);
    }
    let bytes = token.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = token
            .get(at + 1..at + 3)
            .filter(|_| bytes[at] == b'%')
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        decoded.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8(decoded).map_or(Cow::Borrowed(token), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve_as_rfc_3986_says() {
        let base = "http://a/b/c/d;p?q";
        // RFC 3986, section 5.4.
        let cases = [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("g?y", "http://a/b/c/g?y"),
            ("g#s", "http://a/b/c/g#s"),
            ("", "http://a/b/c/d;p?q"),
            ("#s", "http://a/b/c/d;p?q#s"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("g;x=1/../y", "http://a/b/c/y"),
        ];
        for (reference, expected) in cases {
            assert_eq!(resolve(base, reference), expected, "{reference}");
        }
        assert_eq!(resolve("", "customer.json#/a"), "customer.json#/a");
        assert_eq!(
            resolve("schemas/order.json", "customer.json"),
            "schemas/customer.json"
        );
        assert_eq!(resolve("urn:uuid:1", "#/a"), "urn:uuid:1#/a");
        assert_eq!(resolve("http://a", "b"), "http://a/b");
    }
}
