use std::sync::Arc;

use frazil_core::{Environment, Error, ErrorKind, Result};
use frazil_table::{Layout, Warehouse};

use crate::{Account, AccountSettings, GlueCatalog, S3StateStore, S3Storage};

/// Which account, and which of its catalogs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AwsSettings {
    /// The account.
    pub account: AccountSettings,
    /// The Data Catalog: another account's, shared with this one. Its own without it.
    pub catalog_id: Option<String>,
    /// How many requests S3 gets at once.
    pub requests_at_once: Option<usize>,
}

/// Opens the warehouse at `location`, such as `s3://bucket/prefix`: S3 as storage and state store, Glue as catalog.
/// Nothing is asked of AWS yet.
pub async fn open_warehouse(
    location: &str,
    settings: &AwsSettings,
    environment: &Environment,
) -> Result<Warehouse> {
    let layout = Layout::new(location);
    let has_bucket = layout
        .warehouse()
        .strip_prefix("s3://")
        .is_some_and(|rest| !rest.starts_with('/'));
    if !has_bucket || layout.warehouse() == "s3:" {
        return Err(Error::new(
            ErrorKind::Invalid,
            "open the warehouse",
            "it is not of the form s3://BUCKET/PREFIX",
        )
        .with_context("warehouse", location));
    }
    let account = Account::open(&settings.account).await;
    let storage = S3Storage::new(&account);
    let storage = match settings.requests_at_once {
        Some(at_once) => storage.with_requests(at_once),
        None => storage,
    };
    let catalog = GlueCatalog::new(
        &account,
        settings.catalog_id.clone(),
        layout.warehouse(),
        environment,
    );
    let states = S3StateStore::new(storage.clone(), format!("{}/_frazil/state/", layout.warehouse()));
    Ok(Warehouse {
        layout,
        storage: Arc::new(storage),
        catalog: Arc::new(catalog),
        states: Arc::new(states),
        environment: environment.clone(),
    })
}
