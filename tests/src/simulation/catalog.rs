use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use frazil_core::{Error, ErrorKind, NamespaceName, Result, TableName};
use frazil_table::{Catalog, Pointer};
use iceberg::spec::TableMetadata;

use super::{Pace, lock};

/// A catalog with Glue's manners: a version token per change, and no table without a namespace. Clones share it.
#[derive(Debug, Clone)]
pub struct MemoryCatalog {
    entries: Arc<Mutex<Entries>>,
    pace: Pace,
}

#[derive(Debug, Default)]
struct Entries {
    namespaces: BTreeSet<String>,
    pointers: BTreeMap<TableName, Pointer>,
    history: BTreeMap<TableName, Vec<String>>,
    changes: u64,
}

impl MemoryCatalog {
    /// An empty catalog.
    pub fn new(pace: Pace) -> Self {
        Self {
            entries: Arc::default(),
            pace,
        }
    }

    /// The table's pointer, at once: for checks from outside.
    pub fn peek(&self, table: &TableName) -> Option<Pointer> {
        lock(&self.entries).pointers.get(table).cloned()
    }

    /// All tables, at once.
    pub fn all_tables(&self) -> Vec<TableName> {
        lock(&self.entries).pointers.keys().cloned().collect()
    }

    /// Every metadata location that the table's name ever pointed to, oldest first.
    pub fn history(&self, table: &TableName) -> Vec<String> {
        lock(&self.entries)
            .history
            .get(table)
            .cloned()
            .unwrap_or_default()
    }

    /// Grows with every change of an entry.
    pub fn changes(&self) -> u64 {
        lock(&self.entries).changes
    }

    /// Points the table elsewhere without asking, as a restore or a careless tool does.
    pub fn force(&self, table: &TableName, metadata_location: &str) {
        lock(&self.entries).point(table, metadata_location);
    }
}

impl Entries {
    fn point(&mut self, table: &TableName, metadata_location: &str) {
        self.changes += 1;
        let pointer = Pointer {
            metadata_location: metadata_location.to_owned(),
            version: format!("v{}", self.changes),
        };
        self.history
            .entry(table.clone())
            .or_default()
            .push(metadata_location.to_owned());
        self.pointers.insert(table.clone(), pointer);
    }
}

fn conflict(operation: &'static str, message: &str, table: &TableName) -> Error {
    Error::new(ErrorKind::Conflict, operation, message).with_context("table", table)
}

#[async_trait]
impl Catalog for MemoryCatalog {
    async fn create_namespace(&self, namespace: &NamespaceName) -> Result<()> {
        self.pace.turn().await;
        lock(&self.entries)
            .namespaces
            .insert(namespace.as_str().to_owned());
        Ok(())
    }

    async fn namespaces(&self) -> Result<Vec<NamespaceName>> {
        self.pace.turn().await;
        Ok(lock(&self.entries)
            .namespaces
            .iter()
            .map(|name| name.as_str().into())
            .collect())
    }

    async fn tables(&self, namespace: &NamespaceName) -> Result<Vec<TableName>> {
        self.pace.turn().await;
        let entries = lock(&self.entries);
        Ok(entries
            .pointers
            .keys()
            .filter(|table| table.namespace() == namespace)
            .cloned()
            .collect())
    }

    async fn load(&self, table: &TableName) -> Result<Option<Pointer>> {
        self.pace.turn().await;
        Ok(self.peek(table))
    }

    async fn create(
        &self,
        table: &TableName,
        metadata_location: &str,
        _metadata: &TableMetadata,
    ) -> Result<()> {
        self.pace.turn().await;
        let mut entries = lock(&self.entries);
        if !entries.namespaces.contains(table.namespace().as_str()) {
            return Err(Error::new(
                ErrorKind::Invalid,
                "create a table",
                "its namespace does not exist",
            )
            .with_context("table", table));
        }
        if entries.pointers.contains_key(table) {
            return Err(conflict("create a table", "the name is taken", table));
        }
        entries.point(table, metadata_location);
        Ok(())
    }

    async fn swap(
        &self,
        table: &TableName,
        expected: &Pointer,
        metadata_location: &str,
        _metadata: &TableMetadata,
    ) -> Result<()> {
        self.pace.turn().await;
        let mut entries = lock(&self.entries);
        if entries.pointers.get(table) != Some(expected) {
            return Err(conflict(
                "swap a table's metadata",
                "the pointer has moved",
                table,
            ));
        }
        entries.point(table, metadata_location);
        Ok(())
    }

    async fn drop_table(&self, table: &TableName) -> Result<()> {
        self.pace.turn().await;
        let mut entries = lock(&self.entries);
        if entries.pointers.remove(table).is_some() {
            entries.changes += 1;
        }
        Ok(())
    }
}
