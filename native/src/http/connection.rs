//! Hot path: one connection of a client.
//!
//! ```text
//!  serving ──▶ errand (the request goes to the main thread, its answer comes back) ──▶ serving
//!     │  └───▶ errand without an end (framing in doubt: bytes both ways) ──▶ closed
//!     └──────▶ closed
//! ```
//!
//! Answers leave in the order of the requests because a further request is looked at only when the
//! answer before it is written. So what is held for a client is bounded too: the bytes of one
//! buffer that came in, one answer, and one buffer on the way to the main thread.

use std::net::{IpAddr, SocketAddr};

use mio::event::Event;
use mio::{Registry, Token};

use crate::http::client_socket::AcceptedSocket;
use crate::http::connection_limits::Seat;
use crate::http::deadline::{Part, ReadClock, is_past};
use crate::http::dispatch::{Dispatched, dispatch};
use crate::http::handler::{ForwardedMeta, ProxyReason, RequestHandler};
use crate::http::permits::Permits;
use crate::http::proxy::{
    ForwardedHeader, ProxiedRequest, ProxyProgress, ProxyRequestFraming, UpstreamConnection,
};
use crate::http::request_head::{RequestHead, read_request_head};
use crate::http::response::NO_ROOM;
use crate::http::socket::{BufferedSocket, ReadResult};
use crate::sync::clock::NS_PER_S;

/// Requests of one client before another gets its turn.
const REQUESTS_PER_TURN: usize = 16;
/// How long a client may ask for nothing, and how long it may take in nothing of an answer.
const STALL_NS: u64 = 10 * NS_PER_S;
/// How long a connection to the main thread is kept for a further request: for less than the 8 s
/// after which that server may close it, maybe just when a request is on its way.
const UPSTREAM_IDLE_NS: u64 = 5 * NS_PER_S;

/// How long an answer under way is waited for by who says nothing more.
const HALF_CLOSED_NS: u64 = NS_PER_S;
/// After so long without a byte, nobody knows whether there is anything to come where no framing
/// says so.
const QUIESCENT_NS: u64 = NS_PER_S / 2;

/// How a client's turn ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Progress {
    /// Nothing to do until one of its sockets is ready.
    Pending,
    /// There is more to do.
    Ready,
    /// The connection is over.
    Closed,
}

/// The connection is over.
struct Disconnected;

/// Why a client keeps others waiting for too long.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Overdue {
    /// It asks for nothing, or takes in nothing.
    Idle,
    /// Its request was not whole in time.
    Slow,
}

/// What all clients of a thread share.
pub(crate) struct ConnectionContext<'a, D> {
    /// Takes submissions.
    pub(crate) handler: &'a mut D,
    /// Where connections are waited for.
    pub(crate) registry: &'a Registry,
    /// The main thread's server.
    pub(crate) upstream: SocketAddr,
    /// The header that a relayed request has from here.
    pub(crate) forwarded_header_name: &'a str,
    /// Which front this is.
    pub(crate) ingress_thread: u32,
    /// `REQUEST_BYTES_MAX` bytes for whatever is read.
    pub(crate) scratch: &'a mut [u8],
    /// For whatever is written.
    pub(crate) out: &'a mut Vec<u8>,
    /// Under what the client's connection to the main thread is waited for.
    pub(crate) upstream_token: Token,
    /// The time of this turn.
    pub(crate) now_ns: u64,
    /// Whether every request is relayed.
    pub(crate) is_draining: bool,
    /// Connections to the main thread that there may be yet.
    pub(crate) upstream_permits: &'a Permits,
    /// Those among them that may be for a request which is not whole, and maybe never admitted.
    pub(crate) upload_permits: &'a Permits,
}

/// What the bytes that came begin with, after what was answered of them.
enum ParseOutcome {
    /// This part of a request is awaited.
    Pending(Part),
    /// More requests than one turn has.
    Ready,
    /// One for the main thread, as far as it has come in `out`. `is_upload` as in `Step::Relay`.
    Proxy { framing: ProxyRequestFraming, is_upload: bool },
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Client {
    socket: BufferedSocket,
    from: IpAddr,
    _seat: Seat,
    /// What came and was not looked at, or is not whole.
    input: Vec<u8>,
    /// The request that the main thread has in hand.
    proxied: Option<ProxiedRequest>,
    /// The connection to the main thread while it has none, and since when.
    idle_upstream: Option<Box<UpstreamConnection>>,
    idle_since_ns: u64,
    /// What is awaited of a request.
    reading: ReadClock,
    /// Whether the request whose body is awaited began before new work was refused.
    body_started: bool,
    /// Since when the client says nothing more.
    ended_ns: Option<u64>,
    /// Whether it is closed once all is written.
    closes: bool,
    /// When the client last said or took in something, or was first expected to.
    seen_ns: u64,
    /// Whether it is in the list of those who have a turn.
    pub(crate) is_listed: bool,
}

impl Client {
    /// Takes over a connection.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub(super) fn new(
        accepted: AcceptedSocket,
        registry: &Registry,
        token: Token,
        now_ns: u64,
    ) -> std::io::Result<Self> {
        accepted.stream.set_nodelay(true)?;
        Ok(Self {
            socket: BufferedSocket::new(accepted.stream, registry, token)?,
            from: accepted.from,
            _seat: accepted.seat,
            input: Vec::new(),
            proxied: None,
            idle_upstream: None,
            idle_since_ns: 0,
            reading: ReadClock::default(),
            body_started: false,
            ended_ns: None,
            closes: false,
            seen_ns: now_ns,
            is_listed: false,
        })
    }

    /// Notes what is told of its socket, or of the one to the main thread.
    pub(crate) fn on_event(&mut self, event: &Event, is_upstream: bool) {
        if !is_upstream {
            self.socket.on_event(event);
        } else if let Some(proxied) = &mut self.proxied {
            proxied.on_event(event);
        } else if let Some(idle_upstream) = &mut self.idle_upstream {
            idle_upstream.socket.on_event(event);
        }
    }

    /// Whether the rest of a body is awaited here, before anything is done with its request.
    #[must_use]
    pub(crate) fn is_body_pending(&self) -> bool {
        self.proxied.is_none() && self.reading.is_body()
    }

    /// New work is refused from now on; what has begun is not new.
    pub(crate) fn drain(&mut self) {
        self.body_started = self.is_body_pending();
    }

    /// Whether it has a request in hand, or an answer.
    #[must_use]
    pub(crate) fn is_busy(&self, now_ns: u64) -> bool {
        let is_quiet = is_past(now_ns, self.seen_ns, QUIESCENT_NS);
        let is_under_way =
            self.proxied.as_ref().is_some_and(|proxied| proxied.is_under_way(is_quiet));
        self.is_body_pending() || is_under_way || self.socket.unwritten() > 0
    }

    /// Whether the client is too slow. Closes a connection to the main thread that is not used.
    pub(crate) fn overdue(&mut self, now_ns: u64, read_timeout_ns: u64) -> Option<Overdue> {
        if is_past(now_ns, self.idle_since_ns, UPSTREAM_IDLE_NS) {
            self.idle_upstream = None;
        }
        if self.ended_ns.is_some_and(|ended_ns| is_past(now_ns, ended_ns, HALF_CLOSED_NS)) {
            return Some(Overdue::Idle);
        }
        let is_still = is_past(now_ns, self.seen_ns, STALL_NS);
        if self.socket.unwritten() > 0 {
            return is_still.then_some(Overdue::Idle);
        }
        // A server behind that takes in nothing holds up the client, and not the other way around.
        if self.proxied.as_ref().is_some_and(|proxied| !proxied.awaits_client()) {
            return None;
        }
        if self.reading.part() == Part::None {
            return is_still.then_some(Overdue::Idle);
        }
        self.reading.is_late(now_ns, read_timeout_ns).then_some(Overdue::Slow)
    }

    /// Does what can be done now, up to a bound.
    pub(crate) fn run_turn<D: RequestHandler>(
        &mut self,
        cx: &mut ConnectionContext<'_, D>,
    ) -> Progress {
        self.try_run_turn(cx).unwrap_or(Progress::Closed)
    }

    fn try_run_turn<D: RequestHandler>(
        &mut self,
        cx: &mut ConnectionContext<'_, D>,
    ) -> Result<Progress, Disconnected> {
        if self.socket.has_ended() {
            self.on_read_closed(cx.now_ns)?;
        }
        if !self.flush(cx.now_ns)? {
            return Ok(Progress::Pending);
        }
        if self.closes {
            self.socket.discard(cx.scratch);
            return Err(Disconnected);
        }
        if self.proxied.is_some() { self.drive_proxied(cx) } else { self.serve(cx) }
    }

    /// The client says nothing more. It may have left, and then the main thread is to know of it; or
    /// it waits for its answer all the same, which is given a moment where it has an end.
    fn on_read_closed(&mut self, now_ns: u64) -> Result<(), Disconnected> {
        self.ended_ns.get_or_insert(now_ns);
        match &self.proxied {
            Some(proxied) if !proxied.is_answerable_half_closed() => Err(Disconnected),
            _ => Ok(()),
        }
    }

    /// Whether all that was to be written to the client is.
    fn flush(&mut self, now_ns: u64) -> Result<bool, Disconnected> {
        let before = self.socket.unwritten();
        let is_done = self.socket.flush().map_err(|_| Disconnected)?;
        if self.socket.unwritten() < before {
            self.seen_ns = now_ns;
        }
        Ok(is_done)
    }

    fn serve<D: RequestHandler>(
        &mut self,
        cx: &mut ConnectionContext<'_, D>,
    ) -> Result<Progress, Disconnected> {
        self.check_idle_upstream(cx.scratch);
        let held = self.input.len();
        if let Some(start) = cx.scratch.get_mut(..held) {
            start.copy_from_slice(&self.input);
        }
        let read_result = self.socket.read(cx.scratch.get_mut(held..).unwrap_or_default());
        let count = match read_result {
            ReadResult::Data(count) => {
                self.seen_ns = cx.now_ns;
                count
            }
            ReadResult::WouldBlock | ReadResult::Eof => 0,
        };
        let size = held + count;
        let (done, next) = self.serve_all(size, cx)?;
        if done > 0 {
            // What is awaited now is of another request.
            self.reading.set(Part::None, cx.now_ns);
        }
        let part = if let ParseOutcome::Pending(part) = next { part } else { Part::None };
        self.reading.set(part, cx.now_ns);
        let rest = cx.scratch.get(done..size).unwrap_or_default();
        self.input.clear();
        if rest.is_empty() {
            // An idle connection holds no memory.
            self.input = Vec::new();
        } else {
            self.input.extend_from_slice(rest);
        }
        match next {
            ParseOutcome::Proxy { framing, is_upload } => self.start_proxy(framing, is_upload, cx),
            ParseOutcome::Ready if self.socket.unwritten() == 0 => Ok(Progress::Ready),
            ParseOutcome::Pending(_) if read_result == ReadResult::Eof => Err(Disconnected),
            ParseOutcome::Pending(_) if self.socket.can_read() && self.socket.unwritten() == 0 => {
                Ok(Progress::Ready)
            }
            ParseOutcome::Ready | ParseOutcome::Pending(_) => Ok(Progress::Pending),
        }
    }

    /// Looks at the requests among so many bytes; how many were used up, and what follows.
    fn serve_all<D: RequestHandler>(
        &mut self,
        size: usize,
        cx: &mut ConnectionContext<'_, D>,
    ) -> Result<(usize, ParseOutcome), Disconnected> {
        let ConnectionContext { handler, scratch, out, is_draining, .. } = cx;
        let forwarded = |meta| ForwardedHeader {
            name: cx.forwarded_header_name,
            from: self.from,
            ingress_thread: cx.ingress_thread,
            meta,
        };
        let bytes = scratch.get(..size).unwrap_or_default();
        let mut done = 0;
        for _ in 0..REQUESTS_PER_TURN {
            let rest = bytes.get(done..).unwrap_or_default();
            if rest.is_empty() {
                return Ok((done, ParseOutcome::Pending(Part::None)));
            }
            let framed = match read_request_head(rest, cx.forwarded_header_name) {
                RequestHead::Partial => return Ok((done, ParseOutcome::Pending(Part::Head))),
                RequestHead::Ambiguous { line_end } => {
                    handler.proxied(ProxyReason::Ambiguous);
                    let framing =
                        forwarded(ForwardedMeta::default()).write_ambiguous(line_end, rest, out);
                    return Ok((size, ParseOutcome::Proxy { framing, is_upload: true }));
                }
                RequestHead::Framed(framed) => framed,
            };
            let is_refused = *is_draining && !self.body_started;
            let dispatched = dispatch(*handler, &framed, rest, self.from, is_refused, out);
            self.body_started &= matches!(dispatched, Dispatched::Pending(_));
            match dispatched {
                Dispatched::Answered => {
                    done += framed.size + framed.body_size;
                    self.socket.send(out).map_err(|_| Disconnected)?;
                    if self.socket.unwritten() > 0 {
                        return Ok((done, ParseOutcome::Ready));
                    }
                }
                Dispatched::Pending(part) => return Ok((done, ParseOutcome::Pending(part))),
                Dispatched::Proxy { meta, is_upload } => {
                    let (count, framing) = forwarded(meta).write_framed(&framed, rest, out);
                    return Ok((done + count, ParseOutcome::Proxy { framing, is_upload }));
                }
            }
        }
        Ok((done, ParseOutcome::Ready))
    }

    fn start_proxy<D: RequestHandler>(
        &mut self,
        framing: ProxyRequestFraming,
        is_upload: bool,
        cx: &mut ConnectionContext<'_, D>,
    ) -> Result<Progress, Disconnected> {
        let upload_permit = if is_upload { cx.upload_permits.try_acquire(self.from) } else { None };
        if is_upload && upload_permit.is_none() {
            return self.reject_proxy(cx);
        }
        let upstream = match self.idle_upstream.take() {
            Some(idle_upstream) => idle_upstream,
            None => {
                let Some(permit) = cx.upstream_permits.try_acquire(self.from) else {
                    return self.reject_proxy(cx);
                };
                let opened = BufferedSocket::connect(cx.upstream, cx.registry, cx.upstream_token);
                Box::new(UpstreamConnection {
                    socket: opened.map_err(|_| Disconnected)?,
                    _permit: permit,
                })
            }
        };
        self.proxied = Some(ProxiedRequest::start(framing, upstream, upload_permit, cx.out));
        self.seen_ns = cx.now_ns;
        self.drive_proxied(cx)
    }

    /// Too many requests are relayed, or the server behind does not answer: this one has no other
    /// answer, and its connection is of no use behind it.
    fn reject_proxy<D: RequestHandler>(
        &mut self,
        cx: &mut ConnectionContext<'_, D>,
    ) -> Result<Progress, Disconnected> {
        cx.handler.proxy_rejected();
        self.socket.send(NO_ROOM).map_err(|_| Disconnected)?;
        self.closes = true;
        Ok(Progress::Ready)
    }

    fn drive_proxied<D: RequestHandler>(
        &mut self,
        cx: &mut ConnectionContext<'_, D>,
    ) -> Result<Progress, Disconnected> {
        let Some(proxied) = &mut self.proxied else { return Ok(Progress::Ready) };
        let progress = proxied.run(&mut self.socket, &mut self.input, cx.scratch);
        self.reading.set(proxied.part(), cx.now_ns);
        match progress {
            ProxyProgress::Pending => return Ok(Progress::Pending),
            ProxyProgress::ClientClosed => return Err(Disconnected),
            ProxyProgress::Moved => {}
            ProxyProgress::Complete { closes } => {
                // What is left of a body whose answer was given early is not awaited any more.
                self.reading.set(Part::None, cx.now_ns);
                self.closes = closes;
                let is_reusable = !closes && cx.upstream_permits.has_spare(self.from);
                self.idle_upstream =
                    self.proxied.take().filter(|_| is_reusable).map(ProxiedRequest::into_upstream);
                self.idle_since_ns = cx.now_ns;
            }
            ProxyProgress::UpstreamClosed => {
                self.reading.set(Part::None, cx.now_ns);
                self.proxied = None;
                return self.reject_proxy(cx);
            }
        }
        self.seen_ns = cx.now_ns;
        Ok(Progress::Ready)
    }

    /// The main thread closes what is not used for long, and says nothing unasked.
    fn check_idle_upstream(&mut self, scratch: &mut [u8]) {
        if self.idle_upstream.as_mut().is_some_and(|idle_upstream| {
            idle_upstream.socket.read(scratch) != ReadResult::WouldBlock
        }) {
            self.idle_upstream = None;
        }
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
