use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_glue::Client;
use aws_sdk_glue::config::retry::RetryConfig;
use aws_sdk_glue::types::{DatabaseInput, Table};
use frazil_core::{Environment, Error, ErrorKind, NamespaceName, Result, TableName};
use frazil_table::{Catalog, Pointer};
use iceberg::spec::TableMetadata;

use crate::account::Account;
use crate::failure::Refusal;
use shape::Columns;

mod failed;
mod shape;

/// How often a change is offered that Glue had no time for: it says so before it does anything.
const MAX_OFFERS: u32 = 8;

const CREATE_NAMESPACE: &str = "create the database";
const LIST_NAMESPACES: &str = "list the databases";
const LIST_TABLES: &str = "list the tables";
const LOAD: &str = "load the table's pointer";
const CREATE: &str = "create the table";
const SWAP: &str = "swap the table's pointer";
const DROP: &str = "drop the table";

const TABLE_TYPE: &str = "table_type";
const ICEBERG: &str = "ICEBERG";
const METADATA_LOCATION: &str = "metadata_location";
const PREVIOUS_METADATA_LOCATION: &str = "previous_metadata_location";

/// Tables in the Glue Data Catalog, in the form that Iceberg's own Glue catalog gives them: engines read the metadata
/// location, and people and Lake Formation the columns.
///
/// A pointer's version is Glue's VersionId. A swap is one `UpdateTable` with it, never repeated by the SDK: the second
/// answer to a swap that succeeded would be a conflict. Old versions are not archived, since Glue holds 100,000 of a
/// table. Parameters that others have set stay.
#[derive(Debug, Clone)]
pub struct GlueCatalog {
    client: Client,
    /// Of the account whose catalog it is; the caller's own without it.
    catalog_id: Option<String>,
    /// Where databases that it makes lie.
    warehouse: String,
    environment: Environment,
}

impl GlueCatalog {
    /// The catalog `catalog_id`, or that of the account. Databases that it makes lie below `warehouse`.
    pub fn new(
        account: &Account,
        catalog_id: Option<String>,
        warehouse: impl Into<String>,
        environment: &Environment,
    ) -> Self {
        Self {
            client: Client::new(account.sdk()),
            catalog_id,
            warehouse: warehouse.into(),
            environment: environment.clone(),
        }
    }

    async fn table(&self, table: &TableName) -> Result<Option<Table>> {
        let request = self.client.get_table().set_catalog_id(self.catalog_id.clone());
        let request = request
            .database_name(table.namespace().as_str())
            .name(table.table());
        match request.send().await {
            Ok(answer) => Ok(answer.table),
            Err(error) => {
                let refusal = Refusal::of(&error);
                match refusal.code.as_str() {
                    "EntityNotFoundException" => Ok(None),
                    _ => Err(failed::reading(LOAD, refusal)
                        .with_context("table", table)
                        .with_source(error)),
                }
            }
        }
    }

    /// Offers a change until Glue has time for it, with fewer columns when they are too much for it.
    async fn offer(&self, change: Change<'_>) -> Result<()> {
        let table = change.table;
        let operation = if change.replaced.is_some() { SWAP } else { CREATE };
        let mut columns = Columns::All;
        let mut offers = 0;
        loop {
            let Err(error) = self.send(&change, columns).await else {
                return Ok(());
            };
            let (refusal, source) = *error;
            offers += 1;
            if refusal.is_throttling() && offers < MAX_OFFERS {
                let (base, limit) = (Duration::from_millis(100), Duration::from_secs(5));
                self.environment.backoff(offers, base, limit).await;
                continue;
            }
            if failed::is_too_large(&refusal)
                && let Some(fewer) = columns.fewer()
            {
                tracing::warn!(%table, %refusal, ?fewer, "Glue refuses so many columns: it is shown fewer");
                columns = fewer;
                continue;
            }
            return Err(failed::writing(operation, refusal)
                .with_context("table", table)
                .with_source(source));
        }
    }

    async fn send(&self, change: &Change<'_>, columns: Columns) -> Result<(), Box<(Refusal, Cause)>> {
        // Never repeated by the SDK.
        let once = aws_sdk_glue::config::Builder::new().retry_config(RetryConfig::disabled());
        let input = shape::table_input(change, columns);
        let database = change.table.namespace().as_str();
        match change.replaced {
            None => {
                let request = self.client.create_table().set_catalog_id(self.catalog_id.clone());
                let request = request.database_name(database).table_input(input);
                let sent = request.customize().config_override(once).send().await;
                sent.map(drop)
                    .map_err(|error| Box::new((Refusal::of(&error), error.into())))
            }
            Some((expected, _)) => {
                let request = self.client.update_table().set_catalog_id(self.catalog_id.clone());
                let request = request.database_name(database).table_input(input);
                let request = request.version_id(&expected.version).skip_archive(true);
                let sent = request.customize().config_override(once).send().await;
                sent.map(drop)
                    .map_err(|error| Box::new((Refusal::of(&error), error.into())))
            }
        }
    }
}

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A creation, or a swap of what is `replaced`.
struct Change<'c> {
    table: &'c TableName,
    metadata_location: &'c str,
    metadata: &'c TableMetadata,
    replaced: Option<(&'c Pointer, &'c Table)>,
}

fn parameter<'t>(table: &'t Table, name: &str) -> Option<&'t str> {
    table.parameters()?.get(name).map(String::as_str)
}

fn is_iceberg(table: &Table) -> bool {
    parameter(table, TABLE_TYPE).is_some_and(|kind| kind.eq_ignore_ascii_case(ICEBERG))
}

fn pointer(name: &TableName, table: &Table) -> Result<Pointer> {
    let refuse = |kind, message: &str| Error::new(kind, LOAD, message).with_context("table", name);
    if !is_iceberg(table) {
        return Err(refuse(
            ErrorKind::Invalid,
            "Glue has a table of this name that is not Iceberg's",
        )
        .with_hint("name the topic's table otherwise with `table`, or drop that one"));
    }
    let Some(metadata_location) = parameter(table, METADATA_LOCATION) else {
        return Err(
            refuse(ErrorKind::Internal, "its entry in Glue has no metadata_location")
                .with_hint("set the table parameter to the last good metadata.json"),
        );
    };
    let Some(version) = table.version_id() else {
        return Err(refuse(ErrorKind::Internal, "its entry in Glue has no version"));
    };
    Ok(Pointer {
        metadata_location: metadata_location.to_owned(),
        version: version.to_owned(),
    })
}

#[async_trait]
impl Catalog for GlueCatalog {
    async fn create_namespace(&self, namespace: &NamespaceName) -> Result<()> {
        let request = self.client.get_database().set_catalog_id(self.catalog_id.clone());
        let failed = |refusal| failed::reading(CREATE_NAMESPACE, refusal).with_context("database", namespace);
        match request.name(namespace.as_str()).send().await {
            Ok(_) => return Ok(()),
            Err(error) => {
                let refusal = Refusal::of(&error);
                if refusal.code != "EntityNotFoundException" {
                    return Err(failed(refusal).with_source(error));
                }
            }
        }
        let input = DatabaseInput::builder()
            .name(namespace.as_str())
            .description("Kafka topics, kept by Frazil")
            .location_uri(format!("{}/{namespace}", self.warehouse))
            .build()
            .map_err(|error| Error::new(ErrorKind::Internal, CREATE_NAMESPACE, error.to_string()))?;
        let request = self
            .client
            .create_database()
            .set_catalog_id(self.catalog_id.clone());
        let Err(error) = request.database_input(input).send().await else {
            return Ok(());
        };
        let refusal = Refusal::of(&error);
        match refusal.code.as_str() {
            "AlreadyExistsException" => Ok(()),
            _ => Err(failed(refusal).with_source(error)),
        }
    }

    async fn namespaces(&self) -> Result<Vec<NamespaceName>> {
        let request = self
            .client
            .get_databases()
            .set_catalog_id(self.catalog_id.clone());
        let mut pages = request.into_paginator().send();
        let mut names = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page
                .map_err(|error| failed::reading(LIST_NAMESPACES, Refusal::of(&error)).with_source(error))?;
            names.extend(
                page.database_list
                    .iter()
                    .map(|database| NamespaceName::new(database.name())),
            );
        }
        names.sort();
        Ok(names)
    }

    /// Iceberg tables, whoever made them. O(tables of the database).
    async fn tables(&self, namespace: &NamespaceName) -> Result<Vec<TableName>> {
        let request = self.client.get_tables().set_catalog_id(self.catalog_id.clone());
        let mut pages = request.database_name(namespace.as_str()).into_paginator().send();
        let mut names = Vec::new();
        while let Some(page) = pages.next().await {
            let page = match page {
                Ok(page) => page,
                Err(error) => {
                    let refusal = Refusal::of(&error);
                    return match refusal.code.as_str() {
                        "EntityNotFoundException" => Ok(Vec::new()),
                        _ => Err(failed::reading(LIST_TABLES, refusal)
                            .with_context("database", namespace)
                            .with_source(error)),
                    };
                }
            };
            let tables = page.table_list().iter().filter(|table| is_iceberg(table));
            // A name that could not be one of ours is somebody else's table.
            names.extend(tables.filter_map(|table| TableName::new(namespace.as_str(), table.name()).ok()));
        }
        names.sort();
        Ok(names)
    }

    async fn load(&self, table: &TableName) -> Result<Option<Pointer>> {
        let found = self.table(table).await?;
        found.as_ref().map(|found| pointer(table, found)).transpose()
    }

    async fn create(
        &self,
        table: &TableName,
        metadata_location: &str,
        metadata: &TableMetadata,
    ) -> Result<()> {
        self.offer(Change {
            table,
            metadata_location,
            metadata,
            replaced: None,
        })
        .await
    }

    async fn swap(
        &self,
        table: &TableName,
        expected: &Pointer,
        metadata_location: &str,
        metadata: &TableMetadata,
    ) -> Result<()> {
        let conflict =
            |message: &str| Error::new(ErrorKind::Conflict, SWAP, message).with_context("table", table);
        if metadata_location == expected.metadata_location {
            return Err(Error::new(
                ErrorKind::Invalid,
                SWAP,
                "the new metadata location is the old one",
            )
            .with_context("table", table)
            .with_context("metadata_location", metadata_location));
        }
        let Some(current) = self.table(table).await? else {
            return Err(conflict("the table is gone"));
        };
        // The version alone does not tell: a table that was dropped and made again counts from the start.
        if pointer(table, &current)? != *expected {
            return Err(conflict("somebody else moved it meanwhile"));
        }
        self.offer(Change {
            table,
            metadata_location,
            metadata,
            replaced: Some((expected, &current)),
        })
        .await
    }

    async fn drop_table(&self, table: &TableName) -> Result<()> {
        let request = self.client.delete_table().set_catalog_id(self.catalog_id.clone());
        let request = request
            .database_name(table.namespace().as_str())
            .name(table.table());
        let Err(error) = request.send().await else {
            return Ok(());
        };
        let refusal = Refusal::of(&error);
        match refusal.code.as_str() {
            "EntityNotFoundException" => Ok(()),
            _ => Err(failed::reading(DROP, refusal)
                .with_context("table", table)
                .with_source(error)),
        }
    }
}
