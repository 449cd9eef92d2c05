//! Two schemas of one topic, the newer made from the older by accepted changes, and records of both in one batch.

use std::collections::HashMap;

use apache_avro::types::Value;
use apache_avro::{Decimal, Schema, to_avro_datum};
use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use frazil_schema::{AvroSchema, SourceSchema};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::{Table, records, show};
use crate::{DecodeOptions, Payload, prepare};

#[derive(Debug, Clone)]
enum Kind {
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Text,
    Bytes,
    Enum,
    Decimal(u32),
    Date,
    Millis,
    Optional(Box<Kind>),
    List(Box<Kind>),
    Map(Box<Kind>),
    Record(Vec<(String, Kind)>),
    /// null, string, long and a record, and a boolean if so.
    Union(Vec<(String, Kind)>, bool),
}

fn kind() -> impl Strategy<Value = Kind> {
    let leaf = prop_oneof![
        Just(Kind::Boolean),
        Just(Kind::Int),
        Just(Kind::Long),
        Just(Kind::Float),
        Just(Kind::Double),
        Just(Kind::Text),
        Just(Kind::Bytes),
        Just(Kind::Enum),
        (5u32..=18).prop_map(Kind::Decimal),
        Just(Kind::Date),
        Just(Kind::Millis),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let plain = inner.clone().prop_filter("no union in a union", |kind| {
            !matches!(kind, Kind::Optional(_) | Kind::Union(..))
        });
        prop_oneof![
            plain.prop_map(|kind| Kind::Optional(Box::new(kind))),
            inner.clone().prop_map(|kind| Kind::List(Box::new(kind))),
            inner.clone().prop_map(|kind| Kind::Map(Box::new(kind))),
            fields(inner.clone(), 4).prop_map(Kind::Record),
            (fields(inner, 3), any::<bool>()).prop_map(|(fields, boolean)| Kind::Union(fields, boolean)),
        ]
    })
}

fn fields(kind: impl Strategy<Value = Kind>, max: usize) -> impl Strategy<Value = Vec<(String, Kind)>> {
    prop::collection::vec(kind, 1..=max).prop_map(|kinds| {
        let named = kinds.into_iter().enumerate();
        named.map(|(index, kind)| (format!("f{index}"), kind)).collect()
    })
}

/// Choices, from a seed that proptest prints and shrinks.
struct Choices(u64);

impl Choices {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

impl Kind {
    /// The type as Avro's JSON; `place` makes names of types unique, and the same in both schemas.
    fn avro(&self, place: &str) -> Json {
        match self {
            Self::Boolean => json!("boolean"),
            Self::Int => json!("int"),
            Self::Long => json!("long"),
            Self::Float => json!("float"),
            Self::Double => json!("double"),
            Self::Text => json!("string"),
            Self::Bytes => json!("bytes"),
            Self::Enum => json!({"type": "enum", "name": format!("e{place}"), "symbols": ["A", "B"]}),
            Self::Decimal(precision) => {
                json!({"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 3})
            }
            Self::Date => json!({"type": "int", "logicalType": "date"}),
            Self::Millis => json!({"type": "long", "logicalType": "timestamp-millis"}),
            Self::Optional(inner) => json!(["null", inner.avro(place)]),
            Self::List(inner) => json!({"type": "array", "items": inner.avro(&format!("{place}l"))}),
            Self::Map(inner) => json!({"type": "map", "values": inner.avro(&format!("{place}m"))}),
            Self::Record(fields) => record(fields, place),
            Self::Union(fields, boolean) => {
                let mut branches = vec![json!("null"), json!("string"), json!("long")];
                branches.extend(boolean.then(|| json!("boolean")));
                branches.push(record(fields, &format!("{place}u")));
                Json::Array(branches)
            }
        }
    }

    /// The same type after some accepted changes.
    fn changed(&self, choices: &mut Choices) -> Self {
        let boxed = |kind: &Self, choices: &mut Choices| Box::new(kind.changed(choices));
        match self {
            Self::Int if choices.below(3) == 0 => Self::Long,
            Self::Float if choices.below(3) == 0 => Self::Double,
            Self::Decimal(precision) if choices.below(2) == 0 => Self::Decimal(precision + 2),
            Self::Enum if choices.below(3) == 0 => Self::Text,
            Self::Optional(inner) if choices.below(4) == 0 => inner.changed(choices),
            Self::Optional(inner) => match inner.changed(choices) {
                optional @ Self::Optional(_) => optional,
                changed => Self::Optional(Box::new(changed)),
            },
            Self::List(inner) => Self::List(boxed(inner, choices)),
            Self::Map(inner) => Self::Map(boxed(inner, choices)),
            Self::Record(fields) => Self::Record(changed_fields(fields, choices)),
            Self::Union(fields, boolean) => {
                Self::Union(changed_fields(fields, choices), *boolean || choices.below(2) == 0)
            }
            kind if choices.below(5) == 0 => Self::Optional(Box::new(kind.clone())),
            kind => kind.clone(),
        }
    }

    /// A value, and what the table has to show of it.
    fn value(&self, choices: &mut Choices) -> (Value, Json) {
        let bits = choices.next();
        match self {
            Self::Boolean => (Value::Boolean(bits & 1 == 1), json!((bits & 1 == 1).to_string())),
            Self::Int => {
                let value = (bits as u32).cast_signed() >> (bits >> 59);
                (Value::Int(value), json!(value.to_string()))
            }
            Self::Long => {
                let value = bits.cast_signed() >> (bits & 63);
                (Value::Long(value), json!(value.to_string()))
            }
            Self::Float => {
                let value = f32::from_bits(bits as u32);
                (Value::Float(value), json!(format!("{:?}", f64::from(value))))
            }
            Self::Double => {
                let value = f64::from_bits(bits);
                (Value::Double(value), json!(format!("{value:?}")))
            }
            Self::Text => {
                let text = ["", "ü", "a b", "\"\\\n", "\u{10ffff}"][(bits % 5) as usize];
                (Value::String(text.to_owned()), json!(text))
            }
            Self::Bytes => {
                let bytes = bits.to_le_bytes()[..(bits % 9) as usize].to_vec();
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                (Value::Bytes(bytes), json!(format!("x{hex}")))
            }
            Self::Enum => {
                let (index, symbol) = [(0, "A"), (1, "B")][(bits & 1) as usize];
                (Value::Enum(index, symbol.to_owned()), json!(symbol))
            }
            Self::Decimal(_) => {
                let unscaled = bits.cast_signed() % 99_999;
                let sign = if unscaled < 0 { "-" } else { "" };
                let (whole, rest) = (unscaled.abs() / 1_000, unscaled.abs() % 1_000);
                let value = Value::Decimal(Decimal::from(unscaled.to_be_bytes()));
                (value, json!(format!("{sign}{whole}.{rest:03}")))
            }
            Self::Date => {
                let days = i32::try_from(bits % 3_000_000).unwrap() - 700_000;
                (Value::Date(days), json!(format!("day {days}")))
            }
            Self::Millis => {
                let millis = i64::try_from(bits % 300_000_000_000_000).unwrap() - 60_000_000_000_000;
                (
                    Value::TimestampMillis(millis),
                    json!(format!("{}us+00:00", millis * 1_000)),
                )
            }
            Self::Optional(inner) => {
                if bits.is_multiple_of(3) {
                    return (Value::Union(0, Box::new(Value::Null)), Json::Null);
                }
                let (value, shown) = inner.value(choices);
                (Value::Union(1, Box::new(value)), shown)
            }
            Self::List(inner) => {
                let (values, shown) = (0..bits % 4).map(|_| inner.value(choices)).unzip();
                (Value::Array(values), Json::Array(shown))
            }
            Self::Map(inner) => {
                let entries = (0..bits % 3).map(|key| (format!("k{key}"), inner.value(choices)));
                let (mut values, mut shown) = (HashMap::new(), Vec::new());
                for (key, (value, value_shown)) in entries {
                    shown.push(json!([key, value_shown]));
                    values.insert(key, value);
                }
                (Value::Map(values), Json::Array(shown))
            }
            Self::Record(fields) => record_value(fields, choices),
            Self::Union(fields, boolean) => {
                let branches = if *boolean { 5 } else { 4 };
                let branch = bits % branches;
                let (name, (value, shown)) = match branch {
                    0 => return (Value::Union(0, Box::new(Value::Null)), Json::Null),
                    1 => ("string", Self::Text.value(choices)),
                    2 => ("long", Self::Long.value(choices)),
                    3 if *boolean => ("boolean", Self::Boolean.value(choices)),
                    _ => ("record", record_value(fields, choices)),
                };
                let branch = u32::try_from(branch).unwrap();
                (Value::Union(branch, Box::new(value)), json!({ name: shown }))
            }
        }
    }
}

fn record(fields: &[(String, Kind)], place: &str) -> Json {
    let fields: Vec<Json> = fields
        .iter()
        .map(|(name, kind)| json!({"name": name, "type": kind.avro(&format!("{place}_{name}"))}))
        .collect();
    json!({"type": "record", "name": format!("r{place}"), "fields": fields})
}

fn record_value(fields: &[(String, Kind)], choices: &mut Choices) -> (Value, Json) {
    let (mut values, mut shown) = (Vec::new(), serde_json::Map::new());
    for (name, kind) in fields {
        let (value, value_shown) = kind.value(choices);
        values.push((name.clone(), value));
        if !value_shown.is_null() {
            shown.insert(name.clone(), value_shown);
        }
    }
    (Value::Record(values), Json::Object(shown))
}

/// Some fields go, some come, and the order changes.
fn changed_fields(fields: &[(String, Kind)], choices: &mut Choices) -> Vec<(String, Kind)> {
    let mut changed: Vec<(String, Kind)> = fields
        .iter()
        .map(|(name, kind)| (name.clone(), kind.changed(choices)))
        .collect();
    if changed.len() > 1 && choices.below(3) == 0 {
        let gone = choices.below(changed.len() as u64) as usize;
        changed.remove(gone);
    }
    if choices.below(2) == 0 {
        let new = [
            Kind::Text,
            Kind::List(Box::new(Kind::Int)),
            Kind::Record(vec![("x".to_owned(), Kind::Optional(Box::new(Kind::Double)))]),
        ];
        changed.push(("added".to_owned(), new[choices.below(3) as usize].clone()));
    }
    let turn = choices.below(changed.len() as u64) as usize;
    changed.rotate_left(turn);
    changed
}

/// A value of the table, in the form that [`Kind::value`] has.
fn shown(array: &dyn Array, row: usize) -> Json {
    if array.is_null(row) {
        return Json::Null;
    }
    match array.data_type() {
        DataType::Struct(fields) => {
            let mut object = serde_json::Map::new();
            for (field, child) in fields.iter().zip(array.as_struct().columns()) {
                let value = shown(child.as_ref(), row);
                // A branch of a union is named by its type, which has a name of its own here.
                let name = if field.name().starts_with("r_") {
                    "record"
                } else {
                    field.name()
                };
                if !value.is_null() {
                    object.insert(name.to_owned(), value);
                }
            }
            Json::Object(object)
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|item| shown(items.as_ref(), item)).collect()
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let mut pairs: Vec<(String, Json)> = (0..entries.len())
                .map(|entry| (show(entries.column(0), entry), shown(entries.column(1), entry)))
                .collect();
            pairs.sort_by(|one, other| one.0.cmp(&other.0));
            pairs
                .into_iter()
                .map(|(key, value)| json!([key, value]))
                .collect()
        }
        DataType::Float32 => {
            let single = array.as_primitive::<Float32Type>().value(row);
            json!(format!("{:?}", f64::from(single)))
        }
        _ => json!(show(array, row)),
    }
}

fn rows(batch: &RecordBatch) -> Vec<Json> {
    let schema = batch.schema();
    (0..batch.num_rows())
        .map(|row| {
            let columns = schema.fields().iter().zip(batch.columns());
            columns
                .filter(|(field, array)| !field.name().starts_with("_kafka_") && array.is_valid(row))
                .map(|(field, array)| (field.name().clone(), shown(array.as_ref(), row)))
                .collect()
        })
        .collect()
}

proptest! {
    #[test]
    fn records_of_both_schemas_arrive_whole_and_in_order(
        old in fields(kind(), 4),
        seed in any::<u64>(),
        order in prop::collection::vec(any::<bool>(), 1..12),
    ) {
        let mut choices = Choices(seed);
        let new = changed_fields(&old, &mut choices);
        let sides: Vec<_> = [&old, &new]
            .into_iter()
            .map(|fields| {
                let text = record(fields, "").to_string();
                let ours = SourceSchema::Avro(AvroSchema::parse(&text).unwrap());
                (fields, Schema::parse_str(&text).unwrap(), ours)
            })
            .collect();
        let mut encoded = Vec::new();
        let mut expected = Vec::new();
        for is_new in &order {
            let (fields, theirs, ours) = &sides[usize::from(*is_new)];
            let (value, shown) = record_value(fields, &mut choices);
            encoded.push((ours, to_avro_datum(theirs, value).unwrap()));
            expected.push(shown);
        }
        let records = records(encoded.iter().map(|(schema, body)| Payload::Encoded { schema, body }));
        let prepared = prepare(&records, DecodeOptions::default()).unwrap();
        prop_assert!(prepared.poison().is_empty(), "{:?}", prepared.poison());
        let mut table = Table::default();
        prop_assert_eq!(rows(&table.take(&prepared).unwrap()), expected.clone());
        // The table has a place for everything now, whatever comes first.
        let columns = table.fields.len();
        prop_assert_eq!(rows(&table.take(&prepared).unwrap()), expected);
        prop_assert_eq!(table.fields.len(), columns);
    }
}
