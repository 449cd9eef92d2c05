use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result};

macro_rules! name {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $type(String);

        impl $type {
            /// Takes the name as it is.
            pub fn new(name: impl Into<String>) -> Self {
                Self(name.into())
            }

            /// The name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $type {
            fn from(name: &str) -> Self {
                Self::new(name)
            }
        }
    };
}

name! {
    /// A Kafka cluster, by the name that the configuration gives it (not its ARN or brokers: those change).
    SourceName
}
name! {
    /// A Kafka topic, exactly as Kafka spells it.
    TopicName
}
name! {
    /// An Iceberg namespace: a Glue database.
    NamespaceName
}

name! {
    /// A schema registry, by the name that the configuration gives it.
    RegistryName
}

/// A table in a namespace, written `namespace.table`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TableName {
    namespace: NamespaceName,
    table: String,
}

impl TableName {
    /// Both parts must be non-empty and hold only `[a-z0-9_]`, at most 255 of them: what Glue and Athena can name.
    pub fn new(namespace: &str, table: &str) -> Result<Self> {
        for part in [namespace, table] {
            let fits = !part.is_empty()
                && part.len() <= 255
                && part
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
            if !fits {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    "name a table",
                    format!("`{namespace}.{table}`: `{part}` is not a name that Glue and Athena accept"),
                )
                .with_hint("use 1 to 255 of a-z, 0-9 and _"));
            }
        }
        Ok(Self {
            namespace: NamespaceName::new(namespace),
            table: table.to_owned(),
        })
    }

    /// The namespace.
    pub fn namespace(&self) -> &NamespaceName {
        &self.namespace
    }

    /// The table's own name.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The table that takes this table's dead letters.
    pub fn dead_letters(&self) -> Result<Self> {
        Self::new(self.namespace.as_str(), &format!("{}_dead_letters", self.table))
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.namespace, self.table)
    }
}

impl TryFrom<String> for TableName {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        match name.split_once('.') {
            Some((namespace, table)) => Self::new(namespace, table),
            None => Err(Error::new(
                ErrorKind::Invalid,
                "name a table",
                format!("`{name}` has no namespace"),
            )
            .with_hint("write it as namespace.table")),
        }
    }
}

impl From<TableName> for String {
    fn from(name: TableName) -> Self {
        name.to_string()
    }
}

/// `name` with every character outside `[A-Za-z0-9_]` replaced by `_`; an empty name becomes `_`.
/// Case is kept: the caller decides about it.
pub fn safe_name(name: &str) -> String {
    if name.is_empty() {
        return "_".to_owned();
    }
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect()
}

/// Gives each name of one level a name of its own: a clash gets `_2`, `_3` … in the order asked.
#[derive(Debug, Default)]
pub struct SafeNames {
    taken: HashSet<String>,
}

impl SafeNames {
    /// Marks a name as taken, so that later ones avoid it.
    pub fn reserve(&mut self, name: impl Into<String>) {
        self.taken.insert(name.into());
    }

    /// Whether a name is taken.
    pub fn is_claimed(&self, name: &str) -> bool {
        self.taken.contains(name)
    }

    /// `wanted` itself, or with the first free suffix.
    pub fn claim(&mut self, wanted: String) -> String {
        if self.taken.insert(wanted.clone()) {
            return wanted;
        }
        let mut suffix = 2u32;
        loop {
            let candidate = format!("{wanted}_{suffix}");
            if self.taken.insert(candidate.clone()) {
                return candidate;
            }
            suffix += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clashes_get_suffixes_in_order() {
        let mut names = SafeNames::default();
        let given: Vec<String> = ["a", "a", "a_2", "a", ""]
            .map(|name| names.claim(safe_name(name)))
            .into();
        assert_eq!(given, ["a", "a_2", "a_2_2", "a_3", "_"]);
    }

    #[test]
    fn table_names_are_what_glue_accepts() {
        assert!(TableName::new("kafka", "orders_2").is_ok());
        for (namespace, table) in [("kafka", "Orders"), ("", "orders"), ("kafka", "a.b"), ("k", "é")] {
            assert!(TableName::new(namespace, table).is_err(), "{namespace}.{table}");
        }
    }
}
