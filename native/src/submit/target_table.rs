//! Hot path: the connections to the current leaders, which the sender's thread publishes in shared
//! memory and every thread that accepts transactions reads. Layout and protocol are those of
//! `src/send/native/shared-target-table.ts`:
//!
//! ```text
//!   word  0      sequence number: rises with each write; odd while the table is written
//!         1      threads that read it so far
//!         2 ..   engine, count, delivery lifetime in ms
//!         5 ..   for each target the engine's handle of the connection
//!        21 ..   for each target the largest transaction that it accepts
//! ```
//!
//! No thread waits for the writer: a table that changed while it was read is read again, a few
//! times, and then the last one that was read consistently is used. Every access is sequentially
//! consistent, as JavaScript's `Atomics` are.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;

use crate::quic::limits::DELIVERIES_MAX;
use crate::sync::shared_memory::{AtomicSlice, Memory};

/// Leaders that these threads send to: `SHARED_TARGETS_MAX` of `src/core/limits.ts`, the same as
/// the deliveries of one engine call.
pub const TARGETS_MAX: usize = DELIVERIES_MAX;
/// Size of the shared memory: `SHARED_TARGET_TABLE_BYTES` of
/// `src/send/native/shared-target-table.ts`.
pub const TARGET_TABLE_BYTES: usize = WORDS * size_of::<u32>();

/// One consistent read of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// The engine's handle; 0: no engine runs.
    pub engine: u32,
    /// Number of targets, at most `TARGETS_MAX`.
    pub count: usize,
    /// Lifetime of a delivery.
    pub ttl_ms: u32,
    /// For each of `count` targets the engine's handle of the connection.
    pub peers: [u32; TARGETS_MAX],
    /// For each of them the largest transaction that it accepts.
    pub bytes_max: [u32; TARGETS_MAX],
}

impl Targets {
    /// The handles of those that accept a transaction of this size, and how many.
    #[must_use]
    pub fn accepting(&self, size: usize) -> (usize, [u32; TARGETS_MAX]) {
        let mut peers = [0; TARGETS_MAX];
        let all = self.peers.iter().zip(&self.bytes_max).take(self.count);
        let accepting = all.filter(|(_, bytes_max)| size <= **bytes_max as usize);
        let mut count = 0;
        for (slot, (peer, _)) in peers.iter_mut().zip(accepting) {
            *slot = *peer;
            count += 1;
        }
        (count, peers)
    }
}

/// A thread's view of the table.
pub struct SharedTargetTable {
    words: AtomicSlice<AtomicU32>,
    thread_number: u32,
    table: Targets,
    /// Sequence number of the read table; None: none was read.
    sequence: Option<u32>,
}

impl SharedTargetTable {
    /// Registers one more thread. None if the memory has another size.
    #[must_use]
    pub fn open(memory: &Memory) -> Option<Self> {
        if memory.size() != TARGET_TABLE_BYTES {
            return None;
        }
        let words = memory.atomics::<AtomicU32>(0, WORDS)?;
        let thread_number = words.get(INGRESS_THREADS)?.fetch_add(1, SeqCst).wrapping_add(1);
        Some(Self { words, thread_number, table: Targets::default(), sequence: None })
    }

    /// Counts up from 1 among the threads that share the memory.
    #[must_use]
    pub fn thread_number(&self) -> u32 {
        self.thread_number
    }

    /// The table; while it is being written, as it was read before.
    pub fn latest(&mut self) -> &Targets {
        let _ = self.refresh();
        &self.table
    }

    /// Reads the table if it changed; false if it is being written during every attempt.
    fn refresh(&mut self) -> bool {
        for _ in 0..TRIES {
            let sequence = self.word(SEQUENCE);
            if self.sequence == Some(sequence) {
                return true;
            }
            if sequence.is_multiple_of(2) && self.read(sequence) {
                return true;
            }
        }
        false
    }

    /// Returns whether the table did not change meanwhile; only then it is kept.
    fn read(&mut self, sequence: u32) -> bool {
        let mut table = Targets {
            engine: self.word(ENGINE),
            count: usize::try_from(self.word(COUNT))
                .map_or(TARGETS_MAX, |all| all.min(TARGETS_MAX)),
            ttl_ms: self.word(TTL_MS),
            ..Targets::default()
        };
        let targets = table.peers.iter_mut().zip(&mut table.bytes_max);
        for (target, (peer, bytes_max)) in targets.enumerate().take(table.count) {
            *peer = self.word(PEERS + target);
            *bytes_max = self.word(BYTES_MAX + target);
        }
        if self.word(SEQUENCE) != sequence {
            return false;
        }
        self.table = table;
        self.sequence = Some(sequence);
        true
    }

    fn word(&self, at: usize) -> u32 {
        self.words.get(at).map_or(0, |word| word.load(SeqCst))
    }
}

const SEQUENCE: usize = 0;
const INGRESS_THREADS: usize = 1;
const ENGINE: usize = 2;
const COUNT: usize = 3;
const TTL_MS: usize = 4;
const PEERS: usize = 5;
const BYTES_MAX: usize = PEERS + TARGETS_MAX;
const WORDS: usize = BYTES_MAX + TARGETS_MAX;
/// A write takes less than a microsecond; after this number of attempts the last one read is used.
const TRIES: usize = 8;

#[cfg(test)]
#[path = "target_table_tests.rs"]
pub(crate) mod tests;
