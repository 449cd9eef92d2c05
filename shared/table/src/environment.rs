use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use frazil_core::{Clock, Entropy, Environment, TimestampMs};

/// The machine's clock and the operating system's randomness.
pub fn system_environment() -> Environment {
    Environment::new(Arc::new(SystemClock), Arc::new(SystemEntropy))
}

/// The machine's clock. The only place that reads it.
#[derive(Debug, Clone, Copy, Default)]
struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)] // the one place
    fn now(&self) -> TimestampMs {
        let elapsed = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        TimestampMs(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// The operating system's randomness. The only place that reads it.
#[derive(Debug, Clone, Copy, Default)]
struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[allow(clippy::disallowed_methods)] // the one place
    fn next_u64(&self) -> u64 {
        uuid::Uuid::new_v4().as_u64_pair().1 ^ uuid::Uuid::new_v4().as_u64_pair().0
    }
}
