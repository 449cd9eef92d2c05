use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::json::cursor::MAX_DEPTH;

/// The value at `at`, as serde_json has it, numbers by their text.
fn value(tape: &Tape<'_>, at: usize) -> Value {
    match tape.node(at) {
        Node::Null => Value::Null,
        Node::Boolean(value) => value.into(),
        Node::Integer(value) => value.into(),
        Node::Number(text) => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        Node::Text(_) | Node::Escaped(_) => tape.string(at).unwrap().into(),
        Node::Array { .. } => tape.elements(at).map(|at| value(tape, at)).collect(),
        Node::Object { .. } => Value::Object(
            tape.entries(at)
                .map(|(key, at)| (key.to_owned(), value(tape, at)))
                .collect(),
        ),
    }
}

/// `-0` is an integer here and a double there.
fn unsigned_zero(value: Value) -> Value {
    match value {
        Value::Number(number) if number.as_f64() == Some(0.0) => 0.into(),
        Value::Array(items) => items.into_iter().map(unsigned_zero).collect(),
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(key, value)| (key, unsigned_zero(value)))
                .collect(),
        ),
        other => other,
    }
}

/// serde_json is the judge of what is JSON and what it says. Only numbers beyond a double it refuses by itself.
fn check(document: &[u8]) {
    let mut tape = Tape::default();
    let parsed = tape.parse(document, &Concealed::default());
    match (parsed, serde_json::from_slice::<Value>(document)) {
        (Ok(at), Ok(expected)) => assert_eq!(
            unsigned_zero(value(&tape, at)),
            unsigned_zero(expected),
            "{}",
            document.escape_ascii()
        ),
        (Err(_), Err(_)) => assert!(
            tape.nodes.is_empty() && tape.escaped.is_empty(),
            "it left something behind"
        ),
        (Ok(_), Err(error)) if error.to_string().starts_with("number out of range") => {}
        (ours, theirs) => panic!("{}: {ours:?} {theirs:?}", document.escape_ascii()),
    }
}

/// A document as a field is the document, behind another one on the tape.
fn check_as_field(document: &[u8]) {
    let concealed = Concealed::default();
    let (mut alone, mut tape) = (Tape::default(), Tape::default());
    tape.parse(b"[1, {}]", &concealed).unwrap();
    let before = tape.nodes.len();
    match (
        alone.parse(document, &concealed),
        tape.parse_as_field(document, &concealed),
    ) {
        (Ok(document), Ok(object)) => {
            assert_eq!(object, before);
            let expected = serde_json::json!({"value": value(&alone, document)});
            assert_eq!(value(&tape, object), expected);
        }
        (Err(_), Err(_)) => assert_eq!(tape.nodes.len(), before, "it left something behind"),
        (alone, field) => panic!("{}: {alone:?} {field:?}", document.escape_ascii()),
    }
}

#[test]
fn agrees_with_serde_json() {
    let documents: [&[u8]; 34] = [
        b"",
        b" ",
        b"null",
        b" true ",
        b"fals",
        b"nulll",
        b"0",
        b"-0",
        b"01",
        b"-",
        b"1.",
        b".5",
        b"1e5",
        b"1E+",
        b"1e400",
        b"9223372036854775808",
        b"-9223372036854775808",
        b"\"a\\u00e9\\n\"",
        b"\"\\ud83e\\uddca\"",
        b"\"\\ud800\"",
        b"\"a\nb\"",
        b"\"open",
        b"\"open\\\"",
        b"\"\xff\"",
        b"[]",
        b"[1,]",
        b"[1 2]",
        b"{}",
        b"{\"a\":1,}",
        b"{\"a\" 1}",
        b"{a:1}",
        b"{\"a\":1}}",
        br#"{"a": [1, {"b": null}], "c": "d", "c": 2}"#,
        b"\"\\",
    ];
    documents.iter().for_each(|document| check(document));
}

#[test]
fn faults_say_where() {
    let cases = [
        ("{\"a\": 1,\n  \"b\" 2}", "line 2, column 7: expected `:`"),
        ("[1, 2", "line 1, column 6: expected `,` or `]`"),
        ("{\"a\": tru}", "line 1, column 7: expected a value"),
    ];
    for (document, expected) in cases {
        let error = Tape::default()
            .parse(document.as_bytes(), &Concealed::default())
            .unwrap_err()
            .into_error();
        assert_eq!((error.code(), error.message()), (Some("json.invalid"), expected));
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(
        Tape::default()
            .parse(nested(MAX_DEPTH).as_bytes(), &Concealed::default())
            .is_ok()
    );
    let deeper = nested(MAX_DEPTH + 1);
    let error = Tape::default()
        .parse(deeper.as_bytes(), &Concealed::default())
        .unwrap_err()
        .into_error();
    assert_eq!(error.code(), Some("json.too_deep"));
}

proptest! {
    #[test]
    fn mutated_json_is_judged_as_serde_json_does(at in 0usize..200, byte in any::<u8>(), cut in 0usize..300) {
        let mut document = br#"{"id": 7, "tags": ["a\u00e9", "b"], "o": {"x": -1.5e3, "y": [true, null, {}]}, "s": "q\"t"}"#.to_vec();
        let at = at % document.len();
        document[at] = byte;
        document.truncate(cut);
        check(&document);
        check_as_field(&document);
    }

    #[test]
    fn arbitrary_text_is_judged_as_serde_json_does(text in r#"[\[\]{}",:0-9.eE+\-ntrufalse\\ ]{0,24}"#) {
        check(text.as_bytes());
        check_as_field(text.as_bytes());
    }
}
