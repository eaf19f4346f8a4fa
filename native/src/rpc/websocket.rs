//! A WebSocket to a node, on the thread that opens it.
//!
//! Every blocking step waits for the socket and for an eventfd at the same time, so another thread
//! can end it at any moment, also while it connects or handshakes; only name resolution takes as
//! long as the system needs. The complete handshake has a deadline, and after it nothing blocks.
//! Certificates are verified as for RPC requests (`root_store`).

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

use crate::rpc::limits::{WEBSOCKET_BUFFER_BYTES, WEBSOCKET_MESSAGE_BYTES_MAX};
use crate::rpc::root_store::node_config;

/// Interrupts a thread that waits for a node.
pub struct Interrupt {
    fd: OwnedFd,
    closed: AtomicBool,
}

impl Interrupt {
    /// Creates the eventfd.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { fd, closed: AtomicBool::new(false) })
    }

    /// Ends the wait, or the next one.
    pub fn signal(&self) {
        // The counter cannot overflow before the thread reads it: that would take 2^64 calls.
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }

    /// Ends all waits with an error from now on.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.signal();
    }

    /// Whether `close` was called.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Waits for the socket or the interrupt. Fails when closed and at the deadline.
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
        if fds.last().is_some_and(|interrupt| !interrupt.revents().is_empty()) {
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

/// A node's address, and the headers of the request.
pub struct Address {
    request: Request,
    host: String,
    port: u16,
    is_tls: bool,
}

impl Address {
    /// None if `url` is not a ws: or wss: address, or contains a user name or password; the value
    /// of the `authorization` header is a separate argument, empty for none.
    #[must_use]
    pub fn new(url: &str, authorization: &str) -> Option<Self> {
        let uri = url.parse::<Uri>().ok()?;
        let is_tls = match uri.scheme_str() {
            Some("ws") => false,
            Some("wss") => true,
            _ => return None,
        };
        let has_no_credentials = !uri.authority()?.as_str().contains('@');
        let host = uri.host()?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let mut request = uri.into_client_request().ok()?;
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static("touchdown"));
        if !authorization.is_empty() {
            request.headers_mut().insert(AUTHORIZATION, authorization.parse().ok()?);
        }
        (has_no_credentials && !host.is_empty()).then_some(Self { request, host, port, is_tls })
    }
}

/// Connects and handshakes; the reason of a failure makes no difference to callers.
pub fn open(
    address: Address,
    interrupt: &Arc<Interrupt>,
    until: Instant,
) -> Option<WebSocket<MaybeTlsStream>> {
    open_with(node_config, address, interrupt, until)
}

/// The same with other TLS settings.
pub(crate) fn open_with(
    config: impl FnOnce() -> Option<Arc<ClientConfig>>,
    address: Address,
    interrupt: &Arc<Interrupt>,
    until: Instant,
) -> Option<WebSocket<MaybeTlsStream>> {
    let socket = connect(&address, interrupt, until).ok()?;
    socket.set_nodelay(true).ok()?;
    let tcp = InterruptibleTcp { socket, interrupt: Arc::clone(interrupt), until: Some(until) };
    let stream = if address.is_tls {
        wrap_tls(tcp, address.host, config()?)?
    } else {
        MaybeTlsStream::Plain(tcp)
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(WEBSOCKET_BUFFER_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(WEBSOCKET_BUFFER_BYTES)
        .max_message_size(Some(WEBSOCKET_MESSAGE_BYTES_MAX))
        .max_frame_size(Some(WEBSOCKET_MESSAGE_BYTES_MAX));
    let (mut stream, ahead) = upgrade(stream, address.request)?;
    stream.tcp_mut().until = None;
    Some(WebSocket::from_partially_read(stream, ahead, Role::Client, Some(config)))
}

/// Sends the upgrade request; bytes that the node sent after its response are returned. The
/// library's own handshake accepts no token besides `upgrade` in the `connection` header, and some
/// proxies send one.
fn upgrade(mut stream: MaybeTlsStream, request: Request) -> Option<(MaybeTlsStream, Vec<u8>)> {
    let (upgrade_request, key) = generate_request(request).ok()?;
    stream.write_all(&upgrade_request).ok()?;
    stream.flush().ok()?;
    let mut received = Vec::new();
    loop {
        let mut piece = [0; 1024];
        let count = stream.read(&mut piece).ok()?;
        received.extend_from_slice(piece.get(..count)?);
        if let Some((size, response)) = Response::try_parse(&received).ok()? {
            return is_accepted(&response, &key).then(|| (stream, received.split_off(size)));
        }
        if count == 0 || received.len() > WEBSOCKET_BUFFER_BYTES {
            return None;
        }
    }
}

/// Whether a node accepts the connection: RFC 6455, 4.1. The request offers no extension or
/// protocol.
fn is_accepted(response: &Response, key: &str) -> bool {
    let headers = response.headers();
    let has_token = |name, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|each| each.trim().eq_ignore_ascii_case(word))
    };
    response.status() == StatusCode::SWITCHING_PROTOCOLS
        && has_token(CONNECTION, "upgrade")
        && has_token(UPGRADE, "websocket")
        && headers
            .get(SEC_WEBSOCKET_ACCEPT)
            .is_some_and(|it| *it == derive_accept_key(key.as_bytes()))
        && !headers.contains_key(SEC_WEBSOCKET_EXTENSIONS)
        && !headers.contains_key(SEC_WEBSOCKET_PROTOCOL)
}

/// Connects to the first address of the host that responds.
fn connect(address: &Address, interrupt: &Interrupt, until: Instant) -> io::Result<TcpStream> {
    let addresses = (address.host.as_str(), address.port).to_socket_addrs()?;
    connect_to_first(&addresses.collect::<Vec<_>>(), interrupt, until)
}

/// Each address gets a share of the remaining time, so that a silent one leaves time for others.
pub(crate) fn connect_to_first(
    addresses: &[SocketAddr],
    interrupt: &Interrupt,
    until: Instant,
) -> io::Result<TcpStream> {
    let mut failed = ErrorKind::AddrNotAvailable.into();
    for (each, still) in addresses.iter().zip((1..=addresses.len()).rev()) {
        let now = Instant::now();
        let share = until.saturating_duration_since(now).div_f64(still as f64);
        match connect_to(*each, interrupt, now + share) {
            Ok(socket) => return Ok(socket),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn connect_to(address: SocketAddr, interrupt: &Interrupt, until: Instant) -> io::Result<TcpStream> {
    time_left(until)?;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() != Some(IN_PROGRESS) => return Err(error),
        _ => {}
    }
    loop {
        interrupt.wait(&socket, PollFlags::OUT, Some(until))?;
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        // The interrupt may have been signalled for something else.
        if socket.peer_addr().is_ok() {
            return Ok(socket.into());
        }
    }
}

const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();

fn wrap_tls(
    tcp: InterruptibleTcp,
    host: String,
    config: Arc<ClientConfig>,
) -> Option<MaybeTlsStream> {
    let name = ServerName::try_from(host).ok()?;
    let session = ClientConnection::new(config, name).ok()?;
    Some(MaybeTlsStream::Tls(Box::new(StreamOwned::new(session, tcp))))
}

/// The byte stream to the node.
pub enum MaybeTlsStream {
    /// Plain TCP.
    Plain(InterruptibleTcp),
    /// Over TLS.
    Tls(Box<StreamOwned<ClientConnection, InterruptibleTcp>>),
}

impl MaybeTlsStream {
    /// The socket to wait for.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => &tcp.socket,
            Self::Tls(stream) => &stream.sock.socket,
        }
    }

    fn tcp_mut(&mut self) -> &mut InterruptibleTcp {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(stream) => &mut stream.sock,
        }
    }
}

impl Read for MaybeTlsStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.read(into),
            Self::Tls(stream) => stream.read(into),
        }
    }
}

impl Write for MaybeTlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// A socket that waits until its deadline, and never blocks without one.
pub struct InterruptibleTcp {
    socket: TcpStream,
    interrupt: Arc<Interrupt>,
    until: Option<Instant>,
}

impl InterruptibleTcp {
    fn retry_until<T>(
        &self,
        flags: PollFlags,
        mut act: impl FnMut(&TcpStream) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            // Also if the node sends byte by byte, or more than can be read.
            self.until.map(time_left).transpose()?;
            if self.interrupt.is_closed() {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            match (act(&self.socket), self.until) {
                (Err(error), Some(_)) if error.kind() == ErrorKind::WouldBlock => {
                    self.interrupt.wait(&self.socket, flags, self.until)?;
                }
                (done, _) => return done,
            }
        }
    }
}

impl Read for InterruptibleTcp {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.retry_until(PollFlags::IN, |mut socket| socket.read(into))
    }
}

impl Write for InterruptibleTcp {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.retry_until(PollFlags::OUT, |mut socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
