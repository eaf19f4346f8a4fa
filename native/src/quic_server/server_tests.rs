//! The listener on loopback, with clients made of quinn that present the certificate of Solana's
//! clients.

#[path = "corpus_tests.rs"]
mod corpus;
#[path = "server_fixture.rs"]
mod fixture;
#[path = "handwritten_client.rs"]
mod handwritten_client;
#[path = "landing_tests.rs"]
mod landing;
#[allow(dead_code, unreachable_pub, reason = "tests outside of the crate use it too")]
#[path = "../../tests/support/packets.rs"]
mod packets;
#[allow(unreachable_pub, reason = "tests outside of the crate use it too")]
#[path = "../../tests/support/rng.rs"]
mod rng;
#[path = "threads_tests.rs"]
mod threads;
#[path = "touchdown_tests.rs"]
mod touchdown;
#[path = "turns_tests.rs"]
mod turns;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fixture::*;
use quinn::ConnectionError;

use super::{
    CLOSED_MAX, DRIVEN_PER_TURN, Options, QuicServer, SCANNED_PER_TURN, UNKNOWN_DRIVEN_PER_TURN,
};
use crate::quic::tls::{ALPN_TPU, public_key};
use crate::quic_server::handler::QuicRefusal;
use crate::sync::clock::NS_PER_S;

#[tokio::test]
async fn each_stream_is_one_transaction_of_its_client() {
    let listener = Listener::new(|_| {});
    let (_endpoint, connection) = listener.client().await;
    send(&connection, &[1; 232]).await;
    send(&connection, &[2; 4096]).await;
    send(&connection, &[]).await;
    // In pieces, with another stream in between.
    let mut slow = connection.open_uni().await.unwrap();
    slow.write_all(&[3; 5]).await.unwrap();
    listener.until(|state| state.submitted.len() == 3).await;
    send(&connection, &[4; 9]).await;
    listener.until(|state| state.submitted.len() == 4).await;
    slow.write_all(&[3; 2000]).await.unwrap();
    slow.finish().unwrap();
    listener.until(|state| state.submitted.len() == 5).await;
    let mut sizes = listener.with(|state| {
        let expected = public_key(&SEED).unwrap();
        assert!(state.submitted.iter().all(|(client, _)| client.key == expected));
        assert!(state.submitted.iter().all(|(client, _)| client.from == Ipv4Addr::LOCALHOST));
        assert!(state.submitted.iter().all(|(_, bytes)| bytes.windows(2).all(|w| w[0] == w[1])));
        state.submitted.iter().map(|(_, bytes)| bytes.len()).collect::<Vec<_>>()
    });
    sizes.sort_unstable();
    assert_eq!(sizes, [0, 9, 232, 2005, 4096]);
    assert_eq!(listener.with(|state| (state.numbers.connections, state.refused.len())), (1, 0));
}

#[tokio::test]
async fn ten_thousand_transactions_arrive_once_each() {
    let listener = Listener::new(|_| {});
    let (_endpoint, connection) = listener.client().await;
    for number in 0..10_000_u32 {
        send(&connection, &number.to_le_bytes()).await;
    }
    listener.until(|state| state.submitted.len() >= 10_000).await;
    let mut all = listener
        .with(|state| state.submitted.iter().map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>());
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 10_000);
}

#[tokio::test]
async fn client_without_a_valid_key_is_closed_with_the_code() {
    let listener = Listener::new(|_| {});
    for config in [client_of(ALPN_TPU, None), solana_client(&[9; 32])] {
        let (_endpoint, connection) = listener.connect(config).await.unwrap();
        assert_eq!(close_code(&connection).await, code(QuicRefusal::Unauthorized));
    }
    listener.until(|state| state.numbers.handshakes == 0).await;
    let refused = listener.with(|state| state.refused.clone());
    // The listener names the key of the second one, which the handler may know.
    let unauthorized = QuicRefusal::Unauthorized;
    assert_eq!(refused, [(false, unauthorized, 0), (true, unauthorized, 0)]);
    assert_eq!(listener.with(|state| state.numbers.connected), 0);
}

#[tokio::test]
async fn other_protocols_are_no_solana_tpu() {
    let listener = Listener::new(|_| {});
    let result = listener.connect(client_of(b"h3", None)).await;
    assert!(matches!(result, Err(ConnectionError::ConnectionClosed(_))), "{result:?}");
}

#[tokio::test]
async fn stream_above_the_size_is_stopped_and_the_others_are_not() {
    let listener = Listener::new(|_| {});
    let (_endpoint, connection) = listener.client().await;
    let mut large = connection.open_uni().await.unwrap();
    large.write_all(&[1; 4097]).await.unwrap();
    let stopped = tokio::time::timeout(GUARD, large.stopped()).await.unwrap().unwrap();
    assert_eq!(stopped.map(|code| code.into_inner()), Some(code(QuicRefusal::TooLarge)));
    send(&connection, &[2; 4]).await;
    listener.until(|state| state.submitted.len() == 1).await;
    assert_eq!(listener.with(|state| state.refused.clone()), [(true, QuicRefusal::TooLarge, 4096)]);
}

#[tokio::test]
async fn unfinished_stream_is_stopped_after_its_time() {
    let listener = Listener::new(|options| options.stream_timeout_ns = NS_PER_S / 10);
    let (_endpoint, connection) = listener.client().await;
    let mut half = connection.open_uni().await.unwrap();
    half.write_all(&[1; 10]).await.unwrap();
    let stopped = tokio::time::timeout(GUARD, half.stopped()).await.unwrap().unwrap();
    assert_eq!(stopped.map(|code| code.into_inner()), Some(code(QuicRefusal::Slow)));
    assert_eq!(listener.with(|state| state.refused.clone()), [(true, QuicRefusal::Slow, 10)]);
    send(&connection, &[2; 4]).await;
    listener.until(|state| state.submitted.len() == 1).await;
}

#[tokio::test]
async fn stream_that_its_client_resets_is_counted() {
    let listener = Listener::new(|_| {});
    let (_endpoint, connection) = listener.client().await;
    let mut half = connection.open_uni().await.unwrap();
    half.write_all(&[1; 10]).await.unwrap();
    send(&connection, &[2; 4]).await;
    listener.until(|state| state.submitted.len() == 1).await;
    half.reset(7_u32.into()).unwrap();
    listener.until(|state| state.numbers.streams_aborted == 1).await;
    connection.close(0_u32.into(), b"");
    listener.until(|state| state.numbers.connections == 0).await;
}

#[tokio::test]
async fn revoked_key_closes_its_connections() {
    let listener = Listener::new(|_| {});
    let (_one, first) = listener.client().await;
    let (_two, second) = listener.client().await;
    send(&first, &[1; 4]).await;
    listener.until(|state| state.submitted.len() == 1).await;
    listener.with(|state| state.accounts.clear());
    for connection in [&first, &second] {
        assert_eq!(close_code(connection).await, code(QuicRefusal::Unauthorized));
    }
    listener.until(|state| state.numbers.connections == 0).await;
}

#[tokio::test]
async fn key_that_becomes_another_accounts_closes_its_connections() {
    let listener = Listener::new(|_| {});
    let (_endpoint, connection) = listener.client().await;
    send(&connection, &[1; 4]).await;
    listener.until(|state| state.submitted.len() == 1).await;
    listener.with(|state| state.accounts.values_mut().for_each(|account| *account += 1));
    assert_eq!(close_code(&connection).await, code(QuicRefusal::Unauthorized));
}

#[tokio::test]
async fn streams_are_granted_as_the_limits_admit() {
    let listener = Listener::new(|_| {});
    listener.with(|state| state.credit = 3);
    let (_endpoint, connection) = listener.client().await;
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(connection.open_uni().await.unwrap());
    }
    let more = tokio::time::timeout(Duration::from_millis(100), connection.open_uni()).await;
    assert!(more.is_err(), "a stream above the credit");
    listener.with(|state| state.credit = 1_000_000);
    for _ in 3..64 {
        let stream = tokio::time::timeout(GUARD, connection.open_uni()).await.unwrap().unwrap();
        open.push(stream);
    }
    let more = tokio::time::timeout(Duration::from_millis(100), connection.open_uni()).await;
    assert!(more.is_err(), "more than 64 streams ahead");
}

/// Each stream takes one from the credit, as a charge does.
#[tokio::test]
async fn ended_streams_are_not_granted_again() {
    let listener = Listener::new(|_| {});
    listener.with(|state| (state.credit, state.costs_credit) = (20, true));
    let (_endpoint, connection) = listener.client().await;
    for number in 0..20 {
        tokio::time::timeout(GUARD, send(&connection, &[number; 4])).await.unwrap();
    }
    listener.until(|state| state.submitted.len() == 20).await;
    let more = tokio::time::timeout(Duration::from_millis(100), connection.open_uni()).await;
    assert!(more.is_err(), "a stream above the limit");
    listener.with(|state| state.credit = 2);
    for number in 0..2 {
        tokio::time::timeout(GUARD, send(&connection, &[number; 4])).await.unwrap();
    }
}

#[tokio::test]
async fn connections_of_an_account_and_of_an_address_are_limited() {
    let listener = Listener::new(|options| options.connections_per_account = 1);
    let (_one, _first) = listener.client().await;
    listener.until(|state| state.numbers.connections == 1).await;
    let (_two, second) = listener.client().await;
    assert_eq!(close_code(&second).await, code(QuicRefusal::AccountConnections));
    let known = listener.with(|state| state.refused.clone());
    assert_eq!(known, [(true, QuicRefusal::AccountConnections, 0)]);

    let listener = Listener::new(|options| options.connections_per_address = 1);
    let (_one, first) = listener.client().await;
    let refused = listener.connect(solana_client(&SEED)).await;
    assert!(matches!(refused, Err(ConnectionError::ConnectionClosed(_))), "{refused:?}");
    // A client may send its first packet again.
    listener.until(|state| state.numbers.handshakes_refused >= 1).await;
    // Its place is free once it is closed.
    first.close(0_u32.into(), b"");
    listener.until(|state| state.numbers.connections == 0).await;
    listener.client().await;
}

#[tokio::test]
async fn client_whose_address_changes_keeps_its_connection() {
    let listener = Listener::new(|_| {});
    let (endpoint, connection) = listener.client().await;
    send(&connection, &[1; 4]).await;
    listener.until(|state| state.submitted.len() == 1).await;
    let other = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    endpoint.rebind(other).unwrap();
    send(&connection, &[2; 4]).await;
    listener.until(|state| state.submitted.len() == 2).await;
    assert_eq!(listener.with(|state| state.numbers.connected), 1);
}

#[tokio::test]
async fn drain_finishes_streams_and_closes_every_connection_with_a_code() {
    let listener = Listener::new(|_| {});
    let (_one, idle) = listener.client().await;
    let (_two, busy) = listener.client().await;
    let mut half = busy.open_uni().await.unwrap();
    half.write_all(&[1; 10]).await.unwrap();
    send(&busy, &[2; 4]).await;
    listener.until(|state| state.submitted.len() == 1).await;
    listener.with(|state| state.drain = true);
    assert_eq!(close_code(&idle).await, code(QuicRefusal::Draining));
    half.write_all(&[1; 10]).await.unwrap();
    half.finish().unwrap();
    listener.until(|state| state.submitted.len() == 2).await;
    assert_eq!(close_code(&busy).await, code(QuicRefusal::Draining));
    let refused = listener.connect(solana_client(&SEED)).await;
    assert!(matches!(refused, Err(ConnectionError::ConnectionClosed(_))), "{refused:?}");
    listener.until(|state| state.numbers.connections == 0).await;
    // No transaction was refused.
    assert_eq!(listener.with(|state| state.refused.clone()), []);
}

#[tokio::test]
async fn drain_does_not_wait_for_a_client_that_never_finishes() {
    let listener = Listener::new(|_| {});
    let (_endpoint, connection) = listener.client().await;
    let mut half = connection.open_uni().await.unwrap();
    half.write_all(&[1; 10]).await.unwrap();
    send(&connection, &[2; 4]).await;
    listener.until(|state| state.submitted.len() == 1).await;
    listener.with(|state| state.drain = true);
    assert_eq!(close_code(&connection).await, code(QuicRefusal::Draining));
    assert_eq!(listener.with(|state| state.refused.clone()), [(true, QuicRefusal::Draining, 10)]);
}

#[tokio::test]
async fn panic_ends_one_connection_and_no_other() {
    let listener = Listener::new(|options| options.connections_per_account = 2);
    let (_one, first) = listener.client().await;
    let (_two, second) = listener.client().await;
    listener.until(|state| state.numbers.connections == 2).await;
    send(&first, PANIC).await;
    listener.until(|state| state.numbers.panics == 1).await;
    assert_eq!(listener.with(|state| state.numbers.connections), 1);
    // It may know already, from its acknowledgements.
    if let Ok(mut stream) = first.open_uni().await {
        let _ = stream.write_all(&[1; 40]).await;
    }
    assert_eq!(tokio::time::timeout(GUARD, first.closed()).await.unwrap(), ConnectionError::Reset);
    send(&second, &[1; 4]).await;
    listener.until(|state| state.submitted.len() == 1).await;
    // Its place is free again.
    let (_three, third) = listener.client().await;
    send(&third, &[2; 4]).await;
    listener.until(|state| state.submitted.len() == 2).await;
}

#[tokio::test]
async fn drained_listener_is_finished_once_its_connections_are_gone() {
    let listen = free_address();
    let mut server = listening(&Options { listen, ..options() });
    assert!(!server.is_finished());
    server.drain();
    assert!(server.is_finished());
}

#[tokio::test]
async fn port_in_use_is_an_error_except_for_a_successor() {
    let listener = Listener::new(|_| {});
    let fixed = Listener::new(|options| options.listen = free_address());
    let listen = |listen, is_successor| {
        let predecessor_places = (0..usize::from(is_successor)).collect();
        QuicServer::listen(&Options { listen, predecessor_places, ..options() }, 1)
    };
    assert!(listen(listener.address, false).is_err());
    assert!(listen(fixed.address, false).is_err());
    assert!(listen(fixed.address, true).is_ok());
}

/// An address that was free a moment ago.
fn free_address() -> SocketAddr {
    std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn end_of_the_thread_is_no_silence() {
    let listener = Listener::new(|_| {});
    let (_endpoint, connection) = listener.client().await;
    let _half = connection.open_uni().await.unwrap();
    listener.with(|state| (state.close_all, state.exit) = (true, true));
    assert_eq!(close_code(&connection).await, code(QuicRefusal::Draining));
}

#[tokio::test]
async fn handshakes_above_a_number_must_prove_their_address() {
    let listener = Listener::new(|_| {});
    // First packets of clients that say nothing more.
    send_first_packets(40, listener.address);
    listener.until(|state| state.numbers.retries >= 8).await;
    assert_eq!(listener.with(|state| state.numbers.handshakes), 32);
    // Those that are late are closed, and no account sees them.
    listener.until(|state| state.numbers.handshakes == 0).await;
    assert_eq!(listener.with(|state| state.refused.clone()), []);
    assert_eq!(listener.with(|state| state.numbers.handshakes_refused), 32);
    let (_endpoint, connection) = listener.client().await;
    send(&connection, &[1; 4]).await;
    listener.until(|state| state.submitted.len() == 1).await;
}

/// First packets of clients that say nothing more, as if from forged addresses.
fn send_first_packets(count: usize, to: SocketAddr) {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for _ in 0..count {
        let config = Arc::new(quinn_proto::EndpointConfig::default());
        let mut endpoint = quinn_proto::Endpoint::new(config, None, false, None);
        let now = Instant::now();
        let client = solana_client(&SEED);
        let (_, mut silent) = endpoint.connect(now, client, to, "x").unwrap();
        let mut out = Vec::new();
        while let Some(transmit) = silent.poll_transmit(now, 1, &mut out) {
            socket.send_to(&out[..transmit.size], to).unwrap();
            out.clear();
        }
    }
}

#[tokio::test]
async fn forged_first_packets_do_not_keep_the_clients_of_their_address_out() {
    for (per_address, unproved) in [(100, 32), (8, 8)] {
        let listener = Listener::new(|options| options.connections_per_address = per_address);
        send_first_packets(40, listener.address);
        listener.until(|state| state.numbers.retries >= 40 - unproved).await;
        let (_endpoint, connection) = listener.client().await;
        send(&connection, &[1; 4]).await;
        listener.until(|state| state.submitted.len() == 1).await;
        assert_eq!(listener.with(|state| state.numbers.handshakes), unproved);
    }
}

/// A listener without a thread, and its handler.
fn unserved() -> (QuicServer, Handler) {
    (listening(&options()), Handler::default())
}

/// A listener of one thread.
fn listening(options: &Options) -> QuicServer {
    QuicServer::listen(options, 1).unwrap().pop().unwrap()
}

#[test]
fn handshakes_share_a_turn_with_other_clients() {
    let (mut server, mut handler) = unserved();
    send_first_packets(10, server.local_addr().unwrap());
    server.on_readable();
    for handshakes in [4, 8, 10] {
        assert_eq!(server.due_in(), Some(Duration::ZERO));
        server.turn(&mut handler);
        if handshakes == 8 && server.clients.numbers.handshakes == 4 {
            // All of the first received buffers were handled.
            server.turn(&mut handler);
        }
        assert_eq!(server.clients.numbers.handshakes, handshakes);
    }
}

#[test]
fn clients_whose_handshake_has_not_begun_are_refused_when_the_listener_drains() {
    let (mut server, mut handler) = unserved();
    send_first_packets(3, server.local_addr().unwrap());
    server.on_readable();
    server.turn(&mut handler);
    assert_eq!((server.clients.numbers.handshakes, server.arrivals.len()), (3, 2));
    server.close_all();
    server.turn(&mut handler);
    assert!(server.arrivals.is_empty());
    let numbers = &server.clients.numbers;
    assert_eq!((numbers.handshakes, numbers.handshakes_refused), (0, 2));
}

#[test]
fn closed_connection_is_forgotten_in_time_and_at_once_above_a_number() {
    let (mut server, mut handler) = unserved();
    // Its time is over now.
    let expire = |server: &mut QuicServer, handler: &mut Handler| {
        server.connections.iter_mut().flatten().for_each(|each| each.until_ns = 0);
        server.scan_at_ns = 0;
        server.turn(handler);
        (
            server.clients.numbers.handshakes,
            server.clients.closed,
            server.endpoint.open_connections(),
        )
    };
    send_first_packets(1, server.local_addr().unwrap());
    server.on_readable();
    server.turn(&mut handler);
    assert_eq!(expire(&mut server, &mut handler), (0, 1, 1));
    assert_eq!(expire(&mut server, &mut handler), (0, 0, 0));
    assert!(server.connections.iter().all(Option::is_none) && server.schedule.timers.is_empty());

    send_first_packets(1, server.local_addr().unwrap());
    server.on_readable();
    server.turn(&mut handler);
    assert_eq!(server.clients.numbers.handshakes, 1);
    server.clients.closed = CLOSED_MAX;
    assert_eq!(expire(&mut server, &mut handler), (0, CLOSED_MAX, 0));
}

#[test]
fn many_connections_share_turns_with_other_clients() {
    let (mut server, mut handler) = unserved();
    // More than one turn drives; these connections have ended already.
    server.schedule.listed.extend(0..2 * DRIVEN_PER_TURN);
    server.schedule.unknown.extend(0..2 * UNKNOWN_DRIVEN_PER_TURN);
    server.turn(&mut handler);
    let listed = |server: &QuicServer| {
        [&server.schedule.listed, &server.schedule.unknown].map(|it| it.len())
    };
    assert_eq!(
        (listed(&server), server.due_in()),
        ([DRIVEN_PER_TURN, UNKNOWN_DRIVEN_PER_TURN], Some(Duration::ZERO))
    );
    server.close_all();
    server.turn(&mut handler);
    assert_eq!(listed(&server), [0, 0]);

    // One that is late, behind as many places as one turn checks.
    let (mut server, mut handler) = unserved();
    send_first_packets(1, server.local_addr().unwrap());
    server.on_readable();
    server.turn(&mut handler);
    let mut late = server.connections.pop().unwrap().unwrap();
    late.until_ns = 0;
    server.connections.resize_with(SCANNED_PER_TURN, || None);
    server.connections.push(Some(late));
    server.scan_at_ns = 0;
    server.turn(&mut handler);
    assert_eq!(
        (server.clients.numbers.handshakes_refused, server.scan_from),
        (0, SCANNED_PER_TURN)
    );
    assert_eq!(server.due_in(), Some(Duration::ZERO));
    // `drive` would tell the endpoint of a handle that it does not have.
    server.scan(Instant::now(), server.clock.now_ns(), &mut handler);
    assert_eq!((server.clients.numbers.handshakes_refused, server.scan_from), (1, 0));
}
