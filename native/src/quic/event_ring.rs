//! What happened, on its way to JavaScript.
//!
//! Two bounded rings of fixed-size records: one for copies of transactions, one for connections.
//! Any thread writes, one reads. A full ring of outcomes loses the oldest and counts the loss.
//! The reader is woken once a batch, at once for what it acts on and a little later for what it
//! only notes: who wakes it flips the flag and calls the waker, and the flag is cleared *before*
//! draining, so that a wake may be spurious, never lost.
//!
//! Decision: docs/decisions/0015-informational-events-wait.md

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::limits::{OUTCOMES_DELAY_NS_MAX, OUTCOMES_PER_WAKE, PEER_EVENTS_MAX};
use crate::sync::clock::NEVER_NS;
use crate::sync::mutex_queue::MutexQueue;

/// Numbers in one record.
pub const RECORD_FIELDS: usize = 8;

/// What a record tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A copy is on the wire; `detail` is 1 where it had to wait for more than its turn.
    Sent = 1,
    /// The leader's QUIC stack has all of a copy; `detail` is the time since `Sent` in ns.
    Acked = 2,
    /// A copy was sent, but the connection ended or the stream was refused first.
    Failed = 3,
    /// A copy never went on the wire.
    Dropped = 4,
    /// The handshake with a leader is complete; `detail` is how many bytes it takes on a stream,
    /// `reason` 1 where it wanted a token first (Retry).
    Connected = 5,
    /// The leader granted the first streams; `detail` is how many, up to `STREAMS_AHEAD_MAX`.
    Admitted = 6,
    /// The connection is over; `reason` is an `CloseCause`, `detail` its code.
    Closed = 7,
}

/// Why a copy failed or was dropped: one more than its index in the table `DELIVERY_REASONS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// Nothing is wrong.
    None = 0,
    /// The leader's queue was full.
    QueueFull = 1,
    /// The copy waited longer than it could be of use.
    Expired = 2,
    /// The leader granted no stream in time.
    LeaderSaturated = 3,
    /// No connection to the leader was ready.
    NotConnected = 4,
    /// The connection ended before the leader acknowledged the copy.
    ConnectionLost = 5,
    /// The leader's stack refused the stream.
    StreamStopped = 6,
    /// More copies await acknowledgement than are tracked.
    TooManyInFlight = 7,
    /// The engine is stopping.
    ShuttingDown = 8,
    /// Larger than the leader takes on one stream.
    StreamTooLarge = 9,
}

/// Who ended a connection, and how `detail` is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CloseCause {
    /// This side closed it.
    Local = 1,
    /// The leader's application closed it; `detail` is its code.
    Application = 2,
    /// The leader's transport closed it; `detail` is its code.
    Transport = 3,
    /// The leader broke the protocol; `detail` is the transport code told to it.
    Protocol = 4,
    /// Nothing was heard for the idle timeout.
    TimedOut = 5,
    /// The leader no longer knows the connection.
    Reset = 6,
    /// The leader speaks no common version of QUIC.
    Version = 7,
    /// The handshake, or the first stream's grant after it, took too long.
    HandshakeTimeout = 8,
    /// The connection could not be started, or a bug ended it.
    Internal = 9,
}

/// One record; as numbers in the order of its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// What it tells.
    pub kind: Kind,
    /// The transaction's number as given to `send`; 0 for events of connections.
    pub tx: u64,
    /// The connection's handle.
    pub peer: u32,
    /// The copy's tag as given to `send`.
    pub tag: u32,
    /// A `Reason`, or an `CloseCause` for `Closed`.
    pub reason: u8,
    /// When it happened, CLOCK_MONOTONIC ns.
    pub at_ns: u64,
    /// The connection's smoothed round trip in microseconds; 0 when not known.
    pub rtt_us: u32,
    /// See the kinds.
    pub detail: u64,
}

impl Record {
    /// The record as it lies in JavaScript's buffer; exact up to 2^53.
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

/// Said once by the I/O thread.
pub(crate) fn mark_io_thread() {
    ON_IO_THREAD.set(true);
}

/// Called when there is something to drain; from any thread.
pub type Waker = Box<dyn Fn() + Send + Sync>;

/// The rings and the flag.
pub struct EventRing {
    deliveries: MutexQueue<Record>,
    /// Most of them; PEER_EVENTS_MAX of the others.
    deliveries_max: usize,
    peers: MutexQueue<Record>,
    woken: AtomicBool,
    /// Whether something waits that is acted on.
    urgent: AtomicBool,
    /// When the first record came since the last drain; 0: none did.
    since_ns: AtomicU64,
    lost: AtomicU64,
    waker: Waker,
}

impl EventRing {
    /// Rings for `capacity` outcomes.
    #[must_use]
    pub fn new(capacity: usize, waker: Waker) -> Self {
        Self {
            deliveries: MutexQueue::default(),
            deliveries_max: capacity.max(1),
            peers: MutexQueue::default(),
            woken: AtomicBool::new(false),
            urgent: AtomicBool::new(false),
            since_ns: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            waker,
        }
    }

    /// Appends a record; the oldest of its ring gives way when there is no room.
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
            // Where one had to wait, which the I/O thread sees to, others may wait behind it.
            Kind::Sent => record.detail == 0 || !ON_IO_THREAD.get(),
            _ => false,
        };
        if !is_deferred {
            self.urgent.store(true, Ordering::SeqCst);
        } else if self.since_ns.load(Ordering::SeqCst) == 0 {
            self.since_ns.store(record.at_ns, Ordering::Relaxed);
        }
    }

    /// Wakes the reader when something waits that is acted on, when much waits, or when it waits
    /// for long. What was sent at once or acknowledged is news for receipts alone, and a wake costs
    /// the reader's thread as much as a good part of a transaction.
    pub fn wake_due(&self, now_ns: u64) {
        let full = self.deliveries.len() >= OUTCOMES_PER_WAKE;
        let due = now_ns >= self.due_ns();
        if due {
            // What it stands for may have been taken by a drain that was under way as it came, and
            // then nobody would ever clear it. What comes from now on sets it anew.
            self.since_ns.store(0, Ordering::SeqCst);
        }
        if full || due || self.urgent.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// A thread has done a connection's work. The I/O thread tells at the end of its turn what it
    /// wrote; another one tells now what is acted on, because the I/O thread may sleep for long.
    pub fn wake_here(&self) {
        if self.urgent.load(Ordering::SeqCst) && !ON_IO_THREAD.get() {
            self.wake();
        }
    }

    /// When `wake_due` will have to wake the reader for what waits now.
    #[must_use]
    pub fn due_ns(&self) -> u64 {
        match self.since_ns.load(Ordering::Relaxed) {
            0 => NEVER_NS,
            _ if self.woken.load(Ordering::SeqCst) => NEVER_NS,
            since_ns => since_ns.saturating_add(OUTCOMES_DELAY_NS_MAX),
        }
    }

    /// Wakes the reader when there is something to read and it does not know yet.
    pub fn wake(&self) {
        if self.is_empty() || self.woken.swap(true, Ordering::SeqCst) {
            return;
        }
        (self.waker)();
    }

    /// Moves records out, events of connections first, and returns how many.
    pub fn drain(&self, out: &mut [f64]) -> usize {
        self.woken.store(false, Ordering::SeqCst);
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

    /// Whether both rings are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deliveries.is_empty() && self.peers.is_empty()
    }

    /// Records that gave way to newer ones.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
#[path = "event_ring_tests.rs"]
mod tests;
