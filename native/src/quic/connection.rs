//! Hot path: the protocol side of one connection, used only by the holder of its drive token.
//!
//! It feeds received datagrams and the time to quinn-proto, reports the results (`Connected`,
//! `Admitted`, `Closed`, the outcome of each delivery), and responds. `transmit` sends the
//! deliveries. An ended connection stays until quinn-proto has finished closing, and drops
//! deliveries that still arrive.
//!
//! The `DatagramBatch` holds the deliveries between the queue and the wire, all of which the next
//! datagram carries. The first is the best-paid of the queue. If more wait, further ones that fit
//! completely join it: one datagram less saves this machine and the leader a system call, an
//! encryption and a good part of an acknowledgement. Only the delivery written last may be there in
//! part, because flow control stopped it or it is larger than a datagram; completely written ones
//! wait for a datagram, which congestion control may delay.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use quinn_proto::{
    Connection, ConnectionError, ConnectionHandle, Dir, EndpointEvent, Event, StreamEvent,
    StreamId, VarInt, WriteError,
};

use crate::quic::delivery::{Delivery, PeerState};
use crate::quic::event::{CloseCause, Kind, Reason};
use crate::quic::gso_batch::{GsoBatch, GsoWriter};
use crate::quic::in_flight::InFlight;
use crate::quic::limits::{
    BATCH_CANDIDATES_MAX, DATAGRAMS_PER_TURN, IDLE_AFTER_NS, IDLE_GRID_NS, IMMEDIATE_MAX,
    IMMEDIATE_PART, STALL_RETRY_NS, STREAMS_AHEAD_MAX,
};
use crate::quic::packing::{capacity_of, remaining_capacity};
use crate::quic::peer_core::PeerCore;
use crate::quic::priority_queue::PriorityQueue;
use crate::quic::stream_window::StreamWindow;
use crate::quic::transport_params::{idle_timeout_ms, stream_bytes_max};
use crate::sync::clock::NEVER_NS;

/// The result of a turn.
pub(crate) struct Turn {
    /// Whether work is left.
    pub(crate) more: bool,
    /// Whether the full queue evicted the delivery of this call. This flag replaces its event.
    pub(crate) saturated: bool,
}

/// The connection and its deliveries.
pub(crate) struct ConnectionDriver {
    pub(crate) connection: Option<(ConnectionHandle, Connection)>,
    pub(crate) ended: bool,
    /// Nothing was sent yet: the first datagram waits for no response.
    is_new: bool,
    /// Deadline for the leader to grant the first stream.
    pub(crate) admission_deadline_ns: u64,
    /// The leader's announced limit per stream; 0 before the handshake.
    pub(crate) stream_bytes_max: u64,
    pub(crate) queue: PriorityQueue,
    /// How many of the granted streams may be used.
    pub(crate) window: StreamWindow,
    /// Whether the first of the queue waits for a stream or for that window.
    pub(crate) waits_for_leader: bool,
    /// The earliest expiry among the queued deliveries.
    pub(crate) expiry_ns: u64,
    pub(crate) in_flight: InFlight,
    /// Streams opened to learn the stream credit; the next deliveries use them.
    pub(crate) opened_streams: VecDeque<StreamId>,
    pub(crate) batch: Option<DatagramBatch>,
    /// Whether the window or the pacer stopped quinn-proto from sending.
    pub(crate) is_blocked: bool,
    /// Whether the deliveries being sent arrived in this turn, were few, and found none waiting:
    /// then `detail` of `Sent` is 0, and the main thread is not woken immediately.
    pub(crate) is_immediate: bool,
    /// Datagrams that the socket had no room for.
    pub(crate) unsent_batches: VecDeque<GsoBatch>,
    /// Makes `work` panic, to test the handling of a bug.
    #[cfg(test)]
    pub(crate) is_broken: bool,
}

impl ConnectionDriver {
    pub(crate) fn new(in_flight_max: usize) -> Self {
        Self {
            connection: None,
            ended: false,
            is_new: false,
            admission_deadline_ns: NEVER_NS,
            stream_bytes_max: 0,
            queue: PriorityQueue::default(),
            window: StreamWindow::default(),
            waits_for_leader: false,
            expiry_ns: NEVER_NS,
            in_flight: InFlight::new(in_flight_max),
            opened_streams: VecDeque::new(),
            batch: None,
            is_blocked: false,
            is_immediate: false,
            unsent_batches: VecDeque::new(),
            #[cfg(test)]
            is_broken: false,
        }
    }

    pub(crate) fn start(
        &mut self,
        handle: ConnectionHandle,
        conn: Connection,
        admission_deadline_ns: u64,
    ) {
        self.connection = Some((handle, conn));
        self.is_new = true;
        self.admission_deadline_ns = admission_deadline_ns;
    }

    /// Does the pending work: deliveries first, then received datagrams, then timers.
    pub(crate) fn work(
        &mut self,
        peer: &PeerCore,
        delivery: Option<Delivery>,
        now: Instant,
        gso_writer: &mut GsoWriter,
    ) -> Turn {
        let now_ns = peer.engine_state.clock.ns(now);
        let passed = delivery.as_ref().map(|delivery| (delivery.tx, delivery.tag));
        let mut saturated = false;
        let was_stalled = !self.unsent_batches.is_empty();
        let mut arrived = 0;
        for delivery in delivery.into_iter().chain(std::iter::from_fn(|| peer.next_delivery())) {
            self.expiry_ns = self.expiry_ns.min(delivery.until_ns);
            self.queue.push(delivery, &peer.engine_state.landed_shares);
            arrived += 1;
        }
        self.queue.rank(&peer.engine_state.landed_shares);
        #[cfg(test)]
        assert!(!self.is_broken, "a bug, simulated by the test");
        // The announcement of the new connection may have been consumed by a turn for a delivery,
        // which may have to wait.
        let mut wants_sent = std::mem::take(&mut self.is_new);
        if peer.take_ping()
            && let Some((_, conn)) = &mut self.connection
        {
            conn.ping();
            wants_sent = true;
        }
        if self.ended {
            self.drop_waiting(peer, peer.engine_state.closed_reason());
        } else if arrived > 0 {
            let few = IMMEDIATE_MAX.min(peer.queue_max / IMMEDIATE_PART);
            self.is_immediate =
                arrived <= few && self.queue.len() == arrived && self.batch.is_none();
            self.send_queued(peer, now, now_ns, gso_writer);
            self.is_immediate = false;
            self.flush(peer, gso_writer);
            saturated = self.evict(peer, passed);
            let waiting = (self.queue.len().min(arrived) as u64).saturating_sub(saturated.into());
            peer.engine_state.deliveries_queued.fetch_add(waiting, Ordering::Relaxed);
        }
        let datagrams = self.receive(peer);
        let timed = self.handle_timers(peer, now, now_ns);
        if datagrams > 0 || timed || arrived == 0 || wants_sent || was_stalled {
            self.send_pending(peer, now, now_ns, gso_writer);
        }
        self.send_endpoint_events(peer);
        peer.set_timer(self.next_timer_ns(peer, now_ns));
        peer.set_least_rank(self.queue.least_rank());
        Turn { more: datagrams >= DATAGRAMS_PER_TURN, saturated }
    }

    /// Ends the connection and reports the outcome of every pending delivery.
    pub(crate) fn end(&mut self, peer: &PeerCore, cause: CloseCause, code: u64) {
        if self.ended {
            return;
        }
        self.ended = true;
        self.batch = None;
        peer.advance(PeerState::Closed);
        let reason = peer.engine_state.closed_reason();
        for delivery in self.in_flight.resolve_all() {
            let (kind, reason) = match delivery.sent_ns {
                0 => (Kind::Dropped, reason),
                _ => (Kind::Failed, Reason::ConnectionLost),
            };
            peer.report(kind, delivery.tx, delivery.tag, reason as u8, 0);
        }
        peer.latest.in_flight.store(0, Ordering::Relaxed);
        self.drop_waiting(peer, reason);
        peer.report(Kind::Closed, 0, 0, cause as u8, code);
    }

    /// After a panic: the connection's state is no longer trustworthy.
    pub(crate) fn abandon(&mut self, peer: &PeerCore) {
        self.end(peer, CloseCause::Internal, 0);
        self.unsent_batches.clear();
        if let Some((handle, _)) = self.connection.take() {
            let drained = (peer.socket.index, handle, EndpointEvent::drained());
            peer.engine_state.endpoint_events.push(drained);
            peer.engine_state.io_waker.wake();
        }
        peer.set_timer(NEVER_NS);
    }

    /// Processes received datagrams and the resulting events; returns the number of datagrams.
    fn receive(&mut self, peer: &PeerCore) -> usize {
        let Some((_, conn)) = &mut self.connection else {
            return 0;
        };
        let mut count = 0;
        while count < DATAGRAMS_PER_TURN {
            let Some(event) = peer.next_event() else { break };
            conn.handle_event(event);
            count += 1;
        }
        if count > 0 {
            peer.latest.received.fetch_add(count as u64, Ordering::Relaxed);
            self.handle_events(peer);
        }
        count
    }

    /// Runs timers of the protocol and of the connection's lifecycle; returns whether one was due.
    fn handle_timers(&mut self, peer: &PeerCore, now: Instant, now_ns: u64) -> bool {
        let Some((_, conn)) = &mut self.connection else {
            return false;
        };
        let due = conn.poll_timeout().is_some_and(|due| due <= now);
        if due {
            conn.handle_timeout(now);
            self.handle_events(peer);
        }
        if self.expiry_ns <= now_ns {
            self.expire(peer, now_ns);
        }
        if self.ended {
            return due;
        }
        if now_ns >= self.admission_deadline_ns {
            self.send_close(now);
            self.end(peer, CloseCause::AdmissionTimeout, 0);
            return true;
        }
        let close_by_ns = peer.close_by_ns();
        // `queued` includes deliveries that another thread has enqueued and no thread has
        // processed.
        let idle = self.in_flight.count() == 0 && peer.queued() == 0;
        if close_by_ns != NEVER_NS && (idle || now_ns >= close_by_ns) {
            self.send_close(now);
            self.end(peer, CloseCause::Local, 0);
            return true;
        }
        due
    }

    fn send_close(&mut self, now: Instant) {
        if let Some((_, conn)) = &mut self.connection {
            conn.close(now, VarInt::from_u32(0), Bytes::new());
        }
    }

    /// Sends what the protocol has to send, and deliveries that may go now.
    fn send_pending(
        &mut self,
        peer: &PeerCore,
        now: Instant,
        now_ns: u64,
        gso_writer: &mut GsoWriter,
    ) {
        while let Some(gso_batch) = self.unsent_batches.pop_front() {
            if !peer.socket.send(&gso_batch) {
                self.unsent_batches.push_front(gso_batch);
                return;
            }
            gso_writer.recycle(gso_batch);
        }
        self.transmit(peer, now, gso_writer);
        self.send_queued(peer, now, now_ns, gso_writer);
        self.flush(peer, gso_writer);
        self.update_stats(peer);
    }

    fn handle_events(&mut self, peer: &PeerCore) {
        loop {
            let Some((_, conn)) = &mut self.connection else {
                return;
            };
            let Some(event) = conn.poll() else { break };
            match event {
                Event::Connected => {
                    peer.advance(PeerState::Connected);
                    self.stream_bytes_max = stream_bytes_max(conn);
                    let idle_ms = u32::try_from(idle_timeout_ms(conn)).unwrap_or(u32::MAX);
                    let retried = u8::from(peer.latest.retried.load(Ordering::Relaxed));
                    peer.report(Kind::Connected, 0, idle_ms, retried, self.stream_bytes_max);
                    self.open_granted_streams(peer);
                }
                Event::Stream(StreamEvent::Available { dir: Dir::Uni }) => {
                    self.open_granted_streams(peer);
                }
                Event::Stream(StreamEvent::Finished { id }) => self.acknowledged(peer, id),
                Event::Stream(StreamEvent::Stopped { id, .. }) => self.stopped(peer, id),
                Event::ConnectionLost { reason } => {
                    let (cause, code) = close_cause_of(&reason);
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

    /// Opens the streams that the leader grants, which sends nothing and is the only way to learn
    /// the stream credit. A connection is admitted once a stream opens; the next deliveries use the
    /// streams opened here.
    pub(crate) fn open_granted_streams(&mut self, peer: &PeerCore) {
        let Some((_, conn)) = &mut self.connection else {
            return;
        };
        if conn.is_handshaking() {
            return;
        }
        // Streams that the leader stopped count until it acknowledges their end.
        let open_max = self.in_flight.max() + STREAMS_AHEAD_MAX;
        while self.opened_streams.len() < STREAMS_AHEAD_MAX
            && conn.streams().send_streams() < open_max
        {
            let Some(stream) = conn.streams().open(Dir::Uni) else { break };
            self.opened_streams.push_back(stream);
        }
        let granted = self.opened_streams.len();
        self.publish_streams_left(peer);
        if self.admission_deadline_ns != NEVER_NS && granted > 0 {
            self.admission_deadline_ns = NEVER_NS;
            self.window.set_credit(granted);
            peer.advance(PeerState::Admitted);
            peer.report(Kind::Admitted, 0, 0, 0, granted as u64);
        }
    }

    /// The next opened stream; None while the leader grants no more, or the window is full.
    pub(crate) fn take_stream(&mut self, peer: &PeerCore) -> Option<StreamId> {
        if self.stream_room(peer, 1) == 0 {
            return None;
        }
        let stream = self.opened_streams.pop_front()?;
        self.window.opened();
        self.publish_streams_left(peer);
        Some(stream)
    }

    /// How many streams may be used now; exact up to `count`.
    pub(crate) fn stream_room(&mut self, peer: &PeerCore, count: usize) -> usize {
        if self.opened_streams.len() < count {
            self.open_granted_streams(peer);
        }
        self.window.room(self.opened_streams.len())
    }

    fn publish_streams_left(&self, peer: &PeerCore) {
        let room = self.window.room(self.opened_streams.len());
        peer.latest.streams_left.store(room as u32, Ordering::Relaxed);
    }

    fn acknowledged(&mut self, peer: &PeerCore, id: StreamId) {
        // An acknowledgement of the complete stream means that all was sent, whatever the byte
        // count says.
        if self.remove_from_batch(id) {
            self.record_sent(peer, id.index());
        }
        self.resolve(peer, id.index(), Kind::Acked, Reason::None);
    }

    fn stopped(&mut self, peer: &PeerCore, id: StreamId) {
        // Stopped before use: a delivery on this stream would wait until it expires.
        if let Ok(position) =
            self.opened_streams.binary_search_by_key(&id.index(), |spare| spare.index())
        {
            self.opened_streams.remove(position);
            self.open_granted_streams(peer);
        }
        if let Some((_, conn)) = &mut self.connection {
            let _ = conn.send_stream(id).reset(VarInt::from_u32(0));
        }
        if self.remove_from_batch(id) {
            self.record_sent(peer, id.index());
        }
        self.resolve(peer, id.index(), Kind::Failed, Reason::StreamStopped);
    }

    fn send_endpoint_events(&mut self, peer: &PeerCore) {
        let Some((handle, conn)) = &mut self.connection else {
            return;
        };
        let (handle, mut drained, mut sent) = (*handle, false, false);
        while let Some(event) = conn.poll_endpoint_events() {
            drained |= event.is_drained();
            sent = true;
            peer.engine_state.endpoint_events.push((peer.socket.index, handle, event));
        }
        if sent {
            peer.engine_state.io_waker.wake();
        }
        if drained {
            self.end(peer, CloseCause::Internal, 0);
            self.connection = None;
        }
    }

    fn next_timer_ns(&mut self, peer: &PeerCore, now_ns: u64) -> u64 {
        let Some((_, conn)) = &mut self.connection else {
            return NEVER_NS;
        };
        let mut next_ns = conn.poll_timeout().map_or(NEVER_NS, |at| peer.engine_state.clock.ns(at));
        if self.queue.is_empty() && self.batch.is_none() {
            self.expiry_ns = NEVER_NS;
        }
        let is_idle = self.in_flight.count() == 0 && !conn.is_handshaking();
        if is_idle && next_ns.saturating_sub(now_ns) > IDLE_AFTER_NS {
            // Only a keep-alive ping or the idle timeout is this far off. Idle connections ping
            // together. What is in flight over a long path may have to be repeated after as long.
            next_ns = next_ns.div_ceil(IDLE_GRID_NS).saturating_mul(IDLE_GRID_NS);
        }
        if !self.ended {
            next_ns =
                next_ns.min(self.expiry_ns).min(self.admission_deadline_ns).min(peer.close_by_ns());
        }
        if self.waits_for_leader && self.unsent_batches.is_empty() {
            next_ns = next_ns.min(self.window.due_ns(now_ns));
        }
        if !self.unsent_batches.is_empty() {
            next_ns = next_ns.min(now_ns.saturating_add(STALL_RETRY_NS));
        }
        next_ns
    }

    fn update_stats(&self, peer: &PeerCore) {
        let Some((_, conn)) = &self.connection else {
            return;
        };
        let stats = conn.stats();
        let stats_out = &peer.latest;
        stats_out.in_flight.store(self.in_flight.count(), Ordering::Relaxed);
        stats_out.mtu.store(u32::from(stats.path.current_mtu), Ordering::Relaxed);
        stats_out.window.store(stats.path.cwnd, Ordering::Relaxed);
        stats_out.lost_packets.store(stats.path.lost_packets, Ordering::Relaxed);
        stats_out.sent_packets.store(stats.path.sent_packets, Ordering::Relaxed);
    }

    /// How many of the first `count` queued deliveries have a stream and in-flight capacity now.
    fn sendable_count(&mut self, peer: &PeerCore, count: usize) -> usize {
        self.stream_room(peer, count).min(self.in_flight.remaining_capacity()).min(count)
    }

    /// Chooses what shares the next datagrams, among the first of the queue that have a stream.
    pub(crate) fn pack(&mut self, peer: &PeerCore) {
        let count = self.sendable_count(peer, self.queue.len().min(BATCH_CANDIDATES_MAX));
        if let Some((_, conn)) = &self.connection {
            self.queue.pack(count, capacity_of(conn.current_mtu()));
        }
    }

    /// Drops what the queue has above its bound, the least rank first; returns whether `passed`,
    /// the transaction and tag of a delivery, is among it, which is not reported.
    fn evict(&mut self, peer: &PeerCore, passed: Option<(u64, u32)>) -> bool {
        let mut saturated = false;
        while self.queue.len() > peer.queue_max
            && let Some(evicted) = self.queue.evict_least(&peer.engine_state.landed_shares)
        {
            peer.unqueue();
            peer.count_evicted();
            if passed == Some((evicted.tx, evicted.tag)) {
                saturated = true;
            } else {
                peer.report_evicted(&evicted);
            }
        }
        saturated
    }

    /// Continues writing the last delivery of the batch.
    pub(crate) fn write_batch(&mut self) {
        let (Some(batch), Some((_, conn))) = (&mut self.batch, &mut self.connection) else {
            return;
        };
        if batch.finished {
            return;
        }
        let mut stream = conn.send_stream(batch.last.stream);
        while !batch.rest.is_empty() {
            // `write_chunks` removes what it accepted from the slice.
            match stream.write_chunks(std::slice::from_mut(&mut batch.rest)) {
                Ok(_) => {}
                Err(WriteError::Blocked) => return,
                // Stopped or closed: the stream's event reports the outcome.
                Err(_) => break,
            }
        }
        let _ = stream.finish();
        batch.finished = true;
    }

    /// Adds queued deliveries that fit completely into the same datagram, while streams are
    /// available.
    pub(crate) fn fill_batch(&mut self, peer: &PeerCore, now_ns: u64) {
        while let (Some(batch), Some((_, conn))) = (&self.batch, &self.connection) {
            if !batch.finished || self.queue.is_empty() {
                return;
            }
            let sizes = batch.all().map(|written| written.size);
            let room = remaining_capacity(sizes, capacity_of(conn.current_mtu()));
            let size_max = room.min(usize::try_from(self.stream_bytes_max).unwrap_or(room));
            let goes = |delivery: &Delivery| {
                delivery.bytes.len() <= size_max && delivery.until_ns > now_ns
            };
            let sendable_count =
                self.sendable_count(peer, self.queue.len().min(BATCH_CANDIDATES_MAX));
            let Some(position) = self.queue.iter().take(sendable_count).position(goes) else {
                return;
            };
            let Some(batch) = self.batch.take() else { return };
            if !self.start_delivery(peer, position) {
                self.batch = Some(batch);
                return;
            }
            if let Some(next) = &mut self.batch {
                next.before = batch.before;
                next.before.push(batch.last);
                next.carried_max = batch.carried_max;
            }
            self.write_batch();
        }
    }

    /// Records the deliveries that are on the wire, now that quinn-proto has nothing left to send.
    pub(crate) fn record_batch_sent(&mut self, peer: &PeerCore) {
        let Some(batch) = &mut self.batch else {
            return;
        };
        let before = std::mem::take(&mut batch.before);
        let last = batch.finished.then_some(batch.last);
        batch.carried_max = batch.last.size.saturating_sub(batch.rest.len());
        if last.is_some() {
            self.batch = None;
        }
        for written in before.into_iter().chain(last) {
            self.record_sent(peer, written.stream.index());
        }
    }

    /// Removes a delivery; returns whether it was there.
    pub(crate) fn remove_from_batch(&mut self, stream: StreamId) -> bool {
        let Some(batch) = &mut self.batch else {
            return false;
        };
        if batch.last.stream != stream {
            let position = batch.before.iter().position(|written| written.stream == stream);
            return position.map(|position| batch.before.remove(position)).is_some();
        }
        match batch.before.pop() {
            Some(written) => {
                batch.last = written;
                batch.rest = Bytes::new();
                batch.finished = true;
            }
            None => self.batch = None,
        }
        true
    }
}

/// Deliveries that quinn-proto was given and that are not known to be completely on the wire. It
/// sends them in order, and retransmissions of others afterwards.
pub(crate) struct DatagramBatch {
    /// Deliveries before the last, written completely.
    before: Vec<Written>,
    last: Written,
    /// The part of the last one that quinn-proto did not accept yet.
    rest: Bytes,
    finished: bool,
    /// Upper bound on the bytes of these deliveries that datagrams have carried.
    carried_max: usize,
}

/// A delivery in the batch.
#[derive(Clone, Copy)]
struct Written {
    stream: StreamId,
    size: usize,
    until_ns: u64,
}

impl DatagramBatch {
    pub(crate) fn new(stream: StreamId, delivery: Delivery) -> Self {
        let last = Written { stream, size: delivery.bytes.len(), until_ns: delivery.until_ns };
        Self { before: Vec::new(), last, rest: delivery.bytes, finished: false, carried_max: 0 }
    }

    fn all(&self) -> impl Iterator<Item = &Written> {
        self.before.iter().chain([&self.last])
    }

    /// Deliveries that cannot be completely on the wire.
    fn unsent(&self) -> impl Iterator<Item = &Written> {
        let mut end = 0;
        self.all().filter(move |written| {
            end += written.size;
            end > self.carried_max || (written.stream == self.last.stream && !self.finished)
        })
    }

    /// The earliest expiry among the unsent ones.
    pub(crate) fn until_ns(&self) -> u64 {
        self.unsent().map(|written| written.until_ns).min().unwrap_or(NEVER_NS)
    }

    /// An unsent delivery that has expired.
    pub(crate) fn expired(&self, now_ns: u64) -> Option<StreamId> {
        self.unsent().find(|written| written.until_ns <= now_ns).map(|written| written.stream)
    }

    /// quinn-proto made a datagram of this size. One larger than the current path MTU is an MTU
    /// probe, and carries no deliveries.
    pub(crate) fn record_datagram(&mut self, size: usize, mtu: u16) {
        if size <= usize::from(mtu) {
            self.carried_max += size;
        }
    }
}

fn close_cause_of(reason: &ConnectionError) -> (CloseCause, u64) {
    match reason {
        ConnectionError::VersionMismatch => (CloseCause::Version, 0),
        ConnectionError::TransportError(error) => (CloseCause::Protocol, u64::from(error.code)),
        ConnectionError::ConnectionClosed(close) => {
            (CloseCause::Transport, u64::from(close.error_code))
        }
        ConnectionError::ApplicationClosed(close) => {
            (CloseCause::Application, close.error_code.into_inner())
        }
        ConnectionError::Reset => (CloseCause::Reset, 0),
        ConnectionError::TimedOut => (CloseCause::TimedOut, 0),
        ConnectionError::LocallyClosed => (CloseCause::Local, 0),
        ConnectionError::CidsExhausted => (CloseCause::Internal, 0),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quinn_proto::{Dir, Side, StreamId};

    use super::{DatagramBatch, Written};
    use crate::quic::delivery::Delivery;
    use crate::quic::landed_shares::Offer;
    use crate::sync::clock::NEVER_NS;

    /// Deliveries of these sizes, completely accepted by quinn-proto.
    fn batch(sizes: &[usize]) -> DatagramBatch {
        let stream = |index| StreamId::new(Side::Client, Dir::Uni, index as u64);
        let bytes = Bytes::from_static(b"the last");
        let offer = Offer::default();
        let delivery = Delivery { bytes, tx: 0, tag: 0, until_ns: 7, offer };
        let mut batch = DatagramBatch::new(stream(0), delivery);
        let written = |(index, size)| Written { stream: stream(index), size, until_ns: 7 };
        batch.before = sizes.iter().copied().enumerate().map(written).collect();
        (batch.last, batch.finished) = (batch.before.pop().unwrap(), true);
        batch
    }

    fn expired(batch: &DatagramBatch) -> Vec<u64> {
        batch.unsent().map(|written| written.stream.index()).collect()
    }

    #[test]
    fn after_a_partial_datagram_only_unsent_deliveries_expire() {
        let mut batch = batch(&[700, 500, 100]);
        assert_eq!((expired(&batch), batch.until_ns()), (vec![0, 1, 2], 7));
        assert_eq!(batch.expired(7).map(StreamId::index), Some(0));
        assert_eq!(batch.expired(6), None);
        // An MTU probe carries nothing.
        batch.record_datagram(1452, 1200);
        assert_eq!(expired(&batch), [0, 1, 2]);
        batch.record_datagram(1100, 1200);
        assert_eq!((expired(&batch), batch.until_ns()), (vec![1, 2], 7));
        batch.record_datagram(1100, 1200);
        assert_eq!((expired(&batch), batch.until_ns()), (vec![], NEVER_NS));
        // quinn-proto has only a part of the last one.
        batch.finished = false;
        assert_eq!(expired(&batch), [2]);
    }
}
