//! The answers of Confluent's API: “Schema Registry API Reference”, `GET /schemas/ids/{id}`, `/schemas/guids/{guid}`,
//! `/subjects/{subject}/versions/{version}`, and Errors.

use frazil_core::{Error, ErrorKind, Result};
use frazil_kafka::wire::SchemaRef;
use serde::Deserialize;

use crate::{Reference, SchemaKind, StoredSchema};

/// Subject, version and schema not found.
const NOT_FOUND: std::ops::RangeInclusive<u32> = 40_401..=40_403;

/// What the answers have in common: the rest is not asked for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Schema {
    schema: String,
    /// Not there: Avro.
    schema_type: Option<String>,
    references: Option<Vec<SchemaReference>>,
}

#[derive(Deserialize)]
struct SchemaReference {
    name: String,
    subject: String,
    version: u32,
}

#[derive(Deserialize)]
struct Refusal {
    error_code: u32,
}

/// The schema in the body of a 200; `None` if it is none.
pub(super) fn schema(reference: &SchemaRef, body: &[u8]) -> Option<Result<StoredSchema>> {
    let answer: Schema = serde_json::from_slice(body).ok()?;
    let name = answer.schema_type.as_deref().unwrap_or("AVRO");
    let Some(kind) = SchemaKind::from_name(name) else {
        let shown: String = name.chars().take(64).collect();
        return Some(Err(Error::new(
            ErrorKind::Invalid,
            "use the schema of the registry",
            format!("its type is {shown:?}, and AVRO, JSON and PROTOBUF are known"),
        )
        .with_context("schema", reference)
        .with_code("registry.unsupported_format")));
    };
    let references = answer.references.unwrap_or_default();
    Some(Ok(StoredSchema {
        kind,
        text: answer.schema,
        references: references
            .into_iter()
            .map(|reference| Reference {
                name: reference.name,
                target: SchemaRef::version(reference.subject, reference.version),
            })
            .collect(),
    }))
}

/// Whether the body of a 404 says that the schema is not there, and not only that the address is wrong.
pub(super) fn is_not_found(body: &[u8]) -> bool {
    serde_json::from_slice::<Refusal>(body).is_ok_and(|refusal| NOT_FOUND.contains(&refusal.error_code))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whatever a registry says: a schema, a reason, or nothing that is one.
    fn check(body: &[u8]) {
        let reference = SchemaRef::version("orders-value", 3);
        match schema(&reference, body) {
            None => {}
            Some(Ok(stored)) => {
                // What nobody reads of an answer may be damaged beyond what a tree of it can hold.
                let Ok(answer) = serde_json::from_slice::<serde_json::Value>(body) else {
                    return;
                };
                assert_eq!(answer["schema"], stored.text);
                let references = answer["references"].as_array().map_or(0, Vec::len);
                assert_eq!(stored.references.len(), references);
            }
            Some(Err(error)) => assert_eq!(error.code(), Some("registry.unsupported_format")),
        }
        if is_not_found(body) {
            assert!(body.windows(3).any(|digits| digits == b"404"));
        }
    }

    proptest! {
        #[test]
        fn mutated_answers_never_panic(
            edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
            cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
            is_refusal in prop::bool::weighted(0.3),
        ) {
            let mut body = if is_refusal {
                br#"{"error_code": 40403, "message": "Schema 7 not found"}"#.to_vec()
            } else {
                br#"{"schemaType": "PROTOBUF", "schema": "message M {}", "id": 7, "references": [
                    {"name": "money.proto", "subject": "money", "version": 1}], "ruleSet": null}"#.to_vec()
            };
            for (at, byte) in edits {
                let at = at.index(body.len());
                body[at] = byte;
            }
            if let Some(cut) = cut {
                body.truncate(cut.index(body.len()));
            }
            check(&body);
        }

        #[test]
        fn arbitrary_answers_never_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            json in r#"\{"schema": ("\PC{0,20}"|7|null)(, "(schemaType|references|id)": (\[(\{"name": "x"\})?\]|"(JSON|AVRO|XML)"|-?[0-9]{1,20}))?\}"#,
        ) {
            check(&bytes);
            check(json.as_bytes());
        }
    }
}
