//! What counts as sent, what waits and what is dropped, at a leader whose acknowledgements come when
//! the test says so. Time is what the test makes of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::IoSliceMut;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, ServerConfig,
    StreamId, Transmit, VarInt,
};
use quinn_udp::RecvMeta;
use rustls::crypto::ring::default_provider;

use crate::quic::connection::ConnectionDriver;
use crate::quic::delivery::Delivery;
use crate::quic::event_ring::{Kind, Reason};
use crate::quic::gso_batch::GsoWriter;
use crate::quic::peer::Peer;
use crate::quic::peer::tests::{engine_state, peer, told};
use crate::quic::tls::{ALPN_TPU, Transport, client_config, self_signed};
use crate::sync::clock::NEVER_NS;

/// A link, and a leader in the same thread.
struct Fixture {
    now: Instant,
    peer: Arc<Peer>,
    driver: ConnectionDriver,
    gso_writer: GsoWriter,
    ours: Endpoint,
    theirs: Endpoint,
    leader: Option<(ConnectionHandle, Connection)>,
    /// To the leader, where they do not arrive at once.
    late: Option<Vec<Vec<u8>>>,
    /// From the leader, on their way.
    answers: VecDeque<Vec<u8>>,
    /// What the leader has read of each stream, and whether that is all.
    read: BTreeMap<StreamId, (Vec<u8>, bool)>,
    /// Kind, transaction, connection and reason.
    told: Vec<[u32; 4]>,
}

impl Fixture {
    /// An admitted connection whose path takes datagrams of `mtu`.
    fn new(mtu: u16, in_flight_max: usize) -> Self {
        let mut limit = EndpointConfig::default();
        limit.max_udp_payload_size(mtu).unwrap();
        let mut ours = Endpoint::new(Arc::default(), None, true, None);
        let theirs = Endpoint::new(Arc::new(limit), Some(Arc::new(server())), true, None);
        let peer = peer(1, &engine_state());
        let now = Instant::now();
        let config = client_config(&[5; 32], &Transport::default()).unwrap();
        let (handle, connection) = ours.connect(now, config, peer.address, "leader").unwrap();
        let mut driver = ConnectionDriver::new(in_flight_max);
        driver.start(handle, connection, NEVER_NS);
        let mut fixture = Self {
            now,
            peer,
            driver,
            gso_writer: GsoWriter::default(),
            ours,
            theirs,
            leader: None,
            late: None,
            answers: VecDeque::new(),
            read: BTreeMap::new(),
            told: Vec::new(),
        };
        for _ in 0..20 {
            fixture.settle();
        }
        let (_, connection) = fixture.driver.connection.as_ref().unwrap();
        assert_eq!(connection.current_mtu(), mtu);
        fixture.told.clear();
        fixture
    }

    fn send(&mut self, tx: u64, size: usize, ttl: Duration) {
        let until_ns = self.peer.engine_state.clock.ns(self.now + ttl);
        let bytes = Bytes::from(vec![tx as u8; size]);
        self.peer.enqueue(Delivery { bytes, tx, tag: 0, until_ns });
    }

    /// Does what there is to do, and has the leader read what came of it.
    fn work(&mut self) {
        self.driver.work(&self.peer, None, self.now, &mut self.gso_writer);
        while let Some((_, handle, event)) = self.peer.engine_state.endpoint_events.pop() {
            if let Some(event) = self.ours.handle_event(handle, event) {
                self.peer.deliver(event);
            }
        }
        let socket = self.peer.socket.clone();
        let (mut bytes, mut metas) = (vec![0; 65_535], [RecvMeta::default()]);
        loop {
            let mut slices = [IoSliceMut::new(&mut bytes)];
            if socket.state.recv((&socket.udp).into(), &mut slices, &mut metas).is_err() {
                break;
            }
            for datagram in bytes[..metas[0].len].chunks(metas[0].stride) {
                match &mut self.late {
                    Some(late) => late.push(datagram.to_vec()),
                    None => self.arrive(datagram),
                }
            }
        }
        loop {
            let told = told(&self.peer.engine_state);
            if told.is_empty() {
                return;
            }
            self.told.extend(told);
        }
    }

    /// One datagram reaches the leader.
    fn arrive(&mut self, datagram: &[u8]) {
        let (now, from, bytes) = (self.now, self.peer.address, BytesMut::from(datagram));
        let mut answer = Vec::new();
        match self.theirs.handle(now, from, None, None, bytes, &mut answer) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.leader = self.theirs.accept(incoming, now, &mut answer, None).ok();
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                self.leader.as_mut().unwrap().1.handle_event(event);
            }
            _ => {}
        }
        self.lead();
    }

    /// The leader reads and answers.
    fn lead(&mut self) {
        let Some((handle, leader)) = &mut self.leader else { return };
        while leader.poll_timeout().is_some_and(|due| due <= self.now) {
            leader.handle_timeout(self.now);
        }
        while leader.poll().is_some() {}
        while let Some(id) = leader.streams().accept(Dir::Uni) {
            self.read.insert(id, (Vec::new(), false));
        }
        for (id, (bytes, is_whole)) in self.read.iter_mut().filter(|(_, (_, whole))| !whole) {
            let mut stream = leader.recv_stream(*id);
            let Ok(mut chunks) = stream.read(true) else { continue };
            while let Ok(chunk) = chunks.next(usize::MAX) {
                let Some(chunk) = chunk else {
                    *is_whole = true;
                    break;
                };
                bytes.extend_from_slice(&chunk.bytes);
            }
            let _ = chunks.finalize();
        }
        while let Some(event) = leader.poll_endpoint_events() {
            if let Some(event) = self.theirs.handle_event(*handle, event) {
                leader.handle_event(event);
            }
        }
        let mut answer = Vec::new();
        while leader.poll_transmit(self.now, 1, &mut answer).is_some() {
            self.answers.push_back(std::mem::take(&mut answer));
        }
    }

    /// What the leader said reaches the link.
    fn hear(&mut self) {
        for answer in std::mem::take(&mut self.answers) {
            let (mut none, bytes) = (Vec::new(), BytesMut::from(answer.as_slice()));
            let from = self.peer.address;
            let event = self.ours.handle(self.now, from, None, None, bytes, &mut none);
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                self.peer.deliver(event);
            }
            self.work();
        }
    }

    /// What was late arrives.
    fn catch_up(&mut self) {
        for datagram in self.late.take().unwrap_or_default() {
            self.arrive(&datagram);
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.lead();
        self.work();
    }

    /// Until both sides have acknowledged what they got.
    fn settle(&mut self) {
        self.work();
        while !self.answers.is_empty() {
            self.hear();
        }
        self.pass(ACK_DELAY);
        while !self.answers.is_empty() {
            self.hear();
        }
    }

    fn told_as(&self, kind: Kind) -> BTreeSet<u64> {
        let of_kind = self.told.iter().filter(|record| record[0] == kind as u32);
        of_kind.map(|record| u64::from(record[1])).collect()
    }

    fn reasons(&self) -> Vec<u32> {
        let dropped = self.told.iter().filter(|record| record[0] == Kind::Dropped as u32);
        dropped.map(|record| record[3]).collect()
    }

    /// The first bytes of those that the leader has read wholly.
    fn whole(&self) -> BTreeSet<u64> {
        let whole = self.read.values().filter(|(_, is_whole)| *is_whole);
        whole.map(|(bytes, _)| u64::from(bytes[0])).collect()
    }

    fn forget(&mut self) {
        self.told.clear();
        self.read.clear();
    }

    /// Sends transactions of that size, two at a time, until the window stops one; their number.
    fn fill(&mut self, size: usize, ttl: Duration) -> u64 {
        for tx in (0..254).step_by(2) {
            self.send(tx, size, ttl);
            self.send(tx + 1, size, ttl);
            self.work();
            if !self.told_as(Kind::Sent).contains(&(tx + 1)) {
                return tx + 2;
            }
        }
        panic!("everything is sent");
    }
}

fn server() -> ServerConfig {
    let (certificate, key) = self_signed(&[0x77; 32]).unwrap();
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    tls.alpn_protocols = vec![ALPN_TPU.to_vec()];
    let crypto = QuicServerConfig::try_from(tls).unwrap();
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    let transport = Arc::get_mut(&mut config.transport).unwrap();
    transport.max_concurrent_uni_streams(VarInt::from_u32(1_024));
    config
}

/// Throws a number below the given one; the same ones for a seed.
fn rng(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    }
}

/// What the path takes once that was tried, and what a leader may limit it to.
const MTUS: [u16; 2] = [1452, 1200];
/// The longest that either side waits with an acknowledgement.
const ACK_DELAY: Duration = Duration::from_millis(25);
/// Too short for anything but itself to happen.
const SHORT: Duration = Duration::from_millis(1);

#[test]
fn whatever_goes_before_it_a_transaction_leaves_without_an_acknowledgement() {
    for mtu in MTUS {
        let mut fixture = Fixture::new(mtu, 64);
        let (mut late, mut dropped) = (Vec::new(), Vec::new());
        for size in 1..=4096 {
            fixture.send(1, size, SHORT);
            fixture.work();
            fixture.send(2, 200, SHORT);
            fixture.work();
            if fixture.told_as(Kind::Sent) != [1, 2].into() {
                late.push(size);
            }
            // Both are of no more use now, but the leader has them, and will say so.
            fixture.pass(SHORT);
            if !fixture.told_as(Kind::Dropped).is_empty() {
                dropped.push(size);
            }
            fixture.settle();
            if late.is_empty() {
                assert_eq!(fixture.told_as(Kind::Acked), [1, 2].into(), "{size}");
                assert_eq!(fixture.whole(), [1, 2].into(), "{size}");
            }
            fixture.forget();
        }
        assert!(late.is_empty() && dropped.is_empty(), "at {mtu}: {late:?}, {dropped:?}");
    }
}

#[test]
fn what_the_window_stops_is_dropped_in_time_and_the_leader_has_no_such_transaction() {
    for mtu in MTUS {
        for size in [660, 690, 1_100, 1_232, 2_500, 4_096] {
            let mut fixture = Fixture::new(mtu, 512);
            let count = fixture.fill(size, SHORT);
            assert_eq!(fixture.told_as(Kind::Sent), fixture.whole(), "{size} at {mtu}");
            fixture.pass(SHORT);
            let (sent, dropped) = (fixture.told_as(Kind::Sent), fixture.told_as(Kind::Dropped));
            assert!(!sent.is_empty() && !dropped.is_empty(), "{size} at {mtu}");
            assert_eq!(sent.union(&dropped).count() as u64, count, "{size} at {mtu}");
            assert!(
                fixture.reasons().iter().all(|reason| *reason == Reason::LeaderSaturated as u32)
            );
            fixture.settle();
            fixture.settle();
            assert_eq!(fixture.told_as(Kind::Acked), sent, "{size} at {mtu}");
            assert_eq!(fixture.whole(), sent, "{size} at {mtu}");
        }
    }
}

#[test]
fn whatever_the_path_does_sent_means_on_the_wire_and_dropped_that_the_leader_lacks_it() {
    for seed in 0..60 {
        let mut below = rng(seed);
        let mut fixture = Fixture::new(MTUS[below(2)], 512);
        for tx in 0..250 {
            let time = |below: &mut dyn FnMut(usize) -> usize| {
                let most = [2, 10, 60, 400][below(4)];
                Duration::from_millis(below(most) as u64)
            };
            let size_max = [200, 1_500, 4_096][below(3)];
            let size = 1 + below(size_max);
            let ttl = time(&mut below);
            fixture.send(tx, size, ttl);
            match below(12) {
                0..6 => fixture.work(),
                6 => fixture.pass(time(&mut below)),
                7 => fixture.hear(),
                // The answers are lost, or what was sent is late.
                8 => fixture.answers.clear(),
                9 => fixture.late = Some(fixture.late.take().unwrap_or_default()),
                _ => fixture.catch_up(),
            }
            let (sent, whole) = (fixture.told_as(Kind::Sent), fixture.whole());
            assert!(fixture.late.is_some() || sent.is_subset(&whole), "{seed}, {tx}");
            assert!(fixture.told_as(Kind::Dropped).is_disjoint(&whole), "{seed}, {tx}");
        }
        fixture.catch_up();
        for _ in 0..200 {
            fixture.settle();
        }
        let (acked, dropped) = (fixture.told_as(Kind::Acked), fixture.told_as(Kind::Dropped));
        assert_eq!(acked, fixture.told_as(Kind::Sent), "{seed}");
        assert_eq!(acked, fixture.whole(), "{seed}");
        assert_eq!(acked.len() + dropped.len(), 250, "{seed}");
        assert_eq!(acked.union(&dropped).count(), 250, "{seed}");
    }
}

#[test]
fn what_no_place_in_flight_is_left_for_is_dropped_for_a_reason_of_this_machine() {
    let mut fixture = Fixture::new(1452, 2);
    for tx in 0..3 {
        fixture.send(tx, 200, SHORT);
    }
    fixture.work();
    fixture.pass(SHORT);
    assert_eq!(fixture.told_as(Kind::Sent), [0, 1].into());
    assert_eq!(fixture.told_as(Kind::Dropped), [2].into());
    assert_eq!(fixture.reasons(), [Reason::TooManyInFlight as u32]);
}

#[test]
fn what_waits_for_the_socket_of_this_machine_is_not_dropped_for_a_reason_of_the_leader() {
    let mut fixture = Fixture::new(1452, 2);
    let (destination, size) = (fixture.peer.address, 1);
    let transmit = Transmit { destination, ecn: None, size, segment_size: None, src_ip: None };
    fixture.gso_writer.scratch.push(0);
    assert!(fixture.gso_writer.push(&transmit, &fixture.peer.socket).is_none());
    fixture.driver.stalled.extend(fixture.gso_writer.gso_batch.take());
    fixture.send(0, 200, SHORT);
    fixture.work();
    fixture.pass(SHORT);
    assert_eq!(fixture.told_as(Kind::Dropped), [0].into());
    assert_eq!(fixture.reasons(), [Reason::Expired as u32]);
}
