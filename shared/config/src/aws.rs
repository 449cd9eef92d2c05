//! `[aws]`: whose account, and which of its catalogs.

use crate::choice::choice;
use crate::fault::{FaultList, Located, Problem};
use crate::place::Place;
use crate::reader::{Keys, Section};
use crate::sections::{FileSection, Read, check};

choice! {
    /// What knows which metadata of a table is the current one.
    pub enum CatalogKind {
        /// A SQLite file in the warehouse's directory, which PyIceberg and Spark open too.
        #[default]
        Sqlite = "sqlite",
        /// The Glue Data Catalog, for a warehouse on S3.
        Glue = "glue",
    }
    later {
        "rest": "somebody else's REST catalog",
    }
}

/// Which account of AWS is used, and which of its catalogs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AwsAccess {
    /// The region; that of the environment or the profile without it.
    pub region: Option<String>,
    /// The account whose Data Catalog has the tables; the caller's own without it.
    pub catalog_id: Option<String>,
    /// The role that is assumed for S3 and Glue.
    pub role_arn: Option<String>,
    /// What the role's trust policy asks for.
    pub external_id: Option<String>,
}

/// The AWS account of a warehouse on S3. Without this section, what the process has: a function's role, the
/// environment, a profile.
#[derive(Debug, Clone, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(crate) struct AwsSection {
    /// The region of bucket and catalog. Without it: that of the environment or the profile.
    #[cfg_attr(test, schemars(regex(pattern = "^[a-z]{2,}(-[a-z]+)+-[0-9]+$"), extend("examples" = ["eu-central-1"])))]
    pub(crate) region: Read<String>,
    /// The account whose Glue Data Catalog has the tables, when it is another one's. That account must have shared
    /// its databases.
    #[cfg_attr(test, schemars(regex(pattern = "^[0-9]{12}(:.+)?$"), extend("examples" = ["111122223333"])))]
    pub(crate) catalog_id: Read<String>,
    /// A role to assume for S3 and Glue, with the process's own credentials.
    #[cfg_attr(test, schemars(regex(pattern = "^arn:[^:]+:iam::[0-9]{12}:role/.+$"), extend("examples" = ["arn:aws:iam::111122223333:role/frazil"])))]
    pub(crate) role_arn: Read<String>,
    /// What the trust policy of that role asks for as `sts:ExternalId`.
    #[cfg_attr(test, schemars(length(min = 2, max = 1224), extend("examples" = ["frazil-7f3a"])))]
    pub(crate) external_id: Read<String>,
}

pub(crate) const AWS_KEYS: Keys = Keys {
    known: &[&["region", "catalog_id", "role_arn", "external_id"]],
    later: &[],
    instead: &[],
    elsewhere: &[
        ("catalog", "at the top of the file"),
        ("warehouse", "at the top of the file"),
    ],
};

impl AwsSection {
    pub(crate) fn read(section: Section<'_>) -> Self {
        let matching = |key, is_right: fn(&str) -> bool, what: &'static str| {
            section.read(key).filter(|text| {
                check(&section, text, |text: &String| match is_right(text) {
                    true => Ok(()),
                    false => Err(Problem::new(what)),
                })
            })
        };
        let aws = Self {
            region: matching("region", is_region, "not a region, such as eu-central-1"),
            catalog_id: matching("catalog_id", is_catalog, "not an account's 12 digits"),
            role_arn: matching(
                "role_arn",
                is_role,
                "not a role's ARN, such as arn:aws:iam::111122223333:role/frazil",
            ),
            external_id: matching(
                "external_id",
                |id| (2..=1224).contains(&id.len()),
                "it has 2 to 1,224 characters",
            ),
        };
        section.finish();
        aws
    }
}

/// What `[aws]` and the keys about the warehouse say together.
pub(crate) fn read_aws(file: &FileSection, faults: &FaultList) -> AwsAccess {
    let section = file.aws.as_ref();
    let text = |read: fn(&AwsSection) -> &Read<String>| section.and_then(|section| read(section).clone());
    if let (Some(external_id), None) = (text(|aws| &aws.external_id), text(|aws| &aws.role_arn)) {
        faults.add(
            &external_id.at,
            Problem::new("there is no role_arn that it could be for"),
        );
    }
    if let Some(catalog) = &file.catalog {
        check_catalog(catalog, file.warehouse.as_ref(), faults);
    }
    let value = |read: fn(&AwsSection) -> &Read<String>| text(read).map(|located| located.value);
    AwsAccess {
        region: value(|aws| &aws.region),
        catalog_id: value(|aws| &aws.catalog_id),
        role_arn: value(|aws| &aws.role_arn),
        external_id: value(|aws| &aws.external_id),
    }
}

fn check_catalog(catalog: &Located<CatalogKind>, warehouse: Option<&Located<String>>, faults: &FaultList) {
    let Some(warehouse) = warehouse else { return };
    let problem = match (catalog.value, Place::of(&warehouse.value)) {
        (CatalogKind::Glue, Place::Local(_)) => {
            Problem::new("Glue's tables are on S3, and the warehouse is a directory")
                .hint("set warehouse = \"s3://BUCKET/PREFIX\", or catalog = \"sqlite\"")
        }
        (CatalogKind::Sqlite, Place::S3(_)) => {
            Problem::new("a SQLite file is in the warehouse's directory, and the warehouse is on S3")
                .hint("set catalog = \"glue\", or leave it out")
        }
        (CatalogKind::Glue, Place::S3(_)) | (CatalogKind::Sqlite, Place::Local(_)) => return,
    };
    faults.add(&catalog.at, problem);
}

fn is_region(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let (Some(last), true) = (parts.last(), parts.len() >= 3) else {
        return false;
    };
    let is_word = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase());
    parts[..parts.len() - 1].iter().all(is_word) && last.parse::<u8>().is_ok()
}

fn is_account(text: &str) -> bool {
    text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// An account, or a catalog of one: `111122223333:name`.
fn is_catalog(text: &str) -> bool {
    let (account, name) = text.split_once(':').unwrap_or((text, "-"));
    is_account(account) && !name.is_empty()
}

fn is_role(text: &str) -> bool {
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    matches!(parts.as_slice(), ["arn", partition, "iam", "", account, role]
        if partition.starts_with("aws") && is_account(account) && role.strip_prefix("role/").is_some_and(|name| !name.is_empty()))
}
