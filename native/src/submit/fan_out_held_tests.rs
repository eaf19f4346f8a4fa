//! Which transactions are sent by themselves and which together, when those leave, and what the
//! sender is told of them.

use super::rig::{Call, NS_PER_US, Rig, times};
use super::*;

#[test]
fn a_front_counts_on_no_news_of_what_it_holds() {
    let mut rig = Rig::busy();
    rig.run_on();
    assert!(rig.front.is_awaited() && !rig.sent.held);
    assert!(rig.send());
    assert_eq!((rig.sent.mask, rig.sent.held), (0b11 << 16, true));
    assert!(!rig.front.is_urgent() && !rig.front.is_awaited());
}

#[test]
fn the_sender_looks_once_copies_that_were_held_wait_again_and_again() {
    let mut rig = Rig::busy();
    // Has it hold so many, and release them, each time a while after the time before.
    let hold = |rig: &mut Rig, count| {
        let sent = rig.send_many(0b11, count);
        rig.pass(HELD_UP_NS);
        rig.end_turn();
        (sent.contains(&false), rig.front.take_held_up())
    };
    rig.run_on();
    rig.fake.left.set(Backlog::Waits);
    assert_eq!(hold(&mut rig, HELD_UP - 1), (false, false));
    rig.fake.left.set(Backlog::None);
    assert_eq!(hold(&mut rig, 1), (false, false));
    rig.fake.left.set(Backlog::Waits);
    assert_eq!(hold(&mut rig, HELD_UP - 1), (false, false));
    assert_eq!(hold(&mut rig, 1), (false, true));
    assert_eq!(hold(&mut rig, 1), (true, false));
    // So it does where they leave because they are many, of which the last is still sent.
    rig.publisher.open(true);
    let sent = rig.send_many(0b11, RUN + HELD_UP_MAX + 1);
    assert_eq!(sent.iter().filter(|sent| !**sent).count(), 1);
    assert!(rig.front.take_held_up() && !rig.front.take_held_up());
}

#[test]
fn copies_that_wait_a_moment_are_no_reason_to_look_unless_they_are_many() {
    let mut rig = Rig::busy();
    rig.run_on();
    rig.fake.left.set(Backlog::Waits);
    // Releases a dozen, and answers whether the sender is to look.
    let release = |rig: &mut Rig, after_ns| {
        rig.send_many(0b11, 12);
        rig.pass(after_ns);
        rig.end_turn();
        rig.front.take_held_up()
    };
    let releases = (0..100).take_while(|_| !release(&mut rig, NS_PER_US)).count();
    assert_eq!(releases, (HELD_UP_MAX as usize - 1) / 12);
    rig.publisher.open(true);
    assert_eq!((release(&mut rig, 0), release(&mut rig, HELD_UP_NS - 1)), (false, false));
    assert!(release(&mut rig, 1));
    // What went out between two that wait begins a new row.
    rig.publisher.open(true);
    assert!(!release(&mut rig, 0));
    rig.fake.left.set(Backlog::None);
    assert!(!release(&mut rig, HELD_UP_NS));
    rig.fake.left.set(Backlog::Waits);
    assert_eq!((release(&mut rig, 0), release(&mut rig, HELD_UP_NS - 1)), (false, false));
}

#[test]
fn copies_that_another_thread_is_at_work_for_neither_end_a_row_nor_are_of_it() {
    let mut rig = Rig::busy();
    rig.run_on();
    let release = |rig: &mut Rig, left| {
        rig.fake.left.set(left);
        rig.send_many(0b11, 12);
        rig.pass(HELD_UP_NS);
        rig.end_turn();
        rig.front.take_held_up()
    };
    assert!(!release(&mut rig, Backlog::Waits));
    assert!(!(0..9).any(|_| release(&mut rig, Backlog::Moves)));
    assert!(release(&mut rig, Backlog::Waits));
}

#[test]
fn the_sender_looks_as_soon_as_a_leader_has_no_room() {
    let mut rig = Rig::busy();
    rig.run_on();
    rig.fake.left.set(Backlog::Full);
    assert_eq!(rig.send_many(0b11, 2), [true, true]);
    rig.end_turn();
    assert!(rig.front.take_held_up());
    assert_eq!(rig.send_many(0b11, 1), [false]);
}

#[test]
fn what_no_leader_took_while_it_held_is_left_to_the_sender() {
    let mut rig = Rig::busy();
    rig.run_on();
    assert_eq!(rig.send_many(0b10, 1), [true]);
    assert!(rig.front.is_urgent());
    assert_eq!(rig.send_many(0, 2), [false, false]);
}

#[test]
fn transactions_with_pauses_between_them_are_sent_by_themselves() {
    let mut rig = Rig::busy();
    assert_eq!(rig.give(50, PAUSE_NS), times(Call::Send, 50));
    assert_eq!(rig.give(RUN, PAUSE_NS - 1), [times(Call::Send, 3), times(Call::Hold, 1)].concat());
}

#[test]
fn transactions_are_held_from_the_fifth_after_a_pause_on_until_the_turn_is_through() {
    let mut rig = Rig::busy();
    let expected = [times(Call::Send, RUN), times(Call::Hold, 3)].concat();
    assert_eq!(rig.give(RUN + 3, NS_PER_US), expected);
    assert_eq!((rig.end_turn(), rig.end_turn()), (vec![Call::Release], vec![]));
    // Without a pause since, the next turn goes on with it.
    assert_eq!(rig.give(2, NS_PER_US), times(Call::Hold, 2));
    assert_eq!(rig.end_turn(), [Call::Release]);
    assert_eq!(rig.give(1, PAUSE_NS), [Call::Send]);
    assert_eq!(rig.end_turn(), []);
}

#[test]
fn the_time_of_a_sending_or_a_release_is_no_pause() {
    let mut rig = Rig::busy();
    rig.fake.call_ns.set(PAUSE_NS);
    rig.give(RUN + 1, NS_PER_US);
    rig.fake.release_ns.set(PAUSE_NS);
    rig.end_turn();
    assert_eq!(rig.give(1, NS_PER_US), [Call::Hold]);
    rig.end_turn();
    assert_eq!(rig.give(1, PAUSE_NS), [Call::Send]);
}

#[test]
fn what_is_held_leaves_as_soon_as_it_is_many() {
    let mut rig = Rig::busy();
    rig.give(RUN, NS_PER_US);
    let expected = [times(Call::Hold, HELD_MAX), times(Call::Release, 1)].concat();
    assert_eq!(rig.give(HELD_MAX, NS_PER_US), expected);
    assert_eq!((rig.end_turn(), rig.give(1, NS_PER_US)), (vec![], vec![Call::Hold]));
}

#[test]
fn what_was_held_for_long_leaves_before_the_next_or_other_work() {
    let mut rig = Rig::busy();
    let apart_ns = PAUSE_NS / 2;
    let count = u32::try_from(HELD_NS_MAX.div_ceil(apart_ns)).unwrap() + 1;
    rig.give(RUN, NS_PER_US);
    let expected = [times(Call::Hold, count), times(Call::Release, 1)].concat();
    assert_eq!(rig.give(count, apart_ns), expected);
    rig.give(1, NS_PER_US);
    let held_ns = rig.fake.now_ns.get();
    rig.give(1, NS_PER_US);
    assert_eq!(rig.heed(held_ns - 1), []);
    assert_eq!(rig.heed(held_ns + HELD_NS_MAX - 1), []);
    assert_eq!(rig.heed(held_ns + HELD_NS_MAX), [Call::Release]);
    assert_eq!((rig.heed(u64::MAX), rig.end_turn()), (vec![], vec![]));
}

#[test]
fn what_is_held_leaves_before_one_that_comes_after_a_pause() {
    let mut rig = Rig::busy();
    rig.give(RUN + 1, NS_PER_US);
    assert_eq!(rig.give(1, PAUSE_NS), [Call::Release, Call::Send]);
}

#[test]
fn nothing_is_released_where_the_engine_took_nothing() {
    let mut rig = Rig::busy();
    rig.give(RUN, NS_PER_US);
    rig.fake.mask.set(0);
    assert_eq!(rig.give(1, NS_PER_US), [Call::Hold]);
    assert_eq!(rig.end_turn(), []);
}
