use frazil_schema::SourceSchema;

use crate::avro::{self, Cursor, Node};
use crate::builder::{Builder, Values};
use crate::fault::{Decoded, Fault};
use crate::json::JsonPlan;
use crate::protobuf::ProtobufPlan;
use crate::{DecodeOptions, RawColumn, TimestampRange, UnknownFields};

/// How to decode the records of one writer's schema.
#[derive(Debug)]
pub(crate) enum Plan {
    Avro(Vec<(String, Node)>),
    Json(JsonPlan),
    Protobuf(Box<ProtobufPlan>),
    /// No schema: the bytes are the value.
    Raw,
}

/// What decoding depends on besides schema and bytes, and what it finds out besides values.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) timestamp_range: TimestampRange,
    pub(crate) policy: UnknownFields,
    /// Fields of the record that its schema does not have.
    pub(crate) unknown_fields: u64,
    /// Those of them that are to be kept: a JSON object, still open.
    pub(crate) collected: Vec<u8>,
    /// Paths that the settings exclude or hash, as they write them.
    pub(crate) concealed: Vec<String>,
}

impl Context {
    pub(crate) fn new(options: &DecodeOptions<'_>) -> Self {
        Self {
            timestamp_range: options.timestamp_range,
            policy: options.unknown_fields,
            unknown_fields: 0,
            collected: Vec::new(),
            concealed: options
                .mapping
                .fields
                .iter()
                .filter(|(_, field)| field.exclude || field.hash.is_some())
                .map(|(path, _)| path.clone())
                .collect(),
        }
    }

    /// Forgets what the record before left.
    pub(crate) fn clear(&mut self) {
        self.unknown_fields = 0;
        self.collected.clear();
    }
}

impl Plan {
    pub(crate) fn new(schema: &SourceSchema) -> Self {
        match schema {
            SourceSchema::Avro(schema) => Self::Avro(Node::of_schema(schema)),
            SourceSchema::Json(schema) => Self::Json(JsonPlan::new(schema)),
            SourceSchema::Protobuf(schema) => Self::Protobuf(Box::new(ProtobufPlan::new(schema))),
        }
    }

    /// Appends one value to each of the schema's columns. On an error they may hold a part: cut them back.
    pub(crate) fn decode(
        &mut self,
        body: &[u8],
        builders: &mut [Builder],
        context: &mut Context,
    ) -> Decoded<()> {
        match self {
            Self::Avro(nodes) => {
                let mut cursor = Cursor::new(body);
                avro::decode_fields(nodes, builders, &mut cursor, &context.timestamp_range)?;
                cursor.finish()
            }
            Self::Json(plan) => plan.decode(body, builders, context),
            Self::Protobuf(plan) => plan.decode(body, builders, context),
            Self::Raw => raw(body, builders),
        }
    }
}

fn raw(body: &[u8], builders: &mut [Builder]) -> Decoded<()> {
    for builder in builders {
        match &mut builder.values {
            Values::Text(out) => {
                std::str::from_utf8(body).map_err(|error| {
                    Fault::new("raw.invalid_utf8", format!("the value is not UTF-8: {error}"))
                        .with_hint("give the topic a new table whose `value` is binary")
                })?;
                out.push(body)?;
            }
            Values::Binary(out) => out.push(body)?,
            _ => {
                return Err(Fault::new(
                    "internal.column_mismatch",
                    "the column was made for another type",
                ));
            }
        }
        builder.valid();
    }
    Ok(())
}

impl RawColumn {
    /// The one column of records without a format.
    pub(crate) fn column(self) -> frazil_schema::Column {
        use frazil_schema::{Column, ColumnType};
        use iceberg::spec::PrimitiveType;
        Column::new(
            "value",
            ColumnType::Primitive(match self {
                Self::Binary => PrimitiveType::Binary,
                Self::String => PrimitiveType::String,
            }),
        )
    }
}
