//! Corked transactions, and those that wait for the same leader: complete ones share datagrams, and
//! each delivery has its outcome.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use support::path::{From, Path};
use support::rng::rng;
use support::{ACKED, DROPPED, LONG_MS, Leader, LeaderOptions, SENT, Sender, ended, options};
use touchdown_native::quic::engine::Options;
use touchdown_native::quic::event::Reason;
use touchdown_native::quic::landed_shares::Offer;
use touchdown_native::quic::limits::CORKED_DELIVERIES_MAX;
use touchdown_native::quic::peer::uncork;
use touchdown_native::quic::send_result::SendStatus;

/// The transactions that the leader received, each as its first byte and its size.
fn received(leader: &Leader) -> Vec<(u8, usize)> {
    let mut all: Vec<_> = leader.received.lock().iter().map(|one| (one[0], one.len())).collect();
    all.sort_unstable();
    all
}

#[test]
fn corked_deliveries_are_sent_on_uncork_in_fewer_packets_than_transactions() {
    let leader = Leader::start(LeaderOptions::default());
    let mut sender = Sender::start(options());
    let id = sender.open_admitted(leader.address);
    sender.engine.send(&[id, 0], &[99; 300], 99, LONG_MS, Offer::default());
    sender.until("acked", |events| ended(events) == 1);
    let peer = sender.engine.peer(id).unwrap();
    let packets = peer.stats()[7];
    for tx in 0..12 {
        let status =
            sender.engine.cork(&[id, 0], &[tx; 300], u64::from(tx), LONG_MS, Offer::default());
        assert_eq!((status.wire, status.queued), (0, 1));
    }
    sender.drain_now();
    assert_eq!((sender.count(SENT), peer.queued(), leader.received_count()), (1, 0, 1));
    uncork();
    sender.until("acked", |events| ended(events) == 13);
    sender.assert_conserved(0..12);
    leader.assert_received(13);
    let expected: Vec<_> = (0..12).chain([99]).map(|tx| (tx, 300)).collect();
    assert_eq!(received(&leader), expected);
    let taken = peer.stats()[7] - packets;
    assert!(taken < 12, "{taken} packets for 12 transactions");
    uncork();
}

/// The transactions that arrive when one of two datagrams with two each is lost, with everything
/// after it.
fn arrives_of(through: usize) -> Vec<u64> {
    let leader = Leader::start(LeaderOptions::default());
    let (is_cut, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let cut = is_cut.clone();
    let path = Path::start(leader.address, move |from, datagram| {
        // Larger ones probe the MTU, smaller ones acknowledge.
        let is_ours = from == From::Engine && (900..1190).contains(&datagram.len());
        if !cut.load(Ordering::SeqCst) || !is_ours {
            return vec![datagram.to_vec()];
        }
        let place = count.fetch_add(1, Ordering::SeqCst);
        if place == through { vec![datagram.to_vec()] } else { Vec::new() }
    });
    let mut sender = Sender::start(options());
    let id = sender.open_admitted(path.address);
    is_cut.store(true, Ordering::SeqCst);
    for tx in 0..4 {
        sender.engine.cork(&[id, 0], &[tx; 500], u64::from(tx), LONG_MS, Offer::default());
    }
    uncork();
    sender.until("acked", |events| ended(events) == 2);
    sender.events.iter().filter(|one| one.kind == ACKED).map(|one| one.tx).collect()
}

#[test]
fn a_transaction_is_complete_in_its_datagram() {
    assert_eq!(arrives_of(0), [0, 1]);
    assert_eq!(arrives_of(1), [2, 3]);
}

/// Only the last datagram of a system call may be smaller than the others.
#[test]
fn the_larger_of_two_batched_datagrams_goes_first() {
    let leader = Leader::start(LeaderOptions::default());
    let (sizes, was_held) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
    let (recorded, is_held) = (sizes.clone(), was_held.clone());
    let path = Path::start(leader.address, move |from, datagram| {
        // Larger ones probe the MTU, smaller ones acknowledge.
        let is_ours = from == From::Engine && (550..1190).contains(&datagram.len());
        if is_ours && is_held.load(Ordering::SeqCst) {
            recorded.lock().push(datagram.len());
        }
        vec![datagram.to_vec()]
    });
    let mut sender = Sender::start(options());
    let id = sender.open_admitted(path.address);
    was_held.store(true, Ordering::SeqCst);
    for (tx, size) in [600, 1000].into_iter().enumerate() {
        sender.engine.cork(&[id, 0], &vec![1; size], tx as u64, LONG_MS, Offer::default());
    }
    uncork();
    sender.until("acked", |events| ended(events) == 2);
    let sizes = sizes.lock();
    assert!(sizes.len() >= 2 && sizes[0] > 1000 && sizes[1] < 1000, "{sizes:?}");
}

#[test]
fn deliveries_that_waited_for_credit_share_datagrams_without_loss() {
    let leader =
        Leader::start(LeaderOptions { grant: 3, window: 6_000, ..LeaderOptions::default() });
    let mut sender = Sender::start(options());
    let id = sender.open_admitted(leader.address);
    for tx in 0..60 {
        let size = 1 + usize::from(tx) * 67;
        sender.engine.cork(&[id, 0], &vec![tx; size], u64::from(tx), LONG_MS, Offer::default());
        if tx % 7 == 0 {
            uncork();
        }
    }
    uncork();
    sender.until("acked", |events| ended(events) == 60);
    assert_eq!(sender.count(ACKED), 60);
    sender.assert_conserved(0..60);
    leader.assert_received(60);
    let expected: Vec<_> = (0..60).map(|tx| (tx, 1 + usize::from(tx) * 67)).collect();
    assert_eq!(received(&leader), expected);
}

#[test]
fn a_delivery_split_by_the_window_continues_before_others_join_it() {
    let leader = Leader::start(LeaderOptions { window: 1_000, ..LeaderOptions::default() });
    let mut sender = Sender::start(options());
    let id = sender.open_admitted(leader.address);
    for tx in 0..40 {
        sender.engine.cork(&[id, 0], &[tx; 300], u64::from(tx), LONG_MS, Offer::default());
    }
    uncork();
    sender.until("acked", |events| ended(events) == 40);
    sender.assert_conserved(0..40);
    leader.assert_received(40);
    assert_eq!(received(&leader), (0..40).map(|tx| (tx, 300)).collect::<Vec<_>>());
}

#[test]
fn on_a_lossy_path_each_delivery_arrives_complete_and_is_reported_once() {
    let leaders =
        [0, 1].map(|_| Leader::start(LeaderOptions { window: 20_000, ..LeaderOptions::default() }));
    let path = leaders.each_ref().map(|leader| {
        let mut below = rng();
        Path::start(leader.address, move |_, datagram| {
            if below(12) == 0 { Vec::new() } else { vec![datagram.to_vec()] }
        })
    });
    let mut sender = Sender::start(options());
    let ids = path.each_ref().map(|path| sender.open_admitted(path.address));
    let mut below = rng();
    let sizes: Vec<usize> = (0..200).map(|_| 1 + below(1300)).collect();
    for (tx, size) in sizes.iter().enumerate() {
        let (deliveries, bytes) = ([ids[0], 0, ids[1], 1], vec![tx as u8; *size]);
        match below(3) {
            0 => sender.engine.send(&deliveries, &bytes, tx as u64, LONG_MS, Offer::default()),
            _ => sender.engine.cork(&deliveries, &bytes, tx as u64, LONG_MS, Offer::default()),
        };
        if below(5) == 0 {
            uncork();
        }
        if below(20) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    uncork();
    sender.until("acked", |events| ended(events) == 400);
    assert_eq!(sender.count(ACKED), 400);
    let expected: Vec<_> = sizes.iter().enumerate().map(|(tx, size)| (tx as u8, *size)).collect();
    for leader in &leaders {
        leader.assert_received(200);
        assert_eq!(received(leader), expected);
    }
}

#[test]
fn an_expired_delivery_leaves_its_datagram_to_the_others() {
    // No packet returns, so nothing more is sent once the congestion window is full.
    let leader = Leader::start(LeaderOptions { grant: 2_000, ..LeaderOptions::default() });
    let is_cut = Arc::new(AtomicBool::new(false));
    let cut = is_cut.clone();
    let path = Path::start(leader.address, move |_, datagram| {
        if cut.load(Ordering::SeqCst) { Vec::new() } else { vec![datagram.to_vec()] }
    });
    let mut sender = Sender::start(options());
    let id = sender.open_admitted(path.address);
    is_cut.store(true, Ordering::SeqCst);
    // More than may be in flight: 128 datagrams of 1232 bytes.
    let count = 700;
    for tx in 0..count {
        let ttl_ms = if tx % 2 == 0 { 300 } else { LONG_MS };
        sender.engine.cork(&[id, 0], &[tx as u8; 300], tx, ttl_ms, Offer::default());
    }
    uncork();
    assert!(sender.engine.peer(id).unwrap().queued() > 0, "no delivery is queued");
    let late = |events: &[support::Event]| {
        events.iter().filter(|one| one.kind == DROPPED && one.tx.is_multiple_of(2)).count()
    };
    let on_wire = |events: &[support::Event]| {
        events.iter().filter(|one| one.kind == SENT && one.tx.is_multiple_of(2)).count()
    };
    sender.until("too old", |events| late(events) + on_wire(events) == count as usize / 2);
    assert!(late(&sender.events) > 0);
    is_cut.store(false, Ordering::SeqCst);
    sender.until("ended", |events| ended(events) == count as usize);
    sender.assert_conserved(0..count);
    assert_eq!(sender.count(ACKED) + late(&sender.events), count as usize);
}

#[test]
fn corked_deliveries_to_a_closed_connection_are_reported() {
    let leader = Leader::start(LeaderOptions::default());
    let mut sender = Sender::start(options());
    let (gone, there) =
        (sender.open_admitted(leader.address), sender.open_admitted(leader.address));
    for tx in 0..3 {
        sender.engine.cork(&[gone, 0, there, 1], &[tx as u8; 400], tx, LONG_MS, Offer::default());
    }
    sender.engine.peer_close(gone, Duration::ZERO);
    sender.closed(gone);
    assert_eq!(
        sender.engine.cork(&[gone, 0], &[9; 400], 9, LONG_MS, Offer::default()),
        SendStatus::default()
    );
    uncork();
    sender.until("ended", |events| ended(events) == 7);
    let of_gone: Vec<_> = sender.events.iter().filter(|one| one.kind == DROPPED).collect();
    assert_eq!(of_gone.len(), 4);
    assert!(of_gone.iter().all(|one| one.reason == Reason::NotConnected as u8));
    assert_eq!(sender.count(ACKED), 3);
}

#[test]
fn the_leaders_queue_bounds_uncorked_deliveries() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut sender = Sender::start(Options { queue_max: 4, ..options() });
    let id = sender.open(silent.local_addr().unwrap());
    for tx in 0..6 {
        let status = sender.engine.cork(&[id, 0], &[1; 100], tx, LONG_MS, Offer::default());
        assert_eq!((status.wire, status.queued), (0, 1));
    }
    uncork();
    sender.until("dropped", |events| ended(events) == 2);
    let full = |one: &&support::Event| one.reason == Reason::QueueFull as u8 && one.kind == DROPPED;
    // Of those of equal rank the newest, the last first.
    assert_eq!(sender.events.iter().filter(full).map(|one| one.tx).collect::<Vec<_>>(), [5, 4]);
    assert_eq!(sender.engine.peer(id).unwrap().queued(), 4);
}

#[test]
fn the_cork_limit_uncorks_and_an_ending_thread_reports_its_deliveries() {
    let leader = Leader::start(LeaderOptions { grant: 1_000, ..LeaderOptions::default() });
    let mut sender = Sender::start(options());
    let id = sender.open_admitted(leader.address);
    let (engine, count) = (sender.engine.clone(), CORKED_DELIVERIES_MAX as u64 + 2);
    let holding = std::thread::spawn(move || {
        for tx in 0..count {
            engine.cork(&[id, 0], &[1; 50], tx, LONG_MS, Offer::default());
        }
    });
    holding.join().unwrap();
    sender.until("ended", |events| ended(events) == count as usize);
    let dropped: Vec<_> = sender.events.iter().filter(|one| one.kind == DROPPED).collect();
    assert_eq!(dropped.iter().map(|one| one.tx).collect::<Vec<_>>(), [count - 2, count - 1]);
    leader.assert_received(CORKED_DELIVERIES_MAX);
}

#[test]
fn corked_deliveries_are_reported_when_the_engine_stops() {
    let leader = Leader::start(LeaderOptions::default());
    let mut sender = Sender::start(options());
    let id = sender.open_admitted(leader.address);
    sender.engine.cork(&[id, 0], &[1; 50], 1, LONG_MS, Offer::default());
    sender.engine.stop(Duration::ZERO);
    assert_eq!(
        sender.engine.cork(&[id, 0], &[1; 50], 2, LONG_MS, Offer::default()),
        SendStatus::default()
    );
    uncork();
    sender.drain_now();
    let dropped = |tx| sender.events.iter().any(|one| one.kind == DROPPED && one.tx == tx);
    assert!(dropped(1) && dropped(2), "{:?}", sender.events);
}
