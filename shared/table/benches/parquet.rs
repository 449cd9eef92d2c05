//! What the settings of a data file cost, over one event's worth of orders with Kafka's columns.
//!
//! `cargo bench -p frazil-table --bench parquet`; sizes are printed first.

use std::sync::Arc;

use arrow_array::builder::{LargeBinaryBuilder, ListBuilder, StringBuilder, StructBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Fields, Schema as ArrowSchema};
use divan::Bencher;
use divan::counter::ItemsCount;
use frazil_table::{Dictionary, EncodedFile, FileSettings, split_by_partition, write_data_file};
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{
    ListType, NestedField, PartitionSpec, PrimitiveType, Schema, SchemaRef, Struct, StructType, Transform,
    Type, UnboundPartitionField,
};

/// Orders in an event of 4.4 MB raw.
const ROWS: usize = 45_072;

fn main() {
    let orders = Orders::new();
    let default = orders.encode(&FileSettings::default()).bytes.len();
    for (name, settings) in variants() {
        let bytes = orders.encode(&settings).bytes.len();
        eprintln!(
            "{name:<24} {bytes:>9} bytes  {:.3} of the default",
            bytes as f64 / default as f64
        );
    }
    for (name, only) in orders.single_columns() {
        for dictionary in [Dictionary::Never, Dictionary::Always] {
            let bytes = only
                .encode(&FileSettings {
                    dictionary,
                    ..FileSettings::default()
                })
                .bytes
                .len();
            eprintln!("{name:<20} dictionary {dictionary:<10?} {bytes:>9} bytes");
        }
    }
    divan::main();
}

fn variants() -> Vec<(&'static str, FileSettings)> {
    let default = FileSettings::default;
    vec![
        ("default", default()),
        (
            "uncompressed",
            FileSettings {
                zstd_level: None,
                ..default()
            },
        ),
        (
            "zstd 3",
            FileSettings {
                zstd_level: Some(3),
                ..default()
            },
        ),
        (
            "dictionary always",
            FileSettings {
                dictionary: Dictionary::Always,
                ..default()
            },
        ),
        (
            "dictionary never",
            FileSettings {
                dictionary: Dictionary::Never,
                ..default()
            },
        ),
        (
            "page statistics",
            FileSettings {
                page_statistics: true,
                ..default()
            },
        ),
        (
            "page 128 kB",
            FileSettings {
                page_bytes: 128 * 1024,
                ..default()
            },
        ),
        (
            "parquet-rs, zstd 1",
            FileSettings {
                dictionary: Dictionary::Always,
                page_statistics: true,
                ..default()
            },
        ),
    ]
}

#[divan::bench(args = variants().into_iter().map(|(name, _)| name).collect::<Vec<_>>(), sample_count = 20)]
fn encode(bencher: Bencher, name: &str) {
    let orders = Orders::new();
    let (_, settings) = variants()
        .into_iter()
        .find(|(known, _)| *known == name)
        .expect("a variant");
    bencher
        .counter(ItemsCount::new(ROWS))
        .bench(|| orders.encode(&settings));
}

#[divan::bench(args = Orders::new().single_columns().into_iter().map(|(name, _)| name).collect::<Vec<_>>(), sample_count = 20)]
fn column_without_dictionary(bencher: Bencher, name: &str) {
    column(bencher, name, Dictionary::Never);
}

#[divan::bench(args = Orders::new().single_columns().into_iter().map(|(name, _)| name).collect::<Vec<_>>(), sample_count = 20)]
fn column_with_dictionary(bencher: Bencher, name: &str) {
    column(bencher, name, Dictionary::Always);
}

fn column(bencher: Bencher, name: &str, dictionary: Dictionary) {
    let columns = Orders::new().single_columns();
    let (_, only) = columns
        .into_iter()
        .find(|(known, _)| known == name)
        .expect("a column");
    let settings = FileSettings {
        dictionary,
        ..FileSettings::default()
    };
    bencher.bench(|| only.encode(&settings));
}

#[divan::bench(sample_count = 20)]
fn split_one_day(bencher: Bencher) {
    let orders = Orders::new();
    let spec = day_of(&orders.schema, "_kafka_timestamp", Transform::Day);
    bencher.bench(|| split_by_partition(&orders.rows, &orders.schema, &spec).expect("partitions"));
}

#[divan::bench(sample_count = 20)]
fn split_sixteen_buckets(bencher: Bencher) {
    let orders = Orders::new();
    let spec = day_of(&orders.schema, "customer", Transform::Bucket(16));
    bencher.bench(|| split_by_partition(&orders.rows, &orders.schema, &spec).expect("partitions"));
}

fn day_of(schema: &SchemaRef, column: &str, transform: Transform) -> PartitionSpec {
    let source_id = schema.field_id_by_name(column).expect("a column");
    let field = UnboundPartitionField {
        source_id,
        field_id: None,
        name: "part".to_owned(),
        transform,
    };
    let builder = PartitionSpec::builder(Arc::clone(schema))
        .add_unbound_field(field)
        .expect("a field");
    builder.build().expect("a spec")
}

struct Orders {
    schema: SchemaRef,
    rows: RecordBatch,
}

impl Orders {
    fn new() -> Self {
        let schema = Arc::new(table());
        let arrow = Arc::new(schema_to_arrow_schema(&schema).expect("an Arrow schema"));
        let rows = RecordBatch::try_new(Arc::clone(&arrow), columns(&arrow)).expect("rows");
        Self { schema, rows }
    }

    fn encode(&self, settings: &FileSettings) -> EncodedFile {
        let (spec, nothing) = (PartitionSpec::unpartition_spec(), Struct::empty());
        let rows = std::slice::from_ref(&self.rows);
        write_data_file(rows, &self.schema, &spec, &nothing, settings).expect("a file")
    }

    /// Each column as a table of its own.
    fn single_columns(&self) -> Vec<(String, Orders)> {
        let fields = self.schema.as_struct().fields().iter().enumerate();
        fields
            .map(|(index, field)| {
                let schema = Schema::builder()
                    .with_fields([Arc::clone(field)])
                    .build()
                    .expect("a schema");
                let rows = self.rows.project(&[index]).expect("a column");
                (
                    field.name.clone(),
                    Orders {
                        schema: Arc::new(schema),
                        rows,
                    },
                )
            })
            .collect()
    }
}

fn table() -> Schema {
    let optional = |id: i32, name: &str, kind: Type| Arc::new(NestedField::optional(id, name, kind));
    let p = Type::Primitive;
    let item = StructType::new(vec![
        optional(31, "sku", p(PrimitiveType::String)),
        optional(32, "quantity", p(PrimitiveType::Int)),
    ]);
    let header = StructType::new(vec![
        optional(33, "name", p(PrimitiveType::String)),
        optional(34, "value", p(PrimitiveType::Binary)),
    ]);
    let list = |id: i32, element: StructType| {
        Type::List(ListType::new(optional(id, "element", Type::Struct(element))))
    };
    Schema::builder()
        .with_fields([
            optional(1, "id", p(PrimitiveType::Long)),
            optional(2, "customer", p(PrimitiveType::String)),
            optional(3, "status", p(PrimitiveType::String)),
            optional(
                4,
                "amount",
                p(PrimitiveType::Decimal {
                    precision: 12,
                    scale: 2,
                }),
            ),
            optional(5, "created", p(PrimitiveType::Timestamptz)),
            optional(6, "note", p(PrimitiveType::String)),
            optional(7, "items", list(35, item)),
            optional(11, "_kafka_partition", p(PrimitiveType::Int)),
            optional(12, "_kafka_offset", p(PrimitiveType::Long)),
            optional(13, "_kafka_timestamp", p(PrimitiveType::Timestamptz)),
            optional(14, "_kafka_epoch", p(PrimitiveType::Int)),
            optional(15, "_kafka_key", p(PrimitiveType::String)),
            optional(16, "_kafka_headers", list(36, header)),
            optional(17, "_kafka_tombstone", p(PrimitiveType::Boolean)),
        ])
        .build()
        .expect("a schema")
}

fn columns(schema: &ArrowSchema) -> Vec<ArrayRef> {
    let mut random = Random(42);
    let mut numbers = |modulus: u64| -> Vec<i64> { (0..ROWS).map(|_| random.below(modulus)).collect() };
    let customers = numbers(1 << 40);
    let statuses = numbers(5);
    let cents = numbers(20_000);
    let jitter = numbers(3_000);
    let notes = numbers(10);
    let counts = numbers(4);
    let skus = numbers(2_000);
    let quantities = numbers(9);
    let rows = || 0..ROWS;
    let start = 1_780_000_000_000_000i64;
    let utc = |values: Vec<i64>| TimestampMicrosecondArray::from(values).with_timezone("+00:00");

    let mut items = lists(schema, "items");
    for row in rows() {
        for item in 0..counts[row] as usize {
            let pick = (row + item * 7) % ROWS;
            let entry = items.values();
            let sku = entry.field_builder::<StringBuilder>(0).expect("sku");
            sku.append_value(format!("SKU-{:05}", skus[pick]));
            let quantity = entry
                .field_builder::<arrow_array::builder::Int32Builder>(1)
                .expect("quantity");
            quantity.append_value(1 + quantities[pick] as i32);
            entry.append(true);
        }
        items.append(true);
    }
    let mut headers = lists(schema, "_kafka_headers");
    for row in rows() {
        let entry = headers.values();
        entry
            .field_builder::<StringBuilder>(0)
            .expect("name")
            .append_value("trace");
        let value = entry.field_builder::<LargeBinaryBuilder>(1).expect("value");
        value.append_value(customers[row].to_be_bytes());
        entry.append(true);
        headers.append(true);
    }
    let status = ["NEW", "PAID", "PACKED", "SHIPPED", "CANCELLED"];
    vec![
        Arc::new(Int64Array::from_iter_values(
            rows().map(|row| 9_000_000 + row as i64 * 3),
        )),
        Arc::new(StringArray::from_iter_values(
            customers.iter().map(|c| format!("cust-{c:010x}")),
        )),
        Arc::new(StringArray::from_iter_values(
            statuses.iter().map(|&s| status[s as usize]),
        )),
        Arc::new(
            Decimal128Array::from_iter_values(cents.iter().map(|&c| i128::from(c)))
                .with_precision_and_scale(12, 2)
                .expect("a decimal"),
        ),
        Arc::new(utc(rows()
            .map(|row| start + row as i64 * 1_000 + jitter[row])
            .collect())),
        Arc::new(StringArray::from_iter(
            notes.iter().map(|&n| (n == 0).then_some("please ring twice")),
        )),
        Arc::new(items.finish()),
        Arc::new(Int32Array::from_iter_values(
            rows().map(|row| (row / 15_024) as i32),
        )),
        Arc::new(Int64Array::from_iter_values(
            rows().map(|row| 70_000_000 + (row % 15_024) as i64),
        )),
        Arc::new(utc(rows()
            .map(|row| start + row as i64 * 1_000)
            .map(|t| t / 1_000 * 1_000)
            .collect())),
        Arc::new(Int32Array::from(vec![0; ROWS])),
        Arc::new(StringArray::from_iter_values(
            rows().map(|row| format!("{}", 9_000_000 + row * 3)),
        )),
        Arc::new(headers.finish()),
        Arc::new(BooleanArray::from(vec![false; ROWS])),
    ]
}

fn lists(schema: &ArrowSchema, name: &str) -> ListBuilder<StructBuilder> {
    let field: &Field = schema.field_with_name(name).expect("a list");
    let DataType::List(element) = field.data_type() else {
        unreachable!("a list")
    };
    let DataType::Struct(fields) = element.data_type() else {
        unreachable!("a struct")
    };
    let fields: Fields = fields.clone();
    ListBuilder::new(StructBuilder::from_fields(fields, ROWS)).with_field(Arc::clone(element))
}

/// xorshift: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, modulus: u64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % modulus) as i64
    }
}
