//! Hot path: submissions of QUIC clients. They pass through the same path as those over HTTP, with
//! the key found by the client's public key. What an ingress thread would leave to the main thread
//! is refused here, because no request can be proxied: a stream is no HTTP request.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ring::digest::{Context, SHA256};

use crate::decode::limits::TRANSACTION_BYTES_MAX;
use crate::http::rejection::Rejection;
use crate::http::rejection_table::{REASONS, Reason};
use crate::quic_server::handler::{
    QuicClient, QuicNumbers, QuicRefusal, StreamCredit, StreamHandler,
};
use crate::submit::counters::Counter;
use crate::submit::fan_out::EngineHandle;
use crate::submit::key_table::{Digest, Key, NotAdmitted};
use crate::submit::path::{RequestMeta, SubmitHandler, unix_ms};

/// What is hashed before a public key: `PUBLIC_KEY_PREFIX` of `src/accounts/keys/public-key.ts`.
const PUBLIC_KEY_PREFIX: &[u8] = b"touchdown public key\0";

/// The digest by which the key table has a public key.
#[must_use]
pub fn public_key_digest(public_key: &[u8; 32]) -> Digest {
    let mut context = Context::new(&SHA256);
    context.update(PUBLIC_KEY_PREFIX);
    context.update(public_key);
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    Digest::new(&bytes)
}

impl<E: EngineHandle> SubmitHandler<E> {
    fn key_of(&self, client: &QuicClient) -> Option<Arc<Key>> {
        self.path.keys.find(public_key_digest(&client.public_key))
    }

    fn submit_stream(&mut self, client: &QuicClient, bytes: &[u8]) {
        let received_ns = self.path.fan_out.now_ns();
        self.path.fan_out.flush_if_due(received_ns);
        let Some(key) = self.admit_stream(client, received_ns) else { return };
        let meta =
            RequestMeta { key: &key, received_ns, body_bytes: bytes.len(), max_retries: None };
        let Err(unanswered) = self.path.submit(bytes, &meta, &mut self.sent) else { return };
        let rejection = if unanswered.counter == Counter::ProxiedLeaders {
            Rejection::no_leader()
        } else {
            Rejection::new(Reason::Overloaded, BUSY.into())
        };
        self.path.reject(&rejection, &meta, self.path.fan_out.now_ns(), None);
    }

    /// The client's key, once its limits are charged for a stream; None if the stream is refused,
    /// which is counted and recorded.
    fn admit_stream(&mut self, client: &QuicClient, received_ns: u64) -> Option<Arc<Key>> {
        self.path.counters.add(Counter::Requests, 1.0);
        let Some(key) = self.key_of(client) else {
            self.path.counters.reject(Reason::Unauthorized);
            return None;
        };
        let meta_of = |key| RequestMeta { key, received_ns, body_bytes: 0, max_retries: None };
        match self.path.keys.admit_key(key, client.from, received_ns, unix_ms) {
            Ok(key) => return Some(key),
            Err(NotAdmitted::Limited(key, rejection)) => {
                self.path.reject(&rejection, &meta_of(&key), 0, None);
            }
            Err(NotAdmitted::OutOfPolicy(key, violation)) => {
                self.path.violated(&violation.for_account, &meta_of(&key));
            }
            Err(NotAdmitted::Unknown(_)) => self.path.counters.reject(Reason::Unauthorized),
            Err(NotAdmitted::Undecided) => self.path.counters.reject(Reason::Overloaded),
        }
        None
    }
}

impl<E: EngineHandle> StreamHandler for SubmitHandler<E> {
    fn account_of(&self, client: &QuicClient) -> Option<u64> {
        let key = self.key_of(client)?;
        key.violation(client.from, unix_ms).is_none().then(|| key.account_number())
    }

    fn credit(&self, client: &QuicClient) -> StreamCredit {
        let Some(key) = self.key_of(client) else {
            return StreamCredit { streams: 0, more_in_ns: None };
        };
        let now_ns = self.path.fan_out.now_ns() as f64;
        let (streams, more_in_ns) = self.path.keys.available(&key, now_ns);
        let more_in_ns = more_in_ns.is_finite().then_some(more_in_ns as u64);
        StreamCredit { streams, more_in_ns }
    }

    fn submit(&mut self, client: &QuicClient, bytes: &[u8]) {
        if catch_unwind(AssertUnwindSafe(|| self.submit_stream(client, bytes))).is_err() {
            let _ = self.path.records.void();
            self.path.counters.add(Counter::HandlerErrors, 1.0);
        }
    }

    fn refused(&mut self, client: Option<&QuicClient>, refusal: QuicRefusal, bytes: usize) -> u32 {
        let received_ns = self.path.fan_out.now_ns();
        let reason = reason_of(refusal);
        let message = message_of(refusal, bytes);
        let costs_one = matches!(refusal, QuicRefusal::TooLarge | QuicRefusal::Slow);
        let key = client.and_then(|client| match costs_one {
            true => self.admit_stream(client, received_ns),
            false => self.key_of(client),
        });
        match key {
            Some(key) => {
                let meta =
                    RequestMeta { key: &key, received_ns, body_bytes: bytes, max_retries: None };
                self.path.reject(&Rejection::new(reason, message), &meta, 0, None);
            }
            // With `costs_one` it was counted as what the key's limits say.
            None if costs_one && client.is_some() => {}
            None => self.path.counters.reject(reason),
        }
        self.code(refusal)
    }

    fn code(&self, refusal: QuicRefusal) -> u32 {
        // Every reason has a row.
        REASONS.get(reason_of(refusal) as usize).map_or(1, |row| row.quic_code)
    }

    fn publish(&mut self, numbers: &QuicNumbers) {
        let &QuicNumbers {
            connections,
            handshakes,
            connected,
            handshakes_refused,
            retries,
            streams_aborted,
            datagrams_dropped,
            panics,
        } = numbers;
        for (counter, number) in [
            (Counter::QuicConnections, connections),
            (Counter::QuicHandshakes, handshakes),
            (Counter::QuicConnected, connected),
            (Counter::QuicHandshakesRefused, handshakes_refused),
            (Counter::QuicRetries, retries),
            (Counter::QuicStreamsAborted, streams_aborted),
            (Counter::QuicDatagramsDropped, datagrams_dropped),
            (Counter::QuicPanics, panics),
        ] {
            self.path.counters.set(counter, number as f64);
        }
    }
}

fn reason_of(refusal: QuicRefusal) -> Reason {
    match refusal {
        QuicRefusal::Unauthorized => Reason::Unauthorized,
        QuicRefusal::AccountConnections => Reason::RateLimited,
        QuicRefusal::TooLarge => Reason::TooLarge,
        QuicRefusal::Slow => Reason::Undecodable,
        QuicRefusal::Draining => Reason::Overloaded,
    }
}

fn message_of(refusal: QuicRefusal, bytes: usize) -> String {
    match refusal {
        QuicRefusal::Unauthorized => KEY_NOT_VALID.into(),
        QuicRefusal::AccountConnections => ACCOUNT_CONNECTIONS.into(),
        QuicRefusal::TooLarge => format!(
            "a stream with more than {TRANSACTION_BYTES_MAX} bytes, a transaction has at most that \
             many"
        ),
        QuicRefusal::Slow => {
            format!("a stream that was not finished in time, {bytes} bytes of it arrived")
        }
        QuicRefusal::Draining => DRAINING.into(),
    }
}

const BUSY: &str = "this thread cannot decide on the transaction now; send it again";
const KEY_NOT_VALID: &str = "the connection's public key is not valid, or no longer";
const ACCOUNT_CONNECTIONS: &str = "the account has as many QUIC connections as it may";
const DRAINING: &str = "this edge drains; connect to another one, or again a little later";
