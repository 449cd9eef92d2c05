use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use toml::de::DeValue;

use crate::choice::choice;
use crate::fault::{FaultList, Located, Problem, closest};
use crate::reader::{FromToml, Keys, Section, expected};

/// The most fields that one topic has settings for: more than any schema that people write by hand.
pub(crate) const MAX_FIELDS: usize = 2_000;

/// What is configured about one field of a topic's values.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FieldSettings {
    /// The column's type, instead of the one that the contract gives.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub field_type: Option<FieldType>,
    /// The field has no column.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclude: bool,
    /// The column holds a keyed hash of the field's values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hash>,
}

choice! {
    /// How a field's values are hashed.
    pub enum Hash {
        /// HMAC-SHA256 with the topic's key, as 64 hexadecimal digits.
        #[default]
        Sha256 = "sha256",
    }
    later {}
}

/// A primitive type of Iceberg, as the specification writes it: `long`, `decimal(18, 4)`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FieldType(String);

impl FieldType {
    /// The type.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

const TYPES: [&str; 11] = [
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "string",
    "binary",
];

impl FromToml for FieldType {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Problem> {
        let text = value.as_str().ok_or_else(|| {
            expected("a string", value)
                .hint("write a type of Iceberg, such as \"long\" or \"decimal(18, 4)\"")
        })?;
        if TYPES.contains(&text) {
            return Ok(Self(text.to_owned()));
        }
        if let Some(arguments) = text
            .strip_prefix("decimal(")
            .and_then(|rest| rest.strip_suffix(')'))
        {
            let numbers: Vec<Option<u32>> = arguments.split(',').map(|n| n.trim().parse().ok()).collect();
            return match numbers[..] {
                [Some(precision @ 1..=38), Some(scale)] if scale <= precision => {
                    Ok(Self(format!("decimal({precision}, {scale})")))
                }
                _ => Err(Problem::new(format!("{text:?} is not a decimal that a table can hold"))
                    .hint("write decimal(PRECISION, SCALE) with a precision of 1 to 38 and a scale of 0 to the precision")),
            };
        }
        let problem = Problem::new(format!(
            "{text:?} is not a type of Iceberg that a column can be given"
        ));
        Err(match closest(text, TYPES) {
            Some(name) => problem.hint(format!("did you mean {name:?}?")),
            None => problem.hint(format!(
                "use one of {}, decimal(PRECISION, SCALE)",
                TYPES.join(", ")
            )),
        })
    }
}

/// One field of the values, by its path in the source: `"customer.email"`. Elements of lists and values of maps add no
/// step; what is said of a list or map holds for its elements or values.
#[derive(Debug, Clone, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct FieldSection {
    /// The column's type, where values convert without loss or make their record unreadable: `int` as `long`, `float`
    /// as `double`, a number as `decimal(18, 4)`, an instant or a decimal of scale 0 as `long`, `string` as `binary`.
    #[cfg_attr(test, schemars(extend("examples" = ["decimal(18, 4)"])))]
    #[cfg_attr(test, schemars(rename = "type"))]
    pub(crate) field_type: Option<Located<FieldType>>,
    /// Whether the field has no column.
    #[cfg_attr(test, schemars(extend("default" = false)))]
    pub(crate) exclude: Option<Located<bool>>,
    /// `sha256`: the column holds HMAC-SHA256 of each value instead, with the secret that `hash_key_env` names.
    #[cfg_attr(test, schemars(extend("examples" = ["sha256"])))]
    pub(crate) hash: Option<Located<Hash>>,
}

pub(crate) const FIELD_KEYS: Keys = Keys {
    known: &[&["type", "exclude", "hash"]],
    later: &[
        ("rename", "another name for a column"),
        ("unit", "instants in plain numbers"),
    ],
    instead: &[],
    elsewhere: &[("hash_key_env", "the topic, or [defaults]")],
};

impl FieldSection {
    pub(crate) fn read(section: Section<'_>) -> Self {
        let field = Self {
            field_type: section.read("type"),
            exclude: section.read("exclude"),
            hash: section.read("hash"),
        };
        if field.exclude.as_ref().is_some_and(|exclude| exclude.value) {
            let others = [
                field.field_type.as_ref().map(|read| &read.at),
                field.hash.as_ref().map(|read| &read.at),
            ];
            for at in others.into_iter().flatten() {
                let problem = Problem::new("an excluded field has no column that this could be about");
                section
                    .faults()
                    .add(at, problem.hint("remove it, or the exclusion"));
            }
        }
        section.finish_with(|key, value| {
            let problem = Problem::new("a field has no sections");
            let hint = format!("a path is one key, in quotes: fields.\"….{key}\"");
            value.is_table().then(|| problem.hint(hint))
        });
        field
    }

    fn settings(&self) -> FieldSettings {
        FieldSettings {
            field_type: self.field_type.as_ref().map(|read| read.value.clone()),
            exclude: self.exclude.as_ref().is_some_and(|read| read.value),
            hash: self.hash.as_ref().map(|read| read.value),
        }
    }
}

/// The fields of a topic: its own on top of the defaults, path by path. What says nothing is left out.
pub(crate) fn merge<'s>(
    layers: impl IntoIterator<Item = &'s Vec<(Located<String>, FieldSection)>>,
) -> BTreeMap<String, FieldSettings> {
    let mut fields = BTreeMap::new();
    for (path, section) in layers.into_iter().flatten() {
        fields.insert(path.value.clone(), section.settings());
    }
    fields.retain(|_, field| *field != FieldSettings::default());
    fields
}

/// Checks the paths, and that what is hashed has a key.
pub(crate) fn check_fields(
    fields: &[(Located<String>, FieldSection)],
    has_hash_key: bool,
    faults: &FaultList,
) {
    if let Some((beyond, _)) = fields.get(MAX_FIELDS) {
        let problem = format!("{} fields, at most {MAX_FIELDS} are possible", fields.len());
        faults.add(&beyond.at, Problem::new(problem));
    }
    for (path, field) in fields {
        if path.value.is_empty() {
            let problem = Problem::new("a field needs a path");
            faults.add(
                &path.at,
                problem.hint("such as [topics.orders.fields.\"customer.email\"]"),
            );
        }
        if path.value.starts_with("_kafka_") {
            let problem =
                Problem::new("settings of fields are about the records' values, not Kafka's own columns");
            faults.add(&path.at, problem.hint("switch columns off in kafka_columns"));
        }
        if let Some(hash) = field.hash.as_ref().filter(|_| !has_hash_key) {
            let problem = Problem::new("there is no secret to hash with");
            faults.add(
                &hash.at,
                problem.hint(
                    "name the environment variable that holds it: hash_key_env = \"FRAZIL_SECRET_HASH\"",
                ),
            );
        }
    }
}
