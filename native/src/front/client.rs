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

use crate::clock::NS_PER_S;
use crate::front::desk::{Desk, Note, Request, Taken, Why};
use crate::front::errand::{Course, Errand, Line, Order, Relay};
use crate::front::head::{Head, Sound, Submission, read_head};
use crate::front::inlet::Guest;
use crate::front::places::Places;
use crate::front::reply::NO_ROOM;
use crate::front::wire::{Got, Wire};

/// Largest request that may be answered here, head and body; and what is read at once.
pub(crate) const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// Requests of one client before another gets its turn.
const REQUESTS_A_TURN: usize = 16;
/// How long a client may say or take in nothing where that is what is waited for.
const STALL_NS: u64 = 10 * NS_PER_S;
/// How long a connection to the main thread is kept for a further request: even where that is seen
/// a sweep later, for less than the 8 s after which that server may close it, maybe just when a
/// request is on its way.
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
}

/// What the bytes that came begin with, after what was answered of them.
enum Next {
    /// Nothing that could be looked at now.
    Waits,
    /// More requests than one turn has.
    More,
    /// A request for the main thread; `out` has what of it has come.
    Errand(Order),
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Client {
    wire: Wire,
    from: IpAddr,
    /// What came and was not looked at, or is not whole.
    input: Vec<u8>,
    /// The request that the main thread has in hand.
    errand: Option<Errand>,
    /// The connection to the main thread while it has none, and since when.
    kept: Option<Box<Relay>>,
    kept_ns: u64,
    /// Whether the body of a submission is waited for.
    is_awaited: bool,
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
            input: Vec::new(),
            errand: None,
            kept: None,
            kept_ns: 0,
            is_awaited: false,
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

    /// Whether the body of a submission is waited for.
    #[must_use]
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited
    }

    /// Whether it has a request in hand, or an answer.
    #[must_use]
    pub(crate) fn is_busy(&self, now_ns: u64) -> bool {
        let is_quiet = is_past(now_ns, self.seen_ns, QUIET_NS);
        let is_under_way = self.errand.as_ref().is_some_and(|errand| errand.is_under_way(is_quiet));
        self.is_awaited || is_under_way || self.wire.unwritten() > 0
    }

    /// Whether the client keeps others waiting for too long. Also closes a connection to the main
    /// thread that is not used.
    pub(crate) fn is_overdue(&mut self, now_ns: u64) -> bool {
        if is_past(now_ns, self.kept_ns, RELAY_KEPT_NS) {
            self.kept = None;
        }
        if self.ended_ns.is_some_and(|ended_ns| is_past(now_ns, ended_ns, LAST_WORD_NS)) {
            return true;
        }
        let awaits_client = self.errand.as_ref().is_none_or(Errand::awaits_client);
        (awaits_client || self.wire.unwritten() > 0) && is_past(now_ns, self.seen_ns, STALL_NS)
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
        self.is_awaited = false;
        let (done, next) = self.serve_all(size, hall)?;
        let rest = hall.scratch.get(done..size).unwrap_or_default();
        self.input.clear();
        if rest.is_empty() {
            // An idle connection holds no memory.
            self.input = Vec::new();
        } else {
            self.input.extend_from_slice(rest);
        }
        match next {
            Next::Errand(order) => self.begin(order, hall),
            Next::More if self.wire.unwritten() == 0 => Ok(Turn::More),
            Next::Waits if got == Got::End => Err(Gone),
            Next::Waits if self.wire.can_read() && self.wire.unwritten() == 0 => Ok(Turn::More),
            Next::More | Next::Waits => Ok(Turn::Waits),
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
                return Ok((done, Next::Waits));
            }
            let sound = match read_head(rest, hall.secret_name) {
                Head::Partial => return Ok((done, Next::Waits)),
                Head::Unsound { line_end } => {
                    desk.relayed(Why::Unsound);
                    let order = line(Note::default()).pipe(line_end, rest, out);
                    return Ok((size, Next::Errand(order)));
                }
                Head::Sound(sound) => sound,
            };
            match take(*desk, &sound, rest, self.from, *is_draining, out) {
                Step::Answered => {
                    done += sound.size + sound.body_size;
                    self.wire.send(out).map_err(|_| Gone)?;
                    if self.wire.unwritten() > 0 {
                        return Ok((done, Next::More));
                    }
                }
                Step::Waits => {
                    self.is_awaited = true;
                    return Ok((done, Next::Waits));
                }
                Step::Relay(note) => {
                    let (count, order) = line(note).order(&sound, rest, out);
                    return Ok((done + count, Next::Errand(order)));
                }
            }
        }
        Ok((done, Next::More))
    }

    fn begin<D: Desk>(&mut self, order: Order, hall: &mut Hall<'_, D>) -> Result<Turn, Gone> {
        let relay = match self.kept.take() {
            Some(kept) => kept,
            None => {
                let Some(place) = hall.relays.take() else { return self.turn_away(hall) };
                let opened = Wire::connect(hall.backend, hall.registry, hall.relay_token);
                Box::new(Relay { wire: opened.map_err(|_| Gone)?, _place: place })
            }
        };
        self.errand = Some(Errand::begin(order, relay, hall.out));
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
        match errand.run(&mut self.wire, &mut self.input, hall.scratch) {
            Course::Waits => return Ok(Turn::Waits),
            Course::Gone => return Err(Gone),
            Course::Moves => {}
            Course::Over { closes } => {
                self.closes = closes;
                let is_kept = !closes && hall.relays.is_plenty();
                self.kept = self.errand.take().filter(|_| is_kept).map(Errand::into_relay);
                self.kept_ns = hall.now_ns;
            }
            Course::Refused => {
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

/// What is to be done with a sound request.
enum Step {
    /// Its answer is in `out`.
    Answered,
    /// Its body is worth waiting for.
    Waits,
    Relay(Note),
}

fn take<D: Desk>(
    desk: &mut D,
    sound: &Sound<'_>,
    bytes: &[u8],
    from: IpAddr,
    is_draining: bool,
    out: &mut Vec<u8>,
) -> Step {
    let total = sound.size + sound.body_size;
    let why = match &sound.submission {
        _ if is_draining => Why::Draining,
        None => Why::Other,
        Some(_) if total > REQUEST_BYTES_MAX => Why::Large,
        Some(Submission { door, token }) => match bytes.get(sound.size..total) {
            Some(body) => {
                out.clear();
                return match desk.take(&Request { door: *door, token, from, body }, out) {
                    Taken::Answered => Step::Answered,
                    Taken::Relay(note) => Step::Relay(note),
                };
            }
            None if desk.knows(token) => return Step::Waits,
            None => Why::Key,
        },
    };
    desk.relayed(why);
    Step::Relay(Note::default())
}

fn is_past(now_ns: u64, since_ns: u64, for_ns: u64) -> bool {
    now_ns.saturating_sub(since_ns) > for_ns
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
