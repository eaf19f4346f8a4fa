//! One clock for the engine and JavaScript.
//!
//! quinn-proto counts in `Instant`s; everything that leaves the engine is in nanoseconds of
//! CLOCK_MONOTONIC, which `process.hrtime` reads as well, so timestamps of both sides can be
//! subtracted.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Translates between `Instant` and CLOCK_MONOTONIC nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
    origin_ns: u64,
}

impl Clock {
    /// A clock whose two readings were taken at the same moment, to within a microsecond.
    #[must_use]
    pub fn new() -> Self {
        let origin_ns = monotonic_ns();
        Self { origin: Instant::now(), origin_ns }
    }

    /// The moment as CLOCK_MONOTONIC nanoseconds.
    #[must_use]
    pub fn ns(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.origin).as_nanos();
        self.origin_ns.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// Now, as CLOCK_MONOTONIC nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.ns(Instant::now())
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// CLOCK_MONOTONIC in nanoseconds.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(NS_PER_S).saturating_add(nanoseconds)
}

/// A duration in whole nanoseconds; the longest that fits when it is longer.
#[must_use]
pub fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds of a second.
pub const NS_PER_S: u64 = 1_000_000_000;
/// Nanoseconds of a millisecond.
pub const NS_PER_MS: u64 = 1_000_000;
/// A moment that never comes.
pub const NEVER_NS: u64 = u64::MAX;
