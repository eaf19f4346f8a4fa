//! A hostile path and malicious leaders: they may cost their own connection and nothing else.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::time::Duration;
use touchdown_native::quic::landed_shares::Offer;

use support::path::Path;
use support::{ACKED, LONG_MS, Leader, LeaderOptions, Sender, counter, ended, options};

/// Sends through a path that alters datagrams of both sides; `harm` receives the number of
/// datagrams before.
fn delivers_all_through(harm: fn(Vec<u8>, usize) -> Vec<Vec<u8>>) {
    let leader = Leader::start(LeaderOptions::default());
    let mut count = 0;
    let path = Path::start(leader.address, move |_, datagram| {
        count += 1;
        harm(datagram.to_vec(), count)
    });
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(path.address);
    for tx in 0..100 {
        sender.engine.send(&[peer, 0], &[tx as u8; 700], tx, LONG_MS, Offer::default());
    }
    sender.until("ended", |events| ended(events) == 100);
    sender.assert_conserved(0..100);
    assert_eq!(sender.count(ACKED), 100);
    leader.assert_received(100);
    assert_eq!(counter(&sender.engine, "panics"), 0, "panics");
}

#[test]
fn replayed_datagrams_change_nothing() {
    delivers_all_through(|datagram, _| vec![datagram.clone(), datagram.clone(), datagram]);
}

#[test]
fn lost_datagrams_are_retransmitted() {
    delivers_all_through(|datagram, count| match count % 7 {
        3 => vec![],
        _ => vec![datagram],
    });
}

#[test]
fn truncated_and_corrupted_datagrams_are_ignored() {
    delivers_all_through(|mut datagram, count| {
        let whole = datagram.clone();
        if datagram[0] & 0x80 != 0 {
            // Until the handshake keys exist, an attacker on the path can end a connection (RFC
            // 9000, 21.1).
            return vec![whole];
        }
        let place = (count * 31) % datagram.len();
        datagram[place] ^= 1 << (count % 8);
        let cut = whole[..whole.len() * (count % 5) / 5].to_vec();
        vec![datagram, cut, whole]
    });
}

#[test]
fn a_flood_of_grants_and_closes_costs_only_its_own_connection() {
    let (bad, good) =
        (Leader::start(LeaderOptions::default()), Leader::start(LeaderOptions::default()));
    let mut sender = Sender::start(options());
    let bad_peer = sender.open_admitted(bad.address);
    let good_peer = sender.open_admitted(good.address);
    let flooded = bad.connections.lock()[0].clone();
    let flood = std::thread::spawn(move || {
        for count in 0..2000u32 {
            flooded.set_max_concurrent_uni_streams(quinn::VarInt::from_u32(128 + count * 64));
            if count % 100 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        flooded.close(quinn::VarInt::from_u32(u32::MAX), &[0xff; 900]);
    });
    for tx in 0..200 {
        sender.engine.send(&[bad_peer, 0, good_peer, 1], &[9; 900], tx, LONG_MS, Offer::default());
    }
    flood.join().unwrap();
    assert_eq!(sender.closed(bad_peer).detail, u64::from(u32::MAX));
    sender.until("ended", |events| ended(events) == 400);
    let acked = sender.events.iter().filter(|one| one.kind == ACKED && one.tag == 1).count();
    assert_eq!(acked, 200);
    good.assert_received(200);
}

#[test]
fn hundreds_of_opened_and_closed_connections_leave_nothing() {
    let leader = Leader::start(LeaderOptions { grant: 8, ..LeaderOptions::default() });
    let mut sender = Sender::start(options());
    let mut tx = 0;
    for _ in 0..10 {
        let peers: Vec<u32> = (0..20).map(|_| sender.open(leader.address)).collect();
        for (index, peer) in peers.iter().enumerate() {
            tx += 1;
            sender.engine.send(&[*peer, 0], &[1; 600], tx, LONG_MS, Offer::default());
            // Some are closed before they are up, some later, and each immediately or gracefully.
            if index % 2 == 0 {
                let linger = Duration::from_millis(if index % 4 == 0 { 0 } else { 5_000 });
                sender.engine.peer_close(*peer, linger);
            }
        }
        sender.until("ended", |events| ended(events) == tx as usize);
        for peer in peers {
            sender.engine.peer_close(peer, Duration::ZERO);
        }
    }
    sender.assert_conserved(1..=tx);
    let engine = sender.engine.clone();
    sender.until("forgotten", |_| counter(&engine, "peers") == 0);
}
