use std::collections::BTreeSet;
use std::fmt;

use frazil_core::{Error, ErrorKind, Result};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::layout::{PartitionField, SortField};
use crate::topic::TopicSettings;

/// The settings that a table keeps for good, and what a table has that was made before there was the setting. The
/// others judge records or pace the work, and may change at any time: what a schema may ask of the table is not for
/// them to say, and Kafka's own columns may be added or left null.
const FROZEN: [(&str, &str); 8] = [
    ("tables", "\"one\""),
    ("column_case", "\"lower\""),
    ("timestamps", "\"utc\""),
    ("time_type", "\"string\""),
    ("oneof_case", "false"),
    ("partition_by", "[]"),
    ("sort_by", "[]"),
    ("fields", "{}"),
];

/// A setting that is not what the table was made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenChange {
    /// The setting's key, such as `column_case` or `fields."customer.email"`.
    pub setting: String,
    /// What the table was made with.
    pub table: String,
    /// What the configuration says now.
    pub configured: String,
}

impl fmt::Display for FrozenChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            setting,
            table,
            configured,
        } = self;
        write!(
            f,
            "`{setting}` was {table} when the table was made and is {configured} now"
        )
    }
}

impl FrozenChange {
    /// The changes as an error that a person must decide about.
    pub fn to_error(changes: &[Self]) -> Error {
        let listed: Vec<String> = changes.iter().map(Self::to_string).collect();
        Error::new(ErrorKind::Suspended, "use the topic's settings", listed.join("; "))
            .with_code("settings.frozen")
            .with_hint(
                "the table keeps what it was made with: set it back and `frazil topic resume`, or give the topic a new \
                 table",
            )
    }
}

impl TopicSettings {
    /// What these settings would change of a table that was made with the settings `frozen`, as JSON. A setting of a
    /// field is new, and no change, as long as the table has no column of that field; `has_column` says so by the
    /// field's path.
    ///
    /// # Errors
    /// `Internal` if `frozen` is not JSON.
    pub fn changed_since(
        &self,
        frozen: &str,
        has_column: impl Fn(&str) -> bool,
    ) -> Result<Vec<FrozenChange>> {
        let unreadable = |error: serde_json::Error| {
            Error::new(
                ErrorKind::Internal,
                "read the table's settings",
                error.to_string(),
            )
            .with_source(error)
        };
        let table: Map<String, Value> = serde_json::from_str(frozen).map_err(unreadable)?;
        let configured = serde_json::to_value(self).map_err(unreadable)?;
        let mut changes = Vec::new();
        for (setting, before) in FROZEN {
            let before = match table.get(setting) {
                Some(value) => value.clone(),
                None => serde_json::from_str(before).map_err(unreadable)?,
            };
            let now = configured.get(setting).cloned().unwrap_or_default();
            match (&before, &now) {
                (Value::Object(before), Value::Object(now)) => {
                    let paths: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
                    for path in paths {
                        let is_new = !before.contains_key(path) && !has_column(path);
                        if before.get(path) != now.get(path) && !is_new {
                            changes.push(FrozenChange {
                                setting: format!("{setting}.{}", Value::from(path.as_str())),
                                table: shown(before.get(path)),
                                configured: shown(now.get(path)),
                            });
                        }
                    }
                }
                _ if before == now => {}
                // Neither moves a record to another table.
                (Value::String(before), Value::String(now))
                    if [before, now]
                        .iter()
                        .all(|one| ["one", "merged"].contains(&one.as_str())) => {}
                _ => changes.push(FrozenChange {
                    setting: setting.to_owned(),
                    table: written(setting, &before),
                    configured: written(setting, &now),
                }),
            }
        }
        Ok(changes)
    }
}

/// The value of a setting as the file writes it, to be pasted there.
fn written(setting: &str, value: &Value) -> String {
    fn listed<T: DeserializeOwned + fmt::Display>(value: &Value) -> Option<Value> {
        let fields: Vec<T> = serde_json::from_value(value.clone()).ok()?;
        Some(fields.iter().map(ToString::to_string).collect())
    }
    let list = match setting {
        "partition_by" => listed::<PartitionField>(value),
        "sort_by" => listed::<SortField>(value),
        _ => None,
    };
    shown(Some(list.as_ref().unwrap_or(value)))
}

/// A value as people would write it in the file.
fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "not set".to_owned(),
        Some(Value::Object(entries)) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{key} = {}", shown(Some(value))))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Some(Value::Array(elements)) => {
            let elements: Vec<String> = elements.iter().map(|element| shown(Some(element))).collect();
            format!("[{}]", elements.join(", "))
        }
        Some(value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use frazil_core::TopicName;

    use super::*;
    use crate::Config;

    fn settings(keys: &str) -> TopicSettings {
        let config = Config::parse(&format!("[topics.t]\n{keys}"), Path::new("f")).unwrap();
        config
            .topic(config.sources()[0].name(), &TopicName::new("t"))
            .unwrap()
    }

    /// Makes a table with the keys `before`, which has a column of the field `there`, and configures `now`.
    fn check(before: &str, now: &str, expected: &[&str]) {
        let frozen = serde_json::to_string(&settings(before)).unwrap();
        let changes = settings(now)
            .changed_since(&frozen, |path| path == "there")
            .unwrap();
        let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(changes, expected, "{before} -> {now}");
    }

    #[test]
    fn what_a_table_was_made_with_stays() {
        let key = "hash_key_env = \"K\"\n";
        let hash = "fields.there.hash = \"sha256\"";
        let with_key = |keys: &str| format!("{key}{keys}");
        for (before, now, expected) in [
            ("", "", &[][..]),
            (
                "",
                "column_case = \"snake\"",
                &["`column_case` was \"lower\" when the table was made and is \"snake\" now"],
            ),
            (
                "timestamps = \"utc_naive\"\ntime_type = \"time\"\noneof_case = true",
                "",
                &[
                    "`timestamps` was \"utc_naive\" when the table was made and is \"utc\" now",
                    "`time_type` was \"time\" when the table was made and is \"string\" now",
                    "`oneof_case` was true when the table was made and is false now",
                ],
            ),
            (
                "",
                "partition_by = []",
                &["`partition_by` was [\"day(_kafka_timestamp)\"] when the table was made and is [] now"],
            ),
            (
                "partition_by = [\"bucket(16, a)\", \"b\"]\nsort_by = [\"a desc\", \"hour(b)\"]",
                "partition_by = [\"bucket(16, a)\"]\nsort_by = []",
                &[
                    "`partition_by` was [\"bucket[16](a)\", \"b\"] when the table was made and is [\"bucket[16](a)\"] now",
                    "`sort_by` was [\"a desc nulls-last\", \"hour(b) asc nulls-first\"] when the table was made and is [] now",
                ],
            ),
            ("sort_by = [\"a\"]", "sort_by = [\"a asc\"]", &[]),
            // A setting of a field that the table has, changed, gone and new.
            (
                "fields.there.type = \"long\"",
                "fields.there.type = \"decimal(9,2)\"",
                &[
                    "`fields.\"there\"` was { type = \"long\" } when the table was made and is { type = \"decimal(9, 2)\" } now",
                ],
            ),
            (
                "fields.other.exclude = true",
                "",
                &["`fields.\"other\"` was { exclude = true } when the table was made and is not set now"],
            ),
            (
                "",
                &with_key(hash),
                &["`fields.\"there\"` was not set when the table was made and is { hash = \"sha256\" } now"],
            ),
            ("", "fields.other.exclude = true", &[]),
            ("fields.other.exclude = false", "", &[]),
            // What may change.
            (
                "",
                "format = \"json\"\nmax_columns = 7\non_error = \"suspend\"\nfreshness = \"5m\"\nbackfill = true\n\
                 timestamp_range = [2001-01-01, 2100-01-01]\npartition_range = [2001-01-01, \"now\"]\nretention.snapshots = 5\nkafka_columns.topic = true\n\
                 unknown_fields = \"collect\"\nhash_key_env = \"K\"",
                &[],
            ),
        ] {
            check(before, now, expected);
        }
    }

    #[test]
    fn a_table_from_before_a_setting_has_its_default() {
        let changed = |keys: &str| {
            let frozen = r#"{"column_case": "lower", "partition_by": [{"source": "_kafka_timestamp", "transform": "day"}]}"#;
            settings(keys).changed_since(frozen, |_| true).unwrap().len()
        };
        assert_eq!(changed(""), 0);
        assert_eq!(changed("timestamps = \"utc_naive\""), 1);
        assert_eq!(changed("fields.a.exclude = true"), 1);
        assert!(settings("").changed_since("no JSON", |_| true).is_err());
    }

    #[test]
    fn the_error_says_what_and_how_to_go_on() {
        let frozen = serde_json::to_string(&settings("")).unwrap();
        let changes = settings("column_case = \"keep\"")
            .changed_since(&frozen, |_| true)
            .unwrap();
        assert_eq!(
            FrozenChange::to_error(&changes).to_string(),
            "cannot use the topic's settings: `column_case` was \"lower\" when the table was made and is \"keep\" now; \
             the table keeps what it was made with: set it back and `frazil topic resume`, or give the topic a new table"
        );
    }
}
