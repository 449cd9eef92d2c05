use std::collections::BTreeMap;

use frazil_core::{Offset, OffsetRange, Partition, TimestampMs};
use uuid::Uuid;

use crate::descriptor::Descriptor;
use crate::plan::{Content, Listed};

/// Something of which nothing tells the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclear {
    /// A dropped descriptor that leads up to the new log's first records: a redelivery of the old log, or the new
    /// log's beginning with equal records.
    Dropped {
        /// The descriptor.
        id: Uuid,
        /// When it was staged.
        staged_at: TimestampMs,
        /// What it claims.
        claims: Vec<(Partition, OffsetRange)>,
    },
    /// An event that was parked before the new log showed itself.
    Parked {
        /// The event.
        id: Uuid,
    },
    /// A descriptor that was set aside before the new log showed itself, or that cannot be read.
    Quarantined {
        /// The descriptor.
        id: Uuid,
        /// Whether it can be read; what cannot can only be left aside.
        readable: bool,
    },
}

/// The dropped descriptors that may be the new log's beginning. A log may begin at any offset, but is contiguous: those
/// that lead without a gap up to its first known offset, and in a partition where nothing of it is known those that
/// lead on from offset 0. Of several copies of the same offsets the latest is enough: they were proved to be equal.
pub(super) fn dropped_before(dropped: &[Listed], new_from: &BTreeMap<Partition, Offset>) -> Vec<Unclear> {
    let mut partitions: BTreeMap<Partition, Vec<(OffsetRange, &Descriptor)>> = BTreeMap::new();
    for listed in dropped.iter().rev() {
        let Content::Read(descriptor) = &listed.content else {
            continue;
        };
        for claim in &descriptor.claims {
            let claims = partitions.entry(claim.partition).or_default();
            claims.push((claim.range, descriptor.as_ref()));
        }
    }
    let mut found: BTreeMap<Uuid, &Descriptor> = BTreeMap::new();
    for (partition, claims) in &partitions {
        if let Some(mut first) = new_from.get(partition).copied() {
            let leads_up = |to: Offset| {
                let mut claims = claims.iter();
                claims.find(move |(range, _)| range.first() < to && to <= range.next())
            };
            while let Some((range, descriptor)) = leads_up(first) {
                found.insert(descriptor.id, descriptor);
                first = range.first();
            }
        } else {
            let leads_on = |from: Offset| {
                let mut claims = claims.iter();
                claims.find(move |(range, _)| range.first() <= from && from < range.next())
            };
            let mut next = Offset(0);
            while let Some((range, descriptor)) = leads_on(next) {
                found.insert(descriptor.id, descriptor);
                next = range.next();
            }
        }
    }
    let unclear = found.into_values().map(|descriptor| Unclear::Dropped {
        id: descriptor.id,
        staged_at: descriptor.staged_at,
        claims: descriptor
            .claims
            .iter()
            .map(|claim| (claim.partition, claim.range))
            .collect(),
    });
    unclear.collect()
}

/// The descriptors in quarantine that are not clearly the new log's.
pub(super) fn of_quarantined(quarantined: &[Listed], first_new: Option<Uuid>) -> Vec<Unclear> {
    let unclear = quarantined.iter().filter_map(|listed| {
        let readable = matches!(listed.content, Content::Read(_));
        let is_new = readable && first_new.is_some_and(|first| listed.arrival() >= first);
        (!is_new).then_some(Unclear::Quarantined {
            id: listed.id,
            readable,
        })
    });
    unclear.collect()
}
