//! Leaders that mean harm, frame by frame: each costs its own connection at most.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use support::packets::{MAX_STREAMS_UNI, STOP_SENDING, frame};
use support::rogue::{Nature, Rogue};
use support::{ACKED, LONG_MS, Sender, ended, options};

#[test]
fn a_leader_by_hand_takes_transactions_like_any_other() {
    let rogue = Rogue::start(Nature::default());
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(rogue.address);
    for tx in 0..50 {
        sender.engine.send(&[peer, 0], &[tx as u8; 900], tx, LONG_MS);
    }
    sender.until("acked", |seen| ended(seen) == 50);
    assert_eq!(sender.count(ACKED), 50);
    rogue.until("received", |session| session.heard.streams.len() == 50);
}

#[test]
fn streams_that_are_refused_before_their_turn_are_passed_over() {
    let rogue = Rogue::start(Nature::default());
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(rogue.address);
    // The first, some in the middle, and the last of those that are granted; 4 n + 2 is the id of
    // the n-th.
    let refused = [0, 1, 5, 6, 7, 63];
    let frames: Vec<u8> =
        refused.iter().flat_map(|n| frame(STOP_SENDING, &[4 * n + 2, 9], &[])).collect();
    rogue.flood(1, |_| frames.clone());
    for tx in 0..58 {
        sender.engine.send(&[peer, 0], &[tx as u8; 300], tx, LONG_MS);
    }
    sender.until("acked", |seen| ended(seen) == 58);
    assert_eq!(sender.count(ACKED), 58);
    sender.assert_conserved(0..58);
    rogue.say(|session| {
        for n in 0..64 {
            let whole = session.heard.streams.contains_key(&(4 * n + 2));
            assert_eq!(whole, !refused.contains(&n), "stream {n}");
        }
    });
    rogue.flood(1, |_| frame(MAX_STREAMS_UNI, &[65], &[]));
    sender.engine.send(&[peer, 0], b"one more", 58, LONG_MS);
    sender.until("acked", |seen| ended(seen) == 59);
    sender.assert_conserved([58]);
}
