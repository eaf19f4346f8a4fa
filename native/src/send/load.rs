//! Hot path: the copies between the queue and the wire, all of which the next datagram carries.
//!
//! The first is there because it is its turn. Where more wait, further ones join it that fit as a
//! whole: a datagram less costs this machine and the leader a system call, an encryption and a good
//! part of an acknowledgement. Only the one that was written last may be there in part, where flow
//! control stopped it or where it is larger than a datagram; what was written wholly waits for a
//! datagram, which congestion control may hold up.

use bytes::Bytes;
use quinn_proto::{Connection, StreamId, WriteError};

use crate::clock::NEVER_NS;
use crate::limits::TOGETHER_MAX;
use crate::send::connection::Link;
use crate::send::packing::{order, room_beside, room_of};
use crate::send::peer::{Peer, TxCopy};

/// Copies that quinn-proto was given and that no datagram has carried yet, as far as is known.
pub(crate) struct Load {
    /// Those before the last, written wholly.
    before: Vec<Written>,
    last: Written,
    /// What quinn-proto did not take of the last one yet.
    rest: Bytes,
    finished: bool,
    /// Whether quinn-proto may hold bytes of them, or an end, that no datagram has carried yet.
    unsent: bool,
    /// Of the bytes that quinn-proto took of them, how many no datagram can have carried yet.
    left: usize,
    /// Stream frames sent so far.
    frames: u64,
}

/// One of them.
#[derive(Clone, Copy)]
struct Written {
    stream: StreamId,
    size: usize,
    until_ns: u64,
}

impl Load {
    pub(crate) fn new(stream: StreamId, copy: TxCopy, frames: u64) -> Self {
        let last = Written { stream, size: copy.bytes.len(), until_ns: copy.until_ns };
        let (before, rest) = (Vec::new(), copy.bytes);
        Self { before, last, rest, finished: false, unsent: true, left: 0, frames }
    }

    fn all(&self) -> impl Iterator<Item = &Written> {
        self.before.iter().chain([&self.last])
    }

    /// When the first of them is of no more use.
    pub(crate) fn until_ns(&self) -> u64 {
        self.all().map(|written| written.until_ns).min().unwrap_or(NEVER_NS)
    }

    /// One that is of no more use.
    pub(crate) fn expired(&self, now_ns: u64) -> Option<StreamId> {
        self.all().find(|written| written.until_ns <= now_ns).map(|written| written.stream)
    }

    /// quinn-proto made a datagram of that size.
    pub(crate) fn note_datagram(&mut self, size: usize, conn: &Connection) {
        let frames = conn.stats().frame_tx.stream;
        if frames > self.frames {
            self.frames = frames;
            // A probe of a path that does not answer is smaller than the path allows, and full.
            self.left = self.left.saturating_sub(size.saturating_sub(PACKET_BYTES_MIN));
            self.unsent = self.left > 0 || size + FRAME_SLACK > usize::from(conn.current_mtu());
        }
    }
}

impl Link {
    /// Puts the copies that came in one turn, the last of the waiting ones, in the order in which they
    /// fill datagrams best. None goes before one that waited already, or that one would wait for as
    /// long as others come that fit better; nor does one that no stream is left for go before one that
    /// has one.
    pub(crate) fn arrange(&mut self, peer: &Peer, came: usize) {
        if came < 2 {
            return;
        }
        let waited = self.waiting.len().saturating_sub(came);
        let covered = self.covered(peer, self.waiting.len());
        let Some((_, conn)) = &self.connection else { return };
        let room = room_of(conn.current_mtu());
        let mut copies = self.waiting.split_off(waited);
        let mut left = covered.saturating_sub(waited);
        while left > 0 && !copies.is_empty() {
            let count = copies.len().min(TOGETHER_MAX).min(left);
            left -= count;
            let mut some: Vec<_> = copies.drain(..count).map(Some).collect();
            let sizes = some.iter().flatten().map(|copy| copy.bytes.len());
            for place in order(sizes, room) {
                self.waiting.extend(some.get_mut(place).and_then(Option::take));
            }
        }
        self.waiting.append(&mut copies);
    }

    /// For how many of the first `count` that wait there are streams now, and places in flight.
    fn covered(&mut self, peer: &Peer, count: usize) -> usize {
        if self.spares.len() < count {
            self.look_for_grant(peer);
        }
        self.spares.len().min(self.flights.room()).min(count)
    }

    /// Goes on with the copy that was written last.
    pub(crate) fn write_load(&mut self) {
        let (Some(load), Some((_, conn))) = (&mut self.load, &mut self.connection) else {
            return;
        };
        if load.finished {
            return;
        }
        load.unsent = true;
        let unwritten = load.rest.len();
        let mut stream = conn.send_stream(load.last.stream);
        while !load.rest.is_empty() {
            // `write_chunks` moves what it took out of the slice.
            match stream.write_chunks(std::slice::from_mut(&mut load.rest)) {
                Ok(_) => {}
                Err(WriteError::Blocked) => {
                    load.left += unwritten - load.rest.len();
                    return;
                }
                // Stopped or gone: its event tells the outcome.
                Err(_) => break,
            }
        }
        let _ = stream.finish();
        load.left += unwritten - load.rest.len();
        load.finished = true;
    }

    /// Writes further waiting copies that are whole in the same datagram, of those that the leader's
    /// streams are enough for.
    pub(crate) fn fill_load(&mut self, peer: &Peer, now_ns: u64) {
        while let (Some(load), Some((_, conn))) = (&self.load, &self.connection) {
            if !load.finished || self.waiting.is_empty() {
                return;
            }
            let sizes = load.all().map(|written| written.size);
            let room = room_beside(sizes, room_of(conn.current_mtu()));
            let size_max = room.min(usize::try_from(self.stream_bytes_max).unwrap_or(room));
            let goes = |copy: &TxCopy| copy.bytes.len() <= size_max && copy.until_ns > now_ns;
            let covered = self.covered(peer, self.waiting.len().min(TOGETHER_MAX));
            let Some(place) = self.waiting.iter().take(covered).position(goes) else { return };
            let Some(load) = self.load.take() else { return };
            if !self.take(peer, place) {
                self.load = Some(load);
                return;
            }
            if let Some(next) = &mut self.load {
                next.before = load.before;
                next.before.push(load.last);
                next.left = load.left;
                next.frames = load.frames;
            }
            self.write_load();
        }
    }

    /// Notes those that are on the wire.
    pub(crate) fn unload_sent(&mut self, peer: &Peer) {
        let Some(load) = self.load.as_mut().filter(|load| !load.unsent) else {
            return;
        };
        let before = std::mem::take(&mut load.before);
        let last = load.finished.then_some(load.last);
        if last.is_some() {
            self.load = None;
        }
        for written in before.into_iter().chain(last) {
            self.note_sent(peer, written.stream.index());
        }
    }

    /// Takes one out; whether it was there.
    pub(crate) fn unload(&mut self, stream: StreamId) -> bool {
        let Some(load) = &mut self.load else {
            return false;
        };
        if load.last.stream != stream {
            let place = load.before.iter().position(|written| written.stream == stream);
            let Some(out) = place.map(|place| load.before.remove(place)) else {
                return false;
            };
            load.left = load.left.saturating_sub(out.size);
            return true;
        }
        match load.before.pop() {
            Some(written) => {
                load.left = load.left.saturating_sub(load.last.size);
                load.last = written;
                load.rest = Bytes::new();
                load.finished = true;
            }
            None => self.load = None,
        }
        true
    }
}

/// A datagram with this much room left carried all that its streams had: quinn-proto fills it,
/// but for what it keeps free for the length of a frame that it takes for the last. A copy that
/// ends in so full a datagram counts as sent when it is acknowledged.
const FRAME_SLACK: usize = 8;
/// The least that a datagram holds beside what its streams carry: a short header of 1 and 1 bytes,
/// and a tag of 16.
const PACKET_BYTES_MIN: usize = 18;
