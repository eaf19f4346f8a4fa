//! Hot path: one leader's connection except its protocol side: the inboxes that threads fill for
//! the holder of the drive token, and the results that it reports.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use quinn_proto::ConnectionEvent;

use crate::quic::connection_stats::ConnectionStats;
use crate::quic::delivery::{Delivery, PeerState};
use crate::quic::engine_state::EngineState;
use crate::quic::event::{Kind, Reason, Record};
use crate::quic::gso_batch::Socket;
use crate::quic::limits::INBOX_DATAGRAMS_MAX;
use crate::quic::priority_queue::total_order_of;
use crate::quic::timer::ConnectionTimer;
use crate::sync::clock::NEVER_NS;
use crate::sync::mutex_queue::MutexQueue;

/// No transaction has this number.
const NO_TX: u64 = u64::MAX;

/// State that a connection's protocol side and other threads share.
pub struct PeerCore {
    /// The connection's handle.
    pub id: u32,
    /// The leader's address.
    pub address: SocketAddr,
    pub(crate) socket: Arc<Socket>,
    pub(crate) engine_state: Arc<EngineState>,
    pub(crate) queue_max: usize,
    inbox: MutexQueue<ConnectionEvent>,
    pub(super) deliveries: MutexQueue<Delivery>,
    state: AtomicU8,
    pub(super) queued: AtomicUsize,
    /// `PriorityQueue::least_rank` after the last turn.
    least_rank: AtomicI64,
    /// When to close, whether or not deliveries are pending; NEVER_NS: no close requested.
    pub(super) close_by_ns: AtomicU64,
    pub(super) ping_requested: AtomicBool,
    pub(super) timer: ConnectionTimer,
    /// The transaction sent last, or NO_TX.
    pub(super) last_sent_tx: AtomicU64,
    pub(crate) latest: ConnectionStats,
}

impl PeerCore {
    pub(super) fn new(
        id: u32,
        address: SocketAddr,
        socket: Arc<Socket>,
        engine_state: Arc<EngineState>,
        queue_max: usize,
    ) -> Self {
        Self {
            id,
            address,
            socket,
            engine_state,
            queue_max,
            inbox: MutexQueue::default(),
            deliveries: MutexQueue::default(),
            state: AtomicU8::new(PeerState::Connecting as u8),
            queued: AtomicUsize::new(0),
            least_rank: AtomicI64::new(i64::MIN),
            close_by_ns: AtomicU64::new(NEVER_NS),
            ping_requested: AtomicBool::new(false),
            timer: ConnectionTimer::default(),
            last_sent_tx: AtomicU64::new(NO_TX),
            latest: ConnectionStats::default(),
        }
    }

    /// The state of the connection.
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

    /// Moves the state forward, never back.
    pub(crate) fn advance(&self, state: PeerState) {
        self.state.fetch_max(state as u8, Ordering::AcqRel);
    }

    /// Deliveries waiting to be sent.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// State, rtt_us, queued, in flight, mtu, congestion window, lost and sent packets, datagrams
    /// received, streams left.
    #[must_use]
    pub fn stats(&self) -> [u64; 10] {
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
            latest.received.load(Ordering::Relaxed),
            u64::from(latest.streams_left.load(Ordering::Relaxed)),
        ]
    }

    /// Passes a delivery to the holder of the drive token; announce afterwards. False if it was
    /// rejected.
    pub(crate) fn enqueue(&self, delivery: Delivery) -> bool {
        let is_reserved = self.reserve_place();
        if is_reserved {
            self.deliveries.push(delivery);
        } else {
            self.report_evicted(&delivery);
        }
        is_reserved
    }

    /// Reserves a place if there is one. The queue keeps the best `queue_max`; as many again may
    /// have arrived since the holder of the drive token last looked.
    pub(super) fn reserve_place(&self) -> bool {
        let is_reserved = self.queued.fetch_add(1, Ordering::AcqRel) < 2 * self.queue_max;
        if !is_reserved {
            self.unqueue();
            self.count_evicted();
        }
        is_reserved
    }

    /// Whether the queue is full of deliveries that rank as high as this one or higher, as far as
    /// is known outside of a turn, `places` of its own included. The queue would evict this one
    /// after the edge has accepted the transaction.
    pub(super) fn is_full_for(&self, delivery: &Delivery, places: usize) -> bool {
        self.queued() >= self.queue_max + places && {
            let rank = self.engine_state.landed_shares.rank_of(delivery.offer);
            total_order_of(rank) <= self.least_rank.load(Ordering::Relaxed)
        }
    }

    /// The end of a turn: what `is_full_for` compares with.
    pub(crate) fn set_least_rank(&self, rank: i64) {
        self.least_rank.store(rank, Ordering::Relaxed);
    }

    pub(super) fn count_evicted(&self) {
        self.engine_state.deliveries_evicted.fetch_add(1, Ordering::Relaxed);
    }

    /// The queue is full, and this delivery has the least rank.
    pub(super) fn report_evicted(&self, delivery: &Delivery) {
        let reason = match self.state() {
            PeerState::Connecting | PeerState::Connected => Reason::QueueFull,
            _ => Reason::LeaderSaturated,
        };
        self.report(Kind::Dropped, delivery.tx, delivery.tag, reason as u8, 0);
    }

    /// Whether a ping was requested since the last call.
    pub(crate) fn take_ping(&self) -> bool {
        self.ping_requested.load(Ordering::Relaxed)
            && self.ping_requested.swap(false, Ordering::AcqRel)
    }

    /// When to close; NEVER_NS when no close was requested.
    pub(crate) fn close_by_ns(&self) -> u64 {
        self.close_by_ns.load(Ordering::Acquire)
    }

    /// I/O thread: enqueues a datagram; announce afterwards.
    pub(crate) fn deliver(&self, event: ConnectionEvent) {
        if self.inbox.len() >= INBOX_DATAGRAMS_MAX {
            self.engine_state.inbox_drops.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.inbox.push(event);
    }

    pub(crate) fn set_timer(&self, timer_ns: u64) {
        self.timer.set(timer_ns);
    }

    pub(crate) fn next_delivery(&self) -> Option<Delivery> {
        self.deliveries.pop()
    }

    pub(crate) fn next_event(&self) -> Option<ConnectionEvent> {
        self.inbox.pop()
    }

    /// Records that a delivery of transaction `tx` is on the wire.
    pub(crate) fn record_on_wire(&self, tx: u64) {
        self.last_sent_tx.store(tx, Ordering::Release);
    }

    /// A delivery left the queue.
    pub(crate) fn unqueue(&self) {
        self.queued.fetch_sub(1, Ordering::AcqRel);
    }

    /// Reports a delivery that no connection takes.
    pub(crate) fn report_closed(&self, delivery: &Delivery) {
        let reason = self.engine_state.closed_reason() as u8;
        self.report(Kind::Dropped, delivery.tx, delivery.tag, reason, 0);
        self.engine_state.events.wake();
    }

    /// Appends an event record with the current time.
    pub(crate) fn report(&self, kind: Kind, tx: u64, tag: u32, reason: u8, detail: u64) {
        let at_ns = self.engine_state.clock.now_ns();
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
        self.engine_state.events.push(record);
    }
}
