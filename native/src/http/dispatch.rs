//! Hot path: decides what is done with a request, as far as it has come: it is answered here,
//! its rest is awaited, or it is relayed.

use std::net::IpAddr;

use crate::http::deadline::Part;
use crate::http::handler::{Desk, Door, Health, Note, Request, Taken, Why};
use crate::http::json_rpc::read_health;
use crate::http::request_head::{Ask, Sound, Submission};

/// Largest request that may be answered here, head and body; and what is read at once. A request up
/// to this size is relayed only once all of it has come, unless the server behind is to ask for it.
pub(crate) const REQUEST_BYTES_MAX: usize = 16 * 1024;

/// `KEYLESS_BODY_BYTES_MAX` of `limits.ts`.
const KEYLESS_BODY_BYTES_MAX: usize = 256;

/// What is to be done with a sound request.
pub(crate) enum Step {
    /// Its answer is in `out`.
    Answered,
    /// This part of it is awaited.
    Awaits(Part),
    Relay {
        note: Note,
        /// Whether its body comes while it is relayed, and nothing says that it is admitted.
        is_upload: bool,
    },
}

/// Decides on the request that `bytes` begin with.
pub(crate) fn dispatch<D: Desk>(
    desk: &mut D,
    sound: &Sound<'_>,
    bytes: &[u8],
    from: IpAddr,
    is_draining: bool,
    out: &mut Vec<u8>,
) -> Step {
    let total = sound.size + sound.body_size;
    let Some(body) = bytes.get(sound.size..total) else {
        if total <= REQUEST_BYTES_MAX && !sound.expects {
            let has_begun = bytes.len() > sound.size;
            return Step::Awaits(if has_begun { Part::Body } else { Part::BodyBegin });
        }
        let token = sound.submission().map(|submission| submission.token);
        let is_known = !is_draining && token.is_some_and(|token| desk.knows(token));
        let why = if token.is_some() { Why::Large } else { Why::Other };
        return relay(desk, if is_draining { Why::Draining } else { why }, !is_known);
    };
    if is_draining {
        return relay(desk, Why::Draining, false);
    }
    out.clear();
    if let Some(health) = health_of(sound, body) {
        desk.health(&health, out);
        return Step::Answered;
    }
    let Some(&Submission { door, token }) = sound.submission() else {
        return relay(desk, Why::Other, false);
    };
    match desk.take(&Request { door, token, from, body }, out) {
        Taken::Answered => Step::Answered,
        Taken::Relay(note) => Step::Relay { note, is_upload: false },
    }
}

fn relay<D: Desk>(desk: &mut D, why: Why, is_upload: bool) -> Step {
    desk.relayed(why);
    Step::Relay { note: Note::default(), is_upload }
}

/// The question for this edge's health that a whole request is, where it needs no key.
fn health_of<'a>(sound: &Sound<'_>, body: &'a [u8]) -> Option<Health<'a>> {
    match sound.ask {
        Ask::Ping => return Some(Health::Ping { is_head_only: sound.is_head_only }),
        Ask::Open => {}
        Ask::Submission(Submission { door: Door::Rpc, token: [] })
            if body.len() <= KEYLESS_BODY_BYTES_MAX => {}
        Ask::Submission(_) | Ask::Other => return None,
    }
    let (start, end) = read_health(body)?;
    Some(Health::Rpc { id: body.get(start..end)? })
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;
