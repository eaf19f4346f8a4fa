//! Hot path: decides what happens with a request as far as it has arrived: answer it here, wait for
//! the rest, or proxy it.

use std::net::IpAddr;

use crate::http::deadline::Part;
use crate::http::handler::{
    Endpoint, ForwardedMeta, Handled, Health, KEYLESS_BODY_BYTES_MAX, Request, RequestHandler,
    UnhandledReason,
};
use crate::http::json_rpc::read_health;
use crate::http::request_head::{Ask, CompleteHead, Submission};
use crate::http::response::insert_query_warning;

/// The size of the read buffer. A request up to this size, head and body, is proxied only once it
/// is complete, unless the client waits for the upstream server's `100 Continue`. A larger one is
/// answered here if it is a submission with a valid key.
pub(crate) const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// Largest body of a transaction: `RAW_BODY_BYTES_MAX` of `src/http/limits.ts`.
const RAW_BODY_BYTES_MAX: usize = 16 * 1024;
/// Largest body of JSON-RPC calls: `RPC_BODY_BYTES_MAX` of `src/http/limits.ts`.
const RPC_BODY_BYTES_MAX: usize = 128 * 1024;

/// What happens with a request whose head is complete.
pub(crate) enum Dispatched {
    /// The response is in `out`.
    Answered,
    /// This part of it is pending.
    Pending(Part),
    /// Its body is pending, and it has so many bytes: more than the read buffer.
    Large(usize),
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
    /// It proxies every request, so that the upstream server rejects it.
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
    let is_draining = drain == Drain::Refusing;
    let total = head.size + head.body_size;
    let Some(body) = bytes.get(head.size..total) else {
        if total <= REQUEST_BYTES_MAX && !head.expects {
            let has_started = bytes.len() > head.size;
            return Dispatched::Pending(if has_started { Part::Body } else { Part::BodyStart });
        }
        let submission = head.submission();
        let is_known = !is_draining && submission.is_some_and(|it| handler.has_key(it.token));
        if is_known && submission.is_some_and(|it| head.body_size <= bytes_max(it.endpoint)) {
            return Dispatched::Large(total);
        }
        let reason = match submission {
            _ if is_draining => UnhandledReason::Draining,
            Some(_) => UnhandledReason::Large,
            None => UnhandledReason::Other,
        };
        return proxy(handler, reason, !is_known);
    };
    if is_draining {
        return proxy(handler, UnhandledReason::Draining, false);
    }
    out.clear();
    if let Some(health) = health_of(head, body) {
        if !may_answer(&health, drain) {
            return proxy(handler, UnhandledReason::Draining, false);
        }
        handler.health(&health, out);
        return Dispatched::Answered;
    }
    let Some(&Submission { endpoint, token }) = head.submission() else {
        let is_ambiguous = head.is_ambiguous;
        let reason = if is_ambiguous { UnhandledReason::Ambiguous } else { UnhandledReason::Other };
        return proxy(handler, reason, false);
    };
    let is_drain_announced = drain != Drain::None;
    match handler.handle(&Request { endpoint, token, from, body, is_drain_announced }, out) {
        Handled::Answered => {
            if head.has_query_key {
                insert_query_warning(out);
            }
            Dispatched::Answered
        }
        Handled::Proxy(meta) => Dispatched::Proxy { meta, is_upload: false },
    }
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

fn proxy<H: RequestHandler>(
    handler: &mut H,
    reason: UnhandledReason,
    is_upload: bool,
) -> Dispatched {
    handler.proxied(reason);
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
