use iceberg::spec::PrimitiveType;

use super::*;
use crate::{ColumnType, FieldMapping};

mod bounds;

/// Columns in short: `name type, …`, with `{}` for structs, `[]` for lists and `<>` for maps.
fn show(columns: &[Column]) -> String {
    let shown: Vec<String> = columns
        .iter()
        .map(|column| format!("{} {}", column.name, show_type(&column.data_type)))
        .collect();
    shown.join(", ")
}

fn show_type(data_type: &ColumnType) -> String {
    match data_type {
        ColumnType::Primitive(primitive) => primitive.to_string(),
        ColumnType::Hashed(primitive) => format!("hash of {primitive}"),
        ColumnType::Struct(columns) => format!("{{{}}}", show(columns)),
        ColumnType::List(element) => format!("[{}]", show_type(element)),
        ColumnType::Map(key, value) => format!("<{}, {}>", show_type(key), show_type(value)),
    }
}

fn columns_of(text: &str, mapping: &Mapping) -> Result<String> {
    let file = ProtobufFile::compile(text, &[])?;
    let schema = file.message(&MessageSelector::Name("M".to_owned()), mapping)?;
    Ok(show(schema.columns()))
}

/// The columns of message `M`, or `!` and why it has none.
fn check(text: &str, expected: &str) {
    check_mapped(text, &Mapping::default(), expected);
}

fn check_mapped(text: &str, mapping: &Mapping, expected: &str) {
    let found = columns_of(text, mapping).unwrap_or_else(|error| {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        format!("! {}", error.message())
    });
    assert_eq!(found, expected, "{text}");
}

fn proto3(body: &str) -> String {
    format!("syntax = \"proto3\";\n{body}")
}

#[test]
fn every_protobuf_type_has_its_column() {
    let scalars = [
        ("double", "double"),
        ("float", "float"),
        ("bool", "boolean"),
        ("string", "string"),
        ("bytes", "binary"),
        ("int32", "int"),
        ("sint32", "int"),
        ("sfixed32", "int"),
        ("uint32", "long"),
        ("fixed32", "long"),
        ("int64", "long"),
        ("sint64", "long"),
        ("sfixed64", "long"),
        ("uint64", "decimal(20, 0)"),
        ("fixed64", "decimal(20, 0)"),
    ];
    for (kind, column) in scalars {
        check(
            &proto3(&format!(
                "message M {{ {kind} f = 1; repeated {kind} r = 2; optional {kind} o = 3; }}"
            )),
            &format!("f {column}, r [{column}], o {column}"),
        );
        if !matches!(kind, "double" | "float" | "bytes") {
            check(
                &proto3(&format!("message M {{ map<{kind}, {kind}> f = 1; }}")),
                &format!("f <{column}, {column}>"),
            );
        }
    }
    let cases = [
        (
            "enum E { A = 0; B = 5; } message M { E f = 1; map<string, E> m = 2; }",
            "f string, m <string, string>",
        ),
        (
            "message M { N f = 1; message N { int32 A = 1; string bC = 2; } }",
            "f {a int, bc string}",
        ),
        (
            "message M { N f = 1; repeated N r = 2; } message N {}",
            "f boolean, r [boolean]",
        ),
        (
            "message M { int32 before = 1; oneof payment { string card = 2; N cash = 3; } bool after = 4; }
             message N { int64 cents = 1; }",
            "before int, card string, cash {cents long}, after boolean",
        ),
        // A message inside itself is JSON from there on.
        (
            "message M { string name = 1; M left = 2; repeated M all = 3; map<string, M> by = 4; }",
            "name string, left string, all [string], by <string, string>",
        ),
        (
            "message M { N n = 1; } message N { M m = 1; int32 i = 2; }",
            "n {m string, i int}",
        ),
        (
            "message M { N a = 1; N b = 2; } message N { int32 i = 1; }",
            "a {i int}, b {i int}",
        ),
    ];
    for (body, expected) in cases {
        check(&proto3(body), expected);
    }
    check(
        "message M { required int32 r = 1; optional string o = 2 [default = \"x\"];
            repeated group Item = 3 { optional uint64 id = 1; } optional group One = 4 {} extensions 100 to max; }",
        "r int, o string, item [{id decimal(20, 0)}], one boolean",
    );
}

#[test]
fn well_known_messages_have_columns_of_their_own() {
    let google = [
        ("timestamp", "Timestamp", "timestamptz"),
        ("duration", "Duration", "long"),
        ("wrappers", "DoubleValue", "double"),
        ("wrappers", "FloatValue", "float"),
        ("wrappers", "Int64Value", "long"),
        ("wrappers", "UInt64Value", "decimal(20, 0)"),
        ("wrappers", "Int32Value", "int"),
        ("wrappers", "UInt32Value", "long"),
        ("wrappers", "BoolValue", "boolean"),
        ("wrappers", "StringValue", "string"),
        ("wrappers", "BytesValue", "binary"),
        ("struct", "Struct", "string"),
        ("struct", "Value", "string"),
        ("struct", "ListValue", "string"),
        ("any", "Any", "string"),
        ("field_mask", "FieldMask", "string"),
        ("empty", "Empty", "boolean"),
    ];
    for (file, name, column) in google {
        let body = format!(
            "import \"google/protobuf/{file}.proto\";
             message M {{ google.protobuf.{name} f = 1; repeated google.protobuf.{name} r = 2; }}"
        );
        check(&proto3(&body), &format!("f {column}, r [{column}]"));
    }
    let others = [
        ("google/type/date.proto", "google.type.Date", "date"),
        ("google/type/timeofday.proto", "google.type.TimeOfDay", "string"),
        ("google/type/decimal.proto", "google.type.Decimal", "string"),
        ("confluent/type/decimal.proto", "confluent.type.Decimal", "string"),
        (
            "google/type/money.proto",
            "google.type.Money",
            "{currency_code string, units long, nanos int}",
        ),
        ("google/type/dayofweek.proto", "google.type.DayOfWeek", "string"),
    ];
    for (file, name, column) in others {
        let body = format!("import \"{file}\"; message M {{ {name} f = 1; }}");
        check(&proto3(&body), &format!("f {column}"));
    }
    // Confluent's annotation gives a decimal its precision and scale, in every way of writing it.
    let head = "import \"confluent/meta.proto\"; import \"confluent/type/decimal.proto\"; message M { ";
    for options in [
        "[(confluent.field_meta) = { params: [ { key: \"precision\" value: \"9\" }, { value: \"2\", key: \"scale\" } ] }]",
        "[deprecated = true, (confluent.field_meta).doc = \"x\", (confluent.field_meta) = {params: [{key: \"scale\", value: \"2\"}, {key: \"precision\", value: \"9\"}]}]",
        "[(confluent.field_meta).params = {key: \"precision\", value: \"9\"}, (confluent.field_meta).params = {key: \"scale\", value: \"2\"}]",
    ] {
        check(
            &proto3(&format!("{head} confluent.type.Decimal f = 1 {options}; }}")),
            "f decimal(9, 2)",
        );
    }
    check(
        &proto3(&format!(
            "{head} repeated confluent.type.Decimal f = 1 [(confluent.field_meta) = {{params: {{key: \"scale\", value: \"4\"}}}}]; }}"
        )),
        "f [decimal(38, 4)]",
    );
    // Whoever uses the name for something else gets the columns of that.
    check(
        &proto3("package google.type; message Date { string text = 1; }").replace("Date", "M"),
        "! the file has no message `M`",
    );
    let schema = ProtobufFile::compile(
        &proto3("package google.type; message Date { string text = 1; }"),
        &[],
    )
    .unwrap()
    .message(&MessageSelector::First, &Mapping::default())
    .unwrap();
    assert_eq!(show(schema.columns()), "text string");
}

#[test]
fn a_well_known_root_is_one_column() {
    let file = ProtobufFile::compile(
        &proto3("import \"google/protobuf/timestamp.proto\"; message M {}"),
        &[],
    )
    .unwrap();
    let named = |name: &str| file.message(&MessageSelector::Name(name.to_owned()), &Mapping::default());
    assert_eq!(
        show(named("google.protobuf.Timestamp").unwrap().columns()),
        "value timestamptz"
    );
    assert_eq!(show(named(".M").unwrap().columns()), "");
}

#[test]
fn settings_change_columns() {
    let text = proto3(
        "import \"google/protobuf/timestamp.proto\"; import \"google/type/timeofday.proto\"; import \"google/type/decimal.proto\";
         message M { uint64 id = 1; google.protobuf.Timestamp at = 2; google.type.TimeOfDay daily = 3;
            N n = 4; oneof kind { string a = 5; N b = 6; } repeated N all = 7; google.type.Decimal price = 8; }
         message N { string secret = 1; int32 open = 2; }",
    );
    let field = |data_type, exclude| FieldMapping {
        data_type,
        exclude,
        ..FieldMapping::default()
    };
    let decimal = PrimitiveType::Decimal {
        precision: 12,
        scale: 2,
    };
    let mapping = Mapping {
        utc_naive: true,
        native_time: true,
        oneof_case: true,
        fields: [
            ("id".to_owned(), field(Some(PrimitiveType::Long), false)),
            ("n.secret".to_owned(), field(None, true)),
            ("all.secret".to_owned(), field(None, true)),
            ("b".to_owned(), field(None, true)),
            ("price".to_owned(), field(Some(decimal), false)),
        ]
        .into(),
        ..Mapping::default()
    };
    check_mapped(
        &text,
        &mapping,
        "id long, at timestamp, daily time, n {open int}, a string, kind_case string, all [{open int}], price decimal(12, 2)",
    );
    let wrong = Mapping {
        fields: [("n.open".to_owned(), field(Some(PrimitiveType::Boolean), false))].into(),
        ..Mapping::default()
    };
    check_mapped(
        &text,
        &wrong,
        "! field `n.open` is int and cannot be given the type boolean",
    );
}

#[test]
fn a_message_is_chosen_by_path_sorted_index_or_name() {
    let file = ProtobufFile::compile(
        "package p; message Z { map<string, int32> m = 1; optional group G = 2 {} message C {} message A { message D {} } }
         message B {} enum E { X = 0; }",
        &[],
    )
    .unwrap();
    let chosen = |selector: MessageSelector| match file.message(&selector, &Mapping::default()) {
        Ok(schema) => schema.name().to_owned(),
        Err(error) => format!("! {}", error.message()),
    };
    // As Confluent's deserializer counts: entries of maps and groups are no messages.
    for (path, expected) in [
        (vec![], "p.Z"),
        (vec![0], "p.Z"),
        (vec![1], "p.B"),
        (vec![0, 0], "p.Z.C"),
        (vec![0, 1, 0], "p.Z.A.D"),
        (vec![0, 2], "! the file has no message at the indexes [0, 2]"),
        (vec![-1], "! the file has no message at the indexes [-1]"),
    ] {
        assert_eq!(chosen(MessageSelector::Path(path)), expected);
    }
    // As Glue's serializer counts: all that the descriptor has.
    let sorted = ["p.B", "p.Z", "p.Z.A", "p.Z.A.D", "p.Z.C", "p.Z.G", "p.Z.MEntry"];
    for (index, expected) in (0..).zip(sorted) {
        assert_eq!(chosen(MessageSelector::Sorted(index)), expected);
    }
    assert_eq!(
        chosen(MessageSelector::Sorted(7)),
        "! the file has no message at the sorted index 7"
    );
    assert_eq!(chosen(MessageSelector::First), "p.Z");
    assert_eq!(chosen(MessageSelector::Name("p.Z.C".to_owned())), "p.Z.C");
    assert_eq!(
        chosen(MessageSelector::Name("Z".to_owned())),
        "! the file has no message `Z`"
    );
    assert_eq!(file.message_names(), ["p.Z", "p.Z.C", "p.Z.A", "p.Z.A.D", "p.B"]);
    let empty = ProtobufFile::compile("enum E { X = 0; }", &[]).unwrap();
    let error = empty
        .message(&MessageSelector::First, &Mapping::default())
        .unwrap_err();
    assert_eq!(error.message(), "the file has no message at all");
}

#[test]
fn references_are_followed() {
    let reference = |name: &str, text: &str| (name.to_owned(), proto3(text));
    let text = proto3("package a; import \"b.proto\"; message M { b.N n = 1; c.O o = 2; }");
    let references = [
        reference("dir/c.proto", "package c; message O { int32 i = 1; }"),
        reference(
            "b.proto",
            "package b; import public \"dir/c.proto\"; message N { c.O o = 1; }",
        ),
        // The name that messages give the file itself is free for others.
        reference("schema.proto", "package s;"),
    ];
    let file = ProtobufFile::compile(&text, &references).unwrap();
    let schema = file
        .message(&MessageSelector::First, &Mapping::default())
        .unwrap();
    assert_eq!(show(schema.columns()), "n {o {i int}}, o {i int}");
    // Only the file's own messages are counted.
    assert_eq!(file.message_names(), ["a.M"]);

    let missing = ProtobufFile::compile(&text, &references[1..]).unwrap_err();
    assert!(
        missing
            .message()
            .ends_with("'c.O' is not defined, and there is no file `dir/c.proto`, which is imported"),
        "{missing}"
    );
    assert!(
        missing.hint().unwrap_or_default().contains("references"),
        "{missing}"
    );
    let cycle = [
        reference("b.proto", "package b; import \"dir/c.proto\"; message N {}"),
        reference("dir/c.proto", "package c; import \"b.proto\"; message O {}"),
    ];
    let error = ProtobufFile::compile(&text, &cycle).unwrap_err();
    assert!(error.message().contains("cycle"), "{error}");
}

#[test]
fn options_need_not_be_defined() {
    check(
        &proto3(
            "import \"google/api/annotations.proto\"; import \"buf/validate/validate.proto\";
             option java_package = \"x\"; option (unknown.file).a.b = { x: [1, {y: 'z'}] }; option optimize_for = SPEED;
             message M { option (acme.table) = \"orders\"; option deprecated = true;
                int32 i = 1 [(buf.validate.field).int32 = {gt: 0}, json_name = \"j\", deprecated = true];
                oneof o { option (acme.required) = true; string s = 2; } reserved 5 to 9, 20; reserved \"old\";
                enum E { option allow_alias = true; option (acme.x) = 1; A = 0 [(acme.y) = 2]; B = 0; } E e = 3; }
             service S { rpc Get(M) returns (stream M) { option (google.api.http) = { get: \"/v1\" }; } }
             extend N { } message N {}",
        )
        .replace("extend N { }", ""),
        "i int, s string, e string",
    );
}

#[test]
fn names_in_json_are_known() {
    let text = proto3("message M { int32 plain_name = 1; int32 other = 2 [json_name = \"@o\"]; }");
    let file = ProtobufFile::compile(&text, &[]).unwrap();
    let schema = file
        .message(&MessageSelector::First, &Mapping::default())
        .unwrap();
    let fields = &schema.message(schema.root()).fields;
    let names: Vec<&str> = fields.iter().map(|field| field.json_name.as_str()).collect();
    assert_eq!(names, ["plainName", "@o"]);
}

#[test]
fn comments_and_annotations_are_docs() {
    let schema = ProtobufFile::compile(
        &proto3(
            "message M {
               // The customer,
               //   as in the CRM.
               string customer = 1;
               int32 plain = 2; // Trailing.
               /* ignored */ int32 meta = 3 [(confluent.field_meta) = { doc: \"From the registry\", params: [] }];
             }",
        ),
        &[],
    )
    .unwrap()
    .message(&MessageSelector::First, &Mapping::default())
    .unwrap();
    let docs: Vec<_> = schema
        .columns()
        .iter()
        .map(|column| column.doc.as_deref())
        .collect();
    assert_eq!(
        docs,
        [
            Some("The customer, as in the CRM."),
            Some("Trailing."),
            Some("From the registry")
        ]
    );
}

#[test]
fn editions_are_read_with_their_features() {
    let file = ProtobufFile::compile(
        "// A comment first.
         edition = '2023';
         option features.field_presence = IMPLICIT;
         message M {
           int32 implicit = 1;
           int32 explicit = 2 [features.field_presence = EXPLICIT, default = 7];
           string required = 3 [features = { field_presence: LEGACY_REQUIRED }];
           N prefixed = 4;
           N delimited = 5 [features.message_encoding = DELIMITED];
           repeated int32 r = 6 [features.repeated_field_encoding = EXPANDED];
           oneof o { int32 member = 7; }
           E e = 8;
           map<string, N> m = 9 [features.(pb.cpp).string_type = VIEW];
           reserved old, older; reserved 20 to 30;
           extensions 100 to 199;
         }
         message N { option features.message_encoding = DELIMITED; N inside = 1; int32 default = 2; }
         enum E { option features.enum_type = CLOSED; X = 3; reserved Y; }",
        &[],
    )
    .unwrap();
    let schema = file
        .message(&MessageSelector::First, &Mapping::default())
        .unwrap();
    assert_eq!(
        show(schema.columns()),
        "implicit int, explicit int, required string, prefixed {inside string, default int}, \
         delimited {inside string, default int}, r [int], member int, e string, m <string, {inside string, default int}>"
    );
    use ProtobufCardinality as C;
    let m = schema.message(schema.root());
    let cardinalities: Vec<C> = m.fields.iter().map(|field| field.cardinality).collect();
    assert_eq!(
        cardinalities,
        [
            C::Implicit,
            C::Explicit,
            C::Explicit,
            C::Explicit,
            C::Explicit,
            C::Repeated,
            C::Explicit,
            C::Implicit,
            C::Map
        ]
    );
    let groups = |message: &ProtobufMessage| -> Vec<bool> {
        message
            .fields
            .iter()
            .map(|field| matches!(field.kind, ProtobufKind::Group(_)))
            .collect()
    };
    assert_eq!(
        groups(m),
        [false, false, false, false, true, false, false, false, false]
    );
    assert_eq!(groups(schema.message(schema.find("N").unwrap())), [true, false]);

    for (text, reason) in [
        ("edition = \"2024\"; message M {}", "of the edition \"2024\""),
        (
            "edition = \"2023\"; message M { optional int32 i = 1; }",
            "no label `optional`",
        ),
        (
            "edition = \"2023\"; message M { required int32 i = 1; }",
            "required",
        ),
    ] {
        let error = ProtobufFile::compile(text, &[]).unwrap_err();
        assert!(error.message().contains(reason), "{error}");
    }
}

#[test]
fn presence_follows_the_syntax() {
    use ProtobufCardinality as C;
    let cardinalities = |text: &str| -> Vec<C> {
        let file = ProtobufFile::compile(text, &[]).unwrap();
        let schema = file
            .message(&MessageSelector::First, &Mapping::default())
            .unwrap();
        schema
            .message(schema.root())
            .fields
            .iter()
            .map(|field| field.cardinality)
            .collect()
    };
    assert_eq!(
        cardinalities(&proto3(
            "message M { int32 a = 1; optional int32 b = 2; M c = 3; oneof o { int32 d = 4; } repeated int32 e = 5; map<int32, int32> f = 6; }"
        )),
        [
            C::Implicit,
            C::Explicit,
            C::Explicit,
            C::Explicit,
            C::Repeated,
            C::Map
        ]
    );
    assert_eq!(
        cardinalities("syntax = \"proto2\"; message M { optional int32 a = 1; required int32 b = 2; }"),
        [C::Explicit, C::Explicit]
    );
}

#[test]
fn faults_name_file_line_and_reason() {
    for (text, expected) in [
        ("message M {\n  string = 1;\n}", "schema.proto:2:"),
        ("message M { optional Missing f = 1; }", "Missing"),
        ("message M { optional int32 a = 1; optional int32 b = 1; }", "1"),
        ("message M { int32 a = 1; }", "label"),
        ("not a schema", "schema.proto:1:1"),
        ("{\"type\": \"record\"}", "schema.proto:1:1"),
    ] {
        let error = ProtobufFile::compile(text, &[]).unwrap_err();
        assert_eq!(error.code(), Some("protobuf.schema_invalid"));
        assert!(error.message().contains(expected), "{text}: {error}");
    }
    // No text at all is a file without messages.
    assert!(ProtobufFile::compile("", &[]).unwrap().message_names().is_empty());
}
