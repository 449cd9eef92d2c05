use super::{Table, poison, records, values};
use crate::{DecodeOptions, Payload, RawColumn, prepare};

fn check(raw: RawColumn, expected_poison: &[(usize, &str)], expected: &[&str]) {
    let options = DecodeOptions {
        raw,
        ..DecodeOptions::default()
    };
    let records = records([
        Payload::Raw(b"plain"),
        Payload::Tombstone,
        Payload::Raw(b"\xff\x00"),
        Payload::Raw(b""),
        Payload::Raw("Zoë".as_bytes()),
    ]);
    let prepared = prepare(&records, options).unwrap();
    let found: Vec<(usize, String)> = poison(&prepared);
    let found: Vec<(usize, &str)> = found
        .iter()
        .map(|(index, text)| (*index, text.as_str()))
        .collect();
    assert_eq!(found, expected_poison);
    assert_eq!(values(&Table::default().take(&prepared).unwrap()), expected);
}

#[test]
fn bytes_are_one_column() {
    check(
        RawColumn::Binary,
        &[],
        &[
            "value=x706c61696e",
            "",
            "value=xff00",
            "value=x",
            "value=x5a6fc3ab",
        ],
    );
}

#[test]
fn text_is_one_column_if_it_is_text() {
    check(
        RawColumn::String,
        &[(
            2,
            "raw.invalid_utf8 the value is not UTF-8: invalid utf-8 sequence of 1 bytes from index 0",
        )],
        &["value=plain", "", "value=", "value=Zoë"],
    );
}

#[test]
fn one_value_may_be_a_megabyte() {
    let long = "x".repeat(1 << 20);
    let records = records([Payload::Raw(long.as_bytes())]);
    let options = DecodeOptions {
        raw: RawColumn::String,
        ..DecodeOptions::default()
    };
    let prepared = prepare(&records, options).unwrap();
    assert_eq!(
        values(&Table::default().take(&prepared).unwrap()),
        [format!("value={long}")]
    );
}
