use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{BinaryArray, Int64Array, StringArray, TimestampMicrosecondArray};
use iceberg::spec::Literal;

use super::*;

const DAY: i64 = 86_400_000_000;

/// Splits rows numbered from 0 and compares partition tuples and row numbers.
fn check(
    kind: PrimitiveType,
    transform: Transform,
    values: ArrayRef,
    expected: &[(Option<Literal>, &[i64])],
) {
    let schema = schema([optional(1, "n", PrimitiveType::Long), optional(2, "v", kind)]);
    let spec = spec(&schema, &[(2, "part", transform)]);
    let numbers = Int64Array::from_iter_values(0..values.len() as i64);
    let rows = batch([
        (field(1, "n", DataType::Int64), Arc::new(numbers) as ArrayRef),
        (field(2, "v", values.data_type().clone()), values),
    ]);
    let found: Vec<(Struct, Vec<i64>)> = split_by_partition(&rows, &schema, &spec)
        .expect("partitions")
        .into_iter()
        .map(|(tuple, rows)| {
            (
                tuple,
                rows.column(0).as_primitive::<Int64Type>().values().to_vec(),
            )
        })
        .collect();
    let expected: Vec<(Struct, Vec<i64>)> = expected
        .iter()
        .map(|(value, rows)| (Struct::from_iter([value.clone()]), rows.to_vec()))
        .collect();
    assert_eq!(found, expected, "{transform}");
}

#[test]
fn rows_go_to_the_day_of_their_timestamp_and_keep_their_order() {
    let instants = vec![
        Some(DAY),
        Some(0),
        None,
        Some(DAY + 5),
        Some(DAY - 1),
        None,
        Some(DAY * 20_000),
    ];
    let expected: &[(Option<Literal>, &[i64])] = &[
        (None, &[2, 5]),
        (Some(Literal::date(0)), &[1, 4]),
        (Some(Literal::date(1)), &[0, 3]),
        (Some(Literal::date(20_000)), &[6]),
    ];
    let naive = TimestampMicrosecondArray::from(instants);
    for zone in ["+00:00", "UTC"] {
        let utc = Arc::new(naive.clone().with_timezone(zone));
        check(PrimitiveType::Timestamptz, Transform::Day, utc, expected);
    }
    check(
        PrimitiveType::Timestamp,
        Transform::Day,
        Arc::new(naive),
        expected,
    );
}

#[test]
fn days_before_1970_are_rounded_down() {
    // Half a second before 1969-12-31 is 1969-12-30.
    let instants = vec![-DAY - 500_000, -DAY, -DAY + 1, -1];
    check(
        PrimitiveType::Timestamptz,
        Transform::Day,
        Arc::new(TimestampMicrosecondArray::from(instants).with_timezone("UTC")),
        &[
            (Some(Literal::date(-2)), &[0]),
            (Some(Literal::date(-1)), &[1, 2, 3]),
        ],
    );
}

#[test]
fn other_transforms_give_the_values_of_the_specification() {
    let text = || Arc::new(StringArray::from(vec!["iceberg", "ice", "iceberg"])) as ArrayRef;
    check(
        PrimitiveType::String,
        Transform::Identity,
        text(),
        &[
            (Some(Literal::string("ice")), &[1]),
            (Some(Literal::string("iceberg")), &[0, 2]),
        ],
    );
    check(
        PrimitiveType::String,
        Transform::Truncate(3),
        text(),
        &[(Some(Literal::string("ice")), &[0, 1, 2])],
    );
    // Iceberg spec, Appendix B: hash("iceberg") = 1210000089, hash(34) = 2017239379.
    let bucket = Transform::Bucket(1_000);
    check(
        PrimitiveType::String,
        bucket,
        Arc::new(StringArray::from(vec!["iceberg"])),
        &[(Some(Literal::int(89)), &[0])],
    );
    check(
        PrimitiveType::Long,
        bucket,
        Arc::new(Int64Array::from(vec![34, 34])),
        &[(Some(Literal::int(379)), &[0, 1])],
    );
    check(
        PrimitiveType::Binary,
        Transform::Truncate(1),
        Arc::new(BinaryArray::from(vec![&b"xy"[..], b"xz"])),
        &[(Some(Literal::binary(vec![b'x'])), &[0, 1])],
    );
    check(
        PrimitiveType::Long,
        Transform::Void,
        Arc::new(Int64Array::from(vec![1, 2])),
        &[(None, &[0, 1])],
    );
    check(
        PrimitiveType::Timestamptz,
        Transform::Hour,
        Arc::new(TimestampMicrosecondArray::from(vec![-1, 3_600_000_000]).with_timezone("UTC")),
        &[(Some(Literal::int(-1)), &[0]), (Some(Literal::int(1)), &[1])],
    );
    check(
        PrimitiveType::Timestamptz,
        Transform::Month,
        Arc::new(TimestampMicrosecondArray::from(vec![0, DAY * 45]).with_timezone("UTC")),
        &[(Some(Literal::int(0)), &[0]), (Some(Literal::int(1)), &[1])],
    );
}

#[test]
fn many_partitions_share_one_copy_of_the_rows() {
    let values: Vec<i64> = (0..10_000).rev().collect();
    let expected: Vec<(Option<Literal>, Vec<i64>)> = (0..10_000)
        .map(|value| (Some(Literal::long(value)), vec![9_999 - value]))
        .collect();
    let expected: Vec<(Option<Literal>, &[i64])> = expected
        .iter()
        .map(|(value, rows)| (value.clone(), rows.as_slice()))
        .collect();
    check(
        PrimitiveType::Long,
        Transform::Identity,
        Arc::new(Int64Array::from(values)),
        &expected,
    );
}

#[test]
fn several_fields_a_missing_source_and_no_partition() {
    let schema = schema([
        optional(1, "a", PrimitiveType::Long),
        optional(2, "b", PrimitiveType::String),
        optional(3, "later", PrimitiveType::Long),
    ]);
    let rows = batch([
        (
            field(1, "a", DataType::Int64),
            Arc::new(Int64Array::from(vec![2, 1, 2])) as ArrayRef,
        ),
        (
            field(2, "b", DataType::Utf8),
            Arc::new(StringArray::from(vec![Some("x"), None, Some("x")])),
        ),
    ]);
    let tuples = |spec: &PartitionSpec| -> Vec<(Struct, usize)> {
        let parts = split_by_partition(&rows, &schema, spec).expect("partitions");
        parts
            .into_iter()
            .map(|(tuple, rows)| (tuple, rows.num_rows()))
            .collect()
    };
    let parts = [
        (2, "b", Transform::Identity),
        (1, "a", Transform::Identity),
        (3, "later", Transform::Identity),
    ];
    assert_eq!(
        tuples(&spec(&schema, &parts)),
        [
            (Struct::from_iter([None, Some(Literal::long(1)), None]), 1),
            (
                Struct::from_iter([Some(Literal::string("x")), Some(Literal::long(2)), None]),
                2
            ),
        ]
    );
    assert_eq!(tuples(&PartitionSpec::unpartition_spec()), [(Struct::empty(), 3)]);
    assert!(
        split_by_partition(&rows.slice(0, 0), &schema, &spec(&schema, &parts))
            .expect("nothing")
            .is_empty()
    );
}

#[test]
fn every_part_can_be_written() {
    let schema = schema([
        optional(1, "n", PrimitiveType::Long),
        optional(2, "v", PrimitiveType::String),
    ]);
    let spec = spec(&schema, &[(2, "v", Transform::Identity)]);
    let rows = batch([
        (
            field(1, "n", DataType::Int64),
            Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef,
        ),
        (
            field(2, "v", DataType::Utf8),
            Arc::new(StringArray::from(vec![Some("b"), None, Some("b")])),
        ),
    ]);
    let mut written = Vec::new();
    for (tuple, rows) in split_by_partition(&rows, &schema, &spec).expect("partitions") {
        let file =
            write_data_file(&[rows], &schema, &spec, &tuple, &FileSettings::default()).expect("a file");
        let entry = file.data_file("f").expect("a data file");
        written.push((
            entry.partition().clone(),
            entry.record_count(),
            entry.lower_bounds()[&1].clone(),
        ));
    }
    assert_eq!(
        written,
        [
            (Struct::from_iter([None]), 1, iceberg::spec::Datum::long(2)),
            (
                Struct::from_iter([Some(Literal::string("b"))]),
                2,
                iceberg::spec::Datum::long(1)
            ),
        ]
    );
    let wrong = write_data_file(
        &[rows],
        &schema,
        &spec,
        &Struct::empty(),
        &FileSettings::default(),
    );
    assert_eq!(
        wrong.expect_err("refused").message(),
        "the partition has 0 values, the spec 7 has 1 fields"
    );
}
