//! Refusals as a client reads them. `test/native` compares with the main thread's.

use super::*;
use crate::decode::errors::NAMES;

fn rejected(error: DecodeError, found: i64, needed: i64) -> Rejection {
    Rejection::undecodable(&Rejected { error, found, needed })
}

fn status(rejection: &Rejection, is_rpc: bool) -> String {
    let mut out = Vec::new();
    rejection.push_status(&mut out, is_rpc);
    String::from_utf8(out).unwrap()
}

fn raw(rejection: &Rejection) -> String {
    let mut out = String::new();
    rejection.push_raw(&mut out);
    out
}

fn rpc(rejection: &Rejection, id: &str) -> String {
    let mut out = String::new();
    rejection.push_rpc(&mut out, id);
    out
}

#[test]
fn table_has_a_row_for_each_error_in_order() {
    let names: Vec<&str> = DECODE_ROWS.iter().map(|row| row.name).collect();
    assert_eq!(names, NAMES);
}

#[test]
fn decode_error_has_its_values_in_message_and_data() {
    let rejection = rejected(DecodeError::tip_too_low, 5, 1000);
    let message = "a tip of 5 lamports was found where 1000 is the minimum";
    assert_eq!(rejection.message, message);
    assert_eq!(status(&rejection, false), format!("400 Bad Request: {message}"));
    assert_eq!(status(&rejection, true), "200 OK");
    assert_eq!(
        raw(&rejection),
        format!(r#"{{"success":false,"error":"{message}","reason":"tip_missing"}}"#)
    );
    let data = format!(
        r#""fault":"tip_too_low","found":5,"needed":1000,"reason":"tip_missing","retryable":false,"message":"{message}""#
    );
    assert_eq!(
        rpc(&rejection, "7"),
        format!(
            r#"{{"jsonrpc":"2.0","error":{{"code":-32602,"message":"{message}","data":{{{data}}}}},"id":7}}"#
        )
    );
}

#[test]
fn message_counts_from_one_pads_masks_and_has_a_form_for_zero() {
    let start = "transaction could not be decoded: ";
    let signature = rejected(DecodeError::signature_missing, 0, 2).message;
    assert_eq!(signature, "signature 1 of 2 is all zeros: account key 0 did not sign");
    let mask = rejected(DecodeError::config_mask, 0x8f, 7).message;
    let known = "only the bits of 0x07 are known";
    assert_eq!(mask, format!("{start}its configuration mask is 0x8f, {known}"));
    for (version, text) in [(0, "it starts with 0x80"), (5, "it starts as version 5")] {
        let message = rejected(DecodeError::version_unknown, version, 0).message;
        assert!(message.starts_with(&format!("{start}{text}")), "{message}");
    }
}

#[test]
fn number_above_two_to_the_53_is_that_of_the_main_thread() {
    let rejection = rejected(DecodeError::tip_account_readonly, i64::MAX, 1);
    assert!(rejection.message.starts_with("a tip of 9223372036854776000 lamports"));
}

#[test]
fn used_up_limit_has_its_plan_and_wait_in_message_and_headers() {
    let used_up = UsedUp {
        plan: "Größe \"1\" 😀",
        is_own: false,
        rate_per_second: 2.5,
        burst: 4.0,
        wait_ns: 1_500_000_001.0,
    };
    let rejection = Rejection::rate_limited(&used_up);
    let message = "the rate limit of plan Größe \"1\" 😀 is 2.5 requests a second with a burst of 4; \
                   the next one is let through in 1501 ms";
    assert_eq!(rejection.message, message);
    assert!(status(&rejection, true).starts_with(
        "429 Too Many Requests: the rate limit of plan Gr??e \"1\" ?? is 2.5 requests"
    ));
    let data = r#""data":{"plan":"Größe \"1\" 😀","ratePerSecond":2.5,"burst":4,"retryAfterMs":1501,"reason":"rate_limited","retryable":true,"#;
    assert!(rpc(&rejection, "null").contains(data));
    let lines = "retry-after: 2\r\nratelimit-policy: \"Gr__e _1_ __\";q=2;w=1\r\n\
                 ratelimit: \"Gr__e _1_ __\";r=0;t=2";
    assert!(rejection.headers().ends_with(lines));
}

#[test]
fn own_limit_of_a_key_is_named_and_a_slow_one_has_a_longer_window() {
    let used_up =
        UsedUp { plan: "Wide", is_own: true, rate_per_second: 0.3, burst: 1.0, wait_ns: 1.0 };
    let rejection = Rejection::rate_limited(&used_up);
    assert!(rejection.message.starts_with("the rate limit of this key is 0.3 requests a second"));
    let lines = "retry-after: 1\r\nratelimit-policy: \"key\";q=1;w=4\r\nratelimit: \"key\";r=0;t=1";
    assert!(rejection.headers().ends_with(lines));
}

#[test]
fn status_line_ends_after_the_largest_message() {
    let rejection = Rejection::new(Reason::NoLeader, "é".repeat(241));
    assert_eq!(status(&rejection, false), format!("503 Service Unavailable: {}", "?".repeat(240)));
}
