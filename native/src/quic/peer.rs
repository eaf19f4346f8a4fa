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
//!
//! A thread that comes upon one transaction after the other holds their copies and releases them
//! when it has no more, or should not wait for longer. Each connection then has all of its copies at
//! once, and sends them in as few datagrams and system calls as it can (`connection`, `gso_batch`). Until then
//! nobody else knows of them.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use quinn_proto::{Connection, ConnectionHandle};

use crate::limits::{HELD_MAX, TURNS_OF_CALLER, TURNS_OF_IO};
use crate::quic::connection::{Link, Progress};
use crate::quic::copy::{PeerState, TxCopy};
use crate::quic::engine_state::Shared;
use crate::quic::event_ring::EndCause;
use crate::quic::gso_batch::{Outbox, Socket};
use crate::quic::peer_core::PeerCore;
use crate::quic::send_result::Taken;
use crate::quic::timer::Due;
use crate::sync::mutex_queue::Tray;

/// One connection to one leader.
pub struct Peer {
    core: PeerCore,
    announced: AtomicUsize,
    link: Mutex<Link>,
    pub(crate) queues: Arc<IoQueues>,
}

/// What a release left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Backlog {
    /// No copy waits.
    None,
    /// Some do, and another thread is at work for them.
    Moves,
    /// Some wait for a connection, or for the leader's credit.
    Waits,
    /// So many do that a few more releases could find no room, or this one found none for all.
    Full,
}

/// What connections put down for the I/O thread, which alone takes it up again.
#[derive(Default)]
pub(crate) struct IoQueues {
    /// Connections whose next timer moved closer.
    pub(crate) rearmed: Tray<Arc<Peer>>,
    /// Connections whose baton goes to the I/O thread.
    pub(crate) handed: Tray<Arc<Peer>>,
}

impl Deref for Peer {
    type Target = PeerCore;

    fn deref(&self) -> &PeerCore {
        &self.core
    }
}

impl Peer {
    pub(crate) fn new(
        id: u32,
        address: SocketAddr,
        socket: Arc<Socket>,
        shared: Arc<Shared>,
        queues: Arc<IoQueues>,
        queue_max: usize,
        in_flight_max: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            core: PeerCore::new(id, address, socket, shared, queue_max),
            announced: AtomicUsize::new(0),
            link: Mutex::new(Link::new(in_flight_max)),
            queues,
        })
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

    /// Keeps a copy on this thread until `release`, or until there are many.
    pub fn hold(self: &Arc<Self>, copy: TxCopy) -> Taken {
        let state = self.state();
        if state >= PeerState::Closing {
            self.report_drop(&copy, self.closed_reason());
            return Taken::No;
        }
        // Before it is kept and not after: who holds so many is told by its own release what waits.
        if HELD.with_borrow(|held| held.0.len() >= HELD_MAX) {
            release();
        }
        HELD.with_borrow_mut(|held| held.0.push((self.clone(), copy)));
        if state == PeerState::Admitted { Taken::Live } else { Taken::Waiting }
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
        self.link.lock().end(&self.core, EndCause::Internal, 0);
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
        self.queues.handed.push(self.clone());
        self.shared.signal.wake();
    }

    fn turn(self: &Arc<Self>, copy: Option<TxCopy>) -> Progress {
        OUTBOX.with_borrow_mut(|outbox| {
            let work =
                || self.link.lock().work(&self.core, copy, std::time::Instant::now(), outbox);
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
                self.shared.panics.fetch_add(1, Ordering::Relaxed);
                outbox.clear();
                self.link.lock().abandon(&self.core);
                Progress::Done
            })
        })
    }

    /// Tells the I/O thread of the link's next timer when it is sooner than the one it knows.
    fn arm(self: &Arc<Self>) {
        if self.alarm.sooner().is_some() && self.alarm.list() {
            self.queues.rearmed.push(self.clone());
        }
        // Also where it was on its way before, for a timer of then. Looked at once more: who moved it
        // closer before the push roused nobody.
        if let Some(timer_ns) = self.alarm.sooner() {
            self.shared.signal.wake_by(timer_ns);
        }
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
}

/// Sends what this thread holds. The worst that is left behind for any of those leaders.
pub fn release() -> Backlog {
    let mut left = Backlog::None;
    let held = HELD.with_borrow_mut(|held| std::mem::take(&mut held.0));
    let mut peers: Vec<Arc<Peer>> = Vec::new();
    for (peer, copy) in held {
        if !peer.put_down(copy) {
            left = Backlog::Full;
            continue;
        }
        if !peers.iter().any(|known| Arc::ptr_eq(known, &peer)) {
            peers.push(peer);
        }
    }
    for peer in &peers {
        peer.announce(TURNS_OF_CALLER);
    }
    peers.iter().map(|peer| peer.backlog()).fold(left, Ord::max)
}

/// In the order of coming.
struct Held(Vec<(Arc<Peer>, TxCopy)>);

impl Drop for Held {
    /// The thread ends: nobody is left to send them.
    fn drop(&mut self) {
        for (peer, copy) in self.0.drain(..) {
            peer.report_drop(&copy, peer.closed_reason());
        }
    }
}

thread_local! {
    static OUTBOX: RefCell<Outbox> = RefCell::new(Outbox::default());
    static HELD: RefCell<Held> = const { RefCell::new(Held(Vec::new())) };
}

#[cfg(test)]
#[path = "peer_tests.rs"]
pub(crate) mod tests;
