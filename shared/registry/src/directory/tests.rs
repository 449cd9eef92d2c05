use proptest::prelude::*;

use super::*;
use crate::{MAX_SCHEMA_FILE_BYTES, RegisteredSchema};

fn registry(files: &[(&str, &[u8])]) -> (tempfile::TempDir, DirectoryRegistry) {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let registry = DirectoryRegistry::new(folder.path());
    (folder, registry)
}

fn id(id: u32) -> SchemaRef {
    SchemaRef::Id(SchemaId(id))
}

fn latest(subject: &str) -> SchemaRef {
    SchemaRef::Subject {
        subject: subject.to_owned(),
        version: SubjectVersion::Latest,
    }
}

#[tokio::test]
async fn each_kind_is_found_by_its_extension() {
    let (_folder, registry) = registry(&[
        ("ids/1.avsc", b"\"int\""),
        ("ids/2.json", b"{}"),
        ("ids/3.proto", b"message M {}"),
        ("guids/89791c0e-5e8a-4f6b-9b1a-2b3c4d5e6f70.avsc", b"\"long\""),
        ("versions/89791c0e-5e8a-4f6b-9b1a-2b3c4d5e6f70.json", b"true"),
    ]);
    let uuid = "89791c0e-5e8a-4f6b-9b1a-2b3c4d5e6f70".parse().unwrap();
    for (reference, kind, text) in [
        (id(1), SchemaKind::Avro, "\"int\""),
        (id(2), SchemaKind::Json, "{}"),
        (id(3), SchemaKind::Protobuf, "message M {}"),
        (SchemaRef::Apicurio(3), SchemaKind::Protobuf, "message M {}"),
        (SchemaRef::Guid(uuid), SchemaKind::Avro, "\"long\""),
        (SchemaRef::GlueVersion(uuid), SchemaKind::Json, "true"),
    ] {
        let found = registry.schema(&reference).await.unwrap();
        let expected = RegisteredSchema {
            kind,
            text: text.to_owned(),
            references: Vec::new(),
        };
        assert_eq!(found, expected, "{reference}");
    }
}

#[tokio::test]
async fn references_stand_beside_the_schema() {
    let (folder, registry) = registry(&[
        ("ids/1.proto", b"import \"money.proto\";"),
        (
            "ids/1.references.json",
            br#"[{"name": "money.proto", "subject": "money", "version": 2}, {"name": "x.proto", "id": 4}]"#,
        ),
        ("ids/3.proto", b"money, version 2"),
        ("ids/4.proto", b"x"),
        (
            "subjects/money.json",
            br#"{"versions": [{"version": 3, "id": 4}, {"version": 2, "id": 3}]}"#,
        ),
        ("ids/5.proto", b""),
        (
            "ids/5.references.json",
            br#"[{"name": "money.proto", "subject": "money"}]"#,
        ),
        ("own/orders.proto", b"orders"),
        (
            "own/orders.references.json",
            br#"[{"name": "common/money.proto", "file": "common/money.proto"}]"#,
        ),
        ("own/common/money.proto", b"money"),
    ]);
    let expected = [("money.proto", "money, version 2"), ("x.proto", "x")];
    let found = registry.schema(&id(1)).await.unwrap().references;
    assert_eq!(
        found,
        expected.map(|(name, text)| (name.to_owned(), text.to_owned()))
    );

    let error = registry.schema(&id(5)).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.code()),
        (ErrorKind::Invalid, Some("registry.bad_reference"))
    );
    assert!(
        error
            .message()
            .ends_with("`money.proto` needs subject and version, or id, or file"),
        "{error}"
    );

    let file = SchemaRef::File(folder.path().join("own/orders.proto"));
    let found = FileSchemas.schema(&file).await.unwrap();
    assert_eq!(
        found.references,
        [("common/money.proto".to_owned(), "money".to_owned())]
    );
}

#[tokio::test]
async fn an_unknown_id_is_the_records_fault_and_an_absent_directory_is_not() {
    let (folder, registry) = registry(&[
        ("ids/1.avsc", b"\"int\""),
        ("subjects/a.json", b"{\"versions\": []}"),
    ]);
    for reference in [id(4), latest("a"), latest("b"), SchemaRef::version("a", 1)] {
        let error = registry.schema(&reference).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.code()),
            (ErrorKind::Poison, Some("registry.unknown_schema")),
            "{reference}"
        );
    }

    let elsewhere = folder.path().join("elsewhere");
    let error = DirectoryRegistry::new(&elsewhere)
        .schema(&id(1))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.to_string().contains(&elsewhere.display().to_string()),
        "{error}"
    );
}

#[tokio::test]
async fn what_cannot_be_used_is_refused() {
    let long = vec![b' '; usize::try_from(MAX_SCHEMA_FILE_BYTES).unwrap() + 1];
    let (_folder, registry) = registry(&[("ids/1.avsc", &long), ("ids/2.avsc", b"\xff")]);
    for (number, reason) in [(1, "longer than 1048576 bytes"), (2, "not UTF-8")] {
        let error = registry.schema(&id(number)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test]
async fn the_latest_version_has_the_highest_number() {
    let (_folder, registry) = registry(&[
        (
            "subjects/orders-value.json",
            br#"{"versions": [{"version": 2, "id": 5}, {"version": 1, "id": 9}]}"#,
        ),
        ("ids/5.avsc", b"five"),
        ("ids/9.avsc", b"nine"),
        ("subjects/broken.json", b"{"),
    ]);
    for (reference, text) in [
        (latest("orders-value"), "five"),
        (SchemaRef::version("orders-value", 2), "five"),
        (SchemaRef::version("orders-value", 1), "nine"),
    ] {
        assert_eq!(registry.schema(&reference).await.unwrap().text, text);
    }
    for subject in ["broken", "../ids/1", ""] {
        assert_eq!(
            registry.schema(&latest(subject)).await.unwrap_err().kind(),
            ErrorKind::Invalid,
            "{subject}"
        );
    }
}

#[tokio::test]
async fn a_file_says_its_language_and_must_be_there() {
    let (folder, _) = registry(&[("a.txt", b""), ("b.avsc", b"\"int\"")]);
    let file = |name: &str| SchemaRef::File(folder.path().join(name));
    assert_eq!(
        FileSchemas.schema(&file("b.avsc")).await.unwrap().kind,
        SchemaKind::Avro
    );
    for (reference, kind) in [
        (file("a.txt"), ErrorKind::Invalid),
        (file("absent.avsc"), ErrorKind::Unavailable),
        (id(1), ErrorKind::Invalid),
    ] {
        let error = FileSchemas.schema(&reference).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
}

/// Whatever stands in a directory's lists: an answer, or what is wrong with the file.
fn check_lists(text: &[u8]) {
    let (_folder, registry) = registry(&[
        ("ids/1.avsc", b"\"int\""),
        ("ids/1.references.json", text),
        ("subjects/orders.json", text),
    ]);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for reference in [id(1), latest("orders"), SchemaRef::version("orders", 1)] {
        if let Err(error) = runtime.block_on(registry.stored(&reference)) {
            assert_ne!(error.kind(), ErrorKind::Unavailable, "{error}");
        }
    }
}

proptest! {
    #[test]
    fn mutated_lists_never_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4), is_subject in any::<bool>()
    ) {
        let mut text = if is_subject {
            br#"{"versions": [{"version": 1, "id": 1}, {"version": 2, "id": 7}]}"#.to_vec()
        } else {
            br#"[{"name": "a", "subject": "orders", "version": 1}, {"name": "b", "id": 1}, {"name": "c", "file": "c.avsc"}]"#.to_vec()
        };
        for (at, byte) in edits {
            let at = at.index(text.len());
            text[at] = byte;
        }
        check_lists(&text);
    }

    #[test]
    fn arbitrary_lists_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        check_lists(&bytes);
    }
}
