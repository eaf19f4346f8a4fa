//! Hot path: validates the head of a request: whether it is unambiguous where the request ends, and
//! whether it is a submission that may be answered here.
//!
//! Every parser finds the end of a request in the same place, unless it `is_ambiguous`. For that a
//! head must meet more than the standard asks: every line ends in CRLF, all body sizes are the same
//! plain number, and nothing announces another framing. `src/http/framing.ts` makes the same checks
//! on the main thread, and rejects the ambiguous ones.
//!
//! httparse parses usual heads; `upstream_head` decides on every other one.

use std::borrow::Cow;
use std::mem::MaybeUninit;

use httparse::{EMPTY_HEADER, Header, Request, Status};

use crate::http::handler::Endpoint;
use crate::http::header_room::without_unread_headers;
use crate::http::response::{HeadError, ResponseForm};
use crate::http::upstream_head::parse_upstream_head;

/// Largest head; the parser of the upstream server has the same bound (uWebSockets
/// `MAX_FALLBACK_SIZE`, 2026-11).
pub(crate) const HEAD_BYTES_MAX: usize = 4096;
/// Largest head to which the forwarded header may be added.
const PROXIED_BYTES_MAX: usize = HEAD_BYTES_MAX - FORWARDED_HEADER_BYTES_MAX;
/// More than name and address of the forwarded header have.
const FORWARDED_HEADER_BYTES_MAX: usize = 160;
/// `RAW_PATH` of `src/http/routes.ts`.
pub(crate) const RAW_PATH: &str = "/api/v1/sendRawTransaction";
/// `RPC_PATH` of `src/http/routes.ts`.
pub(crate) const RPC_PATH: &str = "/api/v1/sendTransaction";
/// `PING_PATH`, `ROOT_PATH` and `FAST_PATH` of `src/http/routes.ts`.
const PING_PATH: &str = "/ping";
const ROOT_PATH: &str = "/";
const FAST_PATH: &str = "/fast";
/// Most headers; the upstream server has the same bound (uWebSockets `UWS_HTTP_MAX_HEADERS_COUNT`,
/// which counts the request line and the end too, 2026-11).
const HEADERS_MAX: usize = 98;
/// `LENGTH_DIGITS_MAX` of `src/http/framing.ts`.
const LENGTH_DIGITS_MAX: usize = 9;

/// Result of parsing the start of a request.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum RequestHead<'a> {
    /// Incomplete.
    Partial,
    Complete(CompleteHead<'a>),
    /// The upstream server would refuse it and close the connection.
    Malformed(HeadError),
}

/// A complete head.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct CompleteHead<'a> {
    /// Its bytes, including the empty line.
    pub(crate) size: usize,
    /// Bytes of the body; 0 if it is ambiguous.
    pub(crate) body_size: usize,
    /// Whether it is ambiguous where the request ends. It is proxied without what follows, and is
    /// the connection's last.
    pub(crate) is_ambiguous: bool,
    /// Whether the forwarded header can be added only in place of headers that the upstream server
    /// does not read.
    pub(crate) is_crowded: bool,
    /// Whether a header has no name: the upstream server reads no header behind it.
    pub(crate) has_unnamed: bool,
    /// End of the request line.
    pub(crate) line_end: usize,
    /// Whether the response has no body whatever its head declares.
    pub(crate) is_head_only: bool,
    /// The form of a response that the event loop itself writes.
    pub(crate) form: ResponseForm,
    /// Whether this is the connection's last request.
    pub(crate) closes: bool,
    /// Whether the client may withhold the body until it gets `100 Continue`.
    pub(crate) expects: bool,
    /// Whether its key came in the query, of which the response warns.
    pub(crate) has_query_key: bool,
    /// What it asks for.
    pub(crate) ask: Ask<'a>,
}

/// What a request asks for, as far as it may be answered here.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Ask<'a> {
    Submission(Submission<'a>),
    /// `GET` or `HEAD` of `/ping`.
    Ping,
    /// Anything else.
    Other,
}

impl<'a> CompleteHead<'a> {
    /// The submission, if it is one.
    #[must_use]
    pub(crate) fn submission(&self) -> Option<&Submission<'a>> {
        match &self.ask {
            Ask::Submission(submission) => Some(submission),
            Ask::Ping | Ask::Other => None,
        }
    }
}

/// Head of a submission.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Submission<'a> {
    /// By its path, and whether its body is text.
    pub(crate) endpoint: Endpoint,
    /// The API key of the first place that has one, empty for none; owned if it was encoded.
    pub(crate) token: Cow<'a, [u8]>,
}

/// Parses the head that `bytes` start with. `forwarded_header_name` is a header that clients may
/// not send.
#[must_use]
pub(crate) fn read_request_head<'a>(
    bytes: &'a [u8],
    forwarded_header_name: &str,
) -> RequestHead<'a> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut request = Request::new(&mut []);
    let size = match request.parse_with_uninit_headers(bytes, &mut headers) {
        Ok(Status::Complete(size)) => size,
        Ok(Status::Partial) if bytes.len() <= HEAD_BYTES_MAX => return RequestHead::Partial,
        _ => return read_unusual_head(bytes, forwarded_header_name),
    };
    let head = bytes.get(..size).unwrap_or_default();
    if request.version != Some(1) || !has_plain_lines(head) {
        return read_unusual_head(bytes, forwarded_header_name);
    }
    let line = RequestLine {
        method: request.method.unwrap_or_default(),
        path: request.path.unwrap_or_default(),
    };
    check_framing(head, line, request.headers, forwarded_header_name)
}

fn read_unusual_head<'a>(bytes: &'a [u8], forwarded_header_name: &str) -> RequestHead<'a> {
    let mut headers = [EMPTY_HEADER; HEADERS_MAX];
    let upstream_head = match parse_upstream_head(bytes, &mut headers) {
        Ok(Some(upstream_head)) => upstream_head,
        Ok(None) if bytes.len() <= HEAD_BYTES_MAX => return RequestHead::Partial,
        Ok(None) => return RequestHead::Malformed(HeadError::TooLarge),
        Err(error) => return RequestHead::Malformed(error),
    };
    let head = bytes.get(..upstream_head.size).unwrap_or_default();
    // A method or path of other bytes is none that is known here.
    let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
    let line = RequestLine { method: text(upstream_head.method), path: text(upstream_head.path) };
    let headers = headers.get(..upstream_head.headers).unwrap_or_default();
    match check_framing(head, line, headers, forwarded_header_name) {
        RequestHead::Complete(head) => {
            RequestHead::Complete(CompleteHead { has_query_key: false, ask: Ask::Other, ..head })
        }
        other => other,
    }
}

#[derive(Clone, Copy)]
struct RequestLine<'a> {
    method: &'a str,
    path: &'a str,
}

fn check_framing<'a>(
    head: &'a [u8],
    line: RequestLine<'a>,
    headers: &[Header<'a>],
    forwarded_header_name: &str,
) -> RequestHead<'a> {
    let size = head.len();
    let is_crowded = size > PROXIED_BYTES_MAX || headers.len() >= HEADERS_MAX;
    if is_crowded && !has_room(head) {
        return RequestHead::Malformed(HeadError::TooLarge);
    }
    let fields = Fields::read(headers, forwarded_header_name);
    // The body of a CONNECT request has no meaning (RFC 9110, 9.3.6).
    let fields = fields.filter(|fields| line.method != "CONNECT" || fields.body_size == 0);
    let ambiguous = CompleteHead {
        size,
        body_size: 0,
        is_ambiguous: true,
        is_crowded,
        has_unnamed: headers.iter().any(|header| header.name.is_empty()),
        line_end: head.iter().position(|byte| *byte == b'\n').map_or(size, |at| at + 1),
        is_head_only: line.method == "HEAD",
        form: form_of(line),
        closes: true,
        expects: false,
        has_query_key: false,
        ask: Ask::Other,
    };
    let Some(fields) = fields else { return RequestHead::Complete(ambiguous) };
    let (ask, has_query_key) =
        if fields.hosts == 1 { ask_of(line, &fields) } else { (Ask::Other, false) };
    RequestHead::Complete(CompleteHead {
        body_size: fields.body_size,
        is_ambiguous: false,
        closes: fields.closes,
        expects: fields.expects,
        has_query_key,
        ask,
        ..ambiguous
    })
}

/// Whether the forwarded header can be added to a head of at most the largest size.
fn has_room(head: &[u8]) -> bool {
    head.len() <= HEAD_BYTES_MAX && without_unread_headers(head, false).len() <= PROXIED_BYTES_MAX
}

fn form_of(line: RequestLine<'_>) -> ResponseForm {
    // The upstream server finds its routes without the query.
    let route = line.path.split('?').next().unwrap_or_default();
    match (line.method, route) {
        ("HEAD", _) => ResponseForm::HeadOnly,
        ("OPTIONS", _) => ResponseForm::Preflight,
        ("POST", RPC_PATH | ROOT_PATH | FAST_PATH) => ResponseForm::JsonRpc,
        _ => ResponseForm::Raw,
    }
}

/// What a usual request asks for, and whether its key came in the query.
fn ask_of<'a>(line: RequestLine<'a>, fields: &Fields<'a>) -> (Ask<'a>, bool) {
    let (route, query) = line.path.split_once('?').unwrap_or((line.path, ""));
    let endpoint = match (line.method, route) {
        ("POST", RAW_PATH) if fields.is_text => Endpoint::Text,
        ("POST", RAW_PATH) => Endpoint::Raw,
        ("POST", RPC_PATH | ROOT_PATH | FAST_PATH) => Endpoint::JsonRpc,
        ("GET" | "HEAD", _) if line.path == PING_PATH && fields.body_size == 0 => {
            return (Ask::Ping, false);
        }
        _ => return (Ask::Other, false),
    };
    if fields.lengths != 1 {
        return (Ask::Other, false);
    }
    let submission = |token| Ask::Submission(Submission { endpoint, token });
    let token = fields.token();
    if !token.is_empty() {
        return (submission(Cow::Borrowed(token)), false);
    }
    let token = query_key(query);
    let has_query_key = !token.is_empty();
    (submission(token), has_query_key)
}

/// The first key in a query, empty for none. As `URLSearchParams`, which leaves out a question mark
/// at the start.
fn query_key(query: &str) -> Cow<'_, [u8]> {
    let query = query.strip_prefix('?').unwrap_or(query);
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let found = pairs.find(|(name, value)| name == "api-key" && !value.is_empty());
    match found {
        None => Cow::Borrowed(&[]),
        Some((_, Cow::Borrowed(value))) => Cow::Borrowed(value.as_bytes()),
        Some((_, Cow::Owned(value))) => Cow::Owned(value.into_bytes()),
    }
}

/// The relevant headers.
struct Fields<'a> {
    /// The keys of `api-x-token`, `x-api-key` and `Authorization: Bearer`: each the first that is
    /// not empty.
    keys: [&'a [u8]; 3],
    is_text: bool,
    hosts: usize,
    lengths: usize,
    body_size: usize,
    closes: bool,
    expects: bool,
}

impl<'a> Fields<'a> {
    /// None if they leave the framing ambiguous.
    fn read(headers: &[Header<'a>], forwarded_header_name: &str) -> Option<Self> {
        let mut fields = Self {
            keys: [&[]; 3],
            is_text: false,
            hosts: 0,
            lengths: 0,
            body_size: 0,
            closes: false,
            expects: false,
        };
        let mut length: Option<&[u8]> = None;
        for &Header { name, value } in headers {
            // Most names differ in length, which this finds first.
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            if is("content-length") {
                if *length.get_or_insert(value) != value {
                    return None;
                }
                fields.lengths += 1;
                fields.body_size = plain_number(value)?;
            } else if is("api-x-token") {
                fields.add_key(0, value);
            } else if is("x-api-key") {
                fields.add_key(1, value);
            } else if is("authorization") {
                fields.add_key(2, bearer_key(value));
            } else if is("content-type") {
                fields.is_text |= is_plain_text(value);
            } else if is("host") {
                fields.hosts += if value.is_empty() { 2 } else { 1 };
            } else if is("connection") {
                // A server need not know other options, nor change the protocol (RFC 9110, 7.6.1, 7.8).
                fields.closes |= names_close(value);
            } else if is("expect") {
                fields.expects |= value.eq_ignore_ascii_case(b"100-continue");
            } else if is("transfer-encoding") || is(forwarded_header_name) {
                return None;
            }
        }
        Some(fields)
    }

    fn add_key(&mut self, place: usize, value: &'a [u8]) {
        if let Some(key) = self.keys.get_mut(place).filter(|key| key.is_empty()) {
            *key = value;
        }
    }

    /// The key of the first header that has one, empty for none.
    fn token(&self) -> &'a [u8] {
        self.keys.into_iter().find(|key| !key.is_empty()).unwrap_or_default()
    }
}

/// The key of `Authorization: Bearer`, empty for none: `BEARER` of `src/http/framing.ts`.
fn bearer_key(value: &[u8]) -> &[u8] {
    let Some((scheme, rest)) = value.split_at_checked(BEARER.len()) else { return &[] };
    let start = rest.iter().position(|byte| *byte != b' ').unwrap_or(rest.len());
    let key = rest.get(start..).unwrap_or_default();
    let is_bearer = scheme.eq_ignore_ascii_case(BEARER) && start > 0;
    if is_bearer && key.iter().all(u8::is_ascii_graphic) { key } else { &[] }
}

/// Whether a media type is text: `TEXT` of `src/http/framing.ts`.
fn is_plain_text(value: &[u8]) -> bool {
    let Some((media_type, rest)) = value.split_at_checked(TEXT.len()) else { return false };
    let rest = rest.trim_ascii_start();
    media_type.eq_ignore_ascii_case(TEXT) && matches!(rest.first(), None | Some(b';'))
}

const BEARER: &[u8] = b"Bearer";
const TEXT: &[u8] = b"text/plain";

/// Whether a `connection` header has the option `close`.
#[must_use]
pub(crate) fn names_close(value: &[u8]) -> bool {
    let mut options = value.split(|byte| *byte == b',');
    options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// The number of 1 to 9 digits; None for anything else. As `plainNumber` of `src/http/framing.ts`.
fn plain_number(text: &[u8]) -> Option<usize> {
    if text.is_empty() || text.len() > LENGTH_DIGITS_MAX {
        return None;
    }
    text.iter().try_fold(0usize, |number, byte| {
        byte.is_ascii_digit().then(|| number * 10 + usize::from(byte - b'0'))
    })
}

/// Whether every line ends in CRLF, and only the last is empty.
fn has_plain_lines(head: &[u8]) -> bool {
    let is_bare = |(before, byte): (&u8, &u8)| (*byte == b'\n') & (*before != b'\r');
    let bare = head.iter().zip(head.iter().skip(1)).filter(|pair| is_bare(*pair)).count();
    bare == 0 && !matches!(head.first(), None | Some(b'\r' | b'\n'))
}

#[cfg(test)]
#[path = "request_head_tests.rs"]
mod tests;
