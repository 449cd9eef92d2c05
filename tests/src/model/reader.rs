use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use bytes::Bytes;
use iceberg::spec::{
    FormatVersion, Manifest, ManifestContentType, ManifestList, Schema, Snapshot, TableMetadata,
};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{VisibleRow, fingerprint};

/// The names of the columns that say where a row came from. All columns whose names start as these do (`_kafka_`)
/// are Kafka's own; the rest are the value's.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // named after the columns
pub struct Columns {
    pub epoch: &'static str,
    pub partition: &'static str,
    pub offset: &'static str,
    pub timestamp: &'static str,
    pub key: &'static str,
}

impl Columns {
    /// Those of a topic's table.
    pub const TABLE: Self = Self {
        epoch: "_kafka_epoch",
        partition: "_kafka_partition",
        offset: "_kafka_offset",
        timestamp: "_kafka_timestamp",
        key: "_kafka_key",
    };

    /// Those of a dead-letter table.
    pub const DEAD_LETTERS: Self = Self {
        epoch: "epoch",
        partition: "partition",
        offset: "offset",
        timestamp: "timestamp",
        key: "key",
    };
}

/// Where the reader gets a file.
pub type Fetch = Box<dyn Fn(&str) -> Option<Bytes>>;

/// Reads a table from its metadata.json, as an engine does: columns by field id, names by the current schema. What it
/// has read once it keeps, since no file of a table ever changes; so reading after every commit costs what is new.
///
/// On its way it compares each manifest entry's row count and size with the file itself.
pub struct TableReader {
    columns: Columns,
    fetch: Fetch,
    lists: HashMap<String, Rc<Vec<String>>>,
    manifests: HashMap<String, Rc<Vec<Entry>>>,
    /// By file and schema: names may change.
    rows: HashMap<(String, i32), Rc<Vec<VisibleRow>>>,
}

#[derive(Debug)]
struct Entry {
    path: String,
    records: u64,
    size_bytes: u64,
}

impl TableReader {
    /// Reads through `fetch`.
    pub fn new(columns: Columns, fetch: Fetch) -> Self {
        Self {
            columns,
            fetch,
            lists: HashMap::new(),
            manifests: HashMap::new(),
            rows: HashMap::new(),
        }
    }

    /// The table's metadata.
    pub fn metadata(&self, location: &str) -> Result<TableMetadata, String> {
        let bytes = self.file(location)?;
        serde_json::from_slice(&bytes).map_err(|error| format!("{location} is no metadata: {error}"))
    }

    /// The rows of the current snapshot; none when there is no snapshot.
    pub fn rows(&mut self, metadata: &TableMetadata) -> Result<Vec<VisibleRow>, String> {
        let Some(snapshot) = metadata.current_snapshot() else {
            return Ok(Vec::new());
        };
        let schema = metadata.current_schema();
        let mut rows = Vec::new();
        let mut paths = BTreeSet::new();
        for manifest in self.manifest_paths(snapshot)?.iter() {
            for entry in self.manifest(manifest)?.iter() {
                if !paths.insert(entry.path.clone()) {
                    return Err(format!("I2: {} is in the snapshot twice", entry.path));
                }
                rows.extend_from_slice(&self.data_file(entry, schema)?);
            }
        }
        Ok(rows)
    }

    /// Every file that any snapshot of this metadata refers to, snapshots' own files included.
    pub fn references(&mut self, metadata: &TableMetadata) -> Result<BTreeSet<String>, String> {
        let mut files = BTreeSet::new();
        for snapshot in metadata.snapshots() {
            files.insert(snapshot.manifest_list().to_owned());
            for manifest in self.manifest_paths(snapshot)?.iter() {
                if files.insert(manifest.clone()) {
                    files.extend(self.manifest(manifest)?.iter().map(|entry| entry.path.clone()));
                }
            }
        }
        Ok(files)
    }

    /// Whether every file that any snapshot of this metadata refers to is there (I7): for after something was
    /// deleted.
    pub fn check_references(&mut self, metadata: &TableMetadata) -> Result<(), String> {
        for location in self.references(metadata)? {
            self.file(&location)?;
        }
        Ok(())
    }

    fn file(&self, location: &str) -> Result<Bytes, String> {
        (self.fetch)(location).ok_or_else(|| format!("I7: {location} is referenced and missing"))
    }

    fn manifest_paths(&mut self, snapshot: &Snapshot) -> Result<Rc<Vec<String>>, String> {
        let location = snapshot.manifest_list();
        if let Some(known) = self.lists.get(location) {
            return Ok(Rc::clone(known));
        }
        let list = ManifestList::parse_with_version(&self.file(location)?, FormatVersion::V2)
            .map_err(|error| format!("{location} is no manifest list: {error}"))?;
        let deletes = |manifest: &&iceberg::spec::ManifestFile| manifest.content != ManifestContentType::Data;
        if let Some(deletes) = list.entries().iter().find(deletes) {
            return Err(format!(
                "{} holds deletes, which nobody here writes",
                deletes.manifest_path
            ));
        }
        let paths = list
            .entries()
            .iter()
            .map(|manifest| manifest.manifest_path.clone())
            .collect();
        let paths = Rc::new(paths);
        self.lists.insert(location.to_owned(), Rc::clone(&paths));
        Ok(paths)
    }

    fn manifest(&mut self, location: &str) -> Result<Rc<Vec<Entry>>, String> {
        if let Some(known) = self.manifests.get(location) {
            return Ok(Rc::clone(known));
        }
        let manifest = Manifest::parse_avro(&self.file(location)?)
            .map_err(|error| format!("{location} is no manifest: {error}"))?;
        let alive = manifest.entries().iter().filter(|entry| entry.is_alive());
        let entries = alive
            .map(|entry| Entry {
                path: entry.file_path().to_owned(),
                records: entry.data_file().record_count(),
                size_bytes: entry.data_file().file_size_in_bytes(),
            })
            .collect();
        let entries = Rc::new(entries);
        self.manifests.insert(location.to_owned(), Rc::clone(&entries));
        Ok(entries)
    }

    fn data_file(&mut self, entry: &Entry, schema: &Schema) -> Result<Rc<Vec<VisibleRow>>, String> {
        let key = (entry.path.clone(), schema.schema_id());
        if let Some(known) = self.rows.get(&key) {
            return Ok(Rc::clone(known));
        }
        let bytes = self.file(&entry.path)?;
        if bytes.len() as u64 != entry.size_bytes {
            return Err(format!(
                "{} has {} bytes, its manifest says {}",
                entry.path,
                bytes.len(),
                entry.size_bytes
            ));
        }
        let fail = |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", entry.path);
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes)
            .and_then(|builder| builder.build())
            .map_err(|error| fail(&error))?;
        let mut rows = Vec::new();
        for batch in reader {
            let batch = batch.map_err(|error| fail(&error))?;
            self.batch_rows(&batch, schema, &mut rows)
                .map_err(|error| fail(&error))?;
        }
        if rows.len() as u64 != entry.records {
            return Err(format!(
                "{} has {} rows, its manifest says {}",
                entry.path,
                rows.len(),
                entry.records
            ));
        }
        let rows = Rc::new(rows);
        self.rows.insert(key, Rc::clone(&rows));
        Ok(rows)
    }

    fn batch_rows(
        &self,
        batch: &RecordBatch,
        schema: &Schema,
        rows: &mut Vec<VisibleRow>,
    ) -> Result<(), String> {
        let mut named: Vec<(&str, &ArrayRef)> = Vec::new();
        for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
            let id = field.metadata().get(PARQUET_FIELD_ID_META_KEY);
            let id = id.ok_or_else(|| format!("column {} has no field id", field.name()))?;
            let id = id
                .parse()
                .map_err(|_| format!("column {} has field id {id}", field.name()))?;
            // A column that has been dropped is not read.
            if let Some(name) = schema.name_by_field_id(id) {
                named.push((name, column));
            }
        }
        let find = |wanted: &str| {
            let found = named.iter().find(|(name, _)| *name == wanted);
            found
                .map(|(_, column)| *column)
                .ok_or_else(|| format!("there is no column {wanted}"))
        };
        let epochs = find(self.columns.epoch)?;
        let partitions = find(self.columns.partition)?;
        let offsets = find(self.columns.offset)?;
        let timestamps = find(self.columns.timestamp)?;
        let keys = find(self.columns.key).ok();
        let values: Vec<&(&str, &ArrayRef)> = named
            .iter()
            .filter(|(name, column)| !name.starts_with("_kafka_") && !column.data_type().is_nested())
            .collect();
        for row in 0..batch.num_rows() {
            let number = |column: &ArrayRef, name: &str| {
                let text = render(column, row)?;
                let text = text.ok_or_else(|| format!("{name} is null"))?;
                text.parse::<i64>().map_err(|_| format!("{name} is {text}"))
            };
            let mut said = Vec::with_capacity(values.len());
            for (name, column) in &values {
                if let Some(value) = render(column, row)? {
                    said.push((*name, value));
                }
            }
            let timestamp = render(timestamps, row)?.and_then(|text| text.parse().ok());
            let key = keys.map(|keys| render(keys, row)).transpose()?.flatten();
            let said = said.iter().map(|(name, value)| (*name, value.as_str()));
            let narrow = |wide: i64| i32::try_from(wide).map_err(|_| format!("{wide} is no int"));
            rows.push(VisibleRow {
                epoch: narrow(number(epochs, self.columns.epoch)?)?,
                partition: narrow(number(partitions, self.columns.partition)?)?,
                offset: number(offsets, self.columns.offset)?,
                fingerprint: fingerprint(timestamp, key.as_deref(), said),
            });
        }
        Ok(())
    }
}

/// A value as text; timestamps as milliseconds; `None` for null.
fn render(column: &ArrayRef, row: usize) -> Result<Option<String>, String> {
    if column.is_null(row) {
        return Ok(None);
    }
    let text = match column.data_type() {
        DataType::Boolean => column.as_boolean().value(row).to_string(),
        DataType::Int32 => column.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float32 => column.as_primitive::<Float32Type>().value(row).to_string(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::Utf8 => column.as_string::<i32>().value(row).to_owned(),
        DataType::LargeUtf8 => column.as_string::<i64>().value(row).to_owned(),
        DataType::Binary => String::from_utf8_lossy(column.as_binary::<i32>().value(row)).into_owned(),
        DataType::LargeBinary => String::from_utf8_lossy(column.as_binary::<i64>().value(row)).into_owned(),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            (column.as_primitive::<TimestampMicrosecondType>().value(row) / 1000).to_string()
        }
        other => return Err(format!("columns of type {other} are not in the model")),
    };
    Ok(Some(text))
}

#[cfg(test)]
mod tests;
