//! Hot path: the state of every rate limit, one for each account and for each key with a limit of
//! its own. Ingress threads and the main thread charge the same states.
//!
//! A charge of a limit that all edges share is also counted, so that the main thread can report it
//! to the other edges (`src/accounts/global-limits`): the count rises before the charge, and falls
//! again if that is rejected. So a reader of a bucket and then its count misses nothing that is in
//! the bucket. Such a state is listed with its first charge; the main thread takes it from the
//! list, watches it, and ends that when its bucket is full.
//!
//! Who charges a limit has its state from the key (`key_table`). Only the writer of that table
//! finds states by name. A state that no key refers to any more stays until its bucket is full, so
//! that whoever removes a key and adds it again gains nothing: each new state examines the next two
//! of its part and removes those.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use parking_lot::Mutex;

use crate::submit::rate_limit::{Bucket, Limit};
use crate::sync::mutex_queue::MutexQueue;

/// The states are in this many parts: a growing part moves all of its states.
const PARTS: usize = 256;
/// More than one, or unused states would never become fewer.
const LOOKS: usize = 2;

/// One limit.
#[derive(Debug)]
pub struct LimitState {
    name: Box<str>,
    /// Of this edge alone.
    local: Bucket,
    /// Of all edges.
    global: Bucket,
    /// What the last request charged to `global` cost, undivided, as the bits of a double.
    interval_ns: AtomicU64,
    /// Requests charged to `global` since the last watch ended.
    count: AtomicU32,
    /// Whether the main thread watches it, or will once it takes it from the list.
    is_listed: AtomicBool,
}

impl LimitState {
    /// Of an account or a key.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Undoes a charge of a limit that is not shared.
    pub fn refund(&self, limit: Limit) {
        self.local.refund(limit);
    }

    fn is_full(&self, now_ns: f64) -> bool {
        self.local.full_ns() <= now_ns && self.global.full_ns() <= now_ns
    }
}

/// What the main thread reads of a watched limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watched {
    /// When its bucket is full again.
    pub full_ns: f64,
    /// Requests charged, read after the bucket.
    pub count: u32,
    /// What one request costs.
    pub interval_ns: f64,
}

/// All limits.
pub struct LimitRegistry {
    parts: Box<[Mutex<Part>]>,
    hasher: RandomState,
    /// Number of edges by which shared limits are divided; 0: every limit is of this edge alone.
    edge_count: AtomicU32,
    /// Charged and not watched yet.
    charged: MutexQueue<Arc<LimitState>>,
    watched: Mutex<WatchedSlots>,
}

#[derive(Default)]
struct WatchedSlots {
    states: Vec<Option<Arc<LimitState>>>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Part {
    by_name: HashSet<ByName>,
    states: Vec<Arc<LimitState>>,
    /// The next to examine.
    hand: usize,
}

struct ByName(Arc<LimitState>);

impl Borrow<str> for ByName {
    fn borrow(&self) -> &str {
        &self.0.name
    }
}

impl Hash for ByName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for ByName {}

impl Default for LimitRegistry {
    fn default() -> Self {
        Self {
            parts: (0..PARTS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            edge_count: AtomicU32::new(0),
            charged: MutexQueue::default(),
            watched: Mutex::default(),
        }
    }
}

impl LimitRegistry {
    /// The state of this name, which exists from now on.
    #[must_use]
    pub fn state(&self, name: &str, now_ns: f64) -> Arc<LimitState> {
        // One of PARTS: the remainder is an index.
        let part = self.hasher.hash_one(name) as usize % PARTS;
        let Some(part) = self.parts.get(part) else { return new_state(name) };
        part.lock().state(name, now_ns)
    }

    /// States of accounts and keys that exist, or whose bucket is not full yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.lock().states.len()).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of edges that divide a shared limit; 0: every limit is of this edge alone.
    pub fn set_edge_count(&self, count: u32) {
        self.edge_count.store(count, SeqCst);
    }

    /// Charges one request: 0, or the nanoseconds to wait, and then nothing is charged.
    #[must_use]
    pub fn try_charge(
        &self,
        state: &Arc<LimitState>,
        is_shared: bool,
        now_ns: f64,
        limit: Limit,
    ) -> f64 {
        let Some(share) = self.share_of(is_shared, limit) else {
            return local(state, now_ns, limit).try_charge(now_ns, limit);
        };
        let wait_ns = state.global.wait_ns(now_ns, share);
        if wait_ns > 0.0 {
            return wait_ns;
        }
        state.interval_ns.store(limit.interval_ns().to_bits(), Relaxed);
        state.count.fetch_add(1, SeqCst);
        let late_wait_ns = state.global.try_charge(now_ns, share);
        if late_wait_ns > 0.0 {
            state.count.fetch_sub(1, SeqCst);
        } else {
            self.list(state);
        }
        late_wait_ns
    }

    /// How long the next request would have to wait. Charges nothing.
    #[must_use]
    pub fn wait_ns(&self, state: &LimitState, is_shared: bool, now_ns: f64, limit: Limit) -> f64 {
        match self.share_of(is_shared, limit) {
            None => local(state, now_ns, limit).wait_ns(now_ns, limit),
            Some(share) => state.global.wait_ns(now_ns, share),
        }
    }

    /// As `Bucket::available`.
    #[must_use]
    pub fn available(
        &self,
        state: &LimitState,
        is_shared: bool,
        now_ns: f64,
        limit: Limit,
    ) -> (u32, f64) {
        match self.share_of(is_shared, limit) {
            None => local(state, now_ns, limit).available(now_ns, limit),
            Some(share) => state.global.available(now_ns, share),
        }
    }

    /// The limit that was charged first, which is watched in this slot from now on.
    #[must_use]
    pub fn watch_next(&self) -> Option<(u32, Arc<LimitState>)> {
        let state = self.charged.pop()?;
        Some((self.watched.lock().add(state.clone())?, state))
    }

    /// A watched limit.
    #[must_use]
    pub fn watched(&self, slot: u32) -> Option<Watched> {
        let state = self.watched_state(slot)?;
        // The bucket first: a request is counted before it is charged.
        let full_ns = state.global.full_ns();
        let count = state.count.load(SeqCst);
        let interval_ns = f64::from_bits(state.interval_ns.load(Relaxed));
        Some(Watched { full_ns, count, interval_ns })
    }

    /// Replaces the bucket of a watched limit if it is still `was_ns`; returns whether it was.
    #[must_use]
    pub fn replace(&self, slot: u32, was_ns: f64, full_ns: f64) -> bool {
        self.watched_state(slot).is_some_and(|state| state.global.replace(was_ns, full_ns))
    }

    /// Ends the watch of a limit whose last count was `count`, which is reported and subtracted:
    /// its next charge lists it again.
    pub fn unwatch(&self, slot: u32, count: u32) {
        let Some(state) = self.watched.lock().remove(slot) else { return };
        state.is_listed.store(false, SeqCst);
        // Charged meanwhile, maybe by a thread that found it listed.
        if state.count.fetch_sub(count, SeqCst) != count {
            self.list(&state);
        }
    }

    fn list(&self, state: &Arc<LimitState>) {
        // Read first: a cache line that no thread writes stays in every processor's cache.
        if !state.is_listed.load(SeqCst) && !state.is_listed.swap(true, SeqCst) {
            self.charged.push(state.clone());
        }
    }

    fn watched_state(&self, slot: u32) -> Option<Arc<LimitState>> {
        self.watched.lock().states.get(usize::try_from(slot).ok()?)?.clone()
    }

    /// This edge's part of a limit that all edges share; None for one of this edge alone.
    fn share_of(&self, is_shared: bool, limit: Limit) -> Option<Limit> {
        if !is_shared {
            return None;
        }
        let edge_count = self.edge_count.load(SeqCst);
        (edge_count > 0).then(|| limit.divided_by(f64::from(edge_count)))
    }
}

impl WatchedSlots {
    fn add(&mut self, state: Arc<LimitState>) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            *self.states.get_mut(usize::try_from(slot).ok()?)? = Some(state);
            return Some(slot);
        }
        let slot = u32::try_from(self.states.len()).ok()?;
        self.states.push(Some(state));
        Some(slot)
    }

    fn remove(&mut self, slot: u32) -> Option<Arc<LimitState>> {
        let state = self.states.get_mut(usize::try_from(slot).ok()?)?.take()?;
        self.free.push(slot);
        Some(state)
    }
}

impl Part {
    fn state(&mut self, name: &str, now_ns: f64) -> Arc<LimitState> {
        if let Some(ByName(known)) = self.by_name.get(name) {
            return known.clone();
        }
        for _ in 0..LOOKS {
            self.examine_next(now_ns);
        }
        let state = new_state(name);
        self.by_name.insert(ByName(state.clone()));
        self.states.push(state.clone());
        state
    }

    /// Removes the next state if no key refers to it and its bucket is full.
    fn examine_next(&mut self, now_ns: f64) {
        if self.hand >= self.states.len() {
            self.hand = 0;
        }
        let Some(state) = self.states.get(self.hand) else { return };
        // Two are those of this part.
        if Arc::strong_count(state) > 2 || !state.is_full(now_ns) {
            self.hand += 1;
            return;
        }
        let state = self.states.swap_remove(self.hand);
        self.by_name.remove(&*state.name);
    }
}

fn new_state(name: &str) -> Arc<LimitState> {
    Arc::new(LimitState {
        name: name.into(),
        local: Bucket::default(),
        global: Bucket::default(),
        interval_ns: AtomicU64::new(0),
        count: AtomicU32::new(0),
        is_listed: AtomicBool::new(false),
    })
}

/// The bucket of a limit that applies to this edge alone. That of a shared limit is not bounded: it
/// makes up for what other edges admitted, too.
fn local(state: &LimitState, now_ns: f64, limit: Limit) -> &Bucket {
    state.local.bound(now_ns, limit);
    &state.local
}

#[cfg(test)]
#[path = "limit_registry_tests.rs"]
mod tests;
