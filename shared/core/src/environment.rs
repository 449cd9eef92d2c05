use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimestampMs(pub i64);

impl TimestampMs {
    /// How long ago `earlier` was; zero if it is in the future.
    pub fn since(self, earlier: TimestampMs) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for TimestampMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Time as a value: the current time, and waiting.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The current time.
    fn now(&self) -> TimestampMs;

    /// Completes after `duration`. Dropping the future cancels the wait.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// Randomness as a value: for ids and jitter, never for secrets.
pub trait Entropy: Send + Sync + fmt::Debug {
    /// The next 64 random bits.
    fn next_u64(&self) -> u64;
}

/// Where time and randomness come from.
#[derive(Debug, Clone)]
pub struct Environment {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
}

impl Environment {
    /// Uses the given sources.
    pub fn new(clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self { clock, entropy }
    }

    /// The current time.
    pub fn now(&self) -> TimestampMs {
        self.clock.now()
    }

    /// Waits.
    pub async fn sleep(&self, duration: Duration) {
        self.clock.sleep(duration).await;
    }

    /// The next 64 random bits.
    pub fn next_u64(&self) -> u64 {
        self.entropy.next_u64()
    }

    /// A time-ordered UUID (version 7) from this environment's clock and randomness.
    pub fn new_uuid(&self) -> uuid::Uuid {
        let millis = u64::try_from(self.now().0).unwrap_or(0);
        let mut random = [0u8; 10];
        random[..8].copy_from_slice(&self.next_u64().to_be_bytes());
        random[8..].copy_from_slice(&self.next_u64().to_be_bytes()[..2]);
        uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }

    /// Waits for full-jitter exponential backoff: a random time up to `base · 2^attempt`, at most `limit`.
    pub async fn backoff(&self, attempt: u32, base: Duration, limit: Duration) {
        let ceiling = base.saturating_mul(1u32 << attempt.min(16)).min(limit);
        let ceiling_ms = u64::try_from(ceiling.as_millis()).unwrap_or(u64::MAX).max(1);
        self.sleep(Duration::from_millis(self.next_u64() % ceiling_ms))
            .await;
    }
}
