use std::fmt;

use frazil_core::{Error, ErrorKind, safe_name};
use serde::{Deserialize, Serialize};
use toml::de::DeValue;

use crate::fault::{Problem, closest};
use crate::kafka_columns::KafkaColumns;
use crate::reader::{FromToml, expected};

const FUNCTIONS: [&str; 7] = ["identity", "bucket", "truncate", "year", "month", "day", "hour"];

/// How a column's value becomes a partition value or a sort key (Iceberg spec, Partition Transforms).
/// Serialised as Iceberg writes it: `day`, `bucket[16]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Transform {
    /// The value itself.
    Identity,
    /// A hash of the value, modulo this number.
    Bucket(u32),
    /// The value cut to this width.
    Truncate(u32),
    /// The year of a date or time.
    Year,
    /// The month of a date or time, with its year.
    Month,
    /// The day of a date or time.
    Day,
    /// The hour of a time, with its day.
    Hour,
}

impl Transform {
    /// Whether the transform needs a date or a time.
    pub fn is_temporal(self) -> bool {
        match self {
            Self::Identity | Self::Bucket(_) | Self::Truncate(_) => false,
            Self::Year | Self::Month | Self::Day | Self::Hour => true,
        }
    }

    fn named(function: &str, width: Option<&str>) -> Result<Self, Problem> {
        let width = |default_hint: &str| match width.map(str::parse::<u32>) {
            // Iceberg's widths are positive 32-bit integers.
            Some(Ok(width @ 1..=0x7fff_ffff)) => Ok(width),
            _ => Err(Problem::new(format!("`{function}` needs a whole number above 0"))
                .hint(default_hint.to_owned())),
        };
        let plain = match function {
            "bucket" => return width("such as bucket(16, column)").map(Self::Bucket),
            "truncate" => return width("such as truncate(4, column)").map(Self::Truncate),
            "identity" => Self::Identity,
            "year" => Self::Year,
            "month" => Self::Month,
            "day" => Self::Day,
            "hour" => Self::Hour,
            _ => {
                let problem = Problem::new(format!("`{function}` is not a transform of Iceberg"));
                return Err(match closest(function, FUNCTIONS) {
                    Some(name) => problem.hint(format!("did you mean `{name}`?")),
                    None => problem.hint(format!("use one of {}", FUNCTIONS.join(", "))),
                });
            }
        };
        match width("") {
            Ok(_) => Err(Problem::new(format!("`{function}` takes no number"))),
            Err(_) => Ok(plain),
        }
    }
}

impl fmt::Display for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identity => f.write_str("identity"),
            Self::Bucket(buckets) => write!(f, "bucket[{buckets}]"),
            Self::Truncate(width) => write!(f, "truncate[{width}]"),
            Self::Year => f.write_str("year"),
            Self::Month => f.write_str("month"),
            Self::Day => f.write_str("day"),
            Self::Hour => f.write_str("hour"),
        }
    }
}

impl From<Transform> for String {
    fn from(transform: Transform) -> Self {
        transform.to_string()
    }
}

impl TryFrom<String> for Transform {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        let (function, width) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            Some((function, width)) => (function, Some(width)),
            None => (text.as_str(), None),
        };
        Self::named(function, width).map_err(|problem| {
            Error::new(ErrorKind::Invalid, "read a transform", problem.message)
                .with_context("transform", &text)
        })
    }
}

/// One field of a partition spec: a top-level column and what is made of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PartitionField {
    /// The column, as the table names it.
    pub source: String,
    /// What is made of its value.
    pub transform: Transform,
}

impl PartitionField {
    /// The field's name, as Iceberg's own libraries would choose it: `created_at_day`, `customer_bucket`.
    pub fn name(&self) -> String {
        let suffix = match self.transform {
            Transform::Identity => return self.source.clone(),
            Transform::Bucket(_) => "bucket",
            Transform::Truncate(_) => "trunc",
            Transform::Year => "year",
            Transform::Month => "month",
            Transform::Day => "day",
            Transform::Hour => "hour",
        };
        format!("{}_{suffix}", self.source)
    }

    /// Reads `column`, `day(column)`, `bucket(16, column)`, `bucket(column, 16)` or `bucket[16](column)`.
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        let text = text.trim();
        let Some((function, arguments)) = text.split_once('(') else {
            return Ok(Self {
                source: column_name(text)?,
                transform: Transform::Identity,
            });
        };
        let arguments = arguments.strip_suffix(')').ok_or_else(|| {
            Problem::new(format!("{text:?} has no closing parenthesis")).hint("write it as day(column)")
        })?;
        let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
        let function = function.trim();
        let (function, bracketed) = match function.strip_suffix(']').and_then(|f| f.split_once('[')) {
            Some((function, width)) => (function.trim(), Some(width.trim())),
            None => (function, None),
        };
        let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let (column, width) = match (arguments.as_slice(), bracketed) {
            ([column], width) => (*column, width),
            ([width, column], None) if is_number(width) => (*column, Some(*width)),
            ([column, width], None) if is_number(width) => (*column, Some(*width)),
            _ => {
                return Err(Problem::new(format!("{text:?} is not a transform of one column"))
                    .hint("write it as day(column) or bucket(16, column)"));
            }
        };
        Ok(Self {
            transform: Transform::named(function, width)?,
            source: column_name(column)?,
        })
    }
}

impl fmt::Display for PartitionField {
    /// As the file writes it: `day(created_at)`, `bucket[16](customer)`, `region`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.transform {
            Transform::Identity => f.write_str(&self.source),
            transform => write!(f, "{transform}({})", self.source),
        }
    }
}

impl FromToml for PartitionField {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Problem> {
        match value.as_str() {
            Some(text) => Self::parse(text),
            None => Err(expected("a transform such as \"day(created_at)\"", value)),
        }
    }
}

/// One key of a sort order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SortField {
    /// The column, as the table names it.
    pub source: String,
    /// What is made of its value before it is compared.
    pub transform: Transform,
    /// Whether large values come first.
    pub descending: bool,
    /// Whether rows without a value come first.
    pub nulls_first: bool,
}

impl SortField {
    /// Reads `column [asc|desc] [nulls-first|nulls-last]`; as in Iceberg, nulls are the smallest values.
    pub(crate) fn parse(text: &str) -> Result<Self, Problem> {
        let text = text.trim();
        let term_len = match text.find('(') {
            Some(_) => text.find(')').map_or(text.len(), |at| at + 1),
            None => text.find(char::is_whitespace).unwrap_or(text.len()),
        };
        let (term, rest) = text.split_at(term_len);
        let PartitionField { source, transform } = PartitionField::parse(term)?;
        let rest = rest.to_lowercase().replace('_', "-").replace("nulls ", "nulls-");
        let (mut descending, mut nulls_first) = (None, None);
        for word in rest.split_whitespace() {
            let (slot, value) = match word {
                "asc" => (&mut descending, false),
                "desc" => (&mut descending, true),
                "nulls-first" => (&mut nulls_first, true),
                "nulls-last" => (&mut nulls_first, false),
                _ => {
                    return Err(Problem::new(format!("{text:?}: `{word}` is not a direction"))
                        .hint("write it as \"column desc nulls-last\""));
                }
            };
            if slot.replace(value).is_some() {
                return Err(Problem::new(format!("{text:?} states two directions")).hint("keep one"));
            }
        }
        let descending = descending.unwrap_or(false);
        Ok(Self {
            source,
            transform,
            descending,
            nulls_first: nulls_first.unwrap_or(!descending),
        })
    }
}

impl fmt::Display for SortField {
    /// As the file writes it: `customer desc nulls-first`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            source, transform, ..
        } = self;
        let term = PartitionField {
            source: source.clone(),
            transform: *transform,
        };
        let direction = if self.descending { "desc" } else { "asc" };
        let nulls = if self.nulls_first { "first" } else { "last" };
        write!(f, "{term} {direction} nulls-{nulls}")
    }
}

impl FromToml for SortField {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Problem> {
        match value.as_str() {
            Some(text) => Self::parse(text),
            None => Err(expected("a column such as \"customer desc\"", value)),
        }
    }
}

/// The name of a top-level column: Glue and Athena cannot partition by nested fields.
pub(crate) fn column_name(text: &str) -> Result<String, Problem> {
    let text = text.trim();
    let safe = safe_name(&text.to_lowercase());
    if text == safe && text.len() <= 255 {
        return Ok(safe);
    }
    if text.is_empty() {
        return Err(Problem::new("a column name is missing"));
    }
    if text.contains('.') {
        return Err(Problem::new(format!(
            "`{text}` is nested, and Glue and Athena cannot use nested columns here"
        ))
        .hint("name a top-level column"));
    }
    Err(Problem::new(format!(
        "the table has no column `{text}`: its columns are lowercase, of a-z, 0-9 and _"
    ))
    .hint(format!("write `{safe}`")))
}

/// Checks a field against the columns that Frazil itself adds; columns of the value are not known here.
pub(crate) fn check_kafka_column(
    source: &str,
    transform: Transform,
    columns: KafkaColumns,
) -> Result<(), Problem> {
    if !source.starts_with("_kafka_") {
        return Ok(());
    }
    let names = || KafkaColumns::ALL.names();
    if !names().any(|name| name == source) {
        let problem = Problem::new(format!("Frazil has no column `{source}`"));
        return Err(match closest(source, names()) {
            Some(name) => problem.hint(format!("did you mean `{name}`?")),
            None => problem.hint(format!("it has {}", names().collect::<Vec<_>>().join(", "))),
        });
    }
    if !columns.names().any(|name| name == source) {
        let key = source.trim_start_matches("_kafka_");
        return Err(Problem::new(format!("the table has no column `{source}`"))
            .hint(format!("set kafka_columns.{key} = true")));
    }
    let fits = match source {
        "_kafka_headers" => false,
        "_kafka_tombstone" => transform == Transform::Identity,
        "_kafka_timestamp" => !matches!(transform, Transform::Truncate(_)),
        _ => !transform.is_temporal(),
    };
    if fits {
        Ok(())
    } else {
        Err(
            Problem::new(format!("`{transform}` cannot be used on `{source}`"))
                .hint("choose another transform or column"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_fields_in_every_common_notation() {
        for (text, column, transform) in [
            ("region", "region", "identity"),
            ("identity(region)", "region", "identity"),
            ("day(_kafka_timestamp)", "_kafka_timestamp", "day"),
            (" hour( ts ) ", "ts", "hour"),
            ("bucket(16, customer)", "customer", "bucket[16]"),
            ("bucket(customer, 16)", "customer", "bucket[16]"),
            ("bucket[16](customer)", "customer", "bucket[16]"),
            ("truncate(4, zip)", "zip", "truncate[4]"),
        ] {
            let field = PartitionField::parse(text).unwrap();
            assert_eq!(
                (field.source.as_str(), field.transform.to_string().as_str()),
                (column, transform),
                "{text}"
            );
            assert_eq!(
                PartitionField::parse(&field.to_string()),
                Ok(field.clone()),
                "{text}"
            );
            assert_eq!(
                Transform::try_from(transform.to_owned()).unwrap(),
                field.transform
            );
        }
    }

    #[test]
    fn wrong_partition_fields_say_the_way_out() {
        for (text, message) in [
            (
                "days(ts)",
                "`days` is not a transform of Iceberg; did you mean `day`?",
            ),
            (
                "void(ts)",
                "`void` is not a transform of Iceberg; use one of identity, bucket, truncate, year, month, day, hour",
            ),
            (
                "day(ts",
                "\"day(ts\" has no closing parenthesis; write it as day(column)",
            ),
            (
                "bucket(id)",
                "`bucket` needs a whole number above 0; such as bucket(16, column)",
            ),
            (
                "bucket(0, id)",
                "`bucket` needs a whole number above 0; such as bucket(16, column)",
            ),
            ("day(3, ts)", "`day` takes no number"),
            (
                "day(a, b)",
                "\"day(a, b)\" is not a transform of one column; write it as day(column) or bucket(16, column)",
            ),
            (
                "day(order.ts)",
                "`order.ts` is nested, and Glue and Athena cannot use nested columns here; name a top-level column",
            ),
            (
                "day(createdAt)",
                "the table has no column `createdAt`: its columns are lowercase, of a-z, 0-9 and _; write `createdat`",
            ),
            ("day()", "a column name is missing"),
            ("", "a column name is missing"),
        ] {
            let problem = PartitionField::parse(text).unwrap_err();
            let hint = problem.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            assert_eq!(format!("{}{hint}", problem.message), message, "{text}");
        }
    }

    #[test]
    fn sort_fields_default_as_iceberg_does() {
        for (text, descending, nulls_first) in [
            ("customer", false, true),
            ("customer asc", false, true),
            ("customer desc", true, false),
            ("customer DESC NULLS FIRST", true, true),
            ("customer nulls-last", false, false),
            ("bucket(16, customer) desc nulls_last", true, false),
        ] {
            let field = SortField::parse(text).unwrap();
            assert_eq!(
                (field.source.as_str(), field.descending, field.nulls_first),
                ("customer", descending, nulls_first),
                "{text}"
            );
            assert_eq!(SortField::parse(&field.to_string()), Ok(field), "{text}");
        }
        for text in [
            "",
            "customer up",
            "customer asc desc",
            "customer nulls",
            "bucket(16, customer",
        ] {
            assert!(SortField::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn frazils_own_columns_are_known() {
        let check =
            |source, transform| check_kafka_column(source, transform, KafkaColumns::default()).is_ok();
        assert!(check("_kafka_timestamp", Transform::Day));
        assert!(check("_kafka_partition", Transform::Identity));
        assert!(check("customer", Transform::Day));
        assert!(!check("_kafka_partition", Transform::Day));
        assert!(!check("_kafka_headers", Transform::Identity));
        assert!(!check("_kafka_timestmp", Transform::Day));
        assert!(!check("_kafka_topic", Transform::Identity));
    }
}
