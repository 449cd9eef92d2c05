use frazil_aws::{AccountSettings, AssumedRole, AwsSettings};
use frazil_config::{AwsAccess, Place};
use frazil_core::{Environment, Result};
use frazil_table::Warehouse;

/// Opens the warehouse: a directory with SQLite, made when there is none, or S3 with Glue, of which nothing is asked
/// yet.
pub async fn open_warehouse(place: &Place, aws: &AwsAccess, environment: &Environment) -> Result<Warehouse> {
    match place {
        Place::Local(directory) => frazil_local::open_warehouse(directory, environment),
        Place::S3(location) => frazil_aws::open_warehouse(location, &settings(aws), environment).await,
    }
}

pub(crate) fn settings(aws: &AwsAccess) -> AwsSettings {
    AwsSettings {
        account: AccountSettings {
            region: aws.region.clone(),
            role: aws.role_arn.clone().map(|arn| AssumedRole {
                arn,
                external_id: aws.external_id.clone(),
            }),
            ..AccountSettings::default()
        },
        catalog_id: aws.catalog_id.clone(),
    }
}
