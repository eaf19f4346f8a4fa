//! Tables of keys that sign often, shared by all threads.
//!
//! A table reduces a verification to a tenth of the time, or to a third with short vectors, and
//! costs 64 kB and the time of four verifications without it, so only keys of steady senders get
//! one. A key qualifies when a second of its signatures verifies within a short memory; one thread
//! builds the tables, with a pause after each, so that a flood of keys takes a few percent of a
//! core at most. Within a set, recently used tables stay: a new key that finds no idle one is
//! declined and ages all of them a little.
//!
//!     find ──miss──▶ verified elsewhere ──good──▶ recent ──second──▶ queue ──▶ builder ──▶ set

use std::array::from_fn;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::{Builder, Thread, park, sleep};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};

use crate::ed25519::comb_table::Comb;
use crate::ed25519::curve::Point;

/// The shape that `benches/verify.rs` found fastest for its 64 kB.
pub type KeyComb = Comb<4>;

/// Maximum number of keys that an operator may configure: 67 MB.
pub const KEYS_MAX: usize = 1024;
/// Tables of one set.
const WAYS: usize = 4;
/// Recent keys remembered for each table.
const RECENT_KEYS_PER_WAY: usize = 16;
/// Keys waiting for the builder; a key that finds the queue full is offered again by a later
/// signature.
const QUEUE_MAX: usize = 64;
/// Maximum use count of a table.
const WARMTH_MAX: u8 = 15;
/// The builder's pause after each table, which takes 0.1 to 0.3 ms: at most a tenth of a core.
const PAUSE: Duration = Duration::from_millis(3);

/// One key's table.
pub struct KeyTable {
    /// The key.
    pub key: [u8; 32],
    /// Multiples of the negated key.
    pub comb: KeyComb,
    warmth: AtomicU8,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyCounters {
    /// Lookups that found a table.
    pub found: u64,
    /// Tables built.
    pub made: u64,
    /// Tables replaced by another.
    pub evicted: u64,
    /// Keys declined because recently used ones filled their set, or the queue was full.
    pub declined: u64,
}

/// The tables, and the thread that builds them.
pub struct TableCache {
    state: Arc<CacheState>,
    builder: Option<Thread>,
}

type Set = RwLock<[Option<Arc<KeyTable>>; WAYS]>;

struct CacheState {
    sets: Box<[Set]>,
    recent_keys: Box<[AtomicU32]>,
    /// With a secret seed, so that no client can choose keys that share a set.
    hasher: RandomState,
    queue: Queue,
    /// Whether the builder sleeps until it is woken.
    idle: AtomicBool,
    stopped: AtomicBool,
    found: AtomicU64,
    made: AtomicU64,
    evicted: AtomicU64,
    declined: AtomicU64,
}

/// Keys for the builder, the oldest first.
#[derive(Default)]
struct Queue {
    keys: Mutex<VecDeque<[u8; 32]>>,
    /// The queue's length; changed under the lock, read without it.
    count: AtomicUsize,
}

impl TableCache {
    /// Capacity for `keys` tables, rounded up to a power of two and at most KEYS_MAX; 0 for none.
    /// If the thread cannot be started, no table is ever built.
    #[must_use]
    pub fn new(keys: usize) -> Self {
        Self::with_builder(keys, || {})
    }

    /// The same; the builder thread calls `begin` first.
    #[must_use]
    pub fn with_builder(keys: usize, begin: fn()) -> Self {
        let sets = match keys.min(KEYS_MAX) {
            0 => 0,
            keys => keys.div_ceil(WAYS).next_power_of_two(),
        };
        let state = Arc::new(CacheState {
            sets: (0..sets).map(|_| RwLock::new(from_fn(|_| None))).collect(),
            recent_keys: (0..sets * WAYS * RECENT_KEYS_PER_WAY)
                .map(|_| AtomicU32::new(0))
                .collect(),
            hasher: RandomState::new(),
            queue: Queue::default(),
            idle: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            found: AtomicU64::new(0),
            made: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            declined: AtomicU64::new(0),
        });
        let builder = (sets > 0).then(|| {
            let state = Arc::clone(&state);
            let named = Builder::new().name("td-keys".into());
            let build = move || {
                begin();
                state.build();
            };
            named.spawn(build).ok().map(|handle| handle.thread().clone())
        });
        Self { state, builder: builder.flatten() }
    }

    /// The key's table, if it has one. Does not wait for its set: the thread that changes it has
    /// low priority, and may be preempted for longer than a verification without a table takes.
    #[must_use]
    pub fn find(&self, key: &[u8; 32]) -> Option<Arc<KeyTable>> {
        let (set, _) = self.state.locate(key)?;
        let table = set.try_read()?.iter().flatten().find(|table| table.key == *key).cloned()?;
        self.state.found.fetch_add(1, Ordering::Relaxed);
        // Threads may overwrite each other's count: it is a hint.
        let warmth = table.warmth.load(Ordering::Relaxed);
        if warmth < WARMTH_MAX {
            table.warmth.store(warmth + 1, Ordering::Relaxed);
        }
        Some(table)
    }

    /// Records that a signature of a key without a table verified.
    pub fn record_verified(&self, key: &[u8; 32]) {
        let Some((_, hash)) = self.state.locate(key) else {
            return;
        };
        let recent_keys = &self.state.recent_keys;
        let tag = (hash >> 32) as u32;
        let Some(recent_key) = recent_keys.get(hash as usize % recent_keys.len()) else {
            return;
        };
        if recent_key.swap(tag, Ordering::Relaxed) != tag {
            return;
        }
        if !self.state.queue.try_push(*key) {
            self.state.declined.fetch_add(1, Ordering::Relaxed);
        } else if self.state.idle.swap(false, Ordering::SeqCst)
            && let Some(builder) = &self.builder
        {
            builder.unpark();
        }
    }

    /// Builds the key's table on this thread, if the key may have one. Returns whether it did.
    pub fn make(&self, key: &[u8; 32]) -> bool {
        self.state.make(key)
    }

    /// Counts since the start.
    #[must_use]
    pub fn counters(&self) -> KeyCounters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let CacheState { found, made, evicted, declined, .. } = &*self.state;
        KeyCounters {
            found: read(found),
            made: read(made),
            evicted: read(evicted),
            declined: read(declined),
        }
    }
}

impl Drop for TableCache {
    fn drop(&mut self) {
        self.state.stopped.store(true, Ordering::SeqCst);
        if let Some(builder) = &self.builder {
            builder.unpark();
        }
    }
}

impl Queue {
    /// Queues the key unless QUEUE_MAX are queued or another thread has the lock, for which this
    /// does not wait. Returns whether it did.
    fn try_push(&self, key: [u8; 32]) -> bool {
        let Some(mut keys) = self.keys.try_lock() else {
            return false;
        };
        let has_room = keys.len() < QUEUE_MAX;
        if has_room {
            keys.push_back(key);
            self.count.store(keys.len(), Ordering::SeqCst);
        }
        has_room
    }

    /// Removes the oldest key.
    fn pop(&self) -> Option<[u8; 32]> {
        if self.is_empty() {
            return None;
        }
        let mut keys = self.keys.lock();
        let key = keys.pop_front()?;
        self.count.store(keys.len(), Ordering::SeqCst);
        Some(key)
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }
}

impl CacheState {
    /// The key's set, and its hash.
    fn locate(&self, key: &[u8; 32]) -> Option<(&Set, u64)> {
        if self.sets.is_empty() {
            return None;
        }
        let hash = self.hasher.hash_one(key);
        // The low and high halves of the hash identify recent keys; the middle selects the set.
        let set = self.sets.get((hash >> 16) as usize & (self.sets.len() - 1))?;
        Some((set, hash))
    }

    fn build(&self) {
        while !self.stopped.load(Ordering::SeqCst) {
            if let Some(key) = self.queue.pop() {
                if self.make(&key) {
                    sleep(PAUSE);
                }
                continue;
            }
            // Set before the last check of the queue, so that no wake-up is lost.
            self.idle.store(true, Ordering::SeqCst);
            if self.queue.is_empty() && !self.stopped.load(Ordering::SeqCst) {
                park();
            }
            self.idle.store(false, Ordering::SeqCst);
        }
    }

    fn make(&self, key: &[u8; 32]) -> bool {
        let Some((set, _)) = self.locate(key) else {
            return false;
        };
        if !self.has_room(set, key) {
            return false;
        }
        let Some(point) = Point::decompress(key) else {
            return false;
        };
        let comb = KeyComb::new(&point.negated());
        let table = Arc::new(KeyTable { key: *key, comb, warmth: AtomicU8::new(1) });
        let mut ways = set.write();
        // Another thread may have built it meanwhile; two of the same would give the same results.
        let Some(way) = ways.iter_mut().min_by_key(|way| warmth(way)) else {
            return false;
        };
        let evicted = way.replace(table);
        // The replaced table's 64 kB are freed while no thread waits for the lock.
        drop(ways);
        self.evicted.fetch_add(u64::from(evicted.is_some()), Ordering::Relaxed);
        self.made.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Whether the set has an empty or idle way for a key that is not in it.
    fn has_room(&self, set: &Set, key: &[u8; 32]) -> bool {
        let ways = set.read();
        if ways.iter().flatten().any(|table| table.key == *key) {
            return false;
        }
        if ways.iter().any(|way| warmth(way) <= 0) {
            return true;
        }
        for table in ways.iter().flatten() {
            let warmth = table.warmth.load(Ordering::Relaxed);
            table.warmth.store(warmth.saturating_sub(1), Ordering::Relaxed);
        }
        self.declined.fetch_add(1, Ordering::Relaxed);
        false
    }
}

/// The use count of a way; below 0 when it is empty.
fn warmth(way: &Option<Arc<KeyTable>>) -> i16 {
    way.as_ref().map_or(-1, |table| i16::from(table.warmth.load(Ordering::Relaxed)))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::{QUEUE_MAX, Queue, TableCache};
    use crate::ed25519::curve::BASE;

    #[test]
    fn lookups_do_not_wait_for_a_locked_set() {
        let table_cache = TableCache::new(4);
        assert!(table_cache.make(&BASE) && table_cache.find(&BASE).is_some());
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            let change = table_cache.state.locate(&BASE).map(|(set, _)| set.write());
            scope.spawn(|| sender.send(table_cache.find(&BASE).is_none()));
            assert_eq!(receiver.recv_timeout(Duration::from_secs(60)), Ok(true));
            drop(change);
        });
        assert!(table_cache.find(&BASE).is_some());
    }

    #[test]
    fn an_offer_is_declined_when_the_queue_is_full_or_locked() {
        let queue = Queue::default();
        assert!((0..QUEUE_MAX).all(|_| queue.try_push(BASE)) && !queue.try_push(BASE));
        assert!(queue.pop().is_some() && !queue.is_empty());
        let lock = queue.keys.lock();
        assert!(!queue.try_push(BASE));
        drop(lock);
        assert!(queue.try_push(BASE));
    }
}
