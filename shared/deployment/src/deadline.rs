use frazil_core::TimestampMs;

/// When an invocation ends, of what Lambda's Runtime API says. Some of its emulators say how much time there is
/// instead of when it ends: no time that began in 1970 is meant.
pub fn deadline(said_ms: u64, now: TimestampMs) -> TimestampMs {
    let said = i64::try_from(said_ms).unwrap_or(i64::MAX);
    match said < now.0 {
        true => TimestampMs(now.0.saturating_add(said)),
        false => TimestampMs(said),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_or_a_duration() {
        let now = TimestampMs(1_796_000_000_000);
        assert_eq!(deadline(1_796_000_060_000, now), TimestampMs(1_796_000_060_000));
        assert_eq!(deadline(60_000, now), TimestampMs(1_796_000_060_000));
        assert_eq!(deadline(u64::MAX, now), TimestampMs(i64::MAX));
    }
}
