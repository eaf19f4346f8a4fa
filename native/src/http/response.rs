//! Hot path: the bytes of a response, as the main thread's server would write them.
//!
//! Headers and bodies are those of `src/http/response.ts`; the lines `Date` and `Content-Length`
//! are what uWebSockets.js adds, in its order and spelling.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;

use crate::http::handler::Endpoint;
use crate::http::rejection::Rejection;
use crate::http::rejection_table::Reason;
use crate::sync::clock::NS_PER_S;

/// Head of a response up to its end: `HEADERS_JSON` of `src/http/response.ts`.
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\n\
    content-type: application/json\r\n\
    access-control-allow-origin: *";
/// Likewise for plain text: `HEADERS_TEXT`.
const HEAD_TEXT: &[u8] = b"HTTP/1.1 200 OK\r\n\
    content-type: text/plain\r\n\
    access-control-allow-origin: *\r\n\
    cache-control: no-store";
/// Between the date and the body's size.
const HEAD_SIZE: &[u8] = b"\r\nContent-Length: ";
/// `rawAccepted` of `src/http/response.ts`, around the signature.
const RAW: [&[u8]; 2] = [br#"{"success":true,"signature":""#, br#""}"#];
/// `rpcResult` of `src/http/response.ts`, around the result and the id.
const RPC: [&[u8]; 3] = [br#"{"jsonrpc":"2.0","result":""#, br#"","id":"#, br#"}"#];
/// `rpcUnhealthy` of `src/http/response.ts`, up to the id.
const RPC_UNHEALTHY: &str = r#"{"jsonrpc":"2.0","error":{"code":-32005,"message":"Node is unhealthy","data":{"numSlotsBehind":null}},"id":"#;
/// The message of a request that is refused because too many are in progress.
pub const OVERLOADED: &str =
    "this edge has too many requests in progress; try again a little later";
/// The message of a request whose upstream server closed without a response.
pub const UNANSWERED: &str =
    "no response; the transaction may have been sent, and it is safe to send the same one again";
/// The response to a CORS preflight: `PREFLIGHT_HEADERS` of `src/http/response.ts`.
const PREFLIGHT: &str = "HTTP/1.1 204 No Content\r\n\
    access-control-allow-origin: *\r\n\
    access-control-allow-methods: GET, HEAD, POST, OPTIONS\r\n\
    access-control-allow-headers: content-type, solana-client, api-x-token, x-api-key, \
    authorization, last-event-id, *\r\n\
    access-control-max-age: 86400\r\n\
    Connection: close\r\n\r\n";
/// `KEY_IN_QUERY_LINE` of `src/http/response.ts`.
const KEY_IN_QUERY_LINE: &[u8] = b"\r\nwarning: 299 touchdown \
    \"the key is in the query string, where proxies and logs keep it; \
    send it in the header api-x-token\"";
/// What follows the headers that the main thread's server writes itself.
const DATE: &[u8] = b"\r\nDate: ";
/// `Thu, 01 Jan 1970 00:00:00 GMT`.
const DATE_BYTES: usize = 29;

/// The form of a response that the event loop itself writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ResponseForm {
    /// As `rawRejected` of `src/http/response.ts`.
    Raw,
    /// As `rpcRejected` there.
    JsonRpc,
    /// The head of `Raw` alone.
    HeadOnly,
    /// A preflight is answered as if there were room, because a browser would hide the rejection.
    Preflight,
}

/// Writes the connection's last response to `out`, with status 503 and reason `overloaded`.
pub fn write_overloaded(out: &mut Vec<u8>, form: ResponseForm, message: &str) {
    out.clear();
    if form == ResponseForm::Preflight {
        return out.extend_from_slice(PREFLIGHT.as_bytes());
    }
    let rejection = Rejection::new(Reason::Overloaded, message.into());
    let mut body = String::new();
    if form == ResponseForm::JsonRpc {
        rejection.push_rpc(&mut body, "null");
    } else {
        rejection.push_raw(&mut body);
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    rejection.push_status(out, form == ResponseForm::JsonRpc);
    let (headers, size) = (rejection.headers(), body.len());
    // Writing to memory cannot fail.
    let _ = write!(
        out,
        "\r\ncontent-type: {headers}\r\nConnection: close\r\nContent-Length: {size}\r\n\r\n"
    );
    if form != ResponseForm::HeadOnly {
        out.extend_from_slice(body.as_bytes());
    }
}

/// Warns in the response that `out` holds of the key in the query.
pub fn insert_query_warning(out: &mut Vec<u8>) {
    insert_before_date(out, KEY_IN_QUERY_LINE);
}

/// Inserts a header line into a complete response, in front of `Date`, which each has.
fn insert_before_date(response: &mut Vec<u8>, line: &[u8]) {
    if let Some(at) = response.windows(DATE.len()).position(|bytes| bytes == DATE) {
        response.splice(at..at, line.iter().copied());
    }
}

/// Why a head is refused before anything else is known of the request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HeadError {
    /// Its first line is not that of an HTTP/1.1 request.
    Version,
    /// A header is malformed.
    Syntax,
    /// It has too many bytes or headers.
    TooLarge,
}

/// Writes the connection's last response to `out`: the page with which uWebSockets refuses a head
/// (`HttpErrors.h`, 2026-11).
pub fn write_head_refused(out: &mut Vec<u8>, error: HeadError) {
    let (status, text) = match error {
        HeadError::Version => (
            "505 HTTP Version Not Supported",
            "<h1>HTTP Version Not Supported</h1><p>This server does not support HTTP/1.0.</p>",
        ),
        HeadError::Syntax => ("400 Bad Request", "<h1>Bad Request</h1>"),
        HeadError::TooLarge => {
            ("431 Request Header Fields Too Large", "<h1>Request Header Fields Too Large</h1>")
        }
    };
    out.clear();
    // Writing to memory cannot fail.
    let _ = write!(
        out,
        "HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{text}<hr><i>uWebSockets/20 Server</i>"
    );
}

/// Announces in the head of a complete response that its connection ends with it, where uWebSockets
/// does.
pub fn announce_close(response: &mut Vec<u8>) {
    insert_before_date(response, b"\r\nConnection: close");
}

/// Appends a JSON-RPC result that is a plain string; `id` is JSON text.
pub fn push_result(body: &mut String, id: &str, result: &[u8]) {
    let [before, between, behind] = RPC;
    for piece in [before, result, between, id.as_bytes(), behind] {
        // All of it is ASCII or was a string.
        body.push_str(std::str::from_utf8(piece).unwrap_or_default());
    }
}

/// Appends a JSON-RPC result that is JSON text, as `id` is.
pub fn push_result_json(body: &mut String, id: &str, result: &str) {
    for piece in [r#"{"jsonrpc":"2.0","result":"#, result, r#","id":"#, id, "}"] {
        body.push_str(piece);
    }
}

/// Appends the response to `getHealth` of an edge that drains.
pub fn push_unhealthy(body: &mut String, id: &str) {
    for piece in [RPC_UNHEALTHY, id, "}"] {
        body.push_str(piece);
    }
}

/// Writes responses; caches the current second's date as text.
#[derive(Debug)]
pub struct ResponseWriter {
    /// The line of `keepAliveLine` of `src/http/response.ts`.
    keep_alive: String,
    date: Vec<u8>,
    date_s: u64,
    /// The body of a rejection.
    body: String,
}

impl ResponseWriter {
    /// One for each thread, whose idle connections live for this time.
    #[must_use]
    pub fn new(idle_timeout_ns: u64) -> Self {
        // Less by a second, in which a request may be on its way.
        let keep_alive_s = (idle_timeout_ns / NS_PER_S).saturating_sub(1).max(1);
        let mut writer = Self {
            keep_alive: format!("\r\nkeep-alive: timeout={keep_alive_s}"),
            date: Vec::with_capacity(DATE_BYTES),
            date_s: 0,
            body: String::new(),
        };
        writer.date_at(unix_s());
        writer
    }

    /// Appends the binary endpoint's response to an accepted transaction.
    pub fn raw_accepted(&mut self, out: &mut Vec<u8>, signature: &[u8]) {
        let [before, behind] = RAW;
        self.append(out, &[before, signature, behind]);
    }

    /// Appends a JSON-RPC result that is a plain string; `id` is JSON text.
    pub fn rpc_result(&mut self, out: &mut Vec<u8>, id: &[u8], result: &[u8]) {
        let [before, between, behind] = RPC;
        self.append(out, &[before, result, between, id, behind]);
    }

    /// Appends the response to `/ping`, without its body for `HEAD`.
    pub fn ping(&mut self, out: &mut Vec<u8>, is_head_only: bool) {
        self.refresh();
        let (before, behind): (&[u8], &[u8]) = if is_head_only {
            (b"\r\ncontent-length: 2", b"\r\n\r\n")
        } else {
            (b"", b"\r\nContent-Length: 2\r\n\r\nok")
        };
        for piece in [HEAD_TEXT, self.keep_alive.as_bytes(), before, DATE, &self.date, behind] {
            out.extend_from_slice(piece);
        }
    }

    /// Appends a JSON response with status 200, such as that to a batch.
    pub fn json(&mut self, out: &mut Vec<u8>, body: &[u8]) {
        self.append(out, &[body]);
    }

    /// Appends a rejection in the form of the endpoint. `id` is the JSON text of the call's id.
    pub fn rejected(
        &mut self,
        out: &mut Vec<u8>,
        endpoint: Endpoint,
        id: &str,
        rejection: &Rejection,
    ) {
        self.refresh();
        self.body.clear();
        let is_rpc = endpoint == Endpoint::JsonRpc;
        if is_rpc {
            rejection.push_rpc(&mut self.body, id);
        } else {
            rejection.push_raw(&mut self.body);
        }
        out.extend_from_slice(b"HTTP/1.1 ");
        rejection.push_status(out, is_rpc);
        out.extend_from_slice(b"\r\ncontent-type: ");
        out.extend_from_slice(rejection.headers().as_bytes());
        out.extend_from_slice(self.keep_alive.as_bytes());
        out.extend_from_slice(DATE);
        out.extend_from_slice(&self.date);
        out.extend_from_slice(HEAD_SIZE);
        // Writing to memory cannot fail.
        let _ = write!(out, "{}\r\n\r\n{}", self.body.len(), self.body);
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
        out.reserve(HEAD.len() + self.keep_alive.len() + DATE_BYTES + HEAD_SIZE.len() + 40 + size);
        out.extend_from_slice(HEAD);
        out.extend_from_slice(self.keep_alive.as_bytes());
        out.extend_from_slice(DATE);
        out.extend_from_slice(&self.date);
        out.extend_from_slice(HEAD_SIZE);
        // Writing to memory cannot fail.
        let _ = write!(out, "{size}\r\n\r\n");
        for piece in body {
            out.extend_from_slice(piece);
        }
    }

    fn date_at(&mut self, now_s: u64) {
        self.date_s = now_s;
        self.date.clear();
        let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(now_s));
        // Writing to memory cannot fail.
        let _ = write!(self.date, "{date}");
    }
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits off the date and replaces it by a placeholder.
    fn split(out: &[u8]) -> (String, String) {
        let text = String::from_utf8(out.to_vec()).unwrap();
        let at = text.find("Date: ").unwrap() + 6;
        let date = text[at..at + DATE_BYTES].to_string();
        (text.replace(&date, "<date>"), date)
    }

    #[test]
    fn announced_close_is_where_the_main_thread_has_it() {
        let mut response =
            b"HTTP/1.1 200 OK\r\nkeep-alive: timeout=7\r\nDate: x\r\n\r\nbody".to_vec();
        announce_close(&mut response);
        let announced =
            b"HTTP/1.1 200 OK\r\nkeep-alive: timeout=7\r\nConnection: close\r\nDate: x\r\n\r\nbody";
        assert_eq!(response, announced);
        let mut nothing = Vec::new();
        announce_close(&mut nothing);
        assert_eq!(nothing, b"");
    }

    #[test]
    fn overload_has_the_form_of_the_request() {
        let head = |size: usize| {
            format!(
                "HTTP/1.1 503 Service Unavailable: full\r\ncontent-type: application/json\r\n\
                 access-control-allow-origin: *\r\ncache-control: no-store\r\n\
                 access-control-expose-headers: retry-after, ratelimit, ratelimit-policy\r\n\
                 retry-after: 1\r\nConnection: close\r\nContent-Length: {size}\r\n\r\n"
            )
        };
        let raw = r#"{"success":false,"error":"full","reason":"overloaded"}"#;
        let rpc = r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"full","data":{"reason":"overloaded","retryable":true,"message":"full"}},"id":null}"#;
        for (form, expected) in [
            (ResponseForm::Raw, format!("{}{raw}", head(raw.len()))),
            (ResponseForm::HeadOnly, head(raw.len())),
            (ResponseForm::JsonRpc, format!("{}{rpc}", head(rpc.len()))),
            (ResponseForm::Preflight, PREFLIGHT.to_string()),
        ] {
            let mut out = b"before".to_vec();
            write_overloaded(&mut out, form, "full");
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn raw_response_equals_that_of_the_main_thread() {
        let mut out = b"before".to_vec();
        ResponseWriter::new(75 * NS_PER_S).raw_accepted(&mut out, b"5sig");
        let (text, date) = split(&out);
        assert_eq!(
            text,
            "beforeHTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
             access-control-allow-origin: *\r\nkeep-alive: timeout=74\r\nDate: <date>\r\n\
             Content-Length: 35\r\n\r\n{\"success\":true,\"signature\":\"5sig\"}"
        );
        assert!(date.ends_with(" GMT"));
    }

    #[test]
    fn ping_response_has_a_body_except_for_head() {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\
             access-control-allow-origin: *\r\ncache-control: no-store\r\n\
             keep-alive: timeout=74\r\n";
        let mut out = Vec::new();
        ResponseWriter::new(75 * NS_PER_S).ping(&mut out, false);
        assert_eq!(split(&out).0, format!("{head}Date: <date>\r\nContent-Length: 2\r\n\r\nok"));
        out.clear();
        ResponseWriter::new(75 * NS_PER_S).ping(&mut out, true);
        assert_eq!(split(&out).0, format!("{head}content-length: 2\r\nDate: <date>\r\n\r\n"));
    }

    #[test]
    fn warning_of_the_key_is_the_last_header_before_the_date() {
        let mut out = Vec::new();
        ResponseWriter::new(75 * NS_PER_S).raw_accepted(&mut out, b"5sig");
        let (before, _) = split(&out);
        insert_query_warning(&mut out);
        let line = String::from_utf8(KEY_IN_QUERY_LINE.to_vec()).unwrap();
        assert_eq!(split(&out).0, before.replace("\r\nDate", &format!("{line}\r\nDate")));
        out.clear();
        insert_query_warning(&mut out);
        assert!(out.is_empty());
    }

    #[test]
    fn date_is_refreshed() {
        let mut writer = ResponseWriter::new(75 * NS_PER_S);
        writer.date_at(1_795_440_254);
        assert_eq!(writer.date, b"Mon, 23 Nov 2026 13:24:14 GMT");
        let mut out = Vec::new();
        writer.raw_accepted(&mut out, b"5sig");
        assert_ne!(split(&out).1.as_bytes(), b"Mon, 23 Nov 2026 13:24:14 GMT");
    }

    #[test]
    fn json_rpc_response_keeps_the_id_text() {
        let mut out = Vec::new();
        ResponseWriter::new(75 * NS_PER_S).rpc_result(&mut out, br#""a""#, b"5sig");
        let (text, _) = split(&out);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, r#"{"jsonrpc":"2.0","result":"5sig","id":"a"}"#);
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
    }
}
