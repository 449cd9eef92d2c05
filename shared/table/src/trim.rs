use std::collections::BTreeMap;
use std::sync::Arc;

use frazil_core::{Error, ErrorKind, IntervalSet, Offset, Partition, Result};
use iceberg::spec::{DataFile, PartitionSpec, SchemaRef};

use crate::dead_letters;
use crate::descriptor::{Descriptor, StagedFile};
use crate::rows::{FileSettings, data_file_from_json, filter_rows, read_data_file, write_data_file};
use crate::warehouse::Warehouse;

/// How to read the files of a descriptor, and where to put what is cut from them.
pub(crate) struct FileContext<'a> {
    pub(crate) warehouse: &'a Warehouse,
    pub(crate) schema: &'a SchemaRef,
    pub(crate) spec: &'a PartitionSpec,
    /// Field id of the Kafka partition.
    pub(crate) partition_field: i32,
    /// Field id of the Kafka offset.
    pub(crate) offset_field: i32,
    /// The table's location.
    pub(crate) location: &'a str,
}

impl<'a> FileContext<'a> {
    /// Of a dead-letter table, whose schema and spec never change: see [`dead_letters`].
    pub(crate) fn of_dead_letters(
        warehouse: &'a Warehouse,
        schema: &'a SchemaRef,
        spec: &'a PartitionSpec,
        location: &'a str,
    ) -> Self {
        Self {
            warehouse,
            schema,
            spec,
            partition_field: dead_letters::field_ids::PARTITION,
            offset_field: dead_letters::field_ids::OFFSET,
            location,
        }
    }

    /// The manifest entries of the accepted part of a descriptor's files. A file of which everything is accepted is
    /// used as it is; of another, the accepted rows are written to a file of their own. O(bytes of the files cut).
    pub(crate) async fn accepted_files(
        &self,
        descriptor: &Descriptor,
        files: &[StagedFile],
        accepted: &BTreeMap<Partition, IntervalSet>,
    ) -> Result<Vec<DataFile>> {
        let mut result = Vec::with_capacity(files.len());
        for file in files {
            let data_file = self.data_file(file)?;
            if self.is_wholly_accepted(descriptor, file, accepted) {
                result.push(data_file);
            } else if file.rows.keys().any(|partition| accepted.contains_key(partition)) {
                result.extend(self.cut(&data_file, accepted).await?);
            }
        }
        Ok(result)
    }

    /// A staged file's manifest entry.
    pub(crate) fn data_file(&self, file: &StagedFile) -> Result<DataFile> {
        let json: serde_json::Value = serde_json::from_str(file.data_file.get()).map_err(|e| {
            Error::new(ErrorKind::Internal, "read a staged file", e.to_string()).with_source(e)
        })?;
        data_file_from_json(&json, self.spec, self.schema)
    }

    fn is_wholly_accepted(
        &self,
        descriptor: &Descriptor,
        file: &StagedFile,
        accepted: &BTreeMap<Partition, IntervalSet>,
    ) -> bool {
        file.rows.keys().all(|partition| {
            let claim = descriptor
                .claims
                .iter()
                .find(|claim| claim.partition == *partition);
            match (claim, accepted.get(partition)) {
                (Some(claim), Some(accepted)) => accepted.covers(claim.range),
                _ => false,
            }
        })
    }

    async fn cut(
        &self,
        file: &DataFile,
        accepted: &BTreeMap<Partition, IntervalSet>,
    ) -> Result<Option<DataFile>> {
        let batches = read_data_file(self.bytes(file).await?, None)?;
        let keep = |partition: Partition, offset: Offset| {
            accepted
                .get(&partition)
                .is_some_and(|accepted| accepted.contains(offset))
        };
        let kept = filter_rows(&batches, self.partition_field, self.offset_field, &keep)?;
        let rows: usize = kept.iter().map(|batch| batch.num_rows()).sum();
        if rows == 0 {
            return Ok(None);
        }
        if rows as u64 == file.record_count() {
            return Ok(Some(file.clone()));
        }
        let settings = FileSettings::default();
        let encoded = write_data_file(&kept, self.schema, self.spec, file.partition(), &settings)?;
        let id = self.warehouse.environment.new_uuid();
        let location = format!("{}/data/{id}-trimmed.parquet", self.location);
        self.warehouse
            .storage
            .put(&location, encoded.bytes.clone(), None)
            .await?;
        encoded.data_file(&location).map(Some)
    }

    /// A data file's bytes.
    pub(crate) async fn bytes(&self, file: &DataFile) -> Result<bytes::Bytes> {
        let way_out = "restore the file, or quarantine the descriptor that names it";
        self.warehouse.data_file(file.file_path(), way_out).await
    }
}

/// The schema with which a descriptor's files were written.
pub(crate) fn schema_of(metadata: &iceberg::spec::TableMetadata, schema_id: i32) -> Result<SchemaRef> {
    metadata.schema_by_id(schema_id).map(Arc::clone).ok_or_else(|| {
        Error::new(
            ErrorKind::Internal,
            "find a schema",
            format!("the table has no schema {schema_id}"),
        )
    })
}
