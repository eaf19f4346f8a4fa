//! Hot path: reports the transactions of all threads to the accounting of the main thread, in one
//! order, as a ring of records in shared memory. The layout is that of `src/engine/record-ring.ts`,
//! on a ring of `src/runtime/ring.ts`.
//!
//! ```text
//!  head ─ 64 bytes ─ tail ─ 64 bytes ─ slots:
//!     ┌ numbers ─────────────────────────────────────────────┬ key id, account ─┬ transaction ─┐
//!     │ kind, size, account size, times, body, ..., peers    │ 16 + 192 bytes   │ 4096 bytes   │
//!     └──────────────────────────────────────────────────────┴──────────────────┴──────────────┘
//! ```
//!
//! An ingress thread never waits for a free slot: it checks `has_room` before it sends, and proxies
//! the request to the main thread if there is none. It claims the slot of a transaction before its
//! first byte leaves, so the main thread reads the record before any event of the transaction and
//! before every duplicate of it. It completes the record once the engine has the transaction
//! (`complete`), or has not (`void`):
//!
//! ```text
//!  CLAIMED ──written──▶ DONE | PENDING ──sent──▶ DONE | VOID ──read──▶ CLAIMED
//! ```
//!
//! The reader waits for DONE or VOID, and resets the state for the next writer. A rejection is
//! recorded with its message in place of the transaction, while fewer than half of the slots are in
//! use, so that rejections leave room for what is sent. Fields that a kind of record does not use
//! keep their old values; the reader knows by the kind which to read.
//!
//! A record names its key and account itself: the key may be removed before the record is read. One
//! of the main thread's own submissions has the number of the submission there instead.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use crate::decode::decoder::VALIDATION_NUMBERS;
use crate::decode::limits::TRANSACTION_BYTES_MAX;
use crate::http::rejection_table::Reason;
use crate::quic::limits::DELIVERIES_MAX;
use crate::submit::fan_out::FanOutResult;
use crate::submit::key_table::{ACCOUNT_BYTES_MAX, KEY_ID_BYTES, Key};
use crate::sync::shared_memory::{AtomicSlice, Memory};

/// Slots of the ring; a power of two. `RECORD_RING_SLOTS` of `src/engine/limits.ts`.
const RECORDS: usize = 2048;

/// Kinds of records: a sent transaction, a duplicate of an accepted one, a rejection, or a request
/// that its key's policy does not allow.
const SENT: f64 = 1.0;
const DUPLICATE: f64 = 2.0;
const REJECTED: f64 = 3.0;
const VIOLATED: f64 = 4.0;
/// A rejection is recorded while at most one in this number of slots is in use.
const REJECTED_PART: usize = 2;

/// Numbers of a record: first come kind, size, account size, the three times, body size and
/// retries.
const SENT_NS: usize = 5;
const OFFSET: usize = 8;
const NUMBER: usize = 9;
const TARGETS: usize = 10;
const STATUS: usize = 11;
const REASON: usize = 12;
const CORKED: usize = 13;
const VALIDATION: usize = 14;
/// The number of the key's plan; of the submission where `OWN` is the account's size.
const PLAN: usize = VALIDATION + VALIDATION_NUMBERS;
/// One of those below, as an integer. The reader reads the lower 32 bits.
const STATE: usize = PLAN + 1;
const PEERS: usize = STATE + 1;
/// The account's size of a submission of the main thread, which knows its account.
const OWN: f64 = -1.0;
const HEAD_NUMBERS: usize = PEERS + DELIVERIES_MAX;
const HEAD_BYTES: usize = 8 * HEAD_NUMBERS;
const ACCOUNT_AT: usize = HEAD_BYTES + KEY_ID_BYTES;
const BYTES_AT: usize = ACCOUNT_AT + ACCOUNT_BYTES_MAX;
const SLOT_BYTES: usize = BYTES_AT + TRANSACTION_BYTES_MAX;

/// 0 is CLAIMED: free, or being written.
const DONE: u64 = 1;
/// It was not sent after all.
const VOID: u64 = 2;
/// The transaction is being sent. The upper 32 bits are the record's cursor: once the reader gave
/// up waiting, the slot may have another record, which is not this thread's to complete.
const PENDING: u64 = 3;

/// Each cursor of the ring has its own cache line.
const LINE_BYTES: usize = 64;
const SLOTS_AT: usize = 2 * LINE_BYTES;

/// Bytes of the ring.
pub const RECORDS_BYTES: usize = ring_bytes(RECORDS);

const fn ring_bytes(slots: usize) -> usize {
    SLOTS_AT + slots * SLOT_BYTES
}

/// Who submitted a transaction.
#[derive(Clone, Copy)]
pub enum Submitter<'a> {
    /// A client of this thread, by the key that admitted it.
    Key(&'a Key),
    /// A client of the main thread.
    MainThread {
        /// The number of its submission there.
        number: u32,
        /// As `Key::account_number`.
        account: u64,
    },
}

impl Submitter<'_> {
    /// The account's number, by which a transaction is ranked: `Offer`.
    #[must_use]
    pub fn account_number(&self) -> u64 {
        match self {
            Self::Key(key) => key.account_number(),
            Self::MainThread { account, .. } => *account,
        }
    }
}

/// The common fields of a record.
#[derive(Clone, Copy)]
pub struct SubmissionRecord<'a> {
    /// The transaction.
    pub bytes: &'a [u8],
    /// Who submitted it.
    pub submitter: Submitter<'a>,
    /// When the request's body was complete.
    pub received_ns: u64,
    /// When it was validated.
    pub decoded_ns: u64,
    /// When the engine accepted it.
    pub sent_ns: u64,
    /// Bytes of the request's body.
    pub body_bytes: usize,
    /// The client's `maxRetries`.
    pub max_retries: Option<u64>,
}

/// One ingress thread's writing side of the ring.
pub struct Records {
    slots: usize,
    head: AtomicSlice<AtomicU32>,
    tail: AtomicSlice<AtomicU32>,
    numbers: AtomicSlice<AtomicU64>,
    bytes: AtomicSlice<AtomicU8>,
    /// The published record that is not completed.
    pending: Option<Pending>,
}

#[derive(Clone, Copy)]
struct Pending {
    /// Where its numbers start.
    at: usize,
    /// Its state as long as it is this record's.
    state: u64,
}

impl Records {
    /// The ring in `memory`; None if its size differs.
    #[must_use]
    pub fn open(memory: &Memory) -> Option<Self> {
        Self::of(memory, RECORDS)
    }

    /// A ring with this number of slots, a power of two.
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
            pending: None,
        })
    }

    /// Whether a slot is free.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.has_room_for(1)
    }

    /// Whether this number of slots is free.
    #[must_use]
    pub fn has_room_for(&self, count: usize) -> bool {
        self.depth() + count <= self.slots
    }

    /// Records that the main thread has not read.
    #[must_use]
    pub fn depth(&self) -> usize {
        let cursor =
            |cells: &AtomicSlice<AtomicU32>| cells.first().map_or(0, |cell| cell.load(SeqCst));
        cursor(&self.head).wrapping_sub(cursor(&self.tail)) as usize
    }

    /// Publishes a transaction that is about to be sent to these targets, with the numbers of its
    /// validation. `complete` or `void` must follow. False if no slot is free, or if the
    /// transaction is too large: then nothing was written.
    pub fn submitted(
        &mut self,
        record: &SubmissionRecord,
        validation: [f64; VALIDATION_NUMBERS],
        sent: &FanOutResult,
    ) -> bool {
        let Some((cursor, slot)) = self.start(SENT, record) else { return false };
        let count = sent.count.min(DELIVERIES_MAX);
        put(slot, NUMBER, [f64::from(sent.number)]);
        put(slot, TARGETS, [count as f64]);
        put(slot, STATUS, [f64::from(sent.status)]);
        put(slot, CORKED, [0.0]);
        put(slot, VALIDATION, validation);
        put(slot, PEERS, sent.peers.into_iter().take(count).map(f64::from));
        let state = PENDING | u64::from(cursor) << 32;
        set_state(slot, state);
        self.pending = Some(Pending { at: self.index_of(cursor) * SLOT_BYTES / 8, state });
        true
    }

    /// Completes the published transaction: `sent` is what became of it, at `sent_ns`.
    pub fn complete(&mut self, sent_ns: u64, sent: &FanOutResult) {
        let Some((slot, state)) = self.take_pending() else { return };
        if slot[STATE].load(SeqCst) == state {
            put(slot, SENT_NS, [sent_ns as f64]);
            put(slot, STATUS, [f64::from(sent.status)]);
            put(slot, CORKED, [f64::from(u8::from(sent.corked))]);
        }
        settle(slot, state, DONE);
    }

    /// Nothing of the published transaction was sent. Returns whether there is one.
    pub fn void(&mut self) -> bool {
        let Some((slot, state)) = self.take_pending() else { return false };
        settle(slot, state, VOID);
        true
    }

    fn take_pending(&mut self) -> Option<(&[AtomicU64; HEAD_NUMBERS], u64)> {
        let Pending { at, state } = self.pending.take()?;
        Some((self.numbers.get(at..)?.first_chunk()?, state))
    }

    /// Records a duplicate whose first signature starts at `offset`. False as with `sent`.
    pub fn duplicate(&mut self, record: &SubmissionRecord, offset: usize) -> bool {
        let Some((_, slot)) = self.start(DUPLICATE, record) else { return false };
        put(slot, OFFSET, [offset as f64]);
        set_state(slot, DONE);
        true
    }

    /// Records a rejection: `bytes` is its message, `sent_ns` 0 where it is no result of a
    /// submission. `validation` is the decoder's result, None for a rejection without one. False if
    /// too many records are unread: then nothing was written.
    pub fn rejected(
        &mut self,
        record: &SubmissionRecord,
        reason: Reason,
        validation: Option<[f64; VALIDATION_NUMBERS]>,
    ) -> bool {
        let Some((_, slot)) = self.start_rejection(REJECTED, record) else { return false };
        put(slot, REASON, [reason as usize as f64]);
        put(slot, VALIDATION, validation.unwrap_or(NO_VALIDATION));
        set_state(slot, DONE);
        true
    }

    /// Records a request that its key's policy does not allow: `bytes` is the message for its
    /// account. False as with `rejected`.
    pub fn violated(&mut self, record: &SubmissionRecord) -> bool {
        let Some((_, slot)) = self.start_rejection(VIOLATED, record) else { return false };
        set_state(slot, DONE);
        true
    }

    fn start_rejection(
        &self,
        kind: f64,
        record: &SubmissionRecord,
    ) -> Option<(u32, &[AtomicU64; HEAD_NUMBERS])> {
        if self.depth() >= self.slots / REJECTED_PART {
            return None;
        }
        let size = record.bytes.len().min(TRANSACTION_BYTES_MAX);
        let bytes = record.bytes.get(..size).unwrap_or_default();
        self.start(kind, &SubmissionRecord { bytes, ..*record })
    }

    /// Claims a slot and writes the common fields; returns the record's cursor, and the slot's
    /// numbers, whose state the caller sets.
    fn start(
        &self,
        kind: f64,
        record: &SubmissionRecord,
    ) -> Option<(u32, &[AtomicU64; HEAD_NUMBERS])> {
        let (account_size, plan) = match record.submitter {
            Submitter::Key(key) => (key.account().len() as f64, key.plan_number()),
            Submitter::MainThread { number, .. } => (OWN, number),
        };
        if account_size > ACCOUNT_BYTES_MAX as f64 || record.bytes.len() > TRANSACTION_BYTES_MAX {
            return None;
        }
        let cursor = self.claim()?;
        let at = self.index_of(cursor) * SLOT_BYTES;
        let slot = self.numbers.get(at / 8..)?.first_chunk()?;
        if let Submitter::Key(key) = record.submitter {
            self.bytes.write(at + HEAD_BYTES, key.id());
            self.bytes.write(at + ACCOUNT_AT, key.account().as_bytes());
        }
        self.bytes.write(at + BYTES_AT, record.bytes);
        let head = [
            kind,
            record.bytes.len() as f64,
            account_size,
            record.received_ns as f64,
            record.decoded_ns as f64,
            record.sent_ns as f64,
            record.body_bytes as f64,
            record.max_retries.map_or(-1.0, |retries| retries as f64),
        ];
        put(slot, 0, head);
        put(slot, PLAN, [f64::from(plan)]);
        Some((cursor, slot))
    }

    fn index_of(&self, cursor: u32) -> usize {
        cursor as usize & (self.slots - 1)
    }

    /// The cursor of a slot that no other writer gets; None if none is free.
    fn claim(&self) -> Option<u32> {
        let head = self.head.first()?;
        loop {
            let cursor = head.load(SeqCst);
            if !self.has_room() {
                return None;
            }
            let claimed = head.compare_exchange(cursor, cursor.wrapping_add(1), SeqCst, SeqCst);
            if claimed.is_ok() {
                return Some(cursor);
            }
        }
    }
}

/// A rejected transaction without an error of the decoder.
const NO_VALIDATION: [f64; VALIDATION_NUMBERS] = {
    let mut numbers = [0.0; VALIDATION_NUMBERS];
    numbers[1] = -1.0;
    numbers
};

/// Publishes what was written to the slot before.
fn set_state(slot: &[AtomicU64; HEAD_NUMBERS], state: u64) {
    slot[STATE].store(state, SeqCst);
}

/// Ends the sending of the transaction, unless the reader gave up waiting for that.
fn settle(slot: &[AtomicU64; HEAD_NUMBERS], pending: u64, state: u64) {
    let _ = slot[STATE].compare_exchange(pending, state, SeqCst, SeqCst);
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
