//! Hot path: the protocol side of one connection, touched only by who has its baton.
//!
//! It feeds what arrived and the time to quinn-proto, tells what comes of it (`Connected`,
//! `Admitted`, `Closed`, the outcome of each copy), and answers. How copies go out is in
//! `transmit`. An ended link stays until quinn-proto has said goodbye, and drops what still comes.
//!
//! The `Load` is the copies between the queue and the wire, all of which the next datagram carries.
//! The first is there because it is its turn. Where more wait, further ones join it that fit as a
//! whole: a datagram less costs this machine and the leader a system call, an encryption and a good
//! part of an acknowledgement. Only the one that was written last may be there in part, where flow
//! control stopped it or where it is larger than a datagram; what was written wholly waits for a
//! datagram, which congestion control may hold up.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use quinn_proto::{
    Connection, ConnectionError, ConnectionHandle, Dir, EndpointEvent, Event, StreamEvent,
    StreamId, VarInt, WriteError,
};

use crate::limits::{
    DATAGRAMS_A_TURN, IDLE_AFTER_NS, IDLE_GRID_NS, PROMPT_MAX, PROMPT_PART, STALL_RETRY_NS,
    STREAMS_AHEAD_MAX, TOGETHER_MAX,
};
use crate::quic::copy::{PeerState, TxCopy};
use crate::quic::event_ring::{EndCause, Kind, Reason};
use crate::quic::gso_batch::{Outbox, Train};
use crate::quic::in_flight::Flights;
use crate::quic::packing::{order, room_beside, room_of};
use crate::quic::peer_core::PeerCore;
use crate::quic::transport_params::stream_bytes_max;
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
        peer: &PeerCore,
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
    pub(crate) fn end(&mut self, peer: &PeerCore, cause: EndCause, code: u64) {
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
    pub(crate) fn abandon(&mut self, peer: &PeerCore) {
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
    fn receive(&mut self, peer: &PeerCore) -> usize {
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
    fn keep_time(&mut self, peer: &PeerCore, now: Instant, now_ns: u64) -> bool {
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
    fn answer(&mut self, peer: &PeerCore, now: Instant, now_ns: u64, outbox: &mut Outbox) {
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

    fn take_events(&mut self, peer: &PeerCore) {
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
    pub(crate) fn look_for_grant(&mut self, peer: &PeerCore) {
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
    pub(crate) fn take_stream(&mut self, peer: &PeerCore) -> Option<StreamId> {
        if self.spares.is_empty() {
            self.look_for_grant(peer);
        }
        let stream = self.spares.pop_front()?;
        peer.latest.streams_left.store(self.spares.len() as u32, Ordering::Relaxed);
        Some(stream)
    }

    fn acknowledged(&mut self, peer: &PeerCore, id: StreamId) {
        // An acknowledgement of all means that all was sent, whatever the count of bytes said.
        if self.unload(id) {
            self.note_sent(peer, id.index());
        }
        self.land(peer, id.index(), Kind::Acked, Reason::None);
    }

    fn stopped(&mut self, peer: &PeerCore, id: StreamId) {
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

    fn tell_endpoint(&mut self, peer: &PeerCore) {
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

    fn next_timer_ns(&mut self, peer: &PeerCore, now_ns: u64) -> u64 {
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

    fn note_figures(&self, peer: &PeerCore) {
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

    /// Puts the copies that came in one turn, the last of the waiting ones, in the order in which they
    /// fill datagrams best. None goes before one that waited already, or that one would wait for as
    /// long as others come that fit better; nor does one that no stream is left for go before one that
    /// has one.
    pub(crate) fn arrange(&mut self, peer: &PeerCore, came: usize) {
        if came < 2 {
            return;
        }
        let waited = self.waiting.len().saturating_sub(came);
        let covered = self.covered(peer, self.waiting.len());
        let Some((_, conn)) = &self.connection else { return };
        let room = room_of(conn.current_mtu());
        let mut copies = self.waiting.split_off(waited);
        let mut left = covered.saturating_sub(waited);
        while left > 0 && !copies.is_empty() {
            let count = copies.len().min(TOGETHER_MAX).min(left);
            left -= count;
            let mut some: Vec<_> = copies.drain(..count).map(Some).collect();
            let sizes = some.iter().flatten().map(|copy| copy.bytes.len());
            for place in order(sizes, room) {
                self.waiting.extend(some.get_mut(place).and_then(Option::take));
            }
        }
        self.waiting.append(&mut copies);
    }

    /// For how many of the first `count` that wait there are streams now, and places in flight.
    fn covered(&mut self, peer: &PeerCore, count: usize) -> usize {
        if self.spares.len() < count {
            self.look_for_grant(peer);
        }
        self.spares.len().min(self.flights.room()).min(count)
    }

    /// Goes on with the copy that was written last.
    pub(crate) fn write_load(&mut self) {
        let (Some(load), Some((_, conn))) = (&mut self.load, &mut self.connection) else {
            return;
        };
        if load.finished {
            return;
        }
        let mut stream = conn.send_stream(load.last.stream);
        while !load.rest.is_empty() {
            // `write_chunks` moves what it took out of the slice.
            match stream.write_chunks(std::slice::from_mut(&mut load.rest)) {
                Ok(_) => {}
                Err(WriteError::Blocked) => return,
                // Stopped or gone: its event tells the outcome.
                Err(_) => break,
            }
        }
        let _ = stream.finish();
        load.finished = true;
    }

    /// Writes further waiting copies that are whole in the same datagram, of those that the leader's
    /// streams are enough for.
    pub(crate) fn fill_load(&mut self, peer: &PeerCore, now_ns: u64) {
        while let (Some(load), Some((_, conn))) = (&self.load, &self.connection) {
            if !load.finished || self.waiting.is_empty() {
                return;
            }
            let sizes = load.all().map(|written| written.size);
            let room = room_beside(sizes, room_of(conn.current_mtu()));
            let size_max = room.min(usize::try_from(self.stream_bytes_max).unwrap_or(room));
            let goes = |copy: &TxCopy| copy.bytes.len() <= size_max && copy.until_ns > now_ns;
            let covered = self.covered(peer, self.waiting.len().min(TOGETHER_MAX));
            let Some(place) = self.waiting.iter().take(covered).position(goes) else { return };
            let Some(load) = self.load.take() else { return };
            if !self.take(peer, place) {
                self.load = Some(load);
                return;
            }
            if let Some(next) = &mut self.load {
                next.before = load.before;
                next.before.push(load.last);
                next.carried_max = load.carried_max;
            }
            self.write_load();
        }
    }

    /// Notes those that are on the wire, now that quinn-proto has nothing left to send.
    pub(crate) fn unload_sent(&mut self, peer: &PeerCore) {
        let Some(load) = &mut self.load else {
            return;
        };
        let before = std::mem::take(&mut load.before);
        let last = load.finished.then_some(load.last);
        load.carried_max = load.last.size.saturating_sub(load.rest.len());
        if last.is_some() {
            self.load = None;
        }
        for written in before.into_iter().chain(last) {
            self.note_sent(peer, written.stream.index());
        }
    }

    /// Takes one out; whether it was there.
    pub(crate) fn unload(&mut self, stream: StreamId) -> bool {
        let Some(load) = &mut self.load else {
            return false;
        };
        if load.last.stream != stream {
            let place = load.before.iter().position(|written| written.stream == stream);
            return place.map(|place| load.before.remove(place)).is_some();
        }
        match load.before.pop() {
            Some(written) => {
                load.last = written;
                load.rest = Bytes::new();
                load.finished = true;
            }
            None => self.load = None,
        }
        true
    }
}

/// Copies that quinn-proto was given and that are not known to be on the wire as a whole. It sends
/// them in their order, and what it has to repeat of others afterwards.
pub(crate) struct Load {
    /// Those before the last, written wholly.
    before: Vec<Written>,
    last: Written,
    /// What quinn-proto did not take of the last one yet.
    rest: Bytes,
    finished: bool,
    /// The most that datagrams can have carried of them.
    carried_max: usize,
}

/// One of them.
#[derive(Clone, Copy)]
struct Written {
    stream: StreamId,
    size: usize,
    until_ns: u64,
}

impl Load {
    pub(crate) fn new(stream: StreamId, copy: TxCopy) -> Self {
        let last = Written { stream, size: copy.bytes.len(), until_ns: copy.until_ns };
        Self { before: Vec::new(), last, rest: copy.bytes, finished: false, carried_max: 0 }
    }

    fn all(&self) -> impl Iterator<Item = &Written> {
        self.before.iter().chain([&self.last])
    }

    /// Those that cannot be on the wire as a whole.
    fn unsent(&self) -> impl Iterator<Item = &Written> {
        let mut end = 0;
        self.all().filter(move |written| {
            end += written.size;
            end > self.carried_max || (written.stream == self.last.stream && !self.finished)
        })
    }

    /// When the first of those is of no more use.
    pub(crate) fn until_ns(&self) -> u64 {
        self.unsent().map(|written| written.until_ns).min().unwrap_or(NEVER_NS)
    }

    /// One of those that is of no more use.
    pub(crate) fn expired(&self, now_ns: u64) -> Option<StreamId> {
        self.unsent().find(|written| written.until_ns <= now_ns).map(|written| written.stream)
    }

    /// quinn-proto made a datagram of that size. One larger than the path takes so far is a probe for
    /// more, and carries nothing.
    pub(crate) fn note_datagram(&mut self, size: usize, mtu: u16) {
        if size <= usize::from(mtu) {
            self.carried_max += size;
        }
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quinn_proto::{Dir, Side, StreamId};

    use super::{Load, Written};
    use crate::quic::copy::TxCopy;
    use crate::sync::clock::NEVER_NS;

    /// Copies of these sizes that quinn-proto took wholly.
    fn load(sizes: &[usize]) -> Load {
        let stream = |index| StreamId::new(Side::Client, Dir::Uni, index as u64);
        let bytes = Bytes::from_static(b"the last");
        let copy = TxCopy { bytes, tx: 0, tag: 0, until_ns: 7 };
        let mut load = Load::new(stream(0), copy);
        let written = |(index, size)| Written { stream: stream(index), size, until_ns: 7 };
        load.before = sizes.iter().copied().enumerate().map(written).collect();
        (load.last, load.finished) = (load.before.pop().unwrap(), true);
        load
    }

    fn expired(load: &Load) -> Vec<u64> {
        load.unsent().map(|written| written.stream.index()).collect()
    }

    #[test]
    fn of_those_that_a_datagram_carried_in_part_only_those_expire_that_it_had_no_room_for() {
        let mut load = load(&[700, 500, 100]);
        assert_eq!((expired(&load), load.until_ns()), (vec![0, 1, 2], 7));
        assert_eq!(load.expired(7).map(StreamId::index), Some(0));
        assert_eq!(load.expired(6), None);
        // A probe for a larger path carries nothing.
        load.note_datagram(1452, 1200);
        assert_eq!(expired(&load), [0, 1, 2]);
        load.note_datagram(1100, 1200);
        assert_eq!((expired(&load), load.until_ns()), (vec![1, 2], 7));
        load.note_datagram(1100, 1200);
        assert_eq!((expired(&load), load.until_ns()), (vec![], NEVER_NS));
        // Of the last, quinn-proto has a part only.
        load.finished = false;
        assert_eq!(expired(&load), [2]);
    }
}
