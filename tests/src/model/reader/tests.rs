//! The reader against a table that iceberg's and parquet's own writers made.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Int32Array, Int64Array, StringArray, TimestampMicrosecondArray};
use frazil_table::{ObjectStorage, file_io};
use iceberg::TableCreation;
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::spec::{
    DataContentType, DataFile, DataFileBuilder, DataFileFormat, ManifestListWriter, ManifestWriterBuilder,
    NestedField, Operation, PrimitiveType, Struct, Summary, TableMetadataBuilder, Type,
};
use parquet::arrow::ArrowWriter;

use super::*;
use crate::simulation::{MemoryStorage, Pace, VirtualClock, block_on};

const TABLE: &str = "memory://w/kafka/t";

fn schema(schema_id: i32, value: &str, extra: bool) -> Schema {
    let field =
        |id, name: &str, primitive| NestedField::optional(id, name, Type::Primitive(primitive)).into();
    let mut fields = vec![
        field(1, "_kafka_partition", PrimitiveType::Int),
        field(2, "_kafka_offset", PrimitiveType::Long),
        field(3, "_kafka_timestamp", PrimitiveType::Timestamptz),
        field(4, "_kafka_epoch", PrimitiveType::Int),
        field(5, "_kafka_key", PrimitiveType::String),
        field(6, value, PrimitiveType::String),
    ];
    if extra {
        fields.push(field(7, "later", PrimitiveType::Long));
    }
    Schema::builder()
        .with_schema_id(schema_id)
        .with_fields(fields)
        .build()
        .unwrap()
}

struct Table {
    storage: MemoryStorage,
    files: Vec<DataFile>,
}

impl Table {
    fn new() -> Self {
        let clock = Arc::new(VirtualClock::eager());
        Self {
            storage: MemoryStorage::new(clock, Pace::steady(), 10),
            files: Vec::new(),
        }
    }

    fn put(&self, location: &str, bytes: Vec<u8>) {
        block_on(self.storage.put(location, bytes.into(), None)).unwrap();
    }

    /// One row per offset, partition 3, epoch 1, value `v<offset>`.
    fn add_file(&mut self, name: &str, offsets: &[i64]) {
        let arrow = Arc::new(schema_to_arrow_schema(&schema(0, "v", false)).unwrap());
        let count = offsets.len();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(vec![3; count])),
            Arc::new(Int64Array::from(offsets.to_vec())),
            Arc::new(TimestampMicrosecondArray::from(vec![Some(5_000); count]).with_timezone("+00:00")),
            Arc::new(Int32Array::from(vec![1; count])),
            Arc::new(StringArray::from(vec![None::<&str>; count])),
            Arc::new(StringArray::from_iter_values(
                offsets.iter().map(|offset| format!("v{offset}")),
            )),
        ];
        let batch = RecordBatch::try_new(Arc::clone(&arrow), columns).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, arrow, None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let location = format!("{TABLE}/data/{name}.parquet");
        let file = DataFileBuilder::default()
            .content(DataContentType::Data)
            .file_path(location.clone())
            .file_format(DataFileFormat::Parquet)
            .partition(Struct::empty())
            .partition_spec_id(0)
            .record_count(count as u64)
            .file_size_in_bytes(bytes.len() as u64)
            .build()
            .unwrap();
        self.files.push(file);
        self.put(&location, bytes);
    }

    fn metadata(&self, schema: Schema) -> TableMetadata {
        let creation = TableCreation::builder()
            .name("t".to_owned())
            .location(TABLE.to_owned())
            .schema(schema.clone())
            .format_version(FormatVersion::V2)
            .properties(HashMap::new())
            .build();
        let metadata = TableMetadataBuilder::from_table_creation(creation)
            .unwrap()
            .build()
            .unwrap()
            .metadata;
        let io = file_io(Arc::new(self.storage.clone()));
        let list = format!("{TABLE}/metadata/list.avro");
        block_on(async {
            let output = io.new_output(format!("{TABLE}/metadata/m0.avro")).unwrap();
            let spec = metadata.default_partition_spec().as_ref().clone();
            let mut writer =
                ManifestWriterBuilder::new(output, Some(7), Arc::new(schema), spec).build_v2_data();
            for file in &self.files {
                writer.add_file(file.clone(), 1).unwrap();
            }
            let manifest = writer.write_manifest_file().await.unwrap();
            let output = io.new_output(&list).unwrap().writer().await.unwrap();
            let mut writer = ManifestListWriter::v2(output, 7, None, 1);
            writer.add_manifests([manifest].into_iter()).unwrap();
            writer.close().await.unwrap();
        });
        let snapshot = Snapshot::builder()
            .with_snapshot_id(7)
            .with_sequence_number(1)
            .with_timestamp_ms(metadata.last_updated_ms() + 1)
            .with_manifest_list(list)
            .with_summary(Summary {
                operation: Operation::Append,
                additional_properties: HashMap::new(),
            })
            .build();
        let builder = metadata
            .into_builder(None)
            .set_branch_snapshot(snapshot, "main")
            .unwrap();
        builder.build().unwrap().metadata
    }

    fn reader(&self) -> TableReader {
        let storage = self.storage.clone();
        TableReader::new(Columns::TABLE, Box::new(move |location| storage.peek(location)))
    }

    fn rows(&self) -> Result<Vec<VisibleRow>, String> {
        self.reader().rows(&self.metadata(schema(0, "v", false)))
    }
}

fn row(offset: i64, column: &str) -> VisibleRow {
    let value = format!("v{offset}");
    let fingerprint = fingerprint(Some(5), None, [(column, value.as_str())]);
    VisibleRow {
        epoch: 1,
        partition: 3,
        offset,
        fingerprint,
    }
}

fn two_files() -> Table {
    let mut table = Table::new();
    table.add_file("a", &[0, 1]);
    table.add_file("b", &[4]);
    table
}

#[test]
fn reads_what_was_written() {
    let table = two_files();
    let metadata = table.metadata(schema(0, "v", false));
    table.put("memory://w/metadata.json", serde_json::to_vec(&metadata).unwrap());
    let mut reader = table.reader();
    let metadata = reader.metadata("memory://w/metadata.json").unwrap();
    assert_eq!(
        reader.rows(&metadata).unwrap(),
        [row(0, "v"), row(1, "v"), row(4, "v")]
    );
    let references: Vec<String> = reader.references(&metadata).unwrap().into_iter().collect();
    let expected = [
        "data/a.parquet",
        "data/b.parquet",
        "metadata/list.avro",
        "metadata/m0.avro",
    ];
    assert_eq!(references, expected.map(|name| format!("{TABLE}/{name}")));
    reader.check_references(&metadata).unwrap();
    block_on(table.storage.delete(&references[1..2])).unwrap();
    let error = reader.check_references(&metadata).unwrap_err();
    assert_eq!(
        error,
        format!("I7: {TABLE}/data/b.parquet is referenced and missing")
    );
}

#[test]
fn columns_are_found_by_id_and_named_by_the_schema() {
    let table = two_files();
    let metadata = table.metadata(schema(0, "renamed", true));
    assert_eq!(table.reader().rows(&metadata).unwrap()[2], row(4, "renamed"));
}

#[test]
fn says_what_is_wrong_with_a_file() {
    let check = |spoil: &dyn Fn(&mut Table), expected: &str| {
        let mut table = two_files();
        spoil(&mut table);
        let error = table.rows().unwrap_err();
        assert!(error.contains(expected), "{error}");
    };
    let path = format!("{TABLE}/data/a.parquet");
    let gone = |table: &mut Table| {
        block_on(table.storage.delete(std::slice::from_ref(&path))).unwrap();
    };
    check(
        &gone,
        "I7: memory://w/kafka/t/data/a.parquet is referenced and missing",
    );
    check(
        &|table| table.files.push(table.files[0].clone()),
        "a.parquet is in the snapshot twice",
    );
    let longer = |table: &mut Table| {
        let mut bytes = table.storage.peek(&path).unwrap().to_vec();
        bytes.push(0);
        table.put(&path, bytes);
    };
    check(&longer, "its manifest says");
    let other = |table: &mut Table| {
        let last = table.files.len() - 1;
        let swapped = table.storage.peek(table.files[last].file_path()).unwrap();
        table.files[last] = DataFileBuilder::default()
            .content(DataContentType::Data)
            .file_path(table.files[last].file_path().to_owned())
            .file_format(DataFileFormat::Parquet)
            .partition(Struct::empty())
            .partition_spec_id(0)
            .record_count(2)
            .file_size_in_bytes(swapped.len() as u64)
            .build()
            .unwrap();
    };
    check(&other, "b.parquet has 1 rows, its manifest says 2");
}
