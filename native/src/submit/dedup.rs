//! Hot path: the dedup cache of recently accepted transactions. A duplicate gets the response of
//! the first one and costs neither a verification nor a stream. One hash of 16 bytes, one
//! comparison of memory.
//!
//! Queried before a transaction is decoded, and written only once its signatures are verified:
//! reserved before it is sent, and committed once it is accepted. So no client can insert an entry
//! with another client's signature, and an entry matches only exactly the same bytes. All threads
//! share one cache under a lock, which each holds for about a microsecond, but for the few times at
//! which the tables grow. A thread that does not get it in time, because its owner was preempted,
//! continues without the cache: a duplicate then counts as new. The portable engine has the same
//! cache, of one thread, in `src/dedup/recent-transactions.ts`.

use std::collections::hash_map::{HashMap, RandomState};
use std::collections::vec_deque::VecDeque;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::sync::clock::NS_PER_MS;

/// A transaction with a shorter signature is not cached.
const SIGNATURE_BYTES_MIN: usize = 6;
/// Start of the signature's second half: a signer can choose the first half freely, but not this
/// one.
const SCALAR_AT: usize = 32;
/// Expired entries that one new entry removes: more than one, so that they become fewer.
const EXPIRED_PER_ENTRY: usize = 4;
/// Entries for which there is room from the start, those of 7,800 transactions a second: a table that
/// grows is copied while other threads wait. Room for all would cost each transaction cache misses.
const ENTRIES_FIRST: usize = 16_384;
/// The entries' bytes are allocated in segments of this size.
const SEGMENT_BYTES: usize = 256 * 1024;

/// Capacity and lifetime.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Most transactions.
    pub entries_max: usize,
    /// Most bytes of all transactions together.
    pub bytes_max: usize,
    /// Lifetime of an entry.
    pub keep_ms: u32,
    /// How long a thread waits for the lock.
    pub lock_ms: u32,
}

impl Default for Sizes {
    /// `DEDUP_TRANSACTIONS_MAX`, `DEDUP_BYTES_MAX` and `DEDUP_KEEP_MS` of `src/dedup/limits.ts`.
    fn default() -> Self {
        Self { entries_max: 65_536, bytes_max: 32 * 1024 * 1024, keep_ms: 2_100, lock_ms: 50 }
    }
}

/// Result of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// Reserved for this thread until it is committed or rolled back.
    New,
    /// It was accepted recently.
    Duplicate,
    /// Another thread has reserved it and has not decided yet.
    Pending,
}

/// A reservation until it is decided.
pub(super) struct Undecided<'a> {
    dedup: &'a DedupCache,
    bytes: &'a [u8],
    offset: usize,
}

impl Undecided<'_> {
    /// The reservation is committed or rolled back from now on.
    pub(super) fn decided(self) {
        std::mem::forget(self);
    }
}

impl Drop for Undecided<'_> {
    fn drop(&mut self) {
        self.dedup.rollback(self.bytes, self.offset);
    }
}

/// The cache, which threads share.
pub struct DedupCache {
    sizes: Sizes,
    /// Clients choose their signatures, so the hash has secret keys.
    hasher: RandomState,
    recent: Mutex<Recent>,
}

impl DedupCache {
    /// An empty cache.
    #[must_use]
    pub fn new(sizes: Sizes) -> Self {
        Self { sizes, hasher: RandomState::new(), recent: Mutex::new(Recent::new(sizes)) }
    }

    /// Whether exactly these bytes were accepted recently. `signature_offset` is where the first
    /// signature would start; it may lie outside of the bytes.
    #[must_use]
    pub fn query(&self, bytes: &[u8], signature_offset: usize, now_ns: u64) -> bool {
        let Some(hash) = self.hash(bytes, signature_offset) else { return false };
        let Some(mut recent) = self.lock() else { return false };
        let entry = recent.find(bytes, hash, self.oldest_ns(now_ns));
        entry.is_some_and(|entry| entry.state == State::Accepted)
    }

    /// Reserves a transaction that is about to be accepted, if it is new. The caller must commit
    /// it, which makes duplicates match, or roll it back. Without the lock or without a signature
    /// it counts as new, and nothing is stored.
    #[must_use]
    pub fn reserve(&self, bytes: &[u8], signature_offset: usize, now_ns: u64) -> Reservation {
        let Some(hash) = self.hash(bytes, signature_offset) else { return Reservation::New };
        let Some(mut recent) = self.lock() else { return Reservation::New };
        match recent.find(bytes, hash, self.oldest_ns(now_ns)).map(|entry| entry.state) {
            Some(State::Accepted) => Reservation::Duplicate,
            Some(State::Reserved) => Reservation::Pending,
            Some(State::RolledBack) | None => {
                self.add(&mut recent, bytes, hash, now_ns, State::Reserved);
                Reservation::New
            }
        }
    }

    /// Before a further copy of an accepted transaction leaves: from now on its entry is of
    /// `now_ns`. False, and nothing changes, if an entry is newer than `since_ns`, the newest that
    /// the caller knows of: then a thread sends it, or has just sent it. JavaScript calls, which knows
    /// times as doubles: after 104 days of the host's clock they are coarser than a nanosecond.
    #[must_use]
    pub fn renew(&self, bytes: &[u8], signature_offset: usize, since_ns: u64, now_ns: u64) -> bool {
        let Some(hash) = self.hash(bytes, signature_offset) else { return true };
        let Some(mut recent) = self.lock() else { return true };
        let entry = recent.find(bytes, hash, self.oldest_ns(now_ns));
        if entry.is_some_and(|entry| entry.inserted_ns as f64 > since_ns as f64) {
            return false;
        }
        self.add(&mut recent, bytes, hash, now_ns, State::Accepted);
        true
    }

    /// Forgets an accepted transaction, unless its entry is newer than `since_ns`, a time as in
    /// `renew`.
    pub fn forget(&self, bytes: &[u8], signature_offset: usize, since_ns: u64) {
        let Some(hash) = self.hash(bytes, signature_offset) else { return };
        let Some(mut recent) = self.lock() else { return };
        while let Some(entry) = recent.find(bytes, hash, self.oldest_ns(since_ns)) {
            if entry.state != State::Accepted || entry.inserted_ns as f64 > since_ns as f64 {
                return;
            }
            recent.roll_back(bytes, hash);
        }
    }

    /// Transactions evicted early, because the cache was full.
    #[must_use]
    pub fn evicted(&self) -> u32 {
        self.recent.lock().evicted
    }

    /// Marks a reserved transaction as accepted.
    pub fn commit(&self, bytes: &[u8], signature_offset: usize) {
        let Some(hash) = self.hash(bytes, signature_offset) else { return };
        let Some(mut recent) = self.lock() else { return };
        if let Some(entry) = recent.find(bytes, hash, 0) {
            entry.state = State::Accepted;
        }
    }

    /// Removes the entry of a transaction that this thread reserved when it is dropped undecided,
    /// as by a panic.
    pub(super) fn undecided<'a>(&'a self, bytes: &'a [u8], offset: usize) -> Undecided<'a> {
        Undecided { dedup: self, bytes, offset }
    }

    /// Removes a reserved transaction that is not accepted. One that was accepted stays: then another
    /// thread accepted it, and this one did not get the lock to reserve it.
    pub fn rollback(&self, bytes: &[u8], signature_offset: usize) {
        let Some(hash) = self.hash(bytes, signature_offset) else { return };
        let Some(mut recent) = self.lock() else { return };
        let is_reserved = |entry: &mut Entry| entry.state == State::Reserved;
        if recent.find(bytes, hash, 0).is_some_and(is_reserved) {
            recent.roll_back(bytes, hash);
        }
    }

    /// None if it was not free in time.
    fn lock(&self) -> Option<MutexGuard<'_, Recent>> {
        self.recent.try_lock_for(Duration::from_millis(self.sizes.lock_ms.into()))
    }

    /// When the oldest entry that is still valid was inserted.
    fn oldest_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(u64::from(self.sizes.keep_ms) * NS_PER_MS)
    }

    /// Adds an entry, for which expired ones make room, and then the oldest.
    fn add(&self, recent: &mut Recent, bytes: &[u8], hash: u64, now_ns: u64, state: State) {
        let oldest_ns = self.oldest_ns(now_ns);
        for _ in 0..EXPIRED_PER_ENTRY {
            if !recent.is_oldest_before(oldest_ns) {
                break;
            }
            recent.drop_oldest();
        }
        let Sizes { entries_max, bytes_max, .. } = self.sizes;
        while !recent.entries.is_empty()
            && (recent.entries.len() >= entries_max || recent.bytes + bytes.len() > bytes_max)
        {
            recent.evicted += u32::from(!recent.is_oldest_before(oldest_ns));
            recent.drop_oldest();
        }
        recent.push(bytes, hash, now_ns, state);
    }

    /// None if the bytes contain no complete signature, or are too many.
    fn hash(&self, bytes: &[u8], offset: usize) -> Option<u64> {
        let signature = bytes.get(offset..)?;
        if signature.len() < SIGNATURE_BYTES_MIN || bytes.len() > self.sizes.bytes_max {
            return None;
        }
        let part = |from: usize| {
            let rest = signature.get(from..).unwrap_or_default();
            rest.first_chunk::<8>().copied().unwrap_or_default()
        };
        Some(self.hasher.hash_one([part(0), part(SCALAR_AT)]))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Reserved,
    Accepted,
    RolledBack,
}

struct Entry {
    hash: u64,
    /// The number of the segment that holds its bytes, and where they are in it.
    segment: u64,
    start: u32,
    size: u32,
    inserted_ns: u64,
    state: State,
    /// The number of the entry with the same hash before it; it may be dropped by now.
    older: Option<u64>,
}

/// Transactions in the order of their insertion. Their numbers are consecutive.
struct Recent {
    entries: VecDeque<Entry>,
    /// The number of the oldest entry.
    oldest: u64,
    /// The number of the newest entry with each hash.
    newest: HashMap<u64, u64, BuildHasherDefault<Hashed>>,
    /// The entries' bytes; those of one entry are in one segment. Segments have consecutive numbers.
    segments: VecDeque<Vec<u8>>,
    /// The number of the first segment.
    first: u64,
    /// A segment that is reused.
    spare: Option<Vec<u8>>,
    /// Bytes of all entries.
    bytes: usize,
    evicted: u32,
}

/// The hash of a number that is a hash already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.first_chunk().copied().map_or(0, u64::from_ne_bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl Recent {
    fn new(Sizes { entries_max, .. }: Sizes) -> Self {
        let room = entries_max.min(ENTRIES_FIRST);
        Self {
            entries: VecDeque::with_capacity(room),
            oldest: 0,
            newest: HashMap::with_capacity_and_hasher(room, BuildHasherDefault::default()),
            segments: VecDeque::new(),
            first: 0,
            spare: None,
            bytes: 0,
            evicted: 0,
        }
    }

    fn is_oldest_before(&self, oldest_ns: u64) -> bool {
        self.entries.front().is_some_and(|entry| entry.inserted_ns < oldest_ns)
    }

    /// The newest entry of exactly these bytes that is not rolled back; None if it was inserted
    /// before `oldest_ns`.
    fn find(&mut self, bytes: &[u8], hash: u64, oldest_ns: u64) -> Option<&mut Entry> {
        let index = self.position(bytes, hash)?;
        self.entries.get_mut(index).filter(|entry| entry.inserted_ns >= oldest_ns)
    }

    /// The index of that entry, however old it is.
    fn position(&self, bytes: &[u8], hash: u64) -> Option<usize> {
        let mut number = self.newest.get(&hash).copied();
        loop {
            let index = usize::try_from(number?.checked_sub(self.oldest)?).ok()?;
            let entry = self.entries.get(index)?;
            if entry.state != State::RolledBack && self.holds(entry, bytes) {
                return Some(index);
            }
            number = entry.older;
        }
    }

    /// Marks that entry. Searches begin behind it where it is the newest of its hash, so that they do
    /// not become longer with each repetition of a transaction that is rolled back each time.
    fn roll_back(&mut self, bytes: &[u8], hash: u64) {
        let Some(index) = self.position(bytes, hash) else { return };
        let Some(entry) = self.entries.get_mut(index) else { return };
        entry.state = State::RolledBack;
        if self.newest.get(&hash) != Some(&(self.oldest + index as u64)) {
            return;
        }
        match entry.older.filter(|number| *number >= self.oldest) {
            Some(number) => self.newest.insert(hash, number),
            None => self.newest.remove(&hash),
        };
    }

    fn holds(&self, entry: &Entry, bytes: &[u8]) -> bool {
        let segment = self.segments.get((entry.segment - self.first) as usize);
        let rest = segment.and_then(|segment| segment.get(entry.start as usize..));
        entry.size as usize == bytes.len() && rest.is_some_and(|rest| rest.starts_with(bytes))
    }

    fn push(&mut self, bytes: &[u8], hash: u64, inserted_ns: u64, state: State) {
        let number = self.oldest + self.entries.len() as u64;
        let older = self.newest.insert(hash, number);
        let start = self.append(bytes) as u32;
        let segment = self.first + self.segments.len() as u64 - 1;
        let size = bytes.len() as u32;
        self.entries.push_back(Entry { hash, segment, start, size, inserted_ns, state, older });
    }

    /// Stores bytes in the last segment, or in a new one where that is full. Returns where they are.
    fn append(&mut self, bytes: &[u8]) -> usize {
        let has_room = |segment: &Vec<u8>| segment.capacity() - segment.len() >= bytes.len();
        if !self.segments.back().is_some_and(has_room) {
            let new = || Vec::with_capacity(SEGMENT_BYTES.max(bytes.len()));
            let segment = self.spare.take().filter(has_room).unwrap_or_else(new);
            self.segments.push_back(segment);
        }
        self.bytes += bytes.len();
        self.segments.back_mut().map_or(0, |segment| {
            let start = segment.len();
            segment.extend_from_slice(bytes);
            start
        })
    }

    fn drop_oldest(&mut self) {
        let Some(entry) = self.entries.pop_front() else { return };
        if self.newest.get(&entry.hash) == Some(&self.oldest) {
            self.newest.remove(&entry.hash);
        }
        self.oldest += 1;
        self.bytes -= entry.size as usize;
        // The last segment is filled further.
        let used = self.entries.front().map_or(entry.segment, |oldest| oldest.segment);
        while self.first < used {
            self.spare = self.segments.pop_front().map(|mut segment| {
                segment.clear();
                segment
            });
            self.first += 1;
        }
    }
}

#[cfg(test)]
#[path = "dedup_tests.rs"]
mod tests;
