//! The order of waiting transactions, and when one counts as sent, with leaders that grant little
//! credit.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::collections::HashSet;
use std::time::Duration;

use support::malicious_leader::{Behaviour, MaliciousLeader, Params, value};
use support::packets::{MAX_DATA, MAX_STREAMS_UNI, frame};
use support::{DROPPED, Event, LONG_MS, SENT, Sender, ended, options};
use touchdown_native::quic::engine::Options;
use touchdown_native::quic::landed_shares::Offer;
use touchdown_native::quic::limits::BATCH_CANDIDATES_MAX;
use touchdown_native::quic::peer::uncork;

fn sent(events: &[Event]) -> Vec<u64> {
    events.iter().filter(|one| one.kind == SENT).map(|one| one.tx).collect()
}

#[test]
fn later_deliveries_do_not_overtake_waiting_ones_to_fill_a_datagram() {
    let malicious = MaliciousLeader::start(Behaviour { grant: 1, ..Behaviour::default() });
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(malicious.address);
    let sizes = [100, 400, 1000, 1000, 650, 700, 650, 700, 650, 700, 650, 700];
    let engine = sender.engine.clone();
    let send = |tx: usize| {
        engine.send(&[peer, 0], &vec![tx as u8; sizes[tx]], tx as u64, LONG_MS, Offer::default());
    };
    // Two wait besides the next one, and the leader grants one stream at a time.
    (0..3).for_each(send);
    for tx in 3..sizes.len() {
        send(tx);
        malicious.flood(1, |_| frame(MAX_STREAMS_UNI, &[tx as u64 - 1], &[]));
    }
    malicious.flood(1, |_| frame(MAX_STREAMS_UNI, &[sizes.len() as u64], &[]));
    sender.until("acked", |events| ended(events) == sizes.len());
    sender.assert_conserved(0..sizes.len() as u64);
    assert_eq!(sent(&sender.events), (0..sizes.len() as u64).collect::<Vec<_>>());
}

/// The case that the queue is for: nothing that came earlier is ahead of it.
#[test]
fn the_best_paid_of_420_is_the_next_to_leave_although_it_came_last() {
    let malicious = MaliciousLeader::start(Behaviour { grant: 8, ..Behaviour::default() });
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(malicious.address);
    let engine = sender.engine.clone();
    let send = |tx: u64, lamports: f64| {
        let bytes = [[(tx % 251) as u8; 300], [(tx / 251) as u8; 300]].concat();
        engine.send(&[peer, 0], &bytes, tx, LONG_MS, Offer { account: tx % 7, lamports })
    };
    for tx in 0..419 {
        send(tx, (1 + tx * 7919 % 419) as f64);
    }
    sender.until("sent", |events| sent(events).len() == 8);
    assert_eq!(send(419, 1_000.0).bits(), 1 << 16);
    for granted in 9..=420 {
        malicious.flood(1, |_| frame(MAX_STREAMS_UNI, &[granted], &[]));
        sender.until("sent", |events| sent(events).len() as u64 == granted);
    }
    sender.until("acked", |events| ended(events) == 420);
    sender.assert_conserved(0..420);
    // Eight found credit before it arrived, the first or, where the engine's own thread was at the
    // connection, the best by then; then it, and then the others by their offers.
    let order = sent(&sender.events);
    assert_eq!(order[8], 419);
    assert!(order[9..].is_sorted_by_key(|tx| std::cmp::Reverse(1 + tx * 7919 % 419)));
}

#[test]
fn a_changed_share_of_an_account_reorders_what_waits() {
    let malicious = MaliciousLeader::start(Behaviour { grant: 1, ..Behaviour::default() });
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(malicious.address);
    let engine = sender.engine.clone();
    for (tx, account, lamports) in [(0, 1, 9.0), (1, 1, 8.0), (2, 2, 7.0), (3, 2, 6.0)] {
        engine.send(&[peer, 0], &[tx as u8; 900], tx, LONG_MS, Offer { account, lamports });
    }
    sender.until("sent", |events| sent(events) == [0]);
    engine.landed_shares().update(&[1.0, 0.1]);
    for granted in 2..=4 {
        malicious.flood(1, |_| frame(MAX_STREAMS_UNI, &[granted], &[]));
        sender.until("sent", |events| sent(events).len() as u64 == granted);
    }
    assert_eq!(sent(&sender.events), [0, 2, 3, 1]);
}

/// A resend offers less than nothing.
#[test]
fn what_offers_less_than_nothing_leaves_last() {
    let malicious = MaliciousLeader::start(Behaviour { grant: 1, ..Behaviour::default() });
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(malicious.address);
    let engine = sender.engine.clone();
    let offers = [0.0, f64::NEG_INFINITY, 0.0, 1.0];
    for (tx, lamports) in (0..).zip(offers) {
        engine.send(&[peer, 0], &[tx as u8; 900], tx, LONG_MS, Offer { account: 0, lamports });
        // The first has the credit, also where the engine's own thread is at the connection.
        sender.until("sent", |events| sent(events) == [0]);
    }
    for granted in 2..=4 {
        malicious.flood(1, |_| frame(MAX_STREAMS_UNI, &[granted], &[]));
        sender.until("sent", |events| sent(events).len() as u64 == granted);
    }
    assert_eq!(sent(&sender.events), [0, 3, 2, 1]);
}

#[test]
fn scarce_streams_go_to_the_earliest_deliveries() {
    // The first and the third would share a datagram, and the largest would begin a call.
    let sizes = [900, 1000, 200, 700, 800, 400];
    for grant in 1..=3 {
        for granted in [0, grant] {
            let malicious = MaliciousLeader::start(Behaviour {
                grant: 1 + granted as u64,
                ..Behaviour::default()
            });
            let mut sender = Sender::start(options());
            let peer = sender.open_admitted(malicious.address);
            sender.engine.send(&[peer, 0], &[99], 99, LONG_MS, Offer::default());
            sender.until("sent", |events| sent(events) == [99]);
            for (tx, size) in sizes.into_iter().enumerate() {
                sender.engine.cork(
                    &[peer, 0],
                    &vec![tx as u8; size],
                    tx as u64,
                    LONG_MS,
                    Offer::default(),
                );
            }
            uncork();
            for most in (granted..sizes.len()).step_by(grant) {
                sender.until("sent", |events| sent(events).len() == 1 + most);
                malicious.flood(1, |_| frame(MAX_STREAMS_UNI, &[(1 + most + grant) as u64], &[]));
            }
            sender.until("acked", |events| ended(events) == 1 + sizes.len());
            let order = &sent(&sender.events)[1..];
            let places: Vec<u64> = (0..sizes.len() as u64).collect();
            for (went, came) in order.chunks(grant).zip(places.chunks(grant)) {
                let mut went = went.to_vec();
                went.sort_unstable();
                assert_eq!(went, came, "{grant} granted at a time, {granted} at first: {order:?}");
            }
        }
    }
}

#[test]
fn scarce_in_flight_capacity_goes_to_the_earliest_deliveries() {
    // The leader grants plenty of credit, but only a few may await acknowledgement.
    for (in_flight_max, sizes) in [(1, vec![900, 1000]), (2, vec![900, 1000, 200])] {
        let malicious = MaliciousLeader::start(Behaviour::default());
        let options = Options { in_flight_max, ..options() };
        let mut sender = Sender::start(options);
        let peer = sender.open_admitted(malicious.address);
        malicious.with_session(|session| session.acks = false);
        for (tx, size) in sizes.iter().enumerate() {
            sender.engine.cork(
                &[peer, 0],
                &vec![tx as u8; *size],
                tx as u64,
                500,
                Offer::default(),
            );
        }
        uncork();
        let all = |events: &[Event]| {
            sent(events).len() + events.iter().filter(|one| one.kind == DROPPED).count()
                == sizes.len()
        };
        sender.until("sent or expired", all);
        let mut went = sent(&sender.events);
        went.sort_unstable();
        assert_eq!(went, (0..in_flight_max as u64).collect::<Vec<_>>(), "{sizes:?}");
    }
}

#[test]
fn scarce_streams_go_to_the_earliest_of_a_large_batch() {
    // The number sorted together; of those after them one has a stream.
    let count = BATCH_CANDIDATES_MAX as u64 + 2;
    let malicious = MaliciousLeader::start(Behaviour { grant: count - 1, ..Behaviour::default() });
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(malicious.address);
    for tx in 0..count {
        let size = if tx == count - 1 { 1000 } else { 900 };
        sender.engine.cork(&[peer, 0], &vec![tx as u8; size], tx, LONG_MS, Offer::default());
    }
    uncork();
    sender.until("sent", |events| sent(events).len() as u64 == count - 1);
    malicious.flood(1, |_| frame(MAX_STREAMS_UNI, &[count], &[]));
    sender.until("acked", |events| ended(events) as u64 == count);
    assert_eq!(sent(&sender.events).last(), Some(&(count - 1)));
}

#[test]
fn streams_of_waiting_deliveries_are_not_given_to_new_ones() {
    // The second stops at the window. Of the two streams left then, one belongs to the waiting
    // third and the other to the fourth, which the fifth would overtake.
    let params = |params: &mut Params| params[3].1 = value(1_000);
    let malicious = MaliciousLeader::start(Behaviour { grant: 4, params, ..Behaviour::default() });
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(malicious.address);
    for (tx, size) in [(0, 100), (1, 950), (2, 100)] {
        sender.engine.send(&[peer, 0], &vec![tx as u8; size], tx, LONG_MS, Offer::default());
    }
    sender.until("sent", |events| sent(events) == [0]);
    for (tx, size) in [(3, 900), (4, 1000)] {
        sender.engine.cork(&[peer, 0], &vec![tx as u8; size], tx, LONG_MS, Offer::default());
    }
    uncork();
    malicious.flood(1, |_| frame(MAX_DATA, &[10_000], &[]));
    sender.until("sent", |events| sent(events).len() == 4);
    malicious.flood(1, |_| frame(MAX_STREAMS_UNI, &[5], &[]));
    sender.until("acked", |events| ended(events) == 5);
    assert_eq!(sent(&sender.events), [0, 1, 2, 3, 4]);
}

#[test]
fn a_delivery_reports_whether_it_had_to_wait() {
    // When as many arrive together as could delay the sender, they count as waiting. Another thread
    // may process them in parts, but not in that many.
    for (queue_max, few, many) in [(128, 4, 64), (4, 1, 4)] {
        let malicious =
            MaliciousLeader::start(Behaviour { grant: few + many, ..Behaviour::default() });
        let mut sender = Sender::start(Options { queue_max, ..options() });
        let peer = sender.open_admitted(malicious.address);
        let mut waited = |count: u64| {
            let before = sent(&sender.events).len();
            for tx in 0..count {
                sender.engine.cork(&[peer, 0], &[tx as u8; 100], tx, LONG_MS, Offer::default());
            }
            uncork();
            let all_sent = |events: &[Event]| sent(events).len() == before + count as usize;
            if before > 0 && count == 1 {
                // No credit is left now.
                malicious.flood(1, |_| frame(MAX_STREAMS_UNI, &[few + many + 1], &[]));
            }
            sender.until("sent", all_sent);
            let records = sender.events.iter().filter(|one| one.kind == SENT);
            records.skip(before).map(|one| one.detail).collect::<Vec<_>>()
        };
        assert!(waited(few).iter().all(|waits| *waits == 0), "{few} of {queue_max}");
        assert!(waited(many).contains(&1), "{many} of {queue_max}");
        assert_eq!(waited(1), [1], "no credit");
    }
}

#[test]
fn a_delivery_partly_carried_by_a_loss_probe_does_not_count_as_sent() {
    for size in [4096, 660] {
        let malicious = MaliciousLeader::start(Behaviour { grant: 512, ..Behaviour::default() });
        let mut sender = Sender::start(options());
        let peer = sender.open_admitted(malicious.address);
        malicious.with_session(|session| session.acks = false);
        // More than the congestion window. Then only probes are sent, which are smaller than the
        // path MTU.
        for tx in 0..250 {
            sender.engine.cork(&[peer, 0], &vec![tx as u8; size], tx, 1_000, Offer::default());
            if tx % 8 == 7 {
                uncork();
                sender.drain_now();
                malicious.until("received", |session| {
                    session.received.streams.len() >= sent(&sender.events).len()
                });
            }
        }
        uncork();
        let dropped = |events: &[Event]| events.iter().filter(|one| one.kind == DROPPED).count();
        sender.until("too old", |events| dropped(events) + sent(events).len() == 250);
        assert!(dropped(&sender.events) > 0);
        sender.engine.peer_close(peer, Duration::ZERO);
        sender.closed(peer);
        // Nothing is sent from here on.
        malicious.until("received as reported", |session| {
            let whole: HashSet<u8> = session.received.streams.values().map(|one| one[0]).collect();
            sent(&sender.events).iter().all(|tx| whole.contains(&(*tx as u8)))
        });
        sender.assert_conserved(0..250);
    }
}
