//! How a topic's values are encoded: format, framing and schema, which imply each other.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::de::DeValue;

use crate::choice::{alternatives, choice};
use crate::fault::{At, FaultList, Problem, closest};
use crate::reader::{FromToml, expected};
use crate::resolve::{Layers, place};
use crate::sections::TopicKeys;

choice! {
    /// How the values of a topic are encoded.
    pub enum Format {
        /// By the language of the schema that a record names; else JSON.
        #[default]
        Auto = "auto",
        /// Avro.
        Avro = "avro",
        /// JSON, whose columns come from what arrives.
        Json = "json",
        /// JSON with a schema.
        JsonSchema = "json_schema",
        /// Protobuf.
        Protobuf = "protobuf",
        /// Undecoded, as one binary column.
        Raw = "raw",
        /// Undecoded text, as one string column.
        String = "string",
    }
    later {
        "csv": "delimited text",
    }
}

choice! {
    /// How a record names its schema.
    pub enum Framing {
        /// By what the record itself shows.
        #[default]
        Auto = "auto",
        /// Confluent's header or prefix.
        Confluent = "confluent",
        /// Glue's prefix.
        Glue = "glue",
        /// Apicurio's header or prefix with 8 bytes of id.
        Apicurio = "apicurio",
        /// Lambda's own registry integration.
        Lambda = "lambda",
        /// Not at all: the configuration names the schema.
        None = "none",
    }
    later {}
}

/// Where the schema of a topic's values comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum SchemaSource {
    /// As format and records have it: the registry for a record that names a schema, inference for JSON.
    #[default]
    Auto,
    /// The schema registry, by what each record names.
    Registry,
    /// From the records themselves.
    Infer,
    /// None: one column `value`.
    Raw,
    /// This file, as the configuration writes it; see [`Config::schema_file`](crate::Config::schema_file).
    File(String),
    /// This subject of the registry, in this version or the latest.
    Subject(String, Option<u32>),
}

const WORDS: [&str; 4] = ["auto", "registry", "infer", "raw"];
const SCHEMA_HINT: &str =
    "write \"auto\", \"registry\", \"infer\", \"raw\", \"file:PATH\" or \"subject:NAME@VERSION\"";

impl SchemaSource {
    fn parse(text: &str) -> Result<Self, Problem> {
        match text {
            "auto" => return Ok(Self::Auto),
            "registry" => return Ok(Self::Registry),
            "infer" => return Ok(Self::Infer),
            "raw" => return Ok(Self::Raw),
            "glue" | "confluent" => {
                return Err(
                    Problem::new(format!("{text:?} is a framing, or the kind of a registry"))
                        .hint(format!("write framing = \"{text}\", or registry = \"NAME\"")),
                );
            }
            _ => {}
        }
        if let Some(path) = text.strip_prefix("file:") {
            let extension = Path::new(path)
                .extension()
                .and_then(|extension| extension.to_str());
            if !matches!(extension, Some("avsc" | "json" | "proto")) {
                return Err(Problem::new(format!("{path:?} does not say its language"))
                    .hint("name it .avsc (Avro), .json (JSON Schema) or .proto (Protobuf)"));
            }
            return Ok(Self::File(path.to_owned()));
        }
        if let Some(subject) = text.strip_prefix("subject:") {
            let (name, version) = match subject.rsplit_once('@') {
                Some((name, version))
                    if !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit()) =>
                {
                    let number = version.parse::<u32>().ok().filter(|number| *number > 0);
                    let number = number.ok_or_else(|| Problem::new(format!("{version} is not a version")))?;
                    (name, Some(number))
                }
                _ => (subject, None),
            };
            if name.is_empty() {
                return Err(Problem::new("the subject has no name").hint("write \"subject:NAME@VERSION\""));
            }
            return Ok(Self::Subject(name.to_owned(), version));
        }
        let problem = Problem::new(format!("unknown value {text:?}"));
        Err(match closest(text, WORDS) {
            Some(word) => problem.hint(format!("did you mean {word:?}?")),
            None => problem.hint(SCHEMA_HINT),
        })
    }
}

impl fmt::Display for SchemaSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Registry => f.write_str("registry"),
            Self::Infer => f.write_str("infer"),
            Self::Raw => f.write_str("raw"),
            Self::File(path) => write!(f, "file:{path}"),
            Self::Subject(subject, None) => write!(f, "subject:{subject}"),
            Self::Subject(subject, Some(version)) => write!(f, "subject:{subject}@{version}"),
        }
    }
}

impl From<SchemaSource> for String {
    fn from(source: SchemaSource) -> Self {
        source.to_string()
    }
}

impl TryFrom<String> for SchemaSource {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).map_err(|_| format!("{text:?} is not a schema source"))
    }
}

impl FromToml for SchemaSource {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Problem> {
        match value.as_str() {
            Some(text) => Self::parse(text),
            None => Err(expected("a string", value).hint(alternatives(&WORDS))),
        }
    }
}

/// What a topic's keys about encoding say together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Encoding {
    pub(crate) format: Format,
    pub(crate) framing: Framing,
    pub(crate) schema: SchemaSource,
}

impl Encoding {
    /// Format, framing and schema imply each other: stating one is often enough.
    pub(crate) fn of(layers: Layers<'_>) -> Self {
        let format = layers.get(|keys| &keys.format).unwrap_or_default();
        let framing = layers.get(|keys| &keys.framing).unwrap_or_default();
        let schema = layers.get(|keys| &keys.schema).unwrap_or_default();
        let is_named = matches!(schema, SchemaSource::File(_) | SchemaSource::Subject(..));
        let format = match (format, &schema) {
            (Format::Auto, SchemaSource::Infer) => Format::Json,
            (Format::Auto, SchemaSource::Raw) => Format::Raw,
            (Format::Json, SchemaSource::Raw) => Format::String,
            // A bare value that nothing describes is JSON, or nothing can be done with it.
            (Format::Auto, SchemaSource::Auto) if framing == Framing::None => Format::Json,
            (format, _) => format,
        };
        let schema = match (format, schema) {
            (Format::Avro | Format::Protobuf | Format::JsonSchema, SchemaSource::Auto) => {
                SchemaSource::Registry
            }
            (Format::Json, SchemaSource::Auto) => SchemaSource::Infer,
            (Format::Raw | Format::String, _) => SchemaSource::Raw,
            (Format::Auto, SchemaSource::Auto) if framing != Framing::Auto => SchemaSource::Registry,
            (_, schema) => schema,
        };
        let framing = match (format, framing) {
            (Format::Raw | Format::String, Framing::Auto) => Framing::None,
            (_, Framing::Auto) if is_named => Framing::None,
            (_, framing) => framing,
        };
        Self {
            format,
            framing,
            schema,
        }
    }
}

/// Checks the keys about encoding against each other; the fault is at the last of them that this section writes.
pub(crate) fn check(keys: &TopicKeys, layers: Layers<'_>, faults: &FaultList) {
    let Some(at) = place(&keys.schema)
        .or(place(&keys.framing))
        .or(place(&keys.format))
        .or(place(&keys.message))
    else {
        return;
    };
    let format = layers.get(|keys| &keys.format).unwrap_or_default();
    let framing = layers.get(|keys| &keys.framing).unwrap_or_default();
    let schema = layers.get(|keys| &keys.schema).unwrap_or_default();
    if let Err(problem) = fit(format, framing, &schema) {
        faults.add(at, problem);
    }
    if let Some(message) = place(&keys.message) {
        check_message(message, format, &schema, faults);
    }
}

fn fit(format: Format, framing: Framing, schema: &SchemaSource) -> Result<(), Problem> {
    use SchemaSource as S;
    match (format, schema) {
        (Format::Avro | Format::Protobuf | Format::JsonSchema, S::Infer | S::Raw) => {
            let name = match format {
                Format::Avro => "Avro",
                Format::Protobuf => "Protobuf",
                _ => "\"json_schema\"",
            };
            return Err(Problem::new(format!("{name} cannot be read without its schema"))
                .hint("use schema = \"registry\""));
        }
        (Format::Json, S::Registry | S::File(_) | S::Subject(..)) => {
            return Err(Problem::new("\"json\" is JSON without a schema")
                .hint("use format = \"json_schema\", or schema = \"infer\""));
        }
        (Format::Raw | Format::String, S::Registry | S::Infer | S::File(_) | S::Subject(..)) => {
            return Err(Problem::new(format!("format = \"{format}\" has no schema"))
                .hint("remove schema, or name the format of the values"));
        }
        _ => {}
    }
    if let (S::File(path), Some(language)) = (schema, language_of(format)) {
        let extension = Path::new(path)
            .extension()
            .and_then(|extension| extension.to_str());
        if extension != Some(language) {
            return Err(Problem::new(format!(
                "format = \"{format}\" needs a schema in a .{language} file"
            ))
            .hint("name another file, or remove format"));
        }
    }
    let is_named = matches!(schema, S::File(_) | S::Subject(..));
    let needs_schema =
        matches!(format, Format::Avro | Format::Protobuf | Format::JsonSchema) || *schema == S::Registry;
    match framing {
        Framing::None if needs_schema && !is_named => {
            Err(Problem::new("without a framing no record names its schema")
                .hint("name it: schema = \"file:PATH\" or \"subject:NAME@VERSION\""))
        }
        Framing::Confluent | Framing::Glue | Framing::Apicurio | Framing::Lambda if is_named => {
            Err(Problem::new(format!(
                "with framing = \"{framing}\" each record names its schema, and schema names another"
            ))
            .hint("remove one of them; framing = \"none\" is for values without a framing"))
        }
        _ => Ok(()),
    }
}

fn language_of(format: Format) -> Option<&'static str> {
    match format {
        Format::Avro => Some("avsc"),
        Format::JsonSchema => Some("json"),
        Format::Protobuf => Some("proto"),
        Format::Auto | Format::Json | Format::Raw | Format::String => None,
    }
}

/// A message is a part of a Protobuf schema that no record chooses.
fn check_message(at: &At, format: Format, schema: &SchemaSource, faults: &FaultList) {
    let is_protobuf = match (format, schema) {
        (Format::Protobuf, _) => true,
        (Format::Auto, SchemaSource::File(path)) => path.ends_with(".proto"),
        (Format::Auto, SchemaSource::Subject(..) | SchemaSource::Registry | SchemaSource::Auto) => true,
        _ => false,
    };
    if !is_protobuf {
        faults.add(
            at,
            Problem::new("only Protobuf has messages to choose from")
                .hint("remove it, or use format = \"protobuf\""),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_sources_are_written_as_they_are_read() {
        for text in [
            "auto",
            "registry",
            "infer",
            "raw",
            "file:schemas/orders.avsc",
            "subject:orders-value",
            "subject:orders-value@3",
            "subject:a@b",
        ] {
            let source = SchemaSource::parse(text).unwrap();
            assert_eq!(source.to_string(), text);
            let json = serde_json::to_string(&source).unwrap();
            assert_eq!(json, format!("{text:?}"));
            assert_eq!(serde_json::from_str::<SchemaSource>(&json).unwrap(), source);
        }
        let subject = SchemaSource::Subject("orders-value".to_owned(), Some(3));
        assert_eq!(SchemaSource::parse("subject:orders-value@3").unwrap(), subject);
        for text in [
            "",
            "file:",
            "file:orders.txt",
            "subject:",
            "subject:@3",
            "subject:a@0",
            "subject:a@4294967296",
            "Auto",
        ] {
            assert!(SchemaSource::parse(text).is_err(), "{text}");
        }
    }
}
