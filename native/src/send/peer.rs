//! Hot path: one leader's connection as all threads see it.
//!
//! No thread waits for another's work here. Work for a connection (copies to send, datagrams that
//! arrived, a timer) is put down first and announced by raising `announced`; who raised it from
//! zero has the baton and does all the work there is, others just go on:
//!
//! ```text
//!   sending thread ──┐                           ┌─▶ took the baton: send, and what else came
//!                    ├─▶ put down ─▶ announce ───┤
//!   I/O thread ──────┘                           └─▶ someone has it: gone, that one will see to it
//! ```
//!
//! A sending thread that finds no end of work (a flood from the leader, say) hands the baton to
//! the I/O thread. A bug that panics inside ends this connection and nothing else.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use quinn_proto::{Connection, ConnectionEvent, ConnectionHandle};

use crate::limits::{INBOX_DATAGRAMS_MAX, TURNS_OF_CALLER, TURNS_OF_IO};
use crate::send::alarm::{Alarm, Due};
use crate::send::connection::{Link, Progress};
use crate::send::figures::Figures;
use crate::send::held::Backlog;
use crate::send::mask::Taken;
use crate::send::outbox::{Outbox, Socket};
use crate::send::outcomes::{EndCause, Kind, Reason, Record};
use crate::send::shared::Shared;
use crate::sync::clock::NEVER_NS;
use crate::sync::mutex_queue::Tray;

/// A transaction on its way to one leader.
pub struct TxCopy {
    /// The serialized transaction, shared by all its copies.
    pub bytes: Bytes,
    /// The transaction's number.
    pub tx: u64,
    /// Comes back in the copy's outcomes.
    pub tag: u32,
    /// When it is of no more use, CLOCK_MONOTONIC ns.
    pub until_ns: u64,
}

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub enum PeerState {
    /// The handshake is under way; copies wait.
    Connecting = 1,
    /// The handshake is done, but the leader has granted no stream yet; copies wait.
    Connected = 2,
    /// Copies are sent at once.
    Admitted = 3,
    /// Finishing what is in hand; takes no more.
    Closing = 4,
    /// Over.
    Closed = 5,
}

/// One connection to one leader.
pub struct Peer {
    /// The handle that names it outside.
    pub id: u32,
    /// The leader's address.
    pub address: SocketAddr,
    pub(crate) socket: Arc<Socket>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) queue_max: usize,
    announced: AtomicUsize,
    link: Mutex<Link>,
    inbox: Tray<ConnectionEvent>,
    copies: Tray<TxCopy>,
    state: AtomicU8,
    queued: AtomicUsize,
    /// When to close, with what is in hand by then or without it; NEVER_NS: not asked to.
    close_by_ns: AtomicU64,
    ping_asked: AtomicBool,
    alarm: Alarm,
    /// The transaction that went on the wire last; NEVER_NS: none.
    last_sent_tx: AtomicU64,
    pub(crate) latest: Figures,
}

impl Peer {
    pub(crate) fn new(
        id: u32,
        address: SocketAddr,
        socket: Arc<Socket>,
        shared: Arc<Shared>,
        queue_max: usize,
        in_flight_max: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            address,
            socket,
            shared,
            queue_max,
            announced: AtomicUsize::new(0),
            link: Mutex::new(Link::new(in_flight_max)),
            inbox: Tray::default(),
            copies: Tray::default(),
            state: AtomicU8::new(PeerState::Connecting as u8),
            queued: AtomicUsize::new(0),
            close_by_ns: AtomicU64::new(NEVER_NS),
            ping_asked: AtomicBool::new(false),
            alarm: Alarm::default(),
            last_sent_tx: AtomicU64::new(NEVER_NS),
            latest: Figures::default(),
        })
    }

    /// Where the connection is in its life.
    #[must_use]
    pub fn state(&self) -> PeerState {
        match self.state.load(Ordering::Acquire) {
            1 => PeerState::Connecting,
            2 => PeerState::Connected,
            3 => PeerState::Admitted,
            4 => PeerState::Closing,
            _ => PeerState::Closed,
        }
    }

    /// Moves forward in life, never back.
    pub(crate) fn advance(&self, state: PeerState) {
        self.state.fetch_max(state as u8, Ordering::AcqRel);
    }

    /// Copies that wait to go on the wire.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// What waits, and whether anybody is at work for it.
    pub(crate) fn backlog(&self) -> Backlog {
        match self.queued() {
            0 => Backlog::None,
            queued if queued > self.queue_max / 2 => Backlog::Full,
            _ if self.announced.load(Ordering::Acquire) > 0 => Backlog::Moves,
            _ => Backlog::Waits,
        }
    }

    /// State, rtt_us, queued, in flight, mtu, congestion window, lost and sent packets, datagrams
    /// heard, streams left.
    #[must_use]
    pub fn figures(&self) -> [u64; 10] {
        let latest = &self.latest;
        [
            self.state() as u64,
            u64::from(latest.rtt_us.load(Ordering::Relaxed)),
            self.queued() as u64,
            u64::from(latest.in_flight.load(Ordering::Relaxed)),
            u64::from(latest.mtu.load(Ordering::Relaxed)),
            latest.window.load(Ordering::Relaxed),
            latest.lost_packets.load(Ordering::Relaxed),
            latest.sent_packets.load(Ordering::Relaxed),
            latest.heard.load(Ordering::Relaxed),
            u64::from(latest.streams_left.load(Ordering::Relaxed)),
        ]
    }

    /// Sends a copy on this thread, or leaves it to who has the baton.
    pub fn send(self: &Arc<Self>, copy: TxCopy) -> Taken {
        let state = self.state();
        if state >= PeerState::Closing {
            self.report_drop(&copy, self.closed_reason());
            return Taken::No;
        }
        if !self.has_place(&copy) {
            return Taken::No;
        }
        let order = Ordering::AcqRel;
        let tx = copy.tx;
        if self.announced.compare_exchange(0, 1, order, Ordering::Acquire).is_ok() {
            self.run(Some(copy), TURNS_OF_CALLER);
        } else {
            self.copies.push(copy);
            self.announce(TURNS_OF_CALLER);
        }
        if self.last_sent_tx.load(Ordering::Acquire) == tx {
            Taken::Sent
        } else if state == PeerState::Admitted {
            Taken::Live
        } else {
            Taken::Waiting
        }
    }

    /// Puts a copy down for whoever has the baton; announce afterwards. False where it was refused.
    pub(crate) fn put_down(&self, copy: TxCopy) -> bool {
        self.has_place(&copy) && {
            self.copies.push(copy);
            true
        }
    }

    /// Takes a place in the queue, or tells that there is none.
    fn has_place(&self, copy: &TxCopy) -> bool {
        let has_place = self.queued.fetch_add(1, Ordering::AcqRel) < self.queue_max;
        if !has_place {
            self.queued.fetch_sub(1, Ordering::AcqRel);
            self.report_drop(copy, Reason::QueueFull);
        }
        has_place
    }

    /// Closes once all in hand is acknowledged, at `by_ns` at the latest.
    pub fn close(self: &Arc<Self>, by_ns: u64) {
        self.close_by_ns.fetch_min(by_ns, Ordering::AcqRel);
        self.advance(PeerState::Closing);
        self.announce(TURNS_OF_CALLER);
    }

    /// Makes the leader answer, however long the connection has been idle.
    pub fn ping(self: &Arc<Self>) {
        self.ping_asked.store(true, Ordering::Release);
        self.announce(TURNS_OF_CALLER);
    }

    /// Whether somebody asked for a ping since the last call.
    pub(crate) fn take_ping(&self) -> bool {
        self.ping_asked.load(Ordering::Relaxed) && self.ping_asked.swap(false, Ordering::AcqRel)
    }

    /// When to close; NEVER_NS when not asked to.
    pub(crate) fn close_by_ns(&self) -> u64 {
        self.close_by_ns.load(Ordering::Acquire)
    }

    /// I/O thread: gives the peer its connection.
    pub(crate) fn start(
        self: &Arc<Self>,
        handle: ConnectionHandle,
        connection: Connection,
        give_up_ns: u64,
    ) {
        // Nobody holds the link for long: no connection means no work.
        self.link.lock().start(handle, connection, give_up_ns);
        self.announce(TURNS_OF_IO);
    }

    /// The connection could not even be started, or no one is left to run it.
    pub(crate) fn fail_start(&self) {
        self.link.lock().end(self, EndCause::Internal, 0);
    }

    /// I/O thread: puts a datagram down; announce afterwards.
    pub(crate) fn deliver(&self, event: ConnectionEvent) {
        if self.inbox.len() >= INBOX_DATAGRAMS_MAX {
            self.shared.inbox_drops.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.inbox.push(event);
    }

    /// Says that there is work, and does it if nobody else is at it.
    pub(crate) fn announce(self: &Arc<Self>, turns: usize) {
        if self.announced.fetch_add(1, Ordering::AcqRel) == 0 {
            self.run(None, turns);
        }
    }

    /// Does all the work there is; only for who has the baton.
    pub(crate) fn run(self: &Arc<Self>, mut copy: Option<TxCopy>, turns: usize) {
        for _ in 0..turns {
            let seen = self.announced.load(Ordering::Acquire);
            let progress = self.turn(copy.take());
            let done = matches!(progress, Progress::Done);
            if done && self.announced.fetch_sub(seen, Ordering::AcqRel) == seen {
                self.arm();
                self.shared.outcomes.wake_here();
                // The I/O thread may sleep for longer than what was noted here can wait, and fronts
                // rely on it (`send/front-sender.ts`); while it is awake this does nothing.
                self.shared.signal.wake_by(self.shared.outcomes.due_ns());
                return;
            }
        }
        self.shared.handed.push(self.clone());
        self.shared.signal.wake();
    }

    fn turn(self: &Arc<Self>, copy: Option<TxCopy>) -> Progress {
        OUTBOX.with_borrow_mut(|outbox| {
            let work = || self.link.lock().work(self, copy, std::time::Instant::now(), outbox);
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
                self.shared.panics.fetch_add(1, Ordering::Relaxed);
                outbox.clear();
                self.link.lock().abandon(self);
                Progress::Done
            })
        })
    }

    /// Tells the I/O thread of the link's next timer when it is sooner than the one it knows.
    fn arm(self: &Arc<Self>) {
        if self.alarm.sooner().is_some() && self.alarm.list() {
            self.shared.rearmed.push(self.clone());
        }
        // Also where it was on its way before, for a timer of then. Looked at once more: who moved it
        // closer before the push roused nobody.
        if let Some(timer_ns) = self.alarm.sooner() {
            self.shared.signal.wake_by(timer_ns);
        }
    }

    pub(crate) fn set_timer(&self, timer_ns: u64) {
        self.alarm.set(timer_ns);
    }

    /// I/O thread: the timer to wait for, when it is sooner than the one waited for.
    pub(crate) fn take_rearmed(&self) -> Option<u64> {
        self.alarm.take_rearmed()
    }

    /// I/O thread: what has become of the timer that is waited for; `Due::Now` where it stands.
    pub(crate) fn timer_after(&self, armed_ns: u64) -> Due {
        self.alarm.moved(armed_ns)
    }

    /// I/O thread: a timer that was waited for is due. Returns a later one to wait for, or does
    /// the work.
    pub(crate) fn take_due(self: &Arc<Self>, armed_ns: u64, now_ns: u64) -> Option<u64> {
        match self.alarm.take_due(armed_ns, now_ns) {
            Due::Stale => None,
            Due::Later(later_ns) => Some(later_ns),
            Due::Now => {
                self.announce(TURNS_OF_IO);
                None
            }
        }
    }

    pub(crate) fn next_copy(&self) -> Option<TxCopy> {
        self.copies.pop()
    }

    pub(crate) fn next_event(&self) -> Option<ConnectionEvent> {
        self.inbox.pop()
    }

    /// A transaction's copy went on the wire.
    pub(crate) fn note_wire(&self, tx: u64) {
        self.last_sent_tx.store(tx, Ordering::Release);
    }

    /// A copy left the queue.
    pub(crate) fn unqueue(&self) {
        self.queued.fetch_sub(1, Ordering::AcqRel);
    }

    /// Why a copy cannot go when the connection is over.
    pub(crate) fn closed_reason(&self) -> Reason {
        match self.shared.stopping.load(Ordering::Relaxed) {
            true => Reason::ShuttingDown,
            false => Reason::NotConnected,
        }
    }

    pub(crate) fn report_drop(&self, copy: &TxCopy, reason: Reason) {
        self.report(Kind::Dropped, copy.tx, copy.tag, reason as u8, 0);
        self.shared.outcomes.wake();
    }

    /// Writes a record that happened now.
    pub(crate) fn report(&self, kind: Kind, tx: u64, tag: u32, reason: u8, detail: u64) {
        let at_ns = self.shared.clock.now_ns();
        self.report_at(at_ns, kind, tx, tag, reason, detail);
    }

    pub(crate) fn report_at(
        &self,
        at_ns: u64,
        kind: Kind,
        tx: u64,
        tag: u32,
        reason: u8,
        detail: u64,
    ) {
        let rtt_us = self.latest.rtt_us.load(Ordering::Relaxed);
        let record = Record { kind, tx, peer: self.id, tag, reason, at_ns, rtt_us, detail };
        self.shared.outcomes.push(record);
    }
}

thread_local! {
    static OUTBOX: RefCell<Outbox> = RefCell::new(Outbox::default());
}

#[cfg(test)]
#[path = "peer_tests.rs"]
pub(crate) mod tests;
