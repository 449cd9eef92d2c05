use protox::prost_reflect::prost_types::UninterpretedOption;

use super::source::{Token, Tokens};

/// The features of an edition that change what is on the wire or in a column. Each level of a file inherits them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Features {
    /// `field_presence = IMPLICIT`.
    pub(super) implicit: bool,
    /// `message_encoding = DELIMITED`.
    pub(super) delimited: bool,
}

impl Features {
    /// With what `options` change: `features.name = VALUE` or `features = { name: VALUE }`.
    pub(super) fn with(mut self, options: &[UninterpretedOption]) -> Self {
        for option in options {
            match &option.name[..] {
                [features] if features.name_part == "features" && !features.is_extension => {
                    let words: Vec<&str> = Tokens::new(option.aggregate_value())
                        .filter_map(|(_, token)| match token {
                            Token::Word(word) => Some(word),
                            _ => None,
                        })
                        .collect();
                    for pair in words.windows(2) {
                        self.set(pair[0], pair[1]);
                    }
                }
                [features, feature] if features.name_part == "features" && !features.is_extension => {
                    self.set(&feature.name_part, option.identifier_value());
                }
                _ => {}
            }
        }
        self
    }

    fn set(&mut self, feature: &str, value: &str) {
        match feature {
            "field_presence" => self.implicit = value == "IMPLICIT",
            "message_encoding" => self.delimited = value == "DELIMITED",
            _ => {}
        }
    }
}

/// What Confluent's `(confluent.field_meta)` says about a field.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FieldMeta {
    pub(super) doc: Option<String>,
    pub(super) precision: Option<u32>,
    pub(super) scale: Option<u32>,
}

impl FieldMeta {
    pub(super) fn of(options: &[UninterpretedOption]) -> Self {
        let mut meta = Self::default();
        for option in options {
            let [first, inside @ ..] = &option.name[..] else {
                continue;
            };
            let name = first.name_part.trim_start_matches('.');
            if !first.is_extension || !matches!(name, "confluent.field_meta" | "field_meta") {
                continue;
            }
            match inside {
                [doc] if doc.name_part == "doc" => {
                    meta.doc = String::from_utf8(option.string_value().to_vec()).ok();
                }
                _ => meta.read(option.aggregate_value()),
            }
        }
        meta
    }

    /// `doc: "…", params: [{key: "precision", value: "9"}, {key: "scale", value: "2"}]`, or only the inner part.
    fn read(&mut self, text: &str) {
        let (mut name, mut key, mut value) = ("", "", "");
        for (_, token) in Tokens::new(text).chain([(text.len(), Token::Mark(b'}'))]) {
            match token {
                Token::Word(word) => name = word,
                Token::Text(text) => {
                    let text = text.trim_matches(['"', '\'']);
                    match name {
                        "key" => key = text,
                        "value" => value = text,
                        "doc" if !text.contains('\\') => self.doc = Some(text.to_owned()),
                        _ => {}
                    }
                }
                Token::Mark(b'}' | b'>') => {
                    match key {
                        "precision" => self.precision = value.parse().ok(),
                        "scale" => self.scale = value.parse().ok(),
                        _ => {}
                    }
                    (key, value) = ("", "");
                }
                Token::Mark(_) => {}
            }
        }
    }

    /// A decimal without a precision is as wide as a column can be. What no column can hold is not known.
    pub(super) fn decimal(&self) -> Option<(u32, u32)> {
        let scale = self.scale?;
        let precision = self.precision.unwrap_or(38);
        ((1..=38).contains(&precision) && scale <= precision).then_some((precision, scale))
    }
}
