//! Hot path: one client connection.
//!
//! ```text
//!  TLS handshake, if the listener has TLS
//!     ▼
//!  serving ──▶ proxied request (sent upstream, its response comes back) ──▶ serving
//!     │                                │ ambiguous framing, or the client asks for it
//!     └──────▶ closed ◀────────────────┘
//! ```
//!
//! Responses leave in request order, because the next request is parsed only after the response
//! before it is written. This also bounds the memory of a client: one buffer of received bytes or
//! one large submission, one response, and one buffer on its way to the upstream server.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use mio::event::Event;
use mio::{Registry, Token};
use rustls::ServerConfig;

use crate::http::deadline::{Part, ReadClock, is_past};
use crate::http::dispatch::{Dispatched, dispatch};
use crate::http::handler::{ClientCloseReason, Drain, HandshakeResult, RequestHandler};
use crate::http::large_request::LargeRequest;
use crate::http::mailbox::AcceptedSocket;
use crate::http::permits::{Permit, Permits};
use crate::http::preamble::preamble_size;
use crate::http::proxy::{
    ForwardedHeader, ProxiedRequest, ProxyProgress, ProxyRequestFraming, UpstreamConnection,
};
use crate::http::request_head::{RequestHead, read_request_head};
use crate::http::response::{
    OVERLOADED, ResponseForm, UNANSWERED, announce_close, write_head_refused, write_overloaded,
};
use crate::http::socket::{BufferedSocket, ReadResult};
use crate::sync::clock::NS_PER_S;

/// Requests of one client that are served before other clients get their turn.
const REQUESTS_PER_TURN: usize = 16;
/// How long a client may read nothing of a pending response.
const UNREAD_NS: u64 = 10 * NS_PER_S;
/// How long an idle upstream connection is kept for the next request: less than the 8 s after which
/// the upstream server may close it, possibly just as a request is on its way.
const UPSTREAM_IDLE_NS: u64 = 5 * NS_PER_S;

/// A body that is pending for longer may be the reason why the upstream server closed: it closes a
/// connection whose body does not arrive in 8 to 12 s.
const UPSTREAM_TIMEOUT_NS: u64 = 7 * NS_PER_S;

/// How long a connection stays half closed: a client may still wait for a response in progress, or
/// send the rest of a refused request.
const HALF_CLOSED_NS: u64 = NS_PER_S;

/// Most bytes of a refused request that the engine reads and discards before a lingering close.
const LINGERING_BYTES_MAX: usize = 1024 * 1024;

/// Result of a client's turn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Progress {
    /// Nothing to do until one of its sockets is ready.
    Pending,
    /// There is more to do.
    Ready,
    /// The connection is closed.
    Closed,
}

/// The connection is closed.
struct Disconnected;

/// Whether and how the connection is closed once all is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Close {
    No,
    /// The client has sent its complete request.
    Now,
    /// The client may still send, and a close would reset the connection before it has read the
    /// response. So the engine ends its own side first, and waits `HALF_CLOSED_NS` for the client to
    /// close.
    Lingering,
}

/// A client that does not read keeps more of its response only with the permit of a large submission.
const UNWRITTEN_BYTES_MAX: usize = 16 * 1024;
/// Asks a client for a body that it withholds (RFC 9110, 10.1.1).
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Why a connection is closed by the timeout scan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Overdue {
    /// The client sends no request, or does not read its response.
    Idle,
    /// The TLS handshake was not complete in time.
    Handshake,
    /// A request head or body was not complete in time.
    ReadTimeout,
}

/// What a client connection uses during its turn; shared by all clients of a thread.
pub(crate) struct ConnectionContext<'a, H> {
    /// Handles submissions.
    pub(crate) handler: &'a mut H,
    /// Where sockets are registered.
    pub(crate) registry: &'a Registry,
    /// Address of the upstream server (the main thread's).
    pub(crate) upstream: SocketAddr,
    /// Name of the header that is added to proxied requests.
    pub(crate) forwarded_header_name: &'a str,
    /// Read buffer of `REQUEST_BYTES_MAX` bytes.
    pub(crate) scratch: &'a mut [u8],
    /// Write buffer.
    pub(crate) out: &'a mut Vec<u8>,
    /// Token of the client's upstream connection.
    pub(crate) upstream_token: Token,
    /// Time of this turn.
    pub(crate) now_ns: u64,
    /// How far this edge has gone towards its stop.
    pub(crate) drain: Drain,
    /// Whether connections stay open after a response.
    pub(crate) keep_alive: bool,
    /// Permits for upstream connections.
    pub(crate) upstream_permits: &'a Permits,
    /// Permits for submissions that are larger than `scratch`.
    pub(crate) large_permits: &'a Permits,
    /// Permits for uploads: proxied requests whose body is incomplete.
    pub(crate) upload_permits: &'a Permits,
}

/// What the received bytes start with, after the requests that were answered.
enum ParseOutcome {
    /// This part of a request is pending.
    Pending(Part),
    /// The turn's limit of requests is reached.
    Ready,
    /// A request for the upstream server; `out` holds what has arrived of it. `is_upload` as in
    /// `Dispatched::Proxy`.
    Proxy { framing: ProxyRequestFraming, is_upload: bool },
}

/// A client connection.
#[derive(Debug)]
pub(crate) struct Client {
    socket: BufferedSocket,
    from: IpAddr,
    _address_permit: Permit,
    /// Received bytes that are not parsed yet, or of an incomplete request.
    input: Vec<u8>,
    /// The submission that is being received, if it is larger than the read buffer.
    large: Option<Box<LargeRequest>>,
    /// Of a large response that is not completely written: to such a submission, or to calls.
    unwritten_permit: Option<Permit>,
    /// The request that is being proxied.
    proxied: Option<ProxiedRequest>,
    /// The pooled upstream connection while no request is proxied, and since when it is idle.
    idle_upstream: Option<Box<UpstreamConnection>>,
    idle_since_ns: u64,
    /// The pending part of a request.
    reading: ReadClock,
    /// How many bytes the connection still discards: the rest of a refused body, or, before a
    /// lingering close, at most these.
    unread: usize,
    /// Whether `100 Continue` was sent for the request whose body is pending.
    is_continued: bool,
    /// Whether the request with the pending body started before draining.
    body_started: bool,
    /// When either side closed its sending side.
    ended_ns: Option<u64>,
    close: Close,
    /// When the client last sent or read something; at first, when it connected.
    seen_ns: u64,
    /// Whether the connection is in the ready list.
    pub(crate) is_listed: bool,
}

impl Client {
    /// Registers an accepted socket; `tls`: what it presents, None without TLS.
    ///
    /// # Errors
    /// When the socket cannot be registered.
    pub(super) fn new(
        accepted: AcceptedSocket,
        registry: &Registry,
        token: Token,
        tls: Option<Arc<ServerConfig>>,
        now_ns: u64,
    ) -> std::io::Result<Self> {
        accepted.stream.set_nodelay(true)?;
        let mut socket = BufferedSocket::new(accepted.stream, registry, token)?;
        let mut reading = ReadClock::default();
        if let Some(config) = tls {
            socket.start_tls(config)?;
            reading.set(Part::Handshake, now_ns);
        }
        Ok(Self {
            socket,
            from: accepted.from,
            _address_permit: accepted.address_permit,
            input: Vec::new(),
            large: None,
            unwritten_permit: None,
            proxied: None,
            idle_upstream: None,
            idle_since_ns: 0,
            reading,
            unread: 0,
            is_continued: false,
            body_started: false,
            ended_ns: None,
            close: Close::No,
            seen_ns: now_ns,
            is_listed: false,
        })
    }

    /// Records readiness of the client's socket or of its upstream socket.
    pub(crate) fn on_event(&mut self, event: &Event, is_upstream: bool) {
        if !is_upstream {
            self.socket.on_event(event);
        } else if let Some(proxied) = &mut self.proxied {
            proxied.on_event(event);
        } else if let Some(idle_upstream) = &mut self.idle_upstream {
            idle_upstream.socket.on_event(event);
        }
    }

    /// Whether its TLS handshake is not complete.
    #[must_use]
    pub(crate) fn is_handshaking(&self) -> bool {
        self.reading.part() == Part::Handshake
    }

    /// Whether the handler still waits for the rest of a body.
    #[must_use]
    pub(crate) fn is_body_pending(&self) -> bool {
        self.proxied.is_none() && self.unread == 0 && self.reading.is_body()
    }

    /// Starts draining: new submissions are refused. One with a pending body is not new.
    pub(crate) fn drain(&mut self) {
        self.body_started = self.is_body_pending();
    }

    /// Whether a request or a response is in progress.
    #[must_use]
    pub(crate) fn is_busy(&self) -> bool {
        let is_under_way = self.proxied.as_ref().is_some_and(ProxiedRequest::is_under_way);
        let is_response_unread = self.socket.unwritten() > 0 || self.close == Close::Lingering;
        self.is_body_pending() || is_under_way || is_response_unread
    }

    /// Whether nothing is in progress: no request, complete or not, and no response. A handshake is
    /// neither.
    #[must_use]
    pub(crate) fn is_idle(&self) -> bool {
        let is_between = matches!(self.reading.part(), Part::None | Part::Handshake);
        let is_quiet = self.proxied.is_none() && is_between;
        is_quiet && self.socket.unwritten() == 0
    }

    /// Whether the client last sent or read something longer than `for_ns` ago.
    #[must_use]
    pub(crate) fn is_idle_for(&self, now_ns: u64, for_ns: u64) -> bool {
        is_past(now_ns, self.seen_ns, for_ns)
    }

    /// Whether the client exceeded a timeout. Closes an upstream connection that was idle for too
    /// long.
    pub(crate) fn overdue(
        &mut self,
        now_ns: u64,
        read_timeout_ns: u64,
        idle_timeout_ns: u64,
    ) -> Option<Overdue> {
        if is_past(now_ns, self.idle_since_ns, UPSTREAM_IDLE_NS) {
            self.idle_upstream = None;
        }
        if self.is_handshaking() {
            let is_late = self.reading.is_late(now_ns, read_timeout_ns);
            return is_late.then_some(Overdue::Handshake);
        }
        if self.ended_ns.is_some_and(|ended_ns| is_past(now_ns, ended_ns, HALF_CLOSED_NS)) {
            return Some(Overdue::Idle);
        }
        if self.socket.unwritten() > 0 {
            return self.is_idle_for(now_ns, UNREAD_NS).then_some(Overdue::Idle);
        }
        // If the upstream server does not read, the client is not at fault.
        if self.proxied.as_ref().is_some_and(|proxied| !proxied.awaits_client()) {
            return None;
        }
        if self.reading.part() == Part::None {
            return self.is_idle_for(now_ns, idle_timeout_ns).then_some(Overdue::Idle);
        }
        self.reading.is_late(now_ns, read_timeout_ns).then_some(Overdue::ReadTimeout)
    }

    /// Does what is possible now, up to a bound.
    pub(crate) fn run_turn<H: RequestHandler>(
        &mut self,
        cx: &mut ConnectionContext<'_, H>,
    ) -> Progress {
        self.try_run_turn(cx).unwrap_or(Progress::Closed)
    }

    fn try_run_turn<H: RequestHandler>(
        &mut self,
        cx: &mut ConnectionContext<'_, H>,
    ) -> Result<Progress, Disconnected> {
        if self.socket.has_ended() {
            self.on_read_closed(cx.now_ns)?;
        }
        if !self.flush(cx.now_ns)? {
            return Ok(Progress::Pending);
        }
        match self.close {
            Close::No => {}
            Close::Now => {
                self.socket.discard(cx.scratch);
                return Err(Disconnected);
            }
            Close::Lingering => return self.linger(cx),
        }
        if self.is_handshaking() {
            return self.handshake(cx);
        }
        if self.proxied.is_some() { self.drive_proxied(cx) } else { self.serve(cx) }
    }

    /// Discards what the client sends, until it closes too.
    fn linger<H: RequestHandler>(
        &mut self,
        cx: &mut ConnectionContext<'_, H>,
    ) -> Result<Progress, Disconnected> {
        if self.ended_ns.is_none() {
            self.ended_ns = Some(cx.now_ns);
            self.socket.shutdown_write();
        }
        if self.unread == 0 {
            return if self.socket.has_ended() { Err(Disconnected) } else { Ok(Progress::Pending) };
        }
        match self.socket.read(cx.scratch) {
            ReadResult::Data(count) => {
                self.unread = self.unread.saturating_sub(count);
                Ok(Progress::Ready)
            }
            ReadResult::WouldBlock => Ok(Progress::Pending),
            ReadResult::Eof => Err(Disconnected),
        }
    }

    /// Closes once all is written. `is_whole`: the client has sent its complete request.
    fn close_after_response(&mut self, is_whole: bool) {
        self.close = if is_whole { Close::Now } else { Close::Lingering };
        self.unread = LINGERING_BYTES_MAX;
    }

    fn handshake<H: RequestHandler>(
        &mut self,
        cx: &mut ConnectionContext<'_, H>,
    ) -> Result<Progress, Disconnected> {
        let Some(result) = self.socket.handshake() else { return Ok(Progress::Pending) };
        cx.handler.handshake_ended(result);
        if !matches!(result, HandshakeResult::Full | HandshakeResult::Resumed) {
            return Err(Disconnected);
        }
        self.reading.set(Part::None, cx.now_ns);
        self.seen_ns = cx.now_ns;
        // A request may have come with the end of the handshake.
        Ok(if self.socket.can_read() { Progress::Ready } else { Progress::Pending })
    }

    /// The client closed its sending side. It may have left, and then the upstream server must be
    /// notified; or it still waits for its response, which it gets for `HALF_CLOSED_NS` if that
    /// response has an end.
    fn on_read_closed(&mut self, now_ns: u64) -> Result<(), Disconnected> {
        self.ended_ns.get_or_insert(now_ns);
        match &self.proxied {
            Some(proxied) if !proxied.is_answerable_half_closed() => Err(Disconnected),
            _ => Ok(()),
        }
    }

    /// Whether everything was written to the client.
    fn flush(&mut self, now_ns: u64) -> Result<bool, Disconnected> {
        let before = self.socket.unwritten();
        let is_done = self.socket.flush().map_err(|_| Disconnected)?;
        if self.socket.unwritten() < before {
            self.seen_ns = now_ns;
        }
        if is_done {
            self.unwritten_permit = None;
        }
        Ok(is_done)
    }

    fn serve<H: RequestHandler>(
        &mut self,
        cx: &mut ConnectionContext<'_, H>,
    ) -> Result<Progress, Disconnected> {
        self.check_idle_upstream(cx.scratch);
        // Apart from the context, while that is used to serve its bytes.
        let scratch = std::mem::take(&mut cx.scratch);
        let served = match self.large.take() {
            Some(large) => self.receive_large(large, cx),
            None => self.receive(scratch, cx),
        };
        cx.scratch = scratch;
        let (read_result, next) = served?;
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

    /// Reads once, and serves the requests that are complete.
    fn receive<H: RequestHandler>(
        &mut self,
        scratch: &mut [u8],
        cx: &mut ConnectionContext<'_, H>,
    ) -> Result<(ReadResult, ParseOutcome), Disconnected> {
        let held = self.input.len();
        if let Some(start) = scratch.get_mut(..held) {
            start.copy_from_slice(&self.input);
        }
        let read_result = self.socket.read(scratch.get_mut(held..).unwrap_or_default());
        let count = match read_result {
            ReadResult::Data(count) => {
                self.seen_ns = cx.now_ns;
                count
            }
            ReadResult::WouldBlock | ReadResult::Eof => 0,
        };
        let bytes = scratch.get(..held + count).unwrap_or_default();
        // A refused body keeps its deadline until its last byte.
        let is_same = self.unread > bytes.len();
        let (done, next) = self.serve_all(bytes, cx)?;
        if done > 0 && !is_same {
            // Whatever is pending now belongs to another request.
            self.reading.set(Part::None, cx.now_ns);
        }
        let part = if let ParseOutcome::Pending(part) = next { part } else { Part::None };
        self.reading.set(part, cx.now_ns);
        let rest = bytes.get(done..).unwrap_or_default();
        self.input.clear();
        if rest.is_empty() {
            // An idle connection holds no memory.
            self.input = Vec::new();
        } else {
            self.input.extend_from_slice(rest);
        }
        Ok((read_result, next))
    }

    /// The same for the rest of a large submission.
    fn receive_large<H: RequestHandler>(
        &mut self,
        mut large: Box<LargeRequest>,
        cx: &mut ConnectionContext<'_, H>,
    ) -> Result<(ReadResult, ParseOutcome), Disconnected> {
        let read_result = large.read(&mut self.socket);
        if matches!(read_result, ReadResult::Data(_)) {
            self.seen_ns = cx.now_ns;
            self.reading.set(Part::Body, cx.now_ns);
        }
        if !large.is_whole() {
            self.large = Some(large);
            return Ok((read_result, ParseOutcome::Pending(self.reading.part())));
        }
        self.reading.set(Part::None, cx.now_ns);
        let (bytes, permit) = large.into_parts();
        self.unwritten_permit = Some(permit);
        let (_, next) = self.serve_all(&bytes, cx)?;
        if self.socket.unwritten() == 0 {
            self.unwritten_permit = None;
        }
        Ok((read_result, next))
    }

    /// Serves the requests that these bytes start with; returns how many bytes were consumed and
    /// what follows.
    fn serve_all<H: RequestHandler>(
        &mut self,
        bytes: &[u8],
        cx: &mut ConnectionContext<'_, H>,
    ) -> Result<(usize, ParseOutcome), Disconnected> {
        let size = bytes.len();
        let ConnectionContext { handler, out, .. } = cx;
        let mut done = self.unread.min(size);
        self.unread -= done;
        if self.unread > 0 {
            return Ok((done, ParseOutcome::Pending(Part::Body)));
        }
        for _ in 0..REQUESTS_PER_TURN {
            let rest = bytes.get(done..).unwrap_or_default();
            if rest.is_empty() {
                return Ok((done, ParseOutcome::Pending(Part::None)));
            }
            match preamble_size(rest) {
                None => return Ok((done, ParseOutcome::Pending(Part::Head))),
                Some(0) => {}
                Some(count) => {
                    done += count;
                    continue;
                }
            }
            let head = match read_request_head(rest, cx.forwarded_header_name) {
                RequestHead::Partial => return Ok((done, ParseOutcome::Pending(Part::Head))),
                RequestHead::Malformed(error) => {
                    handler.connection_closed(ClientCloseReason::Framing);
                    write_head_refused(out, error);
                    self.socket.send(out).map_err(|_| Disconnected)?;
                    self.close_after_response(false);
                    return Ok((size, ParseOutcome::Ready));
                }
                RequestHead::Complete(head) => head,
            };
            let is_refused = cx.drain == Drain::Refusing && !self.body_started;
            let drain = if is_refused { cx.drain } else { cx.drain.min(Drain::Announced) };
            let dispatched =
                dispatch(*handler, &head, rest, self.from, drain, cx.large_permits, out);
            let is_pending = matches!(dispatched, Dispatched::Pending(_) | Dispatched::Large(..));
            self.body_started &= is_pending;
            let may_withhold = is_pending && head.expects;
            if may_withhold && !self.is_continued && rest.len() == head.size {
                self.socket.send(CONTINUE).map_err(|_| Disconnected)?;
            }
            self.is_continued = may_withhold;
            match dispatched {
                Dispatched::Answered => {
                    done += head.size + head.body_size;
                    // A request that arrived behind it is answered first.
                    let ends_here = !cx.keep_alive && done == size;
                    if ends_here {
                        announce_close(out);
                    }
                    self.socket.send(out).map_err(|_| Disconnected)?;
                    if ends_here || head.closes {
                        self.close_after_response(true);
                        return Ok((size, ParseOutcome::Ready));
                    }
                    let unwritten = self.socket.unwritten();
                    if unwritten > UNWRITTEN_BYTES_MAX && self.unwritten_permit.is_none() {
                        self.unwritten_permit = cx.large_permits.try_acquire(self.from);
                        if self.unwritten_permit.is_none() {
                            handler.connection_closed(ClientCloseReason::Evicted);
                            return Err(Disconnected);
                        }
                    }
                    if unwritten > 0 {
                        return Ok((done, ParseOutcome::Ready));
                    }
                }
                Dispatched::Pending(part) => return Ok((done, ParseOutcome::Pending(part))),
                Dispatched::Large(total, permit) => {
                    self.large = Some(Box::new(LargeRequest::new(rest, total, permit)));
                    let has_started = rest.len() > head.size;
                    let part = if has_started { Part::Body } else { Part::BodyStart };
                    return Ok((size, ParseOutcome::Pending(part)));
                }
                Dispatched::Refused { closes } => {
                    let closes = closes || !cx.keep_alive;
                    if closes {
                        announce_close(out);
                    }
                    self.socket.send(out).map_err(|_| Disconnected)?;
                    if closes || head.closes {
                        self.close_after_response(false);
                        return Ok((size, ParseOutcome::Ready));
                    }
                    self.unread = (head.size + head.body_size).saturating_sub(rest.len());
                    return Ok((size, ParseOutcome::Pending(Part::Body)));
                }
                Dispatched::Proxy { is_upload } => {
                    let forwarded =
                        ForwardedHeader { name: cx.forwarded_header_name, from: self.from };
                    let (count, framing) = forwarded.write(&head, rest, out);
                    return Ok((done + count, ParseOutcome::Proxy { framing, is_upload }));
                }
            }
        }
        Ok((done, ParseOutcome::Ready))
    }

    fn start_proxy<H: RequestHandler>(
        &mut self,
        framing: ProxyRequestFraming,
        is_upload: bool,
        cx: &mut ConnectionContext<'_, H>,
    ) -> Result<Progress, Disconnected> {
        let is_whole = framing.is_whole();
        let upload_permit = if is_upload { cx.upload_permits.try_acquire(self.from) } else { None };
        if is_upload && upload_permit.is_none() {
            return self.refuse_overloaded(framing.form, OVERLOADED, is_whole, cx);
        }
        let upstream = match self.idle_upstream.take() {
            Some(idle_upstream) => idle_upstream,
            None => {
                let Some(permit) = cx.upstream_permits.try_acquire(self.from) else {
                    return self.refuse_overloaded(framing.form, OVERLOADED, is_whole, cx);
                };
                let Ok(socket) =
                    BufferedSocket::connect(cx.upstream, cx.registry, cx.upstream_token)
                else {
                    return self.refuse_overloaded(framing.form, OVERLOADED, is_whole, cx);
                };
                Box::new(UpstreamConnection { socket, _permit: permit })
            }
        };
        self.proxied =
            Some(ProxiedRequest::start(framing, upstream, upload_permit, cx.out, cx.now_ns));
        self.seen_ns = cx.now_ns;
        self.drive_proxied(cx)
    }

    /// Too many requests are in progress, or the upstream server closed without a response. Answers
    /// 503 and closes: the connection cannot be used after the request.
    fn refuse_overloaded<H: RequestHandler>(
        &mut self,
        form: ResponseForm,
        message: &str,
        is_whole: bool,
        cx: &mut ConnectionContext<'_, H>,
    ) -> Result<Progress, Disconnected> {
        if form != ResponseForm::Preflight {
            cx.handler.overloaded();
        }
        write_overloaded(cx.out, form, message);
        self.socket.send(cx.out).map_err(|_| Disconnected)?;
        self.close_after_response(is_whole);
        Ok(Progress::Ready)
    }

    fn drive_proxied<H: RequestHandler>(
        &mut self,
        cx: &mut ConnectionContext<'_, H>,
    ) -> Result<Progress, Disconnected> {
        let Some(proxied) = &mut self.proxied else { return Ok(Progress::Ready) };
        let is_slow = proxied.is_late(cx.now_ns, UPSTREAM_TIMEOUT_NS);
        let progress = proxied.run(&mut self.socket, &mut self.input, cx.scratch);
        self.reading.set(proxied.part(), cx.now_ns);
        match progress {
            ProxyProgress::Pending => return Ok(Progress::Pending),
            ProxyProgress::ClientClosed => return Err(Disconnected),
            ProxyProgress::Moved => {}
            ProxyProgress::Complete { closes } => {
                // The rest of a body is not awaited once its response is complete.
                if closes {
                    self.close_after_response(self.reading.part() == Part::None);
                }
                self.reading.set(Part::None, cx.now_ns);
                let is_reusable = !closes && cx.upstream_permits.has_spare(self.from);
                self.idle_upstream =
                    self.proxied.take().filter(|_| is_reusable).map(ProxiedRequest::into_upstream);
                self.idle_since_ns = cx.now_ns;
            }
            ProxyProgress::UpstreamClosed => {
                let is_whole = self.reading.part() == Part::None;
                self.reading.set(Part::None, cx.now_ns);
                let form = self.proxied.take().map(|proxied| proxied.form());
                if is_slow {
                    cx.handler.connection_closed(ClientCloseReason::ReadTimeout);
                    return Err(Disconnected);
                }
                let Some(form) = form else { return Err(Disconnected) };
                return self.refuse_overloaded(form, UNANSWERED, is_whole, cx);
            }
        }
        self.seen_ns = cx.now_ns;
        Ok(Progress::Ready)
    }

    /// Drops an idle connection that the upstream server closed. It closes what is unused for long,
    /// and sends nothing unasked.
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
