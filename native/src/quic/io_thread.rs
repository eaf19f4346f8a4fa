//! The I/O thread: receives, acknowledges and runs timers for all connections.
//!
//! It alone owns the QUIC endpoints, which only route datagrams; each connection is driven by the
//! holder of its drive token. The I/O thread never waits for a token: work that it cannot do
//! immediately is done by the thread that has it. Every loop of a turn is bounded, so a flood from
//! one leader does not delay another's timers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::{
    ClientConfig, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig,
    RandomConnectionIdGenerator,
};
use quinn_udp::RecvMeta;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::quic::engine_state::EngineState;
use crate::quic::event_ring::mark_io_thread;
use crate::quic::gso_batch::Socket;
use crate::quic::limits::{
    CLOSE_NS_MAX, DATAGRAM_BYTES_MAX, IO_TURNS, RECEIVE_BUFFER_BYTES, RECEIVE_BUFFERS,
    RECEIVES_PER_TURN, SLEEP_NS_MAX, TIMER_SLACK_NS_MAX,
};
use crate::quic::peer::{IoQueues, Peer};
use crate::quic::peer_table::PeerTable;
use crate::quic::timer::Due;
use crate::quic::tls::server_name;
use crate::sync::clock::{NEVER_NS, NS_PER_S, duration_ns};
use crate::sync::mutex_queue::MutexQueue;
use crate::sync::thread_priority::shorten_slice;

/// Commands from other threads to the I/O thread.
pub(crate) enum Command {
    Connect { peer: Arc<Peer>, config: ClientConfig, admission_deadline_ns: u64 },
    Stop,
}

/// State of the I/O thread.
pub(crate) struct IoThread {
    engine_state: Arc<EngineState>,
    queues: Arc<IoQueues>,
    peer_table: Arc<PeerTable>,
    commands: Arc<MutexQueue<Command>>,
    ports: Vec<EndpointSocket>,
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    buffers: Vec<u8>,
    /// Connections that received datagrams in this turn.
    touched: Vec<Arc<Peer>>,
    busy_poll: Duration,
    /// When to stop even if connections are left.
    stop_by_ns: u64,
}

/// A socket, the endpoint that routes its datagrams, and its connections.
struct EndpointSocket {
    socket: Arc<Socket>,
    endpoint: Endpoint,
    peers: HashMap<ConnectionHandle, Arc<Peer>>,
}

impl IoThread {
    pub(crate) fn new(
        engine_state: Arc<EngineState>,
        queues: Arc<IoQueues>,
        peer_table: Arc<PeerTable>,
        commands: Arc<MutexQueue<Command>>,
        sockets: &[Arc<Socket>],
        busy_poll: Duration,
    ) -> Self {
        let mut config = EndpointConfig::default();
        // Fails only below QUIC's own minimum.
        let _ = config.max_udp_payload_size(DATAGRAM_BYTES_MAX);
        config.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(CID_BYTES)));
        let config = Arc::new(config);
        let ports = sockets.iter().map(|socket| EndpointSocket {
            socket: socket.clone(),
            endpoint: Endpoint::new(config.clone(), None, !socket.state.may_fragment(), None),
            peers: HashMap::new(),
        });
        Self {
            ports: ports.collect(),
            engine_state,
            queues,
            peer_table,
            commands,
            timers: BinaryHeap::new(),
            buffers: vec![0; RECEIVE_BUFFERS * RECEIVE_BUFFER_BYTES],
            touched: Vec::new(),
            busy_poll,
            stop_by_ns: NEVER_NS,
        }
    }

    /// Runs until `Command::Stop`, then until all connections have closed or the deadline has
    /// passed.
    pub(crate) fn run(mut self) {
        mark_io_thread();
        shorten_slice();
        let mut ready = true;
        loop {
            let turn = || self.run_turn(ready);
            if catch_unwind(AssertUnwindSafe(turn)).is_err() {
                self.engine_state.panics.fetch_add(1, Ordering::Relaxed);
                self.touched.clear();
            }
            if self.is_over() {
                break;
            }
            ready = self.sleep();
        }
        self.finish();
    }

    /// Ends every connection, and reports every delivery that no other thread is processing.
    fn finish(&self) {
        self.engine_state.stopped.store(true, Ordering::SeqCst);
        for peer in self.peer_table.all() {
            peer.fail_start();
            self.peer_table.remove(peer.id);
        }
        // A connection whose drive token passed to this thread may have deliveries enqueued since.
        while let Some(peer) = self.queues.io_handoff.pop() {
            peer.run(None, IO_TURNS);
        }
        // A listed connection would keep its socket open for as long as the engine is referenced.
        while self.queues.timer_updates.pop().is_some() {}
        self.engine_state.events.wake();
    }

    fn is_over(&self) -> bool {
        self.stop_by_ns != NEVER_NS
            && (self.peer_table.is_empty() || self.engine_state.clock.now_ns() >= self.stop_by_ns)
    }

    /// One turn: commands, datagrams, handed-over connections, timers.
    fn run_turn(&mut self, ready: bool) {
        while let Some(command) = self.commands.pop() {
            self.handle_command(command);
        }
        if ready {
            for index in 0..self.ports.len() {
                self.receive(index);
            }
        }
        self.route_endpoint_events();
        for _ in 0..self.queues.io_handoff.len() {
            if let Some(peer) = self.queues.io_handoff.pop() {
                peer.run(None, IO_TURNS);
            }
        }
        self.run_timers();
        self.route_endpoint_events();
        self.engine_state.events.wake_due(self.engine_state.clock.now_ns());
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Connect { peer, config, admission_deadline_ns } => {
                if !self.connect(&peer, config, admission_deadline_ns) {
                    peer.fail_start();
                    self.peer_table.remove(peer.id);
                }
            }
            Command::Stop => {
                let now_ns = self.engine_state.clock.now_ns();
                self.stop_by_ns = now_ns.saturating_add(CLOSE_NS_MAX);
            }
        }
    }

    fn connect(
        &mut self,
        peer: &Arc<Peer>,
        config: ClientConfig,
        admission_deadline_ns: u64,
    ) -> bool {
        let Some(port) = self.ports.get_mut(peer.socket.index) else {
            return false;
        };
        let name = server_name(peer.address);
        let started = port.endpoint.connect(Instant::now(), config, peer.address, &name);
        let Ok((handle, connection)) = started else {
            return false;
        };
        port.peers.insert(handle, peer.clone());
        peer.start(handle, connection, admission_deadline_ns);
        true
    }

    /// Receives from one socket until it is empty or its budget for this turn is used.
    fn receive(&mut self, index: usize) {
        let Some(port) = self.ports.get_mut(index) else {
            return;
        };
        let mut metas = [RecvMeta::default(); RECEIVE_BUFFERS];
        for _ in 0..RECEIVES_PER_TURN {
            let mut slices = self.buffers.chunks_exact_mut(RECEIVE_BUFFER_BYTES);
            let mut buffers: [IoSliceMut<'_>; RECEIVE_BUFFERS] =
                std::array::from_fn(|_| IoSliceMut::new(slices.next().unwrap_or_default()));
            let socket = &port.socket;
            let received = socket.state.recv((&socket.udp).into(), &mut buffers, &mut metas);
            let Ok(count) = received else { break };
            let now = Instant::now();
            for (buffer, meta) in buffers.iter().zip(&metas).take(count) {
                let bytes = buffer.get(..meta.len).unwrap_or_default();
                for datagram in bytes.chunks(meta.stride.max(1)) {
                    // No leader has port 0. The kernel would refuse an answer to it with EINVAL: see
                    // `is_host` of `engine`.
                    if datagram.len() > usize::from(DATAGRAM_BYTES_MAX) || meta.addr.port() == 0 {
                        self.engine_state.inbox_drops.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    port.route(now, meta, datagram, &mut self.touched);
                }
            }
            for peer in self.touched.drain(..) {
                peer.announce(IO_TURNS);
            }
            if count < RECEIVE_BUFFERS {
                break;
            }
        }
    }

    /// Synchronizes connection IDs between endpoints and connections, and removes drained
    /// connections.
    fn route_endpoint_events(&mut self) {
        while let Some((index, handle, event)) = self.engine_state.endpoint_events.pop() {
            let Some(port) = self.ports.get_mut(index) else { continue };
            let drained = event.is_drained();
            let response = port.endpoint.handle_event(handle, event);
            if drained {
                if let Some(peer) = port.peers.remove(&handle) {
                    self.peer_table.remove(peer.id);
                }
            } else if let (Some(event), Some(peer)) = (response, port.peers.get(&handle)) {
                peer.deliver(event);
                peer.announce(IO_TURNS);
            }
        }
    }

    fn run_timers(&mut self) {
        while let Some(peer) = self.queues.timer_updates.pop() {
            if let Some(at_ns) = peer.timer.take_timer_update() {
                self.timers.push(Reverse((at_ns, peer.id)));
            }
        }
        let now_ns = self.engine_state.clock.now_ns();
        while let Some(&Reverse((at_ns, id))) = self.timers.peek() {
            if at_ns > now_ns {
                break;
            }
            self.timers.pop();
            let Some(peer) = self.peer_table.find(id) else { continue };
            if let Some(later_ns) = peer.take_due(at_ns, now_ns) {
                self.timers.push(Reverse((later_ns, id)));
            }
        }
    }

    /// The soonest timer. Skips entries whose timer moved away meanwhile.
    fn next_timer_ns(&mut self) -> u64 {
        while let Some(&Reverse((at_ns, id))) = self.timers.peek() {
            match self.peer_table.find(id).map_or(Due::Stale, |peer| peer.timer.moved(at_ns)) {
                Due::Now => return at_ns,
                Due::Later(later_ns) => {
                    self.timers.pop();
                    self.timers.push(Reverse((later_ns, id)));
                }
                Due::Stale => {
                    self.timers.pop();
                }
            }
        }
        NEVER_NS
    }

    /// Sleeps until a datagram arrives, a timer is due or another thread wakes it; returns whether
    /// datagrams may be ready.
    fn sleep(&mut self) -> bool {
        let next_ns = self.next_timer_ns();
        let now_ns = self.engine_state.clock.now_ns();
        // Up to 1/8 of the wait later, so that timers close to each other share one wake-up.
        let slack_ns = (next_ns.saturating_sub(now_ns) / 8).min(TIMER_SLACK_NS_MAX);
        let until_ns = next_ns
            .saturating_add(slack_ns)
            .min(self.engine_state.events.due_ns())
            .min(self.stop_by_ns)
            .min(now_ns.saturating_add(SLEEP_NS_MAX));
        self.engine_state.io_waker.sleeping_until(until_ns);
        if self.has_work(until_ns) {
            self.engine_state.io_waker.awake(false);
            return false;
        }
        let mut spent = Duration::ZERO;
        let started = Instant::now();
        loop {
            let spin = spent < self.busy_poll;
            let left_ns = until_ns.saturating_sub(now_ns.saturating_add(duration_ns(spent)));
            let (ready, called) = self.wait(if spin { 0 } else { left_ns });
            spent = started.elapsed();
            let due = now_ns.saturating_add(duration_ns(spent)) >= until_ns;
            if !spin || ready || called || due || self.has_work(until_ns) {
                self.engine_state.io_waker.awake(called);
                return ready;
            }
        }
    }

    /// Whether there is work now, or an event to report before `until_ns`, among what was enqueued
    /// before the sleep was announced. A thread that enqueues later wakes this one.
    fn has_work(&self, until_ns: u64) -> bool {
        self.engine_state.events.due_ns() < until_ns
            || !self.commands.is_empty()
            || !self.queues.timer_updates.is_empty()
            || !self.queues.io_handoff.is_empty()
            || !self.engine_state.endpoint_events.is_empty()
    }

    /// Polls the sockets and the waker: whether datagrams may be ready, and whether a thread
    /// called.
    fn wait(&self, left_ns: u64) -> (bool, bool) {
        let timeout = Timespec {
            tv_sec: i64::try_from(left_ns / NS_PER_S).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(left_ns % NS_PER_S).unwrap_or(0),
        };
        let calls = self.engine_state.io_waker.fds();
        let ports = self.ports.iter().map(|port| port.socket.udp.as_fd());
        let mut fds: Vec<_> = calls
            .into_iter()
            .chain(ports)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        if poll(&mut fds, Some(&timeout)).is_err() {
            return (true, true);
        }
        let any = |fds: &[PollFd<'_>]| fds.iter().any(|fd| !fd.revents().is_empty());
        let (called, ready) = fds.split_at(calls.len());
        (any(ready), any(called))
    }
}

impl EndpointSocket {
    fn route(
        &mut self,
        now: Instant,
        meta: &RecvMeta,
        datagram: &[u8],
        touched: &mut Vec<Arc<Peer>>,
    ) {
        let ecn = meta.ecn.and_then(|ecn| quinn_proto::EcnCodepoint::from_bits(ecn as u8));
        let remote = canonical(meta.addr);
        let mut response = Vec::new();
        let bytes = BytesMut::from(datagram);
        // The local address is omitted: a client's connection has none.
        match self.endpoint.handle(now, remote, None, ecn, bytes, &mut response) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(peer) = self.peers.get(&handle) {
                    if is_retry(datagram) {
                        peer.latest.retried.store(true, Ordering::Relaxed);
                    }
                    peer.deliver(event);
                    if !touched.last().is_some_and(|last| Arc::ptr_eq(last, peer)) {
                        touched.push(peer.clone());
                    }
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                let response = quinn_udp::Transmit {
                    destination: transmit.destination,
                    ecn: None,
                    contents: response.get(..transmit.size).unwrap_or_default(),
                    segment_size: None,
                    src_ip: None,
                };
                // The leader requests a lost stateless reset again.
                let _ = self.socket.state.try_send((&self.socket.udp).into(), &response);
            }
            // This endpoint accepts no incoming connections.
            Some(DatagramEvent::NewConnection(_)) | None => {}
        }
    }
}

/// Whether the datagram begins with a Retry packet: a long header of type 3 (RFC 9000 section
/// 17.2.5).
fn is_retry(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 0xf0 == 0xf0)
}

/// Converts an IPv4-mapped IPv6 address to IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Length of local connection IDs: 8 bytes distinguish connections and are hard to guess.
const CID_BYTES: usize = 8;

#[cfg(test)]
#[path = "io_thread_tests.rs"]
mod tests;
