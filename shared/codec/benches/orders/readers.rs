//! Who reads orders: Frazil, by its compiled schema; others, into a tree of values per order; and those who only skip
//! through the bytes, which is the least that any reader does.

use apache_avro::from_avro_datum;
use frazil_schema::{AvroSchema, JsonSchema, Mapping, MessageSelector, ProtobufFile, SourceSchema};
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use serde::de::IgnoredAny;

use super::generate::{Case, Language, Shape};

/// The schema as Frazil compiles it.
pub(crate) fn source(case: Case) -> SourceSchema {
    let (text, mapping) = (case.schema(), Mapping::default());
    match case.language {
        Language::Avro => SourceSchema::Avro(AvroSchema::parse(&text).expect("a schema")),
        Language::Protobuf => {
            let file = ProtobufFile::compile(&text, &[]).expect("a file");
            SourceSchema::Protobuf(
                file.message(&MessageSelector::First, &mapping)
                    .expect("a message"),
            )
        }
        Language::JsonSchema => {
            SourceSchema::Json(JsonSchema::compile(&text, &[], &mapping).expect("a schema"))
        }
    }
}

/// Rust's usual reader of a language.
pub(crate) enum Trees {
    ApacheAvro(Box<apache_avro::Schema>),
    ProstReflect(MessageDescriptor),
    SerdeJson,
}

impl Trees {
    pub(crate) fn new(case: Case) -> Self {
        match case.language {
            Language::Avro => {
                let schema = apache_avro::Schema::parse_str(&case.schema());
                Self::ApacheAvro(Box::new(schema.expect("a schema")))
            }
            Language::Protobuf => {
                let pool = descriptors(case);
                Self::ProstReflect(pool.get_message_by_name("shop.Order").expect("a message"))
            }
            Language::JsonSchema => Self::SerdeJson,
        }
    }

    /// Makes a tree of an order, and drops it.
    pub(crate) fn read(&self, mut body: &[u8]) {
        match self {
            Self::ApacheAvro(schema) => {
                std::hint::black_box(from_avro_datum(schema, &mut body, None).expect("an order"));
            }
            Self::ProstReflect(descriptor) => {
                let tree = DynamicMessage::decode(descriptor.clone(), body);
                std::hint::black_box(tree.expect("an order"));
            }
            Self::SerdeJson => {
                let tree: serde_json::Value = serde_json::from_slice(body).expect("an order");
                std::hint::black_box(tree);
            }
        }
    }
}

/// Skips through an order and returns how many values it has, or 0 where nobody counts: every length, tag, number and
/// bracket is read, and nothing is kept.
pub(crate) fn skip(case: Case, body: &[u8]) -> usize {
    match case.language {
        Language::Avro => skip_avro(case.shape, body),
        Language::Protobuf => skip_protobuf(case.shape, body),
        Language::JsonSchema => {
            serde_json::from_slice::<IgnoredAny>(body).expect("an order");
            0
        }
    }
}

fn skip_avro(shape: Shape, mut rest: &[u8]) -> usize {
    let item = |rest: &mut &[u8]| {
        skip_bytes(rest);
        varint(rest);
        *rest = &rest[8..];
        3
    };
    skip_bytes(&mut rest);
    varint(&mut rest);
    skip_bytes(&mut rest);
    varint(&mut rest);
    if varint(&mut rest) != 0 {
        skip_bytes(&mut rest);
    }
    let mut values = 5;
    match shape {
        Shape::Flat => values += item(&mut rest),
        Shape::Nested => loop {
            let count = varint(&mut rest) >> 1;
            if count == 0 {
                break;
            }
            values += (0..count).map(|_| item(&mut rest)).sum::<usize>();
        },
    }
    assert!(rest.is_empty());
    values
}

fn skip_bytes(rest: &mut &[u8]) {
    let len = (varint(rest) >> 1) as usize;
    *rest = &rest[len..];
}

/// Values of an order and of the messages in it.
fn skip_protobuf(shape: Shape, mut rest: &[u8]) -> usize {
    let mut values = 0;
    while !rest.is_empty() {
        let tag = varint(&mut rest);
        match tag & 7 {
            0 => {
                varint(&mut rest);
                values += 1;
            }
            1 => {
                rest = &rest[8..];
                values += 1;
            }
            _ => {
                let len = varint(&mut rest) as usize;
                let (inside, after) = rest.split_at(len);
                rest = after;
                let is_message = matches!(tag >> 3, 3 | 4) || (shape == Shape::Nested && tag >> 3 == 6);
                values += if is_message {
                    // No message inside has messages.
                    skip_fields(inside)
                } else {
                    1
                };
            }
        }
    }
    values
}

fn skip_fields(mut rest: &[u8]) -> usize {
    let mut values = 0;
    while !rest.is_empty() {
        match varint(&mut rest) & 7 {
            0 => {
                varint(&mut rest);
            }
            1 => rest = &rest[8..],
            _ => {
                let len = varint(&mut rest) as usize;
                rest = &rest[len..];
            }
        }
        values += 1;
    }
    values
}

fn varint(rest: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = rest[0];
        *rest = &rest[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// The compiled `.proto` file of a case, and all that it imports.
pub(crate) fn descriptors(case: Case) -> DescriptorPool {
    let mut resolver = ChainFileResolver::new();
    resolver.add(GoogleFileResolver::new());
    resolver.add(Files(case.schema()));
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler
        .include_imports(true)
        .open_file("order.proto")
        .expect("a file");
    compiler.descriptor_pool()
}

/// The order's own file, and what Confluent's registry knows by itself.
struct Files(String);

impl FileResolver for Files {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let text = match name {
            "order.proto" => &self.0,
            "confluent/meta.proto" => {
                include_str!("../../../schema/src/protobuf/builtin/confluent/meta.proto")
            }
            "confluent/type/decimal.proto" => {
                include_str!("../../../schema/src/protobuf/builtin/confluent/type/decimal.proto")
            }
            _ => return Err(protox::Error::file_not_found(name)),
        };
        File::from_source(name, text)
    }
}
