//! Events of the engine on their way to JavaScript.
//!
//! Two bounded rings of fixed-size records: one for deliveries, one for connections. Any thread
//! writes, one reads. A full ring of outcomes drops the oldest and counts it. The reader is woken
//! once per batch: immediately for records it acts on, a little later for informational ones. The
//! waking thread sets the flag and calls the waker, and the flag is cleared *before* draining, so a
//! wake-up may be spurious but is never lost.
//!
//! The reader also takes what ingress threads sent (`submit/record_ring.rs`), after it has taken
//! the events, so it is woken for both alike.
//!
//! Decision: docs/decisions/0015-informational-events-wait.md

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::quic::limits::{OUTCOMES_DELAY_NS_MAX, OUTCOMES_PER_WAKE, PEER_EVENTS_MAX};
use crate::sync::clock::NEVER_NS;
use crate::sync::mutex_queue::MutexQueue;

/// Fields of one record.
pub const RECORD_FIELDS: usize = 8;

/// The type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A delivery is on the wire; `detail` is 1 if it had to wait for more than its turn.
    Sent = 1,
    /// The leader's QUIC stack has received the complete delivery; `detail` is the time since
    /// `Sent` in ns.
    Acked = 2,
    /// A delivery was sent, but the connection ended or the leader stopped the stream first.
    Failed = 3,
    /// A delivery never went on the wire.
    Dropped = 4,
    /// The handshake with a leader is complete; `detail` is its limit of bytes per stream, `reason`
    /// 1 if it requested address validation (Retry).
    Connected = 5,
    /// The leader granted the first streams; `detail` is how many, up to `STREAMS_AHEAD_MAX`.
    Admitted = 6,
    /// The connection is closed; `reason` is a `CloseCause`, `detail` its code.
    Closed = 7,
}

/// Why a delivery failed or was dropped: one more than its index in the table `DELIVERY_REASONS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// No error.
    None = 0,
    /// The leader's queue was full.
    QueueFull = 1,
    /// The delivery waited until it expired.
    Expired = 2,
    /// It expired while the leader's stream credit, its flow control or the congestion window held
    /// it back.
    LeaderSaturated = 3,
    /// No connection to the leader was ready.
    NotConnected = 4,
    /// The connection ended before the leader acknowledged the delivery.
    ConnectionLost = 5,
    /// The leader's stack stopped the stream.
    StreamStopped = 6,
    /// The maximum number of deliveries already awaits acknowledgement.
    TooManyInFlight = 7,
    /// The engine is stopping.
    ShuttingDown = 8,
    /// Larger than the leader's limit for one stream.
    StreamTooLarge = 9,
}

/// Which side ended a connection, and how to read `detail`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CloseCause {
    /// This side closed it.
    Local = 1,
    /// The leader's application closed it; `detail` is its code.
    Application = 2,
    /// The leader's transport closed it; `detail` is its code.
    Transport = 3,
    /// The leader violated the protocol; `detail` is the transport code sent to it.
    Protocol = 4,
    /// Nothing was received for the idle timeout.
    TimedOut = 5,
    /// The leader no longer knows the connection.
    Reset = 6,
    /// The leader supports no common version of QUIC.
    Version = 7,
    /// The handshake, or the first stream credit after it, took too long.
    AdmissionTimeout = 8,
    /// The connection could not be started, or a panic ended it.
    Internal = 9,
}

/// One record, drained as numbers in the order of its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// The type.
    pub kind: Kind,
    /// The transaction's number as given to `send`; 0 for connection events.
    pub tx: u64,
    /// The connection's handle.
    pub peer: u32,
    /// The delivery's tag as given to `send`.
    pub tag: u32,
    /// A `Reason`; for `Closed` a `CloseCause`, for `Connected` 1 after a Retry.
    pub reason: u8,
    /// When it happened, CLOCK_MONOTONIC ns.
    pub at_ns: u64,
    /// The connection's smoothed round trip in microseconds; 0 if unknown.
    pub rtt_us: u32,
    /// Depends on the kind.
    pub detail: u64,
}

impl Record {
    /// The record's layout in JavaScript's buffer; exact up to 2^53.
    #[must_use]
    pub fn fields(&self) -> [f64; RECORD_FIELDS] {
        [
            f64::from(self.kind as u8),
            self.tx as f64,
            f64::from(self.peer),
            f64::from(self.tag),
            f64::from(self.reason),
            self.at_ns as f64,
            f64::from(self.rtt_us),
            self.detail as f64,
        ]
    }
}

thread_local! {
    static ON_IO_THREAD: Cell<bool> = const { Cell::new(false) };
}

/// Called once by the I/O thread.
pub(crate) fn mark_io_thread() {
    ON_IO_THREAD.set(true);
}

/// Called from any thread when there is something to drain.
pub type Waker = Box<dyn Fn() + Send + Sync>;

/// The rings and the flag.
pub struct EventRing {
    deliveries: MutexQueue<Record>,
    /// Maximum outcomes; the other ring holds `PEER_EVENTS_MAX`.
    deliveries_max: usize,
    peers: MutexQueue<Record>,
    woken: AtomicBool,
    /// Whether an ingress thread has written a record since the last drain.
    noted: AtomicBool,
    /// Whether a record that the reader acts on is waiting.
    urgent: AtomicBool,
    /// When the first record since the last drain arrived; 0: none.
    since_ns: AtomicU64,
    lost: AtomicU64,
    waker: Waker,
}

impl EventRing {
    /// Calls `waker` when outcomes are ready; holds up to `capacity` of them.
    #[must_use]
    pub fn new(capacity: usize, waker: Waker) -> Self {
        Self {
            deliveries: MutexQueue::default(),
            deliveries_max: capacity.max(1),
            peers: MutexQueue::default(),
            woken: AtomicBool::new(false),
            noted: AtomicBool::new(false),
            urgent: AtomicBool::new(false),
            since_ns: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            waker,
        }
    }

    /// Appends a record; the oldest of its ring is dropped when it is full.
    pub fn push(&self, record: Record) {
        let (ring, most) = match record.kind {
            Kind::Sent | Kind::Acked | Kind::Failed | Kind::Dropped => {
                (&self.deliveries, self.deliveries_max)
            }
            Kind::Connected | Kind::Admitted | Kind::Closed => (&self.peers, PEER_EVENTS_MAX),
        };
        if ring.push_evicting(record, most).is_some() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        let is_deferred = match record.kind {
            Kind::Acked => true,
            // The I/O thread sends deliveries that had to wait, and others may wait behind one.
            Kind::Sent => record.detail == 0 || !ON_IO_THREAD.get(),
            _ => false,
        };
        self.wait(record.at_ns, !is_deferred);
    }

    /// An ingress thread wrote a record, which the reader acts on if it is urgent.
    pub fn note(&self, at_ns: u64, is_urgent: bool) {
        self.noted.store(true, Ordering::SeqCst);
        self.wait(at_ns, is_urgent);
    }

    fn wait(&self, at_ns: u64, is_urgent: bool) {
        if is_urgent {
            self.urgent.store(true, Ordering::SeqCst);
        } else if self.since_ns.load(Ordering::SeqCst) == 0 {
            self.since_ns.store(at_ns, Ordering::Relaxed);
        }
    }

    /// Wakes the reader when a record that it acts on waits, when many wait, or when one has waited
    /// for long. Sends that did not wait, and acknowledgements, only update receipts, and a wake-up
    /// costs the reader's thread a good part of a transaction's time.
    pub fn wake_due(&self, now_ns: u64) {
        let full = self.deliveries.len() >= OUTCOMES_PER_WAKE;
        let due = now_ns >= self.due_ns();
        if due {
            // A drain in progress may have read the record while it was being appended, and then
            // nothing would ever clear this time. The next record sets it anew.
            self.since_ns.store(0, Ordering::SeqCst);
        }
        if full || due || self.urgent.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Called when a thread has done a connection's work. The I/O thread reports at the end of its
    /// turn; another thread wakes the reader now for records that it acts on, because the I/O
    /// thread may sleep for long.
    pub fn wake_here(&self) {
        if self.urgent.load(Ordering::SeqCst) && !ON_IO_THREAD.get() {
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
        if self.is_empty() || self.woken.swap(true, Ordering::SeqCst) {
            return;
        }
        (self.waker)();
    }

    /// Moves records out, connection events first, and returns their count.
    pub fn drain(&self, out: &mut [f64]) -> usize {
        self.woken.store(false, Ordering::SeqCst);
        self.noted.store(false, Ordering::SeqCst);
        self.urgent.store(false, Ordering::SeqCst);
        self.since_ns.store(0, Ordering::Relaxed);
        let mut count = 0;
        for slot in out.chunks_exact_mut(RECORD_FIELDS) {
            let Some(record) = self.peers.pop().or_else(|| self.deliveries.pop()) else {
                break;
            };
            slot.copy_from_slice(&record.fields());
            count += 1;
        }
        count
    }

    /// Whether nothing waits for the reader.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deliveries.is_empty() && self.peers.is_empty() && !self.noted.load(Ordering::SeqCst)
    }

    /// Records dropped for newer ones.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[path = "event_ring_tests.rs"]
mod tests;
