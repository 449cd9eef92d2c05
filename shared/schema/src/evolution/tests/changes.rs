//! The table “What a schema change may do” of docs/types.md, line by line, wherever a type may stand.

use super::*;

/// Where a type may stand: a field `a` that holds it, and the path to it.
const PLACES: [(&str, &str); 8] = [
    ("a {}", "/a"),
    (
        r#"a {"type": "record", "name": "S", "fields": [{"name": "x", "type": {}}]}"#,
        "/a/x",
    ),
    (r#"a {"type": "array", "items": {}}"#, "/a/[]"),
    (
        r#"a {"type": "array", "items": ["null", {"type": "record", "name": "S", "fields": [{"name": "x", "type": {}}]}]}"#,
        "/a/[]/x",
    ),
    (r#"a {"type": "map", "values": {}}"#, "/a/{}"),
    (
        r#"a {"type": "map", "values": {"type": "record", "name": "S", "fields": [{"name": "x", "type": {}}]}}"#,
        "/a/{}/x",
    ),
    (
        r#"a ["null", "string", {"type": "record", "name": "S", "fields": [{"name": "x", "type": {}}]}]"#,
        "/a/S/x",
    ),
    (
        r#"a {"type": "array", "items": {"type": "record", "name": "E", "connect.internal.type": "MapEntry", "fields": [
            {"name": "key", "type": "long"}, {"name": "value", "type": {}}]}}"#,
        "/a/{}",
    ),
];

/// Checks the change of a type wherever the type may stand; `@` in what is expected is the path to it.
fn check_everywhere(before: &str, after: &str, expected: &[&str]) {
    for (place, path) in PLACES {
        // Type names are unique in a schema, and a place may have one of its own.
        let field = |data_type: &str| place.replace("{}", data_type);
        let expected: Vec<String> = expected.iter().map(|change| change.replace('@', path)).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check(&field(before), &field(after), &expected);
    }
}

fn decimal(precision: u32, scale: u32) -> String {
    format!(r#"{{"type": "bytes", "logicalType": "decimal", "precision": {precision}, "scale": {scale}}}"#)
}

pub(super) fn record(fields: &str) -> String {
    let fields: Vec<String> = fields
        .split_terminator(", ")
        .map(|field| {
            let (name, data_type) = field.split_once(' ').unwrap();
            format!(r#"{{"name": "{name}", "type": "{data_type}"}}"#)
        })
        .collect();
    format!(
        r#"{{"type": "record", "name": "Deep", "fields": [{}]}}"#,
        fields.join(", ")
    )
}

fn logical(base: &str, logical: &str) -> String {
    format!(r#"{{"type": "{base}", "logicalType": "{logical}"}}"#)
}

#[test]
fn what_a_schema_change_may_do_it_may_do_anywhere() {
    let record_with =
        |rest: &str| record(rest).replacen(r#""type": "record""#, r#""type": "record", "doc": "d""#, 1);
    let described = r#"{"type": "record", "name": "Deep", "aliases": ["Old"], "fields": [
        {"name": "p", "type": "int", "doc": "what it is", "aliases": ["q"], "default": 7, "order": "ignore"}]}"#;
    let symbols = |symbols: &str| format!(r#"{{"type": "enum", "name": "Color", "symbols": [{symbols}]}}"#);
    let cases: Vec<(String, String, Vec<&str>)> = vec![
        // Add a field; remove one; rename one; reorder.
        (record("p int"), record("p int, q string"), vec!["+@/q"]),
        (record("p int, q string"), record("p int"), vec![]),
        (record("p int, q string"), record("p int, r string"), vec!["+@/r"]),
        (record("p int, q string"), record("q string, p int"), vec![]),
        // Doc, alias, default, order.
        (record("p int"), described.to_owned(), vec![]),
        (record("p int"), record_with("p int"), vec![]),
        // A wider type, and a record of the older schema after the newer one.
        ("\"int\"".into(), "\"long\"".into(), vec!["^@"]),
        ("\"long\"".into(), "\"int\"".into(), vec![]),
        ("\"float\"".into(), "\"double\"".into(), vec!["^@"]),
        ("\"double\"".into(), "\"float\"".into(), vec![]),
        (decimal(9, 2), decimal(38, 2), vec!["^@"]),
        (decimal(38, 2), decimal(9, 2), vec![]),
        (record("p int"), record("p long"), vec!["^@/p"]),
        // Enums and strings are strings, whatever the symbols.
        (symbols("\"A\""), symbols("\"A\", \"B\""), vec![]),
        (symbols("\"A\""), "\"string\"".into(), vec![]),
        ("\"string\"".into(), logical("string", "uuid"), vec![]),
        // Another unit of the same instant.
        (
            logical("long", "timestamp-millis"),
            logical("long", "timestamp-nanos"),
            vec![],
        ),
        (
            "\"bytes\"".into(),
            r#"{"type": "fixed", "name": "F", "size": 4}"#.into(),
            vec![],
        ),
        // Refused.
        ("\"int\"".into(), "\"string\"".into(), vec!["@: int > string"]),
        ("\"string\"".into(), "\"int\"".into(), vec!["@: string > int"]),
        ("\"long\"".into(), "\"double\"".into(), vec!["@: long > double"]),
        ("\"double\"".into(), "\"long\"".into(), vec!["@: double > long"]),
        (
            "\"string\"".into(),
            "\"bytes\"".into(),
            vec!["@: string > binary"],
        ),
        ("\"boolean\"".into(), "\"int\"".into(), vec!["@: boolean > int"]),
        (
            decimal(9, 2),
            decimal(9, 3),
            vec!["@: decimal(9, 2) > decimal(9, 3)"],
        ),
        (
            decimal(9, 2),
            decimal(12, 3),
            vec!["@: decimal(9, 2) > decimal(12, 3)"],
        ),
        (decimal(9, 0), "\"long\"".into(), vec!["@: decimal(9, 0) > long"]),
        (
            logical("int", "date"),
            logical("long", "timestamp-millis"),
            vec!["@: date > timestamptz"],
        ),
        (
            logical("long", "timestamp-millis"),
            logical("long", "local-timestamp-millis"),
            vec!["@: timestamptz > timestamp"],
        ),
        (
            "\"long\"".into(),
            logical("long", "timestamp-millis"),
            vec!["@: long > timestamptz"],
        ),
        ("\"int\"".into(), record("p int"), vec!["@: int > a struct"]),
        (record("p int"), "\"string\"".into(), vec!["@: a struct > string"]),
        (record("p int"), record("p string"), vec!["@/p: int > string"]),
        (
            r#"{"type": "array", "items": "int"}"#.into(),
            "\"int\"".into(),
            vec!["@: a list > int"],
        ),
        (
            r#"{"type": "array", "items": "int"}"#.into(),
            r#"{"type": "map", "values": "int"}"#.into(),
            vec!["@: a list > a map with keys of string"],
        ),
        (
            r#"{"type": "map", "values": "int"}"#.into(),
            record("p int"),
            vec!["@: a map with keys of string > a struct"],
        ),
    ];
    for (before, after, expected) in cases {
        check_everywhere(&before, &after, &expected);
    }
}

/// Unions are no types inside unions, so they have places of their own.
#[test]
fn unions_grow_and_fields_become_optional() {
    let union = |branches: &str| format!("[{branches}]");
    let struct_branch = r#"{"type": "record", "name": "Deep", "fields": [{"name": "p", "type": "int"}]}"#;
    let cases: Vec<(String, String, Vec<&str>)> = vec![
        ("\"int\"".into(), union(r#""null", "int""#), vec![]),
        (union(r#""null", "int""#), "\"int\"".into(), vec![]),
        (union(r#""null", "int""#), union(r#""int", "null""#), vec![]),
        (union(r#""null", "int""#), union(r#""null", "long""#), vec!["^@"]),
        (
            union(r#""null", "int", "string""#),
            union(&format!(r#""null", "string", {struct_branch}, "int""#)),
            vec!["+@/Deep"],
        ),
        (
            union(r#""int", "string", "null""#),
            union(r#""int", "string""#),
            vec![],
        ),
        // A branch that goes leaves its column; one that is left alone is no union any more.
        (
            union(r#""int", "string", "boolean""#),
            union(r#""int", "string""#),
            vec![],
        ),
        (
            union(r#""int", "string", "null""#),
            union(r#""int", "null""#),
            vec!["@: a struct > int"],
        ),
        (
            "\"int\"".into(),
            union(r#""int", "string""#),
            vec!["@: int > a struct"],
        ),
        (
            union(r#""null", "int""#),
            union(r#""null", "int", "string""#),
            vec!["@: int > a struct"],
        ),
    ];
    for (before, after, expected) in cases {
        for (place, path) in PLACES {
            if place.contains("[\"null\", {}") {
                continue;
            }
            let expected: Vec<String> = expected.iter().map(|change| change.replace('@', path)).collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            check(
                &place.replace("{}", &before),
                &place.replace("{}", &after),
                &expected,
            );
        }
    }
}

#[test]
fn the_keys_of_a_map_keep_their_type() {
    let entries = |key: &str| {
        format!(
            r#"a {{"type": "array", "items": {{"type": "record", "name": "E", "connect.internal.type": "MapEntry",
                "fields": [{{"name": "key", "type": "{key}"}}, {{"name": "value", "type": "int"}}]}}}}"#
        )
    };
    let string_keys = r#"a {"type": "map", "values": "int"}"#;
    check(&entries("string"), string_keys, &[]);
    for (before, after, expected) in [
        (
            entries("int"),
            entries("long"),
            "/a: a map with keys of int > a map with keys of long",
        ),
        (
            entries("long"),
            entries("int"),
            "/a: a map with keys of long > a map with keys of int",
        ),
        (
            entries("int"),
            string_keys.to_owned(),
            "/a: a map with keys of int > a map with keys of string",
        ),
    ] {
        check(&before, &after, &[expected]);
    }
}

#[test]
fn a_column_whose_field_was_removed_keeps_its_type() {
    for (place, path) in PLACES {
        let field = |fields: &str| place.replace("{}", &record(fields));
        let mut table = Table::of(&field("p int, q int"));
        assert_eq!(table.evolve(&[&field("q int")]).unwrap(), Evolution::Unchanged);
        let refused = match table.evolve(&[&field("q int, p string")]).unwrap() {
            Evolution::Refused(refused) => refused,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            refused,
            [RefusedChange {
                list: 0,
                field: format!("{path}/p"),
                from: "int".to_owned(),
                to: "string".to_owned(),
            }]
        );
        table.apply(&field("q int, p long"));
    }
}

#[test]
fn a_refused_change_says_what_where_and_how_to_go_on() {
    let field = |data_type: &str| PLACES[3].0.replace("{}", data_type);
    let Evolution::Refused(refused) = Table::of(&field("\"int\""))
        .evolve(&[&field("\"string\"")])
        .unwrap()
    else {
        panic!("not refused")
    };
    assert_eq!(
        refused[0].to_error().to_string(),
        "cannot change the table's schema: field `/a/[]/x` is int in the table and string in the source; let the \
         producer use a new field name, or give the topic a new table"
    );
}

#[test]
fn what_several_writers_ask_for_in_the_same_words_is_said_once() {
    let change = |list, field: &str, to: &str| RefusedChange {
        list,
        field: field.to_owned(),
        from: "int".to_owned(),
        to: to.to_owned(),
    };
    let changes = [
        change(0, "/a", "string"),
        change(1, "/a", "string"),
        change(1, "/id~key", "date"),
    ];
    assert_eq!(
        RefusedChange::all_to_error(&changes).to_string(),
        "cannot change the table's schema: field `/a` is int in the table and string in the source, the key's field `/id` \
         is int in the table and date in the source; let the producer use a new field name, or give the topic a new table"
    );
}

#[test]
fn a_hundred_writer_schemas_make_one_change() {
    let mut table = Table::of("id int");
    let lists: Vec<String> = (0..100)
        .map(|n| {
            let wide = if n == 57 { "long" } else { "int" };
            format!(r#"id {wide}; f{n} string; s {{"type": "record", "name": "S", "fields": [{{"name": "x{n}", "type": "int"}}]}}"#)
        })
        .collect();
    let lists: Vec<&str> = lists.iter().map(String::as_str).collect();
    let Evolution::Changed(change) = table.evolve(&lists).unwrap() else {
        panic!("not changed")
    };
    assert_eq!(change.widened, ["/id"]);
    // Each list's own columns, the struct with what the first asked of it, and what the others add to it.
    assert_eq!(change.added.len(), 100 + 1 + 99);
    assert_eq!(change.added[..4], ["/f0", "/s", "/f1", "/s/x1"]);
    table.schema = Some(change.schema);
    table.fields = change.fields;
    table.last_column_id = change.last_column_id;
    assert_eq!(table.evolve(&lists).unwrap(), Evolution::Unchanged);
    let reversed: Vec<&str> = lists.iter().rev().copied().collect();
    assert_eq!(table.evolve(&reversed).unwrap(), Evolution::Unchanged);
    // One of them is refused: it is named, and nothing changes.
    let mut lists = lists;
    lists[42] = "f7 int";
    let Evolution::Refused(refused) = table.evolve(&lists).unwrap() else {
        panic!("not refused")
    };
    assert_eq!(
        (refused.len(), refused[0].list, refused[0].field.as_str()),
        (1, 42, "/f7")
    );
}
