//! Hot path: submissions of QUIC clients. They pass through the same path as those over HTTP, with
//! the key found by the client's public key.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ring::digest::{Context, SHA256};

use crate::decode::limits::TRANSACTION_BYTES_MAX;
use crate::decode::tip::TipRule;
use crate::decode::tx::peek_signature_offset;
use crate::http::rejection::Rejection;
use crate::http::rejection_table::{REASONS, Reason};
use crate::quic_server::handler::{
    ClientLimits, Decision, QuicClient, QuicNumbers, QuicRefusal, StreamCredit, StreamHandler,
    Submission, Tips,
};
use crate::quic_server::verdict::SIGNATURE_BYTES;
use crate::submit::counters::Counter;
use crate::submit::fan_out::EngineHandle;
use crate::submit::key_table::{Digest, Key, is_possible};
use crate::submit::path::RequestMeta;
use crate::submit::rate_limit::Rate;
use crate::submit::requests::{SubmitHandler, unix_ms};

/// What is hashed before a public key: `PUBLIC_KEY_PREFIX` of `src/accounts/keys/public-key.ts`.
const PUBLIC_KEY_PREFIX: &[u8] = b"touchdown public key\0";

/// The SHA-256 by which the key table has a public key.
#[must_use]
pub fn public_key_sha256(public_key: &[u8; 32]) -> [u8; 32] {
    sha256(&[PUBLIC_KEY_PREFIX, public_key])
}

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    parts.iter().for_each(|part| context.update(part));
    let mut bytes = [0; 32];
    bytes.copy_from_slice(context.finish().as_ref());
    bytes
}

impl<E: EngineHandle> SubmitHandler<E> {
    fn key_of(&self, client: &QuicClient) -> Option<Arc<Key>> {
        self.keys.find(Digest::new(&client.key))
    }

    fn submit_stream(&mut self, client: &QuicClient, submission: &Submission<'_>) -> Decision {
        let &Submission { bytes, flags } = submission;
        let received_ns = self.path.inner.fan_out.now_ns();
        self.path.inner.fan_out.flush_if_due(received_ns);
        let offset = peek_signature_offset(bytes);
        let signature = offset.and_then(|offset| signature_at(bytes, offset));
        let key = match self.admit_stream(client, received_ns) {
            Ok(key) => key,
            Err(reason) => return refused_with(reason, signature),
        };
        let is_known = |offset| self.path.inner.dedup.query(bytes, offset, received_ns);
        let is_repeated = flags.is_answered_when_landed && offset.is_some_and(is_known);
        let max_retries = flags.is_sent_once.then_some(0);
        let meta =
            RequestMeta { max_retries, ..RequestMeta::keyed(&key, received_ns, bytes.len()) };
        match self.path.submit(bytes, &meta, &mut self.sent) {
            Ok(_) => Decision { code: 0, signature, is_repeated },
            Err(rejection) => refused_with(rejection.reason, signature),
        }
    }

    /// The client's key, once its limits are charged for a stream; or why the stream is refused,
    /// which is counted and recorded.
    fn admit_stream(&mut self, client: &QuicClient, received_ns: u64) -> Result<Arc<Key>, Reason> {
        self.path.counters.add(Counter::Requests, 1.0);
        let Some(key) = self.key_of(client) else {
            self.path.counters.reject(Reason::Unauthorized);
            return Err(Reason::Unauthorized);
        };
        let admitted = self.keys.admit_key(key, client.from, received_ns, unix_ms);
        admitted.map_err(|not_admitted| self.not_admitted(not_admitted, received_ns).reason)
    }
}

impl<E: EngineHandle> StreamHandler for SubmitHandler<E> {
    fn key_of_certificate(&self, public_key: &[u8; 32]) -> [u8; 32] {
        public_key_sha256(public_key)
    }

    fn key_of_token(&self, token: &[u8]) -> Option<[u8; 32]> {
        is_possible(token).then(|| sha256(&[token]))
    }

    fn has_read_keys(&self) -> bool {
        self.keys.is_read()
    }

    fn knows(&self, client: &QuicClient) -> bool {
        self.key_of(client).is_some()
    }

    fn account_of(&self, client: &QuicClient) -> Option<u64> {
        let key = self.key_of(client)?;
        key.violation(client.from, unix_ms).is_none().then(|| key.account_number())
    }

    fn credit(&self, client: &QuicClient) -> StreamCredit {
        let Some(key) = self.key_of(client) else {
            return StreamCredit { streams: 0, more_in_ns: None, burst: 0 };
        };
        let now_ns = self.path.inner.fan_out.now_ns() as f64;
        let (streams, more_in_ns) = self.keys.available(&key, now_ns);
        let more_in_ns = more_in_ns.is_finite().then_some(more_in_ns as u64);
        StreamCredit { streams, more_in_ns, burst: key.rate().burst as u32 }
    }

    fn limits(&self, client: &QuicClient) -> Option<ClientLimits> {
        let Rate { rate_per_second, burst } = self.key_of(client)?.rate();
        // A whole number of at most a million.
        Some(ClientLimits { rate_per_second, burst: burst as u32 })
    }

    fn tips(&self) -> Tips {
        let TipRule { accounts, lamports_min } = self.path.inner.decoder.tip_rule();
        Tips {
            lamports_min: u64::try_from(*lamports_min).unwrap_or_default(),
            accounts: accounts.clone(),
        }
    }

    fn submit(&mut self, client: &QuicClient, submission: &Submission<'_>) -> Decision {
        let decide = AssertUnwindSafe(|| self.submit_stream(client, submission));
        catch_unwind(decide).unwrap_or_else(|_| {
            let _ = self.path.inner.records.void();
            self.path.counters.add(Counter::HandlerErrors, 1.0);
            refused_with(Reason::Internal, None)
        })
    }

    fn refused(&mut self, client: Option<&QuicClient>, refusal: QuicRefusal, bytes: usize) -> u32 {
        let received_ns = self.path.inner.fan_out.now_ns();
        let reason = reason_of(refusal);
        let message = message_of(refusal, bytes);
        let costs_one = matches!(
            refusal,
            QuicRefusal::TooLarge
                | QuicRefusal::Slow
                | QuicRefusal::Flags
                | QuicRefusal::SecondControl
        );
        let key = match client {
            Some(client) if costs_one => match self.admit_stream(client, received_ns) {
                Ok(key) => Some(key),
                // It was counted as what the key's limits say.
                Err(reason) => return code_of(reason),
            },
            Some(client) => self.key_of(client),
            None => None,
        };
        match key {
            Some(key) => {
                let meta = RequestMeta::keyed(&key, received_ns, bytes);
                let violation = match client {
                    Some(client) if refusal == QuicRefusal::Unauthorized => {
                        key.violation(client.from, unix_ms)
                    }
                    _ => None,
                };
                match violation {
                    Some(violation) => self.path.violated(&violation.for_account, &meta),
                    None => self.path.reject(&Rejection::new(reason, message), &meta),
                }
            }
            None => self.path.counters.reject(reason),
        }
        self.code(refusal)
    }

    fn code(&self, refusal: QuicRefusal) -> u32 {
        code_of(reason_of(refusal))
    }

    fn publish(&mut self, numbers: &QuicNumbers) {
        let &QuicNumbers {
            connections,
            handshakes,
            followers,
            connected,
            handshakes_refused,
            handshakes_delayed,
            retries,
            streams_aborted,
            datagrams_dropped,
            datagrams_refused,
            datagrams_forwarded,
            forwards_dropped,
            receipts_dropped,
            streams_withheld,
            landings_unawaited,
            panics,
        } = numbers;
        for (counter, number) in [
            (Counter::QuicConnections, connections),
            (Counter::QuicHandshakes, handshakes),
            (Counter::QuicFollowers, followers),
            (Counter::QuicConnected, connected),
            (Counter::QuicHandshakesRefused, handshakes_refused),
            (Counter::QuicHandshakesDelayed, handshakes_delayed),
            (Counter::QuicRetries, retries),
            (Counter::QuicStreamsAborted, streams_aborted),
            (Counter::QuicDatagramsDropped, datagrams_dropped),
            (Counter::QuicDatagramsRefused, datagrams_refused),
            (Counter::QuicDatagramsForwarded, datagrams_forwarded),
            (Counter::QuicForwardsDropped, forwards_dropped),
            (Counter::QuicReceiptsDropped, receipts_dropped),
            (Counter::QuicStreamsWithheld, streams_withheld),
            (Counter::QuicLandingsUnawaited, landings_unawaited),
            (Counter::QuicPanics, panics),
        ] {
            self.path.counters.set(counter, number as f64);
        }
    }
}

fn refused_with(reason: Reason, signature: Option<[u8; SIGNATURE_BYTES]>) -> Decision {
    Decision { code: code_of(reason), signature, is_repeated: false }
}

fn code_of(reason: Reason) -> u32 {
    // Every reason has a row.
    REASONS.get(reason as usize).map_or(1, |row| row.quic_code)
}

fn signature_at(bytes: &[u8], offset: usize) -> Option<[u8; SIGNATURE_BYTES]> {
    bytes.get(offset..)?.first_chunk().copied()
}

fn reason_of(refusal: QuicRefusal) -> Reason {
    match refusal {
        QuicRefusal::Unauthorized | QuicRefusal::NoHello => Reason::Unauthorized,
        QuicRefusal::AccountConnections | QuicRefusal::Followers => Reason::RateLimited,
        QuicRefusal::TooLarge => Reason::TooLarge,
        QuicRefusal::Slow => Reason::Undecodable,
        QuicRefusal::Draining | QuicRefusal::KeysUnread => Reason::Overloaded,
        QuicRefusal::Flags | QuicRefusal::Frame | QuicRefusal::SecondControl => {
            Reason::InvalidRequest
        }
    }
}

fn message_of(refusal: QuicRefusal, bytes: usize) -> String {
    match refusal {
        QuicRefusal::Unauthorized => KEY_NOT_VALID.into(),
        QuicRefusal::NoHello => NO_HELLO.into(),
        QuicRefusal::KeysUnread => KEYS_UNREAD.into(),
        QuicRefusal::AccountConnections => ACCOUNT_CONNECTIONS.into(),
        QuicRefusal::Followers => FOLLOWERS.into(),
        QuicRefusal::TooLarge => format!(
            "a stream with more than {TRANSACTION_BYTES_MAX} bytes, a transaction has at most that \
             many"
        ),
        QuicRefusal::Slow => {
            format!("a stream that was not finished in time, {bytes} bytes of it arrived")
        }
        QuicRefusal::Draining => DRAINING.into(),
        QuicRefusal::Flags => FLAGS_UNKNOWN.into(),
        QuicRefusal::Frame => FRAME_INVALID.into(),
        QuicRefusal::SecondControl => SECOND_CONTROL.into(),
    }
}

const KEY_NOT_VALID: &str = "the connection's key is not valid, or no longer";
const NO_HELLO: &str = "the client did not say within 5 s who it is";
const KEYS_UNREAD: &str = "this edge has not read its keys yet; connect again a little later";
const FLAGS_UNKNOWN: &str =
    "a flags byte with a flag that is not known here; 0x01 and 0x02 may be set beside 0x40";
const FRAME_INVALID: &str =
    "a control stream begins with one HELLO frame of version 1, and nothing follows it";
const SECOND_CONTROL: &str = "a second control stream; a connection has one";
const FOLLOWERS: &str = "16 QUIC connections of the account want receipts, which is the most";
const ACCOUNT_CONNECTIONS: &str = "the account has as many QUIC connections as it may";
const DRAINING: &str = "this edge drains; connect to another one, or again a little later";
