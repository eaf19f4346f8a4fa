//! Hot path: what a front does with a submission by itself, the same steps in the same order as
//! `pipeline.ts`, as far as one thread can go alone. The engine has it before the main thread hears
//! of it, and whatever a front is not certain of it leaves to that, nothing of it done.
//!
//! ```text
//! pass? limit? ─▶ seen before? ─▶ decode, verify ─▶ claimed? ─▶ routes open? ─▶ sent ─▶ record ─▶ answer
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::base58::{SIGNATURE_TEXT_MAX, signature_text_at};
use crate::decode::decoder::{Decoder, numbers};
use crate::decode::tx::peek_signature_offset;
use crate::http::handler::{Cut, Desk, Door, Health, Note, Request, Taken, Why};
use crate::http::json_rpc::read_call;
use crate::http::response::Replies;
use crate::limits::TRANSACTION_BYTES_MAX;
use crate::submit::counters::{Figure, Figures};
use crate::submit::dedup::{Claim, Seen};
use crate::submit::fan_out::{Sending, Sent, Wire};
use crate::submit::key_cache::{NotAdmitted, Pass, Passes};
use crate::submit::record_ring::{self, Records};
use crate::submit::wakeup::{State, Teller};

/// What the main thread says of keys.
pub enum News {
    /// The key may be let in from now on.
    Pass(Box<[u8]>, Pass),
    /// And no more, if its pass is the one of that place.
    PassOver(Box<[u8]>, u32),
}

/// What a front's submissions pass through.
pub struct Parts<W> {
    /// Who is let in.
    pub passes: Passes,
    /// What was accepted a moment ago, by whomever.
    pub seen: Seen,
    /// Judges transactions.
    pub decoder: Arc<Decoder>,
    /// Puts them on the wire.
    pub sending: Sending<W>,
    /// What the main thread reads.
    pub records: Records,
    /// What it counts.
    pub figures: Figures,
    /// Wakes it.
    pub teller: Teller,
}

/// The desk of a front: answers what it is certain of.
pub struct FrontDesk<W> {
    parts: Parts<W>,
    replies: Replies,
    transaction: Box<[u8; TRANSACTION_BYTES_MAX]>,
    sent: Sent,
}

/// What is known of a submission before it is looked at.
struct Arrival {
    place: u32,
    received_ns: u64,
    body_bytes: usize,
    max_retries: Option<u64>,
}

/// A signature in base58.
struct Name {
    text: [u8; SIGNATURE_TEXT_MAX],
    size: usize,
}

impl<W: Wire> FrontDesk<W> {
    /// One that took nothing yet.
    #[must_use]
    pub fn new(parts: Parts<W>) -> Self {
        let transaction = Box::new([0; TRANSACTION_BYTES_MAX]);
        Self { parts, replies: Replies::new(), transaction, sent: Sent::default() }
    }

    fn admit(&mut self, request: &Request<'_>, out: &mut Vec<u8>) -> Taken {
        let received_ns = self.parts.sending.now_ns();
        self.parts.sending.heed(received_ns);
        let Request { token, from, .. } = *request;
        let place = match self.parts.passes.admit(token, from, received_ns, unix_ms) {
            Ok(place) => place,
            Err(why) => {
                self.parts.figures.add(figure_of(why), 1.0);
                return Taken::Relay(Note { is_paid: false, received_ns });
            }
        };
        match self.answer(request, place, received_ns, out) {
            Ok(()) => {
                self.parts.figures.add(Figure::Requests, 1.0);
                self.parts.figures.add(Figure::Accepted, 1.0);
                Taken::Answered
            }
            Err(why) => {
                self.parts.figures.add(why, 1.0);
                Taken::Relay(Note { is_paid: true, received_ns })
            }
        }
    }

    fn answer(
        &mut self,
        request: &Request<'_>,
        place: u32,
        received_ns: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Figure> {
        let Self { parts, replies, transaction, sent } = self;
        let body = request.body;
        let arrival = Arrival { place, received_ns, body_bytes: body.len(), max_retries: None };
        match request.door {
            Door::Raw => {
                let name = parts.submit(body, &arrival, sent)?;
                replies.raw_accepted(out, name.text());
            }
            Door::Rpc => {
                let call =
                    read_call(body, transaction.as_mut_slice()).ok_or(Figure::RelayedOther)?;
                let bytes = transaction.get(..call.size).ok_or(Figure::RelayedOther)?;
                let id = body.get(call.id.0..call.id.1).ok_or(Figure::RelayedOther)?;
                let arrival = Arrival { max_retries: call.max_retries, ..arrival };
                let name = parts.submit(bytes, &arrival, sent)?;
                replies.rpc_result(out, id, name.text());
            }
        }
        Ok(())
    }
}

impl<W: Wire> Parts<W> {
    /// Sends it, or finds that it was: its name. Else why it is left to the main thread.
    fn submit(&mut self, bytes: &[u8], arrival: &Arrival, sent: &mut Sent) -> Result<Name, Figure> {
        if !self.records.has_room() {
            return Err(Figure::RelayedBooks);
        }
        if let Some(offset) = peek_signature_offset(bytes)
            && self.seen.query(bytes, offset, arrival.received_ns)
        {
            return self.repeated(bytes, arrival, offset);
        }
        let verdict = self.decoder.decode(bytes);
        let offset = match &verdict {
            Ok(accepted) => accepted.signature_offset,
            Err(_) => return Err(Figure::RelayedOther),
        };
        let decoded_ns = self.sending.now_ns();
        // Another thread may have had it since it was asked for, or has it now: then whether it is
        // accepted is not known yet.
        match self.seen.claim(bytes, offset, decoded_ns) {
            Claim::Known => return self.repeated(bytes, arrival, offset),
            Claim::Undecided => return Err(Figure::RelayedOther),
            Claim::New => {}
        }
        if !self.sending.send(bytes, sent) {
            self.seen.retract(bytes, offset);
            return Err(Figure::RelayedLeaders);
        }
        let sent_ns = self.sending.now_ns();
        let note = arrival.note(bytes, decoded_ns, sent_ns);
        self.records.sent(&note, numbers(&verdict), sent);
        self.seen.confirm(bytes, offset);
        let (is_urgent, is_awaited) = (self.sending.is_urgent(), self.sending.is_awaited());
        self.teller.note(self.records.depth(), is_urgent, is_awaited, sent_ns);
        name_of(bytes, offset)
    }

    fn repeated(&mut self, bytes: &[u8], arrival: &Arrival, offset: usize) -> Result<Name, Figure> {
        let name = name_of(bytes, offset)?;
        let now_ns = self.sending.now_ns();
        self.records.repeated(&arrival.note(bytes, now_ns, now_ns), offset);
        self.teller.note(self.records.depth(), false, false, now_ns);
        Ok(name)
    }
}

impl Arrival {
    fn note<'a>(&self, bytes: &'a [u8], decoded_ns: u64, sent_ns: u64) -> record_ring::Note<'a> {
        let &Self { place, received_ns, body_bytes, max_retries } = self;
        record_ring::Note {
            bytes,
            place,
            received_ns,
            decoded_ns,
            sent_ns,
            body_bytes,
            max_retries,
        }
    }
}

impl Name {
    fn text(&self) -> &[u8] {
        self.text.get(..self.size).unwrap_or_default()
    }
}

impl<W: Wire> Desk for FrontDesk<W> {
    type News = News;

    fn knows(&self, token: &[u8]) -> bool {
        self.parts.passes.knows(token)
    }

    fn take(&mut self, request: &Request<'_>, out: &mut Vec<u8>) -> Taken {
        let size = out.len();
        let taken = catch_unwind(AssertUnwindSafe(|| self.admit(request, out)));
        taken.unwrap_or_else(|_| {
            self.parts.figures.add(Figure::Thrown, 1.0);
            out.truncate(size);
            Taken::Relay(Note::default())
        })
    }

    fn health(&mut self, health: &Health<'_>, out: &mut Vec<u8>) {
        self.parts.figures.add(Figure::Requests, 1.0);
        match *health {
            Health::Ping { is_head_only } => self.replies.ping(out, is_head_only),
            Health::Rpc { id } => self.replies.rpc_result(out, id, b"ok"),
        }
    }

    fn relayed(&mut self, _why: Why) {
        self.parts.sending.heed(self.parts.sending.now_ns());
        self.parts.figures.add(Figure::RelayedOther, 1.0);
    }

    fn connections(&mut self, open: usize) {
        self.parts.figures.set(Figure::Connections, open as f64);
    }

    fn awaited(&mut self, count: usize) {
        self.parts.figures.set(Figure::RequestsOpen, count as f64);
    }

    fn refused_relay(&mut self) {
        self.parts.figures.add(Figure::Overloaded, 1.0);
    }

    fn idle(&mut self) {
        let told = self.parts.teller.told();
        if told.state() == State::Runs as u8 {
            told.enter(State::Idle);
        }
    }

    fn left(&mut self) {
        self.parts.figures.add(Figure::Aborted, 1.0);
    }

    fn cut(&mut self, cut: Cut) {
        let figure = match cut {
            Cut::Full => Figure::ConnectionsRefused,
            Cut::Address => Figure::ConnectionsCrowded,
            Cut::Slow => Figure::ConnectionsSlow,
        };
        self.parts.figures.add(figure, 1.0);
    }

    fn news(&mut self, news: News) {
        match news {
            News::Pass(token, pass) => {
                // Where it cannot be kept, the requests of that key go on being relayed.
                self.parts.passes.put(&token, pass);
            }
            News::PassOver(token, place) => {
                self.parts.passes.take_back(&token, place);
                self.parts.teller.told().give_back(place);
            }
        }
    }

    fn end_turn(&mut self) {
        let Parts { sending, records, teller, .. } = &mut self.parts;
        sending.end_turn();
        if sending.take_held_up() {
            teller.hurry();
        }
        teller.end_turn(records.depth(), || sending.now_ns());
    }

    fn wake_in(&self, now_ns: u64) -> Option<Duration> {
        self.parts.teller.wake_in(now_ns)
    }
}

fn figure_of(why: NotAdmitted) -> Figure {
    match why {
        NotAdmitted::Key => Figure::RelayedKey,
        NotAdmitted::Limit => Figure::RelayedLimit,
    }
}

fn name_of(bytes: &[u8], offset: usize) -> Result<Name, Figure> {
    let mut text = [0; SIGNATURE_TEXT_MAX];
    let size = signature_text_at(bytes, offset, &mut text).ok_or(Figure::RelayedOther)?;
    Ok(Name { text, size })
}

fn unix_ms() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_secs_f64() * 1e3
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
