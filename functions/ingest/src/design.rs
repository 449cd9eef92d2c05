use std::collections::HashMap;

use frazil_codec::HashKey;
use frazil_config::{
    ColumnCase as ConfiguredCase, FrozenChange, Hash, TimeType, Timestamps, TopicSettings, Transform,
};
use frazil_core::{Error, ErrorKind, Result};
use frazil_schema::{ColumnCase, FieldMap, FieldMapping, HashMethod, KafkaColumns, Mapping};
use frazil_table::{TableDesign, properties};
use iceberg::spec::{NullOrder, SortDirection, Transform as IcebergTransform};

/// The table that a topic's settings describe.
pub(crate) fn table_design(settings: &TopicSettings) -> Result<TableDesign> {
    let frozen = serde_json::to_string(settings).map_err(|e| {
        Error::new(ErrorKind::Internal, "freeze the topic's settings", e.to_string()).with_source(e)
    })?;
    Ok(TableDesign {
        kafka: kafka_columns(settings),
        partition_by: settings
            .partition_by
            .iter()
            .map(|field| (field.source.clone(), transform(field.transform)))
            .collect(),
        sort_by: settings
            .sort_by
            .iter()
            .map(|field| {
                let direction = if field.descending {
                    SortDirection::Descending
                } else {
                    SortDirection::Ascending
                };
                let nulls = if field.nulls_first {
                    NullOrder::First
                } else {
                    NullOrder::Last
                };
                (field.source.clone(), transform(field.transform), direction, nulls)
            })
            .collect(),
        properties: HashMap::from([
            (properties::SOURCE.to_owned(), settings.source.to_string()),
            (properties::TOPIC.to_owned(), settings.topic.to_string()),
            (properties::SETTINGS.to_owned(), frozen),
        ]),
    })
}

/// How the topic's settings turn source schemas into columns.
pub fn mapping(settings: &TopicSettings) -> Result<Mapping> {
    let mut fields = std::collections::BTreeMap::new();
    for (path, field) in &settings.fields {
        let data_type = match &field.field_type {
            Some(text) => Some(serde_json::from_value(text.as_str().into()).map_err(|error| {
                let message = format!("field `{path}`: `{text}` is not a type of Iceberg");
                Error::new(ErrorKind::Invalid, "use the topic's settings", message).with_source(error)
            })?),
            None => None,
        };
        let field = FieldMapping {
            data_type,
            exclude: field.exclude,
            hash: field.hash.map(|hash| match hash {
                Hash::Sha256 => HashMethod::Sha256,
            }),
        };
        fields.insert(path.clone(), field);
    }
    Ok(Mapping {
        column_case: match settings.column_case {
            ConfiguredCase::Lower => ColumnCase::Lower,
            ConfiguredCase::Keep => ColumnCase::Keep,
            ConfiguredCase::Snake => ColumnCase::Snake,
        },
        utc_naive: settings.timestamps == Timestamps::UtcNaive,
        native_time: settings.time_type == TimeType::Time,
        oneof_case: settings.oneof_case,
        fields,
    })
}

/// The secret of the topic's hashed fields, if it has any.
///
/// # Errors
/// `Invalid` if it is not there or too short: nothing may be written then.
pub(crate) fn hash_key(settings: &TopicSettings) -> Result<Option<HashKey>> {
    let secret = settings.hash_secret()?;
    secret.map(|secret| HashKey::new(secret.as_bytes())).transpose()
}

/// Checks that a table is that of the topic, and of the type, whose records go into it: names are made safe, and two
/// may become one.
pub(crate) fn check_owner(
    settings: &TopicSettings,
    record_name: Option<&str>,
    table: &HashMap<String, String>,
) -> Result<()> {
    let taken = |message: String, hint: &'static str| {
        Err(Error::new(ErrorKind::Suspended, "use the table", message)
            .with_code("settings.other_topic")
            .with_hint(hint))
    };
    if let Some(topic) = table.get(properties::TOPIC)
        && topic != settings.topic.as_str()
        && !settings.kafka_columns.topic
    {
        return taken(
            format!("it is that of the topic `{topic}`"),
            "give this topic another table, or set kafka_columns.topic = true for both to share one",
        );
    }
    let (of_table, own) = (
        table.get(properties::RECORD_NAME).map(String::as_str),
        record_name,
    );
    match (of_table, own) {
        (Some(other), Some(own)) if other != own => taken(
            format!("it is that of the type `{other}`, and these records are of the type `{own}`"),
            "rename one of the types",
        ),
        _ => Ok(()),
    }
}

/// Checks the topic's settings against those that its table was made with, and which columns it has.
pub(crate) fn check_frozen(
    settings: &TopicSettings,
    table: &HashMap<String, String>,
    fields: &FieldMap,
) -> Result<()> {
    let Some(frozen) = table.get(properties::SETTINGS) else {
        return Ok(()); // not made by this version, or by hand
    };
    let changes = settings.changed_since(frozen, |path| fields.feeds(path))?;
    if changes.is_empty() {
        return Ok(());
    }
    Err(FrozenChange::to_error(&changes))
}

/// Which of Kafka's own columns the topic's settings ask for.
pub fn kafka_columns(settings: &TopicSettings) -> KafkaColumns {
    let configured = settings.kafka_columns;
    KafkaColumns {
        key: configured.key,
        headers: configured.headers,
        tombstone: configured.tombstone,
        topic: configured.topic,
        timestamp_type: configured.timestamp_type,
        utc_naive: settings.timestamps == Timestamps::UtcNaive,
    }
}

fn transform(configured: Transform) -> IcebergTransform {
    match configured {
        Transform::Identity => IcebergTransform::Identity,
        Transform::Bucket(buckets) => IcebergTransform::Bucket(buckets),
        Transform::Truncate(width) => IcebergTransform::Truncate(width),
        Transform::Year => IcebergTransform::Year,
        Transform::Month => IcebergTransform::Month,
        Transform::Day => IcebergTransform::Day,
        Transform::Hour => IcebergTransform::Hour,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use frazil_config::Config;
    use frazil_core::TopicName;
    use iceberg::spec::PrimitiveType;

    use super::*;

    fn settings(keys: &str) -> TopicSettings {
        let config = Config::parse(&format!("[topics.t]\n{keys}"), Path::new("f")).unwrap();
        config
            .topic(config.sources()[0].name(), &TopicName::new("t"))
            .unwrap()
    }

    #[test]
    fn settings_become_the_mapping_of_schemas() {
        assert_eq!(mapping(&settings("")).unwrap(), Mapping::default());
        let settings = settings(
            r#"
            column_case = "keep"
            timestamps = "utc_naive"
            time_type = "time"
            oneof_case = true
            hash_key_env = "K"
            fields."customer.email".hash = "sha256"
            fields.total.type = "decimal( 18,4 )"
            fields.gone.exclude = true
            "#,
        );
        let field = |data_type, exclude, hash| FieldMapping {
            data_type,
            exclude,
            hash,
        };
        let decimal = PrimitiveType::Decimal {
            precision: 18,
            scale: 4,
        };
        let expected = Mapping {
            column_case: ColumnCase::Keep,
            utc_naive: true,
            native_time: true,
            oneof_case: true,
            fields: [
                ("customer.email", field(None, false, Some(HashMethod::Sha256))),
                ("gone", field(None, true, None)),
                ("total", field(Some(decimal), false, None)),
            ]
            .map(|(path, field)| (path.to_owned(), field))
            .into(),
        };
        assert_eq!(mapping(&settings).unwrap(), expected);
    }

    #[test]
    fn a_table_is_of_one_topic_unless_rows_say_which() {
        let of = |topic: &str| HashMap::from([(properties::TOPIC.to_owned(), topic.to_owned())]);
        let check = |keys: &str, table: &HashMap<String, String>| {
            check_owner(&settings(keys), None, table).map_err(|error| error.code())
        };
        assert_eq!(check("", &of("t")), Ok(()));
        assert_eq!(check("", &HashMap::new()), Ok(()));
        assert_eq!(check("", &of("T")), Err(Some("settings.other_topic")));
        assert_eq!(check("kafka_columns.topic = true", &of("T")), Ok(()));
    }

    #[test]
    fn kafkas_own_instant_is_as_naive_as_the_others() {
        assert!(!kafka_columns(&settings("")).utc_naive);
        assert!(kafka_columns(&settings("timestamps = \"utc_naive\"")).utc_naive);
    }

    /// Every type that the configuration accepts is one of Iceberg.
    #[test]
    fn every_type_of_the_configuration_is_known() {
        for data_type in [
            "boolean",
            "int",
            "long",
            "float",
            "double",
            "date",
            "time",
            "timestamp",
            "timestamptz",
            "string",
            "binary",
            "decimal(38,38)",
        ] {
            let mapping = mapping(&settings(&format!("fields.f.type = \"{data_type}\""))).unwrap();
            let known = mapping.fields["f"].data_type.as_ref().unwrap();
            assert_eq!(known.to_string().replace(' ', ""), data_type);
        }
    }

    #[test]
    fn a_tables_settings_are_compared_before_anything_changes() {
        let made_with = |keys: &str| table_design(&settings(keys)).unwrap().properties;
        let fields: FieldMap = [("/a~sha256".to_owned(), 1), ("/b".to_owned(), 2)]
            .into_iter()
            .collect();
        let check = |before: &str, now: &str| check_frozen(&settings(now), &made_with(before), &fields);
        check("", "").unwrap();
        check("", "fields.later.exclude = true").unwrap();
        let error = check("", "fields.b.type = \"long\"").unwrap_err();
        assert_eq!(
            (error.kind(), error.code()),
            (ErrorKind::Suspended, Some("settings.frozen"))
        );
        assert!(check("hash_key_env = \"K\"\nfields.a.hash = \"sha256\"", "").is_err());
        assert!(check("", "column_case = \"snake\"").is_err());
        // A table that this version did not make.
        check_frozen(&settings("column_case = \"snake\""), &HashMap::new(), &fields).unwrap();
    }
}
