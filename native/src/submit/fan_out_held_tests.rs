//! Which transactions are sent separately and which are corked, when those are uncorked, and what
//! is reported to the sender.

use super::fixture::{BYTES, Call, Fixture, NS_PER_US, OFFER, times};
use super::*;

#[test]
fn corked_transaction_counts_as_queued_and_is_not_urgent() {
    let mut fixture = Fixture::busy();
    fixture.run_on();
    assert!(!fixture.sent.corked);
    assert!(fixture.send());
    assert_eq!((fixture.sent.status, fixture.sent.corked), (0b11 << 16, true));
    assert!(!fixture.is_urgent());
}

#[test]
fn corked_transaction_that_no_leader_accepts_is_not_sent() {
    let mut fixture = Fixture::busy();
    fixture.run_on();
    assert_eq!(fixture.send_many(0b10, 1), [true]);
    assert!(fixture.is_urgent());
    assert_eq!(fixture.send_many(0, 2), [false, false]);
}

#[test]
fn transactions_with_pauses_are_sent_separately() {
    let mut fixture = Fixture::busy();
    assert_eq!(fixture.give(50, BURST_GAP_NS), times(Call::Send, 50));
    assert_eq!(
        fixture.give(BURST_MIN, BURST_GAP_NS - 1),
        [times(Call::Send, 3), times(Call::Cork, 1)].concat()
    );
}

#[test]
fn burst_is_corked_from_the_fifth_transaction_to_the_end_of_the_turn() {
    let mut fixture = Fixture::busy();
    let expected = [times(Call::Send, BURST_MIN), times(Call::Cork, 3)].concat();
    assert_eq!(fixture.give(BURST_MIN + 3, NS_PER_US), expected);
    assert_eq!((fixture.end_turn(), fixture.end_turn()), (vec![Call::Uncork], vec![]));
    // Without a pause the next turn continues the burst.
    assert_eq!(fixture.give(2, NS_PER_US), times(Call::Cork, 2));
    assert_eq!(fixture.end_turn(), [Call::Uncork]);
    assert_eq!(fixture.give(1, BURST_GAP_NS), [Call::Send]);
    assert_eq!(fixture.end_turn(), []);
}

#[test]
fn duration_of_a_send_or_uncork_is_no_pause() {
    let mut fixture = Fixture::busy();
    fixture.fake.call_ns.set(BURST_GAP_NS);
    fixture.give(BURST_MIN + 1, NS_PER_US);
    fixture.fake.uncork_ns.set(BURST_GAP_NS);
    fixture.end_turn();
    assert_eq!(fixture.give(1, NS_PER_US), [Call::Cork]);
    fixture.end_turn();
    assert_eq!(fixture.give(1, BURST_GAP_NS), [Call::Send]);
}

#[test]
fn corked_transactions_are_uncorked_at_the_maximum_count() {
    let mut fixture = Fixture::busy();
    fixture.give(BURST_MIN, NS_PER_US);
    let expected = [times(Call::Cork, CORKED_TRANSACTIONS_MAX), times(Call::Uncork, 1)].concat();
    assert_eq!(fixture.give(CORKED_TRANSACTIONS_MAX, NS_PER_US), expected);
    assert_eq!((fixture.end_turn(), fixture.give(1, NS_PER_US)), (vec![], vec![Call::Cork]));
}

#[test]
fn corked_transactions_are_uncorked_after_the_maximum_time() {
    let mut fixture = Fixture::busy();
    let apart_ns = BURST_GAP_NS / 2;
    let count = u32::try_from(CORKED_NS_MAX.div_ceil(apart_ns)).unwrap() + 1;
    fixture.give(BURST_MIN, NS_PER_US);
    let expected = [times(Call::Cork, count), times(Call::Uncork, 1)].concat();
    assert_eq!(fixture.give(count, apart_ns), expected);
    fixture.give(1, NS_PER_US);
    let held_ns = fixture.fake.now_ns.get();
    fixture.give(1, NS_PER_US);
    assert_eq!(fixture.flush_if_due(held_ns - 1), []);
    assert_eq!(fixture.flush_if_due(held_ns + CORKED_NS_MAX - 1), []);
    assert_eq!(fixture.flush_if_due(held_ns + CORKED_NS_MAX), [Call::Uncork]);
    assert_eq!((fixture.flush_if_due(u64::MAX), fixture.end_turn()), (vec![], vec![]));
}

#[test]
fn corked_transactions_are_uncorked_before_a_send_after_a_pause() {
    let mut fixture = Fixture::busy();
    fixture.give(BURST_MIN + 1, NS_PER_US);
    assert_eq!(fixture.give(1, BURST_GAP_NS), [Call::Uncork, Call::Send]);
}

#[test]
fn rejected_cork_is_not_uncorked() {
    let mut fixture = Fixture::busy();
    fixture.give(BURST_MIN, NS_PER_US);
    fixture.fake.status.set(0);
    assert_eq!(fixture.give(1, NS_PER_US), [Call::Cork]);
    assert_eq!(fixture.end_turn(), []);
}

#[test]
fn a_thread_without_turns_sends_each_transaction_at_once() {
    let Fixture { fake, fan_out, mut sent, .. } = Fixture::busy();
    let mut fan_out = fan_out.without_corking();
    for _ in 0..2 * BURST_MIN {
        let outcome = fan_out.send(BYTES, OFFER, &mut sent, |_| true);
        assert_eq!((outcome, sent.corked), (FanOutOutcome::Sent, false));
    }
    assert_eq!(fake.calls.take(), times(Call::Send, 2 * BURST_MIN));
}
