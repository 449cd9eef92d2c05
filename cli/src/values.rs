//! Rows as JSON and as text.
//!
//! What JSON cannot hold exactly is a string: decimals, binary (base64), times. Timestamps are ISO 8601, with `Z` when
//! they are instants.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time64MicrosecondType, TimestampMicrosecondType, TimestampNanosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, Field, TimeUnit};
use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, TimeDelta};
use iceberg::spec::{PrimitiveType, Schema, Type};
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::document::{plain, table};

/// The widest a value is shown; JSON has all of it.
const MAX_CELL: usize = 36;

/// The fewest columns that are shown, however narrow the terminal.
const MIN_COLUMNS: usize = 3;

/// Rows of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Rows {
    /// The columns, in order.
    pub(crate) columns: Vec<String>,
    /// One object per row.
    pub(crate) rows: Vec<Map<String, Value>>,
}

impl Rows {
    /// The rows of a batch whose columns are those of the Iceberg schema, which knows uuids from other bytes.
    pub(crate) fn of(batch: &RecordBatch, schema: &Schema) -> Self {
        let columns: Vec<String> = batch
            .schema_ref()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect();
        let row = |row: usize| {
            let cells = columns
                .iter()
                .zip(batch.columns())
                .zip(batch.schema_ref().fields());
            cells
                .map(|((name, array), field)| (name.clone(), value(array.as_ref(), field, row, schema)))
                .collect()
        };
        Self {
            rows: (0..batch.num_rows()).map(row).collect(),
            columns,
        }
    }

    /// The rows as a table. What does not fit into `width` is left out in the middle.
    pub(crate) fn to_text(&self, width: Option<usize>) -> String {
        let cell = |row: &Map<String, Value>, column: &str| {
            shortened(&text(row.get(column).unwrap_or(&Value::Null)))
        };
        let widths: Vec<usize> = self
            .columns
            .iter()
            .map(|column| {
                let cells = self
                    .rows
                    .iter()
                    .map(|row| cell(row, column).chars().count())
                    .max()
                    .unwrap_or(0);
                cells.max(column.chars().count()) + 2
            })
            .collect();
        let (head, tail) = fitting(&widths, width.unwrap_or(usize::MAX));
        let left_out = self.columns.len() - head - tail;
        let shown = |all: Vec<String>| {
            let mut shown = all[..head].to_vec();
            if left_out > 0 {
                shown.push("…".to_owned());
            }
            shown.extend_from_slice(&all[all.len() - tail..]);
            shown
        };
        let headers = shown(self.columns.iter().map(|name| plain(name)).collect());
        let numbers: Vec<&str> = self
            .columns
            .iter()
            .filter(|column| {
                let mut values = self
                    .rows
                    .iter()
                    .filter_map(|row| row.get(*column))
                    .filter(|value| !value.is_null());
                values.clone().next().is_some() && values.all(Value::is_number)
            })
            .map(String::as_str)
            .collect();
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let rows = self
            .rows
            .iter()
            .map(|row| shown(self.columns.iter().map(|column| cell(row, column)).collect()));
        let mut text = table(&headers, &numbers, rows);
        if left_out > 0 {
            let all = self.columns.len();
            text.push_str(&format!(
                "({} of {all} columns; --columns a,b chooses)\n",
                all - left_out
            ));
        }
        text
    }
}

/// How many columns are shown from the left and from the right.
fn fitting(widths: &[usize], width: usize) -> (usize, usize) {
    // The last column's blanks may hang over.
    let width = width.saturating_add(2);
    if widths.iter().sum::<usize>() <= width {
        return (widths.len(), 0);
    }
    let (mut head, mut tail, mut used) = (0, 0, "…  ".chars().count());
    while head + tail < widths.len() {
        let from_left = head <= tail;
        let next = if from_left {
            widths[head]
        } else {
            widths[widths.len() - 1 - tail]
        };
        if used + next > width && head + tail >= MIN_COLUMNS.min(widths.len()) {
            break;
        }
        used += next;
        if from_left { head += 1 } else { tail += 1 }
    }
    (head, tail)
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => plain(text),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => plain(&value.to_string()),
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= MAX_CELL {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(MAX_CELL - 1).collect();
    short.push('…');
    short
}

/// One value. Depth is that of the table's schema.
fn value(array: &dyn Array, field: &Field, row: usize, schema: &Schema) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).into(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).into(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).into(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).into(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
        // By its own digits: 0.1 as a float is not 0.10000000149011612.
        DataType::Float32 => float(f64::from(array.as_primitive::<Float32Type>().value(row)), || {
            array.as_primitive::<Float32Type>().value(row).to_string()
        }),
        DataType::Float64 => {
            let number = array.as_primitive::<Float64Type>().value(row);
            float(number, || number.to_string())
        }
        DataType::Decimal128(_, _) => array.as_primitive::<Decimal128Type>().value_as_string(row).into(),
        DataType::Utf8 => array.as_string::<i32>().value(row).into(),
        DataType::LargeUtf8 => array.as_string::<i64>().value(row).into(),
        DataType::Binary => base64(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => base64(array.as_binary::<i64>().value(row)),
        DataType::FixedSizeBinary(_) => {
            let bytes = array.as_fixed_size_binary().value(row);
            match Uuid::from_slice(bytes) {
                Ok(uuid) if is_uuid(field, schema) => uuid.to_string().into(),
                Ok(_) | Err(_) => base64(bytes),
            }
        }
        DataType::Date32 => date(array.as_primitive::<Date32Type>().value(row)),
        DataType::Time64(TimeUnit::Microsecond) => {
            time(array.as_primitive::<Time64MicrosecondType>().value(row))
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            timestamp(DateTime::from_timestamp_micros(micros), zone.is_some(), micros)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let nanos = array.as_primitive::<TimestampNanosecondType>().value(row);
            timestamp(Some(DateTime::from_timestamp_nanos(nanos)), zone.is_some(), nanos)
        }
        DataType::List(element) => {
            let list = array.as_list::<i32>().value(row);
            (0..list.len())
                .map(|index| value(list.as_ref(), element, index, schema))
                .collect()
        }
        DataType::LargeList(element) => {
            let list = array.as_list::<i64>().value(row);
            (0..list.len())
                .map(|index| value(list.as_ref(), element, index, schema))
                .collect()
        }
        DataType::Struct(_) => object(array.as_struct(), row, schema).into(),
        DataType::Map(_, _) => {
            let entries = array.as_map().value(row);
            (0..entries.len())
                .map(|index| Value::Object(object(&entries, index, schema)))
                .collect()
        }
        _ => array_value_to_string(array, row).map_or(Value::Null, Value::from),
    }
}

fn object(of: &StructArray, row: usize, schema: &Schema) -> Map<String, Value> {
    let fields = of.fields().iter().zip(of.columns());
    fields
        .map(|(field, array)| (field.name().clone(), value(array.as_ref(), field, row, schema)))
        .collect()
}

fn is_uuid(field: &Field, schema: &Schema) -> bool {
    let id = field
        .metadata()
        .get("PARQUET:field_id")
        .and_then(|id| id.parse().ok());
    let of = id
        .and_then(|id| schema.field_by_id(id))
        .map(|field| field.field_type.as_ref());
    matches!(of, Some(Type::Primitive(PrimitiveType::Uuid)))
}

fn float(number: f64, digits: impl FnOnce() -> String) -> Value {
    let text = digits();
    match text.parse::<f64>().ok().and_then(serde_json::Number::from_f64) {
        Some(exact) if number.is_finite() => Value::Number(exact),
        Some(_) | None => text.into(), // NaN, inf, -inf
    }
}

fn base64(bytes: &[u8]) -> Value {
    base64_simd::STANDARD.encode_to_string(bytes).into()
}

fn date(days: i32) -> Value {
    let epoch = NaiveDate::default();
    match epoch.checked_add_signed(TimeDelta::days(i64::from(days))) {
        Some(date) => date.to_string().into(),
        None => format!("{days} days since 1970-01-01").into(),
    }
}

fn time(micros: i64) -> Value {
    let of_day = || {
        let seconds = u32::try_from(micros.div_euclid(1_000_000)).ok()?;
        let nanos = u32::try_from(micros.rem_euclid(1_000_000) * 1_000).ok()?;
        NaiveTime::from_num_seconds_from_midnight_opt(seconds, nanos)
    };
    of_day().map_or_else(|| format!("{micros} µs").into(), |time| time.to_string().into())
}

fn timestamp(at: Option<DateTime<chrono::Utc>>, is_instant: bool, raw: i64) -> Value {
    let Some(at) = at else { return raw.into() };
    let mut text = at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
    if !is_instant {
        text.truncate(text.len() - 1);
    }
    text.into()
}

#[cfg(test)]
mod tests;
