//! What the door asks of whoever takes submissions behind it.
//!
//! The door knows sockets and HTTP; a desk knows keys, transactions and leaders. The door shows it
//! every whole submission; what the desk does not answer on the spot goes to the main thread.

use std::net::IpAddr;
use std::time::Duration;

use crate::sync::clock::monotonic_ns;

/// Where a submission came in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Endpoint {
    /// The body is the transaction.
    Raw,
    /// The body is a JSON-RPC call.
    JsonRpc,
}

/// A whole submission.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Where it came in.
    pub endpoint: Endpoint,
    /// The key as it was sent, empty for none.
    pub token: &'a [u8],
    /// The other end of the connection; never an IPv4 address in IPv6's clothes.
    pub from: IpAddr,
    /// All of it.
    pub body: &'a [u8],
}

/// A question for this edge's health, which needs no key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Health<'a> {
    /// `/ping`.
    Ping {
        /// Whether the answer's body is left out.
        is_head_only: bool,
    },
    /// `getHealth`.
    Rpc {
        /// The call's id as JSON text.
        id: &'a [u8],
    },
}

/// Why a connection was closed that the client would have kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cut {
    /// At accept: too many are open.
    Full,
    /// At accept: its address holds all that one may hold.
    Address,
    /// A head or a body was not whole in its time.
    Slow,
}

/// What became of a submission at the desk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Handled {
    /// The whole response was appended to `out`.
    Answered,
    /// The main thread is to answer it; nothing was appended.
    Proxy(ForwardedMeta),
}

/// What goes along with a request that is relayed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ForwardedMeta {
    /// Whether its limit was charged here.
    pub is_paid: bool,
    /// CLOCK_MONOTONIC when it was whole, 0 where that is not known here.
    pub received_ns: u64,
}

/// Why a request is relayed that the desk was not shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProxyReason {
    /// It is no submission, or one with headers that call for more than an answer.
    Other,
    /// It is larger than what is held for one request.
    Large,
    /// No work is taken any more.
    Draining,
    /// Its framing is not beyond doubt; the rest of its connection goes the same way.
    Ambiguous,
}

/// Takes submissions. All is called on the thread of the door.
pub trait RequestHandler {
    /// What the desk is told through `EventLoopHandle`.
    type Update: Send;

    /// Whether this key is known to be good.
    fn knows(&self, token: &[u8]) -> bool;

    /// Answers a submission, or leaves it to the main thread.
    fn handle(&mut self, request: &Request<'_>, out: &mut Vec<u8>) -> Handled;

    /// Appends the answer to a question for the edge's health.
    fn health(&mut self, health: &Health<'_>, out: &mut Vec<u8>);

    /// A request is relayed without `take`.
    fn proxied(&mut self, reason: ProxyReason);

    /// So many connections are open now.
    fn connections(&mut self, open: usize);

    /// Of so many requests the rest of the body is awaited now.
    fn bodies_pending(&mut self, count: usize);

    /// A client left before the rest of a body came that was awaited.
    fn client_left(&mut self);

    /// A connection was closed.
    fn cut(&mut self, cut: Cut);

    /// A connection was closed with a request in place of its answer, because too many are relayed.
    fn proxy_rejected(&mut self);

    /// The door was told to stop, and nothing is in hand now. Told again and again.
    fn idle(&mut self);

    /// News from another thread, in the order of sending.
    fn update(&mut self, update: Self::Update);

    /// All that came with one look at the sockets was shown.
    fn end_turn(&mut self);

    /// How long the door may sleep at most; None: for ever.
    fn wake_in(&self, now_ns: u64) -> Option<Duration>;

    /// The clock of every time-out.
    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }
}
