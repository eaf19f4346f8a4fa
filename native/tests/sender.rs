//! The sender against leaders of different behaviour, over loopback.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::time::Duration;

use support::rng::rng;
use support::transport_params::Params;
use support::{ACKED, ADMITTED, CONNECTED, DROPPED, FAILED, LONG_MS, SENT, counter};
use support::{Event, Leader, LeaderOptions, Sender};
use support::{ended, options};
use touchdown_native::quic::engine::Options;
use touchdown_native::quic::event::{CloseCause, Reason};
use touchdown_native::quic::landed_shares::Offer;
use touchdown_native::quic::limits::STREAMS_AHEAD_MAX;
use touchdown_native::quic::tls::public_key;

#[test]
fn delivers_each_transaction_complete_and_acknowledged() {
    let leader = Leader::start(LeaderOptions::default());
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(leader.address);
    let sizes = [1, 200, 1100, 1232, 1233, 4096];
    for (index, size) in sizes.into_iter().enumerate() {
        let status = sender.engine.send(
            &[peer, 40],
            &vec![index as u8; size],
            index as u64,
            LONG_MS,
            Offer::default(),
        );
        assert_eq!(status.accepted(), 1);
    }
    sender.until("acked", |events| ended(events) == sizes.len());
    assert_eq!(sender.count(ACKED), sizes.len());
    assert!(sender.events.iter().filter(|one| one.kind == ACKED).all(|one| one.tag == 40));
    sender.assert_conserved(0..sizes.len() as u64);
    leader.assert_received(sizes.len());
    let mut received: Vec<usize> = leader.received.lock().iter().map(Vec::len).collect();
    received.sort_unstable();
    assert_eq!(received, sizes);
    assert_eq!(leader.clients.lock()[0], public_key(&[5; 32]).unwrap());
}

#[test]
fn rejects_invalid_transactions_without_an_outcome() {
    let leader = Leader::start(LeaderOptions::default());
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(leader.address);
    for bytes in [&[][..], &[0; 4097][..]] {
        let status = sender.engine.send(&[peer, 0], bytes, 1, 1_000, Offer::default());
        assert_eq!(status.accepted(), 0);
    }
    sender.drain_now();
    assert_eq!(ended(&sender.events), 0);
}

#[test]
fn sends_to_several_leaders_and_reports_each() {
    let leaders: Vec<Leader> = (0..4).map(|_| Leader::start(LeaderOptions::default())).collect();
    let mut sender = Sender::start(options());
    let mut deliveries = Vec::new();
    for (tag, leader) in leaders.iter().enumerate() {
        deliveries.extend([sender.open_admitted(leader.address), tag as u32]);
    }
    deliveries.extend([0xdead_beef, 9]);
    let status = sender.engine.send(&deliveries, b"to everyone", 7, LONG_MS, Offer::default());
    assert_eq!(status.accepted(), 0b1111);
    sender.until("ended", |events| ended(events) == 5);
    assert_eq!(sender.count(ACKED), 4);
    let dropped = sender.events.iter().find(|one| one.kind == DROPPED).unwrap();
    assert_eq!((dropped.tag, dropped.reason), (9, Reason::NotConnected as u8));
}

#[test]
fn waits_for_the_handshake_and_then_sends() {
    let leader = Leader::start(LeaderOptions::default());
    let mut sender = Sender::start(options());
    let peer = sender.open(leader.address);
    let status = sender.engine.send(&[peer, 0], b"early", 1, LONG_MS, Offer::default());
    // The handshake may be complete by now if this thread was preempted.
    assert_eq!(status.accepted(), 1);
    sender.until("acked", |events| ended(events) == 1);
    sender.assert_conserved([1]);
    assert_eq!(sender.count(ACKED), 1);
}

#[test]
fn connects_through_address_validation() {
    let leader = Leader::start(LeaderOptions { retry: true, ..LeaderOptions::default() });
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(leader.address);
    sender.engine.send(&[peer, 0], b"after retry", 1, LONG_MS, Offer::default());
    sender.until("acked", |events| ended(events) == 1);
    assert_eq!(sender.count(ACKED), 1);
    assert_eq!(sender.events.iter().find(|one| one.kind == CONNECTED).unwrap().reason, 1);
}

#[test]
fn reports_granted_and_remaining_streams() {
    for (grant, reported) in [(3, 3), (128, 128), (100_000, STREAMS_AHEAD_MAX as u64)] {
        let leader = Leader::start(LeaderOptions { grant, ..LeaderOptions::default() });
        let mut sender = Sender::start(options());
        let peer = sender.open_admitted(leader.address);
        let find =
            |sender: &Sender, kind| *sender.events.iter().find(|one| one.kind == kind).unwrap();
        assert_eq!(find(&sender, CONNECTED).reason, 0);
        assert_eq!(find(&sender, ADMITTED).detail, reported);
        let peer_now = sender.engine.peer(peer).unwrap();
        assert_eq!(peer_now.stats()[9], reported);
        sender.engine.send(&[peer, 0], b"takes one", 1, LONG_MS, Offer::default());
        sender.until("acked", |events| ended(events) == 1);
        assert!(peer_now.stats()[9] <= reported);
    }
}

#[test]
fn the_leaders_idle_timeout_is_reported() {
    let cases: [(u32, Params); 2] = [(0, &[(0x01, 0)]), (2_000, &[(0x01, 2_000)])];
    for (idle_ms, params) in cases {
        let leader = Leader::start(LeaderOptions { params, ..LeaderOptions::default() });
        let mut sender = Sender::start(options());
        sender.open_admitted(leader.address);
        let connected = sender.events.iter().find(|one| one.kind == CONNECTED).unwrap();
        assert_eq!(connected.tag, idle_ms);
    }
}

#[test]
fn a_ping_on_an_idle_connection_is_acknowledged() {
    let leader = Leader::start(LeaderOptions::default());
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(leader.address);
    let peer = sender.engine.peer(peer).unwrap();
    // Handshake packets may arrive late; afterwards an idle connection is silent.
    let mut received = 0;
    sender.until("silent", |_| {
        let before = received;
        std::thread::sleep(Duration::from_millis(200));
        received = peer.stats()[8];
        received > 0 && received == before
    });
    peer.ping();
    sender.until("an answer", |_| peer.stats()[8] > received);
}

#[test]
fn a_leader_that_grants_no_stream_saturates_and_times_out() {
    let leader = Leader::start(LeaderOptions { grant: 0, ..LeaderOptions::default() });
    let mut sender = Sender::start(options());
    let peer = sender.open(leader.address);
    sender.until("connected", |events| events.iter().any(|one| one.kind == CONNECTED));
    sender.engine.send(&[peer, 0], b"no credit", 1, 50, Offer::default());
    sender.until("dropped", |events| ended(events) == 1);
    let dropped = *sender.events.iter().find(|one| one.kind == DROPPED).unwrap();
    assert_eq!(dropped.reason, Reason::LeaderSaturated as u8);
    assert_eq!(sender.count(ADMITTED), 0);

    let patience = Duration::from_millis(700);
    let mut hasty = Sender::start(Options { admission_timeout: patience, ..options() });
    let peer = hasty.open(leader.address);
    hasty.engine.send(&[peer, 0], b"outlives the timeout", 2, LONG_MS, Offer::default());
    assert_eq!(hasty.closed(peer).reason, CloseCause::AdmissionTimeout as u8);
    hasty.until("ended", |events| ended(events) == 1);
    hasty.assert_conserved([2]);
    assert_eq!(hasty.count(ADMITTED), 0);
}

#[test]
fn slowly_granted_credit_is_used_in_order() {
    let leader = Leader::start(LeaderOptions { grant: 2, ..LeaderOptions::default() });
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(leader.address);
    for tx in 0..300u64 {
        sender.engine.send(&[peer, 0], &tx.to_le_bytes(), tx, LONG_MS, Offer::default());
    }
    sender.until("ended", |events| ended(events) == 300);
    assert_eq!(sender.count(ACKED), 300);
    sender.assert_conserved(0..300);
    let sent: Vec<u64> =
        sender.events.iter().filter(|one| one.kind == SENT).map(|one| one.tx).collect();
    assert!(sent.is_sorted());
    leader.assert_received(300);
}

#[test]
fn a_full_queue_keeps_the_best_paid() {
    let leader = Leader::start(LeaderOptions { grant: 0, ..LeaderOptions::default() });
    let mut sender = Sender::start(Options { queue_max: 3, ..options() });
    let peer = sender.open(leader.address);
    let engine = sender.engine.clone();
    let send = |(tx, lamports): (u64, f64)| {
        let status = engine.send(&[peer, 0], b"x", tx, 60_000, Offer { account: 1, lamports });
        (status.queued, status.saturated)
    };
    let results = [(0, 5.0), (1, 3.0), (2, 4.0), (3, 3.0), (4, 6.0), (5, 1.0)].map(send);
    assert_eq!(results, [(1, 0), (1, 0), (1, 0), (0, 1), (1, 0), (0, 1)]);
    // The caller was told of the two that found no place; one made room for a better one.
    sender.until("dropped", |events| ended(events) == 1);
    let dropped = |one: &&Event| one.kind == DROPPED;
    let evicted: Vec<_> = sender.events.iter().filter(dropped).map(|one| one.tx).collect();
    assert_eq!(evicted, [1]);
    assert_eq!(counter(&engine, "deliveries_evicted"), 3);
    sender.engine.stop(Duration::ZERO);
    sender.drain_now();
    sender.assert_conserved([0, 1, 2, 4]);
    let stopped = Reason::ShuttingDown as u8;
    assert_eq!(sender.events.iter().filter(|one| one.reason == stopped).count(), 3);
}

#[test]
fn the_leaders_close_codes_are_reported() {
    for code in [0, 1, 2, 4, 5] {
        let leader =
            Leader::start(LeaderOptions { close_code: Some(code), ..LeaderOptions::default() });
        let mut sender = Sender::start(options());
        let peer = sender.open(leader.address);
        let closed = sender.closed(peer);
        assert_eq!(closed.reason, CloseCause::Application as u8);
        assert_eq!(closed.detail, u64::from(code));
        let status = sender.engine.send(&[peer, 0], b"too late", 1, 1_000, Offer::default());
        assert_eq!(status.accepted(), 0);
    }
}

#[test]
fn a_stopped_stream_fails_only_its_delivery() {
    let leader = Leader::start(LeaderOptions {
        stop_streams: true,
        window: 600,
        ..LeaderOptions::default()
    });
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(leader.address);
    for tx in 0..20 {
        sender.engine.send(&[peer, 0], &[1; 3000], tx, LONG_MS, Offer::default());
    }
    sender.until("ended", |events| ended(events) == 20);
    sender.assert_conserved(0..20);
    // A leader that acknowledged all before it stopped the stream has the bytes.
    assert!(sender.count(FAILED) > 0);
    assert_eq!(sender.count(DROPPED), 0);
}

#[test]
fn a_silent_address_times_out() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let patience = Duration::from_millis(300);
    let mut sender = Sender::start(Options { admission_timeout: patience, ..options() });
    let peer = sender.open(silent.local_addr().unwrap());
    sender.engine.send(&[peer, 0], b"into the void", 1, 100, Offer::default());
    sender.until("dropped", |events| ended(events) == 1);
    let dropped = *sender.events.iter().find(|one| one.kind == DROPPED).unwrap();
    assert_eq!(dropped.reason, Reason::NotConnected as u8);
    assert_eq!(sender.closed(peer).reason, CloseCause::AdmissionTimeout as u8);
}

#[test]
fn a_crashed_leader_loses_in_flight_deliveries_and_can_be_reconnected() {
    let leader = Leader::start(LeaderOptions::default());
    let mut quick = options();
    quick.transport.idle_timeout = Duration::from_secs(3);
    quick.transport.keep_alive = Duration::from_secs(1);
    let mut sender = Sender::start(quick);
    let peer = sender.open_admitted(leader.address);
    let address = leader.crash();
    sender.engine.send(&[peer, 0], b"no leader", 1, 60_000, Offer::default());
    let closed = sender.closed(peer);
    assert_eq!(closed.reason, CloseCause::TimedOut as u8);
    sender.until("failed", |events| ended(events) == 1);
    assert_eq!(sender.count(FAILED), 1);

    let again = Leader::start_at(address, LeaderOptions::default());
    let peer = sender.open_admitted(again.address);
    sender.engine.send(&[peer, 0], b"welcome back", 2, LONG_MS, Offer::default());
    sender.until("acked", |events| ended(events) == 2);
    sender.assert_conserved([1, 2]);
}

#[test]
fn a_small_window_receives_a_large_transaction_in_pieces() {
    let leader = Leader::start(LeaderOptions { window: 600, ..LeaderOptions::default() });
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(leader.address);
    for tx in 0..5 {
        sender.engine.send(&[peer, 0], &[tx as u8; 2000], tx, LONG_MS, Offer::default());
    }
    sender.until("ended", |events| ended(events) == 5);
    assert_eq!(sender.count(ACKED), 5);
    sender.assert_conserved(0..5);
}

#[test]
fn a_delivery_above_the_stream_limit_is_dropped_without_blocking_others() {
    let leader = Leader::start(LeaderOptions { stream_window: 1232, ..LeaderOptions::default() });
    let mut sender = Sender::start(options());
    let peer = sender.open(leader.address);
    // One waits for the handshake, because the leader's limit is unknown before.
    sender.engine.send(&[peer, 0], &[1; 1233], 1, LONG_MS, Offer::default());
    sender.until("ended", |events| ended(events) == 1);
    let connected = sender.events.iter().find(|one| one.kind == CONNECTED).unwrap();
    assert_eq!(connected.detail, 1232);
    for (tx, size) in [(2, 1232), (3, 4096), (4, 1233), (5, 1)] {
        sender.engine.send(&[peer, 0], &vec![1; size], tx, LONG_MS, Offer::default());
    }
    sender.until("ended", |events| ended(events) == 5);
    sender.assert_conserved(1..=5);
    let reasons_of = |kind| {
        let of = sender.events.iter().filter(move |one| one.kind == kind);
        of.map(|one| (one.tx, one.reason)).collect::<Vec<_>>()
    };
    let too_large = Reason::StreamTooLarge as u8;
    assert_eq!(reasons_of(DROPPED), [(1, too_large), (3, too_large), (4, too_large)]);
    assert_eq!(sender.count(ACKED), 2);
}

#[test]
fn transactions_that_just_fill_a_datagram_are_sent() {
    let leader = Leader::start(LeaderOptions::default());
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(leader.address);
    // Every size around a datagram of 1200 bytes, the initial size, and of 1452.
    let sizes: Vec<usize> = (1130..1200).chain(1380..1450).collect();
    for (tx, size) in sizes.iter().enumerate() {
        sender.engine.send(
            &[peer, 0],
            &vec![tx as u8; *size],
            tx as u64,
            LONG_MS,
            Offer::default(),
        );
    }
    sender.until("acked", |events| ended(events) == sizes.len());
    assert_eq!(sender.count(ACKED), sizes.len());
    sender.assert_conserved(0..sizes.len() as u64);
    leader.assert_received(sizes.len());
}

#[test]
fn a_drop_on_a_sending_thread_wakes_the_reader_before_send_returns() {
    let leader = Leader::start(LeaderOptions { stream_window: 1232, ..LeaderOptions::default() });
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(leader.address);
    for tx in 0..20 {
        // The I/O thread is asleep by then, and would report only when it wakes for another reason.
        std::thread::sleep(Duration::from_millis(5));
        sender.drain_now();
        let before = sender.wakes.load(Ordering::SeqCst);
        sender.engine.send(&[peer, 0], &[1; 1233], tx, LONG_MS, Offer::default());
        assert!(sender.wakes.load(Ordering::SeqCst) > before, "{tx}: the waker was not called");
        sender.drain();
    }
    assert_eq!(sender.count(DROPPED), 20);
}

#[test]
fn garbage_and_replays_change_nothing() {
    let leader = Leader::start(LeaderOptions::default());
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(leader.address);
    let target = sender.engine.local_addresses()[0];
    let attacker = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut below = rng();
    for round in 0..3000usize {
        let bytes: Vec<u8> = (0..round % 1300).map(|_| below(256) as u8).collect();
        let _ = attacker.send_to(&bytes, target);
    }
    sender.engine.send(&[peer, 0], b"still fine", 1, LONG_MS, Offer::default());
    sender.until("acked", |events| ended(events) == 1);
    assert_eq!(sender.count(ACKED), 1);
    assert_eq!(counter(&sender.engine, "panics"), 0);
}
