use super::*;
use crate::KafkaColumns;
use crate::{Evolution, evolve};

/// Shapes by example: `serde_json` reads the document.
fn shape(documents: &[&str]) -> JsonShape {
    let mut shape = JsonShape::default();
    for document in documents {
        see(&serde_json::from_str(document).unwrap(), &mut shape);
    }
    shape
}

fn see(value: &serde_json::Value, shape: &mut JsonShape) {
    use serde_json::Value;
    match value {
        Value::Null => {}
        Value::Bool(_) => shape.see_scalar(JsonScalar::Boolean),
        Value::Number(number) if number.is_i64() && number.as_i64().unwrap().unsigned_abs() <= 1 << 53 => {
            shape.see_scalar(JsonScalar::Integer);
        }
        Value::Number(number) if number.is_i64() => shape.see_scalar(JsonScalar::WideInteger),
        Value::Number(number) if number.is_u64() => shape.see_scalar(JsonScalar::HugeNumber),
        Value::Number(_) => shape.see_scalar(JsonScalar::Fraction),
        Value::String(_) => shape.see_scalar(JsonScalar::String),
        Value::Array(items) => {
            let elements = shape.see_array();
            items.iter().for_each(|item| see(item, elements));
        }
        Value::Object(fields) => {
            shape.see_object();
            fields
                .iter()
                .for_each(|(name, value)| see(value, shape.field(name)));
        }
    }
}

fn show(columns: &[Column]) -> String {
    columns
        .iter()
        .map(|c| format!("{} {}", c.name, show_type(&c.data_type)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn show_type(data_type: &ColumnType) -> String {
    match data_type {
        ColumnType::Primitive(_) | ColumnType::Hashed(_) => data_type.to_string(),
        ColumnType::Struct(columns) => format!("{{{}}}", show(columns)),
        ColumnType::List(element) => format!("[{}]", show_type(element)),
        ColumnType::Map(..) => unreachable!("inference makes no maps"),
    }
}

/// One event after the other, each with its expected columns.
fn check(events: &[(&[&str], &str)]) {
    let (mut schema, mut fields, mut last) = (None, FieldMap::default(), 0);
    for (documents, expected) in events {
        let columns = shape(documents).columns(
            schema.as_ref().map(|schema| (schema, &fields)),
            MAX_COLUMNS,
            &Mapping::default(),
        );
        assert_eq!(show(&columns), *expected, "{documents:?}");
        match evolve(
            schema.as_ref(),
            last,
            &fields,
            &[&columns],
            &KafkaColumns::default(),
        )
        .unwrap()
        {
            Evolution::Changed(change) => {
                (schema, fields, last) = (Some(change.schema), change.fields, change.last_column_id);
            }
            Evolution::Unchanged => {}
            Evolution::Refused(refused) => panic!("inference asked for {refused:?}"),
        }
    }
}

#[test]
fn a_new_column_has_the_type_that_holds_all_of_the_events_values() {
    let cases: [(&[&str], &str); 18] = [
        (&[r#"{"a": 1}"#, r#"{"a": 2}"#], "a long"),
        (&[r#"{"a": 1}"#, r#"{"a": 2.5}"#], "a double"),
        (&[r#"{"a": 1}"#, r#"{"a": "x"}"#], "a string"),
        (&[r#"{"a": 1.5}"#, r#"{"a": true}"#], "a string"),
        (&[r#"{"a": true}"#, r#"{"a": null}"#], "a boolean"),
        (&[r#"{"a": 18446744073709551615}"#], "a string"),
        (
            &[r#"{"a": 1.5}"#, r#"{"a": 9007199254740993}"#],
            "a double, a__long long",
        ),
        (
            &[r#"{"a": null, "b": {}, "c": [], "d": [null], "e": {"f": null}}"#],
            "",
        ),
        (
            &[r#"{"a": {"x": 1}}"#, r#"{"a": {"y": "z"}}"#],
            "a {x long, y string}",
        ),
        (&[r#"{"a": {"x": 1}}"#, r#"{"a": 5}"#], "a string"),
        (&[r#"{"a": {"x": 1}}"#, r#"{"a": [5]}"#], "a string"),
        (&[r#"{"a": [1, 2.5]}"#], "a [double]"),
        (&[r#"{"a": [1, "x"]}"#], "a [string]"),
        (&[r#"{"a": [{"x": 1}, {"y": 2}]}"#], "a [{x long, y long}]"),
        (&[r#"{"a": [[1], [2]]}"#], "a [[long]]"),
        (
            &[r#"{"a": [0.5, 9007199254740993]}"#],
            "a [double], a__string string",
        ),
        (&[r#"{"A b": 1, "a.b": 2, "": 3}"#], "_ long, a_b long, a_b long"),
        (&["null"], ""),
    ];
    for (documents, expected) in cases {
        check(&[(documents, expected)]);
    }
}

#[test]
fn an_existing_column_keeps_its_type_and_siblings_take_the_rest() {
    check(&[
        (&[r#"{"price": 1}"#], "price long"),
        (
            &[r#"{"price": 2.5}"#, r#"{"price": "free"}"#, r#"{"price": true}"#],
            "price__boolean boolean, price__double double, price__string string",
        ),
        (
            &[r#"{"price": {"amount": 1}}"#, r#"{"price": 3}"#],
            "price long, price__string string",
        ),
        (&[r#"{"price": null}"#], ""),
    ]);
    check(&[
        (&[r#"{"o": {"x": 1}, "l": [1]}"#], "l [long], o {x long}"),
        (
            &[r#"{"o": {"x": "s", "y": 1}, "l": ["a"]}"#, r#"{"o": 7}"#],
            "l [long], l__string string, o {x__string string, y long}, o__long long",
        ),
        (&[r#"{"l": [1, "a"]}"#], "l [long], l__string string"),
    ]);
    check(&[
        (&[r#"{"t": "text"}"#], "t string"),
        (
            &[r#"{"t": 1}"#, r#"{"t": {"x": 1}}"#, r#"{"t": [1]}"#],
            "t string",
        ),
    ]);
}

#[test]
fn columns_are_bounded() {
    let wide = r#"{"a": 1, "b": {"x": 1, "y": 2}, "c": 3, "d": 4}"#;
    let columns = shape(&[wide]).columns(None, 3, &Mapping::default());
    assert_eq!(
        show(&columns),
        "a long, b {x long, y long}, _kafka_unknown_fields string"
    );
    // A struct goes whole or not at all.
    assert_eq!(
        show(&shape(&[wide]).columns(None, 2, &Mapping::default())),
        "a long, c long, _kafka_unknown_fields string"
    );

    let Evolution::Changed(change) = evolve(
        None,
        0,
        &FieldMap::default(),
        &[&columns],
        &KafkaColumns::default(),
    )
    .unwrap() else {
        panic!("a new table")
    };
    let table = Some((&change.schema, &change.fields));
    let later = shape(&[r#"{"a": 1, "b": {"z": 1}}"#]).columns(table, 3, &Mapping::default());
    assert_eq!(show(&later), "a long, b {}, _kafka_unknown_fields string");
    let deep = format!("{}1{}", r#"{"a":"#.repeat(70), "}".repeat(70));
    let columns = shape(&[&deep]).columns(None, MAX_COLUMNS, &Mapping::default());
    assert_eq!(
        show(&columns),
        format!("{}a string{}", "a {".repeat(63), "}".repeat(63))
    );
}
