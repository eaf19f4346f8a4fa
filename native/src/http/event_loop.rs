//! Hot path: the event loop of one ingress thread. It polls sockets, accepts connections, and gives
//! each ready client its turn, one after the other.
//!
//! Only the poll of all sockets blocks. A client's turn is limited to a few requests, so a client
//! that sends without a pause delays the others by no more than that.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mio::event::Event;
use mio::{Events, Poll, Token};
use rustls::ServerConfig;

use crate::http::connection::{Client, ConnectionContext, Overdue, Progress};
use crate::http::dispatch::REQUEST_BYTES_MAX;
use crate::http::handler::{ClientCloseReason, Drain, HandshakeResult, RequestHandler};
use crate::http::idle_list::IdleList;
use crate::http::large_request::LARGE_REQUESTS_MAX;
use crate::http::listener::{LISTENER, Listener};
use crate::http::mailbox::{AcceptedSocket, Command, Mailbox, Message, WAKER};
use crate::http::permits::Permits;
use crate::quic_server::server::QuicServer;
use crate::sync::clock::{NS_PER_MS, NS_PER_S};

/// Most readiness events read by one poll.
const EVENTS_PER_POLL: usize = 256;
/// Most messages from other threads that are read before clients get their turn.
const MESSAGES_PER_TURN: usize = 1024;
/// TLS handshakes that are continued before other clients get their turn: one takes as long as many
/// requests.
const HANDSHAKES_PER_TURN: usize = 4;
/// Interval of idle checks while stopping, if no event arrives.
const IDLE_POLL_NS: u64 = 100 * NS_PER_MS;
/// Clients checked by one step of the timeout scan.
const CLIENTS_SCANNED_PER_TURN: usize = 1024;
/// Interval of the timeout scan.
const TIMEOUT_SCAN_NS: u64 = NS_PER_S;
/// How long a connection must be idle before another client takes its place: a client that has just
/// been answered may already be sending its next request.
const EVICTION_IDLE_NS: u64 = NS_PER_S;
/// Uploads (incomplete requests) may use at most 1/4 of the upstream connections.
const UPLOADS_DIVISOR: usize = 4;
/// Tokens 0 and 1 are the waker's and the listener's; each client has two: its own and its upstream
/// connection's.
const RESERVED_TOKENS: usize = 2;
/// Token of the QUIC listener's socket: above that of any client.
const QUIC: Token = Token(usize::MAX);

/// Options of an ingress thread's event loop.
#[derive(Debug)]
pub struct Options {
    /// The main thread's server.
    pub upstream: SocketAddr,
    /// Name of the header with the client's address for the upstream server. Random, so that clients
    /// cannot send it.
    pub forwarded_header_name: String,
    /// Most open connections. A further one takes the place of the one that is idle for longest, or
    /// is closed at accept.
    pub connections_max: usize,
    /// Most upstream connections at the same time.
    pub upstream_connections_max: usize,
    /// Most upstream connections for clients of one address.
    pub upstream_connections_per_address: usize,
    /// How long a client may take for a request head, and for a body.
    pub read_timeout_ns: u64,
    /// How long a connection may be idle.
    pub idle_timeout_ns: u64,
}

/// Serves until `Command::Exit`.
///
/// # Errors
/// When the poll fails.
pub fn run<H: RequestHandler>(
    options: Options,
    handler: &mut H,
    mailbox: Mailbox,
) -> io::Result<()> {
    EventLoop::new(options, handler, mailbox).run()
}

/// Whether the loop accepts connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    Serving,
    /// Accepts no connections, and reports when it is idle.
    Stopping,
    Exiting,
}

struct EventLoop<'a, H: RequestHandler> {
    options: Options,
    /// Only on the ingress thread that listens for all.
    listener: Option<Listener>,
    /// What new connections are presented; None without TLS.
    tls: Option<Arc<ServerConfig>>,
    /// What `touchdown/1` clients are presented; None: the listener's own certificate.
    quic_tls: Option<Arc<ServerConfig>>,
    /// This thread's part of the QUIC listener.
    quic: Option<Box<QuicServer>>,
    upstream_permits: Permits,
    upload_permits: Permits,
    large_permits: Permits,
    handler: &'a mut H,
    mailbox: Mailbox,
    /// By the index in their tokens.
    clients: Vec<Option<Client>>,
    open: usize,
    /// Clients whose request body is pending.
    bodies_pending: usize,
    /// Free indices. All events of a poll are recorded before an index is reused, so no event
    /// reaches the wrong client.
    free: Vec<usize>,
    /// Clients with something to do.
    ready: VecDeque<usize>,
    /// Clients without a request or a response in progress, and with nothing to do.
    idle: IdleList,
    accepted_sockets: Vec<AcceptedSocket>,
    scratch: Vec<u8>,
    out: Vec<u8>,
    phase: Phase,
    drain: Drain,
    /// Whether connections stay open after a response.
    keep_alive: bool,
    /// Whether the mailbox may hold unread messages.
    has_messages: bool,
    scan_at_ns: u64,
    /// Where the timeout scan continues.
    scan_from: usize,
}

impl<'a, H: RequestHandler> EventLoop<'a, H> {
    fn new(options: Options, handler: &'a mut H, mailbox: Mailbox) -> Self {
        Self {
            upstream_permits: Permits::new(
                options.upstream_connections_max,
                options.upstream_connections_per_address,
            ),
            upload_permits: Permits::new(
                (options.upstream_connections_max / UPLOADS_DIVISOR).max(1),
                (options.upstream_connections_per_address / UPLOADS_DIVISOR).max(1),
            ),
            large_permits: Permits::new(LARGE_REQUESTS_MAX, large_requests_per_address(&options)),
            options,
            listener: None,
            tls: None,
            quic_tls: None,
            quic: None,
            handler,
            mailbox,
            clients: Vec::new(),
            open: 0,
            bodies_pending: 0,
            free: Vec::new(),
            ready: VecDeque::new(),
            idle: IdleList::new(),
            accepted_sockets: Vec::new(),
            scratch: vec![0; REQUEST_BYTES_MAX],
            out: Vec::with_capacity(2 * REQUEST_BYTES_MAX),
            phase: Phase::Serving,
            drain: Drain::None,
            keep_alive: true,
            has_messages: true,
            scan_at_ns: 0,
            scan_from: 0,
        }
    }

    fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_PER_POLL);
        loop {
            let now_ns = self.handler.now_ns();
            let timeout = self.timeout(now_ns);
            poll_events(&mut self.mailbox.poll, &mut events, timeout)?;
            let now_ns = self.handler.now_ns();
            for event in &events {
                self.on_event(event);
            }
            self.read_messages(now_ns)?;
            self.accept(now_ns);
            self.run_ready_clients(now_ns);
            if let Some(quic) = &mut self.quic {
                quic.turn(self.handler);
            }
            // With that of the last thread all sockets are closed.
            if let Some(mut quic) = self.quic.take_if(|quic| quic.is_finished()) {
                quic.deregister(self.mailbox.poll.registry());
            }
            self.timeout_scan(now_ns);
            self.handler.end_turn();
            match self.phase {
                Phase::Serving => {}
                Phase::Stopping => self.report_idle(),
                Phase::Exiting => return Ok(()),
            }
        }
    }

    /// How long the loop may block in the poll; None: forever.
    fn timeout(&self, now_ns: u64) -> Option<Duration> {
        if self.has_messages || !self.ready.is_empty() {
            return Some(Duration::ZERO);
        }
        let listener = self.listener.as_ref();
        let accept = listener.and_then(|listener| listener.due_in_ns(now_ns));
        let timeout_scan = (self.open > 0).then(|| self.scan_at_ns.saturating_sub(now_ns));
        let poll_events = (self.phase == Phase::Stopping).then_some(IDLE_POLL_NS);
        let own = accept
            .into_iter()
            .chain(timeout_scan)
            .chain(poll_events)
            .min()
            .map(Duration::from_nanos);
        let quic = self.quic.as_ref().and_then(|quic| quic.due_in());
        own.into_iter().chain(quic).min()
    }

    fn on_event(&mut self, event: &Event) {
        match event.token() {
            WAKER => self.has_messages = true,
            LISTENER => {
                if let Some(listener) = &mut self.listener {
                    listener.can_accept = true;
                }
            }
            QUIC => {
                if let Some(quic) = &mut self.quic {
                    quic.on_readable();
                }
            }
            Token(token) => {
                let token = token - RESERVED_TOKENS;
                let (index, is_upstream) = (token / 2, token % 2 == 1);
                if let Some(client) = client_at(&mut self.clients, index) {
                    client.on_event(event, is_upstream);
                    self.list(index);
                }
            }
        }
    }

    fn list(&mut self, index: usize) {
        let client = client_at(&mut self.clients, index);
        if client.is_some_and(|client| !std::mem::replace(&mut client.is_listed, true)) {
            self.ready.push_back(index);
            self.idle.remove(index);
        }
    }

    fn report_idle(&mut self) {
        let mut clients = self.clients.iter().flatten();
        let is_quic_idle = self.quic.as_ref().is_none_or(|quic| quic.is_idle());
        if self.ready.is_empty() && is_quic_idle && !clients.any(Client::is_busy) {
            self.handler.idle();
        }
    }

    fn read_messages(&mut self, now_ns: u64) -> io::Result<()> {
        if !self.has_messages {
            return Ok(());
        }
        for _ in 0..MESSAGES_PER_TURN {
            match self.mailbox.next() {
                None => {
                    self.has_messages = false;
                    return Ok(());
                }
                Some(Message::Socket(accepted)) => self.register_client(accepted, now_ns),
                Some(Message::Command(command)) => self.handle_command(command)?,
                Some(Message::Receipts(batch)) => {
                    if let Some(quic) = &mut self.quic {
                        quic.take_receipts(&batch, self.handler);
                    }
                }
            }
        }
        Ok(())
    }

    fn handle_command(&mut self, command: Command) -> io::Result<()> {
        match command {
            Command::Tls(config) => self.tls = Some(config),
            Command::QuicTls(config) => {
                if let Some(quic) = &self.quic {
                    quic.present(config.clone());
                }
                self.quic_tls = Some(config);
            }
            #[cfg(test)]
            Command::Report(sender) => sender.send(()).map_err(io::Error::other)?,
            Command::Listen(listening) => {
                let mut listener = Listener::new(*listening);
                if self.phase == Phase::Serving {
                    listener.register(self.mailbox.poll.registry())?;
                    self.listener = Some(listener);
                }
            }
            Command::ListenQuic(mut quic) => {
                if self.phase == Phase::Serving && self.drain != Drain::Refusing {
                    let waker = self.mailbox.waker.clone();
                    quic.register(self.mailbox.poll.registry(), QUIC, waker)?;
                    if let Some(config) = &self.quic_tls {
                        quic.present(config.clone());
                    }
                    self.quic = Some(quic);
                }
            }
            Command::AnnounceDrain => {
                self.drain = self.drain.max(Drain::Announced);
                if let Some(quic) = &mut self.quic {
                    quic.announce_drain();
                }
            }
            Command::Drain => {
                self.drain = Drain::Refusing;
                self.keep_alive = false;
                self.drain_quic();
                self.clients.iter_mut().flatten().for_each(Client::drain);
            }
            Command::DisableKeepAlive => self.keep_alive = false,
            Command::Retire => {
                self.end_accepts();
                if let Some(quic) = &mut self.quic {
                    quic.retire();
                }
                self.keep_alive = false;
            }
            Command::TakeBack => {
                if let Some(quic) = &self.quic {
                    quic.take_back();
                }
            }
            Command::Stop => {
                self.end_accepts();
                self.drain_quic();
                self.phase =
                    if self.phase == Phase::Exiting { Phase::Exiting } else { Phase::Stopping };
            }
            Command::Exit => {
                // Its turn follows, and closes every connection with a code.
                if let Some(quic) = &mut self.quic {
                    quic.close_all();
                }
                self.phase = Phase::Exiting;
            }
        }
        Ok(())
    }

    fn drain_quic(&mut self) {
        if let Some(quic) = &mut self.quic {
            quic.drain();
        }
    }

    fn end_accepts(&mut self) {
        if let Some(mut listener) = self.listener.take() {
            listener.deregister(self.mailbox.poll.registry());
        }
    }

    fn accept(&mut self, now_ns: u64) {
        let Some(listener) = &mut self.listener else { return };
        let mut accepted_sockets = std::mem::take(&mut self.accepted_sockets);
        for _ in 0..listener.accept(now_ns, &mut accepted_sockets) {
            self.handler.connection_closed(ClientCloseReason::Address);
        }
        for accepted in accepted_sockets.drain(..) {
            self.register_client(accepted, now_ns);
        }
        self.accepted_sockets = accepted_sockets;
    }

    fn register_client(&mut self, accepted: AcceptedSocket, now_ns: u64) {
        if self.phase != Phase::Serving {
            return;
        }
        if self.open >= self.options.connections_max && !self.evict_idle(now_ns) {
            self.handler.connection_closed(ClientCloseReason::TooMany);
            return;
        }
        let index = self.free.pop().unwrap_or(self.clients.len());
        let registry = self.mailbox.poll.registry();
        let tls = self.tls.clone();
        let client = Client::new(accepted, registry, client_token(index), tls, now_ns).ok();
        if client.is_none() {
            self.free.push(index);
        } else {
            self.open += 1;
            self.idle.push(index);
        }
        match self.clients.get_mut(index) {
            Some(place) => *place = client,
            None => self.clients.push(client),
        }
        self.handler.connections(self.open);
    }

    /// Closes the connection that is idle for longest; returns false if it is not idle for long.
    fn evict_idle(&mut self, now_ns: u64) -> bool {
        let Some(index) = self.idle.oldest() else { return false };
        let client = client_at(&mut self.clients, index);
        if !client.is_some_and(|client| client.is_idle_for(now_ns, EVICTION_IDLE_NS)) {
            return false;
        }
        self.handler.connection_closed(ClientCloseReason::Evicted);
        self.close(index);
        true
    }

    fn close(&mut self, index: usize) {
        if let Some(client) = self.clients.get_mut(index).and_then(Option::take) {
            self.open -= 1;
            self.idle.remove(index);
            if client.is_body_pending() {
                self.count_bodies_pending(true, false);
                self.handler.client_left();
            }
            self.free.push(index);
            self.handler.connections(self.open);
        }
    }

    /// Updates the count of clients with a pending body.
    fn count_bodies_pending(&mut self, was: bool, is: bool) {
        if was == is {
            return;
        }
        self.bodies_pending = if is { self.bodies_pending + 1 } else { self.bodies_pending - 1 };
        self.handler.bodies_pending(self.bodies_pending);
    }

    /// Gives each ready client one turn.
    fn run_ready_clients(&mut self, now_ns: u64) {
        if self.phase == Phase::Exiting {
            return;
        }
        let mut handshakes = 0;
        for _ in 0..self.ready.len() {
            let Some(index) = self.ready.pop_front() else { return };
            let Some(client) = client_at(&mut self.clients, index) else { continue };
            if client.is_handshaking() {
                if handshakes == HANDSHAKES_PER_TURN {
                    self.ready.push_back(index);
                    continue;
                }
                handshakes += 1;
            }
            client.is_listed = false;
            let was_body_pending = client.is_body_pending();
            let mut cx = ConnectionContext {
                handler: &mut *self.handler,
                registry: self.mailbox.poll.registry(),
                upstream: self.options.upstream,
                forwarded_header_name: &self.options.forwarded_header_name,
                scratch: &mut self.scratch,
                out: &mut self.out,
                upstream_token: upstream_token(index),
                now_ns,
                drain: self.drain,
                keep_alive: self.keep_alive,
                upstream_permits: &self.upstream_permits,
                upload_permits: &self.upload_permits,
                large_permits: &self.large_permits,
            };
            let progress = client.run_turn(&mut cx);
            let (is_body_pending, is_idle) = (client.is_body_pending(), client.is_idle());
            self.count_bodies_pending(was_body_pending, is_body_pending);
            match progress {
                Progress::Closed => self.close(index),
                Progress::Ready => self.list(index),
                Progress::Pending if is_idle => self.idle.push(index),
                Progress::Pending => {}
            }
        }
    }

    fn timeout_scan(&mut self, now_ns: u64) {
        if self.open == 0 || now_ns < self.scan_at_ns {
            return;
        }
        let end = self.clients.len().min(self.scan_from + CLIENTS_SCANNED_PER_TURN);
        let rest = std::mem::replace(&mut self.scan_from, end)..end;
        if end == self.clients.len() {
            self.scan_from = 0;
            self.scan_at_ns = now_ns.saturating_add(TIMEOUT_SCAN_NS);
        }
        for index in rest {
            let Some(client) = client_at(&mut self.clients, index) else { continue };
            let Options { read_timeout_ns, idle_timeout_ns, .. } = self.options;
            match client.overdue(now_ns, read_timeout_ns, idle_timeout_ns) {
                None => continue,
                Some(Overdue::Handshake) => {
                    self.handler.handshake_ended(HandshakeResult::TimedOut);
                    self.handler.connection_closed(ClientCloseReason::ReadTimeout);
                }
                Some(Overdue::ReadTimeout) => {
                    self.handler.connection_closed(ClientCloseReason::ReadTimeout);
                }
                Some(Overdue::Idle) => {}
            }
            self.close(index);
        }
    }
}

fn poll_events(poll: &mut Poll, events: &mut Events, timeout: Option<Duration>) -> io::Result<()> {
    match poll.poll(events, timeout) {
        // An interrupted poll returns no events.
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
        result => result,
    }
}

fn client_at(clients: &mut [Option<Client>], index: usize) -> Option<&mut Client> {
    clients.get_mut(index)?.as_mut()
}

fn client_token(index: usize) -> Token {
    Token(RESERVED_TOKENS + 2 * index)
}

fn upstream_token(index: usize) -> Token {
    Token(RESERVED_TOKENS + 2 * index + 1)
}

#[cfg(test)]
#[path = "event_loop_tests.rs"]
mod tests;

/// Of the large submissions that a thread holds, one address may have the part that it may have of
/// the upstream connections: all of them where all clients are behind one proxy.
fn large_requests_per_address(options: &Options) -> usize {
    let (each, all) = (options.upstream_connections_per_address, options.upstream_connections_max);
    (LARGE_REQUESTS_MAX * each).div_ceil(all.max(1)).clamp(1, LARGE_REQUESTS_MAX)
}

#[cfg(test)]
#[path = "event_loop_tls_tests.rs"]
mod tls_tests;
