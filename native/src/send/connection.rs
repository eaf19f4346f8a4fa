//! Hot path: the protocol side of one connection, touched only by who has its baton.
//!
//! It feeds what arrived and the time to quinn-proto, tells what comes of it (`Connected`,
//! `Admitted`, `Closed`, the outcome of each copy), and answers. How copies go out is in
//! `copies`. An ended link stays until quinn-proto has said goodbye, and drops what still comes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use quinn_proto::{
    Connection, ConnectionError, ConnectionHandle, Dir, EndpointEvent, Event, StreamEvent,
    StreamId, VarInt,
};

use crate::limits::{
    DATAGRAMS_A_TURN, IDLE_AFTER_NS, IDLE_GRID_NS, PROMPT_MAX, PROMPT_PART, STALL_RETRY_NS,
    STREAMS_AHEAD_MAX,
};
use crate::send::flights::Flights;
use crate::send::load::Load;
use crate::send::outbox::{Outbox, Train};
use crate::send::outcomes::{EndCause, Kind, Reason};
use crate::send::peer::{Peer, PeerState, TxCopy};
use crate::send::terms::stream_bytes_max;
use crate::sync::clock::NEVER_NS;

/// Whether a turn did all the work there was.
pub(crate) enum Progress {
    Done,
    More,
}

/// The connection and the copies in its hands.
pub(crate) struct Link {
    pub(crate) connection: Option<(ConnectionHandle, Connection)>,
    pub(crate) ended: bool,
    /// Nothing of it was sent yet: its first datagram waits for nobody's answer.
    is_new: bool,
    /// The first stream must be granted by then.
    pub(crate) give_up_ns: u64,
    /// What the leader announced that it takes on one stream; 0 before the handshake.
    pub(crate) stream_bytes_max: u64,
    pub(crate) waiting: VecDeque<TxCopy>,
    /// When the first of the waiting copies is of no more use.
    pub(crate) expiry_ns: u64,
    pub(crate) flights: Flights,
    /// Streams that were opened to learn of the grant; the next copies take them.
    pub(crate) spares: VecDeque<StreamId>,
    pub(crate) load: Option<Load>,
    /// Whether quinn-proto has something to send that the window or the pacer stopped.
    pub(crate) is_blocked: bool,
    /// Whether what goes out now came in this turn, with few others, and found nobody waiting.
    pub(crate) prompt: bool,
    /// Datagrams that the socket had no room for.
    pub(crate) stalled: VecDeque<Train>,
    /// Whether there is a bug.
    #[cfg(test)]
    pub(crate) is_broken: bool,
}

impl Link {
    pub(crate) fn new(in_flight_max: usize) -> Self {
        Self {
            connection: None,
            ended: false,
            is_new: false,
            give_up_ns: NEVER_NS,
            stream_bytes_max: 0,
            waiting: VecDeque::new(),
            expiry_ns: NEVER_NS,
            flights: Flights::new(in_flight_max),
            spares: VecDeque::new(),
            load: None,
            is_blocked: false,
            prompt: false,
            stalled: VecDeque::new(),
            #[cfg(test)]
            is_broken: false,
        }
    }

    pub(crate) fn start(&mut self, handle: ConnectionHandle, conn: Connection, give_up_ns: u64) {
        self.connection = Some((handle, conn));
        self.is_new = true;
        self.give_up_ns = give_up_ns;
    }

    /// Does what there is to do: copies first, then what arrived, then timers.
    pub(crate) fn work(
        &mut self,
        peer: &Arc<Peer>,
        copy: Option<TxCopy>,
        now: Instant,
        outbox: &mut Outbox,
    ) -> Progress {
        let now_ns = peer.shared.clock.ns(now);
        let mut came = 0;
        for copy in copy.into_iter().chain(std::iter::from_fn(|| peer.next_copy())) {
            self.expiry_ns = self.expiry_ns.min(copy.until_ns);
            self.waiting.push_back(copy);
            came += 1;
        }
        #[cfg(test)]
        assert!(!self.is_broken, "as a bug would");
        // Its own announcement may have been heard in the turn of a copy, which may have to wait.
        let mut wants_sent = std::mem::take(&mut self.is_new);
        if peer.take_ping()
            && let Some((_, conn)) = &mut self.connection
        {
            conn.ping();
            wants_sent = true;
        }
        if self.ended {
            self.drop_waiting(peer, peer.closed_reason());
        } else if came > 0 {
            self.arrange(peer, came);
            let few = PROMPT_MAX.min(peer.queue_max / PROMPT_PART);
            self.prompt = came <= few && self.waiting.len() == came && self.load.is_none();
            self.pump(peer, now, now_ns, outbox);
            self.prompt = false;
            self.flush(peer, outbox);
        }
        let arrived = self.receive(peer);
        let timed = self.keep_time(peer, now, now_ns);
        if arrived > 0 || timed || came == 0 || wants_sent {
            self.answer(peer, now, now_ns, outbox);
        }
        self.tell_endpoint(peer);
        peer.set_timer(self.next_timer_ns(peer, now_ns));
        if arrived >= DATAGRAMS_A_TURN { Progress::More } else { Progress::Done }
    }

    /// Ends the connection and tells the outcome of every copy in hand.
    pub(crate) fn end(&mut self, peer: &Peer, cause: EndCause, code: u64) {
        if self.ended {
            return;
        }
        self.ended = true;
        self.load = None;
        peer.advance(PeerState::Closed);
        let reason = peer.closed_reason();
        for flight in self.flights.land_all() {
            let (kind, reason) = match flight.sent_ns {
                0 => (Kind::Dropped, reason),
                _ => (Kind::Failed, Reason::ConnectionLost),
            };
            peer.report(kind, flight.tx, flight.tag, reason as u8, 0);
        }
        peer.latest.in_flight.store(0, Ordering::Relaxed);
        self.drop_waiting(peer, reason);
        peer.report(Kind::Closed, 0, 0, cause as u8, code);
    }

    /// After a panic: nothing of the connection can be trusted any more.
    pub(crate) fn abandon(&mut self, peer: &Peer) {
        self.end(peer, EndCause::Internal, 0);
        self.stalled.clear();
        if let Some((handle, _)) = self.connection.take() {
            let drained = (peer.socket.index, handle, EndpointEvent::drained());
            peer.shared.endpoint_events.push(drained);
            peer.shared.signal.wake();
        }
        peer.set_timer(NEVER_NS);
    }

    /// Handles what arrived and what the connection makes of it; returns how many datagrams.
    fn receive(&mut self, peer: &Arc<Peer>) -> usize {
        let Some((_, conn)) = &mut self.connection else {
            return 0;
        };
        let mut count = 0;
        while count < DATAGRAMS_A_TURN {
            let Some(event) = peer.next_event() else { break };
            conn.handle_event(event);
            count += 1;
        }
        if count > 0 {
            peer.latest.heard.fetch_add(count as u64, Ordering::Relaxed);
            self.take_events(peer);
        }
        count
    }

    /// Timers of the protocol and of this connection's life; whether one was due.
    fn keep_time(&mut self, peer: &Arc<Peer>, now: Instant, now_ns: u64) -> bool {
        let Some((_, conn)) = &mut self.connection else {
            return false;
        };
        let due = conn.poll_timeout().is_some_and(|due| due <= now);
        if due {
            conn.handle_timeout(now);
            self.take_events(peer);
        }
        if self.expiry_ns <= now_ns {
            self.expire(peer, now_ns);
        }
        if self.ended {
            return due;
        }
        if now_ns >= self.give_up_ns {
            self.say_goodbye(now);
            self.end(peer, EndCause::HandshakeTimeout, 0);
            return true;
        }
        let close_by_ns = peer.close_by_ns();
        // `queued` counts what another thread put down and nobody has looked at yet, too.
        let idle = self.flights.count() == 0 && peer.queued() == 0;
        if close_by_ns != NEVER_NS && (idle || now_ns >= close_by_ns) {
            self.say_goodbye(now);
            self.end(peer, EndCause::Local, 0);
            return true;
        }
        due
    }

    fn say_goodbye(&mut self, now: Instant) {
        if let Some((_, conn)) = &mut self.connection {
            conn.close(now, VarInt::from_u32(0), Bytes::new());
        }
    }

    /// Sends what the protocol wants sent, and copies that may go now.
    fn answer(&mut self, peer: &Arc<Peer>, now: Instant, now_ns: u64, outbox: &mut Outbox) {
        while let Some(train) = self.stalled.pop_front() {
            if !peer.socket.send(&train) {
                self.stalled.push_front(train);
                return;
            }
            outbox.recycle(train);
        }
        self.transmit(peer, now, outbox);
        self.pump(peer, now, now_ns, outbox);
        self.flush(peer, outbox);
        self.note_figures(peer);
    }

    fn take_events(&mut self, peer: &Arc<Peer>) {
        loop {
            let Some((_, conn)) = &mut self.connection else {
                return;
            };
            let Some(event) = conn.poll() else { break };
            match event {
                Event::Connected => {
                    peer.advance(PeerState::Connected);
                    self.stream_bytes_max = stream_bytes_max(conn);
                    let retried = peer.latest.retried.load(Ordering::Relaxed);
                    peer.report(Kind::Connected, 0, 0, u8::from(retried), self.stream_bytes_max);
                    self.look_for_grant(peer);
                }
                Event::Stream(StreamEvent::Available { dir: Dir::Uni }) => {
                    self.look_for_grant(peer);
                }
                Event::Stream(StreamEvent::Finished { id }) => self.acknowledged(peer, id),
                Event::Stream(StreamEvent::Stopped { id, .. }) => self.stopped(peer, id),
                Event::ConnectionLost { reason } => {
                    let (cause, code) = end_of(&reason);
                    self.end(peer, cause, code);
                }
                _ => {}
            }
        }
        if let Some((_, conn)) = &self.connection {
            let rtt_us = u32::try_from(conn.rtt().as_micros()).unwrap_or(u32::MAX);
            peer.latest.rtt_us.store(rtt_us, Ordering::Relaxed);
        }
    }

    /// Opens what the leader grants, which takes nothing on the wire and is the only way to learn
    /// how much that is. Admitted is who may open a stream; those opened here are the next copies'.
    pub(crate) fn look_for_grant(&mut self, peer: &Peer) {
        let Some((_, conn)) = &mut self.connection else {
            return;
        };
        if conn.is_handshaking() {
            return;
        }
        // Those that the leader refused count until it acknowledges their end.
        let open_max = self.flights.max() + STREAMS_AHEAD_MAX;
        while self.spares.len() < STREAMS_AHEAD_MAX && conn.streams().send_streams() < open_max {
            let Some(stream) = conn.streams().open(Dir::Uni) else { break };
            self.spares.push_back(stream);
        }
        let granted = self.spares.len();
        peer.latest.streams_left.store(granted as u32, Ordering::Relaxed);
        if self.give_up_ns != NEVER_NS && granted > 0 {
            self.give_up_ns = NEVER_NS;
            peer.advance(PeerState::Admitted);
            peer.report(Kind::Admitted, 0, 0, 0, granted as u64);
        }
    }

    /// The next stream in line; None while the leader grants no more.
    pub(crate) fn take_stream(&mut self, peer: &Peer) -> Option<StreamId> {
        if self.spares.is_empty() {
            self.look_for_grant(peer);
        }
        let stream = self.spares.pop_front()?;
        peer.latest.streams_left.store(self.spares.len() as u32, Ordering::Relaxed);
        Some(stream)
    }

    fn acknowledged(&mut self, peer: &Arc<Peer>, id: StreamId) {
        // An acknowledgement of all means that all was sent, whatever the count of bytes said.
        if self.unload(id) {
            self.note_sent(peer, id.index());
        }
        self.land(peer, id.index(), Kind::Acked, Reason::None);
    }

    fn stopped(&mut self, peer: &Arc<Peer>, id: StreamId) {
        // Refused before its turn: no copy may take it, as it would wait there until it is too old.
        if let Ok(place) = self.spares.binary_search_by_key(&id.index(), |spare| spare.index()) {
            self.spares.remove(place);
            self.look_for_grant(peer);
        }
        if let Some((_, conn)) = &mut self.connection {
            let _ = conn.send_stream(id).reset(VarInt::from_u32(0));
        }
        if self.unload(id) {
            self.note_sent(peer, id.index());
        }
        self.land(peer, id.index(), Kind::Failed, Reason::StreamStopped);
    }

    fn tell_endpoint(&mut self, peer: &Arc<Peer>) {
        let Some((handle, conn)) = &mut self.connection else {
            return;
        };
        let (handle, mut drained, mut told) = (*handle, false, false);
        while let Some(event) = conn.poll_endpoint_events() {
            drained |= event.is_drained();
            told = true;
            peer.shared.endpoint_events.push((peer.socket.index, handle, event));
        }
        if told {
            peer.shared.signal.wake();
        }
        if drained {
            self.end(peer, EndCause::Internal, 0);
            self.connection = None;
        }
    }

    fn next_timer_ns(&mut self, peer: &Arc<Peer>, now_ns: u64) -> u64 {
        let Some((_, conn)) = &mut self.connection else {
            return NEVER_NS;
        };
        let mut next_ns = conn.poll_timeout().map_or(NEVER_NS, |at| peer.shared.clock.ns(at));
        if self.waiting.is_empty() && self.load.is_none() {
            self.expiry_ns = NEVER_NS;
        }
        if next_ns.saturating_sub(now_ns) > IDLE_AFTER_NS {
            // Only a ping or the end of patience is so far off. Idle connections ping together.
            next_ns = next_ns.div_ceil(IDLE_GRID_NS).saturating_mul(IDLE_GRID_NS);
        }
        if !self.ended {
            next_ns = next_ns.min(self.expiry_ns).min(self.give_up_ns).min(peer.close_by_ns());
        }
        if !self.stalled.is_empty() {
            next_ns = next_ns.min(now_ns.saturating_add(STALL_RETRY_NS));
        }
        next_ns
    }

    fn note_figures(&self, peer: &Arc<Peer>) {
        let Some((_, conn)) = &self.connection else {
            return;
        };
        let stats = conn.stats();
        let figures = &peer.latest;
        figures.in_flight.store(self.flights.count(), Ordering::Relaxed);
        figures.mtu.store(u32::from(stats.path.current_mtu), Ordering::Relaxed);
        figures.window.store(stats.path.cwnd, Ordering::Relaxed);
        figures.lost_packets.store(stats.path.lost_packets, Ordering::Relaxed);
        figures.sent_packets.store(stats.path.sent_packets, Ordering::Relaxed);
    }
}

fn end_of(reason: &ConnectionError) -> (EndCause, u64) {
    match reason {
        ConnectionError::VersionMismatch => (EndCause::Version, 0),
        ConnectionError::TransportError(error) => (EndCause::Protocol, u64::from(error.code)),
        ConnectionError::ConnectionClosed(close) => {
            (EndCause::Transport, u64::from(close.error_code))
        }
        ConnectionError::ApplicationClosed(close) => {
            (EndCause::Application, close.error_code.into_inner())
        }
        ConnectionError::Reset => (EndCause::Reset, 0),
        ConnectionError::TimedOut => (EndCause::TimedOut, 0),
        ConnectionError::LocallyClosed => (EndCause::Local, 0),
        ConnectionError::CidsExhausted => (EndCause::Internal, 0),
    }
}
