//! Hot path: how copies go on the wire, or do not.
//!
//! One at a time: open a stream, write, finish, and have it sent before the next is touched, so
//! that a transaction that fits one datagram is never spread over two or mixed with another. The
//! `partial` copy is the one that flow or congestion control stopped half way.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use quinn_proto::{StreamId, VarInt, WriteError};

use crate::clock::NEVER_NS;
use crate::send::connection::Link;
use crate::send::outbox::Outbox;
use crate::send::outcomes::{Kind, Reason};
use crate::send::peer::{Peer, PeerState};

/// The copy between the queue and the wire.
pub(crate) struct Partial {
    pub(crate) stream: StreamId,
    rest: Bytes,
    finished: bool,
    until_ns: u64,
    /// Whether quinn-proto may hold bytes of it, or its end, that no datagram has carried yet.
    unsent: bool,
    /// Stream frames sent so far.
    frames: u64,
}

impl Link {
    /// Puts waiting copies on the wire for as long as the leader and the path allow.
    pub(crate) fn pump(
        &mut self,
        peer: &Arc<Peer>,
        now: Instant,
        now_ns: u64,
        outbox: &mut Outbox,
    ) {
        loop {
            if self.partial.is_some() {
                self.write_partial();
                self.transmit(peer, now, outbox);
                if self.partial.is_some() {
                    return;
                }
            }
            if !self.stalled.is_empty() || !self.take_next(peer, now_ns) {
                return;
            }
        }
    }

    /// Makes the next waiting copy the partial one, or ends it; false when there is none or it may
    /// not go.
    pub(crate) fn take_next(&mut self, peer: &Arc<Peer>, now_ns: u64) -> bool {
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
        let Some(stream) = self.take_stream(peer) else {
            return false;
        };
        let (Some(copy), Some((_, conn))) = (self.waiting.pop_front(), &self.connection) else {
            return false;
        };
        peer.unqueue();
        self.flights.push(stream.index(), copy.tx, copy.tag);
        self.partial = Some(Partial {
            stream,
            rest: copy.bytes,
            finished: false,
            until_ns: copy.until_ns,
            unsent: true,
            frames: conn.stats().frame_tx.stream,
        });
        true
    }

    pub(crate) fn write_partial(&mut self) {
        let (Some(partial), Some((_, conn))) = (&mut self.partial, &mut self.connection) else {
            return;
        };
        if partial.finished {
            return;
        }
        partial.unsent = true;
        let mut stream = conn.send_stream(partial.stream);
        while !partial.rest.is_empty() {
            // `write_chunks` moves what it took out of the slice.
            match stream.write_chunks(std::slice::from_mut(&mut partial.rest)) {
                Ok(_) => {}
                Err(WriteError::Blocked) => return,
                // Stopped or gone: its event tells the outcome.
                Err(_) => break,
            }
        }
        let _ = stream.finish();
        partial.finished = true;
    }

    /// Gathers all datagrams that the connection has ready.
    pub(crate) fn transmit(&mut self, peer: &Arc<Peer>, now: Instant, outbox: &mut Outbox) {
        let Some((_, conn)) = &mut self.connection else {
            return;
        };
        while self.stalled.is_empty() {
            let Some(transmit) = conn.poll_transmit(now, 1, &mut outbox.scratch) else {
                break;
            };
            if let Some(partial) = &mut self.partial {
                let frames = conn.stats().frame_tx.stream;
                if frames > partial.frames {
                    partial.frames = frames;
                    partial.unsent = transmit.size + FRAME_SLACK > usize::from(conn.current_mtu());
                }
            }
            if let Some(train) = outbox.push(&transmit, &peer.socket) {
                self.stalled.push_back(train);
            }
        }
        let Some(partial) = &self.partial else { return };
        if partial.finished && !partial.unsent {
            let index = partial.stream.index();
            self.partial = None;
            self.note_sent(peer, index);
        }
    }

    pub(crate) fn flush(&mut self, peer: &Arc<Peer>, outbox: &mut Outbox) {
        if let Some(train) = outbox.flush(&peer.socket) {
            self.stalled.push_back(train);
        }
    }

    pub(crate) fn note_sent(&mut self, peer: &Arc<Peer>, index: u64) {
        let at_ns = peer.shared.clock.now_ns();
        if let Some(flight) = self.flights.sent(index, at_ns) {
            peer.note_wire(flight.tx);
            peer.report_at(at_ns, Kind::Sent, flight.tx, flight.tag, 0, 0);
        }
    }

    /// Tells the outcome of a copy whose stream was opened, once.
    pub(crate) fn land(&mut self, peer: &Arc<Peer>, index: u64, kind: Kind, reason: Reason) {
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

    /// Drops the waiting copies that are of no more use, and a partial one.
    pub(crate) fn expire(&mut self, peer: &Arc<Peer>, now_ns: u64) {
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
        if let Some(partial) = self.partial.take_if(|partial| partial.until_ns <= now_ns) {
            if let Some((_, conn)) = &mut self.connection {
                let _ = conn.send_stream(partial.stream).reset(VarInt::from_u32(0));
            }
            self.land(peer, partial.stream.index(), Kind::Dropped, reason);
        }
        if let Some(partial) = &self.partial {
            next_ns = next_ns.min(partial.until_ns);
        }
        self.expiry_ns = next_ns;
    }

    /// Why copies wait: for the connection, for the bookkeeping, for this machine's socket, or for
    /// what the leader gives: a stream, its window, acknowledgements of what is on its way.
    pub(crate) fn expiry_reason(&self, peer: &Arc<Peer>) -> Reason {
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

    pub(crate) fn drop_waiting(&mut self, peer: &Peer, reason: Reason) {
        for copy in self.waiting.drain(..) {
            peer.unqueue();
            peer.report(Kind::Dropped, copy.tx, copy.tag, reason as u8, 0);
        }
        self.expiry_ns = NEVER_NS;
    }
}

/// A datagram with this much room left carried all that its stream had: quinn-proto fills it,
/// but for what it keeps free for the length of a frame that it takes for the last. A copy that
/// ends in so full a datagram counts as sent when it is acknowledged.
const FRAME_SLACK: usize = 8;
