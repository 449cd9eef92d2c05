//! Where each partition is read from. What does not fit the log is never guessed at.

use std::collections::BTreeMap;

use frazil_core::{Error, ErrorKind, TopicName};

/// First and next offset of a partition's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) first: i64,
    pub(crate) end: i64,
}

/// A position that a log does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub(crate) partition: i32,
    pub(crate) next: i64,
    /// `None`: the topic has no such partition.
    pub(crate) extent: Option<Extent>,
}

pub(crate) fn earliest(extents: &BTreeMap<i32, Extent>) -> BTreeMap<i32, i64> {
    extents
        .iter()
        .map(|(partition, extent)| (*partition, extent.first))
        .collect()
}

pub(crate) fn latest(extents: &BTreeMap<i32, Extent>) -> BTreeMap<i32, i64> {
    extents
        .iter()
        .map(|(partition, extent)| (*partition, extent.end))
        .collect()
}

/// From the first offset at or after a time; a partition that has none, from its end.
pub(crate) fn at_time(extents: &BTreeMap<i32, Extent>, found: &BTreeMap<i32, i64>) -> BTreeMap<i32, i64> {
    let place = |(partition, extent): (&i32, &Extent)| {
        (*partition, found.get(partition).copied().unwrap_or(extent.end))
    };
    extents.iter().map(place).collect()
}

/// Where the last run stopped; new partitions from their beginning.
///
/// An end that lies before a position is left to the broker to complain about when it is read: some report an end that
/// lags behind what they have.
pub(crate) fn resumed(
    known: &BTreeMap<i32, i64>,
    extents: &BTreeMap<i32, Extent>,
) -> Result<BTreeMap<i32, i64>, Misfit> {
    for (partition, next) in known {
        let extent = extents.get(partition).copied();
        if extent.is_none_or(|extent| *next < extent.first) {
            return Err(Misfit {
                partition: *partition,
                next: *next,
                extent,
            });
        }
    }
    let mut positions = earliest(extents);
    positions.extend(known);
    Ok(positions)
}

impl Misfit {
    pub(crate) fn error(&self, topic: &TopicName, brokers: &str) -> Error {
        let next = self.next;
        let recreated = "if the topic was recreated, say so with `frazil topic adopt`, then start with --restart; else \
                         check that --brokers names the right cluster";
        let (message, hint) = match self.extent {
            None => (
                format!("it was read up to offset {next}, and there is no such partition any more"),
                recreated,
            ),
            Some(extent) if next < extent.first => (
                format!(
                    "it was read up to offset {next}, and the log now begins at {}: what was between is gone",
                    extent.first
                ),
                "start with --restart: it begins at --from, and what the table has is recognised",
            ),
            Some(extent) => (
                format!(
                    "it was read up to offset {next}, and the log ends at {}",
                    extent.end
                ),
                recreated,
            ),
        };
        Error::new(ErrorKind::Invalid, "go on where reading stopped", message)
            .with_context("topic", topic)
            .with_context("partition", self.partition)
            .with_context("brokers", brokers)
            .with_code("kafka.offset_out_of_range")
            .with_hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extents(extents: &[(i32, i64, i64)]) -> BTreeMap<i32, Extent> {
        let extent = |(partition, first, end): &(i32, i64, i64)| {
            (
                *partition,
                Extent {
                    first: *first,
                    end: *end,
                },
            )
        };
        extents.iter().map(extent).collect()
    }

    #[test]
    fn a_first_start_begins_where_it_is_told_to() {
        let extents = extents(&[(0, 5, 9), (1, 0, 0)]);
        assert_eq!(earliest(&extents), BTreeMap::from([(0, 5), (1, 0)]));
        assert_eq!(latest(&extents), BTreeMap::from([(0, 9), (1, 0)]));
        assert_eq!(
            at_time(&extents, &BTreeMap::from([(0, 7)])),
            BTreeMap::from([(0, 7), (1, 0)])
        );
    }

    #[test]
    fn a_later_start_goes_on_or_says_why_not() {
        let resume = |known: &[(i32, i64)], log: &[(i32, i64, i64)]| {
            let known = known.iter().copied().collect();
            resumed(&known, &extents(log))
                .map_err(|misfit| misfit.error(&"orders".into(), "b:9092").to_string())
        };
        // Partition 1 is new.
        assert_eq!(
            resume(&[(0, 7)], &[(0, 5, 9), (1, 2, 3)]),
            Ok(BTreeMap::from([(0, 7), (1, 2)]))
        );
        assert_eq!(
            resume(&[(0, 4)], &[(0, 5, 9)]).unwrap_err(),
            "cannot go on where reading stopped: it was read up to offset 4, and the log now begins at 5: what was \
             between is gone (topic=orders, partition=0, brokers=b:9092); start with --restart: it begins at --from, \
             and what the table has is recognised"
        );
        assert_eq!(
            resume(&[(0, 4), (3, 1)], &[(0, 0, 9)]).unwrap_err(),
            "cannot go on where reading stopped: it was read up to offset 1, and there is no such partition any more \
             (topic=orders, partition=3, brokers=b:9092); if the topic was recreated, say so with `frazil topic adopt`, \
             then start with --restart; else check that --brokers names the right cluster"
        );
        let beyond = Misfit {
            partition: 0,
            next: 12,
            extent: Some(Extent { first: 5, end: 9 }),
        };
        assert!(
            beyond
                .error(&"orders".into(), "b")
                .message()
                .ends_with("offset 12, and the log ends at 9")
        );
    }
}
