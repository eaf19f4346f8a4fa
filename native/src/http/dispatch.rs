//! Hot path: decides what happens with a request as far as it has arrived: answer it here, wait for
//! the rest, or proxy it. A submission with one `Content-Length` is never proxied.

use std::net::IpAddr;

use crate::http::deadline::Part;
use crate::http::handler::{
    Drain, Endpoint, KEYLESS_BODY_BYTES_MAX, Request, RequestHandler, UnreadReason,
};
use crate::http::permits::{Permit, Permits};
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
    Large(usize, Permit),
    /// The response is in `out`. The event loop uses no byte of the body.
    Refused {
        /// Whether the connection ends with it; otherwise the event loop discards the body.
        closes: bool,
    },
    Proxy {
        /// Whether its body arrives while it is proxied.
        is_upload: bool,
    },
}

/// Decides on the request that `bytes` start with.
pub(crate) fn dispatch<H: RequestHandler>(
    handler: &mut H,
    head: &CompleteHead<'_>,
    bytes: &[u8],
    from: IpAddr,
    drain: Drain,
    large_permits: &Permits,
    out: &mut Vec<u8>,
) -> Dispatched {
    let total = head.size + head.body_size;
    let Some(body) = bytes.get(head.size..total) else {
        let has_started = bytes.len() > head.size;
        return dispatch_incomplete(handler, head, has_started, from, drain, large_permits, out);
    };
    let (endpoint, token) = match &head.ask {
        Ask::Submission(Submission { endpoint, token }) => (*endpoint, token.as_ref()),
        Ask::Ping => {
            out.clear();
            handler.ping(head.is_head_only, out);
            return Dispatched::Answered;
        }
        Ask::Other => return proxy(handler, false),
    };
    if drain == Drain::Refusing && !may_be_keyless(endpoint, head.body_size) {
        return refuse_draining(handler, head, endpoint, out);
    }
    out.clear();
    handler.handle(&Request { endpoint, token, from, body, drain }, out);
    warn_of_query_key(head, out);
    Dispatched::Answered
}

/// The same before the body is complete. A submission is judged as by the main thread's server, with
/// the checks of `src/http/request-checks.ts`; one that its head suffices to refuse is refused now.
fn dispatch_incomplete<H: RequestHandler>(
    handler: &mut H,
    head: &CompleteHead<'_>,
    has_started: bool,
    from: IpAddr,
    drain: Drain,
    large_permits: &Permits,
    out: &mut Vec<u8>,
) -> Dispatched {
    let total = head.size + head.body_size;
    let pending = Dispatched::Pending(if has_started { Part::Body } else { Part::BodyStart });
    let is_small = total <= REQUEST_BYTES_MAX;
    if is_small && !head.expects {
        return pending;
    }
    let Some(Submission { endpoint, token }) = head.submission() else {
        return proxy(handler, true);
    };
    let (endpoint, token) = (*endpoint, token.as_ref());
    if may_be_keyless(endpoint, head.body_size) {
        return pending;
    }
    if drain == Drain::Refusing {
        return refuse_draining(handler, head, endpoint, out);
    }
    let needed = bytes_max(endpoint);
    let reason = match handler.has_key(token) {
        false => UnreadReason::KeyUnknown,
        true if head.body_size > needed => UnreadReason::TooLarge(head.body_size, needed),
        true if is_small => return pending,
        true => match large_permits.try_acquire(from) {
            Some(permit) => return Dispatched::Large(total, permit),
            None => UnreadReason::NoRoom,
        },
    };
    out.clear();
    let request = Request { endpoint, token, from, body: &[], drain };
    let refused = handler.refuse_unread(&request, reason, out);
    warn_of_query_key(head, out);
    let may_withhold = head.expects && !has_started;
    let is_too_large = refused == Reason::TooLarge || head.body_size > UNREAD_BODY_BYTES_MAX;
    Dispatched::Refused { closes: is_too_large || may_withhold }
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

fn proxy<H: RequestHandler>(handler: &mut H, is_upload: bool) -> Dispatched {
    handler.proxied();
    Dispatched::Proxy { is_upload }
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;
