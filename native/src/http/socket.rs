//! Hot path: a non-blocking socket, its readiness, and the bytes that it has not accepted yet; with
//! TLS these are records, and `read` and `send` are of what they carry.
//!
//! Readiness is reported once, when it starts (edge-triggered), so it is kept here until a call
//! reports that it is over.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use rustix::io::Errno;
use rustls::ServerConfig;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::http::handler::HandshakeResult;
use crate::http::tls_session::TlsSession;

/// Socket buffers of an upstream connection, in bytes: small, so that a client that does not read
/// soon stalls the upstream server's writes.
const UPSTREAM_SOCKET_BYTES: usize = 64 * 1024;
/// Reads that discard what a client sent after its last request: closing with unread bytes would
/// reset the connection, and the response might be lost.
const DISCARD_READS_MAX: usize = 4;

/// Result of a read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReadResult {
    /// This many bytes.
    Data(usize),
    /// Nothing for now.
    WouldBlock,
    /// The end, or a failure.
    Eof,
}

/// A socket and the bytes that wait for it.
#[derive(Debug)]
pub(crate) struct BufferedSocket {
    stream: TcpStream,
    can_read: bool,
    can_write: bool,
    has_ended: bool,
    unwritten: Vec<u8>,
    /// Bytes at the start of `unwritten` that are already written.
    written: usize,
    /// The TLS session of a client's connection; None without TLS.
    tls: Option<Box<TlsSession>>,
}

/// Result of reading records.
enum Received {
    Some,
    WouldBlock,
    End,
}

impl BufferedSocket {
    /// Registers a connection.
    ///
    /// # Errors
    /// When it cannot be registered.
    pub(crate) fn new(
        mut stream: TcpStream,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self {
            stream,
            can_read: false,
            can_write: true,
            has_ended: false,
            unwritten: Vec::new(),
            written: 0,
            tls: None,
        })
    }

    /// Speaks TLS from now on; `handshake` comes first.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub(crate) fn start_tls(&mut self, config: Arc<ServerConfig>) -> io::Result<()> {
        let session = TlsSession::new(config).map_err(io::Error::other)?;
        self.tls = Some(Box::new(session));
        Ok(())
    }

    /// Continues the TLS handshake; returns how it ended, None if it waits for the client.
    pub(crate) fn handshake(&mut self) -> Option<HandshakeResult> {
        loop {
            let result =
                self.tls.as_ref().map_or(Some(HandshakeResult::Full), |tls| tls.handshake());
            if result.is_some() {
                return result;
            }
            match self.receive() {
                Received::Some => {}
                Received::WouldBlock => return None,
                Received::End => {
                    let failure = self.tls.as_ref().and_then(|tls| tls.handshake());
                    return failure.or(Some(HandshakeResult::Aborted));
                }
            }
        }
    }

    /// Starts to connect to the upstream server.
    ///
    /// # Errors
    /// When the connection cannot be started.
    pub(crate) fn connect(to: SocketAddr, registry: &Registry, token: Token) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_recv_buffer_size(UPSTREAM_SOCKET_BYTES)?;
        socket.set_send_buffer_size(UPSTREAM_SOCKET_BYTES)?;
        SockRef::from(&socket).set_tcp_nodelay(true)?;
        // Close without TIME_WAIT, or clients that come and go would occupy thousands of ports.
        socket.set_linger(Some(Duration::ZERO))?;
        match socket.connect(&to.into()) {
            Err(error) if !is_under_way(&error) => return Err(error),
            _ => {}
        }
        Self::new(TcpStream::from_std(socket.into()), registry, token)
    }

    /// Records readiness.
    pub(crate) fn on_event(&mut self, event: &Event) {
        self.has_ended |= event.is_read_closed() || event.is_error();
        self.can_read |= event.is_readable() || self.has_ended;
        self.can_write |= event.is_writable() || event.is_write_closed();
    }

    /// Whether a read may return something.
    #[must_use]
    pub(crate) fn can_read(&self) -> bool {
        self.can_read || self.tls.as_ref().is_some_and(|tls| tls.can_take())
    }

    /// Whether the other end closed its sending side, or is gone.
    #[must_use]
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Number of unwritten bytes.
    #[must_use]
    pub(crate) fn unwritten(&self) -> usize {
        self.unwritten.len().saturating_sub(self.written)
    }

    /// Reads once. A failed connection returns `Eof`.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> ReadResult {
        if self.tls.is_some() {
            return self.read_decrypted(into);
        }
        if !self.can_read || into.is_empty() {
            return ReadResult::WouldBlock;
        }
        loop {
            match self.stream.read(into) {
                Ok(0) => return ReadResult::Eof,
                Ok(count) => {
                    // Everything was read: later bytes are reported again. The end is reported only
                    // once.
                    self.can_read = count == into.len() || self.has_ended;
                    return ReadResult::Data(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_not_now(&error) => {
                    self.can_read = false;
                    return ReadResult::WouldBlock;
                }
                Err(_) => return ReadResult::Eof,
            }
        }
    }

    fn read_decrypted(&mut self, into: &mut [u8]) -> ReadResult {
        if into.is_empty() {
            return ReadResult::WouldBlock;
        }
        loop {
            match self.tls.as_mut().and_then(|tls| tls.take(into)) {
                Some(0) => return ReadResult::Eof,
                Some(count) => return ReadResult::Data(count),
                None => {}
            }
            match self.receive() {
                Received::Some => {}
                Received::WouldBlock => return ReadResult::WouldBlock,
                Received::End => return ReadResult::Eof,
            }
        }
    }

    /// Reads records once, and answers them.
    fn receive(&mut self) -> Received {
        let Some(tls) = self.tls.as_mut().filter(|_| self.can_read) else {
            return Received::WouldBlock;
        };
        let mut from = ShortReads { stream: &mut self.stream, was_short: false };
        match tls.read_from(&mut from) {
            Ok(0) => return Received::End,
            // As in `read`.
            Ok(_) => self.can_read = !from.was_short || self.has_ended,
            Err(error) if error.kind() == ErrorKind::Interrupted => return Received::Some,
            Err(error) if is_not_now(&error) => {
                self.can_read = false;
                return Received::WouldBlock;
            }
            Err(_) => return Received::End,
        }
        let is_valid = tls.process().is_ok();
        let records = tls.take_records();
        if self.send_bytes(&records).is_err() || !is_valid {
            return Received::End;
        }
        Received::Some
    }

    /// Writes, or keeps what the socket does not accept.
    ///
    /// # Errors
    /// When the connection has failed.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            None => self.send_bytes(bytes),
            Some(tls) => {
                let records = tls.encrypt(bytes)?;
                self.send_bytes(&records)
            }
        }
    }

    fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let is_first = self.unwritten() == 0;
        let count = if is_first { self.write(bytes)? } else { 0 };
        if let Some(rest) = bytes.get(count..).filter(|rest| !rest.is_empty()) {
            self.unwritten.extend_from_slice(rest);
        }
        Ok(())
    }

    /// Writes what was kept; returns whether nothing is left.
    ///
    /// # Errors
    /// When the connection has failed.
    pub(crate) fn flush(&mut self) -> io::Result<bool> {
        if self.unwritten() == 0 {
            return Ok(true);
        }
        let unwritten = std::mem::take(&mut self.unwritten);
        let count = self.write(unwritten.get(self.written..).unwrap_or_default())?;
        self.written += count;
        if self.written < unwritten.len() {
            self.unwritten = unwritten;
            return Ok(false);
        }
        // An idle connection holds no memory.
        self.written = 0;
        Ok(true)
    }

    /// Drops what was kept.
    pub(crate) fn forget(&mut self) {
        self.unwritten = Vec::new();
        self.written = 0;
    }

    /// Tells the other end that nothing follows.
    pub(crate) fn shutdown_write(&mut self) {
        self.close_tls();
        // Fails for a connection that has failed, which the next read reports.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Reads and discards, before the connection is closed.
    pub(crate) fn discard(&mut self, scratch: &mut [u8]) {
        self.can_read = true;
        for _ in 0..DISCARD_READS_MAX {
            if !matches!(self.read(scratch), ReadResult::Data(_)) {
                return;
            }
        }
    }

    fn close_tls(&mut self) {
        if let Some(tls) = &mut self.tls {
            let records = tls.close();
            // As far as the socket takes it now; a failed one needs none.
            let _ = self.write(&records);
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut count = 0;
        while let Some(rest) = bytes.get(count..).filter(|rest| !rest.is_empty() && self.can_write)
        {
            match self.stream.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(more) => count += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_not_now(&error) => self.can_write = false,
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }
}

/// Says goodbye in TLS, so that the client can tell the end from a cut.
impl Drop for BufferedSocket {
    fn drop(&mut self) {
        // Behind unwritten bytes it would be garbage.
        if self.unwritten() == 0 {
            self.close_tls();
        }
    }
}

/// Notes whether the last read left nothing to read.
struct ShortReads<'a> {
    stream: &'a mut TcpStream,
    was_short: bool,
}

impl Read for ShortReads<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(into)?;
        self.was_short = count < into.len();
        Ok(count)
    }
}

fn is_under_way(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) || is_not_now(error)
}

/// Whether the socket is not ready; one that is still connecting may return another error.
fn is_not_now(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected)
}
