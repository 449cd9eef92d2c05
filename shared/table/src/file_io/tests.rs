use std::collections::BTreeMap;
use std::sync::Mutex;

use frazil_core::{ErrorKind, Result};
use futures::executor::block_on;
use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, FormatVersion, Manifest, ManifestList,
    ManifestListWriter, ManifestWriterBuilder, NestedField, PartitionSpec, PrimitiveType, Schema, Struct,
    Type,
};

use super::*;
use crate::{ObjectHead, ObjectInfo, Page};

/// Two objects per page, so that every listing has several.
const PAGE: usize = 2;

#[derive(Debug, Default)]
struct Memory {
    objects: Mutex<BTreeMap<String, Bytes>>,
    down: bool,
}

impl Memory {
    fn lock(&self) -> Result<std::sync::MutexGuard<'_, BTreeMap<String, Bytes>>> {
        if self.down {
            return Err(Error::new(
                ErrorKind::Unavailable,
                "reach the storage",
                "it is down",
            ));
        }
        Ok(self.objects.lock().unwrap())
    }
}

#[async_trait]
impl ObjectStorage for Memory {
    async fn put(&self, location: &str, bytes: Bytes, _: Option<&str>) -> Result<()> {
        self.lock()?.insert(location.to_owned(), bytes);
        Ok(())
    }

    async fn get(&self, location: &str, _: u64) -> Result<Option<Bytes>> {
        Ok(self.lock()?.get(location).cloned())
    }

    async fn get_range(&self, location: &str, start: u64, length: u64) -> Result<Option<Bytes>> {
        Ok(self.lock()?.get(location).map(|bytes| {
            let start = (start as usize).min(bytes.len());
            bytes.slice(start..bytes.len().min(start + length as usize))
        }))
    }

    async fn head(&self, location: &str) -> Result<Option<ObjectHead>> {
        Ok(self.lock()?.get(location).map(|bytes| ObjectHead {
            size_bytes: bytes.len() as u64,
            modified: Default::default(),
            attributes: None,
        }))
    }

    async fn list_page(&self, prefix: &str, after: Option<&str>) -> Result<Page> {
        let objects = self.lock()?;
        let objects: Vec<ObjectInfo> = objects
            .iter()
            .filter(|(location, _)| {
                location.starts_with(prefix) && after.is_none_or(|after| location.as_str() > after)
            })
            .take(PAGE)
            .map(|(location, bytes)| ObjectInfo {
                location: location.clone(),
                size_bytes: bytes.len() as u64,
                modified: Default::default(),
            })
            .collect();
        let next = (objects.len() == PAGE).then(|| objects[PAGE - 1].location.clone());
        Ok(Page { objects, next })
    }

    async fn delete(&self, locations: &[String]) -> Result<()> {
        let mut objects = self.lock()?;
        for location in locations {
            objects.remove(location);
        }
        Ok(())
    }
}

fn names(memory: &Memory) -> Vec<String> {
    memory.objects.lock().unwrap().keys().cloned().collect()
}

#[test]
fn iceberg_writes_and_reads_its_manifests_through_it() {
    block_on(async {
        let memory = Arc::new(Memory::default());
        let io = file_io(memory.clone());
        let id = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long));
        let schema = Arc::new(Schema::builder().with_fields(vec![id.into()]).build().unwrap());
        let file = DataFileBuilder::default()
            .content(DataContentType::Data)
            .file_path("memory:/t/data/a.parquet".to_owned())
            .file_format(DataFileFormat::Parquet)
            .partition(Struct::empty())
            .partition_spec_id(0)
            .record_count(42)
            .file_size_in_bytes(4_200)
            .build()
            .unwrap();

        let output = io.new_output("memory:/t/metadata/m0.avro").unwrap();
        let spec = PartitionSpec::unpartition_spec();
        let mut manifest = ManifestWriterBuilder::new(output, Some(7), schema, spec).build_v2_data();
        manifest.add_file(file, 1).unwrap();
        let manifest = manifest.write_manifest_file().await.unwrap();
        let writer = io
            .new_output("memory:/t/metadata/snap-7.avro")
            .unwrap()
            .writer()
            .await
            .unwrap();
        let mut list = ManifestListWriter::v2(writer, 7, None, 1);
        list.add_manifests(std::iter::once(manifest)).unwrap();
        assert_eq!(
            names(&memory),
            ["memory:/t/metadata/m0.avro"],
            "an open writer shows nothing"
        );
        list.close().await.unwrap();

        let bytes = io
            .new_input("memory:/t/metadata/snap-7.avro")
            .unwrap()
            .read()
            .await
            .unwrap();
        let list = ManifestList::parse_with_version(&bytes, FormatVersion::V2).unwrap();
        let entry = &list.entries()[0];
        assert_eq!(
            (entry.manifest_path.as_str(), entry.added_rows_count),
            ("memory:/t/metadata/m0.avro", Some(42))
        );
        let bytes = io.new_input(&entry.manifest_path).unwrap().read().await.unwrap();
        let manifest = Manifest::parse_avro(&bytes).unwrap();
        assert_eq!(manifest.entries()[0].file_path(), "memory:/t/data/a.parquet");
        let loaded = entry.load_manifest(&io).await.unwrap();
        assert_eq!(loaded.entries()[0].data_file(), manifest.entries()[0].data_file());
    });
}

#[test]
fn a_range_is_whole_or_an_error() {
    block_on(async {
        let io = file_io(Arc::new(Memory::default()));
        io.new_output("memory:/a")
            .unwrap()
            .write(Bytes::from_static(b"0123456789"))
            .await
            .unwrap();
        let input = io.new_input("memory:/a").unwrap();
        assert_eq!(input.metadata().await.unwrap().size, 10);
        let reader = input.reader().await.unwrap();
        assert_eq!(reader.read(2..5).await.unwrap(), &b"234"[..]);
        assert_eq!(reader.read(10..10).await.unwrap(), &b""[..]);
        for (range, reason) in [
            (8..11, "the file ends before byte 11: 2 of 3 bytes"),
            (0..u64::MAX, "are more than"),
        ] {
            let error = reader.read(range).await.unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
    });
}

#[test]
fn deleting_a_prefix_spares_its_siblings() {
    block_on(async {
        let memory = Arc::new(Memory::default());
        let io = file_io(memory.clone());
        for path in [
            "memory:/t/1",
            "memory:/t/2",
            "memory:/t/3",
            "memory:/t/4/5",
            "memory:/t2/1",
            "memory:/t",
        ] {
            io.new_output(path).unwrap().write(Bytes::new()).await.unwrap();
        }
        io.delete_prefix("memory:/t").await.unwrap();
        assert_eq!(names(&memory), ["memory:/t", "memory:/t2/1"]);
        io.delete_stream(futures::stream::iter([
            "memory:/t".to_owned(),
            "memory:/gone".to_owned(),
        ]))
        .await
        .unwrap();
        assert_eq!(names(&memory), ["memory:/t2/1"]);
        assert!(io.exists("memory:/t2/1").await.unwrap());
        io.delete("memory:/t2/1").await.unwrap();
        assert!(!io.exists("memory:/t2/1").await.unwrap());
    });
}

#[test]
fn the_storages_own_error_is_found_again() {
    block_on(async {
        let io = file_io(Arc::new(Memory {
            down: true,
            ..Memory::default()
        }));
        let error = io.new_input("memory:/a").unwrap().read().await.unwrap_err();
        assert!(error.retryable());
        assert_eq!(storage_error(&error).unwrap().kind(), ErrorKind::Unavailable);

        let io = file_io(Arc::new(Memory::default()));
        let error = io.new_input("memory:/a").unwrap().read().await.unwrap_err();
        assert!(storage_error(&error).is_none() && !error.retryable(), "{error}");
        assert!(error.to_string().contains("memory:/a"), "{error}");
    });
}

#[test]
fn it_stays_on_its_machine() {
    let adapter: Arc<dyn StorageFactory> = Arc::new(Adapter {
        storage: Arc::new(Memory::default()),
    });
    assert!(serde_json::to_string(&*adapter).is_err());
    let text = r#"{"type":"FrazilObjectStorage"}"#;
    assert!(serde_json::from_str::<Box<dyn StorageFactory>>(text).is_err());
}
