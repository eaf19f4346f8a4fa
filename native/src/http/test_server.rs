//! An event loop with real sockets for tests: its handler is simple, its clock is set by hand, and
//! the upstream server does what the test defines.

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use crate::http::event_loop::{Options, run};
use crate::http::handler::{
    ClientCloseReason, Drain, Endpoint, HandshakeResult, Request, RequestHandler, UnreadReason,
};
use crate::http::listener::{Listener, listen_on};
use crate::http::mailbox::Listening;
use crate::http::mailbox::{Command, EventLoopHandle, Mailbox, mailbox};
use crate::http::rejection_table::Reason;
pub(super) use crate::http::test_client::{GUARD, TestClient, get, post, put};
use crate::http::test_client::{length_of, read_head_text};
use crate::quic_server::handler::{
    ClientLimits, Decision, QuicClient, QuicNumbers, QuicRefusal, StreamCredit, StreamHandler,
    Submission, Tips,
};
use crate::sync::clock::NS_PER_S;

pub(super) const NAME: &str = "x-secret-name";
pub(super) const UPSTREAM_CONNECTIONS_MAX: usize = 20;
pub(super) const IDLE_TIMEOUT_S: u64 = 75;
/// Bytes of a response that is larger than its request.
pub(super) const GROWN: usize = 64 * 1024;

/// What the handler was called with.
#[derive(Debug, Default)]
pub(super) struct HandlerLog {
    pub(super) handled: usize,
    /// Requests among them while the edge drains.
    pub(super) leaving: usize,
    pub(super) proxied: usize,
    pub(super) open: usize,
    pub(super) closed: Vec<ClientCloseReason>,
    pub(super) handshakes: Vec<HandshakeResult>,
    pub(super) left: usize,
    pub(super) overloaded: usize,
    pub(super) bodies_pending: usize,
    pub(super) idle: bool,
}

/// Responds with the body of a request, and with `GROWN` bytes to "grow".
pub(super) struct Echo {
    log: Arc<Mutex<HandlerLog>>,
    now_ns: Arc<AtomicU64>,
    turns: Arc<AtomicU64>,
}

impl StreamHandler for Echo {
    fn key_of_certificate(&self, public_key: &[u8; 32]) -> [u8; 32] {
        *public_key
    }

    fn key_of_token(&self, _token: &[u8]) -> Option<[u8; 32]> {
        Some([0; 32])
    }

    fn has_read_keys(&self) -> bool {
        true
    }

    fn knows(&self, _client: &QuicClient) -> bool {
        false
    }

    fn limits(&self, _client: &QuicClient) -> Option<ClientLimits> {
        None
    }

    fn tips(&self) -> Tips {
        Tips { lamports_min: 0, accounts: Box::default() }
    }

    fn account_of(&self, _client: &QuicClient) -> Option<u64> {
        None
    }

    fn credit(&self, _client: &QuicClient) -> StreamCredit {
        StreamCredit { streams: 0, more_in_ns: None, burst: 0 }
    }

    fn submit(&mut self, _client: &QuicClient, _submission: &Submission<'_>) -> Decision {
        Decision { code: 1, signature: None, is_repeated: false }
    }

    fn refused(&mut self, _client: Option<&QuicClient>, _why: QuicRefusal, _bytes: usize) -> u32 {
        1
    }

    fn code(&self, _why: QuicRefusal) -> u32 {
        1
    }

    fn publish(&mut self, _numbers: &QuicNumbers) {}
}

impl RequestHandler for Echo {
    fn has_key(&self, token: &[u8]) -> bool {
        token == b"known"
    }

    fn handle(&mut self, request: &Request<'_>, out: &mut Vec<u8>) {
        let mut log = self.log.lock().unwrap();
        log.handled += 1;
        log.leaving += usize::from(request.drain != Drain::None);
        drop(log);
        let grown = [b'g'; GROWN];
        let body = if request.body == b"grow" { &grown } else { request.body };
        let endpoint = request.endpoint;
        write!(
            out,
            "HTTP/1.1 200 OK\r\ndoor: {endpoint:?}\r\nDate: now\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .unwrap();
        out.extend_from_slice(body);
    }

    fn refuse_unread(
        &mut self,
        _request: &Request<'_>,
        reason: UnreadReason,
        out: &mut Vec<u8>,
    ) -> Reason {
        respond(out, &format!("{reason:?}"));
        match reason {
            UnreadReason::KeyUnknown => Reason::Unauthorized,
            UnreadReason::NoRoom => Reason::Overloaded,
            // As if its limit were used up.
            UnreadReason::TooLarge(20_000, _) => Reason::RateLimited,
            UnreadReason::TooLarge(..) => Reason::TooLarge,
        }
    }

    fn refuse_draining(&mut self, endpoint: Endpoint, out: &mut Vec<u8>) {
        respond(out, &format!("{endpoint:?} drains"));
    }

    fn proxied(&mut self) {
        self.log.lock().unwrap().proxied += 1;
    }

    fn connections(&mut self, open: usize) {
        self.log.lock().unwrap().open = open;
    }

    fn ping(&mut self, is_head_only: bool, out: &mut Vec<u8>) {
        respond(out, if is_head_only { "head" } else { "ping" });
    }

    fn client_left(&mut self) {
        self.log.lock().unwrap().left += 1;
    }

    fn handshake_ended(&mut self, result: HandshakeResult) {
        self.log.lock().unwrap().handshakes.push(result);
    }

    fn connection_closed(&mut self, reason: ClientCloseReason) {
        self.log.lock().unwrap().closed.push(reason);
    }

    fn bodies_pending(&mut self, count: usize) {
        self.log.lock().unwrap().bodies_pending = count;
    }

    fn overloaded(&mut self) {
        self.log.lock().unwrap().overloaded += 1;
    }

    fn idle(&mut self) {
        self.log.lock().unwrap().idle = true;
    }

    fn end_turn(&mut self) {
        self.turns.fetch_add(1, Ordering::SeqCst);
    }

    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::SeqCst)
    }
}

fn respond(out: &mut Vec<u8>, body: &str) {
    let size = body.len();
    write!(out, "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Length: {size}\r\n\r\n{body}").unwrap();
}

/// An event loop on its own thread.
pub(super) struct TestServer {
    pub(super) handle: EventLoopHandle,
    pub(super) log: Arc<Mutex<HandlerLog>>,
    now_ns: Arc<AtomicU64>,
    turns: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

/// Limits of an event loop.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub(super) connections: usize,
    pub(super) per_address: usize,
    pub(super) upstream_connections: usize,
    pub(super) upstream_connections_per_address: usize,
}

pub(super) const LIMITS: Limits = Limits {
    connections: 100,
    per_address: 100,
    upstream_connections: UPSTREAM_CONNECTIONS_MAX,
    upstream_connections_per_address: UPSTREAM_CONNECTIONS_MAX,
};

impl TestServer {
    pub(super) fn open(
        (handle, mailbox): (EventLoopHandle, Mailbox),
        upstream: SocketAddr,
        limits: Limits,
        listener: Option<Listening>,
    ) -> Self {
        let log = Arc::new(Mutex::new(HandlerLog::default()));
        let now_ns = Arc::new(AtomicU64::new(1_000_000_000));
        let turns = Arc::new(AtomicU64::new(0));
        let mut handler = Echo { log: log.clone(), now_ns: now_ns.clone(), turns: turns.clone() };
        let forwarded_header_name = NAME.to_string();
        let options = Options {
            upstream,
            forwarded_header_name,
            connections_max: limits.connections,
            upstream_connections_max: limits.upstream_connections,
            upstream_connections_per_address: limits.upstream_connections_per_address,
            read_timeout_ns: 10 * NS_PER_S,
            idle_timeout_ns: IDLE_TIMEOUT_S * NS_PER_S,
        };
        if let Some(listener) = listener {
            assert!(handle.send(Command::Listen(Box::new(listener))));
        }
        let thread = std::thread::spawn(move || run(options, &mut handler, mailbox).unwrap());
        Self { handle, log, now_ns, turns, thread: Some(thread) }
    }

    /// A server that listens, and its address.
    pub(super) fn alone(upstream: SocketAddr) -> (Self, SocketAddr) {
        Self::alone_with(upstream, LIMITS)
    }

    pub(super) fn alone_with(upstream: SocketAddr, limits: Limits) -> (Self, SocketAddr) {
        let (listener, address) = listener(Vec::new(), limits);
        (Self::open(mailbox().unwrap(), upstream, limits, Some(listener)), address)
    }

    /// Returns when the loop has handled all that happened before. Each round is a complete turn:
    /// one is needed to accept a connection, one to read from it, one to write upstream.
    pub(super) fn run_turns(&self) {
        for _ in 0..4 {
            let before = self.turns();
            let (sender, receiver) = channel();
            assert!(self.handle.send(Command::Report(sender)));
            receiver.recv_timeout(GUARD).unwrap();
            while self.turns() == before {
                std::thread::yield_now();
            }
        }
    }

    pub(super) fn advance_s(&self, seconds: u64) {
        self.run_turns();
        self.now_ns.fetch_add(seconds * 1_000_000_000, Ordering::SeqCst);
        self.run_turns();
    }

    pub(super) fn open_count(&self) -> usize {
        self.run_turns();
        self.log.lock().unwrap().open
    }

    pub(super) fn proxied(&self) -> usize {
        self.run_turns();
        std::mem::take(&mut self.log.lock().unwrap().proxied)
    }

    pub(super) fn handled(&self) -> usize {
        self.run_turns();
        std::mem::take(&mut self.log.lock().unwrap().handled)
    }

    /// The number of turns that have ended.
    pub(super) fn turns(&self) -> u64 {
        self.turns.load(Ordering::SeqCst)
    }

    /// Returns when the loop has ended.
    pub(super) fn join(&mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A listener for the ingress thread that gets it and these others, and its address.
pub(super) fn listener(others: Vec<EventLoopHandle>, limits: Limits) -> (Listening, SocketAddr) {
    let any = "127.0.0.1:0".parse().unwrap();
    let listener = Listener::listening(listen_on(any).unwrap(), others, limits.per_address);
    let address = listener.local_addr().unwrap();
    (listener, address)
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.handle.send(Command::Exit);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(std::thread::panicking() || ended.is_ok());
        }
    }
}

/// A request that the upstream server received.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct ReceivedRequest {
    pub(super) connection: usize,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

/// A server whose connections a test serves; reports what it receives through a channel.
pub(super) struct TestUpstream {
    pub(super) address: SocketAddr,
    pub(super) received: Receiver<ReceivedRequest>,
    pub(super) connections: Arc<AtomicUsize>,
}

/// A connection served by a test.
pub(super) struct ServedConnection {
    pub(super) number: usize,
    pub(super) stream: TcpStream,
    reader: BufReader<TcpStream>,
    received: Sender<ReceivedRequest>,
}

impl ServedConnection {
    /// Reads a request as a simple server would; None if there is no further one.
    pub(super) fn request(&mut self) -> Option<ReceivedRequest> {
        let head = read_head_text(&mut self.reader)?;
        let mut body = vec![0; length_of(&head)];
        self.reader.read_exact(&mut body).ok()?;
        Some(ReceivedRequest { connection: self.number, head, body })
    }

    pub(super) fn report(&self, received: ReceivedRequest) {
        // Fails when the test has ended.
        let _ = self.received.send(received);
    }

    pub(super) fn report_text(&self, text: &str) {
        self.report(ReceivedRequest {
            connection: self.number,
            head: text.to_string(),
            body: Vec::new(),
        });
    }

    pub(super) fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.reader.read(into)
    }

    pub(super) fn send_text(&mut self, text: &str) {
        // Fails when the client has left.
        let _ = self.stream.write_all(text.as_bytes());
    }

    /// Responds to every request with its first line and the size of its body.
    pub(super) fn serve_echo(mut self) {
        while let Some(received) = self.request() {
            let text =
                format!("{} +{}", received.head.lines().next().unwrap(), received.body.len());
            self.report(received);
            self.send_text(&format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            ));
        }
        self.report_text("left");
    }
}

impl TestUpstream {
    pub(super) fn start(serve: impl Fn(ServedConnection) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (received, receiver) = channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        let serve = Arc::new(serve);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let number = counted.fetch_add(1, Ordering::SeqCst);
                let reader = BufReader::new(stream.try_clone().unwrap());
                let served =
                    ServedConnection { number, stream, reader, received: received.clone() };
                let serve = serve.clone();
                std::thread::spawn(move || serve(served));
            }
        });
        Self { address, received: receiver, connections }
    }

    pub(super) fn echo() -> Self {
        Self::start(ServedConnection::serve_echo)
    }

    pub(super) fn next(&self) -> ReceivedRequest {
        self.received.recv_timeout(GUARD).unwrap()
    }
}
