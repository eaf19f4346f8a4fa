//! What a thread sends and what it leaves to the sender, and what it reports.

use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::channel;
use std::time::Duration;

use super::fixture::{BYTES, Call, Fixture, NS_PER_MS, OFFER, fan_out_on, targets_of};
use super::*;
use crate::quic::engine::Options;
use crate::quic::event::RECORD_FIELDS;
use crate::quic::limits::{OUTCOMES_DELAY_NS_MAX, UNITS_PER_WAKE};

#[test]
fn transaction_is_sent_to_all_targets_in_one_call() {
    let mut fixture = Fixture::calm();
    assert!(fixture.send());
    let FanOutResult { number, count, peers, status, corked } = fixture.sent;
    assert_eq!((number, count, status, corked), (NUMBERS + 1, 2, 0b11, false));
    assert_eq!(peers[..2], [70, 71]);
    assert!(fixture.send());
    assert_eq!(fixture.sent.number, number + 1);
    let given = fixture.fake.given.take();
    assert_eq!(given[0].0, [70, number, 71, number]);
    assert_eq!(given[1].0, [70, number + 1, 71, number + 1]);
    assert_eq!(given[0].2, 800);
}

#[test]
fn transaction_numbers_are_unique_across_threads() {
    let mut fixture = Fixture::calm();
    let mut other = fan_out_on(&fixture.targets, &fixture.fake, NS_PER_MS);
    for _ in 0..2 {
        assert!(fixture.send());
        assert_eq!(other.send(BYTES, OFFER, &mut fixture.sent, |_| true), FanOutOutcome::Sent);
    }
    let numbers: Vec<u64> = fixture.fake.given.take().iter().map(|given| given.1).collect();
    let range = u64::from(NUMBERS);
    assert_eq!(numbers, [range + 1, 2 * range + 1, range + 2, 2 * range + 2]);
    // They have 31 bits, however many ingress threads there were.
    fixture.targets.set_threads(126);
    for number in [127 * range + 1, range + 1] {
        let mut other = fan_out_on(&fixture.targets, &fixture.fake, 0);
        assert_eq!(other.send(BYTES, OFFER, &mut fixture.sent, |_| true), FanOutOutcome::Sent);
        assert_eq!(fixture.fake.given.take()[0].1, number);
    }
}

#[test]
fn transaction_numbers_start_again_within_their_range() {
    let mut fixture = Fixture::calm();
    fixture.fan_out.used = NUMBERS - 2;
    let numbers = [0; 3].map(|_| {
        assert!(fixture.send());
        fixture.sent.number
    });
    assert_eq!(numbers, [2 * NUMBERS - 1, NUMBERS, NUMBERS + 1]);
}

#[test]
fn up_to_16_deliveries_are_sent() {
    let mut fixture = Fixture::new(16, NS_PER_MS);
    fixture.fake.status.set(0xff00_00ff);
    assert!(fixture.send());
    assert_eq!(
        (fixture.sent.count, fixture.sent.status, fixture.sent.peers.to_vec()),
        (16, 0xff00_00ff, targets_of(16))
    );
    assert_eq!(fixture.fake.given.take()[0].0.len(), 32);
}

#[test]
fn oversized_or_empty_transaction_is_not_sent() {
    let mut fixture = Fixture::calm();
    let refused = FanOutOutcome::NoLeader;
    assert_eq!(fixture.fan_out.send(&[0; 1233], OFFER, &mut fixture.sent, |_| true), refused);
    assert_eq!(fixture.fan_out.send(&[], OFFER, &mut fixture.sent, |_| true), refused);
    assert_eq!((fixture.sent.number, fixture.fake.calls.take()), (0, vec![]));
    let outcome = fixture.fan_out.send(&[0; 1232], OFFER, &mut fixture.sent, |_| true);
    assert_eq!(outcome, FanOutOutcome::Sent);
}

#[test]
fn transaction_is_sent_to_those_leaders_that_accept_its_size() {
    let mut fixture = Fixture::calm();
    fixture.targets.publish_each(&[70, 71, 72], 800, &[1232, 4096, 1500]);
    let outcome = fixture.fan_out.send(&[0; 1400], OFFER, &mut fixture.sent, |_| true);
    assert_eq!((outcome, fixture.sent.count), (FanOutOutcome::Sent, 2));
    assert_eq!(fixture.sent.peers[..2], [71, 72]);
    let number = fixture.sent.number;
    assert_eq!(fixture.fake.given.take()[0].0, [71, number, 72, number]);
}

#[test]
fn without_targets_nothing_is_sent() {
    let mut fixture = Fixture::new(0, 0);
    assert_eq!((fixture.outcome(), fixture.fake.calls.take()), (FanOutOutcome::NoLeader, vec![]));
}

#[test]
fn new_targets_are_used_immediately() {
    let mut fixture = Fixture::calm();
    assert!(fixture.send());
    fixture.targets.publish(&[99], 700, 1232);
    assert!(fixture.send());
    assert_eq!((fixture.sent.peers[0], fixture.sent.count), (99, 1));
    assert_eq!(fixture.fake.given.take()[1].0, [99, NUMBERS + 2]);
}

/// Only one of the leaders accepts large transactions, and its connection has ended.
#[test]
fn leader_that_ended_keeps_no_other_transaction_from_the_others() {
    let mut fixture = Fixture::calm();
    fixture.targets.publish_each(&[70, 71], 800, &[4096, 1232]);
    fixture.fake.status.set(0);
    let outcome = fixture.fan_out.send(&[0; 2000], OFFER, &mut fixture.sent, |_| true);
    assert_eq!(outcome, FanOutOutcome::NoLeader);
    assert_eq!(fixture.send_many(0b10, 1), [true]);
    assert_eq!(fixture.sent.peers[..2], [70, 71]);
}

#[test]
fn transaction_is_published_before_the_engine_gets_it_and_only_where_it_is_sent() {
    let mut fixture = Fixture::calm();
    let fake = fixture.fake.clone();
    let mut published = Vec::new();
    for is_published in [false, true] {
        let outcome = fixture.fan_out.send(BYTES, OFFER, &mut fixture.sent, |targets| {
            assert!(fake.calls.borrow().is_empty());
            published.push((targets.number, targets.count, targets.status, targets.peers[0]));
            is_published
        });
        let expected = if is_published { FanOutOutcome::Sent } else { FanOutOutcome::Unpublished };
        assert_eq!(outcome, expected);
    }
    assert_eq!(fixture.fake.calls.take(), [Call::Send]);
    let expected = [1, 2].map(|number| (NUMBERS + number, 2, 0b11 << 16, 70));
    assert_eq!(published, expected);
    fixture.targets.publish(&[], 800, 1232);
    let sent = fixture.fan_out.send(BYTES, OFFER, &mut fixture.sent, |_| panic!("it is empty"));
    assert_eq!(sent, FanOutOutcome::NoLeader);
}

/// A leader that takes nothing must not keep transactions from the others.
#[test]
fn queued_deliveries_never_stop_sending() {
    let mut fixture = Fixture::calm();
    assert!(!fixture.send_many(0b01 | 1 << 17, 1_000).contains(&false));
    assert!(!fixture.send_many(0b11 << 16, 1_000).contains(&false));
    assert!(!fixture.is_urgent());
}

#[test]
fn a_leader_with_a_full_queue_is_the_senders_task_without_haste() {
    let mut fixture = Fixture::calm();
    fixture.fake.saturated.set(0b10);
    assert_eq!(fixture.send_many(0b01, 1), [true]);
    assert_eq!((fixture.sent.status, fixture.is_urgent()), (0b01, false));
}

#[test]
fn full_queues_everywhere_refuse_the_transaction_and_no_other() {
    let mut fixture = Fixture::calm();
    fixture.fake.status.set(0);
    for saturated in [0b11, 0b10] {
        fixture.fake.saturated.set(saturated);
        assert_eq!(fixture.outcome(), FanOutOutcome::LeadersFull);
    }
    fixture.fake.saturated.set(0);
    assert_eq!(fixture.send_many(0b11, 1), [true]);
}

#[test]
fn immediate_wake_is_needed_only_for_missing_deliveries() {
    let mut fixture = Fixture::calm();
    let needs_immediate_wake =
        |fixture: &mut Fixture, status| fixture.send_many(status, 1)[0] && fixture.is_urgent();
    let masks = [0b11, 0b01 | 1 << 17, 0b10, 1 << 16, 0b11];
    let urgent = masks.map(|status| needs_immediate_wake(&mut fixture, status));
    assert_eq!(urgent, [false, false, true, true, false]);
    assert!(needs_immediate_wake(&mut Fixture::new(16, NS_PER_MS), 0x7fff));
    assert!(!needs_immediate_wake(&mut Fixture::new(16, NS_PER_MS), 0xffff));
}

fn transaction<'a>(deliveries: &'a [u32], bytes: &'a [u8]) -> Transaction<'a> {
    Transaction { deliveries, bytes, tx: 7, ttl_ms: 60_000, offer: OFFER }
}

#[test]
fn engine_ref_sends_and_corks() {
    let leader = UdpSocket::bind("127.0.0.1:0").unwrap();
    let binds = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let options = Options { binds, ..Options::default() };
    let engine = Engine::start(options, Box::new(|| {})).unwrap();
    let id = engine.peer_open(leader.local_addr().unwrap()).unwrap();
    let peer = engine.peer(id).unwrap();
    let engine_handle = EngineRef(engine.clone());
    // The leader never responds, so all deliveries are queued.
    let status = engine_handle.send(&transaction(&[id, 1], BYTES));
    assert_eq!(status.bits(), 1 << 16);
    let status = engine_handle.cork(&transaction(&[id, 2], BYTES));
    assert_eq!((status.bits(), peer.queued()), (1 << 16, 1));
    engine_handle.uncork();
    assert_eq!(peer.queued(), 2);
    assert_eq!(engine_handle.send(&transaction(&[id + 1, 1], BYTES)).bits(), 0);
    assert_eq!(engine_handle.cork(&transaction(&[id, 1], &[])).bits(), 0);
}

#[test]
fn a_stopped_engine_has_no_targets() {
    let binds = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let engine = Engine::start(Options { binds, ..Options::default() }, Box::new(|| {})).unwrap();
    engine.targets().publish(&[1], 800, 1232);
    assert_eq!(engine.targets().latest().count, 1);
    engine.stop(Duration::ZERO);
    assert_eq!(engine.targets().latest().count, 0);
}

#[test]
fn engine_wakes_the_sender_for_a_record_in_time_and_for_an_urgent_one_or_many_at_once() {
    const GUARD: Duration = Duration::from_secs(20);
    let binds = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    let (sender, woken) = channel();
    let waker = Box::new(move || sender.send(()).unwrap_or_default());
    let engine = Engine::start(Options { binds, ..Options::default() }, waker).unwrap();
    let engine_handle = EngineRef(engine.clone());
    // The sender reads, and may be woken again.
    let read = || {
        let mut out = vec![0.0; (1 + UNITS_PER_WAKE) * RECORD_FIELDS];
        engine.events().drain(&mut out);
    };
    let note = |units, is_urgent| {
        for _ in 0..units {
            engine.events().entries.claim(1, UNITS_PER_WAKE).unwrap().complete();
        }
        engine_handle.note_record(is_urgent, engine_handle.now_ns());
    };
    // No event follows, so the I/O thread wakes the sender.
    let noted_ns = engine_handle.now_ns();
    note(1, false);
    woken.recv_timeout(GUARD).unwrap();
    assert!(engine_handle.now_ns() >= noted_ns + OUTCOMES_DELAY_NS_MAX, "woken at once");
    read();
    note(UNITS_PER_WAKE, false);
    woken.try_recv().unwrap();
    read();
    note(1, true);
    engine_handle.wake_if_urgent();
    woken.recv_timeout(GUARD).unwrap();
    read();
    engine_handle.wake_if_urgent();
    assert!(woken.try_recv().is_err());
}

#[test]
fn thread_waits_for_others_for_a_bounded_time_each_turn_and_keeps_nothing_corked_meanwhile() {
    let mut fixture = Fixture::busy();
    fixture.run_on();
    assert!(fixture.send() && fixture.sent.corked);
    let _ = fixture.fake.calls.take();
    assert!(fixture.fan_out.pause());
    assert_eq!(fixture.fake.calls.take(), [Call::Uncork]);
    assert_eq!((0..PAUSES_PER_TURN).filter(|_| fixture.fan_out.pause()).count(), 24);
    fixture.end_turn();
    assert!(fixture.fan_out.pause());
}

#[test]
fn engine_panic_becomes_the_fallback_result() {
    assert_eq!((guarded::<u32>(|| panic!("a bug")), guarded(|| 3)), (0, 3));
}
