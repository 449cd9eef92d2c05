use frazil_core::Result;
use serde_json::{Map, Value};

use super::{AvroType, TimestampUnit, invalid};

/// Iceberg's decimals, and every reader's, end here.
const MAX_PRECISION: u64 = 38;

/// The logical type that `object` gives to `base`; `base` itself if there is none or it does not fit, as the
/// specification asks.
pub(super) fn apply(base: AvroType, object: &Map<String, Value>, path: &str) -> Result<AvroType> {
    let Some(logical) = object.get("logicalType").and_then(Value::as_str) else {
        return Ok(base);
    };
    Ok(match (base, logical) {
        (AvroType::Bytes, "decimal") => decimal(object, None, path)?,
        (AvroType::Fixed(size), "decimal") => decimal(object, Some(size), path)?,
        (AvroType::Fixed(12), "duration") => AvroType::Duration,
        (AvroType::Fixed(16), "uuid") => AvroType::UuidBytes,
        (AvroType::String, "uuid") => AvroType::Uuid,
        (AvroType::Int, "date") => AvroType::Date,
        (AvroType::Int, "time-millis") => AvroType::TimeMillis,
        (AvroType::Long, "time-micros") => AvroType::TimeMicros,
        (AvroType::Long, logical) => timestamp(logical).unwrap_or(AvroType::Long),
        (base, _) => base,
    })
}

fn decimal(object: &Map<String, Value>, size: Option<usize>, path: &str) -> Result<AvroType> {
    let precision = object.get("precision").and_then(Value::as_u64);
    let scale = object.get("scale").map_or(Some(0), Value::as_u64);
    match (precision, scale) {
        (Some(precision @ 1..=MAX_PRECISION), Some(scale)) if scale <= precision => Ok(AvroType::Decimal {
            precision: u32::try_from(precision).unwrap_or_default(),
            scale: u32::try_from(scale).unwrap_or_default(),
            size,
        }),
        _ => {
            let shown = |name| object.get(name).map_or("none".to_owned(), Value::to_string);
            Err(invalid(
                path,
                format!(
                    "no column can hold a decimal of precision {} and scale {}",
                    shown("precision"),
                    shown("scale")
                ),
            )
            .with_hint("a decimal needs a precision of 1 to 38 and a scale of 0 to the precision"))
        }
    }
}

fn timestamp(logical: &str) -> Option<AvroType> {
    let (utc, unit) = match logical.strip_prefix("local-") {
        Some(rest) => (false, rest),
        None => (true, logical),
    };
    let unit = match unit.strip_prefix("timestamp-")? {
        "millis" => TimestampUnit::Millis,
        "micros" => TimestampUnit::Micros,
        "nanos" => TimestampUnit::Nanos,
        _ => return None,
    };
    Some(AvroType::Timestamp { unit, utc })
}
