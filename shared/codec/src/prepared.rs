use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use frazil_core::{Error, ErrorKind, Result};
use frazil_schema::{
    Column, ColumnCase, ColumnType, FieldMap, JsonShape, MAX_COLUMNS, Mapping, RecordPart, SourceSchema,
};
use iceberg::spec::Schema;

use crate::builder::{Builder, Values};
use crate::decoder::{Context, Plan};
use crate::fault::Decoded;
use crate::json::{self, Concealed, ObjectPlan, Tape};
use crate::{EncodedRecord, HashKey, Payload, TimestampRange};

/// What decoding depends on besides the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeOptions<'a> {
    /// Which instants are believed.
    pub timestamp_range: TimestampRange,
    /// How many value columns inferred JSON may give a table.
    pub max_columns: usize,
    /// The key of hashed columns, for topics whose settings hash a field.
    pub hash_key: Option<HashKey>,
    /// The settings of a topic whose columns come from what arrives. A schema has them in it.
    pub mapping: &'a Mapping,
    /// What becomes of fields that a record has and its schema does not.
    pub unknown_fields: UnknownFields,
    /// The column of records without a format.
    pub raw: RawColumn,
    /// The part of the records that is decoded. A key of inferred JSON may be a single value, or a list: it is the
    /// column `key`.
    pub part: RecordPart,
}

/// What becomes of fields that a record has and its schema does not. Inferred JSON has no schema: it keeps all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownFields {
    /// They are counted.
    #[default]
    Count,
    /// They are counted, and the JSON text of those at the top is kept in `_kafka_unknown_fields`.
    Collect,
    /// The record is poison.
    Fail,
}

/// The type of the one column, `value`, of records without a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RawColumn {
    /// The bytes.
    #[default]
    Binary,
    /// The bytes as text; what is not UTF-8 is poison.
    String,
}

/// No settings.
static UNMAPPED: Mapping = Mapping {
    column_case: ColumnCase::Lower,
    utc_naive: false,
    native_time: false,
    oneof_case: false,
    fields: BTreeMap::new(),
};

impl Default for DecodeOptions<'_> {
    fn default() -> Self {
        Self {
            timestamp_range: TimestampRange::default(),
            max_columns: MAX_COLUMNS,
            hash_key: None,
            mapping: &UNMAPPED,
            unknown_fields: UnknownFields::default(),
            raw: RawColumn::default(),
            part: RecordPart::Value,
        }
    }
}

/// A record that cannot be read.
#[derive(Debug)]
pub struct PoisonRecord {
    /// Its index among the records.
    pub index: usize,
    /// Why, with a stable code.
    pub error: Error,
}

/// The decoded records of one topic in one event. First it says which columns they need; once the table has those,
/// it makes the table's batch of them.
#[derive(Debug)]
pub struct Prepared<'a> {
    pub(crate) records: &'a [EncodedRecord<'a>],
    pub(crate) options: DecodeOptions<'a>,
    pub(crate) writers: Vec<Writer<'a>>,
    pub(crate) rows: Vec<Row>,
    pub(crate) poison: Vec<PoisonRecord>,
    unknown_fields: u64,
    /// The same records' keys as columns, with as many rows, if they are wanted.
    pub(crate) keys: Option<Box<Prepared<'a>>>,
}

/// Where a good record's value is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) record: usize,
    pub(crate) writer: usize,
    pub(crate) row: usize,
}

/// The records of one writer schema, or all those of inferred JSON.
#[derive(Debug)]
pub(crate) enum Writer<'a> {
    Encoded {
        columns: Cow<'a, [Column]>,
        arrays: Vec<ArrayRef>,
        len: usize,
    },
    Json {
        tape: Tape<'a>,
        shape: JsonShape,
        roots: Vec<Option<usize>>,
    },
    /// Only tombstones came.
    Nothing { len: usize },
}

/// Decodes the records of one topic in one event, which must be in the order in which the rows are to be.
///
/// A record that cannot be decoded is poison and leaves its neighbours alone. Cost: O(bytes).
///
/// # Errors
/// `Invalid` if a column is hashed and the options have no key, or if the settings ask inferred JSON for what it cannot
/// be; else `Internal` only. What is wrong with a record is
/// in [`Prepared::poison`].
pub fn prepare<'a>(records: &'a [EncodedRecord<'a>], options: DecodeOptions<'a>) -> Result<Prepared<'a>> {
    if records
        .iter()
        .any(|record| matches!(record.payload, Payload::Json(_)))
    {
        options.mapping.check_inferred()?;
    }
    let mut decoders: Vec<Decoder<'a>> = Vec::new();
    let mut rows = Vec::with_capacity(records.len());
    let mut poison = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let decoded = timestamp(record, &options.timestamp_range).and_then(|()| {
            let writer = decoder_of(&mut decoders, records, index, options);
            Ok((writer, decoders[writer].push(record.payload)?))
        });
        match decoded {
            Ok((writer, row)) => rows.push(Row {
                record: index,
                writer,
                row,
            }),
            Err(fault) => poison.push(PoisonRecord {
                index,
                error: fault.into_error(),
            }),
        }
    }
    if options.hash_key.is_none() && decoders.iter().any(Decoder::is_hashed) {
        return Err(Error::new(
            ErrorKind::Invalid,
            "hash a column",
            "the topic's settings hash a field, and there is no secret to hash it with",
        )
        .with_code("settings.hash_key_missing"));
    }
    let unknown_fields = decoders.iter().map(Decoder::unknown_fields).sum();
    let writers = decoders
        .into_iter()
        .map(|decoder| decoder.finish(options.hash_key.as_ref()))
        .collect::<Result<_, _>>()
        .map_err(internal)?;
    Ok(Prepared {
        records,
        options,
        writers,
        rows,
        poison,
        unknown_fields,
        keys: None,
    })
}

impl<'a> Prepared<'a> {
    /// Gives the rows columns of their records' keys too. `keys` are the same records in the same order, each with its
    /// key as the payload. A record whose key cannot be read is poison like one whose value cannot.
    #[must_use]
    pub fn with_keys(mut self, mut keys: Self) -> Self {
        let unreadable = keys.take_poison().into_iter().map(|poison| PoisonRecord {
            index: poison.index,
            error: poison.error.with_context("of", "key"),
        });
        self.poison.extend(unreadable);
        self.poison.sort_by_key(|poison| poison.index);
        self.poison.dedup_by_key(|poison| poison.index);
        let readable: HashSet<usize> = keys.rows().collect();
        self.rows.retain(|row| readable.contains(&row.record));
        let readable: HashSet<usize> = self.rows().collect();
        keys.rows.retain(|row| readable.contains(&row.record));
        self.keys = Some(Box::new(keys));
        self
    }

    /// The columns that the records need, one list per writer schema in the order of their coming, given what the
    /// table has (inferred JSON depends on it; Avro does not). To be passed to [`frazil_schema::evolve`].
    pub fn columns(&self, table: Option<(&Schema, &FieldMap)>) -> Vec<Cow<'a, [Column]>> {
        let mut lists = self.own_columns(table);
        if let Some(keys) = &self.keys {
            lists.extend(keys.key_columns(table));
        }
        lists
    }

    /// The columns of keys: they feed columns of their own, whatever the value's fields are called.
    fn key_columns(&self, table: Option<(&Schema, &FieldMap)>) -> Vec<Cow<'a, [Column]>> {
        let lists = self.own_columns(table).into_iter();
        lists
            .map(|list| Cow::Owned(list.iter().map(Column::of_key).collect()))
            .collect()
    }

    pub(crate) fn own_columns(&self, table: Option<(&Schema, &FieldMap)>) -> Vec<Cow<'a, [Column]>> {
        let DecodeOptions {
            part,
            max_columns,
            mapping,
            ..
        } = self.options;
        self.writers
            .iter()
            .map(|writer| match writer {
                Writer::Encoded { columns, .. } => columns.clone(),
                Writer::Json { shape, .. } => Cow::Owned(shape.columns_of(part, table, max_columns, mapping)),
                Writer::Nothing { .. } => Cow::Borrowed(&[][..]),
            })
            .collect()
    }

    /// The records that cannot be read, by index.
    pub fn poison(&self) -> &[PoisonRecord] {
        &self.poison
    }

    /// Hands the records that cannot be read over, for a caller that goes on with the others.
    pub fn take_poison(&mut self) -> Vec<PoisonRecord> {
        std::mem::take(&mut self.poison)
    }

    /// How many fields the records have that their schemas do not.
    pub fn unknown_fields(&self) -> u64 {
        self.unknown_fields
    }

    /// The indexes of the records that the batch has, in the order of its rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.rows.iter().map(|row| row.record)
    }

    /// Keeps only those rows whose record index `keep` says yes to: under `on_error = "suspend"` what comes before
    /// the first poison record of a partition.
    pub fn retain(&mut self, mut keep: impl FnMut(usize) -> bool) {
        self.rows.retain(|row| keep(row.record));
        if let Some(keys) = &mut self.keys {
            let kept: HashSet<usize> = self.rows.iter().map(|row| row.record).collect();
            keys.rows.retain(|row| kept.contains(&row.record));
        }
    }
}

impl Writer<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Encoded { len, .. } | Self::Nothing { len } => *len,
            Self::Json { roots, .. } => roots.len(),
        }
    }
}

/// Fills the columns of a JSON writer.
pub(crate) fn fill_json(
    tape: &Tape<'_>,
    roots: &[Option<usize>],
    columns: &[Column],
) -> Result<Vec<ArrayRef>> {
    let plan = ObjectPlan::new(columns);
    let mut builders: Vec<Builder> = columns
        .iter()
        .map(|column| Builder::new(&column.data_type))
        .collect();
    for root in roots {
        // Every value was parsed before, so what fails here is not the record's fault.
        plan.push_row(tape, *root, &mut builders)
            .map_err(|fault| internal(fault.into_error()))?;
    }
    builders
        .iter_mut()
        .map(|builder| builder.finish(None))
        .collect::<Result<_, _>>()
        .map_err(internal)
}

enum Decoder<'a> {
    Encoded(Box<Encoded<'a>>),
    Json {
        part: RecordPart,
        tape: Tape<'a>,
        concealed: Concealed,
        roots: Vec<Option<usize>>,
    },
    Nothing {
        len: usize,
    },
}

/// Decodes the records of one schema, or all those without a format.
struct Encoded<'a> {
    schema: Option<&'a SourceSchema>,
    plan: Plan,
    columns: Cow<'a, [Column]>,
    builders: Vec<Builder>,
    context: Context,
    unknown_fields: u64,
    /// The unknown fields that are kept, row by row, once there are any.
    collected: Option<Builder>,
    len: usize,
}

/// The decoder for the record's payload, made if there is none. Tombstones are rows of the first one, so that a
/// topic with one schema needs no reordering.
fn decoder_of<'a>(
    decoders: &mut Vec<Decoder<'a>>,
    records: &[EncodedRecord<'a>],
    index: usize,
    options: DecodeOptions<'a>,
) -> usize {
    let payload = match records[index].payload {
        Payload::Tombstone if !decoders.is_empty() => return 0,
        Payload::Tombstone => records[index..]
            .iter()
            .map(|record| record.payload)
            .find(|payload| !matches!(payload, Payload::Tombstone))
            .unwrap_or(Payload::Tombstone),
        payload => payload,
    };
    let found = decoders.iter().rposition(|decoder| match (decoder, payload) {
        (Decoder::Encoded(encoded), Payload::Encoded { schema, .. }) => {
            encoded.schema.is_some_and(|own| std::ptr::eq(own, schema))
        }
        (Decoder::Encoded(encoded), Payload::Raw(_)) => encoded.schema.is_none(),
        (Decoder::Json { .. }, Payload::Json(_)) | (Decoder::Nothing { .. }, Payload::Tombstone) => true,
        _ => false,
    });
    found.unwrap_or_else(|| {
        decoders.push(match payload {
            Payload::Encoded { schema, .. } => Decoder::Encoded(Box::new(Encoded::new(
                Some(schema),
                Plan::new(schema),
                Cow::Borrowed(schema.columns()),
                options,
            ))),
            Payload::Raw(_) => Decoder::Encoded(Box::new(Encoded::new(
                None,
                Plan::Raw,
                Cow::Owned(vec![options.raw.column()]),
                options,
            ))),
            Payload::Json(_) => Decoder::Json {
                part: options.part,
                tape: Tape::default(),
                concealed: Concealed::new(options.mapping, options.hash_key),
                roots: Vec::new(),
            },
            Payload::Tombstone => Decoder::Nothing { len: 0 },
        });
        decoders.len() - 1
    })
}

impl<'a> Decoder<'a> {
    /// Appends a row and answers its index. On an error nothing is appended.
    fn push(&mut self, payload: Payload<'a>) -> Decoded<usize> {
        match (self, payload) {
            (Self::Encoded(encoded), Payload::Encoded { body, .. } | Payload::Raw(body)) => {
                encoded.push(Some(body))
            }
            (Self::Encoded(encoded), _) => encoded.push(None),
            (
                Self::Json {
                    part,
                    tape,
                    concealed,
                    roots,
                },
                Payload::Json(document),
            ) => {
                let root = match part {
                    RecordPart::Key if !json::is_object_or_null(document) => {
                        tape.parse_as_field(document, concealed)?
                    }
                    RecordPart::Key | RecordPart::Value => tape.parse(document, concealed)?,
                };
                match tape.node(root) {
                    json::Node::Object { .. } | json::Node::Null => {}
                    _ => return Err(json::not_an_object()),
                }
                roots.push(Some(root));
                Ok(roots.len() - 1)
            }
            (Self::Json { roots, .. }, _) => {
                roots.push(None);
                Ok(roots.len() - 1)
            }
            (Self::Nothing { len }, _) => {
                *len += 1;
                Ok(*len - 1)
            }
        }
    }

    fn is_hashed(&self) -> bool {
        match self {
            Self::Encoded(encoded) => encoded.builders.iter().any(Builder::is_hashed),
            Self::Json { concealed, .. } => concealed.hashes(),
            Self::Nothing { .. } => false,
        }
    }

    fn unknown_fields(&self) -> u64 {
        match self {
            Self::Encoded(encoded) => encoded.unknown_fields,
            Self::Json { .. } | Self::Nothing { .. } => 0,
        }
    }

    fn finish(self, key: Option<&HashKey>) -> Result<Writer<'a>, ArrowError> {
        Ok(match self {
            Self::Encoded(encoded) => encoded.finish(key)?,
            Self::Json { tape, roots, .. } => {
                let mut shape = JsonShape::default();
                for root in roots.iter().flatten() {
                    json::observe(&tape, *root, &mut shape);
                }
                Writer::Json { tape, shape, roots }
            }
            Self::Nothing { len } => Writer::Nothing { len },
        })
    }
}

impl<'a> Encoded<'a> {
    fn new(
        schema: Option<&'a SourceSchema>,
        plan: Plan,
        columns: Cow<'a, [Column]>,
        options: DecodeOptions<'_>,
    ) -> Self {
        let builders = columns
            .iter()
            .map(|column| Builder::new(&column.data_type))
            .collect();
        Self {
            schema,
            plan,
            columns,
            builders,
            context: Context::new(&options),
            unknown_fields: 0,
            collected: None,
            len: 0,
        }
    }

    /// Appends the row of a record, or one of nulls. On an error nothing is appended.
    fn push(&mut self, body: Option<&[u8]>) -> Decoded<usize> {
        self.context.clear();
        let pushed = match body {
            Some(body) => self
                .plan
                .decode(body, &mut self.builders, &mut self.context)
                .and_then(|()| self.push_collected()),
            None => {
                self.builders.iter_mut().for_each(Builder::push_null);
                self.push_collected()
            }
        };
        if let Err(fault) = pushed {
            self.builders
                .iter_mut()
                .for_each(|builder| builder.truncate(self.len));
            if let Some(collected) = &mut self.collected {
                collected.truncate(self.len);
            }
            return Err(fault);
        }
        self.unknown_fields += self.context.unknown_fields;
        self.len += 1;
        Ok(self.len - 1)
    }

    fn push_collected(&mut self) -> Decoded<()> {
        if self.context.collected.is_empty() {
            if let Some(column) = &mut self.collected {
                column.push_null();
            }
            return Ok(());
        }
        self.context.collected.push(b'}');
        let len = self.len;
        let column = self.collected.get_or_insert_with(|| {
            let mut column = Builder::new(&ColumnType::STRING);
            (0..len).for_each(|_| column.push_null());
            column
        });
        if let Values::Text(out) = &mut column.values {
            out.push(&self.context.collected)?;
            column.valid();
        }
        Ok(())
    }

    fn finish(mut self, key: Option<&HashKey>) -> Result<Writer<'a>, ArrowError> {
        if let Some(collected) = self.collected {
            self.columns.to_mut().push(Column::unknown_fields());
            self.builders.push(collected);
        }
        let arrays = self
            .builders
            .iter_mut()
            .map(|builder| builder.finish(key))
            .collect::<Result<_, _>>()?;
        Ok(Writer::Encoded {
            columns: self.columns,
            arrays,
            len: self.len,
        })
    }
}

fn timestamp(record: &EncodedRecord<'_>, range: &TimestampRange) -> Decoded<()> {
    kafka_timestamp(record, range).map(|_| ())
}

/// The record's `_kafka_timestamp` in microseconds.
pub(crate) fn kafka_timestamp(record: &EncodedRecord<'_>, range: &TimestampRange) -> Decoded<Option<i64>> {
    match record.timestamp_ms {
        None | Some(-1) => Ok(None),
        Some(millis) => range
            .micros(millis, frazil_schema::TimestampUnit::Millis)
            .map(Some)
            .map_err(|fault| fault.inside(frazil_schema::KafkaColumns::TIMESTAMP)),
    }
}

pub(crate) fn internal(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Internal, "build a record batch", error.to_string()).with_source(error)
}
