//! S3 and Glue, as AWS's stand-in speaks them, behind the same traits as a directory and SQLite.

use anyhow::Result;
use frazil_aws::open_warehouse;
use frazil_table::{Warehouse, conformance, system_environment};
use frazil_tests::AwsServer;

async fn warehouse(server: &AwsServer, prefix: &str) -> Result<Warehouse> {
    let location = server.warehouse(prefix);
    Ok(open_warehouse(&location, &server.settings(), &system_environment()).await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_is_a_storage() -> Result<()> {
    let server = AwsServer::start()?;
    let warehouse = warehouse(&server, "w").await?;
    conformance::storage(warehouse.storage, &server.warehouse("w/objects")).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_is_a_state_store() -> Result<()> {
    let server = AwsServer::start()?;
    conformance::state(warehouse(&server, "w").await?.states).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn glue_is_a_catalog() -> Result<()> {
    let server = AwsServer::start()?;
    conformance::catalog(warehouse(&server, "w").await?.catalog, &server.warehouse("w")).await;
    Ok(())
}
