//! A request that the main thread answers: its bytes go there as they come from the client, and the
//! bytes of the answer come back, each only as fast as they are taken.
//!
//! The first line that goes along tells what only this side knows of the request. Its name is
//! random, so that nobody else can write it.

use std::io::Write;
use std::net::IpAddr;

use mio::event::Event;

use crate::http::deadline::Part;
use crate::http::handler::Note;
use crate::http::header_marks::mark_values;
use crate::http::permits::Place;
use crate::http::request_head::Sound;
use crate::http::response_framing::Answer;
use crate::http::socket::{Got, Wire};

/// What is told of a request.
pub(super) struct Line<'a> {
    /// The header's name.
    pub(super) name: &'a str,
    pub(super) from: IpAddr,
    pub(super) front: u32,
    pub(super) note: Note,
}

/// What is known of a request before anything of it is sent.
#[derive(Debug)]
pub(super) struct Order {
    /// Bytes of it that are still to come from the client.
    left: u64,
    /// Whether any of its body has come.
    has_begun: bool,
    is_head_only: bool,
    /// Whether the connection ends with it.
    closes: bool,
    /// Whether it has no end but the connection's, because its framing is in doubt.
    is_pipe: bool,
}

impl Line<'_> {
    /// Puts into `out` what has come of a sound request, and how many bytes that were.
    pub(super) fn order(
        self,
        sound: &Sound<'_>,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> (usize, Order) {
        let total = sound.size + sound.body_size;
        let come = total.min(bytes.len());
        self.insert(sound.line_end, bytes.get(..come).unwrap_or_default(), out);
        mark_values(out);
        let order = Order {
            left: (total - come) as u64,
            has_begun: come > sound.size,
            is_head_only: sound.is_head_only,
            closes: sound.closes,
            is_pipe: false,
        };
        (come, order)
    }

    /// Puts all into `out`: whoever is behind is to judge it, and what follows.
    pub(super) fn pipe(self, line_end: Option<usize>, bytes: &[u8], out: &mut Vec<u8>) -> Order {
        match line_end {
            Some(line_end) => self.insert(line_end, bytes, out),
            None => {
                out.clear();
                out.extend_from_slice(bytes);
            }
        }
        mark_values(out);
        Order { left: u64::MAX, has_begun: true, is_head_only: false, closes: true, is_pipe: true }
    }

    fn insert(self, line_end: usize, bytes: &[u8], out: &mut Vec<u8>) {
        let (line, rest) = bytes.split_at_checked(line_end).unwrap_or((bytes, &[]));
        let Self { name, from, front, note } = self;
        let (is_paid, received_ns) = (u8::from(note.is_paid), note.received_ns);
        out.clear();
        out.extend_from_slice(line);
        // Writing into memory does not fail.
        let _ = write!(out, "{name}: {from} {front} {is_paid} {received_ns}\r\n");
        out.extend_from_slice(rest);
    }
}

/// How far an errand has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Course {
    /// Nothing moves now.
    Waits,
    /// Something moved, and more may.
    Moves,
    /// All of the answer is on its way to the client.
    Over {
        /// Whether the connection ends with it.
        closes: bool,
    },
    /// The server behind ended the connection without a word.
    Refused,
    /// The client left.
    Gone,
}

/// A connection to the main thread's server.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) wire: Wire,
    pub(super) _place: Place,
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Errand {
    relay: Box<Relay>,
    /// Its place among the requests that nothing says are admitted, until all of it has come.
    upload: Option<Place>,
    left: u64,
    has_begun: bool,
    answer: Answer,
    closes: bool,
    is_pipe: bool,
}

impl Errand {
    /// Sends what is there.
    pub(super) fn begin(
        order: Order,
        relay: Box<Relay>,
        upload: Option<Place>,
        bytes: &[u8],
    ) -> Self {
        let Order { left, has_begun, is_head_only, closes, is_pipe } = order;
        let answer = if is_pipe { Answer::verbatim() } else { Answer::new(is_head_only) };
        let mut errand = Self { relay, upload, left, has_begun, answer, closes, is_pipe };
        errand.send(bytes);
        errand
    }

    /// Notes what is told of the connection to the main thread.
    pub(super) fn note(&mut self, event: &Event) {
        self.relay.wire.note(event);
    }

    /// Whether it cannot go on before the client sends more.
    pub(super) fn awaits_client(&self) -> bool {
        self.left > 0 && !self.is_pipe && self.relay.wire.unwritten() == 0
    }

    /// What is awaited of the client. A connection whose framing is in doubt has its deadlines from
    /// the server behind, which knows where its requests end.
    pub(super) fn part(&self) -> Part {
        match (self.left, self.is_pipe, self.has_begun) {
            (0, ..) | (_, true, _) => Part::None,
            (_, _, false) => Part::BodyBegin,
            (_, _, true) => Part::Body,
        }
    }

    /// Whether all of the request is sent, and the answer has an end: then it can be given to who
    /// says nothing more.
    pub(super) fn is_last_word(&self) -> bool {
        self.left == 0 && !self.is_pipe && !self.answer.is_endless()
    }

    /// Whether there is an answer to come, for all that is known. `is_quiet`: nothing has moved for a
    /// moment.
    pub(super) fn is_under_way(&self, is_quiet: bool) -> bool {
        let is_open = if self.is_pipe { !is_quiet } else { !self.answer.is_complete() };
        is_open || self.relay.wire.unwritten() > 0
    }

    /// What is left when it is over: the connection, for another request.
    pub(super) fn into_relay(self) -> Box<Relay> {
        self.relay
    }

    /// Moves one buffer each way, at most. What the client was sent before is all written.
    pub(super) fn run(
        &mut self,
        client: &mut Wire,
        input: &mut Vec<u8>,
        scratch: &mut [u8],
    ) -> Course {
        let up = self.move_up(client, input, scratch);
        if up == Course::Gone {
            return up;
        }
        match self.move_down(client, scratch) {
            Course::Waits => up,
            down => down,
        }
    }

    fn move_up(&mut self, client: &mut Wire, input: &mut Vec<u8>, scratch: &mut [u8]) -> Course {
        let is_flushed = self.relay.wire.unwritten() > 0;
        match self.relay.wire.flush() {
            Ok(true) => {}
            Ok(false) => return Course::Waits,
            Err(_) => self.give_up(),
        }
        if self.left == 0 {
            return Course::Waits;
        }
        if !input.is_empty() {
            let count = self.up_to_left(input.len());
            self.note_come(count);
            self.send(input.get(..count).unwrap_or_default());
            input.drain(..count);
            return Course::Moves;
        }
        let most = self.up_to_left(scratch.len());
        match client.read(scratch.get_mut(..most).unwrap_or_default()) {
            Got::Bytes(count) => {
                self.note_come(count);
                self.send(scratch.get(..count).unwrap_or_default());
                Course::Moves
            }
            Got::Nothing if is_flushed => Course::Moves,
            Got::Nothing => Course::Waits,
            Got::End => Course::Gone,
        }
    }

    fn move_down(&mut self, client: &mut Wire, scratch: &mut [u8]) -> Course {
        if self.is_over() {
            return Course::Over { closes: self.closes };
        }
        let bytes = match self.relay.wire.read(scratch) {
            Got::Bytes(count) => scratch.get(..count).unwrap_or_default(),
            Got::Nothing => return Course::Waits,
            Got::End if self.is_pipe || self.answer.has_begun() => {
                return Course::Over { closes: true };
            }
            Got::End => return Course::Refused,
        };
        let Ok(count) = self.answer.take(bytes) else { return Course::Over { closes: true } };
        // Beyond an answer nothing may come: what it is to is not known.
        self.closes |= self.answer.closes() || count < bytes.len();
        if client.send(bytes.get(..count).unwrap_or_default()).is_err() {
            return Course::Gone;
        }
        if self.is_over() { Course::Over { closes: self.closes } } else { Course::Moves }
    }

    /// An answer that came before all of the request may be the connection's last.
    fn is_over(&self) -> bool {
        let is_sent = self.left == 0 && self.relay.wire.unwritten() == 0;
        self.answer.is_complete() && (is_sent || self.closes)
    }

    /// Sends; a server that takes no more may still have said why.
    fn send(&mut self, bytes: &[u8]) {
        if self.relay.wire.send(bytes).is_err() {
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        self.relay.wire.forget();
        self.left = 0;
        self.upload = None;
        self.closes = true;
    }

    fn note_come(&mut self, count: usize) {
        self.left -= count as u64;
        self.has_begun = true;
        if self.left == 0 {
            self.upload = None;
        }
    }

    fn up_to_left(&self, size: usize) -> usize {
        usize::try_from(self.left).map_or(size, |left| left.min(size))
    }
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
