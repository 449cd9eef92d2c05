use super::*;
use crate::AvroSchema;

fn mapping(fields: &[(&str, &str)]) -> Mapping {
    let fields = fields
        .iter()
        .map(|(path, setting)| ((*path).to_owned(), serde_json::from_str(setting).unwrap()))
        .collect();
    Mapping {
        fields,
        ..Mapping::default()
    }
}

/// The column of a field `f` of this type under the settings `setting`: `name[~variant] type`, `none`, or `! reason`.
fn check(natural: ColumnType, setting: &str, expected: &str) {
    let found = match mapping(&[("f", setting)]).column(&[], "f", natural.clone()) {
        Ok(None) => "none".to_owned(),
        Ok(Some(column)) => {
            let variant = column
                .variant
                .map_or(String::new(), |variant| format!("~{variant}"));
            format!("{}{variant} {}", column.name, column.data_type)
        }
        Err(error) => format!("! {}", error.message()),
    };
    assert_eq!(found, expected, "{natural} {setting}");
}

fn list(element: PrimitiveType) -> ColumnType {
    ColumnType::List(Box::new(ColumnType::Primitive(element)))
}

#[test]
fn settings_change_a_fields_column() {
    use ColumnType::Primitive;
    use PrimitiveType as P;
    let decimal = |precision, scale| Primitive(P::Decimal { precision, scale });
    let record = ColumnType::Struct(vec![Column::new("x", Primitive(P::Int))]);
    let map = ColumnType::Map(Box::new(ColumnType::STRING), Box::new(Primitive(P::Long)));
    let cases = [
        (Primitive(P::Int), "{}", "f int"),
        (Primitive(P::Int), r#"{"type": "long"}"#, "f long"),
        (
            Primitive(P::Int),
            r#"{"type": "decimal(9,2)"}"#,
            "f decimal(9, 2)",
        ),
        (Primitive(P::Float), r#"{"type": "double"}"#, "f double"),
        (
            Primitive(P::Double),
            r#"{"type": "decimal(18,4)"}"#,
            "f decimal(18, 4)",
        ),
        (decimal(20, 0), r#"{"type": "long"}"#, "f long"),
        (decimal(9, 2), r#"{"type": "decimal(18,4)"}"#, "f decimal(18, 4)"),
        (Primitive(P::Timestamptz), r#"{"type": "long"}"#, "f long"),
        (Primitive(P::String), r#"{"type": "binary"}"#, "f binary"),
        (list(P::Int), r#"{"type": "long"}"#, "f list<long>"),
        (
            map.clone(),
            r#"{"type": "decimal(20,0)"}"#,
            "f map<string, decimal(20, 0)>",
        ),
        (
            decimal(9, 2),
            r#"{"type": "long"}"#,
            "! field `f` is decimal(9, 2) and cannot be given the type long",
        ),
        (
            Primitive(P::Long),
            r#"{"type": "int"}"#,
            "! field `f` is long and cannot be given the type int",
        ),
        (
            Primitive(P::String),
            r#"{"type": "long"}"#,
            "! field `f` is string and cannot be given the type long",
        ),
        (
            record.clone(),
            r#"{"type": "string"}"#,
            "! field `f` is struct<x: int> and cannot be given the type string",
        ),
        (record.clone(), r#"{"exclude": true}"#, "none"),
        (Primitive(P::String), r#"{"hash": "sha256"}"#, "f~sha256 string"),
        (Primitive(P::Long), r#"{"hash": "sha256"}"#, "f~sha256 string"),
        (list(P::String), r#"{"hash": "sha256"}"#, "f~sha256 list<string>"),
        (map, r#"{"hash": "sha256"}"#, "f~sha256 map<string, string>"),
        (
            Primitive(P::Double),
            r#"{"type": "decimal(9,2)", "hash": "sha256"}"#,
            "f~sha256 string",
        ),
        (
            Primitive(P::Double),
            r#"{"hash": "sha256"}"#,
            "! field `f` is a binary fraction, which has no text of its own to hash",
        ),
        (
            record,
            r#"{"hash": "sha256"}"#,
            "! field `f` is struct<x: int>, and only single values are hashed",
        ),
    ];
    for (natural, setting, expected) in cases {
        check(natural, setting, expected);
    }
}

#[test]
fn names_follow_the_case_that_is_asked_for() {
    let named = |column_case, source: &str| {
        Mapping {
            column_case,
            ..Mapping::default()
        }
        .name(source)
    };
    for (source, lower, keep, snake) in [
        ("orderId", "orderid", "orderId", "order_id"),
        ("OrderID", "orderid", "OrderID", "order_id"),
        (
            "HTTPServer2Port",
            "httpserver2port",
            "HTTPServer2Port",
            "http_server2_port",
        ),
        ("already_snake", "already_snake", "already_snake", "already_snake"),
        ("Already_Snake", "already_snake", "Already_Snake", "already_snake"),
        ("a-b.c", "a_b_c", "a_b_c", "a_b_c"),
        ("größeMax", "gr__emax", "gr__eMax", "gr__e_max"),
        ("", "_", "_", "_"),
        ("X", "x", "X", "x"),
    ] {
        assert_eq!(named(ColumnCase::Lower, source), lower);
        assert_eq!(named(ColumnCase::Keep, source), keep);
        assert_eq!(named(ColumnCase::Snake, source), snake);
    }
}

#[test]
fn a_setting_inside_a_text_is_refused_and_not_ignored() {
    let mapping = mapping(&[("tree.children.secret", r#"{"exclude": true}"#)]);
    let error = mapping
        .column(&["tree"], "children", list(PrimitiveType::String))
        .unwrap_err();
    assert_eq!(
        (error.message(), error.hint(), error.code()),
        (
            "field `tree.children` becomes one string, and the settings name `tree.children.secret` inside it",
            Some("exclude or hash `tree.children` as a whole"),
            Some("schema.setting_refused"),
        )
    );
    for (parent, source) in [(&["tree"][..], "child"), (&[], "tree.childre")] {
        assert!(mapping.column(parent, source, ColumnType::STRING).is_ok());
    }
}

#[test]
fn settings_that_concern_no_field_are_named() {
    let schemas = [
        r#"{"type": "record", "name": "A", "fields": [{"name": "id", "type": "string"},
            {"name": "c", "type": {"type": "array", "items": {"type": "record", "name": "C", "fields": [
                {"name": "email", "type": "string"}]}}}]}"#,
        r#"{"type": "record", "name": "B", "fields": [{"name": "later", "type": "double"}]}"#,
    ];
    let exclude = r#"{"exclude": true}"#;
    let mapping = mapping(&[
        ("id", r#"{"type": "binary"}"#),
        ("c.email", exclude),
        ("c.mail", exclude),
        ("email", exclude),
        ("later", r#"{"type": "string"}"#), // refused, but there
    ]);
    let unused = mapping.unused(&schemas, |text, mapping| {
        AvroSchema::compile(text, &[], mapping).map(|schema| schema.columns().to_vec())
    });
    assert_eq!(unused.unwrap(), ["c.mail", "email"]);
}

#[test]
fn a_mapping_survives_being_frozen() {
    let mapping = Mapping {
        column_case: ColumnCase::Snake,
        utc_naive: true,
        ..mapping(&[("a", r#"{"type": "decimal(18,4)", "hash": "sha256"}"#)])
    };
    let frozen = serde_json::to_string(&mapping).unwrap();
    assert_eq!(serde_json::from_str::<Mapping>(&frozen).unwrap(), mapping);
    assert_eq!(serde_json::from_str::<Mapping>("{}").unwrap(), Mapping::default());
}
