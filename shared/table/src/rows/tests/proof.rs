use arrow_array::Array;
use arrow_array::builder::{Int64Builder, MapBuilder, StringBuilder};
use arrow_array::{BinaryArray, DictionaryArray, types::Int32Type};
use arrow_array::{
    Float64Array, Int32Array, Int64Array, LargeBinaryArray, ListArray, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::OffsetBuffer;
use frazil_core::{Offset, OffsetRange, Partition};

use super::*;

const IDS: RowIdentity = RowIdentity {
    partition: PARTITION,
    offset: OFFSET,
    epoch: Some(3),
};

fn range(first: i64, last: i64) -> OffsetRange {
    OffsetRange::new(Offset(first), Offset(last)).expect("a range")
}

fn rows(partition: i32, offsets: &[i64], names: &[Option<&str>]) -> RecordBatch {
    let names = (
        field(10, "name", DataType::Utf8),
        Arc::new(StringArray::from(names.to_vec())) as ArrayRef,
    );
    batch(kafka_columns(partition, offsets).into_iter().chain([names]))
}

fn check(left: &[RecordBatch], right: &[RecordBatch], expected: Comparison) {
    for (left, right) in [(left, right), (right, left)] {
        assert_eq!(
            compare_rows(left, right, &IDS, Partition(0), range(0, 99)).expect("a comparison"),
            expected
        );
    }
}

fn different(offset: i64) -> Comparison {
    Comparison::Different {
        first_offset: Offset(offset),
    }
}

#[test]
fn equal_rows_are_counted_and_the_first_other_one_is_named() {
    let all = [Some("a"), None, Some("c")];
    let base = [rows(0, &[5, 6, 7], &all)];
    check(&base, &base, Comparison::Same(3));
    check(
        &base,
        &[base[0].slice(2, 1), base[0].slice(0, 1)],
        Comparison::Same(2),
    );
    check(
        &base,
        &[rows(0, &[6, 7, 8], &[Some("b"), Some("x"), Some("y")])],
        different(6),
    );
    check(&base, &[rows(0, &[7], &[Some("")])], different(7));
    check(&base, &[rows(0, &[8], &[Some("d")])], Comparison::NothingInCommon);
    check(&base, &[rows(1, &[5], &[Some("a")])], Comparison::NothingInCommon);
    check(&base, &[], Comparison::NothingInCommon);
    check(
        &base,
        &[rows(0, &[5, 5], &[Some("a"), Some("a")])],
        Comparison::Same(1),
    );
    check(&base, &[rows(0, &[5, 5], &[Some("a"), Some("b")])], different(5));
    check(&base, &[rows(0, &[5, 5], &[Some("b"), Some("a")])], different(5));
    let outside = compare_rows(&base, &base, &IDS, Partition(0), range(8, 99)).expect("a comparison");
    assert_eq!(outside, Comparison::NothingInCommon);
}

#[test]
fn rows_without_a_common_column_prove_nothing() {
    let bare = [batch(kafka_columns(0, &[5]))];
    check(&bare, &[rows(0, &[5], &[Some("a")])], Comparison::NothingInCommon);
    let epoch = |epoch: i32| {
        let column = (
            field(3, "_kafka_epoch", DataType::Int32),
            Arc::new(Int32Array::from(vec![epoch])) as ArrayRef,
        );
        batch(kafka_columns(0, &[5]).into_iter().chain([column]))
    };
    check(&[epoch(0)], &[epoch(1)], Comparison::NothingInCommon);
}

#[test]
fn layout_and_widening_make_no_difference_but_values_do() {
    let one = |column: (Field, ArrayRef)| [batch(kafka_columns(0, &[5]).into_iter().chain([column]))];
    let pair = |a: (DataType, ArrayRef), b: (DataType, ArrayRef), expected| {
        check(
            &one((field(10, "v", a.0), a.1)),
            &one((field(10, "w", b.0), b.1)),
            expected,
        );
    };
    let long = |v: i64| (DataType::Int64, Arc::new(Int64Array::from(vec![v])) as ArrayRef);
    let int = |v: i32| (DataType::Int32, Arc::new(Int32Array::from(vec![v])) as ArrayRef);
    pair(long(7), int(7), Comparison::Same(1));
    pair(long(7), int(8), different(5));
    let binary = (
        DataType::Binary,
        Arc::new(BinaryArray::from(vec![&b"x"[..]])) as ArrayRef,
    );
    let large = (
        DataType::LargeBinary,
        Arc::new(LargeBinaryArray::from(vec![&b"x"[..]])) as ArrayRef,
    );
    pair(binary, large, Comparison::Same(1));
    let symbols: DictionaryArray<Int32Type> = ["NEW"].into_iter().collect();
    let text = (
        DataType::Utf8,
        Arc::new(StringArray::from(vec!["NEW"])) as ArrayRef,
    );
    pair(
        (symbols.data_type().clone(), Arc::new(symbols)),
        text,
        Comparison::Same(1),
    );
    let instant = |zone: &str| {
        let array = Arc::new(TimestampMicrosecondArray::from(vec![1]).with_timezone(zone)) as ArrayRef;
        (array.data_type().clone(), array)
    };
    pair(instant("UTC"), instant("+00:00"), Comparison::Same(1));
    let double = |v: f64| {
        (
            DataType::Float64,
            Arc::new(Float64Array::from(vec![v])) as ArrayRef,
        )
    };
    pair(double(f64::NAN), double(f64::NAN), Comparison::Same(1));
    pair(double(0.0), double(-0.0), different(5));
    let text = (DataType::Utf8, Arc::new(StringArray::from(vec!["7"])) as ArrayRef);
    let (a, b) = (
        one((field(10, "v", text.0), text.1)),
        one((field(10, "v", long(7).0), long(7).1)),
    );
    assert!(
        compare_rows(&a, &b, &IDS, Partition(0), range(0, 99)).is_err(),
        "two types are no proof either way"
    );
}

#[test]
fn nested_columns_are_compared_in_what_both_have() {
    // items: list<struct<sku, [qty]>>
    let items = |skus: &[&str], with_quantity: bool| {
        let mut item_fields = vec![field(21, "sku", DataType::Utf8)];
        let mut columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from(skus.to_vec()))];
        if with_quantity {
            item_fields.insert(0, field(22, "qty", DataType::Int64));
            columns.insert(0, Arc::new(Int64Array::from(vec![1; skus.len()])));
        }
        let item_fields = fields(item_fields);
        let values = StructArray::new(item_fields.clone(), columns, None);
        let element = Arc::new(field(23, "element", DataType::Struct(item_fields)));
        let offsets = OffsetBuffer::from_lengths([1, skus.len() - 1]);
        let list = ListArray::new(Arc::clone(&element), offsets, Arc::new(values), None);
        let column = (
            field(20, "items", DataType::List(element)),
            Arc::new(list) as ArrayRef,
        );
        [batch(kafka_columns(0, &[5, 6]).into_iter().chain([column]))]
    };
    check(
        &items(&["a", "b"], false),
        &items(&["a", "b"], true),
        Comparison::Same(2),
    );
    check(
        &items(&["a", "b"], false),
        &items(&["a", "c"], true),
        different(6),
    );
    check(
        &items(&["a", "b"], true),
        &items(&["a", "b", "c"], true),
        different(6),
    );
}

#[test]
fn maps_and_fields_called_key_are_compared() {
    let rows = |values: [Option<i64>; 2]| {
        let mut tags = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new())
            .with_keys_field(Arc::new(field(31, "keys", DataType::Utf8).with_nullable(false)))
            .with_values_field(Arc::new(field(32, "values", DataType::Int64)));
        tags.keys().append_value("k");
        tags.values().append_option(values[0]);
        tags.append(true).expect("an entry");
        let tags = tags.finish();
        let pair = fields([field(41, "key", DataType::Int64)]);
        let keys = StructArray::new(
            pair.clone(),
            vec![Arc::new(Int64Array::from(vec![values[1]]))],
            None,
        );
        let columns: [(Field, ArrayRef); 2] = [
            (field(30, "tags", tags.data_type().clone()), Arc::new(tags)),
            (field(40, "pair", DataType::Struct(pair)), Arc::new(keys)),
        ];
        [batch(kafka_columns(0, &[5]).into_iter().chain(columns))]
    };
    check(
        &rows([Some(1), None]),
        &rows([Some(1), None]),
        Comparison::Same(1),
    );
    check(&rows([Some(1), None]), &rows([None, None]), different(5));
    check(&rows([None, Some(1)]), &rows([None, None]), different(5));
}

#[test]
fn stored_rows_equal_the_rows_that_were_written() {
    let schema = schema(
        kafka_fields()
            .into_iter()
            .chain([optional(10, "name", PrimitiveType::String)]),
    );
    let original = rows(0, &[5, 6, 7], &[Some("a"), None, Some("c")]);
    let file = write(&schema, std::slice::from_ref(&original), &FileSettings::default());
    let stored = read_data_file(file.bytes.clone(), None).expect("rows");
    check(&[original], &stored, Comparison::Same(3));
    let offsets = offsets_of(file.bytes, PARTITION, OFFSET).expect("offsets");
    assert_eq!(offsets, [5, 6, 7].map(|offset| (Partition(0), Offset(offset))));
}

#[test]
fn trims_keep_what_is_accepted() {
    let batches = [
        rows(0, &[5, 6], &[Some("a"), None]),
        rows(1, &[5], &[Some("x")]),
        rows(0, &[7], &[Some("c")]),
    ];
    let kept = filter_rows(&batches, PARTITION, OFFSET, &|partition, offset| {
        partition == Partition(0) && offset >= Offset(6)
    });
    assert_eq!(
        kept.expect("rows"),
        [rows(0, &[6], &[None]), rows(0, &[7], &[Some("c")])]
    );
    let error = filter_rows(&batches, 99, OFFSET, &|_, _| true).expect_err("no such column");
    assert_eq!(error.context()[0], ("field_id", "99".to_owned()));
}
