//! What the schemas of topics come to, before anything runs.

use std::path::Path;

use frazil_config::{Config, Format, RegistryAccess, SchemaSource, TopicSettings};
use frazil_core::{Error, ErrorKind, Result};
use frazil_ingest::{Registries, compile, kafka_columns, mapping};
use frazil_kafka::wire::{MessageRef, SchemaRef, SubjectVersion};
use frazil_registry::RegisteredSchema;
use frazil_schema::{Evolution, FieldMap, Mapping, SourceSchema, check_limits, evolve};
use frazil_table::system_environment;
use serde::Serialize;

use crate::document::plain;

/// The schemas of the topics that a file names exactly.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct KnownSchemas {
    schemas: Vec<KnownSchema>,
    /// Topics whose registry is over the network and was not asked.
    not_asked: Vec<String>,
}

/// One topic's schema.
#[derive(Debug, Default, PartialEq, Serialize)]
struct KnownSchema {
    source: String,
    topic: String,
    /// Where it was found.
    schema: String,
    /// What Glue or Athena would not take as it is.
    findings: Vec<String>,
    /// Settings of fields whose path names none.
    unused_fields: Vec<String>,
    /// Why no table can be made of it.
    problem: Option<String>,
}

impl KnownSchemas {
    /// Looks for schemas in files and directories, and over the network if `online`.
    pub(super) async fn of(config: &Config, directory: &Path, online: bool) -> Result<Self> {
        let registries = if online {
            Registries::open(config, directory, &system_environment())?
        } else {
            Registries::open_directories(config, directory)
        };
        let mut known = Self::default();
        for settings in config.topics() {
            let Some(place) = Place::of(config, settings) else {
                continue;
            };
            if place.is_remote && !online {
                known.not_asked.push(settings.topic.to_string());
                continue;
            }
            known
                .schemas
                .extend(known_schema(&registries, settings, &place).await?);
        }
        Ok(known)
    }

    pub(super) fn has_problem(&self) -> bool {
        self.schemas.iter().any(|schema| schema.problem.is_some())
    }

    /// A line for whatever is to be said.
    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        for of in &self.schemas {
            let mut line = |what: &str, said: &str| {
                text.push_str(&format!(
                    "\n{what}: {} ({}): {}",
                    plain(&of.topic),
                    plain(&of.schema),
                    plain(said)
                ));
            };
            if let Some(problem) = &of.problem {
                line("problem", problem);
            }
            for finding in &of.findings {
                line("note", finding);
            }
            for path in &of.unused_fields {
                line(
                    "note",
                    &format!("fields.\"{path}\" names no field of this schema"),
                );
            }
        }
        if !self.not_asked.is_empty() {
            text.push_str(&format!(
                "\nnot asked, since their registry is over the network: {} (--online asks it)",
                plain(&self.not_asked.join(", "))
            ));
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }
}

/// Where a topic's schema may be.
struct Place {
    reference: SchemaRef,
    /// It is where producers put it by default (Confluent's TopicNameStrategy), and nobody said so.
    is_guess: bool,
    is_remote: bool,
}

impl Place {
    fn of(config: &Config, settings: &TopicSettings) -> Option<Self> {
        let has_schema = match settings.format {
            Format::Auto | Format::Avro | Format::JsonSchema | Format::Protobuf => true,
            Format::Json | Format::Raw | Format::String => false,
        };
        let (reference, is_guess) = match &settings.schema {
            SchemaSource::Infer | SchemaSource::Raw => return None,
            SchemaSource::File(path) => (SchemaRef::File(config.schema_file(path)), false),
            SchemaSource::Subject(subject, version) => {
                let version = version.map_or(SubjectVersion::Latest, SubjectVersion::Number);
                let subject = subject.clone();
                (SchemaRef::Subject { subject, version }, false)
            }
            SchemaSource::Auto | SchemaSource::Registry if has_schema => {
                let subject = format!("{}-value", settings.topic);
                let version = SubjectVersion::Latest;
                (SchemaRef::Subject { subject, version }, true)
            }
            SchemaSource::Auto | SchemaSource::Registry => return None,
        };
        let access = settings.registry.as_ref().and_then(|name| {
            let found = config
                .registries()
                .iter()
                .find(|registry| registry.name() == name);
            found.map(|registry| registry.access())
        });
        let is_directory = matches!(access, None | Some(RegistryAccess::Directory { .. }));
        Some(Self {
            is_remote: !is_directory && !matches!(reference, SchemaRef::File(_)),
            reference,
            is_guess,
        })
    }
}

/// `None` where nothing is known: no schema is where nobody said that there is one.
async fn known_schema(
    registries: &Registries,
    settings: &TopicSettings,
    place: &Place,
) -> Result<Option<KnownSchema>> {
    let mut known = KnownSchema {
        source: settings.source.to_string(),
        topic: settings.topic.to_string(),
        schema: place.reference.to_string(),
        ..KnownSchema::default()
    };
    let registry = registries.get(settings.registry.as_ref(), &place.reference)?;
    let found = match registry.schema(&place.reference).await {
        Ok(found) => found,
        Err(error) if place.is_guess && (!place.is_remote || error.kind() == ErrorKind::Poison) => {
            return Ok(None);
        }
        Err(error) => {
            known.problem = Some(error.to_string());
            return Ok(Some(known));
        }
    };
    match judge(settings, &found) {
        Ok((findings, unused_fields)) => {
            known.findings = findings;
            known.unused_fields = unused_fields;
        }
        // Records say which message they are.
        Err(error) if place.is_guess && error.code() == Some("protobuf.message_unstated") => return Ok(None),
        Err(error) => known.problem = Some(error.to_string()),
    }
    Ok(Some(known))
}

/// What Glue or Athena would not take of the schema's table, and the paths in the settings that name no field of it.
fn judge(settings: &TopicSettings, found: &RegisteredSchema) -> Result<(Vec<String>, Vec<String>)> {
    let mapping = mapping(settings)?;
    let message = match &settings.message {
        Some(name) => MessageRef::Name(name.clone()),
        None => MessageRef::Unstated,
    };
    let schema = compile(found, &message, &mapping)?;
    let evolution = evolve(
        None,
        0,
        &FieldMap::default(),
        &[schema.columns()],
        &kafka_columns(settings),
    )?;
    let Evolution::Changed(table) = evolution else {
        return Err(Error::new(
            ErrorKind::Internal,
            "map the schema",
            "it makes no table",
        ));
    };
    let findings = check_limits(&table.schema)
        .iter()
        .map(ToString::to_string)
        .collect();
    Ok((findings, unused_fields(&mapping, found, &message)?))
}

/// The paths in the settings of fields that name none of this schema.
pub(crate) fn unused_fields(
    mapping: &Mapping,
    schema: &RegisteredSchema,
    message: &MessageRef,
) -> Result<Vec<String>> {
    let unused = mapping.unused(&[schema], |schema, mapping| {
        let schema: SourceSchema = compile(schema, message, mapping)?;
        Ok(schema.columns().to_vec())
    })?;
    Ok(unused.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// What is said of topics, whose schemas are in a directory.
    async fn said(toml: &str) -> (String, bool) {
        let home = tempfile::tempdir().unwrap();
        let schemas = home.path().join("schemas");
        fs::create_dir_all(schemas.join("ids")).unwrap();
        fs::create_dir_all(schemas.join("subjects")).unwrap();
        let record = r#"{"type": "record", "name": "R", "fields": [{"name": "Id", "type": "int"},
            {"name": "at", "type": {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}}]}"#;
        fs::write(schemas.join("ids/7.avsc"), record).unwrap();
        let subject = r#"{"versions": [{"version": 1, "id": 7}]}"#;
        fs::write(schemas.join("subjects/orders-value.json"), subject).unwrap();
        fs::write(home.path().join("bad.avsc"), "{").unwrap();
        let long = format!(
            r#"{{"type": "record", "name": "R", "fields": [{{"name": "a", "type": "int", "doc": "{}"}}]}}"#,
            "x".repeat(256)
        );
        fs::write(home.path().join("long.avsc"), long).unwrap();
        let config = Config::parse(toml, &home.path().join("frazil.toml")).unwrap();
        let known = KnownSchemas::of(&config, &schemas, false).await.unwrap();
        let text = known
            .to_text()
            .replace(&home.path().display().to_string(), "HOME");
        (text, known.has_problem())
    }

    #[tokio::test]
    async fn schemas_at_hand_are_looked_at() {
        for (toml, expected, has_problem) in [
            ("[topics.orders]\n", "", false),
            // Nobody said that there is one.
            ("[topics.other]\n", "", false),
            (
                "[topics.orders]\nformat = \"json\"\nfields.nothing.exclude = true",
                "",
                false,
            ),
            (
                "[topics.orders.fields]\nId.type = \"long\"\nid.type = \"long\"\n\"at.x\".exclude = true\n\"at.y\".exclude = true",
                "\nnote: orders (subject orders-value, latest version): fields.\"at.y\" names no field of this schema\
                 \nnote: orders (subject orders-value, latest version): fields.\"id\" names no field of this schema\n",
                false,
            ),
            (
                "[topics.bare]\nformat = \"avro\"\nschema = \"file:long.avsc\"",
                "\nnote: bare (file HOME/long.avsc): column `a`: its comment has 256 characters, and Glue keeps 255; only what \
                 Glue shows is cut; the table has all of it\n",
                false,
            ),
            (
                "[topics.orders.fields.at]\nhash = \"sha256\"\n[topics.orders]\nhash_key_env = \"K\"",
                "\nproblem: orders (subject orders-value, latest version): cannot map the source schema to columns: field `at` \
                 is struct<x: int>, and only single values are hashed; name the fields inside it, or exclude it\n",
                true,
            ),
            (
                "[registries.far]\nkind = \"confluent\"\nurls = [\"https://far:1\"]\n[topics.orders]\n[topics.other]\n",
                "\nnot asked, since their registry is over the network: orders, other (--online asks it)\n",
                false,
            ),
        ] {
            assert_eq!(said(toml).await, (expected.to_owned(), has_problem), "{toml}");
        }
        let (text, has_problem) = said("[topics.bare]\nformat = \"avro\"\nschema = \"file:bad.avsc\"").await;
        assert!(has_problem);
        assert!(
            text.starts_with(
                "\nproblem: bare (file HOME/bad.avsc): cannot use the Avro schema: the schema: it is not JSON"
            ),
            "{text}"
        );
    }
}
