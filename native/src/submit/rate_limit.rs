//! Hot path: limits in memory that threads share, as `limit-cells.ts` and `shared-cells.ts` of
//! `src/ingress/` lay it out.
//!
//! Each limit is one number, the state of the generic cell rate algorithm: when its bucket is full
//! again, in nanoseconds, as the bits of a double. Every thread charges it by itself, JavaScript's
//! with the same arithmetic, and all of them together let through what one would: a charge is read,
//! computed and put back only where nobody was faster.
//!
//! ```text
//!  of this edge alone     of all edges           counts of those    edges   marks of passes
//!  2 CACHED_KEYS_MAX doubles   CACHED_KEYS_MAX doubles     CACHED_KEYS_MAX i32     1 i32   CACHED_KEYS_MAX bytes
//! ```
//!
//! What all edges share is counted, too, for the main thread to tell the others: before it is
//! charged, and no more where it is refused then. So who reads a cell and then its count misses
//! nothing that is in the cell. Nobody is let through by a cell that there is not.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use crate::sync::shared_memory::{AtomicSlice, Memory};

/// Keys that a front may let in by itself; `CACHED_KEYS_MAX` of `core/limits.ts`.
pub const CACHED_KEYS_MAX: usize = 16_384;
/// Limits of this edge alone: `DELEGATED_LIMITS_MAX` of `limit-cells.ts`.
pub const DELEGATED_LIMITS_MAX: usize = 2 * CACHED_KEYS_MAX;
/// Limits that all edges share: `GLOBAL_LIMITS_MAX` of `shared-cells.ts`.
pub const GLOBAL_LIMITS_MAX: usize = CACHED_KEYS_MAX;

const SHARED_AT: usize = 8 * DELEGATED_LIMITS_MAX;
const COUNTS_AT: usize = SHARED_AT + 8 * GLOBAL_LIMITS_MAX;
const EDGE_COUNT_AT: usize = COUNTS_AT + 4 * GLOBAL_LIMITS_MAX;
const MARKS_AT: usize = EDGE_COUNT_AT + 4;
/// Of the memory that `createKeyCacheMemory` of `limit-cells.ts` gives.
pub const KEY_CACHE_BYTES: usize = MARKS_AT + CACHED_KEYS_MAX;

const NS_PER_S: f64 = 1e9;
/// The wait of whoever is not let through however long it waits.
const FOREVER_NS: f64 = f64::INFINITY;

/// What is let through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// In the long run.
    pub rate_per_second: f64,
    /// At once.
    pub burst: f64,
}

/// What one request costs at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    interval_ns: f64,
    burst: f64,
}

impl Cost {
    /// None where that is no rate.
    #[must_use]
    pub fn of(Rate { rate_per_second, burst }: Rate) -> Option<Self> {
        let interval_ns = (NS_PER_S / rate_per_second).ceil();
        let is_rate = interval_ns.is_finite() && interval_ns > 0.0 && burst.is_finite();
        is_rate.then_some(Self { interval_ns, burst })
    }

    /// Where so many share it.
    fn shared_by(self, edge_count: f64) -> Self {
        let burst = (self.burst / edge_count).floor().max(1.0);
        Self { interval_ns: self.interval_ns * edge_count, burst }
    }
}

/// A thread's view of the limits, and of the marks of passes.
pub struct SharedLimitStates {
    local: AtomicSlice<AtomicU64>,
    shared: AtomicSlice<AtomicU64>,
    counts: AtomicSlice<AtomicU32>,
    /// By how many edges the rates and bursts that are shared are divided: one word.
    edge_count: AtomicSlice<AtomicU32>,
    marks: AtomicSlice<AtomicU8>,
}

impl SharedLimitStates {
    /// None where the memory has another size than `createKeyCacheMemory` gives it.
    #[must_use]
    pub fn new(memory: &Memory) -> Option<Self> {
        if memory.size() != KEY_CACHE_BYTES {
            return None;
        }
        Some(Self {
            local: memory.atomics(0, DELEGATED_LIMITS_MAX)?,
            shared: memory.atomics(SHARED_AT, GLOBAL_LIMITS_MAX)?,
            counts: memory.atomics(COUNTS_AT, GLOBAL_LIMITS_MAX)?,
            edge_count: memory.atomics(EDGE_COUNT_AT, 1)?,
            marks: memory.atomics(MARKS_AT, CACHED_KEYS_MAX)?,
        })
    }

    /// Lets one request through by a limit of this edge alone: 0, or the nanoseconds to wait, and
    /// then nothing is charged.
    #[must_use]
    pub fn charge(&self, limit_slot: u32, now_ns: f64, cost: Cost) -> f64 {
        at(&self.local, limit_slot).map_or(FOREVER_NS, |state| charge(state, now_ns, cost))
    }

    /// How long the next request would have to wait. Changes nothing.
    #[must_use]
    pub fn wait_ns(&self, limit_slot: u32, now_ns: f64, cost: Cost) -> f64 {
        at(&self.local, limit_slot)
            .map_or(FOREVER_NS, |state| wait_ns(full_ns(state), now_ns, cost))
    }

    /// Undoes a charge of the same cost.
    pub fn give_back(&self, limit_slot: u32, cost: Cost) {
        let Some(state) = at(&self.local, limit_slot) else { return };
        let mut was = state.load(SeqCst);
        loop {
            let full_ns = (f64::from_bits(was) - cost.interval_ns).max(0.0);
            match state.compare_exchange_weak(was, full_ns.to_bits(), SeqCst, SeqCst) {
                Ok(_) => return,
                Err(newer) => was = newer,
            }
        }
    }

    /// Lets one request through by a limit that all edges share, and counts it: 0, or the
    /// nanoseconds to wait, and then neither is done.
    #[must_use]
    pub fn charge_shared(&self, limit_slot: u32, now_ns: f64, cost: Cost) -> f64 {
        let Some(share) = self.share_of(cost) else { return FOREVER_NS };
        let (Some(state), Some(count)) =
            (at(&self.shared, limit_slot), at(&self.counts, limit_slot))
        else {
            return FOREVER_NS;
        };
        let wait_ns = wait_ns(full_ns(state), now_ns, share);
        counted(count, wait_ns, || charge(state, now_ns, share))
    }

    /// How long the next request would have to wait. Changes nothing.
    #[must_use]
    pub fn shared_wait_ns(&self, limit_slot: u32, now_ns: f64, cost: Cost) -> f64 {
        let Some(share) = self.share_of(cost) else { return FOREVER_NS };
        at(&self.shared, limit_slot)
            .map_or(FOREVER_NS, |state| wait_ns(full_ns(state), now_ns, share))
    }

    /// Notes that the pass of this place was used.
    pub fn mark(&self, key_slot: u32) {
        let Some(mark) = at(&self.marks, key_slot) else { return };
        // Read first: a line of memory that nobody writes is in every processor's cache.
        if mark.load(Relaxed) == 0 {
            mark.store(1, Relaxed);
        }
    }

    /// What it costs among so many edges; None before anybody said how many they are.
    fn share_of(&self, cost: Cost) -> Option<Cost> {
        let edge_count = self.edge_count.first()?.load(SeqCst).cast_signed();
        (edge_count > 0).then(|| cost.shared_by(f64::from(edge_count)))
    }
}

fn at<T>(states: &AtomicSlice<T>, number: u32) -> Option<&T> {
    states.get(usize::try_from(number).ok()?)
}

fn full_ns(state: &AtomicU64) -> f64 {
    f64::from_bits(state.load(SeqCst))
}

fn wait_ns(full_ns: f64, now_ns: f64, Cost { interval_ns, burst }: Cost) -> f64 {
    let wait_ns = full_ns - now_ns - (burst - 1.0) * interval_ns;
    // No number is no leave.
    if wait_ns.is_nan() { FOREVER_NS } else { wait_ns.max(0.0) }
}

/// Counts what is let through, before it is; the wait is not 0 where others are faster than it.
/// What has to wait as it is, is not counted for a moment either.
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

fn charge(state: &AtomicU64, now_ns: f64, cost: Cost) -> f64 {
    let mut was = state.load(SeqCst);
    loop {
        let full_ns = f64::from_bits(was);
        let wait_ns = wait_ns(full_ns, now_ns, cost);
        if wait_ns > 0.0 {
            return wait_ns;
        }
        let charged = full_ns.max(now_ns) + cost.interval_ns;
        match state.compare_exchange_weak(was, charged.to_bits(), SeqCst, SeqCst) {
            Ok(_) => return 0.0,
            Err(newer) => was = newer,
        }
    }
}

#[cfg(test)]
#[path = "rate_limit_tests.rs"]
mod tests;
