//! Hot path: sends an ingress thread's transactions to the leaders of the target table that the
//! sender publishes. Transactions that it does not send, or not to every leader, are the sender's
//! task, which finds them in the record.
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

use crate::quic::engine::Engine;
use crate::quic::peer::{self, Backlog};
use crate::submit::target_table::{SharedTargetTable, TARGETS_MAX, Targets};
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
/// Consecutive transactions with a queued delivery after which ingress threads stop sending until
/// the sender has checked: this count if they span at least `STALL_NS`, which they do unless a
/// leader with free credit was briefly interrupted, and `STALL_COUNT_MAX` in any case.
pub const STALL_COUNT: u32 = 16;
/// See `STALL_COUNT`.
pub const STALL_NS: u64 = 20_000_000;
/// See `STALL_COUNT`.
pub const STALL_COUNT_MAX: u32 = 512;
/// Transaction numbers of ingress threads are above this, those of the sender below:
/// `INGRESS_TX_MIN` of `src/send/limits.ts`.
pub const TX_MIN: u64 = 1 << 40;
/// Ingress threads with transaction numbers of their own, all exact as JavaScript numbers: more
/// than can exist.
const TX_RANGES: u64 = 8191;
/// Bits of deliveries on the wire, in the result of `EngineHandle::send`.
const ON_WIRE: u32 = (1 << TARGETS_MAX) - 1;

/// Result of sending one transaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct FanOutResult {
    /// Version of the target table that it was sent by.
    pub version: u32,
    /// It was sent to the first `count` targets of that version.
    pub count: usize,
    /// The tag of each delivery, which identifies it within its connection.
    pub tags: [u32; TARGETS_MAX],
    /// Bit i: target i's delivery is on the wire; bit 16 + i: it is queued or corked.
    pub status: u32,
    /// Whether it was corked.
    pub corked: bool,
}

/// The engine that sends transactions. No call panics.
pub trait EngineHandle {
    /// The handle by which the sender knows the engine.
    fn engine(&self) -> u32;
    /// As `Engine::send`: the bits of its `SendStatus`, 0 if nothing was accepted.
    fn send(&self, deliveries: &[u32], bytes: &[u8], tx: u64, ttl_ms: u32) -> u32;
    /// As `Engine::cork`: this thread keeps the deliveries until `uncork`.
    fn cork(&self, deliveries: &[u32], bytes: &[u8], tx: u64, ttl_ms: u32) -> u32;
    /// Sends what this thread has corked; returns what remains queued.
    fn uncork(&self) -> Backlog;
    /// Now, CLOCK_MONOTONIC ns.
    fn now_ns(&self) -> u64;
}

/// The engine itself. A panic in it loses what it was about to send, as in the N-API exports.
pub struct EngineRef {
    handle: u32,
    engine: Arc<Engine>,
}

impl EngineRef {
    /// The engine with this handle.
    #[must_use]
    pub fn new(handle: u32, engine: Arc<Engine>) -> Self {
        Self { handle, engine }
    }
}

impl EngineHandle for EngineRef {
    fn engine(&self) -> u32 {
        self.handle
    }

    fn send(&self, deliveries: &[u32], bytes: &[u8], tx: u64, ttl_ms: u32) -> u32 {
        guarded(0, || self.engine.send(deliveries, bytes, tx, ttl_ms).bits())
    }

    fn cork(&self, deliveries: &[u32], bytes: &[u8], tx: u64, ttl_ms: u32) -> u32 {
        guarded(0, || self.engine.cork(deliveries, bytes, tx, ttl_ms).bits())
    }

    fn uncork(&self) -> Backlog {
        // After a panic it is unknown what is on the wire.
        guarded(Backlog::Waits, peer::uncork)
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }
}

/// The result of `act`, or `otherwise` if it panics.
fn guarded<T>(otherwise: T, act: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or(otherwise)
}

/// Sends the transactions of one ingress thread. All calls are made on one thread, because the
/// engine keeps corked deliveries per thread.
pub struct FanOut<E> {
    targets: SharedTargetTable,
    engine_handle: E,
    /// Number of the last transaction. The engine uses it to recognize whether a connection's last
    /// delivery was of this transaction, so no other thread may use it.
    tx: u64,
    burst: Burst,
    /// Consecutive transactions with a delivery that was queued or not accepted; and since when.
    waited: u32,
    waited_since_ns: u64,
    is_stalled: bool,
    needs_immediate_wake: bool,
    /// The engine's drain count before the last transaction, and whether the engine has events of
    /// it.
    drain_count: u32,
    has_pending_events: bool,
}

impl<E: EngineHandle> FanOut<E> {
    /// One that sent nothing yet.
    #[must_use]
    pub fn new(targets: SharedTargetTable, engine_handle: E) -> Self {
        let tx = TX_MIN * (1 + u64::from(targets.thread_number()) % TX_RANGES);
        Self {
            targets,
            engine_handle,
            tx,
            burst: Burst::default(),
            waited: 0,
            waited_since_ns: 0,
            is_stalled: false,
            needs_immediate_wake: false,
            drain_count: 0,
            has_pending_events: false,
        }
    }

    /// Sends to every target and writes `sent`. False if that is impossible now: then nothing is
    /// sent, the main thread's sender must send it, and `sent` is unchanged.
    #[must_use]
    pub fn send(&mut self, bytes: &[u8], sent: &mut FanOutResult) -> bool {
        if !self.can_send() {
            return false;
        }
        let &Targets { version, count, ttl_ms, bytes_max, excluded, .. } = self.targets.table();
        let is_small = u32::try_from(bytes.len()).is_ok_and(|size| size <= bytes_max);
        if bytes.is_empty() || !is_small {
            return false;
        }
        let Some((deliveries, tags)) = self.allocate_tags() else { return false };
        self.drain_count = self.targets.drain_count();
        let Some(deliveries) = deliveries.get(..count) else { return false };
        let status = self.send_or_cork(deliveries.as_flattened(), bytes, ttl_ms);
        if status == 0 {
            self.targets.close();
            return false;
        }
        let corked = self.burst.is_corked;
        *sent = FanOutResult { version, count, tags, status, corked };
        let all = (1 << count) - 1;
        // A corked transaction may have no events for long: its leader may have no credit.
        self.has_pending_events = status & ON_WIRE != 0;
        // The sender delivers to the leaders that did not accept it.
        self.needs_immediate_wake = excluded > 0 || (status | status >> 16) & all != all;
        if !corked && self.record_wait(u32::from(status != all)) {
            self.needs_immediate_wake = true;
        }
        true
    }

    /// Whether there are targets now that transactions may be sent to.
    #[must_use]
    pub fn can_send(&mut self) -> bool {
        if !self.targets.is_open() || !self.targets.refresh() {
            return false;
        }
        let &Targets { engine, count, .. } = self.targets.table();
        // The sender may have started another engine.
        engine != 0 && engine == self.engine_handle.engine() && count > 0
    }

    /// Now, CLOCK_MONOTONIC ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.engine_handle.now_ns()
    }

    /// Whether the sender must be woken immediately for the last transaction: it must queue
    /// deliveries for excluded leaders, or check the targets before anything more is sent.
    #[must_use]
    pub fn needs_immediate_wake(&self) -> bool {
        self.needs_immediate_wake
    }

    /// Whether the sender's thread will certainly be woken for the last transaction and find its
    /// record: the engine has events of it and reports them within `OUTCOMES_DELAY_NS_MAX`. Not if
    /// that thread has drained them already, or may have, because it then read the ring before the
    /// record was written.
    #[must_use]
    pub fn is_wake_pending(&self) -> bool {
        let is_between = self.drain_count.is_multiple_of(2);
        self.has_pending_events && is_between && self.targets.drain_count() == self.drain_count
    }

    /// Called before other work: uncorks what was held for long enough.
    pub fn flush_if_due(&mut self, now_ns: u64) {
        if self.burst.is_due(now_ns) {
            self.uncork();
        }
    }

    /// End of a loop turn: uncorks everything.
    pub fn end_turn(&mut self) {
        self.uncork();
    }

    /// Whether an uncork since the last call found deliveries queued that should not be, so that
    /// the sender must check immediately. Call it at the end of a turn.
    #[must_use]
    pub fn take_stalled(&mut self) -> bool {
        std::mem::take(&mut self.is_stalled)
    }

    /// The deliveries of one transaction, each a connection handle and a tag, and the tags alone.
    /// None if the table is inconsistent.
    fn allocate_tags(&self) -> Option<([[u32; 2]; TARGETS_MAX], [u32; TARGETS_MAX])> {
        let (mut deliveries, mut tags) = ([[0; 2]; TARGETS_MAX], [0; TARGETS_MAX]);
        let Targets { count, peers, .. } = self.targets.table();
        let slots = deliveries.iter_mut().zip(&mut tags).zip(peers).enumerate();
        for (target, ((delivery, slot), &peer)) in slots.take(*count) {
            let tag = self.targets.next_tag(target)?;
            *delivery = [peer, tag];
            *slot = tag;
        }
        Some((deliveries, tags))
    }

    /// As `EngineHandle::send`. A corked delivery is reported as queued.
    fn send_or_cork(&mut self, deliveries: &[u32], bytes: &[u8], ttl_ms: u32) -> u32 {
        self.tx = self.tx.wrapping_add(1);
        let now_ns = self.engine_handle.now_ns();
        self.burst.count_in(now_ns);
        let status = if self.burst.is_corked {
            self.engine_handle.cork(deliveries, bytes, self.tx, ttl_ms)
        } else {
            self.uncork();
            self.engine_handle.send(deliveries, bytes, self.tx, ttl_ms)
        };
        if self.burst.is_corked && status != 0 {
            self.burst.cork(now_ns);
            self.flush_if_due(now_ns);
        }
        self.burst.last_ns = Some(self.engine_handle.now_ns());
        status
    }

    fn uncork(&mut self) {
        let count = std::mem::take(&mut self.burst.corked);
        if count == 0 {
            return;
        }
        let left = self.engine_handle.uncork();
        self.burst.last_ns = Some(self.engine_handle.now_ns());
        self.is_stalled |= match left {
            Backlog::None => self.record_wait(0),
            // It is unknown whether they would be queued without the other thread.
            Backlog::Moves => false,
            Backlog::Waits => self.record_wait(count),
            Backlog::Full => self.close_targets(),
        };
    }

    /// A delivery is queued while another thread drives its connection, which takes microseconds,
    /// or for lack of the leader's credit. Several in a row mean the latter, and then the
    /// transactions of the highest rank must go first: the sender finds the leader and excludes it.
    /// Returns whether that point is reached.
    fn record_wait(&mut self, count: u32) -> bool {
        if count == 0 {
            self.waited = 0;
            return false;
        }
        let now_ns = self.engine_handle.now_ns();
        if self.waited == 0 {
            self.waited_since_ns = now_ns;
        }
        self.waited = self.waited.saturating_add(count);
        let is_long = now_ns.saturating_sub(self.waited_since_ns) >= STALL_NS;
        let most = if is_long { STALL_COUNT } else { STALL_COUNT_MAX };
        self.waited >= most && self.close_targets()
    }

    /// Stops sending until the sender has checked.
    fn close_targets(&mut self) -> bool {
        self.waited = 0;
        self.targets.close();
        true
    }
}

/// The current burst, and its corked transactions.
#[derive(Default)]
struct Burst {
    /// When the last call was complete.
    last_ns: Option<u64>,
    /// Transactions without a pause, not counting the last one.
    size: u32,
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
        self.is_corked = self.size >= BURST_MIN;
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
