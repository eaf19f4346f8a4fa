//! A request that the main thread's server answers: its bytes are forwarded as they arrive from the
//! client, and the bytes of the response come back, each direction only as fast as the receiver
//! reads.
//!
//! The header that is added after the request line has the client's address, which only this side
//! knows. Its name is random, so that no client can send it.

use std::io::Write;
use std::net::IpAddr;

use mio::event::Event;

use crate::http::deadline::{Part, is_past};
use crate::http::header_marks::mark_values;
use crate::http::header_room::without_unread_headers;
use crate::http::permits::Permit;
use crate::http::request_head::CompleteHead;
use crate::http::response::ResponseForm;
use crate::http::response_framing::ResponseFraming;
use crate::http::socket::{BufferedSocket, ReadResult};

/// The header with the client's address.
pub(super) struct ForwardedHeader<'a> {
    /// The header's name.
    pub(super) name: &'a str,
    pub(super) from: IpAddr,
}

/// Framing of a request before any of it is sent.
#[derive(Debug)]
pub(super) struct ProxyRequestFraming {
    /// Bytes that are still to come from the client.
    left: u64,
    /// Whether any of its body has arrived.
    has_started: bool,
    is_head_only: bool,
    /// Whether the connection ends with it.
    closes: bool,
    /// The form of its response where it cannot be proxied.
    pub(super) form: ResponseForm,
}

impl ProxyRequestFraming {
    /// Whether the client has sent all of it.
    pub(super) fn is_whole(&self) -> bool {
        self.left == 0
    }
}

impl ForwardedHeader<'_> {
    /// Writes what has arrived of a request to `out`; returns the number of bytes consumed.
    pub(super) fn write(
        self,
        head: &CompleteHead<'_>,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> (usize, ProxyRequestFraming) {
        let total = head.size + head.body_size;
        let come = total.min(bytes.len());
        let bytes = bytes.get(..come).unwrap_or_default();
        // The upstream server would ask for what has come.
        let is_met = head.expects && come == total;
        if head.is_crowded || head.has_unnamed || is_met {
            let (lines, body) = bytes.split_at_checked(head.size).unwrap_or((bytes, &[]));
            let lines = without_unread_headers(lines, is_met);
            self.insert(head.line_end, &[&lines, body].concat(), out);
        } else {
            self.insert(head.line_end, bytes, out);
        }
        mark_values(out);
        let framing = ProxyRequestFraming {
            left: (total - come) as u64,
            has_started: come > head.size,
            is_head_only: head.is_head_only,
            closes: head.closes,
            form: head.form,
        };
        (come, framing)
    }

    fn insert(self, line_end: usize, bytes: &[u8], out: &mut Vec<u8>) {
        let (line, rest) = bytes.split_at_checked(line_end).unwrap_or((bytes, &[]));
        let Self { name, from } = self;
        out.clear();
        out.extend_from_slice(line);
        // Writing to memory cannot fail.
        let _ = write!(out, "{name}: {from}\r\n");
        out.extend_from_slice(rest);
    }
}

/// Progress of a proxied request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ProxyProgress {
    /// Nothing can move now.
    Pending,
    /// Something moved, and more may.
    Moved,
    /// The complete response is on its way to the client.
    Complete {
        /// Whether the connection ends with it.
        closes: bool,
    },
    /// The upstream server closed the connection without a response.
    UpstreamClosed,
    /// The client left.
    ClientClosed,
}

/// A connection to the upstream server.
#[derive(Debug)]
pub(super) struct UpstreamConnection {
    pub(super) socket: BufferedSocket,
    pub(super) _permit: Permit,
}

/// A request in progress.
#[derive(Debug)]
pub(super) struct ProxiedRequest {
    upstream: Box<UpstreamConnection>,
    /// Its upload permit, until it has arrived completely.
    upload_permit: Option<Permit>,
    left: u64,
    has_started: bool,
    response: ResponseFraming,
    closes: bool,
    form: ResponseForm,
    started_ns: u64,
}

impl ProxiedRequest {
    /// Sends what has arrived.
    pub(super) fn start(
        framing: ProxyRequestFraming,
        upstream: Box<UpstreamConnection>,
        upload_permit: Option<Permit>,
        bytes: &[u8],
        now_ns: u64,
    ) -> Self {
        let ProxyRequestFraming { left, has_started, is_head_only, closes, .. } = framing;
        let mut proxied = Self {
            upstream,
            upload_permit,
            left,
            has_started,
            response: ResponseFraming::new(is_head_only),
            closes,
            form: framing.form,
            started_ns: now_ns,
        };
        proxied.send(bytes);
        proxied
    }

    /// Records readiness of the upstream socket.
    pub(super) fn on_event(&mut self, event: &Event) {
        self.upstream.socket.on_event(event);
    }

    /// Whether it cannot continue before the client sends more.
    pub(super) fn awaits_client(&self) -> bool {
        self.left > 0 && self.upstream.socket.unwritten() == 0
    }

    /// The part that is pending from the client.
    pub(super) fn part(&self) -> Part {
        match (self.left, self.has_started) {
            (0, _) => Part::None,
            (_, false) => Part::BodyStart,
            (_, true) => Part::Body,
        }
    }

    /// Whether a half-closed client can still get the response: the complete request is sent, and
    /// the response has an end.
    pub(super) fn is_answerable_half_closed(&self) -> bool {
        self.left == 0 && !self.response.is_endless()
    }

    /// Whether a response is still to come.
    pub(super) fn is_under_way(&self) -> bool {
        !self.response.is_complete() || self.upstream.socket.unwritten() > 0
    }

    /// Whether the client has owed the rest of the request for longer than this.
    pub(super) fn is_late(&self, now_ns: u64, timeout_ns: u64) -> bool {
        self.awaits_client() && is_past(now_ns, self.started_ns, timeout_ns)
    }

    /// The form of its response, of which nothing was sent.
    pub(super) fn form(&self) -> ResponseForm {
        self.form
    }

    /// The connection, for the next request.
    pub(super) fn into_upstream(self) -> Box<UpstreamConnection> {
        self.upstream
    }

    /// Moves at most one buffer in each direction. Everything sent to the client before is written.
    pub(super) fn run(
        &mut self,
        client: &mut BufferedSocket,
        input: &mut Vec<u8>,
        scratch: &mut [u8],
    ) -> ProxyProgress {
        let up = self.move_up(client, input, scratch);
        if up == ProxyProgress::ClientClosed {
            return up;
        }
        match self.move_down(client, scratch) {
            ProxyProgress::Pending => up,
            down => down,
        }
    }

    fn move_up(
        &mut self,
        client: &mut BufferedSocket,
        input: &mut Vec<u8>,
        scratch: &mut [u8],
    ) -> ProxyProgress {
        let is_flushed = self.upstream.socket.unwritten() > 0;
        match self.upstream.socket.flush() {
            Ok(true) => {}
            Ok(false) => return ProxyProgress::Pending,
            Err(_) => self.abandon(),
        }
        if self.left == 0 {
            return ProxyProgress::Pending;
        }
        if !input.is_empty() {
            let count = self.up_to_left(input.len());
            self.count_received(count);
            self.send(input.get(..count).unwrap_or_default());
            input.drain(..count);
            return ProxyProgress::Moved;
        }
        let most = self.up_to_left(scratch.len());
        match client.read(scratch.get_mut(..most).unwrap_or_default()) {
            ReadResult::Data(count) => {
                self.count_received(count);
                self.send(scratch.get(..count).unwrap_or_default());
                ProxyProgress::Moved
            }
            ReadResult::WouldBlock if is_flushed => ProxyProgress::Moved,
            ReadResult::WouldBlock => ProxyProgress::Pending,
            ReadResult::Eof => ProxyProgress::ClientClosed,
        }
    }

    fn move_down(&mut self, client: &mut BufferedSocket, scratch: &mut [u8]) -> ProxyProgress {
        if self.is_over() {
            return ProxyProgress::Complete { closes: self.closes };
        }
        let bytes = match self.upstream.socket.read(scratch) {
            ReadResult::Data(count) => scratch.get(..count).unwrap_or_default(),
            ReadResult::WouldBlock => return ProxyProgress::Pending,
            ReadResult::Eof if self.response.has_started() => {
                return ProxyProgress::Complete { closes: true };
            }
            ReadResult::Eof => return ProxyProgress::UpstreamClosed,
        };
        let Ok(count) = self.response.take(bytes) else {
            return ProxyProgress::Complete { closes: true };
        };
        // Bytes after the response belong to no known request.
        self.closes |= self.response.closes() || count < bytes.len();
        if client.send(bytes.get(..count).unwrap_or_default()).is_err() {
            return ProxyProgress::ClientClosed;
        }
        if self.is_over() {
            ProxyProgress::Complete { closes: self.closes }
        } else {
            ProxyProgress::Moved
        }
    }

    /// A response that came before the complete request may be the connection's last.
    fn is_over(&self) -> bool {
        let is_sent = self.left == 0 && self.upstream.socket.unwritten() == 0;
        self.response.is_complete() && (is_sent || self.closes)
    }

    /// Sends; a server that stops reading may already have responded why.
    fn send(&mut self, bytes: &[u8]) {
        if self.upstream.socket.send(bytes).is_err() {
            self.abandon();
        }
    }

    fn abandon(&mut self) {
        self.upstream.socket.forget();
        self.left = 0;
        self.upload_permit = None;
        self.closes = true;
    }

    fn count_received(&mut self, count: usize) {
        self.left -= count as u64;
        self.has_started = true;
        if self.left == 0 {
            self.upload_permit = None;
        }
    }

    fn up_to_left(&self, size: usize) -> usize {
        usize::try_from(self.left).map_or(size, |left| left.min(size))
    }
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
