//! Hot path: the arithmetic of a rate limit, that of `src/limits/gcra.ts`.
//!
//! A limit is one number, the state of the generic cell rate algorithm: when its bucket is full
//! again, in nanoseconds, as the bits of a double. Every thread charges it by compare-and-exchange,
//! so together they admit what one thread would.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

const NS_PER_S: f64 = 1e9;
/// Wait of a request that no waiting would admit.
const FOREVER_NS: f64 = f64::INFINITY;
/// `THREADS_APART_NS` of `src/limits/gcra.ts`.
const THREADS_APART_NS: f64 = 1_000_000_000.0;
/// 31 years.
const INTERVAL_NS_MAX: f64 = 1e18;

/// A rate limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Sustained rate.
    pub rate_per_second: f64,
    /// Requests admitted immediately.
    pub burst: f64,
}

/// A rate limit as the arithmetic needs it: the interval of one request, and the burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    interval_ns: f64,
    burst: f64,
}

impl Limit {
    /// An invalid rate, which no plan and no key has, admits the burst once; an invalid burst admits
    /// nothing.
    #[must_use]
    pub fn of(Rate { rate_per_second, burst }: Rate) -> Self {
        let interval_ns = (NS_PER_S / rate_per_second).ceil();
        let is_interval = interval_ns > 0.0 && interval_ns <= INTERVAL_NS_MAX;
        Self {
            interval_ns: if is_interval { interval_ns } else { INTERVAL_NS_MAX },
            burst: if burst.is_finite() { burst } else { f64::NAN },
        }
    }

    /// What one request costs.
    #[must_use]
    pub fn interval_ns(&self) -> f64 {
        self.interval_ns
    }

    /// The part of the limit that each of this number of edges gets.
    #[must_use]
    pub fn divided_by(self, edge_count: f64) -> Self {
        let burst = (self.burst / edge_count).floor().max(1.0);
        Self { interval_ns: self.interval_ns * edge_count, burst }
    }
}

/// When a bucket is full again.
#[derive(Debug, Default)]
pub struct Bucket(AtomicU64);

impl Bucket {
    /// In nanoseconds; 0 for one that was never charged.
    #[must_use]
    pub fn full_ns(&self) -> f64 {
        f64::from_bits(self.0.load(SeqCst))
    }

    /// Lowers the state of an earlier, lower limit, as `boundedNs` of `src/limits/gcra.ts`.
    pub fn bound(&self, now_ns: f64, limit: Limit) {
        let full_ns = self.full_ns();
        let most_ns = now_ns + limit.burst * limit.interval_ns + THREADS_APART_NS;
        if full_ns > most_ns {
            // A thread that has charged it meanwhile has bounded it, too.
            self.replace(full_ns, most_ns);
        }
    }

    /// How long the next request would have to wait. Changes nothing.
    #[must_use]
    pub fn wait_ns(&self, now_ns: f64, limit: Limit) -> f64 {
        wait_ns(self.full_ns(), now_ns, limit)
    }

    /// How many requests would be admitted now, and after how many nanoseconds it is one more; the
    /// latter is infinite for a full bucket. Changes nothing.
    #[must_use]
    pub fn available(&self, now_ns: f64, limit: Limit) -> (u32, f64) {
        let full_in_ns = self.full_ns() - now_ns;
        if full_in_ns <= 0.0 {
            return (limit.burst as u32, FOREVER_NS);
        }
        let charged = (full_in_ns / limit.interval_ns).ceil();
        let more_in_ns = full_in_ns - (charged - 1.0) * limit.interval_ns;
        // NaN and negative numbers are converted to 0.
        ((limit.burst - charged) as u32, more_in_ns)
    }

    /// Charges one request: 0, or the nanoseconds to wait, and then nothing is charged.
    #[must_use]
    pub fn try_charge(&self, now_ns: f64, limit: Limit) -> f64 {
        let mut was = self.0.load(SeqCst);
        loop {
            let full_ns = f64::from_bits(was);
            let wait_ns = wait_ns(full_ns, now_ns, limit);
            if wait_ns > 0.0 {
                return wait_ns;
            }
            let charged = full_ns.max(now_ns) + limit.interval_ns;
            match self.0.compare_exchange_weak(was, charged.to_bits(), SeqCst, SeqCst) {
                Ok(_) => return 0.0,
                Err(newer) => was = newer,
            }
        }
    }

    /// Undoes a charge to the same limit.
    pub fn refund(&self, limit: Limit) {
        let mut was = self.0.load(SeqCst);
        loop {
            let full_ns = (f64::from_bits(was) - limit.interval_ns).max(0.0);
            match self.0.compare_exchange_weak(was, full_ns.to_bits(), SeqCst, SeqCst) {
                Ok(_) => return,
                Err(newer) => was = newer,
            }
        }
    }

    /// Replaces the state if it is still `was_ns`; returns whether it was.
    pub fn replace(&self, was_ns: f64, full_ns: f64) -> bool {
        self.0.compare_exchange(was_ns.to_bits(), full_ns.to_bits(), SeqCst, SeqCst).is_ok()
    }
}

fn wait_ns(full_ns: f64, now_ns: f64, Limit { interval_ns, burst }: Limit) -> f64 {
    let wait_ns = full_ns - now_ns - (burst - 1.0) * interval_ns;
    // NaN admits nothing.
    if wait_ns.is_nan() { FOREVER_NS } else { wait_ns.max(0.0) }
}

#[cfg(test)]
#[path = "rate_limit_tests.rs"]
mod tests;
