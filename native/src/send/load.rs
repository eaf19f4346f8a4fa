//! Hot path: the copies between the queue and the wire, all of which the next datagram carries.
//!
//! The first is there because it is its turn. Where more wait, further ones join it that fit as a
//! whole: a datagram less costs this machine and the leader a system call, an encryption and a good
//! part of an acknowledgement. Only the one that was written last may be there in part, where flow
//! control stopped it or where it is larger than a datagram; what was written wholly waits for a
//! datagram, which congestion control may hold up.

use bytes::Bytes;
use quinn_proto::{StreamId, WriteError};

use crate::limits::TOGETHER_MAX;
use crate::send::connection::Link;
use crate::send::packing::{order, room_beside, room_of};
use crate::send::peer::{Peer, TxCopy};
use crate::sync::clock::NEVER_NS;

/// Copies that quinn-proto was given and that are not known to be on the wire as a whole. It sends
/// them in their order, and what it has to repeat of others afterwards.
pub(crate) struct Load {
    /// Those before the last, written wholly.
    before: Vec<Written>,
    last: Written,
    /// What quinn-proto did not take of the last one yet.
    rest: Bytes,
    finished: bool,
    /// The most that datagrams can have carried of them.
    carried_max: usize,
}

/// One of them.
#[derive(Clone, Copy)]
struct Written {
    stream: StreamId,
    size: usize,
    until_ns: u64,
}

impl Load {
    pub(crate) fn new(stream: StreamId, copy: TxCopy) -> Self {
        let last = Written { stream, size: copy.bytes.len(), until_ns: copy.until_ns };
        Self { before: Vec::new(), last, rest: copy.bytes, finished: false, carried_max: 0 }
    }

    fn all(&self) -> impl Iterator<Item = &Written> {
        self.before.iter().chain([&self.last])
    }

    /// Those that cannot be on the wire as a whole.
    fn unsent(&self) -> impl Iterator<Item = &Written> {
        let mut end = 0;
        self.all().filter(move |written| {
            end += written.size;
            end > self.carried_max || (written.stream == self.last.stream && !self.finished)
        })
    }

    /// When the first of those is of no more use.
    pub(crate) fn until_ns(&self) -> u64 {
        self.unsent().map(|written| written.until_ns).min().unwrap_or(NEVER_NS)
    }

    /// One of those that is of no more use.
    pub(crate) fn expired(&self, now_ns: u64) -> Option<StreamId> {
        self.unsent().find(|written| written.until_ns <= now_ns).map(|written| written.stream)
    }

    /// quinn-proto made a datagram of that size. One larger than the path takes so far is a probe for
    /// more, and carries nothing.
    pub(crate) fn note_datagram(&mut self, size: usize, mtu: u16) {
        if size <= usize::from(mtu) {
            self.carried_max += size;
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
        let mut stream = conn.send_stream(load.last.stream);
        while !load.rest.is_empty() {
            // `write_chunks` moves what it took out of the slice.
            match stream.write_chunks(std::slice::from_mut(&mut load.rest)) {
                Ok(_) => {}
                Err(WriteError::Blocked) => return,
                // Stopped or gone: its event tells the outcome.
                Err(_) => break,
            }
        }
        let _ = stream.finish();
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
                next.carried_max = load.carried_max;
            }
            self.write_load();
        }
    }

    /// Notes those that are on the wire, now that quinn-proto has nothing left to send.
    pub(crate) fn unload_sent(&mut self, peer: &Peer) {
        let Some(load) = &mut self.load else {
            return;
        };
        let before = std::mem::take(&mut load.before);
        let last = load.finished.then_some(load.last);
        load.carried_max = load.last.size.saturating_sub(load.rest.len());
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
            return place.map(|place| load.before.remove(place)).is_some();
        }
        match load.before.pop() {
            Some(written) => {
                load.last = written;
                load.rest = Bytes::new();
                load.finished = true;
            }
            None => self.load = None,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quinn_proto::{Dir, Side, StreamId};

    use super::{Load, Written};
    use crate::send::peer::TxCopy;
    use crate::sync::clock::NEVER_NS;

    /// Copies of these sizes that quinn-proto took wholly.
    fn load(sizes: &[usize]) -> Load {
        let stream = |index| StreamId::new(Side::Client, Dir::Uni, index as u64);
        let bytes = Bytes::from_static(b"the last");
        let copy = TxCopy { bytes, tx: 0, tag: 0, until_ns: 7 };
        let mut load = Load::new(stream(0), copy);
        let written = |(index, size)| Written { stream: stream(index), size, until_ns: 7 };
        load.before = sizes.iter().copied().enumerate().map(written).collect();
        (load.last, load.finished) = (load.before.pop().unwrap(), true);
        load
    }

    fn expired(load: &Load) -> Vec<u64> {
        load.unsent().map(|written| written.stream.index()).collect()
    }

    #[test]
    fn of_those_that_a_datagram_carried_in_part_only_those_expire_that_it_had_no_room_for() {
        let mut load = load(&[700, 500, 100]);
        assert_eq!((expired(&load), load.until_ns()), (vec![0, 1, 2], 7));
        assert_eq!(load.expired(7).map(StreamId::index), Some(0));
        assert_eq!(load.expired(6), None);
        // A probe for a larger path carries nothing.
        load.note_datagram(1452, 1200);
        assert_eq!(expired(&load), [0, 1, 2]);
        load.note_datagram(1100, 1200);
        assert_eq!((expired(&load), load.until_ns()), (vec![1, 2], 7));
        load.note_datagram(1100, 1200);
        assert_eq!((expired(&load), load.until_ns()), (vec![], NEVER_NS));
        // Of the last, quinn-proto has a part only.
        load.finished = false;
        assert_eq!(expired(&load), [2]);
    }
}
