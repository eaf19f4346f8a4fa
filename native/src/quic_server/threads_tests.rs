//! A listener of several threads on one port. A client chooses its thread by the first byte of its
//! first connection id.

use std::sync::atomic::{AtomicU32, Ordering};

use nix::libc::{BPF_K, BPF_RET, sock_filter};
use quinn::{Connection, Endpoint};
use quinn_proto::ConnectionId;

use super::touchdown::{
    frame_of, greeted, hello, opened, receipt, submit, transaction, verdict_of,
};
use super::*;
use crate::quic_server::limits::FOLLOWERS_PER_ACCOUNT;
use crate::quic_server::tls::ALPN_TOUCHDOWN;
use crate::sync::clock::NEVER_NS;

/// Settings of a client whose first connection id begins with this byte.
fn beginning_with(byte: u8, mut config: quinn::ClientConfig) -> quinn::ClientConfig {
    let number = AtomicU32::new(0);
    config.initial_dst_cid_provider(Arc::new(move || {
        let [one, two, three, four] = number.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let mut random = [0; 3];
        ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut random).unwrap();
        let [a, b, c] = random;
        ConnectionId::new(&[byte, one, two, three, four, a, b, c])
    }));
    config
}

impl Listener {
    async fn client_on(&self, byte: u8) -> (Endpoint, Connection) {
        self.connect(beginning_with(byte, solana_client(&SEED))).await.unwrap()
    }

    async fn touchdown_on(&self, byte: u8) -> (Endpoint, Connection) {
        let config = client_of(ALPN_TOUCHDOWN, Some(&SEED));
        self.connect(beginning_with(byte, config)).await.unwrap()
    }
}

/// Connections of each thread.
fn connections_of(state: &State) -> Vec<u64> {
    state.numbers_of.iter().map(|numbers| numbers.connections).collect()
}

#[tokio::test]
async fn clients_are_spread_over_the_threads() {
    let listener = Listener::on(3, |_| {});
    let mut clients = Vec::new();
    for byte in [0, 1, 2, 3, 0x84] {
        clients.push(listener.client_on(byte).await);
    }
    listener.until(|state| connections_of(state) == [2, 2, 1]).await;
    for (number, (_, connection)) in clients.iter().enumerate() {
        for _ in 0..20 {
            send(connection, &[number as u8; 4]).await;
        }
    }
    listener.until(|state| state.submitted.len() == 100).await;
    listener.with(|state| {
        for ((_, bytes), thread) in state.submitted.iter().zip(&state.threads) {
            assert_eq!(*thread, [0, 1, 2, 0, 1][usize::from(bytes[0])]);
        }
        assert_eq!(state.numbers.datagrams_forwarded, 0);
    });
}

#[tokio::test]
async fn client_whose_address_changes_stays_with_its_thread() {
    let listener = Listener::on(2, |_| {});
    for thread in [0, 1] {
        let (endpoint, connection) = listener.client_on(thread).await;
        listener.with(|state| (state.submitted.clear(), state.threads.clear()));
        for number in 1..=8 {
            // With the addresses alone the kernel would choose either thread.
            let other = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            endpoint.rebind(other).unwrap();
            send(&connection, &[number; 4]).await;
            listener.until(|state| state.submitted.len() == usize::from(number)).await;
        }
        assert_eq!(listener.with(|state| state.threads.clone()), [usize::from(thread); 8]);
        connection.close(0_u32.into(), b"");
    }
    let numbers = listener.with(|state| state.numbers);
    assert_eq!((numbers.connected, numbers.datagrams_forwarded), (2, 0));
}

/// With the address alone all of them would be on one thread.
#[tokio::test]
async fn connections_of_one_address_have_their_own_threads() {
    let listener = Listener::on(2, |_| {});
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let mut clients = Vec::new();
    for byte in [0, 1, 2, 3] {
        let config = beginning_with(byte, client_of(ALPN_TOUCHDOWN, Some(&SEED)));
        let connecting = endpoint.connect_with(config, listener.address, "localhost").unwrap();
        clients.push(connecting.await.unwrap());
    }
    for _ in 0..50 {
        for connection in &clients {
            assert_eq!(submit(connection, &transaction(1)).await.state, 1);
        }
    }
    listener.until(|state| connections_of(state) == [2, 2]).await;
    assert_eq!(listener.with(|state| state.threads.clone()), [0, 1, 0, 1].repeat(50));
}

/// Has the kernel give every datagram to the thread 0.
fn misdirect(servers: &[QuicServer]) {
    let to_first = sock_filter { code: (BPF_RET | BPF_K) as u16, jt: 0, jf: 0, k: 0 };
    servers[0].threads.sockets().attach(&mut [to_first]).unwrap();
}

#[tokio::test]
async fn datagram_at_the_wrong_thread_is_passed_on() {
    let servers = QuicServer::listen(&options(), 2).unwrap();
    misdirect(&servers);
    let listener = Listener::of(servers);
    let (endpoint, connection) = listener.touchdown_on(1).await;
    for byte in 1..=20 {
        assert_eq!(submit(&connection, &transaction(byte)).await.state, 1);
    }
    let other = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    endpoint.rebind(other).unwrap();
    assert_eq!(submit(&connection, &transaction(21)).await.state, 1);
    listener.with(|state| {
        assert_eq!(state.threads, [1; 21]);
        assert!(state.numbers_of[0].datagrams_forwarded > 20);
        assert_eq!(connections_of(state), [0, 1]);
    });
}

/// Datagrams of one address that the kernel has joined reach the thread of the first one.
#[test]
fn joined_datagrams_are_divided_among_their_threads() {
    let mut servers = QuicServer::listen(&options(), 2).unwrap();
    let client = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let state = quinn_udp::UdpSocketState::new((&client).into()).unwrap();
    let datagram = |id: u8| [&[0x40, id][..], &[0; 98]].concat();
    let contents = [datagram(0), datagram(1), datagram(2), datagram(3)].concat();
    let joined = quinn_udp::Transmit {
        destination: servers[0].local_addr().unwrap(),
        ecn: None,
        contents: &contents,
        segment_size: Some(100),
        src_ip: None,
    };
    state.send((&client).into(), &joined).unwrap();
    let mut handler = Handler::default();
    let end = Instant::now() + GUARD;
    while servers[1].threads.forwarded(1) < 2 {
        assert!(Instant::now() < end);
        servers[0].on_readable();
        servers[0].turn(&mut handler);
    }
    assert_eq!(servers[0].clients.numbers.datagrams_forwarded, 2);
    servers[1].turn(&mut handler);
    assert_eq!(servers[1].threads.forwarded(1), 0);
}

#[tokio::test]
async fn forwarded_handshakes_share_a_turn_with_other_clients() {
    let mut servers = QuicServer::listen(&options(), 2).unwrap();
    misdirect(&servers);
    let mut handler = Handler::default();
    let address = servers[0].local_addr().unwrap();
    let clients = (0..6).map(|_| {
        let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        endpoint.set_default_client_config(beginning_with(1, solana_client(&SEED)));
        let connecting = endpoint.connect(address, "localhost").unwrap();
        (endpoint, connecting)
    });
    let _clients: Vec<_> = clients.collect();
    let end = Instant::now() + GUARD;
    while servers[1].threads.forwarded(1) < 6 {
        assert!(Instant::now() < end);
        servers[0].on_readable();
        servers[0].turn(&mut handler);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(servers[1].due_in(), Some(Duration::ZERO));
    servers[1].turn(&mut handler);
    assert_eq!(servers[1].clients.numbers.handshakes, 4);
}

#[tokio::test]
async fn receipt_reaches_the_clients_of_every_thread() {
    let listener = Listener::on(2, |_| {});
    let (_one, follower) = listener.touchdown_on(0).await;
    let (_out, mut incoming) = greeted(&follower, &hello(1, b"")).await;
    let (_two, waiting) = listener.touchdown_on(0).await;
    let (_three, sender) = listener.touchdown_on(1).await;
    let bytes = transaction(7);
    assert_eq!(submit(&sender, &bytes).await.state, 1);
    let flagged = [&[0x42][..], &bytes].concat();
    let streams = [opened(&waiting, &flagged).await, opened(&sender, &flagged).await];
    listener.until(|state| state.numbers.followers == 3).await;
    listener.with(|state| state.receipts = receipt(ACCOUNT, 6, &bytes));
    assert_eq!(frame_of(&mut incoming).await.0, 0x84);
    for stream in streams {
        assert_eq!(verdict_of(stream).await.state, 6);
    }
}

#[tokio::test]
async fn revocation_closes_the_connections_of_every_thread() {
    let listener = Listener::on(2, |_| {});
    let clients = [0, 1, 2, 3].map(|byte| listener.client_on(byte));
    let mut open = Vec::new();
    for client in clients {
        open.push(client.await);
    }
    listener.until(|state| connections_of(state) == [2, 2]).await;
    listener.with(|state| state.accounts.clear());
    for (_, connection) in &open {
        assert_eq!(close_code(connection).await, code(QuicRefusal::Unauthorized));
    }
    listener.until(|state| state.numbers.connections == 0).await;
}

#[tokio::test]
async fn bounds_hold_for_the_clients_of_all_threads() {
    let listener = Listener::on(2, |options| options.connections_per_account = 2);
    let (_one, first) = listener.client_on(0).await;
    let (_two, _second) = listener.client_on(1).await;
    listener.until(|state| connections_of(state) == [1, 1]).await;
    for byte in [0, 1] {
        let (_endpoint, further) = listener.client_on(byte).await;
        assert_eq!(close_code(&further).await, code(QuicRefusal::AccountConnections));
    }
    // The place of one is another's, on any thread.
    first.close(0_u32.into(), b"");
    listener.until(|state| connections_of(state) == [0, 1]).await;
    let (_three, third) = listener.client_on(1).await;
    send(&third, &[1; 4]).await;
    listener.until(|state| state.submitted.len() == 1).await;

    for change in [
        |options: &mut Options| options.connections_per_address = 1,
        |options: &mut Options| options.connections_max = 1,
    ] {
        let listener = Listener::on(2, change);
        let (_one, _first) = listener.client_on(0).await;
        listener.until(|state| state.numbers.connections == 1).await;
        let config = beginning_with(1, solana_client(&SEED));
        let refused = listener.connect(config).await;
        assert!(matches!(refused, Err(ConnectionError::ConnectionClosed(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn receipts_go_to_a_bounded_number_of_connections_over_all_threads() {
    let listener = Listener::on(2, |_| {});
    let mut open = Vec::new();
    for number in 0..FOLLOWERS_PER_ACCOUNT {
        let (endpoint, connection) = listener.touchdown_on(number as u8).await;
        open.push((greeted(&connection, &hello(1, b"")).await, connection, endpoint));
    }
    for byte in [0, 1] {
        let (_one, further) = listener.touchdown_on(byte).await;
        let (mut out, _incoming) = further.open_bi().await.unwrap();
        out.write_all(&hello(1, b"")).await.unwrap();
        assert_eq!(close_code(&further).await, code(QuicRefusal::Followers));
    }
}

#[tokio::test]
async fn panic_leaves_nothing_counted_on_any_thread() {
    let listener = Listener::on(2, |options| options.connections_per_account = 2);
    let (_one, first) = listener.client_on(0).await;
    let (_two, _second) = listener.client_on(1).await;
    listener.until(|state| connections_of(state) == [1, 1]).await;
    send(&first, PANIC).await;
    listener.until(|state| state.numbers.panics == 1).await;
    let (_three, third) = listener.client_on(1).await;
    send(&third, &[1; 4]).await;
    listener.until(|state| state.submitted.len() == 1).await;
    let (_four, further) = listener.client_on(0).await;
    assert_eq!(close_code(&further).await, code(QuicRefusal::AccountConnections));
}

#[tokio::test]
async fn drain_closes_the_connections_of_every_thread() {
    let listener = Listener::on(2, |_| {});
    let (_one, first) = listener.client_on(0).await;
    let (_two, second) = listener.client_on(1).await;
    listener.until(|state| connections_of(state) == [1, 1]).await;
    listener.with(|state| state.drain = true);
    for connection in [&first, &second] {
        assert_eq!(close_code(connection).await, code(QuicRefusal::Draining));
    }
    for byte in [0, 1] {
        let refused = listener.connect(beginning_with(byte, solana_client(&SEED))).await;
        assert!(matches!(refused, Err(ConnectionError::ConnectionClosed(_))), "{refused:?}");
    }
}

/// Of a process that replaces the first one.
fn second() -> Options {
    Options { process_number: 1, ..options() }
}

#[test]
fn datagrams_reach_their_threads_again_when_a_successor_has_ended() {
    let listen = free_address();
    let mut servers = QuicServer::listen(&Options { listen, ..options() }, 2).unwrap();
    let successor = Options { listen, predecessor_places: [0, 1].into(), ..second() };
    drop(QuicServer::listen(&successor, 1).unwrap());
    servers[0].take_back();
    arrive_at_their_threads(&mut servers, listen, 0);
}

/// Each of these ids is one of the generation that the servers issue.
fn arrive_at_their_threads(servers: &mut [QuicServer], listen: SocketAddr, generation: u8) {
    let client = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for byte in generation..generation + 4 {
        for flags in [0x40, 0xc0] {
            client.send_to(&[flags, byte, 0, 0, 0, 0, byte, 0], listen).unwrap();
            let socket = &mut servers[usize::from(byte % 2)].socket.socket;
            let end = Instant::now() + GUARD;
            while socket.next().is_none() {
                assert!(Instant::now() < end, "{flags} {byte}");
                socket.on_readable();
                socket.receive();
            }
        }
    }
}

#[tokio::test]
async fn successor_gets_new_clients_and_the_process_before_keeps_its_own() {
    for (before, after) in [(2, 2), (1, 2), (2, 1)] {
        let listen = free_address();
        let old = Listener::on(before, |options| options.listen = listen);
        let mut clients = Vec::new();
        for byte in 0..4 {
            clients.push(old.touchdown_on(byte).await);
        }
        old.until(|state| state.numbers.connections == 4).await;
        let successor = Options { listen, predecessor_places: (0..before).collect(), ..second() };
        let servers = QuicServer::listen(&successor, after).unwrap();
        let threads = servers[0].threads.clone();
        let new = Listener::of(servers);
        // Old clients are served by the old process, also from another address.
        for (endpoint, connection) in &clients {
            assert_eq!(submit(connection, &transaction(1)).await.state, 1);
            let other = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            endpoint.rebind(other).unwrap();
            assert_eq!(submit(connection, &transaction(2)).await.state, 1);
        }
        assert_eq!(old.with(|state| state.submitted.len()), 8);
        old.with(|state| state.drain = true);
        // New ones reach the new process, whatever their first connection ids are.
        let mut others = Vec::new();
        for byte in [0, 1, 2, 3, 0x80, 0x81, 0x82, 0x83] {
            let (endpoint, connection) = new.touchdown_on(byte).await;
            assert_eq!(submit(&connection, &transaction(byte)).await.state, 1);
            others.push((endpoint, connection));
        }
        for (_, connection) in &clients {
            assert_eq!(close_code(connection).await, code(QuicRefusal::Draining));
        }
        let numbers = old.with(|state| state.numbers);
        assert_eq!((numbers.connected, numbers.handshakes_refused), (4, 0));
        drop(old);
        // The kernel has moved the sockets of the new process.
        for round in 0..3 {
            if round == 1 {
                threads.are_alone();
            }
            let passed_on = new.with(|state| state.numbers.datagrams_forwarded);
            for (_, connection) in &others {
                assert_eq!(submit(connection, &transaction(3)).await.state, 1);
            }
            let forwarded = new.with(|state| state.numbers.datagrams_forwarded) - passed_on;
            // What came before may still be passed on in the round after.
            assert!(round < 2 || forwarded == 0, "{forwarded}");
        }
        assert_eq!(new.with(|state| state.numbers.connections), 8);
    }
}

#[test]
fn sockets_are_closed_in_order_whichever_thread_ends_last() {
    for last in [0, 1] {
        let listen = free_address();
        let mut old = QuicServer::listen(&Options { listen, ..options() }, 2).unwrap();
        let successor = Options { listen, predecessor_places: [0, 1].into(), ..second() };
        let mut servers = QuicServer::listen(&successor, 2).unwrap();
        drop(old.remove(1 - last));
        drop(old);
        servers[0].threads.are_alone();
        arrive_at_their_threads(&mut servers, listen, 0x80);
    }
}

#[test]
fn successor_takes_the_port_for_itself_after_a_while() {
    let options = Options { predecessor_places: [0].into(), ..options() };
    let of_any_port = listening(&options);
    assert_eq!(of_any_port.alone_at_ns, NEVER_NS);
    let mut servers =
        QuicServer::listen(&Options { listen: free_address(), ..options }, 2).unwrap();
    assert_eq!(servers[1].alone_at_ns, NEVER_NS);
    let first = &mut servers[0];
    let mut handler = Handler::default();
    first.turn(&mut handler);
    let due_in = first.due_in().unwrap();
    assert!(due_in > Duration::from_secs(5) && due_in <= Duration::from_secs(10));
    first.alone_at_ns = 0;
    first.turn(&mut handler);
    assert_eq!((first.alone_at_ns, first.due_in()), (NEVER_NS, None));
    first.alone_at_ns = 0;
    first.drain();
    assert_eq!(first.alone_at_ns, NEVER_NS);
}
