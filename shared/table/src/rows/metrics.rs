use std::collections::{BTreeMap, BTreeSet, HashMap};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use frazil_core::Result;
use iceberg::spec::{Datum, PrimitiveType, Schema, Type};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::statistics::Statistics;

use super::caused;
use super::columns::flat_columns;

/// Characters of a string, or bytes of a binary, that a bound keeps: Iceberg's default metrics mode,
/// `truncate(16)`.
const BOUND_LENGTH: usize = 16;

const MEASURE: &str = "measure a data file";

/// What a manifest says about the columns of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct ColumnMetrics {
    pub(super) column_sizes: HashMap<i32, u64>,
    pub(super) value_counts: HashMap<i32, u64>,
    pub(super) null_value_counts: HashMap<i32, u64>,
    pub(super) lower_bounds: HashMap<i32, Datum>,
    pub(super) upper_bounds: HashMap<i32, Datum>,
}

impl ColumnMetrics {
    /// From the footer. Columns in lists and maps have counts but no bounds, as Iceberg's Java writer does.
    pub(super) fn from_footer(footer: &ParquetMetaData, schema: &Schema) -> Result<Self> {
        let mut metrics = Self::default();
        let mut bounds: BTreeMap<i32, Bounds> = BTreeMap::new();
        let mut uncounted = BTreeSet::new();
        for chunk in footer.row_groups().iter().flat_map(|group| group.columns()) {
            let info = chunk.column_descr().self_type().get_basic_info();
            // The id is on the leaf itself; Parquet's groups for lists and maps have none of their own.
            let Some(field) = info
                .has_id()
                .then(|| info.id())
                .and_then(|id| schema.field_by_id(id))
            else {
                continue;
            };
            let id = field.id;
            let values = u64::try_from(chunk.num_values()).unwrap_or(0);
            let nulls = chunk.statistics().and_then(Statistics::null_count_opt);
            *metrics.column_sizes.entry(id).or_default() +=
                u64::try_from(chunk.compressed_size()).unwrap_or(0);
            *metrics.value_counts.entry(id).or_default() += values;
            match nulls {
                Some(nulls) => *metrics.null_value_counts.entry(id).or_default() += nulls,
                None => drop(uncounted.insert(id)),
            }
            if let (Type::Primitive(kind), 0) =
                (field.field_type.as_ref(), chunk.column_descr().max_rep_level())
            {
                let all_null = nulls == Some(values);
                bounds.entry(id).or_default().widen(kind, chunk, all_null)?;
            }
        }
        metrics.null_value_counts.retain(|id, _| !uncounted.contains(id));
        for (id, bounds) in bounds {
            metrics
                .lower_bounds
                .extend(bounds.lower.known().and_then(truncated_below).map(|b| (id, b)));
            metrics
                .upper_bounds
                .extend(bounds.upper.known().and_then(truncated_above).map(|b| (id, b)));
        }
        Ok(metrics)
    }
}

/// The extreme seen so far.
#[derive(Debug, Default)]
enum Extreme {
    #[default]
    Nothing,
    Known(Datum),
    /// A row group has values but no usable statistic: no bound at all is better than a wrong one.
    Unknown,
}

impl Extreme {
    fn known(self) -> Option<Datum> {
        match self {
            Self::Known(datum) => Some(datum),
            Self::Nothing | Self::Unknown => None,
        }
    }

    fn take(&mut self, datum: Option<Datum>, is_better: fn(&Datum, &Datum) -> bool) {
        *self = match (std::mem::take(self), datum) {
            (Self::Unknown, _) | (_, None) => Self::Unknown,
            (Self::Known(best), Some(datum)) if !is_better(&datum, &best) => Self::Known(best),
            (_, Some(datum)) => Self::Known(datum),
        };
    }
}

#[derive(Debug, Default)]
struct Bounds {
    lower: Extreme,
    upper: Extreme,
}

impl Bounds {
    fn widen(&mut self, kind: &PrimitiveType, chunk: &ColumnChunkMetaData, all_null: bool) -> Result<()> {
        let statistics = chunk.statistics();
        let (lower, upper) = match statistics {
            Some(statistics) => extremes(kind, statistics)?,
            None => (None, None),
        };
        // Parquet keeps NaN out of its statistics, so a chunk of nothing else has none; it narrows nothing.
        let only_nan = matches!(kind, PrimitiveType::Float | PrimitiveType::Double)
            && statistics.is_some()
            && lower.is_none()
            && upper.is_none();
        if !all_null && !only_nan {
            self.lower.take(lower, |a, b| a < b);
            self.upper.take(upper, |a, b| a > b);
        }
        Ok(())
    }
}

/// Smallest and largest value of a chunk.
fn extremes(kind: &PrimitiveType, statistics: &Statistics) -> Result<(Option<Datum>, Option<Datum>)> {
    macro_rules! pair {
        ($statistics:expr, $bytes:expr) => {{
            let encode = $bytes;
            let datum = |bytes: Option<Vec<u8>>| -> Result<Option<Datum>> {
                bytes
                    .map(|bytes| Datum::try_from_bytes(&bytes, kind.clone()))
                    .transpose()
                    .map_err(caused(MEASURE, "a statistic is not a value of its column"))
            };
            (
                datum($statistics.min_opt().map(&encode))?,
                datum($statistics.max_opt().map(&encode))?,
            )
        }};
    }
    Ok(match (kind, statistics) {
        (PrimitiveType::Boolean, Statistics::Boolean(s)) => pair!(s, |v: &bool| vec![u8::from(*v)]),
        (PrimitiveType::Int | PrimitiveType::Date, Statistics::Int32(s)) => {
            pair!(s, |v: &i32| v.to_le_bytes().to_vec())
        }
        (
            PrimitiveType::Long
            | PrimitiveType::Time
            | PrimitiveType::Timestamp
            | PrimitiveType::Timestamptz
            | PrimitiveType::TimestampNs
            | PrimitiveType::TimestamptzNs,
            Statistics::Int64(s),
        ) => pair!(s, |v: &i64| v.to_le_bytes().to_vec()),
        (PrimitiveType::Float, Statistics::Float(s)) => pair!(s, |v: &f32| v.to_le_bytes().to_vec()),
        (PrimitiveType::Double, Statistics::Double(s)) => pair!(s, |v: &f64| v.to_le_bytes().to_vec()),
        (PrimitiveType::Decimal { .. }, Statistics::Int32(s)) => {
            pair!(s, |v: &i32| i128::from(*v).to_be_bytes().to_vec())
        }
        (PrimitiveType::Decimal { .. }, Statistics::Int64(s)) => {
            pair!(s, |v: &i64| i128::from(*v).to_be_bytes().to_vec())
        }
        (
            PrimitiveType::Decimal { .. } | PrimitiveType::Uuid | PrimitiveType::Fixed(_),
            Statistics::FixedLenByteArray(s),
        ) if s.min_is_exact() && s.max_is_exact() => {
            pair!(s, |v: &parquet::data_type::FixedLenByteArray| v.data().to_vec())
        }
        (PrimitiveType::String | PrimitiveType::Binary, Statistics::ByteArray(s)) => {
            pair!(s, |v: &parquet::data_type::ByteArray| v.data().to_vec())
        }
        _ => (None, None),
    })
}

/// A lower bound of at most [`BOUND_LENGTH`] characters or bytes.
fn truncated_below(bound: Datum) -> Option<Datum> {
    use iceberg::spec::PrimitiveLiteral::{Binary, String};
    Some(match (bound.data_type(), bound.literal()) {
        (PrimitiveType::String, String(text)) => match text.char_indices().nth(BOUND_LENGTH) {
            Some((end, _)) => Datum::string(&text[..end]),
            None => bound,
        },
        (PrimitiveType::Binary, Binary(bytes)) if bytes.len() > BOUND_LENGTH => {
            Datum::binary(bytes[..BOUND_LENGTH].iter().copied())
        }
        _ => bound,
    })
}

/// An upper bound of at most [`BOUND_LENGTH`] characters or bytes; none if no short value is large enough.
fn truncated_above(bound: Datum) -> Option<Datum> {
    use iceberg::spec::PrimitiveLiteral::{Binary, String};
    match (bound.data_type(), bound.literal()) {
        (PrimitiveType::String, String(text)) => match text.char_indices().nth(BOUND_LENGTH) {
            Some((end, _)) => next_text(&text[..end]).map(Datum::string),
            None => Some(bound),
        },
        (PrimitiveType::Binary, Binary(bytes)) if bytes.len() > BOUND_LENGTH => {
            next_bytes(&bytes[..BOUND_LENGTH]).map(Datum::binary)
        }
        _ => Some(bound),
    }
}

/// The smallest text, not longer, above everything that starts with `prefix`.
fn next_text(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match last {
            char::MAX => continue,
            '\u{D7FF}' => Some('\u{E000}'), // surrogates are no characters
            c => char::from_u32(u32::from(c) + 1),
        };
        chars.push(next?);
        return Some(chars.into_iter().collect());
    }
    None
}

/// The smallest bytes, not longer, above everything that starts with `prefix`.
fn next_bytes(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut bytes = prefix[..=kept].to_vec();
    bytes[kept] += 1;
    Some(bytes)
}

/// NaNs per float and double column. Only outside lists and maps: inside them there are no bounds that a
/// reader would have to be careful with.
pub(super) fn count_nans(batches: &[RecordBatch]) -> Result<HashMap<i32, u64>> {
    let mut counts = HashMap::new();
    for batch in batches {
        let has_floats = batch
            .schema_ref()
            .fields()
            .iter()
            .any(|field| holds_floats(field.data_type()));
        if !has_floats {
            continue;
        }
        for (id, column) in flat_columns(batch)? {
            let nans = match column.data_type() {
                DataType::Float32 => column
                    .as_primitive::<Float32Type>()
                    .iter()
                    .flatten()
                    .filter(|v| v.is_nan())
                    .count(),
                DataType::Float64 => column
                    .as_primitive::<Float64Type>()
                    .iter()
                    .flatten()
                    .filter(|v| v.is_nan())
                    .count(),
                _ => continue,
            };
            *counts.entry(id).or_default() += nans as u64;
        }
    }
    Ok(counts)
}

fn holds_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float32 | DataType::Float64 => true,
        DataType::Struct(children) => children.iter().any(|child| holds_floats(child.data_type())),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_bounds_are_the_next_short_value() {
        let text = |prefix: &str, expected: Option<&str>| {
            assert_eq!(next_text(prefix).as_deref(), expected, "{prefix:?}");
        };
        text("abc", Some("abd"));
        text("ab\u{10FFFF}", Some("ac"));
        text("a\u{D7FF}", Some("a\u{E000}"));
        text("é\u{10FFFF}\u{10FFFF}", Some("ê"));
        text("\u{10FFFF}\u{10FFFF}", None);
        text("", None);
        assert_eq!(next_bytes(&[1, 2, 255]), Some(vec![1, 3]));
        assert_eq!(next_bytes(&[255, 255]), None);
    }
}
