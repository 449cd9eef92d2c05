//! Which table a record goes into: by its bytes and the frozen settings alone, so that it goes there again when it is
//! delivered again.

use std::collections::{BTreeMap, BTreeSet};

use frazil_codec::{EncodedRecord, Payload};
use frazil_config::{Tables, TopicSettings};
use frazil_core::{Error, ErrorKind, Result, TableName, safe_name};
use frazil_schema::SourceSchema;

use crate::decode::Readable;

/// The records of one event that go into one table.
pub(crate) struct Route<'a> {
    pub(crate) table: TableName,
    /// The type that the table is for, where each has its own.
    pub(crate) record_name: Option<String>,
    /// Values, as rows of that table.
    pub(crate) encoded: Vec<EncodedRecord<'a>>,
    /// The same records with their keys as payload, if keys become columns.
    pub(crate) keys: Option<Vec<EncodedRecord<'a>>>,
    /// For each record, its place among all of the topic's.
    pub(crate) places: Vec<usize>,
}

/// The records of an event that can be decoded, by table, and those that cannot: place and reason.
pub(crate) struct Routed<'a> {
    pub(crate) routes: Vec<Route<'a>>,
    pub(crate) poison: BTreeMap<usize, &'a Error>,
}

/// Sorts values, and keys if they become columns, by table. A record whose key cannot be read is poison as well.
///
/// # Errors
/// `Invalid` if a record's type makes no name of a table.
pub(crate) fn route<'a>(
    settings: &TopicSettings,
    values: Readable<'a>,
    keys: Option<Readable<'a>>,
) -> Result<Routed<'a>> {
    let mut poison: BTreeMap<usize, &Error> = values.poison.into_iter().collect();
    let mut keys_at: BTreeMap<usize, EncodedRecord<'a>> = BTreeMap::new();
    let has_keys = keys.is_some();
    if let Some(keys) = keys {
        keys_at.extend(keys.places.into_iter().zip(keys.encoded));
        for (place, error) in keys.poison {
            poison.entry(place).or_insert(error);
        }
    }
    let mut routes: Vec<Route<'a>> = Vec::new();
    let mut tables: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    for (place, record) in values.places.into_iter().zip(values.encoded) {
        let key = keys_at.remove(&place);
        if has_keys && key.is_none() {
            continue; // its key is poison
        }
        let name = match settings.tables {
            Tables::One | Tables::Merged => None,
            Tables::ByRecordName => schema_of(&record).and_then(SourceSchema::record_name),
        };
        let index = match tables.get(&name) {
            Some(index) => *index,
            None => {
                let table = table_of(settings, name)?;
                let other = tables.iter().find(|(_, index)| routes[**index].table == table);
                if let Some((other, _)) = other {
                    return Err(same_table(&table, [name, *other]));
                }
                routes.push(Route {
                    table,
                    record_name: name.map(str::to_owned),
                    encoded: Vec::new(),
                    keys: has_keys.then(Vec::new),
                    places: Vec::new(),
                });
                tables.insert(name, routes.len() - 1);
                routes.len() - 1
            }
        };
        let route = &mut routes[index];
        route.encoded.push(record);
        route.places.push(place);
        if let (Some(keys), Some(key)) = (&mut route.keys, key) {
            keys.push(key);
        }
    }
    Ok(Routed { routes, poison })
}

/// The full names of the types of an event's records. A JSON Schema's title is not one: it may change with the version.
pub(crate) fn record_names(routed: &Routed<'_>) -> BTreeSet<String> {
    let records = routed.routes.iter().flat_map(|route| &route.encoded);
    let mut names = BTreeSet::new();
    let mut last: Option<&SourceSchema> = None;
    for schema in records.filter_map(schema_of) {
        if last.is_some_and(|last| std::ptr::eq(last, schema)) {
            continue;
        }
        last = Some(schema);
        if !matches!(schema, SourceSchema::Json(_))
            && let Some(name) = schema.record_name()
        {
            names.insert(name.to_owned());
        }
    }
    names
}

fn schema_of<'a>(record: &EncodedRecord<'a>) -> Option<&'a SourceSchema> {
    match record.payload {
        Payload::Encoded { schema, .. } => Some(schema),
        Payload::Tombstone | Payload::Json(_) | Payload::Raw(_) => None,
    }
}

/// Two types whose names differ only in what a table's name cannot hold.
fn same_table(table: &TableName, names: [Option<&str>; 2]) -> Error {
    let [one, other] = names.map(|name| name.unwrap_or("records without a type"));
    Error::new(
        ErrorKind::Invalid,
        "find the table of a type",
        format!("`{one}` and `{other}` would have the same table"),
    )
    .with_context("table", table)
    .with_hint("rename one of the types, or set tables = \"merged\"")
}

/// The table of a type: the topic's, with the type's full name behind it. What has no type goes to the topic's own.
fn table_of(settings: &TopicSettings, record_name: Option<&str>) -> Result<TableName> {
    let Some(name) = record_name else {
        return Ok(settings.table.clone());
    };
    let name = safe_name(&name.to_lowercase());
    let home = &settings.table;
    let table =
        TableName::new(home.namespace().as_str(), &format!("{}_{name}", home.table())).and_then(|table| {
            table.dead_letters()?; // its name is longer, and must be one too
            Ok(table)
        });
    let table = table.map_err(|error| error.with_context("record", name))?;
    if table == home.dead_letters()? {
        return Err(same_table(&table, [record_name, Some("dead letters")]));
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use frazil_config::Config;
    use frazil_core::{Offset, Partition, TopicName};
    use frazil_schema::AvroSchema;

    use super::*;

    fn settings(keys: &str) -> TopicSettings {
        let config = Config::parse(&format!("[topics.shop]\n{keys}"), Path::new("f")).unwrap();
        config
            .topic(config.sources()[0].name(), &TopicName::new("shop"))
            .unwrap()
    }

    fn avro(name: &str) -> SourceSchema {
        let text =
            format!(r#"{{"type": "record", "name": "{name}", "namespace": "com.Shop", "fields": []}}"#);
        SourceSchema::Avro(AvroSchema::parse(&text).unwrap())
    }

    fn readable<'a>(payloads: &[Payload<'a>]) -> Readable<'a> {
        let record = |(offset, payload): (usize, &Payload<'a>)| EncodedRecord {
            partition: Partition(0),
            offset: Offset(offset as i64),
            timestamp_ms: None,
            timestamp_type: None,
            key: None,
            headers: Vec::new(),
            payload: *payload,
        };
        Readable {
            encoded: payloads.iter().enumerate().map(record).collect(),
            places: (0..payloads.len()).collect(),
            poison: Vec::new(),
        }
    }

    fn shown(routed: &Routed<'_>) -> Vec<(String, Vec<usize>)> {
        let show = |route: &Route<'_>| (route.table.to_string(), route.places.clone());
        routed.routes.iter().map(show).collect()
    }

    #[test]
    fn each_type_goes_to_its_table_and_what_has_none_to_the_topics_own() {
        let (paid, sent) = (avro("Paid"), avro("Sent"));
        let of = |schema| Payload::Encoded {
            schema,
            body: &[][..],
        };
        let payloads = [of(&paid), of(&sent), Payload::Tombstone, of(&paid)];
        let routed = route(
            &settings("tables = \"by_record_name\""),
            readable(&payloads),
            None,
        )
        .unwrap();
        let expected = [
            ("kafka.shop_com_shop_paid".to_owned(), vec![0, 3]),
            ("kafka.shop_com_shop_sent".to_owned(), vec![1]),
            ("kafka.shop".to_owned(), vec![2]),
        ];
        assert_eq!(shown(&routed), expected);
        for keys in ["", "tables = \"merged\""] {
            let routed = route(&settings(keys), readable(&payloads), None).unwrap();
            assert_eq!(shown(&routed), [("kafka.shop".to_owned(), vec![0, 1, 2, 3])]);
            let names: Vec<String> = record_names(&routed).into_iter().collect();
            assert_eq!(names, ["com.Shop.Paid", "com.Shop.Sent"]);
        }
    }

    #[test]
    fn types_that_would_share_a_table_are_refused() {
        let named = |name: &str| {
            let text = format!(r#"{{"type": "record", "name": "{name}", "fields": []}}"#);
            SourceSchema::Avro(AvroSchema::parse(&text).unwrap())
        };
        let (one, other, letters) = (
            named("shop.v1.Order"),
            named("shop_v1.Order"),
            named("Dead_Letters"),
        );
        let by_name = settings("tables = \"by_record_name\"");
        let refusal = |schemas: &[&SourceSchema]| {
            let payloads: Vec<Payload<'_>> = schemas
                .iter()
                .map(|schema| Payload::Encoded { schema, body: &[] })
                .collect();
            let error = route(&by_name, readable(&payloads), None).err().unwrap();
            (error.kind(), error.message().to_owned())
        };
        assert_eq!(
            refusal(&[&one, &other]),
            (
                ErrorKind::Invalid,
                "`shop_v1.Order` and `shop.v1.Order` would have the same table".to_owned()
            )
        );
        assert_eq!(
            refusal(&[&letters]),
            (
                ErrorKind::Invalid,
                "`Dead_Letters` and `dead letters` would have the same table".to_owned()
            )
        );
    }

    #[test]
    fn a_record_without_a_readable_key_is_in_no_table() {
        let error = Error::new(frazil_core::ErrorKind::Poison, "read the key", "it is short");
        let mut keys = readable(&[Payload::Raw(b"a"), Payload::Raw(b"b")]);
        keys.encoded.pop();
        keys.places.pop();
        keys.poison.push((1, &error));
        let values = readable(&[Payload::Raw(b"x"), Payload::Raw(b"y")]);
        let routed = route(&settings("format = \"raw\""), values, Some(keys)).unwrap();
        assert_eq!(shown(&routed), [("kafka.shop".to_owned(), vec![0])]);
        assert_eq!(routed.routes[0].keys.as_ref().map(Vec::len), Some(1));
        assert_eq!(routed.poison.keys().collect::<Vec<_>>(), [&1]);
    }
}
