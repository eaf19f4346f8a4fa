//! Hot path: validates the head of a request: whether it is unambiguous where the request ends, and
//! whether it is a submission that may be answered here.
//!
//! Every parser finds the end of a `Framed` request in the same place. For that a head must meet
//! more than the standard asks: every line ends in CRLF, all body sizes are the same plain number,
//! and nothing announces another framing. `src/http/framing.ts` makes the same checks on the main
//! thread. Nothing is concluded from an `Ambiguous` head here; the main thread decides.

use std::mem::MaybeUninit;

use httparse::{Error, Header, Request, Status};

use crate::http::handler::Endpoint;
use crate::http::response::ResponseForm;

/// Largest head that is parsed here; the parser of the upstream server has the same bound
/// (uWebSockets `MAX_FALLBACK_SIZE`, 2026-11).
pub(crate) const HEAD_BYTES_MAX: usize = 4096;
/// Largest head to which the forwarded header may be added.
const FRAMED_BYTES_MAX: usize = HEAD_BYTES_MAX - FORWARDED_HEADER_BYTES_MAX;
/// Name, address and numbers of the forwarded header.
const FORWARDED_HEADER_BYTES_MAX: usize = 160;
/// `RAW_PATH` of `src/http/routes.ts`.
pub(crate) const RAW_PATH: &str = "/api/v1/sendRawTransaction";
/// `RPC_PATH` of `src/http/routes.ts`.
pub(crate) const RPC_PATH: &str = "/api/v1/sendTransaction";
/// `PING_PATH` and `ROOT_PATH` of `src/http/routes.ts`.
const PING_PATH: &str = "/ping";
const ROOT_PATH: &str = "/";
/// Headers of a usual submission.
const HEADERS_USUAL: usize = 32;
/// Most headers of a framed request: one less than the 98 that the upstream server accepts, for the
/// forwarded header (uWebSockets `UWS_HTTP_MAX_HEADERS_COUNT`, which counts the request line and
/// the end too, 2026-11).
const HEADERS_MAX: usize = 97;
/// `LENGTH_DIGITS_MAX` of `src/http/framing.ts`.
const LENGTH_DIGITS_MAX: usize = 9;

/// Result of parsing the start of a request.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum RequestHead<'a> {
    /// Incomplete.
    Partial,
    /// It is certain where the request ends.
    Framed(Framed<'a>),
    /// It is not. A header may be inserted at `line_end`, after the request line, if that was
    /// parsed.
    Ambiguous {
        /// None if it was not parsed.
        line_end: Option<usize>,
        /// The form of a response that the event loop itself writes.
        form: ResponseForm,
    },
}

/// A head with unambiguous framing.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Framed<'a> {
    /// Its bytes, including the empty line.
    pub(crate) size: usize,
    /// Bytes of the body.
    pub(crate) body_size: usize,
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
    /// What it asks for.
    pub(crate) ask: Ask<'a>,
}

/// What a request asks for, as far as it may be answered here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ask<'a> {
    Submission(Submission<'a>),
    /// `GET` or `HEAD` of `/ping`.
    Ping,
    /// JSON-RPC on `/`, where no key is needed.
    Open,
    /// Anything else.
    Other,
}

impl<'a> Framed<'a> {
    /// The submission, if it is one.
    #[must_use]
    pub(crate) fn submission(&self) -> Option<&Submission<'a>> {
        match &self.ask {
            Ask::Submission(submission) => Some(submission),
            Ask::Ping | Ask::Open | Ask::Other => None,
        }
    }
}

/// Head of a submission.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Submission<'a> {
    /// By its path.
    pub(crate) endpoint: Endpoint,
    /// The API key, empty for none.
    pub(crate) token: &'a [u8],
}

/// Parses the head that `bytes` start with. `forwarded_header_name` is a header that clients may
/// not send.
#[must_use]
pub(crate) fn read_request_head<'a>(
    bytes: &'a [u8],
    forwarded_header_name: &str,
) -> RequestHead<'a> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_USUAL];
    let mut request = Request::new(&mut []);
    match request.parse_with_uninit_headers(bytes, &mut headers) {
        Err(Error::TooManyHeaders) => read_many_headers(bytes, forwarded_header_name),
        parsed => check_framing(bytes, &request, parsed, forwarded_header_name),
    }
}

fn read_many_headers<'a>(bytes: &'a [u8], forwarded_header_name: &str) -> RequestHead<'a> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut request = Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(bytes, &mut headers);
    match check_framing(bytes, &request, parsed, forwarded_header_name) {
        RequestHead::Framed(framed) => RequestHead::Framed(Framed { ask: Ask::Other, ..framed }),
        other => other,
    }
}

fn check_framing<'a>(
    bytes: &'a [u8],
    request: &Request<'_, 'a>,
    parsed: httparse::Result<usize>,
    forwarded_header_name: &str,
) -> RequestHead<'a> {
    let form = form_of(request.method.unwrap_or_default(), request.path.unwrap_or_default());
    let size = match parsed {
        Ok(Status::Complete(size)) => size,
        Ok(Status::Partial) if bytes.len() <= HEAD_BYTES_MAX => return RequestHead::Partial,
        _ => return RequestHead::Ambiguous { line_end: None, form },
    };
    let head = bytes.get(..size).unwrap_or_default();
    let line_end = line_end(head);
    if size > FRAMED_BYTES_MAX {
        return RequestHead::Ambiguous { line_end: None, form };
    }
    let ambiguous = RequestHead::Ambiguous { line_end: Some(line_end), form };
    let method = request.method.unwrap_or_default();
    if !has_plain_lines(head) {
        return ambiguous;
    }
    // After the head of a CONNECT request comes a tunnel, not a body.
    if request.version != Some(1) || method == "CONNECT" {
        return ambiguous;
    }
    let Some(fields) = Fields::read(request.headers, forwarded_header_name) else {
        return ambiguous;
    };
    let is_usual = fields.is_plain && fields.hosts == 1;
    let ask = if is_usual { ask_of(request, &fields) } else { Ask::Other };
    RequestHead::Framed(Framed {
        size,
        body_size: fields.body_size,
        line_end,
        is_head_only: method == "HEAD",
        form,
        closes: fields.closes,
        expects: fields.expects,
        ask,
    })
}

fn form_of(method: &str, path: &str) -> ResponseForm {
    // The upstream server finds its routes without the query.
    let route = path.split('?').next().unwrap_or_default();
    match (method, route) {
        ("HEAD", _) => ResponseForm::HeadOnly,
        ("OPTIONS", _) => ResponseForm::Preflight,
        ("POST", RPC_PATH | ROOT_PATH) => ResponseForm::JsonRpc,
        _ => ResponseForm::Raw,
    }
}

fn ask_of<'a>(request: &Request<'_, 'a>, fields: &Fields<'a>) -> Ask<'a> {
    let method = request.method.unwrap_or_default();
    let path = request.path.unwrap_or_default();
    let submission = |endpoint| match fields.tokens {
        0 | 1 => Ask::Submission(Submission { endpoint, token: fields.token }),
        _ => Ask::Other,
    };
    match (method, path) {
        ("POST", RAW_PATH) if fields.lengths == 1 => submission(Endpoint::Raw),
        ("POST", RPC_PATH) if fields.lengths == 1 => submission(Endpoint::JsonRpc),
        ("POST", ROOT_PATH) if fields.lengths == 1 => Ask::Open,
        ("GET" | "HEAD", PING_PATH) if fields.body_size == 0 => Ask::Ping,
        _ => Ask::Other,
    }
}

/// The relevant headers.
struct Fields<'a> {
    token: &'a [u8],
    tokens: usize,
    hosts: usize,
    lengths: usize,
    body_size: usize,
    closes: bool,
    expects: bool,
    /// Whether no header asks for more than a response.
    is_plain: bool,
}

impl<'a> Fields<'a> {
    /// None if they leave the framing ambiguous.
    fn read(headers: &[Header<'a>], forwarded_header_name: &str) -> Option<Self> {
        let mut fields = Self {
            token: &[],
            tokens: 0,
            hosts: 0,
            lengths: 0,
            body_size: 0,
            closes: false,
            expects: false,
            is_plain: true,
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
                fields.tokens += 1;
                fields.token = if fields.token.is_empty() { value } else { fields.token };
            } else if is("host") {
                fields.hosts += if value.is_empty() { 2 } else { 1 };
            } else if is("connection") {
                fields.is_plain &= value.eq_ignore_ascii_case(b"keep-alive");
                fields.closes |= names_close(value);
            } else if is("expect") || is("upgrade") {
                fields.is_plain = false;
                fields.expects |= is("expect");
            } else if is("transfer-encoding") || is(forwarded_header_name) {
                return None;
            }
        }
        Some(fields)
    }
}

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

/// End of the request line, after empty lines that a parser may skip.
fn line_end(head: &[u8]) -> usize {
    let start = head.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(0);
    let line = head.iter().skip(start).position(|byte| *byte == b'\n');
    line.map_or(head.len(), |line| start + line + 1)
}

#[cfg(test)]
#[path = "request_head_tests.rs"]
mod tests;
