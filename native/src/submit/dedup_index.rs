//! Hot path: the byte ring and its index behind `dedup`. The caller holds the lock.
//!
//! ```text
//!  buffer ├──── older ────┤ head ▶ ├──── oldest ────┤
//!  index  hash of the signature ─▶ newest entry of its bucket ─▶ older ─▶ NONE
//! ```
//!
//! Numbers in the memory are checked before use. If they are inconsistent the cache is cleared:
//! then duplicates count as new, which does not harm the leaders.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use crate::sync::shared_memory::{AtomicSlice, Memory};

/// Words before the entries: the lock, and the state of the ring.
pub(crate) const LOCK_AT: usize = 0;
/// The oldest entry, the number of entries, the write position, and the current size of the ring.
const OLDEST: usize = 1;
const COUNT: usize = 2;
const HEAD: usize = 3;
const CAPACITY: usize = 4;
/// Clients choose their signatures, so the hash has a secret seed.
const SEED: usize = 5;
const EVICTED: usize = 6;
const WORDS: usize = 16;

/// Numbers of an entry: its hash, the start of its bytes and their size (below 0, which no
/// transaction has: rolled back; with PENDING added: reserved), and the older entry of its bucket.
const ENTRY_NUMBERS: usize = 4;
const NONE: i32 = -1;
/// Larger than any transaction.
pub(crate) const PENDING: i32 = 1 << 30;
/// Initial bytes, growth factor (3/2), and the part that must be free at the start to wrap around
/// (1/4): `BYTES_MIN`, `GROWTH`, `FREE_SHARE` of `src/dedup/recent-transactions.ts`.
const BYTES_MIN: usize = 1024 * 1024;
const GROWTH: [usize; 2] = [3, 2];
const FREE_PART: usize = 4;

const NS_PER_MS: f64 = 1e6;

/// Capacity and lifetime. The memory was created with the same numbers.
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

/// Start of each part of the memory, and the total size.
struct Parts {
    buckets: usize,
    inserted_at: usize,
    entries_at: usize,
    buckets_at: usize,
    buffer_at: usize,
    bytes: usize,
}

impl Sizes {
    /// None for a capacity of 0, or one that 32-bit numbers cannot address.
    fn parts(&self) -> Option<Parts> {
        let bound = usize::try_from(PENDING).ok()?;
        if !(1..bound).contains(&self.entries_max) || !(1..bound).contains(&self.bytes_max) {
            return None;
        }
        let buckets = (self.entries_max + 1).next_power_of_two();
        let inserted_at = 4 * WORDS;
        let entries_at = inserted_at + 8 * self.entries_max;
        let buckets_at = entries_at + 4 * ENTRY_NUMBERS * self.entries_max;
        let buffer_at = buckets_at + 4 * buckets;
        let bytes = buffer_at + self.bytes_max;
        Some(Parts { buckets, inserted_at, entries_at, buckets_at, buffer_at, bytes })
    }
}

/// The ring and its index.
pub(crate) struct DedupIndex {
    entries_max: usize,
    bytes_max: usize,
    keep_ns: f64,
    words: AtomicSlice<AtomicU32>,
    inserted_ns: AtomicSlice<AtomicU64>,
    entries: AtomicSlice<AtomicU32>,
    /// The newest entry of each bucket.
    buckets: AtomicSlice<AtomicU32>,
    buffer: AtomicSlice<AtomicU8>,
}

/// State of the ring; consistent, because it was checked when read.
struct Ring {
    /// Below `entries_max`.
    oldest: usize,
    /// At most `entries_max`.
    count: usize,
    /// Less than eight above `bytes_max`.
    head: usize,
    /// From 1 to `bytes_max`.
    capacity: usize,
}

/// One entry; its numbers are unchecked.
pub(crate) struct Entry<'a> {
    hash: &'a AtomicU32,
    start: &'a AtomicU32,
    pub(crate) size: &'a AtomicU32,
    older: &'a AtomicU32,
    inserted_ns: &'a AtomicU64,
}

impl DedupIndex {
    /// The index in `memory`; None if its size differs.
    pub(crate) fn open(memory: &Memory, sizes: Sizes) -> Option<Self> {
        let parts = sizes.parts().filter(|parts| parts.bytes == memory.size())?;
        Some(Self {
            entries_max: sizes.entries_max,
            bytes_max: sizes.bytes_max,
            keep_ns: f64::from(sizes.keep_ms) * NS_PER_MS,
            words: memory.atomics(0, WORDS)?,
            inserted_ns: memory.atomics(parts.inserted_at, sizes.entries_max)?,
            entries: memory.atomics(parts.entries_at, ENTRY_NUMBERS * sizes.entries_max)?,
            buckets: memory.atomics(parts.buckets_at, parts.buckets)?,
            buffer: memory.atomics(parts.buffer_at, sizes.bytes_max)?,
        })
    }

    /// New memory that holds an empty ring. None for impossible sizes.
    pub(crate) fn prepared(sizes: Sizes, seed: u32) -> Option<Memory> {
        let memory = Memory::fresh(sizes.parts()?.bytes);
        let ring = Self::open(&memory, sizes)?;
        ring.write(&ring.cleared());
        ring.words.get(SEED)?.store(seed, Relaxed);
        Some(memory)
    }

    /// Seed of the hash.
    pub(crate) fn seed(&self) -> u32 {
        self.words.get(SEED).map_or(0, |seed| seed.load(Relaxed))
    }

    /// Transactions evicted early, because the ring was full.
    pub(crate) fn evicted(&self) -> u32 {
        self.words.get(EVICTED).map_or(0, |evicted| evicted.load(Relaxed))
    }

    /// The size of these bytes, if they fit.
    pub(crate) fn size_of(&self, bytes: &[u8]) -> Option<i32> {
        i32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= self.bytes_max)
    }

    /// The entry of exactly these bytes, reserved or committed; None if none is valid.
    pub(crate) fn find(&self, bytes: &[u8], hash: u32, now_ns: f64) -> Option<Entry<'_>> {
        let mut index = number(self.bucket(hash)?);
        for _ in 0..self.entries_max {
            let entry = self.entry(usize::try_from(index).ok()?)?;
            if entry.hash.load(Relaxed) == hash && entry.has_size(bytes.len()) {
                if self.is_over(&entry, now_ns) {
                    return None;
                }
                if self.buffer.holds(entry.start(), bytes) {
                    return Some(entry);
                }
            }
            index = number(entry.older);
        }
        None
    }

    pub(crate) fn add(&self, bytes: &[u8], hash: u32, now_ns: f64, size: i32) {
        let mut ring = self.ring();
        self.expire(&mut ring, now_ns);
        self.make_room(&mut ring, bytes.len());
        let index = (ring.oldest + ring.count) % self.entries_max;
        if let (Some(entry), Some(bucket)) = (self.entry(index), self.bucket(hash)) {
            entry.hash.store(hash, Relaxed);
            entry.start.store(ring.head as u32, Relaxed);
            set(entry.size, size);
            set(entry.older, number(bucket));
            entry.inserted_ns.store(now_ns.to_bits(), Relaxed);
            bucket.store(index as u32, Relaxed);
            self.buffer.write(ring.head, bytes);
            // Each entry starts at a multiple of eight, where a copy and a comparison are fastest.
            ring.head += bytes.len().next_multiple_of(8);
            ring.count += 1;
        }
        self.write(&ring);
    }

    fn expire(&self, ring: &mut Ring, now_ns: f64) {
        while ring.count > 0 && self.oldest(ring).is_some_and(|entry| self.is_over(&entry, now_ns))
        {
            self.drop_oldest(ring);
        }
    }

    /// Makes room for `size` bytes at the head, at most `bytes_max`; the oldest entries follow the
    /// head.
    fn make_room(&self, ring: &mut Ring, size: usize) {
        let [more, per] = GROWTH;
        if ring.count == 0 {
            ring.head = 0;
        }
        while ring.head + size > ring.capacity && self.may_grow(ring) {
            ring.capacity = (ring.capacity * more).div_ceil(per).min(self.bytes_max);
        }
        if ring.head + size > ring.capacity {
            // Entries between the head and the end are older than those at the start.
            while ring.count > 0 && self.oldest_start(ring) >= ring.head {
                self.evict(ring);
            }
            ring.head = 0;
        }
        while ring.count > 0 && self.oldest_overlaps(ring, size) {
            self.evict(ring);
        }
        while ring.count >= self.entries_max {
            self.evict(ring);
        }
    }

    /// Whether the ring should grow instead of wrapping around, because little is free at the
    /// start.
    fn may_grow(&self, ring: &Ring) -> bool {
        if ring.capacity == self.bytes_max {
            return false;
        }
        // Entries after the head must be evicted anyway; those at the start are newer.
        let start = self.oldest_start(ring);
        ring.count == 0 || (start < ring.head && start * FREE_PART < ring.capacity)
    }

    fn evict(&self, ring: &mut Ring) {
        self.drop_oldest(ring);
        if let Some(evicted) = self.words.get(EVICTED) {
            evicted.fetch_add(1, Relaxed);
        }
    }

    /// Removes the oldest entry; clears the cache if it is not the last one of its bucket, as it
    /// should be.
    fn drop_oldest(&self, ring: &mut Ring) {
        if self.unlink(ring).is_none() {
            *ring = self.cleared();
            return;
        }
        ring.oldest = if ring.oldest + 1 == self.entries_max { 0 } else { ring.oldest + 1 };
        ring.count -= 1;
    }

    fn unlink(&self, ring: &Ring) -> Option<()> {
        let mut link = self.bucket(self.oldest(ring)?.hash.load(Relaxed))?;
        for _ in 0..self.entries_max {
            let index = usize::try_from(number(link)).ok()?;
            if index == ring.oldest {
                set(link, NONE);
                return Some(());
            }
            link = self.entry(index)?.older;
        }
        None
    }

    /// Reads the ring's state; an empty ring if it is inconsistent.
    fn ring(&self) -> Ring {
        let word = |at: usize| self.words.get(at).map_or(0, |word| word.load(Relaxed) as usize);
        let ring = Ring {
            oldest: word(OLDEST),
            count: word(COUNT),
            head: word(HEAD),
            capacity: word(CAPACITY),
        };
        let is_sound = ring.oldest < self.entries_max
            && ring.count <= self.entries_max
            && ring.head < self.bytes_max + 8
            && (1..=self.bytes_max).contains(&ring.capacity);
        if is_sound { ring } else { self.cleared() }
    }

    fn write(&self, ring: &Ring) {
        let numbers = [
            (OLDEST, ring.oldest),
            (COUNT, ring.count),
            (HEAD, ring.head),
            (CAPACITY, ring.capacity),
        ];
        for (at, number) in numbers {
            if let Some(word) = self.words.get(at) {
                word.store(number as u32, Relaxed);
            }
        }
    }

    /// Clears the index; returns the empty ring, which the caller writes.
    fn cleared(&self) -> Ring {
        for bucket in self.buckets.iter() {
            set(bucket, NONE);
        }
        Ring { oldest: 0, count: 0, head: 0, capacity: self.bytes_max.min(BYTES_MIN) }
    }

    fn entry(&self, index: usize) -> Option<Entry<'_>> {
        let numbers = self.entries.get(index.checked_mul(ENTRY_NUMBERS)?..)?;
        let [hash, start, size, older] = numbers.first_chunk()?;
        Some(Entry { hash, start, size, older, inserted_ns: self.inserted_ns.get(index)? })
    }

    fn bucket(&self, hash: u32) -> Option<&AtomicU32> {
        self.buckets.get(hash as usize & (self.buckets.len() - 1))
    }

    fn is_over(&self, entry: &Entry<'_>, now_ns: f64) -> bool {
        now_ns - entry.inserted_ns() > self.keep_ns
    }

    fn oldest(&self, ring: &Ring) -> Option<Entry<'_>> {
        self.entry(ring.oldest)
    }

    fn oldest_start(&self, ring: &Ring) -> usize {
        self.oldest(ring).map_or(0, |entry| entry.start())
    }

    fn oldest_overlaps(&self, ring: &Ring, size: usize) -> bool {
        self.oldest(ring).is_some_and(|entry| {
            let start = entry.start();
            let end = start + bytes_of(number(entry.size)).unsigned_abs() as usize;
            start < ring.head + size && ring.head < end
        })
    }
}

impl Entry<'_> {
    pub(crate) fn is_committed(&self) -> bool {
        number(self.size) < PENDING
    }

    pub(crate) fn inserted_ns(&self) -> f64 {
        f64::from_bits(self.inserted_ns.load(Relaxed))
    }

    fn has_size(&self, size: usize) -> bool {
        usize::try_from(bytes_of(number(self.size))) == Ok(size)
    }

    fn start(&self) -> usize {
        usize::try_from(number(self.start)).unwrap_or(0)
    }
}

fn number(cell: &AtomicU32) -> i32 {
    cell.load(Relaxed).cast_signed()
}

pub(crate) fn set(cell: &AtomicU32, number: i32) {
    cell.store(number.cast_unsigned(), Relaxed);
}

/// The size of an entry, below 0 if it was rolled back.
fn bytes_of(size: i32) -> i32 {
    if size < PENDING { size } else { size - PENDING }
}
