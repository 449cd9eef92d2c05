use std::path::{Path, PathBuf};

use frazil_core::{Error, ErrorKind, RegistryName, Result, SchemaId, TopicName};
use frazil_ingest::{compile, kafka_columns, mapping};
use frazil_kafka::wire::{MessageRef, SchemaRef};
use frazil_registry::{MAX_SCHEMA_FILE_BYTES, RegisteredSchema, SchemaKind};
use frazil_schema::{
    Evolution, FieldMap, KafkaColumns, Mapping, RefusedChange, SchemaChange, SourceSchema, check_limits,
    evolve,
};
use frazil_table::inspection::ColumnOverview;
use serde::Serialize;

use crate::arguments::Schema;
use crate::commands::check::unused_fields;
use crate::document::{indented, plain, table};
use crate::failure::Outcome;
use crate::output::{Document, Output};
use crate::session::Session;

/// What one schema becomes.
#[derive(Debug, Serialize)]
struct Mapped {
    /// As the Iceberg specification writes schemas.
    schema: serde_json::Value,
    /// What Glue or Athena would not take as it is.
    findings: Vec<String>,
    /// Settings of the topic's fields whose path names none.
    unused_fields: Vec<String>,
    #[serde(skip)]
    columns: Vec<ColumnOverview>,
}

/// What a change of the schema does to the table.
#[derive(Debug, Serialize)]
struct Compared {
    accepted: bool,
    added: Vec<String>,
    widened: Vec<String>,
    refused: Vec<Refused>,
    /// The table's schema after an accepted change.
    schema: Option<serde_json::Value>,
    findings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Refused {
    field: String,
    from: String,
    to: String,
    hint: Option<String>,
}

pub(crate) async fn schema(session: &Session, arguments: &Schema, output: &Output) -> Result<Outcome> {
    let (mapping, kafka, registry) = match &arguments.topic {
        None => (Mapping::default(), KafkaColumns::default(), None),
        Some(topic) => {
            let (topic, sources) = (TopicName::from(topic.as_str()), session.config());
            let source = match (arguments.source.name(), sources.sources()) {
                (Some(source), _) => source,
                (None, [only]) => only.name().clone(),
                (None, _) => {
                    return Err(Error::new(
                        ErrorKind::Invalid,
                        "find the topic",
                        "the configuration has several sources",
                    )
                    .with_context("topic", topic)
                    .with_hint("say which with --source"));
                }
            };
            let settings = session.config().topic(&source, &topic)?;
            (mapping(&settings)?, kafka_columns(&settings), settings.registry)
        }
    };
    let reader = Reader {
        session,
        arguments,
        mapping: &mapping,
        registry,
    };
    let old = reader.read(&arguments.schema).await?;
    let Evolution::Changed(table) = evolve(None, 0, &FieldMap::default(), &[old.columns()], &kafka)? else {
        return Err(Error::new(
            ErrorKind::Internal,
            "map the schema",
            "it makes no table",
        ));
    };
    let Some(new) = &arguments.new else {
        let unused_fields = reader.unused_fields(&arguments.schema).await?;
        output.print(&Mapped {
            unused_fields,
            ..Mapped::new(&table)?
        })?;
        return Ok(Outcome::Done);
    };
    let new = reader.read(new).await?;
    let evolution = evolve(
        Some(&table.schema),
        table.last_column_id,
        &table.fields,
        &[new.columns()],
        &kafka,
    )?;
    let compared = Compared::new(&table, evolution)?;
    output.print(&compared)?;
    Ok(if compared.accepted {
        Outcome::Done
    } else {
        Outcome::Failed
    })
}

/// Reads schemas from files and the registry.
struct Reader<'a> {
    session: &'a Session,
    arguments: &'a Schema,
    mapping: &'a Mapping,
    registry: Option<RegistryName>,
}

impl Reader<'_> {
    async fn read(&self, named: &str) -> Result<SourceSchema> {
        let registered = self.registered(named).await?;
        compile(&registered, &self.message(), self.mapping)
            .map_err(|error| error.with_context("schema", named))
    }

    /// The settings of fields whose path names none of this schema.
    async fn unused_fields(&self, named: &str) -> Result<Vec<String>> {
        if self.mapping.fields.is_empty() {
            return Ok(Vec::new());
        }
        unused_fields(self.mapping, &self.registered(named).await?, &self.message())
    }

    fn message(&self) -> MessageRef {
        match &self.arguments.message {
            Some(name) => MessageRef::Name(name.clone()),
            None => MessageRef::Unstated,
        }
    }

    async fn registered(&self, named: &str) -> Result<RegisteredSchema> {
        Ok(match named.parse::<u32>() {
            Ok(id) if !Path::new(named).exists() => {
                let reference = SchemaRef::Id(SchemaId(id));
                let registries = self.session.registries()?;
                registries
                    .get(self.registry.as_ref(), &reference)?
                    .schema(&reference)
                    .await?
            }
            _ => self.of_file(Path::new(named))?,
        })
    }

    fn of_file(&self, path: &Path) -> Result<RegisteredSchema> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let kind = SchemaKind::ALL
            .into_iter()
            .find(|kind| Some(kind.extension()) == extension)
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Invalid,
                    "read the schema",
                    "it is neither an id nor a file that ends in .avsc, .json or .proto",
                )
                .with_context("schema", path.display())
            })?;
        let references = self
            .arguments
            .reference
            .iter()
            .map(|(name, file)| Ok((name.clone(), read_file(file)?)))
            .collect::<Result<_>>()?;
        Ok(RegisteredSchema {
            kind,
            text: read_file(path)?,
            references,
        })
    }
}

fn read_file(path: &Path) -> Result<String> {
    let failed = |message: String| {
        Error::new(ErrorKind::Invalid, "read the schema", message).with_context("file", path.display())
    };
    let length = std::fs::metadata(path)
        .map_err(|error| failed(error.to_string()).with_source(error))?
        .len();
    if length > MAX_SCHEMA_FILE_BYTES {
        return Err(failed(format!("it is longer than {MAX_SCHEMA_FILE_BYTES} bytes")));
    }
    std::fs::read_to_string(path).map_err(|error| failed(error.to_string()).with_source(error))
}

/// `NAME=FILE`.
pub(crate) fn reference(text: &str) -> std::result::Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_owned(), file.into())),
        _ => Err("it should be like common/money.proto=schemas/money.proto".to_owned()),
    }
}

fn specification(schema: &iceberg::spec::Schema) -> Result<serde_json::Value> {
    serde_json::to_value(schema)
        .map_err(|e| Error::new(ErrorKind::Internal, "print the schema", e.to_string()).with_source(e))
}

fn findings(schema: &iceberg::spec::Schema) -> Vec<String> {
    check_limits(schema).iter().map(ToString::to_string).collect()
}

impl Mapped {
    fn new(change: &SchemaChange) -> Result<Self> {
        Ok(Self {
            schema: specification(&change.schema)?,
            findings: findings(&change.schema),
            unused_fields: Vec::new(),
            columns: frazil_table::inspection::column_overviews(&change.schema),
        })
    }
}

impl Compared {
    fn new(table: &SchemaChange, evolution: Evolution) -> Result<Self> {
        let none = || Self {
            accepted: true,
            added: Vec::new(),
            widened: Vec::new(),
            refused: Vec::new(),
            schema: None,
            findings: Vec::new(),
        };
        Ok(match evolution {
            Evolution::Unchanged => Self {
                schema: Some(specification(&table.schema)?),
                ..none()
            },
            Evolution::Changed(change) => Self {
                schema: Some(specification(&change.schema)?),
                findings: findings(&change.schema),
                added: change.added,
                widened: change.widened,
                ..none()
            },
            Evolution::Refused(changes) => Self {
                accepted: false,
                refused: changes.iter().map(Refused::new).collect(),
                ..none()
            },
        })
    }
}

impl Refused {
    fn new(change: &RefusedChange) -> Self {
        Self {
            field: change.field.clone(),
            from: change.from.clone(),
            to: change.to.clone(),
            hint: change.to_error().hint().map(str::to_owned),
        }
    }
}

impl Document for Mapped {
    fn to_text(&self, _: Option<usize>) -> String {
        let rows = self.columns.iter().map(|column| {
            vec![
                column.id.to_string(),
                plain(&column.name),
                plain(&column.type_name),
                plain(column.doc.as_deref().unwrap_or_default()),
            ]
        });
        let mut text = table(&["ID", "COLUMN", "TYPE", "DOC"], &["ID"], rows);
        for finding in &self.findings {
            text.push_str(&format!("note: {}\n", plain(finding)));
        }
        for path in &self.unused_fields {
            let path = plain(path);
            text.push_str(&format!(
                "note: fields.\"{path}\" names no field of this schema\n"
            ));
        }
        text
    }
}

impl Document for Compared {
    fn to_text(&self, _: Option<usize>) -> String {
        let mut text = String::new();
        let mut list = |title: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                text.push_str(&format!(
                    "{title}\n{}",
                    indented(&format!("{}\n", lines.join("\n")))
                ));
            }
        };
        let plain_all = |paths: &[String]| paths.iter().map(|path| plain(path)).collect();
        list("new columns", plain_all(&self.added));
        list("wider columns", plain_all(&self.widened));
        let refused = self.refused.iter().map(|change| {
            format!(
                "{}: {} in the table, {} in the schema",
                plain(&change.field),
                change.from,
                change.to
            )
        });
        list("refused", refused.collect());
        if let Some(hint) = self.refused.iter().find_map(|change| change.hint.as_deref()) {
            text.push_str(&format!("hint: {hint}\n"));
        }
        for finding in &self.findings {
            text.push_str(&format!("note: {}\n", plain(finding)));
        }
        match (self.accepted, text.is_empty()) {
            (true, true) => "accepted: the table stays as it is\n".to_owned(),
            (true, false) => format!("accepted\n{text}"),
            (false, _) => format!("refused: the topic would suspend\n{text}"),
        }
    }
}
