//! Which records may become rows by what a table is partitioned by: one wrong clock must not make thousands of
//! partitions.

use std::collections::{BTreeMap, HashSet};

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use frazil_schema::{Column, KafkaColumns};

use crate::fault::Fault;
use crate::instant::LIKELY_MICROS;
use crate::prepared::{PoisonRecord, Prepared, Writer, kafka_timestamp};
use crate::{TimestampRange, text};

impl Prepared<'_> {
    /// Makes poison of the records that have an instant or a date outside `range` in one of the top-level `columns`,
    /// by which the table is partitioned. Columns of other types, and null, are within. O(rows × columns).
    ///
    /// Another partition for such a row, that of null say, is no way out: engines skip files by the partition, which
    /// must be that of the column's value (Iceberg spec, “Partition Transforms”).
    pub fn bound_partitions(&mut self, columns: &[&str], range: TimestampRange) {
        let mut faults = BTreeMap::new();
        for name in columns {
            if *name == KafkaColumns::TIMESTAMP {
                self.outside_by_kafka(range, &mut faults);
                continue;
            }
            let is_of_value = self.outside(|column| column.name == *name, range, &mut faults);
            if let (false, Some(keys)) = (is_of_value, &self.keys) {
                let is_it = |column: &Column| {
                    let column = column.of_key().name;
                    column == *name || name.strip_prefix("key_") == Some(column.as_str())
                };
                keys.outside(is_it, range, &mut faults);
            }
        }
        if faults.is_empty() {
            return;
        }
        self.poison
            .extend(faults.into_iter().map(|(index, fault)| PoisonRecord {
                index,
                error: fault.into_error(),
            }));
        self.poison.sort_by_key(|poison| poison.index);
        let poison: HashSet<usize> = self.poison.iter().map(|poison| poison.index).collect();
        self.retain(|index| !poison.contains(&index));
    }

    /// Adds the records whose value is outside, in the first column that `is_it` says yes to. Answers whether there is one.
    fn outside(
        &self,
        is_it: impl Fn(&Column) -> bool,
        range: TimestampRange,
        faults: &mut BTreeMap<usize, Box<Fault>>,
    ) -> bool {
        let column_of = |writer: &Writer<'_>| match writer {
            Writer::Encoded { columns, arrays, .. } => columns
                .iter()
                .zip(arrays)
                .find(|(column, _)| is_it(column))
                .map(|(column, array)| (column.source.clone(), array.clone())),
            // Inferred JSON has neither instants nor dates.
            Writer::Json { .. } | Writer::Nothing { .. } => None,
        };
        let columns: Vec<Option<(String, ArrayRef)>> = self.writers.iter().map(column_of).collect();
        if columns.iter().all(Option::is_none) {
            return false;
        }
        for row in &self.rows {
            if let Some((source, array)) = &columns[row.writer]
                && let Some(fault) = value_outside(array, row.row, range)
            {
                faults.entry(row.record).or_insert_with(|| fault.inside(source));
            }
        }
        true
    }

    fn outside_by_kafka(&self, range: TimestampRange, faults: &mut BTreeMap<usize, Box<Fault>>) {
        for row in &self.rows {
            // What is beyond the topic's timestamp range is poison already.
            let of = kafka_timestamp(&self.records[row.record], &self.options.timestamp_range);
            if let Ok(Some(micros)) = of
                && !range.holds(micros)
            {
                let fault = instant_outside(micros).inside(KafkaColumns::TIMESTAMP);
                faults.entry(row.record).or_insert(fault);
            }
        }
    }
}

fn value_outside(array: &ArrayRef, row: usize, range: TimestampRange) -> Option<Box<Fault>> {
    if array.is_null(row) {
        return None;
    }
    match array.data_type() {
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().value(row);
            (!range.holds_date(days)).then(|| date_outside(days))
        }
        DataType::Timestamp(..) => {
            let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
            (!range.holds(micros)).then(|| instant_outside(micros))
        }
        _ => None,
    }
}

const CODE: &str = "value.outside_partition_range";
const CLOCK: &str =
    "correct the producer's clock, or widen `partition_range` and `frazil dead-letters TABLE --retry`";

#[cold]
fn date_outside(days: i32) -> Box<Fault> {
    let mut shown = Vec::new();
    text::date(days, &mut shown);
    Fault::new(CODE, message(&shown)).with_hint(CLOCK)
}

#[cold]
fn instant_outside(micros: i64) -> Box<Fault> {
    let mut shown = Vec::new();
    text::timestamp(micros, true, &mut shown);
    let fault = Fault::new(CODE, message(&shown));
    let wide = i128::from(micros);
    let likely = [
        ("1,000,000 times as long as", wide * 1_000_000),
        ("1,000 times as long as", wide * 1_000),
        ("a thousandth of", wide / 1_000),
        ("a millionth of", wide / 1_000_000),
    ]
    .into_iter()
    .find(|(_, micros)| LIKELY_MICROS.contains(micros));
    match likely {
        Some((factor, _)) => fault.with_hint(format!(
            "it looks like the producer counts in a unit {factor} what the schema says"
        )),
        None => fault.with_hint(CLOCK),
    }
}

fn message(shown: &[u8]) -> String {
    format!(
        "{} is outside the topic's partition_range, and the table is partitioned by it",
        String::from_utf8_lossy(shown)
    )
}
