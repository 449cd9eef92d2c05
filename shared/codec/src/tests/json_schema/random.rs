//! Random schemas, and random documents that boon, another implementation of JSON Schema, says are valid under them.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate};
use frazil_schema::{JsonSchema, Mapping, SourceSchema};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::{Table, records, show, values};
use crate::{DecodeOptions, Payload, prepare};

#[derive(Debug, Clone)]
enum Kind {
    Integer,
    Int32,
    Number,
    Boolean,
    String,
    Enum,
    DateTime,
    Date,
    Uuid,
    Base64,
    Decimal { precision: u32, scale: u32 },
    Any,
    List(Box<Kind>),
    Map(Box<Kind>),
    Object(BTreeMap<String, (Kind, Style)>),
}

/// How the schema is written.
#[derive(Debug, Clone, Copy)]
enum Style {
    Plain,
    TypeList,
    OneOf,
    Reference,
    AllOf,
}

fn kinds() -> impl Strategy<Value = Kind> {
    let scalar = prop_oneof![
        Just(Kind::Integer),
        Just(Kind::Int32),
        Just(Kind::Number),
        Just(Kind::Boolean),
        Just(Kind::String),
        Just(Kind::Enum),
        Just(Kind::DateTime),
        Just(Kind::Date),
        Just(Kind::Uuid),
        Just(Kind::Base64),
        Just(Kind::Any),
        (1u32..=38, 0u32..=38).prop_map(|(precision, scale)| Kind::Decimal {
            precision,
            scale: scale.min(precision)
        }),
    ];
    scalar.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|kind| Kind::List(Box::new(kind))),
            inner.clone().prop_map(|kind| Kind::Map(Box::new(kind))),
            objects(inner),
        ]
    })
}

fn objects(inner: impl Strategy<Value = Kind>) -> impl Strategy<Value = Kind> {
    btree_map("[a-z]{1,3}", (inner, styles()), 1..5).prop_map(Kind::Object)
}

fn styles() -> impl Strategy<Value = Style> {
    prop_oneof![
        Just(Style::Plain),
        Just(Style::TypeList),
        Just(Style::OneOf),
        Just(Style::Reference),
        Just(Style::AllOf)
    ]
}

/// The schema of a kind, definitions that it refers to put into `definitions`.
fn schema(kind: &Kind, definitions: &mut Map<String, Value>) -> Value {
    let string = |format: &str| json!({"type": "string", "format": format});
    match kind {
        Kind::Integer => json!({"type": "integer"}),
        Kind::Int32 => json!({"type": "integer", "connect.type": "int32"}),
        Kind::Number => json!({"type": "number"}),
        Kind::Boolean => json!({"type": "boolean"}),
        Kind::String => json!({"type": "string"}),
        Kind::Enum => json!({"enum": ["NEW", "PAID", null]}),
        Kind::DateTime => string("date-time"),
        Kind::Date => string("date"),
        Kind::Uuid => string("uuid"),
        Kind::Base64 => json!({"type": "string", "connect.type": "bytes"}),
        Kind::Decimal { precision, scale } => json!({
            "type": ["number", "string"], "title": "org.apache.kafka.connect.data.Decimal", "connect.type": "bytes",
            "connect.parameters": {"scale": scale.to_string(), "connect.decimal.precision": precision.to_string()}
        }),
        Kind::Any => json!({}),
        Kind::List(element) => json!({"type": "array", "items": optional(&schema(element, definitions))}),
        Kind::Map(values) => {
            json!({"type": "object", "additionalProperties": optional(&schema(values, definitions))})
        }
        Kind::Object(fields) => {
            let mut properties = Map::new();
            for (name, (kind, style)) in fields {
                let plain = schema(kind, definitions);
                let styled = match style {
                    Style::Plain => optional(&plain),
                    Style::TypeList => match plain.get("type").cloned() {
                        Some(Value::String(name)) => {
                            let mut plain = plain;
                            plain["type"] = json!([name, "null"]);
                            plain
                        }
                        _ => optional(&plain),
                    },
                    Style::OneOf => json!({"oneOf": [{"type": "null"}, optional_is_enough(&plain)]}),
                    Style::Reference => {
                        let key = format!("d/{}~", definitions.len());
                        definitions.insert(key.clone(), optional(&plain));
                        json!({"$ref": format!("#/$defs/{}", key.replace('~', "~0").replace('/', "~1"))})
                    }
                    Style::AllOf => json!({"allOf": [optional(&plain), {"description": "both"}]}),
                };
                properties.insert(name.clone(), styled);
            }
            json!({"type": "object", "properties": properties})
        }
    }
}

fn optional(schema: &Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

/// `oneOf` wants exactly one branch to be valid, and some schemas take null by themselves.
fn optional_is_enough(schema: &Value) -> Value {
    json!({"allOf": [schema, {"not": {"type": "null"}}]})
}

/// A document, and how its value looks in the table.
fn value(kind: &Kind) -> BoxedStrategy<(Value, String)> {
    let text = |text: String| (Value::String(text.clone()), text);
    match kind {
        Kind::Integer => prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX)]
            .prop_map(|value| (json!(value), value.to_string()))
            .boxed(),
        Kind::Int32 => any::<i32>()
            .prop_map(|value| (json!(value), value.to_string()))
            .boxed(),
        Kind::Number => proptest::num::f64::NORMAL
            .prop_map(|value| (json!(value), format!("{value:?}")))
            .boxed(),
        Kind::Boolean => any::<bool>()
            .prop_map(|value| (json!(value), value.to_string()))
            .boxed(),
        Kind::String => any::<String>().prop_map(text).boxed(),
        Kind::Enum => prop_oneof![Just("NEW"), Just("PAID")]
            .prop_map(move |symbol| text(symbol.to_owned()))
            .boxed(),
        Kind::DateTime => (-62_135_596_800_000_000i64..=253_402_300_799_999_999)
            .prop_map(|micros| {
                let moment = DateTime::from_timestamp_micros(micros).unwrap();
                (json!(moment.to_rfc3339()), format!("{micros}us+00:00"))
            })
            .boxed(),
        Kind::Date => (-719_162i32..=2_932_896)
            .prop_map(|days| {
                let date = NaiveDate::from_num_days_from_ce_opt(days + 719_163).unwrap();
                (json!(date.to_string()), format!("day {days}"))
            })
            .boxed(),
        Kind::Uuid => any::<u128>()
            .prop_map(|bits| {
                let hex = format!("{bits:032x}");
                let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
                (json!(parts.join("-").to_uppercase()), parts.join("-"))
            })
            .boxed(),
        Kind::Base64 => vec(any::<u8>(), 0..20)
            .prop_map(|bytes| {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                (
                    json!(base64_simd::STANDARD.encode_to_string(&bytes)),
                    format!("x{hex}"),
                )
            })
            .boxed(),
        Kind::Decimal { precision, scale } => {
            let (limit, scale) = (10i128.pow(*precision) - 1, *scale as usize);
            (-limit..=limit)
                .prop_map(move |unscaled| {
                    let digits = format!("{:0>1$}", unscaled.unsigned_abs(), scale + 1);
                    let (whole, fraction) = digits.split_at(digits.len() - scale);
                    let sign = if unscaled < 0 { "-" } else { "" };
                    let point = if scale == 0 { "" } else { "." };
                    (
                        json!(base64_simd::STANDARD.encode_to_string(unscaled.to_be_bytes())),
                        format!("{sign}{whole}{point}{fraction}"),
                    )
                })
                .boxed()
        }
        Kind::Any => anything()
            .prop_filter("null is null", |value| !value.is_null())
            .prop_map(|value| {
                let text = value.to_string();
                (value, text)
            })
            .boxed(),
        // A list or a map of anything is text as a whole.
        Kind::List(element) if matches!(**element, Kind::Any) => vec(anything(), 0..4)
            .prop_map(|elements| (json!(elements), json!(elements).to_string()))
            .boxed(),
        Kind::Map(values) if matches!(**values, Kind::Any) => btree_map("[a-z]{0,3}", anything(), 0..4)
            .prop_map(|entries| (json!(entries), json!(entries).to_string()))
            .boxed(),
        Kind::List(element) => vec(option::of(value(element)), 0..4)
            .prop_map(|elements| {
                let (values, shown): (Vec<Value>, Vec<String>) = elements.into_iter().map(or_null).unzip();
                (Value::Array(values), format!("[{}]", shown.join(", ")))
            })
            .boxed(),
        Kind::Map(values) => btree_map("[a-z]{0,3}", option::of(value(values)), 0..4)
            .prop_map(|entries| {
                let mut object = Map::new();
                let mut shown = Vec::new();
                for (key, value) in entries {
                    let (value, text) = or_null(value);
                    shown.push(format!("{key}: {text}"));
                    object.insert(key, value);
                }
                (Value::Object(object), format!("<{}>", shown.join(", ")))
            })
            .boxed(),
        Kind::Object(fields) => object(fields)
            .prop_map(|(object, shown)| {
                let shown: Vec<String> = shown
                    .into_iter()
                    .map(|(name, text)| format!("{name}: {text}"))
                    .collect();
                (object, format!("{{{}}}", shown.join(", ")))
            })
            .boxed(),
    }
}

fn or_null(value: Option<(Value, String)>) -> (Value, String) {
    value.unwrap_or((Value::Null, "null".to_owned()))
}

/// An object of which fields may be null or missing, and what its fields look like.
fn object(fields: &BTreeMap<String, (Kind, Style)>) -> BoxedStrategy<Document> {
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, (kind, _))| (Just(name.clone()), any::<bool>(), option::of(value(kind))))
        .collect();
    fields
        .prop_map(|fields| {
            let mut object = Map::new();
            let mut shown = Vec::new();
            for (name, present, value) in fields {
                let is_null = value.is_none();
                let (value, text) = or_null(value);
                if present || !is_null {
                    object.insert(name.clone(), value);
                }
                shown.push((name, text));
            }
            (Value::Object(object), shown)
        })
        .boxed()
}

fn anything() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    scalar.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[a-z\"é]{0,3}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A document, and what its fields look like in the table.
type Document = (Value, Vec<(String, String)>);

fn cases() -> impl Strategy<Value = (Value, Vec<Document>)> {
    objects(kinds()).prop_flat_map(|root| {
        let mut definitions = Map::new();
        let mut text = schema(&root, &mut definitions);
        text["$defs"] = Value::Object(definitions);
        let Kind::Object(fields) = root else {
            unreachable!("objects makes objects")
        };
        (Just(text), vec(object(&fields), 1..5))
    })
}

pub(super) fn valid(schema: &Value, document: &Value) -> Result<(), String> {
    let mut compiler = boon::Compiler::new();
    compiler.enable_format_assertions();
    compiler.add_resource("schema.json", schema.clone()).unwrap();
    let mut schemas = boon::Schemas::new();
    let index = compiler
        .compile("schema.json", &mut schemas)
        .map_err(|error| error.to_string())?;
    schemas
        .validate(document, index)
        .map_err(|error| error.to_string())
}

fn row(fields: &[(String, String)]) -> String {
    let shown: Vec<String> = fields
        .iter()
        .filter(|(_, text)| text != "null")
        .map(|(name, text)| format!("{name}={text}"))
        .collect();
    shown.join(" ")
}

/// A field as the old and the new schema have it: at least one of them does.
type Versions = (Option<Kind>, Option<Kind>);

fn versions() -> impl Strategy<Value = Versions> {
    let changed = prop_oneof![
        Just((Some(Kind::Int32), Some(Kind::Integer))),
        Just((Some(Kind::Integer), Some(Kind::Int32))),
        Just((
            Some(Kind::Decimal {
                precision: 9,
                scale: 2
            }),
            Some(Kind::Decimal {
                precision: 30,
                scale: 2
            })
        )),
        Just((Some(Kind::String), Some(Kind::Enum))),
        Just((Some(Kind::Uuid), Some(Kind::String))),
        Just((
            Some(Kind::List(Box::new(Kind::Int32))),
            Some(Kind::List(Box::new(Kind::Integer)))
        )),
    ];
    prop_oneof![
        kinds().prop_map(|kind| (Some(kind), None)),
        kinds().prop_map(|kind| (None, Some(kind))),
        kinds().prop_map(|kind| (Some(kind.clone()), Some(kind))),
        changed,
    ]
}

/// Two schemas of one topic, and documents: which of the two wrote each.
fn pairs() -> impl Strategy<Value = ([Value; 2], Vec<(bool, Document)>)> {
    btree_map("[a-z]{1,3}", (versions(), styles()), 2..6)
        .prop_filter("both have fields", |fields| {
            let has = |of: fn(&Versions) -> bool| fields.values().any(|(kinds, _)| of(kinds));
            has(|(old, _)| old.is_some()) && has(|(_, new)| new.is_some())
        })
        .prop_flat_map(|fields| {
            let version = |of: fn(&Versions) -> &Option<Kind>| {
                let fields = fields
                    .iter()
                    .filter_map(|(name, (kinds, style))| Some((name.clone(), (of(kinds).clone()?, *style))));
                fields.collect::<BTreeMap<_, _>>()
            };
            let (old, new) = (version(|(old, _)| old), version(|(_, new)| new));
            let texts = [&old, &new].map(|fields| {
                let mut definitions = Map::new();
                let mut text = schema(&Kind::Object(fields.clone()), &mut definitions);
                text["$defs"] = Value::Object(definitions);
                text
            });
            let document = prop_oneof![
                object(&old).prop_map(|document| (false, document)),
                object(&new).prop_map(|document| (true, document)),
            ];
            (Just(texts), vec(document, 1..8))
        })
}

proptest! {
    #[test]
    fn valid_documents_become_their_values((text, documents) in cases()) {
        for (document, _) in &documents {
            prop_assert_eq!(valid(&text, document), Ok(()));
        }
        let schema = SourceSchema::Json(JsonSchema::compile(&text.to_string(), &[], &Mapping::default()).unwrap());
        let bodies: Vec<String> = documents.iter().map(|(document, _)| document.to_string()).collect();
        let records = records(bodies.iter().map(|body| Payload::Encoded { schema: &schema, body: body.as_bytes() }));
        let expected: Vec<String> = documents.iter().map(|(_, fields)| row(fields)).collect();
        prop_assert_eq!(Table::default().values(&records), expected, "{}", text);
    }

    /// Records of two schemas, interleaved in one event, and once more when the table has the columns of both.
    #[test]
    fn records_of_two_schemas_share_a_table((texts, documents) in pairs()) {
        let schemas = texts.map(|text| {
            SourceSchema::Json(JsonSchema::compile(&text.to_string(), &[], &Mapping::default()).unwrap())
        });
        let bodies: Vec<String> = documents.iter().map(|(_, (document, _))| document.to_string()).collect();
        let payloads = documents.iter().zip(&bodies).map(|((new, _), body)| Payload::Encoded {
            schema: &schemas[usize::from(*new)],
            body: body.as_bytes(),
        });
        let records = records(payloads);
        let mut table = Table::default();
        for _ in 0..2 {
            let batch = table.take(&prepare(&records, DecodeOptions::default()).unwrap()).unwrap();
            for (row, (_, (_, fields))) in documents.iter().enumerate() {
                let schema = batch.schema();
                let columns = schema.fields().iter().zip(batch.columns());
                let found: BTreeMap<&str, String> = columns
                    .filter(|(field, _)| !field.name().starts_with("_kafka_"))
                    .map(|(field, column)| (field.name().as_str(), show(column.as_ref(), row)))
                    .filter(|(_, text)| text != "null")
                    .collect();
                let expected = fields.iter().filter(|(_, text)| text != "null");
                let expected: BTreeMap<&str, String> = expected.map(|(name, text)| (name.as_str(), text.clone())).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn mutated_documents_leave_their_neighbours_alone(
        (text, documents) in cases(), edits in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4), cut in any::<prop::sample::Index>()
    ) {
        let schema = SourceSchema::Json(JsonSchema::compile(&text.to_string(), &[], &Mapping::default()).unwrap());
        let bodies: Vec<Vec<u8>> = documents.iter().map(|(document, _)| document.to_string().into_bytes()).collect();
        let mut broken = bodies[0].clone();
        for (at, byte) in edits {
            let at = at.index(broken.len());
            broken[at] = byte;
        }
        if cut.index(3) == 0 {
            broken.truncate(cut.index(broken.len()));
        }
        let good = |body: &'_ Vec<u8>| body.clone();
        let all: Vec<Vec<u8>> = bodies.iter().flat_map(|body| [good(body), broken.clone()]).collect();
        let records = records(all.iter().map(|body| Payload::Encoded { schema: &schema, body }));
        let prepared = prepare(&records, DecodeOptions::default()).unwrap();
        let found = values(&Table::default().take(&prepared).unwrap());
        let found: BTreeMap<usize, &String> = prepared.rows().zip(&found).collect();
        for (index, (_, fields)) in documents.iter().enumerate() {
            prop_assert_eq!(found.get(&(2 * index)).map(|found| (*found).clone()), Some(row(fields)));
        }
    }

    #[test]
    fn arbitrary_documents_never_panic(
        (text, _) in cases(), bytes in vec(any::<u8>(), 0..60), json in r#"[\[\]{}",:0-9.eE+\-ntrufalse\\ a-c]{0,40}"#
    ) {
        let schema = SourceSchema::Json(JsonSchema::compile(&text.to_string(), &[], &Mapping::default()).unwrap());
        let records = records([bytes.as_slice(), json.as_bytes()].map(|body| Payload::Encoded { schema: &schema, body }));
        let prepared = prepare(&records, DecodeOptions::default()).unwrap();
        prop_assert!(Table::default().take(&prepared).is_ok());
    }

    #[test]
    fn arbitrary_schemas_never_panic(text in r##"\{("(type|\$ref|properties|items|oneOf|anyOf|allOf|enum|const|\$id|\$defs)": ("(string|#|integer|object)"|\{\}|\[\{\}\]|true|\[1\]|\{"a": \{"\$ref": "#"\}\}), ){0,5}"description": "x"\}"##) {
        let _ = JsonSchema::compile(&text, &[], &Mapping::default());
    }
}
