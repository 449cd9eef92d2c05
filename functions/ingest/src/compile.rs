//! From a registered schema to one that decodes: the place where each language comes in.

use frazil_core::{Error, ErrorKind, Result};
use frazil_kafka::wire::MessageRef;
use frazil_registry::{RegisteredSchema, SchemaKind};
use frazil_schema::{AvroSchema, JsonSchema, Mapping, MessageSelector, ProtobufFile, SourceSchema};

/// How many messages an error lists.
const LISTED_MESSAGES: usize = 10;

/// Compiles a schema under a topic's settings. `message` chooses among the messages of a Protobuf schema.
///
/// # Errors
/// `Invalid` if no table can hold what it describes, or nothing says which of several messages is meant.
pub fn compile(schema: &RegisteredSchema, message: &MessageRef, mapping: &Mapping) -> Result<SourceSchema> {
    let (text, references) = (&schema.text, &schema.references);
    match schema.kind {
        SchemaKind::Avro => AvroSchema::compile(text, references, mapping).map(SourceSchema::Avro),
        SchemaKind::Json => JsonSchema::compile(text, references, mapping).map(SourceSchema::Json),
        SchemaKind::Protobuf => {
            let file = ProtobufFile::compile(text, references)?;
            let selector = selector(&file, message)?;
            file.message(&selector, mapping).map(SourceSchema::Protobuf)
        }
    }
}

fn selector(file: &ProtobufFile, message: &MessageRef) -> Result<MessageSelector> {
    match message {
        MessageRef::Path(path) => Ok(MessageSelector::Path(path.clone())),
        MessageRef::Sorted(index) => Ok(MessageSelector::Sorted(*index)),
        MessageRef::Name(name) => Ok(MessageSelector::Name(full_name(file, name))),
        MessageRef::Unstated => {
            // Any bytes are some message: with several to choose from, the first would be a guess.
            let names = file.message_names();
            let is_nested = |name: &str| {
                let parent = name.rsplit_once('.').map(|(parent, _)| parent);
                parent.is_some_and(|parent| names.contains(&parent))
            };
            let top: Vec<&str> = names.iter().copied().filter(|name| !is_nested(name)).collect();
            if top.len() <= 1 {
                return Ok(MessageSelector::First);
            }
            let shown = top[..top.len().min(LISTED_MESSAGES)].join(", ");
            Err(Error::new(
                ErrorKind::Invalid,
                "use the record's schema",
                format!(
                    "nothing says which of its {} messages the value is: {shown}",
                    top.len()
                ),
            )
            .with_code("protobuf.message_unstated")
            .with_hint(format!(
                "set message = \"{}\" for this topic, or another of them",
                top[0]
            )))
        }
    }
}

/// Apicurio writes the name of a message without its package.
fn full_name(file: &ProtobufFile, name: &str) -> String {
    let names = file.message_names();
    if name.contains('.') || names.contains(&name) {
        return name.to_owned();
    }
    let mut found = names
        .into_iter()
        .filter(|full| full.rsplit('.').next() == Some(name));
    match (found.next(), found.next()) {
        (Some(only), None) => only.to_owned(),
        _ => name.to_owned(),
    }
}
