use proptest::prelude::*;

use super::*;

#[test]
fn size_is_bounded() {
    let deep = format!("{}{}", "message M { ".repeat(65), "}".repeat(65));
    let long = " ".repeat(MAX_SCHEMA_BYTES + 1);
    // Thirty messages, each of which has the one before it twice: two to the thirtieth columns.
    let mut doubling = proto3("message M { M29 m = 1; } message M0 { int32 i = 1; }");
    for index in 1..30 {
        let before = index - 1;
        doubling.push_str(&format!(
            "message M{index} {{ M{before} a = 1; M{before} b = 2; }}"
        ));
    }
    // A chain of messages, each inside the one before.
    let mut chain = proto3("message M { M0 m = 1; } message M70 { int32 i = 1; }");
    for index in 0..70 {
        chain.push_str(&format!("message M{index} {{ M{} m = 1; }}", index + 1));
    }
    for (text, reason) in [
        (deep, "nests more than 64 levels"),
        (long, "1048577 bytes long"),
        (doubling, "more than 20000 fields"),
        (chain, "nests more than 64 levels"),
    ] {
        let error = columns_of(&text, &Mapping::default()).unwrap_err();
        assert!(error.message().contains(reason), "{error}");
    }
    let many: Vec<(String, String)> = (0..=MAX_PROTOBUF_FILES)
        .map(|i| (format!("{i}.proto"), String::new()))
        .collect();
    let error = ProtobufFile::compile("", &many).unwrap_err();
    assert!(error.message().contains("257 other files"), "{error}");
    let large: Vec<(String, String)> = (0..9)
        .map(|i| (format!("{i}.proto"), " ".repeat(MAX_SCHEMA_BYTES)))
        .collect();
    let error = ProtobufFile::compile("", &large).unwrap_err();
    assert!(error.message().contains("bytes long together"), "{error}");
    // The longest chain of imports that is allowed.
    let imports: Vec<(String, String)> = (0..MAX_PROTOBUF_FILES)
        .map(|i| {
            (
                format!("{i}.proto"),
                if i == 0 {
                    String::new()
                } else {
                    format!("import \"{}.proto\";", i - 1)
                },
            )
        })
        .collect();
    let last = MAX_PROTOBUF_FILES - 1;
    assert!(ProtobufFile::compile(&format!("import \"{last}.proto\"; message M {{}}"), &imports).is_ok());
}

proptest! {
    #[test]
    fn mutated_schemas_never_panic(at in 0usize..700, bytes in prop::collection::vec(any::<u8>(), 0..4), drop in 0usize..6) {
        let text = "edition = \"2023\"; package p; import \"google/protobuf/any.proto\"; option features.field_presence = IMPLICIT;
            message M { reserved a, b; map<string, N> m = 1 [default = 1]; repeated group G = 2 { optional M m = 1; }
            N n = 3 [features.message_encoding = DELIMITED, (confluent.field_meta) = {doc: 'x' params {key: \"scale\" value: \"2\"}}];
            oneof o { string s = 4; bytes b = 5; } /* c */ enum E { A = 0; B = -1; } extensions 100 to max; }
            message N { google.protobuf.Any any = 1; M.E e = 2; } extend M { optional int32 x = 100; } // end";
        for edition in ["edition", "syntax"] {
            let version = if edition == "edition" { "2023" } else { "proto2" };
            let mut mutated = text.replace("edition", edition).replace("2023", version).into_bytes();
            let at = at % mutated.len();
            let end = (at + drop).min(mutated.len());
            mutated.splice(at..end, bytes.iter().copied());
            if let Ok(mutated) = String::from_utf8(mutated)
                && let Ok(file) = ProtobufFile::compile(&mutated, &[])
            {
                let _ = file.message(&MessageSelector::First, &Mapping::default());
            }
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in "(edition = \"2023\";)?[ -~\\n]{0,200}") {
        let _ = ProtobufFile::compile(&text, &[]);
    }
}
