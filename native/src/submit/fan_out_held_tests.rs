//! Which transactions are sent by themselves and which together, when those leave, and what the
//! sender is told of them.

use super::fixture::{Call, Fixture, NS_PER_US, times};
use super::*;

#[test]
fn a_front_counts_on_no_news_of_what_it_holds() {
    let mut fixture = Fixture::busy();
    fixture.run_on();
    assert!(fixture.fan_out.is_wake_pending() && !fixture.sent.corked);
    assert!(fixture.send());
    assert_eq!((fixture.sent.status, fixture.sent.corked), (0b11 << 16, true));
    assert!(!fixture.fan_out.needs_immediate_wake() && !fixture.fan_out.is_wake_pending());
}

#[test]
fn the_sender_looks_once_copies_that_were_held_wait_again_and_again() {
    let mut fixture = Fixture::busy();
    // Has it hold so many, and release them, each time a while after the time before.
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
    // So it does where they leave because they are many, of which the last is still sent.
    fixture.publisher.open(true);
    let sent = fixture.send_many(0b11, BURST_MIN + STALL_COUNT_MAX + 1);
    assert_eq!(sent.iter().filter(|sent| !**sent).count(), 1);
    assert!(fixture.fan_out.take_stalled() && !fixture.fan_out.take_stalled());
}

#[test]
fn copies_that_wait_a_moment_are_no_reason_to_look_unless_they_are_many() {
    let mut fixture = Fixture::busy();
    fixture.run_on();
    fixture.fake.left.set(Backlog::Waits);
    // Releases a dozen, and answers whether the sender is to look.
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
    // What went out between two that wait begins a new row.
    fixture.publisher.open(true);
    assert!(!release(&mut fixture, 0));
    fixture.fake.left.set(Backlog::None);
    assert!(!release(&mut fixture, STALL_NS));
    fixture.fake.left.set(Backlog::Waits);
    assert_eq!((release(&mut fixture, 0), release(&mut fixture, STALL_NS - 1)), (false, false));
}

#[test]
fn copies_that_another_thread_is_at_work_for_neither_end_a_row_nor_are_of_it() {
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
fn the_sender_looks_as_soon_as_a_leader_has_no_room() {
    let mut fixture = Fixture::busy();
    fixture.run_on();
    fixture.fake.left.set(Backlog::Full);
    assert_eq!(fixture.send_many(0b11, 2), [true, true]);
    fixture.end_turn();
    assert!(fixture.fan_out.take_stalled());
    assert_eq!(fixture.send_many(0b11, 1), [false]);
}

#[test]
fn what_no_leader_took_while_it_held_is_left_to_the_sender() {
    let mut fixture = Fixture::busy();
    fixture.run_on();
    assert_eq!(fixture.send_many(0b10, 1), [true]);
    assert!(fixture.fan_out.needs_immediate_wake());
    assert_eq!(fixture.send_many(0, 2), [false, false]);
}

#[test]
fn transactions_with_pauses_between_them_are_sent_by_themselves() {
    let mut fixture = Fixture::busy();
    assert_eq!(fixture.give(50, BURST_GAP_NS), times(Call::Send, 50));
    assert_eq!(
        fixture.give(BURST_MIN, BURST_GAP_NS - 1),
        [times(Call::Send, 3), times(Call::Cork, 1)].concat()
    );
}

#[test]
fn transactions_are_held_from_the_fifth_after_a_pause_on_until_the_turn_is_through() {
    let mut fixture = Fixture::busy();
    let expected = [times(Call::Send, BURST_MIN), times(Call::Cork, 3)].concat();
    assert_eq!(fixture.give(BURST_MIN + 3, NS_PER_US), expected);
    assert_eq!((fixture.end_turn(), fixture.end_turn()), (vec![Call::Uncork], vec![]));
    // Without a pause since, the next turn goes on with it.
    assert_eq!(fixture.give(2, NS_PER_US), times(Call::Cork, 2));
    assert_eq!(fixture.end_turn(), [Call::Uncork]);
    assert_eq!(fixture.give(1, BURST_GAP_NS), [Call::Send]);
    assert_eq!(fixture.end_turn(), []);
}

#[test]
fn the_time_of_a_sending_or_a_release_is_no_pause() {
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
fn what_is_held_leaves_as_soon_as_it_is_many() {
    let mut fixture = Fixture::busy();
    fixture.give(BURST_MIN, NS_PER_US);
    let expected = [times(Call::Cork, CORKED_MAX), times(Call::Uncork, 1)].concat();
    assert_eq!(fixture.give(CORKED_MAX, NS_PER_US), expected);
    assert_eq!((fixture.end_turn(), fixture.give(1, NS_PER_US)), (vec![], vec![Call::Cork]));
}

#[test]
fn what_was_held_for_long_leaves_before_the_next_or_other_work() {
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
fn what_is_held_leaves_before_one_that_comes_after_a_pause() {
    let mut fixture = Fixture::busy();
    fixture.give(BURST_MIN + 1, NS_PER_US);
    assert_eq!(fixture.give(1, BURST_GAP_NS), [Call::Uncork, Call::Send]);
}

#[test]
fn nothing_is_released_where_the_engine_took_nothing() {
    let mut fixture = Fixture::busy();
    fixture.give(BURST_MIN, NS_PER_US);
    fixture.fake.status.set(0);
    assert_eq!(fixture.give(1, NS_PER_US), [Call::Cork]);
    assert_eq!(fixture.end_turn(), []);
}
