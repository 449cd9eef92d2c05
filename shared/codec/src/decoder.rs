use frazil_schema::SourceSchema;

use crate::TimestampRange;
use crate::avro::{self, Cursor, Node};
use crate::builder::Builder;
use crate::fault::Decoded;

/// How to decode the records of one writer's schema.
#[derive(Debug)]
pub(crate) enum Plan {
    Avro(Vec<(String, Node)>),
}

impl Plan {
    pub(crate) fn new(schema: &SourceSchema) -> Self {
        match schema {
            SourceSchema::Avro(schema) => Self::Avro(Node::of_schema(schema)),
        }
    }

    /// Appends one value to each of the schema's columns. On an error they may hold a part: cut them back.
    pub(crate) fn decode(
        &self,
        body: &[u8],
        builders: &mut [Builder],
        range: &TimestampRange,
    ) -> Decoded<()> {
        match self {
            Self::Avro(nodes) => {
                let mut cursor = Cursor::new(body);
                avro::decode_fields(nodes, builders, &mut cursor, range)?;
                cursor.finish()
            }
        }
    }
}
