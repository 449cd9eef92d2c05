//! From a registered schema to one that decodes: the place where each language comes in.

use frazil_core::{Error, ErrorKind, Result};
use frazil_kafka::wire::MessageRef;
use frazil_registry::{RegisteredSchema, SchemaKind};
use frazil_schema::{AvroSchema, Mapping, SourceSchema};

/// Compiles a schema under a topic's settings. `message` chooses among the messages of a Protobuf schema.
pub(crate) fn compile(
    schema: &RegisteredSchema,
    _message: &MessageRef,
    mapping: &Mapping,
) -> Result<SourceSchema> {
    match schema.kind {
        SchemaKind::Avro => {
            AvroSchema::compile(&schema.text, &schema.references, mapping).map(SourceSchema::Avro)
        }
        SchemaKind::Json | SchemaKind::Protobuf => Err(Error::new(
            ErrorKind::Poison,
            "use the record's schema",
            "it is not an Avro schema, and this version reads Avro and JSON without a schema",
        )
        .with_code("registry.unsupported_format")),
    }
}
