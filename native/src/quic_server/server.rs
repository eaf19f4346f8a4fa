//! Hot path: one thread of the listener: the endpoint that routes the datagrams of one socket, and
//! the connections, which this thread alone drives.
//!
//! ```text
//! socket ─▶ endpoint ─▶ connection ─▶ streams ─▶ handler
//!    │         │            └─▶ acknowledgements, credit ─▶ socket
//!    │         └─▶ new: refused, asked for a Retry, or waits for its handshake
//!    └─▶ another thread's: its inbox
//! ```
//!
//! Each thread has a socket on the same port (`routing`). What bounds the listener as a whole
//! (`threads`) counts the clients of all its threads.
//!
//! The handshakes in progress are limited, in all and for each address, and have a deadline; above
//! some of them a client must prove its address by a Retry. Those that did not prove it count
//! apart, because whoever sent them may have forged the address. A turn serves the clients whose
//! key is known first; then it begins one handshake, the costliest step. It handles few datagrams of
//! handshakes and few streams, so that HTTP clients, which the same thread serves, do not wait for
//! all of them; connections with many streams take turns too. Connections are limited for each
//! address and account. Every `SCAN_NS` the listener looks the keys of all connections up again,
//! closes those of revoked keys, and stops streams that are too slow.
//!
//! Decision: docs/decisions/0055-quic-in-the-ingress-threads.md

use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Registry, Token, Waker};
use quinn_proto::{
    ConnectionEvent, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, EndpointEvent,
    Event, Transmit,
};
use quinn_udp::RecvMeta;

use crate::quic_server::admission::Bounds;
use crate::quic_server::clients::Clients;
use crate::quic_server::connection::{ClientConnection, Phase, Turn};
use crate::quic_server::handler::{QuicNumbers, QuicRefusal, StreamHandler};
use crate::quic_server::landing_waits::Waiter;
use crate::quic_server::limits::{
    CLOSED_MAX, DATAGRAM_BYTES_MAX, DRAIN_NS_MAX, DRIVEN_PER_TURN, HANDSHAKE_DATAGRAMS_PER_TURN,
    PREDECESSOR_NS_MAX, SCAN_NS, SCANNED_PER_TURN, STREAMS_PER_DRIVE, STREAMS_PER_TURN,
    UNKNOWN_DRIVEN_PER_TURN,
};
use crate::quic_server::options::{Options, routing_of};
use crate::quic_server::receipts::{Receipt, receipts_of};
use crate::quic_server::routing::THREADS_MAX;
use crate::quic_server::schedule::Schedule;
use crate::quic_server::socket::{DatagramSocket, PortSockets};
use crate::quic_server::thread_socket::ThreadSocket;
use crate::quic_server::threads::{Datagram, Threads};
use crate::quic_server::tls::{PresentedCertificate, server_config};
use crate::sync::clock::{Clock, NEVER_NS};

/// One thread of a listener.
pub struct QuicServer {
    options: Options,
    socket: ThreadSocket,
    threads: Arc<Threads>,
    /// When the process that this one replaces has closed its sockets; `NEVER_NS` after that.
    alone_at_ns: u64,
    endpoint: Endpoint,
    /// Clients whose handshake did not begin yet; they count as handshakes in progress.
    arrivals: VecDeque<arrivals::Arrival>,
    /// By connection handle.
    connections: Vec<Option<Box<ClientConnection>>>,
    clients: Clients,
    certificate: PresentedCertificate,
    published: QuicNumbers,
    schedule: Schedule,
    /// The handle of the connection that is being driven.
    driven: Option<usize>,
    /// Streams that this turn may still read.
    streams_left: usize,
    out: Vec<u8>,
    clock: Clock,
    scan_at_ns: u64,
    /// Where the scan continues.
    scan_from: usize,
    /// When a draining listener closes connections with unfinished streams too; None: it serves.
    drain_by_ns: Option<u64>,
}

impl Debug for QuicServer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicServer").field("options", &self.options.listen).finish_non_exhaustive()
    }
}

impl QuicServer {
    /// Listens with so many threads, at most `THREADS_MAX`; each drives one of those returned.
    ///
    /// # Errors
    /// When the port is in use, the address is not local, or the system has no socket left.
    pub fn listen(options: &Options, threads: usize) -> io::Result<Vec<Self>> {
        let threads = threads.clamp(1, THREADS_MAX);
        // Of any free port no other process has a socket.
        let before = if options.listen.port() == 0 { &[] } else { &*options.predecessor_places };
        let has_predecessor = !before.is_empty();
        let routing = routing_of(threads, options.process_number, before);
        let certificate = PresentedCertificate::default();
        let config = server_config(&options.seed, &certificate).map_err(io::Error::other)?;
        let config = Arc::new(config);
        let program = &mut routing.program();
        let (port, sockets) = PortSockets::bind(options.listen, threads, has_predecessor, program)?;
        let bounds = Bounds {
            connections: options.connections_max,
            per_address: options.connections_per_address,
            per_account: options.connections_per_account,
        };
        let shared = Arc::new(Threads::new(threads, routing.clone(), port, bounds));
        let clock = Clock::new();
        let alone_at_ns = clock.now_ns().saturating_add(PREDECESSOR_NS_MAX);
        let server_of = |(thread, socket): (usize, DatagramSocket)| {
            let mut endpoint_config = EndpointConfig::default();
            let routing = routing.clone();
            endpoint_config.cid_generator(move || Box::new(routing.ids_of(thread)));
            let can_discover_mtu = !socket.may_fragment();
            let endpoint = Endpoint::new(
                Arc::new(endpoint_config),
                Some(config.clone()),
                can_discover_mtu,
                None,
            );
            let waits = thread == 0 && has_predecessor;
            Self {
                options: options.clone(),
                threads: shared.clone(),
                alone_at_ns: if waits { alone_at_ns } else { NEVER_NS },
                socket: ThreadSocket::new(socket, shared.clone(), thread),
                endpoint,
                arrivals: VecDeque::new(),
                connections: Vec::new(),
                clients: Clients::new(&shared, options.drain_to.clone()),
                certificate: certificate.clone(),
                published: QuicNumbers::default(),
                schedule: Schedule::default(),
                driven: None,
                streams_left: 0,
                out: Vec::new(),
                clock,
                scan_at_ns: 0,
                scan_from: 0,
                drain_by_ns: None,
            }
        };
        Ok(sockets.into_iter().enumerate().map(server_of).collect())
    }

    /// Its local address.
    ///
    /// # Errors
    /// When the system does not return it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Has the poll report when datagrams arrive; `waker` ends the poll for those that another
    /// thread passes on.
    ///
    /// # Errors
    /// When the poll does not take it.
    pub fn register(
        &mut self,
        registry: &Registry,
        token: Token,
        waker: Arc<Waker>,
    ) -> io::Result<()> {
        self.socket.register(registry, token, waker)
    }

    /// Has the poll report nothing more: call it before dropping this.
    pub fn deregister(&mut self, registry: &Registry) {
        self.socket.deregister(registry);
    }

    /// The poll reported datagrams.
    pub fn on_readable(&mut self) {
        self.socket.on_readable();
    }

    /// Presents the certificate of these settings to `touchdown/1` clients that connect from now
    /// on.
    pub fn present(&self, config: Arc<rustls::ServerConfig>) {
        self.certificate.present(config);
    }

    /// Tells the clients with a control stream to connect elsewhere; serves on.
    pub fn announce_drain(&mut self) {
        self.clients.announce_drain(self.connections.iter_mut().flatten().map(Box::as_mut));
        self.list_all();
    }

    /// Accepts no connections from now on, and closes each once its streams are finished, or after
    /// `DRAIN_NS_MAX`.
    pub fn drain(&mut self) {
        if self.drain_by_ns.is_none() {
            self.announce_drain();
            self.clients.waits.close();
            // The process that replaces this one distributes the datagrams.
            self.alone_at_ns = NEVER_NS;
            self.drain_by_ns = Some(self.clock.now_ns().saturating_add(DRAIN_NS_MAX));
            self.scan_at_ns = 0;
            self.list_all();
        }
    }

    /// As `drain`, for a process at the same address that replaces this one: clients connect there.
    pub fn retire(&mut self) {
        self.clients.name_no_address();
        self.drain();
    }

    /// The process that was to replace this one has ended, and has left its program on the port.
    pub fn take_back(&self) {
        self.threads.are_alone();
    }

    /// As `drain`, without a wait: the next turn closes every connection.
    pub fn close_all(&mut self) {
        self.drain_by_ns = Some(0);
        self.scan_at_ns = 0;
        self.list_all();
    }

    /// Passes receipts of accounts on to the clients that want them: a batch of `receipts_of`. A
    /// panic loses the rest of the batch.
    pub fn take_receipts<H: StreamHandler>(&mut self, batch: &[u8], handler: &H) {
        if catch_unwind(AssertUnwindSafe(|| self.queue_receipts(batch, handler))).is_err() {
            self.recover();
        }
    }

    fn queue_receipts<H: StreamHandler>(&mut self, batch: &[u8], handler: &H) {
        for Receipt { account, verdict } in receipts_of(batch) {
            if verdict.is_final() {
                for Waiter { handle, stream, .. } in self.clients.waits.take(&verdict.signature) {
                    if let Some(Some(connection)) = self.connections.get_mut(handle) {
                        connection.landed(stream, verdict, self.clock, handler);
                        self.schedule.list(connection, handle);
                    }
                }
            }
            for &handle in self.clients.followers.of(account) {
                if let Some(Some(connection)) = self.connections.get_mut(handle) {
                    let is_dropped = connection.push_receipt(&verdict, handler);
                    self.clients.numbers.receipts_dropped += u64::from(is_dropped);
                    self.schedule.list(connection, handle);
                }
            }
        }
    }

    /// Whether every connection has ended.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.clients.numbers.connections == 0 && self.clients.numbers.handshakes == 0
    }

    /// How long the thread may sleep; None: until a datagram arrives.
    #[must_use]
    pub fn due_in(&self) -> Option<Duration> {
        let has_work = self.schedule.has_listed() || !self.arrivals.is_empty();
        if has_work || self.socket.has_work() {
            return Some(Duration::ZERO);
        }
        let timer_ns = self.schedule.first_ns();
        let scan_ns = self.needs_scan().then_some(self.scan_at_ns);
        let alone_ns = (self.alone_at_ns != NEVER_NS).then_some(self.alone_at_ns);
        let at_ns = timer_ns.into_iter().chain(scan_ns).chain(alone_ns).min()?;
        Some(Duration::from_nanos(at_ns.saturating_sub(self.clock.now_ns())))
    }

    fn needs_scan(&self) -> bool {
        !self.is_idle() || self.clients.closed > 0
    }

    /// Whether it has drained, and its socket can be closed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.drain_by_ns.is_some()
            && self.arrivals.is_empty()
            && self.connections.iter().all(Option::is_none)
    }

    /// One turn: receives, and drives the connections that have something to do. A panic ends the
    /// connection that it happened in.
    pub fn turn<H: StreamHandler>(&mut self, handler: &mut H) {
        if catch_unwind(AssertUnwindSafe(|| self.run_turn(handler))).is_err() {
            self.recover();
        }
        let numbers = self.clients.numbers();
        if numbers != self.published {
            self.published = numbers;
            handler.publish(&numbers);
        }
    }

    fn run_turn<H: StreamHandler>(&mut self, handler: &mut H) {
        let now = Instant::now();
        let now_ns = self.clock.ns(now);
        self.socket.receive(now_ns);
        self.handle_datagrams(now, now_ns);
        self.take_due(now, now_ns);
        if now_ns >= self.alone_at_ns {
            self.alone_at_ns = NEVER_NS;
            self.threads.are_alone();
        }
        if now_ns >= self.scan_at_ns && self.needs_scan() {
            self.scan(now, now_ns, handler);
        }
        // At the end of the thread no other turn follows.
        let is_last = self.drain_by_ns == Some(0);
        let Schedule { listed, unknown, .. } = &self.schedule;
        let (known, unknown, streams) = match is_last {
            true => (listed.len(), unknown.len(), usize::MAX),
            false => (DRIVEN_PER_TURN, UNKNOWN_DRIVEN_PER_TURN, STREAMS_PER_TURN),
        };
        self.streams_left = streams;
        for _ in 0..known {
            if self.streams_left == 0 {
                break;
            }
            let Some(handle) = self.schedule.listed.pop_front() else { break };
            self.drive(handle, now, now_ns, handler);
        }
        for _ in 0..unknown {
            let Some(handle) = self.schedule.unknown.pop_front() else { break };
            self.drive(handle, now, now_ns, handler);
        }
        self.take_arrivals(now, now_ns);
    }

    /// After a panic: counts what is left, and drives every connection. The client of a connection
    /// that it ended gets a stateless reset for its next datagram.
    fn recover(&mut self) {
        if let Some(handle) = self.driven.take() {
            self.endpoint.handle_event(ConnectionHandle(handle), EndpointEvent::drained());
        }
        self.socket.discard();
        let connections = self.connections.iter_mut().enumerate();
        let connections = connections.filter_map(|(handle, place)| Some((handle, place.as_mut()?)));
        self.clients.recount(connections.map(|(handle, connection)| {
            connection.is_listed = false;
            connection.armed_ns = NEVER_NS;
            (handle, connection.as_mut())
        }));
        self.clients.numbers.handshakes += self.arrivals.len() as u64;
        self.schedule = Schedule::default();
        self.list_all();
    }

    /// Handles what was received, up to the number of datagrams of handshakes for one turn.
    fn handle_datagrams(&mut self, now: Instant, now_ns: u64) {
        let mut handshakes = 0;
        // Not those that come meanwhile.
        let mut forwarded = self.socket.forwarded();
        while handshakes < HANDSHAKE_DATAGRAMS_PER_TURN
            && let Some(datagram) = self.socket.next(&mut forwarded, &mut self.clients.numbers)
        {
            handshakes += usize::from(self.on_datagram(datagram, now, now_ns));
        }
    }

    /// Returns whether it counts to the datagrams of handshakes in a turn.
    fn on_datagram(&mut self, datagram: Datagram, now: Instant, now_ns: u64) -> bool {
        let Datagram { bytes, meta, received_ns } = datagram;
        if bytes.len() > DATAGRAM_BYTES_MAX || !is_answerable(&meta) {
            self.clients.numbers.datagrams_refused += 1;
            return false;
        }
        // RFC 9000, section 17.2: a packet before those of 1-RTT, for which keys may be derived.
        let has_long_header = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
        let ecn = meta.ecn.and_then(|ecn| quinn_proto::EcnCodepoint::from_bits(ecn as u8));
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        let event = self.endpoint.handle(now, meta.addr, meta.dst_ip, ecn, bytes, &mut out);
        let is_of_handshake = match event {
            None => has_long_header,
            Some(DatagramEvent::Response(transmit)) => {
                self.clients.numbers.datagrams_refused += u64::from(has_long_header);
                self.send(&transmit, &out);
                has_long_header
            }
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                self.pass_on(handle, event, received_ns)
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.on_incoming(incoming, now_ns, &mut out);
                true
            }
        };
        self.out = out;
        is_of_handshake
    }

    /// Returns whether the connection's handshake is in progress.
    fn pass_on(
        &mut self,
        handle: ConnectionHandle,
        event: ConnectionEvent,
        received_ns: u64,
    ) -> bool {
        let Some(Some(connection)) = self.connections.get_mut(handle.0) else { return false };
        connection.received_ns = connection.received_ns.min(received_ns);
        connection.inner.handle_event(event);
        self.schedule.list(connection, handle.0);
        connection.phase == Phase::Handshake
    }

    /// Lists the connections whose timer is due.
    fn take_due(&mut self, now: Instant, now_ns: u64) {
        while let Some(handle) = self.schedule.pop_due(now_ns) {
            let Some(Some(connection)) = self.connections.get_mut(handle) else { continue };
            connection.armed_ns = NEVER_NS;
            if connection.inner.poll_timeout().is_some_and(|at| at <= now) {
                connection.inner.handle_timeout(now);
            }
            self.schedule.list(connection, handle);
        }
    }

    /// Closes connections whose key is no longer valid or whose handshake is late, forgets closed
    /// ones, stops slow streams, and continues to drain.
    fn scan<H: StreamHandler>(&mut self, now: Instant, now_ns: u64, handler: &mut H) {
        let is_draining = self.drain_by_ns.is_some();
        let from = self.scan_from;
        self.scan_from = from.saturating_add(SCANNED_PER_TURN);
        if self.scan_from >= self.connections.len() {
            self.scan_from = 0;
            self.scan_at_ns = now_ns.saturating_add(SCAN_NS);
        }
        let places = self.connections.iter_mut().enumerate().skip(from).take(SCANNED_PER_TURN);
        for (handle, place) in places {
            let Some(connection) = place else { continue };
            let refusal = match connection.phase {
                Phase::Closed => {
                    if connection.until_ns <= now_ns {
                        self.schedule.list(connection, handle);
                    }
                    continue;
                }
                Phase::Handshake => {
                    if connection.until_ns <= now_ns {
                        self.clients.numbers.handshakes_refused += 1;
                        let refusal = connection.lateness();
                        connection.close_with(handler.code(refusal), refusal, now);
                        self.schedule.list(connection, handle);
                    }
                    continue;
                }
                Phase::Open { key, account } => {
                    let client = connection.client_of(key);
                    let is_late = connection.control.as_ref().is_some_and(|it| it.is_late(now_ns));
                    // A public key that was revoked may be another account's by now.
                    if handler.account_of(&client) == Some(account) {
                        is_late.then_some(QuicRefusal::Slow)
                    } else {
                        Some(QuicRefusal::Unauthorized)
                    }
                }
            };
            if let Some(refusal) = refusal {
                connection.close(refusal, now, handler);
            } else {
                let Clients { waits, numbers, .. } = &mut self.clients;
                let (clock, finish_by_ns) = (self.clock, NEVER_NS);
                let received_ns = now_ns;
                let mut turn =
                    Turn { handle, now_ns, received_ns, finish_by_ns, clock, waits, numbers };
                let has_work = connection.check(&mut turn, handler);
                if !has_work && !is_draining {
                    continue;
                }
            }
            self.schedule.list(connection, handle);
        }
    }

    /// Does what a connection has to do; `recover` ends it if that panics.
    fn drive<H: StreamHandler>(
        &mut self,
        handle: usize,
        now: Instant,
        now_ns: u64,
        handler: &mut H,
    ) {
        self.driven = Some(handle);
        self.drive_connection(handle, now, now_ns, handler);
        self.driven = None;
    }

    fn drive_connection<H: StreamHandler>(
        &mut self,
        handle: usize,
        now: Instant,
        now_ns: u64,
        handler: &mut H,
    ) {
        let Some(mut connection) = self.connections.get_mut(handle).and_then(Option::take) else {
            return;
        };
        connection.is_listed = false;
        self.run_events(&mut connection, handle, now, now_ns, handler);
        let numbers = &mut self.clients.numbers;
        connection.grant_streams(now_ns, &self.threads.admission, numbers, handler);
        self.continue_drain(&mut connection, handle, now, now_ns, handler);
        if connection.inner.is_closed() {
            self.clients.ended(&mut connection, handle, now_ns);
        }
        connection.flush_control();
        connection.acknowledge_in_turn(now, now_ns);
        self.transmit(&mut connection, now, now_ns);
        let is_drained = self.run_endpoint_events(&mut connection, handle);
        let is_forgotten = connection.phase == Phase::Closed
            && (connection.until_ns <= now_ns
                || self.clients.closed > CLOSED_MAX / self.threads.count());
        if is_forgotten && !is_drained {
            self.endpoint.handle_event(ConnectionHandle(handle), EndpointEvent::drained());
        }
        if is_drained || is_forgotten {
            self.clients.ended(&mut connection, handle, now_ns);
            self.clients.closed -= 1;
            self.schedule.set_timer(&mut connection, handle, NEVER_NS);
            return;
        }
        self.arm(&mut connection, handle);
        if let Some(place) = self.connections.get_mut(handle) {
            *place = Some(connection);
        }
    }

    fn run_events<H: StreamHandler>(
        &mut self,
        connection: &mut ClientConnection,
        handle: usize,
        now: Instant,
        now_ns: u64,
        handler: &mut H,
    ) {
        let received_ns = std::mem::replace(&mut connection.received_ns, NEVER_NS).min(now_ns);
        let is_over = self.drain_by_ns.is_some_and(|at_ns| at_ns <= now_ns);
        while let Some(event) = connection.inner.poll() {
            match event {
                Event::Connected => self.clients.connected(connection, now, handler),
                Event::ConnectionLost { .. } => {
                    // The client may have left once it knew that its streams have arrived.
                    self.read_streams(connection, handle, usize::MAX, now, now_ns, handler);
                    self.clients.ended(connection, handle, now_ns);
                }
                Event::Stream(event) => {
                    let mut turn = self.turn_of(handle, now_ns);
                    connection.on_stream_event(event, received_ns, &mut turn);
                }
                _ => {}
            }
        }
        // Known clients may have used up the turn; a client whose key is not known says hello.
        let least = usize::from(connection.phase == Phase::Handshake);
        let most = self.streams_left.max(least);
        let count = if is_over { usize::MAX } else { STREAMS_PER_DRIVE.min(most) };
        let read = self.read_streams(connection, handle, count, now, now_ns, handler);
        self.streams_left = self.streams_left.saturating_sub(read);
        if connection.has_readable() {
            self.schedule.list(connection, handle);
        }
    }

    /// Reads at most so many of the streams of which something has arrived; returns how many.
    fn read_streams<H: StreamHandler>(
        &mut self,
        connection: &mut ClientConnection,
        handle: usize,
        count_max: usize,
        now: Instant,
        now_ns: u64,
        handler: &mut H,
    ) -> usize {
        let mut count = 0;
        while count < count_max && connection.read_next(&mut self.turn_of(handle, now_ns), handler)
        {
            count += 1;
            if let Some(greeting) = connection.take_greeting() {
                self.clients.greet(connection, handle, greeting, now, handler);
            }
        }
        count
    }

    /// What a connection uses of the listener.
    fn turn_of(&mut self, handle: usize, now_ns: u64) -> Turn<'_> {
        let Clients { waits, numbers, .. } = &mut self.clients;
        let finish_by_ns = now_ns.saturating_add(self.options.stream_timeout_ns);
        let (clock, received_ns) = (self.clock, now_ns);
        Turn { handle, now_ns, received_ns, finish_by_ns, clock, waits, numbers }
    }

    fn continue_drain<H: StreamHandler>(
        &mut self,
        connection: &mut ClientConnection,
        handle: usize,
        now: Instant,
        now_ns: u64,
        handler: &mut H,
    ) {
        let Some(drain_by_ns) = self.drain_by_ns else { return };
        if connection.inner.is_closed() {
            return;
        }
        connection.answer_waiting(u64::MAX, &mut self.turn_of(handle, now_ns), handler);
        let is_over = now_ns >= drain_by_ns;
        if connection.is_quiet() || is_over && connection.streams.is_empty() {
            // No transaction is refused, so no refusal is counted.
            let code = handler.code(QuicRefusal::Draining);
            connection.close_with(code, QuicRefusal::Draining, now);
        } else if is_over {
            connection.close(QuicRefusal::Draining, now, handler);
        }
    }

    fn transmit(&mut self, connection: &mut ClientConnection, now: Instant, now_ns: u64) {
        let mut out = std::mem::take(&mut self.out);
        let segments = self.socket.segments_max();
        loop {
            out.clear();
            let Some(transmit) = connection.inner.poll_transmit(now, segments, &mut out) else {
                break;
            };
            connection.sent_ns = now_ns;
            self.send(&transmit, &out);
        }
        self.out = out;
    }

    fn send(&mut self, transmit: &Transmit, out: &[u8]) {
        // As if lost on the way: QUIC sends what matters again.
        if !self.socket.send(transmit, out) {
            self.clients.numbers.datagrams_dropped += 1;
        }
    }

    /// Returns whether the endpoint has forgotten the connection.
    fn run_endpoint_events(&mut self, connection: &mut ClientConnection, handle: usize) -> bool {
        while let Some(event) = connection.inner.poll_endpoint_events() {
            let is_drained = event.is_drained();
            if let Some(event) = self.endpoint.handle_event(ConnectionHandle(handle), event) {
                connection.inner.handle_event(event);
                self.schedule.list(connection, handle);
            }
            if is_drained {
                return true;
            }
        }
        false
    }

    /// Sets the connection's next timer.
    fn arm(&mut self, connection: &mut ClientConnection, handle: usize) {
        let quic_ns = connection.inner.poll_timeout().map_or(NEVER_NS, |at| self.clock.ns(at));
        let is_open = matches!(connection.phase, Phase::Open { .. });
        let credit_ns = if is_open { connection.credit_at_ns } else { NEVER_NS };
        let at_ns = quic_ns.min(credit_ns);
        self.schedule.set_timer(connection, handle, at_ns);
    }

    fn list_all(&mut self) {
        for (handle, place) in self.connections.iter_mut().enumerate() {
            if let Some(connection) = place {
                self.schedule.list(connection, handle);
            }
        }
    }
}

#[path = "arrivals.rs"]
mod arrivals;

/// Whether the kernel would send an answer to this datagram. It refuses port 0 as a destination,
/// and a multicast or broadcast address as the source, with EINVAL. After one EINVAL quinn-udp 0.5
/// stops using segmentation and ECN marks on this socket, for all clients.
fn is_answerable(meta: &RecvMeta) -> bool {
    let is_of_many = |ip: IpAddr| match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_multicast() || ip.is_broadcast(),
        IpAddr::V6(ip) => ip.is_multicast(),
    };
    meta.addr.port() != 0 && !meta.dst_ip.is_some_and(is_of_many)
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
