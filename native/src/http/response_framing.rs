//! Finds where the upstream server's response to one request ends, while its bytes are forwarded.
//!
//! The upstream server is trusted: its bytes are forwarded unchanged, only the end is searched for.

use httparse::{EMPTY_HEADER, Response, Status};

use crate::http::request_head::names_close;

/// Largest head of a response. That of a rejection has about 600 bytes.
const RESPONSE_HEAD_BYTES_MAX: usize = 16 * 1024;
/// Most headers of a response.
const RESPONSE_HEADERS_MAX: usize = 64;

/// Which part of a response comes next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    Head,
    /// This many bytes of the body.
    Body(u64),
    Chunks(Chunk),
    /// Everything until the connection closes.
    Rest,
    Nothing,
}

/// Position in a chunked body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Chunk {
    /// In the line with the size; whether its digits are complete.
    Size(u64, bool),
    /// This many bytes before the end of a chunk.
    Data(u64),
    /// In the line break after a chunk.
    DataEnd,
    /// In a line after the last chunk; whether it is empty so far.
    Trailer(bool),
    End,
}

/// A response whose end cannot be determined.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct MalformedResponse;

/// A response as far as it has arrived.
#[derive(Debug)]
pub(crate) struct ResponseFraming {
    is_head_only: bool,
    part: Part,
    /// Of an incomplete head.
    head: Vec<u8>,
    closes: bool,
}

impl ResponseFraming {
    /// A new response. `is_head_only`: to a HEAD request.
    #[must_use]
    pub(crate) fn new(is_head_only: bool) -> Self {
        Self { is_head_only, part: Part::Head, head: Vec::new(), closes: false }
    }

    /// Whether it is complete.
    #[must_use]
    pub(crate) fn is_complete(&self) -> bool {
        self.part == Part::Nothing
    }

    /// Whether any of it has arrived.
    pub(crate) fn has_started(&self) -> bool {
        self.part != Part::Head || !self.head.is_empty()
    }

    /// Whether its end is unknown until it arrives: possibly a stream.
    pub(crate) fn is_endless(&self) -> bool {
        matches!(self.part, Part::Chunks(_) | Part::Rest)
    }

    /// Whether the connection cannot be used after it.
    #[must_use]
    pub(crate) fn closes(&self) -> bool {
        self.closes
    }

    /// How many of the received bytes belong to this response.
    ///
    /// # Errors
    /// When its end cannot be determined.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<usize, MalformedResponse> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            at += match &mut self.part {
                Part::Nothing => return Ok(at),
                Part::Rest => rest.len(),
                Part::Head => self.take_head(rest)?,
                Part::Body(left) => {
                    let taken = up_to(*left, rest.len());
                    *left -= taken as u64;
                    if *left == 0 {
                        self.part = Part::Nothing;
                    }
                    taken
                }
                Part::Chunks(chunk) => {
                    let (next, taken) = chunk.take(rest)?;
                    self.part = if next == Chunk::End { Part::Nothing } else { Part::Chunks(next) };
                    taken
                }
            };
        }
        Ok(at)
    }

    fn take_head(&mut self, bytes: &[u8]) -> Result<usize, MalformedResponse> {
        let before = self.head.len();
        self.head.extend_from_slice(bytes);
        let head = std::mem::take(&mut self.head);
        let mut headers = [EMPTY_HEADER; RESPONSE_HEADERS_MAX];
        let mut response = Response::new(&mut headers);
        match response.parse(&head) {
            Ok(Status::Complete(size)) => {
                self.part = self.part_behind(&response)?;
                Ok(size.saturating_sub(before))
            }
            Ok(Status::Partial) if head.len() <= RESPONSE_HEAD_BYTES_MAX => {
                self.head = head;
                Ok(bytes.len())
            }
            _ => Err(MalformedResponse),
        }
    }

    /// RFC 9112, 6.3.
    fn part_behind(&mut self, response: &Response<'_, '_>) -> Result<Part, MalformedResponse> {
        let code = response.code.unwrap_or(0);
        if (100..200).contains(&code) {
            // The final response follows, unless the protocol is switched.
            self.closes |= code == 101;
            return Ok(if code == 101 { Part::Rest } else { Part::Head });
        }
        self.closes |= response.version != Some(1);
        let mut part = None;
        for header in response.headers.iter() {
            let is = |known: &str| header.name.eq_ignore_ascii_case(known);
            if is("connection") {
                self.closes |= names_close(header.value);
            } else if is("transfer-encoding") {
                part = Some(Part::Chunks(Chunk::Size(0, false)));
            } else if is("content-length") && !matches!(part, Some(Part::Chunks(_))) {
                let text = std::str::from_utf8(header.value).map_err(|_| MalformedResponse)?;
                part = Some(Part::Body(text.trim().parse().map_err(|_| MalformedResponse)?));
            }
        }
        if self.is_head_only || code == 204 || code == 304 || part == Some(Part::Body(0)) {
            return Ok(Part::Nothing);
        }
        self.closes |= part.is_none();
        Ok(part.unwrap_or(Part::Rest))
    }
}

impl Chunk {
    /// The next position, and how many bytes lead to it.
    fn take(self, bytes: &[u8]) -> Result<(Self, usize), MalformedResponse> {
        if let Self::Data(left) = self {
            let taken = up_to(left, bytes.len());
            let left = left - taken as u64;
            return Ok((if left == 0 { Self::DataEnd } else { Self::Data(left) }, taken));
        }
        let byte = *bytes.first().ok_or(MalformedResponse)?;
        let next = match (self, byte) {
            (Self::Size(0, _), b'\n') => Self::Trailer(true),
            (Self::Size(size, _), b'\n') => Self::Data(size),
            (Self::Size(size, false), _) => match char::from(byte).to_digit(16) {
                Some(digit) if size >> 59 == 0 => Self::Size((size << 4) | u64::from(digit), false),
                Some(_) => return Err(MalformedResponse),
                None => Self::Size(size, true),
            },
            (Self::DataEnd, b'\n') => Self::Size(0, false),
            (Self::DataEnd, b'\r') => self,
            (Self::DataEnd, _) => return Err(MalformedResponse),
            (Self::Trailer(true), b'\n') => Self::End,
            (Self::Trailer(_), b'\n') => Self::Trailer(true),
            (Self::Trailer(is_empty), _) => Self::Trailer(is_empty && byte == b'\r'),
            (same, _) => same,
        };
        Ok((next, 1))
    }
}

fn up_to(left: u64, size: usize) -> usize {
    usize::try_from(left).map_or(size, |left| left.min(size))
}

#[cfg(test)]
#[path = "response_framing_tests.rs"]
mod tests;
