//! QUIC packets written and read by hand, so that a test can put anything into them. RFC 9000
//! sections 12, 16, 17 and 19; RFC 9001 section 5.

use rustls::quic::{Keys, PacketKeySet, Secrets};

/// The packet number spaces, in handshake order.
pub const INITIAL: usize = 0;
pub const HANDSHAKE: usize = 1;
pub const DATA: usize = 2;

/// Length of every connection id that a handwritten server chooses.
pub const ID_BYTES: usize = 8;
/// Every packet number is written in this many bytes.
const NUMBER_BYTES: usize = 4;
pub const VERSION: u32 = 1;
/// The key phase bit of a short header.
const PHASE: u8 = 0x04;

/// The keys of one packet number space, and what was sent and received in it.
#[derive(Default)]
pub struct Space {
    pub keys: Option<Keys>,
    /// The secrets of the next keys, and the next keys.
    later: Option<(Secrets, PacketKeySet)>,
    phase: u8,
    pub next: u64,
    /// Received packet numbers, as ranges that do not touch, the highest last.
    pub received: Vec<(u64, u64)>,
}

impl Space {
    /// The keys of the data space, which are updated now and then: RFC 9001 section 6.
    pub fn change_later(&mut self, mut secrets: Secrets) {
        let next = secrets.next_packet_keys();
        self.later = Some((secrets, next));
    }

    /// Switches to the next keys.
    pub fn change_keys(&mut self) {
        let (Some(keys), Some((secrets, next))) = (&mut self.keys, &mut self.later) else { return };
        let now = std::mem::replace(next, secrets.next_packet_keys());
        (keys.local.packet, keys.remote.packet) = (now.local, now.remote);
        self.phase ^= PHASE;
    }

    pub fn note(&mut self, number: u64) -> bool {
        if self.received.iter().any(|(from, to)| (*from..=*to).contains(&number)) {
            return false;
        }
        self.received.push((number, number));
        self.received.sort_unstable();
        self.received.dedup_by(|next, kept| {
            let touches = kept.1 + 1 == next.0;
            if touches {
                kept.1 = next.1;
            }
            touches
        });
        true
    }

    /// An acknowledgement of exactly the received packets, limited to the newest ranges.
    pub fn ack(&self) -> Vec<u8> {
        let mut ranges = self.received.iter().rev().take(32);
        let Some(&(from, to)) = ranges.next() else { return Vec::new() };
        let count = self.received.len().min(32) as u64 - 1;
        let mut bytes = frame(ACK, &[to, 0, count, to - from], &[]);
        let mut lowest = from;
        for &(from, to) in ranges {
            number(&mut bytes, lowest - to - 2);
            number(&mut bytes, to - from);
            lowest = from;
        }
        bytes
    }
}

/// Writes a varint in the shortest form.
pub fn number(bytes: &mut Vec<u8>, value: u64) {
    let class = [6, 14, 30].iter().filter(|bits| value >> *bits > 0).count();
    let size = 1 << class;
    let whole = (value | (class as u64) << (size * 8 - 2)).to_be_bytes();
    bytes.extend(&whole[8 - size..]);
}

/// Reads a varint of any form.
pub fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let size = 1 << (bytes.first()? >> 6);
    let (taken, rest) = bytes.split_at_checked(size)?;
    *bytes = rest;
    let value = taken.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    Some(value & (u64::MAX >> (66 - 8 * size)))
}

/// A frame, or the beginning of one: numbers, then bytes.
pub fn frame(kind: u64, numbers: &[u64], rest: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    number(&mut bytes, kind);
    for value in numbers {
        number(&mut bytes, *value);
    }
    bytes.extend(rest);
    bytes
}

/// A packet with a long header, sealed.
pub fn long(space: &mut Space, of: usize, to: &[u8], from: &[u8], frames: &[u8]) -> Vec<u8> {
    let kind = [0x00, 0x20][of.min(1)];
    let mut header = vec![0xc0 | kind | (NUMBER_BYTES as u8 - 1)];
    header.extend(VERSION.to_be_bytes());
    for id in [to, from] {
        header.push(id.len() as u8);
        header.extend(id);
    }
    if of == INITIAL {
        header.push(0);
    }
    let tag = space.keys.as_ref().unwrap().local.packet.tag_len();
    let size = NUMBER_BYTES + frames.len().max(4) + tag;
    header.extend((0x4000 | size as u16).to_be_bytes());
    seal(space, header, frames)
}

/// A packet with a short header, sealed.
pub fn short(space: &mut Space, to: &[u8], frames: &[u8]) -> Vec<u8> {
    let mut header = vec![0x40 | space.phase | (NUMBER_BYTES as u8 - 1)];
    header.extend(to);
    seal(space, header, frames)
}

fn seal(space: &mut Space, mut header: Vec<u8>, frames: &[u8]) -> Vec<u8> {
    let own = &space.keys.as_ref().unwrap().local;
    let packet_number = space.next;
    space.next += 1;
    let at = header.len();
    header.extend(&packet_number.to_be_bytes()[8 - NUMBER_BYTES..]);
    // Header protection samples this many bytes.
    let mut payload = frames.to_vec();
    payload.resize(frames.len().max(4), 0);
    let tag = own.packet.encrypt_in_place(packet_number, &header, &mut payload).unwrap();
    let mut packet = header;
    packet.extend(payload);
    packet.extend(tag.as_ref());
    let (head, sample) = packet.split_at_mut(at + 4);
    let (first, rest) = head.split_at_mut(1);
    let protected = &mut rest[at - 1..];
    own.header
        .encrypt_in_place(&sample[..own.header.sample_len()], &mut first[0], protected)
        .unwrap();
    packet
}

/// The parts of a packet that can be read without keys.
pub struct Outline {
    pub space: usize,
    pub to: Vec<u8>,
    /// Empty for a short header.
    pub from: Vec<u8>,
    pub token: Vec<u8>,
    /// Where the packet number begins.
    pub number_at: usize,
    pub size: usize,
}

/// Reads the unprotected part of the first packet of a datagram.
pub fn outline(datagram: &[u8]) -> Option<Outline> {
    let first = *datagram.first()?;
    if first & 0x80 == 0 {
        let to = datagram.get(1..=ID_BYTES)?.to_vec();
        let (from, token, size) = (Vec::new(), Vec::new(), datagram.len());
        return Some(Outline { space: DATA, to, from, token, number_at: 1 + ID_BYTES, size });
    }
    let mut rest = datagram.get(5..)?;
    let mut take_id = || {
        let (size, after) = rest.split_first()?;
        let (id, after) = after.split_at_checked(usize::from(*size))?;
        rest = after;
        Some(id.to_vec())
    };
    let (to, from) = (take_id()?, take_id()?);
    let (space, mut token) = (if first & 0x30 == 0 { INITIAL } else { HANDSHAKE }, Vec::new());
    if space == INITIAL {
        let size = take_number(&mut rest)? as usize;
        let (taken, after) = rest.split_at_checked(size)?;
        token = taken.to_vec();
        rest = after;
    }
    let size = take_number(&mut rest)? as usize;
    let number_at = datagram.len() - rest.len();
    Some(Outline {
        space,
        to,
        from,
        token,
        number_at,
        size: (number_at + size).min(datagram.len()),
    })
}

/// Opens a packet; its number and frames.
pub fn open(space: &mut Space, outline: &Outline, packet: &mut [u8]) -> Option<(u64, Vec<u8>)> {
    let theirs = &space.keys.as_ref()?.remote;
    let at = outline.number_at;
    let (head, sample) = packet.split_at_mut_checked(at + 4)?;
    let (first, rest) = head.split_at_mut(1);
    let sample = sample.get(..theirs.header.sample_len())?;
    theirs.header.decrypt_in_place(sample, &mut first[0], &mut rest[at - 1..]).ok()?;
    let size = usize::from(packet[0] & 3) + 1;
    let truncated = packet[at..at + size]
        .iter()
        .fold(0u64, |truncated, byte| truncated << 8 | u64::from(*byte));
    // RFC 9000 appendix A.3: the number nearest to the expected one.
    let expected = space.received.last().map_or(0, |(_, to)| to + 1);
    let span = 1u64 << (8 * size);
    let near = (expected & !(span - 1)) | truncated;
    let candidates = [near.saturating_sub(span), near, near + span];
    let fitting = candidates.into_iter().filter(|one| one & (span - 1) == truncated);
    let packet_number = fitting.min_by_key(|one| one.abs_diff(expected))?;
    let (header, payload) = packet.split_at_mut(at + size);
    let changed = outline.space == DATA && header[0] & PHASE != space.phase;
    let key = match &space.later {
        Some((_, next)) if changed => &next.remote,
        _ => &theirs.packet,
    };
    let opened = key.decrypt_in_place(packet_number, header, payload).ok()?.to_vec();
    if changed {
        space.change_keys();
    }
    Some((packet_number, opened))
}

pub const ACK: u64 = 0x02;
pub const RESET_STREAM: u64 = 0x04;
pub const STOP_SENDING: u64 = 0x05;
pub const CRYPTO: u64 = 0x06;
pub const NEW_TOKEN: u64 = 0x07;
pub const STREAM: u64 = 0x08;
pub const MAX_DATA: u64 = 0x10;
pub const MAX_STREAM_DATA: u64 = 0x11;
pub const MAX_STREAMS_UNI: u64 = 0x13;
pub const NEW_CONNECTION_ID: u64 = 0x18;
pub const RETIRE_CONNECTION_ID: u64 = 0x19;
pub const PATH_CHALLENGE: u64 = 0x1a;
pub const PATH_RESPONSE: u64 = 0x1b;
pub const CONNECTION_CLOSE: u64 = 0x1c;
pub const HANDSHAKE_DONE: u64 = 0x1e;
pub const DATAGRAM: u64 = 0x30;
pub const ACK_FREQUENCY: u64 = 0xaf;
pub const PING: u64 = 0x01;

/// Close codes: RFC 9000 section 20.1.
pub const INTERNAL: u64 = 0x01;
pub const STREAM_LIMIT: u64 = 0x04;
pub const STREAM_STATE: u64 = 0x05;
pub const ENCODING: u64 = 0x07;
pub const TRANSPORT_PARAMETER: u64 = 0x08;
pub const ID_LIMIT: u64 = 0x09;
pub const VIOLATION: u64 = 0x0a;
pub const CRYPTO_BUFFER: u64 = 0x0d;
