//! Parses a head by the grammar of the upstream server, so that both find the same end.
//!
//! Source: `HttpParser.h` of uWebSockets, 2026-11. It accepts some heads that httparse refuses, for
//! example a method of other characters or a header without a name. Where it refuses a head, it
//! answers with a page of its own and closes; `HeadError` says with which.

use httparse::Header;

use crate::http::response::HeadError;

const VERSION: &[u8] = b" HTTP/1.1\r\n";

/// None while it is incomplete.
type Parsed<T> = Result<Option<T>, HeadError>;

/// The parts of a complete head.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct UpstreamHead<'a> {
    /// Its bytes, including the empty line.
    pub(super) size: usize,
    pub(super) method: &'a [u8],
    pub(super) path: &'a [u8],
    /// Number of headers that were written.
    pub(super) headers: usize,
}

/// Parses the head that `bytes` start with; None while it is incomplete.
///
/// # Errors
/// When the upstream server would refuse it. More headers than `headers` has room for are too many.
pub(super) fn parse_upstream_head<'a>(
    bytes: &'a [u8],
    headers: &mut [Header<'a>],
) -> Parsed<UpstreamHead<'a>> {
    let mut cursor = Cursor { bytes, at: 0 };
    let Some((method, path)) = cursor.request_line()? else { return Ok(None) };
    let mut count = 0;
    while !cursor.rest().starts_with(b"\r\n") {
        let Some(header) = cursor.header()? else { return Ok(None) };
        *headers.get_mut(count).ok_or(HeadError::TooLarge)? = header;
        count += 1;
    }
    Ok(Some(UpstreamHead { size: cursor.at + 2, method, path, headers: count }))
}

/// A position in a head. None of a method: what it should return has not arrived completely.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The bytes up to the first for which `is_in` does not hold, and that byte.
    fn take_while(&mut self, is_in: impl Fn(u8) -> bool) -> Option<(&'a [u8], u8)> {
        let rest = self.rest();
        let size = rest.iter().position(|byte| !is_in(*byte))?;
        let (taken, behind) = rest.split_at_checked(size)?;
        self.at += size;
        Some((taken, *behind.first()?))
    }

    /// Whether `text` follows; None while that is undecided.
    fn skip(&mut self, text: &[u8]) -> Option<bool> {
        let rest = self.rest();
        if rest.starts_with(text) {
            self.at += text.len();
            return Some(true);
        }
        (!text.starts_with(rest)).then_some(false)
    }

    fn request_line(&mut self) -> Parsed<(&'a [u8], &'a [u8])> {
        let Some((method, _)) = self.take_while(|byte| matches!(byte, 33..=127)) else {
            return Ok(None);
        };
        match self.skip(b" /") {
            None => return Ok(None),
            Some(false) => return Err(HeadError::Version),
            Some(true) => self.at -= 1,
        }
        let Some((path, _)) = self.take_while(|byte| byte > b' ') else { return Ok(None) };
        match self.skip(VERSION) {
            None => Ok(None),
            Some(false) => Err(HeadError::Version),
            Some(true) => Ok(Some((method, path))),
        }
    }

    fn header(&mut self) -> Parsed<Header<'a>> {
        let Some((name, colon)) = self.take_while(is_name_byte) else { return Ok(None) };
        if self.rest() == b"\r" {
            return Ok(None);
        }
        let name = std::str::from_utf8(name).map_err(|_| HeadError::Syntax)?;
        if colon != b':' {
            return Err(HeadError::Syntax);
        }
        self.at += 1;
        let Some((value, _)) = self.take_while(|byte| byte >= b' ' || byte == b'\t') else {
            return Ok(None);
        };
        match self.skip(b"\r\n") {
            None => Ok(None),
            Some(false) => Err(HeadError::Syntax),
            Some(true) => Ok(Some(Header { name, value: trim_blanks(value) })),
        }
    }
}

/// Only spaces and tabs around a value do not belong to it (RFC 9110, 5.5).
fn trim_blanks(value: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let start = value.iter().position(is_text).unwrap_or(value.len());
    let end = value.iter().rposition(is_text).map_or(start, |last| last + 1);
    value.get(start..end).unwrap_or_default()
}

/// `tchar` of RFC 9110, 5.6.2.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
#[path = "upstream_head_tests.rs"]
mod tests;
