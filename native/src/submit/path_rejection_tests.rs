//! What an ingress thread refuses, answers and records.

use super::*;

#[test]
fn error_of_form_is_answered_and_recorded_without_a_latency() {
    let mut fixture = Fixture::new(KeyGrant { burst: 9.0, ..grant() });
    for (number, (body, reason, rest)) in [
        ("", Reason::ParseError, r#""id":null}"#),
        ("{", Reason::ParseError, r#""id":null}"#),
        ("[]", Reason::InvalidRequest, r#""id":null}"#),
        (r#"{"id":5}"#, Reason::InvalidRequest, r#""id":5}"#),
        (r#"{"id":5,"jsonrpc":"2.0","method":"x"}"#, Reason::MethodNotFound, r#""id":5}"#),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(fixture.take(Endpoint::JsonRpc, TOKEN, body.as_bytes()), Handled::Answered);
        assert!(fixture.out[b"what was there".len()..].starts_with(b"HTTP/1.1 200 OK\r\n"));
        let response = fixture.response();
        assert!(response.starts_with(r#"{"jsonrpc":"2.0","error":{"#), "{response}");
        assert!(response.ends_with(rest), "{response}");
        assert_eq!(
            [0, 5, 6, 12, 15].map(|at| fixture.field(number, at)),
            [3.0, 0.0, body.len() as f64, reason as usize as f64, -1.0]
        );
    }
}

#[test]
fn request_that_is_not_admitted_is_proxied_uncharged() {
    let mut fixture = Fixture::usual();
    assert!(!is_limit_charged(fixture.take(Endpoint::Raw, b"another key", &good(1))));
    assert_eq!(fixture.counter(Counter::ProxiedKey), 1.0);
    for number in [1, 2] {
        assert_eq!(fixture.post(&good(number)), Handled::Answered);
    }
}

#[test]
fn request_over_the_limit_is_answered_before_its_body_is_examined() {
    let mut fixture = Fixture::usual();
    for number in [1, 2] {
        assert_eq!(fixture.post(&good(number)), Handled::Answered);
    }
    fixture.response();
    let limit = "the rate limit of plan Basic is 1 requests a second with a burst of 2; the next";
    for (endpoint, start, status) in [
        (Endpoint::Raw, r#"{"success":false,"error":"#, "HTTP/1.1 429 Too Many Requests: "),
        (
            Endpoint::JsonRpc,
            r#"{"jsonrpc":"2.0","error":{"code":-32005,"message":"#,
            "HTTP/1.1 429",
        ),
    ] {
        assert_eq!(fixture.take(endpoint, TOKEN, &good(3)), Handled::Answered);
        let head = String::from_utf8(fixture.out[b"what was there".len()..].to_vec()).unwrap();
        assert!(head.starts_with(status), "{head}");
        assert!(head.contains("\r\nratelimit-policy: \"Basic\";q=1;w=1\r\n"), "{head}");
        let body = fixture.response();
        assert!(body.starts_with(&format!("{start}\"{limit}")), "{body}");
        assert!(endpoint == Endpoint::Raw || body.ends_with(r#","id":null}"#), "{body}");
    }
    // The kind, the key slot, no latency, no bytes, the reason and no error of the decoder.
    let reason = Reason::RateLimited as usize as f64;
    assert_eq!(
        [0, 2, 5, 6, 12, 15].map(|at| fixture.field(2, at)),
        [3.0, f64::from(KEY_SLOT), 0.0, 0.0, reason, -1.0]
    );
    assert_eq!((fixture.given(), fixture.depth()), (2, 4));
    assert_eq!(fixture.handler.path.counters.rejections(Reason::RateLimited), 2.0);
}

#[test]
fn limit_that_no_wait_ends_is_left_to_the_main_thread() {
    // The number of edges is not known.
    let mut fixture = Fixture::new(KeyGrant { is_global: true, ..grant() });
    assert!(!is_limit_charged(fixture.post(&good(1))));
    assert_eq!((fixture.counter(Counter::ProxiedOther), fixture.depth()), (1.0, 0));
}

#[test]
fn invalid_transaction_is_answered_recorded_and_not_cached() {
    let mut fixture = Fixture::usual();
    let poor = transaction(1, 999);
    assert_eq!(fixture.post(&poor), Handled::Answered);
    let message = "a tip of 999 lamports was found where 1000 is the minimum";
    assert_eq!(
        fixture.response(),
        format!(r#"{{"success":false,"error":"{message}","reason":"tip_missing"}}"#)
    );
    let [kind, size, key_slot, _] = fixture.record(0);
    assert_eq!((kind, size, key_slot), (3.0, message.len() as f64, f64::from(KEY_SLOT)));
    // The reason, and the decoder's result.
    let expected = [Reason::TipMissing as usize as f64, 0.0, 0.0];
    assert_eq!([12, 13, 14].map(|at| fixture.field(0, at)), expected);
    let error = f64::from(DecodeError::tip_too_low as u8);
    assert_eq!([15, 16, 17].map(|at| fixture.field(0, at)), [error, 999.0, 1000.0]);
    assert_eq!(fixture.post(b""), Handled::Answered);
    let counters = &fixture.handler.path.counters;
    let reasons = [Reason::TipMissing, Reason::Undecodable];
    assert_eq!(reasons.map(|reason| counters.rejections(reason)), [1.0, 1.0]);
    let counted = [Counter::Requests, Counter::Accepted, Counter::ProxiedOther];
    assert_eq!(counted.map(|counter| fixture.counter(counter)), [2.0, 0.0, 0.0]);
    assert_eq!((fixture.given(), fixture.depth()), (0, 2));
    assert!(!fixture.other.query(&poor, 1, 1_000_000_000));
}

#[test]
fn invalid_transaction_of_a_call_is_answered_with_its_id() {
    let mut fixture = Fixture::usual();
    let text = base64(&transaction(1, 999));
    let call =
        format!(r#"{{"jsonrpc":"2.0","id":"a1","method":"sendTransaction","params":["{text}"]}}"#);
    assert_eq!(fixture.take(Endpoint::JsonRpc, TOKEN, call.as_bytes()), Handled::Answered);
    let head = fixture.out[b"what was there".len()..].to_vec();
    assert!(head.starts_with(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"));
    let body = fixture.response();
    assert!(
        body.starts_with(r#"{"jsonrpc":"2.0","error":{"code":-32602,"message":"a tip of 999 "#)
    );
    assert!(body.contains(r#""data":{"fault":"tip_too_low","found":999,"needed":1000,"#));
    assert!(body.ends_with(r#","id":"a1"}"#));
}

#[test]
fn bytes_that_no_transaction_starts_with_are_examined_for_base58() {
    let mut fixture = Fixture::usual();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":["AAAA"]}"#;
    assert_eq!(fixture.take(Endpoint::JsonRpc, TOKEN, call.as_bytes()), Handled::Answered);
    assert!(fixture.response().contains("signatures_none"));
    // The base58 of a transaction's start, whose size is also possible for base64.
    let text = "1".repeat(3) + "2VfUX";
    let call = call.replace("AAAA", &text);
    assert_eq!(fixture.take(Endpoint::JsonRpc, TOKEN, call.as_bytes()), Handled::Answered);
    assert_eq!(fixture.handler.path.counters.rejections(Reason::Undecodable), 2.0);
}

#[test]
fn rejection_is_answered_without_a_record_while_half_of_the_ring_is_unread() {
    let mut fixture = Fixture::new(KeyGrant { burst: 1e6, ..grant() });
    for _ in 0..RECORDS / 2 {
        assert_eq!(fixture.post(&transaction(1, 999)), Handled::Answered);
    }
    assert_eq!((fixture.depth(), fixture.wakes.load(SeqCst)), (RECORDS / 2, 1));
    assert_eq!(fixture.counter(Counter::RejectionRecordsDropped), 0.0);
    fixture.response();
    assert_eq!(fixture.post(&transaction(1, 998)), Handled::Answered);
    assert!(fixture.response().contains("a tip of 998 lamports"));
    assert_eq!(fixture.depth(), RECORDS / 2);
    assert_eq!(fixture.counter(Counter::RejectionRecordsDropped), 1.0);
    // What is sent still has room.
    assert_eq!(fixture.post(&good(2)), Handled::Answered);
    assert_eq!((fixture.given(), fixture.depth()), (1, RECORDS / 2 + 1));
}

#[test]
fn a_transaction_that_no_leaders_queue_takes_is_refused_here() {
    let mut fixture = Fixture::usual();
    fixture.is_full.set(true);
    assert_eq!(fixture.post(&good(1)), Handled::Answered);
    let response = fixture.response();
    assert!(response.contains("\"reason\":\"overloaded\""), "{response}");
    assert_eq!(fixture.depth(), 1);
    // Nothing is reserved: the next attempt is sent, and other transactions are.
    fixture.is_full.set(false);
    assert_eq!(fixture.post(&good(1)), Handled::Answered);
    assert!(fixture.response().contains(&signature(&good(1))));
    assert_eq!(fixture.counter(Counter::ProxiedLeaders), 0.0);
}
