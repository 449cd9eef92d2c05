use std::collections::{BTreeMap, HashMap, HashSet};

use frazil_core::{Error, ErrorKind, Result, TimestampMs};
use futures::stream::{self, StreamExt, TryStreamExt};
use iceberg::io::FileIO;
use iceberg::spec::{
    DataContentType, DataFile, MAIN_BRANCH, ManifestContentType, ManifestEntry, ManifestFile, ManifestList,
    ManifestListWriter, ManifestStatus, ManifestWriter, ManifestWriterBuilder, Operation, PartitionSpecRef,
    SchemaRef, Snapshot, SnapshotRef, SnapshotSummaryCollector, Summary, TableMetadata,
};

use crate::file_io::MAX_WHOLE_FILE_BYTES;
use crate::metadata::{rebuild, write_metadata};
use crate::warehouse::{LoadedTable, Warehouse, iceberg_error};

/// Manifests below this size are merged as they pile up; larger ones are left alone.
pub const MANIFEST_TARGET_BYTES: i64 = 8 * 1024 * 1024;

/// So many small manifests of one partition spec are merged into one. A commit so reads at most this many small
/// manifests, and a table of F files has about F · 100 B / 8 MB manifests plus these.
pub const MANIFESTS_TO_MERGE: usize = 32;

/// How many manifests are read at once.
const READS_AT_ONCE: usize = 16;

/// A snapshot whose files are written, ready to be named by a metadata file.
#[derive(Debug, Clone)]
pub(crate) struct StagedSnapshot {
    pub(crate) snapshot: Snapshot,
}

/// Files to append, by the partition spec that they were written with.
pub(crate) type FilesBySpec = BTreeMap<i32, Vec<DataFile>>;

/// Manifests that an attempt has written and that the next attempt with an equal plan can use again.
#[derive(Debug, Default)]
pub(crate) struct WrittenManifests {
    added: Option<(i64, Vec<ManifestFile>)>,
}

/// What a snapshot changes of the one before it.
pub(crate) struct FileChange<'a> {
    pub(crate) added: &'a FilesBySpec,
    /// Paths of data files that are there and go.
    pub(crate) removed: &'a HashSet<String>,
}

/// Writes manifests and manifest list of a snapshot that appends `files` to the table's current snapshot.
pub(crate) async fn stage_append(
    warehouse: &Warehouse,
    table: &LoadedTable,
    snapshot_id: i64,
    files: &FilesBySpec,
    summary: HashMap<String, String>,
    now: TimestampMs,
    written: &mut WrittenManifests,
) -> Result<StagedSnapshot> {
    let change = FileChange {
        added: files,
        removed: &HashSet::new(),
    };
    stage_change(warehouse, table, snapshot_id, change, summary, now, written).await
}

/// Writes manifests and manifest list of a snapshot that adds and removes data files. Where files are removed, every
/// manifest is read. A file to be removed that is not there is a `Conflict`.
pub(crate) async fn stage_change(
    warehouse: &Warehouse,
    table: &LoadedTable,
    snapshot_id: i64,
    change: FileChange<'_>,
    summary: HashMap<String, String>,
    now: TimestampMs,
    written: &mut WrittenManifests,
) -> Result<StagedSnapshot> {
    let files = change.added;
    let metadata = &table.metadata;
    let file_io = warehouse.file_io();
    let parent = metadata.current_snapshot();
    let sequence_number = metadata.next_sequence_number();
    let mut manifests = match &written.added {
        Some((id, added)) if *id == snapshot_id => added.clone(),
        _ => {
            let added = write_added(warehouse, &file_io, metadata, snapshot_id, files).await?;
            written.added = Some((snapshot_id, added.clone()));
            added
        }
    };
    let existing = match parent {
        Some(parent) => read_manifest_list(warehouse, metadata, parent).await?,
        None => Vec::new(),
    };
    let totals_before = Totals::of(parent, &existing);
    let (existing, removed) = if change.removed.is_empty() {
        (existing, FilesBySpec::new())
    } else {
        without(
            warehouse,
            &file_io,
            metadata,
            snapshot_id,
            existing,
            change.removed,
        )
        .await?
    };
    manifests.extend(merge_small(warehouse, &file_io, metadata, snapshot_id, existing).await?);

    let id = warehouse.environment.new_uuid();
    let location = format!("{}/metadata/snap-{snapshot_id}-0-{id}.avro", metadata.location());
    let output = file_io
        .new_output(&location)
        .map_err(|e| iceberg_error("write a manifest list", e))?;
    let writer = output
        .writer()
        .await
        .map_err(|e| iceberg_error("write a manifest list", e))?;
    let parent_id = parent.map(|parent| parent.snapshot_id());
    let mut list = ManifestListWriter::v2(writer, snapshot_id, parent_id, sequence_number);
    list.add_manifests(manifests.into_iter())
        .map_err(|e| iceberg_error("write a manifest list", e))?;
    list.close()
        .await
        .map_err(|e| iceberg_error("write a manifest list", e))?;

    let summary = summarize(metadata, files, &removed, totals_before, summary)?;
    let snapshot = Snapshot::builder()
        .with_snapshot_id(snapshot_id)
        .with_parent_snapshot_id(parent_id)
        .with_sequence_number(sequence_number)
        .with_timestamp_ms(now.0)
        .with_manifest_list(location)
        .with_summary(summary)
        .with_schema_id(metadata.current_schema_id())
        .build();
    Ok(StagedSnapshot { snapshot })
}

/// Rewrites the manifests that hold files to be removed: those are marked as deleted, the others stay as they are.
async fn without(
    warehouse: &Warehouse,
    file_io: &FileIO,
    metadata: &TableMetadata,
    snapshot_id: i64,
    existing: Vec<ManifestFile>,
    removed: &HashSet<String>,
) -> Result<(Vec<ManifestFile>, FilesBySpec)> {
    let mut kept = Vec::with_capacity(existing.len());
    let mut found = FilesBySpec::new();
    for manifest in existing {
        if manifest.content != ManifestContentType::Data {
            kept.push(manifest);
            continue;
        }
        let loaded = manifest.load_manifest(file_io).await;
        let loaded = loaded.map_err(|e| iceberg_error("read a manifest", e))?;
        let is_removed = |path: &str| removed.contains(path);
        let alive = || loaded.entries().iter().filter(|entry| entry.is_alive());
        if !alive().any(|entry| is_removed(entry.file_path())) {
            kept.push(manifest);
            continue;
        }
        let spec = spec_of(metadata, manifest.partition_spec_id)?;
        let schema = metadata.current_schema().clone();
        let mut writer = manifest_writer(warehouse, file_io, metadata, snapshot_id, schema, &spec)?;
        for entry in alive() {
            let (added_by, sequence_number) = lineage(entry)?;
            let (file, file_sequence_number) = (entry.data_file().clone(), entry.file_sequence_number);
            let rewritten = if is_removed(entry.file_path()) {
                let gone = found.entry(manifest.partition_spec_id).or_default();
                gone.push(file.clone());
                writer.add_delete_file(file, sequence_number, file_sequence_number)
            } else {
                writer.add_existing_file(file, added_by, sequence_number, file_sequence_number)
            };
            rewritten.map_err(|e| iceberg_error("rewrite a manifest", e))?;
        }
        let rewritten = writer.write_manifest_file().await;
        kept.push(rewritten.map_err(|e| iceberg_error("rewrite a manifest", e))?);
    }
    if found.values().map(Vec::len).sum::<usize>() != removed.len() {
        return Err(Error::new(
            ErrorKind::Conflict,
            "remove data files",
            "another writer has removed some of them",
        ));
    }
    Ok((kept, found))
}

/// Which snapshot added an entry's file, and its sequence number.
fn lineage(entry: &ManifestEntry) -> Result<(i64, i64)> {
    entry.snapshot_id().zip(entry.sequence_number()).ok_or_else(|| {
        Error::new(
            ErrorKind::Internal,
            "rewrite a manifest",
            "an entry has no snapshot id or sequence number",
        )
        .with_context("file", entry.file_path())
    })
}

/// The data files of a table's current snapshot that are wanted. O(manifests): for what is rare.
pub(crate) async fn live_files(
    warehouse: &Warehouse,
    table: &LoadedTable,
    wanted: impl Fn(&DataFile) -> bool,
) -> Result<Vec<DataFile>> {
    let file_io = warehouse.file_io();
    let mut found = Vec::new();
    let Some(snapshot) = table.metadata.current_snapshot() else {
        return Ok(found);
    };
    for manifest in read_manifest_list(warehouse, &table.metadata, snapshot).await? {
        if manifest.content != ManifestContentType::Data {
            continue;
        }
        let loaded = manifest.load_manifest(&file_io).await;
        let loaded = loaded.map_err(|e| iceberg_error("read a manifest", e))?;
        let alive = loaded.entries().iter().filter(|entry| entry.is_alive());
        let data = alive.filter(|entry| entry.content_type() == DataContentType::Data);
        found.extend(
            data.map(|entry| entry.data_file())
                .filter(|file| wanted(file))
                .cloned(),
        );
    }
    Ok(found)
}

/// Paths of all data files in a table's current snapshot.
pub(crate) async fn held_files(warehouse: &Warehouse, table: &LoadedTable) -> Result<HashSet<String>> {
    let files = live_files(warehouse, table, |_| true).await?;
    Ok(files.iter().map(|file| file.file_path().to_owned()).collect())
}

/// Writes the metadata in which a staged snapshot is the current one, with these properties. What is beyond the default
/// retention leaves with it.
pub(crate) async fn name_snapshot(
    warehouse: &Warehouse,
    table: &LoadedTable,
    staged: StagedSnapshot,
    properties: HashMap<String, String>,
    now: TimestampMs,
) -> Result<(String, TableMetadata)> {
    let expired = SnapshotRetention::default().expired(&table.metadata, now);
    let builder = rebuild(table)
        .set_properties(properties)
        .and_then(|builder| builder.set_branch_snapshot(staged.snapshot, MAIN_BRANCH))
        .map_err(|error| iceberg_error("build the table's metadata", error))?
        .remove_snapshots(&expired);
    write_metadata(warehouse, builder, Some(table), now).await
}

/// The manifests of a snapshot.
pub(crate) async fn read_manifest_list(
    warehouse: &Warehouse,
    metadata: &TableMetadata,
    snapshot: &Snapshot,
) -> Result<Vec<ManifestFile>> {
    let location = snapshot.manifest_list();
    let bytes = warehouse
        .storage
        .get(location, MAX_WHOLE_FILE_BYTES)
        .await?
        .ok_or_else(|| {
            Error::new(ErrorKind::Internal, "read a manifest list", "the file is missing")
                .with_context("manifest_list", location)
                .with_context("snapshot_id", snapshot.snapshot_id())
                .with_hint("restore the file, or roll the table back to a snapshot that is whole")
        })?;
    let list = ManifestList::parse_with_version(&bytes, metadata.format_version())
        .map_err(|e| iceberg_error("read a manifest list", e).with_context("manifest_list", location))?;
    Ok(list.consume_entries().into_iter().collect())
}

async fn write_added(
    warehouse: &Warehouse,
    file_io: &FileIO,
    metadata: &TableMetadata,
    snapshot_id: i64,
    files: &FilesBySpec,
) -> Result<Vec<ManifestFile>> {
    let mut manifests = Vec::with_capacity(files.len());
    for (spec_id, files) in files {
        let spec = spec_of(metadata, *spec_id)?;
        let schema = metadata.current_schema().clone();
        let mut writer = manifest_writer(warehouse, file_io, metadata, snapshot_id, schema, &spec)?;
        for file in files {
            // A negative number: assigned when the manifest list is read, so that a retry can use the manifest again.
            writer
                .add_file(file.clone(), -1)
                .map_err(|e| iceberg_error("write a manifest", e))?;
        }
        manifests.push(
            writer
                .write_manifest_file()
                .await
                .map_err(|e| iceberg_error("write a manifest", e))?,
        );
    }
    Ok(manifests)
}

/// Rewrites small manifests of one spec as one, once there are enough. Entries keep their snapshot ids and both
/// sequence numbers; deleted entries go. Delete manifests and large ones are left alone.
async fn merge_small(
    warehouse: &Warehouse,
    file_io: &FileIO,
    metadata: &TableMetadata,
    snapshot_id: i64,
    existing: Vec<ManifestFile>,
) -> Result<Vec<ManifestFile>> {
    let mut kept = Vec::with_capacity(existing.len());
    let mut small: BTreeMap<i32, Vec<ManifestFile>> = BTreeMap::new();
    for manifest in existing {
        // A manifest of this snapshot says what it removes.
        let is_small = manifest.added_snapshot_id != snapshot_id
            && manifest.content == ManifestContentType::Data
            && manifest.manifest_length < MANIFEST_TARGET_BYTES / 2
            && manifest.key_metadata.is_none();
        if is_small {
            small
                .entry(manifest.partition_spec_id)
                .or_default()
                .push(manifest);
        } else {
            kept.push(manifest);
        }
    }
    for (spec_id, group) in small {
        if group.len() < MANIFESTS_TO_MERGE {
            kept.extend(group);
            continue;
        }
        let spec = spec_of(metadata, spec_id)?;
        let loaded: Vec<_> = stream::iter(group)
            .map(|manifest| async move { manifest.load_manifest(file_io).await })
            .buffered(READS_AT_ONCE)
            .try_collect()
            .await
            .map_err(|e| iceberg_error("read a manifest", e))?;
        let schema = metadata.current_schema().clone();
        let mut writer = manifest_writer(warehouse, file_io, metadata, snapshot_id, schema, &spec)?;
        for entry in loaded.iter().flat_map(|manifest| manifest.entries()) {
            if entry.status() == ManifestStatus::Deleted {
                continue;
            }
            let (added_by, sequence_number) = lineage(entry)?;
            let file = entry.data_file().clone();
            writer
                .add_existing_file(file, added_by, sequence_number, entry.file_sequence_number)
                .map_err(|e| iceberg_error("merge manifests", e))?;
        }
        kept.push(
            writer
                .write_manifest_file()
                .await
                .map_err(|e| iceberg_error("merge manifests", e))?,
        );
    }
    Ok(kept)
}

fn manifest_writer(
    warehouse: &Warehouse,
    file_io: &FileIO,
    metadata: &TableMetadata,
    snapshot_id: i64,
    schema: SchemaRef,
    spec: &PartitionSpecRef,
) -> Result<ManifestWriter> {
    let id = warehouse.environment.new_uuid();
    let location = format!("{}/metadata/{id}-m0.avro", metadata.location());
    let output = file_io
        .new_output(location)
        .map_err(|e| iceberg_error("write a manifest", e))?;
    let spec = spec.as_ref().clone();
    Ok(ManifestWriterBuilder::new(output, Some(snapshot_id), schema, spec).build_v2_data())
}

pub(crate) fn spec_of(metadata: &TableMetadata, spec_id: i32) -> Result<PartitionSpecRef> {
    metadata.partition_spec_by_id(spec_id).cloned().ok_or_else(|| {
        Error::new(
            ErrorKind::Internal,
            "find a partition spec",
            format!("the table has no partition spec {spec_id}"),
        )
    })
}

/// What a table holds in all, which engines read from the summary.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    data_files: u64,
    delete_files: u64,
    records: u64,
    files_size_bytes: u64,
    position_deletes: u64,
    equality_deletes: u64,
}

const TOTALS: [&str; 6] = [
    "total-data-files",
    "total-delete-files",
    "total-records",
    "total-files-size",
    "total-position-deletes",
    "total-equality-deletes",
];

impl Totals {
    /// From the parent's summary. Where a writer left a count of files or records out, from the manifests.
    fn of(parent: Option<&SnapshotRef>, manifests: &[ManifestFile]) -> Self {
        let Some(parent) = parent else {
            return Self::default();
        };
        let given = |name: &str| {
            parent
                .summary()
                .additional_properties
                .get(name)?
                .parse::<u64>()
                .ok()
        };
        let live = |content: ManifestContentType, count: fn(&ManifestFile) -> u64| {
            manifests
                .iter()
                .filter(|manifest| manifest.content == content)
                .map(count)
                .sum()
        };
        let files = |m: &ManifestFile| {
            u64::from(m.added_files_count.unwrap_or(0)) + u64::from(m.existing_files_count.unwrap_or(0))
        };
        let rows = |m: &ManifestFile| m.added_rows_count.unwrap_or(0) + m.existing_rows_count.unwrap_or(0);
        Self {
            data_files: given(TOTALS[0]).unwrap_or_else(|| live(ManifestContentType::Data, files)),
            delete_files: given(TOTALS[1]).unwrap_or_else(|| live(ManifestContentType::Deletes, files)),
            records: given(TOTALS[2]).unwrap_or_else(|| live(ManifestContentType::Data, rows)),
            files_size_bytes: given(TOTALS[3]).unwrap_or(0),
            position_deletes: given(TOTALS[4]).unwrap_or(0),
            equality_deletes: given(TOTALS[5]).unwrap_or(0),
        }
    }
}

fn summarize(
    metadata: &TableMetadata,
    files: &FilesBySpec,
    removed: &FilesBySpec,
    before: Totals,
    extra: HashMap<String, String>,
) -> Result<Summary> {
    let mut collector = SnapshotSummaryCollector::default();
    let mut after = before;
    for (spec_id, files) in files {
        let spec = spec_of(metadata, *spec_id)?;
        for file in files {
            collector.add_file(file, metadata.current_schema().clone(), spec.clone());
            after.data_files += 1;
            after.records += file.record_count();
            after.files_size_bytes += file.file_size_in_bytes();
        }
    }
    for (spec_id, files) in removed {
        let spec = spec_of(metadata, *spec_id)?;
        for file in files {
            collector.remove_file(file, metadata.current_schema().clone(), spec.clone());
            after.data_files = after.data_files.saturating_sub(1);
            after.records = after.records.saturating_sub(file.record_count());
            after.files_size_bytes = after.files_size_bytes.saturating_sub(file.file_size_in_bytes());
        }
    }
    let mut properties = collector.build();
    let totals = [
        after.data_files,
        after.delete_files,
        after.records,
        after.files_size_bytes,
        after.position_deletes,
        after.equality_deletes,
    ];
    properties.extend(
        TOTALS
            .iter()
            .zip(totals)
            .map(|(name, total)| ((*name).to_owned(), total.to_string())),
    );
    properties.extend(extra);
    Ok(Summary {
        operation: match (files.is_empty(), removed.is_empty()) {
            (_, true) => Operation::Append,
            (true, false) => Operation::Delete,
            (false, false) => Operation::Overwrite,
        },
        additional_properties: properties,
    })
}

/// Which snapshots a commit leaves in the metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotRetention {
    /// So many of main's newest snapshots stay, the new one included.
    pub keep: usize,
    /// None younger than this goes.
    pub min_age: std::time::Duration,
}

impl Default for SnapshotRetention {
    fn default() -> Self {
        Self {
            keep: 100,
            min_age: std::time::Duration::from_secs(3_600),
        }
    }
}

impl SnapshotRetention {
    /// The snapshots that go when one more is added. What a tag or another branch refers to stays and is not
    /// counted, and so does what such a branch descends from.
    pub(crate) fn expired(&self, metadata: &TableMetadata, now: TimestampMs) -> Vec<i64> {
        let ancestors = |from: Option<&SnapshotRef>| {
            let mut ids = Vec::new();
            let mut next = from.cloned();
            while let Some(snapshot) = next {
                ids.push(snapshot.snapshot_id());
                next = snapshot
                    .parent_snapshot_id()
                    .and_then(|id| metadata.snapshot_by_id(id))
                    .cloned();
            }
            ids
        };
        let mut spared: HashSet<i64> = HashSet::new();
        for (name, snapshot_id) in references(metadata) {
            if name != MAIN_BRANCH {
                spared.extend(ancestors(metadata.snapshot_by_id(snapshot_id)));
            }
        }
        let main = ancestors(metadata.snapshot_for_ref(MAIN_BRANCH));
        let counted = main.iter().filter(|id| !spared.contains(id));
        spared.extend(
            counted
                .take(self.keep.saturating_sub(1))
                .copied()
                .collect::<Vec<_>>(),
        );
        let old = |snapshot: &&SnapshotRef| now.since(TimestampMs(snapshot.timestamp_ms())) >= self.min_age;
        let mut expired: Vec<i64> = metadata
            .snapshots()
            .filter(|snapshot| !spared.contains(&snapshot.snapshot_id()))
            .filter(old)
            .map(|snapshot| snapshot.snapshot_id())
            .filter(|id| metadata.current_snapshot_id() != Some(*id))
            .collect();
        expired.sort_unstable();
        expired
    }
}

/// Names and snapshots of all references. (The crate shows them one by one only; the JSON form has them all.)
pub(crate) fn references(metadata: &TableMetadata) -> Vec<(String, i64)> {
    let Ok(value) = serde_json::to_value(metadata) else {
        return Vec::new();
    };
    let Some(refs) = value.get("refs").and_then(|refs| refs.as_object()) else {
        return Vec::new();
    };
    refs.iter()
        .filter_map(|(name, reference)| Some((name.clone(), reference.get("snapshot-id")?.as_i64()?)))
        .collect()
}
