//! Hot path: how copies go on the wire, or do not.
//!
//! One datagram at a time: open a stream, write, finish, and have it sent before the next is touched,
//! so that a transaction that fits one datagram is never spread over two. Where several wait, whole
//! ones share a datagram. The `load` is what flow or congestion control stopped half way.

use std::time::Instant;

use quinn_proto::VarInt;

use crate::quic::congestion::notes_window;
use crate::quic::connection::{Link, Load};
use crate::quic::copy::PeerState;
use crate::quic::event_ring::{Kind, Reason};
use crate::quic::gso_batch::Outbox;
use crate::quic::peer_core::PeerCore;
use crate::sync::clock::NEVER_NS;

impl Link {
    /// Puts waiting copies on the wire for as long as the leader and the path allow.
    pub(crate) fn pump(&mut self, peer: &PeerCore, now: Instant, now_ns: u64, outbox: &mut Outbox) {
        loop {
            if self.load.is_some() || self.is_blocked {
                self.write_load();
                self.fill_load(peer, now_ns);
                self.transmit(peer, now, outbox);
            }
            let is_held_up = self.load.is_some() || self.is_blocked || !self.stalled.is_empty();
            if is_held_up || !self.take_next(peer, now_ns) {
                return;
            }
        }
    }

    /// Makes the next waiting copy the load, or ends it; false when there is none or it may not go.
    fn take_next(&mut self, peer: &PeerCore, now_ns: u64) -> bool {
        let Some((_, conn)) = &mut self.connection else {
            return false;
        };
        if conn.is_handshaking() || conn.is_closed() {
            return false;
        }
        let Some(first) = self.waiting.front() else {
            return false;
        };
        if first.until_ns <= now_ns {
            self.expire(peer, now_ns);
            return !self.waiting.is_empty();
        }
        if first.bytes.len() as u64 > self.stream_bytes_max {
            if let Some(copy) = self.waiting.pop_front() {
                peer.unqueue();
                let reason = Reason::StreamTooLarge as u8;
                peer.report(Kind::Dropped, copy.tx, copy.tag, reason, 0);
            }
            return true;
        }
        if self.flights.is_full() {
            return false;
        }
        self.take(peer, 0)
    }

    /// Makes the waiting copy at `place` the load; false where the leader grants no stream.
    pub(crate) fn take(&mut self, peer: &PeerCore, place: usize) -> bool {
        let Some(stream) = self.take_stream(peer) else {
            return false;
        };
        let Some(copy) = self.waiting.remove(place) else {
            return false;
        };
        peer.unqueue();
        self.flights.push(stream.index(), copy.tx, copy.tag);
        self.load = Some(Load::new(stream, copy));
        true
    }

    /// Gathers all datagrams that the connection has ready.
    pub(crate) fn transmit(&mut self, peer: &PeerCore, now: Instant, outbox: &mut Outbox) {
        let Some((_, conn)) = &mut self.connection else {
            return;
        };
        while self.stalled.is_empty() {
            let poll = || conn.poll_transmit(now, 1, &mut outbox.scratch);
            let (transmit, asked) = notes_window(poll);
            let Some(transmit) = transmit else {
                self.is_blocked = asked;
                if !asked {
                    self.unload_sent(peer);
                }
                return;
            };
            if let Some(load) = &mut self.load {
                load.note_datagram(transmit.size, conn.current_mtu());
            }
            if let Some(train) = outbox.push(&transmit, &peer.socket) {
                self.stalled.push_back(train);
            }
        }
    }

    pub(crate) fn flush(&mut self, peer: &PeerCore, outbox: &mut Outbox) {
        if let Some(train) = outbox.flush(&peer.socket) {
            self.stalled.push_back(train);
        }
    }

    pub(crate) fn note_sent(&mut self, peer: &PeerCore, index: u64) {
        let at_ns = peer.shared.clock.now_ns();
        if let Some(flight) = self.flights.sent(index, at_ns) {
            peer.note_wire(flight.tx);
            let waited = u64::from(!self.prompt);
            peer.report_at(at_ns, Kind::Sent, flight.tx, flight.tag, 0, waited);
        }
    }

    /// Tells the outcome of a copy whose stream was opened, once.
    pub(crate) fn land(&mut self, peer: &PeerCore, index: u64, kind: Kind, reason: Reason) {
        let Some(flight) = self.flights.land(index) else {
            return;
        };
        let at_ns = peer.shared.clock.now_ns();
        let elapsed_ns = match flight.sent_ns {
            0 => 0,
            sent_ns => at_ns.saturating_sub(sent_ns),
        };
        peer.report_at(at_ns, kind, flight.tx, flight.tag, reason as u8, elapsed_ns);
    }

    /// Drops the waiting copies that are of no more use, and those of the load that cannot be on the
    /// wire as a whole. The others' outcome comes with the window, or with the acknowledgement.
    pub(crate) fn expire(&mut self, peer: &PeerCore, now_ns: u64) {
        let reason = self.expiry_reason(peer);
        let mut next_ns = NEVER_NS;
        self.waiting.retain(|copy| {
            if copy.until_ns > now_ns {
                next_ns = next_ns.min(copy.until_ns);
                return true;
            }
            peer.unqueue();
            peer.report(Kind::Dropped, copy.tx, copy.tag, reason as u8, 0);
            false
        });
        while let Some(stream) = self.load.as_ref().and_then(|load| load.expired(now_ns)) {
            self.unload(stream);
            if let Some((_, conn)) = &mut self.connection {
                let _ = conn.send_stream(stream).reset(VarInt::from_u32(0));
            }
            self.land(peer, stream.index(), Kind::Dropped, reason);
        }
        self.expiry_ns = next_ns.min(self.load.as_ref().map_or(NEVER_NS, Load::until_ns));
    }

    /// Why copies wait: for the connection, for the bookkeeping, for this machine's socket, or for
    /// what the leader gives: a stream, its window, acknowledgements of what is on its way.
    pub(crate) fn expiry_reason(&self, peer: &PeerCore) -> Reason {
        if self.give_up_ns != NEVER_NS && peer.state() < PeerState::Connected {
            Reason::NotConnected
        } else if self.flights.is_full() {
            Reason::TooManyInFlight
        } else if !self.stalled.is_empty() {
            Reason::Expired
        } else {
            Reason::LeaderSaturated
        }
    }

    pub(crate) fn drop_waiting(&mut self, peer: &PeerCore, reason: Reason) {
        for copy in self.waiting.drain(..) {
            peer.unqueue();
            peer.report(Kind::Dropped, copy.tx, copy.tag, reason as u8, 0);
        }
        self.expiry_ns = NEVER_NS;
    }
}

#[cfg(test)]
#[path = "transmit_tests.rs"]
mod tests;
