//! The frames that a client sends: RFC 9000 section 19.

use std::collections::HashMap;

use super::packets::{
    ACK, ACK_FREQUENCY, CONNECTION_CLOSE, CRYPTO, NEW_CONNECTION_ID, NEW_TOKEN, STREAM, take_number,
};

/// Everything received from a client so far.
#[derive(Default)]
pub struct Received {
    /// Number of frames of each type; all stream types count as `STREAM`.
    pub frames: HashMap<u64, u64>,
    pub datagrams: u64,
    pub bytes: u64,
    /// The code it closed with.
    pub closed: Option<u64>,
    /// Complete streams by their number.
    pub streams: HashMap<u64, Vec<u8>>,
    /// Every received part of a stream, in order.
    pub pieces: Vec<Piece>,
    parts: HashMap<u64, Vec<u8>>,
    /// Contiguous handshake bytes of each space.
    pub crypto: [Vec<u8>; 3],
    /// The highest acknowledged packet of this side, in each space.
    pub acked: [Option<u64>; 3],
}

/// A part of a stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// The datagram that carried it.
    pub datagram: u64,
    pub stream: u64,
    pub at: usize,
    pub size: usize,
    pub is_last: bool,
}

impl Received {
    /// Reads the frames of one packet; returns whether they elicit an acknowledgement, None if they
    /// are malformed.
    pub fn take(&mut self, space: usize, mut rest: &[u8]) -> Option<bool> {
        let rest = &mut rest;
        let mut elicits = false;
        while !rest.is_empty() {
            let kind = take_number(rest)?;
            let place = if (0x08..=0x0f).contains(&kind) { STREAM } else { kind };
            *self.frames.entry(place).or_default() += 1;
            elicits |= !matches!(kind, 0x00 | ACK | 0x03 | CONNECTION_CLOSE | 0x1d);
            match kind {
                ACK | 0x03 => self.take_ack(space, kind, rest)?,
                CRYPTO => {
                    let (at, bytes) = (take_number(rest)? as usize, take_bytes(rest)?);
                    let whole = &mut self.crypto[space];
                    if at <= whole.len() && at + bytes.len() > whole.len() {
                        whole.extend(&bytes[whole.len() - at..]);
                    }
                }
                NEW_TOKEN => drop(take_bytes(rest)?),
                0x08..=0x0f => self.take_stream(kind, rest)?,
                NEW_CONNECTION_ID => {
                    skip(rest, 2)?;
                    let (size, after) = rest.split_first()?;
                    *rest = after.get(usize::from(*size) + 16..)?;
                }
                0x1a | 0x1b => *rest = rest.get(8..)?,
                CONNECTION_CLOSE | 0x1d => {
                    self.closed = take_number(rest);
                    skip(rest, usize::from(kind == CONNECTION_CLOSE))?;
                    take_bytes(rest)?;
                }
                0x00 | 0x01 | 0x1e | 0x1f => {}
                0x04 => skip(rest, 3)?,
                0x05 | 0x11 | 0x15 => skip(rest, 2)?,
                0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => skip(rest, 1)?,
                ACK_FREQUENCY => skip(rest, 4)?,
                _ => return None,
            }
        }
        Some(elicits)
    }

    pub fn count(&self, kind: u64) -> u64 {
        self.frames.get(&kind).copied().unwrap_or(0)
    }

    fn take_ack(&mut self, space: usize, kind: u64, rest: &mut &[u8]) -> Option<()> {
        let largest = take_number(rest)?;
        self.acked[space] = self.acked[space].max(Some(largest));
        skip(rest, 1)?;
        let ranges = take_number(rest)? as usize;
        skip(rest, 1 + 2 * ranges + if kind == ACK { 0 } else { 3 })
    }

    fn take_stream(&mut self, kind: u64, rest: &mut &[u8]) -> Option<()> {
        let id = take_number(rest)?;
        let at = if kind & 4 == 0 { 0 } else { take_number(rest)? as usize };
        let bytes = if kind & 2 == 0 { std::mem::take(rest) } else { take_bytes(rest)? };
        let is_last = kind & 1 == 1;
        let (datagram, size) = (self.datagrams, bytes.len());
        self.pieces.push(Piece { datagram, stream: id, at, size, is_last });
        let part = self.parts.entry(id).or_default();
        if at == part.len() {
            part.extend(bytes);
        }
        if is_last && at + bytes.len() == part.len() {
            self.streams.insert(id, part.clone());
        }
        Some(())
    }
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let size = take_number(rest)? as usize;
    let (bytes, after) = rest.split_at_checked(size)?;
    *rest = after;
    Some(bytes)
}

fn skip(rest: &mut &[u8], numbers: usize) -> Option<()> {
    (0..numbers).try_for_each(|_| take_number(rest).map(drop))
}
