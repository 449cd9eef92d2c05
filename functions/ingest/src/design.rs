use std::collections::HashMap;

use frazil_config::{KafkaColumns as Configured, TopicSettings, Transform};
use frazil_core::{Error, ErrorKind, Result};
use frazil_schema::KafkaColumns;
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
