//! The engine's lifecycle: options, concurrent use, shutdown.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use support::{
    ACKED, DROPPED, LONG_MS, Leader, LeaderOptions, PATIENCE, Sender, counter, ended, options,
};
use touchdown_native::quic::delivery::PeerState;
use touchdown_native::quic::engine::{Engine, OpenError, Options};
use touchdown_native::quic::event::{CloseCause, RECORD_FIELDS};
use touchdown_native::quic::landed_shares::Offer;
use touchdown_native::quic::tls::public_key;

#[test]
fn connections_are_spread_over_the_local_addresses_of_their_family() {
    let leader_options = LeaderOptions::default();
    let (v4, v6) = (
        Leader::start(leader_options),
        Leader::start_at("[::1]:0".parse().unwrap(), leader_options),
    );
    let binds = ["127.0.0.1:0", "127.0.0.2:0", "[::1]:0"].map(|bind| bind.parse().unwrap());
    let mut sender = Sender::start(Options { binds: binds.to_vec(), ..options() });
    for tx in 0..4 {
        let leader = if tx == 2 { &v6 } else { &v4 };
        let peer = sender.open_admitted(leader.address);
        sender.engine.send(&[peer, 0], b"from anywhere", tx, LONG_MS, Offer::default());
    }
    sender.until("acked", |events| ended(events) == 4);
    assert_eq!(sender.count(ACKED), 4);
    let sources = |leader: &Leader| {
        let from = leader.connections.lock();
        let mut sources: Vec<String> =
            from.iter().map(|each| each.remote_address().ip().to_string()).collect();
        sources.sort();
        sources.dedup();
        sources
    };
    assert_eq!(sources(&v4), ["127.0.0.1", "127.0.0.2"]);
    assert_eq!(sources(&v6), ["::1"]);
}

#[test]
fn a_busy_polling_engine_sends_like_a_sleeping_one() {
    let leader = Leader::start(LeaderOptions::default());
    let busy_poll = Duration::from_millis(1);
    let mut sender = Sender::start(Options { busy_poll, ..options() });
    let peer = sender.open_admitted(leader.address);
    for tx in 0..50 {
        sender.engine.send(&[peer, 0], &[1; 900], tx, LONG_MS, Offer::default());
    }
    sender.until("acked", |events| ended(events) == 50);
    assert_eq!(sender.count(ACKED), 50);
}

#[test]
fn the_io_thread_survives_a_panicking_waker() {
    let leader = Leader::start(LeaderOptions::default());
    // A panic in a sending thread's call is caught at the N-API boundary.
    let waker = || {
        let is_io = std::thread::current().name() == Some("td-io");
        assert!(!is_io, "a bug, simulated by the test");
    };
    let engine = Engine::start(options(), Box::new(waker)).unwrap();
    let peer = engine.peer_open(leader.address).unwrap();
    let deadline = Instant::now() + PATIENCE;
    let (mut sent, mut acked) = (0, 0);
    while acked < 20 {
        if engine.peer_state(peer) == PeerState::Admitted && sent < 20 {
            engine.send(&[peer, 0], b"all the same", sent, LONG_MS, Offer::default());
            sent += 1;
        }
        let mut out = [0.0; 16 * RECORD_FIELDS];
        let count = engine.events().drain(&mut out);
        let records = out.chunks_exact(RECORD_FIELDS).take(count);
        acked += records.filter(|one| one[0] == f64::from(ACKED)).count();
        assert!(Instant::now() < deadline, "{acked} acknowledged");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(counter(&engine, "panics") > 0);
    leader.assert_received(20);
}

#[test]
fn engines_in_one_process_are_independent() {
    let leader = Leader::start(LeaderOptions::default());
    let mut senders = [Sender::start(options()), Sender::start(options())];
    let peers = senders.each_mut().map(|sender| sender.open_admitted(leader.address));
    assert_eq!(peers[0], peers[1]);
    for (sender, peer) in senders.iter().zip(peers) {
        sender.engine.send(&[peer, 0], b"mine", 7, LONG_MS, Offer::default());
    }
    for sender in &mut senders {
        sender.until("acked", |events| ended(events) == 1);
    }
    senders[0].engine.stop(Duration::ZERO);
    senders[1].engine.send(&[peers[1], 0], b"still mine", 8, LONG_MS, Offer::default());
    senders[1].until("acked", |events| ended(events) == 2);
    assert_eq!(senders[1].count(ACKED), 2);
    leader.assert_received(3);
}

#[test]
fn stop_returns_within_its_bound() {
    let leader = Leader::start(LeaderOptions { grant: 0, ..LeaderOptions::default() });
    let mut sender = Sender::start(options());
    let peer = sender.open(leader.address);
    sender.engine.send(&[peer, 0], b"never granted", 1, u32::MAX, Offer::default());
    let engine = sender.engine.clone();
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        engine.stop(Duration::from_millis(u64::from(u32::MAX)));
        done.send(()).unwrap();
    });
    is_done.recv_timeout(Duration::from_secs(120)).unwrap();
    sender.drain_now();
    sender.assert_conserved([1]);
}

#[test]
fn a_new_identity_serves_new_connections_while_old_ones_finish() {
    let leader = Leader::start(LeaderOptions::default());
    let mut sender = Sender::start(options());
    let old = sender.open_admitted(leader.address);
    for tx in 0..50 {
        sender.engine.send(&[old, 0], &[1; 900], tx, LONG_MS, Offer::default());
    }
    assert!(sender.engine.identity_set(&[6; 32]));
    let new = sender.open_admitted(leader.address);
    for tx in 50..100 {
        sender.engine.send(&[old, 0], &[1; 900], tx, LONG_MS, Offer::default());
    }
    assert!(sender.engine.peer_close(old, Duration::from_secs(60)));
    sender.engine.send(&[new, 0], &[1; 900], 100, LONG_MS, Offer::default());
    sender.until("ended", |events| ended(events) == 101);
    assert_eq!(sender.count(ACKED), 101);
    assert_eq!(sender.closed(old).reason, CloseCause::Local as u8);
    let keys = [public_key(&[5; 32]).unwrap(), public_key(&[6; 32]).unwrap()];
    assert_eq!(*leader.clients.lock(), keys);
}

#[test]
fn threads_share_a_connection_without_lost_or_repeated_outcomes() {
    let leader = Leader::start(LeaderOptions { grant: 64, ..LeaderOptions::default() });
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(leader.address);
    let threads: Vec<_> = (0..4u64)
        .map(|thread| {
            let engine = sender.engine.clone();
            std::thread::spawn(move || {
                let mut accepted = Vec::new();
                for number in 0..500u64 {
                    let tx = thread * 500 + number;
                    let bytes = vec![3; 100 + (tx % 900) as usize];
                    let status = engine.send(&[peer, 0], &bytes, tx, LONG_MS, Offer::default());
                    // A busy machine may interrupt the thread that sends until the queue is full.
                    if status.accepted() > 0 {
                        accepted.push(tx);
                    }
                    if number % 50 == 0 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
                accepted
            })
        })
        .collect();
    let accepted: Vec<_> = threads.into_iter().flat_map(|it| it.join().unwrap()).collect();
    assert!(accepted.len() > 100);
    sender.until("ended", |events| ended(events) == accepted.len());
    sender.assert_conserved(accepted.iter().copied());
    let dropped = sender.count(DROPPED);
    assert_eq!(sender.count(ACKED) + dropped, accepted.len());
    leader.assert_received(accepted.len() - dropped);
    assert!(sender.wakes.load(Ordering::SeqCst) <= sender.events.len());
}

#[test]
fn every_call_returns_after_stop() {
    let leader = Leader::start(LeaderOptions::default());
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(leader.address);
    sender.engine.send(&[peer, 0], b"last words", 1, LONG_MS, Offer::default());
    sender.engine.stop(Duration::from_secs(60));
    sender.engine.stop(Duration::from_secs(60));
    assert_eq!(sender.engine.peer_open(leader.address), Err(OpenError::Stopping));
    assert!(!sender.engine.peer_close(peer, Duration::ZERO));
    let status = sender.engine.send(&[peer, 0], b"late", 2, LONG_MS, Offer::default());
    assert_eq!(status.accepted(), 0);
    sender.drain_now();
    sender.assert_conserved([1, 2]);
    assert_eq!(sender.count(ACKED), 1);
    assert_eq!(counter(&sender.engine, "peers"), 0);
}

#[test]
fn a_stopped_engine_frees_its_port() {
    let leader = Leader::start(LeaderOptions::default());
    let is_left = || {
        let mut sender = Sender::start(options());
        let peer = sender.open_admitted(leader.address);
        let binds = sender.engine.local_addresses();
        assert_eq!(binds.len(), 1);
        sender.engine.send(&[peer, 0], b"last words", 1, LONG_MS, Offer::default());
        sender.engine.stop(Duration::from_secs(60));
        let next = Engine::start(Options { binds, ..options() }, Box::new(|| {}));
        sender.drain_now();
        sender.assert_conserved([1]);
        next.is_ok()
    };
    // Another program may bind it first.
    assert!((0..10).any(|_| is_left()));
}

#[test]
fn invalid_leader_addresses_are_rejected() {
    let sender = Sender::start(options());
    let open = |text: &str| sender.engine.peer_open(text.parse().unwrap());
    assert_eq!(open("127.0.0.1:0"), Err(OpenError::Address));
    let no_hosts = ["0.0.0.0:9", "0.0.0.5:9", "255.255.255.255:9", "224.0.0.1:9"];
    let no_hosts_6 = ["[::]:9", "[::ffff:0.0.0.5]:9", "[ff02::1]:9", "[fe80::1]:9"];
    for text in no_hosts.into_iter().chain(no_hosts_6) {
        assert_eq!(open(text), Err(OpenError::Address), "{text}");
    }
    assert_eq!(open("[::1]:9"), Err(OpenError::Family));
}
