//! Hot path: the dedup cache of recently accepted transactions. A duplicate gets the response of
//! the first one and costs neither a verification nor a stream. One hash of twelve bytes, one
//! comparison of memory.
//!
//! Queried before a transaction is decoded, and written only once its signatures are verified:
//! reserved before it is sent, and committed once it is accepted. So no client can insert an entry
//! with another client's signature, and an entry matches only exactly the same bytes. All threads
//! use one memory, under a lock. A thread that does not get the lock in time continues without the
//! cache: a duplicate then counts as new. The portable engine has the same cache, of one thread, in
//! `src/dedup/recent-transactions.ts`.

pub use crate::submit::dedup_index::Sizes;
use crate::submit::dedup_index::{DedupIndex, LOCK_AT, PENDING, set};
use crate::sync::shared_lock::SharedLock;
use crate::sync::shared_memory::Memory;

/// Bytes that are hashed; a shorter transaction is not cached.
const SIGNATURE_BYTES_MIN: usize = 6;
/// Start of the signature's second half: a signer can choose the first half freely, but not this
/// one.
const SCALAR_AT: usize = 32;

/// New memory that holds an empty ring. None for impossible sizes.
#[must_use]
pub fn prepared(sizes: Sizes, seed: u32) -> Option<Memory> {
    DedupIndex::prepared(sizes, seed)
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

/// A thread's view of the cache.
pub struct DedupCache {
    /// Clients choose their signatures, so the hash has a secret seed.
    seed: u32,
    lock: SharedLock,
    ring: DedupIndex,
}

impl DedupCache {
    /// The cache in `memory`, with the default sizes; None if its size differs.
    #[must_use]
    pub fn open(memory: &Memory) -> Option<Self> {
        Self::open_with(memory, Sizes::default())
    }

    /// The cache in `memory`, which was created with these sizes; None if its size differs.
    #[must_use]
    pub fn open_with(memory: &Memory, sizes: Sizes) -> Option<Self> {
        let ring = DedupIndex::open(memory, sizes)?;
        let lock = SharedLock::open(memory, LOCK_AT, sizes.lock_ms)?;
        Some(Self { seed: ring.seed(), lock, ring })
    }

    /// Whether exactly these bytes were accepted recently. `signature_offset` is where the first
    /// signature would start; it may lie outside of the bytes.
    #[must_use]
    pub fn query(&self, bytes: &[u8], signature_offset: usize, now_ns: u64) -> bool {
        let Some(hash) = self.hash(bytes, signature_offset) else { return false };
        let Some(_locked) = self.lock.acquire() else { return false };
        self.ring.find(bytes, hash, now_ns as f64).is_some_and(|entry| entry.is_committed())
    }

    /// Reserves a transaction that is about to be accepted, if it is new. The caller must commit
    /// it, which makes duplicates match, or roll it back. Without the lock or without a signature
    /// it counts as new, and nothing is stored.
    #[must_use]
    pub fn reserve(&self, bytes: &[u8], signature_offset: usize, now_ns: u64) -> Reservation {
        let Some(size) = self.ring.size_of(bytes) else { return Reservation::New };
        let Some(hash) = self.hash(bytes, signature_offset) else { return Reservation::New };
        let Some(_locked) = self.lock.acquire() else { return Reservation::New };
        let now_ns = now_ns as f64;
        match self.ring.find(bytes, hash, now_ns) {
            Some(entry) if entry.is_committed() => Reservation::Duplicate,
            Some(_) => Reservation::Pending,
            None => {
                self.ring.add(bytes, hash, now_ns, size + PENDING);
                Reservation::New
            }
        }
    }

    /// Before a further copy of an accepted transaction leaves: from now on its entry is of
    /// `now_ns`. False, and nothing changes, if an entry is newer than `since_ns`, the newest that
    /// the caller knows of: then a thread sends it, or has just sent it.
    #[must_use]
    pub fn renew(&self, bytes: &[u8], signature_offset: usize, since_ns: u64, now_ns: u64) -> bool {
        let Some(size) = self.ring.size_of(bytes) else { return true };
        let Some(hash) = self.hash(bytes, signature_offset) else { return true };
        let Some(_locked) = self.lock.acquire() else { return true };
        let entry = self.ring.find(bytes, hash, now_ns as f64);
        if entry.is_some_and(|entry| entry.inserted_ns() > since_ns as f64) {
            return false;
        }
        self.ring.add(bytes, hash, now_ns as f64, size);
        true
    }

    /// Transactions evicted early, because the cache was full.
    #[must_use]
    pub fn evicted(&self) -> u32 {
        self.ring.evicted()
    }

    /// Marks a reserved transaction as accepted.
    pub fn commit(&self, bytes: &[u8], signature_offset: usize) {
        if let Some(size) = self.ring.size_of(bytes) {
            self.resolve(bytes, signature_offset, size);
        }
    }

    /// Removes the entry of a transaction that this thread reserved when it is dropped undecided,
    /// as by a panic.
    pub(super) fn undecided<'a>(&'a self, bytes: &'a [u8], offset: usize) -> Undecided<'a> {
        Undecided { dedup: self, bytes, offset }
    }

    /// Removes a reserved transaction that is not accepted.
    pub fn rollback(&self, bytes: &[u8], signature_offset: usize) {
        if let Some(size) = self.ring.size_of(bytes) {
            self.resolve(bytes, signature_offset, -size);
        }
    }

    fn resolve(&self, bytes: &[u8], signature_offset: usize, size: i32) {
        let Some(hash) = self.hash(bytes, signature_offset) else { return };
        let Some(_locked) = self.lock.acquire() else { return };
        if let Some(entry) = self.ring.find(bytes, hash, 0.0) {
            set(entry.size, size);
        }
    }

    /// None if the bytes contain no complete signature.
    fn hash(&self, bytes: &[u8], offset: usize) -> Option<u32> {
        if offset.checked_add(SIGNATURE_BYTES_MIN)? > bytes.len() {
            return None;
        }
        let scalar = offset + SCALAR_AT;
        let first = (word_at(bytes, offset) ^ self.seed).wrapping_mul(0x9e37_79b1);
        let low = (first ^ (first >> 15)).wrapping_add(word_at(bytes, scalar));
        let low = low.wrapping_mul(0x85eb_ca6b);
        let all = (low ^ (low >> 13)).wrapping_add(word_at(bytes, scalar + 4));
        let all = all.wrapping_mul(0xc2b2_ae35);
        Some(all ^ (all >> 16))
    }
}

/// Four bytes; those outside of the transaction are 0.
fn word_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    for (to, byte) in word.iter_mut().zip(bytes.iter().skip(at)) {
        *to = *byte;
    }
    u32::from_le_bytes(word)
}

#[cfg(test)]
#[path = "dedup_tests.rs"]
mod tests;
