use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use frazil_core::Entropy;

/// Randomness from a seed (splitmix64). Clones draw from the same stream.
#[derive(Debug, Clone)]
pub struct Dice(Arc<AtomicU64>);

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Dice {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(mix(seed.wrapping_add(STEP)))))
    }

    /// A stream of its own, so that drawing more from one does not move the others.
    pub fn fork(&self, label: &str) -> Self {
        let label = label.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self::new(self.next() ^ label)
    }

    /// 64 random bits.
    #[allow(clippy::should_implement_trait)] // a stream without an end is no iterator
    pub fn next(&self) -> u64 {
        mix(self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP))
    }

    /// A number in `0..bound`; 0 when the bound is 0.
    pub fn below(&self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// An index into something of this length; 0 when it is empty.
    pub fn index(&self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// A number in `low..=high`.
    pub fn between(&self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True with this probability, from 0 to 1.
    pub fn chance(&self, probability: f64) -> bool {
        probability > 0.0 && (self.next() >> 11) as f64 / ((1u64 << 53) as f64) < probability
    }

    /// One of the items.
    pub fn pick<'a, T>(&self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.index(items.len()))
    }

    /// Puts the items in random order.
    pub fn shuffle<T>(&self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }
}

impl Entropy for Dice {
    fn next_u64(&self) -> u64 {
        self.next()
    }
}
