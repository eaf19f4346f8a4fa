//! What becomes of the transactions of QUIC clients.

use super::*;
use std::net::IpAddr;

use crate::quic_server::first_byte::Flags;
use crate::quic_server::handler::{
    ClientLimits, Decision, QuicClient, QuicNumbers, QuicRefusal, StreamCredit, StreamHandler,
    Submission,
};
use crate::submit::streams::public_key_sha256;

const PUBLIC_KEY: [u8; 32] = [7; 32];
/// The field of a record with the decoder's result, and that of a valid transaction.
const VALIDATION: usize = 14;
const VALID: f64 = 1.0;

fn client() -> QuicClient {
    QuicClient { key: public_key_sha256(&PUBLIC_KEY), from: IpAddr::V4(Ipv4Addr::LOCALHOST) }
}

/// With the public key of `client`, on the account and the limit of `TOKEN`.
fn fixture_with(burst: f64, policy: Option<PolicyTerms>) -> Fixture {
    let fixture = Fixture::new(burst);
    let digest = Digest::new(&client().key);
    assert!(fixture.handler.keys.put(KeyTerms { digest, policy, ..terms(TOKEN, "acme") }));
    fixture
}

impl Fixture {
    fn stream(&mut self, bytes: &[u8]) -> Decision {
        self.flagged(bytes, Flags::default())
    }

    fn flagged(&mut self, bytes: &[u8], flags: Flags) -> Decision {
        self.handler.submit(&client(), &Submission { bytes, flags })
    }

    fn rejections(&self, reason: Reason) -> f64 {
        self.handler.path.counters.rejections(reason)
    }

    /// The kind and the reason of a record.
    fn rejection(&self, number: usize) -> (f64, f64) {
        (self.field(number, 0), self.field(number, 12))
    }
}

#[test]
fn transaction_of_a_public_key_is_sent_and_recorded_as_one_over_http() {
    let mut fixture = fixture_with(9.0, None);
    fixture.stream(&good(1));
    assert_eq!((fixture.given(), fixture.depth()), (1, 1));
    assert_eq!(fixture.counter(Counter::Accepted), 1.0);
    // The same again, over either way, is one transaction.
    fixture.stream(&good(1));
    fixture.post(&good(1));
    assert_eq!((fixture.given(), fixture.counter(Counter::Accepted)), (1, 3.0));
}

/// The same value is in the test of `publicKeySha256` in `src/accounts/keys/public-key.ts`.
#[test]
fn digest_of_a_public_key_is_the_one_that_edges_are_given() {
    let fixture = Fixture::usual();
    let digest = Digest::new(&[
        0x5b, 0x45, 0x59, 0x84, 0xf7, 0xf3, 0xd6, 0xbb, 0x64, 0x9d, 0x36, 0xce, 0x2f, 0x77, 0x48,
        0xa8, 0x00, 0x9c, 0x03, 0x19, 0x59, 0xec, 0x05, 0x9b, 0x7a, 0x80, 0x6a, 0x48, 0xd2, 0x75,
        0x7c, 0xbf,
    ]);
    assert!(fixture.handler.keys.put(KeyTerms { digest, ..terms(TOKEN, "acme") }));
    assert_eq!(fixture.handler.account_of(&client()), Some(ACCOUNT_NUMBER));
}

#[test]
fn one_limit_counts_streams_and_requests_of_the_account() {
    let mut fixture = fixture_with(2.0, None);
    let credit = |fixture: &Fixture| fixture.handler.credit(&client()).streams;
    let full = StreamCredit { streams: 2, more_in_ns: None, burst: 2 };
    assert_eq!(fixture.handler.credit(&client()), full);
    fixture.stream(&good(1));
    assert_eq!(credit(&fixture), 1);
    fixture.post(&good(2));
    let StreamCredit { streams, more_in_ns, .. } = fixture.handler.credit(&client());
    let more_in_ns = more_in_ns.unwrap();
    assert!(streams == 0 && more_in_ns > 900_000_000 && more_in_ns <= 1_000_000_000);
    fixture.stream(&good(3));
    assert_eq!(fixture.given(), 2);
    assert_eq!(fixture.rejections(Reason::RateLimited), 1.0);
    assert_eq!(fixture.rejection(2), (3.0, Reason::RateLimited as usize as f64));
}

#[test]
fn invalid_transaction_is_refused_with_the_reason_of_http() {
    let mut fixture = fixture_with(9.0, None);
    fixture.stream(b"");
    fixture.stream(b"no transaction");
    assert_eq!(fixture.rejections(Reason::Undecodable), 2.0);
    assert_eq!(fixture.rejection(1), (3.0, Reason::Undecodable as usize as f64));
}

#[test]
fn nothing_is_left_to_the_main_thread() {
    let mut fixture = fixture_with(9.0, None);
    fixture.targets.publish(&[], 0, 0);
    fixture.stream(&good(1));
    assert_eq!(fixture.rejections(Reason::NoLeader), 1.0);
    assert_eq!(fixture.rejection(0), (3.0, Reason::NoLeader as usize as f64));
    // It counts as valid, as the main thread counts one over HTTP.
    assert_eq!(fixture.field(0, VALIDATION), VALID);
    assert_eq!(fixture.counter(Counter::Proxied), 0.0);
    // It was no duplicate of itself.
    fixture.targets.publish(&[70, 71], 800, 4096);
    fixture.stream(&good(1));
    assert_eq!(fixture.given(), 1);
}

#[test]
fn panic_leaves_no_record_that_the_main_thread_waits_for() {
    let mut fixture = fixture_with(9.0, None);
    fixture.is_broken.set(true);
    fixture.stream(&good(1));
    assert_eq!(fixture.counter(Counter::HandlerErrors), 1.0);
    assert_eq!((fixture.depth(), fixture.state(0)), (1, VOID));
}

#[test]
fn key_that_is_not_valid_has_no_account_and_submits_nothing() {
    let elsewhere = PolicyTerms { ranges: Some("192.0.2.0/24".into()), ..PolicyTerms::default() };
    let mut fixture = fixture_with(9.0, Some(elsewhere));
    assert_eq!(fixture.handler.account_of(&client()), None);
    fixture.stream(&good(1));
    let inside = QuicClient { from: "192.0.2.1".parse().unwrap(), ..client() };
    assert_eq!(fixture.handler.account_of(&inside), Some(ACCOUNT_NUMBER));
    let unknown = QuicClient { key: public_key_sha256(&[8; 32]), ..client() };
    assert_eq!(fixture.handler.account_of(&unknown), None);
    assert_eq!(fixture.handler.credit(&unknown).streams, 0);
    let submission = Submission { bytes: &good(1), flags: Flags::default() };
    assert_eq!(fixture.handler.submit(&unknown, &submission).code, 0x101);
    assert_eq!((fixture.given(), fixture.rejections(Reason::Unauthorized)), (0, 2.0));
    // An API key with the bytes of a public key is another key.
    fixture.take(Endpoint::Raw, &PUBLIC_KEY, &good(1));
    assert_eq!(fixture.given(), 0);
}

#[test]
fn refusal_before_the_last_byte_is_charged_counted_and_recorded() {
    let mut fixture = fixture_with(2.0, None);
    let codes = [QuicRefusal::TooLarge, QuicRefusal::Slow, QuicRefusal::Draining].map(|refusal| {
        let code = fixture.handler.refused(Some(&client()), refusal, 17);
        (code, fixture.handler.credit(&client()).streams)
    });
    assert_eq!(codes, [(0x104, 1), (0x109, 0), (0x10d, 0)]);
    let reasons = [Reason::TooLarge, Reason::Undecodable, Reason::Overloaded];
    for (number, reason) in reasons.into_iter().enumerate() {
        assert_eq!(fixture.rejection(number), (3.0, reason as usize as f64));
        assert_eq!(fixture.rejections(reason), 1.0);
    }
    // Above the limit it is that, and the client learns that.
    assert_eq!(fixture.handler.refused(Some(&client()), QuicRefusal::TooLarge, 17), 0x102);
    assert_eq!(fixture.rejections(Reason::RateLimited), 1.0);
    // Before its key is known it is counted alone.
    assert_eq!(fixture.handler.refused(None, QuicRefusal::Unauthorized, 0), 0x101);
    assert_eq!((fixture.rejections(Reason::Unauthorized), fixture.depth()), (1.0, 4));
}

#[test]
fn numbers_of_the_listener_are_counters_of_the_thread() {
    let mut fixture = Fixture::usual();
    let numbers = QuicNumbers { connections: 2, retries: 3, ..QuicNumbers::default() };
    fixture.handler.publish(&numbers);
    assert_eq!(fixture.counter(Counter::QuicConnections), 2.0);
    assert_eq!(fixture.counter(Counter::QuicRetries), 3.0);
}

#[test]
fn panic_of_a_submission_frees_its_record() {
    let mut fixture = fixture_with(9.0, None);
    fixture.is_broken.set(true);
    fixture.stream(&good(1));
    assert_eq!((fixture.state(0), fixture.counter(Counter::HandlerErrors)), (VOID, 1.0));
    fixture.is_broken.set(false);
    fixture.stream(&good(2));
    assert_eq!(fixture.counter(Counter::Accepted), 1.0);
}

#[test]
fn account_sees_a_connection_that_its_key_does_not_allow() {
    let elsewhere = PolicyTerms { ranges: Some("192.0.2.0/24".into()), ..PolicyTerms::default() };
    let mut fixture = fixture_with(9.0, Some(elsewhere));
    assert_eq!(fixture.handler.refused(Some(&client()), QuicRefusal::Unauthorized, 0), 0x101);
    // A use of the key against its policy, as over HTTP.
    assert_eq!((fixture.field(0, 0), fixture.rejections(Reason::Unauthorized)), (4.0, 1.0));
    let unknown = QuicClient { key: public_key_sha256(&[8; 32]), ..client() };
    fixture.handler.refused(Some(&unknown), QuicRefusal::Unauthorized, 0);
    assert_eq!((fixture.depth(), fixture.rejections(Reason::Unauthorized)), (1, 2.0));
}

fn signature(bytes: &[u8]) -> Option<[u8; 64]> {
    bytes[1..65].try_into().ok()
}

#[test]
fn decision_has_the_code_of_the_reason_and_the_signature() {
    let mut fixture = fixture_with(5.0, None);
    let accepted = Decision { code: 0, signature: signature(&good(1)), is_repeated: false };
    assert_eq!(fixture.stream(&good(1)), accepted);
    assert_eq!(fixture.stream(&good(1)), accepted);
    let undecodable = Decision { code: 0x109, signature: None, is_repeated: false };
    assert_eq!(fixture.stream(b""), undecodable);
    assert_eq!(fixture.stream(b"no transaction"), undecodable);
    fixture.targets.publish(&[], 0, 0);
    assert_eq!(fixture.stream(&good(2)).code, 0x10c);
    let limited = fixture.stream(&good(3));
    assert_eq!((limited.code, limited.signature), (0x102, signature(&good(3))));
    fixture.is_broken.set(true);
    assert_eq!(fixture.stream(&good(4)).code, 0x102);
    let mut broken = fixture_with(5.0, None);
    broken.is_broken.set(true);
    assert_eq!(broken.stream(&good(1)), Decision { code: 0x10e, ..undecodable });
}

#[test]
fn client_that_waits_for_the_end_hears_of_a_repetition() {
    let mut fixture = fixture_with(9.0, None);
    let flags = Flags { is_answered_when_landed: true, is_sent_once: false };
    assert!(!fixture.flagged(&good(1), flags).is_repeated);
    assert!(fixture.flagged(&good(1), flags).is_repeated);
}

#[test]
fn transaction_that_is_sent_once_is_recorded_as_one_without_resends() {
    let mut fixture = fixture_with(9.0, None);
    fixture.stream(&good(1));
    fixture.flagged(&good(2), Flags { is_sent_once: true, is_answered_when_landed: false });
    let retries = |number| fixture.field(number, 7);
    assert_eq!((retries(0), retries(1)), (-1.0, 0.0));
}

#[test]
fn client_is_told_the_limit_that_holds_and_the_tip() {
    let fixture = fixture_with(9.0, None);
    let limits = |fixture: &Fixture| fixture.handler.limits(&client());
    let plan = limits(&fixture).unwrap();
    assert_eq!(plan.burst, 9);
    let own = Rate { rate_per_second: 0.5, burst: 3.0 };
    let policy = PolicyTerms { limit: Some(own), ..PolicyTerms::default() };
    let fixture = fixture_with(9.0, Some(policy));
    assert_eq!(limits(&fixture), Some(ClientLimits { rate_per_second: 0.5, burst: 3 }));
    let unknown = QuicClient { key: [8; 32], ..client() };
    assert_eq!(fixture.handler.limits(&unknown), None);
    assert!(!fixture.handler.knows(&unknown) && fixture.handler.knows(&client()));
    assert!(fixture.handler.tips().lamports_min > 0);
}

#[test]
fn api_key_is_found_by_the_digest_of_its_text() {
    let fixture = Fixture::usual();
    let from = client().from;
    let key = fixture.handler.key_of_token(TOKEN).unwrap();
    assert_eq!(fixture.handler.account_of(&QuicClient { key, from }), Some(ACCOUNT_NUMBER));
    let key = fixture.handler.key_of_certificate(&PUBLIC_KEY);
    assert_eq!(fixture.handler.account_of(&QuicClient { key, from }), None);
}

/// The key table has both kinds of keys by a SHA-256.
#[test]
fn what_is_hashed_of_a_public_key_is_no_api_key() {
    let mut fixture = fixture_with(9.0, None);
    let key = fixture.handler.key_of_certificate(&PUBLIC_KEY);
    assert_eq!(fixture.handler.account_of(&QuicClient { key, ..client() }), Some(ACCOUNT_NUMBER));
    let hashed = [b"touchdown public key\0", &PUBLIC_KEY[..]].concat();
    assert_eq!(fixture.handler.key_of_token(&hashed), None);
    fixture.take(Endpoint::Raw, &hashed, &good(1));
    assert_eq!(fixture.given(), 0);
    for token in [b"too-short".as_slice(), &[b'a'; 129], b""] {
        assert_eq!(fixture.handler.key_of_token(token), None);
    }
}

#[test]
fn refusals_of_the_protocol_are_invalid_requests() {
    let mut fixture = fixture_with(2.0, None);
    let mut refused = |refusal| fixture.handler.refused(Some(&client()), refusal, 3);
    let codes =
        [QuicRefusal::Flags, QuicRefusal::Frame, QuicRefusal::SecondControl].map(&mut refused);
    assert_eq!(codes, [0x106; 3]);
    assert_eq!(refused(QuicRefusal::NoHello), 0x101);
    // A stream costs a request; a frame does not.
    assert_eq!(fixture.handler.credit(&client()).streams, 0);
    assert_eq!(fixture.rejections(Reason::InvalidRequest), 3.0);
}
