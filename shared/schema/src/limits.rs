use std::collections::HashMap;
use std::fmt::{self, Write as _};

use iceberg::spec::{NestedFieldRef, PrimitiveType, Schema, Type};

/// The longest name of a column in Glue and Athena (AWS Glue API, `Column.Name`).
pub const MAX_NAME_BYTES: usize = 255;
/// The longest type of a column in Glue, as text (AWS Glue API, `Column.Type`).
pub const MAX_TYPE_BYTES: usize = 131_072;
/// The longest comment of a column in Glue (AWS Glue API, `Column.Comment`).
pub const MAX_COMMENT_CHARS: usize = 255;

/// Something of a table that Glue or Athena does not take as it is. Iceberg's own metadata has none of these limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitFinding {
    /// The column, nested ones with dots: `customer.email`.
    pub column: String,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub hint: &'static str,
}

impl fmt::Display for LimitFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column `{}`: {}; {}", self.column, self.problem, self.hint)
    }
}

/// What Glue or Athena would not take of a table's schema, in the order of its columns.
pub fn check_limits(schema: &Schema) -> Vec<LimitFinding> {
    let mut findings = Vec::new();
    let fields = schema.as_struct().fields();
    check_level(fields, "", &mut findings);
    for field in fields {
        let mut finding = |problem: String, hint| {
            findings.push(LimitFinding {
                column: field.name.clone(),
                problem,
                hint,
            });
        };
        let mut data_type = String::new();
        glue_type(&field.field_type, &mut data_type);
        if data_type.len() > MAX_TYPE_BYTES {
            finding(
                format!(
                    "its type is {} characters long for Glue, at most {MAX_TYPE_BYTES} are possible",
                    data_type.len()
                ),
                "exclude fields inside it in the topic's settings",
            );
        }
        let comment = field.doc.as_deref().map_or(0, |doc| doc.chars().count());
        if comment > MAX_COMMENT_CHARS {
            finding(
                format!("its comment has {comment} characters, and Glue keeps {MAX_COMMENT_CHARS}"),
                "only what Glue shows is cut; the table has all of it",
            );
        }
    }
    findings
}

/// Names of one level: those that are too long, and those that Athena cannot tell apart.
fn check_level(fields: &[NestedFieldRef], parent: &str, findings: &mut Vec<LimitFinding>) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for field in fields {
        let column = if parent.is_empty() {
            field.name.clone()
        } else {
            format!("{parent}.{}", field.name)
        };
        let mut finding = |problem: String| {
            findings.push(LimitFinding {
                column: column.clone(),
                problem,
                hint: "rename the column",
            });
        };
        if field.name.len() > MAX_NAME_BYTES {
            finding(format!(
                "its name has {} bytes, at most {MAX_NAME_BYTES} are possible",
                field.name.len()
            ));
        }
        let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if let Some(bad) = field.name.chars().find(|c| !is_safe(*c)) {
            finding(format!(
                "its name has a {bad:?}, which Athena does not take everywhere"
            ));
        }
        if let Some(other) = seen.insert(field.name.to_lowercase(), &field.name) {
            finding(format!("Athena cannot tell it from `{other}`"));
        }
        check_inside(&field.field_type, &column, findings);
    }
}

fn check_inside(data_type: &Type, column: &str, findings: &mut Vec<LimitFinding>) {
    match data_type {
        Type::Primitive(_) => {}
        Type::Struct(inner) => check_level(inner.fields(), column, findings),
        Type::List(list) => check_inside(&list.element_field.field_type, column, findings),
        Type::Map(map) => check_inside(&map.value_field.field_type, column, findings),
    }
}

/// A type as Glue's catalog writes it (Iceberg for Java, `IcebergToGlueConverter`).
fn glue_type(data_type: &Type, out: &mut String) {
    // Writing to a String never fails.
    match data_type {
        Type::Primitive(primitive) => match primitive {
            PrimitiveType::Long => out.push_str("bigint"),
            PrimitiveType::Decimal { precision, scale } => {
                let _ = write!(out, "decimal({precision},{scale})");
            }
            PrimitiveType::Timestamp
            | PrimitiveType::Timestamptz
            | PrimitiveType::TimestampNs
            | PrimitiveType::TimestamptzNs => out.push_str("timestamp"),
            PrimitiveType::Time | PrimitiveType::Uuid => out.push_str("string"),
            PrimitiveType::Fixed(_) => out.push_str("binary"),
            other => {
                let _ = write!(out, "{other}");
            }
        },
        Type::Struct(inner) => {
            out.push_str("struct<");
            for (index, field) in inner.fields().iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                out.push_str(&field.name);
                out.push(':');
                glue_type(&field.field_type, out);
            }
            out.push('>');
        }
        Type::List(list) => {
            out.push_str("array<");
            glue_type(&list.element_field.field_type, out);
            out.push('>');
        }
        Type::Map(map) => {
            out.push_str("map<");
            glue_type(&map.key_field.field_type, out);
            out.push(',');
            glue_type(&map.value_field.field_type, out);
            out.push('>');
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use iceberg::spec::{ListType, MapType, NestedField, StructType};

    use super::*;

    fn field(id: i32, name: &str, data_type: Type) -> NestedFieldRef {
        Arc::new(NestedField::optional(id, name, data_type))
    }

    fn check(fields: Vec<NestedFieldRef>, expected: &[&str]) {
        let schema = Schema::builder().with_fields(fields).build().unwrap();
        let found: Vec<String> = check_limits(&schema).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    const STRING: Type = Type::Primitive(PrimitiveType::String);

    #[test]
    fn what_glue_and_athena_do_not_take_is_named() {
        check(
            vec![field(1, "id", STRING), field(2, &"n".repeat(255), STRING)],
            &[],
        );
        let long = "n".repeat(256);
        check(
            vec![field(1, &long, STRING)],
            &[&format!(
                "column `{long}`: its name has 256 bytes, at most 255 are possible; rename the column"
            )],
        );
        check(
            vec![
                field(1, "id", STRING),
                field(2, "Id", STRING),
                field(3, "a b", STRING),
            ],
            &[
                "column `Id`: Athena cannot tell it from `id`; rename the column",
                "column `a b`: its name has a ' ', which Athena does not take everywhere; rename the column",
            ],
        );
        let doc = NestedField::clone(&field(1, "id", STRING)).with_doc("é".repeat(256));
        check(
            vec![Arc::new(doc)],
            &[
                "column `id`: its comment has 256 characters, and Glue keeps 255; only what Glue shows is cut; the table \
               has all of it",
            ],
        );
        let nested = Type::Struct(StructType::new(vec![
            field(4, "x", STRING),
            field(5, "X", STRING),
        ]));
        let list = Type::List(ListType::new(Arc::new(NestedField::list_element(
            3, nested, false,
        ))));
        check(
            vec![field(1, "items", list)],
            &["column `items.X`: Athena cannot tell it from `x`; rename the column"],
        );
    }

    #[test]
    fn a_type_is_measured_as_glue_writes_it() {
        let decimal = Type::Primitive(PrimitiveType::Decimal {
            precision: 9,
            scale: 2,
        });
        let map = Type::Map(MapType::optional(
            8,
            STRING,
            9,
            Type::Primitive(PrimitiveType::Long),
        ));
        let inner = Type::Struct(StructType::new(vec![
            field(4, "at", Type::Primitive(PrimitiveType::Timestamptz)),
            field(5, "price", decimal),
            field(6, "opens", Type::Primitive(PrimitiveType::Time)),
            field(7, "counts", map),
        ]));
        let list = Type::List(ListType::new(Arc::new(NestedField::list_element(
            3, inner, false,
        ))));
        let mut text = String::new();
        glue_type(&list, &mut text);
        assert_eq!(
            text,
            "array<struct<at:timestamp,price:decimal(9,2),opens:string,counts:map<string,bigint>>>"
        );

        // `struct<` and `>`, and 13 bytes of each field with its comma but for the last.
        let wide = |fields: i32| {
            let inner = (0..fields).map(|n| field(n + 2, &format!("f{n:05}"), STRING));
            vec![field(1, "wide", Type::Struct(StructType::new(inner.collect())))]
        };
        check(wide(9_361), &[]);
        check(
            wide(9_363),
            &[
                "column `wide`: its type is 131089 characters long for Glue, at most 131072 are possible; exclude fields \
               inside it in the topic's settings",
            ],
        );
    }
}
