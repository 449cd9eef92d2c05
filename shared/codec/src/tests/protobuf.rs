//! Protobuf records, encoded by prost-reflect, or byte by byte where no encoder would write them.

use std::collections::HashMap;

use frazil_schema::{Mapping, MessageSelector, ProtobufFile, SourceSchema};
use prost_reflect::prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

use super::{Table, poison, records, values};
use crate::{DecodeOptions, Payload, prepare};

mod corners;
mod json;
mod random;
mod rows;

/// Files that the compiler does not have, as a registry would hand them out.
const OTHERS: [(&str, &str); 4] = [
    (
        "google/type/date.proto",
        include_str!("../../../schema/src/protobuf/builtin/google/type/date.proto"),
    ),
    (
        "google/type/timeofday.proto",
        include_str!("../../../schema/src/protobuf/builtin/google/type/timeofday.proto"),
    ),
    (
        "google/type/decimal.proto",
        include_str!("../../../schema/src/protobuf/builtin/google/type/decimal.proto"),
    ),
    (
        "confluent/type/decimal.proto",
        include_str!("../../../schema/src/protobuf/builtin/confluent/type/decimal.proto"),
    ),
];

struct Texts(HashMap<String, String>);

impl FileResolver for Texts {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let text = self
            .0
            .get(name)
            .ok_or_else(|| protox::Error::file_not_found(name))?;
        File::from_source(name, text)
    }
}

/// The file's types for the other implementation.
fn pool(text: &str) -> DescriptorPool {
    let mut files: HashMap<String, String> = OTHERS
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .into();
    files.insert("m.proto".to_owned(), text.to_owned());
    let mut resolver = ChainFileResolver::new();
    resolver.add(GoogleFileResolver::new());
    resolver.add(Texts(files));
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.open_file("m.proto").unwrap();
    compiler.descriptor_pool()
}

/// Message `M` of the file, given as JSON, in bytes.
fn encode(text: &str, json: &str) -> Vec<u8> {
    let message = pool(text).get_message_by_name("M").unwrap();
    let mut deserializer = serde_json::Deserializer::from_str(json);
    DynamicMessage::deserialize(message, &mut deserializer)
        .unwrap()
        .encode_to_vec()
}

fn compile(text: &str, mapping: &Mapping) -> SourceSchema {
    let file = ProtobufFile::compile(text, &[]).unwrap();
    SourceSchema::Protobuf(
        file.message(&MessageSelector::Name("M".to_owned()), mapping)
            .unwrap(),
    )
}

fn proto3(body: &str) -> String {
    format!("syntax = \"proto3\";\n{body}")
}

/// Expects the message `M`, given as JSON, in the table as text, or as the poison's code and reason.
fn check(text: &str, json: &str, expected: &str) {
    check_bytes(text, &encode(text, json), expected);
}

fn check_bytes(text: &str, body: &[u8], expected: &str) {
    check_mapped(text, &Mapping::default(), body, expected);
}

fn check_mapped(text: &str, mapping: &Mapping, body: &[u8], expected: &str) {
    let schema = compile(text, mapping);
    let records = records([Payload::Encoded {
        schema: &schema,
        body,
    }]);
    let prepared = prepare(&records, DecodeOptions::default()).unwrap();
    let found = match prepared.poison() {
        [] => values(&Table::default().take(&prepared).unwrap()).remove(0),
        _ => poison(&prepared).remove(0).1,
    };
    assert_eq!(found, expected, "{text} {}", body.escape_ascii());
}

/// Bytes of the wire format, written out: `tag(1, 0)`, `varint(300)`, `bytes(b"x")`.
fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn tag(number: u32, wire: u64) -> Vec<u8> {
    varint(u64::from(number) << 3 | wire)
}

fn bytes(number: u32, bytes: &[u8]) -> Vec<u8> {
    [tag(number, 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

fn number(number: u32, value: u64) -> Vec<u8> {
    [tag(number, 0), varint(value)].concat()
}
