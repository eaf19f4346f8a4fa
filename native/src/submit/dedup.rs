//! Hot path: which transactions were accepted a moment ago, so that a repetition is answered as the
//! first one was and costs neither a verification nor a stream. One hash of twelve bytes, one
//! comparison of memory.
//!
//! Asked before a transaction is decoded, and told only of what is accepted: so nobody can put an
//! entry in with somebody else's signature, and an entry answers only for exactly the same bytes.
//! The memory is that of `ingress/seen.ts`, and threads of JavaScript work in it as well, under the
//! same lock. Who does not get it in time goes without: then a repetition is taken for new.

pub use crate::submit::dedup_index::Sizes;
use crate::submit::dedup_index::{DedupIndex, LOCK_AT, PENDING, set};
use crate::sync::shared_lock::SharedLock;
use crate::sync::shared_memory::Memory;

/// Of fewer bytes nothing is known.
const SIGNATURE_BYTES_MIN: usize = 6;
/// Where the second half of a signature begins: a signer makes the first as he likes, not this.
const SCALAR_AT: usize = 32;

/// Fresh memory that holds an empty ring, as JavaScript makes it; for tests. None for sizes that
/// cannot be.
#[must_use]
pub fn prepared(sizes: Sizes, seed: u32) -> Option<Memory> {
    DedupIndex::prepared(sizes, seed)
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// Nobody else has it until it is retracted.
    New,
    /// It was accepted a moment ago.
    Duplicate,
    /// Another thread has claimed it and has to say yet whether it is accepted.
    Pending,
}

/// A thread's view of what was accepted.
pub struct DedupCache {
    /// Senders choose their signatures, so what spreads them is not theirs to know.
    seed: u32,
    lock: SharedLock,
    ring: DedupIndex,
}

impl DedupCache {
    /// What lies in `memory`, with the sizes of the service; None where its size is another one.
    #[must_use]
    pub fn open(memory: &Memory) -> Option<Self> {
        Self::open_with(memory, Sizes::default())
    }

    /// What lies in `memory`, which was made with these sizes; None where its size is another one.
    #[must_use]
    pub fn open_with(memory: &Memory, sizes: Sizes) -> Option<Self> {
        let ring = DedupIndex::open(memory, sizes)?;
        let lock = SharedLock::open(memory, LOCK_AT, sizes.lock_ms)?;
        Some(Self { seed: ring.seed(), lock, ring })
    }

    /// Whether exactly these bytes were accepted a moment ago. `signature_offset` is where the
    /// first signature would start; it may lie outside of the bytes.
    #[must_use]
    pub fn query(&self, bytes: &[u8], signature_offset: usize, now_ns: u64) -> bool {
        let Some(hash) = self.hash(bytes, signature_offset) else { return false };
        let Some(_locked) = self.lock.acquire() else { return false };
        self.ring.find(bytes, hash, now_ns as f64).is_some_and(|entry| entry.is_committed())
    }

    /// Remembers one that is about to be accepted, if it is new. Who has claimed it confirms it,
    /// and only then is a repetition answered by it, or retracts it. Where the lock was not to be
    /// had, or where there is no signature, it is new and nothing is remembered.
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

    /// What was claimed is accepted.
    pub fn commit(&self, bytes: &[u8], signature_offset: usize) {
        if let Some(size) = self.ring.size_of(bytes) {
            self.resolve(bytes, signature_offset, size);
        }
    }

    /// Forgets what was claimed, because it is not accepted after all.
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

    /// None where no signature is inside.
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

/// Four bytes as JavaScript reads them: what is outside is 0.
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
