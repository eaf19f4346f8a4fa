//! A WebSocket to a node, on the thread that opens it.
//!
//! Whatever blocks waits for the socket and for a bell at once, so that another thread can end it
//! at any moment, while it connects or shakes hands too; only the lookup of a name takes as long as
//! the system gives it. The handshake as a whole has a deadline, and after it nothing blocks.
//! Certificates are held against what those of the asked nodes are (`root_store`).

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use socket2::{Domain, Protocol, Socket, Type};
use tungstenite::WebSocket;
use tungstenite::client::IntoClientRequest;
use tungstenite::handshake::client::{Request, Response, generate_request};
use tungstenite::handshake::derive_accept_key;
use tungstenite::handshake::machine::TryParse;
use tungstenite::http::header::{
    AUTHORIZATION, CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS,
    SEC_WEBSOCKET_PROTOCOL, UPGRADE, USER_AGENT,
};
use tungstenite::http::{StatusCode, Uri};
use tungstenite::protocol::{Role, WebSocketConfig};

use crate::limits::{FEED_BUFFER_BYTES, FEED_MESSAGE_BYTES_MAX};
use crate::rpc::root_store::node_config;

/// How other threads reach the one that waits for a node.
pub struct Bell {
    fd: OwnedFd,
    closed: AtomicBool,
}

impl Bell {
    /// Makes the eventfd.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { fd, closed: AtomicBool::new(false) })
    }

    /// Ends the wait, or the next one.
    pub fn ring(&self) {
        // The counter cannot overflow before the thread reads it: it would take 2^64 calls.
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }

    /// Ends all waits with an error from now on.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.ring();
    }

    /// Whether that was asked for.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Waits for the socket or the bell. Fails when it is closed and when the time is up.
    pub fn wait(
        &self,
        socket: &impl AsFd,
        flags: PollFlags,
        until: Option<Instant>,
    ) -> io::Result<()> {
        if self.is_closed() {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        let left = until.map(time_left).transpose()?;
        let mut fds = [PollFd::new(socket, flags), PollFd::new(&self.fd, PollFlags::IN)];
        match poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if fds.last().is_some_and(|bell| !bell.revents().is_empty()) {
            let _ = rustix::io::read(&self.fd, &mut [0u8; 8]);
        }
        Ok(())
    }
}

fn time_left(until: Instant) -> io::Result<Timespec> {
    let left = until.saturating_duration_since(Instant::now());
    let timespec = Timespec::try_from(left).map_err(|_| ErrorKind::InvalidInput)?;
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(timespec) }
}

/// Where a node is, and what it is asked with.
pub struct Address {
    request: Request,
    host: String,
    port: u16,
    is_secure: bool,
}

impl Address {
    /// None for what is no ws: or wss: address, or has a name or password in it; what goes into the
    /// header `authorization` is given apart, empty for none.
    #[must_use]
    pub fn new(url: &str, authorization: &str) -> Option<Self> {
        let uri = url.parse::<Uri>().ok()?;
        let is_secure = match uri.scheme_str() {
            Some("ws") => false,
            Some("wss") => true,
            _ => return None,
        };
        let is_bare = !uri.authority()?.as_str().contains('@');
        let host = uri.host()?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let mut request = uri.into_client_request().ok()?;
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static("touchdown"));
        if !authorization.is_empty() {
            request.headers_mut().insert(AUTHORIZATION, authorization.parse().ok()?);
        }
        (is_bare && !host.is_empty()).then_some(Self { request, host, port, is_secure })
    }
}

/// Connects and shakes hands; why it could not makes no difference.
pub fn open(address: Address, bell: &Arc<Bell>, until: Instant) -> Option<WebSocket<Wire>> {
    open_with(node_config, address, bell, until)
}

/// The same with other settings of TLS.
pub(crate) fn open_with(
    config: impl FnOnce() -> Option<Arc<ClientConfig>>,
    address: Address,
    bell: &Arc<Bell>,
    until: Instant,
) -> Option<WebSocket<Wire>> {
    let socket = connect(&address, bell, until).ok()?;
    socket.set_nodelay(true).ok()?;
    let line = Line { socket, bell: Arc::clone(bell), until: Some(until) };
    let wire =
        if address.is_secure { secure(line, address.host, config()?)? } else { Wire::Plain(line) };
    let config = WebSocketConfig::default()
        .read_buffer_size(FEED_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(FEED_BUFFER_BYTES)
        .max_message_size(Some(FEED_MESSAGE_BYTES_MAX))
        .max_frame_size(Some(FEED_MESSAGE_BYTES_MAX));
    let (mut wire, ahead) = upgrade(wire, address.request)?;
    wire.line_mut().until = None;
    Some(WebSocket::from_partially_read(wire, ahead, Role::Client, Some(config)))
}

/// Asks for a WebSocket; what the node said beyond its answer is given back. The library's own
/// handshake takes no word beside `upgrade` in the header `connection`, and some proxies send one.
fn upgrade(mut wire: Wire, request: Request) -> Option<(Wire, Vec<u8>)> {
    let (question, key) = generate_request(request).ok()?;
    wire.write_all(&question).ok()?;
    wire.flush().ok()?;
    let mut said = Vec::new();
    loop {
        let mut piece = [0; 1024];
        let count = wire.read(&mut piece).ok()?;
        said.extend_from_slice(piece.get(..count)?);
        if let Some((size, answer)) = Response::try_parse(&said).ok()? {
            return takes(&answer, &key).then(|| (wire, said.split_off(size)));
        }
        if count == 0 || said.len() > FEED_BUFFER_BYTES {
            return None;
        }
    }
}

/// Whether a node takes the connection: RFC 6455, 4.1. It was asked for no extension or protocol.
fn takes(answer: &Response, key: &str) -> bool {
    let headers = answer.headers();
    let says = |name, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|each| each.trim().eq_ignore_ascii_case(word))
    };
    answer.status() == StatusCode::SWITCHING_PROTOCOLS
        && says(CONNECTION, "upgrade")
        && says(UPGRADE, "websocket")
        && headers
            .get(SEC_WEBSOCKET_ACCEPT)
            .is_some_and(|it| *it == derive_accept_key(key.as_bytes()))
        && !headers.contains_key(SEC_WEBSOCKET_EXTENSIONS)
        && !headers.contains_key(SEC_WEBSOCKET_PROTOCOL)
}

/// To the first of the host's addresses that answers.
fn connect(address: &Address, bell: &Bell, until: Instant) -> io::Result<TcpStream> {
    let addresses = (address.host.as_str(), address.port).to_socket_addrs()?;
    connect_to_first(&addresses.collect::<Vec<_>>(), bell, until)
}

/// Each has its share of the time that is left, so that one that is silent leaves some to others.
pub(crate) fn connect_to_first(
    addresses: &[SocketAddr],
    bell: &Bell,
    until: Instant,
) -> io::Result<TcpStream> {
    let mut failed = ErrorKind::AddrNotAvailable.into();
    for (each, still) in addresses.iter().zip((1..=addresses.len()).rev()) {
        let now = Instant::now();
        let share = until.saturating_duration_since(now).div_f64(still as f64);
        match connect_to(*each, bell, now + share) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn connect_to(address: SocketAddr, bell: &Bell, until: Instant) -> io::Result<TcpStream> {
    time_left(until)?;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() != Some(IN_PROGRESS) => return Err(error),
        _ => {}
    }
    loop {
        bell.wait(&socket, PollFlags::OUT, Some(until))?;
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        // The bell may have rung for something else.
        if socket.peer_addr().is_ok() {
            return Ok(socket.into());
        }
    }
}

const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();

fn secure(line: Line, host: String, config: Arc<ClientConfig>) -> Option<Wire> {
    let name = ServerName::try_from(host).ok()?;
    let session = ClientConnection::new(config, name).ok()?;
    Some(Wire::Secure(Box::new(StreamOwned::new(session, line))))
}

/// The bytes' way to the node.
pub enum Wire {
    /// As they are.
    Plain(Line),
    /// Through TLS.
    Secure(Box<StreamOwned<ClientConnection, Line>>),
}

impl Wire {
    /// What to wait for.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(line) => &line.socket,
            Self::Secure(stream) => &stream.sock.socket,
        }
    }

    fn line_mut(&mut self) -> &mut Line {
        match self {
            Self::Plain(line) => line,
            Self::Secure(stream) => &mut stream.sock,
        }
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(line) => line.read(into),
            Self::Secure(stream) => stream.read(into),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(line) => line.write(bytes),
            Self::Secure(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(line) => line.flush(),
            Self::Secure(stream) => stream.flush(),
        }
    }
}

/// A socket that waits until its deadline, and not at all where it has none.
pub struct Line {
    socket: TcpStream,
    bell: Arc<Bell>,
    until: Option<Instant>,
}

impl Line {
    fn patiently<T>(
        &self,
        flags: PollFlags,
        mut act: impl FnMut(&TcpStream) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            // Also where the node drips byte after byte, or more than can be read.
            self.until.map(time_left).transpose()?;
            if self.bell.is_closed() {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            match (act(&self.socket), self.until) {
                (Err(error), Some(_)) if error.kind() == ErrorKind::WouldBlock => {
                    self.bell.wait(&self.socket, flags, self.until)?;
                }
                (done, _) => return done,
            }
        }
    }
}

impl Read for Line {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.patiently(PollFlags::IN, |mut socket| socket.read(into))
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patiently(PollFlags::OUT, |mut socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
