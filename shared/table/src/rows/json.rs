use std::collections::{BTreeMap, HashMap};

use frazil_core::{Error, ErrorKind, Result};
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, Datum, Literal, PartitionSpec,
    PrimitiveLiteral, PrimitiveType, Schema, Struct,
};
use serde::{Deserialize, Serialize};

use super::{caused, defect};

const WRITE: &str = "describe a data file";
const READ: &str = "read the description of a data file";

/// Most columns that a description may have, counted at the leaves: as many as a data file.
const MAX_COLUMNS: usize = super::MAX_LEAF_COLUMNS;

/// A data file in a descriptor. Our own form and not the one inside the `iceberg` crate: descriptors outlive
/// an upgrade of that crate, theirs comes out in another order each time, and it rounds float partitions.
/// Values are Iceberg's binary single-value serialization in hexadecimal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DataFileJson {
    path: String,
    records: u64,
    bytes: u64,
    spec_id: i32,
    partition: Vec<Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sort_order_id: Option<i32>,
    #[serde(default)]
    split_offsets: Vec<i64>,
    columns: BTreeMap<i32, ColumnJson>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnJson {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    values: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nulls: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nans: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lower: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upper: Option<String>,
}

/// One of the values that a column may have.
type Slot<T> = fn(&mut ColumnJson) -> &mut Option<T>;

/// Describes a data file (rows, Parquet) of this spec. The same file always gives the same text.
pub fn data_file_to_json(
    file: &DataFile,
    spec: &PartitionSpec,
    schema: &Schema,
) -> Result<serde_json::Value> {
    if file.content_type() != DataContentType::Data || file.file_format() != DataFileFormat::Parquet {
        return Err(defect(
            WRITE,
            format!("`{}` is no Parquet file of rows", file.file_path()),
        ));
    }
    let kinds = partition_kinds(spec, schema, WRITE)?;
    let values = file.partition().fields();
    if values.len() != kinds.len() {
        let what = format!(
            "its partition has {} values, spec {} has {}",
            values.len(),
            spec.spec_id(),
            kinds.len()
        );
        return Err(defect(WRITE, what));
    }
    let partition = values
        .iter()
        .zip(&kinds)
        .map(|(value, kind)| {
            value
                .as_ref()
                .map(|value| Ok(hex(&literal_bytes(value, kind)?)))
                .transpose()
        })
        .collect::<Result<Vec<_>>>()?;

    let mut columns: BTreeMap<i32, ColumnJson> = BTreeMap::new();
    let counts: [(_, Slot<u64>); 4] = [
        (file.column_sizes(), |column| &mut column.size),
        (file.value_counts(), |column| &mut column.values),
        (file.null_value_counts(), |column| &mut column.nulls),
        (file.nan_value_counts(), |column| &mut column.nans),
    ];
    for (counts, slot) in counts {
        for (id, count) in counts {
            *slot(columns.entry(*id).or_default()) = Some(*count);
        }
    }
    let bounds: [(_, Slot<String>); 2] = [
        (file.lower_bounds(), |column| &mut column.lower),
        (file.upper_bounds(), |column| &mut column.upper),
    ];
    for (bounds, slot) in bounds {
        for (id, bound) in bounds {
            let bytes = bound.to_bytes().map_err(caused(WRITE, "a bound has no bytes"))?;
            *slot(columns.entry(*id).or_default()) = Some(hex(&bytes));
        }
    }
    let described = DataFileJson {
        path: file.file_path().to_owned(),
        records: file.record_count(),
        bytes: file.file_size_in_bytes(),
        spec_id: spec.spec_id(),
        partition,
        sort_order_id: file.sort_order_id(),
        split_offsets: file.split_offsets().unwrap_or_default().to_vec(),
        columns,
    };
    serde_json::to_value(described).map_err(caused(WRITE, "it is no JSON"))
}

/// Reads a description back. `spec` and `schema` are those that the file was written with; bounds of columns
/// that the schema does not have are dropped, as they would be in a manifest.
pub fn data_file_from_json(
    json: &serde_json::Value,
    spec: &PartitionSpec,
    schema: &Schema,
) -> Result<DataFile> {
    let described =
        DataFileJson::deserialize(json).map_err(caused(READ, "it is not in the form of this version"))?;
    let wrong = |what: String| defect(READ, what).with_context("path", &described.path);
    if described.spec_id != spec.spec_id() {
        return Err(wrong(format!(
            "it is of partition spec {}, not {}",
            described.spec_id,
            spec.spec_id()
        )));
    }
    if described.columns.len() > MAX_COLUMNS {
        return Err(wrong(format!(
            "it has {} columns, at most {MAX_COLUMNS} are read",
            described.columns.len()
        )));
    }
    let kinds = partition_kinds(spec, schema, READ)?;
    if described.partition.len() != kinds.len() {
        let (found, wanted) = (described.partition.len(), kinds.len());
        return Err(wrong(format!(
            "its partition has {found} values, its spec {wanted}"
        )));
    }
    let partition = described
        .partition
        .iter()
        .zip(&kinds)
        .map(|(value, kind)| {
            value
                .as_ref()
                .map(|value| Ok(Literal::from(datum(value, kind)?)))
                .transpose()
        })
        .collect::<Result<Vec<_>>>()?;

    let counts = |count: fn(&ColumnJson) -> Option<u64>| -> HashMap<i32, u64> {
        described
            .columns
            .iter()
            .filter_map(|(id, column)| Some((*id, count(column)?)))
            .collect()
    };
    let bounds = |bound: fn(&ColumnJson) -> Option<&String>| -> Result<HashMap<i32, Datum>> {
        let mut bounds = HashMap::new();
        for (id, column) in &described.columns {
            let kind = schema
                .field_by_id(*id)
                .and_then(|field| field.field_type.as_primitive_type());
            if let (Some(value), Some(kind)) = (bound(column), kind) {
                bounds.insert(*id, datum(value, kind)?);
            }
        }
        Ok(bounds)
    };
    let mut builder = DataFileBuilder::default();
    builder
        .content(DataContentType::Data)
        .file_format(DataFileFormat::Parquet)
        .file_path(described.path.clone())
        .record_count(described.records)
        .file_size_in_bytes(described.bytes)
        .partition_spec_id(described.spec_id)
        .partition(Struct::from_iter(partition))
        .column_sizes(counts(|column| column.size))
        .value_counts(counts(|column| column.values))
        .null_value_counts(counts(|column| column.nulls))
        .nan_value_counts(counts(|column| column.nans))
        .lower_bounds(bounds(|column| column.lower.as_ref())?)
        .upper_bounds(bounds(|column| column.upper.as_ref())?)
        .split_offsets(Some(described.split_offsets.clone()));
    if let Some(id) = described.sort_order_id {
        builder.sort_order_id(id);
    }
    builder
        .build()
        .map_err(caused(READ, "its manifest entry is incomplete"))
}

fn partition_kinds(
    spec: &PartitionSpec,
    schema: &Schema,
    operation: &'static str,
) -> Result<Vec<PrimitiveType>> {
    let partition = spec
        .partition_type(schema)
        .map_err(caused(operation, "the spec does not fit the schema"))?;
    let kinds = partition.fields().iter().map(|field| {
        let kind = field.field_type.as_primitive_type().cloned();
        kind.ok_or_else(|| {
            defect(
                operation,
                format!("the partition field `{}` is no single value", field.name),
            )
        })
    });
    kinds.collect()
}

/// Iceberg spec, Binary single-value serialization.
fn literal_bytes(value: &Literal, kind: &PrimitiveType) -> Result<Vec<u8>> {
    let unsuitable = || defect(WRITE, format!("a partition value is not of the type {kind}"));
    Ok(match value.as_primitive_literal().ok_or_else(unsuitable)? {
        PrimitiveLiteral::Boolean(value) => vec![u8::from(value)],
        PrimitiveLiteral::Int(value) => value.to_le_bytes().to_vec(),
        PrimitiveLiteral::Long(value) => value.to_le_bytes().to_vec(),
        PrimitiveLiteral::Float(value) => value.0.to_le_bytes().to_vec(),
        PrimitiveLiteral::Double(value) => value.0.to_le_bytes().to_vec(),
        PrimitiveLiteral::String(value) => value.into_bytes(),
        PrimitiveLiteral::Binary(value) => value,
        PrimitiveLiteral::Int128(value) => value.to_be_bytes().to_vec(),
        PrimitiveLiteral::UInt128(value) => value.to_be_bytes().to_vec(),
        PrimitiveLiteral::AboveMax | PrimitiveLiteral::BelowMin => return Err(unsuitable()),
    })
}

fn datum(text: &str, kind: &PrimitiveType) -> Result<Datum> {
    let bytes = unhex(text)
        .ok_or_else(|| Error::new(ErrorKind::Internal, READ, format!("`{text}` is not hexadecimal")))?;
    Datum::try_from_bytes(&bytes, kind.clone()).map_err(caused(READ, "a value does not fit its column"))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(*byte)])
        .collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
        .collect::<Option<_>>()?;
    digits
        .chunks(2)
        .map(|pair| Some((pair.first()? << 4) | pair.get(1)?))
        .collect()
}
