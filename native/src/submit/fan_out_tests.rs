//! What a front sends and leaves to the sender, and what it tells the sender of it.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::Ordering::SeqCst;

use super::rig::{BYTES, Call, NS_PER_MS, Rig, front_on, routes_of};
use super::*;
use crate::quic::engine::Options;
use crate::submit::route_table::CELLS_MAX;

#[test]
fn a_front_sends_to_all_routes_in_one_call_and_says_what_it_did() {
    let mut rig = Rig::calm();
    assert!(rig.send());
    let Sent { version, count, streams, mask, held } = rig.sent;
    assert_eq!((version, count, mask, held), (rig.version, 2, 0b11, false));
    assert_eq!(streams[..2], [1, 1]);
    assert!(rig.send());
    assert_eq!(rig.sent.streams[..2], [2, 2]);
    let given = rig.fake.given.take();
    assert_eq!((&given[0].0[..], &given[1].0[..]), (&[70, 1, 71, 1][..], &[70, 2, 71, 2][..]));
    assert_eq!(given[0].2, 800);
}

#[test]
fn the_numbers_of_transactions_are_no_other_threads() {
    let mut rig = Rig::calm();
    let mut other = front_on(&rig.memory, &rig.fake, NS_PER_MS);
    for _ in 0..2 {
        assert!(rig.send());
        assert!(other.send(BYTES, &mut rig.sent));
    }
    let numbers: Vec<u64> = rig.fake.given.take().iter().map(|given| given.1).collect();
    let expected = [2 * TX_MIN + 1, 3 * TX_MIN + 1, 2 * TX_MIN + 2, 3 * TX_MIN + 2];
    assert_eq!(numbers, expected);
    // They stay whole as JavaScript's numbers, however many fronts there were.
    rig.publisher.words[2].store(8189, SeqCst);
    for number in [8191 * TX_MIN + 1, TX_MIN + 1] {
        assert!(front_on(&rig.memory, &rig.fake, 0).send(BYTES, &mut rig.sent));
        assert_eq!(rig.fake.given.take()[0].1, number);
        assert!(number < 1 << 53);
    }
}

#[test]
fn a_front_sends_up_to_16_copies() {
    let mut rig = Rig::new(16, 0, NS_PER_MS);
    rig.fake.mask.set(u32::MAX);
    assert!(rig.send());
    assert_eq!((rig.sent.count, rig.sent.mask, rig.sent.streams), (16, u32::MAX, [1; 16]));
    assert_eq!(rig.fake.given.take()[0].0.len(), 32);
}

#[test]
fn what_is_too_large_or_empty_or_comes_to_closed_routes_is_left_to_the_sender() {
    let mut rig = Rig::calm();
    assert!(!rig.front.send(&[0; 1233], &mut rig.sent));
    assert!(!rig.front.send(&[], &mut rig.sent));
    rig.publisher.open(false);
    assert!(!rig.send());
    rig.publisher.open(true);
    rig.publisher.words[0].fetch_add(1, SeqCst);
    assert!(!rig.send());
    assert_eq!((rig.sent.version, rig.fake.calls.take()), (0, vec![]));
    rig.publisher.words[0].fetch_add(1, SeqCst);
    assert!(rig.front.send(&[0; 1232], &mut rig.sent));
}

#[test]
fn without_routes_all_is_left_to_the_sender() {
    let mut rig = Rig::new(0, 0, 0);
    assert!(!rig.send());
    assert!(rig.publisher.words[1].load(SeqCst) == 1 && rig.fake.calls.take().is_empty());
}

#[test]
fn a_front_goes_by_a_new_table_as_soon_as_there_is_one() {
    let mut rig = Rig::calm();
    assert!(rig.send());
    let version = rig.publisher.publish(&[(99, 4)], 700, 1232, 0);
    assert!(!rig.send());
    rig.publisher.open(true);
    assert!(rig.send());
    assert_eq!((rig.sent.version, rig.sent.count), (version, 1));
    assert_eq!(rig.fake.given.take()[1].0, [99, 1]);
}

#[test]
fn nothing_is_sent_on_another_engine_and_the_routes_stay_open() {
    let mut rig = Rig::calm();
    for engine in [0, 4] {
        rig.publisher.engine = engine;
        rig.publisher.publish(&routes_of(2), 800, 1232, 0);
        rig.publisher.open(true);
        assert!(!rig.send());
    }
    let (is_open, calls) = (rig.publisher.words[1].load(SeqCst), rig.fake.calls.take());
    // Nor is a stream drawn in vain.
    assert_eq!((is_open, calls, rig.publisher.words[64].load(SeqCst)), (1, vec![], 0));
    rig.publisher.engine = 3;
    rig.publisher.publish(&routes_of(2), 800, 1232, 0);
    rig.publisher.open(true);
    assert!(rig.send());
}

#[test]
fn a_table_that_makes_no_sense_is_left_to_the_sender() {
    let mut rig = Rig::calm();
    rig.publisher.publish(&[(70, 0), (71, CELLS_MAX as u32)], 800, 1232, 0);
    rig.publisher.open(true);
    assert!(!rig.send());
    assert!(rig.publisher.words[1].load(SeqCst) == 1 && rig.fake.calls.take().is_empty());
    let mut dice: u32 = 1;
    for _ in 0..2_000 {
        for word in &rig.publisher.words[1..64] {
            dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            word.store(if dice >> 31 == 0 { dice >> 8 } else { dice >> 28 }, SeqCst);
        }
        rig.publisher.words[3].store(3, SeqCst);
        rig.publisher.words[0].fetch_add(2, SeqCst);
        rig.publisher.open(true);
        if rig.send() {
            assert!((1..=16).contains(&rig.sent.count));
            assert_eq!(rig.fake.given.take()[0].0.len(), 2 * rig.sent.count);
        }
        rig.end_turn();
    }
}

#[test]
fn no_more_is_sent_where_the_engine_took_nothing_until_the_sender_has_looked() {
    let mut rig = Rig::calm();
    assert_eq!(rig.send_many(0, 2), [false, false]);
    assert_eq!((rig.fake.calls.take(), rig.sent.version), (vec![Call::Send], 0));
    rig.publisher.open(true);
    assert_eq!(rig.send_many(1, 1), [true]);
}

#[test]
fn no_more_is_sent_where_copies_have_to_wait_again_and_again() {
    let mut rig = Rig::calm();
    let (waits, is_not_taken) = (0b01 | 1 << 17, 0b10);
    assert!(!rig.send_many(waits, HELD_UP - 1).contains(&false));
    // Another thread was at work for the leader, and that is over.
    assert_eq!(rig.send_many(0b11, 1), [true]);
    assert!(!rig.send_many(waits, HELD_UP - 1).contains(&false));
    assert!(!rig.front.is_urgent());
    assert_eq!(rig.send_many(is_not_taken, 1), [true]);
    assert_eq!(rig.send_many(waits, 1), [false]);
    assert!(rig.front.is_urgent());
    rig.publisher.open(true);
    assert_eq!(rig.send_many(waits, 1), [true]);
    assert!(!rig.front.is_urgent());
    assert!(!rig.send_many(waits, HELD_UP - 2).contains(&false));
    assert_eq!((rig.send_many(waits, 1), rig.front.is_urgent()), (vec![true], true));
    assert!(!rig.front.take_held_up());
}

#[test]
fn a_front_knows_whether_the_engines_news_bring_the_sender_to_its_record() {
    let mut rig = Rig::calm();
    let is_awaited = |rig: &mut Rig, mask| rig.send_many(mask, 1)[0] && rig.front.is_awaited();
    assert!(is_awaited(&mut rig, 0b11));
    // Its news were taken before the record was there, or are being taken.
    rig.publisher.turn_taking();
    assert!(!rig.front.is_awaited());
    assert!(!is_awaited(&mut rig, 0b11));
    rig.publisher.turn_taking();
    assert!(!rig.front.is_awaited());
    assert!(is_awaited(&mut rig, 0b11));
    // What waits may do so for long, and there is no news of it until then.
    assert!(!is_awaited(&mut rig, 0b11 << 16));
    assert!(is_awaited(&mut rig, 0b01 | 1 << 17));
}

#[test]
fn the_sender_hears_at_once_of_what_copies_of_were_left_to_it_and_of_nothing_else() {
    let mut rig = Rig::calm();
    let is_urgent = |rig: &mut Rig, mask| rig.send_many(mask, 1)[0] && rig.front.is_urgent();
    let masks = [0b11, 0b01 | 1 << 17, 0b10, 1 << 16, 0b11];
    let urgent = masks.map(|mask| is_urgent(&mut rig, mask));
    assert_eq!(urgent, [false, false, true, true, false]);
    assert!(is_urgent(&mut Rig::new(2, 1, NS_PER_MS), 0b11));
    assert!(is_urgent(&mut Rig::new(16, 1, NS_PER_MS), 0xffff));
    assert!(is_urgent(&mut Rig::new(16, 0, NS_PER_MS), 0x7fff));
    assert!(!is_urgent(&mut Rig::new(16, 0, NS_PER_MS), 0xffff));
}

#[test]
fn the_engine_itself_is_sent_by_and_held_by() {
    let leader = UdpSocket::bind("127.0.0.1:0").unwrap();
    let binds = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let options = Options { binds, ..Options::default() };
    let engine = Engine::start(options, Box::new(|| {})).unwrap();
    let id = engine.peer_open(leader.local_addr().unwrap()).unwrap();
    let peer = engine.peer(id).unwrap();
    let wire = EngineWire::new(5, engine.clone());
    // The leader never answers, so all copies wait.
    assert_eq!((wire.engine(), wire.send(&[id, 1], BYTES, 7, 60_000)), (5, 1 << 16));
    assert_eq!((wire.hold(&[id, 2], BYTES, 8, 60_000), peer.queued()), (1 << 16, 1));
    wire.release();
    assert_eq!(peer.queued(), 2);
    assert_eq!((wire.send(&[id + 1, 1], BYTES, 9, 60_000), wire.hold(&[id, 1], &[], 9, 1)), (0, 0));
}

#[test]
fn a_panic_of_the_engine_is_an_answer() {
    assert_eq!((guarded(0, || panic!("a bug")), guarded(0, || 3)), (0, 3));
}
