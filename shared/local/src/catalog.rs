use async_trait::async_trait;
use frazil_core::{Error, ErrorKind, NamespaceName, Result, TableName};
use frazil_table::{Catalog, Pointer};
use iceberg::spec::TableMetadata;
use rusqlite::{OptionalExtension, params};

use crate::Database;

/// The name that engines give to the catalog: `SqlCatalog("frazil", uri="sqlite:////data/warehouse/catalog.db")`.
pub const CATALOG_NAME: &str = "frazil";

/// The catalog in a SQLite file that PyIceberg and Spark open too. A pointer's version is the metadata location itself.
#[derive(Debug, Clone)]
pub struct SqliteCatalog {
    database: Database,
}

impl SqliteCatalog {
    /// Keeps tables in `database`, under [`CATALOG_NAME`].
    pub fn new(database: Database) -> Self {
        Self { database }
    }

    /// Views share the table; version 0 of the schema has none and no column to tell.
    fn only_tables(&self) -> &'static str {
        match self.database.has_views() {
            true => " AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)",
            false => "",
        }
    }
}

const CREATE_NAMESPACE: &str = "create the namespace";
const LIST_NAMESPACES: &str = "list the namespaces";
const LIST_TABLES: &str = "list the tables";
const LOAD: &str = "load the table's pointer";
const CREATE: &str = "create the table";
const SWAP: &str = "swap the table's pointer";
const DROP: &str = "drop the table";

#[async_trait]
impl Catalog for SqliteCatalog {
    async fn create_namespace(&self, namespace: &NamespaceName) -> Result<()> {
        let namespace = namespace.clone();
        // The property is PyIceberg's and Java's mark of a namespace without properties of its own.
        let sql = "INSERT INTO iceberg_namespace_properties (catalog_name, namespace, property_key, property_value) \
                   VALUES (?1, ?2, 'exists', 'true') ON CONFLICT DO NOTHING";
        self.database
            .write(CREATE_NAMESPACE, move |transaction| {
                transaction.execute(sql, params![CATALOG_NAME, namespace.as_str()])
            })
            .await
            .map(drop)
    }

    async fn namespaces(&self) -> Result<Vec<NamespaceName>> {
        let sql = "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ?1 \
                   UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = ?1 ORDER BY 1";
        self.database
            .read(LIST_NAMESPACES, move |connection| {
                connection
                    .prepare(sql)?
                    .query_map([CATALOG_NAME], |row| {
                        Ok(NamespaceName::new(row.get::<_, String>(0)?))
                    })?
                    .collect()
            })
            .await
    }

    /// Tables whose names Glue and Athena could not hold are somebody else's; they are left out.
    async fn tables(&self, namespace: &NamespaceName) -> Result<Vec<TableName>> {
        let sql = format!(
            "SELECT table_name FROM iceberg_tables WHERE catalog_name = ?1 AND table_namespace = ?2{} ORDER BY 1",
            self.only_tables()
        );
        let name = namespace.clone();
        let tables: Vec<String> = self
            .database
            .read(LIST_TABLES, move |connection| {
                connection
                    .prepare(&sql)?
                    .query_map(params![CATALOG_NAME, name.as_str()], |row| row.get(0))?
                    .collect()
            })
            .await?;
        Ok(tables
            .iter()
            .filter_map(|table| TableName::new(namespace.as_str(), table).ok())
            .collect())
    }

    async fn load(&self, table: &TableName) -> Result<Option<Pointer>> {
        let sql = format!(
            "SELECT metadata_location FROM iceberg_tables \
             WHERE catalog_name = ?1 AND table_namespace = ?2 AND table_name = ?3{}",
            self.only_tables()
        );
        let name = table.clone();
        let found: Option<Option<String>> = self
            .database
            .read(LOAD, move |connection| {
                let key = params![CATALOG_NAME, name.namespace().as_str(), name.table()];
                connection.query_row(&sql, key, |row| row.get(0)).optional()
            })
            .await?;
        match found {
            None => Ok(None),
            Some(Some(metadata_location)) => Ok(Some(Pointer {
                version: metadata_location.clone(),
                metadata_location,
            })),
            Some(None) => Err(Error::new(
                ErrorKind::Internal,
                LOAD,
                "its catalog entry has no metadata location",
            )
            .with_context("table", table)),
        }
    }

    async fn create(&self, table: &TableName, metadata_location: &str, _: &TableMetadata) -> Result<()> {
        let sql = match self.database.has_views() {
            true => {
                "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, \
                 iceberg_type) VALUES (?1, ?2, ?3, ?4, 'TABLE') ON CONFLICT DO NOTHING"
            }
            false => {
                "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location) \
                 VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING"
            }
        };
        let (name, location) = (table.clone(), metadata_location.to_owned());
        let created = self.database.write(CREATE, move |transaction| {
            transaction.execute(
                sql,
                params![CATALOG_NAME, name.namespace().as_str(), name.table(), location],
            )
        });
        match created.await? {
            0 => {
                Err(Error::new(ErrorKind::Conflict, CREATE, "the name is taken").with_context("table", table))
            }
            _ => Ok(()),
        }
    }

    async fn swap(
        &self,
        table: &TableName,
        expected: &Pointer,
        metadata_location: &str,
        _: &TableMetadata,
    ) -> Result<()> {
        if metadata_location == expected.version {
            // It would leave the pointer as it is, so that a second swap from it would succeed as well.
            return Err(Error::new(
                ErrorKind::Invalid,
                SWAP,
                "the new metadata location is the old one",
            )
            .with_context("table", table)
            .with_context("metadata_location", metadata_location));
        }
        let sql = format!(
            "UPDATE iceberg_tables SET metadata_location = ?5, previous_metadata_location = ?4 \
             WHERE catalog_name = ?1 AND table_namespace = ?2 AND table_name = ?3 AND metadata_location = ?4{}",
            self.only_tables()
        );
        let (name, from, to) = (
            table.clone(),
            expected.version.clone(),
            metadata_location.to_owned(),
        );
        let swapped = self.database.write(SWAP, move |transaction| {
            let values = params![CATALOG_NAME, name.namespace().as_str(), name.table(), from, to];
            transaction.execute(&sql, values)
        });
        match swapped.await? {
            0 => Err(
                Error::new(ErrorKind::Conflict, SWAP, "somebody else moved it meanwhile")
                    .with_context("table", table),
            ),
            _ => Ok(()),
        }
    }

    async fn drop_table(&self, table: &TableName) -> Result<()> {
        let sql = format!(
            "DELETE FROM iceberg_tables WHERE catalog_name = ?1 AND table_namespace = ?2 AND table_name = ?3{}",
            self.only_tables()
        );
        let name = table.clone();
        self.database
            .write(DROP, move |transaction| {
                transaction.execute(
                    &sql,
                    params![CATALOG_NAME, name.namespace().as_str(), name.table()],
                )
            })
            .await
            .map(drop)
    }
}

#[cfg(test)]
mod tests;
