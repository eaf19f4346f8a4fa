//! Hot path: tells the main thread of the transactions that a front dealt with, as a ring of
//! records in memory that they share. The layout is that of `front/records.ts`, on a ring of
//! `core/ring.ts`.
//!
//! ```text
//!  head ─ 64 bytes ─ tail ─ 64 bytes ─ slots:
//!     ┌ head: numbers ────────────────────────────────────────────────────┬ the transaction ─┐
//!     │ kind, size, place, times, body, retries, verdict, routes, streams │ 4096 bytes       │
//!     └───────────────────────────────────────────────────────────────────┴──────────────────┘
//! ```
//!
//! A front never waits for room: it asks `has_room` before it sends anything, and what finds none
//! is relayed to the main thread. So no transaction is on the wire without its record. What a
//! record says nothing of is left as it was: the reader knows by its kind what to read.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use crate::decode::decoder::VALIDATION_NUMBERS;
use crate::limits::{DELIVERIES_MAX, TRANSACTION_BYTES_MAX};
use crate::submit::fan_out::FanOutResult;
use crate::sync::shared_memory::{AtomicSlice, Memory};

/// Records that the main thread has not read; a power of two. `RECORD_RING_SLOTS` of `front-limits.ts`.
const RECORDS: usize = 1024;

/// What a record is about: it was sent, or it repeats one that was.
const SENT: f64 = 1.0;
const REPEATED: f64 = 2.0;

/// Numbers of a record: kind, size, place, the three times, body and retries come first.
const OFFSET: usize = 8;
const VERSION: usize = 9;
const ROUTES: usize = 10;
const STATUS: usize = 11;
const CORKED: usize = 13;
const VALIDATION: usize = 14;
const STREAMS: usize = VALIDATION + VALIDATION_NUMBERS;
const HEAD_NUMBERS: usize = STREAMS + DELIVERIES_MAX;
const HEAD_BYTES: usize = 8 * HEAD_NUMBERS;
const SLOT_BYTES: usize = HEAD_BYTES + TRANSACTION_BYTES_MAX;

/// Each cursor of the ring has a cache line to itself.
const LINE_BYTES: usize = 64;
const SLOTS_AT: usize = 2 * LINE_BYTES;

/// Bytes of one front's ring.
pub const RECORDS_BYTES: usize = ring_bytes(RECORDS);

const fn ring_bytes(slots: usize) -> usize {
    SLOTS_AT + slots * SLOT_BYTES
}

/// What a front knows of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct SubmissionRecord<'a> {
    /// The transaction.
    pub bytes: &'a [u8],
    /// The place of the pass that let it in: whose key it was.
    pub key_slot: u32,
    /// When the request's body was complete.
    pub received_ns: u64,
    /// When the verdict was there.
    pub decoded_ns: u64,
    /// When the engine had it.
    pub sent_ns: u64,
    /// Bytes of the request's body.
    pub body_bytes: usize,
    /// The sender's `maxRetries`.
    pub max_retries: Option<u64>,
}

/// The writing side of one front's ring; there may be one only.
pub struct Records {
    slots: usize,
    head: AtomicSlice<AtomicU32>,
    tail: AtomicSlice<AtomicU32>,
    numbers: AtomicSlice<AtomicU64>,
    bytes: AtomicSlice<AtomicU8>,
}

impl Records {
    /// The ring in `memory`; None where its size is another one.
    #[must_use]
    pub fn open(memory: &Memory) -> Option<Self> {
        Self::of(memory, RECORDS)
    }

    /// A ring of so many slots, a power of two.
    fn of(memory: &Memory, slots: usize) -> Option<Self> {
        if !slots.is_power_of_two() || memory.size() != ring_bytes(slots) {
            return None;
        }
        Some(Self {
            slots,
            head: memory.atomics(0, 1)?,
            tail: memory.atomics(LINE_BYTES, 1)?,
            numbers: memory.atomics(SLOTS_AT, slots * SLOT_BYTES / 8)?,
            bytes: memory.atomics(SLOTS_AT, slots * SLOT_BYTES)?,
        })
    }

    /// Whether one more record may be written.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.depth() < self.slots
    }

    /// Records that the main thread has not read.
    #[must_use]
    pub fn depth(&self) -> usize {
        let cursor =
            |cells: &AtomicSlice<AtomicU32>| cells.first().map_or(0, |cell| cell.load(SeqCst));
        cursor(&self.head).wrapping_sub(cursor(&self.tail)) as usize
    }

    /// Tells of one that was sent, by the numbers of its verdict. False where there is no room, or
    /// where it is larger than any transaction: then nothing was written.
    pub fn sent(
        &mut self,
        record: &SubmissionRecord,
        validation: [f64; VALIDATION_NUMBERS],
        sent: &FanOutResult,
    ) -> bool {
        let Some(slot) = self.start(SENT, record) else { return false };
        let count = sent.count.min(DELIVERIES_MAX);
        put(slot, VERSION, [f64::from(sent.version)]);
        put(slot, ROUTES, [count as f64]);
        put(slot, STATUS, [f64::from(sent.status)]);
        put(slot, CORKED, [f64::from(u8::from(sent.corked))]);
        put(slot, VALIDATION, validation);
        put(slot, STREAMS, sent.streams.into_iter().take(count).map(f64::from));
        self.publish();
        true
    }

    /// Tells of a repetition whose first signature starts at `offset`. False as with `sent`.
    pub fn repeated(&mut self, record: &SubmissionRecord, offset: usize) -> bool {
        let Some(slot) = self.start(REPEATED, record) else { return false };
        put(slot, OFFSET, [offset as f64]);
        self.publish();
        true
    }

    /// Writes what all records say; the numbers of the slot.
    fn start(&self, kind: f64, record: &SubmissionRecord) -> Option<&[AtomicU64; HEAD_NUMBERS]> {
        if !self.has_room() || record.bytes.len() > TRANSACTION_BYTES_MAX {
            return None;
        }
        let at = (self.head.first()?.load(Relaxed) as usize & (self.slots - 1)) * SLOT_BYTES;
        let slot = self.numbers.get(at / 8..)?.first_chunk()?;
        if !self.bytes.write(at + HEAD_BYTES, record.bytes) {
            return None;
        }
        let told = [
            kind,
            record.bytes.len() as f64,
            f64::from(record.key_slot),
            record.received_ns as f64,
            record.decoded_ns as f64,
            record.sent_ns as f64,
            record.body_bytes as f64,
            record.max_retries.map_or(-1.0, |retries| retries as f64),
        ];
        put(slot, 0, told);
        Some(slot)
    }

    /// Hands the slot to the reader.
    fn publish(&self) {
        if let Some(head) = self.head.first() {
            head.fetch_add(1, SeqCst);
        }
    }
}

/// Writes numbers from field `at` on.
fn put(slot: &[AtomicU64], at: usize, numbers: impl IntoIterator<Item = f64>) {
    for (cell, number) in slot.iter().skip(at).zip(numbers) {
        cell.store(number.to_bits(), Relaxed);
    }
}

#[cfg(test)]
#[path = "record_ring_tests.rs"]
mod tests;
