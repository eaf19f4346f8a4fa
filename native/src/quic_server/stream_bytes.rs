//! What arrives on one stream, up to the size of a transaction. A transaction in one piece, as most
//! arrive, is handed on without a copy.

use bytes::Bytes;
use quinn_proto::{Connection, ReadError, StreamId, VarInt};

use crate::quic_server::first_byte::has_flags;
use crate::quic_server::limits::STREAM_BYTES_MAX;

/// What has arrived of a stream.
pub(super) enum Arrived {
    /// All of it.
    Whole(Content),
    /// The beginning.
    Part(Content),
    /// More than a transaction has.
    TooLarge,
    /// The client gave it up, with this code.
    Reset(VarInt),
}

/// Bytes of a stream from its start.
pub(super) enum Content {
    /// In one piece.
    One(Bytes),
    /// Joined.
    Joined(Vec<u8>),
}

impl Content {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::One(bytes) => bytes,
            Self::Joined(bytes) => bytes,
        }
    }

    pub(super) fn into_vec(self) -> Vec<u8> {
        match self {
            Self::One(bytes) => bytes.to_vec(),
            Self::Joined(bytes) => bytes,
        }
    }

    fn and(self, more: Bytes) -> Self {
        if self.bytes().is_empty() {
            return Self::One(more);
        }
        let mut all = self.into_vec();
        all.extend_from_slice(&more);
        Self::Joined(all)
    }
}

/// Reads what has arrived since `held`; None if the stream has ended before. With `may_have_flags`
/// a flags byte is no part of the transaction.
pub(super) fn read_available(
    connection: &mut Connection,
    id: StreamId,
    held: Vec<u8>,
    may_have_flags: bool,
) -> Option<Arrived> {
    let mut receiver = connection.recv_stream(id);
    let mut chunks = receiver.read(true).ok()?;
    let mut content = Content::Joined(held);
    loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => {
                content = content.and(chunk.bytes);
                let bytes = content.bytes();
                let flags = usize::from(may_have_flags && has_flags(bytes));
                if bytes.len() > STREAM_BYTES_MAX + flags {
                    return Some(Arrived::TooLarge);
                }
            }
            Ok(None) => return Some(Arrived::Whole(content)),
            Err(ReadError::Blocked) => return Some(Arrived::Part(content)),
            Err(ReadError::Reset(code)) => return Some(Arrived::Reset(code)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_piece_is_not_copied() {
        let piece = Bytes::from_static(b"one");
        let at = piece.as_ptr();
        let content = Content::Joined(Vec::new()).and(piece);
        assert_eq!((content.bytes().as_ptr(), content.bytes()), (at, &b"one"[..]));
        let content = content.and(Bytes::from_static(b", two"));
        assert_eq!(content.bytes(), b"one, two");
        assert_eq!(content.into_vec(), b"one, two");
    }
}
