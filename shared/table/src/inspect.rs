use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, RecordBatch};
use frazil_core::{Error, ErrorKind, Offset, OffsetRange, Partition, Result};
use frazil_schema::{FieldMap, FieldPath};
use iceberg::spec::{DataFile, PrimitiveLiteral};

use crate::dead_letters;
use crate::descriptor::{Descriptor, StagedFile};
use crate::layout::LogName;
use crate::ledger::Ledger;
use crate::outbox;
use crate::plan::{Finding, Inspect};
use crate::rows::{
    Comparison, RowIdentity, column_index, compare_rows, data_file_from_json, filter_rows, read_data_file,
};
use crate::snapshot::{live_files, spec_of};
use crate::trim::{FileContext, schema_of};
use crate::warehouse::{LoadedTable, Warehouse};

/// Field ids of the Kafka columns that say which record a row is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KafkaFields {
    pub(crate) partition: i32,
    pub(crate) offset: i32,
    pub(crate) epoch: i32,
    pub(crate) topic: Option<i32>,
}

impl KafkaFields {
    pub(crate) fn of(fields: &FieldMap) -> Result<Self> {
        let find = |name: &str| fields.get(&FieldPath::kafka().field(name, None));
        let must = |name: &'static str| {
            find(name).ok_or_else(|| {
                Error::new(
                    ErrorKind::Internal,
                    "find Kafka's own columns",
                    format!("the table has no `{name}`"),
                )
            })
        };
        Ok(Self {
            partition: must("_kafka_partition")?,
            offset: must("_kafka_offset")?,
            epoch: must("_kafka_epoch")?,
            topic: find("_kafka_topic"),
        })
    }
}

/// Reads files to answer what a claim has in common with what the table holds: rows of the current snapshot, dead
/// letters, and letters in the outbox. Rare. O(manifests of the table) plus the files whose bounds overlap the claim.
///
/// Rows that another engine deleted count as held: what was erased must not come back.
pub(crate) async fn inspect(
    warehouse: &Warehouse,
    table: &LoadedTable,
    ledger: &Ledger,
    descriptor: &Descriptor,
    question: Inspect,
) -> Result<Finding> {
    let fields = KafkaFields::of(&ledger.fields)?;
    let metadata = &table.metadata;
    let schema = schema_of(metadata, descriptor.schema_id)?;
    let spec = spec_of(metadata, descriptor.partition_spec_id)?;
    let rows = FileContext {
        warehouse,
        schema: &schema,
        spec: &spec,
        partition_field: fields.partition,
        offset_field: fields.offset,
        location: metadata.location(),
    };
    let staged = read_staged(&rows, &descriptor.files, question, None).await?;
    let held = held_rows(&rows, table, &descriptor.log(), fields, question).await?;
    let mut finding = Finding::default();
    let identity = RowIdentity {
        partition: fields.partition,
        offset: fields.offset,
        epoch: Some(fields.epoch),
    };
    note(&mut finding, &staged, &held, identity, question)?;

    let letters_schema = dead_letters::schema();
    let letters_name = match &descriptor.dead_letters {
        Some(letters) => letters.table.clone(),
        None => table.name.dead_letters()?,
    };
    let letters_table = warehouse.load(&letters_name).await?;
    if letters_table.is_none() && ledger.outbox.is_empty() {
        return Ok(finding);
    }
    let letters_spec = match &letters_table {
        Some(letters) => spec_of(&letters.metadata, 0)?,
        None => return Ok(finding),
    };
    let letters = FileContext::of_dead_letters(warehouse, &letters_schema, &letters_spec, "");
    let columns = dead_letters::field_ids::RECORD;
    let staged = match &descriptor.dead_letters {
        Some(staged) => read_staged(&letters, &staged.files, question, Some(&columns)).await?,
        None => Vec::new(),
    };
    let mut files = Vec::new();
    if let Some(table) = &letters_table {
        files.extend(
            files_within(
                warehouse,
                table,
                letters.partition_field,
                letters.offset_field,
                question,
            )
            .await?,
        );
    }
    for entry in outbox::untaken(warehouse, &letters_name, ledger).await? {
        for (_, json) in outbox::read_list(warehouse, &entry).await?.1 {
            files.push(data_file_from_json(&json, &letters_spec, &letters_schema)?);
        }
    }
    // While somebody delivers them, an older ledger has letters in its outbox that are in their table already.
    let mut seen = HashSet::new();
    files.retain(|file| seen.insert(file.file_path().to_owned()));
    let mut held = Vec::new();
    for file in &files {
        let batches = read_data_file(letters.bytes(file).await?, None)?;
        let batches = within(&letters, &batches, question)?;
        held.extend(of_log(
            batches,
            &descriptor.log(),
            Some(1),
            Some(2),
            Some(dead_letters::field_ids::EPOCH),
        )?);
    }
    let held = held
        .iter()
        .map(|batch| project(batch, &columns))
        .collect::<Result<Vec<_>>>()?;
    let identity = RowIdentity {
        partition: letters.partition_field,
        offset: letters.offset_field,
        epoch: None,
    };
    note(&mut finding, &staged, &held, identity, question)?;
    Ok(finding)
}

/// Adds to the finding what two sets of rows have in common.
fn note(
    finding: &mut Finding,
    staged: &[RecordBatch],
    held: &[RecordBatch],
    identity: RowIdentity,
    question: Inspect,
) -> Result<()> {
    let staged_offsets = offsets(staged, identity.offset)?;
    let held_offsets = offsets(held, identity.offset)?;
    match compare_rows(staged, held, &identity, question.partition, question.range)? {
        Comparison::Same(_) => {
            let common = staged_offsets
                .iter()
                .rev()
                .find(|offset| held_offsets.binary_search(offset).is_ok());
            finding.same_up_to = finding.same_up_to.max(common.copied());
        }
        Comparison::Different { first_offset } => {
            finding.different_at = Some(
                finding
                    .different_at
                    .map_or(first_offset, |known| known.min(first_offset)),
            );
        }
        Comparison::NothingInCommon => {}
    }
    staged_offsets
        .iter()
        .try_for_each(|offset| OffsetRange::single(*offset).map(|o| finding.staged.insert(o)))?;
    held_offsets
        .iter()
        .try_for_each(|offset| OffsetRange::single(*offset).map(|o| finding.present.insert(o)))
}

async fn read_staged(
    context: &FileContext<'_>,
    files: &[StagedFile],
    question: Inspect,
    columns: Option<&[i32]>,
) -> Result<Vec<RecordBatch>> {
    let mut found = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.rows.contains_key(&question.partition))
    {
        let data_file = context.data_file(file)?;
        let batches = read_data_file(context.bytes(&data_file).await?, columns)?;
        found.extend(within(context, &batches, question)?);
    }
    Ok(found)
}

async fn held_rows(
    context: &FileContext<'_>,
    table: &LoadedTable,
    log: &LogName,
    fields: KafkaFields,
    question: Inspect,
) -> Result<Vec<RecordBatch>> {
    let mut held = Vec::new();
    for file in files_within(
        context.warehouse,
        table,
        fields.partition,
        fields.offset,
        question,
    )
    .await?
    {
        let batches = within(
            context,
            &read_data_file(context.bytes(&file).await?, None)?,
            question,
        )?;
        held.extend(of_log(batches, log, None, fields.topic, Some(fields.epoch))?);
    }
    Ok(held)
}

/// Data files of the current snapshot whose bounds admit rows of the question.
pub(crate) async fn files_within(
    warehouse: &Warehouse,
    table: &LoadedTable,
    partition_field: i32,
    offset_field: i32,
    question: Inspect,
) -> Result<Vec<DataFile>> {
    let partition = i64::from(question.partition.0);
    let (first, last) = (question.range.first().0, question.range.last().0);
    let wanted = |file: &DataFile| {
        admits(file, partition_field, partition, partition) && admits(file, offset_field, first, last)
    };
    live_files(warehouse, table, wanted).await
}

/// Whether a file's bounds admit values of `[first, last]` in a column. Without bounds they admit everything.
fn admits(file: &DataFile, field: i32, first: i64, last: i64) -> bool {
    let value = |literal: &PrimitiveLiteral| match literal {
        PrimitiveLiteral::Int(value) => Some(i64::from(*value)),
        PrimitiveLiteral::Long(value) => Some(*value),
        _ => None,
    };
    let lower = file
        .lower_bounds()
        .get(&field)
        .and_then(|datum| value(datum.literal()));
    let upper = file
        .upper_bounds()
        .get(&field)
        .and_then(|datum| value(datum.literal()));
    lower.is_none_or(|lower| lower <= last) && upper.is_none_or(|upper| upper >= first)
}

fn within(context: &FileContext<'_>, batches: &[RecordBatch], question: Inspect) -> Result<Vec<RecordBatch>> {
    let keep = |partition: Partition, offset: Offset| {
        partition == question.partition && question.range.contains(offset)
    };
    filter_rows(batches, context.partition_field, context.offset_field, &keep)
}

/// Keeps the rows of a log: of its epoch, and of its source and topic where the table has columns for them.
pub(crate) fn of_log(
    batches: Vec<RecordBatch>,
    log: &LogName,
    source_field: Option<i32>,
    topic_field: Option<i32>,
    epoch_field: Option<i32>,
) -> Result<Vec<RecordBatch>> {
    let mut kept = Vec::with_capacity(batches.len());
    for batch in batches {
        let source = source_field.and_then(|field| column_index(&batch, field));
        let topic = topic_field.and_then(|field| column_index(&batch, field));
        let epoch = epoch_field.and_then(|field| column_index(&batch, field));
        let matches = |row: usize| {
            let text = |column: Option<usize>, wanted: &str| {
                column.is_none_or(|at| {
                    let array = batch.column(at);
                    match array.as_string_opt::<i32>() {
                        Some(array) => array.is_valid(row) && array.value(row) == wanted,
                        None => array
                            .as_string_opt::<i64>()
                            .is_none_or(|array| array.value(row) == wanted),
                    }
                })
            };
            let number = |column: Option<usize>, wanted: i32| {
                column.is_none_or(|at| {
                    batch
                        .column(at)
                        .as_primitive_opt::<Int32Type>()
                        .is_none_or(|array| array.is_valid(row) && array.value(row) == wanted)
                })
            };
            text(source, log.source.as_str()) && text(topic, log.topic.as_str()) && number(epoch, log.epoch.0)
        };
        let mask: arrow_array::BooleanArray = (0..batch.num_rows()).map(|row| Some(matches(row))).collect();
        let filtered = arrow_select::filter::filter_record_batch(&batch, &mask).map_err(|e| {
            Error::new(ErrorKind::Internal, "pick the rows of a log", e.to_string()).with_source(e)
        })?;
        if filtered.num_rows() > 0 {
            kept.push(filtered);
        }
    }
    Ok(kept)
}

fn project(batch: &RecordBatch, fields: &[i32]) -> Result<RecordBatch> {
    let columns: Vec<usize> = fields
        .iter()
        .filter_map(|field| column_index(batch, *field))
        .collect();
    batch
        .project(&columns)
        .map_err(|e| Error::new(ErrorKind::Internal, "pick columns", e.to_string()).with_source(e))
}

fn offsets(batches: &[RecordBatch], field: i32) -> Result<Vec<Offset>> {
    let mut found = Vec::new();
    for batch in batches {
        let Some(at) = column_index(batch, field) else {
            return Err(Error::new(
                ErrorKind::Internal,
                "read offsets",
                "a file has no offset column",
            ));
        };
        let Some(values) = batch
            .column(at)
            .as_primitive_opt::<arrow_array::types::Int64Type>()
        else {
            return Err(Error::new(
                ErrorKind::Internal,
                "read offsets",
                "the offset column is not a long",
            ));
        };
        found.extend(values.iter().flatten().map(Offset));
    }
    found.sort_unstable();
    Ok(found)
}
