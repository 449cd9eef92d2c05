//! Schemas and records at random: what the table holds must be what prost-reflect decodes.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use frazil_schema::Mapping;
use proptest::prelude::*;
use prost_reflect::{FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage, Value};

use super::*;

/// Decisions, so that proptest can shrink them: without bytes, the first choice.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % limit
    }

    fn number(&mut self) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => 1 << 63,
            4 => self.below(256) as u64,
            _ => (0..8).fold(0, |number, _| number << 8 | self.below(256) as u64),
        }
    }
}

const SCALARS: [&str; 16] = [
    "int32", "string", "bool", "bytes", "double", "float", "int64", "uint32", "uint64", "sint32", "sint64",
    "fixed32", "fixed64", "sfixed32", "sfixed64", "E",
];

/// A message with fields of any kind, and the messages inside it.
fn message(name: &str, depth: usize, proto2: bool, choices: &mut Choices<'_>) -> String {
    let mut text = format!("message {name} {{\n");
    let mut number = 0;
    for index in 0..choices.below(7) {
        number += 1 + choices.below(4) * choices.below(120);
        let field = format!("{}f{index}", name.to_ascii_lowercase());
        let mut kind = SCALARS[choices.below(SCALARS.len())].to_owned();
        if depth < 3 && choices.below(3) == 0 {
            kind = format!("N{index}");
            text.push_str(&message(&kind, depth + 1, proto2, choices));
        }
        let label = if proto2 { "optional " } else { "" };
        text.push_str(&match choices.below(7) {
            0 | 1 => format!("{label}{kind} {field} = {number};\n"),
            2 => format!("optional {kind} {field} = {number};\n"),
            3 => format!("repeated {kind} {field} = {number};\n"),
            4 => {
                let key = ["string", "int32", "bool", "uint64", "sint64", "fixed32"][choices.below(6)];
                format!("map<{key}, {kind}> {field} = {number};\n")
            }
            5 if proto2 => {
                let body = message("X", depth + 1, proto2, choices).replacen("message X", "", 1);
                format!("repeated group G{index} = {number} {body}")
            }
            5 => format!("repeated {kind} {field} = {number}{};\n", if choices.below(2) == 0 && packable(&kind) { " [packed = false]" } else { "" }),
            _ => {
                let (first, second, third) = (number, number + 1, number + 2);
                number = third;
                format!(
                    "oneof {field}o {{ {kind} {field} = {first}; string {field}s = {second}; {kind} {field}k = {third}; }}\n"
                )
            }
        });
    }
    text.push_str("}\n");
    text
}

fn packable(kind: &str) -> bool {
    !matches!(kind, "string" | "bytes") && !kind.starts_with('N')
}

fn random_message(descriptor: &MessageDescriptor, choices: &mut Choices<'_>) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    let fields: Vec<FieldDescriptor> = descriptor.fields().collect();
    for field in fields {
        if choices.below(3) == 0 {
            continue;
        }
        let value = if field.is_map() {
            let Kind::Message(entry) = field.kind() else {
                unreachable!()
            };
            let count = choices.below(4);
            let entries: HashMap<MapKey, Value> = (0..count)
                .map(|_| {
                    let key = match random_value(&entry.map_entry_key_field().kind(), choices) {
                        Value::Bool(key) => MapKey::Bool(key),
                        Value::I32(key) => MapKey::I32(key),
                        Value::I64(key) => MapKey::I64(key),
                        Value::U32(key) => MapKey::U32(key),
                        Value::U64(key) => MapKey::U64(key),
                        Value::String(key) => MapKey::String(key),
                        other => panic!("no key: {other:?}"),
                    };
                    (key, random_value(&entry.map_entry_value_field().kind(), choices))
                })
                .collect();
            Value::Map(entries)
        } else if field.is_list() {
            Value::List(
                (0..choices.below(4))
                    .map(|_| random_value(&field.kind(), choices))
                    .collect(),
            )
        } else {
            random_value(&field.kind(), choices)
        };
        message.set_field(&field, value);
    }
    message
}

#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
fn random_value(kind: &Kind, choices: &mut Choices<'_>) -> Value {
    match kind {
        Kind::Double => Value::F64(f64::from_bits(choices.number())),
        Kind::Float => Value::F32(f32::from_bits(choices.number() as u32)),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(choices.number() as i32),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(choices.number() as i64),
        Kind::Uint32 | Kind::Fixed32 => Value::U32(choices.number() as u32),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(choices.number()),
        Kind::Bool => Value::Bool(choices.below(2) == 1),
        Kind::String => Value::String("aß🧊".chars().take(choices.below(4)).collect()),
        Kind::Bytes => Value::Bytes(vec![choices.below(256) as u8; choices.below(4)].into()),
        Kind::Enum(_) => Value::EnumNumber([0, 1, -7, 99][choices.below(4)]),
        Kind::Message(message) => Value::Message(random_message(message, choices)),
    }
}

/// A row of a struct's columns, or of the table's, against a message.
fn same_message(columns: &HashMap<String, ArrayRef>, row: usize, message: &DynamicMessage) {
    for field in message.descriptor().fields() {
        let column = &columns[&field.name().to_ascii_lowercase()];
        if field.supports_presence() && !message.has_field(&field) {
            assert!(column.is_null(row), "{}", field.full_name());
            continue;
        }
        assert!(column.is_valid(row), "{}", field.full_name());
        same_value(column, row, &field, &message.get_field(&field));
    }
}

fn same_value(array: &ArrayRef, row: usize, field: &FieldDescriptor, value: &Value) {
    match value {
        Value::List(elements) => {
            let found = array.as_list::<i32>().value(row);
            assert_eq!(found.len(), elements.len(), "{}", field.full_name());
            for (index, element) in elements.iter().enumerate() {
                assert!(found.is_valid(index));
                same_scalar(&found, index, &field.kind(), element);
            }
        }
        Value::Map(entries) => {
            let found = array.as_map().value(row);
            assert_eq!(found.len(), entries.len(), "{}", field.full_name());
            let Kind::Message(entry) = field.kind() else {
                unreachable!()
            };
            for index in 0..found.len() {
                let (key, value) = entries
                    .iter()
                    .find(|(key, _)| is_key(found.column(0), index, key))
                    .expect("a key of the map");
                let _ = key;
                same_scalar(
                    found.column(1),
                    index,
                    &entry.map_entry_value_field().kind(),
                    value,
                );
            }
        }
        value => same_scalar(array, row, &field.kind(), value),
    }
}

fn is_key(array: &ArrayRef, row: usize, key: &MapKey) -> bool {
    match key {
        MapKey::Bool(key) => array.as_boolean().value(row) == *key,
        MapKey::I32(key) => array.as_primitive::<Int32Type>().value(row) == *key,
        MapKey::I64(key) => array.as_primitive::<Int64Type>().value(row) == *key,
        MapKey::U32(key) => array.as_primitive::<Int64Type>().value(row) == i64::from(*key),
        MapKey::U64(key) => array.as_primitive::<Decimal128Type>().value(row) == i128::from(*key),
        MapKey::String(key) => array.as_string::<i32>().value(row) == key,
    }
}

fn same_scalar(array: &ArrayRef, row: usize, kind: &Kind, value: &Value) {
    match value {
        Value::Bool(value) => assert_eq!(array.as_boolean().value(row), *value),
        Value::I32(value) => assert_eq!(array.as_primitive::<Int32Type>().value(row), *value),
        Value::I64(value) => assert_eq!(array.as_primitive::<Int64Type>().value(row), *value),
        Value::U32(value) => assert_eq!(array.as_primitive::<Int64Type>().value(row), i64::from(*value)),
        Value::U64(value) => assert_eq!(
            array.as_primitive::<Decimal128Type>().value(row),
            i128::from(*value)
        ),
        Value::F32(value) => assert_eq!(
            array.as_primitive::<Float32Type>().value(row).to_bits(),
            value.to_bits()
        ),
        Value::F64(value) => assert_eq!(
            array.as_primitive::<Float64Type>().value(row).to_bits(),
            value.to_bits()
        ),
        Value::String(value) => assert_eq!(array.as_string::<i32>().value(row), value),
        Value::Bytes(value) => assert_eq!(array.as_binary::<i64>().value(row), &value[..]),
        Value::EnumNumber(number) => {
            let Kind::Enum(declared) = kind else {
                unreachable!()
            };
            let expected = declared
                .get_value(*number)
                .map_or_else(|| number.to_string(), |value| value.name().to_owned());
            assert_eq!(array.as_string::<i32>().value(row), expected);
        }
        Value::Message(message) if message.descriptor().fields().len() == 0 => {
            assert!(array.as_boolean().value(row));
        }
        Value::Message(message) => {
            let array = array.as_struct();
            let names = array.column_names().into_iter().map(str::to_owned);
            same_message(
                &names.zip(array.columns().iter().cloned()).collect(),
                row,
                message,
            );
        }
        other => panic!("no scalar: {other:?}"),
    }
}

proptest! {
    #[test]
    fn random_records_arrive(
        schema in prop::collection::vec(any::<u8>(), 0..120), content in prop::collection::vec(any::<u8>(), 0..600)
    ) {
        let mut choices = Choices(schema.iter());
        let proto2 = choices.below(2) == 1;
        let syntax = if proto2 { "proto2" } else { "proto3" };
        let text = format!(
            "syntax = \"{syntax}\"; enum E {{ ZERO = 0; ONE = 1; MINUS = -7; }}\n{}",
            message("M", 0, proto2, &mut choices)
        );
        let descriptor = pool(&text).get_message_by_name("M").unwrap();
        let mut choices = Choices(content.iter());
        let messages: Vec<DynamicMessage> = (0..6).map(|_| random_message(&descriptor, &mut choices)).collect();
        // Records in one part, two and three, which are merged.
        let bodies: Vec<Vec<u8>> = (0..4)
            .map(|index| messages[index..=index + index % 3].iter().flat_map(Message::encode_to_vec).collect())
            .collect();
        let schema = compile(&text, &Mapping::default());
        let records = records(bodies.iter().map(|body| Payload::Encoded { schema: &schema, body }));
        let prepared = prepare(&records, DecodeOptions::default()).unwrap();
        prop_assert!(prepared.poison().is_empty(), "{:?}\n{text}", prepared.poison());
        prop_assert_eq!(prepared.unknown_fields(), 0);
        let batch = Table::default().take(&prepared).unwrap();
        let names = batch.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
        let columns: HashMap<String, ArrayRef> = names.into_iter().zip(batch.columns().iter().cloned()).collect();
        for (row, body) in bodies.iter().enumerate() {
            let expected = DynamicMessage::decode(descriptor.clone(), body.as_slice()).unwrap();
            same_message(&columns, row, &expected);
        }
    }

    #[test]
    fn random_records_have_the_other_implementations_json(
        schema in prop::collection::vec(any::<u8>(), 0..120), content in prop::collection::vec(any::<u8>(), 0..300)
    ) {
        let mut choices = Choices(schema.iter());
        let proto2 = choices.below(2) == 1;
        let (syntax, label) = if proto2 { ("proto2", "optional ") } else { ("proto3", "") };
        // Inside itself, the outer message is JSON.
        let inner = message("N", 0, proto2, &mut choices);
        let text = format!(
            "syntax = \"{syntax}\"; enum E {{ ZERO = 0; ONE = 1; MINUS = -7; }}
             message M {{ {label}M f = 1; {label}N n = 2; }}\n{inner}"
        );
        let pool = pool(&text);
        let (outer, inner) = (pool.get_message_by_name("M").unwrap(), pool.get_message_by_name("N").unwrap());
        let mut choices = Choices(content.iter());
        // Parts that are to be merged: three, so that a member of a oneof may come, go and come again.
        let parts: Vec<u8> = (0..3)
            .flat_map(|_| bytes(2, &random_message(&inner, &mut choices).encode_to_vec()))
            .collect();
        let expected = DynamicMessage::decode(outer, parts.as_slice()).unwrap();
        let mut theirs = serde_json::Serializer::new(Vec::new());
        expected
            .serialize_with_options(&mut theirs, &prost_reflect::SerializeOptions::new())
            .unwrap();
        let theirs: serde_json::Value = serde_json::from_slice(&theirs.into_inner()).unwrap();

        let (schema, body) = (compile(&text, &Mapping::default()), bytes(1, &parts));
        let records = records([Payload::Encoded { schema: &schema, body: &body }]);
        let prepared = prepare(&records, DecodeOptions::default()).unwrap();
        prop_assert!(prepared.poison().is_empty(), "{:?}\n{text}", prepared.poison());
        let batch = Table::default().take(&prepared).unwrap();
        let ours = super::super::show(batch.column(0).as_ref(), 0);
        let ours: serde_json::Value = serde_json::from_str(&ours).unwrap();
        prop_assert_eq!(ours, theirs, "{}", text);
    }
}
