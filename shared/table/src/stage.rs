//! Staging: the data files of an invocation, then the descriptor that names them. Nothing is visible yet, and nothing
//! is acknowledged before the descriptor is stored (promise I1).

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use bytes::Bytes;
use frazil_core::{Error, ErrorKind, Partition, Result};
use iceberg::spec::{DataFile, PartitionSpec, SchemaRef};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::dead_letters::{self, DeadLetter};
use crate::descriptor::{Claim, DESCRIPTOR_FORMAT, Descriptor, StagedDeadLetters, StagedFile};
use crate::inspect::KafkaFields;
use crate::layout::{LogName, Shelf};
use crate::ledger::Ledger;
use crate::rows::{FileSettings, column_by_id, data_file_to_json, split_by_partition, write_data_file};
use crate::warehouse::{LoadedTable, Warehouse};

/// What an invocation has for one table.
#[derive(Debug)]
pub struct StageRequest<'a> {
    /// The table, as it was read after any schema change.
    pub table: &'a LoadedTable,
    /// The ledger of the same metadata.
    pub ledger: &'a Ledger,
    /// The log that the records came from.
    pub log: LogName,
    /// What is claimed, one entry per partition.
    pub claims: Vec<Claim>,
    /// The rows, in the table's current schema, if there are any.
    pub rows: Option<RecordBatch>,
    /// The records that cannot be read.
    pub dead_letters: Vec<DeadLetter>,
    /// Whether the claims may fill holes of any age.
    pub backfill: bool,
    /// The parked event that the records come from, if they were parked.
    pub parked_as: Option<Uuid>,
    /// How files are written.
    pub files: FileSettings,
}

/// What was staged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// The descriptor.
    pub id: Uuid,
    /// Data files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their rows.
    pub rows: u64,
    /// Dead letters.
    pub dead_letters: u64,
}

/// Writes the files, one per table partition and one at a time, then the descriptor. When it returns, the records are
/// safe and may be acknowledged. On any error nothing may be acknowledged; files that were written stay for orphan
/// removal.
pub async fn stage(warehouse: &Warehouse, request: StageRequest<'_>) -> Result<Staged> {
    let metadata = &request.table.metadata;
    let id = warehouse.environment.new_uuid();
    let fields = KafkaFields::of(&request.ledger.fields)?;
    let schema = metadata.current_schema();
    let spec = metadata.default_partition_spec();
    let mut staged = Staged {
        id,
        files: 0,
        bytes: 0,
        rows: 0,
        dead_letters: request.dead_letters.len() as u64,
    };
    let mut files = Vec::new();
    if let Some(batch) = request.rows.as_ref().filter(|batch| batch.num_rows() > 0) {
        let writer = FileWriter {
            warehouse,
            schema,
            spec,
            settings: &request.files,
            location: metadata.location(),
            id,
        };
        files = writer.write(batch, fields.partition).await?;
        staged.files = files.len() as u64;
        staged.bytes = files.iter().map(|file| file.bytes).sum();
        staged.rows = batch.num_rows() as u64;
    }
    let dead_letters = stage_letters(warehouse, &request, id).await?;
    let descriptor = Descriptor {
        format: DESCRIPTOR_FORMAT,
        id,
        table: request.table.name.clone(),
        table_uuid: metadata.uuid(),
        source: request.log.source.clone(),
        topic: request.log.topic.clone(),
        epoch: request.log.epoch,
        staged_at: warehouse.environment.now(),
        backfill: request.backfill,
        schema_id: metadata.current_schema_id(),
        partition_spec_id: spec.spec_id(),
        fields: request.ledger.fields.clone(),
        claims: request.claims,
        files: files.into_iter().map(|file| file.staged).collect(),
        dead_letters,
        judgement: None,
        parked_as: request.parked_as,
    };
    let location = warehouse
        .layout
        .descriptor(Shelf::Pending, metadata.uuid(), &request.log, id);
    let bytes = Bytes::from(descriptor.to_json()?);
    warehouse
        .storage
        .put(&location, bytes, Some(&descriptor.attributes()))
        .await?;
    Ok(staged)
}

async fn stage_letters(
    warehouse: &Warehouse,
    request: &StageRequest<'_>,
    id: Uuid,
) -> Result<Option<StagedDeadLetters>> {
    if request.dead_letters.is_empty() {
        return Ok(None);
    }
    let table = dead_letters::ensure(warehouse, &request.table.name.dead_letters()?).await?;
    let log = &request.log;
    let now = warehouse.environment.now();
    let batch = dead_letters::to_batch(&log.source, &log.topic, log.epoch, &request.dead_letters, now)?;
    let schema = dead_letters::schema();
    let spec = crate::snapshot::spec_of(&table.metadata, 0)?;
    let location = table.metadata.location();
    let writer = FileWriter {
        warehouse,
        schema: &schema,
        spec: &spec,
        settings: &request.files,
        location,
        id,
    };
    let files = writer.write(&batch, dead_letters::field_ids::PARTITION).await?;
    Ok(Some(StagedDeadLetters {
        table: table.name.clone(),
        table_uuid: table.metadata.uuid(),
        files: files.into_iter().map(|file| file.staged).collect(),
    }))
}

/// Writes rows into a table's data folder.
pub(crate) struct FileWriter<'a> {
    pub(crate) warehouse: &'a Warehouse,
    pub(crate) schema: &'a SchemaRef,
    pub(crate) spec: &'a PartitionSpec,
    pub(crate) settings: &'a FileSettings,
    pub(crate) location: &'a str,
    /// What the names of the files begin with.
    pub(crate) id: Uuid,
}

pub(crate) struct WrittenFile {
    pub(crate) data_file: DataFile,
    staged: StagedFile,
    bytes: u64,
}

impl FileWriter<'_> {
    pub(crate) async fn write(&self, batch: &RecordBatch, partition_field: i32) -> Result<Vec<WrittenFile>> {
        let mut written = Vec::new();
        for (number, (partition, rows)) in split_by_partition(batch, self.schema, self.spec)?
            .into_iter()
            .enumerate()
        {
            let counts = rows_per_kafka_partition(&rows, partition_field)?;
            let encoded = write_data_file(&[rows], self.schema, self.spec, &partition, self.settings)?;
            let location = format!("{}/data/{}-{number:05}.parquet", self.location, self.id);
            let data_file = encoded.data_file(&location)?;
            let bytes = encoded.bytes.len() as u64;
            self.warehouse.storage.put(&location, encoded.bytes, None).await?;
            let json = data_file_to_json(&data_file, self.spec, self.schema)?;
            let json = RawValue::from_string(json.to_string()).map_err(|e| {
                Error::new(ErrorKind::Internal, "describe a data file", e.to_string()).with_source(e)
            })?;
            written.push(WrittenFile {
                data_file,
                staged: StagedFile {
                    rows: counts,
                    data_file: json,
                },
                bytes,
            });
        }
        Ok(written)
    }
}

fn rows_per_kafka_partition(rows: &RecordBatch, field: i32) -> Result<BTreeMap<Partition, u64>> {
    let column = column_by_id(rows, field)
        .and_then(|column| column.as_primitive_opt::<Int32Type>())
        .ok_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                "stage rows",
                "they have no column with Kafka's partition",
            )
        })?;
    let mut counts = BTreeMap::new();
    for partition in column.iter().flatten() {
        *counts.entry(Partition(partition)).or_insert(0) += 1;
    }
    Ok(counts)
}
