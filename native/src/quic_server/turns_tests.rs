//! How the clients of one thread share its turns. The tests take the turns themselves.

use std::future::Future;

use quinn::{Connection, Endpoint, RecvStream, SendStream};

use super::touchdown::{frame_of, hello, transaction, verdict_of};
use super::*;
use crate::quic_server::connection::Phase;
use crate::quic_server::limits::{
    ACK_DELAY, BIDIRECTIONAL_OPEN_MAX, DATAGRAM_BYTES_MAX, HANDSHAKE_DATAGRAMS_PER_TURN,
    STREAMS_PER_DRIVE, STREAMS_PER_TURN,
};
use crate::quic_server::threads::Datagram;
use crate::quic_server::tls::ALPN_TOUCHDOWN;
use crate::sync::clock::NEVER_NS;

/// A listener without a thread: the test calls its turns one by one. And its clients.
struct Turns {
    server: QuicServer,
    handler: Handler,
}

impl Turns {
    fn new() -> Self {
        let (server, handler) = unserved();
        let mut state = handler.0.lock().unwrap();
        (state.credit, state.burst) = (64, 64);
        state.accounts.insert(public_key(&SEED).unwrap(), ACCOUNT);
        drop(state);
        Self { server, handler }
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.handler.0.lock().unwrap())
    }

    fn turn(&mut self) {
        self.server.on_readable();
        self.server.turn(&mut self.handler);
    }

    /// Takes turns until the client's work is done.
    async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = Box::pin(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep(Duration::from_millis(1)) => self.turn(),
            }
        }
    }

    /// Takes turns until it is so.
    async fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        let end = Instant::now() + GUARD;
        while !is_so(self) {
            assert!(Instant::now() < end);
            tokio::time::sleep(Duration::from_millis(1)).await;
            self.turn();
        }
    }

    async fn client(&mut self) -> (Endpoint, Connection) {
        let address = self.server.local_addr().unwrap();
        let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let mut config = client_of(ALPN_TOUCHDOWN, Some(&SEED));
        // quinn sends no packets to find the largest size, so the client sends what the test sends.
        let mut transport = quinn::TransportConfig::default();
        transport.mtu_discovery_config(None);
        config.transport_config(Arc::new(transport));
        endpoint.set_default_client_config(config);
        let connecting = endpoint.connect(address, "localhost").unwrap();
        let connection = self.during(connecting).await.unwrap();
        (endpoint, connection)
    }

    /// Opens so many streams.
    async fn opened(&mut self, connection: &Connection, count: usize) -> Streams {
        let mut streams = Vec::new();
        for _ in 0..count {
            streams.push(self.during(connection.open_bi()).await.unwrap());
        }
        streams
    }
}

type Streams = Vec<(SendStream, RecvStream)>;

/// Sends this byte on each of the streams, in one datagram, and waits until that is in the socket.
async fn sent(connection: &Connection, streams: Streams, byte: u8) -> Vec<RecvStream> {
    let sent = connection.stats().frame_tx.stream + streams.len() as u64;
    let mut incoming = Vec::new();
    for (mut out, stream) in streams {
        out.write_all(&[byte]).await.unwrap();
        out.finish().unwrap();
        incoming.push(stream);
    }
    while connection.stats().frame_tx.stream < sent {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    incoming
}

#[tokio::test]
async fn burst_of_one_client_shares_turns_with_others() {
    let mut turns = Turns::new();
    let (_one, busy) = turns.client().await;
    let (_two, other) = turns.client().await;
    let (many, few) = (turns.opened(&busy, 60).await, turns.opened(&other, 8).await);
    let _verdicts = [sent(&busy, many, 1).await, sent(&other, few, 2).await];
    turns.turn();
    let bytes = turns.with(|state| state.submitted.iter().map(|(_, it)| it[0]).collect::<Vec<_>>());
    assert_eq!(bytes.len(), STREAMS_PER_TURN);
    let last = bytes.iter().rposition(|byte| *byte == 2).unwrap();
    assert!(last < STREAMS_PER_DRIVE + 8, "{bytes:?}");
    assert_eq!(bytes.iter().filter(|byte| **byte == 2).count(), 8);
    // HTTP clients have their turn, and then it goes on.
    assert_eq!(turns.server.due_in(), Some(Duration::ZERO));
    turns.turn();
    assert_eq!(turns.with(|state| state.submitted.len()), 68);
}

/// Sends a transaction on this stream, and waits until it is in the socket.
async fn submitted(connection: &Connection, mut stream: SendStream) {
    let before = connection.stats().frame_tx.stream;
    stream.write_all(&[1; 40]).await.unwrap();
    stream.finish().unwrap();
    while connection.stats().frame_tx.stream == before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn known_clients_have_their_turn_before_one_handshake_begins() {
    let mut turns = Turns::new();
    let (_endpoint, connection) = turns.client().await;
    let stream = turns.during(connection.open_uni()).await.unwrap();
    send_first_packets(3, turns.server.local_addr().unwrap());
    submitted(&connection, stream).await;
    turns.turn();
    assert_eq!(turns.with(|state| state.submitted.len()), 1);
    assert_eq!(turns.server.clients.numbers.handshakes, 3);
    for begun in 1..=3 {
        let others = turns.server.connections.iter().flatten();
        let others = others.filter(|it| it.phase == Phase::Handshake).count();
        assert_eq!((others, turns.server.arrivals.len()), (begun, 3 - begun));
        assert_eq!(turns.server.due_in(), Some(Duration::ZERO));
        turns.turn();
    }
}

#[tokio::test]
async fn client_that_sends_little_is_acknowledged_in_the_same_turn() {
    let mut turns = Turns::new();
    let (_endpoint, connection) = turns.client().await;
    let acknowledged = |turns: &Turns| {
        let connections = turns.server.connections.iter().flatten();
        connections.map(|it| it.inner.stats().frame_tx.acks).sum::<u64>()
    };
    // So much that it is not told of each stream.
    turns.with(|state| state.credit = 1_000_000);
    let first = turns.during(connection.open_uni()).await.unwrap();
    let mut further = Vec::new();
    for _ in 0..2 {
        further.push(turns.during(connection.open_uni()).await.unwrap());
    }
    // What the handshake left to acknowledge.
    turns.during(tokio::time::sleep(2 * ACK_DELAY)).await;
    let set_sent = |turns: &mut Turns, sent_ns| {
        turns.server.connections.iter_mut().flatten().for_each(|it| it.sent_ns = sent_ns);
    };
    set_sent(&mut turns, 0);
    let mut before = acknowledged(&turns);
    submitted(&connection, first).await;
    turns.turn();
    assert_eq!(acknowledged(&turns), before + 1);
    let mut waited = 0;
    for stream in further {
        before = acknowledged(&turns);
        submitted(&connection, stream).await;
        set_sent(&mut turns, NEVER_NS);
        turns.turn();
        waited += usize::from(acknowledged(&turns) == before);
        // Once nothing was sent for a while, any turn of the connection acknowledges it.
        set_sent(&mut turns, 0);
        turns.server.list_all();
        turns.turn();
        assert_eq!(acknowledged(&turns), before + 1);
    }
    // quinn leaves out 1 of its first 64 packet numbers, and the server acknowledges a gap at once.
    // So 1 of the 2 acknowledgements may come early.
    assert!(waited > 0);
    assert_eq!(turns.with(|state| state.submitted.len()), 3);
}

/// Two clients of which each has sent more than one turn reads of both.
async fn half_read() -> (Turns, [(Endpoint, Connection, Vec<RecvStream>); 2]) {
    let mut turns = Turns::new();
    let (one, first) = turns.client().await;
    let (two, second) = turns.client().await;
    let streams = (turns.opened(&first, 60).await, turns.opened(&second, 60).await);
    let verdicts = [sent(&first, streams.0, 1).await, sent(&second, streams.1, 2).await];
    turns.turn();
    assert_eq!(turns.with(|state| state.submitted.len()), STREAMS_PER_TURN);
    let [of_first, of_second] = verdicts;
    (turns, [(one, first, of_first), (two, second, of_second)])
}

#[tokio::test]
async fn transactions_of_clients_that_leave_are_taken_all_the_same() {
    let (mut turns, clients) = half_read().await;
    for (_, connection, _) in &clients {
        connection.close(0_u32.into(), b"");
    }
    turns.until(|turns| turns.server.clients.numbers.connections == 0).await;
    assert_eq!(turns.with(|state| state.submitted.len()), 120);
    assert_eq!(turns.server.clients.numbers.streams_aborted, 0);
}

#[tokio::test]
async fn end_of_the_thread_takes_what_has_arrived() {
    let (mut turns, _clients) = half_read().await;
    turns.server.close_all();
    turns.turn();
    assert_eq!(turns.with(|state| state.submitted.len()), 120);
}

/// A verdict says how long the transaction waited for those before it, in earlier turns too.
#[tokio::test]
async fn verdict_counts_the_turns_that_its_transaction_waited() {
    let mut turns = Turns::new();
    let (_one, first) = turns.client().await;
    let (_two, second) = turns.client().await;
    let streams = (turns.opened(&first, 60).await, turns.opened(&second, 60).await);
    let each = Duration::from_millis(1);
    turns.with(|state| state.takes = each);
    let verdicts = [sent(&first, streams.0, 1).await, sent(&second, streams.1, 2).await];
    let mut longest = 0;
    for verdict in verdicts.into_iter().flatten() {
        longest = longest.max(turns.during(verdict_of(verdict)).await.microseconds);
    }
    assert!(u128::from(longest) >= 120 * each.as_micros(), "{longest}");
}

#[tokio::test]
async fn client_that_reads_no_verdicts_gets_no_more_streams_after_a_while() {
    let listener = Listener::new(|_| {});
    let mut config = quinn::TransportConfig::default();
    config.stream_receive_window(1_u32.into());
    let mut client = client_of(ALPN_TOUCHDOWN, Some(&SEED));
    client.transport_config(Arc::new(config));
    let (_endpoint, connection) = listener.connect(client).await.unwrap();
    let mut unread = Vec::new();
    for _ in 0..BIDIRECTIONAL_OPEN_MAX {
        let opened = tokio::time::timeout(GUARD, connection.open_bi()).await.unwrap();
        let (mut out, incoming) = opened.unwrap();
        out.write_all(&transaction(7)).await.unwrap();
        out.finish().unwrap();
        unread.push(incoming);
    }
    listener.until(|state| state.numbers.streams_withheld > 0).await;
    let more = tokio::time::timeout(Duration::from_millis(100), connection.open_bi()).await;
    assert!(more.is_err(), "a stream above the bound");
}

const API_KEY: &[u8] = b"example-key-of-this-page";

/// A client whose key is not known yet has no streams but that of its HELLO.
#[tokio::test]
async fn hello_is_read_while_known_clients_use_up_each_turn() {
    let mut turns = Turns::new();
    turns.with(|state| state.accounts.insert(token_key(API_KEY), ACCOUNT));
    let address = turns.server.local_addr().unwrap();
    let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    endpoint.set_default_client_config(client_of(ALPN_TOUCHDOWN, None));
    let connecting = endpoint.connect(address, "localhost").unwrap();
    let newcomer = turns.during(connecting).await.unwrap();
    let control = turns.opened(&newcomer, 1).await.pop();
    let mut known = Vec::new();
    for _ in 0..6 {
        let client = turns.client().await;
        let streams = turns.opened(&client.1, 60).await;
        known.push((client, streams));
    }
    let (mut out, mut incoming) = control.unwrap();
    let before = newcomer.stats().frame_tx.stream;
    out.write_all(&hello(0, API_KEY)).await.unwrap();
    while newcomer.stats().frame_tx.stream == before {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Behind it in the socket, and before it in each turn.
    let mut verdicts = Vec::new();
    for ((_, connection), streams) in &mut known {
        verdicts.push(sent(connection, std::mem::take(streams), 1).await);
    }
    turns.until(|turns| turns.server.clients.numbers.connections == 7).await;
    assert!(turns.with(|state| state.submitted.len()) < 6 * 60, "no turn is used up");
    // The limits, which follow a HELLO whose key is known.
    tokio::time::timeout(GUARD, frame_of(&mut incoming)).await.unwrap();
}

#[tokio::test]
async fn handshake_whose_time_is_over_does_not_begin() {
    let mut turns = Turns::new();
    let address = turns.server.local_addr().unwrap();
    let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    endpoint.set_default_client_config(client_of(ALPN_TOUCHDOWN, Some(&SEED)));
    let connect = || endpoint.connect(address, "localhost").unwrap();
    let (first, second) = (connect(), connect());
    // Both are in the socket, so one handshake begins and the other one waits.
    tokio::time::sleep(Duration::from_millis(50)).await;
    turns.turn();
    assert_eq!(turns.server.arrivals.len(), 1);
    turns.server.arrivals[0].handshake_by_ns = 0;
    let (first, second) = turns.during(async { tokio::join!(first, second) }).await;
    let refused: Vec<_> = [first.err(), second.err()].into_iter().flatten().collect();
    assert!(matches!(refused[..], [quinn::ConnectionError::ConnectionClosed(_)]), "{refused:?}");
    assert_eq!(turns.server.clients.numbers.handshakes_refused, 1);
}

#[tokio::test]
async fn first_datagram_above_the_size_that_clients_are_told_is_dropped() {
    let mut turns = Turns::new();
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = turns.server.local_addr().unwrap();
    // Initial packets of version 1 with an unknown connection id: what is not sealed is dropped too,
    // so only one that would be refused as of another version gets an answer.
    let first = |size: usize| {
        let mut bytes = vec![0; size];
        bytes[..6].copy_from_slice(&[0xc3, 0x0a, 0x0a, 0x0a, 0x0a, 8]);
        bytes
    };
    socket.set_nonblocking(true).unwrap();
    for size in [DATAGRAM_BYTES_MAX + 1, DATAGRAM_BYTES_MAX] {
        socket.send_to(&first(size), address).unwrap();
        for _ in 0..20 {
            turns.turn();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let is_answered = socket.recv(&mut [0; 64]).is_ok();
        assert_eq!(is_answered, size <= DATAGRAM_BYTES_MAX, "{size}");
    }
    // The one for its size, the other for its version.
    assert_eq!(turns.server.clients.numbers.datagrams_refused, 2);
}

/// After the kernel refuses such an answer with EINVAL, quinn-udp stops using segmentation.
#[tokio::test]
async fn datagram_that_cannot_be_answered_is_not() {
    let mut turns = Turns::new();
    let segments_max = turns.server.socket.segments_max();
    // Not of a connection: a stateless reset would be the answer. And of another version.
    let (mut lost, mut other) = ([0; 200], [0; 1200]);
    lost[0] = 0x40;
    other[..6].copy_from_slice(&[0xc3, 0x0a, 0x0a, 0x0a, 0x0a, 8]);
    let (from, many) = (Ipv4Addr::LOCALHOST, [Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 1)]);
    for (count, bytes, port, dst_ip) in [
        (1, &lost[..], 0, None),
        (2, &other[..], 0, None),
        (3, &lost[..], 9, Some(many[0])),
        (4, &other[..], 9, Some(many[1])),
    ] {
        let (addr, dst_ip) = ((from, port).into(), dst_ip.map(Into::into));
        let meta = quinn_udp::RecvMeta { addr, len: bytes.len(), dst_ip, ..Default::default() };
        let datagram = Datagram { bytes: bytes.into(), meta, received_ns: 0 };
        turns.server.on_datagram(datagram, Instant::now(), 0);
        assert_eq!(turns.server.clients.numbers.datagrams_refused, count);
        assert_eq!(turns.server.socket.segments_max(), segments_max);
    }
    assert_eq!(turns.server.clients.numbers.datagrams_dropped, 0);
}

#[tokio::test]
async fn first_packets_that_begin_no_handshake_share_the_bound_of_handshakes() {
    let mut turns = Turns::new();
    let address = turns.server.local_addr().unwrap();
    // Of version 1, with a connection id of 7 bytes, which is too short: keys are derived for each
    // before it is refused.
    let mut short = vec![0; 1200];
    short[..6].copy_from_slice(&[0xc3, 0, 0, 0, 1, 7]);
    const SENT: u64 = 3 * HANDSHAKE_DATAGRAMS_PER_TURN as u64;
    for _ in 0..SENT {
        // Each from a socket of its own, so that the kernel joins none.
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.send_to(&short, address).unwrap();
    }
    let mut before = 0;
    while before < SENT {
        turns.turn();
        let refused = turns.server.clients.numbers.datagrams_refused;
        assert!(refused - before <= HANDSHAKE_DATAGRAMS_PER_TURN as u64);
        before = refused;
    }
}

#[tokio::test]
async fn few_streams_of_several_connections_are_granted_at_their_next_looks_alone() {
    let mut turns = Turns::new();
    let (_one, connection) = turns.client().await;
    let (_two, _other) = turns.client().await;
    turns.until(|turns| turns.with(|state| state.numbers.connections == 2)).await;
    let stream = turns.during(connection.open_uni()).await.unwrap();
    turns.with(|state| state.credit = 1);
    let look_at = |turns: &mut Turns, at_ns| {
        turns.server.connections.iter_mut().flatten().for_each(|it| it.credit_at_ns = at_ns);
    };
    look_at(&mut turns, NEVER_NS - 1);
    // Those that were granted before.
    for _ in 1..64 {
        turns.during(connection.open_uni()).await.unwrap().reset(0_u32.into()).unwrap();
    }
    submitted(&connection, stream).await;
    turns.until(|turns| turns.with(|state| state.submitted.len() == 1)).await;
    let more = tokio::time::timeout(Duration::from_millis(50), connection.open_uni());
    assert!(turns.during(more).await.is_err());
    // With so small a burst one is not few.
    turns.with(|state| state.burst = 2);
    turns.server.list_all();
    turns.during(connection.open_uni()).await.unwrap().reset(0_u32.into()).unwrap();
    turns.with(|state| state.burst = 64);
    look_at(&mut turns, 1);
    turns.server.list_all();
    turns.during(connection.open_uni()).await.unwrap();
}
