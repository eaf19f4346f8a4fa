//! What a leader, or an attacker between it and this engine, can put on the wire: replayed,
//! truncated, altered and forged datagrams in the leader's name, and implausible transport
//! parameters.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::net::UdpSocket;
use std::time::Duration;

use support::path::Path;
use support::rng::rng;
use support::transport_params::Params;
use support::{ACKED, LONG_MS, Leader, LeaderOptions, Sender, counter, ended, options};
use touchdown_native::quic::event::CloseCause;
use touchdown_native::quic::landed_shares::Offer;

/// Sends through `alter`, and to a second leader directly; every delivery to both must be
/// acknowledged.
fn all_arrives(alter: impl FnMut(&[u8]) -> Vec<Vec<u8>> + Send + 'static) {
    let (altered, straight) =
        (Leader::start(LeaderOptions::default()), Leader::start(LeaderOptions::default()));
    let path = Path::altering_the_leader(altered.address, alter);
    let mut sender = Sender::start(options());
    let peers = [sender.open_admitted(path.address), sender.open_admitted(straight.address)];
    for tx in 0..100 {
        sender.engine.send(
            &[peers[0], 0, peers[1], 1],
            &[tx as u8; 900],
            tx,
            LONG_MS,
            Offer::default(),
        );
    }
    sender.until("ended", |events| ended(events) == 200);
    assert_eq!(sender.count(ACKED), 200);
    altered.assert_received(100);
    straight.assert_received(100);
    assert_eq!(counter(&sender.engine, "panics"), 0);
}

#[test]
fn replayed_datagrams_change_nothing() {
    let mut events: Vec<Vec<u8>> = Vec::new();
    let mut below = rng();
    all_arrives(move |datagram| {
        events.push(datagram.to_vec());
        let again = (0..4).map(|_| events[below(events.len())].clone());
        again.chain([datagram.to_vec(), datagram.to_vec()]).collect()
    });
}

#[test]
fn truncated_and_altered_leader_datagrams_change_nothing() {
    let mut below = rng();
    all_arrives(move |datagram| {
        let cut = datagram[..below(datagram.len())].to_vec();
        let mut altered = datagram.to_vec();
        let place = below(altered.len());
        altered[place] ^= 1 << below(8);
        let mut long = datagram.to_vec();
        long.extend((0..below(200)).map(|_| below(256) as u8));
        // A short header does not contain its length, so a lengthened packet is an altered one; a
        // long header does, and the bytes after it are another packet.
        vec![cut, altered, long, datagram.to_vec()]
    });
}

#[test]
fn forged_packets_of_every_type_change_nothing() {
    let mut below = rng();
    all_arrives(move |datagram| {
        let mut made: Vec<Vec<u8>> = (0..8)
            .map(|kind| {
                // The connection's own ids, as far as they are sent unencrypted, and noise.
                let mut packet = datagram[..datagram.len().min(30)].to_vec();
                packet.extend((0..below(1200)).map(|_| below(256) as u8));
                packet[0] = [0x80, 0xc0, 0xd0, 0xe0, 0xf0, 0x40, 0x7f, 0xff][kind];
                packet
            })
            .collect();
        // Version negotiation without a common version: the version field is zero.
        let mut versions = datagram.to_vec();
        versions[0] |= 0x80;
        versions[1..5].fill(0);
        // After one packet of the leader has arrived, the version can no longer change.
        made.insert(0, datagram.to_vec());
        made.push(versions);
        made
    });
}

#[test]
fn a_flood_of_forged_retries_ends_at_most_one_attempt() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    silent.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let good = Leader::start(LeaderOptions::default());
    let mut sender = Sender::start(touchdown_native::quic::engine::Options {
        admission_timeout: Duration::from_secs(3),
        ..options()
    });
    let bad = sender.open(silent.local_addr().unwrap());
    let peer = sender.open_admitted(good.address);
    let mut below = rng();
    let mut buffer = [0; 2000];
    for tx in 0..40 {
        let Ok((size, from)) = silent.recv_from(&mut buffer) else { continue };
        let initial = &buffer[..size];
        // Long header: version, then destination and source id. The response swaps them.
        let (to, rest) = initial[6..].split_at(usize::from(initial[5]));
        let own = &rest[1..1 + usize::from(rest[0])];
        for first in [0xf0, 0xff, 0x80, 0xc0] {
            for version in [&initial[1..5], &[0; 4]] {
                let mut packet = vec![first];
                packet.extend(version);
                packet.push(own.len() as u8);
                packet.extend(own);
                packet.push(to.len() as u8);
                packet.extend(to);
                packet.extend((0..20 + below(900)).map(|_| below(256) as u8));
                silent.send_to(&packet, from).unwrap();
            }
        }
        sender.engine.send(&[peer, 1], &[1; 300], tx, LONG_MS, Offer::default());
    }
    let closed = sender.closed(bad);
    let causes = [CloseCause::AdmissionTimeout as u8, CloseCause::Version as u8];
    assert!(causes.contains(&closed.reason), "{closed:?}");
    sender.engine.send(&[peer, 1], b"undisturbed", 999, LONG_MS, Offer::default());
    sender.until("acked", |events| events.iter().any(|one| one.kind == ACKED && one.tx == 999));
    assert_eq!(counter(&sender.engine, "panics"), 0);
}

/// The largest QUIC varint, and the largest number of streams.
const VARINT_MAX: u64 = (1 << 62) - 1;
const STREAMS_MAX: u64 = 1 << 60;

#[test]
fn implausible_transport_parameters_cost_at_most_their_own_connection() {
    let cases: [(&str, Params, bool); 9] = [
        ("unlimited windows", &[(4, VARINT_MAX), (6, VARINT_MAX), (7, VARINT_MAX)], true),
        ("unlimited streams", &[(8, STREAMS_MAX), (9, STREAMS_MAX)], true),
        ("the smallest datagram", &[(3, 1200)], true),
        ("the largest datagram", &[(3, VARINT_MAX)], true),
        ("maximum ack delays", &[(10, 20), (11, (1 << 14) - 1)], true),
        // A leader that accepts fewer ids than it announces closes its connection over them.
        ("unlimited connection ids", &[(14, VARINT_MAX)], false),
        ("idle timeout of 1 ms", &[(1, 1)], false),
        ("never idle", &[(1, VARINT_MAX)], true),
        ("no stream data", &[(4, 0), (7, 0)], false),
    ];
    for (name, params, arrives) in cases {
        let odd = Leader::start(LeaderOptions { params, ..LeaderOptions::default() });
        let good = Leader::start(LeaderOptions::default());
        let mut sender = Sender::start(options());
        let peers = [sender.open(odd.address), sender.open_admitted(good.address)];
        if arrives {
            // A leader that announces more than it grants ends the connection of a client that uses
            // it.
            sender.until("granted", |_| !odd.connections.lock().is_empty());
        }
        for tx in 0..50 {
            // A connection that does not end otherwise ends by timeout.
            let odd_ms = if arrives { LONG_MS } else { 1_500 };
            sender.engine.send(&[peers[0], 0], &[3; 1000], tx, odd_ms, Offer::default());
            sender.engine.send(&[peers[1], 1], &[3; 1000], tx, LONG_MS, Offer::default());
        }
        sender.until(name, |events| ended(events) == 100);
        let acked = |tag| {
            let of = sender.events.iter().filter(|one| one.kind == ACKED && one.tag == tag);
            of.count()
        };
        assert_eq!(acked(1), 50, "{name}: the other leader");
        if arrives {
            assert_eq!(acked(0), 50, "{name}");
        }
        assert_eq!(counter(&sender.engine, "panics"), 0, "{name}: panics");
    }
}
