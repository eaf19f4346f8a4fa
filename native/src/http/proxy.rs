//! A request that the main thread answers: its bytes go there as they come from the client, and the
//! bytes of the answer come back, each only as fast as they are taken.
//!
//! The first line that goes along tells what only this side knows of the request. Its name is
//! random, so that nobody else can write it.

use std::io::Write;
use std::net::IpAddr;

use mio::event::Event;

use crate::http::deadline::Part;
use crate::http::handler::ForwardedMeta;
use crate::http::header_marks::mark_values;
use crate::http::permits::Permit;
use crate::http::request_head::Framed;
use crate::http::response_framing::ResponseFraming;
use crate::http::socket::{BufferedSocket, ReadResult};

/// What is told of a request.
pub(super) struct ForwardedHeader<'a> {
    /// The header's name.
    pub(super) name: &'a str,
    pub(super) from: IpAddr,
    pub(super) ingress_thread: u32,
    pub(super) meta: ForwardedMeta,
}

/// What is known of a request before anything of it is sent.
#[derive(Debug)]
pub(super) struct ProxyRequestFraming {
    /// Bytes of it that are still to come from the client.
    left: u64,
    /// Whether any of its body has come.
    has_started: bool,
    is_head_only: bool,
    /// Whether the connection ends with it.
    closes: bool,
    /// Whether it has no end but the connection's, because its framing is in doubt.
    is_pipe: bool,
}

impl ForwardedHeader<'_> {
    /// Puts into `out` what has come of a sound request, and how many bytes that were.
    pub(super) fn write_framed(
        self,
        framed: &Framed<'_>,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> (usize, ProxyRequestFraming) {
        let total = framed.size + framed.body_size;
        let come = total.min(bytes.len());
        self.insert(framed.line_end, bytes.get(..come).unwrap_or_default(), out);
        mark_values(out);
        let framing = ProxyRequestFraming {
            left: (total - come) as u64,
            has_started: come > framed.size,
            is_head_only: framed.is_head_only,
            closes: framed.closes,
            is_pipe: false,
        };
        (come, framing)
    }

    /// Puts all into `out`: whoever is behind is to judge it, and what follows.
    pub(super) fn write_ambiguous(
        self,
        line_end: Option<usize>,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> ProxyRequestFraming {
        match line_end {
            Some(line_end) => self.insert(line_end, bytes, out),
            None => {
                out.clear();
                out.extend_from_slice(bytes);
            }
        }
        mark_values(out);
        ProxyRequestFraming {
            left: u64::MAX,
            has_started: true,
            is_head_only: false,
            closes: true,
            is_pipe: true,
        }
    }

    fn insert(self, line_end: usize, bytes: &[u8], out: &mut Vec<u8>) {
        let (line, rest) = bytes.split_at_checked(line_end).unwrap_or((bytes, &[]));
        let Self { name, from, ingress_thread, meta } = self;
        let (is_paid, received_ns) = (u8::from(meta.is_paid), meta.received_ns);
        out.clear();
        out.extend_from_slice(line);
        // Writing into memory does not fail.
        let _ = write!(out, "{name}: {from} {ingress_thread} {is_paid} {received_ns}\r\n");
        out.extend_from_slice(rest);
    }
}

/// How far an errand has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ProxyProgress {
    /// Nothing moves now.
    Pending,
    /// Something moved, and more may.
    Moved,
    /// All of the answer is on its way to the client.
    Complete {
        /// Whether the connection ends with it.
        closes: bool,
    },
    /// The server behind ended the connection without a word.
    UpstreamClosed,
    /// The client left.
    ClientClosed,
}

/// A connection to the main thread's server.
#[derive(Debug)]
pub(super) struct UpstreamConnection {
    pub(super) socket: BufferedSocket,
    pub(super) _permit: Permit,
}

/// A request under way.
#[derive(Debug)]
pub(super) struct ProxiedRequest {
    upstream: Box<UpstreamConnection>,
    /// Its place among the requests that nothing says are admitted, until all of it has come.
    upload_permit: Option<Permit>,
    left: u64,
    has_started: bool,
    response: ResponseFraming,
    closes: bool,
    is_pipe: bool,
}

impl ProxiedRequest {
    /// Sends what is there.
    pub(super) fn start(
        framing: ProxyRequestFraming,
        upstream: Box<UpstreamConnection>,
        upload_permit: Option<Permit>,
        bytes: &[u8],
    ) -> Self {
        let ProxyRequestFraming { left, has_started, is_head_only, closes, is_pipe } = framing;
        let response =
            if is_pipe { ResponseFraming::verbatim() } else { ResponseFraming::new(is_head_only) };
        let mut proxied =
            Self { upstream, upload_permit, left, has_started, response, closes, is_pipe };
        proxied.send(bytes);
        proxied
    }

    /// Notes what is told of the connection to the main thread.
    pub(super) fn on_event(&mut self, event: &Event) {
        self.upstream.socket.on_event(event);
    }

    /// Whether it cannot go on before the client sends more.
    pub(super) fn awaits_client(&self) -> bool {
        self.left > 0 && !self.is_pipe && self.upstream.socket.unwritten() == 0
    }

    /// What is awaited of the client. A connection whose framing is in doubt has its deadlines from
    /// the server behind, which knows where its requests end.
    pub(super) fn part(&self) -> Part {
        match (self.left, self.is_pipe, self.has_started) {
            (0, ..) | (_, true, _) => Part::None,
            (_, _, false) => Part::BodyStart,
            (_, _, true) => Part::Body,
        }
    }

    /// Whether all of the request is sent, and the answer has an end: then it can be given to who
    /// says nothing more.
    pub(super) fn is_answerable_half_closed(&self) -> bool {
        self.left == 0 && !self.is_pipe && !self.response.is_endless()
    }

    /// Whether there is an answer to come, for all that is known. `is_quiet`: nothing has moved for a
    /// moment.
    pub(super) fn is_under_way(&self, is_quiet: bool) -> bool {
        let is_open = if self.is_pipe { !is_quiet } else { !self.response.is_complete() };
        is_open || self.upstream.socket.unwritten() > 0
    }

    /// What is left when it is over: the connection, for another request.
    pub(super) fn into_upstream(self) -> Box<UpstreamConnection> {
        self.upstream
    }

    /// Moves one buffer each way, at most. What the client was sent before is all written.
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
            ReadResult::Eof if self.is_pipe || self.response.has_started() => {
                return ProxyProgress::Complete { closes: true };
            }
            ReadResult::Eof => return ProxyProgress::UpstreamClosed,
        };
        let Ok(count) = self.response.take(bytes) else {
            return ProxyProgress::Complete { closes: true };
        };
        // Beyond an answer nothing may come: what it is to is not known.
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

    /// An answer that came before all of the request may be the connection's last.
    fn is_over(&self) -> bool {
        let is_sent = self.left == 0 && self.upstream.socket.unwritten() == 0;
        self.response.is_complete() && (is_sent || self.closes)
    }

    /// Sends; a server that takes no more may still have said why.
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
