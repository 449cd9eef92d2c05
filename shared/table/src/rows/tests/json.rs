use iceberg::spec::{DataContentType, DataFile, DataFileBuilder, DataFileFormat, Datum, Literal};
use serde_json::json;

use super::*;

fn table() -> SchemaRef {
    schema([
        optional(1, "day", PrimitiveType::Date),
        optional(
            2,
            "amount",
            PrimitiveType::Decimal {
                precision: 38,
                scale: 2,
            },
        ),
        optional(3, "ratio", PrimitiveType::Float),
        optional(4, "raw", PrimitiveType::Binary),
        optional(5, "name", PrimitiveType::String),
        optional(6, "id", PrimitiveType::Uuid),
        optional(7, "flag", PrimitiveType::Boolean),
        optional(8, "at", PrimitiveType::Timestamptz),
    ])
}

fn file(partition: Struct) -> DataFile {
    let decimal = Datum::try_from_bytes(
        &[0xFF, 0x7F],
        PrimitiveType::Decimal {
            precision: 38,
            scale: 2,
        },
    );
    DataFileBuilder::default()
        .content(DataContentType::Data)
        .file_format(DataFileFormat::Parquet)
        .file_path("s3://lake/t/data/a.parquet".to_owned())
        .record_count(3)
        .file_size_in_bytes(875)
        .partition_spec_id(7)
        .partition(partition)
        .column_sizes(HashMap::from([(1, 47), (5, 52)]))
        .value_counts(HashMap::from([(1, 3), (3, 3)]))
        .null_value_counts(HashMap::from([(1, 0)]))
        .nan_value_counts(HashMap::from([(3, 1)]))
        .lower_bounds(HashMap::from([
            (5, Datum::string("é")),
            (2, decimal.expect("a decimal")),
        ]))
        .upper_bounds(HashMap::from([(5, Datum::string("ê"))]))
        .split_offsets(Some(vec![4]))
        .build()
        .expect("a data file")
}

fn identities(schema: &SchemaRef) -> PartitionSpec {
    let fields: Vec<(i32, String)> = schema
        .as_struct()
        .fields()
        .iter()
        .map(|field| (field.id, format!("p_{}", field.name)))
        .collect();
    let parts: Vec<(i32, &str, Transform)> = fields
        .iter()
        .map(|(id, name)| (*id, name.as_str(), Transform::Identity))
        .collect();
    spec(schema, &parts)
}

#[test]
fn the_form_is_fixed() {
    let schema = table();
    let spec = spec(
        &schema,
        &[(8, "at_day", Transform::Day), (5, "name", Transform::Identity)],
    );
    let file = file(Struct::from_iter([Some(Literal::date(20_000)), None]));
    let described = data_file_to_json(&file, &spec, &schema).expect("json");
    assert_eq!(
        described,
        json!({
            "path": "s3://lake/t/data/a.parquet",
            "records": 3,
            "bytes": 875,
            "spec_id": 7,
            "partition": ["204e0000", null],
            "split_offsets": [4],
            "columns": {
                "1": {"size": 47, "values": 3, "nulls": 0},
                "2": {"lower": "ff7f"},
                "3": {"values": 3, "nans": 1},
                "5": {"size": 52, "lower": "c3a9", "upper": "c3aa"},
            },
        })
    );
    assert_eq!(
        data_file_from_json(&described, &spec, &schema).expect("a data file"),
        file
    );
}

#[test]
fn every_partition_value_comes_back() {
    let schema = table();
    let spec = identities(&schema);
    let values = [
        Some(Literal::date(-1)),
        Some(Literal::decimal(-123_456_789_012_345_678_901_234_567_890)),
        Some(Literal::float(1.234_567_9e10)),
        Some(Literal::binary(vec![0, 255])),
        Some(Literal::string("a/b=\"ü\"")),
        Some(Literal::uuid_from_str("f79c3e09-677c-4bbd-a479-3f349cb785e7").expect("a uuid")),
        Some(Literal::bool(false)),
        Some(Literal::timestamptz(i64::MIN)),
    ];
    let nothing = [const { None }; 8];
    for values in [values, nothing] {
        let file = file(Struct::from_iter(values));
        let described = data_file_to_json(&file, &spec, &schema).expect("json");
        let text = described.to_string();
        let read = serde_json::from_str(&text).expect("json");
        assert_eq!(
            data_file_from_json(&read, &spec, &schema).expect("a data file"),
            file,
            "{text}"
        );
    }
}

#[test]
fn refuses_what_it_cannot_trust() {
    let schema = table();
    let spec = spec(&schema, &[(1, "day", Transform::Identity)]);
    let good = data_file_to_json(&file(Struct::from_iter([None])), &spec, &schema).expect("json");
    let fault = |change: fn(&mut serde_json::Value)| {
        let mut changed = good.clone();
        change(&mut changed);
        let error = data_file_from_json(&changed, &spec, &schema).expect_err("must be refused");
        assert_eq!(error.kind(), ErrorKind::Internal);
        error.to_string()
    };
    let starts = |text: String, start: &str| assert!(text.starts_with(start), "{text}");
    let read = "cannot read the description of a data file: ";
    starts(
        fault(|file| file["spec_id"] = json!(3)),
        &format!("{read}it is of partition spec 3, not 7"),
    );
    starts(
        fault(|file| file["partition"] = json!([])),
        &format!("{read}its partition has 0 values, its spec 1"),
    );
    starts(
        fault(|file| file["partition"] = json!(["0"])),
        &format!("{read}`0` is not hexadecimal"),
    );
    starts(
        fault(|file| file["partition"] = json!(["00"])),
        &format!("{read}a value does not fit its column"),
    );
    starts(
        fault(|file| file["newer"] = json!(1)),
        &format!("{read}it is not in the form of this version"),
    );
    starts(
        fault(|file| file["records"] = json!(-1)),
        &format!("{read}it is not in the form of this version"),
    );
    let two = file(Struct::from_iter([None, None]));
    assert!(data_file_to_json(&two, &spec, &schema).is_err());
}

#[test]
fn bounds_follow_a_schema_that_moved_on() {
    let old = table();
    let spec = PartitionSpec::unpartition_spec().with_spec_id(7);
    let described = data_file_to_json(&file(Struct::empty()), &spec, &old).expect("json");
    let new = schema([optional(
        2,
        "amount",
        PrimitiveType::Decimal {
            precision: 38,
            scale: 2,
        },
    )]);
    let read = data_file_from_json(&described, &spec, &new).expect("a data file");
    assert_eq!(read.lower_bounds().keys().collect::<Vec<_>>(), [&2]);
}
