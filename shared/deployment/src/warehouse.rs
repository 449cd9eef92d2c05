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

/// As [`open_warehouse`], in a function of so much memory: what S3 sends and gets at once fits into a quarter of it.
pub(crate) async fn open_in_function(
    place: &Place,
    aws: &AwsAccess,
    memory_mib: Option<u32>,
    environment: &Environment,
) -> Result<Warehouse> {
    let (Place::S3(location), Some(memory_mib)) = (place, memory_mib) else {
        return open_warehouse(place, aws, environment).await;
    };
    let settings = AwsSettings {
        requests_at_once: Some(requests_in(memory_mib)),
        ..settings(aws)
    };
    frazil_aws::open_warehouse(location, &settings, environment).await
}

/// A request holds 8 MB at most.
fn requests_in(memory_mib: u32) -> usize {
    (memory_mib as usize / 4 / 8).clamp(4, 64)
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
        requests_at_once: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_says_how_much_is_under_way() {
        for (memory_mib, expected) in [(128, 4), (512, 16), (1_024, 32), (10_240, 64)] {
            assert_eq!(requests_in(memory_mib), expected, "{memory_mib}");
        }
    }
}
