//! Hot path: sends an ingress thread's transactions to the leaders of the target table that the
//! sender publishes. What a leader cannot take now waits in the engine, highest rank first, as do the
//! sender's deliveries. Deliveries that the engine does not accept, for example to a leader without
//! a connection, are the sender's task, which finds them in the record.
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
use crate::quic::landed_shares::Offer;
use crate::quic::peer;
use crate::quic::send_result::SendStatus;
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
/// Transaction numbers of ingress threads are above this, those of the sender, which are numbers of
/// streams, below.
pub const TX_MIN: u64 = 1 << 40;
/// Ingress threads with transaction numbers of their own, all exact as JavaScript numbers: more
/// than can exist.
const TX_RANGES: u64 = 8191;

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FanOutOutcome {
    /// The engine accepted at least one of its deliveries.
    Sent,
    /// Nothing is sent: the queue of every leader is full of deliveries of the same or a higher
    /// rank.
    LeadersFull,
    /// Nothing is sent: no leader is connected.
    NoLeader,
    /// Nothing is sent: the sender must send it.
    LeftToSender,
}

/// What was sent of one transaction.
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
    /// The handle by which the sender knows the engine.
    fn engine(&self) -> u32;
    /// As `Engine::send`.
    fn send(&self, transaction: &Transaction<'_>) -> SendStatus;
    /// As `Engine::cork`: this thread keeps the deliveries until `uncork`.
    fn cork(&self, transaction: &Transaction<'_>) -> SendStatus;
    /// Sends what this thread has corked.
    fn uncork(&self);
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

    fn send(&self, transaction: &Transaction<'_>) -> SendStatus {
        let &Transaction { deliveries, bytes, tx, ttl_ms, offer } = transaction;
        guarded(|| self.engine.send(deliveries, bytes, tx, ttl_ms, offer))
    }

    fn cork(&self, transaction: &Transaction<'_>) -> SendStatus {
        let &Transaction { deliveries, bytes, tx, ttl_ms, offer } = transaction;
        guarded(|| self.engine.cork(deliveries, bytes, tx, ttl_ms, offer))
    }

    fn uncork(&self) {
        guarded(peer::uncork);
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }
}

/// The result of `act`, or the default, of nothing accepted, if it panics.
fn guarded<T: Default>(act: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_default()
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
    needs_immediate_wake: bool,
    /// Whether the engine has events of the last transaction.
    is_wake_pending: bool,
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
            needs_immediate_wake: false,
            is_wake_pending: false,
        }
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
        if self.has_no_leader() {
            return FanOutOutcome::NoLeader;
        }
        if !self.can_send() {
            return FanOutOutcome::LeftToSender;
        }
        let &Targets { version, count, ttl_ms, bytes_max, excluded, .. } = self.targets.table();
        let is_small = u32::try_from(bytes.len()).is_ok_and(|size| size <= bytes_max);
        if bytes.is_empty() || !is_small {
            return FanOutOutcome::LeftToSender;
        }
        let allocated = self.allocate_tags();
        let Some((deliveries, tags)) = &allocated else { return FanOutOutcome::LeftToSender };
        let deliveries = deliveries.get(..count).unwrap_or_default().as_flattened();
        let all = (1 << count) - 1;
        *sent = FanOutResult { version, count, tags: *tags, status: all << 16, corked: false };
        if !publish(sent) {
            return FanOutOutcome::LeftToSender;
        }
        self.tx = self.tx.wrapping_add(1);
        let result =
            self.send_or_cork(&Transaction { deliveries, bytes, tx: self.tx, ttl_ms, offer });
        let status = result.bits();
        if status == 0 && result.saturated != 0 {
            return FanOutOutcome::LeadersFull;
        }
        if status == 0 {
            self.targets.close();
            return FanOutOutcome::LeftToSender;
        }
        sent.status = status;
        sent.corked = self.burst.is_corked;
        // A corked transaction may have no events for long: its leader may have no credit.
        self.is_wake_pending = result.wire != 0;
        // The sender delivers to the leaders that did not accept it, except where it would be
        // evicted again.
        let reached = status | status >> 16 | u32::from(result.saturated);
        self.needs_immediate_wake = excluded > 0 || reached & all != all;
        FanOutOutcome::Sent
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

    /// Whether the sender has no connected leader either.
    #[must_use]
    pub fn has_no_leader(&mut self) -> bool {
        if self.targets.is_open() || !self.targets.refresh() {
            return false;
        }
        let &Targets { engine, count, excluded, .. } = self.targets.table();
        engine != 0 && engine == self.engine_handle.engine() && count == 0 && excluded == 0
    }

    /// Now, CLOCK_MONOTONIC ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.engine_handle.now_ns()
    }

    /// Whether the sender must be woken immediately for the last transaction, to deliver it to further
    /// leaders.
    #[must_use]
    pub fn needs_immediate_wake(&self) -> bool {
        self.needs_immediate_wake
    }

    /// Whether the sender's thread will certainly be woken for the last transaction: the engine has
    /// events of it and reports them within `OUTCOMES_DELAY_NS_MAX`.
    #[must_use]
    pub fn is_wake_pending(&self) -> bool {
        self.is_wake_pending
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
