use arrow_array::builder::{Int64Builder, MapBuilder, StringBuilder};
use arrow_array::{
    Array, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float32Array,
    Float64Array, Int32Array, Int64Array, LargeBinaryArray, StringArray, StructArray, Time64MicrosecondArray,
    TimestampMicrosecondArray, types::Int32Type,
};
use arrow_buffer::NullBuffer;
use arrow_schema::TimeUnit;
use iceberg::spec::{Datum, ListType, MapType, StructType};
use parquet::basic::Encoding;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::*;

/// What a manifest should say about column 10: `[values, nulls, NaNs]` and the bounds as the bytes of the
/// specification (Iceberg spec, Appendix D).
fn check(kind: PrimitiveType, values: ArrayRef, counts: [Option<u64>; 3], bounds: Option<(&[u8], &[u8])>) {
    let schema = schema([optional(10, "v", kind.clone())]);
    let rows = batch([(field(10, "v", values.data_type().clone()), values)]);
    let file = write(&schema, &[rows], &FileSettings::default())
        .data_file("s3://b/f")
        .expect("a data file");
    let found = [
        file.value_counts(),
        file.null_value_counts(),
        file.nan_value_counts(),
    ];
    assert_eq!(
        found.map(|counts| counts.get(&10).copied()),
        counts,
        "counts of {kind}"
    );
    let bytes =
        |bounds: &HashMap<i32, Datum>| bounds.get(&10).map(|b| b.to_bytes().expect("bytes").into_vec());
    let (lower, upper) = (bytes(file.lower_bounds()), bytes(file.upper_bounds()));
    assert_eq!(lower.as_deref(), bounds.map(|b| b.0), "lower bound of {kind}");
    assert_eq!(upper.as_deref(), bounds.map(|b| b.1), "upper bound of {kind}");
}

fn counts(values: u64, nulls: u64) -> [Option<u64>; 3] {
    [Some(values), Some(nulls), None]
}

#[test]
fn bounds_of_fixed_width_types_are_the_bytes_of_the_specification() {
    use PrimitiveType::{Boolean, Date, Int, Long, Time, Timestamp, Timestamptz};
    check(
        Boolean,
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        counts(3, 1),
        Some((&[0], &[1])),
    );
    check(
        Int,
        Arc::new(Int32Array::from(vec![Some(-2), None, Some(258)])),
        counts(3, 1),
        Some((&[0xFE, 0xFF, 0xFF, 0xFF], &[2, 1, 0, 0])),
    );
    check(
        Long,
        Arc::new(Int64Array::from(vec![-1, 1 << 32])),
        counts(2, 0),
        Some((&[0xFF; 8], &[0, 0, 0, 0, 1, 0, 0, 0])),
    );
    check(
        Date,
        Arc::new(Date32Array::from(vec![-1, 20_000])),
        counts(2, 0),
        Some((&[0xFF; 4], &[0x20, 0x4E, 0, 0])),
    );
    check(
        Time,
        Arc::new(Time64MicrosecondArray::from(vec![1, 86_399_999_999])),
        counts(2, 0),
        Some((
            &[1, 0, 0, 0, 0, 0, 0, 0],
            &[0xFF, 0x5F, 0xD7, 0x1D, 0x14, 0, 0, 0],
        )),
    );
    let instants = TimestampMicrosecondArray::from(vec![Some(-1), Some(1_700_000_000_000_000), None]);
    let expected: (&[u8], &[u8]) = (&[0xFF; 8], &[0x00, 0x40, 0x1E, 0x18, 0x24, 0x0A, 0x06, 0x00]);
    check(
        Timestamp,
        Arc::new(instants.clone()),
        counts(3, 1),
        Some(expected),
    );
    for utc in ["+00:00", "UTC"] {
        check(
            Timestamptz,
            Arc::new(instants.clone().with_timezone(utc)),
            counts(3, 1),
            Some(expected),
        );
    }
}

#[test]
fn bounds_of_decimals_are_the_shortest_big_endian_bytes() {
    for (precision, scale) in [(9, 2), (18, 2), (38, 2)] {
        let values = Decimal128Array::from(vec![Some(-129), Some(1_234), None]);
        let values = values
            .with_precision_and_scale(precision, scale)
            .expect("a decimal");
        let kind = PrimitiveType::Decimal {
            precision: u32::from(precision),
            scale: 2,
        };
        check(
            kind,
            Arc::new(values),
            counts(3, 1),
            Some((&[0xFF, 0x7F], &[0x04, 0xD2])),
        );
    }
}

#[test]
fn bounds_of_floats_know_nan_and_the_sign_of_zero() {
    use PrimitiveType::{Double, Float};
    let with_nan = |values: u64, nulls: u64, nans: u64| [Some(values), Some(nulls), Some(nans)];
    check(
        Float,
        Arc::new(Float32Array::from(vec![
            Some(f32::NAN),
            Some(1.5),
            None,
            Some(-2.0),
        ])),
        with_nan(4, 1, 1),
        Some((&[0, 0, 0, 0xC0], &[0, 0, 0xC0, 0x3F])),
    );
    check(
        Double,
        Arc::new(Float64Array::from(vec![0.0, 0.0])),
        with_nan(2, 0, 0),
        Some((&[0, 0, 0, 0, 0, 0, 0, 0x80], &[0; 8])),
    );
    check(
        Double,
        Arc::new(Float64Array::from(vec![f64::NAN, f64::NAN])),
        with_nan(2, 0, 2),
        None,
    );
    check(
        Double,
        Arc::new(Float64Array::from(vec![None, None])),
        with_nan(2, 2, 0),
        None,
    );
}

#[test]
fn bounds_of_strings_and_binary_keep_sixteen() {
    use PrimitiveType::{Binary, String};
    let text = |values: Vec<&str>, bounds: Option<(&str, &str)>| {
        let count = counts(values.len() as u64, 0);
        let bounds = bounds.map(|(lower, upper)| (lower.as_bytes(), upper.as_bytes()));
        check(String, Arc::new(StringArray::from(values)), count, bounds);
    };
    text(vec!["b", "a"], Some(("a", "b")));
    text(vec!["", "0123456789abcdef"], Some(("", "0123456789abcdef")));
    text(
        vec!["0123456789abcdefg"],
        Some(("0123456789abcdef", "0123456789abcdeg")),
    );
    // Sixteen characters, not bytes; and longer than what Parquet's own statistics keep.
    let long = "é".repeat(90);
    text(
        vec![&long],
        Some((&"é".repeat(16), &format!("{}ê", "é".repeat(15)))),
    );

    let max = format!("{}z", "\u{10FFFF}".repeat(16));
    let schema = schema([optional(10, "v", String)]);
    let rows = batch([(
        field(10, "v", DataType::Utf8),
        Arc::new(StringArray::from(vec![max.as_str()])) as ArrayRef,
    )]);
    let file = write(&schema, &[rows], &FileSettings::default())
        .data_file("f")
        .expect("a data file");
    assert_eq!(file.upper_bounds().get(&10), None, "no short string is larger");
    assert_eq!(
        file.lower_bounds().get(&10),
        Some(&Datum::string("\u{10FFFF}".repeat(16)))
    );

    let (low, high) = ([0u8; 20], [0xFFu8; 15]);
    let both: Vec<&[u8]> = vec![&low, &high];
    check(
        Binary,
        Arc::new(LargeBinaryArray::from(both.clone())),
        counts(2, 0),
        Some((&[0; 16], &[0xFF; 15])),
    );
    check(
        Binary,
        Arc::new(BinaryArray::from(both)),
        counts(2, 0),
        Some((&[0; 16], &[0xFF; 15])),
    );
    let mut tail = [7u8; 20];
    tail[15] = 0xFF;
    let mut upper = vec![7u8; 15];
    upper[14] = 8;
    let mut lower = vec![7u8; 16];
    lower[15] = 0xFF;
    check(
        Binary,
        Arc::new(BinaryArray::from(vec![tail.as_slice()])),
        counts(1, 0),
        Some((&lower, &upper)),
    );
}

#[test]
fn widened_columns_are_written_and_bounded_as_the_wider_type() {
    check(
        PrimitiveType::Long,
        Arc::new(Int32Array::from(vec![5])),
        counts(1, 0),
        Some((&[5, 0, 0, 0, 0, 0, 0, 0], &[5, 0, 0, 0, 0, 0, 0, 0])),
    );
    let single = Float32Array::from(vec![1.5]);
    let double = 1.5f64.to_le_bytes();
    check(
        PrimitiveType::Double,
        Arc::new(single),
        [Some(1), Some(0), Some(0)],
        Some((&double, &double)),
    );
}

#[test]
fn bounds_span_row_groups() {
    let schema = schema([optional(10, "v", PrimitiveType::Long)]);
    let rows = |values: Vec<Option<i64>>| {
        batch([(
            field(10, "v", DataType::Int64),
            Arc::new(Int64Array::from(values)) as ArrayRef,
        )])
    };
    let settings = FileSettings {
        row_group_bytes: 1,
        ..FileSettings::default()
    };
    let file = write(
        &schema,
        &[
            rows(vec![Some(5)]),
            rows(vec![Some(0), None]),
            rows(vec![Some(-5)]),
        ],
        &settings,
    );
    let data_file = file.data_file("f").expect("a data file");
    assert_eq!(data_file.lower_bounds()[&10], Datum::long(-5));
    assert_eq!(data_file.upper_bounds()[&10], Datum::long(5));
    let reader = SerializedFileReader::new(file.bytes.clone()).expect("a reader");
    assert_eq!(reader.num_row_groups(), 3);
    let offsets = data_file.split_offsets().expect("split offsets").to_vec();
    assert_eq!(offsets.len(), 3);
    assert_eq!(offsets[0], 4, "after the magic");
    assert!(offsets.is_sorted());
}

#[test]
fn columns_in_structs_have_bounds_and_columns_in_lists_and_maps_do_not() {
    let item = StructType::new(vec![
        optional(21, "sku", PrimitiveType::String),
        optional(22, "price", PrimitiveType::Double),
    ]);
    let schema = schema([
        optional(
            10,
            "address",
            StructType::new(vec![
                optional(11, "zip", PrimitiveType::Long),
                optional(12, "lat", PrimitiveType::Double),
            ]),
        ),
        optional(20, "items", ListType::new(optional(23, "element", item))),
        optional(
            30,
            "tags",
            MapType::new(
                Arc::new(NestedField::map_key_element(31, PrimitiveType::String.into())),
                Arc::new(NestedField::map_value_element(
                    32,
                    PrimitiveType::Long.into(),
                    false,
                )),
            ),
        ),
    ]);
    let address_fields = fields([
        field(11, "zip", DataType::Int64),
        field(12, "lat", DataType::Float64),
    ]);
    // The second address is null; what lies under it must not count.
    let address = StructArray::new(
        address_fields.clone(),
        vec![
            Arc::new(Int64Array::from(vec![10, 99, 20])),
            Arc::new(Float64Array::from(vec![1.0, f64::NAN, f64::NAN])),
        ],
        Some(NullBuffer::from(vec![true, false, true])),
    );
    let item_fields = fields([
        field(21, "sku", DataType::Utf8),
        field(22, "price", DataType::Float64),
    ]);
    let items = StructArray::new(
        item_fields.clone(),
        vec![
            Arc::new(StringArray::from(vec!["a", "b"])),
            Arc::new(Float64Array::from(vec![1.0, f64::NAN])),
        ],
        None,
    );
    let element = Arc::new(field(23, "item", DataType::Struct(item_fields)));
    let items = arrow_array::ListArray::new(
        Arc::clone(&element),
        arrow_buffer::OffsetBuffer::from_lengths([2, 0, 0]),
        Arc::new(items),
        None,
    );
    let mut tags = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new())
        .with_keys_field(Arc::new(field(31, "keys", DataType::Utf8).with_nullable(false)))
        .with_values_field(Arc::new(field(32, "values", DataType::Int64)));
    for _ in 0..3 {
        tags.keys().append_value("k");
        tags.values().append_value(1);
        tags.append(true).expect("an entry");
    }
    let tags = tags.finish();
    let rows = batch([
        (
            field(10, "address", DataType::Struct(address_fields)),
            Arc::new(address) as ArrayRef,
        ),
        (field(20, "items", DataType::List(element)), Arc::new(items)),
        (field(30, "tags", tags.data_type().clone()), Arc::new(tags)),
    ]);
    let encoded = write(&schema, std::slice::from_ref(&rows), &FileSettings::default());
    let file = encoded.data_file("f").expect("a data file");

    let keys = |bounds: &HashMap<i32, Datum>| {
        let mut keys: Vec<i32> = bounds.keys().copied().collect();
        keys.sort_unstable();
        keys
    };
    assert_eq!(keys(file.lower_bounds()), [11, 12]);
    assert_eq!(
        (&file.lower_bounds()[&11], &file.upper_bounds()[&11]),
        (&Datum::long(10), &Datum::long(20))
    );
    assert_eq!(&file.upper_bounds()[&12], &Datum::double(1.0));
    assert_eq!(
        file.nan_value_counts(),
        &HashMap::from([(12, 1)]),
        "not the one under a null struct"
    );
    assert_eq!(file.null_value_counts()[&11], 1);
    let mut counted: Vec<i32> = file.value_counts().keys().copied().collect();
    counted.sort_unstable();
    assert_eq!(counted, [11, 12, 21, 22, 31, 32]);
    assert!(file.column_sizes().values().all(|&size| size > 0));

    let back = read_data_file(encoded.bytes.clone(), None).expect("rows");
    assert_eq!(back.len(), 1);
    assert_eq!(back[0].num_rows(), 3);
    let names: Vec<String> = (back[0].schema_ref().fields().iter())
        .map(|field| format!("{} {:?}", field.name(), field.metadata().get("PARQUET:field_id")))
        .collect();
    assert_eq!(
        names,
        [
            r#"address Some("10")"#,
            r#"items Some("20")"#,
            r#"tags Some("30")"#
        ]
    );
    // A read file can be written again, to the same bytes.
    let again = write(&schema, &back, &FileSettings::default());
    assert_eq!(again.bytes, encoded.bytes);
}

#[test]
fn the_manifest_entry_has_the_exact_size_and_the_place() {
    let schema = schema(kafka_fields());
    let settings = FileSettings {
        sort_order_id: Some(3),
        ..FileSettings::default()
    };
    let file = write(
        &schema,
        &[
            batch(kafka_columns(3, &[100, 101])),
            batch(kafka_columns(4, &[7])),
        ],
        &settings,
    );
    let entry = file.data_file("s3://lake/t/data/x.parquet").expect("a data file");
    assert_eq!(entry.file_size_in_bytes(), file.bytes.len() as u64);
    assert_eq!((entry.record_count(), file.record_count), (3, 3));
    assert_eq!(entry.file_path(), "s3://lake/t/data/x.parquet");
    assert_eq!(entry.sort_order_id(), Some(3));
    assert_eq!(entry.partition(), &Struct::empty());
}

#[test]
fn dictionaries_go_to_columns_that_repeat() {
    let schema = schema([
        optional(10, "unique", PrimitiveType::Long),
        optional(11, "repeated", PrimitiveType::String),
        optional(12, "symbols", PrimitiveType::String),
        optional(13, "nothing", PrimitiveType::Long),
    ]);
    let symbols: DictionaryArray<Int32Type> = (0..5000).map(|_| Some("NEW")).collect();
    let rows = batch([
        (
            field(10, "unique", DataType::Int64),
            Arc::new(Int64Array::from_iter_values(0..5000)) as ArrayRef,
        ),
        (
            field(11, "repeated", DataType::Utf8),
            Arc::new(StringArray::from_iter_values(
                (0..5000).map(|i| format!("{}", i % 7)),
            )),
        ),
        (
            field(12, "symbols", symbols.data_type().clone()),
            Arc::new(symbols),
        ),
        (
            field(13, "nothing", DataType::Int64),
            Arc::new(Int64Array::new_null(5000)),
        ),
    ]);
    let dictionaries = |dictionary| {
        let file = write(
            &schema,
            std::slice::from_ref(&rows),
            &FileSettings {
                dictionary,
                ..FileSettings::default()
            },
        );
        let reader = SerializedFileReader::new(file.bytes).expect("a reader");
        let columns = reader.metadata().row_group(0).columns();
        // Only these two encodings: older vectorized readers of Iceberg know no others.
        let known = [Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY];
        assert!(
            columns
                .iter()
                .all(|c| c.encodings().all(|encoding| known.contains(&encoding)))
        );
        columns
            .iter()
            .map(|c| c.dictionary_page_offset().is_some())
            .collect::<Vec<_>>()
    };
    assert_eq!(dictionaries(Dictionary::Sampled), [false, true, true, false]);
    assert_eq!(dictionaries(Dictionary::Never), [false; 4]);
}

#[test]
fn refuses_rows_that_do_not_fit() {
    let table = schema([
        Arc::new(NestedField::required(10, "v", PrimitiveType::Long.into())),
        optional(11, "w", PrimitiveType::String),
    ]);
    let longs = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let fault = |batches: &[RecordBatch]| {
        let spec = PartitionSpec::unpartition_spec();
        let error = write_data_file(batches, &table, &spec, &Struct::empty(), &FileSettings::default())
            .expect_err("must be refused");
        assert_eq!(error.kind(), ErrorKind::Internal);
        error.message().to_owned()
    };
    let v = |values| (field(10, "v", DataType::Int64), longs(values));
    assert_eq!(fault(&[]), "there are no rows");
    assert_eq!(fault(&[batch([v(vec![])])]), "there are no rows");
    assert_eq!(
        fault(&[batch([v(vec![None])])]),
        "the required column `v` holds a null"
    );
    assert_eq!(
        fault(&[batch([(field(11, "w", DataType::Int64), longs(vec![Some(1)]))])]),
        "the required column `v` is missing"
    );
    assert_eq!(
        fault(&[batch([
            v(vec![Some(1)]),
            (field(11, "w", DataType::Int64), longs(vec![Some(1)]))
        ])]),
        "the column `w` is Int64, not string",
    );
    assert_eq!(
        fault(&[batch([
            v(vec![Some(1)]),
            (field(99, "x", DataType::Int64), longs(vec![Some(1)]))
        ])]),
        "the column `x` has no field id of this schema",
    );
    let no_zone = Arc::new(TimestampMicrosecondArray::from(vec![1])) as ArrayRef;
    let instants = schema([optional(10, "t", PrimitiveType::Timestamptz)]);
    let rows = batch([(
        field(10, "t", DataType::Timestamp(TimeUnit::Microsecond, None)),
        no_zone,
    )]);
    let spec = PartitionSpec::unpartition_spec();
    assert!(
        write_data_file(
            &[rows],
            &instants,
            &spec,
            &Struct::empty(),
            &FileSettings::default()
        )
        .is_err()
    );
}

#[test]
fn columns_that_the_rows_do_not_have_are_left_out() {
    let schema = schema([
        optional(10, "v", PrimitiveType::Long),
        optional(11, "w", PrimitiveType::String),
    ]);
    let rows = batch([(
        field(10, "old_name", DataType::Int64),
        Arc::new(Int64Array::from(vec![1])) as ArrayRef,
    )]);
    let file = write(&schema, &[rows], &FileSettings::default());
    let back = read_data_file(file.bytes, Some(&[10, 11])).expect("rows");
    assert_eq!(back[0].schema_ref().fields().len(), 1);
    assert_eq!(back[0].schema_ref().field(0).name(), "v", "names are the table's");
}
