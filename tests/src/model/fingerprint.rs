const START: u64 = 0xcbf2_9ce4_8422_2325;

fn add(hash: u64, bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    // A separator, so that "ab","c" is not "a","bc".
    (hash ^ 0x1ff).wrapping_mul(0x0000_0100_0000_01b3)
}

/// Stands for what a row says: its timestamp (`None` when Kafka had none), its key, and every column of the value
/// that is not null, by name. FNV-1a, so that it means the same in every run.
pub fn fingerprint<'a>(
    timestamp_ms: Option<i64>,
    key: Option<&str>,
    columns: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> u64 {
    let mut sorted: Vec<(&str, &str)> = columns.into_iter().collect();
    sorted.sort_unstable();
    let timestamp = timestamp_ms.map_or_else(|| "none".to_owned(), |millis| millis.to_string());
    let hash = add(
        add(START, timestamp.as_bytes()),
        key.unwrap_or("\u{0}none").as_bytes(),
    );
    sorted.into_iter().fold(hash, |hash, (name, value)| {
        add(add(hash, name.as_bytes()), value.as_bytes())
    })
}
