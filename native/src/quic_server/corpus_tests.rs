//! Packets that quiche's fuzzers found (`tests/corpora`), against the listener: as they are, damaged,
//! and their frames in packets that the listener opens, before and after the handshake. They cost
//! whoever sends them their connection, and no one else anything.

use std::net::{Ipv4Addr, UdpSocket};

use super::handwritten_client::{HandwrittenClient, INITIAL_BYTES_MIN};
use super::packets::{frame, outline};
use super::rng::rng;
use super::*;
use crate::quic_server::tls::ALPN_TOUCHDOWN;

const CORPUS: &[u8] = include_bytes!("../../tests/corpora/quiche-packets.bin");
/// Packets after which an innocent client submits a transaction.
const PACKETS_PER_TRANSACTION: usize = 50;
/// Packets after which handshakes in progress end, so that the listener asks no client for a proof
/// of its address.
const PACKETS_PER_SECOND: usize = 25;
/// A listener answers at most this many times the bytes of a client that did not prove its address
/// (RFC 9000 section 8).
const AMPLIFICATION_MAX: usize = 3;
/// The frame by which an application closes a connection (RFC 9000 section 19.19).
const CONNECTION_CLOSE_APPLICATION: u64 = 0x1d;

fn corpus() -> Vec<&'static [u8]> {
    let mut rest = CORPUS;
    let mut packets = Vec::new();
    while let Some((size, after)) = rest.split_first_chunk::<2>() {
        let (packet, after) = after.split_at(usize::from(u16::from_be_bytes(*size)));
        packets.push(packet);
        rest = after;
    }
    assert!(packets.len() > 500);
    packets
}

/// The frames of each packet, as far as they can be found.
fn frames_of_corpus() -> impl Iterator<Item = &'static [u8]> {
    corpus().into_iter().filter_map(|packet| packet.get(outline(packet)?.number_at + 1..))
}

#[tokio::test]
async fn packets_of_others_and_their_mutations_harm_no_client() {
    let listener = Listener::new(|_| {});
    let (_endpoint, connection) = listener.client().await;
    let sockets: Vec<UdpSocket> =
        (1..=8).map(|host| UdpSocket::bind((Ipv4Addr::new(127, 3, 0, host), 0)).unwrap()).collect();
    let mut below = rng();
    let mut submitted = 0;
    for (index, packet) in corpus().into_iter().enumerate() {
        let mut turned = packet.to_vec();
        turned[below(packet.len())] ^= 1 << below(8);
        let cut = packet[..below(packet.len())].to_vec();
        let mut padded = packet.to_vec();
        padded.resize(packet.len().max(INITIAL_BYTES_MIN), 0);
        for datagram in [packet.to_vec(), turned, cut, padded] {
            sockets[index % sockets.len()].send_to(&datagram, listener.address).unwrap();
        }
        if index % PACKETS_PER_TRANSACTION == 0 {
            send(&connection, &[7; 40]).await;
            submitted += 1;
            listener.until(|state| state.submitted.len() == submitted).await;
        }
    }
    let numbers = listener.with(|state| state.numbers);
    assert_eq!((numbers.connections, numbers.panics), (1, 0));
}

/// Handles what has arrived.
fn take_turns(server: &mut QuicServer, handler: &mut Handler) {
    server.on_readable();
    while server.due_in() == Some(Duration::ZERO) {
        server.turn(handler);
    }
}

/// Ends what has begun and not finished, and forgets it.
fn expire(server: &mut QuicServer, handler: &mut Handler) {
    for _ in 0..2 {
        server.connections.iter_mut().flatten().for_each(|each| each.until_ns = 0);
        server.scan_at_ns = 0;
        take_turns(server, handler);
    }
}

#[test]
fn frames_of_others_in_first_packets_leave_nothing_behind() {
    let (mut server, mut handler) = unserved();
    let to = server.local_addr().unwrap();
    let tls = Arc::new(tls_of(ALPN_TOUCHDOWN, Some(&SEED)));
    for (index, frames) in frames_of_corpus().enumerate() {
        let from = SocketAddr::from((Ipv4Addr::new(127, 3, 1, (index % 100) as u8 + 1), 0));
        let mut client = HandwrittenClient::new(from, to, tls.clone(), index as u64);
        client.send_initial(frames);
        client.send_initial(frames);
        take_turns(&mut server, &mut handler);
        let sent = 2 * frames.len().max(INITIAL_BYTES_MIN);
        assert!(client.receive() <= AMPLIFICATION_MAX * sent, "packet {index}");
        if index % PACKETS_PER_SECOND == 0 {
            expire(&mut server, &mut handler);
        }
    }
    expire(&mut server, &mut handler);
    let numbers = &server.clients.numbers;
    assert_eq!((numbers.handshakes, numbers.connections, numbers.panics), (0, 0, 0));
    assert_eq!((numbers.retries, server.endpoint.open_connections()), (0, 0));
    assert!(server.connections.iter().all(Option::is_none));
}

#[test]
fn frames_of_others_on_a_connection_cost_it_alone() {
    let (mut server, mut handler) = unserved();
    let to = server.local_addr().unwrap();
    handler.0.lock().unwrap().accounts.insert(public_key(&SEED).unwrap(), ACCOUNT);
    let tls = Arc::new(tls_of(ALPN_TOUCHDOWN, Some(&SEED)));
    let mut connected = 0;
    for (index, frames) in frames_of_corpus().enumerate() {
        let from = SocketAddr::from((Ipv4Addr::new(127, 3, 2, (index % 100) as u8 + 1), 0));
        let mut client = HandwrittenClient::new(from, to, tls.clone(), index as u64);
        client.connect(|| take_turns(&mut server, &mut handler));
        take_turns(&mut server, &mut handler);
        connected += 1;
        assert_eq!(server.clients.numbers.connected, connected);
        client.send(frames);
        client.send(&frame(CONNECTION_CLOSE_APPLICATION, &[0, 0], &[]));
        take_turns(&mut server, &mut handler);
        assert_eq!(server.clients.numbers.connections, 0, "packet {index}");
        expire(&mut server, &mut handler);
    }
    assert!(connected > 400, "{connected}");
    assert_eq!((server.clients.numbers.panics, server.endpoint.open_connections()), (0, 0));
}
