use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::{Array, BooleanArray, Decimal128Array, Float64Array, StringArray, StructArray};
use bytes::Bytes;
use iceberg::spec::{ListType, StructType};
use proptest::prelude::*;

use super::*;

/// A file with a bit of everything: dictionary and plain pages, nulls, a list, a struct, two row groups.
fn sample(zstd_level: Option<i32>) -> Bytes {
    let schema = schema(kafka_fields().into_iter().chain([
        optional(10, "name", PrimitiveType::String),
        optional(11, "flag", PrimitiveType::Boolean),
        optional(
            12,
            "amount",
            PrimitiveType::Decimal {
                precision: 20,
                scale: 0,
            },
        ),
        optional(
            20,
            "list",
            ListType::new(optional(21, "element", PrimitiveType::Long)),
        ),
        optional(
            30,
            "point",
            StructType::new(vec![optional(31, "x", PrimitiveType::Double)]),
        ),
        optional(40, "unique", PrimitiveType::String),
    ]));
    let count = 300usize;
    let offsets: Vec<i64> = (0..count as i64).collect();
    let mut lists =
        ListBuilder::new(Int64Builder::new()).with_field(Arc::new(field(21, "element", DataType::Int64)));
    for row in 0..count {
        (0..row % 3).for_each(|value| lists.values().append_value(value as i64));
        lists.append(row % 5 != 0);
    }
    let lists = lists.finish();
    let point = fields([field(31, "x", DataType::Float64)]);
    let xs = Float64Array::from_iter((0..count).map(|row| (row % 4 != 0).then_some(row as f64)));
    let columns: Vec<(Field, ArrayRef)> = vec![
        (
            field(10, "name", DataType::Utf8),
            Arc::new(StringArray::from_iter(
                (0..count).map(|row| (row % 7 != 0).then(|| format!("n{}", row % 5))),
            )),
        ),
        (
            field(11, "flag", DataType::Boolean),
            Arc::new(BooleanArray::from_iter((0..count).map(|row| Some(row % 2 == 0)))),
        ),
        (
            field(12, "amount", DataType::Decimal128(20, 0)),
            Arc::new(
                Decimal128Array::from_iter_values((0..count).map(|row| row as i128 * 1_000_000_007))
                    .with_precision_and_scale(20, 0)
                    .expect("a decimal"),
            ),
        ),
        (field(20, "list", lists.data_type().clone()), Arc::new(lists)),
        (
            field(30, "point", DataType::Struct(point.clone())),
            Arc::new(StructArray::new(point, vec![Arc::new(xs)], None)),
        ),
        (
            field(40, "unique", DataType::Utf8),
            Arc::new(StringArray::from_iter_values(
                (0..count).map(|row| format!("value-{row}")),
            )),
        ),
    ];
    let rows = batch(kafka_columns(3, &offsets).into_iter().chain(columns));
    let settings = FileSettings {
        row_group_bytes: 6_000,
        zstd_level,
        ..FileSettings::default()
    };
    write(&schema, &[rows.slice(0, 200), rows.slice(200, 100)], &settings).bytes
}

/// Whatever comes in: rows or an `Internal` error.
fn read_anything(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    if let Err(error) = read_data_file(bytes.clone(), None) {
        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
    }
    if let Err(error) = offsets_of(bytes, PARTITION, OFFSET) {
        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
    }
}

proptest! {
    #[test]
    fn mutated_files_are_refused_or_read(
        compressed in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        let mut bytes = sample(compressed.then_some(1)).to_vec();
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        read_anything(&bytes);
    }

    #[test]
    fn mutated_footers_are_refused_or_read(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = sample(None).to_vec();
        let end = bytes.len() - 8;
        let length = u32::from_le_bytes(bytes[end..end + 4].try_into().expect("four bytes")) as usize;
        for (place, value) in changes {
            let place = end - length + place.index(length);
            bytes[place] = value;
        }
        read_anything(&bytes);
    }

    #[test]
    fn arbitrary_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), framed in any::<bool>()) {
        let mut file = bytes;
        if framed {
            let length = (file.len() as u32).to_le_bytes();
            file.splice(0..0, *b"PAR1");
            file.extend(length);
            file.extend(*b"PAR1");
        }
        read_anything(&file);
    }
}

#[test]
fn the_sample_itself_is_read() {
    for level in [None, Some(1)] {
        let rows = read_data_file(sample(level), None).expect("rows");
        assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 300);
    }
}

#[test]
fn a_footer_that_asks_for_too_much_is_refused_before_it_is_believed() {
    // A FileMetaData whose schema list announces 2^31 - 1 elements.
    let footer: &[u8] = &[0x15, 0x02, 0x19, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0x00];
    let mut file = b"PAR1".to_vec();
    file.extend(footer);
    file.extend((footer.len() as u32).to_le_bytes());
    file.extend(b"PAR1");
    let error = read_data_file(Bytes::from(file), None).expect_err("refused");
    assert_eq!(
        error.message(),
        "it is no Parquet file, or damaged: its footer is not intact"
    );
}
