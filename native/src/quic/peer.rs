//! Hot path: one leader's connection as all threads share it.
//!
//! No thread waits for another's work here. A thread with work for a connection (deliveries to
//! send, received datagrams, a timer) first enqueues it and then increments `announced`. The thread
//! that raises it from zero holds the drive token and does all pending work; the others continue:
//!
//! ```text
//!   sending thread ──┐                        ┌─▶ has the drive token: send, then other work
//!                    ├─▶ enqueue ─▶ announce ─┤
//!   I/O thread ──────┘                        └─▶ token taken: return, its holder does the work
//! ```
//!
//! A sending thread that finds no end of work (for example a flood from the leader) hands the drive
//! token to the I/O thread. A panic inside ends this connection only.
//!
//! A thread that processes transactions back to back corks their deliveries, and uncorks them when
//! it has no more transactions or has waited long enough. Each connection then receives all of its
//! deliveries together and sends them in as few datagrams and system calls as possible
//! (`connection`, `gso_batch`). Corked deliveries are visible to their own thread only.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use quinn_proto::{Connection, ConnectionHandle};

use crate::quic::connection::{ConnectionDriver, Turn};
use crate::quic::delivery::{Delivery, PeerState};
use crate::quic::engine_state::EngineState;
use crate::quic::event::CloseCause;
use crate::quic::gso_batch::{GsoWriter, Socket};
use crate::quic::limits::{CALLER_TURNS, CORKED_DELIVERIES_MAX, IO_TURNS};
use crate::quic::peer_core::PeerCore;
use crate::quic::send_result::SendResult;
use crate::quic::timer::Due;
use crate::sync::mutex_queue::MutexQueue;

/// One connection to one leader. Dereferences to `PeerCore`, the part that `ConnectionDriver` may
/// use.
pub struct Peer {
    core: PeerCore,
    announced: AtomicUsize,
    driver: Mutex<ConnectionDriver>,
    pub(crate) queues: Arc<IoQueues>,
}

/// Queues from connections to the I/O thread, their only consumer.
#[derive(Default)]
pub(crate) struct IoQueues {
    /// Connections whose next timer moved closer.
    pub(crate) timer_updates: MutexQueue<Arc<Peer>>,
    /// Connections whose drive token passes to the I/O thread.
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

    /// Sends a delivery on this thread, or queues it for the thread that holds the drive token.
    pub fn send(self: &Arc<Self>, delivery: Delivery) -> SendResult {
        if self.state() >= PeerState::Closing {
            self.report_closed(&delivery);
            return SendResult::Rejected;
        }
        if !self.reserve_place() {
            return SendResult::Saturated;
        }
        let order = Ordering::AcqRel;
        let tx = delivery.tx;
        if self.announced.compare_exchange(0, 1, order, Ordering::Acquire).is_ok() {
            if self.run(Some(delivery), CALLER_TURNS) {
                return SendResult::Saturated;
            }
        } else if self.is_full_for(&delivery, 1) {
            self.unqueue();
            self.count_evicted();
            return SendResult::Saturated;
        } else {
            self.deliveries.push(delivery);
            self.announce(CALLER_TURNS);
        }
        if self.last_sent_tx.load(Ordering::Acquire) == tx {
            SendResult::Sent
        } else {
            SendResult::Queued
        }
    }

    /// Keeps a delivery on this thread until `uncork`, or until `CORKED_DELIVERIES_MAX` are kept.
    pub fn cork(self: &Arc<Self>, delivery: Delivery) -> SendResult {
        if self.state() >= PeerState::Closing {
            self.report_closed(&delivery);
            return SendResult::Rejected;
        }
        if self.is_full_for(&delivery, 0) {
            self.count_evicted();
            return SendResult::Saturated;
        }
        if CORKED.with_borrow(|corked| corked.0.len() >= CORKED_DELIVERIES_MAX) {
            uncork();
        }
        CORKED.with_borrow_mut(|corked| corked.0.push((self.clone(), delivery)));
        SendResult::Queued
    }

    /// Closes once all deliveries are acknowledged, at `by_ns` at the latest.
    pub fn close(self: &Arc<Self>, by_ns: u64) {
        self.close_by_ns.fetch_min(by_ns, Ordering::AcqRel);
        self.advance(PeerState::Closing);
        self.announce(CALLER_TURNS);
    }

    /// Sends a ping, so that the leader responds however long the connection has been idle.
    pub fn ping(self: &Arc<Self>) {
        self.ping_requested.store(true, Ordering::Release);
        self.announce(CALLER_TURNS);
    }

    /// I/O thread: starts the peer's connection.
    pub(crate) fn start(
        self: &Arc<Self>,
        handle: ConnectionHandle,
        connection: Connection,
        admission_deadline_ns: u64,
    ) {
        // The lock is free or held briefly: without a connection there is no work.
        self.driver.lock().start(handle, connection, admission_deadline_ns);
        self.announce(IO_TURNS);
    }

    /// The connection could not be started, or no thread is left to run it.
    pub(crate) fn fail_start(&self) {
        self.driver.lock().end(&self.core, CloseCause::Internal, 0);
    }

    /// Announces work, and does it unless another thread holds the drive token.
    pub(crate) fn announce(self: &Arc<Self>, turns: usize) {
        if self.announced.fetch_add(1, Ordering::AcqRel) == 0 {
            self.run(None, turns);
        }
    }

    /// Does all pending work; only for the thread that holds the drive token. Returns
    /// `Turn::saturated` of the delivery.
    pub(crate) fn run(self: &Arc<Self>, mut delivery: Option<Delivery>, turns: usize) -> bool {
        let mut saturated = false;
        for _ in 0..turns {
            let seen = self.announced.load(Ordering::Acquire);
            let turn = self.run_turn(delivery.take());
            saturated |= turn.saturated;
            if !turn.more && self.announced.fetch_sub(seen, Ordering::AcqRel) == seen {
                self.arm();
                self.engine_state.events.wake_here();
                // The I/O thread may be asleep beyond the deadline of events recorded here. Does
                // nothing while it is awake.
                self.engine_state.io_waker.wake_by(self.engine_state.events.due_ns());
                return saturated;
            }
        }
        self.queues.io_handoff.push(self.clone());
        self.engine_state.io_waker.wake();
        saturated
    }

    fn run_turn(self: &Arc<Self>, delivery: Option<Delivery>) -> Turn {
        GSO_WRITER.with_borrow_mut(|gso_writer| {
            let work = || {
                self.driver.lock().work(&self.core, delivery, std::time::Instant::now(), gso_writer)
            };
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
                self.engine_state.panics.fetch_add(1, Ordering::Relaxed);
                gso_writer.clear();
                self.driver.lock().abandon(&self.core);
                Turn { more: false, saturated: false }
            })
        })
    }

    /// Passes the connection's next timer to the I/O thread when it is sooner than the one it
    /// knows.
    fn arm(self: &Arc<Self>) {
        if self.timer.sooner().is_some() && self.timer.mark_pending() {
            self.queues.timer_updates.push(self.clone());
        }
        // Also when an update was already pending for an earlier value. Checked once more, because
        // a thread that moved the timer closer before the push did not wake the I/O thread.
        if let Some(timer_ns) = self.timer.sooner() {
            self.engine_state.io_waker.wake_by(timer_ns);
        }
    }

    /// I/O thread: an armed timer is due. Returns a later time to wait for, or does the work.
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

/// Sends the deliveries that this thread has corked.
pub fn uncork() {
    let corked = CORKED.with_borrow_mut(|corked| std::mem::take(&mut corked.0));
    let mut peers: Vec<Arc<Peer>> = Vec::new();
    for (peer, delivery) in corked {
        if peer.enqueue(delivery) && !peers.iter().any(|known| Arc::ptr_eq(known, &peer)) {
            peers.push(peer);
        }
    }
    for peer in &peers {
        peer.announce(CALLER_TURNS);
    }
}

/// In arrival order.
struct Corked(Vec<(Arc<Peer>, Delivery)>);

impl Drop for Corked {
    /// The thread ends, so no other will send them.
    fn drop(&mut self) {
        for (peer, delivery) in self.0.drain(..) {
            peer.report_closed(&delivery);
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
