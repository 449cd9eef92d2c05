use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a column comes from, in the names of the source: `/customer/address/zip`.
///
/// A JSON pointer (RFC 6901: `~` is written `~0` and `/` is written `~1`), with `[]` for the elements of a
/// list, `{key}` and `{}` for the keys and values of a map, a trailing `~variant` where one source field feeds
/// several columns, and `@` instead of the first `/` for Kafka's own columns (`@_kafka_headers/[]/name`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(String);

impl FieldPath {
    /// Above the fields of the record's value.
    pub fn value() -> Self {
        Self(String::new())
    }

    /// Above Kafka's own columns.
    pub fn kafka() -> Self {
        Self("@".to_owned())
    }

    /// A field below this path.
    pub fn field(&self, source: &str, variant: Option<&str>) -> Self {
        let mut path = self.0.clone();
        if path != "@" {
            path.push('/');
        }
        for c in source.chars() {
            match c {
                '~' => path.push_str("~0"),
                '/' => path.push_str("~1"),
                c => path.push(c),
            }
        }
        if let Some(variant) = variant {
            path.push('~');
            path.push_str(variant);
        }
        Self(path)
    }

    /// The elements of this list.
    pub fn element(&self) -> Self {
        Self(format!("{}/[]", self.0))
    }

    /// The keys of this map.
    pub fn key(&self) -> Self {
        Self(format!("{}/{{key}}", self.0))
    }

    /// The values of this map.
    pub fn map_value(&self) -> Self {
        Self(format!("{}/{{}}", self.0))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The field of a path in words: that of a key is said to be one, without the mark.
    pub fn describe(path: &str) -> String {
        match key_mark(path) {
            Some(mark) => format!("the key's field `{}{}`", &path[..mark.start], &path[mark.end..]),
            None => format!("field `{path}`"),
        }
    }

    pub(crate) fn is_value_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which field id holds which source field (promise I8). Kept in the ledger, so that a column that another
/// engine renames is found again, and a name, once chosen, stays.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FieldMap(BTreeMap<String, i32>);

impl FieldMap {
    /// The field id of the column that a source field feeds.
    pub fn get(&self, path: &FieldPath) -> Option<i32> {
        self.0.get(path.as_str()).copied()
    }

    /// Paths and field ids, ordered by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i32)> {
        self.0.iter().map(|(path, id)| (path.as_str(), *id))
    }

    /// How many source fields are mapped.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is mapped.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a column holds the value's field that settings call `path`, or a part of it: `customer.email` is
    /// `/customer/email`, and elements and values add no step. Columns of hashes and siblings count as well; those of
    /// keys do not, since settings are the value's.
    pub fn feeds(&self, path: &str) -> bool {
        let is_below = |field: &str| {
            field
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.0
            .keys()
            .filter(|key| key.starts_with('/') && !is_of_key(key))
            .any(|key| is_below(&settings_path(key)))
    }

    /// The first path that the two give different field ids, with this map's id and the other's.
    pub fn contradiction<'a>(&'a self, other: &FieldMap) -> Option<(&'a str, i32, i32)> {
        self.iter().find_map(|(path, id)| match other.0.get(path) {
            Some(theirs) if *theirs != id => Some((path, id, *theirs)),
            _ => None,
        })
    }

    pub(crate) fn insert(&mut self, path: &FieldPath, id: i32) {
        self.0.insert(path.as_str().to_owned(), id);
    }

    pub(crate) fn renumber(&mut self, new_id: impl Fn(i32) -> i32) {
        for id in self.0.values_mut() {
            *id = new_id(*id);
        }
    }
}

/// Whether a path is that of a field of the record's key, whose first step has the variant `key`, or one for siblings.
pub(crate) fn is_of_key(path: &str) -> bool {
    key_mark(path).is_some()
}

/// Where the mark of a key's field is: a `~` within a name is written `~0`, and no other variant begins so.
fn key_mark(path: &str) -> Option<std::ops::Range<usize>> {
    let first = path.strip_prefix('/')?.split('/').next()?;
    let start = first.find("~key")? + 1;
    Some(start..first.len() + 1)
}

/// A field's path as settings write it, without the steps of lists and maps and without the variant.
fn settings_path(path: &str) -> String {
    let steps = path
        .split('/')
        .skip(1)
        .filter(|step| !matches!(*step, "[]" | "{}" | "{key}"));
    let names = steps.map(|step| {
        // `~0` and `~1` are a part of the name; any other `~` starts the variant.
        let mut name = String::with_capacity(step.len());
        let mut rest = step;
        while let Some((before, after)) = rest.split_once('~') {
            name.push_str(before);
            match after.as_bytes().first() {
                Some(b'0') => name.push('~'),
                Some(b'1') => name.push('/'),
                _ => return name,
            }
            rest = &after[1..];
        }
        name.push_str(rest);
        name
    });
    names.collect::<Vec<_>>().join(".")
}

impl FromIterator<(String, i32)> for FieldMap {
    fn from_iter<I: IntoIterator<Item = (String, i32)>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_unambiguous() {
        let root = FieldPath::value();
        let cases = [
            (root.field("customer", None).field("zip", None), "/customer/zip"),
            (root.field("a/b~c", None), "/a~1b~0c"),
            (root.field("price", Some("double")), "/price~double"),
            (root.field("price~double", None), "/price~0double"),
            (
                root.field("items", None).element().field("sku", None),
                "/items/[]/sku",
            ),
            (root.field("m", None).key(), "/m/{key}"),
            (root.field("m", None).map_value(), "/m/{}"),
            (
                FieldPath::kafka()
                    .field("_kafka_headers", None)
                    .element()
                    .field("name", None),
                "@_kafka_headers/[]/name",
            ),
            (root.field("", None), "/"),
        ];
        for (path, expected) in cases {
            assert_eq!(path.as_str(), expected);
        }
    }

    #[test]
    fn settings_find_the_columns_of_their_fields() {
        let paths = [
            "/customer/email~sha256",
            "/items/[]/price",
            "/m/{}/v",
            "/a~1b~0c",
            "/s~string",
            "/id~key",
            "/of/it~key",
            "@_kafka_key",
        ];
        let map: FieldMap = paths.iter().map(|path| ((*path).to_owned(), 1)).collect();
        for there in [
            "customer.email",
            "customer",
            "items",
            "items.price",
            "m.v",
            "m",
            "a/b~c",
            "s",
            "of.it",
        ] {
            assert!(map.feeds(there), "{there}");
        }
        for missing in [
            "customer.mail",
            "cust",
            "price",
            "email",
            "_kafka_key",
            "id",
            "",
            "items.price.x",
        ] {
            assert!(!map.feeds(missing), "{missing}");
        }
    }

    #[test]
    fn the_fields_of_keys_are_told_apart_and_shown_without_their_mark() {
        let root = FieldPath::value();
        for (path, of_key, expected) in [
            (root.field("id", Some("key")), true, "the key's field `/id`"),
            (
                root.field("id", Some("key_string")),
                true,
                "the key's field `/id`",
            ),
            (
                root.field("a~b", Some("key")).element().field("c", None),
                true,
                "the key's field `/a~0b/[]/c`",
            ),
            (root.field("~key", None), false, "field `/~0key`"),
            (root.field("id", Some("string")), false, "field `/id~string`"),
            (
                root.field("a", None).field("b", Some("key")),
                false,
                "field `/a/b~key`",
            ),
            (
                FieldPath::kafka().field("_kafka_key", None),
                false,
                "field `@_kafka_key`",
            ),
        ] {
            assert_eq!(is_of_key(path.as_str()), of_key, "{path}");
            assert_eq!(FieldPath::describe(path.as_str()), expected);
        }
    }

    #[test]
    fn contradictions_are_found_and_gaps_are_none() {
        let map = |entries: &[(&str, i32)]| {
            entries
                .iter()
                .map(|(p, id)| ((*p).to_owned(), *id))
                .collect::<FieldMap>()
        };
        let ours = map(&[("/a", 1), ("/b", 2)]);
        assert_eq!(ours.contradiction(&map(&[("/b", 2), ("/c", 3)])), None);
        assert_eq!(ours.contradiction(&map(&[("/b", 7)])), Some(("/b", 2, 7)));
        assert_eq!(serde_json::to_string(&ours).unwrap(), r#"{"/a":1,"/b":2}"#);
    }
}
