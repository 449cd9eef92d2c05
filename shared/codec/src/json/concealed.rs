use std::collections::HashMap;

use frazil_schema::Mapping;

use crate::HashKey;

/// What must not be read from JSON whose columns come from what arrives: wherever a value goes, a column, a sibling or
/// a text that holds it, it is left out or hashed before it gets there.
#[derive(Debug, Default)]
pub(crate) struct Concealed {
    /// By path, as the settings write it.
    fields: HashMap<String, Conceal>,
    key: Option<HashKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conceal {
    LeaveOut,
    Hash,
}

impl Concealed {
    pub(crate) fn new(mapping: &Mapping, key: Option<HashKey>) -> Self {
        let conceal = mapping.fields.iter().filter_map(|(path, field)| {
            let how = match (field.exclude, field.hash) {
                (true, _) => Conceal::LeaveOut,
                (false, Some(_)) => Conceal::Hash,
                (false, None) => return None,
            };
            Some((path.clone(), how))
        });
        Self {
            fields: conceal.collect(),
            key,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Whether a field is to be hashed.
    pub(crate) fn hashes(&self) -> bool {
        self.fields.values().any(|conceal| *conceal == Conceal::Hash)
    }

    pub(crate) fn of(&self, path: &str) -> Option<Conceal> {
        self.fields.get(path).copied()
    }

    /// What is stored instead of the text. Without a key nothing that was hashed is written.
    pub(crate) fn hash(&self, text: &str) -> String {
        self.key
            .as_ref()
            .map(|key| crate::hash::hash_text(text.as_bytes(), key))
            .unwrap_or_default()
    }
}
