//! Which transactions are sent separately and which are corked, when those are uncorked, and what
//! is reported to the sender.

use super::fixture::{Call, Fixture, NS_PER_US, times};
use super::*;

#[test]
fn corked_transaction_has_no_pending_wake() {
    let mut fixture = Fixture::busy();
    fixture.run_on();
    assert!(fixture.fan_out.is_wake_pending() && !fixture.sent.corked);
    assert!(fixture.send());
    assert_eq!((fixture.sent.status, fixture.sent.corked), (0b11 << 16, true));
    assert!(!fixture.fan_out.needs_immediate_wake() && !fixture.fan_out.is_wake_pending());
}

#[test]
fn repeated_backlog_after_uncork_stalls_sending() {
    let mut fixture = Fixture::busy();
    // Corks `count` transactions and uncorks them after `STALL_NS`.
    let hold = |fixture: &mut Fixture, count| {
        let sent = fixture.send_many(0b11, count);
        fixture.pass(STALL_NS);
        fixture.end_turn();
        (sent.contains(&false), fixture.fan_out.take_stalled())
    };
    fixture.run_on();
    fixture.fake.left.set(Backlog::Waits);
    assert_eq!(hold(&mut fixture, STALL_COUNT - 1), (false, false));
    fixture.fake.left.set(Backlog::None);
    assert_eq!(hold(&mut fixture, 1), (false, false));
    fixture.fake.left.set(Backlog::Waits);
    assert_eq!(hold(&mut fixture, STALL_COUNT - 1), (false, false));
    assert_eq!(hold(&mut fixture, 1), (false, true));
    assert_eq!(hold(&mut fixture, 1), (true, false));
    // The same when they are uncorked at `CORKED_TRANSACTIONS_MAX`; the last transaction is still
    // sent.
    fixture.publisher.open(true);
    let sent = fixture.send_many(0b11, BURST_MIN + STALL_COUNT_MAX + 1);
    assert_eq!(sent.iter().filter(|sent| !**sent).count(), 1);
    assert!(fixture.fan_out.take_stalled() && !fixture.fan_out.take_stalled());
}

#[test]
fn short_backlog_stalls_only_at_the_maximum_count() {
    let mut fixture = Fixture::busy();
    fixture.run_on();
    fixture.fake.left.set(Backlog::Waits);
    // Uncorks a dozen; returns whether the sender must check.
    let release = |fixture: &mut Fixture, after_ns| {
        fixture.send_many(0b11, 12);
        fixture.pass(after_ns);
        fixture.end_turn();
        fixture.fan_out.take_stalled()
    };
    let releases = (0..100).take_while(|_| !release(&mut fixture, NS_PER_US)).count();
    assert_eq!(releases, (STALL_COUNT_MAX as usize - 1) / 12);
    fixture.publisher.open(true);
    assert_eq!((release(&mut fixture, 0), release(&mut fixture, STALL_NS - 1)), (false, false));
    assert!(release(&mut fixture, 1));
    // An uncork without a backlog resets the count.
    fixture.publisher.open(true);
    assert!(!release(&mut fixture, 0));
    fixture.fake.left.set(Backlog::None);
    assert!(!release(&mut fixture, STALL_NS));
    fixture.fake.left.set(Backlog::Waits);
    assert_eq!((release(&mut fixture, 0), release(&mut fixture, STALL_NS - 1)), (false, false));
}

#[test]
fn backlog_driven_by_another_thread_is_not_counted() {
    let mut fixture = Fixture::busy();
    fixture.run_on();
    let release = |fixture: &mut Fixture, left| {
        fixture.fake.left.set(left);
        fixture.send_many(0b11, 12);
        fixture.pass(STALL_NS);
        fixture.end_turn();
        fixture.fan_out.take_stalled()
    };
    assert!(!release(&mut fixture, Backlog::Waits));
    assert!(!(0..9).any(|_| release(&mut fixture, Backlog::Moves)));
    assert!(release(&mut fixture, Backlog::Waits));
}

#[test]
fn full_leader_queue_stalls_immediately() {
    let mut fixture = Fixture::busy();
    fixture.run_on();
    fixture.fake.left.set(Backlog::Full);
    assert_eq!(fixture.send_many(0b11, 2), [true, true]);
    fixture.end_turn();
    assert!(fixture.fan_out.take_stalled());
    assert_eq!(fixture.send_many(0b11, 1), [false]);
}

#[test]
fn corked_transaction_that_no_leader_accepts_is_not_sent() {
    let mut fixture = Fixture::busy();
    fixture.run_on();
    assert_eq!(fixture.send_many(0b10, 1), [true]);
    assert!(fixture.fan_out.needs_immediate_wake());
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
