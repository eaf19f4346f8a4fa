//! What counts as sent, what waits and what is dropped, with a leader whose acknowledgements arrive
//! when the test decides. The test controls the time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::IoSliceMut;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, ServerConfig,
    StreamId, VarInt,
};
use quinn_udp::RecvMeta;
use rustls::crypto::ring::default_provider;

use crate::quic::connection::ConnectionDriver;
use crate::quic::delivery::Delivery;
use crate::quic::event::{Kind, Reason};
use crate::quic::gso_batch::{GsoWriter, INTERFACE};
use crate::quic::landed_shares::Offer;
use crate::quic::limits::{EXPIRY_INTERVAL_NS, IDLE_AFTER_NS, IDLE_GRID_NS};
use crate::quic::peer::Peer;
use crate::quic::peer::tests::{drained, engine_state, peer};
use crate::quic::tls::{ALPN_TPU, Transport, client_config, self_signed};
use crate::sync::clock::NEVER_NS;

/// A connection, and a leader in the same thread.
struct Fixture {
    now: Instant,
    peer: Arc<Peer>,
    driver: ConnectionDriver,
    gso_writer: GsoWriter,
    local: Endpoint,
    remote: Endpoint,
    leader: Option<(ConnectionHandle, Connection)>,
    /// To the leader, while they are delayed.
    late: Option<Vec<Vec<u8>>>,
    /// From the leader, in transit.
    responses: VecDeque<Vec<u8>>,
    /// The bytes that the leader has read of each stream, and whether the stream is finished.
    read: BTreeMap<StreamId, (Vec<u8>, bool)>,
    /// Kind, transaction, connection and reason.
    reported: Vec<[u32; 4]>,
}

impl Fixture {
    /// An admitted connection that has found the MTU of its path.
    fn new(mtu: u16, in_flight_max: usize) -> Self {
        let mut fixture = Self::connecting(mtu, in_flight_max);
        for _ in 0..20 {
            fixture.settle();
        }
        let (_, connection) = fixture.driver.connection.as_ref().unwrap();
        assert_eq!(connection.current_mtu(), mtu);
        fixture.reported.clear();
        fixture
    }

    /// A connection that is about to start, over a path that takes datagrams of `mtu`.
    fn connecting(mtu: u16, in_flight_max: usize) -> Self {
        let mut limit = EndpointConfig::default();
        limit.max_udp_payload_size(mtu).unwrap();
        let mut local = Endpoint::new(Arc::default(), None, true, None);
        let remote = Endpoint::new(Arc::new(limit), Some(Arc::new(server())), true, None);
        let peer = peer(1, &engine_state());
        let now = Instant::now();
        let config = client_config(&[5; 32], &Transport::default()).unwrap();
        let (handle, connection) = local.connect(now, config, peer.address, "leader").unwrap();
        let mut driver = ConnectionDriver::new(in_flight_max);
        driver.start(handle, connection, NEVER_NS);
        Self {
            now,
            peer,
            driver,
            gso_writer: GsoWriter::default(),
            local,
            remote,
            leader: None,
            late: None,
            responses: VecDeque::new(),
            read: BTreeMap::new(),
            reported: Vec::new(),
        }
    }

    fn send(&mut self, tx: u64, size: usize, ttl: Duration) {
        let until_ns = self.peer.engine_state.clock.ns(self.now + ttl);
        let bytes = Bytes::from(vec![tx as u8; size]);
        self.peer.enqueue(Delivery { bytes, tx, tag: 0, until_ns, offer: Offer::default() });
    }

    /// Drives the connection, and delivers its datagrams to the leader.
    fn work(&mut self) {
        self.driver.work(&self.peer, None, self.now, &mut self.gso_writer);
        while let Some((_, handle, event)) = self.peer.engine_state.endpoint_events.pop() {
            if let Some(event) = self.local.handle_event(handle, event) {
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
            let reported = drained(&self.peer.engine_state);
            if reported.is_empty() {
                return;
            }
            self.reported.extend(reported);
        }
    }

    /// One datagram reaches the leader.
    fn arrive(&mut self, datagram: &[u8]) {
        let (now, from, bytes) = (self.now, self.peer.address, BytesMut::from(datagram));
        let mut response = Vec::new();
        match self.remote.handle(now, from, None, None, bytes, &mut response) {
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.leader = self.remote.accept(incoming, now, &mut response, None).ok();
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                self.leader.as_mut().unwrap().1.handle_event(event);
            }
            _ => {}
        }
        self.lead();
    }

    /// The leader reads and responds.
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
            if let Some(event) = self.remote.handle_event(*handle, event) {
                leader.handle_event(event);
            }
        }
        let mut response = Vec::new();
        while leader.poll_transmit(self.now, 1, &mut response).is_some() {
            self.responses.push_back(std::mem::take(&mut response));
        }
    }

    /// Delivers the leader's datagrams to the connection.
    fn deliver_responses(&mut self) {
        for response in std::mem::take(&mut self.responses) {
            let (mut none, bytes) = (Vec::new(), BytesMut::from(response.as_slice()));
            let from = self.peer.address;
            let event = self.local.handle(self.now, from, None, None, bytes, &mut none);
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                self.peer.deliver(event);
            }
            self.work();
        }
    }

    /// Delivers the delayed datagrams.
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

    /// Until both sides have acknowledged what they received.
    fn settle(&mut self) {
        self.work();
        while !self.responses.is_empty() {
            self.deliver_responses();
        }
        self.pass(ACK_DELAY);
        while !self.responses.is_empty() {
            self.deliver_responses();
        }
    }

    fn reported_as(&self, kind: Kind) -> BTreeSet<u64> {
        let of_kind = self.reported.iter().filter(|record| record[0] == kind as u32);
        of_kind.map(|record| u64::from(record[1])).collect()
    }

    fn reasons(&self) -> Vec<u32> {
        let dropped = self.reported.iter().filter(|record| record[0] == Kind::Dropped as u32);
        dropped.map(|record| record[3]).collect()
    }

    /// The first bytes of the transactions that the leader has read completely.
    fn whole(&self) -> BTreeSet<u64> {
        let whole = self.read.values().filter(|(_, is_whole)| *is_whole);
        whole.map(|(bytes, _)| u64::from(bytes[0])).collect()
    }

    fn forget(&mut self) {
        self.reported.clear();
        self.read.clear();
    }

    /// Sends transactions of that size, two at a time, until the window stops one; returns their
    /// number.
    fn fill(&mut self, size: usize, ttl: Duration) -> u64 {
        for tx in (0..254).step_by(2) {
            self.send(tx, size, ttl);
            self.send(tx + 1, size, ttl);
            self.work();
            if !self.reported_as(Kind::Sent).contains(&(tx + 1)) {
                return tx + 2;
            }
        }
        panic!("the window stopped no transaction");
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

/// A generator of numbers below the given one; deterministic for a seed.
fn rng(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    }
}

/// The path MTU once discovered, and the MTU that a leader may limit it to.
const MTUS: [u16; 2] = [1452, 1200];
/// The maximum time that either side delays an acknowledgement.
const ACK_DELAY: Duration = Duration::from_millis(25);
/// Too short for any timer to fire.
const SHORT: Duration = Duration::from_millis(1);

#[test]
fn a_transaction_is_sent_without_waiting_for_an_acknowledgement() {
    for mtu in MTUS {
        let mut fixture = Fixture::new(mtu, 64);
        let (mut late, mut dropped) = (Vec::new(), Vec::new());
        for size in 1..=4096 {
            fixture.send(1, size, SHORT);
            fixture.work();
            fixture.send(2, 200, SHORT);
            fixture.work();
            if fixture.reported_as(Kind::Sent) != [1, 2].into() {
                late.push(size);
            }
            // Both have expired now, but the leader has them, and will acknowledge them.
            fixture.pass(SHORT);
            if !fixture.reported_as(Kind::Dropped).is_empty() {
                dropped.push(size);
            }
            fixture.settle();
            if late.is_empty() {
                assert_eq!(fixture.reported_as(Kind::Acked), [1, 2].into(), "{size}");
                assert_eq!(fixture.whole(), [1, 2].into(), "{size}");
            }
            fixture.forget();
        }
        assert!(late.is_empty() && dropped.is_empty(), "at {mtu}: {late:?}, {dropped:?}");
    }
}

#[test]
fn a_delivery_stopped_by_the_window_is_dropped_in_time_and_never_reaches_the_leader() {
    for mtu in MTUS {
        for size in [660, 690, 1_100, 1_232, 2_500, 4_096] {
            let mut fixture = Fixture::new(mtu, 512);
            let count = fixture.fill(size, SHORT);
            assert_eq!(fixture.reported_as(Kind::Sent), fixture.whole(), "{size} at {mtu}");
            fixture.pass(SHORT);
            let (sent, dropped) =
                (fixture.reported_as(Kind::Sent), fixture.reported_as(Kind::Dropped));
            assert!(!sent.is_empty() && !dropped.is_empty(), "{size} at {mtu}");
            assert_eq!(sent.union(&dropped).count() as u64, count, "{size} at {mtu}");
            assert!(
                fixture.reasons().iter().all(|reason| *reason == Reason::LeaderSaturated as u32)
            );
            fixture.settle();
            fixture.settle();
            assert_eq!(fixture.reported_as(Kind::Acked), sent, "{size} at {mtu}");
            assert_eq!(fixture.whole(), sent, "{size} at {mtu}");
        }
    }
}

#[test]
fn on_any_path_sent_means_on_the_wire_and_dropped_means_not_received() {
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
                7 => fixture.deliver_responses(),
                // The leader's datagrams are lost, or the sent ones are late.
                8 => fixture.responses.clear(),
                9 => fixture.late = Some(fixture.late.take().unwrap_or_default()),
                _ => fixture.catch_up(),
            }
            let (sent, whole) = (fixture.reported_as(Kind::Sent), fixture.whole());
            assert!(fixture.late.is_some() || sent.is_subset(&whole), "{seed}, {tx}");
            assert!(fixture.reported_as(Kind::Dropped).is_disjoint(&whole), "{seed}, {tx}");
        }
        fixture.catch_up();
        for _ in 0..200 {
            fixture.settle();
        }
        let (acked, dropped) =
            (fixture.reported_as(Kind::Acked), fixture.reported_as(Kind::Dropped));
        assert_eq!(acked, fixture.reported_as(Kind::Sent), "{seed}");
        assert_eq!(acked, fixture.whole(), "{seed}");
        assert_eq!(acked.len() + dropped.len(), 250, "{seed}");
        assert_eq!(acked.union(&dropped).count(), 250, "{seed}");
    }
}

#[test]
fn over_a_long_path_the_timer_for_a_lost_delivery_is_not_coalesced() {
    let mut fixture = Fixture::new(1452, 64);
    let mut exact = Vec::new();
    for tx in 0..20 {
        fixture.send(tx, 200, Duration::from_secs(60));
        fixture.work();
        let (_, connection) = fixture.driver.connection.as_mut().unwrap();
        let due = connection.poll_timeout().unwrap();
        if due - fixture.now > Duration::from_nanos(IDLE_AFTER_NS) {
            let due_ns = fixture.peer.engine_state.clock.ns(due);
            exact.push(fixture.peer.timer.sooner() == Some(due_ns));
        }
        fixture.pass(Duration::from_millis(200));
        fixture.deliver_responses();
    }
    assert!(exact.len() > 10 && exact.iter().all(|exact| *exact), "{exact:?}");
    // All is acknowledged.
    for _ in 0..5 {
        fixture.settle();
    }
    let timer_ns = fixture.peer.timer.sooner().unwrap();
    assert_eq!(timer_ns % IDLE_GRID_NS, 0);
}

#[test]
fn a_full_in_flight_table_is_reported_as_a_local_reason() {
    let mut fixture = Fixture::new(1452, 2);
    for tx in 0..3 {
        fixture.send(tx, 200, SHORT);
    }
    fixture.work();
    fixture.pass(SHORT);
    assert_eq!(fixture.reported_as(Kind::Sent), [0, 1].into());
    assert_eq!(fixture.reported_as(Kind::Dropped), [2].into());
    assert_eq!(fixture.reasons(), [Reason::TooManyInFlight as u32]);
}

#[test]
fn deliveries_that_expire_shortly_after_each_other_are_searched_for_together() {
    let mut fixture = Fixture::new(1452, 1);
    // The leader does not acknowledge the first one, so the others wait.
    fixture.late = Some(Vec::new());
    fixture.send(0, 200, Duration::from_secs(60));
    for tx in 1..4 {
        fixture.send(tx, 200, SHORT * tx as u32);
    }
    fixture.work();
    fixture.pass(SHORT);
    assert_eq!(fixture.reported_as(Kind::Dropped), [1].into());
    let interval = Duration::from_nanos(EXPIRY_INTERVAL_NS);
    let due_ns = fixture.peer.engine_state.clock.ns(fixture.now + interval);
    assert_eq!(fixture.driver.expiry_ns, due_ns);
    fixture.pass(interval);
    assert_eq!(fixture.reported_as(Kind::Dropped), [1, 2, 3].into());
    assert_eq!(fixture.driver.expiry_ns, NEVER_NS);
}

#[test]
fn a_full_local_socket_is_not_reported_as_a_leader_reason() {
    let mut fixture = Fixture::new(1452, 2);
    INTERFACE.set((true, usize::MAX));
    // The first datagram leaves the queue, and waits for the socket.
    fixture.send(0, 200, SHORT);
    fixture.work();
    fixture.send(1, 200, SHORT);
    fixture.work();
    fixture.pass(SHORT);
    assert_eq!(fixture.reported_as(Kind::Dropped), [1].into());
    assert_eq!(fixture.reasons(), [Reason::Expired as u32]);
}

#[test]
fn probe_that_the_interface_refuses_takes_no_delivery_with_it() {
    INTERFACE.set((false, 1_300));
    let mut fixture = Fixture::connecting(1452, 2);
    for tx in 0..10 {
        fixture.send(tx, 600, Duration::from_secs(60));
    }
    for _ in 0..60 {
        fixture.settle();
    }
    assert_eq!(fixture.reported_as(Kind::Acked), (0..10).collect());
    let (_, connection) = fixture.driver.connection.as_ref().unwrap();
    let path = connection.stats().path;
    assert!(path.sent_plpmtud_probes > 0);
    assert_eq!(path.lost_packets, 0);
}

#[test]
fn what_a_full_local_socket_holds_up_leaves_with_the_next_delivery() {
    let mut fixture = Fixture::new(1452, 4);
    INTERFACE.set((true, usize::MAX));
    fixture.send(0, 200, Duration::from_secs(60));
    fixture.work();
    INTERFACE.set((false, usize::MAX));
    // The timer for the next try is not due yet.
    fixture.send(1, 200, Duration::from_secs(60));
    fixture.work();
    assert_eq!(fixture.whole(), [0, 1].into());
}
