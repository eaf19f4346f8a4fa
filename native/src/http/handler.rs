//! The interface between the event loop and the submission path.
//!
//! The event loop knows sockets and HTTP; a request handler knows keys, transactions and leaders.
//! The loop passes it every submission, which the handler answers, and proxies every other request to
//! the main thread's server.

use std::net::IpAddr;

use crate::http::rejection_table::Reason;
use crate::quic_server::handler::StreamHandler;
use crate::sync::clock::monotonic_ns;

/// Largest body whose calls may need no key: `KEYLESS_BODY_BYTES_MAX` of
/// `src/http/limits.ts`.
pub const KEYLESS_BODY_BYTES_MAX: usize = 256;

/// The endpoint that a submission was sent to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Endpoint {
    /// The body is the transaction.
    Raw,
    /// The body is the transaction in base64.
    Text,
    /// The body is a JSON-RPC call.
    JsonRpc,
}

/// A complete submission.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its endpoint.
    pub endpoint: Endpoint,
    /// The API key as it was sent, empty for none.
    pub token: &'a [u8],
    /// The client's address; an IPv4 address is never mapped into IPv6.
    pub from: IpAddr,
    /// The complete body.
    pub body: &'a [u8],
    /// How far this edge has gone towards its stop.
    pub drain: Drain,
}

/// How far an edge has gone towards its stop.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Drain {
    /// It serves.
    None,
    /// It accepts work, and no longer counts as healthy.
    Announced,
    /// It refuses every submission.
    Refusing,
}

/// Why the event loop refuses a submission before its body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UnreadReason {
    /// Its key is not valid.
    KeyUnknown,
    /// The number of bytes of its body, and the largest number that the endpoint accepts.
    TooLarge(usize, usize),
    /// The thread holds as many large submissions as it may.
    NoRoom,
}

/// Why the event loop closed a connection that the client would have kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClientCloseReason {
    /// At accept: too many connections are open.
    TooMany,
    /// It was idle for longest when too many were open and another client connected; or it does not
    /// read, and too many such responses are held.
    Evicted,
    /// At accept: its address is at its limit.
    Address,
    /// A head or a body was not complete in time.
    ReadTimeout,
    /// A head was malformed or too large.
    Framing,
}

/// How the TLS handshake of a connection ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HandshakeResult {
    /// The client continues a session that it has a ticket of.
    Resumed,
    /// A new session.
    Full,
    /// The client and this server do not agree, or the client refused the certificate.
    Failed,
    /// The client does not speak TLS.
    NotTls,
    /// It was not complete in time.
    TimedOut,
    /// The client left before it was complete.
    Aborted,
}

/// Handles submissions, those of QUIC clients too. Every method is called on the event loop's
/// thread.
pub trait RequestHandler: StreamHandler {
    /// Whether this key is valid.
    fn has_key(&self, token: &[u8]) -> bool;

    /// Appends the response to a complete submission.
    fn handle(&mut self, request: &Request<'_>, out: &mut Vec<u8>);

    /// Appends the refusal of a submission whose body is not read; returns its reason.
    fn refuse_unread(
        &mut self,
        request: &Request<'_>,
        reason: UnreadReason,
        out: &mut Vec<u8>,
    ) -> Reason;

    /// Appends the refusal of a submission because this edge drains.
    fn refuse_draining(&mut self, endpoint: Endpoint, out: &mut Vec<u8>);

    /// Appends the response to `/ping`, without its body if `is_head_only`.
    fn ping(&mut self, is_head_only: bool, out: &mut Vec<u8>);

    /// A request is proxied.
    fn proxied(&mut self);

    /// The number of open connections changed.
    fn connections(&mut self, open: usize);

    /// The number of requests with a pending body changed.
    fn bodies_pending(&mut self, count: usize);

    /// A client left while a body was pending.
    fn client_left(&mut self);

    /// The TLS handshake of a connection ended.
    fn handshake_ended(&mut self, result: HandshakeResult);

    /// The event loop closed a connection.
    fn connection_closed(&mut self, reason: ClientCloseReason);

    /// A request was answered 503 and its connection closed: too many are in progress, or the
    /// upstream server closed without a response.
    fn overloaded(&mut self);

    /// The loop is stopping, and nothing is pending. Called repeatedly.
    fn idle(&mut self);

    /// All events of one poll were handled.
    fn end_turn(&mut self);

    /// The clock of every timeout.
    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }
}
