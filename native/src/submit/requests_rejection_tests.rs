//! What an ingress thread refuses, answers and records.

use super::*;

#[test]
fn error_of_form_is_answered_and_recorded_without_a_latency() {
    let mut fixture = Fixture::new(9.0);
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
        fixture.take(Endpoint::JsonRpc, TOKEN, body.as_bytes());
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
fn request_without_a_valid_key_is_answered_counted_and_not_charged() {
    let mut fixture = Fixture::usual();
    let unknown = "the API key is unknown or revoked, or its account is disabled; \
                   its issuer can see which";
    let missing = "no API key was found: it is needed in api-x-token, x-api-key or \
                   Authorization: Bearer";
    for (token, message) in [
        (b"another key, unknown".as_slice(), unknown),
        (b"too short", unknown),
        ("0123456789abcdeß".as_bytes(), unknown),
        (b"", missing),
        (b"td_live_x", "the API key has a typing error: its checksum does not match"),
    ] {
        for endpoint in [Endpoint::Raw, Endpoint::JsonRpc] {
            fixture.take(endpoint, token, &good(1));
            let head = fixture.out[b"what was there".len()..].to_vec();
            assert!(head.starts_with(b"HTTP/1.1 401 Unauthorized: "));
            let head = String::from_utf8(head).unwrap();
            assert!(head.contains("\r\nwww-authenticate: ApiKey header=\"api-x-token\"\r\n"));
            let body = fixture.response();
            assert!(body.contains(message), "{body}");
            assert!(endpoint == Endpoint::Raw || body.ends_with(r#","id":null}"#), "{body}");
        }
    }
    assert_eq!(fixture.counter(Counter::Requests), 10.0);
    assert_eq!(fixture.handler.path.counters.rejections(Reason::Unauthorized), 10.0);
    assert_eq!((fixture.given(), fixture.depth()), (0, 0));
    for number in [1, 2] {
        fixture.post(&good(number));
    }
    assert_eq!(fixture.given(), 2);
}

#[test]
fn request_before_keys_were_read_is_answered_503() {
    let mut fixture = Fixture::usual();
    fixture.handler.keys = Arc::default();
    fixture.post(&good(1));
    assert!(
        fixture.out[b"what was there".len()..].starts_with(b"HTTP/1.1 503 Service Unavailable")
    );
    assert!(fixture.response().contains("this edge has not read the keys yet"));
    assert_eq!(fixture.handler.path.counters.rejections(Reason::Overloaded), 1.0);
}

#[test]
fn only_a_small_body_that_asks_for_nothing_but_health_needs_no_key() {
    let mut fixture = Fixture::usual();
    let health = r#"{"id":1,"jsonrpc":"2.0","method":"get\u0048ealth"}"#;
    let ok = r#"{"jsonrpc":"2.0","result":"ok","id":1}"#;
    let form = r#"{"method":"getHealth","id":2}"#;
    for (body, expected) in [
        (health.to_string(), ok.to_string()),
        (format!("[{health},{health}]"), format!("[{ok},{ok}]")),
    ] {
        fixture.take(Endpoint::JsonRpc, b"", body.as_bytes());
        assert_eq!(fixture.response(), expected);
    }
    for body in [form.to_string(), format!("[{form}]")] {
        fixture.take(Endpoint::JsonRpc, b"no key", body.as_bytes());
        assert!(fixture.response().contains("-32600"));
    }
    assert_eq!(fixture.handler.path.counters.rejections(Reason::InvalidRequest), 2.0);
    let large = format!("{health}{}", " ".repeat(KEYLESS_BODY_BYTES_MAX));
    let call = r#"{"id":1,"jsonrpc":"2.0","method":"sendTransaction"}"#;
    for body in [large, format!("[{health},{call}]"), "[]".into(), "{".into(), String::new()] {
        fixture.take(Endpoint::JsonRpc, b"", body.as_bytes());
        assert!(fixture.response().contains("no API key was found"), "{body}");
    }
    assert_eq!((fixture.given(), fixture.depth()), (0, 0));
}

#[test]
fn key_that_its_policy_does_not_allow_is_answered_and_recorded_for_its_account() {
    let ranges = Some("203.0.113.0/24".into());
    let policy = PolicyTerms { ranges, ..PolicyTerms::default() };
    let mut fixture = Fixture::with(2.0, Some(policy));
    fixture.post(&good(1));
    let body = fixture.response();
    assert!(body.contains("the API key may not be used from this address"), "{body}");
    let message =
        "the key may be used from 203.0.113.0/24 only, a request with it came from 127.0.0.1";
    let [kind, size, account_size, _] = fixture.record(0);
    assert_eq!((kind, size, account_size), (4.0, message.len() as f64, ACCOUNT_SIZE));
    assert_eq!((fixture.depth(), fixture.given()), (1, 0));
}

#[test]
fn body_that_is_too_large_is_charged_answered_and_recorded_for_its_account() {
    let mut fixture = Fixture::usual();
    let reason = UnreadReason::TooLarge(16_385, 16_384);
    for number in 0..2 {
        assert_eq!(fixture.refuse_unread(TOKEN, reason), Reason::TooLarge);
        let text = String::from_utf8(fixture.out[b"what was there".len()..].to_vec()).unwrap();
        let message = "the body has 16385 bytes, at most 16384 are accepted here";
        assert!(
            text.starts_with(&format!("HTTP/1.1 413 Content Too Large: {message}\r\n")),
            "{text}"
        );
        let error = format!(r#"{{"success":false,"error":"{message}","reason":"too_large"}}"#);
        assert_eq!(fixture.response(), error);
        // Of the body nothing was read.
        assert_eq!(
            [0, 2, 6, 12].map(|at| fixture.field(number, at)),
            [3.0, ACCOUNT_SIZE, 0.0, Reason::TooLarge as usize as f64]
        );
    }
    for reason in [reason, UnreadReason::NoRoom] {
        assert_eq!(fixture.refuse_unread(TOKEN, reason), Reason::RateLimited);
        assert!(fixture.response().contains("the rate limit of plan Basic is"));
    }
    let counters = &fixture.handler.path.counters;
    assert_eq!(
        [Reason::TooLarge, Reason::RateLimited].map(|it| counters.rejections(it)),
        [2.0, 2.0]
    );
    assert_eq!((fixture.counter(Counter::Requests), fixture.depth()), (4.0, 4));
}

#[test]
fn submission_without_room_is_charged_answered_and_recorded_for_its_account() {
    let mut fixture = Fixture::usual();
    assert_eq!(fixture.refuse_unread(TOKEN, UnreadReason::NoRoom), Reason::Overloaded);
    assert!(fixture.response().contains("this edge has too many requests in progress"));
    assert_eq!(fixture.field(0, 12), Reason::Overloaded as usize as f64);
    let requests = fixture.counter(Counter::Requests);
    assert_eq!((requests, fixture.depth(), fixture.given()), (1.0, 1, 0));
}

#[test]
fn submission_is_refused_unread_for_its_key() {
    let mut fixture = Fixture::usual();
    assert_eq!(
        fixture.refuse_unread(b"another key, unknown", UnreadReason::KeyUnknown),
        Reason::Unauthorized
    );
    assert!(fixture.response().contains("the API key is unknown or revoked"));
    // It came meanwhile, so it is refused as it was found.
    assert_eq!(fixture.refuse_unread(TOKEN, UnreadReason::KeyUnknown), Reason::Unauthorized);
    assert!(fixture.response().contains("the API key is unknown or revoked"));
    // It was revoked meanwhile.
    assert_eq!(
        fixture.refuse_unread(b"another key, unknown", UnreadReason::TooLarge(2, 1)),
        Reason::Unauthorized
    );
    assert!(fixture.response().contains("the API key is unknown or revoked"));
    let numbers = |fixture: &Fixture| {
        let refused = fixture.handler.path.counters.rejections(Reason::Unauthorized);
        (refused, fixture.counter(Counter::Requests), fixture.depth())
    };
    assert_eq!(numbers(&fixture), (3.0, 3.0, 0));
}

#[test]
fn submission_during_the_drain_is_refused_whoever_sent_it() {
    let mut fixture = Fixture::usual();
    let message = "this edge is draining and accepts no new work; reconnect to reach another edge";
    for endpoint in [Endpoint::Raw, Endpoint::JsonRpc] {
        fixture.handler.refuse_draining(endpoint, &mut fixture.out);
        let text = String::from_utf8(fixture.out[b"what was there".len()..].to_vec()).unwrap();
        assert!(text.starts_with("HTTP/1.1 503 Service Unavailable"), "{text}");
        assert!(fixture.response().contains(message));
    }
    assert_eq!(fixture.handler.path.counters.rejections(Reason::Overloaded), 2.0);
    assert_eq!((fixture.counter(Counter::Requests), fixture.depth()), (2.0, 0));
}

#[test]
fn request_over_the_limit_is_answered_before_its_body_is_examined() {
    let mut fixture = Fixture::usual();
    for number in [1, 2] {
        fixture.post(&good(number));
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
        fixture.take(endpoint, TOKEN, &good(3));
        let head = String::from_utf8(fixture.out[b"what was there".len()..].to_vec()).unwrap();
        assert!(head.starts_with(status), "{head}");
        assert!(head.contains("\r\nratelimit-policy: \"Basic\";q=1;w=1\r\n"), "{head}");
        let body = fixture.response();
        assert!(body.starts_with(&format!("{start}\"{limit}")), "{body}");
        assert!(endpoint == Endpoint::Raw || body.ends_with(r#","id":null}"#), "{body}");
    }
    // The kind, the account's size, no latency, no bytes, the reason and no error of the decoder.
    let reason = Reason::RateLimited as usize as f64;
    assert_eq!(
        [0, 2, 5, 6, 12, 15].map(|at| fixture.field(2, at)),
        [3.0, ACCOUNT_SIZE, 0.0, 0.0, reason, -1.0]
    );
    assert_eq!((fixture.given(), fixture.depth()), (2, 4));
    assert_eq!(fixture.handler.path.counters.rejections(Reason::RateLimited), 2.0);
}

#[test]
fn invalid_transaction_is_answered_recorded_and_not_cached() {
    let mut fixture = Fixture::usual();
    let poor = transaction(1, 999);
    fixture.post(&poor);
    let message = "a tip of 999 lamports was found where 1000 is the minimum";
    assert_eq!(
        fixture.response(),
        format!(r#"{{"success":false,"error":"{message}","reason":"tip_missing"}}"#)
    );
    let [kind, size, account_size, _] = fixture.record(0);
    assert_eq!((kind, size, account_size), (3.0, message.len() as f64, ACCOUNT_SIZE));
    // The reason, and the decoder's result.
    let expected = [Reason::TipMissing as usize as f64, 0.0, 0.0];
    assert_eq!([12, 13, 14].map(|at| fixture.field(0, at)), expected);
    let error = f64::from(DecodeError::tip_too_low as u8);
    assert_eq!([15, 16, 17].map(|at| fixture.field(0, at)), [error, 999.0, 1000.0]);
    fixture.post(b"");
    let counters = &fixture.handler.path.counters;
    let reasons = [Reason::TipMissing, Reason::Undecodable];
    assert_eq!(reasons.map(|reason| counters.rejections(reason)), [1.0, 1.0]);
    let counted = [Counter::Requests, Counter::Accepted, Counter::Proxied];
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
    fixture.take(Endpoint::JsonRpc, TOKEN, call.as_bytes());
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
    fixture.take(Endpoint::JsonRpc, TOKEN, call.as_bytes());
    assert!(fixture.response().contains("signatures_none"));
    // The base58 of a transaction's start, whose size is also possible for base64.
    let text = "1".repeat(3) + "2VfUX";
    let call = call.replace("AAAA", &text);
    fixture.take(Endpoint::JsonRpc, TOKEN, call.as_bytes());
    assert_eq!(fixture.handler.path.counters.rejections(Reason::Undecodable), 2.0);
}

#[test]
fn rejection_is_answered_without_a_record_while_half_of_the_ring_is_unread() {
    let mut fixture = Fixture::new(1e6);
    fixture.fill(SUBMISSION_UNITS_MAX / 2);
    fixture.post(&transaction(1, 998));
    assert!(fixture.response().contains("a tip of 998 lamports"));
    assert_eq!(fixture.events.unread(), SUBMISSION_UNITS_MAX / 2);
    assert_eq!(fixture.counter(Counter::RejectionRecordsDropped), 1.0);
    // What is sent still has room.
    fixture.post(&good(2));
    assert_eq!(fixture.given(), 1);
    assert!(fixture.events.unread() > SUBMISSION_UNITS_MAX / 2);
}

#[test]
fn transaction_is_refused_while_no_leader_is_connected() {
    let mut fixture = Fixture::new(9.0);
    fixture.targets.publish(&[], 0, 0);
    fixture.post(&good(1));
    assert!(fixture.response().contains("\"reason\":\"no_leader\""));
    let text = base64(&good(1));
    let call =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":["{text}"]}}"#);
    fixture.take(Endpoint::JsonRpc, TOKEN, format!("[{call},{call}]").as_bytes());
    assert_eq!(fixture.response().matches("\"reason\":\"no_leader\"").count(), 2);
    assert_eq!((fixture.depth(), fixture.given()), (3, 0));
    assert_eq!(fixture.handler.path.counters.rejections(Reason::NoLeader), 3.0);
    // An invalid one is refused for what it is, and nothing is reserved.
    fixture.post(&transaction(1, 999));
    assert!(fixture.response().contains("tip_missing"));
    assert_eq!(fixture.other.reserve(&good(1), 1, 1_000_000_000), Reservation::New);
    assert_eq!(fixture.counter(Counter::Proxied), 0.0);
}

#[test]
fn a_transaction_that_no_leaders_queue_takes_is_refused_here() {
    let mut fixture = Fixture::usual();
    fixture.is_full.set(true);
    fixture.post(&good(1));
    let response = fixture.response();
    assert!(response.contains("\"reason\":\"overloaded\""), "{response}");
    // It was published, nothing of it was sent, and it was refused.
    assert_eq!((fixture.depth(), fixture.state(0), fixture.field(1, 0)), (2, VOID, 3.0));
    // Nothing is reserved: the next attempt is sent, and other transactions are.
    fixture.is_full.set(false);
    fixture.post(&good(1));
    assert!(fixture.response().contains(&signature(&good(1))));
    assert_eq!(fixture.counter(Counter::Proxied), 0.0);
}
