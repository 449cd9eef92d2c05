use iceberg::spec::{FormatVersion, SortOrder, TableMetadataBuilder, UnboundPartitionSpec};
use std::collections::HashMap as Properties;

use super::*;
use crate::AvroSchema;

mod changes;

use changes::record;

/// A table, as evolution sees it.
#[derive(Debug, Clone)]
struct Table {
    schema: Option<Schema>,
    last_column_id: i32,
    fields: FieldMap,
}

impl Table {
    fn none() -> Self {
        Self {
            schema: None,
            last_column_id: 0,
            fields: FieldMap::default(),
        }
    }

    fn of(fields: &str) -> Self {
        let mut table = Self::none();
        table.apply(fields);
        table
    }

    fn evolve(&self, lists: &[&str]) -> Result<Evolution> {
        let schemas: Vec<AvroSchema> = lists.iter().map(|fields| avro(fields)).collect();
        let wanted: Vec<&[Column]> = schemas.iter().map(AvroSchema::columns).collect();
        evolve(
            self.schema.as_ref(),
            self.last_column_id,
            &self.fields,
            &wanted,
            &KafkaColumns::default(),
        )
    }

    fn apply(&mut self, fields: &str) -> SchemaChange {
        let Evolution::Changed(change) = self.evolve(&[fields]).unwrap() else {
            panic!("{fields} changes nothing")
        };
        self.schema = Some(change.schema.clone());
        self.last_column_id = change.last_column_id;
        self.fields = change.fields.clone();
        *change
    }

    /// The value's columns, as `id name type`.
    fn columns(&self) -> Vec<String> {
        let fields = self.schema.as_ref().unwrap().as_struct().fields();
        fields
            .iter()
            .filter(|field| !field.name.starts_with("_kafka"))
            .map(|field| format!("{} {} {}", field.id, field.name, describe(&field.field_type)))
            .collect()
    }

    /// What another engine may do.
    fn edit(&mut self, edit: impl Fn(&mut Vec<NestedField>)) {
        let schema = self.schema.as_ref().unwrap();
        let mut fields: Vec<NestedField> = schema
            .as_struct()
            .fields()
            .iter()
            .map(|f| (**f).clone())
            .collect();
        edit(&mut fields);
        let fields = fields.into_iter().map(Arc::new);
        self.schema = Some(Schema::builder().with_fields(fields).build().unwrap());
    }
}

fn avro(fields: &str) -> AvroSchema {
    AvroSchema::parse(&avro_text(fields)).unwrap()
}

fn avro_text(fields: &str) -> String {
    let fields: Vec<String> = fields
        .split(';')
        .filter(|field| !field.trim().is_empty())
        .map(|field| {
            let (name, data_type) = field.trim().split_once(' ').unwrap();
            let data_type = if data_type.starts_with(['{', '[', '"']) {
                data_type.to_owned()
            } else {
                format!("\"{data_type}\"")
            };
            format!(r#"{{"name": "{name}", "type": {data_type}}}"#)
        })
        .collect();
    format!(
        r#"{{"type": "record", "name": "R", "fields": [{}]}}"#,
        fields.join(", ")
    )
}

const NESTED: &str = r#"id string; Price double;
    items {"type": "array", "items": {"type": "record", "name": "I", "fields": [
        {"name": "sku", "type": "string"}, {"name": "size", "type": {"type": "map", "values": "int"}}]}};
    m {"type": "map", "values": {"type": "record", "name": "V", "fields": [{"name": "v", "type": "int"}]}}"#;

#[test]
fn ids_survive_the_creation_of_the_table() {
    let table = Table::of(NESTED);
    let schema = table.schema.clone().unwrap();
    let created = TableMetadataBuilder::new(
        schema.clone(),
        UnboundPartitionSpec::builder().build(),
        SortOrder::unsorted_order(),
        "file:///warehouse/orders".to_owned(),
        FormatVersion::V2,
        Properties::new(),
    )
    .unwrap()
    .build()
    .unwrap()
    .metadata;
    assert_eq!(created.current_schema().as_struct(), schema.as_struct());
    assert_eq!(created.last_column_id(), table.last_column_id);

    let paths: Vec<(&str, i32)> = table.fields.iter().collect();
    assert_eq!(
        paths,
        [
            ("/Price", 2),
            ("/id", 1),
            ("/items", 3),
            ("/items/[]", 12),
            ("/items/[]/size", 14),
            ("/items/[]/size/{key}", 15),
            ("/items/[]/size/{}", 16),
            ("/items/[]/sku", 13),
            ("/m", 4),
            ("/m/{key}", 17),
            ("/m/{}", 18),
            ("/m/{}/v", 19),
            ("@_kafka_epoch", 8),
            ("@_kafka_headers", 10),
            ("@_kafka_headers/[]", 20),
            ("@_kafka_headers/[]/name", 21),
            ("@_kafka_headers/[]/value", 22),
            ("@_kafka_key", 9),
            ("@_kafka_offset", 6),
            ("@_kafka_partition", 5),
            ("@_kafka_timestamp", 7),
            ("@_kafka_tombstone", 11),
        ]
    );
    assert_eq!(
        schema.field_by_id(2).unwrap().doc.as_deref(),
        Some("`Price` in the source")
    );
    assert_eq!(schema.field_by_id(1).unwrap().doc, None);
}

#[test]
fn two_lists_of_one_event_create_one_table_whose_ids_survive_too() {
    let Evolution::Changed(change) = Table::none().evolve(&[NESTED, "id string; later long"]).unwrap() else {
        panic!("a new table")
    };
    assert_eq!(
        change.fields.get(&FieldPath::value().field("later", None)),
        Some(5)
    );
    assert_eq!(
        change
            .fields
            .get(&FieldPath::value().field("items", None).element()),
        Some(13)
    );
    let renumbered = Renumbering::default().fields(change.schema.as_struct().fields());
    assert_eq!(renumbered, change.schema.as_struct().fields());
}

/// Evolves a table of `before` with `after`; expects `added +path`, `widened ^path`, `refused path: from > to`.
fn check(before: &str, after: &str, expected: &[&str]) {
    let found: Vec<String> = match Table::of(before).evolve(&[after]).unwrap() {
        Evolution::Unchanged => Vec::new(),
        Evolution::Changed(change) => {
            let added = change.added.iter().map(|path| format!("+{path}"));
            added
                .chain(change.widened.iter().map(|path| format!("^{path}")))
                .collect()
        }
        Evolution::Refused(refused) => refused
            .iter()
            .map(|change| format!("{}: {} > {}", change.field, change.from, change.to))
            .collect(),
    };
    assert_eq!(found, expected, "{before} -> {after}");
}

#[test]
fn the_table_of_schema_changes() {
    let decimal = |precision, scale| {
        format!(
            r#"a {{"type": "bytes", "logicalType": "decimal", "precision": {precision}, "scale": {scale}}}"#
        )
    };
    let record = |fields: &str| format!(r#"{{"type": "record", "name": "S", "fields": [{fields}]}}"#);
    let (one, two) = (
        r#"{"name": "x", "type": "int"}"#,
        r#"{"name": "x", "type": "int"}, {"name": "y", "type": "int"}"#,
    );
    let in_list = |fields| format!(r#"a {{"type": "array", "items": {}}}"#, record(fields));
    let in_map = |fields| format!(r#"a {{"type": "map", "values": {}}}"#, record(fields));
    let date = r#"a {"type": "int", "logicalType": "date"}"#;
    let instant = r#"a {"type": "long", "logicalType": "timestamp-millis"}"#;
    let cases: Vec<(String, String, Vec<&str>)> = vec![
        ("a int".into(), "a int; b long".into(), vec!["+/b"]),
        (
            format!("a {}", record(one)),
            format!("a {}", record(two)),
            vec!["+/a/y"],
        ),
        (in_list(one), in_list(two), vec!["+/a/[]/y"]),
        (in_map(one), in_map(two), vec!["+/a/{}/y"]),
        (
            r#"a ["null", "int", "string"]"#.into(),
            r#"a ["null", "int", "string", "long"]"#.into(),
            vec!["+/a/long"],
        ),
        ("a int; b int".into(), "a int".into(), vec![]),
        ("a int".into(), "a long".into(), vec!["^/a"]),
        ("a float".into(), "a double".into(), vec!["^/a"]),
        (
            r#"a {"type": "array", "items": "int"}"#.into(),
            r#"a {"type": "array", "items": "long"}"#.into(),
            vec!["^/a/[]"],
        ),
        (decimal(9, 2), decimal(12, 2), vec!["^/a"]),
        ("a int".into(), r#"a ["null", "int"]"#.into(), vec![]),
        (r#"a ["null", "int"]"#.into(), "a int".into(), vec![]),
        ("a int".into(), "b int".into(), vec!["+/b"]),
        ("a int; b int".into(), "b int; a int".into(), vec![]),
        // A record of an older schema after a newer one.
        ("a long".into(), "a int".into(), vec![]),
        ("a double".into(), "a float".into(), vec![]),
        (decimal(12, 2), decimal(9, 2), vec![]),
        // Refused.
        ("a int".into(), "a string".into(), vec!["/a: int > string"]),
        ("a int".into(), "a double".into(), vec!["/a: int > double"]),
        (
            decimal(9, 2),
            decimal(9, 3),
            vec!["/a: decimal(9, 2) > decimal(9, 3)"],
        ),
        (date.into(), instant.into(), vec!["/a: date > timestamptz"]),
        (
            "a int".into(),
            r#"a ["null", "int", "string"]"#.into(),
            vec!["/a: int > a struct"],
        ),
        (
            in_list(one),
            format!("a {}", record(one)),
            vec!["/a: a list > a struct"],
        ),
        (
            format!("b int; a {}", record(one)),
            r#"b string; a {"type": "record", "name": "S", "fields": [{"name": "x", "type": "string"}]}"#
                .into(),
            vec!["/b: int > string", "/a/x: int > string"],
        ),
    ];
    for (before, after, expected) in cases {
        check(&before, &after, &expected);
    }
}

#[test]
fn a_refused_list_is_named() {
    let Evolution::Refused(refused) = Table::of("a int").evolve(&["a long", "a string; b int"]).unwrap()
    else {
        panic!("not refused")
    };
    assert_eq!(refused.len(), 1);
    assert_eq!((refused[0].list, refused[0].to.as_str()), (1, "string"));
    let error = refused[0].to_error();
    assert_eq!(
        (error.kind(), error.code()),
        (ErrorKind::Suspended, Some("schema.change_refused"))
    );
}

#[test]
fn a_column_renamed_by_another_engine_is_found() {
    let mut table = Table::of("a int; b int");
    table.edit(|fields| fields[0].name = "alpha".to_owned());
    assert_eq!(table.evolve(&["a int; b int"]).unwrap(), Evolution::Unchanged);
    // The name is free again, and another field may take it.
    table.apply("a long; A int");
    assert_eq!(table.columns(), ["1 alpha long", "2 b int", "13 a int"]);
}

#[test]
fn a_column_dropped_by_another_engine_comes_back_under_a_new_id() {
    let mut table = Table::of("a int; b int");
    table.edit(|fields| {
        fields.remove(0);
    });
    let change = table.apply("a string; b int");
    assert_eq!(table.columns(), ["2 b int", "13 a string"]);
    assert_eq!(change.fields.get(&FieldPath::value().field("a", None)), Some(13));
}

#[test]
fn nested_columns_renamed_or_dropped_by_another_engine_behave_the_same() {
    let items = |fields: &str| format!(r#"items {{"type": "array", "items": {}}}"#, record(fields));
    let inner = |table: &Table| {
        let schema = table.schema.as_ref().unwrap();
        let Type::List(list) = schema.as_struct().fields()[0].field_type.as_ref() else {
            panic!("no list")
        };
        let Type::Struct(inner) = list.element_field.field_type.as_ref() else {
            panic!("no struct")
        };
        let shown = inner.fields().iter();
        shown
            .map(|field| format!("{} {}", field.id, field.name))
            .collect::<Vec<_>>()
    };
    let edit = |table: &mut Table, edit: &dyn Fn(&mut Vec<NestedFieldRef>)| {
        table.edit(|fields| {
            let Type::List(list) = fields[0].field_type.as_ref() else {
                panic!("no list")
            };
            let Type::Struct(inner) = list.element_field.field_type.as_ref() else {
                panic!("no struct")
            };
            let mut inner = inner.fields().to_vec();
            edit(&mut inner);
            let element =
                NestedField::list_element(list.element_field.id, Type::Struct(StructType::new(inner)), false);
            *fields[0].field_type = Type::List(ListType::new(Arc::new(element)));
        });
    };
    let mut table = Table::of(&items("p int, q int"));
    assert_eq!(inner(&table), ["10 p", "11 q"]);
    edit(&mut table, &|inner| {
        let mut renamed = NestedField::clone(&inner[0]);
        renamed.name = "price".to_owned();
        inner[0] = Arc::new(renamed);
        inner.remove(1);
    });
    assert_eq!(inner(&table), ["10 price"]);
    let change = table.apply(&items("p int, q int"));
    assert_eq!(change.added, ["/items/[]/q"]);
    assert_eq!(inner(&table).len(), 2);
    assert_eq!(inner(&table)[0], "10 price");
    assert!(
        inner(&table)[1].ends_with(" q") && inner(&table)[1] != "11 q",
        "{:?}",
        inner(&table)
    );
    // A whole column that comes back has nothing of the old one.
    table.edit(|fields| {
        fields.remove(0);
    });
    let last = table.last_column_id;
    let change = table.apply(&items("p string"));
    assert!(
        change
            .fields
            .get(&FieldPath::value().field("items", None))
            .unwrap()
            > last
    );
}

#[test]
fn names_that_become_equal_get_suffixes_that_stay() {
    let mut table = Table::of("Id int; id int");
    assert_eq!(table.columns(), ["1 id int", "2 id_2 int"]);
    assert_eq!(table.evolve(&["id int; Id int"]).unwrap(), Evolution::Unchanged);
    table.apply("ID string");
    assert_eq!(table.columns(), ["1 id int", "2 id_2 int", "13 id_3 string"]);
    let doc = |id| {
        table
            .schema
            .as_ref()
            .unwrap()
            .field_by_id(id)
            .unwrap()
            .doc
            .clone()
    };
    assert_eq!(doc(1).as_deref(), Some("`Id` in the source"));
    assert_eq!(doc(13).as_deref(), Some("`ID` in the source"));
}

#[test]
fn names_that_differ_in_case_only_are_equal_whatever_the_case_that_is_kept() {
    let keep = |fields: &str| {
        let text = avro_text(fields);
        let mapping = crate::Mapping {
            column_case: crate::ColumnCase::Keep,
            ..crate::Mapping::default()
        };
        AvroSchema::compile(&text, &[], &mapping).unwrap()
    };
    let schema = keep("orderId int; orderID int; a-b int; a_b int; A_B int");
    let evolution = evolve(
        None,
        0,
        &FieldMap::default(),
        &[schema.columns()],
        &KafkaColumns::default(),
    );
    let Evolution::Changed(change) = evolution.unwrap() else {
        panic!("a new table")
    };
    let names: Vec<&str> = change.schema.as_struct().fields()[..5]
        .iter()
        .map(|field| field.name.as_str())
        .collect();
    assert_eq!(names, ["orderId", "orderID_2", "a_b", "a_b_2", "A_B_3"]);
    let long = "N".repeat(300);
    let schema = keep(&format!(
        "{long} int; {long}x int; {long}y int; {} int",
        "N".repeat(254)
    ));
    let evolution = evolve(
        None,
        0,
        &FieldMap::default(),
        &[schema.columns()],
        &KafkaColumns::default(),
    );
    let Evolution::Changed(change) = evolution.unwrap() else {
        panic!("a new table")
    };
    let names: Vec<String> = change.schema.as_struct().fields()[..4]
        .iter()
        .map(|field| field.name.clone())
        .collect();
    let cut = "N".repeat(244);
    assert_eq!(
        names,
        ["N".repeat(255), cut.clone(), format!("{cut}_2"), "N".repeat(254)]
    );
    assert_eq!(
        crate::check_limits(&change.schema).len(),
        3,
        "only comments that are too long"
    );
    let clash = keep("_KAFKA_OFFSET long");
    let evolution = evolve(
        None,
        0,
        &FieldMap::default(),
        &[clash.columns()],
        &KafkaColumns::default(),
    );
    assert_eq!(evolution.unwrap_err().code(), Some("schema.column_clash"));
}

#[test]
fn a_value_field_called_like_one_of_kafkas_columns_is_invalid() {
    let error = Table::none().evolve(&["_Kafka_Offset long"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.message().contains("`_Kafka_Offset`") && error.message().contains("`_kafka_offset`"),
        "{error}"
    );
    // That column is off by default.
    let table = Table::of("_kafka_topic string");
    assert_eq!(table.columns().len(), 0);
    let kafka = KafkaColumns {
        topic: true,
        ..KafkaColumns::default()
    };
    let error = evolve(
        table.schema.as_ref(),
        table.last_column_id,
        &table.fields,
        &[],
        &kafka,
    )
    .unwrap_err();
    assert_eq!(error.code(), Some("schema.column_clash"));
}

#[test]
fn kafkas_columns_can_be_added_later() {
    let table = Table::of("a int");
    let kafka = KafkaColumns {
        topic: true,
        timestamp_type: true,
        ..KafkaColumns::default()
    };
    let Evolution::Changed(change) = evolve(table.schema.as_ref(), 11, &table.fields, &[], &kafka).unwrap()
    else {
        panic!("unchanged")
    };
    assert_eq!(change.added, ["@_kafka_topic", "@_kafka_timestamp_type"]);
    assert_eq!(change.last_column_id, 13);
}
