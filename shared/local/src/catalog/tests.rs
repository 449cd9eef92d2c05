use std::sync::Arc;

use frazil_core::ErrorKind;
use iceberg::spec::{FormatVersion, PartitionSpec, Schema, SortOrder, TableMetadata, TableMetadataBuilder};
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;

fn catalog() -> (TempDir, SqliteCatalog) {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(&directory.path().join("catalog.db")).unwrap();
    (directory, SqliteCatalog::new(database))
}

fn sqlite(directory: &TempDir) -> Connection {
    Connection::open(directory.path().join("catalog.db")).unwrap()
}

fn metadata() -> TableMetadata {
    let schema = Schema::builder().build().unwrap();
    let spec = PartitionSpec::unpartition_spec().into_unbound();
    let order = SortOrder::unsorted_order();
    TableMetadataBuilder::new(
        schema,
        spec,
        order,
        "file:///w/t".into(),
        FormatVersion::V2,
        Default::default(),
    )
    .unwrap()
    .build()
    .unwrap()
    .metadata
}

fn orders() -> TableName {
    TableName::new("kafka", "orders").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms() {
    let (_directory, catalog) = catalog();
    frazil_table::conformance::catalog(Arc::new(catalog), "file:///w").await;
}

/// What SQLAlchemy 2 makes for PyIceberg 0.11, before views.
const VERSION_0: &str = "
    CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL,
        table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000),
        PRIMARY KEY (catalog_name, table_namespace, table_name));
    CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,
        property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000) NOT NULL,
        PRIMARY KEY (catalog_name, namespace, property_key));";

#[tokio::test(flavor = "multi_thread")]
async fn conforms_on_version_0_of_the_schema() {
    let directory = tempfile::tempdir().unwrap();
    sqlite(&directory).execute_batch(VERSION_0).unwrap();
    let database = Database::open(&directory.path().join("catalog.db")).unwrap();
    assert!(!database.has_views());
    frazil_table::conformance::catalog(Arc::new(SqliteCatalog::new(database)), "file:///w").await;
}

#[tokio::test]
async fn rows_are_what_pyiceberg_reads() {
    let (directory, catalog) = catalog();
    catalog
        .create_namespace(&NamespaceName::new("kafka"))
        .await
        .unwrap();
    catalog
        .create(&orders(), "file:///w/1.json", &metadata())
        .await
        .unwrap();
    let first = catalog.load(&orders()).await.unwrap().unwrap();
    catalog
        .swap(&orders(), &first, "file:///w/2.json", &metadata())
        .await
        .unwrap();
    let row: [String; 6] = sqlite(&directory)
        .query_row(
            "SELECT catalog_name, table_namespace, table_name, metadata_location, previous_metadata_location, \
             iceberg_type FROM iceberg_tables",
            [],
            |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?]),
        )
        .unwrap();
    assert_eq!(
        row,
        [
            "frazil",
            "kafka",
            "orders",
            "file:///w/2.json",
            "file:///w/1.json",
            "TABLE"
        ]
    );
    let row: [String; 4] = sqlite(&directory)
        .query_row(
            "SELECT catalog_name, namespace, property_key, property_value FROM iceberg_namespace_properties",
            [],
            |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]),
        )
        .unwrap();
    assert_eq!(row, ["frazil", "kafka", "exists", "true"]);
}

#[tokio::test]
async fn what_others_put_there_is_read_or_left_alone() {
    let (directory, catalog) = catalog();
    sqlite(&directory)
        .execute_batch(
            "INSERT INTO iceberg_tables VALUES ('frazil', 'mine', 'old', 'file:///w/1.json', NULL, NULL);
             INSERT INTO iceberg_tables VALUES ('frazil', 'mine', 'Upper', 'file:///w/1.json', NULL, 'TABLE');
             INSERT INTO iceberg_tables VALUES ('frazil', 'mine', 'seen', 'file:///w/1.json', NULL, 'VIEW');
             INSERT INTO iceberg_tables VALUES ('frazil', 'mine', 'broken', NULL, NULL, 'TABLE');
             INSERT INTO iceberg_tables VALUES ('another', 'theirs', 't', 'file:///w/1.json', NULL, 'TABLE');
             INSERT INTO iceberg_namespace_properties VALUES ('frazil', 'named', 'owner', 'me');
             INSERT INTO iceberg_namespace_properties VALUES ('another', 'theirs', 'exists', 'true');",
        )
        .unwrap();
    let namespaces = ["mine", "named"].map(NamespaceName::new);
    assert_eq!(catalog.namespaces().await.unwrap(), namespaces);
    let name = |table: &str| TableName::new("mine", table).unwrap();
    assert_eq!(
        catalog.tables(&namespaces[0]).await.unwrap(),
        [name("broken"), name("old")]
    );
    assert!(catalog.load(&name("old")).await.unwrap().is_some());
    assert_eq!(
        catalog.load(&name("seen")).await.unwrap(),
        None,
        "a view is no table"
    );
    assert_eq!(
        catalog.load(&name("broken")).await.unwrap_err().kind(),
        ErrorKind::Internal
    );

    let create = catalog
        .create(&name("seen"), "file:///w/2.json", &metadata())
        .await;
    assert_eq!(
        create.unwrap_err().kind(),
        ErrorKind::Conflict,
        "but its name is taken"
    );
    let pointer = Pointer {
        metadata_location: "file:///w/1.json".into(),
        version: "file:///w/1.json".into(),
    };
    let swap = catalog
        .swap(&name("seen"), &pointer, "file:///w/2.json", &metadata())
        .await;
    assert_eq!(swap.unwrap_err().kind(), ErrorKind::Conflict);
    catalog.drop_table(&name("seen")).await.unwrap();
    let count = "SELECT count(*) FROM iceberg_tables WHERE metadata_location = 'file:///w/1.json'";
    assert_eq!(
        sqlite(&directory)
            .query_row(count, [], |row| row.get::<_, i64>(0))
            .unwrap(),
        4
    );
}

#[tokio::test]
async fn a_swap_to_the_same_location_is_refused() {
    let (_directory, catalog) = catalog();
    catalog
        .create(&orders(), "file:///w/1.json", &metadata())
        .await
        .unwrap();
    let pointer = catalog.load(&orders()).await.unwrap().unwrap();
    let error = catalog
        .swap(&orders(), &pointer, "file:///w/1.json", &metadata())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}
