//! Hot path: sends a thread's transactions to the targets that the sender sets. A leader gets no
//! transaction that is larger than it accepts. What a leader cannot take now waits in the engine,
//! highest rank first, as do the sender's deliveries. Deliveries that the engine does not accept,
//! for example to a leader without a connection, are the sender's task, which finds them in the
//! record.
//!
//! Bursts are corked. One datagram and one system call per transaction cost the thread and the
//! leaders time. An ingress thread that falls behind holds further transactions in the engine until
//! the end of its loop turn or for 0.2 ms at most; they leave in as few datagrams and calls as
//! possible. The first transactions of a burst are not held: while the thread keeps up, sending
//! each one separately has the lowest latency.
//!
//! ```text
//!  ─ pause ─┬──────┬──────┬──────┬──────┬────────┬────────┬────────┐
//!           │ sent │ sent │ sent │ sent │ corked │ corked │ corked ├─▶ uncork: 2 datagrams, 1 call
//!           └──────┴──────┴──────┴──────┴────────┴────────┴────────┘
//! ```
//!
//! Decision: docs/decisions/0004-cork-bursts.md

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use crate::quic::engine::Engine;
use crate::quic::landed_shares::Offer;
use crate::quic::peer;
use crate::quic::send_result::SendStatus;
use crate::quic::targets::{TARGETS_MAX, TargetTable};
use crate::sync::clock::monotonic_ns;

/// Transactions without a pause after which the next ones are corked.
pub const BURST_MIN: u32 = 4;
/// A shorter gap since the last transaction is no pause: a response, a request, a decoding and a
/// verification lie between two transactions of one loop turn.
pub const BURST_GAP_NS: u64 = 60_000;
/// Most transactions that are corked.
pub const CORKED_TRANSACTIONS_MAX: u32 = 16;
/// How long the oldest one may be corked before the next transaction or other work.
pub const CORKED_NS_MAX: u64 = 200_000;
/// How often a thread waits for others in one turn of its loop, and for how long: together some
/// 5 ms. A thread that sends needs microseconds; one that reads the events, some milliseconds at
/// most.
const PAUSES_PER_TURN: usize = 25;
const PAUSE: Duration = Duration::from_micros(200);
/// Numbers of transactions of one thread, a range of its own; the first range is the sender's:
/// `DELIVERY_NUMBERS` of `src/send/limits.ts`. A number returns long after its transaction.
const NUMBERS: u32 = 1 << 24;
/// Ranges of ingress threads, more than can exist; all numbers have 31 bits.
const RANGES: u32 = 127;

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FanOutOutcome {
    /// The engine accepted at least one of its deliveries.
    Sent,
    /// Nothing is sent: the queue of every leader is full of deliveries of the same or a higher
    /// rank.
    LeadersFull,
    /// Nothing is sent: no leader is connected that accepts so many bytes.
    NoLeader,
    /// Nothing is sent: it could not be published.
    Unpublished,
}

/// What was sent of one transaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct FanOutResult {
    /// Its number, which identifies each delivery within its connection.
    pub number: u32,
    /// How many connections it was offered to.
    pub count: usize,
    /// The engine's handle of each.
    pub peers: [u32; TARGETS_MAX],
    /// Bit i: target i's delivery is on the wire; bit 16 + i: it is queued or corked.
    pub status: u32,
    /// Whether it was corked.
    pub corked: bool,
}

/// The parameters of `Engine::send`.
#[derive(Clone, Copy, Debug)]
pub struct Transaction<'a> {
    /// A handle and a tag for each leader.
    pub deliveries: &'a [u32],
    /// The transaction.
    pub bytes: &'a [u8],
    /// Its number.
    pub tx: u64,
    /// How long it may wait for each leader.
    pub ttl_ms: u32,
    /// Which of those that wait goes first.
    pub offer: Offer,
}

/// The engine that sends transactions. No call panics.
pub trait EngineHandle {
    /// As `Engine::send`.
    fn send(&self, transaction: &Transaction<'_>) -> SendStatus;
    /// As `Engine::cork`: this thread keeps the deliveries until `uncork`.
    fn cork(&self, transaction: &Transaction<'_>) -> SendStatus;
    /// Sends what this thread has corked.
    fn uncork(&self);
    /// As `Engine::note_record`.
    fn note_record(&self, is_urgent: bool, now_ns: u64);
    /// As `Engine::wake_if_urgent`.
    fn wake_if_urgent(&self);
    /// Now, CLOCK_MONOTONIC ns.
    fn now_ns(&self) -> u64;
}

/// The engine itself. A panic in it loses what it was about to send, as in the N-API exports.
pub struct EngineRef(pub Arc<Engine>);

impl EngineHandle for EngineRef {
    fn send(&self, transaction: &Transaction<'_>) -> SendStatus {
        let &Transaction { deliveries, bytes, tx, ttl_ms, offer } = transaction;
        guarded(|| self.0.send(deliveries, bytes, tx, ttl_ms, offer))
    }

    fn cork(&self, transaction: &Transaction<'_>) -> SendStatus {
        let &Transaction { deliveries, bytes, tx, ttl_ms, offer } = transaction;
        guarded(|| self.0.cork(deliveries, bytes, tx, ttl_ms, offer))
    }

    fn uncork(&self) {
        guarded(peer::uncork);
    }

    fn note_record(&self, is_urgent: bool, now_ns: u64) {
        guarded(|| self.0.note_record(is_urgent, now_ns));
    }

    fn wake_if_urgent(&self) {
        guarded(|| self.0.wake_if_urgent());
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }
}

/// The result of `act`, or the default, of nothing accepted, if it panics.
fn guarded<T: Default>(act: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_default()
}

/// Sends the transactions of one thread. All calls are made on one thread, because the
/// engine keeps corked deliveries per thread.
pub struct FanOut<E> {
    targets: Arc<TargetTable>,
    engine_handle: E,
    /// The first number of this thread's range, and those used so far. The engine uses a number to
    /// recognize whether a connection's last delivery was of this transaction, so no other thread
    /// may use it.
    first_number: u32,
    used: u32,
    burst: Burst,
    /// Whether the sender has deliveries of the last transaction to make.
    is_urgent: bool,
    /// Whether a record of this turn is urgent.
    is_wake_due: bool,
    pauses_left: usize,
}

impl<E: EngineHandle> FanOut<E> {
    /// One that sent nothing yet.
    #[must_use]
    pub fn new(targets: Arc<TargetTable>, engine_handle: E) -> Self {
        let range = 1 + targets.register_thread().wrapping_sub(1) % RANGES;
        Self {
            targets,
            engine_handle,
            first_number: range * NUMBERS,
            used: 0,
            burst: Burst::default(),
            is_urgent: false,
            is_wake_due: false,
            pauses_left: PAUSES_PER_TURN,
        }
    }

    /// Never holds a transaction back, for a thread that does not call `end_turn` at the end of a
    /// loop turn.
    #[must_use]
    pub fn without_corking(mut self) -> Self {
        self.burst.never_corks = true;
        self
    }

    /// Sends to every target and writes `sent`. `publish` is called before the first byte leaves,
    /// with the targets and with every delivery as queued; if it returns false, nothing is sent.
    #[must_use]
    pub fn send(
        &mut self,
        bytes: &[u8],
        offer: Offer,
        sent: &mut FanOutResult,
        publish: impl FnOnce(&FanOutResult) -> bool,
    ) -> FanOutOutcome {
        let targets = self.targets.latest();
        let ttl_ms = targets.ttl_ms;
        let (count, peers) = targets.accepting(bytes.len());
        if bytes.is_empty() || count == 0 {
            return FanOutOutcome::NoLeader;
        }
        let number = self.next_number();
        let deliveries = peers.map(|peer| [peer, number]);
        let deliveries = deliveries.get(..count).unwrap_or_default().as_flattened();
        let all = (1 << count) - 1;
        *sent = FanOutResult { number, count, peers, status: all << 16, corked: false };
        if !publish(sent) {
            return FanOutOutcome::Unpublished;
        }
        let tx = u64::from(number);
        let result = self.send_or_cork(&Transaction { deliveries, bytes, tx, ttl_ms, offer });
        let status = result.bits();
        if status == 0 && result.saturated != 0 {
            return FanOutOutcome::LeadersFull;
        }
        // Their connections have ended, as the sender learns from the events; those of others may
        // accept other transactions.
        if status == 0 {
            return FanOutOutcome::NoLeader;
        }
        sent.status = status;
        sent.corked = self.burst.is_corked;
        // The sender delivers to the leaders that did not accept it, except where it would be
        // evicted again.
        let reached = status | status >> 16 | u32::from(result.saturated);
        self.is_urgent = reached & all != all;
        FanOutOutcome::Sent
    }

    /// Now, CLOCK_MONOTONIC ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.engine_handle.now_ns()
    }

    /// The record of the last transaction is complete. The sender is woken at the end of the turn
    /// if it has deliveries to make to further leaders: one wake, which costs microseconds, serves
    /// all requests that arrived together, and delays no response.
    pub fn sent_recorded(&mut self, now_ns: u64) {
        self.is_wake_due |= self.is_urgent;
        self.engine_handle.note_record(self.is_urgent, now_ns);
    }

    /// Another record was written.
    pub fn recorded(&self, now_ns: u64) {
        self.engine_handle.note_record(false, now_ns);
    }

    /// Called before other work: uncorks what was held for long enough.
    pub fn flush_if_due(&mut self, now_ns: u64) {
        if self.burst.is_due(now_ns) {
            self.uncork();
        }
    }

    /// Waits a little for another thread, once what is corked has left. False when this turn has
    /// waited for long enough.
    #[must_use]
    pub fn pause(&mut self) -> bool {
        let Some(left) = self.pauses_left.checked_sub(1) else { return false };
        self.pauses_left = left;
        self.leave();
        sleep(PAUSE);
        true
    }

    /// End of a loop turn: uncorks everything, and wakes the sender if it must be.
    pub fn end_turn(&mut self) {
        self.pauses_left = PAUSES_PER_TURN;
        self.leave();
    }

    /// Uncorks everything, and wakes the sender if it must be.
    fn leave(&mut self) {
        self.uncork();
        if std::mem::take(&mut self.is_wake_due) {
            self.engine_handle.wake_if_urgent();
        }
    }

    fn next_number(&mut self) -> u32 {
        self.used = (self.used + 1) % NUMBERS;
        self.first_number + self.used
    }

    /// As `EngineHandle::send`. A corked delivery is reported as queued.
    fn send_or_cork(&mut self, transaction: &Transaction<'_>) -> SendStatus {
        let now_ns = self.engine_handle.now_ns();
        self.burst.count_in(now_ns);
        let status = if self.burst.is_corked {
            self.engine_handle.cork(transaction)
        } else {
            self.uncork();
            self.engine_handle.send(transaction)
        };
        if self.burst.is_corked && status.bits() != 0 {
            self.burst.cork(now_ns);
            self.flush_if_due(now_ns);
        }
        self.burst.last_ns = Some(self.engine_handle.now_ns());
        status
    }

    fn uncork(&mut self) {
        if std::mem::take(&mut self.burst.corked) > 0 {
            self.engine_handle.uncork();
            self.burst.last_ns = Some(self.engine_handle.now_ns());
        }
    }
}

/// The current burst, and its corked transactions.
#[derive(Default)]
struct Burst {
    /// When the last call was complete.
    last_ns: Option<u64>,
    /// Transactions without a pause, not counting the last one.
    size: u32,
    never_corks: bool,
    /// Whether the last one is corked.
    is_corked: bool,
    corked: u32,
    /// When the oldest one was corked.
    since_ns: u64,
}

impl Burst {
    /// Counts one more transaction.
    fn count_in(&mut self, now_ns: u64) {
        let continues =
            self.last_ns.is_some_and(|last_ns| now_ns.saturating_sub(last_ns) < BURST_GAP_NS);
        self.size = if continues { self.size.saturating_add(1) } else { 0 };
        self.is_corked = self.size >= BURST_MIN && !self.never_corks;
    }

    /// Corks it.
    fn cork(&mut self, now_ns: u64) {
        if self.corked == 0 {
            self.since_ns = now_ns;
        }
        self.corked += 1;
    }

    /// Whether corked transactions should wait no longer.
    fn is_due(&self, now_ns: u64) -> bool {
        let is_old = now_ns.saturating_sub(self.since_ns) >= CORKED_NS_MAX;
        self.corked >= CORKED_TRANSACTIONS_MAX || (self.corked > 0 && is_old)
    }
}

#[cfg(test)]
#[path = "fan_out_fixture.rs"]
mod fixture;
#[cfg(test)]
#[path = "fan_out_held_tests.rs"]
mod held_tests;
#[cfg(test)]
#[path = "fan_out_tests.rs"]
mod tests;
