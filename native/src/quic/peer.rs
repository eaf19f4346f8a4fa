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

use crate::limits::{CALLER_TURNS, CORKED_MAX, IO_TURNS};
use crate::quic::connection::{ConnectionDriver, Progress};
use crate::quic::delivery::{Delivery, PeerState};
use crate::quic::engine_state::EngineState;
use crate::quic::event_ring::CloseCause;
use crate::quic::gso_batch::{GsoWriter, Socket};
use crate::quic::peer_core::PeerCore;
use crate::quic::send_result::SendResult;
use crate::quic::timer::Due;
use crate::sync::mutex_queue::MutexQueue;

/// One connection to one leader.
pub struct Peer {
    core: PeerCore,
    announced: AtomicUsize,
    driver: Mutex<ConnectionDriver>,
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
    pub(crate) timer_updates: MutexQueue<Arc<Peer>>,
    /// Connections whose baton goes to the I/O thread.
    pub(crate) io_handoff: MutexQueue<Arc<Peer>>,
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
        engine_state: Arc<EngineState>,
        queues: Arc<IoQueues>,
        queue_max: usize,
        in_flight_max: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            core: PeerCore::new(id, address, socket, engine_state, queue_max),
            announced: AtomicUsize::new(0),
            driver: Mutex::new(ConnectionDriver::new(in_flight_max)),
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
    pub fn send(self: &Arc<Self>, delivery: Delivery) -> SendResult {
        let state = self.state();
        if state >= PeerState::Closing {
            self.report_drop(&delivery, self.closed_reason());
            return SendResult::Rejected;
        }
        if !self.reserve_place(&delivery) {
            return SendResult::Rejected;
        }
        let order = Ordering::AcqRel;
        let tx = delivery.tx;
        if self.announced.compare_exchange(0, 1, order, Ordering::Acquire).is_ok() {
            self.run(Some(delivery), CALLER_TURNS);
        } else {
            self.deliveries.push(delivery);
            self.announce(CALLER_TURNS);
        }
        if self.last_sent_tx.load(Ordering::Acquire) == tx {
            SendResult::Sent
        } else if state == PeerState::Admitted {
            SendResult::Live
        } else {
            SendResult::Queued
        }
    }

    /// Keeps a copy on this thread until `release`, or until there are many.
    pub fn cork(self: &Arc<Self>, delivery: Delivery) -> SendResult {
        let state = self.state();
        if state >= PeerState::Closing {
            self.report_drop(&delivery, self.closed_reason());
            return SendResult::Rejected;
        }
        // Before it is kept and not after: who holds so many is told by its own release what waits.
        if CORKED.with_borrow(|corked| corked.0.len() >= CORKED_MAX) {
            uncork();
        }
        CORKED.with_borrow_mut(|corked| corked.0.push((self.clone(), delivery)));
        if state == PeerState::Admitted { SendResult::Live } else { SendResult::Queued }
    }

    /// Closes once all in hand is acknowledged, at `by_ns` at the latest.
    pub fn close(self: &Arc<Self>, by_ns: u64) {
        self.close_by_ns.fetch_min(by_ns, Ordering::AcqRel);
        self.advance(PeerState::Closing);
        self.announce(CALLER_TURNS);
    }

    /// Makes the leader answer, however long the connection has been idle.
    pub fn ping(self: &Arc<Self>) {
        self.ping_asked.store(true, Ordering::Release);
        self.announce(CALLER_TURNS);
    }

    /// I/O thread: gives the peer its connection.
    pub(crate) fn start(
        self: &Arc<Self>,
        handle: ConnectionHandle,
        connection: Connection,
        admission_deadline_ns: u64,
    ) {
        // Nobody holds the link for long: no connection means no work.
        self.driver.lock().start(handle, connection, admission_deadline_ns);
        self.announce(IO_TURNS);
    }

    /// The connection could not even be started, or no one is left to run it.
    pub(crate) fn fail_start(&self) {
        self.driver.lock().end(&self.core, CloseCause::Internal, 0);
    }

    /// Says that there is work, and does it if nobody else is at it.
    pub(crate) fn announce(self: &Arc<Self>, turns: usize) {
        if self.announced.fetch_add(1, Ordering::AcqRel) == 0 {
            self.run(None, turns);
        }
    }

    /// Does all the work there is; only for who has the baton.
    pub(crate) fn run(self: &Arc<Self>, mut delivery: Option<Delivery>, turns: usize) {
        for _ in 0..turns {
            let seen = self.announced.load(Ordering::Acquire);
            let progress = self.run_turn(delivery.take());
            let done = matches!(progress, Progress::Done);
            if done && self.announced.fetch_sub(seen, Ordering::AcqRel) == seen {
                self.arm();
                self.engine_state.events.wake_here();
                // The I/O thread may sleep for longer than what was noted here can wait, and fronts
                // rely on it (`send/front-sender.ts`); while it is awake this does nothing.
                self.engine_state.io_waker.wake_by(self.engine_state.events.due_ns());
                return;
            }
        }
        self.queues.io_handoff.push(self.clone());
        self.engine_state.io_waker.wake();
    }

    fn run_turn(self: &Arc<Self>, delivery: Option<Delivery>) -> Progress {
        GSO_WRITER.with_borrow_mut(|gso_writer| {
            let work = || {
                self.driver.lock().work(&self.core, delivery, std::time::Instant::now(), gso_writer)
            };
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
                self.engine_state.panics.fetch_add(1, Ordering::Relaxed);
                gso_writer.clear();
                self.driver.lock().abandon(&self.core);
                Progress::Done
            })
        })
    }

    /// Tells the I/O thread of the link's next timer when it is sooner than the one it knows.
    fn arm(self: &Arc<Self>) {
        if self.timer.sooner().is_some() && self.timer.mark_pending() {
            self.queues.timer_updates.push(self.clone());
        }
        // Also where it was on its way before, for a timer of then. Looked at once more: who moved it
        // closer before the push roused nobody.
        if let Some(timer_ns) = self.timer.sooner() {
            self.engine_state.io_waker.wake_by(timer_ns);
        }
    }

    /// I/O thread: the timer to wait for, when it is sooner than the one waited for.
    pub(crate) fn take_timer_update(&self) -> Option<u64> {
        self.timer.take_timer_update()
    }

    /// I/O thread: what has become of the timer that is waited for; `Due::Now` where it stands.
    pub(crate) fn timer_after(&self, armed_ns: u64) -> Due {
        self.timer.moved(armed_ns)
    }

    /// I/O thread: a timer that was waited for is due. Returns a later one to wait for, or does
    /// the work.
    pub(crate) fn take_due(self: &Arc<Self>, armed_ns: u64, now_ns: u64) -> Option<u64> {
        match self.timer.take_due(armed_ns, now_ns) {
            Due::Stale => None,
            Due::Later(later_ns) => Some(later_ns),
            Due::Now => {
                self.announce(IO_TURNS);
                None
            }
        }
    }
}

/// Sends what this thread holds. The worst that is left behind for any of those leaders.
pub fn uncork() -> Backlog {
    let mut left = Backlog::None;
    let corked = CORKED.with_borrow_mut(|corked| std::mem::take(&mut corked.0));
    let mut peers: Vec<Arc<Peer>> = Vec::new();
    for (peer, delivery) in corked {
        if !peer.enqueue(delivery) {
            left = Backlog::Full;
            continue;
        }
        if !peers.iter().any(|known| Arc::ptr_eq(known, &peer)) {
            peers.push(peer);
        }
    }
    for peer in &peers {
        peer.announce(CALLER_TURNS);
    }
    peers.iter().map(|peer| peer.backlog()).fold(left, Ord::max)
}

/// In the order of coming.
struct Corked(Vec<(Arc<Peer>, Delivery)>);

impl Drop for Corked {
    /// The thread ends: nobody is left to send them.
    fn drop(&mut self) {
        for (peer, delivery) in self.0.drain(..) {
            peer.report_drop(&delivery, peer.closed_reason());
        }
    }
}

thread_local! {
    static GSO_WRITER: RefCell<GsoWriter> = RefCell::new(GsoWriter::default());
    static CORKED: RefCell<Corked> = const { RefCell::new(Corked(Vec::new())) };
}

#[cfg(test)]
#[path = "peer_tests.rs"]
pub(crate) mod tests;
