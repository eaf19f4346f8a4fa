//! Hot path: one leader's connection but for its protocol side: what threads put down for who has
//! the baton, and what that one tells of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use quinn_proto::ConnectionEvent;

use crate::limits::INBOX_DATAGRAMS_MAX;
use crate::quic::connection_stats::Figures;
use crate::quic::copy::{PeerState, TxCopy};
use crate::quic::engine_state::Shared;
use crate::quic::event_ring::{Kind, Reason, Record};
use crate::quic::gso_batch::Socket;
use crate::quic::timer::Alarm;
use crate::sync::clock::NEVER_NS;
use crate::sync::mutex_queue::Tray;

/// What a connection's protocol side and other threads both look at.
pub struct PeerCore {
    /// The handle that names it outside.
    pub id: u32,
    /// The leader's address.
    pub address: SocketAddr,
    pub(crate) socket: Arc<Socket>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) queue_max: usize,
    inbox: Tray<ConnectionEvent>,
    pub(super) copies: Tray<TxCopy>,
    state: AtomicU8,
    pub(super) queued: AtomicUsize,
    /// When to close, with what is in hand by then or without it; NEVER_NS: not asked to.
    pub(super) close_by_ns: AtomicU64,
    pub(super) ping_asked: AtomicBool,
    pub(super) alarm: Alarm,
    /// The transaction that went on the wire last; NEVER_NS: none.
    pub(super) last_sent_tx: AtomicU64,
    pub(crate) latest: Figures,
}

impl PeerCore {
    pub(super) fn new(
        id: u32,
        address: SocketAddr,
        socket: Arc<Socket>,
        shared: Arc<Shared>,
        queue_max: usize,
    ) -> Self {
        Self {
            id,
            address,
            socket,
            shared,
            queue_max,
            inbox: Tray::default(),
            copies: Tray::default(),
            state: AtomicU8::new(PeerState::Connecting as u8),
            queued: AtomicUsize::new(0),
            close_by_ns: AtomicU64::new(NEVER_NS),
            ping_asked: AtomicBool::new(false),
            alarm: Alarm::default(),
            last_sent_tx: AtomicU64::new(NEVER_NS),
            latest: Figures::default(),
        }
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

    /// Puts a copy down for whoever has the baton; announce afterwards. False where it was refused.
    pub(crate) fn put_down(&self, copy: TxCopy) -> bool {
        self.has_place(&copy) && {
            self.copies.push(copy);
            true
        }
    }

    /// Takes a place in the queue, or tells that there is none.
    pub(super) fn has_place(&self, copy: &TxCopy) -> bool {
        let has_place = self.queued.fetch_add(1, Ordering::AcqRel) < self.queue_max;
        if !has_place {
            self.queued.fetch_sub(1, Ordering::AcqRel);
            self.report_drop(copy, Reason::QueueFull);
        }
        has_place
    }

    /// Whether somebody asked for a ping since the last call.
    pub(crate) fn take_ping(&self) -> bool {
        self.ping_asked.load(Ordering::Relaxed) && self.ping_asked.swap(false, Ordering::AcqRel)
    }

    /// When to close; NEVER_NS when not asked to.
    pub(crate) fn close_by_ns(&self) -> u64 {
        self.close_by_ns.load(Ordering::Acquire)
    }

    /// I/O thread: puts a datagram down; announce afterwards.
    pub(crate) fn deliver(&self, event: ConnectionEvent) {
        if self.inbox.len() >= INBOX_DATAGRAMS_MAX {
            self.shared.inbox_drops.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.inbox.push(event);
    }

    pub(crate) fn set_timer(&self, timer_ns: u64) {
        self.alarm.set(timer_ns);
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
