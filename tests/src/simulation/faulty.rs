use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use frazil_core::{NamespaceName, Result, TableName};
use frazil_table::{Catalog, ObjectHead, ObjectStorage, Page, Pointer, StateEntry, StateStore};
use iceberg::spec::TableMetadata;

use super::fault::{LateCall, lost, refused};
use super::{FaultKind, FaultPlan, Operation};

/// A storage whose calls go wrong as planned.
#[derive(Debug, Clone)]
pub struct FaultyStorage {
    inner: Arc<dyn ObjectStorage>,
    plan: FaultPlan,
}

impl FaultyStorage {
    /// Wraps any storage.
    pub fn new(inner: Arc<dyn ObjectStorage>, plan: FaultPlan) -> Self {
        Self { inner, plan }
    }
}

/// A catalog whose calls go wrong as planned.
#[derive(Debug, Clone)]
pub struct FaultyCatalog {
    inner: Arc<dyn Catalog>,
    plan: FaultPlan,
}

impl FaultyCatalog {
    /// Wraps any catalog.
    pub fn new(inner: Arc<dyn Catalog>, plan: FaultPlan) -> Self {
        Self { inner, plan }
    }
}

/// A state store whose calls go wrong as planned.
#[derive(Debug, Clone)]
pub struct FaultyStateStore {
    inner: Arc<dyn StateStore>,
    plan: FaultPlan,
}

impl FaultyStateStore {
    /// Wraps any state store.
    pub fn new(inner: Arc<dyn StateStore>, plan: FaultPlan) -> Self {
        Self { inner, plan }
    }
}

/// A call that changes something: `now` makes it, `later` is the same call with everything that it needs.
async fn write<F>(
    plan: &FaultPlan,
    operation: Operation,
    location: &str,
    now: impl Fn() -> F + Send,
    later: impl FnOnce() -> LateCall + Send,
) -> Result<()>
where
    F: Future<Output = Result<()>> + Send,
{
    match plan.begin(operation, location).await {
        None => now().await,
        Some(FaultKind::FailBefore | FaultKind::Abort) => refused(location),
        Some(FaultKind::FailAfter) => {
            now().await?;
            lost(operation, location)
        }
        Some(FaultKind::Twice) => {
            now().await?;
            now().await
        }
        Some(fault @ FaultKind::Again(lateness)) => {
            let what = format!("{operation:?} {location}, once more");
            let later = later();
            let answer = now().await;
            plan.postpone(fault, lateness, what, later).await;
            answer
        }
        Some(fault @ (FaultKind::Late(lateness) | FaultKind::AbortLate(lateness))) => {
            let what = format!("{operation:?} {location}");
            plan.postpone(fault, lateness, what, later()).await;
            lost(operation, location)
        }
    }
}

/// A call that changes nothing: any fault is a plain failure.
async fn read<T>(
    plan: &FaultPlan,
    operation: Operation,
    location: &str,
    now: impl Future<Output = Result<T>> + Send,
) -> Result<T> {
    match plan.begin(operation, location).await {
        None => now.await,
        Some(_) => refused(location),
    }
}

/// The call, with clones of what it borrows.
macro_rules! later {
    ($self:ident, |$inner:ident, $($argument:ident),*| $call:expr) => {
        || {
            let $inner = Arc::clone(&$self.inner);
            $(let $argument = $argument.to_owned();)*
            let call: LateCall = Box::pin(async move {
                // Nobody hears the answer.
                let _ = $call.await;
            });
            call
        }
    };
}

#[async_trait]
impl ObjectStorage for FaultyStorage {
    async fn put(&self, location: &str, bytes: Bytes, attributes: Option<&str>) -> Result<()> {
        let now = || self.inner.put(location, bytes.clone(), attributes);
        let attributes = attributes.map(str::to_owned);
        let later = later!(self, |inner, location, bytes, attributes| {
            inner.put(&location, bytes, attributes.as_deref())
        });
        write(&self.plan, Operation::Put, location, now, later).await
    }

    async fn get(&self, location: &str, limit_bytes: u64) -> Result<Option<Bytes>> {
        read(
            &self.plan,
            Operation::Get,
            location,
            self.inner.get(location, limit_bytes),
        )
        .await
    }

    async fn get_range(&self, location: &str, start: u64, length: u64) -> Result<Option<Bytes>> {
        let now = self.inner.get_range(location, start, length);
        read(&self.plan, Operation::GetRange, location, now).await
    }

    async fn head(&self, location: &str) -> Result<Option<ObjectHead>> {
        read(&self.plan, Operation::Head, location, self.inner.head(location)).await
    }

    async fn list_page(&self, prefix: &str, after: Option<&str>) -> Result<Page> {
        read(
            &self.plan,
            Operation::ListPage,
            prefix,
            self.inner.list_page(prefix, after),
        )
        .await
    }

    async fn delete(&self, locations: &[String]) -> Result<()> {
        let named = locations.first().map_or("", String::as_str);
        let now = || self.inner.delete(locations);
        let later = later!(self, |inner, locations| inner.delete(&locations));
        write(&self.plan, Operation::Delete, named, now, later).await
    }
}

#[async_trait]
impl Catalog for FaultyCatalog {
    async fn create_namespace(&self, namespace: &NamespaceName) -> Result<()> {
        let now = || self.inner.create_namespace(namespace);
        let later = later!(self, |inner, namespace| inner.create_namespace(&namespace));
        write(
            &self.plan,
            Operation::CreateNamespace,
            namespace.as_str(),
            now,
            later,
        )
        .await
    }

    async fn namespaces(&self) -> Result<Vec<NamespaceName>> {
        read(&self.plan, Operation::Namespaces, "", self.inner.namespaces()).await
    }

    async fn tables(&self, namespace: &NamespaceName) -> Result<Vec<TableName>> {
        let now = self.inner.tables(namespace);
        read(&self.plan, Operation::Tables, namespace.as_str(), now).await
    }

    async fn load(&self, table: &TableName) -> Result<Option<Pointer>> {
        read(
            &self.plan,
            Operation::LoadTable,
            table.table(),
            self.inner.load(table),
        )
        .await
    }

    async fn create(
        &self,
        table: &TableName,
        metadata_location: &str,
        metadata: &TableMetadata,
    ) -> Result<()> {
        let now = || self.inner.create(table, metadata_location, metadata);
        let later = later!(self, |inner, table, metadata_location, metadata| {
            inner.create(&table, &metadata_location, &metadata)
        });
        write(&self.plan, Operation::CreateTable, metadata_location, now, later).await
    }

    async fn swap(
        &self,
        table: &TableName,
        expected: &Pointer,
        metadata_location: &str,
        metadata: &TableMetadata,
    ) -> Result<()> {
        let now = || self.inner.swap(table, expected, metadata_location, metadata);
        let later = later!(self, |inner, table, expected, metadata_location, metadata| {
            inner.swap(&table, &expected, &metadata_location, &metadata)
        });
        write(&self.plan, Operation::Swap, metadata_location, now, later).await
    }

    async fn drop_table(&self, table: &TableName) -> Result<()> {
        let now = || self.inner.drop_table(table);
        let later = later!(self, |inner, table| inner.drop_table(&table));
        write(&self.plan, Operation::DropTable, table.table(), now, later).await
    }
}

#[async_trait]
impl StateStore for FaultyStateStore {
    async fn load(&self, key: &str) -> Result<Option<StateEntry>> {
        read(&self.plan, Operation::LoadState, key, self.inner.load(key)).await
    }

    async fn store(&self, key: &str, bytes: Bytes, expected: Option<&str>) -> Result<()> {
        let now = || self.inner.store(key, bytes.clone(), expected);
        let expected = expected.map(str::to_owned);
        let later = later!(self, |inner, key, bytes, expected| {
            inner.store(&key, bytes, expected.as_deref())
        });
        write(&self.plan, Operation::StoreState, key, now, later).await
    }

    async fn keys(&self, prefix: &str) -> Result<Vec<String>> {
        read(&self.plan, Operation::StateKeys, prefix, self.inner.keys(prefix)).await
    }
}
