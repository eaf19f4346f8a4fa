//! One connection of a client: its unfinished streams, its credit and its timer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

use bytes::Bytes;
use quinn_proto::{Connection, Dir, ReadError, StreamId, VarInt};
use rustls::pki_types::CertificateDer;

use crate::quic_server::handler::{QuicClient, QuicRefusal, StreamCredit, StreamHandler};
use crate::quic_server::limits::{
    CREDIT_LOOKS, CREDIT_NS_MIN, STREAM_BYTES_MAX, STREAMS_AHEAD_MAX,
};
use crate::quic_server::tls::public_key_of;
use crate::sync::clock::NEVER_NS;

/// What is known of the client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Phase {
    /// The handshake is in progress.
    Handshake,
    /// Its key is valid and belongs to this account.
    Open { public_key: [u8; 32], account: u64 },
    /// It is closed, and kept to answer what its client still sends.
    Closed,
}

pub(super) struct ClientConnection {
    pub(super) inner: Connection,
    pub(super) phase: Phase,
    /// The address that it counts for.
    pub(super) source: IpAddr,
    /// Whether the client proved that address, by a Retry or by a complete handshake.
    pub(super) is_proved: bool,
    /// When its handshake must be finished; once it is closed, when it is forgotten.
    pub(super) until_ns: u64,
    /// Whether it is listed to be driven.
    pub(super) is_listed: bool,
    /// The timer that is armed for it.
    pub(super) armed_ns: u64,
    /// When its credit is to be looked at again.
    pub(super) credit_at_ns: u64,
    pub(super) streams: HashMap<StreamId, UnfinishedStream>,
}

pub(super) struct UnfinishedStream {
    bytes: Vec<u8>,
    finish_by_ns: u64,
}

/// What a read of a stream came to.
enum ReadResult {
    Finished,
    Unfinished,
    TooLarge,
    Reset,
}

impl ClientConnection {
    pub(super) fn new(
        inner: Connection,
        source: IpAddr,
        is_proved: bool,
        handshake_by_ns: u64,
    ) -> Self {
        Self {
            inner,
            phase: Phase::Handshake,
            source,
            is_proved,
            until_ns: handshake_by_ns,
            is_listed: false,
            armed_ns: NEVER_NS,
            credit_at_ns: NEVER_NS,
            streams: HashMap::new(),
        }
    }

    /// The client, if its key is known.
    pub(super) fn client(&self) -> Option<QuicClient> {
        match self.phase {
            Phase::Open { public_key, .. } => Some(self.client_of(public_key)),
            Phase::Handshake | Phase::Closed => None,
        }
    }

    pub(super) fn client_of(&self, public_key: [u8; 32]) -> QuicClient {
        let from = self.inner.remote_address().ip().to_canonical();
        QuicClient { public_key, from }
    }

    /// The Ed25519 public key that the client has proved; None without one.
    pub(super) fn proved_key(&self) -> Option<[u8; 32]> {
        let identity = self.inner.crypto_session().peer_identity()?;
        let certificates = identity.downcast::<Vec<CertificateDer<'static>>>().ok()?;
        public_key_of(certificates.first()?)
    }

    /// Closes it with the code of a refusal, which also every unfinished stream gets.
    pub(super) fn close<H: StreamHandler>(
        &mut self,
        refusal: QuicRefusal,
        now: Instant,
        handler: &mut H,
    ) {
        let client = self.client();
        let mut code = None;
        for (_, stream) in std::mem::take(&mut self.streams) {
            code = Some(handler.refused(client.as_ref(), refusal, stream.bytes.len()));
        }
        let code = code.unwrap_or_else(|| handler.refused(client.as_ref(), refusal, 0));
        self.close_with(code, refusal, now);
    }

    pub(super) fn close_with(&mut self, code: u32, refusal: QuicRefusal, now: Instant) {
        self.inner.close(now, VarInt::from_u32(code), Bytes::from_static(phrase_of(refusal)));
    }

    /// Reads the streams that the client has opened.
    pub(super) fn accept_streams<H: StreamHandler>(
        &mut self,
        finish_by_ns: u64,
        handler: &mut H,
    ) -> u64 {
        let mut aborted = 0;
        while let Some(id) = self.inner.streams().accept(Dir::Uni) {
            aborted += self.read(id, finish_by_ns, handler);
        }
        aborted
    }

    /// Reads what has arrived of a stream; returns 1 if the client gave it up.
    pub(super) fn read<H: StreamHandler>(
        &mut self,
        id: StreamId,
        finish_by_ns: u64,
        handler: &mut H,
    ) -> u64 {
        let Some(client) = self.client() else { return 0 };
        let mut stream = self.streams.remove(&id);
        // A transaction in one piece, as most arrive, is submitted without a copy.
        let mut first: Option<Bytes> = None;
        let result = {
            let mut receiver = self.inner.recv_stream(id);
            let Ok(mut chunks) = receiver.read(true) else { return 0 };
            loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => {
                        let held = stream.as_ref().map_or(0, |stream| stream.bytes.len());
                        let size = held + first.as_ref().map_or(0, Bytes::len) + chunk.bytes.len();
                        if size > STREAM_BYTES_MAX {
                            break ReadResult::TooLarge;
                        }
                        if stream.is_none() && first.is_none() {
                            first = Some(chunk.bytes);
                            continue;
                        }
                        let unfinished = stream.get_or_insert_with(|| UnfinishedStream {
                            bytes: Vec::new(),
                            finish_by_ns,
                        });
                        if let Some(first) = first.take() {
                            unfinished.bytes.extend_from_slice(&first);
                        }
                        unfinished.bytes.extend_from_slice(&chunk.bytes);
                    }
                    Ok(None) => break ReadResult::Finished,
                    Err(ReadError::Blocked) => break ReadResult::Unfinished,
                    Err(ReadError::Reset(_)) => break ReadResult::Reset,
                }
            }
        };
        match result {
            ReadResult::Finished => {
                let bytes = match (&first, &stream) {
                    (Some(bytes), _) => bytes.as_ref(),
                    (None, Some(stream)) => stream.bytes.as_slice(),
                    (None, None) => &[],
                };
                handler.submit(&client, bytes);
            }
            ReadResult::Unfinished => {
                let held = stream.unwrap_or_else(|| UnfinishedStream {
                    bytes: first.take().map_or_else(Vec::new, |bytes| bytes.to_vec()),
                    finish_by_ns,
                });
                self.streams.insert(id, held);
            }
            ReadResult::TooLarge => {
                let code = handler.refused(Some(&client), QuicRefusal::TooLarge, STREAM_BYTES_MAX);
                self.stop(id, code);
            }
            ReadResult::Reset => return 1,
        }
        0
    }

    /// Stops the streams that were not finished in time.
    pub(super) fn stop_slow_streams<H: StreamHandler>(&mut self, now_ns: u64, handler: &mut H) {
        let Some(client) = self.client() else { return };
        let is_late = |stream: &UnfinishedStream| stream.finish_by_ns <= now_ns;
        if !self.streams.values().any(is_late) {
            return;
        }
        let late: Vec<StreamId> =
            self.streams.iter().filter(|(_, stream)| is_late(stream)).map(|(id, _)| *id).collect();
        for id in late {
            let size = self.streams.remove(&id).map_or(0, |stream| stream.bytes.len());
            let code = handler.refused(Some(&client), QuicRefusal::Slow, size);
            self.stop(id, code);
        }
    }

    /// Grants as many streams as the account's limits admit now; it has so many connections.
    pub(super) fn grant_streams<H: StreamHandler>(
        &mut self,
        now_ns: u64,
        connections: usize,
        handler: &H,
    ) {
        let Some(client) = self.client() else { return };
        let StreamCredit { streams, more_in_ns } = handler.credit(&client);
        let ahead = streams.min(STREAMS_AHEAD_MAX);
        self.inner.set_max_concurrent_streams(Dir::Uni, VarInt::from_u32(ahead));
        // Without this the streams that end before the next call would be granted again at once.
        if streams < 2 * STREAMS_AHEAD_MAX {
            self.inner.set_max_concurrent_streams(Dir::Uni, VarInt::from_u32(0));
        }
        self.credit_at_ns = match more_in_ns {
            Some(more_in_ns) if ahead < STREAMS_AHEAD_MAX => {
                now_ns.saturating_add(next_look_in_ns(more_in_ns, connections))
            }
            _ => NEVER_NS,
        };
    }

    fn stop(&mut self, id: StreamId, code: u32) {
        // It fails for a stream that ended meanwhile.
        let _ = self.inner.recv_stream(id).stop(VarInt::from_u32(code));
    }
}

/// When to look at the credit of a connection again. The more connections an account has, the later:
/// all of them together cost no more than a few.
fn next_look_in_ns(more_in_ns: u64, connections: usize) -> u64 {
    let all_ns = CREDIT_NS_MIN.saturating_mul(connections as u64) / CREDIT_LOOKS;
    more_in_ns.max(CREDIT_NS_MIN).max(all_ns)
}

/// The reason phrase of a CONNECTION_CLOSE.
fn phrase_of(refusal: QuicRefusal) -> &'static [u8] {
    match refusal {
        QuicRefusal::Unauthorized => b"unauthorized: no certificate with a valid Ed25519 key",
        QuicRefusal::AccountConnections => b"rate_limited: too many connections",
        QuicRefusal::TooLarge => b"too_large",
        QuicRefusal::Slow => b"undecodable: not finished in time",
        QuicRefusal::Draining => b"overloaded: this edge drains",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::clock::NS_PER_MS;

    #[test]
    fn connections_of_one_account_are_looked_at_as_often_as_sixteen() {
        assert_eq!(next_look_in_ns(1, 1), 10 * NS_PER_MS);
        assert_eq!(next_look_in_ns(1, 16), 10 * NS_PER_MS);
        assert_eq!(next_look_in_ns(1, 1000), 625 * NS_PER_MS);
        assert_eq!(next_look_in_ns(NS_PER_MS * 1000, 1000), 1000 * NS_PER_MS);
    }
}
