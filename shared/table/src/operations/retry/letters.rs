use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use frazil_core::{Error, ErrorKind, Result, TableName};

use super::Place;
use crate::dead_letters;
use crate::layout::LogName;
use crate::metadata::commit_time;
use crate::outbox::{new_snapshot_id, unknown_unless_conflict};
use crate::rows::{FileSettings, read_data_file, write_data_file};
use crate::snapshot::{
    FileChange, FilesBySpec, WrittenManifests, live_files, name_snapshot, spec_of, stage_change,
};
use crate::warehouse::{LoadedTable, Warehouse};

/// How often the swap is tried before the next retry takes over.
const MAX_ATTEMPTS: u32 = 16;

/// Takes dead letters out of their table, in one snapshot that replaces the files that hold them. Those that are not
/// there are passed over, so that doing it again changes nothing. Says how many went.
pub(super) async fn remove_letters(
    warehouse: &Warehouse,
    name: &TableName,
    places: &BTreeSet<Place>,
) -> Result<u64> {
    // Of an attempt whose answer was lost, the next one finds nothing left.
    let mut tried = 0;
    for attempt in 0..MAX_ATTEMPTS {
        if attempt > 0 {
            let (base, limit) = (Duration::from_millis(50), Duration::from_secs(5));
            warehouse.environment.backoff(attempt, base, limit).await;
        }
        let Some(table) = warehouse.load(name).await? else {
            return Ok(tried);
        };
        let replacement = Replacement::of(warehouse, &table, places).await?;
        if replacement.letters == 0 {
            return Ok(tried);
        }
        tried = replacement.letters;
        match replacement.swap(warehouse, &table).await {
            Ok(()) => return Ok(tried),
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::CommitUnknown) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(
        ErrorKind::Conflict,
        "take dead letters away",
        format!("others were first {MAX_ATTEMPTS} times"),
    )
    .with_context("table", name)
    .with_hint("the rows are in the table; try again to finish"))
}

/// Files without some letters, for those that hold them.
struct Replacement {
    removed: HashSet<String>,
    added: FilesBySpec,
    letters: u64,
}

impl Replacement {
    async fn of(warehouse: &Warehouse, table: &LoadedTable, places: &BTreeSet<Place>) -> Result<Self> {
        let mut replacement = Self {
            removed: HashSet::new(),
            added: FilesBySpec::new(),
            letters: 0,
        };
        let schema = dead_letters::schema();
        for file in live_files(warehouse, table, |_| true).await? {
            let batches = read_data_file(
                warehouse.data_file(file.file_path(), "restore the file").await?,
                None,
            )?;
            let mut kept = Vec::with_capacity(batches.len());
            let mut gone = 0;
            for batch in batches {
                let letters = dead_letters::from_batch(&batch)?;
                let mask: arrow_array::BooleanArray = letters
                    .into_iter()
                    .map(|(source, topic, epoch, letter)| {
                        let place = Place {
                            log: LogName { source, topic, epoch },
                            partition: letter.partition,
                            offset: letter.offset,
                        };
                        Some(!places.contains(&place))
                    })
                    .collect();
                gone += (mask.len() - mask.true_count()) as u64;
                let rest = arrow_select::filter::filter_record_batch(&batch, &mask).map_err(|e| {
                    Error::new(ErrorKind::Internal, "take dead letters away", e.to_string()).with_source(e)
                })?;
                if rest.num_rows() > 0 {
                    kept.push(rest);
                }
            }
            if gone == 0 {
                continue;
            }
            replacement.letters += gone;
            replacement.removed.insert(file.file_path().to_owned());
            if kept.is_empty() {
                continue;
            }
            let spec_id = table.metadata.default_partition_spec_id();
            let spec = spec_of(&table.metadata, spec_id)?;
            let settings = FileSettings::default();
            let encoded = write_data_file(&kept, &schema, &spec, file.partition(), &settings)?;
            let id = warehouse.environment.new_uuid();
            let location = format!("{}/data/{id}-00000.parquet", table.metadata.location());
            let data_file = encoded.data_file(&location)?;
            warehouse.storage.put(&location, encoded.bytes, None).await?;
            replacement.added.entry(spec_id).or_default().push(data_file);
        }
        Ok(replacement)
    }

    async fn swap(&self, warehouse: &Warehouse, table: &LoadedTable) -> Result<()> {
        let now = commit_time(warehouse.environment.now(), &table.metadata);
        let snapshot_id = new_snapshot_id(warehouse);
        let change = FileChange {
            added: &self.added,
            removed: &self.removed,
        };
        let mut written = WrittenManifests::default();
        let summary = Default::default();
        let staged = stage_change(warehouse, table, snapshot_id, change, summary, now, &mut written).await?;
        let (location, metadata) = name_snapshot(warehouse, table, staged, Default::default(), now).await?;
        warehouse
            .catalog
            .swap(&table.name, &table.pointer, &location, &metadata)
            .await
            .map_err(unknown_unless_conflict)
    }
}
