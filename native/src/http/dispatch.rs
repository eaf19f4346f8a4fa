//! Hot path: decides what happens with a request as far as it has arrived: answer it here, wait for
//! the rest, or proxy it.

use std::net::IpAddr;

use crate::http::deadline::Part;
use crate::http::handler::{
    Endpoint, ForwardedMeta, Handled, Health, KEYLESS_BODY_BYTES_MAX, Request, RequestHandler,
    UnreadReason,
};
use crate::http::json_rpc::read_health;
use crate::http::rejection_table::Reason;
use crate::http::request_head::{Ask, CompleteHead, Submission};
use crate::http::response::insert_query_warning;

/// The size of the read buffer. A request up to this size, head and body, is proxied only once it
/// is complete, unless the client waits for the upstream server's `100 Continue`.
pub(crate) const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// Largest body of a transaction: `RAW_BODY_BYTES_MAX` of `src/http/limits.ts`.
const RAW_BODY_BYTES_MAX: usize = 16 * 1024;
/// Largest body of JSON-RPC calls: `RPC_BODY_BYTES_MAX` of `src/http/limits.ts`.
const RPC_BODY_BYTES_MAX: usize = 128 * 1024;
/// Largest body that is discarded, so that a refused client keeps its connection:
/// `UNREAD_BODY_BYTES_MAX` of `src/http/limits.ts`.
const UNREAD_BODY_BYTES_MAX: usize = RPC_BODY_BYTES_MAX;

/// What happens with a request whose head is complete.
pub(crate) enum Dispatched {
    /// The response is in `out`.
    Answered,
    /// This part of it is pending.
    Pending(Part),
    /// Its body is pending, and it has so many bytes: more than the read buffer.
    Large(usize),
    /// The response is in `out`. The event loop uses no byte of the body.
    Refused {
        /// Whether the connection ends with it; otherwise the event loop discards the body.
        closes: bool,
    },
    Proxy {
        meta: ForwardedMeta,
        /// Whether its body arrives while it is proxied, and its key is unknown.
        is_upload: bool,
    },
}

/// How far this edge has gone towards its stop.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Drain {
    /// It serves.
    None,
    /// It accepts work, and no longer counts as healthy.
    Announced,
    /// It refuses every submission, and proxies every other request.
    Refusing,
}

/// Decides on the request that `bytes` start with.
pub(crate) fn dispatch<H: RequestHandler>(
    handler: &mut H,
    head: &CompleteHead<'_>,
    bytes: &[u8],
    from: IpAddr,
    drain: Drain,
    out: &mut Vec<u8>,
) -> Dispatched {
    let total = head.size + head.body_size;
    let Some(body) = bytes.get(head.size..total) else {
        let has_started = bytes.len() > head.size;
        let pending = Dispatched::Pending(if has_started { Part::Body } else { Part::BodyStart });
        let is_small = total <= REQUEST_BYTES_MAX;
        if is_small && !head.expects {
            return pending;
        }
        let Some(submission) = head.submission() else {
            return proxy(handler, true);
        };
        let may_withhold = head.expects && !has_started;
        return match before_body(handler, head, submission, may_withhold, from, drain, out) {
            BeforeBody::Read if is_small => pending,
            BeforeBody::Read => Dispatched::Large(total),
            BeforeBody::Decided(dispatched) => dispatched,
        };
    };
    if drain == Drain::Refusing {
        return match head.submission() {
            Some(submission) if !may_be_keyless(submission.endpoint, head.body_size) => {
                refuse_draining(handler, head, submission.endpoint, out)
            }
            _ => proxy(handler, false),
        };
    }
    out.clear();
    if let Some(health) = health_of(head, body) {
        if !may_answer(&health, drain) {
            return proxy(handler, false);
        }
        handler.health(&health, out);
        return Dispatched::Answered;
    }
    let Some(&Submission { endpoint, token }) = head.submission() else {
        return proxy(handler, false);
    };
    let is_drain_announced = drain != Drain::None;
    match handler.handle(&Request { endpoint, token, from, body, is_drain_announced }, out) {
        Handled::Answered => {
            warn_of_query_key(head, out);
            Dispatched::Answered
        }
        Handled::Proxy(meta) => Dispatched::Proxy { meta, is_upload: false },
    }
}

/// What happens with a submission whose body has not arrived.
enum BeforeBody {
    /// The body is read.
    Read,
    Decided(Dispatched),
}

/// As the main thread's server: the checks of `src/http/request-checks.ts` before the body is read.
fn before_body<H: RequestHandler>(
    handler: &mut H,
    head: &CompleteHead<'_>,
    &Submission { endpoint, token }: &Submission<'_>,
    may_withhold: bool,
    from: IpAddr,
    drain: Drain,
    out: &mut Vec<u8>,
) -> BeforeBody {
    if may_be_keyless(endpoint, head.body_size) {
        return BeforeBody::Read;
    }
    if drain == Drain::Refusing {
        return BeforeBody::Decided(refuse_draining(handler, head, endpoint, out));
    }
    let is_known = handler.has_key(token);
    let needed = bytes_max(endpoint);
    let reason = match is_known {
        true if head.body_size <= needed => return BeforeBody::Read,
        true => UnreadReason::TooLarge(head.body_size, needed),
        false => UnreadReason::KeyUnknown,
    };
    let is_drain_announced = drain != Drain::None;
    let request = Request { endpoint, token, from, body: &[], is_drain_announced };
    out.clear();
    let Some(refused) = handler.refuse_unread(&request, reason, out) else {
        return BeforeBody::Decided(proxy(handler, !is_known));
    };
    warn_of_query_key(head, out);
    let is_too_large = refused == Reason::TooLarge || head.body_size > UNREAD_BODY_BYTES_MAX;
    let closes = is_too_large || may_withhold;
    BeforeBody::Decided(Dispatched::Refused { closes })
}

fn refuse_draining<H: RequestHandler>(
    handler: &mut H,
    head: &CompleteHead<'_>,
    endpoint: Endpoint,
    out: &mut Vec<u8>,
) -> Dispatched {
    out.clear();
    handler.refuse_draining(endpoint, out);
    warn_of_query_key(head, out);
    Dispatched::Refused { closes: true }
}

fn warn_of_query_key(head: &CompleteHead<'_>, out: &mut Vec<u8>) {
    if head.has_query_key {
        insert_query_warning(out);
    }
}

/// Whether a body of this size may ask for what needs no key.
fn may_be_keyless(endpoint: Endpoint, body_size: usize) -> bool {
    endpoint == Endpoint::JsonRpc && body_size <= KEYLESS_BODY_BYTES_MAX
}

fn bytes_max(endpoint: Endpoint) -> usize {
    match endpoint {
        Endpoint::Raw | Endpoint::Text => RAW_BODY_BYTES_MAX,
        Endpoint::JsonRpc => RPC_BODY_BYTES_MAX,
    }
}

/// The upstream server answers `getHealth` of an edge that drains.
fn may_answer(health: &Health<'_>, drain: Drain) -> bool {
    drain == Drain::None || matches!(health, Health::Ping { .. })
}

fn proxy<H: RequestHandler>(handler: &mut H, is_upload: bool) -> Dispatched {
    handler.proxied();
    Dispatched::Proxy { meta: ForwardedMeta::default(), is_upload }
}

/// The health check that a complete request is, if it needs no key.
fn health_of<'a>(head: &CompleteHead<'_>, body: &'a [u8]) -> Option<Health<'a>> {
    match head.ask {
        Ask::Ping => return Some(Health::Ping { is_head_only: head.is_head_only }),
        Ask::Submission(Submission { endpoint: Endpoint::JsonRpc, token: [] })
            if body.len() <= KEYLESS_BODY_BYTES_MAX => {}
        Ask::Submission(_) | Ask::Other => return None,
    }
    let (start, end) = read_health(body)?;
    Some(Health::Rpc { id: body.get(start..end)? })
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;
