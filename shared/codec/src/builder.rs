use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int32Array, Int64Array, LargeBinaryArray, ListArray, MapArray, StringArray, StructArray,
    Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow_buffer::{
    BooleanBuffer, BooleanBufferBuilder, Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer,
};
use arrow_schema::{ArrowError, DataType, Field, Fields};
use frazil_schema::ColumnType;
use iceberg::spec::PrimitiveType;

use crate::fault::{Decoded, Fault};
use crate::hash::{HashKey, hash};

/// One column of one event may have this many bytes, or elements. An event has 6 MB, but what it has may stand for far
/// more than itself: a byte for a symbol of an enum, field names in a text.
const MAX_COLUMN_BYTES: usize = 256 << 20;

/// A growing column. Unlike Arrow's own builders it can be cut back to any length after a value has been pushed
/// half, which is how a poison record leaves no trace.
#[derive(Debug)]
pub(crate) struct Builder {
    validity: NullBufferBuilder,
    pub(crate) values: Values,
    /// The column holds hashes of the values, made when it is finished: decoders need not know.
    hashed: bool,
}

#[derive(Debug)]
pub(crate) enum Values {
    Boolean(BooleanBufferBuilder),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Decimal {
        values: Vec<i128>,
        precision: u8,
        scale: i8,
    },
    Date(Vec<i32>),
    /// Microseconds since midnight.
    Time(Vec<i64>),
    Timestamp {
        values: Vec<i64>,
        utc: bool,
    },
    Text(Bytes),
    Binary(Bytes),
    Struct(Vec<Builder>),
    List(Items),
    Map {
        items: Items,
        /// Never null.
        keys: Box<Builder>,
    },
}

/// Byte strings, one after the other.
#[derive(Debug)]
pub(crate) struct Bytes {
    ends: Vec<i32>,
    pub(crate) data: Vec<u8>,
}

/// Lists of elements, one after the other.
#[derive(Debug)]
pub(crate) struct Items {
    ends: Vec<i32>,
    pub(crate) element: Box<Builder>,
}

impl Bytes {
    pub(crate) fn new() -> Self {
        Self {
            ends: vec![0],
            data: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Decoded<()> {
        self.data.extend_from_slice(bytes);
        self.end()
    }

    /// Ends a string whose bytes were added to `data`.
    #[inline]
    pub(crate) fn end(&mut self) -> Decoded<()> {
        self.ends.push(end(self.data.len())?);
        Ok(())
    }

    fn push_empty(&mut self) {
        self.ends.push(self.ends.last().copied().unwrap_or(0));
    }

    fn truncate(&mut self, len: usize) {
        self.ends.truncate(len + 1);
        self.data.truncate(length(&self.ends));
    }

    fn take(&mut self) -> (OffsetBuffer<i32>, Buffer) {
        let ends = std::mem::replace(&mut self.ends, vec![0]);
        (
            OffsetBuffer::new(ScalarBuffer::from(ends)),
            Buffer::from_vec(std::mem::take(&mut self.data)),
        )
    }
}

impl Items {
    /// Ends a list whose elements were pushed.
    #[inline]
    pub(crate) fn end(&mut self) -> Decoded<()> {
        self.ends.push(end(self.element.len())?);
        Ok(())
    }

    fn push_empty(&mut self) {
        self.ends.push(self.ends.last().copied().unwrap_or(0));
    }

    fn truncate(&mut self, len: usize) {
        self.ends.truncate(len + 1);
        self.element.truncate(length(&self.ends));
    }

    fn take_ends(&mut self) -> OffsetBuffer<i32> {
        OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(&mut self.ends, vec![0])))
    }
}

#[inline]
fn end(len: usize) -> Decoded<i32> {
    match i32::try_from(len) {
        Ok(end) if len <= MAX_COLUMN_BYTES => Ok(end),
        _ => Err(too_large()),
    }
}

#[cold]
fn too_large() -> Box<Fault> {
    Fault::new(
        "batch.too_large",
        format!("one column of one event exceeds {MAX_COLUMN_BYTES} bytes"),
    )
    .with_hint("records that become so much larger than they are have enormous names in their schema")
}

fn length(ends: &[i32]) -> usize {
    ends.last().map_or(0, |end| usize::try_from(*end).unwrap_or(0))
}

impl Builder {
    pub(crate) fn new(data_type: &ColumnType) -> Self {
        use PrimitiveType as P;
        let values = match data_type {
            ColumnType::Primitive(primitive) | ColumnType::Hashed(primitive) => match primitive {
                P::Boolean => Values::Boolean(BooleanBufferBuilder::new(0)),
                P::Int => Values::Int(Vec::new()),
                P::Long => Values::Long(Vec::new()),
                P::Float => Values::Float(Vec::new()),
                P::Double => Values::Double(Vec::new()),
                P::Decimal { precision, scale } => Values::Decimal {
                    values: Vec::new(),
                    precision: u8::try_from(*precision).unwrap_or(38),
                    scale: i8::try_from(*scale).unwrap_or(0),
                },
                P::Date => Values::Date(Vec::new()),
                P::Timestamp => Values::Timestamp {
                    values: Vec::new(),
                    utc: false,
                },
                P::Timestamptz => Values::Timestamp {
                    values: Vec::new(),
                    utc: true,
                },
                P::Time => Values::Time(Vec::new()),
                P::Binary | P::Fixed(_) => Values::Binary(Bytes::new()),
                P::String | P::Uuid | P::TimestampNs | P::TimestamptzNs => Values::Text(Bytes::new()),
            },
            ColumnType::Struct(columns) => Values::Struct(
                columns
                    .iter()
                    .map(|column| Self::new(&column.data_type))
                    .collect(),
            ),
            ColumnType::List(element) => Values::List(Items {
                ends: vec![0],
                element: Box::new(Self::new(element)),
            }),
            ColumnType::Map(key, value) => Values::Map {
                items: Items {
                    ends: vec![0],
                    element: Box::new(Self::new(value)),
                },
                keys: Box::new(Self::new(key)),
            },
        };
        Self {
            validity: NullBufferBuilder::new(0),
            values,
            hashed: matches!(data_type, ColumnType::Hashed(_)),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.validity.len()
    }

    /// Whether finishing the column needs the key of hashed columns.
    pub(crate) fn is_hashed(&self) -> bool {
        self.hashed
            || match &self.values {
                Values::Struct(children) => children.iter().any(Self::is_hashed),
                Values::List(items) | Values::Map { items, .. } => items.element.is_hashed(),
                _ => false,
            }
    }

    /// Marks the value that was pushed into `values` as complete.
    #[inline]
    pub(crate) fn valid(&mut self) {
        self.validity.append_non_null();
    }

    /// Pushes a string, such as the key of a map, into a column of strings.
    #[inline]
    pub(crate) fn push_text(&mut self, text: &str) -> Decoded<()> {
        let Values::Text(values) = &mut self.values else {
            return Err(mismatch());
        };
        values.push(text.as_bytes())?;
        self.valid();
        Ok(())
    }

    pub(crate) fn push_null(&mut self) {
        match &mut self.values {
            Values::Boolean(values) => values.append(false),
            Values::Int(values) | Values::Date(values) => values.push(0),
            Values::Long(values) | Values::Time(values) | Values::Timestamp { values, .. } => values.push(0),
            Values::Float(values) => values.push(0.0),
            Values::Double(values) => values.push(0.0),
            Values::Decimal { values, .. } => values.push(0),
            Values::Text(values) | Values::Binary(values) => values.push_empty(),
            Values::Struct(children) => children.iter_mut().for_each(Self::push_null),
            Values::List(items) | Values::Map { items, .. } => items.push_empty(),
        }
        self.validity.append_null();
    }

    /// Cuts the column back to `len` values, whatever was pushed after them.
    pub(crate) fn truncate(&mut self, len: usize) {
        match &mut self.values {
            Values::Boolean(values) => values.truncate(len),
            Values::Int(values) | Values::Date(values) => values.truncate(len),
            Values::Long(values) | Values::Time(values) | Values::Timestamp { values, .. } => {
                values.truncate(len)
            }
            Values::Float(values) => values.truncate(len),
            Values::Double(values) => values.truncate(len),
            Values::Decimal { values, .. } => values.truncate(len),
            Values::Text(values) | Values::Binary(values) => values.truncate(len),
            Values::Struct(children) => children.iter_mut().for_each(|child| child.truncate(len)),
            Values::List(items) => items.truncate(len),
            Values::Map { items, keys } => {
                items.truncate(len);
                keys.truncate(items.element.len());
            }
        }
        self.validity.truncate(len);
    }

    /// The column as an array, with stand-in names inside: projection gives it the table's. A hashed one needs the
    /// key.
    pub(crate) fn finish(&mut self, key: Option<&HashKey>) -> Result<ArrayRef, ArrowError> {
        let array = self.finish_values(key)?;
        if !self.hashed {
            return Ok(array);
        }
        match key {
            Some(key) => Ok(Arc::new(hash(&array, key)?)),
            None => Err(ArrowError::ComputeError(
                "a column is hashed, and there is no key".to_owned(),
            )),
        }
    }

    fn finish_values(&mut self, key: Option<&HashKey>) -> Result<ArrayRef, ArrowError> {
        let len = self.len();
        let nulls = self.validity.finish();
        Ok(match &mut self.values {
            Values::Boolean(values) => {
                let values: BooleanBuffer = values.finish();
                Arc::new(BooleanArray::new(values, nulls))
            }
            Values::Int(values) => Arc::new(Int32Array::try_new(std::mem::take(values).into(), nulls)?),
            Values::Date(values) => Arc::new(Date32Array::try_new(std::mem::take(values).into(), nulls)?),
            Values::Time(values) => Arc::new(Time64MicrosecondArray::try_new(
                std::mem::take(values).into(),
                nulls,
            )?),
            Values::Long(values) => Arc::new(Int64Array::try_new(std::mem::take(values).into(), nulls)?),
            Values::Float(values) => Arc::new(Float32Array::try_new(std::mem::take(values).into(), nulls)?),
            Values::Double(values) => Arc::new(Float64Array::try_new(std::mem::take(values).into(), nulls)?),
            Values::Timestamp { values, utc } => {
                let array = TimestampMicrosecondArray::try_new(std::mem::take(values).into(), nulls)?;
                Arc::new(if *utc {
                    array.with_timezone("+00:00")
                } else {
                    array
                })
            }
            Values::Decimal {
                values,
                precision,
                scale,
            } => Arc::new(
                Decimal128Array::try_new(std::mem::take(values).into(), nulls)?
                    .with_precision_and_scale(*precision, *scale)?,
            ),
            Values::Text(values) => {
                let (ends, data) = values.take();
                Arc::new(StringArray::try_new(ends, data, nulls)?)
            }
            Values::Binary(values) => {
                let (ends, data) = values.take();
                Arc::new(large(&BinaryArray::try_new(ends, data, nulls)?))
            }
            Values::Struct(children) => {
                let arrays = children
                    .iter_mut()
                    .map(|child| child.finish(key))
                    .collect::<Result<Vec<_>, _>>()?;
                let fields: Fields = arrays.iter().map(stand_in).collect();
                Arc::new(StructArray::try_new_with_length(fields, arrays, nulls, len)?)
            }
            Values::List(items) => {
                let element = items.element.finish(key)?;
                Arc::new(ListArray::try_new(
                    Arc::new(stand_in(&element)),
                    items.take_ends(),
                    element,
                    nulls,
                )?)
            }
            Values::Map { items, keys } => {
                let keys = keys.finish(None)?;
                let values = items.element.finish(key)?;
                let fields: Fields = vec![stand_in(&keys).with_nullable(false), stand_in(&values)].into();
                let entries = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
                let entry = Arc::new(Field::new("", DataType::Struct(fields), false));
                Arc::new(MapArray::try_new(
                    entry,
                    items.take_ends(),
                    entries,
                    nulls,
                    false,
                )?)
            }
        })
    }
}

/// A decoder and its columns are made from the same schema, so they always match.
#[cold]
pub(crate) fn mismatch() -> Box<Fault> {
    Fault::new("internal.column_mismatch", "the column was made for another type")
}

fn stand_in(array: &ArrayRef) -> Field {
    Field::new("", array.data_type().clone(), true)
}

/// Iceberg's binary is Arrow's large binary; building it with short offsets is half the memory.
fn large(array: &BinaryArray) -> LargeBinaryArray {
    let ends: Vec<i64> = array.offsets().iter().map(|end| i64::from(*end)).collect();
    LargeBinaryArray::new(
        OffsetBuffer::new(ScalarBuffer::from(ends)),
        array.values().clone(),
        array.nulls().cloned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_bounded() {
        assert_eq!(end(268_435_456).ok(), Some(268_435_456));
        let fault = end(268_435_457).unwrap_err();
        assert_eq!(fault.into_error().code(), Some("batch.too_large"));
    }
}
