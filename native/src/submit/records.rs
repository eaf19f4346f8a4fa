//! Hot path: the records of submissions, which each thread that accepts some writes to the events
//! of the engine (`quic/event_ring.rs`) for the accounting of the main thread. The layout is that
//! of `src/engine/submission-record.ts`.
//!
//! ```text
//!  ┌ numbers ─────────────────────────────────────────────┬ key id, account ─┬ transaction ─┐
//!  │ kind, size, account size, times, body, ..., peers    │ 16 + 192 bytes   │ to its end   │
//!  └──────────────────────────────────────────────────────┴──────────────────┴──────────────┘
//! ```
//!
//! No thread waits for room for long: it checks `has_room` before it sends, and refuses the
//! transaction if there is none for some ms. It publishes the record of a transaction before its
//! first byte leaves, so the main thread reads it before any event of the transaction and before
//! every duplicate of it. It completes the record once the engine has the transaction (`complete`),
//! or has not (`void`); meanwhile the reader waits.
//!
//! A rejection is recorded with its message in place of the transaction, while fewer than half of
//! the units for submissions are in use, so that rejections leave room for what is sent. Fields that
//! a kind of record does not use keep old values; the reader knows by the kind which to read.
//!
//! A record names its key and account itself: the key may be removed before the record is read. One
//! of the main thread's own submissions has the number of the submission there instead.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::decode::decoder::VALIDATION_NUMBERS;
use crate::decode::limits::TRANSACTION_BYTES_MAX;
use crate::http::rejection_table::Reason;
use crate::quic::event_ring::EventRing;
use crate::quic::limits::{DELIVERIES_MAX, SUBMISSION_UNITS_EACH, SUBMISSION_UNITS_MAX};
use crate::submit::fan_out::FanOutResult;
use crate::submit::key_table::{ACCOUNT_BYTES_MAX, KEY_ID_BYTES, Key};
use crate::sync::entry_ring::{Entry, PendingEntry, UNIT_WORDS};

/// Kinds of records: a sent transaction, a duplicate of an accepted one, a rejection, or a request
/// that its key's policy does not allow. The others are `Kind` of `quic/event.rs`.
const SENT: f64 = 1.0;
const DUPLICATE: f64 = 2.0;
const REJECTED: f64 = 3.0;
const VIOLATED: f64 = 4.0;
/// Rejections use at most one in this number of the units.
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
/// How many units the record has.
const UNITS: usize = PLAN + 1;
const PEERS: usize = UNITS + 1;
/// The account's size of a submission of the main thread, which knows its account.
const OWN: f64 = -1.0;
/// Where the key's id, the account and the transaction start, in words.
const KEY_ID_AT: usize = PEERS + DELIVERIES_MAX;
const ACCOUNT_AT: usize = KEY_ID_AT + KEY_ID_BYTES / WORD_BYTES;
const BYTES_AT: usize = ACCOUNT_AT + ACCOUNT_BYTES_MAX / WORD_BYTES;
const WORD_BYTES: usize = 8;
const _: () = assert!(units_of(TRANSACTION_BYTES_MAX) == SUBMISSION_UNITS_EACH);

const fn units_of(bytes: usize) -> usize {
    (BYTES_AT * WORD_BYTES + bytes).div_ceil(UNIT_WORDS * WORD_BYTES)
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

/// One thread's writing side.
pub struct Records {
    events: Arc<EventRing>,
    /// The published record that is not completed.
    pending: Option<PendingEntry>,
}

impl Records {
    /// Records among these events.
    #[must_use]
    pub fn new(events: Arc<EventRing>) -> Self {
        Self { events, pending: None }
    }

    /// Whether there is room for a record.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.unread() + SUBMISSION_UNITS_EACH <= SUBMISSION_UNITS_MAX
    }

    /// Units of records and events that the main thread has not read.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.events.unread()
    }

    /// Publishes a transaction that is about to be sent to these targets, with the numbers of its
    /// validation. `complete` or `void` must follow. False if there is no room, or if the
    /// transaction is too large: then nothing was written.
    pub fn submitted(
        &mut self,
        record: &SubmissionRecord,
        validation: [f64; VALIDATION_NUMBERS],
        sent: &FanOutResult,
    ) -> bool {
        let Some(entry) = start(&self.events, SENT, record, SUBMISSION_UNITS_MAX) else {
            return false;
        };
        let count = sent.count.min(DELIVERIES_MAX);
        put(entry.words, NUMBER, [f64::from(sent.number)]);
        put(entry.words, TARGETS, [count as f64]);
        put(entry.words, STATUS, [f64::from(sent.status)]);
        put(entry.words, CORKED, [0.0]);
        put(entry.words, VALIDATION, validation);
        put(entry.words, PEERS, sent.peers.into_iter().take(count).map(f64::from));
        self.pending = Some(entry.publish());
        true
    }

    /// Completes the published transaction: `sent` is what became of it, at `sent_ns`.
    pub fn complete(&mut self, sent_ns: u64, sent: &FanOutResult) {
        let Some(pending) = self.pending.take() else { return };
        self.events.entries.complete(pending, |words| {
            put(words, SENT_NS, [sent_ns as f64]);
            put(words, STATUS, [f64::from(sent.status)]);
            put(words, CORKED, [f64::from(u8::from(sent.corked))]);
        });
    }

    /// Nothing of the published transaction was sent. Returns whether there is one.
    pub fn void(&mut self) -> bool {
        let Some(pending) = self.pending.take() else { return false };
        self.events.entries.void(pending);
        true
    }

    /// Records a duplicate whose first signature starts at `offset`. False as with `submitted`.
    pub fn duplicate(&self, record: &SubmissionRecord, offset: usize) -> bool {
        let entry = start(&self.events, DUPLICATE, record, SUBMISSION_UNITS_MAX);
        let Some(entry) = entry else { return false };
        put(entry.words, OFFSET, [offset as f64]);
        entry.complete();
        true
    }

    /// Records a rejection: `bytes` is its message, `sent_ns` 0 where it is no result of a
    /// submission. `validation` is the decoder's result, None for a rejection without one. False if
    /// too many records are unread: then nothing was written.
    pub fn rejected(
        &self,
        record: &SubmissionRecord,
        reason: Reason,
        validation: Option<[f64; VALIDATION_NUMBERS]>,
    ) -> bool {
        let Some(entry) = self.start_rejection(REJECTED, record) else { return false };
        put(entry.words, REASON, [reason as usize as f64]);
        put(entry.words, VALIDATION, validation.unwrap_or(NO_VALIDATION));
        entry.complete();
        true
    }

    /// Records a request that its key's policy does not allow: `bytes` is the message for its
    /// account. False as with `rejected`.
    pub fn violated(&self, record: &SubmissionRecord) -> bool {
        let Some(entry) = self.start_rejection(VIOLATED, record) else { return false };
        entry.complete();
        true
    }

    fn start_rejection(&self, kind: f64, record: &SubmissionRecord) -> Option<Entry<'_>> {
        let size = record.bytes.len().min(TRANSACTION_BYTES_MAX);
        let bytes = record.bytes.get(..size).unwrap_or_default();
        let units_max = SUBMISSION_UNITS_MAX / REJECTED_PART;
        start(&self.events, kind, &SubmissionRecord { bytes, ..*record }, units_max)
    }
}

/// Claims an entry for a record, where at most `units_max` units are in use with it, and writes the
/// common fields.
fn start<'a>(
    events: &'a EventRing,
    kind: f64,
    record: &SubmissionRecord,
    units_max: usize,
) -> Option<Entry<'a>> {
    let (account_size, plan) = match record.submitter {
        Submitter::Key(key) => (key.account().len() as f64, key.plan_number()),
        Submitter::MainThread { number, .. } => (OWN, number),
    };
    if account_size > ACCOUNT_BYTES_MAX as f64 || record.bytes.len() > TRANSACTION_BYTES_MAX {
        return None;
    }
    let units = units_of(record.bytes.len());
    let entry = events.entries.claim(units, units_max)?;
    if let Submitter::Key(key) = record.submitter {
        put_bytes(entry.words, KEY_ID_AT, key.id());
        put_bytes(entry.words, ACCOUNT_AT, key.account().as_bytes());
    }
    put_bytes(entry.words, BYTES_AT, record.bytes);
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
    put(entry.words, 0, head);
    put(entry.words, PLAN, [f64::from(plan), units as f64]);
    Some(entry)
}

/// A rejected transaction without an error of the decoder.
const NO_VALIDATION: [f64; VALIDATION_NUMBERS] = {
    let mut numbers = [0.0; VALIDATION_NUMBERS];
    numbers[1] = -1.0;
    numbers
};

/// Writes numbers from field `at` on.
fn put(words: &[AtomicU64], at: usize, numbers: impl IntoIterator<Item = f64>) {
    for (word, number) in words.iter().skip(at).zip(numbers) {
        word.store(number.to_bits(), Relaxed);
    }
}

/// Writes bytes from word `at` on.
fn put_bytes(words: &[AtomicU64], at: usize, bytes: &[u8]) {
    let (whole, rest) = bytes.as_chunks();
    let mut last = [0; WORD_BYTES];
    for (to, byte) in last.iter_mut().zip(rest) {
        *to = *byte;
    }
    let words = words.get(at..).unwrap_or_default();
    for (word, bytes) in words.iter().zip(whole) {
        word.store(u64::from_le_bytes(*bytes), Relaxed);
    }
    if let Some(word) = words.get(whole.len()) {
        word.store(u64::from_le_bytes(last), Relaxed);
    }
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
