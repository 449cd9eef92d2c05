use std::path::Path;

use frazil_config::Config;
use frazil_core::TopicName;
use frazil_kafka::EventBuffer;

use super::*;

/// An event of one partition, whose values have an optional schema of Lambda's client.
fn event(values: &[(&[u8], Option<&str>)]) -> String {
    let records: Vec<String> = values
        .iter()
        .enumerate()
        .map(|(offset, (value, format))| {
            let metadata = format.map_or(String::new(), |format| {
                format!(r#","valueSchemaMetadata":{{"dataFormat":"{format}","schemaId":"7"}}"#)
            });
            format!(
                r#"{{"topic":"t","partition":0,"offset":{offset},"value":"{}"{metadata}}}"#,
                base64_simd::STANDARD.encode_to_string(value)
            )
        })
        .collect();
    format!(
        r#"{{"eventSource":"aws:kafka","records":{{"t-0":[{}]}}}}"#,
        records.join(",")
    )
}

#[test]
fn what_prevails_decides_and_the_unknown_does_not() {
    use ValueFormat::{Json, Registered};
    let confluent: (&[u8], _) = (&[0, 0, 0, 0, 7, 1], None);
    let glue: (&[u8], _) = (
        &[3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
        None,
    );
    let json: (&[u8], _) = (b"{\"a\": 1}", None);
    let other: (&[u8], _) = (&[2, b'a'], None);
    let source: (&[u8], _) = (&[2, b'a'], Some("AVRO"));
    let converted: (&[u8], _) = (b"{\"a\": 1}", Some("AVRO"));
    let json_schema: (&[u8], _) = (b"{\"a\": 1}", Some("JSON"));
    let broken: (&[u8], _) = (b"{\"a\": ", Some("PROTOBUF"));
    for (values, expected) in [
        (
            vec![confluent, json, confluent],
            Some((Registered, ValueFraming::Confluent)),
        ),
        (vec![confluent, json, json], Some((Json, ValueFraming::None))),
        (
            vec![glue, glue, confluent],
            Some((Registered, ValueFraming::Glue)),
        ),
        (vec![other, other, json], Some((Json, ValueFraming::None))),
        (vec![other, other], None),
        (vec![(&b""[..], None)], None),
        (vec![source, converted], Some((Registered, ValueFraming::Lambda))),
        (vec![converted, converted], Some((Json, ValueFraming::Lambda))),
        (vec![json_schema], Some((Registered, ValueFraming::Lambda))),
        (vec![broken, converted], Some((Registered, ValueFraming::Lambda))),
    ] {
        let json = event(&values);
        let mut buffer = EventBuffer::default();
        let event = buffer.parse(json.as_bytes()).unwrap();
        let batches: Vec<_> = event.batches.iter().collect();
        assert_eq!(prevailing(&batches), expected, "{values:?}");
    }
}

#[test]
fn configuration_goes_before_what_was_kept() {
    let settled = |format, framing| Known::Settled(Encoding { format, framing });
    let kept = Some((ValueFormat::Json, ValueFraming::None));
    for (keys, state, expected) in [
        ("", None, Known::Open),
        ("", kept, settled(Format::Json, Framing::None)),
        (
            "",
            Some((ValueFormat::Registered, ValueFraming::Glue)),
            settled(Format::Auto, Framing::Glue),
        ),
        ("format = \"avro\"", kept, settled(Format::Avro, Framing::Auto)),
        (
            "schema = \"registry\"",
            kept,
            settled(Format::Auto, Framing::Auto),
        ),
        (
            "framing = \"lambda\"",
            kept,
            settled(Format::Auto, Framing::Lambda),
        ),
        (
            "schema = \"subject:t-value\"",
            kept,
            settled(Format::Auto, Framing::None),
        ),
        ("format = \"raw\"", None, settled(Format::Raw, Framing::None)),
    ] {
        let config = Config::parse(&format!("[topics.t]\n{keys}"), Path::new("f")).unwrap();
        let source = config.sources()[0].name();
        let settings = config.topic(source, &TopicName::new("t")).unwrap();
        let mut topic = TopicState::new(source.clone(), TopicName::new("t"));
        (topic.value_format, topic.value_framing) = state.unzip();
        assert_eq!(known(&settings, &topic), expected, "{keys}");
    }
}

/// A state that was written before framings were kept.
#[test]
fn older_states_mean_what_they_meant() {
    let format = |text: &str| serde_json::from_str::<ValueFormat>(text).unwrap();
    for (text, encoding) in [
        (
            "\"avro\"",
            Encoding {
                format: Format::Auto,
                framing: Framing::Confluent,
            },
        ),
        (
            "\"json\"",
            Encoding {
                format: Format::Json,
                framing: Framing::None,
            },
        ),
    ] {
        assert_eq!(kept(format(text), None), encoding);
    }
}
