//! From decoded records to staged ones: every table of the topic is made ready before anything is staged, and each
//! gets a descriptor that claims all of the event.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow_array::RecordBatch;
use frazil_codec::{Prepared, TargetTable};
use frazil_config::{OnError, Tables, TopicSettings};
use frazil_core::{Epoch, Error, ErrorKind, Offset, Partition, Result, TableName, TopicPartition};
use frazil_kafka::Record;
use frazil_schema::{Column, FieldMap, RefusedChange};
use frazil_table::dead_letters::DeadLetter;
use frazil_table::plan::SuspendCause;
use frazil_table::properties;
use frazil_table::{
    Cause, Claim, Ensured, FileSettings, Ledger, LoadedTable, StageRequest, Staged, TopicState,
    WantedColumns, ensure_table, stage,
};
use iceberg::spec::Schema;

use crate::Ingest;
use crate::claims::{claims, dead_letter};
use crate::design::{check_frozen, check_owner, kafka_columns, table_design};
use crate::handler::{Delivery, Stop, TopicEvent};
use crate::parts::PreparedRoute;
use crate::report::{Failure, TopicOutcome, TopicReport};

/// A table that has a place for what goes into it.
pub(crate) struct Ready {
    table: LoadedTable,
    ledger: Ledger,
    changed: bool,
}

impl Ingest {
    /// Makes a table ready for records. `Suspended` when a person must decide first.
    pub(crate) async fn ready(
        &self,
        settings: &TopicSettings,
        state: &TopicState,
        name: &TableName,
        route: Option<&PreparedRoute<'_>>,
    ) -> Result<Ready> {
        let known = state.tables.get(name).copied();
        // Each table of a topic is frozen under its own name.
        let settings = TopicSettings {
            table: name.clone(),
            ..settings.clone()
        };
        let mut design = table_design(&settings)?;
        if let Some(name) = route.and_then(|route| route.record_name) {
            let property = (properties::RECORD_NAME.to_owned(), name.to_owned());
            design.properties.extend([property]);
        }
        let wanted = Wanted {
            route,
            settings: &settings,
        };
        let interval = self.options.schema_interval;
        let (table, ledger, changed) =
            match ensure_table(&self.warehouse, name, &wanted, &design, known, interval).await? {
                Ensured::Ready {
                    table,
                    ledger,
                    changed,
                } => (table, *ledger, changed),
                Ensured::Refused(changes) => {
                    return Err(RefusedChange::all_to_error(&changes));
                }
            };
        if known.is_none() {
            let uuid = table.metadata.uuid();
            let add = |state: &mut TopicState| state.tables.insert(name.clone(), uuid) != Some(uuid);
            self.warehouse
                .change_topic_state(&settings.source, &settings.topic, add)
                .await?;
        }
        Ok(Ready {
            table,
            ledger,
            changed,
        })
    }

    /// Stages what was decoded, for every table of the topic. When it answers `Ok`, all of it is safe.
    pub(crate) async fn stage(
        &self,
        topic: &TopicEvent<'_>,
        records: &[(Partition, &Record<'_>)],
        routes: &[PreparedRoute<'_>],
        unreadable: &BTreeMap<usize, &Error>,
        stops: &BTreeMap<Partition, Stop>,
    ) -> Result<TopicReport> {
        let settings = &topic.settings;
        let mut ready = Vec::new();
        for name in tables(topic, routes, !unreadable.is_empty()) {
            let route = routes.iter().find(|route| route.table == name);
            match self.ready(settings, &topic.state, &name, route).await {
                Ok(table) => ready.push((table, route)),
                // What no other delivery changes would stop the partition for ever: a person must decide.
                Err(error) if matches!(error.kind(), ErrorKind::Suspended | ErrorKind::Invalid) => {
                    let cause = match (error.kind(), error.code()) {
                        (_, Some("history")) => Cause::Commit(SuspendCause::History),
                        (_, Some("settings.frozen" | "schema.change_refused" | "settings.other_topic"))
                        | (ErrorKind::Invalid, _) => Cause::Schema,
                        _ => Cause::TableGone,
                    };
                    let message = format!("table {name}: {error}");
                    return self.suspend_and_park(topic, cause, &message).await;
                }
                Err(error) => return Err(error),
            }
        }

        let offsets: BTreeMap<Partition, Offset> =
            stops.iter().map(|(of, stop)| (*of, stop.offset)).collect();
        let mut letters = Vec::new();
        let mut per_partition: BTreeMap<Partition, u64> = BTreeMap::new();
        for (place, error) in unreadable {
            let (partition, record) = records[*place];
            if offsets.get(&partition).is_none_or(|stop| record.offset < *stop) {
                *per_partition.entry(partition).or_default() += 1;
                if settings.on_error == OnError::DeadLetter {
                    letters.push(dead_letter(partition, record, error));
                }
            }
        }
        let nothing = BTreeMap::new();
        let (dead, skipped) = match settings.on_error {
            OnError::DeadLetter => (&per_partition, &nothing),
            OnError::Skip | OnError::Suspend => (&nothing, &per_partition),
        };
        let schema_changed = ready.iter().any(|(table, _)| table.changed);
        let mut report = topic.report(TopicOutcome::Staged { schema_changed });
        report.skipped = skipped.values().sum();
        report.failures = stops
            .iter()
            .map(|(partition, stop)| Failure {
                topic_partition: TopicPartition {
                    topic: settings.topic.clone(),
                    partition: *partition,
                },
                offset: stop.offset,
                reason: stop.reason.clone(),
            })
            .collect();
        let claims = claims(&topic.batches, &offsets, dead, skipped)?;
        if claims.is_empty() {
            return Ok(report);
        }
        for (table, route) in &ready {
            // What cannot be read has one home.
            let is_home = table.table.name == settings.table;
            let mut claims = claims.clone();
            if !is_home {
                for claim in &mut claims {
                    (claim.dead_letters, claim.skipped) = (0, 0);
                }
            }
            let letters = if is_home {
                std::mem::take(&mut letters)
            } else {
                Vec::new()
            };
            let staged = self.stage_table(topic, table, *route, claims, letters).await?;
            let decoded = route.map_or(&[][..], |route| route.places).iter();
            let decoded = decoded.filter(|place| !unreadable.contains_key(place));
            let of_home = unreadable.keys().filter(|_| is_home);
            let records = decoded.chain(of_home).map(|place| records[*place].1);
            report.add(table.table.name.clone(), records, &staged);
        }
        Ok(report)
    }

    async fn stage_table(
        &self,
        topic: &TopicEvent<'_>,
        ready: &Ready,
        route: Option<&PreparedRoute<'_>>,
        claims: Vec<Claim>,
        dead_letters: Vec<DeadLetter>,
    ) -> Result<Staged> {
        let settings = &topic.settings;
        let rows = match route {
            Some(route) if route.prepared.rows().len() > 0 => {
                Some(ready.rows(settings, topic.state.epoch, &route.prepared)?)
            }
            _ => None,
        };
        let request = StageRequest {
            table: &ready.table,
            ledger: &ready.ledger,
            log: topic.log(),
            claims,
            rows,
            dead_letters,
            backfill: settings.backfill || self.options.backfill,
            parked_as: match topic.delivery {
                Delivery::Live => None,
                Delivery::Parked(parked) => Some(parked.id),
            },
            files: FileSettings::default(),
        };
        stage(&self.warehouse, request).await
    }
}

impl Ready {
    /// Decoded records as rows of the table.
    pub(crate) fn rows(
        &self,
        settings: &TopicSettings,
        epoch: Epoch,
        prepared: &Prepared<'_>,
    ) -> Result<RecordBatch> {
        prepared.to_batch(&TargetTable {
            schema: self.table.metadata.current_schema(),
            fields: &self.ledger.fields,
            kafka: &kafka_columns(settings),
            topic: &settings.topic,
            epoch,
        })
    }
}

/// The tables that get a descriptor of this event: where each type has its own, all that the topic feeds, since a table
/// without one would have a hole there. The topic's own exists only once something goes into it.
fn tables(topic: &TopicEvent<'_>, routes: &[PreparedRoute<'_>], has_unreadable: bool) -> BTreeSet<TableName> {
    let home = &topic.settings.table;
    if topic.settings.tables != Tables::ByRecordName {
        return BTreeSet::from([home.clone()]);
    }
    let mut tables: BTreeSet<TableName> = topic.state.tables.keys().cloned().collect();
    tables.extend(routes.iter().map(|route| route.table.clone()));
    if has_unreadable || tables.is_empty() {
        tables.insert(home.clone());
    }
    tables
}

/// The columns that decoded records need, and the settings that they were decoded with.
struct Wanted<'p, 'a> {
    route: Option<&'p PreparedRoute<'a>>,
    settings: &'p TopicSettings,
}

impl WantedColumns for Wanted<'_, '_> {
    fn check_settings(&self, properties: &HashMap<String, String>, fields: &FieldMap) -> Result<()> {
        let record_name = self.route.and_then(|route| route.record_name);
        check_owner(self.settings, record_name, properties)?;
        check_frozen(self.settings, properties, fields)
    }

    fn columns(&self, table: Option<(&Schema, &FieldMap)>) -> Vec<Cow<'_, [Column]>> {
        match self.route {
            Some(route) => route.prepared.columns(table),
            None => Vec::new(),
        }
    }
}
