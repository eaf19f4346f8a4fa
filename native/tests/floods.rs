//! Frame floods by a malicious leader: they cost bounded memory, no more responses than packets,
//! and at most their own connection.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "support/heap.rs"]
mod heap;
mod support;

use std::time::Duration;

use parking_lot::Mutex;
use support::malicious_leader::{Behaviour, MaliciousLeader};
use support::packets::*;
use support::rng::rng;
use support::{
    ACKED, CLOSED, DROPPED, FAILED, LONG_MS, Leader, LeaderOptions, SENT, Sender, counter, ended,
    options,
};
use touchdown_native::quic::engine::Options;
use touchdown_native::quic::event::{CloseCause, Reason};
use touchdown_native::quic::landed_shares::Offer;
use touchdown_native::quic::limits::STREAMS_AHEAD_MAX;

#[global_allocator]
static HEAP: heap::Counted = heap::Counted;

/// One test at a time, because each measures the memory of the process.
static ALONE: Mutex<()> = Mutex::new(());

/// Packets of one flood; the memory that the first few allocate is not counted.
const PACKETS: usize = 1_200;
const PACKETS_BEFORE: usize = 300;
/// Over half of the flood's own bytes, including what the test itself records.
const GROWTH_BYTES_MAX: usize = 1 << 20;
/// Transactions sent with each tenth of a flood.
const TXS_A_WAVE: u64 = 10;

/// The code that the leader receives when the connection ends; None if it survives.
type End = Option<u64>;

/// Sends during a flood to the flooding leader and to a second leader.
fn survive(name: &str, end: End, mut frames: impl FnMut(usize) -> Vec<u8>) {
    let _alone = ALONE.lock();
    let malicious = MaliciousLeader::start(Behaviour { grant: 400, ..Behaviour::default() });
    let good = Leader::start(LeaderOptions::default());
    let mut sender = Sender::start(options());
    let peers = [sender.open_admitted(malicious.address), sender.open_admitted(good.address)];
    let mut txs = 0;
    let mut send = |sender: &mut Sender| {
        for _ in 0..TXS_A_WAVE {
            sender.engine.send(
                &[peers[0], 0, peers[1], 1],
                &[7; 700],
                txs,
                LONG_MS,
                Offer::default(),
            );
            txs += 1;
        }
    };
    send(&mut sender);
    malicious.flood(PACKETS_BEFORE, &mut frames);
    sender.until(name, |events| ended(events) == 20);
    let (allocated, before) =
        (heap::allocated(), malicious.with_session(|session| session.received.datagrams));
    for wave in 0..10 {
        let (first, size) = (PACKETS_BEFORE + wave * PACKETS / 10, PACKETS / 10);
        malicious.flood(size, |index| frames(first + index));
        send(&mut sender);
    }
    sender.until(name, |events| ended(events) == 220);
    let answers = malicious.with_session(|session| session.received.datagrams) - before;
    let grown = heap::allocated().saturating_sub(allocated);
    assert!(grown <= GROWTH_BYTES_MAX, "{name}: grew by {grown} bytes");
    // Pings and transactions cause responses of their own.
    assert!(answers <= PACKETS as u64 + 800, "{name}: {answers} responses");
    let of_other = sender.events.iter().filter(|one| one.kind == ACKED && one.tag == 1);
    assert_eq!(of_other.count(), 110, "{name}: the other leader");
    for tx in 0..txs {
        let count = |tag, kinds: &[u8]| {
            let of = sender.events.iter().filter(|one| one.tx == tx && one.tag == tag);
            of.filter(|one| kinds.contains(&one.kind)).count()
        };
        assert_eq!([count(0, &ENDS), count(1, &ENDS)], [1, 1], "{name}: one outcome per delivery");
        assert_eq!(count(0, &[SENT]), count(0, &[ACKED, FAILED]), "{name}: sent before");
    }
    assert_eq!(counter(&sender.engine, "panics"), 0, "{name}: panics");
    let closed = sender.events.iter().filter(|one| one.kind == CLOSED);
    let closed: Vec<_> = closed.map(|one| (one.peer, one.reason, one.detail)).collect();
    let expected = end.map(|code| (peers[0], CloseCause::Protocol as u8, code));
    assert_eq!(closed, Vec::from_iter(expected), "{name}");
}

const ENDS: [u8; 3] = [ACKED, FAILED, DROPPED];

/// As many frames as fit a packet; `one` receives the frame's number within the flood.
fn many(packet: usize, one: impl Fn(u64) -> Vec<u8>) -> Vec<u8> {
    let mut frames = Vec::new();
    for index in 0.. {
        let next = one(packet as u64 * 2_000 + index);
        if frames.len() + next.len() > 1_150 {
            break;
        }
        frames.extend(next);
    }
    frames
}

fn new_id(sequence: u64, retire_before: u64) -> Vec<u8> {
    let mut id = vec![ID_BYTES as u8];
    id.extend(sequence.to_be_bytes());
    id.extend((u128::from(sequence) * 7919).to_be_bytes());
    frame(NEW_CONNECTION_ID, &[sequence, retire_before], &id)
}

/// The id of the n-th unidirectional client stream.
fn stream(n: u64) -> u64 {
    4 * n + 2
}

#[test]
fn floods_of_connection_ids_are_survived() {
    // Few enough at a time that each can be retired before the next ones arrive.
    let occasionally = |k: usize| match (k / 4, k % 4) {
        (n, 0) => new_id(n as u64 + 1, n as u64 + 1),
        _ => vec![PING as u8],
    };
    survive("ids one after the other", None, occasionally);
    survive("one id repeated", None, |k| many(k, |_| new_id(1, 0)));
    survive("ids without retirement", Some(ID_LIMIT), |k| new_id(k as u64 + 1, 0));
    // One-byte ids, so that one packet has more obsolete ones than may wait.
    let late = |n: u64| frame(NEW_CONNECTION_ID, &[n, 0], &[&[1, n as u8], &[9; 16][..]].concat());
    let burst = |_| new_id(63, 63).into_iter().chain((1..=52).flat_map(late)).collect();
    survive("more ids than can be retired", Some(ID_LIMIT), burst);
    let retire = |n| frame(RETIRE_CONNECTION_ID, &[n], &[]);
    survive("one id retired repeatedly", None, |k| many(k, |_| retire(1)));
    survive("ids retired before they are issued", Some(VIOLATION), |k| retire(k as u64 + 100));
}

#[test]
fn floods_of_challenges_and_credit_are_survived() {
    survive("pings", None, |k| many(k, |_| vec![PING as u8]));
    survive("challenges", None, |k| many(k, |n| frame(PATH_CHALLENGE, &[], &n.to_be_bytes())));
    survive("streams", None, |k| many(k, |n| frame(MAX_STREAMS_UNI, &[n], &[])));
    survive("beyond all streams", Some(ENCODING), |_| frame(MAX_STREAMS_UNI, &[1 << 61], &[]));
    survive("credit", None, |k| many(k, |n| frame(MAX_DATA, &[(1 << 61) + n], &[])));
    let on_stream = |n| frame(MAX_STREAM_DATA, &[stream(n % 400), 5_000 + n], &[]);
    survive("credit on streams", None, |k| many(k, on_stream));
    survive("frequencies", None, |k| {
        many(k, |n| frame(ACK_FREQUENCY, &[n, 1, 1_000 + n % 9_000, 1], &[]))
    });
    survive("the handshake's end", None, |k| many(k, |_| frame(HANDSHAKE_DONE, &[], &[])));
}

#[test]
fn floods_of_unsolicited_data_are_survived() {
    survive("tokens", None, |k| frame(NEW_TOKEN, &[1_000], &[k as u8; 1_000]));
    survive("datagrams", Some(VIOLATION), |_| frame(DATAGRAM, &[], &[1; 1_000]));
    survive("a stream", Some(STREAM_LIMIT), |_| frame(STREAM, &[3], &[1; 1_000]));
    survive("on our stream", Some(STREAM_STATE), |_| frame(STREAM, &[2], &[1; 1_000]));
    survive("stopped streams", None, |k| {
        many(k, |n| frame(STOP_SENDING, &[stream(n % 400), 9], &[]))
    });
    let unopened = |k: usize| frame(STOP_SENDING, &[stream(500 + k as u64), 9], &[]);
    survive("stops of unopened streams", Some(STREAM_STATE), unopened);
    survive("an unknown frame", Some(ENCODING), |_| frame(0x21, &[1], &[]));
}

#[test]
fn floods_of_handshake_bytes_are_survived() {
    fn piece(at: u64, size: usize) -> Vec<u8> {
        frame(CRYPTO, &[at, size as u64], &vec![0x55; size])
    }
    survive("with a gap", None, |k| piece(1 + (k as u64 * 97) % 15_000, 1_000));
    // quinn-proto closes the connection when pieces cost more than they carry.
    let crumbs = |k: u64| (0..150).flat_map(move |n| piece(1 + (k * 150 + n) * 2 % 16_000, 1));
    survive("in crumbs", Some(INTERNAL), |k| crumbs(k as u64).collect());
    survive("too far ahead", Some(CRYPTO_BUFFER), |_| piece(1 << 20, 1_000));
    survive("garbage", Some(VIOLATION), |k| piece(k as u64 * 1_000, 1_000));
}

#[test]
fn acknowledgements_of_unsent_packets_end_the_connection() {
    survive("a future packet number", Some(VIOLATION), |_| frame(ACK, &[1 << 30, 0, 0, 0], &[]));
    survive("endless ranges", Some(ENCODING), |_| frame(ACK, &[1, 0, 1 << 20, 0], &[]));
    survive("below zero", Some(ENCODING), |_| frame(ACK, &[1, 0, 1, 0, 5, 0], &[]));
}

/// Valid packets of the leader with random frames, each sent while its connection lives.
#[test]
fn random_frames_end_at_most_their_own_connection() {
    let _alone = ALONE.lock();
    let good = Leader::start(LeaderOptions::default());
    let mut sender = Sender::start(options());
    let other = sender.open_admitted(good.address);
    let mut below = rng();
    for tx in 0..ODD_LEADERS {
        let malicious = MaliciousLeader::start(Behaviour::default());
        let peer = sender.open_admitted(malicious.address);
        malicious.flood(40, |_| {
            let mut frames = Vec::new();
            for _ in 0..1 + below(4) {
                let kinds = [below(0x20) as u64, below(64) as u64, ACK_FREQUENCY];
                let numbers: Vec<u64> = (0..below(5)).map(|_| 1 << below(62)).collect();
                let rest: Vec<u8> = (0..below(40)).map(|_| below(256) as u8).collect();
                frames.extend(frame(kinds[below(3)], &numbers, &rest));
            }
            frames
        });
        sender.engine.send(&[peer, 0, other, 1], b"to both", tx, LONG_MS, Offer::default());
        sender.engine.peer_close(peer, Duration::ZERO);
    }
    sender.until("ended", |events| ended(events) as u64 == 2 * ODD_LEADERS);
    let acked = sender.events.iter().filter(|one| one.kind == ACKED && one.tag == 1);
    assert_eq!((acked.count() as u64, counter(&sender.engine, "panics")), (ODD_LEADERS, 0));
}

const ODD_LEADERS: u64 = 100;

/// Optimistic acknowledgements: the engine skips a packet number now and then, which no leader can
/// have received.
#[test]
fn optimistic_acknowledgements_end_the_connection() {
    let _alone = ALONE.lock();
    let malicious = MaliciousLeader::start(Behaviour { grant: 2_000, ..Behaviour::default() });
    let mut sender = Sender::start(options());
    let peer = sender.open_admitted(malicious.address);
    malicious.with_session(|session| session.acks = false);
    let mut txs = 0;
    let is_closed = |sender: &Sender| sender.events.iter().any(|one| one.kind == CLOSED);
    while !is_closed(&sender) && txs < 1_500 {
        sender.engine.send(&[peer, 0], &[1; 100], txs, LONG_MS, Offer::default());
        txs += 1;
        malicious.with_session(|session| {
            if let Some((_, largest)) = session.spaces[DATA].received.last().copied() {
                session.send(&frame(ACK, &[largest, 0, 0, largest], &[]));
            }
        });
        sender.drain();
        if txs % 50 == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let closed = sender.closed(peer);
    assert_eq!((closed.reason, closed.detail), (CloseCause::Protocol as u8, VIOLATION));
    sender.until("ended", |events| ended(events) == txs as usize);
    sender.assert_conserved(0..txs);
}

/// The leader stops every stream that it grants, and acknowledges no reset.
#[test]
fn stopped_streams_count_until_their_reset_is_acknowledged() {
    let _alone = ALONE.lock();
    let malicious = MaliciousLeader::start(Behaviour { grant: 1 << 40, ..Behaviour::default() });
    let mut sender = Sender::start(Options { in_flight_max: 64, ..options() });
    let peer = sender.open_admitted(malicious.address);
    let streams_left = |sender: &Sender| sender.engine.peer(peer).unwrap().stats()[9];
    malicious.with_session(|session| session.acks = false);
    let mut refused = 0;
    while streams_left(&sender) > 0 {
        let last = refused + streams_left(&sender);
        assert!(last <= 64 + STREAMS_AHEAD_MAX as u64, "{last} streams are open");
        malicious.flood(1, |_| {
            let end = last.min(refused + 200);
            let frames = (refused..end).flat_map(|n| frame(STOP_SENDING, &[stream(n), 9], &[]));
            let frames = frames.collect();
            refused = end;
            frames
        });
    }
    sender.engine.send(&[peer, 0], b"no stream is left", 0, 50, Offer::default());
    sender.until("dropped", |events| ended(events) == 1);
    let dropped = *sender.events.last().unwrap();
    assert_eq!((dropped.kind, dropped.reason), (DROPPED, Reason::LeaderSaturated as u8));
    malicious.with_session(|session| session.acks = true);
    malicious.flood(1, |_| frame(PING, &[], &[]));
    sender.engine.peer(peer).unwrap().ping();
    sender.engine.send(&[peer, 0], b"a stream is free", 1, LONG_MS, Offer::default());
    sender.until("acked", |events| ended(events) == 2);
    assert_eq!(sender.count(ACKED), 1);
}
