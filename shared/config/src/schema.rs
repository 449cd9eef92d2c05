//! The JSON Schema of `frazil.toml` and the page that documents it: both made of the structs that the reader
//! fills, both checked in, both checked here.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use frazil_core::TopicName;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Map, Value, json};
use toml::de::{DeTable, DeValue};

use crate::fault::Located;
use crate::instant::WrittenInstant;
use crate::sections::FileSection;
use crate::{Config, DurationMs, FieldType, PartitionField, SchemaSource, SortField};

/// Set to write the checked-in files instead of comparing them.
const WRITE: &str = "FRAZIL_WRITE_SCHEMA";
const COMMAND: &str = "FRAZIL_WRITE_SCHEMA=1 cargo test -p frazil-config schema";

impl<T: JsonSchema> JsonSchema for Located<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

macro_rules! text_schema {
    ($type:ty, $schema:tt) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

text_schema!(DurationMs, {
    "type": "string",
    "pattern": "^([0-9]+(ms|s|m|h|d))+$"
});
text_schema!(PartitionField, {
    "type": "string",
    "pattern": "^\\s*([a-z0-9_]+|(identity|year|month|day|hour|bucket|truncate)\\s*(\\[[0-9]+\\])?\\s*\\(.+\\))\\s*$"
});
text_schema!(SortField, {
    "type": "string",
    "pattern": "^\\s*[a-z0-9_]+(\\s*(\\[[0-9]+\\])?\\s*\\(.+\\))?(\\s+([aA][sS][cC]|[dD][eE][sS][cC]))?(\\s+[nN][uU][lL][lL][sS][-_ ]([fF][iI][rR][sS][tT]|[lL][aA][sS][tT]))?\\s*$"
});
text_schema!(SchemaSource, {
    "type": "string",
    "pattern": "^(auto|registry|infer|raw|file:.+\\.(avsc|json|proto)|subject:.+)$"
});
text_schema!(FieldType, {
    "type": "string",
    "pattern": "^(boolean|int|long|float|double|date|time|timestamp|timestamptz|string|binary|decimal\\(\\s*[0-9]+\\s*,\\s*[0-9]+\\s*\\))$"
});
text_schema!(WrittenInstant, {
    "type": "string",
    "pattern": "^([0-9]{4}-[0-9]{2}-[0-9]{2}.*|now.*)$"
});

/// The schema, as it is checked in. Nothing is required, and TOML has no null.
fn generate() -> Value {
    let mut schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<FileSection>();
    RecursiveTransform(|schema: &mut Schema| {
        let Some(object) = schema.as_object_mut() else {
            return;
        };
        object.remove("required");
        if let Some(Value::Array(types)) = object.get_mut("type") {
            types.retain(|kind| kind != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                object.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(branches)) = object.get("anyOf")
            && let [Value::Object(only), null] = branches.as_slice()
            && null == &json!({"type": "null"})
        {
            let only = only.clone();
            object.remove("anyOf");
            // What the field says goes before what its type says.
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    })
    .transform(&mut schema);
    sorted(schema.to_value())
}

/// Keys in alphabetical order, whichever map the build gave to `serde_json`.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let entries: std::collections::BTreeMap<String, Value> = object.into_iter().collect();
            Value::Object(
                entries
                    .into_iter()
                    .map(|(key, value)| (key, sorted(value)))
                    .collect(),
            )
        }
        Value::Array(elements) => elements.into_iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[track_caller]
fn check_current(path: &str, generated: &str) {
    let file = repository().join(path);
    #[allow(clippy::disallowed_methods)]
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&file, generated).unwrap();
    }
    let checked_in = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        checked_in == generated,
        "{path} is not current; write it with\n    {COMMAND}"
    );
}

#[test]
fn schema_is_current() {
    let text = serde_json::to_string_pretty(&generate()).unwrap() + "\n";
    check_current("shared/config/frazil.schema.json", &text);
}

#[test]
fn schema_page_is_current() {
    check_current("docs/configuration.md", &page(&generate()));
}

/// The properties of a section: its own, and those of the section that a `$ref` names.
fn properties<'s>(root: &'s Value, section: &str) -> &'s Map<String, Value> {
    root["$defs"][section]["properties"].as_object().unwrap()
}

/// The keys that the reader knows in a section, in its own order: what it answers to a name far from all of them.
fn reader_keys(section: &str) -> Vec<String> {
    let header = if section.is_empty() {
        String::new()
    } else {
        format!("[{section}]\n")
    };
    let text = format!("{header}{} = 1", "q".repeat(40));
    let faults = Config::parse(&text, Path::new("f")).unwrap_err();
    let hint = faults.faults()[0].hint.clone().unwrap();
    hint.strip_prefix("known here: ")
        .unwrap()
        .split(", ")
        .map(str::to_owned)
        .collect()
}

#[test]
fn schema_and_reader_know_the_same_keys() {
    let root = generate();
    let mut checked = 0;
    let all = [
        ("", root["properties"].as_object().unwrap()),
        ("aws", properties(&root, "AwsSection")),
        ("sources.s", properties(&root, "SourceSection")),
        ("registries.r", properties(&root, "RegistrySection")),
        ("defaults", properties(&root, "TopicKeys")),
        ("topics.t", properties(&root, "TopicSection")),
        ("topics.t.kafka_columns", properties(&root, "KafkaColumnsSection")),
        ("topics.t.fields.f", properties(&root, "FieldSection")),
        ("topics.t.breaker", properties(&root, "BreakerSection")),
        ("topics.t.retention", properties(&root, "RetentionSection")),
    ];
    for (section, properties) in all {
        let header = if section.is_empty() {
            String::new()
        } else {
            format!("[{section}]\n")
        };
        for key in properties.keys() {
            // No key takes a list with a table in it.
            let faults = Config::parse(&format!("{header}{key} = [{{}}]"), Path::new("f")).unwrap_err();
            let path = if section.is_empty() {
                key.clone()
            } else {
                format!("{section}.{key}")
            };
            assert!(faults.faults()[0].key_path.starts_with(&path), "{path}: {faults}");
            assert!(!faults.to_string().contains("unknown key"), "{path}: {faults}");
            checked += 1;
        }
        let mut read = reader_keys(section);
        let mut written: Vec<String> = properties.keys().cloned().collect();
        read.sort_unstable();
        written.sort_unstable();
        assert_eq!(read, written, "[{section}]");
    }
    assert_eq!(checked, 9 + 4 + 3 + 12 + 29 + 31 + 5 + 3 + 3 + 3);
}

#[test]
fn schema_defaults_are_the_defaults() {
    let root = generate();
    let mut lines = String::new();
    for (section, prefix) in [
        ("TopicKeys", ""),
        ("KafkaColumnsSection", "kafka_columns."),
        ("BreakerSection", "breaker."),
        ("RetentionSection", "retention."),
    ] {
        for (key, property) in properties(&root, section) {
            if let Some(default) = property.get("default") {
                writeln!(lines, "{prefix}{key} = {default}").unwrap();
            }
        }
    }
    assert_eq!(lines.lines().count(), 20 + 5 + 3 + 3, "{lines}");
    let written = Config::parse(&format!("[topics.t]\n{lines}"), Path::new("f")).unwrap();
    let (source, topic) = (written.sources()[0].name().clone(), TopicName::new("t"));
    assert_eq!(
        written.topic(&source, &topic).unwrap(),
        Config::default().topic(&source, &topic).unwrap()
    );
}

#[test]
fn schema_examples_are_accepted() {
    let root = generate();
    for (section, header) in [
        ("SourceSection", "[sources.main]\n"),
        (
            "TopicSection",
            "[sources.main]\n[registries.main]\npath = \"x\"\n[topics.t]\nformat = \"protobuf\"\n",
        ),
        (
            "FieldSection",
            "[topics.t]\nhash_key_env = \"K\"\n[topics.t.fields.f]\n",
        ),
    ] {
        for (key, property) in properties(&root, section) {
            for example in property
                .get("examples")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let text = format!("{header}{key} = {example}");
                if let Err(faults) = Config::parse(&text, Path::new("f")) {
                    panic!("{text}\n{faults}");
                }
                assert_eq!(validate(&text), Ok(()), "{text}");
            }
        }
    }
}

/// The judgement of an independent validator on a text.
fn validate(text: &str) -> Result<(), String> {
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.add_resource("frazil.schema.json", generate()).unwrap();
    let schema = compiler.compile("frazil.schema.json", &mut schemas).unwrap();
    let table = DeTable::parse(text).unwrap();
    let value = table_to_json(table.get_ref());
    schemas
        .validate(&value, schema)
        .map_err(|error| error.to_string())
}

fn table_to_json(table: &DeTable<'_>) -> Value {
    table
        .iter()
        .map(|(key, value)| (key.get_ref().to_string(), to_json(value.get_ref())))
        .collect()
}

/// As editors see TOML: dates are strings.
fn to_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text),
        DeValue::Integer(integer) => json!(i64::from_str_radix(integer.as_str(), integer.radix()).unwrap()),
        DeValue::Float(float) => json!(float.as_str().parse::<f64>().unwrap()),
        DeValue::Boolean(boolean) => json!(boolean),
        DeValue::Datetime(datetime) => json!(datetime.to_string()),
        DeValue::Array(elements) => elements
            .iter()
            .map(|element| to_json(element.get_ref()))
            .collect(),
        DeValue::Table(table) => table_to_json(table),
    }
}

#[test]
fn schema_accepts_the_example_file() {
    let text = std::fs::read_to_string(repository().join("frazil.example.toml")).unwrap();
    assert_eq!(validate(&text), Ok(()));
    Config::parse(&text, Path::new("frazil.example.toml")).unwrap();
    // What stands behind `#: ` is set to its default or to an example; it must hold when it is switched on.
    let switched_on = text
        .lines()
        .map(|line| line.strip_prefix("#: ").unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n");
    assert_ne!(switched_on, text);
    assert_eq!(validate(&switched_on), Ok(()));
    Config::parse(&switched_on, Path::new("frazil.example.toml")).unwrap();
    for (section, properties) in generate()["$defs"].as_object().unwrap() {
        for key in properties["properties"].as_object().unwrap().keys() {
            assert!(
                switched_on.contains(key.as_str()),
                "the example does not show {section}.{key}"
            );
        }
    }
}

#[test]
fn schema_refuses_what_the_reader_refuses() {
    for text in [
        "unknown = 1",
        "format = 2",
        "[defaults]\ntable = \"x\"",
        "[topics.t]\nunknown = 1",
        "[topics.t]\nformat = \"csv\"",
        "[topics.t]\nframing = \"prefix\"",
        "[topics.t]\nschema = \"orders.avsc\"",
        "[registries.r]\nkind = \"thrift\"\npath = \"x\"",
        "[registries.r]\nkind = \"confluent\"\nurls = [\"https://r\"]\ntoken_env = \"a b\"",
        "[registries.r]\nkind = \"confluent\"\nurls = []",
        "[topics.t]\nfreshness = \"1 minute\"",
        "[topics.t]\nfreshness = \"\"",
        "[topics.t]\nfreshness = 60",
        "[topics.t]\nmax_columns = 0",
        "[topics.t]\ntimestamps = \"naive\"",
        "[topics.t]\nfields.f.type = \"text\"",
        "[topics.t]\nfields.f.hash = \"md5\"",
        "[topics.t]\nfields.f = \"long\"",
        "[topics.t]\nbreaker.share = 5",
        "[topics.t]\npartition_by = \"day(ts)\"",
        "[topics.t]\npartition_by = [\"days(ts)\"]",
        "[topics.t]\nsort_by = [\"x up\"]",
        "[topics.t]\ntimestamp_range = [2001-01-01]",
        "[topics.t]\nnamespace = \"Sales\"",
        "[sources.s]\narn = \"arn:aws:s3:::b\"",
    ] {
        assert!(Config::parse(text, Path::new("f")).is_err(), "{text}");
        assert!(validate(text).is_err(), "{text}");
    }
}

const PAGE_HEAD: &str = "\
# Configuration

<!-- Made from the reader's own structs. Change the comments in shared/config/src/sections.rs, then run
     FRAZIL_WRITE_SCHEMA=1 cargo test -p frazil-config schema -->

Frazil runs without any configuration. What you want otherwise stands in `frazil.toml`; `frazil check frazil.toml`
lists everything that is wrong with it, with line and column. `frazil.example.toml` shows every key.

Editors that know TOML check and complete the file with `shared/config/frazil.schema.json`.

A key that Frazil does not know is an error, never ignored. Durations are a number and a unit, `ms`, `s`, `m`, `h` or
`d`: `\"30s\"`, `\"1h30m\"`, `\"14d\"`. Names of columns are those of the table: lowercase.
";

const PAGE_TAIL: &str = "
## The environment

An option of the command goes before the variable, the variable before the file. A variable that begins with
`FRAZIL_` and is not listed here is an error.

| variable | meaning |
| --- | --- |
| `FRAZIL_CONFIG` | the path of `frazil.toml` |
| `FRAZIL_WAREHOUSE` | the directory that holds the tables |
| `FRAZIL_SCHEMAS` | the directory that is the schema registry |
| `FRAZIL_SECRET_…` | secrets, where the file names such a variable (`password_env` and the like, which may name any other too) |
| `FRAZIL_LOG` | what is logged: `error`, `warn`, `info`, `debug`, or per crate, such as `info,frazil_table=debug` |
";

/// The reference page: a table of keys per section.
fn page(root: &Value) -> String {
    let mut page = PAGE_HEAD.to_owned();
    let sections = [
        ("The top of the file", "", root, ""),
        (
            "`[sources.NAME]`",
            "",
            &root["$defs"]["SourceSection"],
            "sources.s",
        ),
        (
            "`[registries.NAME]`",
            "",
            &root["$defs"]["RegistrySection"],
            "registries.r",
        ),
        ("`[topics.NAME]`", "", &root["$defs"]["TopicSection"], "topics.t"),
        (
            "`[defaults]` and `[topics.NAME]`",
            "",
            &root["$defs"]["TopicKeys"],
            "defaults",
        ),
        (
            "",
            "kafka_columns.",
            &root["$defs"]["KafkaColumnsSection"],
            "defaults.kafka_columns",
        ),
        (
            "",
            "fields.PATH.",
            &root["$defs"]["FieldSection"],
            "defaults.fields.f",
        ),
        (
            "",
            "breaker.",
            &root["$defs"]["BreakerSection"],
            "defaults.breaker",
        ),
        (
            "",
            "retention.",
            &root["$defs"]["RetentionSection"],
            "defaults.retention",
        ),
    ];
    let shared = properties(root, "TopicKeys");
    for (title, prefix, section, path) in sections {
        if !title.is_empty() {
            write!(page, "\n## {title}\n\n").unwrap();
            if let Some(text) = section["description"].as_str() {
                write!(page, "{}\n\n", one_line(text)).unwrap();
            }
            page.push_str("| key | type | default | meaning |\n| --- | --- | --- | --- |\n");
        }
        for key in reader_keys(path) {
            let property = &section["properties"][&key];
            let is_shared = title == "`[topics.NAME]`" && shared.contains_key(&key);
            let is_section = property.get("$ref").is_some() || property.get("additionalProperties").is_some();
            if is_shared || (is_section && title != "The top of the file") {
                continue;
            }
            let default = property
                .get("default")
                .map(|value| format!("`{value}`"))
                .unwrap_or_default();
            let meaning = one_line(property["description"].as_str().unwrap_or_default());
            let example = match property["examples"].get(0) {
                Some(example) => format!(" Example: `{example}`."),
                None => String::new(),
            };
            writeln!(
                page,
                "| `{prefix}{key}` | {} | {default} | {meaning}{example} |",
                kind(property)
            )
            .unwrap();
        }
    }
    page.push_str(PAGE_TAIL);
    page
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

fn kind(property: &Value) -> String {
    if let Some(words) = property.get("enum").and_then(Value::as_array) {
        return words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ");
    }
    if let Some(branches) = property.get("oneOf").and_then(Value::as_array) {
        return branches
            .iter()
            .map(|branch| format!("`{}`", branch["const"]))
            .collect::<Vec<_>>()
            .join(", ");
    }
    let bounds = match (&property["minimum"], &property["maximum"]) {
        (Value::Null, Value::Null) => String::new(),
        (min, Value::Null) => format!(", at least {min}"),
        (min, max) => format!(", {min} to {max}"),
    };
    let kind = match property["type"].as_str() {
        Some("array") => "list",
        Some("string")
            if property["pattern"]
                .as_str()
                .is_some_and(|pattern| pattern.contains("ms|")) =>
        {
            "duration"
        }
        Some("integer") => "whole number",
        Some("object") | None => "section",
        Some(other) => other,
    };
    format!("{kind}{bounds}")
}
