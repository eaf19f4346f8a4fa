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
pub const RUN: u32 = 4;
/// Who comes later than this after the last one comes after a pause: between two of one turn of the
/// loop lie an answer, a request, a decoding and a verification.
pub const PAUSE_NS: u64 = 60_000;
/// Transactions that are held at most.
pub const HELD_MAX: u32 = 16;
/// How long the oldest is held before the next or other work.
pub const HELD_NS_MAX: u64 = 200_000;
/// Transactions in a row of which a copy waits, after which fronts send none until the sender has
/// looked: from so many on where they came over so long a time, as they do unless a leader that
/// takes them quickly was interrupted, and from more on in any case.
pub const HELD_UP: u32 = 16;
/// See `HELD_UP`.
pub const HELD_UP_NS: u64 = 20_000_000;
/// See `HELD_UP`.
pub const HELD_UP_MAX: u32 = 512;
/// The engine's number of a front's transaction is above this, and the sender's are below:
/// `FRONT_TX_MIN` of `front-limits.ts`.
pub const TX_MIN: u64 = 1 << 40;
/// Fronts whose transactions have numbers of their own, all of them whole as JavaScript's numbers:
/// more than there can be.
const FRONTS_MAX: u64 = 8191;
/// The bits of copies that are on the wire, in what `Wire::send` answers.
const ON_WIRE: u32 = 0xffff;

/// One transaction that a front sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    /// Of the routes that it went by.
    pub version: u32,
    /// The first so many routes of that version were given a copy.
    pub count: usize,
    /// Of each the stream.
    pub streams: [u32; 16],
    /// Bit i: route i's copy is on the wire; bit 16 + i: it waits, or leaves together with others
    /// in a moment.
    pub mask: u32,
    /// Whether it was held, to leave together with others.
    pub held: bool,
}

/// What transactions leave by. No call panics.
pub trait Wire {
    /// The handle by which the sender knows the engine.
    fn engine(&self) -> u32;
    /// As `Engine::send`: the bits of its `SendMask`, 0 where nothing was taken.
    fn send(&self, copies: &[u32], bytes: &[u8], tx: u64, ttl_ms: u32) -> u32;
    /// As `Engine::hold`: this thread keeps the copies until `release`.
    fn hold(&self, copies: &[u32], bytes: &[u8], tx: u64, ttl_ms: u32) -> u32;
    /// Sends what this thread keeps; what is left behind.
    fn release(&self) -> Backlog;
    /// Now, CLOCK_MONOTONIC ns.
    fn now_ns(&self) -> u64;
}

/// The engine itself. A panic in it costs what it was about to send, as at JavaScript's door.
pub struct EngineWire {
    handle: u32,
    engine: Arc<Engine>,
}

impl EngineWire {
    /// By the engine of this handle.
    #[must_use]
    pub fn new(handle: u32, engine: Arc<Engine>) -> Self {
        Self { handle, engine }
    }
}

impl Wire for EngineWire {
    fn engine(&self) -> u32 {
        self.handle
    }

    fn send(&self, copies: &[u32], bytes: &[u8], tx: u64, ttl_ms: u32) -> u32 {
        guarded(0, || self.engine.send(copies, bytes, tx, ttl_ms).bits())
    }

    fn hold(&self, copies: &[u32], bytes: &[u8], tx: u64, ttl_ms: u32) -> u32 {
        guarded(0, || self.engine.hold(copies, bytes, tx, ttl_ms).bits())
    }

    fn release(&self) -> Backlog {
        // Where it failed, nobody knows what is on the wire.
        guarded(Backlog::Waits, peer::release)
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
pub struct Sending<W> {
    routes: Routes,
    wire: W,
    /// The last transaction's number. The engine tells by it whether a connection's last copy was
    /// this one, so no other thread may have it.
    tx: u64,
    run: Run,
    /// Transactions in a row of which a copy had to wait, or was not taken; and since when.
    waited: u32,
    waited_since_ns: u64,
    is_held_up: bool,
    is_urgent: bool,
    /// Takings of the engine's news before the last transaction, and whether there is news of it.
    takings: u32,
    has_news: bool,
}

impl<W: Wire> Sending<W> {
    /// One that sent nothing yet.
    #[must_use]
    pub fn new(routes: Routes, wire: W) -> Self {
        let tx = TX_MIN * (1 + u64::from(routes.front()) % FRONTS_MAX);
        Self {
            routes,
            wire,
            tx,
            run: Run::default(),
            waited: 0,
            waited_since_ns: 0,
            is_held_up: false,
            is_urgent: false,
            takings: 0,
            has_news: false,
        }
    }

    /// Sends to every route and writes `sent`. False where that cannot be done now: nothing of it
    /// is sent or will be, and the sender's own thread has to take it; `sent` is as it was.
    #[must_use]
    pub fn send(&mut self, bytes: &[u8], sent: &mut Sent) -> bool {
        if !self.routes.is_open() || !self.routes.refresh() {
            return false;
        }
        let &Table { engine, version, count, ttl_ms, bytes_max, left_out, .. } =
            self.routes.table();
        // The sender may have another engine by now.
        if engine == 0 || engine != self.wire.engine() || count == 0 {
            return false;
        }
        let is_small = u32::try_from(bytes.len()).is_ok_and(|size| size <= bytes_max);
        if bytes.is_empty() || !is_small {
            return false;
        }
        let Some((copies, streams)) = self.draw() else { return false };
        self.takings = self.routes.takings();
        let Some(copies) = copies.get(..count) else { return false };
        let mask = self.give(copies.as_flattened(), bytes, ttl_ms);
        if mask == 0 {
            self.routes.close();
            return false;
        }
        let held = self.run.is_held;
        *sent = Sent { version, count, streams, mask, held };
        let all = (1 << count) - 1;
        // Of one that is held there may be none for long: its leader may have no credit.
        self.has_news = mask & ON_WIRE != 0;
        // Whoever did not take its copy is given it by the sender.
        self.is_urgent = left_out > 0 || (mask | mask >> 16) & all != all;
        if !held && self.note_waits(u32::from(mask != all)) {
            self.is_urgent = true;
        }
        true
    }

    /// Now, CLOCK_MONOTONIC ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.wire.now_ns()
    }

    /// Whether the sender is to hear of what was sent last at once: it has copies of it to place
    /// for leaders that are connected, or has to look at the routes before anything more is sent.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        self.is_urgent
    }

    /// Whether the sender's thread is sure to be woken for what was sent last, and to find the
    /// record that was written since: the engine has news of it to tell, and tells them within
    /// `OUTCOMES_LINGER_NS`. Not where that thread has taken them already, or may have, because it
    /// then looked for the record too early.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        let is_between = self.takings.is_multiple_of(2);
        self.has_news && is_between && self.routes.takings() == self.takings
    }

    /// Other work is at hand: what was held for long enough is released before it.
    pub fn heed(&mut self, now_ns: u64) {
        if self.run.is_due(now_ns) {
            self.release();
        }
    }

    /// This turn of the front's loop is through: all that is held is released.
    pub fn end_turn(&mut self) {
        self.release();
    }

    /// Whether a release, since this was asked last, has brought it to the point where the sender
    /// is to look at once: copies wait that should not. To be asked when a turn is through.
    #[must_use]
    pub fn take_held_up(&mut self) -> bool {
        std::mem::take(&mut self.is_held_up)
    }

    /// The copies of one transaction, each a handle and a stream, and the streams alone. None where
    /// the table makes no sense.
    fn draw(&self) -> Option<([[u32; 2]; ROUTES_MAX], [u32; ROUTES_MAX])> {
        let (mut copies, mut streams) = ([[0; 2]; ROUTES_MAX], [0; ROUTES_MAX]);
        let Table { count, peers, .. } = self.routes.table();
        let places = copies.iter_mut().zip(&mut streams).zip(peers).enumerate();
        for (route, ((copy, place), &peer)) in places.take(*count) {
            let stream = self.routes.next_stream(route)?;
            *copy = [peer, stream];
            *place = stream;
        }
        Some((copies, streams))
    }

    /// As `Wire::send`. One that is held is answered for as one that waits.
    fn give(&mut self, copies: &[u32], bytes: &[u8], ttl_ms: u32) -> u32 {
        self.tx = self.tx.wrapping_add(1);
        let now_ns = self.wire.now_ns();
        self.run.count_in(now_ns);
        let mask = if self.run.is_held {
            self.wire.hold(copies, bytes, self.tx, ttl_ms)
        } else {
            self.release();
            self.wire.send(copies, bytes, self.tx, ttl_ms)
        };
        if self.run.is_held && mask != 0 {
            self.run.hold(now_ns);
            self.heed(now_ns);
        }
        self.run.last_ns = Some(self.wire.now_ns());
        mask
    }

    fn release(&mut self) {
        let count = std::mem::take(&mut self.run.held);
        if count == 0 {
            return;
        }
        let left = self.wire.release();
        self.run.last_ns = Some(self.wire.now_ns());
        self.is_held_up |= match left {
            Backlog::None => self.note_waits(0),
            // Whether they would wait but for that thread is not known yet.
            Backlog::Moves => false,
            Backlog::Waits => self.note_waits(count),
            Backlog::Full => self.hold_up(),
        };
    }

    /// A copy waits where another thread is at work for its leader, which is over in microseconds,
    /// or for the leader's credit. Some in a row are the latter, and who pays best is to go first
    /// then: the sender looks at who it is, and leaves that one out. Whether it has come to that.
    fn note_waits(&mut self, count: u32) -> bool {
        if count == 0 {
            self.waited = 0;
            return false;
        }
        let now_ns = self.wire.now_ns();
        if self.waited == 0 {
            self.waited_since_ns = now_ns;
        }
        self.waited = self.waited.saturating_add(count);
        let is_long = now_ns.saturating_sub(self.waited_since_ns) >= HELD_UP_NS;
        let most = if is_long { HELD_UP } else { HELD_UP_MAX };
        self.waited >= most && self.hold_up()
    }

    /// Sends no more until the sender has looked.
    fn hold_up(&mut self) -> bool {
        self.waited = 0;
        self.routes.close();
        true
    }
}

/// The transactions that came last without a pause, and those of them that are held.
#[derive(Default)]
struct Run {
    /// When the last one was through.
    last_ns: Option<u64>,
    /// Transactions without a pause, the last one aside.
    size: u32,
    /// Whether the last one is to be held.
    is_held: bool,
    held: u32,
    /// Since when the oldest is.
    since_ns: u64,
}

impl Run {
    /// One more comes now.
    fn count_in(&mut self, now_ns: u64) {
        let goes_on = self.last_ns.is_some_and(|last_ns| now_ns.saturating_sub(last_ns) < PAUSE_NS);
        self.size = if goes_on { self.size.saturating_add(1) } else { 0 };
        self.is_held = self.size >= RUN;
    }

    /// And is held.
    fn hold(&mut self, now_ns: u64) {
        if self.held == 0 {
            self.since_ns = now_ns;
        }
        self.held += 1;
    }

    /// Whether those that are held should wait no longer.
    fn is_due(&self, now_ns: u64) -> bool {
        let is_old = now_ns.saturating_sub(self.since_ns) >= HELD_NS_MAX;
        self.held >= HELD_MAX || (self.held > 0 && is_old)
    }
}

#[cfg(test)]
#[path = "fan_out_held_tests.rs"]
mod held_tests;
#[cfg(test)]
#[path = "fan_out_rig.rs"]
mod rig;
#[cfg(test)]
#[path = "fan_out_tests.rs"]
mod tests;
