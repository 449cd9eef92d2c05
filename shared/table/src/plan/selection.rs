use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use frazil_core::{OffsetRange, Partition};
use uuid::Uuid;

use super::{Content, PlanInput};
use crate::descriptor::Descriptor;
use crate::layout::LogName;

/// The descriptors that this plan may take: the oldest ones, each together with those that come before it in any of
/// its partitions, until there are enough. A descriptor whose predecessors are left out would only wait.
pub(super) fn within_bound(input: &PlanInput<'_>) -> HashSet<Uuid> {
    let mut readable: BTreeMap<Uuid, (&LogName, &Arc<Descriptor>)> = BTreeMap::new();
    for listed in input.descriptors {
        if let Content::Read(descriptor) = &listed.content {
            readable.insert(listed.id, (&listed.log, descriptor));
        }
    }
    if readable.len() <= input.max_taken {
        return readable.into_keys().collect();
    }
    let mut by_partition: HashMap<(&LogName, Partition), Vec<(OffsetRange, Uuid)>> = HashMap::new();
    for (id, (log, descriptor)) in &readable {
        for claim in &descriptor.claims {
            by_partition
                .entry((log, claim.partition))
                .or_default()
                .push((claim.range, *id));
        }
    }
    by_partition
        .values_mut()
        .for_each(|claims| claims.sort_unstable());
    // Per partition, how many of its claims (in offset order) are chosen already: predecessors are a prefix.
    let mut chosen_prefix: HashMap<(&LogName, Partition), usize> = HashMap::new();
    let mut chosen = HashSet::new();
    for id in readable.keys() {
        if chosen.len() >= input.max_taken {
            break;
        }
        let mut wanted = vec![*id];
        while let Some(id) = wanted.pop() {
            if !chosen.insert(id) {
                continue;
            }
            let Some((log, descriptor)) = readable.get(&id) else {
                continue;
            };
            for claim in &descriptor.claims {
                let Some(claims) = by_partition.get(&(*log, claim.partition)) else {
                    continue;
                };
                let upto = claims.partition_point(|(range, other)| (*range, *other) < (claim.range, id));
                let done = chosen_prefix.entry((log, claim.partition)).or_insert(0);
                wanted.extend(
                    claims
                        .get(*done..upto)
                        .unwrap_or_default()
                        .iter()
                        .map(|(_, id)| *id),
                );
                *done = (*done).max(upto);
            }
        }
    }
    chosen
}
