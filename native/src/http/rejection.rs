//! What a client is answered that is refused: reason, message and data, as the main thread makes
//! them.

use std::fmt::Write;

use crate::decode::errors::{DecodeError, Rejected};
use crate::http::message_template::{push_json, push_number, render};
use crate::http::rejection_table::{
    BODY_TOO_LARGE, BUSY, DECODE_ROWS, DRAINING, DecodeRow, INTERNAL, LEADERS_FULL, NO_LEADER,
    RATE_LIMITED, REASONS, RING_FULL, Reason, ReasonRow, STATUS_MESSAGE_CHARS_MAX,
};
use crate::sync::clock::{NS_PER_MS, NS_PER_S};

/// A refusal: `Rejection` of `src/core/errors.ts`, and the headers that depend on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejection {
    /// Why.
    pub reason: Reason,
    /// With the values found and needed.
    pub message: String,
    /// The numbers of the message as members of a JSON object, each with a comma behind it.
    data: String,
    /// Headers in place of those of the reason.
    headers: Option<String>,
}

/// A used-up rate limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UsedUp<'a> {
    /// The account's plan.
    pub plan: &'a str,
    /// Whether the limit is the key's own.
    pub is_own: bool,
    /// Of the limit.
    pub rate_per_second: f64,
    /// Of the limit.
    pub burst: f64,
    /// How long the next request must wait; finite.
    pub wait_ns: f64,
}

impl Rejection {
    /// Without data.
    #[must_use]
    pub fn new(reason: Reason, message: String) -> Self {
        Self { reason, message, data: String::new(), headers: None }
    }

    /// No leader can be reached.
    #[must_use]
    pub fn no_leader() -> Self {
        Self::new(Reason::NoLeader, NO_LEADER.into())
    }

    /// The queue of every connected leader is full.
    #[must_use]
    pub fn leaders_full() -> Self {
        Self::new(Reason::Overloaded, LEADERS_FULL.into())
    }

    /// Another thread is sending the transaction.
    #[must_use]
    pub fn busy() -> Self {
        Self::new(Reason::Overloaded, BUSY.into())
    }

    /// The main thread does not keep up with what is accepted.
    #[must_use]
    pub fn ring_full() -> Self {
        Self::new(Reason::Overloaded, RING_FULL.into())
    }

    /// This edge is about to stop.
    #[must_use]
    pub fn draining() -> Self {
        Self::new(Reason::Overloaded, DRAINING.into())
    }

    /// A body has so many bytes, more than are needed: `tooLarge` of `src/http/request-checks.ts`.
    #[must_use]
    pub fn body_too_large(found: usize, needed: usize) -> Self {
        let (found, needed) = (found as f64, needed as f64);
        let mut message = String::new();
        render(&mut message, BODY_TOO_LARGE, |out, value| {
            push_number(out, if value == 0 { found } else { needed });
        });
        Self::new(Reason::TooLarge, message)
            .with_number("found", found)
            .with_number("needed", needed)
    }

    /// A bug.
    #[must_use]
    pub fn internal() -> Self {
        Self::new(Reason::Internal, INTERNAL.into())
    }

    /// The decoder rejects the transaction.
    #[must_use]
    pub fn undecodable(rejected: &Rejected) -> Self {
        let &Rejected { error, found, needed } = rejected;
        let row = decode_row(error);
        let template = row.message_of_zero.filter(|_| found == 0).unwrap_or(row.message);
        // As the main thread has them.
        let (found, needed) = (found as f64, needed as f64);
        let mut message = String::with_capacity(MESSAGE_BYTES);
        render(&mut message, template, |out, value| match value {
            0 => push_number(out, found),
            1 => push_number(out, needed),
            2 => push_number(out, found + 1.0),
            // Writing to memory cannot fail.
            3 => drop(write!(out, "{:#04x}", found as i64)),
            _ => drop(write!(out, "{:#04x}", needed as i64)),
        });
        Self::new(row.reason, message)
            .with_text("fault", row.name)
            .with_number("found", found)
            .with_number("needed", needed)
    }

    /// A rate limit is used up: `limitRejection` of `src/limits/access-control.ts`.
    #[must_use]
    pub fn rate_limited(used_up: &UsedUp<'_>) -> Self {
        let &UsedUp { plan, is_own, rate_per_second, burst, wait_ns } = used_up;
        let retry_after_ms = (wait_ns / NS_PER_MS as f64).ceil();
        let mut message = String::with_capacity(MESSAGE_BYTES);
        render(&mut message, RATE_LIMITED, |out, value| match value {
            0 if is_own => out.push_str("this key"),
            0 => drop(write!(out, "plan {plan}")),
            1 => push_number(out, rate_per_second),
            2 => push_number(out, burst),
            _ => push_number(out, retry_after_ms),
        });
        let mut rejection = Self::new(Reason::RateLimited, message)
            .with_text("plan", plan)
            .with_number("ratePerSecond", rate_per_second)
            .with_number("burst", burst)
            .with_number("retryAfterMs", retry_after_ms);
        rejection.headers = Some(rate_limit_headers(used_up));
        rejection
    }

    /// With one more member of data.
    #[must_use]
    pub fn with_text(mut self, name: &str, text: &str) -> Self {
        let _ = write!(self.data, "\"{name}\":");
        push_json(&mut self.data, text.encode_utf16());
        self.data.push(',');
        self
    }

    /// With one more member of data.
    #[must_use]
    pub fn with_number(mut self, name: &str, number: f64) -> Self {
        let _ = write!(self.data, "\"{name}\":");
        push_number(&mut self.data, number);
        self.data.push(',');
        self
    }

    /// The row of its reason.
    #[must_use]
    pub fn row(&self) -> &'static ReasonRow {
        row_of(self.reason)
    }

    /// From the value of `content-type` on: `rejectionHeaders` of `src/http/response.ts`.
    #[must_use]
    pub fn headers(&self) -> &str {
        self.headers.as_deref().unwrap_or(self.row().headers)
    }

    /// Appends the status line from the code on: `rejectionStatus` of `src/http/response.ts`. A
    /// character that it may not have is replaced, one above U+FFFF by two.
    pub fn push_status(&self, out: &mut Vec<u8>, is_rpc: bool) {
        let row = self.row();
        let start = if is_rpc { row.rpc_status } else { row.status };
        out.extend_from_slice(start.as_bytes());
        if !start.ends_with(' ') {
            return;
        }
        let units = self.message.encode_utf16().take(STATUS_MESSAGE_CHARS_MAX);
        let plain = |unit| u8::try_from(unit).ok().filter(|byte| (0x20..=0x7e).contains(byte));
        out.extend(units.map(|unit| plain(unit).unwrap_or(b'?')));
    }

    /// Appends the body of the binary endpoint: `rawRejected` of `src/http/response.ts`.
    pub fn push_raw(&self, out: &mut String) {
        out.push_str(r#"{"success":false,"error":"#);
        push_json(out, self.message.encode_utf16());
        // Writing to memory cannot fail.
        let _ = write!(out, r#","reason":"{}"}}"#, self.row().name);
    }

    /// Appends a JSON-RPC error: `rpcRejected` of `src/http/response.ts`. `id` is JSON text.
    pub fn push_rpc(&self, out: &mut String, id: &str) {
        let ReasonRow { name, rpc_code, retryable, .. } = self.row();
        // Writing to memory cannot fail.
        let _ = write!(out, r#"{{"jsonrpc":"2.0","error":{{"code":{rpc_code},"message":"#);
        let start = out.len();
        push_json(out, self.message.encode_utf16());
        let message = out.get(start..).unwrap_or_default().to_string();
        let data = &self.data;
        let _ = write!(
            out,
            r#","data":{{{data}"reason":"{name}","retryable":{retryable},"message":{message}}}}},"id":{id}}}"#
        );
    }
}

/// The row of a reason.
#[must_use]
pub fn row_of(reason: Reason) -> &'static ReasonRow {
    // One row for each variant.
    REASONS.get(reason as usize).unwrap_or(&REASONS[0])
}

fn decode_row(error: DecodeError) -> &'static DecodeRow {
    // A test compares the names.
    DECODE_ROWS.get(error as usize).unwrap_or(&DECODE_ROWS[0])
}

/// With the wait, and the fields of draft-ietf-httpapi-ratelimit-headers-11 (2026-05):
/// `rateLimitLines` of `src/http/response.ts`. Quotas are integers there, so a rate below one per
/// second is stated over a longer window.
fn rate_limit_headers(used_up: &UsedUp<'_>) -> String {
    let &UsedUp { plan, is_own, rate_per_second, wait_ns, .. } = used_up;
    let seconds = (wait_ns / NS_PER_S as f64).ceil().max(1.0);
    let is_slow = rate_per_second < 1.0;
    let quota = if is_slow { 1.0 } else { rate_per_second.floor() };
    let window = if is_slow { (1.0 / rate_per_second).ceil() } else { 1.0 };
    let is_plain = |unit: u16| {
        matches!(unit, 0x20..=0x7e) && unit != u16::from(b'"') && unit != u16::from(b'\\')
    };
    let text_of = |unit| if is_plain(unit) { char::from(unit as u8) } else { '_' };
    let name: String = if is_own { "key" } else { plan }.encode_utf16().map(text_of).collect();
    let [mut t, mut q, mut w] = [const { String::new() }; 3];
    for (text, number) in [(&mut t, seconds), (&mut q, quota), (&mut w, window)] {
        push_number(text, number);
    }
    // Its own headers end with the default wait of a second.
    let common = row_of(Reason::ParseError).headers;
    format!(
        "{common}\r\nretry-after: {t}\r\nratelimit-policy: \"{name}\";q={q};w={w}\
         \r\nratelimit: \"{name}\";r=0;t={t}"
    )
}

/// More than most messages have.
const MESSAGE_BYTES: usize = 192;

#[cfg(test)]
#[path = "rejection_tests.rs"]
mod tests;
