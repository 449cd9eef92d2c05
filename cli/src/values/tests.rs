use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, MapBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array,
    Float64Array, Int32Array, Int64Array, StringArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use iceberg::spec::NestedField;
use serde_json::json;

use super::*;

fn empty() -> Schema {
    Schema::builder().build().unwrap()
}

#[track_caller]
fn check(array: ArrayRef, expected: Value) {
    let field = Field::new("x", array.data_type().clone(), true);
    let values: Vec<Value> = (0..array.len())
        .map(|row| value(array.as_ref(), &field, row, &empty()))
        .collect();
    assert_eq!(Value::Array(values), expected);
}

#[test]
fn values_are_exact() {
    check(
        Arc::new(BooleanArray::from(vec![Some(true), None])),
        json!([true, null]),
    );
    check(
        Arc::new(Int64Array::from(vec![i64::MAX, i64::MIN])),
        json!([9223372036854775807i64, -9223372036854775808i64]),
    );
    check(
        Arc::new(Float32Array::from(vec![0.1, f32::INFINITY])),
        json!([0.1, "inf"]),
    );
    check(
        Arc::new(Float64Array::from(vec![1.5e300, f64::NAN])),
        json!([1.5e300, "NaN"]),
    );
    let decimals = Decimal128Array::from(vec![12_345, -5])
        .with_precision_and_scale(9, 2)
        .unwrap();
    check(Arc::new(decimals), json!(["123.45", "-0.05"]));
    check(Arc::new(StringArray::from(vec!["a\u{1b}"])), json!(["a\u{1b}"]));
    check(
        Arc::new(BinaryArray::from(vec![&[0u8, 255][..]])),
        json!(["AP8="]),
    );
    check(
        Arc::new(Date32Array::from(vec![0, -1, 20_787, i32::MAX])),
        json!([
            "1970-01-01",
            "1969-12-31",
            "2026-11-30",
            "2147483647 days since 1970-01-01"
        ]),
    );
    check(
        Arc::new(Time64MicrosecondArray::from(vec![0, 3_723_000_001])),
        json!(["00:00:00", "01:02:03.000001"]),
    );
    let instants = TimestampMicrosecondArray::from(vec![1_796_063_682_123_456, -1]);
    check(
        Arc::new(instants.clone().with_timezone("+00:00")),
        json!(["2026-11-30T18:34:42.123456Z", "1969-12-31T23:59:59.999999Z"]),
    );
    check(
        Arc::new(instants),
        json!(["2026-11-30T18:34:42.123456", "1969-12-31T23:59:59.999999"]),
    );
}

#[test]
fn nested_values_are_json() {
    let mut list = ListBuilder::new(StringBuilder::new());
    list.append_value([Some("a"), None]);
    list.append_null();
    check(Arc::new(list.finish()), json!([["a", null], null]));
    let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    map.keys().append_value("k");
    map.values().append_value("v");
    map.append(true).unwrap();
    check(Arc::new(map.finish()), json!([[{"keys": "k", "values": "v"}]]));
    let of = StructArray::from(vec![(
        Arc::new(Field::new("n", DataType::Int32, true)),
        Arc::new(Int32Array::from(vec![7])) as ArrayRef,
    )]);
    check(Arc::new(of), json!([{"n": 7}]));
}

#[test]
fn sixteen_bytes_are_a_uuid_only_when_the_schema_says_so() {
    let bytes = FixedSizeBinaryArray::try_from_iter([[1u8; 16]].into_iter()).unwrap();
    let schema = Schema::builder()
        .with_fields([Arc::new(NestedField::optional(
            4,
            "id",
            Type::Primitive(PrimitiveType::Uuid),
        ))])
        .build()
        .unwrap();
    for (id, expected) in [
        ("4", json!("01010101-0101-0101-0101-010101010101")),
        ("5", json!("AQEBAQEBAQEBAQEBAQEBAQ==")),
    ] {
        let field = Field::new("id", bytes.data_type().clone(), true)
            .with_metadata(HashMap::from([("PARQUET:field_id".to_owned(), id.to_owned())]));
        assert_eq!(value(&bytes, &field, 0, &schema), expected);
    }
}

fn rows() -> Rows {
    let fields = vec![
        Field::new("id", DataType::Utf8, true),
        Field::new("note", DataType::Utf8, true),
        Field::new("quantity", DataType::Int32, true),
        Field::new("_kafka_offset", DataType::Int64, true),
    ];
    let batch = RecordBatch::try_new(
        Arc::new(arrow_schema::Schema::new(fields)),
        vec![
            Arc::new(StringArray::from(vec!["o-1", "o-2"])),
            Arc::new(StringArray::from(vec![
                Some("0123456789012345678901234567890123456789"),
                Some("a\nb"),
            ])),
            Arc::new(Int32Array::from(vec![Some(3), None])),
            Arc::new(Int64Array::from(vec![0, 1])),
        ],
    );
    Rows::of(&batch.unwrap(), &empty())
}

#[test]
fn rows_are_a_table() {
    assert_eq!(
        rows().to_text(None),
        "id   note                                  quantity  _kafka_offset\n\
         o-1  01234567890123456789012345678901234…         3              0\n\
         o-2  a\\nb                                      NULL              1\n"
    );
}

#[test]
fn a_narrow_terminal_shows_the_ends() {
    assert_eq!(
        rows().to_text(Some(40)),
        "id   …  quantity  _kafka_offset\n\
         o-1  …         3              0\n\
         o-2  …      NULL              1\n\
         (3 of 4 columns; --columns a,b chooses)\n"
    );
}
