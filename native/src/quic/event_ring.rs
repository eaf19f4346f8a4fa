//! All that the engine's threads tell the main thread, in one order: what they accepted and refused
//! (`submit/records.rs`), what became of the deliveries, and the connections' events.
//!
//! Any thread writes, one reads. A transaction is claimed before its first byte leaves, so it comes
//! before its outcomes. No writer waits for room: a submission is refused while many units are in
//! use (`SUBMISSION_UNITS_MAX`), which leaves the rest to outcomes. An outcome for which there is no
//! room either is lost, and counted; the last units are those of the connections' events.
//!
//! The reader is woken once per batch: immediately for records it acts on, a little later for
//! informational ones. The waking thread sets the flag and calls the waker, and the flag is cleared
//! *before* draining, so a wake-up may be spurious but is never lost.
//!
//! Decision: docs/decisions/0015-informational-events-wait.md

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::quic::event::{Kind, Record};
use crate::quic::limits::{
    EVENT_UNITS, OUTCOMES_DELAY_NS_MAX, PEER_EVENTS_MAX, SUBMISSION_UNITS_EACH, UNITS_PER_WAKE,
};
use crate::sync::clock::NEVER_NS;
use crate::sync::entry_ring::EntryRing;

thread_local! {
    static ON_IO_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Called once by the I/O thread.
pub(crate) fn mark_io_thread() {
    ON_IO_THREAD.set(true);
}

/// Set beside the 32 bits of an end, which may be 0.
const URGENT: u64 = 1 << 32;

/// Called from any thread when there is something to drain.
pub type Waker = Box<dyn Fn() + Send + Sync>;

/// Units in use above which no outcome is written.
const OUTCOMES_UNITS: usize = EVENT_UNITS - PEER_EVENTS_MAX;

/// The ring and the flags.
pub struct EventRing {
    pub(crate) entries: EntryRing,
    woken: AtomicBool,
    /// The end of the last record that the reader acts on, with `URGENT`; 0: all of them were read.
    urgent: AtomicU64,
    /// When the first record since the last drain arrived; 0: none.
    since_ns: AtomicU64,
    lost: AtomicU64,
    waker: Waker,
}

impl EventRing {
    /// Calls `waker` when there is something to drain.
    #[must_use]
    pub fn new(waker: Waker) -> Self {
        Self {
            entries: EntryRing::new(EVENT_UNITS, SUBMISSION_UNITS_EACH),
            woken: AtomicBool::new(false),
            urgent: AtomicU64::new(0),
            since_ns: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            waker,
        }
    }

    /// Appends a record; without room it is lost.
    pub fn push(&self, record: Record) {
        let units_max = match record.kind {
            Kind::Sent | Kind::Acked | Kind::Failed | Kind::Dropped => OUTCOMES_UNITS,
            Kind::Connected | Kind::Admitted | Kind::Closed => EVENT_UNITS,
        };
        if let Some(entry) = self.entries.claim(1, units_max) {
            for (word, field) in entry.words.iter().zip(record.fields()) {
                word.store(field.to_bits(), Ordering::Relaxed);
            }
            entry.complete();
        } else {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        let is_deferred = match record.kind {
            Kind::Acked => true,
            // The I/O thread sends deliveries that had to wait, and others may wait behind one.
            Kind::Sent => record.detail == 0 || !ON_IO_THREAD.get(),
            _ => false,
        };
        self.note(record.at_ns, !is_deferred);
    }

    /// A thread has written an entry; `is_urgent`: the reader acts on it, so the next wake is due
    /// now.
    pub fn note(&self, at_ns: u64, is_urgent: bool) {
        if is_urgent {
            self.note_urgent(self.entries.end());
        } else if self.since_ns.load(Ordering::SeqCst) == 0 {
            self.since_ns.store(at_ns, Ordering::Relaxed);
        }
    }

    /// Keeps a later end that another thread has noted.
    fn note_urgent(&self, end: u32) {
        let _ = self.urgent.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |noted| {
            let is_later = end.wrapping_sub(noted as u32).cast_signed() > 0;
            (noted == 0 || is_later).then_some(URGENT | u64::from(end))
        });
    }

    /// Wakes the reader when a record that it acts on waits, when many wait, or when one has waited
    /// for long. Sends that did not wait, and acknowledgements, only update receipts, and a wake-up
    /// costs the reader's thread a good part of a transaction's time.
    pub fn wake_due(&self, now_ns: u64) {
        let full = self.unread() >= UNITS_PER_WAKE;
        let due = now_ns >= self.due_ns();
        if due {
            // A drain in progress may have read the record while it was being appended, and then
            // nothing would ever clear this time. The next record sets it anew.
            self.since_ns.store(0, Ordering::SeqCst);
        }
        if full || due || self.has_urgent() {
            self.wake();
        }
    }

    /// Called when a thread has done a connection's work. The I/O thread reports at the end of its
    /// turn; another thread wakes the reader now for records that it acts on, because the I/O
    /// thread may sleep for long.
    pub fn wake_here(&self) {
        if self.has_urgent() && !ON_IO_THREAD.get() {
            self.wake();
        }
    }

    /// When `wake_due` must wake the reader for the waiting records.
    #[must_use]
    pub fn due_ns(&self) -> u64 {
        match self.since_ns.load(Ordering::Relaxed) {
            0 => NEVER_NS,
            _ if self.woken.load(Ordering::SeqCst) => NEVER_NS,
            since_ns => since_ns.saturating_add(OUTCOMES_DELAY_NS_MAX),
        }
    }

    /// Wakes the reader if there is something to read and it was not woken yet.
    pub fn wake(&self) {
        if self.unread() == 0 || self.woken.swap(true, Ordering::SeqCst) {
            return;
        }
        (self.waker)();
    }

    /// Moves records out, and returns how many units they have, of `RECORD_FIELDS` numbers each.
    /// Wakes the reader again if a record that it acts on is left.
    pub fn drain(&self, out: &mut [f64]) -> usize {
        self.woken.store(false, Ordering::SeqCst);
        let since_ns = self.since_ns.swap(0, Ordering::SeqCst);
        let units = self.entries.read(out);
        if self.unread() > 0 {
            // What is left waits no longer than it would have, unless a later record set its time.
            let _ = self.since_ns.compare_exchange(0, since_ns, Ordering::SeqCst, Ordering::SeqCst);
        }
        let urgent = self.urgent.load(Ordering::SeqCst);
        if urgent != 0 && self.entries.is_read(urgent as u32) {
            // Unless a later one was noted meanwhile.
            let _ = self.urgent.compare_exchange(urgent, 0, Ordering::SeqCst, Ordering::SeqCst);
        } else if urgent != 0 {
            self.wake();
        }
        units
    }

    fn has_urgent(&self) -> bool {
        self.urgent.load(Ordering::SeqCst) != 0
    }

    /// Units that wait for the reader.
    #[must_use]
    pub fn unread(&self) -> usize {
        self.entries.unread()
    }

    /// Records lost for lack of room.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[path = "event_ring_tests.rs"]
mod tests;
