//! What the main thread's submissions are answered, and what is recorded of them.

use super::*;
use crate::submit::main_thread::MainThread;
use crate::submit::path::{Outcome, RequestMeta};
use crate::submit::records::Submitter;

/// Fields of a record: the account's size, the client's `maxRetries`, and the plan's number.
const ACCOUNT_SIZE_AT: usize = 2;
const RETRIES_AT: usize = 7;
const PLAN_AT: usize = 25;
const ACCOUNT: u64 = 9_000;
const SUBMISSION: RequestMeta<'static> = RequestMeta {
    submitter: Submitter::MainThread { number: 41, account: ACCOUNT },
    received_ns: 900_000_000,
    body_bytes: 0,
    max_retries: Some(2),
};

/// The fixture, whose handler has another path, and the main thread on the same memory.
fn main_thread(fixture: &mut Fixture) -> MainThread<FakeEngine> {
    let spare = Fixture::usual();
    MainThread::new(std::mem::replace(&mut fixture.handler, spare.handler).path.inner)
}

fn text_of(outcome: Option<Outcome>) -> String {
    match outcome {
        Some(Outcome::Accepted(signature)) => String::from_utf8(signature.text().to_vec()).unwrap(),
        Some(Outcome::Invalid(rejected)) => format!("{:?}", rejected.error),
        Some(Outcome::LeadersFull) => "leaders full".into(),
        Some(Outcome::NoLeader) => "no leader".into(),
        Some(Outcome::Busy) => "busy".into(),
        Some(Outcome::RingFull) => "ring full".into(),
        None => "failed".into(),
    }
}

fn fields(fixture: &Fixture, number: usize) -> [f64; 5] {
    [0, 1, ACCOUNT_SIZE_AT, RETRIES_AT, PLAN_AT].map(|at| fixture.field(number, at))
}

#[test]
fn transaction_is_sent_answered_and_recorded_under_its_number() {
    let mut fixture = Fixture::usual();
    let mut main = main_thread(&mut fixture);
    let bytes = good(1);
    assert_eq!(text_of(main.submit(&bytes, &SUBMISSION)), signature(&bytes));
    assert_eq!(*fixture.given.borrow(), vec![bytes.clone()]);
    let offer = Offer { account: ACCOUNT, lamports: 5_000.0 };
    assert_eq!(*fixture.offers.borrow(), [offer]);
    assert_eq!(fields(&fixture, 0), [1.0, bytes.len() as f64, -1.0, 2.0, 41.0]);
    assert_eq!(fixture.state(0), DONE);
    // A second copy is a duplicate, for every thread.
    assert!(fixture.other.query(&bytes, 1, 1_000_000_000));
    let submitter = Submitter::MainThread { number: 42, account: ACCOUNT };
    let again = RequestMeta { submitter, max_retries: None, ..SUBMISSION };
    assert_eq!(text_of(main.submit(&bytes, &again)), signature(&bytes));
    assert_eq!(fields(&fixture, 1), [2.0, bytes.len() as f64, -1.0, -1.0, 42.0]);
    assert_eq!((fixture.given(), fixture.depth()), (1, 2));
}

#[test]
fn call_in_its_usual_form_is_submitted_and_any_other_is_not() {
    let mut fixture = Fixture::usual();
    let mut main = main_thread(&mut fixture);
    let text = base64(&good(1));
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":"a1","method":"sendTransaction","params":["{text}",{{"encoding":"base64","maxRetries":7}}]}}"#
    );
    let (call, answer) = main.submit_call(body.as_bytes(), &SUBMISSION).unwrap();
    assert_eq!(text_of(answer), signature(&good(1)));
    assert_eq!(&body[call.id.0..call.id.1], r#""a1""#);
    assert_eq!(fixture.field(0, RETRIES_AT), 7.0);
    for other in ["", "[]", "{}", &body.replace("sendTransaction", "getHealth")] {
        assert!(main.submit_call(other.as_bytes(), &SUBMISSION).is_none());
    }
    assert_eq!((fixture.given(), fixture.depth()), (1, 1));
}

#[test]
fn refusal_is_answered_and_not_recorded() {
    let mut fixture = Fixture::usual();
    let mut main = main_thread(&mut fixture);
    assert_eq!(text_of(main.submit(&transaction(1, 999), &SUBMISSION)), "tip_too_low");
    fixture.targets.publish(&[], 0, 0);
    assert_eq!(text_of(main.submit(&good(1), &SUBMISSION)), "no leader");
    fixture.targets.publish(&[70], 800, 100);
    assert_eq!(text_of(main.submit(&good(1), &SUBMISSION)), "no leader");
    assert_eq!((fixture.given(), fixture.depth()), (0, 0));
    fixture.targets.publish(&[70, 71], 800, 4096);
    fixture.is_full.set(true);
    assert_eq!(text_of(main.submit(&good(1), &SUBMISSION)), "leaders full");
    assert_eq!((fixture.state(0), fixture.depth()), (VOID, 1));
    // Nothing of it is reserved.
    fixture.is_full.set(false);
    assert_eq!(text_of(main.submit(&good(1), &SUBMISSION)), signature(&good(1)));
}

#[test]
fn a_full_ring_and_a_thread_that_does_not_finish_leave_it_undecided() {
    let mut fixture = Fixture::usual();
    let mut main = main_thread(&mut fixture);
    assert_eq!(fixture.other.reserve(&good(1), 1, 1_000_000_000), Reservation::New);
    assert_eq!(text_of(main.submit(&good(1), &SUBMISSION)), "busy");
    fixture.other.commit(&good(1), 1);
    fixture.fill(SUBMISSION_UNITS_MAX);
    assert_eq!(text_of(main.submit(&good(1), &SUBMISSION)), "ring full");
    assert_eq!(text_of(main.submit(&good(2), &SUBMISSION)), "ring full");
    assert_eq!(fixture.given(), 0);
}

#[test]
fn a_copy_renews_the_entry_of_its_transaction_until_it_is_forgotten() {
    let mut fixture = Fixture::usual();
    let mut main = main_thread(&mut fixture);
    assert_eq!(text_of(main.submit(&good(1), &SUBMISSION)), signature(&good(1)));
    // The entry is of the time when it was validated.
    assert!(!main.renew(&good(1), 0, 2_000_000_000));
    assert!(main.renew(&good(1), 1_500_000_000, 2_000_000_000));
    assert!(fixture.other.query(&good(1), 1, 3_500_000_000));
    assert!(main.renew(&[], 0, 0));
    main.forget(&[], 0);
    main.forget(&good(1), 1_999_999_999);
    assert!(fixture.other.query(&good(1), 1, 3_500_000_000));
    main.forget(&good(1), 2_000_000_000);
    assert!(!fixture.other.query(&good(1), 1, 3_500_000_000));
    assert_eq!(main.evicted(), 0);
}

#[test]
fn panic_fails_one_submission() {
    let mut fixture = Fixture::usual();
    let mut main = main_thread(&mut fixture);
    fixture.is_broken.set(true);
    assert_eq!(text_of(main.submit(&good(1), &SUBMISSION)), "failed");
    assert_eq!(fixture.state(0), VOID);
    fixture.is_broken.set(false);
    // The panic left no reservation, so the same transaction is new.
    assert_eq!(text_of(main.submit(&good(1), &SUBMISSION)), signature(&good(1)));
    assert_eq!(text_of(main.submit(&good(2), &SUBMISSION)), signature(&good(2)));
}
