//! Finds where the main thread's answer to one request ends, while its bytes pass through.
//!
//! The server behind is trusted: what it writes is passed on as it is, only the end is looked for.

use httparse::{EMPTY_HEADER, Response, Status};

use crate::http::request_head::names_close;

/// Largest head of an answer. A refusal's has some 600 bytes.
const RESPONSE_HEAD_BYTES_MAX: usize = 16 * 1024;
/// Headers of an answer.
const RESPONSE_HEADERS_MAX: usize = 64;

/// What of an answer comes next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    Head,
    /// So many bytes of the body.
    Body(u64),
    Chunks(Chunk),
    /// All that comes.
    Rest,
    Nothing,
}

/// Where in a body of chunks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Chunk {
    /// In the line with the size; whether its digits are over.
    Size(u64, bool),
    /// Before the end of so many bytes.
    Data(u64),
    /// In the line break behind them.
    DataEnd,
    /// In a line behind the last chunk; whether it is empty so far.
    Trailer(bool),
    End,
}

/// An answer that does not end in a way that can be known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Garbled;

/// An answer as far as it has come.
#[derive(Debug)]
pub(crate) struct ResponseFraming {
    is_head_only: bool,
    part: Part,
    /// Of a head that is not whole.
    head: Vec<u8>,
    closes: bool,
}

impl ResponseFraming {
    /// Nothing of it has come. `is_head_only`: it was asked for with HEAD.
    #[must_use]
    pub(crate) fn new(is_head_only: bool) -> Self {
        Self { is_head_only, part: Part::Head, head: Vec::new(), closes: false }
    }

    /// Whatever comes until the server closes the connection.
    #[must_use]
    pub(crate) fn verbatim() -> Self {
        Self { is_head_only: false, part: Part::Rest, head: Vec::new(), closes: true }
    }

    /// Whether all of it has come.
    #[must_use]
    pub(crate) fn is_complete(&self) -> bool {
        self.part == Part::Nothing
    }

    /// Whether anything of it has come.
    pub(crate) fn has_started(&self) -> bool {
        self.part != Part::Head || !self.head.is_empty()
    }

    /// Whether its end is not known before it comes: a stream, perhaps.
    pub(crate) fn is_endless(&self) -> bool {
        matches!(self.part, Part::Chunks(_) | Part::Rest)
    }

    /// Whether the connection is of no use behind it.
    #[must_use]
    pub(crate) fn closes(&self) -> bool {
        self.closes
    }

    /// How many of the bytes that came are of this answer.
    ///
    /// # Errors
    /// Where it cannot be told.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<usize, Garbled> {
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

    fn take_head(&mut self, bytes: &[u8]) -> Result<usize, Garbled> {
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
            _ => Err(Garbled),
        }
    }

    /// RFC 9112, 6.3.
    fn part_behind(&mut self, response: &Response<'_, '_>) -> Result<Part, Garbled> {
        let code = response.code.unwrap_or(0);
        if (100..200).contains(&code) {
            // The answer proper follows, unless this is another protocol's begin.
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
                let text = std::str::from_utf8(header.value).map_err(|_| Garbled)?;
                part = Some(Part::Body(text.trim().parse().map_err(|_| Garbled)?));
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
    /// What comes next, and how many bytes led there.
    fn take(self, bytes: &[u8]) -> Result<(Self, usize), Garbled> {
        if let Self::Data(left) = self {
            let taken = up_to(left, bytes.len());
            let left = left - taken as u64;
            return Ok((if left == 0 { Self::DataEnd } else { Self::Data(left) }, taken));
        }
        let byte = *bytes.first().ok_or(Garbled)?;
        let next = match (self, byte) {
            (Self::Size(0, _), b'\n') => Self::Trailer(true),
            (Self::Size(size, _), b'\n') => Self::Data(size),
            (Self::Size(size, false), _) => match char::from(byte).to_digit(16) {
                Some(digit) if size >> 59 == 0 => Self::Size((size << 4) | u64::from(digit), false),
                Some(_) => return Err(Garbled),
                None => Self::Size(size, true),
            },
            (Self::DataEnd, b'\n') => Self::Size(0, false),
            (Self::DataEnd, b'\r') => self,
            (Self::DataEnd, _) => return Err(Garbled),
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
