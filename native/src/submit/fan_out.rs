//! Hot path: puts the transactions of a front on the wire, by the table of routes that the sender
//! keeps. What it does not send, or not to all, is the sender's, who learns of it by the record.
//!
//! Transactions that come without a pause leave together. Who sends one after the other pays a
//! datagram and a system call for each, and so do the leaders; a front that falls behind by it
//! holds what it comes upon in the engine, until this turn of its loop is through or for a fraction
//! of a millisecond, and all of it leaves in as few as it can. The first ones of a run do not wait:
//! while the front keeps up, a transaction is on the wire sooner by itself.
//!
//! ```text
//!  ─ pause ─┬──────┬──────┬──────┬──────┬──────┬──────┬──────┐
//!           │ sent │ sent │ sent │ sent │ held │ held │ held ├─▶ released: 2 datagrams, 1 call
//!           └──────┴──────┴──────┴──────┴──────┴──────┴──────┘
//! ```
//!
//! Decision: docs/decisions/0004-cork-bursts.md

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::quic::engine::Engine;
use crate::quic::peer::{self, Backlog};
use crate::submit::route_table::{ROUTES_MAX, Routes, Table};
use crate::sync::clock::monotonic_ns;

/// Transactions without a pause, after which the next ones are held.
pub const BURST_MIN: u32 = 4;
/// Who comes later than this after the last one comes after a pause: between two of one turn of the
/// loop lie an answer, a request, a decoding and a verification.
pub const BURST_GAP_NS: u64 = 60_000;
/// Transactions that are held at most.
pub const CORKED_MAX: u32 = 16;
/// How long the oldest is held before the next or other work.
pub const CORKED_NS_MAX: u64 = 200_000;
/// Transactions in a row of which a copy waits, after which fronts send none until the sender has
/// looked: from so many on where they came over so long a time, as they do unless a leader that
/// takes them quickly was interrupted, and from more on in any case.
pub const STALL_COUNT: u32 = 16;
/// See `STALL_COUNT`.
pub const STALL_NS: u64 = 20_000_000;
/// See `STALL_COUNT`.
pub const STALL_COUNT_MAX: u32 = 512;
/// The engine's number of a front's transaction is above this, and the sender's are below:
/// `INGRESS_TX_MIN` of `front-limits.ts`.
pub const TX_MIN: u64 = 1 << 40;
/// Fronts whose transactions have numbers of their own, all of them whole as JavaScript's numbers:
/// more than there can be.
const INGRESS_THREADS_MAX: u64 = 8191;
/// The bits of copies that are on the wire, in what `Wire::send` answers.
const ON_WIRE: u32 = 0xffff;

/// One transaction that a front sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct FanOutResult {
    /// Of the routes that it went by.
    pub version: u32,
    /// The first so many routes of that version were given a copy.
    pub count: usize,
    /// Of each the stream.
    pub streams: [u32; 16],
    /// Bit i: route i's copy is on the wire; bit 16 + i: it waits, or leaves together with others
    /// in a moment.
    pub status: u32,
    /// Whether it was held, to leave together with others.
    pub corked: bool,
}

/// What transactions leave by. No call panics.
pub trait EngineHandle {
    /// The handle by which the sender knows the engine.
    fn engine(&self) -> u32;
    /// As `Engine::send`: the bits of its `SendStatus`, 0 where nothing was taken.
    fn send(&self, deliveries: &[u32], bytes: &[u8], tx: u64, ttl_ms: u32) -> u32;
    /// As `Engine::cork`: this thread keeps the copies until `release`.
    fn cork(&self, deliveries: &[u32], bytes: &[u8], tx: u64, ttl_ms: u32) -> u32;
    /// Sends what this thread keeps; what is left behind.
    fn uncork(&self) -> Backlog;
    /// Now, CLOCK_MONOTONIC ns.
    fn now_ns(&self) -> u64;
}

/// The engine itself. A panic in it costs what it was about to send, as at JavaScript's door.
pub struct EngineRef {
    handle: u32,
    engine: Arc<Engine>,
}

impl EngineRef {
    /// By the engine of this handle.
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
        // Where it failed, nobody knows what is on the wire.
        guarded(Backlog::Waits, peer::uncork)
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }
}

/// Answers what `act` does, or else this where it panics.
fn guarded<T>(otherwise: T, act: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or(otherwise)
}

/// Sends what one front takes. All of its calls are made on one thread, because the engine keeps
/// for each thread what that holds.
pub struct FanOut<W> {
    routes: Routes,
    engine_handle: W,
    /// The last transaction's number. The engine tells by it whether a connection's last copy was
    /// this one, so no other thread may have it.
    tx: u64,
    burst: Burst,
    /// Transactions in a row of which a copy had to wait, or was not taken; and since when.
    waited: u32,
    waited_since_ns: u64,
    is_stalled: bool,
    needs_immediate_wake: bool,
    /// Takings of the engine's news before the last transaction, and whether there is news of it.
    drain_count: u32,
    has_pending_events: bool,
}

impl<W: EngineHandle> FanOut<W> {
    /// One that sent nothing yet.
    #[must_use]
    pub fn new(routes: Routes, engine_handle: W) -> Self {
        let tx = TX_MIN * (1 + u64::from(routes.thread_number()) % INGRESS_THREADS_MAX);
        Self {
            routes,
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

    /// Sends to every route and writes `sent`. False where that cannot be done now: nothing of it
    /// is sent or will be, and the sender's own thread has to take it; `sent` is as it was.
    #[must_use]
    pub fn send(&mut self, bytes: &[u8], sent: &mut FanOutResult) -> bool {
        if !self.routes.is_open() || !self.routes.refresh() {
            return false;
        }
        let &Table { engine, version, count, ttl_ms, bytes_max, left_out, .. } =
            self.routes.table();
        // The sender may have another engine by now.
        if engine == 0 || engine != self.engine_handle.engine() || count == 0 {
            return false;
        }
        let is_small = u32::try_from(bytes.len()).is_ok_and(|size| size <= bytes_max);
        if bytes.is_empty() || !is_small {
            return false;
        }
        let Some((deliveries, streams)) = self.allocate_streams() else { return false };
        self.drain_count = self.routes.drain_count();
        let Some(deliveries) = deliveries.get(..count) else { return false };
        let status = self.give(deliveries.as_flattened(), bytes, ttl_ms);
        if status == 0 {
            self.routes.close();
            return false;
        }
        let corked = self.burst.is_corked;
        *sent = FanOutResult { version, count, streams, status, corked };
        let all = (1 << count) - 1;
        // Of one that is held there may be none for long: its leader may have no credit.
        self.has_pending_events = status & ON_WIRE != 0;
        // Whoever did not take its copy is given it by the sender.
        self.needs_immediate_wake = left_out > 0 || (status | status >> 16) & all != all;
        if !corked && self.count_waits(u32::from(status != all)) {
            self.needs_immediate_wake = true;
        }
        true
    }

    /// Now, CLOCK_MONOTONIC ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.engine_handle.now_ns()
    }

    /// Whether the sender is to hear of what was sent last at once: it has copies of it to place
    /// for leaders that are connected, or has to look at the routes before anything more is sent.
    #[must_use]
    pub fn needs_immediate_wake(&self) -> bool {
        self.needs_immediate_wake
    }

    /// Whether the sender's thread is sure to be woken for what was sent last, and to find the
    /// record that was written since: the engine has news of it to tell, and tells them within
    /// `OUTCOMES_DELAY_NS_MAX`. Not where that thread has taken them already, or may have, because it
    /// then looked for the record too early.
    #[must_use]
    pub fn is_wake_pending(&self) -> bool {
        let is_between = self.drain_count.is_multiple_of(2);
        self.has_pending_events && is_between && self.routes.drain_count() == self.drain_count
    }

    /// Other work is at hand: what was held for long enough is released before it.
    pub fn flush_if_due(&mut self, now_ns: u64) {
        if self.burst.is_due(now_ns) {
            self.uncork();
        }
    }

    /// This turn of the front's loop is through: all that is held is released.
    pub fn end_turn(&mut self) {
        self.uncork();
    }

    /// Whether a release, since this was asked last, has brought it to the point where the sender
    /// is to look at once: copies wait that should not. To be asked when a turn is through.
    #[must_use]
    pub fn take_stalled(&mut self) -> bool {
        std::mem::take(&mut self.is_stalled)
    }

    /// The copies of one transaction, each a handle and a stream, and the streams alone. None where
    /// the table makes no sense.
    fn allocate_streams(&self) -> Option<([[u32; 2]; ROUTES_MAX], [u32; ROUTES_MAX])> {
        let (mut deliveries, mut streams) = ([[0; 2]; ROUTES_MAX], [0; ROUTES_MAX]);
        let Table { count, peers, .. } = self.routes.table();
        let places = deliveries.iter_mut().zip(&mut streams).zip(peers).enumerate();
        for (route, ((copy, place), &peer)) in places.take(*count) {
            let stream = self.routes.next_stream(route)?;
            *copy = [peer, stream];
            *place = stream;
        }
        Some((deliveries, streams))
    }

    /// As `Wire::send`. One that is held is answered for as one that waits.
    fn give(&mut self, deliveries: &[u32], bytes: &[u8], ttl_ms: u32) -> u32 {
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
            Backlog::None => self.count_waits(0),
            // Whether they would wait but for that thread is not known yet.
            Backlog::Moves => false,
            Backlog::Waits => self.count_waits(count),
            Backlog::Full => self.stall(),
        };
    }

    /// A copy waits where another thread is at work for its leader, which is over in microseconds,
    /// or for the leader's credit. Some in a row are the latter, and who pays best is to go first
    /// then: the sender looks at who it is, and leaves that one out. Whether it has come to that.
    fn count_waits(&mut self, count: u32) -> bool {
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
        self.waited >= most && self.stall()
    }

    /// Sends no more until the sender has looked.
    fn stall(&mut self) -> bool {
        self.waited = 0;
        self.routes.close();
        true
    }
}

/// The transactions that came last without a pause, and those of them that are held.
#[derive(Default)]
struct Burst {
    /// When the last one was through.
    last_ns: Option<u64>,
    /// Transactions without a pause, the last one aside.
    size: u32,
    /// Whether the last one is to be held.
    is_corked: bool,
    corked: u32,
    /// Since when the oldest is.
    since_ns: u64,
}

impl Burst {
    /// One more comes now.
    fn count_in(&mut self, now_ns: u64) {
        let goes_on =
            self.last_ns.is_some_and(|last_ns| now_ns.saturating_sub(last_ns) < BURST_GAP_NS);
        self.size = if goes_on { self.size.saturating_add(1) } else { 0 };
        self.is_corked = self.size >= BURST_MIN;
    }

    /// And is held.
    fn cork(&mut self, now_ns: u64) {
        if self.corked == 0 {
            self.since_ns = now_ns;
        }
        self.corked += 1;
    }

    /// Whether those that are held should wait no longer.
    fn is_due(&self, now_ns: u64) -> bool {
        let is_old = now_ns.saturating_sub(self.since_ns) >= CORKED_NS_MAX;
        self.corked >= CORKED_MAX || (self.corked > 0 && is_old)
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
