use proptest::prelude::*;

use super::*;

const SCHEMA: &str = r##"{
  "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://shop.example/order", "title": "Order",
  "type": "object", "required": ["id"], "additionalProperties": false, "properties": {
    "id": {"type": ["string", "null"], "format": "uuid", "description": "who"},
    "total": {"type": "number", "title": "org.apache.kafka.connect.data.Decimal", "connect.type": "bytes",
      "connect.parameters": {"scale": "2", "connect.decimal.precision": "12"}},
    "at": {"$ref": "#/$defs/at"}, "parent": {"$ref": "#"}, "tags": {"type": "array", "items": {"enum": ["a", 1, null]}},
    "by": {"oneOf": [{"type": "null"}, {"type": "object", "additionalProperties": {"type": "integer"}}]},
    "both": {"allOf": [{"properties": {"x": {"const": 1.5}}}, {"properties": {"y": {"type": "boolean"}}}]}
  },
  "$defs": {"at": {"$anchor": "at", "type": "string", "format": "date-time"}}
}"##;

/// A schema with columns within the bounds, or a reason with its code.
fn check(text: &str) {
    // References from another schema lead into it as well.
    let from_outside = [("other.json".to_owned(), text.to_owned())];
    for compiled in [
        compile(text),
        JsonSchema::compile(
            r#"{"properties": {"o": {"$ref": "other.json"}}}"#,
            &from_outside,
            &Mapping::default(),
        ),
    ] {
        match compiled {
            Ok(schema) => assert!(schema.columns().len() <= text.len() + 1),
            Err(error) => assert_eq!(error.code(), Some("json.schema_invalid"), "{error}"),
        }
    }
}

#[test]
fn as_it_stands_it_is_a_schema() {
    assert_eq!(compile(SCHEMA).unwrap().columns().len(), 7);
    check(SCHEMA);
}

proptest! {
    #[test]
    fn mutated_schemas_never_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), "[ -~]{0,3}", 0usize..6), 1..4),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        // ASCII, so that every place is one between characters.
        let mut text = SCHEMA.to_owned();
        for (at, put, drop) in edits {
            let at = at.index(text.len());
            text.replace_range(at..(at + drop).min(text.len()), &put);
            if text.is_empty() {
                break;
            }
        }
        if let Some(cut) = cut {
            text.truncate(cut.index(text.len() + 1));
        }
        check(&text);
    }

    /// Words of the language in places where they do not belong.
    #[test]
    fn exchanged_and_mutated_words_never_panic(words in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..4)) {
        let pieces: Vec<&str> = SCHEMA.split('"').collect();
        let mut exchanged = pieces.clone();
        for (to, from) in words {
            // Every other piece is inside quotes.
            exchanged[to.index(pieces.len() / 2) * 2 + 1] = pieces[from.index(pieces.len() / 2) * 2 + 1];
        }
        check(&exchanged.join("\""));
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,200}") {
        check(&text);
    }
}
