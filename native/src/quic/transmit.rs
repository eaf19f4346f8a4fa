//! Hot path: sends deliveries, or drops them. The best-paid that waits is always the next to leave.
//!
//! One delivery at a time: open a stream, write, finish, and send it before the next is started, so
//! that a transaction that fits one datagram is never spread over two. If several wait, complete
//! ones share a datagram. The `DatagramBatch` is what flow or congestion control stopped half way.

use std::sync::atomic::Ordering;
use std::time::Instant;

use quinn_proto::VarInt;

use crate::quic::congestion::poll_noting_window;
use crate::quic::connection::{ConnectionDriver, DatagramBatch};
use crate::quic::delivery::PeerState;
use crate::quic::event::{Kind, Reason};
use crate::quic::gso_batch::GsoWriter;
use crate::quic::limits::EXPIRY_INTERVAL_NS;
use crate::quic::peer_core::PeerCore;
use crate::sync::clock::NEVER_NS;

impl ConnectionDriver {
    /// Sends queued deliveries while the leader and the path allow.
    pub(crate) fn send_queued(
        &mut self,
        peer: &PeerCore,
        now: Instant,
        now_ns: u64,
        gso_writer: &mut GsoWriter,
    ) {
        loop {
            if self.batch.is_some() || self.is_blocked {
                self.write_batch();
                self.fill_batch(peer, now_ns);
                self.transmit(peer, now, gso_writer);
            }
            let is_waiting =
                self.batch.is_some() || self.is_blocked || !self.unsent_batches.is_empty();
            self.waits_for_leader = false;
            if is_waiting || !(self.start_next(peer, now_ns) || self.may_retry(peer, now_ns)) {
                return;
            }
        }
    }

    /// Records that deliveries wait for the leader, or that none does; whether the window has room
    /// again since then.
    fn may_retry(&mut self, peer: &PeerCore, now_ns: u64) -> bool {
        if self.queue.is_empty() {
            self.window.drained(now_ns);
            return false;
        }
        let is_admitted = self.admission_deadline_ns == NEVER_NS && !self.ended;
        if !is_admitted || self.in_flight.is_full() || self.stream_room(peer, 1) > 0 {
            return false;
        }
        let rtt_us = peer.latest.rtt_us.load(Ordering::Relaxed);
        self.window.record_blocked(now_ns, rtt_us, self.opened_streams.len());
        self.waits_for_leader = true;
        self.stream_room(peer, 1) > 0
    }

    /// Makes the next queued delivery the batch, or ends it; false when there is none or it may not
    /// go.
    fn start_next(&mut self, peer: &PeerCore, now_ns: u64) -> bool {
        let Some((_, conn)) = &self.connection else {
            return false;
        };
        if self.queue.is_empty() || conn.is_handshaking() || conn.is_closed() {
            return false;
        }
        self.pack(peer);
        let Some(first) = self.queue.first() else {
            return false;
        };
        if first.until_ns <= now_ns {
            self.expire(peer, now_ns);
            return !self.queue.is_empty();
        }
        if first.bytes.len() as u64 > self.stream_bytes_max {
            if let Some(delivery) = self.queue.remove(0) {
                peer.unqueue();
                let reason = Reason::StreamTooLarge as u8;
                peer.report(Kind::Dropped, delivery.tx, delivery.tag, reason, 0);
            }
            return true;
        }
        if self.in_flight.is_full() {
            return false;
        }
        self.start_delivery(peer, 0)
    }

    /// Makes the queued delivery at index `position` the batch; false if the leader grants no
    /// stream.
    pub(crate) fn start_delivery(&mut self, peer: &PeerCore, position: usize) -> bool {
        let Some(stream) = self.take_stream(peer) else {
            return false;
        };
        let Some(delivery) = self.queue.remove(position) else {
            return false;
        };
        peer.unqueue();
        self.in_flight.push(stream.index(), delivery.tx, delivery.tag);
        self.batch = Some(DatagramBatch::new(stream, delivery));
        true
    }

    /// Collects all datagrams that the connection has ready.
    pub(crate) fn transmit(&mut self, peer: &PeerCore, now: Instant, gso_writer: &mut GsoWriter) {
        let Some((_, conn)) = &mut self.connection else {
            return;
        };
        while self.unsent_batches.is_empty() {
            let poll = || conn.poll_transmit(now, 1, &mut gso_writer.scratch);
            let (transmit, was_window_read) = poll_noting_window(poll);
            let Some(transmit) = transmit else {
                self.is_blocked = was_window_read;
                if !was_window_read {
                    self.record_batch_sent(peer);
                }
                return;
            };
            if let Some(batch) = &mut self.batch {
                batch.record_datagram(transmit.size, conn.current_mtu());
            }
            let is_probe = transmit.size > usize::from(conn.current_mtu());
            self.unsent_batches.extend(gso_writer.push(&transmit, &peer.socket));
            if is_probe {
                // If the interface refuses its size, it refuses all datagrams of the same call.
                self.unsent_batches.extend(gso_writer.flush(&peer.socket));
            }
        }
    }

    pub(crate) fn flush(&mut self, peer: &PeerCore, gso_writer: &mut GsoWriter) {
        self.unsent_batches.extend(gso_writer.flush(&peer.socket));
    }

    pub(crate) fn record_sent(&mut self, peer: &PeerCore, index: u64) {
        let at_ns = peer.engine_state.clock.now_ns();
        if let Some(delivery) = self.in_flight.sent(index, at_ns) {
            peer.record_on_wire(delivery.tx);
            let waited = u64::from(!self.is_immediate);
            peer.report_at(at_ns, Kind::Sent, delivery.tx, delivery.tag, 0, waited);
        }
    }

    /// Reports the outcome of a delivery whose stream was opened, once.
    pub(crate) fn resolve(&mut self, peer: &PeerCore, index: u64, kind: Kind, reason: Reason) {
        let Some(delivery) = self.in_flight.resolve(index) else {
            return;
        };
        let at_ns = peer.engine_state.clock.now_ns();
        let elapsed_ns = match delivery.sent_ns {
            0 => 0,
            sent_ns => at_ns.saturating_sub(sent_ns),
        };
        peer.report_at(at_ns, kind, delivery.tx, delivery.tag, reason as u8, elapsed_ns);
    }

    /// Drops expired queued deliveries, and expired ones of the batch that cannot be completely on
    /// the wire. The others' outcome comes with the window, or with the acknowledgement.
    pub(crate) fn expire(&mut self, peer: &PeerCore, now_ns: u64) {
        let reason = self.expiry_reason(peer);
        let next_ns = self.queue.expire(now_ns, |delivery| {
            peer.unqueue();
            peer.report(Kind::Dropped, delivery.tx, delivery.tag, reason as u8, 0);
        });
        while let Some(stream) = self.batch.as_ref().and_then(|batch| batch.expired(now_ns)) {
            self.remove_from_batch(stream);
            if let Some((_, conn)) = &mut self.connection {
                let _ = conn.send_stream(stream).reset(VarInt::from_u32(0));
            }
            self.resolve(peer, stream.index(), Kind::Dropped, reason);
        }
        let next_ns = next_ns.min(self.batch.as_ref().map_or(NEVER_NS, DatagramBatch::until_ns));
        // Each of a long queue expires at a time of its own, and a search visits all of them.
        self.expiry_ns = next_ns.max(now_ns.saturating_add(EXPIRY_INTERVAL_NS));
    }

    /// Why deliveries wait: for the connection, for in-flight capacity, for this machine's socket,
    /// or for the leader: stream credit, its window, acknowledgements of what is in flight.
    pub(crate) fn expiry_reason(&self, peer: &PeerCore) -> Reason {
        if self.admission_deadline_ns != NEVER_NS && peer.state() < PeerState::Connected {
            Reason::NotConnected
        } else if self.in_flight.is_full() {
            Reason::TooManyInFlight
        } else if !self.unsent_batches.is_empty() {
            Reason::Expired
        } else {
            Reason::LeaderSaturated
        }
    }

    pub(crate) fn drop_waiting(&mut self, peer: &PeerCore, reason: Reason) {
        for delivery in self.queue.take_all() {
            peer.unqueue();
            peer.report(Kind::Dropped, delivery.tx, delivery.tag, reason as u8, 0);
        }
        self.expiry_ns = NEVER_NS;
    }
}

#[cfg(test)]
#[path = "transmit_tests.rs"]
mod tests;
