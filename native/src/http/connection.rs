//! Hot path: one connection of a client.
//!
//! ```text
//!  serving ──▶ errand (the request goes to the main thread, its answer comes back) ──▶ serving
//!     │  └───▶ errand without an end (framing in doubt: bytes both ways) ──▶ closed
//!     └──────▶ closed
//! ```
//!
//! Answers leave in the order of the requests because a further request is looked at only when the
//! answer before it is written. So what is held for a client is bounded too: the bytes of one
//! buffer that came in, one answer, and one buffer on the way to the main thread.

use std::net::{IpAddr, SocketAddr};

use mio::event::Event;
use mio::{Registry, Token};

use crate::http::client_socket::Guest;
use crate::http::connection_limits::Seat;
use crate::http::deadline::{Part, ReadClock, is_past};
use crate::http::dispatch::{Step, dispatch};
use crate::http::handler::{Desk, Note, Why};
use crate::http::permits::Places;
use crate::http::proxy::{Course, Errand, Line, Order, Relay};
use crate::http::request_head::{Head, read_head};
use crate::http::response::NO_ROOM;
use crate::http::socket::{Got, Wire};
use crate::sync::clock::NS_PER_S;

/// Requests of one client before another gets its turn.
const REQUESTS_A_TURN: usize = 16;
/// How long a client may ask for nothing, and how long it may take in nothing of an answer.
const STALL_NS: u64 = 10 * NS_PER_S;
/// How long a connection to the main thread is kept for a further request: for less than the 8 s
/// after which that server may close it, maybe just when a request is on its way.
const RELAY_KEPT_NS: u64 = 5 * NS_PER_S;

/// How long an answer under way is waited for by who says nothing more.
const LAST_WORD_NS: u64 = NS_PER_S;
/// After so long without a byte, nobody knows whether there is anything to come where no framing
/// says so.
const QUIET_NS: u64 = NS_PER_S / 2;

/// How a client's turn ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Turn {
    /// Nothing to do until one of its sockets is ready.
    Waits,
    /// There is more to do.
    More,
    /// The connection is over.
    Ends,
}

/// The connection is over.
struct Gone;

/// Why a client keeps others waiting for too long.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Overdue {
    /// It asks for nothing, or takes in nothing.
    Idle,
    /// Its request was not whole in time.
    Slow,
}

/// What all clients of a thread share.
pub(crate) struct Hall<'a, D> {
    /// Takes submissions.
    pub(crate) desk: &'a mut D,
    /// Where connections are waited for.
    pub(crate) registry: &'a Registry,
    /// The main thread's server.
    pub(crate) backend: SocketAddr,
    /// The header that a relayed request has from here.
    pub(crate) secret_name: &'a str,
    /// Which front this is.
    pub(crate) front: u32,
    /// `REQUEST_BYTES_MAX` bytes for whatever is read.
    pub(crate) scratch: &'a mut [u8],
    /// For whatever is written.
    pub(crate) out: &'a mut Vec<u8>,
    /// Under what the client's connection to the main thread is waited for.
    pub(crate) relay_token: Token,
    /// The time of this turn.
    pub(crate) now_ns: u64,
    /// Whether every request is relayed.
    pub(crate) is_draining: bool,
    /// Connections to the main thread that there may be yet.
    pub(crate) relays: &'a Places,
    /// Those among them that may be for a request which is not whole, and maybe never admitted.
    pub(crate) uploads: &'a Places,
}

/// What the bytes that came begin with, after what was answered of them.
enum Next {
    /// This part of a request is awaited.
    Waits(Part),
    /// More requests than one turn has.
    More,
    /// One for the main thread, as far as it has come in `out`. `is_upload` as in `Step::Relay`.
    Errand { order: Order, is_upload: bool },
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Client {
    wire: Wire,
    from: IpAddr,
    _seat: Seat,
    /// What came and was not looked at, or is not whole.
    input: Vec<u8>,
    /// The request that the main thread has in hand.
    errand: Option<Errand>,
    /// The connection to the main thread while it has none, and since when.
    kept: Option<Box<Relay>>,
    kept_ns: u64,
    /// What is awaited of a request.
    reading: ReadClock,
    /// Whether the request whose body is awaited began before new work was refused.
    is_begun: bool,
    /// Since when the client says nothing more.
    ended_ns: Option<u64>,
    /// Whether it is closed once all is written.
    closes: bool,
    /// When the client last said or took in something, or was first expected to.
    seen_ns: u64,
    /// Whether it is in the list of those who have a turn.
    pub(crate) is_listed: bool,
}

impl Client {
    /// Takes over a connection.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub(super) fn new(
        guest: Guest,
        registry: &Registry,
        token: Token,
        now_ns: u64,
    ) -> std::io::Result<Self> {
        guest.stream.set_nodelay(true)?;
        Ok(Self {
            wire: Wire::new(guest.stream, registry, token)?,
            from: guest.from,
            _seat: guest.seat,
            input: Vec::new(),
            errand: None,
            kept: None,
            kept_ns: 0,
            reading: ReadClock::default(),
            is_begun: false,
            ended_ns: None,
            closes: false,
            seen_ns: now_ns,
            is_listed: false,
        })
    }

    /// Notes what is told of its socket, or of the one to the main thread.
    pub(crate) fn note(&mut self, event: &Event, is_relay: bool) {
        if !is_relay {
            self.wire.note(event);
        } else if let Some(errand) = &mut self.errand {
            errand.note(event);
        } else if let Some(kept) = &mut self.kept {
            kept.wire.note(event);
        }
    }

    /// Whether the rest of a body is awaited here, before anything is done with its request.
    #[must_use]
    pub(crate) fn is_awaited(&self) -> bool {
        self.errand.is_none() && self.reading.is_body()
    }

    /// New work is refused from now on; what has begun is not new.
    pub(crate) fn drain(&mut self) {
        self.is_begun = self.is_awaited();
    }

    /// Whether it has a request in hand, or an answer.
    #[must_use]
    pub(crate) fn is_busy(&self, now_ns: u64) -> bool {
        let is_quiet = is_past(now_ns, self.seen_ns, QUIET_NS);
        let is_under_way = self.errand.as_ref().is_some_and(|errand| errand.is_under_way(is_quiet));
        self.is_awaited() || is_under_way || self.wire.unwritten() > 0
    }

    /// Whether the client is too slow. Closes a connection to the main thread that is not used.
    pub(crate) fn overdue(&mut self, now_ns: u64, read_timeout_ns: u64) -> Option<Overdue> {
        if is_past(now_ns, self.kept_ns, RELAY_KEPT_NS) {
            self.kept = None;
        }
        if self.ended_ns.is_some_and(|ended_ns| is_past(now_ns, ended_ns, LAST_WORD_NS)) {
            return Some(Overdue::Idle);
        }
        let is_still = is_past(now_ns, self.seen_ns, STALL_NS);
        if self.wire.unwritten() > 0 {
            return is_still.then_some(Overdue::Idle);
        }
        // A server behind that takes in nothing holds up the client, and not the other way around.
        if self.errand.as_ref().is_some_and(|errand| !errand.awaits_client()) {
            return None;
        }
        if self.reading.part() == Part::None {
            return is_still.then_some(Overdue::Idle);
        }
        self.reading.is_late(now_ns, read_timeout_ns).then_some(Overdue::Slow)
    }

    /// Does what can be done now, up to a bound.
    pub(crate) fn turn<D: Desk>(&mut self, hall: &mut Hall<'_, D>) -> Turn {
        self.try_turn(hall).unwrap_or(Turn::Ends)
    }

    fn try_turn<D: Desk>(&mut self, hall: &mut Hall<'_, D>) -> Result<Turn, Gone> {
        if self.wire.has_ended() {
            self.note_end(hall.now_ns)?;
        }
        if !self.flush(hall.now_ns)? {
            return Ok(Turn::Waits);
        }
        if self.closes {
            self.wire.discard(hall.scratch);
            return Err(Gone);
        }
        if self.errand.is_some() { self.run_errand(hall) } else { self.serve(hall) }
    }

    /// The client says nothing more. It may have left, and then the main thread is to know of it; or
    /// it waits for its answer all the same, which is given a moment where it has an end.
    fn note_end(&mut self, now_ns: u64) -> Result<(), Gone> {
        self.ended_ns.get_or_insert(now_ns);
        match &self.errand {
            Some(errand) if !errand.is_last_word() => Err(Gone),
            _ => Ok(()),
        }
    }

    /// Whether all that was to be written to the client is.
    fn flush(&mut self, now_ns: u64) -> Result<bool, Gone> {
        let before = self.wire.unwritten();
        let is_done = self.wire.flush().map_err(|_| Gone)?;
        if self.wire.unwritten() < before {
            self.seen_ns = now_ns;
        }
        Ok(is_done)
    }

    fn serve<D: Desk>(&mut self, hall: &mut Hall<'_, D>) -> Result<Turn, Gone> {
        self.look_at_kept(hall.scratch);
        let held = self.input.len();
        if let Some(begin) = hall.scratch.get_mut(..held) {
            begin.copy_from_slice(&self.input);
        }
        let got = self.wire.read(hall.scratch.get_mut(held..).unwrap_or_default());
        let count = match got {
            Got::Bytes(count) => {
                self.seen_ns = hall.now_ns;
                count
            }
            Got::Nothing | Got::End => 0,
        };
        let size = held + count;
        let (done, next) = self.serve_all(size, hall)?;
        if done > 0 {
            // What is awaited now is of another request.
            self.reading.set(Part::None, hall.now_ns);
        }
        let part = if let Next::Waits(part) = next { part } else { Part::None };
        self.reading.set(part, hall.now_ns);
        let rest = hall.scratch.get(done..size).unwrap_or_default();
        self.input.clear();
        if rest.is_empty() {
            // An idle connection holds no memory.
            self.input = Vec::new();
        } else {
            self.input.extend_from_slice(rest);
        }
        match next {
            Next::Errand { order, is_upload } => self.begin(order, is_upload, hall),
            Next::More if self.wire.unwritten() == 0 => Ok(Turn::More),
            Next::Waits(_) if got == Got::End => Err(Gone),
            Next::Waits(_) if self.wire.can_read() && self.wire.unwritten() == 0 => Ok(Turn::More),
            Next::More | Next::Waits(_) => Ok(Turn::Waits),
        }
    }

    /// Looks at the requests among so many bytes; how many were used up, and what follows.
    fn serve_all<D: Desk>(
        &mut self,
        size: usize,
        hall: &mut Hall<'_, D>,
    ) -> Result<(usize, Next), Gone> {
        let Hall { desk, scratch, out, is_draining, .. } = hall;
        let line = |note| Line { name: hall.secret_name, from: self.from, front: hall.front, note };
        let bytes = scratch.get(..size).unwrap_or_default();
        let mut done = 0;
        for _ in 0..REQUESTS_A_TURN {
            let rest = bytes.get(done..).unwrap_or_default();
            if rest.is_empty() {
                return Ok((done, Next::Waits(Part::None)));
            }
            let sound = match read_head(rest, hall.secret_name) {
                Head::Partial => return Ok((done, Next::Waits(Part::Head))),
                Head::Unsound { line_end } => {
                    desk.relayed(Why::Unsound);
                    let order = line(Note::default()).pipe(line_end, rest, out);
                    return Ok((size, Next::Errand { order, is_upload: true }));
                }
                Head::Sound(sound) => sound,
            };
            let is_refused = *is_draining && !self.is_begun;
            let step = dispatch(*desk, &sound, rest, self.from, is_refused, out);
            self.is_begun &= matches!(step, Step::Awaits(_));
            match step {
                Step::Answered => {
                    done += sound.size + sound.body_size;
                    self.wire.send(out).map_err(|_| Gone)?;
                    if self.wire.unwritten() > 0 {
                        return Ok((done, Next::More));
                    }
                }
                Step::Awaits(part) => return Ok((done, Next::Waits(part))),
                Step::Relay { note, is_upload } => {
                    let (count, order) = line(note).order(&sound, rest, out);
                    return Ok((done + count, Next::Errand { order, is_upload }));
                }
            }
        }
        Ok((done, Next::More))
    }

    fn begin<D: Desk>(
        &mut self,
        order: Order,
        is_upload: bool,
        hall: &mut Hall<'_, D>,
    ) -> Result<Turn, Gone> {
        let upload = if is_upload { hall.uploads.take(self.from) } else { None };
        if is_upload && upload.is_none() {
            return self.turn_away(hall);
        }
        let relay = match self.kept.take() {
            Some(kept) => kept,
            None => {
                let Some(place) = hall.relays.take(self.from) else { return self.turn_away(hall) };
                let opened = Wire::connect(hall.backend, hall.registry, hall.relay_token);
                Box::new(Relay { wire: opened.map_err(|_| Gone)?, _place: place })
            }
        };
        self.errand = Some(Errand::begin(order, relay, upload, hall.out));
        self.seen_ns = hall.now_ns;
        self.run_errand(hall)
    }

    /// Too many requests are relayed, or the server behind does not answer: this one has no other
    /// answer, and its connection is of no use behind it.
    fn turn_away<D: Desk>(&mut self, hall: &mut Hall<'_, D>) -> Result<Turn, Gone> {
        hall.desk.refused_relay();
        self.wire.send(NO_ROOM).map_err(|_| Gone)?;
        self.closes = true;
        Ok(Turn::More)
    }

    fn run_errand<D: Desk>(&mut self, hall: &mut Hall<'_, D>) -> Result<Turn, Gone> {
        let Some(errand) = &mut self.errand else { return Ok(Turn::More) };
        let course = errand.run(&mut self.wire, &mut self.input, hall.scratch);
        self.reading.set(errand.part(), hall.now_ns);
        match course {
            Course::Waits => return Ok(Turn::Waits),
            Course::Gone => return Err(Gone),
            Course::Moves => {}
            Course::Over { closes } => {
                // What is left of a body whose answer was given early is not awaited any more.
                self.reading.set(Part::None, hall.now_ns);
                self.closes = closes;
                let is_kept = !closes && hall.relays.is_plenty(self.from);
                self.kept = self.errand.take().filter(|_| is_kept).map(Errand::into_relay);
                self.kept_ns = hall.now_ns;
            }
            Course::Refused => {
                self.reading.set(Part::None, hall.now_ns);
                self.errand = None;
                return self.turn_away(hall);
            }
        }
        self.seen_ns = hall.now_ns;
        Ok(Turn::More)
    }

    /// The main thread closes what is not used for long, and says nothing unasked.
    fn look_at_kept(&mut self, scratch: &mut [u8]) {
        if self.kept.as_mut().is_some_and(|kept| kept.wire.read(scratch) != Got::Nothing) {
            self.kept = None;
        }
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
