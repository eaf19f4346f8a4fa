//! Hot path: the bytes of an accepted answer, as the main thread's server would write them.
//!
//! `reply.ts` has the headers and the bodies; the lines `Date` and `Content-Length` are what
//! uWebSockets.js adds, in its order and spelling.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;

/// What answers are headed with up to the date: `HEADERS_JSON` of `reply.ts`.
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\n\
    content-type: application/json\r\n\
    access-control-allow-origin: *\r\n\
    keep-alive: timeout=7\r\n\
    Date: ";
/// Likewise: `HEADERS_TEXT`.
const HEAD_TEXT: &[u8] = b"HTTP/1.1 200 OK\r\n\
    content-type: text/plain\r\n\
    access-control-allow-origin: *\r\n\
    keep-alive: timeout=7\r\n\
    cache-control: no-store\r\n";
/// From the date to the body's size.
const HEAD_SIZE: &[u8] = b"\r\nContent-Length: ";
/// `rawAccepted` of `reply.ts`, around the signature.
const RAW: [&[u8]; 2] = [br#"{"success":true,"signature":""#, br#""}"#];
/// `rpcResult` of `reply.ts`, around the result and the id.
const RPC: [&[u8]; 3] = [br#"{"jsonrpc":"2.0","result":""#, br#"","id":"#, br#"}"#];
/// The answer to a request that would have to be relayed where no more may be: what
/// `rawRefused` of `reply.ts` says of `overloaded`, and the connection's last.
pub const NO_ROOM: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/json\r\n\
    access-control-allow-origin: *\r\n\
    cache-control: no-store\r\n\
    access-control-expose-headers: retry-after, ratelimit, ratelimit-policy\r\n\
    retry-after: 1\r\n\
    Connection: close\r\n\
    Content-Length: 125\r\n\r\n\
    {\"success\":false,\"error\":\"this edge has more requests in hand than it takes; \
    try again a little later\",\"reason\":\"overloaded\"}";
/// `Thu, 01 Jan 1970 00:00:00 GMT`.
const DATE_BYTES: usize = 29;

/// Writes answers; keeps the date of this second as text.
#[derive(Debug)]
pub struct Replies {
    date: Vec<u8>,
    date_s: u64,
}

impl Replies {
    /// One for each thread.
    #[must_use]
    pub fn new() -> Self {
        let mut replies = Self { date: Vec::with_capacity(DATE_BYTES), date_s: 0 };
        replies.date_at(unix_s());
        replies
    }

    /// Appends the binary endpoint's answer to an accepted transaction.
    pub fn raw_accepted(&mut self, out: &mut Vec<u8>, signature: &[u8]) {
        let [before, behind] = RAW;
        self.append(out, &[before, signature, behind]);
    }

    /// Appends a JSON-RPC result that is a plain string; `id` is JSON text.
    pub fn rpc_result(&mut self, out: &mut Vec<u8>, id: &[u8], result: &[u8]) {
        let [before, between, behind] = RPC;
        self.append(out, &[before, result, between, id, behind]);
    }

    /// Appends the answer to `/ping`, without its body for `HEAD`.
    pub fn ping(&mut self, out: &mut Vec<u8>, is_head_only: bool) {
        self.refresh();
        out.extend_from_slice(HEAD_TEXT);
        let (before, behind): (&[u8], &[u8]) = if is_head_only {
            (b"content-length: 2\r\nDate: ", b"\r\n\r\n")
        } else {
            (b"Date: ", b"\r\nContent-Length: 2\r\n\r\nok")
        };
        out.extend_from_slice(before);
        out.extend_from_slice(&self.date);
        out.extend_from_slice(behind);
    }

    fn refresh(&mut self) {
        let now_s = unix_s();
        if now_s != self.date_s {
            self.date_at(now_s);
        }
    }

    fn append(&mut self, out: &mut Vec<u8>, body: &[&[u8]]) {
        self.refresh();
        let size: usize = body.iter().map(|piece| piece.len()).sum();
        out.reserve(HEAD.len() + DATE_BYTES + HEAD_SIZE.len() + 24 + size);
        out.extend_from_slice(HEAD);
        out.extend_from_slice(&self.date);
        out.extend_from_slice(HEAD_SIZE);
        // Writing into memory does not fail.
        let _ = write!(out, "{size}\r\n\r\n");
        for piece in body {
            out.extend_from_slice(piece);
        }
    }

    fn date_at(&mut self, now_s: u64) {
        self.date_s = now_s;
        self.date.clear();
        let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(now_s));
        // Writing into memory does not fail.
        let _ = write!(self.date, "{date}");
    }
}

impl Default for Replies {
    fn default() -> Self {
        Self::new()
    }
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the date taken out and checked.
    fn split(out: &[u8]) -> (String, String) {
        let text = String::from_utf8(out.to_vec()).unwrap();
        let at = text.find("Date: ").unwrap() + 6;
        let date = text[at..at + DATE_BYTES].to_string();
        (text.replace(&date, "<date>"), date)
    }

    #[test]
    fn an_answer_is_what_the_server_of_the_main_thread_writes() {
        let mut out = b"before".to_vec();
        Replies::new().raw_accepted(&mut out, b"5sig");
        let (text, date) = split(&out);
        assert_eq!(
            text,
            "beforeHTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
             access-control-allow-origin: *\r\nkeep-alive: timeout=7\r\nDate: <date>\r\n\
             Content-Length: 35\r\n\r\n{\"success\":true,\"signature\":\"5sig\"}"
        );
        assert!(date.ends_with(" GMT"));
    }

    #[test]
    fn a_ping_is_answered_with_and_without_its_body() {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\
             access-control-allow-origin: *\r\nkeep-alive: timeout=7\r\ncache-control: no-store\r\n";
        let mut out = Vec::new();
        Replies::new().ping(&mut out, false);
        assert_eq!(split(&out).0, format!("{head}Date: <date>\r\nContent-Length: 2\r\n\r\nok"));
        out.clear();
        Replies::new().ping(&mut out, true);
        assert_eq!(split(&out).0, format!("{head}content-length: 2\r\nDate: <date>\r\n\r\n"));
    }

    #[test]
    fn the_date_goes_on() {
        let mut replies = Replies::new();
        replies.date_at(1_795_440_254);
        assert_eq!(replies.date, b"Mon, 23 Nov 2026 13:24:14 GMT");
        let mut out = Vec::new();
        replies.raw_accepted(&mut out, b"5sig");
        assert_ne!(split(&out).1.as_bytes(), b"Mon, 23 Nov 2026 13:24:14 GMT");
    }

    #[test]
    fn a_json_rpc_answer_has_the_id_as_it_was_written() {
        let mut out = Vec::new();
        Replies::new().rpc_result(&mut out, br#""a""#, b"5sig");
        let (text, _) = split(&out);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, r#"{"jsonrpc":"2.0","result":"5sig","id":"a"}"#);
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
    }
}
