use std::collections::HashMap;

use frazil_codec::HashKey;
use frazil_config::{
    ColumnCase as ConfiguredCase, FrozenChange, Hash, KafkaColumns as Configured, TimeType, Timestamps,
    TopicSettings, Transform,
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
        kafka: kafka_columns(settings.kafka_columns),
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
pub(crate) fn mapping(settings: &TopicSettings) -> Result<Mapping> {
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

pub(crate) fn kafka_columns(configured: Configured) -> KafkaColumns {
    KafkaColumns {
        key: configured.key,
        headers: configured.headers,
        tombstone: configured.tombstone,
        topic: configured.topic,
        timestamp_type: configured.timestamp_type,
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
