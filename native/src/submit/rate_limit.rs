//! Hot path: rate limits in memory that threads share, laid out as `src/limits/thread-limit-states.ts` and
//! `src/limits/global-state.ts` do.
//!
//! Each limit is one number, the state of the generic cell rate algorithm: when its bucket is full
//! again, in nanoseconds, as the bits of a double. Every thread, JavaScript's with the same
//! arithmetic, charges it by compare-and-exchange, so together they admit what one thread would.
//!
//! ```text
//!  of this edge            of all edges            their counts            edges   key marks
//!  2 CACHED_KEYS_MAX f64   CACHED_KEYS_MAX f64     CACHED_KEYS_MAX i32     1 i32   CACHED_KEYS_MAX bytes
//! ```
//!
//! A charge of a limit that all edges share is also counted, so that the main thread can report it
//! to the other edges: the count rises before the charge, and falls again if that is rejected. So a
//! reader of a state and then its count misses nothing that is in the state. A slot outside of the
//! memory admits nothing.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use crate::sync::shared_memory::{AtomicSlice, Memory};

/// Keys that an ingress thread may cache; `CACHED_KEYS_MAX` of `src/limits/bounds.ts`.
pub const CACHED_KEYS_MAX: usize = 16_384;
/// Limits of this edge alone: `DELEGATED_LIMITS_MAX` of `src/limits/thread-limit-states.ts`.
pub const DELEGATED_LIMITS_MAX: usize = 2 * CACHED_KEYS_MAX;
/// Limits that all edges share: `GLOBAL_LIMITS_MAX` of `src/limits/global-state.ts`.
pub const GLOBAL_LIMITS_MAX: usize = CACHED_KEYS_MAX;

const GLOBAL_AT: usize = 8 * DELEGATED_LIMITS_MAX;
const COUNTS_AT: usize = GLOBAL_AT + 8 * GLOBAL_LIMITS_MAX;
const EDGE_COUNT_AT: usize = COUNTS_AT + 4 * GLOBAL_LIMITS_MAX;
const MARKS_AT: usize = EDGE_COUNT_AT + 4;
/// Bytes of `createKeyCacheMemory` of `src/limits/thread-limit-states.ts`.
pub const LIMIT_MEMORY_BYTES: usize = MARKS_AT + CACHED_KEYS_MAX;

const NS_PER_S: f64 = 1e9;
/// Wait of a request that no waiting would admit.
const FOREVER_NS: f64 = f64::INFINITY;

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
    /// None for an invalid rate.
    #[must_use]
    pub fn of(Rate { rate_per_second, burst }: Rate) -> Option<Self> {
        let interval_ns = (NS_PER_S / rate_per_second).ceil();
        let is_rate = interval_ns.is_finite() && interval_ns > 0.0 && burst.is_finite();
        is_rate.then_some(Self { interval_ns, burst })
    }

    /// The part of the limit that each of this number of edges gets.
    fn divided_by(self, edge_count: f64) -> Self {
        let burst = (self.burst / edge_count).floor().max(1.0);
        Self { interval_ns: self.interval_ns * edge_count, burst }
    }
}

/// A thread's view of the limits, and of the marks of used keys.
pub struct ThreadLimitStates {
    local: AtomicSlice<AtomicU64>,
    global: AtomicSlice<AtomicU64>,
    counts: AtomicSlice<AtomicU32>,
    /// Number of edges by which global rates and bursts are divided: one word.
    edge_count: AtomicSlice<AtomicU32>,
    marks: AtomicSlice<AtomicU8>,
}

impl ThreadLimitStates {
    /// None if the size differs from that of `createKeyCacheMemory`.
    #[must_use]
    pub fn new(memory: &Memory) -> Option<Self> {
        if memory.size() != LIMIT_MEMORY_BYTES {
            return None;
        }
        Some(Self {
            local: memory.atomics(0, DELEGATED_LIMITS_MAX)?,
            global: memory.atomics(GLOBAL_AT, GLOBAL_LIMITS_MAX)?,
            counts: memory.atomics(COUNTS_AT, GLOBAL_LIMITS_MAX)?,
            edge_count: memory.atomics(EDGE_COUNT_AT, 1)?,
            marks: memory.atomics(MARKS_AT, CACHED_KEYS_MAX)?,
        })
    }

    /// Charges one request to a limit of this edge alone: 0, or the nanoseconds to wait, and then
    /// nothing is charged.
    #[must_use]
    pub fn try_charge(&self, limit_slot: u32, now_ns: f64, limit: Limit) -> f64 {
        at(&self.local, limit_slot).map_or(FOREVER_NS, |state| try_charge(state, now_ns, limit))
    }

    /// How long the next request would have to wait. Changes nothing.
    #[must_use]
    pub fn wait_ns(&self, limit_slot: u32, now_ns: f64, limit: Limit) -> f64 {
        at(&self.local, limit_slot)
            .map_or(FOREVER_NS, |state| wait_ns(full_ns(state), now_ns, limit))
    }

    /// Undoes a charge to the same limit.
    pub fn refund(&self, limit_slot: u32, limit: Limit) {
        if let Some(state) = at(&self.local, limit_slot) {
            refund(state, limit);
        }
    }

    /// Charges one request to a limit that all edges share, and counts it: 0, or the nanoseconds to
    /// wait, and then neither is done.
    #[must_use]
    pub fn try_charge_global(&self, limit_slot: u32, now_ns: f64, limit: Limit) -> f64 {
        let Some(share) = self.share_of(limit) else { return FOREVER_NS };
        let (Some(state), Some(count)) =
            (at(&self.global, limit_slot), at(&self.counts, limit_slot))
        else {
            return FOREVER_NS;
        };
        let wait_ns = wait_ns(full_ns(state), now_ns, share);
        counted(count, wait_ns, || try_charge(state, now_ns, share))
    }

    /// Undoes a charge to the same limit, and its count.
    pub fn refund_global(&self, limit_slot: u32, limit: Limit) {
        let Some(share) = self.share_of(limit) else { return };
        let (Some(state), Some(count)) =
            (at(&self.global, limit_slot), at(&self.counts, limit_slot))
        else {
            return;
        };
        refund(state, share);
        count.fetch_sub(1, SeqCst);
    }

    /// How long the next request would have to wait. Changes nothing.
    #[must_use]
    pub fn global_wait_ns(&self, limit_slot: u32, now_ns: f64, limit: Limit) -> f64 {
        let Some(share) = self.share_of(limit) else { return FOREVER_NS };
        at(&self.global, limit_slot)
            .map_or(FOREVER_NS, |state| wait_ns(full_ns(state), now_ns, share))
    }

    /// Marks the key of this slot as used.
    pub fn mark(&self, key_slot: u32) {
        let Some(mark) = at(&self.marks, key_slot) else { return };
        // Read first: a cache line that no thread writes stays in every processor's cache.
        if mark.load(Relaxed) == 0 {
            mark.store(1, Relaxed);
        }
    }

    /// This edge's part of the limit; None before the number of edges is known.
    fn share_of(&self, limit: Limit) -> Option<Limit> {
        let edge_count = self.edge_count.first()?.load(SeqCst).cast_signed();
        (edge_count > 0).then(|| limit.divided_by(f64::from(edge_count)))
    }
}

fn at<T>(states: &AtomicSlice<T>, number: u32) -> Option<&T> {
    states.get(usize::try_from(number).ok()?)
}

fn full_ns(state: &AtomicU64) -> f64 {
    f64::from_bits(state.load(SeqCst))
}

fn wait_ns(full_ns: f64, now_ns: f64, Limit { interval_ns, burst }: Limit) -> f64 {
    let wait_ns = full_ns - now_ns - (burst - 1.0) * interval_ns;
    // NaN admits nothing.
    if wait_ns.is_nan() { FOREVER_NS } else { wait_ns.max(0.0) }
}

/// Counts a request before it is charged, and undoes that if other threads charged first and it
/// must wait. A request that must wait anyway is never counted.
fn counted(count: &AtomicU32, wait_ns: f64, charge: impl FnOnce() -> f64) -> f64 {
    if wait_ns > 0.0 {
        return wait_ns;
    }
    count.fetch_add(1, SeqCst);
    let late_wait_ns = charge();
    if late_wait_ns > 0.0 {
        count.fetch_sub(1, SeqCst);
    }
    late_wait_ns
}

fn refund(state: &AtomicU64, limit: Limit) {
    let mut was = state.load(SeqCst);
    loop {
        let full_ns = (f64::from_bits(was) - limit.interval_ns).max(0.0);
        match state.compare_exchange_weak(was, full_ns.to_bits(), SeqCst, SeqCst) {
            Ok(_) => return,
            Err(newer) => was = newer,
        }
    }
}

fn try_charge(state: &AtomicU64, now_ns: f64, limit: Limit) -> f64 {
    let mut was = state.load(SeqCst);
    loop {
        let full_ns = f64::from_bits(was);
        let wait_ns = wait_ns(full_ns, now_ns, limit);
        if wait_ns > 0.0 {
            return wait_ns;
        }
        let charged = full_ns.max(now_ns) + limit.interval_ns;
        match state.compare_exchange_weak(was, charged.to_bits(), SeqCst, SeqCst) {
            Ok(_) => return 0.0,
            Err(newer) => was = newer,
        }
    }
}

#[cfg(test)]
#[path = "rate_limit_tests.rs"]
mod tests;
