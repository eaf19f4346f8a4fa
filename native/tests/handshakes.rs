//! Leaders with unusual or endless handshakes, and datagrams that claim that a connection is over.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use support::malicious_leader::*;
use support::packets::*;
use support::{ACKED, ADMITTED, CLOSED, CONNECTED, DROPPED, FAILED, LONG_MS, counter};
use support::{Event, Leader, LeaderOptions, Sender, ended, options};
use touchdown_native::quic::engine::Options;
use touchdown_native::quic::event::{CloseCause, Reason};
use touchdown_native::quic::landed_shares::Offer;

/// Connects to a malicious leader and to a second one and sends to both. Returns how the former's
/// connection ends, if it does before all is acknowledged.
fn meet(
    name: &str,
    behaviour: Behaviour,
    during: impl Fn(&mut Session),
) -> Option<(CloseCause, u64)> {
    let (malicious, good) =
        (MaliciousLeader::start(behaviour), Leader::start(LeaderOptions::default()));
    let mut sender = Sender::start(options());
    let peers = [sender.open(malicious.address), sender.open(good.address)];
    for tx in 0..20 {
        sender.engine.send(
            &[peers[0], 0, peers[1], 1],
            &[tx as u8; 500],
            tx,
            LONG_MS,
            Offer::default(),
        );
    }
    sender.until(name, |events| {
        malicious.with_session_if_any(&during);
        ended(events) == 40
    });
    let acked = |tag| {
        let of = sender.events.iter().filter(|one| one.kind == ACKED && one.tag == tag);
        of.count()
    };
    let (odd, other) = (acked(0), acked(1));
    assert_eq!(other, 20, "{name}: the other leader");
    assert_eq!(counter(&sender.engine, "panics"), 0, "{name}: panics");
    if odd == 20 {
        return None;
    }
    let reasons = [Reason::NotConnected as u8, Reason::ConnectionLost as u8];
    for one in
        sender.events.iter().filter(|one| one.tag == 0 && [FAILED, DROPPED].contains(&one.kind))
    {
        assert!(reasons.contains(&one.reason), "{name}: {one:?}");
    }
    let closed = sender.closed(peers[0]);
    let causes =
        [CloseCause::Transport, CloseCause::Protocol, CloseCause::TimedOut, CloseCause::Reset];
    let causes = causes.into_iter().chain([CloseCause::Version, CloseCause::AdmissionTimeout]);
    let cause = causes.into_iter().find(|cause| *cause as u8 == closed.reason);
    Some((cause.unwrap_or_else(|| panic!("{name}: {closed:?}")), closed.detail))
}

type Change = fn(&mut Params);

fn with_params(name: &str, params: Change) -> Option<(CloseCause, u64)> {
    meet(name, Behaviour { params, ..Behaviour::default() }, |_| {})
}

fn without(params: &mut Params, id: u64) {
    params.retain(|(other, _)| *other != id);
}

#[test]
fn invalid_transport_parameters_end_the_connection_with_an_error_code() {
    let cases: [(&str, Change); 16] = [
        ("no original id", |params| without(params, ORIGINAL_ID)),
        ("no source id", |params| without(params, SOURCE_ID)),
        ("another original id", |params| params[0].1 = vec![1; 8]),
        ("another source id", |params| params[1].1 = vec![1; 8]),
        ("a retry that was not sent", |params| params.push((RETRY_ID, vec![1; 8]))),
        ("a repeated parameter", |params| params.push((MAX_DATA_PARAM, value(1)))),
        ("a short reset token", |params| params[2].1 = vec![1; 15]),
        ("a long id", |params| params[1].1 = vec![1; 21]),
        ("an empty varint", |params| params.push((0x06, vec![]))),
        ("a truncated varint", |params| params.push((0x06, vec![0xc0, 1]))),
        ("a varint with trailing bytes", |params| params.push((0x06, vec![1, 1]))),
        ("more streams than allowed", |params| params[5].1 = value((1 << 60) + 1)),
        ("too small a datagram limit", |params| params.push((0x03, value(1_199)))),
        ("too large an ack delay exponent", |params| params.push((0x0a, value(21)))),
        ("too large an ack delay", |params| params.push((0x0b, value(1 << 14)))),
        ("too small a connection id limit", |params| params.push((0x0e, value(1)))),
    ];
    for (name, params) in cases {
        assert_eq!(
            with_params(name, params),
            Some((CloseCause::Protocol, TRANSPORT_PARAMETER)),
            "{name}"
        );
    }
}

#[test]
fn unusual_but_valid_transport_parameters_are_accepted() {
    let cases: [(&str, Change); 5] = [
        ("no reset token", |params| without(params, RESET_TOKEN)),
        ("many unknown parameters", |params| {
            params.extend((0..60).map(|n| (27 + 31 * (n + 5), vec![n as u8; 40])));
        }),
        ("a long unknown parameter", |params| params.push((27 + 31 * 9, vec![0; 3_000]))),
        ("a shorter ack delay", |params| {
            params.push((0xff04_de1b, value(1)));
        }),
        ("in another order", |params| params.reverse()),
    ];
    for (name, params) in cases {
        assert_eq!(with_params(name, params), None, "{name}");
    }
}

#[test]
fn a_second_retry_is_ignored() {
    for retries in [1, 2] {
        let malicious = MaliciousLeader::start(Behaviour { retries, ..Behaviour::default() });
        let mut sender = Sender::start(options());
        let peer = sender.open_admitted(malicious.address);
        sender.engine.send(&[peer, 0], b"after all", 1, LONG_MS, Offer::default());
        sender.until("acked", |events| ended(events) == 1);
        assert_eq!(sender.count(ACKED), 1);
        assert_eq!(sender.events.iter().find(|one| one.kind == CONNECTED).unwrap().reason, 1);
    }
}

#[test]
fn version_negotiation_ends_the_connection_only_without_a_common_version() {
    let lists: [&[&[u32]]; 3] = [&[&[1]], &[&[2, 1, 3]], &[&[0x1a2a_3a4a, 1], &[1]]];
    for versions in lists {
        assert_eq!(meet("ours", Behaviour { versions, ..Behaviour::default() }, |_| {}), None);
    }
    let versions: &[&[u32]] = &[&[0x6b33_43cf, 0x1a2a_3a4a]];
    let ended = meet("others", Behaviour { versions, ..Behaviour::default() }, |_| {});
    assert_eq!(ended, Some((CloseCause::Version, 0)));
}

/// Reopens the connection if a stalled machine made its handshake time out.
fn open_with_retries(sender: &mut Sender, address: SocketAddr) -> u32 {
    loop {
        let peer = sender.open(address);
        let of =
            |events: &[Event], kind| events.iter().any(|one| one.kind == kind && one.peer == peer);
        sender.until("admitted or not", |events| of(events, ADMITTED) || of(events, CLOSED));
        if of(&sender.events, ADMITTED) {
            return peer;
        }
    }
}

#[test]
fn an_endless_handshake_times_out() {
    let admission_timeout = Duration::from_secs(3);
    let mut sender = Sender::start(Options { admission_timeout, ..options() });
    let good = Leader::start(LeaderOptions::default());
    let beside = open_with_retries(&mut sender, good.address);
    let behaviours = [1, 2].map(|spaces| Behaviour { spaces, ..Behaviour::default() });
    let malicious = behaviours.map(MaliciousLeader::start);
    let peers = malicious.each_ref().map(|malicious| sender.open(malicious.address));
    sender.engine.send(
        &[peers[0], 0, peers[1], 1, beside, 2],
        b"to all",
        1,
        LONG_MS,
        Offer::default(),
    );
    sender.until("ended", |events| {
        // Each flight contains something new.
        for (space, malicious) in [INITIAL, HANDSHAKE].into_iter().zip(&malicious) {
            malicious.with_session_if_any(|session| {
                let packet = session.packet(space, &[PING as u8]);
                session.socket.send_to(&packet, session.client).unwrap();
            });
        }
        ended(events) == 3
    });
    assert_eq!(sender.count(ACKED), 1);
    for peer in peers {
        assert_eq!(sender.closed(peer).reason, CloseCause::AdmissionTimeout as u8);
    }
    let dropped = sender.events.iter().filter(|one| one.kind == DROPPED);
    let reasons: Vec<u8> = dropped.map(|one| one.reason).collect();
    assert_eq!(reasons, [Reason::NotConnected as u8; 2]);
}

#[test]
fn invalid_handshake_bytes_end_the_connection() {
    for (at, size, code) in [(1 << 20, 500, CRYPTO_BUFFER), (0, 500, VIOLATION)] {
        let behaviour = Behaviour { spaces: 1, ..Behaviour::default() };
        let ended = meet("garbage", behaviour, |session| {
            if session.spaces[HANDSHAKE].keys.is_some() {
                let frames = frame(CRYPTO, &[at, size], &vec![0x55; size as usize]);
                let packet = session.packet(HANDSHAKE, &frames);
                session.socket.send_to(&packet, session.client).unwrap();
            }
        });
        assert_eq!(ended, Some((CloseCause::Protocol, code)));
    }
}

#[test]
fn a_close_before_the_handshake_is_reported_with_its_code() {
    // A client further along ignores Initial packets.
    let behaviour = Behaviour { spaces: 0, ..Behaviour::default() };
    let ended = meet("refused", behaviour, |session| {
        let packet = session.packet(INITIAL, &frame(CONNECTION_CLOSE, &[2, 0, 0], &[]));
        session.socket.send_to(&packet, session.client).unwrap();
    });
    assert_eq!(ended, Some((CloseCause::Transport, 2)));
}

#[test]
fn garbage_after_a_packet_is_ignored() {
    let garbage: [fn(&Session) -> Vec<u8>; 5] = [
        |_| vec![0; 200],
        |_| vec![0xff; 200],
        // A long header for the client that is longer than the datagram, and many empty ones.
        |session| [&[0xc3, 0, 0, 0, 1, 8], session.theirs.as_slice(), &[8; 9], &[0, 0x7f]].concat(),
        |session| {
            let one = [&[0xe3, 0, 0, 0, 1, 8], session.theirs.as_slice(), &[8; 9], &[0]].concat();
            one.repeat(9)
        },
        |session| [&[0x43], session.theirs.as_slice(), &[7; 100]].concat(),
    ];
    for (index, coalesced) in garbage.into_iter().enumerate() {
        let behaviour = Behaviour { coalesced, ..Behaviour::default() };
        assert_eq!(meet("coalesced", behaviour, |_| {}), None, "garbage {index}");
    }
}

/// A datagram that looks like a packet of a connection and ends in a stateless reset token.
fn reset(token: &[u8; 16]) -> Vec<u8> {
    let mut datagram = vec![0x5f; 60];
    datagram.extend(token);
    datagram
}

#[test]
fn only_the_leaders_own_reset_ends_a_connection() {
    let (malicious, good) =
        (MaliciousLeader::start(Behaviour::default()), Leader::start(LeaderOptions::default()));
    let mut sender = Sender::start(options());
    let peers = [sender.open_admitted(malicious.address), sender.open_admitted(good.address)];
    let engine = sender.engine.local_addresses()[0];
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    for n in 0..200u8 {
        // From elsewhere with the right token, and from the leader's address with one bit changed.
        stranger.send_to(&reset(&STATELESS_TOKEN), engine).unwrap();
        let mut other = STATELESS_TOKEN;
        other[usize::from(n) % 16] ^= 1 << (n % 8);
        malicious.with_session(|session| session.socket.send_to(&reset(&other), engine).unwrap());
    }
    sender.engine.send(&[peers[0], 0, peers[1], 1], b"alive", 1, LONG_MS, Offer::default());
    sender.until("acked", |events| ended(events) == 2);
    assert_eq!(sender.count(ACKED), 2);
    malicious.with_session(|session| {
        session.acks = false;
        session.socket.send_to(&reset(&STATELESS_TOKEN), engine).unwrap();
    });
    sender.engine.send(&[peers[0], 0, peers[1], 1], b"in flight", 2, LONG_MS, Offer::default());
    assert_eq!(sender.closed(peers[0]).reason, CloseCause::Reset as u8);
    sender.until("ended", |events| ended(events) == 4);
    assert_eq!(sender.count(ACKED), 3);
    sender.engine.send(&[peers[1], 1], b"still connected", 3, LONG_MS, Offer::default());
    sender.until("acked", |events| ended(events) == 5);
    assert_eq!((sender.count(ACKED), counter(&sender.engine, "panics")), (4, 0));
}

#[test]
fn valid_packets_from_another_address_do_not_migrate_the_connection() {
    let malicious = MaliciousLeader::start(Behaviour::default());
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(malicious.address);
    let elsewhere = UdpSocket::bind("127.0.0.1:0").unwrap();
    malicious.with_session(|session| {
        for _ in 0..100 {
            let close = frame(CONNECTION_CLOSE, &[0, 0, 0], &[]);
            let packet = session.packet(DATA, &close);
            elsewhere.send_to(&packet, session.client).unwrap();
        }
    });
    sender.engine.send(&[peer, 0], b"alive", 1, LONG_MS, Offer::default());
    sender.until("acked", |events| ended(events) == 1);
    assert_eq!((sender.count(ACKED), counter(&sender.engine, "panics")), (1, 0));
}

#[test]
fn datagrams_larger_than_announced_are_dropped_and_counted() {
    let malicious = MaliciousLeader::start(Behaviour::default());
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(malicious.address);
    let packet_number = malicious.with_session(|session| {
        for _ in 0..3 {
            session.send(&[PING as u8; 2_000]);
        }
        // The largest accepted: a header of 13 bytes before, a tag of 16 after.
        session.send(&[PING as u8; 1472 - 29])
    });
    malicious.until("acknowledged", |session| session.received.acked[DATA] >= Some(packet_number));
    assert_eq!(counter(&sender.engine, "inbox_drops"), 3);
    sender.engine.send(&[peer, 0], b"alive", 1, LONG_MS, Offer::default());
    sender.until("acked", |events| ended(events) == 1);
}

#[test]
fn the_leader_may_update_keys_at_any_rate() {
    let malicious = MaliciousLeader::start(Behaviour::default());
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(malicious.address);
    for tx in 0..40 {
        malicious.with_session(|session| session.spaces[DATA].change_keys());
        malicious.flood(1, |_| vec![PING as u8]);
        sender.engine.send(&[peer, 0], &[1; 500], tx, LONG_MS, Offer::default());
        sender.until("acked", |events| ended(events) as u64 == tx + 1);
    }
    assert_eq!(sender.count(ACKED), 40);
    // Faster than any client can follow.
    malicious.with_session(|session| {
        for _ in 0..500 {
            session.spaces[DATA].change_keys();
            session.send(&[PING as u8]);
        }
    });
    sender.engine.send(&[peer, 0], b"lost with it", 40, 300, Offer::default());
    sender.engine.stop(Duration::ZERO);
    sender.drain_now();
    assert_eq!(counter(&sender.engine, "panics"), 0);
    sender.assert_conserved(0..=40);
}
