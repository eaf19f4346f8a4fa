//! Malicious leaders, frame by frame: each costs at most its own connection.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::time::Instant;

use support::client_frames::Piece;
use support::malicious_leader::{Behaviour, MaliciousLeader, Params, value};
use support::packets::{MAX_STREAMS_UNI, STOP_SENDING, frame};
use support::{ACKED, DROPPED, Event, LONG_MS, PATIENCE, Sender, ended, options};
use touchdown_native::quic::event::Reason;
use touchdown_native::quic::landed_shares::Offer;

#[test]
fn the_handwritten_leader_receives_transactions() {
    let malicious = MaliciousLeader::start(Behaviour::default());
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(malicious.address);
    for tx in 0..50 {
        sender.engine.send(&[peer, 0], &[tx as u8; 900], tx, LONG_MS, Offer::default());
    }
    sender.until("acked", |events| ended(events) == 50);
    assert_eq!(sender.count(ACKED), 50);
    malicious.until("received", |session| session.received.streams.len() == 50);
}

#[test]
fn streams_stopped_before_use_are_skipped() {
    let malicious = MaliciousLeader::start(Behaviour::default());
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(malicious.address);
    // The first, some in the middle, and the last of the granted streams; 4 n + 2 is the id of the
    // n-th.
    let refused = [0, 1, 5, 6, 7, 63];
    let frames: Vec<u8> =
        refused.iter().flat_map(|n| frame(STOP_SENDING, &[4 * n + 2, 9], &[])).collect();
    malicious.flood(1, |_| frames.clone());
    for tx in 0..58 {
        sender.engine.send(&[peer, 0], &[tx as u8; 300], tx, LONG_MS, Offer::default());
    }
    sender.until("acked", |events| ended(events) == 58);
    assert_eq!(sender.count(ACKED), 58);
    sender.assert_conserved(0..58);
    malicious.with_session(|session| {
        for n in 0..64 {
            let whole = session.received.streams.contains_key(&(4 * n + 2));
            assert_eq!(whole, !refused.contains(&n), "stream {n}");
        }
    });
    malicious.flood(1, |_| frame(MAX_STREAMS_UNI, &[65], &[]));
    sender.engine.send(&[peer, 0], b"one more", 58, LONG_MS, Offer::default());
    sender.until("acked", |events| ended(events) == 59);
    sender.assert_conserved([58]);
}

#[test]
fn expiry_for_lack_of_window_or_acknowledgements_names_the_leader() {
    let few = |params: &mut Params| params[3].1 = value(1_000);
    for (window, acks) in [(few as fn(&mut Params), true), (|_| {}, false)] {
        let malicious = MaliciousLeader::start(Behaviour {
            grant: 512,
            params: window,
            ..Behaviour::default()
        });
        let mut sender = Sender::start(options());
        let peer = sender.open_admitted(malicious.address);
        malicious.with_session(|session| session.acks = acks);
        for tx in 0..300 {
            sender.engine.send(&[peer, 0], &[tx as u8; 900], tx, 300, Offer::default());
        }
        let dropped = |events: &[Event]| events.iter().filter(|one| one.kind == DROPPED).count();
        let least = if acks { 299 } else { 100 };
        sender.until("dropped", |events| dropped(events) >= least);
        for one in sender.events.iter().filter(|one| one.kind == DROPPED) {
            assert_eq!(one.reason, Reason::LeaderSaturated as u8, "{one:?}");
        }
    }
}

/// The pieces before the first retransmission, which a busy machine may cause.
fn first_time(pieces: &[Piece]) -> &[Piece] {
    let again = |(place, piece): (usize, &Piece)| {
        pieces[..place].iter().any(|one| (one.stream, one.at) == (piece.stream, piece.at))
    };
    let end = pieces.iter().enumerate().position(again);
    &pieces[..end.unwrap_or(pieces.len())]
}

/// Sends transactions of all sizes, half of them queued before the leader grants a stream, so that
/// they leave together, and half by four threads. Returns the pieces that the leader received; None
/// if the network lost some.
fn sent_concurrently(sizes: &[usize]) -> Option<Vec<Piece>> {
    let malicious = MaliciousLeader::start(Behaviour { grant: 256, ..Behaviour::default() });
    let mut sender = Sender::start(options());
    let peer = sender.open(malicious.address);
    let (before, after) = sizes.split_at(sizes.len() / 2);
    let send = |tx: usize, size: &usize| {
        sender.engine.send(
            &[peer, 0],
            &vec![tx as u8; *size],
            tx as u64,
            LONG_MS,
            Offer::default(),
        );
    };
    before.iter().enumerate().for_each(|(tx, size)| send(tx, size));
    std::thread::scope(|scope| {
        for part in 0..4 {
            scope.spawn(move || {
                let own = after.iter().enumerate().filter(|(tx, _)| tx % 4 == part);
                own.for_each(|(tx, size)| send(before.len() + tx, size));
            });
        }
    });
    sender.until("ended", |events| ended(events) == sizes.len());
    assert_eq!(sender.count(ACKED), sizes.len());
    let [_, _, _, _, _, _, lost, ..] = sender.engine.peer(peer).unwrap().stats();
    (lost == 0).then(|| malicious.with_session(|session| session.received.pieces.clone()))
}

#[test]
fn a_fitting_transaction_is_complete_in_one_datagram_and_none_interleaves() {
    // Two in eight are larger than a datagram.
    let sizes: Vec<usize> =
        (0..200).map(|tx| [250, 1100, 4000, 250, 1, 1100, 1300, 251][tx % 8]).collect();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let pieces = sent_concurrently(&sizes);
        let pieces = first_time(pieces.as_deref().unwrap_or_default());
        for pair in pieces.windows(2) {
            let [one, next] = pair else { unreachable!() };
            // Only complete ones share a datagram, and the next one begins when the last one is
            // complete.
            let are_whole = pair.iter().all(|piece| piece.at == 0 && piece.is_last);
            assert!(are_whole || one.datagram != next.datagram, "{pair:?}");
            match one.is_last {
                true => assert_eq!(next.at, 0, "{pair:?}"),
                false => {
                    assert_eq!((next.stream, next.at), (one.stream, one.at + one.size), "{pair:?}");
                }
            }
        }
        for piece in pieces.iter().filter(|piece| piece.at == 0 && piece.size <= 1100) {
            assert!(piece.is_last, "{piece:?} would have fit");
        }
        if pieces.iter().filter(|piece| piece.is_last).count() >= sizes.len() / 2 {
            return;
        }
        assert!(Instant::now() < deadline, "only {} pieces before a retransmission", pieces.len());
    }
}
