use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int32Array, RecordBatch};
use bytes::Bytes;
use frazil_core::{Epoch, Error, ErrorKind, IntervalSet, Partition, Result};
use iceberg::spec::{DataFile, Datum, Literal, PartitionSpec, Struct};
use iceberg::transform::create_transform_function;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::dead_letters;
use crate::descriptor::{Descriptor, StagedDeadLetters, StagedFile};
use crate::inspect::KafkaFields;
use crate::layout::Shelf;
use crate::ledger::{Ledger, Settled};
use crate::rows::{
    FileSettings, column_index, data_file_to_json, filter_rows, read_data_file, write_data_file,
};
use crate::snapshot::spec_of;
use crate::trim::{FileContext, schema_of};
use crate::warehouse::{LoadedTable, Warehouse, iceberg_error};

/// How a descriptor is staged anew.
pub(super) struct Restage<'a> {
    pub(super) warehouse: &'a Warehouse,
    pub(super) table: &'a LoadedTable,
    pub(super) ledger: &'a Ledger,
    /// The life that it comes under.
    pub(super) epoch: Epoch,
    pub(super) backfill: bool,
    /// Files that are left out.
    pub(super) without: &'a HashSet<String>,
}

impl Restage<'_> {
    /// Stages what is accepted of the descriptor anew, under the chosen epoch: new files, then a new descriptor, whose
    /// id is made from the old one's, so that doing it twice leaves one. The old descriptor stays. Returns the new id;
    /// `None`: nothing is accepted.
    pub(super) async fn run(
        &self,
        descriptor: &Descriptor,
        accepted: &BTreeMap<Partition, IntervalSet>,
    ) -> Result<Option<Uuid>> {
        if accepted.is_empty() {
            return Ok(None);
        }
        let id = restaged_id(descriptor.id, self.epoch);
        let metadata = &self.table.metadata;
        let kafka = KafkaFields::of(&self.ledger.fields)?;
        let schema = schema_of(metadata, descriptor.schema_id)?;
        let spec = spec_of(metadata, descriptor.partition_spec_id)?;
        let rows = FileContext {
            warehouse: self.warehouse,
            schema: &schema,
            spec: &spec,
            partition_field: kafka.partition,
            offset_field: kafka.offset,
            location: metadata.location(),
        };
        let files = self
            .files(&rows, &descriptor.files, accepted, kafka.epoch, id)
            .await?;
        let dead_letters = match &descriptor.dead_letters {
            Some(letters) => self.letters(letters, accepted, id).await?,
            None => None,
        };
        let claims = descriptor
            .claims
            .iter()
            .filter(|claim| accepted.contains_key(&claim.partition));
        let staged = Descriptor {
            id,
            epoch: self.epoch,
            staged_at: self.warehouse.environment.now(),
            backfill: self.backfill,
            claims: claims.cloned().collect(),
            files,
            dead_letters,
            judgement: None,
            ..descriptor.clone()
        };
        let location = self
            .warehouse
            .layout
            .descriptor(Shelf::Pending, metadata.uuid(), &staged.log(), id);
        let bytes = Bytes::from(staged.to_json()?);
        self.warehouse
            .storage
            .put(&location, bytes, Some(&staged.attributes()))
            .await?;
        Ok(Some(id))
    }

    async fn letters(
        &self,
        letters: &StagedDeadLetters,
        accepted: &BTreeMap<Partition, IntervalSet>,
        id: Uuid,
    ) -> Result<Option<StagedDeadLetters>> {
        let table = dead_letters::ensure(self.warehouse, &letters.table).await?;
        let schema = dead_letters::schema();
        let spec = spec_of(&table.metadata, 0)?;
        let location = table.metadata.location();
        let rows = FileContext::of_dead_letters(self.warehouse, &schema, &spec, location);
        let files = self
            .files(
                &rows,
                &letters.files,
                accepted,
                dead_letters::field_ids::EPOCH,
                id,
            )
            .await?;
        Ok((!files.is_empty()).then(|| StagedDeadLetters {
            files,
            ..letters.clone()
        }))
    }

    async fn files(
        &self,
        context: &FileContext<'_>,
        files: &[StagedFile],
        accepted: &BTreeMap<Partition, IntervalSet>,
        epoch_field: i32,
        id: Uuid,
    ) -> Result<Vec<StagedFile>> {
        let mut written = Vec::with_capacity(files.len());
        for (number, file) in files.iter().enumerate() {
            let data_file = context.data_file(file)?;
            let is_wanted = file.rows.keys().any(|partition| accepted.contains_key(partition));
            if !is_wanted || self.without.contains(data_file.file_path()) {
                continue;
            }
            let batches = read_data_file(context.bytes(&data_file).await?, None)?;
            let keep = |partition: Partition, offset| {
                accepted
                    .get(&partition)
                    .is_some_and(|accepted| accepted.contains(offset))
            };
            let batches = filter_rows(&batches, context.partition_field, context.offset_field, &keep)?;
            if batches.is_empty() {
                continue;
            }
            let batches = batches
                .iter()
                .map(|batch| with_epoch(batch, epoch_field, self.epoch));
            let batches = batches.collect::<Result<Vec<_>>>()?;
            let partition = partition_of(context.spec, &data_file, epoch_field, self.epoch)?;
            let settings = FileSettings::default();
            let encoded = write_data_file(&batches, context.schema, context.spec, &partition, &settings)?;
            let attempt = self.warehouse.environment.new_uuid();
            let location = format!("{}/data/{id}-{number:05}-{attempt}.parquet", context.location);
            self.warehouse
                .storage
                .put(&location, encoded.bytes.clone(), None)
                .await?;
            let json = data_file_to_json(&encoded.data_file(&location)?, context.spec, context.schema)?;
            let data_file = RawValue::from_string(json.to_string()).map_err(|e| {
                Error::new(ErrorKind::Internal, "describe a data file", e.to_string()).with_source(e)
            })?;
            let kept = file
                .rows
                .iter()
                .filter(|(partition, _)| accepted.contains_key(partition));
            written.push(StagedFile {
                rows: kept.map(|(partition, rows)| (*partition, *rows)).collect(),
                data_file,
            });
        }
        Ok(written)
    }
}

/// Everything that a descriptor claims.
pub(super) fn all_claims(descriptor: &Descriptor) -> BTreeMap<Partition, IntervalSet> {
    let claims = descriptor.claims.iter();
    claims
        .map(|claim| (claim.partition, IntervalSet::from(vec![claim.range])))
        .collect()
}

/// The claims of partitions that the ledger has not settled: a part may have been taken before the others turned out
/// to be a question.
pub(super) fn unsettled(ledger: &Ledger, descriptor: &Descriptor) -> BTreeMap<Partition, IntervalSet> {
    let mut open = all_claims(descriptor);
    match ledger.settled.get(&descriptor.id) {
        Some(Settled::Whole) => open.clear(),
        Some(Settled::Partitions(settled)) => open.retain(|partition, _| !settled.contains(partition)),
        None => {}
    }
    open
}

/// The id under which a descriptor is staged anew for a life: the old one's time, and randomness that is made from
/// the old one's. Never the old id itself: the ledger knows descriptors by it, and a commit that still has the old one
/// in its listing would take the one for the other.
fn restaged_id(id: Uuid, epoch: Epoch) -> Uuid {
    let mut hash = Sha256::new();
    hash.update(id.as_bytes());
    hash.update(epoch.0.to_be_bytes());
    let hash = hash.finalize();
    let mut bytes = *id.as_bytes();
    bytes[9..].copy_from_slice(&hash[..7]);
    Uuid::from_bytes(bytes)
}

fn with_epoch(batch: &RecordBatch, field: i32, epoch: Epoch) -> Result<RecordBatch> {
    let defect = |message: &str| Error::new(ErrorKind::Internal, "rewrite the epoch of rows", message);
    let at = column_index(batch, field).ok_or_else(|| defect("they have no column for it"))?;
    if batch.column(at).as_primitive_opt::<Int32Type>().is_none() {
        return Err(defect("its column is not an int"));
    }
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    columns[at] = Arc::new(Int32Array::from_value(epoch.0, batch.num_rows()));
    RecordBatch::try_new(batch.schema(), columns).map_err(|e| defect(&e.to_string()).with_source(e))
}

/// The partition of the rewritten rows: that of the file, but where the table is partitioned by the epoch.
fn partition_of(spec: &PartitionSpec, file: &DataFile, epoch_field: i32, epoch: Epoch) -> Result<Struct> {
    let failed = |error| iceberg_error("rewrite the epoch of rows", error);
    let mut values = Vec::with_capacity(spec.fields().len());
    for (field, value) in spec.fields().iter().zip(file.partition().iter()) {
        values.push(if field.source_id == epoch_field {
            let transform = create_transform_function(&field.transform).map_err(failed)?;
            let datum = transform
                .transform_literal(&Datum::int(epoch.0))
                .map_err(failed)?;
            datum.map(|datum| Literal::Primitive(datum.literal().clone()))
        } else {
            value.cloned()
        });
    }
    Ok(Struct::from_iter(values))
}
